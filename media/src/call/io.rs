//! What goes into a [`super::Call`] and what comes out of it.

use std::sync::Arc;
use std::time::Duration;

use super::channel_event::ChannelEvent;
use super::ending::{EndReason, Ending, RemoteEnd};
use super::event::{Code, Event};
use super::spec::{CutIn, Phrases};
use crate::frame::{Frame, SILENCE, Sample};
use crate::leg::LegParams;
use crate::rtp::srtp::SrtpParams;
use crate::time::Time;
use crate::tongue::Tongue;

/// Names one asked effect until it is done or cancelled. Unique in a call, never 0.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct EffectId(pub u32);

/// Which of a leg's two sockets a packet belongs to.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Path {
    /// Media and telephone events.
    Rtp,
    /// Reports.
    Rtcp,
}

/// What a driver feeds in. `handle(now, input)`, then `poll` until `None`.
#[derive(Debug)]
pub enum Input<'a> {
    /// Call control from the other side.
    Signal(Signal),
    /// A datagram, with the time at which the kernel received it.
    Packet {
        /// Where it came in.
        path: Path,
        /// Kernel receive time on the driver's clock.
        arrived: Time,
        /// As received.
        bytes: &'a [u8],
    },
    /// Audio of the other side, on a leg of PCM, in order and in pieces of any length.
    Frames {
        /// Receive time on the driver's clock.
        arrived: Time,
        /// At the leg's rate.
        pcm: &'a [i16],
    },
    /// The other side takes back its audio that was not heard yet, on a leg of PCM.
    ClearFrames,
    /// The send pass of a 20 ms tick; `now` is the tick's *scheduled* time. A scheduled time that jumps by more than 20 ms
    /// says that the ticks between were skipped.
    Tick {
        /// How much later than scheduled the pass really runs.
        late: Duration,
        /// Lent for what is sent.
        sent: &'a mut Sent,
    },
    /// The time that [`super::Call::due`] told has come: packets that a bad connection holds back leave now.
    Release,
    /// The receive pass of the same tick: decode, analyse, decide, record.
    Listen,
    /// Synthesized speech will have these words: those that were asked for, with fillers between them. Comes before its audio.
    Voiced(EffectId, String),
    /// A (part of a) result of an effect.
    Done(EffectId, Effected),
    /// From the control API.
    Command(Command),
}

/// What a tick has sent: this side of the recording. Ticks that were skipped are silence, and what lies behind
/// [`Ending::samples`] is no longer part of it.
#[derive(Debug)]
pub struct Sent {
    /// Position of the first sample; `None` when nothing was sent.
    pub position: Option<Sample>,
    /// As sent, before the codec.
    pub pcm: Frame,
    /// Words and tones before noise, audio quality and loss.
    pub clean: Frame,
}

impl Default for Sent {
    fn default() -> Sent {
        Sent { position: None, pcm: SILENCE, clean: SILENCE }
    }
}

/// Call control as the far side did it.
#[derive(Clone, Debug, PartialEq)]
pub enum Signal {
    /// The INVITE is on its way.
    Dialing {
        /// Where to.
        address: String,
    },
    /// A provisional response without media.
    Ringing {
        /// SIP status code.
        code: u16,
    },
    /// Media before the answer.
    EarlyMedia {
        /// Status code of the channel: of SIP, or of HTTP where a WebSocket was opened (101).
        code: u16,
        /// Parameters of the media.
        leg: LegParams,
    },
    /// The call is up: the answer arrived (caller), or ACK-able answer was sent (answerer).
    Answered {
        /// Status code of the channel: of SIP, or of HTTP where a WebSocket was opened (101).
        code: u16,
        /// Parameters of the media.
        leg: LegParams,
        /// A recognizer can follow this codec (and language): without, turns are taken without text.
        text: bool,
    },
    /// A digit came beside the media (SIP INFO). Before the answer it is passed over.
    Digit {
        /// 0-9 * # A-D.
        digit: char,
        /// As the sender says.
        duration_ms: u32,
    },
    /// A digit came as a message of the channel. Before the answer it is passed over.
    DigitMessage {
        /// 0-9 * # A-D.
        digit: char,
        /// Duration of the key, in milliseconds; 0 when it is not told.
        duration_ms: u32,
    },
    /// The other side told something by a message of the channel. Before the answer it is passed over.
    Channel {
        /// The message. The effect of [`ChannelEvent::SpeechClaimed`] is found by the call.
        told: ChannelEvent,
        /// True when the message came less than 300 ms after the announcement of an utterance of this side.
        follows_own: bool,
    },
    /// Audio of the other side came faster than it is heard, and found no room any more.
    Overflowed {
        /// Frames of 20 ms that were dropped.
        frames: u64,
    },
    /// A digit of this side ([`Control::Digit`]) was not taken.
    DigitRefused,
    /// The other side changed the session, and it was answered. Before the answer it changes what is heard early.
    Renegotiated {
        /// What holds now.
        leg: LegParams,
    },
    /// The other side asked for another session or refreshed this one (re-INVITE, UPDATE), and was answered. Only a call that is
    /// up tells of it.
    SessionAnswered {
        /// SIP status code of the answer.
        code: u16,
    },
    /// The other side put this one on hold, or took it back: until then its audio is silence to the ears, and may be missing.
    Hold(bool),
    /// The other side asks to be transferred (SIP REFER). It is answered by [`Control::Transfer`].
    Transfer {
        /// Whom this side is to call instead.
        to: String,
        /// The channel is able and allowed to call there: the call may go on with whoever answers.
        can_follow: bool,
    },
    /// The other side has left while the target of a transfer is being called: until the outcome nobody hears this side.
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
    /// Keys of secure RTP that handshakes have brought so far, for legs whose parameters await them. None at all: another handshake
    /// began, and a leg that has keys keeps them until it is done.
    Keys {
        /// Keys of RTP, and of reports that have none of their own.
        rtp: Option<SrtpParams>,
        /// Keys of reports on a port of their own.
        reports: Option<SrtpParams>,
    },
    /// The far side ended, refused, or could not be reached.
    Ended(RemoteEnd),
}

