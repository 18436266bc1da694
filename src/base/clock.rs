//! The injected sources of time, identity and randomness. The only file that reads a clock or the system's random
//! source.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rand_core::{OsRng, TryRngCore};
use ringer_media::time::Time;
use tokio::sync::watch;
use uuid::Uuid;

/// Wall clock, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Debug)]
pub enum Clock {
    /// Clocks of the machine.
    Real,
    /// Clocks of the machine, plus the milliseconds by which the clock of a shared database corrects them.
    Corrected(Arc<AtomicI64>),
    /// Stands still until a test moves it.
    Fixed(Arc<Still>),
}

/// Least difference in milliseconds that is corrected: less is not known, since an answer takes its time.
const LEAST_CORRECTION_MS: u64 = 25;

/// Longest sleep before the clock is read again: it may have been corrected.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// A clock that stands still, and those who wait for it to move.
#[derive(Debug)]
pub struct Still {
    now: watch::Sender<i64>,
    waits: watch::Sender<Vec<i64>>,
}

/// Takes a wait away when it is over or given up.
struct Waiting<'a>(&'a Still, i64);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.waits.send_modify(|waits| {
            if let Some(at) = waits.iter().position(|at| *at == self.1) {
                waits.swap_remove(at);
            }
        });
    }
}

impl Clock {
    /// Returns a clock that stands at `ms`.
    pub fn standing_at(ms: i64) -> Clock {
        Clock::Fixed(Arc::new(Still { now: watch::Sender::new(ms), waits: watch::Sender::default() }))
    }

    /// Returns the machine's clock, which can be corrected.
    pub fn correctable() -> Clock {
        Clock::Corrected(Arc::default())
    }

    /// Returns the clock of a machine that is wrong by `ms`, which can be corrected. For tests.
    pub fn wrong_by(ms: i64) -> Clock {
        Clock::Corrected(Arc::new(AtomicI64::new(ms)))
    }

    /// Takes that it was `shared_ms` at the database between the readings `asked_ms` and now of this clock. Returns
    /// the milliseconds by which the clock was changed; 0: it was right, or cannot be corrected.
    pub fn correct(&self, asked_ms: i64, shared_ms: i64) -> i64 {
        let Clock::Corrected(added_ms) = self else { return 0 };
        let now_ms = self.now_ms();
        let by = shared_ms - asked_ms.midpoint(now_ms);
        if by.unsigned_abs() <= LEAST_CORRECTION_MS + now_ms.abs_diff(asked_ms) {
            return 0;
        }
        added_ms.fetch_add(by, Ordering::Relaxed);
        by
    }

    /// Returns the time of a clock that stands still, which is then the database's too; `None` for every other.
    pub fn standing_ms(&self) -> Option<i64> {
        match self {
            Clock::Fixed(still) => Some(*still.now.borrow()),
            Clock::Real | Clock::Corrected(_) => None,
        }
    }

    /// Returns the milliseconds since 1970.
    pub fn now_ms(&self) -> i64 {
        match self {
            Clock::Real => wall_ms(),
            Clock::Corrected(added_ms) => wall_ms() + added_ms.load(Ordering::Relaxed),
            Clock::Fixed(still) => *still.now.borrow(),
        }
    }

    /// Returns the nanoseconds by which the wall clock is ahead of CLOCK_MONOTONIC. It changes when the machine's time
    /// is set, and when the machine sleeps. A fixed clock is ahead by its own time; a correction does not count.
    pub fn ahead_ns(&self) -> i64 {
        match self {
            Clock::Real | Clock::Corrected(_) => {
                let before = monotonic().0;
                let wall = realtime_ns();
                wall as i64 - before.midpoint(monotonic().0) as i64
            }
            Clock::Fixed(_) => self.now_ms() * 1_000_000,
        }
    }

    /// Moves a fixed clock on; a real one moves by itself.
    pub fn advance_ms(&self, by: i64) {
        if let Clock::Fixed(still) = self {
            still.now.send_modify(|now| *now += by);
        }
    }

