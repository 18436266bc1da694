//! The connection of a call to a voice pipeline, as the call's task holds it. A task of its own opens it and moves its packets;
//! here its news arrive and orders leave.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use ringer_media::call::Quality;

use super::queues::{self, Queues, Told, Turn};
use crate::provider::post::Poster;
use crate::transport::pipeline::answered::IncomingPipeline;
use crate::transport::pipeline::port::Connected;
use crate::transport::pipeline::rtvi::RtviCounts;
use crate::transport::pipeline::{
    Order, Patience, Pipeline, PipelineEnd, PipelineFault, PipelineNews, PipelineTarget, Reason, Step, hung_up,
};
use crate::transport::webrtc::{PeerFigures, PeerSettings, Pump, PumpFigures};

/// Figures of a connection that is over.
#[derive(Debug)]
pub(super) struct Finished {
    pump: PumpFigures,
    peer: PeerFigures,
    counts: RtviCounts,
}

/// News for the task of a call.
#[derive(Debug)]
pub(super) enum SideNews {
    /// The connection is up: media can flow.
    Opened(Box<Connected>),
    /// News of the connection.
    Told(PipelineNews),
    /// The connection is over; figures where there were media.
    Ended(PipelineEnd, Option<Box<Finished>>),
}

impl SideNews {
    fn of_fault(fault: PipelineFault) -> SideNews {
        SideNews::Ended(PipelineEnd::Failed(fault), None)
    }
}

/// The connection of one call.
pub(super) struct PipelineSide {
    queues: Queues<Order, PipelineNews, SideNews>,
    pub finished: Option<Box<Finished>>,
    is_open: bool,
    is_over: bool,
}

/// Words for a task that ended without a last word, as one that panicked.
const NO_LAST_WORD: &str = "the task that held the connection ended without a word";

/// Ends of the queues that the task holds.
pub(super) type Line = queues::Line<Order, PipelineNews, SideNews>;

/// A pipeline that is to be asked.
pub(super) struct Asking {
    pub target: PipelineTarget,
    pub settings: PeerSettings,
    pub poster: Arc<Poster>,
    pub patience: Patience,
}

impl PipelineSide {
    /// Returns the call task's ends of the queues, and those of the task.
    pub fn new() -> (PipelineSide, Line) {
        let (queues, line) = Queues::new();
        (PipelineSide { queues, finished: None, is_open: false, is_over: false }, line)
    }

    /// Returns the next news; `None` after the last. A task that is gone without a last word has failed. Safe to drop and call again.
    pub async fn next(&mut self) -> Option<SideNews> {
        if self.is_over {
            return None;
        }
        let turn = match self.is_open {
            // Messages may come at once, and yet they follow the connection.
            false => Turn::StepsAlone,
            true => Turn::NewsFirst,
        };
        let news = match self.queues.next(turn).await {
            Some(Told::News(news)) => SideNews::Told(news),
            Some(Told::Step(step)) => step,
            None => {
                let step = if self.is_open { Step::Call } else { Step::Offer };
                SideNews::of_fault(PipelineFault { step, reason: Reason::Local(NO_LAST_WORD.to_owned()) })
            }
        };
        self.is_open |= matches!(news, SideNews::Opened(_));
        self.is_over = matches!(news, SideNews::Ended(..));
        Some(news)
    }

    /// Returns the queues of orders and unread news.
    pub fn queues(&mut self) -> &mut Queues<Order, PipelineNews, SideNews> {
        &mut self.queues
    }

    /// Adds what was measured at the connection to the figures of the media thread.
    pub fn add_to(&self, quality: &mut Quality) {
        if let Some(finished) = &self.finished {
            queues::add_figures(&finished.pump, quality);
        }
    }

    /// Returns warnings about the other side's behaviour.
    pub fn warnings(&self) -> Vec<String> {
        let Some(Finished { peer, counts, .. }) = self.finished.as_deref() else { return Vec::new() };
        queues::warnings_of(&[
            (counts.flooding, "messages of the agent came faster than they are read, and were dropped"),
            (counts.dropped + peer.dropped_messages, "messages of the agent found no room, and were dropped"),
            (counts.malformed, "messages of the agent cannot be read"),
            (peer.long_messages, "messages of the agent were longer than 64 KiB, and were dropped"),
            (peer.refused_channels, "data channels of the agent were one too many, and were closed"),
        ])
    }
}

