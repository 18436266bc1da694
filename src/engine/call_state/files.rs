//! The files of one call.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use ringer_media::call::{Event, TimelineEntry};
use ringer_media::recording::Layout;

use super::most::{SignalledEvents, SignallingLog};
use crate::packet_tap::PacketTap;
use crate::recorder::{Recorder, Track, Written};
use crate::recording_ring::RecordingRings;
use crate::timeline::Journal;
use crate::{CALLER_CLEAN, CAPTURED, EARLY_MEDIA, JOURNAL, RECORDING};

/// The files of one call.
pub(crate) struct Files {
    tracks: Option<Tracks>,
    packet_tap: Option<PacketTap>,
    rest: OpenFiles,
}

/// Files that hold audio of a call.
struct Tracks {
    recording: Track<2>,
    clean: Track<1>,
    early: Track<1>,
}

/// Files of a call that the task keeps open.
pub(crate) struct OpenFiles {
    pub(super) journal: Journal,
    pub(super) log: SignallingLog,
    pub(super) signalled: SignalledEvents,
    pub(super) recording: Vec<(Written, Layout)>,
    /// The captured datagrams, and how many are missing.
    pub(super) capture: Option<(Written, Arc<AtomicU64>)>,
    pub(crate) warnings: Vec<String>,
}

impl Files {
    /// Opens the files of a call of the media thread `shard` in `folder`, its signalling named `log`; what cannot be
    /// opened is a warning, not an error.
    pub(crate) fn open(recorder: &Recorder, shard: usize, folder: Option<&Path>, captured: bool, log: &str) -> Files {
        let mut rest = OpenFiles {
            journal: Journal::default(),
            log: SignallingLog::default(),
            signalled: SignalledEvents::default(),
            recording: Vec::new(),
            capture: None,
            warnings: Vec::new(),
        };
        let Some(folder) = folder else { return Files { tracks: None, packet_tap: None, rest } };
        if let Err(error) = std::fs::create_dir_all(folder) {
            rest.warnings.push(format!("nothing is recorded: {}: {error}", folder.display()));
            return Files { tracks: None, packet_tap: None, rest };
        }
        match Journal::at(&folder.join(JOURNAL)) {
            Ok(journal) => rest.journal = journal,
            Err(error) => rest.warnings.push(format!("the timeline is not written to {}: {error}", folder.display())),
        }
        rest.log = SignallingLog::new(std::fs::File::create(folder.join(log)).ok());
        let tracks = Tracks {
            recording: recorder.stereo(shard, folder.join(RECORDING)),
            clean: recorder.mono(shard, folder.join(CALLER_CLEAN), Layout::CallerClean),
            early: recorder.mono(shard, folder.join(EARLY_MEDIA), Layout::Agent),
        };
        let packet_tap = captured.then(|| {
            let (ring, file) = recorder.bytes(folder.join(CAPTURED));
            let missing = Arc::<AtomicU64>::default();
            rest.capture = Some((file, missing.clone()));
            PacketTap::new(ring, missing)
        });
        Files { tracks: Some(tracks), packet_tap, rest }
    }

    /// Returns the parts for the task, and those for the media thread.
    pub(crate) fn split(self) -> (OpenFiles, RecordingRings, Option<PacketTap>) {
        let Files { tracks, packet_tap, mut rest } = self;
        let Some(Tracks { recording, clean, early }) = tracks else {
            return (rest, RecordingRings::default(), packet_tap);
        };
        rest.recording = vec![(recording.file, recording.layout), (clean.file, clean.layout)];
        let ([sent, heard], [clean], [early]) = (recording.rings, clean.rings, early.rings);
        (rest, RecordingRings { sent, heard, clean, early }, packet_tap)
    }
}

impl OpenFiles {
    /// Writes a message into the log of the signalling.
    pub(crate) fn write_log(&mut self, at_ms: i64, message: &str) {
        self.log.write(at_ms, message);
    }

    /// Adds an event to the journal; `None` for one of those that the other side causes without end.
    pub(crate) fn add(&mut self, event: Event) -> Option<TimelineEntry> {
        self.signalled.take(&event).then(|| self.journal.add(event))
    }

    /// Adds warnings about messages and events that were not kept.
    pub(crate) fn warn_of_missing(&mut self) {
        self.warnings.extend(self.log.warning());
        self.warnings.extend(self.signalled.warning());
    }

    /// Returns the journal, which is empty from now on.
    pub(crate) fn take_journal(&mut self) -> Journal {
        std::mem::take(&mut self.journal)
    }
}
