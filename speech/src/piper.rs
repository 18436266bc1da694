//! Audio from words: Piper voices. A voice is `X.onnx` with `X.onnx.json`; phonemes come from libespeak-ng, which is
//! opened at run time. Random values of a voice come from the caller's seed: the same seed gives the same samples.

mod graph;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use rten::NodeId;
use rten_tensor::NdTensor;
use serde_json::Value;
use unicode_normalization::UnicodeNormalization;

use crate::clauses::Clause;
use crate::network::Network;
use crate::{Unusable, phonemes, unusable};

/// Largest file of a voice: 512 MiB.
const VOICE_BYTES_MAX: u64 = 512 << 20;
/// Largest settings of a voice: 4 MiB.
const SETTINGS_BYTES_MAX: u64 = 4 << 20;
/// Largest number of phoneme ids of a clause.
const IDS_MAX: usize = 4000;
/// Largest number of steps of sound (256 samples each) expected for one id, and the factor that is tried after that.
const STEPS_EACH: f32 = 6.0;
const MORE: usize = 4;
/// Number of random values of a step of sound.
const DRAWS_EACH: usize = 192;

/// A loaded voice. Shared by threads.
pub struct PiperVoice {
    name: String,
    path: PathBuf,
    network: Network,
    inputs: Inputs,
    output: NodeId,
    rate_hz: u32,
    language: String,
    /// Name of the espeak voice that makes phonemes.
    phonemes: String,
    ids: HashMap<char, Vec<i32>>,
    /// Scales of the noise of the sound, of the length, and of the noise of the lengths.
    scales: [f32; 3],
    /// Names with their numbers; empty for a voice of one speaker.
    speakers: Vec<(String, i32)>,
}

struct Inputs {
    ids: NodeId,
    lengths: NodeId,
    scales: NodeId,
    speaker: Option<NodeId>,
    noise: Option<NodeId>,
}

/// Settings of the speech of a clause.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Manner {
    /// Number of the speaker, 0 in a voice of one.
    pub speaker: i32,
    /// Length as a factor of the voice's own; 1 leaves it unchanged.
    pub length: f32,
    /// Seed of all random values: the same seed gives the same samples.
    pub seed: u64,
}

/// The settings of a voice, read without its network.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Name of the voice: `X` of `X.onnx`.
    pub name: String,
    /// Sample rate of the voice, in samples a second.
    pub rate_hz: u32,
    /// Language with its country, such as `en_US` or `de_DE`; `en` when the settings tell none.
    pub language: String,
    /// Names of the speakers; empty for a voice of one.
    pub speakers: Vec<(String, i32)>,
}

