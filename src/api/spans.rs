//! Routes of the spans that agents send, by trace (OTLP over HTTP) or by result.

use std::io::Read;

use axum::body::Bytes;
use axum::http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::Response;
use flate2::read::MultiGzDecoder;
use ringer_base::error::Result;
use ringer_model::agent_span::PostedSpan;
use ringer_service::{SpanList, SpansAdded, answer_traces, read_traces};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::endpoint::{Ctx, Endpoint, In, Nothing, get, post, with_tag};
use crate::response::{JSON, PROTOBUF, Traces, detail, respond};

/// Most bytes of a compressed body when it is unpacked.
const MOST_BYTES: usize = 4 * 1024 * 1024;

#[derive(Deserialize, JsonSchema)]
struct IdPath {
    id: i64,
}

#[derive(Deserialize, JsonSchema)]
struct ListQuery {
    /// False: the spans are listed without their attributes.
    #[serde(default = "yes")]
    attributes: bool,
}

fn yes() -> bool {
    true
}

pub(super) fn endpoints() -> Vec<Endpoint> {
    let endpoints = vec![
        get("/v1/simulation-result/{id}/spans", list)
            .packs()
            .about("List the spans of the agent of a result on the clock of the call"),
        post("/v1/simulation-result/{id}/spans", add)
            .about("Add spans of the agent to a result, at most 1,000 in all: those beyond are refused and counted"),
        post("/v1/traces", take)
            .takes_raw()
            .repeatable()
            .of("Organization")
            .about("Take spans of agents in the form of OpenTelemetry (OTLP over HTTP), by the traces of results"),
    ];
    with_tag("Results", "Simulation result", endpoints).collect()
}

async fn list(ctx: Ctx, request: In<IdPath, ListQuery>) -> Result<SpanList> {
    let list = ctx.service.runs().span_list(&ctx.caller, request.path.id).await?;
    Ok(if request.query.attributes { list } else { list.without_attributes() })
}

async fn add(ctx: Ctx, request: In<IdPath, Nothing, Vec<PostedSpan>>) -> Result<SpansAdded> {
    ctx.service.telemetry().add_spans(&ctx.caller, request.path.id, request.body).await
}

async fn take(ctx: Ctx, _: In) -> Result<Traces> {
    let is_json = match form_of(&ctx.headers) {
        Ok(is_json) => is_json,
        Err(refusal) => return Ok((*refusal).into()),
    };
    let bytes = ctx.upload.map(|upload| upload.bytes).unwrap_or_default();
    let bytes = match unpack(&ctx.headers, bytes) {
        Ok(bytes) => bytes,
        Err(refusal) => return Ok((*refusal).into()),
    };
    let spans = match read_traces(&bytes, is_json) {
        Ok(spans) => spans,
        Err(why) => return Ok(detail(StatusCode::BAD_REQUEST, &why).into()),
    };
    let taken = ctx.service.telemetry().take_spans(&ctx.caller, spans).await?;
    let body = answer_traces(taken.rejected, &taken.why, is_json);
    Ok(respond(StatusCode::OK, if is_json { JSON } else { PROTOBUF }, body).into())
}

/// Returns true for a body in JSON, false for one in protobuf.
fn form_of(headers: &HeaderMap) -> Result<bool, Box<Response>> {
    let kind = plain_value(headers, &CONTENT_TYPE);
    match kind.as_str() {
        PROTOBUF => Ok(false),
        JSON => Ok(true),
        _ => {
            let why = format!("Content-Type must be {PROTOBUF} or {JSON}");
            Err(Box::new(detail(StatusCode::UNSUPPORTED_MEDIA_TYPE, &why)))
        }
    }
}

/// Returns the value of a header field without parameters, in lower case.
fn plain_value(headers: &HeaderMap, name: &HeaderName) -> String {
    let value = headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Returns a body as it was before its compression.
fn unpack(headers: &HeaderMap, bytes: Bytes) -> Result<Bytes, Box<Response>> {
    match plain_value(headers, &CONTENT_ENCODING).as_str() {
        "" | "identity" if bytes.len() <= MOST_BYTES => return Ok(bytes),
        "" | "identity" => {
            let why = format!("The body is too large, the limit is {MOST_BYTES} bytes");
            return Err(Box::new(detail(StatusCode::PAYLOAD_TOO_LARGE, &why)));
        }
        "gzip" => {}
        _ => {
            let why = "Content-Encoding must be gzip or identity";
            return Err(Box::new(detail(StatusCode::UNSUPPORTED_MEDIA_TYPE, why)));
        }
    }
    let mut out = Vec::new();
    let read = MultiGzDecoder::new(&bytes[..]).take(MOST_BYTES as u64 + 1).read_to_end(&mut out);
    match read {
        _ if out.len() > MOST_BYTES => {
            let why = format!("The unpacked body is too large, the limit is {MOST_BYTES} bytes");
            Err(Box::new(detail(StatusCode::PAYLOAD_TOO_LARGE, &why)))
        }
        Ok(_) => Ok(out.into()),
        Err(_) => Err(Box::new(detail(StatusCode::BAD_REQUEST, "The body is no gzip"))),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use axum::http::HeaderValue;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    fn headers(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    fn gzip(bytes: &[u8]) -> Bytes {
        let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
        packer.write_all(bytes).expect("memory takes it");
        packer.finish().expect("memory takes it").into()
    }

    #[test]
    fn forms_of_bodies() {
        for (kind, expect) in [
            ("application/x-protobuf", Ok(false)),
            ("Application/JSON; charset=utf-8", Ok(true)),
            ("text/plain", Err(StatusCode::UNSUPPORTED_MEDIA_TYPE)),
            ("", Err(StatusCode::UNSUPPORTED_MEDIA_TYPE)),
        ] {
            let form = form_of(&headers(CONTENT_TYPE, kind)).map_err(|refusal| refusal.status());
            assert_eq!(form, expect, "{kind}");
        }
    }

    #[test]
    fn packed_bodies_have_a_limit() {
        let packed = || headers(CONTENT_ENCODING, "gzip");
        let check = |headers: HeaderMap, bytes: Bytes| unpack(&headers, bytes).map_err(|refusal| refusal.status());
        assert_eq!(check(packed(), gzip(b"spans")), Ok(Bytes::from_static(b"spans")));
        assert_eq!(check(packed(), Bytes::from_static(b"spans")), Err(StatusCode::BAD_REQUEST));
        assert_eq!(check(packed(), gzip(&vec![0; MOST_BYTES + 1])), Err(StatusCode::PAYLOAD_TOO_LARGE));
        assert_eq!(check(headers(CONTENT_ENCODING, "br"), Bytes::new()), Err(StatusCode::UNSUPPORTED_MEDIA_TYPE));
        assert_eq!(check(HeaderMap::new(), Bytes::from_static(b"x")), Ok(Bytes::from_static(b"x")));
    }
}
