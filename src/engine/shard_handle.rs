//! A media thread as the rest of the engine holds it: its ring of orders, and its end.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{JoinHandle, Thread};

use parking_lot::Mutex;
use rtrb::{Consumer, Producer, RingBuffer};

use super::lateness::Lateness;
use super::recording_blocks::Blocks;
use super::shard::{FromShard, RING, Shard, Shared, ToShard};
use super::wake::Wake;

/// A running media thread.
pub(super) struct ShardHandle {
    commands: Mutex<Producer<ToShard>>,
    pub shared: Arc<Shared>,
    pub thread: Mutex<Option<JoinHandle<()>>>,
    /// The same thread, to wake it.
    sleeper: Thread,
}

/// Stops the thread of an engine that was not stopped: it would wait for orders as long as the process runs.
impl Drop for ShardHandle {
    fn drop(&mut self) {
        self.stop();
    }
}

impl ShardHandle {
    /// Ends the thread, whose calls end with it.
    pub(crate) fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.rouse(&self.sleeper);
    }

    /// Hands an order to the thread; waits for space in the ring, which the thread empties each millisecond.
    pub(crate) fn order(&self, order: ToShard) {
        let mut order = Some(order);
        let mut ring = self.commands.lock();
        while let Some(next) = order.take() {
            if let Err(rtrb::PushError::Full(back)) = ring.push(next) {
                if self.shared.stop.load(Ordering::Relaxed) {
                    return;
                }
                order = Some(back);
                std::thread::yield_now();
            }
        }
        drop(ring);
        self.shared.rouse(&self.sleeper);
    }
}

/// Starts a media thread that records into `blocks`; returns it, and the ring of its messages.
///
/// # Errors
/// A thread or an event descriptor that the machine refuses.
pub(super) fn start_shard(at: usize, blocks: Blocks) -> io::Result<(ShardHandle, Consumer<FromShard>)> {
    let (commands, orders) = RingBuffer::new(RING);
    let (messages, reader) = RingBuffer::new(RING);
    let shared = Arc::new(Shared {
        stop: false.into(),
        rests: false.into(),
        calls: 0.into(),
        lateness: Lateness::default(),
        wake: Arc::new(Wake::new()?),
    });
    let shard = Shard::new(orders, messages, shared.clone(), blocks);
    let thread = std::thread::Builder::new().name(format!("media-{at}")).spawn(move || shard.run())?;
    let (commands, sleeper) = (Mutex::new(commands), thread.thread().clone());
    Ok((ShardHandle { commands, shared, thread: Mutex::new(Some(thread)), sleeper }, reader))
}
