//! Conversations by mail: their state between two messages, and the mails themselves. What a conversation does with
//! them is decided elsewhere.

use ringer_base::error::{Error, Result};
use ringer_model::mail::MailDoc;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::queue::{Claimed, Job};
use super::{Session, db, from_text, to_text};

/// Conversation that an address belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailOwner {
    /// Organization of the result.
    pub organization: String,
    /// Number of the attempt that the address was made for.
    pub attempt: i64,
    /// Random part of the address.
    pub token: String,
}

/// Mail of a conversation in the order of arrival.
#[derive(Clone, Debug, PartialEq)]
pub struct MailRow {
    /// Position among all mails.
    pub id: i64,
    /// Time of arrival or of sending, in milliseconds since 1970.
    pub at_ms: i64,
    /// Mail without its raw text.
    pub doc: MailDoc,
}

impl Session {
    /// Returns the conversation by mail of a result of any organization; `None`: it has none.
    pub async fn mail_owner(&mut self, result_id: i64) -> Result<Option<MailOwner>> {
        let sql = "SELECT org_id, attempt, token FROM mail_threads WHERE result_id = $1";
        let Some(row) = self.row(sql, &[result_id.into()]).await? else { return Ok(None) };
        let read = |row: &db::Row| -> Result<MailOwner, sqlx::Error> {
            Ok(MailOwner { organization: row.try_get(0)?, attempt: row.try_get(1)?, token: row.try_get(2)? })
        };
        read(&row).map(Some).map_err(Error::internal)
    }

    /// Stores the state of a conversation by mail, in place of an earlier one.
    pub async fn put_mail_thread<T: Serialize>(
        &mut self,
        result_id: i64,
        attempt: i64,
        token: &str,
        thread: &T,
    ) -> Result<()> {
        let sql = "INSERT INTO mail_threads (result_id, org_id, attempt, token, doc) VALUES ($1, $2, $3, $4, $5) \
                   ON CONFLICT (result_id) DO UPDATE SET attempt = $3, token = $4, doc = $5";
        let organization = self.organization().to_owned();
        let cells = [result_id.into(), organization.into(), attempt.into(), token.into(), to_text(thread)?.into()];
        self.execute(sql, &cells).await.map(drop)
    }

    /// Returns the state of a conversation by mail; `None`: there is none of this attempt.
    pub async fn mail_thread<T: DeserializeOwned>(&mut self, result_id: i64, attempt: i64) -> Result<Option<T>> {
        let sql = "SELECT doc FROM mail_threads WHERE result_id = $1 AND org_id = $2 AND attempt = $3";
        let cells = [result_id.into(), self.organization().into(), attempt.into()];
        let Some(row) = self.row(sql, &cells).await? else { return Ok(None) };
        let doc: String = row.try_get(0).map_err(Error::internal)?;
        from_text(&doc).map(Some)
    }

    /// Stores a mail. `raw`: its raw text, as base64.
    pub async fn add_mail(
        &mut self,
        result_id: i64,
        attempt: i64,
        doc: &MailDoc,
        raw: Option<String>,
        at_ms: i64,
    ) -> Result<()> {
        let sql = "INSERT INTO mails (org_id, result_id, attempt, message_id, doc, raw, at_ms) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7)";
        let organization = self.organization().to_owned();
        let cells = [
            organization.into(),
            result_id.into(),
            attempt.into(),
            doc.message_id.as_str().into(),
            to_text(doc)?.into(),
            raw.into(),
            at_ms.into(),
        ];
        self.execute(sql, &cells).await.map(drop)
    }

    /// True if a mail of this Message-ID is stored with a conversation.
    pub async fn knows_mail(&mut self, result_id: i64, message_id: &str) -> Result<bool> {
        let sql = "SELECT 1 FROM mails WHERE result_id = $1 AND message_id = $2 LIMIT 1";
        Ok(self.row(sql, &[result_id.into(), message_id.into()]).await?.is_some())
    }

    /// Returns the number of mails that are stored with a conversation.
    pub async fn count_mails(&mut self, result_id: i64) -> Result<i64> {
        self.number("SELECT COUNT(*) FROM mails WHERE result_id = $1", &[result_id.into()]).await
    }

