//! A whole server without a socket: two organizations, their keys, and some rows to ask for.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, BodyDataStream, to_bytes};
use axum::http::{HeaderMap, Request};
use ringer::api::{Setup, router};
use ringer::clock::Clock;
use ringer::config::Retention;
use ringer::engine::Speech;
use ringer::jobs::{Upkeep, Workers, Workshop};
use ringer::model::api_key::Scope;
use ringer::provider::fake::{FakeRecognizer, FakeSynthesizer};
use ringer::provider::{LanguageModel, Recognizer, Synthesizer};
use ringer::service::{LiveCalls, NoLiveCalls, Running, Service, Settings};
use ringer::store::Store;
use ringer::tasks::Tasks;
use ringer::transport::incoming::Incoming;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::calls::local;
use crate::databases;

/// Start of the clock: 2026-01-05T09:00:00Z.
const NOW_MS: i64 = 1_767_603_600_000;

pub(crate) struct World {
    pub service: Service,
    works: Option<(Workshop, Workers)>,
    router: Router,
    /// Values of `$name` in the cases.
    names: BTreeMap<&'static str, String>,
    _folder: TempDir,
}

pub(crate) struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("no JSON: {}", String::from_utf8_lossy(&self.body)))
    }
}

impl World {
    pub(crate) async fn new() -> World {
        World::with_setup(Setup::default()).await
    }

    /// Returns a world with a language model.
    pub(crate) async fn with_model(model: Arc<dyn LanguageModel>) -> World {
        World::build(Setup::default(), Some(model), |_| {}).await
    }

    /// Returns the same with a server that is set up otherwise.
    pub(crate) async fn with_model_and(model: Arc<dyn LanguageModel>, setup: Setup) -> World {
        World::build(setup, Some(model), |_| {}).await
    }

    /// Returns a world with a language model whose service is set up otherwise.
    pub(crate) async fn with_model_set(model: Arc<dyn LanguageModel>, change: impl FnOnce(&mut Settings)) -> World {
        World::build(Setup::default(), Some(model), change).await
    }

    pub(crate) async fn with_setup(setup: Setup) -> World {
        World::with(setup, |_| {}).await
    }

    pub(crate) async fn with_settings(change: impl FnOnce(&mut Settings)) -> World {
        World::with(Setup::default(), change).await
    }

    /// Returns a world whose service is set up otherwise.
    pub(crate) async fn with(setup: Setup, change: impl FnOnce(&mut Settings)) -> World {
        World::build(setup, None, change).await
    }

    async fn build(setup: Setup, model: Option<Arc<dyn LanguageModel>>, change: impl FnOnce(&mut Settings)) -> World {
        let folder = tempfile::tempdir().expect("a folder");
        let location = databases::empty(folder.path()).await;
        let store = databases::open(location, folder.path()).await.expect("a database");
        let mut settings = Settings::new(folder.path());
        change(&mut settings);
        World::over(store, folder, settings, setup, model, Arc::new(NoLiveCalls)).await
    }

    /// Returns a world whose calls would speak by this synthesizer.
    pub(crate) async fn speaking_by(synthesizer: Arc<dyn Synthesizer>) -> World {
        let folder = tempfile::tempdir().expect("a folder");
        let location = databases::empty(folder.path()).await;
        let store = databases::open(location, folder.path()).await.expect("a database");
        let running = Arc::new(Running::default());
        running.speak_by(synthesizer);
        let settings = Settings::new(folder.path());
        World::over(store, folder, settings, Setup::default(), None, running).await
    }

    /// Returns a world whose jobs are done as they come, on its fixed clock; with a language model or without.
    pub(crate) async fn at_work(model: Option<Arc<dyn LanguageModel>>) -> World {
        World::at_work_with(model, |_| {}).await
    }

    /// Returns the same with a service that is set up otherwise.
    pub(crate) async fn at_work_with(
        model: Option<Arc<dyn LanguageModel>>,
        change: impl FnOnce(&mut Settings),
    ) -> World {
        World::working(model, change).await
    }

    /// Returns the same where things are kept as long as this says.
    pub(crate) async fn at_work_keeping(retention: Retention) -> World {
        World::working(None, |settings| settings.retention = retention).await
    }

    async fn working(model: Option<Arc<dyn LanguageModel>>, change: impl FnOnce(&mut Settings)) -> World {
        let folder = tempfile::tempdir().expect("a folder");
        let location = databases::empty(folder.path()).await;
        let store = databases::open(location, folder.path()).await.expect("a database");
        let mut settings = Settings::new(folder.path());
        change(&mut settings);
        let running = Arc::new(Running::default());
        let world = World::over(store, folder, settings, Setup::default(), model.clone(), running.clone());
        let mut world = world.await;
        let synthesizer = Arc::new(FakeSynthesizer::default());
        let speech = Speech { synthesizer, recognizer: Arc::new(FakeRecognizer::default()) };
        let (engine, _) = local::engine(18_000..=18_999, 4, speech).await;
        let workshop = local::workshop(world.service.clone(), engine, running, model);
        let workshop = Workshop { start_rate_per_s: 1000.0, ..workshop };
        let workers = Workers::start(workshop.clone(), nobody_calls());
        world.works = Some((workshop, workers));
        world
    }

