//! Calls to other people's SIP programs, on real sockets.

mod desk;
mod runs;
mod peers;
mod stage;
