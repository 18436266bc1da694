//! Measures of a conversation: turn latencies, interruptions, full-duplex rates, shares of speech. They use spans of
//! speech that were found before (by [`segments`], or known by the speaker), and the audio itself for its sound
//! (`sound`). They judge no words.

mod audio;
mod duplex;
mod pitch;
mod pressed;
mod probes;
mod reverb;
mod sound;
mod turn;
mod yielding;

pub use audio::{noise_dbfs, segments, snr_db};
pub use duplex::{Interrupted, interruptions};
pub use pitch::{pitch_hz, pitch_variability};
pub use probes::{Counted, Probe, ProbeTimes, asides};
pub use reverb::reverb_s;
pub use sound::{Channel, Sound, sound};
pub use turn::{SpokenTurn, turns, turns_after};
pub use yielding::{WholeTurn, YieldTimes, whole_turns};

use serde::Serialize;

use crate::call::Side;
use crate::frame::{PER_MS, Sample, whole_ms};

/// Lengths that are excluded before and after an echo: the path may be shorter than was measured, and a room rings.
const BEFORE_ECHO: Sample = 50 * PER_MS;
const AFTER_ECHO: Sample = 300 * PER_MS;

/// A stretch of one channel: `from` is its first sample, `to` one past its last.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// First sample of the stretch.
    pub from: Sample,
    /// One past the last sample.
    pub to: Sample,
}

impl Span {
    /// Length in samples; 0 when `to` is not after `from`.
    pub fn length(self) -> Sample {
        (self.to - self.from).max(0)
    }

    /// Number of samples that both spans hold.
    pub fn overlap(self, other: Span) -> Sample {
        (self.to.min(other.to) - self.from.max(other.from)).max(0)
    }

    /// True when `at` lies inside.
    pub fn holds(self, at: Sample) -> bool {
        (self.from..self.to).contains(&at)
    }
}

/// A word of the agent with its time.
#[derive(Clone, Debug, PartialEq)]
pub struct Word {
    /// Time of the word.
    pub span: Span,
    /// Word as the recognizer wrote it, punctuation included.
    pub text: String,
}

/// A text of one side with its time.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Time of the text.
    pub span: Span,
    /// Number of its words; `None` when they are not known, or not all of them.
    pub words: Option<usize>,
}

/// Echo of the Digital Human's own words, as a call measured it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Echo {
    /// Samples from sending to receiving.
    pub delay: Sample,
    /// Position from which the call knew the echo. Before it, the beginning of an echo may have been taken for speech.
    pub known: Sample,
}

/// Data from which the metrics are computed. Positions are on the call's sample clock, 0 at connect.
#[derive(Clone, Debug, Default)]
pub struct Conversation {
    /// Length from connect to the end, in samples.
    pub duration: Sample,
    /// Beginning of the conversation; speech before it is not counted.
    pub start: Sample,
    /// Position from which the time of the agent's greeting counts: the one from which it could speak. Negative where
    /// that was before connect, and never after `start`.
    pub greeting_from: Sample,
    /// Speech of the Digital Human.
    pub dh: Vec<Span>,
    /// Positions at which the Digital Human fell silent before the end of its words, because the agent spoke.
    pub stopped: Vec<Sample>,
    /// Speech of the agent.
    pub agent: Vec<Span>,
    /// Digits that the Digital Human sent: turns, but no speech.
    pub digits: Vec<Span>,
    /// Onsets of the Digital Human's words that were said because nobody answered.
    pub reprompts: Vec<Sample>,
    /// Duplex probes of the Digital Human: they are no turns, and none of its speech.
    pub probes: Vec<Probe>,
    /// Times that tell which probes count, and when the agent let itself be stopped.
    pub probe_times: ProbeTimes,
    /// Times of the verdict on an agent that is interrupted.
    pub yield_times: YieldTimes,
    /// Positions of the agent's own messages that its words were cut off.
    pub cleared: Vec<Sample>,
    /// Positions at which the Digital Human found a turn of the agent over.
    pub found_over: Vec<Sample>,
    /// Turns of the agent that other calls of the run heard whole.
    pub elsewhere: Vec<WholeTurn>,
    /// Echo of the Digital Human's own words; `None` when there is none.
    pub echo: Option<Echo>,
    /// Words of the agent; empty when they are not known.
    pub words: Vec<Word>,
    /// Phrases that are fillers ("um", "one moment"), in lower case.
    pub fillers: Vec<String>,
    /// Texts of the agent, a turn or a part of one each.
    pub texts: Vec<Text>,
    /// Texts of the Digital Human, an utterance each.
    pub dh_texts: Vec<Text>,
    /// Kind of the connection: `PHONE` or `WEB`.
    pub interface: &'static str,
}

