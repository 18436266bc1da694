//! Events of a result as server-sent events (WHATWG HTML, section 9.2): first all past ones, then each new one, and
//! `end` after the terminal status. Events of a running call come from its feed, those of a finished one from the
//! stored timeline; a call never waits for a watcher.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, stream};
use ringer_base::error::{Error, Result};
use ringer_model::status::ResultStatus;
use ringer_store::events::Feed;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::endpoint::Ctx;

/// Time between looks at the store when nothing announces a change.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// Looks without news after which a comment keeps the connection open: 15 s.
const QUIET_LOOKS: u32 = 5;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Streams the events of a result from the one after `Last-Event-ID`.
///
/// # Errors
/// There is no such result.
pub(crate) async fn stream(ctx: Ctx, result_id: i64) -> Result<Response> {
    let mut clock = interval(LOOK_EVERY);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let record = ctx.service.runs().result(&ctx.caller, result_id).await?;
    if is_under_way(record.body.status) {
        ctx.service.conversations().check_watchable(result_id).await?;
    }
    let feed = match record.body.status.is_terminal() {
        true => ctx.service.feed(result_id),
        false => ctx.service.conversations().watch(result_id),
    };
    let mut watch = Watch {
        attempt: 0,
        after_seq: last_seen(&ctx.headers),
        changes: feed.as_ref().map(|feed| feed.changes()),
        feed,
        fed: 0,
        ctx,
        result_id,
        states: 0,
        away: None,
        ready: VecDeque::new(),
        quiet: 0,
        over: false,
        clock,
    };
    watch.look().await?;
    let pieces = stream::unfold(watch, |mut watch| async move {
        let piece = watch.next().await?;
        Some((Ok(piece), watch))
    });
    Ok(event_stream(pieces))
}

/// Returns the answer that sends events as they come.
pub(super) fn event_stream(events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static) -> Response {
    let mut response = Sse::new(events).into_response();
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// Returns the sequence number after which the watcher wants to continue; -1: from the start.
pub(super) fn last_seen(headers: &HeaderMap) -> i64 {
    let id = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok()?.trim().parse().ok());
    id.unwrap_or(-1)
}

/// One watcher of one result.
struct Watch {
    ctx: Ctx,
    result_id: i64,
    /// Attempt that is watched; 0: not known yet.
    attempt: i64,
    /// Sequence number of its last event that was sent.
    after_seq: i64,
    /// Feed of the running call; `None`: none is running here.
    feed: Option<Arc<Feed>>,
    /// Number of events of the feed that were read.
    fed: usize,
    changes: Option<watch::Receiver<u64>>,
    /// Number of states that were sent.
    states: usize,
    /// Reason for which the engine with the call is not heard, as it was sent last.
    away: Option<String>,
    ready: VecDeque<Event>,
    quiet: u32,
    over: bool,
    clock: Interval,
}

