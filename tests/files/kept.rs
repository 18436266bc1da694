//! Files after changes of their records: deleted ones leave the store, lost ones are told, private ones stay out.

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringer::clock::Clock;
use ringer::config::Retention;
use ringer::error::Error;
use ringer::jobs::store_due;
use ringer::model::result::ResultDoc;
use ringer::model::status::ResultStatus as S;
use ringer::service::{Caller, NoLiveCalls, NoiseSource, Service, Settings, Track, recording_link};
use ringer::store::artifacts::{Artifacts, Found, Swept};
use ringer_base::tls::Roots;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::server::Server;
use crate::api::call_logs::stereo;
use crate::databases;

/// Start of the clock: 2030-01-01T00:00:00Z, later than any object.
const START_MS: i64 = 1_893_456_000_000;
const HOUR_MS: i64 = 3_600_000;

/// A product whose files go to a store.
struct Product {
    server: Server,
    folder: TempDir,
    service: Service,
    caller: Caller,
    artifacts: Artifacts,
}

fn parse<T: DeserializeOwned>(body: Value) -> T {
    serde_json::from_value(body).expect("the body fits")
}

impl Product {
    async fn new() -> Product {
        let (server, folder) = (Server::start().await, tempfile::tempdir().expect("a folder"));
        let location = databases::empty(folder.path()).await;
        let store = databases::open(location, folder.path()).await.expect("a database");
        let clock = Clock::standing_at(START_MS);
        let settings = server.settings("x");
        let opened = Artifacts::open(&settings, &Roots::default(), &store, &clock, folder.path()).await;
        let artifacts = opened.expect("the settings fit").expect("there is a store");
        let settings = Settings { storage: Some(artifacts.clone()), ..Settings::new(folder.path()) };
        let service = Service::new(store, clock, settings, Arc::new(NoLiveCalls));
        let caller = service.library().bootstrap("first", "key").await.expect("a key");
        Product { server, folder, service, caller, artifacts }
    }

