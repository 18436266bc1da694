//! Conversations of other engines that share the database, over the bus: their events, orders to them, and news of
//! jobs and results.

mod mirror;
mod owner;
mod pieces;
mod telling;

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use ringer_base::error::{Error, Result};
use ringer_base::tasks::Tasks;
use ringer_bus::Channel;
use ringer_media::call::EndReason;
use ringer_store::EngineRow;
use ringer_store::Store;
use ringer_store::events::{Feed, FeedEvent};

use self::mirror::Mirror;
use self::pieces::{Answer, Order};
use self::telling::Changed;
use super::held::Held;

/// Subjects below the prefix: events of a result's attempt, watchers of a result, orders to an engine, jobs of a kind,
/// results that have changed.
const EVENTS: &str = "events";
const WATCH: &str = "watch";
const ORDERS: &str = "orders";
const WAKE: &str = "wake";
const CHANGES: &str = "changes";

/// The way of this engine to the others.
pub struct Relay {
    channel: Channel,
    store: Store,
    held: Arc<Held>,
    tasks: Tasks,
    changed: Arc<Changed>,
    /// Feeds that are kept equal to those of other engines.
    mirrored: Mutex<HashMap<i64, Weak<Feed>>>,
}

impl Relay {
    /// Begins to tell and to listen; `tasks` end it.
    pub(super) fn start(channel: Channel, store: Store, held: Arc<Held>, tasks: Tasks) -> Arc<Relay> {
        let changed = Arc::<Changed>::default();
        let start = |name, work: futures_util::future::BoxFuture<'static, ()>| tasks.spawn_until_stop(name, work);
        start("events of calls", Box::pin(owner::tell_events(channel.clone(), held.clone())));
        start("orders", Box::pin(owner::take_orders(channel.clone(), held.clone())));
        start("wakes", Box::pin(telling::tell_wakes(channel.clone(), store.clone())));
        start("wakes of others", Box::pin(telling::take_wakes(channel.clone(), store.clone())));
        start("changes", Box::pin(telling::tell_changes(channel.clone(), changed.clone())));
        start("changes of others", Box::pin(telling::take_changes(channel.clone(), held.clone())));
        Arc::new(Relay { channel, store, held, tasks, changed, mirrored: Mutex::default() })
    }

    /// Returns the messages that it goes by.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Tells other engines that a result has changed.
    pub(super) fn note_change(&self, result_id: i64) {
        self.changed.note(result_id);
    }

    /// Brings the events of a result that happen in other engines into its feed here, as long as somebody holds that.
    pub(super) fn watch(&self, result_id: i64, feed: &Arc<Feed>) {
        let mut mirrored = self.mirrored.lock();
        mirrored.retain(|_, feed| feed.strong_count() > 0);
        if mirrored.contains_key(&result_id) {
            return;
        }
        let feed = Arc::downgrade(feed);
        mirrored.insert(result_id, feed.clone());
        let (channel, store, held) = (self.channel.clone(), self.store.clone(), self.held.clone());
        let mirror = Mirror { channel, store, held, result_id, feed };
        self.tasks.spawn_until_stop("watch of another engine's call", mirror.keep());
    }

    /// Asks an engine to end a conversation; false: it does not hold it.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) async fn hang_up(&self, engine: &EngineRow, result_id: i64, reason: EndReason) -> Result<bool> {
        let order = Order::HangUp { result_id, reason: reason.as_str().to_owned() };
        match self.order(engine, &order).await? {
            Answer::Asked(was_held) => Ok(was_held),
            Answer::Events(_) | Answer::Gone => Ok(false),
        }
    }

    /// Returns the events so far of a conversation that an engine holds.
    ///
    /// # Errors
    /// It does not answer.
    pub(super) async fn events_at(&self, engine: &EngineRow, result_id: i64) -> Result<Vec<FeedEvent>> {
        let (mut events, mut feed, mut from, mut long) = (Vec::new(), None, 0, String::new());
        loop {
            let order = Order::Journal { result_id, feed, from, at: long.len() };
            let Answer::Events(piece) = self.order(engine, &order).await? else { return Ok(events) };
            events.extend(piece.events.into_iter().map(|sent| {
                let data = Box::<str>::from(sent.data);
                FeedEvent { attempt: sent.attempt, seq: sent.seq, event: sent.event, data }
            }));
            (feed, from) = (Some(piece.feed), piece.next);
            match piece.part {
                Some(part) if part.at == long.len() => {
                    long.push_str(&part.text);
                    if long.len() == part.bytes {
                        let (attempt, seq, data) = (part.attempt, part.seq, std::mem::take(&mut long).into());
                        events.push(FeedEvent { attempt, seq, event: part.event, data });
                        from += 1;
                    }
                }
                Some(_) => return Ok(events),
                None => {}
            }
            if from >= piece.added {
                return Ok(events);
            }
        }
    }

    async fn order(&self, engine: &EngineRow, order: &Order) -> Result<Answer> {
        let path = format!("{ORDERS}.{}", engine.id);
        let answer = self.channel.ask(&path, order).await;
        answer.ok_or_else(|| {
            Error::NotReachable(format!("The call runs on engine '{}', which does not answer", engine.name))
        })
    }
}

/// Returns the other engine that holds the conversation of a result; `None`: none does, as far as the database knows.
pub(super) async fn holder_of(store: &Store, result_id: i64) -> Result<Option<EngineRow>> {
    if !store.is_shared() {
        return Ok(None);
    }
    let own = store.engine().await?;
    let holder = store.org("").read().await?.engine_of_result(result_id).await?;
    Ok(holder.filter(|holder| holder.id != own))
}
