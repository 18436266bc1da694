//! Rows of engines, and what they hold, on both databases.

use std::sync::Arc;

use ringer::clock::Clock;
use ringer::service::{EngineState, NoLiveCalls, Service, Settings};
use ringer::store::db::Cell;
use ringer::store::queue::{CheckJob, Job};
use ringer::store::vault::Vault;
use ringer::store::{EngineFacts, Location, Store};
use uuid::Uuid;

use crate::databases::beside_a_server;

/// Start of the clock: 2026-01-05T09:00:30Z.
const START_MS: i64 = 1_767_603_630_000;
/// Length of a lease.
const LEASE_MS: i64 = 60_000;

/// A service of its own on a database, without jobs.
async fn service(location: &Location, clock: &Clock) -> Service {
    let vault = Vault::new(["one key for every engine"]).expect("it is one");
    let store = Store::open(location.clone(), vault).await.expect("a database");
    Service::new(store, clock.clone(), Settings::new("unused"), Arc::new(NoLiveCalls))
}

fn facts(name: &str) -> EngineFacts {
    EngineFacts {
        name: name.into(),
        version: "1.2.3".into(),
        address: Some(format!("http://{name}:8080")),
        sip: Some("192.0.2.1:5060".into()),
        capacity: 40,
        lease_ms: LEASE_MS,
    }
}

/// Returns names, states and calls of the engines that one sees.
async fn list_of(by: &Service) -> Vec<(String, EngineState, i64)> {
    let list = by.engines().list().await.expect("they can be read").engines;
    list.into_iter().map(|engine| (engine.name, engine.state, engine.calls)).collect()
}

#[test]
fn engines_see_each_other_until_they_leave_or_their_lease_ends() {
    beside_a_server(async |location: Location| {
        let clock = Clock::standing_at(START_MS);
        let [first, second] = [service(&location, &clock).await, service(&location, &clock).await];
        first.engines().beat(&facts("a"), 3).await.expect("it is noted");
        second.engines().beat(&facts("b"), 0).await.expect("it is noted");
        let expect = [("a".to_owned(), EngineState::Up, 3), ("b".to_owned(), EngineState::Up, 0)];
        assert_eq!((list_of(&first).await, list_of(&second).await), (expect.to_vec(), expect.to_vec()));
        let asked = second.engines().set_draining("a", true).await.expect("it is there");
        assert_eq!(asked.engines, ["a"]);
        assert!(!first.engines().is_draining());
        first.engines().beat(&facts("a"), 2).await.expect("it is noted");
        assert!(first.engines().is_draining() && !second.engines().is_draining());
        assert_eq!(list_of(&second).await[0], ("a".to_owned(), EngineState::Draining, 2));
        second.engines().set_draining("a", false).await.expect("it is there");
        first.engines().beat(&facts("a"), 2).await.expect("it is noted");
        assert!(!first.engines().is_draining());
        second.engines().set_draining("c", true).await.expect_err("there is no such engine");
        // Results are held by one of them.
        let mut db = first.store().org("o").write().await.expect("a session");
        db.hold_result(7).await.expect("it is noted");
        db.commit().await.expect("kept");
        let holder = second.engines().elsewhere(7).await.expect("it can be read").expect("another one");
        assert_eq!((holder.name.as_str(), holder.address.as_deref()), ("a", Some("http://a:8080")));
        assert_eq!(first.engines().elsewhere(7).await, Ok(None), "it is its own");
        // Its lease ends, and it is lost.
        clock.advance_ms(LEASE_MS - 1);
        second.engines().beat(&facts("b"), 0).await.expect("it is noted");
        assert_eq!(second.engines().end_results_of_lost().await, Ok(0));
        assert!(second.engines().elsewhere(7).await.expect("it can be read").is_some(), "its lease holds");
        clock.advance_ms(1);
        assert_eq!(
            list_of(&second).await,
            [("b".to_owned(), EngineState::Up, 0), ("a".to_owned(), EngineState::Lost, 2)]
        );
        assert_eq!(second.engines().elsewhere(7).await, Ok(None));
        assert_eq!(second.engines().end_results_of_lost().await, Ok(0), "there is no such result");
        assert_eq!(second.store().system().await.expect("a session").engine_of_result(7).await, Ok(None));
        second.engines().leave().await.expect("it is noted");
        clock.advance_ms(24 * 3_600_000);
        second.engines().sweep().await.expect("it can");
        assert_eq!(list_of(&second).await, [], "rows of dead engines stay for a day");
    });
}

