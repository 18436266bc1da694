//! The only place that starts tasks: every task has a name, belongs to a group, and its end is waited for at shutdown.
//! And what steps back behind calls: threads and programs of lower priority.

use std::future::Future;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

/// Runs the calling thread, and programs that it starts, only when nothing else wants the processor (SCHED_IDLE).
/// Whatever wakes up takes the processor from it at once, unlike from a thread of low priority. Safe between fork and
/// exec.
pub fn step_back() {
    // SAFETY: a plain system call; pid = 0 is this thread, and all fields of the parameter are numbers. A refusal
    // leaves the thread as it was.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &std::mem::zeroed()) };
}

/// Does `work` on a thread of its own behind all calls.
///
/// # Errors
/// There is no thread, or `work` panicked.
pub async fn behind_calls<T: Send + 'static>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let (done, result) = tokio::sync::oneshot::channel();
    let thread = std::thread::Builder::new().name(name.into()).spawn(move || {
        step_back();
        let _ = done.send(work());
    });
    thread.map_err(|error| format!("no thread for {name}: {error}"))?;
    result.await.map_err(|_| format!("{name} panicked"))
}

/// Carries `future` out to its end, also when whoever waits for it goes away; what it gives is then dropped.
///
/// # Errors
/// It panicked, or the program ends.
pub async fn to_its_end<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> Result<T, String> {
    #[expect(clippy::disallowed_methods, reason = "somebody waits for it, or nobody needs what it gives")]
    let begun = tokio::spawn(future.in_current_span());
    begun.await.map_err(|error| error.to_string())
}

/// A group of tasks with one stop signal.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// Returns an empty group.
    pub fn new() -> Tasks {
        Tasks::default()
    }

    /// Starts `future`, within the span of the log that is open now. It should end soon after [`Tasks::stopping`].
    pub fn spawn<F>(&self, name: &'static str, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        tracing::trace!(task = name, "start");
        self.tracker.spawn(future.in_current_span());
    }

    /// Starts `future` on the threads of `runtime`. It should end soon after [`Tasks::stopping`].
    pub fn spawn_on<F>(&self, runtime: &Handle, name: &'static str, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        tracing::trace!(task = name, "start");
        self.tracker.spawn_on(future.in_current_span(), runtime);
    }

    /// Starts `future` and drops it when the group stops.
    pub fn spawn_until_stop<F>(&self, name: &'static str, future: F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let stop = self.stop.clone();
        self.spawn(name, async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = future => {}
            }
        });
    }

    /// Completes when the group is asked to stop.
    pub async fn stopping(&self) {
        self.stop.cancelled().await;
    }

    /// True once the group was asked to stop.
    pub fn is_stopping(&self) -> bool {
        self.stop.is_cancelled()
    }

    /// Asks all tasks to stop and waits for their ends.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}
