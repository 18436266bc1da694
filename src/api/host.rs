//! Guards of the page: the policy of its answers, and the names of this machine under which it is shown on a loopback
//! listener.

use axum::http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, HOST, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;

use crate::Server;
use crate::response::detail;

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

/// True when the page is shown to a request: on a loopback listener it names this machine or the public address.
pub(super) fn is_served(server: &Server, headers: &HeaderMap) -> bool {
    !server.setup.is_loopback || is_own_host(headers) || server.public_host().is_some_and(|own| is_host(headers, own))
}

/// True when a request names this host, whatever its port.
fn is_host(headers: &HeaderMap, own: &str) -> bool {
    name_of(headers).eq_ignore_ascii_case(own.trim_start_matches('[').trim_end_matches(']'))
}

/// Returns the host of a request without its port and brackets; empty where it names none.
fn name_of(headers: &HeaderMap) -> &str {
    let host = headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    }
}

/// True when a request names this machine itself as its host: a name that somebody else resolves to it does not count.
pub(super) fn is_own_host(headers: &HeaderMap) -> bool {
    let name = name_of(headers);
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

    #[test]
    fn the_public_address_is_a_host_of_its_own() {
        for (host, own, expect) in [
            ("calls.example", "calls.example", true),
            ("CALLS.example:443", "calls.example", true),
            ("[2001:db8::1]:443", "[2001:db8::1]", true),
            ("calls.example.evil", "calls.example", false),
            ("evil.example", "calls.example", false),
            ("", "calls.example", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static(host));
            assert_eq!(is_host(&headers, own), expect, "{host}");
        }
    }
}
