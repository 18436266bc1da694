//! Real calls through the engine.

mod callers;
mod captured;
mod desk;
mod dynamic;
pub mod house;
mod inbound;
mod judged;
mod killed;
mod language;
pub mod local;
mod logs;
mod memory;
mod offers;
mod opening;
mod page;
mod peers;
mod redirects;
mod runs;
mod signalling;
mod softphone;
mod speech;
mod stage;
mod strangers;
mod streams;
mod torture;
mod transfers;
mod trunks;
