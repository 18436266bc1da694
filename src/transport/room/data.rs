//! Packets of the data channels, without IO: calls of tools, words that were recognised, digits, and streams of text.

mod streams;

use std::collections::VecDeque;
use std::time::Duration;

use prost::Message;
use ringer_media::time::Time;
use ringer_syntax::json::read_exact;
use serde_json::Value;

use self::streams::{Streams, Text};
use super::messages::{Data, DataPacket, SipDtmf, Transcription, UserPacket};
use crate::digits::digits_of;

/// Packets that are read within a second; further ones are counted.
const MOST_A_SECOND: u32 = 500;

/// Bytes of the longest text of an event; a longer one is cut.
pub(super) const MAX_TEXT: usize = 8192;

/// Characters of the longest name of a tool.
const MAX_NAME: usize = 256;

/// Topic of streams of recognised words.
const TRANSCRIPTION: &str = "lk.transcription";

/// Topic of streams of written messages.
const CHAT: &str = "lk.chat";

/// Texts that are remembered, so that one that is told in both forms is told once.
const REMEMBERED: usize = 16;

/// Time within which the same text in the other form is the same words.
const SAME_WITHIN: Duration = Duration::from_secs(10);

/// Digits by their codes (RFC 4733 3.2).
const DIGITS: &[u8; 16] = b"0123456789*#ABCD";

/// A call of a tool, as the agent's side tells it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Name of the tool.
    pub name: String,
    /// Arguments of the call; null when they are not told.
    pub parameters: Value,
    /// Result of the call; null when it is not told.
    pub output: Value,
    /// Milliseconds of the call after which it was made, when they are told.
    pub at_ms: Option<u32>,
}

/// Something that data packets tell.
#[derive(Clone, Debug, PartialEq)]
pub enum DataEvent {
    /// A tool was called.
    Tool(ToolCall),
    /// Words of the agent, as its side reports them.
    AgentText(String),
    /// Words of this side, as the agent's side understood them.
    CallerText(String),
    /// A written message of the agent.
    Chat(String),
    /// A digit of another participant.
    Digit(char),
}

/// Counts of data packets.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct DataCounts {
    /// Packets that were read.
    pub read: u64,
    /// Packets that are none of the protocol.
    pub malformed: u64,
    /// Packets of the topic of tools that are no call of a tool.
    pub bad_tools: u64,
    /// Packets that were one too many within a second.
    pub flooding: u64,
    /// Streams that were given up: too long, too many at once, or with a gap.
    pub broken_streams: u64,
}

/// Names by which packets are told apart.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Names<'a> {
    /// Identity of this side.
    pub own: &'a str,
    /// Name of the track of this side.
    pub own_track: &'a str,
    /// Identity of the agent.
    pub agent: &'a str,
    /// Topic whose packets are calls of tools.
    pub tool_topic: Option<&'a str>,
}

/// Form in which words were told.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Form {
    Packet,
    Stream,
}

/// Reader of data packets.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    streams: Streams,
    counts: DataCounts,
    second: Option<(Time, u32)>,
    remembered: VecDeque<(Time, Form, String)>,
}

impl Inbox {
    /// Reads a packet. Returns everything that it tells.
    pub(super) fn receive(&mut self, now: Time, bytes: &[u8], names: Names<'_>) -> Vec<DataEvent> {
        let (from, count) =
            self.second.filter(|(from, _)| now.since(*from) < Duration::from_secs(1)).unwrap_or((now, 0));
        self.second = Some((from, count.saturating_add(1)));
        if count >= MOST_A_SECOND {
            self.counts.flooding += 1;
            return Vec::new();
        }
        let Ok(packet) = DataPacket::decode(bytes) else {
            self.counts.malformed += 1;
            return Vec::new();
        };
        self.counts.read += 1;
        let sender = packet.participant_identity;
        match packet.value {
            Some(Data::User(user)) => self.take_user(&user, names).into_iter().collect(),
            Some(Data::SipDtmf(dtmf)) => read_digits(&dtmf).into_iter().map(DataEvent::Digit).collect(),
            Some(Data::Transcription(words)) => self.take_words(now, words, names),
            Some(Data::StreamHeader(header)) => {
                let text = self.streams.begin(sender, header, |topic| is_read(topic, names));
                self.take_text(now, text, names)
            }
            Some(Data::StreamChunk(chunk)) => {
                self.streams.go_on(&sender, chunk);
                Vec::new()
            }
            Some(Data::StreamTrailer(trailer)) => {
                let text = self.streams.finish(&sender, trailer);
                self.take_text(now, text, names)
            }
            Some(Data::Chat(chat)) if sender == names.agent => vec![DataEvent::Chat(shorten(&chat.message))],
            Some(Data::Chat(_)) | None => Vec::new(),
        }
    }

    /// Returns the counts up to now.
    pub(super) fn counts(&self) -> DataCounts {
        DataCounts { broken_streams: self.streams.broken_count(), ..self.counts }
    }

    fn take_user(&mut self, user: &UserPacket, names: Names<'_>) -> Option<DataEvent> {
        if user.topic.is_none() || user.topic.as_deref() != names.tool_topic {
            return None;
        }
        self.take_tool(&user.payload)
    }

