//! The work behind the API, one file a job. Every job is claimed under a lease and may be done twice without harm; what
//! it changes goes through the service.

mod agent_stream;
mod alert;
mod call;
mod call_log;
mod conversation;
pub mod deliver;
mod evaluate;
mod finished;
mod follow_up;
mod heart;
mod incoming;
mod incoming_texts;
mod judge_card;
mod judging;
mod lease;
mod line_test;
mod mail_in;
mod monitor;
mod notify;
mod perform;
mod preview;
mod schedule;
mod storing;
mod summary;
mod text;
mod upkeep;
mod waking;
mod workshop;

use std::sync::Arc;
use std::time::Duration;

use ringer_base::config::SmsCarrier;
use ringer_base::error::Result;
use ringer_base::tasks::Tasks;
use ringer_engine::Engine;
use ringer_store::queue::{CallJob, EvaluateJob, Job, Turns};
use ringer_transport::incoming::Incoming;
use ringer_transport::mail::{Mailbox, Postbox, SmtpListener};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::{Cleared, Running, Service};

pub use self::agent_stream::{AgentStreams, Seat, StreamRefusal};
use self::conversation::{Left, left_behind, left_off};
pub use self::judge_card::make_card;
pub use self::judging::Judging;
use self::lease::{LOOK_EVERY, catch_panic, claim, claim_in_turn, finish_job, log_failure, pace_every, run_with_lease};
pub use self::line_test::{LineStep, LineTest, LineTests};
pub use self::preview::Previews;
#[cfg(any(test, feature = "testing"))]
pub use self::storing::store_due;
pub use self::upkeep::Upkeep;
pub use self::workshop::Workshop;

/// Shortest time between two looks for new results.
const ADMIT_EVERY: Duration = Duration::from_millis(100);
/// Interval at which an engine that ends looks for conversations that still run.
const IDLE_EVERY: Duration = Duration::from_millis(100);
/// Interval at which old rows and files are deleted, in milliseconds.
const CLEAR_EVERY_MS: i64 = 3_600_000;

/// The workers of this process.
pub struct Workers {
    service: Service,
    tasks: Tasks,
    claiming: CancellationToken,
    streams: AgentStreams,
    line_tests: LineTests,
    previews: Previews,
    engine: Engine,
    running: Arc<Running>,
}

impl Workers {
    /// Starts them: one loop for each kind of work.
    ///
    /// Calls that come in are taken from `incoming`.
    pub fn start(workshop: Workshop, incoming: mpsc::Receiver<Incoming>) -> Workers {
        let (tasks, claiming) = (Tasks::new(), CancellationToken::new());
        let permits = Arc::new(Semaphore::new(workshop.engine.max_calls()));
        workshop.running.serve(workshop.engine.sip_address(), permits.clone());
        workshop.running.send_texts_by(workshop.engine.text_sender());
        workshop.running.speak_by(workshop.placement_settings.synthesizer.clone());
        if workshop.service.settings().sms.carrier == SmsCarrier::Sip {
            let texts = incoming_texts::serve(workshop.clone(), tasks.clone());
            tasks.spawn("incoming texts", until(claiming.clone(), texts));
        }
        let desk = incoming::Desk { workshop: workshop.clone(), permits: permits.clone(), stopping: claiming.clone() };
        let desk = Arc::new(desk);
        let streams = AgentStreams::new(desk.clone(), tasks.clone());
        let line_tests = LineTests::new(workshop.clone());
        let previews = Previews::new(&workshop);
        tasks.spawn("incoming calls", desk.serve(incoming, tasks.clone()));
        let heart = heart::Heart { facts: workshop.facts(), workshop: workshop.clone() };
        tasks.spawn_until_stop("signs of life", heart.beat());
        tasks.spawn("admit", until(claiming.clone(), admit(workshop.clone())));
        tasks.spawn("retention", until(claiming.clone(), clear_old(workshop.clone())));
        tasks.spawn("call jobs", call_jobs(workshop.clone(), permits, tasks.clone(), claiming.clone()));
        tasks.spawn("text jobs", text::work(workshop.clone(), tasks.clone(), claiming.clone()));
        let deliveries = deliver::run(workshop.service.clone(), tasks.clone(), claiming.clone());
        tasks.spawn("webhook deliveries", deliveries);
        let upkeep = Upkeep {
            fillers: workshop.fillers.clone(),
            model: workshop.placement_settings.model.clone(),
            recognizer: Some(workshop.engine.recognizer()),
            ear: workshop.ear.clone(),
            judged_at_once: workshop.judging.at_once(),
            stopping: claiming.clone(),
            ..Upkeep::new(workshop.service.clone())
        };
        tasks.spawn("upkeep jobs", upkeep.work(tasks.clone()));
        tasks.spawn("schedule jobs", one_by_one(workshop.clone(), claiming.clone(), schedule::run));
        tasks.spawn("store jobs", storing::work(workshop.service.clone(), tasks.clone(), claiming.clone()));
        tasks.spawn("storage", until(claiming.clone(), storing::watch(workshop.service.clone())));
        if workshop.service.store().is_shared() {
            tasks.spawn("work of others", until(claiming.clone(), waking::look(workshop.clone())));
        }
        tasks.spawn("sweep", until(claiming.clone(), sweep(workshop.clone())));
        let service = workshop.service.clone();
        let spending = service.spending().clone();
        tasks.spawn("model uses", until(claiming.clone(), async move { spending.keep_storing().await }));
        let traced = workshop.service.clone();
        tasks.spawn("traces", until(claiming.clone(), async move { traced.telemetry().keep_sending().await }));
        let (engine, running) = (workshop.engine.clone(), workshop.running.clone());
        tasks.spawn("evaluate jobs", evaluations(workshop, tasks.clone(), claiming.clone()));
        Workers { service, tasks, claiming, streams, line_tests, previews, engine, running }
    }