impl Conversation {
    /// Returns the part of it in `window`, as a conversation of its own that begins there. Texts belong to the window
    /// in which they begin.
    pub fn part(&self, window: Span) -> Conversation {
        let at = |sample: Sample| sample - window.from;
        let span = |span: Span| Span { from: at(span.from), to: at(span.to) };
        let spans = |all: &[Span]| all.iter().copied().map(span).collect();
        let moments =
            |all: &[Sample]| all.iter().filter(|sample| window.holds(**sample)).map(|sample| at(*sample)).collect();
        let texts = |all: &[Text]| {
            let inside = all.iter().filter(|text| window.holds(text.span.from));
            inside.map(|text| Text { span: span(text.span), ..*text }).collect()
        };
        let probes = self.probes.iter().filter(|probe| window.holds(probe.span.from));
        let words = self.words.iter().filter(|word| window.holds(word.span.from));
        Conversation {
            duration: at(window.to.min(self.duration)).max(0),
            start: at(self.start).max(0),
            greeting_from: at(self.greeting_from).max(0),
            dh: spans(&self.dh),
            stopped: moments(&self.stopped),
            agent: spans(&self.agent),
            digits: spans(&self.digits),
            reprompts: moments(&self.reprompts),
            probes: probes.map(|probe| Probe { span: span(probe.span), ..*probe }).collect(),
            probe_times: self.probe_times,
            yield_times: self.yield_times,
            cleared: moments(&self.cleared),
            found_over: moments(&self.found_over),
            // Places of turns are others in a part; their words are enough.
            elsewhere: self.elsewhere.iter().map(|whole| WholeTurn { place: usize::MAX, ..whole.clone() }).collect(),
            echo: self.echo.map(|echo| Echo { known: at(echo.known), ..echo }),
            words: words.map(|word| Word { span: span(word.span), text: word.text.clone() }).collect(),
            fillers: self.fillers.clone(),
            texts: texts(&self.texts),
            dh_texts: texts(&self.dh_texts),
            interface: self.interface,
        }
    }
}

