//! Calls whose memory or lateness is measured.

pub mod greeting;
mod memory;
mod pacing;
