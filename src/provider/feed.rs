//! The way of a call's audio to a recognizer that runs as a task.

use tokio::sync::mpsc;

use super::RecognizerFeed;

/// Pieces that may wait: 40 s of 40 ms each.
const PIECES: usize = 1000;

/// Order to a recognizer's task.
#[derive(Debug)]
pub(super) enum Order {
    /// Samples at 16 kHz to recognise.
    Audio(Vec<i16>),
    /// No more audio follows.
    Finish,
}

/// Sends audio on; dropping it without `finish` closes the channel.
pub(super) struct AudioFeed {
    orders: mpsc::Sender<Order>,
    /// The end has its place, whatever waits before it.
    end: Option<mpsc::OwnedPermit<Order>>,
}

impl AudioFeed {
    /// Returns a feed and its other end.
    pub(super) fn new() -> (AudioFeed, mpsc::Receiver<Order>) {
        let (orders, receiver) = mpsc::channel(PIECES);
        let end = orders.clone().try_reserve_owned().ok();
        (AudioFeed { orders, end }, receiver)
    }
}

impl RecognizerFeed for AudioFeed {
    fn push(&mut self, pcm: &[i16]) {
        if self.end.is_some() {
            // A recognizer that is 40 s behind hears no more: its text would come too late.
            let _ = self.orders.try_send(Order::Audio(pcm.to_vec()));
        }
    }

    fn finish(&mut self) {
        if let Some(end) = self.end.take() {
            end.send(Order::Finish);
        }
    }
}