impl PiperVoice {
    /// Loads the voice of the file `X.onnx`.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub fn load(path: &Path) -> Result<PiperVoice, Unusable> {
        let (settings, json) = read_settings(path)?;
        let of = |why: String| Unusable(format!("{}: {why}", path.display()));
        let bytes = std::fs::metadata(path).map_err(|cause| of(cause.to_string()))?.len();
        if bytes > VOICE_BYTES_MAX {
            return Err(of(format!("it has {bytes} bytes, more than {VOICE_BYTES_MAX}")));
        }
        let file = std::fs::read(path).map_err(|cause| of(cause.to_string()))?;
        let file = graph::with_noise_from_outside(&file).map_err(|why| of(why.0))?;
        let network = Network::load(file).map_err(|why| of(why.0))?;
        let node = |name: &str| network.find(name);
        let need = |name: &str| node(name).ok_or_else(|| of(format!("it is no Piper voice: it has no {name}")));
        let inputs = Inputs {
            ids: need("input")?,
            lengths: need("input_lengths")?,
            scales: need("scales")?,
            speaker: node("sid"),
            noise: node(graph::NOISE),
        };
        let output = need("output")?;
        let number = |name: &str, usual: f32| json["inference"][name].as_f64().map_or(usual, |value| value as f32);
        let scales = [number("noise_scale", 0.667), number("length_scale", 1.0), number("noise_w", 0.8)];
        Ok(PiperVoice {
            scales: scales.map(|scale| if scale.is_finite() { scale.clamp(0.0, 4.0) } else { 1.0 }),
            phonemes: json["espeak"]["voice"].as_str().unwrap_or("en-us").to_owned(),
            ids: ids(&json).map_err(|why| of(why.0))?,
            name: settings.name,
            language: settings.language,
            rate_hz: settings.rate_hz,
            speakers: settings.speakers,
            path: path.to_owned(),
            network,
            inputs,
            output,
        })
    }

    /// Returns the name of the voice: `X` of `X.onnx`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the language with its country, such as `en_US` or `de_DE`.
    pub fn language(&self) -> &str {
        &self.language
    }

    /// Returns the sample rate of the speech, in samples a second.
    pub fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    /// Returns the names of the speakers with their numbers; empty for a voice of one.
    pub fn speakers(&self) -> &[(String, i32)] {
        &self.speakers
    }

    /// Returns the speech of a clause. Works on one thread that is not the caller's.
    ///
    /// # Errors
    ///
    /// Says what is missing or did not work.
    pub fn say(&self, clause: &Clause, manner: Manner) -> Result<Vec<i16>, Unusable> {
        let ids = self.numbers(clause)?;
        let length = (self.scales[1] * manner.length).clamp(0.2, 5.0);
        let steps = (ids.len() as f32 * STEPS_EACH * length.max(1.0)) as usize + 100;
        let said = self.run(&ids, length, manner, steps).or_else(|_| self.run(&ids, length, manner, MORE * steps))?;
        let value = |sample: f32| if sample.is_finite() { (sample * 32_767.0).clamp(-32_768.0, 32_767.0) } else { 0.0 };
        Ok(said.into_iter().map(|sample| value(sample) as i16).collect())
    }

    fn run(&self, ids: &[i32], length: f32, manner: Manner, steps: usize) -> Result<Vec<f32>, Unusable> {
        let count = ids.len();
        let scales = NdTensor::from_data([3], vec![self.scales[0], length, self.scales[2]]);
        let mut inputs = vec![
            (self.inputs.ids, NdTensor::from_data([1, count], ids.to_vec()).into()),
            (self.inputs.lengths, NdTensor::from_data([1], vec![count as i32]).into()),
            (self.inputs.scales, scales.into()),
        ];
        if let Some(speaker) = self.inputs.speaker {
            inputs.push((speaker, NdTensor::from_data([1], vec![manner.speaker]).into()));
        }
        if let Some(noise) = self.inputs.noise {
            let draws = graph::SPACING + steps * DRAWS_EACH;
            inputs.push((noise, NdTensor::from_data([draws], normal(manner.seed, draws)).into()));
        }
        let failed = |why: Unusable| Unusable(format!("the voice {} did not speak: {why}", self.name));
        self.network.run(inputs, self.output).map_err(failed)
    }

    /// Returns the phoneme ids of a clause, with a mark at both ends and one between all.
    fn numbers(&self, clause: &Clause) -> Result<Vec<i32>, Unusable> {
        let phonemes = phonemes::of(&self.phonemes, clause)?;
        let of = |letter: char| self.ids.get(&letter).map_or(&[][..], Vec::as_slice);
        let mut ids = [of('^'), of('_')].concat();
        // Voices know letters and their marks apart.
        for letter in phonemes.nfd() {
            // Phonemes that a voice does not know are left out.
            if !of(letter).is_empty() {
                ids.extend([of(letter), of('_')].concat());
            }
            if ids.len() > IDS_MAX {
                return unusable("the clause is too long");
            }
        }
        ids.extend(of('$'));
        Ok(ids)
    }

    /// Returns the path of the voice's file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Reads the settings beside the file `X.onnx`.
