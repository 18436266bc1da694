//! Real calls through the engine.

mod desk;
mod killed;
mod memory;
mod peers;
mod runs;
mod speech;
mod stage;
