//! The outline of a recording in three steps of time, kept beside it: least and greatest sample of both channels.
//!
//! The file holds the steps one after the other, the longest first. It is made of the recording before a result is
//! over, and at the first asking where it is not there.
//! While a recording still grows, the stretch that is asked for is read from its samples.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::Path;

use ringer_base::error::{Error, Result};
use ringer_media::pcm::{self, Levels, NO_LEVELS};
use ringer_media::recording::WAV_HEADER;
use ringer_model::result::ResultDoc;

use super::Conversations;
use super::artifacts::{PEAKS, Peaks, is_hidden, unfinished_name};
use super::transcode::Track;
use crate::Caller;

/// First bytes of the file: its kind and version.
const MAGIC: &[u8; 8] = b"RPEAKS1\n";
/// Bytes before the first step: kind, version, samples of the recording.
const HEAD_BYTES: u64 = 16;
/// Samples a second of recordings.
const RATE: i64 = 16_000;
/// Bytes of a sample of both channels in a recording.
const FRAME_BYTES: u64 = 4;
/// Bytes of one step in the file: least and greatest of two channels.
const STEP_BYTES: u64 = 8;
/// Most steps of one answer.
pub(crate) const MOST_STEPS: i64 = 1_000_000;
/// Samples that are read at once; whole steps of each length.
const PIECE: usize = 16_000;

/// Length of a step.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Zoom {
    /// Steps of 1 s.
    Second,
    /// Steps of 100 ms.
    Tenth,
    /// Steps of 10 ms.
    Hundredth,
}

impl Zoom {
    /// Every length, the longest first.
    pub const ALL: [Zoom; 3] = [Zoom::Second, Zoom::Tenth, Zoom::Hundredth];

    /// Returns the length by its number, 0 to 2.
    pub fn of(number: i64) -> Option<Zoom> {
        usize::try_from(number).ok().and_then(|at| Zoom::ALL.get(at).copied())
    }

    /// Returns the milliseconds of a step.
    pub fn step_ms(self) -> i64 {
        match self {
            Zoom::Second => 1000,
            Zoom::Tenth => 100,
            Zoom::Hundredth => 10,
        }
    }

    fn samples(self) -> i64 {
        self.step_ms() * RATE / 1000
    }
}

/// A stretch of an outline.
#[derive(Clone, Debug, PartialEq)]
pub struct PeakStretch {
    /// Length of a step.
    pub zoom: Zoom,
    /// Position of the first step, milliseconds from connect.
    pub from_ms: i64,
    /// Length of the recording so far, milliseconds.
    pub duration_ms: i64,
    /// Levels of the Digital Human and the agent in each step, in order; the last step of a recording may be shorter.
    pub steps: Vec<Levels>,
}

impl PeakStretch {
    /// Returns the steps as shares of full scale, -1 to 1 to three decimals, a list a channel.
    pub fn peaks(&self) -> Peaks {
        let share = |level: i16| (f64::from(level) / 32.768).round() / 1000.0;
        let channel = |at: usize| self.steps.iter().flat_map(|step| [share(step[at]), share(step[at + 1])]).collect();
        Peaks {
            sample_rate: RATE,
            samples_per_peak: self.zoom.samples(),
            from_ms: self.from_ms,
            duration_ms: self.duration_ms,
            channels: vec![channel(0), channel(2)],
        }
    }
}

