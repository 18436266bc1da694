//! Spans in the form of OpenTelemetry (OTLP 1.x): written for a collector, and read from an agent. The messages are
//! those of the official definitions. [`Collector`] posts them.

mod collector;

use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span as Sent, Status};
use prost::Message;
use serde_json::{Map, Value};

pub use self::collector::{Collector, NotTaken};

/// Content type of messages in the binary form.
pub const PROTOBUF: &str = "application/x-protobuf";
/// Name of this program as a service, and as the scope of its spans.
const SERVICE: &str = "ringer";
/// Attribute of a resource that names its service.
const SERVICE_NAME: &str = "service.name";
/// Deepest attribute of an agent's span that is read.
const MAX_DEPTH: u32 = 8;

/// Identifier of a trace (W3C Trace Context, section 3.2.2.3).
pub type TraceId = [u8; 16];
/// Identifier of a span (W3C Trace Context, section 3.2.2.4).
pub type SpanId = [u8; 8];

/// Span that this program writes.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// Trace that the span belongs to.
    pub trace: TraceId,
    /// Identifier of the span.
    pub id: SpanId,
    /// Span that it is part of; `None`: the root.
    pub parent: Option<SpanId>,
    /// Name of the span, of few different ones.
    pub name: String,
    /// True for a request to another program.
    pub is_request: bool,
    /// Start in nanoseconds since 1970.
    pub from_ns: u64,
    /// End in nanoseconds since 1970.
    pub to_ns: u64,
    /// Attributes in order; those whose value is null are left out.
    pub attributes: Vec<(&'static str, Value)>,
    /// Reason why it failed; `None`: it did not.
    pub error: Option<String>,
}

/// Span of an agent, as it was sent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentSpan {
    /// Trace as hexadecimal digits.
    pub trace: String,
    /// Identifier as hexadecimal digits.
    pub id: String,
    /// Span that it is part of, as hexadecimal digits; `None`: the root.
    pub parent: Option<String>,
    /// Name of the span.
    pub name: String,
    /// `service.name` of its resource; `None`: the resource has none.
    pub service: Option<String>,
    /// Start in nanoseconds since 1970.
    pub from_ns: u64,
    /// End in nanoseconds since 1970.
    pub to_ns: u64,
    /// Attributes of the span.
    pub attributes: Map<String, Value>,
    /// Words of its error, which may be empty; `None`: it did not fail.
    pub error: Option<String>,
}

/// Returns the request that takes spans to a collector.
pub fn request(spans: &[Span]) -> Vec<u8> {
    let text = |name: &str, value: &str| key_value(name, &Value::from(value));
    let version = env!("CARGO_PKG_VERSION");
    let attributes = vec![text(SERVICE_NAME, SERVICE), text("service.version", version)];
    let scope = InstrumentationScope { name: SERVICE.to_owned(), version: version.to_owned(), ..Default::default() };
    let scope_spans =
        ScopeSpans { scope: Some(scope), spans: spans.iter().map(to_message).collect(), schema_url: String::new() };
    let resource = Some(Resource { attributes, ..Resource::default() });
    let of_resource = ResourceSpans { resource, scope_spans: vec![scope_spans], schema_url: String::new() };
    ExportTraceServiceRequest { resource_spans: vec![of_resource] }.encode_to_vec()
}

/// Most spans of one request: each of them has the name of its service.
const MOST_SPANS: usize = 10_000;
/// Characters of the name of a service that are kept.
const SERVICE_CHARS: usize = 255;

/// Reads the spans of a request, in the binary form or as JSON.
///
/// # Errors
/// Says what is wrong with the request.
pub fn read_request(body: &[u8], is_json: bool) -> Result<Vec<AgentSpan>, String> {
    let request: ExportTraceServiceRequest = match is_json {
        // A list would be read as the fields of the request.
        true if body.trim_ascii_start().first() != Some(&b'{') => {
            return Err("the body is no OTLP request in JSON: it is no object".to_owned());
        }
        true => {
            serde_json::from_slice(body).map_err(|error| format!("the body is no OTLP request in JSON: {error}"))?
        }
        false => ExportTraceServiceRequest::decode(body)
            .map_err(|error| format!("the body is no OTLP request in protobuf: {error}"))?,
    };
    let scopes = request.resource_spans.iter().flat_map(|of_resource| &of_resource.scope_spans);
    let count: usize = scopes.map(|scope| scope.spans.len()).sum();
    if count > MOST_SPANS {
        return Err(format!("there are {count} spans in one request; at most {MOST_SPANS} are taken"));
    }
    let mut spans = Vec::with_capacity(count);
    for of_resource in request.resource_spans {
        let resource = of_resource.resource.map(|resource| resource.attributes).unwrap_or_default();
        let named = resource.into_iter().find(|pair| pair.key == SERVICE_NAME);
        let service = named
            .and_then(|pair| Some(read_value(pair.value, 0).as_str()?.chars().take(SERVICE_CHARS).collect::<String>()));
        let found = of_resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
        spans.extend(found.map(|span| of_message(span, service.clone())));
    }
    Ok(spans)
}

