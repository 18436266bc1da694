//! The mails of a conversation as data: who wrote to whom, the new words, and what was quoted or attached.

use ringer_base::error::{Error, Result};
use ringer_model::mail::{Attachment, MailDoc, MailKind};
use ringer_model::result::ResultDoc;
use ringer_model::time::Timestamp;
use ringer_store::MailRow;
use schemars::JsonSchema;
use serde::Serialize;

use super::Runs;
use super::mails::mail_file;
use crate::Caller;
use crate::conversation::artifacts::is_hidden;

/// The mails of a conversation, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MailList {
    /// Id of the result.
    pub simulation_result_id: i64,
    /// Mails of both sides in the order of arrival and sending.
    pub mails: Vec<MailOut>,
}

/// One mail of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MailOut {
    /// Time of arrival, or of the attempt to send it.
    pub at: Timestamp,
    /// Direction as this side sees it: sent or received.
    pub direction: &'static str,
    /// Part that it takes in the conversation. Only mails of kind turn and sent are messages of it.
    pub kind: MailKind,
    /// Address of the header From; empty: it has none that can be read.
    pub from: String,
    /// Sender of the envelope; empty: the null sender.
    pub envelope_from: String,
    /// Recipient of the envelope.
    pub to: String,
    /// Subject in one line.
    pub subject: String,
    /// Message-ID of the mail, without brackets.
    pub message_id: String,
    /// Ids of In-Reply-To and References, oldest first.
    pub references: Vec<String>,
    /// New words of the mail, without quoted history and signature.
    pub text: String,
    /// Quoted history and signature, as text; empty: there is none.
    pub quoted: String,
    /// Files attached to the mail.
    pub attachments: Vec<Attachment>,
    /// Size of the whole mail in bytes.
    pub bytes: u64,
    /// SHA-256 of the whole mail, as hexadecimal digits.
    pub sha256: String,
    /// Reason for the part that it takes, or the relay's answer to a sent mail; empty: there is none.
    pub why: String,
    /// Name of the raw mail in the evidence; null: it is not kept.
    pub file: Option<String>,
}

impl MailOut {
    fn new(at_ms: i64, doc: MailDoc, file: Option<String>) -> MailOut {
        MailOut {
            at: Timestamp(at_ms),
            direction: if matches!(doc.kind, MailKind::Sent | MailKind::Unsent) { "sent" } else { "received" },
            kind: doc.kind,
            from: doc.from,
            envelope_from: doc.envelope_from,
            to: doc.to,
            subject: doc.subject,
            message_id: doc.message_id,
            references: doc.references,
            text: doc.text,
            quoted: doc.quoted,
            attachments: doc.attachments,
            bytes: doc.bytes,
            sha256: doc.sha256,
            why: doc.why,
            file,
        }
    }
}

impl Runs {
    /// Returns the mails of a conversation; while it goes on, those so far.
    ///
    /// # Errors
    /// [`Error::NotAvailable`] where the conversation is not by mail, or what is private is still in it.
    pub async fn mail_list(&self, caller: &Caller, result_id: i64) -> Result<MailList> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        let attempt = row.doc.body.attempt;
        let is_its = db.mail_owner(result_id).await?.is_some_and(|owner| owner.attempt == attempt);
        if !is_its || is_hidden(&row.doc, caller) {
            return Err(Error::NotAvailable("Mails not available".into()));
        }
        let kept = db.raw_mails(result_id).await?;
        let rows = db.mails_after(result_id, attempt, 0).await?;
        let file = |id: i64| kept.iter().position(|kept| *kept == id).map(mail_file);
        let mails = rows.into_iter().map(|MailRow { id, at_ms, doc }| MailOut::new(at_ms, doc, file(id)));
        Ok(MailList { simulation_result_id: result_id, mails: mails.collect() })
    }
}
