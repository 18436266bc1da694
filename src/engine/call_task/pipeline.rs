//! A call to a voice pipeline: news of its connection go to the port. Audio passes by: the connection's own task moves it.

use std::time::Duration;

use ringer_media::call::{ChannelEvent, Event, EventKind, Side, ToolCall};
use ringer_media::frame::{PER_MS, Sample};

use super::super::pipeline::SideNews;
use super::super::shard::ToShard;
use super::super::socket::SocketSide;
use super::CallTask;
use crate::transport::pipeline::Order;
use crate::transport::port::Port;

/// Time that the end of a connection may take.
const PATIENCE: Duration = Duration::from_secs(3);

impl CallTask {
    /// Follows a call whose connection is being made to its end.
    pub async fn dial_pipeline(mut self: Box<Self>) {
        self.services.counters.placed();
        self.dialled_at_ms = Some(self.services.clock.now_ms());
        self.drain_port().await;
        self.run().await;
    }

    /// Follows a call that came in to its end.
    pub async fn answer_pipeline(mut self: Box<Self>) {
        self.services.counters.answered();
        self.drain_port().await;
        self.run().await;
    }

    /// Takes news of the connection.
    pub(super) async fn follow_pipeline(&mut self, news: SideNews) {
        let now = SocketSide::now();
        let (Port::Pipeline(port), Some(side)) = (&mut self.port, &mut self.pipeline) else { return };
        match news {
            SideNews::Opened(connected) => {
                if let Some((here, there)) = connected.path {
                    self.services.order(self.shard, ToShard::Capture(self.no, here, there));
                }
                port.open(now, *connected);
            }
            SideNews::Told(news) => port.receive(now, news),
            SideNews::Ended(end, finished) => {
                while let Some(news) = side.queues().rest() {
                    port.receive(now, news);
                }
                port.finish(now, end);
                side.finished = finished;
            }
        }
        self.drain_port().await;
    }

    /// Adds calls of tools that wait for their results to the journal of a call that ends at `end`.
    pub(super) fn add_unfinished_tools(&mut self, end: Sample) {
        let Port::Pipeline(port) = &mut self.port else { return };
        for told in port.take_unfinished() {
            let ChannelEvent::ToolCalled { name, parameters, output, source, at_ms } = told else { continue };
            let call = ToolCall { name, parameters, output, source: Some(source) };
            let sample = at_ms.map_or(end, |at| Sample::from(at) * PER_MS).min(end);
            self.add(Event { sample, side: Side::Agent, what: EventKind::ToolCall(Box::new(call)) });
        }
    }

    /// Carries out an order of the port.
    pub(super) fn order_pipeline(&mut self, order: Order) {
        let Some(side) = &mut self.pipeline else { return };
        match order {
            Order::HangUp => side.queues().hang_up(),
            order => side.queues().order(order),
        }
    }

    /// Waits for the end of the connection, and adds its figures to those of the call.
    pub(super) async fn close_pipeline(&mut self) {
        let Some(side) = &mut self.pipeline else { return };
        side.queues().hang_up();
        let closing = async {
            while let Some(side) = &mut self.pipeline
                && let Some(news) = side.next().await
            {
                self.follow_pipeline(news).await;
            }
        };
        let _ = tokio::time::timeout(PATIENCE, closing).await;
        let Some(side) = &mut self.pipeline else { return };
        self.files.warnings.extend(side.queues().warnings("the agent"));
        self.files.warnings.extend(side.warnings());
        if let Some(ending) = self.ending.as_mut().filter(|ending| ending.connected) {
            side.add_to(&mut ending.quality);
        }
    }
}
