//! The HTTP interface, in process: an in-memory client against the whole router over a temporary database. Cases are data:
//! `fixtures/api/*.http`.

mod alerts;
mod call_logs;
mod case;
mod corpus;
mod document;
mod idempotency;
mod issues;
mod monitors;
mod phone_numbers;
mod rates;
pub mod receiver;
mod results;
mod round_trip;
mod world;
