//! One request of an assistant: with what it asks the API, what it may do, and the words on its progress.

use rmcp::RoleServer;
use rmcp::model::{InputResponses, ProgressNotificationParam};
use rmcp::service::RequestContext;

use crate::cli::run::client::Client;

/// Request of an assistant, with the way back to who asks.
pub(super) type AssistantRequest = RequestContext<RoleServer>;

/// A tool call: client of the API, what is allowed, and who asks.
pub(super) struct Call<'c> {
    /// Client of the API, with the assistant's key.
    pub client: Client,
    /// True: telephone numbers may be called.
    pub allow_trunks: bool,
    /// The request that the call came by.
    pub context: &'c AssistantRequest,
    /// Answers of a person to what was asked in an earlier round.
    pub answers: InputResponses,
}

impl Call<'_> {
    /// Tells the assistant how far the work is, where it wants to know.
    pub(super) async fn progress(&self, done: f64, total: usize, message: String) {
        let Some(token) = self.context.meta.get_progress_token() else { return };
        let told = ProgressNotificationParam::new(token, done).with_total(total as f64).with_message(message);
        // One that has left is told nothing; its request ends by itself.
        let _ = self.context.peer.notify_progress(told).await;
    }
}
