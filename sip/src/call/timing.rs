//! The session timer of a call (RFC 4028): the interval that is asked for or given, and the side that refreshes.

use std::time::Duration;

use crate::capabilities::SUPPORTED;
use crate::message::{Headers, Response};
use crate::time::Time;

/// Shortest session interval that this side takes as an answerer, seconds (RFC 4028 4).
pub(crate) const LEAST_S: u32 = 90;

/// Longest Min-SE of a 422 that is followed, seconds: one day.
const LONGEST_MIN_SE_S: u32 = 86_400;

/// Session timer of a call.
#[derive(Default)]
pub(crate) struct Timing {
    /// Interval that this side asks for, seconds.
    asked_s: Option<u32>,
    /// Min-SE of a 422, seconds; 0 before the first.
    least_s: u32,
    /// Interval that an answerer will give in its 2xx.
    pub(crate) plan: Option<Plan>,
    pub(crate) running: Option<Running>,
}

/// Interval of a session, and the side that refreshes it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Plan {
    pub(crate) interval_s: u32,
    /// True when this side refreshes.
    pub(crate) ours: bool,
}

#[derive(Copy, Clone, Debug)]
pub(crate) struct Running {
    plan: Plan,
    /// Time at which this side refreshes; `None` where the other side does.
    pub(crate) refresh: Option<Time>,
    /// Time at which the session is over without a refresh.
    pub(crate) expires: Time,
}

/// Error for an interval below the least one, which a 422 tells.
pub(crate) struct TooShort;

impl Timing {
    pub(crate) fn new(asked_s: Option<u32>) -> Timing {
        Timing { asked_s: asked_s.map(|asked| asked.max(LEAST_S)), ..Timing::default() }
    }

    /// Returns the time of the next refresh or of the expiry.
    pub(crate) fn due(&self) -> Option<Time> {
        self.running.map(|running| running.refresh.map_or(running.expires, |refresh| refresh.min(running.expires)))
    }

    /// Adds the interval that this side asks for to an INVITE or UPDATE of its own.
    pub(crate) fn ask(&self, headers: &mut Headers) {
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
    pub(crate) fn answer(&self, request: &Headers, ours_s: Option<u32>) -> Result<Option<Plan>, TooShort> {
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

    pub(crate) fn start(&mut self, now: Time, plan: Plan) {
        let interval = Duration::from_secs(plan.interval_s.into());
        let margin = Duration::from_secs(32).min(interval / 3);
        self.running =
            Some(Running { plan, refresh: plan.ours.then(|| now + interval / 2), expires: now + (interval - margin) });
    }

    /// Takes the larger least interval of a 422; false when it asks for none.
    pub(crate) fn raise(&mut self, response: &Response) -> bool {
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
    pub(crate) fn headers(self) -> Vec<(&'static str, String)> {
        let refresher = if self.ours { "uas" } else { "uac" };
        let mut headers = vec![("Session-Expires", format!("{};refresher={refresher}", self.interval_s))];
        if !self.ours {
            headers.push(("Require", "timer".to_owned()));
        }
        headers
    }
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Refresher {
    Uac,
    Uas,
}

/// Reads seconds and refresher of a Session-Expires field.
pub(crate) fn session_expires(headers: &Headers) -> Option<(u32, Option<Refresher>)> {
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