    /// Stops the jobs as a process does that ends, and starts them again as the next one does.
    pub(crate) async fn restart(&mut self) {
        self.restart_after(async |_| {}).await;
    }

    /// Restarts the workers; `meanwhile` runs in between.
    pub(crate) async fn restart_after(&mut self, meanwhile: impl AsyncFnOnce(&World)) {
        let Some((workshop, workers)) = self.works.take() else { panic!("nothing works in this world") };
        workers.finish().await;
        meanwhile(self).await;
        self.service.runs().recover().await.expect("it recovers");
        let workers = Workers::start(workshop.clone(), nobody_calls());
        self.works = Some((workshop, workers));
    }

    /// Stops the jobs, and starts them again with what `change` makes of it.
    pub(crate) async fn restart_with(&mut self, change: impl FnOnce(&mut Workshop)) {
        self.restart_and_change(async |_| {}, change).await;
    }

    /// Changes the jobs as [`World::restart_with`] does; `meanwhile` runs in between.
    pub(crate) async fn restart_and_change(
        &mut self,
        meanwhile: impl AsyncFnOnce(&World),
        change: impl FnOnce(&mut Workshop),
    ) {
        let Some((mut workshop, workers)) = self.works.take() else { panic!("nothing works in this world") };
        workers.finish().await;
        meanwhile(self).await;
        change(&mut workshop);
        let workers = Workers::start(workshop.clone(), nobody_calls());
        self.works = Some((workshop, workers));
    }

    async fn over(
        store: Store,
        folder: TempDir,
        settings: Settings,
        setup: Setup,
        model: Option<Arc<dyn LanguageModel>>,
        live: Arc<dyn LiveCalls>,
    ) -> World {
        let service = Service::new(store, Clock::standing_at(NOW_MS), settings, live).with_model(model);
        let mut names = BTreeMap::new();
        for (name, organization, scope) in [
            ("admin", "a", Scope::Admin),
            ("write", "a", Scope::Write),
            ("read", "a", Scope::Read),
            ("foreign", "b", Scope::Admin),
        ] {
            let key = service.library().create_key_in(organization, scope, name).await.expect("a key");
            names.insert(name, key.api_key);
        }
        names.insert("organization", service.library().create_organization("a").await.expect("is there"));
        let router = router(service.clone(), setup, CancellationToken::new(), Tasks::new());
        World { service, works: None, router, names, _folder: folder }
    }

    /// Returns a world with an agent, a simulation of it, a Digital Human and a revoked key.
    pub(crate) async fn with_rows() -> World {
        World::with_rows_and(|_| {}).await
    }

    /// Returns the same with a service that is set up otherwise.
    pub(crate) async fn with_rows_and(change: impl FnOnce(&mut Settings)) -> World {
        let mut world = World::with(Setup::default(), change).await;
        let agent = world.post("/v1/add-agent", json!({ "name": "Desk" })).await["agent_id"].to_string();
        let body = json!({ "agent_id": agent, "name": "Booking" });
        let simulation = world.post("/v1/create-simulation", body).await["simulation_id"].to_string();
        let body = json!({ "digital_human": { "name": "Maria", "intent": "Book." } });
        let human = world.post("/v1/create-digital-human", body).await["digital_human"]["id"].to_string();
        let body = json!({ "url": "http://127.0.0.1:9/hook", "event_types": ["simulation_ended"] });
        let webhook = world.post("/v1/webhooks", body).await["id"].as_str().expect("an id").to_owned();
        let texter = world.post("/v1/add-agent", json!({ "name": "Texter", "mode": "TEXT" })).await;
        let definition = json!({ "nodes": [{ "id": "start", "type": "start" }], "edges": [] });
        let scenario = world.post("/v1/scenario", json!({ "name": "Draft", "definition": definition })).await;
        let persona = json!({ "name": "Ann", "description": "Old.", "goal": "Book." });
        let persona = world.post("/v1/create-customer-persona", persona).await;
        let member =
            json!({ "agent_id": agent.parse::<i64>().expect("an id"), "name": "member_id", "data_type": "STRING" });
        let member = world.post("/v1/create-customer-trait", member).await;
        let community = world.post("/v1/create-community", json!({ "title": "All" })).await;
        let id = |row: &Value| row["id"].as_str().expect("an id").to_owned();
        world.names.extend([
            ("texter", texter["agent_id"].to_string()),
            ("scenario", id(&scenario)),
            ("persona", id(&persona)),
            ("trait", id(&member)),
            ("community", id(&community)),
        ]);
        let key = world.post("/v1/api-keys", json!({ "scope": "admin" })).await;
        let path = format!("/v1/api-keys/{}", key["id"].as_str().expect("an id"));
        assert_eq!(world.send("DELETE", &path, &[], Vec::new()).await.status, 204);
        let metric = json!({ "name": "Polite", "description": "d", "response_type": "yes_no", "agent_ids": [agent] });
        let metric = world.post("/v1/create-custom-metric", metric).await["id"].as_str().expect("an id").to_owned();
        world.names.insert("metric", metric);
        world.names.insert("revoked", key["api_key"].as_str().expect("a text").to_owned());
        world.names.extend([("agent", agent), ("simulation", simulation), ("digital_human", human)]);
        world.names.insert("webhook", webhook);
        let schedule = json!({ "frequency": "daily", "time": "09:00" });
        let body = json!({ "simulation_id": "$simulation", "schedule": schedule, "enabled": false });
        let schedule = world.post("/v1/create-schedule", body).await["id"].as_str().expect("an id").to_owned();
        world.names.insert("schedule", schedule);
        world
    }

