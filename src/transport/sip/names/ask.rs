//! Questions to name servers over the network, the hosts file before them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use std::{fmt, io};

use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::{Message, Query};
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use hickory_resolver::{Hosts, TokioResolver};

use super::plan::{Answer, Families, Pointer, Question, Service, Trouble};

/// Longest wait for one name server before the question is asked again.
const TRY: Duration = Duration::from_secs(1);
/// Repetitions of a question that was not answered; the search's own limit of time comes first.
const REPEATS: usize = 3;

/// Name servers, and their answers as long as those may be kept.
#[derive(Clone)]
pub(super) struct NameServers {
    resolver: TokioResolver,
    /// True if the servers are those of the system, which may know names by other means too.
    pub are_of_system: bool,
}

impl fmt::Debug for NameServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NameServers")
    }
}

impl NameServers {
    /// Returns the name servers at these addresses, by UDP and, for long answers, TCP.
    ///
    /// # Errors
    /// Those of the library that asks.
    pub(super) fn at(servers: &[SocketAddr]) -> io::Result<NameServers> {
        let servers = servers.iter().map(|server| {
            let mut ways = vec![ConnectionConfig::udp(), ConnectionConfig::tcp()];
            ways.iter_mut().for_each(|way| way.port = server.port());
            NameServerConfig::new(server.ip(), true, ways)
        });
        let config = ResolverConfig::from_name_servers(servers.collect());
        NameServers::with(config, ResolverOpts::default(), false)
    }

    /// Returns the name servers of `/etc/resolv.conf`, with its search list and options.
    ///
    /// # Errors
    /// The file cannot be read, or names no server.
    pub(super) fn of_system() -> io::Result<NameServers> {
        let (config, options) = hickory_resolver::system_conf::read_system_conf().map_err(io::Error::other)?;
        NameServers::with(config, options, true)
    }

    fn with(config: ResolverConfig, mut options: ResolverOpts, are_of_system: bool) -> io::Result<NameServers> {
        options.timeout = options.timeout.min(TRY);
        options.attempts = options.attempts.max(REPEATS);
        options.use_hosts_file = ResolveHosts::Never;
        let builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
        let resolver = builder.with_options(options).build().map_err(io::Error::other)?;
        Ok(NameServers { resolver, are_of_system })
    }

    /// Asks. Addresses are asked for by those `families` alone that can be used.
    pub(super) async fn ask(&self, question: &Question, families: Families) -> Answer {
        let answer = match question {
            Question::Pointers(name) => self.pointers(name).await.map(Answer::Pointers),
            Question::Services(name) => self.services(name).await.map(Answer::Services),
            Question::Addresses(name) => self.addresses(name, families).await.map(Answer::Addresses),
        };
        answer.unwrap_or_else(Answer::Failed)
    }

    async fn pointers(&self, name: &str) -> Result<Vec<Pointer>, Trouble> {
        self.records(name, RecordType::NAPTR).await.map(|found| pointers(&found))
    }

    async fn services(&self, name: &str) -> Result<Vec<Service>, Trouble> {
        self.records(name, RecordType::SRV).await.map(|found| services(&found))
    }

    async fn addresses(&self, name: &str, families: Families) -> Result<Vec<IpAddr>, Trouble> {
        if let Some(found) = known_here(name) {
            return Ok(found);
        }
        let (v4, v6) = (self.records(name, RecordType::A), self.records(name, RecordType::AAAA));
        let (v4, v6) = match families {
            // The other family is asked for too where the first has none: the fault then says so.
            Families::V4 => first_with_records(v4, v6).await,
            Families::V6 => first_with_records(v6, v4).await,
            Families::Both => tokio::join!(v4, v6),
        };
        let found: Vec<IpAddr> = [&v4, &v6].into_iter().flatten().flatten().filter_map(RData::ip_addr).collect();
        match (found.is_empty(), v4.err().or(v6.err())) {
            (true, Some(trouble)) => Err(trouble),
            _ => Ok(found),
        }
    }

