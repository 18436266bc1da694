//! Limits of organizations over HTTP: the operator sets them, an organization reads its own.

use ringer::api::Setup;
use ringer::config::Secret;
use serde_json::{Value, json};

use super::world::World;

const PATH: &str = "/v1/internal/organizations/a/limits";

async fn send(world: &World, method: &str, path: &str, [key, token]: [&str; 2], body: Value) -> (u16, Value) {
    let mut headers = vec![("x-api-key".to_owned(), key.to_owned())];
    if !token.is_empty() {
        headers.push(("x-internal-token".to_owned(), token.to_owned()));
    }
    let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
    let answer = world.send(method, path, &headers, body).await;
    (answer.status, answer.json())
}

#[tokio::test]
async fn only_the_operator_sets_limits_and_an_admin_reads_its_own() {
    let token = Some(Secret::new("between-us".into()));
    let world = World::with_setup(Setup { internal_token: token, ..Setup::default() }).await;
    let limits = json!({ "calls_at_once": 3, "upload_mb": 1 });
    for (who, expect) in [
        (["$admin", ""], 403),
        (["$admin", "between"], 403),
        (["nobody", "between-us"], 401),
        (["$read", "between-us"], 200),
    ] {
        assert_eq!(send(&world, "PUT", PATH, who, limits.clone()).await.0, expect, "{who:?}");
    }
    for (who, expect) in [
        (["$admin", ""], 200),
        (["$write", ""], 403),
        (["$foreign", ""], 403),
        (["$admin", "wrong"], 403),
        (["$foreign", "between-us"], 200),
    ] {
        assert_eq!(send(&world, "GET", PATH, who, Value::Null).await.0, expect, "{who:?}");
    }
    let (_, shown) = send(&world, "GET", PATH, ["$admin", ""], Value::Null).await;
    assert_eq!(shown["name"], "a");
    assert_eq!((&shown["in_force"]["calls_at_once"], &shown["stored"]["phone_numbers"]), (&json!(3), &Value::Null));
    let (status, _) = send(&world, "GET", "/v1/internal/organizations/zz/limits", ["$admin", ""], Value::Null).await;
    assert_eq!(status, 403, "nobody learns by it which organizations there are");
    let operator = ["$read", "between-us"];
    let (status, _) = send(&world, "GET", "/v1/internal/organizations/zz/limits", operator, Value::Null).await;
    assert_eq!(status, 404);
    let (status, body) = send(&world, "PUT", PATH, operator, json!({ "calls_at_once": -1 })).await;
    assert_eq!(status, 422, "{body}");
    assert!(body.to_string().contains("calls_at_once"), "{body}");
}

#[tokio::test]
async fn limits_are_closed_where_no_token_is_configured() {
    let world = World::new().await;
    for who in [["$admin", ""], ["$admin", "anything"]] {
        let (status, body) = send(&world, "PUT", PATH, who, json!({})).await;
        assert_eq!((status, body), (403, json!({ "detail": "Invalid internal token" })), "{who:?}");
    }
    assert_eq!(send(&world, "GET", PATH, ["$admin", ""], Value::Null).await.0, 200);
}
