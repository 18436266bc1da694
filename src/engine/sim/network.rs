//! The network of a simulated call: a datagram goes to the address that it names, over the way to that address.

use std::net::{IpAddr, SocketAddr};

use ringer_media::netem::{Netem, NetemSpec};
use ringer_media::seed::Seed;
use ringer_media::time::Time;

use super::{AGENT, CALLER, PROXY, TARGET};

/// Most pairs of addresses between which datagrams go in one call: one byte tells them apart.
const MOST_FLOWS: usize = 256;

/// A datagram on its way.
#[derive(Clone, Debug)]
pub(super) struct Datagram {
    /// Address of the socket that sent it.
    pub from: SocketAddr,
    /// Address that it is sent to.
    pub to: SocketAddr,
    /// Bytes of the payload.
    pub bytes: Vec<u8>,
}

/// A datagram that has arrived.
#[derive(Clone, Debug)]
pub(super) struct Arrived {
    /// Time of its arrival.
    pub at: Time,
    /// The datagram as it was sent.
    pub datagram: Datagram,
}

/// The ways to every address; what is sent to any other one is lost.
pub(super) struct Network {
    ways: [(IpAddr, Netem); 4],
    /// Source and destination of the datagrams so far; the first byte of a datagram on its way is an index into it.
    flows: Vec<(SocketAddr, SocketAddr)>,
}

impl Network {
    /// Returns a network that draws from streams of `seed`, one for each way.
    pub(crate) fn new(spec: NetemSpec, seed: Seed) -> Network {
        let way = |address: SocketAddr, name: &str| (address.ip(), Netem::new(spec, seed.stream(name)));
        let ways = [
            way(CALLER, "network to caller"),
            way(AGENT, "network to agent"),
            way(PROXY, "network to proxy"),
            way(TARGET, "network to target"),
        ];
        Network { ways, flows: Vec::new() }
    }

    /// Becomes another network from now on.
    pub(crate) fn change(&mut self, spec: NetemSpec) {
        self.ways.iter_mut().for_each(|(_, way)| way.change(spec));
    }

    /// Hands a datagram in.
    pub(crate) fn send(&mut self, now: Time, datagram: &Datagram) {
        let flow = (datagram.from, datagram.to);
        let known = self.flows.iter().position(|known| *known == flow);
        let place = known.unwrap_or(self.flows.len());
        let (Some((_, way)), true) = (find(&mut self.ways, datagram.to.ip()), place < MOST_FLOWS) else { return };
        if known.is_none() {
            self.flows.push(flow);
        }
        let mut bytes = Vec::with_capacity(datagram.bytes.len() + 1);
        bytes.push(place as u8);
        bytes.extend_from_slice(&datagram.bytes);
        way.send(now, &bytes);
    }

    /// Returns the next datagram that has arrived at `host` by `now`.
    pub(crate) fn receive(&mut self, host: IpAddr, now: Time) -> Option<Arrived> {
        let (at, mut bytes) = find(&mut self.ways, host)?.1.receive(now)?;
        let (from, to) = self.flows[usize::from(bytes.remove(0))];
        Some(Arrived { at, datagram: Datagram { from, to, bytes } })
    }

    /// Returns the time at which the next datagram arrives.
    pub(crate) fn next(&self) -> Option<Time> {
        self.ways.iter().filter_map(|(_, way)| way.next()).min()
    }
}

fn find(ways: &mut [(IpAddr, Netem); 4], host: IpAddr) -> Option<&mut (IpAddr, Netem)> {
    ways.iter_mut().find(|(address, _)| *address == host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_arrives_where_it_was_sent_and_says_from_where() {
        let mut network = Network::new(NetemSpec { delay_ms: 20.0, ..NetemSpec::default() }, Seed(1));
        let media = SocketAddr::new(CALLER.ip(), 20_000);
        let nobody = SocketAddr::new([192, 0, 2, 77].into(), 5060);
        for (from, to, bytes) in
            [(AGENT, CALLER, "a"), (AGENT, media, "b"), (CALLER, nobody, "c"), (CALLER, PROXY, "d")]
        {
            network.send(Time::from_millis(0), &Datagram { from, to, bytes: bytes.into() });
        }
        let mut arrived = |host: SocketAddr, ms| {
            let arrived = network.receive(host.ip(), Time::from_millis(ms))?;
            Some((arrived.at, arrived.datagram.from, arrived.datagram.to, arrived.datagram.bytes))
        };
        let at = Time::from_millis(20);
        assert_eq!(arrived(CALLER, 19), None);
        assert_eq!(arrived(CALLER, 20), Some((at, AGENT, CALLER, b"a".to_vec())));
        assert_eq!(arrived(CALLER, 20), Some((at, AGENT, media, b"b".to_vec())));
        assert_eq!(arrived(PROXY, 20), Some((at, CALLER, PROXY, b"d".to_vec())));
        assert_eq!(arrived(AGENT, 99), None);
    }

    #[test]
    fn datagrams_between_too_many_pairs_of_addresses_are_lost() {
        let mut network = Network::new(NetemSpec::default(), Seed(1));
        for port in 0..MOST_FLOWS as u16 + 10 {
            let from = SocketAddr::new(AGENT.ip(), 1000 + port);
            network.send(Time::default(), &Datagram { from, to: CALLER, bytes: vec![1] });
        }
        let mut count = 0;
        while network.receive(CALLER.ip(), Time::from_millis(1)).is_some() {
            count += 1;
        }
        assert_eq!(count, MOST_FLOWS);
    }
}
