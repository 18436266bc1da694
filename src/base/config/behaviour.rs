//! Numbers behind the named levels of a Digital Human (`slow`, `medium`, `horrible`, ...): plain values with their
//! defaults. Their users are not known here.

use ringer_media::impair::{AudioQuality, Clip};
use serde::Serialize;

use super::source::Source;

/// Numbers behind all named levels.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Behaviour {
    /// Continuous speech of the agent after which the Digital Human stops speaking, in milliseconds.
    pub yield_after_ms: u32,
    /// Time after a barge-in in which the Digital Human does not yield, in milliseconds.
    pub hold_floor_ms: u32,
    /// Time within which both sides start and the Digital Human yields, in milliseconds.
    pub both_start_ms: u32,
    /// Silence after connect before a listening Digital Human speaks first, in milliseconds.
    pub open_after_ms: u32,
    /// Signal-to-noise ratio at background noise volume 0, in dB.
    pub noise_quietest_snr_db: f64,
    /// Signal-to-noise ratio at background noise volume 1, in dB.
    pub noise_loudest_snr_db: f64,
    /// Speech rates by level.
    pub speed: Speed,
    /// Lengths of turns by level.
    pub verbosity: Verbosity,
    /// Fillers and pauses by level.
    pub fluency: Fluency,
    /// Interruptions of the agent's turns by level.
    pub interruption: Interruption,
    /// Band and faults of the microphone by level.
    pub audio: Audio,
    /// Loss and jitter by level.
    pub connection: Connection,
}

/// Words per minute at each level of `voice_speed`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Speed {
    /// Words per minute at `slowest`.
    pub slowest: f64,
    /// Words per minute at `slow`.
    pub slow: f64,
    /// Words per minute at `normal`.
    pub normal: f64,
    /// Words per minute at `fast`.
    pub fast: f64,
    /// Words per minute at `fastest`.
    pub fastest: f64,
}

/// Words in a turn at each level of `verbosity`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verbosity {
    /// Words in a turn at `low`.
    pub low: Words,
    /// Words in a turn at `medium`.
    pub medium: Words,
    /// Words in a turn at `high`.
    pub high: Words,
}

/// Number of words in a turn.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Words {
    /// Number of words to aim at.
    pub target: u32,
    /// Largest number of words.
    pub maximum: u32,
}

/// Fillers and pauses at each level of `fluency` below `native`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fluency {
    /// Hesitation at level `intermediate`.
    pub intermediate: Hesitation,
    /// Hesitation at level `beginner`.
    pub beginner: Hesitation,
}

/// Fillers and pauses of one level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hesitation {
    /// Mean number of fillers in 100 words.
    pub fillers_per_100_words: f64,
    /// Share of clause ends that get a pause, 0 to 1.
    pub clause_pauses: f64,
    /// Shortest pause in milliseconds.
    pub pause_from_ms: u32,
    /// Longest pause in milliseconds.
    pub pause_to_ms: u32,
}

/// Probability of interrupting a turn of the agent, 0 to 1, and the time of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interruption {
    /// Probability at level `low`.
    pub low: f64,
    /// Probability at level `medium`.
    pub medium: f64,
    /// Probability at level `high`.
    pub high: f64,
    /// Earliest moment after the onset of the agent's turn, in milliseconds.
    pub from_ms: u32,
    /// Latest moment after the onset of the agent's turn, in milliseconds.
    pub to_ms: u32,
}

/// Degradation of the caller's sound at each level of `audio_quality` below `high`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Audio {
    /// Sound at level `medium`.
    pub medium: Sound,
    /// Sound at level `low`; it clips softly.
    pub low: Sound,
    /// Sound at level `horrible`; it clips hard.
    pub horrible: Sound,
}

/// Band and faults of one level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sound {
    /// Lower -3 dB edge in Hz.
    pub low_hz: u32,
    /// Upper -3 dB edge in Hz.
    pub high_hz: u32,
    /// Level at which it clips, in dBFS; 0: it does not clip.
    pub clip_dbfs: f64,
    /// Signal-to-noise ratio of added noise in dB; 100: none.
    pub noise_snr_db: f64,
    /// Number of dropouts of 100 ms in 10 s.
    pub dropouts: u32,
}

