//! An engine on embedded defaults, for the commands that place or answer calls themselves.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ringer_media::codec::Codec;
use tokio::sync::mpsc;

use crate::clock::Clock;
use crate::config::{
    self, Config, Encryption, OfferedIn, Secret, SipListen, SrtpKeys, SymmetricRtp, most_calls, raise_file_limit,
};
use crate::engine::{Engine, EngineConfig, Speech};
use crate::provider::fallback::{RecognizerPair, SynthesizerPair};
use crate::provider::piper::PiperSpeech;
use crate::provider::pocketsphinx::{self, MODEL, Pocketsphinx};
use crate::provider::remote::{Form, HttpRecognizer, Part, Remote, RemoteSynthesizer, RemoteVoices, WsRecognizer};
use crate::provider::speech::EmbeddedSpeech;
use crate::provider::tls::Roots;
use crate::provider::whisper::WhisperRecognizer;
use crate::provider::{Recognizer, Synthesizer, Voice, VoiceWanted, models};
use crate::transport::incoming::Incoming;
use crate::transport::sip::names::Resolver;
use crate::transport::sip::tls::TlsSettings;
use crate::transport::sip::transfer::Forwarding;

/// Returns the number of calls at once of which this machine hears every word, and that its files and ports carry.
pub fn heard_at_once(config: &Config) -> usize {
    let carried = most_calls(raise_file_limit(), &config.sip.rtp_ports);
    match config.recognizer.kind.is_remote() {
        // The server's own limits are not known.
        true => carried,
        // A neural model that is fast enough for calls hears no fewer.
        false => carried.min(pocketsphinx::heard_at_once()),
    }
}

/// The programs that speak. Each is in a package of its own name.
pub const SPEAKERS: [&str; 2] = ["flite", "espeak-ng"];

/// Returns the path of an installed program; `None` if it is not in the search path.
pub fn program(name: &str) -> Option<PathBuf> {
    config::search_path().iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Checks that these programs are installed.
///
/// # Errors
/// Names those that are not, and the command that installs them.
pub fn check_installed(programs: &[&str]) -> Result<(), String> {
    let missing: Vec<&str> = programs.iter().filter(|name| program(name).is_none()).copied().collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "nothing can be said without {}: install what is missing (as root): apt-get install {}",
            missing.join(" and "),
            missing.join(" ")
        )),
    }
}

/// Returns the voice of the synthesizer here that is nearest to the wanted one.
///
/// # Errors
/// Names the program that is missing, and the command that installs it.
pub fn voice(wanted: &VoiceWanted) -> Result<Voice, String> {
    voice_of(&*speaking(&own_settings())?, wanted)
}

/// Returns the voice of a synthesizer that is nearest to the wanted one.
///
/// # Errors
/// Names the program that is missing, and the command that installs it.
pub fn voice_of(synthesizer: &dyn Synthesizer, wanted: &VoiceWanted) -> Result<Voice, String> {
    let voice = synthesizer.voice(wanted).map_err(|failure| failure.message)?;
    // Voices are named PROGRAM:NAME.
    let program = voice.id.split(':').next().unwrap_or_default();
    if SPEAKERS.contains(&program) {
        check_installed(&[program])?;
    }
    Ok(voice)
}

/// Returns the synthesizer that is installed.
///
/// # Errors
/// Names what is missing.
pub fn synthesizer() -> Result<EmbeddedSpeech, String> {
    EmbeddedSpeech::new().map_err(|failure| failure.message)
}

/// Returns the synthesizer in this process: neural voices where they are there and wanted, with the installed programs
/// behind them.
fn speaking(config: &Config) -> Result<Arc<dyn Synthesizer>, String> {
    let (mouth, floor) = (&config.synthesizer, Arc::new(synthesizer()?));
    let folders = voice_folders(config);
    let make = || {
        let kept = config.data.join("cache").join("speech");
        // A folder of data that nobody made is not made for this alone.
        let kept = config.data.is_dir().then_some(kept);
        PiperSpeech::new(&folders, mouth.voices.clone(), kept, floor.clone()).map_err(|failure| failure.message)
    };
    match mouth.kind {
        config::Place::Piper => Ok(Arc::new(make()?)),
        config::Place::Auto if !folders.is_empty() => match make() {
            Ok(voices) => Ok(Arc::new(voices)),
            Err(why) => {
                tracing::warn!("{why}; the installed programs are used instead");
                Ok(floor)
            }
        },
        _ => Ok(floor),
    }
}

/// Folders of voices: the one that `synthesizer.model` names, else all.
fn voice_folders(config: &Config) -> Vec<PathBuf> {
    let found = models::list(&config.models()).into_iter().filter(|model| model.kind == models::Kind::Piper);
    match config.synthesizer.model.as_deref().filter(|_| !config.synthesizer.kind.is_remote()) {
        Some(wanted) if Path::new(wanted).is_absolute() => vec![PathBuf::from(wanted)],
        Some(wanted) => found.filter(|model| model.name == wanted).map(|model| model.folder).collect(),
        None => found.map(|model| model.folder).collect(),
    }
}

