//! Suites that are read into bodies, the key that asks, and links for colleagues.

use std::sync::Arc;

use ringer::api::Setup;
use ringer::suite::bodies::bodies_of;
use serde_json::json;

use super::world::World;

#[tokio::test]
async fn a_suite_is_read_into_bodies_that_can_be_created() {
    let setup = Setup { suites: Some(Arc::new(bodies_of)), ..Setup::default() };
    let world = World::with_setup(setup).await;
    let yaml = "version: 1\nconnect: { sip: \"sip:desk@127.0.0.1:5080\" }\nspawn: { command: [true] }\nscenarios:\n  \
                - name: books a visit\n    goal: Book a visit.\n    noise: cafe\n    traits: { day: tuesday }\n";
    let suite = world.post("/v1/suites/read", json!({ "yaml": yaml })).await;
    assert_eq!(suite["warnings"], json!(["spawn: only `ringer run` starts a command"]));
    let mut agent = suite["agent"].clone();
    agent["name"] = json!("Desk");
    let agent = world.post("/v1/add-agent", agent).await["agent_id"].to_string();
    let mut simulation = suite["simulation"].clone();
    simulation["agent_id"] = json!(agent);
    let simulation = world.post("/v1/create-simulation", simulation).await["simulation_id"].clone();
    let body = json!({ "digital_humans": suite["digital_humans"], "simulation_ids": [simulation] });
    world.post("/v1/create-digital-humans", body).await;
    let human = world.get("/v1/digital-humans").await["digital_humans"][0].clone();
    assert_eq!((&human["name"], &human["background_noise"]), (&json!("books a visit"), &json!("cafe")));
    for (yaml, part) in
        [("scenarios: [", "suite.yaml:2:1"), ("version: 1\nconnect: {}\nscenarios: []\n", "suite.yaml:2")]
    {
        let answer = world.send("POST", "/v1/suites/read", &[], json!({ "yaml": yaml }).to_string().into_bytes()).await;
        let detail = answer.json()["detail"].as_str().unwrap_or_default().to_owned();
        assert!(answer.status == 400 && detail.contains(part), "{detail}");
    }
    let none = World::new().await;
    let answer = none.send("POST", "/v1/suites/read", &[], json!({ "yaml": yaml }).to_string().into_bytes()).await;
    assert_eq!(answer.status, 503);
}

#[tokio::test]
async fn a_key_is_told_its_own_scope() {
    let world = World::new().await;
    for name in ["admin", "write", "read"] {
        let headers = [("x-api-key".to_owned(), format!("${name}"))];
        let own = world.send("GET", "/v1/key", &headers, Vec::new()).await.json();
        assert_eq!((&own["scope"], &own["name"]), (&json!(name), &json!(name)), "{own}");
        assert!(!own["api_key"].as_str().unwrap_or_default().contains(world.name(name)), "its text is not told");
    }
    assert_eq!(world.send("GET", "/v1/key", &[("x-api-key".to_owned(), String::new())], Vec::new()).await.status, 401);
}

#[tokio::test]
async fn a_link_opens_the_page_once_with_a_key_that_reads_and_ends() {
    let world = World::new().await;
    let none = world.send("POST", "/v1/page-links", &[], b"{}".to_vec()).await;
    let detail = "server.public_url is not set in ringer.toml: a link needs an address";
    assert_eq!((none.status, &none.json()["detail"]), (400, &json!(detail)));
    let world = World::with_settings(|settings| settings.public_url = Some("https://calls.example".to_owned())).await;
    let open = async |token: &str| {
        world.send("POST", "/v1/page-session", &[], json!({ "token": token }).to_string().into_bytes()).await
    };
    let made = world.post("/v1/page-links", json!({ "hours": 2 })).await;
    let address = made["address"].as_str().expect("an address");
    let token = address.strip_prefix("https://calls.example/#start=").expect("a token").to_owned();
    assert_eq!(made["until"], "2026-01-05T11:00:00.000000Z");
    let key = open(&token).await.json();
    assert_eq!((&key["scope"], &key["id"]), (&json!("read"), &made["key_id"]));
    assert_eq!(open(&token).await.status, 403, "it is good once");
    let text = key["api_key"].as_str().expect("a text").to_owned();
    let status = async |text: &str| {
        world.send("GET", "/v1/key", &[("x-api-key".to_owned(), text.to_owned())], Vec::new()).await.status
    };
    assert_eq!((status(&text).await, status(&token).await), (200, 401));
    let other = world.post("/v1/page-links", json!({ "hours": 2 })).await;
    world.service.clock().advance_ms(2 * 3_600_000);
    assert_eq!(status(&text).await, 401, "its key has ended");
    let late = other["address"].as_str().and_then(|address| address.split('=').nth(1)).expect("a token").to_owned();
    assert_eq!(open(&late).await.status, 403);
    let kept = world.post("/v1/page-links", json!({})).await;
    let id = kept["key_id"].as_str().expect("an id");
    assert_eq!(world.send("DELETE", &format!("/v1/api-keys/{id}"), &[], Vec::new()).await.status, 204);
    let revoked = kept["address"].as_str().and_then(|address| address.split('=').nth(1)).expect("a token").to_owned();
    assert_eq!(open(&revoked).await.status, 403);
    for hours in [0, 169] {
        let body = json!({ "hours": hours }).to_string().into_bytes();
        assert_eq!(world.send("POST", "/v1/page-links", &[], body).await.status, 422, "{hours}");
    }
}
