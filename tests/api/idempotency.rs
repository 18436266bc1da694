//! The same key gives the same answer, once.

use serde_json::{Value, json};

use super::world::{Answer, World};

async fn post(world: &World, key: &str, path: &str, body: Value) -> Answer {
    let headers = [("idempotency-key".to_owned(), key.to_owned())];
    world.send("POST", path, &headers, body.to_string().into_bytes()).await
}

async fn agents(world: &World) -> usize {
    world.get("/v1/all-agents").await.as_array().expect("a list").len()
}

#[tokio::test]
async fn a_repeat_is_replayed_byte_for_byte() {
    let world = World::new().await;
    let first = post(&world, "k1", "/v1/add-agent", json!({ "name": "a" })).await;
    let again = post(&world, "k1", "/v1/add-agent", json!({ "name": "a" })).await;
    assert_eq!((first.status, again.status), (200, 200));
    assert_eq!(first.body, again.body);
    assert!(first.headers.get("idempotency-replayed").is_none());
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(agents(&world).await, 1);
}

#[tokio::test]
async fn another_body_or_path_or_organization_is_another_request() {
    let world = World::new().await;
    post(&world, "k1", "/v1/add-agent", json!({ "name": "a" })).await;
    let other = post(&world, "k1", "/v1/add-agent", json!({ "name": "b" })).await;
    assert_eq!(other.status, 409);
    assert_eq!(other.json(), json!({ "detail": "Idempotency-Key was already used with a different request body" }));
    assert_eq!(post(&world, "k1", "/v1/create-folder", json!({ "name": "a" })).await.status, 200);
    let headers = [("idempotency-key".to_owned(), "k1".to_owned()), ("x-api-key".to_owned(), "$foreign".to_owned())];
    let foreign = world.send("POST", "/v1/add-agent", &headers, br#"{"name":"a"}"#.to_vec()).await;
    assert_eq!(foreign.status, 200);
    assert!(foreign.headers.get("idempotency-replayed").is_none());
}

#[tokio::test]
async fn refusals_of_the_service_are_kept_but_not_those_of_the_schema() {
    let world = World::new().await;
    let refused = json!({ "agent_id": "77" });
    assert_eq!(post(&world, "k1", "/v1/create-simulation", refused.clone()).await.status, 404);
    let again = post(&world, "k1", "/v1/create-simulation", refused).await;
    assert_eq!(again.headers["idempotency-replayed"], "true");
    assert_eq!(post(&world, "k2", "/v1/add-agent", json!({})).await.status, 422);
    assert_eq!(post(&world, "k2", "/v1/add-agent", json!({ "name": "a" })).await.status, 200);
}

#[tokio::test]
async fn an_answer_is_kept_for_a_day() {
    let world = World::new().await;
    post(&world, "k1", "/v1/add-agent", json!({ "name": "a" })).await;
    world.service.clock().advance_ms(24 * 3_600_000 - 1);
    post(&world, "k1", "/v1/add-agent", json!({ "name": "a" })).await;
    assert_eq!(agents(&world).await, 1);
    world.service.clock().advance_ms(1);
    post(&world, "k1", "/v1/add-agent", json!({ "name": "a" })).await;
    assert_eq!(agents(&world).await, 2);
}

#[tokio::test]
async fn repeats_at_the_same_time_make_one_row() {
    let world = World::new().await;
    let send = || post(&world, "k1", "/v1/add-agent", json!({ "name": "a" }));
    let (one, two, three) = tokio::join!(send(), send(), send());
    assert_eq!((&one.body, &one.body), (&two.body, &three.body));
    assert_eq!(agents(&world).await, 1);
}
