//! Signals that ask this process to end: SIGINT, as the keys of a terminal send it, and SIGTERM.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Both signals, from the moment when it is made; what came in between is not lost.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
}

impl Signals {
    /// Begins to take the signals, which then no longer end the process by themselves.
    ///
    /// # Errors
    /// For a person.
    pub(crate) fn new() -> Result<Signals, String> {
        let of = |kind| signal(kind).map_err(|error| format!("signals: {error}"));
        Ok(Signals { interrupt: of(SignalKind::interrupt())?, terminate: of(SignalKind::terminate())? })
    }

    /// Waits for the next of them.
    pub(crate) async fn wait(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
