//! One conversation under way: what it asks for is carried out, and what comes is told to it.

use std::future::pending;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use ringer_base::clock;
use ringer_base::clock::Clock;
use ringer_base::error::Result;
use ringer_engine::TimelineEntry;
use ringer_engine::dialogue::{Dialogue, DialogueEnd, Heard, Input, Output};
use ringer_human::{Mind, whole_move};
use ringer_judge::Redactor;
use ringer_media::call::{Comparison, EndReason, Thought, ToolCall};
use ringer_model::Object;
use ringer_model::status::ResultStatus;
use ringer_provider::messages::{Contact, Message, Reply, Trouble};
use ringer_store::events::{Feed, FeedEvent};
use serde_json::json;
use tokio::sync::{mpsc, watch};

use super::log::Log;
use super::work::{TextWork, wait_for_change};
use crate::PreparedText;

/// Troubles of attempts that wait to be told: more than one message has.
const TROUBLES: usize = 8;

/// Parts of one move that wait to be joined.
const PARTS: usize = 64;

/// The mind back with what it was asked for.
type Thinking = BoxFuture<'static, (Box<dyn Mind>, Input)>;
/// Start of the successful attempt, id of the message, and the reply.
type Sending = BoxFuture<'static, Result<(i64, String, Reply), Trouble>>;

pub(super) struct Drive<'a> {
    work: &'a TextWork<'a>,
    dialogue: Dialogue,
    contact: Contact,
    mind: Option<Box<dyn Mind>>,
    /// Name of the last speaker, as the mind gave it: at the end the mind may still be busy.
    speaker: String,
    notes: Object,
    warnings: Vec<String>,
    redactor: Option<Redactor>,
    feed: Option<Arc<Feed>>,
    changes: Option<watch::Receiver<u64>>,
    hangups: mpsc::Receiver<EndReason>,
    timeline: Vec<TimelineEntry>,
    log: Log,
    thinking: Option<Thinking>,
    sending: Option<Sending>,
    /// Troubles of attempts after which another one follows.
    troubles: (mpsc::Sender<Trouble>, mpsc::Receiver<Trouble>),
    running: bool,
    messages: usize,
    calls: usize,
    /// SIP status with which the last message was refused.
    sip_code: Option<u16>,
}

