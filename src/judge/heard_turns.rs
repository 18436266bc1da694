//! Turns of the agent that nobody interrupted: where the same turn is shorter in another call, it was cut there.

use ringer_media::call::TimelineEntry;
use ringer_media::frame::PER_MS;
use ringer_media::measure::{self as media, WholeTurn};
use ringer_model::heard_turn::HeardTurn;

use super::measures::{Facts, conversation};
use super::messages;

/// Returns the turns of the agent that nobody interrupted, by which other calls of the run are measured.
pub fn heard_turns(moments: &[TimelineEntry], facts: &Facts) -> Vec<HeardTurn> {
    if messages::are_written(moments) {
        return Vec::new();
    }
    let heard =
        |turn: WholeTurn| HeardTurn { place: turn.place as i64, words: turn.words, length_ms: turn.length / PER_MS };
    media::whole_turns(&conversation(moments, facts)).into_iter().map(heard).collect()
}

/// Returns turns that other calls heard whole, as they are measured by.
pub fn whole_turns(heard: Vec<HeardTurn>) -> Vec<WholeTurn> {
    let whole = |turn: HeardTurn| WholeTurn {
        place: usize::try_from(turn.place).unwrap_or(usize::MAX),
        words: turn.words,
        length: turn.length_ms.clamp(0, i64::MAX / PER_MS) * PER_MS,
    };
    heard.into_iter().map(whole).collect()
}
