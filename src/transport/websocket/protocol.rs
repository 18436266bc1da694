//! Words between a session of messages and its driver: kinds of protocols, messages, facts, controls and outputs.
//!
//! A driver owns the socket and the clock. It calls [`on_open`](super::session::Session::on_open) when the handshake is
//! over, then gives every 20 ms a frame of its own voice, every message that arrives, the number of samples that still
//! wait to be played, and carries out the outputs in order.

use ringer_media::frame::RATE_HZ;
use ringer_media::rings::BACKLOG_S;
use ringer_media::seed::Seed;
use ringer_media::time::Time;
use serde_json::Value;

use super::rate_doubt::RateDoubt;

/// Most bytes of a message, unless the settings say otherwise.
pub const MAX_MESSAGE_BYTES: usize = 1_048_576;

/// Most bytes of a text message of the default protocol, unless the settings say otherwise.
pub const MAX_TEXT_BYTES: usize = 65_536;

/// Number of violations of the protocol after which the session closes with 1008.
pub const MAX_VIOLATIONS: u32 = 100;

/// Most marks that may wait for their audio to be played.
pub const MAX_OPEN_MARKS: usize = 1000;

/// Most samples of 16 kHz that may wait to be played: as many as whoever takes [`SessionOutput::Frames`] keeps.
pub const MAX_QUEUE: u64 = (BACKLOG_S * RATE_HZ as usize) as u64;

/// Protocols of messages, by the names of the setting `websocket_dialect`.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The engine's own protocol, for which `websocket_dialect` is null.
    Default,
    /// Base64 mu-law in JSON, numbered by strings.
    TwilioMediaStreams,
    /// The same, also with wider audio.
    SignalwireStream,
    /// Base64 payloads of RTP in JSON with underscores.
    TelnyxMediaStreaming,
    /// Base64 audio in JSON that names its format in each message of the agent.
    PlivoAudioStreaming,
    /// Base64 little-endian samples in JSON with underscores, 100 ms a message.
    ExotelAgentstream,
    /// Binary samples, JSON for control.
    VonageWebsocket,
    /// Binary mu-law of 200 ms, numbered JSON for control (version 2 with messages of bots).
    Audiohook,
    /// Binary frames of a PBX, control as JSON or plain text.
    ChanWebsocket,
    /// Binary frames of protocol buffers.
    PipecatProtobuf,
    /// Binary samples and nothing else.
    RawPcm16,
    /// A protocol by the settings of an adapter, for which no `websocket_dialect` stands.
    Platform,
}

impl Kind {
    /// Kinds that a dialect can have: all but the default protocol.
    pub const DIALECTS: [Kind; 10] = [
        Kind::TwilioMediaStreams,
        Kind::SignalwireStream,
        Kind::TelnyxMediaStreaming,
        Kind::PlivoAudioStreaming,
        Kind::ExotelAgentstream,
        Kind::VonageWebsocket,
        Kind::Audiohook,
        Kind::ChanWebsocket,
        Kind::PipecatProtobuf,
        Kind::RawPcm16,
    ];

    /// Returns the name that settings use; `default` for the default protocol, which no setting can name.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Default => "default",
            Kind::TwilioMediaStreams => "twilio_media_streams",
            Kind::SignalwireStream => "signalwire_stream",
            Kind::TelnyxMediaStreaming => "telnyx_media_streaming",
            Kind::PlivoAudioStreaming => "plivo_audio_streaming",
            Kind::ExotelAgentstream => "exotel_agentstream",
            Kind::VonageWebsocket => "vonage_websocket",
            Kind::Audiohook => "audiohook",
            Kind::ChanWebsocket => "chan_websocket",
            Kind::PipecatProtobuf => "pipecat_protobuf",
            Kind::RawPcm16 => "raw_pcm16",
            Kind::Platform => "platform",
        }
    }

    /// Returns the kind of a name in settings, which is case-sensitive; `None` when no dialect has it.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::DIALECTS.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the text of the refusal of a `websocket_dialect` that is neither a kind nor a name of the settings.
    pub fn unknown(name: &str) -> String {
        format!("Unknown websocket_dialect '{name}'")
    }
}

