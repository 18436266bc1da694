//! Session timers (RFC 4028): the interval that is asked for, the side that refreshes, and the end of a session without
//! a refresh. All timers of a call run here.

use std::time::Duration;

use super::reason;
use crate::call::{
    Call, CallEnd, CallStage, Change, DialogSide, EndKind, LEAST_S, Plan, Refresher, TooShort, session_expires,
};
use crate::endpoint::Endpoint;
use crate::ids::CallKey;
use crate::message::{Headers, Method};
use crate::time::Time;

/// Shortest interval that an answer may give, seconds: shorter ones would only make traffic.
const SHORTEST_S: u32 = 10;

/// Time that a refresh waits while another change is under way.
const PAUSE: Duration = Duration::from_secs(2);

impl Endpoint {
    /// Asks for session timers (RFC 4028) of this many seconds, at least 90, in the calls that are made from now on;
    /// `None`, as at the start: only when the other side asks. Calls in which a timer runs are refreshed, or end when
    /// nobody refreshes them.
    pub fn ask_session_interval(&mut self, seconds: Option<u32>) {
        self.session_s = seconds.map(|seconds| seconds.max(LEAST_S));
    }

    /// Plans the timer that the 2xx to an INVITE or UPDATE of the other side will give.
    pub(super) fn plan_timer(&mut self, key: CallKey, request: &Headers) -> Result<Option<Plan>, TooShort> {
        let Some(call) = self.calls.get_mut(&key) else { return Ok(None) };
        let plan = call.timing.answer(request, self.session_s)?;
        call.timing.plan = plan;
        Ok(plan)
    }

    /// Returns the plan of the INVITE that made the call.
    pub(super) fn planned_timer(&self, key: CallKey) -> Option<Plan> {
        self.calls.get(&key).and_then(|call| call.timing.plan)
    }

    /// Starts the planned timer, after its 2xx was sent.
    pub(super) fn start_timer(&mut self, now: Time, key: CallKey, plan: Option<Plan>) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        match plan {
            Some(plan) => call.timing.start(now, plan),
            None => call.timing.running = None,
        }
        self.call_changed(key);
    }

    /// Takes the timer of a 2xx to an INVITE or UPDATE of this side (RFC 4028 7.2).
    pub(super) fn take_timer(&mut self, now: Time, key: CallKey, headers: &Headers) {
        let plan = session_expires(headers).map(|(interval_s, refresher)| Plan {
            interval_s: interval_s.max(SHORTEST_S),
            ours: refresher != Some(Refresher::Uas),
        });
        self.start_timer(now, key, plan);
    }

    /// Runs everything in a call whose time has come.
    pub(crate) fn call_timer(&mut self, now: Time, key: CallKey) {
        let Some(call) = self.calls.get(&key) else { return };
        if call.deadline.is_some_and(|at| at <= now) {
            return self.call_deadline(now, key);
        }
        if call.change.as_ref().is_some_and(|change| change.due <= now) {
            self.change_timer(now, key);
        }
        self.ringing_timer(now, key);
        self.offer_timer(now, key);
        self.answer_timer(now, key);
        self.session_timer(now, key);
        self.call_changed(key);
    }

    /// Forgets a call, or ends it because an address or the owner's answer did not come.
    fn call_deadline(&mut self, now: Time, key: CallKey) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        if call.stage == CallStage::Over {
            return self.forget_call(key);
        }
        call.deadline = None;
        let end = match &call.side {
            DialogSide::Caller(_) => CallEnd::new(EndKind::NotReachable, "Redirected to an unknown host"),
            DialogSide::Answerer(_) => {
                self.respond(now, key, 480, None, &[]);
                CallEnd { sip_code: Some(480), ..CallEnd::new(EndKind::Timeout, "Nobody answered") }
            }
        };
        self.end(now, key, end);
    }

    fn session_timer(&mut self, now: Time, key: CallKey) {
        let Some(call) = self.calls.get_mut(&key).filter(|call| call.stage == CallStage::Up) else { return };
        let at = call.active.unwrap_or(0);
        let Some(running) = &mut call.timing.running else { return };
        if running.expires <= now {
            self.bye(now, key, at, Some(reason(102, "Session expired")));
            let end = CallEnd::new(EndKind::SessionExpired, "The session was not refreshed");
            return self.end(now, key, CallEnd { q850_cause: Some(102), ..end });
        }
        if running.refresh.is_none_or(|refresh| refresh > now) {
            return;
        }
        // Another change refreshes as well, when it is accepted.
        running.refresh = call.change.is_some().then(|| now + PAUSE);
        if call.change.is_some() {
            return;
        }
        let method =
            if call.dialogs.get(at).is_some_and(|fork| fork.allows_update) { Method::Update } else { Method::Invite };
        call.change = Some(Change::refresh(method, at, now));
        self.start_change(now, key);
    }

    /// Handles a refused refresh: by re-INVITE when UPDATE is not taken, else again after half of the time that is
    /// left.
    pub(super) fn refresh_refused(&mut self, now: Time, key: CallKey, method: &Method, code: u16) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        let at = call.active.unwrap_or(0);
        let Some(running) = &mut call.timing.running else { return };
        let unknown = *method == Method::Update && matches!(code, 405 | 501);
        if let Some(fork) = call.dialogs.get_mut(at).filter(|_| unknown) {
            fork.allows_update = false;
        }
        let left = running.expires.since(now) / 2;
        running.refresh = if unknown { Some(now) } else { Some(now + left).filter(|_| left >= PAUSE) };
    }
}

impl Call {
    /// True when a description that the answer to a refresh gives is news.
    pub(super) fn is_news(&self, media: &crate::sdp::Negotiated) -> bool {
        self.media.as_ref().is_some_and(|known| known != media)
    }
}
