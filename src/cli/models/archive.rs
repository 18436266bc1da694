//! Archives of models: which files are taken out of them, and which archives are refused.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path};

use flate2::read::GzDecoder;
use tar::{Archive, EntryType};

/// Most bytes of an archive, packed and unpacked: 4 GiB.
pub const BYTES_MAX: u64 = 4 << 30;
/// Most entries of an archive.
pub const ENTRIES_MAX: usize = 200;

/// Bytes of the longest name or attributes of an entry.
const ATTRIBUTES_MAX: u64 = 64 << 10;

/// Names of files beside the voices.
const NAMES: [&str; 14] = [
    "model.bin",
    "model.safetensors",
    "tokenizer.json",
    "config.json",
    "generation_config.json",
    "preprocessor_config.json",
    "vocabulary.txt",
    "vocabulary.json",
    "vocab.json",
    "MODEL_CARD",
    "README.md",
    "LICENSE",
    "LICENSE.txt",
    "LICENSE.md",
];

/// True if a file of this name is part of a model.
pub fn is_taken(name: &str) -> bool {
    let voice = name.strip_suffix(".onnx").or_else(|| name.strip_suffix(".onnx.json"));
    NAMES.contains(&name) || voice.is_some_and(|voice| !voice.is_empty() && !voice.starts_with('.'))
}

/// Takes the files of a model out of a tar archive, packed by gzip or not, whatever folders they are in. Gives how many others
/// there were.
///
/// # Errors
/// The archive is broken, or holds something that no model has: nothing of it is to be used then.
pub fn unpack(mut file: File, into: &Path) -> Result<usize, String> {
    let broken = |cause: std::io::Error| format!("it is no tar archive, or was cut: {cause}");
    let mut head = [0; 2];
    file.read_exact(&mut head).map_err(broken)?;
    let packed = head == [0x1f, 0x8b];
    file.seek(SeekFrom::Start(0)).map_err(broken)?;
    let looked_at = file.try_clone().map_err(broken)?;
    match packed {
        true => look(Archive::new(GzDecoder::new(looked_at).take(BYTES_MAX + 1)))?,
        false => look(Archive::new(looked_at.take(BYTES_MAX + 1)))?,
    }
    file.seek(SeekFrom::Start(0)).map_err(broken)?;
    // One byte more than is allowed tells of all that is too much.
    match packed {
        true => take(Archive::new(GzDecoder::new(file).take(BYTES_MAX + 1)), into),
        false => take(Archive::new(file.take(BYTES_MAX + 1)), into),
    }
}

/// Refuses entries whose long names and attributes, which are read into memory as a whole, are larger than any name.
fn look<R: Read>(mut archive: Archive<R>) -> Result<(), String> {
    let broken = |cause: std::io::Error| format!("it is no tar archive, or was cut: {cause}");
    // An entry has at most three of them.
    for (count, entry) in archive.entries().map_err(broken)?.raw(true).enumerate() {
        let entry = entry.map_err(broken)?;
        if count >= 4 * ENTRIES_MAX {
            return Err(format!("it has more than {ENTRIES_MAX} entries"));
        }
        let kind = entry.header().entry_type();
        let is_attribute = kind.is_gnu_longname()
            || kind.is_gnu_longlink()
            || kind.is_pax_local_extensions()
            || kind.is_pax_global_extensions();
        if is_attribute && entry.size() > ATTRIBUTES_MAX {
            return Err(format!("an entry has attributes of more than {ATTRIBUTES_MAX} bytes"));
        }
    }
    Ok(())
}

fn take<R: Read>(mut archive: Archive<R>, into: &Path) -> Result<usize, String> {
    let broken = |cause: std::io::Error| format!("it is no tar archive, or was cut: {cause}");
    let (mut passed_over, mut bytes) = (0, 0u64);
    for (count, entry) in archive.entries().map_err(broken)?.enumerate() {
        if count >= ENTRIES_MAX {
            return Err(format!("it has more than {ENTRIES_MAX} entries"));
        }
        let mut entry = entry.map_err(broken)?;
        let path = entry.path().map_err(broken)?.into_owned();
        let shown = path.display();
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !path.components().all(plain) {
            return Err(format!("it has an entry outside of itself: {shown:.100}"));
        }
        match entry.header().entry_type() {
            EntryType::Directory | EntryType::XGlobalHeader => continue,
            EntryType::Regular | EntryType::Continuous => {}
            _ => return Err(format!("it has an entry that is neither a file nor a folder: {shown:.100}")),
        }
        bytes = bytes.saturating_add(entry.size());
        if bytes > BYTES_MAX {
            return Err("its files are larger than 4 GiB".to_owned());
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !is_taken(&name) {
            passed_over += 1;
            continue;
        }
        let target = into.join(&name);
        let mut file = File::options()
            .write(true)
            .create_new(true)
            .open(&target)
            .map_err(|cause| format!("it has {name:.100} twice, or it cannot be written: {cause}"))?;
        let written = std::io::copy(&mut entry, &mut file).map_err(broken)?;
        if written != entry.size() {
            return Err(format!("it was cut in {name:.100}"));
        }
    }
    Ok(passed_over)
}
