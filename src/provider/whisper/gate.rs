//! Speech and silence by level alone, for the beginning of work that may be given up. Not the turns of a call.

/// Samples of a block: 20 ms.
const BLOCK: usize = 320;
/// Blocks of silence after which a stretch may be over: 200 ms.
const SILENT_BLOCKS: usize = 10;
/// A block is silent where it is so far below the loudest one (25 dB, as energy).
const BELOW: f32 = 0.003_16;

/// Follows one stretch of speech.
#[derive(Debug, Default)]
pub struct Gate {
    energy: f32,
    filled: usize,
    loudest: f32,
    silent: usize,
    /// Counts the blocks that were not silent.
    spoken: u64,
}

impl Gate {
    /// Takes the next samples.
    pub fn push(&mut self, pcm: &[i16]) {
        for &sample in pcm {
            self.energy += f32::from(sample).powi(2);
            self.filled += 1;
            if self.filled == BLOCK {
                self.loudest = self.loudest.max(self.energy);
                let silent = self.energy < self.loudest * BELOW;
                self.silent = if silent { self.silent + 1 } else { 0 };
                self.spoken += u64::from(!silent);
                (self.energy, self.filled) = (0.0, 0);
            }
        }
    }

    /// Grows with speech: two equal values have only silence between them.
    pub fn spoken_blocks(&self) -> u64 {
        self.spoken
    }

    /// True if the stretch may be over.
    pub fn is_silent(&self) -> bool {
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
}
