//! A voice's network (ONNX, which is protocol buffers), with its random numbers from outside: each `RandomNormalLike`
//! becomes a stretch of one more input, in the shape that it had. So the caller's seed decides, whatever runs the
//! network.

use crate::{Unusable, unusable};

/// Name of the input of random numbers.
pub const NOISE: &str = "ringer_noise";
/// Number of values between the beginnings of the stretches of two nodes.
pub const SPACING: usize = 8192;
/// Largest number of nodes that are given stretches.
const NODES_MAX: usize = 16;

/// A field of a message: its number, its kind, and its bytes with and without the bytes before them.
struct Field<'a> {
    number: u64,
    kind: u64,
    whole: &'a [u8],
    bytes: &'a [u8],
}

fn cut_short<T>() -> Result<T, Unusable> {
    unusable("it is no ONNX network, or was cut")
}

fn varint(bytes: &[u8], at: &mut usize) -> Result<u64, Unusable> {
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

fn fields(message: &[u8]) -> Result<Vec<Field<'_>>, Unusable> {
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

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value > 127 {
        out.push((value & 127) as u8 | 128);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_bytes(out: &mut Vec<u8>, number: u64, bytes: &[u8]) {
    put_varint(out, number << 3 | 2);
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn put_number(out: &mut Vec<u8>, number: u64, value: u64) {
    put_varint(out, number << 3);
    put_varint(out, value);
}

/// Returns a node of this operation.
fn node(operation: &str, inputs: &[&str], output: &str) -> Vec<u8> {
    let mut out = Vec::new();
    inputs.iter().for_each(|name| put_bytes(&mut out, 1, name.as_bytes()));
    put_bytes(&mut out, 2, output.as_bytes());
    put_bytes(&mut out, 3, format!("{output}/node").as_bytes());
    put_bytes(&mut out, 4, operation.as_bytes());
    out
}

/// Returns a constant list of one whole number.
fn constant(name: &str, value: u64) -> Vec<u8> {
    const INT64: u64 = 7;
    let mut out = Vec::new();
    put_number(&mut out, 1, 1);
    put_number(&mut out, 2, INT64);
    put_bytes(&mut out, 8, name.as_bytes());
    put_bytes(&mut out, 9, &value.to_le_bytes());
    out
}

/// Returns the input: a list of 32-bit numbers of any length.
fn input() -> Vec<u8> {
    const FLOAT: u64 = 1;
    let (mut length, mut shape, mut tensor, mut kind, mut out) =
        <(Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>)>::default();
    put_bytes(&mut length, 2, b"draws");
    put_bytes(&mut shape, 1, &length);
    put_number(&mut tensor, 1, FLOAT);
    put_bytes(&mut tensor, 2, &shape);
    put_bytes(&mut kind, 1, &tensor);
    put_bytes(&mut out, 1, NOISE.as_bytes());
    put_bytes(&mut out, 2, &kind);
    out
}

fn text<'a>(fields: &[Field<'a>], number: u64) -> Result<&'a str, Unusable> {
    let Some(field) = fields.iter().find(|field| field.number == number && field.kind == 2) else { return cut_short() };
    std::str::from_utf8(field.bytes).or_else(|_| cut_short())
}

/// Returns the network with its random numbers from outside; unchanged where it has none.
///
/// # Errors
///
/// It is no network of this format.
pub fn with_noise_from_outside(model: &[u8]) -> Result<Vec<u8>, Unusable> {
    const GRAPH: u64 = 7;
    let mut out = Vec::with_capacity(model.len() + 4096);
    let mut graphs = 0;
    for field in fields(model)? {
        if field.number == GRAPH && field.kind == 2 {
            put_bytes(&mut out, GRAPH, &graph(field.bytes)?);
            graphs += 1;
        } else {
            out.extend_from_slice(field.whole);
        }
    }
    if graphs == 1 { Ok(out) } else { cut_short() }
}

fn graph(graph: &[u8]) -> Result<Vec<u8>, Unusable> {
    const NODE: u64 = 1;
    const CONSTANT: u64 = 5;
    const INPUT: u64 = 11;
    let mut out = Vec::with_capacity(graph.len() + 4096);
    let mut count = 0;
    for field in fields(graph)? {
        let parts = if field.number == NODE && field.kind == 2 { fields(field.bytes)? } else { Vec::new() };
        if parts.is_empty() || text(&parts, 4) != Ok("RandomNormalLike") {
            out.extend_from_slice(field.whole);
            continue;
        }
        let (like, drawn) = (text(&parts, 1)?, text(&parts, 2)?);
        let [shape, size, from, to, part] =
            ["shape", "size", "from", "to", "part"].map(|part| format!("{NOISE}/{count}/{part}"));
        put_bytes(&mut out, CONSTANT, &constant(&from, (count * SPACING) as u64));
        for node in [
            node("Shape", &[like], &shape),
            node("ReduceProd", &[&shape], &size),
            node("Add", &[&size, &from], &to),
            node("Slice", &[NOISE, &from, &to], &part),
            node("Reshape", &[&part, &shape], drawn),
        ] {
            put_bytes(&mut out, NODE, &node);
        }
        count += 1;
        if count > NODES_MAX {
            return unusable("it draws random numbers in too many places");
        }
    }
    if count > 0 {
        put_bytes(&mut out, INPUT, &input());
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn network(operation: &str) -> Vec<u8> {
        let (mut graph, mut model) = (Vec::new(), Vec::new());
        put_bytes(&mut graph, 1, &node(operation, &["x"], "y"));
        put_bytes(&mut graph, 2, b"name");
        put_number(&mut model, 1, 8);
        put_bytes(&mut model, 7, &graph);
        model
    }

    #[test]
    fn random_numbers_come_from_outside() {
        let plain = network("Relu");
        assert_eq!(with_noise_from_outside(&plain).as_ref(), Ok(&plain));
        let changed = with_noise_from_outside(&network("RandomNormalLike")).expect("it is a network");
        let model = fields(&changed).expect("it is one still");
        let graph = fields(model[1].bytes).expect("a graph");
        let operations: Vec<String> = graph
            .iter()
            .filter(|field| field.number == 1)
            .map(|field| text(&fields(field.bytes).expect("a node"), 4).expect("it has an operation").to_owned())
            .collect();
        assert_eq!(operations, ["Shape", "ReduceProd", "Add", "Slice", "Reshape"]);
        assert_eq!(graph.iter().filter(|field| field.number == 11).count(), 1, "one more input");
    }

    #[test]
    fn what_is_no_network_is_refused() {
        let whole = network("RandomNormalLike");
        for broken in [&whole[..whole.len() - 3], b"", b"hello, world", &[0xff; 40]] {
            assert_eq!(with_noise_from_outside(broken), cut_short(), "{broken:?}");
        }
    }
}
