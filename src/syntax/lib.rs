//! Texts from outside, read without a loss: JSON, decimal numbers, telephone numbers, and placeholders in what users
//! write. Pure functions of texts: no IO, no clock.

pub mod decimal;
pub mod json;
pub mod phone;
pub mod placeholder;
