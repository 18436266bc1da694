//! Tones of the telephone network: ringback, busy, reorder, special information tones, dial tone, and the beep of an
//! answering machine (ITU-T E.180 and its supplement 2).
//!
//! Networks differ in frequencies and cadences, so both are reported as they are heard, and the kind follows from the
//! form alone: how long a tone sounds, how long it pauses, and whether it rises in three steps. Speech, music and
//! digits are none of them.

use std::f64::consts::TAU;

use crate::dot::squares;
use crate::frame::{FRAME, Frame, PER_MS, Sample};
use crate::vad::tone::is_tone;

/// Mean square below which sound is silence (-45 dBov).
const MIN_POWER: f64 = 34_000.0;
/// Level of a tone above everything else in its frame, at least, in dB.
const ABOVE_DB: f32 = 15.0;
/// Largest share of the power of a frame beside its one sinusoid.
const SINGLE_REST: f64 = 0.02;
/// Largest ratio of frequencies that count as one tone.
const SAME_HZ: f64 = 1.06;
/// Distance of the samples from which the mean frequency of a frame is computed: unambiguous to 4 kHz.
const STEP: usize = 2;
/// Largest number of frames without a tone within one burst.
const MAX_MISSED: u32 = 1;
/// Number of bursts that are kept: a double ring and the first burst of the next one.
const BURSTS: usize = 5;
/// Time after which a dial tone is reported; no shorter tone is one (milliseconds).
const DIAL_MS: Sample = 2500;
/// Longest burst and longest pause of a cadence (milliseconds); Q.35 and E.180 stay below 5 s.
const LONGEST_MS: Sample = 6000;
/// Shortest pause of a ring (milliseconds).
const RING_PAUSE_MS: Sample = 900;
/// Bounds of the length of a beep (milliseconds).
const BEEP_MS: std::ops::RangeInclusive<Sample> = 120..=2000;
/// Silence, or at least no tone, after a beep (milliseconds).
const AFTER_BEEP_MS: Sample = 500;
/// Other sound that comes before a beep (a greeting), and the longest pause between them (milliseconds).
const GREETING_MS: Sample = 1000;
const GREETING_PAUSE_MS: Sample = 6000;
/// Bounds of the frequency of a beep, Hz.
const BEEP_HZ: std::ops::RangeInclusive<f64> = 350.0..=2600.0;
/// Frequencies of special information tones (ITU-T E.180 supplement 2): nominal 950, 1400 and 1800 Hz, each within 90
/// Hz.
const RISING_HZ: [f64; 3] = [950.0, 1400.0, 1800.0];
const RISING_OFF_HZ: f64 = 90.0;
/// Bounds of the length of each of them: nominal 330 ms, in North America 276 or 380.
const RISING_MS: std::ops::RangeInclusive<Sample> = 200..=460;

/// Kind of a tone of the network.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LineToneKind {
    /// The called telephone rings.
    Ringback,
    /// The called number is engaged.
    Busy,
    /// The network has no way to it (fast busy, congestion).
    Reorder,
    /// Three rising tones before an announcement: the call was not completed.
    SpecialInformation,
    /// The network waits for digits.
    Dial,
    /// One short tone after speech.
    Beep,
}

impl LineToneKind {
    /// All kinds, in the order of their declaration.
    pub const ALL: [LineToneKind; 6] = [
        LineToneKind::Ringback,
        LineToneKind::Busy,
        LineToneKind::Reorder,
        LineToneKind::SpecialInformation,
        LineToneKind::Dial,
        LineToneKind::Beep,
    ];

