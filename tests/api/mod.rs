//! The HTTP interface, in process: an in-memory client against the whole router over a temporary database. Cases are data:
//! `fixtures/api/*.http`.

mod bundle;
mod case;
mod corpus;
mod document;
mod drafting;
mod generate;
mod generated;
mod idempotency;
mod metrics;
mod noises;
mod operations;
mod rates;
mod results;
mod round_trip;
mod scenarios;
mod schedules;
mod versions;
mod webhooks;
mod world;
