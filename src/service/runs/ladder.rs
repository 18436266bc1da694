//! The signalling of a conversation as data: messages with their times, figures of the network, and keys.

use std::path::Path;

use ringer_base::error::{Error, Result};
use ringer_model::result::ResultDoc;
use ringer_model::time::Timestamp;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Runs;
use super::evidence::messages;
use crate::Caller;
use crate::conversation::artifacts::{CONNECTION_LOGS, HTTP_LOG, MAIL_LOG, SIP_LOG, is_hidden};
use crate::files::result_owner;

/// Most entries of one answer; a call of an hour has 3,600 figures of the network.
const MOST_ENTRIES: usize = 50_000;
/// Most bytes of a log that are read.
const MOST_BYTES: u64 = 32 * 1024 * 1024;
/// Text that stands for a secret.
const MASK: &str = "(masked)";
/// Parts of names of header fields that hold secrets.
const SECRET: [&str; 8] = ["authoriz", "token", "secret", "password", "passwd", "api-key", "apikey", "cookie"];

/// The signalling of a conversation, in order of time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Ladder {
    /// Id of the result.
    pub simulation_result_id: i64,
    /// Wall clock of at_ms 0: the connection, or the first message where there was none.
    pub started_at: Option<Timestamp>,
    /// Messages, figures and keys, in order of time.
    pub entries: Vec<Rung>,
    /// True when there are more than are shown.
    pub truncated: bool,
}

/// One message, figure or key.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Rung {
    /// Time in milliseconds from started_at; negative before.
    pub at_ms: f64,
    /// Kind of the entry: message, rtcp or digit.
    pub kind: &'static str,
    /// Direction as this side sees it: sent or received.
    pub direction: &'static str,
    /// Protocol: SIP/UDP, SIP/TCP, SIP/TLS, HTTP, WS, WEBRTC, MAIL, RTCP or DTMF.
    pub protocol: String,
    /// Address of the other side; null where there is none.
    pub peer: Option<String>,
    /// First line of the message, or the figure in words.
    pub start_line: String,
    /// The whole message, secrets masked; null for figures and keys.
    pub message: Option<String>,
    /// Figures of the network, or the key; null for messages.
    #[schemars(with = "Option<ringer_model::Object>")]
    pub figures: Option<Value>,
}

impl Runs {
    /// Returns the signalling of a conversation; while it goes on, what is in its files so far.
    ///
    /// # Errors
    /// [`Error::NotAvailable`] where there is none yet, or what is private is still in it.
    pub async fn ladder(&self, caller: &Caller, result_id: i64) -> Result<Ladder> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        let none = || Error::NotAvailable("Ladder not available".into());
        if is_hidden(&row.doc, caller) {
            return Err(none());
        }
        let stored: Option<Value> = db.text("timelines", result_id).await?;
        drop(db);
        let events = match stored {
            Some(events) => Some(events),
            None => self.live_events(result_id, &row.doc.body).await?,
        };
        self.settings.bring(&result_owner(result_id)).await?;
        let folder = self.settings.result_folder(result_id);
        let mut timed: Vec<(u64, Rung)> = sip(&text_of(&folder.join(SIP_LOG)).await);
        for (name, protocol) in [(HTTP_LOG, "HTTP")].into_iter().chain(CONNECTION_LOGS).chain([(MAIL_LOG, "MAIL")]) {
            timed.extend(lines(&text_of(&folder.join(name)).await, protocol));
        }
        if timed.is_empty() && events.is_none() {
            return Err(none());
        }
        let first = timed.iter().map(|(at_us, _)| *at_us).min();
        let start = row.doc.body.start_time.or(first.map(|at_us| Timestamp((at_us / 1000) as i64)));
        let zero_us = start.map_or(0, |start| start.0.saturating_mul(1000));
        let shifted = |(at_us, rung): (u64, Rung)| Rung { at_ms: (at_us as f64 - zero_us as f64) / 1000.0, ..rung };
        let mut entries: Vec<Rung> = timed.into_iter().map(shifted).collect();
        entries.extend(events.iter().filter_map(Value::as_array).flatten().filter_map(figure));
        entries.sort_by(|one, other| one.at_ms.total_cmp(&other.at_ms));
        let truncated = entries.len() > MOST_ENTRIES;
        entries.truncate(MOST_ENTRIES);
        Ok(Ladder { simulation_result_id: result_id, started_at: start, entries, truncated })
    }
}

