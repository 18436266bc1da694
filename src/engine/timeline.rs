//! A call's journal: every event with its number. Where the call has a folder they are in `timeline.jsonl`, as they
//! happen, and nowhere else; else in memory.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use ringer_media::call::{Event, EventKind, Side};

use super::TimelineEntry;

/// Bytes that wait for the file: some six seconds of network figures, which alone do not leave at once.
const WAITING: usize = 1024;
/// Bytes for which memory is kept once they are written; one event may have more.
const ROOM: usize = 4 * WAITING;

/// Moves what lies behind the end of a call to it: the other side had left by then, which was believed later. Words of
/// this side that began behind the end are taken out, with everything else of this side. `timeline` is in order.
pub(super) fn cut_behind_end(timeline: &mut Vec<TimelineEntry>) {
    let is_end = |entry: &&TimelineEntry| matches!(entry.reading(), EventKind::Ended { .. });
    let Some(end) = timeline.iter().find(is_end).map(|entry| entry.sample) else { return };
    let is_late = |entry: &TimelineEntry| entry.sample > end;
    if !timeline.iter().any(is_late) {
        return;
    }
    let begun: BTreeSet<u32> = (timeline.iter().filter(|entry| !is_late(entry)))
        .filter_map(|entry| match entry.reading() {
            EventKind::SpeechStarted { utterance_id, .. } => Some(*utterance_id),
            _ => None,
        })
        .collect();
    timeline.retain(|entry| match entry.reading() {
        EventKind::SpeechEnded { utterance_id, .. } => begun.contains(utterance_id),
        _ => !is_late(entry) || entry.event.side != Side::Dh,
    });
    timeline.iter_mut().for_each(|entry| entry.event.sample = entry.sample.min(end));
    timeline.sort_by_key(|entry| (entry.sample, is_end(&entry), entry.seq));
}

/// The events so far. A file that fails loses nothing: what it has not taken, and all that follows, stays in memory.
#[derive(Debug)]
pub(super) struct Journal<F = File> {
    /// Number of the next event.
    next: i64,
    /// Events that are in no file.
    kept: Vec<TimelineEntry>,
    file: Option<Written<F>>,
}

/// The file, and what waits for it.
#[derive(Debug)]
struct Written<F> {
    file: F,
    /// Bytes that the file has taken, whole lines.
    taken: u64,
    /// Lines that it has not taken yet, and their events.
    lines: Vec<u8>,
    waiting: Vec<TimelineEntry>,
    /// Error after which nothing more is written.
    fault: Option<std::io::Error>,
}

impl<F> Default for Journal<F> {
    fn default() -> Journal<F> {
        Journal { next: 0, kept: Vec::new(), file: None }
    }
}

impl Journal {
    /// Makes a journal in a new file at `path`.
    ///
    /// # Errors
    /// The file cannot be made.
    pub(crate) fn at(path: &Path) -> std::io::Result<Journal> {
        let file = File::options().read(true).write(true).create(true).truncate(true).open(path)?;
        Ok(Journal::of(file))
    }
}

impl<F: Read + Write + Seek> Journal<F> {
    fn of(file: F) -> Journal<F> {
        let written = Written { file, taken: 0, lines: Vec::new(), waiting: Vec::new(), fault: None };
        Journal { file: Some(written), ..Journal::default() }
    }

    /// Adds an event and gives it its number. Running text is numbered but not kept.
    pub(crate) fn add(&mut self, event: Event) -> TimelineEntry {
        let entry = TimelineEntry { seq: self.next, event };
        if !matches!(entry.what, EventKind::TranscriptPartial { .. }) {
            self.next += 1;
            self.keep(entry.clone());
        }
        entry
    }

    fn keep(&mut self, entry: TimelineEntry) {
        let Some(written) = self.file.as_mut().filter(|written| written.fault.is_none()) else {
            return self.kept.push(entry);
        };
        if let Err(fault) = written.add(entry) {
            self.kept.append(&mut written.waiting);
            written.fault = Some(fault);
        }
    }

    /// Returns all events in order of sample, then number. What a user should know of the file goes to `warnings`.
    pub(crate) fn finish(mut self, warnings: &mut Vec<String>) -> Vec<TimelineEntry> {
        let mut entries = std::mem::take(&mut self.kept);
        if let Some(mut written) = self.file.take() {
            if written.fault.is_none() {
                written.fault = written.flush().err();
            }
            entries.append(&mut written.waiting);
            if let Some(fault) = &written.fault {
                warnings.push(format!("timeline.jsonl ends early: it could not be written: {fault}"));
            }
            let read = written.read_into(&mut entries);
            let found: BTreeSet<i64> = entries.iter().map(|entry| entry.seq).collect();
            let missing = self.next - found.len() as i64;
            if missing > 0 {
                let why = read.err().map(|fault| format!(": {fault}")).unwrap_or_default();
                warnings.push(format!("{missing} events of the timeline could not be read back{why}"));
            }
        }
        entries.sort_by_key(|entry| (entry.sample, entry.seq));
        entries
    }

