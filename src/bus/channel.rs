//! Messages of engines of one database: signed, in their time, once.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use ringer_base::clock::{Clock, new_id};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::sleep;
use uuid::Uuid;

use super::envelope::{Envelope, Fault, Key};
use super::window::Window;
use super::{Link, LiveBus, Reply, Subscription};

/// Subject that answers are signed for; the request that each answers is named in it.
const ANSWER: &str = "answer";

/// Time after which a request without an answer is made again, with the same identifier.
pub const AGAIN: Duration = Duration::from_secs(2);

/// Most times that a request is made.
const TIMES: usize = 2;

/// Least time between two lines of the log about dropped messages, in milliseconds.
const LOG_EVERY_MS: i64 = 60_000;

/// Facts that a channel is made with.
pub struct Terms {
    /// Start of all subjects.
    pub prefix: String,
    /// Name of this engine, one word of a subject. No other that runs has it.
    pub name: String,
    /// The key that engines of one database have.
    pub key: Vec<u8>,
    /// Time after which a request without an answer is made again: [`AGAIN`] outside of tests.
    pub again: Duration,
    /// Clock of this engine, which goes by that of the database.
    pub clock: Clock,
}

/// Messages of the engines of one database. Cheap to clone.
#[derive(Clone)]
pub struct Channel {
    parts: Arc<Parts>,
}

struct Parts {
    bus: Arc<dyn LiveBus>,
    prefix: String,
    name: String,
    key: Key,
    again: Duration,
    clock: Clock,
    /// Number of the last message that was sent.
    sent: AtomicU64,
    dropped: Dropped,
}

impl Channel {
    /// Returns the channel of an engine on a bus.
    pub fn new(bus: Arc<dyn LiveBus>, terms: Terms) -> Channel {
        let Terms { prefix, name, key, again, clock } = terms;
        // An engine that starts again under its name goes on above its earlier numbers.
        let first = u64::try_from(clock.now_ms()).unwrap_or_default() << 20;
        let parts = Parts {
            bus,
            prefix,
            name,
            key: Key::new(&key),
            again,
            clock,
            sent: AtomicU64::new(first),
            dropped: Dropped::default(),
        };
        Channel { parts: Arc::new(parts) }
    }

    /// Returns the name of this engine.
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// Returns the state of the connection, and its changes.
    pub fn link(&self) -> watch::Receiver<Link> {
        self.parts.bus.link()
    }

    /// True if messages go out and come in.
    pub fn is_up(&self) -> bool {
        self.link().borrow().is_up()
    }

    /// Returns the number of dropped messages by the reason.
    pub fn count_dropped(&self) -> Vec<(&'static str, u64)> {
        self.parts.dropped.counts()
    }

    /// Sends a message to all other engines that listen on a subject below the prefix.
    pub fn publish<T: Serialize>(&self, path: &str, body: &T) {
        let subject = self.parts.subject(path);
        if let Some(bytes) = self.parts.seal(&subject, new_id(), body) {
            self.parts.bus.publish(subject, bytes);
        }
    }

    /// Returns the messages of other engines on subjects below the prefix that fit a pattern, from now on.
    pub async fn listen(&self, pattern: &str) -> Listener {
        let messages = self.parts.bus.subscribe(self.parts.subject(pattern)).await;
        Listener { parts: self.parts.clone(), messages, window: Window::default() }
    }

    /// Asks an engine and returns its answer; `None`: it gave none that can be read. Without one the request is made
    /// again, with the same identifier.
    pub async fn ask<T: Serialize, A: DeserializeOwned>(&self, path: &str, body: &T) -> Option<A> {
        let (subject, id) = (self.parts.subject(path), new_id());
        for _ in 0..TIMES {
            if !self.is_up() {
                return None;
            }
            let mut again = pin!(sleep(self.parts.again));
            let bytes = self.parts.seal(&subject, id, body)?;
            if let Some(bytes) = self.parts.bus.request(subject.clone(), bytes, self.parts.again).await {
                match self.parts.open(&answer_to(id), &bytes) {
                    Ok(envelope) => return self.parts.body_of(&envelope.body),
                    Err(fault) => self.parts.drop_one(fault),
                }
            }
            again.as_mut().await;
        }
        None
    }
}

fn answer_to(id: Uuid) -> String {
    format!("{ANSWER} {id}")
}

