//! Pauses inside what is said: stretches in which the words' own audio is silent, on the 10 ms grid of the sample clock.

use crate::frame::{PER_MS, Sample};
use crate::level::QUIET;

/// Shorter ones belong to the words.
const SHORTEST: Sample = 300 * PER_MS;
/// Grid of their edges (10 ms).
const BLOCK: usize = 10 * PER_MS as usize;
/// Pauses of one utterance that are kept: twice what the slowest speaker adds to the longest turn.
const MOST: usize = 64;

/// Follows one utterance at a time.
#[derive(Debug)]
pub struct Pauses {
    quiet_since: Option<Sample>,
    found: Vec<[Sample; 2]>,
}

impl Pauses {
    /// Nothing is said yet.
    pub fn new() -> Pauses {
        Pauses { quiet_since: None, found: Vec::with_capacity(MOST) }
    }

    /// Another utterance begins.
    pub fn begin(&mut self) {
        self.quiet_since = None;
        self.found.clear();
    }

    /// Takes in the frame at `at`, in which the utterance sounds from the sample `from` on.
    pub fn follow(&mut self, at: Sample, frame: &[i32], from: usize) {
        for (number, block) in frame.chunks(BLOCK).enumerate() {
            let start = (number * BLOCK).max(from);
            let Some(said) = block.get(start - number * BLOCK..).filter(|said| !said.is_empty()) else { continue };
            let energy = said.iter().map(|&x| i64::from(x).pow(2)).sum::<i64>();
            let start = at + start as Sample;
            if energy < QUIET * said.len() as i64 {
                self.quiet_since.get_or_insert(start);
            } else {
                self.pause_ends(start);
            }
        }
    }

    /// The utterance ended at `end`: its pauses in order, each from its first sample to one past its last.
    pub fn end(&mut self, end: Sample) -> Box<[[Sample; 2]]> {
        self.pause_ends(end);
        self.found.iter().map(|&[from, to]| [from, to.min(end)]).filter(|[from, to]| from < to).collect()
    }

    fn pause_ends(&mut self, at: Sample) {
        let Some(since) = self.quiet_since.take() else { return };
        if at - since >= SHORTEST && self.found.len() < MOST {
            self.found.push([since, at]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::FRAME;

    /// Frames of an utterance that begins in the first one at `from`; each part is so many milliseconds of sound or silence.
    fn pauses(from: usize, parts: &[(usize, i32)]) -> Vec<[Sample; 2]> {
        let sound =
            parts.iter().flat_map(|&(ms, peak)| (0..ms * 16).map(move |n| if n % 2 == 0 { peak } else { -peak }));
        let mut audio: Vec<i32> = std::iter::repeat_n(0, from).chain(sound).collect();
        let end = audio.len() as Sample;
        audio.resize(audio.len().next_multiple_of(FRAME), 0);
        let mut pauses = Pauses::new();
        pauses.begin();
        for (n, frame) in audio.chunks(FRAME).enumerate() {
            pauses.follow((n * FRAME) as Sample, frame, if n == 0 { from } else { 0 });
        }
        pauses.end(end).to_vec()
    }

    #[test]
    fn pauses_of_300_ms_and_more_are_told() {
        let ms = |from: Sample, to: Sample| [from * PER_MS, to * PER_MS];
        for (from, parts, expect) in [
            (0, &[(500, 3000), (1000, 0), (500, 3000)][..], vec![ms(500, 1500)]),
            (0, &[(500, 3000), (290, 0), (500, 3000)], vec![]),
            (0, &[(500, 3000), (300, 90), (500, 3000)], vec![ms(500, 800)]),
            // 104 is -50 dBov.
            (0, &[(500, 3000), (300, 110), (500, 3000)], vec![]),
            (160, &[(400, 0), (500, 3000), (400, 0)], vec![ms(10, 410), ms(910, 1310)]),
            (0, &[(200, 3000), (600, 0), (20, 3000), (600, 0), (200, 3000)], vec![ms(200, 800), ms(820, 1420)]),
        ] {
            assert_eq!(pauses(from, parts), expect, "{parts:?}");
        }
    }
}
