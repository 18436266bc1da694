//! Calls to the sample agent, a process of its own: speech both ways, keys, and who gives way to whom. Nobody
//! recognises words on the caller's side, and the agent goes through its flow all the same.

use std::path::Path;
use std::sync::Arc;

use ringer::engine::{CallReport, CallUpdate, Destination, Placement, SipDial, Speech};
use ringer::human::{self, Profile};
use ringer::provider::fake::FakeRecognizer;
use ringer::provider::speech::EmbeddedSpeech;
use ringer::provider::{Synthesizer, VoiceWanted};
use ringer_media::call::{CallSpec, EndReason, Interruption, TurnRules};
use ringer_media::clip::Clip;
use ringer_media::codec::Codec;
use ringer_media::measure::segments;
use ringer_media::seed::Seed;
use serde_json::Value;
use tempfile::TempDir;
use tokio::time::timeout;

use super::local;
use crate::peers::Peer;
use crate::program::{PATIENCE, Program, ringer};

/// Ports for the agent's media.
const AGENT_PORTS: &str = "37500-37999";
/// The id that the caller gives its call.
const RESULT: &str = "4711";

/// The agent's process. Killed with the test.
pub(super) struct Agent {
    program: Program,
    pub address: String,
    folder: TempDir,
}

impl Agent {
    /// Answers one call and then ends by itself.
    pub(super) async fn start() -> Agent {
        Agent::heard_at("127.0.0.1:0").await
    }

    /// Returns the same at this address.
    pub(super) async fn heard_at(listen: &str) -> Agent {
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        let mut command = ringer(&["agent", "--listen", listen, "--once", "1", "--rtp-ports", AGENT_PORTS]);
        let mut program = Program::start(command.arg("--log").arg(folder.path().join("log")));
        let address = program.address("sip:").await;
        Agent { program, address, folder }
    }

