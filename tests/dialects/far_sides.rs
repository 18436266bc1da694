//! Messages of the far sides of platforms, read by the types of these platforms' own clients.

use std::sync::Arc;
use std::time::Duration;

use ringer::transport::websocket::platform::adapter::{Adapter, Facts, Names, SessionReply};
use ringer::transport::websocket::platform::far::{FarCall, FarSide};
use ringer::transport::websocket::{Message, Session, SessionControl, SessionFacts, SessionOutput};
use ringer_media::seed::Seed;
use ringer_media::time::Time;
use serde_json::{Value, json};

use super::{FRAME, Judge};

/// Presets whose messages a client's package reads.
const JUDGED: [&str; 4] = ["openai_realtime", "gemini_live", "elevenlabs_agents", "deepgram_voice_agent"];

fn take(session: &mut Session) -> Vec<Message> {
    let sent = std::iter::from_fn(|| session.poll());
    sent.filter_map(|output| if let SessionOutput::Send(message) = output { Some(message) } else { None }).collect()
}

/// Returns the JSON of a message; `None` for audio.
fn json_of(message: &Message) -> Option<Value> {
    match message {
        Message::Text(text) => Some(serde_json::from_str(text).expect("JSON is sent")),
        Message::Binary(bytes) => serde_json::from_slice(bytes).ok(),
    }
}

/// Returns every message that the far side of a preset sends in a conversation.
fn sent_by(preset: &str) -> Vec<Value> {
    let table = json!({ "preset": preset, "url": "wss://h/a" });
    let adapter =
        Adapter::parse("P4", table.as_object().expect("an object"), &Names::default()).expect("good settings");
    let agent = json!({ "id": "a1" }).as_object().expect("an object").clone();
    let facts = Facts { agent, result_id: "42".to_owned(), ..Facts::default() };
    let (_, dialect) = adapter.dialect(&facts, &SessionReply::default()).expect("it can be dialled");
    let side = Arc::new(FarSide::of(preset).expect("it has a far side"));
    let far = FarCall::new(side, "a1".to_owned(), "s1".to_owned(), Value::Null).dialect();
    let about = || SessionFacts::new(42, "wss://h/a", Seed(7), Time(0), 1_767_225_600_000);
    let (mut caller, mut agent) = (Session::caller(dialect, about()), Session::agent(far, about()));
    let (mut now, mut sent) = (Time(0), Vec::new());
    caller.on_open(now);
    agent.on_open(now);
    let said = |words: &str| SessionControl::Words(words.to_owned());
    let mut orders = vec![
        vec![said("Good morning."), SessionControl::UtteranceStarted],
        vec![SessionControl::UtteranceCompleted],
        vec![said("How can I help?"), SessionControl::UtteranceStarted],
        vec![SessionControl::Clear, SessionControl::Cut("How".to_owned()), SessionControl::UtteranceCompleted],
        vec![],
    ]
    .into_iter();
    for tick in 0..250 {
        now = now + Duration::from_millis(20);
        if tick % 20 == 10 {
            orders.next().into_iter().flatten().for_each(|order| agent.control(now, order));
        }
        agent.frame(now, &[if tick % 40 < 30 { 4000 } else { 0 }; FRAME]);
        caller.frame(now, &[0; FRAME]);
        agent.tick(now);
        loop {
            let (of_agent, of_caller) = (take(&mut agent), take(&mut caller));
            if of_agent.is_empty() && of_caller.is_empty() {
                break;
            }
            sent.extend(of_agent.iter().filter_map(json_of));
            of_agent.into_iter().for_each(|message| caller.receive(now, message));
            of_caller.into_iter().for_each(|message| agent.receive(now, message));
        }
    }
    sent
}

#[test]
fn clients_of_platforms_read_what_far_sides_send() {
    let mut judge = Judge::of("platforms.py");
    for preset in JUDGED {
        let sent = sent_by(preset);
        let mut kinds: Vec<String> = sent.iter().map(|message| shape(message).join(" ")).collect();
        kinds.sort();
        kinds.dedup();
        assert!(kinds.len() >= 6, "{preset}: {kinds:?}");
        for message in sent {
            let judged = judge.ask(&json!({ "far": preset, "message": message.to_string() }));
            assert_eq!(judged, json!({}), "{preset}: {message}");
        }
        let judged = judge.ask(&json!({ "far": preset, "message": "{\"type\":\"nonsense\"}" }));
        assert!(judged["refused"].is_string(), "{preset}: {judged}");
    }
}

/// Returns the type of a message, or the names of its members down to the second level.
fn shape(message: &Value) -> Vec<&str> {
    match message["type"].as_str() {
        Some(kind) => vec![kind],
        None => {
            let members = message.as_object().into_iter().flatten();
            members
                .flat_map(|(name, value)| {
                    std::iter::once(name.as_str())
                        .chain(value.as_object().into_iter().flat_map(|inner| inner.keys()).map(String::as_str))
                })
                .collect()
        }
    }
}

/// The rest is not described by any package, and says so.
#[test]
fn far_sides_without_a_judge_say_that_they_are_assumed() {
    for preset in FarSide::names().filter(|name| !JUDGED.contains(name)) {
        let assumed = FarSide::of(preset).expect("it has one").assumptions();
        assert!(!assumed.is_empty(), "{preset}");
        let table = json!({ "preset": preset }).as_object().expect("an object").clone();
        let adapter = Adapter::parse("P4", &table, &Names::default()).expect("good settings");
        assert!(adapter.assumptions().iter().any(|what| what.starts_with("no package")), "{preset}");
    }
}
