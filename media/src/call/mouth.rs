//! Everything that this side sends: probes, words, tones, background noise, in this order, through the audio quality
//! lever.

use super::edges::Edges;
use super::spec::{CallSpec, NoiseSpec};
use super::utterance::{Begun, Utterance};
use crate::dtmf::{Pace, Tones};
use crate::frame::{FRAME, Frame, PER_MS, Sample};
use crate::impair::Impair;
use crate::mixer::{Mixer, NOTHING, Sum};

/// The sources of the sent audio.
#[derive(Debug)]
pub(super) struct Mouth {
    utterance: Option<Utterance>,
    /// A probe that sounds: nobody's turn.
    probe: Option<Box<Utterance>>,
    noise: Option<NoiseSpec>,
    noise_gain: f32,
    tones: Option<Tones>,
    impair: Impair,
    /// Samples at the beginning of each utterance that are not sent.
    onset_lost: Sample,
    mixer: Mixer,
    /// Mixer of the audio before noise is added.
    clean: Mixer,
    /// One past the last sample of the utterance that has words.
    said_to: Sample,
    /// Audible extent of the utterance, or of the probe.
    edges: Edges,
}

/// An utterance that is over.
#[derive(Debug)]
pub(super) struct Said {
    /// Utterance that is over.
    pub utterance: Utterance,
    /// Beginning of the utterance, when it was not reported before.
    pub begun: Option<Begun>,
    /// True end of the utterance.
    pub end: Sample,
    /// One past the last sample of it that was sent.
    pub sent: Sample,
    /// Pauses of 300 ms or more: first sample of each and one past its last.
    pub pauses: Box<[[Sample; 2]]>,
}

/// Beginnings and ends of utterances in one frame.
#[derive(Debug, Default)]
pub(super) struct Rendered {
    /// Beginning of the utterance that goes on, when its true onset was not known before.
    pub begun: Option<Begun>,
    /// Utterance with words that is over.
    pub words: Option<Said>,
    /// Probe that is over, was heard and was not cut short.
    pub probe: Option<Said>,
}

impl Mouth {
    /// Returns the state without sound. `rate_hz` is the codec's.
    pub(super) fn new(spec: &CallSpec, rate_hz: u32) -> Mouth {
        let draws = || spec.seed.stream("audio_quality");
        Mouth {
            utterance: None,
            probe: None,
            noise: spec.noise.clone().filter(|noise| !noise.loop_pcm.is_empty()),
            noise_gain: spec
                .noise
                .as_ref()
                .map_or(0.0, |noise| if rate_hz < crate::frame::RATE_HZ { noise.gain_narrow } else { noise.gain_wide }),
            tones: None,
            impair: Impair::new(spec.audio_quality, rate_hz, draws()),
            onset_lost: Sample::from(spec.onset_lost_ms) * PER_MS,
            mixer: Mixer::new(),
            clean: Mixer::new(),
            said_to: 0,
            edges: Edges::new(spec.audio_quality, rate_hz, draws()),
        }
    }

    /// Begins `utterance` at `at`.
    pub(super) fn say(&mut self, mut utterance: Utterance, at: Sample) {
        utterance.started = Some(at);
        self.said_to = at;
        self.edges.begin(at);
        self.utterance = Some(utterance);
    }

    /// Returns the utterance that is being said; `None` in silence.
    pub(super) fn saying(&mut self) -> Option<&mut Utterance> {
        self.utterance.as_mut()
    }

    /// Cuts what is being said at `end`, without a fade.
    pub(super) fn cut_off(&mut self, end: Sample) -> Option<Said> {
        let mut utterance = self.utterance.take()?;
        let sounded = self.edges.end(end);
        Some(Said {
            begun: utterance.begin(sounded.from),
            utterance,
            end: sounded.to,
            sent: end,
            pauses: sounded.pauses,
        })
    }

    /// Returns the number of the words that sound, probes that have words included; tones, coughs and noise have none.
    pub(super) fn announced_id(&self) -> Option<u32> {
        let has_words = |probe: &&Utterance| !probe.is_stopping() && probe.has_words();
        let probe = self.probe.as_deref().filter(has_words);
        self.utterance.as_ref().or(probe).map(|said| said.id)
    }

    /// Returns the true onset of this side's running words, as soon as it is known; its first sample before.
    pub(super) fn speaking_since(&self) -> Option<Sample> {
        self.utterance.as_ref().and_then(|said| said.onset.or(said.started))
    }

    /// True when this side does not yield before the end of its words.
    pub(super) fn holds_floor(&self) -> bool {
        self.utterance.as_ref().is_some_and(|said| said.holds_floor)
    }

    /// Sounds `probe` at `at`.
    pub(super) fn sound(&mut self, mut probe: Utterance, at: Sample) {
        probe.started = Some(at);
        self.edges.begin(at);
        self.probe = Some(Box::new(probe));
    }

    /// Ends the probe that sounds at `end` with a 5 ms fade; hands it out once, if it was heard.
    pub(super) fn cut_probe(&mut self, end: Sample) -> Option<Said> {
        let probe = self.probe.as_mut().filter(|probe| !probe.is_stopping())?;
        probe.stop();
        let sounded = self.edges.end(end);
        let begun = probe.begin(sounded.from);
        let said = Said { begun, utterance: (**probe).clone(), end: sounded.to, sent: end, pauses: Box::default() };
        sounded.is_heard.then_some(said)
    }

