//! Speech by a WebSocket: the text goes out, PCM comes back while it is made. Dropping the future closes the
//! connection.

use serde_json::json;

use super::flow::{Flow, Measured};
use super::incoming::Incoming;
use super::websocket::{Connection, Heard};
use super::{Remote, SYNTHESIZER};
use crate::Failure;

/// The rate that is asked for.
pub(super) const RATE_HZ: u32 = 24_000;

/// Says the text and passes on what comes.
pub(super) async fn speak(
    remote: &Remote,
    text: &str,
    voice: &str,
    language: &str,
    speed: f32,
    flow: Flow,
) -> Result<Option<Measured>, Failure> {
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
    let mut incoming = Incoming::new(flow, RATE_HZ, "");
    loop {
        match connection.next_in_time().await? {
            Heard::Audio(bytes) => incoming.take(&bytes).await?,
            Heard::Told(kind, _) if kind == "done" => break,
            Heard::Told(..) => {}
        }
    }
    let measured = incoming.finish().await?;
    connection.close().await;
    Ok(measured)
}
