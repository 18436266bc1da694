//! The events of a result as server-sent events (WHATWG HTML, section 9.2): first all past ones, then each new one, `end`
//! after the last state. It looks at what is stored; nothing that a call does waits for a watcher.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::CACHE_CONTROL;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use futures_util::stream;
use serde_json::{Value, json};
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::api::answer::{CONTENT_TYPES, respond};
use crate::api::endpoint::Ctx;
use crate::error::{Error, Result};

/// How often the store is looked at while a call runs.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Looks without news after which a comment keeps the connection open: 15 s.
const QUIET_LOOKS: u32 = 30;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Streams the events of a result from the one after `Last-Event-ID`.
///
/// # Errors
/// When there is no such result.
pub async fn stream(ctx: Ctx, result_id: i64) -> Result<Response> {
    let mut clock = interval(LOOK_EVERY);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watch = Watch {
        after_seq: last_seen(&ctx.headers),
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
    let mut response = respond(StatusCode::OK, CONTENT_TYPES[2], Body::from_stream(pieces));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The sequence number after which the watcher wants to go on; before the first when it has none.
fn last_seen(headers: &HeaderMap) -> i64 {
    let id = headers.get(LAST_EVENT_ID).and_then(|id| id.to_str().ok()?.trim().parse().ok());
    id.unwrap_or(-1)
}

/// One watcher of one result.
struct Watch {
    ctx: Ctx,
    result_id: i64,
    /// The last event that was sent.
    after_seq: i64,
    /// States that were sent.
    states: usize,
    ready: VecDeque<String>,
    quiet: u32,
    over: bool,
    clock: Interval,
}

impl Watch {
    /// What is sent next; `None` after the end.
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
                _ = self.clock.tick() => {}
            }
            // A result that was deleted meanwhile has no more events.
            self.look().await.ok()?;
            self.quiet += 1;
            if self.ready.is_empty() && self.quiet >= QUIET_LOOKS {
                self.ready.push_back(": still here\n\n".to_owned());
            }
        }
    }

    /// Takes what is new since the last look.
    async fn look(&mut self) -> Result<()> {
        let record = self.ctx.service.result(&self.ctx.caller, self.result_id).await?;
        let states = &record.body.status_history;
        for state in states.iter().skip(self.states) {
            self.ready.push_back(piece("status", None, &json!({ "status": state.status, "at": state.at })));
        }
        self.states = states.len();
        for event in self.new_events().await? {
            let seq = event["seq"].as_i64().unwrap_or_default();
            let name = event["event"].as_str().unwrap_or("event").to_owned();
            self.ready.push_back(piece(&name, Some(seq), &event));
            self.after_seq = seq;
        }
        if record.body.status.is_terminal() {
            self.ready.push_back(piece("end", None, &json!({})));
            self.over = true;
        }
        Ok(())
    }

    async fn new_events(&self) -> Result<Vec<Value>> {
        let timeline = match self.ctx.service.timeline(&self.ctx.caller, self.result_id).await {
            Ok(timeline) => timeline,
            Err(Error::NotAvailable(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let Value::Array(events) = timeline.events else { return Ok(Vec::new()) };
        Ok(events.into_iter().filter(|event| event["seq"].as_i64().is_some_and(|seq| seq > self.after_seq)).collect())
    }
}

fn piece(event: &str, id: Option<i64>, data: &Value) -> String {
    let id = id.map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("event: {event}\n{id}data: {data}\n\n")
}
