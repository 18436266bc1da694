//! Calls to voice pipelines, and calls that came in by an offer: a task of its own opens the connection and moves its
//! packets.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use ringer_base::guard::Guard;
use ringer_base::post::Poster;
use ringer_media::call::{ChannelEvent, Control, Event, EventKind, Side as Speaker, ToolCall};
use ringer_media::frame::{PER_MS, Sample};
use ringer_media::time::Time;
use ringer_transport::peer::{AgentError, PeerInfo, PortOutput};
use ringer_transport::pipeline::answered::IncomingPipeline;
use ringer_transport::pipeline::port::{Connected, PipelinePort};
use ringer_transport::pipeline::rtvi::RtviCounts;
use ringer_transport::pipeline::{
    Order, Patience, Pipeline, PipelineEnd, PipelineFault, PipelineNews, PipelineTarget, Reason, Step, hung_up,
};
use ringer_transport::webrtc::{PeerFigures, PeerSettings, Pump};

use super::carried::{self, CarriedPort, Finished, Side, SideNews};
use super::queues::Precedence;
use super::{Channel, Means, Opening};
use crate::PlaceError;
use crate::call_state::CallState;
use crate::placement::PipelineDial;

/// The connection of one call.
pub(crate) type PipelineSide = Side<PipelinePort>;

/// Ends of the queues that the task holds.
type Line = carried::Line<PipelinePort>;

/// Words for a task that ended without a last word, as one that panicked.
const NO_LAST_WORD: &str = "the task that held the connection ended without a word";

/// A pipeline that is to be asked.
struct Asking {
    target: PipelineTarget,
    settings: PeerSettings,
    poster: Arc<Poster>,
    patience: Patience,
}

/// Makes an offer to a pipeline.
pub(super) fn dial(means: Means<'_>, terms: &PipelineDial) -> Result<Opening, PlaceError> {
    let services = means.services;
    let permit = services.permit()?;
    let guard = terms.guard.clone().unwrap_or_else(|| Guard::by(|_| true));
    let asking = Asking {
        target: terms.target.clone(),
        settings: terms.peers.settings(guard.clone(), services.tasks.clone()),
        poster: Arc::new(Poster::new(guard.trusting(&services.config.tls.roots), terms.patience.request)),
        patience: terms.patience,
    };
    let (now, epoch_ms) = (CallState::now(), services.clock.now_ms());
    let port = match &terms.target.offer {
        Some(offer) => PipelinePort::platform(offer, now, epoch_ms),
        None => PipelinePort::caller(&terms.target.base_url, now, epoch_ms),
    };
    Ok(carried::open(&means, permit, port, Channel::Pipeline, "pipeline", |pump, line| ask(asking, pump, line)))
}

/// Takes a call that came in by an offer.
pub(super) fn answer(means: Means<'_>, incoming: Box<IncomingPipeline>) -> Result<Opening, PlaceError> {
    let permit = means.services.permit()?;
    let port = PipelinePort::incoming(&incoming.pc_id, CallState::now(), means.services.clock.now_ms());
    let carried = |pump, line| carry(incoming, Patience::default(), pump, line);
    Ok(carried::open(&means, permit, port, Channel::Pipeline, "pipeline", carried))
}

impl CarriedPort for PipelinePort {
    type Order = Order;
    type News = PipelineNews;
    type Connected = Connected;
    type End = PipelineEnd;
    type Counts = RtviCounts;

    const LOG: &'static str = "pipeline.log";
    const OTHER: &'static str = "the agent";
    /// Messages may come at once, and yet they follow the connection.
    const PRECEDENCE: Precedence = Precedence::StepsAlone;

    fn open(&mut self, now: Time, connected: Connected) {
        PipelinePort::open(self, now, connected);
    }

    fn receive(&mut self, now: Time, news: PipelineNews) {
        PipelinePort::receive(self, now, news);
    }

    fn finish(&mut self, now: Time, end: PipelineEnd) {
        PipelinePort::finish(self, now, end);
    }

    fn control(&mut self, control: &Control) {
        PipelinePort::control(self, control);
    }

    fn poll(&mut self) -> Option<PortOutput<Order>> {
        PipelinePort::poll(self)
    }

    fn peer(&self) -> &PeerInfo {
        PipelinePort::peer(self)
    }

    fn own_event(&mut self, event: &Event) -> bool {
        PipelinePort::own_event(self, event);
        true
    }

    /// Returns the calls of tools that wait for their results.
    fn last_events(&mut self, end: Sample) -> Vec<Event> {
        let event = |event| {
            let ChannelEvent::ToolCalled { name, parameters, output, source, at_ms } = event else { return None };
            let call = ToolCall { name, parameters, output, source: Some(source) };
            let sample = at_ms.map_or(end, |at| Sample::from(at) * PER_MS).min(end);
            Some(Event { sample, side: Speaker::Agent, what: EventKind::ToolCall(Box::new(call)) })
        };
        self.take_unfinished().into_iter().filter_map(event).collect()
    }

    fn agent_errors(&self) -> Vec<AgentError> {
        PipelinePort::agent_errors(self).to_vec()
    }

    fn is_hang_up(order: &Order) -> bool {
        *order == Order::HangUp
    }

    fn path(connected: &Connected) -> Option<(SocketAddr, SocketAddr)> {
        connected.path
    }

