//! Two endpoints and a network between them, in virtual time: the stage for protocol tests.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use crate::dialog::Reach;
use crate::endpoint::{Endpoint, EndpointConfig, Output};
use crate::hop::Hop;
use crate::sdp::{Codec, Offer};
use crate::time::Time;
use crate::uri::Uri;
use crate::useragent::{CallEvent, CallKey, Invite};

/// Which of the two.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Party {
    /// 10.0.0.1:5060.
    Alice,
    /// 10.0.0.2:5060.
    Bob,
}

/// Two endpoints, a clock and a seeded network.
pub struct Pair {
    /// Usually the caller.
    pub alice: Endpoint,
    /// Usually the answerer.
    pub bob: Endpoint,
    /// The clock.
    pub now: Time,
    /// Share of datagrams that vanish, 0 to 1.
    pub loss: f64,
    /// One way, milliseconds.
    pub delay_ms: u64,
    /// Each datagram takes up to this much more, so that some overtake others, milliseconds.
    pub jitter_ms: u64,
    /// Every event, in order.
    pub events: Vec<(Party, CallKey, CallEvent)>,
    /// Every datagram sent: when, by whom, its first line.
    pub sent: Vec<(Time, Party, String)>,
    /// Every event of Bob is shown to this, which may act on Bob at once.
    pub script: fn(&mut Endpoint, Time, CallKey, &CallEvent),
    flying: BTreeMap<(Time, u64), (Party, Vec<u8>)>,
    draws: u64,
}

impl Pair {
    /// A lossless network of 10 ms; Bob does as `script` says.
    pub fn new(seed: u64, script: fn(&mut Endpoint, Time, CallKey, &CallEvent)) -> Pair {
        let endpoint = |party: Party| {
            let user_agent = format!("{party:?}");
            let seed = seed * 2 + party as u64;
            Endpoint::new(EndpointConfig { local: address(party), tcp: None, tls: None, user_agent, seed })
        };
        Pair {
            alice: endpoint(Party::Alice),
            bob: endpoint(Party::Bob),
            now: Time(0),
            loss: 0.0,
            delay_ms: 10,
            jitter_ms: 0,
            events: Vec::new(),
            sent: Vec::new(),
            script,
            flying: BTreeMap::new(),
            draws: seed,
        }
    }

    /// Alice calls Bob.
    pub fn call(&mut self) -> CallKey {
        self.call_as(None)
    }

    /// Alice calls Bob with this username and password.
    pub fn call_as(&mut self, who: Option<(&str, &str)>) -> CallKey {
        let mut invite = invite_to("sip:bob@10.0.0.2", address(Party::Bob));
        (invite.username, invite.password) = who.map(|(name, password)| (name.to_owned(), password.into())).unzip();
        self.alice.invite(self.now, invite)
    }

    /// Alice calls Bob with this offer.
    pub fn call_offering(&mut self, offer: &Offer) -> CallKey {
        let invite = invite_to("sip:bob@10.0.0.2", address(Party::Bob));
        self.alice.invite(self.now, Invite { sdp: offer.session().to_string(), ..invite })
    }

    /// Alice calls Bob and requires this extension (RFC 3261 20.32).
    pub fn call_requiring(&mut self, extension: &str) -> CallKey {
        let mut invite = invite_to("sip:bob@10.0.0.2", address(Party::Bob));
        invite.headers.push(("Require".into(), extension.into()));
        self.alice.invite(self.now, invite)
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
                let (to, bytes) = entry.remove();
                let (from, now) = (address(if to == Party::Alice { Party::Bob } else { Party::Alice }), self.now);
                self.endpoint(to).receive(now, Hop::udp(from), &bytes);
                self.drain();
            }
            self.alice.tick(self.now);
            self.bob.tick(self.now);
        }
        self.now = end;
    }

    /// The events of one party.
    pub fn of(&self, party: Party) -> Vec<&CallEvent> {
        self.events.iter().filter(|(p, _, _)| *p == party).map(|(_, _, e)| e).collect()
    }

    /// How many datagrams `party` sent whose first line begins so.
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
                    Output::Send { to, bytes } => self.send(party, to.address, bytes),
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

    fn send(&mut self, party: Party, to: SocketAddr, bytes: Vec<u8>) {
        let line = String::from_utf8_lossy(bytes.split(|b| *b == b'\r').next().unwrap_or(&[])).into_owned();
        self.sent.push((self.now, party, line));
        let receiver = [Party::Alice, Party::Bob].into_iter().find(|p| address(*p) == to);
        let (lost, jitter) = (self.draw() < self.loss, self.draw());
        if let Some(receiver) = receiver.filter(|_| !lost) {
            let delay = Duration::from_nanos(((self.delay_ms as f64 + jitter * self.jitter_ms as f64) * 1e6) as u64);
            self.draws += 1;
            self.flying.insert((self.now + delay, self.draws), (receiver, bytes));
        }
    }

    /// Uniform in [0, 1), by SplitMix64.
    fn draw(&mut self) -> f64 {
        self.draws = self.draws.wrapping_add(1);
        let mut z = self.draws.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The address of a party.
pub fn address(party: Party) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, party as u8 + 1], 5060))
}

/// A call from `alice` with PCMU, PCMA and G722 at 10.0.0.1:4000.
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

/// What the party at 10.0.0.`host` can do, at port 4000.
pub fn offer(host: u8) -> Offer {
    Offer::new(SocketAddr::from(([10, 0, 0, host], 4000)), vec![Codec::pcmu(), Codec::pcma(), Codec::g722()])
}
