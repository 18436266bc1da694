//! A text conversation between a Digital Human and an agent: whose turn it is, what is answered, when it is over. Pure:
//! it knows no clock, network or store. A driver feeds it what happened and when, and carries out what it asks for.
//!
//! `handle(now, input)`, then `poll` until `None`; `due` tells when it wants a [`Input::Tick`]. Times are milliseconds
//! of the driver's clock. The conversation's own time begins (0) with its first message, of whichever side.
//!
//! Each turn of the agent is answered by at most one message, in order. A turn that comes while an answer is thought
//! of, or is on its way, waits.

mod follow;
mod saved;
mod timing;

use std::collections::VecDeque;
use std::sync::Arc;

use ringer_human::language::Follower;
use ringer_media::call::{
    ByScript, Comparison, ConversationLine, EndReason, Event, EventKind, Kind, Matching, Move, Purpose, Response,
    Script, ScriptRule, Side, Then, Thought, ToolCall, contains_phrase, same_words,
};
use ringer_media::frame::PER_MS;

pub use self::saved::SavedDialogue;

use super::TimelineEntry;

/// Time in milliseconds that a Digital Human which chose silence waits before it asks if the agent is still there.
const SILENT_MS: i64 = 60_000;

/// Side that begins a conversation, and its words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum First {
    /// The agent; the Digital Human waits.
    Agent,
    /// The Digital Human, with exactly this.
    Say(String),
    /// The Digital Human, with what it thinks of.
    Made,
    /// The agent is asked to begin, by an empty message that is none.
    Invited,
}

/// Settings of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub struct DialogueSpec {
    /// `http`, `chat`, `sms`, `email`: named in events.
    pub channel: &'static str,
    /// Side that begins, and its words.
    pub first: First,
    /// True if the answer to a delivered message is the agent's reply. Latency then counts from its sending, not from
    /// its delivery.
    pub sync: bool,
    /// True if the agent is told of the end by an empty message, when the last words have already been said.
    pub tells_end: bool,
    /// Time in milliseconds for which an answer to the last message is awaited after its delivery; 0: none is.
    pub last_reply_ms: i64,
    /// Time between a made answer and its sending.
    pub reply_delay_ms: i64,
    /// Messages of the agent this close are one turn; 0: each is.
    pub group_ms: i64,
    /// Longest conversation in milliseconds; `None`: no limit.
    pub max_duration_ms: Option<i64>,
    /// Time without a message of either side after which it ends.
    pub inactivity_ms: i64,
    /// Turns of the agent after which it ends.
    pub max_turns: Option<u32>,
    /// Scripted answers: phrases and silences.
    pub script: Vec<ScriptRule>,
    /// True if only the first rule that is not used up is compared.
    pub script_ordered: bool,
    /// True if the mind decides if a turn has the meaning of a rule; else its words do.
    pub asks_meaning: bool,
    /// Phrases that end it, whoever says them.
    pub hangup_phrases: Vec<String>,
    /// True if the agent's language is written as soon as its turns have shown it.
    pub follows_language: bool,
}

/// A message of the agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// The agent's name for it.
    pub message_id: Option<String>,
    /// Text of the message; may be empty.
    pub text: String,
    /// True if more of the same turn follows.
    pub more: bool,
    /// The agent ends the conversation, for this reason.
    pub ends: Option<EndReason>,
}

