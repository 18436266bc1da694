//! Records of a written conversation that is over, and the next status of its result.

use super::super::call::languages;
use super::TextWork;
use crate::engine::TimelineEntry;
use crate::engine::dialogue::DialogueEnd;
use crate::error::Result;
use crate::judge;
use crate::judge::warnings::timeline_warnings;
use crate::model::Object;
use crate::service::CallOutcome;

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
        let (organization, id) = (&job.organization, job.result_id);
        timeline.sort_by_key(|entry| (entry.sample, entry.seq));
        service.store_timeline(organization, id, &timeline).await?;
        notes.extend(languages(&timeline));
        warnings.extend(timeline_warnings(&timeline, false));
        if end.began_ms.is_some() {
            let language = judge::language(&notes);
            let fillers = judge::fillers(language, &self.workshop.fillers);
            let transcript = judge::transcript(id, language, &timeline, &fillers);
            service.store_transcript(organization, &transcript).await?;
        }
        let outcome = CallOutcome::of_dialogue(&end, &timeline, notes, warnings);
        service.finish(organization, id, outcome).await.map(drop)
    }
}
