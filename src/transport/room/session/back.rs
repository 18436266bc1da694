//! The way back to a room whose signalling or media were lost: the connection is taken up, or the room is joined anew.

use std::time::Duration;

use ringer_media::time::Time;

use super::{Carried, RoomCall, RoomNews, now};
use crate::news::NewsSender;
use crate::room::fault::Reason;
use crate::room::line::Connected;

/// Times that a call comes back.
const MAX_RETURNS: u32 = 20;

/// Wait before a further attempt.
const WAIT: Duration = Duration::from_secs(1);

/// Longest time of one attempt.
const ATTEMPT: Duration = Duration::from_secs(4);

/// Ways back to the room.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// The participant stays, and its media go on.
    Resume,
    /// The room is joined anew, and media begin anew.
    Anew,
}

/// A way back that is being taken.
#[derive(Debug)]
pub(super) struct Back {
    since: Time,
    attempts: u32,
    how: How,
    why: String,
    /// Time from which the server may know of the newest attempt.
    dials_at: Time,
}

impl RoomCall {
    /// Begins the way back, or goes on with it. Returns the end where there is none.
    pub(super) fn lose(&mut self, why: String, how: How, news: &NewsSender<RoomNews>) -> Option<Carried> {
        if !self.signalling.is_joined() && self.back.is_none() {
            return Some(Carried::Failed(Reason::Lost(why, 0)));
        }
        let back = match self.back.take() {
            Some(back) => Back { how: if how == How::Anew { how } else { back.how }, ..back },
            None if self.returns >= MAX_RETURNS => return Some(Carried::Failed(Reason::Lost(why, 0))),
            None => {
                self.returns += 1;
                tracing::info!("the connection to the room is lost: {why}");
                news.send(RoomNews::Returns(why.clone()));
                {
                    let now = super::now();
                    Back { since: now, attempts: 0, how, why, dials_at: now }
                }
            }
        };
        self.back = Some(back);
        self.try_again()
    }

    /// Takes the outcome of an attempt.
    pub(super) fn take_dialled(&mut self, dialled: Result<Connected, Reason>) -> Option<Carried> {
        match dialled {
            Ok(connected) => {
                self.link = Some(connected.link);
                if self.back.as_ref().is_some_and(|back| back.how == How::Anew) {
                    self.signalling = std::mem::take(&mut self.signalling).anew();
                    // Media of the old connection are none of the new one.
                    self.hear(Vec::new());
                    (self.publisher, self.subscriber) = (None, None);
                }
                self.signalling.begin(now());
                None
            }
            Err(reason) => {
                // Who is refused where it was before may still join anew.
                let is_refused = matches!(&reason, Reason::Dial(fault, _) if !fault.may_retry());
                if let Some(back) = &mut self.back {
                    if is_refused && back.how == How::Anew {
                        return Some(Carried::Failed(reason));
                    }
                    if is_refused {
                        back.how = How::Anew;
                    }
                }
                self.try_again()
            }
        }
    }

    fn try_again(&mut self) -> Option<Carried> {
        // An attempt that is under way goes on.
        if self.dialling.is_some() {
            return None;
        }
        let back = self.back.as_mut()?;
        let left = self.patience.reconnect.saturating_sub(now().since(back.since));
        if left.is_zero() {
            return Some(Carried::Failed(Reason::Lost(back.why.clone(), back.attempts)));
        }
        // Where media alone are lost, the server may yet say that the room is over.
        let wait = if back.attempts == 0 && self.link.is_none() { Duration::ZERO } else { WAIT };
        back.attempts += 1;
        back.dials_at = now() + wait;
        let within = left.saturating_sub(wait).min(ATTEMPT);
        let rejoin = (back.how == How::Resume).then(|| self.signalling.own_sid().to_owned());
        let token = self.signalling.token().unwrap_or(&self.token).clone();
        let (way, flow) = (self.way.clone(), self.flow);
        self.dialling = Some(Box::pin(async move {
            tokio::time::sleep(wait).await;
            way.connect(token, Some(flow), rejoin, within).await
        }));
        None
    }

    /// True while the server may be letting this side in again.
    pub(super) fn may_be_let_in(&self) -> bool {
        let has_begun = |back: &Back| back.dials_at <= now();
        self.dialling.is_some() && self.back.as_ref().is_some_and(has_begun)
    }

    /// Notes that the room is joined anew, whatever was asked for.
    pub(super) fn joins_anew(&mut self) {
        self.back.iter_mut().for_each(|back| back.how = How::Anew);
    }

    /// Ends the way back: the call goes on.
    pub(super) fn end_back(&mut self, news: &NewsSender<RoomNews>) {
        if self.back.take().is_some() {
            news.send(RoomNews::Returned);
        }
    }

    /// Returns the time at which something is to be looked after.
    pub(super) fn next_timer(&self) -> Option<Time> {
        let over = self.back.as_ref().map(|back| back.since + self.patience.reconnect);
        let ping = self.signalling.next_timer().filter(|_| self.link.is_some());
        [over, ping].into_iter().flatten().min()
    }

    /// Looks after signs of life and the way back.
    pub(super) fn take_timer(&mut self, news: &NewsSender<RoomNews>) -> Option<Carried> {
        let now = super::now();
        if let Some(back) = self.back.as_ref().filter(|back| back.since + self.patience.reconnect <= now) {
            return Some(Carried::Failed(Reason::Lost(back.why.clone(), back.attempts)));
        }
        self.link.as_ref()?;
        let why = self.signalling.tick(now)?;
        // Whoever says nothing any more is not asked again.
        self.link = None;
        self.lose(why, How::Resume, news)
    }

    /// Ends the way back of a room that was joined anew, as soon as this side can be heard. The agent may have a way
    /// back of its own.
    pub(super) fn look_back(&mut self, news: &NewsSender<RoomNews>) {
        let is_anew = self.back.as_ref().is_some_and(|back| back.how == How::Anew);
        let is_there = if self.is_up { self.can_send() } else { self.can_flow() };
        if is_anew && self.dialling.is_none() && is_there {
            self.end_back(news);
        }
    }
}
