//! Analysis of the received audio, and the audio received just before a segment is confirmed.

use std::time::Duration;

use super::phase::Earlier;
use super::spec::Ears;
use super::{Call, EventKind, Output, Percept, Phase, Side, TICK};
use crate::codec::g711::{FROM_MU_LAW, mu_law};
use crate::connection::Arrival;
use crate::dtmf::{Detected, Detector};
use crate::echo::{EchoFigures, EchoGuard};
use crate::frame::{FRAME, Frame, PER_MS, RATE_HZ, SILENCE, Sample};
use crate::leg::{HeardFrame, HeardKind, Leg, Scratch};
use crate::line_tones::{LineTone, LineTones};
use crate::time::Time;
use crate::vad::Edge;

/// Frames kept for a recognizer: 780 ms, as onsets are confirmed up to 500 ms late.
const PAST: usize = 39;
/// Audio before the onset that a recognizer is given, in samples: voice activity may miss weak first sounds.
const LEAD: Sample = 700 * PER_MS;
/// Longest stretch of concealed audio that is not reported, in samples.
const SHORT_UNDERRUN: Sample = 40 * PER_MS;

/// Ticks from before the connection that are listened to in one tick: their audio has to fit into the window of the
/// recording.
const AT_ONCE: usize = 5;
/// Ticks for which the first packet from before the connection is waited for.
const FIRST_WAITS: u8 = 3;
/// Age below which the newest packet is one of now.
const FRESH: Duration = Duration::from_millis(60);
/// Packets are taken up to this time ahead of the tick that is listened to, so that the jitter buffer holds them.
const MOST_AHEAD: Duration = Duration::from_millis(400);

/// Tones of the network are looked for until here (60 s after the answer): a greeting and its beep are over by then.
const LINE_TONES_UNTIL: Sample = 60_000 * PER_MS;
/// Nanoseconds of a sample at 16 kHz.
const NS_PER_SAMPLE: u64 = 62_500;

/// Reason why an onset is not exact.
const UNDER_TONE: &str = "the agent began to speak while a tone of the telephone network sounded: its first sounds may be hidden, \
    and its latency too long";

/// A digit that comes back within this time of its being sent (700 ms) is an echo.
const DIGIT_BACK: Sample = 700 * PER_MS;

/// Analysis of received audio: voice activity, digits, tones, and the frames heard last.
pub(super) struct EarSet {
    /// Analysis that runs in this call.
    pub which: Ears,
    /// Finds speech that is not this side's own.
    pub voice: EchoGuard,
    /// Detector of the other side's speech as it was received, when the analysis hears it through a simulated bad
    /// connection. Measures of that side use it.
    pub witness: Option<Box<EchoGuard>>,
    digits: Detector,
    /// Tones of the network, while they are looked for.
    pub line: LineTones,
    /// Frames heard last, with their positions. They are kept in mu-law: a call is small.
    past: Box<[(Sample, [u8; FRAME]); PAST]>,
    next: usize,
    /// One past the last sample that a recognizer was given: no word is recognised twice.
    given_to: Sample,
    /// One past the last sample heard.
    pub heard_to: Sample,
    /// A digit came beside the audio: the same digit heard in the band is its echo.
    event_digit_at: Sample,
    /// This side's last digit in the band, and when it was sent: it may come back.
    own_digit: (char, Sample),
    made_up: MadeUp,
    /// Packets that were dropped for lack of space, as far as they were told of.
    overflowed: u64,
}

/// The stretch of made-up audio that runs: its first sample, and one past its last.
#[derive(Copy, Clone, Default)]
struct MadeUp {
    from: Sample,
    to: Sample,
}

impl MadeUp {
    /// Takes 20 ms at `position`; returns a concealed stretch that is over by it.
    fn push(&mut self, position: Sample, is_made_up: bool) -> Option<MadeUp> {
        let goes_on = is_made_up && position == self.to;
        let over = (!goes_on).then_some(*self).filter(|run| run.to - run.from > SHORT_UNDERRUN);
        if is_made_up {
            self.from = if goes_on { self.from } else { position };
            self.to = position + FRAME as Sample;
        } else {
            *self = MadeUp { from: position, to: position };
        }
        over
    }
}