    fn vanish(is_open: bool) -> PipelineEnd {
        let step = if is_open { Step::Call } else { Step::Offer };
        PipelineEnd::Failed(PipelineFault { step, reason: Reason::Local(NO_LAST_WORD.to_owned()) })
    }

    fn warnings<'f>(peer: &'f PeerFigures, counts: &'f RtviCounts) -> Vec<(u64, &'static str)> {
        vec![
            (counts.flooding, "messages of the agent came faster than they are read, and were dropped"),
            (counts.dropped + peer.dropped_messages, "messages of the agent found no room, and were dropped"),
            (counts.malformed, "messages of the agent cannot be read"),
            (peer.long_messages, "messages of the agent were longer than 64 KiB, and were dropped"),
            (peer.refused_channels, "data channels of the agent were one too many, and were closed"),
        ]
    }
}

/// Asks the pipeline and carries the call over the connection.
fn ask(asking: Asking, mut pump: Pump, line: Line) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let Line { mut orders, news, steps } = line;
        let Asking { target, settings, poster, patience } = asking;
        let opened = tokio::select! {
            opened = Pipeline::open(target, settings, poster, patience) => opened,
            () = hung_up(&mut orders) => return drop(steps.send(SideNews::Ended(PipelineEnd::HungUp, None)).await),
        };
        let mut pipeline = match opened {
            Ok(pipeline) => pipeline,
            Err(fault) => return drop(steps.send(SideNews::Ended(PipelineEnd::Failed(fault), None)).await),
        };
        let (media, pc_id) = (pipeline.media(), pipeline.pc_id().map(str::to_owned));
        let figures = pipeline.figures().await;
        let connected = Connected { media, pc_id, path: figures.path, heard_since: figures.first_at };
        let _ = steps.send(SideNews::Opened(Box::new(connected))).await;
        let end = pipeline.run(&mut pump, &mut orders, &news).await;
        let (peer, counts) = (pipeline.figures().await, pipeline.counts());
        let finished = Finished { pump: pump.figures(), peer, counts };
        let _ = steps.send(SideNews::Ended(end, Some(Box::new(finished)))).await;
    })
}

/// Takes a call that came in, and carries it over its connections.
fn carry(
    mut incoming: Box<IncomingPipeline>,
    patience: Patience,
    mut pump: Pump,
    line: Line,
) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let Line { mut orders, news, steps } = line;
        let connected = tokio::select! {
            connected = incoming.connect(patience.connection) => connected,
            () = hung_up(&mut orders) => return drop(steps.send(SideNews::Ended(PipelineEnd::HungUp, None)).await),
        };
        let media = match connected {
            Ok(media) => media,
            Err(fault) => return drop(steps.send(SideNews::Ended(PipelineEnd::Failed(fault), None)).await),
        };
        let (figures, pc_id) = (incoming.figures().await, Some(incoming.pc_id.clone()));
        let connected = Connected { media, pc_id, path: figures.path, heard_since: figures.first_at };
        let _ = steps.send(SideNews::Opened(Box::new(connected))).await;
        let end = incoming.run(&mut pump, &mut orders, &news).await;
        let peer = incoming.figures().await;
        let finished = Finished { pump: pump.figures(), peer, counts: RtviCounts::default() };
        let _ = steps.send(SideNews::Ended(end, Some(Box::new(finished)))).await;
    })
}

#[cfg(test)]
mod tests {
    use ringer_media::codec::Codec;
    use ringer_media::leg::MediaParams;
    use ringer_transport::fault::FaultKind;

    use super::*;

    fn side() -> (PipelineSide, Line) {
        Side::new(PipelinePort::caller("http://h", Time(0), 0))
    }

    /// Messages may be there before the call task has looked for the connection, and others when it has ended.
    #[tokio::test]
    async fn messages_stand_between_the_connection_and_its_end() {
        let (mut side, Line { orders: _orders, news, steps }) = side();
        news.send(PipelineNews::Restarts);
        let connected = Connected { media: MediaParams::new(Codec::Opus), pc_id: None, path: None, heard_since: None };
        steps.send(SideNews::Opened(Box::new(connected))).await.expect("there is space");
        steps.send(SideNews::Ended(PipelineEnd::HungUp, None)).await.expect("there is space");
        assert!(matches!(side.next_news().await, Some(SideNews::Opened(_))));
        assert!(matches!(side.next_news().await, Some(SideNews::News(PipelineNews::Restarts))));
        assert!(matches!(side.next_news().await, Some(SideNews::Ended(PipelineEnd::HungUp, _))));
        assert!(side.next_news().await.is_none());
    }

    /// A task that panics, before and after the connection is up, is the end of the call, told once.
    #[tokio::test]
    async fn a_task_without_a_last_word_is_a_failure_of_this_side() {
        for (is_open, kind) in [(false, FaultKind::OwnBeforeCall), (true, FaultKind::OwnInCall)] {
            let (mut side, line) = side();
            if is_open {
                let connected =
                    Connected { media: MediaParams::new(Codec::Opus), pc_id: None, path: None, heard_since: None };
                line.steps.send(SideNews::Opened(Box::new(connected))).await.expect("there is space");
                assert!(matches!(side.next_news().await, Some(SideNews::Opened(_))));
            }
            drop(line);
            let Some(SideNews::Ended(PipelineEnd::Failed(fault), None)) = side.next_news().await else {
                panic!("it ended")
            };
            assert_eq!(fault.kind(), kind, "{fault}");
            assert!(side.next_news().await.is_none());
        }
    }
}
