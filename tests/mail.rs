//! Conversations by mail of the built program: with an agent in Python that takes mails by `aiosmtpd` and sends them by
//! `smtplib`, and with mail servers of others between.

mod alone;
mod bad_input;
pub(crate) mod house;
mod journeys;
mod mailboxes;
mod relays;
mod resumed;
mod retries;
mod secured;
mod suites;
mod threads;
