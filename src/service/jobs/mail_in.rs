//! Mail that comes in, from the listener and from the mailbox: taken by the service, answered as that tells.

use async_trait::async_trait;
use ringer_transport::mail::{Arrival, Postbox, Stored};

use super::lease::catch_panic;
use crate::{MailTaken, Service};

/// Postbox of the conversations.
pub(super) struct ConversationPostbox(pub Service);

#[async_trait]
impl Postbox for ConversationPostbox {
    async fn knows(&self, address: &str) -> Option<bool> {
        let known = catch_panic(self.0.runs().knows_mail_address(address)).await;
        known.inspect_err(|error| tracing::error!(%error, "failed to look up a mail address")).ok()
    }

    async fn store(&self, arrival: Arrival) -> Stored {
        match catch_panic(Box::pin(self.0.runs().take_mail(arrival))).await {
            Ok(MailTaken::Kept) => Stored::Kept,
            Ok(MailTaken::Refused(why)) => Stored::Refused(why),
            Err(error) => {
                tracing::error!(%error, "failed to store a mail");
                Stored::Later
            }
        }
    }
}
