//! The one vocabulary of what happened in a call. Recording, metrics, API, tests and logs all read these.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::channel_event::ChannelEvent;
use super::io::Word;
use super::utterance::Spoken;
use crate::echo::EchoFigures;
use crate::frame::Sample;
use crate::line_tones::LineToneKind;

/// Whose doing an event was.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// This side: the Digital Human (in the sample agent: the agent itself).
    Dh,
    /// The far side.
    Agent,
    /// The engine.
    Engine,
}

impl Side {
    /// Every side.
    pub const ALL: [Side; 3] = [Side::Dh, Side::Agent, Side::Engine];

    /// The wire name.
    pub fn name(self) -> &'static str {
        match self {
            Side::Dh => "dh",
            Side::Agent => "agent",
            Side::Engine => "engine",
        }
    }

    /// The side of a wire name; `None` for any other text.
    pub fn from_name(name: &str) -> Option<Side> {
        Side::ALL.into_iter().find(|side| side.name() == name)
    }
}

/// A short text that is nearly always one of the engine's own; one that was read back is owned.
pub type Code = Cow<'static, str>;

/// An event on the call's sample clock. Its wire form has the members `sample`, `offset_ms`, `event`, `side` and `data`.
///
/// Reading one never fails for its name or its data: what is not known, or has another form, is [`What::Unknown`].
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Position; negative before connect.
    pub sample: Sample,
    /// Whose doing.
    pub side: Side,
    /// What.
    pub what: What,
}

/// An event with its number in the timeline: one line of it. The wire form has the member `seq` before those of the event.
#[derive(Clone, Debug, PartialEq)]
pub struct TimelineEntry {
    /// 0-based, in the order in which the events became known.
    pub seq: i64,
    /// The event that has this number.
    pub event: Event,
}

impl std::ops::Deref for TimelineEntry {
    type Target = Event;

    fn deref(&self) -> &Event {
        &self.event
    }
}

