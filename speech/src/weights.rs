//! Tensors in files: safetensors, and the format of CTranslate2. Names, kinds and sizes are read and checked first; the
//! numbers of a tensor are read when it is taken, so that nothing is allocated that the file does not hold.

mod converted;
mod numbers;
mod safetensors;

use std::collections::HashMap;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use self::numbers::Kind;
use crate::{Unusable, unusable};

/// Largest file of weights: 4 GiB.
pub(crate) const FILE_BYTES_MAX: u64 = 4 << 30;
/// Largest number of tensors of a file.
const TENSORS_MAX: usize = 10_000;
/// Longest name of a tensor in bytes.
const NAME_BYTES_MAX: usize = 300;
/// Largest number of dimensions of a tensor.
const RANK_MAX: usize = 8;

/// Place of one tensor in the file.
#[derive(Clone, Debug, PartialEq)]
struct Entry {
    kind: Kind,
    shape: Vec<usize>,
    at: u64,
    bytes: u64,
}

/// An open file of tensors.
#[derive(Debug)]
pub(crate) struct Weights {
    file: File,
    entries: HashMap<String, Entry>,
    /// Other names of tensors.
    aliases: HashMap<String, String>,
}

impl Weights {
    /// Reads the names and sizes in a safetensors file.
    ///
    /// # Errors
    /// Names what is wrong with the file.
    pub(crate) fn safetensors(path: &Path) -> Result<Weights, Unusable> {
        open(path).and_then(safetensors::parse).map_err(|why| in_file(path, &why))
    }

    /// Reads the names and sizes in the `model.bin` of a converted model.
    ///
    /// # Errors
    /// Names what is wrong with the file.
    pub(crate) fn open_converted(path: &Path) -> Result<Weights, Unusable> {
        open(path).and_then(converted::parse).map_err(|why| in_file(path, &why))
    }

    /// True if there is a tensor of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.entry(name).is_some()
    }

    /// Returns the shape of a tensor; `None` without one of this name.
    pub(crate) fn shape(&self, name: &str) -> Option<&[usize]> {
        self.entry(name).map(|entry| entry.shape.as_slice())
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.get(name).or_else(|| self.entries.get(self.aliases.get(name)?))
    }

    /// Reads the numbers of a tensor, which must have this shape. Whole numbers of 8 bits are divided by their row's
    /// scale.
    ///
    /// # Errors
    ///
    /// Names the tensor that is not there, has another shape or kind, or cannot be read.
    pub(crate) fn take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<f32>, Unusable> {
        let name = self.aliases.get(name).cloned().unwrap_or_else(|| name.to_owned());
        let Some(entry) = self.entry(&name).cloned() else { return unusable(format!("the tensor {name} is missing")) };
        if entry.shape != shape {
            return unusable(format!("the tensor {name} has the shape {:?} and not {shape:?}", entry.shape));
        }
        let mut values = self.numbers(&name, &entry)?;
        if entry.kind == Kind::I8 {
            let rows = shape.first().copied().unwrap_or(1).max(1);
            let scale = format!("{name}_scale");
            if self.entry(&scale).is_some_and(|entry| entry.kind == Kind::I8) {
                return unusable(format!("the tensor {scale} is of whole numbers of 8 bits, which scales are not"));
            }
            let scales = self.take(&scale, &[rows])?;
            let width = values.len() / rows;
            for (row, scale) in values.chunks_exact_mut(width.max(1)).zip(scales) {
                row.iter_mut().for_each(|value| *value /= scale);
            }
        }
        match values.iter().all(|value| value.is_finite()) {
            true => Ok(values),
            false => unusable(format!("the tensor {name} holds values that are no numbers")),
        }
    }

    fn numbers(&mut self, name: &str, entry: &Entry) -> Result<Vec<f32>, Unusable> {
        let broken = |cause: std::io::Error| Unusable(format!("the tensor {name} cannot be read: {cause}"));
        let mut bytes = vec![0; entry.bytes as usize];
        self.file.seek(SeekFrom::Start(entry.at)).map_err(broken)?;
        self.file.read_exact(&mut bytes).map_err(broken)?;
        Ok(entry.kind.numbers(&bytes))
    }
}

fn in_file(path: &Path, why: &Unusable) -> Unusable {
    Unusable(format!("{}: {why}", path.display()))
}

fn open(path: &Path) -> Result<(File, u64), Unusable> {
    let unreadable = |cause: std::io::Error| Unusable(format!("it cannot be read: {cause}"));
    let file = File::open(path).map_err(unreadable)?;
    let bytes = file.metadata().map_err(unreadable)?.len();
    match bytes > FILE_BYTES_MAX {
        true => unusable(format!("it has {bytes} bytes, more than {FILE_BYTES_MAX}")),
        false => Ok((file, bytes)),
    }
}

/// True if this many bytes at `at` are within the file and are those of the shape.
fn fits(entry: &Entry, file_bytes: u64) -> bool {
    let count = entry.shape.iter().try_fold(1u64, |count, &size| count.checked_mul(size as u64));
    let bytes = count.and_then(|count| count.checked_mul(entry.kind.bytes()));
    bytes == Some(entry.bytes) && entry.at.checked_add(entry.bytes).is_some_and(|end| end <= file_bytes)
}

#[cfg(test)]
mod tests;
