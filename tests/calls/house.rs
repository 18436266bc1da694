//! The whole product in one process, to be asked over HTTP.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, BodyDataStream, to_bytes};
use axum::http::Request;
use futures_util::StreamExt;
use ringer::api::{Setup, router};
use ringer::bus::{AGAIN, Channel, NatsBus, Terms};
use ringer::clock::Clock;
use ringer::config::{Bus, Config, Sources, SymmetricRtp};
use ringer::engine::{Engine, EngineConfig, SocketSettings, Speech};
use ringer::jobs::{Workers, Workshop};
use ringer::provider::fake::{FakeRecognizer, FakeSynthesizer};
use ringer::provider::tls::Roots;
use ringer::provider::{LanguageModel, Recognizer};
use ringer::service::{Running, Service, Settings, adapters};
use ringer::store::vault::Vault;
use ringer::store::{Location, Store};
use ringer::tasks::Tasks;
use ringer::transport::sip::transfer::Forwarding;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::local;
use crate::json::with;

pub(crate) const KEY: &str = "rk_runs";

/// Engine, jobs and API over a database of their own.
pub(crate) struct House {
    pub router: Router,
    pub engine: Engine,
    pub workers: Workers,
    pub service: Service,
    pub folder: TempDir,
    running: Arc<Running>,
    /// Messages from and to other engines.
    messages: Tasks,
}

impl House {
    pub(crate) async fn new() -> House {
        House::open(tempfile::tempdir().expect("a folder"), 20, &[]).await
    }

    /// Returns an engine with its API whose recognizer understands this, whatever it hears.
    pub(crate) async fn understanding(text: &str) -> House {
        let recognizer = FakeRecognizer::new(&[text; 100], 0);
        House::of(tempfile::tempdir().expect("a folder"), 20, &[], None, Arc::new(recognizer)).await
    }

    /// Returns an engine over what is in `folder`, for `max_calls` calls at once, and calls in from `allowed` alone.
    pub(crate) async fn open(folder: TempDir, max_calls: usize, allowed: &[&str]) -> House {
        House::of(folder, max_calls, allowed, None, Arc::new(FakeRecognizer::default())).await
    }

    /// Returns the same with a language model, and with a recognizer.
    pub(crate) async fn of(
        folder: TempDir,
        max_calls: usize,
        allowed: &[&str],
        model: Option<Arc<dyn LanguageModel>>,
        recognizer: Arc<dyn Recognizer>,
    ) -> House {
        let file = folder.path().join("ringer.db");
        House::start(&file, folder, Clock::Real, max_calls, allowed, (model, recognizer), |_, _| ()).await
    }

    /// Returns an engine with the trunks and limits of this settings file.
    pub(crate) async fn with_trunks(settings: &str) -> House {
        House::with_engine(settings, |_| ()).await
    }

    /// Returns the same, whose engine has further settings that no file has.
    pub(crate) async fn with_engine(settings: &str, change: impl FnOnce(&mut EngineConfig)) -> House {
        House::set_by(settings, change, FakeRecognizer::default()).await
    }

    /// Returns an engine with the settings of this file, whose recognizer understands a text, whatever it hears.
    pub(crate) async fn hearing(settings: &str, text: &str) -> House {
        House::set_by(settings, |_| (), FakeRecognizer::new(&[text; 100], 0)).await
    }

    async fn set_by(settings: &str, change: impl FnOnce(&mut EngineConfig), recognizer: FakeRecognizer) -> House {
        let read = Config::from_texts(Some((Path::new("ringer.toml"), settings)), &BTreeMap::new(), &[], 4096);
        let config = read.expect("good settings");
        let set = |settings: &mut Settings, engine: &mut EngineConfig| {
            settings.dialects = ringer::cli::dialects(&config).expect("good settings").into();
            engine.forwarding = Forwarding::from(&config.sip);
            change(engine);
            settings.adapters = adapters(&config.adapters).expect("good settings").into();
            settings.sockets = SocketSettings::from(&config.websocket);
            settings.pipelines = config.p2.into();
            settings.telemetry = config.telemetry.into();
            (settings.trunks, settings.organization_limits) =
                (config.sip.trunks.into(), config.limits.organizations.into());
        };
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ringer.db");
        let speech: (_, Arc<dyn Recognizer>) = (None, Arc::new(recognizer));
        House::start(&file, folder, Clock::Real, 20, &[], speech, set).await
    }

