//! The one thread that writes the large files of calls. Media threads push frames into a ring a track, and captured
//! datagrams into one of bytes; this thread moves them to disk every 180 ms and refreshes a recording's header every
//! second time. Recordings of a killed engine can be read, and lack at most a second. The last 500 ms, in which a call
//! may still reorder received audio, are not yet in the ring.
//!
//! Writing every 360 ms with the header each time saved 0.1 to 0.4 us a call and tick, for 17 KB more a call. Sent
//! audio skips the 500 ms window: a third fewer cache lines and 20 KB less a call.
//!
//! A fifth of the files is written at a time. What waits of all calls is then near to the mean, which is 800 ms a call
//! in three tracks (26 KB), instead of 1060 ms at once (34 KB).

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use ringer_media::frame::PER_MS;
use ringer_media::pcm;
use ringer_media::recording::{Layout, WAV_HEADER, wav_header};
use rtrb::{Consumer, Producer, RingBuffer};
use tokio::sync::oneshot;

use super::counters::Counters;
use super::recording_blocks::{BlockReserve, BlockReturn, BlockShare, Blocks, recording_blocks};
use super::recording_ring::{RecordingRing, TrackReader, recording_track};

/// Interval at which a file's rings are emptied.
const EVERY: Duration = Duration::from_millis(180);
/// Parts of the files, emptied one after the other. A call has three or four files, which are in different parts.
const PARTS: usize = 5;
/// Audio after which a header tells of it: that of two looks, which may come a little early.
const HEADER_MS: u64 = 340;
/// Frames that may wait in a track: 760 ms. It covers the time between two looks and a disk that stalls for 520 ms, or
/// the rest of a call's audio at its end, and gaps.
const RING_FRAMES: usize = 38;
/// Frames that may wait in the track of sent audio, which waits for the audio received at the same time.
const SENT_FRAMES: usize = RING_FRAMES + 26;
/// Frames that may wait in the tracks of one call, beside that of early media.
pub(super) const CALL_FRAMES: usize = SENT_FRAMES + 2 * RING_FRAMES;
/// Largest number of samples of a channel that are written at once (2 s).
const MOST_AT_ONCE: usize = 2000 * PER_MS as usize;
/// Length of a ring of bytes: 700 ms of datagrams of both directions in the widest codec, several times over.
const RING_BYTES: usize = 128 * 1024;
/// Files that may wait to be opened.
const WAITING: usize = 4096;

/// Opens files; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Recorder {
    orders: SyncSender<Growing>,
    /// Memory for the audio of each media thread.
    reserves: Arc<[BlockReserve]>,
}

/// First error of a file's writing; `None` while all went well.
#[derive(Clone, Debug, Default)]
pub(super) struct FileState(Arc<Mutex<Option<String>>>);

impl FileState {
    /// Returns the reason why the file is not complete, if it is not.
    pub(crate) fn problem(&self) -> Option<String> {
        self.0.lock().clone()
    }

    fn fail(&self, why: String) {
        self.0.lock().get_or_insert(why);
    }
}

/// A file being written, and the writing ends of its channels' rings.
pub(super) struct Track<const CHANNELS: usize> {
    pub rings: [RecordingRing; CHANNELS],
    pub layout: Layout,
    pub file: Written,
}

/// A file that the recorder writes: its state, and a signal that it is closed.
pub(super) struct Written {
    pub path: PathBuf,
    pub state: FileState,
    pub closed: oneshot::Receiver<()>,
}

impl Recorder {
    /// Starts the thread; it ends when the last `Recorder` is dropped and all files are closed. Returns the memory of
    /// each of `shards` media threads, too.
    pub(crate) fn start(counters: Arc<Counters>, shards: usize) -> std::io::Result<(Recorder, Vec<Blocks>)> {
        let (orders, waiting) = sync_channel(WAITING);
        let (mut blocks, mut returns, mut reserves) = (Vec::new(), Vec::new(), Vec::new());
        for (free, back, reserve) in (0..shards).map(|_| recording_blocks()) {
            blocks.push(free);
            returns.push(back);
            reserves.push(reserve);
        }
        thread::Builder::new().name("recorder".into()).spawn(move || run(&waiting, &counters, &mut returns))?;
        Ok((Recorder { orders, reserves: reserves.into() }, blocks))
    }

