//! Events of a call, read by recording, metrics, API, tests and logs alike.

use std::borrow::Cow;
use std::ops::Deref;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::channel_event::ChannelEvent;
use crate::echo::EchoFigures;
use crate::frame::Sample;
use crate::line_tones::LineToneKind;

/// The side that an event belongs to.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// This side: the Digital Human (in the sample agent: the agent itself).
    Dh,
    /// The other side: the agent (in the sample agent: the caller).
    Agent,
    /// This program, apart from either side of the conversation.
    Engine,
}

impl Side {
    /// All sides, in the order of their declaration.
    pub const ALL: [Side; 3] = [Side::Dh, Side::Agent, Side::Engine];

    /// Returns the name of the side in timelines.
    pub fn name(self) -> &'static str {
        match self {
            Side::Dh => "dh",
            Side::Agent => "agent",
            Side::Engine => "engine",
        }
    }

    /// Returns the side of this name; `None` for any other text.
    pub fn from_name(name: &str) -> Option<Side> {
        Side::ALL.into_iter().find(|side| side.name() == name)
    }
}

/// A short text that is nearly always one of the engine's own; one that was read back is owned.
pub type Code = Cow<'static, str>;

/// An event on the call's sample clock. In JSON it has the members `sample`, `offset_ms`, `event`, `side` and `data`.
///
/// Reading one never fails for its name or its data: an unknown name, or another form, is [`EventKind::Unknown`].
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Position on the sample clock, 16,000 a second; negative before connect.
    pub sample: Sample,
    /// Side that the event belongs to.
    pub side: Side,
    /// Kind of the event, with its data.
    pub what: EventKind,
}

/// An event with its number in the timeline: one line of it. In JSON the member `seq` stands before those of the event.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineEntry {
    /// Number of the entry from 0, in the order in which the events became known.
    pub seq: i64,
    /// The event that has this number.
    pub event: Event,
}

impl Deref for TimelineEntry {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.event
    }
}

