//! Servers of a SIP URI (RFC 3263 4): the questions to name servers in turn, and from the answers the hops. Pure: it
//! asks nobody.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};

use ringer_sip::hop::{Hop, Transport};
use ringer_sip::uri::{Scheme, Uri};
use url::Host;

/// Most hops of one URI.
pub(super) const HOPS_MOST: usize = 16;
/// Most NAPTR records of one domain that are followed.
const POINTERS_MOST: usize = 8;

/// Families of IP addresses that this side's SIP socket can send to.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Families {
    /// IPv4 and no other.
    V4,
    /// IPv6 and no other.
    V6,
    /// IPv4 first, then IPv6.
    #[default]
    Both,
}

impl Families {
    /// Returns the families of a socket that is bound to `listen`: `[::]` takes both, any other address its own.
    pub fn of(listen: IpAddr) -> Families {
        match listen {
            IpAddr::V4(_) => Families::V4,
            IpAddr::V6(address) if address.is_unspecified() => Families::Both,
            IpAddr::V6(_) => Families::V6,
        }
    }

    /// True if the socket can send to `address`.
    pub fn take(self, address: IpAddr) -> bool {
        match self {
            Families::V4 => address.is_ipv4(),
            Families::V6 => address.is_ipv6(),
            Families::Both => true,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Families::V4 => "IPv4",
            Families::V6 => "IPv6",
            Families::Both => "IP",
        }
    }
}

/// Terms of a search: the ways that this side can go.
#[derive(Clone, Debug)]
pub(super) struct Ways {
    /// Transports that this side speaks, the preferred one first.
    pub spoken: Vec<Transport>,
    /// Families of addresses that it can send to.
    pub families: Families,
    /// True if NAPTR and SRV records can be asked for; otherwise only addresses.
    pub has_services: bool,
}

/// A question to the name servers. A name with a dot at its end is complete; another may be completed by a search list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// NAPTR records of a domain (RFC 3403).
    Pointers(String),
    /// SRV records of a service (RFC 2782).
    Services(String),
    /// A and AAAA records of a host.
    Addresses(String),
}

/// Fields of a NAPTR record (RFC 3403 4).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// Records of the lowest order are followed alone, as far as they apply.
    pub order: u16,
    /// Within an order, lower ones come first.
    pub preference: u16,
    /// `s`: the replacement has SRV records.
    pub flags: String,
    /// Service, for example `SIP+D2U`.
    pub service: String,
    /// Rewriting expression; records of SIP have none.
    pub regexp: String,
    /// Name with the SRV records.
    pub replacement: String,
}

/// Fields of an SRV record (RFC 2782).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Service {
    /// Lower ones are tried first.
    pub priority: u16,
    /// Share of the draws within a priority.
    pub weight: u16,
    /// Port of the server.
    pub port: u16,
    /// Name of the server; `.`: the service is decidedly not there.
    pub target: String,
}

/// The name servers' part in a question without an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// They did not answer in time.
    Silent,
    /// They answered with this error.
    Refused(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Silent => f.write_str("the name servers did not answer"),
            Trouble::Refused(code) => write!(f, "the name servers answered with an error ({code})"),
        }
    }
}

/// Answer to a [`Question`]; an empty list where there is no such name or record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// NAPTR records of the domain.
    Pointers(Vec<Pointer>),
    /// SRV records of the service.
    Services(Vec<Service>),
    /// Addresses of the host.
    Addresses(Vec<IpAddr>),
    /// The name servers told nothing.
    Failed(Trouble),
}

/// Reason why a URI has no hops.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// The transport or scheme is not supported.
    NotSpoken(String),
    /// The host has no address.
    NoAddress,
    /// The host has only addresses of the other family.
    NoFamily(Families),
    /// The domain states that it takes no calls (RFC 2782: the target `.`).
    Closed,
    /// The guard allows none of its addresses.
    NotAllowed,
    /// The name servers did not tell.
    Unanswered(Trouble),
}

