//! Traces on their way to the collector: made of results that are final, kept in memory up to a limit, and sent in
//! batches. A collector that is away loses spans beyond that limit and nothing else. It is told of once, and again only
//! after it was back.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use ringer_base::error::{Error, Result};
use ringer_engine::EffectTime;
use ringer_judge as judge;
use ringer_model::language_model::ModelKind;
use ringer_model::result::ResultDoc;
use ringer_model::status::ResultStatus;
use ringer_model::transcript::Transcript;
use ringer_provider::otlp::{Collector, NotTaken, Span};
use ringer_store::{Row, Traced};
use serde_json::Value;
use tokio::sync::Mutex as Turn;

use super::Telemetry;
use super::tree;
use crate::Settings;
use crate::conversation::trace_context::{EFFECTS, read_trace};
use crate::runs::turn_list::turns_of;

/// Most spans that wait for the collector.
const MOST_SPANS: usize = 20_000;
/// Most spans in one request.
const BATCH: usize = 512;
/// Milliseconds that spans wait for others to go with them.
const GATHER_MS: i64 = 500;
/// Milliseconds between two attempts at a collector that is away.
const AGAIN_MS: i64 = 5000;
/// Longest wait in milliseconds that a collector may ask for.
const MOST_WAIT_MS: i64 = 60_000;
/// Milliseconds between two looks at a result whose words are still to be redacted, and the number of looks.
const REDACTED_MS: i64 = 1000;
const LOOKS: u32 = 300;
/// Time for the last spans when the engine ends.
const LAST_PATIENCE: Duration = Duration::from_secs(3);

/// Spans that wait for the collector, and what became of the others.
pub(crate) struct SpanQueue {
    /// Collector; `None`: no traces are sent.
    collector: Option<Collector>,
    waiting: Mutex<Waiting>,
    /// Held by whoever sends.
    turn: Turn<()>,
    counts: Counts,
}

#[derive(Default)]
struct Waiting {
    spans: VecDeque<Span>,
    /// Results whose words are still to be redacted, with the time of the next look and the number of looks.
    private: VecDeque<(i64, u32, Traced)>,
    /// Time before which nothing is sent, milliseconds since 1970.
    not_before_ms: i64,
}

#[derive(Debug, Default)]
struct Counts {
    sent: AtomicU64,
    dropped: AtomicU64,
    failed: AtomicU64,
    is_away: AtomicBool,
}

/// Spans by what became of them, and the state of the collector.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceCounts {
    /// Number of spans that the collector took.
    pub sent: u64,
    /// Number of spans that were lost: the collector refused them, or was away for too long.
    pub dropped: u64,
    /// Number of requests that the collector did not take.
    pub failed: u64,
    /// Number of spans that wait.
    pub waiting: u64,
    /// True if the collector took the last request, or none was sent yet.
    pub is_up: bool,
}

impl SpanQueue {
    /// Returns the way to the collector of the settings.
    pub(crate) fn new(settings: &Settings) -> SpanQueue {
        let telemetry = &settings.telemetry;
        let made = telemetry.traces_url().map(|url| Collector::new(&url, &telemetry.headers(), &settings.roots));
        let collector = match made {
            Some(Err(why)) => {
                tracing::error!(why, "no traces are sent: the collector of telemetry.otlp_endpoint cannot be asked");
                None
            }
            Some(Ok(collector)) => Some(collector),
            None => None,
        };
        SpanQueue { collector, waiting: Mutex::default(), turn: Turn::default(), counts: Counts::default() }
    }

    /// Adds spans; those that find no room are lost.
    fn add(&self, spans: Vec<Span>) {
        let mut waiting = self.waiting.lock();
        let room = MOST_SPANS.saturating_sub(waiting.spans.len());
        let lost = spans.len().saturating_sub(room);
        waiting.spans.extend(spans.into_iter().take(room));
        drop(waiting);
        self.counts.dropped.fetch_add(lost as u64, Ordering::Relaxed);
    }