    /// Returns the bytes that are reserved for audio and were never used, which take addresses alone.
    pub(crate) fn unused_bytes(&self) -> usize {
        self.reserves.iter().map(BlockReserve::unused_bytes).sum()
    }

    /// Returns a stereo file at `path`, made when its first samples come: what is sent, what is heard. The media thread
    /// `shard` fills it.
    pub(crate) fn stereo(&self, shard: usize, path: PathBuf) -> Track<2> {
        self.track(shard, path, Layout::Stereo, [SENT_FRAMES, RING_FRAMES])
    }

    /// Returns a file of one channel.
    pub(crate) fn mono(&self, shard: usize, path: PathBuf, layout: Layout) -> Track<1> {
        self.track(shard, path, layout, [RING_FRAMES])
    }

    fn track<const CHANNELS: usize>(
        &self,
        shard: usize,
        path: PathBuf,
        layout: Layout,
        frames: [usize; CHANNELS],
    ) -> Track<CHANNELS> {
        let share = self.reserves[shard].share(frames.iter().sum());
        let mut readers = Vec::with_capacity(CHANNELS);
        let mut rings = frames.map(|frames| {
            let (ring, reader) = recording_track(frames);
            readers.push(reader);
            ring
        });
        let file =
            self.begin(path, Source::Sound { layout, tracks: readers, shard, _share: share, samples: 0, written: 0 });
        if file.state.problem().is_some() {
            // Nobody reads the tracks, and blocks would not come back.
            rings = std::array::from_fn(|_| RecordingRing::default());
        }
        Track { rings, layout, file }
    }

    /// Returns a file of the bytes that are pushed into the ring, made when its first bytes come.
    pub(crate) fn bytes(&self, path: PathBuf) -> (Producer<u8>, Written) {
        let (ring, reader) = RingBuffer::new(RING_BYTES);
        (ring, self.begin(path, Source::Bytes(reader)))
    }

    fn begin(&self, path: PathBuf, source: Source) -> Written {
        let state = FileState::default();
        let (closed, is_closed) = oneshot::channel();
        let growing = Growing {
            path: path.clone(),
            file: None,
            source,
            part: 0,
            waiting_samples: 0,
            state: state.clone(),
            closed: Some(closed),
        };
        if self.orders.try_send(growing).is_err() {
            state.fail("the recorder has too many files waiting".into());
        }
        Written { path, state, closed: is_closed }
    }
}

fn run(orders: &Receiver<Growing>, counters: &Counters, returns: &mut [BlockReturn]) {
    let mut files: Vec<Growing> = Vec::new();
    let mut scratch = Scratch::default();
    let (mut part, mut next_part) = (0, 0);
    loop {
        let order = match files.is_empty() {
            true => orders.recv().map_err(|_| RecvTimeoutError::Disconnected),
            false => orders.recv_timeout(EVERY / PARTS as u32),
        };
        match order {
            Ok(file) => {
                for file in std::iter::once(file).chain(orders.try_iter()) {
                    files.push(Growing { part: next_part, ..file });
                    next_part = (next_part + 1) % PARTS;
                }
                // A burst of new calls must not turn the loop into a busy one.
                thread::park_timeout(Duration::from_millis(20));
            }
            Err(RecvTimeoutError::Disconnected) if files.is_empty() => return,
            Err(RecvTimeoutError::Disconnected) => thread::park_timeout(EVERY / PARTS as u32),
            Err(RecvTimeoutError::Timeout) => {}
        }
        part = (part + 1) % PARTS;
        returns.iter_mut().for_each(BlockReturn::give_waiting);
        files.retain_mut(|file| file.part != part || file.go_on(&mut scratch, returns));
        let waited = files.iter().map(|file| file.waiting_samples).max().unwrap_or(0);
        counters.recorder_lag_ms.store(waited as u64 / PER_MS as u64, Ordering::Relaxed);
    }
}

/// Scratch buffers, which grow as needed.
#[derive(Default)]
struct Scratch {
    channels: [Vec<i16>; 2],
    bytes: Vec<u8>,
}