/// Returns the answer to a request of which this many spans were not taken, for the reason in words.
pub fn answer(rejected: usize, why: &str, is_json: bool) -> Vec<u8> {
    let partial = (rejected > 0).then(|| ExportTracePartialSuccess {
        rejected_spans: i64::try_from(rejected).unwrap_or(i64::MAX),
        error_message: why.to_owned(),
    });
    let answer = ExportTraceServiceResponse { partial_success: partial };
    match (is_json, &answer.partial_success) {
        (false, _) => answer.encode_to_vec(),
        (true, None) => b"{}".to_vec(),
        // 64-bit numbers are texts in JSON (OTLP, "JSON Protobuf Encoding").
        (true, Some(partial)) => {
            let told = serde_json::json!({ "partialSuccess": {
                "rejectedSpans": partial.rejected_spans.to_string(), "errorMessage": partial.error_message,
            } });
            told.to_string().into_bytes()
        }
    }
}

/// Returns the number of spans that a collector did not take, and its words, from its answer in the binary form.
fn read_answer(body: &[u8]) -> Option<(u64, String)> {
    let partial = ExportTraceServiceResponse::decode(body).ok()?.partial_success?;
    let rejected = u64::try_from(partial.rejected_spans).ok().filter(|rejected| *rejected > 0)?;
    Some((rejected, partial.error_message))
}

fn to_message(span: &Span) -> Sent {
    let kind = if span.is_request { SpanKind::Client } else { SpanKind::Internal };
    let status = span.error.as_ref().map(|why| Status { message: why.clone(), code: StatusCode::Error as i32 });
    let known = span.attributes.iter().filter(|(_, value)| !value.is_null());
    Sent {
        trace_id: span.trace.to_vec(),
        span_id: span.id.to_vec(),
        parent_span_id: span.parent.map(|id| id.to_vec()).unwrap_or_default(),
        name: span.name.clone(),
        kind: kind as i32,
        start_time_unix_nano: span.from_ns,
        end_time_unix_nano: span.to_ns,
        attributes: known.map(|(name, value)| key_value(name, value)).collect(),
        status,
        ..Sent::default()
    }
}

fn key_value(key: &str, value: &Value) -> KeyValue {
    KeyValue { key: key.to_owned(), value: any_value(value), ..KeyValue::default() }
}

/// Returns a value in its own form; objects are JSON in a text.
fn any_value(value: &Value) -> Option<AnyValue> {
    let value = match value {
        Value::Null => return None,
        Value::Bool(value) => any_value::Value::BoolValue(*value),
        Value::String(text) => any_value::Value::StringValue(text.clone()),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => any_value::Value::IntValue(whole),
            None => any_value::Value::DoubleValue(number.as_f64().unwrap_or_default()),
        },
        Value::Array(items) => {
            any_value::Value::ArrayValue(ArrayValue { values: items.iter().filter_map(any_value).collect() })
        }
        Value::Object(_) => any_value::Value::StringValue(value.to_string()),
    };
    Some(AnyValue { value: Some(value) })
}

fn of_message(span: Sent, service: Option<String>) -> AgentSpan {
    let failed = span.status.filter(|status| status.code == StatusCode::Error as i32);
    let attributes = span.attributes.into_iter().map(|pair| (pair.key, read_value(pair.value, 0)));
    AgentSpan {
        trace: hex::encode(span.trace_id),
        id: hex::encode(span.span_id),
        // Some exporters send zeros for a span without a parent.
        parent: Some(hex::encode(span.parent_span_id)).filter(|id| id.bytes().any(|digit| digit != b'0')),
        name: span.name,
        service,
        from_ns: span.start_time_unix_nano,
        to_ns: span.end_time_unix_nano,
        attributes: attributes.collect(),
        error: failed.map(|status| status.message),
    }
}

