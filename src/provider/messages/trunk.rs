//! Text messages through the trunk that owns the Digital Human's number.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::{Exchange, Message, Reply, Trouble, digest};

/// Way of text messages between two numbers through a trunk.
pub trait TextLine: Send + Sync {
    /// Sends a text once, under the id of its message.
    fn send(&self, id: Uuid, text: String) -> BoxFuture<'_, Result<(), Trouble>>;
}

/// A line through a trunk, as a carrier uses it.
#[derive(Clone)]
pub struct TrunkTexts {
    /// Way between the two numbers.
    pub line: Arc<dyn TextLine>,
    /// Bytes of text that one request carries; `None`: no limit is known.
    pub room: Option<usize>,
    /// Address of the trunk, for the log.
    pub target: String,
}

impl TrunkTexts {
    pub(super) async fn deliver(&self, message: &Message, noted: &mut Option<Exchange>) -> Result<Reply, Trouble> {
        let (origin, body) = (self.target.clone(), digest(message.text.as_bytes()));
        let (method, path) = ("MESSAGE".to_owned(), String::new());
        let noted = noted.insert(Exchange { method, origin, path, body, status: None, answer: None });
        let sent = self.line.send(message.id, message.text.clone()).await;
        noted.status = match &sent {
            Ok(()) => Some(200),
            Err(trouble) => trouble.status,
        };
        sent.map(|()| Reply::default())
    }
}
