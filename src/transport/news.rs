//! Queues of news for whoever follows a call. A sender never waits for its reader: news that do not fit are counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::mpsc;

/// Places of a queue that events of the other side leave free: news of the connection itself fit behind a flood
/// of them.
const RESERVED: usize = 16;

/// The sending end of a queue of news. Cheap to clone.
#[derive(Debug)]
pub struct NewsSender<N> {
    queue: mpsc::Sender<N>,
    lost: Arc<AtomicU64>,
}

impl<N> Clone for NewsSender<N> {
    fn clone(&self) -> NewsSender<N> {
        NewsSender { queue: self.queue.clone(), lost: self.lost.clone() }
    }
}

/// Count of the news of one queue that did not fit.
#[derive(Clone, Debug, Default)]
pub struct LostNews(Arc<AtomicU64>);

impl LostNews {
    /// Returns the count up to now.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl<N> NewsSender<N> {
    /// Returns both ends of a queue of so many news, at least 17.
    pub fn new(capacity: usize) -> (NewsSender<N>, mpsc::Receiver<N>) {
        let (queue, news) = mpsc::channel(capacity.max(RESERVED + 1));
        (NewsSender { queue, lost: Arc::default() }, news)
    }

    /// Sends news of the connection.
    pub fn send(&self, news: N) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.queue.try_send(news) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Sends an event of the other side, of which there may be many.
    pub fn send_event(&self, news: N) {
        if self.queue.capacity() > RESERVED {
            self.send(news);
        } else if !self.queue.is_closed() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns the count of news that did not fit; it outlives the sender.
    pub fn lost_news(&self) -> LostNews {
        LostNews(self.lost.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_without_space_are_counted_and_events_leave_some() {
        let (sender, mut news) = NewsSender::new(20);
        let lost = sender.lost_news();
        (0..10).for_each(|n| sender.send_event(n));
        assert_eq!(lost.count(), 6);
        (100..120).for_each(|n| sender.send(n));
        assert_eq!(lost.count(), 10);
        let found: Vec<i32> = std::iter::from_fn(|| news.try_recv().ok()).collect();
        assert!(found.into_iter().eq((0..4).chain(100..116)));
        // Nobody misses what is said after the end.
        drop(news);
        sender.send(0);
        sender.send_event(0);
        assert_eq!(lost.count(), 10);
    }
}
