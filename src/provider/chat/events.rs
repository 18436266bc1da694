//! Server-sent events (WHATWG HTML, section 9.2.6) as far as a chat needs them: the data of each event, as soon as it
//! is whole.

use serde::de::IgnoredAny;

/// Longest line, and longest data of one event, in bytes.
const BYTES_MAX: usize = 1 << 20;
/// Data that ends a stream.
pub(super) const DONE: &str = "[DONE]";

/// An event of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// Data of the event, without a line feed at the end.
    pub data: String,
    /// True if the stream names it an error.
    pub is_error: bool,
}

/// A line or an event is too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// A stream as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Events {
    line: Vec<u8>,
    /// True if the first line was seen; a byte order mark may only stand before it.
    begun: bool,
    /// True if the last byte was a CR, to which a following LF belongs.
    after_cr: bool,
    data: Vec<String>,
    /// All of `data` together.
    data_bytes: usize,
    is_error: bool,
}

impl Events {
    /// Returns the events that end in these bytes.
    ///
    /// # Errors
    /// [`TooLong`].
    pub(super) fn take(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        for &byte in bytes {
            let follows_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if follows_cr => {}
                b'\n' | b'\r' => self.end_line(&mut events)?,
                _ if self.line.len() >= BYTES_MAX => return Err(TooLong),
                _ => self.line.push(byte),
            }
        }
        Ok(events)
    }

    /// Returns the events that the end of the stream ends. The standard drops an event without an empty line behind it;
    /// many servers leave that line out.
    ///
    /// # Errors
    /// [`TooLong`].
    pub(super) fn end(&mut self) -> Result<Vec<Event>, TooLong> {
        let mut events = Vec::new();
        if !self.line.is_empty() {
            self.end_line(&mut events)?;
        }
        self.dispatch(&mut events);
        Ok(events)
    }

    fn end_line(&mut self, events: &mut Vec<Event>) -> Result<(), TooLong> {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let is_first = !std::mem::replace(&mut self.begun, true);
        let line = if is_first { text.strip_prefix('\u{FEFF}').unwrap_or(&text) } else { &text };
        if line.is_empty() {
            self.dispatch(events);
            return Ok(());
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            // Whole data is not waited for any longer: some servers put one line feed, and not two, behind each event.
            "data" if self.data.is_empty() && is_whole(value) => {
                events.push(Event { data: value.to_owned(), is_error: self.is_error });
            }
            "data" => {
                // With its line feed, so that empty lines count.
                self.data_bytes += value.len() + 1;
                if self.data_bytes > BYTES_MAX {
                    return Err(TooLong);
                }
                self.data.push(value.to_owned());
            }
            "event" => self.is_error = value == "error",
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self, events: &mut Vec<Event>) {
        let (lines, is_error) = (std::mem::take(&mut self.data), std::mem::take(&mut self.is_error));
        self.data_bytes = 0;
        let data = lines.join("\n");
        if lines.len() > 1 && !is_whole(&data) {
            events.extend(lines.into_iter().map(|data| Event { data, is_error }));
        } else if !data.is_empty() {
            events.push(Event { data, is_error });
        }
    }
}

/// True for a whole JSON value and for the end mark.
fn is_whole(data: &str) -> bool {
    data.trim() == DONE || serde_json::from_str::<IgnoredAny>(data).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_read_however_they_are_cut() {
        let check = |stream: &str, expect: &[&str]| {
            for size in [1, 2, 3, 7, stream.len().max(1)] {
                let (mut events, mut got) = (Events::default(), Vec::new());
                for piece in stream.as_bytes().chunks(size) {
                    got.extend(events.take(piece).expect("it is short"));
                }
                got.extend(events.end().expect("it is short"));
                let data: Vec<&str> = got.iter().map(|event| event.data.as_str()).collect();
                assert_eq!(data, expect, "{stream:?} in pieces of {size}");
            }
        };
        check("", &[]);
        check("data: {\"a\":1}\n\ndata: [DONE]\n\n", &["{\"a\":1}", "[DONE]"]);
        check("data:{}\r\n\r\ndata:{}\r\rdata:[DONE]", &["{}", "{}", "[DONE]"]);
        check("\u{FEFF}data: {}\n\n", &["{}"]);
        check(": keep alive\n\nid: 7\nretry: 5\nevent: x\ndata: {}\n\n", &["{}"]);
        check("data: {\ndata: \"a\":\ndata: 1}\n\n", &["{\n\"a\":\n1}"]);
        check("data: {}\ndata: {}\ndata: [DONE]\n", &["{}", "{}", "[DONE]"]);
        check("data: {\"é\":1}\n\ndata\n\ndata:\n\n", &["{\"é\":1}"]);
        check("data: {nonsense\n\n", &["{nonsense"]);
        check("data: {nonsense\ndata: {}\n\n", &["{nonsense", "{}"]);
        check("data:  {}\n\nDATA: {}\n\n data: {}\n\n", &[" {}"]);
    }

    #[test]
    fn an_event_comes_as_soon_as_it_is_whole_and_has_a_limit() {
        let mut events = Events::default();
        assert_eq!(events.take(b"event: error\ndata: {}\n"), Ok(vec![Event { data: "{}".into(), is_error: true }]));
        assert_eq!(events.take(b"\ndata: {}\n"), Ok(vec![Event { data: "{}".into(), is_error: false }]));
        assert_eq!(Events::default().take(&vec![b'x'; BYTES_MAX + 1]), Err(TooLong));
        let line = [b"data: {", &vec![b' '; BYTES_MAX / 2][..], b"\n"].concat();
        assert_eq!(Events::default().take(&line.repeat(2)), Err(TooLong));
    }
}
