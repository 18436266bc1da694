//! Health of the parts that a call needs, and the functions by which a process tells it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;

/// The parts that a call needs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Parts {
    /// Database with all rows.
    pub database: Part,
    /// Queue of jobs, in the database.
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

/// Function that fills in the parts that only the engine knows: speech, models, SIP.
pub type Probe = Arc<dyn Fn(Parts) -> BoxFuture<'static, Parts> + Send + Sync>;

/// Function that starts the sample agent unless it runs; returns its address, or the reason why there is none.
pub type SampleAgent = Arc<dyn Fn() -> BoxFuture<'static, Result<String, String>> + Send + Sync>;
