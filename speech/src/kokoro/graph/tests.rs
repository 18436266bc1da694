//! Small networks of single operations: rewritten, and run.

use super::*;
use crate::network::Network;

/// Returns a constant of bytes without a sign, or of 32-bit numbers.
fn tensor(name: &str, kind: u64, shape: &[u64], raw: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    shape.iter().for_each(|&size| put_number(&mut out, 1, size));
    put_number(&mut out, 2, kind);
    put_bytes(&mut out, 8, name.as_bytes());
    put_bytes(&mut out, 9, raw);
    out
}

fn floats(name: &str, shape: &[u64], values: &[f32]) -> Vec<u8> {
    tensor(name, FLOAT, shape, &values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())
}

/// Returns a node of another domain.
fn foreign(operation: &str, inputs: &[&str], outputs: &[&str], attributes: &[Vec<u8>]) -> Vec<u8> {
    let mut out = node(operation, inputs, outputs[0]);
    outputs[1..].iter().for_each(|output| put_bytes(&mut out, 2, output.as_bytes()));
    put_bytes(&mut out, 7, b"com.microsoft");
    attributes.iter().for_each(|attribute| put_bytes(&mut out, ATTRIBUTE, attribute));
    out
}

fn network(nodes: &[Vec<u8>], constants: &[Vec<u8>]) -> Vec<u8> {
    let (mut graph, mut opset, mut model, mut output) = <(Vec<u8>, Vec<u8>, Vec<u8>, Vec<u8>)>::default();
    nodes.iter().for_each(|node| put_bytes(&mut graph, NODE, node));
    put_bytes(&mut graph, 2, b"name");
    constants.iter().for_each(|constant| put_bytes(&mut graph, CONSTANT, constant));
    put_bytes(&mut output, 1, b"out");
    put_bytes(&mut graph, 12, &output);
    put_bytes(&mut opset, 1, b"");
    put_number(&mut opset, 2, 20);
    put_number(&mut model, 1, 9);
    put_bytes(&mut model, 7, &graph);
    put_bytes(&mut model, 8, &opset);
    model
}

/// Returns the values of `out`.
fn run(model: &[u8]) -> Result<Vec<f32>, Unusable> {
    let network = Network::load(with_standard_operations(model)?)?;
    network.run(Vec::new(), network.find("out").expect("it has this output"))
}

fn check(nodes: &[Vec<u8>], constants: &[Vec<u8>], expect: &[f32]) {
    let made = run(&network(nodes, constants)).expect("it runs");
    let near = made.len() == expect.len() && made.iter().zip(expect).all(|(is, wanted)| (is - wanted).abs() < 1e-4);
    assert!(near, "{made:?} and not {expect:?}");
}

#[test]
fn operations_of_another_domain_are_replaced() {
    let x = || floats("x", &[1, 2, 2], &[1.0, 2.0, 3.0, 5.0]);
    let gelu = |x: f32| 0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044_715 * x.powi(3))).tanh());
    check(&[foreign("FastGelu", &["x"], &["out"], &[])], &[x()], &[1.0, 2.0, 3.0, 5.0].map(gelu));
    let bias = floats("bias", &[2], &[1.0, -2.0]);
    check(&[foreign("FastGelu", &["x", "bias"], &["out"], &[])], &[x(), bias], &[2.0, 0.0, 4.0, 3.0].map(gelu));
    let turned = [attribute("transA", Value::Whole(1)), attribute("alpha", Value::Float(0.5))];
    check(&[foreign("FusedMatMul", &["x", "x"], &["out"], &turned)], &[x()], &[5.0, 8.5, 8.5, 14.5]);
    let turned = [attribute("transB", Value::Whole(1)), attribute("transA", Value::Whole(0))];
    check(&[foreign("FusedMatMul", &["x", "x"], &["out"], &turned)], &[x()], &[5.0, 13.0, 13.0, 34.0]);
    let layer = |inputs: &[&str], outputs: &[&str]| {
        let epsilon = attribute("epsilon", Value::Float(1e-6));
        foreign("SkipLayerNormalization", inputs, outputs, &[epsilon])
    };
    let (two, ten) = (floats("two", &[2], &[2.0, 2.0]), floats("ten", &[2], &[10.0, 10.0]));
    let normal = layer(&["x", "x", "two", "ten"], &["out"]);
    check(&[normal], &[x(), two.clone(), ten.clone()], &[8.0, 12.0, 8.0, 12.0]);
    let summed = layer(&["x", "x", "two", "ten", "two"], &["y", "", "", "out"]);
    check(&[summed], &[x(), two, ten], &[4.0, 6.0, 8.0, 12.0]);
}

