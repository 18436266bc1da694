//! Real calls through the engine.

mod peers;
mod stage;
