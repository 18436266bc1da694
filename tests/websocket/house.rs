//! Agents with a `websocket_url` through the API: rules of their fields, a run, and what its result tells.

use ringer_media::seed::Seed;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::server::{Line, Server, speech};
use crate::calls::house::House;

#[tokio::test(flavor = "multi_thread")]
async fn a_run_over_a_websocket() {
    let server = Server::start(|mut line: Line| async move {
        line.send(Message::binary(speech(1.0))).await;
        line.tell("session.error", json!({ "code": "SLOW", "message": "I am slow" })).await;
        line.until_end().await;
    })
    .await;
    let house = House::understanding("Good morning.").await;
    let agent = json!({ "websocket_url": server.url(), "websocket_username": "u", "websocket_password": "secret" });
    let (_, ids) = house.queue(agent, json!({}), &[json!({})]).await;
    house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    assert_eq!(result["error_code"], Value::Null, "{result}");
    let metadata = &result["metadata"];
    assert_eq!((&metadata["transport"], &metadata["codec"]), (&json!("WebSocket, default"), &json!("L16")));
    assert_eq!(metadata["agent_errors"][0]["code"], "SLOW");
    assert_eq!(metadata["sip_call_id"], Value::Null);
    assert_eq!(server.what_came().header("x-simulation-result-id"), Some(ids[0].as_str()));
    let log = house.folder.path().join("results").join(&ids[0]).join("websocket.log");
    let log = std::fs::read_to_string(log).expect("it was written");
    assert!(log.contains("101") && !log.contains("secret"), "{log}");
    let (status, body) = house.ask("GET", &format!("/v1/simulation-result/{}/evidence", ids[0]), Value::Null).await;
    let archive = axum::body::to_bytes(body, 1 << 24).await.expect("a body");
    let names: Vec<String> = tar::Archive::new(&archive[..])
        .entries()
        .expect("an archive")
        .map(|entry| entry.expect("a member").path().expect("a path").display().to_string())
        .collect();
    assert_eq!(status, 200);
    assert!(names.iter().any(|name| name == "websocket.log"), "{names:?}");
    house.stop().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_servers_that_refuse() {
    let house = House::new().await;
    let http = |status: &str| format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
    for (answer, status, code, owner) in [
        (http("401 Unauthorized"), "NO_CONNECTION", "WEBSOCKET_AUTH_FAILED", "agent_owner"),
        (http("404 Not Found"), "NO_CONNECTION", "WEBSOCKET_CONNECT_FAILED", "agent_owner"),
    ] {
        let server = Server::answering(answer).await;
        for is_private in [false, true] {
            let agent = json!({ "websocket_url": server.url(), "redact_pii": is_private });
            let (_, ids) = house.queue(agent, json!({}), &[json!({})]).await;
            house.events(&ids[0]).await;
            let result = house.result(&ids[0]).await;
            assert_eq!((&result["status"], &result["error_code"]), (&json!(status), &json!(code)), "{result}");
            assert_eq!(result["error_owner"], owner);
            let log = house.folder.path().join("results").join(&ids[0]).join("websocket.log");
            assert_eq!(log.exists(), !is_private, "messages of a private call are not kept");
        }
        server.stop().await;
    }
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_that_cannot_be_are_refused() {
    let house = House::new().await;
    let add = async |fields: Value| {
        let mut body = json!({ "name": format!("Desk {}", Seed::of(&fields.to_string()).0) });
        body.as_object_mut().expect("an object").extend(fields.as_object().expect("an object").clone());
        let (status, answer) = house.ask("POST", "/v1/add-agent", body).await;
        let answer = axum::body::to_bytes(answer, 1 << 20).await.expect("a body");
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        (status, answer)
    };
    for (fields, expect) in [
        (json!({ "websocket_dialect": "morse" }), "Unknown websocket_dialect 'morse'"),
        (json!({ "websocket_dialect": "default" }), "Unknown websocket_dialect 'default'"),
        (json!({ "websocket_parameters": { "a b": "c" } }), "websocket_parameters: key \"a b\" must be"),
        (json!({ "websocket_parameters": { "a": "x".repeat(257) } }), "websocket_parameters: "),
    ] {
        let (status, answer) = add(fields.clone()).await;
        assert_eq!(status, 400, "{fields}: {answer}");
        assert!(answer.to_string().contains(&expect.replace('"', "\\\"")), "{answer}");
    }
    let parameters: Value = (0..21).map(|n| (format!("k{n}"), json!("v"))).collect::<serde_json::Map<_, _>>().into();
    let (status, answer) = add(json!({ "websocket_parameters": parameters })).await;
    assert_eq!((status, answer.to_string().contains("at most 20")), (400, true), "{answer}");

    let queue = async |agent: Value| {
        let (status, agent) = add(agent).await;
        assert_eq!(status, 200, "{agent}");
        let body = json!({ "agent_id": agent["agent_id"].to_string() });
        let id = house.post("/v1/create-simulation", body).await["simulation_id"].clone();
        let human = json!({ "digital_human": { "intent": "Book a table." }, "simulation_ids": [id] });
        house.post("/v1/create-digital-human", human).await;
        let (status, answer) =
            house.ask("POST", "/v1/queue-simulation-run", json!({ "simulation_id": id.to_string() })).await;
        let answer = axum::body::to_bytes(answer, 1 << 20).await.expect("a body");
        (status, String::from_utf8_lossy(&answer).into_owned())
    };
    let (status, answer) = queue(json!({ "websocket_url": "ws://127.0.0.1:9/", "mode": "TEXT" })).await;
    assert_eq!((status, answer.contains("connection_type WEBSOCKET needs mode VOICE")), (400, true), "{answer}");
    let carried = json!({
        "websocket_url": "ws://127.0.0.1:9/", "websocket_dialect": "plivo_audio_streaming",
        "websocket_parameters": { "a": "not a word" },
    });
    let (status, answer) = queue(carried).await;
    assert_eq!((status, answer.contains("carries only letters and digits")), (400, true), "{answer}");
    house.stop().await;
}
