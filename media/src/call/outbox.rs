//! Outputs waiting to be polled. Frequent ones lie in fixed buffers, so that a tick without an event allocates nothing.

use std::collections::VecDeque;

use super::io::{MediaChannel, Output};
use crate::frame::{FRAME, Sample};

/// Datagrams a call may leave in one pass: the rest of what was said before an event, the event or audio, a report.
const PACKETS: usize = 4;

/// A queue of outputs with fixed buffers for packets, ears and early media.
#[derive(Debug)]
pub(super) struct Outbox {
    queue: VecDeque<Waiting>,
    /// Datagrams, one behind the other, and the bytes of them.
    packets: Box<[u8]>,
    packed: usize,
    ears: Box<[[i16; FRAME]]>,
    free_ears: usize,
    early: Box<[i16; FRAME]>,
    /// The frame of a leg of PCM, from its position on.
    frame: Vec<i16>,
}

#[derive(Debug)]
enum Waiting {
    Packet { path: MediaChannel, at: usize, len: usize },
    Ears { from: Sample, slot: usize },
    Early,
    Frame { from: Sample },
    Owned(Output<'static>),
}

impl Outbox {
    /// Returns a queue for one pass, in which up to `heard` frames (at least 1) go to the recognizer.
    pub(super) fn new(heard: usize) -> Outbox {
        Outbox {
            queue: VecDeque::with_capacity(16),
            packets: Box::default(),
            packed: 0,
            ears: vec![[0; FRAME]; heard.max(1)].into(),
            free_ears: 0,
            early: Box::new([0; FRAME]),
            frame: Vec::new(),
        }
    }

    /// Makes space for the datagrams of a leg, of which the longest has `longest` bytes. Those that wait are dropped.
    pub(super) fn carry(&mut self, longest: usize) {
        self.queue.retain(|waiting| !matches!(waiting, Waiting::Packet { .. }));
        (self.packets, self.packed) = (vec![0; PACKETS * longest].into(), 0);
    }

    /// Adds a datagram; it is dropped when the pass has no space left.
    pub(super) fn packet(&mut self, path: MediaChannel, bytes: &[u8]) {
        let at = self.packed;
        if let Some(slot) = self.packets.get_mut(at..at + bytes.len()) {
            slot.copy_from_slice(bytes);
            self.packed += bytes.len();
            self.queue.push_back(Waiting::Packet { path, at, len: bytes.len() });
        }
    }

    /// Adds a received frame; it is dropped when the pass has no slot left.
    pub(super) fn ears(&mut self, from: Sample, pcm: &[i16; FRAME]) {
        let slot = self.free_ears;
        if let Some(ears) = self.ears.get_mut(slot) {
            ears.copy_from_slice(pcm);
            self.free_ears += 1;
            self.queue.push_back(Waiting::Ears { from, slot });
        }
    }

    /// Adds a frame to be sent.
    pub(super) fn frame(&mut self, from: Sample, pcm: &[i16]) {
        self.frame.clear();
        self.frame.extend_from_slice(pcm);
        self.queue.push_back(Waiting::Frame { from });
    }

    /// Adds one frame that was heard before the answer.
    pub(super) fn early(&mut self, pcm: &[i16; FRAME]) {
        self.early.copy_from_slice(pcm);
        self.queue.push_back(Waiting::Early);
    }

    /// Adds any other output.
    pub(super) fn push(&mut self, output: Output<'static>) {
        self.queue.push_back(Waiting::Owned(output));
    }

    /// Returns the next output, in order.
    pub(super) fn pop(&mut self) -> Option<Output<'_>> {
        let Some(waiting) = self.queue.pop_front() else {
            (self.packed, self.free_ears) = (0, 0);
            // Begins at the front again, where it stays in the processor's cache.
            self.queue.clear();
            return None;
        };
        Some(match waiting {
            Waiting::Packet { path, at, len } => Output::Packet { path, bytes: &self.packets[at..at + len] },
            Waiting::Ears { from, slot } => Output::Ears { from, pcm: &self.ears[slot][..] },
            Waiting::Early => Output::Early(&self.early[..]),
            Waiting::Frame { from } => Output::Frame { from, pcm: &self.frame },
            Waiting::Owned(output) => output,
        })
    }

    /// True when nothing waits.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
