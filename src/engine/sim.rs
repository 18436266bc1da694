//! Calls in virtual time: a caller and an agent, each a SIP endpoint and a Call as on real sockets, with a network from a seed
//! between them. Nothing here waits: time goes from one thing that happens to the next. The same [`Sim`] gives the same bytes.
//!
//! What real calls take from the outside is drawn here: how long thinking and speaking take, when the other side answers. What
//! a side hears is told by the other side's own words, as far as they were said by then (`hearing`): turn-taking is real, mishearing
//! is not.

mod hearing;
mod host;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ringer_media::call::{EndReason, Ending};
use ringer_media::netem::{Netem, NetemSpec};
use ringer_media::seed::Seed;
use ringer_media::time::Time;

use self::host::Host;
use super::{Placement, TimelineEntry};
use crate::provider::Synthesizer;

/// Addresses of the two sides: from the range for documentation (RFC 5737).
const CALLER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 5060);
const AGENT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2)), 5060);

/// How long SIP may take to settle after both calls are over.
const SETTLE: Duration = Duration::from_secs(64);

/// What one simulated call is.
pub struct Sim {
    /// Of everything that is drawn but the sides' own draws.
    pub seed: Seed,
    /// Each direction of the network.
    pub network: NetemSpec,
    /// The network becomes this one at a time after the INVITE.
    pub then: Option<(Duration, NetemSpec)>,
    /// Who calls. `folder` is not used: what it would hold is in the report.
    pub caller: Placement,
    /// Who is called. `dial` is not used.
    pub agent: Placement,
    /// What both sides speak with.
    pub synthesizer: Arc<dyn Synthesizer>,
    /// What goes wrong.
    pub faults: Faults,
    /// No call lasts longer than this after the INVITE.
    pub longest: Duration,
}

/// What goes wrong in a simulated call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// The caller hangs up by order of the API after so long.
    pub caller_hangs_up: Option<Duration>,
    /// The agent hangs up after so long.
    pub agent_hangs_up: Option<Duration>,
    /// From here on nothing arrives any more, in either direction.
    pub network_dies: Option<Duration>,
    /// Share of thoughts, words and recognitions that fail, 0 to 1.
    pub failures: f64,
}

/// What became of a simulated call.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The caller's side.
    pub caller: Side,
    /// The agent's side; its recording has itself on the left.
    pub agent: Side,
}

/// One side of a simulated call.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// How it ended; `None` for an agent that was never reached.
    pub ending: Option<Ending>,
    /// Every event, in order of `sample`, then `seq`.
    pub timeline: Vec<TimelineEntry>,
    /// The recording as a WAV file; empty when never connected.
    pub recording: Vec<u8>,
    /// SIP messages with their virtual milliseconds.
    pub sip_log: String,
    /// What has to hold for every call; empty unless the engine is wrong.
    pub violations: Vec<String>,
}

/// Runs the call to its end.
///
/// # Errors
/// A target that is no SIP address, or no runtime for the minds.
pub fn run(sim: Sim) -> Result<Outcome, String> {
    World::new(sim)?.run()
}

struct World {
    hosts: [Host; 2],
    /// To the host of the same index.
    wires: [Netem; 2],
    then: Option<(Time, NetemSpec)>,
    dies: Option<Time>,
    longest: Time,
}

/// One past the INVITE: virtual time begins here, so that durations before it cannot go below zero.
const START: Time = Time::from_millis(1000);

impl World {
    fn new(sim: Sim) -> Result<World, String> {
        let wire = |name: &str| Netem::new(sim.network, sim.seed.stream(name));
        let wires = [wire("network to caller"), wire("network to agent")];
        let delay = Duration::from_nanos((sim.network.delay_ms * 1e6) as u64);
        let new = |address, placement, name: &str, hangs_up: Option<Duration>| {
            Host::new(host::Setup {
                address,
                placement,
                synthesizer: sim.synthesizer.clone(),
                seed: Seed::of(&format!("{}:{name}", sim.seed.0)),
                failures: sim.faults.failures,
                hangs_up: hangs_up.map(|after| START + after),
                delay,
            })
        };
        let mut caller = new(CALLER, sim.caller, "caller", sim.faults.caller_hangs_up)?;
        let agent = new(AGENT, sim.agent, "agent", sim.faults.agent_hangs_up)?;
        caller.dial(START, AGENT)?;
        Ok(World {
            hosts: [caller, agent],
            wires,
            then: sim.then.map(|(after, spec)| (START + after, spec)),
            dies: sim.faults.network_dies.map(|after| START + after),
            longest: START + sim.longest,
        })
    }

    fn run(mut self) -> Result<Outcome, String> {
        let mut now = START;
        self.exchange(now);
        let mut stop_at = None;
        while let Some(next) = self.next() {
            now = now.max(next);
            if now >= self.longest {
                self.hosts.iter_mut().for_each(|host| host.hang_up(now, EndReason::Shutdown));
                self.longest = Time(u64::MAX);
            }
            if self.hosts.iter().all(Host::is_over) && now > *stop_at.get_or_insert(now + SETTLE) {
                break;
            }
            self.step(now);
        }
        let [caller, agent] = self.hosts;
        Ok(Outcome { caller: caller.finish(), agent: agent.finish() })
    }

    /// When something happens next.
    fn next(&self) -> Option<Time> {
        let wires = self.wires.iter().filter_map(Netem::next);
        wires.chain(self.hosts.iter().filter_map(Host::next)).min()
    }

    fn step(&mut self, now: Time) {
        if let Some((_, spec)) = self.then.take_if(|(at, _)| now >= *at) {
            self.wires.iter_mut().for_each(|wire| wire.change(spec));
        }
        for (wire, host) in self.wires.iter_mut().zip(&mut self.hosts) {
            while let Some((arrived, bytes)) = wire.receive(now) {
                host.receive(arrived, &bytes);
            }
        }
        let [caller, agent] = &mut self.hosts;
        caller.act(now, agent.said());
        agent.act(now, caller.said());
        self.exchange(now);
    }

    /// Hands what the hosts sent to the network.
    fn exchange(&mut self, now: Time) {
        let dead = self.dies.is_some_and(|at| now >= at);
        for from in 0..2 {
            for datagram in self.hosts[from].sent() {
                if !dead {
                    self.wires[1 - from].send(now, &datagram);
                }
            }
        }
    }
}
