//! Events of a result as server-sent events (WHATWG HTML, section 9.2): first all past ones, then each new one, and
//! `end` after the terminal status. Events of a running call come from its feed, those of a finished one from the
//! stored timeline; a call never waits for a watcher.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::api::answer::{EVENTS, respond};
use crate::api::endpoint::Ctx;
use crate::error::{Error, Result};
use crate::events::Feed;

/// Time between looks at the store when nothing announces a change.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// Looks without news after which a comment keeps the connection open: 15 s.
const QUIET_LOOKS: u32 = 5;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Streams the events of a result from the one after `Last-Event-ID`.
///
/// # Errors
/// There is no such result.
pub async fn stream(ctx: Ctx, result_id: i64) -> Result<Response> {
    let mut clock = interval(LOOK_EVERY);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let feed = ctx.service.feed(result_id);
    let mut watch = Watch {
        attempt: 0,
        after_seq: last_seen(&ctx.headers),
        changes: feed.as_ref().map(|feed| feed.changes()),
        feed,
        fed: 0,
        ctx,
        result_id,
        states: 0,
        ready: VecDeque::new(),
        quiet: 0,
        over: false,
        clock,
    };
    watch.look().await?;
    let pieces = stream::unfold(watch, |mut watch| async move {
        let piece = watch.next().await?;
        Some((Ok::<_, Infallible>(Bytes::from(piece)), watch))
    });
    let mut response = respond(StatusCode::OK, EVENTS, Body::from_stream(pieces));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
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
    ready: VecDeque<String>,
    quiet: u32,
    over: bool,
    clock: Interval,
}

impl Watch {
    /// Returns the next piece of the stream; `None` after the end.
    async fn next(&mut self) -> Option<String> {
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
                self.ready.push_back(": still here\n\n".to_owned());
            }
        }
    }

    /// Queues the changes since the last look.
    async fn look(&mut self) -> Result<()> {
        let record = self.ctx.service.result(&self.ctx.caller, self.result_id).await?;
        let states = &record.body.status_history;
        for state in states.iter().skip(self.states) {
            self.ready.push_back(piece("status", None, &json!({ "status": state.status, "at": state.at })));
        }
        self.states = states.len();
        self.take_fed();
        self.follow(record.body.attempt);
        if record.body.status.is_terminal() {
            self.take_stored().await?;
            self.ready.push_back(piece("end", None, &json!({})));
            self.over = true;
        } else if self.fed == 0 {
            self.take_stored().await?;
        }
        Ok(())
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
        let timeline = match self.ctx.service.timeline(&self.ctx.caller, self.result_id).await {
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

/// Returns one server-sent event in its text form.
pub(super) fn piece(event: &str, id: Option<i64>, data: &dyn std::fmt::Display) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("event: {event}\n{id}data: {data}\n\n")
}
