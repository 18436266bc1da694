//! Waiting for absolute deadlines on a thread.

use ringer_media::time::Time;

/// Sleeps until `deadline` of CLOCK_MONOTONIC; returns at once when it has passed.
pub fn sleep_until(deadline: Time) {
    let at = libc::timespec {
        tv_sec: (deadline.0 / 1_000_000_000) as libc::time_t,
        tv_nsec: (deadline.0 % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: `at` is a valid timespec that outlives the call; an absolute sleep needs no remainder. A signal only ends
    // it early, and then the same deadline is slept for again.
    unsafe {
        while libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &at, std::ptr::null_mut())
            == libc::EINTR
        {}
    }
}

/// Real-time priority of media threads (sched(7)).
pub const MEDIA_PRIORITY: i32 = 10;
/// Real-time priority of threads that carry messages and frames of channels.
pub const CHANNEL_PRIORITY: i32 = 5;

/// Gives this thread a timer slack of 1 ns, and real-time scheduling where the machine allows it; a refusal changes
/// nothing.
pub fn prefer_timing(priority: i32) {
    // SAFETY: both calls take plain values and concern this thread only.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong, 0, 0, 0);
        let param = libc::sched_param { sched_priority: priority };
        libc::sched_setscheduler(0, libc::SCHED_FIFO, &param);
    }
}
