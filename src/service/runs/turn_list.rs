//! The turns of a conversation, also of one that is going on.

use ringer_base::error::{Error, Result};
use ringer_engine::TimelineEntry;
use ringer_judge as judge;
use ringer_judge::{Facts, TurnItem, TurnOverlap, overlaps, turn_list};
use ringer_model::result::{ResultBody, ResultDoc, find_note};
use ringer_model::status::ResultStatus;
use ringer_model::transcript::Transcript;
use ringer_store::events::FeedEvent;
use ringer_store::{Row, Session};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Runs;
use crate::Caller;
use crate::conversation::artifacts::is_hidden;

/// The turns of both sides, by onset.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TurnList {
    /// Id of the result.
    pub simulation_result_id: i64,
    /// Samples a second of all positions: 16000.
    pub sample_rate: i64,
    /// True while the conversation goes on: later events may still change the last turns.
    pub live: bool,
    /// Number of all turns, also of those that were not asked for.
    pub total: i64,
    /// Turns of both sides, by onset.
    pub turns: Vec<TurnItem>,
    /// Stretches of the whole conversation in which both sides speak, by onset; those that count as interruptions are
    /// told.
    pub overlaps: Vec<TurnOverlap>,
}

impl TurnList {
    /// Returns the list without the turns before this one.
    pub fn since(mut self, from: i64) -> TurnList {
        self.turns.retain(|turn| turn.index >= from);
        self
    }
}

impl Runs {
    /// Returns the turns of a conversation with what is measured of each; while it goes on, those so far.
    ///
    /// # Errors
    /// [`Error::NotAvailable`] where nothing was said yet, or what is private is still in it.
    pub async fn turn_list(&self, caller: &Caller, result_id: i64) -> Result<TurnList> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        let none = || Error::NotAvailable("Turns not available".into());
        if is_hidden(&row.doc, caller) {
            return Err(none());
        }
        let body = row.doc.body;
        let (stored, transcript) = load_texts(&mut db, result_id).await?;
        drop(db);
        let live = stored.is_none();
        let events = match stored {
            Some(events) => events,
            None => self.live_events(result_id, &body).await?.ok_or_else(none)?,
        };
        let moments = judge::moments(&events);
        let turns = turns_of(result_id, &body, &moments, transcript);
        let (total, overlaps) = (turns.len() as i64, overlaps(&moments, &facts_of(&body)));
        Ok(TurnList { simulation_result_id: result_id, sample_rate: 16_000, live, total, turns, overlaps })
    }

    /// Returns the events of a running conversation so far; `None`: none has happened, or it does not run. What was not
    /// kept of one that is over is not shown out of memory either.
    ///
    /// # Errors
    /// [`Error::NotReachable`]: it runs on an engine that cannot be reached.
    pub(crate) async fn live_events(&self, result_id: i64, body: &ResultBody) -> Result<Option<Value>> {
        if !matches!(body.status, ResultStatus::Dispatched | ResultStatus::Running) {
            return Ok(None);
        }
        let own = self.live.feed(result_id).map(|feed| feed.own_from(0).0).unwrap_or_default();
        let here: Vec<Value> = own.iter().filter_map(|added| moment(&added.event, body.attempt)).collect();
        let events = match here.is_empty() {
            false => here,
            true => {
                let elsewhere = self.conversations.events_elsewhere(result_id).await?;
                elsewhere.iter().filter_map(|event| moment(event, body.attempt)).collect()
            }
        };
        Ok((!events.is_empty()).then_some(Value::Array(events)))
    }
}

/// Returns the turns of a conversation with these events and, once it has them, these words.
pub(crate) fn turns_of(
    result_id: i64,
    body: &ResultBody,
    moments: &[TimelineEntry],
    transcript: Option<Transcript>,
) -> Vec<TurnItem> {
    let entries = match transcript {
        Some(transcript) => transcript.entries,
        None => judge::transcript(result_id, judge::language(&body.metadata), moments, &[]).entries,
    };
    turn_list(moments, &facts_of(body), &entries)
}

fn facts_of(body: &ResultBody) -> Facts {
    Facts { extension_digits: extension_digits(body), ..Facts::default() }
}

/// Returns the turns of a conversation that is over; `None`: it is not, or what is private is hidden from the caller.
pub(super) async fn kept_turns(
    db: &mut Session,
    caller: &Caller,
    row: &Row<ResultDoc>,
) -> Result<Option<Vec<TurnItem>>> {
    if is_hidden(&row.doc, caller) {
        return Ok(None);
    }
    let (Some(events), transcript) = load_texts(db, row.id).await? else { return Ok(None) };
    let moments = judge::moments(&events);
    Ok(Some(turns_of(row.id, &row.doc.body, &moments, transcript)))
}

/// Returns the events and the transcript that are kept of a result.
async fn load_texts(db: &mut Session, result_id: i64) -> Result<(Option<Value>, Option<Transcript>)> {
    Ok((db.text("timelines", result_id).await?, db.text("transcripts", result_id).await?))
}

/// Returns an event of an attempt as the timeline has it; `None`: it is of another, or running text.
fn moment(event: &FeedEvent, attempt: i64) -> Option<Value> {
    let is_kept = event.attempt == attempt && event.seq.is_some();
    is_kept.then(|| serde_json::from_str(&event.data).ok()).flatten()
}

/// Returns the number of digits of the extension, which come before the conversation.
fn extension_digits(body: &ResultBody) -> usize {
    let extension = find_note(&body.metadata, "behaviour").and_then(|behaviour| behaviour["extension"].as_str());
    extension.map_or(0, |digits| digits.chars().filter(|digit| *digit != ',').count())
}
