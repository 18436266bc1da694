//! Tracks into which a media thread puts recorded audio, emptied by the recorder. Audio that does not fit becomes
//! silence of the same length, so that the tracks of a call stay aligned.
//!
//! A track is a ring of pieces: a frame in a block of its thread's memory, or a length of silence. There is a ring a
//! track, not one a thread, so that the recorder moves a call's samples in one piece. The rings of a call take 2 KB,
//! the blocks of what waits 26 KB a call; frames of silence take none.

use ringer_media::frame::{FRAME, Sample};
use rtrb::{Consumer, Producer, RingBuffer};

use super::recording_blocks::{Block, BlockReturn, Blocks};

/// The tracks of a call. Those that are not recorded have no ring.
#[derive(Debug, Default)]
pub(super) struct RecordingRings {
    pub sent: RecordingRing,
    pub heard: RecordingRing,
    /// Sent audio before noise, audio quality and loss.
    pub clean: RecordingRing,
    pub early: RecordingRing,
}

/// Track of a recording: the ring that frames go into.
#[derive(Debug, Default)]
pub(super) struct RecordingRing {
    ring: Option<Producer<Piece>>,
    /// One past the last sample of the track that is in its place.
    written: Sample,
    /// Position at which the track goes on.
    next: Sample,
}

/// A piece of a track.
#[derive(Debug)]
enum Piece {
    /// The first samples of a block, and their number.
    Audio(Block, u16),
    /// Number of samples that are 0.
    Silence(u64),
}

/// Bytes of a piece in a ring.
pub(super) const PIECE_BYTES: usize = size_of::<Piece>();

/// The end of a track at which the recorder takes samples out.
#[derive(Debug)]
pub(super) struct TrackReader {
    ring: Consumer<Piece>,
    /// Number of samples of the first piece that were taken.
    taken_samples: usize,
}

/// Returns a track in which `frames` frames can wait, with gaps between them.
pub(super) fn recording_track(frames: usize) -> (RecordingRing, TrackReader) {
    let (ring, reader) = RingBuffer::new(frames);
    (RecordingRing { ring: Some(ring), written: 0, next: 0 }, TrackReader { ring: reader, taken_samples: 0 })
}

impl RecordingRing {
    /// Writes `pcm` at `from`, behind all that was written; returns false if there was no space.
    pub(crate) fn write(&mut self, blocks: &mut Blocks, from: Sample, pcm: &[i16]) -> bool {
        self.next = from + pcm.len() as Sample;
        let Some(ring) = &mut self.ring else { return true };
        if self.written < from {
            // A gap alone would take the place of a frame.
            if ring.slots() < 2 {
                return false;
            }
            // There is space.
            let _ = ring.push(Piece::Silence((from - self.written) as u64));
            self.written = from;
        }
        if self.written > from {
            return false;
        }
        for frame in pcm.chunks(FRAME) {
            let piece = if ring.is_full() { None } else { piece_of(blocks, frame) };
            let Some(piece) = piece else { return false };
            // There is space.
            let _ = ring.push(piece);
            self.written += frame.len() as Sample;
        }
        true
    }

    /// Writes `pcm` behind what came last; returns false if there was no space.
    pub(crate) fn go_on(&mut self, blocks: &mut Blocks, pcm: &[i16]) -> bool {
        self.write(blocks, self.next, pcm)
    }
}

/// Returns a piece of at most [`FRAME`] samples; `None` if there is no block for it.
fn piece_of(blocks: &mut Blocks, pcm: &[i16]) -> Option<Piece> {
    if pcm.iter().fold(0, |all, sample| all | sample) == 0 {
        return Some(Piece::Silence(pcm.len() as u64));
    }
    let block = blocks.take()?;
    block[..pcm.len()].copy_from_slice(pcm);
    Some(Piece::Audio(block, pcm.len() as u16))
}

impl Piece {
    fn len(&self) -> usize {
        match self {
            Piece::Audio(_, count) => usize::from(*count),
            Piece::Silence(count) => *count as usize,
        }
    }
}

impl TrackReader {
    /// True when no more comes than what waits.
    pub(crate) fn has_ended(&self) -> bool {
        self.ring.is_abandoned()
    }

    /// Returns the number of samples that wait.
    pub(crate) fn waiting(&mut self) -> usize {
        let Ok(pieces) = self.ring.read_chunk(self.ring.slots()) else { return 0 };
        let (first, second) = pieces.as_slices();
        first.iter().chain(second).map(Piece::len).sum::<usize>() - self.taken_samples
    }

    /// Takes the next samples, which wait, and gives their blocks back.
    pub(crate) fn take(&mut self, mut pcm: &mut [i16], back: &mut BlockReturn) {
        while !pcm.is_empty()
            && let Ok(piece) = self.ring.peek()
        {
            let count = pcm.len().min(piece.len() - self.taken_samples);
            let (to, rest) = pcm.split_at_mut(count);
            match piece {
                Piece::Audio(block, _) => to.copy_from_slice(&block[self.taken_samples..self.taken_samples + count]),
                Piece::Silence(_) => to.fill(0),
            }
            self.taken_samples += count;
            if self.taken_samples == piece.len() {
                self.drop_piece(back);
            }
            pcm = rest;
        }
    }

    /// Gives back the blocks of everything that waits.
    pub(crate) fn drop_rest(&mut self, back: &mut BlockReturn) {
        while !self.ring.is_empty() {
            self.drop_piece(back);
        }
    }