#[test]
fn a_claimed_job_and_a_registration_know_their_engine() {
    beside_a_server(async |location: Location| {
        let clock = Clock::standing_at(START_MS);
        let [first, second] = [service(&location, &clock).await, service(&location, &clock).await];
        let trunks = ["carrier".to_owned(), "other".to_owned()];
        assert_eq!(first.engines().hold_lines(&trunks, LEASE_MS).await.expect("noted"), trunks);
        assert_eq!(second.engines().hold_lines(&trunks, LEASE_MS).await.expect("noted"), [""; 0]);
        clock.advance_ms(LEASE_MS - 1);
        assert_eq!(first.engines().hold_lines(&trunks[..1], LEASE_MS).await.expect("noted"), trunks[..1]);
        clock.advance_ms(1);
        assert_eq!(
            second.engines().hold_lines(&trunks, LEASE_MS).await.expect("noted"),
            trunks[1..],
            "its lease ended"
        );
        first.engines().let_go_of_lines().await.expect("noted");
        assert_eq!(second.engines().hold_lines(&trunks, LEASE_MS).await.expect("noted"), trunks);

        let job = CheckJob { organization: "o".into(), check_id: Uuid::nil() };
        let mut db = first.store().system().await.expect("a session");
        db.put(&job, clock.now_ms(), None).await.expect("stored");
        db.commit().await.expect("kept");
        let claimed = first.queue().claim(&[CheckJob::NAME], LEASE_MS).await.expect("it can").expect("a job");
        clock.advance_ms(LEASE_MS);
        // After an outage nobody takes over what others could not renew.
        second.store().note_settled(false);
        assert_eq!(second.queue().claim(&[CheckJob::NAME], LEASE_MS).await, Ok(None));
        assert_eq!(second.queue().next_due_ms(&[CheckJob::NAME]).await, Ok(None), "nothing to wait for");
        assert_eq!(first.queue().extend(&claimed, LEASE_MS).await, Ok(true), "nobody took it");
        second.store().note_settled(true);
        assert_eq!(second.queue().claim(&[CheckJob::NAME], LEASE_MS).await, Ok(None), "it was renewed");
        clock.advance_ms(LEASE_MS);
        assert!(second.queue().claim(&[CheckJob::NAME], LEASE_MS).await.expect("it can").is_some());
        assert_eq!(first.queue().extend(&claimed, LEASE_MS).await, Ok(false), "another one has it");
    });
}

/// An engine of the release before knows no column `engine`: these are its statements.
#[test]
fn jobs_of_an_engine_of_the_release_before_are_left_to_it_and_taken_when_it_is_gone() {
    beside_a_server(async |location: Location| {
        let clock = Clock::standing_at(START_MS);
        let new = service(&location, &clock).await;
        let old = async |sql: &str, cells: &[Cell]| {
            let mut db = new.store().system().await.expect("a session");
            let row = db.row(sql, cells).await.expect("its statement runs");
            db.commit().await.expect("kept");
            row.map(|row| row.try_get::<i64, _>(0).expect("an id"))
        };
        let put = "INSERT INTO jobs (kind, job_key, payload, due_ms, lane, lane_limit, held, org_id, place) \
                   VALUES ($1, $2, $3, $4, NULL, NULL, 0, '', NULL) ON CONFLICT (job_key) DO NOTHING";
        let job = CheckJob { organization: "o".into(), check_id: Uuid::nil() };
        let payload = serde_json::to_string(&job).expect("JSON");
        let cells = [CheckJob::NAME.into(), job.key().into(), payload.into(), START_MS.into()];
        old(put, &cells).await;
        let claim = "UPDATE jobs SET lease_ms = $2, attempts = attempts + 1 WHERE id = (SELECT id FROM jobs \
                     WHERE kind IN ($3) AND held = 0 AND due_ms <= $1 AND (lease_ms IS NULL OR lease_ms <= $1) \
                     ORDER BY due_ms, id LIMIT 1) RETURNING id, kind, attempts, lane, payload";
        let lease = |now: i64| [now.into(), (now + LEASE_MS).into(), CheckJob::NAME.into()];
        let claimed = old(claim, &lease(START_MS)).await.expect("it claims its job");
        assert_eq!(new.queue().claim(&[CheckJob::NAME], LEASE_MS).await, Ok(None), "it is left to it");
        clock.advance_ms(LEASE_MS);
        let taken = new.queue().claim(&[CheckJob::NAME], LEASE_MS).await.expect("it can").expect("its lease ended");
        assert_eq!((taken.id, taken.attempts, taken.job::<CheckJob>()), (claimed, 2, Ok(job)));
        assert_eq!(old(claim, &lease(clock.now_ms())).await, None, "and it leaves it to this one");
        clock.advance_ms(LEASE_MS);
        assert_eq!(old(claim, &lease(clock.now_ms())).await, Some(claimed), "until this one is gone");
    });
}
