//! Speech without pauses, so that its beginning and end are known exactly.

use std::sync::Arc;

use crate::codec::{Codec, Decoder};
use crate::level::{rms_dbov, to_speech_level};
use crate::resample::resample_whole;

/// Length of a block: 10 ms at 16 kHz, in samples.
const BLOCK: usize = 160;
/// Level below which blocks are quiet, dBov.
const QUIET_DBOV: f64 = -40.0;
/// Number of quiet blocks in a row that are kept.
const LONGEST_QUIET: usize = 4;

/// Loop of real speech without pauses over 40 ms, 16 kHz at -26 dBov.
#[derive(Clone, Debug)]
pub struct Voice {
    pcm: Arc<[i16]>,
    /// True for each block that is not quiet.
    loud: Arc<[bool]>,
    /// True when it plays all of this, whatever it is to say.
    whole: bool,
}

impl Voice {
    /// Returns a voice of 8 kHz G.711 mu-law speech, whose pauses are shortened.
    pub fn from_ulaw(bytes: &[u8]) -> Voice {
        let mut decoder = Decoder::new(Codec::Pcmu);
        let mut narrow = vec![0; bytes.len()];
        decoder.decode(bytes, &mut narrow);
        let mut wide = resample_whole(&narrow, 8000, 16_000);
        to_speech_level(&mut wide, 16_000);
        let (mut pcm, mut loud, mut quiet) = (Vec::new(), Vec::new(), 0);
        for block in wide.chunks_exact(BLOCK) {
            let is_loud = rms_dbov(block) > QUIET_DBOV;
            quiet = if is_loud { 0 } else { quiet + 1 };
            if quiet <= LONGEST_QUIET {
                pcm.extend_from_slice(block);
                loud.push(is_loud);
            }
        }
        Voice { pcm: pcm.into(), loud: loud.into(), whole: false }
    }

    /// Returns a voice that plays this audio only.
    pub fn of(pcm: &[i16]) -> Voice {
        Voice { pcm: pcm.into(), loud: Arc::default(), whole: true }
    }

    /// Returns the same voice backwards: as loud and as fast, and never the same sound.
    pub fn reverse(&self) -> Voice {
        let pcm: Vec<i16> = self.pcm.iter().rev().copied().collect();
        let loud: Vec<bool> = self.loud.iter().rev().copied().collect();
        Voice { pcm: pcm.into(), loud: loud.into(), whole: self.whole }
    }

    /// Returns `samples` of it that begin and end loud; `place` chooses where it begins (a block each, or somewhat
    /// later).
    pub fn say(&self, samples: usize, place: usize) -> Arc<[i16]> {
        if self.whole {
            return self.pcm.clone();
        }
        let blocks = self.loud.len().max(1);
        let last = samples.saturating_sub(1) / BLOCK;
        let is_loud = |block: usize| self.loud.get(block % blocks).copied().unwrap_or(true);
        let found = (place..place + blocks).find(|block| [0, 1, last].iter().all(|n| is_loud(block + n)));
        let from = found.unwrap_or(place) % blocks * BLOCK;
        self.pcm.iter().cycle().skip(from).take(samples).copied().collect()
    }
}
