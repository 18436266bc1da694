//! Ringer: live simulated phone calls to voice agents. The map of this package is ARCHITECTURE.md.

pub mod clock;
pub mod config;
pub mod error;
pub mod json;
pub mod tasks;

pub mod model;

pub mod queue;
pub mod store;

pub mod events;

pub mod provider;

pub mod transport;

pub mod human;
pub mod judge;

pub mod engine;

pub mod service;

pub mod jobs;

pub mod api;

pub mod agent;

pub mod suite;

pub mod cli;
