//! The one integration binary.

mod api;
mod calls;
mod peers;
mod sim;
mod store;
mod tidy;
