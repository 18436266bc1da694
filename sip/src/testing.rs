//! Two endpoints and a network between them, in virtual time, for protocol tests. Datagrams may be lost; connections
//! lose nothing and keep the order until they are cut.
//!
//! The timers of an INVITE transaction without any answer (RFC 3261 17.1.1.2):
//!
//! ```
//! use ringer_sip::testing::{Pair, Party};
//! use ringer_sip::{CallEvent, EndKind};
//!
//! let mut pair = Pair::new(1, |_, _, _, _| ());
//! pair.loss = 1.0;
//! pair.call();
//! pair.run(31_000);
//! assert_eq!(pair.count(Party::Alice, "INVITE"), 6, "at 0, 0.5, 1.5, 3.5, 7.5 and 15.5 s");
//! assert!(pair.of(Party::Alice).is_empty());
//! pair.run(2000);
//! let events = pair.of(Party::Alice);
//! assert!(matches!(events[..], [CallEvent::Ended(end)] if end.kind == EndKind::Timeout));
//! ```

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::dialog::Reach;
use crate::endpoint::{Endpoint, EndpointConfig, Output};
use crate::hop::{ConnectionId, Hop, Transport};
use crate::sdp::{Codec, Offer};
use crate::time::Time;
use crate::uri::Uri;
use crate::useragent::{CallEvent, CallKey, Invite, Notice};

/// One of the two parties.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Party {
    /// Party at 10.0.0.1, port 5060, for TLS 5061.
    Alice,
    /// Party at 10.0.0.2, port 5060, for TLS 5061.
    Bob,
}

impl Party {
    /// Returns the other party.
    fn other(self) -> Party {
        if self == Party::Alice { Party::Bob } else { Party::Alice }
    }
}

/// Message, or event of a connection, on its way to a party.
enum Flight {
    Message(Hop, Vec<u8>),
    Refusal(Hop),
    End(ConnectionId),
}

/// Two endpoints, a clock and a seeded network.
pub struct Pair {
    /// Endpoint at 10.0.0.1, usually the caller.
    pub alice: Endpoint,
    /// Endpoint at 10.0.0.2, usually the answerer.
    pub bob: Endpoint,
    /// Virtual time of both endpoints.
    pub now: Time,
    /// Share of datagrams that are lost, 0 to 1.
    pub loss: f64,
    /// Delay of the network in one direction, milliseconds.
    pub delay_ms: u64,
    /// Largest additional delay of a datagram, drawn for each, so that some overtake others, milliseconds.
    pub jitter_ms: u64,
    /// Events of both parties, in order.
    pub events: Vec<(Party, CallKey, CallEvent)>,
    /// Notices of both sides, which are not among the events.
    pub notices: Vec<(Party, Notice)>,
    /// Every datagram sent: its time, its sender, its first line.
    pub sent: Vec<(Time, Party, String)>,
    /// Every message sent: its sender, its place, its bytes.
    pub messages: Vec<(Party, Hop, Vec<u8>)>,
    /// Transport of Alice's calls.
    pub link: Transport,
    /// Transports whose connections Bob refuses.
    pub refused: Vec<Transport>,
    /// Function that is called with every event of Bob, and may act on Bob at once.
    pub script: fn(&mut Endpoint, Time, CallKey, &CallEvent),
    flying: BTreeMap<(Time, u64), (Party, Flight)>,
    /// Open connections, each with the party that opened it and its transport.
    open: BTreeMap<ConnectionId, (Party, Transport)>,
    connections: u64,
    draws: u64,
}

impl Pair {
    /// Returns a lossless network of 10 ms without connections; Bob does as `script` says.
    pub fn new(seed: u64, script: fn(&mut Endpoint, Time, CallKey, &CallEvent)) -> Pair {
        Pair::speaking(seed, false, script)
    }

    /// Returns a pair whose endpoints speak TCP and TLS as well; Alice calls by `link`.
    pub fn over(seed: u64, link: Transport, script: fn(&mut Endpoint, Time, CallKey, &CallEvent)) -> Pair {
        Pair { link, ..Pair::speaking(seed, true, script) }
    }

