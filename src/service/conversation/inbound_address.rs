//! Results that the agent is to call: where they listen, who of several that share an address listens first, and whom a
//! call that comes in is for. A result holds its addresses from READY until its conversation is over. So does one that
//! is written, what only one may have: its two numbers, and its place in a run that keeps an order.

use ringer_base::clock;
use ringer_base::config::Secret;
use ringer_base::error::Result;
use ringer_model::Object;
use ringer_model::agent::{AgentDoc, AgentSpec};
use ringer_model::digital_human::{DigitalHumanSpec, JourneyStep};
use ringer_model::error_code::ErrorCode;
use ringer_model::result::ResultDoc;
use ringer_model::simulation::SimulationSpec;
use ringer_model::status::ResultStatus;
use ringer_model::text::{conversation_address, is_pair, pair_address};
use ringer_model::time::Timestamp;
use ringer_store::queue::{CallAgain, CallJob, Lane, TextAgain, UnansweredJob};
use ringer_store::{Row, Session};
use serde_json::{Value, json};

use super::Conversations;
use super::facts::is_written;
use super::model_budget::{budget_of, is_budget};
use super::obstacle::Obstacle;
use super::organization_limits::{is_places, places_of};
use super::privacy::redactor_of;
use super::stream_address::{self, AGENT_STREAM};
use crate::outbox::addresses::{address_uri, address_user, number};

/// Next step of a result that is queued for a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum QueueStep {
    /// The agent is called.
    Dials,
    /// The result becomes READY, and the agent calls.
    Listens,
    /// Another result comes first, or it is no longer queued.
    Waits,
}

/// Address at which a call is awaited.
#[derive(Clone, Debug, PartialEq)]
pub struct InboundAddress {
    /// Organization that the address belongs to.
    pub organization: String,
    /// True if it rings and nobody answers: the call is noted, and not taken.
    pub unresponsive: bool,
    /// User and password that the caller must have.
    pub login: Option<(String, Secret)>,
    pub(crate) goal: Goal,
}

/// Purpose for which a call is accepted.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Goal {
    /// A result that is READY.
    Result(i64),
    /// A Digital Human that can be called at any time, and the simulation that its calls belong to.
    AlwaysOn { human_id: i64, simulation_id: i64 },
}

impl InboundAddress {
    /// Returns the result that listens there; `None`: a Digital Human does, at any time.
    pub(crate) fn result_id(&self) -> Option<i64> {
        match self.goal {
            Goal::Result(result_id) => Some(result_id),
            Goal::AlwaysOn { .. } => None,
        }
    }
}

/// The rows that say how a result meets its agent.
pub(crate) struct Stage {
    pub agent: AgentSpec,
    /// Signs what the agent's owner is told.
    pub agent_key: Option<String>,
    pub simulation: Row<SimulationSpec>,
    pub human_id: i64,
    pub human: DigitalHumanSpec,
    pub step: Option<JourneyStep>,
}

impl Conversations {
    /// Takes the next step of a queued result, in a transaction of its own.
    #[cfg(any(test, feature = "testing"))]
    pub async fn take_queue_step(&self, organization: &str, result_id: i64) -> Result<QueueStep> {
        let mut db = self.store.org(organization).write().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        let (step, is_changed) = self.queue_step(&mut db, &mut row).await?;
        if is_changed {
            db.commit().await?;
            self.live.note_change(result_id);
        }
        Ok(step)
    }

    /// Lets a result that has a place go on: the agent is called, or its call is waited for. It waits when another
    /// result has its address, or comes before it in a run whose calls are held one after the other. Returns true
    /// beside the step if there is something to commit.
    pub(crate) async fn queue_step(&self, db: &mut Session, row: &mut Row<ResultDoc>) -> Result<(QueueStep, bool)> {
        let result_id = row.id;
        if row.doc.body.status != ResultStatus::Queued {
            return Ok((QueueStep::Waits, false));
        }
        let Some(stage) = stage(db, row).await? else { return Ok((QueueStep::Dials, false)) };
        let run_id = row.doc.body.simulation_run_id;
        let mut addresses = Vec::new();
        let is_called = stage.agent.is_awaited(stage.step.as_ref());
        if is_called && stage.agent.is_over_websocket() {
            addresses.push(format!("{AGENT_STREAM}{result_id}"));
        } else if is_called {
            addresses.push(address_user(db.organization(), stage.human_id, &stage.human, run_id));
            addresses.extend(stage.number().map(str::to_owned));
        }
        if let Some(obstacle) = stage.foreign_number(db, is_called).await? {
            row.doc.body.fail(obstacle.code, obstacle.message);
            self.step(db, row, ResultStatus::NoConnection).await?;
            return Ok((QueueStep::Waits, true));
        }
        if stage.simulation.doc.sequential_calling {
            addresses.push(in_order(run_id));
        }
        // A result whose agent is awaited holds its place from then on: a call of it is never refused for the limit.
        let is_blocked = self.is_blocked(db, result_id, &addresses).await?;
        let wanting = if is_blocked { Vec::new() } else { self.wanting(db).await? };
        let held = !is_blocked && wanting.is_empty();
        addresses.extend(wanting);
        if addresses.is_empty() {
            return Ok((QueueStep::Dials, false));
        }
        db.put_legs(result_id, &addresses, held, self.clock.now_ms()).await?;
        if held && is_called {
            self.listen(db, row, &stage).await?;
        }
        let step = match held {
            true if is_called => QueueStep::Listens,
            true => QueueStep::Dials,
            false => QueueStep::Waits,
        };
        Ok((step, true))
    }