impl Parts {
    fn subject(&self, path: &str) -> String {
        format!("{}.{path}", self.prefix)
    }

    fn seal<T: Serialize>(&self, subject: &str, id: Uuid, body: &T) -> Option<Vec<u8>> {
        let body = serde_json::to_string(body).and_then(RawValue::from_string);
        let body = body.inspect_err(|error| tracing::error!(%error, "a message could not be written")).ok()?;
        let n = self.sent.fetch_add(1, Ordering::Relaxed) + 1;
        Some(self.key.seal(subject, &Envelope { from: self.name.clone(), id, n, at: self.clock.now_ms(), body }))
    }

    fn open(&self, subject: &str, bytes: &[u8]) -> Result<Envelope, Fault> {
        self.key.open(subject, bytes, self.clock.now_ms())
    }

    fn body_of<T: DeserializeOwned>(&self, body: &RawValue) -> Option<T> {
        let read = serde_json::from_str(body.get());
        read.map_err(|_| self.drop_one(Fault::Unreadable)).ok()
    }

    fn drop_one(&self, fault: Fault) {
        if let Some(counts) = self.dropped.note(fault, self.clock.now_ms()) {
            tracing::warn!(dropped = %counts, "messages on the bus were dropped");
        }
    }
}

/// Messages that were dropped.
#[derive(Default)]
struct Dropped {
    counts: [AtomicU64; Fault::ALL.len()],
    logged_ms: Mutex<Option<i64>>,
}

impl Dropped {
    /// Counts a message; returns what the log is to say, when it is time for it.
    fn note(&self, fault: Fault, now_ms: i64) -> Option<String> {
        self.counts[fault as usize].fetch_add(1, Ordering::Relaxed);
        let mut logged_ms = self.logged_ms.lock();
        if logged_ms.is_some_and(|at| now_ms - at < LOG_EVERY_MS) {
            return None;
        }
        *logged_ms = Some(now_ms);
        drop(logged_ms);
        let counts = self.counts().into_iter().filter(|(_, count)| *count > 0);
        Some(counts.map(|(reason, count)| format!("{count} {reason}")).collect::<Vec<_>>().join(", "))
    }

    fn counts(&self) -> Vec<(&'static str, u64)> {
        let count = |fault: Fault| (fault.name(), self.counts[fault as usize].load(Ordering::Relaxed));
        Fault::ALL.map(count).to_vec()
    }
}

/// Messages of other engines. Dropping it ends them.
pub struct Listener {
    parts: Arc<Parts>,
    messages: Subscription,
    window: Window,
}

impl Listener {
    /// Returns the next message whose body can be read; `None`: there will be none.
    pub async fn next<T: DeserializeOwned>(&mut self) -> Option<Received<T>> {
        loop {
            let message = self.messages.next().await?;
            let opened = self.parts.open(&message.subject, &message.bytes);
            // What this engine has sent itself comes back to it, and is no news.
            let envelope = match opened {
                Ok(envelope) if envelope.from == self.parts.name => continue,
                Ok(envelope) if self.window.take(&envelope.from, envelope.n) => envelope,
                Ok(_) => {
                    self.parts.drop_one(Fault::Repeated);
                    continue;
                }
                Err(fault) => {
                    self.parts.drop_one(fault);
                    continue;
                }
            };
            let Some(body) = self.parts.body_of(&envelope.body) else { continue };
            let path = message.subject[self.parts.prefix.len() + 1..].to_owned();
            let asker = message.reply.map(|reply| Asker { parts: self.parts.clone(), reply, id: envelope.id });
            return Some(Received { from: envelope.from, path, id: envelope.id, body, asker });
        }
    }
}

/// A message of another engine.
pub struct Received<T> {
    /// Name of the engine that sent it.
    pub from: String,
    /// Subject without the prefix.
    pub path: String,
    /// Identifier; a request that is made again keeps it.
    pub id: Uuid,
    /// Content of the message.
    pub body: T,
    /// Engine that waits for an answer; `None`: none does.
    pub asker: Option<Asker>,
}

impl<T> Received<T> {
    /// Returns a word of the subject, from 0; empty where it has fewer.
    pub fn word(&self, at: usize) -> &str {
        self.path.split('.').nth(at).unwrap_or_default()
    }
}