/// Event that a driver tells the dialogue.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// Everything is ready to begin.
    Begin,
    /// A message of the agent arrived at this time.
    Heard(i64, Heard),
    /// The whole of an asked-for move.
    Thought(Move),
    /// Meaning of a turn, as in [`ringer_media::call::Effected::Meant`]; `None`: it could not be told.
    Meant(Option<Option<usize>>),
    /// The agent called a tool.
    Called {
        /// Time of the tool call.
        at_ms: i64,
        /// Tool call with its parameters.
        call: ToolCall,
    },
    /// The message that was to be sent was taken; it was sent off at this time.
    Sent {
        /// Start of the attempt that succeeded.
        at_ms: i64,
        /// Id of the message.
        message_id: String,
        /// True if something comes in answer to it: a message or tool calls, and [`Input::Settled`] after them.
        is_answered: bool,
    },
    /// The response to the message that was sent is told whole.
    Settled,
    /// An attempt to send the message failed, and another one follows; error code and explanation. `None`: the agent
    /// took it, and did not answer.
    Troubled(Option<(&'static str, String)>),
    /// The message cannot be sent.
    NotSent {
        /// Error code of the failure.
        code: &'static str,
        /// Explanation in words, for display.
        message: String,
    },
    /// A note for the timeline: its code and its words.
    Noted(&'static str, String),
    /// Ends the conversation now.
    Hangup(EndReason),
    /// Time has passed; timers are due.
    Tick,
}

/// Action that the driver has to carry out.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// The mind writes this language from its next move on.
    Speak(String),
    /// Ask the mind; answered by [`Input::Thought`].
    Think(Thought),
    /// Ask the mind what a turn means; answered by [`Input::Meant`].
    Compare(Comparison),
    /// Deliver this; answered by [`Input::Sent`] or [`Input::NotSent`].
    Send {
        /// May be empty: the agent is asked to begin, or told of the end.
        text: String,
        /// True if no message follows.
        ends: bool,
    },
    /// Timeline entry to keep.
    Event(TimelineEntry),
    /// The conversation is over. Nothing follows, and open requests are no longer wanted.
    Ended(DialogueEnd),
}

/// End of a conversation, with its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DialogueEnd {
    /// Reason for the end.
    pub reason: EndReason,
    /// Error code and message of [`EndReason::Fault`].
    pub fault: Option<(&'static str, String)>,
    /// Time of the first message; `None`: there was none.
    pub began_ms: Option<i64>,
    /// Time of the end.
    pub ended_ms: i64,
    /// True if the agent has written words.
    pub other_spoke: bool,
}

/// A turn of the agent that was not dealt with yet.
#[derive(Debug, Default)]
struct UnansweredTurn {
    text: String,
    first_ms: i64,
    last_ms: i64,
}

#[derive(Debug)]
enum Doing {
    /// The agent has the turn.
    Waiting,
    Thinking,
    /// The mind compares a turn with these rules.
    Comparing {
        rules: Vec<usize>,
        text: String,
    },
    /// An answer waits for its time.
    Holding {
        until: i64,
        answer: Answer,
    },
    /// A message is on its way since then; the trouble of the last attempt, unless that was silence.
    Sending {
        since: i64,
        answer: Answer,
        trouble: Option<(&'static str, String)>,
    },
    /// The last message was taken, and what comes in answer to it is awaited: until then; `None`: until
    /// [`Input::Settled`].
    Ending {
        reason: EndReason,
        until: Option<i64>,
    },
    /// Silence until then, whatever the agent writes; then words, or the mind goes on.
    Pausing {
        until: i64,
        then: Option<Answer>,
    },
    /// Silence until the agent writes.
    Silent {
        until: Option<i64>,
        then: Option<Answer>,
    },
    Over,
}

#[derive(Clone, Debug)]
struct Answer {
    text: String,
    /// Digits that are pressed at the end of the text.
    digits: Arc<str>,
    then: Then,
    scripted: bool,
    ends: Option<EndReason>,
}

impl Answer {
    /// Returns an answer after which the agent has the turn.
    fn of(text: String) -> Answer {
        Answer { text, digits: Arc::default(), then: Then::Listen, scripted: false, ends: None }
    }
}

/// State of one text conversation.
pub struct Dialogue {
    spec: DialogueSpec,
    doing: Doing,
    script: Script,
    history: Vec<ConversationLine>,
    /// Parts of the agent's turn that is not over yet, and when a group is closed.
    open: Option<(UnansweredTurn, Option<i64>)>,
    waiting: VecDeque<UnansweredTurn>,
    turns: u32,
    follower: Follower,
    began_ms: Option<i64>,
    /// Time at which this side was to begin.
    opened_ms: Option<i64>,
    last_ms: i64,
    other_spoke: bool,
    seq: i64,
    out: VecDeque<Output>,
}

impl Dialogue {
    /// Returns a conversation that has not begun.
    pub fn new(spec: DialogueSpec) -> Dialogue {
        Dialogue {
            script: Script::new(spec.script.len()),
            spec,
            doing: Doing::Waiting,
            history: Vec::new(),
            open: None,
            waiting: VecDeque::new(),
            turns: 0,
            follower: Follower::default(),
            began_ms: None,
            opened_ms: None,
            last_ms: 0,
            other_spoke: false,
            seq: 0,
            out: VecDeque::new(),
        }
    }

    /// Takes in what happened.
    pub fn handle(&mut self, now: i64, input: Input) {
        if matches!(self.doing, Doing::Over) {
            return;
        }
        match input {
            Input::Begin => self.begin(now),
            Input::Heard(at, heard) => self.take_message(now, at, heard),
            Input::Thought(next) if matches!(self.doing, Doing::Thinking) => self.thought(now, next),
            Input::Meant(meant) => self.take_comparison(now, meant),
            Input::Called { at_ms, call } => {
                if matches!(self.doing, Doing::Ending { .. }) {
                    self.last_ms = self.last_ms.max(at_ms);
                }
                self.event(at_ms, Side::Agent, EventKind::ToolCall(Box::new(call)));
            }
            Input::Sent { at_ms, message_id, is_answered } => self.take_receipt(now, at_ms, &message_id, is_answered),
            Input::Settled => self.settle(now),
            Input::Troubled(message) => {
                if let Doing::Sending { trouble, .. } = &mut self.doing {
                    *trouble = message;
                }
            }
            Input::NotSent { code, message } => self.end(now, EndReason::Fault, Some((code, message))),
            Input::Hangup(reason) => match self.doing {
                // Everything is said: it ends as it was about to.
                Doing::Ending { reason, .. } => self.end(self.last_ms, reason, None),
                _ => self.end(now, reason, None),
            },
            Input::Noted(code, why) => self.event(now, Side::Engine, EventKind::Note { code: code.into(), why }),
            Input::Thought(_) | Input::Tick => {}
        }
        self.timers(now);
    }

    /// Returns the next thing to do.
    pub fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// Returns the time of the first message.
    pub fn began_ms(&self) -> Option<i64> {
        self.began_ms
    }

    /// True if the conversation is over; nothing follows.
    pub fn is_over(&self) -> bool {
        matches!(self.doing, Doing::Over)
    }

    /// Returns the messages so far, oldest first.
    pub fn history(&self) -> &[ConversationLine] {
        &self.history
    }

    fn begin(&mut self, now: i64) {
        self.last_ms = now;
        self.opened_ms = (self.spec.first != First::Agent).then_some(now);
        match self.spec.first.clone() {
            // An agent that has begun by itself is answered.
            _ if self.began_ms.is_some() => {}
            First::Agent => {}
            First::Say(text) => self.send(now, Answer::of(text)),
            First::Invited => self.send(now, Answer::of(String::new())),
            First::Made => self.think(Purpose::Opening),
        }
    }

    fn take_message(&mut self, now: i64, at: i64, heard: Heard) {
        let at = at.max(self.began_ms.unwrap_or(at));
        self.start(at);
        self.last_ms = self.last_ms.max(at);
        self.other_spoke |= !heard.text.is_empty();
        let (message_id, channel) = (heard.message_id, Some(self.spec.channel.into()));
        self.event(at, Side::Agent, EventKind::MessageReceived { message_id, text: heard.text.clone(), channel });
        let (mut turn, _) =
            self.open.take().unwrap_or_else(|| (UnansweredTurn { first_ms: at, ..UnansweredTurn::default() }, None));
        if !turn.text.is_empty() && !heard.text.is_empty() {
            turn.text.push('\n');
        }
        turn.text.push_str(&heard.text);
        turn.last_ms = at;
        let closes = (self.spec.group_ms > 0).then_some(at + self.spec.group_ms);
        if let Doing::Ending { reason, .. } = self.doing {
            if heard.more && heard.ends.is_none() {
                self.open = Some((turn, None));
                return;
            }
            self.take(turn);
            return self.end(now, reason, None);
        }
        // An answer to the last words does not take them back: they are on their way.
        let is_closing = matches!(&self.doing, Doing::Sending { answer, .. } if answer.ends.is_some());
        if let Some(reason) = heard.ends.filter(|_| !is_closing) {
            self.take(turn);
            return self.end(now, reason, None);
        }
        if heard.more || closes.is_some() {
            self.open = Some((turn, closes));
            return;
        }
        self.take(turn);
        self.go_on(now);
    }

    /// Takes a whole turn of the agent.
    fn take(&mut self, turn: UnansweredTurn) {
        let place = |ms: i64| (ms - self.began_ms.unwrap_or(ms)) * PER_MS;
        let (from_sample, end_sample) = (place(turn.first_ms), place(turn.last_ms));
        let (text, channel) = (turn.text.clone(), self.spec.channel.into());
        self.event(turn.last_ms, Side::Agent, EventKind::TurnWritten { text, from_sample, end_sample, channel });
        self.waiting.push_back(turn);
    }

    /// Deals with the next turn of the agent, when nothing else is going on.
    fn go_on(&mut self, now: i64) {
        if !matches!(self.doing, Doing::Waiting | Doing::Silent { .. }) {
            return;
        }
        let Some(turn) = self.waiting.pop_front() else { return };
        // A scripted silence lasts until the end of the agent's next turn, which its words answer.
        let held = match std::mem::replace(&mut self.doing, Doing::Waiting) {
            Doing::Silent { then, .. } => then,
            _ => None,
        };
        let text = self.hear(turn);
        if self.spec.hangup_phrases.iter().any(|phrase| contains_phrase(&text, phrase)) {
            return self.end(now, EndReason::HangupPhrase, None);
        }
        if self.spec.max_turns.is_some_and(|most| self.turns >= most) {
            return self.end(now, EndReason::MaxTurns, None);
        }
        if let Some(answer) = held {
            return self.speak(now, answer);
        }
        let (script, ordered) = (&self.spec.script, self.spec.script_ordered);
        match self.script.answer(script, ordered, &text, self.spec.asks_meaning) {
            ByScript::Known(rule) => self.follow_script(now, rule),
            ByScript::Ask(rules) => {
                let phrases = rules.iter().map(|at| script[*at].phrase.clone()).collect();
                self.out.push_back(Output::Compare(Comparison { phrases, history: self.history.clone() }));
                self.doing = Doing::Comparing { rules, text };
            }
        }
    }

    fn take_comparison(&mut self, now: i64, meant: Option<Option<usize>>) {
        match std::mem::replace(&mut self.doing, Doing::Waiting) {
            Doing::Comparing { rules, text } => {
                let by_words = || same_words(&self.spec.script, &rules, &text);
                let rule = meant.map_or_else(by_words, |which| which.and_then(|which| rules.get(which).copied()));
                self.follow_script(now, rule);
            }
            doing => self.doing = doing,
        }
    }

    fn follow_script(&mut self, now: i64, rule: Option<usize>) {
        match rule {
            Some(rule) => self.answer_by_script(now, rule),
            None => self.think(Purpose::Reply),
        }
    }

    fn hear(&mut self, turn: UnansweredTurn) -> String {
        self.turns += 1;
        self.follow(&turn);
        let line = ConversationLine {
            other: true,
            text: turn.text.as_str().into(),
            digits: Arc::default(),
            interrupted: false,
        };
        self.history.push(line);
        turn.text
    }

    fn hear_waiting(&mut self) {
        while let Some(turn) = self.waiting.pop_front() {
            self.hear(turn);
        }
    }

    fn answer_by_script(&mut self, now: i64, at: usize) {
        self.script.fire(at);
        let rule = &self.spec.script[at];
        let match_type = if rule.matching == Matching::Exact { "exact" } else { "context" };
        let (index, response) = (rule.index, rule.response.clone());
        let (match_type, response_type) = (match_type.into(), response.kind().into());
        self.event(now, Side::Dh, EventKind::ScriptedResponse { index, match_type, response_type });
        let answer = |text: String| Answer { scripted: true, ..Answer::of(text) };
        match response {
            Response::Phrase(words) => self.hold(now, answer(words)),
            Response::Dtmf(digits) => self.hold(now, Answer { digits: digits.as_str().into(), ..answer(digits) }),
            Response::Silence { duration_ms: Some(ms), then } => {
                let then = Some(answer(then.unwrap_or_default()));
                self.doing = Doing::Pausing { until: now + i64::from(ms), then };
            }
            Response::Silence { duration_ms: None, then } => {
                self.doing = Doing::Silent { until: None, then: then.map(answer) };
            }
            // Nothing can be heard in a text conversation; whoever makes the spec leaves recordings out.
            Response::Audio(_) => self.doing = Doing::Waiting,
        }
    }

    fn think(&mut self, purpose: Purpose) {
        self.doing = Doing::Thinking;
        let thought = Thought { purpose, history: self.history.clone(), unsaid: None };
        self.out.push_back(Output::Think(thought));
    }

    fn thought(&mut self, now: i64, next: Move) {
        for note in &next.notes {
            self.event(now, Side::Engine, EventKind::Note { code: (*note).into(), why: String::new() });
        }
        // Keys are typed.
        let text = [next.say.trim(), &next.dtmf].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>();
        let text = text.join(" ");
        let ends = match next.then {
            Then::Hangup => Some(EndReason::DhEndCall),
            Then::Finish => Some(EndReason::PlaybackEnd),
            _ => None,
        };
        self.hold(now, Answer { digits: next.dtmf.into(), then: next.then, ends, ..Answer::of(text) });
    }

    /// Sends an answer that is ready, after the reply delay if there is one.
    fn hold(&mut self, now: i64, answer: Answer) {
        match self.spec.reply_delay_ms {
            delay @ 1.. if !answer.text.is_empty() => self.doing = Doing::Holding { until: now + delay, answer },
            _ => self.speak(now, answer),
        }
    }

    /// Sends an answer that has words; what is to follow one without words follows at once.
    fn speak(&mut self, now: i64, mut answer: Answer) {
        let closing = |phrase: &String| contains_phrase(&answer.text, phrase);
        if answer.ends.is_none() && self.spec.hangup_phrases.iter().any(closing) {
            answer.ends = Some(EndReason::HangupPhrase);
        }
        match answer.ends {
            _ if !answer.text.is_empty() => self.send(now, answer),
            Some(_) if self.spec.tells_end && self.began_ms.is_some() => self.send(now, answer),
            Some(reason) => self.end(now, reason, None),
            None => self.after(now, answer.then),
        }
    }

    fn send(&mut self, now: i64, answer: Answer) {
        self.out.push_back(Output::Send { text: answer.text.clone(), ends: answer.ends.is_some() });
        self.doing = Doing::Sending { since: now, answer, trouble: None };
    }

    fn take_receipt(&mut self, now: i64, at_ms: i64, message_id: &str, is_answered: bool) {
        let answer = match std::mem::replace(&mut self.doing, Doing::Waiting) {
            Doing::Sending { answer, .. } => answer,
            doing => return self.doing = doing,
        };
        // The reply may overtake the word that its question was taken: it was there when it was sent off.
        let overtaken = self.open.is_some() || !self.waiting.is_empty();
        let at = if self.spec.sync || overtaken { at_ms } else { now };
        self.last_ms = self.last_ms.max(now);
        self.start(at);
        self.keep_sent(at, Some(message_id.to_owned()), &answer);
        match answer.ends {
            Some(reason) if is_answered => self.doing = Doing::Ending { reason, until: None },
            Some(reason) if !answer.text.is_empty() && !overtaken && self.spec.last_reply_ms > 0 => {
                self.doing = Doing::Ending { reason, until: Some(now + self.spec.last_reply_ms) };
            }
            Some(reason) => self.end(now, reason, None),
            None => self.after(now, answer.then),
        }
    }

    /// Keeps a message of this side that was sent off at `at`.
    fn keep_sent(&mut self, at: i64, message_id: Option<String>, answer: &Answer) {
        if answer.text.is_empty() {
            return;
        }
        let kind = if answer.scripted { Kind::Scripted } else { Kind::Turn };
        let channel = Some(self.spec.channel.into());
        self.event(at, Side::Dh, EventKind::MessageSent { message_id, text: answer.text.clone(), channel, kind });
        // Turns that came while it was on its way are heard after it. Keys are a line of their own, as in a call.
        let own = |text: &str, digits| ConversationLine { other: false, text: text.into(), digits, interrupted: false };
        let words = answer.text.strip_suffix(&*answer.digits).unwrap_or(&answer.text).trim_end();
        self.history.extend((!words.is_empty()).then(|| own(words, Arc::default())));
        self.history.extend((!answer.digits.is_empty()).then(|| own("", answer.digits.clone())));
    }

    fn after(&mut self, now: i64, then: Then) {
        match then {
            Then::StaySilent => {
                self.event(now, Side::Dh, EventKind::SilenceTool { seconds: (SILENT_MS / 1000) as u32 });
                self.doing = Doing::Silent { until: Some(now + SILENT_MS), then: None };
            }
            Then::Pause { ms } => self.doing = Doing::Pausing { until: now + i64::from(ms), then: None },
            Then::Listen | Then::Hangup | Then::Finish => self.doing = Doing::Waiting,
        }
        self.go_on(now);
    }

    fn start(&mut self, at: i64) {
        self.began_ms.get_or_insert(at);
        self.last_ms = self.last_ms.max(at);
    }

    fn event(&mut self, at: i64, side: Side, what: EventKind) {
        let sample = (at - self.began_ms.unwrap_or(at)) * PER_MS;
        let entry = TimelineEntry { seq: self.seq, event: Event { sample, side, what } };
        self.seq += 1;
        self.out.push_back(Output::Event(entry));
    }
}

#[cfg(test)]
mod tests;
