//! Agents on platforms that are written to over HTTP, by `[adapters.Pn]` with `transport = "http_chat"`.

use std::collections::BTreeMap;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac};
use ringer::config::AdapterTable;
use ringer::service::{Settings, adapters};
use rustls::SignatureScheme;
use serde_json::{Value, json};
use sha2::Sha256;
use url::form_urlencoded;

use super::receiver::{Received, Receiver};
use super::talk::{Talk, queue};
use super::texts::reply;
use super::world::World;
use crate::json::with;

/// Key of the service account, and its public part.
const KEY: &str = include_str!("../../fixtures/keys/service_account.pem");
const PUBLIC_KEY: &[u8] = include_bytes!("../../fixtures/keys/service_account.public.der");

/// Returns a world with this adapter of a platform.
async fn world(platform: &str, table: Value) -> World {
    let table = AdapterTable(table.as_object().expect("an object was written").clone());
    let tables = BTreeMap::from([(platform.to_owned(), table)]);
    let made = adapters(&tables).expect("the settings are good");
    World::at_work_with(None, |settings: &mut Settings| settings.adapters = Arc::new(made)).await
}

/// Returns the settings of a platform that answers with `{"say": ...}`.
fn table(server: &Receiver, more: Value) -> Value {
    let plain = json!({ "transport": "http_chat", "url": server.url("/talk/{{agent.P10_agent_token}}"),
        "body": { "words": "{{message.text}}", "name": "{{message.id}}", "who": "{{conversation.id}}",
            "release": "{{agent.P10_release}}" }, "reply_pointer": "/say" });
    with(plain, more)
}

fn p10() -> Value {
    json!({ "P10_agent_token": "desk 1" })
}

fn say(text: &str) -> (u16, String) {
    reply(json!({ "say": text }))
}

#[tokio::test]
async fn an_agent_on_a_platform_answers_in_writing() {
    let call = json!({ "name": "book", "args": "{\"seats\":2}", "result": { "table": 7 } });
    let server = Receiver::answering(vec![
        say("For how many?"),
        reply(json!({ "say": ["Booked.", "Table 7."], "calls": [call, { "note": 1 }] })),
        reply(json!({ "over": true })),
    ])
    .await;
    let more = json!({ "headers.X-Release": "1", "end_pointer": "/over",
        "tool": { "list": "/calls/*", "name": "/name", "arguments": "/args", "output": "/result" } });
    let mut settings = table(&server, more);
    let headers = settings.as_object_mut().expect("an object was written").remove("headers.X-Release");
    settings["headers"] = json!({ "X-Release": headers });
    let agent = with(p10(), json!({ "P10_release": "r2" }));
    let talk = Talk::of(world("P10", settings).await, agent, json!({}), json!({})).await;
    let result = talk.until("COMPLETED").await;
    let asked = server.requests();
    assert_eq!(asked.len(), 3);
    let first = asked[0].json();
    assert_eq!((asked[0].path.as_str(), &first["words"]), ("/talk/desk%201", &json!("Hello. I want a table.")));
    assert_eq!((&first["who"], &first["release"]), (&json!(format!("{}-1", talk.id)), &json!("r2")));
    assert_eq!(first["name"].as_str().map(str::len), Some(36), "{first}");
    assert_eq!(
        (&asked[0].headers["x-release"], &asked[0].headers["content-type"]),
        (&"1".parse().expect("a value"), &"application/json".parse().expect("a value"))
    );
    assert_eq!(asked[0].headers["x-simulation-result-id"], talk.id.as_str());
    let transcript = talk.part("transcript").await;
    assert_eq!(transcript["entries"][3]["utterance"], "Booked.\nTable 7.", "{transcript}");
    let call = json!([{ "parameters": { "seats": 2 }, "output": { "table": 7 }, "start_offset_ms": 0 }]);
    assert_eq!((&result["tool_calls"][0]["name"], &result["tool_calls"][0]["actual"]), (&json!("book"), &call));
    let metadata = &result["metadata"];
    let target = server.address.to_string();
    assert_eq!((&metadata["transport"], &metadata["target"]), (&json!("HTTP, http_chat"), &json!(target)));
    assert!(!String::from_utf8_lossy(&talk.evidence().await["http.log"]).contains("desk"), "the path may be secret");
}

