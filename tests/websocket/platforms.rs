//! Agents on platforms through the API: by a preset at once, after a session that is asked for, and the codes of what
//! goes wrong.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::server::{Line, Server, speech};
use crate::api::receiver::Receiver;
use crate::calls::house::House;

/// Returns an engine with these adapters, whose requests are sent once.
async fn house(adapters: &str) -> House {
    House::with_trunks(&format!("[websocket]\nretries = 0\n{adapters}")).await
}

/// Returns the id of the result of one call, and the result.
pub(super) async fn run(house: &House, agent: Value) -> (String, Value) {
    let stored = json!({ "P3_api_key": "sesame-3", "P4_api_key": "sesame-4" });
    house.call("PATCH", "/v1/integrations", stored).await;
    let (_, ids) = house.queue(agent, json!({ "max_call_duration": 4 }), &[json!({})]).await;
    house.events(&ids[0]).await;
    (ids[0].clone(), house.result(&ids[0]).await)
}

pub(super) async fn say(line: &mut Line, message: Value) {
    line.send(Message::text(message.to_string())).await;
}

pub(super) fn http(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// Begins a session of the realtime preset, and speaks for a second.
pub(super) async fn greet(line: &mut Line) {
    say(line, json!({ "type": "session.created", "session": { "id": "sess_1" } })).await;
    line.until_text("session.update").await;
    say(line, json!({ "type": "session.updated" })).await;
    line.until_text("response.create").await;
    say(
        line,
        json!({ "type": "response.output_audio.delta", "item_id": "i1", "content_index": 0,
        "delta": STANDARD.encode(speech(1.5)) }),
    )
    .await;
    say(line, json!({ "type": "response.output_audio_transcript.done", "transcript": "Good morning." })).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_called_by_a_preset() {
    let server = Server::start(|mut line: Line| async move {
        greet(&mut line).await;
        say(
            &mut line,
            json!({ "type": "response.function_call_arguments.done", "call_id": "c1", "name": "weather",
            "arguments": "{\"city\":\"Oslo\"}" }),
        )
        .await;
        line.until_text("conversation.item.create").await;
        say(&mut line, json!({ "type": "response.done" })).await;
        line.until_text("response.create").await;
        line.until_end().await;
    })
    .await;
    let url = format!("ws://{}/v1/realtime?model={{{{agent.id}}}}", server.address);
    let house = house(&format!(
        "[adapters.P4]\npreset = 'openai_realtime'\nurl = '{url}'\n[adapters.P4.tool_answers]\nweather = '{{\"c\":3}}'"
    ))
    .await;
    let (id, result) = run(&house, json!({ "P4_agent_id": "desk 1" })).await;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    let metadata = &result["metadata"];
    assert_eq!(metadata["transport"], "WebSocket, openai_realtime", "{metadata}");
    assert_eq!((&metadata["platform_call_id"], &metadata["sip_call_id"]), (&json!("sess_1"), &Value::Null));
    let call = &result["tool_calls"][0];
    assert_eq!(call["name"], "weather", "{result}");
    assert!(result["tool_calls"].to_string().contains("Oslo"), "{call}");
    let seen = server.what_came();
    assert_eq!(
        (seen.header("authorization"), seen.target.as_str()),
        (Some("Bearer sesame-4"), "/v1/realtime?model=desk%201")
    );
    let answer = &seen.texts("conversation.item.create")[0]["item"];
    assert_eq!((&answer["call_id"], &answer["output"]), (&json!("c1"), &json!("{\"c\":3}")));
    let chunks = seen.texts("input_audio_buffer.append");
    let is_loud = |chunk: &Value| {
        let bytes = STANDARD.decode(chunk["audio"].as_str().expect("a text")).expect("base64");
        bytes.len() == 960 && bytes.chunks_exact(2).any(|pair| i16::from_le_bytes([pair[0], pair[1]]).abs() > 500)
    };
    assert!(chunks.len() > 100 && chunks.iter().any(is_loud), "the caller speaks in {} chunks", chunks.len());
    let folder = house.folder.path().join("results").join(&id);
    let wav = std::fs::read(folder.join("recording.wav")).expect("it was written");
    let clip: Vec<i16> = wav[44..].chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
    for side in 0..2 {
        assert!(clip.iter().skip(side).step_by(2).any(|sample| sample.abs() > 500), "channel {side} has sound");
    }
    let timeline = std::fs::read_to_string(folder.join("timeline.jsonl")).expect("it was written");
    assert!(timeline.contains("agent_reported") && timeline.contains("Good morning."), "{timeline}");
    let log = std::fs::read_to_string(folder.join("websocket.log")).expect("it was written");
    assert!(log.contains("session.update") && !log.contains("sesame"), "{log}");
    house.stop().await;
    server.stop().await;
}

/// Tokens of both kinds are made before the socket is opened.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_carries_a_token_that_is_made_for_it() {
    let hears = || async {
        Server::start(|mut line: Line| async move {
            line.send(Message::binary(speech(1.0))).await;
            line.until_end().await;
        })
        .await
    };
    let signs = hears().await;
    let auth = "{ kind = 'hs256', header = 'X-Token', claims = { sub = '{{agent.id}}', exp = 5 } }";
    let url = format!("ws://{}/", signs.address);
    let table = format!("[adapters.P4]\ntransport = 'websocket'\nurl = '{url}'\nauth = {auth}");
    let signing = house(&table).await;
    run(&signing, json!({ "P4_agent_id": "desk" })).await;
    let token = signs.what_came().header("x-token").expect("it was sent").to_owned();
    let claims = token.split('.').nth(1).expect("three parts");
    let claims = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(claims).expect("base64url");
    let claims: Value = serde_json::from_slice(&claims).expect("JSON");
    assert_eq!((&claims["sub"], &claims["exp"], claims["iat"].is_i64()), (&json!("desk"), &json!(5), true));
    signing.stop().await;
    signs.stop().await;

    let fetches = hears().await;
    let tokens = Server::answering(http("200 OK", r#"{"access_token":"fetched","expires_in":3600}"#)).await;
    let url = format!("ws://{}/", fetches.address);
    let table = format!("[adapters.P7]\ntransport = 'websocket'\nurl = '{url}'\nauth = 'service_account'");
    let fetching = house(&table).await;
    let account = json!({ "client_email": "a@b.example", "token_uri": format!("http://{}/token", tokens.address),
        "private_key": include_str!("../../fixtures/keys/service_account.pem") });
    fetching.call("PATCH", "/v1/integrations", json!({ "P7_credentials": account })).await;
    let agent = json!({ "P7_project_id": "p", "P7_location": "global", "P7_agent_id": "a" });
    let (_, result) = run(&fetching, agent).await;
    assert_eq!(result["error_code"], Value::Null, "{result}");
    assert_eq!(fetches.what_came().header("authorization"), Some("Bearer fetched"));
    fetching.stop().await;
    fetches.stop().await;
    tokens.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_called_after_a_session_request() {
    let server = Server::start(|mut line: Line| async move {
        say(&mut line, json!({ "type": "call_started", "callId": "u1" })).await;
        line.send(Message::binary(speech(1.0))).await;
        say(&mut line, json!({ "type": "transcript", "role": "agent", "text": "Hello.", "final": true })).await;
        line.until_text("hang_up").await;
        line.until_end().await;
    })
    .await;
    let join = format!("ws://{}/calls/secret-capability", server.address);
    let answers = Server::answering(http("201 Created", &json!({ "joinUrl": join, "callId": "u1" }).to_string())).await;
    let url = format!("http://{}/api/agents/{{{{agent.P3_agent_id}}}}/calls", answers.address);
    let house = house(&format!("[adapters.P3]\npreset = 'ultravox'\nsession_url = '{url}'")).await;
    let (_, result) = run(&house, json!({ "P3_agent_id": "a1" })).await;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    let metadata = &result["metadata"];
    assert_eq!((&metadata["platform_call_id"], &metadata["transport"]), (&json!("u1"), &json!("WebSocket, ultravox")));
    assert_eq!(metadata["target"], json!(server.address.to_string()), "{metadata}");
    let seen = server.what_came();
    assert_eq!((seen.target.as_str(), seen.texts("hang_up").len()), ("/calls/secret-capability", 1));
    assert_eq!(seen.header("x-api-key"), None, "the key is for the request alone");
    assert!(!result.to_string().contains("secret-capability"), "{result}");
    house.stop().await;
    answers.stop().await;
    server.stop().await;
}

/// A session whose token is refused is asked for once more; the second refusal counts.
#[tokio::test(flavor = "multi_thread")]
async fn a_refused_session_is_asked_for_once_more() {
    let server = Server::start(|mut line: Line| async move {
        say(&mut line, json!({ "type": "call_started", "callId": "u2" })).await;
        line.send(Message::binary(speech(1.0))).await;
        line.until_text("hang_up").await;
        line.until_end().await;
    })
    .await;
    let refusing = Server::answering(http("401 Unauthorized", "")).await;
    let session = |at: &Server, id: &str| {
        (201, json!({ "joinUrl": format!("ws://{}/calls/a", at.address), "callId": id }).to_string())
    };
    for (second, status, code, id) in [
        (session(&server, "u2"), "COMPLETED", Value::Null, json!("u2")),
        (session(&refusing, "u2"), "NO_CONNECTION", json!("P3_AUTH_FAILED"), json!("u2")),
    ] {
        let sessions = Receiver::answering(vec![session(&refusing, "u1"), second]).await;
        let url = sessions.url("/calls");
        let house = house(&format!("[adapters.P3]\npreset = 'ultravox'\nsession_url = '{url}'")).await;
        let (_, result) = run(&house, json!({ "P3_agent_id": "a1" })).await;
        assert_eq!((&result["status"], &result["error_code"]), (&json!(status), &code), "{result}");
        assert_eq!((&result["metadata"]["platform_call_id"], sessions.requests().len()), (&id, 2), "{result}");
        house.stop().await;
    }
    refusing.stop().await;
    server.stop().await;
}

fn error(code: &str, message: &str) -> Value {
    json!({ "type": "error", "error": { "code": code, "message": message } })
}

/// An access token that was kept for earlier calls, and that the platform refuses, is fetched anew once.
#[tokio::test(flavor = "multi_thread")]
async fn a_kept_token_that_is_refused_is_fetched_anew() {
    let server = Server::start(|mut line: Line| async move {
        say(&mut line, json!({ "type": "call_started", "callId": "u2" })).await;
        line.send(Message::binary(speech(1.0))).await;
        line.until_text("hang_up").await;
        line.until_end().await;
    })
    .await;
    let token = |text: &str| (200, json!({ "access_token": text, "expires_in": 3600 }).to_string());
    let tokens = Receiver::answering(vec![token("token-1"), token("token-2"), token("token-3")]).await;
    let session = (201, json!({ "joinUrl": format!("ws://{}/calls/a", server.address), "callId": "u2" }).to_string());
    let refused = || (401, String::new());
    let sessions = vec![session.clone(), refused(), session, refused(), refused()];
    let sessions = Receiver::answering(sessions).await;
    let url = sessions.url("/calls");
    let table = format!("[adapters.P7]\npreset = 'ultravox'\nauth = 'service_account'\nsession_url = '{url}'");
    let house = house(&table).await;
    let account = json!({ "client_email": "a@b.example", "token_uri": tokens.url("/token"),
        "private_key": include_str!("../../fixtures/keys/service_account.pem") });
    house.call("PATCH", "/v1/integrations", json!({ "P7_credentials": account })).await;
    for code in [Value::Null, Value::Null, json!("P7_AUTH_FAILED")] {
        let agent = json!({ "P7_project_id": "p", "P7_location": "global", "P7_agent_id": "a" });
        let (_, result) = run(&house, agent).await;
        assert_eq!(result["error_code"], code, "{result}");
    }
    let asked = sessions.requests();
    let carried: Vec<&str> = asked.iter().map(|one| one.headers["authorization"].to_str().expect("text")).collect();
    assert_eq!(carried, ["Bearer token-1", "Bearer token-1", "Bearer token-2", "Bearer token-2", "Bearer token-3"]);
    assert_eq!(tokens.requests().len(), 3);
    house.stop().await;
    server.stop().await;
}

/// Neither an announced end nor a close by the platform's own limit is a hang-up of the agent.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ends_by_a_limit_is_no_hang_up() {
    let server = Server::start(|mut line: Line| async move {
        greet(&mut line).await;
        for _ in 0..50 {
            line.until_text("input_audio_buffer.append").await;
        }
        line.close(1001).await;
    })
    .await;
    let expiring = Server::start(|mut line: Line| async move {
        greet(&mut line).await;
        for _ in 0..50 {
            line.until_text("input_audio_buffer.append").await;
        }
        say(&mut line, error("session_expired", "too long")).await;
        line.until_end().await;
    })
    .await;
    for (server, why) in [(server, "1001 because"), (expiring, "session_expired: too long")] {
        let url = format!("ws://{}/", server.address);
        let house = house(&format!("[adapters.P4]\npreset = 'openai_realtime'\nurl = '{url}'")).await;
        let (_, result) = run(&house, json!({ "P4_agent_id": "m" })).await;
        let ended = (&result["status"], &result["error_code"], &result["conversation_ended_by"]);
        assert_eq!(ended, (&json!("CALL_DROPPED"), &json!("BRIDGE_DISCONNECTED"), &Value::Null), "{result}");
        let why = format!("the platform ended its session by a limit of its own: {why}");
        assert!(result["error_message"].as_str().is_some_and(|text| text.contains(&why)), "{result}");
        house.stop().await;
        server.stop().await;
    }
}

/// Speaks for a second and a half in the words of the preset that names a handle.
fn model_turn(text: &str) -> Value {
    json!({ "serverContent": { "modelTurn": { "parts": [{ "inlineData": { "mimeType": "audio/pcm;rate=24000",
        "data": STANDARD.encode(speech(1.5)) } }] }, "outputTranscription": { "text": text }, "turnComplete": true } })
}

/// A session that is announced to end, and whose platform named a handle, goes on at a second connection: the call
/// stays up, and the voice between the two is not lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_ends_by_a_limit_goes_on_by_its_handle() {
    let has = |text: &'static str| move |message: &Message| message.to_text().is_ok_and(|found| found.contains(text));
    let connections = Arc::new(AtomicUsize::new(0));
    let server = Server::start(move |mut line: Line| {
        let number = connections.fetch_add(1, Ordering::Relaxed);
        async move {
            line.until(has("setup")).await;
            say(&mut line, json!({ "setupComplete": {} })).await;
            if number > 0 {
                say(&mut line, model_turn("And here I am again.")).await;
                return line.until_end().await;
            }
            say(&mut line, model_turn("Good morning.")).await;
            let update = json!({ "newHandle": "state-1", "resumable": true });
            say(&mut line, json!({ "sessionResumptionUpdate": update })).await;
            for _ in 0..50 {
                line.until(has("realtimeInput")).await;
            }
            say(&mut line, json!({ "goAway": { "timeLeft": "1s" } })).await;
            line.close(1011).await;
        }
    })
    .await;
    let url = format!("ws://{}/", server.address);
    let house = house(&format!("[adapters.P4]\npreset = 'gemini_live'\nurl = '{url}'")).await;
    let (id, result) = run(&house, json!({ "P4_agent_id": "m" })).await;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    let timeline = std::fs::read_to_string(house.folder.path().join("results").join(&id).join("timeline.jsonl"));
    let timeline = timeline.expect("it was written");
    let once = ["session_resumed", "{\"text\":\"Good morning.\"}", "{\"text\":\"And here I am again.\"}"];
    assert!(once.iter().all(|text| timeline.matches(text).count() == 1), "{timeline}");
    let seen = server.what_came();
    let texts = seen.messages.iter().filter_map(|message| message.to_text().ok());
    let setups: Vec<Value> = texts
        .filter(|text| text.contains("setup"))
        .map(|text| serde_json::from_str::<Value>(text).expect("JSON")["setup"]["sessionResumption"].clone())
        .collect();
    assert_eq!(setups, [json!({}), json!({ "handle": "state-1" })]);
    house.stop().await;
    server.stop().await;
}

/// Credentials that were sealed by a key that nobody has are a fault of this side, by the platform's code.
#[tokio::test(flavor = "multi_thread")]
async fn credentials_that_cannot_be_opened_are_told() {
    let house = house("[adapters.P4]\npreset = 'openai_realtime'\nurl = 'ws://127.0.0.1:9/'").await;
    house.call("PATCH", "/v1/integrations", json!({ "P4_api_key": "sesame-4" })).await;
    let database = rusqlite::Connection::open(house.folder.path().join("ringer.db")).expect("it opens");
    let change = "UPDATE integrations SET doc = replace(doc, 'sealed:1:', 'sealed:1:0')";
    assert_eq!(database.execute(change, []).expect("it is written"), 1);
    drop(database);
    let (_, ids) = house.queue(json!({ "P4_agent_id": "m" }), json!({}), &[json!({})]).await;
    house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    let ended = (&result["status"], &result["error_code"], &result["error_owner"]);
    assert_eq!(ended, (&json!("NO_CONNECTION"), &json!("P4_INTEGRATION_DECRYPT_FAILED"), &json!("engine")), "{result}");
    assert!(!result.to_string().contains("sealed:1"), "{result}");
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_platforms_have_their_codes() {
    let session = async |answer: String, code: &str| {
        let answers = Server::answering(answer).await;
        let url = format!("http://{}/calls", answers.address);
        let house = house(&format!("[adapters.P3]\npreset = 'ultravox'\nsession_url = '{url}'")).await;
        let (_, result) = run(&house, json!({ "P3_agent_id": "a1" })).await;
        assert_eq!((&result["status"], &result["error_code"]), (&json!("NO_CONNECTION"), &json!(code)), "{result}");
        assert!(!result.to_string().contains("sesame"), "{result}");
        house.stop().await;
        answers.stop().await;
    };
    session(http("401 Unauthorized", ""), "P3_AUTH_FAILED").await;
    session(http("429 Too Many Requests", ""), "CUSTOMER_CONCURRENCY_LIMIT").await;
    session(http("500 Internal Server Error", ""), "P3_SESSION_SETUP_FAILED").await;
    session(http("200 OK", "{\"callId\":\"u1\"}"), "P3_SESSION_SETUP_FAILED").await;
    let dialled = async |server: &Server, code: &str, status: &str| {
        let url = format!("ws://{}/", server.address);
        let house = house(&format!("[adapters.P4]\npreset = 'openai_realtime'\nurl = '{url}'")).await;
        let (_, result) = run(&house, json!({ "P4_agent_id": "m" })).await;
        assert_eq!((&result["status"], &result["error_code"]), (&json!(status), &json!(code)), "{result}");
        house.stop().await;
        result
    };
    let refusing = Server::answering(http("401 Unauthorized", "")).await;
    dialled(&refusing, "P4_AUTH_FAILED", "NO_CONNECTION").await;
    refusing.stop().await;
    let unknown = Server::answering(http("404 Not Found", "")).await;
    dialled(&unknown, "P4_BRIDGE_CONNECT_FAILED", "NO_CONNECTION").await;
    unknown.stop().await;
    let failing = Server::start(|mut line: Line| async move {
        greet(&mut line).await;
        for _ in 0..50 {
            line.until_text("input_audio_buffer.append").await;
        }
        say(&mut line, error("insufficient_quota", "too much")).await;
        line.until_end().await;
    })
    .await;
    let result = dialled(&failing, "P4_AGENT_ERROR", "CALL_DROPPED").await;
    assert!(result["error_message"].to_string().contains("insufficient_quota: too much"), "{result}");
    assert_eq!(result["metadata"]["agent_errors"][0]["code"], "insufficient_quota");
    failing.stop().await;
}

/// A message of more than 1 MiB is taken, one above 16 MiB ends the call.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_too_big_is_the_agents_error() {
    let server = Server::start(|mut line: Line| async move {
        greet(&mut line).await;
        say(&mut line, json!({ "type": "unknown", "pad": "a".repeat(2 << 20) })).await;
        say(&mut line, json!({ "type": "response.output_audio_transcript.done", "transcript": "Still here." })).await;
        line.until_text("input_audio_buffer.append").await;
        say(&mut line, json!({ "type": "unknown", "pad": "a".repeat(16 << 20) })).await;
        line.until_end().await;
    })
    .await;
    let url = format!("ws://{}/", server.address);
    let house = house(&format!("[adapters.P4]\npreset = 'openai_realtime'\nurl = '{url}'")).await;
    let (id, result) = run(&house, json!({ "P4_agent_id": "m" })).await;
    let ended = (&result["status"], &result["error_code"]);
    assert_eq!(ended, (&json!("CALL_DROPPED"), &json!("P4_AGENT_ERROR")), "{result}");
    let timeline = std::fs::read_to_string(house.folder.path().join("results").join(&id).join("timeline.jsonl"));
    assert!(timeline.expect("it was written").contains("Still here."));
    assert_eq!(server.what_came().close().map(|(code, _)| code), Some(1009));
    house.stop().await;
    server.stop().await;
}
