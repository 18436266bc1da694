//! Real calls through the engine.

mod desk;
mod inbound;
mod killed;
mod logs;
mod memory;
mod page;
mod peers;
mod runs;
mod speech;
mod stage;
