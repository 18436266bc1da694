//! Probes: sounds of this side while the other side speaks that ask for no reaction. When they sound, and the audio
//! that is kept ready for them. They are no turns: nothing else in the call hears of them.
//!
//! Each kind comes as a Poisson process in the time in which a probe may sound. After a probe that time stands still
//! for the probe's length and 2 s; what follows comes the more often for it, so that the rate is the one that was asked
//! for, as far as there is space (about 22 a minute of all kinds together).

use std::sync::Arc;

use super::{TurnTaking, ms};
use crate::call::event::{EventKind, Kind, ProbeKind, Side};
use crate::call::io::{Effect, EffectId};
use crate::call::mouth::Said;
use crate::call::spec::CallSpec;
use crate::call::utterance::Utterance;
use crate::clip::trim_silence;
use crate::frame::{FRAME, RATE_HZ, Sample};
use crate::seed::Stream;
use crate::tempo::shorten;
use crate::vocal_tic::{self, Tic};

/// Shortest time from the end of a probe to the next one, in milliseconds.
const APART_MS: u32 = 2000;
/// Longer quiet at the end of what was heard may be the end of the speech: no probe begins then.
const PAUSE_MS: u32 = 20;
/// A backchannel comes this far into the other side's turn.
const INTO_TURN_MS: u32 = 1000;
/// Mean length of each kind in seconds: backchannel, vocal tic, non-directed.
const MEAN_S: [f64; 3] = [0.35, 0.5, 1.5];
/// Shortest and longest words of a backchannel and of an aside.
const BACKCHANNEL_MS: [u32; 2] = [200, 500];
const ASIDE_MS: [u32; 2] = [1000, 2000];
/// Words of a slow voice are said at most this much faster, to last no longer.
const MOST_HURRIED: f64 = 1.6;
/// An aside is this much under the normal level: 6 dB.
const ASIDE_GAIN: f64 = 0.501_187;
/// The process is made at most this much denser for the time that stands still.
const MOST_DENSE: f64 = 10.0;

/// State of the probes of a call that makes some.
#[derive(Debug)]
pub(super) struct Probes {
    /// Rate of each kind, in probes a minute.
    rates: [f64; 3],
    /// Time until the next probe of each kind, in samples of the time in which one may sound.
    waits: [Sample; 3],
    /// Samples for which that time still stands still.
    rest: Sample,
    draws: Stream,
    backchannels: Words,
    asides: Words,
    /// The next vocal tic.
    tic: Arc<[i16]>,
}

/// Words of one kind that are kept ready.
#[derive(Debug)]
struct Words {
    /// Phrases that are not known to be too long or too short in this voice.
    phrases: Vec<String>,
    length_ms: [u32; 2],
    gain: f64,
    next: Option<Clip>,
}

/// One phrase, its audio on the way or there.
#[derive(Debug)]
struct Clip {
    phrase: usize,
    effect: EffectId,
    audio: Vec<Arc<[i16]>>,
    ready: Option<Arc<[i16]>>,
}

impl Words {
    fn new(mut phrases: Vec<String>, length_ms: [u32; 2], gain: f64) -> Words {
        phrases.retain(|phrase| !phrase.is_empty());
        Words { phrases, length_ms, gain, next: None }
    }

    fn waiting(&self) -> Option<EffectId> {
        self.next.as_ref().filter(|clip| clip.ready.is_none()).map(|clip| clip.effect)
    }

    /// Completes the next phrase, as all its audio is here. False when its length does not fit: it is crossed off.
    fn complete(&mut self) -> bool {
        let Some(clip) = &mut self.next else { return true };
        let whole: Vec<i16> = clip.audio.drain(..).flat_map(|part| part.to_vec()).collect();
        let [shortest, longest] = self.length_ms.map(|length| ms(length) as usize);
        let words = &whole[trim_silence(&whole)];
        if !(shortest..=(longest as f64 * MOST_HURRIED) as usize).contains(&words.len()) {
            self.phrases.remove(clip.phrase);
            self.next = None;
            return false;
        }
        let words = shorten(words, longest);
        clip.ready = Some(words.iter().map(|&x| (f64::from(x) * self.gain).round() as i16).collect());
        true
    }

    fn take(&mut self) -> Option<(String, Arc<[i16]>)> {
        let clip = self.next.take_if(|clip| clip.ready.is_some())?;
        Some((self.phrases[clip.phrase].clone(), clip.ready?))
    }
}