impl<'a> Drive<'a> {
    pub(super) fn new(
        work: &'a TextWork<'a>,
        prepared: PreparedText,
        redactor: Option<Redactor>,
        feed: Option<Arc<Feed>>,
        changes: Option<watch::Receiver<u64>>,
        hangups: mpsc::Receiver<EndReason>,
    ) -> Drive<'a> {
        let PreparedText { spec, contact, mind, notes, warnings, .. } = prepared;
        let speaker = mind.speaker();
        Drive {
            work,
            speaker,
            dialogue: Dialogue::new(spec),
            contact,
            mind: Some(mind),
            notes,
            warnings,
            redactor,
            feed,
            changes,
            hangups,
            timeline: Vec::new(),
            log: Log::default(),
            thinking: None,
            sending: None,
            troubles: mpsc::channel(TROUBLES),
            running: false,
            messages: 0,
            calls: 0,
            sip_code: None,
        }
    }

    /// Goes on until it is over, and keeps what it has left.
    pub(super) async fn run(mut self) -> Result<()> {
        let (service, job) = (&self.work.workshop.service, self.work.job);
        let clock = service.clock().clone();
        // The hash of a short text tells what it is to whoever guesses.
        if self.redactor.is_none() {
            self.log = Log::begin(&service.settings().result_folder(job.result_id)).await;
        }
        self.read_news().await?;
        self.dialogue.handle(clock.now_ms(), Input::Begin);
        loop {
            if let Some(end) = self.carry_out().await? {
                self.notes.insert("speaker".to_owned(), self.speaker.into());
                return Box::pin(self.work.finish((end, self.sip_code), self.timeline, self.notes, self.warnings))
                    .await;
            }
            let due = self.dialogue.due();
            let input = tokio::select! {
                biased;
                reason = self.hangups.recv() => Some(Input::Hangup(reason.unwrap_or(EndReason::Fault))),
                () = self.work.stopping.cancelled() => Some(Input::Hangup(EndReason::Shutdown)),
                (mind, answer) = of(&mut self.thinking) => {
                    self.speaker = mind.speaker();
                    (self.mind, self.thinking) = (Some(mind), None);
                    Some(answer)
                }
                sent = of(&mut self.sending) => {
                    self.sending = None;
                    self.note_sent(sent).await?;
                    None
                }
                Some(trouble) = self.troubles.1.recv() => Some(self.trouble_told(trouble)),
                () = due_at(&clock, due) => Some(Input::Tick),
                () = wait_for_change(&mut self.changes) => {
                    self.read_news().await?;
                    None
                }
            };
            if let Some(input) = input {
                self.dialogue.handle(clock.now_ms(), input);
            }
        }
    }

    /// Does what the conversation asks for; answers its end.
    async fn carry_out(&mut self) -> Result<Option<DialogueEnd>> {
        while let Some(output) = self.dialogue.poll() {
            match output {
                Output::Speak(language) => self.mind.iter_mut().for_each(|mind| mind.speak(&language)),
                Output::Think(thought) => {
                    self.thinking = self.mind.take().map(|mind| Box::pin(think(mind, thought)) as Thinking);
                }
                Output::Compare(comparison) => {
                    self.thinking = self.mind.take().map(|mind| Box::pin(compare(mind, comparison)) as Thinking);
                }
                Output::Send { text, ends } => self.send(text, ends).await?,
                Output::Event(entry) => self.tell(entry),
                Output::Ended(end) => return Ok(Some(end)),
            }
        }
        Ok(None)
    }

    async fn send(&mut self, text: String, ends: bool) -> Result<()> {
        if ends {
            let job = self.work.job;
            self.work.workshop.service.conversations().close_inbox(&job.organization, job.result_id).await?;
        }
        let history = self.dialogue.history().to_vec();
        let message = Message { id: clock::new_id(), text, ends, history };
        let clock = self.work.workshop.service.clock().clone();
        let way =
            Way { contact: self.contact.clone(), clock, log: self.log.clone(), troubles: self.troubles.0.clone() };
        self.sending = Some(Box::pin(way.deliver(message)));
        Ok(())
    }

    /// Returns the input of an attempt that failed, where another one follows. An agent that took the message and let
    /// the time pass was silent.
    fn trouble_told(&self, Trouble { codes, message, is_late, .. }: Trouble) -> Input {
        Input::Troubled((!is_late).then(|| (codes[usize::from(self.running)], message)))
    }

    async fn note_sent(&mut self, sent: Result<(i64, String, Reply), Trouble>) -> Result<()> {
        let (service, job) = (&self.work.workshop.service, self.work.job);
        let now = service.clock().now_ms();
        let (at_ms, message_id, reply) = match sent {
            Ok(sent) => sent,
            Err(Trouble { codes, message, status, .. }) => {
                self.sip_code = status;
                let code = codes[usize::from(self.running)];
                self.dialogue.handle(now, Input::NotSent { code, message });
                return Ok(());
            }
        };
        // Messages that overtook the answer are known before it.
        self.read_news().await?;
        let is_answered = reply.text.is_some() || reply.ends || !reply.calls.is_empty();
        self.dialogue.handle(now, Input::Sent { at_ms, message_id, is_answered });
        if !self.running {
            let began_ms = self.dialogue.began_ms().unwrap_or(at_ms);
            service
                .conversations()
                .connect(&job.organization, job.result_id, ResultStatus::Dispatched, began_ms)
                .await?;
            self.running = true;
        }
        if !reply.calls.is_empty() {
            let calls = reply.calls.into_iter().map(|call| (call.name, call.parameters, call.output));
            service.runs().hear_calls(&job.organization, job.result_id, calls.collect()).await?;
            self.read_news().await?;
        }
        let ends = reply.ends.then_some(EndReason::AgentHangup);
        if reply.text.is_some() || ends.is_some() {
            let text = reply.text.unwrap_or_default();
            self.dialogue.handle(now, Input::Heard(now, Heard { text, ends, ..Heard::default() }));
        }
        self.dialogue.handle(now, Input::Settled);
        Ok(())
    }

    /// Tells the conversation what has come into it.
    async fn read_news(&mut self) -> Result<()> {
        let news = self.work.news(self.messages, self.calls).await?;
        let now = self.work.workshop.service.clock().now_ms();
        self.running |= news.status == ResultStatus::Running;
        // Messages from before a place was free are heard when the conversation begins.
        let began_ms = if news.status == ResultStatus::Running { news.since_ms } else { 0 };
        self.messages += news.messages.len();
        self.calls += news.calls.len();
        for message in news.messages {
            self.log.log_message(&message).await;
            let ends = message.ends.then_some(EndReason::AgentHangup);
            let heard = Heard { message_id: message.message_id, text: message.text, more: message.more, ends };
            self.dialogue.handle(now, Input::Heard(message.at_ms.max(began_ms), heard));
        }
        for call in news.calls {
            let at_ms = self.dialogue.began_ms().unwrap_or(now) + call.start_offset_ms;
            let call = ToolCall {
                name: call.name.into(),
                parameters: json!(call.parameters),
                output: json!(call.output),
                source: Some("conversation".into()),
            };
            self.dialogue.handle(now, Input::Called { at_ms, call });
        }
        if !matches!(news.status, ResultStatus::Dispatched | ResultStatus::Running) {
            self.dialogue.handle(now, Input::Hangup(EndReason::Cancelled));
        }
        Ok(())
    }

    fn tell(&mut self, entry: TimelineEntry) {
        if let Some(feed) = &self.feed {
            let mut data = json!(entry);
            if let Some(redactor) = &self.redactor {
                redactor.event(&mut data);
            }
            let (attempt, seq) = (self.work.job.attempt, Some(entry.seq));
            feed.add(FeedEvent::new(attempt, seq, entry.name(), &data));
        }
        self.timeline.push(entry);
    }
}

