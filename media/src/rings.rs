//! Frames between a call and the task of its channel: a bounded ring in each direction, without locks.
//!
//! The rings hold 400 ms in each direction. [`FramePeer`] owns the backlog of the other side's audio: it hands on as
//! much as the call has heard, or less where the other side holds its audio back. So a media thread never waits and
//! never allocates.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rtrb::{Consumer, Producer, RingBuffer};

use crate::call::{Call, Input};
use crate::frame::{PER_MS, RATE_HZ, Sample};
use crate::leg::{FRAME_MAX, PcmParams};
use crate::time::Time;

/// Number of pieces that a ring holds: 400 ms.
const PIECES: usize = 20;

/// Number of slots of a ring that audio leaves free, for messages that take audio back.
const FOR_CLEARING: usize = 4;

/// Number of slots of a ring that frames leave free, for messages about them.
const FOR_NOTES: usize = 12;

/// Number of samples of 16 kHz that may be on their way to the call and not heard yet: 400 ms.
const AHEAD: u64 = 400 * PER_MS as u64;

/// Longest backlog of audio for the call, in seconds; audio beyond it is dropped.
pub const BACKLOG_S: usize = 60;

/// A piece of PCM of up to 20 ms.
#[derive(Clone, Debug)]
pub struct Piece {
    len: usize,
    pcm: [i16; FRAME_MAX],
}

impl Piece {
    /// Returns a copy of `pcm`, of which at most [`FRAME_MAX`] samples are taken.
    fn new(pcm: &[i16]) -> Piece {
        let len = pcm.len().min(FRAME_MAX);
        let mut piece = Piece { len, pcm: [0; FRAME_MAX] };
        piece.pcm[..len].copy_from_slice(&pcm[..len]);
        piece
    }

    /// Returns the samples of the piece.
    pub fn pcm(&self) -> &[i16] {
        &self.pcm[..self.len]
    }
}

/// A message to the call.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are audio, and a media thread allocates no box")]
enum ToCall {
    Audio { arrived: Time, piece: Piece },
    Clear,
}

/// A message from the call.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are audio, and a media thread allocates no box")]
pub enum FromCall {
    /// Sound of 20 ms, to be sent now.
    Frame {
        /// Position of the first sample.
        from: Sample,
        /// Time at which it was to be sent.
        due: Time,
        /// Samples at the leg's rate.
        piece: Piece,
    },
    /// Order to drop frames that were handed out before and have not been sent yet.
    Clear,
    /// An utterance of this side begins or is over.
    Utterance {
        /// First sample of the frame in which it begins, or the end of its last frame.
        at: Sample,
        /// True at its beginning.
        begins: bool,
    },
}

/// The media thread's end of the rings.
pub struct FrameRings {
    to_call: Consumer<ToCall>,
    from_call: Producer<FromCall>,
    heard: Arc<AtomicU64>,
    /// Number of frames that did not fit, because the other end did not take them in time.
    dropped: u64,
    /// True while [`FromCall::Clear`] waits for space.
    clear_waits: bool,
}

impl FrameRings {
    /// Hands everything that came to `call`, and reports how far the call has heard.
    pub fn receive(&mut self, call: &mut Call, now: Time) {
        // Before its leg begins a call takes no frames: they wait, and so does whoever feeds them.
        while call.takes_frames()
            && let Ok(message) = self.to_call.pop()
        {
            match message {
                ToCall::Audio { arrived, piece } => call.handle(now, Input::Frames { arrived, pcm: piece.pcm() }),
                ToCall::Clear => call.handle(now, Input::ClearFrames),
            }
        }
    }

    /// Reports how far the call has heard the audio that came.
    pub fn tell_heard(&self, call: &Call) {
        self.heard.store(call.frames_heard(), Ordering::Release);
    }

    /// Hands a frame that was to be sent at `due` to the other end.
    pub fn send(&mut self, from: Sample, due: Time, pcm: &[i16]) {
        let has_space = self.from_call.slots() > FOR_NOTES;
        if has_space {
            self.push(FromCall::Frame { from, due, piece: Piece::new(pcm) });
        } else {
            self.dropped += 1;
        }
    }

    /// Tells the other end that an utterance begins or is over.
    pub fn tell_utterance(&mut self, at: Sample, begins: bool) {
        if self.clear_waits {
            self.clear();
        }
        let _ = self.from_call.push(FromCall::Utterance { at, begins });
    }

    /// Tells the other end to drop frames that have not been sent yet; where the ring is full, as soon as it has space.
    pub fn clear(&mut self) {
        self.clear_waits = self.from_call.push(FromCall::Clear).is_err();
    }

    /// Returns the number of frames that the other end did not take in time.
    pub fn lost_frames(&self) -> u64 {
        self.dropped
    }

    fn push(&mut self, message: FromCall) {
        if self.clear_waits {
            self.clear();
        }
        self.dropped += u64::from(self.clear_waits || self.from_call.push(message).is_err());
    }
}