    fn drop_piece(&mut self, back: &mut BlockReturn) {
        self.taken_samples = 0;
        if let Ok(Piece::Audio(block, _)) = self.ring.pop() {
            back.give(block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::recording_blocks::recording_blocks;
    use super::*;

    #[test]
    fn what_did_not_fit_is_silence_in_its_place() {
        let (mut blocks, mut back, reserve) = recording_blocks();
        let _share = reserve.share(3);
        let (mut tape, mut reader) = recording_track(3);
        let mut read = |count| {
            let mut pcm = vec![7; count];
            assert!(reader.waiting() >= count, "it was written");
            reader.take(&mut pcm, &mut back);
            pcm
        };
        assert!(tape.go_on(&mut blocks, &[1, 2, 3]));
        assert!(tape.go_on(&mut blocks, &[0, 0]));
        assert!(tape.go_on(&mut blocks, &[4]));
        assert!(!tape.go_on(&mut blocks, &[5, 6]));
        assert_eq!(read(2), [1, 2]);
        assert!(!tape.go_on(&mut blocks, &[7]));
        assert_eq!(read(3), [3, 0, 0]);
        // The gap alone would fit.
        assert_eq!(read(0), [0; 0]);
        assert!(tape.go_on(&mut blocks, &[8]));
        assert_eq!(read(5), [4, 0, 0, 0, 8]);
        // A gap takes no blocks, however long it is.
        assert!(tape.write(&mut blocks, 100_010, &[9; FRAME + 1]));
        assert_eq!(read(100_000), [0; 100_000]);
        assert_eq!(read(FRAME + 1), [9; FRAME + 1]);
        assert!(!tape.write(&mut blocks, 0, &[9]), "it was written");
        assert!(RecordingRing::default().write(&mut blocks, 3, &[1; 9]));
    }

    #[test]
    fn a_frame_without_a_block_is_silence_too() {
        let (mut blocks, mut back, reserve) = recording_blocks();
        let _share = reserve.share(1);
        let (mut tape, mut reader) = recording_track(8);
        let held: Vec<Block> = std::iter::from_fn(|| blocks.take()).collect();
        assert!(!tape.go_on(&mut blocks, &[1, 2]));
        held.into_iter().for_each(|block| back.give(block));
        blocks.collect();
        assert!(tape.go_on(&mut blocks, &[3]));
        let mut pcm = [7; 3];
        reader.take(&mut pcm, &mut back);
        assert_eq!((pcm, reader.waiting()), ([0, 0, 3], 0));
    }

    #[test]
    fn the_blocks_of_a_track_that_is_not_read_come_back() {
        let (mut blocks, mut back, reserve) = recording_blocks();
        let _share = reserve.share(4);
        let (mut tape, mut reader) = recording_track(8);
        assert!((0..4).all(|_| tape.go_on(&mut blocks, &[1; FRAME])));
        reader.take(&mut [0; 3], &mut back);
        assert_eq!((reader.waiting(), reader.has_ended()), (4 * FRAME - 3, false));
        drop(tape);
        assert!(reader.has_ended());
        reader.drop_rest(&mut back);
        let marks =
            |blocks: &mut Blocks| (0..5).map(|_| blocks.take().expect("it was reserved")[0]).collect::<Vec<_>>();
        assert_eq!((reader.waiting(), marks(&mut blocks)), (0, vec![0; 5]));
        blocks.collect();
        assert_eq!(marks(&mut blocks), [1, 1, 1, 1, 0]);
    }

    /// Bytes of audio that waits, a call.
    const MOST_BYTES: usize = 26 * 1024;

    /// Calls that are recorded without a pause, and read as the recorder does: each every 180 ms, a fifth at a time.
    #[test]
    fn a_call_holds_what_waits() {
        const CALLS: usize = 100;
        let (mut blocks, mut back, reserve) = recording_blocks();
        let _share = reserve.share(CALLS * 140);
        let mut tracks: Vec<_> = (0..CALLS).map(|_| [64, 38, 38].map(recording_track)).collect();
        let mut pcm = [0; 40 * FRAME];
        for ms in (0..6000).step_by(4) {
            blocks.collect();
            for (call, tracks) in tracks.iter_mut().enumerate() {
                if ms % 20 == call % 5 * 4 {
                    for (ring, behind_ms) in tracks.iter_mut().map(|track| &mut track.0).zip([0, 500, 0]) {
                        assert!(ms < behind_ms || ring.go_on(&mut blocks, &[1; FRAME]), "{ms} ms");
                    }
                }
                if ms % 180 == call / 5 % 5 * 36 {
                    let [sent, heard, clean] = tracks.each_mut().map(|track| &mut track.1);
                    let both = sent.waiting().min(heard.waiting());
                    sent.take(&mut pcm[..both], &mut back);
                    heard.take(&mut pcm[..both], &mut back);
                    let alone = clean.waiting();
                    clean.take(&mut pcm[..alone], &mut back);
                    back.give_waiting();
                }
            }
        }
        for (_, reader) in tracks.iter_mut().flatten() {
            reader.drop_rest(&mut back);
        }
        blocks.collect();
        // Those that were never filled are still silent.
        let filled = std::iter::from_fn(|| blocks.take()).filter(|block| block[0] != 0).count();
        let bytes = filled * size_of::<[i16; FRAME]>() / CALLS;
        println!("{bytes} bytes a call");
        assert!(bytes <= MOST_BYTES, "{bytes} bytes a call");
    }
}
