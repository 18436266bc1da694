//! Memory for the payloads that a jitter buffer holds.

use crate::codec::Codec;

/// Number of packets that the buffer holds, and of blocks for their payloads.
pub const SLOTS: i64 = 64;

/// Length of the largest payload that is played, in bytes: 60 ms of L16 at 16 kHz, 120 ms at 8 kHz, and more than 200
/// ms of G.711 and G.722.
pub const MAX_PAYLOAD: usize = 1920;

/// Length of the longest payload that is played, in ticks: 200 ms (RFC 3551 4.2). Opus has none longer than 120 ms (RFC
/// 6716 3.2.5).
pub const MAX_TICKS: u32 = 1600;

/// Length of a block in ticks.
const BLOCK_TICKS: usize = 160;

/// Payloads of the packets held, in blocks of 20 ms; longer ones have several. The block freed last is used first. So
/// only as much memory is touched as the buffer is deep, and it stays in the processor's cache.
#[derive(Clone, Debug)]
pub struct Payloads {
    bytes: Box<[u8]>,
    /// Length of a block in bytes.
    block: usize,
    free: [u8; SLOTS as usize],
    count: usize,
    /// Next block of each block, within a payload.
    after: [u8; SLOTS as usize],
    /// Payload of several blocks that was asked for last, in one piece.
    whole: Box<[u8]>,
}

impl Payloads {
    /// Returns [`SLOTS`] free blocks.
    pub fn new(codec: Codec) -> Payloads {
        let block = block_bytes(codec);
        Payloads {
            bytes: vec![0; block * SLOTS as usize].into(),
            block,
            free: std::array::from_fn(|at| at as u8),
            count: SLOTS as usize,
            after: [0; SLOTS as usize],
            whole: vec![0; longest_payload(codec)].into(),
        }
    }

    /// True when a payload of `len` bytes can be kept.
    pub fn has_space(&self, len: usize) -> bool {
        len.div_ceil(self.block) <= self.count
    }

    /// Keeps `payload`, for which there is space, and returns its first block.
    pub fn keep(&mut self, payload: &[u8]) -> u8 {
        let mut behind = 0;
        for part in payload.chunks(self.block).rev() {
            self.count -= 1;
            let block = self.free[self.count];
            self.bytes[usize::from(block) * self.block..][..part.len()].copy_from_slice(part);
            self.after[usize::from(block)] = behind;
            behind = block;
        }
        behind
    }

    /// Returns the payload of `len` bytes that begins at `block`, which may just have been freed.
    pub fn of(&mut self, mut block: u8, len: usize) -> &[u8] {
        if len <= self.block {
            return &self.bytes[usize::from(block) * self.block..][..len];
        }
        for part in self.whole[..len].chunks_mut(self.block) {
            part.copy_from_slice(&self.bytes[usize::from(block) * self.block..][..part.len()]);
            block = self.after[usize::from(block)];
        }
        &self.whole[..len]
    }

    /// Frees the blocks of the payload of `len` bytes that begins at `block`.
    pub fn give_back(&mut self, mut block: u8, len: usize) {
        for _ in 0..len.div_ceil(self.block) {
            self.free[self.count] = block;
            self.count += 1;
            block = self.after[usize::from(block)];
        }
    }
}

/// Returns the length of a block in bytes: with 64 of them the buffer holds more than a second. Opus may have up to 128
/// kbit/s in one block.
fn block_bytes(codec: Codec) -> usize {
    codec.bytes_per_tick().map_or(320, |bytes| bytes * BLOCK_TICKS)
}

/// Returns the length of the longest payload that is played, in bytes.
fn longest_payload(codec: Codec) -> usize {
    codec.bytes_per_tick().map_or(MAX_PAYLOAD, |bytes| (bytes * MAX_TICKS as usize).min(MAX_PAYLOAD))
}
