//! An engine on embedded defaults, for the commands that place or answer calls themselves.

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringer_media::codec::Codec;
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::config::{self, Config, Encryption, Secret, most_calls, raise_file_limit};
use crate::engine::{Engine, EngineConfig, Speech};
use crate::provider::Recognizer;
use crate::provider::fallback::{RecognizerPair, SynthesizerPair};
use crate::provider::pocketsphinx::{MODEL, Pocketsphinx};
use crate::provider::remote::{Form, HttpRecognizer, Part, Remote, RemoteSynthesizer, RemoteVoices, WsRecognizer};
use crate::provider::speech::EmbeddedSpeech;
use crate::provider::tls::Roots;
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
    Ok(Speech { synthesizer: Arc::new(synthesizer()?), recognizer: recognizer() })
}

fn recognizer() -> Arc<dyn Recognizer> {
    Arc::new(Pocketsphinx::new(0, Path::new(MODEL)))
}

/// The synthesizer and recognizer of the settings, each with the installed one behind it where that is wanted.
///
/// # Errors
/// Names what is missing.
pub fn configured(config: &Config) -> Result<Speech, String> {
    let (ears, mouth, roots) = (&config.recognizer, &config.synthesizer, roots(config)?);
    let there = remote(&ears.base_url, &ears.api_key, &ears.model, &roots);
    let distant: Option<Arc<dyn Recognizer>> = match ears.kind {
        config::Place::Embedded => None,
        config::Place::Websocket => Some(Arc::new(WsRecognizer::new(there))),
        config::Place::Http => {
            let made = HttpRecognizer::new(there, ears.interim_ms, ears.word_times);
            Some(Arc::new(made.map_err(|failure| failure.message)?))
        }
    };
    let voices = form(mouth.kind).map(|form| {
        let voices = RemoteVoices {
            default: mouth.voice.clone().unwrap_or_default(),
            named: mouth.voices.clone(),
            natural_wpm: mouth.natural_wpm as f32,
        };
        RemoteSynthesizer::new(form, remote(&mouth.base_url, &mouth.api_key, &mouth.model, &roots), voices)
    });
    let voices = voices.transpose().map_err(|failure| failure.message)?.map(Arc::new);
    Ok(Speech {
        recognizer: match distant {
            None => recognizer(),
            Some(distant) if ears.fallback => Arc::new(RecognizerPair::new(distant, recognizer())),
            Some(distant) => distant,
        },
        synthesizer: match voices {
            None => Arc::new(synthesizer()?),
            Some(voices) if mouth.fallback => Arc::new(SynthesizerPair::new(voices, Arc::new(synthesizer()?))),
            Some(voices) => voices,
        },
    })
}

/// The authorities of the settings.
///
/// # Errors
/// Names the setting and what is wrong with its file.
pub fn roots(config: &Config) -> Result<Roots, String> {
    let read = |path: &PathBuf| Roots::read(path).map_err(|why| format!("tls.root_file: {why}"));
    config.tls.root_file.as_ref().map_or_else(|| Ok(Roots::default()), read)
}

/// The servers of the settings: what each is for, how it is asked, and where it is.
pub fn servers(config: &Config, roots: &Roots) -> Vec<(Part, Form, Remote)> {
    let (ears, mouth) = (&config.recognizer, &config.synthesizer);
    let listens = remote(&ears.base_url, &ears.api_key, &ears.model, roots);
    let speaks = remote(&mouth.base_url, &mouth.api_key, &mouth.model, roots);
    let ears = form(ears.kind).map(|form| (Part::Recognizer, form, listens));
    let mouth = form(mouth.kind).map(|form| (Part::Synthesizer, form, speaks));
    ears.into_iter().chain(mouth).collect()
}

/// How a server is asked; `None`: there is none.
fn form(kind: config::Place) -> Option<Form> {
    match kind {
        config::Place::Embedded => None,
        config::Place::Http => Some(Form::Http),
        config::Place::Websocket => Some(Form::WebSocket),
    }
}

fn remote(url: &Option<String>, key: &Option<Secret>, model: &Option<String>, roots: &Roots) -> Remote {
    let key = key.as_ref().map(|key| key.expose().to_owned());
    let remote = Remote::new(url.as_deref().unwrap_or_default(), key, model.as_deref().unwrap_or_default());
    Remote { roots: roots.clone(), ..remote }
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
    let config = EngineConfig { sip, rtp_ports, advertise, shards: 0, max_calls, srtp: Encryption::Off };
    Engine::start(config, speech()?, Clock::Real).await.map_err(|error| format!("the SIP socket {sip}: {error}"))
}