/// From the control API or the engine itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// End now; the ending's reason is this.
    Hangup(EndReason),
}

/// What a driver is asked to carry out, in order.
#[derive(Debug)]
pub enum Output<'a> {
    /// Send this datagram.
    Packet {
        /// Which socket.
        path: Path,
        /// Borrowed from the leg.
        bytes: &'a [u8],
    },
    /// Send 20 ms of sound, on a leg of PCM.
    Frame {
        /// Sample position of the first sample.
        from: Sample,
        /// At the leg's rate.
        pcm: &'a [i16],
    },
    /// An utterance of this side begins or is over, on a leg of PCM. Background noise and tones are none.
    Utterance {
        /// First sample of the frame in which it begins, or the end of the last frame of it.
        at: Sample,
        /// True at its beginning.
        begins: bool,
    },
    /// Drop frames that were handed out and have not left yet, on a leg of PCM: this side has fallen silent.
    ClearBuffered,
    /// Audio for the recognizer: 16 kHz, in order while a segment is open; a jitter buffer that becomes shallower, or stalls,
    /// makes `from` jump.
    Ears {
        /// Sample position of the first sample.
        from: Sample,
        /// The samples.
        pcm: &'a [i16],
    },
    /// Audio for the recognizer that was heard just before the segment was confirmed (its onset lies in it).
    EarsPast {
        /// Sample position of the first sample.
        from: Sample,
        /// The samples.
        pcm: Vec<i16>,
    },
    /// The next 20 ms of early media, before connect.
    Early(&'a [i16]),
    /// What was heard, from position 0 on, in order, without gaps: the agent's side of the recording. At most 20 ms.
    Heard(&'a [i16]),
    /// Call control to the far side.
    Control(Control),
    /// Please perform this; the result comes back as [`Input::Done`] with the same id.
    Effect(EffectId, Effect),
    /// Something happened; belongs in the timeline.
    Event(Event),
    /// The call is over; nothing follows.
    Ended(Box<Ending>),
}

/// Call control to the far side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Control {
    /// Give up an unanswered INVITE.
    Cancel,
    /// Give up the call to the target of a transfer; [`Signal::Transferred`] tells that it was not answered.
    CancelTarget,
    /// End the call.
    Hangup(HangupCause),
    /// Send this digit beside the media (SIP INFO).
    Digit {
        /// 0-9 * # A-D.
        digit: char,
        /// Its length in milliseconds.
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
    /// The other side began to speak at `from`: open a recognizer stream; [`Output::Ears`] frames follow. Answers may be any
    /// number of `Partial`.
    Hear {
        /// True onset (the first `Ears` sample may be earlier).
        from: Sample,
    },
    /// The segment that `hear` opened is over at `to`: answer with one `Final`.
    Recognize {
        /// The `Hear` effect that this ends.
        hear: EffectId,
        /// True end.
        to: Sample,
    },
    /// Decide what to do next. Answer with `Move` in one or more parts.
    Think(Thought),
    /// Tell what the turn just heard means; answer with `Meant`, or with `Failed` where nobody can tell.
    Compare(Comparison),
    /// Speak these words; answer with `Audio` in one or more parts: 16 kHz, leading silence removed, at -26 dBov active level.
    /// Where fillers are added, [`Input::Voiced`] comes first.
    Synthesize {
        /// Exact words (no markup).
        text: String,
        /// Fillers and pauses may be added (false for scripted and fixed sentences).
        fluency: bool,
    },
    /// This is the final text of a turn of the other side, in a call that follows its language ([`super::CallSpec`]). It is told
    /// before the turn is answered, unless it comes too late for that, and again when the turn went on. Answer with
    /// [`Effected::Language`] when another language is to be spoken from now on, else not at all.
    Identify {
        /// True onset: names the turn.
        turn: Sample,
        /// Its words.
        text: String,
        /// What the recognizer says of their language.
        told: Tongue,
    },
    /// The effect is no longer wanted; nothing is answered for it.
    Cancel(EffectId),
}

/// What a mind is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Thought {
    /// Why.
    pub purpose: Purpose,
    /// The conversation so far, oldest first, the turn just heard last.
    pub history: Vec<Line>,
    /// Words planned or begun by this side that were not said because the other side cut in.
    pub unsaid: Option<String>,
}

