//! The work behind the API, one file a job. Every job is claimed under a lease and may be done twice without harm; what it
//! changes goes through the service.

mod alert;
mod autosync;
mod call;
mod call_log;
pub mod deliver;
pub mod ending;
mod evaluate;
mod finished;
mod incoming;
mod monitor;
mod notify;
mod schedule;
mod text;
mod upkeep;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::time::{Interval, MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;
use tracing::field::Empty;

use crate::config::{Retention, Sources};
use crate::engine::Engine;
use crate::error::Result;
use crate::queue::{CallJob, Claimed, Job};
use crate::service::{Cleared, Placer, Running, Service};
use crate::tasks::Tasks;
use crate::transport::io::IncomingCall;

pub use self::upkeep::Upkeep;

/// How long a claim lasts; it is renewed while the work goes on.
const LEASE_MS: i64 = 120_000;
/// When a claim is renewed.
const RENEW_EVERY: Duration = Duration::from_secs(30);
/// Longest wait for a signal that does not come (a lease of another process that ends).
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// Shortest time between two looks for new results.
const ADMIT_EVERY: Duration = Duration::from_millis(100);
/// How often what is too old is deleted.
const CLEAR_EVERY: Duration = Duration::from_secs(3600);
/// Claims of one job after which it is given up.
const MOST_ATTEMPTS: i64 = 5;

/// What the jobs are done with.
#[derive(Clone)]
pub struct Workshop {
    /// The product.
    pub service: Service,
    /// Makes the calls.
    pub engine: Engine,
    /// The calls that run.
    pub running: Arc<Running>,
    /// What calls are made with.
    pub placer: Arc<Placer>,
    /// Agent words that only fill time, beside the built-in ones.
    pub fillers: Arc<[String]>,
    /// Calls begun in one second.
    pub start_rate_per_s: f64,
    /// How long things are kept.
    pub retention: Retention,
    /// Who may call in.
    pub inbound_allow: Sources,
}

/// The workers of this process.
pub struct Workers {
    tasks: Tasks,
    claiming: CancellationToken,
}

impl Workers {
    /// Starts them: one loop for each kind of work.
    ///
    /// Calls that come in are taken from `incoming`.
    pub fn start(workshop: Workshop, incoming: mpsc::Receiver<IncomingCall>) -> Workers {
        let (tasks, claiming) = (Tasks::new(), CancellationToken::new());
        let room = Arc::new(Semaphore::new(workshop.engine.max_calls()));
        workshop.running.serve(workshop.engine.sip_address(), room.clone());
        let desk = incoming::Desk { workshop: workshop.clone(), room: room.clone(), stopping: claiming.clone() };
        tasks.spawn("incoming calls", desk.serve(incoming, tasks.clone()));
        tasks.spawn("admit", until(claiming.clone(), admit(workshop.clone())));
        tasks.spawn("retention", until(claiming.clone(), clear_old(workshop.clone())));
        tasks.spawn("call jobs", call_jobs(workshop.clone(), room, tasks.clone(), claiming.clone()));
        tasks.spawn("text jobs", text::work(workshop.clone(), tasks.clone(), claiming.clone()));
        let deliveries = deliver::run(workshop.service.clone(), tasks.clone(), claiming.clone());
        tasks.spawn("webhook deliveries", deliveries);
        let upkeep = Upkeep {
            service: workshop.service.clone(),
            fillers: workshop.fillers.clone(),
            model: workshop.placer.model.clone(),
        };
        tasks.spawn("upkeep jobs", upkeep.work(tasks.clone(), claiming.clone()));
        tasks.spawn("schedule jobs", one_by_one(workshop.clone(), claiming.clone(), schedule::run));
        tasks.spawn("autosync jobs", one_by_one(workshop.clone(), claiming.clone(), autosync::run));
        tasks.spawn("sweep", until(claiming.clone(), sweep(workshop.clone())));
        tasks.spawn("evaluate jobs", one_by_one(workshop, claiming.clone(), evaluate::run));
        Workers { tasks, claiming }
    }

    /// Nothing new is begun; calls that run go on.
    pub fn stop_claiming(&self) {
        self.claiming.cancel();
    }

