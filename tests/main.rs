//! The one integration binary.

mod api;