/// An engine that waits for an answer.
pub struct Asker {
    parts: Arc<Parts>,
    reply: Reply,
    id: Uuid,
}

impl Asker {
    /// Sends the answer to the request, without waiting.
    pub fn answer<T: Serialize>(self, body: &T) {
        if let Some(bytes) = self.parts.seal(&answer_to(self.id), self.id, body) {
            self.reply.send(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LocalBus;

    const NOW_MS: i64 = 1_767_603_600_000;

    fn channel(bus: &LocalBus, name: &str, key: &[u8], clock: &Clock) -> Channel {
        let again = Duration::from_millis(20);
        let (prefix, name) = ("r".to_owned(), name.to_owned());
        let terms = Terms { prefix, name, key: key.to_vec(), again, clock: clock.clone() };
        Channel::new(Arc::new(bus.clone()), terms)
    }

    #[tokio::test]
    async fn what_is_forged_old_repeated_or_unreadable_is_dropped_and_counted() {
        let (bus, clock) = (LocalBus::default(), Clock::standing_at(NOW_MS));
        let [one, two] = ["one", "two"].map(|name| channel(&bus, name, b"the key", &clock));
        let stranger = channel(&bus, "one", b"another key", &clock);
        let mut raw = bus.subscribe("r.news".to_owned()).await;
        let mut news = two.listen("news").await;
        one.publish("news", &1);
        let first = raw.next().await.expect("it was sent").bytes;
        stranger.publish("news", &2);
        bus.publish("r.news".to_owned(), first.clone());
        bus.publish("r.news".to_owned(), b"\x02of another version".to_vec());
        one.publish("news", &"no number");
        two.publish("news", &3);
        one.publish("news", &4);
        let mut seen = Vec::new();
        while seen.last() != Some(&4) {
            let news = news.next::<i64>().await.expect("there is more");
            assert_eq!((news.from.as_str(), news.word(0)), ("one", "news"));
            seen.push(news.body);
        }
        assert_eq!(seen, [1, 4]);
        clock.advance_ms(60_001);
        bus.publish("r.news".to_owned(), first);
        one.publish("news", &5);
        assert_eq!(news.next::<i64>().await.map(|news| news.body), Some(5));
        let dropped: Vec<_> =
            two.count_dropped().into_iter().map(|(reason, count)| format!("{reason} {count}")).collect();
        assert_eq!(dropped, ["forged 1", "old 1", "repeated 1", "version 1", "unreadable 1"]);
    }

    #[test]
    fn the_log_says_once_a_minute_what_was_dropped() {
        let dropped = Dropped::default();
        assert_eq!(dropped.note(Fault::Forged, 0).as_deref(), Some("1 forged"));
        assert_eq!(dropped.note(Fault::Forged, 59_999), None);
        assert_eq!(dropped.note(Fault::Old, 60_000).as_deref(), Some("2 forged, 1 old"));
    }

    #[tokio::test]
    async fn answers_are_those_of_the_engine_that_was_asked() {
        let (bus, clock) = (LocalBus::default(), Clock::standing_at(NOW_MS));
        let [one, two] = ["one", "two"].map(|name| channel(&bus, name, b"the key", &clock));
        let mut orders = two.listen("orders.two").await;
        let answering = async {
            let order = orders.next::<i64>().await.expect("it is asked");
            let asker = order.asker.expect("somebody waits");
            // Somebody without the key is quicker.
            let forged = channel(&bus, "two", b"another key", &clock);
            let first = forged.parts.seal(&answer_to(order.id), order.id, &13).expect("it is written");
            asker.reply.send(first);
            let again = orders.next::<i64>().await.expect("it is asked again");
            assert_eq!((again.id, again.body), (order.id, order.body));
            again.asker.expect("somebody waits").answer(&(again.body + 1));
        };
        let (answer, ()) = tokio::join!(one.ask::<i64, i64>("orders.two", &1), answering);
        assert_eq!(answer, Some(2));
        assert_eq!(one.count_dropped()[0], ("forged", 1));
        assert_eq!(one.ask::<i64, i64>("orders.three", &1).await, None, "nobody listens");
        bus.set_link(Link::Away("it is cut".to_owned()));
        assert_eq!(one.ask::<i64, i64>("orders.two", &1).await, None);
    }
}
