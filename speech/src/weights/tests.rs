//! Files of weights, whole and broken.

use std::path::PathBuf;

use super::*;

struct Written(PathBuf);

impl Written {
    fn new(name: &str, bytes: &[u8]) -> Written {
        let path = std::env::temp_dir().join(format!("ringer-weights-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).expect("the temporary folder is writable");
        Written(path)
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn tensors(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

fn text(text: &str) -> Vec<u8> {
    [&(text.len() as u16 + 1).to_le_bytes()[..], text.as_bytes(), &[0]].concat()
}

fn converted_file(spec: &str, shape: u32, kind: u8, bytes: u32, data: &[u8]) -> Vec<u8> {
    let mut file = [&6u32.to_le_bytes()[..], &text(spec), &3u32.to_le_bytes(), &2u32.to_le_bytes()].concat();
    file.extend([&text("a")[..], &[1], &shape.to_le_bytes(), &[kind], &bytes.to_le_bytes(), data].concat());
    file.extend([&text("a_scale")[..], &[1], &2u32.to_le_bytes(), &[0], &8u32.to_le_bytes()].concat());
    file.extend([&2f32.to_le_bytes()[..], &4f32.to_le_bytes(), &1u32.to_le_bytes(), &text("b"), &text("a")].concat());
    file
}

#[test]
fn safetensors_are_read_and_broken_ones_refused_with_words() {
    let check = |name: &str, bytes: &[u8], expect: Result<&[f32], &str>| {
        let file = Written::new(name, bytes);
        let read = Weights::safetensors(&file.0).and_then(|mut weights| weights.take("a", &[2]));
        match (read, expect) {
            (Ok(values), Ok(expect)) => assert_eq!(values, expect),
            (Err(why), Err(part)) => assert!(why.0.contains(part), "{name}: {why}"),
            (read, expect) => panic!("{name}: {read:?} and not {expect:?}"),
        }
    };
    let header = r#"{"__metadata__":{},"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4]}}"#;
    check("good", &tensors(header, &[0, 0x3c, 0, 0x40]), Ok(&[1.0, 2.0]));
    check("cut", &tensors(header, &[0, 0x3c, 0]), Err("the tensor a has an unknown kind, or another size"));
    check("infinite", &tensors(header, &[0, 0x7c, 0, 0x40]), Err("the tensor a holds values that are no numbers"));
    let large = r#"{"a":{"dtype":"F32","shape":[4294967295,4294967295,4294967295],"data_offsets":[0,4]}}"#;
    check("large", &tensors(large, &[0; 4]), Err("the tensor a has an unknown kind, or another size"));
    let other = r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#;
    check("shape", &tensors(other, &[0; 4]), Err("has the shape [1] and not [2]"));
    check("missing", &tensors("{}", &[]), Err("the tensor a is missing"));
    check("header", &u64::MAX.to_le_bytes(), Err("its header is longer than the file"));
    check("empty", b"", Err("no safetensors file"));
    check("list", &tensors("[]", &[]), Err("no JSON object"));
}

#[test]
fn converted_models_are_read_and_broken_ones_refused_with_words() {
    let check = |name: &str, bytes: &[u8], expect: Result<&[f32], &str>| {
        let file = Written::new(name, bytes);
        let read = Weights::open_converted(&file.0).and_then(|mut weights| weights.take("b", &[2]));
        match (read, expect) {
            (Ok(values), Ok(expect)) => assert_eq!(values, expect),
            (Err(why), Err(part)) => assert!(why.0.contains(part), "{name}: {why}"),
            (read, expect) => panic!("{name}: {read:?} and not {expect:?}"),
        }
    };
    let whole = converted_file("WhisperSpec", 2, 1, 2, &[6, 0xf8]);
    check("c-good", &whole, Ok(&[3.0, -2.0]));
    check("c-cut", &whole[..whole.len() - 3], Err("it was cut: it ends at byte"));
    check("c-kind", &converted_file("TransformerSpec", 2, 1, 2, &[6, 0xf8]), Err("of the kind TransformerSpec"));
    check("c-size", &converted_file("WhisperSpec", 3, 1, 2, &[6, 0xf8]), Err("another size than its shape"));
    check("c-number", &converted_file("WhisperSpec", 2, 9, 2, &[6, 0xf8]), Err("the tensor a has an unknown kind"));
    check("c-version", &77u32.to_le_bytes(), Err("no CTranslate2 model of version 5 or 6 (it begins with 77)"));
    check("c-long", &[&6u32.to_le_bytes()[..], &[0xff, 0xff]].concat(), Err("a name of 65535 bytes"));
}
