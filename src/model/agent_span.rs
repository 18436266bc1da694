//! Spans of agents: stretches of their own work during a conversation, as they report them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Object;
use super::time::Timestamp;

/// Longest name of a span, in characters.
pub const NAME_CHARS: usize = 255;

words! {
    /// Way in which a span came.
    kept SpanSource { Otlp = "otlp", Posted = "posted" } default Posted
}

/// A span that an agent posts, by its place in the conversation.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct PostedSpan {
    /// Name of the span.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// Start in milliseconds from connect.
    #[schemars(range(min = 0))]
    pub start_offset_ms: f64,
    /// End in milliseconds from connect, not before the start.
    #[schemars(range(min = 0))]
    pub end_offset_ms: f64,
    /// Free object of at most 16,384 bytes as JSON.
    #[serde(default)]
    pub attributes: Option<Object>,
}

/// Times of a span.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum SpanTimes {
    /// Start and end in nanoseconds since 1970.
    Wall {
        /// Start of the span.
        start_ns: i64,
        /// End of the span.
        end_ns: i64,
    },
    /// Start and end in milliseconds from connect.
    Offset {
        /// Start of the span.
        start_offset_ms: f64,
        /// End of the span.
        end_offset_ms: f64,
    },
}

/// A span of an agent, as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentSpanDoc {
    /// Name of the span.
    pub name: String,
    /// Times of the span.
    pub times: SpanTimes,
    /// Program that made it, `service.name`; `None`: not told.
    #[serde(default)]
    pub service: Option<String>,
    /// Identifier as 16 hexadecimal digits; `None`: it has none.
    #[serde(default)]
    pub span_id: Option<String>,
    /// Identifier of the span that it is part of.
    #[serde(default)]
    pub parent_span_id: Option<String>,
    /// Words of its error, which may be empty; `None`: it did not fail.
    #[serde(default)]
    pub error: Option<String>,
    /// Attributes of the span.
    #[serde(default)]
    pub attributes: Object,
    /// Way in which it came.
    #[serde(default)]
    pub source: SpanSource,
}

/// A span of an agent on the clock of its call.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AgentSpanOut {
    /// Name of the span.
    pub name: String,
    /// Start in milliseconds from connect, negative before it; null: the conversation has not begun.
    pub start_offset_ms: Option<f64>,
    /// End in milliseconds from connect.
    pub end_offset_ms: Option<f64>,
    /// Program that made it; null: not told.
    pub service: Option<String>,
    /// Identifier as 16 hexadecimal digits; null: it was posted without one.
    pub span_id: Option<String>,
    /// Identifier of the span that it is part of; null: none is known.
    pub parent_span_id: Option<String>,
    /// Words of its error, which may be empty; null: it did not fail.
    pub error: Option<String>,
    /// Attributes of the span.
    pub attributes: Object,
    /// Way in which it came.
    ///
    /// - `otlp`: to `POST /v1/traces`, by its trace.
    /// - `posted`: to `POST /v1/simulation-result/{id}/spans`.
    pub source: SpanSource,
}

impl AgentSpanDoc {
    /// Returns the span on the clock of a call that was answered at `connected`.
    pub fn at(self, connected: Option<Timestamp>) -> AgentSpanOut {
        let offset_ms = |ns: i64| {
            // Less than a microsecond is not told by an f64 of this size.
            connected.map(|Timestamp(ms)| ((ns - ms.saturating_mul(1_000_000)) / 1000) as f64 / 1000.0)
        };
        let (start_offset_ms, end_offset_ms) = match self.times {
            SpanTimes::Wall { start_ns, end_ns } => (offset_ms(start_ns), offset_ms(end_ns)),
            SpanTimes::Offset { start_offset_ms, end_offset_ms } => (Some(start_offset_ms), Some(end_offset_ms)),
        };
        AgentSpanOut {
            name: self.name,
            start_offset_ms,
            end_offset_ms,
            service: self.service,
            span_id: self.span_id,
            parent_span_id: self.parent_span_id,
            error: self.error,
            attributes: self.attributes,
            source: self.source,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_on_the_clock_of_the_call() {
        let doc = |times: SpanTimes| AgentSpanDoc {
            name: "llm".to_owned(),
            times,
            service: None,
            span_id: None,
            parent_span_id: None,
            error: None,
            attributes: Object::default(),
            source: SpanSource::Otlp,
        };
        let connected = Timestamp(1_767_225_600_000);
        let wall = SpanTimes::Wall { start_ns: 1_767_225_599_999_500_000, end_ns: 1_767_225_601_250_250_999 };
        let told = doc(wall.clone()).at(Some(connected));
        assert_eq!((told.start_offset_ms, told.end_offset_ms), (Some(-0.5), Some(1250.25)));
        assert_eq!(doc(wall).at(None).start_offset_ms, None);
        let offset = SpanTimes::Offset { start_offset_ms: 1.5, end_offset_ms: 2.0 };
        assert_eq!(doc(offset.clone()).at(None).end_offset_ms, Some(2.0));
        let kept = serde_json::to_string(&doc(offset.clone())).expect("JSON");
        assert_eq!(serde_json::from_str::<AgentSpanDoc>(&kept).expect("it is read").times, offset);
    }
}
