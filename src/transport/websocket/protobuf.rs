//! Frames of protocol buffers (proto3): one message with a text, audio, transcription, JSON message or interruption in
//! it.

use prost::Message as _;
use ringer_media::clip::wav::HEADER_BYTES;
use ringer_media::time::Time;
use serde_json::{Value, json};

use super::core::{Core, Protocol};
use super::protocol::{Message, SessionControl, SessionOutput};
use super::voice::{Encoding, Point, Wire};

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

/// The message on the wire, of the schema of Pipecat's frames. Fields that are not used are passed over.
#[derive(Clone, PartialEq, prost::Message)]
struct Envelope {
    #[prost(oneof = "Body", tags = "1, 2, 3, 4, 5")]
    body: Option<Body>,
}

#[derive(Clone, PartialEq, prost::Oneof)]
enum Body {
    #[prost(message, tag = "1")]
    Text(Words),
    #[prost(message, tag = "2")]
    Audio(Samples),
    #[prost(message, tag = "3")]
    Transcription(Words),
    #[prost(message, tag = "4")]
    Message(Json),
    #[prost(message, tag = "5")]
    Interruption(Nothing),
}

// A field that is set is written even where it has the default value, as other sides have always got it.

#[derive(Clone, PartialEq, prost::Message)]
struct Words {
    #[prost(string, optional, tag = "3")]
    text: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Samples {
    #[prost(bytes = "vec", optional, tag = "3")]
    audio: Option<Vec<u8>>,
    #[prost(uint64, optional, tag = "4")]
    rate_hz: Option<u64>,
    #[prost(uint64, optional, tag = "5")]
    channels: Option<u64>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Json {
    #[prost(string, optional, tag = "1")]
    data: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Nothing {}

impl Frame {
    /// Reads a frame; `None` for bytes that are no frame. Of frames of different kinds in one message the last one
    /// counts (proto3).
    pub(super) fn parse(bytes: &[u8]) -> Option<Frame> {
        Some(match Envelope::decode(bytes).ok()?.body? {
            Body::Text(words) => Frame::Text(words.text.unwrap_or_default()),
            Body::Audio(Samples { audio, rate_hz, channels }) => Frame::Audio {
                audio: audio.unwrap_or_default(),
                rate_hz: u32::try_from(rate_hz.unwrap_or_default()).ok()?,
                channels: u32::try_from(channels.unwrap_or_default()).ok()?,
            },
            Body::Transcription(words) => Frame::Transcription(words.text.unwrap_or_default()),
            Body::Message(message) => Frame::Message(message.data.unwrap_or_default()),
            Body::Interruption(Nothing {}) => Frame::Interruption,
        })
    }

    /// Returns the frame as bytes.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        let body = match self {
            Frame::Text(text) => Body::Text(Words { text: Some(text) }),
            Frame::Audio { audio, rate_hz, channels } => Body::Audio(Samples {
                audio: Some(audio),
                rate_hz: Some(rate_hz.into()),
                channels: Some(channels.into()),
            }),
            Frame::Transcription(text) => Body::Transcription(Words { text: Some(text) }),
            Frame::Message(data) => Body::Message(Json { data: Some(data) }),
            Frame::Interruption => Body::Interruption(Nothing {}),
        };
        Envelope { body: Some(body) }.encode_to_vec()
    }
}

/// Code of frames where plain samples belong.
pub(super) const PROTOBUF_FRAMES: &str = "PROTOBUF_FRAMES";

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
    fn send(&self, core: &mut Core, frame: Frame) {
        core.send(Message::Binary(frame.into_bytes()));
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
                self.send(core, Frame::Message(answer.to_string()));
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
            self.send(core, Frame::Message(ready.to_string()));
        }
    }

    fn voice(&mut self, core: &mut Core, _now: Time, chunk: Vec<u8>) {
        let rate_hz = core.mouth.wire().rate_hz;
        self.send(core, Frame::Audio { audio: chunk, rate_hz, channels: 1 });
    }

    fn control(&mut self, core: &mut Core, _now: Time, control: SessionControl) {
        match control {
            SessionControl::Clear if !core.is_caller() => self.send(core, Frame::Interruption),
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
            assert_eq!(Frame::parse(&frame.clone().into_bytes()), Some(frame));
        }
    }

    /// The bytes of each frame that other sides have got since the protocol is spoken, fields with default values among
    /// them.
    #[test]
    fn frames_have_the_same_bytes_as_ever() {
        let audio = |audio: &[u8], rate_hz, channels| Frame::Audio { audio: audio.to_vec(), rate_hz, channels };
        for (frame, bytes) in [
            (Frame::Text("héllo".to_owned()), "0a081a0668c3a96c6c6f"),
            (Frame::Text(String::new()), "0a021a00"),
            (audio(&[1, 2, 3, 4], 16_000, 1), "120b1a040102030420807d2801"),
            (audio(&[], 48_000, 2), "12081a002080f7022802"),
            (audio(&[7; 200], 0, 0), &format!("12cf011ac801{}20002800", "07".repeat(200))),
            (Frame::Transcription("a".to_owned()), "1a031a0161"),
            (Frame::Message("{}".to_owned()), "22040a027b7d"),
            (Frame::Message(String::new()), "22020a00"),
            (Frame::Interruption, "2a00"),
        ] {
            assert_eq!(hex::encode(frame.clone().into_bytes()), bytes, "{frame:?}");
            assert_eq!(Frame::parse(&hex::decode(bytes).expect("hexadecimal digits")), Some(frame));
        }
    }

    #[test]
    fn frames_of_the_reference_are_read() {
        // protoc --encode=pipecat.Frame: audio {id: 300, name: "n", audio: "\1\2", sample_rate: 24000, num_channels: 1,
        // pts: 5}
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
