//! Archives of models: which files are taken out of them, and which archives are refused.

use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

use flate2::read::GzDecoder;
use tar::{Archive, EntryType};
use zip::read::{Config, ZipReadOptions};
use zip::result::ZipError;
use zip::unstable::read::ZipIterable;

use super::place::{create, place};

/// Most bytes of an archive, packed and unpacked: 4 GiB.
pub(crate) const BYTES_MAX: u64 = 4 << 30;
/// Most entries of an archive.
pub(crate) const ENTRIES_MAX: usize = 200;

/// Bytes of the longest name or attributes of an entry.
const ATTRIBUTES_MAX: u64 = 64 << 10;

/// Takes the files of a model out of an archive, whatever folders they are in: tar, packed by gzip or not, or zip, as
/// wheels are. Returns the number of other files in it.
///
/// # Errors
/// The archive is broken, or holds something that no model has: nothing of it is to be used then.
pub(crate) fn unpack(mut file: File, into: &Path) -> Result<usize, String> {
    let broken = |cause: std::io::Error| format!("it is no archive, or was cut: {cause}");
    let mut head = [0; 4];
    file.read_exact(&mut head).map_err(broken)?;
    file.seek(SeekFrom::Start(0)).map_err(broken)?;
    let mut taken = Taken { into, entries: 0, bytes: 0, passed_over: 0 };
    match head {
        [b'P', b'K', 3 | 5, _] => take_zip(file, &mut taken)?,
        [0x1f, 0x8b, ..] => {
            look(Archive::new(GzDecoder::new(file.try_clone().map_err(broken)?).take(BYTES_MAX + 1)))?;
            file.seek(SeekFrom::Start(0)).map_err(broken)?;
            // One byte more than is allowed tells of all that is too much.
            take_tar(Archive::new(GzDecoder::new(file).take(BYTES_MAX + 1)), &mut taken)?;
        }
        _ => {
            look(Archive::new(file.try_clone().map_err(broken)?.take(BYTES_MAX + 1)))?;
            file.seek(SeekFrom::Start(0)).map_err(broken)?;
            take_tar(Archive::new(file.take(BYTES_MAX + 1)), &mut taken)?;
        }
    }
    Ok(taken.passed_over)
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

fn take_tar<R: Read>(mut archive: Archive<R>, taken: &mut Taken<'_>) -> Result<(), String> {
    let broken = |cause: std::io::Error| format!("it is no tar archive, or was cut: {cause}");
    for entry in archive.entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        let path = entry.path().map_err(broken)?.into_owned();
        let (kind, size) = (entry.header().entry_type(), entry.size());
        let kind = match kind {
            EntryType::Directory | EntryType::XGlobalHeader => Kind::Folder,
            EntryType::Regular | EntryType::Continuous => Kind::File,
            _ => Kind::Other,
        };
        taken.take(&path, kind, size, &mut entry)?;
    }
    Ok(())
}

/// Takes files out of a zip archive, entry by entry: its list of entries is not held in memory.
fn take_zip(file: File, taken: &mut Taken<'_>) -> Result<(), String> {
    let broken = |cause: ZipError| format!("it is no zip archive, or was cut: {cause}");
    let mut archive = ZipIterable::try_new(BufReader::new(file), Config::default()).map_err(broken)?;
    let entries = archive.files().map_err(broken)?;
    while let Some(entry) = entries.next() {
        let entry = entry.map_err(broken)?;
        let mut entry = entry.with_reader(entries.reader_mut(), ZipReadOptions::new()).map_err(broken)?;
        let path = PathBuf::from(entry.name().map_err(broken)?.into_owned());
        let kind = match entry.unix_mode().map_or(0, |mode| mode & 0o170_000) {
            _ if entry.is_dir() => Kind::Folder,
            0 | 0o100_000 => Kind::File,
            _ => Kind::Other,
        };
        let size = entry.size();
        taken.take(&path, kind, size, &mut entry)?;
    }
    Ok(())
}

/// Kind of an entry of an archive.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
    /// Links, devices and pipes.
    Other,
}

/// Files that were taken out of an archive so far.
struct Taken<'a> {
    into: &'a Path,
    entries: usize,
    /// Bytes of all files, also of those that were not taken.
    bytes: u64,
    passed_over: usize,
}

impl Taken<'_> {
    /// Takes an entry if it is a file of a model.
    fn take(&mut self, path: &Path, kind: Kind, size: u64, content: &mut impl Read) -> Result<(), String> {
        self.entries += 1;
        if self.entries > ENTRIES_MAX {
            return Err(format!("it has more than {ENTRIES_MAX} entries"));
        }
        let shown = path.display();
        let plain = |part: Component<'_>| matches!(part, Component::Normal(_) | Component::CurDir);
        if !path.components().all(plain) {
            return Err(format!("it has an entry outside of itself: {shown:.100}"));
        }
        match kind {
            Kind::Folder => return Ok(()),
            Kind::File => {}
            Kind::Other => return Err(format!("it has an entry that is neither a file nor a folder: {shown:.100}")),
        }
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > BYTES_MAX {
            return Err("its files are larger than 4 GiB".to_owned());
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let Some(place) = place(path) else {
            self.passed_over += 1;
            return Ok(());
        };
        let Some(mut file) = create(self.into, &place)? else { return Ok(()) };
        // One byte more than was told is enough to know that it does not fit.
        let written = std::io::copy(&mut content.take(size.saturating_add(1)), &mut file)
            .map_err(|cause| format!("it is broken or was cut in {name:.100}: {cause}"))?;
        if written != size {
            return Err(format!("it is broken or was cut in {name:.100}"));
        }
        Ok(())
    }
}