    /// Takes the next step of a written conversation in a transaction of its own, as
    /// [`Conversations::take_queue_step`] does, between two numbers if it has any. Returns false if it has to wait, or
    /// is no longer to be held.
    #[cfg(any(test, feature = "testing"))]
    pub async fn take_written_step(
        &self,
        organization: &str,
        result_id: i64,
        numbers: Option<[&str; 2]>,
    ) -> Result<bool> {
        let mut db = self.store.org(organization).write().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        let (is_held, is_changed) = self.written_step(&mut db, &row, numbers).await?;
        if is_changed {
            db.commit().await?;
            self.live.note_change(result_id);
        }
        Ok(is_held)
    }

    /// Takes the place of a written conversation among others. Returns false if it has to wait, or is no longer to be
    /// held; beside it true if there is something to commit.
    pub(crate) async fn written_step(
        &self,
        db: &mut Session,
        row: &Row<ResultDoc>,
        numbers: Option<[&str; 2]>,
    ) -> Result<(bool, bool)> {
        let body = &row.doc.body;
        if !matches!(body.status, ResultStatus::Queued | ResultStatus::Ready) {
            return Ok((false, false));
        }
        let mut addresses: Vec<String> = numbers.map(pair_address).into_iter().collect();
        if db.get::<SimulationSpec>(body.simulation_id).await?.doc.sequential_calling {
            addresses.push(in_order(body.simulation_run_id));
        }
        // A READY result is past the queue.
        let is_new = body.status == ResultStatus::Queued;
        let is_blocked = is_new && self.is_blocked(db, row.id, &addresses).await?;
        let wanting = if is_new && !is_blocked { self.wanting(db).await? } else { Vec::new() };
        let is_held = !is_blocked && wanting.is_empty();
        addresses.extend(wanting);
        if addresses.is_empty() {
            return Ok((true, false));
        }
        db.put_legs(row.id, &addresses, is_held, self.clock.now_ms()).await?;
        Ok((is_held, true))
    }

    /// Keeps the platform's name of a conversation, by which its posts find the result.
    pub(crate) async fn hold_inbound(
        &self,
        organization: &str,
        result_id: i64,
        agent_id: i64,
        conversation: &str,
    ) -> Result<()> {
        let mut db = self.store.org(organization).write().await?;
        let mut addresses = db.legs_of(result_id).await?;
        let address = conversation_address(agent_id, conversation);
        if addresses.contains(&address) {
            return Ok(());
        }
        addresses.push(address);
        db.put_legs(result_id, &addresses, true, self.clock.now_ms()).await?;
        db.commit().await
    }

    async fn listen(&self, db: &mut Session, row: &mut Row<ResultDoc>, stage: &Stage) -> Result<()> {
        let (now, organization) = (self.clock.now_ms(), db.organization().to_owned());
        let body = &row.doc.body;
        let user = address_user(&organization, stage.human_id, &stage.human, body.simulation_run_id);
        let at = match stage.agent.is_over_websocket() {
            true => stream_address::note(&self.settings, &organization, row.id),
            false => json!({ "sip_uri": address_uri(&user, self.live.sip_address()), "phone_number": stage.number() }),
        };
        row.doc.note("listening", at);
        if stage.agent.enable_outbound_call_auto_start == Some(true) && !stage.agent.is_placed_by_platform() {
            let why = match stage.agent.outbound_trigger_webhook_url {
                Some(_) => "outbound_trigger_webhook_url is asked for the call, and not the platform",
                None => "only the platform of a P3 to P11 agent is asked to call",
            };
            row.doc.warn(&format!("enable_outbound_call_auto_start: {why}"));
        }
        self.step(db, row, ResultStatus::Ready).await?;
        let (result_id, attempt) = (row.id, row.doc.body.attempt);
        let job = UnansweredJob { organization, result_id, attempt };
        db.put(&job, now + stage.simulation.doc.patience_ms(stage.step.as_ref()), None).await
    }