/// A file that grows.
#[derive(Debug)]
struct Growing {
    path: PathBuf,
    file: Option<File>,
    source: Source,
    /// Part of the files that it is written with.
    part: usize,
    /// Number of samples that waited at the last look.
    waiting_samples: usize,
    state: FileState,
    closed: Option<oneshot::Sender<()>>,
}

/// Source of a file's contents.
#[derive(Debug)]
enum Source {
    /// The channels of a WAV file.
    Sound {
        layout: Layout,
        tracks: Vec<TrackReader>,
        /// Media thread that fills the tracks.
        shard: usize,
        _share: BlockShare,
        /// Samples of each channel so far.
        samples: u64,
        /// Samples that the header on the disk states.
        written: u64,
    },
    /// Bytes as they are.
    Bytes(Consumer<u8>),
}

impl Source {
    fn has_ended(&self) -> bool {
        match self {
            Source::Sound { tracks, .. } => tracks.iter().all(TrackReader::has_ended),
            Source::Bytes(ring) => ring.is_abandoned(),
        }
    }

    /// Returns the samples that can be written: what all channels have.
    fn samples_waiting(&mut self) -> usize {
        match self {
            Source::Sound { tracks, .. } => tracks.iter_mut().map(TrackReader::waiting).min().unwrap_or(0),
            Source::Bytes(_) => 0,
        }
    }

    /// Takes `count` samples of each channel, or all bytes, out of the rings, as they lie in the file.
    fn take<'r>(&mut self, count: usize, scratch: &'r mut Scratch, returns: &mut [BlockReturn]) -> &'r [u8] {
        match self {
            Source::Sound { tracks, shard, samples, .. } => {
                *samples += count as u64;
                interleave(tracks, count, scratch, &mut returns[*shard])
            }
            Source::Bytes(ring) => {
                let count = ring.slots();
                let bytes = resize(&mut scratch.bytes, count);
                // All of them are there.
                let _ = ring.pop_entire_slice(bytes);
                bytes
            }
        }
    }

    /// Drops what one channel has and the other has not.
    fn drop_rest(&mut self, returns: &mut [BlockReturn]) {
        if let Source::Sound { tracks, shard, .. } = self {
            tracks.iter_mut().for_each(|track| track.drop_rest(&mut returns[*shard]));
        }
    }

    /// Returns the header that the file needs now: at its beginning, when it tells of too little, and at its end.
    fn header(&mut self, ended: bool) -> Option<[u8; WAV_HEADER]> {
        let Source::Sound { layout, samples, written, .. } = self else { return None };
        let untold = *samples - *written;
        let is_due = untold >= HEADER_MS * PER_MS as u64 || *written == 0 || (ended && untold > 0);
        is_due.then(|| {
            *written = *samples;
            wav_header(*layout, *samples)
        })
    }
}

/// Returns the first `count` elements, which are there from now on.
fn resize<T: Clone + Default>(buffer: &mut Vec<T>, count: usize) -> &mut [T] {
    buffer.resize(buffer.len().max(count), T::default());
    &mut buffer[..count]
}

/// Returns `count` samples of each track, interleaved. They are there.
fn interleave<'r>(
    tracks: &mut [TrackReader],
    count: usize,
    scratch: &'r mut Scratch,
    back: &mut BlockReturn,
) -> &'r [u8] {
    for (track, channel) in tracks.iter_mut().zip(&mut scratch.channels) {
        track.take(resize(channel, count), back);
    }
    let [first, second] = &scratch.channels;
    let bytes = resize(&mut scratch.bytes, 2 * count * tracks.len());
    if tracks.len() == 1 {
        pcm::write_bytes(bytes, first)
    } else {
        pcm::write_interleaved(bytes, first, second)
    }
    bytes
}

impl Growing {
    /// Writes what the rings hold, by way of `scratch`; false when the file is complete.
    fn go_on(&mut self, scratch: &mut Scratch, returns: &mut [BlockReturn]) -> bool {
        let ended = self.source.has_ended();
        self.waiting_samples = self.source.samples_waiting();
        let mut left = self.waiting_samples;
        loop {
            let count = left.min(MOST_AT_ONCE);
            left -= count;
            let bytes = self.source.take(count, scratch, returns);
            if self.state.problem().is_none()
                && let Err(error) = self.write(bytes, ended && left == 0)
            {
                self.state.fail(format!("{}: {error}", self.path.display()));
            }
            if left == 0 {
                break;
            }
        }
        if ended {
            self.source.drop_rest(returns);
        }
        if let Some(closed) = self.closed.take_if(|_| ended) {
            let _ = closed.send(());
        }
        !ended
    }

