//! The tasks of channels whose audio passes through sockets of the runtime: they run on threads of their own with
//! real-time scheduling, below the media threads and before everything else.

use std::future::Future;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use ringer_base::tasks::Tasks;
use tokio::runtime::{Builder, Handle, Runtime};

use super::pace::{CHANNEL_PRIORITY, prefer_timing};

/// Most threads for channels.
const MOST_THREADS: usize = 2;

/// The runtime of channels, for all engines of the process; `None` where the machine has no thread for it.
static RUNTIME: LazyLock<Option<Runtime>> = LazyLock::new(|| {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    let started = AtomicUsize::new(0);
    let runtime = Builder::new_multi_thread()
        .worker_threads(threads)
        .thread_name("channels")
        .enable_all()
        // Threads for blocking work start after the workers, and are left as they are.
        .on_thread_start(move || {
            if started.fetch_add(1, Ordering::Relaxed) < threads {
                prefer_timing(CHANNEL_PRIORITY);
            }
        })
        .build();
    runtime.inspect_err(|error| tracing::warn!(%error, "the threads for channels could not be started")).ok()
});

/// Returns the runtime of channels, or the one that the caller runs on.
fn runtime() -> Handle {
    RUNTIME.as_ref().map_or_else(Handle::current, |runtime| runtime.handle().clone())
}

/// Does `work` as one of the runtime's threads: what it registers is woken by them.
pub(super) fn enter<T>(work: impl FnOnce() -> T) -> T {
    let runtime = runtime();
    let _entered = runtime.enter();
    work()
}

/// Starts a task of a channel.
pub(super) fn spawn<F>(tasks: &Tasks, name: &'static str, future: F)
where
    F: Future<Output = ()> + Send + 'static,
{
    tasks.spawn_on(&runtime(), name, future);
}
