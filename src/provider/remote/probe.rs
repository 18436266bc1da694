//! Checks that a configured server is reachable and accepts the key, without making or recognising speech.

use super::synthesizer::Form;
use super::websocket::Connection;
use super::{Codes, RECOGNIZER, Remote, SYNTHESIZER};
use crate::Failure;

/// Purpose of a server that is probed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Converts speech to text.
    Recognizer,
    /// Converts text to speech.
    Synthesizer,
}

/// Answer of a server that was reached.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Probed {
    /// The server took the key, or wants none.
    Accepted,
    /// The server answered, but lists no models, so that the key was not tested.
    Reached,
}

/// Asks a server by HTTP for its models (`GET {base}/models`), opens and closes a connection to one by WebSocket.
///
/// # Errors
/// It cannot be reached in time, refuses the key, or is in trouble itself. The message holds neither address nor key.
pub async fn probe(part: Part, form: Form, remote: &Remote) -> Result<Probed, Failure> {
    let codes = match part {
        Part::Recognizer => &RECOGNIZER,
        Part::Synthesizer => &SYNTHESIZER,
    };
    match form {
        Form::Http => probe_http(codes, remote).await,
        Form::WebSocket => {
            Connection::open(remote, codes).await?.close().await;
            Ok(Probed::Accepted)
        }
    }
}

async fn probe_http(codes: &'static Codes, remote: &Remote) -> Result<Probed, Failure> {
    let asked = remote.authorize(remote.client(codes)?.get(format!("{}/models", remote.base_url)));
    let status = asked.send().await.map_err(|cause| codes.of_http(&cause))?.status();
    match status.as_u16() {
        200..=299 => Ok(Probed::Accepted),
        401 | 403 => Err(codes.refusal(status)),
        300..=499 => Ok(Probed::Reached),
        _ => Err(codes.general_failure(&format!("answered {status}"))),
    }
}
