//! Files of the data folder: which go to the store, their digests, and which are copies of what it holds.

use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ringer_base::error::Result;
use sha2::{Digest, Sha256};
use tokio::io::AsyncReadExt;

use super::{MADE_OF_OTHERS, local_fault};

/// Bytes that are read at once.
const PIECE: usize = 256 * 1024;

/// Returns the paths below the data folder of the files of an owner that go to the store, in order. Files in folders
/// within it are made of rows and stay.
pub(super) async fn files_of(data: &Path, owner: &str) -> Result<Vec<String>> {
    let folder = data.join(owner);
    match tokio::fs::metadata(&folder).await {
        Ok(found) if found.is_file() => return Ok(vec![owner.to_owned()]),
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(local_fault(&folder, error)),
    }
    let mut names = names_in(&folder).await?;
    names.retain(|name| !MADE_OF_OTHERS.iter().any(|ending| name.ends_with(ending)));
    names.sort();
    Ok(names.into_iter().map(|name| format!("{owner}/{name}")).collect())
}

/// Returns the names of the files of a folder; empty if it does not exist.
pub(super) async fn names_in(folder: &Path) -> Result<Vec<String>> {
    let mut entries = match tokio::fs::read_dir(folder).await {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(local_fault(folder, error)),
    };
    let mut names = Vec::new();
    while let Some(entry) = entries.next_entry().await.map_err(|error| local_fault(folder, error))? {
        let is_file = entry.file_type().await.is_ok_and(|kind| kind.is_file());
        names.extend(entry.file_name().into_string().ok().filter(|_| is_file));
    }
    Ok(names)
}

/// Returns the size and the SHA-256 of a file; `None`: it is gone.
pub(super) async fn digest(path: &Path) -> Result<Option<(u64, String)>> {
    let mut file = match tokio::fs::File::open(path).await {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(local_fault(path, error)),
    };
    let (mut hash, mut bytes, mut piece) = (Sha256::new(), 0, vec![0; PIECE]);
    loop {
        let count = file.read(&mut piece).await.map_err(|error| local_fault(path, error))?;
        if count == 0 {
            return Ok(Some((bytes, hex::encode(hash.finalize()))));
        }
        hash.update(&piece[..count]);
        bytes += count as u64;
    }
}

fn time_of(ms: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(ms.unsigned_abs())
}

/// Notes on a file that the store holds it as it is: it has the time of its storing. A later change gives it another.
pub(super) async fn mark_stored(path: &Path, stored_ms: i64) -> Result<()> {
    let place = path.to_owned();
    let marked = tokio::task::spawn_blocking(move || {
        std::fs::File::options().append(true).open(&place)?.set_modified(time_of(stored_ms))
    });
    match marked.await {
        Ok(Ok(())) => Ok(()),
        // It was deleted meanwhile.
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Ok(Err(error)) => Err(local_fault(path, error)),
        Err(error) => Err(ringer_base::error::Error::internal(error)),
    }
}

/// True if a file is as it was stored at `stored_ms`.
pub(super) fn is_stored(found: &std::fs::Metadata, stored_ms: i64) -> bool {
    found.modified().is_ok_and(|at| at == time_of(stored_ms))
}
