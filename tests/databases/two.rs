//! Two engines on one database: each job is done by one of them, once, and neither takes the other for gone.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use ringer::api::{Setup, router};
use ringer::clock::Clock;
use ringer::error::Error;
use ringer::model::error_code::ErrorCode;
use ringer::model::folder::FolderSpec;
use ringer::model::status::ResultStatus as S;
use ringer::service::{Caller, NoLiveCalls, Service, Settings};
use ringer::store::db::Database;
use ringer::store::idempotency::{Carried, RequestKey, Seen};
use ringer::store::vault::Vault;
use ringer::store::{Location, Store};
use ringer::tasks::Tasks;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use super::schema_on;
use super::server::Server;
use crate::api::idempotency::Slow;
use crate::api::receiver::Receiver;
use crate::calls::house::House;
use crate::peers::Peer;

/// Start of the clock: 2026-01-05T09:00:30Z.
const START_MS: i64 = 1_767_603_630_000;
/// Calls that one engine makes at the same time.
const AT_ONCE: usize = 4;
/// Results that each engine is asked for.
const RESULTS: usize = 10;

async fn house(location: &Location, clock: &Clock) -> House {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    House::on(location.clone(), folder, clock.clone(), AT_ONCE, &[]).await
}

/// Runs a test beside a database server, which ends with the thread that has started it.
pub(crate) fn beside_a_server<Done: Future<Output = ()>>(test: impl FnOnce(Location) -> Done) {
    let server = Server::start(false);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime starts").block_on(async { test(schema_on(&server.url()).await).await });
}

async fn queue(house: &House, peer: &Peer, count: usize) -> (String, Vec<String>) {
    let agent = json!({ "sip_uri": format!("sip:bob@{}", peer.sip) });
    house.queue(agent, json!({ "max_call_duration": 1 }), &vec![json!({ "name": "Ann" }); count]).await
}

#[test]
fn two_engines_share_the_work_and_do_nothing_twice() {
    beside_a_server(share_database);
}

async fn share_database(location: Location) {
    let clock = Clock::standing_at(START_MS);
    let receiver = Receiver::new(&[]).await;
    // So many calls are answered; a call too many is not, and the peer does not end with a call too few.
    let peer = Peer::answering(2 * RESULTS as u32 + 1);
    let first = house(&location, &clock).await;
    let hook =
        json!({ "url": receiver.url("/hook"), "event_types": ["simulation_ended", "simulation_result_evaluated"] });
    first.post("/v1/webhooks", hook).await;
    let (run, mut ids) = queue(&first, &peer, RESULTS).await;
    first.watch(&ids[0]).await.until("RUNNING").await;
    // Calls run when the second engine comes.
    let second = house(&location, &clock).await;
    let (other_run, more) = queue(&second, &peer, RESULTS).await;
    ids.extend(more);
    receiver.wait_for(2 * ids.len()).await;
    for id in &ids {
        let result = second.result(id).await;
        assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
        assert_eq!(result["end_reason"], "max_duration", "{result}");
    }
    for run in [&run, &other_run] {
        let read = first.call("GET", &format!("/v1/retrieve-simulation-results/{run}"), Value::Null).await;
        assert_eq!(read["simulation_run"]["status"], "COMPLETED", "{read}");
        assert_eq!(read["simulation_run"]["tests_completed"], RESULTS, "{read}");
    }
    let placed = |house: &House| house.engine.counters().calls().placed as usize;
    let (of_first, of_second) = (placed(&first), placed(&second));
    println!("{of_first} calls were placed by the first engine, {of_second} by the second");
    assert_eq!(of_first + of_second, ids.len(), "each result is called for once");
    assert!(of_first > 0 && of_second > 0, "{of_first} and {of_second}: both work");

    // A schedule of one call is due while both engines look.
    let agent = first.result(&ids[0]).await["agent_id"].to_string();
    let body = json!({ "agent_id": agent, "max_call_duration": 1, "max_call_duration_units": "seconds" });
    let simulation = first.post("/v1/create-simulation", body).await["simulation_id"].clone();
    let human = json!({ "digital_human": { "name": "Ann" }, "simulation_ids": [simulation] });
    first.post("/v1/create-digital-human", human).await;
    let schedule = json!({ "frequency": "every_n_minutes", "interval": 1 });
    let schedule = json!({ "simulation_id": simulation.to_string(), "schedule": schedule });
    first.post("/v1/create-schedule", schedule).await;
    clock.advance_ms(40_000);
    tokio::join!(stir(&first), stir(&second));
    receiver.wait_for(2 * ids.len() + 2).await;
    assert_eq!(runs(&second, &simulation).await, 1, "a due time runs once");
    assert_eq!(placed(&first) + placed(&second), ids.len() + 1);

    let seen = receiver.requests();
    let event_ids: BTreeSet<&[u8]> = seen.iter().map(|one| one.headers["x-svc-event-id"].as_bytes()).collect();
    assert_eq!((seen.len(), event_ids.len()), (2 * ids.len() + 2, 2 * ids.len() + 2), "each event is told once");
    peer.end();
    tokio::join!(first.stop(), second.stop());
}

