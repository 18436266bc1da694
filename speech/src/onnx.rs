//! Messages of a network's file (ONNX, which is protocol buffers): read in place and written again by field. What
//! nobody asks for stays as it is.

use crate::{Unusable, unusable};

/// Field of a graph that holds a node.
pub(crate) const NODE: u64 = 1;
/// Field of a graph that holds a constant.
pub(crate) const CONSTANT: u64 = 5;
/// Field of a node that holds an attribute.
pub(crate) const ATTRIBUTE: u64 = 5;

/// A field of a message: its number, its kind, and its bytes with and without the bytes before them.
pub(crate) struct Field<'a> {
    pub number: u64,
    pub kind: u64,
    pub whole: &'a [u8],
    pub bytes: &'a [u8],
}

/// Returns the error of a file that is no network.
pub(crate) fn cut_short<T>() -> Result<T, Unusable> {
    unusable("it is no ONNX network, or was cut")
}

/// Reads a whole number at `at`, and moves `at` behind it.
///
/// # Errors
/// The number was cut.
pub(crate) fn varint(bytes: &[u8], at: &mut usize) -> Result<u64, Unusable> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let Some(&byte) = bytes.get(*at) else { return cut_short() };
        *at += 1;
        value |= u64::from(byte & 127) << shift;
        if byte < 128 {
            return Ok(value);
        }
    }
    cut_short()
}

/// Returns the fields of a message, in order.
///
/// # Errors
/// It is no message of this format.
pub(crate) fn fields(message: &[u8]) -> Result<Vec<Field<'_>>, Unusable> {
    let mut fields = Vec::new();
    let mut at = 0;
    while at < message.len() {
        let begin = at;
        let key = varint(message, &mut at)?;
        let length = match key & 7 {
            0 => {
                let before = at;
                varint(message, &mut at)?;
                let length = at - before;
                at = before;
                length
            }
            1 => 8,
            2 => varint(message, &mut at)? as usize,
            5 => 4,
            _ => return cut_short(),
        };
        let Some(bytes) = at.checked_add(length).and_then(|end| message.get(at..end)) else { return cut_short() };
        at += length;
        fields.push(Field { number: key >> 3, kind: key & 7, whole: &message[begin..at], bytes });
    }
    Ok(fields)
}

/// Appends a whole number.
pub(crate) fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 127 {
        out.push((value & 127) as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Appends a field of bytes: a text, a list of numbers or another message.
pub(crate) fn put_bytes(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    put_varint(out, number << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Appends a field with a whole number.
pub(crate) fn put_number(out: &mut Vec<u8>, number: u64, value: u64) {
    put_varint(out, number << 3);
    put_varint(out, value);
}

/// Returns a node of this operation. More outputs and attributes may be appended.
pub(crate) fn node(operation: &str, inputs: &[&str], output: &str) -> Vec<u8> {
    let mut out = Vec::new();
    inputs.iter().for_each(|name| put_bytes(&mut out, 1, name.as_bytes()));
    put_bytes(&mut out, 2, output.as_bytes());
    put_bytes(&mut out, 3, format!("{output}/node").as_bytes());
    put_bytes(&mut out, 4, operation.as_bytes());
    out
}

/// Returns the first text in the field of this number.
///
/// # Errors
/// There is none, or it is no text.
pub(crate) fn text<'a>(fields: &[Field<'a>], number: u64) -> Result<&'a str, Unusable> {
    let Some(field) = fields.iter().find(|field| field.number == number && field.kind == 2) else { return cut_short() };
    std::str::from_utf8(field.bytes).or_else(|_| cut_short())
}

/// Returns all texts in the fields of this number, in order.
///
/// # Errors
/// One of them is no text.
pub(crate) fn texts<'a>(fields: &[Field<'a>], number: u64) -> Result<Vec<&'a str>, Unusable> {
    let of_number = fields.iter().filter(|field| field.number == number && field.kind == 2);
    of_number.map(|field| std::str::from_utf8(field.bytes).or_else(|_| cut_short())).collect()
}

/// Returns the whole number in the field of this number; 0 when there is none.
///
/// # Errors
/// It was cut.
pub(crate) fn number(fields: &[Field<'_>], number: u64) -> Result<u64, Unusable> {
    let found = fields.iter().rfind(|field| field.number == number && field.kind == 0);
    found.map_or(Ok(0), |field| varint(field.bytes, &mut 0))
}

/// Returns the model with what `rewrite` makes of the bytes of its graph.
///
/// # Errors
/// It is no network of this format, or `rewrite` fails.
pub(crate) fn with_graph(
    model: &[u8],
    rewrite: impl Fn(&[u8]) -> Result<Vec<u8>, Unusable>,
) -> Result<Vec<u8>, Unusable> {
    const GRAPH: u64 = 7;
    let mut out = Vec::with_capacity(model.len() + 4096);
    let mut graphs = 0;
    for field in fields(model)? {
        if field.number == GRAPH && field.kind == 2 {
            put_bytes(&mut out, GRAPH, &rewrite(field.bytes)?);
            graphs += 1;
        } else {
            out.extend_from_slice(field.whole);
        }
    }
    if graphs == 1 { Ok(out) } else { cut_short() }
}