    /// Frees the addresses of a conversation that is over or will not be: results that wait for them, or for its end,
    /// may look again.
    pub(crate) async fn free_addresses(&self, db: &mut Session, result: &Row<ResultDoc>) -> Result<()> {
        let organization = db.organization().to_owned();
        let attempt = result.doc.body.attempt;
        db.withdraw(&UnansweredJob { organization, result_id: result.id, attempt }).await?;
        let mut addresses = db.drop_legs(result.id).await?;
        let order = in_order(result.doc.body.simulation_run_id);
        if !addresses.contains(&order) {
            // It may have been waited for without ever having been READY.
            addresses.push(order);
        }
        addresses.push(places_of(db.organization()));
        let mut taken = Vec::new();
        for address in addresses {
            if !taken.contains(&address) {
                taken.extend(self.wake_next(db, &address).await?);
            }
        }
        Ok(())
    }

    /// Queues the first result anew that waits for an address, and for nothing that is taken. Returns what it waited
    /// for; nothing where there is none. It looks itself whether it has to wait again.
    pub(super) async fn wake_next(&self, db: &mut Session, address: &str) -> Result<Vec<String>> {
        for (organization, result_id) in db.leg_waiters(address).await? {
            let wanted = db.legs_of(result_id).await?;
            if self.is_blocked(db, result_id, &wanted).await? {
                continue;
            }
            // Numbers that are called, and pairs that write, have one kind of conversations each. Elsewhere the waiter
            // itself tells it.
            let waiter = match organization == db.organization() {
                true => db.find::<ResultDoc>(result_id).await?,
                false => None,
            };
            let written = match &waiter {
                Some(waiter) => is_written(db, &waiter.doc).await?,
                None => wanted.iter().any(|address| is_pair(address)),
            };
            // The attempt only names the job, and this one has a name of its own.
            let call = CallJob { organization, result_id, attempt: 1 };
            let again = CallAgain { call, serial: clock::new_id() };
            // Its job has left the lane of its run where it waited for a place of the organization.
            let lane = match &waiter {
                Some(waiter) if wanted.iter().any(|it| is_places(it) || is_budget(it)) && !written => {
                    let body = &waiter.doc.body;
                    let simulation = db.get::<SimulationSpec>(body.simulation_id).await?.doc;
                    Lane::of_run(body.simulation_run_id, &simulation)
                }
                _ => None,
            };
            match written {
                true => db.put(&TextAgain(again), self.clock.now_ms(), None).await?,
                false => db.put(&again, self.clock.now_ms(), lane.as_ref()).await?,
            }
            if let Some(lane) = &lane {
                db.release(lane).await?;
            }
            return db.drop_legs(result_id).await;
        }
        Ok(Vec::new())
    }

    /// Returns the addresses under which a conversation has to wait that may not begin now: for a place of its
    /// organization, and for the budget of the model that words callers.
    async fn wanting(&self, db: &mut Session) -> Result<Vec<String>> {
        let mut addresses = Vec::new();
        if !self.has_free_place(db).await? {
            addresses.push(places_of(db.organization()));
        }
        if self.is_over_budget(db).await? {
            addresses.push(budget_of(db.organization()));
        }
        Ok(addresses)
    }

    /// True when another result has one of these addresses, comes before this one in its run, all places of the
    /// organization are taken, or the budget that it waits for is used up.
    async fn is_blocked(&self, db: &mut Session, result_id: i64, addresses: &[String]) -> Result<bool> {
        for address in addresses {
            if db.leg_holder(address).await?.is_some_and(|(_, holder)| holder != result_id) {
                return Ok(true);
            }
        }
        // One of another organization looks itself.
        let own = places_of(db.organization());
        if addresses.contains(&own) && !self.has_free_place(db).await? {
            return Ok(true);
        }
        let own = budget_of(db.organization());
        if addresses.contains(&own) && self.is_over_budget(db).await? {
            return Ok(true);
        }
        let ordered = addresses.iter().any(|address| is_in_order(address));
        Ok(ordered && db.has_earlier_open(result_id).await?)
    }

    /// Ends the wait of a READY result that the agent has not called in time.
    pub async fn give_up_waiting(&self, job: &UnansweredJob) -> Result<()> {
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(mut row) = db.find::<ResultDoc>(job.result_id).await? else { return Ok(()) };
        if row.doc.body.status != ResultStatus::Ready || row.doc.body.attempt != job.attempt {
            return Ok(());
        }
        if row.doc.unanswered.is_empty() {
            // The Digital Human, with the time that it was to wait, may be deleted by now.
            let ready = row.doc.body.status_history.last().map_or(0, |change| change.at.0);
            let waited_s = (self.clock.now_ms() - ready) / 1000;
            row.doc.body.fail(ErrorCode::InboundNoIncomingCall, format!("The agent did not call within {waited_s} s"));
            self.step(&mut db, &mut row, ResultStatus::NoAnswer).await?;
        } else {
            // The calls that were not to be answered are all that there is to judge.
            row.doc.body.end_time = Some(Timestamp(self.clock.now_ms()));
            self.step(&mut db, &mut row, ResultStatus::Running).await?;
            self.step(&mut db, &mut row, ResultStatus::ConversationEnded).await?;
        }
        db.commit().await?;
        self.live.note_change(job.result_id);
        Ok(())
    }