impl Probes {
    /// Takes its words out of `spec`: nothing else says them. `None` when the call makes no probes.
    pub(super) fn new(spec: &mut CallSpec) -> Option<Probes> {
        let [backchannels, asides] = [&mut spec.phrases.backchannel, &mut spec.phrases.aside].map(std::mem::take);
        let asked = &spec.probes;
        let rates = [asked.backchannel_per_minute, asked.vocal_tic_per_minute, asked.non_directed_per_minute]
            .map(|rate| if rate.is_finite() { rate.max(0.0) } else { 0.0 });
        if rates == [0.0; 3] {
            return None;
        }
        let mut probes = Probes {
            rates,
            waits: [0; 3],
            rest: 0,
            draws: spec.seed.stream("probe"),
            backchannels: Words::new(backchannels, BACKCHANNEL_MS, 1.0),
            asides: Words::new(asides, ASIDE_MS, ASIDE_GAIN),
            tic: Arc::default(),
        };
        ProbeKind::ALL.into_iter().for_each(|kind| probes.draw_wait(kind));
        probes.make_tic();
        Some(probes)
    }

    fn words(&mut self, kind: ProbeKind) -> Option<&mut Words> {
        match kind {
            ProbeKind::Backchannel => Some(&mut self.backchannels),
            ProbeKind::VocalTic => None,
            ProbeKind::NonDirected => Some(&mut self.asides),
        }
    }

    fn draw_wait(&mut self, kind: ProbeKind) {
        let per_s = self.rates[kind as usize] / 60.0;
        self.waits[kind as usize] = if per_s > 0.0 {
            let seconds = -(1.0 - self.draws.unit()).ln() / (per_s * self.density());
            (seconds * f64::from(RATE_HZ)) as Sample
        } else {
            Sample::MAX
        };
    }

    /// Returns the density of the process in units of the rates, which makes up for the time that stands still.
    fn density(&self) -> f64 {
        let still_s = |mean_s: f64| mean_s + f64::from(APART_MS) / 1000.0;
        let still: f64 = self.rates.iter().zip(MEAN_S).map(|(rate, mean_s)| rate / 60.0 * still_s(mean_s)).sum();
        1.0 / (1.0 - still).max(1.0 / MOST_DENSE)
    }

    fn make_tic(&mut self) {
        if self.rates[ProbeKind::VocalTic as usize] > 0.0 {
            let tic = Tic::ALL[self.draws.index(Tic::ALL.len())];
            self.tic = vocal_tic::generate(tic, &mut self.draws).into();
        }
    }

    /// Passes a frame at `at` in which a probe may sound; the other side's turn began at `onset`. Returns the probe
    /// that sounds in it with its place. None sounds where that side `pauses`: a due probe then waits.
    fn pass(&mut self, at: Sample, onset: Sample, pauses: bool) -> Option<(ProbeKind, Sample)> {
        let end = at + FRAME as Sample;
        let still = self.rest.min(FRAME as Sample);
        self.rest -= still;
        let from = |kind: ProbeKind| match kind {
            ProbeKind::Backchannel => (at + still).max(onset + ms(INTO_TURN_MS)).min(end),
            ProbeKind::VocalTic | ProbeKind::NonDirected => at + still,
        };
        let due = |kind: ProbeKind| from(kind).saturating_add(self.waits[kind as usize]);
        let first = ProbeKind::ALL.into_iter().min_by_key(|&kind| due(kind));
        let first = first.filter(|&kind| !pauses && due(kind) < end);
        let passed_to = first.map_or(end, due);
        let passed = ProbeKind::ALL.map(|kind| (passed_to - from(kind)).max(0));
        for (wait, passed) in self.waits.iter_mut().zip(passed).filter(|(wait, _)| **wait < Sample::MAX) {
            *wait = (*wait - passed).max(0);
        }
        first.map(|kind| (kind, passed_to))
    }

    /// Draws the due probes anew, when the other side's speech was over before they could sound.
    fn draw_anew(&mut self) {
        for kind in ProbeKind::ALL {
            if self.waits[kind as usize] == 0 {
                self.draw_wait(kind);
            }
        }
    }

    /// Begins a probe of `length` in the frame that passes, `passed` before its end.
    fn rest_after(&mut self, length: Sample, passed: Sample) {
        self.rest = length + ms(APART_MS) - passed;
    }

    /// Takes the audio of a probe, and its words if it has any. `None` when it is not ready.
    fn take(&mut self, kind: ProbeKind) -> Option<(String, Arc<[i16]>)> {
        match self.words(kind) {
            Some(words) => words.take(),
            None => Some((String::new(), std::mem::take(&mut self.tic))),
        }
    }
}

