//! Share of the agent's turns that the Digital Human really interrupted, for comparison with the configured
//! probability.

use ringer_media::call::TimelineEntry;
use serde_json::{Value, json};

use super::reading::{self, own_cuts};

/// Turns that last longer count also when they were not cut (1.5 s).
const COUNTS: i64 = 24_000;

/// Returns `{cuts, turns, rate}`: turns of the agent that were cut into, of those that lasted more than 1.5 s or were
/// cut into. `None` when there was none.
pub fn cuts(moments: &[TimelineEntry]) -> Option<Value> {
    let cuts: Vec<i64> = own_cuts(moments).map(|(at, _)| at).collect();
    let (mut turns, mut cut) = (0u32, 0u32);
    for turn in reading::turns(moments).filter(|turn| !turn.written) {
        let was_cut = cuts.iter().any(|at| (turn.from..=turn.end).contains(at));
        turns += u32::from(was_cut || turn.end - turn.from > COUNTS);
        cut += u32::from(was_cut);
    }
    let rate = || (1000.0 * f64::from(cut) / f64::from(turns)).round() / 1000.0;
    (turns > 0).then(|| json!({ "cuts": cut, "turns": turns, "rate": rate() }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::moments;

    fn event(sample: i64, event: &str, side: &str, data: Value) -> Value {
        json!({ "seq": 0, "sample": sample, "event": event, "side": side, "data": data })
    }

    #[test]
    fn short_turns_count_where_they_were_cut() {
        let turn = |from_s: i64, to_s: f64| {
            let to = (to_s * 16_000.0) as i64;
            event(to, "turn.ended", "agent", json!({ "text": "", "from_sample": from_s * 16_000, "end_sample": to }))
        };
        let cut = |at_s: i64, by: &str| event(at_s * 16_000, "barge_in", "dh", json!({ "by": by }));
        let cuts_of = |events: &[Value]| cuts(&moments(&json!(events)));
        assert_eq!(cuts_of(&[turn(1, 2.0)]), None);
        assert_eq!(cuts_of(&[turn(1, 3.0), turn(5, 6.0)]), Some(json!({ "cuts": 0, "turns": 1, "rate": 0.0 })));
        let events = [turn(1, 3.0), cut(6, "dh"), turn(5, 6.2), turn(8, 10.0), cut(9, "agent")];
        assert_eq!(cuts_of(&events), Some(json!({ "cuts": 1, "turns": 3, "rate": 0.333 })));
    }
}
