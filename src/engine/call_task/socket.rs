//! A call over a WebSocket: news of its connection go to the port, frames between the rings and the port.

use serde_json::Value;

use super::super::socket::{SocketNews, SocketSide};
use super::CallTask;
use crate::transport::port::{Port, PortOutput};
use crate::transport::websocket::link::LinkNews;
use crate::transport::websocket::listen::IncomingSocket;
use crate::transport::websocket::port::{AgentError, SocketOrder};

/// Code and reason of a close for a message that is too big.
const TOO_BIG: (u16, &str) = (1009, "message too big");
/// Code and reason of a close for a frame that breaks RFC 6455.
const BROKEN: (u16, &str) = (1002, "protocol error");

impl CallTask {
    /// Opens the connection of a call, and follows it to its end.
    pub async fn dial_socket(mut self: Box<Self>) {
        self.services.counters.placed();
        self.dialled_at_ms = Some(self.services.clock.now_ms());
        self.drain_port().await;
        self.run().await;
    }

    /// Takes the connection of a call that came in, and follows it to its end.
    pub async fn answer_socket(mut self: Box<Self>, incoming: IncomingSocket) {
        self.services.counters.answered();
        let address = incoming.address.to_string();
        let link = incoming.into_link();
        if let Some(socket) = &mut self.socket {
            socket.take_link(link);
        }
        if let Port::WebSocket(port) = &mut self.port {
            port.on_open(SocketSide::now(), address);
        }
        self.drain_port().await;
        self.run().await;
    }

    /// Takes news of the connection.
    pub(super) async fn follow_socket(&mut self, news: SocketNews) {
        let now = SocketSide::now();
        let (Port::WebSocket(port), Some(socket)) = (&mut self.port, &mut self.socket) else { return };
        match news {
            SocketNews::Dialled(dialled) => match *dialled {
                Ok(dialled) => {
                    socket.take_link(dialled.link);
                    if let Some(place) = dialled.unverified {
                        let text = format!("the certificate of {place} was not verified (tls.insecure_hosts)");
                        self.files.warnings.push(text);
                    }
                    port.on_open(now, dialled.address.to_string());
                }
                Err(fault) => port.on_failure(now, &fault),
            },
            SocketNews::Link(LinkNews::Message(arrived, message)) => port.receive(arrived, message),
            SocketNews::Link(LinkNews::Closed { code, reason }) => port.on_close(now, code, &reason),
            SocketNews::Link(LinkNews::Lost(why)) => port.on_loss(now, &why),
            SocketNews::Link(LinkNews::TooBig) => port.broken(now, TOO_BIG.0, TOO_BIG.1),
            SocketNews::Link(LinkNews::Broken(why)) => {
                tracing::info!("the agent violated the WebSocket protocol: {why}");
                port.broken(now, BROKEN.0, BROKEN.1);
            }
            SocketNews::Tick => socket.tick(now, port),
        }
        self.drain_port().await;
    }

    /// Hands frames of the call to the port.
    pub(super) async fn exchange_frames(&mut self) {
        if let (Port::WebSocket(port), Some(socket)) = (&mut self.port, &mut self.socket) {
            socket.exchange(SocketSide::now(), port);
            self.drain_port().await;
        }
    }

    /// Carries out an order of the port to the connection.
    pub(super) fn order_socket(&mut self, order: SocketOrder) {
        if let (Port::WebSocket(port), Some(socket)) = (&mut self.port, &mut self.socket) {
            socket.carry_out(order, || port.upgrade(SocketSide::now()));
        }
    }

    /// Carries out an output of the port that concerns audio or the log.
    pub(super) fn take_socket_output(&mut self, output: PortOutput) {
        match (output, &mut self.socket) {
            (PortOutput::Frames(pcm), Some(socket)) => socket.hear(SocketSide::now(), &pcm),
            (PortOutput::ClearFrames, Some(socket)) => socket.clear(),
            (PortOutput::Log(at, line), _) => self.write_log(at, &line),
            _ => {}
        }
    }

    /// Waits for the end of the connection, and adds its figures to those of the call.
    pub(super) async fn close_socket(&mut self) {
        if self.socket.is_none() {
            return;
        }
        let is_closing = matches!(&self.port, Port::WebSocket(port) if port.is_closing());
        let is_connected = |driver: &CallTask| driver.socket.as_ref().is_some_and(|socket| socket.is_connected());
        if is_connected(self) && matches!(&self.port, Port::WebSocket(port) if !port.is_over()) {
            let patience = self.socket.as_ref().map(|socket| socket.patience(is_closing)).unwrap_or_default();
            let closing = async {
                loop {
                    let Some(socket) = &mut self.socket else { return };
                    let news = socket.next(true).await;
                    let is_end = matches!(news, SocketNews::Link(LinkNews::Closed { .. } | LinkNews::Lost(_)));
                    self.follow_socket(news).await;
                    if is_end || !is_connected(self) {
                        return;
                    }
                }
            };
            let _ = tokio::time::timeout(patience, closing).await;
        }
        let Some(socket) = &mut self.socket else { return };
        let unsent = socket.unsent_count();
        if unsent > 0 {
            let text = format!("{unsent} messages of audio were not sent: the agent did not read them");
            self.files.warnings.push(text);
        }
        if let Some(ending) = self.ending.as_mut().filter(|ending| ending.connected) {
            socket.add_to(&mut ending.quality);
        }
        socket.drop_link();
    }

    /// Returns the warning about the other side's messages that were refused.
    pub(super) fn refused_warning(&self) -> Option<String> {
        if let Port::WebSocket(port) = &self.port { port.refused_warning() } else { None }
    }

    /// Returns the errors that the other side told of.
    pub(super) fn agent_errors(&self) -> Vec<AgentError> {
        match &self.port {
            Port::WebSocket(port) => port.agent_errors().to_vec(),
            Port::Pipeline(port) => port.agent_errors().to_vec(),
            Port::Sip(_) | Port::Room(_) => Vec::new(),
        }
    }

    /// Returns the values that the other side handed over.
    pub(super) fn variables(&self) -> Option<Value> {
        if let Port::WebSocket(port) = &self.port { port.variables().cloned() } else { None }
    }
}
