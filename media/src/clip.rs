//! Finished pieces of audio in memory: reads WAV files of any common kind (also hostile ones), writes plain ones, and
//! finds the beginning and end of the words in a clip. The growing file of a call is made in `recording`.
//!
//! A WAV file of two channels, read as one clip at 16 kHz:
//!
//! ```
//! use ringer_media::clip::{Clip, trim_silence, write_wav};
//!
//! let tone = |n: usize| if (800..2400).contains(&n) { (6000.0 * (n as f64).sin()) as i16 } else { 0 };
//! let stereo: Vec<i16> = (0..4000).flat_map(|n| [tone(n); 2]).collect();
//! let clip = Clip::from_wav(&write_wav(8000, 2, &stereo)).expect("a WAV file");
//! assert_eq!((clip.rate_hz, clip.pcm.len()), (8000, 4000));
//!
//! let pcm = clip.to_16k();
//! assert_eq!(pcm.len(), 8000);
//! let sound = trim_silence(&pcm);
//! assert!(sound.start.abs_diff(1600) <= 160 && sound.end.abs_diff(4800) <= 160);
//! assert!(Clip::from_wav(b"ID3 is another kind of file").is_err());
//! ```

pub mod wav;

use std::ops::Range;

pub use self::wav::ClipError;
use crate::frame::RATE_HZ;
use crate::level::rms_dbov;
use crate::resample::resample_whole;

/// Longest clip that is read, in samples a channel: an hour at 16 kHz, 20 minutes at 48 kHz.
pub const MAX_SAMPLES: usize = 57_600_000;

/// Largest number of channels that is read.
const MAX_CHANNELS: u16 = 8;

/// Mono audio at its own rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clip {
    /// Sample rate, in samples a second.
    pub rate_hz: u32,
    /// Samples of one channel; several channels are averaged.
    pub pcm: Vec<i16>,
}

impl Clip {
    /// Reads a WAV file (RIFF, RIFX, RF64, WAVE_FORMAT_EXTENSIBLE too): PCM of 8, 16, 24 or 32 bits, float of 32 or 64
    /// bits, G.711. Data that ends early, or whose length was never filled in, is read as far as it goes; of joined
    /// files those are read that have the first one's rate. Memory stays in proportion to `bytes`.
    pub fn from_wav(bytes: &[u8]) -> Result<Clip, ClipError> {
        let sections = wav::sections(bytes)?.sections;
        let rate_hz = sections.first().map_or(RATE_HZ, |section| section.format.rate_hz);
        let mut pcm = Vec::new();
        for section in sections.iter().filter(|section| section.format.rate_hz == rate_hz) {
            let format = section.format;
            if format.channels > MAX_CHANNELS {
                return Err(ClipError::Channels(format.channels));
            }
            if pcm.len() + section.bytes.len() / format.frame_bytes() > MAX_SAMPLES {
                return Err(ClipError::TooLong);
            }
            let frames = bytes[section.bytes.clone()].chunks_exact(format.frame_bytes());
            pcm.extend(frames.map(|frame| format.mean(frame)));
        }
        Ok(Clip { rate_hz, pcm })
    }

    /// Returns the samples at 16 kHz.
    pub fn to_16k(self) -> Vec<i16> {
        if self.rate_hz == RATE_HZ { self.pcm } else { resample_whole(&self.pcm, self.rate_hz, RATE_HZ) }
    }
}

/// Returns a WAV file of 16-bit PCM; `pcm` is interleaved when there are several channels. Samples beyond the format's
/// 4 GB are left out.
pub fn write_wav(rate_hz: u32, channels: u16, pcm: &[i16]) -> Vec<u8> {
    let pcm = &pcm[..pcm.len().min((u32::MAX as usize - 64) / 2)];
    let header: [u8; wav::HEADER_BYTES] = wav::header(rate_hz, channels, &[], 2 * pcm.len() as u32);
    let mut bytes = Vec::with_capacity(header.len() + 2 * pcm.len());
    bytes.extend(header);
    bytes.extend(pcm.iter().flat_map(|sample| sample.to_le_bytes()));
    bytes
}

/// Samples of a window, 10 ms.
const WINDOW: usize = RATE_HZ as usize / 100;

/// Level above which a window of a clip is sound, in dBov, whatever the clip.
pub(crate) const SILENCE_DBOV: f64 = -50.0;

/// Level above the clip's own noise floor from which a window is sound, in dB.
pub(crate) const OVER_FLOOR_DB: f64 = 5.0;

