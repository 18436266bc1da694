//! Speech on its way from a provider to a call: brought to 16 kHz, without silence at its ends, and to the level of
//! speech while the rest of it is not known yet.

use std::sync::Arc;

use ringer_media::frame::RATE_HZ;
use ringer_media::level::{Limiter, SPEECH_LEVEL_DBOV, active_level_dbov};
use ringer_media::resample::Resampler;
use tokio::sync::mpsc;

use super::super::timbre::speech_s;
use super::super::{Failure, Spoken};
use super::SYNTHESIZER;

/// Gathered before the first words begin, so that a small delay of the next piece is not heard: 100 ms.
const LEAD: usize = 1600;
/// Softer than this (-50 dBFS) is silence.
const QUIET: u16 = 100;
/// Samples kept of the silence before the first sound and after the last: 10 ms.
const EDGE: usize = 160;
/// Silence that is held back because it may be the end; longer pauses go out: 1 s.
const HELD_MAX: usize = 16_000;
/// The level is looked at after each half second of audio.
const LOOK: usize = 8000;
/// Samples by which the level is measured: the last 10 s at 16 kHz.
const LOOKED_AT: usize = 160_000;
/// Largest change of the gain: 1 dB a second, in dB per sample.
const DB_PER_SAMPLE: f64 = 1.0 / 16_000.0;
/// Most gain either way.
const GAIN_MAX_DB: f64 = 20.0;
/// Highest peak of speech.
const PEAK_DBFS: f64 = -3.0;
/// Longest speech of one text: 3 minutes.
const SAMPLES_MAX: usize = 180 * 16_000;

/// Level and length of one text's speech, as measured.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Measured {
    /// The gain that would have been right for all of it.
    pub(super) gain_db: f64,
    /// Seconds without pauses over 300 ms.
    pub(super) speech_s: f32,
}

/// One text's speech while it comes.
pub(super) struct Flow {
    resampler: Resampler,
    rate_hz: u32,
    out: mpsc::Sender<Spoken>,
    /// Samples that the filter's delay puts before those of a new rate, and that are left out.
    lead: usize,
    /// Samples as received, at 16 kHz, from the first sound on.
    heard: Vec<i16>,
    /// Position in `heard` up to which has gone out.
    sent: usize,
    looked: usize,
    limiter: Limiter,
    gain_db: f64,
    wanted_db: f64,
}

impl Flow {
    /// Returns a flow that takes audio at `rate_hz` and begins with the voice's calibrated gain. `None`: the rate is
    /// not supported.
    pub(super) fn new(rate_hz: u32, gain_db: f64, out: mpsc::Sender<Spoken>) -> Option<Flow> {
        Some(Flow {
            resampler: Resampler::new(rate_hz, RATE_HZ)?,
            rate_hz,
            out,
            lead: 0,
            heard: Vec::new(),
            sent: 0,
            looked: 0,
            limiter: Limiter::new(PEAK_DBFS),
            gain_db,
            wanted_db: gain_db,
        })
    }

    /// Takes the next samples as being of this rate. Errors: `synthesizer_failed` for a rate that cannot be brought to
    /// 16 kHz.
    pub(super) fn turn_to(&mut self, rate_hz: u32) -> Result<(), Failure> {
        if rate_hz == self.rate_hz {
            return Ok(());
        }
        let unread = || SYNTHESIZER.general_failure(&format!("sent sound at {rate_hz} Hz, which is not read"));
        let resampler = Resampler::new(rate_hz, RATE_HZ).ok_or_else(unread)?;
        if !self.heard.is_empty() {
            self.drain()?;
            self.lead = (resampler.delay_s() * f64::from(RATE_HZ)).round() as usize;
        }
        (self.resampler, self.rate_hz) = (resampler, rate_hz);
        Ok(())
    }

    /// Takes what the filter still holds.
    fn drain(&mut self) -> Result<(), Failure> {
        let held = (self.resampler.delay_s() * f64::from(self.rate_hz)).ceil() as usize;
        self.hear(&vec![0; held])
    }

    /// Takes the next samples as received. Errors: `synthesizer_failed` when they do not end.
    pub(super) async fn take(&mut self, pcm: &[i16]) -> Result<(), Failure> {
        self.hear(pcm)?;
        let loud = self.heard.iter().rposition(|sample| sample.unsigned_abs() > QUIET).map_or(0, |at| at + 1);
        let kept = self.heard.len().saturating_sub(HELD_MAX);
        let end = loud.max(kept);
        if self.sent > 0 || end >= LEAD {
            self.send(end).await;
        }
        Ok(())
    }

    /// Ends the flow: what is left goes out, silence does not.
    pub(super) async fn finish(mut self) -> Result<Option<Measured>, Failure> {
        // Samples in the filter come out before the silence behind it.
        self.drain()?;
        let Some(last) = self.heard.iter().rposition(|sample| sample.unsigned_abs() > QUIET) else { return Ok(None) };
        let end = self.heard.len().min(last + 1 + EDGE);
        self.send(end).await;
        let whole = &self.heard[..end];
        let gain_db = active_level_dbov(whole, 16_000).map_or(self.gain_db, |active| gain_for(active.level_dbov));
        Ok(Some(Measured { gain_db, speech_s: speech_s(whole) }))
    }

    /// Takes samples as received.
    fn hear(&mut self, received: &[i16]) -> Result<(), Failure> {
        let most = received.len() * RATE_HZ as usize / self.rate_hz as usize + 1;
        let mut pcm = vec![0; most];
        let count = self.resampler.process(received, &mut pcm);
        pcm.truncate(count);
        let lead = self.lead.min(count);
        self.lead -= lead;
        pcm.drain(..lead);
        let from = if self.heard.is_empty() {
            let first = pcm.iter().position(|sample| sample.unsigned_abs() > QUIET);
            first.map_or(pcm.len(), |at| at.saturating_sub(EDGE))
        } else {
            0
        };
        self.heard.extend_from_slice(&pcm[from..]);
        if self.heard.len() > SAMPLES_MAX {
            return Err(SYNTHESIZER.general_failure("sent more than 3 minutes of speech for one text"));
        }
        if self.heard.len() >= self.looked + LOOK {
            self.looked = self.heard.len();
            let recent = &self.heard[self.looked.saturating_sub(LOOKED_AT)..];
            if let Some(active) = active_level_dbov(recent, 16_000) {
                self.wanted_db = gain_for(active.level_dbov);
            }
        }
        Ok(())
    }

    async fn send(&mut self, end: usize) {
        if end <= self.sent {
            return;
        }
        let piece = &self.heard[self.sent..end];
        let mut louder = Vec::with_capacity(piece.len());
        for block in piece.chunks(EDGE) {
            let step = DB_PER_SAMPLE * block.len() as f64;
            self.gain_db += (self.wanted_db - self.gain_db).clamp(-step, step);
            let factor = 10f64.powf(self.gain_db / 20.0);
            louder.extend(block.iter().map(|&sample| (f64::from(sample) * factor).round() as i32));
        }
        let mut pcm = vec![0; louder.len()];
        self.limiter.process(&louder, &mut pcm);
        self.sent = end;
        // Nobody listens any more: the future is dropped soon.
        let _ = self.out.send(Spoken::Audio(Arc::from(pcm))).await;
    }
}

fn gain_for(level_dbov: f64) -> f64 {
    (SPEECH_LEVEL_DBOV - level_dbov).clamp(-GAIN_MAX_DB, GAIN_MAX_DB)
}