/// The metrics of one conversation; fields are named as they are published, `None` where a metric has no value.
///
/// Latencies are seconds, rounded to milliseconds; percentages 0 to 100; rates and ratios 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Metrics {
    /// Agent latency of each agent turn that has one, in order.
    #[serde(skip)]
    pub latency: Vec<f64>,

    /// Time from the end of a turn of the Digital Human to the agent's onset: mean, seconds.
    pub avg_agent_latency: Option<f64>,
    /// Greatest agent latency, seconds.
    pub max_agent_latency: Option<f64>,
    /// 50th percentile of the agent latency, seconds.
    pub p50_agent_latency: Option<f64>,
    /// 90th percentile of the agent latency, seconds.
    pub p90_agent_latency: Option<f64>,
    /// 95th percentile of the agent latency, seconds.
    pub p95_agent_latency: Option<f64>,
    /// 99th percentile of the agent latency, seconds.
    pub p99_agent_latency: Option<f64>,

    /// Time from the end of a turn of the Digital Human to the agent's first word that is no filler: mean, seconds.
    pub avg_filler_ignored_latency: Option<f64>,
    /// 50th percentile of the latency without fillers, seconds.
    pub p50_filler_ignored_latency: Option<f64>,
    /// 90th percentile of the latency without fillers, seconds.
    pub p90_filler_ignored_latency: Option<f64>,
    /// 95th percentile of the latency without fillers, seconds.
    pub p95_filler_ignored_latency: Option<f64>,
    /// 99th percentile of the latency without fillers, seconds.
    pub p99_filler_ignored_latency: Option<f64>,

    /// Time from the end of an agent turn to the onset of the Digital Human: mean, seconds.
    pub avg_customer_latency: Option<f64>,
    /// 50th percentile of the Digital Human's latency, seconds.
    pub p50_customer_latency: Option<f64>,
    /// 90th percentile of the Digital Human's latency, seconds.
    pub p90_customer_latency: Option<f64>,

    /// Pauses between sentences inside an agent turn: mean, seconds.
    pub avg_punctuation_latency: Option<f64>,
    /// 50th percentile of these pauses, seconds.
    pub p50_punctuation_latency: Option<f64>,
    /// 90th percentile of these pauses, seconds.
    pub p90_punctuation_latency: Option<f64>,

    /// Seconds from the moment at which the agent could speak to its first turn.
    pub time_to_first_agent_utterance: Option<f64>,

    /// Number of agent onsets inside a turn of the Digital Human, after 200 ms of it, with 200 ms or more of overlap or
    /// at which the Digital Human fell silent.
    pub agent_interruption_count: Option<f64>,
    /// Number of onsets of the Digital Human inside an agent turn with 200 ms or more of overlap.
    pub customer_interruption_count: Option<f64>,
    /// Mean time from an agent's interruption to the Digital Human's silence, milliseconds.
    pub dh_yield_latency_ms: Option<f64>,

    /// Share of the Digital Human's turns that were answered within 10 s, of those that could be.
    pub response_rate: Option<f64>,
    /// Share of the Digital Human's interruptions at which the agent's turn was cut within a second, while the caller
    /// spoke. Interruptions at the turn's own end, and those of which it is not known, are left out.
    pub yield_rate: Option<f64>,
    /// Mean time from the caller's onset to the cut, seconds.
    pub yield_latency: Option<f64>,
    /// Stops of the agent at interruptions of which it is not known whether its turn was cut.
    #[serde(skip)]
    pub unknown_stops: Vec<Sample>,
    /// Number of interruptions at which the agent's turn was over by itself.
    #[serde(skip)]
    pub own_ends: usize,
    /// Least and greatest yield rate, whatever the unknown stops were; `None` when it may have no value.
    #[serde(skip)]
    pub yield_range: Option<[f64; 2]>,
    /// Share of the Digital Human's turns of 1 s or more that the agent interrupted.
    pub agent_interrupts_rate: Option<f64>,
    /// Share of backchannels at which the agent went on speaking, of those that count.
    pub backchannel_selectivity: Option<f64>,
    /// Share of vocal tics (coughs and the like) at which the agent went on speaking, of those that count.
    pub vocal_tic_selectivity: Option<f64>,
    /// Share of words to somebody else at which the agent went on speaking, of those that count. It follows from
    /// silence alone, not from the agent's words.
    pub non_directed_selectivity: Option<f64>,

    /// Longest silence inside one turn of the agent, seconds.
    pub longest_agent_pause: Option<f64>,
    /// Number of times that the agent spoke on for more than a second over keys that were pressed into its speech.
    pub keys_talked_over: Option<f64>,

    /// True when no word tells where a sentence of the agent ends: for the selectivities it ends with its turn.
    #[serde(skip)]
    pub no_punctuation: bool,

    /// Share of time in which the agent speaks, percent.
    pub agent_speak_percentage: Option<f64>,
    /// Share of time in which the Digital Human speaks, percent.
    pub customer_speak_percentage: Option<f64>,
    /// Share of time in which both speak, percent.
    pub overlap_percentage: Option<f64>,
    /// Share of time in which neither speaks, percent.
    pub silence_percentage: Option<f64>,
    /// Share of the agent in all speech, 0 to 1.
    pub talk_ratio: Option<f64>,
    /// Number of turns of the agent.
    pub num_turns: Option<f64>,
    /// Mean length of an agent turn, milliseconds.
    pub agent_turn_duration_avg: Option<f64>,
    /// Mean number of words in an agent turn, over the turns whose words are known.
    pub agent_words_per_turn_avg: Option<f64>,
    /// Mean number of words in a turn of the Digital Human, over the turns whose words are known.
    pub customer_words_per_turn_avg: Option<f64>,
    /// Words in a minute of the agent's speech, as far as its words are known, without pauses over 300 ms.
    pub agent_wpm: Option<f64>,
    /// Milliseconds from connect to the end.
    pub duration: Option<f64>,
    /// Kind of the connection: `PHONE` or `WEB`.
    pub interface: &'static str,
}

