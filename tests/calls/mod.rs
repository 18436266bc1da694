//! Real calls through the engine.

mod desk;
mod peers;
mod runs;
mod stage;
