//! SIP as a channel: addresses, offers and answers, the port of a call, the socket that all calls share.

pub mod address;
pub mod names;
pub mod port;
pub mod sdp;
pub mod udp;