#[tokio::test]
async fn an_agent_on_a_platform_may_end_the_conversation_and_be_asked_to_begin() {
    let server = Receiver::answering(vec![say("Good day."), reply(json!({ "say": "Bye.", "over": "now" }))]).await;
    let more = json!({ "end_pointer": "/over=now", "agent_first_message": { "launch": true } });
    let human = json!({ "speaks_first_config": { "speaks_first": false } });
    let settings = table(&server, more);
    let talk = Talk::of(world("P10", settings).await, p10(), json!({}), human.clone()).await;
    let result = talk.until("COMPLETED").await;
    assert_eq!(result["end_reason"], "agent_hangup");
    assert_eq!(server.requests()[0].json(), json!({ "launch": true }));
    assert_eq!(talk.part("transcript").await["entries"][0]["utterance"], "Good day.");
    // Without such a message the Digital Human begins, and the result says so.
    let server = Receiver::answering(vec![reply(json!({ "say": "Bye.", "over": "now" }))]).await;
    let settings = table(&server, json!({ "end_pointer": "/over" }));
    let talk = Talk::of(world("P10", settings).await, p10(), json!({}), human).await;
    let result = talk.until("COMPLETED").await;
    assert_eq!(server.requests()[0].json()["words"], "Hello. I want a table.");
    let warnings = result["metadata"]["warnings"].to_string();
    assert!(warnings.contains("agent_first_message"), "{warnings}");
}

#[tokio::test]
async fn troubles_of_platforms_have_their_codes() {
    let of = |status: u16, count: usize| vec![(status, String::new()); count];
    for (answers, retries, end, code) in [
        (of(401, 1), 0, "NO_CONNECTION", "P10_AUTH_FAILED"),
        (of(403, 1), 0, "NO_CONNECTION", "P10_AUTH_FAILED"),
        (of(429, 4), 3, "NO_CONNECTION", "CUSTOMER_CONCURRENCY_LIMIT"),
        (of(500, 4), 3, "NO_CONNECTION", "P10_SESSION_SETUP_FAILED"),
        (of(302, 1), 0, "NO_CONNECTION", "P10_SESSION_SETUP_FAILED"),
        (vec![(200, "<html>".to_owned())], 0, "NO_CONNECTION", "P10_SESSION_SETUP_FAILED"),
        (vec![(200, "{}".to_owned())], 0, "NO_CONNECTION", "P10_SESSION_SETUP_FAILED"),
        ([vec![say("For how many?")], of(404, 1)].concat(), 0, "CALL_DROPPED", "P10_AGENT_ERROR"),
        ([of(503, 1), vec![say("For how many?")], of(401, 1)].concat(), 1, "CALL_DROPPED", "P10_AUTH_FAILED"),
        ([vec![say("For how many?")], of(429, 4)].concat(), 3, "CALL_DROPPED", "CUSTOMER_CONCURRENCY_LIMIT"),
    ] {
        let count = answers.len();
        let server = Receiver::answering(answers.clone()).await;
        let settings = table(&server, json!({}));
        let talk = Talk::of(world("P10", settings).await, p10(), json!({}), json!({})).await;
        let fine = answers.iter().take_while(|(_, body)| body.contains("say")).count();
        for retry in 0..retries {
            server.wait_for(fine + retry + 1).await;
            talk.retry(1000 << retry).await;
        }
        let result = talk.until(end).await;
        assert_eq!((&result["error_code"], server.requests().len()), (&json!(code), count), "{answers:?}: {result}");
    }
    let gone = Receiver::new(&[]).await;
    let settings = table(&gone, json!({ "url": "http://127.0.0.1:1/" }));
    let talk = Talk::of(world("P10", settings).await, p10(), json!({}), json!({})).await;
    let retries = async {
        loop {
            talk.retry(4000).await;
        }
    };
    let result = tokio::select! {
        result = talk.until("NO_CONNECTION") => result,
        () = retries => unreachable!("the loop has no end"),
    };
    assert_eq!(result["error_code"], "P10_BRIDGE_CONNECT_FAILED");
}