impl EarSet {
    /// Returns the state before the first frame. `apart`: the analysed audio is not what was received.
    pub(super) fn new(which: Ears, apart: bool) -> EarSet {
        EarSet {
            which,
            voice: EchoGuard::new(),
            witness: (apart && which.voice_activity).then(|| Box::new(EchoGuard::new())),
            digits: Detector::new(),
            line: LineTones::default(),
            past: Box::new([(Sample::MIN, [0; FRAME]); PAST]),
            next: 0,
            given_to: Sample::MIN,
            heard_to: Sample::MIN,
            event_digit_at: Sample::MIN / 2,
            own_digit: (' ', Sample::MIN / 2),
            made_up: MadeUp::default(),
            overflowed: 0,
        }
    }

    /// Takes the 20 ms from `at` on that this side sends.
    pub(super) fn take_sent(&mut self, at: Sample, pcm: &Frame) {
        if self.which.voice_activity {
            self.voice.take_sent(at, pcm);
            self.witness.iter_mut().for_each(|witness| witness.take_sent(at, pcm));
        }
    }

    /// Returns the detector that hears the other side as it was received, without the effects of a bad connection.
    pub(super) fn measured_voice(&mut self) -> &mut EchoGuard {
        self.witness.as_deref_mut().unwrap_or(&mut self.voice)
    }

    /// Moves all positions `by` samples back.
    fn move_back(&mut self, by: Sample) {
        self.past.iter_mut().for_each(|(from, _)| *from = from.saturating_sub(by));
        self.given_to = self.given_to.saturating_sub(by);
        self.voice.move_back(by);
        self.witness.iter_mut().for_each(|witness| witness.move_back(by));
    }

    /// Counts gaps in what is heard; returns a concealed stretch that is over by it.
    fn count_gaps(&mut self, heard: &HeardFrame<'_>) -> Option<MadeUp> {
        let frames = heard.passed.map(|passed| (passed.position, passed.kind)).into_iter();
        let mut over = None;
        for (position, kind) in frames.chain([(heard.position, heard.kind)]) {
            over = over.or(self.made_up.push(position, kind == HeardKind::Lost));
        }
        over
    }

    fn remember(&mut self, from: Sample, pcm: &Frame) {
        self.past[self.next] = (from, pcm.map(mu_law));
        self.next = (self.next + 1) % PAST;
    }

    /// Returns the frames received since a little before `onset`, in order, as one run: those that were not given to a
    /// recognizer before.
    pub(super) fn past_since(&self, onset: Sample) -> Option<(Sample, Vec<i16>)> {
        let frames = (0..PAST).map(|at| &self.past[(self.next + at) % PAST]);
        let least = self.given_to.max(onset - LEAD - FRAME as Sample + 1);
        let mut wanted = frames.filter(|(from, _)| *from != Sample::MIN && *from >= least).peekable();
        let from = wanted.peek()?.0;
        let samples = wanted.flat_map(|(_, bytes)| bytes.iter().map(|byte| FROM_MU_LAW[usize::from(*byte)]));
        Some((from, samples.collect()))
    }

    /// Analyses the frame of `arrival`: takes echo out of it, and returns what is found.
    fn perceive(&mut self, arrival: &mut Arrival) -> Perceived {
        let Arrival { position: from, pcm, narrow, is_real } = arrival;
        let from = *from;
        self.heard_to = from + FRAME as Sample;
        let edge = if self.which.voice_activity { self.voice.push(pcm, from, *is_real) } else { None };
        if self.which.text {
            self.remember(from, pcm);
        }
        let line_tone = if from < LINE_TONES_UNTIL { self.line.push(pcm, from) } else { None };
        let digit = if self.which.dtmf { self.digits.push(narrow, from) } else { None };
        let digit = digit.filter(|Detected::Digit { digit, from, .. }| !self.is_digit_back(*digit, *from));
        Perceived { line_tone, digit, echo: self.measured_voice().news(), edge }
    }

    /// True when a digit found in the audio is the echo of one that came as an event, or of one of this side.
    fn is_digit_back(&self, digit: char, from: Sample) -> bool {
        let (own, at) = self.own_digit;
        let comes_back = own == digit && (-(FRAME as Sample)..DIGIT_BACK).contains(&(from - at));
        let echo = (from - self.event_digit_at).abs() < Sample::from(RATE_HZ / 2);
        echo || comes_back
    }
}

/// Findings in a received frame.
struct Perceived {
    /// A tone of the network.
    line_tone: Option<LineTone>,
    /// A digit of the other side, in the audio.
    digit: Option<Detected>,
    /// Echo of this side's words, when it is found or has changed.
    echo: Option<EchoFigures>,
    /// Beginning or end of the other side's speech.
    edge: Option<Edge>,
}

