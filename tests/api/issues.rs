//! Issues: from finished results to what people do about them.

use ringer::model::error_code::ErrorCode;
use ringer::model::evaluation::Evaluation;
use ringer::model::status::ResultStatus as S;
use ringer::service::Judged;
use serde_json::{Value, json};

use super::results::queued;
use super::world::World;

/// Returns a world with one issue, `$issue`.
pub(super) async fn with_issue() -> World {
    let (mut world, results) = world_of(1).await;
    end(&world, results[0], &[json!({"status": 500, "error": "no slot"})], json!({})).await;
    world.work_off().await;
    let issue = world.get("/v1/issues").await[0]["id"].as_str().expect("an id").to_owned();
    world.call_it("issue", issue);
    world
}

/// Returns a world with at least `count` results.
async fn world_of(count: usize) -> (World, Vec<i64>) {
    let (world, _, first) = queued().await;
    let simulation = world.get("/v1/get-all-simulations").await["simulations"][0]["id"].clone();
    let mut ids = first.to_vec();
    while ids.len() < count {
        let queued = world.post("/v1/queue-simulation-run", json!({ "simulation_id": simulation })).await;
        let more = queued["simulation_result_ids"].as_array().expect("ids");
        ids.extend(more.iter().map(|id| id.as_str().and_then(|id| id.parse::<i64>().ok()).expect("an id")));
    }
    (world, ids)
}

/// Ends a result whose agent made tool calls with these outputs, and judges it.
async fn end(world: &World, id: i64, outputs: &[Value], evaluation: Value) {
    let call = |output: &Value| json!({ "name": "book", "start_offset_ms": 5, "output": output });
    let calls: Vec<Value> = outputs.iter().map(call).collect();
    world.post("/v1/update-simulation-result", json!({ "simulation_result_id": id, "tool_calls": calls })).await;
    let organization = world.name("organization");
    let way = [S::Initializing, S::Queued, S::Dispatched, S::Running, S::ConversationEnded, S::Evaluating];
    for step in way.windows(2) {
        world
            .service
            .conversations()
            .advance(organization, id, step[0], step[1], |_| ())
            .await
            .expect("an allowed step");
    }
    judge(world, id, evaluation).await;
}

async fn judge(world: &World, id: i64, evaluation: Value) {
    let evaluation: Evaluation = serde_json::from_value(evaluation).expect("an evaluation");
    let judged = Judged { evaluation, ..Judged::default() };
    world.service.evaluations().store_evaluation(world.name("organization"), id, judged).await.expect("is kept");
}

fn failure(reasoning: &str) -> Value {
    json!({ "goal_success": false, "goal_reasoning": reasoning })
}

#[tokio::test]
async fn a_known_error_is_one_issue_whatever_its_numbers() {
    let (world, ids) = world_of(3).await;
    for (n, id) in ids.iter().enumerate() {
        let output = json!({ "status_code": 500, "error": { "message": format!("Order {n}4711 failed") } });
        end(&world, *id, &[output.clone(), json!({ "ok": true }), output], json!({})).await;
        world.work_off().await;
        world.service.clock().advance_ms(1000);
    }
    let issues = world.get("/v1/issues").await;
    let [issue] = issues.as_array().expect("a list").as_slice() else { panic!("{issues}") };
    for (field, expect) in [
        ("type", json!("deterministic")),
        ("title", json!("book: Order 04711 failed")),
        ("description", json!("book: Order 04711 failed (500)")),
        ("status", json!("open")),
        ("priority", Value::Null),
        ("assignee_id", Value::Null),
        ("error_source", json!("tool_call")),
        ("error_code", json!("500")),
        ("cluster_id", Value::Null),
        ("due_date", Value::Null),
        ("first_seen_at", json!("2026-01-05T09:00:00.000000Z")),
        ("last_seen_at", json!("2026-01-05T09:00:02.000000Z")),
        ("created_at", json!("2026-01-05T09:00:00.000000Z")),
        ("updated_at", json!("2026-01-05T09:00:02.000000Z")),
    ] {
        assert_eq!(issue.get(field), Some(&expect), "{field}");
    }
    assert_eq!(issue["error_signature"].as_str().map(str::len), Some(64));
    assert_eq!(issue.as_object().map(|fields| fields.len()), Some(16));
    let read = world.get(&format!("/v1/issues/{}", issue["id"].as_str().expect("an id"))).await;
    let occurrences = read["occurrences"].as_array().expect("a list");
    let seen: Vec<&str> = occurrences.iter().map(|one| one["id"].as_str().expect("a text")).collect();
    let expect: Vec<String> = ids.iter().rev().map(i64::to_string).collect();
    assert_eq!(seen, expect, "each conversation once, newest first");
    let newest = json!({ "kind": "simulation", "id": expect[0], "at": "2026-01-05T09:00:02.000000Z",
        "message": "book: Order 24711 failed" });
    assert_eq!(occurrences[0], newest);
}

