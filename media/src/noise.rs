//! Background noise of a caller's place: seeded, seamless loops at 16 kHz, made once and mixed under a whole call. Not
//! the mixing itself, and not user-supplied noise files.

mod babble;
mod scene;

use std::sync::Arc;

use crate::frame::RATE_HZ;
use crate::seed::Seed;

/// Kind of place or spectrum of the noise.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Noise of a flat spectrum.
    White,
    /// Noise that falls by 3 dB an octave.
    Pink,
    /// Noise that falls by 6 dB an octave.
    Brown,
    /// Ventilation, typing, four distant voices.
    Office,
    /// Two voices close by.
    Talking,
    /// Rumble, pass-bys, a horn.
    Traffic,
    /// Eight voices, crockery, music.
    Cafe,
    /// Wind, birds, a child's voice.
    Park,
    /// An announcer and music in turn.
    Tv,
    /// Twenty voices, crockery, music.
    NoisyRestaurant,
    /// Ventilation, a monitor's tone, pages, two voices.
    Hospital,
}

impl Kind {
    /// All kinds with their names in the API.
    pub const ALL: [(Kind, &'static str); 11] = [
        (Kind::White, "white"),
        (Kind::Pink, "pink"),
        (Kind::Brown, "brown"),
        (Kind::Office, "office"),
        (Kind::Talking, "talking"),
        (Kind::Traffic, "traffic"),
        (Kind::Cafe, "cafe"),
        (Kind::Park, "park"),
        (Kind::Tv, "tv"),
        (Kind::NoisyRestaurant, "noisy_restaurant"),
        (Kind::Hospital, "hospital"),
    ];

    /// Returns the kind of this name; `None` for any other text (`none` and `custom` included: they are no generated
    /// noise).
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.iter().find(|(_, known)| *known == name).map(|(kind, _)| *kind)
    }

    /// True when people speak in it.
    pub fn has_voices(self) -> bool {
        !matches!(self, Kind::White | Kind::Pink | Kind::Brown | Kind::Traffic)
    }

    /// Returns the name of the kind in the API.
    pub fn name(self) -> &'static str {
        Kind::ALL.iter().find(|(kind, _)| *kind == self).map_or("", |(_, name)| name)
    }
}

/// Active level of the speech that SNR is asked against, dBov.
const SPEECH_DBOV: f64 = -26.0;

/// Long-term level of a loop that [`generate`] returns, dBov.
const LOOP_DBOV: f64 = -28.0;

/// Highest sample of a loop that [`generate`] returns; rare events are rounded off below it.
const PEAK: f64 = 26_000.0;

/// Number of samples over which the loop's end is faded into its beginning (500 ms).
const CROSSFADE: usize = RATE_HZ as usize / 2;

/// Longest loop in seconds; a longer wish is cut.
const LONGEST_SECONDS: u32 = 600;

/// Returns the SNR in dB for a volume of 0 to 1 (values outside are clamped): 30 dB at 0, 5 dB at 1.
pub fn snr_db(volume: f64) -> f64 {
    30.0 - 25.0 * volume.clamp(0.0, 1.0)
}

/// Returns a seamless loop of `seconds` (1 to 600) at 16 kHz and -28 dBov; the same arguments give the same samples.
///
/// `voices` are clips of single talkers at 16 kHz, several seconds each; without any, voices are imitated.
pub fn generate(kind: Kind, seed: Seed, seconds: u32, voices: &[Arc<[i16]>]) -> Vec<i16> {
    let length = (seconds.clamp(1, LONGEST_SECONDS) * RATE_HZ) as usize;
    let mut audio = scene::scene(kind, seed, length + CROSSFADE, voices);
    fold(&mut audio);
    let power = audio.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / length as f64;
    let gain = 32_768.0 * 10f64.powf(LOOP_DBOV / 20.0) / power.sqrt().max(1e-9);
    audio.iter().map(|&x| rounded_off(f64::from(x) * gain).round() as i16).collect()
}

/// Returns a seamless loop of audio at 16 kHz: its last 500 ms are faded into its beginning (of audio shorter than a
/// second, its last half).
pub fn seamless(pcm: &[i16]) -> Vec<i16> {
    let mut audio: Vec<f32> = pcm.iter().map(|&x| f32::from(x)).collect();
    fold(&mut audio);
    audio.iter().map(|x| x.round() as i16).collect()
}

/// Fades the end into the beginning, and cuts it off.
fn fold(audio: &mut Vec<f32>) {
    let span = CROSSFADE.min(audio.len() / 2);
    let length = audio.len() - span;
    let (head, tail) = audio.split_at_mut(length);
    for (n, (x, old)) in head.iter_mut().zip(tail).enumerate() {
        // Both are uncorrelated, so their powers add: sine and cosine keep the level.
        let (rise, fall) = (std::f32::consts::FRAC_PI_2 * (n as f32 + 0.5) / span as f32).sin_cos();
        *x = *x * rise + *old * fall;
    }
    audio.truncate(length);
}

/// Returns values up to half of [`PEAK`] unchanged, and higher ones bent below it.
fn rounded_off(x: f64) -> f64 {
    const KNEE: f64 = PEAK / 2.0;
    if x.abs() <= KNEE { x } else { x.signum() * (KNEE + (PEAK - KNEE) * ((x.abs() - KNEE) / (PEAK - KNEE)).tanh()) }
}

/// Returns the factor by which the long-term RMS of a loop, in the band of a codec of `codec_rate_hz`, becomes -26 dBov
/// less `snr_db`; 1 for silence.
///
/// A codec of 8 kHz carries what a half-band filter leaves below 4 kHz; one of 16 kHz or more carries all.
pub fn gain_for(noise: &[i16], snr_db: f64, codec_rate_hz: u32) -> f64 {
    let power =
        if codec_rate_hz < RATE_HZ { half_band_power(noise) } else { mean_power(noise.iter().map(|&x| f64::from(x))) };
    if power < 1e-6 {
        return 1.0;
    }
    32_768.0 * 10f64.powf((SPEECH_DBOV - snr_db) / 20.0) / power.sqrt()
}

