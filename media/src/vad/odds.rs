//! Speech in noise as the odds of two states, speech and noise, of which neither lasts for one frame only: what a frame tells is
//! added to what the frames before it have told (a hidden Markov model's forward step, as Sohn, Kim and Sung have it in "A
//! statistical model-based voice activity detection", IEEE Signal Processing Letters 6, 1999).
//!
//! A frame tells by the detector's score and by its level above the floor, both measured against what the noise itself
//! reaches. Steady noise hardly moves: in it a little more is much. Babble comes and goes, and the detector takes a part of it
//! for speech: in it only much is something. The weights were fitted (logistic regression) to 34 utterances of nine voices in
//! pink noise, and in the babble of 8 and of 20 voices, at 0 to 10 dB.

use super::percentiles::Percentiles;

/// Frames of noise that are remembered (5 s).
const MEMORY: usize = 250;

/// Lowest level that is told apart in noise, dBov.
const LEAST_DBOV: f32 = -72.0;

/// Score below which, and above 1 less which, nothing is told apart.
const LEAST_SCORE: f32 = 0.01;

/// Greatest distance from the floor that counts, dB.
const MOST_DB: f32 = 20.0;

/// What lies this far below the floor is less than the noise was: the floor had climbed into speech.
const UNDER_DB: f32 = 3.0;

/// Distance between the 2nd and the 10th percentile of the frames' levels up to which noise is steady, and from which it is
/// babble, dB.
const STEADY_DB: f32 = 1.2;
const BABBLE_DB: f32 = 1.3;

/// Chance that a frame is what the one before was.
const STAY: f32 = 0.95;

/// Bounds of the odds (natural logarithm), and where speech begins and is over.
const MOST: f32 = 8.0;
const ON: f32 = 2.0;
const OFF: f32 = -1.0;

/// What one unit of each tells, as natural logarithm of odds.
struct Weights {
    /// Of the score's own log odds.
    score: f32,
    /// Of a dB above the floor.
    level: f32,
    /// Of the log odds that a fifth of the last 5 s stay below.
    background: f32,
    none: f32,
}

const STEADY: Weights = Weights { score: 5.09, level: 0.44, background: -3.07, none: -5.45 };
const BABBLE: Weights = Weights { score: 2.46, level: 0.19, background: -1.58, none: -3.96 };

impl Weights {
    fn evidence(&self, score: f32, level: f32, background: f32) -> f32 {
        self.score * score + self.level * level + self.background * background + self.none
    }
}

/// The odds that a noisy channel carries speech. Allocates nothing.
pub struct Odds {
    /// Log odds of the scores, in steps of 0.05.
    scores: Percentiles<MEMORY, 185>,
    /// Levels of the louder halves of the frames, in steps of 0.25 dB up from [`LEAST_DBOV`].
    levels: Percentiles<MEMORY, 256>,
    odds: f32,
}

impl Odds {
    /// No noise was heard.
    pub fn new() -> Odds {
        Odds { scores: Percentiles::new(-4.6, 0.05), levels: Percentiles::new(LEAST_DBOV, 0.25), odds: -MOST }
    }

    /// A frame in noise: the detector's score, the level of its louder half and the floor under it in dBov. Gives what the
    /// frame tells: more than 0 is speech.
    pub fn push(&mut self, score: f32, level_dbov: f32, floor_dbov: f32, is_tone: bool) -> f32 {
        let score = score.clamp(LEAST_SCORE, 1.0 - LEAST_SCORE);
        let score = (score / (1.0 - score)).ln();
        self.scores.push(score);
        self.levels.push(level_dbov);
        let [background] = self.scores.below([0.20]);
        let [low, floor] = self.levels.below([0.02, 0.10]);
        let babble = ((floor - low - STEADY_DB) / (BABBLE_DB - STEADY_DB)).clamp(0.0, 1.0);
        let level = (level_dbov - floor_dbov).clamp(0.0, MOST_DB);
        let [steady, babbling] = [STEADY, BABBLE].map(|weights| weights.evidence(score, level, background));
        let evidence = steady + babble * (babbling - steady);
        // A tone is no speech, nor is what lies below the noise, whatever the detector says.
        let cannot = is_tone || level_dbov < floor_dbov - UNDER_DB;
        self.step(if cannot { evidence.min(OFF) } else { evidence })
    }

    /// A frame of which nothing is left but this side's own echo.
    pub fn push_masked(&mut self) -> f32 {
        self.step(OFF)
    }

    fn step(&mut self, evidence: f32) -> f32 {
        let speech = 1.0 / (1.0 + (-self.odds).exp());
        let speech = speech * STAY + (1.0 - speech) * (1.0 - STAY);
        self.odds = ((speech / (1.0 - speech)).ln() + evidence).clamp(-MOST, MOST);
        evidence
    }

    /// Without noise something else decides: speech is on, or is not.
    pub fn set(&mut self, on: bool) {
        self.odds = if on { ON } else { -MOST };
    }

    /// There is speech, given that there was (`on`) or not.
    pub fn active(&self, on: bool) -> bool {
        self.odds > if on { OFF } else { ON }
    }
}