/// Makes an engine look for work.
async fn stir(house: &House) {
    let agent = house.post("/v1/add-agent", json!({ "name": "Unused" })).await["agent_id"].to_string();
    let unused = house.post("/v1/create-simulation", json!({ "agent_id": agent, "name": "Unused" })).await;
    let schedule = json!({ "frequency": "monthly", "day_of_month": 31, "time": "00:00" });
    let body = json!({ "simulation_id": unused["simulation_id"].to_string(), "schedule": schedule });
    house.post("/v1/create-schedule", body).await;
}

async fn runs(house: &House, simulation: &Value) -> usize {
    let runs = house.call("GET", &format!("/v1/get-simulation-runs/{simulation}"), Value::Null).await;
    runs["simulation_runs"].as_array().expect("a list").len()
}

/// Returns a service of its own on the database, without jobs.
async fn service(location: &Location, folder: &Path, clock: &Clock) -> Service {
    let vault = Vault::new(["one key for every engine"]).expect("it is one");
    let store = Store::open(location.clone(), vault).await.expect("a database");
    Service::new(store, clock.clone(), Settings::new(folder), Arc::new(NoLiveCalls))
}

/// Returns two of them, and who may use both.
pub(super) async fn two(location: &Location, folder: &Path, clock: &Clock) -> ([Service; 2], Caller) {
    let services = [service(location, folder, clock).await, service(location, folder, clock).await];
    let caller = services[0].library().bootstrap("default", "a key").await.expect("a key");
    (services, caller)
}

/// The key of a page ends with its engine, also when that is killed, and with no other.
#[test]
fn a_page_key_ends_with_its_engine() {
    beside_a_server(async |location: Location| {
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        let clock = Clock::standing_at(START_MS);
        let ([first, second], _) = two(&location, folder.path(), &clock).await;
        for engine in [&first, &second] {
            engine.runs().recover().await.expect("it registers");
        }
        let (door, token) = first.library().page_door("default");
        let key = first.library().open_page(&door, &token).await.expect("the token is good").api_key;
        second.library().close_old_pages("default").await.expect("it can");
        assert!(second.library().authenticate(&key).await.expect("it can").is_some(), "its engine works");
        first.store().close().await;
        second.library().close_old_pages("default").await.expect("it can");
        assert!(second.library().authenticate(&key).await.expect("it can").is_none(), "its engine is gone");
    });
}

#[test]
fn what_an_engine_has_left_is_ended_by_the_next_that_is_alone_or_by_the_end_of_its_claim() {
    beside_a_server(leave_database);
}

