//! Rows at rest and the rules above them, on a database file of their own.

mod always_on;
mod before;
mod beside;
mod budgets;
pub(crate) mod dials;
mod ended;
mod killed;
mod legs;
mod lifecycle;
mod limits;
mod older;
mod overdue;
mod queue;
mod receiver;
mod rerun;
mod resources;
mod schedules;
mod seam;
mod secrets;
mod texts;
mod urls;
mod usage;
mod verdicts;
mod webhooks;

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use ringer::clock::Clock;
use ringer::model::api_key::Scope;
use ringer::model::digital_human::DigitalHumanSpec;
use ringer::model::run::QueueSpec;
use ringer::service::{Caller, LiveCalls, Service, Settings};
use ringer::store::Location;
use ringer_media::call::EndReason;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use crate::databases;

/// Start of every test: 2026-01-05T09:00:00Z.
const START_MS: i64 = 1_767_603_600_000;

/// Remembers which calls were asked to end; holds the calls that a test says are live.
#[derive(Default)]
struct Live {
    calls: Mutex<Vec<i64>>,
    asked: Mutex<Vec<(i64, EndReason)>>,
}

impl LiveCalls for Live {
    fn hangup(&self, result_id: i64, reason: EndReason) -> bool {
        self.asked.lock().push((result_id, reason));
        self.calls.lock().contains(&result_id)
    }

    fn sip_address(&self) -> Option<SocketAddr> {
        "192.0.2.10:5060".parse().ok()
    }
}

/// A product on a database of its own.
struct Fixture {
    service: Service,
    caller: Caller,
    live: Arc<Live>,
    clock: Clock,
    location: Location,
    folder: TempDir,
}

impl Fixture {
    async fn new() -> Fixture {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let location = databases::empty(folder.path()).await;
        Fixture::on(location, folder).await
    }

    /// Returns a fixture on SQLite, for tests that look into the file.
    async fn on_file() -> Fixture {
        let folder = tempfile::tempdir().expect("a temporary folder");
        Fixture::on(folder.path().join("ringer.db").as_path().into(), folder).await
    }

    async fn on(location: Location, folder: TempDir) -> Fixture {
        let clock = Clock::standing_at(START_MS);
        let live = Arc::new(Live::default());
        let service = open(&location, &folder, &clock, live.clone()).await;
        let caller = service.library().bootstrap("first", "key of the first").await.expect("a key");
        Fixture { service, caller, live, clock, location, folder }
    }

    /// Opens the same database again.
    async fn reopen(&mut self) {
        self.service.store().close().await;
        self.service = open(&self.location, &self.folder, &self.clock, self.live.clone()).await;
    }

    /// Returns a caller of another organization.
    async fn stranger(&self) -> Caller {
        self.service.library().bootstrap("second", "key of the second").await.expect("a key")
    }

    async fn agent(&self, body: Value) -> i64 {
        self.service.library().add_agent(&self.caller, spec(body)).await.expect("an agent").agent_id
    }

    async fn simulation(&self, body: Value) -> i64 {
        self.service.library().create_simulation(&self.caller, spec(body)).await.expect("a simulation").simulation_id
    }

    async fn human(&self, body: Value, simulations: &[i64]) -> i64 {
        let spec: DigitalHumanSpec = spec(body);
        let made = self.service.humans().create_digital_human(&self.caller, spec, simulations).await;
        made.expect("a digital human").digital_human.id
    }

    /// Returns an agent with a simulation of `humans` Digital Humans.
    async fn booth(&self, simulation: Value, humans: usize) -> (i64, i64, Vec<i64>) {
        let agent = self.agent(json!({"name": "Desk", "sip_uri": "sip:desk@pbx.example.com"})).await;
        let mut body = json!({"agent_id": agent.to_string()});
        extend(&mut body, simulation);
        let simulation = self.simulation(body).await;
        let mut ids = vec![];
        for n in 0..humans {
            ids.push(self.human(json!({"name": format!("Human {n}"), "intent": "book"}), &[simulation]).await);
        }
        (agent, simulation, ids)
    }

    /// Queues a run and answers its id and those of its results.
    async fn run(&self, simulation: i64, more: Value) -> (i64, Vec<i64>) {
        let mut body = json!({"simulation_id": simulation.to_string(), "seed": 7});
        extend(&mut body, more);
        let answer =
            self.service.runs().queue_simulation_run(&self.caller, spec::<QueueSpec>(body)).await.expect("a run");
        let ids = answer.simulation_result_ids.iter().map(|id| id.parse().expect("a number")).collect();
        (answer.simulation_run_id.parse().expect("a number"), ids)
    }
}

async fn open(location: &Location, folder: &TempDir, clock: &Clock, live: Arc<Live>) -> Service {
    let store = databases::open(location.clone(), folder.path()).await.expect("the database opens");
    Service::new(store, clock.clone(), Settings::new(folder.path()), live)
}

fn spec<T: DeserializeOwned>(body: Value) -> T {
    serde_json::from_value(body).expect("the body fits")
}

fn map(body: Value) -> Map<String, Value> {
    body.as_object().expect("an object").clone()
}

fn extend(body: &mut Value, more: Value) {
    body.as_object_mut().expect("an object").extend(map(more));
}

/// Returns the text of a refusal; "" when there is none.
fn refusal<T>(result: ringer::error::Result<T>) -> String {
    result.err().map(|error| error.to_string()).unwrap_or_default()
}

/// Returns a caller of the same organization that may only read.
fn reader(caller: &Caller) -> Caller {
    Caller { scope: Scope::Read, ..caller.clone() }
}
