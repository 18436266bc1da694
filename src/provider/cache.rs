//! Synthesized sentences, kept by what made them. Bounded by bytes; the one not used for longest goes first.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;

/// A shared cache of audio.
pub(super) struct SpeechCache {
    bytes_max: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    entries: HashMap<Arc<str>, (Arc<[i16]>, u64)>,
    by_use: BTreeMap<u64, Arc<str>>,
    uses: u64,
    bytes: usize,
}

impl SpeechCache {
    /// Holds at most `bytes_max` bytes of audio and keys.
    pub(super) fn new(bytes_max: usize) -> SpeechCache {
        SpeechCache { bytes_max, inner: Mutex::default() }
    }

    /// Returns the audio kept under `key`, and marks it as used last.
    pub(super) fn get(&self, key: &str) -> Option<Arc<[i16]>> {
        let mut inner = self.inner.lock();
        let now = inner.uses;
        let (name, (pcm, used)) = inner.entries.get_key_value(key)?;
        let (name, pcm, used) = (name.clone(), pcm.clone(), *used);
        inner.by_use.remove(&used);
        inner.by_use.insert(now, name.clone());
        inner.entries.insert(name, (pcm.clone(), now));
        inner.uses += 1;
        Some(pcm)
    }

    /// Keeps `pcm`, unless it alone is larger than a quarter of the cache.
    pub(super) fn put(&self, key: &str, pcm: &Arc<[i16]>) {
        let size = |key: &str, pcm: &[i16]| key.len() + 2 * pcm.len();
        if size(key, pcm) > self.bytes_max / 4 {
            return;
        }
        let mut inner = self.inner.lock();
        let (name, now): (Arc<str>, _) = (key.into(), inner.uses);
        inner.uses += 1;
        inner.bytes += size(key, pcm);
        inner.by_use.insert(now, name.clone());
        if let Some((old, used)) = inner.entries.insert(name, (pcm.clone(), now)) {
            inner.by_use.remove(&used);
            inner.bytes -= size(key, &old);
        }
        while inner.bytes > self.bytes_max {
            let Some((_, oldest)) = inner.by_use.pop_first() else { return };
            if let Some((pcm, _)) = inner.entries.remove(&oldest) {
                inner.bytes -= size(&oldest, &pcm);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_used_goes_first_and_the_size_is_bounded() {
        let cache = SpeechCache::new(2020);
        let clip: Arc<[i16]> = vec![1; 240].into();
        for key in ["a", "b", "c", "d"] {
            cache.put(key, &clip);
        }
        assert!(cache.get("a").is_some());
        cache.put("e", &clip);
        let kept = ["a", "b", "c", "d", "e"].map(|key| cache.get(key).is_some());
        assert_eq!(kept, [true, false, true, true, true]);
        cache.put("large", &vec![0; 300].into());
        assert!(cache.get("large").is_none());
        cache.put("a", &clip);
        assert!(cache.inner.lock().bytes <= 2020);
    }
}
