//! Schedules and the internal routes over HTTP: every answer in its whole shape, and the token.

use ringer::api::Setup;
use ringer::config::Secret;
use serde_json::{Value, json};

use super::world::World;

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[tokio::test]
async fn a_schedule_from_creation_to_deletion() {
    let world = World::with_rows().await;
    let body = json!({ "simulation_id": "$simulation", "schedule": { "frequency": "daily", "time": "10:30" } });
    let made = world.post("/v1/create-schedule", body).await;
    assert_eq!(keys(&made), ["id", "simulation_id", "cron_expression", "enabled"]);
    assert_eq!((&made["simulation_id"], &made["enabled"]), (&json!(world.name("simulation")), &json!(true)));
    let id = made["id"].as_str().expect("an id").to_owned();
    let read = world.get(&format!("/v1/schedule/{id}")).await;
    assert_eq!(keys(&read), ["id", "simulation_id", "cron_expression", "enabled", "created_at"]);
    assert_eq!(read["created_at"], "2026-01-05T09:00:00.000000Z");
    let all = world.get("/v1/schedules").await;
    assert_eq!(keys(&all), ["schedules"]);
    let listed: Vec<&Value> = all["schedules"].as_array().expect("a list").iter().collect();
    assert!(listed.len() == 2 && listed.contains(&&read));
    let body =
        json!({ "schedule": { "frequency": "weekly", "day_of_week": "monday", "time": "08:00" }, "enabled": false });
    let changed = world.call("PUT", &format!("/v1/update-schedule/{id}"), body).await;
    let expect = json!({
        "id": id, "simulation_id": world.name("simulation"), "cron_expression": "0 8 * * 1", "enabled": false,
        "created_at": "2026-01-05T09:00:00.000000Z",
    });
    assert_eq!(changed, expect);
    let deleted = world.call("DELETE", &format!("/v1/delete-schedule/{id}"), Value::Null).await;
    assert_eq!(deleted, json!({ "status": "success", "message": "Schedule deleted" }));
    assert_eq!(world.send("GET", &format!("/v1/schedule/{id}"), &[], Vec::new()).await.status, 404);
}

#[tokio::test]
async fn the_internal_token_opens_the_internal_routes_alone() {
    let token = Some(Secret::new("between-us".into()));
    let world = World::with_setup(Setup { internal_token: token, ..Setup::default() }).await;
    let agent = world.post("/v1/add-agent", json!({ "name": "a" })).await["agent_id"].to_string();
    let path = format!("/v1/internal/spend-allowed/{agent}");
    for (key, token, expect) in [
        ("$read", "between-us", 200),
        ("$write", "between-us", 200),
        ("$admin", "between-us", 200),
        ("$admin", "", 403),
        ("$admin", "between-u", 403),
        ("$admin", "between-us-", 403),
        ("$write", "Between-us", 403),
        ("nobody", "between-us", 401),
    ] {
        let headers = [("x-api-key".to_owned(), key.to_owned()), ("x-internal-token".to_owned(), token.to_owned())];
        let answer = world.send("GET", &path, &headers, Vec::new()).await;
        assert_eq!(answer.status, expect, "{key} {token}");
        if expect == 403 {
            assert_eq!(answer.json(), json!({ "detail": "Invalid internal token" }));
        }
    }
    let token = ("x-internal-token".to_owned(), "between-us".to_owned());
    let read = [("x-api-key".to_owned(), "$read".to_owned()), token];
    assert_eq!(world.send("GET", "/v1/api-keys", &read, Vec::new()).await.status, 403, "it opens nothing else");
}

#[tokio::test]
async fn a_scheduled_run_is_started_and_told() {
    let world = World::with_rows().await;
    let path = "/v1/simulation/$simulation/add-digital-humans";
    let human: i64 = world.name("digital_human").parse().expect("a number");
    world.post(path, json!({ "digital_human_ids": [human] })).await;
    let body = json!({ "simulation_id": "$simulation", "schedule_id": "$schedule" }).to_string().into_bytes();
    let answer = world.send("POST", "/v1/internal/run-scheduled-simulation", &[], body).await;
    assert_eq!(answer.status, 202);
    let accepted = answer.json();
    assert_eq!(keys(&accepted), ["status", "simulation_run_id"]);
    assert_eq!(accepted["status"], "accepted");
    let runs = world.get("/v1/get-simulation-runs/$simulation").await;
    assert_eq!(runs["simulation_runs"][0]["id"].to_string(), accepted["simulation_run_id"].as_str().expect("an id"));
}
