//! A database of the release before, read through the API: `fixtures/store/schema_13.KIND.sql` is its dump, and
//! `schema_13.json` holds the answers of that release. Its third result has an error code that no release knows.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use ringer::api::{Setup, router};
use ringer::clock::Clock;
use ringer::jobs::Upkeep;
use ringer::service::{NoLiveCalls, Service, Settings};
use ringer::store::vault::Vault;
use ringer::store::{Location, Store};
use ringer::tasks::Tasks;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::databases;

/// 2026-11-25T16:00:00Z, soon after the rows were written.
const NOW_MS: i64 = 1_795_622_400_000;
const API_KEY: &str = "key of the release before";
const SECRET_KEY: &str = "key of the release before, 32 characters or more";
const ANSWERS: &str = include_str!("../../fixtures/store/schema_13.json");

/// A product on the database of the release before, where `change` was written into it by yet another one.
struct Before {
    service: Service,
    router: Router,
    location: Location,
    folder: TempDir,
}

impl Before {
    async fn with(change: &str) -> Before {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let location = databases::empty(folder.path()).await;
        let kind = match &location {
            Location::File(_) => "sqlite",
            Location::Server(_) => "postgres",
        };
        let dump = format!("{}/fixtures/store/schema_13.{kind}.sql", env!("CARGO_MANIFEST_DIR"));
        databases::run(&location, &std::fs::read_to_string(dump).expect("it is in the repository")).await;
        if !change.is_empty() {
            databases::run(&location, change).await;
        }
        let vault = Vault::open(folder.path(), Some(SECRET_KEY), &[]).expect("a vault");
        let store = Store::open(location.clone(), vault).await.expect("the database opens");
        let settings = Settings::new(folder.path());
        let service = Service::new(store, Clock::standing_at(NOW_MS), settings, Arc::new(NoLiveCalls));
        assert_eq!(service.runs().recover().await, Ok(0), "nothing was at work");
        Upkeep::new(service.clone()).work_off().await.expect("the work can be done");
        let router = router(service.clone(), Setup::default(), CancellationToken::new(), Tasks::new());
        Before { service, router, location, folder }
    }

    async fn ask(&self, method: &str, path: &str, body: Value) -> Value {
        let request = Request::builder().method(method).uri(path).header("X-API-Key", API_KEY);
        let request = request.header("content-type", "application/json").body(match body {
            Value::Null => Body::empty(),
            body => Body::from(body.to_string()),
        });
        let answer = self.router.clone().oneshot(request.expect("a request")).await.expect("an answer");
        let status = answer.status().as_u16();
        let body = to_bytes(answer.into_body(), usize::MAX).await.expect("whole");
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        serde_json::from_slice(&body).expect("JSON")
    }

    async fn get(&self, path: &str) -> Value {
        self.ask("GET", path, Value::Null).await
    }

    /// Changes the database as a release does that is not here, and opens it again.
    async fn opened_again(self, change: &str) -> Before {
        self.service.store().close().await;
        databases::run(&self.location, change).await;
        let vault = Vault::open(self.folder.path(), Some(SECRET_KEY), &[]).expect("a vault");
        let store = Store::open(self.location.clone(), vault).await.expect("the database opens");
        let settings = Settings::new(self.folder.path());
        let service = Service::new(store, Clock::standing_at(NOW_MS), settings, Arc::new(NoLiveCalls));
        let router = router(service.clone(), Setup::default(), CancellationToken::new(), Tasks::new());
        Before { service, router, ..self }
    }
}

/// Id of the key that made the rows. The release before had it in the rows and showed no author.
const AUTHOR: &str = "01a2136b-ab46-724a-880c-8d5067d70392";

/// True when `new` holds all that `old` does; members may have been added, and the author is shown.
fn holds(new: &Value, old: &Value) -> bool {
    let is_told = |name: &str, new: &Value, old: &Value| name == "updated_by" && old.is_null() && *new == AUTHOR;
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => {
            old.iter().all(|(name, old)| new.get(name).is_some_and(|new| holds(new, old) || is_told(name, new, old)))
        }
        (Value::Array(new), Value::Array(old)) => {
            new.len() == old.len() && new.iter().zip(old).all(|(new, old)| holds(new, old))
        }
        _ => new == old,
    }
}

#[track_caller]
fn assert_holds(new: &Value, old: &Value, path: &str) {
    assert!(holds(new, old), "{path}:\n{new}\ndoes not hold all of\n{old}");
}

/// Returns the answers of the release before, by path.
fn answers() -> BTreeMap<String, Value> {
    serde_json::from_str(ANSWERS).expect("it is JSON")
}

#[tokio::test]
async fn rows_of_the_release_before_are_answered_as_it_answered_them() {
    let before = Before::with("").await;
    let answers = answers();
    assert!(answers.len() > 20, "{}", answers.len());
    for (path, expect) in &answers {
        assert_holds(&before.get(path).await, expect, path);
    }
    let codes = [2, 3].map(|id| &answers[&format!("/v1/retrieve-simulation-result/{id}")]["simulation_result"]);
    let codes = codes.map(|result| (&result["error_code"], &result["error_owner"]));
    let engine = json!("engine");
    assert_eq!(codes, [(&json!("SIP_NOT_CONFIGURED"), &engine), (&json!("SOME_NEW_CODE"), &engine)]);
}

