//! Sending of a mail so that it is never sent twice. Before the relay is given the mail, that is stored. An engine that
//! dies before the relay's answer leaves it open whether the mail was taken: it is not sent again, and that is noted.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringer_base::error::Result;
use ringer_engine::dialogue::Input;
use ringer_model::mail::{MailDoc, MailKind};
use ringer_model::status::ResultStatus;
use ringer_provider::mail::{Letter, MailRefusal};
use ringer_provider::messages::{Contact, MailPlace, Message, digest_of};

use super::step::Step;
use crate::OutgoingMail;

const FAILED: &str = "EMAIL_SEND_FAILED";

impl Step<'_> {
    /// Makes one attempt to send the mail that is due.
    pub(super) async fn send(&mut self) -> Result<()> {
        let Some(mail) = self.thread.outgoing.clone() else { return Ok(()) };
        if mail.handed_ms.is_some() {
            return self.settle_left(&mail).await;
        }
        let now = self.now();
        let place = MailPlace { subject: self.thread.subject.clone(), references: self.thread.ids.clone() };
        let message = Message { id: mail.id, text: mail.text.clone(), ends: mail.ends, history: Vec::new() };
        let letter = self.route.letter(&message, &place, now);
        let bytes = match letter.bytes() {
            Ok(bytes) => bytes,
            Err(fault) => return self.give_up(fault.as_str().to_owned()),
        };
        let handover = match self.route.offer(bytes.clone()).await {
            Ok(handover) => handover,
            Err(refusal) => return self.note_refusal(&mail, &letter, &bytes, refusal).await,
        };
        // An answer may come before this side knows that the mail was taken.
        if !self.thread.own_ids.contains(&letter.message_id) {
            self.thread.own_ids.push(letter.message_id.clone());
        }
        self.thread.outgoing = Some(OutgoingMail { handed_ms: Some(now), ..mail.clone() });
        self.save(None).await?;
        match handover.complete().await {
            Ok(answer) => {
                let doc = self.sent_doc(&letter, &bytes, MailKind::Sent, answer);
                self.thread.outgoing = Some(OutgoingMail { handed_ms: Some(now), is_taken: true, ..mail });
                let raw = self.keeps_raw().then(|| STANDARD.encode(&bytes));
                self.save(Some((&doc, raw))).await?;
                self.confirm(now, letter).await
            }
            Err(refusal) if refusal.is_unknown => {
                let doc = self.sent_doc(&letter, &bytes, MailKind::Sent, refusal.message);
                let raw = self.keeps_raw().then(|| STANDARD.encode(&bytes));
                self.thread.outgoing = Some(OutgoingMail { handed_ms: Some(now), is_taken: true, ..mail });
                self.save(Some((&doc, raw))).await?;
                self.note_unconfirmed("the relay did not answer");
                self.confirm(now, letter).await
            }
            Err(refusal) => self.note_refusal(&mail, &letter, &bytes, refusal).await,
        }
    }

    /// Settles a mail that an engine gave to the relay before it stopped.
    async fn settle_left(&mut self, mail: &OutgoingMail) -> Result<()> {
        let place = MailPlace { subject: self.thread.subject.clone(), references: self.thread.ids.clone() };
        let message = Message { id: mail.id, text: mail.text.clone(), ends: mail.ends, history: Vec::new() };
        let at_ms = mail.handed_ms.unwrap_or_default();
        let letter = self.route.letter(&message, &place, at_ms);
        if let (false, Ok(bytes)) = (mail.is_taken, letter.bytes()) {
            let why = "the engine stopped while the relay took the mail";
            let doc = self.sent_doc(&letter, &bytes, MailKind::Sent, format!("not confirmed: {why}"));
            let raw = self.keeps_raw().then(|| STANDARD.encode(&bytes));
            self.thread.outgoing = Some(OutgoingMail { is_taken: true, ..mail.clone() });
            self.save(Some((&doc, raw))).await?;
            self.note_unconfirmed(why);
        }
        self.confirm(at_ms, letter).await
    }

    fn note_unconfirmed(&mut self, why: &str) {
        let now = self.now();
        self.dialogue.handle(now, Input::Noted("email_unconfirmed", format!("{why}: it is not sent again")));
    }

    /// Tells the dialogue that the mail was sent.
    async fn confirm(&mut self, at_ms: i64, letter: Letter) -> Result<()> {
        self.thread.outgoing = None;
        self.thread.messages += 1;
        self.thread.subject = Some(letter.subject);
        self.thread.ids.push(letter.message_id.clone());
        // An answer that overtook the relay's is known before it: it stands behind this mail.
        self.hear_news().await?;
        let now = self.now();
        let message_id = letter.message_id;
        self.dialogue.handle(now, Input::Sent { at_ms, message_id, is_answered: false });
        if self.status == ResultStatus::Dispatched {
            let began_ms = self.dialogue.began_ms().unwrap_or(at_ms);
            let job = self.work.job;
            let conversations = self.work.workshop.service.conversations();
            conversations.connect(&job.organization, job.result_id, ResultStatus::Dispatched, began_ms).await?;
        }
        Ok(())
    }

    /// Notes that the mail was not taken; it is tried again where that may help.
    async fn note_refusal(
        &mut self,
        mail: &OutgoingMail,
        letter: &Letter,
        bytes: &[u8],
        refusal: MailRefusal,
    ) -> Result<()> {
        tracing::info!(result_id = self.work.job.result_id, failed = mail.failed + 1, "a mail was not taken");
        let doc = self.sent_doc(letter, bytes, MailKind::Unsent, refusal.message.clone());
        let waits = Contact::Mail(Box::new(self.route.clone())).waits_ms();
        let wait = waits.get(mail.failed).filter(|_| !refusal.is_permanent);
        let now = self.now();
        let Some(wait) = wait else {
            self.thread.outgoing = None;
            let (conversations, mail) = (self.work.workshop.service.conversations(), Some((&doc, None)));
            conversations.save_mail_thread(self.work.job, self.work.claimed, &self.thread, mail).await?;
            return self.give_up(refusal.message);
        };
        self.thread.outgoing = Some(OutgoingMail {
            failed: mail.failed + 1,
            due_ms: now + wait,
            handed_ms: None,
            trouble: Some(refusal.message.clone()),
            ..mail.clone()
        });
        self.dialogue.handle(now, Input::Troubled(Some((FAILED, refusal.message))));
        self.save(Some((&doc, None))).await
    }

    fn give_up(&mut self, message: String) -> Result<()> {
        self.thread.outgoing = None;
        let now = self.now();
        self.dialogue.handle(now, Input::NotSent { code: FAILED, message });
        Ok(())
    }

    fn sent_doc(&self, letter: &Letter, bytes: &[u8], kind: MailKind, why: String) -> MailDoc {
        MailDoc {
            kind,
            from: letter.from.address.clone(),
            envelope_from: letter.from.address.clone(),
            to: letter.to.address.clone(),
            subject: letter.subject.clone(),
            message_id: letter.message_id.clone(),
            references: letter.references.clone(),
            text: letter.text.clone(),
            bytes: bytes.len() as u64,
            sha256: digest_of(bytes),
            why,
            ..MailDoc::default()
        }
    }

    fn now(&self) -> i64 {
        self.work.workshop.service.clock().now_ms()
    }
}
