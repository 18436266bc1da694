//! Jobs: claimed by one, kept over a restart, let out lane by lane. And what else the store keeps by itself.

use ringer::model::folder::FolderSpec;
use ringer::queue::{CallJob, Claimed, Job, Queue};
use ringer::store::idempotency::{Carried, LIFETIME_MS, RequestKey, Seen};
use serde_json::json;

use super::{Fixture, START_MS};
use crate::databases;

const LEASE_MS: i64 = 30_000;

async fn claim(queue: &Queue) -> Option<Claimed> {
    queue.claim(&[CallJob::NAME, "other"], LEASE_MS).await.expect("claims")
}

fn result_of(claimed: &Claimed) -> i64 {
    claimed.job::<CallJob>().expect("a call").result_id
}

#[tokio::test]
async fn a_claim_is_exclusive_until_its_lease_ends() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 2).await;
    let mut news = f.service.queue().watch();
    let (_, results) = f.run(simulation, json!({})).await;
    assert!(news.has_changed().expect("open"));
    news.mark_unchanged();
    let queue = f.service.queue();
    assert_eq!(queue.claim(&["evaluate"], LEASE_MS).await, Ok(None));
    assert_eq!(queue.claim(&[], LEASE_MS).await, Ok(None));
    let (first, second) = (claim(&queue).await.expect("one"), claim(&queue).await.expect("another"));
    assert_eq!(vec![result_of(&first), result_of(&second)], results);
    assert_eq!(claim(&queue).await, None);
    assert_eq!(queue.next_due_ms(&["call"]).await, Ok(Some(START_MS + LEASE_MS)));
    assert_eq!(queue.extend(&first, 2 * LEASE_MS).await, Ok(true));
    f.clock.advance_ms(LEASE_MS);
    let again = claim(&queue).await.expect("the second, its lease is over");
    assert_eq!((again.id, again.attempts), (second.id, 2));
    assert_eq!(queue.finish_job(&second).await, Ok(false), "it is no longer its");
    assert_eq!(queue.finish_job(&again).await, Ok(true));
    assert_eq!(queue.retry(&first, START_MS + 3 * LEASE_MS).await, Ok(true));
    assert_eq!(claim(&queue).await, None);
    f.clock.advance_ms(2 * LEASE_MS);
    assert_eq!(claim(&queue).await.map(|claimed| claimed.attempts), Some(2));
}

#[tokio::test]
async fn claims_by_many_never_meet() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 3).await;
    let (_, results) = f.run(simulation, json!({"runs_per_digital_human": 7})).await;
    assert_eq!(results.len(), 21);
    let queue = f.service.queue();
    let worker = || async {
        let mut mine = vec![];
        while let Some(claimed) = claim(&queue).await {
            mine.push(result_of(&claimed));
        }
        mine
    };
    let (a, b, c) = tokio::join!(worker(), worker(), worker());
    let mut all = [a, b, c].concat();
    all.sort_unstable();
    assert_eq!(all, results);
}

#[tokio::test]
async fn jobs_survive_a_restart() {
    let mut f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 2).await;
    f.run(simulation, json!({})).await;
    let held = claim(&f.service.queue()).await.expect("one");
    f.reopen().await;
    let queue = f.service.queue();
    let other = claim(&queue).await.expect("the other");
    assert_ne!(other.id, held.id);
    assert_eq!(claim(&queue).await, None, "the lease outlives the process");
    f.service.runs().recover().await.expect("recovers");
    assert_eq!(claim(&queue).await.map(|claimed| claimed.attempts), Some(2));
}

#[tokio::test]
async fn a_lane_lets_out_what_it_has_places_for() {
    for (settings, places) in [(json!({"max_concurrent": 2}), 2), (json!({"sequential_calling": true}), 1)] {
        let f = Fixture::new().await;
        let (_, simulation, _) = f.booth(settings, 3).await;
        let (_, results) = f.run(simulation, json!({"runs_per_digital_human": 2})).await;
        let queue = f.service.queue();
        let mut order = vec![];
        let mut working = vec![];
        loop {
            while let Some(claimed) = claim(&queue).await {
                order.push(result_of(&claimed));
                working.push(claimed);
            }
            assert!(working.len() <= places);
            if working.is_empty() {
                break;
            }
            assert_eq!(queue.finish_job(&working.remove(0)).await, Ok(true));
        }
        assert_eq!(order, results);
    }
}

