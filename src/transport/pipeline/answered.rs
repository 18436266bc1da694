//! The pipeline's side of a call: the connection that answered an offer, the one that may take its place, and the
//! caller's messages.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ringer_media::leg::MediaParams;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::{Order, PipelineEnd, PipelineFault, PipelineNews, Reason, Step};
use crate::digits::{MAX_DIGITS, digits_of};
use crate::news::NewsSender;
use crate::webrtc::{ChannelId, ChannelNews, MediaPeer, Peer, PeerFault, PeerFigures, PeerState, PeerStreams, Pump};

/// Version of RTVI that is spoken.
const VERSION: &str = "2.2.0";

/// Time within which the caller comes back after its connection was lost.
const BACK_WITHIN: Duration = Duration::from_secs(15);

/// A connection that answered an offer.
pub struct AnsweredLine {
    /// The connection that answered.
    pub peer: Arc<Peer>,
    /// Everything that it tells.
    pub streams: PeerStreams,
}

/// A call that came in by an offer.
pub struct IncomingPipeline {
    /// Name of the connection.
    pub pc_id: String,
    parts: Parts,
}

struct Parts {
    line: AnsweredLine,
    /// Connections of the same name that take its place.
    successors: mpsc::Receiver<AnsweredLine>,
    /// Data channel that the caller opened.
    channel: Option<ChannelId>,
}

impl fmt::Debug for IncomingPipeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IncomingPipeline").field("pc_id", &self.pc_id).finish_non_exhaustive()
    }
}

/// The end of a connection.
enum Carried {
    Over(PipelineEnd),
    Replaced(AnsweredLine),
    Lost(PeerFault),
}

impl IncomingPipeline {
    /// Returns the call of a connection, which those of `successors` replace.
    pub fn new(pc_id: String, line: AnsweredLine, successors: mpsc::Receiver<AnsweredLine>) -> IncomingPipeline {
        IncomingPipeline { pc_id, parts: Parts { line, successors, channel: None } }
    }

    /// Waits until the caller gives up.
    pub async fn given_up(&mut self) {
        let mut state = self.parts.line.streams.state.clone();
        let _ = state.wait_for(|state| matches!(state, PeerState::Failed | PeerState::Closed)).await;
    }

    /// Waits until media can flow, at most `within`. Returns the media.
    ///
    /// # Errors
    /// The connection did not come about.
    pub async fn connect(&mut self, within: Duration) -> Result<MediaParams, PipelineFault> {
        let peer = &self.parts.line.peer;
        let fault = |fault| PipelineFault { step: Step::Offer, reason: Reason::Peer(fault) };
        peer.wait_connected(within).await.map_err(fault)?;
        peer.media().ok_or_else(|| fault(PeerFault::NoAudio))
    }

    /// Returns the figures of the connection in use.
    pub async fn figures(&mut self) -> PeerFigures {
        self.parts.line.peer.figures().await
    }

    /// Carries the call until it ends: moves packets, reads and sends messages, goes on with the connection that takes
    /// its place.
    ///
    /// News that nobody takes in time are dropped and counted.
    pub async fn run(
        &mut self,
        pump: &mut Pump,
        orders: &mut mpsc::Receiver<Order>,
        news: &NewsSender<PipelineNews>,
    ) -> PipelineEnd {
        let parts = &mut self.parts;
        let end = loop {
            let line = match parts.carry(pump, orders, news).await {
                Carried::Over(end) => break end,
                Carried::Replaced(line) => line,
                Carried::Lost(fault) => {
                    news.send(PipelineNews::Restarts);
                    tokio::select! {
                        next = timeout(BACK_WITHIN, parts.successors.recv()) => match next {
                            Ok(Some(line)) => line,
                            _ => break PipelineEnd::Failed(PipelineFault { step: Step::Call, reason: Reason::Peer(fault) }),
                        },
                        () = super::hung_up(orders) => break PipelineEnd::HungUp,
                    }
                }
            };
            parts.line.peer.close().await;
            (parts.line, parts.channel) = (line, None);
            if let Some(media) = parts.line.peer.media() {
                news.send(PipelineNews::Restarted(media));
            }
        };
        parts.line.peer.close().await;
        end
    }
}

