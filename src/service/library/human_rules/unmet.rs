//! Settings of a Digital Human that will act otherwise than they say: an accent without a voice, a level of fluency
//! without its list of words. They are told when it is saved, and refused by nobody.

use ringer_human::frequent;
use ringer_model::digital_human::{Accent, DigitalHumanSpec, Fluency, Gender, Language};
use ringer_provider::{Synthesizer, VoiceWanted};

/// Accents that every voice has.
const ANY: [Accent; 2] = [Accent::Multilingual, Accent::Autodetect];

/// Returns a warning for each such setting. `voices`: those of the calls; `None` where this process makes none.
pub(crate) fn unmet(spec: &DigitalHumanSpec, voices: Option<&dyn Synthesizer>) -> Vec<String> {
    if spec.language == Language::Ad {
        return Vec::new();
    }
    words(spec).into_iter().chain(voices.and_then(|voices| accent(spec, voices))).collect()
}

fn words(spec: &DigitalHumanSpec) -> Option<String> {
    let language = spec.language.as_str();
    let is_free = spec.fluency == Fluency::Beginner && !frequent::has_list(language);
    is_free.then(|| {
        format!("fluency: no list of the most frequent words of language {language}: a beginner's words are free, its sentences short")
    })
}

/// Returns a warning about an accent that no voice has, with the voice that speaks instead and the accents that there
/// are. A gender that is drawn may be either.
fn accent(spec: &DigitalHumanSpec, voices: &dyn Synthesizer) -> Option<String> {
    let wanted = spec.accent.filter(|accent| !ANY.contains(accent) && spec.custom_voice_id.is_none())?;
    let genders = spec.gender.map_or(vec![Gender::Female, Gender::Male], |gender| vec![gender]);
    let language = spec.language.as_str();
    let voice = |accent: Accent, gender: Gender| {
        let (accent, gender) = (Some(accent.as_str().to_owned()), Some(gender.as_str().to_owned()));
        voices.find_voice(&VoiceWanted { accent, gender, ..VoiceWanted::of(language) })
    };
    let has = |accent: Accent, gender: Gender| voice(accent, gender).is_ok_and(|voice| voice.substituted.is_none());
    let lacking: Vec<Gender> = genders.iter().copied().filter(|gender| !has(wanted, *gender)).collect();
    let instead = voice(wanted, *lacking.first()?).ok()?;
    let of_gender = match lacking.len() == genders.len() {
        true => String::new(),
        false => format!("{} ", lacking[0].as_str()),
    };
    let others = Accent::ALL.iter().copied().filter(|accent| !ANY.contains(accent));
    let there = others.filter(|accent| genders.iter().any(|gender| has(*accent, *gender)));
    let there: Vec<&str> = there.map(Accent::as_str).collect();
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    let (accent, instead) = (wanted.as_str(), instead.id);
    Some(format!(
        "accent: no {of_gender}voice speaks language {language} with accent {accent}, {instead} speaks in its place; \
         there are: {there}"
    ))
}

#[cfg(test)]
mod tests {
    use ringer_provider::speech::EmbeddedSpeech;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn an_accent_that_no_voice_has_is_told_with_those_that_there_are() {
        let speech = EmbeddedSpeech::new().expect("there is a temporary folder");
        let check = |fields: Value, expect: &[&str]| {
            let spec: DigitalHumanSpec = serde_json::from_value(fields.clone()).expect("it fits");
            assert_eq!(unmet(&spec, Some(&speech)), expect, "{fields}");
        };
        check(json!({"accent": "british"}), &[]);
        check(json!({"accent": "autodetect", "language": "vi"}), &[]);
        check(json!({"accent": "irish", "language": "ad"}), &[]);
        check(json!({"accent": "irish", "custom_voice_id": "slt"}), &[]);
        check(
            json!({"accent": "irish", "gender": "male"}),
            &["accent: no voice speaks language en with accent irish, flite:rms speaks in its place; there are: \
               american, american2, mature, british, scottish"],
        );
        check(
            json!({"accent": "american2"}),
            &["accent: no female voice speaks language en with accent american2, flite:slt speaks in its place; \
               there are: american, american2, mature, british, scottish"],
        );
        let spec = json!({"accent": "british", "language": "vi", "gender": "female"});
        let spec: DigitalHumanSpec = serde_json::from_value(spec).expect("it fits");
        let told = unmet(&spec, Some(&speech)).concat();
        assert!(told.contains("espeak-ng:vi+f") && told.ends_with("there are: none"), "{told}");
    }

    #[test]
    fn a_language_without_frequent_words_is_told() {
        for (language, told) in [("ml", true), ("yue", true), ("ja", false), ("en", false), ("ad", false)] {
            let fields = json!({"language": language, "fluency": "beginner"});
            let spec: DigitalHumanSpec = serde_json::from_value(fields).expect("it fits");
            let warnings = unmet(&spec, None);
            assert_eq!(warnings.len(), usize::from(told), "{warnings:?}");
            assert!(warnings.iter().all(|text| text.starts_with("fluency: ") && text.contains(language)));
        }
    }
}