/// Asks the pipeline and carries the call over the connection.
pub(super) fn dial(asking: Asking, mut pump: Pump, line: Line) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let Line { mut orders, told, steps } = line;
        let Asking { target, settings, poster, patience } = asking;
        let opened = tokio::select! {
            opened = Pipeline::open(target, settings, poster, patience) => opened,
            () = hung_up(&mut orders) => return drop(steps.send(SideNews::Ended(PipelineEnd::HungUp, None)).await),
        };
        let mut pipeline = match opened {
            Ok(pipeline) => pipeline,
            Err(fault) => return drop(steps.send(SideNews::of_fault(fault)).await),
        };
        let (media, pc_id) = (pipeline.media(), pipeline.pc_id().map(str::to_owned));
        let figures = pipeline.figures().await;
        let connected = Connected { media, pc_id, path: figures.path, heard_since: figures.first_at };
        let _ = steps.send(SideNews::Opened(Box::new(connected))).await;
        let end = pipeline.run(&mut pump, &mut orders, &told).await;
        let (peer, counts) = (pipeline.figures().await, pipeline.counts());
        let finished = Finished { pump: pump.figures(), peer, counts };
        let _ = steps.send(SideNews::Ended(end, Some(Box::new(finished)))).await;
    })
}

/// Takes a call that came in, and carries it over its connections.
pub(super) fn answer(
    mut incoming: Box<IncomingPipeline>,
    patience: Patience,
    mut pump: Pump,
    line: Line,
) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let Line { mut orders, told, steps } = line;
        let connected = tokio::select! {
            connected = incoming.connect(patience.connection) => connected,
            () = hung_up(&mut orders) => return drop(steps.send(SideNews::Ended(PipelineEnd::HungUp, None)).await),
        };
        let media = match connected {
            Ok(media) => media,
            Err(fault) => return drop(steps.send(SideNews::of_fault(fault)).await),
        };
        let (figures, pc_id) = (incoming.figures().await, Some(incoming.pc_id.clone()));
        let connected = Connected { media, pc_id, path: figures.path, heard_since: figures.first_at };
        let _ = steps.send(SideNews::Opened(Box::new(connected))).await;
        let end = incoming.run(&mut pump, &mut orders, &told).await;
        let peer = incoming.figures().await;
        let finished = Finished { pump: pump.figures(), peer, counts: RtviCounts::default() };
        let _ = steps.send(SideNews::Ended(end, Some(Box::new(finished)))).await;
    })
}

#[cfg(test)]
mod tests {
    use ringer_media::codec::Codec;
    use ringer_media::leg::MediaParams;

    use super::*;
    use crate::transport::fault::FaultKind;

    /// Messages may be there before the call task has looked for the connection, and others when it has ended.
    #[tokio::test]
    async fn messages_stand_between_the_connection_and_its_end() {
        let (mut side, Line { orders: _orders, told, steps }) = PipelineSide::new();
        told.send(PipelineNews::Restarts);
        let connected = Connected { media: MediaParams::new(Codec::Opus), pc_id: None, path: None, heard_since: None };
        steps.send(SideNews::Opened(Box::new(connected))).await.expect("there is room");
        steps.send(SideNews::Ended(PipelineEnd::HungUp, None)).await.expect("there is room");
        assert!(matches!(side.next().await, Some(SideNews::Opened(_))));
        assert!(matches!(side.next().await, Some(SideNews::Told(PipelineNews::Restarts))));
        assert!(matches!(side.next().await, Some(SideNews::Ended(PipelineEnd::HungUp, _))));
        assert!(side.next().await.is_none());
    }

    /// A task that panics, before and after the connection is up, is the end of the call, told once.
    #[tokio::test]
    async fn a_task_without_a_last_word_is_a_failure_of_this_side() {
        for (is_open, kind) in [(false, FaultKind::OwnBeforeCall), (true, FaultKind::OwnInCall)] {
            let (mut side, line) = PipelineSide::new();
            if is_open {
                let connected =
                    Connected { media: MediaParams::new(Codec::Opus), pc_id: None, path: None, heard_since: None };
                line.steps.send(SideNews::Opened(Box::new(connected))).await.expect("there is room");
                assert!(matches!(side.next().await, Some(SideNews::Opened(_))));
            }
            drop(line);
            let Some(SideNews::Ended(PipelineEnd::Failed(fault), None)) = side.next().await else { panic!("it ended") };
            assert_eq!(fault.kind(), kind, "{fault}");
            assert!(side.next().await.is_none());
        }
    }
}
