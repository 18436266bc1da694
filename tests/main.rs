//! The one integration binary.

mod api;
mod store;