    /// Returns the name of the kind in timelines.
    pub fn name(self) -> &'static str {
        match self {
            LineToneKind::Ringback => "ringback",
            LineToneKind::Busy => "busy",
            LineToneKind::Reorder => "reorder",
            LineToneKind::SpecialInformation => "special_information",
            LineToneKind::Dial => "dial",
            LineToneKind::Beep => "beep",
        }
    }

    /// Returns the kind of this name; `None` for any other text.
    pub fn from_name(name: &str) -> Option<LineToneKind> {
        LineToneKind::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A tone of the network, as it was received.
#[derive(Clone, Debug, PartialEq)]
pub struct LineTone {
    /// Kind, by its cadence.
    pub kind: LineToneKind,
    /// First sample of the first burst.
    pub from: Sample,
    /// Mean frequency of the first burst, Hz: of two sinusoids, the middle by their power.
    pub hz: f64,
    /// Lengths of the tone and of its pauses in turn, milliseconds, as far as they are known.
    pub cadence_ms: Vec<u32>,
    /// First sample of the speech before a beep, and one past its last; `None` for other kinds.
    pub greeting: Option<[Sample; 2]>,
}

/// Sound that is no tone, with pauses shorter than those between a greeting and its beep.
#[derive(Copy, Clone, Debug)]
struct Greeting {
    from: Sample,
    to: Sample,
    /// Number of samples of sound in it.
    heard: Sample,
}

/// A tone without a pause.
#[derive(Copy, Clone, Debug)]
struct Burst {
    from: Sample,
    to: Sample,
    hz: f64,
    /// Number of frames, and of those with one sinusoid alone.
    frames: u32,
    single: u32,
}

impl Burst {
    fn ms(&self) -> Sample {
        (self.to - self.from) / PER_MS
    }

    /// True for one sinusoid; the frames at its edges may differ.
    fn is_single(&self) -> bool {
        self.single + 2 >= self.frames
    }

    fn is_like(&self, hz: f64) -> bool {
        (self.hz / hz).max(hz / self.hz) < SAME_HZ
    }
}

/// Finds tones of the network in the audio of one side, 20 ms at a time. Allocates only when it finds one.
#[derive(Clone, Debug, Default)]
pub struct LineTones {
    /// Tone that sounds, and the number of frames since it was last found.
    open: Option<(Burst, u32)>,
    /// Bursts that are over, the latest last.
    bursts: [Option<Burst>; BURSTS],
    /// Kind and frequency that were reported last: one tone is reported once while it goes on.
    reported: Option<(LineToneKind, f64)>,
    /// True while the last burst may still turn out to be a beep.
    may_beep: bool,
    /// Sound that was no tone, as a greeting is.
    greeting: Option<Greeting>,
}

impl LineTones {
    /// Takes the next frame, whose first sample is `from`. Returns a tone of the network once it is known to be one.
    pub fn push(&mut self, pcm: &Frame, from: Sample) -> Option<LineTone> {
        let power = mean_power(pcm);
        let heard = tone_in(pcm, power);
        if heard.is_none() && power >= MIN_POWER {
            let known = self.greeting.filter(|known| from - known.to < GREETING_PAUSE_MS * PER_MS);
            let mut greeting = known.unwrap_or(Greeting { from, to: from, heard: 0 });
            greeting.to = from + FRAME as Sample;
            greeting.heard += FRAME as Sample;
            self.greeting = Some(greeting);
        }
        if let (Some((burst, missed)), Some((hz, is_single))) = (&mut self.open, heard)
            && burst.is_like(hz)
        {
            *missed = 0;
            burst.frames += 1;
            burst.single += u32::from(is_single);
            burst.hz += (hz - burst.hz) / f64::from(burst.frames);
            burst.to = from + FRAME as Sample;
            return self.dial_tone();
        }
        let found = match (&mut self.open, heard) {
            (Some((_, missed)), None) if *missed < MAX_MISSED => {
                *missed += 1;
                None
            }
            (Some(_), _) => self.close(),
            (None, _) => None,
        };
        if let Some((hz, is_single)) = heard.filter(|_| self.open.is_none()) {
            self.may_beep = false;
            let burst = Burst { from, to: from + FRAME as Sample, hz, frames: 1, single: u32::from(is_single) };
            self.open = Some((burst, 0));
        }
        found.or_else(|| self.beep(from))
    }

    /// Ends the tone that sounded.
    fn close(&mut self) -> Option<LineTone> {
        let (burst, _) = self.open.take()?;
        if burst.frames < 3 {
            return None;
        }
        self.bursts.rotate_left(1);
        self.bursts[BURSTS - 1] = Some(burst);
        let greeted = self.greeting.is_some_and(|greeting| {
            greeting.heard >= GREETING_MS * PER_MS && burst.from - greeting.to < GREETING_PAUSE_MS * PER_MS
        });
        self.may_beep = greeted && burst.is_single() && BEEP_MS.contains(&burst.ms()) && BEEP_HZ.contains(&burst.hz);
        let found = self.special_information().or_else(|| self.cadence());
        if found.is_some() {
            self.may_beep = false;
        }
        found
    }

    /// Returns the last `count` bursts, the earliest first; `None` where there are fewer.
    fn last(&self, count: usize) -> Option<Vec<Burst>> {
        self.bursts[BURSTS - count..].iter().copied().collect()
    }

    fn special_information(&mut self) -> Option<LineTone> {
        let last = self.last(RISING_HZ.len())?;
        let rises = last.iter().zip(RISING_HZ).all(|(burst, hz)| {
            burst.is_single() && (burst.hz - hz).abs() < RISING_OFF_HZ && RISING_MS.contains(&burst.ms())
        });
        let joined = last.windows(2).all(|pair| pair[1].from - pair[0].to < 60 * PER_MS);
        (rises && joined).then(|| self.tell(LineToneKind::SpecialInformation, &last))?
    }

    /// Returns a tone that comes again, by the lengths of its bursts and pauses.
    fn cadence(&mut self) -> Option<LineTone> {
        if let Some(last) = self.last(3).filter(|last| is_one_tone(last)) {
            let (on, pause) = (last[0].ms(), (last[1].from - last[0].to) / PER_MS);
            let again = (last[2].from - last[1].to) / PER_MS;
            let is_even = alike(on, last[1].ms()) && alike(on, last[2].ms()) && alike(pause, again);
            if is_even && pause < RING_PAUSE_MS && on < RING_PAUSE_MS && (on <= 2 * pause && pause <= 2 * on) {
                let kind = if on + pause <= 650 { LineToneKind::Reorder } else { LineToneKind::Busy };
                return self.tell(kind, &last);
            }
            // Two short rings and a long pause.
            if alike(on, last[1].ms()) && pause < RING_PAUSE_MS && again >= RING_PAUSE_MS && on >= 250 {
                return self.tell(LineToneKind::Ringback, &last);
            }
        }
        let last = self.last(2).filter(|last| is_one_tone(last))?;
        let (on, pause) = (last[0].ms(), (last[1].from - last[0].to) / PER_MS);
        let rings = alike(on, last[1].ms()) && on >= 300 && (RING_PAUSE_MS..=LONGEST_MS).contains(&pause);
        rings.then(|| self.tell(LineToneKind::Ringback, &last))?
    }

    fn dial_tone(&mut self) -> Option<LineTone> {
        let (burst, ..) =
            self.open.filter(|(burst, ..)| burst.ms() >= DIAL_MS && (330.0..520.0).contains(&burst.hz))?;
        self.tell(LineToneKind::Dial, &[burst])
    }

    /// Returns the last burst as a beep, when it stood alone and nothing like it has come since.
    fn beep(&mut self, now: Sample) -> Option<LineTone> {
        let last = self.bursts[BURSTS - 1].filter(|_| self.may_beep && self.open.is_none())?;
        if now - last.to < AFTER_BEEP_MS * PER_MS {
            return None;
        }
        self.may_beep = false;
        let before = self.bursts[BURSTS - 2];
        let came_before = before.is_some_and(|b| b.is_like(last.hz) && last.from - b.to < LONGEST_MS * PER_MS);
        (!came_before).then(|| self.tell(LineToneKind::Beep, &[last]))?
    }

    /// Returns the tone unless it is the one that was reported last; a beep is always reported.
    fn tell(&mut self, kind: LineToneKind, bursts: &[Burst]) -> Option<LineTone> {
        let first = bursts.first()?;
        let known = self.reported.is_some_and(|(reported, hz)| reported == kind && first.is_like(hz));
        if known && kind != LineToneKind::Beep {
            return None;
        }
        self.reported = Some((kind, first.hz));
        let mut cadence_ms = Vec::new();
        for (at, burst) in bursts.iter().enumerate() {
            if at > 0 {
                cadence_ms.push(((burst.from - bursts[at - 1].to) / PER_MS) as u32);
            }
            cadence_ms.push(burst.ms() as u32);
        }
        let greeting =
            self.greeting.filter(|_| kind == LineToneKind::Beep).map(|greeting| [greeting.from, greeting.to]);
        Some(LineTone { kind, from: first.from, hz: first.hz.round(), cadence_ms, greeting })
    }
}

/// True for bursts of one frequency, none of them longer than a cadence has.
fn is_one_tone(bursts: &[Burst]) -> bool {
    let first = bursts[0].hz;
    bursts.iter().all(|burst| burst.is_like(first) && burst.ms() <= LONGEST_MS)
        && bursts.windows(2).all(|pair| pair[1].from - pair[0].to <= LONGEST_MS * PER_MS)
}

/// True for lengths in milliseconds that are equal but for the grid of frames and the tolerance of networks (10 %).
fn alike(one: Sample, other: Sample) -> bool {
    (one - other).abs() <= 45 + one.max(other) / 10
}

fn mean_power(pcm: &Frame) -> f64 {
    squares(pcm) as f64 / FRAME as f64
}

/// Returns the mean frequency of a frame that is a tone, and whether it is one sinusoid alone.
fn tone_in(pcm: &Frame, power: f64) -> Option<(f64, bool)> {
    if power < MIN_POWER || !is_tone(pcm, ABOVE_DB) {
        return None;
    }
    Some((mean_hz(pcm), is_single(pcm)))
}

/// Returns the frequency of one sinusoid, of several the mean by their power as their cosines add.
fn mean_hz(pcm: &Frame) -> f64 {
    let product = |(x, later): (&i16, &i16)| f64::from(*x) * f64::from(*later);
    let [early, late] = [&pcm[..FRAME - STEP], &pcm[STEP..]];
    let power: f64 = early.iter().zip(early).chain(late.iter().zip(late)).map(product).sum();
    let correlation: f64 = 2.0 * early.iter().zip(late).map(product).sum::<f64>() / power;
    correlation.clamp(-1.0, 1.0).acos() * 16_000.0 / (TAU * STEP as f64)
}

/// True for one sinusoid: x(n) + x(n-2L) = c x(n-L).
fn is_single(pcm: &Frame) -> bool {
    const LAG: usize = 5;
    let triples = || (2 * LAG..FRAME).map(|n| [n, n - LAG, n - 2 * LAG].map(|at| f64::from(pcm[at])));
    let (mut cross, mut power) = (0.0, 0.0);
    for [x, middle, old] in triples() {
        cross += (x + old) * middle;
        power += middle * middle;
    }
    let factor = cross / power.max(1.0);
    let rest: f64 = triples().map(|[x, middle, old]| (x + old - factor * middle).powi(2)).sum();
    rest < SINGLE_REST * 2.0 * power
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::{Codec, Decoder};

    /// Hears `lead`, then frequencies (0, 0: silence) and milliseconds in turn, with a little noise beside them.
    fn play(lead: &[i16], parts: &[(f64, f64, u32)]) -> Vec<LineTone> {
        let mut noise = crate::seed::Seed(7).stream("noise");
        let mut at = 0u64;
        let mut pcm = lead.to_vec();
        for &(one, two, ms) in parts {
            for _ in 0..ms as u64 * 16 {
                let t = at as f64 / 16_000.0;
                let level = if two > 0.0 { 3000.0 } else { 5000.0 };
                let tone = |hz: f64| if hz > 0.0 { level * (TAU * hz * t).sin() } else { 0.0 };
                pcm.push((tone(one) + tone(two) + 20.0 * (noise.unit() - 0.5)) as i16);
                at += 1;
            }
        }
        let mut tones = LineTones::default();
        let frames = pcm.chunks_exact(FRAME).enumerate();
        frames.filter_map(|(n, frame)| tones.push(frame.try_into().unwrap(), (n * FRAME) as Sample)).collect()
    }

    fn kinds(parts: &[(f64, f64, u32)]) -> Vec<&'static str> {
        play(&[], parts).iter().map(|tone| tone.kind.name()).collect()
    }

    const fn silence(ms: u32) -> (f64, f64, u32) {
        (0.0, 0.0, ms)
    }

    #[test]
    fn cadences_of_many_networks_are_told_apart() {
        let repeat = |tone: (f64, f64, u32), off: u32| [tone, silence(off)].repeat(4);
        let check = |parts: Vec<(f64, f64, u32)>, kind: &str| assert_eq!(kinds(&parts), [kind], "{parts:?}");
        for (tone, off) in [
            ((440.0, 480.0, 2000), 4000),
            ((425.0, 0.0, 1000), 4000),
            ((440.0, 0.0, 1500), 3500),
            ((384.0, 416.0, 1000), 2000),
            ((450.0, 0.0, 1000), 4000),
        ] {
            check(repeat(tone, off), "ringback");
        }
        check([(400.0, 450.0, 400), silence(200), (400.0, 450.0, 400), silence(2000)].repeat(3), "ringback");
        for (tone, off) in [
            ((480.0, 620.0, 500), 500),
            ((400.0, 0.0, 375), 375),
            ((425.0, 0.0, 480), 480),
            ((440.0, 0.0, 500), 500),
            ((450.0, 0.0, 350), 350),
        ] {
            check(repeat(tone, off), "busy");
        }
        for (tone, off) in [((480.0, 620.0, 250), 250), ((425.0, 0.0, 240), 240), ((425.0, 0.0, 200), 200)] {
            check(repeat(tone, off), "reorder");
        }
        check(vec![silence(300), (350.0, 440.0, 4000)], "dial");
        check(vec![silence(300), (425.0, 0.0, 4000)], "dial");
    }

    #[test]
    fn special_information_tones_rise_in_three_steps() {
        let check = |parts: [(f64, f64, u32); 3], kinds_told: &[&str]| {
            let parts: Vec<_> = [&[silence(200)][..], &parts, &[silence(2000)]].concat();
            assert_eq!(kinds(&parts), kinds_told, "{parts:?}");
        };
        check([(950.0, 0.0, 330), (1400.0, 0.0, 330), (1800.0, 0.0, 330)], &["special_information"]);
        check([(985.2, 0.0, 380), (1370.6, 0.0, 276), (1776.7, 0.0, 276)], &["special_information"]);
        check([(913.8, 0.0, 276), (1428.5, 0.0, 380), (1776.7, 0.0, 380)], &["special_information"]);
        check([(1800.0, 0.0, 330), (1400.0, 0.0, 330), (950.0, 0.0, 330)], &[]);
    }

    #[test]
    fn a_beep_is_told_once_it_stands_alone_with_its_place_and_length() {
        for (hz, ms) in [(440.0, 400u32), (1000.0, 250), (1400.0, 1000), (2100.0, 150)] {
            let tones = play(&speech()[..16_000 * 4], &[silence(1000), (hz, 0.0, ms), silence(1500)]);
            assert_eq!(tones.len(), 1, "{hz} Hz for {ms} ms: {tones:?}");
            let beep = &tones[0];
            assert_eq!(beep.kind, LineToneKind::Beep);
            assert!((beep.hz - hz).abs() < 0.02 * hz, "{beep:?}");
            assert!((beep.from / PER_MS - 5000).abs() <= 20, "{beep:?}");
            let [from, to] = beep.greeting.expect("somebody spoke before");
            assert!(from < 16_000 && (48_000..=64_000).contains(&to), "{beep:?}");
            assert!((i64::from(beep.cadence_ms[0]) - i64::from(ms)).abs() <= 40, "{beep:?}");
        }
        assert_eq!(kinds(&[silence(1000), (1000.0, 0.0, 400), silence(1500)]), [""; 0], "nobody spoke before");
    }

    #[test]
    fn digits_and_short_clicks_are_no_beeps() {
        let digit = |low, high| (low, high, 120);
        let parts = [silence(500), digit(697.0, 1209.0), silence(900), digit(941.0, 1477.0), silence(900)];
        let lead = &speech()[..16_000 * 4];
        assert_eq!(play(lead, &parts), []);
        assert_eq!(play(lead, &[silence(500), (1000.0, 0.0, 40), silence(900)]), []);
    }

    /// 20 s of four voices, as mu-law.
    const SPEECH: &[u8] = include_bytes!("../../fixtures/audio/speech.ul");

    fn speech() -> Vec<i16> {
        let mut speech = vec![0; SPEECH.len()];
        Decoder::new(Codec::Pcmu).decode(SPEECH, &mut speech);
        speech.windows(2).flat_map(|pair| [pair[0], i16::midpoint(pair[0], pair[1])]).collect()
    }

    #[test]
    fn speech_is_none_of_them() {
        assert_eq!(play(&speech(), &[silence(7000)]), []);
    }
}
