//! Speech by a WebSocket: the text goes out, PCM comes back while it is made. Dropping the future closes the
//! connection.

use serde_json::json;

use super::flow::{Flow, Measured};
use super::incoming::Incoming;
use super::websocket::{Connection, ERROR, Heard};
use super::{Remote, SYNTHESIZER};
use crate::Failure;

/// The rate that is asked for.
pub(super) const RATE_HZ: u32 = 24_000;

/// Sends a text over a new connection.
async fn ask(remote: &Remote, text: &str, voice: &str, language: &str, speed: f32) -> Result<Connection, Failure> {
    let mut connection = Connection::open(remote, &SYNTHESIZER).await?;
    let order = json!({
        "type": "speak",
        "text": text,
        "voice": voice,
        "language": language,
        "speed": speed,
        "encoding": "pcm_s16le",
        "sample_rate": RATE_HZ,
        "model": remote.model,
    });
    connection.tell(&order).await?;
    Ok(connection)
}

/// True if the first answer to a text is an error: with this voice the server does not say it.
pub(super) async fn refuses(remote: &Remote, text: &str, voice: &str, language: &str) -> Result<bool, Failure> {
    let mut connection = ask(remote, text, voice, language, 1.0).await?;
    let first = connection.any_in_time().await?;
    connection.close().await;
    Ok(matches!(first, Heard::Message(kind, _) if kind == ERROR))
}

/// Says the text and passes on what comes.
pub(super) async fn speak(
    remote: &Remote,
    text: &str,
    voice: &str,
    language: &str,
    speed: f32,
    flow: Flow,
) -> Result<Option<Measured>, Failure> {
    let mut connection = ask(remote, text, voice, language, speed).await?;
    let mut incoming = Incoming::new(flow, RATE_HZ, "");
    loop {
        match connection.next_in_time().await? {
            Heard::Audio(bytes) => incoming.take(&bytes).await?,
            Heard::Message(kind, _) if kind == "done" => break,
            Heard::Message(..) => {}
        }
    }
    let measured = incoming.finish().await?;
    connection.close().await;
    Ok(measured)
}