    /// Waits until all that was begun is done. Calls have to be ended by somebody: by the engine's stop.
    pub async fn finish(&self) {
        self.stop_claiming();
        self.tasks.stop().await;
    }
}

async fn until(stop: CancellationToken, work: impl Future<Output = ()>) {
    tokio::select! {
        () = stop.cancelled() => {}
        () = work => {}
    }
}

/// Keeps new results moving to QUEUED.
async fn admit(workshop: Workshop) {
    let mut changes = workshop.service.queue().watch();
    let mut pace = paced(ADMIT_EVERY);
    loop {
        pace.tick().await;
        changes.mark_unchanged();
        logged("new results could not be looked for", workshop.service.admit().await);
        let _ = tokio::time::timeout(LOOK_EVERY, changes.changed()).await;
    }
}

/// Deletes what is older than the settings allow.
async fn clear_old(workshop: Workshop) {
    let mut pace = paced(CLEAR_EVERY);
    loop {
        pace.tick().await;
        match workshop.service.clear_old(&workshop.retention).await {
            Ok(cleared) if cleared != Cleared::default() => {
                tracing::info!(results = cleared.results, recordings = cleared.recordings, "deleted by retention");
            }
            done => logged("what is too old could not be deleted", done),
        }
    }
}

/// Makes calls, as many at once as the engine has room for.
///
/// A place is taken when there is a call to make: calls that come in share them.
async fn call_jobs(workshop: Workshop, room: Arc<Semaphore>, tasks: Tasks, claiming: CancellationToken) {
    let mut pace = paced(Duration::from_secs_f64(1.0 / workshop.start_rate_per_s));
    loop {
        let next = async {
            let claimed = claim::<CallJob>(&workshop.service).await;
            let place = room.clone().acquire_owned().await.expect("the semaphore is never closed");
            pace.tick().await;
            (place, claimed)
        };
        let (place, (claimed, job)) = tokio::select! {
            biased;
            () = claiming.cancelled() => return,
            next = next => next,
        };
        let (workshop, claiming) = (workshop.clone(), claiming.clone());
        tasks.spawn("call job", async move {
            let work = call::run(&workshop, &job, &claiming);
            let done = held(&workshop.service, &claimed, work).await;
            settled(&workshop.service, &claimed, done).await;
            drop(place);
        });
    }
}

/// Does the jobs of a kind one after the other.
async fn one_by_one<J, Done>(workshop: Workshop, claiming: CancellationToken, work: impl Fn(Workshop, J) -> Done)
where
    J: Job,
    Done: Future<Output = Result<()>>,
{
    loop {
        let (claimed, job) = tokio::select! {
            biased;
            () = claiming.cancelled() => return,
            next = claim::<J>(&workshop.service) => next,
        };
        let done = held(&workshop.service, &claimed, work(workshop.clone(), job)).await;
        settled(&workshop.service, &claimed, done).await;
    }
}

/// Looks for journey steps and schedules that have lost their jobs, and for conversations whose minutes are used up.
async fn sweep(workshop: Workshop) {
    let mut pace = paced(LOOK_EVERY);
    loop {
        pace.tick().await;
        logged("lost journey steps could not be looked for", workshop.service.sweep_journeys().await);
        logged("schedules without a job could not be looked for", workshop.service.restore_schedules().await);
        logged("the usage limit could not be looked at", workshop.service.end_unpaid_calls().await);
    }
}

fn paced(every: Duration) -> Interval {
    let mut pace = interval(every);
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pace
}

/// Waits for a job of a kind and claims it.
async fn claim<J: Job>(service: &Service) -> (Claimed, J) {
    loop {
        let claimed = claim_of(service, &[J::NAME]).await;
        match claimed.job::<J>() {
            Ok(job) => return (claimed, job),
            Err(error) => {
                tracing::error!(job = claimed.id, %error, "a job cannot be read and is dropped");
                logged("it could not be dropped", service.queue().done(&claimed).await);
            }
        }
    }
}

/// Waits for a job of some kinds and claims it.
async fn claim_of(service: &Service, kinds: &[&str]) -> Claimed {
    let queue = service.queue();
    let mut changes = queue.watch();
    loop {
        changes.mark_unchanged();
        match queue.claim(kinds, LEASE_MS).await {
            Ok(Some(claimed)) => return claimed,
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "jobs could not be claimed"),
        }
        let due = queue.next_due_ms(kinds).await.ok().flatten();
        let wait = due.map_or(LOOK_EVERY, |due| Duration::from_millis((due - service.clock().now_ms()).max(1) as u64));
        let _ = tokio::time::timeout(wait.min(LOOK_EVERY), changes.changed()).await;
    }
}

/// Does work while its claim is renewed. What is logged meanwhile names the job, and whatever it records as its result.
async fn held<T>(service: &Service, claimed: &Claimed, work: impl Future<Output = T>) -> T {
    let mut renew = paced(RENEW_EVERY);
    renew.tick().await;
    let span = tracing::info_span!("job", id = claimed.id, kind = claimed.kind, result_id = Empty);
    let mut work = pin!(work.instrument(span));
    loop {
        tokio::select! {
            done = &mut work => return done,
            _ = renew.tick() => logged("a claim could not be renewed", service.queue().extend(claimed, LEASE_MS).await),
        }
    }
}

/// A job that could not be done is tried again a little later, a few times.
async fn settled(service: &Service, claimed: &Claimed, done: Result<()>) {
    let queue = service.queue();
    let Err(error) = done else { return logged("a job could not be closed", queue.done(claimed).await) };
    tracing::error!(job = claimed.id, kind = claimed.kind, attempts = claimed.attempts, %error, "a job failed");
    let again = service.clock().now_ms() + 1000 * claimed.attempts;
    match claimed.attempts < MOST_ATTEMPTS {
        true => logged("a job could not be given back", queue.retry(claimed, again).await),
        false => logged("a job could not be closed", queue.done(claimed).await),
    }
}

fn logged<T>(what: &str, done: Result<T>) {
    if let Err(error) = done {
        tracing::error!(%error, "{what}");
    }
}
