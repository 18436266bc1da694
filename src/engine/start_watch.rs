//! Time within which an agent on a platform begins its first turn, on channels whose protocols do not watch for it.

use std::future::pending;
use std::pin::Pin;
use std::time::Duration;

use ringer_media::call::{EndDetail, EventKind, RemoteEnd, RemoteKind};
use ringer_transport::fault::AdapterFault;
use tokio::time::{Sleep, sleep};

use super::Destination;

/// Watch for the first words of one call's agent.
pub(super) struct StartWatch {
    platform: Box<str>,
    within: Duration,
    /// End of the wait; `None` before the call is up, and while this side speaks.
    timer: Option<Pin<Box<Sleep>>>,
}

impl StartWatch {
    /// Returns the watch of a call; `None` where its agent is on no platform, or its protocol watches by itself.
    pub(super) fn of(destination: &Destination, within: Duration) -> Option<Box<StartWatch>> {
        let platform = destination.platform()?.into();
        Some(Box::new(StartWatch { platform, within, timer: None }))
    }

    /// Takes an event of the call. Returns false when there is nothing more to wait for.
    pub(super) fn follow(&mut self, what: &EventKind) -> bool {
        match what {
            EventKind::Connected { .. } | EventKind::SpeechEnded { .. } => {
                self.timer = Some(Box::pin(sleep(self.within)));
            }
            EventKind::SpeechStarted { .. } => self.timer = None,
            EventKind::AgentSpeechStarted { .. } | EventKind::Ended { .. } => return false,
            _ => {}
        }
        true
    }

    /// Returns the end of a call whose agent did not begin.
    pub(super) fn end(&self) -> RemoteEnd {
        RemoteEnd {
            kind: RemoteKind::Lost,
            detail: EndDetail::Pipeline { kind: format!("{} {}", self.platform, AdapterFault::Start.as_str()) },
            text: format!("the agent said nothing within {} s", self.within.as_secs()),
        }
    }
}

/// Waits until the agent should have begun; for ever where nothing is watched. Safe to drop and call again.
pub(super) async fn overdue(watch: &mut Option<Box<StartWatch>>) {
    match watch.as_mut().and_then(|watch| watch.timer.as_mut()) {
        Some(timer) => timer.await,
        None => pending().await,
    }
}
