//! Methods and extensions that this library understands, and those that a request requires beyond them.

use crate::message::Request;

/// Methods that are understood, as value of the Allow header field.
pub(crate) const ALLOW: &str = "INVITE, ACK, BYE, CANCEL, OPTIONS, INFO, UPDATE, PRACK, NOTIFY, MESSAGE, REFER";

/// Extensions that are understood, as value of the Supported header field: RFC 3262, 4028, 4488.
pub(crate) const SUPPORTED: &str = "100rel, timer, norefersub";

/// Header fields of the answer to OPTIONS (RFC 3261 11.2).
pub(crate) const CAPABILITIES: [(&str, &str); 3] =
    [("Allow", ALLOW), ("Accept", "application/sdp"), ("Supported", SUPPORTED)];

/// Returns the extensions that a request requires and that are not understood; `None` when there are none.
pub(crate) fn unknown_extensions(request: &Request) -> Option<String> {
    let known = |tag: &&str| SUPPORTED.split(", ").any(|known| known.eq_ignore_ascii_case(tag));
    let unknown: Vec<_> = request.headers.list("Require").into_iter().filter(|tag| !known(tag)).collect();
    (!unknown.is_empty()).then(|| unknown.join(", "))
}
