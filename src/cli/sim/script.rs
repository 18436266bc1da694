//! Calls as a script tells them: the sides with the manner that its settings ask for.

use std::io::Read as _;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use ringer_media::call::{CallSpec, Opening};
use ringer_media::codec::Codec;
use ringer_media::netem::{Loss, NetemSpec};
use ringer_media::seed::Seed;

use super::placement;
use super::websocket::over_websocket;
use crate::agent;
use crate::engine::Placement;
use crate::engine::sim::script::{MOST_BYTES, Manner, Script};
use crate::engine::sim::{Faults, Play, Sim};
use crate::human::{Profile, Step};
use crate::provider::canned::Canned;
use crate::provider::guard::Guard;

/// Intent of a caller that is given no words.
const INTENT: &str = "I would like to make an appointment. In the morning, please.";
/// Longer than any script, in milliseconds.
const NEVER_MS: u32 = 3_600_000;

/// Reads and parses a script.
///
/// # Errors
/// For a person: the file, and the line where there is one.
pub fn load(path: &Path) -> Result<Script, String> {
    let name = path.display().to_string();
    let mut text = String::new();
    let file = std::fs::File::open(path).map_err(|error| format!("{name}: {error}"))?;
    file.take(MOST_BYTES as u64 + 1).read_to_string(&mut text).map_err(|error| format!("{name}: {error}"))?;
    Script::parse(&name, &text)
}

/// Returns the call that `script` tells of.
pub fn call(script: Script, seed: u64, voices: &Arc<Canned>) -> Sim {
    let seed = Seed(seed);
    let intent = script.caller.says.as_deref().unwrap_or(INTENT).to_owned();
    let playback = if script.caller.is_quiet { vec![Step::SilenceMs(NEVER_MS)] } else { Vec::new() };
    let spec = CallSpec { seed, opening: Opening::Listen { open_after_ms: Some(10_000) }, ..CallSpec::default() };
    let profile = Profile { intent, playback, ..Profile::default() };
    let caller = placement(seed, spec, profile, vec![Codec::Pcmu]);
    let desk = || agent::placement("sim".into(), seed, Canned::voice_named("agent"), Codec::ALL.to_vec());
    let target = script.has_target.then(|| with_manner(desk(), &script.target, false, &script.names));
    let websocket = script.websocket.clone();
    let loss = if script.loss > 0.0 { Loss::Independent(script.loss) } else { Loss::None };
    let sim = Sim {
        seed,
        network: NetemSpec { delay_ms: script.delay_ms, jitter_ms: script.jitter_ms, loss, ..NetemSpec::default() },
        then: None,
        caller: with_manner(caller, &script.caller, script.caller_holds(), &script.names),
        agent: with_manner(desk(), &script.agent, script.agent_holds(), &script.names),
        synthesizer: voices.clone(),
        faults: Faults { network_dies: script.network_dies, ..Faults::default() },
        longest: script.until,
        script: Some(Play { script, target }),
    };
    match websocket {
        Some(dialect) => over_websocket(sim, &dialect),
        None => sim,
    }
}

fn with_manner(mut placement: Placement, manner: &Manner, holds: bool, names: &[(String, IpAddr)]) -> Placement {
    let spec = &mut placement.spec;
    if let Some(words) = &manner.says {
        spec.opening = Opening::Say(words.clone());
    }
    if manner.is_quiet {
        spec.opening = Opening::Listen { open_after_ms: None };
        spec.turn.silence_timeout_ms = NEVER_MS;
    }
    spec.turn.yield_to_claims &= !manner.ignores_claims;
    if let Some(patience) = manner.patience {
        spec.limits.ringing_ms = patience.as_millis() as u32;
    }
    if let Some(timeout) = manner.media_timeout {
        spec.limits.media_timeout_ms = timeout.as_millis() as u32;
    }
    // A side that is on hold sends nothing, and the one that holds it need not wait.
    if holds {
        spec.limits.media_timeout_ms = NEVER_MS;
    }
    if !manner.codecs.is_empty() {
        placement.destination.set_codecs(manner.codecs.clone());
    }
    let allowed = manner.allows.clone();
    let guard = Guard::by(move |address| allowed.as_ref().is_none_or(|allowed| allowed.contains(&address)));
    // Nothing outside is asked: in virtual time names have the addresses that the script gives them.
    let names = names.to_vec();
    let look_up = move |host: String| {
        names.iter().filter(|(name, _)| *name == host).map(|(_, address)| *address).collect::<Vec<_>>()
    };
    let guard = guard.with_names(move |host| {
        let found = look_up(host);
        Box::pin(async { Ok(found) })
    });
    placement.destination.set_guard(guard);
    if let Some(dial) = placement.destination.sip() {
        dial.headers.extend(manner.headers.iter().cloned());
    }
    placement
}
