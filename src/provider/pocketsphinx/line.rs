//! Assignment of decoders to streams. Streams without a decoder wait in order, with the orders given until then.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::mpsc::SyncSender;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::mpsc;

use crate::Recognized;

/// Input of one decoder thread.
pub(super) struct Worker {
    /// Has places for every slot's backlog, opening and end at once, and one [`Order::Load`]: sending into it always
    /// succeeds.
    pub orders: SyncSender<(usize, Order)>,
}

/// Assigns decoders to streams; streams that find none wait in order.
#[derive(Default)]
pub(super) struct Line(Mutex<Places>);

#[derive(Default)]
struct Places {
    /// Decoders that nobody uses: the number of the thread, and of the decoder with it.
    free: VecDeque<(usize, usize)>,
    /// Streams without a decoder, the longest first.
    waiting: VecDeque<Arc<Seat>>,
    /// All decoders that there are.
    decoders: usize,
}

/// Destination of a stream's orders, which changes when it gets a decoder.
pub(super) struct Seat(Mutex<At>);

enum At {
    /// Slot of this thread's decoder.
    Decoder(Arc<Worker>, usize),
    /// The next free decoder, with the orders given until then.
    Line(Vec<Order>),
    /// Nowhere: the stream was given up while it waited.
    Gone,
}

/// Order to a decoder.
pub(super) enum Order {
    Open {
        news: mpsc::Sender<Recognized>,
        last: mpsc::OwnedPermit<Recognized>,
        backlog: Arc<AtomicUsize>,
    },
    Audio(Vec<i16>),
    Finish,
    Abandon,
    /// All decoders of the thread, before they are asked for.
    Load,
}

impl Worker {
    pub(super) fn send(&self, slot: usize, order: Order) {
        // There is always space (see `orders`); a thread that is gone has closed its streams.
        let _ = self.orders.try_send((slot, order));
    }
}

impl Line {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.0.lock()
    }

    /// Adds the decoders of thread `index`, free.
    pub(super) fn add(&self, index: usize, slots: usize) {
        let mut places = self.places();
        places.decoders += slots;
        places.free.extend((0..slots).map(|slot| (index, slot)));
        // One of each thread before the second of any.
        places.free.make_contiguous().sort_by_key(|&(index, slot)| (slot, index));
    }

    /// Returns a place for a new stream: a decoder, or one in the line unless that is full.
    pub(super) fn seat(&self, workers: &[Arc<Worker>]) -> Option<Arc<Seat>> {
        let mut places = self.places();
        if let Some((index, slot)) = places.free.pop_front() {
            return Some(Arc::new(Seat(Mutex::new(At::Decoder(workers[index].clone(), slot)))));
        }
        places.waiting.retain(|seat| !seat.is_gone());
        if places.waiting.len() >= places.decoders {
            return None;
        }
        let seat = Arc::new(Seat(Mutex::new(At::Line(Vec::new()))));
        places.waiting.push_back(seat.clone());
        Some(seat)
    }

    /// Gives a decoder that is free to who has waited longest.
    pub(super) fn free(&self, index: usize, slot: usize, worker: &Arc<Worker>) {
        let mut places = self.places();
        while let Some(seat) = places.waiting.pop_front() {
            if seat.take(worker, slot) {
                return;
            }
        }
        places.free.push_back((index, slot));
    }
}

impl Seat {
    fn at(&self) -> MutexGuard<'_, At> {
        self.0.lock()
    }

    fn is_gone(&self) -> bool {
        matches!(*self.at(), At::Gone)
    }

    pub(super) fn order(&self, order: Order) {
        let mut at = self.at();
        match &mut *at {
            At::Decoder(worker, slot) => worker.send(*slot, order),
            At::Line(_) if matches!(order, Order::Abandon) => *at = At::Gone,
            At::Line(orders) => orders.push(order),
            At::Gone => {}
        }
    }

    /// Ends the waiting; returns false if nobody waits here any more.
    fn take(&self, worker: &Arc<Worker>, slot: usize) -> bool {
        let mut at = self.at();
        let At::Line(orders) = &mut *at else { return false };
        for order in std::mem::take(orders) {
            worker.send(slot, order);
        }
        *at = At::Decoder(worker.clone(), slot);
        true
    }
}
