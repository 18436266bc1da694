//! Calls in virtual time: a caller and an agent, each a SIP endpoint and a Call as on real sockets, with a network from
//! a seed between them. Nothing here waits: time goes from one thing that happens to the next. The same [`Sim`] gives
//! the same bytes.
//!
//! Times that real calls take from outside are drawn here: of thinking, of speaking, of the other side's answer. A side
//! hears the other side's own words, as far as they were said by then (`hearing`): turn-taking is real, mishearing is
//! not.
//!
//! A call over a WebSocket has the port of real ones on both sides, and streams of bytes between them in place of the
//! network (`stream`).
//!
//! A [`script::Script`] has the sides and the network do what a conversation does not: early media, hold, re-INVITE,
//! redirects, transfers.

mod hearing;
mod host;
mod network;
mod redirector;
pub mod script;
mod stream;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ringer_media::call::{EndReason, Ending};
use ringer_media::netem::NetemSpec;
use ringer_media::seed::Seed;
use ringer_media::time::Time;
use ringer_provider::Synthesizer;

use self::host::Host;
use self::network::Network;
use self::redirector::Redirector;
use self::script::Script;
use self::stream::Streams;
use super::{Destination, Placement, TimelineEntry};

/// SIP addresses of the two sides, of the proxy and of the target of transfers: from the range for documentation (RFC
/// 5737).
const CALLER: SocketAddr = sip_address(1);
const AGENT: SocketAddr = sip_address(2);
const PROXY: SocketAddr = sip_address(3);
const TARGET: SocketAddr = sip_address(4);

const fn sip_address(last: u8) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, last)), 5060)
}

/// Time for SIP to settle after both calls are over.
const SETTLE: Duration = Duration::from_secs(64);

/// Description of one simulated call.
pub struct Sim {
    /// Seed of all random draws except the sides' own.
    pub seed: Seed,
    /// Each direction of the network.
    pub network: NetemSpec,
    /// The network becomes this one at a time after the INVITE.
    pub then: Option<(Duration, NetemSpec)>,
    /// The calling side: by SIP, or over a WebSocket where that is its destination, and the agent's terms have one.
    /// `folder` is not used: what it would hold is in the report.
    pub caller: Placement,
    /// Called side; its `dial` is not used.
    pub agent: Placement,
    /// Synthesizer of both sides' speech.
    pub synthesizer: Arc<dyn Synthesizer>,
    /// Faults that are injected.
    pub faults: Faults,
    /// No call lasts longer than this after the INVITE.
    pub longest: Duration,
    /// The lines of a script; its settings are the placements' and the network's already.
    pub script: Option<Play>,
}

/// A script, and whoever it needs beside the two sides.
pub struct Play {
    /// The script that is played.
    pub script: Script,
    /// The target of transfers, where the script has one; it is called as the agent is.
    pub target: Option<Placement>,
}

/// Faults injected into a simulated call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faults {
    /// The caller hangs up by order of the API after so long.
    pub caller_hangs_up: Option<Duration>,
    /// The agent hangs up after so long.
    pub agent_hangs_up: Option<Duration>,
    /// Time from which nothing arrives any more, in either direction.
    pub network_dies: Option<Duration>,
    /// Share of thoughts, words and recognitions that fail, 0 to 1.
    pub failures: f64,
}

/// Outcome of a simulated call.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Caller's side of the call.
    pub caller: Side,
    /// The agent's side; its recording has itself on the left.
    pub agent: Side,
    /// The side of the target of transfers, where there is one.
    pub target: Option<Side>,
}

