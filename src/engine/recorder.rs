//! The one thread that writes audio files. Media threads push frames into a ring a track; this thread moves them to disk every
//! 180 ms and refreshes each file's header with every second look: what a killed engine leaves can be read, and lacks at most a
//! second (the 500 ms in which a call may still put what it heard into its place are not yet in the ring).

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use ringer_media::frame::PER_MS;
use ringer_media::recording::{Layout, WAV_HEADER, wav_header};
use rtrb::{Consumer, Producer, RingBuffer};
use tokio::sync::oneshot;

use super::tally::Tally;

/// How often rings are emptied.
const EVERY: Duration = Duration::from_millis(180);
/// Audio after which a header tells of it: that of two looks, which may come a little early.
const HEADER_MS: u64 = 340;
/// What a ring holds: what comes between two looks at it, and 520 ms for which a disk may stall while a call goes on, or for what
/// was heard last, which a call hands out at its end.
const RING_MS: usize = 700;
/// What was sent waits longer: for what was heard at the same time.
const SENT_MS: usize = RING_MS + 520;
/// Files that may wait to be opened.
const WAITING: usize = 4096;

/// Samples of the rings of one call, beside that of early media.
pub(super) const RING_SAMPLES: usize = PER_MS as usize * (SENT_MS + 2 * RING_MS);

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

/// A file being written, and the writing ends of its channels' rings.
pub(super) struct Track<const CHANNELS: usize> {
    pub rings: [Producer<i16>; CHANNELS],
    pub file: Written,
}

/// A file that the recorder writes: its state, and a signal that it is closed.
pub(super) struct Written {
    pub path: PathBuf,
    pub layout: Layout,
    pub state: FileState,
    pub closed: oneshot::Receiver<()>,
}

#[derive(Debug)]
struct Order {
    path: PathBuf,
    layout: Layout,
    rings: Vec<Consumer<i16>>,
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

    /// A stereo file at `path`, made when its first samples come: what is sent, what is heard.
    pub fn stereo(&self, path: PathBuf) -> Track<2> {
        self.track(path, Layout::Stereo, [SENT_MS, RING_MS])
    }

    /// A file of one channel.
    pub fn mono(&self, path: PathBuf, layout: Layout) -> Track<1> {
        self.track(path, layout, [RING_MS])
    }

    fn track<const CHANNELS: usize>(&self, path: PathBuf, layout: Layout, ms: [usize; CHANNELS]) -> Track<CHANNELS> {
        let mut readers = Vec::with_capacity(CHANNELS);
        let rings = ms.map(|ms| {
            let (ring, reader) = RingBuffer::new(PER_MS as usize * ms);
            readers.push(reader);
            ring
        });
        let state = FileState::default();
        let (closed, is_closed) = oneshot::channel();
        let order = Order { path: path.clone(), layout, rings: readers, state: state.clone(), closed };
        if self.orders.try_send(order).is_err() {
            state.fail("the recorder has too many files waiting".into());
        }
        Track { rings, file: Written { path, layout, state, closed: is_closed } }
    }
}

fn run(orders: &Receiver<Order>, tally: &Tally) {
    let mut files: Vec<WavFile> = Vec::new();
    let mut room = Room::default();
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
        let waited = files.iter().map(WavFile::waiting).max().unwrap_or(0);
        tally.recorder_lag_ms.store(waited as u64 / PER_MS as u64, Ordering::Relaxed);
        files.retain_mut(|file| file.move_samples(&mut room));
    }
}

/// Scratch buffers, which grow as needed.
#[derive(Default)]
struct Room {
    channels: [Vec<i16>; 2],
    bytes: Vec<u8>,
}

struct WavFile {
    path: PathBuf,
    file: Option<File>,
    layout: Layout,
    rings: Vec<Consumer<i16>>,
    state: FileState,
    closed: Option<oneshot::Sender<()>>,
    /// Of each channel.
    samples: u64,
    /// Those of which the header on the disk tells.
    told: u64,
}