#[tokio::test]
async fn a_code_that_is_not_known_is_written_back_as_it_was() {
    let before = Before::with("").await;
    let update = json!({ "simulation_result_id": "3", "tags": ["seen"] });
    before.ask("POST", "/v1/update-simulation-result", update).await;
    let mut expect = answers().remove("/v1/retrieve-simulation-result/3").expect("it was asked");
    expect["simulation_result"]["tags"] = json!(["seen"]);
    let path = "/v1/retrieve-simulation-result/3";
    assert_holds(&before.get(path).await, &expect, path);
}

/// Words of a release that is not here, in the place of some that every release knows.
const WORDS: [(&str, &str); 5] = [
    ("\"status\":\"NO_CONNECTION\"", "\"status\":\"PAUSED\""),
    ("\"outcome\":\"failed\"", "\"outcome\":\"deferred\""),
    ("\"error_owner\":\"engine\"", "\"error_owner\":\"carrier\""),
    ("\"status\":\"not_evaluated\"", "\"status\":\"weighed\""),
    ("\"conversation_ended_by\":\"USER\"", "\"conversation_ended_by\":\"NETWORK\""),
];

fn with_words(value: &Value) -> Value {
    let text = WORDS.iter().fold(value.to_string(), |text, (known, other)| text.replace(known, other));
    serde_json::from_str(&text).expect("it is JSON")
}

#[tokio::test]
async fn words_of_states_that_are_not_known_fail_no_listing_and_are_kept() {
    let doc =
        WORDS.iter().fold("doc".to_owned(), |doc, (known, other)| format!("replace({doc}, '{known}', '{other}')"));
    let run = "replace(doc, '\"status\":\"COMPLETED\"', '\"status\":\"ARCHIVED\"')";
    let change = format!(
        "UPDATE results SET doc = {doc}; UPDATE results SET status = 'PAUSED', outcome = 'deferred' WHERE id > 1; \
         UPDATE runs SET doc = {run}, status = 'ARCHIVED' WHERE id = 3"
    );
    let before = Before::with(&change).await;
    for (path, expect) in answers() {
        let found = before.get(&path).await;
        if path.contains("simulation-result") && !path.contains("-results/") {
            assert_holds(&found, &with_words(&expect), &path);
        } else if path.contains("-results/") {
            assert_holds(&found["simulation_results"], &with_words(&expect["simulation_results"]), &path);
        }
    }
    let stated = &before.get("/v1/retrieve-simulation-result/2").await["simulation_result"];
    assert_eq!((&stated["status"], &stated["error_owner"]), (&json!("PAUSED"), &json!("carrier")));
    let run = &before.get("/v1/retrieve-simulation-results/3").await["simulation_run"];
    assert_eq!(
        (&run["status"], &run["total_tests"], &run["tests_completed"]),
        (&json!("ARCHIVED"), &json!(1), &json!(0))
    );

    let mut expect = before.get("/v1/retrieve-simulation-result/2").await;
    let update = json!({ "simulation_result_id": "2", "tags": ["seen"] });
    before.ask("POST", "/v1/update-simulation-result", update).await;
    expect["simulation_result"]["tags"] = json!(["seen"]);
    assert_eq!(before.get("/v1/retrieve-simulation-result/2").await, expect, "it is written back as it was");
    let hung_up = before.ask("POST", "/v1/simulation-result/2/hangup", Value::Null).await;
    assert_eq!(hung_up["status"], "PAUSED", "what is not known is left alone");
    let known =
        WORDS.iter().fold("doc".to_owned(), |doc, (known, other)| format!("replace({doc}, '{other}', '{known}')"));
    let back = format!(
        "UPDATE results SET doc = {known}, status = 'NO_CONNECTION', outcome = 'failed' WHERE status = 'PAUSED'"
    );
    let before = before.opened_again(&back).await;
    let mut expect = answers().remove("/v1/retrieve-simulation-result/2").expect("it was asked");
    expect["simulation_result"]["tags"] = json!(["seen"]);
    // Its row had the word, too.
    let path = "/v1/retrieve-simulation-result/2";
    assert_holds(&before.get(path).await, &expect, path);
}

#[tokio::test]
async fn a_call_log_in_a_state_that_is_not_known_fails_no_listing() {
    let before = Before::with("").await;
    let call = json!({
        "agent_id": "1", "start_time_utc": "2026-11-25T15:00:00Z",
        "participants": [{ "role": "AGENT" }, { "role": "USER" }],
        "transcript": [{ "start_offset_ms": 0, "end_offset_ms": 500, "speaker": "AGENT", "utterance": "Hello." }],
    });
    before.ask("POST", "/v1/evaluate-call", call).await;
    let known = before.get("/v1/retrieve-call-logs/1").await;
    let is_queued = known.to_string().matches("\"QUEUED\"").count();
    assert_eq!(is_queued, 1, "{known}");
    let before = before.opened_again("UPDATE call_logs SET doc = replace(doc, '\"QUEUED\"', '\"SORTED\"')").await;
    let expect: Value = serde_json::from_str(&known.to_string().replace("\"QUEUED\"", "\"SORTED\"")).expect("JSON");
    assert_eq!(before.get("/v1/retrieve-call-logs/1").await, expect);
}
