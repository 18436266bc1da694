//! A call to a media room: news of its connections go to the port. Audio passes by: the connections' own task moves it.

use std::time::Duration;

use super::super::room::SideNews;
use super::super::shard::ToShard;
use super::super::socket::SocketSide;
use super::CallTask;
use crate::transport::port::Port;
use crate::transport::room::Order;

/// Time that the end of the connections may take.
const PATIENCE: Duration = Duration::from_secs(3);

impl CallTask {
    /// Follows a call whose room is being joined to its end.
    pub async fn join_room(mut self: Box<Self>) {
        self.services.counters.placed();
        self.dialled_at_ms = Some(self.services.clock.now_ms());
        self.drain_port().await;
        self.run().await;
    }

    /// Takes news of the room.
    pub(super) async fn follow_room(&mut self, news: SideNews) {
        let now = SocketSide::now();
        let (Port::Room(port), Some(side)) = (&mut self.port, &mut self.room) else { return };
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

    /// Carries out an order of the port.
    pub(super) fn order_room(&mut self, order: Order) {
        let Some(side) = &mut self.room else { return };
        match order {
            Order::HangUp => side.queues().hang_up(),
            order => side.queues().order(order),
        }
    }

    /// Waits for the end of the connections, and adds their figures to those of the call.
    pub(super) async fn close_room(&mut self) {
        let Some(side) = &mut self.room else { return };
        side.queues().hang_up();
        let closing = async {
            while let Some(side) = &mut self.room
                && let Some(news) = side.next().await
            {
                self.follow_room(news).await;
            }
        };
        let _ = tokio::time::timeout(PATIENCE, closing).await;
        let Some(side) = &mut self.room else { return };
        self.files.warnings.extend(side.queues().warnings("the room"));
        self.files.warnings.extend(side.warnings());
        if let Some(ending) = self.ending.as_mut().filter(|ending| ending.connected) {
            side.add_to(&mut ending.quality);
        }
    }
}