/// Kind of an event, with its data. `name` and `data` give their form in timelines.
#[derive(Clone, Debug, PartialEq)]
pub enum EventKind {
    /// The call is being placed: INVITE was sent.
    Dialing { address: String },
    /// The other side rings: a provisional response without media.
    Ringing { address: Option<String>, code: u16 },
    /// The other side sends media before the answer.
    EarlyMedia { address: Option<String>, code: u16 },
    /// The other side can speak from here on, before the call is up: the socket is open and the start of the session
    /// was sent, or the other side's track is published. Without this event it can speak from sample 0 on.
    Ready,
    /// The call is up, at sample 0; `address` is the one that was called.
    Connected { address: Option<String>, code: u16, codec: Code },
    /// The call is over; nothing follows.
    Ended { by: Code, reason: Code, sip_code: Option<u16>, q850_cause: Option<u16>, close_code: Option<u16> },
    /// The words of this side begin.
    SpeechStarted { utterance_id: u32, text: String, kind: Kind },
    /// The words of this side end; `text` is what was really said.
    SpeechEnded {
        utterance_id: u32,
        text: Spoken,
        kind: Kind,
        interrupted: bool,
        exact: bool,
        /// Pauses of 300 ms or more in their audio, in order: first sample of each and one past its last.
        pauses: Box<[[Sample; 2]]>,
    },
    /// The other side begins to speak, at its true onset.
    AgentSpeechStarted {
        /// Time at which it was heard, milliseconds from sample 0.
        arrival_ms: f64,
        /// True while an extension is still being dialled.
        pre_conversation: bool,
    },
    /// The other side ceases to speak, at its true end.
    AgentSpeechEnded {
        /// Time at which it was heard, milliseconds from sample 0.
        arrival_ms: f64,
        /// True while an extension is still being dialled.
        pre_conversation: bool,
    },
    /// A turn of the other side is over, and its text is final.
    TurnEnded {
        text: String,
        from_sample: Sample,
        end_sample: Sample,
        confidence: Option<f32>,
        words: Box<[Word]>,
        /// Milliseconds of it, pauses included, that were lost or late and concealed.
        concealed_ms: u64,
        /// Reason why words of it are missing: `no_recognizer`, `recognizer_late`, `not_understood` or the recognizer's
        /// own code.
        missing: Option<Code>,
        /// True when it was answered before its text was final.
        late: bool,
        /// True when its text was told by messages of the other side, since no words were recognized.
        reported: bool,
    },
    /// This side speaks the other side's language from now on, which the turn that began at `from_sample` has shown.
    LanguageTaken { language: String, by: Code, from_sample: Sample },
    /// Text of the running turn, as far as it is recognized.
    TranscriptPartial { text: String },
    /// Both sides spoke at once. Stamped at the onset, emitted when `stop_ms` is known or never will be.
    BargeIn { by: Side, overlap_ms: u32, stop_ms: Option<u32> },
    /// The words of this side were not ready when they were due.
    LateTurn { late_ms: u32, utterance_id: u32 },
    /// A scripted rule acts.
    ScriptedResponse { index: usize, match_type: Code, response_type: Code },
    /// This side plans to interrupt; `u` is the number drawn, from 0 to 1.
    InterruptionDecided { kind: Code, u: f64, at_ms: u32, keyword: Option<String> },
    /// The mind chose silence, of at most `seconds`.
    SilenceTool { seconds: u32 },
    /// This side speaks again after mutual silence; `n` counts the times since the other side last spoke.
    Reprompt { n: u32 },
    /// This side sent a digit; stamped at its onset.
    DtmfSent { digit: char, method: Code, duration_ms: u32 },
    /// The other side sent a digit; stamped at its onset.
    DtmfReceived { digit: char, method: Code, duration_ms: u32 },
    /// The other side put the call on hold.
    Held,
    /// The other side ended its hold.
    Unheld,
    /// The other side's re-INVITE or UPDATE was answered with `code`.
    SessionAnswered { code: u16 },
    /// The other side asked for a transfer to `to`.
    Transfer { to: String, accepted: bool },
    /// The target of an accepted transfer was called: `answered`, it is the other side from here on; with any other
    /// outcome the call goes on as it was, or ends where the other side has left.
    Transferred { to: String, outcome: Code, code: u16 },
    /// A probe begins: a sound of this side that asks for no reaction. The words that are heard of it are reported as
    /// speech.
    Probe { kind: ProbeKind },
    /// A tone of the telephone network, at its first sample; `cadence_ms`: tone and pauses in turn.
    LineTone { kind: LineToneKind, frequency_hz: u32, cadence_ms: Box<[u32]> },
    /// A beep after speech, as answering machines have it, at its first sample.
    AnsweringMachine { greeting_from_sample: Sample, greeting_end_sample: Sample, beep_ms: u32, frequency_hz: u32 },
    /// Network figures since the start of the call, once a second.
    Network { received: u64, lost: u64, late: u64, jitter_ms: f64 },
    /// This side's own words come back; from here on they are removed from the received audio.
    Echo(EchoFigures),
    /// Audio of the other side was missing and concealed for more than 40 ms; stamped at its onset.
    RxUnderrun { duration_ms: u32 },
    /// Packets that were dropped on arrival, because the jitter buffer was full.
    RxOverflow { packets: u64 },
    /// Ticks that came more than 20 ms late.
    LateFrames { count: u64 },
    /// A note of the mind or of a provider: `late_first_token`, `fallback_speaker`, `answer_broke_off`, `rare_words`,
    /// `meaning_late`, `meaning_not_told`, `recognizer_late`, `synthesizer_failed`, of the transport:
    /// `dtmf_info_refused`, `codec_change_not_followed`, of what arrives and is not heard ([`crate::leg::Unheard`]), of
    /// the analysis: `speech_under_tone`, or of the probes: `probe_not_ready`, `probe_words_do_not_fit`. `why` is for a
    /// person, and may be empty.
    Note { code: Code, why: String },
    /// A message of this side, in a written conversation.
    MessageSent { message_id: Option<String>, text: String, channel: Option<String>, kind: Kind },
    /// A message of the other side, in a written conversation.
    MessageReceived { message_id: Option<String>, text: String, channel: Option<String> },
    /// A turn of the other side in a written conversation is over: all messages that belong together.
    TurnWritten { text: String, from_sample: Sample, end_sample: Sample, channel: String },
    /// The other side called one of its tools.
    ToolCall(Box<ToolCall>),
    /// Result of a step of a playback; `passed` is `None` while it is not judged.
    PlaybackStep { index: usize, passed: Option<bool> },
    /// The other side reported something by a message of the channel.
    Channel(Box<ChannelEvent>),
    /// An event of another name or another form, as older and newer releases write them: it is kept as it stands.
    Unknown(Box<Unknown>),
}

