//! Calls whose memory or lateness is measured.

mod flood;
pub mod greeting;
mod memory;
mod pacing;
