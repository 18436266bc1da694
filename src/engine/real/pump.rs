//! The way of a media thread's messages to the drivers of its calls.

use std::sync::Arc;

use rtrb::Consumer;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

use super::Inner;
use crate::engine::shard::FromShard;
use crate::engine::wake::Wake;

/// Hands what a media thread tells to the drivers of its calls, up to the end of the engine.
pub(super) async fn pump(inner: Arc<Inner>, wake: AsyncFd<Arc<Wake>>, mut messages: Consumer<FromShard>) {
    loop {
        tokio::select! {
            ready = wake.readable() => {
                let Ok(mut ready) = ready else { return };
                wake.get_ref().clear();
                ready.clear_ready();
            }
            () = inner.tasks.stopping() => return,
        }
        while let Ok(message) = messages.pop() {
            inner.route(message);
        }
    }
}

impl Inner {
    fn route(&self, message: FromShard) {
        let no = match &message {
            FromShard::Control(no, _)
            | FromShard::Effect(no, ..)
            | FromShard::Ears(no, _)
            | FromShard::Event(no, _)
            | FromShard::Frames(no)
            | FromShard::Handshakes(no)
            | FromShard::Moved(no, _)
            | FromShard::Ended(no, _) => *no,
            // Dropping the call closes its sockets and rings, here and not on the media thread.
            FromShard::Gone(_) => return,
        };
        let Some(driver) = self.calls.lock().get(&no).cloned() else { return };
        if let Err(mpsc::error::TrySendError::Full(_)) = driver.try_send(message) {
            tracing::error!(call = no.0, "the call's driver does not keep up; a message was lost");
        }
    }
}
