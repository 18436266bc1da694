//! Speech by a WebSocket: the text goes out, PCM comes back while it is made. Dropping the future closes the connection.

use serde_json::json;

use super::flow::{Flow, Measured};
use super::websocket::{Connection, Heard};
use super::{Remote, SYNTHESIZER, Samples};
use crate::provider::Failure;

/// The rate that is asked for.
pub(super) const RATE_HZ: u32 = 24_000;

/// Says the text and passes on what comes.
pub(super) async fn speak(
    remote: &Remote,
    text: &str,
    voice: &str,
    language: &str,
    speed: f32,
    mut flow: Flow,
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
    let mut samples = Samples::default();
    loop {
        match connection.next_in_time().await? {
            Heard::Audio(bytes) => flow.take(&samples.of(&bytes)).await?,
            Heard::Told(kind, _) if kind == "done" => break,
            Heard::Told(..) => {}
        }
    }
    let measured = flow.finish().await?;
    connection.close().await;
    Ok(measured)
}
