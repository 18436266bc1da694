//! Text messages that come over SIP: who may send them, and the answer to each. A text is acknowledged once it is kept.

use std::sync::Arc;

use ringer_base::tasks::Tasks;
use ringer_sip::messaging::IncomingText;
use tokio::sync::Semaphore;

use super::lease::{catch_panic, log_failure};
use super::workshop::Workshop;

/// Texts that are taken at the same time.
const AT_ONCE: usize = 16;

/// Takes text messages for as long as calls are taken.
pub(super) async fn serve(workshop: Workshop, tasks: Tasks) {
    let mut texts = workshop.engine.take_texts().await;
    let permits = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(text) = texts.recv().await {
        let permit = permits.clone().acquire_owned().await.expect("the semaphore is never closed");
        let workshop = workshop.clone();
        tasks.spawn("incoming text", async move {
            let key = text.key.clone();
            let code = match catch_panic(take(&workshop, text)).await {
                Ok(code) => code,
                failed => {
                    log_failure("incoming text failed", failed.map(drop));
                    500
                }
            };
            workshop.engine.answer_text(key, code).await;
            drop(permit);
        });
    }
}

/// Takes a text, and returns the status of its answer. Only the trunk that owns the number sends texts to it, and who
/// may call.
async fn take(workshop: &Workshop, text: IncomingText) -> ringer_base::error::Result<u16> {
    let Workshop { service, engine, inbound_allow, .. } = workshop;
    let host = text.source.address.ip();
    let addressed = service.runs().addressed_text(&text.from, &text.headers, [&text.request_uri, &text.to]);
    let is_allowed = !inbound_allow.is_empty() && inbound_allow.allow(host);
    let is_from_trunk = || match &addressed.trunk {
        Some(trunk) => engine.is_at_trunk(trunk, host),
        None => engine.trunk_at(host).is_some(),
    };
    if !is_allowed && !is_from_trunk() {
        tracing::warn!(%host, "text message of a stranger refused");
        return Ok(403);
    }
    // Some senders end the last line, which nobody wrote.
    let words = text.text.trim_end_matches(['\r', '\n']);
    service.runs().take_text(&addressed.from, &addressed.to, words, Some(text.id)).await?;
    Ok(200)
}