async fn leave_database(location: Location) {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let clock = Clock::standing_at(START_MS);
    let ([first, second], caller) = two(&location, folder.path(), &clock).await;
    assert_eq!((first.runs().recover().await, second.runs().recover().await), (Ok(0), Ok(0)));
    let spec = |body: Value| serde_json::from_value(body).expect("it fits");
    let agent = json!({ "name": "Desk", "sip_uri": "sip:desk@127.0.0.1" });
    let agent = first
        .library()
        .add_agent(&caller, serde_json::from_value(agent).expect("it fits"))
        .await
        .expect("an agent")
        .agent_id;
    let simulation = json!({ "agent_id": agent.to_string(), "name": "Left" });
    let simulation =
        first.library().create_simulation(&caller, serde_json::from_value(simulation).expect("it fits")).await;
    let simulation = simulation.expect("a simulation").simulation_id;
    let human = serde_json::from_value(json!({ "name": "Ann", "num_runs": 2 })).expect("it fits");
    first.humans().create_digital_human(&caller, human, &[simulation]).await.expect("a Digital Human");
    let queued =
        first.runs().queue_simulation_run(&caller, spec(json!({ "simulation_id": simulation.to_string() }))).await;
    let ids: Vec<i64> =
        queued.expect("a run").simulation_result_ids.iter().map(|id| id.parse().expect("a number")).collect();
    for id in &ids {
        for step in [S::Initializing, S::Queued, S::Dispatched].windows(2) {
            first
                .conversations()
                .advance(&caller.organization, *id, step[0], step[1], |_| ())
                .await
                .expect("an allowed step");
        }
    }
    let status = async |id: i64| second.runs().result(&caller, id).await.expect("it is there").body.status;
    let claimed = first.queue().claim(&["call"], 120_000).await.expect("it can").expect("a job");
    assert_eq!(second.runs().recover().await, Ok(0), "the first still works");
    assert_eq!(
        second.queue().claim(&["call"], 120_000).await.expect("it can").map(|job| job.id != claimed.id),
        Some(true)
    );
    assert_eq!(second.queue().claim(&["call"], 120_000).await.expect("it can"), None, "claims of the first hold");
    assert_eq!(status(ids[0]).await, S::Dispatched);
    // The first is gone; the second goes on, and takes its job when the claim ends.
    first.store().close().await;
    clock.advance_ms(120_001);
    second.conversations().end_abandoned(&caller.organization, ids[0]).await.expect("it can");
    assert_eq!((status(ids[0]).await, status(ids[1]).await), (S::SystemError, S::Dispatched));
    let result = second.runs().result(&caller, ids[0]).await.expect("it is there").body;
    assert_eq!(result.error_code, Some(ErrorCode::EngineRestarted));
    // Alone after a start, it ends at once what is left.
    assert_eq!(second.runs().recover().await, Ok(1));
    assert_eq!(status(ids[1]).await, S::SystemError);
    assert!(second.queue().claim(&["call"], 120_000).await.expect("it can").is_some(), "no claim is left");
}

#[test]
fn a_repeat_waits_for_what_another_engine_carries_out() {
    beside_a_server(repeat_requests);
}

