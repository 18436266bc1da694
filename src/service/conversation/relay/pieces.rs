//! Messages between engines about conversations: events by pieces, and orders.

use ringer_base::error::{Error, Result};
use ringer_media::call::EndReason;
use ringer_store::events::{Added, Feed, FeedEvent};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

/// Longest piece in bytes, without what is around its events.
const PIECE_BYTES: usize = 512 << 10;

/// Longest part of an event that fits no piece. Written as a text, JSON grows to twice its length at most.
const PART_BYTES: usize = 240 << 10;

/// Bytes of an event beside its name and data, at most.
const AROUND_EVENT: usize = 100;

/// Events of a feed in their order, or the notice that there are such.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Piece {
    /// Identifier of the feed, in which places are counted.
    pub feed: Uuid,
    /// Attempt of its last event.
    pub attempt: i64,
    /// Place up to which a watcher has to have everything before.
    pub from: usize,
    /// Place up to which a watcher has everything after.
    pub next: usize,
    /// Number of events that the feed has been given.
    pub added: usize,
    pub events: Vec<Sent>,
    /// Part of the event at `next`, which is too long for a piece.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
}

/// An event of a piece.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Sent {
    pub place: usize,
    pub attempt: i64,
    pub seq: Option<i64>,
    pub event: String,
    pub data: Box<RawValue>,
}

/// Part of one event.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Part {
    pub attempt: i64,
    pub seq: Option<i64>,
    pub event: String,
    /// Byte of the event's data at which the text begins.
    pub at: usize,
    pub text: String,
    /// Length of the data in bytes.
    pub bytes: usize,
}

/// Request to the engine that holds a conversation.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// End it for this reason.
    HangUp { result_id: i64, reason: String },
    /// Tell its events from the `from`-th on, of the feed of this identifier; `None`: of the one that there is.
    Journal { result_id: i64, feed: Option<Uuid>, from: usize, at: usize },
}

/// Answer to an order.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// The conversation was asked to end; false: it is not held there.
    Asked(bool),
    /// Events from the place that was asked for.
    Events(Piece),
    /// There is no such feed any more.
    Gone,
}

/// Returns the piece of a feed that begins at a place, and at a byte of the data of an event that fits no piece.
pub(super) fn piece_of(feed: &Feed, from: usize, at: usize) -> Result<Piece> {
    let (own, added) = feed.own_from(from);
    let attempt = feed.own_attempt().unwrap_or(0);
    let mut piece = Piece { feed: feed.id(), attempt, from, next: added, added, events: Vec::new(), part: None };
    let mut bytes = 0;
    for Added { place, event, .. } in own {
        let length = event.data.len() + event.event.len() + AROUND_EVENT;
        if piece.events.is_empty() && length > PIECE_BYTES {
            piece.next = place;
            piece.part = Some(part_of(&event, at)?);
            return Ok(piece);
        }
        if bytes + length > PIECE_BYTES {
            piece.next = place;
            return Ok(piece);
        }
        bytes += length;
        let data = RawValue::from_string(event.data.to_string()).map_err(Error::internal)?;
        let (attempt, seq) = (event.attempt, event.seq);
        piece.events.push(Sent { place, attempt, seq, event: event.event.clone(), data });
    }
    Ok(piece)
}

/// Returns the notice of what a feed has, without events.
pub(super) fn notice_of(feed: &Feed) -> Piece {
    let (_, added) = feed.own_from(usize::MAX);
    let attempt = feed.own_attempt().unwrap_or(0);
    Piece { feed: feed.id(), attempt, from: added, next: added, added, events: Vec::new(), part: None }
}

fn part_of(event: &FeedEvent, at: usize) -> Result<Part> {
    let rest = event.data.get(at..).ok_or_else(|| Error::internal("a part begins within a character"))?;
    let text = rest[..rest.floor_char_boundary(PART_BYTES)].to_owned();
    let (attempt, seq, bytes) = (event.attempt, event.seq, event.data.len());
    Ok(Part { attempt, seq, event: event.event.clone(), at, text, bytes })
}

/// Returns the reason of this name, of those that others may end a conversation for.
pub(super) fn reason_named(name: &str) -> Option<EndReason> {
    [EndReason::ApiHangup, EndReason::Cancelled, EndReason::UsageLimit].into_iter().find(|one| one.as_str() == name)
}

#[cfg(test)]
mod tests {
    use ringer_store::events::Feeds;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn pieces_are_short_and_together_they_are_everything() {
        let feed = Feeds::default().of(1);
        let long = "ä\"\\".repeat(200_000);
        for n in 0..2000 {
            let text = if n == 700 { long.clone() } else { "x".repeat(900) };
            feed.add(FeedEvent::new(1, Some(n), "turn.ended", &json!({ "seq": n, "text": text })));
        }
        let (mut from, mut at, mut whole, mut seen) = (0, 0, String::new(), Vec::new());
        while from < 2000 {
            let piece = piece_of(&feed, from, at).expect("it is cut");
            let text = serde_json::to_string(&Answer::Events(piece)).expect("JSON");
            assert!(text.len() <= PIECE_BYTES + 1000, "{}", text.len());
            let Answer::Events(piece) = serde_json::from_str(&text).expect("JSON") else { panic!("events") };
            assert_eq!((piece.feed, piece.from, piece.added, piece.attempt), (feed.id(), from, 2000, 1));
            for sent in piece.events {
                let data: Value = serde_json::from_str(sent.data.get()).expect("JSON");
                assert_eq!((data["seq"].as_i64(), sent.place as i64), (sent.seq, sent.seq.expect("a number")));
                seen.push(sent.place);
            }
            (from, at) = (piece.next, 0);
            if let Some(part) = piece.part {
                assert_eq!(part.at, whole.len());
                whole.push_str(&part.text);
                at = whole.len();
                if whole.len() == part.bytes {
                    let data: Value = serde_json::from_str(&whole).expect("JSON");
                    assert_eq!(data["text"], long);
                    seen.push(from);
                    (from, at) = (from + 1, 0);
                }
            }
        }
        assert_eq!(seen, (0..2000).collect::<Vec<_>>());
        let notice = notice_of(&feed);
        assert_eq!((notice.from, notice.next, notice.added, notice.events.len()), (2000, 2000, 2000, 0));
    }

    #[test]
    fn reasons_have_names() {
        assert_eq!(reason_named("api_hangup"), Some(EndReason::ApiHangup));
        assert_eq!(reason_named("agent_hangup"), None);
    }
}
