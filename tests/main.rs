//! The one integration binary.

mod api;
mod calls;
mod peers;
mod store;
mod tidy;
