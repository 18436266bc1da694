//! Spans that agents send, by the trace of their call or by its result: stored with the result, up to a limit.

use std::collections::{BTreeMap, HashMap};

use ringer_base::error::{Error, Result};
use ringer_judge::Redactor;
use ringer_model::Object;
use ringer_model::agent_span::{AgentSpanDoc, NAME_CHARS, PostedSpan, SpanSource, SpanTimes};
use ringer_model::result::ResultDoc;
use ringer_provider::otlp::AgentSpan;
use ringer_store::Session;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Telemetry;
use crate::Caller;
use crate::conversation::privacy::redactor_of;

/// Most spans of the agent of one result.
const MOST_SPANS: usize = 1000;
/// Most spans of one request.
const MOST_AT_ONCE: usize = 10_000;
/// Most bytes of the attributes of a span, as JSON.
const MOST_BYTES: usize = 16_384;

/// Number of posted spans that were stored, and of those that were not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SpansAdded {
    /// Id of the result.
    pub simulation_result_id: i64,
    /// Number of spans that are stored now.
    pub accepted: i64,
    /// Number of spans that were not stored: the result has as many as it may have.
    pub rejected: i64,
    /// Both numbers in words.
    pub message: String,
}

/// Number of spans of a request that were stored, and of those that were not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TracesTaken {
    /// Number of spans that are stored now, or were before.
    pub accepted: usize,
    /// Number of spans that were not stored.
    pub rejected: usize,
    /// Reasons in words; empty when all were stored.
    pub why: String,
}

/// Reasons for which spans were not stored, with the number of each.
#[derive(Default)]
struct Reasons(BTreeMap<String, usize>);

impl Reasons {
    fn add(&mut self, why: impl Into<String>, count: usize) {
        if count > 0 {
            *self.0.entry(why.into()).or_default() += count;
        }
    }

    fn into_taken(self, accepted: usize) -> TracesTaken {
        let rejected = self.0.values().sum();
        let why: Vec<String> = self.0.into_iter().map(|(why, count)| format!("{count}: {why}")).collect();
        TracesTaken { accepted, rejected, why: why.join("; ") }
    }
}

impl Telemetry {
    /// Stores spans of the agent of a result. Those beyond the limit are not stored, and counted.
    ///
    /// # Errors
    /// A span that cannot be stored, with its place: then none is.
    pub async fn add_spans(&self, caller: &Caller, result_id: i64, spans: Vec<PostedSpan>) -> Result<SpansAdded> {
        check_posted(&spans)?;
        let mut db = self.store.org(&caller.organization).write().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        let redactor = redactor_of(&mut db, &row.doc).await?;
        let (all, room) = (spans.len(), room_of(&mut db, result_id).await?);
        for span in spans.into_iter().take(room) {
            let doc = of_posted(span, redactor.as_ref());
            db.add_span(result_id, None, &doc).await?;
        }
        db.commit().await?;
        let (accepted, rejected) = (all.min(room) as i64, all.saturating_sub(room) as i64);
        let message = match rejected {
            0 => format!("{accepted} spans stored"),
            _ => format!("{accepted} spans stored, {rejected} refused: a result has at most {MOST_SPANS}"),
        };
        Ok(SpansAdded { simulation_result_id: result_id, accepted, rejected, message })
    }

    /// Stores spans by their traces. Those of traces that no result of the organization has are not stored, nor those
    /// beyond the limit of a result: they are counted, with the reason.
    ///
    /// # Errors
    /// Too many spans at once.
    pub async fn take_spans(&self, caller: &Caller, spans: Vec<AgentSpan>) -> Result<TracesTaken> {
        if spans.len() > MOST_AT_ONCE {
            let count = spans.len();
            return Err(Error::Refused(format!("{count} spans in one request; at most {MOST_AT_ONCE} are taken")));
        }
        let (mut reasons, mut by_trace) = (Reasons::default(), BTreeMap::<String, Vec<AgentSpan>>::new());
        for span in spans {
            match fault_of(&span) {
                Some(why) => reasons.add(why, 1),
                None => by_trace.entry(span.trace.clone()).or_default().push(span),
            }
        }
        let traces: Vec<&str> = by_trace.keys().map(String::as_str).collect();
        let mut db = self.store.org(&caller.organization).read().await?;
        let known = db.results_of_traces(&traces).await?;
        drop(db);
        let accepted = self.store_spans(caller, by_trace, &known, &mut reasons).await?;
        Ok(reasons.into_taken(accepted))
    }

