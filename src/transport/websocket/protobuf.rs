//! Frames of protocol buffers (proto3): one message with a text, audio, transcription, JSON message or interruption in it.

use ringer_media::clip::wav::HEADER_BYTES;
use ringer_media::time::Time;
use serde_json::{Value, json};

use super::core::{Core, Protocol};
use super::protocol::{Message, SessionControl, SessionOutput};
use super::voice::{Encoding, Point, Wire};

/// Wire types of protocol buffers.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const BYTES: u64 = 2;
const FIXED_32: u64 = 5;

/// Label of messages about the session.
const LABEL: &str = "rtvi-ai";

/// Frame of the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// Words of one side.
    Text(String),
    /// Samples, low byte first.
    Audio { audio: Vec<u8>, rate_hz: u32, channels: u32 },
    /// Recognised words of a user.
    Transcription(String),
    /// JSON within a text.
    Message(String),
    /// Audio that was not played yet is to be dropped.
    Interruption,
}

/// Value of a field.
enum Field<'b> {
    Number(u64),
    Bytes(&'b [u8]),
}

/// Returns the next number of variable length, and the bytes behind it.
fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f).checked_shl(7 * at as u32)?;
        if byte & 0x80 == 0 {
            return Some((value, &bytes[at + 1..]));
        }
    }
    None
}

/// Returns the next field with its number, and the bytes behind it.
fn field(bytes: &[u8]) -> Option<(u64, Field<'_>, &[u8])> {
    let (key, bytes) = varint(bytes)?;
    let (value, bytes) = match key & 7 {
        VARINT => {
            let (value, bytes) = varint(bytes)?;
            (Field::Number(value), bytes)
        }
        BYTES => {
            let (len, bytes) = varint(bytes)?;
            let (value, bytes) = bytes.split_at_checked(usize::try_from(len).ok()?)?;
            (Field::Bytes(value), bytes)
        }
        kind @ (FIXED_64 | FIXED_32) => {
            let (_, bytes) = bytes.split_at_checked(if kind == FIXED_64 { 8 } else { 4 })?;
            (Field::Number(0), bytes)
        }
        _ => return None,
    };
    (key >> 3 != 0).then_some((key >> 3, value, bytes))
}

/// Returns all fields; `None` when the bytes are none.
fn fields(mut bytes: &[u8]) -> Option<Vec<(u64, Field<'_>)>> {
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let (number, value, rest) = field(bytes)?;
        found.push((number, value));
        bytes = rest;
    }
    Some(found)
}

impl Frame {
    /// Reads a frame; `None` for bytes that are no frame. Of several frames in one message the last one counts (proto3).
    pub(super) fn parse(bytes: &[u8]) -> Option<Frame> {
        let mut frame = None;
        for (number, value) in fields(bytes)? {
            let Field::Bytes(body) = value else { continue };
            let body = fields(body);
            let text = |wanted: u64| -> Option<String> {
                let found = body.as_ref()?.iter().rev().find_map(|(number, value)| match value {
                    Field::Bytes(bytes) if *number == wanted => Some(*bytes),
                    _ => None,
                });
                String::from_utf8(found.unwrap_or_default().to_vec()).ok()
            };
            frame = Some(match number {
                1 => Frame::Text(text(3)?),
                2 => audio(body.as_ref()?)?,
                3 => Frame::Transcription(text(3)?),
                4 => Frame::Message(text(1)?),
                5 => {
                    body.as_ref()?;
                    Frame::Interruption
                }
                _ => continue,
            });
        }
        frame
    }

    /// Returns the frame as bytes.
    pub(super) fn write(&self) -> Vec<u8> {
        let mut body = Vec::new();
        let number = match self {
            Frame::Text(text) => {
                push_bytes(&mut body, 3, text.as_bytes());
                1
            }
            Frame::Audio { audio, rate_hz, channels } => {
                push_bytes(&mut body, 3, audio);
                push_number(&mut body, 4, u64::from(*rate_hz));
                push_number(&mut body, 5, u64::from(*channels));
                2
            }
            Frame::Transcription(text) => {
                push_bytes(&mut body, 3, text.as_bytes());
                3
            }
            Frame::Message(text) => {
                push_bytes(&mut body, 1, text.as_bytes());
                4
            }
            Frame::Interruption => 5,
        };
        let mut bytes = Vec::with_capacity(body.len() + 6);
        push_bytes(&mut bytes, number, &body);
        bytes
    }
}

