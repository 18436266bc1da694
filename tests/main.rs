//! The one integration binary.

mod api;
mod assistants;
mod bus;
mod calls;
mod ci;
mod cli;
mod databases;
mod dialects;
mod engines;
mod files;
mod json;
mod mail;
mod page;
mod peers;
mod program;
mod rooms;
mod settings;
mod sim;
mod store;
mod suites;
mod tidy;
mod websocket;
