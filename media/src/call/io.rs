//! Inputs and outputs of a [`super::Call`].

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::channel_event::ChannelEvent;
use super::ending::{EndReason, Ending, RemoteEnd};
use super::event::{Code, Event, Word};
use super::spec::{Phrases, TimedBargeIn};
use crate::detected_language::DetectedLanguage;
use crate::frame::{Frame, SILENCE, Sample};
use crate::leg::LegParams;
use crate::rtp::srtp::SrtpParams;
use crate::time::Time;

/// Name of an effect until it is done or cancelled. Unique in a call, never 0.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct EffectId(pub u32);

/// One of the two sockets of a leg.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum MediaChannel {
    /// Socket of media and telephone events.
    Rtp,
    /// Socket of reports (RTCP).
    Rtcp,
}

/// Input of a call from its driver. After each `handle(now, input)`, `poll` is called until `None`.
#[derive(Debug)]
pub enum Input<'a> {
    /// Call control from the other side.
    Signal(Signal),
    /// A datagram, with the time at which the kernel received it.
    Packet {
        /// Socket that the datagram came in by.
        path: MediaChannel,
        /// Kernel receive time on the driver's clock.
        arrived: Time,
        /// Bytes of the datagram, unchanged.
        bytes: &'a [u8],
    },
    /// Audio of the other side, on a leg of PCM, in order and in pieces of any length.
    Frames {
        /// Receive time on the driver's clock.
        arrived: Time,
        /// Samples at the leg's rate.
        pcm: &'a [i16],
    },
    /// The other side takes back its audio that was not heard yet, on a leg of PCM.
    ClearFrames,
    /// The sending pass of a 20 ms tick; `now` is its *scheduled* time. A scheduled time that jumps by more than 20 ms
    /// tells that the ticks between were skipped.
    Tick {
        /// Time from the scheduled moment to the real one.
        late: Duration,
        /// Buffer of the driver that receives what is sent.
        sent: &'a mut Sent,
    },
    /// The time told by [`super::Call::due`] has come: packets that a bad connection holds back leave now.
    Release,
    /// The receiving pass of the same tick: decode, analyse, decide, record.
    Listen,
    /// Words of synthesized speech: those that were asked for, with fillers between them. Comes before its audio.
    Voiced(EffectId, String),
    /// Result of an effect, or a part of it.
    Done(EffectId, Effected),
    /// Order of the control API, or of the engine.
    Command(Command),
}

/// Audio of this side that a tick has sent, for the recording. Ticks that were skipped are silence, and samples after
/// [`Ending::samples`] are no part of the recording.
#[derive(Debug)]
pub struct Sent {
    /// Position of the first sample; `None` when nothing was sent.
    pub position: Option<Sample>,
    /// Samples as they were sent, before the codec.
    pub pcm: Frame,
    /// Words and tones before noise, audio quality and loss.
    pub clean: Frame,
}

impl Default for Sent {
    fn default() -> Sent {
        Sent { position: None, pcm: SILENCE, clean: SILENCE }
    }
}

