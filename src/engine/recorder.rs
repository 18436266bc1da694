//! The one thread that writes audio files. Media threads push frames into a ring a call; this thread moves them to disk every
//! 150 ms and refreshes each file's header with every second look: what a killed engine leaves can be read, and lacks at most a
//! second (the 500 ms in which a call may still put audio into its place are not yet in the ring).

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ringer_media::frame::RATE_HZ;
use ringer_media::recording::{Layout, WAV_HEADER, wav_header};
use rtrb::{Consumer, Producer, RingBuffer};
use tokio::sync::oneshot;

use super::tally::Tally;

/// How often rings are emptied.
const EVERY: Duration = Duration::from_millis(150);
/// Audio after which a header tells of it.
const HEADER_MS: u64 = 300;
/// What a ring holds: what comes between two looks at it, the 500 ms that a call hands out at its end, and 20 ms for a look that is
/// late. While a call goes on, a disk may stall for 520 ms.
const RING_MS: usize = 670;
/// Files that may wait to be opened.
const WAITING: usize = 4096;

/// Samples of a ring.
pub(super) const fn ring_samples(layout: Layout) -> usize {
    RATE_HZ as usize / 1000 * RING_MS * layout.channels() as usize
}

/// Opens files; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    orders: SyncSender<Order>,
}

/// What became of a file.
#[derive(Clone, Debug, Default)]
pub(super) struct FileState(Arc<Mutex<Option<String>>>);

impl FileState {
    /// Why the file is not complete.
    pub fn problem(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    fn fail(&self, why: String) {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get_or_insert(why);
    }
}

/// A file being written: the ring's writing end, its state, and a signal that it is closed.
pub(super) struct Track {
    pub ring: Producer<i16>,
    pub state: FileState,
    pub closed: oneshot::Receiver<()>,
}

#[derive(Debug)]
struct Order {
    path: PathBuf,
    layout: Layout,
    ring: Consumer<i16>,
    state: FileState,
    closed: oneshot::Sender<()>,
}

impl Recorder {
    /// Starts the thread; it ends when the last `Recorder` is dropped and all files are closed.
    pub fn start(tally: Arc<Tally>) -> std::io::Result<Recorder> {
        let (orders, waiting) = sync_channel(WAITING);
        thread::Builder::new().name("recorder".into()).spawn(move || run(&waiting, &tally))?;
        Ok(Recorder { orders })
    }

    /// A WAV file at `path`, made when its first samples come.
    pub fn track(&self, path: PathBuf, layout: Layout) -> Track {
        let (ring, reader) = RingBuffer::new(ring_samples(layout));
        let state = FileState::default();
        let (closed, is_closed) = oneshot::channel();
        let order = Order { path, layout, ring: reader, state: state.clone(), closed };
        if self.orders.try_send(order).is_err() {
            state.fail("the recorder has too many files waiting".into());
        }
        Track { ring, state, closed: is_closed }
    }
}

fn run(orders: &Receiver<Order>, tally: &Tally) {
    let mut files: Vec<WavFile> = Vec::new();
    let mut bytes = Vec::new();
    loop {
        match orders.recv_timeout(EVERY) {
            Ok(order) => {
                files.push(WavFile::new(order));
                while let Ok(order) = orders.try_recv() {
                    files.push(WavFile::new(order));
                }
                // A burst of new calls must not turn the loop into a busy one.
                thread::park_timeout(Duration::from_millis(20));
            }
            Err(RecvTimeoutError::Disconnected) if files.is_empty() => return,
            Err(RecvTimeoutError::Disconnected) => thread::park_timeout(EVERY),
            Err(RecvTimeoutError::Timeout) => {}
        }
        let waited = files.iter().map(WavFile::waiting_ms).max().unwrap_or(0);
        tally.recorder_lag_ms.store(waited, Ordering::Relaxed);
        files.retain_mut(|file| file.move_samples(&mut bytes));
    }
}

struct WavFile {
    path: PathBuf,
    file: Option<File>,
    layout: Layout,
    ring: Consumer<i16>,
    state: FileState,
    closed: Option<oneshot::Sender<()>>,
    samples: u64,
    /// Samples of which the header on the disk tells.
    told: u64,
}

impl WavFile {
    fn new(order: Order) -> WavFile {
        WavFile {
            layout: order.layout,
            path: order.path,
            file: None,
            ring: order.ring,
            state: order.state,
            closed: Some(order.closed),
            samples: 0,
            told: 0,
        }
    }

    /// How much the ring holds, milliseconds.
    fn waiting_ms(&self) -> u64 {
        let per_ms = RATE_HZ as usize / 1000 * self.layout.channels() as usize;
        (self.ring.slots() / per_ms) as u64
    }

    /// Writes what the ring holds, by way of `bytes`; false when the file is complete.
    fn move_samples(&mut self, bytes: &mut Vec<u8>) -> bool {
        let ended = self.ring.is_abandoned();
        bytes.clear();
        if let Ok(chunk) = self.ring.read_chunk(self.ring.slots()) {
            let (first, second) = chunk.as_slices();
            bytes.resize(2 * (first.len() + second.len()), 0);
            let (head, tail) = bytes.split_at_mut(2 * first.len());
            for (bytes, samples) in [(head, first), (tail, second)] {
                for (bytes, sample) in bytes.chunks_exact_mut(2).zip(samples) {
                    bytes.copy_from_slice(&sample.to_le_bytes());
                }
            }
            chunk.commit_all();
        }
        self.samples += (bytes.len() / 2) as u64;
        if self.state.problem().is_none()
            && let Err(error) = self.write(bytes, ended)
        {
            self.state.fail(format!("{}: {error}", self.path.display()));
        }
        if let Some(closed) = self.closed.take_if(|_| ended) {
            let _ = closed.send(());
        }
        !ended
    }

    fn write(&mut self, bytes: &[u8], ended: bool) -> std::io::Result<()> {
        if self.samples == 0 {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            empty => empty.insert(create(&self.path, self.layout)?),
        };
        file.write_all(bytes)?;
        let frames = |samples: u64| samples / u64::from(self.layout.channels());
        let untold = frames(self.samples - self.told);
        if untold >= HEADER_MS * u64::from(RATE_HZ) / 1000 || self.told == 0 || (ended && untold > 0) {
            file.write_all_at(&wav_header(self.layout, frames(self.samples)), 0)?;
            self.told = self.samples;
        }
        Ok(())
    }
}

/// Cuts the file at `path` to `samples` samples in each channel; a shorter one stays as it is.
pub(super) fn cut(path: &Path, layout: Layout, samples: u64) -> std::io::Result<()> {
    let length = WAV_HEADER as u64 + 2 * samples * u64::from(layout.channels());
    let file = File::options().write(true).open(path)?;
    if file.metadata()?.len() > length {
        file.set_len(length)?;
        file.write_all_at(&wav_header(layout, samples), 0)?;
    }
    Ok(())
}

fn create(path: &Path, layout: Layout) -> std::io::Result<File> {
    let mut file = File::create(path)?;
    file.write_all(&wav_header(layout, 0))?;
    Ok(file)
}