    /// Returns the mails of an attempt that were stored after the mail `after`, oldest first.
    pub async fn mails_after(&mut self, result_id: i64, attempt: i64, after: i64) -> Result<Vec<MailRow>> {
        let sql = "SELECT id, at_ms, doc FROM mails WHERE result_id = $1 AND org_id = $2 AND attempt = $3 AND id > $4 \
                   ORDER BY id";
        let cells = [result_id.into(), self.organization().into(), attempt.into(), after.into()];
        self.rows(sql, &cells).await?.iter().map(read_mail).collect()
    }

    /// Returns the mails of a result whose raw text is kept, oldest first.
    pub async fn raw_mails(&mut self, result_id: i64) -> Result<Vec<i64>> {
        let sql = "SELECT id FROM mails WHERE result_id = $1 AND org_id = $2 AND raw IS NOT NULL ORDER BY id";
        let cells = [result_id.into(), self.organization().into()];
        self.numbers(sql, &cells).await
    }

    /// Returns the raw text of a mail, as base64; `None`: it is not kept.
    pub async fn raw_mail(&mut self, id: i64) -> Result<Option<String>> {
        let sql = "SELECT raw FROM mails WHERE id = $1 AND org_id = $2";
        let row = self.row(sql, &[id.into(), self.organization().into()]).await?;
        row.map_or(Ok(None), |row| row.try_get(0).map_err(Error::internal))
    }

    /// Removes the words of a conversation's mails, and its state; sizes and hashes stay.
    pub async fn forget_mail_words(&mut self, result_id: i64) -> Result<()> {
        let organization = self.organization().to_owned();
        let sql = "SELECT id, at_ms, doc FROM mails WHERE result_id = $1 AND org_id = $2 ORDER BY id";
        let rows = self.rows(sql, &[result_id.into(), organization.as_str().into()]).await?;
        for row in rows {
            let MailRow { id, doc, .. } = read_mail(&row)?;
            let doc = MailDoc {
                from: String::new(),
                envelope_from: String::new(),
                subject: String::new(),
                text: String::new(),
                quoted: String::new(),
                attachments: Vec::new(),
                ..doc
            };
            let cells = [id.into(), to_text(&doc)?.into()];
            self.execute("UPDATE mails SET doc = $2, raw = NULL WHERE id = $1", &cells).await?;
        }
        let sql = "UPDATE mail_threads SET doc = '{}' WHERE result_id = $1 AND org_id = $2";
        self.execute(sql, &[result_id.into(), organization.into()]).await.map(drop)
    }

    /// Makes a job due now, or one that was stored in its place (its key and more behind a colon), unless a worker has
    /// it: that one looks again before it lets go.
    pub async fn hasten<J: Job>(&mut self, job: &J, now_ms: i64) -> Result<()> {
        let sql = "UPDATE jobs SET due_ms = $2 WHERE (job_key = $1 OR (job_key > $3 AND job_key < $4)) \
                   AND lease_ms IS NULL AND due_ms > $2";
        let key = job.key();
        let cells = [key.as_str().into(), now_ms.into(), format!("{key}:").into(), format!("{key};").into()];
        self.execute(sql, &cells).await?;
        self.note_due(J::NAME);
        Ok(())
    }

    /// True if the worker that claimed a job still has it: no other has claimed it since.
    pub async fn is_claimed_by(&mut self, claimed: &Claimed) -> Result<bool> {
        let sql = "SELECT 1 FROM jobs WHERE id = $1 AND attempts = $2";
        Ok(self.row(sql, &[claimed.id.into(), claimed.attempts.into()]).await?.is_some())
    }

    /// Returns a claimed job to the queue until `due_ms`, in this transaction. False: another worker has it.
    pub async fn rest(&mut self, claimed: &Claimed, due_ms: i64) -> Result<bool> {
        let sql = "UPDATE jobs SET lease_ms = NULL, due_ms = $3 WHERE id = $1 AND attempts = $2";
        let changed = self.execute(sql, &[claimed.id.into(), claimed.attempts.into(), due_ms.into()]).await?;
        self.note_due(&claimed.kind);
        Ok(changed > 0)
    }
}

fn read_mail(row: &db::Row) -> Result<MailRow> {
    let read =
        || -> Result<(i64, i64, String), sqlx::Error> { Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?)) };
    let (id, at_ms, doc) = read().map_err(Error::internal)?;
    Ok(MailRow { id, at_ms, doc: from_text(&doc)? })
}
