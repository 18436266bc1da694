//! The side inside a process: engines that share a value hear each other.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::timeout;

use super::{Inner, Link, LiveBus, Message, Reply, Subscription};

/// Messages that may wait for one listener.
const WAITING: usize = 4096;

/// Messages inside a process. Clones are one bus.
#[derive(Clone)]
pub struct LocalBus {
    listeners: Arc<Mutex<Vec<Place>>>,
    link: watch::Sender<Link>,
}

/// Place of a listener.
struct Place {
    pattern: String,
    messages: mpsc::Sender<Message>,
}

impl Default for LocalBus {
    fn default() -> LocalBus {
        LocalBus { listeners: Arc::default(), link: watch::Sender::new(Link::Up) }
    }
}

impl LocalBus {
    /// Cuts the connection of all who share the bus, or mends it.
    pub fn set_link(&self, link: Link) {
        self.link.send_replace(link);
    }

    /// Hands a message to all who listen to its subject; false: nobody does.
    fn hand_out(&self, subject: &str, bytes: &[u8], reply: impl Fn() -> Option<Reply>) -> bool {
        if !self.link.borrow().is_up() {
            return false;
        }
        let mut listeners = self.listeners.lock();
        listeners.retain(|place| !place.messages.is_closed());
        let mut is_heard = false;
        for place in listeners.iter().filter(|place| fits(&place.pattern, subject)) {
            let message = Message { subject: subject.to_owned(), bytes: bytes.to_vec(), reply: reply() };
            is_heard |= place.messages.try_send(message).is_ok();
        }
        is_heard
    }
}

#[async_trait]
impl LiveBus for LocalBus {
    fn publish(&self, subject: String, bytes: Vec<u8>) {
        self.hand_out(&subject, &bytes, || None);
    }

    async fn subscribe(&self, pattern: String) -> Subscription {
        let (messages, incoming) = mpsc::channel(WAITING);
        self.listeners.lock().push(Place { pattern, messages });
        Subscription(Inner::Local(incoming))
    }

    async fn request(&self, subject: String, bytes: Vec<u8>, within: Duration) -> Option<Vec<u8>> {
        let (sender, answer) = oneshot::channel();
        let sender = Arc::new(Mutex::new(Some(sender)));
        let reply = || {
            let sender = sender.clone();
            Some(Reply(Box::new(move |bytes| {
                if let Some(sender) = sender.lock().take() {
                    let _ = sender.send(bytes);
                }
            })))
        };
        if !self.hand_out(&subject, &bytes, reply) {
            return None;
        }
        drop(sender);
        timeout(within, answer).await.ok()?.ok()
    }

    fn link(&self) -> watch::Receiver<Link> {
        self.link.subscribe()
    }
}

/// True if a subject fits a pattern, word by word.
fn fits(pattern: &str, subject: &str) -> bool {
    let (mut pattern, mut subject) = (pattern.split('.'), subject.split('.'));
    loop {
        match (pattern.next(), subject.next()) {
            (None, None) => return true,
            (Some(wanted), Some(word)) if wanted == "*" || wanted == word => {}
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, subject, expect) in [
            ("a.b", "a.b", true),
            ("a.*", "a.b", true),
            ("a.*", "a.b.c", false),
            ("a.*.c", "a.b.c", true),
            ("a.b", "a", false),
            ("a", "a.b", false),
            ("*.b", "a.c", false),
        ] {
            assert_eq!(fits(pattern, subject), expect, "{pattern} {subject}");
        }
    }
}
