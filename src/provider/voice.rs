//! Choice of a caller's voice: language, accent and gender select it, the seed makes it the caller's own.

use super::prosody::{Range, rate_wpm};
use super::{Failure, Voice, VoiceWanted, espeak, flite};

/// Longest text in bytes.
pub(super) const TEXT_BYTES_MAX: usize = 8000;
/// Least number of words over which the speed is measured and corrected.
const MEASURED_WORDS: usize = 4;

/// Most gain of a band of a caller's equaliser, either way, in dB.
const BAND_DB: f64 = 4.0;

/// Returns the range of the callers of the voice with this id.
fn range_of(id: &str) -> Range {
    id.strip_prefix("flite:").and_then(flite::voice).map_or(espeak::RANGE, |voice| voice.range)
}

/// Returns a factor between `low` and `high`, even in semitones.
fn between((low, high): (f32, f32), share: f64) -> f32 {
    low * (high / low).powf(share as f32)
}

/// True for a female voice: the wanted gender, drawn when none is.
pub(super) fn is_female(wanted: &VoiceWanted) -> bool {
    let drawn = wanted.seed.stream("voice").unit() < 0.5;
    wanted.gender.as_deref().map_or(drawn, |gender| gender == "female")
}

/// Returns the number of words of a text whose speed can be told from its speech, in a language that counts words.
/// Texts with digits cannot: one written word is many spoken ones.
pub(super) fn measurable_words(language: &str, text: &str) -> Option<usize> {
    let words = text.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count();
    let plain = espeak::counts_words(language) && !text.contains(char::is_numeric);
    (words >= MEASURED_WORDS && plain).then_some(words)
}

/// Returns the nearest voice: exact, else same language and gender, else same language; a substitution is told in
/// words. Errors: `unknown_voice`, `no_voice_for_language`.
pub(super) fn choose(wanted: &VoiceWanted) -> Result<Voice, Failure> {
    let mut draw = wanted.seed.stream("voice");
    // The stream's first draw is the gender's.
    draw.unit();
    let female = is_female(wanted);
    let variant = draw.index(espeak::FEMALE.len());
    let bands_db = std::array::from_fn(|_| draw.range(-BAND_DB, BAND_DB) as f32);
    let (pitch, formant) = (draw.unit(), draw.unit());
    let accent = wanted.accent.as_deref();
    let (id, exact) = match (&wanted.custom_voice_id, wanted.language.as_str()) {
        (Some(id), _) => (custom(id)?, true),
        (None, "en") => english(accent, female, variant),
        (None, language) => {
            let (name, exact) = espeak::language(language, accent).ok_or_else(|| Failure {
                code: "no_voice_for_language",
                message: format!("the synthesizer has no voice for language {language}"),
            })?;
            (spoken_by(name, female, variant), exact)
        }
    };
    let range = range_of(&id);
    let (mut pitch, mut formant) = (between(range.pitch, pitch), between(range.formant, formant));
    if accent == Some("mature") {
        pitch *= 0.92;
        formant = (formant * 0.98).max(range.formant.0);
    }
    let substituted =
        (!exact).then(|| format!("no {} voice for language {}: {id}", accent.unwrap_or_default(), wanted.language));
    let (language, rate_wpm) = (wanted.language.clone(), rate_wpm(&wanted.speed));
    Ok(Voice { id, language, rate_wpm, pitch, formant, bands_db, substituted, ..Voice::default() })
}

fn english(accent: Option<&str>, female: bool, variant: usize) -> (String, bool) {
    let flite = |name: &str| format!("flite:{name}");
    let american = || flite(if female { "slt" } else { "rms" });
    match accent {
        None | Some("american" | "multilingual" | "autodetect" | "mature") => (american(), true),
        Some("american2") if !female => (flite("kal16"), true),
        Some("scottish") if !female => (flite("awb"), true),
        Some("british" | "scottish") => {
            let (name, exact) = espeak::language("en", accent).expect("English is in the table");
            (spoken_by(name, female, variant), exact)
        }
        Some(_) => (american(), false),
    }
}

/// Returns the voice of the other program that stands in for this one; `None` for a language that one program alone
/// speaks.
pub(super) fn substitute(voice: &Voice) -> Option<Voice> {
    let (program, name) = voice.id.split_once(':')?;
    let id = match (program, voice.language.as_str()) {
        ("flite", "en") => spoken_by("en", name == "slt", 0),
        ("espeak-ng", "en") => {
            let variant = name.split_once('+').map_or("", |(_, variant)| variant);
            format!("flite:{}", if espeak::FEMALE.contains(&variant) { "slt" } else { "rms" })
        }
        _ => return None,
    };
    let range = range_of(&id);
    let (pitch, formant) = (voice.pitch.clamp(range.pitch.0, range.pitch.1), voice.formant);
    Some(Voice { id, pitch, formant: formant.clamp(range.formant.0, range.formant.1), ..voice.clone() })
}

fn spoken_by(name: &str, female: bool, variant: usize) -> String {
    let variants = if female { espeak::FEMALE } else { espeak::MALE };
    format!("espeak-ng:{name}+{}", variants[variant])
}

