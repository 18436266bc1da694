//! Ringer: live simulated phone calls to voice agents. The map of this package is ARCHITECTURE.md.

pub use ringer_base::{clock, config, error, tasks};
pub use ringer_syntax as syntax;

pub use ringer_bus as bus;

pub use ringer_model as model;

pub use ringer_store as store;
pub use ringer_store::{events, queue};

pub use ringer_provider as provider;

pub use ringer_transport as transport;

pub use ringer_human as human;
pub use ringer_judge as judge;

pub use ringer_engine as engine;

pub use ringer_api as api;
pub use ringer_service as service;
pub use ringer_service::jobs;

pub mod agent;

pub mod suite;

pub mod cli;
