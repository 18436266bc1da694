//! The first line of a conversation, generated before the call.

use std::sync::Arc;

use ringer_media::call::{Purpose, Thought};
use ringer_media::seed::Seed;
use ringer_provider::LanguageModel;
use tokio::sync::mpsc;

use super::model::{ModelMind, Patience};
use super::{Mind, Profile, whole_move};

/// Returns the model's first words for this Digital Human.
///
/// # Errors
/// There are none in time, or not from the model alone: why.
pub async fn opening_line(profile: Profile, model: Arc<dyn LanguageModel>, seed: Seed) -> Result<String, String> {
    // The call has not begun, so nobody waits for these words.
    let mut mind = ModelMind::new(profile, model, seed, Patience::of_a_writer());
    let (out, parts) = mpsc::channel(64);
    let thought = Thought { purpose: Purpose::Opening, history: Vec::new(), unsaid: None };
    let ((), said) = tokio::join!(mind.think(thought, out), whole_move(parts));
    // A note means that the answer broke off or came from the built-in speaker.
    match said.notes.first() {
        Some(note) => Err((*note).to_owned()),
        None if said.say.is_empty() => Err("the model's answer has no words".to_owned()),
        None => Ok(said.say),
    }
}

#[cfg(test)]
mod tests {
    use ringer_provider::testing::{Reply, ScriptedModel};

    use super::*;

    #[tokio::test]
    async fn only_the_models_own_words_are_kept() {
        for (reply, expect) in [
            (Reply::says(&["Hello there. ", "I want a table."]), Some("Hello there. I want a table.")),
            (
                Reply::says(&[
                    "*coughs* Call (555) 010-4477, **ann_lee@example.com** (blue door). (waits) It is No. 5.",
                ]),
                Some("Call (555) 010-4477, ann_lee@example.com (blue door). It is No. 5."),
            ),
            (Reply::says(&[""]), None),
            (Reply::status(500), None),
        ] {
            let traits = vec![("house".to_owned(), "blue door".to_owned())];
            let profile = Profile { intent: "I want a table.".into(), traits, ..Profile::default() };
            let model = Arc::new(ScriptedModel::new(vec![reply]));
            assert_eq!(opening_line(profile, model, Seed(1)).await.ok().as_deref(), expect);
        }
    }
}
