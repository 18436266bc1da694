//! Hint for a call by WebSocket to an address where a room server may answer.

use std::time::Duration;

use ringer_media::call::EndDetail;
use url::Url;

use super::is_socket;
use crate::engine::CallReport;
use crate::provider::guard::Guard;
use crate::provider::post::{Poster, Posting};
use crate::transport::room::signal::validation;

/// Time for a connection and an answer together.
const PATIENCE: Duration = Duration::from_secs(3);

/// Bytes of an answer that are read.
const ANSWER_BYTES: usize = 1024;

/// Returns how to call a room server at `to`, where the WebSocket of a call was refused and one may answer there.
pub(super) async fn room_server(to: &str, report: &CallReport) -> Option<String> {
    let ending = &report.ending;
    let remote = ending.remote.as_ref().filter(|_| !ending.connected)?;
    let EndDetail::WebSocket { status: Some(status), .. } = remote.detail else { return None };
    of_status(to, status).await
}

/// Returns the same for a WebSocket that was refused with `status`. The server is asked once.
pub(super) async fn of_status(to: &str, status: u16) -> Option<String> {
    let server = server_of(to, status).filter(|_| is_socket(to))?;
    let asked = validation(&server)?;
    let posting = Posting {
        method: "GET",
        url: &asked,
        headers: &[],
        body: String::new(),
        patience: PATIENCE,
        answer_bytes: ANSWER_BYTES,
    };
    let posted = Poster::new(Guard::by(|_| true), PATIENCE).exchange(posting).await.ok()?;
    is_validation(posted.status, &posted.body).then(|| format!("this may be a room server: use room:{server}"))
}

/// Returns the room server that may have refused a WebSocket at `to` with `status`: scheme, host and port.
fn server_of(to: &str, status: u16) -> Option<String> {
    let url = Url::parse(to).ok()?;
    let is_signalling = url.path().trim_end_matches('/').starts_with("/rtc");
    let may_be = match status {
        // A room server asks for a token nowhere else.
        401 | 403 => is_signalling,
        200 | 400 | 404 | 405 | 426 => true,
        _ => false,
    };
    let host = url.host_str().filter(|_| may_be)?;
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    Some(format!("{}://{host}{port}", url.scheme()))
}

/// True for the answer of a room server that is asked without a token: a refusal in plain words.
fn is_validation(status: u16, body: &[u8]) -> bool {
    let is_plain = !body.trim_ascii().is_empty() && !matches!(body.trim_ascii().first(), Some(b'<' | b'{' | b'['));
    matches!(status, 400 | 401 | 403) && is_plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_that_may_be_those_of_a_room_server() {
        for (to, status, expect) in [
            ("ws://127.0.0.1:7880", 200, Some("ws://127.0.0.1:7880")),
            ("wss://rooms.example/agent?key=1", 404, Some("wss://rooms.example")),
            ("wss://user:word@rooms.example/rtc", 401, Some("wss://rooms.example")),
            ("ws://[::1]:7880/rtc", 405, Some("ws://[::1]:7880")),
            ("wss://agent.example/stream", 401, None),
            ("wss://agent.example/stream", 503, None),
            ("wss://agent.example/stream", 429, None),
        ] {
            assert_eq!(server_of(to, status).as_deref(), expect, "{to} {status}");
        }
    }

    #[test]
    fn answers_of_a_room_server_that_is_asked_without_a_token() {
        for (status, body, expect) in [
            (401, "permissions denied", true),
            (401, "", false),
            (404, "404 page not found", false),
            (401, "<html>", false),
            (401, r#"{"detail":"Not authenticated"}"#, false),
            (200, "OK", false),
        ] {
            assert_eq!(is_validation(status, body.as_bytes()), expect, "{status} {body}");
        }
    }
}