/// A message of a WebSocket (RFC 6455 5.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A message of UTF-8 text.
    Text(String),
    /// A message of plain bytes.
    Binary(Vec<u8>),
}

impl Message {
    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        match self {
            Message::Text(text) => text.len(),
            Message::Binary(bytes) => bytes.len(),
        }
    }

    /// True when the message holds no byte.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Sides of a session.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Role {
    /// The side that dials: it plays the carrier or the client.
    Caller,
    /// The side that is dialled: an agent's server.
    Agent,
}

/// Facts of a call that a session needs, fixed at its beginning.
#[derive(Clone, Debug)]
pub struct SessionFacts {
    /// Id of the simulation result; an agent learns it from the caller.
    pub result_id: u64,
    /// Number or address of the caller, empty when it has none.
    pub from: String,
    /// Number or address that is called, empty when it has none.
    pub to: String,
    /// Parameters of the agent that go beside the result id, in order.
    pub parameters: Vec<(String, String)>,
    /// Address that is dialled.
    pub url: String,
    /// User name of Basic authentication; `None`: none is set.
    pub username: Option<String>,
    /// Password of Basic authentication; `None`: none is set.
    pub password: Option<String>,
    /// Value of the header User-Agent.
    pub user_agent: String,
    /// Seed of ids, nonces and faults.
    pub seed: Seed,
    /// A point on the monotonic clock at which the wall clock was read.
    pub at: Time,
    /// Wall clock at [`SessionFacts::at`], in milliseconds since 1970.
    pub epoch_ms: i64,
    /// Most bytes of a message.
    pub max_message_bytes: usize,
    /// Most bytes of a text message of the default protocol.
    pub max_text_bytes: usize,
    /// Value of the header `traceparent` (W3C Trace Context); `None`: it is not sent.
    pub traceparent: Option<String>,
}

impl SessionFacts {
    /// Returns facts with the usual limits and without numbers, parameters and credentials.
    pub fn new(result_id: u64, url: &str, seed: Seed, at: Time, epoch_ms: i64) -> SessionFacts {
        SessionFacts {
            result_id,
            from: String::new(),
            to: String::new(),
            parameters: Vec::new(),
            url: url.to_owned(),
            username: None,
            password: None,
            user_agent: format!("Ringer/{}", env!("CARGO_PKG_VERSION")),
            seed,
            at,
            epoch_ms,
            max_message_bytes: MAX_MESSAGE_BYTES,
            max_text_bytes: MAX_TEXT_BYTES,
            traceparent: None,
        }
    }
}

/// Orders of the driver to a session.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionControl {
    /// An utterance of this side begins with the next frame.
    UtteranceStarted,
    /// The utterance of this side ended with the last frame, or was interrupted.
    UtteranceCompleted,
    /// This side presses a digit, with its length in milliseconds.
    Digit {
        /// One of `0` to `9`, `*`, `#`, `A` to `D`.
        digit: char,
        /// Duration of the tone that the message stands for.
        duration_ms: u32,
    },
    /// Audio of this side that the other side has not played yet is to be dropped. Agents only.
    Clear,
    /// The other side is to tell when it has played everything up to here. Agents only.
    Mark(String),
    /// Words of the utterance that begins, or has begun. Agents only.
    Words(String),
    /// Words that were said of an utterance that was interrupted. Agents only.
    Cut(String),
    /// The call ends in the usual way.
    Hangup,
    /// The program stops: the session ends with 1001.
    Shutdown,
    /// A fault of this side ends the session with 1011.
    Fault,
}

