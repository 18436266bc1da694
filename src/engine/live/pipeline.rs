//! Calls to voice pipelines, and calls that came in by an offer.

use std::sync::Arc;

use ringer_media::packet_rings::packet_rings;

use super::{CallChannel, Engine};
use crate::engine::pipeline::{Asking, PipelineSide, answer, dial};
use crate::engine::placement::PipelineDial;
use crate::engine::socket::SocketSide;
use crate::engine::{CallHandle, PlaceError, Placement, timed};
use crate::provider::guard::Guard;
use crate::provider::post::Poster;
use crate::transport::path::MediaPath;
use crate::transport::pipeline::Patience;
use crate::transport::pipeline::answered::IncomingPipeline;
use crate::transport::pipeline::port::PipelinePort;
use crate::transport::port::Port;
use crate::transport::webrtc::{Bell, Pump};

impl Engine {
    /// Makes an offer to a pipeline; what happens then comes by the handle.
    pub(super) fn place_pipeline(&self, terms: &PipelineDial, placement: Placement) -> Result<CallHandle, PlaceError> {
        let room = self.services.permit()?;
        let no = self.next_no();
        let guard = terms.guard.clone().unwrap_or_else(|| Guard::by(|_| true));
        let asking = Asking {
            target: terms.target.clone(),
            settings: terms.peers.settings(guard.clone(), self.services.tasks.clone()),
            poster: Arc::new(Poster::new(guard.trusting(&self.services.config.tls.roots), terms.patience.request)),
            patience: terms.patience,
        };
        let port = PipelinePort::caller(&terms.target.base_url, SocketSide::now(), self.services.clock.now_ms());
        let (side, line) = PipelineSide::new();
        let (channel, pump) = pipeline_channel(port, side);
        let (task, handle) = self.start_call(no, channel, placement, room);
        timed::spawn(&self.services.tasks, "pipeline", dial(asking, pump, line));
        self.services.tasks.spawn("call", task.dial_pipeline());
        Ok(handle)
    }

    /// Takes a call that came in by an offer.
    pub(super) fn answer_pipeline(
        &self,
        incoming: Box<IncomingPipeline>,
        placement: Placement,
    ) -> Result<CallHandle, PlaceError> {
        let room = self.services.permit()?;
        let no = self.next_no();
        let port = PipelinePort::incoming(&incoming.pc_id, SocketSide::now(), self.services.clock.now_ms());
        let (side, line) = PipelineSide::new();
        let (channel, pump) = pipeline_channel(port, side);
        let (task, handle) = self.start_call(no, channel, placement, room);
        timed::spawn(&self.services.tasks, "pipeline", answer(incoming, Patience::default(), pump, line));
        self.services.tasks.spawn("call", task.answer_pipeline());
        Ok(handle)
    }
}

/// Returns the channel of a call over a peer connection, and the pump between both.
fn pipeline_channel(port: PipelinePort, side: PipelineSide) -> (CallChannel, Pump) {
    let bell = Arc::<Bell>::default();
    let (rings, peer) = packet_rings(bell.waker());
    let channel = CallChannel {
        media: MediaPath::Packets(rings),
        media_port: 0,
        port: Port::Pipeline(Box::new(port)),
        is_secure: false,
        socket: None,
        pipeline: Some(Box::new(side)),
        room: None,
    };
    (channel, Pump::new(peer, bell))
}