    /// Completes once it is `at_ms` or later.
    pub async fn until(&self, at_ms: i64) {
        match self {
            Clock::Real | Clock::Corrected(_) => {
                while let left @ 1.. = at_ms - self.now_ms() {
                    tokio::time::sleep(Duration::from_millis(left.unsigned_abs()).min(LONGEST_SLEEP)).await;
                }
            }
            Clock::Fixed(still) => {
                still.waits.send_modify(|waits| waits.push(at_ms));
                let _waiting = Waiting(still, at_ms);
                // The sender lives as long as the clock.
                let _ = still.now.subscribe().wait_for(|now| *now >= at_ms).await;
            }
        }
    }

    /// Waits until somebody waits for a moment at most `within` milliseconds ahead, and moves a fixed clock to the
    /// first such moment. Waits that are over, but not yet polled, do not count. For tests.
    pub async fn advance_to_wait(&self, within: i64) {
        let Clock::Fixed(still) = self else { return };
        let begin = self.now_ms();
        let next = |waits: &[i64]| waits.iter().copied().filter(|at| (begin + 1..=begin + within).contains(at)).min();
        let mut waits = still.waits.subscribe();
        // The sender lives as long as the clock.
        let Ok(waits) = waits.wait_for(|waits| next(waits).is_some()).await else { return };
        let at = next(&waits).unwrap_or(begin);
        drop(waits);
        still.now.send_modify(|now| *now = at.max(*now));
    }
}

#[expect(clippy::disallowed_methods, reason = "this is where the wall clock is read")]
fn wall_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// Returns the time of CLOCK_MONOTONIC, the clock of media threads and of deadlines.
pub fn monotonic() -> Time {
    read_clock(libc::CLOCK_MONOTONIC)
}

/// Does the work and tells how many seconds it took.
pub fn seconds_of<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let begun = monotonic().0;
    let made = work();
    (made, (monotonic().0 - begun) as f64 / 1e9)
}

/// Returns CLOCK_REALTIME in nanoseconds since 1970: the clock of kernel receive timestamps.
pub fn realtime_ns() -> u64 {
    read_clock(libc::CLOCK_REALTIME).0
}

fn read_clock(clock: libc::clockid_t) -> Time {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `at` is a valid timespec that outlives the call; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut at) };
    Time(at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64)
}

/// Returns a random seed of 53 bits.
pub fn random_seed() -> u64 {
    let mut bytes = [0; 8];
    random_bytes(&mut bytes);
    u64::from_be_bytes(bytes) >> 11
}

/// Fills `bytes` from the system's random source.
pub fn random_bytes(bytes: &mut [u8]) {
    OsRng.try_fill_bytes(bytes).expect("the kernel's random source answers on every Linux that boots");
}

/// Returns a new uuid (version 7, RFC 9562 5.7), greater than every one before it in this process (6.2). Rows of one
/// millisecond keep their order, and the indexes of a database grow at their end.
pub fn new_id() -> Uuid {
    Uuid::now_v7()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_wrong_clock_is_corrected_and_a_right_one_stays() {
        for (wrong_ms, expect) in [(300_000, -300_000), (-300_000, 300_000), (0, 0)] {
            let clock = Clock::wrong_by(wrong_ms);
            let (asked, right) = (clock.now_ms(), Clock::Real.now_ms());
            let by = clock.correct(asked, right);
            assert!(by.abs_diff(expect) < 1000, "{by} and not {expect}");
            assert!(clock.now_ms().abs_diff(Clock::Real.now_ms()) < 1000);
        }
        assert_eq!(Clock::Real.correct(0, 300_000), 0);
    }

    #[tokio::test]
    async fn a_wait_that_is_over_and_not_polled_does_not_count() {
        let clock = Clock::standing_at(0);
        let mut over = Box::pin(clock.until(10));
        assert!((&mut over).now_or_never().is_none(), "it waits");
        clock.advance_ms(10);
        tokio::join!(clock.advance_to_wait(10), clock.until(15));
        assert_eq!(clock.now_ms(), 15);
        over.await;
    }
}
