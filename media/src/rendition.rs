//! Speech as the other side of a call would hear it: with background noise, microphone, codec and losses. It is for
//! listening to a caller before any call is made. No packets and no time are here: every frame comes in order, and
//! delays are left out.

use crate::call::NoiseSpec;
use crate::codec::{Codec, Decoder, Encoder};
use crate::connection::ConnectionSpec;
use crate::frame::{FRAME, Frame, RATE_HZ, SILENCE};
use crate::impair::{AudioQuality, Impair};
use crate::mixer::{Mixer, NOTHING, add};
use crate::netem::Losses;
use crate::resample::Down2;
use crate::rtp::conceal::Concealer;
use crate::seed::Seed;

/// Most bytes of an encoded frame: two for each sample of 16 kHz.
const MOST_BYTES: usize = 2 * FRAME;

/// Everything between the caller's voice and what the other side hears.
#[derive(Clone, Debug)]
pub struct Rendition {
    /// Noise behind the caller; `None`: it is quiet.
    pub noise: Option<NoiseSpec>,
    /// Microphone of the caller.
    pub quality: AudioQuality,
    /// Losses on the way; its delays are not heard.
    pub connection: ConnectionSpec,
    /// Codec of the call.
    pub codec: Codec,
    /// Draws noise, dropouts and losses, as a call with this seed does.
    pub seed: Seed,
}

impl Rendition {
    /// Returns a way that only the codec is heard on.
    pub fn clean(codec: Codec) -> Rendition {
        let (quality, connection) = (AudioQuality::HIGH, ConnectionSpec::default());
        Rendition { noise: None, quality, connection, codec, seed: Seed::default() }
    }

    /// Returns `speech` (16 kHz) as it arrives, at [`Codec::rate_hz`]. Its length is rounded up to whole frames.
    pub fn render(&self, speech: &[i16]) -> Vec<i16> {
        let rate_hz = self.codec.rate_hz();
        let mut impair = Impair::new(self.quality, rate_hz, self.seed.stream("audio_quality"));
        let mut mixer = Mixer::new();
        let mut noise_at = self.noise.as_ref().map_or(0, |noise| noise.start);
        let mut link = Link::new(self);
        let mut heard = Vec::with_capacity(speech.len());
        for piece in speech.chunks(FRAME) {
            let (mut sum, mut frame) = (NOTHING, SILENCE);
            add(&mut sum, 0, piece);
            if let Some(noise) = self.noise.as_ref().filter(|noise| !noise.loop_pcm.is_empty()) {
                let gain = if rate_hz < RATE_HZ { noise.gain_narrow } else { noise.gain_wide };
                for slot in &mut sum {
                    noise_at %= noise.loop_pcm.len();
                    *slot += (f32::from(noise.loop_pcm[noise_at]) * gain).round() as i32;
                    noise_at += 1;
                }
            }
            mixer.finish(&sum, &mut frame);
            impair.process(&mut frame);
            link.carry(&frame, &mut heard);
        }
        heard
    }
}

/// Codec and losses, one frame after the other.
struct Link {
    codec: Codec,
    down: Down2,
    encoder: Encoder,
    decoder: Decoder,
    losses: Losses,
    draws: crate::seed::Stream,
    concealer: Concealer,
}

impl Link {
    fn new(way: &Rendition) -> Link {
        Link {
            codec: way.codec,
            down: Down2::new(),
            encoder: Encoder::new(way.codec),
            decoder: Decoder::new(way.codec),
            losses: Losses::new(way.connection.model()),
            draws: way.seed.stream("connection.sent"),
            concealer: Concealer::new(way.codec.rate_hz()),
        }
    }