    /// Returns the agent's log, once it has ended.
    pub(super) async fn log(mut self) -> Vec<Value> {
        let status = self.program.wait_for_end().await;
        assert!(status.success(), "{status}");
        let text = std::fs::read_to_string(self.folder.path().join("log")).expect("it wrote a log");
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_caller_that_makes_no_offer_is_offered_one_and_hears_the_agent() {
    let agent = Agent::start().await;
    let to = agent.address.rsplit('@').next().and_then(|host| host.parse().ok()).expect("an address with a port");
    let media = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    media.set_read_timeout(Some(PATIENCE)).expect("the time is not zero");
    let caller = Peer::calling("caller_without_offer", to, "", media.local_addr().expect("it is bound").port());
    let mut packet = [0; 1500];
    let length = media.recv(&mut packet).expect("RTP comes");
    assert_eq!((length, packet[0] >> 6, packet[1] & 0x7f), (172, 2, 0), "20 ms of PCMU in RTP");
    assert_eq!(caller.end().trim(), "answered");
    let log = agent.log().await;
    assert!(!log.is_empty(), "the agent took the call");
}

/// Calls the agent and gives what both sides know of it; `folder` holds the recording.
async fn call(folder: &Path, intent: &str, spec: CallSpec) -> (CallReport, Vec<Value>) {
    let agent = Agent::start().await;
    let synthesizer = Arc::new(EmbeddedSpeech::new().expect("flite is installed"));
    let recognizer = Arc::new(FakeRecognizer::new(&[], 0));
    let speech = Speech { synthesizer: synthesizer.clone(), recognizer };
    let (engine, _incoming) = local::engine(37_000..=37_499, 1, speech).await;
    let wanted = VoiceWanted { gender: Some("male".into()), seed: spec.seed, ..VoiceWanted::of("en") };
    let profile = Profile { intent: intent.into(), ..Profile::default() };
    let placement = Placement {
        id: RESULT.into(),
        destination: Destination::Sip(SipDial {
            target: agent.address.clone(),
            codecs: vec![Codec::G722],
            headers: vec![("X-Simulation-Result-Id".into(), RESULT.into())],
            ..SipDial::default()
        }),
        fluency: profile.fluency(spec.seed),
        language: "en".into(),
        mind: human::mind(profile, None, spec.seed),
        voice: Some(synthesizer.voice(&wanted).expect("there is an English voice")),
        follows: None,
        keyterms: Vec::new(),
        folder: Some(folder.to_owned()),
        captured: false,
        spec,
    };
    let mut handle = engine.place(placement).await.expect("it was placed");
    let ended = async {
        loop {
            match handle.news.recv().await {
                Some(CallUpdate::Ended(report)) => return *report,
                Some(_) => {}
                None => panic!("the call was lost"),
            }
        }
    };
    let report = timeout(PATIENCE, ended).await.expect("the call ends");
    engine.stop().await;
    (report, agent.log().await)
}

fn spec() -> CallSpec {
    let turn = TurnRules { endpointing_delay_ms: 1000, ..TurnRules::default() };
    CallSpec { seed: Seed(7), turn, ..CallSpec::default() }
}

/// Returns the texts of the agent's own utterances as far as they were said, and whether each was cut off.
fn utterances(log: &[Value]) -> Vec<(&str, bool)> {
    let own = log.iter().filter(|line| line["event"] == "speech.ended" && line["side"] == "agent");
    own.map(|line| (line["data"]["text"].as_str().unwrap_or_default(), line["data"]["interrupted"] == true)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_booking_goes_through() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let intent = "I would like to see a doctor. The third of March. Yes, that is good.";
    let (report, log) = call(folder.path(), intent, spec()).await;

    assert_eq!(report.ending.reason, EndReason::AgentHangup, "{:?}", utterances(&log));
    assert_eq!(report.peer.codec, Some("G722"));
    let agent = utterances(&log);
    for (at, words) in ["Thank you for calling", "date of birth", "Tuesday at nine", "booked"].iter().enumerate() {
        assert!(agent.get(at).is_some_and(|(text, _)| text.contains(words)), "{words}: {agent:?}");
    }
    assert!(log.iter().all(|line| line["result_id"] == RESULT && line["call_id"] == report.peer.call_id.as_str()));
    let answers = log.iter().filter(|line| line["event"] == "turn.latency");
    let latencies: Vec<f64> = answers.filter_map(|line| line["data"]["latency_ms"].as_f64()).collect();
    assert_eq!(latencies.len(), 3, "{latencies:?}");
    assert!(latencies.iter().all(|latency| *latency >= 699.0), "it never answers early: {latencies:?}");
    let file = std::fs::read(report.recording.expect("it was recorded")).expect("it is there");
    let samples: Vec<i16> = file[ringer_media::recording::WAV_HEADER..]
        .chunks_exact(2)
        .map(|pair| i16::from_le_bytes([pair[0], pair[1]]))
        .collect();
    assert!(Clip::from_wav(&file).is_ok(), "the header is readable");
    for channel in [0, 1] {
        let pcm: Vec<i16> = samples.iter().skip(channel).step_by(2).copied().collect();
        let speech: i64 = segments(&pcm).into_iter().map(|span| span.length()).sum();
        assert!(speech > 32_000, "channel {channel} carries {speech} samples of speech");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_arrive_exactly_and_in_order() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let spec = CallSpec { extension: Some(",1,,,,,4711".into()), ..spec() };
    let (report, log) = call(folder.path(), "Yes, that is right.", spec).await;

    let keys: String = log
        .iter()
        .filter(|line| line["event"] == "dtmf_received")
        .filter_map(|line| line["data"]["digits"].as_str())
        .collect();
    assert_eq!(keys, "14711", "{:?}", report.ending);
    let agent = utterances(&log);
    assert!(agent[0].1, "the first key stops the greeting: {agent:?}");
    assert!(agent.iter().any(|(text, _)| text.contains("4, 7, 1, 1")), "{agent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_gives_way_when_it_is_cut_in_on() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let interruption =
        Interruption::Level { name: "level", probability: 1.0, from_ms: 1500, to_ms: 1600, at_most: Some(1) };
    let (report, log) =
        call(folder.path(), "I would like to see a doctor. Yes.", CallSpec { interruption, ..spec() }).await;

    let cuts = report.timeline.iter().filter(|entry| entry.name() == "barge_in" && entry.data()["by"] == "dh");
    let stops: Vec<Option<i64>> = cuts.map(|entry| entry.data()["stop_ms"].as_i64()).collect();
    assert!(matches!(stops[..], [Some(stop)] if stop <= 400), "{stops:?}");
    assert!(
        utterances(&log).iter().any(|(text, cut)| *cut && "Yes, I can help you.".starts_with(text)),
        "{:?}",
        utterances(&log)
    );
}
