//! The connections of a call to a media room, as the call's driver holds them. A task of their own moves packets; here its news
//! arrive and orders leave.

use futures_util::future::BoxFuture;
use ringer_media::call::Quality;
use tokio::sync::mpsc;

use crate::transport::room::port::Connected;
use crate::transport::room::{
    DataCounts, Order, Patience, Reason, RoomCall, RoomEnd, RoomFault, RoomNews, RoomTarget, Step,
};
use crate::transport::webrtc::{PeerFigures, PeerSettings, Pump, PumpFigures};
use crate::transport::websocket::dial::Dialer;

/// News that may wait for the driver.
const NEWS: usize = 256;

/// Orders that may wait for the task.
const ORDERS: usize = 64;

/// Steps in the life of a call.
const STEPS: usize = 2;

/// Figures of connections that are over.
#[derive(Debug)]
pub(super) struct Finished {
    pump: PumpFigures,
    peer: PeerFigures,
    counts: DataCounts,
    malformed: u64,
}

/// News for the driver of a call.
#[derive(Debug)]
pub(super) enum SideNews {
    /// The agent is there: media can flow.
    Opened(Box<Connected>),
    /// Something came from the room.
    Told(RoomNews),
    /// The connections are over; figures where there were media.
    Ended(RoomEnd, Option<Box<Finished>>),
}

/// The room of one call.
pub(super) struct RoomSide {
    orders: mpsc::Sender<Order>,
    told: mpsc::Receiver<RoomNews>,
    steps: mpsc::Receiver<SideNews>,
    pub finished: Option<Box<Finished>>,
    is_open: bool,
    is_over: bool,
    unsent: u64,
}

/// Ends of the queues that the task of a call holds.
pub(super) struct Line {
    orders: mpsc::Receiver<Order>,
    told: mpsc::Sender<RoomNews>,
    steps: mpsc::Sender<SideNews>,
}

/// A room that is to be joined.
pub(super) struct Joining {
    pub target: RoomTarget,
    pub settings: PeerSettings,
    pub dialer: Dialer,
    pub patience: Patience,
}

impl RoomSide {
    /// Returns the driver's ends of the queues, and those of the task.
    pub fn new() -> (RoomSide, Line) {
        let (orders, to_do) = mpsc::channel(ORDERS);
        let (tell, told) = mpsc::channel(NEWS);
        let (step, steps) = mpsc::channel(STEPS);
        let side = RoomSide { orders, told, steps, finished: None, is_open: false, is_over: false, unsent: 0 };
        (side, Line { orders: to_do, told: tell, steps: step })
    }

    /// Returns the next news; `None` after the last. Safe to drop and call again.
    pub async fn next(&mut self) -> Option<SideNews> {
        if self.is_over {
            return None;
        }
        let RoomSide { told, steps, is_open, .. } = self;
        let news = match is_open {
            // What is told behind the beginning of the call belongs to it.
            false => tokio::select! {
                biased;
                Some(step) = steps.recv() => Some(step),
                Some(news) = told.recv() => Some(SideNews::Told(news)),
                else => None,
            },
            true => tokio::select! {
                biased;
                Some(news) = told.recv() => Some(SideNews::Told(news)),
                Some(step) = steps.recv() => Some(step),
                else => None,
            },
        };
        self.is_open |= matches!(news, Some(SideNews::Opened(_)));
        self.is_over = matches!(news, None | Some(SideNews::Ended(..)));
        news
    }

    /// Returns news that came before the end and were not read.
    pub fn rest(&mut self) -> Option<RoomNews> {
        self.told.try_recv().ok()
    }

    /// Gives an order to the task.
    pub fn order(&mut self, order: Order) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.orders.try_send(order) {
            self.unsent += 1;
        }
    }

    /// Ends the connections, whatever waits.
    pub fn hang_up(&mut self) {
        // Without a sender the task hangs up.
        let (closed, _) = mpsc::channel(1);
        self.orders = closed;
    }

    /// Returns the number of messages that found no room.
    pub fn unsent_count(&self) -> u64 {
        self.unsent
    }

    /// Adds what was measured at the connections to the figures of the media thread.
    pub fn add_to(&self, quality: &mut Quality) {
        let Some(Finished { pump: PumpFigures { pacing, late, lost }, .. }) = self.finished.as_deref() else { return };
        quality.pacing_p99_ms = quality.pacing_p99_ms.max(pacing.quantile_ms(0.99));
        quality.pacing_max_ms = quality.pacing_max_ms.max(pacing.max_ms());
        quality.late_frames += late;
        quality.late_packets += lost;
    }

    /// Returns warnings about the other side's behaviour.
    pub fn warnings(&self) -> Vec<String> {
        let Some(Finished { peer, counts, malformed, .. }) = self.finished.as_deref() else { return Vec::new() };
        let candidates = peer.candidates;
        let unused = candidates.not_allowed + candidates.names + candidates.malformed + candidates.transport;
        [
            (counts.bad_tools, "data packets on the topic of tools are no calls of tools, and were not read"),
            (counts.flooding, "data packets came faster than they are read, and were dropped"),
            (counts.malformed, "data packets cannot be read"),
            (counts.broken_streams, "streams of text were too long, too many at once or incomplete, and were dropped"),
            (peer.dropped_messages, "data packets found no room, and were dropped"),
            (peer.long_messages, "data packets were longer than 64 KiB, and were dropped"),
            (peer.refused_channels, "data channels of the room server were one too many, and were closed"),
            (candidates.too_many, "candidates of the room server were more than 20, and were not used"),
            (unused, "candidates of the room server cannot be used or are not allowed"),
            (*malformed, "messages of the room server cannot be read"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect()
    }
}

/// Joins the room and carries the call in it.
pub(super) fn join(joining: Joining, mut pump: Pump, line: Line) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let Line { mut orders, told, steps } = line;
        let Joining { target, settings, dialer, patience } = joining;
        let opened = RoomCall::open(target, settings, dialer, patience, &mut orders, &told).await;
        let mut call = match opened {
            Ok(call) => call,
            Err(end) => return drop(steps.send(SideNews::Ended(end, None)).await),
        };
        let Some(media) = call.media() else {
            let reason = Reason::Local("no media were settled".to_owned());
            let end = RoomEnd::Failed(RoomFault { step: Step::Agent, reason });
            return drop(steps.send(SideNews::Ended(end, None)).await);
        };
        let connected = Connected { media, joined: call.facts(), path: call.figures().await.path };
        let _ = steps.send(SideNews::Opened(Box::new(connected))).await;
        let end = call.run(&mut pump, &mut orders, &told).await;
        let finished = Finished {
            pump: pump.figures(),
            peer: call.last_figures(),
            counts: call.counts(),
            malformed: call.malformed_count(),
        };
        let _ = steps.send(SideNews::Ended(end, Some(Box::new(finished)))).await;
    })
}