impl fmt::Display for Lost {
    /// Writes the predicate of a sentence about the host.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lost::NotSpoken(why) => f.write_str(why),
            Lost::NoAddress => f.write_str("has no address"),
            Lost::NoFamily(families) => {
                let family = families.name();
                write!(f, "has no {family} address, and the SIP socket can send to {family} addresses alone")
            }
            Lost::Closed => f.write_str("takes no SIP calls, as its SRV records say (target \".\")"),
            Lost::NotAllowed => f.write_str("points to an address that is not allowed"),
            Lost::Unanswered(trouble) => write!(f, "could not be looked up: {trouble}"),
        }
    }
}

/// Returns the transport that the URI asks for, by scheme or parameter; `None` where it leaves that open.
///
/// # Errors
/// The words for a transport that it cannot have.
pub(super) fn asked_transport(uri: &Uri) -> Result<Option<Transport>, String> {
    let named = uri.params.get("transport");
    let transport = match named.map(|name| (name, Transport::from_name(name))) {
        Some((name, None)) => return Err(format!("SIP is spoken over UDP, TCP and TLS alone, and not over {name:?}")),
        Some((_, found)) => found,
        None => None,
    };
    match (uri.scheme, transport) {
        (Scheme::Sips, Some(Transport::Udp)) => Err("sips: needs TLS, which is not spoken over UDP".to_owned()),
        // RFC 3261 26.2.2: "transport=tls" is deprecated, "sips:...;transport=tcp" is TLS over TCP.
        (Scheme::Sips, _) => Ok(Some(Transport::Tls)),
        (_, transport) => Ok(transport),
    }
}

/// Checks that one of the `spoken` transports reaches the URI, as far as the URI itself tells.
///
/// # Errors
/// [`Lost::NotSpoken`].
pub fn check_spoken(uri: &Uri, spoken: &[Transport]) -> Result<(), Lost> {
    if uri.scheme == Scheme::Tel {
        return Err(Lost::NotSpoken("a telephone number needs a trunk: it must start with sip:".to_owned()));
    }
    let only = || Lost::NotSpoken(format!("only SIP over {} is spoken here", transport_names(spoken)));
    match asked_transport(uri) {
        Ok(Some(transport)) if !spoken.contains(&transport) => Err(only()),
        Ok(_) => Ok(()),
        Err(_) if !spoken.contains(&Transport::Tls) => Err(only()),
        Err(why) => Err(Lost::NotSpoken(why)),
    }
}

fn transport_names(spoken: &[Transport]) -> String {
    let names: Vec<&str> = spoken.iter().map(|transport| transport.name()).collect();
    match names.split_last() {
        Some((last, [])) => (*last).to_owned(),
        Some((last, first)) => format!("{} and {last}", first.join(", ")),
        None => "no transport".to_owned(),
    }
}

/// A server whose addresses are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Target {
    transport: Transport,
    host: String,
    port: u16,
}

/// An SRV name to ask for; `order`: of the NAPTR record that named it.
#[derive(Clone, Debug)]
struct Named {
    order: u16,
    transport: Transport,
    name: String,
}

#[derive(Debug)]
enum Stage {
    Pointers,
    Services { named: Vec<Named>, are_pointed_to: bool },
    Addresses(Vec<Target>),
    Found(Vec<(Target, Vec<IpAddr>)>),
    Lost(Lost),
}

/// The search for the hops of one URI: at most three rounds of questions, each of which [`Search::take`] brings to the
/// next.
#[derive(Debug)]
pub(super) struct Search {
    domain: String,
    asked: Option<Transport>,
    port: Option<u16>,
    ways: Ways,
    stage: Stage,
    trouble: Option<Trouble>,
}

