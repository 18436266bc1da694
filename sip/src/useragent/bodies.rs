//! Bodies of INVITE and UPDATE that this side cannot read, and bodies of its answers that the other side does not take
//! (RFC 3261 8.2.3, 20.1).

use crate::message::{Headers, Request, sdp_of};

/// Media type that this side reads and writes.
pub(super) const TYPE: &str = "application/sdp";

/// Returns the status of the refusal: 415 for a body without a description, 406 where the answer may have none. `None`:
/// no reason to refuse.
pub(super) fn refusal(request: &Request) -> Option<u16> {
    let headers = &request.headers;
    let unread = !request.body.is_empty() && sdp_of(headers, &request.body).is_none();
    match (unread && !is_optional(headers), takes_sdp(headers)) {
        (true, _) => Some(415),
        (false, false) => Some(406),
        (false, true) => None,
    }
}

/// True for a body that a reader may ignore (RFC 3261 20.11).
fn is_optional(headers: &Headers) -> bool {
    let params = headers.get("Content-Disposition").and_then(|value| value.split_once(';'));
    let handling = params.and_then(|(_, params)| crate::uri::Params::parse(params).get("handling").map(str::to_owned));
    handling.is_some_and(|handling| handling.eq_ignore_ascii_case("optional"))
}

/// True when the Accept fields allow a description: there are none, or one of their ranges has it. The narrowest range
/// counts.
fn takes_sdp(headers: &Headers) -> bool {
    if headers.get("Accept").is_none() {
        return true;
    }
    let ranges = headers.list("Accept").into_iter().filter_map(|range| {
        let (range, params) = range.split_once(';').unwrap_or((range, ""));
        let width = [TYPE, "application/*", "*/*"].iter().position(|known| known.eq_ignore_ascii_case(range.trim()))?;
        let weight = crate::uri::Params::parse(params).get("q").and_then(|q| q.trim().parse::<f32>().ok());
        Some((width, weight.unwrap_or(1.0) > 0.0))
    });
    ranges.min_by_key(|(width, _)| *width).is_some_and(|(_, takes)| takes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Method;

    #[test]
    fn bodies_are_refused_that_one_side_does_not_read() {
        let check = |fields: &[(&'static str, &str)], body: &str, expect: Option<u16>| {
            let mut request = Request::new(Method::Invite, "sip:a@b");
            for (name, value) in fields {
                request.headers.push(*name, *value);
            }
            request.body = body.as_bytes().to_vec();
            assert_eq!(refusal(&request), expect, "{fields:?}");
        };
        let accepts = |value: &str, expect| check(&[("Accept", value)], "", expect);
        check(&[], "", None);
        accepts("application/sdp", None);
        accepts("text/plain, Application/SDP;level=1", None);
        accepts("application/*", None);
        accepts("*/*;q=0.1", None);
        accepts("text/nobodyKnowsThis", Some(406));
        accepts("", Some(406));
        accepts("application/sdp;q=0, */*", Some(406));
        accepts("application/*;q=0.0", Some(406));
        check(&[("Accept", "text/plain"), ("Accept", "application/sdp")], "", None);
        check(&[("Content-Type", "application/sdp")], "v=0\r\n", None);
        check(&[("Content-Type", "application/unknownformat")], "<audio/>", Some(415));
        check(&[("Content-Type", "text/plain"), ("Content-Disposition", "icon;handling=optional")], "x", None);
        check(&[("Content-Type", "text/plain"), ("Content-Disposition", "icon;handling=required")], "x", Some(415));
    }
}