    /// Moves a result from READY to DISPATCHED by a call that came in.
    pub(crate) async fn begin_answered(&self, db: &mut Session, row: &mut Row<ResultDoc>, about: Object) -> Result<()> {
        row.doc.private = redactor_of(db, &row.doc).await?.is_some();
        row.doc.note("incoming", Value::Object(about));
        self.step(db, row, ResultStatus::Dispatched).await?;
        db.hold_result(row.id).await
    }

    /// Takes a number over for a Digital Human that listens on it from now on. Results of others that wait for a call
    /// to it have lost it.
    pub(crate) async fn take_number_over(&self, db: &mut Session, human_id: Option<i64>, number: &str) -> Result<()> {
        let Some((organization, result_id)) = db.leg_holder(number).await? else { return Ok(()) };
        if organization != db.organization() {
            return Ok(());
        }
        let mut row = db.get::<ResultDoc>(result_id).await?;
        if row.doc.body.status == ResultStatus::Ready && row.doc.body.digital_human_id != human_id {
            row.doc.body.fail(ErrorCode::SipTrunkRecycled, "Another Digital Human listens on the number now");
            self.step(db, &mut row, ResultStatus::NoConnection).await?;
        }
        Ok(())
    }
}

impl Stage {
    /// Returns the number that the agent reaches the Digital Human on.
    pub(crate) fn number(&self) -> Option<&str> {
        number(&self.agent, &self.human, self.step.as_ref())
    }

    /// True when the Digital Human lets it ring.
    pub(crate) fn is_unresponsive(&self) -> bool {
        self.step.as_ref().is_some_and(|step| step.unresponsive)
    }

    /// Returns the reason why this result may not listen on its number, if there is one.
    async fn foreign_number(&self, db: &mut Session, is_called: bool) -> Result<Option<Obstacle>> {
        let Some(number) = self.number().filter(|_| is_called && !self.agent.is_over_websocket()) else {
            return Ok(None);
        };
        if db.is_foreign_number(number).await? {
            let message = format!("{number} belongs to another organization");
            return Ok(Some(Obstacle { code: ErrorCode::AlwaysOnPhoneInUse, message }));
        }
        let other = db.always_on(number).await?.filter(|(_, id)| *id != self.human_id);
        Ok(other.map(|_| Obstacle {
            code: ErrorCode::AlwaysOnPhoneInUse,
            message: format!("Another Digital Human always listens on {number}"),
        }))
    }
}

/// Returns the rows that say how a result meets its agent; `None` when the Digital Human was deleted.
pub(crate) async fn stage(db: &mut Session, row: &Row<ResultDoc>) -> Result<Option<Stage>> {
    let body = &row.doc.body;
    let Some(human_id) = body.digital_human_id else { return Ok(None) };
    let Some(human) = db.find::<DigitalHumanSpec>(human_id).await?.map(|row| row.doc) else { return Ok(None) };
    let agent = db.get::<AgentDoc>(body.agent_id).await?.doc;
    let simulation = db.get::<SimulationSpec>(body.simulation_id).await?;
    let step = human.step(body.journey_step).cloned();
    let (agent_key, agent) = (agent.http_webhook_key, agent.spec.met_in(step.as_ref()).into_owned());
    Ok(Some(Stage { agent, agent_key, simulation, human_id, human, step }))
}

/// Start of what the results of a sequential run share as if it were an address. No user part of a call has a blank.
const IN_ORDER: &str = "in order: ";

/// True for what no other result of a sequential run may have, and not where it is called.
pub(crate) fn is_in_order(address: &str) -> bool {
    address.starts_with(IN_ORDER)
}

fn in_order(run_id: i64) -> String {
    format!("{IN_ORDER}{run_id}")
}

/// True when another call of the run may begin.
pub(crate) async fn has_place(db: &mut Session, run_id: i64, simulation: &SimulationSpec) -> Result<bool> {
    let Some(limit) = simulation.concurrency() else { return Ok(true) };
    Ok(db.places_taken(run_id).await? < limit)
}

/// Returns user and password that a caller must prove; `None` if the agent has none.
pub(crate) fn login(agent: &AgentSpec) -> Option<(String, Secret)> {
    Some((agent.sip_username.clone()?, Secret::new(agent.sip_password.clone()?)))
}
