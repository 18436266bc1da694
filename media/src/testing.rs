//! Conversations in virtual time: a [`Rig`] drives one [`crate::call::Call`] against a scripted other side, tick by
//! tick, and keeps everything that came of it. Nothing sleeps, and everything random comes from the seed. For tests and
//! simulations; no part of a live call.

mod bed;
mod driver;
mod far;
mod mind;
pub mod speaker;
mod voice;

pub use bed::level_for;
pub use driver::{Heard, Log, Rig, RigSpec, SentFrame, SentPacket, SentUtterance};
pub use far::{Echo, Far, Spoken};
pub use mind::{Answer, CutWord, Delays, Mind};
pub use voice::Voice;