    /// Stores the spans of known traces; returns their number.
    async fn store_spans(
        &self,
        caller: &Caller,
        by_trace: BTreeMap<String, Vec<AgentSpan>>,
        known: &HashMap<String, (i64, i64)>,
        reasons: &mut Reasons,
    ) -> Result<usize> {
        const UNKNOWN: &str = "no result of this organization has the trace";
        let mut accepted = 0;
        for (trace, spans) in by_trace {
            let Some((result_id, attempt)) = known.get(&trace).copied() else {
                reasons.add(UNKNOWN, spans.len());
                continue;
            };
            let mut db = self.store.org(&caller.organization).write().await?;
            let Some(row) = db.find::<ResultDoc>(result_id).await? else {
                reasons.add(UNKNOWN, spans.len());
                continue;
            };
            if row.doc.body.attempt != attempt {
                reasons.add("the trace is of an earlier attempt of its result", spans.len());
                continue;
            }
            let redactor = redactor_of(&mut db, &row.doc).await?;
            let mut room = room_of(&mut db, result_id).await?;
            let mut beyond = 0;
            for span in spans {
                if room == 0 {
                    beyond += 1;
                    continue;
                }
                let doc = of_otlp(span, redactor.as_ref());
                // One that comes again was taken before: an exporter repeats what it has no answer to.
                room -= usize::from(db.add_span(result_id, doc.span_id.as_deref(), &doc).await?);
                accepted += 1;
            }
            db.commit().await?;
            reasons.add(format!("result {result_id} has {MOST_SPANS} spans, and no more are kept"), beyond);
        }
        Ok(accepted)
    }
}

/// Returns the number of spans that a result may still get.
async fn room_of(db: &mut Session, result_id: i64) -> Result<usize> {
    let stored = usize::try_from(db.count_spans(result_id).await?).unwrap_or(usize::MAX);
    Ok(MOST_SPANS.saturating_sub(stored))
}

fn size_of(attributes: &Object) -> usize {
    serde_json::to_vec(attributes).map_or(usize::MAX, |bytes| bytes.len())
}

fn check_posted(spans: &[PostedSpan]) -> Result<()> {
    if spans.len() > MOST_AT_ONCE {
        let count = spans.len();
        return Err(Error::Refused(format!("{count} spans in one request; at most {MOST_AT_ONCE} are taken")));
    }
    for (at, span) in spans.iter().enumerate() {
        let (start, end) = (span.start_offset_ms, span.end_offset_ms);
        if end < start {
            let why = format!("spans[{at}].end_offset_ms is {end}, before its start_offset_ms {start}");
            return Err(Error::Refused(why));
        }
        let bytes = span.attributes.as_ref().map_or(0, size_of);
        if bytes > MOST_BYTES {
            return Err(Error::Refused(format!(
                "spans[{at}].attributes have {bytes} bytes; at most {MOST_BYTES} are kept"
            )));
        }
    }
    Ok(())
}

/// Returns the reason why a span cannot be stored, whatever its trace is.
fn fault_of(span: &AgentSpan) -> Option<String> {
    let is_id = |id: &str, digits: usize| id.len() == digits && id.bytes().any(|digit| digit != b'0');
    let is_reversed = span.to_ns < span.from_ns;
    let bytes = size_of(&span.attributes);
    Some(match () {
        () if !is_id(&span.trace, 32) => "the trace id is not 16 bytes, or zero".to_owned(),
        () if !is_id(&span.id, 16) => "the span id is not 8 bytes, or zero".to_owned(),
        () if span.parent.as_deref().is_some_and(|id| !is_id(id, 16)) => "the parent span id is not 8 bytes".to_owned(),
        () if span.name.is_empty() => "the span has no name".to_owned(),
        () if span.from_ns == 0 || i64::try_from(span.from_ns.max(span.to_ns)).is_err() => {
            "the span has no start, or one beyond the year 2262".to_owned()
        }
        () if is_reversed => "the span ends before it starts".to_owned(),
        () if bytes > MOST_BYTES => format!("the attributes have more than {MOST_BYTES} bytes"),
        () => return None,
    })
}

