//! A model's folder: `model.bin` (CTranslate2) or `model.safetensors`, `tokenizer.json`, and settings where there are
//! some. One set of layers comes out, whatever the names in the file.

use std::path::Path;

use serde_json::Value;

use super::math::{HEAD, Norm};
use crate::weights::Weights;
use crate::{Unusable, unusable};

/// Largest text file of a folder: 32 MiB.
const TEXT_BYTES_MAX: u64 = 32 << 20;
/// Largest number of layers of each half.
const LAYERS_MAX: usize = 48;
/// Width of the widest model.
const WIDTH_MAX: usize = 2048;

/// Names of the files with weights; the first that is there is taken.
pub const WEIGHTS: [&str; 2] = ["model.bin", "model.safetensors"];
/// File of the vocabulary.
pub const TOKENIZER: &str = "tokenizer.json";

/// Weights of a product, one row for each output.
pub(super) struct Linear {
    pub weight: Vec<f32>,
    pub bias: Vec<f32>,
    pub inputs: usize,
}

/// Sizes of a model.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) struct Sizes {
    pub bands: usize,
    pub width: usize,
    pub encoder_layers: usize,
    pub decoder_layers: usize,
    /// Number of tokens in the vocabulary.
    pub tokens: usize,
    /// Number of steps of 20 ms that the encoder knows.
    pub steps: usize,
    /// Largest number of tokens of a text, prompt included.
    pub text: usize,
}

/// Half of a model.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(super) enum Half {
    Encoder,
    Decoder,
}

/// Scheme of tensor names: `Hub` as the original has them, `Converted` those of CTranslate2.
#[derive(Copy, Clone, Debug, PartialEq)]
enum Names {
    Hub,
    Converted,
}

/// An open folder of a model.
pub(super) struct Folder {
    weights: Weights,
    names: Names,
    pub sizes: Sizes,
    pub tokenizer: Value,
    settings: Vec<Value>,
}

impl Folder {
    /// Reads all but the numbers.
    ///
    /// # Errors
    /// Names the file and what is wrong with it.
    pub(super) fn open(path: &Path) -> Result<Folder, Unusable> {
        let [converted, hub] = WEIGHTS.map(|name| path.join(name));
        let (weights, names) = match () {
            () if converted.is_file() => (Weights::open_converted(&converted)?, Names::Converted),
            () if hub.is_file() => (Weights::safetensors(&hub)?, Names::Hub),
            () => return unusable(format!("{} has neither {} nor {}", path.display(), WEIGHTS[0], WEIGHTS[1])),
        };
        let tokenizer = json(&path.join(TOKENIZER))?;
        let settings = ["generation_config.json", "config.json"].map(|name| path.join(name));
        let settings = settings.iter().filter(|path| path.is_file()).map(|path| json(path));
        let settings = settings.collect::<Result<_, _>>()?;
        let sizes = sizes(&weights, names)?;
        Ok(Folder { weights, names, sizes, tokenizer, settings })
    }

    /// Returns the whole numbers of a list in the settings, under the first of these names that is there.
    pub(super) fn list_of(&self, names: &[&str]) -> Vec<u32> {
        let found = self.settings.iter().flat_map(|settings| names.iter().map(move |&name| &settings[name]));
        let numbers = |list: &Value| -> Option<Vec<u32>> {
            let list = list.as_array().filter(|list| !list.is_empty())?;
            Some(list.iter().filter_map(|number| u32::try_from(number.as_i64()?).ok()).collect())
        };
        found.filter_map(numbers).next().unwrap_or_default()
    }

    /// Returns layer and head of the attention that follows the audio, where the settings tell them.
    pub(super) fn alignment(&self) -> Vec<(usize, usize)> {
        let found = self.settings.iter().find_map(|settings| settings["alignment_heads"].as_array());
        let pair = |pair: &Value| Some((pair[0].as_u64()? as usize, pair[1].as_u64()? as usize));
        let fits =
            |&(layer, head): &(usize, usize)| layer < self.sizes.decoder_layers && head < self.sizes.width / HEAD;
        found.into_iter().flatten().filter_map(pair).filter(fits).collect()
    }

    /// Reads a convolution over three steps: an output's row holds its channels, three values each.
    pub(super) fn convolution(&mut self, number: usize, channels: usize) -> Result<Linear, Unusable> {
        let (weight, bias) = match self.names {
            Names::Hub => (format!("model.encoder.conv{number}.weight"), format!("model.encoder.conv{number}.bias")),
            Names::Converted => (format!("encoder/conv{number}/weight"), format!("encoder/conv{number}/bias")),
        };
        let width = self.sizes.width;
        let from = self.weights.take(&weight, &[width, channels, 3])?;
        // One step after the other, as the input lies.
        let mut weight = vec![0.0; from.len()];
        for (out, from) in weight.chunks_exact_mut(3 * channels).zip(from.chunks_exact(3 * channels)) {
            for (at, value) in from.iter().enumerate() {
                out[at % 3 * channels + at / 3] = *value;
            }
        }
        Ok(Linear { weight, bias: self.weights.take(&bias, &[width])?, inputs: 3 * channels })
    }