/// Returns the speech of the Digital Human and of the agent: cut to the conversation, pauses under 300 ms joined,
/// sounds under 100 ms dropped.
pub fn speech(conversation: &Conversation) -> (Vec<Span>, Vec<Span>) {
    let heard = turn::HeardSpeech::of(conversation);
    (heard.dh, heard.agent)
}

/// Returns the spans in which the agent's channel holds an echo of the Digital Human's words and digits. Each begins 50
/// ms before the echo and ends 300 ms after it, as a room rings. Empty without an echo.
pub fn echoes(conversation: &Conversation) -> Vec<Span> {
    let own = conversation.dh.iter().chain(&conversation.digits);
    let back = |Echo { delay, .. }| {
        let echo = move |span: &Span| Span { from: span.from + delay - BEFORE_ECHO, to: span.to + delay + AFTER_ECHO };
        own.map(echo).collect()
    };
    conversation.echo.map(back).unwrap_or_default()
}

/// Computes the metrics of a spoken conversation.
pub fn metrics(conversation: &Conversation) -> Metrics {
    let heard = turn::HeardSpeech::of(conversation);
    let mut metrics = Metrics {
        duration: Some(conversation.duration as f64 / PER_MS as f64),
        interface: conversation.interface,
        ..Metrics::default()
    };
    latencies(&mut metrics, conversation, &heard);
    shares(&mut metrics, conversation, &heard);
    duplex::measure(&mut metrics, conversation, &heard);
    probes::measure(&mut metrics, conversation, &heard);
    pressed::measure(&mut metrics, conversation, &heard);
    metrics
}

fn latencies(metrics: &mut Metrics, conversation: &Conversation, heard: &turn::HeardSpeech) {
    let answers = heard.answers();
    let latency: Vec<f64> = answers.iter().map(|(turn, asked)| seconds(turn.from() - asked.to())).collect();
    metrics.avg_agent_latency = mean(&latency);
    metrics.max_agent_latency = latency.iter().copied().reduce(f64::max);
    [metrics.p50_agent_latency, metrics.p90_agent_latency, metrics.p95_agent_latency, metrics.p99_agent_latency] =
        [50.0, 90.0, 95.0, 99.0].map(|p| percentile(&latency, p));
    metrics.latency = latency;

    let words = turn::Words::of(conversation);
    let filled: Vec<f64> =
        answers.iter().filter_map(|(turn, asked)| Some(seconds(words.meaning_from(turn)? - asked.to()))).collect();
    metrics.avg_filler_ignored_latency = mean(&filled);
    [
        metrics.p50_filler_ignored_latency,
        metrics.p90_filler_ignored_latency,
        metrics.p95_filler_ignored_latency,
        metrics.p99_filler_ignored_latency,
    ] = [50.0, 90.0, 95.0, 99.0].map(|p| percentile(&filled, p));

    let customer: Vec<f64> = heard.replies().iter().map(|(turn, said)| seconds(turn.from() - said.to())).collect();
    metrics.avg_customer_latency = mean(&customer);
    [metrics.p50_customer_latency, metrics.p90_customer_latency] = [50.0, 90.0].map(|p| percentile(&customer, p));

    let pauses: Vec<f64> = turn::sentence_pauses(heard, &words).into_iter().map(seconds).collect();
    metrics.avg_punctuation_latency = mean(&pauses);
    [metrics.p50_punctuation_latency, metrics.p90_punctuation_latency] = [50.0, 90.0].map(|p| percentile(&pauses, p));

    let first = heard.turns_of(Side::Agent).next();
    let onset = first.map(|turn| first_onset(conversation, turn.from()));
    metrics.time_to_first_agent_utterance = onset.map(|onset| seconds(onset - conversation.greeting_from));
}

