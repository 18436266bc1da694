//! Settings of a simulation for its generated Digital Humans.

use ringer_model::digital_human::{BackgroundNoise, Language};
use ringer_model::simulation::DigitalHumansSettings;

use crate::library::field_rules;

/// Value of a simulation's setting that asks for a random draw.
pub(crate) const RANDOM: &str = "random";
/// Value that asks for opening words made up by the model.
pub(crate) const AI_GENERATED: &str = "ai_generated";
/// Puts the default in the place of every setting that no Digital Human can be given, and tells what is wrong with
/// each.
pub(crate) fn mend_settings(settings: &mut DigitalHumansSettings) -> Vec<String> {
    let default = DigitalHumansSettings::default();
    let mut wrong = Vec::new();
    if settings.default_caller_number != RANDOM {
        let mut number = Some(std::mem::take(&mut settings.default_caller_number));
        let checked = field_rules::phone("digital_humans_settings.default_caller_number", &mut number);
        settings.default_caller_number = match (checked, number) {
            (Ok(()), Some(number)) => number,
            (checked, _) => {
                wrong.extend(checked.err().map(|error| error.to_string()));
                default.default_caller_number
            }
        };
    }
    let languages = Language::ALL.iter().map(|one| one.as_str());
    wrong.extend(mend_word("default_language", &mut settings.default_language, languages, default.default_language));
    let noises = noises().map(BackgroundNoise::as_str);
    let (noise, no_noise) = (&mut settings.default_background_noise, default.default_background_noise);
    wrong.extend(mend_word("default_background_noise", noise, noises, no_noise));
    if settings.first_message.is_empty() {
        wrong.push("digital_humans_settings.first_message must not be empty".into());
        settings.first_message = default.first_message;
    }
    wrong
}

/// Corrects a setting that must be `random` or one of these words; returns the warning if it was not.
fn mend_word(
    field: &str,
    word: &mut String,
    words: impl Iterator<Item = &'static str>,
    default: String,
) -> Option<String> {
    let words: Vec<&str> = std::iter::once(RANDOM).chain(words).collect();
    if words.contains(&word.as_str()) {
        return None;
    }
    *word = default;
    Some(format!("digital_humans_settings.{field} must be one of {}", words.join(", ")))
}

/// Noises that need no sound of their own.
pub(crate) fn noises() -> impl Iterator<Item = BackgroundNoise> {
    BackgroundNoise::ALL.iter().copied().filter(|one| *one != BackgroundNoise::Custom)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn settings_that_nobody_can_be_given_are_told_and_mended() {
        let languages = "random, en, es, pt, ja, tr, hi, ar, ru, zh, ml, fr, yue, vi, de, ko, ad";
        let noises = "random, none, office, talking, traffic, cafe, park, tv, noisy_restaurant, hospital";
        for (field, given, kept, expect) in [
            ("default_name", "", "", None),
            ("default_caller_number", "random", "random", None),
            ("default_caller_number", "+1 (555) 000-1111", "+15550001111", None),
            ("default_caller_number", "12", "random", Some("must be in E.164 format".to_owned())),
            ("default_caller_number", "", "random", Some("must be in E.164 format".to_owned())),
            ("default_language", "ad", "ad", None),
            ("default_language", "klingon", "random", Some(format!("must be one of {languages}"))),
            ("default_background_noise", "random", "random", None),
            ("default_background_noise", "tv", "tv", None),
            ("default_background_noise", "rocket", "none", Some(format!("must be one of {noises}"))),
            ("default_background_noise", "custom", "none", Some(format!("must be one of {noises}"))),
            ("first_message", "Hello?", "Hello?", None),
            ("first_message", "", "ai_generated", Some("must not be empty".to_owned())),
        ] {
            let mut settings: DigitalHumansSettings = serde_json::from_value(json!({ field: given })).expect("it fits");
            let wrong = mend_settings(&mut settings);
            let expect: Vec<String> =
                expect.iter().map(|text| format!("digital_humans_settings.{field} {text}")).collect();
            assert_eq!(wrong, expect, "{field} {given}");
            assert_eq!(json!(settings)[field], Value::from(kept), "{field} {given}");
            assert_eq!(mend_settings(&mut settings), Vec::<String>::new(), "{field} {given}");
        }
    }
}
