//! Audio from words.
