//! Tests of agents' lines through the API: each channel up to its first sound, the step that fails, and nothing kept.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::far_sides::{KEY, Platforms};
use super::server::{Line, Server, speech};
use crate::calls::house::House;
use crate::peers::Peer;

/// Returns the outcome of the test of an agent that is not stored.
async fn check(house: &House, agent: Value) -> Value {
    let mut body = json!({ "name": "Desk" });
    body.as_object_mut().expect("an object").extend(agent.as_object().expect("an object").clone());
    house.post("/v1/agents/check", json!({ "agent": body })).await
}

/// Returns the names of the steps, and the code of the last one.
fn steps(tested: &Value) -> (Vec<&str>, Option<&str>) {
    let steps = tested["steps"].as_array().expect("a list");
    assert!(steps.iter().all(|step| step["ms"].is_u64()), "{tested}");
    assert_eq!(tested["ok"], steps.iter().all(|step| step["ok"] == true), "{tested}");
    let names = steps.iter().map(|step| step["name"].as_str().expect("a name")).collect();
    (names, steps.last().expect("a step")["code"].as_str())
}

const ALL: [&str; 5] = ["settings", "resolved", "connected", "answered", "first_sound"];

#[tokio::test(flavor = "multi_thread")]
async fn the_lines_of_agents_are_tested() {
    let speaks = Server::start(|mut line: Line| async move {
        line.send(Message::binary(speech(2.0))).await;
        line.until_end().await;
    })
    .await;
    let refuses = Server::answering("HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n".to_owned()).await;
    let busy = Peer::scenario("busy");
    let house = House::new().await;
    let (connected, answered) = (&ALL[..3], &ALL[..4]);
    let text = |url: &str| json!({ "mode": "TEXT", "http_webhook": url });
    let webhook = format!("http://{}/", speaks.address);
    for (agent, expect, code) in [
        (json!({ "websocket_url": speaks.url() }), &ALL[..], None),
        (json!({ "websocket_url": refuses.url() }), answered, Some("WEBSOCKET_AUTH_FAILED")),
        (json!({ "websocket_url": "ws://127.0.0.1:1/" }), connected, Some("NOT_CONNECTED")),
        (json!({ "sip_uri": format!("sip:desk@{}", busy.sip) }), answered, Some("CALL_REJECTED")),
        (text(&webhook), connected, None),
        (text("http://127.0.0.1:1/"), connected, Some("NOT_CONNECTED")),
        (json!({}), &ALL[..1], Some("NO_CONNECTION_TYPE")),
        (json!({ "sip_uri": format!("sip:desk@{}", busy.sip), "type": "OUTBOUND" }), &ALL[..1], None),
    ] {
        let tested = check(&house, agent.clone()).await;
        assert_eq!(steps(&tested), (expect.to_vec(), code), "{agent}: {tested}");
    }
    let runs = house.call("GET", "/v1/simulation-runs", Value::Null).await;
    assert_eq!(runs["simulation_runs"], json!([]), "nothing is kept");
    let results = house.folder.path().join("results");
    assert!(!results.exists() || std::fs::read_dir(results).expect("a folder").next().is_none());
    house.stop().await;
    speaks.stop().await;
    refuses.stop().await;
}

/// Agents that are written to are connected to by their adapter's address; codes over SIP are those of the platform.
#[tokio::test(flavor = "multi_thread")]
async fn the_lines_of_platforms_without_a_socket_are_tested() {
    let server = Server::answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}".to_owned()).await;
    let asks = Peer::scenario("challenge");
    let house = House::with_trunks(&format!(
        "[adapters.P10]\npreset = 'dialog_interact'\nurl = 'http://{}/u/{{{{conversation.id}}}}'\n\
         [adapters.P8]\ntransport = 'http_chat'\nurl = 'http://127.0.0.1:1/'\nreply_pointer = '/a'\n\
         [adapters.P8.body]\ntext = '{{{{message.text}}}}'\n\
         [adapters.P4]\ntransport = 'sip'\nurl = 'sip:{{{{agent.id}}}}@{}'",
        server.address, asks.sip
    ))
    .await;
    let stored = json!({ "P4_api_key": "k", "P8_credentials": "k", "P10_api_key": "k" });
    house.call("PATCH", "/v1/integrations", stored).await;
    let p8 = json!({ "mode": "TEXT", "P8_base_url": "https://h.example", "P8_domain_code": "d", "P8_flow_name": "f" });
    for (agent, expect, code) in [
        (json!({ "mode": "TEXT", "P10_agent_token": "t" }), &ALL[..3], None),
        (p8, &ALL[..3], Some("NOT_CONNECTED")),
        (json!({ "P4_agent_id": "desk" }), &ALL[..4], Some("P4_AUTH_FAILED")),
    ] {
        let tested = check(&house, agent.clone()).await;
        assert_eq!(steps(&tested), (expect.to_vec(), code), "{agent}: {tested}");
    }
    house.stop().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lines_of_platforms_are_tested_with_their_credentials() {
    let platforms = Platforms::start().await;
    let of = |name: &str| platforms.addresses.iter().find(|(known, _)| *known == name).expect("it is there").1;
    let (realtime, session) = (of("openai_realtime"), of("ultravox"));
    let house = House::with_trunks(&format!(
        "[websocket]\nretries = 0\n[adapters.P4]\npreset = 'openai_realtime'\nurl = 'ws://{realtime}/v1/realtime'\n\
         [adapters.P3]\npreset = 'ultravox'\nsession_url = 'http://{session}/api/agents/{{{{agent.id}}}}/calls'"
    ))
    .await;
    let with_session = ["settings", "session", "resolved", "connected", "answered", "first_sound"];
    let (p3, p4) = (json!({ "P3_agent_id": "desk" }), json!({ "P4_agent_id": "desk" }));
    let tested = check(&house, p4.clone()).await;
    assert_eq!(steps(&tested), (vec!["settings"], Some("MISSING_P4_INTEGRATION")), "{tested}");
    for (key, p3_steps, p3_code, p4_steps, p4_code) in [
        ("wrong", &with_session[..2], Some("P3_AUTH_FAILED"), &ALL[..4], Some("P4_AUTH_FAILED")),
        (KEY, &with_session[..], None, &ALL[..], None),
    ] {
        house.call("PATCH", "/v1/integrations", json!({ "P3_api_key": key, "P4_api_key": key })).await;
        for (agent, expect, code) in [(&p3, p3_steps, p3_code), (&p4, p4_steps, p4_code)] {
            let tested = check(&house, agent.clone()).await;
            assert_eq!(steps(&tested), (expect.to_vec(), code), "{agent}: {tested}");
            assert!(!tested.to_string().contains(KEY), "{tested}");
        }
    }
    let added = house.post("/v1/add-agent", json!({ "name": "Desk", "P4_agent_id": "desk" })).await;
    let path = format!("/v1/agents/{}/test-connection", added["agent_id"]);
    assert_eq!(steps(&house.post(&path, Value::Null).await), (ALL.to_vec(), None));
    assert_eq!(house.ask("POST", "/v1/agents/999/test-connection", Value::Null).await.0, 404);
    house.stop().await;
    platforms.stop().await;
}
