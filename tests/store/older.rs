//! Databases that an earlier release has written: `fixtures/store/schema_N.KIND.sql` is the dump of one of schema N.

use std::sync::Arc;

use ringer::clock::Clock;
use ringer::model::agent_version::VersionDoc;
use ringer::model::simulation::SimulationSpec;
use ringer::model::status::{ResultStatus, RunStatus};
use ringer::queue::{CallJob, Job as _};
use ringer::service::Service;
use ringer::store::Location;
use ringer::store::idempotency::{RequestKey, Seen};
use serde_json::json;
use tempfile::TempDir;

use super::{START_MS, open};
use crate::databases;

/// Returns a product on a database of schema 1.
async fn first_schema(folder: &TempDir) -> Service {
    let location = databases::empty(folder.path()).await;
    let kind = match &location {
        Location::File(_) => "sqlite",
        Location::Server(_) => "postgres",
    };
    let dump = format!("{}/fixtures/store/schema_1.{kind}.sql", env!("CARGO_MANIFEST_DIR"));
    databases::run(&location, &std::fs::read_to_string(dump).expect("it is in the repository")).await;
    open(&location, folder, &Clock::standing_at(START_MS + 60_000), Arc::default()).await
}

#[tokio::test]
async fn everything_of_the_first_schema_is_still_there() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let s = &first_schema(&folder).await;
    let caller = &s
        .library()
        .authenticate("key of the first")
        .await
        .expect("looked up")
        .expect("the key opens its organization");
    let keys = s.library().keys(caller).await.expect("keys");
    assert_eq!(keys.iter().map(|key| key.revoked).collect::<Vec<_>>(), [true, false]);

    let agent = s.library().agent(caller, 1).await.expect("the agent");
    assert_eq!((agent.spec.name.as_str(), agent.agent_description.as_str()), ("Desk", "one"));
    assert_eq!(agent.spec.goals, ["book 📞 'it'"]);
    assert_eq!(s.library().all_agents(caller).await.expect("agents"), std::slice::from_ref(&agent));
    assert_eq!(s.library().agent_by_external_id(caller, "x-1").await.as_ref(), Ok(&agent));
    let folders = s.library().all_folders(caller).await.expect("folders");
    assert_eq!((folders[0].name.as_str(), Some(folders[0].id)), ("Front", agent.folder_id));
    assert_eq!(s.library().agents_by_folder(caller, folders[0].id).await.expect("agents").len(), 1);
    let shown = s.library().integrations(caller).await.expect("shown");
    assert_eq!((&shown["P1_url"], &shown["P1_api_secret_set"]), (&json!("wss://rooms"), &json!(true)));

    let simulation = s.library().simulation(caller, 1).await.expect("the simulation");
    assert_eq!((simulation.name.as_str(), simulation.max_concurrent), ("Booking", Some(1)));
    let mut db = s.store().org(&caller.organization).read().await.expect("a session");
    let stored = db.get::<SimulationSpec>(1).await.expect("the simulation").doc;
    assert_eq!((stored.max_call_duration, simulation.settings.max_call_duration), (None, 10), "it was not given");
    drop(db);
    let maria = s.humans().digital_human_by_test_name(caller, "t").await.expect("the Digital Human");
    assert_eq!((maria.digital_human.spec.intent.as_str(), maria.simulation_ids), ("Book.", vec![1]));
    let always = s.humans().digital_human(caller, 2).await.expect("the other");
    assert_eq!(always.digital_human.spec.phone_number.as_deref(), Some("+15550001111"));

    let run = s.runs().simulation_runs(caller, 1).await.expect("runs").remove(0);
    assert_eq!((run.status, run.counters.total_tests), (RunStatus::Running, 2));
    let results = s.runs().run_results(caller, 1).await.expect("results").simulation_results;
    let statuses: Vec<ResultStatus> = results.iter().map(|result| result.body.status).collect();
    assert_eq!(statuses, [ResultStatus::ConversationEnded, ResultStatus::Initializing]);
    assert_eq!(s.conversations().timeline(caller, 1).await.expect("there").events[0]["event"], "call.connected");
    assert_eq!(s.conversations().transcript(caller, 1).await.expect("there").entries[0].utterance, "Hello.");

    let request = RequestKey { organization: &caller.organization, route: "POST /v1/add-agent", key: "k" };
    let seen = s.store().begin_request(request, "h", START_MS + 1).await;
    assert_eq!(seen, Ok(Seen::Answered { status: 200, body: "{\"agent_id\":1}".into() }));
    let claimed = s.queue().claim(&[CallJob::NAME], 1000).await.expect("claims").expect("a job is due");
    assert_eq!(claimed.job::<CallJob>().map(|job| job.result_id), Ok(1));
}

#[tokio::test]
async fn a_database_of_the_first_schema_takes_new_rows() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let s = &first_schema(&folder).await;
    let caller = &s.library().authenticate("key of the first").await.expect("looked up").expect("known");
    let agent = s.library().add_agent(caller, super::spec(json!({"name": "New"}))).await.expect("added");
    assert_eq!(agent.agent_id, 2, "ids count on");
    let versions = async || {
        let mut db = s.store().org(&caller.organization).read().await.expect("a session");
        db.by::<VersionDoc>("agent_id", 2).await.expect("read").len()
    };
    assert_eq!(versions().await, 1);
    s.library().delete_agent(caller, 2).await.expect("deleted");
    assert_eq!(versions().await, 0, "a row takes with it what refers to it");
    let agent = s.library().add_agent(caller, super::spec(json!({"name": "Newer"}))).await.expect("added");
    assert_eq!(agent.agent_id, 3, "no id is given twice");
}