    /// Returns the same, which keeps lines to the trunks and hears SIP at `sip`.
    pub(crate) async fn with_lines(settings: &str, sip: SocketAddr) -> House {
        let read = Config::from_texts(Some((Path::new("ringer.toml"), settings)), &BTreeMap::new(), &[], 4096);
        let config = read.expect("good settings");
        let trunks = config.sip.trunks.clone();
        let set = |settings: &mut Settings, engine: &mut EngineConfig| {
            (engine.sip, engine.symmetric_rtp) = (sip.into(), SymmetricRtp::On);
            let roots = config.tls.root_file.map(|path| Roots::from_file(&path).expect("it is a certificate"));
            engine.tls.roots = roots.unwrap_or_default();
            (settings.trunks, settings.sms) = (config.sip.trunks.into(), config.sms.into());
        };
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ringer.db");
        let speech: (_, Arc<dyn Recognizer>) = (None, Arc::new(FakeRecognizer::default()));
        let house = House::start(&file, folder, Clock::Real, 20, &["192.0.2.1"], speech, set).await;
        house.engine.keep_lines(&trunks, "urn:uuid:00000000-0000-1000-8000-000000000001").await;
        house
    }

    /// Returns an engine whose rows are in `location`, and whose jobs go by `clock`.
    pub(crate) async fn on(
        location: impl Into<Location>,
        folder: TempDir,
        clock: Clock,
        max_calls: usize,
        allowed: &[&str],
    ) -> House {
        House::start(
            location,
            folder,
            clock,
            max_calls,
            allowed,
            (None, Arc::new(FakeRecognizer::default())),
            |_, _| (),
        )
        .await
    }

    /// Returns an engine that shares a database with others, and has these settings.
    pub(crate) async fn sharing(
        location: impl Into<Location>,
        clock: Clock,
        max_calls: usize,
        set: impl FnOnce(&mut Settings),
    ) -> House {
        let folder = tempfile::tempdir().expect("a folder");
        let speech: (_, Arc<dyn Recognizer>) = (None, Arc::new(FakeRecognizer::default()));
        let anybody = ["127.0.0.0/8"];
        House::start(location, folder, clock, max_calls, &anybody, speech, |settings, _| set(settings)).await
    }

    /// Connects the engine to others by a bus.
    pub(crate) async fn talk(&self, settings: &Bus) {
        let store = self.service.store();
        let bus = NatsBus::connect(settings, &Roots::default(), "test", &self.messages).await;
        let terms = Terms {
            prefix: settings.prefix.clone(),
            name: store.engine().await.expect("it has a name").to_owned(),
            key: store.bus_key().await.expect("there is one"),
            again: AGAIN,
            clock: self.service.clock().clone(),
        };
        let channel = Channel::new(Arc::new(bus.expect("the settings can be used")), terms);
        self.running.talk_by(channel, store, &self.messages);
    }

    async fn start(
        location: impl Into<Location>,
        folder: TempDir,
        clock: Clock,
        max_calls: usize,
        allowed: &[&str],
        (model, recognizer): (Option<Arc<dyn LanguageModel>>, Arc<dyn Recognizer>),
        set: impl FnOnce(&mut Settings, &mut EngineConfig),
    ) -> House {
        let mut settings = Settings::new(folder.path());
        let mut config = local::config(19_000..=19_999, max_calls);
        set(&mut settings, &mut config);
        let vault = Vault::new(["one key for every engine"]).expect("it is one");
        let store = Store::open(location, vault).await.expect("a database");
        let running = Arc::new(Running::default());
        let service = Service::new(store, clock, settings, running.clone());
        let service = service.with_model(model.clone());
        service.library().bootstrap("default", KEY).await.expect("a key");
        service.runs().recover().await.expect("what is left of before is taken up");
        let speech = Speech { synthesizer: Arc::new(FakeSynthesizer::default()), recognizer };
        let (engine, incoming) = Engine::start(config, speech, Clock::Real).await.expect("loopback has a free port");
        let workshop = Workshop {
            inbound_allow: Sources::parse(&allowed.iter().map(|from| from.to_string()).collect::<Vec<_>>())
                .expect("they are networks"),
            ..local::workshop(service.clone(), engine.clone(), running.clone(), model)
        };
        let workers = Workers::start(workshop, incoming);
        let (line_tests, previews) = (Some(workers.line_tests()), Some(workers.previews()));
        let setup = Setup { engine: Some(engine.clone()), line_tests, previews, ..Setup::default() };
        let router = router(service.clone(), setup, CancellationToken::new(), Tasks::new());
        House { router, engine, workers, folder, service, running, messages: Tasks::new() }
    }

