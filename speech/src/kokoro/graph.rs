//! The network (ONNX, which is protocol buffers) in standard operations: those of other domains, which the runtime does
//! not have, are replaced when it is loaded.
//!
//! Also kept from a division of zero by zero: the phase of the sound is the arc tangent of a quotient, and where all is
//! silent the samples of the whole clause would not be numbers.

use std::collections::{HashMap, HashSet};

use crate::onnx::{
    ATTRIBUTE, CONSTANT, Field, NODE, cut_short, fields, node, number, put_bytes, put_number, text, texts, varint,
    with_graph,
};
use crate::{Unusable, unusable};

/// Number that is added to the denominator of the phase.
const TINY: f32 = 1e-20;
/// Types of constants: 32-bit numbers, bytes without and with a sign.
const FLOAT: u64 = 1;
const UNSIGNED: u64 = 2;
const SIGNED: u64 = 3;

/// Returns the network in standard operations.
///
/// # Errors
/// It is no network of this format, or has an operation that is not known here.
pub(super) fn with_standard_operations(model: &[u8]) -> Result<Vec<u8>, Unusable> {
    with_graph(model, graph)
}

/// Constants of the graph by name, as the fields of their messages.
type Constants<'a> = HashMap<&'a str, Vec<Field<'a>>>;

fn graph(graph: &[u8]) -> Result<Vec<u8>, Unusable> {
    let all = fields(graph)?;
    let of_number = |number| all.iter().filter(move |field| field.number == number && field.kind == 2);
    let mut constants = Constants::new();
    for field in of_number(CONSTANT) {
        let parts = fields(field.bytes)?;
        constants.insert(text(&parts, 8)?, parts);
    }
    let mut phases = HashSet::new();
    for field in of_number(NODE) {
        let parts = fields(field.bytes)?;
        if text(&parts, 4)? == "Atan" {
            phases.insert(text(&parts, 1)?);
        }
    }
    let mut rewriting = Rewriting {
        constants,
        phases,
        out: Vec::with_capacity(graph.len() * 3 / 2),
        made: HashSet::new(),
        replaced: HashSet::new(),
    };
    for field in of_number(NODE) {
        rewriting.node(field)?;
    }
    let Rewriting { mut out, replaced, constants, .. } = rewriting;
    drop(constants);
    for field in &all {
        let is_old = || Ok(replaced.contains(text(&fields(field.bytes)?, 8)?));
        match (field.number, field.kind) {
            (NODE, 2) => {}
            (CONSTANT, 2) if is_old()? => {}
            _ => out.extend_from_slice(field.whole),
        }
    }
    Ok(out)
}

/// A graph that is being written.
struct Rewriting<'a> {
    constants: Constants<'a>,
    /// Names of the values whose arc tangents are taken.
    phases: HashSet<&'a str>,
    out: Vec<u8>,
    /// Names of constants that were made.
    made: HashSet<String>,
    /// Names of constants that nothing needs any more.
    replaced: HashSet<&'a str>,
}

impl<'a> Rewriting<'a> {
    /// Writes a node, or what stands for it.
    fn node(&mut self, field: &Field<'a>) -> Result<(), Unusable> {
        let parts = fields(field.bytes)?;
        let (operation, domain) = (text(&parts, 4)?, text(&parts, 7).unwrap_or_default());
        let (inputs, outputs) = (texts(&parts, 1)?, texts(&parts, 2)?);
        let plain = matches!(domain, "" | "ai.onnx");
        match (operation, &inputs[..], &outputs[..]) {
            ("Div", &[above, below], &[quotient]) if plain && self.phases.contains(quotient) => {
                let sum = format!("{quotient}/below");
                let tiny = self.constant("ringer/tiny", &[], &[TINY]);
                self.push(node("Add", &[below, &tiny], &sum));
                self.push(node("Div", &[above, &sum], quotient));
            }
            _ if plain => self.out.extend_from_slice(field.whole),
            ("FastGelu", &[x, ref bias @ ..], &[out]) => {
                let sum = format!("{out}/biased");
                let x = match bias.first().filter(|bias| !bias.is_empty()) {
                    Some(bias) => {
                        self.push(node("Add", &[x, bias], &sum));
                        &sum
                    }
                    None => x,
                };
                let mut gelu = node("Gelu", &[x], out);
                put_bytes(&mut gelu, ATTRIBUTE, &attribute("approximate", Value::Text("tanh")));
                self.push(gelu);
            }
            ("SkipLayerNormalization", &[x, skip, scale, shift, ref bias @ ..], &[out, ref more @ ..]) => {
                self.normalization([x, skip, scale, shift], bias.first().copied(), out, more, &parts)?;
            }
            ("FusedMatMul", &[a, b], &[out]) => self.product([a, b], out, &parts)?,
            ("DynamicQuantizeLSTM", _, _) => self.recurrent(&inputs, &outputs, &parts)?,
            _ => return unusable(format!("it has the operation {operation:.40} of {domain:.40}, which is not known")),
        }
        Ok(())
    }

