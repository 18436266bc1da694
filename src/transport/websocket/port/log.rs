//! Lines of `websocket.log`: each message but audio, of which only the amount is told. No header that may be secret is
//! written.

use std::collections::VecDeque;
use std::time::Duration;

use ringer_media::time::Time;

use crate::peer::without_secrets;
use crate::websocket::Message;
use crate::websocket::handshake::Upgrade;

/// Most characters of a message that are written.
const MESSAGE_CHARS: usize = 2000;

/// Longest run of characters without a space that is written; a longer one is encoded audio.
const ENCODED_CHARS: usize = 200;

/// Most bytes of a log: 4 MiB.
const MAX_BYTES: usize = 4 << 20;

/// Distance of the lines that tell the amount of audio.
const AUDIO_EVERY: Duration = Duration::from_secs(10);

/// Headers whose values are no secret.
const OPEN_HEADERS: [&str; 3] = ["X-Simulation-Result-Id", "User-Agent", "traceparent"];

/// Audio since the last line of it.
#[derive(Debug, Default)]
struct Amount {
    messages: u64,
    bytes: u64,
}

/// A message that was received and may be audio.
#[derive(Debug)]
pub(super) struct Entry {
    text: Option<String>,
    len: usize,
}

/// Lines that wait to be written.
#[derive(Debug, Default)]
pub(super) struct MessageLog {
    lines: VecDeque<String>,
    written: usize,
    sent: Amount,
    received: Amount,
    told_at: Option<Time>,
}

impl MessageLog {
    /// Writes an upgrade request.
    pub(super) fn upgrade(&mut self, upgrade: &Upgrade) {
        let url = without_secrets(&upgrade.url);
        let query = if upgrade.url.contains('?') { "?..." } else { "" };
        let header = |(name, value): &(String, String)| {
            let is_open = OPEN_HEADERS.iter().any(|open| open.eq_ignore_ascii_case(name));
            format!("{name}: {}", if is_open { value } else { "(set)" })
        };
        let headers: Vec<String> = upgrade.headers.iter().map(header).collect();
        let offered = match upgrade.subprotocols.is_empty() {
            true => String::new(),
            false => format!(" subprotocols {}", upgrade.subprotocols.join(", ")),
        };
        self.line(format!("> GET {url}{query} [{}]{offered}", headers.join("; ")));
    }

    /// Writes the amount of audio since the last line of it, and how the connection ended.
    pub(super) fn end(&mut self, text: &str) {
        self.tell_audio();
        self.note(text);
    }

    /// Writes a line of this side.
    pub(super) fn note(&mut self, text: &str) {
        self.line(text.chars().take(MESSAGE_CHARS).collect());
    }

    /// Writes a message that is sent.
    pub(super) fn log_sent(&mut self, message: &Message) {
        match message {
            Message::Text(text) => self.line(format!("> {}", short(text))),
            Message::Binary(bytes) => self.line(format!("> {} bytes", bytes.len())),
        }
    }

    /// Counts a message of audio that is sent.
    pub(super) fn sent_audio(&mut self, len: usize) {
        self.sent.messages += 1;
        self.sent.bytes += len as u64;
    }

    /// Returns what is to be written of a message that was received, once it is known if it is audio.
    pub(super) fn log_received(&mut self, message: &Message) -> Entry {
        let text = if let Message::Text(text) = message { Some(short(text)) } else { None };
        Entry { text, len: message.len() }
    }

    /// Writes a message that was received, or counts it as audio.
    pub(super) fn keep(&mut self, entry: Entry, is_audio: bool) {
        match entry.text.filter(|_| !is_audio) {
            Some(text) => self.line(format!("< {text}")),
            None => {
                self.received.messages += 1;
                self.received.bytes += entry.len as u64;
            }
        }
    }

    /// Writes the amount of audio from time to time.
    pub(super) fn tick(&mut self, now: Time) {
        if now.since(*self.told_at.get_or_insert(now)) >= AUDIO_EVERY {
            self.told_at = Some(now);
            self.tell_audio();
        }
    }

    fn tell_audio(&mut self) {
        for (sign, amount) in [('>', std::mem::take(&mut self.sent)), ('<', std::mem::take(&mut self.received))] {
            if amount.messages > 0 {
                self.line(format!("{sign} audio: {} messages, {} bytes", amount.messages, amount.bytes));
            }
        }
    }

    /// Returns the next line.
    pub(super) fn next_line(&mut self) -> Option<String> {
        self.lines.pop_front()
    }

    fn line(&mut self, line: String) {
        if self.written >= MAX_BYTES {
            return;
        }
        self.written += line.len() + 1;
        self.lines.push_back(if self.written >= MAX_BYTES { "the log ends here: it is full".to_owned() } else { line });
    }
}

/// Returns the beginning of a message as one line.
fn short(text: &str) -> String {
    let is_encoded = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=' | '-' | '_');
    let mut short = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if short.len() >= MESSAGE_CHARS {
            short.push_str("...");
            break;
        }
        let run = rest.find(|c: char| !is_encoded(c)).unwrap_or(rest.len());
        let taken = match run {
            0 => first.len_utf8(),
            run => run,
        };
        match &rest[..taken] {
            encoded if taken > ENCODED_CHARS => short.push_str(&format!("({} characters)", encoded.len())),
            plain => short.extend(plain.chars().map(|c| if c.is_control() { ' ' } else { c })),
        }
        rest = &rest[taken..];
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_line_without_audio() {
        let audio = "A".repeat(400);
        for (text, expect) in [
            ("{\"a\":\"b\"}\n", "{\"a\":\"b\"} ".to_owned()),
            (&format!("{{\"payload\":\"{audio}==\"}}"), "{\"payload\":\"(402 characters)\"}".to_owned()),
            (&"ü, ".repeat(1000), format!("{}...", "ü, ".repeat(500))),
        ] {
            assert_eq!(short(text), expect);
        }
    }

    #[test]
    fn what_may_be_secret_is_not_written() {
        let mut log = MessageLog::default();
        let headers = [("Authorization", "Basic c2VjcmV0"), ("X-Simulation-Result-Id", "7"), ("X-API-KEY", "secret")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        log.upgrade(&Upgrade { url: "wss://u:secret@h/a?token=secret".to_owned(), headers, subprotocols: Vec::new() });
        let line = log.next_line().expect("it is written");
        let expect = "> GET wss://h/a?... [Authorization: (set); X-Simulation-Result-Id: 7; X-API-KEY: (set)]";
        assert_eq!(line, expect);
    }

    #[test]
    fn a_log_has_an_end() {
        let mut log = MessageLog::default();
        for _ in 0..10_000 {
            log.note(&"a".repeat(1000));
        }
        let lines: Vec<String> = std::iter::from_fn(|| log.next_line()).collect();
        assert!(lines.iter().map(String::len).sum::<usize>() <= MAX_BYTES);
        assert_eq!(lines.last().map(String::as_str), Some("the log ends here: it is full"));
    }
}