    fn speaking(seed: u64, streams: bool, script: fn(&mut Endpoint, Time, CallKey, &CallEvent)) -> Pair {
        let endpoint = |party: Party| {
            let user_agent = format!("{party:?}");
            let seed = seed * 2 + party as u64;
            let tcp = streams.then_some(listener(party, Transport::Tcp));
            let tls = streams.then_some(listener(party, Transport::Tls));
            Endpoint::new(EndpointConfig { local: address(party), tcp, tls, user_agent, seed })
        };
        Pair {
            alice: endpoint(Party::Alice),
            bob: endpoint(Party::Bob),
            now: Time(0),
            loss: 0.0,
            delay_ms: 10,
            jitter_ms: 0,
            events: Vec::new(),
            notices: Vec::new(),
            sent: Vec::new(),
            messages: Vec::new(),
            link: Transport::Udp,
            refused: Vec::new(),
            script,
            flying: BTreeMap::new(),
            open: BTreeMap::new(),
            connections: 0,
            draws: seed,
        }
    }

    /// Places a call of Alice to Bob, without credentials.
    pub fn call(&mut self) -> CallKey {
        self.call_as(None)
    }

    /// Places a call of Alice to Bob, with this username and password.
    pub fn call_as(&mut self, who: Option<(&str, &str)>) -> CallKey {
        let mut invite = self.invite();
        (invite.username, invite.password) = who.map(|(name, password)| (name.to_owned(), password.into())).unzip();
        self.alice.invite(self.now, invite)
    }

    /// Places a call of Alice to Bob, with this offer.
    pub fn call_offering(&mut self, offer: &Offer) -> CallKey {
        let invite = self.invite();
        self.alice.invite(self.now, Invite { sdp: offer.session().to_string(), ..invite })
    }

    /// Places a call of Alice to Bob that requires this extension (RFC 3261 20.32).
    pub fn call_requiring(&mut self, extension: &str) -> CallKey {
        let mut invite = self.invite();
        invite.headers.push(("Require".into(), extension.into()));
        self.alice.invite(self.now, invite)
    }

    /// Returns the order of a call of Alice to Bob.
    pub fn invite(&self) -> Invite {
        let destination = Hop::new(self.link, listener(Party::Bob, self.link));
        Invite { destination, ..invite_to("sip:bob@10.0.0.2", address(Party::Bob)) }
    }

    /// Cuts every connection; messages on their way over one are lost, and both sides are told.
    pub fn cut_connections(&mut self) {
        self.flying.retain(|_, (_, flight)| !matches!(flight, Flight::Message(from, _) if from.connection.is_some()));
        for connection in std::mem::take(&mut self.open).into_keys() {
            for party in [Party::Alice, Party::Bob] {
                self.fly(party, 0, Flight::End(connection));
            }
        }
    }

    /// Number of connections that are open.
    pub fn open_connections(&self) -> usize {
        self.open.len()
    }

    /// Runs for `ms` milliseconds of virtual time.
    pub fn run(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        loop {
            self.drain();
            let timers = [self.alice.next_timer(), self.bob.next_timer(), self.flying.keys().next().map(|k| k.0)];
            let Some(next) = timers.into_iter().flatten().min().filter(|at| *at <= end) else { break };
            self.now = next.max(self.now);
            while let Some(entry) = self.flying.first_entry().filter(|e| e.key().0 <= self.now) {
                let ((to, flight), now) = (entry.remove(), self.now);
                let endpoint = self.endpoint(to);
                match flight {
                    Flight::Message(from, bytes) => endpoint.receive(now, from, &bytes),
                    Flight::Refusal(hop) => endpoint.unreachable(now, &hop),
                    Flight::End(connection) => endpoint.connection_lost(now, connection),
                }
                self.drain();
            }
            self.alice.tick(self.now);
            self.bob.tick(self.now);
        }
        self.now = end;
    }

    /// Returns the events of one party.
    pub fn of(&self, party: Party) -> Vec<&CallEvent> {
        self.events.iter().filter(|(p, _, _)| *p == party).map(|(_, _, e)| e).collect()
    }

    /// Number of datagrams of `party` whose first line begins with `start`.
    pub fn count(&self, party: Party, start: &str) -> usize {
        self.sent.iter().filter(|(_, p, line)| *p == party && line.starts_with(start)).count()
    }

    fn endpoint(&mut self, party: Party) -> &mut Endpoint {
        match party {
            Party::Alice => &mut self.alice,
            Party::Bob => &mut self.bob,
        }
    }