impl Parts {
    async fn carry(
        &mut self,
        pump: &mut Pump,
        orders: &mut mpsc::Receiver<Order>,
        news: &NewsSender<PipelineNews>,
    ) -> Carried {
        let Parts { line: AnsweredLine { peer, streams }, successors, channel } = self;
        let PeerStreams { state, packets, channels, .. } = streams;
        let media = pump.run(&**peer, packets);
        tokio::pin!(media);
        loop {
            tokio::select! {
                biased;
                Some(line) = successors.recv() => return Carried::Replaced(line),
                order = orders.recv() => match order {
                    Some(Order::HangUp) | None => return Carried::Over(PipelineEnd::HungUp),
                    Some(Order::Send(text)) => say(peer, *channel, &text).await,
                },
                changed = state.changed() => {
                    let now = *state.borrow_and_update();
                    match now {
                        PeerState::Failed => return Carried::Lost(PeerFault::Failed),
                        PeerState::Closed => return Carried::Over(PipelineEnd::AgentLeft),
                        _ if changed.is_err() => return Carried::Lost(PeerFault::Closed),
                        PeerState::New | PeerState::Connected | PeerState::Quiet => {}
                    }
                }
                event = channels.recv() => match event {
                    Some(ChannelNews::Open { id, .. }) => *channel = channel.or(Some(id)),
                    Some(ChannelNews::Message { id, bytes, .. }) => {
                        *channel = channel.or(Some(id));
                        if let Some(end) = take_message(peer, id, &bytes, news).await {
                            return Carried::Over(end);
                        }
                    }
                    Some(ChannelNews::Closed { id }) => *channel = channel.filter(|known| *known != id),
                    None => return Carried::Lost(PeerFault::Closed),
                },
                () = &mut media => return Carried::Lost(PeerFault::Closed),
            }
        }
    }
}

/// Carries out a message of the caller. Returns the end where it leaves.
async fn take_message(
    peer: &Peer,
    channel: ChannelId,
    bytes: &[u8],
    news: &NewsSender<PipelineNews>,
) -> Option<PipelineEnd> {
    match read_message(bytes)? {
        AppMessage::Ready(id) => {
            let data = json!({ "version": VERSION, "about": { "library": "ringer" } });
            let ready = json!({ "label": "rtvi-ai", "type": "bot-ready", "id": id, "data": data });
            say(peer, Some(channel), &ready.to_string()).await;
            None
        }
        AppMessage::Digits(digits) => {
            for digit in digits {
                news.send_event(PipelineNews::Digit(digit));
            }
            None
        }
        AppMessage::Leaves => Some(PipelineEnd::AgentLeft),
    }
}

async fn say(peer: &Peer, channel: Option<ChannelId>, text: &str) {
    let Some(channel) = channel else { return };
    if let Err(fault) = peer.send_text(channel, text).await {
        tracing::debug!(%fault, "a message to the caller was not sent");
    }
}

/// A message of a caller.
#[derive(Clone, Debug, PartialEq, Eq)]
enum AppMessage {
    /// The other side is ready; the id of its message.
    Ready(Value),
    /// The other side presses these digits.
    Digits(Vec<char>),
    /// The other side leaves the call.
    Leaves,
}

/// Reads a message of a caller; `None` for one that changes nothing, or that cannot be read.
fn read_message(bytes: &[u8]) -> Option<AppMessage> {
    let message: Value = serde_json::from_slice(bytes).ok()?;
    if message["label"] != "rtvi-ai" {
        return None;
    }
    match message["type"].as_str()? {
        "client-ready" => Some(AppMessage::Ready(message["id"].clone())),
        "disconnect-bot" => Some(AppMessage::Leaves),
        "dtmf" => {
            let data = &message["data"];
            // Older callers send one digit.
            let one = std::slice::from_ref(&data["button"]);
            let buttons = data["buttons"].as_array().map_or(one, Vec::as_slice);
            let digits = buttons.iter().filter_map(|button| digits_of(button.as_str()?)).flatten();
            Some(AppMessage::Digits(digits.take(MAX_DIGITS).collect()))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_callers_are_read() {
        let check = |kind: &str, data: Value, expect: Option<AppMessage>| {
            let message = json!({ "label": "rtvi-ai", "type": kind, "id": "1", "data": data });
            assert_eq!(read_message(message.to_string().as_bytes()), expect, "{message}");
        };
        check("client-ready", json!({ "version": "2.2.0" }), Some(AppMessage::Ready(json!("1"))));
        check("dtmf", json!({ "buttons": ["5", "#", "", "x", 7] }), Some(AppMessage::Digits(vec!['5', '#'])));
        check("dtmf", json!({ "button": "*" }), Some(AppMessage::Digits(vec!['*'])));
        check("dtmf", json!({ "button": "12#" }), Some(AppMessage::Digits(vec!['1', '2', '#'])));
        check("dtmf", json!({ "buttons": ["12", "3"] }), Some(AppMessage::Digits(vec!['1', '2', '3'])));
        check("dtmf", json!({ "buttons": vec!["1"; 1000] }), Some(AppMessage::Digits(vec!['1'; MAX_DIGITS])));
        check("disconnect-bot", Value::Null, Some(AppMessage::Leaves));
        check("client-message", json!({ "t": "x" }), None);
        for broken in ["", "ping: 1", "[]", "{}", r#"{"type":"client-ready"}"#] {
            assert_eq!(read_message(broken.as_bytes()), None, "{broken}");
        }
    }
}
