//! Definitions of a suite as files: declarative push and pull.

pub(super) mod pull;
pub(super) mod push;