/// Reads a log as far as it is read at all; empty when there is none.
async fn text_of(path: &Path) -> String {
    use tokio::io::AsyncReadExt;
    let mut bytes = Vec::new();
    if let Ok(file) = tokio::fs::File::open(path).await {
        let _ = file.take(MOST_BYTES).read_to_end(&mut bytes).await;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Returns the messages of a SIP log with their times in microseconds since 1970.
fn sip(log: &str) -> Vec<(u64, Rung)> {
    let rung = |message: crate::runs::evidence::Message| {
        let text = mask_secrets(&message.text);
        let peer = if message.is_sent { message.to } else { message.from };
        let rung = Rung {
            at_ms: 0.0,
            kind: "message",
            direction: if message.is_sent { "sent" } else { "received" },
            protocol: format!("SIP/{}", message.transport),
            peer: Some(peer.to_string()),
            start_line: text.lines().next().unwrap_or_default().to_owned(),
            message: Some(text),
            figures: None,
        };
        (message.at_us, rung)
    };
    messages(log).into_iter().map(rung).collect()
}

/// Returns the lines of another log: `MILLISECONDS sent REST` or `MILLISECONDS received REST`.
fn lines(log: &str, protocol: &str) -> Vec<(u64, Rung)> {
    let rung = |line: &str| {
        let (at_ms, rest) = line.split_once(' ')?;
        let marks = [("sent ", "sent"), ("> ", "sent"), ("received ", "received"), ("< ", "received")];
        let (rest, direction) =
            marks.iter().find_map(|(mark, direction)| Some((rest.strip_prefix(mark)?, *direction)))?;
        let rung = Rung {
            at_ms: 0.0,
            kind: "message",
            direction,
            protocol: protocol.to_owned(),
            peer: None,
            start_line: rest.to_owned(),
            message: None,
            figures: None,
        };
        Some((at_ms.parse::<u64>().ok()?.checked_mul(1000)?, rung))
    };
    log.lines().filter_map(rung).collect()
}

/// Returns the entry of an event that tells of the network or of a key.
fn figure(event: &Value) -> Option<Rung> {
    let data = &event["data"];
    let (kind, direction, protocol, start_line) = match event["event"].as_str()? {
        "network" => {
            let words = ["received", "lost", "late", "jitter_ms"].map(|name| format!("{name} {}", data[name]));
            ("rtcp", "received", "RTCP", words.join(", "))
        }
        "dtmf_sent" => ("digit", "sent", "DTMF", data["digits"].as_str()?.to_owned()),
        "dtmf_received" => ("digit", "received", "DTMF", data["digits"].as_str()?.to_owned()),
        _ => return None,
    };
    Some(Rung {
        at_ms: event["offset_ms"].as_f64()?,
        kind,
        direction,
        protocol: protocol.to_owned(),
        peer: None,
        start_line,
        message: None,
        figures: Some(data.clone()),
    })
}

/// Masks the secrets of a message: header fields by their names, keys of media, passwords in addresses.
fn mask_secrets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.find(['\r', '\n']).map_or((line, ""), |at| line.split_at(at));
        let lower = line.to_ascii_lowercase();
        let name = line.split_once(':').map(|(name, _)| name.trim_end()).filter(|name| !name.contains(' '));
        let is_secret = name.is_some_and(|name| {
            let name = name.to_ascii_lowercase();
            SECRET.iter().any(|part| name.contains(part))
        });
        match (name, lower.find("inline:"), lower.starts_with("a=ice-pwd:")) {
            (Some(name), ..) if is_secret => out.extend([name, ": ", MASK]),
            (_, Some(at), _) => out.extend([&line[..at + "inline:".len()], MASK]),
            (.., true) => out.extend(["a=ice-pwd:", MASK]),
            _ => out.push_str(&without_password(line)),
        }
        out.push_str(end);
    }
    out
}

