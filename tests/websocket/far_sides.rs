//! The sample agent in the place of each platform: calls by the presets, over sockets.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::sync::Arc;

use futures_util::future::join_all;
use ringer::agent::{Desk, Ways, platform};
use ringer::clock::Clock;
use ringer::config::{AdapterTable, Secret};
use ringer::engine::{CallReport, Destination, Engine, Speech, WebSocketDial};
use ringer::provider::fake::FakeRecognizer;
use ringer::provider::guard::Guard;
use ringer::provider::speech::EmbeddedSpeech;
use ringer::provider::{Synthesizer, Voice, VoiceWanted};
use ringer::service::{self, PlatformLine};
use ringer::tasks::Tasks;
use ringer::transport::incoming::Incoming;
use ringer::transport::websocket::platform::far::FarSide;
use ringer_media::call::{ChannelEvent, EventKind, TimedBargeIn};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use crate::calls::local;
use crate::calls::stage::{Stage, wait_for_end};
use crate::program::{PATIENCE, Program, ringer};

pub(super) const KEY: &str = "sesame-4";

/// A sample agent that stands in for all platforms.
pub(super) struct Platforms {
    desk: Arc<Desk>,
    pub addresses: Vec<(&'static str, SocketAddr)>,
    tasks: Tasks,
}

impl Platforms {
    pub(super) async fn start() -> Platforms {
        let (engine, voice, incoming) = speaking(38_700..=38_749).await;
        let (tasks, mut addresses) = (Tasks::new(), Vec::new());
        let (calls, receiver) = platform::channel();
        for name in FarSide::names() {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
            addresses.push((name, listener.local_addr().expect("it is bound")));
            let side = FarSide::of(name).expect("it has one");
            platform::listen(listener, &tasks, side, Some(Secret::new(KEY.to_owned())), calls.clone());
        }
        let desk = Desk::new(engine, voice, None, Vec::new(), None);
        let served = desk.clone();
        let ways = Ways { platform: Some(receiver), ..Ways::default() };
        tasks.spawn_until_stop("desk", async move { served.serve(incoming, ways, None).await });
        Platforms { desk, addresses, tasks }
    }

    pub(super) async fn stop(self) {
        self.desk.stop().await;
        self.tasks.stop().await;
    }
}

/// A suite names the agent on its platform and the key for it, by their names in the API.
#[tokio::test(flavor = "multi_thread")]
async fn a_suite_calls_an_agent_on_its_platform_with_its_key() {
    let platforms = Platforms::start().await;
    let (_, address) = platforms.addresses.iter().find(|(name, _)| *name == "openai_realtime").expect("it is there");
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let settings = format!("[adapters.P4]\npreset = 'openai_realtime'\nurl = 'ws://{address}/v1/realtime'\n");
    std::fs::write(folder.path().join("ringer.toml"), settings).expect("it is written");
    let suite = "version: 1\nconnect: { platform: P4, P4_agent_id: desk, P4_api_key: \"${SUITE_KEY}\" }\nscenarios:\n\
         \x20 - name: greets\n    goal: Hello.\n    max_seconds: 6\n";
    std::fs::write(folder.path().join("suite.yaml"), suite).expect("it is written");
    for (key, to, is_refused) in [(KEY, "good", false), ("wrong-key", "bad", true)] {
        let mut command = ringer(&["run", "suite.yaml", "--out", to]);
        command.current_dir(folder.path()).env("SUITE_KEY", key).env("CI", "1").env("RINGER_LOG", "error");
        let out = tokio::time::timeout(PATIENCE, command.output()).await.expect("it ends in time").expect("it starts");
        let results = std::fs::read_to_string(folder.path().join(to).join("results.jsonl"));
        let results = results.unwrap_or_else(|error| panic!("{error}: {out:?}"));
        assert_eq!(results.contains("\"unreachable\""), is_refused, "{results} {out:?}");
        assert!(!results.contains("P4_ADAPTER_NOT_CONFIGURED") && !results.contains("MISSING_P4"), "{results}");
        assert!(!String::from_utf8_lossy(&out.stdout).contains(key), "{out:?}");
    }
    platforms.stop().await;
}

/// Returns an engine that speaks with an installed voice, that voice, and the calls that come in.
async fn speaking(rtp_ports: RangeInclusive<u16>) -> (Engine, Voice, mpsc::Receiver<Incoming>) {
    let synthesizer = Arc::new(EmbeddedSpeech::new().expect("flite is installed"));
    let voice = synthesizer.voice(&VoiceWanted::of("en")).expect("there is an English voice");
    let speech = Speech { synthesizer, recognizer: Arc::new(FakeRecognizer::new(&[], 0)) };
    let (engine, incoming) = local::engine(rtp_ports, 20, speech).await;
    (engine, voice, incoming)
}

/// Returns the way to an agent by a preset.
async fn dial(preset: &str, address: SocketAddr, key: &str) -> Result<WebSocketDial, String> {
    let tables = [("P4".to_owned(), AdapterTable(json!({ "preset": preset }).as_object().expect("an object").clone()))];
    let mut adapters = service::adapters(&tables.into_iter().collect()).expect("a good preset");
    let moved = adapters["P4"].as_ref().clone().with_base(&format!("http://{address}")).expect("a good address");
    adapters.insert("P4".to_owned(), Arc::new(moved));
    let (platform, agent_id, key) = ("P4".to_owned(), "desk".to_owned(), key.to_owned());
    let line = PlatformLine { platform, agent_id, key, result_id: 7 };
    let dialled = line.dial(&adapters, Guard::new(true), &Clock::Real).await;
    dialled.map_err(|obstacle| obstacle.code.to_string())
}

fn channel_events(report: &CallReport) -> Vec<&ChannelEvent> {
    let found = report.timeline.iter();
    found.filter_map(|entry| if let EventKind::Channel(event) = &entry.what { Some(&**event) } else { None }).collect()
}

mod alone {
    use super::*;