    /// Takes the mails that come to a listener, and to a mailbox.
    pub fn take_mail(&self, service: &Service, listener: Option<SmtpListener>, mailbox: Option<Mailbox>) {
        let postbox: Arc<dyn Postbox> = Arc::new(mail_in::ConversationPostbox(service.clone()));
        if let Some(listener) = listener {
            let serving = listener.serve(postbox.clone(), self.tasks.clone(), self.claiming.clone());
            self.tasks.spawn("mail listener", serving);
        }
        if let Some(mailbox) = mailbox {
            self.tasks.spawn("mailbox", mailbox.serve(postbox, self.claiming.clone()));
        }
    }

    /// Returns the entry for agents that call by WebSocket.
    pub fn streams(&self) -> AgentStreams {
        self.streams.clone()
    }

    /// Returns the tests of lines.
    pub fn line_tests(&self) -> LineTests {
        self.line_tests.clone()
    }

    /// Returns the previews of Digital Humans.
    pub fn previews(&self) -> Previews {
        self.previews.clone()
    }

    /// Begins no conversation from now on, and waits until those that run are over. What follows them is still done.
    pub async fn drain(&self) {
        self.service.engines().begin_end();
        let mut pace = pace_every(IDLE_EVERY);
        while self.engine.live_calls() > 0 || !self.running.is_idle() {
            pace.tick().await;
        }
    }

    /// Stops claiming new work; running calls go on.
    pub fn stop_claiming(&self) {
        self.claiming.cancel();
    }

