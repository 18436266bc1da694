//! Agents on platforms that are met in a media room or over a peer connection, through the API: calls, and the codes of
//! what goes wrong.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use ringer::engine::EngineConfig;
use ringer::provider::post::Posting;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::answers::{fixed_answer, serve};
use super::official::official;
use super::pipelines::{bot, poster};
use super::server::{RoomServer, token};
use crate::api::receiver::Receiver;
use crate::calls::house::House;

/// Returns an engine with these adapters, whose requests are sent once.
async fn house(adapters: &str) -> House {
    House::with_trunks(&format!("[websocket]\nretries = 0\n{adapters}")).await
}

/// Returns the result of one call.
async fn run(house: &House, agent: Value) -> Value {
    let stored = json!({ "P4_api_key": "sesame-4", "P5_private_key": "sesame-5" });
    house.call("PATCH", "/v1/integrations", stored).await;
    let (_, ids) = house.queue(agent, json!({ "max_call_duration": 5 }), &[json!({})]).await;
    house.events(&ids[0]).await;
    house.result(&ids[0]).await
}

/// Checks the end of a call that broke off.
fn check_dropped(result: &Value, code: &str, why: &str) {
    let ended = (&result["status"], &result["error_code"], &result["conversation_ended_by"]);
    assert_eq!(ended, (&json!("CALL_DROPPED"), &json!(code), &Value::Null), "{result}");
    assert!(result["error_message"].as_str().is_some_and(|text| text.contains(why)), "{result}");
}

/// Checks the end of a call that did not come about, and that no secret is told.
fn check_refused(result: &Value, code: &str, why: &str) {
    assert_eq!((&result["status"], &result["error_code"]), (&json!("NO_CONNECTION"), &json!(code)), "{result}");
    assert!(result["error_message"].as_str().is_some_and(|text| text.contains(why)), "{result}");
    assert!(!result.to_string().contains("sesame"), "{result}");
}

fn room_adapter(session: &str) -> String {
    format!(
        "[adapters.P4]\ntransport = 'room'\nsession_url = '{session}'\nauth = 'bearer'\nurl_pointer = '/room/url'\n\
         token_pointer = '/room/token'\nid_pointer = '/id'\n[adapters.P4.session_body]\nagent = '{{{{agent.id}}}}'\n\
         result = '{{{{result.id}}}}'"
    )
}

/// The session names the room and its token; the call goes on as in any room.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_met_in_the_room_of_its_session() {
    let server = RoomServer::start().await;
    let official = official(&server, "agent-1", &["--seconds", "2"]).await;
    let room = json!({ "url": server.url, "token": token("caller-1", Duration::from_secs(60)) });
    let answer = json!({ "id": "s1", "room": room }).to_string();
    let sessions = Receiver::answering(vec![(201, answer)]).await;
    let house = house(&room_adapter(&sessions.url("/sessions"))).await;
    let result = run(&house, json!({ "P4_agent_id": "desk" })).await;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    let metadata = &result["metadata"];
    assert_eq!((&metadata["platform_call_id"], &metadata["codec"]), (&json!("s1"), &json!("OPUS")), "{metadata}");
    assert_eq!(metadata["target"], json!(server.url.trim_start_matches("ws://")), "{metadata}");
    assert!(!result.to_string().contains(room["token"].as_str().expect("a text")), "{result}");
    let asked = sessions.wait_for(1).await;
    assert_eq!(asked.json(), json!({ "agent": "desk", "result": result["id"].to_string().trim_matches('"') }));
    assert_eq!(asked.headers["authorization"], "Bearer sesame-4");
    assert_eq!(official.look().await["participants"], json!(["caller-1"]));
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_rooms_of_platforms_that_cannot_be_joined() {
    let refusing = serve(fixed_answer(401, "")).await.replace("http", "ws");
    let room = |url: &str| json!({ "id": "s1", "room": { "url": url, "token": "a.b.c" } }).to_string();
    for (answer, code, why) in [
        ((401, String::new()), "P4_AUTH_FAILED", "session_url answered 401"),
        ((429, String::new()), "CUSTOMER_CONCURRENCY_LIMIT", "no further call"),
        ((500, String::new()), "P4_SESSION_SETUP_FAILED", "session_url answered 500"),
        ((200, json!({ "id": "s1" }).to_string()), "P4_SESSION_SETUP_FAILED", "nothing at /room/url (url_pointer)"),
        ((200, room("ws://rooms.example")), "P4_SESSION_SETUP_FAILED", "must begin with wss://"),
        ((200, room("wss://169.254.169.254")), "P4_BRIDGE_CONNECT_FAILED", "not allowed"),
        ((200, room(&format!("{refusing}/sesame-path"))), "P4_AUTH_FAILED", "the platform's session"),
        ((200, room(&refusing)), "P4_AUTH_FAILED", "is the token of the platform's session one of this server?"),
    ] {
        // A session that is refused is asked for once more.
        let sessions = Receiver::answering(vec![answer; 4]).await;
        let house = house(&room_adapter(&sessions.url("/sessions"))).await;
        check_refused(&run(&house, json!({ "P4_agent_id": "desk" })).await, code, why);
        house.stop().await;
    }
}