    /// Sounds a digit's tone at `at`.
    pub(super) fn tone(&mut self, digit: char, at: Sample) {
        self.tones = Some(Tones::new(digit.encode_utf8(&mut [0; 4]), at, Pace::default()));
    }

    /// Makes the frame at `at`, and the same before noise and audio quality. What begins and ends in it is handed back.
    pub(super) fn render(&mut self, at: Sample, frame: &mut Frame, clean: &mut Frame) -> Rendered {
        let mut sum = NOTHING;
        let mut rendered = Rendered::default();
        let mut sounds = false;
        // A fade is of all that the sum holds: a probe is cut before words are added.
        if let Some(mut probe) = self.probe.take() {
            let from = first(&probe, at);
            let ended = probe.render(&mut sum, from).ended;
            if probe.is_stopping() {
                self.probe = if ended.is_some() { None } else { Some(probe) };
            } else {
                sounds = true;
                self.edges.follow(at, &sum, from);
                match ended {
                    Some(to) => {
                        let sounded = self.edges.end(at + to as Sample);
                        let begun = probe.begin(sounded.from);
                        let said = Said {
                            begun,
                            utterance: *probe,
                            end: sounded.to,
                            sent: at + to as Sample,
                            pauses: Box::default(),
                        };
                        rendered.probe = sounded.is_heard.then_some(said);
                    }
                    None => {
                        rendered.begun = self.edges.onset().and_then(|onset| probe.begin(onset));
                        self.probe = Some(probe);
                    }
                }
            }
        }
        if let Some(mut utterance) = self.utterance.take() {
            let said = self.render_words(&mut utterance, at, &mut sum);
            sounds = true;
            if let Some(to) = said.wrote_to {
                self.said_to = at + to as Sample;
            }
            // Words may have ended before it was known that none follow.
            match said.ended {
                Some(_) => {
                    let sounded = self.edges.end(self.said_to);
                    let begun = utterance.begin(sounded.from);
                    rendered.words =
                        Some(Said { begun, utterance, end: sounded.to, sent: self.said_to, pauses: sounded.pauses });
                }
                None => {
                    rendered.begun = self.edges.onset().and_then(|onset| utterance.begin(onset));
                    self.utterance = Some(utterance);
                }
            }
        }
        if !sounds {
            self.edges.rest();
        }
        self.tones.take_if(|tones| !tones.mix(at, &mut sum));
        self.clean.finish(&sum, clean);
        match &mut self.noise {
            Some(noise) => {
                mix_loop(&mut sum, noise, self.noise_gain);
                self.mixer.finish(&sum, frame);
            }
            None => *frame = *clean,
        }
        self.impair.process(frame);
        rendered
    }
}

impl Mouth {
    /// Adds words to the sum of the frame at `at`, but their beginning where that is lost.
    fn render_words(&mut self, utterance: &mut Utterance, at: Sample, sum: &mut Sum) -> super::utterance::Rendered {
        let from = first(utterance, at);
        let is_lost = self.onset_lost > 0 && at < utterance.started.unwrap_or(at) + self.onset_lost;
        let before = is_lost.then_some(*sum);
        let said = utterance.render(sum, from);
        self.edges.follow(at, sum, from);
        if let Some(before) = before {
            *sum = before;
        }
        said
    }
}

/// Returns the index in the frame at `at` from which an utterance is mixed.
fn first(utterance: &Utterance, at: Sample) -> usize {
    utterance.started.map_or(0, |start| (start - at).clamp(0, FRAME as Sample)) as usize
}

fn mix_loop(mix: &mut Sum, noise: &mut NoiseSpec, gain: f32) {
    let clip = &noise.loop_pcm;
    let mut at = noise.start % clip.len();
    let mut done = 0;
    while done < FRAME {
        let count = (clip.len() - at).min(FRAME - done);
        for (slot, sample) in mix[done..done + count].iter_mut().zip(&clip[at..at + count]) {
            *slot += round_to_i32(f32::from(*sample) * gain);
        }
        done += count;
        at = (at + count) % clip.len();
    }
    noise.start = at;
}

/// Returns the nearest whole number, limited to 2^21. Adding 1.5 * 2^23 leaves it in the low bits, which vectorises
/// where rounding does not.
#[inline(always)]
fn round_to_i32(value: f32) -> i32 {
    const MOST: f32 = 2_097_152.0;
    (value.clamp(-MOST, MOST) + 12_582_912.0).to_bits() as i32 - 0x4b40_0000
}

#[cfg(test)]
mod tests {
    use super::super::event::Kind;
    use super::super::io::EffectId;
    use super::*;
    use crate::frame::SILENCE;

    #[test]
    fn a_late_gate_takes_the_beginning_of_each_utterance() {
        let mut mouth = Mouth::new(&CallSpec { onset_lost_ms: 40, ..CallSpec::default() }, crate::frame::RATE_HZ);
        let mut next = 0;
        for number in 1..3 {
            let mut said = Utterance::new(number, Kind::Turn, true);
            said.add_words("Yes.", EffectId(number));
            said.give(EffectId(number), vec![9000; 5 * FRAME].into(), true);
            mouth.say(said, next);
            let mut is_loud = || {
                let (mut frame, mut clean) = (SILENCE, SILENCE);
                mouth.render(next, &mut frame, &mut clean);
                next += FRAME as Sample;
                frame.iter().any(|sample| *sample != 0)
            };
            assert_eq!([(); 7].map(|()| is_loud()), [false, false, true, true, true, false, false], "{number}");
        }
    }
}