    fn take_tool(&mut self, bytes: &[u8]) -> Option<DataEvent> {
        match read_tool(bytes) {
            Ok(call) => Some(DataEvent::Tool(call)),
            Err(why) => {
                self.counts.bad_tools += 1;
                tracing::info!(bytes = bytes.len(), "a packet of the topic of tools is no call of a tool: {why}");
                None
            }
        }
    }

    fn take_words(&mut self, now: Time, words: Transcription, names: Names<'_>) -> Vec<DataEvent> {
        let is_own = words.transcribed_participant_identity == names.own || words.track_id == names.own_track;
        let is_agents = words.transcribed_participant_identity == names.agent;
        let finals = words.segments.into_iter().filter(|segment| segment.is_final && !segment.text.trim().is_empty());
        let texts: Vec<String> = finals.map(|segment| shorten(&segment.text)).collect();
        let news = texts.into_iter().filter(|text| self.is_new(now, Form::Packet, text));
        match (is_own, is_agents) {
            (true, _) => news.map(DataEvent::CallerText).collect(),
            (false, true) => news.map(DataEvent::AgentText).collect(),
            (false, false) => Vec::new(),
        }
    }

    fn take_text(&mut self, now: Time, text: Option<Text>, names: Names<'_>) -> Vec<DataEvent> {
        let Some(text) = text else { return Vec::new() };
        if Some(text.topic.as_str()) == names.tool_topic {
            return self.take_tool(text.content.as_bytes()).into_iter().collect();
        }
        let words = shorten(&text.content);
        if words.trim().is_empty() {
            return Vec::new();
        }
        let is_own = text.sender == names.own || text.track().is_some_and(|track| track == names.own_track);
        let event = match text.topic.as_str() {
            CHAT if text.sender == names.agent => Some(DataEvent::Chat(words)),
            TRANSCRIPTION if text.is_final() && self.is_new(now, Form::Stream, &words) => match is_own {
                true => Some(DataEvent::CallerText(words)),
                false if text.sender == names.agent => Some(DataEvent::AgentText(words)),
                false => None,
            },
            _ => None,
        };
        event.into_iter().collect()
    }

    /// Returns false for words that were just told in the other form: agents that know both send both.
    fn is_new(&mut self, now: Time, form: Form, text: &str) -> bool {
        let plain: String = text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        let is_same = |(at, other, known): &(Time, Form, String)| {
            *other != form && *known == plain && now.since(*at) < SAME_WITHIN
        };
        if let Some(at) = self.remembered.iter().position(is_same) {
            self.remembered.remove(at);
            return false;
        }
        if self.remembered.len() >= REMEMBERED {
            self.remembered.pop_front();
        }
        self.remembered.push_back((now, form, plain));
        true
    }
}

/// True for streams whose content is read.
fn is_read(topic: &str, names: Names<'_>) -> bool {
    topic == TRANSCRIPTION || topic == CHAT || names.tool_topic == Some(topic)
}

/// Returns the packet of a digit; `None` for one that the protocol does not have.
pub(super) fn packet_of_digit(digit: char) -> Option<DataPacket> {
    let code = DIGITS.iter().position(|known| char::from(*known) == digit.to_ascii_uppercase())?;
    let digit = SipDtmf { code: code as u32, digit: digit.to_ascii_uppercase().to_string() };
    Some(DataPacket { value: Some(Data::SipDtmf(digit)), ..DataPacket::default() })
}

/// Returns the digits of a packet: those of its text where it has one, else the one of its code.
fn read_digits(packet: &SipDtmf) -> Vec<char> {
    if !packet.digit.is_empty() {
        return digits_of(&packet.digit).unwrap_or_default();
    }
    let digit = usize::try_from(packet.code).ok().and_then(|code| DIGITS.get(code));
    digit.map(|digit| char::from(*digit)).into_iter().collect()
}

/// Reads a call of a tool: `{name, parameters, output, start_offset_ms}`, of which only the name is needed.
fn read_tool(bytes: &[u8]) -> Result<ToolCall, &'static str> {
    let Some(Value::Object(call)) = read_exact(bytes) else { return Err("it is no JSON object") };
    let name = call.get("name").and_then(Value::as_str).map(str::trim).filter(|name| !name.is_empty());
    let name = name.ok_or("it has no name")?;
    if name.chars().count() > MAX_NAME {
        return Err("its name has more than 256 characters");
    }
    let at_ms = match call.get("start_offset_ms") {
        None | Some(Value::Null) => None,
        Some(at) => {
            let at = at.as_f64().filter(|at| (0.0..=f64::from(u32::MAX)).contains(at));
            Some(at.ok_or("its start_offset_ms is no number of milliseconds")? as u32)
        }
    };
    let value = |key: &str| call.get(key).cloned().unwrap_or(Value::Null);
    Ok(ToolCall { name: name.to_owned(), parameters: value("parameters"), output: value("output"), at_ms })
}

/// Returns a text of at most [`MAX_TEXT`] bytes.
fn shorten(text: &str) -> String {
    text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
}

#[cfg(test)]
mod tests;
