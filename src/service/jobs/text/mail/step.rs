//! One step of a conversation by mail.

use std::sync::Arc;

use ringer_base::error::Result;
use ringer_engine::TimelineEntry;
use ringer_engine::dialogue::{Dialogue, DialogueEnd, Heard, Input, Output};
use ringer_human::{MIXED, Mind};
use ringer_judge::Redactor;
use ringer_media::call::{EndReason, Purpose, Thought};
use ringer_model::Object;
use ringer_model::mail::{MailDoc, MailKind};
use ringer_model::status::ResultStatus;
use ringer_provider::messages::MailRoute;
use ringer_store::MailRow;
use ringer_store::events::{Feed, FeedEvent};
use serde_json::json;

use super::super::drive::{compare, think};
use super::super::work::TextWork;
use super::log;
use crate::jobs::conversation::Left;
use crate::{MailNews, MailThread, Obstacle, OutgoingMail, PreparedText};

/// Longest rest of a conversation in which nothing is due, in milliseconds: a day.
const LONGEST_REST_MS: i64 = 86_400_000;

/// A conversation by mail while it goes on.
pub(super) struct Step<'a> {
    pub work: &'a TextWork<'a>,
    pub thread: MailThread,
    pub dialogue: Dialogue,
    pub route: MailRoute,
    /// Status of the result when it was last looked at.
    pub status: ResultStatus,
    mind: Box<dyn Mind>,
    notes: Object,
    warnings: Vec<String>,
    redactor: Option<Redactor>,
    feed: Option<Arc<Feed>>,
    max_messages: u32,
}