impl Search {
    /// Begins the search for `uri`.
    ///
    /// # Errors
    /// [`Lost::NotSpoken`].
    pub(super) fn begin(uri: &Uri, mut ways: Ways) -> Result<Search, Lost> {
        check_spoken(uri, &ways.spoken)?;
        let asked = asked_transport(uri).map_err(Lost::NotSpoken)?;
        if let Some(transport) = asked {
            ways.spoken = vec![transport];
        }
        let mut search = Search {
            domain: server_of(uri).trim_end_matches('.').to_owned(),
            asked,
            port: uri.port,
            ways,
            stage: Stage::Pointers,
            trouble: None,
        };
        let has_services = search.ways.has_services && search.domain.contains('.');
        search.stage = match (numeric(&search.domain), uri.port, asked) {
            (Some(address), ..) => Stage::Found(vec![(search.own_target(), vec![address])]),
            (None, Some(_), _) => Stage::Addresses(vec![search.own_target()]),
            _ if !has_services => Stage::Addresses(vec![search.own_target()]),
            (.., Some(transport)) if uri.params.has("transport") => search.services(&[transport]),
            _ => Stage::Pointers,
        };
        Ok(search)
    }

    /// Returns the name that is searched for, without a dot at its end.
    pub(super) fn domain(&self) -> &str {
        &self.domain
    }

    /// Returns the questions of this round; none when the search is over.
    pub(super) fn questions(&self) -> Vec<Question> {
        let mut questions = match &self.stage {
            Stage::Pointers => vec![Question::Pointers(format!("{}.", self.domain))],
            Stage::Services { named, .. } => named.iter().map(|named| Question::Services(named.name.clone())).collect(),
            Stage::Addresses(targets) => {
                targets.iter().map(|target| Question::Addresses(target.host.clone())).collect()
            }
            Stage::Found(_) | Stage::Lost(_) => Vec::new(),
        };
        questions.sort();
        questions.dedup();
        questions
    }

    /// Takes the answers of this round. `draw(most)` gives a number from 0 to `most`, for weights.
    pub(super) fn take(&mut self, answers: &BTreeMap<Question, Answer>, draw: &mut dyn FnMut(u32) -> u32) {
        let stage = std::mem::replace(&mut self.stage, Stage::Lost(Lost::NoAddress));
        self.stage = match stage {
            Stage::Pointers => self.take_pointers(answers),
            Stage::Services { named, are_pointed_to } => self.take_services(&named, are_pointed_to, answers, draw),
            Stage::Addresses(targets) => self.take_addresses(targets, answers),
            over @ (Stage::Found(_) | Stage::Lost(_)) => over,
        };
    }

    /// Returns the hops in the order in which they are tried, those alone whose address `allows` lets through.
    ///
    /// # Errors
    /// [`Lost`].
    pub(super) fn hops(self, allows: &dyn Fn(IpAddr) -> bool) -> Result<Vec<Hop>, Lost> {
        let found = match self.stage {
            Stage::Found(found) => found,
            Stage::Lost(lost) => return Err(lost),
            Stage::Pointers | Stage::Services { .. } | Stage::Addresses(_) => return Err(Lost::NoAddress),
        };
        let (mut hops, mut has_other_family, mut has_refused) = (Vec::<Hop>::new(), false, false);
        for (target, mut addresses) in found {
            addresses.sort_by_key(IpAddr::is_ipv6);
            for address in addresses {
                if !self.ways.families.take(address) {
                    has_other_family = true;
                } else if !allows(address) {
                    has_refused = true;
                } else {
                    let mut hop = Hop::new(target.transport, SocketAddr::new(address, target.port));
                    // RFC 5922 7.1: the certificate names the domain of the URI, since SRV records can be forged.
                    let is_named = target.transport == Transport::Tls && numeric(&self.domain).is_none();
                    hop.server_name = is_named.then(|| self.domain.to_ascii_lowercase().into());
                    if hops.len() < HOPS_MOST && !hops.contains(&hop) {
                        hops.push(hop);
                    }
                }
            }
        }
        match (hops.is_empty(), self.trouble) {
            (false, _) => Ok(hops),
            _ if has_refused => Err(Lost::NotAllowed),
            (_, Some(trouble)) => Err(Lost::Unanswered(trouble)),
            _ if has_other_family => Err(Lost::NoFamily(self.ways.families)),
            _ => Err(Lost::NoAddress),
        }
    }