#[tokio::test]
async fn a_tool_call_that_is_told_of_after_the_call_is_an_issue_at_once() {
    let (world, ids) = world_of(1).await;
    end(&world, ids[0], &[json!({"status": 200})], json!({})).await;
    world.work_off().await;
    assert_eq!(world.get("/v1/issues").await, json!([]));
    let failed = json!([{ "name": "book", "start_offset_ms": 5, "output": {"status": 500, "error": "no slot"} }]);
    let document = json!({ "simulation_result_id": ids[0], "tool_calls": failed });
    world.post("/v1/update-simulation-result", document.clone()).await;
    world.work_off().await;
    let issues = world.get("/v1/issues").await;
    assert_eq!((&issues[0]["title"], &issues[0]["error_code"]), (&json!("book: no slot"), &json!("500")), "{issues}");
    world.post("/v1/update-simulation-result", document).await;
    world.work_off().await;
    let issue = world.get(&format!("/v1/issues/{}", issues[0]["id"].as_str().expect("an id"))).await;
    assert_eq!(issue["occurrences"].as_array().map(Vec::len), Some(1), "{issue}");
}

#[tokio::test]
async fn errors_of_conversations_are_issues_and_cancelled_ones_are_none() {
    let (world, ids) = world_of(2).await;
    let organization = world.name("organization");
    let fail =
        |doc: &mut ringer::model::result::ResultDoc| doc.body.fail(ErrorCode::SipDialFailed, "488 Not Acceptable");
    world
        .service
        .conversations()
        .advance(organization, ids[0], S::Initializing, S::NoConnection, fail)
        .await
        .expect("allowed");
    world.post(&format!("/v1/simulation-result/{}/hangup", ids[1]), Value::Null).await;
    world.work_off().await;
    let issues = world.get("/v1/issues").await;
    let [issue] = issues.as_array().expect("a list").as_slice() else { panic!("{issues}") };
    assert_eq!((&issue["error_source"], &issue["error_code"]), (&json!("conversation"), &json!("SIP_DIAL_FAILED")));
    assert_eq!(issue["title"], "488 Not Acceptable");
}

#[tokio::test]
async fn three_judgements_alike_are_a_pattern() {
    let (world, ids) = world_of(6).await;
    let price = [
        "The agent never told the price of the visit.",
        "The agent never told the price of a visit.",
        "The agent never told the price of the visits.",
    ];
    let other = ["A wrong department was reached twice.", "Nothing was booked because of a language barrier."];
    for (id, text) in ids.iter().zip([price[0], other[0], price[1], other[1]]) {
        end(&world, *id, &[], failure(text)).await;
    }
    world.work_off().await;
    assert_eq!(world.get("/v1/issues").await, json!([]), "two alike are no pattern");
    world.service.clock().advance_ms(60_000);
    end(&world, ids[4], &[], failure(price[2])).await;
    world.work_off().await;
    let issues = world.get("/v1/issues?type=non_deterministic").await;
    let [issue] = issues.as_array().expect("a list").as_slice() else { panic!("{issues}") };
    assert_eq!((&issue["error_signature"], &issue["error_code"]), (&Value::Null, &Value::Null));
    assert_eq!(issue["error_source"], "evaluation");
    assert_eq!(issue["title"], price[0], "it is nearest to the centre");
    assert_eq!(issue["first_seen_at"], "2026-01-05T09:00:00.000000Z");
    assert_eq!(issue["last_seen_at"], "2026-01-05T09:01:00.000000Z");
    let path = format!("/v1/issues/{}", issue["id"].as_str().expect("an id"));
    assert_eq!(world.get(&path).await["occurrences"].as_array().map(Vec::len), Some(3));
    assert!(issue["cluster_id"].is_string());

    // Judged again in the same words, nothing is added; in other words that are alike, something is.
    judge(&world, ids[4], failure(price[2])).await;
    world.work_off().await;
    assert_eq!(world.get(&path).await["occurrences"].as_array().map(Vec::len), Some(3));
    judge(&world, ids[4], failure("The agent never told the price of this visit.")).await;
    world.work_off().await;
    assert_eq!(world.get(&path).await["occurrences"].as_array().map(Vec::len), Some(4));

    // A success is no failure, whatever its reasoning.
    end(&world, ids[5], &[], json!({ "goal_success": true, "goal_reasoning": price[0] })).await;
    world.work_off().await;
    assert_eq!(world.get(&path).await["occurrences"].as_array().map(Vec::len), Some(4));
}

