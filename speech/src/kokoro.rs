//! Audio from words: Kokoro voices. One network (`model.onnx`) speaks for all voices of `voices/X.bin`, each of which
//! is a table of style vectors by the number of phonemes. Without random values: the same words have the same samples.

mod graph;
mod letters;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use rten::NodeId;
use rten_tensor::NdTensor;

use crate::clauses::Clause;
use crate::network::Network;
use crate::{Unusable, phonemes, unusable};

/// Name of the network's file.
pub const NETWORK: &str = "model.onnx";
/// Name of the folder of voices.
pub const VOICES: &str = "voices";
/// Sample rate of the speech, in samples a second.
pub const RATE_HZ: u32 = 24_000;

/// Largest file of a network: 512 MiB.
const NETWORK_BYTES_MAX: u64 = 512 << 20;
/// Rows of a voice's table, one for each number of phonemes, and values of a row.
const ROWS: usize = 510;
const ROW: usize = 256;
/// Bytes of a voice's file.
const VOICE_BYTES: u64 = 4 * (ROWS * ROW) as u64;
/// Most phonemes that are spoken at once: more are parted between words.
const PHONEMES_MAX: usize = ROWS - 1;
/// Range of the speed as a factor of the network's own.
const SPEED: (f32, f32) = (0.5, 2.5);
/// Samples at the beginning that are left out, 40 ms: the network clicks there, long before the first word.
const CLICK: usize = RATE_HZ as usize / 25;
/// Samples of the rise after them, 5 ms.
const RISE: usize = RATE_HZ as usize / 200;

/// A loaded network with the folder of its voices. Shared by threads.
pub struct Kokoro {
    folder: PathBuf,
    network: Network,
    tokens: NodeId,
    style: NodeId,
    speed: NodeId,
    output: NodeId,
}

/// One of the voices in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KokoroVoice {
    /// Name of the voice: `X` of `voices/X.bin`.
    pub name: String,
    /// Language that it speaks.
    pub tongue: &'static Tongue,
    /// True for a woman's voice.
    pub female: bool,
}

/// A language of voices.
#[derive(Debug, PartialEq, Eq)]
pub struct Tongue {
    /// First letter of the names of its voices.
    letter: char,
    /// Code of the language, such as `en`.
    pub language: &'static str,
    /// Code of the country, such as `US`.
    pub country: &'static str,
    /// Name of the espeak voice that makes phonemes.
    phonemes: &'static str,
}

/// Languages whose phonemes libespeak-ng makes as the network knows them. Japanese and Chinese need others.
const TONGUES: [Tongue; 7] = [
    Tongue { letter: 'a', language: "en", country: "US", phonemes: "en-us" },
    Tongue { letter: 'b', language: "en", country: "GB", phonemes: "en" },
    Tongue { letter: 'e', language: "es", country: "ES", phonemes: "es" },
    Tongue { letter: 'f', language: "fr", country: "FR", phonemes: "fr" },
    Tongue { letter: 'h', language: "hi", country: "IN", phonemes: "hi" },
    Tongue { letter: 'i', language: "it", country: "IT", phonemes: "it" },
    Tongue { letter: 'p', language: "pt", country: "BR", phonemes: "pt-br" },
];

/// Returns the voice of a file's name without its ending: `af_heart`; `None` for other names and languages.
pub fn voice_of(name: &str) -> Option<KokoroVoice> {
    let (kind, own) = name.split_once('_')?;
    let (letter, gender) = (kind.chars().next()?, kind.get(1..)?);
    let tongue = TONGUES.iter().find(|tongue| tongue.letter == letter)?;
    let plain = !own.is_empty() && own.len() <= 40 && own.chars().all(|c| c.is_ascii_alphanumeric());
    let female = match gender {
        "f" => true,
        "m" => false,
        _ => return None,
    };
    plain.then(|| KokoroVoice { name: name.to_owned(), tongue, female })
}