impl From<Detected> for Percept {
    fn from(Detected::Digit { digit, from, duration_ms }: Detected) -> Percept {
        Percept::Digit { digit, from, duration_ms, method: "inband" }
    }
}

impl From<Edge> for Percept {
    fn from(edge: Edge) -> Percept {
        match edge {
            Edge::Started { onset } => Percept::SpeechStarted { onset },
            Edge::Ended { end } => Percept::SpeechEnded { end },
        }
    }
}

impl Call {
    /// Hears the next 20 ms: keeps positions, recording and accounts right, then perceives and reports.
    pub(super) fn listen(&mut self, now: Time) {
        match self.phase {
            Phase::Connected => {}
            Phase::Dialing { .. } => return self.listen_early(now),
            _ => return,
        }
        if self.catch_up(now) {
            self.listen_at(now, self.frame_at);
        }
    }

    /// Listens to ticks before the present one, in which packets came before the call was up. Returns true when none is
    /// left.
    fn catch_up(&mut self, now: Time) -> bool {
        let Some(mut earlier) = self.waits.earlier.take() else { return true };
        let Earlier { mut next, sign: before, waits } = *earlier;
        let sign = self.leg.as_ref().and_then(Leg::last_sign);
        // The channel may hand its first packet over a moment after the answer.
        if sign.is_none() && waits < FIRST_WAITS {
            earlier.waits += 1;
            self.waits.earlier = Some(earlier);
            return false;
        }
        // Behind packets of that time others may be on their way.
        let is_over = sign == before || sign.is_none_or(|at| now.since(at) < FRESH);
        let to = if is_over { now } else { sign.unwrap_or(now) };
        for _ in 0..AT_ONCE {
            if next + TICK > to {
                break;
            }
            let listened_to = self.sample(next) + FRAME as Sample;
            self.listen_at(next, listened_to);
            next = next + TICK;
        }
        let is_done = is_over && next + TICK > now;
        *earlier = Earlier { next, sign, waits };
        self.waits.earlier = (!is_done).then_some(earlier);
        is_done
    }

    /// True while the call takes packets: it has a leg, and is not far behind those that it took.
    pub fn takes_packets(&self) -> bool {
        let Some(Leg::Rtp(leg)) = &self.leg else { return false };
        let Some(Earlier { next, .. }) = self.waits.earlier.as_deref() else { return true };
        leg.last_sign().is_none_or(|sign| sign.since(*next) < MOST_AHEAD)
    }

    /// Hears the 20 ms of the tick at `now`; what is recorded may be handed out by the position `listened_to`.
    fn listen_at(&mut self, now: Time, listened_to: Sample) {
        let Some(leg) = &mut self.leg else { return };
        let mut scratch = Scratch::default();
        let heard = leg.listen(now, &mut scratch);
        self.shift(heard.moved);
        self.record(&heard);
        self.account(&heard, now);
        self.perceive(&heard, now);
        self.tell_network(now);
        self.listened_to = listened_to;
    }

    /// Moves the positions of all audio heard before by this many samples back, as the jitter buffer has become
    /// shallower.
    fn shift(&mut self, by: Sample) {
        if by > 0 {
            self.window.move_back(by);
            self.ears.move_back(by);
            self.turn_taking.concealed.move_back(by);
            if let Some(connection) = &mut self.connection {
                connection.received.move_back(by);
            }
        }
    }

    /// Adds what was sent or lost to the recording. Filler was not sent, and a recording is silent without it.
    fn record(&mut self, heard: &HeardFrame<'_>) {
        if let Some(passed) = heard.passed.filter(|passed| is_recorded(passed.kind)) {
            self.window.push(passed.position, passed.pcm);
        }
        if is_recorded(heard.kind) {
            self.window.push(heard.position, heard.pcm);
        }
    }

    /// Accounts for what did not come as audio: digits beside it, packets that are not heard or had no space, and gaps.
    fn account(&mut self, heard: &HeardFrame<'_>, now: Time) {
        let Some(leg) = &self.leg else { return };
        let underrun = self.ears.count_gaps(heard);
        self.turn_taking.concealed.push(heard.position, leg.concealed_ms());
        let overflowed = leg.overflow_count();
        let packets = overflowed.saturating_sub(std::mem::replace(&mut self.ears.overflowed, overflowed));
        self.waits.media_at = self.waits.media_at.max(leg.last_sign());
        self.hear_keys();
        self.tell_unheard(now);
        if packets > 0 {
            self.event(self.ears.heard_to, Side::Engine, EventKind::RxOverflow { packets });
        }
        if let Some(MadeUp { from, to }) = underrun {
            let duration_ms = ((to - from) / PER_MS) as u32;
            self.event(from, Side::Engine, EventKind::RxUnderrun { duration_ms });
        }
    }