fn audio(body: &[(u64, Field<'_>)]) -> Option<Frame> {
    let (mut audio, mut rate_hz, mut channels) = (Vec::new(), 0, 0);
    for (number, value) in body {
        match (number, value) {
            (3, Field::Bytes(bytes)) => audio = bytes.to_vec(),
            (4, Field::Number(value)) => rate_hz = u32::try_from(*value).ok()?,
            (5, Field::Number(value)) => channels = u32::try_from(*value).ok()?,
            _ => {}
        }
    }
    Some(Frame::Audio { audio, rate_hz, channels })
}

fn push_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

fn push_number(bytes: &mut Vec<u8>, number: u64, value: u64) {
    push_varint(bytes, number << 3 | VARINT);
    push_varint(bytes, value);
}

fn push_bytes(bytes: &mut Vec<u8>, number: u64, value: &[u8]) {
    push_varint(bytes, number << 3 | BYTES);
    push_varint(bytes, value.len() as u64);
    bytes.extend_from_slice(value);
}

/// Code of frames where plain samples belong.
pub const PROTOBUF_FRAMES: &str = "PROTOBUF_FRAMES";

/// True if a binary message is a frame of audio of this protocol, as plain samples hardly ever are.
pub(super) fn is_audio_frame(bytes: &[u8]) -> bool {
    matches!(Frame::parse(bytes), Some(Frame::Audio { audio, rate_hz, channels: 1..=8 })
        if RATES.contains(&rate_hz) && audio.len() + 64 >= bytes.len())
}

/// Sampling rates that frames of audio may have, in Hz.
const RATES: [u32; 5] = [8000, 16_000, 24_000, 44_100, 48_000];

/// The protocol of frames, for both roles.
#[derive(Debug, Default)]
pub(super) struct ProtobufProtocol;

impl ProtobufProtocol {
    fn send(&self, core: &mut Core, frame: &Frame) {
        core.send(Message::Binary(frame.write()));
    }

    /// Takes audio of any rate and of one or more channels, of which the first is heard.
    fn audio(&self, core: &mut Core, now: Time, audio: &[u8], rate_hz: u32, channels: u32) {
        if !RATES.contains(&rate_hz) || !(1..=8).contains(&channels) {
            return core.violation("MISSING_FIELD", &format!("audio of {rate_hz} Hz in {channels} channels"));
        }
        core.ears.set_wire(Wire { encoding: Encoding::L16Le, rate_hz });
        core.read_header(audio);
        // A plain header of a WAV file is passed over.
        let audio = if audio.starts_with(b"RIFF") { audio.get(HEADER_BYTES..).unwrap_or_default() } else { audio };
        if channels == 1 {
            return core.play(now, audio);
        }
        let first: Vec<u8> = audio.chunks_exact(2 * channels as usize).flat_map(|all| [all[0], all[1]]).collect();
        core.play(now, &first);
    }

    /// Takes a message about the session.
    fn message(&self, core: &mut Core, text: &str) {
        let Ok(message) = serde_json::from_str::<Value>(text) else { return core.violation("NOT_JSON", text) };
        if !message.is_object() {
            return core.violation("NOT_OBJECT", text);
        }
        let data = |name: &str| message.get("data").and_then(|data| data.get(name));
        match message.get("type").and_then(Value::as_str) {
            Some("bot-output") => {
                let is_spoken = match data("spoken_status").and_then(Value::as_str) {
                    Some(status) => status == "completed",
                    None => data("spoken") == Some(&Value::Bool(true)),
                };
                let is_whole = data("output_type").or_else(|| data("aggregated_by")) != Some(&json!("word"));
                if let Some(text) = data("text").and_then(Value::as_str).filter(|_| is_spoken && is_whole) {
                    core.push(SessionOutput::Reported(text.to_owned()));
                }
            }
            Some("error") => {
                let message = data("error").or_else(|| data("message")).and_then(Value::as_str).unwrap_or_default();
                core.push(SessionOutput::PeerError { code: "error".to_owned(), message: message.to_owned() });
            }
            Some("client-ready") if !core.is_caller() => {
                let answer = json!({ "label": LABEL, "type": "bot-ready", "id": message.get("id"),
                    "data": { "version": "2.2.0", "about": { "library": "ringer" } } });
                self.send(core, &Frame::Message(answer.to_string()));
            }
            Some(_) => {}
            None => core.violation("UNKNOWN_TYPE", text),
        }
    }
}

impl Protocol for ProtobufProtocol {
    fn on_open(&mut self, core: &mut Core, _now: Time) {
        core.sends = true;
        if core.is_caller() {
            let ready = json!({ "label": LABEL, "type": "client-ready", "id": "1",
                "data": { "version": "2.2.0", "about": { "library": "ringer" } } });
            self.send(core, &Frame::Message(ready.to_string()));
        }
    }

    fn voice(&mut self, core: &mut Core, _now: Time, chunk: Vec<u8>) {
        let rate_hz = core.mouth.wire().rate_hz;
        self.send(core, &Frame::Audio { audio: chunk, rate_hz, channels: 1 });
    }

    fn control(&mut self, core: &mut Core, _now: Time, control: SessionControl) {
        match control {
            SessionControl::Clear if !core.is_caller() => self.send(core, &Frame::Interruption),
            SessionControl::Hangup | SessionControl::Shutdown | SessionControl::Fault => core.close_for(&control),
            _ => {}
        }
    }

    fn receive(&mut self, core: &mut Core, now: Time, message: Message) {
        let bytes = match message {
            Message::Binary(bytes) => bytes,
            Message::Text(text) => return core.deviation("UNKNOWN_TYPE", &text),
        };
        let Some(frame) = Frame::parse(&bytes) else {
            return core.violation("MISSING_FIELD", &format!("{} bytes that are no frame", bytes.len()));
        };
        if let Frame::Audio { rate_hz, .. } = frame
            && RATES.contains(&rate_hz)
        {
            // The call begins with the rate of its first audio.
            core.ears.set_wire(Wire { encoding: Encoding::L16Le, rate_hz });
        }
        core.establish();
        match frame {
            Frame::Audio { audio, rate_hz, channels } => self.audio(core, now, &audio, rate_hz, channels),
            Frame::Interruption => drop(core.clear()),
            Frame::Message(text) => self.message(core, &text),
            Frame::Text(text) => core.push(SessionOutput::Reported(text)),
            // Words of this side's own voice.
            Frame::Transcription(_) => {}
        }
    }

    fn on_mark_played(&mut self, _core: &mut Core, _now: Time, _point: Point) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_read_back() {
        let frames = [
            Frame::Text("héllo".to_owned()),
            Frame::Audio { audio: vec![7; 1280], rate_hz: 16_000, channels: 1 },
            Frame::Audio { audio: Vec::new(), rate_hz: 48_000, channels: 2 },
            Frame::Transcription("a".to_owned()),
            Frame::Message("{}".to_owned()),
            Frame::Interruption,
        ];
        for frame in frames {
            assert_eq!(Frame::parse(&frame.write()), Some(frame));
        }
    }

    #[test]
    fn frames_of_the_reference_are_read() {
        // protoc --encode=pipecat.Frame: audio {id: 300, name: "n", audio: "\1\2", sample_rate: 24000, num_channels: 1, pts: 5}
        let audio = [18, 18, 8, 0xac, 2, 18, 1, b'n', 26, 2, 1, 2, 32, 0xc0, 0xbb, 1, 40, 1, 48];
        let whole: Vec<u8> = audio.into_iter().chain([5]).collect();
        assert_eq!(whole[1] as usize, whole.len() - 2);
        assert_eq!(Frame::parse(&whole), Some(Frame::Audio { audio: vec![1, 2], rate_hz: 24_000, channels: 1 }));
        // Unknown fields of every wire type are passed over.
        let unknown = [&[0x79_u8, 1, 2, 3, 4, 5, 6, 7, 8, 0x7d, 1, 2, 3, 4, 0x70, 1][..], whole.as_slice()].concat();
        assert_eq!(Frame::parse(&unknown), Frame::parse(&whole));
    }

    #[test]
    fn bytes_that_are_no_frame_are_refused() {
        let check = |bytes: &[u8]| assert_eq!(Frame::parse(bytes), None, "{bytes:?}");
        check(&[]);
        check(&[18]);
        check(&[18, 5, 1]);
        check(&[18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
        check(&[0xff; 11]);
        check(&[3, 1]);
        check(&[2, 0]);
        check(&[10, 3, 26, 1, 0xff]);
        check(&[18, 6, 32, 0xff, 0xff, 0xff, 0xff, 0x7f]);
        for len in 0..40 {
            check(&vec![0x80; len]);
        }
    }
}