/// Returns a value as JSON. Bytes are hexadecimal digits; numbers that JSON does not have are texts.
fn read_value(value: Option<AnyValue>, depth: u32) -> Value {
    use any_value::Value as Any;
    let Some(value) = value.and_then(|value| value.value) else { return Value::Null };
    match value {
        Any::StringValue(text) => text.into(),
        Any::BoolValue(value) => value.into(),
        Any::IntValue(number) => number.into(),
        Any::DoubleValue(number) => {
            serde_json::Number::from_f64(number).map_or_else(|| number.to_string().into(), Value::Number)
        }
        Any::BytesValue(bytes) => hex::encode(bytes).into(),
        Any::ArrayValue(_) | Any::KvlistValue(_) if depth >= MAX_DEPTH => "(too deep)".into(),
        Any::ArrayValue(list) => list.values.into_iter().map(|item| read_value(Some(item), depth + 1)).collect(),
        Any::KvlistValue(list) => {
            let members = list.values.into_iter().map(|pair| (pair.key, read_value(pair.value, depth + 1)));
            Value::Object(members.collect())
        }
        // Only profiles have tables of texts.
        Any::StringValueStrindex(_) => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn span() -> Span {
        Span {
            trace: [1; 16],
            id: [2; 8],
            parent: Some([3; 8]),
            name: "turn".to_owned(),
            is_request: true,
            from_ns: 1_767_225_600_000_000_000,
            to_ns: 1_767_225_601_000_062_500,
            attributes: vec![("a", json!("text")), ("n", json!(-3)), ("f", json!(0.5)), ("none", Value::Null)],
            error: Some("it failed".to_owned()),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let read = read_request(&request(&[span()]), false).expect("it is one");
        let expect = AgentSpan {
            trace: "01".repeat(16),
            id: "02".repeat(8),
            parent: Some("03".repeat(8)),
            name: "turn".to_owned(),
            service: Some("ringer".to_owned()),
            from_ns: 1_767_225_600_000_000_000,
            to_ns: 1_767_225_601_000_062_500,
            attributes: json!({ "a": "text", "n": -3, "f": 0.5 }).as_object().cloned().unwrap_or_default(),
            error: Some("it failed".to_owned()),
        };
        assert_eq!(read, [expect]);
    }

    #[test]
    fn json_is_read_as_other_programs_write_it() {
        let body = json!({ "resourceSpans": [{
            "resource": { "attributes": [{ "key": "service.name", "value": { "stringValue": "desk" } }] },
            "scopeSpans": [{ "scope": { "name": "x" }, "spans": [{
                "traceId": "0123456789ABCDEF0123456789abcdef", "spanId": "0123456789abcdef", "name": "llm", "kind": 3,
                "startTimeUnixNano": "1767225600000000000", "endTimeUnixNano": 1_767_225_600_000_000_001_u64,
                "status": { "code": 2 },
                "attributes": [
                    { "key": "list", "value": { "arrayValue": { "values": [{ "intValue": "7" }, { "boolValue": true }] } } },
                    { "key": "map", "value": { "kvlistValue": { "values": [{ "key": "d", "value": { "doubleValue": 1.5 } }] } } },
                ],
            }] }],
        }] });
        let read = read_request(body.to_string().as_bytes(), true).expect("it is one");
        let [span] = &read[..] else { panic!("{read:?}") };
        assert_eq!((span.trace.as_str(), span.parent.as_ref()), ("0123456789abcdef0123456789abcdef", None));
        assert_eq!((span.service.as_deref(), span.error.as_deref()), (Some("desk"), Some("")));
        assert_eq!(span.to_ns - span.from_ns, 1);
        assert_eq!(Value::Object(span.attributes.clone()), json!({ "list": [7, true], "map": { "d": 1.5 } }));
    }

    #[test]
    fn other_bodies_are_refused() {
        for (body, is_json, expect) in [
            (&b"\xff\xff"[..], false, "protobuf"),
            (b"hello", true, "JSON"),
            (b"[]", true, "JSON"),
            (br#"{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "zz"}]}]}]}"#, true, "JSON"),
        ] {
            let why = read_request(body, is_json).expect_err("it is none");
            assert!(why.contains(expect), "{why}");
        }
        assert_eq!(read_request(b"", false), Ok(Vec::new()));
        assert_eq!(read_request(b"{}", true), Ok(Vec::new()));
    }

    #[test]
    fn answers_tell_what_was_not_taken() {
        assert_eq!(answer(0, "", false), b"");
        assert_eq!(answer(0, "", true), b"{}");
        assert_eq!(read_answer(&answer(2, "unknown", false)), Some((2, "unknown".to_owned())));
        assert_eq!(read_answer(b""), None);
        let told: Value = serde_json::from_slice(&answer(2, "unknown", true)).expect("JSON");
        assert_eq!(told, json!({ "partialSuccess": { "rejectedSpans": "2", "errorMessage": "unknown" } }));
    }
}