impl Conversations {
    /// Returns the outline of a recording from `from_ms` to `to_ms`, which may be open; of a running call that of its
    /// recording so far.
    ///
    /// # Errors
    /// [`Error::NotAvailable`] without a recording, [`Error::Refused`] for more than a million steps.
    pub async fn peak_stretch(
        &self,
        caller: &Caller,
        result_id: i64,
        zoom: Zoom,
        (from_ms, to_ms): (i64, Option<i64>),
    ) -> Result<PeakStretch> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        drop(db);
        let is_over = row.doc.body.status.is_terminal() || row.doc.body.end_time.is_some();
        let is_shown = !is_hidden(&row.doc, caller) && (!is_over || row.doc.body.audio_url.is_some());
        let recording = self.settings.result_folder(result_id).join(Track::Both.file());
        if is_shown && is_over {
            self.find_file(&row, caller, Track::Both.file()).await?;
            self.bring_sound(result_id).await?;
        }
        if !is_shown || !tokio::fs::try_exists(&recording).await.unwrap_or(false) {
            return Err(Error::NotAvailable("Recording not available".into()));
        }
        let step = zoom.step_ms();
        let from = from_ms.max(0) / step;
        // The recording of a result may still be silenced in places until its state is terminal.
        let is_final = row.doc.body.status.is_terminal();
        let reading = move || {
            let to = to_ms.map_or(i64::MAX, |to| to.max(0).saturating_add(step - 1) / step);
            read_peaks(&recording, is_final, zoom, from, to)
        };
        let stretch = tokio::task::spawn_blocking(reading).await.map_err(Error::internal)?;
        let stretch = stretch.map_err(Error::internal)?;
        stretch.ok_or_else(|| {
            Error::Refused(format!("more than {MOST_STEPS} steps: ask for a shorter stretch or a smaller zoom"))
        })
    }
}

impl Conversations {
    /// Makes the outline of a recording that nothing changes any more; nothing happens where there is none.
    ///
    /// # Errors
    /// When the file cannot be read, or the outline not written.
    pub async fn keep_outline(&self, result_id: i64) -> Result<()> {
        let recording = self.settings.result_folder(result_id).join(Track::Both.file());
        let made = tokio::task::spawn_blocking(move || read_peaks(&recording, true, Zoom::Second, 0, 0)).await;
        match made.map_err(Error::internal)? {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::internal(error)),
            _ => Ok(()),
        }
    }
}

/// Reads steps `from` to before `to`; `None`: they are too many.
fn read_peaks(recording: &Path, is_final: bool, zoom: Zoom, from: i64, to: i64) -> io::Result<Option<PeakStretch>> {
    let mut wav = File::open(recording)?;
    let samples = (wav.metadata()?.len().saturating_sub(WAV_HEADER as u64) / FRAME_BYTES) as i64;
    let all = samples.div_euclid(zoom.samples()) + i64::from(samples % zoom.samples() != 0);
    let (from, to) = (from.min(all), to.clamp(from.min(all), all));
    if to - from > MOST_STEPS {
        return Ok(None);
    }
    let steps = if is_final {
        read_kept(recording, &mut wav, samples, zoom, from, to)?
    } else {
        let at = WAV_HEADER as u64 + (from * zoom.samples()) as u64 * FRAME_BYTES;
        wav.seek(SeekFrom::Start(at))?;
        let wanted = ((to - from) * zoom.samples()).min(samples - from * zoom.samples()).max(0);
        let mut steps = Vec::new();
        outline(wav.take(wanted as u64 * FRAME_BYTES), [zoom], |_, step| {
            steps.push(step);
            Ok(())
        })?;
        steps
    };
    Ok(Some(PeakStretch { zoom, from_ms: from * zoom.step_ms(), duration_ms: samples * 1000 / RATE, steps }))
}

/// Reads steps from the file beside the recording, which is made when it is not there or is of another recording.
fn read_kept(
    recording: &Path,
    wav: &mut File,
    samples: i64,
    zoom: Zoom,
    from: i64,
    to: i64,
) -> io::Result<Vec<Levels>> {
    let path = recording.with_file_name(PEAKS);
    let mut file = match open_kept(&path, samples)? {
        Some(file) => file,
        None => {
            make(&path, wav, samples)?;
            open_kept(&path, samples)?.ok_or_else(|| io::Error::other("the outline of a recording is not kept"))?
        }
    };
    let count = |zoom: Zoom| (samples + zoom.samples() - 1) / zoom.samples();
    let before: i64 = Zoom::ALL.iter().take_while(|one| **one != zoom).map(|one| count(*one)).sum();
    file.seek(SeekFrom::Start(HEAD_BYTES + (before + from) as u64 * STEP_BYTES))?;
    let mut bytes = vec![0; (to - from) as usize * STEP_BYTES as usize];
    file.read_exact(&mut bytes)?;
    Ok(bytes.as_chunks::<8>().0.iter().map(levels).collect())
}

