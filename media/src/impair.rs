//! Named audio quality of the sent audio: band limit, clipping, added noise and dropouts. Loss and jitter of packets
//! are not here: they act on packets, this acts on frames.

use crate::biquad::{self, Biquad};
use crate::codec::through_mu_law;
use crate::frame::{FRAME, Frame, RATE_HZ};
use crate::seed::Stream;

/// Audio quality of the sent audio: band limit, clipping, noise and dropouts.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct AudioQuality {
    /// Edges of its band at -3 dB, in Hz; `None` leaves the audio untouched.
    pub band_hz: Option<[f64; 2]>,
    /// Kind and level of the clipping.
    pub clip: Clip,
    /// Signal-to-noise ratio of added white noise, dB.
    pub noise_snr_db: Option<f64>,
    /// Dropouts of 100 ms in each 10 s, at most [`AudioQuality::MOST_DROPOUTS`].
    pub dropouts: usize,
    /// True to round each sample as mu-law does (ITU-T G.711); it needs a band.
    pub is_companded: bool,
}

/// Kind of clipping, with its level.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Clip {
    /// No clipping at any level.
    None,
    /// Soft clipping, `T tanh(x / T)`, with T in dBFS.
    Soft(f64),
    /// Hard clipping at this level, in dBFS.
    Hard(f64),
}

impl AudioQuality {
    /// Untouched audio: no band limit, clipping, noise or dropouts.
    pub const HIGH: AudioQuality =
        AudioQuality { band_hz: None, clip: Clip::None, noise_snr_db: None, dropouts: 0, is_companded: false };
    /// Band from 200 to 3400 Hz.
    pub const MEDIUM: AudioQuality = AudioQuality {
        band_hz: Some([200.0, 3400.0]),
        clip: Clip::None,
        noise_snr_db: None,
        dropouts: 0,
        is_companded: false,
    };
    /// Band from 300 to 2700 Hz, soft clipping, added noise at 30 dB.
    pub const LOW: AudioQuality = AudioQuality {
        band_hz: Some([300.0, 2700.0]),
        clip: Clip::Soft(-6.0),
        noise_snr_db: Some(30.0),
        dropouts: 0,
        is_companded: false,
    };
    /// Band from 400 to 2200 Hz, hard clipping, added noise at 15 dB, dropouts.
    pub const HORRIBLE: AudioQuality = AudioQuality {
        band_hz: Some([400.0, 2200.0]),
        clip: Clip::Hard(-12.0),
        noise_snr_db: Some(15.0),
        dropouts: 2,
        is_companded: false,
    };
    /// Band of a telephone line, from 300 to 3400 Hz, and mu-law: a call over PCMU, for channels that have no PCMU.
    pub const TELEPHONE: AudioQuality = AudioQuality {
        band_hz: Some([300.0, 3400.0]),
        clip: Clip::None,
        noise_snr_db: None,
        dropouts: 0,
        is_companded: true,
    };
    /// Largest number of dropouts in 10 s: more do not fit half a second apart.
    pub const MOST_DROPOUTS: usize = 8;
}

impl Default for AudioQuality {
    fn default() -> AudioQuality {
        AudioQuality::HIGH
    }
}

/// Active level of the speech that noise is measured against, dBov.
const SPEECH_DBOV: f64 = -26.0;

/// Level of samples above which the added noise runs (-60 dBFS).
const GATE: f64 = 32.767;

/// Number of samples for which the added noise goes on after the last loud one (200 ms).
const GATE_HOLD: u32 = RATE_HZ / 5;

/// A [`Clip`] in sample values.
#[derive(Copy, Clone, Debug)]
enum Bend {
    None,
    Soft(f64),
    Hard(f64),
}

/// Audio quality of one call. [`Impair::process`] takes frames in sending order, gap-free; it allocates nothing.
#[derive(Clone, Debug)]
pub struct Impair {
    /// Filters of the band; `None` leaves the frame untouched.
    band: Option<[Biquad; 4]>,
    bend: Bend,
    is_companded: bool,
    /// RMS of the added noise in sample values.
    noise_rms: f64,
    /// Number of samples for which the added noise still runs.
    noise_left: u32,
    noise: Stream,
    dropouts: Option<Dropouts>,
}