/// The other end of the rings: the side of the channel's task.
pub struct FramePeer {
    to_call: Producer<ToCall>,
    from_call: Consumer<FromCall>,
    heard: Arc<AtomicU64>,
    rate_hz: u32,
    backlog: VecDeque<(Time, Piece)>,
    /// Samples, at the channel's rate, that came and were kept; those of them that were handed on; those that wait.
    taken: u64,
    handed_on: u64,
    waiting: usize,
    overflowed: u64,
    /// Most samples of 16 kHz on their way to the call, where the other side holds its audio back.
    most: Option<u64>,
    /// True while [`ToCall::Clear`] waits for space; audio that came later waits behind it.
    clear_waits: bool,
}

/// Returns a pair of ends for a call with a leg of PCM.
pub fn frame_rings(params: PcmParams) -> (FrameRings, FramePeer) {
    let (to_call, at_call) = RingBuffer::new(PIECES + FOR_CLEARING);
    let (from_call, at_peer) = RingBuffer::new(PIECES + FOR_NOTES);
    let heard = Arc::<AtomicU64>::default();
    let rings = FrameRings { to_call: at_call, from_call, heard: heard.clone(), dropped: 0, clear_waits: false };
    let peer = FramePeer {
        to_call,
        from_call: at_peer,
        heard,
        rate_hz: params.rate_hz,
        backlog: VecDeque::new(),
        taken: 0,
        handed_on: 0,
        waiting: 0,
        overflowed: 0,
        most: None,
        clear_waits: false,
    };
    (rings, peer)
}

impl FramePeer {
    /// Takes audio of the other side that arrived at `arrived`. Returns false when the backlog is full and the newest
    /// part of it was dropped.
    pub fn receive(&mut self, arrived: Time, pcm: &[i16]) -> bool {
        let space = (BACKLOG_S * self.rate_hz as usize).saturating_sub(self.waiting);
        let kept = pcm.len().min(space);
        for piece in pcm[..kept].chunks(self.rate_hz as usize / 50) {
            self.backlog.push_back((arrived, Piece::new(piece)));
        }
        (self.waiting, self.taken) = (self.waiting + kept, self.taken + kept as u64);
        self.overflowed += u64::from(kept < pcm.len());
        self.hand_on(arrived);
        kept == pcm.len()
    }

    /// Hands on at most so many samples of 16 kHz before they are heard, from `now` on: the other side holds its audio
    /// back, which counts as arriving when it is handed on. 0 hands on none, `None` is the end of it.
    pub fn hold(&mut self, now: Time, most: Option<u64>) {
        self.most = most;
        self.hand_on(now);
    }

    /// Hands on the audio that the call may have by now; to be called at least every 200 ms while there is a backlog.
    pub fn hand_on(&mut self, now: Time) {
        self.clear_waits = self.clear_waits && self.to_call.push(ToCall::Clear).is_err();
        while !self.clear_waits
            && self.to_call.slots() > FOR_CLEARING
            && self.may_hand_on()
            && let Some((arrived, piece)) = self.backlog.pop_front()
        {
            let len = piece.len;
            let arrived = if self.most.is_some() { now } else { arrived };
            if let Err(rtrb::PushError::Full(ToCall::Audio { arrived, piece })) =
                self.to_call.push(ToCall::Audio { arrived, piece })
            {
                return self.backlog.push_front((arrived, piece));
            }
            (self.waiting, self.handed_on) = (self.waiting - len, self.handed_on + len as u64);
        }
    }

    /// True if the call may have the piece that is next by now.
    fn may_hand_on(&self) -> bool {
        let heard = self.heard.load(Ordering::Acquire);
        let fits = |(_, piece): &(Time, Piece)| {
            let end = self.at_16_khz(self.handed_on + piece.len as u64);
            self.most.is_none_or(|most| end <= heard + most)
        };
        self.at_16_khz(self.handed_on) < heard + AHEAD && self.backlog.front().is_some_and(fits)
    }

    /// Drops all audio that was not heard yet. Returns false when the call cannot be told at the moment: it is told as
    /// soon as there is space, before audio that comes later.
    pub fn clear(&mut self) -> bool {
        self.taken -= self.waiting as u64;
        self.waiting = 0;
        self.backlog.clear();
        self.clear_waits = self.to_call.push(ToCall::Clear).is_err();
        !self.clear_waits
    }

    /// Returns the next message from the call.
    pub fn next_message(&mut self) -> Option<FromCall> {
        self.from_call.pop().ok()
    }

    /// Returns the end of what has come so far, in samples of 16 kHz.
    pub fn end(&self) -> u64 {
        self.at_16_khz(self.taken)
    }

    /// Returns the samples of 16 kHz that came, were kept and are not heard yet.
    pub fn unheard(&self) -> u64 {
        self.end().saturating_sub(self.heard.load(Ordering::Acquire))
    }

    /// Returns the number of times that audio was dropped because the backlog was full.
    pub fn overflow_count(&self) -> u64 {
        self.overflowed
    }

