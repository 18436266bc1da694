//! The side of an engine with watchers of a conversation that another one holds: its events come into the feed here,
//! each once and in order, whatever the network lost.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use ringer_bus::Channel;
use ringer_store::Store;
use ringer_store::events::{Feed, FeedEvent};
use tokio::time::{MissedTickBehavior, Sleep, interval, sleep};
use uuid::Uuid;

use super::pieces::{Answer, Order, Part, Piece};
use super::{EVENTS, ORDERS, WATCH, holder_of};
use crate::conversation::held::Held;

/// Interval at which a watcher says that it is there.
const WATCH_EVERY: Duration = Duration::from_secs(10);
/// Time within which the engine that holds a conversation answers that.
const QUIET: Duration = Duration::from_secs(4);
/// Time before an engine that was not heard is asked again.
const AGAIN: Duration = Duration::from_secs(1);

/// A feed of another engine.
struct Source {
    engine: String,
    /// Place up to which its events are here.
    next: usize,
    /// Number of events that it is known to have been given.
    added: usize,
    /// Beginning of the data of an event that comes by parts.
    part: String,
}

/// A watch of one result.
pub(super) struct Mirror {
    pub channel: Channel,
    pub store: Store,
    pub held: Arc<Held>,
    pub result_id: i64,
    pub feed: Weak<Feed>,
}

/// A watch with the state of its sources.
struct State {
    mirror: Mirror,
    sources: HashMap<Uuid, Source>,
    /// Latest attempt of which an event came.
    attempt: i64,
    /// Wait after which an engine that has not answered is taken for away.
    quiet: Option<Pin<Box<Sleep>>>,
    /// Wait after which events that are missing are asked for again.
    fetching: Option<Pin<Box<Sleep>>>,
}

impl Mirror {
    /// Keeps the feed here equal to those of other engines, as long as somebody holds it.
    pub(super) async fn keep(self) {
        let mut pieces = self.channel.listen(&format!("{EVENTS}.{}.*", self.result_id)).await;
        let mut link = self.channel.link();
        let mut ticks = interval(WATCH_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut state = State { mirror: self, sources: HashMap::new(), attempt: 0, quiet: None, fetching: None };
        loop {
            tokio::select! {
                piece = pieces.next::<Piece>() => match piece {
                    Some(piece) => state.take_live(piece.from, piece.body).await,
                    None => return,
                },
                _ = ticks.tick() => {
                    if state.mirror.feed.strong_count() == 0 {
                        return;
                    }
                    state.say_here();
                }
                changed = link.changed() => {
                    if changed.is_err() {
                        return;
                    }
                    let is_up = link.borrow_and_update().is_up();
                    match is_up {
                        true => state.say_here(),
                        false => drop(state.note_away().await),
                    }
                }
                () = over(&mut state.quiet) => {
                    if state.note_away().await {
                        state.say_here();
                        state.quiet = Some(Box::pin(sleep(AGAIN)));
                    }
                }
                () = over(&mut state.fetching) => state.fetch_all().await,
            }
        }
    }
}

/// Completes when a wait is over; never without one.
async fn over(wait: &mut Option<Pin<Box<Sleep>>>) {
    match wait {
        Some(wait) => wait.await,
        None => std::future::pending().await,
    }
}

impl State {
    /// Says that somebody watches here. Who holds the conversation answers with what there is.
    fn say_here(&mut self) {
        let Mirror { channel, result_id, .. } = &self.mirror;
        channel.publish(&format!("{WATCH}.{result_id}"), &());
        self.quiet.get_or_insert_with(|| Box::pin(sleep(QUIET)));
    }

    /// Notes in the feed that the engine which holds the conversation is not heard; false: there is none, or the
    /// connection is lost, whose return is heard of.
    async fn note_away(&mut self) -> bool {
        self.quiet = None;
        let Mirror { channel, store, held, result_id, feed } = &self.mirror;
        let Some(feed) = feed.upgrade() else { return false };
        if held.has(*result_id) {
            feed.set_away(None);
            return false;
        }
        let holder = holder_of(store, *result_id).await;
        let holder = holder.inspect_err(|error| tracing::warn!(%error, "the engine of a result could not be read"));
        let Ok(Some(holder)) = holder else { return false };
        let is_up = channel.is_up();
        feed.set_away(Some(match is_up {
            true => format!("The call runs on engine '{}', which does not answer", holder.name),
            false => format!("The call runs on engine '{}'; there is no connection to the bus", holder.name),
        }));
        is_up
    }

    async fn take_live(&mut self, engine: String, piece: Piece) {
        let Some(feed) = self.mirror.feed.upgrade() else { return };
        self.quiet = None;
        let new = Source { engine: engine.clone(), next: 0, added: 0, part: String::new() };
        let source = self.sources.entry(piece.feed).or_insert(new);
        source.engine = engine;
        let is_missing_some = piece.from > source.next;
        source.added = source.added.max(piece.added);
        let id = piece.feed;
        if !is_missing_some {
            self.take(&feed, piece);
        }
        self.fetch(id).await;
    }

    /// Takes the events of a piece that follows what is here.
    fn take(&mut self, feed: &Feed, piece: Piece) {
        let Some(source) = self.sources.get_mut(&piece.feed) else { return };
        source.added = source.added.max(piece.added);
        for sent in piece.events.into_iter().filter(|sent| sent.place >= source.next) {
            // An attempt that was given up is no news when a later one is under way.
            if sent.attempt >= self.attempt {
                self.attempt = sent.attempt;
                let data = String::from(Box::<str>::from(sent.data)).into();
                feed.add_of_another(FeedEvent { attempt: sent.attempt, seq: sent.seq, event: sent.event, data });
            }
        }
        source.next = source.next.max(piece.next);
        let Some(Part { attempt, seq, event, at, text, bytes }) = piece.part else { return };
        if at != source.part.len() || piece.next != source.next {
            return;
        }
        source.part.push_str(&text);
        if source.part.len() == bytes {
            let data = std::mem::take(&mut source.part).into();
            source.next += 1;
            if attempt >= self.attempt {
                self.attempt = attempt;
                feed.add_of_another(FeedEvent { attempt, seq, event, data });
            }
        }
    }

    /// Asks for what is missing of all feeds.
    async fn fetch_all(&mut self) {
        self.fetching = None;
        for id in self.sources.keys().copied().collect::<Vec<_>>() {
            self.fetch(id).await;
        }
    }

    /// Asks for what is missing of a feed, until it is here or the engine does not answer.
    async fn fetch(&mut self, id: Uuid) {
        while let Some(source) = self.sources.get(&id).filter(|source| source.next < source.added) {
            let (result_id, from, at) = (self.mirror.result_id, source.next, source.part.len());
            let order = Order::Journal { result_id, feed: Some(id), from, at };
            let path = format!("{ORDERS}.{}", source.engine);
            let answer = self.mirror.channel.ask::<Order, Answer>(&path, &order).await;
            let Some(feed) = self.mirror.feed.upgrade() else { return };
            match answer {
                Some(Answer::Events(piece)) if piece.next > from || piece.part.is_some() => self.take(&feed, piece),
                Some(_) => {
                    self.sources.remove(&id);
                }
                None => {
                    self.note_away().await;
                    self.fetching = Some(Box::pin(sleep(AGAIN)));
                    return;
                }
            }
        }
        if let Some(feed) = self.mirror.feed.upgrade() {
            feed.set_away(None);
        }
    }
}