/// Opens the file of a recording with `samples` samples; `None`: there is none.
fn open_kept(path: &Path, samples: i64) -> io::Result<Option<File>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut head = [0; HEAD_BYTES as usize];
    let is_whole = file.read_exact(&mut head).is_ok() && head == head_of(samples);
    let steps: i64 = Zoom::ALL.iter().map(|zoom| (samples + zoom.samples() - 1) / zoom.samples()).sum();
    let is_whole = is_whole && file.metadata()?.len() == HEAD_BYTES + steps as u64 * STEP_BYTES;
    Ok(is_whole.then_some(file))
}

fn head_of(samples: i64) -> [u8; HEAD_BYTES as usize] {
    let mut head = [0; HEAD_BYTES as usize];
    head[..MAGIC.len()].copy_from_slice(MAGIC);
    head[MAGIC.len()..].copy_from_slice(&samples.to_le_bytes());
    head
}

/// Makes the file of all steps; one that is asked for at the same time is replaced as a whole.
fn make(path: &Path, wav: &mut File, samples: i64) -> io::Result<()> {
    wav.seek(SeekFrom::Start(WAV_HEADER as u64))?;
    let mut steps: [Vec<u8>; 3] = [Vec::new(), Vec::new(), Vec::new()];
    outline(wav.take(samples as u64 * FRAME_BYTES), Zoom::ALL, |at, step| {
        steps[at].extend(step.iter().flat_map(|level| level.to_le_bytes()));
        Ok(())
    })?;
    let unfinished = path.with_file_name(unfinished_name());
    let written = (|| {
        let mut file = BufWriter::new(File::create(&unfinished)?);
        file.write_all(&head_of(samples))?;
        for steps in &steps {
            file.write_all(steps)?;
        }
        file.flush()?;
        std::fs::rename(&unfinished, path)
    })();
    if written.is_err() {
        let _ = std::fs::remove_file(&unfinished);
    }
    written
}

/// Hands the steps of each length to `take`, with the place of the length, as they are complete. The last length is the
/// shortest; the others are multiples of it.
fn outline<const N: usize>(
    mut from: impl Read,
    zooms: [Zoom; N],
    mut take: impl FnMut(usize, Levels) -> io::Result<()>,
) -> io::Result<()> {
    let shortest = zooms.last().map_or(PIECE, |zoom| zoom.samples() as usize) * FRAME_BYTES as usize;
    // Whole shortest steps, about a second of them.
    let mut piece = vec![0; (PIECE * FRAME_BYTES as usize).next_multiple_of(shortest)];
    let mut open = [(NO_LEVELS, 0); N];
    loop {
        let length = read_piece(&mut from, &mut piece)?;
        for step in piece[..length].chunks(shortest) {
            let (levels, frames) = (pcm::levels(step), (step.len() / FRAME_BYTES as usize) as i64);
            for (at, (zoom, (whole, count))) in zooms.iter().zip(&mut open).enumerate() {
                *whole = pcm::widest(*whole, levels);
                *count += frames;
                if *count == zoom.samples() {
                    take(at, *whole)?;
                    (*whole, *count) = (NO_LEVELS, 0);
                }
            }
        }
        if length < piece.len() {
            break;
        }
    }
    for (at, (levels, count)) in open.into_iter().enumerate() {
        if count > 0 {
            take(at, levels)?;
        }
    }
    Ok(())
}