    /// Returns the records of a name; none where it does not exist or cannot be a name.
    async fn records(&self, name: &str, kind: RecordType) -> Result<Vec<RData>, Trouble> {
        let Ok(name) = Name::from_utf8(name) else { return Ok(Vec::new()) };
        match self.resolver.lookup(name, kind).await {
            Ok(found) => Ok(found.answers().iter().map(|record| record.data.clone()).collect()),
            Err(error) if error.is_no_records_found() => Ok(Vec::new()),
            Err(NetError::Dns(DnsError::ResponseCode(code))) => Err(Trouble::Refused(code.to_string())),
            Err(error) => {
                tracing::debug!(%error, %kind, "no name server answers");
                Err(Trouble::Silent)
            }
        }
    }
}

/// Returns the NAPTR records among records.
fn pointers(found: &[RData]) -> Vec<Pointer> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let found = found.iter().filter_map(|data| if let RData::NAPTR(found) = data { Some(found) } else { None });
    let pointers = found.map(|found| Pointer {
        order: found.order,
        preference: found.preference,
        flags: text(&found.flags),
        service: text(&found.services),
        regexp: text(&found.regexp),
        replacement: found.replacement.to_ascii(),
    });
    pointers.collect()
}

/// Returns the SRV records among records.
fn services(found: &[RData]) -> Vec<Service> {
    let found = found.iter().filter_map(|data| if let RData::SRV(found) = data { Some(found) } else { None });
    let services = found.map(|found| Service {
        priority: found.priority,
        weight: found.weight,
        port: found.port,
        target: found.target.to_ascii(),
    });
    services.collect()
}

/// Returns the answer to a question by one message of a name server (RFC 1035 4); `None`: the bytes are no message.
pub(super) fn answer_in(question: &Question, message: &[u8]) -> Option<Answer> {
    let message = Message::from_vec(message).ok()?;
    let found: Vec<RData> = message.answers.iter().map(|record| record.data.clone()).collect();
    Some(answer_of(question, &found))
}

/// Returns the answer that records are to a question; records of other kinds do not count.
pub(super) fn answer_of(question: &Question, found: &[RData]) -> Answer {
    match question {
        Question::Pointers(_) => Answer::Pointers(pointers(found)),
        Question::Services(_) => Answer::Services(services(found)),
        Question::Addresses(_) => Answer::Addresses(found.iter().filter_map(RData::ip_addr).collect()),
    }
}

type Records = Result<Vec<RData>, Trouble>;

/// Waits for the first, and for the second only where that has nothing.
async fn first_with_records(
    first: impl Future<Output = Records>,
    second: impl Future<Output = Records>,
) -> (Records, Records) {
    match first.await {
        Ok(found) if found.is_empty() => (Ok(found), second.await),
        first => (first, Ok(Vec::new())),
    }
}

/// Returns the addresses of a name that is known without name servers: in the hosts file, or `localhost` (RFC 6761
/// 6.3). `None` for others. The hosts file is read each time, so that changes count.
pub(super) fn known_here(name: &str) -> Option<Vec<IpAddr>> {
    let mut name = Name::from_utf8(name).ok()?;
    name.set_fqdn(true);
    let hosts = Hosts::from_system().unwrap_or_default();
    let found = [RecordType::A, RecordType::AAAA].into_iter().filter_map(|kind| {
        let found = hosts.lookup_static_host(&Query::query(name.clone(), kind))?;
        Some(found.answers().iter().filter_map(|record| record.data.ip_addr()).collect::<Vec<_>>())
    });
    let found: Vec<IpAddr> = found.flatten().collect();
    if !found.is_empty() {
        return Some(found);
    }
    let is_local = name.to_ascii().trim_end_matches('.').rsplit('.').next()?.eq_ignore_ascii_case("localhost");
    is_local.then(|| vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
}
