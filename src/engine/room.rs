//! The connections of a call to a media room, as the call's task holds them. A task of their own moves packets; here its news
//! arrive and orders leave.

use futures_util::future::BoxFuture;
use ringer_media::call::Quality;

use super::queues::{self, Queues, Told, Turn};
use crate::transport::room::port::Connected;
use crate::transport::room::{
    DataCounts, Order, Patience, Reason, RoomCall, RoomEnd, RoomFault, RoomNews, RoomTarget, Step,
};
use crate::transport::webrtc::{PeerFigures, PeerSettings, Pump, PumpFigures};
use crate::transport::websocket::dial::Dialer;

/// Figures of connections that are over.
#[derive(Debug)]
pub(super) struct Finished {
    pump: PumpFigures,
    peer: PeerFigures,
    counts: DataCounts,
    malformed: u64,
}

/// News for the task of a call.
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
    queues: Queues<Order, RoomNews, SideNews>,
    pub finished: Option<Box<Finished>>,
    is_open: bool,
    is_over: bool,
}

/// Words for a task that ended without a last word, as one that panicked.
const NO_LAST_WORD: &str = "the task that held the connections ended without a word";

/// Ends of the queues that the task holds.
pub(super) type Line = queues::Line<Order, RoomNews, SideNews>;

/// A room that is to be joined.
pub(super) struct Joining {
    pub target: RoomTarget,
    pub settings: PeerSettings,
    pub dialer: Dialer,
    pub patience: Patience,
}

impl RoomSide {
    /// Returns the call task's ends of the queues, and those of the task.
    pub fn new() -> (RoomSide, Line) {
        let (queues, line) = Queues::new();
        (RoomSide { queues, finished: None, is_open: false, is_over: false }, line)
    }

    /// Returns the next news; `None` after the last. A task that is gone without a last word has failed. Safe to drop and call again.
    pub async fn next(&mut self) -> Option<SideNews> {
        if self.is_over {
            return None;
        }
        let turn = match self.is_open {
            // Warnings and messages may come before the agent is there; what is told behind the beginning belongs to the call.
            false => Turn::StepsFirst,
            true => Turn::NewsFirst,
        };
        let news = match self.queues.next(turn).await {
            Some(Told::News(news)) => SideNews::Told(news),
            Some(Told::Step(step)) => step,
            None => {
                let step = if self.is_open { Step::Call } else { Step::Agent };
                let reason = Reason::Local(NO_LAST_WORD.to_owned());
                SideNews::Ended(RoomEnd::Failed(RoomFault { step, reason }), None)
            }
        };
        self.is_open |= matches!(news, SideNews::Opened(_));
        self.is_over = matches!(news, SideNews::Ended(..));
        Some(news)
    }

    /// Returns the queues of orders and unread news.
    pub fn queues(&mut self) -> &mut Queues<Order, RoomNews, SideNews> {
        &mut self.queues
    }

    /// Adds what was measured at the connections to the figures of the media thread.
    pub fn add_to(&self, quality: &mut Quality) {
        if let Some(finished) = &self.finished {
            queues::add_figures(&finished.pump, quality);
        }
    }

    /// Returns warnings about the other side's behaviour.
    pub fn warnings(&self) -> Vec<String> {
        let Some(Finished { peer, counts, malformed, .. }) = self.finished.as_deref() else { return Vec::new() };
        queues::warnings_of(&[
            (counts.bad_tools, "data packets on the topic of tools are no calls of tools, and were not read"),
            (counts.flooding, "data packets came faster than they are read, and were dropped"),
            (counts.malformed, "data packets cannot be read"),
            (counts.broken_streams, "streams of text were too long, too many at once or incomplete, and were dropped"),
            (peer.dropped_messages, "data packets found no room, and were dropped"),
            (peer.long_messages, "data packets were longer than 64 KiB, and were dropped"),
            (peer.refused_channels, "data channels of the room server were one too many, and were closed"),
            (*malformed, "messages of the room server cannot be read"),
        ])
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
        let connected = Connected {
            media,
            joined: call.facts(),
            path: call.figures().await.path,
            heard_since: Some(call.heard_since()),
        };
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

#[cfg(test)]
mod tests {
    use ringer_media::codec::Codec;
    use ringer_media::leg::MediaParams;

    use super::*;
    use crate::transport::fault::FaultKind;
    use crate::transport::room::Joined;
    use crate::transport::room::signal::Flow;

    /// A task that panics, before and after the call is up, is the end of the call, told once.
    #[tokio::test]
    async fn a_task_without_a_last_word_is_a_failure_of_this_side() {
        for (is_open, kind) in [(false, FaultKind::OwnBeforeCall), (true, FaultKind::OwnInCall)] {
            let (mut side, line) = RoomSide::new();
            if is_open {
                let joined = Joined {
                    sid: "PA_1".into(),
                    agent: None,
                    flow: Flow::Joint,
                    room: String::new(),
                    server_version: String::new(),
                };
                let connected =
                    Connected { media: MediaParams::new(Codec::Opus), joined, path: None, heard_since: None };
                line.steps.send(SideNews::Opened(Box::new(connected))).await.expect("there is room");
                assert!(matches!(side.next().await, Some(SideNews::Opened(_))));
            }
            line.told.send(RoomNews::Returned);
            drop(line);
            assert!(matches!(side.next().await, Some(SideNews::Told(RoomNews::Returned))));
            let Some(SideNews::Ended(RoomEnd::Failed(fault), None)) = side.next().await else { panic!("it ended") };
            assert_eq!(fault.kind(), kind, "{fault}");
            assert!(side.next().await.is_none());
        }
    }
}