impl TurnTaking {
    /// Orders the first words of each kind.
    pub(super) fn prepare_probes(&mut self) {
        self.order_probe(ProbeKind::Backchannel);
        self.order_probe(ProbeKind::NonDirected);
    }

    /// Replaces the words kept ready by those of `spec.phrases`, in another language.
    pub(super) fn renew_probes(&mut self) {
        let [backchannels, asides] =
            [&mut self.rules.phrases.backchannel, &mut self.rules.phrases.aside].map(std::mem::take);
        let Some(probes) = &mut self.probes else { return };
        let old = [&probes.backchannels, &probes.asides].into_iter().filter_map(|words| words.waiting()).collect();
        probes.backchannels = Words::new(backchannels, BACKCHANNEL_MS, 1.0);
        probes.asides = Words::new(asides, ASIDE_MS, ASIDE_GAIN);
        self.cancel(old);
        self.prepare_probes();
    }

    /// Orders the next words of a kind. A kind of which no words are left does not sound again.
    fn order_probe(&mut self, kind: ProbeKind) {
        let Some(mut probes) = self.probes.take() else { return };
        let drawn = probes.draws.unit();
        let is_wanted = probes.rates[kind as usize] > 0.0;
        if let Some(words) = probes.words(kind).filter(|words| is_wanted && words.next.is_none()) {
            let phrase = (drawn * words.phrases.len() as f64) as usize;
            if let Some(text) = words.phrases.get(phrase).cloned() {
                let effect = self.effect(Effect::Synthesize { text, fluency: false });
                words.next = Some(Clip { phrase, effect, audio: Vec::new(), ready: None });
            } else {
                self.note(self.scene.at, "probe_words_do_not_fit");
                probes.rates[kind as usize] = 0.0;
                probes.draw_wait(kind);
            }
        }
        self.probes = Some(probes);
    }

    fn probe_waits_for(&mut self, id: EffectId) -> Option<(ProbeKind, &mut Words)> {
        let probes = self.probes.as_mut()?;
        let kind =
            ProbeKind::ALL.into_iter().find(|&kind| probes.words(kind).and_then(|of| of.waiting()) == Some(id))?;
        Some((kind, probes.words(kind)?))
    }

    /// Takes audio that nothing else waits for.
    pub(super) fn give_to_probe(&mut self, id: EffectId, pcm: &Arc<[i16]>, last: bool) {
        let Some((kind, words)) = self.probe_waits_for(id) else { return };
        words.next.iter_mut().for_each(|clip| clip.audio.push(pcm.clone()));
        if last && !words.complete() {
            self.order_probe(kind);
        }
    }

    /// True when a probe waited for what failed. It is asked for again when it is due.
    pub(super) fn probe_failed(&mut self, id: EffectId) -> bool {
        let Some((_, words)) = self.probe_waits_for(id) else { return false };
        words.next = None;
        true
    }

    pub(super) fn run_probes(&mut self) {
        let turn = self.probed_turn();
        let Some(probes) = &mut self.probes else { return };
        let Some(onset) = turn else { return probes.draw_anew() };
        let spoken_to = self.scene.spoken_to;
        let pauses = spoken_to.is_none_or(|to| self.scene.heard_to - to > ms(PAUSE_MS));
        let Some((kind, at)) = probes.pass(self.scene.at, onset, pauses) else { return };
        probes.draw_wait(kind);
        let taken = probes.take(kind);
        let mean = (MEAN_S[kind as usize] * f64::from(RATE_HZ)) as Sample;
        let length = taken.as_ref().map_or(mean, |(_, pcm)| pcm.len() as Sample);
        // A probe that is left out takes its time, too, so that it is counted as often as it would have sounded.
        probes.rest_after(length, self.scene.at + FRAME as Sample - at);
        match taken {
            Some((text, pcm)) => {
                if kind == ProbeKind::VocalTic {
                    probes.make_tic();
                }
                self.sound_probe(kind, &text, pcm, at);
            }
            None => self.note(at, "probe_not_ready"),
        }
        self.order_probe(kind);
    }

    /// Returns the onset of the other side's turn, when a probe may sound in it now.
    fn probed_turn(&self) -> Option<Sample> {
        let silent = self.mouth.speaking_since().is_none() && self.dial.is_none();
        let free = self.barge_in.is_none()
            && self.hold.is_none()
            && self.hangup.is_none()
            && !self.scene.on_hold
            && !self.scene.away;
        let turn = self.other.turn.as_ref().filter(|turn| turn.has_speech());
        turn.filter(|_| self.probes.is_some() && silent && free && self.other.since.is_some()).map(|turn| turn.from)
    }

