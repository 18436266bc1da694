//! Calls whose memory or lateness is measured.

mod memory;
mod pacing;
