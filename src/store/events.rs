//! Events of running calls, on their way to live watchers. The complete record is the timeline that is stored when a
//! call is over. A call never waits for a watcher.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;

/// Events that a feed keeps; what comes after them is only in the timeline.
const MOST_EVENTS: usize = 50_000;

/// Figures of the network that a feed keeps: half a minute of them. A watcher that comes later needs no older ones, and
/// a call of an hour has 3,600.
const NETWORK_KEPT: usize = 30;

/// One event as watchers see it.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedEvent {
    /// Number of the result's attempt that the event belongs to; each one numbers its events anew.
    pub attempt: i64,
    /// Number in the timeline; `None` for what the timeline does not keep (running text).
    pub seq: Option<i64>,
    /// Name of the event, as in the API.
    pub event: String,
    /// The timeline object as JSON text: it waits for watchers as long as the call lasts, and takes a fifth of
    /// the memory.
    pub data: Box<str>,
}

impl FeedEvent {
    /// Returns an event of the timeline, as the object `data` tells it.
    pub fn new(attempt: i64, seq: Option<i64>, event: &str, data: &Value) -> FeedEvent {
        FeedEvent { attempt, seq, event: event.to_owned(), data: data.to_string().into() }
    }
}

/// The events of one result, and a signal for each change of its state.
#[derive(Debug)]
pub struct Feed {
    events: Mutex<Kept>,
    changes: watch::Sender<u64>,
}

/// The events of a feed, each with its place among all that were added.
#[derive(Debug, Default)]
struct Kept {
    events: Vec<(usize, Arc<FeedEvent>)>,
    /// Number of events that were added.
    added: usize,
    /// Places of the figures of the network, oldest first.
    network: VecDeque<usize>,
}

impl Kept {
    fn add(&mut self, item: FeedEvent) {
        if item.event == "network" {
            self.network.push_back(self.added);
            if self.network.len() > NETWORK_KEPT
                && let Some(oldest) = self.network.pop_front()
                && let Ok(at) = self.events.binary_search_by_key(&oldest, |(place, _)| *place)
            {
                self.events.remove(at);
            }
        }
        self.events.push((self.added, Arc::new(item)));
        self.added += 1;
    }
}

impl Feed {
    fn new() -> Feed {
        Feed { events: Mutex::default(), changes: watch::Sender::new(0) }
    }

    /// Adds an event and wakes the watchers; after the limit of events it is dropped.
    pub fn add(&self, item: FeedEvent) {
        let mut kept = self.events.lock();
        if kept.events.len() < MOST_EVENTS {
            kept.add(item);
        }
        drop(kept);
        self.touch();
    }

    /// Notes that the state of the result has changed.
    pub fn touch(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Returns a watch that changes at every event and every change of state.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns the events that are kept of those from the `from`-th on, and the number of all that were added so far.
    pub fn events_from(&self, from: usize) -> (Vec<Arc<FeedEvent>>, usize) {
        let kept = self.events.lock();
        let first = kept.events.partition_point(|(place, _)| *place < from);
        (kept.events[first..].iter().map(|(_, event)| event.clone()).collect(), kept.added)
    }
}

/// The feeds of all results that somebody makes or watches.
#[derive(Debug, Default)]
pub struct Feeds {
    by_result: Mutex<HashMap<i64, Weak<Feed>>>,
}

impl Feeds {
    /// Returns the feed of a result; it lives as long as somebody holds it.
    pub fn of(&self, result_id: i64) -> Arc<Feed> {
        let mut feeds = self.by_result.lock();
        if let Some(feed) = feeds.get(&result_id).and_then(Weak::upgrade) {
            return feed;
        }
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let feed = Arc::new(Feed::new());
        feeds.insert(result_id, Arc::downgrade(&feed));
        feed
    }

    /// Wakes those who watch a result.
    pub fn touch(&self, result_id: i64) {
        let feed = self.by_result.lock().get(&result_id).and_then(Weak::upgrade);
        if let Some(feed) = feed {
            feed.touch();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watchers_miss_nothing_and_empty_feeds_go_away() {
        let feeds = Feeds::default();
        let feed = feeds.of(1);
        let mut changes = feed.changes();
        let item = |n| FeedEvent::new(1, Some(n), "e", &Value::Null);
        feed.add(item(0));
        feeds.of(1).add(item(1));
        feeds.touch(1);
        assert!(changes.has_changed().expect("the feed lives"));
        assert_eq!(*changes.borrow_and_update(), 3);
        let seqs = |from| feed.events_from(from).0.iter().map(|event| event.seq).collect::<Vec<_>>();
        assert_eq!((seqs(0), seqs(1), seqs(9)), (vec![Some(0), Some(1)], vec![Some(1)], vec![]));
        drop(feed);
        assert_eq!(feeds.of(1).events_from(0), (vec![], 0));
        feeds.of(2);
        assert_eq!(feeds.by_result.lock().len(), 1);
    }

    #[test]
    fn a_long_call_keeps_the_last_figures_of_the_network_alone() {
        let feed = Feed::new();
        let (mut seen, mut events_so_far) = (0, Vec::new());
        for n in 0..3600 {
            let name = if n % 100 == 7 { "turn.ended" } else { "network" };
            feed.add(FeedEvent::new(1, Some(n), name, &Value::Null));
            // A watcher that looks each ten seconds.
            if n % 10 == 9 {
                let (events, next) = feed.events_from(seen);
                (seen, events_so_far) = (next, [events_so_far, events].concat());
            }
        }
        assert_eq!(
            events_so_far.iter().filter_map(|event| event.seq).collect::<Vec<_>>(),
            (0..3600).collect::<Vec<_>>()
        );
        let late: Vec<Arc<FeedEvent>> = feed.events_from(0).0;
        assert_eq!(late.iter().filter(|event| event.event == "turn.ended").count(), 36);
        assert_eq!(late.len(), 36 + NETWORK_KEPT);
    }
}