impl Impair {
    /// Returns the state of a call. `codec_rate_hz` is the sampling rate of the negotiated codec: the added noise has
    /// its SNR in the codec's band. `stream` draws noise and the places of dropouts.
    pub fn new(quality: AudioQuality, codec_rate_hz: u32, stream: Stream) -> Impair {
        let dbfs = |db: f64| 32_767.0 * 10f64.powf(db / 20.0);
        let bend = match quality.clip {
            Clip::None => Bend::None,
            Clip::Soft(top) => Bend::Soft(dbfs(top)),
            Clip::Hard(top) => Bend::Hard(dbfs(top)),
        };
        // White noise at 16 kHz loses what lies above the codec's band.
        let surviving = f64::from(codec_rate_hz.min(RATE_HZ)) / f64::from(RATE_HZ);
        let rms = |snr_db: f64| 32_768.0 * 10f64.powf((SPEECH_DBOV - snr_db) / 20.0) / surviving.sqrt();
        Impair {
            band: quality.band_hz.map(|[low_hz, high_hz]| {
                let ([a, b], [c, d]) = (biquad::high_pass_4(low_hz), biquad::low_pass_4(high_hz));
                [a, b, c, d]
            }),
            bend,
            is_companded: quality.is_companded,
            noise_rms: quality.noise_snr_db.map_or(0.0, rms),
            noise_left: 0,
            dropouts: (quality.dropouts > 0).then(|| Dropouts::new(quality.dropouts, stream.clone())),
            noise: stream,
        }
    }

    /// Skips 20 ms of silence.
    pub fn skip(&mut self) {
        self.band.iter_mut().flatten().for_each(Biquad::clear);
        if let Some(dropouts) = &mut self.dropouts {
            dropouts.pass();
        }
    }

    /// Impairs the next 20 ms in place.
    pub fn process(&mut self, pcm: &mut Frame) {
        let Some(band) = &mut self.band else { return };
        for sample in pcm.iter_mut() {
            let dry = f64::from(*sample);
            let mut x = band.iter_mut().fold(dry, |x, section| section.run(x));
            x = match self.bend {
                Bend::None => x,
                Bend::Soft(top) => top * (x / top).tanh(),
                Bend::Hard(top) => x.clamp(-top, top),
            };
            if self.noise_rms > 0.0 {
                self.noise_left = if dry.abs() > GATE { GATE_HOLD + 1 } else { self.noise_left };
                if self.noise_left > 0 {
                    self.noise_left -= 1;
                    x += self.noise_rms * biquad::white(&mut self.noise);
                }
            }
            *sample = x.round() as i16;
            if self.is_companded {
                *sample = through_mu_law(*sample);
            }
        }
        if let Some(dropouts) = &mut self.dropouts {
            dropouts.process(pcm);
        }
    }
}

/// Number of samples in which the dropouts are placed (10 s).
const WINDOW: u32 = 10 * RATE_HZ;

/// Number of samples of a dropout (100 ms), edges included.
const DROPOUT: u32 = RATE_HZ / 10;

/// Number of samples of a dropout's fall and of its rise (5 ms).
const EDGE: u32 = RATE_HZ / 200;

/// Least number of samples between two dropouts (500 ms).
const APART: u32 = RATE_HZ / 2;

/// Dropouts of 100 ms in each 10 s, uniformly placed, at least 500 ms apart.
#[derive(Clone, Debug)]
struct Dropouts {
    places: Stream,
    /// Position of the next sample in its window.
    at: u32,
    count: usize,
    /// First samples of the window's dropouts.
    starts: [u32; AudioQuality::MOST_DROPOUTS],
}

impl Dropouts {
    fn new(count: usize, places: Stream) -> Dropouts {
        let count = count.min(AudioQuality::MOST_DROPOUTS);
        let mut dropouts = Dropouts { places, at: 0, count, starts: [0; AudioQuality::MOST_DROPOUTS] };
        dropouts.draw();
        dropouts
    }

    fn draw(&mut self) {
        // The free time: what the dropouts and the distances (one before each) leave. Sorted uniform points in it are a
        // uniform choice among all allowed places.
        let free = f64::from(WINDOW - self.count as u32 * (APART + DROPOUT));
        let mut points = [f64::MAX; AudioQuality::MOST_DROPOUTS];
        points[..self.count].fill_with(|| self.places.range(0.0, free));
        points.sort_unstable_by(f64::total_cmp);
        for (n, (start, point)) in self.starts.iter_mut().zip(points).enumerate() {
            *start = n as u32 * (APART + DROPOUT) + APART + point.min(free) as u32;
        }
    }