    /// Sends one batch; false: nothing waits, or the collector does not take it now.
    async fn send(&self, now_ms: i64) -> bool {
        let Some(collector) = &self.collector else { return false };
        let _turn = self.turn.lock().await;
        let batch: Vec<Span> = self.waiting.lock().spans.iter().take(BATCH).cloned().collect();
        if batch.is_empty() {
            return false;
        }
        let count = batch.len() as u64;
        let (rejected, is_refused) = match collector.send(&batch).await {
            Ok(None) => (0, false),
            Ok(Some((rejected, why))) => {
                self.tell_away(&format!("it did not take {rejected} of {count} spans: {}", shorten(&why)));
                (rejected.min(count), false)
            }
            Err(NotTaken::Never(why)) => {
                self.tell_away(&why);
                (count, true)
            }
            Err(NotTaken::Later(why, after_s)) => {
                self.counts.failed.fetch_add(1, Ordering::Relaxed);
                self.tell_away(&why);
                let asked_ms = after_s.and_then(|s| i64::try_from(s).ok()).map_or(AGAIN_MS, |s| s.saturating_mul(1000));
                self.waiting.lock().not_before_ms = now_ms + asked_ms.clamp(AGAIN_MS, MOST_WAIT_MS);
                return false;
            }
        };
        self.waiting.lock().spans.drain(..batch.len());
        self.counts.failed.fetch_add(u64::from(is_refused), Ordering::Relaxed);
        self.counts.dropped.fetch_add(rejected, Ordering::Relaxed);
        self.counts.sent.fetch_add(count - rejected, Ordering::Relaxed);
        if rejected == 0 && self.counts.is_away.swap(false, Ordering::Relaxed) {
            tracing::info!("the collector of traces takes them again");
        }
        true
    }

    /// Says once that the collector does not take what it is sent, until it did again.
    fn tell_away(&self, why: &str) {
        if !self.counts.is_away.swap(true, Ordering::Relaxed) {
            tracing::warn!(why, "the collector of traces (telemetry.otlp_endpoint) does not take them; calls go on");
        }
    }
}

/// Returns the beginning of a text of the collector in one line.
fn shorten(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(200).collect()
}

impl Telemetry {
    /// Returns what became of the spans so far; `None`: no traces are sent.
    pub fn counts(&self) -> Option<TraceCounts> {
        let SpanQueue { collector, waiting, counts, .. } = &*self.outgoing;
        collector.as_ref()?;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        Some(TraceCounts {
            sent: read(&counts.sent),
            dropped: read(&counts.dropped),
            failed: read(&counts.failed),
            waiting: waiting.lock().spans.len() as u64,
            is_up: !counts.is_away.load(Ordering::Relaxed),
        })
    }

    /// Sends the traces of results as they become final. It does not end; where no traces are sent, it waits for ever.
    pub async fn keep_sending(&self) {
        if self.outgoing.collector.is_none() {
            return std::future::pending().await;
        }
        loop {
            tokio::select! {
                traced = self.store.next_traced() => self.gather(traced, 0).await,
                () = self.clock.until(self.next_ms()) => {
                    self.look_at_private(false).await;
                    if self.next_ms() <= self.clock.now_ms() {
                        while self.outgoing.send(self.clock.now_ms()).await {}
                        let mut waiting = self.outgoing.waiting.lock();
                        waiting.not_before_ms = waiting.not_before_ms.max(self.clock.now_ms() + GATHER_MS);
                    }
                }
            }
        }
    }

    /// Sends what is left, once, for at most [`LAST_PATIENCE`].
    pub async fn send_last(&self) {
        if self.outgoing.collector.is_none() {
            return;
        }
        while let Some(traced) = self.store.take_traced() {
            self.gather(traced, 0).await;
        }
        self.look_at_private(true).await;
        let all = async { while self.outgoing.send(self.clock.now_ms()).await {} };
        let _ = tokio::time::timeout(LAST_PATIENCE, all).await;
        let left = self.outgoing.waiting.lock().spans.len();
        if left > 0 {
            tracing::warn!(spans = left, "these spans were not sent: the collector did not take them in time");
        }
    }

    /// Returns the time at which there is something to do, milliseconds since 1970.
    fn next_ms(&self) -> i64 {
        let waiting = self.outgoing.waiting.lock();
        let private = waiting.private.front().map(|(due_ms, ..)| *due_ms);
        let spans = (!waiting.spans.is_empty()).then_some(waiting.not_before_ms);
        let idle = self.clock.now_ms() + MOST_WAIT_MS;
        private.into_iter().chain(spans).min().unwrap_or(idle)
    }

    /// Looks again at results whose words were still to be redacted; `all`: whether it is time for it or not.
    async fn look_at_private(&self, all: bool) {
        let due: Vec<(i64, u32, Traced)> = {
            let mut waiting = self.outgoing.waiting.lock();
            let now_ms = self.clock.now_ms();
            let count = waiting.private.iter().take_while(|(due_ms, ..)| all || *due_ms <= now_ms).count();
            waiting.private.drain(..count).collect()
        };
        for (_, looks, traced) in due {
            self.gather(traced, if all { LOOKS } else { looks }).await;
        }
    }

