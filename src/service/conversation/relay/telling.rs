//! Short news between engines: jobs that are due, and results that have changed.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use ringer_bus::Channel;
use ringer_store::Store;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::{CHANGES, WAKE};
use crate::conversation::held::Held;

/// Least time between two messages of one kind.
const BETWEEN: Duration = Duration::from_millis(50);
/// Results that one message names.
const MOST_RESULTS: usize = 5000;

/// Results of this engine that have changed since the last message.
#[derive(Default)]
pub(super) struct Changed {
    results: Mutex<BTreeSet<i64>>,
    noted: Notify,
}

impl Changed {
    pub(super) fn note(&self, result_id: i64) {
        self.results.lock().insert(result_id);
        self.noted.notify_one();
    }

    async fn next(&self) -> Vec<i64> {
        loop {
            let noted = self.noted.notified();
            let now = self.take();
            if !now.is_empty() {
                return now.into_iter().collect();
            }
            noted.await;
        }
    }

    /// Removes and returns as many results as one message names.
    fn take(&self) -> BTreeSet<i64> {
        let mut results = self.results.lock();
        let rest = results.iter().nth(MOST_RESULTS).copied();
        let rest = rest.map(|first| results.split_off(&first)).unwrap_or_default();
        std::mem::replace(&mut *results, rest)
    }
}

/// Tells other engines which kinds of jobs may be claimable: the first at once, the next together.
pub(super) async fn tell_wakes(channel: Channel, store: Store) {
    loop {
        for kind in store.next_wakes().await {
            channel.publish(&format!("{WAKE}.{kind}"), &());
        }
        sleep(BETWEEN).await;
    }
}

/// Wakes the workers of this process when another engine has stored jobs.
pub(super) async fn take_wakes(channel: Channel, store: Store) {
    let mut wakes = channel.listen(&format!("{WAKE}.*")).await;
    while wakes.next::<()>().await.is_some() {
        store.wake_workers();
    }
}

/// Tells other engines which results have changed.
pub(super) async fn tell_changes(channel: Channel, changed: Arc<Changed>) {
    loop {
        let results = changed.next().await;
        channel.publish(CHANGES, &results);
        sleep(BETWEEN).await;
    }
}

/// Wakes those who watch results here when these have changed in another engine.
pub(super) async fn take_changes(channel: Channel, held: Arc<Held>) {
    let mut changes = channel.listen(CHANGES).await;
    while let Some(change) = changes.next::<Vec<i64>>().await {
        change.body.into_iter().for_each(|result| held.touch(result));
    }
}
