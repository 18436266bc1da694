//! The frame that all internal audio travels in: 20 ms of 16 kHz mono 16-bit PCM.

/// Sample rate of all internal audio and of recordings, in Hz.
pub const RATE_HZ: u32 = 16_000;

/// Number of samples in one 20 ms frame.
pub const FRAME: usize = 320;

/// Number of samples in one millisecond.
pub const PER_MS: i64 = 16;

/// Position on the call's sample clock: 16,000 a second, 0 at connect, negative before it.
pub type Sample = i64;

/// Returns a length in milliseconds: the nearest whole number, half up. A stretch has this number wherever it is told.
pub fn whole_ms(samples: Sample) -> Sample {
    (samples + PER_MS / 2).div_euclid(PER_MS)
}

/// Samples of 20 ms, 16 kHz mono.
pub type Frame = [i16; FRAME];

/// A frame of digital silence.
pub const SILENCE: Frame = [0; FRAME];
