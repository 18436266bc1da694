//! The one integration binary.

mod api;
mod calls;
mod databases;
mod peers;
mod sim;
mod store;
mod tidy;