#[tokio::test]
async fn what_is_seen_again_opens_when_it_was_resolved() {
    let (world, ids) = world_of(4).await;
    let output = json!({ "status": 404 });
    end(&world, ids[0], std::slice::from_ref(&output), json!({})).await;
    world.work_off().await;
    let path = format!("/v1/issues/{}", world.get("/v1/issues").await[0]["id"].as_str().expect("an id"));
    for (id, (set, expect)) in
        ids[1..].iter().zip([("resolved", "open"), ("ignored", "ignored"), ("in_progress", "in_progress")])
    {
        let body = json!({ "status": set });
        assert_eq!(world.call("PATCH", &path, body).await["status"], set);
        world.service.clock().advance_ms(1000);
        end(&world, *id, std::slice::from_ref(&output), json!({})).await;
        world.work_off().await;
        let read = world.get(&path).await;
        assert_eq!(read["status"], expect, "{set}");
        let now = ringer::model::time::Timestamp(world.service.clock().now_ms()).to_string();
        assert_eq!(read["last_seen_at"], now, "{set}");
    }
}

#[tokio::test]
async fn issues_are_listed_filtered_and_triaged() {
    let (world, ids) = world_of(3).await;
    for (n, id) in ids.iter().enumerate() {
        end(&world, *id, &[json!({ "status": 500 + n })], json!({})).await;
        world.work_off().await;
        world.service.clock().advance_ms(1000);
    }
    let codes = async |query: &str| -> Vec<String> {
        let listed = world.get(&format!("/v1/issues{query}")).await;
        let listed = listed.as_array().expect("a list").clone();
        listed.iter().map(|issue| issue["error_code"].as_str().expect("a code").to_owned()).collect()
    };
    assert_eq!(codes("").await, ["502", "501", "500"]);
    assert_eq!(codes("?limit=1&offset=1").await, ["501"]);
    let all = world.get("/v1/issues").await;
    let path = format!("/v1/issues/{}", all[1]["id"].as_str().expect("an id"));
    let person = "6a1e0b64-6f0a-4c3b-9a25-0f4f6f7a1c11";
    let body = json!({ "status": "in_progress", "priority": "high", "assignee_id": person, "due_date": "2026-02-01" });
    let triaged = world.call("PATCH", &path, body).await;
    assert_eq!((&triaged["priority"], &triaged["due_date"]), (&json!("high"), &json!("2026-02-01")));
    for query in ["?status=in_progress", "?priority=high", &format!("?assignee_id={person}")] {
        assert_eq!(codes(query).await, ["501"], "{query}");
    }
    assert_eq!(codes("?type=deterministic&status=open").await, ["502", "500"]);
    let cleared = json!({ "status": null, "priority": null, "assignee_id": null, "due_date": null });
    let cleared = world.call("PATCH", &path, cleared).await;
    assert_eq!(cleared["status"], "in_progress");
    for field in ["priority", "assignee_id", "due_date"] {
        assert_eq!(cleared[field], Value::Null, "{field}");
    }
    let foreign = [("x-api-key".to_owned(), "$foreign".to_owned())];
    assert_eq!(world.send("GET", "/v1/issues", &foreign, Vec::new()).await.json(), json!([]));
}