/// Call control of the other side.
#[derive(Clone, Debug, PartialEq)]
pub enum Signal {
    /// The INVITE is on its way.
    Dialing {
        /// Address that is called.
        address: String,
    },
    /// Provisional response without media.
    Ringing {
        /// Status code of SIP.
        code: u16,
    },
    /// Media before the answer of the call.
    EarlyMedia {
        /// Status code of the channel: of SIP, or of HTTP where a WebSocket was opened (101).
        code: u16,
        /// Parameters of the media.
        leg: LegParams,
    },
    /// The other side can speak from now on, though the call is not up yet. Of several before the answer the last one
    /// counts; after it they are passed over.
    Ready,
    /// Media of the other side could come since this time, on a channel that was open before its answer. Sample 0 is
    /// then as many ticks before the first that sends, at most 10 s. After the answer it is passed over.
    UpSince(Time),
    /// The call is up: the answer arrived (caller), or ACK-able answer was sent (answerer).
    Answered {
        /// Status code of the channel: of SIP, or of HTTP where a WebSocket was opened (101).
        code: u16,
        /// Parameters of the media.
        leg: LegParams,
        /// True when a recognizer can follow this codec and language. When false, turns are taken without text.
        text: bool,
    },
    /// A digit came beside the media (SIP INFO). Before the answer it is passed over.
    Digit {
        /// One of 0-9, * and #, A-D.
        digit: char,
        /// Duration of the digit as the sender tells it, in milliseconds.
        duration_ms: u32,
    },
    /// A digit came as a message of the channel. Before the answer it is passed over.
    DigitMessage {
        /// One of 0-9, * and #, A-D.
        digit: char,
        /// Duration of the digit, in milliseconds; 0 when it is not told.
        duration_ms: u32,
    },
    /// The other side told something by a message of the channel. Before the answer it is passed over.
    Channel {
        /// The message. The effect of [`ChannelEvent::SpeechClaimed`] is found by the call.
        event: ChannelEvent,
        /// True when the message came less than 300 ms after the announcement of an utterance of this side.
        follows_own: bool,
    },
    /// Audio of the other side came faster than it is heard, and no longer fits.
    Overflowed {
        /// Frames of 20 ms that were dropped.
        frames: u64,
    },
    /// The other side did not take a digit of this side ([`Control::Digit`]).
    DigitRefused,
    /// The other side changed the session, and was answered. Before the answer of the call this changes early media.
    Renegotiated {
        /// Parameters of the media from now on.
        leg: LegParams,
    },
    /// The other side asked for another session or refreshed this one (re-INVITE, UPDATE), and was answered. Only a
    /// call that is up tells of it.
    SessionAnswered {
        /// SIP status code of the answer.
        code: u16,
    },
    /// The other side put the call on hold, or ended its hold. During a hold its audio counts as silence, and may be
    /// missing.
    Hold(bool),
    /// The other side left at this time and may come back, or is back (`None`). Nothing is asked of it meanwhile, and
    /// where it stays away the call ended at that time.
    Away(Option<Time>),
    /// The other side asks to be transferred (SIP REFER). It is answered by [`Control::Transfer`].
    Transfer {
        /// Address that this side is to call instead.
        to: String,
        /// True when the channel can and may call there: the call may go on with whoever answers.
        can_follow: bool,
    },
    /// The other side has left while the target of a transfer is being called: until the outcome nobody hears this
    /// side.
    LeftAlone,
    /// The call to the target of a transfer that was followed has its outcome.
    Transferred {
        /// The target that was called.
        to: String,
        /// `answered`, `refused`, `not_answered`, `unreachable` or `no_media`.
        outcome: Code,
        /// SIP status code of the outcome.
        code: u16,
        /// Parameters of the media of the target, which is the other side from now on; `None`: all stays as it was.
        leg: Option<LegParams>,
    },
    /// Keys of secure RTP that handshakes have brought so far, for legs whose parameters await them. None at all:
    /// another handshake began, and a leg that has keys keeps them until it is done.
    Keys {
        /// Keys of RTP, and of reports that have none of their own.
        rtp: Option<SrtpParams>,
        /// Keys of reports on a port of their own.
        reports: Option<SrtpParams>,
    },
    /// The other side ended or refused the call, or could not be reached.
    Ended(RemoteEnd),
}

/// Order from the control API or the engine.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Ends the call now, for this reason.
    Hangup(EndReason),
}

