//! Every case of `fixtures/api/*.http`.

use serde_json::Value;

use super::case::{self, Case};
use super::world::World;

#[tokio::test]
async fn validation() {
    let text = include_str!("../../fixtures/api/validation.http");
    let refused = case::read_cases(text).iter().filter(|case| case.status == 422).count();
    assert!(refused >= 300, "only {refused} cases of status 422");
    check_all(text, 450).await;
}

#[tokio::test]
async fn access() {
    check_all(include_str!("../../fixtures/api/access.http"), 30).await;
}

#[tokio::test]
async fn agents() {
    check_all(include_str!("../../fixtures/api/agents.http"), 8).await;
}

#[tokio::test]
async fn queue() {
    check_all(include_str!("../../fixtures/api/queue.http"), 17).await;
}

#[tokio::test]
async fn webhooks() {
    check_all(include_str!("../../fixtures/api/webhooks.http"), 25).await;
}

#[tokio::test]
async fn schedules() {
    check_all(include_str!("../../fixtures/api/schedules.http"), 45).await;
}

#[tokio::test]
async fn internal() {
    check_all(include_str!("../../fixtures/api/internal.http"), 25).await;
}

#[tokio::test]
async fn versions() {
    check_all(include_str!("../../fixtures/api/versions.http"), 35).await;
}

#[tokio::test]
async fn metrics() {
    check_all(include_str!("../../fixtures/api/metrics.http"), 36).await;
}

#[tokio::test]
async fn scenarios() {
    check_all(include_str!("../../fixtures/api/scenarios.http"), 40).await;
}

#[tokio::test]
async fn customers() {
    check_all(include_str!("../../fixtures/api/customers.http"), 30).await;
}

#[tokio::test]
async fn generation() {
    check_all(include_str!("../../fixtures/api/generation.http"), 30).await;
}

#[tokio::test]
async fn inbound() {
    check_all(include_str!("../../fixtures/api/inbound.http"), 24).await;
}

#[tokio::test]
async fn issues() {
    let world = super::issues::with_issue().await;
    check_in(&world, include_str!("../../fixtures/api/issues.http"), 14).await;
}

#[tokio::test]
async fn call_logs() {
    let world = super::call_logs::with_call().await;
    check_in(&world, include_str!("../../fixtures/api/call_logs.http"), 28).await;
}

#[tokio::test]
async fn monitors() {
    let world = super::monitors::with_monitor().await;
    check_in(&world, include_str!("../../fixtures/api/monitors.http"), 22).await;
}

#[tokio::test]
async fn alerts() {
    let world = super::alerts::with_alert().await;
    check_in(&world, include_str!("../../fixtures/api/alerts.http"), 18).await;
}

#[tokio::test]
async fn phone_numbers() {
    let world = super::phone_numbers::with_pool().await;
    check_in(&world, include_str!("../../fixtures/api/phone_numbers.http"), 9).await;
}

#[tokio::test]
async fn texts() {
    let world = super::texts::with_texts().await;
    check_in(&world, include_str!("../../fixtures/api/texts.http"), 40).await;
}

async fn check_all(text: &str, at_least: usize) {
    check_in(&World::with_rows().await, text, at_least).await;
}

async fn check_in(world: &World, text: &str, at_least: usize) {
    let cases = case::read_cases(text);
    assert!(cases.len() >= at_least, "only {} cases", cases.len());
    let mut wrong = Vec::new();
    for case in &cases {
        if let Err(why) = check(world, case).await {
            wrong.push(format!("## {}\n{} {}\n{why}\n", case.title, case.method, case.path));
        }
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

async fn check(world: &World, case: &Case) -> Result<(), String> {
    let body = match std::str::from_utf8(&case.body) {
        Ok(text) => world.fill_names(text).into_bytes(),
        Err(_) => case.body.clone(),
    };
    let answer = world.send(&case.method, &case.path, &case.headers, body).await;
    let text = String::from_utf8_lossy(&answer.body).into_owned();
    if answer.status != case.status {
        return Err(format!("status {} instead of {}: {text}", answer.status, case.status));
    }
    if answer.headers.get("x-request-id").is_none_or(|id| id.len() != 36) {
        return Err("no request id".into());
    }
    for (name, value) in &case.answers {
        let got = answer.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if got != value {
            return Err(format!("{name}: {got:?} instead of {value:?}"));
        }
    }
    if case.status == 422 {
        let expected = world.fill_names(&format!("{{\"detail\":[{}]}}", case.items.join(",")));
        return if text == expected { Ok(()) } else { Err(format!("got      {text}\nexpected {expected}")) };
    }
    let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
    let expected = world.fill_names(&case.expect);
    if expected.is_empty() {
        return Ok(());
    }
    let expected = match serde_json::from_str::<Value>(&expected) {
        Ok(Value::Object(expected)) => Value::Object(expected),
        _ => serde_json::json!({ "detail": expected }),
    };
    if contains(&body, &expected) { Ok(()) } else { Err(format!("got      {text}\nexpected {expected}")) }
}

/// True when every member of `expected` is in `body`. A refusal has no member but `detail`.
fn contains(body: &Value, expected: &Value) -> bool {
    let Some(members) = expected.as_object() else { return body == expected };
    let only_detail = members.len() == 1 && members.contains_key("detail");
    let extra = only_detail && body.as_object().is_some_and(|body| body.len() != 1);
    !extra && members.iter().all(|(name, value)| body.get(name).is_some_and(|got| contains(got, value)))
}