fn of_posted(span: PostedSpan, redactor: Option<&Redactor>) -> AgentSpanDoc {
    let doc = AgentSpanDoc {
        name: span.name,
        times: SpanTimes::Offset { start_offset_ms: span.start_offset_ms, end_offset_ms: span.end_offset_ms },
        service: None,
        span_id: None,
        parent_span_id: None,
        error: None,
        attributes: span.attributes.unwrap_or_default(),
        source: SpanSource::Posted,
    };
    redact_span(doc, redactor)
}

fn of_otlp(span: AgentSpan, redactor: Option<&Redactor>) -> AgentSpanDoc {
    let ns = |ns: u64| i64::try_from(ns).unwrap_or(i64::MAX);
    let short = |text: String| text.chars().take(NAME_CHARS).collect::<String>();
    let doc = AgentSpanDoc {
        name: short(span.name),
        times: SpanTimes::Wall { start_ns: ns(span.from_ns), end_ns: ns(span.to_ns) },
        service: span.service.map(short),
        span_id: Some(span.id),
        parent_span_id: span.parent,
        error: span.error.map(short),
        attributes: span.attributes,
        source: SpanSource::Otlp,
    };
    redact_span(doc, redactor)
}

/// Takes out of a span what is private, where the agent of its result asks for that.
fn redact_span(mut doc: AgentSpanDoc, redactor: Option<&Redactor>) -> AgentSpanDoc {
    if let Some(redactor) = redactor {
        doc.name = redactor.text(&doc.name);
        doc.error = doc.error.map(|text| redactor.text(&text));
        doc.attributes.values_mut().for_each(|value| redact(value, redactor));
    }
    doc
}

fn redact(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => *text = redactor.text(text),
        Value::Array(items) => items.iter_mut().for_each(|item| redact(item, redactor)),
        Value::Object(members) => members.values_mut().for_each(|member| redact(member, redactor)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn span() -> AgentSpan {
        AgentSpan {
            trace: "01".repeat(16),
            id: "02".repeat(8),
            name: "llm".to_owned(),
            from_ns: 1,
            to_ns: 2,
            ..AgentSpan::default()
        }
    }

    #[test]
    fn spans_that_cannot_be_stored_have_a_reason() {
        let long = Object::from_iter([("a".to_owned(), json!("x".repeat(MOST_BYTES)))]);
        for (bad, expect) in [
            (span(), None),
            (AgentSpan { trace: "0".repeat(32), ..span() }, Some("trace id")),
            (AgentSpan { trace: "01".to_owned(), ..span() }, Some("trace id")),
            (AgentSpan { id: String::new(), ..span() }, Some("span id")),
            (AgentSpan { name: String::new(), ..span() }, Some("no name")),
            (AgentSpan { from_ns: 0, ..span() }, Some("no start")),
            (AgentSpan { from_ns: 3, ..span() }, Some("before it starts")),
            (AgentSpan { to_ns: u64::MAX, ..span() }, Some("2262")),
            (AgentSpan { attributes: long, ..span() }, Some("more than 16384 bytes")),
        ] {
            let why = fault_of(&bad);
            assert_eq!(why.is_some(), expect.is_some(), "{why:?}");
            assert!(expect.is_none_or(|words| why.unwrap_or_default().contains(words)), "{expect:?}");
        }
    }

    #[test]
    fn what_is_private_is_taken_out_of_texts_at_any_depth() {
        let redactor = Redactor::new(["Patel".to_owned()]);
        let attributes = json!({ "a": "call +15550001111", "b": [{ "c": "Dr Patel" }, 7] });
        let attributes = attributes.as_object().cloned().unwrap_or_default();
        let doc = of_otlp(AgentSpan { attributes, error: Some("Patel is away".to_owned()), ..span() }, Some(&redactor));
        let told = serde_json::to_string(&doc).expect("JSON");
        assert!(!told.contains("Patel") && !told.contains("5550001111") && told.contains("[TRAIT]"), "{told}");
    }

    #[test]
    fn reasons_are_counted() {
        let mut reasons = Reasons::default();
        reasons.add("b", 2);
        reasons.add("a", 1);
        reasons.add("b", 1);
        reasons.add("c", 0);
        let taken = reasons.into_taken(5);
        assert_eq!(taken, TracesTaken { accepted: 5, rejected: 4, why: "1: a; 3: b".to_owned() });
    }
}