    fn write(&mut self, bytes: &[u8], ended: bool) -> std::io::Result<()> {
        if bytes.is_empty() && self.file.is_none() {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            empty => {
                let mut file = File::create(&self.path)?;
                if let Source::Sound { layout, .. } = self.source {
                    file.write_all(&wav_header(layout, 0))?;
                }
                empty.insert(file)
            }
        };
        file.write_all(bytes)?;
        match self.source.header(ended) {
            Some(header) => file.write_all_at(&header, 0),
            None => Ok(()),
        }
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

/// Makes a file whole whose writing broke off: its header states the samples that are there. Returns their number in
/// each channel; `None` if there are none.
pub(super) fn keep_part(path: &Path, layout: Layout) -> Option<u64> {
    let file = File::options().write(true).open(path).ok()?;
    let frame = 2 * u64::from(layout.channels());
    let samples = file.metadata().ok()?.len().checked_sub(WAV_HEADER as u64)? / frame;
    file.set_len(WAV_HEADER as u64 + samples * frame).ok()?;
    file.write_all_at(&wav_header(layout, samples), 0).ok()?;
    (samples > 0).then_some(samples)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::os::fd::AsRawFd;

    use ringer_media::frame::FRAME;

    use super::*;

    /// Returns the header and samples of a file.
    fn read_file(path: &Path) -> (Vec<u8>, Vec<i16>) {
        let bytes = std::fs::read(path).expect("it was written");
        let (header, samples) = bytes.split_at(WAV_HEADER);
        let samples = samples.as_chunks().0.iter().map(|sample| i16::from_le_bytes(*sample)).collect();
        (header.to_vec(), samples)
    }

    /// Starts a recorder for one media thread; returns that thread's memory, too.
    fn recorder() -> (Recorder, Blocks) {
        let (recorder, mut blocks) = Recorder::start(Arc::default(), 1).expect("a thread starts");
        (recorder, blocks.remove(0))
    }

    #[test]
    fn bytes_are_written_as_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let (recorder, _blocks) = recorder();
        let [some, none] = ["some", "none"].map(|name| recorder.bytes(folder.path().join(name)));
        let (mut ring, file) = some;
        ring.push_entire_slice(b"head").expect("there is space");
        ring.push_entire_slice(b" and body").expect("there is space");
        drop((ring, none.0));
        for (file, expect) in [(file, Some(&b"head and body"[..])), (none.1, None)] {
            file.closed.blocking_recv().expect("it is closed");
            assert_eq!(std::fs::read(&file.path).ok().as_deref(), expect);
            assert_eq!(file.state.problem(), None);
        }
    }

    #[test]
    fn channels_lie_beside_each_other_as_far_as_both_go() {
        let folder = tempfile::tempdir().expect("a folder");
        let (recorder, mut blocks) = recorder();
        let track = recorder.stereo(0, folder.path().join("a.wav"));
        let [mut sent, mut heard] = track.rings;
        assert!(sent.go_on(&mut blocks, &[1, 2, 3, 4]));
        assert!(heard.go_on(&mut blocks, &[-1, -2, -3]));
        drop((sent, heard));
        track.file.closed.blocking_recv().expect("it is closed");
        let path = &track.file.path;
        assert_eq!(read_file(path), (wav_header(Layout::Stereo, 3).to_vec(), vec![1, -1, 2, -2, 3, -3]));
        for (samples, left) in [(5, 3), (2, 2), (0, 0)] {
            cut(path, Layout::Stereo, samples).expect("it is cut");
            let (header, kept) = read_file(path);
            assert_eq!((header, kept.len()), (wav_header(Layout::Stereo, left).to_vec(), 2 * left as usize));
        }
        cut(&folder.path().join("never.wav"), Layout::Stereo, 0).expect("nothing is to be cut");
    }

    #[test]
    fn a_recording_that_broke_off_is_kept_as_far_as_it_goes() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.wav");
        let written = |samples: &[u8]| {
            std::fs::write(&path, [&wav_header(Layout::Stereo, 0)[..], samples].concat()).expect("it is written");
            keep_part(&path, Layout::Stereo)
        };
        assert_eq!(written(&[1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6]), Some(2));
        assert_eq!(read_file(&path), (wav_header(Layout::Stereo, 2).to_vec(), vec![1, 2, 3, 4]));
        assert_eq!((written(&[1, 0]), keep_part(Path::new("/never/a.wav"), Layout::Stereo)), (None, None));
    }