#[tokio::test]
async fn a_cancelled_call_gives_its_place_away() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({"sequential_calling": true}), 2).await;
    let (_, results) = f.run(simulation, json!({})).await;
    f.service.runs().hangup(&f.caller, results[0]).await.expect("cancelled");
    let queue = f.service.queue();
    assert_eq!(claim(&queue).await.as_ref().map(result_of), Some(results[1]));
    assert_eq!(claim(&queue).await, None);
}

#[tokio::test]
async fn a_repeated_request_gets_the_first_answer() {
    let f = Fixture::new().await;
    let store = f.service.store();
    let request = RequestKey { organization: &f.caller.organization, route: "POST /v1/add-agent", key: "k" };
    let seen = |hash: &'static str, now| store.begin_request(request, hash, now);
    assert_eq!(seen("h", START_MS).await, Ok(Seen::First));
    assert_eq!(seen("h", START_MS).await, Ok(Seen::Running));
    assert_eq!(seen("other", START_MS).await, Ok(Seen::OtherBody));
    store.finish_request(request, 200, "{}").await.expect("kept");
    assert_eq!(seen("h", START_MS + 1).await, Ok(Seen::Answered { status: 200, body: "{}".into() }));
    let elsewhere = RequestKey { route: "POST /v1/create-folder", ..request };
    assert_eq!(store.begin_request(elsewhere, "h", START_MS).await, Ok(Seen::First));
    store.abandon_request(elsewhere).await.expect("forgotten");
    assert_eq!(store.begin_request(elsewhere, "x", START_MS).await, Ok(Seen::First));
    assert_eq!(seen("other", START_MS + LIFETIME_MS).await, Ok(Seen::First));
}

#[tokio::test]
async fn what_a_request_has_done_is_known_after_a_kill() {
    let f = Fixture::new().await;
    let store = f.service.store();
    let organization = f.caller.organization.as_str();
    let folder = |name: &str| FolderSpec { name: name.to_owned() };
    // A kill comes right after the work: nothing that follows it is carried out.
    for (key, works, expect) in [("idle", 0, Seen::First), ("one", 1, Seen::Running), ("two", 2, Seen::Running)] {
        let request = RequestKey { organization, route: "POST /v1/create-folder", key };
        assert_eq!(store.begin_request(request, "h", START_MS).await, Ok(Seen::First));
        let carried = Carried::new(request, 200);
        let work = async {
            for n in 0..works {
                let mut db = store.org(organization).write().await.expect("a session");
                db.insert(&folder(&format!("{key}{n}")), START_MS, None).await.expect("made");
                db.commit().await.expect("kept");
            }
        };
        carried.carry(work).await;
        store.abandon_running_requests().await.expect("a start after the kill");
        assert_eq!(store.begin_request(request, "h", START_MS).await, Ok(expect), "{key}");
    }
    let request = RequestKey { organization, route: "POST /v1/create-folder", key: "answered" };
    assert_eq!(store.begin_request(request, "h", START_MS).await, Ok(Seen::First));
    let made = Carried::new(request, 200).carry(f.service.library().create_folder(&f.caller, folder("last"))).await;
    store.abandon_running_requests().await.expect("a start after the kill");
    let body = serde_json::to_string(&made.expect("made")).expect("JSON");
    assert_eq!(store.begin_request(request, "h", START_MS).await, Ok(Seen::Answered { status: 200, body }));
    // Work that was undone has not been done.
    let request = RequestKey { key: "undone", ..request };
    assert_eq!(store.begin_request(request, "h", START_MS).await, Ok(Seen::First));
    let refused = Carried::new(request, 200).carry(f.service.library().create_folder(&f.caller, folder("last"))).await;
    assert!(refused.is_err(), "the name is taken");
    store.abandon_request(request).await.expect("forgotten");
    assert_eq!(store.begin_request(request, "h", START_MS).await, Ok(Seen::First));
}

#[tokio::test]
async fn a_newer_database_is_refused_and_an_old_one_is_kept() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let location = databases::empty(folder.path()).await;
    for _ in 0..2 {
        databases::open(location.clone(), folder.path())
            .await
            .expect("opens an empty or a present database")
            .close()
            .await;
    }
    databases::run(&location, "INSERT INTO schema_version (version) VALUES (99)").await;
    let error = databases::open(location, folder.path()).await.expect_err("it is newer").to_string();
    assert!(error.starts_with("the database has schema 99, this program knows 30: a newer release"), "{error}");
}
