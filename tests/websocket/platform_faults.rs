//! Bad input of platforms through the API: refusals, answers and messages that are none, and credentials that no
//! request can hold. Each has its code, and no secret is told.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ringer::clock::monotonic;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::platforms::{greet, http, run, say};
use super::server::{Line, Server, speech};
use crate::calls::house::House;

/// Returns an engine with these adapters, whose requests are repeated so often.
async fn house(retries: u32, adapters: &str) -> House {
    House::with_trunks(&format!("[websocket]\nretries = {retries}\nretry_backoff_ms = 10\n{adapters}")).await
}

fn check_refused(result: &Value, code: &str, why: &str) {
    assert_eq!((&result["status"], &result["error_code"]), (&json!("NO_CONNECTION"), &json!(code)), "{result}");
    assert!(result["error_message"].as_str().is_some_and(|text| text.contains(why)), "{why}: {result}");
    assert!(!result.to_string().contains("sesame"), "{result}");
}

/// Answers to the request for a session that are none.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_that_do_not_come_about_have_their_codes() {
    let long = format!("{{\"joinUrl\":\"{}\"}}", "a".repeat(300 * 1024));
    for (answer, code, why) in [
        (http("403 Forbidden", "{\"why\":\"sesame-3\"}"), "P3_AUTH_FAILED", "session_url answered 403"),
        (http("404 Not Found", ""), "P3_SESSION_SETUP_FAILED", "session_url answered 404"),
        (http("302 Found\r\nLocation: http://127.0.0.1:9/", ""), "P3_SESSION_SETUP_FAILED", "session_url answered 302"),
        (http("201 Created", "sesame-3"), "P3_SESSION_SETUP_FAILED", "session_url: its answer is no JSON"),
        (http("201 Created", "{\"joinUrl\":\"http://h/\"}"), "P3_SESSION_SETUP_FAILED", "its answer names an address"),
        (http("201 Created", &long), "P3_SESSION_SETUP_FAILED", "session_url"),
    ] {
        let answers = Server::answering(answer).await;
        let url = format!("http://{}/calls?key={{{{integration.key}}}}", answers.address);
        let house = house(0, &format!("[adapters.P3]\npreset = 'ultravox'\nsession_url = '{url}'")).await;
        check_refused(&run(&house, json!({ "P3_agent_id": "a1" })).await.1, code, why);
        house.stop().await;
        answers.stop().await;
    }
}

/// A platform that is busy is asked again no sooner than it says.
#[tokio::test(flavor = "multi_thread")]
async fn a_busy_platform_says_when_it_is_asked_again() {
    let busy = Server::answering(http("429 Too Many Requests\r\nRetry-After: 2", "")).await;
    let url = format!("http://{}/calls", busy.address);
    let house = house(1, &format!("[adapters.P3]\npreset = 'ultravox'\nsession_url = '{url}'")).await;
    let begun = monotonic();
    let (_, result) = run(&house, json!({ "P3_agent_id": "a1" })).await;
    let took = monotonic().since(begun);
    check_refused(&result, "CUSTOMER_CONCURRENCY_LIMIT", "the platform takes no further call at present");
    assert!(took.as_secs() >= 2, "{took:?}");
    house.stop().await;
    busy.stop().await;
}

/// A credential with a line break would be a header of its own: no request holds it, and nobody is called.
#[tokio::test(flavor = "multi_thread")]
async fn a_credential_with_a_line_break_is_sent_nowhere() {
    let server = Server::start(|mut line: Line| async move { line.until_end().await }).await;
    let (at, socket) = (format!("http://{}/calls", server.address), format!("ws://{}/", server.address));
    for (adapter, agent) in [
        (format!("[adapters.P4]\npreset = 'openai_realtime'\nurl = '{socket}'"), "P4_agent_id"),
        (format!("[adapters.P4]\npreset = 'ultravox'\nsession_url = '{at}'"), "P4_agent_id"),
        (
            format!(
                "[adapters.P4]\ntransport = 'websocket'\nurl = '{socket}'\n[adapters.P4.headers]\n\
                 X-Key = '{{{{integration.key}}}}'"
            ),
            "P4_agent_id",
        ),
    ] {
        let house = house(0, &adapter).await;
        house.call("PATCH", "/v1/integrations", json!({ "P4_api_key": "sesame\r\nX-Evil: sesame" })).await;
        let (_, ids) = house.queue(json!({ agent: "m" }), json!({ "max_call_duration": 4 }), &[json!({})]).await;
        house.events(&ids[0]).await;
        let result = house.result(&ids[0]).await;
        check_refused(&result, "P4_SESSION_SETUP_FAILED", "a value that no header can hold");
        house.stop().await;
    }
    assert_eq!(server.what_came().connections, 0);
    server.stop().await;
}