    /// Sends a request with the admin key and JSON, unless `headers` say otherwise; an empty value takes a header away.
    pub(crate) async fn send(&self, method: &str, path: &str, headers: &[(String, String)], body: Vec<u8>) -> Answer {
        self.ask(self.router.clone(), method, path, headers, body).await
    }

    async fn ask(
        &self,
        router: Router,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
    ) -> Answer {
        let mut fields: Vec<(String, String)> =
            vec![("x-api-key".into(), "$admin".into()), ("content-type".into(), "application/json".into())];
        for (name, value) in headers {
            fields.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
            fields.push((name.to_lowercase(), value.clone()));
        }
        let mut request = Request::builder().method(method).uri(self.fill_names(path));
        for (name, value) in fields.iter().filter(|(_, value)| !value.is_empty()) {
            request = request.header(name, self.fill_names(value));
        }
        let body = match String::from_utf8(body) {
            Ok(text) => self.fill_names(&text).into_bytes(),
            Err(error) => error.into_bytes(),
        };
        let request = request.body(Body::from(body)).expect("a legal request");
        let response = router.oneshot(request).await.expect("a router answers");
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, 1 << 24).await.expect("a body").to_vec();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// Sends a request to a server over the same rows that is set up otherwise.
    pub(crate) async fn send_to(
        &self,
        setup: Setup,
        method: &str,
        path: &str,
        headers: &[(String, String)],
        body: Vec<u8>,
    ) -> Answer {
        let router = router(self.service.clone(), setup, CancellationToken::new(), Tasks::new());
        self.ask(router, method, path, headers, body).await
    }

    /// Asks for a stream with these headers beside no others, and returns its pieces.
    pub(crate) async fn stream(&self, path: &str, headers: &[(String, String)]) -> BodyDataStream {
        let mut request = Request::builder().uri(path);
        for (name, value) in headers {
            request = request.header(name, self.fill_names(value));
        }
        let request = request.body(Body::empty()).expect("a legal request");
        let response = self.router.clone().oneshot(request).await.expect("a router answers");
        assert_eq!(response.status().as_u16(), 200, "{path}");
        response.into_body().into_data_stream()
    }

    /// Sends JSON and expects success.
    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> Value {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let answer = self.send(method, path, &[], bytes).await;
        assert_eq!(answer.status, 200, "{method} {path}: {}", String::from_utf8_lossy(&answer.body));
        answer.json()
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        self.call("POST", path, body).await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.call("GET", path, Value::Null).await
    }

    /// Does all the work that is due in the background.
    pub(crate) async fn work_off(&self) -> usize {
        self.work_off_with(None).await
    }

    /// Does the waiting jobs as [`World::work_off`] does, words judged by `model`.
    pub(crate) async fn work_off_with(&self, model: Option<Arc<dyn LanguageModel>>) -> usize {
        self.work_off_by(model, None).await
    }

    /// Does the waiting jobs as [`World::work_off`] does, recordings heard by `recognizer`.
    pub(crate) async fn work_off_by(
        &self,
        model: Option<Arc<dyn LanguageModel>>,
        recognizer: Option<Arc<dyn Recognizer>>,
    ) -> usize {
        self.work_off_with_all(model, recognizer, None).await
    }

    /// Does the waiting jobs as [`World::work_off`] does; `ear` judges sound.
    pub(crate) async fn work_off_with_all(
        &self,
        model: Option<Arc<dyn LanguageModel>>,
        recognizer: Option<Arc<dyn Recognizer>>,
        ear: Option<Arc<dyn LanguageModel>>,
    ) -> usize {
        let upkeep = Upkeep { model, recognizer, ear, ..Upkeep::new(self.service.clone()) };
        upkeep.work_off().await.expect("the work can be done")
    }

    /// Lets `$name` stand for `value`.
    pub(crate) fn call_it(&mut self, name: &'static str, value: impl ToString) {
        self.names.insert(name, value.to_string());
    }

    /// Returns the value of `$name`.
    pub(crate) fn name(&self, name: &str) -> &str {
        &self.names[name]
    }

    /// Returns a text with what its `$name`s stand for.
    pub(crate) fn fill_names(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, value) in &self.names {
            text = text.replace(&format!("${name}"), value);
        }
        text
    }
}

/// Returns a receiver on which no call comes in.
fn nobody_calls() -> mpsc::Receiver<Incoming> {
    mpsc::channel(1).1
}
