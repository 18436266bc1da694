//! Custom metrics: all of their fields, pages, several at once, and drafts by a language model.

use std::sync::Arc;

use ringer::model::language_model::{ModelKind, ModelRecord};
use ringer::provider::testing::{Reply, ScriptedModel};
use serde_json::{Map, Value, json};

use super::judged::answering;
use super::receiver::Receiver;
use super::world::World;
use crate::json::with;

async fn agents(world: &World, count: usize) -> Vec<i64> {
    let mut ids = Vec::new();
    for n in 0..count {
        let added = world.post("/v1/add-agent", json!({ "name": n.to_string() })).await;
        ids.push(added["agent_id"].as_i64().expect("an id"));
    }
    ids
}

fn metric(name: &str, agent_ids: Value) -> Value {
    json!({ "name": name, "description": "d", "response_type": "pass_fail", "agent_ids": agent_ids })
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().expect("a list").iter().map(|metric| metric["name"].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn every_field_of_a_custom_metric() {
    let world = World::with_settings(|settings| {
        let record = |kind, model: &str| ModelRecord {
            name: "default".to_owned(),
            kind,
            model: model.to_owned(),
            is_default: true,
        };
        settings.models = Arc::new(vec![record(ModelKind::Language, "m1"), record(ModelKind::Audio, "m2")]);
    })
    .await;
    assert_eq!(agents(&world, 2).await, [1, 2]);
    let fixture: Map<String, Value> =
        serde_json::from_str(include_str!("../../fixtures/api/custom_metric.json")).expect("an object");
    let document = world.get("/openapi.json").await;
    let declared = &document["components"]["schemas"]["CustomMetricSpec"]["properties"];
    for name in declared.as_object().expect("fields").keys() {
        assert!(fixture.contains_key(name), "the fixture has no {name}");
    }
    let made = world.post("/v1/create-custom-metric", Value::Object(fixture.clone())).await;
    let path = format!("/v1/update-custom-metric/{}", made["id"].as_str().expect("an id"));
    for (name, value) in fixture.iter().filter(|(name, _)| *name != "agent_id") {
        assert_eq!(&made[name], value, "{name}");
    }
    for (name, expect) in [
        ("eval_modality_auto_selected", json!(false)),
        ("eval_route", json!("AUDIO")),
        ("eval_route_auto_selected", json!(false)),
        ("organization_id", json!(world.name("organization"))),
        ("workspace_id", json!(world.name("organization"))),
        ("created_at", json!("2026-01-05T09:00:00.000000Z")),
        ("updated_at", json!("2026-01-05T09:00:00.000000Z")),
    ] {
        assert_eq!(made.get(name), Some(&expect), "{name}");
    }
    let users = world.get("/v1/users").await;
    let author = users.as_array().expect("users").iter().find(|user| user["id"] == made["created_by"]);
    assert_eq!((author.map(|user| &user["name"]), &made["updated_by"]), (Some(&json!("admin")), &made["created_by"]));
    assert_eq!(made.as_object().map(Map::len), Some(fixture.len() - 1 + 10));
    assert_eq!(world.get(&path.replace("update-", "")).await, made);
    // The options of an enum cannot be cleared: they are needed.
    let cleared = fixture.keys().filter(|name| *name != "enum_options");
    let nulls: Map<String, Value> = cleared.map(|name| (name.clone(), Value::Null)).collect();
    let read = world.call("PUT", &path, Value::Object(nulls)).await;
    for (name, expect) in [
        ("name", json!("Details confirmed")),
        ("description", fixture["description"].clone()),
        ("response_type", json!("enum")),
        ("prompt", Value::Null),
        ("agent_ids", json!([])),
        ("eval_method", json!("llm_judge")),
        ("settings", json!({})),
        ("min_value", Value::Null),
        ("json_schema", Value::Null),
        ("temperature", Value::Null),
        ("tags", json!([])),
        ("allow_not_applicable", json!(true)),
        ("svc_as_code_id", Value::Null),
    ] {
        assert_eq!(read[name], expect, "{name}");
    }
}

#[tokio::test]
async fn each_response_type_has_its_defaults() {
    let world = World::new().await;
    let cases = [
        ("pass_fail", json!({}), "llm_judge"),
        ("yes_no", json!({}), "llm_judge"),
        ("qualitative", json!({}), "llm_judge"),
        ("quantitative", json!({ "min_value": 0, "max_value": 10 }), "llm_judge"),
        ("json", json!({}), "llm_judge"),
        ("enum", json!({ "enum_options": ["a", "b"] }), "llm_judge"),
        ("int", json!({}), "llm_judge"),
        ("float", json!({}), "llm_judge"),
        ("boolean", json!({}), "llm_judge"),
        ("tool_call", json!({ "tool_names": ["book"] }), "deterministic"),
    ];
    for (kind, more, method) in cases {
        let body = json!({ "name": kind, "description": "Is the tone warm?", "response_type": kind });
        let made = world.post("/v1/create-custom-metric", with(body, more)).await;
        for (name, expect) in [
            ("response_type", json!(kind)),
            ("eval_method", json!(method)),
            ("metric_type", json!("custom")),
            ("eval_segment", json!("all")),
            ("scope", json!("all")),
            ("source", json!("custom")),
            ("settings", json!({})),
            // No model that hears is configured, so even a tone is judged by its words.
            ("eval_modality", json!("TEXT")),
            ("eval_modality_auto_selected", json!(true)),
            ("allow_not_applicable", json!(false)),
            ("agent_ids", json!([])),
            ("tags", json!([])),
            ("prompt", Value::Null),
        ] {
            assert_eq!(made.get(name), Some(&expect), "{kind}: {name}");
        }
    }
}

#[tokio::test]
async fn lists_have_pages_and_follow_links() {
    let world = World::new().await;
    let ids = agents(&world, 2).await;
    for n in 0..5 {
        let linked = if n % 2 == 0 { json!(ids) } else { json!([ids[1]]) };
        world.post("/v1/create-custom-metric", metric(&n.to_string(), linked)).await;
        world.service.clock().advance_ms(1000);
    }
    let page = world.get("/v1/custom-metrics?page=2&page_size=2").await;
    assert_eq!(names(&page["metrics"]), ["2", "1"]);
    assert_eq!(page["data"], page["metrics"]);
    assert_eq!(page["metrics"][0]["agent_ids"], json!(ids));
    for (query, expect) in [
        ("?page=2&page_size=2", [5, 2, 2, 2, 3]),
        ("?page=9&page_size=2", [5, 9, 2, 0, 3]),
        ("", [5, 1, 50, 5, 1]),
        (&format!("?agent_id={}", ids[0]), [3, 1, 50, 3, 1]),
    ] {
        let page = world.get(&format!("/v1/custom-metrics{query}")).await;
        let found = ["total_count", "page", "page_size", "items_in_page", "total_pages"].map(|name| page[name].clone());
        assert_eq!(found, expect.map(Value::from), "{query}");
    }
    let old = world.get(&format!("/v1/custom-metrics-by-agent/{}", ids[0])).await;
    assert_eq!(names(&old["metrics"]), ["4", "2", "0"]);
    assert_eq!((&old["total_count"], &old["total_pages"], &old["data"]), (&json!(3), &json!(1), &old["metrics"]));
    // Rows that belong to an agent are deleted with it; its metrics stay without it.
    world.call("DELETE", &format!("/v1/agent/{}", ids[1]), Value::Null).await;
    let page = world.get("/v1/custom-metrics").await;
    let links: Vec<&Value> = page["metrics"].as_array().expect("a list").iter().map(|one| &one["agent_ids"]).collect();
    assert_eq!(json!(links), json!([[ids[0]], [], [ids[0]], [], [ids[0]]]));
}

#[tokio::test]
async fn several_are_made_changed_and_deleted_at_once() {
    let world = World::new().await;
    let ids = agents(&world, 2).await;
    let refused = json!({ "metrics": [metric("a", json!([])), metric("b", json!([999]))] });
    let answer = world.send("POST", "/v1/create-custom-metrics", &[], refused.to_string().into_bytes()).await;
    assert_eq!((answer.status, answer.json()), (404, json!({ "detail": "Agent not found" })));
    assert_eq!(world.get("/v1/custom-metrics").await["total_count"], 0, "all or none");
    let made = world
        .post("/v1/create-custom-metrics", json!({ "metrics": [metric("a", json!([])), metric("b", json!([ids[0]]))] }))
        .await;
    assert_eq!(names(&made["metrics"]), ["a", "b"]);
    let metric_ids = [made["metrics"][0]["id"].clone(), made["metrics"][1]["id"].clone()];

    let updates =
        json!({ "tags": ["x"], "agent_ids": [ids[1]], "eval_modality": "AUDIO", "temperature": 1, "name": "ignored" });
    let body = json!({ "metric_ids": [metric_ids[0], metric_ids[1], metric_ids[0]], "updates": updates });
    let updated = world.call("PUT", "/v1/update-custom-metrics", body).await;
    assert_eq!(updated, json!({ "success": true, "message": "Updated 2 custom metric(s)", "updated": 2 }));
    for id in &metric_ids {
        let read = world.get(&format!("/v1/custom-metric/{}", id.as_str().expect("an id"))).await;
        assert_eq!((&read["tags"], &read["agent_ids"]), (&json!(["x"]), &json!([ids[1]])));
        assert_eq!((&read["eval_route"], &read["temperature"]), (&json!("AUDIO"), &json!(1.0)));
        assert_ne!(read["name"], "ignored");
    }
    let half = json!({ "metric_ids": [metric_ids[0], uuid::Uuid::nil()], "updates": { "tags": ["y"] } });
    let answer = world.send("PUT", "/v1/update-custom-metrics", &[], half.to_string().into_bytes()).await;
    assert_eq!(answer.status, 404);
    let path = format!("/v1/custom-metric/{}", metric_ids[0].as_str().expect("an id"));
    assert_eq!(world.get(&path).await["tags"], json!(["x"]), "all or none");

    // A simulation that has one selected no longer does when it is gone.
    let body = json!({ "agent_id": ids[0], "selected_custom_metrics": metric_ids });
    let simulation = world.post("/v1/create-simulation", body).await["simulation_id"].clone();
    let deleted = world.call("DELETE", &path, Value::Null).await;
    assert_eq!(
        (&deleted["id"], &deleted["name"], &deleted["agent_ids"]),
        (&metric_ids[0], &json!("a"), &json!([ids[1]]))
    );
    assert_eq!(world.send("DELETE", &path, &[], Vec::new()).await.status, 404);
    let read = world.get(&format!("/v1/simulation/{simulation}")).await;
    assert_eq!(read["settings"]["selected_custom_metrics"], json!([metric_ids[1]]));
    let body = json!({ "custom_metric_ids": [uuid::Uuid::nil(), metric_ids[1]] });
    let deleted = world.post("/v1/delete-custom-metrics", body).await;
    assert_eq!(deleted, json!({ "deleted_count": 1, "deleted_metric_ids": [metric_ids[1]] }));
    assert_eq!(world.get("/v1/custom-metrics").await["total_pages"], 0);
}

#[tokio::test]
async fn the_language_model_drafts_metrics() {
    let draft = json!({ "name": "Polite", "description": "The agent greets.", "response_type": "pass_fail", "min_value": null });
    let incomplete = json!({ "name": "Range", "description": "d", "response_type": "quantitative" });
    let answer = json!({ "metrics": [draft, incomplete, draft, draft] }).to_string();
    let model = Arc::new(ScriptedModel::new(vec![Reply::says(&["Sorry."]), Reply::says(&[&answer])]));
    let world = World::with_model(model.clone()).await;
    let ids = agents(&world, 1).await;
    world.post("/v1/create-custom-metric", metric("Known", json!(ids))).await;
    world
        .post(
            "/v1/agents/1/versions",
            json!({ "prompt_text": "Be kind.", "labels": ["production"], "override_label": true }),
        )
        .await;
    let body = json!({ "agent_id": "1", "count": 2, "custom_prompt": "manners" });
    let drafts = world.post("/v1/generate-custom-metrics", body).await;
    assert_eq!(drafts["status"], "200");
    assert_eq!(names(&drafts["metrics"]), ["Polite", "Polite"]);
    assert_eq!((&drafts["metrics"][0]["id"], &drafts["metrics"][0]["agent_ids"]), (&Value::Null, &json!(ids)));
    let asked = model.requests();
    assert_eq!(asked.len(), 2, "what cannot be read is asked again");
    let material = &asked[0].messages[1].content;
    assert!(material.contains("Be kind.") && material.contains("Known") && material.contains("manners"), "{material}");
    assert_eq!(world.get("/v1/custom-metrics").await["total_count"], 1, "drafts are not stored");
    let answer = world.send("POST", "/v1/generate-custom-metrics", &[], br#"{"agent_id": 1}"#.to_vec()).await;
    assert_eq!((answer.status, answer.json()), (503, json!({ "detail": "scripted failure" })));
}

#[tokio::test]
async fn a_metric_of_production_calls_is_no_check_of_a_monitor() {
    let ((_desk, agent), notified) = (answering("Monday is free.").await, Receiver::new(&[]).await);
    let world = World::at_work(None).await;
    let agent = world.post("/v1/add-agent", with(json!({ "name": "Desk", "mode": "TEXT" }), agent)).await;
    let rule = |name: &str, word: &str, scope: &str| {
        json!({
            "name": name, "description": "A day is offered.", "response_type": "pass_fail", "scope": scope,
            "agent_ids": [agent["agent_id"]], "eval_method": "deterministic",
            "settings": { "check": "contains", "value": word },
        })
    };
    let mut ids = Vec::new();
    for (name, word, scope) in
        [("held", "monday", "observability"), ("tried", "monday", "simulation"), ("any", "tuesday", "all")]
    {
        let made = world.post("/v1/create-custom-metric", rule(name, word, scope)).await;
        ids.push(made["id"].as_str().expect("an id").to_owned());
    }
    let check = |name: &str, id: &str| {
        let config = json!({ "custom_metric_id": id, "operator": "equals", "value": "pass" });
        json!({ "id": name, "checkType": "custom_metric", "config": config })
    };
    let monitor = |checks: Value| {
        json!({
            "agent_id": agent["agent_id"], "checks": checks, "enabled": false,
            "notifications": { "channels": [{ "type": "webhook", "target": notified.url("/hook") }] },
        })
    };
    let refused = async |method: &str, path: &str, body: Value| {
        let answer = world.send(method, path, &[], body.to_string().into_bytes()).await;
        (answer.status, answer.json()["detail"].as_str().unwrap_or_default().to_owned())
    };
    let why = |check: &str| {
        let why = "custom metric 'held' has scope observability and is not judged in the calls of a monitor";
        (400, format!("check '{check}': {why}"))
    };
    let mine = json!([{ "checkType": "agent_responds" }, check("mine", &ids[0])]);
    assert_eq!(refused("POST", "/v1/uptime/monitors", monitor(mine)).await, why("mine"));
    let mut off = check("off", &ids[0]);
    off["enabled"] = json!(false);
    let unnamed = json!([off, { "checkType": "custom_metric", "config": check("", &ids[0])["config"] }]);
    assert_eq!(refused("POST", "/v1/uptime/monitors", monitor(unnamed)).await, why("off"));
    assert_eq!(world.get("/v1/uptime/monitors").await["total_count"], 0);
    let taken = world.post("/v1/uptime/monitors", monitor(json!([check("a", &ids[1]), check("b", &ids[2])]))).await;
    let path = format!("/v1/uptime/monitors/{}", taken["id"].as_str().expect("an id"));
    let bare = json!([{ "checkType": "custom_metric", "config": check("", &ids[0])["config"] }]);
    assert_eq!(refused("PUT", &path, json!({ "checks": bare })).await, why("custom_metric"));
    assert_eq!(world.get(&path).await["checks"], taken["checks"]);

    // One that becomes such a metric says so in every check; the others go on.
    let change = format!("/v1/update-custom-metric/{}", ids[1]);
    world.call("PUT", &change, json!({ "scope": "observability" })).await;
    world.call("PUT", &path, json!({ "enabled": true })).await;
    assert_eq!(notified.wait_for(1).await.json()["kind"], "uptime_down");
    let checks = world.get(&path).await["recent_checks"][0]["checks"].clone();
    let verdict_of = |n: usize| (checks[n]["verdict"].clone(), checks[n]["message"].clone());
    let elsewhere = "the metric has scope observability: it is judged in production calls alone";
    assert_eq!(verdict_of(0), (json!("UNKNOWN"), json!(elsewhere)));
    assert_eq!(verdict_of(1), (json!("DOWN"), json!("fail equals pass is false")));
}