#[tokio::test]
async fn an_adapter_for_the_other_mode_says_so() {
    let server = Receiver::new(&[]).await;
    let calls = json!({ "preset": "ultravox" });
    let writes = table(&server, json!({}));
    for (table, mode, words) in
        [(calls, "TEXT", "The adapter of P10 makes calls"), (writes, "VOICE", "The adapter of P10 writes")]
    {
        let agent = with(p10(), json!({ "mode": mode }));
        let talk = Talk::of(world("P10", table).await, agent, json!({}), json!({})).await;
        let result = talk.until("NO_CONNECTION").await;
        assert_eq!(
            (&result["error_code"], &result["error_owner"]),
            (&json!("CONNECTION_NOT_SUPPORTED"), &json!("engine"))
        );
        assert!(result["error_message"].as_str().is_some_and(|message| message.starts_with(words)), "{result}");
    }
}

#[tokio::test]
async fn a_session_is_asked_for_and_once_more_when_it_has_expired() {
    let session = |token: &str| reply(json!({ "session": { "id": "s 1", "token": token } }));
    let answers = vec![session("t1"), say("For how many?"), (401, String::new()), session("t2"), say("Bye.")];
    let answers = [answers, vec![say("Goodbye.")]].concat();
    let server = Receiver::answering(answers).await;
    let more = json!({ "session_url": server.url("/sessions"), "session_body": { "agent": "{{agent.id}}" },
        "auth": "bearer", "id_pointer": "/session/id", "token_pointer": "/session/token",
        "url": server.url("/sessions/{{session.id}}/messages"),
        "headers": { "Authorization": "Session {{session.token}}" } });
    let world = world("P10", table(&server, more)).await;
    world.call("PATCH", "/v1/integrations", json!({ "P10_api_key": "sesame" })).await;
    let talk = Talk::of(world, p10(), json!({}), json!({})).await;
    talk.until("COMPLETED").await;
    let seen = server.requests();
    let told =
        |asked: &Received| (asked.path.clone(), asked.headers["authorization"].to_str().expect("a text").to_owned());
    let seen: Vec<(String, String)> = seen.iter().map(told).collect();
    let (open, message) = ("/sessions".to_owned(), "/sessions/s%201/messages".to_owned());
    let key = "Bearer sesame".to_owned();
    let expect = [
        (open.clone(), key.clone()),
        (message.clone(), "Session t1".to_owned()),
        (message.clone(), "Session t1".to_owned()),
        (open, key),
        (message.clone(), "Session t2".to_owned()),
        (message, "Session t2".to_owned()),
    ];
    assert_eq!(seen[..5], expect[..5]);
    for (answers, code) in [
        (vec![(401, String::new())], "P10_AUTH_FAILED"),
        (vec![(500, String::new())], "P10_SESSION_SETUP_FAILED"),
        (vec![reply(json!({ "session": { "id": "s" } }))], "P10_SESSION_SETUP_FAILED"),
        // A session that was made just now has not expired.
        (vec![session("t1"), (401, String::new())], "P10_AUTH_FAILED"),
    ] {
        let server = Receiver::answering(answers).await;
        let more = json!({ "session_url": server.url("/sessions"), "id_pointer": "/session/id",
            "token_pointer": "/session/token" });
        let world = super::platform_texts::world("P10", table(&server, more)).await;
        let talk = Talk::of(world, p10(), json!({}), json!({})).await;
        let result = talk.until("NO_CONNECTION").await;
        assert_eq!(result["error_code"], code, "{result}");
    }
}

/// Returns head, claims and signature of a token, and the text that was signed.
fn parts(token: &str) -> (Value, Value, Vec<u8>, String) {
    let parts: Vec<&str> = token.split('.').collect();
    let read = |part: &str| serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64url")).expect("JSON");
    let signature = URL_SAFE_NO_PAD.decode(parts[2]).expect("base64url");
    (read(parts[0]), read(parts[1]), signature, format!("{}.{}", parts[0], parts[1]))
}

fn p11() -> Value {
    json!({ "P11_host": "bots.example", "P11_bot_id": "b1", "P11_client_id": "c1", "P11_client_secret": "hush-hush" })
}

fn bot(server: &Receiver, more: Value) -> Value {
    let plain = json!({ "transport": "http_chat", "url": server.url("/bots/{{agent.P11_bot_id}}"),
        "auth": "hs256", "body": { "from": "{{conversation.id}}", "text": "{{message.text}}" },
        "inbound": { "conversation_pointer": "/to", "text_pointer": "/text", "id_pointer": "/id",
            "end_pointer": "/over" } });
    with(plain, more)
}

