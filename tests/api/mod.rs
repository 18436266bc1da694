//! The HTTP interface, in process: an in-memory client against the whole router over a temporary database. Cases are data:
//! `fixtures/api/*.http`.

mod case;
mod corpus;
mod document;
mod drafting;
mod generate;
mod idempotency;
mod noises;
mod rates;
mod results;
mod round_trip;
mod scenarios;
mod world;
