//! A call's journal: every event with its number, in memory and, as it happens, in `timeline.jsonl`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use ringer_media::call::{Event, What};

use super::TimelineEntry;

/// Bytes that wait for the file: some ten seconds of network figures, which alone do not leave at once.
const WAITING: usize = 1024;

/// Events so far, as the call told them: a hundred bytes each, where an entry has a thousand.
#[derive(Debug, Default)]
pub(super) struct Journal {
    events: Vec<Event>,
    file: Option<BufWriter<File>>,
}

impl Journal {
    /// A journal that is also written to `path`.
    pub fn at(path: &Path) -> std::io::Result<Journal> {
        let file = Some(BufWriter::with_capacity(WAITING, File::create(path)?));
        Ok(Journal { events: Vec::new(), file })
    }

    /// Adds an event and gives it its number. Running text is numbered but not kept.
    pub fn add(&mut self, event: Event) -> TimelineEntry {
        let entry = TimelineEntry { seq: self.events.len() as i64, event };
        if !matches!(entry.what, What::TranscriptPartial { .. }) {
            self.events.push(entry.event.clone());
            self.write(&entry);
        }
        entry
    }

    fn write(&mut self, entry: &TimelineEntry) {
        let Some(file) = &mut self.file else { return };
        // A full disk loses the file, not the call: the events stay in memory.
        let written = serde_json::to_writer(&mut *file, entry).map_err(std::io::Error::from);
        // The network's figures come each second: they are written with the next event.
        let flush = |file: &mut BufWriter<File>| if matches!(entry.what, What::Network { .. }) { Ok(()) } else { file.flush() };
        if written.and_then(|()| file.write_all(b"\n")).and_then(|()| flush(file)).is_err() {
            self.file = None;
        }
    }

    /// All events, in order of sample, then number.
    pub fn finish(self) -> Vec<TimelineEntry> {
        let numbered = self.events.into_iter().zip(0..);
        let mut entries: Vec<TimelineEntry> = numbered.map(|(event, seq)| TimelineEntry { seq, event }).collect();
        entries.sort_by_key(|entry| (entry.sample, entry.seq));
        entries
    }
}
