//! Speed, pitch and formants of synthesized voices: what every synthesizer and the choice of a voice share.

/// Words per minute at speed `normal`.
pub(super) const NORMAL_WPM: f32 = 170.0;

/// Range of a voice's callers, as factors of its own pitch and formants. Words stay as well understood as in the voice
/// itself.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Range {
    /// Lowest and highest pitch.
    pub(super) pitch: (f32, f32),
    /// Lowest and highest formants.
    pub(super) formant: (f32, f32),
}

/// Returns the words per minute of a named speed.
pub(super) fn rate_wpm(speed: &str) -> f32 {
    match speed {
        "slowest" => 110.0,
        "slow" => 140.0,
        "fast" => 205.0,
        "fastest" => 250.0,
        _ => NORMAL_WPM,
    }
}
