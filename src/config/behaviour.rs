//! The numbers behind the named levels of a Digital Human (`slow`, `medium`, `horrible`, ...). Plain values with their defaults;
//! who uses them is not known here.

use ringer_media::impair::{AudioQuality, Clip};
use serde::Serialize;

use super::source::Source;

/// Every number that a named level stands for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Behaviour {
    /// Continuous speech of the agent after which the Digital Human stops speaking.
    pub yield_after_ms: u32,
    /// How long the Digital Human does not yield after it has cut in.
    pub hold_floor_ms: u32,
    /// Both sides starting within this time: the Digital Human gives way.
    pub both_start_ms: u32,
    /// Silence after connect before a listening Digital Human opens by itself.
    pub open_after_ms: u32,
    /// Signal-to-noise ratio at background noise volume 0.
    pub noise_quietest_snr_db: f64,
    /// Signal-to-noise ratio at background noise volume 1.
    pub noise_loudest_snr_db: f64,
    /// Speech rates.
    pub speed: Speed,
    /// Lengths of turns.
    pub verbosity: Verbosity,
    /// Fillers and pauses.
    pub fluency: Fluency,
    /// Cutting into the agent's turn.
    pub interruption: Interruption,
    /// Band and faults of the microphone.
    pub audio: Audio,
    /// Loss and jitter.
    pub connection: Connection,
}

/// Words per minute of each `voice_speed`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Speed {
    /// Level `slowest`.
    pub slowest: f64,
    /// Level `slow`.
    pub slow: f64,
    /// Level `normal`.
    pub normal: f64,
    /// Level `fast`.
    pub fast: f64,
    /// Level `fastest`.
    pub fastest: f64,
}

/// Words in a turn at each `verbosity`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verbosity {
    /// Level `low`.
    pub low: Words,
    /// Level `medium`.
    pub medium: Words,
    /// Level `high`.
    pub high: Words,
}

/// How many words a turn has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Words {
    /// Aimed at.
    pub target: u32,
    /// Never more.
    pub maximum: u32,
}

/// What is added to the words below `native`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fluency {
    /// Level `intermediate`.
    pub intermediate: Hesitation,
    /// Level `beginner`.
    pub beginner: Hesitation,
}

/// Fillers and pauses of one level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hesitation {
    /// Mean number of fillers.
    pub fillers_per_100_words: f64,
    /// Share of clause ends that get a pause, 0 to 1.
    pub clause_pauses: f64,
    /// Shortest pause.
    pub pause_from_ms: u32,
    /// Longest pause.
    pub pause_to_ms: u32,
}

/// Probability of cutting into a turn of the agent, 0 to 1, and when.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Interruption {
    /// Level `low`.
    pub low: f64,
    /// Level `medium`.
    pub medium: f64,
    /// Level `high`.
    pub high: f64,
    /// Earliest moment after the onset of the agent's turn.
    pub from_ms: u32,
    /// Latest moment after the onset of the agent's turn.
    pub to_ms: u32,
}

/// What is done to the sound at each `audio_quality` below `high`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Audio {
    /// Level `medium`.
    pub medium: Sound,
    /// Level `low`; it clips softly.
    pub low: Sound,
    /// Level `horrible`; it clips hard.
    pub horrible: Sound,
}

/// Band and faults of one level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sound {
    /// Lower -3 dB edge.
    pub low_hz: u32,
    /// Upper -3 dB edge.
    pub high_hz: u32,
    /// Where it clips, dBFS; 0: not at all.
    pub clip_dbfs: f64,
    /// Signal-to-noise ratio of added noise; 100: none.
    pub noise_snr_db: f64,
    /// Dropouts of 100 ms in 10 s.
    pub dropouts: u32,
}

/// Loss and jitter of each `connection_quality` below `high`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Connection {
    /// Level `medium`.
    pub medium: Impairment,
    /// Level `low`.
    pub low: Impairment,
    /// Level `horrible`.
    pub horrible: Impairment,
}

/// A seeded loss and delay model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Impairment {
    /// Lost packets, percent.
    pub loss_pct: f64,
    /// Mean length of a run of lost packets; 1: each loss is independent.
    pub mean_burst: f64,
    /// Extra delay is uniform from 0 to twice this.
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
    /// Words per minute of a level; `normal` for an unknown one.
    pub fn named(&self, level: &str) -> f64 {
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
    /// Signal-to-noise ratio of a background noise `volume` from 0 to 1.
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
            // A lowest upper edge above the highest lower one: a band is left whatever is chosen.
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
            ordered(from, &key("pause"), into.pause_from_ms, into.pause_to_ms);
        }
        let interruption = &mut self.interruption;
        from.number("behaviour.interruption.low", 0.0..=1.0, &mut interruption.low);
        from.number("behaviour.interruption.medium", 0.0..=1.0, &mut interruption.medium);
        from.number("behaviour.interruption.high", 0.0..=1.0, &mut interruption.high);
        from.whole("behaviour.interruption.from_ms", 0..=60_000, &mut interruption.from_ms);
        from.whole("behaviour.interruption.to_ms", 0..=60_000, &mut interruption.to_ms);
        ordered(from, "behaviour.interruption.", interruption.from_ms, interruption.to_ms);
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

fn ordered(from: &mut Source, start: &str, low: u32, high: u32) {
    if low > high {
        let start = start.strip_suffix('.').map_or_else(|| format!("{start}_"), |table| format!("{table}."));
        from.refuse(format!("{start}from_ms = {low} is not allowed: it must be at most {start}to_ms, which is {high}"));
    }
}