    fn here(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn is_stored(&self, path: &str) -> bool {
        self.server.object(&format!("x/{path}")).is_file()
    }

    async fn store_due(&self) -> usize {
        store_due(&self.service).await.expect("the store answers")
    }

    async fn agent(&self, more: Value) -> i64 {
        let mut body = json!({ "name": "Desk", "sip_uri": "sip:desk@pbx.example.com" });
        body.as_object_mut().expect("an object").extend(more.as_object().cloned().unwrap_or_default());
        self.service.library().add_agent(&self.caller, parse(body)).await.expect("an agent").agent_id
    }

    /// Returns a finished result, whose files have these names.
    async fn result(&self, agent: i64, files: &[&str]) -> i64 {
        let simulation = parse(json!({ "agent_id": agent.to_string() }));
        let simulation = self.service.library().create_simulation(&self.caller, simulation).await;
        let simulation = simulation.expect("a simulation").simulation_id;
        let human = self.service.humans().create_digital_human(&self.caller, parse(json!({})), &[simulation]).await;
        human.expect("a Digital Human");
        let run = parse(json!({ "simulation_id": simulation.to_string() }));
        let run = self.service.runs().queue_simulation_run(&self.caller, run).await.expect("a run");
        let id: i64 = run.simulation_result_ids[0].parse().expect("an id");
        std::fs::create_dir_all(self.here(&format!("results/{id}"))).expect("the folder is writable");
        for name in files {
            std::fs::write(self.here(&format!("results/{id}/{name}")), [7; 444]).expect("the folder is writable");
        }
        let way = [S::Initializing, S::Queued, S::Dispatched, S::Running, S::ConversationEnded, S::Evaluating];
        for step in way.windows(2) {
            self.step(id, step[0], step[1]).await;
        }
        let link = |doc: &mut ResultDoc| doc.body.audio_url = Some(recording_link(id));
        let organization = &self.caller.organization;
        self.service.conversations().amend(organization, id, link).await.expect("it is there");
        self.step(id, S::Evaluating, S::Completed).await;
        id
    }

    async fn step(&self, id: i64, from: S, to: S) {
        let moved = self.service.conversations().advance(&self.caller.organization, id, from, to, |_| {}).await;
        moved.expect("an allowed step");
    }

    async fn note(&self, id: i64) -> Value {
        let body = self.service.runs().result(&self.caller, id).await.expect("it is there").body;
        json!([body.metadata.get("recording"), body.audio_url.is_some()])
    }

    async fn source(&self, id: i64) -> Result<Found, Error> {
        self.service.conversations().track_source(&self.caller, id, Track::Both).await
    }
}

#[tokio::test]
async fn retention_and_deletion_reach_the_store() {
    let p = Product::new().await;
    let agent = p.agent(json!({})).await;
    let (one, other) = (
        p.result(agent, &["recording.wav", "caller_clean.wav", "sip.log"]).await,
        p.result(agent, &["recording.wav", "sip.log"]).await,
    );
    assert_eq!(p.note(one).await, json!(["pending", true]));
    assert!(matches!(p.source(one).await, Ok(Found::Here(_))));
    assert_eq!(p.store_due().await, 2);
    assert_eq!(p.note(one).await, json!(["stored", true]));
    let file = |id: i64, name: &str| format!("results/{id}/{name}");
    assert!(!p.here(&file(one, "recording.wav")).exists() && p.is_stored(&file(one, "caller_clean.wav")));
    assert!(matches!(p.source(one).await, Ok(Found::Stored(_))));
    // A copy is a copy of the same bytes, and goes when there is no place for it.
    let copy = p.service.conversations().recording_path(&p.caller, one).await.expect("it is stored");
    assert_eq!(std::fs::read(&copy).expect("the copy"), [7; 444]);
    assert!(p.artifacts.evict().await.expect("the folder is writable") >= 444);
    assert!(!copy.exists() && p.is_stored(&file(one, "recording.wav")));
    p.service.clock().advance_ms(48 * HOUR_MS);
    let keep = Retention { recordings_days: 1, ..Retention::default() };
    assert_eq!(p.service.runs().clear_old(&keep).await.expect("it clears").recordings, 2);
    assert!(p.source(one).await.is_err(), "at once");
    p.store_due().await;
    assert!(!p.is_stored(&file(one, "recording.wav")) && !p.is_stored(&file(one, "caller_clean.wav")));
    assert!(p.is_stored(&file(one, "sip.log")), "records stay");
    assert_eq!(p.service.runs().clear_old(&keep).await.expect("it clears").recordings, 0);
    p.service.runs().delete_result(&p.caller, other).await.expect("it is deleted");
    p.store_due().await;
    assert!(!p.is_stored(&file(other, "sip.log")) && p.is_stored(&file(one, "sip.log")));
    // A limit of bytes counts those of the store.
    let third = p.result(agent, &["recording.wav"]).await;
    std::fs::write(p.here(&file(third, "recording.wav")), vec![1; 1_100_000]).expect("the folder is writable");
    p.store_due().await;
    let keep = Retention { disk_quota_mb: 1, ..Retention::default() };
    assert_eq!(p.service.runs().clear_old(&keep).await.expect("it clears").recordings, 1);
    p.store_due().await;
    assert!(!p.is_stored(&file(third, "recording.wav")));
}

#[tokio::test]
async fn production_calls_and_noises_are_stored_and_leave_the_store() {
    let p = Product::new().await;
    let agent = p.agent(json!({})).await;
    let call = json!({
        "agent_id": agent.to_string(), "start_time_utc": "2029-12-31T08:00:00Z",
        "participants": [{ "role": "AGENT" }, { "role": "USER" }],
        "recording_base64": format!("data:audio/wav;base64,{}", STANDARD.encode(stereo())),
        "transcript": [{ "start_offset_ms": 0, "end_offset_ms": 900, "speaker": "AGENT", "utterance": "Hello." }],
    });
    let call = p.service.evaluations().evaluate_call(&p.caller, parse(call)).await.expect("queued").call_id;
    assert_eq!(p.store_due().await, 0, "it is still to be judged");
    assert_eq!(ringer::jobs::Upkeep::new(p.service.clone()).work_off().await.map(|done| done > 0), Ok(true));
    p.store_due().await;
    let path = format!("call-logs/{call}/recording");
    assert!(p.is_stored(&path) && !p.here(&path).exists());
    // A new evaluation has the recording.
    p.service.evaluations().re_evaluate_log(&p.caller, &call).await.expect("queued");
    ringer::jobs::Upkeep::new(p.service.clone()).work_off().await.expect("it is judged");
    let log = p.service.evaluations().call_log(&p.caller, &call).await.expect("the log");
    assert_eq!((log.error_message, log.duration_ms > 0), (None, true));
    p.service.evaluations().delete_log(&p.caller, &call, false).await.expect("deleted");
    p.store_due().await;
    assert!(!p.is_stored(&path) && !p.here(&path).exists());
    let noise = NoiseSource::File(stereo());
    let noise = p.service.library().create_background_noise(&p.caller, "Street".into(), noise).await.expect("stored");
    p.store_due().await;
    let path = format!("noises/{}", noise.id);
    assert!(p.is_stored(&path) && p.here(&path).exists(), "calls need it here");
    std::fs::remove_file(p.here(&path)).expect("it was there");
    let again = NoiseSource::Existing(noise.id.to_string());
    p.service.library().create_background_noise(&p.caller, "Again".into(), again).await.expect("it is brought here");
    p.service.library().delete_background_noise(&p.caller, noise.id).await.expect("deleted");
    p.store_due().await;
    assert!(!p.is_stored(&path));
}

#[tokio::test]
async fn a_recording_that_is_elsewhere_is_pending_and_then_lost_and_comes_back() {
    let p = Product::new().await;
    let agent = p.agent(json!({})).await;
    let see = async || {
        let mut db = p.service.store().system().await.expect("a session");
        db.see_place("another", p.service.clock().now_ms()).await.expect("noted");
        db.commit().await.expect("noted");
    };
    see().await;
    let id = p.result(agent, &[]).await;
    p.store_due().await;
    assert_eq!(p.note(id).await, json!(["pending", true]), "another engine may have it");
    assert_eq!(p.source(id).await.map(drop), Err(Error::Conflict("Recording is not stored yet".into())));
    p.service.clock().advance_ms(73 * HOUR_MS);
    p.store_due().await;
    assert_eq!(p.note(id).await, json!(["lost", false]));
    assert_eq!(p.source(id).await.map(drop), Err(Error::NotAvailable("Recording was lost with its engine".into())));
    // The folder of the machine is found after all.
    let path = format!("results/{id}/recording.wav");
    std::fs::create_dir_all(p.here(&format!("results/{id}"))).expect("the folder is writable");
    std::fs::write(p.here(&path), [7; 444]).expect("the folder is writable");
    assert_eq!(p.service.conversations().store_what_is_left().await, Ok(1));
    p.store_due().await;
    assert_eq!((p.note(id).await, p.is_stored(&path)), (json!(["stored", true]), true));
}

#[tokio::test]
async fn what_is_taken_out_of_a_private_conversation_is_taken_out_of_the_store() {
    let p = Product::new().await;
    let agent = p.agent(json!({ "redact_pii": true })).await;
    let id = p.result(agent, &["recording.wav", "sip.log", "timeline.jsonl"]).await;
    p.store_due().await;
    let file = |name: &str| format!("results/{id}/{name}");
    assert!(p.is_stored(&file("sip.log")));
    let organization = &p.caller.organization;
    let redactor = p.service.conversations().redactor(organization, id).await.expect("it answers").expect("it asks");
    p.service.conversations().redact_conversation(organization, id, &redactor).await.expect("it is redacted");
    assert!(matches!(p.source(id).await, Ok(Found::Here(_))), "nobody reads the old one");
    p.store_due().await;
    assert!(!p.is_stored(&file("sip.log")) && !p.is_stored(&file("timeline.jsonl")));
    assert_eq!(p.service.conversations().store_what_is_left().await, Ok(1));
    p.store_due().await;
    assert!(matches!(p.source(id).await, Ok(Found::Stored(_))) && p.is_stored(&file("recording.wav")));
    // One that was redacted where its recording is not: nobody has taken out of that what is private.
    let id = p.result(agent, &[]).await;
    p.service.conversations().redact_conversation(organization, id, &redactor).await.expect("it is redacted");
    assert_eq!(p.note(id).await, json!(["pending", false]));
    std::fs::write(p.here(&format!("results/{id}/recording.wav")), [7; 444]).expect("the folder is writable");
    p.store_due().await;
    assert!(!p.is_stored(&format!("results/{id}/recording.wav")));
    assert!(!p.here(&format!("results/{id}/recording.wav")).exists());
}

#[tokio::test]
async fn objects_of_nobody_are_removed_and_another_database_keeps_its_own() {
    let p = Product::new().await;
    let agent = p.agent(json!({})).await;
    let id = p.result(agent, &["recording.wav"]).await;
    p.store_due().await;
    let orphan = p.server.object("x/results/999/recording.wav");
    std::fs::create_dir_all(orphan.parent().expect("a folder")).expect("the folder is writable");
    std::fs::write(&orphan, [7; 10]).expect("the folder is writable");
    // A row without its owner, as an engine leaves it that dies between the two.
    let mut db = p.service.store().org(&p.caller.organization).write().await.expect("a session");
    db.delete::<ResultDoc>(id).await.expect("deleted");
    db.commit().await.expect("deleted");
    assert_eq!(p.artifacts.sweep().await, Ok(Swept { orphans: 1, owners: 1 }));
    assert!(!orphan.exists());
    p.store_due().await;
    assert!(!p.is_stored(&format!("results/{id}/recording.wav")));
    let other = tempfile::tempdir().expect("a folder");
    let location = databases::empty(other.path()).await;
    let store = databases::open(location, other.path()).await.expect("a database");
    let (settings, clock) = (p.server.settings("x"), Clock::standing_at(START_MS));
    let opened = Artifacts::open(&settings, &Roots::default(), &store, &clock, other.path()).await;
    let why = opened.expect("the settings fit").expect("a store").sweep().await.expect_err("it is not its own");
    assert!(why.to_string().contains("it holds the files of another database (ringer-database)"), "{why}");
}
