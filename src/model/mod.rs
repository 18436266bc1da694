//! placeholder
pub mod issue;
pub mod json;
pub mod patch;
pub mod scalar;
pub mod schema;
pub mod validate;
