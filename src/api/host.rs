//! Guards of the page: the policy of its answers, and the names of this machine under which it is shown on a loopback listener.

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;

use crate::api::response::detail;

/// Policy of all that a browser may load and do on the page.
const POLICY: &str = "default-src 'self'; media-src 'self' blob:; img-src 'self' data:; object-src 'none'; \
                      base-uri 'none'; frame-ancestors 'none'";

/// Puts the page's policy on an answer.
pub(super) fn protect(headers: &mut HeaderMap) {
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
}

/// True when a request names this machine itself as its host: a name that somebody else resolves to it does not count.
pub(super) fn is_own_host(headers: &HeaderMap) -> bool {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    ["localhost", "127.0.0.1", "::1"].iter().any(|own| name.eq_ignore_ascii_case(own))
}

/// Returns the answer to a request for another host (RFC 9110 15.5.20).
pub(super) fn misdirection() -> Response {
    detail(StatusCode::MISDIRECTED_REQUEST, "This host is not served here")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_its_own() {
        for (host, expect) in [
            ("localhost", true),
            ("LOCALHOST:8080", true),
            ("127.0.0.1:1", true),
            ("[::1]:8080", true),
            ("[::1]", true),
            ("evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("localhost.evil.example:80", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static(host));
            assert_eq!(is_own_host(&headers), expect, "{host}");
        }
        assert!(!is_own_host(&HeaderMap::new()));
    }
}
