//! The side of the engine that holds a conversation: it tells events while somebody listens, and takes orders.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ringer_bus::{Channel, Received};
use ringer_store::events::Feed;
use tokio::time::interval;
use uuid::Uuid;

use super::pieces::{Answer, Order, notice_of, piece_of, reason_named};
use super::{EVENTS, ORDERS, WATCH};
use crate::conversation::held::Held;

/// Interval at which watchers that are gone are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(5);
/// Looks for which events are told after the last word of a watcher: three of its intervals.
const LOOKS: u32 = 6;
/// Least time for which the answer to an order is kept, so that it is done once: longer than a message is taken for
/// new.
const REMEMBERED_FOR: Duration = Duration::from_secs(150);

/// Results that other engines watch.
struct Followed {
    channel: Channel,
    held: Arc<Held>,
    /// Looks that are left of each.
    left: HashMap<i64, u32>,
    /// Feed of each, and the place up to which its events were told.
    told: HashMap<i64, (Uuid, usize)>,
}

/// Tells the events of conversations in this process while other engines watch them.
pub(super) async fn tell_events(channel: Channel, held: Arc<Held>) {
    let mut watchers = channel.listen(&format!("{WATCH}.*")).await;
    let mut followed = Followed { channel, held: held.clone(), left: HashMap::new(), told: HashMap::new() };
    let mut sweep = interval(SWEEP_EVERY);
    loop {
        tokio::select! {
            watcher = watchers.next::<()>() => match watcher {
                Some(watcher) => followed.follow(&watcher),
                None => return,
            },
            results = held.feeds.next_news() => results.into_iter().for_each(|result| followed.tell(result)),
            _ = sweep.tick() => followed.sweep(),
        }
    }
}

impl Followed {
    fn follow(&mut self, watcher: &Received<()>) {
        let Ok(result_id) = watcher.word(1).parse::<i64>() else { return };
        if self.left.insert(result_id, LOOKS).is_none() {
            self.held.feeds.follow(result_id, true);
        }
        let Some(feed) = self.held.feeds.find(result_id).filter(|feed| feed.own_attempt().is_some()) else { return };
        // Other watchers have what was told: the rest goes first, so that the notice asks none of them to come for it.
        if self.told.get(&result_id).is_some_and(|(id, _)| *id == feed.id()) {
            self.tell(result_id);
        }
        let notice = notice_of(&feed);
        self.told.insert(result_id, (notice.feed, notice.added));
        self.channel.publish(&subject(result_id, notice.attempt), &notice);
    }

    /// Sends the events of a result that were not sent yet.
    fn tell(&mut self, result_id: i64) {
        let Some(feed) = self.held.feeds.find(result_id).filter(|_| self.left.contains_key(&result_id)) else {
            return;
        };
        // A feed that began while somebody watched is told from its beginning.
        let told = self.told.get(&result_id).filter(|(id, _)| *id == feed.id());
        let mut from = told.map_or(0, |(_, from)| *from);
        loop {
            let piece = match piece_of(&feed, from, 0) {
                Ok(piece) if piece.part.is_none() => piece,
                Ok(_) => notice_of(&feed),
                Err(error) => return tracing::error!(%error, "an event could not be told to other engines"),
            };
            from = piece.next;
            if !piece.events.is_empty() || piece.from == piece.added {
                self.channel.publish(&subject(result_id, piece.attempt), &piece);
            }
            if from >= piece.added {
                break;
            }
        }
        self.told.insert(result_id, (feed.id(), from));
    }

    fn sweep(&mut self) {
        let (held, told) = (&self.held, &mut self.told);
        self.left.retain(|result_id, left| {
            *left -= 1;
            if *left == 0 {
                held.feeds.follow(*result_id, false);
                told.remove(result_id);
            }
            *left > 0
        });
    }
}

fn subject(result_id: i64, attempt: i64) -> String {
    format!("{EVENTS}.{result_id}.{attempt}")
}

/// Answers to orders that were done.
#[derive(Default)]
struct Done {
    latest: HashMap<Uuid, bool>,
    earlier: HashMap<Uuid, bool>,
}

impl Done {
    /// Does an order, unless it was done before; returns its answer.
    fn once(&mut self, id: Uuid, order: impl FnOnce() -> bool) -> bool {
        match self.earlier.get(&id) {
            Some(answer) => *answer,
            None => *self.latest.entry(id).or_insert_with(order),
        }
    }

    /// Forgets what was done before the last call.
    fn forget(&mut self) {
        self.earlier = std::mem::take(&mut self.latest);
    }
}

/// Takes orders of other engines, each once.
pub(super) async fn take_orders(channel: Channel, held: Arc<Held>) {
    let mut orders = channel.listen(&format!("{ORDERS}.{}", channel.name())).await;
    let (mut done, mut forget) = (Done::default(), interval(REMEMBERED_FOR));
    loop {
        tokio::select! {
            order = orders.next::<Order>() => match order {
                Some(order) => take_order(&held, &mut done, order),
                None => return,
            },
            _ = forget.tick() => done.forget(),
        }
    }
}

fn take_order(held: &Held, done: &mut Done, order: Received<Order>) {
    let Some(asker) = order.asker else { return };
    let answer = match order.body {
        Order::HangUp { result_id, reason } => Answer::Asked(done.once(order.id, || {
            let reason = reason_named(&reason);
            let was_held = reason.is_some_and(|reason| held.hang_up(result_id, reason));
            tracing::info!(result_id, engine = order.from, was_held, "another engine asked to hang up");
            was_held
        })),
        Order::Journal { result_id, feed, from, at } => {
            let wanted = |found: &Arc<Feed>| found.own_attempt().is_some() && feed.is_none_or(|id| id == found.id());
            let feed = held.feeds.find(result_id).filter(wanted);
            match feed.map(|feed| piece_of(&feed, from, at)) {
                Some(Ok(piece)) => Answer::Events(piece),
                Some(Err(error)) => {
                    tracing::warn!(%error, "another engine asked for events that are not there");
                    Answer::Gone
                }
                None => Answer::Gone,
            }
        }
    };
    asker.answer(&answer);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_order_that_is_asked_again_is_done_once() {
        let (mut done, mut count) = (Done::default(), 0);
        for _ in 0..3 {
            let first = done.once(Uuid::nil(), || {
                count += 1;
                count == 1
            });
            assert!(first, "the answer of the first time");
        }
        done.forget();
        assert!(done.once(Uuid::nil(), || unreachable!("it is remembered")));
        done.forget();
        assert!(!done.once(Uuid::nil(), || false), "it is forgotten");
    }
}