    /// Calls of all presets at once: words both ways, a tool, and a greeting that stops when the caller interrupts it.
    #[tokio::test(flavor = "multi_thread")]
    async fn the_sample_agent_stands_in_for_every_platform() {
        let platforms = Platforms::start().await;
        let stage = Stage::new().await;
        let (engine, voice, _incoming) = speaking(38_650..=38_699).await;
        let mut calls = Vec::new();
        for (name, address) in &platforms.addresses {
            let mut placement = stage.placement("", "I would like to book a table for two people.");
            let dial = dial(name, *address, KEY).await.unwrap_or_else(|why| panic!("{name}: {why}"));
            placement.destination = Destination::WebSocket(Box::new(dial));
            placement.voice = Some(voice.clone());
            placement.spec.limits.max_duration_ms = Some(24_000);
            placement.spec.cut =
                Some(TimedBargeIn { after_ms: 1500, say: "Excuse me, I have one question.".to_owned() });
            let handle = engine.place(placement).await.expect("a place is free");
            calls.push(wait_for_end(handle));
        }
        for ((name, _), report) in platforms.addresses.iter().zip(join_all(calls).await) {
            assert!(report.ending.connected && report.ending.other_spoke, "{name}: {:?}", report.ending);
            assert_eq!(report.peer.transport(), format!("WebSocket, {name}"));
            let is = |wanted: fn(&EventKind) -> bool| report.timeline.iter().any(|entry| wanted(&entry.what));
            assert!(is(|what| matches!(what, EventKind::AgentSpeechEnded { .. })), "{name}");
            assert!(is(|what| matches!(what, EventKind::SpeechEnded { .. })), "{name}");
            let events = channel_events(&report);
            let broken = events.iter().find(|event| matches!(event, ChannelEvent::Violation { .. }));
            assert!(broken.is_none(), "{name}: {broken:?}");
            // Nothing is documented of these in the last one.
            if *name == "vapi_websocket" {
                continue;
            }
            let greets = |event: &&ChannelEvent| matches!(event, ChannelEvent::Reported { text } if text.contains("Thank you for calling"));
            assert!(events.iter().any(greets), "{name}: {events:?}");
            let barge_in = report.timeline.iter().any(|entry| matches!(entry.what, EventKind::BargeIn { .. }));
            assert!(barge_in, "{name}: the agent is interrupted");
            let has_tool = report.timeline.iter().any(|entry| match &entry.what {
                EventKind::ToolCall(call) => &*call.name == "find_appointments",
                EventKind::Channel(event) => {
                    matches!(&**event, ChannelEvent::ToolCalled { name, .. } if &**name == "find_appointments")
                }
                _ => false,
            });
            assert!(has_tool, "{name}: no tool was called");
        }
        engine.stop().await;
        stage.engine.stop().await;
        platforms.stop().await;
    }
}

/// A key that is not the right one is refused where each platform refuses it.
#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_key_is_refused() {
    let platforms = Platforms::start().await;
    let stage = Stage::new().await;
    for (name, address) in &platforms.addresses {
        match dial(name, *address, "wrong").await {
            Err(code) => assert_eq!(code, "P4_AUTH_FAILED", "{name}"),
            Ok(dial) => {
                let mut placement = stage.placement("", "Hello.");
                placement.destination = Destination::WebSocket(Box::new(dial));
                let report = stage.call(placement).await.expect("a place is free");
                let code = report.ending.remote.as_ref().and_then(|remote| remote.pipeline_code());
                assert_eq!((report.ending.connected, code), (false, Some("P4 auth")), "{name}");
            }
        }
    }
    stage.engine.stop().await;
    platforms.stop().await;
}