    /// Returns the transport of a URI that leaves it open and whose domain tells none (RFC 3263 4.1).
    fn transport(&self) -> Transport {
        let spoken = &self.ways.spoken;
        let open = if spoken.contains(&Transport::Udp) { None } else { spoken.first().copied() };
        self.asked.or(open).unwrap_or_default()
    }

    fn own_target(&self) -> Target {
        self.target_by(self.transport())
    }

    fn target_by(&self, transport: Transport) -> Target {
        Target { transport, host: self.domain.clone(), port: self.port.unwrap_or(transport.default_port()) }
    }

    fn services(&self, transports: &[Transport]) -> Stage {
        let named = transports.iter().map(|transport| {
            let service = match transport {
                Transport::Udp => "_sip._udp",
                Transport::Tcp => "_sip._tcp",
                Transport::Tls => "_sips._tcp",
            };
            Named { order: 0, transport: *transport, name: format!("{service}.{}.", self.domain) }
        });
        Stage::Services { named: named.collect(), are_pointed_to: false }
    }

    fn take_pointers(&self, answers: &BTreeMap<Question, Answer>) -> Stage {
        let mut of_sip = Vec::new();
        for answer in answers.values() {
            // Many routers drop what they do not know, such as NAPTR: without an answer the services are asked for.
            if let Answer::Pointers(found) = answer {
                of_sip.extend(found.iter().filter_map(|pointer| Some((transport_of(pointer)?, pointer))));
            }
        }
        // RFC 3263 4.1: for a SIPS URI the records without SIPS are as if they were not there.
        of_sip.retain(|(transport, _)| self.asked.is_none_or(|asked| asked == *transport));
        if of_sip.is_empty() {
            // RFC 3263 4.1: "_sip" for SIP URIs. TLS is for those that ask for it.
            let plain = self.ways.spoken.iter().copied().filter(|transport| *transport != Transport::Tls);
            let plain: Vec<Transport> = plain.collect();
            return if plain.is_empty() { self.services(&self.ways.spoken) } else { self.services(&plain) };
        }
        of_sip.sort_by_key(|(_, pointer)| (pointer.order, pointer.preference));
        let offered: Vec<&str> = of_sip.iter().map(|(_, pointer)| pointer.service.as_str()).collect();
        let offered = offered.join(", ");
        let named: Vec<Named> = of_sip
            .into_iter()
            .filter(|(transport, _)| self.ways.spoken.contains(transport))
            .map(|(transport, pointer)| {
                let name = format!("{}.", pointer.replacement.trim_end_matches('.'));
                Named { order: pointer.order, transport, name }
            })
            .take(POINTERS_MOST)
            .collect();
        if named.is_empty() {
            let spoken = transport_names(&self.ways.spoken);
            return Stage::Lost(Lost::NotSpoken(format!(
                "its domain takes calls by {offered} alone (NAPTR), and only SIP over {spoken} is spoken here"
            )));
        }
        Stage::Services { named, are_pointed_to: true }
    }

    fn take_services(
        &mut self,
        named: &[Named],
        are_pointed_to: bool,
        answers: &BTreeMap<Question, Answer>,
        draw: &mut dyn FnMut(u32) -> u32,
    ) -> Stage {
        let (mut targets, mut order, mut is_closed) = (Vec::new(), None, false);
        for named in named {
            // RFC 3403 4.1: what has a greater order counts only where nothing of a lower one was found.
            if order.is_some_and(|order| order != named.order) {
                break;
            }
            match answers.get(&Question::Services(named.name.clone())) {
                Some(Answer::Services(found)) => {
                    let open = in_order(found, draw);
                    is_closed |= open.is_empty() && !found.is_empty();
                    if !open.is_empty() {
                        order = Some(named.order);
                    }
                    targets.extend(open.into_iter().map(|service| Target {
                        transport: named.transport,
                        host: format!("{}.", service.target.trim_end_matches('.')),
                        port: service.port,
                    }));
                }
                Some(Answer::Failed(trouble)) => self.trouble = Some(trouble.clone()),
                _ => {}
            }
        }
        targets.truncate(HOPS_MOST);
        match (targets.is_empty(), is_closed, &self.trouble) {
            (false, ..) => Stage::Addresses(targets),
            (_, true, _) => Stage::Lost(Lost::Closed),
            // Another server than the one that the domain names would be called.
            (.., Some(trouble)) if are_pointed_to => Stage::Lost(Lost::Unanswered(trouble.clone())),
            _ if are_pointed_to => {
                Stage::Addresses(named.first().map(|named| self.target_by(named.transport)).into_iter().collect())
            }
            _ => Stage::Addresses(vec![self.own_target()]),
        }
    }

