//! Name servers for tests: zones of one line a record, answered without a network or by a server on loopback.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hickory_resolver::proto::op::{Message, OpCode, ResponseCode};
use hickory_resolver::proto::rr::rdata::{A, AAAA, CNAME, NAPTR, SRV};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType};
use parking_lot::Mutex;
use ringer_base::tasks::Tasks;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};

use super::ask::answer_of;
use super::plan::{Answer, Question, Trouble};

/// Lifetime of an answer, in seconds.
const TTL: u32 = 60;

/// Records and misbehaviour of one name and type.
#[derive(Clone, Debug, Default)]
struct Entry {
    records: Vec<RData>,
    is_silent: bool,
    is_broken: bool,
    is_long: bool,
}

/// Records by name and type.
#[derive(Clone, Debug, Default)]
pub struct Zone(BTreeMap<(String, RecordType), Entry>);

impl Zone {
    /// Reads lines such as `example. SRV 10 60 5070 sip.example.` and
    /// `example. NAPTR 10 10 s SIP+D2U _sip._udp.example.`. In the place of the data, `SILENT` is no answer, `SERVFAIL`
    /// is that error, and `LONG` a record that makes UDP answers too long.
    pub fn of(text: &str) -> Zone {
        let mut zone = Zone::default();
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let kind: RecordType = words[1].parse().unwrap_or_else(|_| panic!("{line}: no type"));
            let entry = zone.0.entry((words[0].to_ascii_lowercase(), kind)).or_default();
            match words[2] {
                "SILENT" => entry.is_silent = true,
                "SERVFAIL" => entry.is_broken = true,
                "LONG" => entry.is_long = true,
                _ => entry.records.push(record(kind, &words[2..])),
            }
        }
        zone
    }

    fn entry(&self, name: &str, kind: RecordType) -> Entry {
        self.0.get(&(name.to_ascii_lowercase(), kind)).cloned().unwrap_or_default()
    }

    /// Returns the answer of name servers with this zone.
    pub fn answer(&self, question: &Question) -> Answer {
        let (name, kinds): (&String, &[RecordType]) = match question {
            Question::Pointers(name) => (name, &[RecordType::NAPTR]),
            Question::Services(name) => (name, &[RecordType::SRV]),
            Question::Addresses(name) => (name, &[RecordType::A, RecordType::AAAA]),
        };
        let name = format!("{}.", name.trim_end_matches('.'));
        let entries: Vec<Entry> = kinds.iter().map(|kind| self.entry(&name, *kind)).collect();
        if entries.iter().any(|entry| entry.is_broken || entry.is_silent) {
            return Answer::Failed(Trouble::Silent);
        }
        let records: Vec<RData> = entries.into_iter().flat_map(|entry| entry.records).collect();
        answer_of(question, &records)
    }
}

fn record(kind: RecordType, data: &[&str]) -> RData {
    let number = |at: usize| data[at].parse::<u16>().expect("a number");
    let name = |at: usize| Name::from_ascii(data[at]).expect("a name");
    let text = |at: usize| data.get(at).unwrap_or(&"").as_bytes().into();
    match kind {
        RecordType::A => RData::A(A(data[0].parse().expect("an address"))),
        RecordType::AAAA => RData::AAAA(AAAA(data[0].parse().expect("an address"))),
        RecordType::CNAME => RData::CNAME(CNAME(name(0))),
        RecordType::SRV => RData::SRV(SRV::new(number(0), number(1), number(2), name(3))),
        RecordType::NAPTR => RData::NAPTR(NAPTR::new(number(0), number(1), text(2), text(3), text(5), name(4))),
        other => panic!("zones of tests have no {other}"),
    }
}

/// A name server on loopback, on one port of UDP and TCP; it ends with the value.
pub struct NameServer {
    /// Address that it answers at.
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    _tasks: Tasks,
}

impl NameServer {
    /// Starts a server with the zone in `text` ([`Zone::of`]).
    pub async fn start(text: &str) -> NameServer {
        let (udp, tcp) = sockets().await;
        let address = udp.local_addr().expect("it is bound");
        let (zone, asked, tasks) = (Arc::new(Zone::of(text)), Arc::<Mutex<Vec<String>>>::default(), Tasks::new());
        let desk = Desk { zone, asked: asked.clone() };
        tasks.spawn("name server, UDP", desk.clone().datagrams(udp));
        tasks.spawn("name server, TCP", desk.streams(tcp));
        NameServer { address, asked, _tasks: tasks }
    }

    /// Returns the questions that were asked until now, as `name TYPE`, with ` tcp` behind those that came by TCP.
    pub fn questions(&self) -> Vec<String> {
        self.asked.lock().clone()
    }
}

/// Returns a port that is free for both.
async fn sockets() -> (UdpSocket, TcpListener) {
    for _ in 0..100 {
        let tcp = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback has a free port");
        let address = tcp.local_addr().expect("it is bound");
        if let Ok(udp) = UdpSocket::bind(address).await {
            return (udp, tcp);
        }
    }
    panic!("no port is free for UDP and TCP");
}

#[derive(Clone)]
struct Desk {
    zone: Arc<Zone>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Desk {
    async fn datagrams(self, socket: UdpSocket) {
        let mut buffer = [0; 4096];
        while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
            if let Some(answer) = self.answer(&buffer[..length], false) {
                let _ = socket.send_to(&answer, from).await;
            }
        }
    }

    async fn streams(self, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept().await {
            self.stream(stream).await;
        }
    }

    /// Answers one question of a connection: one connection at a time is enough for tests.
    async fn stream(&self, mut stream: TcpStream) {
        let Ok(length) = stream.read_u16().await else { return };
        let mut question = vec![0; usize::from(length)];
        if stream.read_exact(&mut question).await.is_err() {
            return;
        }
        if let Some(answer) = self.answer(&question, true) {
            let _ = stream.write_u16(u16::try_from(answer.len()).expect("short answers")).await;
            let _ = stream.write_all(&answer).await;
            // The other side closes when it has read.
            let _ = stream.read_u8().await;
        }
    }

    fn answer(&self, question: &[u8], is_stream: bool) -> Option<Vec<u8>> {
        let message = Message::from_vec(question).ok()?;
        let query = message.queries.first()?.clone();
        let (name, kind) = (query.name().to_ascii().to_ascii_lowercase(), query.query_type());
        let by = if is_stream { " tcp" } else { "" };
        self.asked.lock().push(format!("{name} {kind}{by}"));
        let mut entry = self.zone.entry(&name, kind);
        let alias = self.zone.entry(&name, RecordType::CNAME);
        entry.records.extend(alias.records);
        if entry.is_silent {
            return None;
        }
        let is_known = self.zone.0.keys().any(|(known, _)| *known == name);
        let mut answer = Message::response(message.metadata.id, OpCode::Query);
        answer.metadata.recursion_desired = message.metadata.recursion_desired;
        answer.metadata.recursion_available = true;
        answer.metadata.response_code = match (entry.is_broken, is_known) {
            (true, _) => ResponseCode::ServFail,
            (_, true) => ResponseCode::NoError,
            _ => ResponseCode::NXDomain,
        };
        answer.metadata.truncation = entry.is_long && !is_stream;
        answer.add_query(query.clone());
        if !answer.metadata.truncation {
            let owner = query.name();
            answer.add_answers(entry.records.into_iter().map(|data| Record::from_rdata(owner.clone(), TTL, data)));
        }
        answer.to_vec().ok()
    }
}
