//! A call's journal: every event with its number, in memory and, as it happens, in `timeline.jsonl`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use ringer_media::call::Event;

use super::TimelineEntry;

/// Events so far.
#[derive(Debug, Default)]
pub(super) struct Journal {
    entries: Vec<TimelineEntry>,
    file: Option<BufWriter<File>>,
}

impl Journal {
    /// A journal that is also written to `path`.
    pub fn at(path: &Path) -> std::io::Result<Journal> {
        let file = Some(BufWriter::new(File::create(path)?));
        Ok(Journal { entries: Vec::new(), file })
    }

    /// Adds an event and gives it its number. Running text is numbered but not kept.
    pub fn add(&mut self, event: &Event) -> TimelineEntry {
        let entry = TimelineEntry {
            seq: self.entries.len() as u64,
            sample: event.sample,
            offset_ms: event.offset_ms(),
            event: event.name().into(),
            side: match event.side {
                ringer_media::call::Side::Dh => "dh".into(),
                ringer_media::call::Side::Agent => "agent".into(),
                ringer_media::call::Side::Engine => "engine".into(),
            },
            data: event.data(),
        };
        if entry.event != "transcript.partial" {
            self.entries.push(entry.clone());
            self.write(&entry);
        }
        entry
    }

    fn write(&mut self, entry: &TimelineEntry) {
        let Some(file) = &mut self.file else { return };
        // A full disk loses the file, not the call: the events stay in memory.
        let written = serde_json::to_writer(&mut *file, entry).map_err(std::io::Error::from);
        // The network's figures come each second: they are written with the next event.
        let flush = |file: &mut BufWriter<File>| if entry.event == "network" { Ok(()) } else { file.flush() };
        if written.and_then(|()| file.write_all(b"\n")).and_then(|()| flush(file)).is_err() {
            self.file = None;
        }
    }

    /// All events, in order of sample, then number.
    pub fn finish(mut self) -> Vec<TimelineEntry> {
        self.entries.sort_by_key(|entry| (entry.sample, entry.seq));
        self.entries
    }
}
