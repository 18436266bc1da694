//! Makes DTMF tones, sample-exactly placed.

use std::f64::consts::{PI, TAU};

use super::frequencies_hz;
use crate::frame::{PER_MS, RATE_HZ, Sample};

/// Level of the low frequency: -10 dBov, as the amplitude of a sine.
const LOW_AMPLITUDE: f64 = 14_654.4;

/// Level of the high frequency: -8 dBov, as the amplitude of a sine.
const HIGH_AMPLITUDE: f64 = 18_448.8;

/// Length of a tone's raised-cosine edges (inside its duration), in samples.
const EDGE: i64 = 5 * PER_MS;

/// Lengths of tones and pauses of a row of digits.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Length of a tone in milliseconds.
    pub tone_ms: u32,
    /// Silence after each tone in milliseconds.
    pub gap_ms: u32,
    /// Pause for a comma, in milliseconds; 0 when commas only separate digits.
    pub comma_ms: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Pace { tone_ms: 100, gap_ms: 100, comma_ms: 0 }
    }
}

/// A row of digits with their places on the sample clock.
#[derive(Clone, Debug)]
pub struct Tones {
    tones: Vec<Tone>,
    length: i64,
    next: usize,
}

#[derive(Copy, Clone, Debug)]
struct Tone {
    digit: char,
    at: Sample,
    low_hz: f64,
    high_hz: f64,
}

impl Tones {
    /// Plans `digits` (0-9 * # A-D, in either case) from position `at` on. Characters other than digits and commas are
    /// passed over.
    pub fn new(digits: &str, at: Sample, pace: Pace) -> Tones {
        let mut tones = Vec::with_capacity(digits.len());
        let mut at = at;
        for digit in digits.chars() {
            if let Some((low_hz, high_hz)) = frequencies_hz(digit) {
                tones.push(Tone { digit: digit.to_ascii_uppercase(), at, low_hz, high_hz });
                at += (pace.tone_ms as i64 + pace.gap_ms as i64) * PER_MS;
            } else if digit == ',' {
                at += pace.comma_ms as i64 * PER_MS;
            }
        }
        Tones { tones, length: pace.tone_ms as i64 * PER_MS, next: 0 }
    }

    /// Returns the digits with their onsets, in order.
    pub fn onsets(&self) -> impl Iterator<Item = (char, Sample)> + '_ {
        self.tones.iter().map(|tone| (tone.digit, tone.at))
    }

    /// Returns the end of the last tone; `None` without a digit.
    pub fn end(&self) -> Option<Sample> {
        self.tones.last().map(|tone| tone.at + self.length)
    }

    /// Adds the tones in the frame that begins at `from` to its sums, which reach a little over 16 bits: the mixer
    /// limits them. Frames come in order. False once all tones lie before the frame's end. Allocates nothing.
    pub fn mix(&mut self, from: Sample, sums: &mut [i32]) -> bool {
        let to = from + sums.len() as i64;
        for at in self.next..self.tones.len() {
            let tone = self.tones[at];
            if tone.at >= to {
                break;
            }
            tone.mix(self.length, from, sums);
            if tone.at + self.length <= to {
                self.next = at + 1;
            }
        }
        self.next < self.tones.len()
    }
}

impl Tone {
    fn mix(&self, length: i64, from: Sample, sums: &mut [i32]) {
        let start = (from - self.at).clamp(0, length);
        let stop = (from + sums.len() as i64 - self.at).clamp(0, length);
        let offset = (self.at + start - from).max(0) as usize;
        let (mut low, mut high) = (Wave::new(self.low_hz, start), Wave::new(self.high_hz, start));
        for (within, sum) in (start..stop).zip(sums.iter_mut().skip(offset)) {
            let wave = LOW_AMPLITUDE * low.next() + HIGH_AMPLITUDE * high.next();
            *sum += (wave * edge(within.min(length - 1 - within))).round() as i32;
        }
    }
}

/// Returns the envelope at this many samples from a tone's nearer end.
fn edge(distance: i64) -> f64 {
    if distance >= EDGE { 1.0 } else { 0.5 - 0.5 * (PI * (distance as f64 + 0.5) / EDGE as f64).cos() }
}