    /// Reads the positions of the encoder's steps or of the decoder's tokens.
    pub(super) fn positions(&mut self, half: Half) -> Result<Vec<f32>, Unusable> {
        let name = positions_name(self.names, half);
        let rows = if half == Half::Encoder { self.sizes.steps } else { self.sizes.text };
        self.weights.take(&name, &[rows, self.sizes.width])
    }

    /// Reads the embeddings of the tokens, a row each.
    pub(super) fn embeddings(&mut self) -> Result<Vec<f32>, Unusable> {
        let name = embeddings_name(self.names);
        self.weights.take(name, &[self.sizes.tokens, self.sizes.width])
    }

    /// Reads the norm after the last layer.
    pub(super) fn last_norm(&mut self, half: Half) -> Result<Norm, Unusable> {
        let name = match (self.names, half) {
            (Names::Hub, Half::Encoder) => "model.encoder.layer_norm",
            (Names::Hub, Half::Decoder) => "model.decoder.layer_norm",
            (Names::Converted, Half::Encoder) => "encoder/layer_norm",
            (Names::Converted, Half::Decoder) => "decoder/layer_norm",
        };
        self.norm(name.to_owned())
    }

    /// Reads norm, queries with keys and values in one, and output of a layer's attention to its own half.
    pub(super) fn own_attention(&mut self, half: Half, layer: usize) -> Result<(Norm, Linear, Linear), Unusable> {
        let width = self.sizes.width;
        let at = layer_name(self.names, half, layer);
        match self.names {
            Names::Hub => {
                let mut all = Linear { weight: Vec::new(), bias: Vec::new(), inputs: width };
                for part in ["q_proj", "k_proj", "v_proj"] {
                    let part = self.linear(format!("{at}.self_attn.{part}"), width, width)?;
                    all.weight.extend(part.weight);
                    all.bias.extend(part.bias);
                }
                let norm = self.norm(format!("{at}.self_attn_layer_norm"))?;
                Ok((norm, all, self.linear(format!("{at}.self_attn.out_proj"), width, width)?))
            }
            Names::Converted => Ok((
                self.norm(format!("{at}/self_attention/layer_norm"))?,
                self.linear(format!("{at}/self_attention/linear_0"), width, 3 * width)?,
                self.linear(format!("{at}/self_attention/linear_1"), width, width)?,
            )),
        }
    }

    /// Reads norm, queries, keys with values in one, and output of a decoder layer's attention to the audio.
    pub(super) fn audio_attention(&mut self, layer: usize) -> Result<(Norm, Linear, Linear, Linear), Unusable> {
        let width = self.sizes.width;
        let at = layer_name(self.names, Half::Decoder, layer);
        match self.names {
            Names::Hub => {
                let mut both = self.linear(format!("{at}.encoder_attn.k_proj"), width, width)?;
                let values = self.linear(format!("{at}.encoder_attn.v_proj"), width, width)?;
                both.weight.extend(values.weight);
                both.bias.extend(values.bias);
                let queries = self.linear(format!("{at}.encoder_attn.q_proj"), width, width)?;
                let norm = self.norm(format!("{at}.encoder_attn_layer_norm"))?;
                Ok((norm, queries, both, self.linear(format!("{at}.encoder_attn.out_proj"), width, width)?))
            }
            Names::Converted => Ok((
                self.norm(format!("{at}/attention/layer_norm"))?,
                self.linear(format!("{at}/attention/linear_0"), width, width)?,
                self.linear(format!("{at}/attention/linear_1"), width, 2 * width)?,
                self.linear(format!("{at}/attention/linear_2"), width, width)?,
            )),
        }
    }

    /// Reads norm, first and second product of a layer.
    pub(super) fn feed_forward(&mut self, half: Half, layer: usize) -> Result<(Norm, Linear, Linear), Unusable> {
        let width = self.sizes.width;
        let at = layer_name(self.names, half, layer);
        let [norm, first, second] = match self.names {
            Names::Hub => ["final_layer_norm", "fc1", "fc2"].map(|name| format!("{at}.{name}")),
            Names::Converted => ["layer_norm", "linear_0", "linear_1"].map(|name| format!("{at}/ffn/{name}")),
        };
        Ok((self.norm(norm)?, self.linear(first, width, 4 * width)?, self.linear(second, 4 * width, width)?))
    }

