//! The decoder: from the encoder's output to one token after the other. Keys and values of earlier tokens are kept.

use super::folder::{Folder, Half, Linear};
use super::math::{HEAD, Kept, Layer, Norm, Products, Rows, Small, attend, gelu};
use crate::Unusable;

/// Layers of the decoder and their weights.
pub(super) struct Decoder {
    width: usize,
    /// Embeddings of tokens, which also give the likeness of each token at the end.
    tokens: Small,
    positions: Vec<f32>,
    blocks: Vec<Block>,
    norm: Norm,
    /// Layer and head of each attention that follows the audio.
    following: Vec<(usize, usize)>,
}

struct Block {
    own_norm: Norm,
    own_inward: Small,
    own_output: Small,
    audio_norm: Norm,
    audio_query: Small,
    audio_inward: Layer,
    audio_output: Small,
    norm: Norm,
    wide: Small,
    narrow: Small,
}

/// State of a text that is being decoded.
pub(super) struct State {
    /// Keys and values of the audio, for each layer.
    audio: Vec<Vec<f32>>,
    steps: usize,
    /// Queries, keys and values of the tokens, for each layer.
    own: Vec<Vec<f32>>,
    pub count: usize,
    /// Attention of each token: for each head that follows the audio, the shares of the steps.
    pub followed: Vec<Vec<f32>>,
}

impl State {
    /// Forgets all tokens behind the first `count`.
    pub(super) fn truncate(&mut self, count: usize) {
        if count < self.count {
            let kept = |all: &Vec<f32>| all.len() / self.count * count;
            let lengths: Vec<usize> = self.own.iter().map(kept).collect();
            self.own.iter_mut().zip(lengths).for_each(|(own, length)| own.truncate(length));
            self.followed.truncate(count);
            self.count = count;
        }
    }

    /// Forgets the text; the audio stays.
    pub(super) fn restart(&mut self) {
        self.own.iter_mut().for_each(Vec::clear);
        self.followed.clear();
        self.count = 0;
    }
}

fn small(linear: Linear) -> Small {
    Small::new(&linear.weight, linear.inputs, linear.bias)
}

/// Applies the factor of attention to the queries, which are the first `width` outputs.
fn with_scale(mut linear: Linear, width: usize) -> Linear {
    let factor = (HEAD as f32).powf(-0.5);
    linear.weight[..width * linear.inputs].iter_mut().for_each(|value| *value *= factor);
    linear.bias[..width].iter_mut().for_each(|value| *value *= factor);
    linear
}

impl Decoder {
    /// Reads the decoder from the folder.
    ///
    /// # Errors
    ///
    /// Names the tensor that is wrong.
    pub(super) fn load(products: &Products, folder: &mut Folder) -> Result<Decoder, Unusable> {
        let (width, layers) = (folder.sizes.width, folder.sizes.decoder_layers);
        let mut blocks = Vec::new();
        for at in 0..layers {
            let (own_norm, own_inward, own_output) = folder.own_attention(Half::Decoder, at)?;
            let (audio_norm, audio_query, audio_inward, audio_output) = folder.audio_attention(at)?;
            let (norm, wide, narrow) = folder.feed_forward(Half::Decoder, at)?;
            blocks.push(Block {
                own_norm,
                own_inward: small(with_scale(own_inward, width)),
                own_output: small(own_output),
                audio_norm,
                audio_query: small(with_scale(audio_query, width)),
                audio_inward: products.layer(Rows::new(&audio_inward.weight, 2 * width, width), audio_inward.bias),
                audio_output: small(audio_output),
                norm,
                wide: small(wide),
                narrow: small(narrow),
            });
        }
        let mut following = folder.alignment();
        if following.is_empty() {
            // When the settings tell nothing, the later half of the layers follows best.
            let heads = width / HEAD;
            following = (layers / 2..layers).flat_map(|layer| (0..heads).map(move |head| (layer, head))).collect();
        }
        Ok(Decoder {
            width,
            tokens: Small::new(&folder.embeddings()?, width, Vec::new()),
            positions: folder.positions(Half::Decoder)?,
            blocks,
            norm: folder.last_norm(Half::Decoder)?,
            following,
        })
    }

    /// Returns the largest number of tokens of a text with its prompt.
    pub(super) fn tokens_max(&self) -> usize {
        self.positions.len() / self.width
    }

    /// Begins a text of this audio.
    pub(super) fn begin(&self, products: &Products, encoded: &[f32]) -> State {
        let steps = encoded.len() / self.width;
        let kept = |block: &Block| {
            let mut kept = Vec::new();
            products.apply(&block.audio_inward, Rows::new(encoded, steps, self.width), &mut kept);
            kept
        };
        let audio = self.blocks.iter().map(kept).collect();
        State { audio, steps, own: vec![Vec::new(); self.blocks.len()], count: 0, followed: Vec::new() }
    }

    /// Takes the next token; `likeness` becomes the unnormalised logarithm of the odds of each token to follow.
    pub(super) fn step(&self, state: &mut State, token: u32, likeness: &mut Vec<f32>) {
        let x = self.take(state, token);
        let mut normed = Vec::new();
        self.norm.apply(&x, &mut normed);
        self.tokens.apply(&normed, likeness);
    }

    /// Takes the next token and returns the output of the last layer. By itself it costs less than half of a step.
    pub(super) fn take(&self, state: &mut State, token: u32) -> Vec<f32> {
        let mut x = self.positions[state.count * self.width..][..self.width].to_vec();
        self.tokens.add_row(token as usize, &mut x);
        state.count += 1;
        let (mut normed, mut inward, mut found) = (Vec::new(), Vec::new(), Vec::new());
        let (mut out, mut shares, mut followed) = (Vec::new(), Vec::new(), Vec::new());
        for (at, block) in self.blocks.iter().enumerate() {
            block.own_norm.apply(&x, &mut normed);
            block.own_inward.apply(&normed, &mut inward);
            let own = &mut state.own[at];
            own.extend_from_slice(&inward[self.width..]);
            let kept = Kept { keys: own, values: &own[self.width..], stride: 2 * self.width, count: state.count };
            attend(&inward[..self.width], kept, &mut shares, &mut found);
            block.own_output.apply(&found, &mut out);
            x.iter_mut().zip(&out).for_each(|(value, more)| *value += more);

            block.audio_norm.apply(&x, &mut normed);
            block.audio_query.apply(&normed, &mut inward);
            let audio = &state.audio[at];
            let kept = Kept { keys: audio, values: &audio[self.width..], stride: 2 * self.width, count: state.steps };
            attend(&inward, kept, &mut shares, &mut found);
            for &(_, head) in self.following.iter().filter(|(layer, _)| *layer == at) {
                followed.extend_from_slice(&shares[head * state.steps..][..state.steps]);
            }
            block.audio_output.apply(&found, &mut out);
            x.iter_mut().zip(&out).for_each(|(value, more)| *value += more);

            block.norm.apply(&x, &mut normed);
            block.wide.apply(&normed, &mut inward);
            gelu(&mut inward);
            block.narrow.apply(&inward, &mut out);
            x.iter_mut().zip(&out).for_each(|(value, more)| *value += more);
        }
        state.followed.push(followed);
        x
    }
}
