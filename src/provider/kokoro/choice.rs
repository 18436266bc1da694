//! Choice of a caller's Kokoro voice, by language, accent, gender and seed.

use ringer_speech::kokoro::KokoroVoice;

use super::{Given, PREFIX, no_such_voice};
use crate::piper::choice::countries;
use crate::prosody::rate_wpm;
use crate::voice::is_female;
use crate::{Failure, Voice, VoiceWanted};

/// Range of pitch factors among the callers of one voice; formant factors and band levels follow.
const PITCH: (f64, f64) = (0.97, 1.03);
const FORMANT: (f64, f64) = (0.98, 1.02);
const BAND_DB: f64 = 2.0;

/// Voices of a folder.
#[derive(Copy, Clone)]
pub(super) struct Shelf<'a> {
    pub known: &'a [KokoroVoice],
    pub given: Given,
    /// Name of the folder.
    pub folder: &'a str,
    /// Beginning of the voices' ids.
    pub prefix: &'a str,
}

/// Returns the voice for these wishes; `None`: no voice here speaks the language, or another program's was asked for.
/// A voice that was named speaks as it is, one that was drawn has a timbre of the caller's own. Who names the folder is
/// given one of its voices.
///
/// # Errors
/// `unknown_voice` for one of these that is not there.
pub(super) fn choose(shelf: Shelf<'_>, wanted: &VoiceWanted) -> Result<Option<Voice>, Failure> {
    let Shelf { known, given, folder, prefix } = shelf;
    let of_language = || known.iter().filter(|voice| voice.tongue.language == wanted.language);
    if let Some(id) = &wanted.custom_voice_id {
        let name = id.strip_prefix(PREFIX).unwrap_or(id);
        let own = name.strip_prefix(folder).and_then(|name| name.strip_prefix('/')).unwrap_or(name);
        return match known.iter().find(|voice| voice.name == own) {
            Some(found) => Ok(Some(plain(found, prefix, wanted))),
            None if name == folder => {
                let among = some(of_language()).unwrap_or_else(|| known.iter().collect());
                Ok(Some(Voice { substituted: None, ..pick(among, prefix, wanted) }))
            }
            None if id.starts_with(PREFIX) => Err(no_such_voice(id, known)),
            None => Ok(None),
        };
    }
    match some(of_language()).filter(|_| given == Given::Always) {
        Some(among) => Ok(Some(pick(among, prefix, wanted))),
        None => Ok(None),
    }
}

/// Returns the voice among these that the wishes and the seed pick.
fn pick(among: Vec<&KokoroVoice>, prefix: &str, wanted: &VoiceWanted) -> Voice {
    // Without a wanted gender, the voices that are there decide which can be drawn.
    let both = [true, false].map(|female| among.iter().any(|voice| voice.female == female));
    let female = match (wanted.gender.as_deref(), both) {
        (None, [true, false]) => true,
        (None, [false, true]) => false,
        _ => is_female(wanted),
    };
    let accent = wanted.accent.as_deref().filter(|accent| !matches!(*accent, "multilingual" | "autodetect"));
    let of_gender = |voice: &&&KokoroVoice| voice.female == female;
    let of_accent =
        |voice: &&&KokoroVoice| accent.is_none_or(|accent| countries(accent).contains(&voice.tongue.country));
    let exact = some(among.iter().filter(of_gender).filter(of_accent).copied());
    let is_exact = exact.is_some();
    let found = exact.or_else(|| some(among.iter().filter(of_gender).copied())).unwrap_or(among);
    let found = found[wanted.seed.stream("kokoro speaker").index(found.len())];
    let mut draw = wanted.seed.stream("kokoro timbre");
    let mut voice = plain(found, prefix, wanted);
    voice.pitch = draw.range(PITCH.0, PITCH.1) as f32;
    voice.formant = draw.range(FORMANT.0, FORMANT.1) as f32;
    voice.bands_db = std::array::from_fn(|_| draw.range(-BAND_DB, BAND_DB) as f32);
    let wish =
        || if found.female == female { accent.unwrap_or_default() } else { if female { "female" } else { "male" } };
    let language = &wanted.language;
    voice.substituted = (!is_exact).then(|| format!("no {} voice for language {language}: {}", wish(), voice.id));
    voice
}

fn some<'k>(voices: impl Iterator<Item = &'k KokoroVoice>) -> Option<Vec<&'k KokoroVoice>> {
    let voices: Vec<&KokoroVoice> = voices.collect();
    (!voices.is_empty()).then_some(voices)
}

fn plain(known: &KokoroVoice, prefix: &str, wanted: &VoiceWanted) -> Voice {
    Voice {
        id: format!("{prefix}{}", known.name),
        language: known.tongue.language.to_owned(),
        rate_wpm: rate_wpm(&wanted.speed),
        ..Voice::default()
    }
}

