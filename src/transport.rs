//! Channels to the other side: protocol state without sockets ([`port`], [`sip`]), and the files that move bytes
//! ([`sip::driver`], [`sockets`], [`path`]).

pub mod capture;
pub mod dtls;
pub mod fault;
mod keys;
pub mod news;
pub mod path;
pub mod pipeline;
pub mod port;
pub mod room;
pub mod sip;
pub mod sockets;
mod strangers;
pub mod webrtc;
pub mod websocket;
