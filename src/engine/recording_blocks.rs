//! Memory of recorded audio that waits for the recorder: blocks of 20 ms, which all calls of a media thread share.
//!
//! The media thread fills blocks, the recorder empties them and gives them back. Neither waits for the other, and the
//! media thread neither allocates nor frees.
//!
//! A disk that stalls holds up all calls at once, and the recorder with them. So there are as many blocks as all calls
//! need then, before they are needed. Those that are not needed are never written to, and take addresses alone.
//! Memory follows the largest amount that has waited so far. It is kept for later calls, and given to nothing else.

use std::slice::IterMut;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use ringer_media::frame::FRAME;
use rtrb::{Consumer, Producer, RingBuffer};

/// Samples of 20 ms. It lives as long as the process.
pub(super) type Block = &'static mut [i16; FRAME];

/// Blocks that are made at once: 42 MB. What is smaller than 32 MB may be memory that was used before (`mallopt(3)`,
/// `M_MMAP_THRESHOLD`), which takes more than addresses.
const SLAB: usize = 65_536;
/// Slabs of a media thread: audio of more than 5 hours.
const MOST_SLABS: usize = 16;
/// Blocks on their way back. The media thread takes them every 4 ms.
const RETURNING: usize = 8192;

/// Free blocks, at their media thread.
pub(super) struct Blocks {
    /// Blocks that were filled before. The last one in is the first one out.
    free: Vec<Block>,
    returning: Consumer<Block>,
    /// Blocks that were never filled.
    fresh: IterMut<'static, [i16; FRAME]>,
    slabs: Consumer<&'static mut [[i16; FRAME]]>,
    used_count: Arc<AtomicUsize>,
}

/// The recorder's way of giving blocks back to a media thread.
#[derive(Debug)]
pub(super) struct BlockReturn {
    ring: Producer<Block>,
    /// Blocks for which the ring had no space.
    waiting: Vec<Block>,
}

/// Maker of the blocks of a media thread, as its calls need them; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct BlockReserve(Arc<Mutex<Reserved>>);

#[derive(Debug)]
struct Reserved {
    slabs: Producer<&'static mut [[i16; FRAME]]>,
    /// Number of blocks that were made, and of those that were filled at least once.
    made_count: usize,
    used_count: Arc<AtomicUsize>,
    /// Number of blocks that open files may need.
    needed_count: usize,
}

/// Blocks that a file may need at the same time. They are free for another file when this is dropped.
#[derive(Debug)]
pub(super) struct BlockShare {
    reserve: BlockReserve,
    count: usize,
}

/// Returns the parts of the memory of one media thread, which has no blocks yet.
pub(super) fn recording_blocks() -> (Blocks, BlockReturn, BlockReserve) {
    let (ring, returning) = RingBuffer::new(RETURNING);
    let (maker, slabs) = RingBuffer::new(MOST_SLABS);
    let free = Vec::with_capacity(SLAB * MOST_SLABS);
    let used_count = Arc::<AtomicUsize>::default();
    let reserved = Reserved { slabs: maker, made_count: 0, used_count: used_count.clone(), needed_count: 0 };
    (
        Blocks { free, returning, fresh: IterMut::default(), slabs, used_count },
        BlockReturn { ring, waiting: Vec::new() },
        BlockReserve(Arc::new(Mutex::new(reserved))),
    )
}

impl Blocks {
    /// Takes the blocks that were given back.
    pub(crate) fn collect(&mut self) {
        // There is space for all that were made.
        while self.free.len() < self.free.capacity()
            && let Ok(block) = self.returning.pop()
        {
            self.free.push(block);
        }
    }

    /// Returns a block, whose samples are those of its last use.
    pub(crate) fn take(&mut self) -> Option<Block> {
        if let Some(block) = self.free.pop() {
            return Some(block);
        }
        let fresh = self.fresh.next().or_else(|| {
            self.fresh = self.slabs.pop().ok()?.iter_mut();
            self.fresh.next()
        });
        self.used_count.fetch_add(usize::from(fresh.is_some()), Ordering::Relaxed);
        fresh
    }
}

impl BlockReturn {
    /// Gives a block back to its media thread.
    pub(crate) fn give(&mut self, block: Block) {
        if let Err(rtrb::PushError::Full(block)) = self.ring.push(block) {
            self.waiting.push(block);
        }
    }

    /// Gives back what had to wait, as far as there is space.
    pub(crate) fn give_waiting(&mut self) {
        while let Some(block) = self.waiting.pop() {
            if let Err(rtrb::PushError::Full(block)) = self.ring.push(block) {
                self.waiting.push(block);
                return;
            }
        }
    }
}

impl BlockReserve {
    /// Returns the bytes of the blocks that were never filled, which take addresses alone.
    pub(crate) fn unused_bytes(&self) -> usize {
        let reserved = self.0.lock();
        let count = reserved.made_count.saturating_sub(reserved.used_count.load(Ordering::Relaxed));
        count * size_of::<[i16; FRAME]>()
    }

    /// Reserves `count` blocks more; makes them if there are too few.
    pub(crate) fn share(&self, count: usize) -> BlockShare {
        let mut reserved = self.0.lock();
        reserved.needed_count += count;
        while reserved.made_count < reserved.needed_count && !reserved.slabs.is_full() {
            // Zeroed memory of this size comes from the system, which provides a page when it is first written to.
            let slab = Vec::leak(vec![0_i16; SLAB * FRAME]).as_chunks_mut().0;
            // There is space.
            let _ = reserved.slabs.push(slab);
            reserved.made_count += SLAB;
        }
        BlockShare { reserve: self.clone(), count }
    }
}

impl Drop for BlockShare {
    fn drop(&mut self) {
        self.reserve.0.lock().needed_count -= self.count;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_that_came_back_are_used_before_others() {
        let (mut blocks, mut back, reserve) = recording_blocks();
        assert!(blocks.take().is_none(), "nothing is reserved");
        let _share = reserve.share(3);
        let mut taken: Vec<Block> = (0..3).map(|_| blocks.take().expect("it was reserved")).collect();
        for (block, mark) in taken.iter_mut().zip(1..) {
            block[0] = mark;
        }
        taken.into_iter().for_each(|block| back.give(block));
        blocks.collect();
        let marks: Vec<i16> = (0..4).map(|_| blocks.take().expect("there are more")[0]).collect();
        assert_eq!(marks, [3, 2, 1, 0]);
        assert_eq!(reserve.unused_bytes(), (SLAB - 4) * 2 * FRAME);
    }

    #[test]
    fn there_are_as_many_blocks_as_were_needed_at_the_same_time() {
        let (mut blocks, _back, reserve) = recording_blocks();
        for _ in 0..3 {
            let shares = [reserve.share(SLAB), reserve.share(1)];
            assert_eq!(reserve.0.lock().needed_count, SLAB + 1);
            drop(shares);
        }
        assert_eq!(std::iter::from_fn(|| blocks.take()).count(), 2 * SLAB);
        assert_eq!(reserve.0.lock().needed_count, 0);
    }

    #[test]
    fn blocks_wait_while_they_cannot_be_taken_back() {
        let (mut blocks, mut back, reserve) = recording_blocks();
        let _share = reserve.share(RETURNING + 5);
        let taken: Vec<Block> = (0..RETURNING + 5).map(|_| blocks.take().expect("it was reserved")).collect();
        taken.into_iter().for_each(|block| back.give(block));
        assert_eq!(back.waiting.len(), 5);
        blocks.collect();
        back.give_waiting();
        blocks.collect();
        assert_eq!((back.waiting.len(), blocks.free.len()), (0, RETURNING + 5));
    }
}
