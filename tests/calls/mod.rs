//! Real calls through the engine.

mod desk;
mod killed;
mod peers;
mod runs;
mod speech;
mod stage;