fn offer_adapter(session: &str, offer: &str) -> String {
    format!(
        "[adapters.P5]\ntransport = 'webrtc'\nsession_url = '{session}'\nauth = 'bearer'\ntoken_pointer = '/token'\n\
         [adapters.P5.offer]\nurl = '{offer}'\nanswer_pointer = '/sdp'\n\
         [adapters.P5.offer.headers]\nX-Session = '{{{{session.token}}}}'\n\
         [adapters.P5.offer.body]\nsdp = '{{{{offer.sdp}}}}'\ntype = 'offer'\n\
         request_data = {{ agent = '{{{{agent.P5_assistant_id}}}}' }}"
    )
}

/// The real request handler of a pipeline answers the offer.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_answers_the_offer_of_its_adapter() {
    let bot = bot(&["--short-tone"]).await;
    let sessions = Receiver::answering(vec![(200, json!({ "token": "of-the-session" }).to_string())]).await;
    let house = house(&offer_adapter(&sessions.url("/s"), &format!("{}/api/offer", bot.base))).await;
    let result = run(&house, json!({ "P5_assistant_id": "desk" })).await;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    assert_eq!(result["metadata"]["transport"], "WebRTC, UDP/TLS/RTP/SAVPF", "{result}");
    assert_eq!(result["tool_calls"][0]["name"], "weather", "{result}");
    let seen = bot.look().await;
    assert_eq!(seen["requests"], json!([{ "pc_id": null, "restart_pc": null, "request_data": { "agent": "desk" } }]));
    assert_eq!((&seen["connections"], &seen["messages"][0]["type"]), (&json!(1), &json!("client-ready")), "{seen}");
    house.stop().await;
}