impl Watch {
    /// Returns the next event to send; `None` after the end.
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(piece) = self.ready.pop_front() {
                self.quiet = 0;
                return Some(piece);
            }
            if self.over {
                return None;
            }
            tokio::select! {
                () = self.ctx.stopping.cancelled() => return None,
                _ = self.clock.tick() => self.quiet += 1,
                () = changed(&mut self.changes) => {}
            }
            // A result that was deleted meanwhile has no more events.
            self.look().await.ok()?;
            if self.ready.is_empty() && self.quiet >= QUIET_LOOKS {
                self.ready.push_back(still_here());
            }
        }
    }

    /// Queues the changes since the last look.
    async fn look(&mut self) -> Result<()> {
        self.ctx.service.library().check_key(&self.ctx.caller).await?;
        let record = self.ctx.service.runs().result(&self.ctx.caller, self.result_id).await?;
        let states = &record.body.status_history;
        for state in states.iter().skip(self.states) {
            self.ready.push_back(piece("status", None, &json!({ "status": state.status, "at": state.at })));
        }
        self.states = states.len();
        self.take_fed();
        self.follow(record.body.attempt);
        self.tell_away(record.body.status).await;
        if record.body.status.is_terminal() {
            self.take_stored().await?;
            self.ready.push_back(piece("end", None, &json!({})));
            self.over = true;
        } else if self.fed == 0 {
            self.take_stored().await?;
        }
        Ok(())
    }

    /// Queues the notice that the engine with the call cannot be reached, once until it is.
    async fn tell_away(&mut self, status: ResultStatus) {
        let away = match is_under_way(status) {
            true => self.away_now().await,
            false => None,
        };
        if let Some(why) = away.as_ref().filter(|_| away != self.away) {
            self.ready.push_back(piece("engine_unreachable", None, &json!({ "detail": why })));
        }
        self.away = away;
    }

    /// Returns why the engine with the call is not heard; `None`: it is, or the call is here.
    async fn away_now(&self) -> Option<String> {
        // A call that has begun since on another engine is told of by none where there is no bus.
        match self.ctx.service.conversations().check_watchable(self.result_id).await {
            Err(Error::NotReachable(why)) => Some(why),
            _ => self.feed.as_ref()?.away(),
        }
    }

    /// Restarts the numbering when a later attempt begins.
    fn follow(&mut self, attempt: i64) {
        if self.attempt != 0 && attempt > self.attempt {
            self.after_seq = -1;
        }
        self.attempt = self.attempt.max(attempt);
    }

    /// Queues the events that the call has announced since.
    fn take_fed(&mut self) {
        let (events, fed) = self.feed.as_ref().map(|feed| feed.events_from(self.fed)).unwrap_or_default();
        self.fed = self.fed.max(fed);
        for event in events {
            self.follow(event.attempt);
            if event.seq.is_none_or(|seq| seq > self.after_seq) {
                self.ready.push_back(piece(&event.event, event.seq, &event.data));
            }
            self.after_seq = self.after_seq.max(event.seq.unwrap_or(self.after_seq));
        }
    }

    /// Queues the stored events, in order of their sequence numbers.
    async fn take_stored(&mut self) -> Result<()> {
        let timeline = match self.ctx.service.conversations().timeline(&self.ctx.caller, self.result_id).await {
            Ok(timeline) => timeline.events,
            Err(Error::NotAvailable(_)) => return Ok(()),
            Err(error) => return Err(error),
        };
        let Value::Array(mut events) = timeline else { return Ok(()) };
        events.sort_by_key(|event| event["seq"].as_i64());
        for event in events {
            let Some(seq) = event["seq"].as_i64().filter(|seq| *seq > self.after_seq) else { continue };
            let name = event["event"].as_str().unwrap_or("event").to_owned();
            self.ready.push_back(piece(&name, Some(seq), &event));
            self.after_seq = seq;
        }
        Ok(())
    }
}

/// True while a call of a result is made or held.
fn is_under_way(status: ResultStatus) -> bool {
    matches!(status, ResultStatus::Dispatched | ResultStatus::Running)
}

/// Completes when the feed has something new; never without a feed.
pub(super) async fn changed(changes: &mut Option<watch::Receiver<u64>>) {
    let has_feed = match changes {
        Some(changes) => changes.changed().await.is_ok(),
        None => false,
    };
    if !has_feed {
        std::future::pending::<()>().await;
    }
}

/// Returns one server-sent event with a name and JSON data.
pub(super) fn piece(event: &str, id: Option<i64>, data: &dyn std::fmt::Display) -> Event {
    // The crate panics at a name of several lines.
    let named = Event::default().event(event.replace(['\r', '\n'], " "));
    let numbered = match id {
        Some(id) => named.id(id.to_string()),
        None => named,
    };
    numbered.data(data.to_string())
}

/// Returns a comment, which keeps a quiet connection open.
pub(super) fn still_here() -> Event {
    Event::default().comment("still here")
}

#[cfg(test)]
mod tests {
    use axum::body::to_bytes;

    use super::*;

    #[tokio::test]
    async fn events_are_framed() {
        for (event, expect) in [
            (piece("status", None, &json!({ "at": 1 })), "event: status\ndata: {\"at\":1}\n\n"),
            (piece("end", Some(7), &"{}"), "event: end\nid: 7\ndata: {}\n\n"),
            (piece("a\nb", Some(-1), &"1\n2"), "event: a b\nid: -1\ndata: 1\ndata: 2\n\n"),
            (still_here(), ": still here\n\n"),
        ] {
            let response = event_stream(stream::iter([Ok(event)]));
            assert_eq!(response.headers()["content-type"], "text/event-stream");
            assert_eq!(response.headers()["cache-control"], "no-store");
            let body = to_bytes(response.into_body(), 1000).await.expect("it ends");
            assert_eq!(body, expect);
        }
    }
}
