//! Real calls through the engine.

mod captured;
mod desk;
mod dtls;
mod dynamic;
pub mod house;
mod inbound;
mod judged;
mod killed;
mod language;
pub mod local;
mod logs;
mod memory;
mod opening;
mod page;
mod peers;
mod redirects;
mod runs;
mod speech;
mod stage;
mod strangers;
