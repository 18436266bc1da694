//! The one integration binary.

mod api;
mod calls;
mod databases;
mod json;
mod peers;
mod program;
mod settings;
mod sim;
mod store;
mod tidy;