    fn linear(&mut self, name: String, inputs: usize, outputs: usize) -> Result<Linear, Unusable> {
        let mark = self.mark();
        let weight = self.weights.take(&format!("{name}{mark}weight"), &[outputs, inputs])?;
        let bias = format!("{name}{mark}bias");
        // Keys have none.
        let bias = match self.weights.has(&bias) {
            true => self.weights.take(&bias, &[outputs])?,
            false => vec![0.0; outputs],
        };
        Ok(Linear { weight, bias, inputs })
    }

    fn norm(&mut self, name: String) -> Result<Norm, Unusable> {
        let [scale, shift] = match self.names {
            Names::Hub => ["weight", "bias"],
            Names::Converted => ["gamma", "beta"],
        };
        let (mark, width) = (self.mark(), self.sizes.width);
        Ok(Norm {
            scale: self.weights.take(&format!("{name}{mark}{scale}"), &[width])?,
            shift: self.weights.take(&format!("{name}{mark}{shift}"), &[width])?,
        })
    }

    fn mark(&self) -> char {
        if self.names == Names::Hub { '.' } else { '/' }
    }
}

fn layer_name(names: Names, half: Half, layer: usize) -> String {
    match (names, half) {
        (Names::Hub, Half::Encoder) => format!("model.encoder.layers.{layer}"),
        (Names::Hub, Half::Decoder) => format!("model.decoder.layers.{layer}"),
        (Names::Converted, Half::Encoder) => format!("encoder/layer_{layer}"),
        (Names::Converted, Half::Decoder) => format!("decoder/layer_{layer}"),
    }
}

fn positions_name(names: Names, half: Half) -> String {
    let half = if half == Half::Encoder { "encoder" } else { "decoder" };
    match names {
        Names::Hub => format!("model.{half}.embed_positions.weight"),
        Names::Converted => format!("{half}/position_encodings/encodings"),
    }
}

fn embeddings_name(names: Names) -> &'static str {
    match names {
        Names::Hub => "model.decoder.embed_tokens.weight",
        Names::Converted => "decoder/embeddings/weight",
    }
}

/// Returns the sizes that follow from the shapes.
fn sizes(weights: &Weights, names: Names) -> Result<Sizes, Unusable> {
    let shape = |name: &str| {
        weights.shape(name).map(<[usize]>::to_vec).ok_or_else(|| Unusable(format!("the tensor {name} is missing")))
    };
    let (first, embeddings) = match names {
        Names::Hub => (shape("model.encoder.conv1.weight")?, shape(embeddings_name(names))?),
        Names::Converted => (shape("encoder/conv1/weight")?, shape(embeddings_name(names))?),
    };
    let (steps, text) = (shape(&positions_name(names, Half::Encoder))?, shape(&positions_name(names, Half::Decoder))?);
    let ([width, bands, 3], [tokens, _], [steps, _], [text, _]) = (&first[..], &embeddings[..], &steps[..], &text[..])
    else {
        return unusable("its tensors have other shapes than those of a Whisper model");
    };
    let layers = |half| {
        let norm = |layer| match names {
            Names::Hub => format!("{}.final_layer_norm.weight", layer_name(names, half, layer)),
            Names::Converted => format!("{}/ffn/layer_norm/gamma", layer_name(names, half, layer)),
        };
        (0..=LAYERS_MAX).take_while(|&layer| weights.has(&norm(layer))).count()
    };
    let sizes = Sizes {
        bands: *bands,
        width: *width,
        encoder_layers: layers(Half::Encoder),
        decoder_layers: layers(Half::Decoder),
        tokens: *tokens,
        steps: *steps,
        text: *text,
    };
    let known = matches!(sizes.bands, 80 | 128)
        && sizes.width.is_multiple_of(HEAD)
        && (HEAD..=WIDTH_MAX).contains(&sizes.width)
        && (1..=LAYERS_MAX).contains(&sizes.encoder_layers)
        && (1..=LAYERS_MAX).contains(&sizes.decoder_layers)
        && (50_000..=60_000).contains(&sizes.tokens)
        && sizes.steps == 1500
        && sizes.text == 448;
    match known {
        true => Ok(sizes),
        false => unusable(format!("it is no Whisper model that is known: {sizes:?}")),
    }
}

fn json(path: &Path) -> Result<Value, Unusable> {
    let why = |cause: String| Unusable(format!("{}: {cause}", path.display()));
    let bytes = std::fs::metadata(path).map_err(|cause| why(cause.to_string()))?.len();
    if bytes > TEXT_BYTES_MAX {
        return Err(why(format!("it has {bytes} bytes, more than {TEXT_BYTES_MAX}")));
    }
    let text = std::fs::read(path).map_err(|cause| why(cause.to_string()))?;
    serde_json::from_slice(&text).map_err(|cause| why(cause.to_string()))
}
