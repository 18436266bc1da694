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
use crate::engine::{Engine, EngineConfig, START_WITHIN, Speech};
use crate::provider::fallback::{RecognizerPair, SynthesizerPair};
use crate::provider::kokoro::{self, Given, KokoroSpeech};
use crate::provider::opus;
use crate::provider::piper::PiperSpeech;
use crate::provider::pocketsphinx::{self, MODEL, Pocketsphinx};
use crate::provider::recorded::RecordedSpeech;
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
pub(crate) fn heard_at_once(config: &Config) -> usize {
    let carried = most_calls(raise_file_limit(), &config.sip.rtp_ports);
    match config.recognizer.kind.is_remote() {
        // The server's own limits are not known.
        true => carried,
        // A neural model that is fast enough for calls hears no fewer.
        false => carried.min(pocketsphinx::heard_at_once()),
    }
}

/// The programs that speak. Each is in a package of its own name.
pub(crate) const SPEAKERS: [&str; 2] = ["flite", "espeak-ng"];

/// Returns the path of an installed program; `None` if it is not in the search path.
pub(crate) fn program(name: &str) -> Option<PathBuf> {
    config::search_path().iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}

/// Checks that these programs are installed.
///
/// # Errors
/// Names those that are not, and the command that installs them.
pub(crate) fn check_installed(programs: &[&str]) -> Result<(), String> {
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
pub(crate) fn voice(wanted: &VoiceWanted) -> Result<Voice, String> {
    voice_of(&*speaking(&own_settings())?, wanted)
}

/// Returns the voice of a synthesizer that is nearest to the wanted one.
///
/// # Errors
/// Names the program that is missing, and the command that installs it.
pub(crate) fn voice_of(synthesizer: &dyn Synthesizer, wanted: &VoiceWanted) -> Result<Voice, String> {
    let voice = synthesizer.voice(wanted).map_err(|failure| failure.message)?;
    // Voices are named PROGRAM:NAME. A voice of kept sentences needs the one that says all other words.
    let speaks = voice.fallback.as_deref().filter(|_| voice.id.starts_with(kokoro::PREFIX)).unwrap_or(&voice);
    let program = speaks.id.split(':').next().unwrap_or_default();
    if SPEAKERS.contains(&program) {
        check_installed(&[program])?;
    }
    Ok(voice)
}

/// Returns the synthesizer that is installed.
///
/// # Errors
/// Names what is missing.
pub(crate) fn synthesizer() -> Result<EmbeddedSpeech, String> {
    EmbeddedSpeech::new().map_err(|failure| failure.message)
}

/// Returns the synthesizer in this process: the kept sentences, neural voices where they are there and wanted, and the
/// installed programs. Who speaks a call is decided by the settings and the models alone.
fn speaking(config: &Config) -> Result<Arc<dyn Synthesizer>, String> {
    let behind = quick(config)?;
    let behind = with_named_kokoro(config, behind);
    let of_folder = |given: Given, folder: &Path| {
        let made = KokoroSpeech::new(folder, given, kept_speech(config), behind.clone());
        made.map_err(|failure| failure.message)
    };
    let voices: Arc<dyn Synthesizer> = match (config.synthesizer.kind, kokoro_folder(config)) {
        (config::Place::Kokoro, None) => {
            let there = config.models();
            return Err(format!("no Kokoro voices in {}: `ringer models add` brings them", models::join_names(&there)));
        }
        (config::Place::Kokoro, Some(folder)) => Arc::new(of_folder(Given::Always, &folder)?),
        (config::Place::Auto | config::Place::Piper, Some(folder)) => match of_folder(Given::ByName, &folder) {
            Ok(voices) => Arc::new(voices),
            Err(why) => {
                tracing::warn!("{why}; other voices are used instead");
                behind
            }
        },
        _ => behind,
    };
    Ok(Arc::new(RecordedSpeech::new(voices)))
}

/// Returns a synthesizer with the Kokoro voices of all further folders before it, for callers who name one. A folder
/// that cannot be used is told, and passed over.
fn with_named_kokoro(config: &Config, behind: Arc<dyn Synthesizer>) -> Arc<dyn Synthesizer> {
    if config.synthesizer.kind == config::Place::Embedded {
        return behind;
    }
    let own = kokoro_folder(config);
    let others = folders_of(config, models::Kind::Kokoro).into_iter().filter(|folder| Some(folder) != own.as_ref());
    others.rev().fold(behind, |behind, folder| {
        match KokoroSpeech::new(&folder, Given::ByName, kept_speech(config), behind.clone()) {
            Ok(voices) => Arc::new(voices.beside_others()) as Arc<dyn Synthesizer>,
            Err(failure) => {
                tracing::warn!("{}; nobody is given these voices", failure.message);
                behind
            }
        }
    })
}

/// Returns all folders of models of a kind.
fn folders_of(config: &Config, kind: models::Kind) -> Vec<PathBuf> {
    let found = models::list(&config.models()).into_iter();
    found.filter(|model| model.kind == kind).map(|model| model.folder).collect()
}

/// Returns the synthesizer of voices that take little time: Piper voices and the installed programs.
fn quick(config: &Config) -> Result<Arc<dyn Synthesizer>, String> {
    let (mouth, embedded) = (&config.synthesizer, Arc::new(synthesizer()?));
    let folders = voice_folders(config);
    let mut others = folders_of(config, models::Kind::Piper);
    others.retain(|folder| !folders.contains(folder));
    let make = |others: &[PathBuf]| {
        PiperSpeech::with_others(&folders, others, mouth.voices.clone(), kept_speech(config), embedded.clone())
            .map_err(|failure| failure.message)
    };
    match mouth.kind {
        // Without a voice for everybody the engine does not begin, whatever others have a name.
        config::Place::Piper if folders.is_empty() => Ok(Arc::new(make(&[])?)),
        config::Place::Piper => Ok(Arc::new(make(&others)?)),
        config::Place::Auto | config::Place::Kokoro if !folders.is_empty() || !others.is_empty() => match make(&others)
        {
            Ok(voices) => Ok(Arc::new(voices)),
            Err(why) => {
                tracing::warn!("{why}; the installed programs are used instead");
                Ok(embedded)
            }
        },
        _ => Ok(embedded),
    }
}

/// Folder of speech that was made; `None` where there is no folder of data, which is not made for this alone.
fn kept_speech(config: &Config) -> Option<PathBuf> {
    config.data.is_dir().then(|| config.data.join("cache").join("speech"))
}

/// Folder of Kokoro voices: the one that `synthesizer.model` names, else the first one.
fn kokoro_folder(config: &Config) -> Option<PathBuf> {
    let mut found = models::list(&config.models()).into_iter().filter(|model| model.kind == models::Kind::Kokoro);
    match config.synthesizer.model.as_deref().filter(|_| !config.synthesizer.kind.is_remote()) {
        Some(wanted) if Path::new(wanted).is_absolute() => {
            Some(PathBuf::from(wanted)).filter(|folder| models::kind(folder) == Some(models::Kind::Kokoro))
        }
        Some(wanted) => found.find(|model| model.name == wanted).map(|model| model.folder),
        None => models::of_kind(&config.models(), models::Kind::Kokoro).into_iter().next().map(|model| model.folder),
    }
}

/// Folders of Piper voices: the one that `synthesizer.model` names, else all.
fn voice_folders(config: &Config) -> Vec<PathBuf> {
    let all = config.models();
    let of_name = |wanted: &str| {
        let found = models::list(&all).into_iter();
        found
            .filter(|model| model.kind == models::Kind::Piper && model.name == wanted)
            .map(|model| model.folder)
            .collect()
    };
    let of_kind = || models::of_kind(&all, models::Kind::Piper).into_iter().map(|model| model.folder).collect();
    match config.synthesizer.model.as_deref().filter(|_| !config.synthesizer.kind.is_remote()) {
        // The model of Kokoro voices is none of these.
        Some(_) if config.synthesizer.kind == config::Place::Kokoro => of_kind(),
        Some(wanted) if Path::new(wanted).is_absolute() => vec![PathBuf::from(wanted)],
        Some(wanted) => of_name(wanted),
        None => of_kind(),
    }
}

/// Returns the settings of calls that somebody listens to, one at a time: the best voices that are there speak, unless
/// the settings say otherwise.
pub(super) fn for_listeners(mut config: Config) -> Config {
    if config.synthesizer.kind == config::Place::Auto && kokoro_folder(&config).is_some() {
        config.synthesizer.kind = config::Place::Kokoro;
    }
    config
}

/// Returns the synthesizer and recognizer that are here.
///
/// # Errors
/// Names what is missing.
pub(crate) fn speech() -> Result<Speech, String> {
    let config = own_settings();
    Ok(Speech { synthesizer: speaking(&config)?, recognizer: near(&config)? })
}

/// Returns the settings of a command with `--config`: those of the file, or [`own_settings`] without one.
///
/// # Errors
/// The file cannot be read, or its settings cannot be used.
pub(crate) fn settings_of(file: Option<&Path>) -> Result<Config, String> {
    match file {
        Some(file) => Config::load(Some(file), &[]).map_err(|error| error.to_string()),
        None => Ok(own_settings()),
    }
}

/// Returns the default settings with the folders for models and data of the own settings, where these can be read.
pub(crate) fn own_settings() -> Config {
    let read = Config::load(None, &[]).unwrap_or_default();
    Config { speech: read.speech, data: read.data, media: read.media, ..Config::default() }
}

/// Returns the folders of models of commands that need no settings, whatever folder their programs run in.
pub(crate) fn own_models() -> String {
    models_of(&own_settings())
}

/// Returns the absolute paths of the settings' folders of models, as `speech.models` takes them.
pub(crate) fn models_of(config: &Config) -> String {
    let absolute = |place: PathBuf| std::path::absolute(&place).unwrap_or(place).to_string_lossy().into_owned();
    config.models().into_iter().map(absolute).collect::<Vec<_>>().join(":")
}

/// Describes the neural models in use, one line for recognition and one for voices. Empty where there are no models.
pub(crate) fn neural(config: &Config) -> Vec<String> {
    let hears = matches!(config.recognizer.kind, config::Place::Auto | config::Place::Whisper);
    let speaks = !config.synthesizer.kind.is_remote() && config.synthesizer.kind != config::Place::Embedded;
    let model = models::whisper(&config.models(), config.recognizer.model.as_deref()).ok().filter(|_| hears);
    let name = |folder: &Path| folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let ears = model.map(|folder| format!("speech is recognized by the Whisper model {}", name(&folder)));
    let voices: Vec<String> = voice_folders(config).iter().flat_map(|folder| models::voices(folder)).collect();
    let kokoro = kokoro_folder(config).filter(|_| speaks && config.synthesizer.kind != config::Place::Piper);
    let always = config.synthesizer.kind == config::Place::Kokoro;
    let kokoro = kokoro.map(|folder| {
        let who = if always { "where a voice fits" } else { "for those who name a voice of it" };
        format!("speech is made by the Kokoro voices {} {who}", name(&folder))
    });
    let mouth = (speaks && !voices.is_empty())
        .then(|| format!("speech is made by {} where a voice fits, else by flite and espeak-ng", voices.join(", ")));
    ears.into_iter().chain(kokoro).chain(mouth).collect()
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
pub(crate) fn speech_of(config: &Config) -> Result<Speech, String> {
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
            Some(voices) if mouth.fallback => {
                let pair = SynthesizerPair::new(voices, quick(&beside(config))?);
                Arc::new(RecordedSpeech::new(Arc::new(pair)))
            }
            Some(voices) => Arc::new(RecordedSpeech::new(voices)),
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
pub(crate) fn roots(config: &Config) -> Result<Roots, String> {
    let read = |path: &PathBuf| Roots::from_file(path).map_err(|why| format!("tls.root_file: {why}"));
    config.tls.root_file.as_ref().map_or_else(|| Ok(Roots::default()), read)
}

/// Returns the servers of the settings: what each is for, how it is asked, and where it is.
pub(crate) fn servers(config: &Config, roots: &Roots) -> Vec<(Part, Form, Remote)> {
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
pub(crate) fn codecs(names: &[String]) -> Vec<Codec> {
    names.iter().filter_map(|name| Codec::from_name(name)).collect()
}

/// Returns an engine of its own at `sip`.
///
/// # Errors
/// Names what cannot be had: a port, a thread, a program.
pub(crate) async fn engine(
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
pub(crate) async fn engine_with(
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
        start_within: START_WITHIN,
        opus: opus::choose(&own_settings().media),
        names: Resolver::new(&[]),
    };
    Engine::start(config, speech, Clock::Real).await.map_err(|error| format!("the SIP socket {sip}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::{SPEAKERS, check_installed, for_listeners, heard_at_once, neural, program};
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

    /// The speaker follows from settings and models, and from nothing else.
    #[test]
    fn calls_with_a_listener_take_kokoro_voices_unless_the_settings_say_otherwise() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let voices = folder.path().join("k").join("voices");
        std::fs::create_dir_all(&voices).expect("writable");
        let of = |kind: Place| {
            let mut config = Config::default();
            config.speech.models = Some(vec![folder.path().to_owned()]);
            config.synthesizer.kind = kind;
            let told = neural(&config).concat();
            (for_listeners(config).synthesizer.kind, told)
        };
        assert_eq!(of(Place::Auto), (Place::Auto, String::new()), "there is no voice");
        std::fs::write(voices.join("af_heart.bin"), "").expect("writable");
        std::fs::write(folder.path().join("k").join("model.onnx"), "").expect("writable");
        for (kind, expect, told) in [
            (Place::Auto, Place::Kokoro, "the Kokoro voices k for those who name a voice of it"),
            (Place::Kokoro, Place::Kokoro, "the Kokoro voices k where a voice fits"),
            (Place::Embedded, Place::Embedded, ""),
            (Place::Piper, Place::Piper, ""),
            (Place::Http, Place::Http, ""),
        ] {
            let found = of(kind);
            assert_eq!(found.0, expect, "{kind:?}");
            assert!(found.1.ends_with(told) && found.1.is_empty() == told.is_empty(), "{kind:?}: {}", found.1);
        }
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
