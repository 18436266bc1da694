//! State of a conversation that is put aside and taken up again, perhaps by another process. It is put aside when it
//! waits: for the agent, for its own time, or for the delivery of a message. While the mind is asked it is not: that is
//! asked again.

use std::sync::Arc;

use ringer_human::language::Follower;
use ringer_media::call::{ConversationLine, EndReason, Script, Then};
use ringer_media::detected_language::DetectedLanguage;
use serde::{Deserialize, Serialize};

use super::{Answer, Dialogue, DialogueSpec, Doing, UnansweredTurn};

/// State of a conversation between two inputs, without its settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SavedDialogue {
    doing: SavedDoing,
    /// Number of times that each rule of the script has fired.
    fired: Vec<u32>,
    history: Vec<SavedLine>,
    open: Option<(SavedTurn, Option<i64>)>,
    waiting: Vec<SavedTurn>,
    turns: u32,
    began_ms: Option<i64>,
    opened_ms: Option<i64>,
    last_ms: i64,
    other_spoke: bool,
    seq: i64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
enum SavedDoing {
    #[default]
    Waiting,
    Holding(i64, SavedAnswer),
    Sending(i64, SavedAnswer),
    Ending(EndReason, Option<i64>),
    Pausing(i64, Option<SavedAnswer>),
    Silent(Option<i64>, Option<SavedAnswer>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SavedAnswer {
    text: String,
    digits: String,
    then: Then,
    scripted: bool,
    ends: Option<EndReason>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SavedTurn {
    text: String,
    first_ms: i64,
    last_ms: i64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct SavedLine {
    other: bool,
    text: String,
    digits: String,
    interrupted: bool,
}

impl Dialogue {
    /// Returns the state of the conversation; `None` while the mind is asked, and once the conversation is over.
    ///
    /// All outputs must have been taken before.
    pub fn save(&self) -> Option<SavedDialogue> {
        let doing = match &self.doing {
            Doing::Waiting => SavedDoing::Waiting,
            Doing::Holding { until, answer } => SavedDoing::Holding(*until, save_answer(answer)),
            Doing::Sending { since, answer, .. } => SavedDoing::Sending(*since, save_answer(answer)),
            Doing::Ending { reason, until } => SavedDoing::Ending(*reason, *until),
            Doing::Pausing { until, then } => SavedDoing::Pausing(*until, then.as_ref().map(save_answer)),
            Doing::Silent { until, then } => SavedDoing::Silent(*until, then.as_ref().map(save_answer)),
            Doing::Thinking | Doing::Comparing { .. } | Doing::Over => return None,
        };
        let turn = |turn: &UnansweredTurn| SavedTurn {
            text: turn.text.clone(),
            first_ms: turn.first_ms,
            last_ms: turn.last_ms,
        };
        let line = |line: &ConversationLine| SavedLine {
            other: line.other,
            text: line.text.to_string(),
            digits: line.digits.to_string(),
            interrupted: line.interrupted,
        };
        Some(SavedDialogue {
            doing,
            fired: self.script.counts().to_vec(),
            history: self.history.iter().map(line).collect(),
            open: self.open.as_ref().map(|(open, closes)| (turn(open), *closes)),
            waiting: self.waiting.iter().map(turn).collect(),
            turns: self.turns,
            began_ms: self.began_ms,
            opened_ms: self.opened_ms,
            last_ms: self.last_ms,
            other_spoke: self.other_spoke,
            seq: self.seq,
        })
    }

    /// Counts silence from now on: nobody was there to listen before.
    pub fn wake(&mut self, now: i64) {
        self.last_ms = self.last_ms.max(now);
    }

    /// Returns the conversation in a state that was saved. Where the script has other rules by now, those in place of
    /// earlier ones count as these.
    pub fn resume(spec: DialogueSpec, saved: SavedDialogue) -> Dialogue {
        let turn = |turn: SavedTurn| UnansweredTurn { text: turn.text, first_ms: turn.first_ms, last_ms: turn.last_ms };
        let line = |line: SavedLine| ConversationLine {
            other: line.other,
            text: line.text.into(),
            digits: line.digits.into(),
            interrupted: line.interrupted,
        };
        let history: Vec<ConversationLine> = saved.history.into_iter().map(line).collect();
        let doing = match saved.doing {
            SavedDoing::Waiting => Doing::Waiting,
            SavedDoing::Holding(until, answer) => Doing::Holding { until, answer: resume_answer(answer) },
            SavedDoing::Sending(since, answer) => {
                Doing::Sending { since, answer: resume_answer(answer), trouble: None }
            }
            SavedDoing::Ending(reason, until) => Doing::Ending { reason, until },
            SavedDoing::Pausing(until, then) => Doing::Pausing { until, then: then.map(resume_answer) },
            SavedDoing::Silent(until, then) => Doing::Silent { until, then: then.map(resume_answer) },
        };
        Dialogue {
            doing,
            script: Script::resume_with(spec.script.len(), &saved.fired),
            follower: follower(&spec, &history),
            history,
            open: saved.open.map(|(open, closes)| (turn(open), closes)),
            waiting: saved.waiting.into_iter().map(turn).collect(),
            turns: saved.turns,
            began_ms: saved.began_ms,
            opened_ms: saved.opened_ms,
            last_ms: saved.last_ms,
            other_spoke: saved.other_spoke,
            seq: saved.seq,
            ..Dialogue::new(spec)
        }
    }
}

/// Returns the language evidence of the agent's turns so far.
fn follower(spec: &DialogueSpec, history: &[ConversationLine]) -> Follower {
    let mut follower = Follower::default();
    if spec.follows_language {
        for (at, line) in history.iter().filter(|line| line.other).enumerate() {
            follower.hear(at as i64 + 1, &line.text, &DetectedLanguage::Unknown);
        }
    }
    follower
}

fn save_answer(answer: &Answer) -> SavedAnswer {
    let Answer { text, digits, then, scripted, ends } = answer.clone();
    SavedAnswer { text, digits: digits.to_string(), then, scripted, ends }
}

fn resume_answer(saved: SavedAnswer) -> Answer {
    let SavedAnswer { text, digits, then, scripted, ends } = saved;
    Answer { text, digits: Arc::from(digits), then, scripted, ends }
}
