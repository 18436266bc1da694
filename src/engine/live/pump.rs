//! The way of a media thread's messages to the tasks of its calls.

use std::pin::pin;
use std::sync::{Arc, Weak};

use rtrb::Consumer;
use tokio::io::unix::AsyncFd;
use tokio::sync::mpsc;

use crate::services::CallServices;
use crate::shard::FromShard;
use crate::wake::Wake;

/// Hands messages of a media thread to the tasks of its calls, until the engine stops or nobody holds it any more. The
/// thread rings `wake` when it ends.
pub(super) async fn pump(
    services: Weak<CallServices>,
    stopping: impl Future<Output = ()>,
    wake: AsyncFd<Arc<Wake>>,
    mut messages: Consumer<FromShard>,
) {
    let mut stopping = pin!(stopping);
    loop {
        tokio::select! {
            ready = wake.readable() => {
                let Ok(mut ready) = ready else { return };
                wake.get_ref().clear();
                ready.clear_ready();
            }
            () = &mut stopping => return,
        }
        let Some(services) = services.upgrade() else { return };
        while let Ok(message) = messages.pop() {
            services.route(message);
        }
    }
}

impl CallServices {
    fn route(&self, message: FromShard) {
        let no = match &message {
            FromShard::Control(no, _)
            | FromShard::Effect(no, ..)
            | FromShard::Ears(no, ..)
            | FromShard::Event(no, _)
            | FromShard::Frames(no)
            | FromShard::Handshakes(no)
            | FromShard::Stranger(no, _)
            | FromShard::Ended(no, _) => *no,
            // Dropping the call closes its sockets and rings, here and not on the media thread.
            FromShard::Gone(_) => return,
        };
        let Some(task) = self.calls.lock().get(&no).cloned() else { return };
        if let Err(mpsc::error::TrySendError::Full(_)) = task.try_send(message) {
            tracing::error!(call = no.0, "the queue of the call's task is full; a message was dropped");
        }
    }
}