    /// Makes the spans of a result. What fails loses the trace, and nothing else.
    async fn gather(&self, traced: Traced, looks: u32) {
        match self.spans_of(&traced, looks >= LOOKS).await {
            Ok(Some(spans)) => self.outgoing.add(spans),
            Ok(None) => {
                let due_ms = self.clock.now_ms() + REDACTED_MS;
                self.outgoing.waiting.lock().private.push_back((due_ms, looks + 1, traced));
            }
            // It was deleted meanwhile.
            Err(Error::NotFound(_)) => {}
            Err(error) => tracing::warn!(result_id = traced.result_id, %error, "the trace of a result is lost"),
        }
    }

    /// Returns the spans of a result that is final; `None`: its words are still to be redacted. With `without_words` it
    /// is sent without them.
    async fn spans_of(&self, traced: &Traced, without_words: bool) -> Result<Option<Vec<Span>>> {
        let Traced { organization, result_id, is_judged_again } = traced;
        let mut db = self.store.org(organization).read().await?;
        let Row { doc, created_ms, .. } = db.get::<ResultDoc>(*result_id).await?;
        // It is called again, and final later.
        if !doc.body.status.is_terminal() {
            return Ok(Some(Vec::new()));
        }
        let content = self.settings.telemetry.content;
        if content && doc.private && !without_words {
            return Ok(None);
        }
        let found = db.find_trace(*result_id, doc.body.attempt).await?;
        let Some(trace) = found.as_deref().and_then(read_trace) else { return Ok(Some(Vec::new())) };
        let timeline: Option<Value> = db.text("timelines", *result_id).await?;
        let effects: Vec<EffectTime> = db.text(EFFECTS, *result_id).await?.unwrap_or_default();
        let transcript: Option<Transcript> = db.text("transcripts", *result_id).await?;
        drop(db);
        let moments = judge::moments(&timeline.unwrap_or_default());
        let turns = if moments.is_empty() { Vec::new() } else { turns_of(*result_id, &doc.body, &moments, transcript) };
        let is_default =
            |model: &&ringer_model::language_model::ModelRecord| model.kind == ModelKind::Language && model.is_default;
        let result = tree::Traced {
            trace,
            result_id: *result_id,
            created_ms,
            body: &doc.body,
            moments: &moments,
            turns: &turns,
            effects: &effects,
            content: content && !doc.private,
            model: self.settings.models.iter().find(is_default).map(|model| model.model.as_str()),
        };
        let ended_once = doc.body.status_history.iter().any(|change| change.status == ResultStatus::Evaluating);
        Ok(Some(if *is_judged_again && ended_once { result.again().into_iter().collect() } else { result.spans() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(number: u8) -> Span {
        Span {
            trace: [number; 16],
            id: [number; 8],
            parent: None,
            name: "run".to_owned(),
            is_request: false,
            from_ns: 1,
            to_ns: 2,
            attributes: Vec::new(),
            error: None,
        }
    }

    fn outgoing(url: &str) -> SpanQueue {
        let collector = Collector::new(url, &[], &ringer_base::tls::Roots::default()).expect("it can be asked");
        SpanQueue { collector: Some(collector), ..SpanQueue::new(&Settings::new("unused")) }
    }

    fn counts(outgoing: &SpanQueue) -> (u64, u64, u64, bool) {
        let Counts { sent, dropped, failed, is_away } = &outgoing.counts;
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(sent), read(dropped), read(failed), is_away.load(Ordering::Relaxed))
    }

    #[tokio::test]
    async fn a_collector_that_is_away_loses_what_finds_no_room() {
        let outgoing = outgoing("http://127.0.0.1:1/");
        outgoing.add((0..MOST_SPANS + 3).map(|number| span(number as u8)).collect());
        assert!(!outgoing.send(1000).await);
        assert_eq!(counts(&outgoing), (0, 3, 1, true));
        let waiting = outgoing.waiting.lock();
        assert_eq!((waiting.spans.len(), waiting.not_before_ms), (MOST_SPANS, 6000));
    }

    #[tokio::test]
    async fn what_is_refused_for_good_is_lost_and_the_rest_goes_on() {
        let status = std::sync::Arc::new(AtomicU64::new(400));
        let answered = status.clone();
        let server = ringer_base::testing::WebServer::start(move |_: &str| {
            let status = answered.load(Ordering::Relaxed);
            format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").into_bytes()
        });
        let server = server.await.expect("loopback has a free port");
        let outgoing = outgoing(&server.url("/"));
        outgoing.add(vec![span(1)]);
        assert!(outgoing.send(0).await);
        assert_eq!(counts(&outgoing), (0, 1, 1, true));
        status.store(200, Ordering::Relaxed);
        outgoing.add(vec![span(2), span(3)]);
        assert!(outgoing.send(0).await);
        assert_eq!(counts(&outgoing), (2, 1, 1, false));
        assert!(!outgoing.send(0).await, "nothing waits");
    }
}
