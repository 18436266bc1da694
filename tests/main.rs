//! The one integration binary.

mod api;
mod calls;
mod cli;
mod databases;
mod dialects;
mod json;
mod peers;
mod program;
mod settings;
mod sim;
mod store;
mod tidy;
