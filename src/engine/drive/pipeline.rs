//! A call to a voice pipeline: news of its connection go to the port. Audio passes by: the connection's own task moves it.

use std::time::Duration;

use super::super::pipeline::SideNews;
use super::super::shard::ToShard;
use super::super::socket::SocketSide;
use super::Driver;
use crate::transport::pipeline::Order;
use crate::transport::port::Port;

/// Time that the end of a connection may take.
const PATIENCE: Duration = Duration::from_secs(3);

impl Driver {
    /// Follows a call whose connection is being made to its end.
    pub async fn dial_pipeline(mut self: Box<Self>) {
        self.inner.tally.placed();
        self.dialled_at_ms = Some(self.inner.clock.now_ms());
        self.drain_port().await;
        self.run().await;
    }

    /// Follows a call that came in to its end.
    pub async fn answer_pipeline(mut self: Box<Self>) {
        self.inner.tally.answered();
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
                    self.inner.order(self.shard, ToShard::Capture(self.no, here, there));
                }
                port.open(now, *connected);
            }
            SideNews::Refused(fault) => port.refuse(now, &fault),
            SideNews::Told(news) => port.receive(now, news),
            SideNews::Ended(finished) => {
                while let Some(news) = side.queues().rest() {
                    port.receive(now, news);
                }
                port.finish(now, finished.end.clone());
                side.finished = Some(finished);
            }
        }
        self.drain_port().await;
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
        let unsent = side.queues().unsent_count();
        if unsent > 0 {
            self.files.warnings.push(format!("{unsent} messages to the agent were not sent"));
        }
        self.files.warnings.extend(side.warnings());
        if let Some(ending) = self.ending.as_mut().filter(|ending| ending.connected) {
            side.add_to(&mut ending.quality);
        }
    }
}