    /// Analyses what was heard, or what a simulated bad connection lets through by now.
    fn perceive(&mut self, heard: &HeardFrame<'_>, now: Time) {
        let (position, is_real) = (heard.position, heard.kind == HeardKind::Real);
        match &mut self.connection {
            None => self.hear(Arrival { position, pcm: *heard.pcm, narrow: *heard.narrow, is_real }, now),
            Some(connection) => {
                connection.received.hear(now, heard);
                let mut pcm = if self.waits.on_hold { SILENCE } else { *heard.pcm };
                let edge = self.ears.witness.as_mut().and_then(|witness| witness.push(&mut pcm, position, is_real));
                edge.into_iter().for_each(|edge| self.tell_edge(edge, now));
            }
        }
        while let Some(arrival) = self.connection.as_mut().and_then(|connection| connection.received.pop(now)) {
            self.hear(arrival, now);
        }
    }

    /// Analyses a frame, and gives the turn-taking the percepts in it.
    fn hear(&mut self, mut arrival: Arrival, now: Time) {
        if self.waits.on_hold {
            arrival.pcm = SILENCE;
            arrival.narrow.fill(0);
        }
        let perceived = self.ears.perceive(&mut arrival);
        let from = arrival.position;
        if self.turn_taking.is_feeding() {
            self.out.ears(from, &arrival.pcm);
            self.ears.given_to = from + FRAME as Sample;
        }
        if let Some(tone) = perceived.line_tone {
            let at = tone.from;
            line_tone_events(tone).for_each(|what| self.event(at, Side::Agent, what));
        }
        if let Some(digit) = perceived.digit {
            self.take_percept(digit.into());
        }
        if let Some(echo) = perceived.echo {
            self.event(from.max(0), Side::Engine, EventKind::Echo(echo));
        }
        if let Some(edge) = perceived.edge {
            if self.ears.witness.is_none() {
                self.tell_edge(edge, now);
            }
            self.take_percept(edge.into());
        }
    }

    /// Gives the turn-taking a percept, and carries out what it decides.
    fn take_percept(&mut self, percept: Percept) {
        self.turn_taking().perceive(percept);
        self.carry_out();
    }

    /// Notes a digit that this side sends as a tone.
    pub(super) fn sound_digit(&mut self, digit: char, at: Sample) {
        self.ears.own_digit = (digit, at);
        self.turn_taking.mouth.tone(digit, at);
    }

    /// Ends the other side's running speech and turn at `end`, where the call ends.
    pub(super) fn end_other_speech(&mut self, end: Sample, now: Time) {
        let ended = |voice: &mut EchoGuard| match voice.finish() {
            Some(Edge::Ended { end: heard }) => Some(heard.clamp(0, end)),
            _ => None,
        };
        let heard = ended(&mut self.ears.voice);
        let seen = self.ears.witness.as_deref_mut().map_or(heard, ended);
        if let Some(end) = seen {
            self.tell_edge(Edge::Ended { end }, now);
        }
        self.turn_taking().end_other_turn(heard.unwrap_or(end));
        self.carry_out();
    }

    /// Reports that the other side began or ceased to speak.
    pub(super) fn tell_edge(&mut self, edge: Edge, now: Time) {
        let arrival_ms = self.sample(now) as f64 / PER_MS as f64;
        let before =
            |at: Sample| self.spec.extension.is_some() && self.turn_taking.start().is_none_or(|start| at < start);
        match edge {
            Edge::Started { onset } => {
                let pre_conversation = before(onset);
                self.event(onset, Side::Agent, EventKind::AgentSpeechStarted { arrival_ms, pre_conversation });
                if self.ears.measured_voice().vad().is_under_tone(onset) {
                    let what = EventKind::Note { code: "speech_under_tone".into(), why: UNDER_TONE.into() };
                    self.event(onset, Side::Engine, what);
                }
            }
            Edge::Ended { end } => {
                let pre_conversation = before(end);
                self.event(end, Side::Agent, EventKind::AgentSpeechEnded { arrival_ms, pre_conversation });
            }
        }
    }

