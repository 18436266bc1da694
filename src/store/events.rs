//! Events of running calls, on their way to live watchers. The complete record is the timeline that is stored when a
//! call is over. A call never waits for a watcher.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use ringer_base::clock::new_id;
use serde_json::Value;
use tokio::sync::{Notify, watch};
use uuid::Uuid;

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
    id: Uuid,
    result_id: i64,
    events: Mutex<Kept>,
    changes: watch::Sender<u64>,
    /// Reason for which the engine that has the call is not heard; `None`: it is, or the call is here.
    away: Mutex<Option<String>>,
    /// True if another engine watches.
    is_followed: AtomicBool,
    news: Arc<News>,
}

/// The events of a feed, each with its place among all that were added.
#[derive(Debug, Default)]
struct Kept {
    events: Vec<Added>,
    /// Number of events that were added.
    added: usize,
    /// Attempt of the last event of this process; `None`: there is no such event.
    attempt: Option<i64>,
    /// Places of the figures of the network, oldest first.
    network: VecDeque<usize>,
}

/// An event in a feed.
#[derive(Clone, Debug)]
pub struct Added {
    /// Place among all events that were added.
    pub place: usize,
    /// The event that was added.
    pub event: Arc<FeedEvent>,
    /// True if it happened in this process, and not in another engine.
    is_own: bool,
}

impl Kept {
    fn add(&mut self, item: FeedEvent, is_own: bool) {
        if item.event == "network" {
            self.network.push_back(self.added);
            if self.network.len() > NETWORK_KEPT
                && let Some(oldest) = self.network.pop_front()
                && let Ok(at) = self.events.binary_search_by_key(&oldest, |added| added.place)
            {
                self.events.remove(at);
            }
        }
        self.attempt = if is_own { Some(item.attempt) } else { self.attempt };
        self.events.push(Added { place: self.added, event: Arc::new(item), is_own });
        self.added += 1;
    }

    fn from(&self, from: usize) -> &[Added] {
        &self.events[self.events.partition_point(|added| added.place < from)..]
    }
}

impl Feed {
    fn new(result_id: i64, is_followed: bool, news: Arc<News>) -> Feed {
        Feed {
            id: new_id(),
            result_id,
            events: Mutex::default(),
            changes: watch::Sender::new(0),
            away: Mutex::default(),
            is_followed: AtomicBool::new(is_followed),
            news,
        }
    }

    /// Returns the identifier of the feed; places are counted within it.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// Adds an event and wakes the watchers; after the limit of events it is dropped.
    pub fn add(&self, item: FeedEvent) {
        self.add_as(item, true);
        if self.is_followed.load(Ordering::Relaxed) {
            self.news.note(self.result_id);
        }
    }

    /// Adds an event that happened in another engine, as [`Feed::add`] does.
    pub fn add_of_another(&self, item: FeedEvent) {
        self.add_as(item, false);
    }

    fn add_as(&self, item: FeedEvent, is_own: bool) {
        let mut kept = self.events.lock();
        if kept.events.len() < MOST_EVENTS {
            kept.add(item, is_own);
        }
        drop(kept);
        self.touch();
    }

