//! Health of the parts that a call needs, and the functions by which a process tells it.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use ringer_base::error::{Error, Result};
use ringer_base::tasks::Tasks;
use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::watch;
use tokio::time::timeout;

/// The parts that a call needs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Parts {
    /// Database with all rows.
    pub database: Part,
    /// Queue of jobs, in the database; `detail` tells how many are due.
    pub queue: Part,
    /// Folder of recordings, in which a trial file is written.
    pub recordings: Part,
    /// Text to speech; `detail` tells which.
    pub synthesizer: Part,
    /// Speech to text; `detail` tells which.
    pub recognizer: Part,
    /// Language model for callers and judges.
    pub language_model: Part,
    /// SIP sockets and registrations.
    pub sip: Part,
}

/// Health of one part.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Part {
    /// State of the part.
    pub status: PartStatus,
    /// Error of the part, or its name or version; null: none.
    pub detail: Option<String>,
    /// Time that it took to answer, in milliseconds; null: not measured.
    pub latency_ms: Option<f64>,
}

/// State of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PartStatus {
    /// The part answers or works.
    Ok,
    /// The part does not answer, or fails.
    Down,
    /// The part is not configured.
    NotConfigured,
}

impl Part {
    /// Returns a part that works or does not.
    pub fn up(works: bool) -> Part {
        let status = if works { PartStatus::Ok } else { PartStatus::Down };
        Part { status, detail: None, latency_ms: None }
    }

    /// Returns a part that is not set up in this process.
    pub fn absent() -> Part {
        Part { status: PartStatus::NotConfigured, detail: None, latency_ms: None }
    }
}

impl Parts {
    /// Returns all parts, in the order of their fields.
    pub fn all(&self) -> [&Part; 7] {
        let Parts { database, queue, recordings, synthesizer, recognizer, language_model, sip } = self;
        [database, queue, recordings, synthesizer, recognizer, language_model, sip]
    }

    /// Returns the parts of a measurement that did not end in time.
    fn late() -> Parts {
        let part = || Part { detail: Some("the health was not measured within 10 s".to_owned()), ..Part::up(false) };
        Parts {
            database: part(),
            queue: part(),
            recordings: part(),
            synthesizer: part(),
            recognizer: part(),
            language_model: part(),
            sip: part(),
        }
    }

    /// Returns the states alone, without names, versions, errors and times.
    pub fn without_details(self) -> Parts {
        let plain = |part: Part| Part { detail: None, latency_ms: None, ..part };
        Parts {
            database: plain(self.database),
            queue: plain(self.queue),
            recordings: plain(self.recordings),
            synthesizer: plain(self.synthesizer),
            recognizer: plain(self.recognizer),
            language_model: plain(self.language_model),
            sip: plain(self.sip),
        }
    }
}

/// Function that fills in the parts that only the engine knows: speech, models, SIP.
pub type Probe = Arc<dyn Fn(Parts) -> BoxFuture<'static, Parts> + Send + Sync>;

/// Function that starts the sample agent unless it runs; returns its address, or the reason why there is none.
pub type SampleAgent = Arc<dyn Fn() -> BoxFuture<'static, Result<String, String>> + Send + Sync>;

/// Milliseconds for which measured health is told again, whoever asks.
const FRESH_MS: i64 = 5000;
/// Time limit of a measurement: a part may not answer at all.
const PATIENCE: Duration = Duration::from_secs(10);
/// Age in milliseconds from which health is not told any more, but measured anew first.
const OLD_MS: i64 = 60_000;

/// Health of the parts as it was measured last. Measuring starts programs, so that it happens once for all who ask.
#[derive(Clone, Debug)]
pub struct HealthCache {
    latest: watch::Sender<Option<(i64, Parts)>>,
    is_measuring: Arc<AtomicBool>,
    tasks: Tasks,
}

impl HealthCache {
    /// Returns a cache without measured health, whose measurements belong to `tasks`.
    pub fn new(tasks: Tasks) -> HealthCache {
        HealthCache { latest: watch::Sender::new(None), is_measuring: Arc::default(), tasks }
    }