    fn push(&mut self, node: Vec<u8>) {
        put_bytes(&mut self.out, NODE, &node);
    }

    /// Makes a constant, once for a name; returns its name.
    fn constant(&mut self, name: &str, shape: &[usize], values: &[f32]) -> String {
        if self.made.insert(name.to_owned()) {
            let mut tensor = Vec::with_capacity(4 * values.len() + 200);
            shape.iter().for_each(|&size| put_number(&mut tensor, 1, size as u64));
            put_number(&mut tensor, 2, FLOAT);
            put_bytes(&mut tensor, 8, name.as_bytes());
            let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            put_bytes(&mut tensor, 9, &bytes);
            put_bytes(&mut self.out, CONSTANT, &tensor);
        }
        name.to_owned()
    }

    /// Writes the normalization of a sum. `more` are the outputs after the first: the last of three is the sum.
    fn normalization(
        &mut self,
        [x, skip, scale, shift]: [&str; 4],
        bias: Option<&str>,
        out: &str,
        more: &[&str],
        parts: &[Field<'a>],
    ) -> Result<(), Unusable> {
        let named = more.get(2).filter(|name| !name.is_empty());
        let sum = named.map_or_else(|| format!("{out}/sum"), |name| (*name).to_owned());
        match bias.filter(|bias| !bias.is_empty()) {
            Some(bias) => {
                let first = format!("{out}/first");
                self.push(node("Add", &[x, skip], &first));
                self.push(node("Add", &[&first, bias], &sum));
            }
            None => self.push(node("Add", &[x, skip], &sum)),
        }
        let mut normal = node("LayerNormalization", &[&sum, scale, shift], out);
        let epsilon = attribute_of(parts, "epsilon")?.map_or(1e-12, f32::from_bits);
        put_bytes(&mut normal, ATTRIBUTE, &attribute("axis", Value::Whole(-1)));
        put_bytes(&mut normal, ATTRIBUTE, &attribute("epsilon", Value::Float(epsilon)));
        self.push(normal);
        Ok(())
    }

    /// Writes a product of matrices, which may be transposed and scaled.
    fn product(&mut self, inputs: [&str; 2], out: &str, parts: &[Field<'a>]) -> Result<(), Unusable> {
        for unknown in ["transBatchA", "transBatchB"] {
            if attribute_of(parts, unknown)?.is_some_and(|value| value != 0) {
                return unusable(format!("it has a product of matrices with {unknown}, which is not known"));
            }
        }
        let mut factors = inputs.map(str::to_owned);
        for (factor, name) in factors.iter_mut().zip(["transA", "transB"]) {
            if attribute_of(parts, name)?.is_some_and(|value| value != 0) {
                let turned = format!("{out}/{name}");
                let mut transpose = node("Transpose", &[factor], &turned);
                put_bytes(&mut transpose, ATTRIBUTE, &attribute("perm", Value::Wholes(&[0, 2, 1])));
                self.push(transpose);
                *factor = turned;
            }
        }
        let alpha = attribute_of(parts, "alpha")?.map_or(1.0, f32::from_bits);
        let [a, b] = &factors;
        if alpha == 1.0 {
            self.push(node("MatMul", &[a, b], out));
            return Ok(());
        }
        let (plain, factor) = (format!("{out}/plain"), self.constant(&format!("{out}/alpha"), &[], &[alpha]));
        self.push(node("MatMul", &[a, b], &plain));
        self.push(node("Mul", &[&plain, &factor], out));
        Ok(())
    }

    /// Writes a recurrent layer with weights of 32 bits.
    fn recurrent(&mut self, inputs: &[&'a str], outputs: &[&str], parts: &[Field<'a>]) -> Result<(), Unusable> {
        let &[x, w, r, ref rest @ .., scale_w, zero_w, scale_r, zero_r] = inputs else { return cut_short() };
        let (w, r) = (self.weights(w, scale_w, zero_w)?, self.weights(r, scale_r, zero_r)?);
        let (Some((first, more)), true) = (outputs.split_first(), rest.len() <= 5) else { return cut_short() };
        let mut inputs = [&[x, &w, &r], rest].concat();
        while inputs.last().is_some_and(|name| name.is_empty()) {
            inputs.pop();
        }
        let mut layer = node("LSTM", &inputs, first);
        more.iter().for_each(|output| put_bytes(&mut layer, 2, output.as_bytes()));
        let attributes = parts.iter().filter(|field| field.number == ATTRIBUTE && field.kind == 2);
        attributes.for_each(|field| layer.extend_from_slice(field.whole));
        self.push(layer);
        Ok(())
    }

    /// Makes the 32-bit weights of quantized ones, whose last two dimensions change places; returns their name.
    fn weights(&mut self, name: &'a str, scale: &str, zero: &str) -> Result<String, Unusable> {
        let new = format!("{name}/32");
        self.replaced.insert(name);
        if self.made.contains(&new) {
            return Ok(new);
        }
        let ((shape, values), (_, scales), (_, zeros)) = (self.values(name)?, self.values(scale)?, self.values(zero)?);
        let &[sides, rows, columns] = &shape[..] else { return cut_short() };
        let fits = |count: usize| [1, sides, sides * columns].contains(&count);
        if !fits(scales.len()) || !fits(zeros.len()) || values.len() != sides * rows * columns {
            return cut_short();
        }
        let of = |values: &[f32], side: usize, column: usize| match values.len() {
            1 => values[0],
            count if count == sides => values[side],
            _ => values[side * columns + column],
        };
        let mut turned = Vec::with_capacity(values.len());
        for side in 0..sides {
            for column in 0..columns {
                let (scale, zero) = (of(&scales, side, column), of(&zeros, side, column));
                let at = |row: usize| (values[(side * rows + row) * columns + column] - zero) * scale;
                turned.extend((0..rows).map(at));
            }
        }
        Ok(self.constant(&new, &[sides, columns, rows], &turned))
    }

    /// Returns shape and values of a constant of numbers or bytes.
    fn values(&self, name: &str) -> Result<(Vec<usize>, Vec<f32>), Unusable> {
        let missing = || Unusable(format!("it has no constant {name:.60}"));
        let parts = self.constants.get(name).ok_or_else(missing)?;
        let mut shape = Vec::new();
        for field in parts.iter().filter(|field| field.number == 1) {
            let mut at = 0;
            while at < field.bytes.len() {
                shape.push(varint(field.bytes, &mut at)? as usize);
            }
        }
        let raw = parts.iter().find(|field| field.number == 9 && field.kind == 2).map(|field| field.bytes);
        let kind = number(parts, 2)?;
        let values = match (kind, raw) {
            (FLOAT, Some(raw)) => raw.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect(),
            (UNSIGNED, Some(raw)) => raw.iter().map(|byte| f32::from(*byte)).collect(),
            (SIGNED, Some(raw)) => raw.iter().map(|byte| f32::from(byte.cast_signed())).collect(),
            (FLOAT, None) => {
                let bytes = parts.iter().filter(|field| field.number == 4).flat_map(|field| field.bytes.as_chunks().0);
                bytes.map(|bytes| f32::from_le_bytes(*bytes)).collect()
            }
            (UNSIGNED | SIGNED, None) => {
                let mut values = Vec::new();
                for field in parts.iter().filter(|field| field.number == 5) {
                    let mut at = 0;
                    while at < field.bytes.len() {
                        values.push(varint(field.bytes, &mut at)?.cast_signed() as f32);
                    }
                }
                values
            }
            _ => return unusable(format!("its constant {name:.60} is of a type that is not known")),
        };
        Ok((shape, values))
    }
}

/// Value of an attribute.
#[derive(Copy, Clone)]
enum Value<'a> {
    Float(f32),
    Whole(i64),
    Text(&'a str),
    Wholes(&'a [u64]),
}

/// Returns the message of an attribute.
fn attribute(name: &str, value: Value<'_>) -> Vec<u8> {
    const TYPE: u64 = 20;
    let mut out = Vec::new();
    put_bytes(&mut out, 1, name.as_bytes());
    let kind = match value {
        Value::Float(value) => {
            // A field of four bytes.
            out.push(2 << 3 | 5);
            out.extend_from_slice(&value.to_le_bytes());
            1
        }
        Value::Whole(value) => {
            put_number(&mut out, 3, value.cast_unsigned());
            2
        }
        Value::Text(value) => {
            put_bytes(&mut out, 4, value.as_bytes());
            3
        }
        Value::Wholes(values) => {
            values.iter().for_each(|value| put_number(&mut out, 8, *value));
            7
        }
    };
    put_number(&mut out, TYPE, kind);
    out
}

/// Returns the number of a node's attribute, the bits of one of 32; `None` where it has none of this name.
fn attribute_of(parts: &[Field<'_>], name: &str) -> Result<Option<u32>, Unusable> {
    for field in parts.iter().filter(|field| field.number == ATTRIBUTE && field.kind == 2) {
        let attribute = fields(field.bytes)?;
        if text(&attribute, 1)? != name {
            continue;
        }
        let float = attribute.iter().find(|field| field.number == 2 && field.kind == 5);
        let bits = float.and_then(|field| field.bytes.try_into().ok()).map(u32::from_le_bytes);
        return Ok(Some(bits.map_or_else(|| number(&attribute, 3).map(|value| value as u32), Ok)?));
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