/// The two programs against each other, with a session request and without.
#[tokio::test(flavor = "multi_thread")]
async fn the_program_calls_its_sample_agent_on_a_platform() {
    for preset in ["openai_realtime", "ultravox"] {
        let args = ["agent", "--listen", "127.0.0.1:0", "--platform", preset, "--port", "0"];
        let mut agent =
            Program::start(ringer(&args).env("RINGER_PLATFORM_KEY", KEY).args(["--rtp-ports", "38750-38799"]));
        let base = agent.address("ws://").await;
        let call = |key: &str| {
            let args = ["call", "p4:desk", "--preset", preset, "--base", &base, "--json", "--max-seconds", "25"];
            let mut command = ringer(&args);
            command.args(["--seed", "3"]).env("RINGER_P4_KEY", key).stderr(std::process::Stdio::piped());
            command
        };
        let output = call(KEY).output().await.expect("the program was built");
        let lines: Vec<Value> = String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(|line| serde_json::from_str(line).expect("each line is JSON"))
            .collect();
        let report = lines.last().expect("a report");
        assert_eq!(report["ok"], true, "{report}");
        for name in ["speech.started", "agent_reported", "tool_call"] {
            assert!(lines.iter().any(|line| line["event"] == name), "{preset}: no {name} in {lines:?}");
        }
        let refused = call("wrong").output().await.expect("the program was built");
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && !said.contains("wrong"), "{said}");
        let keyless = call("").output().await.expect("the program was built");
        let said = String::from_utf8_lossy(&keyless.stderr).into_owned();
        assert!(said.contains("RINGER_P4_KEY is not set"), "{said}");
        agent.kill().await;
    }
}

/// Some calls at once to a far side in the protocol of a preset.
#[tokio::test(flavor = "multi_thread")]
async fn calls_at_once_by_a_preset_are_measured() {
    for preset in ["openai_realtime", "gemini_live", "deepgram_voice_agent"] {
        let flags = ["load", "--platform", preset, "--calls", "3", "--seconds", "1", "--json", "--no-vad"];
        let mut load = Program::start(&mut ringer(&flags));
        let figures: Value = serde_json::from_str(&load.line().await).expect("it prints one object");
        assert_eq!((&figures["connected"], &figures["failed"]), (&3.into(), &0.into()), "{preset}: {figures}");
        let far = &figures["far_side"];
        assert!(far["sent"].as_u64() > Some(100) && far["received"].as_u64() > Some(100), "{preset}: {figures}");
        assert!(far["first_audio_ms"].as_f64() > Some(0.0), "{preset}: {figures}");
        assert!(load.wait_for_end().await.success());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn flags_of_platforms_are_checked() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    for (args, part) in [
        (&["call", "p4:desk"][..], "there is no adapter for P4: set [adapters.P4] in ringer.toml, or --preset KIND"),
        (&["call", "p2:desk"], "platforms are p3: to p11:"),
        (&["call", "p4:desk", "--preset", "morse"], "it must be one of openai_realtime"),
        (&["call", "ws://127.0.0.1/", "--preset", "ultravox"], "--preset is for agents on platforms"),
        (&["call", "p4:a", "--preset", "ultravox", "--base", "ws://h.example"], "unless it is on this machine"),
        (&["agent", "--platform", "morse"], "it must be one of openai_realtime"),
        (&["load", "--platform", "morse"], "it must be one of openai_realtime"),
        (&["load", "--platform", "ultravox", "--calls", "1"], "ultravox makes a session before each call"),
    ] {
        let mut command = ringer(args);
        let output = command.current_dir(folder.path()).stderr(std::process::Stdio::piped()).output().await;
        let output = output.expect("the program was built");
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && printed.contains(part), "{args:?}: {printed}");
    }
}
