//! State of a conversation by mail between two messages. It lasts days: it is stored with every mail, and whichever
//! engine has its job next goes on with it.

use ringer_base::clock;
use ringer_base::error::{Error, Result};
use ringer_engine::TimelineEntry;
use ringer_engine::dialogue::SavedDialogue;
use ringer_model::error_code::ErrorCode;
use ringer_model::mail::MailDoc;
use ringer_model::result::ResultDoc;
use ringer_model::status::ResultStatus;
use ringer_store::queue::{CallJob, Claimed, TextJob};
use ringer_store::{MailRow, Session};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Conversations;

/// Random bytes of an address.
const TOKEN_BYTES: usize = 12;

/// State of a conversation by mail.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct MailThread {
    /// Random part of its address.
    pub token: String,
    /// Message-IDs of this side's mails, without brackets.
    pub own_ids: Vec<String>,
    /// Message-IDs of all mails in order, without brackets.
    pub ids: Vec<String>,
    /// Subject of the thread; `None`: nobody has written.
    pub subject: Option<String>,
    /// Number of messages of both sides.
    pub messages: u32,
    /// Last mail that was read.
    pub read: i64,
    /// True once this side knows who begins.
    pub begun: bool,
    /// State of the dialogue; `None`: it has not begun.
    pub dialogue: Option<SavedDialogue>,
    /// Questions to the mind so far: the purpose, and the lines that were said before.
    pub thoughts: Vec<(String, usize)>,
    /// Language that the mind was last told to write.
    pub language: Option<String>,
    /// Name of the speaker so far.
    pub speaker: Option<String>,
    /// Events of the conversation so far.
    pub timeline: Vec<TimelineEntry>,
    /// Mail that is to be sent.
    pub outgoing: Option<OutgoingMail>,
    /// Faults of the engine in a row.
    pub faults: u32,
}

/// Mail that is to be sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct OutgoingMail {
    /// Identifier that its Message-ID is made of.
    pub id: Uuid,
    /// Words of the mail.
    pub text: String,
    /// True if no message follows.
    pub ends: bool,
    /// Number of attempts that failed.
    pub failed: usize,
    /// Time of the next attempt, in milliseconds since 1970.
    pub due_ms: i64,
    /// Time at which the relay was given the mail; `None`: it was not.
    pub handed_ms: Option<i64>,
    /// True once the relay has taken it.
    pub is_taken: bool,
    /// Reason why the last attempt failed.
    pub trouble: Option<String>,
}

/// State of a result with the mails that its conversation has not read.
#[derive(Clone, Debug, PartialEq)]
pub struct MailNews {
    /// Status of the result.
    pub status: ResultStatus,
    /// Time of that status, in milliseconds since 1970.
    pub since_ms: i64,
    /// Mails in the order of arrival.
    pub mails: Vec<MailRow>,
    /// True if a request has ended the conversation.
    pub is_ended: bool,
    /// True if the minutes of the organization are used up.
    pub is_spent: bool,
}

impl Conversations {
    /// True if a result is held by mail, with a state that the next engine goes on with.
    pub async fn is_mail_thread(&self, job: &CallJob) -> Result<bool> {
        let mut db = self.store.org(&job.organization).read().await?;
        Ok(db.mail_owner(job.result_id).await?.is_some_and(|owner| owner.attempt == job.attempt))
    }

    /// Returns the state of a result's conversation by mail; a new one where there is none of this attempt.
    pub async fn mail_thread(&self, job: &CallJob) -> Result<MailThread> {
        let mut db = self.store.org(&job.organization).write().await?;
        if let Some(thread) = db.mail_thread(job.result_id, job.attempt).await? {
            return Ok(thread);
        }
        let mut token = [0; TOKEN_BYTES];
        clock::random_bytes(&mut token);
        let thread = MailThread { token: hex::encode(token), ..MailThread::default() };
        db.put_mail_thread(job.result_id, job.attempt, &thread.token, &thread).await?;
        db.commit().await?;
        Ok(thread)
    }

    /// Returns the state of a result, and its mails after the mail `read`.
    pub async fn mail_news(&self, job: &CallJob, read: i64) -> Result<MailNews> {
        let mut db = self.store.org(&job.organization).read().await?;
        news(&mut db, job, read).await
    }

