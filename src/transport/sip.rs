//! SIP as a channel: addresses, offers and answers, the port of a call, the sockets that all calls share.

pub mod address;
mod connection;
pub mod dialog;
pub mod driver;
mod line;
pub mod media_names;
pub mod names;
pub mod order;
pub mod port;
pub mod registration;
pub mod sdp;
pub mod streams;
pub mod tls;
pub mod transfer;
mod unknown;
