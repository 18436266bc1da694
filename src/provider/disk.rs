//! Speech kept on disk: a file a text, named by the hash of all that it follows from. Bounded by bytes; the oldest go
//! first.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use ringer_base::clock::new_id;
use ringer_media::pcm;
use sha2::{Digest, Sha256};

/// Bytes that are kept: 256 MiB, more than two hours.
const BYTES_MAX: u64 = 256 << 20;
/// Largest file: 5 minutes.
const FILE_BYTES_MAX: u64 = 10 << 20;
/// Bytes written between two looks at the whole folder.
const LOOK_BYTES: u64 = 16 << 20;

/// Version of the division of texts into clauses: speech of another one is not used.
const DIVISION: &str = "2|";

/// A folder of speech. What cannot be read or written is made anew each time.
pub(crate) struct DiskCache {
    folder: PathBuf,
    /// Bytes written since the folder was looked at.
    written: Arc<AtomicU64>,
}

impl DiskCache {
    /// Returns a cache in this folder, which need not exist.
    pub(crate) fn new(folder: PathBuf) -> DiskCache {
        DiskCache { folder, written: Arc::new(AtomicU64::new(LOOK_BYTES)) }
    }

    fn path(&self, key: &str) -> PathBuf {
        let digest = Sha256::new().chain_update(DIVISION).chain_update(key).finalize();
        self.folder.join(format!("{}.pcm", hex::encode(&digest[..20])))
    }

    /// Returns the samples that were put under `key`.
    pub(crate) fn get(&self, key: &str) -> Option<Arc<[i16]>> {
        let path = self.path(key);
        let bytes = std::fs::metadata(&path).ok()?.len();
        if bytes == 0 || bytes > FILE_BYTES_MAX || bytes % 2 != 0 {
            return None;
        }
        let bytes = std::fs::read(&path).ok()?;
        Some(pcm::from_bytes(&bytes).into())
    }

    /// Keeps `pcm` under `key`.
    pub(crate) fn store(&self, key: &str, pcm: Arc<[i16]>) {
        let bytes = 2 * pcm.len() as u64;
        if bytes == 0 || bytes > FILE_BYTES_MAX || std::fs::create_dir_all(&self.folder).is_err() {
            return;
        }
        let (path, draft) = (self.path(key), self.folder.join(format!(".{}", new_id())));
        let data = pcm::to_bytes(&pcm);
        let written = std::fs::write(&draft, data).and_then(|()| std::fs::rename(&draft, &path));
        if written.is_err() {
            let _ = std::fs::remove_file(&draft);
            return;
        }
        if self.written.fetch_add(bytes, Ordering::Relaxed) + bytes > LOOK_BYTES {
            self.written.store(0, Ordering::Relaxed);
            self.shrink(BYTES_MAX);
        }
    }

    /// Removes the oldest files until at most `bytes_max` are left.
    fn shrink(&self, bytes_max: u64) {
        let Ok(entries) = std::fs::read_dir(&self.folder) else { return };
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .flatten()
            .filter_map(|entry| {
                let file_metadata = entry.metadata().ok().filter(std::fs::Metadata::is_file)?;
                Some((file_metadata.modified().ok()?, file_metadata.len(), entry.path()))
            })
            .collect();
        files.sort();
        let mut bytes: u64 = files.iter().map(|(_, bytes, _)| bytes).sum();
        for (_, size, path) in files {
            if bytes <= bytes_max {
                return;
            }
            if std::fs::remove_file(path).is_ok() {
                bytes -= size;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_found_again_and_the_folder_is_bounded() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = DiskCache::new(folder.path().join("speech"));
        let pcm: Arc<[i16]> = vec![1, -2, 300].into();
        assert_eq!(cache.get("a"), None);
        cache.store("a", pcm.clone());
        cache.store("b", pcm.clone());
        let again = DiskCache::new(folder.path().join("speech"));
        assert_eq!(again.get("a"), Some(pcm.clone()));
        // A file that was cut is none.
        std::fs::write(cache.path("b"), [1]).expect("writable");
        assert_eq!(cache.get("b"), None);
        cache.shrink(0);
        assert_eq!(cache.get("a"), None);
    }
}
