//! Alerts: violations, windows, and one message a change.

use ringer::config::{Notify, Secret};
use ringer::model::result::{MetricValue, ResultDoc};
use ringer::model::status::ResultStatus as S;
use serde_json::{Value, json};

use super::receiver::Receiver;
use super::world::World;
use crate::json::with;

/// Returns a world with an alert, `$alert`.
pub(super) async fn with_alert() -> World {
    let mut world = World::with_rows().await;
    let alert = world.post("/v1/create-alert", rule(json!({}))).await;
    world.call_it("alert", alert["id"].as_str().expect("an id"));
    world
}

/// Returns a rule that is broken by the second slow conversation within a minute.
fn rule(more: Value) -> Value {
    let rule = json!({
        "name": "Slow", "entity_type": "standard_metric", "entity_field": "avg_agent_latency",
        "operator": "greater_than", "comparison_value": "2", "min_events": 2, "threshold_time_interval": 60,
    });
    with(rule, more)
}

/// Ends a new result of the simulation, after what `change` does to it, and lets everybody see it.
async fn end(world: &World, change: impl FnOnce(&mut ResultDoc) + Send) -> i64 {
    let path = format!("/v1/simulation/{}/add-digital-humans", world.name("simulation"));
    let human: i64 = world.name("digital_human").parse().expect("an id");
    world.post(&path, json!({ "digital_human_ids": [human] })).await;
    let queued = world.post("/v1/queue-simulation-run", json!({ "simulation_id": world.name("simulation") })).await;
    let id: i64 = queued["simulation_result_ids"][0].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let way = [S::Initializing, S::Queued, S::Dispatched, S::Running, S::ConversationEnded, S::Evaluating];
    let organization = world.name("organization");
    for step in way.windows(2) {
        world
            .service
            .conversations()
            .advance(organization, id, step[0], step[1], |_| ())
            .await
            .expect("an allowed step");
    }
    world
        .service
        .conversations()
        .advance(organization, id, S::Evaluating, S::Completed, change)
        .await
        .expect("an allowed step");
    world.work_off().await;
    id
}

fn slow(seconds: f64) -> impl FnOnce(&mut ResultDoc) + Send {
    move |doc| {
        doc.body.metrics.push(MetricValue { name: "avg_agent_latency".into(), value: json!(seconds), note: None })
    }
}

async fn read_alerts(world: &World) -> Value {
    world.get("/v1/alerts").await["alerts"][0].clone()
}

#[tokio::test]
async fn every_field_is_read_back_and_changed() {
    let world = World::with_rows().await;
    let agent: i64 = world.name("agent").parse().expect("an id");
    let channel = json!({ "type": "email", "target": "a@b.example" });
    let all = rule(json!({
        "description": "d", "is_enabled": false, "notification_channels": [channel], "applies_to_all_agents": false,
        "agent_ids": [agent], "source_scope": "observability", "operator": "not_contains",
    }));
    let created = world.post("/v1/create-alert", all.clone()).await;
    for (name, value) in all.as_object().expect("an object") {
        let name = if name == "agent_ids" { "agents" } else { name };
        assert_eq!(&created[name], value, "{name}");
    }
    for (name, value) in [
        ("organization_id", json!(world.name("organization"))),
        ("last_triggered_at", Value::Null),
        ("trigger_count", json!(0)),
        ("in_alert", json!(false)),
        ("created_at", json!("2026-01-05T09:00:00.000000Z")),
        ("updated_at", Value::Null),
    ] {
        assert_eq!(created.get(name), Some(&value), "{name}");
    }
    assert!(created["created_by"].is_string(), "{created}");
    assert_eq!(created.as_object().map(|fields| fields.len()), Some(21));
    assert_eq!(world.get("/v1/alerts").await, json!({ "alerts": [created], "total_count": 1 }));
    world.service.clock().advance_ms(1000);
    let path = format!("/v1/update-alert/{}", created["id"].as_str().expect("an id"));
    let patch = json!({
        "name": null, "is_enabled": true, "description": null, "agent_ids": null, "notification_channels": null,
        "min_events": 3, "operator": null,
    });
    let updated = world.call("PUT", &path, patch).await;
    for (name, value) in [
        ("name", json!("Slow")),
        ("is_enabled", json!(true)),
        ("description", Value::Null),
        ("agents", Value::Null),
        ("notification_channels", json!([])),
        ("min_events", json!(3)),
        ("operator", json!("not_contains")),
        ("updated_at", json!("2026-01-05T09:00:01.000000Z")),
    ] {
        assert_eq!(updated.get(name), Some(&value), "{name}");
    }
    let path = format!("/v1/alert/{}", created["id"].as_str().expect("an id"));
    let deleted = world.call("DELETE", &path, Value::Null).await;
    assert_eq!(deleted, json!({ "message": "Alert deleted", "deleted_alert_id": created["id"] }));
    assert_eq!(world.send("DELETE", &path, &[], Vec::new()).await.status, 404);
    let defaults = json!({
        "name": "n", "entity_type": "metadata_field", "entity_field": "k", "operator": "equals", "comparison_value": "v",
    });
    let created = world.post("/v1/create-alert", defaults).await;
    for (name, value) in [
        ("is_enabled", json!(true)),
        ("applies_to_all_agents", json!(true)),
        ("agents", Value::Null),
        ("threshold_time_interval", json!(600)),
        ("min_events", json!(10)),
        ("source_scope", json!("all")),
    ] {
        assert_eq!(created.get(name), Some(&value), "{name}");
    }
}

