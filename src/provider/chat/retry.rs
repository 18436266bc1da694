//! Rules for repeating a request that was not answered.

use std::time::Duration;

/// Times that a request is made, the first included.
const ATTEMPTS: u32 = 4;
/// The same where somebody waits on the telephone.
const LIVE_ATTEMPTS: u32 = 2;
/// Times that a request is made which is not answered in time.
const LATE_ATTEMPTS: u32 = 2;
/// Wait before the second attempt; each later one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// Longest sum of the waits of a request.
const WAITS_MAX: Duration = Duration::from_secs(60);
/// Wait before another attempt while somebody waits on the telephone.
const LIVE_WAIT: Duration = Duration::from_millis(250);
/// Longest wait that a server may ask for while somebody waits on the telephone.
const LIVE_WAIT_MAX: Duration = Duration::from_secs(1);

/// Reason why a request was not answered.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// The server is busy or being restarted; with the wait that it asks for.
    Busy(Option<Duration>),
    /// There was no connection, or it was dropped before the answer.
    Dropped,
    /// The answer did not begin in time.
    Late,
    /// Another attempt would end the same way.
    Final,
}

impl Cause {
    /// Returns the cause behind an answer's status, with the wait that it asks for.
    pub(super) fn of(status: u16, asked: Option<Duration>) -> Cause {
        match status {
            408 | 425 | 429 | 502 | 503 | 504 | 529 => Cause::Busy(asked),
            _ => Cause::Final,
        }
    }
}

/// Number of attempts, and the waits between them.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Times that a request is made, the first included.
    pub attempts: u32,
    /// Wait before the second attempt; each later one is twice as long.
    pub first_wait: Duration,
    /// Longest sum of the waits of a request.
    pub waits_max: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Retry { attempts: ATTEMPTS, first_wait: FIRST_WAIT, waits_max: WAITS_MAX }
    }
}

/// The attempts of one request.
#[derive(Debug)]
pub(super) struct Attempts {
    retry: Retry,
    live: bool,
    /// True if the server was not reached the last time either.
    gone: bool,
    made: u32,
    waited: Duration,
}

impl Attempts {
    /// Returns the count before any attempt. `live`: somebody waits on the telephone; `gone`: the server could not be
    /// reached by the request before.
    pub(super) fn new(retry: Retry, live: bool, gone: bool) -> Attempts {
        Attempts { retry, live, gone, made: 0, waited: Duration::ZERO }
    }

    /// Counts an attempt that failed so; the wait before the next one, or `None` when there is none.
    pub(super) fn next_wait(&mut self, cause: Cause) -> Option<Duration> {
        self.made += 1;
        let backoff = self.retry.first_wait.saturating_mul(1 << (self.made - 1).min(16));
        let (most, wait) = match cause {
            Cause::Final => return None,
            Cause::Late if self.live || self.gone => return None,
            Cause::Dropped if self.gone => return None,
            Cause::Late => (self.retry.attempts.min(LATE_ATTEMPTS), backoff),
            Cause::Busy(asked) => (self.retry.attempts, asked.unwrap_or(backoff)),
            Cause::Dropped => (self.retry.attempts, backoff),
        };
        let (most, wait, longest) = match cause {
            Cause::Busy(Some(_)) if self.live => (most.min(LIVE_ATTEMPTS), wait, LIVE_WAIT_MAX),
            _ if self.live => (most.min(LIVE_ATTEMPTS), wait.min(LIVE_WAIT), LIVE_WAIT_MAX),
            _ => (most, wait, self.retry.waits_max),
        };
        if self.made >= most || self.waited + wait > longest {
            return None;
        }
        self.waited += wait;
        Some(wait)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(live: bool, gone: bool, causes: &[Cause]) -> Vec<Option<u64>> {
        let mut attempts = Attempts::new(Retry::default(), live, gone);
        causes.iter().map(|&cause| attempts.next_wait(cause).map(|wait| wait.as_millis() as u64)).collect()
    }

    #[test]
    fn what_may_pass_is_tried_again_within_limits() {
        let asks = |seconds| Cause::Busy(Some(Duration::from_secs(seconds)));
        let check = |live, gone, causes: &[Cause], expect: &[Option<u64>]| {
            assert_eq!(waits(live, gone, causes), expect, "{live} {gone} {causes:?}");
        };
        let doubled = [Some(1000), Some(2000), Some(4000), None];
        check(false, false, &[Cause::Busy(None); 4], &doubled);
        check(false, false, &[Cause::Dropped; 4], &doubled);
        check(false, false, &[Cause::Late; 2], &[Some(1000), None]);
        check(false, false, &[Cause::Final], &[None]);
        check(false, false, &[asks(7), asks(0), asks(20)], &[Some(7000), Some(0), Some(20_000)]);
        check(false, false, &[asks(61)], &[None]);
        check(false, false, &[asks(50), asks(11)], &[Some(50_000), None]);
        check(false, false, &[asks(u64::MAX / 1000)], &[None]);
        // Whoever was not there before is asked once.
        check(false, true, &[Cause::Dropped], &[None]);
        check(false, true, &[Cause::Late], &[None]);
        check(false, true, &[Cause::Busy(None)], &[Some(1000)]);
        // Nobody on the telephone waits for long.
        check(true, false, &[Cause::Busy(None); 2], &[Some(250), None]);
        check(true, false, &[Cause::Dropped; 2], &[Some(250), None]);
        check(true, false, &[asks(1)], &[Some(1000)]);
        check(true, false, &[asks(2)], &[None]);
        check(true, false, &[Cause::Late], &[None]);
    }

    #[test]
    fn statuses_say_whether_it_may_pass() {
        for status in [408, 425, 429, 502, 503, 504, 529] {
            assert_eq!(Cause::of(status, Some(FIRST_WAIT)), Cause::Busy(Some(FIRST_WAIT)), "{status}");
        }
        for status in [400, 401, 403, 404, 422, 500, 501] {
            assert_eq!(Cause::of(status, None), Cause::Final, "{status}");
        }
    }
}