    fn sound_probe(&mut self, kind: ProbeKind, text: &str, pcm: Arc<[i16]>, at: Sample) {
        self.last_utterance += 1;
        let mut probe = Utterance::new(self.last_utterance, Kind::Probe, true);
        probe.add_clip(text, pcm);
        self.event(at, Side::Dh, EventKind::Probe { kind });
        self.mouth.sound(probe, at);
    }

    /// Fades a probe that sounds, as something else is to be heard from `at` on.
    pub(super) fn cut_probe(&mut self, at: Sample) {
        if let Some(said) = self.mouth.cut_probe(at) {
            self.probe_ended(said, true);
        }
    }

    pub(super) fn probe_ended(&mut self, Said { utterance, begun, end, pauses, .. }: Said, interrupted: bool) {
        if let Some(begun) = begun {
            self.speech_begins(begun);
        }
        let (text, _) = utterance.split();
        let (utterance_id, kind, exact) = (utterance.id, utterance.kind, utterance.exact);
        self.event(end, Side::Dh, EventKind::SpeechEnded { utterance_id, text, kind, interrupted, exact, pauses });
    }

    /// Ends all probes, for good.
    pub(super) fn drop_probes(&mut self) {
        let Some(probes) = self.probes.take() else { return };
        self.cancel([&probes.backchannels, &probes.asides].into_iter().filter_map(|words| words.waiting()).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::{ProbeRates, ms};
    use crate::seed::Seed;

    const HOURS: Sample = 20;

    /// Returns the number of probes of each kind in a minute of a turn that does not end. The second value has the
    /// shortest and the longest time from the end of one to the next, in seconds.
    fn probe_rates(rates: [f64; 3]) -> ([f64; 3], [f64; 2]) {
        let [backchannel_per_minute, vocal_tic_per_minute, non_directed_per_minute] = rates;
        let probes = ProbeRates { backchannel_per_minute, vocal_tic_per_minute, non_directed_per_minute };
        let mut spec = CallSpec { seed: Seed(9), probes, ..CallSpec::default() };
        let mut probes = Probes::new(&mut spec).expect("some are asked for");
        let (mut counts, mut last, mut apart) = ([0; 3], None, [f64::MAX, 0f64]);
        let minutes = HOURS * 60;
        for at in (0..minutes * 60_000 * 16).step_by(FRAME) {
            let Some((kind, from)) = probes.pass(at, -ms(INTO_TURN_MS), false) else { continue };
            assert!((at..at + FRAME as Sample).contains(&from), "{kind:?} at {from} in the frame at {at}");
            let length = (MEAN_S[kind as usize] * 16_000.0) as Sample;
            counts[kind as usize] += 1;
            if let Some(end) = last.replace(from + length) {
                let seconds = (from - end) as f64 / 16_000.0;
                apart = [apart[0].min(seconds), apart[1].max(seconds)];
            }
            probes.rest_after(length, at + FRAME as Sample - from);
            probes.draw_wait(kind);
        }
        (counts.map(|count| f64::from(count) / minutes as f64), apart)
    }

    #[test]
    fn each_kind_has_its_rate_and_two_seconds_of_quiet() {
        for rates in
            [[1.0, 0.0, 0.0], [6.0, 0.0, 0.0], [20.0, 0.0, 0.0], [0.0, 10.0, 0.0], [0.0, 0.0, 10.0], [8.0, 4.0, 4.0]]
        {
            let (found, [shortest, longest]) = probe_rates(rates);
            println!("{rates:?} asked, {found:.2?} a minute, {shortest:.3} to {longest:.1} s apart");
            for (found, rate) in found.into_iter().zip(rates) {
                // In 20 h the rate of one a minute is sure to 3 %.
                assert!((found - rate).abs() <= 0.09 * rate.max(f64::EPSILON), "{rates:?}: {found:?}");
            }
            assert!((2.0..2.1).contains(&shortest), "{rates:?}: {shortest} s apart");
        }
        // There is no space for more: the kinds keep their shares of what there is.
        let (found, [shortest, _]) = probe_rates([20.0, 10.0, 10.0]);
        let all: f64 = found.iter().sum();
        println!("20, 10, 10 asked, {found:.2?} a minute, {all:.2} in all");
        assert!((21.0..24.0).contains(&all) && shortest >= 2.0, "{found:?}");
        assert!((found[0] / all - 0.5).abs() < 0.02 && (found[1] / all - 0.25).abs() < 0.02, "{found:?}");
    }
}
