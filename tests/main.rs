//! The one integration binary.

mod peers;
mod tidy;
