//! Sans-IO SIP: messages, transactions, dialogs, user agent and SDP, for caller and answerer.
//!
//! An [`Endpoint`] is told the time and what arrived, and returns messages to send and events of its calls:
//!
//! ```text
//! receive(now, from, message) | tick(now) | invite(..) | answer(..) | hangup(..)       then poll() until None
//! ```
//!
//! It opens no socket, reads no clock, resolves no name, spawns nothing and draws no ambient randomness: the same seed
//! and the same inputs give the same bytes. It knows nothing of media beyond SDP.
//!
//! From the bottom up: [`parse`], [`header`] and [`message`] (RFC 3261 7 and 25), [`uri`] (19), `transaction` (17, RFC
//! 6026), `dialog` (12), [`hop`] (transports and connections), `call` (state and events of a call), [`endpoint`] (which
//! request goes where), [`useragent`] (the rules of a call: 8, 9, 13, 15), [`messaging`] (texts outside of calls),
//! [`registration`] (lines to providers).
//! Beside them: [`auth`] (RFC 7616, 8760) and [`sdp`] (RFC 8866, 3264). Bytes from the network never panic and never
//! grow anything without a limit.
//!
//! A call in virtual time, answered and ended:
//!
//! ```
//! use ringer_sip::sdp::negotiate;
//! use ringer_sip::testing::{Pair, Party, offer};
//! use ringer_sip::{CallEvent, EndKind};
//!
//! let mut pair = Pair::new(1, |bob, now, call, event| {
//!     if let CallEvent::Incoming { sdp: Some(sdp), .. } = event {
//!         let (answer, _) = negotiate(sdp, &offer(2)).expect("both sides have PCMU");
//!         bob.answer(now, call, answer.to_string());
//!     }
//! });
//! let call = pair.call();
//! pair.run(100);
//! let is_answer = |event: &&CallEvent| matches!(event, CallEvent::Answered { media, .. } if media.codec == "PCMU");
//! assert!(pair.of(Party::Alice).iter().any(is_answer));
//!
//! pair.alice.hangup(pair.now, call, 16, "Done");
//! pair.run(100);
//! assert!(matches!(pair.of(Party::Bob).last(), Some(CallEvent::Ended(end)) if end.kind == EndKind::RemoteBye));
//! ```

#![deny(missing_docs)]

pub mod auth;
mod call;
mod capabilities;
mod config;
mod dialog;
pub mod endpoint;
pub mod error;
pub mod framing;
pub mod header;
pub mod hop;
mod ids;
pub mod message;
pub mod messaging;
mod method;
pub mod parse;
pub mod registration;
pub mod sdp;
pub mod testing;
mod text;
mod time;
mod transaction;
pub mod uri;
pub mod useragent;

pub use call::{CallEnd, CallEvent, EndKind, Notice};
pub use config::EndpointConfig;
pub use dialog::Reach;
pub use endpoint::{Endpoint, Output};
pub use error::ParseError;
pub use hop::{ConnectionId, Hop, Transport};
pub use ids::CallKey;
pub use message::{Message, Method, Request, Response};
pub use time::Time;
pub use uri::Uri;
pub use useragent::Invite;

#[cfg(test)]
mod tests;