///
/// # Errors
/// Names the file and what is wrong with it.
pub fn settings(path: &Path) -> Result<Settings, Unusable> {
    read_settings(path).map(|(settings, _)| settings)
}

fn read_settings(path: &Path) -> Result<(Settings, Value), Unusable> {
    let beside = PathBuf::from(format!("{}.json", path.display()));
    let of = |why: String| Unusable(format!("{}: {why}", beside.display()));
    let bytes = std::fs::metadata(&beside).map_err(|cause| of(cause.to_string()))?.len();
    if bytes > SETTINGS_BYTES_MAX {
        return Err(of(format!("it has {bytes} bytes, more than {SETTINGS_BYTES_MAX}")));
    }
    let text = std::fs::read(&beside).map_err(|cause| of(cause.to_string()))?;
    let json: Value = serde_json::from_slice(&text).map_err(|cause| of(cause.to_string()))?;
    let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let rate_hz = json["audio"]["sample_rate"].as_u64().filter(|rate| (8000..=48_000).contains(rate));
    let rate_hz = rate_hz.ok_or_else(|| of("audio.sample_rate is not from 8000 to 48000".to_owned()))? as u32;
    if json["phoneme_type"].as_str().is_some_and(|kind| kind != "espeak") {
        return Err(of("it is not spoken from espeak's phonemes, which alone are made here".to_owned()));
    }
    let language = json["language"]["code"].as_str().map(str::to_owned);
    // `en_US-joe-medium`
    let of_name = || name.split_once('-').map(|(code, _)| code.to_owned()).filter(|code| code.len() >= 2);
    let of_phonemes = || json["espeak"]["voice"].as_str().map(|voice| voice.replace('-', "_"));
    let language = language.or_else(of_name).or_else(of_phonemes).unwrap_or_else(|| "en".to_owned());
    let named = json["speaker_id_map"].as_object();
    let mut speakers: Vec<(String, i32)> = named
        .into_iter()
        .flatten()
        .filter_map(|(name, number)| Some((name.clone(), i32::try_from(number.as_i64()?).ok()?)))
        .collect();
    speakers.sort_by_key(|&(_, number)| number);
    let count = json["num_speakers"].as_u64().unwrap_or(1).min(10_000) as i32;
    if speakers.is_empty() && count > 1 {
        speakers = (0..count).map(|number| (number.to_string(), number)).collect();
    }
    Ok((Settings { name, rate_hz, language, speakers }, json))
}

/// Reads the letters of phonemes with their ids.
fn ids(json: &Value) -> Result<HashMap<char, Vec<i32>>, Unusable> {
    let map = json["phoneme_id_map"].as_object().ok_or_else(|| Unusable("it has no phoneme_id_map".to_owned()))?;
    let mut ids = HashMap::new();
    for (letter, numbers) in map {
        let numbers: Option<Vec<i32>> =
            numbers.as_array().map(|all| all.iter().filter_map(|id| i32::try_from(id.as_i64()?).ok()).collect());
        if let (Some(letter), Some(numbers)) = (letter.chars().next(), numbers) {
            ids.insert(letter, numbers);
        }
    }
    match ['^', '_', '$'].iter().all(|mark| ids.contains_key(mark)) {
        true => Ok(ids),
        false => unusable("its phoneme_id_map lacks one of ^ _ $"),
    }
}

/// Returns this many draws of the normal distribution (Box and Muller) from a seed (splitmix64).
fn normal(seed: u64, count: usize) -> Vec<f32> {
    let mut state = seed;
    let mut unit = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 40) as f32 / (1u64 << 24) as f32
    };
    let mut draws = Vec::with_capacity(count + 1);
    while draws.len() < count {
        let radius = (-2.0 * (1.0 - unit()).ln()).sqrt();
        let (sin, cos) = (std::f32::consts::TAU * unit()).sin_cos();
        draws.extend([radius * cos, radius * sin]);
    }
    draws.truncate(count);
    draws
}

#[cfg(test)]
mod tests;