/// One side of a simulated call.
#[derive(Clone, Debug, PartialEq)]
pub struct Side {
    /// Ending of the call; `None` for an agent that was never reached.
    pub ending: Option<Ending>,
    /// Every event, in order of `sample`, then `seq`.
    pub timeline: Vec<TimelineEntry>,
    /// The recording as a WAV file; empty when never connected.
    pub recording: Vec<u8>,
    /// SIP messages, or lines of the log of a WebSocket, with their virtual milliseconds.
    pub sip_log: String,
    /// True if the call went over a WebSocket.
    pub is_socket: bool,
    /// Broken invariants of the engine; empty if it is right.
    pub violations: Vec<String>,
    /// Audio that came before the answer, at 16 kHz.
    pub early: Vec<i16>,
    /// Time of sample 0 after the INVITE; of the end, where the call was never connected.
    pub zero: Duration,
    /// Packets of media that were sent, in a call with a script.
    pub sent_rtp: Vec<SentRtp>,
    /// Warnings for the user of the result.
    pub warnings: Vec<String>,
}

/// A packet of media that a side sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct SentRtp {
    /// Time of sending, after the INVITE.
    pub after_invite: Duration,
    /// Address that it was sent to.
    pub to: SocketAddr,
    /// Payload type of the RTP header.
    pub payload_type: u8,
    /// Number of bytes behind the RTP header.
    pub payload_bytes: usize,
}

/// Runs the call to its end.
///
/// # Errors
/// A target that is no SIP address, or no runtime for the minds.
pub fn run(sim: Sim) -> Result<Outcome, String> {
    World::new(sim)?.run()
}

/// Runs the call to its end; both sides hear words with capitals and punctuation, which tell where sentences end.
///
/// # Errors
/// See [`run`].
pub fn run_punctuated(sim: Sim) -> Result<Outcome, String> {
    let mut world = World::new(sim)?;
    world.hosts.iter_mut().for_each(Host::hear_punctuation);
    world.run()
}

struct World {
    /// The caller, the agent, the target of transfers.
    hosts: Vec<Host>,
    proxy: Option<Redirector>,
    network: Network,
    streams: Streams,
    then: Option<(Time, NetemSpec)>,
    dies: Option<Time>,
    /// Beginnings of SIP messages that are lost, with the number of losses left.
    lost: Vec<(String, u16)>,
    longest: Time,
}

/// One past the INVITE: virtual time begins here, so that durations before it cannot go below zero.
const START: Time = Time::from_millis(1000);

