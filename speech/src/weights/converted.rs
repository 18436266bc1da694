//! The `model.bin` of CTranslate2, version 5 and 6: the version, the name and revision of the kind of model, then each
//! tensor with its name, shape, kind and numbers, then other names of tensors.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};

use super::numbers::Kind;
use super::{Entry, NAME_BYTES_MAX, RANK_MAX, TENSORS_MAX, Weights, fits};
use crate::{Unusable, unusable};

/// Kind of model that is read.
const SPEC: &str = "WhisperSpec";

pub(super) fn parse((file, file_bytes): (File, u64)) -> Result<Weights, Unusable> {
    let mut from = From { file: BufReader::new(file), at: 0 };
    let version = from.u32()?;
    if !(5..=6).contains(&version) {
        return unusable(format!("it is no CTranslate2 model of version 5 or 6 (it begins with {version})"));
    }
    let spec = from.text()?;
    if spec != SPEC {
        return unusable(format!("it is a model of the kind {spec:.60} and not {SPEC}"));
    }
    let _revision = from.u32()?;
    let count = from.u32()? as usize;
    if count > TENSORS_MAX {
        return unusable(format!("it has more than {TENSORS_MAX} tensors"));
    }
    let mut entries = HashMap::new();
    for _ in 0..count {
        let name = from.text()?;
        let entry = from.entry()?;
        let Some(entry) = entry.filter(|entry| fits(entry, file_bytes)) else {
            return unusable(format!(
                "the tensor {name:.60} has an unknown kind, or another size than its shape, or was cut"
            ));
        };
        from.skip(entry.bytes)?;
        entries.insert(name, entry);
    }
    let count = from.u32()? as usize;
    if count > TENSORS_MAX {
        return unusable(format!("it has more than {TENSORS_MAX} other names"));
    }
    let mut aliases = HashMap::new();
    for _ in 0..count {
        let alias = from.text()?;
        aliases.insert(alias, from.text()?);
    }
    Ok(Weights { file: from.file.into_inner(), entries, aliases })
}

struct From {
    file: BufReader<File>,
    at: u64,
}

impl From {
    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Unusable> {
        let mut bytes = [0; N];
        self.file.read_exact(&mut bytes).map_err(|_| Unusable(format!("it was cut: it ends at byte {}", self.at)))?;
        self.at += N as u64;
        Ok(bytes)
    }

    fn u32(&mut self) -> Result<u32, Unusable> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    /// Reads a text: its length, its bytes, and a zero that the length counts.
    fn text(&mut self) -> Result<String, Unusable> {
        let length = usize::from(u16::from_le_bytes(self.bytes()?));
        if !(1..=NAME_BYTES_MAX + 1).contains(&length) {
            return unusable(format!("a name of {length} bytes at byte {}", self.at));
        }
        let mut bytes = vec![0; length];
        for byte in &mut bytes {
            [*byte] = self.bytes()?;
        }
        bytes.pop();
        String::from_utf8(bytes).map_err(|_| Unusable(format!("a name that is no text before byte {}", self.at)))
    }

    fn entry(&mut self) -> Result<Option<Entry>, Unusable> {
        let [rank] = self.bytes()?;
        if usize::from(rank) > RANK_MAX {
            return Ok(None);
        }
        let shape = (0..rank).map(|_| self.u32().map(|size| size as usize)).collect::<Result<_, _>>()?;
        let [kind] = self.bytes()?;
        let bytes = u64::from(self.u32()?);
        let kind = match kind {
            0 => Kind::F32,
            1 => Kind::I8,
            2 => Kind::I16,
            3 => Kind::I32,
            4 => Kind::F16,
            5 => Kind::Bf16,
            _ => return Ok(None),
        };
        Ok(Some(Entry { kind, shape, at: self.at, bytes }))
    }

    fn skip(&mut self, bytes: u64) -> Result<(), Unusable> {
        self.at += bytes;
        self.file.seek(SeekFrom::Start(self.at)).map_err(|cause| Unusable(format!("it cannot be read: {cause}")))?;
        Ok(())
    }
}