fn custom(id: &str) -> Result<String, Failure> {
    let unknown = || Failure {
        code: "unknown_voice",
        message: format!(
            "no voice of that id: give flite:NAME ({}) or espeak-ng:NAME+VARIANT",
            flite::VOICES.each_ref().map(|voice| voice.name).join(", ")
        ),
    };
    let name = id.strip_prefix("flite:").unwrap_or(id);
    if flite::voice(name).is_some() {
        return Ok(format!("flite:{name}"));
    }
    let name = id.strip_prefix("espeak-ng:").and_then(espeak::custom).ok_or_else(unknown)?;
    Ok(format!("espeak-ng:{name}"))
}

#[cfg(test)]
mod tests {
    use ringer_media::seed::Seed;

    use super::*;

    fn voice_wanted(language: &str, accent: Option<&str>, gender: &str) -> VoiceWanted {
        VoiceWanted {
            accent: accent.map(Into::into),
            gender: Some(gender.into()),
            seed: Seed(7),
            ..VoiceWanted::of(language)
        }
    }

    #[test]
    fn language_accent_and_gender_pick_the_voice() {
        let check = |language, accent, gender, start: &str, substituted| {
            let voice = choose(&voice_wanted(language, accent, gender)).expect("there is a voice");
            assert!(voice.id.starts_with(start), "{language} {accent:?} {gender}: {}", voice.id);
            assert_eq!(voice.substituted.is_some(), substituted, "{language} {accent:?} {gender}");
        };
        check("en", None, "female", "flite:slt", false);
        check("en", Some("american"), "male", "flite:rms", false);
        check("en", Some("american2"), "male", "flite:kal16", false);
        check("en", Some("american2"), "female", "flite:slt", true);
        check("en", Some("scottish"), "male", "flite:awb", false);
        check("en", Some("scottish"), "female", "espeak-ng:en-gb-scotland+f", false);
        check("en", Some("british"), "female", "espeak-ng:en+f", false);
        check("en", Some("irish"), "male", "flite:rms", true);
        check("es", Some("mexican"), "male", "espeak-ng:es-419+m", false);
        check("fr", Some("irish"), "female", "espeak-ng:fr+f", true);
        check("zh", None, "female", "espeak-ng:cmn+f", false);
    }

    #[test]
    fn a_wish_that_has_no_voice_is_told_with_the_voice_instead() {
        let check = |language, accent, gender, start: &str| {
            let voice = choose(&voice_wanted(language, Some(accent), gender)).expect("there is a voice");
            assert!(voice.id.starts_with(start), "the same language and gender: {}", voice.id);
            let warning = format!("no {accent} voice for language {language}: {}", voice.id);
            assert_eq!(voice.substituted, Some(warning));
        };
        check("en", "irish", "male", "flite:rms");
        check("en", "mexican", "female", "flite:slt");
        check("fr", "british", "female", "espeak-ng:fr+f");
        check("de", "american", "male", "espeak-ng:de+m");
        check("es", "portuguese", "female", "espeak-ng:es+f");
    }

    #[test]
    fn another_program_speaks_english_in_a_voice_of_the_same_gender() {
        let check = |language, accent, gender, expect: Option<&str>| {
            let voice = choose(&voice_wanted(language, accent, gender)).expect("there is a voice");
            let other = substitute(&voice);
            assert_eq!(other.as_ref().map(|other| other.id.as_str()), expect, "{}", voice.id);
            let Some(other) = other else { return };
            assert_eq!((other.rate_wpm, other.language), (voice.rate_wpm, voice.language));
            let range = range_of(&other.id);
            assert!((range.pitch.0..=range.pitch.1).contains(&other.pitch), "{}", other.pitch);
            assert!((range.formant.0..=range.formant.1).contains(&other.formant), "{}", other.formant);
        };
        check("en", None, "female", Some("espeak-ng:en+f1"));
        check("en", None, "male", Some("espeak-ng:en+m1"));
        check("en", Some("british"), "female", Some("flite:slt"));
        check("en", Some("british"), "male", Some("flite:rms"));
        check("de", None, "male", None);
    }

    #[test]
    fn a_custom_voice_wins_and_cannot_carry_options() {
        let check = |id: &str, expect: Option<&str>| {
            let asked = VoiceWanted { custom_voice_id: Some(id.into()), ..voice_wanted("de", None, "male") };
            assert_eq!(choose(&asked).ok().map(|voice| voice.id).as_deref(), expect, "{id}");
        };
        check("slt", Some("flite:slt"));
        check("flite:awb", Some("flite:awb"));
        check("espeak-ng:en-gb+f3", Some("espeak-ng:en+f3"));
        check("espeak-ng:--path=/etc", None);
        check("espeak-ng:../x", None);
        check("nobody", None);
    }

    #[test]
    fn a_missing_gender_is_drawn_from_the_seed() {
        let female = |seed| {
            let asked = VoiceWanted { gender: None, seed: Seed(seed), ..voice_wanted("en", None, "") };
            choose(&asked).expect("English has voices").id == "flite:slt"
        };
        let women = (0..200).filter(|&seed| female(seed)).count();
        assert!((70..130).contains(&women), "{women} of 200");
    }
}
