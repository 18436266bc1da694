//! The line with which a Digital Human begins: made by a language model once and kept, unless it is to be made anew
//! each time.

use ringer_base::error::Result;
use ringer_human as human;
use ringer_human::Profile;
use ringer_media::seed::Seed;
use ringer_model::digital_human::SpeaksFirstMode;
use ringer_store::OpeningKey;

use super::{Cast, Placements, Placer};

impl Placements {
    /// Gives a caller the line that it always begins with, made now when there is none yet. Without one, because nobody
    /// can word it, it is made in the conversation.
    pub(super) async fn give_opening(
        &self,
        organization: &str,
        cast: &mut Cast,
        placer: &Placer,
        written: bool,
    ) -> Result<()> {
        let (Some(model), Some(human_id), true) = (&placer.model, cast.human_id, cast.keeps_opening()) else {
            return Ok(());
        };
        let profile = Profile { written, ..cast.profile(&placer.behaviour, cast.traits()) };
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
        let step = cast.step.as_ref().map_or(0, |step| step.step);
        let key = OpeningKey { human_id, step, made_of: &made_of };
        let kept = self.store.org(organization).read().await?.opening(key).await?;
        if kept.is_some() {
            cast.first_line = kept;
            return Ok(());
        }
        // The seed is the Digital Human's, and not that of the conversation that happens to be its first.
        let seed = Seed::of(&format!("opening:{organization}:{human_id}"));
        let line = match human::opening_line(profile, model.clone(), seed).await {
            Ok(line) => line,
            Err(why) => {
                cast.warnings.push(format!("the opening line could not be made before the conversation: {why}"));
                return Ok(());
            }
        };
        let mut db = self.store.org(organization).write().await?;
        // Another conversation may have been first.
        cast.first_line = match db.opening(key).await? {
            Some(kept) => Some(kept),
            None => {
                db.keep_opening(key, &line).await?;
                Some(line)
            }
        };
        db.commit().await
    }
}

impl Cast {
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
