//! Digest of a caller's requests: challenges that were answered, and are answered again (RFC 3261 22, RFC 8760).

use crate::auth::Challenged;
use crate::call::{Call, DialogSide};
use crate::endpoint::Endpoint;
use crate::ids::{CallKey, TransactionKey};
use crate::message::Response;
use crate::time::Time;

impl Endpoint {
    /// Sends a request that was challenged in the dialog again with credentials, and returns the new transaction.
    /// `None` when there is nothing to answer with.
    pub(crate) fn signed_again(
        &mut self,
        now: Time,
        key: CallKey,
        tx: &TransactionKey,
        response: &Response,
    ) -> Option<TransactionKey> {
        if !matches!(response.code, 401 | 407) {
            return None;
        }
        let client = self.clients.get(tx)?;
        let (request, to, mut challenged) = (client.request.clone(), client.hop(), client.challenged.clone());
        let Call { side: DialogSide::Caller(caller), dialogs, .. } = self.calls.get_mut(&key)? else { return None };
        if !caller.login.learn(response, &mut challenged) {
            return None;
        }
        let tag = response.headers.to().map(|to| to.tag().to_owned()).unwrap_or_default();
        let fork = dialogs.iter_mut().find(|f| f.dialog.remote_tag == tag)?;
        fork.dialog.local_seq += 1;
        let mut again = request.clone();
        for name in ["Via", "Authorization", "Proxy-Authorization", "User-Agent"] {
            again.headers.remove(name);
        }
        again.headers.set("CSeq", format!("{} {}", fork.dialog.local_seq, request.method));
        caller.login.sign(&mut again, &mut self.ids);
        let tx = self.send_request(now, key, again, to);
        self.note_challenged(&tx, challenged);
        Some(tx)
    }

    /// Remembers which challenges a request that was just sent answers.
    pub(super) fn note_challenged(&mut self, tx: &TransactionKey, challenged: Challenged) {
        if let Some(client) = self.clients.get_mut(tx) {
            client.challenged = challenged;
        }
    }
}