/// Returns the mind's next move.
pub(super) async fn think(mut mind: Box<dyn Mind>, thought: Thought) -> (Box<dyn Mind>, Input) {
    let (out, parts) = mpsc::channel(PARTS);
    let ((), next) = tokio::join!(mind.think(thought, out), whole_move(parts));
    (mind, Input::Thought(next))
}

/// Asks the mind for the meaning of the agent's turn.
pub(super) async fn compare(mut mind: Box<dyn Mind>, comparison: Comparison) -> (Box<dyn Mind>, Input) {
    let meant = mind.compare(comparison).await;
    if let Err(failure) = &meant {
        tracing::debug!(code = failure.code, "turn compared by its words: the language model failed");
    }
    (mind, Input::Meant(meant.ok()))
}

/// Way by which messages are delivered.
struct Way {
    contact: Contact,
    clock: Clock,
    log: Log,
    troubles: mpsc::Sender<Trouble>,
}

impl Way {
    /// Delivers a message, every part of it again where that may help.
    async fn deliver(self, message: Message) -> Result<(i64, String, Reply), Trouble> {
        let mut id = message.id.to_string();
        let (mut at_ms, mut last) = (self.clock.now_ms(), Reply::default());
        for part in self.contact.parts(message) {
            (at_ms, last) = self.deliver_part(&part).await?;
            id = last.id.take().unwrap_or(id);
        }
        Ok((at_ms, id, last))
    }

    async fn deliver_part(&self, part: &Message) -> Result<(i64, Reply), Trouble> {
        let mut waits = self.contact.waits_ms().iter();
        loop {
            let began = self.clock.now_ms();
            let mut exchange = None;
            let delivered = self.contact.deliver(part, &mut exchange).await;
            if let Some(exchange) = exchange {
                self.log.log_request(began, self.clock.now_ms(), &exchange).await;
            }
            let trouble = match delivered {
                Ok(reply) => return Ok((began, reply)),
                Err(trouble) => trouble,
            };
            let (Some(asked), Some(wait)) = (trouble.again, waits.next()) else { return Err(trouble) };
            // Only the last one counts: one that does not fit is not missed.
            let _ = self.troubles.try_send(trouble);
            self.clock.until(self.clock.now_ms() + asked.unwrap_or(*wait)).await;
        }
    }
}

async fn of<T>(work: &mut Option<BoxFuture<'static, T>>) -> T {
    match work {
        Some(work) => work.await,
        None => pending().await,
    }
}

async fn due_at(clock: &Clock, due: Option<i64>) {
    match due {
        Some(at_ms) => clock.until(at_ms).await,
        None => pending().await,
    }
}
