//! placeholder

/// Named audio quality of the sent audio.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum AudioQuality {
    /// Untouched.
    #[default]
    High,
    /// 200 to 3400 Hz.
    Medium,
    /// 300 to 2700 Hz, soft clipping, added noise at 30 dB.
    Low,
    /// 400 to 2200 Hz, hard clipping, added noise at 15 dB, dropouts.
    Horrible,
}