/// Output of a call for its driver, to be carried out in order.
#[derive(Debug)]
pub enum Output<'a> {
    /// Send this datagram by the socket of `path`.
    Packet {
        /// Socket to send it by.
        path: MediaChannel,
        /// Bytes of the datagram, borrowed from the leg.
        bytes: &'a [u8],
    },
    /// Send 20 ms of sound, on a leg of PCM.
    Frame {
        /// Sample position of the first sample.
        from: Sample,
        /// Samples at the leg's rate.
        pcm: &'a [i16],
    },
    /// An utterance of this side begins or is over, on a leg of PCM. Background noise and tones are none.
    Utterance {
        /// First sample of the frame in which it begins, or the end of the last frame of it.
        at: Sample,
        /// True at its beginning.
        begins: bool,
    },
    /// Drop frames that were handed out and have not been sent, on a leg of PCM: this side has fallen silent.
    ClearBuffered,
    /// Audio for the recognizer: 16 kHz, in order while a segment is open; a jitter buffer that becomes shallower, or
    /// stalls, makes `from` jump.
    Ears {
        /// Sample position of the first sample.
        from: Sample,
        /// Samples of 16 bits at 16 kHz.
        pcm: &'a [i16],
    },
    /// Audio for the recognizer that was heard just before the segment was confirmed (its onset lies in it).
    EarsPast {
        /// Sample position of the first sample.
        from: Sample,
        /// Samples of 16 bits at 16 kHz.
        pcm: Vec<i16>,
    },
    /// The next 20 ms of early media, before connect.
    Early(&'a [i16]),
    /// Audio of the other side's part of the recording, at most 20 ms. It begins at position 0 and comes in order,
    /// without gaps.
    Heard(&'a [i16]),
    /// Call control for the other side.
    Control(Control),
    /// Work to perform; its result comes back as [`Input::Done`] with the same id.
    Effect(EffectId, Effect),
    /// Event for the timeline.
    Event(Event),
    /// The call is over, and no more output follows.
    Ended(Box<Ending>),
}

/// Call control for the other side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Give up an INVITE that is not answered.
    Cancel,
    /// Give up the call to the target of a transfer; [`Signal::Transferred`] tells that it was not answered.
    CancelTarget,
    /// End the call, and tell this cause.
    Hangup(HangupCause),
    /// Send this digit beside the media (SIP INFO).
    Digit {
        /// One of 0-9, * and #, A-D.
        digit: char,
        /// Length of the digit in milliseconds.
        duration_ms: u32,
    },
    /// Answer [`Signal::Transfer`] in this way.
    Transfer(Onward),
}

/// Answers to a transfer that the other side asks for (RFC 3515).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Onward {
    /// 603, and the call goes on.
    Decline,
    /// 202 and a NOTIFY of 200; [`Control::Hangup`] follows at once.
    Leave,
    /// 202; the target is called, and [`Signal::Transferred`] tells the outcome.
    Follow,
}

/// Reason for which this side ends a call, as the channel tells it to the other side.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum HangupCause {
    /// The conversation is over.
    Normal,
    /// A limit of time was reached.
    Timer,
    /// The program is being stopped.
    Shutdown,
    /// A fault of this side.
    Fault,
}

/// Work that takes time and is done outside.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The other side began to speak at `from`: open a recognizer stream; [`Output::Ears`] frames follow. Answers may
    /// be any number of `Partial`.
    Hear {
        /// True onset (the first `Ears` sample may be earlier).
        from: Sample,
    },
    /// The segment that `hear` opened is over at `to`: answer with one `Final`.
    Recognize {
        /// The `Hear` effect whose segment is over.
        hear: EffectId,
        /// True end of the segment.
        to: Sample,
    },
    /// Decide what to do next. Answer with `Move` in one or more parts.
    Think(Thought),
    /// Tell what the turn just heard means; answer with `Meant`, or with `Failed` where nobody can tell.
    Compare(Comparison),
    /// Speak these words; answer with `Audio` in one or more parts: 16 kHz, leading silence removed, at -26 dBov active
    /// level. Where fillers are added, [`Input::Voiced`] comes first.
    Synthesize {
        /// Exact words (no markup).
        text: String,
        /// Fillers and pauses may be added (false for scripted and fixed sentences).
        fluency: bool,
    },
    /// This is the final text of a turn of the other side, in a call that follows its language ([`super::CallSpec`]).
    /// It is told before the turn is answered, unless it comes too late for that, and again when the turn went on.
    /// Answer with [`Effected::Language`] when another language is to be spoken from now on, else not at all.
    Identify {
        /// True onset of the turn, which names it.
        turn: Sample,
        /// Text of the turn.
        text: String,
        /// Language of the text, as far as the recognizer tells it.
        detected: DetectedLanguage,
    },
    /// The effect is no longer wanted; nothing is answered for it.
    Cancel(EffectId),
}

/// Question to a mind about what this side does next.
#[derive(Clone, Debug, PartialEq)]
pub struct Thought {
    /// Reason why the mind is asked.
    pub purpose: Purpose,
    /// The conversation so far, oldest first, the turn just heard last.
    pub history: Vec<ConversationLine>,
    /// Words planned or begun by this side that were not said because the other side barged in.
    pub unsaid: Option<String>,
}

