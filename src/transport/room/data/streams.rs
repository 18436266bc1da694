//! Streams of text: a header, numbered pieces and a trailer. Of streams that nobody reads nothing is kept.

use std::collections::{HashMap, VecDeque};

use crate::room::messages::{StreamChunk, StreamHeader, StreamTrailer};

/// Streams that are open at once; the oldest is given up for a further one.
const MAX_OPEN: usize = 32;

/// Bytes of the longest stream.
const MAX_BYTES: usize = 64 << 10;

/// Names of the attributes of a transcription that are read.
const FINAL: &str = "lk.transcription_final";
const TRACK: &str = "lk.transcribed_track_id";

/// Operation of a stream that is a text of its own, or takes the place of one.
const TEXTS: [i32; 2] = [0, 1];

/// A text that is whole.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Text {
    pub sender: String,
    pub topic: String,
    pub content: String,
    attributes: HashMap<String, String>,
}

impl Text {
    /// True unless its words may still change.
    pub(super) fn is_final(&self) -> bool {
        self.attributes.get(FINAL).is_none_or(|is_final| is_final != "false")
    }

    /// Returns the name of the track that its words are in.
    pub(super) fn track(&self) -> Option<&str> {
        self.attributes.get(TRACK).map(String::as_str)
    }
}

/// A stream whose end has not come.
#[derive(Debug)]
struct Open {
    id: String,
    sender: String,
    topic: String,
    attributes: HashMap<String, String>,
    bytes: Vec<u8>,
    next_chunk: u64,
}

/// The open streams, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Streams {
    open: VecDeque<Open>,
    broken: u64,
}

impl Streams {
    /// Returns the number of streams that were given up.
    pub(super) fn broken_count(&self) -> u64 {
        self.broken
    }

    /// Begins a stream of a topic that is read. Returns the text where the header has all of it.
    pub(super) fn begin(
        &mut self,
        sender: String,
        header: StreamHeader,
        is_read: impl Fn(&str) -> bool,
    ) -> Option<Text> {
        let text = header.text_header?;
        if !is_read(&header.topic) || header.compression != 0 || !TEXTS.contains(&text.operation_type) {
            return None;
        }
        if header.total_length.is_some_and(|bytes| bytes > MAX_BYTES as u64) {
            self.broken += 1;
            return None;
        }
        let (topic, attributes) = (header.topic, header.attributes);
        if let Some(content) = header.inline_content {
            return self.text(Open { id: header.stream_id, sender, topic, attributes, bytes: content, next_chunk: 0 });
        }
        if self.open.len() >= MAX_OPEN {
            self.open.pop_front();
            self.broken += 1;
        }
        let id = header.stream_id;
        self.open.push_back(Open { id, sender, topic, attributes, bytes: Vec::new(), next_chunk: 0 });
        None
    }

    /// Takes a piece of a stream; one of a stream that is not read is passed over.
    pub(super) fn go_on(&mut self, sender: &str, chunk: StreamChunk) {
        let Some(at) = self.position(sender, &chunk.stream_id) else { return };
        let open = &mut self.open[at];
        let fits = open.bytes.len() + chunk.content.len() <= MAX_BYTES;
        if fits && chunk.chunk_index == open.next_chunk {
            open.bytes.extend_from_slice(&chunk.content);
            open.next_chunk += 1;
        } else if !fits || chunk.chunk_index > open.next_chunk {
            self.open.remove(at);
            self.broken += 1;
        }
    }

    /// Ends a stream. Returns its text; `None` for one that is not read or ends badly.
    pub(super) fn finish(&mut self, sender: &str, trailer: StreamTrailer) -> Option<Text> {
        let at = self.position(sender, &trailer.stream_id)?;
        let mut open = self.open.remove(at)?;
        open.attributes.extend(trailer.attributes);
        self.text(open)
    }

    fn position(&self, sender: &str, id: &str) -> Option<usize> {
        self.open.iter().position(|open| open.id == id && open.sender == sender)
    }

    fn text(&mut self, open: Open) -> Option<Text> {
        let Open { sender, topic, attributes, bytes, .. } = open;
        match String::from_utf8(bytes) {
            Ok(content) => Some(Text { sender, topic, content, attributes }),
            Err(_) => {
                self.broken += 1;
                None
            }
        }
    }
}