/// Loss and jitter at each level of `connection_quality` below `high`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Connection {
    /// Impairment at level `medium`.
    pub medium: Impairment,
    /// Impairment at level `low`.
    pub low: Impairment,
    /// Impairment at level `horrible`.
    pub horrible: Impairment,
}

/// Loss and delay of packets, drawn from the seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Impairment {
    /// Share of packets that are lost, percent.
    pub loss_pct: f64,
    /// Mean length of a run of lost packets; 1: each loss is independent.
    pub mean_burst: f64,
    /// Half of the largest extra delay, in milliseconds; the delay is uniform from 0.
    pub jitter_ms: u32,
}

impl Sound {
    fn of(quality: &AudioQuality) -> Sound {
        let [low_hz, high_hz] = quality.band_hz.unwrap_or_default().map(|hz| hz as u32);
        let clip_dbfs = match quality.clip {
            Clip::None => 0.0,
            Clip::Soft(dbfs) | Clip::Hard(dbfs) => dbfs,
        };
        let noise_snr_db = quality.noise_snr_db.unwrap_or(100.0);
        Sound { low_hz, high_hz, clip_dbfs, noise_snr_db, dropouts: quality.dropouts as u32 }
    }
}

impl Default for Behaviour {
    fn default() -> Behaviour {
        let words = |target, maximum| Words { target, maximum };
        let impairment = |loss_pct, mean_burst, jitter_ms| Impairment { loss_pct, mean_burst, jitter_ms };
        let hesitation = |fillers_per_100_words, clause_pauses, pause_from_ms, pause_to_ms| Hesitation {
            fillers_per_100_words,
            clause_pauses,
            pause_from_ms,
            pause_to_ms,
        };
        Behaviour {
            yield_after_ms: 200,
            hold_floor_ms: 1500,
            both_start_ms: 150,
            open_after_ms: 10_000,
            noise_quietest_snr_db: 30.0,
            noise_loudest_snr_db: 5.0,
            speed: Speed { slowest: 110.0, slow: 140.0, normal: 170.0, fast: 205.0, fastest: 250.0 },
            verbosity: Verbosity { low: words(12, 25), medium: words(30, 60), high: words(70, 140) },
            fluency: Fluency {
                intermediate: hesitation(4.0, 0.25, 300, 600),
                beginner: hesitation(10.0, 0.5, 500, 1200),
            },
            interruption: Interruption { low: 0.10, medium: 0.25, high: 0.50, from_ms: 800, to_ms: 3000 },
            audio: Audio {
                medium: Sound::of(&AudioQuality::MEDIUM),
                low: Sound::of(&AudioQuality::LOW),
                horrible: Sound::of(&AudioQuality::HORRIBLE),
            },
            connection: Connection {
                medium: impairment(1.0, 1.0, 10),
                low: impairment(5.0, 3.0, 30),
                horrible: impairment(15.0, 6.0, 80),
            },
        }
    }
}

impl Speed {
    /// Returns the words per minute of a level; `normal` for an unknown one.
    pub fn level_wpm(&self, level: &str) -> f64 {
        match level {
            "slowest" => self.slowest,
            "slow" => self.slow,
            "fast" => self.fast,
            "fastest" => self.fastest,
            _ => self.normal,
        }
    }
}

impl Default for Verbosity {
    fn default() -> Verbosity {
        Behaviour::default().verbosity
    }
}

impl Behaviour {
    /// Returns the signal-to-noise ratio in dB of a background noise `volume` from 0 to 1.
    pub fn noise_snr_db(&self, volume: f64) -> f64 {
        self.noise_quietest_snr_db - (self.noise_quietest_snr_db - self.noise_loudest_snr_db) * volume
    }