#[tokio::test]
async fn messages_are_signed_and_answers_are_posted_back() {
    let server = Receiver::new(&[]).await;
    let talk = Talk::of(world("P11", bot(&server, json!({}))).await, p11(), json!({}), json!({})).await;
    let asked = server.wait_for(1).await;
    assert_eq!(asked.json(), json!({ "from": format!("{}-1", talk.id), "text": "Hello. I want a table." }));
    let token = asked.headers["authorization"].to_str().expect("a text").strip_prefix("Bearer ").expect("a token");
    let (head, claims, signature, signed) = parts(token);
    assert_eq!(head, json!({ "alg": "HS256", "typ": "JWT" }));
    let now_s = 1_767_603_600;
    let expect = json!({ "appId": "c1", "sub": talk.id, "iat": now_s, "exp": now_s + 300 });
    assert_eq!(claims, expect);
    let mut mac = Hmac::<Sha256>::new_from_slice(b"hush-hush").expect("any length");
    mac.update(signed.as_bytes());
    mac.verify_slice(&signature).expect("it is signed with the secret");
    talk.until("RUNNING").await;
    let agent = talk.result().await["agent_id"].to_string();
    let path = format!("/v1/agents/{agent}/inbound-messages");
    let key = talk.world.get(&format!("/v1/agents/{agent}")).await["P11_inbound_token"].clone();
    let key = key.as_str().expect("it was made").to_owned();
    let post = async |path: &str, auth: &str, body: Value| {
        let headers = [("x-api-key".to_owned(), String::new()), ("authorization".to_owned(), auth.to_owned())];
        let answer = talk.world.send("POST", path, &headers, body.to_string().into_bytes()).await;
        (answer.status, answer.json())
    };
    let says = |id: &str, text: &str| json!({ "to": format!("{}-1", talk.id), "id": id, "text": text });
    let bearer = format!("Bearer {key}");
    for (path, auth) in [
        (path.clone(), String::new()),
        (path.clone(), "Bearer wrong".to_owned()),
        (path.clone(), bearer.replace("Bearer", "Basic")),
        (format!("{path}?token=wrong"), String::new()),
        (format!("{path}?token={key}"), "Bearer wrong".to_owned()),
        ("/v1/agents/999999/inbound-messages".to_owned(), bearer.clone()),
        ("/v1/agents/x/inbound-messages".to_owned(), bearer.clone()),
    ] {
        assert_eq!(post(&path, &auth, says("0", "No.")).await.0, 401, "{path} {auth}");
    }
    let accepted = (200, json!({ "status": "accepted" }));
    assert_eq!(post(&path, &bearer, says("1", "For how many?")).await, accepted);
    talk.event("message.received", 1).await;
    // A repeat has no effect, and a conversation that nobody knows is taken and forgotten.
    assert_eq!(post(&path, &bearer, says("1", "For how many?")).await, accepted);
    for unknown in ["999999", "x", "", &format!("{}-2", talk.id)] {
        let answer = post(&path, &bearer, json!({ "to": unknown, "text": "Hm." })).await;
        let status = if unknown.is_empty() { 400 } else { 200 };
        assert_eq!(answer.0, status, "{unknown} {answer:?}");
    }
    let (status, why) = post(&path, &bearer, json!({ "to": talk.id, "text": 5 })).await;
    assert_eq!(
        (status, &why["detail"]),
        (400, &json!("The message has a number and no text at \"/text\" (inbound.text_pointer)"))
    );
    assert_eq!(server.wait_for(2).await.json()["text"], "For two.");
    talk.event("message.sent", 2).await;
    // The name of the result alone will do, and the token may stand in the address.
    let last = json!({ "to": talk.id, "id": "2", "text": "Bye.", "over": true });
    assert_eq!(post(&format!("{path}?token={key}"), "", last).await, accepted);
    let result = talk.until("COMPLETED").await;
    assert_eq!((&result["end_reason"], server.requests().len()), (&json!("agent_hangup"), 2), "{result}");
    let transcript = talk.part("transcript").await;
    let said: Vec<&Value> = (0..4).map(|at| &transcript["entries"][at]["utterance"]).collect();
    assert_eq!(said, ["Hello. I want a table.", "For how many?", "For two.", "Bye."]);
    assert_eq!(transcript["entries"].as_array().map(Vec::len), Some(4), "{transcript}");
    assert!(!result.to_string().contains("hush"), "{result}");
}

