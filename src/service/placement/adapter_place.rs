//! Calls that a platform is asked to place: the Digital Human listens, and its platform has the agent call it.

use std::time::Duration;

use ringer_base::error::Result;
use ringer_base::guard::Guard;
use ringer_base::post::{Posted, Poster};
use ringer_model::error_code::{ErrorCode, PlatformFault};
use ringer_model::result::ResultDoc;
use ringer_store::queue::TriggerJob;
use serde_json::json;

use super::adapter::{self, Asking, NotSent, SessionPlan, plan_of};
use super::{CallRows, Obstacle, Placements, read_rows};
use crate::conversation::inbound_address::{Stage, stage};
use crate::conversation::trigger::waits;
use crate::outbox::addresses::{address_uri, address_user};
use crate::{NotDone, Settings};

/// Time limit of the request and its answer together.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest answer that is read, in bytes.
const ANSWER_BYTES: usize = 256 * 1024;
/// Waits after the first request and the second that were refused because the platform is busy, in milliseconds.
const WAITS_MS: [i64; 2] = [1000, 2000];

/// Outcome of one request.
enum Asked {
    /// The platform places the call, to which it gave this name.
    Placed(Option<String>),
    /// The platform is busy by its status, and asks for this wait in seconds.
    Busy(u16, Option<u64>),
    /// There will be no call.
    Refused(Obstacle),
}

impl Placements {
    /// Asks for the call of a result that waits for it: the agent's owner, or its platform.
    pub async fn ask_for_call(&self, job: &TriggerJob) -> Result<()> {
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(row) = db.find::<ResultDoc>(job.result_id).await? else { return Ok(()) };
        if !waits(&row.doc, job) {
            return Ok(());
        }
        let Some(stage) = stage(&mut db, &row).await? else { return Ok(()) };
        if !stage.agent.is_placed_by_platform() {
            drop(db);
            return self.conversations.ask_for_call(job).await;
        }
        // Nothing of it is kept.
        let rows = read_rows(&mut db, &row).await;
        drop(db);
        let plan = match rows.map(|rows| place_plan(&rows, &self.settings)) {
            Ok(Ok(plan)) => plan,
            Ok(Err(why)) | Err(NotDone::Reason(why)) => return self.conversations.refuse_awaited(job, why).await,
            Err(NotDone::Fault(error)) => return Err(error),
        };
        let mut plan = self.with_addresses(plan, job, &row.doc, &stage);
        match self.ask_platform(&mut plan, job).await {
            Asked::Placed(id) => self.note_placed(job, id).await,
            Asked::Busy(status, wait_s) => self.place_again(job, status, wait_s).await,
            Asked::Refused(why) => {
                let (result, code) = (job.result_id, why.code.as_str());
                tracing::warn!(result, code, "the platform was asked in vain to place a call");
                self.conversations.refuse_awaited(job, why).await
            }
        }
    }

    /// Returns a plan that knows where the Digital Human listens.
    fn with_addresses(&self, mut plan: SessionPlan, job: &TriggerJob, doc: &ResultDoc, stage: &Stage) -> SessionPlan {
        let user = address_user(&job.organization, stage.human_id, &stage.human, doc.body.simulation_run_id);
        let sip_uri = address_uri(&user, self.live.sip_address());
        let facts = &mut plan.facts.digital_human;
        facts.insert("phone_number".to_owned(), json!(stage.number()));
        facts.insert("sip_uri".to_owned(), json!(sip_uri));
        plan
    }

    async fn ask_platform(&self, plan: &mut SessionPlan, job: &TriggerJob) -> Asked {
        use PlatformFault::{AuthFailed, SessionSetupFailed};
        let guard = Guard::new(self.settings.allow_private_agents).trusting(&self.settings.roots);
        let poster = Poster::new(guard, PATIENCE);
        let is_kept = match self.asker().authorize(plan, &poster, false).await {
            Ok(is_kept) => is_kept,
            Err(why) => return Asked::Refused(why),
        };
        let make = |plan: &SessionPlan| plan.adapter.place_request(&plan.facts);
        let asking = Asking { make: &make, result_id: Some(job.result_id), answer_bytes: ANSWER_BYTES };
        let sent = self.asker().send(plan, &poster, is_kept, &asking).await;
        let refused = |fault, why: String| Asked::Refused(plan.obstacle(fault, format!("place.url {why}")));
        let Posted { status, retry_after_s, body } = match sent {
            Ok(posted) => posted,
            Err(NotSent::NoToken(why)) => return Asked::Refused(why),
            Err(NotSent::NotMade(why)) => return Asked::Refused(plan.obstacle(SessionSetupFailed, why)),
            Err(NotSent::NotPosted(failed)) if failed.is_own => {
                return Asked::Refused(Obstacle::new(ErrorCode::BridgePreStartFailed, failed.why));
            }
            Err(NotSent::NotPosted(failed)) => {
                return refused(SessionSetupFailed, format!("was not answered: {}", failed.why));
            }
        };
        match status {
            200..=299 => Asked::Placed(plan.adapter.read_placed(&body)),
            401 | 403 => refused(AuthFailed, format!("answered {status}: the credentials are refused")),
            // These statuses say that no call was made.
            429 | 503 => Asked::Busy(status, retry_after_s),
            status => refused(SessionSetupFailed, format!("answered {status}")),
        }
    }

    async fn note_placed(&self, job: &TriggerJob, id: Option<String>) -> Result<()> {
        let Some(id) = id else { return Ok(()) };
        let note = |doc: &mut ResultDoc| doc.note("platform_call_id", json!(id));
        self.conversations.amend(&job.organization, job.result_id, note).await.map(drop)
    }

    /// Asks again after a wait; after the last request the result ends.
    async fn place_again(&self, job: &TriggerJob, status: u16, wait_s: Option<u64>) -> Result<()> {
        let Some(wait_ms) = usize::try_from(job.request - 1).ok().and_then(|at| WAITS_MS.get(at)) else {
            let why = format!("place.url answered {status}: the platform takes no further call at present");
            return self
                .conversations
                .refuse_awaited(job, Obstacle::new(ErrorCode::CustomerConcurrencyLimit, why))
                .await;
        };
        let due_ms = self.clock.now_ms() + adapter::wait_ms(*wait_ms, wait_s);
        let mut db = self.store.org(&job.organization).write().await?;
        db.put(&TriggerJob { request: job.request + 1, ..job.clone() }, due_ms, None).await?;
        db.commit().await
    }
}

/// Returns the adapter that asks for the call of an agent, with what it is told.
pub(super) fn place_plan(rows: &CallRows, settings: &Settings) -> Result<SessionPlan, Obstacle> {
    let kind =
        rows.telephony().ok_or_else(|| Obstacle::new(ErrorCode::NoConnectionType, "The agent has no platform"))?;
    let plan = plan_of(rows, kind, settings)?;
    if plan.adapter.places_calls() {
        return Ok(plan);
    }
    let why = format!("enable_outbound_call_auto_start: [adapters.{}] has no place", kind.as_str());
    Err(plan.obstacle(PlatformFault::AdapterNotConfigured, why))
}