impl<'a> Step<'a> {
    /// Takes a conversation up where it was left.
    pub(super) fn new(
        work: &'a TextWork<'a>,
        mut thread: MailThread,
        prepared: PreparedText,
        route: MailRoute,
        redactor: Option<Redactor>,
    ) -> Step<'a> {
        let PreparedText { spec, mut mind, notes, warnings, .. } = prepared;
        let dialogue = match thread.dialogue.take() {
            Some(saved) => Dialogue::resume(spec, saved),
            None => Dialogue::new(spec),
        };
        for (purpose, lines) in &thread.thoughts {
            let history = dialogue.history().iter().take(*lines).cloned().collect();
            mind.recall(&Thought { purpose: purpose_of(purpose), history, unsaid: None });
        }
        thread.language.iter().for_each(|language| mind.speak(language));
        // A step that reaches its end makes good for faults of earlier ones.
        thread.faults = 0;
        let service = &work.workshop.service;
        Step {
            work,
            thread,
            dialogue,
            route,
            status: ResultStatus::Dispatched,
            mind,
            notes,
            warnings,
            redactor,
            feed: service.feed(work.job.result_id),
            max_messages: service.settings().email.max_messages,
        }
    }

    /// Continues until the conversation waits for something, or is over.
    pub(super) async fn run(mut self) -> Result<Left> {
        let clock = self.work.workshop.service.clock().clone();
        let stopping = self.work.stopping;
        loop {
            self.read_news().await?;
            if !self.thread.begun {
                self.dialogue.handle(clock.now_ms(), Input::Begin);
                self.thread.begun = true;
            }
            self.dialogue.handle(clock.now_ms(), Input::Tick);
            let outputs = self.carry_out();
            let end = tokio::select! {
                biased;
                end = outputs => end?,
                () = stopping.cancelled() => return Ok(Left::Waiting),
            };
            if let Some(end) = end {
                return self.finish(end).await.map(|()| Left::Done);
            }
            let now = clock.now_ms();
            if self.thread.outgoing.as_ref().is_some_and(|mail| mail.due_ms <= now) {
                if stopping.is_cancelled() {
                    return Ok(Left::Waiting);
                }
                self.send().await?;
                continue;
            }
            let due = [self.dialogue.due(), self.thread.outgoing.as_ref().map(|mail| mail.due_ms)];
            let due_ms = due.into_iter().flatten().min().unwrap_or(now + LONGEST_REST_MS);
            if due_ms > now && self.rest(due_ms).await? {
                return Ok(Left::Rests);
            }
        }
    }

    /// Stores the state of the conversation, with a mail that was sent or refused.
    pub(super) async fn save(&mut self, mail: Option<(&MailDoc, Option<String>)>) -> Result<()> {
        self.put_dialogue_aside();
        let service = &self.work.workshop.service;
        service.conversations().save_mail_thread(self.work.job, self.work.claimed, &self.thread, mail).await
    }

    /// True if nobody has asked for what is private to be taken out.
    pub(super) fn keeps_raw(&self) -> bool {
        self.redactor.is_none()
    }

    fn put_dialogue_aside(&mut self) {
        if let Some(saved) = self.dialogue.save() {
            self.thread.dialogue = Some(saved);
        }
    }

    async fn rest(&mut self, due_ms: i64) -> Result<bool> {
        self.put_dialogue_aside();
        let conversations = self.work.workshop.service.conversations();
        let (job, claimed) = (self.work.job, self.work.claimed);
        let rests = conversations.rest_mail_thread(job, claimed, &self.thread, self.thread.read, due_ms).await?;
        if rests && self.redactor.is_none() {
            let news = conversations.mail_news(job, 0).await?;
            log::write(&self.work.workshop.service, job.result_id, &news.mails).await;
        }
        Ok(rests)
    }

    /// Tells the dialogue what has come, and who wants it to end.
    async fn read_news(&mut self) -> Result<()> {
        let news = self.hear_news().await?;
        let now = self.work.workshop.service.clock().now_ms();
        if news.is_spent {
            self.dialogue.handle(now, Input::Hangup(EndReason::UsageLimit));
        } else if news.is_ended {
            self.dialogue.handle(now, Input::Hangup(EndReason::ApiHangup));
        } else if !matches!(news.status, ResultStatus::Dispatched | ResultStatus::Running) {
            self.dialogue.handle(now, Input::Hangup(EndReason::Cancelled));
        } else if self.thread.messages >= self.max_messages && self.thread.outgoing.is_none() {
            self.dialogue.handle(now, Input::Hangup(EndReason::MaxTurns));
        }
        Ok(())
    }

    /// Tells the dialogue what has come; returns the rest of the news.
    pub(super) async fn hear_news(&mut self) -> Result<MailNews> {
        let service = &self.work.workshop.service;
        let mut news = service.conversations().mail_news(self.work.job, self.thread.read).await?;
        let now = service.clock().now_ms();
        self.status = news.status;
        for mail in std::mem::take(&mut news.mails) {
            self.thread.read = mail.id;
            self.hear(now, mail);
        }
        Ok(news)
    }

    fn hear(&mut self, now: i64, mail: MailRow) {
        let MailRow { at_ms, doc, .. } = mail;
        let note = |code, why: &str| Input::Noted(code, why.to_owned());
        match doc.kind {
            MailKind::Turn => {
                if doc.unthreaded {
                    self.dialogue.handle(now, note("email_unthreaded", &doc.from));
                }
                for file in &doc.attachments {
                    let words = format!("{} ({}, {} bytes)", file.name, file.kind, file.bytes);
                    self.dialogue.handle(now, note("email_attachment", &words));
                }
                self.thread.ids.push(doc.message_id.clone());
                self.thread.subject = Some(doc.subject);
                self.thread.messages += 1;
                let message_id = Some(doc.message_id);
                let heard = Heard { message_id, text: doc.text, more: false, ends: None };
                // Time in which no engine was there to read it is no silence of the agent.
                self.dialogue.wake(now);
                self.dialogue.handle(now, Input::Heard(at_ms, heard));
            }
            MailKind::Rejected => self.dialogue.handle(now, note("email_sender_rejected", &doc.why)),
            MailKind::Automatic => self.dialogue.handle(now, note("email_automatic", &doc.why)),
            MailKind::Delayed => self.dialogue.handle(now, note("email_delayed", &doc.why)),
            MailKind::Failed => {
                let message = format!("The mail could not be delivered: {}", doc.why);
                self.dialogue.handle(now, Input::NotSent { code: "EMAIL_SEND_FAILED", message });
            }
            MailKind::Late | MailKind::Sent | MailKind::Unsent | MailKind::Unknown(_) => {}
        }
    }

    /// Does what the dialogue asks for; returns its end.
    async fn carry_out(&mut self) -> Result<Option<DialogueEnd>> {
        let clock = self.work.workshop.service.clock().clone();
        while let Some(output) = self.dialogue.poll() {
            let answer = match output {
                Output::Speak(language) => {
                    self.mind.speak(&language);
                    self.thread.language = Some(language);
                    None
                }
                Output::Think(thought) => {
                    let asked = (purpose_name(&thought.purpose).to_owned(), thought.history.len());
                    let mind = std::mem::replace(&mut self.mind, ringer_human::silent());
                    let (mind, answer) = think(mind, thought).await;
                    self.note_speaker(&mind.speaker());
                    self.mind = mind;
                    self.thread.thoughts.push(asked);
                    Some(answer)
                }
                Output::Compare(comparison) => {
                    let mind = std::mem::replace(&mut self.mind, ringer_human::silent());
                    let (mind, answer) = compare(mind, comparison).await;
                    self.mind = mind;
                    Some(answer)
                }
                Output::Send { text, ends } => {
                    let due_ms = clock.now_ms();
                    let mail =
                        OutgoingMail { id: ringer_base::clock::new_id(), text, ends, due_ms, ..Default::default() };
                    self.thread.outgoing = Some(mail);
                    None
                }
                Output::Event(entry) => {
                    self.tell(entry);
                    None
                }
                Output::Ended(end) => return Ok(Some(end)),
            };
            if let Some(answer) = answer {
                self.dialogue.handle(clock.now_ms(), answer);
            }
        }
        Ok(None)
    }

    fn note_speaker(&mut self, now: &str) {
        let known = self.thread.speaker.take();
        let name = match known {
            Some(before) if before != now => MIXED.to_owned(),
            _ => now.to_owned(),
        };
        self.thread.speaker = Some(name);
    }

    fn tell(&mut self, entry: TimelineEntry) {
        if let Some(feed) = &self.feed {
            let mut data = json!(entry);
            if let Some(redactor) = &self.redactor {
                redactor.event(&mut data);
            }
            feed.add(FeedEvent::new(self.work.job.attempt, Some(entry.seq), entry.name(), &data));
        }
        self.thread.timeline.push(entry);
    }

    /// Keeps what the conversation has left, and moves the result on.
    async fn finish(mut self, end: DialogueEnd) -> Result<()> {
        let speaker = self.thread.speaker.take().unwrap_or_else(|| self.mind.speaker());
        self.notes.insert("speaker".to_owned(), speaker.into());
        let timeline = std::mem::take(&mut self.thread.timeline);
        let work = self.work;
        Box::pin(work.finish((end, None), timeline, self.notes, self.warnings)).await?;
        close(work, &self.thread, self.redactor.is_some()).await
    }

    /// Ends a conversation for which there can be no dialogue any more.
    pub(super) async fn end_without_dialogue(work: &TextWork<'_>, mut thread: MailThread, why: Obstacle) -> Result<()> {
        let service = &work.workshop.service;
        let ended_ms = service.clock().now_ms();
        let timeline = std::mem::take(&mut thread.timeline);
        let fault = Some((why.code.as_str().to_owned(), why.message));
        let redactor = service.conversations().redactor(&work.job.organization, work.job.result_id).await?;
        let began_ms = Some(service.conversations().mail_news(work.job, i64::MAX).await?.since_ms);
        let fault = fault.map(|(code, message)| (fault_code(&code), message));
        let end = DialogueEnd { reason: EndReason::Fault, fault, began_ms, ended_ms, other_spoke: true };
        Box::pin(work.finish((end, None), timeline, Object::new(), Vec::new())).await?;
        close(work, &thread, redactor.is_some()).await
    }
}

