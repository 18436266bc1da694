//! Dialogs of the SIP sockets as calls see them: news, and calls that came in.

use ringer_sip::{CallEvent, CallKey, Transport};
use tokio::sync::mpsc;

/// News of a call's dialog.
#[derive(Debug)]
pub enum SipNews {
    /// Event of the dialog.
    Event(Box<CallEvent>),
    /// Message as sent or received, secrets masked, for the call's SIP log.
    Trace(String),
}

/// The dialog of a call that came in.
#[derive(Debug)]
pub struct IncomingDialog {
    /// Names it at the socket.
    pub key: CallKey,
    /// Transport that the INVITE came by.
    pub transport: Transport,
    /// The offer of the INVITE.
    pub offer: Option<String>,
    /// Events and messages that follow the INVITE.
    pub news: mpsc::Receiver<SipNews>,
}

impl IncomingDialog {
    /// Waits until the caller gives up.
    pub async fn given_up(&mut self) {
        while let Some(news) = self.news.recv().await {
            if matches!(news, SipNews::Event(event) if matches!(*event, CallEvent::Ended(_))) {
                return;
            }
        }
    }
}
