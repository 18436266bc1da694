//! Webhooks over HTTP: every answer in its whole shape.

use ringer::config::{Notify, Secret};
use serde_json::{Value, json};

use super::receiver::{Receiver, Relay};
use super::world::World;

const URL: &str = "http://127.0.0.1:9/hook";

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[tokio::test]
async fn a_webhook_from_creation_to_deletion() {
    let world = World::with_rows().await;
    let agent: i64 = world.name("agent").parse().expect("a number");
    let folder = world.post("/v1/create-folder", json!({ "name": "f" })).await["id"].clone();
    let written = json!({
        "url": URL, "event_types": ["simulation_ended", "observability_call_evaluated"], "agent_ids": [agent],
        "folder_ids": [folder], "tag": "t", "enabled": false, "description": "d",
    });
    world.service.clock().advance_ms(1000);
    let made = world.post("/v1/webhooks", written.clone()).await;
    let shape = "id organization_id url event_types agent_ids folder_ids tag enabled description created_at updated_at \
                 last_status consecutive_failures";
    let shape: Vec<&str> = shape.split_whitespace().collect();
    assert_eq!(keys(&made), [shape.clone(), vec!["signing_key"]].concat());
    let key = made["signing_key"].as_str().expect("a key").to_owned();
    assert!(key.len() == 64 && key.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let path = format!("/v1/webhooks/{}", made["id"].as_str().expect("an id"));
    let read = world.get(&path).await;
    assert_eq!(keys(&read), shape);
    for (name, value) in written.as_object().expect("an object") {
        assert_eq!(&read[name], value, "{name}");
    }
    assert_eq!(read["organization_id"], world.name("organization"));
    assert_eq!(read["created_at"], "2026-01-05T09:00:01.000000Z");
    assert_eq!((&read["last_status"], &read["consecutive_failures"]), (&Value::Null, &json!(0)));
    let all = world.get("/v1/webhooks").await;
    assert_eq!((all["total_count"].as_i64(), &all["webhooks"][0]), (Some(2), &read));

    let id = json!({ "webhook_id": made["id"] });
    let answer = world.post("/v1/get-signing-key", id.clone()).await;
    assert_eq!(answer, json!({ "signing_key": key, "message": "Signing key retrieved" }));
    let answer = world.post("/v1/generate-signing-key", id.clone()).await;
    assert_eq!(answer["message"], "Signing key generated");
    assert_ne!(answer["signing_key"], key.as_str());
    assert_eq!(world.post("/v1/get-signing-key", id).await["signing_key"], answer["signing_key"]);

    let nulls = json!({
        "url": null, "event_types": null, "agent_ids": null, "folder_ids": null, "tag": null, "enabled": null,
        "description": null,
    });
    world.service.clock().advance_ms(1000);
    let read = world.call("PUT", &path, nulls).await;
    for (name, expect) in [
        ("url", json!(URL)),
        ("event_types", written["event_types"].clone()),
        ("agent_ids", Value::Null),
        ("folder_ids", Value::Null),
        ("tag", Value::Null),
        ("enabled", json!(false)),
        ("description", Value::Null),
        ("updated_at", json!("2026-01-05T09:00:02.000000Z")),
    ] {
        assert_eq!(read[name], expect, "{name}");
    }
    let deleted = world.call("DELETE", &path, Value::Null).await;
    assert_eq!(deleted, json!({ "message": "Webhook deleted", "deleted_webhook_id": made["id"] }));
    assert_eq!(world.send("DELETE", &path, &[], Vec::new()).await.status, 404);
}

#[tokio::test]
async fn what_is_deleted_is_named_no_more_and_an_empty_list_is_not_all() {
    let world = World::with_rows().await;
    let kept: i64 = world.name("agent").parse().expect("a number");
    let agent = world.post("/v1/add-agent", json!({ "name": "Gone" })).await["agent_id"].clone();
    let folder = world.post("/v1/create-folder", json!({ "name": "f" })).await["id"].clone();
    let path = |kind: &str, made: &Value| format!("/v1/{kind}/{}", made["id"].as_str().expect("an id"));
    let webhook =
        json!({ "url": URL, "event_types": ["simulation_ended"], "agent_ids": [agent, kept], "folder_ids": [folder] });
    let webhook = path("webhooks", &world.post("/v1/webhooks", webhook).await);
    let alert = json!({
        "name": "a", "entity_type": "metadata_field", "entity_field": "k", "operator": "equals", "comparison_value": "v",
        "applies_to_all_agents": false, "agent_ids": [agent],
    });
    let alert = path("update-alert", &world.post("/v1/create-alert", alert).await);
    world.call("DELETE", &format!("/v1/agent/{agent}"), Value::Null).await;
    world.call("DELETE", &format!("/v1/folder/{}", folder.as_str().expect("an id")), Value::Null).await;
    let webhook = world.call("PUT", &webhook, json!({ "enabled": false })).await;
    assert_eq!((&webhook["agent_ids"], &webhook["folder_ids"]), (&json!([kept]), &json!([])));
    let alert = world.call("PUT", &alert, json!({ "is_enabled": false })).await;
    assert_eq!((&alert["agents"], &alert["is_enabled"]), (&json!([]), &json!(false)));
}

#[tokio::test]
async fn a_test_is_sent_at_once_and_logged() {
    let world = World::with_rows().await;
    let answer = world.post("/v1/webhooks/$webhook/test", Value::Null).await;
    assert_eq!(
        answer,
        json!({ "delivered": false, "status": null,
            "message": "Not delivered: no connection: Connection refused (os error 111)" })
    );
    let log = world.get("/v1/webhooks/$webhook/deliveries").await;
    assert_eq!(keys(&log), ["deliveries", "total_count", "page", "page_size", "total_pages"]);
    assert_eq!((&log["total_count"], &log["page_size"], &log["total_pages"]), (&json!(1), &json!(50), &json!(1)));
    let attempt = &log["deliveries"][0];
    assert_eq!(keys(attempt), ["id", "event", "attempt", "status", "error", "at", "body_sha256"]);
    assert_eq!((&attempt["event"], &attempt["attempt"]), (&json!("ping"), &json!(1)));
    let second = world.get("/v1/webhooks/$webhook/deliveries?page=2&page_size=1").await;
    assert_eq!((&second["deliveries"], &second["total_pages"]), (&json!([]), &json!(1)));
}

#[tokio::test]
async fn an_address_inside_is_refused_when_the_server_is_open_to_all() {
    let world = World::with_settings(|settings| {
        settings.allow_private_targets = false;
        settings.require_https_webhooks = true;
    });
    let world = world.await;
    for (url, expect) in [
        ("https://10.0.0.1/", "url points to a host that is not allowed"),
        ("https://0x7f.1/", "url points to a host that is not allowed"),
        ("https://[::ffff:127.0.0.1]/", "url points to a host that is not allowed"),
        ("https://localhost/", "url points to a host that is not allowed"),
        ("http://93.184.216.34/", "url must be an https URL"),
        ("https://93.184.216.34/", ""),
        ("https://nobody.invalid/", ""),
    ] {
        let body = json!({ "url": url, "event_types": ["simulation_ended"] }).to_string().into_bytes();
        let answer = world.send("POST", "/v1/webhooks", &[], body).await;
        let (status, detail) = if expect.is_empty() { (200, Value::Null) } else { (400, json!(expect)) };
        assert_eq!((answer.status, &answer.json()["detail"]), (status, &detail), "{url}");
    }
}

impl World {
    /// Tells every event until each is told or given up.
    async fn tell_all(&self) {
        let queue = self.service.queue();
        while let Some(due_ms) = queue.next_event_ms().await.expect("answers") {
            let clock = self.service.clock();
            clock.advance_ms((due_ms - clock.now_ms()).max(0));
            while let Some(outgoing) = queue.claim_event().await.expect("claims") {
                self.service.watching().deliver(outgoing).await.expect("settles");
            }
        }
        self.work_off().await;
    }

    /// Evaluates calls, each an event.
    async fn evaluate_calls(&self, count: usize) {
        for _ in 0..count {
            let words =
                json!([{ "start_offset_ms": 0, "end_offset_ms": 900, "speaker": "AGENT", "utterance": "Hello." }]);
            let people = json!([{ "role": "AGENT", "spoke_first": true }, { "role": "USER" }]);
            let call = json!({
                "agent_id": self.name("agent"), "start_time_utc": "2026-01-05T08:00:00Z", "participants": people,
                "transcript": words,
            });
            self.post("/v1/evaluate", call).await;
        }
        self.work_off().await;
    }
}

/// Returns a world whose organization `a` has an administrator; its mails go to `relay`.
async fn with_admins(relay: &Relay, admins: &[(&str, &str)]) -> World {
    let admins = admins.iter().map(|(name, list)| ((*name).to_owned(), (*list).to_owned())).collect();
    World::with_rows_and(|settings| {
        settings.notify = Notify {
            smtp_url: Some(Secret::new(format!("smtp://{}", relay.address))),
            from: Some("ringer@desk.example".into()),
            admins,
            ..Notify::default()
        };
    })
    .await
}

fn mailed_to(relay: &Relay) -> Vec<String> {
    let lines = relay.lines();
    lines.iter().filter_map(|line| line.strip_prefix("RCPT TO:<")?.strip_suffix('>').map(String::from)).collect()
}

/// Returns the received mail with its soft line breaks joined (quoted-printable, RFC 2045 6.7).
fn mail_text(relay: &Relay) -> String {
    relay.lines().join("\n").replace("=\n", "")
}

#[tokio::test]
async fn administrators_are_told_once_of_a_webhook_that_is_gone() {
    let relay = Relay::new().await;
    let receiver = Receiver::new(&[200, 410]).await;
    let world = with_admins(&relay, &[("a", "ann@desk.example, bob@desk.example"), ("b", "eve@else.example")]).await;
    let hook = json!({ "url": receiver.url("/hook?key=secret"), "event_types": ["observability_call_evaluated"] });
    let made = world.post("/v1/webhooks", hook).await;
    world.evaluate_calls(1).await;
    world.tell_all().await;
    assert_eq!(mailed_to(&relay), Vec::<String>::new(), "what is delivered disables nothing");
    world.evaluate_calls(2).await;
    world.tell_all().await;
    let id = made["id"].as_str().expect("an id");
    assert_eq!(world.get(&format!("/v1/webhooks/{id}")).await["enabled"], false);
    assert_eq!(mailed_to(&relay), ["ann@desk.example", "bob@desk.example"]);
    let text = mail_text(&relay);
    assert!(text.lines().any(|line| line == "Subject: A webhook is disabled"), "{text}");
    assert!(text.lines().any(|line| line.contains(id) && line.contains("answered 410")), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

#[tokio::test]
async fn administrators_are_told_after_fifty_events_that_failed_for_good() {
    let relay = Relay::new().await;
    let receiver = Receiver::new(&[500; 7 * 50]).await;
    let world = with_admins(&relay, &[("a", "ann@desk.example")]).await;
    let hook = json!({ "url": receiver.url("/hook"), "event_types": ["observability_call_evaluated"] });
    let made = world.post("/v1/webhooks", hook).await;
    let path = format!("/v1/webhooks/{}", made["id"].as_str().expect("an id"));
    world.evaluate_calls(49).await;
    world.tell_all().await;
    let read = world.get(&path).await;
    assert_eq!((&read["enabled"], &read["consecutive_failures"]), (&json!(true), &json!(49)));
    assert_eq!(mailed_to(&relay), Vec::<String>::new());
    world.evaluate_calls(1).await;
    world.tell_all().await;
    assert_eq!(world.get(&path).await["enabled"], false);
    assert_eq!(mailed_to(&relay), ["ann@desk.example"]);
    assert!(mail_text(&relay).contains("50 events in a row failed"));
}

#[tokio::test]
async fn nobody_is_told_where_nobody_is_named() {
    let relay = Relay::new().await;
    let receiver = Receiver::new(&[410]).await;
    let world = with_admins(&relay, &[("b", "eve@else.example")]).await;
    let hook = json!({ "url": receiver.url("/hook"), "event_types": ["observability_call_evaluated"] });
    let made = world.post("/v1/webhooks", hook).await;
    world.evaluate_calls(1).await;
    world.tell_all().await;
    let path = format!("/v1/webhooks/{}", made["id"].as_str().expect("an id"));
    assert_eq!(world.get(&path).await["enabled"], false);
    assert_eq!(mailed_to(&relay), Vec::<String>::new());
}
