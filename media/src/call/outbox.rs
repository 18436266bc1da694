//! Outputs waiting to be polled. Frequent ones lie in fixed buffers, so that a tick without an event allocates nothing.

use std::collections::VecDeque;

use super::io::{Output, Path};
use crate::frame::{FRAME, Sample};

/// Datagrams a call may leave in one pass: the rest of what was said before an event, the event or audio, a report.
const PACKETS: usize = 4;
/// Largest datagram: 60 ms of 16 kHz L16 and headers.
const PACKET_BYTES: usize = 2048;

/// A queue of outputs with fixed buffers for packets, ears and early media.
#[derive(Debug)]
pub struct Outbox {
    queue: VecDeque<Waiting>,
    packets: Box<[[u8; PACKET_BYTES]; PACKETS]>,
    free_packet: usize,
    ears: Box<[[i16; FRAME]]>,
    free_ears: usize,
    early: Box<[i16; FRAME]>,
}

#[derive(Debug)]
enum Waiting {
    Packet { path: Path, slot: usize, len: usize },
    Ears { from: Sample, slot: usize },
    Early,
    Owned(Output<'static>),
}

impl Outbox {
    /// Room for one pass, in which up to `heard` frames (at least 1) go to the ears.
    pub fn new(heard: usize) -> Outbox {
        Outbox {
            queue: VecDeque::with_capacity(16),
            packets: Box::new([[0; PACKET_BYTES]; PACKETS]),
            free_packet: 0,
            ears: vec![[0; FRAME]; heard.max(1)].into(),
            free_ears: 0,
            early: Box::new([0; FRAME]),
        }
    }

    /// A datagram; dropped when it is longer than any that a leg makes or the pass has no slot left.
    pub fn packet(&mut self, path: Path, bytes: &[u8]) {
        if self.free_packet < PACKETS && bytes.len() <= PACKET_BYTES {
            let slot = self.free_packet;
            self.packets[slot][..bytes.len()].copy_from_slice(bytes);
            self.free_packet += 1;
            self.queue.push_back(Waiting::Packet { path, slot, len: bytes.len() });
        }
    }

    /// A frame that was just heard; dropped when the pass has no slot left.
    pub fn ears(&mut self, from: Sample, pcm: &[i16; FRAME]) {
        let slot = self.free_ears;
        if let Some(ears) = self.ears.get_mut(slot) {
            ears.copy_from_slice(pcm);
            self.free_ears += 1;
            self.queue.push_back(Waiting::Ears { from, slot });
        }
    }

    /// One frame that was heard before the answer.
    pub fn early(&mut self, pcm: &[i16; FRAME]) {
        self.early.copy_from_slice(pcm);
        self.queue.push_back(Waiting::Early);
    }

    /// Anything else.
    pub fn push(&mut self, output: Output<'static>) {
        self.queue.push_back(Waiting::Owned(output));
    }

    /// The next output, in order.
    pub fn pop(&mut self) -> Option<Output<'_>> {
        let Some(waiting) = self.queue.pop_front() else {
            (self.free_packet, self.free_ears) = (0, 0);
            // Begins at the front again, where it stays in the processor's cache.
            self.queue.clear();
            return None;
        };
        Some(match waiting {
            Waiting::Packet { path, slot, len } => Output::Packet { path, bytes: &self.packets[slot][..len] },
            Waiting::Ears { from, slot } => Output::Ears { from, pcm: &self.ears[slot][..] },
            Waiting::Early => Output::Recorded { early: true, pcm: &self.early[..], clean: &[] },
            Waiting::Owned(output) => output,
        })
    }

    /// True when nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
