//! The frame that all internal audio travels in: 20 ms of 16 kHz mono 16-bit PCM.

/// Samples per second of all internal audio and of recordings.
pub const RATE_HZ: u32 = 16_000;

/// Samples in one 20 ms frame.
pub const FRAME: usize = 320;

/// Samples in one millisecond.
pub const PER_MS: i64 = 16;

/// A position on the call's sample clock: 16000 per second, 0 at connect, negative before it.
pub type Sample = i64;

/// 20 ms of 16 kHz mono PCM.
pub type Frame = [i16; FRAME];

/// A frame of digital silence.
pub const SILENCE: Frame = [0; FRAME];
