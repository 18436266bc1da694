//! The one integration binary.

mod api;
mod calls;
mod cli;
mod databases;
mod json;
mod peers;
mod program;
mod rooms;
mod settings;
mod sim;
mod store;
mod tidy;
