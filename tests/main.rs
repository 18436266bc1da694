//! The one integration binary.

mod api;
mod peers;
mod store;
mod tidy;
