//! Speech without pauses, so that where it begins and ends is known exactly.

use std::sync::Arc;

use crate::codec::{Codec, Decoder};
use crate::level::{rms_dbov, to_speech_level};
use crate::resample::resample_whole;

/// A 10 ms block at 16 kHz.
const BLOCK: usize = 160;
/// Blocks below this are pauses, dBov.
const PAUSE_DBOV: f64 = -40.0;

/// A loop of real speech from which the pauses were cut, 16 kHz at -26 dBov.
#[derive(Clone, Debug)]
pub struct Voice {
    pcm: Arc<[i16]>,
}

impl Voice {
    /// Of 8 kHz G.711 mu-law speech; of its pauses (10 ms blocks below -40 dBov) nothing is left.
    pub fn from_ulaw(bytes: &[u8]) -> Voice {
        let mut decoder = Decoder::new(Codec::Pcmu);
        let mut narrow = vec![0; bytes.len()];
        decoder.decode(bytes, &mut narrow);
        let mut wide = resample_whole(&narrow, 8000, 16_000);
        to_speech_level(&mut wide, 16_000);
        let loud = wide.chunks_exact(BLOCK).filter(|block| rms_dbov(block) > PAUSE_DBOV);
        Voice { pcm: loud.flatten().copied().collect() }
    }

    /// `samples` of it; `place` chooses where it begins (a block each).
    pub fn say(&self, samples: usize, place: usize) -> Arc<[i16]> {
        let from = place * BLOCK % self.pcm.len().max(1);
        self.pcm.iter().cycle().skip(from).take(samples).copied().collect()
    }
}