/// What a turn is compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Meanings that it may have, at least one.
    pub phrases: Vec<String>,
    /// The conversation so far, oldest first, the turn just heard last.
    pub history: Vec<Line>,
}

/// Why a mind is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Purpose {
    /// First words of the call.
    Opening,
    /// An answer to the turn just heard.
    Reply,
    /// Words to cut in with, at most 12.
    CutIn,
    /// Yes or no: cut in now? Answer with `Move` whose `say` is empty for no.
    Contextual {
        /// The question.
        prompt: String,
    },
    /// The other side has been silent for long while this side held its silence.
    StillThere,
    /// The pause that this side's own move asked for ([`Then::Pause`]) is over: it goes on, whoever spoke last.
    GoOn,
}

/// One line of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// True for the far side's words.
    pub other: bool,
    /// Words as said or recognised; empty when a turn was heard without text.
    pub text: Arc<str>,
    /// Digits that came with or instead of words.
    pub digits: Arc<str>,
    /// This side was cut off in it.
    pub interrupted: bool,
}

/// A (part of a) result of an effect.
#[derive(Clone, Debug, PartialEq)]
pub enum Effected {
    /// Running text of an open segment.
    Partial(String),
    /// Final text of a segment.
    Final {
        /// Empty when nothing was understood.
        text: String,
        /// Words with times, when the recognizer gives them.
        words: Vec<Word>,
        /// 0..1 when known.
        confidence: Option<f32>,
        /// Of the words.
        tongue: Tongue,
    },
    /// The other side speaks this language: so does this side from now on.
    Language {
        /// `en`, `es`, ...
        language: String,
        /// Who found it: `recognizer`, `text`.
        by: &'static str,
        /// True onset of the turn that decided it.
        turn: Sample,
        /// Fixed sentences in it; `None`: it was spoken before, and what is ready stays.
        phrases: Option<Box<Phrases>>,
    },
    /// Synthesized speech.
    Audio {
        /// 16 kHz.
        pcm: Arc<[i16]>,
        /// No more parts follow.
        last: bool,
    },
    /// A mind's next move, or a part of it.
    Move(Move),
    /// The place of the first phrase whose meaning the turn has; `None`: it has none of them.
    Meant(Option<usize>),
    /// Something went wrong and was mended; the result still comes. `code` is stable, for the timeline.
    Note {
        /// For example `synthesizer_unreachable`, when another synthesizer speaks.
        code: &'static str,
        /// For a person, without secrets and speech; may be empty.
        why: String,
    },
    /// It could not be done. `code` is stable, for the timeline.
    Failed {
        /// For example `synthesizer_failed`.
        code: &'static str,
        /// For a person, without secrets and speech; may be empty.
        why: String,
    },
}

/// A recognised word.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// The word.
    pub text: String,
    /// First sample.
    pub from: Sample,
    /// One past the last sample.
    pub to: Sample,
    /// 0..1 when known.
    pub confidence: Option<f32>,
}

/// What a mind decides.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Move {
    /// Words to say now; empty for none.
    pub say: String,
    /// Said exactly: no fillers or pauses are added, marked as scripted or fixed.
    pub exact: bool,
    /// DTMF to send after the words.
    pub dtmf: String,
    /// What comes after.
    pub then: Then,
    /// More parts of the same move follow.
    pub more: bool,
    /// Words with which this side cuts into the other side's next turn.
    pub cut: Option<CutIn>,
    /// Notes for the timeline (`late_first_token`, `fallback_speaker`, `answer_broke_off`): each is told once, when the move is made.
    pub notes: Vec<&'static str>,
}

/// After a move.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum Then {
    /// Listen for the other side.
    #[default]
    Listen,
    /// Stay silent instead of a turn, until the other side has spoken again (at most 60 s).
    StaySilent,
    /// Stay silent for this long, whatever the other side says, then be asked to go on ([`Purpose::GoOn`]).
    Pause {
        /// Milliseconds; 0 goes on at once.
        ms: u32,
    },
    /// Hang up 0.5 s after the words.
    Hangup,
    /// Hang up: everything that was to be played has been ([`EndReason::PlaybackEnd`]).
    Finish,
}
