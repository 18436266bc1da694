//! safetensors: the length of a JSON header (8 bytes), the header, then the numbers. Each name has its kind, its shape
//! and its first and last byte after the header.

use std::collections::HashMap;
use std::fs::File;
use std::io::Read;

use serde_json::Value;

use super::numbers::Kind;
use super::{Entry, NAME_BYTES_MAX, RANK_MAX, TENSORS_MAX, Weights, fits};
use crate::{Unusable, unusable};

/// Largest header: 16 MiB.
const HEADER_BYTES_MAX: u64 = 16 << 20;

pub(super) fn parse((mut file, file_bytes): (File, u64)) -> Result<Weights, Unusable> {
    let cut = |_| Unusable("it is no safetensors file, or was cut".into());
    let mut length = [0; 8];
    file.read_exact(&mut length).map_err(cut)?;
    let length = u64::from_le_bytes(length);
    if length > HEADER_BYTES_MAX || length + 8 > file_bytes {
        return unusable("it is no safetensors file, or was cut: its header is longer than the file or than 16 MiB");
    }
    let mut header = vec![0; length as usize];
    file.read_exact(&mut header).map_err(cut)?;
    let header: Value = serde_json::from_slice(&header).map_err(|cause| Unusable(format!("its header: {cause}")))?;
    let named = header.as_object().ok_or_else(|| Unusable("its header is no JSON object".into()))?;
    if named.len() > TENSORS_MAX {
        return unusable(format!("it has more than {TENSORS_MAX} tensors"));
    }
    let mut entries = HashMap::new();
    for (name, about) in named.iter().filter(|(name, _)| *name != "__metadata__") {
        let entry = entry(about, length + 8).filter(|entry| name.len() <= NAME_BYTES_MAX && fits(entry, file_bytes));
        let Some(entry) = entry else {
            return unusable(format!(
                "the tensor {name:.60} has an unknown kind, or another size than its shape, or was cut"
            ));
        };
        entries.insert(name.clone(), entry);
    }
    // Overlapping ones would take many times the memory that the file has bytes.
    if entries.values().map(|entry: &Entry| u128::from(entry.bytes)).sum::<u128>() > u128::from(file_bytes) {
        return unusable("its tensors overlap");
    }
    Ok(Weights { file, entries, aliases: HashMap::new() })
}

fn entry(about: &Value, base: u64) -> Option<Entry> {
    let kind = match about["dtype"].as_str()? {
        "F32" => Kind::F32,
        "F16" => Kind::F16,
        "BF16" => Kind::Bf16,
        "I8" => Kind::I8,
        "I16" => Kind::I16,
        "I32" => Kind::I32,
        _ => return None,
    };
    let shape = about["shape"].as_array().filter(|shape| shape.len() <= RANK_MAX)?;
    let shape = shape.iter().map(|size| size.as_u64().map(|size| size as usize)).collect::<Option<_>>()?;
    let (from, to) = (about["data_offsets"][0].as_u64()?, about["data_offsets"][1].as_u64()?);
    Some(Entry { kind, shape, at: base.checked_add(from)?, bytes: to.checked_sub(from)? })
}