#[tokio::test]
async fn a_session_names_the_conversation_of_posted_answers() {
    let server = Receiver::answering(vec![reply(json!({ "id": "session-7" }))]).await;
    let more = json!({ "session_url": server.url("/sessions"), "id_pointer": "/id",
        "auth": { "kind": "hs256", "header": "auth", "claims": { "sub": "me", "exp": 5 } } });
    let talk = Talk::of(world("P11", bot(&server, more)).await, p11(), json!({}), json!({})).await;
    let asked = server.wait_for(2).await;
    let token = asked.headers["auth"].to_str().expect("a text");
    assert_eq!(parts(token).1, json!({ "sub": "me", "exp": 5, "iat": 1_767_603_600 }));
    talk.until("RUNNING").await;
    let agent = talk.result().await["agent_id"].to_string();
    let other = talk.world.post("/v1/add-agent", with(json!({ "name": "Other", "mode": "TEXT" }), p11())).await;
    let post = async |agent: &str, text: &str| {
        let token = talk.world.get(&format!("/v1/agents/{agent}")).await["P11_inbound_token"].clone();
        let path = format!("/v1/agents/{agent}/inbound-messages?token={}", token.as_str().expect("it was made"));
        let headers = [("x-api-key".to_owned(), String::new())];
        let body = json!({ "to": "session-7", "text": text, "over": true }).to_string();
        talk.world.send("POST", &path, &headers, body.into_bytes()).await.status
    };
    // Another agent's platform does not reach it.
    assert_eq!(post(&other["agent_id"].to_string(), "I am not it.").await, 200);
    assert_eq!(post(&agent, "Goodbye.").await, 200);
    let result = talk.until("COMPLETED").await;
    assert_eq!(result["end_reason"], "agent_hangup");
    let transcript = talk.part("transcript").await.to_string();
    assert!(transcript.contains("Goodbye.") && !transcript.contains("I am not it."), "{transcript}");
}

fn account(tokens: &Receiver) -> Value {
    json!({ "type": "service_account", "client_email": "a@b.example", "private_key_id": "k1", "private_key": KEY,
        "token_uri": tokens.url("/token") })
}

#[tokio::test]
async fn a_service_account_gets_a_token_once() {
    let given = |token: &str| reply(json!({ "access_token": token, "expires_in": 3600, "token_type": "Bearer" }));
    let tokens = Receiver::answering(vec![given("first"), given("second"), given("third")]).await;
    let agent = json!({ "P6_app_id": "a", "P6_deployment_id": "d" });
    let spoken = |text: &str| reply(json!({ "outputs": [{ "text": text }, { "turnCompleted": true }] }));
    let bye = || reply(json!({ "outputs": [{ "text": "Bye." }, { "endSession": {} }] }));
    let server =
        Receiver::answering(vec![spoken("For how many?"), bye(), bye(), (401, String::new()), bye(), bye()]).await;
    let settings = json!({ "preset": "run_session", "url": server.url("/v1/apps/{{agent.id}}:runSession") });
    let world = world("P6", settings).await;
    world.call("PATCH", "/v1/integrations", json!({ "P6_credentials": account(&tokens) })).await;
    let talk = Talk::of(world, agent.clone(), json!({}), json!({})).await;
    let result = talk.until("COMPLETED").await;
    assert_eq!(
        (&result["end_reason"], &result["metadata"]["transport"]),
        (&json!("agent_hangup"), &json!("HTTP, run_session"))
    );
    let sent = server.requests();
    assert_eq!(
        sent[0].json(),
        json!({ "config": { "deployment": "d" }, "inputs": [{ "text": "Hello. I want a table." }] })
    );
    let form: BTreeMap<String, String> = form_urlencoded::parse(&tokens.requests()[0].body).into_owned().collect();
    assert_eq!(form["grant_type"], "urn:ietf:params:oauth:grant-type:jwt-bearer");
    let (head, claims, signature, signed) = parts(&form["assertion"]);
    assert_eq!(head, json!({ "alg": "RS256", "typ": "JWT", "kid": "k1" }));
    let now_s = 1_767_603_600;
    let scope = "https://www.googleapis.com/auth/cloud-platform";
    let expect = json!({ "iss": "a@b.example", "scope": scope, "aud": tokens.url("/token"), "iat": now_s,
        "exp": now_s + 3600 });
    assert_eq!(claims, expect);
    let known = rustls::crypto::ring::default_provider().signature_verification_algorithms;
    let (_, checks) =
        known.mapping.iter().find(|(scheme, _)| *scheme == SignatureScheme::RSA_PKCS1_SHA256).expect("it is known");
    let is_signed =
        checks.iter().any(|check| check.verify_signature(PUBLIC_KEY, signed.as_bytes(), &signature).is_ok());
    assert!(is_signed, "signed with the private key");
    // A second conversation uses the token of the first, until 60 s before its end or a refusal.
    let world = talk.world;
    let again = async |world: World| {
        let (_, id) = queue(&world, agent.clone(), json!({}), json!({})).await;
        let feed = world.service.feed(id.parse().expect("an id")).expect("calls are made here");
        let talk = Talk { world, id, feed };
        talk.until("COMPLETED").await;
        talk.world
    };
    let world = again(world).await;
    assert_eq!(tokens.requests().len(), 1);
    let world = again(world).await;
    assert_eq!(tokens.requests().len(), 2, "the kept token was refused");
    let bearers: Vec<String> = server
        .requests()
        .iter()
        .map(|asked| asked.headers["authorization"].to_str().expect("a text").to_owned())
        .collect();
    assert_eq!(bearers, ["Bearer first", "Bearer first", "Bearer first", "Bearer first", "Bearer second"]);
    world.service.clock().advance_ms(3_541_000);
    again(world).await;
    assert_eq!(tokens.requests().len(), 3, "it ends within 60 s");
}