/// A result of a session that its driver carries out, or tells the call.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionOutput {
    /// Message to the other side.
    Send(Message),
    /// Audio of the other side at 16 kHz, to be played in real time behind everything given before.
    Frames(Vec<i16>),
    /// Everything that was given by [`SessionOutput::Frames`] and is not played yet is to be dropped.
    ClearFrames,
    /// Most samples of 16 kHz that go on their way before they are played, of those given by [`SessionOutput::Frames`].
    /// 0 is a pause; `None` is no limit, as at the beginning.
    HoldFrames(Option<u64>),
    /// The session is established: the other side has answered, spoken, or had 2 s to do so.
    Opened,
    /// Agents only: the caller told these facts of the call.
    Called(CallerFacts),
    /// The other side says that it begins to speak.
    SpeechStarted {
        /// Id of the utterance, given by the agent.
        utterance_id: String,
        /// True when this side's own utterance began less than 300 ms before, so that the message may come of its echo.
        follows_own: bool,
    },
    /// The other side says that it has ended an utterance which it had begun.
    SpeechCompleted {
        /// Id of the utterance, given by the agent.
        utterance_id: String,
    },
    /// Agents only: the caller has played everything up to this mark, or dropped it.
    MarkReached(String),
    /// The other side asked to drop its audio, with this number of samples of 16 kHz not played.
    Cleared {
        /// Samples of 16 kHz that were dropped.
        dropped: u64,
    },
    /// The other side pressed a digit.
    Digit(char),
    /// Text of the other side's words, as it tells them.
    Reported(String),
    /// The other side called one of its tools.
    ToolCalled {
        /// Name of the tool.
        name: String,
        /// Its arguments, mostly an object.
        parameters: Value,
        /// The answer that this side gave; null where another one gives it.
        output: Value,
    },
    /// The other side's own name of the call.
    CallNamed(String),
    /// The other side is about to end the session by a limit of its own.
    LimitNear,
    /// The session goes on at another connection.
    Resumed,
    /// An error that the other side told of; the call goes on.
    PeerError {
        /// Code in its own words.
        code: String,
        /// Message in its own words.
        message: String,
    },
    /// A message broke the protocol; it was dropped unless the code says otherwise.
    Violation {
        /// A code such as `NOT_JSON`.
        code: &'static str,
        /// Beginning of the message, without control characters and at most 200 characters long.
        excerpt: String,
        /// True if the message was dropped for it.
        is_refused: bool,
    },
    /// Audio was dropped because 60 s (or the protocol's own limit) already wait to be played.
    Overflowed {
        /// Samples of 16 kHz that were dropped.
        dropped: u64,
    },
    /// The other side's audio seems to have another sampling rate than the protocol says. This is told once.
    RateDoubted(RateDoubt),
    /// Event for the timeline or a log.
    Event {
        /// Name in small letters and underscores.
        name: &'static str,
        /// Members of the event.
        data: Value,
    },
    /// Values that the agent hands over with the end of the call.
    Variables(Value),
    /// The protocol has ended the call. A [`SessionOutput::Close`] or [`SessionOutput::Drop`] follows, at once or
    /// later.
    Ended(SessionEnd),
    /// The socket is to be closed with this code and reason.
    Close {
        /// Status code (RFC 6455 7.4).
        code: u16,
        /// Reason, at most 123 bytes.
        reason: &'static str,
    },
    /// The connection is to be given up without a closing handshake.
    Drop,
}

/// Facts that a caller tells the agent's side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallerFacts {
    /// Id of the simulation result, where the message holds it.
    pub result_id: Option<String>,
    /// Name of the stream or session.
    pub stream_id: String,
    /// Number or address of the caller.
    pub from: String,
    /// Number or address that is called.
    pub to: String,
}

/// Reasons for which a protocol ends its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// This side ended it.
    Own,
    /// The other side ended it in order.
    Peer,
    /// The other side does not accept the credentials.
    Unauthorized,
    /// The other side did not answer the opening message in time.
    NoAnswer,
    /// The other side told of an error that ends the call.
    PeerFault(String),
    /// The other side told of an error by which a limit of its own ends the session.
    Limit(String),
    /// The agent did not begin to speak in its turn.
    NoStart,
    /// A rule of the protocol was broken so that the carrier hangs up, or the line was lost on purpose.
    Dropped(String),
    /// More than [`MAX_VIOLATIONS`] messages broke the protocol.
    TooManyViolations,
    /// A fault of this side.
    OwnFault,
}

/// Ways in which this side's digits reach the other side.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum DigitPath {
    /// Tones in the audio.
    Tones,
    /// Messages, for which [`SessionControl::Digit`] asks.
    Messages,
    /// Both messages and tones.
    Both,
}