impl WavFile {
    fn new(order: Order) -> WavFile {
        WavFile {
            layout: order.layout,
            path: order.path,
            file: None,
            rings: order.rings,
            state: order.state,
            closed: Some(order.closed),
            samples: 0,
            told: 0,
        }
    }

    /// Samples that can be written: what all channels have.
    fn waiting(&self) -> usize {
        self.rings.iter().map(Consumer::slots).min().unwrap_or(0)
    }

    /// Writes what the rings hold, by way of `room`; false when the file is complete.
    fn move_samples(&mut self, room: &mut Room) -> bool {
        let ended = self.rings.iter().all(Consumer::is_abandoned);
        let count = self.waiting();
        for (ring, channel) in self.rings.iter_mut().zip(&mut room.channels) {
            channel.resize(channel.len().max(count), 0);
            // All of them are there.
            let _ = ring.pop_entire_slice(&mut channel[..count]);
        }
        let [first, second] = room.channels.each_ref().map(|channel| channel.iter().take(count));
        let length = 2 * count * self.rings.len();
        room.bytes.resize(room.bytes.len().max(length), 0);
        let bytes = &mut room.bytes[..length];
        if self.rings.len() == 1 {
            bytes.as_chunks_mut().0.iter_mut().zip(first).for_each(|(bytes, sample)| *bytes = sample.to_le_bytes());
        } else {
            for (bytes, (first, second)) in bytes.as_chunks_mut().0.iter_mut().zip(first.zip(second)) {
                let ([a, b], [c, d]) = (first.to_le_bytes(), second.to_le_bytes());
                *bytes = [a, b, c, d];
            }
        }
        self.samples += count as u64;
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
        let untold = self.samples - self.told;
        if untold >= HEADER_MS * PER_MS as u64 || self.told == 0 || (ended && untold > 0) {
            file.write_all_at(&wav_header(self.layout, self.samples), 0)?;
            self.told = self.samples;
        }
        Ok(())
    }
}

/// Cuts the file at `path` to `samples` samples in each channel; a shorter one, or none, stays as it is.
pub(super) fn cut(path: &Path, layout: Layout, samples: u64) -> std::io::Result<()> {
    let length = WAV_HEADER as u64 + 2 * samples * u64::from(layout.channels());
    let file = match File::options().write(true).open(path) {
        // Nothing was recorded.
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        file => file?,
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Header and samples of a file.
    fn read(path: &Path) -> (Vec<u8>, Vec<i16>) {
        let bytes = std::fs::read(path).expect("it was written");
        let (header, samples) = bytes.split_at(WAV_HEADER);
        let samples = samples.as_chunks().0.iter().map(|sample| i16::from_le_bytes(*sample)).collect();
        (header.to_vec(), samples)
    }

    #[test]
    fn channels_lie_beside_each_other_as_far_as_both_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let recorder = Recorder::start(Arc::new(Tally::default())).expect("a thread starts");
        let track = recorder.stereo(folder.path().join("a.wav"));
        let [mut sent, mut heard] = track.rings;
        sent.push_entire_slice(&[1, 2, 3, 4]).expect("there is room");
        heard.push_entire_slice(&[-1, -2, -3]).expect("there is room");
        drop((sent, heard));
        track.file.closed.blocking_recv().expect("it is closed");
        let path = &track.file.path;
        assert_eq!(read(path), (wav_header(Layout::Stereo, 3).to_vec(), vec![1, -1, 2, -2, 3, -3]));
        for (samples, left) in [(5, 3), (2, 2), (0, 0)] {
            cut(path, Layout::Stereo, samples).expect("it is cut");
            let (header, kept) = read(path);
            assert_eq!((header, kept.len()), (wav_header(Layout::Stereo, left).to_vec(), 2 * left as usize));
        }
        cut(&folder.path().join("never.wav"), Layout::Stereo, 0).expect("nothing is to be cut");
    }
}