    /// Returns the bytes that are held for events, without the text inside them.
    #[cfg(test)]
    fn capacity(&self) -> usize {
        let entries = |entries: &Vec<TimelineEntry>| entries.capacity() * size_of::<TimelineEntry>();
        let written = self.file.as_ref().map_or(0, |file| file.lines.capacity() + entries(&file.waiting));
        entries(&self.kept) + written
    }
}

impl<F: Read + Write + Seek> Written<F> {
    /// Takes an event; it leaves at once, unless it tells the network's figures, which come each second.
    fn add(&mut self, entry: TimelineEntry) -> std::io::Result<()> {
        let waits = matches!(entry.what, EventKind::Network { .. });
        let begins = self.lines.len();
        let line = serde_json::to_writer(&mut self.lines, &entry).map_err(std::io::Error::from);
        self.waiting.push(entry);
        if let Err(fault) = line {
            self.lines.truncate(begins);
            return Err(fault);
        }
        self.lines.push(b'\n');
        if waits && self.lines.len() < WAITING { Ok(()) } else { self.flush() }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.file.write_all(&self.lines)?;
        self.file.flush()?;
        self.taken += self.lines.len() as u64;
        self.lines.clear();
        self.lines.shrink_to(ROOM);
        self.waiting.clear();
        Ok(())
    }

    /// Reads back what the file has taken.
    fn read_into(mut self, entries: &mut Vec<TimelineEntry>) -> std::io::Result<()> {
        self.file.seek(SeekFrom::Start(0))?;
        for line in BufReader::new(self.file.take(self.taken)).split(b'\n') {
            entries.extend(serde_json::from_slice::<TimelineEntry>(&line?).ok());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Error;

    use ringer_media::call::Side;

    use super::*;

    fn network(second: i64) -> Event {
        let received = 50 * second as u64;
        let what = EventKind::Network { received, lost: 1, late: 0, jitter_ms: 0.125 * second as f64 };
        Event { sample: 16_000 * second, side: Side::Engine, what }
    }

    fn note(sample: i64, text: &str) -> Event {
        let what = EventKind::Note { code: "recognizer_late".into(), why: text.into() };
        Event { sample, side: Side::Engine, what }
    }

    /// File that takes a number of bytes, and can give them back.
    #[derive(Debug)]
    struct Disk {
        file: File,
        takes: usize,
        gives: usize,
    }

    impl Disk {
        fn new(takes: usize, gives: usize) -> Disk {
            Disk { file: tempfile::tempfile().expect("a file"), takes, gives }
        }
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            if self.takes == 0 {
                return Err(Error::other("no room"));
            }
            let taken = self.file.write(&bytes[..bytes.len().min(self.takes)])?;
            self.takes -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            self.file.flush()
        }
    }

    impl Read for Disk {
        fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
            if self.gives == 0 {
                return Err(Error::other("a bad sector"));
            }
            let most = bytes.len().min(self.gives);
            let given = self.file.read(&mut bytes[..most])?;
            self.gives -= given;
            Ok(given)
        }
    }

