//! The one integration binary.

<<<<<<< HEAD
mod api;
mod peers;
mod tidy;
=======
mod store;
>>>>>>> store
