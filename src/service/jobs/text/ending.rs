//! Records of a written conversation that is over, and the next status of its result.

use ringer_base::error::Result;
use ringer_engine::TimelineEntry;
use ringer_engine::dialogue::DialogueEnd;
use ringer_engine::warnings::timeline_warnings;
use ringer_judge as judge;
use ringer_model::Object;

use super::super::call::languages;
use super::work::TextWork;
use crate::{CallOutcome, Ended};

impl TextWork<'_> {
    /// Keeps what the conversation has left, and moves the result on. The end has the SIP status that refused the last
    /// message, where one did.
    pub(super) async fn finish(
        &self,
        (end, sip_code): (DialogueEnd, Option<u16>),
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
        let mut outcome = CallOutcome::of_dialogue(&end, &timeline, notes, warnings);
        outcome.sip_code = sip_code.map(i64::from);
        let (organization, attempt) = (job.organization.clone(), job.attempt);
        let ended = Ended {
            organization,
            result_id: id,
            attempt,
            connected_at_ms: None,
            timeline,
            transcript,
            outcome,
            effects: Vec::new(),
        };
        Box::pin(service.conversations().store_ended(ended, None)).await
    }
}