    fn process(&mut self, pcm: &mut Frame) {
        let end = self.at + FRAME as u32;
        for start in self.starts[..self.count].iter().copied() {
            let (from, to) = (start.max(self.at), (start + DROPOUT).min(end));
            for at in from..to {
                let inside = (at - start).min(start + DROPOUT - 1 - at);
                let gain = 1.0 - f64::from(inside.min(EDGE)) / f64::from(EDGE);
                let sample = &mut pcm[(at - self.at) as usize];
                *sample = (f64::from(*sample) * gain) as i16;
            }
        }
        self.pass();
    }

    /// Moves the place in the window one frame on.
    fn pass(&mut self) {
        self.at += FRAME as u32;
        if self.at == WINDOW {
            self.at = 0;
            self.draw();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use super::*;
    use crate::seed::Seed;

    fn through(quality: AudioQuality, codec_rate_hz: u32, input: &[i16]) -> Vec<i16> {
        let mut lever = Impair::new(quality, codec_rate_hz, Seed(7).stream("impair"));
        let mut output = Vec::new();
        for chunk in input.chunks_exact(FRAME) {
            let mut frame: Frame = chunk.try_into().expect("chunks_exact");
            lever.process(&mut frame);
            output.extend(frame);
        }
        output
    }

    fn tone(tone_hz: f64, peak: f64, seconds: usize) -> Vec<i16> {
        (0..seconds * 16_000).map(|n| (peak * (TAU * tone_hz * n as f64 / 16_000.0).sin()).round() as i16).collect()
    }

    fn rms(pcm: &[i16]) -> f64 {
        (pcm.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / pcm.len() as f64).sqrt()
    }

    #[test]
    fn high_does_not_touch_a_bit() {
        let input: Vec<i16> = (0..3200).map(|n: i32| (n * 7919) as i16).collect();
        assert_eq!(through(AudioQuality::HIGH, 8000, &input), input);
    }

    /// A telephone line has the band and the steps of PCMU, which lie about 38 dB below speech (ITU-T G.711).
    #[test]
    fn a_telephone_line_sounds_like_pcmu() {
        use crate::codec::g711::FROM_MU_LAW;
        let output = through(AudioQuality::TELEPHONE, 16_000, &tone(1000.0, 3277.0, 2));
        assert!(output.iter().all(|sample| FROM_MU_LAW.contains(sample)), "every sample is one of mu-law");
        let smooth = AudioQuality { is_companded: false, ..AudioQuality::TELEPHONE };
        let plain = through(smooth, 16_000, &tone(1000.0, 3277.0, 2));
        let steps: Vec<i16> = output.iter().zip(&plain).map(|(one, other)| one - other).collect();
        let snr_db = 20.0 * (rms(&plain[16_000..]) / rms(&steps[16_000..])).log10();
        assert!((34.0..42.0).contains(&snr_db), "{snr_db:.1} dB");
    }

    #[test]
    fn bands() {
        // Edges are -3 dB points; an octave outside 24 dB are gone. Probed at -20 dBFS, where nothing clips.
        let check = |quality, tone_hz: f64, expect_db: std::ops::Range<f64>| {
            let input = tone(tone_hz, 3277.0, 2);
            let gain_db = 20.0 * (rms(&through(quality, 16_000, &input)[16_000..]) / rms(&input)).log10();
            assert!(expect_db.contains(&gain_db), "{quality:?} {tone_hz} Hz: {gain_db:.2} dB");
        };
        for (quality, low_hz, high_hz) in [
            (AudioQuality::MEDIUM, 200.0, 3400.0),
            (AudioQuality::TELEPHONE, 300.0, 3400.0),
            (AudioQuality::LOW, 300.0, 2700.0),
            (AudioQuality::HORRIBLE, 400.0, 2200.0),
        ] {
            check(quality, 1000.0, -1.0..0.5);
            check(quality, low_hz, -3.7..-2.5);
            check(quality, high_hz, -3.7..-2.5);
        }
        check(AudioQuality::MEDIUM, 100.0, -30.0..-22.0);
        check(AudioQuality::MEDIUM, 6800.0, -80.0..-22.0);
    }

    /// Returns the amplitude of a tone over the last 0.98 s.
    fn peak(pcm: &[i16], tone_hz: f64) -> f64 {
        let part = &pcm[pcm.len() - 15_680..];
        let turn = |n: usize| TAU * tone_hz * n as f64 / 16_000.0;
        let sum = |of: fn(f64) -> f64| part.iter().enumerate().map(|(n, &x)| f64::from(x) * of(turn(n))).sum::<f64>();
        2.0 * sum(f64::sin).hypot(sum(f64::cos)) / part.len() as f64
    }

    #[test]
    fn edges_are_at_3_db_and_slopes_at_24_db_an_octave() {
        for (quality, low_hz, high_hz) in [
            (AudioQuality::MEDIUM, 200.0, 3400.0),
            (AudioQuality::LOW, 300.0, 2700.0),
            (AudioQuality::HORRIBLE, 400.0, 2200.0),
        ] {
            // The tone alone is measured, not the noise beside it; at -20 dBFS nothing clips.
            let gain_db = |tone_hz: f64| {
                let mut lever = Impair::new(quality, 16_000, Seed(7).stream("impair"));
                lever.dropouts = None;
                let output: Vec<i16> = tone(tone_hz, 3277.0, 2)
                    .chunks_exact(FRAME)
                    .flat_map(|chunk| {
                        let mut frame: Frame = chunk.try_into().expect("chunks_exact");
                        lever.process(&mut frame);
                        frame
                    })
                    .collect();
                20.0 * (peak(&output, tone_hz) / 3277.0).log10()
            };
            let [low, high] = [low_hz, high_hz].map(gain_db);
            let slope = gain_db(low_hz / 2.0) - gain_db(low_hz / 4.0);
            let octave_above = gain_db(high_hz) - gain_db(high_hz * 2.0);
            println!(
                "{quality:?}: {low:.2} dB at {low_hz}, {high:.2} dB at {high_hz}, {slope:.1} and {octave_above:.1} dB"
            );
            assert!((low + 3.01).abs() < 0.1 && (high + 3.01).abs() < 0.1, "{quality:?}: {low:.2}, {high:.2}");
            assert!((slope - 24.1).abs() < 1.5, "{quality:?}: {slope:.1} dB an octave");
            // Below half the sampling rate a digital filter falls faster than its model, never slower.
            assert!(octave_above > 21.0, "{quality:?}: {octave_above:.1} dB an octave above");
            assert!(gain_db(1000.0).abs() < 0.3, "{quality:?}: {:.2} dB within", gain_db(1000.0));
        }
    }

    #[test]
    fn clipping_bends_as_written_down() {
        let dbfs = |db: f64| 32_767.0 * 10f64.powf(db / 20.0);
        let soft = |x: f64| dbfs(-6.0) * (x / dbfs(-6.0)).tanh();
        let hard = |x: f64| x.clamp(-dbfs(-12.0), dbfs(-12.0));
        for (quality, clip) in [(AudioQuality::LOW, &soft as &dyn Fn(f64) -> f64), (AudioQuality::HORRIBLE, &hard)] {
            for loud in [4000.0, 12_000.0, 30_000.0] {
                let mut lever = Impair::new(quality, 16_000, Seed(7).stream("impair"));
                (lever.dropouts, lever.noise_rms) = (None, 0.0);
                let mut output = Vec::new();
                for chunk in tone(1000.0, loud, 2).chunks_exact(FRAME) {
                    let mut frame: Frame = chunk.try_into().expect("chunks_exact");
                    lever.process(&mut frame);
                    output.extend(frame);
                }
                // Tone and third harmonic of the curve itself, over one period.
                let harmonic = |order: f64| {
                    let turn = |n: usize| TAU * n as f64 / 4096.0;
                    (0..4096).map(|n| clip(loud * turn(n).sin()) * (order * turn(n)).sin()).sum::<f64>() / 2048.0
                };
                for order in [1.0, 3.0] {
                    let (measured, expect) = (peak(&output, 1000.0 * order), harmonic(order).abs());
                    let off = (measured - expect).abs();
                    assert!(
                        off < 0.05 * expect + 8.0,
                        "{quality:?} at {loud}, {order}: {measured:.0}, not {expect:.0}"
                    );
                }
            }
        }
    }

    #[test]
    fn dropouts_fall_and_rise_in_5_ms() {
        let mut dropouts = Dropouts::new(2, Seed(3).stream("impair"));
        let mut output = Vec::new();
        for _ in 0..30 * 50 {
            let mut frame = [10_000; FRAME];
            dropouts.process(&mut frame);
            output.extend(frame);
        }
        let whole = |x: i16| x == 10_000;
        let runs: Vec<&[i16]> = output.split(|&x| whole(x)).filter(|run| !run.is_empty()).collect();
        assert_eq!(runs.len(), 6);
        for run in runs {
            // The first sample of the fall and the last of the rise are still whole.
            assert_eq!(run.len() as u32, DROPOUT - 2);
            assert_eq!(run.iter().filter(|&&x| x == 0).count() as u32, DROPOUT - 2 * EDGE);
            assert!(run[..79].windows(2).all(|pair| pair[0] - pair[1] >= 124 && pair[0] - pair[1] <= 126));
            assert!(run.iter().eq(run.iter().rev()), "rises as it falls");
        }
    }

    #[test]
    fn clipping() {
        let loud = tone(1000.0, 30_000.0, 1);
        let peak = |quality| through(quality, 16_000, &loud)[8000..12_000].iter().map(|x| x.unsigned_abs()).max();
        let top = |quality| f64::from(peak(quality).expect("not empty"));
        let t = 32_767.0 * 10f64.powf(-6.0 / 20.0);
        assert!((top(AudioQuality::LOW) - t * (30_000.0 / t).tanh()).abs() < 600.0, "soft: {}", top(AudioQuality::LOW));
        assert!((29_000.0..31_000.0).contains(&top(AudioQuality::MEDIUM)));
        // Hard at -12 dBFS (8231) plus the peaks of the noise at -41 dBov.
        assert!((8231.0..10_200.0).contains(&top(AudioQuality::HORRIBLE)), "hard: {}", top(AudioQuality::HORRIBLE));
    }

    #[test]
    fn noise_runs_with_the_signal_and_200_ms_after() {
        for (quality, snr_db) in [(AudioQuality::LOW, 30.0), (AudioQuality::HORRIBLE, 15.0)] {
            for codec_rate_hz in [8000, 16_000] {
                let mut input = tone(1000.0, 3000.0, 1);
                input.resize(32_000, 0);
                let output = through(quality, codec_rate_hz, &input);
                // 20 ms after the tone its filter tail is gone: what is left is the noise.
                let level_dbov = 20.0 * (rms(&output[16_320..19_100]) / 32_768.0).log10();
                let expected = -26.0 - snr_db + if codec_rate_hz == 8000 { 3.01 } else { 0.0 };
                assert!((level_dbov - expected).abs() < 0.6, "{quality:?}: {level_dbov:.2}, expected {expected:.2}");
                assert!(output[19_250..].iter().all(|&x| x == 0), "{quality:?}: noise goes on after 200 ms");
            }
        }
        let faint = tone(1000.0, 25.0, 1);
        assert!(rms(&through(AudioQuality::HORRIBLE, 8000, &faint)) < 20.0, "no noise below -60 dBFS");
    }

    #[test]
    fn dropouts_are_two_in_ten_seconds_and_apart() {
        let output = through(AudioQuality::HORRIBLE, 16_000, &tone(1000.0, 8000.0, 200));
        let loud: Vec<bool> = output.chunks_exact(16).map(|ms| rms(ms) > 100.0).collect();
        let mut gaps: Vec<(usize, usize)> = Vec::new();
        for (ms, _) in loud.iter().enumerate().filter(|(ms, loud)| *ms > 50 && !**loud) {
            match gaps.last_mut() {
                Some(gap) if gap.1 == ms => gap.1 = ms + 1,
                _ => gaps.push((ms, ms + 1)),
            }
        }
        assert_eq!(gaps.len(), 40);
        assert!(gaps.iter().all(|(from, to)| (88..=100).contains(&(to - from))), "{gaps:?}");
        assert!(gaps.windows(2).all(|pair| pair[1].0 - pair[0].1 >= 500), "{gaps:?}");
        for window in 0..20 {
            let inside = gaps.iter().filter(|(from, _)| from / 10_000 == window).count();
            assert_eq!(inside, 2, "10 s window {window}");
        }
    }
}
