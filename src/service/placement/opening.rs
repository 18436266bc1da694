//! The line with which a Digital Human begins: made by a language model once and kept, unless it is to be made anew
//! each time.

use ringer_base::error::Result;
use ringer_human as human;
use ringer_human::Profile;
use ringer_media::seed::Seed;
use ringer_model::digital_human::SpeaksFirstMode;
use ringer_store::OpeningKey;

use super::{CallRows, PlacementSettings, Placements};

impl Placements {
    /// Gives a caller the line that it always begins with, made now when there is none yet. Without one, because nobody
    /// can word it, it is made in the conversation.
    pub(super) async fn give_opening(
        &self,
        organization: &str,
        rows: &mut CallRows,
        terms: &PlacementSettings,
        written: bool,
    ) -> Result<()> {
        let (Some(model), Some(human_id), true) = (&terms.model, rows.human_id, rows.keeps_opening()) else {
            return Ok(());
        };
        let profile = Profile { written, ..rows.profile(&terms.behaviour, rows.traits()) };
        let made_of = format!(
            "{:x}",
            Seed::of(&format!(
                "{:?}",
                (
                    (&profile.name, &profile.intent, &profile.role_description, &profile.language, &profile.traits),
                    (profile.verbosity, profile.fluency, &profile.rules, profile.called, &profile.earlier),
                    (profile.creativity.to_bits(), model.name(), written),
                )
            ))
            .0
        );
        let step = rows.step.as_ref().map_or(0, |step| step.step);
        let key = OpeningKey { human_id, step, made_of: &made_of };
        let mut db = self.store.org(organization).read().await?;
        let kept = db.opening(key).await?;
        // A conversation that has to wait for the budget gets its line when it begins.
        if kept.is_some() || self.conversations.is_over_budget(&mut db).await? {
            rows.first_line = kept;
            return Ok(());
        }
        drop(db);
        // The seed is the Digital Human's, and not that of the conversation that happens to be its first.
        let seed = Seed::of(&format!("opening:{organization}:{human_id}"));
        let line = match human::opening_line(profile, model.clone(), seed).await {
            Ok(line) => line,
            Err(why) => {
                rows.warnings.push(format!("the opening line could not be made before the conversation: {why}"));
                return Ok(());
            }
        };
        let mut db = self.store.org(organization).write().await?;
        // Another conversation may have been first.
        rows.first_line = match db.opening(key).await? {
            Some(kept) => Some(kept),
            None => {
                db.keep_opening(key, &line).await?;
                Some(line)
            }
        };
        db.commit().await
    }
}

impl CallRows {
    /// True when the Digital Human begins with words that are made, and always with the same.
    fn keeps_opening(&self) -> bool {
        let plays = self.human.enriched_playback.as_ref().is_some_and(|steps| !steps.is_empty());
        let config = self.human.speaks_first_config.as_ref();
        !plays
            && config.is_some_and(|config| {
                config.speaks_first && config.mode == Some(SpeaksFirstMode::AiGenerated) && !config.dynamic
            })
    }
}
