//! The HTTP interface, in process: an in-memory client against the whole router over a temporary database. Cases are data:
//! `fixtures/api/*.http`.

mod alerts;
mod bundle;
mod call_logs;
mod case;
mod chat;
mod corpus;
mod document;
mod drafting;
mod generate;
mod generated;
mod idempotency;
mod issues;
mod metrics;
mod monitors;
mod noises;
mod operations;
mod phone_numbers;
mod rates;
pub mod receiver;
mod results;
mod round_trip;
mod scenarios;
mod schedules;
mod sms;
mod strangers;
mod talk;
mod texts;
mod versions;
mod webhooks;
mod world;
