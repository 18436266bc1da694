//! Delays, CPU time and other figures, measured on a machine that does nothing else.

mod figures;
mod greeting;
pub(super) mod setup;