#[tokio::test]
async fn enough_violations_in_the_window_are_an_alarm_until_there_are_fewer() {
    let receiver = Receiver::new(&[]).await;
    let world = World::with_rows_and(|settings| {
        settings.notify = Notify { key: Some(Secret::new("k".into())), ..Notify::default() };
    })
    .await;
    let channels = json!([{ "type": "webhook", "target": receiver.url("/hook") }]);
    world.post("/v1/create-alert", rule(json!({ "notification_channels": channels }))).await;
    let state = async || (read_alerts(&world).await["in_alert"].clone(), receiver.requests().len());
    let first = end(&world, slow(2.5)).await;
    end(&world, slow(1.5)).await;
    assert_eq!(state().await, (json!(false), 0), "one violation");
    world.service.clock().advance_ms(30_000);
    let second = end(&world, slow(3.0)).await;
    assert_eq!(state().await, (json!(true), 1), "two in a minute");
    end(&world, slow(4.0)).await;
    assert_eq!(state().await, (json!(true), 1), "told once");
    // The first leaves the window: two are left.
    world.service.clock().advance_ms(30_000);
    world.work_off().await;
    assert_eq!(state().await, (json!(true), 1));
    world.service.clock().advance_ms(29_999);
    world.work_off().await;
    assert_eq!(state().await, (json!(true), 1));
    world.service.clock().advance_ms(1);
    world.work_off().await;
    assert_eq!(state().await, (json!(false), 2), "the window is empty");
    let alert = read_alerts(&world).await;
    assert_eq!((&alert["trigger_count"], &alert["updated_at"]), (&json!(1), &Value::Null));
    assert_eq!(alert["last_triggered_at"], "2026-01-05T09:00:30.000000Z");

    let [triggered, resolved] = [0, 1].map(|n| receiver.requests()[n].clone());
    let body = triggered.json();
    let names: Vec<&String> = body.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["kind", "title", "text", "at", "links", "data"]);
    assert_eq!(body["kind"], "alert_triggered");
    assert_eq!(body["title"], "Alert triggered: Slow");
    assert_eq!(body["text"], "avg_agent_latency greater_than 2: 2 time(s) in 60 s");
    assert_eq!(body["data"]["alert_id"], alert["id"]);
    assert_eq!(resolved.json()["kind"], "alert_resolved");
    let header = |name: &str| triggered.headers[name].to_str().expect("text").to_owned();
    assert_eq!((triggered.path.as_str(), header("content-type").as_str()), ("/hook", "application/json"));
    assert_eq!((header("x-svc-event").as_str(), header("x-svc-signature").len()), ("alert_triggered", 64));
    assert_eq!(header("user-agent"), "Ringer/0.1.0");
    assert_ne!(header("x-svc-event-id"), header("x-svc-delivery"));

    let path = format!("/v1/alerts/{}/results", alert["id"].as_str().expect("an id"));
    let results = world.get(&path).await;
    assert_eq!(
        (&results["total_count"], &results["total_pages"], &results["page_size"]),
        (&json!(3), &json!(1), &json!(50))
    );
    let oldest = json!({
        "id": results["results"][2]["id"], "alert_id": alert["id"], "triggered_at": "2026-01-05T09:00:00.000000Z",
        "value": "2.5", "kind": "simulation", "source_id": first.to_string(),
    });
    assert_eq!(results["results"][2], oldest);
    let newer: Vec<&Value> = (0..2).map(|n| &results["results"][n]["source_id"]).collect();
    assert!(newer.contains(&&json!(second.to_string())), "{newer:?}");
    assert_eq!(world.get(&format!("{path}?page=2&page_size=2")).await["results"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_window_may_reach_back_for_ever() {
    let world = World::with_rows().await;
    world.post("/v1/create-alert", rule(json!({ "threshold_time_interval": i64::MAX, "min_events": 1 }))).await;
    end(&world, slow(2.5)).await;
    assert_eq!(read_alerts(&world).await["in_alert"], true);
}

#[tokio::test]
async fn a_rule_looks_only_at_what_it_names() {
    let world = World::with_rows().await;
    let create = async |more: Value| {
        let alert = world.post("/v1/create-alert", rule(more)).await;
        format!("/v1/alerts/{}/results", alert["id"].as_str().expect("an id"))
    };
    let goal = json!({ "entity_type": "custom_goal", "entity_field": "goal", "operator": "equals", "comparison_value": "false" });
    let metric = json!({ "entity_type": "custom_metric", "entity_field": "Polite", "operator": "equals", "comparison_value": "fail" });
    let field = json!({ "entity_type": "metadata_field", "entity_field": "tier", "operator": "contains", "comparison_value": "gold" });
    let all = [
        (create(json!({})).await, 1),
        (create(json!({ "is_enabled": false })).await, 0),
        (create(json!({ "source_scope": "observability" })).await, 0),
        (create(json!({ "source_scope": "simulation" })).await, 1),
        (create(json!({ "applies_to_all_agents": false })).await, 0),
        (create(json!({ "entity_field": "no_such_metric" })).await, 0),
        (create(json!({ "operator": "less_than" })).await, 0),
        (create(goal).await, 1),
        (create(metric).await, 1),
        (create(field).await, 1),
        // Timing of a late engine is not to be relied on; its length is.
        (create(json!({ "entity_field": "duration", "comparison_value": "1" })).await, 2),
    ];
    let judged = |doc: &mut ResultDoc| {
        slow(2.5)(doc);
        let evaluation = json!({
            "goal_success": false,
            "custom_metrics": [{ "name": "Polite", "response_type": "pass_fail", "response_value": "fail", "status": "evaluated" }],
        });
        doc.body.evaluations.push(serde_json::from_value(evaluation).expect("an evaluation"));
        doc.body.metadata.insert("tier".into(), json!("gold plus"));
        doc.body.metrics.push(MetricValue { name: "duration".into(), value: json!(9000), note: None });
    };
    end(&world, judged).await;
    let late = |doc: &mut ResultDoc| {
        slow(9.0)(doc);
        doc.body.metrics.push(MetricValue { name: "duration".into(), value: json!(9000), note: None });
        let quality = json!({ "pacing_p99_ms": 50.0, "late_frames": 9, "lost_packets": 0, "concealed_ms": 0, "trusted": false, "echo": null });
        doc.body.engine_quality = Some(serde_json::from_value(quality).expect("a quality"));
    };
    end(&world, late).await;
    for (n, (path, expect)) in all.iter().enumerate() {
        assert_eq!(world.get(path).await["total_count"], *expect, "rule {n}");
    }
}

#[tokio::test]
async fn what_cannot_be_delivered_is_tried_again_and_said() {
    let receiver = Receiver::new(&[500, 302, 503]).await;
    let world = World::with_rows().await;
    let channels = json!([
        { "type": "slack", "target": receiver.url("/chat") }, { "type": "pager", "target": "key" },
        { "type": "email", "target": "a@b.example" }, { "type": "slack", "target": "C123" },
    ]);
    world.post("/v1/create-alert", rule(json!({ "min_events": 1, "notification_channels": channels }))).await;
    end(&world, slow(2.5)).await;
    let about = async || {
        let subject = read_alerts(&world).await["id"].as_str().expect("an id").to_owned();
        let mut about =
            world.service.watching().notifications_about(world.name("organization"), &subject).await.expect("a list");
        about.retain(|one| one.notice.kind.as_str() == "alert_triggered");
        let shown = |one: &ringer::model::notification::NotificationDoc| {
            (one.channel.target.clone(), one.status.as_str(), one.attempts, one.error.clone())
        };
        about.iter().map(shown).collect::<Vec<_>>()
    };
    let not_configured = Some("channel not configured".to_owned());
    for target in ["key", "a@b.example", "C123"] {
        assert!(about().await.contains(&(target.into(), "failed", 1, not_configured.clone())), "{target}");
    }
    let chat = receiver.url("/chat");
    assert!(about().await.contains(&(chat.clone(), "pending", 1, Some("answered 500".into()))));
    assert_eq!(
        receiver.requests()[0].json(),
        json!({ "text": "Alert triggered: Slow: avg_agent_latency greater_than 2: 1 time(s) in 60 s" })
    );
    // 5 s, 30 s and 2 min later, a fifth more or less.
    for (early, late, attempts) in [(3900, 2200, 2), (23_900, 12_200, 3), (95_900, 48_200, 4)] {
        world.service.clock().advance_ms(early);
        world.work_off().await;
        assert_eq!(
            receiver.requests().iter().filter(|one| !one.json()["text"].to_string().contains("resolved")).count(),
            attempts - 1,
            "too early"
        );
        world.service.clock().advance_ms(late);
        world.work_off().await;
        assert_eq!(
            receiver.requests().iter().filter(|one| !one.json()["text"].to_string().contains("resolved")).count(),
            attempts
        );
    }
    assert!(about().await.contains(&(chat, "sent", 4, None)), "{:?}", about().await);
}
