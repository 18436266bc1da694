//! Tells webhooks what happened: claims events of the outbox and delivers them, several at the same time.

use std::sync::Arc;
use std::time::Duration;

use ringer_base::tasks::Tasks;
use ringer_store::queue::outbox::Outgoing;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::lease::{LOOK_EVERY, log_failure};
use crate::Service;

/// Deliveries at the same time, of all webhooks together.
const AT_ONCE: usize = 64;

/// Delivers until `stop`; what is under way then is finished among `tasks`.
pub async fn run(service: Service, tasks: Tasks, stop: CancellationToken) {
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        let next = async {
            let permit = permits.clone().acquire_owned().await.expect("the semaphore is never closed");
            (permit, claim(&service).await)
        };
        let (permit, outgoing) = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            next = next => next,
        };
        let service = service.clone();
        tasks.spawn("webhook delivery", async move {
            // When this fails, the lease ends and the event is claimed again.
            log_failure(
                "failed to store the outcome of a webhook delivery",
                service.watching().deliver(outgoing).await,
            );
            drop(permit);
        });
    }
}

/// Waits for an event and claims it.
async fn claim(service: &Service) -> Outgoing {
    let queue = service.queue();
    let mut changes = queue.watch();
    loop {
        changes.mark_unchanged();
        match queue.claim_event().await {
            Ok(Some(outgoing)) => return outgoing,
            Ok(None) => {}
            Err(error) => tracing::error!(%error, "failed to claim webhook deliveries"),
        }
        let due = queue.next_event_ms().await.ok().flatten();
        let wait = due.map_or(LOOK_EVERY, |due| Duration::from_millis((due - service.clock().now_ms()).max(1) as u64));
        let _ = tokio::time::timeout(wait.min(LOOK_EVERY), changes.changed()).await;
    }
}