/// Returns the synthesizer and recognizer that are here.
///
/// # Errors
/// Names what is missing.
pub fn speech() -> Result<Speech, String> {
    let config = own_settings();
    Ok(Speech { synthesizer: speaking(&config)?, recognizer: near(&config)? })
}

/// Returns the settings of a command with `--config`: those of the file, or [`own_settings`] without one.
///
/// # Errors
/// The file cannot be read, or its settings cannot be used.
pub fn settings_of(file: Option<&Path>) -> Result<Config, String> {
    match file {
        Some(file) => Config::load(Some(file), &[]).map_err(|error| error.to_string()),
        None => Ok(own_settings()),
    }
}

/// Returns the default settings with the folders for models and data of the own settings, where these can be read.
pub fn own_settings() -> Config {
    let read = Config::load(None, &[]).unwrap_or_default();
    Config { speech: read.speech, data: read.data, ..Config::default() }
}

/// Returns the folder of models of commands that need no settings, whatever folder their programs run in.
pub fn own_models() -> String {
    models_of(&own_settings())
}

/// Returns the absolute path of the settings' folder of models.
pub fn models_of(config: &Config) -> String {
    let models = config.models();
    std::path::absolute(&models).unwrap_or(models).to_string_lossy().into_owned()
}

/// Describes the neural models in use, one line for recognition and one for voices. Empty where there are no models.
pub fn neural(config: &Config) -> Vec<String> {
    let hears = matches!(config.recognizer.kind, config::Place::Auto | config::Place::Whisper);
    let speaks = matches!(config.synthesizer.kind, config::Place::Auto | config::Place::Piper);
    let model = models::whisper(&config.models(), config.recognizer.model.as_deref()).ok().filter(|_| hears);
    let name = |folder: &Path| folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let ears = model.map(|folder| format!("speech is recognized by the Whisper model {}", name(&folder)));
    let voices: Vec<String> = voice_folders(config).iter().flat_map(|folder| models::voices(folder)).collect();
    let mouth = (speaks && !voices.is_empty())
        .then(|| format!("speech is made by {} where a voice fits, else by flite and espeak-ng", voices.join(", ")));
    ears.into_iter().chain(mouth).collect()
}

fn embedded_recognizer() -> Arc<dyn Recognizer> {
    Arc::new(Pocketsphinx::new(0, Path::new(MODEL)))
}

/// Returns the recognizer in this process. A model that is not asked for and cannot be used is told, and passed over.
fn near(config: &Config) -> Result<Arc<dyn Recognizer>, String> {
    let ears = &config.recognizer;
    let load = || {
        let folder = models::whisper(&config.models(), ears.model.as_deref())?;
        WhisperRecognizer::new(&folder, ears.threads).map_err(|failure| failure.message)
    };
    match ears.kind {
        config::Place::Whisper => Ok(Arc::new(load()?)),
        config::Place::Auto if models::whisper(&config.models(), ears.model.as_deref()).is_ok() => match load() {
            Ok(recognizer) => Ok(Arc::new(recognizer)),
            Err(why) => {
                tracing::warn!("{why}; the installed recognizer is used instead");
                Ok(embedded_recognizer())
            }
        },
        _ => Ok(embedded_recognizer()),
    }
}

/// Returns the synthesizer and recognizer of the settings, each with the installed one behind it where that is wanted.
///
/// # Errors
/// Names what is missing.
pub fn speech_of(config: &Config) -> Result<Speech, String> {
    let (ears, mouth, roots) = (&config.recognizer, &config.synthesizer, roots(config)?);
    let there = remote(&ears.base_url, &ears.api_key, &ears.model, &roots);
    let distant: Option<Arc<dyn Recognizer>> = match ears.kind {
        config::Place::Websocket => Some(Arc::new(WsRecognizer::new(there))),
        config::Place::Http => {
            let made = HttpRecognizer::new(there, ears.interim_ms, ears.word_times);
            Some(Arc::new(made.map_err(|failure| failure.message)?))
        }
        _ => None,
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
            None => near(config)?,
            Some(distant) if ears.fallback => Arc::new(RecognizerPair::new(distant, near(&beside(config))?)),
            Some(distant) => distant,
        },
        synthesizer: match voices {
            None => speaking(config)?,
            Some(voices) if mouth.fallback => Arc::new(SynthesizerPair::new(voices, speaking(&beside(config))?)),
            Some(voices) => voices,
        },
    })
}

