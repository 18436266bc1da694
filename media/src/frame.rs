//! The frame that all internal audio travels in: 20 ms of 16 kHz mono 16-bit PCM.

/// Sample rate of all internal audio and of recordings, in Hz.
pub const RATE_HZ: u32 = 16_000;

/// Number of samples in one 20 ms frame.
pub const FRAME: usize = 320;

/// Number of samples in one millisecond.
pub const PER_MS: i64 = 16;

/// Position on the call's sample clock: 16,000 a second, 0 at connect, negative before it.
pub type Sample = i64;

/// Samples of 20 ms, 16 kHz mono.
pub type Frame = [i16; FRAME];

/// A frame of digital silence.
pub const SILENCE: Frame = [0; FRAME];