    /// Adds what arrives of a frame to `heard`.
    fn carry(&mut self, frame: &Frame, heard: &mut Vec<i16>) {
        let (mut narrow, mut packet, mut out) = (SILENCE, [0; MOST_BYTES], SILENCE);
        let count = self.codec.samples_per_frame();
        let pcm = if count < FRAME {
            self.down.process(frame, &mut narrow[..count]);
            &narrow[..count]
        } else {
            &frame[..]
        };
        let bytes = self.encoder.encode(pcm, &mut packet);
        let out = &mut out[..count];
        if self.losses.next(&mut self.draws) {
            if !self.decoder.conceal(None, out) {
                self.concealer.conceal(out);
            }
        } else {
            self.decoder.decode(&packet[..bytes], out);
            // Opus smooths the end of a gap by itself.
            if self.codec != Codec::Opus {
                self.concealer.real(out);
            }
        }
        heard.extend_from_slice(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::{active_level_dbov, rms_dbov};
    use crate::noise::gain_for;

    /// Returns three seconds of a tone at the level of speech.
    fn tone() -> Vec<i16> {
        let step = std::f64::consts::TAU * 440.0 / f64::from(RATE_HZ);
        (0..3 * RATE_HZ).map(|at| (2322.0 * (f64::from(at) * step).sin()) as i16).collect()
    }

    /// Returns noise that lies `snr_db` below speech.
    fn hiss(snr_db: f64) -> NoiseSpec {
        let mut draws = Seed(3).stream("hiss");
        let pcm: Vec<i16> = (0..RATE_HZ).map(|_| draws.range(-3000.0, 3000.0) as i16).collect();
        let [gain_narrow, gain_wide] = [8000, RATE_HZ].map(|rate_hz| gain_for(&pcm, snr_db, rate_hz) as f32);
        NoiseSpec { loop_pcm: pcm.into(), gain_narrow, gain_wide, start: 0 }
    }

    #[test]
    fn every_codec_carries_speech_and_noise_at_their_levels() {
        for codec in Codec::ALL {
            let way = Rendition { noise: Some(hiss(15.0)), ..Rendition::clean(codec) };
            let speech = Rendition::clean(codec).render(&tone());
            let noise = way.render(&vec![0; 3 * RATE_HZ as usize]);
            assert_eq!(speech.len(), 3 * codec.rate_hz() as usize, "{codec:?}");
            let level = active_level_dbov(&speech, codec.rate_hz()).expect("it is heard").level_dbov;
            assert!((level + 26.0).abs() < 1.0, "{codec:?}: {level}");
            let snr_db = level - rms_dbov(&noise);
            // Opus keeps speech, and some of a hiss.
            let most = if codec == Codec::Opus { 4.0 } else { 1.5 };
            assert!((snr_db - 15.0).abs() < most, "{codec:?}: {snr_db}");
        }
    }

    #[test]
    fn losses_take_frames_and_the_same_seed_takes_the_same() {
        let connection = ConnectionSpec { loss: 0.15, mean_burst: 6.0, jitter_ms: 80.0, ..ConnectionSpec::default() };
        let way = Rendition { connection, seed: Seed(5), ..Rendition::clean(Codec::Pcmu) };
        let (clean, lossy) = (Rendition::clean(Codec::Pcmu).render(&tone()), way.render(&tone()));
        let differs = |(one, other): (&[i16], &[i16])| one != other;
        let lost = clean.chunks(160).zip(lossy.chunks(160)).filter(|pair| differs(*pair)).count();
        assert!((5..75).contains(&lost), "{lost} of 150 frames");
        assert_eq!(lossy, way.render(&tone()));
        assert_ne!(lossy, Rendition { seed: Seed(6), ..way }.render(&tone()));
    }

    #[test]
    fn a_bad_microphone_is_heard() {
        let way = Rendition { quality: AudioQuality::HORRIBLE, ..Rendition::clean(Codec::L16Wide) };
        let deep: Vec<i16> = tone().iter().enumerate().map(|(at, _)| ((at / 80) % 2) as i16 * 4000 - 2000).collect();
        let (clean, heard) = (Rendition::clean(Codec::L16Wide).render(&deep), way.render(&deep));
        assert!(rms_dbov(&heard) < rms_dbov(&clean) - 6.0, "its band has no 100 Hz");
    }
}
