//! WebRTC: peer connections between two of ours and with other people's (aiortc behind the small WebRTC transport of pipelines,
//! Chromium), calls to pipelines, and other sides that mean harm. Everything on loopback.

mod access;
mod answers;
mod browser;
mod calls;
mod desk;
mod house;
mod pairs;
mod phone;
mod pipelines;
mod relay;
