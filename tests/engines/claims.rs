//! Claims of jobs at the same time: each job is claimed once, and how many are in a second.

use std::collections::BTreeSet;
use std::sync::Arc;

use ringer::clock::Clock;
use ringer::service::{NoLiveCalls, Service, Settings};
use ringer::store::queue::{CheckJob, Job};
use ringer::store::vault::Vault;
use ringer::store::{Location, Store};
use uuid::Uuid;

use crate::databases::beside_a_server;

/// Workers of each engine.
const WORKERS: usize = 4;

async fn service(location: &Location) -> Service {
    let vault = Vault::new(["one key for every engine"]).expect("it is one");
    let store = Store::open(location.clone(), vault).await.expect("a database");
    Service::new(store, Clock::Real, Settings::new("unused"), Arc::new(NoLiveCalls))
}

/// Makes several engines claim and close `jobs` jobs; returns the claims in a second.
async fn claim_all(location: &Location, engines: usize, jobs: usize) -> f64 {
    let mut services = Vec::new();
    for _ in 0..engines {
        services.push(service(location).await);
    }
    let mut db = services[0].store().system().await.expect("a session");
    for _ in 0..jobs {
        let job = CheckJob { organization: "o".into(), check_id: ringer::clock::new_id() };
        db.put(&job, 0, None).await.expect("stored");
    }
    db.commit().await.expect("kept");
    let mut tasks = tokio::task::JoinSet::new();
    let begun = Arc::new(tokio::sync::Barrier::new(engines * WORKERS + 1));
    for service in &services {
        for _ in 0..WORKERS {
            let (queue, begun) = (service.queue(), begun.clone());
            tasks.spawn(async move {
                begun.wait().await;
                let mut claimed = Vec::<Uuid>::new();
                while let Some(one) = queue.claim(&[CheckJob::NAME], 60_000).await.expect("it can") {
                    claimed.push(one.job::<CheckJob>().expect("it is read").check_id);
                    assert!(queue.finish_job(&one).await.expect("it can"), "it is its own");
                }
                claimed
            });
        }
    }
    begun.wait().await;
    #[expect(clippy::disallowed_methods, reason = "real time is measured")]
    let started = tokio::time::Instant::now();
    let all: Vec<Uuid> = tasks.join_all().await.concat();
    let seconds = started.elapsed().as_secs_f64();
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (jobs, jobs), "each is claimed once");
    jobs as f64 / seconds
}

#[test]
fn each_job_is_claimed_once_by_any_of_three_engines() {
    beside_a_server(async |location: Location| {
        println!("{:.0} claims a second by three engines", claim_all(&location, 3, 300).await);
    });
}

mod figures {
    use super::*;

    #[test]
    fn claims_a_second() {
        beside_a_server(async |location: Location| {
            for engines in [1, 3] {
                let rate = claim_all(&location, engines, 3000).await;
                println!("{engines} engines of {WORKERS} workers: {rate:.0} jobs claimed and closed a second");
            }
        });
    }
}