    /// Waits until all that was begun is done. Calls have to be ended by somebody: by the engine's stop.
    pub async fn finish(&self) {
        self.stop_claiming();
        self.tasks.stop().await;
        log_failure("failed to store the use of language models", self.service.spending().store_noted().await);
        let restored = self.service.conversations().restore_ended().await;
        log_failure("failed to look for kept records of conversations", restored);
        self.service.telemetry().send_last().await;
        log_failure("failed to tell others that this engine ends", self.service.engines().leave().await);
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
    let mut pace = pace_every(ADMIT_EVERY);
    loop {
        pace.tick().await;
        changes.mark_unchanged();
        log_failure("failed to look for new results", catch_panic(workshop.service.conversations().admit()).await);
        let _ = tokio::time::timeout(LOOK_EVERY, changes.changed()).await;
    }
}

/// Deletes what is older than the settings allow.
async fn clear_old(workshop: Workshop) {
    loop {
        match catch_panic(workshop.service.runs().clear_old(&workshop.service.settings().retention)).await {
            Ok(cleared) if cleared != Cleared::default() => {
                let Cleared { results, calls, recordings } = cleared;
                tracing::info!(results, calls, recordings, "deleted by retention");
            }
            done => log_failure("failed to delete old results and files", done),
        }
        let clock = workshop.service.clock();
        clock.until(clock.now_ms() + CLEAR_EVERY_MS).await;
    }
}

/// Makes calls, as many at once as the engine has permits for.
///
/// A place is taken when there is a call to make: calls that come in share them. Where other engines share the jobs,
/// none is claimed while no place is free.
async fn call_jobs(workshop: Workshop, permits: Arc<Semaphore>, tasks: Tasks, claiming: CancellationToken) {
    let mut pace = pace_every(Duration::from_secs_f64(1.0 / workshop.start_rate_per_s));
    let service = workshop.service.clone();
    let mut draining = service.engines().watch_draining();
    loop {
        let next = async {
            until_open(&mut draining).await;
            if service.store().is_shared() {
                drop(permits.acquire().await);
            }
            claim::<CallJob>(&service).await
        };
        let (claimed, job) = tokio::select! {
            biased;
            () = claiming.cancelled() => return,
            next = next => next,
        };
        let place = async {
            let permit = permits.clone().acquire_owned().await.expect("the semaphore is never closed");
            pace.tick().await;
            permit
        };
        let permit = tokio::select! {
            biased;
            () = claiming.cancelled() => None,
            () = until_draining(&mut draining) => None,
            permit = place => Some(permit),
        };
        let Some(permit) = permit else {
            left_off(&service, &claimed, Ok(Left::Waiting)).await;
            continue;
        };
        let (workshop, claiming) = (workshop.clone(), claiming.clone());
        tasks.spawn("call job", async move {
            let work = Box::pin(async {
                left_behind(&workshop.service, &claimed, &job).await?;
                if workshop.service.runs().is_held_otherwise(&job, false).await? {
                    return Ok(Left::Written);
                }
                call::run(&workshop, &job, &claiming).await.map(|()| Left::Done)
            });
            let left = run_with_lease(&workshop.service, &claimed, work).await;
            Box::pin(left_off(&workshop.service, &claimed, left)).await;
            drop(permit);
        });
    }
}

/// Waits until this engine begins conversations.
async fn until_open(draining: &mut watch::Receiver<bool>) {
    // The sender lives as long as the service.
    let _ = draining.wait_for(|is_draining| !is_draining).await;
}

/// Waits until this engine begins no conversation any more.
async fn until_draining(draining: &mut watch::Receiver<bool>) {
    let _ = draining.wait_for(|is_draining| *is_draining).await;
}

/// Judges conversations, several at once, those of each organization in turn.
async fn evaluations(workshop: Workshop, tasks: Tasks, claiming: CancellationToken) {
    let permits = Arc::new(Semaphore::new(workshop.judging.at_once()));
    let mut turns = Turns::default();
    loop {
        let next = async {
            let permit = permits.clone().acquire_owned().await.expect("the semaphore is never closed");
            (permit, claim_in_turn(&workshop.service, &[EvaluateJob::NAME], &mut turns).await)
        };
        let (permit, claimed) = tokio::select! {
            biased;
            () = claiming.cancelled() => return,
            next = next => next,
        };
        let workshop = workshop.clone();
        tasks.spawn("evaluate job", async move {
            let service = workshop.service.clone();
            let work = Box::pin(async { evaluate::run(workshop, claimed.job()?).await });
            let done = run_with_lease(&service, &claimed, work).await;
            finish_job(&service, &claimed, done).await;
            drop(permit);
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
        let done = run_with_lease(&workshop.service, &claimed, Box::pin(work(workshop.clone(), job))).await;
        finish_job(&workshop.service, &claimed, done).await;
    }
}

/// Looks for journey steps and schedules without jobs, conversations whose minutes are used up, and evaluations that do
/// not end.
async fn sweep(workshop: Workshop) {
    let mut pace = pace_every(LOOK_EVERY);
    let began_ms = workshop.service.clock().now_ms();
    loop {
        pace.tick().await;
        let service = &workshop.service;
        log_failure("failed to look for lost journey steps", catch_panic(service.runs().sweep_journeys()).await);
        log_failure(
            "failed to look for kept records of conversations",
            catch_panic(service.conversations().restore_ended()).await.map(drop),
        );
        log_failure(
            "failed to look for schedules without a job",
            catch_panic(service.runs().restore_schedules()).await,
        );
        log_failure(
            "failed to wake results that wait for a place",
            catch_panic(service.conversations().wake_waiting()).await,
        );
        log_failure(
            "failed to wake results that wait for the budget of a model",
            catch_panic(service.conversations().wake_within_budget()).await,
        );
        log_failure("failed to check the usage limit", catch_panic(service.conversations().end_unpaid_calls()).await);
        log_failure(
            "failed to renew this engine's registration; other engines may take it for dead",
            catch_panic(service.runs().stay()).await,
        );
        let late = catch_panic(service.evaluations().end_late_evaluations(began_ms)).await;
        log_failure("failed to look for overdue evaluations", late);
    }
}

#[cfg(test)]
mod tests {
    use ringer_base::clock::Clock;
    use ringer_base::error::Error;
    use ringer_model::call_log::CallLogStatus;
    use ringer_model::error_code::ErrorCode;
    use ringer_model::result::ResultDoc;
    use ringer_model::status::ResultStatus;
    use ringer_store::Store;
    use ringer_store::queue::{CallLogJob, EvaluateJob};
    use ringer_store::vault::Vault;
    use ringer_transport::room::access::testing::FakeServer;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::lease::{MOST_ATTEMPTS, in_time};
    use super::*;
    use crate::{Caller, EVALUATION_MS, LEASE_MS, NoLiveCalls, Settings, UsedBy};

    fn parse<T: DeserializeOwned>(body: Value) -> T {
        serde_json::from_value(body).expect("the body fits")
    }

    async fn product(folder: &std::path::Path) -> (Service, Caller) {
        let vault = Vault::open(folder, None, &[]).expect("a vault");
        let store = Store::open(folder.join("ringer.db").as_path(), vault).await.expect("a database");
        let settings = Settings::new(folder);
        let service = Service::new(store, Clock::standing_at(1_767_603_600_000), settings, Arc::new(NoLiveCalls));
        let caller = service.library().bootstrap("first", "key").await.expect("a key");
        (service, caller)
    }

    /// Returns the id of a new result whose conversation is over.
    async fn ended_result(service: &Service, caller: &Caller) -> i64 {
        use ResultStatus as S;
        let id = queue_one(service, caller, json!({ "name": "Desk", "sip_uri": "sip:desk@pbx.example.com" })).await;
        for step in [S::Initializing, S::Queued, S::Dispatched, S::Running, S::ConversationEnded].windows(2) {
            let moved = service.conversations().advance(&caller.organization, id, step[0], step[1], |_| {}).await;
            moved.expect("an allowed step");
        }
        id
    }

    /// A result of an agent that waits for its conversation.
    async fn queue_one(service: &Service, caller: &Caller, agent: Value) -> i64 {
        let agent = service.library().add_agent(caller, parse(agent)).await.expect("an agent").agent_id;
        let simulation =
            service.library().create_simulation(caller, parse(json!({ "agent_id": agent.to_string() }))).await;
        let simulation = simulation.expect("a simulation").simulation_id;
        service.humans().create_digital_human(caller, parse(json!({})), &[simulation]).await.expect("a Digital Human");
        let run = parse(json!({ "simulation_id": simulation.to_string() }));
        let run = service.runs().queue_simulation_run(caller, run).await.expect("a run");
        run.simulation_result_ids[0].parse().expect("an id")
    }

    /// Claims the one job of a kind as often as it comes back, and lets it fail.
    async fn fail(service: &Service, kind: &str, panics: bool) -> usize {
        let work = async || -> Result<()> {
            assert!(!panics, "as told");
            Err(Error::internal("as told"))
        };
        let mut failures = 0;
        while let Some(claimed) = service.queue().claim(&[kind], LEASE_MS).await.expect("claimed") {
            let done = run_with_lease(service, &claimed, Box::pin(work())).await;
            finish_job(service, &claimed, done).await;
            failures += 1;
            service.clock().advance_ms(60_000);
        }
        failures
    }

    #[tokio::test]
    async fn what_waits_for_a_job_that_fails_goes_on_without_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let (service, caller) = product(folder.path()).await;
        let id = ended_result(&service, &caller).await;
        assert_eq!(fail(&service, EvaluateJob::NAME, false).await, MOST_ATTEMPTS as usize);
        let body = service.runs().result(&caller, id).await.expect("it").body;
        assert_eq!((body.status, body.error_code), (ResultStatus::SystemError, Some(ErrorCode::EvaluationTimeout)));
        let call = json!({
            "agent_id": body.agent_id.to_string(), "start_time_utc": "2026-01-05T08:00:00Z",
            "participants": [{ "role": "AGENT" }, { "role": "USER" }],
            "transcript": [{ "start_offset_ms": 0, "end_offset_ms": 900, "speaker": "AGENT", "utterance": "Hello." }],
        });
        let call_id = service.evaluations().evaluate_call(&caller, parse(call)).await.expect("queued").call_id;
        assert_eq!(fail(&service, CallLogJob::NAME, false).await, MOST_ATTEMPTS as usize);
        let log = service.evaluations().call_log(&caller, &call_id).await.expect("the log");
        assert_eq!(log.status, CallLogStatus::Incompleted);
        assert!(log.error_message.is_some_and(|text| text.starts_with("EVALUATION_TIMEOUT: ")));
        // A row that was deleted meanwhile needs nothing.
        let job = CallLogJob { organization: caller.organization.clone(), call_id: Uuid::nil(), serial: 0 };
        assert_eq!(service.evaluations().give_up_log(&job).await, Ok(()));
    }

    /// The room of a call whose engine is gone is removed when its job is claimed again.
    #[tokio::test]
    async fn a_room_that_was_left_behind_is_removed() {
        let rooms = FakeServer::start(|_| (200, "{}".to_owned())).await;
        let folder = tempfile::tempdir().expect("a folder");
        let (service, caller) = product(folder.path()).await;
        let stored = json!({ "P1_url": rooms.base, "P1_api_key": "k", "P1_api_secret": "s" });
        service.library().update_integrations(&caller, parse(stored)).await.expect("they are stored");
        let id = queue_one(&service, &caller, json!({ "name": "Desk", "P1_agent_name": "desk" })).await;
        let job = CallJob { organization: caller.organization.clone(), result_id: id, attempt: 1 };
        let claimed = service.queue().claim(&[CallJob::NAME], LEASE_MS).await.expect("claimed").expect("a job");
        for (attempts, room, removed) in [(1, true, 0), (2, false, 0), (2, true, 1)] {
            let keep = move |doc: &mut ResultDoc| doc.room = room.then(|| "svc-1-0000abcd".to_owned());
            service.conversations().amend(&caller.organization, id, keep).await.expect("it is kept");
            let mut again = claimed.clone();
            again.attempts = attempts;
            left_behind(&service, &again, &job).await.expect("it is taken up");
            assert_eq!(rooms.requests().len(), removed, "{attempts} {room}");
        }
        let asked = &rooms.requests()[0];
        let expect = ("/twirp/livekit.RoomService/DeleteRoom", json!({ "room": "svc-1-0000abcd" }));
        assert_eq!((asked.path.as_str(), asked.body.clone()), expect);
    }

    #[tokio::test]
    async fn a_job_that_panics_is_done_again_a_few_times() {
        let folder = tempfile::tempdir().expect("a folder");
        let (service, caller) = product(folder.path()).await;
        let id = ended_result(&service, &caller).await;
        assert_eq!(fail(&service, EvaluateJob::NAME, true).await, MOST_ATTEMPTS as usize);
        let body = service.runs().result(&caller, id).await.expect("it").body;
        assert_eq!((body.status, body.error_code), (ResultStatus::SystemError, Some(ErrorCode::EvaluationTimeout)));
    }

    #[tokio::test]
    async fn an_evaluation_that_takes_too_long_is_dropped() {
        let folder = tempfile::tempdir().expect("a folder");
        let (service, _) = product(folder.path()).await;
        let account = service.spending().account(UsedBy::Nobody);
        assert_eq!(in_time(&service, &account, async { 1 }).await, Some(1));
        let clock = service.clock();
        let (late, ()) = tokio::join!(
            in_time(&service, &account, std::future::pending::<()>()),
            clock.advance_to_wait(EVALUATION_MS)
        );
        assert_eq!(late, None);
    }
}
