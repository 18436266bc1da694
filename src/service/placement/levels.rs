//! Numbers behind the levels of a call, as its result tells them.

use ringer_human::{FluencyLevel, Verbosity};
use ringer_media::call::CallSpec;
use serde_json::{Value, json};

use super::{CallRows, PlacementSettings, behaviour, impairment};

impl CallRows {
    /// The numbers behind the levels of this call.
    pub(super) fn in_force(&self, terms: &PlacementSettings, spec: &CallSpec) -> Value {
        let human = &self.human;
        let has_noise = spec.noise.is_some();
        let snr_db = has_noise.then(|| terms.behaviour.noise_snr_db(human.background_noise_volume));
        json!({
            "language": self.language(),
            "follows_language": self.follows(),
            "endpointing_delay_ms": spec.turn.endpointing_delay_ms,
            "silence_timeout_ms": spec.turn.silence_timeout_ms,
            "yield_after_ms": spec.turn.yield_after_ms,
            "hold_floor_ms": spec.turn.hold_floor_ms,
            "both_start_ms": spec.turn.both_start_ms,
            "recognizer_grace_ms": spec.turn.recognizer_grace_ms,
            "interruption": behaviour::interruption_in_force(&spec.interruption),
            "duplex": human.duplex,
            "voice_speed": human.voice_speed,
            "words_per_minute": terms.behaviour.speed.level_wpm(human.voice_speed.as_str()),
            "verbosity": human.verbosity,
            "words_per_turn": Verbosity::of_name(human.verbosity.as_str()).words(&terms.behaviour.verbosity),
            "fluency": human.fluency,
            "hesitation": FluencyLevel::of_name(human.fluency.as_str()).hesitation(&terms.behaviour.fluency),
            "background_noise": human.background_noise,
            "noise_snr_db": snr_db,
            "audio_quality": human.audio_quality,
            "audio": impairment::audio_in_force(&spec.audio_quality),
            "connection_quality": human.connection_quality,
            "connection": impairment::connection_in_force(&spec.connection),
            "extension": spec.extension,
            "ringing_ms": spec.limits.ringing_ms,
            "max_duration_ms": spec.limits.max_duration_ms,
            "max_turns": spec.limits.max_turns,
            "inactivity_ms": spec.limits.inactivity_ms,
        })
    }
}
