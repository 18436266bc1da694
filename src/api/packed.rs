//! Long texts for clients that take them packed (gzip, RFC 1952). Who does not ask gets them as they are.

use std::io::Write;

use axum::body::{Body, to_bytes};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, VARY};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use flate2::Compression;
use flate2::write::GzEncoder;

/// Longest answer that is packed, in bytes.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// Shortest answer that becomes smaller by it, in bytes.
const LEAST_BYTES: usize = 1024;

/// True when a client takes gzip.
pub(super) fn is_taken(headers: &HeaderMap) -> bool {
    let value = headers.get(ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(',').any(|part| {
        let (name, weight) = part.split_once(';').unwrap_or((part, ""));
        let is_refused = weight.trim().strip_prefix("q=").and_then(|q| q.parse::<f32>().ok()) == Some(0.0);
        name.trim().eq_ignore_ascii_case("gzip") && !is_refused
    })
}

/// Packs the body of a success.
pub(super) async fn pack(response: Response) -> Response {
    if response.status() != StatusCode::OK || response.headers().contains_key(CONTENT_ENCODING) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, MOST_BYTES).await else {
        return crate::response::detail(StatusCode::INTERNAL_SERVER_ERROR, "The answer is too long");
    };
    if bytes.len() < LEAST_BYTES {
        return Response::from_parts(parts, Body::from(bytes));
    }
    let mut packer = GzEncoder::new(Vec::with_capacity(bytes.len() / 8), Compression::fast());
    let packed = match packer.write_all(&bytes).and_then(|()| packer.finish()) {
        Ok(packed) => packed,
        Err(_) => return Response::from_parts(parts, Body::from(bytes)),
    };
    parts.headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts.headers.insert(VARY, HeaderValue::from_static("accept-encoding"));
    Response::from_parts(parts, Body::from(packed))
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn who_takes_gzip_says_so() {
        for (value, expect) in [
            ("gzip, deflate, br", true),
            ("br;q=1.0, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("identity", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, HeaderValue::from_static(value));
            assert_eq!(is_taken(&headers), expect, "{value}");
        }
    }

    #[tokio::test]
    async fn what_is_packed_is_the_same() {
        for (length, expect) in [(LEAST_BYTES - 1, false), (100_000, true)] {
            let packed = pack(Response::new(Body::from("x".repeat(length)))).await;
            assert_eq!(packed.headers().contains_key(CONTENT_ENCODING), expect);
            let bytes = to_bytes(packed.into_body(), MOST_BYTES).await.expect("a body");
            let mut text = String::new();
            match expect {
                true => flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text).expect("gzip"),
                false => (&bytes[..]).read_to_string(&mut text).expect("text"),
            };
            assert_eq!(text, "x".repeat(length));
        }
    }
}