/// A recognized word with its place.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// Word as the recognizer writes it.
    pub text: String,
    /// First sample of the word.
    pub from: Sample,
    /// One past the last sample of the word.
    pub to: Sample,
    /// Confidence from 0 to 1; `None` when the recognizer gives none.
    pub confidence: Option<f32>,
}

/// Words of an utterance as they were meant to be, and as they were said with fillers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spoken {
    words: String,
    voiced: Option<String>,
}

impl Spoken {
    /// Returns these words, of which `voiced` was heard.
    pub(super) fn new(words: String, voiced: String) -> Spoken {
        Spoken { voiced: (voiced != words).then_some(voiced), words }
    }

    /// Returns the words that were meant to be said.
    pub fn as_str(&self) -> &str {
        &self.words
    }

    /// Returns all that was heard: those words, and the fillers between them.
    pub fn voiced_text(&self) -> &str {
        self.voiced.as_deref().unwrap_or(&self.words)
    }
}

impl From<String> for Spoken {
    fn from(words: String) -> Spoken {
        Spoken { words, voiced: None }
    }
}

impl Deref for Spoken {
    type Target = str;

    fn deref(&self) -> &str {
        &self.words
    }
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// Name of the tool.
    pub name: Code,
    /// Arguments of the call, mostly an object.
    pub parameters: Value,
    /// Answer of the tool; null when none is known.
    pub output: Value,
    /// Source of the call: `conversation`, for one.
    pub source: Option<Code>,
}

/// An event that was read, and has not the known form.
#[derive(Clone, Debug, PartialEq)]
pub struct Unknown {
    /// Name of the event as it was read.
    pub event: String,
    /// Name of its side as it was read, when it is none of [`Side::ALL`].
    pub side: Option<String>,
    /// Data of the event as it was read.
    pub data: Value,
    /// Part of it that is known; see [`Event::reading`].
    pub(super) reading: Option<EventKind>,
}

/// Utterance number of an event that tells none. No utterance of a call has it.
pub const NO_UTTERANCE: u32 = u32::MAX;

/// Purpose of an utterance.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An answer to the other side.
    Turn,
    /// The first words of the call.
    Opening,
    /// Words that interrupt the other side.
    Interruption,
    /// A response of a script.
    Scripted,
    /// Words after mutual silence.
    Reprompt,
    /// A filler while the mind is late.
    Filler,
    /// A sound that asks for no reaction; it is no turn.
    Probe,
}

/// Kind of a probe: a sound of this side while the other side speaks, at which that side should go on.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// A sign of listening, such as "Mm-hmm".
    Backchannel,
    /// A cough or a sniff.
    VocalTic,
    /// A sentence to somebody else.
    NonDirected,
}

impl ProbeKind {
    /// All kinds, in the order of their declaration.
    pub const ALL: [ProbeKind; 3] = [ProbeKind::Backchannel, ProbeKind::VocalTic, ProbeKind::NonDirected];

    /// Returns the name of the kind in timelines.
    pub fn name(self) -> &'static str {
        match self {
            ProbeKind::Backchannel => "backchannel",
            ProbeKind::VocalTic => "vocal_tic",
            ProbeKind::NonDirected => "non_directed",
        }
    }

    /// Returns the kind of this name; `None` for any other text.
    pub fn from_name(name: &str) -> Option<ProbeKind> {
        ProbeKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
