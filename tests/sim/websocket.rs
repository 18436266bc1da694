//! Calls over a WebSocket in virtual time: every protocol, whatever the network does to a stream and whatever goes
//! wrong.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use ringer::cli::sim::drawn::{faulty, plain};
use ringer::cli::sim::websocket::over_websocket;
use ringer::engine::noise::NoiseBeds;
use ringer::engine::sim::{self, Outcome, Sim};
use ringer::provider::canned::Canned;
use ringer::transport::websocket::{Dialect, Kind};
use ringer_media::netem::{Loss, NetemSpec};

use super::{broken, run};
use crate::program::{PATIENCE, ringer};

/// Seeds of calls in which something goes wrong.
const SEEDS: u64 = 60;

fn every_kind() -> impl Iterator<Item = Kind> + Clone {
    std::iter::once(Kind::Default).chain(Kind::DIALECTS)
}

fn network(loss: f64, jitter_ms: f64) -> NetemSpec {
    let loss = if loss > 0.0 { Loss::Independent(loss) } else { Loss::None };
    NetemSpec { delay_ms: 30.0, jitter_ms, loss, ..NetemSpec::default() }
}

/// Runs the plain call of `seed` over a WebSocket.
fn call(seed: u64, kind: Kind, network: NetemSpec) -> Outcome {
    let sim = Sim { network, then: None, ..plain(seed, &Arc::new(Canned::default())) };
    run(seed, over_websocket(sim, &Dialect::new(kind)))
}

fn count(outcome: &Outcome, event: &str) -> usize {
    outcome.caller.timeline.iter().filter(|entry| entry.name() == event).count()
}

