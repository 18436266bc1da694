//! Requests a minute.

use std::collections::BTreeMap;

use ringer::api::Setup;
use ringer::api::rate::Rates;

use super::world::World;

#[tokio::test]
async fn a_limited_route_refuses_and_recovers() {
    let routes = BTreeMap::from([("GET /v1/agents/{agent_id}".to_owned(), 2)]);
    let setup = Setup { rates: Rates { routes, ..Rates::default() }, ..Setup::default() };
    let world = World::with_setup(setup).await;
    let read = [("x-api-key".to_owned(), "$read".to_owned())];
    // Path, status, what is left, seconds until a request is possible again.
    for (path, status, left, retry) in [
        ("/v1/agents/1", 404, Some("1"), None),
        ("/v1/agents/x", 422, Some("0"), None),
        ("/v1/agents/1", 429, Some("0"), Some("30")),
        ("/v1/all-agents", 200, None, None),
    ] {
        let answer = world.send("GET", path, &read, Vec::new()).await;
        let header = |name: &str| answer.headers.get(name).and_then(|value| value.to_str().ok());
        assert_eq!(
            (answer.status, header("x-ratelimit-remaining"), header("retry-after")),
            (status, left, retry),
            "{path}"
        );
        if status == 429 {
            assert_eq!(answer.json(), serde_json::json!({ "detail": "Rate limit exceeded", "retry_after": 30 }));
            assert_eq!((header("x-ratelimit-limit"), header("x-ratelimit-reset")), (Some("2"), Some("60")));
        }
    }
    assert_eq!(world.send("GET", "/v1/agents/1", &[], Vec::new()).await.status, 404, "another key has its own");
    world.service.clock().advance_ms(30_000);
    assert_eq!(world.send("GET", "/v1/agents/1", &read, Vec::new()).await.status, 404);
}