    pub(super) fn read(&mut self, from: &mut Source) {
        from.whole("behaviour.yield_after_ms", 20..=10_000, &mut self.yield_after_ms);
        from.whole("behaviour.hold_floor_ms", 0..=60_000, &mut self.hold_floor_ms);
        from.whole("behaviour.both_start_ms", 0..=5000, &mut self.both_start_ms);
        from.whole("behaviour.open_after_ms", 1000..=600_000, &mut self.open_after_ms);
        from.number("behaviour.noise_quietest_snr_db", -20.0..=80.0, &mut self.noise_quietest_snr_db);
        from.number("behaviour.noise_loudest_snr_db", -20.0..=80.0, &mut self.noise_loudest_snr_db);
        let speed = &mut self.speed;
        for (level, into) in [
            ("slowest", &mut speed.slowest),
            ("slow", &mut speed.slow),
            ("normal", &mut speed.normal),
            ("fast", &mut speed.fast),
            ("fastest", &mut speed.fastest),
        ] {
            from.number(&format!("behaviour.speed.{level}"), 60.0..=400.0, into);
        }
        let verbosity = &mut self.verbosity;
        for (level, into) in
            [("low", &mut verbosity.low), ("medium", &mut verbosity.medium), ("high", &mut verbosity.high)]
        {
            from.whole(&format!("behaviour.verbosity.{level}.target"), 1..=1000, &mut into.target);
            from.whole(&format!("behaviour.verbosity.{level}.maximum"), 1..=1000, &mut into.maximum);
        }
        self.read_rates(from);
        let audio = &mut self.audio;
        for (level, into) in [("medium", &mut audio.medium), ("low", &mut audio.low), ("horrible", &mut audio.horrible)]
        {
            let key = |name| format!("behaviour.audio.{level}.{name}");
            // The lowest upper edge is above the highest lower one, so that a band is left whatever is chosen.
            from.whole(&key("low_hz"), 20..=800, &mut into.low_hz);
            from.whole(&key("high_hz"), 1000..=7600, &mut into.high_hz);
            from.number(&key("clip_dbfs"), -60.0..=0.0, &mut into.clip_dbfs);
            from.number(&key("noise_snr_db"), -20.0..=100.0, &mut into.noise_snr_db);
            from.whole(&key("dropouts"), 0..=8, &mut into.dropouts);
        }
    }

    fn read_rates(&mut self, from: &mut Source) {
        let fluency = &mut self.fluency;
        for (level, into) in [("intermediate", &mut fluency.intermediate), ("beginner", &mut fluency.beginner)] {
            let key = |name| format!("behaviour.fluency.{level}.{name}");
            from.number(&key("fillers_per_100_words"), 0.0..=50.0, &mut into.fillers_per_100_words);
            from.number(&key("clause_pauses"), 0.0..=1.0, &mut into.clause_pauses);
            from.whole(&key("pause_from_ms"), 0..=10_000, &mut into.pause_from_ms);
            from.whole(&key("pause_to_ms"), 0..=10_000, &mut into.pause_to_ms);
            check_order(from, &key("pause"), into.pause_from_ms, into.pause_to_ms);
        }
        let interruption = &mut self.interruption;
        from.number("behaviour.interruption.low", 0.0..=1.0, &mut interruption.low);
        from.number("behaviour.interruption.medium", 0.0..=1.0, &mut interruption.medium);
        from.number("behaviour.interruption.high", 0.0..=1.0, &mut interruption.high);
        from.whole("behaviour.interruption.from_ms", 0..=60_000, &mut interruption.from_ms);
        from.whole("behaviour.interruption.to_ms", 0..=60_000, &mut interruption.to_ms);
        check_order(from, "behaviour.interruption.", interruption.from_ms, interruption.to_ms);
        let connection = &mut self.connection;
        for (level, into) in
            [("medium", &mut connection.medium), ("low", &mut connection.low), ("horrible", &mut connection.horrible)]
        {
            let key = |name| format!("behaviour.connection.{level}.{name}");
            from.number(&key("loss_pct"), 0.0..=90.0, &mut into.loss_pct);
            from.number(&key("mean_burst"), 1.0..=100.0, &mut into.mean_burst);
            from.whole(&key("jitter_ms"), 0..=1000, &mut into.jitter_ms);
        }
    }
}

fn check_order(from: &mut Source, start: &str, low: u32, high: u32) {
    if low > high {
        let start = start.strip_suffix('.').map_or_else(|| format!("{start}_"), |table| format!("{table}."));
        from.refuse(format!("{start}from_ms = {low} is not allowed: it must be at most {start}to_ms, which is {high}"));
    }
}