/// What happened. `name` gives the wire name, `data` the wire data.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// INVITE sent.
    Dialing { address: String },
    /// 180 or the like.
    Ringing { address: Option<String>, code: u16 },
    /// Media before the answer.
    EarlyMedia { address: Option<String>, code: u16 },
    /// Sample 0; `address` is what was dialled.
    Connected { address: Option<String>, code: u16, codec: Code },
    /// The end.
    Ended { by: Code, reason: Code, sip_code: Option<u16>, q850_cause: Option<u16>, close_code: Option<u16> },
    /// This side's words begin.
    SpeechStarted { utterance_id: u32, text: String, kind: Kind },
    /// This side's words end; `text` is what was really said.
    SpeechEnded {
        utterance_id: u32,
        text: Spoken,
        kind: Kind,
        interrupted: bool,
        exact: bool,
        /// Where their audio was silent for 300 ms or more: first sample and one past the last, in order.
        pauses: Box<[[Sample; 2]]>,
    },
    /// The far side's true onset.
    AgentSpeechStarted {
        /// When it was heard, milliseconds from sample 0.
        arrival_ms: f64,
        /// An extension is still being dialled.
        pre_conversation: bool,
    },
    /// The far side's true end.
    AgentSpeechEnded {
        /// When it was heard, milliseconds from sample 0.
        arrival_ms: f64,
        /// An extension is still being dialled.
        pre_conversation: bool,
    },
    /// The far side's turn is over and its text is final.
    TurnEnded {
        text: String,
        from_sample: Sample,
        end_sample: Sample,
        confidence: Option<f32>,
        words: Box<[Word]>,
        /// Milliseconds of it, pauses included, that were lost or late and made up.
        concealed_ms: u64,
        /// Why words of it are missing: `no_recognizer`, `recognizer_late`, `not_understood` or the recognizer's own code.
        missing: Option<Code>,
        /// It was answered before its text was final.
        late: bool,
        /// Its text is that which the other side told by messages, since no words were recognised.
        reported: bool,
    },
    /// From here on this side speaks the other side's language, which the turn that began at `from_sample` has shown.
    LanguageTaken { language: String, by: Code, from_sample: Sample },
    /// Running text.
    TranscriptPartial { text: String },
    /// Overlapping speech; stamped at its onset, emitted when `stop_ms` is known or never will be.
    BargeIn { by: Side, overlap_ms: u32, stop_ms: Option<u32> },
    /// Speech that was not ready at its due time.
    LateTurn { late_ms: u32, utterance_id: u32 },
    /// A scripted rule fired.
    ScriptedResponse { index: usize, match_type: Code, response_type: Code },
    /// A cut-in is planned.
    InterruptionDecided { kind: Code, u: f64, at_ms: u32, keyword: Option<String> },
    /// The mind chose silence, for so long at the most.
    SilenceTool { seconds: u32 },
    /// The one re-prompt.
    Reprompt { n: u32 },
    /// One digit, at its onset.
    DtmfSent { digit: char, method: Code, duration_ms: u32 },
    /// One digit, at its onset.
    DtmfReceived { digit: char, method: Code, duration_ms: u32 },
    /// The other side put this one on hold.
    Held,
    /// It took it back.
    Unheld,
    /// The other side's re-INVITE or UPDATE was answered with `code`.
    SessionAnswered { code: u16 },
    /// The other side asked for a transfer to `to`.
    Transfer { to: String, accepted: bool },
    /// The target of an accepted transfer was called: `answered`, it is the other side from here on; with any other outcome the call
    /// goes on as it was, or ends where the other side has left.
    Transferred { to: String, outcome: Code, code: u16 },
    /// A sound of this side that asks for no reaction, at its first sample. What is heard of it is told as speech.
    Probe { kind: ProbeKind },
    /// A tone of the telephone network, at its first sample; `cadence_ms`: tone and pauses in turn.
    LineTone { kind: LineToneKind, frequency_hz: u32, cadence_ms: Box<[u32]> },
    /// A beep after speech, as answering machines have it, at its first sample.
    AnsweringMachine { greeting_from_sample: Sample, greeting_end_sample: Sample, beep_ms: u32, frequency_hz: u32 },
    /// Once per second.
    Network { received: u64, lost: u64, late: u64, jitter_ms: f64 },
    /// This side's own words come back; from here on they are taken out of what is heard.
    Echo(EchoFigures),
    /// The far side's audio was missing and was made up, for more than 40 ms; stamped at its onset.
    RxUnderrun { duration_ms: u32 },
    /// Packets that came, and were dropped because more came at once than the jitter buffer holds.
    RxOverflow { packets: u64 },
    /// Ticks that were more than 20 ms late.
    LateFrames { count: u64 },
    /// A note of the mind or of a provider: `late_first_token`, `fallback_speaker`, `answer_broke_off`, `meaning_late`,
    /// `meaning_not_told`, `recognizer_late`, `synthesizer_failed`, of the transport: `dtmf_info_refused`, `codec_change_not_followed`, of
    /// what arrives and is not heard ([`crate::leg::Unheard`]), or of the probes: `probe_not_ready`, `probe_words_do_not_fit`. `why` is for a
    /// person, and may be empty.
    Note { code: Code, why: String },
    /// A message of this side, in a written conversation.
    MessageSent { message_id: Option<String>, text: String, channel: Option<String>, kind: Kind },
    /// A message of the far side.
    MessageReceived { message_id: Option<String>, text: String, channel: Option<String> },
    /// The far side's turn of a written conversation is over: all messages that belong together.
    TurnWritten { text: String, from_sample: Sample, end_sample: Sample, channel: String },
    /// The far side called one of its tools.
    ToolCall(Box<ToolCall>),
    /// How the far side went through a step of a playback; `None`: nobody has judged it.
    PlaybackStep { index: usize, passed: Option<bool> },
    /// The other side told something by a message of the channel.
    Channel(Box<ChannelEvent>),
    /// An event of another name or another form, as older and newer releases write them: it is kept as it stands.
    Unknown(Box<Unknown>),
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The name of the tool.
    pub name: Code,
    /// Its arguments, mostly an object.
    pub parameters: Value,
    /// Its answer; null when none is known.
    pub output: Value,
    /// Source of the call: `conversation`, for one.
    pub source: Option<Code>,
}

/// An event that was read, and has not the known form.
#[derive(Clone, Debug, PartialEq)]
pub struct Unknown {
    /// The wire name of the event.
    pub event: String,
    /// The wire name of its side, where that is none of [`Side::ALL`].
    pub side: Option<String>,
    /// The wire data, whatever it is.
    pub data: Value,
    /// The part of it that is known; see [`Event::reading`].
    pub(super) reading: Option<What>,
}

/// Number of an utterance that is not told. No utterance of a call has it.
pub const NO_UTTERANCE: u32 = u32::MAX;

/// What an utterance is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// An answer.
    Turn,
    /// First words.
    Opening,
    /// Cutting in.
    Interruption,
    /// A scripted response.
    Scripted,
    /// After silence.
    Reprompt,
    /// A filler while the mind is late.
    Filler,
    /// A sound that asks for no reaction: no turn.
    Probe,
}

/// What a probe is: a sound of this side while the other side speaks, which that side should let pass.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum ProbeKind {
    /// "Mm-hmm".
    Backchannel,
    /// A cough, a sniff.
    VocalTic,
    /// A sentence to somebody else.
    NonDirected,
}

impl ProbeKind {
    /// Every kind.
    pub const ALL: [ProbeKind; 3] = [ProbeKind::Backchannel, ProbeKind::VocalTic, ProbeKind::NonDirected];

    /// The wire name.
    pub fn name(self) -> &'static str {
        match self {
            ProbeKind::Backchannel => "backchannel",
            ProbeKind::VocalTic => "vocal_tic",
            ProbeKind::NonDirected => "non_directed",
        }
    }

    /// The kind of a wire name; `None` for any other text.
    pub fn from_name(name: &str) -> Option<ProbeKind> {
        ProbeKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}
