//! The encoder: from log-mel bands to the rows that the decoder attends to.

use super::folder::{Folder, Half, Linear};
use super::math::{HEAD, Layer, Norm, Products, Rows, gelu, softmax};
use crate::Unusable;

/// Layers of the encoder and their weights.
pub(super) struct Encoder {
    bands: usize,
    width: usize,
    first: Layer,
    second: Layer,
    positions: Vec<f32>,
    blocks: Vec<Block>,
    norm: Norm,
}

struct Block {
    attention_norm: Norm,
    queries_keys_values: Layer,
    output: Layer,
    norm: Norm,
    wide: Layer,
    narrow: Layer,
}

fn layer(products: &Products, linear: Linear) -> Layer {
    let outputs = linear.weight.len() / linear.inputs;
    products.layer(Rows::new(&linear.weight, outputs, linear.inputs), linear.bias)
}

impl Encoder {
    /// Reads the encoder from the folder.
    ///
    /// # Errors
    ///
    /// Names the tensor that is wrong.
    pub(super) fn load(products: &Products, folder: &mut Folder) -> Result<Encoder, Unusable> {
        let sizes = folder.sizes;
        let mut blocks = Vec::new();
        for at in 0..sizes.encoder_layers {
            let (attention_norm, inward, output) = folder.own_attention(Half::Encoder, at)?;
            let (norm, wide, narrow) = folder.feed_forward(Half::Encoder, at)?;
            blocks.push(Block {
                attention_norm,
                queries_keys_values: layer(products, inward),
                output: layer(products, output),
                norm,
                wide: layer(products, wide),
                narrow: layer(products, narrow),
            });
        }
        Ok(Encoder {
            bands: sizes.bands,
            width: sizes.width,
            first: layer(products, folder.convolution(1, sizes.bands)?),
            second: layer(products, folder.convolution(2, sizes.width)?),
            positions: folder.positions(Half::Encoder)?,
            blocks,
            norm: folder.last_norm(Half::Encoder)?,
        })
    }

    /// Returns a row for every two frames of bands; `None` when `cancelled` became true.
    pub(super) fn encode(&self, products: &Products, bands: &[f32], cancelled: &dyn Fn() -> bool) -> Option<Vec<f32>> {
        let mut first = Vec::new();
        convolve(products, &self.first, bands, self.bands, 1, &mut first);
        let mut x = Vec::new();
        convolve(products, &self.second, &first, self.width, 2, &mut x);
        x.iter_mut().zip(&self.positions).for_each(|(value, position)| *value += position);
        let rows = x.len() / self.width;
        let (mut normed, mut inward, mut found, mut out) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for block in &self.blocks {
            if cancelled() {
                return None;
            }
            block.attention_norm.apply(&x, &mut normed);
            products.apply(&block.queries_keys_values, Rows::new(&normed, rows, self.width), &mut inward);
            self.attend(products, &inward, rows, &mut found);
            products.apply(&block.output, Rows::new(&found, rows, self.width), &mut out);
            x.iter_mut().zip(&out).for_each(|(value, more)| *value += more);
            block.norm.apply(&x, &mut normed);
            products.apply(&block.wide, Rows::new(&normed, rows, self.width), &mut inward);
            gelu(&mut inward);
            products.apply(&block.narrow, Rows::new(&inward, rows, 4 * self.width), &mut out);
            x.iter_mut().zip(&out).for_each(|(value, more)| *value += more);
        }
        self.norm.apply(&x, &mut normed);
        Some(normed)
    }

    /// Computes self-attention of all steps: `inward` holds queries, keys and values side by side.
    fn attend(&self, products: &Products, inward: &[f32], rows: usize, found: &mut Vec<f32>) {
        let stride = 3 * self.width;
        found.resize(rows * self.width, 0.0);
        let (mut shares, mut part) = (Vec::new(), Vec::new());
        for head in 0..self.width / HEAD {
            let rows_of =
                |kind: usize| Rows { data: &inward[kind * self.width + head * HEAD..], rows, width: HEAD, stride };
            products.apply_turned(rows_of(0), rows_of(1), (HEAD as f32).powf(-0.5), &mut shares);
            shares.chunks_exact_mut(rows).for_each(softmax);
            products.plain(Rows::new(&shares, rows, rows), rows_of(2), &mut part);
            for (found, part) in found.chunks_exact_mut(self.width).zip(part.chunks_exact(HEAD)) {
                found[head * HEAD..][..HEAD].copy_from_slice(part);
            }
        }
    }
}

/// Computes a convolution over three rows of `x`, every `step`th of them in the middle, and the unit after it.
fn convolve(products: &Products, layer: &Layer, x: &[f32], width: usize, step: usize, out: &mut Vec<f32>) {
    let mut padded = vec![0.0; x.len() + 2 * width];
    padded[width..width + x.len()].copy_from_slice(x);
    let rows = x.len() / width / step;
    products.apply(layer, Rows { data: &padded, rows, width: 3 * width, stride: step * width }, out);
    gelu(out);
}
