//! Rings into which a media thread puts recorded audio, one a track, emptied by the recorder. Audio that does not fit
//! becomes silence of the same length, so that the tracks of a call stay aligned.
//!
//! There is a ring a track, not one a thread. The recorder moves a call's samples in one piece, and memory follows the
//! calls that exist (84 KB each).

use ringer_media::frame::Sample;
use rtrb::Producer;

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
    ring: Option<Producer<i16>>,
    /// One past the last sample of the track that is in its place.
    written: Sample,
    /// Position at which the track goes on.
    next: Sample,
}

impl RecordingRing {
    /// Returns a track that goes into `ring`.
    pub(crate) fn new(ring: Producer<i16>) -> RecordingRing {
        RecordingRing { ring: Some(ring), written: 0, next: 0 }
    }

    /// Writes `pcm` at `from`, behind all that was written; returns false if there was no space.
    pub(crate) fn write(&mut self, from: Sample, pcm: &[i16]) -> bool {
        self.next = from + pcm.len() as Sample;
        let Some(ring) = &mut self.ring else { return true };
        if self.written < from {
            let gap = (from - self.written).min(ring.slots() as Sample);
            if let Ok(silence) = ring.write_chunk(gap as usize) {
                silence.commit_all();
                self.written += gap;
            }
        }
        let fits = self.written == from && ring.push_entire_slice(pcm).is_ok();
        if fits {
            self.written = self.next;
        }
        fits
    }

    /// Writes `pcm` behind what came last; returns false if there was no space.
    pub(crate) fn go_on(&mut self, pcm: &[i16]) -> bool {
        self.write(self.next, pcm)
    }
}

#[cfg(test)]
mod tests {
    use rtrb::RingBuffer;

    use super::*;

    #[test]
    fn what_did_not_fit_is_silence_in_its_place() {
        let (ring, mut reader) = RingBuffer::new(4);
        let mut tape = RecordingRing::new(ring);
        let mut read = |count| (0..count).map(|_| reader.pop().expect("it was written")).collect::<Vec<i16>>();
        assert!(tape.go_on(&[1, 2, 3]));
        assert!(!tape.go_on(&[4, 5]));
        assert_eq!(read(3), [1, 2, 3]);
        assert!(tape.go_on(&[6]));
        assert_eq!(read(3), [0, 0, 6]);
        assert!(tape.write(8, &[7, 8]));
        assert_eq!(read(4), [0, 0, 7, 8]);
        // A gap that is longer than the ring is filled as space comes.
        assert!(!tape.write(15, &[9]));
        assert_eq!(read(4), [0; 4]);
        assert!(tape.write(16, &[9]));
        assert_eq!(read(3), [0, 0, 9]);
        assert!(RecordingRing::default().write(3, &[1; 9]));
    }
}
