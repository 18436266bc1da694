//! Calls to other people's SIP programs, on real sockets.

mod runs;
mod peers;
mod stage;