#[cfg(test)]
mod tests {
    use ringer_media::seed::Seed;
    use ringer_speech::kokoro::voice_of;

    use super::*;

    fn there() -> Vec<KokoroVoice> {
        let names = ["af_heart", "af_sky", "am_adam", "bf_emma", "bm_george", "ef_dora", "em_alex", "ff_siwis"];
        names.map(|name| voice_of(name).expect("it is a name of a voice")).to_vec()
    }

    fn shelf(known: &[KokoroVoice], given: Given) -> Shelf<'_> {
        Shelf { known, given, folder: "kokoro-en", prefix: PREFIX }
    }

    fn wish(language: &str, accent: Option<&str>, gender: Option<&str>, seed: u64) -> VoiceWanted {
        VoiceWanted {
            accent: accent.map(Into::into),
            gender: gender.map(Into::into),
            seed: Seed(seed),
            ..VoiceWanted::of(language)
        }
    }

    #[test]
    fn language_accent_and_gender_pick_the_voice() {
        let there = there();
        let check = |language, accent, gender, expect: Option<&str>, exact: bool| {
            let found =
                choose(shelf(&there, Given::Always), &wish(language, accent, gender, 7)).expect("no voice was named");
            let told = found.as_ref().map(|voice| voice.id.as_str());
            assert_eq!(told, expect, "{language} {accent:?} {gender:?}");
            assert_eq!(
                found.is_none_or(|voice| voice.substituted.is_none()),
                exact,
                "{language} {accent:?} {gender:?}"
            );
        };
        check("en", Some("american"), Some("male"), Some("kokoro:am_adam"), true);
        check("en", Some("british"), Some("female"), Some("kokoro:bf_emma"), true);
        check("en", Some("scottish"), Some("male"), Some("kokoro:bm_george"), true);
        check("es", Some("spanish"), Some("male"), Some("kokoro:em_alex"), true);
        check("es", Some("mexican"), Some("male"), Some("kokoro:em_alex"), false);
        check("fr", None, Some("male"), Some("kokoro:ff_siwis"), false);
        check("fr", None, None, Some("kokoro:ff_siwis"), true);
        check("de", None, None, None, true);
    }

    #[test]
    fn the_seed_draws_the_voice_and_its_timbre() {
        let there = there();
        let of = |seed| {
            let wanted = wish("en", None, Some("female"), seed);
            choose(shelf(&there, Given::Always), &wanted).expect("no voice was named").expect("English has voices")
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1).bands_db, of(2).bands_db);
        let mut drawn: Vec<String> = (0..40).map(|seed| of(seed).id).collect();
        drawn.sort();
        drawn.dedup();
        assert_eq!(drawn, ["kokoro:af_heart", "kokoro:af_sky", "kokoro:bf_emma"]);
        assert_eq!(of(1).fallback, None, "nobody speaks in its place");
    }

    #[test]
    fn a_named_voice_wins_and_speaks_as_it_is() {
        let there = there();
        let check = |id: &str, given: Given, expect: Result<Option<&str>, &str>| {
            let wanted = VoiceWanted { custom_voice_id: Some(id.into()), ..wish("en", None, None, 3) };
            match (choose(shelf(&there, given), &wanted), expect) {
                (Ok(found), Ok(expect)) => {
                    assert_eq!(found.as_ref().map(|voice| voice.id.as_str()), expect, "{id}");
                    assert!(found.is_none_or(|voice| (voice.pitch, voice.bands_db) == (1.0, [0.0; 4])), "{id}");
                }
                (Err(failure), Err(part)) => assert!(failure.message.contains(part), "{}", failure.message),
                (found, _) => panic!("{id}: {found:?}"),
            }
        };
        check("af_sky", Given::Always, Ok(Some("kokoro:af_sky")));
        check("kokoro:bm_george", Given::ByName, Ok(Some("kokoro:bm_george")));
        check("flite:slt", Given::Always, Ok(None));
        check("kokoro:nobody", Given::ByName, Err("no Kokoro voice kokoro:nobody is there: there are af_heart, "));
        check("kokoro:kokoro-en/bf_emma", Given::ByName, Ok(Some("kokoro:bf_emma")));
        for id in ["kokoro-en", "kokoro:kokoro-en"] {
            let wanted =
                VoiceWanted { custom_voice_id: Some(id.into()), ..wish("es", Some("mexican"), Some("male"), 3) };
            let found = choose(shelf(&there, Given::ByName), &wanted).expect("it is there").expect("it has voices");
            assert_eq!((found.id.as_str(), found.substituted), ("kokoro:em_alex", None), "{id}");
        }
        let unnamed = choose(shelf(&there, Given::ByName), &wish("en", None, None, 3));
        assert_eq!(unnamed, Ok(None), "who names none gets another program's");
    }
}