/// Returns a server whose offers are whole descriptions, as its answers are; a pipeline is behind it.
async fn plain_offers(pipeline: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let base = format!("http://{}", listener.local_addr().expect("it is bound"));
    let (poster, pipeline) = (poster(), Arc::new(pipeline));
    let app = Router::new().fallback(move |request: Request<Body>| {
        let (poster, pipeline) = (poster.clone(), pipeline.clone());
        async move {
            let (parts, body) = request.into_parts();
            let sdp = to_bytes(body, 1 << 20).await.unwrap_or_default();
            let is_plain = parts.headers["content-type"] == "application/sdp";
            if !is_plain || parts.headers.get("authorization").is_none_or(|key| key != "Bearer sesame-5") {
                return (StatusCode::FORBIDDEN, String::new());
            }
            let body = json!({ "sdp": String::from_utf8_lossy(&sdp), "type": "offer" }).to_string();
            let posting = Posting {
                method: "POST",
                url: &pipeline,
                headers: &[],
                body,
                patience: Duration::from_secs(30),
                answer_bytes: 1 << 20,
            };
            let answer = poster.exchange(posting).await.expect("the pipeline answers");
            let answer: Value = serde_json::from_slice(&answer.body).expect("JSON");
            (StatusCode::CREATED, answer["sdp"].as_str().expect("a description").to_owned())
        }
    });
    #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
    drop(tokio::spawn(async move { axum::serve(listener, app).await }));
    base
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_may_be_the_description_alone() {
    let bot = bot(&["--short-tone"]).await;
    let url = plain_offers(format!("{}/api/offer", bot.base)).await;
    let adapter = format!(
        "[adapters.P5]\ntransport = 'webrtc'\nauth = 'bearer'\n[adapters.P5.offer]\n\
         url = '{url}/calls?model={{{{agent.id}}}}'\nanswer_pointer = ''"
    );
    let house = house(&adapter).await;
    let result = run(&house, json!({ "P5_assistant_id": "desk" })).await;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    assert_eq!(result["metadata"]["target"], json!(url.trim_start_matches("http://")), "{result}");
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_offers_that_are_refused() {
    for (status, answer, code, why) in [
        (401, "", "P5_AUTH_FAILED", "it answered 401"),
        (429, "", "CUSTOMER_CONCURRENCY_LIMIT", "it answered 429"),
        (404, "", "P5_BRIDGE_CONNECT_FAILED", "it answered 404"),
        (200, "{}", "P5_BRIDGE_CONNECT_FAILED", "has no text at /sdp (answer_pointer)"),
    ] {
        let offers = serve(fixed_answer(status, answer)).await;
        let sessions = Receiver::answering(vec![(200, json!({ "token": "t" }).to_string()); 2]).await;
        let house = house(&offer_adapter(&sessions.url("/s"), &offers)).await;
        check_refused(&run(&house, json!({ "P5_assistant_id": "desk" })).await, code, why);
        house.stop().await;
    }
    let sessions = Receiver::answering(vec![(200, "{}".to_owned())]).await;
    let house = house(&offer_adapter(&sessions.url("/s"), "http://127.0.0.1:9/")).await;
    let result = run(&house, json!({ "P5_assistant_id": "desk" })).await;
    check_refused(&result, "P5_SESSION_SETUP_FAILED", "nothing at /token (token_pointer)");
    house.stop().await;
}

/// An agent that is there and says nothing has not begun, whatever carries its media.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_does_not_begin_has_a_code_of_its_own() {
    let soon = |engine: &mut EngineConfig| engine.start_within = Duration::from_secs(2);
    let why = "the agent said nothing within 2 s";
    let server = RoomServer::start().await;
    let _official = official(&server, "agent-1", &["--silent"]).await;
    let room = json!({ "url": server.url, "token": token("caller-1", Duration::from_secs(60)) });
    let sessions = Receiver::answering(vec![(201, json!({ "id": "s1", "room": room }).to_string())]).await;
    let house = House::with_engine(&room_adapter(&sessions.url("/sessions")), soon).await;
    check_dropped(&run(&house, json!({ "P4_agent_id": "desk" })).await, "P4_AGENT_START_FAILED", why);
    house.stop().await;

    let bot = bot(&["--silent"]).await;
    let sessions = Receiver::answering(vec![(200, json!({ "token": "t" }).to_string())]).await;
    let house = House::with_engine(&offer_adapter(&sessions.url("/s"), &format!("{}/api/offer", bot.base)), soon).await;
    check_dropped(&run(&house, json!({ "P5_assistant_id": "desk" })).await, "P5_AGENT_START_FAILED", why);
    assert_eq!(bot.look().await["connections"], 1);
    house.stop().await;
}

/// A call that goes on without the messages of its agent cannot be judged by them.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_whose_messages_are_lost_has_a_code_of_its_own() {
    let bot = bot(&["--drops-channel"]).await;
    let sessions = Receiver::answering(vec![(200, json!({ "token": "t" }).to_string())]).await;
    let house = house(&offer_adapter(&sessions.url("/s"), &format!("{}/api/offer", bot.base))).await;
    let result = run(&house, json!({ "P5_assistant_id": "desk" })).await;
    check_dropped(&result, "P5_MONITORING_ERROR", "its data channel was closed");
    assert_eq!(result["error_owner"], "provider", "{result}");
    assert_eq!(result["tool_calls"][0]["name"], "weather", "what came before is kept: {result}");
    house.stop().await;
}