/// A sine by rotation: exact at the frame's start, stable over a frame.
struct Wave {
    sine: f64,
    cosine: f64,
    step: (f64, f64),
}

impl Wave {
    fn new(hz: f64, at: i64) -> Wave {
        let step = TAU * hz / RATE_HZ as f64;
        let (sine, cosine) = (step * at as f64).sin_cos();
        Wave { sine, cosine, step: step.sin_cos() }
    }

    fn next(&mut self) -> f64 {
        let value = self.sine;
        let (sine, cosine) = self.step;
        self.sine = value * cosine + self.cosine * sine;
        self.cosine = self.cosine * cosine - value * sine;
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn play(digits: &str, at: Sample, pace: Pace, frames: usize) -> Vec<i32> {
        let mut tones = Tones::new(digits, at, pace);
        let mut sums = vec![0; frames * 320];
        for (frame, sums) in sums.chunks_mut(320).enumerate() {
            let more = tones.mix(frame as i64 * 320, sums);
            assert_eq!(more, tones.end().is_some_and(|end| end > (frame as i64 + 1) * 320));
        }
        sums
    }

    /// Returns the level of one frequency in a stretch of 16 kHz audio, in dBov.
    fn level_dbov(sums: &[i32], hz: f64) -> f64 {
        let step = TAU * hz / 16_000.0;
        let (mut sine, mut cosine) = (0.0, 0.0);
        for (at, &sum) in sums.iter().enumerate() {
            sine += sum as f64 * (step * at as f64).sin();
            cosine += sum as f64 * (step * at as f64).cos();
        }
        let scale = 2.0 / sums.len() as f64 / 32_768.0;
        10.0 * (((sine * scale).powi(2) + (cosine * scale).powi(2)) / 2.0).log10()
    }

    #[test]
    fn each_digit_has_its_two_frequencies_at_their_levels() {
        for (digit, low_hz, high_hz) in
            [('1', 697.0, 1209.0), ('5', 770.0, 1336.0), ('#', 941.0, 1477.0), ('d', 941.0, 1633.0)]
        {
            let sums = play(&digit.to_string(), 0, Pace { tone_ms: 1010, ..Pace::default() }, 51);
            let steady = &sums[80..16_080];
            assert!((level_dbov(steady, low_hz) + 10.0).abs() < 0.05, "{digit}");
            assert!((level_dbov(steady, high_hz) + 8.0).abs() < 0.05, "{digit}");
            assert!(level_dbov(steady, low_hz + 50.0) < -60.0, "{digit}");
        }
    }

    #[test]
    fn tones_begin_and_end_on_their_samples_with_soft_edges() {
        let sums = play("12", 1003, Pace::default(), 20);
        let sounding: Vec<usize> = (0..sums.len()).filter(|&at| sums[at] != 0).collect();
        assert!((1003..1006).contains(&sounding[0]), "{}", sounding[0]);
        let last = *sounding.last().unwrap();
        assert!((1003 + 4800 - 3..1003 + 4800).contains(&last), "{last}");
        assert!(sums[1003 + 1600..1003 + 3200].iter().all(|&sum| sum == 0));
        let largest = |range: &[i32]| range.iter().map(|sum| sum.abs()).max().unwrap();
        assert!(largest(&sums[1003..1013]) < 2000 && largest(&sums[1083..1400]) > 30_000);
    }

    #[test]
    fn digits_are_planned_by_the_pace() {
        let onsets = |digits, pace| Tones::new(digits, 8000, pace).onsets().collect::<Vec<_>>();
        assert_eq!(onsets("1,x2a", Pace::default()), [('1', 8000), ('2', 11_200), ('A', 14_400)]);
        let dialled = Pace { tone_ms: 50, gap_ms: 50, comma_ms: 1000 };
        assert_eq!(onsets("1,,#", dialled), [('1', 8000), ('#', 8000 + 1600 + 32_000)]);
        assert_eq!(Tones::new("#", 8000, dialled).end(), Some(8800));
        assert_eq!(Tones::new("", 0, dialled).end(), None);
        assert!(!Tones::new(" ", 0, dialled).mix(0, &mut [0; 320]));
    }
}