/// Returns the voices in a folder that can speak here, in the order of the alphabet.
pub fn voices(folder: &Path) -> Vec<KokoroVoice> {
    let entries = std::fs::read_dir(folder.join(VOICES)).into_iter().flatten().take(1000).flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut found: Vec<KokoroVoice> = names.filter_map(|name| voice_of(name.strip_suffix(".bin")?)).collect();
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

impl Kokoro {
    /// Loads the network of a folder.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub fn load(folder: &Path) -> Result<Kokoro, Unusable> {
        let path = folder.join(NETWORK);
        let of = |why: String| Unusable(format!("{}: {why}", path.display()));
        let bytes = std::fs::metadata(&path).map_err(|cause| of(cause.to_string()))?.len();
        if bytes > NETWORK_BYTES_MAX {
            return Err(of(format!("it has {bytes} bytes, more than {NETWORK_BYTES_MAX}")));
        }
        let file = std::fs::read(&path).map_err(|cause| of(cause.to_string()))?;
        let standard = graph::with_standard_operations(&file).map_err(|why| of(why.0))?;
        drop(file);
        let network = Network::load(standard).map_err(|why| of(why.0))?;
        let need =
            |name: &str| network.find(name).ok_or_else(|| of(format!("it is no Kokoro network: it has no {name}")));
        let (tokens, style, speed) = (need("tokens")?, need("style")?, need("speed")?);
        let output = need("audio")?;
        Ok(Kokoro { folder: folder.to_owned(), network, tokens, style, speed, output })
    }

    /// Returns the speech of a clause at 24 kHz, in a voice of the folder and at a speed as a factor of the network's
    /// own. Works on one thread that is not the caller's.
    ///
    /// # Errors
    /// Says what is missing or did not work.
    pub fn say(&self, voice: &KokoroVoice, clause: &Clause, speed: f32) -> Result<Vec<i16>, Unusable> {
        let failed = |why: Unusable| Unusable(format!("the voice {} did not speak: {why}", voice.name));
        let ids = letters::ids(&phonemes::of(voice.tongue.phonemes, clause)?, voice.tongue.country);
        let mut said = Vec::new();
        for part in letters::parts(&ids, PHONEMES_MAX) {
            said.extend(self.run(voice, part, speed.clamp(SPEED.0, SPEED.1)).map_err(failed)?);
        }
        Ok(said)
    }

    /// Checks the file of a voice, without its speech.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub fn check(&self, voice: &KokoroVoice) -> Result<(), Unusable> {
        self.style(voice, PHONEMES_MAX).map(drop)
    }

    fn run(&self, voice: &KokoroVoice, ids: &[i32], speed: f32) -> Result<Vec<i16>, Unusable> {
        let style = self.style(voice, ids.len())?;
        let tokens = [&[0], ids, &[0]].concat();
        let inputs = vec![
            (self.tokens, NdTensor::from_data([1, tokens.len()], tokens).into()),
            (self.style, NdTensor::from_data([1, ROW], style).into()),
            (self.speed, NdTensor::from_data([1], vec![speed]).into()),
        ];
        samples(&self.network.run(inputs, self.output)?)
    }

    /// Returns the row of the voice's table for this number of phonemes.
    fn style(&self, voice: &KokoroVoice, phonemes: usize) -> Result<Vec<f32>, Unusable> {
        let path = self.folder.join(VOICES).join(format!("{}.bin", voice.name));
        let of = |why: String| Unusable(format!("{}: {why}", path.display()));
        let file = File::open(&path).map_err(|cause| of(cause.to_string()))?;
        let bytes = file.metadata().map_err(|cause| of(cause.to_string()))?.len();
        if bytes != VOICE_BYTES {
            return Err(of(format!("it has {bytes} bytes and not {VOICE_BYTES}")));
        }
        let mut row = [0; 4 * ROW];
        file.read_exact_at(&mut row, (4 * ROW * phonemes) as u64).map_err(|cause| of(cause.to_string()))?;
        let values: Vec<f32> = row.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        if values.iter().all(|value| value.is_finite()) { Ok(values) } else { Err(of("it is no voice".to_owned())) }
    }
}

/// Returns the samples of a network's output, which begin from silence.
fn samples(made: &[f32]) -> Result<Vec<i16>, Unusable> {
    if !made.iter().all(|sample| sample.is_finite()) {
        return unusable("its samples are not numbers");
    }
    let rise = |at: usize| (at.saturating_sub(CLICK) as f32 / RISE as f32).min(1.0);
    let value = |(at, sample): (usize, &f32)| (sample * 32_767.0 * rise(at)).clamp(-32_768.0, 32_767.0) as i16;
    Ok(made.iter().enumerate().map(value).collect())
}

#[cfg(test)]
mod tests;
