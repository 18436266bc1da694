//! The turns of a run as rows: one for each turn of each conversation that is over.

use ringer_base::error::Result;
use ringer_media::frame::PER_MS;
use ringer_model::result::ResultDoc;
use ringer_store::{Row, Session};
use serde_json::{Value, json};

use super::columns::{Column, Kind, Table};
use crate::Caller;
use crate::runs::turn_list::kept_turns;

/// Columns of a turn, the same for every run.
const COLUMNS: [(&str, Kind); 21] = [
    ("simulation_run_id", Kind::Integer),
    ("simulation_result_id", Kind::Integer),
    ("digital_human_id", Kind::Integer),
    ("digital_human_name", Kind::Text),
    ("repetition", Kind::Integer),
    ("status", Kind::Text),
    ("outcome", Kind::Text),
    ("index", Kind::Integer),
    ("speaker", Kind::Text),
    ("from_sample", Kind::Integer),
    ("to_sample", Kind::Integer),
    ("from_ms", Kind::Number),
    ("to_ms", Kind::Number),
    ("text", Kind::Text),
    ("text_missing", Kind::Text),
    ("interrupted", Kind::Truth),
    ("latency_ms", Kind::Number),
    ("latency_from_sample", Kind::Integer),
    ("latency_from_turn", Kind::Integer),
    ("overlap_ms", Kind::Number),
    ("interruptions", Kind::Integer),
];

/// Returns the turns of the results of a run, by result and onset. `callers` has name and repetition of each. A result
/// has none while it goes on, where nothing was said, or where what is private is hidden from the caller.
pub(super) async fn table(
    db: &mut Session,
    caller: &Caller,
    run_id: i64,
    results: &[Row<ResultDoc>],
    callers: &[(String, i64)],
) -> Result<Table> {
    let mut rows = Vec::new();
    for (result, (name, repetition)) in results.iter().zip(callers) {
        let body = &result.doc.body;
        for turn in kept_turns(db, caller, result).await?.unwrap_or_default() {
            let interruptions = turn.overlaps.iter().filter(|overlap| overlap.counted).count();
            rows.push(vec![
                json!(run_id),
                json!(result.id),
                json!(body.digital_human_id),
                json!(name),
                json!(repetition),
                json!(body.status),
                json!(body.outcome),
                json!(turn.index),
                json!(turn.speaker),
                json!(turn.from_sample),
                json!(turn.to_sample),
                ms(turn.from_sample),
                ms(turn.to_sample),
                json!(turn.text),
                json!(turn.text_missing),
                json!(turn.interrupted),
                json!(turn.latency_ms),
                json!(turn.latency_from_sample),
                json!(turn.latency_from_turn),
                json!(turn.overlap_ms),
                json!(interruptions),
            ]);
        }
    }
    Ok(Table { columns: COLUMNS.iter().map(|(name, kind)| Column::of(name, *kind)).collect(), rows })
}

/// Returns a position in milliseconds from connect.
fn ms(sample: i64) -> Value {
    json!(sample as f64 / PER_MS as f64)
}
