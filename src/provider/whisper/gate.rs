//! Speech and silence by level alone, for the beginning of work that may be given up. Not the turns of a call.

/// Samples of a block: 20 ms.
const BLOCK: usize = 320;
/// Blocks of silence after which a stretch may be over: 200 ms.
const SILENT_BLOCKS: usize = 10;
/// A block is silent where it is so far below the loudest one (25 dB, as energy).
const BELOW: f32 = 0.003_16;
/// Silence holds no soft speech where it is so far below the loudest block (40 dB, as energy), or at most so far above
/// the softest one (6 dB).
const FAR_BELOW: f32 = 0.000_1;
const ABOVE_NOISE: f32 = 4.0;

/// Follows one stretch of speech.
#[derive(Debug, Default)]
pub(super) struct Gate {
    energy: f32,
    filled: usize,
    loudest: f32,
    softest: f32,
    silent: usize,
    /// Counts the blocks that were not silent.
    spoken: u64,
    /// Counts the blocks that may hold speech, soft speech behind loud speech among them.
    perhaps_spoken: u64,
}

impl Gate {
    /// Takes the next samples.
    pub(super) fn push(&mut self, pcm: &[i16]) {
        for &sample in pcm {
            self.energy += f32::from(sample).powi(2);
            self.filled += 1;
            if self.filled == BLOCK {
                self.loudest = self.loudest.max(self.energy);
                let silent = self.energy < self.loudest * BELOW;
                self.silent = if silent { self.silent + 1 } else { 0 };
                self.spoken += u64::from(!silent);
                self.softest = if self.softest > 0.0 { self.softest.min(self.energy) } else { self.energy };
                let is_noise = self.energy < (self.loudest * FAR_BELOW).max(self.softest * ABOVE_NOISE);
                self.perhaps_spoken += u64::from(!(silent && is_noise));
                (self.energy, self.filled) = (0.0, 0);
            }
        }
    }

    /// Grows with speech: two equal values have only silence between them.
    pub(super) fn spoken_blocks(&self) -> u64 {
        self.perhaps_spoken
    }

    /// True if the stretch may be over.
    pub(super) fn is_silent(&self) -> bool {
        self.silent >= SILENT_BLOCKS && self.spoken > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_after_speech_is_silence() {
        let mut gate = Gate::default();
        let (loud, quiet) = ([8000; 3200], [100; 3200]);
        gate.push(&quiet[..320]);
        assert!(!gate.is_silent(), "nobody spoke yet, and the loudest is the noise");
        gate.push(&loud);
        let spoken = gate.spoken_blocks();
        gate.push(&quiet[..2880]);
        assert!(!gate.is_silent(), "180 ms");
        gate.push(&quiet[..320]);
        assert!(gate.is_silent() && gate.spoken_blocks() == spoken);
        gate.push(&loud[..320]);
        assert!(!gate.is_silent() && gate.spoken_blocks() > spoken);
    }

    #[test]
    fn soft_speech_behind_loud_speech_is_no_silence() {
        let mut gate = Gate::default();
        gate.push(&[20; 3200]);
        gate.push(&[8000; 16_000]);
        let spoken = gate.spoken_blocks();
        gate.push(&[20; 3200]);
        assert_eq!(gate.spoken_blocks(), spoken, "the noise of before");
        gate.push(&[350; 3200]);
        assert!(gate.is_silent() && gate.spoken_blocks() > spoken, "27 dB below the loudest, and no noise");
    }
}
