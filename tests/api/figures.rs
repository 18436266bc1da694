//! `/metrics`: who may read it, and what it counts without an engine. And what is answered while the process ends.

use ringer::api::Setup;
use ringer::model::status::ResultStatus as S;
use ringer::queue::{CallJob, Job as _};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::results::queued;
use super::world::{Answer, World};

async fn page(world: &World, key: &str) -> (u16, String) {
    let key = [("x-api-key".to_owned(), key.to_owned())];
    let Answer { status, body, .. } = world.send("GET", "/metrics", &key, Vec::new()).await;
    (status, String::from_utf8(body).expect("text"))
}

fn value(page: &str, name: &str) -> Option<f64> {
    let line = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.map(|value| value.parse().expect("a number"))
}

#[tokio::test]
async fn figures_need_an_admin_key_unless_they_are_public() {
    let world = World::new().await;
    for (key, expect) in [("", 401), ("$read", 403), ("$write", 403), ("$admin", 200)] {
        assert_eq!(page(&world, key).await.0, expect, "{key}");
    }
    let world = World::with_setup(Setup { public_metrics: true, ..Setup::default() }).await;
    let (status, text) = page(&world, "").await;
    assert_eq!(status, 200);
    assert!(text.ends_with("# EOF\n"), "{text}");
}

#[tokio::test]
async fn failed_results_are_counted_by_their_code() {
    let (world, _, [first, second]) = queued().await;
    let (_, before) = page(&world, "$admin").await;
    let jobs =
        |page: &str, state: &str| value(page, &format!("ringer_jobs{{kind=\"{}\",state=\"{state}\"}}", CallJob::NAME));
    // One for each call; a lane may hold some of them.
    let queued: f64 = ["held", "waiting"].iter().filter_map(|state| jobs(&before, state)).sum();
    assert_eq!(queued, 2.0, "{before}");
    let failed = |page: &str, code: &str| value(page, &format!("ringer_results_failed_total{{error_code=\"{code}\"}}"));
    assert_eq!(failed(&before, "SIP_DIAL_FAILED"), None);
    let organization = world.name("organization");
    let go = async |id: i64, way: &[S], code: &str| {
        for step in way.windows(2) {
            let last = step[1].is_terminal();
            let patch = |doc: &mut ringer::model::result::ResultDoc| {
                if last {
                    doc.body.fail(code.into(), "why");
                }
            };
            world
                .service
                .conversations()
                .advance(organization, id, step[0], step[1], patch)
                .await
                .expect("an allowed step");
        }
    };
    go(first, &[S::Initializing, S::Queued, S::Dispatched, S::NoConnection], "SIP_DIAL_FAILED").await;
    let ended =
        [S::Initializing, S::Queued, S::Dispatched, S::Running, S::ConversationEnded, S::Evaluating, S::SystemError];
    // An evaluation that fails is no SIP call that ends.
    go(second, &ended, "EVALUATION_TIMEOUT").await;
    let (_, after) = page(&world, "$admin").await;
    for code in ["SIP_DIAL_FAILED", "EVALUATION_TIMEOUT"] {
        assert_eq!(failed(&after, code), Some(1.0), "{after}");
    }
}

#[tokio::test]
async fn nothing_is_begun_while_the_process_ends() {
    let draining = CancellationToken::new();
    let world = World::with_setup(Setup { draining: draining.clone(), ..Setup::default() }).await;
    let agent = json!({ "name": "a" });
    let id = world.post("/v1/add-agent", agent.clone()).await["agent_id"].to_string();
    draining.cancel();
    for (method, path, key, expect) in [
        ("POST", "/v1/add-agent".to_owned(), "$admin", 503),
        ("DELETE", format!("/v1/agent/{id}"), "$admin", 503),
        ("POST", "/v1/internal/run-scheduled-simulation".to_owned(), "$admin", 503),
        ("POST", "/v1/add-agent".to_owned(), "nobody", 401),
        ("GET", format!("/v1/agents/{id}"), "$read", 200),
        ("GET", "/health".to_owned(), "", 200),
    ] {
        let key = [("x-api-key".to_owned(), key.to_owned())];
        let answer = world.send(method, &path, &key, agent.to_string().into_bytes()).await;
        assert_eq!(answer.status, expect, "{method} {path}");
        if expect == 503 {
            assert_eq!(answer.json(), json!({ "detail": "Service is shutting down" }));
            assert_eq!(answer.headers["retry-after"], "30");
        }
    }
}