async fn repeat_requests(location: Location) {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let (clock, slow) = (Clock::standing_at(START_MS), Slow::new());
    let first = service(&location, folder.path(), &clock).await.with_model(Some(slow.clone()));
    first.library().bootstrap("default", "a key").await.expect("a key");
    let second = service(&location, folder.path(), &clock).await;
    let [first, second] =
        [first, second].map(|service| router(service, Setup::default(), CancellationToken::new(), Tasks::new()));
    let repeats = async {
        slow.asked.notified().await;
        let begun_ms = clock.now_ms();
        let (status, _, late) = in_time(&second, &clock).await;
        assert_eq!((status, clock.now_ms() - begun_ms), (409, 30_000), "{late}");
        assert_eq!(late, json!({ "detail": "A request with this Idempotency-Key is still in progress" }));
        let moving = async {
            // It has looked and found no answer.
            clock.advance_to_wait(1_000).await;
            slow.let_go.notify_one();
            loop {
                clock.advance_to_wait(1_000).await;
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            again = once(&second) => again,
            _ = moving => unreachable!("somebody waits, or nobody does"),
        }
    };
    let (answer, again) = tokio::join!(once(&first), repeats);
    assert_eq!((answer.0, answer.1, again.0, again.1), (200, false, 200, true), "{answer:?} {again:?}");
    assert_eq!(answer.2, again.2);
}

#[test]
fn a_key_whose_engine_is_gone_is_free_and_that_of_one_that_works_is_not() {
    beside_a_server(broken_off);
}

async fn broken_off(location: Location) {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let (clock, stuck, quick) = (Clock::standing_at(START_MS), Slow::new(), Slow::new());
    quick.let_go.notify_one();
    let second = service(&location, folder.path(), &clock).await.with_model(Some(quick));
    second.library().bootstrap("default", "a key").await.expect("a key");
    let second = router(second, Setup::default(), CancellationToken::new(), Tasks::new());
    // An engine that ends with its runtime leaves the state of a killed process: connections closed in the middle of
    // work.
    let end = CancellationToken::new();
    let dying = {
        let (location, folder) = (location.clone(), folder.path().to_owned());
        let (clock, stuck, end) = (clock.clone(), stuck.clone(), end.clone());
        let run = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime starts").block_on(async {
                let first = service(&location, &folder, &clock).await.with_model(Some(stuck));
                let first = router(first, Setup::default(), CancellationToken::new(), Tasks::new());
                tokio::select! {
                    answer = once(&first) => Some(answer),
                    () = end.cancelled() => None,
                }
            })
        };
        std::thread::Builder::new().name("engine".to_owned()).spawn(run).expect("a thread starts")
    };
    stuck.asked.notified().await;
    let begun_ms = clock.now_ms();
    let (status, _, late) = in_time(&second, &clock).await;
    assert_eq!((status, clock.now_ms() - begun_ms), (409, 30_000), "the first engine works: {late}");
    end.cancel();
    assert_eq!(dying.join().expect("it ends"), None, "it has not answered");
    until_connected(&location, 1).await;
    let (answer, again) = (in_time(&second, &clock).await, in_time(&second, &clock).await);
    assert_eq!((answer.0, answer.1, again.0, again.1), (200, false, 200, true), "{answer:?} {again:?}");
    assert_eq!(answer.2, again.2);
}

/// Waits until the server knows of exactly `engines` engines.
async fn until_connected(location: &Location, engines: usize) {
    let server = Database::open(location.clone()).await.expect("the database opens");
    let mut server = server.reader().await.expect("it can be read");
    while server.rows(ENGINES, &[]).await.expect("it can be read").len() != engines {
        tokio::task::yield_now().await;
    }
}

/// Connections of engines, each of which holds a share of a lock of its own.
const ENGINES: &str = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted";

#[test]
fn an_engine_whose_key_was_taken_over_has_done_nothing() {
    beside_a_server(taken_over);
}

