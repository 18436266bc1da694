//! Calls to other people's SIP programs, on real sockets.

mod desk;
mod peers;
mod runs;
mod stage;