    fn at_16_khz(&self, samples: u64) -> u64 {
        samples * u64::from(RATE_HZ) / u64::from(self.rate_hz)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(rate_hz: u32) -> (FrameRings, FramePeer) {
        frame_rings(PcmParams::new(rate_hz).expect("a rate that is spoken"))
    }

    fn waiting(rings: &mut FrameRings) -> usize {
        let mut samples = 0;
        while let Ok(message) = rings.to_call.pop() {
            if let ToCall::Audio { piece, .. } = message {
                samples += piece.len;
            }
        }
        samples
    }

    #[test]
    fn a_call_is_handed_as_much_as_it_can_hear_soon() {
        for rate_hz in [8000, 16_000, 24_000, 48_000] {
            let (mut rings, mut peer) = pair(rate_hz);
            let second = rate_hz as usize;
            assert!(peer.receive(Time(1), &vec![1; 2 * second]));
            assert_eq!(waiting(&mut rings), second * 2 / 5, "{rate_hz}");
            peer.hand_on(Time(2));
            assert_eq!(waiting(&mut rings), 0, "{rate_hz}: nothing of it was heard");
            rings.heard.store(3200, Ordering::Release);
            peer.hand_on(Time(3));
            assert_eq!(waiting(&mut rings), second / 5, "{rate_hz}");
            assert_eq!(peer.end(), 32_000);
            assert_eq!(peer.unheard(), 32_000 - 3200);
        }
    }

    #[test]
    fn a_backlog_holds_a_minute_and_loses_the_newest() {
        let (mut rings, mut peer) = pair(16_000);
        assert!(peer.receive(Time(1), &vec![1; 16_000 * 60]));
        assert!(!peer.receive(Time(2), &vec![2; 16_000]), "400 ms of a second fit");
        assert_eq!((peer.overflow_count(), peer.end()), (1, 16_000 * 60 + 6400));
        assert!(peer.clear());
        assert_eq!(peer.end(), 6400);
        assert_eq!(waiting(&mut rings), 6400);
    }

    #[test]
    fn a_stream_that_is_held_back_is_handed_on_little_by_little() {
        let (mut rings, mut peer) = pair(16_000);
        peer.hold(Time(1), Some(1600));
        assert!(peer.receive(Time(2), &[1; 3200]));
        assert_eq!((waiting(&mut rings), peer.unheard()), (1600, 3200), "100 ms");
        rings.heard.store(320, Ordering::Release);
        peer.hand_on(Time(3));
        let Ok(ToCall::Audio { arrived, piece }) = rings.to_call.pop() else { panic!("as much as was heard") };
        assert_eq!((arrived, piece.len), (Time(3), 320), "it arrives when it is handed on");
        peer.hold(Time(4), Some(0));
        rings.heard.store(1920, Ordering::Release);
        peer.hand_on(Time(5));
        assert_eq!((waiting(&mut rings), peer.unheard()), (0, 1280), "a pause");
        peer.hold(Time(6), None);
        assert_eq!(waiting(&mut rings), 1280);
    }

    #[test]
    fn audio_waits_behind_a_clear_that_does_not_fit() {
        let (mut rings, mut peer) = pair(16_000);
        assert!(peer.receive(Time(1), &[1; 16_000]));
        assert!((0..FOR_CLEARING).all(|_| peer.clear()));
        assert!(!peer.clear(), "the ring is full");
        assert!(peer.receive(Time(2), &[2; 320]));
        let messages = |rings: &mut FrameRings| -> Vec<i16> {
            std::iter::from_fn(|| rings.to_call.pop().ok())
                .map(|message| if let ToCall::Audio { piece, .. } = message { piece.pcm[0] } else { 0 })
                .collect()
        };
        assert_eq!(messages(&mut rings), [[1; 20].as_slice(), &[0; FOR_CLEARING]].concat());
        rings.heard.store(6400, Ordering::Release);
        peer.hand_on(Time(3));
        assert_eq!((messages(&mut rings), peer.unheard()), (vec![0, 2], 320));
    }

    #[test]
    fn frames_that_nobody_takes_are_counted() {
        let (mut rings, mut peer) = pair(16_000);
        for at in 0..25 {
            rings.send(at * 320, Time(0), &[7; 320]);
        }
        assert_eq!(rings.lost_frames(), 5);
        rings.clear();
        let Some(FromCall::Frame { from: 0, piece, .. }) = peer.next_message() else { panic!("the first comes first") };
        assert_eq!(piece.pcm(), [7; 320]);
        rings.tell_utterance(25 * 320, true);
        rings.send(25 * 320, Time(0), &[8; 320]);
        let last: Vec<FromCall> = std::iter::from_fn(|| peer.next_message()).collect();
        assert!(
            last.len() == 21 && matches!(last[19..], [FromCall::Clear, FromCall::Utterance { at: 8000, begins: true }]),
            "messages fit where frames do not"
        );
        assert_eq!(rings.lost_frames(), 6);
    }
}