/// Phrases whose meaning the turn just heard may have.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Meanings that it may have, at least one.
    pub phrases: Vec<String>,
    /// The conversation so far, oldest first, the turn just heard last.
    pub history: Vec<ConversationLine>,
}

/// Reason why a mind is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    /// First words of the call.
    Opening,
    /// An answer to the turn just heard.
    Reply,
    /// Words to barge in with, at most 12.
    BargeIn,
    /// Yes or no: barge in now? Answer with `Move` whose `say` is empty for no.
    Contextual {
        /// Question to be answered, in words.
        prompt: String,
    },
    /// The other side has been silent for long while this side held its silence.
    StillThere,
    /// The pause that this side's own move asked for ([`Then::Pause`]) is over: it goes on, whoever spoke last.
    GoOn,
}

/// One line of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct ConversationLine {
    /// True for the other side's words.
    pub other: bool,
    /// Words as said or recognised; empty when a turn was heard without text.
    pub text: Arc<str>,
    /// Digits that came with or instead of words.
    pub digits: Arc<str>,
    /// True when this side was interrupted in it.
    pub interrupted: bool,
}

/// Result of an effect, or a part of it.
#[derive(Clone, Debug, PartialEq)]
pub enum Effected {
    /// Running text of an open segment.
    Partial(String),
    /// Final text of a segment.
    Final {
        /// Text of the segment; empty when nothing was understood.
        text: String,
        /// Words with times, when the recognizer gives them.
        words: Vec<Word>,
        /// Confidence from 0 to 1; `None` when the recognizer gives none.
        confidence: Option<f32>,
        /// Language of the words, as far as it is known.
        detected_language: DetectedLanguage,
    },
    /// The other side speaks this language: so does this side from now on.
    Language {
        /// Language code, such as `en` or `es`.
        language: String,
        /// Source of the finding: `recognizer` or `text`.
        by: &'static str,
        /// True onset of the turn that decided it.
        turn: Sample,
        /// Fixed sentences in it; `None`: it was spoken before, and what is ready stays.
        phrases: Option<Box<Phrases>>,
    },
    /// Synthesized speech, or a part of it.
    Audio {
        /// Samples at 16 kHz.
        pcm: Arc<[i16]>,
        /// True when no more parts follow.
        last: bool,
    },
    /// A mind's next move, or a part of it.
    Move(Move),
    /// The place of the first phrase whose meaning the turn has; `None`: it has none of them.
    Meant(Option<usize>),
    /// Something went wrong and was mended; the result still comes. `code` is stable, for the timeline.
    Note {
        /// Stable code, for example `synthesizer_unreachable` when another synthesizer speaks.
        code: &'static str,
        /// Explanation for a person, without secrets and speech; may be empty.
        why: String,
    },
    /// The effect could not be done. `code` is stable, for the timeline.
    Failed {
        /// Stable code, for example `synthesizer_failed`.
        code: &'static str,
        /// Explanation for a person, without secrets and speech; may be empty.
        why: String,
    },
}

/// Decision of a mind about what this side does next.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Move {
    /// Words to say now; empty for none.
    pub say: String,
    /// True to say the words exactly: no fillers or pauses are added, and they are marked as scripted or fixed.
    pub exact: bool,
    /// DTMF to send after the words.
    pub dtmf: String,
    /// Behaviour after the words and digits.
    pub then: Then,
    /// True when more parts of the same move follow.
    pub more: bool,
    /// Words that interrupt the other side's next turn; `None` for none.
    pub cut: Option<TimedBargeIn>,
    /// Notes for the timeline (`late_first_token`, `fallback_speaker`, `answer_broke_off`). Each is reported once, when
    /// the move is made.
    pub notes: Vec<&'static str>,
}

/// Behaviour of this side after a move.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Then {
    /// Listen for the other side.
    #[default]
    Listen,
    /// Stay silent instead of a turn, until the other side has spoken again (at most 60 s).
    StaySilent,
    /// Stay silent for this long, whatever the other side says, then be asked to go on ([`Purpose::GoOn`]).
    Pause {
        /// Length in milliseconds; 0 goes on at once.
        ms: u32,
    },
    /// Hang up 0.5 s after the words.
    Hangup,
    /// Hang up: everything that was to be played has been ([`EndReason::PlaybackEnd`]).
    Finish,
}
