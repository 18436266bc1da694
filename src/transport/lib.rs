//! Channels to the other side: protocol state without sockets (the `port` of each), and the files that move bytes
//! ([`sip::driver`], [`sockets`], [`path`]).

pub mod capture;
mod digits;
pub mod dtls;
pub mod fault;
pub mod incoming;
pub mod mail;
pub mod news;
pub mod path;
pub mod peer;
pub mod pipeline;
pub mod room;
pub mod sip;
pub mod sockets;
mod strangers;
pub mod webrtc;
pub mod websocket;
