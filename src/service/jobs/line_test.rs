//! Tests of an agent's line: is it set up, is its platform's session made, is it reached, does it answer and speak? The
//! call is hung up, and nothing of it is kept.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use ringer_base::error::{Error, Result};
use ringer_base::tasks::to_its_end;
use ringer_engine::line_check::{self, Checked, Line, RINGING_MS};
use ringer_engine::{CallReport, Placement};
use ringer_model::Object;
use ringer_model::agent::AgentDoc;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::Semaphore;

use super::workshop::Workshop;
use crate::{CallOutcome, Caller, Circumstances, Obstacle, PreparedCall, Trial, line_of};

/// Tests at one time.
const AT_ONCE: usize = 4;

/// Ids of tests in a millisecond.
const IDS_PER_MS: i64 = 1000;

/// Outcome of one step of a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LineStep {
    /// `settings`, `session` (of platforms and rooms that make one), `resolved`, `connected`, `answered` or
    /// `first_sound`.
    pub name: String,
    /// True if it holds.
    pub ok: bool,
    /// Duration of the step in milliseconds.
    pub ms: u64,
    /// Code of the failure; null when the step holds.
    pub code: Option<String>,
    /// Address, or what failed and what to do about it.
    pub message: Option<String>,
}

/// Outcome of a test of an agent's line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LineTest {
    /// True if all steps hold.
    pub ok: bool,
    /// Steps up to the first that failed.
    pub steps: Vec<LineStep>,
}

/// Tests lines with the engine's calls.
#[derive(Clone)]
pub struct LineTests {
    workshop: Workshop,
    places: Arc<Semaphore>,
    /// Id of the last test, below those of results.
    last: Arc<AtomicI64>,
}

/// Steps of a test so far.
struct Steps<'a> {
    workshop: &'a Workshop,
    steps: Vec<LineStep>,
    began: i64,
}

impl Steps<'_> {
    fn ms(&mut self) -> u64 {
        let now = self.workshop.service.clock().now_ms();
        (now - std::mem::replace(&mut self.began, now)).max(0) as u64
    }

    fn pass(&mut self, name: &str, message: Option<String>) {
        let ms = self.ms();
        self.steps.push(LineStep { name: name.to_owned(), ok: true, ms, code: None, message });
    }

    fn lose(&mut self, name: &str, obstacle: Obstacle) {
        let ms = self.ms();
        let (code, message) = (Some(obstacle.code.as_str().to_owned()), Some(obstacle.message));
        self.steps.push(LineStep { name: name.to_owned(), ok: false, ms, code, message });
    }

    /// Adds the steps of a call; one that failed gets the error code of a result whose call ends so.
    /// `notes`: metadata of the call.
    fn add(&mut self, checked: Checked, report: Option<&CallReport>, notes: Object) {
        let about = Circumstances { notes, ..Circumstances::default() };
        let outcome = report.map(|report| CallOutcome::of_call(report, about));
        let error = outcome.and_then(|outcome| outcome.error);
        self.steps.extend(checked.steps.into_iter().map(|step| LineStep {
            name: step.name.to_owned(),
            ok: step.ok,
            ms: step.ms,
            code: match (&error, step.ok) {
                (Some((code, _)), false) => Some(code.as_str().to_owned()),
                _ => step.code,
            },
            message: step.message,
        }));
    }

    fn end(self) -> LineTest {
        LineTest { ok: self.steps.iter().all(|step| step.ok), steps: self.steps }
    }
}

impl LineTests {
    /// Returns the tests of an engine.
    pub(super) fn new(workshop: Workshop) -> LineTests {
        // Engines that share a database take other ids.
        let last = Arc::new(AtomicI64::new(workshop.service.clock().now_ms().saturating_mul(-IDS_PER_MS)));
        LineTests { workshop, places: Arc::new(Semaphore::new(AT_ONCE)), last }
    }

    /// Tests the line of an agent.
    ///
    /// # Errors
    /// Too many tests run at present, or a fault of the store.
    pub async fn test(&self, caller: &Caller, agent: AgentDoc) -> Result<LineTest> {
        // A call that was begun is hung up, whether somebody waits for the answer or not.
        let (tests, caller) = (self.clone(), caller.clone());
        let tested = to_its_end(async move { tests.run(&caller, agent).await }).await;
        tested.unwrap_or_else(|why| Err(Error::internal(why)))
    }

    async fn run(&self, caller: &Caller, agent: AgentDoc) -> Result<LineTest> {
        let busy = |_| Error::Unavailable(format!("{AT_ONCE} tests of lines run already"));
        let _place = self.places.try_acquire().map_err(busy)?;
        let Workshop { service, placement_settings: terms, .. } = &self.workshop;
        let mut steps = Steps { workshop: &self.workshop, steps: Vec::new(), began: service.clock().now_ms() };
        let trial = match service.placements().trial(&caller.organization, agent, terms).await {
            Ok(trial) => trial,
            Err(why) => {
                steps.lose("settings", why.reason()?);
                return Ok(steps.end());
            }
        };
        match trial {
            Trial::Idle(why) => steps.pass("settings", Some(why)),
            Trial::Server(line) => {
                steps.pass("settings", None);
                let reach = service.placements().reach();
                let checked = line_check::connect(service.clock(), &line, &reach).await;
                steps.add(checked, None, Object::new());
            }
            Trial::Call(prepared) => {
                let id = self.last.fetch_sub(1, Ordering::Relaxed) - 1;
                self.call(caller, id, *prepared, &mut steps).await?;
            }
        }
        Ok(steps.end())
    }

    /// Makes the call of a test.
    async fn call(&self, caller: &Caller, id: i64, mut prepared: PreparedCall, steps: &mut Steps<'_>) -> Result<()> {
        let placements = self.workshop.service.placements();
        let organization = &caller.organization;
        match placements.admit_trial(organization, id, &mut prepared).await {
            Ok(()) => steps.pass("settings", None),
            Err(why) => {
                steps.lose("settings", why.reason()?);
                return Ok(());
            }
        }
        let asks = prepared.session.is_some() || prepared.room.is_some();
        let began = steps.began;
        let opened = placements.open_room(&mut prepared).await;
        let PreparedCall { placement, room, dial, notes, .. } = prepared;
        match opened.and_then(|()| line_of(&placement.destination)) {
            Ok(line) => {
                if asks {
                    steps.pass("session", None);
                }
                self.dial(&line, placement, notes, steps).await;
            }
            Err(why) => steps.lose(if asks { "session" } else { "settings" }, why),
        }
        if let Some(room) = &room {
            placements.close_room(room).await;
        }
        match dial {
            Some(_) => placements.end_trial(organization, id, steps.began - began).await,
            None => Ok(()),
        }
    }

    async fn dial(&self, line: &Line, mut placement: Placement, notes: Object, steps: &mut Steps<'_>) {
        let Workshop { service, engine, .. } = &self.workshop;
        let reach = service.placements().reach();
        placement.folder = None;
        placement.captured = false;
        placement.spec.limits.ringing_ms = RINGING_MS;
        let (checked, report) = line_check::check(engine, service.clock(), line, &reach, placement).await;
        steps.add(checked, report.as_deref(), notes);
        steps.ms();
    }
}
