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
    ears: Box<[i16; FRAME]>,
    early: Box<[i16; FRAME]>,
}

#[derive(Debug)]
enum Waiting {
    Packet { path: Path, slot: usize, len: usize },
    Ears { from: Sample },
    Early,
    Owned(Output<'static>),
}

impl Outbox {
    /// Room for one pass.
    pub fn new() -> Outbox {
        Outbox {
            queue: VecDeque::with_capacity(16),
            packets: Box::new([[0; PACKET_BYTES]; PACKETS]),
            free_packet: 0,
            ears: Box::new([0; FRAME]),
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

    /// The frame that was just heard.
    pub fn ears(&mut self, from: Sample, pcm: &[i16; FRAME]) {
        self.ears.copy_from_slice(pcm);
        self.queue.push_back(Waiting::Ears { from });
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
            self.free_packet = 0;
            // Begins at the front again, where it stays in the processor's cache.
            self.queue.clear();
            return None;
        };
        Some(match waiting {
            Waiting::Packet { path, slot, len } => Output::Packet { path, bytes: &self.packets[slot][..len] },
            Waiting::Ears { from } => Output::Ears { from, pcm: &self.ears[..] },
            Waiting::Early => Output::Recorded { early: true, pcm: &self.early[..], clean: &[] },
            Waiting::Owned(output) => output,
        })
    }

    /// True when nothing waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}
