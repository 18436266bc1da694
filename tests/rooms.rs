//! WebRTC: peer connections between two of ours and with other people's (aiortc behind the small WebRTC transport of
//! pipelines, Chromium), calls to pipelines and rooms, and other sides that mean harm. Everything on loopback.

mod access;
mod alone;
mod answers;
mod barge_in;
mod browser;
mod calls;
pub(crate) mod conversations;
mod desk;
mod first_words;
mod foreign;
mod guests;
mod house;
pub(crate) mod official;
mod pairs;
mod phone;
pub(crate) mod pipelines;
mod platforms;
mod relay;
mod returns;
mod server;
mod suites;
mod turn;
mod words;