fn mean_power(audio: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = audio.len().max(1) as f64;
    audio.map(|x| x * x).sum::<f64>() / count
}

/// Returns the mean power below 4 kHz: through a half-band low-pass (Hann-windowed sinc, 63 taps, of which every second
/// is 0).
fn half_band_power(noise: &[i16]) -> f64 {
    const SIDE: usize = 31;
    let mut taps = [0f32; SIDE + 1];
    for (k, tap) in taps.iter_mut().enumerate().filter(|(k, _)| k % 2 == 1) {
        let x = std::f64::consts::PI * k as f64;
        *tap = ((x / 2.0).sin() / x * 0.5 * (1.0 + (x / (SIDE + 1) as f64).cos())) as f32;
    }
    let audio: Vec<f32> = noise.iter().map(|&x| f32::from(x)).collect();
    if audio.len() <= 2 * SIDE {
        return 0.5 * mean_power(audio.iter().map(|&x| f64::from(x)));
    }
    let filtered = audio.windows(2 * SIDE + 1).map(|window| {
        let sides: f32 = (1..=SIDE).step_by(2).map(|k| taps[k] * (window[SIDE - k] + window[SIDE + k])).sum();
        f64::from(0.5 * window[SIDE] + sides)
    });
    mean_power(filtered)
}

#[cfg(test)]
mod tests {
    mod kinds;

    use super::*;
    use crate::biquad;
    use crate::testing::level_for;

    fn level_dbov(pcm: &[i16]) -> f64 {
        10.0 * (mean_power(pcm.iter().map(|&x| f64::from(x))) / 32_768f64.powi(2)).log10()
    }

    /// Returns the level of the audio between `low_hz` and `high_hz`.
    fn band_dbov(pcm: &[i16], low_hz: f64, high_hz: f64) -> f64 {
        let mut audio: Vec<f32> = pcm.iter().map(|&x| f32::from(x)).collect();
        biquad::filter(&mut audio, biquad::high_pass_4(low_hz));
        biquad::filter(&mut audio, biquad::low_pass_4(high_hz));
        10.0 * (mean_power(audio.iter().map(|&x| f64::from(x))) / 32_768f64.powi(2)).log10()
    }

    #[test]
    fn every_kind_is_a_seeded_seamless_loop_at_its_level() {
        for (kind, name) in Kind::ALL {
            assert_eq!(Kind::from_name(name), Some(kind));
            let noise = generate(kind, Seed(11), 20, &[]);
            assert_eq!(noise.len(), 20 * 16_000, "{name}");
            assert!((level_dbov(&noise) + 28.0).abs() < 0.5, "{name}: {:.2} dBov", level_dbov(&noise));
            assert!(noise.iter().all(|x| x.unsigned_abs() <= 26_000), "{name} peaks");
            assert_eq!(noise, generate(kind, Seed(11), 20, &[]), "{name} repeats");
            assert_ne!(noise, generate(kind, Seed(12), 20, &[]), "{name} follows its seed");
            // The step over the seam is no larger than steps elsewhere in the last and first 100 ms.
            let seam = (i32::from(noise[0]) - i32::from(noise[noise.len() - 1])).abs();
            let near = noise[..1600].windows(2).chain(noise[noise.len() - 1600..].windows(2));
            let largest = near.map(|pair| (i32::from(pair[1]) - i32::from(pair[0])).abs()).max().expect("not empty");
            assert!(seam <= largest, "{name}: step of {seam} over the seam, {largest} beside it");
        }
        assert_eq!(Kind::from_name("none"), None);
    }

    #[test]
    fn slopes_of_the_coloured_noises() {
        for (kind, fall_db) in [(Kind::White, -3.0), (Kind::Pink, 0.0), (Kind::Brown, 3.0)] {
            let noise = generate(kind, Seed(3), 20, &[]);
            // Octave bands: a spectrum of s dB an octave has bands that differ by s + 3 dB.
            let fall = band_dbov(&noise, 500.0, 1000.0) - band_dbov(&noise, 1000.0, 2000.0);
            assert!((fall - fall_db).abs() < 0.7, "{kind:?}: {fall:.2} dB an octave");
        }
    }

    #[test]
    fn levels_are_in_the_band_of_the_codec() {
        for (kind, name) in Kind::ALL {
            for (volume, rate_hz) in [(0.0, 8000), (0.4, 16_000), (0.8, 8000), (1.0, 16_000), (1.0, 8000)] {
                let mut noise = generate(kind, Seed(5), 10, &[]);
                level_for(&mut noise, snr_db(volume), rate_hz);
                let top_hz = if rate_hz == 8000 { 4000.0 } else { 7990.0 };
                let mut audio: Vec<f32> = noise.iter().map(|&x| f32::from(x)).collect();
                if rate_hz == 8000 {
                    biquad::filter(&mut audio, biquad::low_pass_4(top_hz));
                }
                let level = 10.0 * (mean_power(audio.iter().map(|&x| f64::from(x))) / 32_768f64.powi(2)).log10();
                let asked = -26.0 - snr_db(volume);
                assert!((level - asked).abs() < 0.4, "{name} for {rate_hz} Hz: {level:.2} dBov, asked {asked}");
            }
        }
        assert_eq!([snr_db(0.0), snr_db(0.4), snr_db(0.8), snr_db(1.0)], [30.0, 20.0, 10.0, 5.0]);
    }
}
