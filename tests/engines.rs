//! Engines that share one PostgreSQL: they know each other, and nothing is lost when one ends.

mod claims;
mod drained;
mod killed;
mod lines;
mod moved;
mod outages;
mod poolers;
mod program;
mod proxy;
mod rows;
mod throughput;