/// Returns the onset of the agent's first turn, which is cut to the conversation: it may have begun before, when it
/// could already speak.
fn first_onset(conversation: &Conversation, cut: Sample) -> Sample {
    let begun = conversation.agent.iter().find(|span| cut == conversation.start && span.holds(cut));
    begun.map_or(cut, |span| span.from.clamp(conversation.greeting_from.min(cut), cut))
}

fn shares(metrics: &mut Metrics, conversation: &Conversation, heard: &turn::HeardSpeech) {
    let total = |spans: &[Span]| spans.iter().map(|span| span.length()).sum::<Sample>();
    let (agent, dh) = (total(&heard.agent), total(&heard.dh));
    let with_agent = |dh: &Span| turn::near(&heard.agent, *dh).iter().map(|agent| agent.overlap(*dh)).sum::<Sample>();
    let both: Sample = heard.dh.iter().map(with_agent).sum();
    let share = |samples| ratio(100.0 * samples as f64, conversation.duration as f64);
    metrics.agent_speak_percentage = share(agent);
    metrics.customer_speak_percentage = share(dh);
    metrics.overlap_percentage = share(both);
    metrics.silence_percentage = share((conversation.duration - agent - dh + both).max(0));
    metrics.talk_ratio = ratio(agent as f64, (agent + dh) as f64);

    let lengths: Vec<f64> =
        heard.turns_of(Side::Agent).map(|turn| (turn.to() - turn.from()) as f64 / PER_MS as f64).collect();
    metrics.num_turns = Some(lengths.len() as f64);
    metrics.agent_turn_duration_avg = mean(&lengths);
    metrics.customer_words_per_turn_avg = words_per_turn(heard.turns_of(Side::Dh), &conversation.dh_texts);
    words(metrics, conversation, heard);
}

/// Computes the figures of words where all of them are known: words that were not recognized never count as silence.
fn words(metrics: &mut Metrics, conversation: &Conversation, heard: &turn::HeardSpeech) {
    let texts = &conversation.texts;
    if texts.iter().all(|text| text.words.is_none()) {
        return;
    }
    metrics.agent_words_per_turn_avg = words_per_turn(heard.turns_of(Side::Agent), texts);
    let unheard = unheard(texts);
    let rest = |span: &Span| span.length() - unheard.iter().map(|unheard| unheard.overlap(*span)).sum::<Sample>();
    let speech: Sample = heard.agent.iter().map(rest).sum();
    let minutes = speech as f64 / (60_000.0 * PER_MS as f64);
    let said: usize = texts.iter().filter_map(|text| text.words).sum();
    metrics.agent_wpm = (said >= 10).then(|| ratio(said as f64, minutes)).flatten();
}

fn unheard(texts: &[Text]) -> Vec<Span> {
    texts.iter().filter(|text| text.words.is_none()).map(|text| text.span).collect()
}

/// Returns the mean number of words, without turns that hold words which are not known.
fn words_per_turn<'t>(turns: impl Iterator<Item = &'t SpokenTurn>, texts: &[Text]) -> Option<f64> {
    let unheard = unheard(texts);
    let holds_unheard = |span: &Span| unheard.iter().any(|unheard| unheard.overlap(*span) > 0);
    let (left_out, turns): (Vec<Span>, Vec<Span>) = turns.map(SpokenTurn::span).partition(holds_unheard);
    let counts = |text: &&Text| !left_out.iter().any(|turn| turn.overlap(text.span) > 0);
    let said: usize = texts.iter().filter(counts).filter_map(|text| text.words).sum();
    ratio(said as f64, turns.len() as f64)
}

/// Returns the `p`-th percentile, linear between ranks: position (n - 1) p / 100 in the sorted values. `None` without
/// values.
pub fn percentile(values: &[f64], p: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = sorted.len().checked_sub(1)? as f64 * p.clamp(0.0, 100.0) / 100.0;
    let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    Some(round3(low + (high - low) * place.fract()))
}

/// Returns the mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    ratio(values.iter().sum(), values.len() as f64)
}

/// Returns `part` of `whole`; `None` when `whole` is 0.
fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| round3(part / whole))
}

fn seconds(samples: Sample) -> f64 {
    whole_ms(samples) as f64 / 1000.0
}

fn round3(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests;
