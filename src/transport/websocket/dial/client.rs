//! The client's side of an opening handshake (RFC 6455 4.1 and 4.2.2). A server that chooses none of the subprotocols
//! that are offered is taken: carriers offer names that their users' servers need not know.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_request;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::http::Request;
use tokio_tungstenite::tungstenite::http::header::SEC_WEBSOCKET_PROTOCOL;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::{DialFault, fault_of_status, in_words, refusal, unreachable};
use crate::sip::tls::reason;
use crate::websocket::link::{Duplex, LinkLimits, socket_config};

/// Most bytes of an answer's head.
const MAX_HEAD: usize = 16 * 1024;

/// Most headers of an answer.
const MAX_HEADERS: usize = 100;

/// Sends an upgrade request and reads the answer.
///
/// # Errors
/// See [`DialFault`].
pub(super) async fn upgrade(
    request: Request<()>,
    mut stream: Box<dyn Duplex>,
    limits: LinkLimits,
) -> Result<WebSocketStream<Box<dyn Duplex>>, DialFault> {
    let offered = request.headers().get(SEC_WEBSOCKET_PROTOCOL).and_then(|names| names.to_str().ok());
    let offered: Vec<String> = offered.into_iter().flat_map(|names| names.split(", ")).map(str::to_owned).collect();
    let (bytes, key) = generate_request(request).map_err(|error| refusal(&format!("no request: {error}")))?;
    let lost = |error: io::Error| {
        let is_tls = error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>());
        let why = if is_tls { reason(&error) } else { in_words(&error) };
        unreachable(format!("the connection was lost in the upgrade: {why}"))
    };
    stream.write_all(&bytes).await.map_err(lost)?;
    stream.flush().await.map_err(lost)?;
    let mut read = Vec::with_capacity(1024);
    let end = loop {
        if let Some(end) = check(&read, &key, &offered)? {
            break end;
        }
        if read.len() >= MAX_HEAD {
            return Err(refusal(&format!(
                "the server did not upgrade: its answer's head is longer than {MAX_HEAD} bytes"
            )));
        }
        if stream.read_buf(&mut read).await.map_err(lost)? == 0 {
            return Err(unreachable("the server closed the connection in the upgrade".to_owned()));
        }
    };
    let early = read.split_off(end);
    Ok(WebSocketStream::from_partially_read(stream, early, Role::Client, Some(socket_config(limits))).await)
}

/// Returns the length of an answer's head; `None` while it is not whole.
///
/// # Errors
/// The answer is no HTTP, has another status than 101, or does not belong to the key and the offered subprotocols.
fn check(read: &[u8], key: &str, offered: &[String]) -> Result<Option<usize>, DialFault> {
    let no = |why: &str| refusal(&format!("the server did not upgrade: {why}"));
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut answer = httparse::Response::new(&mut headers);
    let end = match answer.parse(read) {
        Ok(httparse::Status::Complete(end)) => end,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(no(&format!("its answer is no HTTP: {error}"))),
    };
    let status = answer.code.unwrap_or_default();
    if status != 101 {
        return Err(fault_of_status(status));
    }
    let values = |name: &'static str| {
        let of_name = answer.headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name));
        of_name.filter_map(|header| std::str::from_utf8(header.value).ok())
    };
    let has = |name, word: &str| {
        values(name).flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case(word))
    };
    if !has("upgrade", "websocket") || !has("connection", "upgrade") {
        return Err(no("101 without `Upgrade: websocket` and `Connection: Upgrade`"));
    }
    if !values("sec-websocket-accept").any(|accept| accept.trim() == derive_accept_key(key.as_bytes())) {
        return Err(no("its Sec-WebSocket-Accept does not answer the key"));
    }
    if values("sec-websocket-extensions").any(|names| !names.trim().is_empty()) {
        return Err(no("it chose an extension, and none was offered"));
    }
    match values("sec-websocket-protocol").map(str::trim).find(|chosen| !offered.iter().any(|name| name == chosen)) {
        Some(chosen) => Err(no(&format!("it chose the subprotocol {chosen:?}, which was not offered"))),
        None => Ok(Some(end)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_to_the_upgrade() {
        // The key and its answer are those of RFC 6455 1.3.
        let key = "dGhlIHNhbXBsZSBub25jZQ==";
        let offered = ["media".to_owned(), "audio.plivo.com".to_owned()];
        let good = "HTTP/1.1 101 Switching Protocols\r\nupgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n";
        let accept = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n";
        let check = |text: &str| {
            let checked = check(text.as_bytes(), key, &offered);
            checked.map_err(|fault| (fault.status(), fault.may_retry(), fault.text()))
        };
        for (more, expect) in [
            (format!("{accept}\r\n"), Ok(())),
            (format!("{accept}Sec-WebSocket-Protocol: media\r\n\r\n"), Ok(())),
            (format!("{accept}Sec-WebSocket-Protocol: other\r\n\r\n"), Err("which was not offered")),
            (format!("{accept}Sec-WebSocket-Extensions: permessage-deflate\r\n\r\n"), Err("none was offered")),
            ("Sec-WebSocket-Accept: other\r\n\r\n".to_owned(), Err("does not answer the key")),
            ("\r\n".to_owned(), Err("does not answer the key")),
        ] {
            let text = format!("{good}{more}");
            match (check(&format!("{text}frames")), expect) {
                (Ok(found), Ok(())) => assert_eq!(found, Some(text.len())),
                (Err((None, false, why)), Err(part)) => assert!(why.contains(part), "{why}"),
                (found, expect) => panic!("{found:?} for {expect:?}"),
            }
            assert_eq!(check(&text[..text.len() - 1]), Ok(None), "not whole");
        }
        let other = |text: &str, status, retry, part: &str| {
            let (found, may_retry, why) = check(text).expect_err("it is no 101");
            assert!((found, may_retry) == (status, retry) && why.contains(part), "{found:?} {may_retry} {why}");
        };
        other("HTTP/1.1 503 Busy\r\n\r\n", Some(503), true, "503");
        other("HTTP/1.1 302 Found\r\nLocation: /\r\n\r\n", Some(302), false, "not followed");
        other("HTTP/1.1 101 Yes\r\nConnection: Upgrade\r\n\r\n", None, false, "101 without");
        other("SSH-2.0-x\r\n", None, false, "no HTTP");
    }
}
