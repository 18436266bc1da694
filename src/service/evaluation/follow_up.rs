//! Text messages that an agent sends after a call: found by their numbers, kept beside the call, and graded once it is
//! evaluated.

use ringer_base::error::Result;
use ringer_judge::{Decision, Trigrams, Unheard};
use ringer_model::Object;
use ringer_model::agent::AgentMode;
use ringer_model::result::ResultDoc;
use ringer_model::status::ResultStatus;
use ringer_model::text::same_number;
use ringer_model::time::Timestamp;
use ringer_model::transcript::Transcript;
use ringer_store::queue::FollowUpJob;
use ringer_store::{Row, Session};
use serde_json::{Value, json};

use super::Evaluations;
use super::inputs::unheard_in;
use super::material::criteria_of;
use crate::conversation::facts::follow_up_messages;
use crate::conversation::inbound_address::stage;
use crate::conversation::privacy::redactor_of;

/// Time after a call in which its messages may come, in milliseconds.
const WINDOW_MS: i64 = 30 * 60_000;
/// Calls that are looked at for one message.
const CALLS_MOST: i64 = 1000;
/// Messages that follow one call.
const MESSAGES_MOST: usize = 100;

/// Messages that followed a call, and the material that they are graded by.
#[derive(Clone, Debug, PartialEq)]
pub struct FollowUp {
    /// All of them, one a line.
    pub text: String,
    /// Criteria of a success; may be empty.
    pub success_criteria: String,
    /// Transcript of the call; `None` if there is none.
    pub transcript: Option<Transcript>,
    /// Turns of the call that were not heard.
    pub unheard: Vec<Unheard>,
    /// Number of the messages.
    count: usize,
}

impl Evaluations {
    /// Takes a message that belongs to no conversation for what follows a call. False: it follows none.
    pub(crate) async fn take_follow_up(&self, from: &str, to: &str, text: &str) -> Result<bool> {
        let now = self.clock.now_ms();
        let recent = self.store.org("").read().await?.recently_ended(now - WINDOW_MS, CALLS_MOST).await?;
        let said = Trigrams::of(text);
        let mut best: Option<(f64, Timestamp, String, i64)> = None;
        for (organization, id) in recent {
            let mut db = self.store.org(&organization).read().await?;
            let Some(row) = db.find::<ResultDoc>(id).await? else { continue };
            let Some(ended) = row.doc.body.end_time.filter(|ended| (now - WINDOW_MS..=now).contains(&ended.0)) else {
                continue;
            };
            if db.is_foreign_number(to).await? || !is_meant(&mut db, &row, from, to).await? {
                continue;
            }
            let transcript: Option<Transcript> = db.text("transcripts", id).await?;
            let alike = transcript.map_or(0.0, |held| said.likeness(&Trigrams::of(&held.known_text())));
            let is_better = best
                .as_ref()
                .is_none_or(|(most, latest, ..)| alike.total_cmp(most).then_with(|| ended.0.cmp(&latest.0)).is_gt());
            if is_better {
                best = Some((alike, ended, organization, id));
            }
        }
        let Some((_, _, organization, id)) = best else { return Ok(false) };
        self.keep_follow_up(&organization, id, from, text).await.map(|()| true)
    }

    async fn keep_follow_up(&self, organization: &str, result_id: i64, from: &str, text: &str) -> Result<()> {
        let now = self.clock.now_ms();
        let mut db = self.store.org(organization).write().await?;
        let Some(mut row) = db.find::<ResultDoc>(result_id).await? else { return Ok(()) };
        let text = match redactor_of(&mut db, &row.doc).await? {
            Some(redactor) => redactor.text(text),
            None => text.to_owned(),
        };
        let mut messages = follow_up_messages(&row.doc);
        if messages.len() >= MESSAGES_MOST || messages.iter().any(|message| message["text"] == text.as_str()) {
            return Ok(());
        }
        messages.push(json!({ "text": text, "from": from, "received_at": Timestamp(now) }));
        row.doc.body.follow_up_sms = Some(grade_note(messages, None, None));
        db.update(row.id, &row.doc, now, None).await?;
        if row.doc.body.status == ResultStatus::Completed {
            self.conversations.ask_for_grade(&mut db, &row).await?;
        }
        db.commit().await?;
        self.live.note_change(result_id);
        Ok(())
    }

    /// Returns the messages that followed a call, for grading; `None` if there are none.
    pub async fn follow_up(&self, job: &FollowUpJob) -> Result<Option<FollowUp>> {
        let mut db = self.store.org(&job.organization).read().await?;
        let Some(row) = db.find::<ResultDoc>(job.result_id).await? else { return Ok(None) };
        let messages = follow_up_messages(&row.doc);
        let Some(stage) = stage(&mut db, &row).await?.filter(|_| !messages.is_empty()) else { return Ok(None) };
        let own = stage.human.follow_up_sms_success_criteria.clone().filter(|own| !own.trim().is_empty());
        let texts: Vec<&str> = messages.iter().filter_map(|message| message["text"].as_str()).collect();
        Ok(Some(FollowUp {
            text: texts.join("\n"),
            success_criteria: own.unwrap_or_else(|| criteria_of(&stage.human, row.doc.body.journey_step)),
            transcript: db.text("transcripts", row.id).await?,
            unheard: unheard_in(&mut db, row.id).await?,
            count: messages.len(),
        }))
    }

    /// Keeps the grade of what followed a call, or why there is none. Another message that came meanwhile is graded
    /// anew.
    pub async fn grade_follow_up(
        &self,
        job: &FollowUpJob,
        graded: &FollowUp,
        grade: std::result::Result<Decision, String>,
    ) -> Result<()> {
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(mut row) = db.find::<ResultDoc>(job.result_id).await? else { return Ok(()) };
        let messages = follow_up_messages(&row.doc);
        if messages.len() != graded.count {
            return Ok(());
        }
        let (success, mut reasoning) = match grade {
            Ok(decision) => (Some(decision.yes), decision.reasoning),
            Err(why) => (None, Some(why)),
        };
        if let (Some(redactor), Some(reasoning)) = (redactor_of(&mut db, &row.doc).await?, &mut reasoning) {
            *reasoning = redactor.text(reasoning);
        }
        row.doc.body.follow_up_sms = Some(grade_note(messages, success, reasoning));
        db.update(row.id, &row.doc, self.clock.now_ms(), None).await?;
        db.commit().await?;
        self.live.note_change(job.result_id);
        Ok(())
    }
}

fn grade_note(messages: Vec<Value>, success: Option<bool>, reasoning: Option<String>) -> Object {
    Object::from_iter([
        ("messages".to_owned(), Value::Array(messages)),
        ("success".to_owned(), json!(success)),
        ("reasoning".to_owned(), json!(reasoning)),
    ])
}

/// True if this call's agent writes from `from`, and its Digital Human called from, or was called on, `to`.
async fn is_meant(db: &mut Session, row: &Row<ResultDoc>, from: &str, to: &str) -> Result<bool> {
    let Some(stage) = stage(db, row).await? else { return Ok(false) };
    let senders = &stage.agent.follow_up_sms_sender_numbers;
    Ok(stage.agent.mode == AgentMode::Voice
        && senders.iter().any(|sender| same_number(sender, from))
        && stage.number().is_some_and(|number| same_number(number, to)))
}