async fn taken_over(location: Location) {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let clock = Clock::standing_at(START_MS);
    let ([first, second], caller) = two(&location, folder.path(), &clock).await;
    let spec = |name: &str| FolderSpec { name: name.to_owned() };
    let of =
        |key: &'static str| RequestKey { organization: &caller.organization, route: "POST /v1/create-folder", key };
    let seen = async |by: &Service, key, hash| by.store().begin_request(of(key), hash, START_MS).await.expect("seen");
    let carry = async |by: &Service, key, name| {
        Carried::new(of(key), 200).carry(by.library().create_folder(&caller, spec(name))).await.map(|made| made.name)
    };
    for key in ["idle", "other body", "begun", "answered"] {
        assert_eq!(seen(&first, key, "h").await, Seen::First, "{key}");
    }
    let begun = async {
        let mut db = first.store().org(&caller.organization).write().await.expect("a session");
        db.insert(&spec("begun"), START_MS, None).await.expect("made");
        db.commit().await.expect("kept");
    };
    Carried::new(of("begun"), 200).carry(begun).await;
    assert_eq!(carry(&first, "answered", "answered").await, Ok("answered".to_owned()));
    let server = Database::open(location.clone()).await.expect("the database opens");
    let mut server = server.reader().await.expect("it can be read");
    let cut = format!("SELECT pg_terminate_backend(pid) FROM ({ENGINES}) AS engines");
    let first_alone = server.rows(ENGINES, &[]).await.expect("it can be read").len();
    for key in ["idle", "begun"] {
        assert_eq!(seen(&second, key, "h").await, Seen::Running, "{key}: the first is connected");
    }
    assert_eq!(seen(&second, "other body", "x").await, Seen::OtherBody);
    assert_eq!(first_alone, 1);
    // Both lose the connection that tells of them, and the second has it again.
    server.rows(&cut, &[]).await.expect("they are ended");
    until_connected(&location, 0).await;
    second.runs().stay().await.expect("it is connected again");
    assert_eq!(seen(&second, "idle", "h").await, Seen::First);
    assert_eq!(seen(&second, "other body", "x").await, Seen::First);
    assert_eq!(seen(&second, "begun", "h").await, Seen::Left);
    assert!(matches!(seen(&second, "answered", "h").await, Seen::Answered { status: 200, .. }));
    // The first still lives, and comes too late.
    let late = carry(&first, "idle", "late").await;
    assert_eq!(late, Err(Error::Conflict("A request with this Idempotency-Key is still in progress".into())));
    first.store().finish_request(of("idle"), 409, "{}").await.expect("it is not its answer");
    first.store().abandon_request(of("idle")).await.expect("it is not its request");
    assert_eq!(carry(&second, "idle", "late").await, Ok("late".to_owned()), "what the first did was undone");
    first.runs().stay().await.expect("it is connected again");
    assert!(matches!(seen(&first, "idle", "h").await, Seen::Answered { status: 200, .. }));
    assert_eq!(seen(&first, "other body", "x").await, Seen::Running);
    assert_eq!(seen(&first, "again", "h").await, Seen::First);
    assert_eq!(seen(&second, "again", "h").await, Seen::Running);
}

/// Returns the answer of [`once`] while the clock moves on.
async fn in_time(engine: &Router, clock: &Clock) -> (u16, bool, Value) {
    let moving = async {
        loop {
            clock.advance_to_wait(1_000).await;
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        answer = once(engine) => answer,
        () = moving => unreachable!("somebody waits, or nobody does"),
    }
}

/// Status of an answer, whether it is one of before, and its body.
async fn once(engine: &Router) -> (u16, bool, Value) {
    let request = Request::builder().method("POST").uri(Slow::PATH).header("x-api-key", "a key");
    let request = request.header("content-type", "application/json").header("idempotency-key", "once");
    let request = request.body(Body::from(Slow::body().to_string())).expect("a legal request");
    let response = engine.clone().oneshot(request).await.expect("a router answers");
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, 1 << 20).await.expect("a body");
    let body = serde_json::from_slice(&body).expect("JSON");
    (parts.status.as_u16(), parts.headers.contains_key("idempotency-replayed"), body)
}

#[test]
fn a_turn_to_write_that_is_given_up_while_it_is_waited_for_is_free_for_the_next() {
    beside_a_server(given_up);
}

async fn given_up(location: Location) {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let clock = Clock::standing_at(START_MS);
    let ([first, second], caller) = two(&location, folder.path(), &clock).await;
    let writing = second.store().org(&caller.organization).write().await.expect("it can");
    let agent = || serde_json::from_value(json!({ "name": "Desk" })).expect("it fits");
    let mut giving_up = Box::pin(first.library().add_agent(&caller, agent()));
    let server = Database::open(location).await.expect("the database opens");
    let mut server = server.reader().await.expect("it can be read");
    let waiting = "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted";
    while server.rows(waiting, &[]).await.expect("it can be read").is_empty() {
        let step = std::future::poll_fn(|context| std::task::Poll::Ready(giving_up.as_mut().poll(context)));
        assert!(step.await.is_pending(), "it waits for its turn");
        tokio::task::yield_now().await;
    }
    drop(giving_up);
    drop(writing);
    let next = tokio::time::timeout(std::time::Duration::from_secs(60), second.library().add_agent(&caller, agent()));
    next.await.expect("the lock is free").expect("an agent");
    assert_eq!(
        second.library().all_agents(&caller).await.expect("they can be read").len(),
        1,
        "what was given up was not done"
    );
}