    fn drain(&mut self) {
        for party in [Party::Alice, Party::Bob, Party::Alice] {
            while let Some(output) = self.endpoint(party).poll() {
                match output {
                    Output::Send { to, bytes, .. } => self.send(party, to, bytes),
                    Output::Event(_, CallEvent::Notice(notice)) => self.notices.push((party, notice)),
                    Output::Event(key, event) => {
                        if party == Party::Bob {
                            (self.script)(&mut self.bob, self.now, key, &event);
                        }
                        self.events.push((party, key, event));
                    }
                }
            }
        }
    }

    fn send(&mut self, party: Party, to: Hop, bytes: Vec<u8>) {
        let line = String::from_utf8_lossy(bytes.split(|b| *b == b'\r').next().unwrap_or(&[])).into_owned();
        self.sent.push((self.now, party, line));
        self.messages.push((party, to.clone(), bytes.clone()));
        if to.transport.is_reliable() {
            return self.send_over_connection(party, to, bytes);
        }
        let receiver = [Party::Alice, Party::Bob].into_iter().find(|p| address(*p) == to.address);
        let (lost, jitter) = (self.draw() < self.loss, self.draw());
        if let Some(receiver) = receiver.filter(|_| !lost) {
            let delay = Duration::from_nanos(((self.delay_ms as f64 + jitter * self.jitter_ms as f64) * 1e6) as u64);
            self.draws += 1;
            let from = Hop::udp(address(receiver.other()));
            self.flying.insert((self.now + delay, self.draws), (receiver, Flight::Message(from, bytes)));
        }
    }

    /// Sends by the connection that is named while it is open. Else it goes by one that this party opened to the same
    /// address, or by a new one.
    fn send_over_connection(&mut self, party: Party, to: Hop, bytes: Vec<u8>) {
        let receiver = party.other();
        let listens = to.address == listener(receiver, to.transport);
        let opened = |open: &&(Party, Transport)| **open == (party, to.transport);
        let known = to.connection.filter(|named| self.open.contains_key(named));
        let known = known.or_else(|| {
            let mut open = self.open.iter().filter(|(_, open)| listens && opened(open));
            open.next().map(|(connection, _)| *connection)
        });
        let is_refused = receiver == Party::Bob && self.refused.contains(&to.transport);
        if known.is_none() && (!listens || is_refused) {
            return self.fly(party, self.delay_ms, Flight::Refusal(to));
        }
        let connection = known.unwrap_or_else(|| {
            self.connections += 1;
            self.open.insert(ConnectionId(self.connections), (party, to.transport));
            ConnectionId(self.connections)
        });
        let mut from = listener(party, to.transport);
        if self.open[&connection].0 == party {
            // As a system draws it for a connection that goes out.
            from.set_port(40_000 + connection.0 as u16);
        }
        let from = Hop { connection: Some(connection), ..Hop::new(to.transport, from) };
        self.fly(receiver, self.delay_ms, Flight::Message(from, bytes));
    }

    fn fly(&mut self, to: Party, delay_ms: u64, flight: Flight) {
        self.draws += 1;
        self.flying.insert((self.now + Duration::from_millis(delay_ms), self.draws), (to, flight));
    }

    /// Draws a uniform number in [0, 1), by SplitMix64.
    fn draw(&mut self) -> f64 {
        self.draws = self.draws.wrapping_add(1);
        let mut z = self.draws.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Returns the address of a party.
pub fn address(party: Party) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, party as u8 + 1], 5060))
}

/// Returns the address at which a party takes messages of this transport.
pub fn listener(party: Party, transport: Transport) -> SocketAddr {
    SocketAddr::new(address(party).ip(), transport.default_port())
}

/// Returns the order of a call from `alice` with PCMU, PCMA and G722 at 10.0.0.1:4000.
pub fn invite_to(target: &str, destination: SocketAddr) -> Invite {
    Invite {
        target: Uri::parse(target).expect("a test names a good address"),
        destination: Hop::udp(destination),
        alternatives: Vec::new(),
        from_user: "alice".into(),
        from_host: None,
        from_display: Some("Alice".into()),
        headers: vec![("X-One".into(), "1".into()), ("X-Two".into(), "2".into())],
        sdp: offer(1).session().to_string(),
        username: None,
        password: None,
        reach: Reach::default(),
    }
}

/// Returns an offer of the party at 10.0.0.`host`: PCMU, PCMA and G.722 at port 4000.
pub fn offer(host: u8) -> Offer {
    Offer::new(SocketAddr::from(([10, 0, 0, host], 4000)), vec![Codec::pcmu(), Codec::pcma(), Codec::g722()])
}
