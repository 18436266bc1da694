//! The injected sources of time, identity and randomness. The only file that reads a clock or the system's random source.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use rand_core::{OsRng, TryRngCore};
use ringer_media::time::Time;
use uuid::Uuid;

/// Wall clock, in milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Debug)]
pub enum Clock {
    /// The machine's.
    Real,
    /// Stands still until a test moves it.
    Fixed(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that stands at `ms`.
    pub fn fixed(ms: i64) -> Clock {
        Clock::Fixed(Arc::new(AtomicI64::new(ms)))
    }

    /// Milliseconds since the epoch.
    pub fn now_ms(&self) -> i64 {
        match self {
            Clock::Real => wall_ms(),
            Clock::Fixed(at) => at.load(Ordering::SeqCst),
        }
    }

    /// Moves a fixed clock on; a real one moves by itself.
    pub fn advance_ms(&self, by: i64) {
        if let Clock::Fixed(at) = self {
            at.fetch_add(by, Ordering::SeqCst);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is where the wall clock is read")]
fn wall_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64)
}

/// CLOCK_MONOTONIC, the clock of media threads and of deadlines.
pub fn monotonic() -> Time {
    read(libc::CLOCK_MONOTONIC)
}

/// CLOCK_REALTIME in nanoseconds since the epoch: the clock of kernel receive timestamps.
pub fn realtime_ns() -> u64 {
    read(libc::CLOCK_REALTIME).0
}

fn read(clock: libc::clockid_t) -> Time {
    let mut at = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `at` is a valid timespec that outlives the call; both clocks exist on every Linux.
    unsafe { libc::clock_gettime(clock, &mut at) };
    Time(at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64)
}

/// A random seed of 53 bits.
pub fn random_seed() -> u64 {
    let mut bytes = [0; 8];
    random_bytes(&mut bytes);
    u64::from_be_bytes(bytes) >> 11
}

/// Fills `bytes` from the system's random source.
pub fn random_bytes(bytes: &mut [u8]) {
    OsRng.try_fill_bytes(bytes).expect("the kernel's random source answers on every Linux that boots");
}

/// A new random uuid (version 4).
pub fn new_id() -> Uuid {
    let mut bytes = [0; 16];
    random_bytes(&mut bytes);
    uuid::Builder::from_random_bytes(bytes).into_uuid()
}
