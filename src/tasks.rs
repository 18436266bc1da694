//! The only place that starts tasks: every task has a name, belongs to a group, and its end is waited for at shutdown.

use std::future::Future;

use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

/// A group of tasks with one stop signal.
#[derive(Clone, Debug, Default)]
pub struct Tasks {
    tracker: TaskTracker,
    stop: CancellationToken,
}

impl Tasks {
    /// An empty group.
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