    fn take_addresses(&mut self, targets: Vec<Target>, answers: &BTreeMap<Question, Answer>) -> Stage {
        let mut found = Vec::new();
        for target in targets {
            match answers.get(&Question::Addresses(target.host.clone())) {
                Some(Answer::Addresses(addresses)) => found.push((target, addresses.clone())),
                Some(Answer::Failed(trouble)) => self.trouble = Some(trouble.clone()),
                _ => {}
            }
        }
        Stage::Found(found)
    }
}

/// Returns the host that is looked up: `maddr` where it is given, else that of the URI (RFC 3263 4).
fn server_of(uri: &Uri) -> &str {
    let other = uri.params.get("maddr").filter(|other| !other.is_empty() && Host::parse(other).is_ok());
    other.unwrap_or(&uri.host)
}

/// Returns the address that a host is written as: IPv4 in any spelling, IPv6 in brackets or not.
fn numeric(host: &str) -> Option<IpAddr> {
    let plain = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    plain.parse().ok().or_else(|| match Host::parse(host) {
        Ok(Host::Ipv4(address)) => Some(address.into()),
        Ok(Host::Ipv6(address)) => Some(address.into()),
        _ => None,
    })
}

/// Returns the transport that a NAPTR record of SIP leads to; `None` for records of other services and of forms that
/// SIP has not.
fn transport_of(pointer: &Pointer) -> Option<Transport> {
    let is_terminal = pointer.flags.eq_ignore_ascii_case("s") && pointer.regexp.is_empty();
    if !is_terminal || pointer.replacement.trim_end_matches('.').is_empty() {
        return None;
    }
    match pointer.service.to_ascii_uppercase().as_str() {
        "SIP+D2U" => Some(Transport::Udp),
        "SIP+D2T" => Some(Transport::Tcp),
        "SIPS+D2T" => Some(Transport::Tls),
        _ => None,
    }
}

/// Returns the usable records in the order in which they are tried (RFC 2782): by priority, then as drawn by weight.
fn in_order(records: &[Service], draw: &mut dyn FnMut(u32) -> u32) -> Vec<Service> {
    let usable = records.iter().filter(|record| record.port != 0 && !record.target.trim_end_matches('.').is_empty());
    let mut left: Vec<Service> = usable.cloned().collect();
    // Records without a weight stand first, and are drawn seldom.
    left.sort_by_key(|record| (record.priority, record.weight));
    let mut ordered = Vec::new();
    while ordered.len() < HOPS_MOST
        && let Some(first) = left.first()
    {
        let priority = first.priority;
        let equal = left.iter().take_while(|record| record.priority == priority);
        let sums: Vec<u64> = equal
            .scan(0, |sum, record| {
                *sum += u64::from(record.weight);
                Some(*sum)
            })
            .collect();
        let most = sums.last().copied().unwrap_or(0);
        let drawn = u64::from(draw(u32::try_from(most).unwrap_or(u32::MAX)));
        let at = sums.iter().position(|sum| *sum >= drawn).unwrap_or(0);
        ordered.push(left.remove(at));
    }
    ordered
}

#[cfg(test)]
mod tests;
