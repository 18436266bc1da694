//! Speech by `POST {base}/audio/speech` with `response_format` `pcm`: 24 kHz, sent while it is made. Dropping the
//! future closes the connection.

use serde_json::json;

use super::flow::{Flow, Measured};
use super::incoming::Incoming;
use super::{Remote, SYNTHESIZER};
use crate::Failure;

/// The rate of the protocol's `pcm`.
pub(super) const RATE_HZ: u32 = 24_000;

/// Posts the text and returns the beginning of the answer, whatever its status.
pub(super) async fn ask(
    remote: &Remote,
    client: &reqwest::Client,
    text: &str,
    voice: &str,
    speed: f32,
) -> Result<reqwest::Response, Failure> {
    let body = json!({
        "model": remote.model,
        "input": text,
        "voice": voice,
        "response_format": "pcm",
        "speed": speed.clamp(0.25, 4.0),
    });
    let sent = remote.post(client, "/audio/speech").json(&body).send().await;
    sent.map_err(|cause| SYNTHESIZER.of_http(&cause))
}

/// True if the server refuses a text for the sake of its voice. Other refusals, of the key or of too many requests, say
/// nothing about the voice.
pub(super) async fn refuses(
    remote: &Remote,
    client: &reqwest::Client,
    text: &str,
    voice: &str,
) -> Result<bool, Failure> {
    let status = ask(remote, client, text, voice, 1.0).await?.status();
    match status.as_u16() {
        200..=299 => Ok(false),
        400 | 404 | 422 => Ok(true),
        _ => Err(SYNTHESIZER.refusal(status)),
    }
}

/// Posts the text and passes on what comes.
pub(super) async fn speak(
    remote: &Remote,
    client: &reqwest::Client,
    text: &str,
    voice: &str,
    speed: f32,
    flow: Flow,
) -> Result<Option<Measured>, Failure> {
    let mut response = ask(remote, client, text, voice, speed).await?;
    if !response.status().is_success() {
        return Err(SYNTHESIZER.refusal(response.status()));
    }
    let kind = response.headers().get(reqwest::header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("");
    let mut incoming = Incoming::new(flow, RATE_HZ, kind);
    while let Some(bytes) = response.chunk().await.map_err(|cause| SYNTHESIZER.of_http(&cause))? {
        incoming.take(&bytes).await?;
    }
    incoming.finish().await
}