    /// Stores the state of a conversation, with a mail that was sent or refused.
    ///
    /// # Errors
    /// A conflict if another engine has the job by now: that one goes on from what was stored before.
    pub async fn save_mail_thread(
        &self,
        job: &CallJob,
        claimed: &Claimed,
        thread: &MailThread,
        mail: Option<(&MailDoc, Option<String>)>,
    ) -> Result<()> {
        let mut db = self.store.org(&job.organization).write().await?;
        if !db.is_claimed_by(claimed).await? {
            return Err(Error::Conflict("another engine has the job".into()));
        }
        if let Some((doc, raw)) = mail {
            db.add_mail(job.result_id, job.attempt, doc, raw, self.clock.now_ms()).await?;
        }
        db.put_mail_thread(job.result_id, job.attempt, &thread.token, thread).await?;
        db.commit().await
    }

    /// Stores the state of a conversation that waits, and gives its job back until `due_ms`. False: something has come
    /// after the mail `seen`, and nothing is changed.
    ///
    /// # Errors
    /// A conflict as of [`Conversations::save_mail_thread`].
    pub async fn rest_mail_thread(
        &self,
        job: &CallJob,
        claimed: &Claimed,
        thread: &MailThread,
        seen: i64,
        due_ms: i64,
    ) -> Result<bool> {
        let mut db = self.store.org(&job.organization).write().await?;
        let news = news(&mut db, job, seen).await?;
        let is_open = matches!(news.status, ResultStatus::Ready | ResultStatus::Dispatched | ResultStatus::Running);
        if !news.mails.is_empty() || news.is_ended || news.is_spent || !is_open {
            return Ok(false);
        }
        db.put_mail_thread(job.result_id, job.attempt, &thread.token, thread).await?;
        if !db.rest(claimed, due_ms).await? {
            return Err(Error::Conflict("another engine has the job".into()));
        }
        db.commit().await.map(|()| true)
    }

    /// Returns the mails of a result, oldest first; `forget`: their words are removed.
    pub async fn close_mail_thread(&self, job: &CallJob, thread: &MailThread, forget: bool) -> Result<Vec<MailRow>> {
        let mut db = self.store.org(&job.organization).write().await?;
        let kept = MailThread { token: thread.token.clone(), own_ids: thread.own_ids.clone(), ..MailThread::default() };
        db.put_mail_thread(job.result_id, job.attempt, &thread.token, &kept).await?;
        if forget {
            db.forget_mail_words(job.result_id).await?;
        }
        let mails = db.mails_after(job.result_id, job.attempt, 0).await?;
        db.commit().await?;
        Ok(mails)
    }

    /// Asks a running conversation by mail to end. False: the result has none.
    pub(crate) async fn end_mail_thread(&self, organization: &str, result_id: i64) -> Result<bool> {
        let mut db = self.store.org(organization).write().await?;
        let mut row = db.get::<ResultDoc>(result_id).await?;
        let owner = db.mail_owner(result_id).await?;
        let is_held = owner.is_some_and(|owner| owner.attempt == row.doc.body.attempt);
        if !is_held || row.doc.body.status != ResultStatus::Running {
            return Ok(false);
        }
        let now = self.clock.now_ms();
        row.doc.inbox.ended = true;
        db.update(result_id, &row.doc, now, None).await?;
        hasten(&mut db, result_id, row.doc.body.attempt, now).await?;
        db.commit().await.map(|()| true)
    }
}

/// Makes the job of a conversation by mail due now.
pub(crate) async fn hasten(db: &mut Session, result_id: i64, attempt: i64, now_ms: i64) -> Result<()> {
    let organization = db.organization().to_owned();
    db.hasten(&TextJob(CallJob { organization, result_id, attempt }), now_ms).await
}

async fn news(db: &mut Session, job: &CallJob, read: i64) -> Result<MailNews> {
    let doc = db.get::<ResultDoc>(job.result_id).await?.doc;
    Ok(MailNews {
        status: doc.body.status,
        since_ms: doc.body.status_history.last().map_or(0, |change| change.at.0),
        mails: db.mails_after(job.result_id, job.attempt, read).await?,
        is_ended: doc.inbox.ended,
        is_spent: doc.body.error_code == Some(ErrorCode::InsufficientBalance),
    })
}
