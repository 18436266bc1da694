//! Session timers (RFC 4028): the interval that is asked for, the side that refreshes, and the end of a session without
//! a refresh. All timers of a call run here.

use std::time::Duration;

use super::{Call, CallEnd, CallKey, CallStage, Change, DialogSide, EndKind, SUPPORTED, reason};
use crate::endpoint::Endpoint;
use crate::message::{Headers, Method, Response};
use crate::time::Time;

/// Shortest session interval that this side takes as an answerer, seconds (RFC 4028 4).
pub(super) const LEAST_S: u32 = 90;

/// Shortest interval that an answer may give, seconds: shorter ones would only make traffic.
const SHORTEST_S: u32 = 10;

/// Longest Min-SE of a 422 that is followed, seconds: one day.
const LONGEST_MIN_SE_S: u32 = 86_400;

/// Time that a refresh waits while another change is under way.
const PAUSE: Duration = Duration::from_secs(2);

/// Session timer of a call.
#[derive(Default)]
pub(crate) struct Timing {
    /// Interval that this side asks for, seconds.
    asked_s: Option<u32>,
    /// Min-SE of a 422, seconds; 0 before the first.
    least_s: u32,
    /// Interval that an answerer will give in its 2xx.
    plan: Option<Plan>,
    running: Option<Running>,
}

/// Interval of a session, and the side that refreshes it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) struct Plan {
    interval_s: u32,
    /// True when this side refreshes.
    ours: bool,
}

#[derive(Copy, Clone, Debug)]
struct Running {
    plan: Plan,
    /// Time at which this side refreshes; `None` where the other side does.
    refresh: Option<Time>,
    /// Time at which the session is over without a refresh.
    expires: Time,
}

/// Error for an interval below the least one, which a 422 tells.
pub(super) struct TooShort;

impl Timing {
    pub(super) fn new(asked_s: Option<u32>) -> Timing {
        Timing { asked_s: asked_s.map(|asked| asked.max(LEAST_S)), ..Timing::default() }
    }

    /// Returns the time of the next refresh or of the expiry.
    pub(super) fn due(&self) -> Option<Time> {
        self.running.map(|running| running.refresh.map_or(running.expires, |refresh| refresh.min(running.expires)))
    }

    /// Adds the interval that this side asks for to an INVITE or UPDATE of its own.
    pub(super) fn ask(&self, headers: &mut Headers) {
        headers.set("Supported", SUPPORTED);
        let asked = match self.running {
            Some(Running { plan, .. }) => {
                let interval = plan.interval_s.max(self.least_s);
                Some(format!("{interval};refresher={}", if plan.ours { "uac" } else { "uas" }))
            }
            // A 422 to a call that asked for no timer asks for one.
            None => {
                self.asked_s.or((self.least_s > 0).then_some(self.least_s)).map(|s| s.max(self.least_s).to_string())
            }
        };
        if let Some(asked) = asked {
            headers.set("Session-Expires", asked);
            if self.least_s > LEAST_S {
                headers.set("Min-SE", self.least_s.to_string());
            }
        }
    }

    /// Returns the timer that the 2xx to a request of the other side gives (RFC 4028 9); `None`: no timer. `ours_s` is
    /// asked for by this side.
    fn answer(&self, request: &Headers, ours_s: Option<u32>) -> Result<Option<Plan>, TooShort> {
        let supports = request.list("Supported").iter().chain(&request.list("Require")).any(is_timer);
        let asked = session_expires(request);
        if supports && asked.as_ref().is_some_and(|(interval_s, _)| *interval_s < LEAST_S) {
            return Err(TooShort);
        }
        let before = self.running.map(|running| running.plan);
        let interval_s = asked.as_ref().map(|(asked, _)| *asked).or(before.map(|plan| plan.interval_s)).or(ours_s);
        let min_se = request.get("Min-SE").and_then(seconds).unwrap_or(0).min(LONGEST_MIN_SE_S);
        let refresher = asked.and_then(|(_, refresher)| refresher);
        let ours = match refresher {
            _ if !supports => true,
            Some(Refresher::Uas) => true,
            Some(Refresher::Uac) => false,
            None => before.is_some_and(|plan| plan.ours),
        };
        Ok(interval_s.map(|interval_s| Plan { interval_s: interval_s.max(LEAST_S).max(min_se), ours }))
    }

    fn start(&mut self, now: Time, plan: Plan) {
        let interval = Duration::from_secs(plan.interval_s.into());
        let margin = Duration::from_secs(32).min(interval / 3);
        self.running =
            Some(Running { plan, refresh: plan.ours.then(|| now + interval / 2), expires: now + (interval - margin) });
    }

    /// Takes the larger least interval of a 422; false when it asks for none.
    pub(super) fn raise(&mut self, response: &Response) -> bool {
        let least = response.headers.get("Min-SE").and_then(seconds).filter(|least| *least <= LONGEST_MIN_SE_S);
        let ours = self.running.map(|running| running.plan.interval_s).or(self.asked_s).unwrap_or(0).max(self.least_s);
        match least.filter(|least| *least > ours) {
            Some(least) => {
                self.least_s = least;
                true
            }
            None => false,
        }
    }
}

impl Plan {
    /// Returns the header fields of an answerer's 2xx.
    pub(super) fn headers(self) -> Vec<(&'static str, String)> {
        let refresher = if self.ours { "uas" } else { "uac" };
        let mut headers = vec![("Session-Expires", format!("{};refresher={refresher}", self.interval_s))];
        if !self.ours {
            headers.push(("Require", "timer".to_owned()));
        }
        headers
    }
}

impl Endpoint {
    /// Asks for session timers (RFC 4028) of this many seconds, at least 90, in the calls that are made from now on; `None`, as at
    /// the start: only when the other side asks. Calls in which a timer runs are refreshed, or end when nobody refreshes them.
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

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Refresher {
    Uac,
    Uas,
}

/// Reads seconds and refresher of a Session-Expires field.
fn session_expires(headers: &Headers) -> Option<(u32, Option<Refresher>)> {
    let value = headers.get("Session-Expires")?;
    let (_, params) = value.split_once(';').unwrap_or((value, ""));
    let refresher = match crate::uri::Params::parse(params).get("refresher").map(str::to_ascii_lowercase).as_deref() {
        Some("uac") => Some(Refresher::Uac),
        Some("uas") => Some(Refresher::Uas),
        _ => None,
    };
    Some((seconds(value)?, refresher))
}

/// Reads a number of seconds before any parameters.
fn seconds(value: &str) -> Option<u32> {
    value.split(';').next()?.trim().parse().ok()
}

fn is_timer(tag: &&str) -> bool {
    tag.eq_ignore_ascii_case("timer")
}
