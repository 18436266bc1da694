//! Records of a written conversation that is over, and the next status of its result.

use super::super::call::languages;
use super::work::TextWork;
use crate::engine::TimelineEntry;
use crate::engine::dialogue::DialogueEnd;
use crate::error::Result;
use crate::judge;
use crate::judge::warnings::timeline_warnings;
use crate::model::Object;
use crate::service::{CallOutcome, Ended};

impl TextWork<'_> {
    /// Keeps what the conversation has left, and moves the result on.
    pub(super) async fn finish(
        &self,
        end: DialogueEnd,
        mut timeline: Vec<TimelineEntry>,
        mut notes: Object,
        mut warnings: Vec<String>,
    ) -> Result<()> {
        let (service, job) = (&self.workshop.service, self.job);
        let id = job.result_id;
        timeline.sort_by_key(|entry| (entry.sample, entry.seq));
        notes.extend(languages(&timeline));
        warnings.extend(timeline_warnings(&timeline, false));
        let transcript = end.began_ms.is_some().then(|| {
            let language = judge::language(&notes);
            let fillers = judge::fillers(language, &self.workshop.fillers);
            judge::transcript(id, language, &timeline, &fillers)
        });
        let outcome = CallOutcome::of_dialogue(&end, &timeline, notes, warnings);
        let (organization, attempt) = (job.organization.clone(), job.attempt);
        let ended =
            Ended { organization, result_id: id, attempt, connected_at_ms: None, timeline, transcript, outcome };
        Box::pin(service.conversations().store_ended(ended, None)).await
    }
}
