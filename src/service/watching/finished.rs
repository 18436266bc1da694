//! Work that follows a finished and evaluated conversation. It is requested in the transaction that finishes it, and
//! done by a job.

use ringer_base::error::{Error, Result};
use ringer_judge::Decision;
use ringer_model::call_log::CallLogDoc;
use ringer_model::issue::SourceKind;
use ringer_model::result::{ResultBody, ResultDoc};
use ringer_model::status::ResultStatus;
use ringer_model::tool_call;
use ringer_store::Session;
use ringer_store::queue::FinishedJob;
use uuid::Uuid;

use super::Watching;

/// A finished conversation, as those see it who watch over an agent.
pub(crate) struct Finished {
    pub agent_id: i64,
    pub source: SourceKind,
    pub source_id: String,
    pub body: ResultBody,
}

impl Watching {
    /// Shows a finished conversation to the monitor whose check it is, to the issues and to the alerts. Doing it twice
    /// changes nothing more.
    ///
    /// `told_error`: what a language model says to [`Watching::asked_for_errors`].
    pub async fn look_at_finished(&self, job: &FinishedJob, told_error: Option<&Decision>) -> Result<()> {
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(finished) = find_finished(&mut db, job).await? else { return Ok(()) };
        let counts = match (job.source, job.source_id.parse()) {
            (SourceKind::Simulation, Ok(id)) => self.settle_check(&mut db, id, &finished.body, told_error).await?,
            _ => true,
        };
        if counts {
            self.note_failures(&mut db, &finished).await?;
        }
        self.hold_against_alerts(&mut db, &finished).await?;
        db.commit().await
    }
}

/// Returns the finished conversation; `None` when it is gone, was cancelled, or is being repeated.
async fn find_finished(db: &mut Session, job: &FinishedJob) -> Result<Option<Finished>> {
    let body = match job.source {
        SourceKind::Simulation => {
            let id = job.source_id.parse().map_err(Error::internal)?;
            db.find::<ResultDoc>(id).await?.map(|row| row.doc.body)
        }
        SourceKind::Observability => {
            let id = Uuid::parse_str(&job.source_id).map_err(Error::internal)?;
            db.find::<CallLogDoc>(id).await?.filter(|row| row.doc.status.is_final()).map(|row| as_result(row.doc))
        }
    };
    let body = body.filter(|body| body.status.is_terminal() && body.status != ResultStatus::Cancelled);
    let (source, source_id) = (job.source, job.source_id.clone());
    Ok(body.map(|body| Finished { agent_id: body.agent_id, source, source_id, body }))
}

/// Returns a call log in the shape of a result: what can be looked at in both.
fn as_result(log: CallLogDoc) -> ResultBody {
    ResultBody {
        agent_id: log.agent_id,
        status: ResultStatus::Completed,
        tool_calls: tool_call::group(&[], log.call.tool_calls.as_deref().unwrap_or_default()),
        evaluations: log.evaluations,
        metrics: log.metrics,
        metadata: log.call.metadata.unwrap_or_default(),
        ..ResultBody::default()
    }
}
