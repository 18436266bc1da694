//! RTP as values: packets, the jitter buffer, concealment, telephone events and reports. No socket and no clock: bytes
//! and times are passed in.

pub mod packet;
pub mod packetize;

pub mod source;

pub mod timing;

pub mod payloads;

pub mod probation;

pub mod jitter;

pub mod conceal;

pub mod slew;

pub mod playout;

pub mod session;

pub mod events;

pub mod unheard;

pub mod rtcp;

pub mod srtp;
