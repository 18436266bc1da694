//! Calls to agents in media rooms: a task of its own joins the room and moves the packets of its connections.

use std::net::SocketAddr;

use futures_util::future::BoxFuture;
use ringer_base::guard::Guard;
use ringer_media::call::Control;
use ringer_media::time::Time;
use ringer_transport::peer::{PeerInfo, PortOutput};
use ringer_transport::room::port::{Connected, RoomPort};
use ringer_transport::room::{
    DataCounts, Order, Patience, Reason, RoomCall, RoomEnd, RoomFault, RoomNews, RoomTarget, Step,
};
use ringer_transport::webrtc::{PeerFigures, PeerSettings, Pump};
use ringer_transport::websocket::dial::Dialer;

use super::carried::{self, CarriedPort, Finished, Side, SideNews};
use super::queues::Precedence;
use super::{Channel, Means, Opening};
use crate::PlaceError;
use crate::call_state::CallState;
use crate::placement::RoomDial;

/// The room of one call.
pub(crate) type RoomSide = Side<RoomPort>;

/// Ends of the queues that the task holds.
type Line = carried::Line<RoomPort>;

/// Words for a task that ended without a last word, as one that panicked.
const NO_LAST_WORD: &str = "the task that held the connections ended without a word";

/// A room that is to be joined.
struct Joining {
    target: RoomTarget,
    settings: PeerSettings,
    dialer: Dialer,
    patience: Patience,
}

/// Counts of messages from the room.
#[derive(Debug)]
pub(crate) struct RoomCounts {
    data: DataCounts,
    /// Messages of the room server that cannot be read.
    malformed: u64,
}

/// Joins the room that an agent is in.
pub(super) fn dial(means: Means<'_>, terms: &RoomDial) -> Result<Opening, PlaceError> {
    let services = means.services;
    let permit = services.permit()?;
    let guard = terms.guard.clone().unwrap_or_else(|| Guard::by(|_| true));
    let joining = Joining {
        target: terms.target.clone(),
        settings: PeerSettings {
            opus: services.config.opus.clone(),
            ..terms.peers.settings(guard, services.tasks.clone())
        },
        dialer: means.dialer.clone(),
        patience: terms.patience,
    };
    let shown = terms.terms.shown.as_ref().unwrap_or(&terms.target.server_url);
    let port = RoomPort::new(shown, CallState::now(), services.clock.now_ms()).with_terms(terms.terms.clone());
    Ok(carried::open(&means, permit, port, Channel::Room, "room", |pump, line| join(joining, pump, line)))
}

impl CarriedPort for RoomPort {
    type Order = Order;
    type News = RoomNews;
    type Connected = Connected;
    type End = RoomEnd;
    type Counts = RoomCounts;

    const LOG: &'static str = "room.log";
    const OTHER: &'static str = "the room";
    /// Warnings and messages may come before the agent is there; what is told behind the beginning belongs to the call.
    const PRECEDENCE: Precedence = Precedence::StepsFirst;

    fn open(&mut self, now: Time, connected: Connected) {
        RoomPort::open(self, now, connected);
    }

    fn receive(&mut self, now: Time, news: RoomNews) {
        RoomPort::receive(self, now, news);
    }

    fn finish(&mut self, now: Time, end: RoomEnd) {
        RoomPort::finish(self, now, end);
    }

    fn control(&mut self, control: &Control) {
        RoomPort::control(self, control);
    }

    fn poll(&mut self) -> Option<PortOutput<Order>> {
        RoomPort::poll(self)
    }

    fn peer(&self) -> &PeerInfo {
        RoomPort::peer(self)
    }

    fn is_hang_up(order: &Order) -> bool {
        *order == Order::HangUp
    }

    fn path(connected: &Connected) -> Option<(SocketAddr, SocketAddr)> {
        connected.path
    }

    fn vanish(is_open: bool) -> RoomEnd {
        let step = if is_open { Step::Call } else { Step::Agent };
        RoomEnd::Failed(RoomFault { step, reason: Reason::Local(NO_LAST_WORD.to_owned()) })
    }

    fn warnings<'f>(peer: &'f PeerFigures, RoomCounts { data, malformed }: &'f RoomCounts) -> Vec<(u64, &'static str)> {
        vec![
            (data.bad_tools, "data packets on the topic of tools are no calls of tools, and were not read"),
            (data.flooding, "data packets came faster than they are read, and were dropped"),
            (data.malformed, "data packets cannot be read"),
            (data.broken_streams, "streams of text were too long, too many at once or incomplete, and were dropped"),
            (peer.dropped_messages, "data packets found no room, and were dropped"),
            (peer.long_messages, "data packets were longer than 64 KiB, and were dropped"),
            (peer.refused_channels, "data channels of the room server were one too many, and were closed"),
            (*malformed, "messages of the room server cannot be read"),
        ]
    }
}

/// Joins the room and carries the call in it.
fn join(joining: Joining, mut pump: Pump, line: Line) -> BoxFuture<'static, ()> {
    Box::pin(async move {
        let Line { mut orders, news, steps } = line;
        let Joining { target, settings, dialer, patience } = joining;
        let opened = RoomCall::open(target, settings, dialer, patience, &mut orders, &news).await;
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
        let end = call.run(&mut pump, &mut orders, &news).await;
        let finished = Finished {
            pump: pump.figures(),
            peer: call.last_figures(),
            counts: RoomCounts { data: call.counts(), malformed: call.malformed_count() },
        };
        let _ = steps.send(SideNews::Ended(end, Some(Box::new(finished)))).await;
    })
}

#[cfg(test)]
mod tests {
    use ringer_media::codec::Codec;
    use ringer_media::leg::MediaParams;
    use ringer_transport::fault::FaultKind;
    use ringer_transport::room::Joined;
    use ringer_transport::room::signal::Flow;

    use super::*;

    /// A task that panics, before and after the call is up, is the end of the call, told once.
    #[tokio::test]
    async fn a_task_without_a_last_word_is_a_failure_of_this_side() {
        for (is_open, kind) in [(false, FaultKind::OwnBeforeCall), (true, FaultKind::OwnInCall)] {
            let (mut side, line) = Side::new(RoomPort::new("ws://h", Time(0), 0));
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
                line.steps.send(SideNews::Opened(Box::new(connected))).await.expect("there is space");
                assert!(matches!(side.next_news().await, Some(SideNews::Opened(_))));
            }
            line.news.send(RoomNews::Returned);
            drop(line);
            assert!(matches!(side.next_news().await, Some(SideNews::News(RoomNews::Returned))));
            let Some(SideNews::Ended(RoomEnd::Failed(fault), None)) = side.next_news().await else {
                panic!("it ended")
            };
            assert_eq!(fault.kind(), kind, "{fault}");
            assert!(side.next_news().await.is_none());
        }
    }
}