    /// Notes that the state of the result has changed.
    pub fn touch(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// Notes why the engine that has the call is not heard; `None`: it is.
    pub fn set_away(&self, why: Option<String>) {
        let before = std::mem::replace(&mut *self.away.lock(), why.clone());
        if before != why {
            self.touch();
        }
    }

    /// Returns why the engine that has the call is not heard; `None`: it is, or the call is here.
    pub fn away(&self) -> Option<String> {
        self.away.lock().clone()
    }

    /// Returns a watch that changes at every event and every change of state.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Returns the events that are kept of those from the `from`-th on, and the number of all that were added so far.
    pub fn events_from(&self, from: usize) -> (Vec<Arc<FeedEvent>>, usize) {
        let kept = self.events.lock();
        (kept.from(from).iter().map(|added| added.event.clone()).collect(), kept.added)
    }

    /// Returns the events of this process as [`Feed::events_from`] does, with their places.
    pub fn own_from(&self, from: usize) -> (Vec<Added>, usize) {
        let kept = self.events.lock();
        (kept.from(from).iter().filter(|added| added.is_own).cloned().collect(), kept.added)
    }

    /// Returns the attempt of the last event of this process; `None`: none has happened in it.
    pub fn own_attempt(&self) -> Option<i64> {
        self.events.lock().attempt
    }
}

/// Results with new events that other engines watch.
#[derive(Debug, Default)]
struct News {
    results: Mutex<BTreeSet<i64>>,
    noted: Notify,
}

impl News {
    fn note(&self, result_id: i64) {
        self.results.lock().insert(result_id);
        self.noted.notify_one();
    }
}

/// The feeds of all results that somebody makes or watches.
#[derive(Debug, Default)]
pub struct Feeds {
    by_result: Mutex<HashMap<i64, Weak<Feed>>>,
    /// Results that other engines watch.
    followed: Mutex<HashSet<i64>>,
    news: Arc<News>,
}

impl Feeds {
    /// Returns the feed of a result; it lives as long as somebody holds it.
    pub fn of(&self, result_id: i64) -> Arc<Feed> {
        let mut feeds = self.by_result.lock();
        if let Some(feed) = feeds.get(&result_id).and_then(Weak::upgrade) {
            return feed;
        }
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let is_followed = self.followed.lock().contains(&result_id);
        let feed = Arc::new(Feed::new(result_id, is_followed, self.news.clone()));
        feeds.insert(result_id, Arc::downgrade(&feed));
        feed
    }

    /// Returns the feed of a result if somebody holds it.
    pub fn find(&self, result_id: i64) -> Option<Arc<Feed>> {
        self.by_result.lock().get(&result_id).and_then(Weak::upgrade)
    }

    /// Wakes those who watch a result.
    pub fn touch(&self, result_id: i64) {
        if let Some(feed) = self.find(result_id) {
            feed.touch();
        }
    }

    /// Notes that another engine watches a result, or that none does any more.
    pub fn follow(&self, result_id: i64, is_followed: bool) {
        // The lock is that of the making of a feed, which reads the set.
        let feeds = self.by_result.lock();
        let mut followed = self.followed.lock();
        if is_followed {
            followed.insert(result_id)
        } else {
            followed.remove(&result_id)
        };
        if let Some(feed) = feeds.get(&result_id).and_then(Weak::upgrade) {
            feed.is_followed.store(is_followed, Ordering::Relaxed);
        }
    }

    /// Returns the results that other engines watch and that have new events since the last call, once there are some.
    pub async fn next_news(&self) -> BTreeSet<i64> {
        loop {
            let noted = self.news.noted.notified();
            let results = std::mem::take(&mut *self.news.results.lock());
            if !results.is_empty() {
                return results;
            }
            noted.await;
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
        let feed = Feeds::default().of(1);
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

    #[tokio::test]
    async fn events_that_another_engine_watches_are_told_and_those_of_another_engine_are_not() {
        let feeds = Feeds::default();
        let item = |n| FeedEvent::new(1, Some(n), "e", &Value::Null);
        let (one, two) = (feeds.of(1), feeds.of(2));
        one.add(item(0));
        feeds.follow(1, true);
        feeds.follow(3, true);
        let three = feeds.of(3);
        two.add(item(0));
        one.add_of_another(item(1));
        assert_eq!((one.own_attempt(), two.own_attempt(), three.own_attempt()), (Some(1), Some(1), None));
        one.add(item(2));
        three.add(item(0));
        assert_eq!(feeds.next_news().await, BTreeSet::from([1, 3]));
        let places = |feed: &Feed| feed.own_from(0).0.iter().map(|added| added.place).collect::<Vec<_>>();
        assert_eq!((places(&one), one.own_from(0).1, one.events_from(0).1), (vec![0, 2], 3, 3));
        feeds.follow(1, false);
        one.add(item(3));
        three.add(item(1));
        assert_eq!(feeds.next_news().await, BTreeSet::from([3]));
        assert_ne!(one.id(), two.id());
        assert!(feeds.find(4).is_none());
    }
}