/// Returns the code of an obstacle that may come up while a conversation is under way.
fn fault_code(code: &str) -> &'static str {
    ["EMAIL_NOT_CONFIGURED", "INVALID_EMAIL_ADDRESS"]
        .into_iter()
        .find(|known| *known == code)
        .unwrap_or("INTERNAL_ERROR")
}

/// Keeps the log of the mails, and no more of their words than may be kept.
async fn close(work: &TextWork<'_>, thread: &MailThread, forget: bool) -> Result<()> {
    let service = &work.workshop.service;
    let mails = service.conversations().close_mail_thread(work.job, thread, forget).await?;
    if !forget {
        log::write(service, work.job.result_id, &mails).await;
    }
    Ok(())
}

fn purpose_name(purpose: &Purpose) -> &'static str {
    match purpose {
        Purpose::Opening => "opening",
        Purpose::GoOn => "go_on",
        Purpose::StillThere => "still_there",
        Purpose::Reply | Purpose::BargeIn | Purpose::Contextual { .. } => "reply",
    }
}

fn purpose_of(name: &str) -> Purpose {
    match name {
        "opening" => Purpose::Opening,
        "go_on" => Purpose::GoOn,
        "still_there" => Purpose::StillThere,
        _ => Purpose::Reply,
    }
}