/// Calls of tools whose arguments are no JSON are kept as they came, without what is secret, and the call goes on.
#[tokio::test(flavor = "multi_thread")]
async fn arguments_that_are_no_json_are_kept_as_a_text() {
    let server = Server::start(|mut line: Line| async move {
        greet(&mut line).await;
        let call = |id: &str, arguments: &str| {
            json!({ "type": "response.function_call_arguments.done", "call_id": id, "name": "weather",
                "arguments": arguments })
        };
        for (id, arguments) in [("c1", "{\"city\": Oslo"), ("c2", ""), ("c3", "key sesame-4"), ("c4", "[1]")] {
            say(&mut line, call(id, arguments)).await;
        }
        line.until_end().await;
    })
    .await;
    let url = format!("ws://{}/", server.address);
    let house = house(0, &format!("[adapters.P4]\npreset = 'openai_realtime'\nurl = '{url}'")).await;
    let (_, result) = run(&house, json!({ "P4_agent_id": "m" })).await;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    let calls = result["tool_calls"].as_array().expect("calls").iter();
    let calls = calls.flat_map(|call| call["actual"].as_array().expect("calls"));
    let given: Vec<&Value> = calls.map(|call| &call["parameters"]["value"]).collect();
    assert_eq!(given, [&json!("{\"city\": Oslo"), &json!(""), &json!("key (secret)"), &json!([1])], "{result}");
    assert!(!result.to_string().contains("sesame"), "{result}");
    assert_eq!(server.what_came().texts("conversation.item.create").len(), 4, "each is answered");
    house.stop().await;
    server.stop().await;
}

/// Audio in another form than was agreed: one that nobody knows, a file in the place of samples, and no base64. The
/// call goes on, and its timeline tells of each.
#[tokio::test(flavor = "multi_thread")]
async fn audio_in_another_form_than_agreed_is_told() {
    let server = Server::start(|mut line: Line| async move {
        line.until_text("conversation_initiation_client_data").await;
        let formats = json!({ "conversation_id": "c", "agent_output_audio_format": "opus_48000",
            "user_input_audio_format": "pcm_16000" });
        say(
            &mut line,
            json!({ "type": "conversation_initiation_metadata",
            "conversation_initiation_metadata_event": formats }),
        )
        .await;
        let file = [b"RIFF".to_vec(), vec![0; 4], b"WAVEfmt ".to_vec(), vec![0; 28], speech(1.5)].concat();
        for (id, audio) in [(1, STANDARD.encode(file)), (2, "no base64!".to_owned())] {
            let event = json!({ "event_id": id, "audio_base_64": audio });
            say(&mut line, json!({ "type": "audio", "audio_event": event })).await;
        }
        line.send(Message::binary(vec![0xff, 0xfe])).await;
        line.until_end().await;
    })
    .await;
    let url = format!("ws://{}/", server.address);
    let answers = Server::answering(http("200 OK", &json!({ "signed_url": url }).to_string())).await;
    let session = format!("http://{}/", answers.address);
    let house = house(0, &format!("[adapters.P3]\npreset = 'elevenlabs_agents'\nsession_url = '{session}'")).await;
    let (id, result) = run(&house, json!({ "P3_agent_id": "a1" })).await;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    let timeline = std::fs::read_to_string(house.folder.path().join("results").join(&id).join("timeline.jsonl"));
    let timeline = timeline.expect("it was written");
    for code in ["MISSING_FIELD", "AUDIO_HEADER", "BAD_BASE64", "BINARY_NOT_ALLOWED"] {
        assert!(timeline.contains(code), "{code}: {timeline}");
    }
    house.stop().await;
    answers.stop().await;
    server.stop().await;
}