impl World {
    fn new(sim: Sim) -> Result<World, String> {
        let delay = Duration::from_nanos((sim.network.delay_ms * 1e6) as u64);
        let is_socket = matches!(sim.caller.destination, Destination::WebSocket(_));
        let (script, target) = sim.script.map_or((None, None), |play| (Some(play.script), play.target));
        let is_scripted = script.is_some();
        let manners =
            script.as_ref().map(|script| [script.caller.clone(), script.agent.clone(), script.target.clone()]);
        let [of_caller_side, of_agent_side, of_target_side] = manners.unwrap_or_default();
        let lookup = script.as_ref().map(|script| script.lookup).unwrap_or_default();
        let lost = script.as_ref().map(|script| script.lost.clone()).unwrap_or_default();
        let by_proxy = script.as_ref().is_some_and(|script| script.by_proxy);
        let forwarding = of_caller_side.forwarding.clone();
        let mut actions = script.map(|script| script.actions).unwrap_or_default();
        let actions_of = |who: usize| is_scripted.then(|| std::mem::take(&mut actions[who]));
        let [of_caller, of_agent, of_proxy, of_target] =
            [script::CALLER, script::AGENT, script::PROXY, script::TARGET].map(actions_of);
        let new = |address, placement, name: &str, hangs_up: Option<Duration>, actions, manner| {
            Host::new(host::Setup {
                address,
                placement,
                synthesizer: sim.synthesizer.clone(),
                seed: Seed::of(&format!("{}:{name}", sim.seed.0)),
                failures: sim.faults.failures,
                hangs_up: hangs_up.map(|after| START + after),
                delay,
                actions,
                manner,
                lookup,
                forwarding: forwarding.clone(),
            })
        };
        let mut caller = new(CALLER, sim.caller, "caller", sim.faults.caller_hangs_up, of_caller, of_caller_side)?;
        let agent = new(AGENT, sim.agent, "agent", sim.faults.agent_hangs_up, of_agent, of_agent_side)?;
        let proxy = of_proxy.filter(|actions| !actions.is_empty());
        let proxy = proxy.map(|actions| Redirector::new(PROXY, Seed::of(&format!("{}:proxy", sim.seed.0)), actions));
        let target = target.map(|target| new(TARGET, target, "target", None, of_target, of_target_side)).transpose()?;
        match is_socket {
            true => caller.dial_socket(START),
            false => caller.dial(START, if by_proxy { PROXY } else { AGENT })?,
        }
        Ok(World {
            hosts: [caller, agent].into_iter().chain(target).collect(),
            proxy,
            network: Network::new(sim.network, sim.seed),
            streams: Streams::new(sim.network, sim.seed),
            then: sim.then.map(|(after, spec)| (START + after, spec)),
            dies: sim.faults.network_dies.map(|after| START + after),
            longest: START + sim.longest,
            lost,
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
        let mut sides = self.hosts.into_iter().map(Host::finish);
        let (Some(caller), Some(agent)) = (sides.next(), sides.next()) else { return Err("a side is missing".into()) };
        Ok(Outcome { caller, agent, target: sides.next() })
    }

    /// Returns the time of the next event in the simulation.
    fn next(&self) -> Option<Time> {
        let hosts = self.hosts.iter().filter_map(Host::next);
        hosts
            .chain(self.network.next())
            .chain(self.streams.next())
            .chain(self.proxy.as_ref().and_then(Redirector::next))
            .min()
    }

    fn step(&mut self, now: Time) {
        if let Some((_, spec)) = self.then.take_if(|(at, _)| now >= *at) {
            self.network.change(spec);
            self.streams.change(spec);
        }
        for (address, host) in [CALLER, AGENT, TARGET].into_iter().zip(&mut self.hosts) {
            while let Some(arrived) = self.network.receive(address.ip(), now) {
                host.receive(&arrived);
            }
        }
        for (is_caller, host) in [true, false].into_iter().zip(&mut self.hosts) {
            while let Some((at, parcel)) = self.streams.receive(is_caller, now) {
                host.receive_parcel(at, parcel);
            }
        }
        if let Some(proxy) = &mut self.proxy {
            while let Some(arrived) = self.network.receive(PROXY.ip(), now) {
                proxy.receive(&arrived);
            }
            proxy.act(now);
        }
        if let [caller, called @ ..] = &mut self.hosts[..] {
            // Whoever was connected last is who the caller hears.
            let heard = called.iter().rfind(|host| host.is_connected()).or(called.first());
            caller.act(now, heard.map(Host::utterances).unwrap_or_default());
            called.iter_mut().for_each(|host| host.act(now, caller.utterances()));
        }
        self.exchange(now);
    }

    /// Hands what the hosts sent to the network.
    fn exchange(&mut self, now: Time) {
        let dead = self.dies.is_some_and(|at| now >= at);
        for (is_to_caller, host) in [false, true].into_iter().zip(&mut self.hosts) {
            for parcel in host.take_parcels().into_iter().filter(|_| !dead) {
                self.streams.send(now, is_to_caller, parcel);
            }
        }
        let hosts = self.hosts.iter_mut().flat_map(Host::drain_sent);
        let sent = hosts.chain(self.proxy.iter_mut().flat_map(Redirector::take_sent));
        for datagram in sent.filter(|_| !dead) {
            let starts = |(start, left): &&mut (String, u16)| *left > 0 && datagram.bytes.starts_with(start.as_bytes());
            if let Some((_, left)) = self.lost.iter_mut().find(starts) {
                *left -= 1;
                continue;
            }
            self.network.send(now, &datagram);
        }
    }
}
