//! Reports on calls that are over: a platform is asked for them until it has one, or a minute has passed.

use std::time::Duration;

use ringer_base::error::Result;
use ringer_base::guard::Guard;
use ringer_base::post::{Posted, Poster};
use ringer_model::result::ResultDoc;
use ringer_model::text_of;
use ringer_store::queue::AfterJob;
use ringer_transport::websocket::platform::after::Report;

use super::adapter::{Asking, NotSent, SessionPlan, plan_of};
use super::{Placements, read_rows};
use crate::NotDone;
use crate::conversation::after_call::{CALL_ID_NOTE, Reported, is_open};

/// Time limit of the request and its answer together.
const PATIENCE: Duration = Duration::from_secs(10);
/// Longest report that is read, in bytes.
const ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// Waits after each request but the last, in milliseconds: a minute in all.
const WAITS_MS: [i64; 7] = [1000, 2000, 4000, 8000, 15_000, 15_000, 15_000];

/// Outcome of one request.
enum Asked {
    Report(Report),
    /// There is no report yet, or a part of one; the reason.
    NotYet(String, Report),
    /// There will be none.
    Never(String),
}

impl Placements {
    /// Asks once for the report on a call that is over, and again a little later where there is none yet. The result is
    /// judged in any case.
    pub async fn ask_after_call(&self, job: &AfterJob) -> Result<()> {
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(row) = db.find::<ResultDoc>(job.result_id).await? else { return Ok(()) };
        if !is_open(&row.doc, job) {
            return Ok(());
        }
        let call_id = row.doc.find_note(CALL_ID_NOTE).map(text_of).unwrap_or_default();
        // Nothing of it is kept.
        let rows = read_rows(&mut db, &row).await;
        drop(db);
        let mut reports_tools = true;
        let plan = match rows {
            Ok(rows) => rows.telephony().map(|kind| plan_of(&rows, kind, &self.settings)),
            Err(NotDone::Reason(why)) => Some(Err(why)),
            Err(NotDone::Fault(error)) => {
                tracing::warn!(result_id = job.result_id, %error, "a call cannot be asked after");
                let why = Some("the engine could not ask".to_owned());
                let reported = Reported { report: Report::default(), why, lacks_tools: true };
                return self.conversations.take_report(job, reported).await;
            }
        };
        let asked = match plan {
            Some(Ok(mut plan)) => {
                reports_tools = plan.adapter.reports_tools();
                self.ask_for_report(&mut plan, job, &call_id).await
            }
            Some(Err(why)) => Asked::Never(why.message),
            None => Asked::Never("the agent has no platform any more".to_owned()),
        };
        let wait = usize::try_from(job.request - 1).ok().and_then(|at| WAITS_MS.get(at));
        match (asked, wait) {
            (Asked::Report(report), _) => {
                self.conversations.take_report(job, Reported { report, why: None, lacks_tools: false }).await
            }
            (Asked::Never(why), _) => {
                let reported = Reported { report: Report::default(), why: Some(why), lacks_tools: reports_tools };
                self.conversations.take_report(job, reported).await
            }
            (Asked::NotYet(why, report), None) => {
                let why = Some(format!("the platform had no whole report within 60 s: {why}"));
                let lacks_tools = reports_tools && !report.has_all_tools();
                self.conversations.take_report(job, Reported { report, why, lacks_tools }).await
            }
            (Asked::NotYet(_, report), Some(wait_ms)) => {
                if report.has_all_tools() {
                    self.conversations.keep_tools(job, report.tools).await?;
                }
                let again = AfterJob { request: job.request + 1, ..job.clone() };
                let mut db = self.store.org(&job.organization).write().await?;
                db.put(&again, self.clock.now_ms() + wait_ms, None).await?;
                db.commit().await
            }
        }
    }

    async fn ask_for_report(&self, plan: &mut SessionPlan, job: &AfterJob, call_id: &str) -> Asked {
        let guard = Guard::new(self.settings.allow_private_agents).trusting(&self.settings.roots);
        let poster = Poster::new(guard, PATIENCE);
        let is_kept = match self.asker().authorize(plan, &poster, false).await {
            Ok(is_kept) => is_kept,
            Err(why) => return Asked::NotYet(why.message, no_tools()),
        };
        let make = |plan: &SessionPlan| plan.adapter.after_request(&plan.facts, call_id);
        let asking = Asking { make: &make, result_id: Some(job.result_id), answer_bytes: ANSWER_BYTES };
        match self.asker().send(plan, &poster, is_kept, &asking).await {
            Err(NotSent::NoToken(why)) => Asked::NotYet(why.message, no_tools()),
            Err(NotSent::NotMade(why)) => Asked::Never(why),
            Err(NotSent::NotPosted(failed)) => {
                Asked::NotYet(format!("after.url was not answered: {}", failed.why), no_tools())
            }
            Ok(Posted { status: 200..=299, body, .. }) => match plan.adapter.read_report(&body, call_id) {
                Some(report) if report.lacks.is_empty() => Asked::Report(report),
                Some(report) => {
                    Asked::NotYet(format!("the last answer has nothing for after.{}", report.lacks.join(", ")), report)
                }
                None => Asked::NotYet("the last answer is none on this call".to_owned(), no_tools()),
            },
            Ok(Posted { status: status @ (401 | 403), .. }) => {
                Asked::Never(format!("after.url answered {status}: the credentials are refused"))
            }
            Ok(Posted { status, .. }) => Asked::NotYet(format!("after.url answered {status}"), no_tools()),
        }
    }
}

/// Returns a report of which nothing is there.
fn no_tools() -> Report {
    Report { lacks: vec!["tool"], ..Report::default() }
}