/// Masks the password of each SIP address (RFC 3261 19.1.1: `sip:user:password@host`) in a line.
fn without_password(line: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(line.len()), line);
    while let Some(at) = ["sip:", "sips:"].into_iter().filter_map(|scheme| rest.find(scheme)).min() {
        let start = at + rest[at..].find(':').map_or(0, |colon| colon + 1);
        out.push_str(&rest[..start]);
        rest = &rest[start..];
        let end = rest.find(['>', ';', '?', ' ', ',', '"']).unwrap_or(rest.len());
        let address = &rest[..end];
        match address.split_once('@').and_then(|(user, host)| Some((user.split_once(':')?.0, host))) {
            Some((user, host)) => out.extend([user, ":", MASK, "@", host]),
            None => out.push_str(address),
        }
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_masked_and_the_rest_stands() {
        for (line, expect) in [
            ("INVITE sip:desk@h SIP/2.0\r\n", "INVITE sip:desk@h SIP/2.0\r\n"),
            ("INVITE sip:a:pw@h;x=1 SIP/2.0\r\n", "INVITE sip:a:(masked)@h;x=1 SIP/2.0\r\n"),
            ("To: <sips:a:pw@h>, <sip:b@h>\r\n", "To: <sips:a:(masked)@h>, <sip:b@h>\r\n"),
            ("X-Api-Key: 123\r\n", "X-Api-Key: (masked)\r\n"),
            ("Proxy-Authorization : Digest x\r\n", "Proxy-Authorization: (masked)\r\n"),
            ("a=crypto:1 AES inline:abc|2^20\r\n", "a=crypto:1 AES inline:(masked)\r\n"),
            ("a=ice-pwd:abc\r\n", "a=ice-pwd:(masked)\r\n"),
            ("o=- 1 1 IN IP4 192.0.2.1", "o=- 1 1 IN IP4 192.0.2.1"),
        ] {
            assert_eq!(mask_secrets(line), expect);
        }
    }

    #[test]
    fn logs_and_events_are_told_alike() {
        let log =
            "1767600000123 sent to TCP 127.0.0.1:5061 at 127.0.0.1:5060\n INVITE sip:a@b SIP/2.0\n Call-ID: 1\n \n\n";
        let (at_us, rung) = sip(log).remove(0);
        assert_eq!((at_us, rung.direction, &*rung.protocol), (1_767_600_000_123_000, "sent", "SIP/TCP"));
        assert_eq!((&*rung.start_line, rung.peer.as_deref()), ("INVITE sip:a@b SIP/2.0", Some("127.0.0.1:5061")));
        let (at_us, rung) = lines("5 sent POST http://h 200\nno line\n7 kept\n", "HTTP").remove(0);
        assert_eq!((at_us, &*rung.start_line), (5000, "POST http://h 200"));
        let event = |name: &str, data: Value| json!({ "event": name, "offset_ms": 1.5, "data": data });
        let network = json!({ "received": 51, "lost": 0, "late": 1, "jitter_ms": 9.895 });
        let rung = figure(&event("network", network)).expect("a figure");
        assert_eq!(rung.start_line, "received 51, lost 0, late 1, jitter_ms 9.895");
        let rung = figure(&event("dtmf_sent", json!({ "digits": "7" }))).expect("a key");
        assert_eq!((rung.kind, &*rung.start_line, rung.at_ms), ("digit", "7", 1.5));
        assert_eq!(figure(&event("hold", json!({}))), None);
    }
}