    pub(crate) async fn ask(&self, method: &str, path: &str, body: Value) -> (u16, Body) {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("x-api-key", KEY);
        let request = request.header("content-type", "application/json").body(Body::from(bytes)).expect("legal");
        let response = self.router.clone().oneshot(request).await.expect("a router answers");
        (response.status().as_u16(), response.into_body())
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask(method, path, body).await;
        let answer = to_bytes(answer, 1 << 24).await.expect("a body");
        assert_eq!(status, 200, "{method} {path}: {}", String::from_utf8_lossy(&answer));
        serde_json::from_slice(&answer).expect("JSON")
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        self.call("POST", path, body).await
    }

    pub(crate) async fn status_of(&self, path: &str) -> u16 {
        self.ask("GET", path, Value::Null).await.0
    }

    /// Queues a run of as many Digital Humans as there are bodies, and answers the ids of run and results.
    pub(crate) async fn queue(&self, agent: Value, simulation: Value, humans: &[Value]) -> (String, Vec<String>) {
        let agent_id = self.post("/v1/add-agent", with(json!({ "name": "Desk" }), agent)).await["agent_id"].to_string();
        let body = json!({ "agent_id": agent_id, "max_call_duration": 2, "max_call_duration_units": "seconds" });
        let id = self.post("/v1/create-simulation", with(body, simulation)).await["simulation_id"].clone();
        for human in humans {
            let human = with(json!({ "intent": "Book a table." }), human.clone());
            let body = json!({ "digital_human": human, "simulation_ids": [id] });
            self.post("/v1/create-digital-human", body).await;
        }
        let queued = self.post("/v1/queue-simulation-run", json!({ "simulation_id": id.to_string(), "seed": 7 })).await;
        let ids = queued["simulation_result_ids"].as_array().expect("ids").iter();
        let text = |id: &Value| id.as_str().expect("a text").to_owned();
        (text(&queued["simulation_run_id"]), ids.map(text).collect())
    }

    /// Returns the events of a result, until the last.
    pub(crate) async fn events(&self, id: &str) -> Vec<(String, Value)> {
        self.watch(id).await.rest().await
    }

    pub(crate) async fn watch(&self, id: &str) -> Watch {
        let (status, body) = self.ask("GET", &format!("/v1/simulation-result/{id}/events"), Value::Null).await;
        assert_eq!(status, 200);
        Watch { pieces: body.into_data_stream() }
    }

    pub(crate) async fn result(&self, id: &str) -> Value {
        self.call("GET", &format!("/v1/retrieve-simulation-result/{id}"), Value::Null).await["simulation_result"]
            .clone()
    }

    pub(crate) async fn stop(self) {
        drop(self.close().await);
    }

    /// Ends everything and leaves what was stored.
    pub(crate) async fn close(self) -> TempDir {
        self.workers.stop_claiming();
        tokio::join!(self.engine.stop(), self.workers.finish());
        self.messages.stop().await;
        self.folder
    }
}

/// The events of a result as they come.
pub(crate) struct Watch {
    pieces: BodyDataStream,
}

impl Watch {
    /// Returns the next event; `None`: there are no more.
    pub(crate) async fn next(&mut self) -> Option<(String, Value)> {
        let piece = self.pieces.next().await?.expect("the stream is not broken");
        let piece = String::from_utf8(piece.to_vec()).expect("text");
        let field = |name: &str| piece.lines().find_map(|line| line.strip_prefix(name));
        let event = field("event: ").unwrap_or_default().to_owned();
        Some((event, field("data: ").map_or(Value::Null, |data| serde_json::from_str(data).expect("JSON"))))
    }

    pub(crate) async fn until(&mut self, status: &str) {
        while let Some((event, data)) = self.next().await {
            if event == "status" && data["status"] == status {
                return;
            }
        }
        panic!("it never was {status}");
    }

    /// Waits for an event of the call.
    pub(crate) async fn until_event(&mut self, name: &str) {
        while let Some((event, _)) = self.next().await {
            if event == name {
                return;
            }
        }
        panic!("there was no {name}");
    }

    pub(crate) async fn rest(mut self) -> Vec<(String, Value)> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }
}
