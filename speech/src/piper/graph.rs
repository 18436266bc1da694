//! A voice's network (ONNX, which is protocol buffers), with its random numbers from outside: each `RandomNormalLike`
//! becomes a stretch of one more input, in the shape that it had. So the caller's seed decides, whatever runs the
//! network.

use crate::onnx::{CONSTANT, NODE, fields, node, put_bytes, put_number, text, with_graph};
use crate::{Unusable, unusable};

/// Name of the input of random numbers.
pub(super) const NOISE: &str = "ringer_noise";
/// Number of values between the beginnings of the stretches of two nodes.
pub(super) const SPACING: usize = 8192;
/// Largest number of nodes that are given stretches.
const NODES_MAX: usize = 16;

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

/// Returns the network with its random numbers from outside; unchanged where it has none.
///
/// # Errors
///
/// It is no network of this format.
pub(super) fn with_noise_from_outside(model: &[u8]) -> Result<Vec<u8>, Unusable> {
    with_graph(model, graph)
}

fn graph(graph: &[u8]) -> Result<Vec<u8>, Unusable> {
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
    use crate::onnx::cut_short;

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