    /// Returns the latest health at the time `now_ms`. Past [`FRESH_MS`] it is measured anew in the background by
    /// `measure`.
    ///
    /// # Errors
    /// The measurement ended without a value.
    pub async fn parts(&self, now_ms: i64, measure: impl Future<Output = Parts> + Send + 'static) -> Result<Parts> {
        let mut news = self.latest.subscribe();
        let known = news.borrow_and_update().clone();
        if let Some((at, parts)) = &known
            && (0..FRESH_MS).contains(&(now_ms - at))
        {
            return Ok(parts.clone());
        }
        if !self.is_measuring.swap(true, Ordering::AcqRel) {
            let measuring = Measuring(self.clone());
            self.tasks.spawn("health", async move {
                let parts = timeout(PATIENCE, measure).await.unwrap_or_else(|_| Parts::late());
                measuring.0.latest.send_replace(Some((now_ms, parts)));
            });
        }
        match known {
            Some((at, parts)) if (0..OLD_MS).contains(&(now_ms - at)) => Ok(parts),
            _ => {
                news.changed().await.map_err(Error::internal)?;
                let latest = news.borrow();
                let measured = latest.as_ref().filter(|(at, _)| now_ms - at < OLD_MS);
                measured.map(|(_, parts)| parts.clone()).ok_or_else(|| Error::internal("the health was not measured"))
            }
        }
    }
}

/// A measurement that runs. However it ends, by a panic too, another may begin, and those who wait look again.
struct Measuring(HealthCache);

impl Drop for Measuring {
    fn drop(&mut self) {
        self.0.is_measuring.store(false, Ordering::Release);
        self.0.latest.send_modify(|_| ());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicUsize;

    use super::*;

    fn parts(works: bool) -> Parts {
        let part = Part { detail: Some("version 1".into()), ..Part::up(works) };
        Parts {
            database: part.clone(),
            queue: part.clone(),
            recordings: part.clone(),
            synthesizer: part.clone(),
            recognizer: part.clone(),
            language_model: part.clone(),
            sip: part,
        }
    }

    #[tokio::test]
    async fn health_is_measured_once_for_all_who_ask() {
        let (cache, measured) = (HealthCache::new(Tasks::new()), Arc::new(AtomicUsize::new(0)));
        let ask = |now_ms: i64| {
            let count = measured.clone();
            cache.parts(now_ms, async move { parts(count.fetch_add(1, Ordering::AcqRel) == 0) })
        };
        let many = futures_util::future::join_all((0..100).map(|_| ask(1000))).await;
        assert!(many.into_iter().all(|parts| parts.expect("it was measured").sip.status == PartStatus::Ok));
        assert_eq!(measured.load(Ordering::Acquire), 1);
        ask(1000 + FRESH_MS - 1).await.expect("it is known");
        assert_eq!(measured.load(Ordering::Acquire), 1);
        let health = ask(1000 + FRESH_MS).await.expect("it is told at once");
        assert_eq!(health.sip.status, PartStatus::Ok, "as it was before");
        while measured.load(Ordering::Acquire) < 2 {
            tokio::task::yield_now().await;
        }
        while cache.is_measuring.load(Ordering::Acquire) {
            tokio::task::yield_now().await;
        }
        assert_eq!(ask(1000 + FRESH_MS).await.expect("it is known").sip.status, PartStatus::Down);
        ask(1000 + FRESH_MS + OLD_MS).await.expect("it is measured first");
        assert_eq!(measured.load(Ordering::Acquire), 3);
    }

    #[tokio::test]
    async fn a_measurement_that_panics_keeps_nobody_waiting() {
        let health = HealthCache::new(Tasks::new());
        health.parts(1000, async { panic!("a part does") }).await.expect_err("there is no value");
        health.parts(1000, async { parts(true) }).await.expect("it is measured again");
    }

    #[test]
    fn strangers_are_told_up_or_down_alone() {
        let health = parts(true).without_details();
        assert_eq!((health.sip.status, health.sip.detail, health.database.detail), (PartStatus::Ok, None, None));
    }
}