#[tokio::test]
async fn a_service_account_that_is_refused_is_no_fault_of_the_platform() {
    let tokens = Receiver::new(&[400, 500]).await;
    let server = Receiver::new(&[]).await;
    let agent = json!({ "P7_project_id": "p", "P7_location": "global", "P7_agent_id": "a" });
    let outside = with(account(&tokens), json!({ "token_uri": "http://tokens.example/" }));
    let broken = with(account(&tokens), json!({ "private_key": "none" }));
    for (stored, code, words) in [
        (json!("no JSON"), "P7_AUTH_FAILED", "the stored credentials are no JSON"),
        (json!({ "client_email": "a" }), "P7_AUTH_FAILED", "the stored credentials have no token_uri"),
        (
            outside,
            "P7_AUTH_FAILED",
            "token_uri of the stored credentials must begin with https:// unless it is on this machine",
        ),
        (broken, "P7_AUTH_FAILED", "private_key of the stored credentials is no private key in PEM"),
        (account(&tokens), "P7_AUTH_FAILED", "token_uri answered 400: the credentials are refused"),
        (json!(account(&tokens).to_string()), "P7_SESSION_SETUP_FAILED", "token_uri answered 500"),
    ] {
        let settings = json!({ "preset": "detect_intent", "url": server.url("/{{conversation.id}}:detectIntent") });
        let world = world("P7", settings).await;
        world.call("PATCH", "/v1/integrations", json!({ "P7_credentials": stored })).await;
        let talk = Talk::of(world, agent.clone(), json!({}), json!({})).await;
        let result = talk.until("NO_CONNECTION").await;
        assert_eq!((&result["error_code"], &result["error_message"]), (&json!(code), &json!(words)), "{result}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn runs_of_agents_in_writing_are_queued_by_their_own_route() {
    let world = World::at_work(None).await;
    let credentials = json!({ "P6_app_id": "a", "P6_deployment_id": "d" });
    for (agent, expect) in [
        (credentials, 200),
        (json!({ "P7_agent_id": "a" }), 200),
        (json!({ "P8_base_url": "https://203.0.113.5" }), 200),
        (p10(), 200),
        (json!({ "P11_bot_id": "b" }), 200),
        (json!({ "P12_base_url": "https://203.0.113.5" }), 200),
        (json!({ "http_webhook": "https://203.0.113.5" }), 200),
        (json!({ "mode": "VOICE", "P10_agent_token": "t" }), 400),
        (json!({ "phone_number": "+15550002222" }), 400),
    ] {
        let (simulation, _) = queue(&world, agent.clone(), json!({}), json!({})).await;
        let body = json!({ "simulation_id": simulation }).to_string().into_bytes();
        let answer = world.send("POST", "/v1/queue-http-text-simulation-run", &[], body).await;
        assert_eq!(answer.status, expect, "{agent}: {}", answer.json());
        if expect == 400 {
            assert_eq!(answer.json()["detail"], "Agent is not an HTTP text agent");
        }
    }
}
