//! Calls that came in by any channel and are not answered yet.

use std::net::SocketAddr;

use super::pipeline::answered::IncomingPipeline;
use super::sip::dialog::IncomingDialog;
use super::websocket::listen::IncomingSocket;

/// A call that came in, not answered yet.
#[derive(Debug)]
pub struct Incoming {
    /// Name that is called: the user part of the Request-URI.
    pub called: String,
    /// Address of the caller, as it names itself.
    pub from: String,
    /// Address that the caller wanted to reach.
    pub to: String,
    /// Network address of the caller.
    pub source: SocketAddr,
    /// Header fields of the request, in order, without credentials.
    pub headers: Vec<(String, String)>,
    /// Name of the call in its protocol.
    pub call_id: String,
    /// The protocol's own part.
    pub channel: IncomingChannel,
}

/// The protocol's own part of a call that came in.
#[derive(Debug)]
pub enum IncomingChannel {
    Sip(IncomingDialog),
    WebSocket(Box<IncomingSocket>),
    Pipeline(Box<IncomingPipeline>),
}

impl Incoming {
    /// Waits until the caller gives up; events before that are passed over. Calls over WebSockets are answered at once,
    /// and never ring.
    pub async fn given_up(&mut self) {
        match &mut self.channel {
            IncomingChannel::Sip(dialog) => dialog.given_up().await,
            IncomingChannel::WebSocket(_) => std::future::pending().await,
            IncomingChannel::Pipeline(line) => line.given_up().await,
        }
    }
}
