//! Signals that ask this process to end: SIGINT, as the keys of a terminal send it, and SIGTERM.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// End that a signal asks for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// SIGINT: the user at a terminal waits.
    AtOnce,
    /// SIGTERM: what runs may come to its end.
    InTime,
}

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
        self.wait_for_kind().await;
    }

    /// Waits for the next of them, and tells which it is.
    pub(crate) async fn wait_for_kind(&mut self) -> Asked {
        tokio::select! {
            _ = self.interrupt.recv() => Asked::AtOnce,
            _ = self.terminate.recv() => Asked::InTime,
        }
    }
}
