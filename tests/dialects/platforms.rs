//! Messages for voice-agent platforms, read by the types of these platforms' own clients.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringer::transport::websocket::platform::adapter::{Adapter, Facts, Names, SessionReply};
use ringer::transport::websocket::{Message, SessionControl, SessionOutput};
use serde_json::{Value, json};

use super::{Caller, FRAME, Judge};

/// Returns the caller of a preset on its open socket.
fn caller(preset: &str) -> Caller {
    let table = json!({ "preset": preset, "url": "wss://h/a", "tool_answers": { "look": "{\"n\":1}" } });
    let adapter =
        Adapter::parse("P4", table.as_object().expect("an object"), &Names::default()).expect("good settings");
    let agent = json!({ "id": "a1" }).as_object().expect("an object").clone();
    let facts = Facts { agent, result_id: "42".to_owned(), ..Facts::default() };
    let (_, dialect) = adapter.dialect(&facts, &SessionReply::default()).expect("it can be dialled");
    let mut caller = Caller::new(dialect);
    caller.session.on_open(caller.now);
    caller
}

/// Returns what a caller sends in a call with these messages of a platform: some audio of its own follows each.
fn sent_in(preset: &str, messages: &[Value]) -> Vec<Value> {
    let mut caller = caller(preset);
    let mut sent = caller.take_sent();
    for message in messages {
        caller.session.receive(caller.now, Message::Text(message.to_string()));
        // Nothing of the platform's audio is played.
        while let Some(output) = caller.session.poll() {
            if let SessionOutput::Send(message) = output {
                sent.push(message);
            }
        }
        caller.session.frame(caller.now, &[0; FRAME]);
    }
    caller.session.control(caller.now, SessionControl::Hangup);
    sent.extend(caller.take_sent());
    let texts = sent.iter().filter_map(|message| if let Message::Text(text) = message { Some(text) } else { None });
    texts.map(|text| serde_json::from_str(text).expect("JSON is sent")).collect()
}

/// One judge for both parts: its libraries take long to load.
#[test]
fn clients_of_platforms_read_what_is_sent_to_them() {
    let mut judge = Judge::of("platforms.py");
    every_message_is_known(&mut judge);
    answers_are_alike(&mut judge);
}

fn every_message_is_known(judge: &mut Judge) {
    let audio = STANDARD.encode([1; 4800]);
    let realtime = [
        json!({ "type": "session.created", "session": { "id": "s" } }),
        json!({ "type": "session.updated" }),
        json!({ "type": "response.output_audio.delta", "item_id": "i", "content_index": 0, "delta": audio }),
        json!({ "type": "input_audio_buffer.speech_started" }),
        json!({ "type": "response.function_call_arguments.done", "call_id": "c", "name": "look", "arguments": "{}" }),
        json!({ "type": "response.done" }),
    ];
    let live = [
        json!({ "setupComplete": {} }),
        json!({ "toolCall": { "functionCalls": [{ "id": "c", "name": "look", "args": {} }] } }),
    ];
    let settings = [
        json!({ "type": "Welcome" }),
        json!({ "type": "SettingsApplied" }),
        json!({ "type": "FunctionCallRequest", "functions": [{ "id": "c", "name": "look", "arguments": "{}",
            "client_side": true }] }),
    ];
    for (preset, messages, count) in
        [("openai_realtime", &realtime[..], 6), ("gemini_live", &live, 3), ("deepgram_voice_agent", &settings, 2)]
    {
        let sent = sent_in(preset, messages);
        let mut kinds: Vec<String> = sent.iter().map(|message| message["type"].to_string()).collect();
        kinds.dedup();
        assert!(sent.len() >= count, "{preset}: {kinds:?}");
        for message in sent {
            let judged = judge.ask(&json!({ "judge": preset, "message": message.to_string() }));
            assert_eq!(judged, json!({}), "{preset}: {message}");
        }
    }
    let wrong = json!({ "type": "conversation.item.truncate", "item_id": "i" }).to_string();
    let judged = judge.ask(&json!({ "judge": "openai_realtime", "message": wrong }));
    assert!(judged["refused"].is_string(), "{judged}");
}

fn answers_are_alike(judge: &mut Judge) {
    let begin = json!({ "type": "conversation_initiation_metadata", "conversation_initiation_metadata_event": {
        "conversation_id": "c", "agent_output_audio_format": "pcm_16000", "user_input_audio_format": "pcm_16000" } });
    let ping = json!({ "type": "ping", "ping_event": { "event_id": 3, "ping_ms": null } });
    let tool = json!({ "type": "client_tool_call", "client_tool_call": { "tool_name": "look", "tool_call_id": "t",
        "parameters": { "a": 1 } } });
    for event in [ping, tool] {
        let theirs = judge.ask(&json!({ "client": event, "tool": "{\"n\":1}" }));
        let own = sent_in("elevenlabs_agents", &[begin.clone(), event.clone()]);
        let theirs_sent = theirs["sent"].as_array().expect("a list");
        assert!(theirs_sent.len() == 1 && own.contains(&theirs_sent[0]), "{own:?} {theirs}");
        for (name, value) in own[0].as_object().expect("an object") {
            assert_eq!(theirs["begins"].get(name), Some(value), "{name} of the first message");
        }
        assert!(own.iter().any(|message| message["user_audio_chunk"].is_string()), "{own:?}");
    }
}