    impl Seek for Disk {
        fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
            self.file.seek(to)
        }
    }

    /// Returns a call of 200 s in which something is said every 20 s, told out of order.
    fn events() -> Vec<Event> {
        let mut events: Vec<Event> = (0..200).map(network).collect();
        (0..10).for_each(|n| events.insert(21 * n as usize, note(320_000 * n - 5, "late")));
        events
    }

    fn finish<F: Read + Write + Seek>(mut journal: Journal<F>) -> (Vec<TimelineEntry>, Vec<String>) {
        events().into_iter().for_each(|event| _ = journal.add(event));
        let mut warnings = Vec::new();
        (journal.finish(&mut warnings), warnings)
    }

    #[test]
    fn what_lies_behind_the_end_is_moved_to_it() {
        use ringer_media::call::{Kind, Side};
        let started = |utterance_id| EventKind::SpeechStarted { utterance_id, text: "a".into(), kind: Kind::Turn };
        let ended = |utterance_id: u32| {
            let data = serde_json::json!({ "utterance_id": utterance_id, "text": "a", "kind": "turn" });
            Event::from_wire(0, "speech.ended", "dh", data).what
        };
        let note = || EventKind::Note { code: "n".into(), why: String::new() };
        let hung_up = EventKind::Ended {
            by: "AGENT".into(),
            reason: "agent_hangup".into(),
            sip_code: None,
            q850_cause: None,
            close_code: None,
        };
        let entries = [
            (100, Side::Dh, started(1)),
            (900, Side::Agent, note()),
            (1200, Side::Dh, ended(1)),
            (1300, Side::Dh, started(2)),
            (1400, Side::Dh, note()),
            (1500, Side::Agent, note()),
            (1000, Side::Dh, ended(2)),
            (1000, Side::Engine, hung_up),
        ];
        let entry = |(seq, (sample, side, what))| TimelineEntry { seq, event: Event { sample, side, what } };
        let mut timeline: Vec<TimelineEntry> = (0..).zip(entries).map(entry).collect();
        timeline.sort_by_key(|entry| (entry.sample, entry.seq));
        cut_behind_end(&mut timeline);
        let left: Vec<(i64, i64)> = timeline.iter().map(|entry| (entry.seq, entry.sample)).collect();
        assert_eq!(left, [(0, 100), (1, 900), (2, 1000), (5, 1000), (7, 1000)]);
        let mut whole = in_order();
        cut_behind_end(&mut whole);
        assert_eq!(whole, in_order(), "a call that goes on is left as it is");
    }

    fn in_order() -> Vec<TimelineEntry> {
        let mut all: Vec<_> = (0..).zip(events()).map(|(seq, event)| TimelineEntry { seq, event }).collect();
        all.sort_by_key(|entry| (entry.sample, entry.seq));
        all
    }

    #[test]
    fn a_long_call_with_a_folder_holds_no_more_than_a_short_one() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("timeline.jsonl");
        let mut journal = Journal::at(&path).expect("a file");
        let mut held = Vec::new();
        for second in 0..10_000 {
            journal.add(network(second));
            if second % 100 == 0 {
                journal.add(note(16_000 * second, &"so it goes ".repeat(100)));
            }
            held.push(journal.capacity());
        }
        let most = held.iter().max().copied().unwrap_or_default();
        assert!(most <= 8 * 1024, "{most} bytes");
        let mut warnings = Vec::new();
        let entries = journal.finish(&mut warnings);
        assert_eq!((entries.len(), warnings), (10_100, vec![]));
        let line = |line: &str| serde_json::from_str::<TimelineEntry>(line).expect("an entry");
        let written = std::fs::read_to_string(&path).expect("the file");
        assert_eq!(written.lines().map(line).collect::<Vec<_>>(), entries);
    }

    #[test]
    fn with_and_without_a_folder_the_timeline_is_the_same() {
        assert_eq!(finish(Journal::<File>::default()), (in_order(), vec![]));
        assert_eq!(finish(Journal::of(Disk::new(usize::MAX, usize::MAX))), (in_order(), vec![]));
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("timeline.jsonl");
        let journal = Journal::at(&path).expect("a file");
        // Whoever removes the folder meanwhile takes nothing from the report.
        std::fs::remove_file(&path).expect("it is there");
        assert_eq!(finish(journal), (in_order(), vec![]));
    }

    #[test]
    fn a_disk_that_fails_loses_nothing_and_is_told() {
        // At once, in the middle of a line, and at the last one.
        let whole: usize =
            in_order().iter().map(|entry| serde_json::to_vec(entry).map_or(0, |line| line.len() + 1)).sum();
        for takes in [0, 1, 500, 5000, whole - 1] {
            let (entries, warnings) = finish(Journal::of(Disk::new(takes, usize::MAX)));
            assert_eq!(entries, in_order(), "{takes}");
            assert_eq!(warnings, ["timeline.jsonl ends early: it could not be written: no room"], "{takes}");
        }
    }

    #[test]
    fn what_cannot_be_read_back_is_told() {
        let (entries, warnings) = finish(Journal::of(Disk::new(usize::MAX, 0)));
        assert_eq!((entries.len(), warnings.len()), (0, 1), "{warnings:?}");
        assert_eq!(warnings[0], "210 events of the timeline could not be read back: a bad sector");
        let (entries, warnings) = finish(Journal::of(Disk::new(usize::MAX, 9000)));
        let missing = 210 - entries.len();
        assert!((1..210).contains(&missing) && entries.iter().all(|entry| in_order().contains(entry)));
        assert_eq!(warnings, [format!("{missing} events of the timeline could not be read back: a bad sector")]);
    }

    #[test]
    fn a_timeline_of_an_earlier_release_is_written_back_to_the_byte() {
        let kept = include_str!("../../fixtures/timelines/call.json");
        let entries: Vec<TimelineEntry> = serde_json::from_str(kept).expect("a timeline");
        let unknown = entries.iter().filter(|entry| matches!(entry.what, EventKind::Unknown(_))).count();
        assert_eq!((entries.len() > 50, unknown), (true, 0));
        assert_eq!(serde_json::to_string(&entries).expect("it is written"), kept);
    }

    #[test]
    fn running_text_takes_no_number() {
        let mut journal = Journal::<File>::default();
        let partial =
            || Event { sample: 5, side: Side::Agent, what: EventKind::TranscriptPartial { text: "so".into() } };
        let numbers = [partial(), network(1), partial(), network(2)].map(|event| journal.add(event).seq);
        assert_eq!(numbers, [0, 0, 1, 1]);
        assert_eq!(journal.finish(&mut Vec::new()).len(), 2);
    }
}