/// Returns the range of sound in 16 kHz audio: from the first to the last loud window of 10 ms. A window is loud above
/// -50 dBov and above the clip's noise floor + 5 dB. The noise floor is the level that a tenth of the windows stay
/// below, at most -35 dBov. Empty without a loud window.
pub fn trim_silence(pcm: &[i16]) -> Range<usize> {
    let levels: Vec<f64> = pcm.chunks(WINDOW).map(rms_dbov).collect();
    let mut sorted = levels.clone();
    sorted.sort_by(f64::total_cmp);
    // Words without a pause have no noise floor: a tenth of their windows is loud.
    let noise_floor = sorted.get(sorted.len() / 10).copied().unwrap_or(f64::NEG_INFINITY).min(-35.0);
    let threshold = SILENCE_DBOV.max(noise_floor + OVER_FLOOR_DB);
    let sound = |level: &f64| *level > threshold;
    match (levels.iter().position(sound), levels.iter().rposition(sound)) {
        (Some(first), Some(last)) => first * WINDOW..((last + 1) * WINDOW).min(pcm.len()),
        _ => 0..0,
    }
}

/// Returns the range of sound in 16 kHz audio without noise of its own, as a neural voice makes it: from the first to
/// the last window of 10 ms above -50 dBov. Soft first and last sounds of words stay: a w begins at -45 dBov.
pub fn trim_clean_silence(pcm: &[i16]) -> Range<usize> {
    let is_sound = |window: &[i16]| rms_dbov(window) > SILENCE_DBOV;
    let first = pcm.chunks(WINDOW).position(is_sound);
    let last = pcm.chunks(WINDOW).rposition(is_sound);
    match (first, last) {
        (Some(first), Some(last)) => first * WINDOW..((last + 1) * WINDOW).min(pcm.len()),
        _ => 0..0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seed::Seed;

    #[test]
    fn soft_first_sounds_of_a_clean_voice_stay() {
        let tone = |ms: usize, peak: i16| (0..16 * ms).map(move |at| if at % 16 < 8 { peak } else { -peak });
        // Half a second of silence, 50 ms at -42 dBov, a second of speech, silence.
        let pcm: Vec<i16> = tone(500, 1).chain(tone(50, 260)).chain(tone(1000, 2300)).chain(tone(300, 1)).collect();
        assert_eq!(trim_clean_silence(&pcm), 8000..16 * 1550);
        assert_eq!(trim_clean_silence(&pcm[8000..16 * 1550]), 0..16 * 1050);
        assert!(trim_silence(&pcm[8000..16 * 1550]).start > 0, "the noise floor of words without a pause is theirs");
        assert_eq!(trim_clean_silence(&[0; 4000]), 0..0);
    }

    /// Returns a WAV file with one format chunk of the given fields and one data chunk.
    fn wav(tag: u16, channels: u16, rate_hz: u32, bits: u16, data: &[u8]) -> Vec<u8> {
        let mut bytes = b"RIFF\0\0\0\0WAVELIST\x05\0\0\0abcde\0".to_vec();
        bytes.extend(b"fmt \x28\0\0\0");
        bytes.extend((if tag > 7 { 0xfffeu16 } else { tag }).to_le_bytes());
        bytes.extend(channels.to_le_bytes());
        bytes.extend(rate_hz.to_le_bytes());
        bytes.extend([0; 6]);
        bytes.extend(bits.to_le_bytes());
        bytes.extend([22, 0, 0, 0, 0, 0, 0, 0]);
        bytes.extend((tag & 0xff).to_le_bytes());
        bytes.extend([0; 14]);
        bytes.extend(b"data");
        bytes.extend((data.len() as u32).to_le_bytes());
        bytes.extend(data);
        bytes
    }

    #[test]
    fn each_encoding_is_read() {
        let floats: Vec<u8> = [0.5f32, -1.0, 7.0, f32::NAN].iter().flat_map(|value| value.to_le_bytes()).collect();
        let doubles: Vec<u8> = [-0.25f64, f64::INFINITY].iter().flat_map(|value| value.to_le_bytes()).collect();
        for (tag, bits, data, expected) in [
            (1, 8, vec![128, 255, 0], vec![0, 32_512, -32_768]),
            (1, 16, vec![1, 0, 255, 127, 0, 128, 9], vec![1, 32_767, -32_768]),
            (1, 24, vec![0, 0, 64, 255, 255, 127, 0, 0, 128], vec![16_384, 32_767, -32_768]),
            (1, 32, vec![0, 0, 0, 64, 255, 255, 255, 127], vec![16_384, 32_767]),
            (3, 32, floats, vec![16_384, -32_768, 32_767, 0]),
            (3, 64, doubles, vec![-8192, 32_767]),
            (7, 8, vec![0, 0x80, 0xff], vec![-32_124, 32_124, 0]),
            (6, 8, vec![0xd5, 0x55], vec![8, -8]),
            (0x101, 16, vec![3, 0], vec![3]),
        ] {
            let clip = Clip::from_wav(&wav(tag, 1, 8000, bits, &data));
            assert_eq!(clip, Ok(Clip { rate_hz: 8000, pcm: expected }), "tag {tag}, {bits} bits");
        }
    }

    #[test]
    fn channels_are_averaged() {
        let clip = Clip::from_wav(&wav(1, 2, 44_100, 16, &[100, 0, 50, 0, 0, 128, 255, 127])).unwrap();
        assert_eq!(clip, Clip { rate_hz: 44_100, pcm: vec![75, -1] });
    }

    #[test]
    fn what_is_wrong_is_named() {
        let good = wav(1, 1, 8000, 16, &[0; 4]);
        let mut late = good.clone();
        let data = late.len() - 12;
        late[20 + 6..20 + 10].copy_from_slice(b"junk");
        for (bytes, expected) in [
            (b"".to_vec(), ClipError::NotWav),
            (b"OggS\0\0\0\0WAVE".to_vec(), ClipError::NotWav),
            (b"RIFF\0\0\0\0WAVE".to_vec(), ClipError::NoFormat),
            (late, ClipError::NoFormat),
            (good[..data].to_vec(), ClipError::NoData),
            (good[..40].to_vec(), ClipError::NoFormat),
            (wav(2, 1, 8000, 4, &[]), ClipError::Encoding(2)),
            (wav(1, 1, 8000, 12, &[]), ClipError::Bits(12)),
            (wav(3, 1, 8000, 16, &[]), ClipError::Bits(16)),
            (wav(1, 0, 8000, 16, &[]), ClipError::Channels(0)),
            (wav(1, 9, 8000, 16, &[]), ClipError::Channels(9)),
            (wav(1, 1, 0, 16, &[]), ClipError::Rate(0)),
            (wav(1, 1, u32::MAX, 16, &[]), ClipError::Rate(u32::MAX)),
        ] {
            assert_eq!(Clip::from_wav(&bytes), Err(expected));
            assert!(!expected.to_string().is_empty());
        }
    }

    #[test]
    fn unfinished_and_broken_files_are_read_as_far_as_they_go() {
        let mut bytes = wav(1, 1, 8000, 16, &[1, 0, 2, 0, 3, 0]);
        let length_at = bytes.len() - 10;
        for length in [0, 7000, u32::MAX] {
            bytes[length_at..length_at + 4].copy_from_slice(&length.to_le_bytes());
            assert_eq!(Clip::from_wav(&bytes).unwrap().pcm, [1, 2, 3]);
        }
        // Any prefix, and any byte changed, is an answer and no panic.
        let mut random = Seed(5).stream("bytes");
        for _ in 0..20_000 {
            let mut broken = bytes[..random.index(bytes.len() + 1)].to_vec();
            for _ in 0..random.index(4) {
                if !broken.is_empty() {
                    let at = random.index(broken.len());
                    broken[at] = random.bits() as u8;
                }
            }
            if let Ok(clip) = Clip::from_wav(&broken) {
                assert!(clip.pcm.len() <= broken.len());
            }
        }
    }

    #[test]
    fn written_files_are_read_back_and_resampled() {
        let pcm: Vec<i16> = (0..4800).map(|at| (at * 7 % 2000) as i16 - 1000).collect();
        let clip = Clip::from_wav(&write_wav(48_000, 1, &pcm)).unwrap();
        assert_eq!(clip, Clip { rate_hz: 48_000, pcm: pcm.clone() });
        assert_eq!(clip.to_16k().len(), 1600);
        assert_eq!(Clip::from_wav(&write_wav(16_000, 1, &pcm)).unwrap().to_16k(), pcm);
        let stereo = write_wav(16_000, 2, &[1, 3, 5, 7]);
        assert_eq!(stereo.len(), 52);
        assert_eq!(Clip::from_wav(&stereo).unwrap().pcm, [2, 6]);
    }

    #[test]
    fn silence_around_words_is_found() {
        let tone = |count: usize, amplitude: f64| {
            (0..count).map(move |at| (amplitude * (at as f64 * 0.4).sin()).round() as i16).collect::<Vec<_>>()
        };
        // (samples before, of words, after; amplitude of the noise)
        for (before, words, after, noise_floor) in
            [(1600, 8000, 3200, 0.0), (0, 4800, 0, 0.0), (3200, 4800, 1600, 80.0)]
        {
            let mut pcm = tone(before, noise_floor);
            pcm.extend(tone(words, 3000.0));
            pcm.extend(tone(after, noise_floor));
            assert_eq!(trim_silence(&pcm), before..before + words);
        }
        assert_eq!(trim_silence(&tone(3200, 60.0)), 0..0);
        assert_eq!(trim_silence(&[]), 0..0);
        assert_eq!(trim_silence(&[0; 5000]), 0..0);
        assert_eq!(trim_silence(&[5000; 33]), 0..33);
    }
}
