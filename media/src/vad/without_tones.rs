//! Tones of the network are taken out of a channel before speech is looked for: what is behind one then begins as it
//! does after silence, and a tone is no noise floor.

use super::tone_run::ToneFound;
use super::{BLOCK, CONFIRM, VoiceActivity};
use crate::frame::{Frame, Sample};

impl VoiceActivity {
    /// True for speech from `onset` on that began under a tone: its weak first sounds may be hidden.
    pub fn is_under_tone(&self, onset: Sample) -> bool {
        self.under_tone.iter().any(|from| (from - onset).abs() <= CONFIRM)
    }

    /// Silences a tone at the beginning of a frame, which holds what is behind it alone; returns its number of samples.
    pub(super) fn take_out_tone(&mut self, pcm: &mut Frame, from: Sample) -> usize {
        let ToneFound { samples, began, goes_on } = self.tones.push(pcm, from);
        if let Some(goes_on) = goes_on {
            self.under_tone.rotate_right(1);
            self.under_tone[0] = goes_on;
        }
        if let Some(began) = began {
            self.forget_tone(began, from);
        }
        if samples > 0 {
            pcm[..samples].fill(0);
            self.earliest = self.earliest.max(from + (samples / BLOCK * BLOCK) as Sample);
            self.tone_frames = 0;
        }
        samples
    }

    /// Takes back what was made of a tone between its first sample and `to`, before it was known for one.
    fn forget_tone(&mut self, began: Sample, to: Sample) {
        let since = (to - began + BLOCK as Sample - 1) as usize / BLOCK;
        self.blocks.silence(since);
        let measured = since.min(self.measured);
        self.measured -= measured;
        self.noise_floor.take_back(measured);
        let frames = since.div_ceil(2);
        (self.votes, self.sure) = (self.votes >> frames << frames, self.sure >> frames << frames);
        self.speech = self.speech.map(|end| end.min(began));
        self.voted = self.voted.min(began);
        self.lookback.cut_back(began);
    }
}
