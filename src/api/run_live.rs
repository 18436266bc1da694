//! The changes of a run as server-sent events: first all results as they are, then each that changes, `end` after the
//! last. Each event's id is the time of the change; `Last-Event-ID` goes on from there.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use axum::response::Response;
use axum::response::sse::Event;
use futures_util::stream;
use ringer_base::error::Result;
use ringer_model::status::RunStatus;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::endpoint::Ctx;
use crate::live::{changed, event_stream, last_seen, piece, still_here};

/// Time between looks at the store when nothing announces a change.
const LOOK_EVERY: Duration = Duration::from_secs(3);
/// Least time between two looks: many results may change at once.
const PAUSE: Duration = Duration::from_millis(150);
/// Looks without news after which a comment keeps the connection open: 15 s.
const QUIET_LOOKS: u32 = 5;

/// Streams the changes of a run.
///
/// # Errors
/// When there is no such run.
pub(super) async fn stream(ctx: Ctx, run_id: i64) -> Result<Response> {
    let mut clock = interval(LOOK_EVERY);
    clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut watch = RunWatch {
        since_ms: last_seen(&ctx.headers).max(0),
        changes: ctx.service.runs().any_change(),
        ctx,
        run_id,
        sent: BTreeMap::new(),
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

/// One watcher of one run.
struct RunWatch {
    ctx: Ctx,
    run_id: i64,
    /// Time of the latest change that was sent, milliseconds since 1970.
    since_ms: i64,
    changes: Option<watch::Receiver<u64>>,
    /// Values that were sent last, of the run (0) and of each result.
    sent: BTreeMap<i64, Value>,
    ready: VecDeque<Event>,
    quiet: u32,
    over: bool,
    clock: Interval,
}

impl RunWatch {
    /// The next piece of the stream; `None` after the end.
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
                // Results often change together: the pause reports them at once, and limits how often a run is read.
                () = changed(&mut self.changes) => tokio::time::sleep(PAUSE).await,
            }
            // A run that was deleted meanwhile has no more changes.
            self.look().await.ok()?;
            if self.ready.is_empty() && self.quiet >= QUIET_LOOKS {
                self.ready.push_back(still_here());
            }
        }
    }

    /// Queues the changes since the last look; a change of the same millisecond is read again, and sent once.
    async fn look(&mut self) -> Result<()> {
        self.ctx.service.library().check_key(&self.ctx.caller).await?;
        let changes = self.ctx.service.runs().run_changes(&self.ctx.caller, self.run_id, self.since_ms).await?;
        for result in &changes.results {
            self.since_ms = self.since_ms.max(result.updated_at.0);
            self.tell("result", result.id, json!(result));
        }
        let is_over = changes.run.status == RunStatus::Completed;
        self.tell("run", 0, json!(changes.run));
        if is_over {
            self.ready.push_back(piece("end", None, &json!({})));
            self.over = true;
        }
        Ok(())
    }

    fn tell(&mut self, name: &str, key: i64, value: Value) {
        if self.sent.get(&key) != Some(&value) {
            self.ready.push_back(piece(name, Some(self.since_ms), &value));
            self.sent.insert(key, value);
        }
    }
}
