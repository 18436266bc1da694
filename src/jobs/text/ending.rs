//! Records of a written conversation that is over, and the next status of its result.

use ringer_media::call::EndReason;

use super::super::call::languages;
use super::TextWork;
use crate::engine::TimelineEntry;
use crate::engine::amiss::amiss;
use crate::engine::dialogue::DialogueEnd;
use crate::error::Result;
use crate::judge;
use crate::model::Object;
use crate::model::error_code::ErrorCode;
use crate::model::result::ResultDoc;
use crate::model::status::{EndedBy, ResultStatus};
use crate::model::time::Timestamp;

/// Error of the conversation; `None` for a good ending.
type Fault = Option<(ErrorCode, String)>;

impl TextWork<'_> {
    /// Keeps what the conversation has left, and moves the result on.
    pub(super) async fn ended(
        &self,
        end: DialogueEnd,
        mut timeline: Vec<TimelineEntry>,
        mut notes: Object,
        mut warnings: Vec<String>,
    ) -> Result<()> {
        let (service, job) = (&self.workshop.service, self.job);
        let (organization, id) = (&job.organization, job.result_id);
        timeline.sort_by_key(|entry| (entry.sample, entry.seq));
        service.store_timeline(organization, id, &timeline).await?;
        notes.extend(languages(&timeline));
        warnings.extend(amiss(&timeline, false));
        if end.began_ms.is_some() {
            let language = judge::language(&notes);
            let fillers = judge::fillers(language, &self.workshop.fillers);
            let transcript = judge::transcript(id, language, &timeline, &fillers);
            service.store_transcript(organization, &transcript).await?;
        }
        let from = self.news(0, 0).await?.status;
        let (fault, by) = verdict(&end);
        let to = next_status(from, fault.as_ref().map(|(code, _)| code));
        let own_faults = judge::own_faults(&timeline, false, None);
        let patch = move |doc: &mut ResultDoc| {
            fill_in(doc, &end, fault, by, notes, warnings);
            doc.body.own_faults = own_faults;
        };
        match to {
            Some(to) => self.advance(from, to, patch).await.map(drop),
            None => service.amend(organization, id, patch).await.map(drop),
        }
    }
}

fn verdict(end: &DialogueEnd) -> (Fault, Option<EndedBy>) {
    match end.reason {
        EndReason::AgentHangup if !end.other_spoke => {
            let text = "The agent ended the conversation before it wrote anything";
            (Some((ErrorCode::AgentHungUpBeforeSpeech, text.to_owned())), Some(EndedBy::Agent))
        }
        EndReason::AgentHangup => (None, Some(EndedBy::Agent)),
        EndReason::Shutdown => {
            (Some((ErrorCode::EngineShutdown, "The engine was stopped during the conversation".to_owned())), None)
        }
        EndReason::Fault => {
            let lost = || (ErrorCode::InternalError, "The conversation could not go on".to_owned());
            let fault = end.fault.as_ref().map(|(code, message)| (ErrorCode::from(*code), message.clone()));
            (Some(fault.unwrap_or_else(lost)), None)
        }
        EndReason::Cancelled => (None, None),
        _ => (None, Some(EndedBy::User)),
    }
}

/// Returns the next status of a result when its conversation is over; `None`: it stays as it is.
fn next_status(from: ResultStatus, code: Option<&ErrorCode>) -> Option<ResultStatus> {
    let to = match (from, code) {
        (ResultStatus::Running, Some(code)) => match code.status(true) {
            status @ (ResultStatus::SystemError | ResultStatus::NoAnswer) => status,
            // It took place: what there is of it is judged, and the code says how it ends.
            _ => ResultStatus::ConversationEnded,
        },
        (ResultStatus::Running, None) => ResultStatus::ConversationEnded,
        (ResultStatus::Dispatched, Some(code)) => code.status(false),
        (ResultStatus::Dispatched, None) => ResultStatus::Cancelled,
        _ => return None,
    };
    Some(to)
}

fn fill_in(
    doc: &mut ResultDoc,
    end: &DialogueEnd,
    fault: Fault,
    by: Option<EndedBy>,
    notes: Object,
    warnings: Vec<String>,
) {
    doc.inbox.close();
    // Nothing is judged or private where nobody has written.
    doc.private &= end.began_ms.is_some();
    let body = &mut doc.body;
    if let Some((code, message)) = fault {
        body.fail(code, message);
    }
    body.end_time = Some(Timestamp(end.ended_ms));
    body.end_reason = Some(end.reason.as_str().to_owned());
    body.conversation_ended_by = by;
    if let Some(began_ms) = end.began_ms {
        let duration_ms = end.ended_ms - began_ms;
        body.duration_ms = Some(duration_ms);
        body.duration = Some((duration_ms + 500) / 1000);
    }
    for (key, value) in notes {
        doc.note(&key, value);
    }
    doc.warn_all(warnings);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::error_code::{Platform, PlatformFault};

    #[test]
    fn where_results_go() {
        use ResultStatus::*;
        for (from, code, expect) in [
            (Running, None, Some(ConversationEnded)),
            (Running, Some(ErrorCode::HttpWebhookFailed), Some(ConversationEnded)),
            (Running, Some(ErrorCode::Platform(Platform::P12, PlatformFault::AuthFailed)), Some(ConversationEnded)),
            (Running, Some(ErrorCode::EngineShutdown), Some(SystemError)),
            (Running, Some(ErrorCode::AgentHungUpBeforeSpeech), Some(NoAnswer)),
            (Dispatched, Some(ErrorCode::HttpWebhookFailed), Some(NoConnection)),
            (
                Dispatched,
                Some(ErrorCode::Platform(Platform::P12, PlatformFault::SessionSetupFailed)),
                Some(NoConnection),
            ),
            (Dispatched, None, Some(Cancelled)),
            (Cancelled, None, None),
        ] {
            let to = next_status(from, code.as_ref());
            assert_eq!(to, expect, "{from:?} {code:?}");
            assert!(to.is_none_or(|to| from.may_become(to)), "{from:?} {code:?}");
        }
    }
}
