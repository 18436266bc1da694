//! An engine on embedded defaults, for the commands that place or answer calls themselves.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

use ringer_media::codec::Codec;
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::config::{most_calls, raise_file_limit};
use crate::engine::{Engine, EngineConfig, Speech};
use crate::provider::pocketsphinx::{MODEL, Pocketsphinx};
use crate::provider::speech::EmbeddedSpeech;
use crate::transport::io::IncomingCall;

/// The synthesizer that is installed.
///
/// # Errors
/// Names what is missing.
pub fn synthesizer() -> Result<EmbeddedSpeech, String> {
    EmbeddedSpeech::new().map_err(|failure| failure.message)
}

/// The synthesizer and recognizer that are installed.
///
/// # Errors
/// Names what is missing.
pub fn speech() -> Result<Speech, String> {
    Ok(Speech { synthesizer: Arc::new(synthesizer()?), recognizer: Arc::new(Pocketsphinx::new(0, Path::new(MODEL))) })
}

/// The codecs of these names; what is none is left out.
pub fn codecs(names: &[String]) -> Vec<Codec> {
    names.iter().filter_map(|name| Codec::from_name(name)).collect()
}

/// An engine of its own at `sip`.
///
/// # Errors
/// Names what cannot be had: a port, a thread, a program.
pub async fn engine(
    sip: SocketAddr,
    rtp_ports: RangeInclusive<u16>,
    advertise: Option<IpAddr>,
) -> Result<(Engine, mpsc::Receiver<IncomingCall>), String> {
    let max_calls = most_calls(raise_file_limit(), &rtp_ports);
    let config = EngineConfig { sip, rtp_ports, advertise, shards: 0, max_calls };
    Engine::start(config, speech()?, Clock::Real).await.map_err(|error| format!("the SIP socket {sip}: {error}"))
}
