//! Calls whose memory or lateness is measured.

mod flood;
pub(crate) mod greeting;
mod memory;
mod pacing;