/// One step of one cell: weights are (byte - 128) / 64.
#[test]
fn a_recurrent_layer_has_the_weights_that_its_bytes_stand_for() {
    let bytes = |name: &str, raw: &[u8]| tensor(name, UNSIGNED, &[1, raw.len() as u64 / 4, 4], raw);
    let constants = |zero: Vec<u8>, w: Vec<u8>, r: Vec<u8>| {
        [floats("x", &[1, 1, 2], &[1.0, 0.5]), w, r, floats("scale", &[1], &[1.0 / 64.0]), zero]
    };
    let hidden = attribute("hidden_size", Value::Whole(1));
    let inputs = ["x", "w", "r", "", "", "", "", "", "scale", "zero", "scale", "zero"];
    let layer = [foreign("DynamicQuantizeLSTM", &inputs, &["", "out"], &[hidden])];
    // Rows of inputs, columns of gates: input, output, forget, cell.
    let (gates, next) = ([192, 160, 128, 255, 128, 192, 0, 64], [0; 4]);
    let weight = |at: usize| (f32::from(gates[at]) - 128.0) / 64.0;
    let [input, output, _, cell] = std::array::from_fn(|gate| weight(gate) + 0.5 * weight(4 + gate));
    let logistic = |x: f32| 1.0 / (1.0 + (-x).exp());
    let expect = [logistic(output) * (logistic(input) * cell.tanh()).tanh()];
    let zero = tensor("zero", UNSIGNED, &[1], &[128]);
    check(&layer, &constants(zero, bytes("w", &gates), bytes("r", &next)), &expect);
    let signed = |name: &str, raw: &[u8]| {
        let raw: Vec<u8> = raw.iter().map(|byte| byte.wrapping_sub(128)).collect();
        tensor(name, SIGNED, &[1, raw.len() as u64 / 4, 4], &raw)
    };
    let zero = tensor("zero", SIGNED, &[1], &[0]);
    let all = constants(zero, signed("w", &gates), signed("r", &next));
    check(&layer, &all, &expect);
    // Nodes that nothing needs any more are left out.
    let rewritten = with_standard_operations(&network(&layer, &all)).expect("it is known");
    let has = |name: &[u8]| rewritten.windows(name.len()).any(|part| part == name);
    assert!(has(b"w/32") && !has(&gates));
}

/// Without the small number 0 / 0 is no number, and so all that follows.
#[test]
fn the_phase_of_silence_is_a_number() {
    let values = [floats("above", &[3], &[0.0, 1.0, -2.0]), floats("below", &[3], &[0.0, 1.0, 2.0])];
    let quarter = std::f32::consts::FRAC_PI_4;
    check(&[node("Div", &["above", "below"], "q"), node("Atan", &["q"], "out")], &values, &[0.0, quarter, -quarter]);
    // Other divisions stay as they are.
    let plain = network(&[node("Div", &["above", "below"], "out")], &values);
    assert!(run(&plain).expect("it runs")[0].is_nan());
}

#[test]
fn what_is_not_known_or_cut_is_refused() {
    let refused = |nodes: &[Vec<u8>], constants: &[Vec<u8>], expect: &str| {
        let why = with_standard_operations(&network(nodes, constants)).expect_err(expect);
        assert!(why.0.contains(expect), "{why}");
    };
    let strange = foreign("Attention", &["x"], &["out"], &[]);
    refused(&[strange], &[], "the operation Attention of com.microsoft, which is not known");
    let batches = foreign("FusedMatMul", &["x", "x"], &["out"], &[attribute("transBatchA", Value::Whole(1))]);
    refused(&[batches], &[], "transBatchA");
    let inputs = ["x", "w", "r", "", "", "", "", "", "scale", "zero", "scale", "zero"];
    let layer = || foreign("DynamicQuantizeLSTM", &inputs, &["out"], &[]);
    refused(&[layer()], &[], "it has no constant w");
    let short = tensor("w", UNSIGNED, &[1, 200_000, 4], &[1; 8]);
    let numbers = [floats("scale", &[1], &[1.0]), tensor("zero", UNSIGNED, &[1], &[0])];
    refused(&[layer()], &[short, numbers[0].clone(), numbers[1].clone()], "it is no ONNX network, or was cut");
    let odd = tensor("w", 16, &[1, 1, 4], &[1; 8]);
    refused(&[layer()], &[odd], "its constant w is of a type that is not known");
    let whole = network(&[node("Relu", &["x"], "out")], &[]);
    for broken in [&whole[..whole.len() - 3], b"", b"hello, world", &[0xff; 40]] {
        assert!(with_standard_operations(broken).is_err(), "{broken:?}");
    }
}
