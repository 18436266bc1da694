//! How a call reaches the other side: protocol state without sockets beside the one file that has them.

pub mod capture;
pub mod io;
pub mod sip;
pub mod sockets;