/// Fills `piece` as far as there is something, and returns the bytes of whole frames in it.
fn read_piece(from: &mut impl Read, piece: &mut [u8]) -> io::Result<usize> {
    let mut length = 0;
    while length < piece.len() {
        match from.read(&mut piece[length..]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(length - length % FRAME_BYTES as usize)
}

fn levels(bytes: &[u8; 8]) -> Levels {
    let level = |at: usize| i16::from_le_bytes([bytes[at], bytes[at + 1]]);
    [level(0), level(2), level(4), level(6)]
}

#[cfg(test)]
mod tests {
    use ringer_media::recording::{Layout, wav_header};

    use super::*;

    /// Returns a recording whose channels tell the sample's number, one up and one down.
    fn recording(folder: &Path, samples: usize) -> std::path::PathBuf {
        let mut bytes = wav_header(Layout::Stereo, samples as u64).to_vec();
        for n in 0..samples {
            let level = (n / 160) as i16;
            bytes.extend(level.to_le_bytes());
            bytes.extend((-level).to_le_bytes());
        }
        let path = folder.join(crate::conversation::artifacts::RECORDING);
        std::fs::write(&path, bytes).expect("a file");
        path
    }

    #[test]
    fn steps_are_the_same_kept_and_read_from_the_samples() {
        let folder = tempfile::tempdir().expect("a folder");
        // 2.5 s and 8 samples.
        let path = recording(folder.path(), 40_008);
        for (zoom, from, to, expect) in [
            (Zoom::Second, 0, i64::MAX, vec![[0, 99, -99, 0], [100, 199, -199, -100], [200, 250, -250, -200]]),
            (Zoom::Second, 1, 2, vec![[100, 199, -199, -100]]),
            (Zoom::Tenth, 24, 30, vec![[240, 249, -249, -240], [250, 250, -250, -250]]),
            (Zoom::Hundredth, 2, 4, vec![[2, 2, -2, -2], [3, 3, -3, -3]]),
            (Zoom::Hundredth, 900, 901, vec![]),
        ] {
            for is_final in [false, true, true] {
                let stretch = read_peaks(&path, is_final, zoom, from, to).expect("it is read").expect("they are few");
                assert_eq!((stretch.steps, stretch.duration_ms), (expect.clone(), 2500), "{zoom:?} {from} {is_final}");
            }
        }
        assert!(folder.path().join(PEAKS).is_file(), "kept");
    }

    #[test]
    fn the_samples_of_a_step_are_all_looked_at() {
        for (samples, marked) in [(1, 0), (159, 158), (160, 159), (16_001, 16_000), (40_000, 15_999), (40_000, 16_000)]
        {
            let mut frames = vec![[0; 4]; samples];
            frames[marked] = [1, 0, 255, 255];
            let bytes: Vec<u8> = frames.concat().into_iter().chain([9, 9]).collect();
            let mut found: [Vec<Levels>; 3] = Default::default();
            outline(bytes.as_slice(), Zoom::ALL, |at, step| {
                found[at].push(step);
                Ok(())
            })
            .expect("it is read");
            for (steps, zoom) in found.iter().zip(Zoom::ALL) {
                let length = zoom.samples() as usize;
                let mut expect = vec![[0; 4]; samples.div_ceil(length)];
                // A step of one sample has no silence in it.
                let is_alone = (samples - marked / length * length).min(length) == 1;
                expect[marked / length] = if is_alone { [1, 1, -1, -1] } else { [0, 1, -1, 0] };
                assert!(*steps == expect, "{zoom:?} {samples} {marked}");
            }
        }
    }

    #[test]
    fn the_outline_of_another_recording_is_made_anew() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = recording(folder.path(), 1600);
        let steps = |path: &Path| read_peaks(path, true, Zoom::Tenth, 0, i64::MAX).expect("read").expect("few").steps;
        assert_eq!(steps(&path), [[0, 9, -9, 0]]);
        recording(folder.path(), 3200);
        assert_eq!(steps(&path).len(), 2);
        std::fs::write(folder.path().join(PEAKS), b"RPEAKS1\n").expect("a file");
        assert_eq!(steps(&path).len(), 2, "half a file is none");
        recording(folder.path(), 0);
        assert_eq!(steps(&path).len(), 0);
    }
}
