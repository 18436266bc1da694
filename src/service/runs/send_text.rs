//! One turn of a Digital Human at a time, for whoever holds the conversation: no run, no result. What was said so far
//! is kept in this process, for the conversations that were used last.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use ringer_base::clock;
use ringer_base::error::{Error, Result};
use ringer_base::tasks::to_its_end;
use ringer_engine::dialogue::{Dialogue, Heard, Input, Output};
use ringer_human::{Mind, whole_move};
use ringer_media::call::Thought;
use ringer_media::seed::Seed;
use ringer_model::text::{TextTurn, TextTurnRequest};
use tokio::sync::{OwnedMutexGuard, mpsc};

use super::Runs;
use super::text_runs::ENDED;
use crate::Caller;
use crate::humans::owned;
use crate::placement::alone;

/// Conversations that are kept.
const KEPT: usize = 1000;

/// Organization, the caller's name for the conversation, Digital Human.
type Key = (String, String, i64);

/// Conversations, the one that was used last at the end.
#[derive(Default)]
pub(crate) struct Talks(Mutex<VecDeque<(Key, Kept)>>);

/// A conversation that has begun, or is about to; one turn at a time.
type Kept = Arc<tokio::sync::Mutex<Option<Talk>>>;

struct Talk {
    dialogue: Dialogue,
    mind: Box<dyn Mind>,
}

impl Talks {
    fn of(&self, key: &Key) -> Kept {
        let mut talks = self.0.lock();
        let at = talks.iter().position(|(known, _)| known == key);
        let talk = at.and_then(|at| talks.remove(at)).map_or_else(Arc::default, |(_, talk)| talk);
        if talks.len() >= KEPT {
            talks.pop_front();
        }
        talks.push_back((key.clone(), talk.clone()));
        talk
    }
}

impl Runs {
    /// Returns a Digital Human's answer to a message; it begins the conversation when the first message is empty.
    pub async fn text_turn(&self, caller: &Caller, spec: TextTurnRequest) -> Result<TextTurn> {
        let id = spec.test_case_id.get().ok_or(Error::NotFound("Digital human"))?;
        let mut db = self.store.org(&caller.organization).read().await?;
        let human = owned(&mut db, id).await?.doc;
        drop(db);
        let key = (caller.organization.clone(), spec.redis_key, id);
        let mut kept = self.talks.of(&key).lock_owned().await;
        // An empty message begins a conversation, also anew.
        if spec.message.is_empty() && kept.as_ref().is_some_and(|talk| talk.dialogue.is_over()) {
            *kept = None;
        }
        let begins = kept.is_none() && spec.message.is_empty();
        let mut talk = OwnedMutexGuard::map(kept, |kept| {
            kept.get_or_insert_with(|| {
                let seed = Seed::of(&format!("{}:{}:{id}", key.0, key.1));
                let (dialogue, mind) = alone(human, seed, begins, &self.settings.behaviour, self.model.clone());
                Talk { dialogue: Dialogue::new(dialogue), mind }
            })
        });
        if talk.dialogue.is_over() {
            return Err(Error::Refused(ENDED.into()));
        }
        let now = self.clock.now_ms();
        talk.dialogue.handle(now, Input::Tick);
        if begins {
            talk.dialogue.handle(now, Input::Begin);
        } else {
            let heard = Heard { text: spec.message, ..Heard::default() };
            talk.dialogue.handle(now, Input::Heard(now, heard));
        }
        // Left in the middle of a turn the conversation would wait for its own thought for ever.
        let turn = to_its_end(async move { talk.turn(now).await });
        let (text, end_conversation) = turn.await.map_err(Error::internal)?;
        Ok(TextTurn::of(&spec.response_format, text, end_conversation))
    }
}

impl Talk {
    /// Goes on until the other side has the turn; answers what was said, and whether it is over.
    async fn turn(&mut self, now: i64) -> (String, bool) {
        let mut said = Vec::new();
        while let Some(output) = self.dialogue.poll() {
            match output {
                Output::Speak(language) => self.mind.speak(&language),
                Output::Think(thought) => {
                    let next = self.think(thought).await;
                    self.dialogue.handle(now, Input::Thought(next));
                }
                Output::Compare(comparison) => {
                    let meant = self.mind.compare(comparison).await.ok();
                    self.dialogue.handle(now, Input::Meant(meant));
                }
                Output::Send { text, .. } => {
                    said.push(text);
                    let message_id = clock::new_id().to_string();
                    self.dialogue.handle(now, Input::Sent { at_ms: now, message_id, is_answered: false });
                }
                Output::Event(_) | Output::Ended(_) => {}
            }
        }
        (said.join("\n"), self.dialogue.is_over())
    }

    async fn think(&mut self, thought: Thought) -> ringer_media::call::Move {
        let (out, parts) = mpsc::channel(64);
        tokio::join!(self.mind.think(thought, out), whole_move(parts)).1
    }
}