    fn listen_early(&mut self, now: Time) {
        let Some(leg) = &mut self.leg else { return };
        let mut scratch = Scratch::default();
        let heard = leg.listen(now, &mut scratch);
        self.out.early(heard.pcm);
        // Sample 0 is not known yet: positions are times.
        let Some(tone) = self.ears.line.push(heard.pcm, (now.0 / NS_PER_SAMPLE) as Sample) else { return };
        let at = Time(tone.from as u64 * NS_PER_SAMPLE);
        let tone = LineTone { greeting: None, ..tone };
        self.waits.before.extend(line_tone_events(tone).map(|what| (at, Side::Agent, what)));
    }

    /// Takes the digits that came as telephone events.
    fn hear_keys(&mut self) {
        while let Some(digit) = self.leg.as_mut().and_then(|leg| leg.digit()) {
            self.digit_beside_audio(digit.digit, digit.from, digit.duration_ms, "rtp_event");
        }
    }

    /// Takes a digit that came beside the audio. The same digit heard in the audio is taken for its echo.
    pub(super) fn digit_beside_audio(&mut self, digit: char, from: Sample, duration_ms: u32, method: &'static str) {
        self.ears.event_digit_at = from;
        self.take_percept(Percept::Digit { digit, from, duration_ms, method });
    }

    fn tell_network(&mut self, now: Time) {
        if self.frame_at < self.waits.network_at {
            return;
        }
        self.waits.network_at = self.frame_at + Sample::from(RATE_HZ);
        if let Some(figures) = self.leg.as_ref().map(|leg| leg.figures()) {
            let (received, lost, late) = (figures.received, figures.lost, figures.late);
            let what = EventKind::Network { received, lost, late, jitter_ms: figures.jitter_ms };
            self.event(self.sample(now), Side::Engine, what);
        }
    }

    /// Tells what arrives and is not heard, each kind once.
    pub(super) fn tell_unheard(&mut self, now: Time) {
        while let Some((code, why)) = self.leg.as_mut().and_then(|leg| leg.unheard(now)) {
            self.event(self.frame_at, Side::Engine, EventKind::Note { code: code.into(), why });
        }
    }

    /// Hands the recognizer the audio received just before the onset was confirmed.
    pub(super) fn feed_from(&mut self, onset: Sample) {
        if let Some((from, pcm)) = self.ears.past_since(onset) {
            self.ears.given_to = from + pcm.len() as Sample;
            self.out.push(Output::EarsPast { from, pcm });
        }
    }
}

/// Returns the events of a tone: a beep after speech is an answering machine besides.
fn line_tone_events(tone: LineTone) -> impl Iterator<Item = EventKind> {
    let LineTone { kind, hz, cadence_ms, greeting, .. } = tone;
    let (frequency_hz, beep_ms) = (hz as u32, cadence_ms.first().copied().unwrap_or_default());
    let machine = greeting.map(|[greeting_from_sample, greeting_end_sample]| EventKind::AnsweringMachine {
        greeting_from_sample,
        greeting_end_sample,
        beep_ms,
        frequency_hz,
    });
    std::iter::once(EventKind::LineTone { kind, frequency_hz, cadence_ms: cadence_ms.into() }).chain(machine)
}

/// True for audio that belongs in a recording.
fn is_recorded(kind: HeardKind) -> bool {
    matches!(kind, HeardKind::Real | HeardKind::Lost)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recognizer_is_given_700_ms_before_an_onset_and_nothing_twice() {
        let mut ears = EarSet::new(Ears::default(), false);
        let frame = |n: usize| (n * FRAME) as Sample;
        (0..60).for_each(|n| ears.remember(frame(n), &[(n * 100) as i16; FRAME]));
        let (from, pcm) = ears.past_since(frame(58)).expect("frames were heard");
        assert_eq!((from, from + pcm.len() as Sample), (frame(58) - 700 * PER_MS, frame(60)));
        let near = pcm.chunks(FRAME).zip(23..).all(|(part, n)| part.iter().all(|x| (x - n * 100).abs() <= 130));
        assert!(near, "the samples are those that were heard");

        ears.given_to = frame(40);
        ears.move_back(frame(1));
        assert_eq!(ears.past_since(frame(57)).map(|(from, _)| from), Some(frame(39)));
        ears.given_to = frame(59);
        assert_eq!(ears.past_since(frame(57)), None);
    }
}