    #[test]
    fn a_full_disk_is_told() {
        let (recorder, _blocks) = recorder();
        let (mut ring, file) = recorder.bytes(PathBuf::from("/dev/full"));
        ring.push_entire_slice(b"head").expect("there is space");
        drop(ring);
        file.closed.blocking_recv().expect("it is closed");
        assert!(file.state.problem().is_some_and(|why| why.contains("No space left")), "{:?}", file.state.problem());
    }

    /// Bytes of which a pipe does not hold all.
    const MORE_THAN_A_PIPE: usize = 100_000;

    /// A disk that stalls for 520 ms holds up the recorder and all calls at once. Nothing is lost, and what comes after
    /// a longer stall is in its place.
    #[test]
    fn a_stalled_writer_loses_nothing() {
        const CALLS: i16 = 40;
        let folder = tempfile::tempdir().expect("a folder");
        let (recorder, mut blocks) = recorder();
        let mut tracks: Vec<_> = (0..CALLS)
            .map(|call| {
                let path = |name| folder.path().join(format!("{name}-{call}.wav"));
                (recorder.stereo(0, path("call")), recorder.mono(0, path("clean"), Layout::CallerClean))
            })
            .collect();
        let (mut pipe, stalled) = std::io::pipe().expect("a pipe");
        let (mut ring, stalling) = recorder.bytes(format!("/proc/self/fd/{}", stalled.as_raw_fd()).into());
        ring.push_entire_slice(&[1; MORE_THAN_A_PIPE]).expect("there is space");
        while ring.slots() < RING_BYTES {
            thread::yield_now();
        }
        // Between two looks 180 ms, then 520 ms; what is heard waits for 500 ms more before it is here.
        let frame = |call: i16, n: i16| [100 * call + n + 1; FRAME];
        for n in 0..60 {
            for (call, (stereo, clean)) in (0..).zip(&mut tracks) {
                let [sent, heard] = &mut stereo.rings;
                assert!(sent.go_on(&mut blocks, &frame(call, n)), "{n}");
                assert!(n < 25 || heard.go_on(&mut blocks, &frame(call, n - 25)), "{n}");
                assert!(n < 25 || clean.rings[0].go_on(&mut blocks, &frame(call, n - 25)), "{n}");
            }
        }
        // This is more than was promised.
        let heard = &mut tracks[0].0.rings[1];
        let fits = (35..50).filter(|n| heard.go_on(&mut blocks, &frame(0, *n))).count();
        assert!((3..10).contains(&fits), "{fits} frames");
        pipe.read_exact(&mut [0; MORE_THAN_A_PIPE]).expect("they were written");
        while !heard.write(&mut blocks, 50 * FRAME as i64, &frame(0, 50)) {
            thread::yield_now();
        }
        drop((ring, stalled));
        stalling.closed.blocking_recv().expect("it is closed");
        for (call, (stereo, clean)) in (0..).zip(tracks) {
            drop((stereo.rings, clean.rings));
            for (file, channels) in [(stereo.file, 2), (clean.file, 1)] {
                file.closed.blocking_recv().expect("it is closed");
                let samples = read_file(&file.path).1;
                let is_longer = call == 0 && channels == 2;
                assert_eq!(samples.len(), channels * FRAME * if is_longer { 51 } else { 35 });
                for (n, frames) in (0..).zip(samples.chunks(channels * FRAME)) {
                    let heard = if n < 35 + fits as i16 || n == 50 { frame(call, n)[0] } else { 0 };
                    let expect = [frame(call, n)[0], heard];
                    assert!(frames.chunks(channels).all(|at| at == &expect[2 - channels..]), "call {call}, frame {n}");
                }
            }
        }
    }
}