#[test]
fn a_whole_conversation_goes_over_every_protocol() {
    for kind in every_kind() {
        let outcome = call(5, kind, network(0.0, 0.0));
        assert_eq!(broken(5, &outcome), Vec::<String>::new(), "{kind:?}");
        let ending = outcome.caller.ending.as_ref().expect("it ended");
        assert!(ending.connected && ending.other_spoke, "{kind:?} {ending:?}");
        assert!(count(&outcome, "turn.ended") >= 3 && count(&outcome, "speech.started") >= 6, "{kind:?}");
        assert_eq!(count(&outcome, "dialect_violation"), 0, "{kind:?}");
        let heard = |text: &str| {
            let mut texts = outcome.caller.timeline.iter().filter(|entry| entry.name() == "turn.ended");
            texts.any(|entry| entry.data()["text"].as_str().is_some_and(|found| found.contains(text)))
        };
        assert!(heard("press one for appointments"), "{kind:?} {:?}", outcome.caller.timeline);
        assert!(outcome.caller.is_socket && outcome.caller.sip_log.contains(" > GET ws://"), "{kind:?}");
        assert!(outcome.caller.sent_rtp.is_empty(), "{kind:?}");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes_over_every_protocol() {
    for (seed, kind) in (20..).zip(every_kind()) {
        let once = || call(seed, kind, network(0.02, 40.0));
        let first = once();
        assert!(first == once(), "{kind:?}: two runs differ");
        assert!(first != call(seed + 100, kind, network(0.02, 40.0)), "{kind:?}: the seed counts");
    }
}

#[test]
fn losses_of_a_stream_are_delays_and_nothing_of_it_is_missing() {
    // Every frame that a side has sent arrives, in order; both count the same but what is on its way at the end.
    for seed in 1..6 {
        let outcome = call(seed, Kind::Default, network(0.05, 60.0));
        assert_eq!(broken(seed, &outcome), Vec::<String>::new());
        let counted = |log: &str, sign: char| -> u64 {
            let amount =
                |line: &str| line.split_once(&format!("{sign} audio: "))?.1.split(' ').next()?.parse::<u64>().ok();
            log.lines().filter_map(amount).sum()
        };
        let (sent, received) = (counted(&outcome.agent.sip_log, '>'), counted(&outcome.caller.sip_log, '<'));
        assert!(received > 1000 && received <= sent && sent - received < 100, "seed {seed}: {received} of {sent}");
    }
    // Numbered messages tell that nothing was overtaken.
    for kind in [Kind::TwilioMediaStreams, Kind::Audiohook, Kind::TelnyxMediaStreaming] {
        let outcome = call(3, kind, network(0.05, 60.0));
        let is_violation = |entry: &ringer::engine::TimelineEntry| entry.name() == "dialect_violation";
        let sides = [&outcome.caller, &outcome.agent];
        assert!(!sides.iter().any(|side| side.timeline.iter().any(is_violation)), "{kind:?}");
    }
}

#[test]
fn whatever_goes_wrong_a_call_over_a_websocket_keeps_the_rules() {
    let (voices, beds) = (Arc::new(Canned::default()), NoiseBeds::new(None));
    let (mut reasons, mut wrong) = (BTreeSet::new(), Vec::new());
    for (seed, kind) in (20_000..20_000 + SEEDS).zip(every_kind().cycle()) {
        let outcome = run(seed, over_websocket(faulty(seed, &voices, &beds), &Dialect::new(kind)));
        wrong.extend(broken(seed, &outcome).into_iter().map(|why| format!("{kind:?} {why}")));
        reasons.extend(outcome.caller.ending.as_ref().map(|ending| ending.reason.as_str()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(reasons.len() >= 5, "{reasons:?}");
}

#[test]
fn a_script_names_what_a_websocket_cannot_do() {
    let check = |text: &str, expect: &str| {
        let why = sim::script::Script::parse("t.txt", text).expect_err(text);
        assert_eq!(why, format!("t.txt:{expect}"), "{text}");
    };
    check("websocket sip", "1: Unknown websocket_dialect 'sip'");
    check("websocket '{'", "1: the dialect is no JSON: EOF while parsing an object at line 1 column 1");
    check("1 agent clears", "1: a call by SIP has no such thing: the line websocket has to stand before it");
    for line in
        ["1 agent rings", "1 agent holds", "1 agent answers port 20000", "1 proxy redirects 302", "1 target answers"]
    {
        check(&format!("websocket\n{line}"), "2: there is no such thing in a call over a WebSocket");
    }
    check("1 agent hangs_up\nwebsocket", "2: websocket has to stand before the timed lines");
    check("websocket\n1 caller clears", "2: this side cannot do that");
    check(
        "websocket\n1 agent closes 99",
        "2: \"99\" is not the close code: it must be a whole number from 1000 to 4999",
    );
    check("websocket\n1 agent plays 1", "2: \"1\" is not the milliseconds: it must be a number from 20 to 120000");
    check("websocket\n1 agent sends 'x", "2: a quotation mark is not closed");
    check("expect caller message lost x", "1: \"lost\" is not the direction: it must be one of sent, received");
}

/// Runs `ringer sim` and returns its exit code with what it wrote.
async fn command(args: &[&str]) -> (Option<i32>, String, String) {
    let output = tokio::time::timeout(PATIENCE, ringer(&["sim"]).args(args).output()).await;
    let output = output.expect("in time").expect("it was built");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test]
async fn the_command_calls_over_a_websocket() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let out = folder.path().join("out");
    let kept = out.to_str().expect("text");
    let check = |side: &Path| {
        for file in ["recording.wav", "timeline.json", "websocket.log"] {
            assert!(side.join(file).exists(), "{file}");
        }
        assert!(!side.join("sip.log").exists());
    };
    for (args, seed) in [(&["--websocket"][..], "3"), (&["--websocket", "vonage_websocket"], "4")] {
        let more = ["--seed", seed, "--twice", "--out", kept];
        let (code, stdout, stderr) = command(&[args, &more].concat()).await;
        assert_eq!((code, stderr.as_str()), (Some(0), ""), "{stdout}");
        assert!(stdout.starts_with(&format!("seed {seed}: ")), "{stdout}");
        ["caller", "agent"].iter().for_each(|side| check(&out.join(seed).join(side)));
    }
    let (code, _, stderr) = command(&["--websocket", "sip"]).await;
    assert!(code == Some(2) && stderr.contains("it must be one of default, twilio_media_streams"), "{code:?} {stderr}");
    for other in [&["--codec", "PCMU"][..], &["--script", "x.txt"]] {
        let (code, _, stderr) = command(&[&["--websocket"], other].concat()).await;
        assert!(code == Some(2) && stderr.contains("cannot be used with"), "{code:?} {stderr}");
    }
}
