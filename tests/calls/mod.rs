//! Real calls through the engine.

mod peers;
mod runs;
mod stage;
