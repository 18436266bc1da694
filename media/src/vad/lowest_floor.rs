//! The lowest noise floor of the last seconds, and what stands so far above it that it is a voice.
//!
//! The floor is a percentile of 3 s: somebody who speaks without pauses in a room lifts it by 10 dB.

use super::{UNDER_DB, VoiceActivity};

/// Rise in a frame (0.5 dB a second), and greatest distance below the present floor, dB. Noise that has become louder
/// is not taken for a voice.
const RISE_DB: f32 = 0.01;
const BELOW_DB: f32 = 8.0;

/// Log odds of the score (0.6), and level above the lowest floor in dB, from which a frame in noise is a voice.
const VOICE_ODDS: f32 = 0.405;
const VOICE_DB: f32 = 15.0;

/// Lowest noise floor of the last seconds, dBov.
#[derive(Copy, Clone, Debug)]
pub(super) struct LowestFloor(f32);

impl LowestFloor {
    /// Returns one without a past.
    pub(super) fn new() -> LowestFloor {
        LowestFloor(f32::MAX)
    }

    /// Takes the noise floor at a frame, dBov.
    pub(super) fn push(&mut self, floor_dbov: f32) {
        self.0 = (self.0 + RISE_DB).clamp(floor_dbov - BELOW_DB, floor_dbov);
    }
}

impl VoiceActivity {
    /// Tells if a frame in noise is speech where the network does not decide: a tone is none, nor is what lies below
    /// the noise, and a voice far above it is.
    pub(super) fn is_surely_speech(&self, score_odds: f32, above_db: f32, is_tone: bool) -> Option<bool> {
        if is_tone || above_db < -UNDER_DB {
            return Some(false);
        }
        let above_lowest_db = above_db + self.noise_floor.floor_dbov() - self.lowest_floor.0;
        (self.known && score_odds > VOICE_ODDS && above_lowest_db > VOICE_DB).then_some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_floor_rises_slowly_and_not_far_below_the_present_one() {
        let mut lowest = LowestFloor::new();
        let mut push = |floor_dbov, frames| {
            (0..frames).for_each(|_| lowest.push(floor_dbov));
            lowest.0
        };
        assert_eq!(push(-50.0, 1), -50.0);
        assert!((push(-45.0, 100) + 49.0).abs() < 0.01, "1 dB in 2 s");
        assert_eq!(push(-55.0, 1), -55.0);
        assert_eq!(push(-30.0, 1), -38.0);
    }
}