/// Returns the settings of what stands in for servers: their models have other names.
fn beside(config: &Config) -> Config {
    let mut config = config.clone();
    (config.recognizer.kind, config.recognizer.model) = (config::Place::Auto, None);
    (config.synthesizer.kind, config.synthesizer.model) = (config::Place::Auto, None);
    config.synthesizer.voices.clear();
    config
}

/// Returns the authorities of the settings.
///
/// # Errors
/// Names the setting and what is wrong with its file.
pub fn roots(config: &Config) -> Result<Roots, String> {
    let read = |path: &PathBuf| Roots::from_file(path).map_err(|why| format!("tls.root_file: {why}"));
    config.tls.root_file.as_ref().map_or_else(|| Ok(Roots::default()), read)
}

/// Returns the servers of the settings: what each is for, how it is asked, and where it is.
pub fn servers(config: &Config, roots: &Roots) -> Vec<(Part, Form, Remote)> {
    let (ears, mouth) = (&config.recognizer, &config.synthesizer);
    let listens = remote(&ears.base_url, &ears.api_key, &ears.model, roots);
    let speaks = remote(&mouth.base_url, &mouth.api_key, &mouth.model, roots);
    let ears = form(ears.kind).map(|form| (Part::Recognizer, form, listens));
    let mouth = form(mouth.kind).map(|form| (Part::Synthesizer, form, speaks));
    ears.into_iter().chain(mouth).collect()
}

/// Returns the protocol of a server; `None`: there is none.
fn form(kind: config::Place) -> Option<Form> {
    match kind {
        config::Place::Http => Some(Form::Http),
        config::Place::Websocket => Some(Form::WebSocket),
        _ => None,
    }
}

fn remote(url: &Option<String>, key: &Option<Secret>, model: &Option<String>, roots: &Roots) -> Remote {
    let key = key.as_ref().map(|key| key.expose().to_owned());
    let remote = Remote::new(url.as_deref().unwrap_or_default(), key, model.as_deref().unwrap_or_default());
    Remote { roots: roots.clone(), ..remote }
}

/// Returns the codecs of these names; unknown names are left out.
pub fn codecs(names: &[String]) -> Vec<Codec> {
    names.iter().filter_map(|name| Codec::from_name(name)).collect()
}

/// Returns an engine of its own at `sip`.
///
/// # Errors
/// Names what cannot be had: a port, a thread, a program.
pub async fn engine(
    sip: SipListen,
    rtp_ports: RangeInclusive<u16>,
    tls: TlsSettings,
) -> Result<(Engine, mpsc::Receiver<Incoming>), String> {
    engine_with(speech()?, sip, rtp_ports, tls).await
}

/// Returns an engine of its own at `sip` that hears and speaks by `speech`.
///
/// # Errors
/// Names what cannot be had: a port, a thread.
pub async fn engine_with(
    speech: Speech,
    sip: SipListen,
    rtp_ports: RangeInclusive<u16>,
    tls: TlsSettings,
) -> Result<(Engine, mpsc::Receiver<Incoming>), String> {
    let max_calls = most_calls(raise_file_limit(), &rtp_ports);
    let config = EngineConfig {
        sip,
        tls,
        rtp_ports,
        advertise: None,
        shards: 0,
        max_calls,
        srtp: Encryption::Off,
        srtp_keys: SrtpKeys::default(),
        symmetric_rtp: SymmetricRtp::Off,
        offer: OfferedIn::Invite,
        session_interval_s: None,
        forwarding: Forwarding::default(),
        names: Resolver::new(&[]),
    };
    Engine::start(config, speech, Clock::Real).await.map_err(|error| format!("the SIP socket {sip}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::{SPEAKERS, check_installed, heard_at_once, program};
    use crate::config::{Config, Place};
    use crate::provider::pocketsphinx;

    #[test]
    fn what_is_missing_is_named_with_the_command_that_installs_it() {
        assert!(program("sh").is_some() && program("no-such-speaker").is_none());
        assert_eq!(check_installed(&["sh"]), Ok(()));
        let why = check_installed(&["sh", "no-such-speaker", "nor-this"]).expect_err("two are missing");
        assert!(why.contains("without no-such-speaker and nor-this:"), "{why}");
        assert!(why.ends_with("apt-get install no-such-speaker nor-this"), "{why}");
        assert_eq!(SPEAKERS, ["flite", "espeak-ng"]);
    }

    #[test]
    fn this_machine_hears_few_calls_at_once_and_a_server_is_not_known() {
        let heard = |kind: Place| {
            let mut config = Config::default();
            config.recognizer.kind = kind;
            heard_at_once(&config)
        };
        let here = pocketsphinx::heard_at_once();
        for kind in [Place::Auto, Place::Embedded, Place::Whisper] {
            assert_eq!(heard(kind), here, "{kind:?}");
        }
        for kind in [Place::Http, Place::Websocket] {
            assert!(heard(kind) > here, "{kind:?}");
        }
    }
}
