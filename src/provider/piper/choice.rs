//! Choice of a caller's Piper voice among the installed ones, by language, accent and gender.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use ringer_speech::piper::settings;

use super::PREFIX;
use crate::models::voices;
use crate::prosody::rate_wpm;
use crate::voice::is_female;
use crate::{Failure, Voice, VoiceWanted};

/// Range of pitch factors among the callers of one voice; formant factors and band levels follow.
const PITCH: (f64, f64) = (0.95, 1.06);
const FORMANT: (f64, f64) = (0.97, 1.03);
const BAND_DB: f64 = 2.5;
/// Speakers of one voice that callers get.
const SPEAKERS_MAX: usize = 1000;

/// Published voices by the name between their dashes: their settings do not tell the gender.
const FEMALE: [&str; 24] = [
    "amy",
    "kathleen",
    "lessac",
    "kristin",
    "hfc_female",
    "ljspeech",
    "jenny_dioco",
    "alba",
    "cori",
    "eva_k",
    "ramona",
    "kerstin",
    "siwis",
    "paola",
    "irina",
    "aru_female",
    "southern_english_female",
    "lisa",
    "daniela",
    "huayan",
    "dfki",
    "berta",
    "marylux",
    "lili",
];
const MALE: [&str; 24] = [
    "joe",
    "ryan",
    "john",
    "norman",
    "kusal",
    "danny",
    "alan",
    "northern_english_male",
    "hfc_male",
    "thorsten",
    "karlsson",
    "gilles",
    "tom",
    "davefx",
    "carlfm",
    "riccardo",
    "denis",
    "dmitri",
    "ruslan",
    "bryce",
    "sam",
    "faber",
    "cadu",
    "jeff",
];

/// A speaker of a voice.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Known {
    pub path: PathBuf,
    /// Bytes of the file, which tells one version from another.
    pub bytes: u64,
    /// Name of the voice: `en_US-joe-medium`.
    pub name: String,
    /// `None` in a voice of one speaker.
    pub speaker_name: Option<String>,
    pub speaker: i32,
    /// Code of its language: `en`.
    pub language: String,
    /// `US`; empty where it is not told.
    pub country: String,
    /// `None` where nothing tells it.
    pub female: Option<bool>,
    /// Keys of the settings that name it.
    pub named: Vec<String>,
    /// True if only callers who name it get it.
    pub is_by_name: bool,
}

impl Known {
    /// Returns the id of the voice: `piper:en_US-joe-medium`, with `#` and the speaker in a voice of several.
    pub(crate) fn id(&self) -> String {
        match &self.speaker_name {
            Some(speaker) => format!("{PREFIX}{}#{speaker}", self.name),
            None => format!("{PREFIX}{}", self.name),
        }
    }

    /// Returns the name of the folder that the voice is in.
    fn folder(&self) -> &str {
        let folder = self.path.parent().and_then(Path::file_name);
        folder.and_then(OsStr::to_str).unwrap_or_default()
    }
}

/// Returns the speakers in these folders.
///
/// # Errors
/// Names the voice whose settings cannot be read.
pub(crate) fn voices_in(folders: &[PathBuf], named: &BTreeMap<String, String>) -> Result<Vec<Known>, String> {
    let mut known = Vec::new();
    for folder in folders {
        for voice in voices(folder) {
            let path = folder.join(format!("{voice}.onnx"));
            let settings = settings(&path).map_err(|why| format!("a voice cannot be used: {why}"))?;
            let bytes = std::fs::metadata(&path).map_or(0, |file| file.len());
            let (language, country) = settings.language.split_once(['_', '-']).unwrap_or((&settings.language, ""));
            let speakers: Vec<(Option<String>, i32)> = match settings.speakers.is_empty() {
                true => vec![(None, 0)],
                false => settings.speakers.iter().map(|(name, number)| (Some(name.clone()), *number)).collect(),
            };
            for (speaker_name, speaker) in speakers.into_iter().take(SPEAKERS_MAX) {
                let mut one = Known {
                    female: gender(&voice, speaker_name.as_deref()),
                    path: path.clone(),
                    bytes,
                    name: voice.clone(),
                    speaker_name,
                    speaker,
                    language: language.to_lowercase(),
                    country: country.to_uppercase(),
                    named: Vec::new(),
                    is_by_name: false,
                };
                let id = one.id();
                let names = |id: &str| id == one.name || PREFIX.to_owned() + id == one.id() || id == one.id();
                let keys = named
                    .iter()
                    .filter(|(_, name_of_voice)| names(name_of_voice) || **name_of_voice == id)
                    .map(|(key, _)| key.clone());
                one.named = keys.collect();
                known.push(one);
            }
        }
    }
    Ok(known)
}

/// Tells if a voice is a woman's, by its name and its speaker's.
fn gender(voice: &str, speaker: Option<&str>) -> Option<bool> {
    let speaker = speaker.unwrap_or_default().to_lowercase();
    let name = voice.split('-').nth(1).unwrap_or(voice).to_lowercase();
    for word in [speaker.as_str(), name.as_str()] {
        if word.contains("female") || FEMALE.contains(&word) {
            return Some(true);
        }
        if word.contains("male") || MALE.contains(&word) {
            return Some(false);
        }
    }
    None
}

/// Countries of an accent.
pub(crate) fn countries(accent: &str) -> &'static [&'static str] {
    match accent {
        "american" | "american2" | "mature" => &["US"],
        "british" | "scottish" => &["GB"],
        "australian" => &["AU"],
        "irish" => &["IE"],
        "indian" => &["IN"],
        "spanish" => &["ES"],
        "mexican" => &["MX"],
        "portuguese" => &["PT"],
        "french" => &["FR"],
        "german" => &["DE"],
        "turkish" => &["TR"],
        "russian" => &["RU"],
        "chinese" => &["CN"],
        "japanese" => &["JP"],
        "korean" => &["KR"],
        "hindi" => &["IN"],
        _ => &[],
    }
}

/// Returns the voice for these wishes; `None`: no voice here fits language and gender, or another program's was asked
/// for.
///
/// # Errors
/// `unknown_voice` for one of these that is not there.
pub(crate) fn choose<'k>(known: &'k [Known], wanted: &VoiceWanted) -> Result<Option<(&'k Known, Voice)>, Failure> {
    if let Some(id) = &wanted.custom_voice_id {
        return match find_named(known, id, wanted) {
            Some(found) => Ok(Some((found, voice(found, wanted, None)))),
            None if id.starts_with(PREFIX) => {
                let names: Vec<String> = known.iter().take(20).map(Known::id).collect();
                let message = format!("no Piper voice {id:.60} is there: there are {}", names.join(", "));
                Err(Failure { code: "unknown_voice", message })
            }
            None => Ok(None),
        };
    }
    let accent = wanted.accent.as_deref().filter(|accent| !matches!(*accent, "multilingual" | "autodetect"));
    let of_language = || known.iter().filter(|known| known.language == wanted.language && !known.is_by_name);
    // Without a wanted gender, the installed voices decide which can be drawn.
    let both = [true, false].map(|female| of_language().any(|known| known.female.is_none_or(|is| is == female)));
    let female = match (wanted.gender.as_deref(), both) {
        (None, [true, false]) => true,
        (None, [false, true]) => false,
        _ => is_female(wanted),
    };
    let gender = if female { "female" } else { "male" };
    let language = &wanted.language;
    let keys = [
        accent.map(|accent| format!("{language}-{accent}-{gender}")),
        accent.map(|accent| format!("{language}-{accent}")),
        Some(format!("{language}-{gender}")),
    ];
    let exact = |known: &&Known| accent.is_none_or(|accent| countries(accent).contains(&known.country.as_str()));
    let fits = |known: &&Known| known.female.is_none_or(|is| is == female);
    let named: Vec<&Known> = keys
        .iter()
        .flatten()
        .find_map(|key| some(known.iter().filter(|known| known.named.contains(key))))
        .unwrap_or_default();
    let (among, is_exact) = match named.is_empty() {
        false => (named, true),
        true => match some(of_language().filter(fits).filter(exact)) {
            Some(among) => (among, true),
            None => (of_language().filter(fits).collect(), false),
        },
    };
    if among.is_empty() {
        return Ok(None);
    }
    // Voices of a stated gender come before those of an unknown one.
    let of_known_gender: Vec<&Known> = among.iter().copied().filter(|known| known.female.is_some()).collect();
    let among = if of_known_gender.is_empty() { among } else { of_known_gender };
    let at = wanted.seed.stream("piper speaker").index(among.len());
    let found = among[at];
    let substituted = (!is_exact)
        .then(|| format!("no {} voice for language {language}: {}", accent.unwrap_or_default(), found.id()))
        .or_else(|| {
            let unknown = found.female.is_none() && found.named.is_empty() && wanted.gender.is_some();
            unknown.then(|| format!("it is not known if {} is {gender}", found.id()))
        });
    Ok(Some((found, voice(found, wanted, substituted))))
}

/// Returns the speaker that an id names: a voice with its speaker, else one of a voice's or a folder's. Of several, the
/// wishes pick one, as far as one fits.
fn find_named<'k>(known: &'k [Known], id: &str, wanted: &VoiceWanted) -> Option<&'k Known> {
    let name = id.strip_prefix(PREFIX).unwrap_or(id);
    if let Some(exact) = known.iter().find(|known| known.id().strip_prefix(PREFIX) == Some(name)) {
        return Some(exact);
    }
    let of_voice = some(known.iter().filter(|known| known.name == name));
    let mut among = of_voice.or_else(|| some(known.iter().filter(|known| known.folder() == name)))?;
    let accent = wanted.accent.as_deref().map(countries).unwrap_or_default();
    let female = is_female(wanted);
    let wishes: [&dyn Fn(&&Known) -> bool; 3] =
        [&|known| known.language == wanted.language, &|known| accent.contains(&known.country.as_str()), &|known| {
            known.female.is_none_or(|is| is == female)
        }];
    for fits in wishes {
        among = some(among.iter().copied().filter(fits)).unwrap_or(among);
    }
    Some(among[wanted.seed.stream("piper speaker").index(among.len())])
}

fn some<'k>(known: impl Iterator<Item = &'k Known>) -> Option<Vec<&'k Known>> {
    let known: Vec<&Known> = known.collect();
    (!known.is_empty()).then_some(known)
}

fn voice(known: &Known, wanted: &VoiceWanted, substituted: Option<String>) -> Voice {
    let mut draw = wanted.seed.stream("piper timbre");
    let pitch = draw.range(PITCH.0, PITCH.1) as f32;
    let formant = draw.range(FORMANT.0, FORMANT.1) as f32;
    let bands_db = std::array::from_fn(|_| draw.range(-BAND_DB, BAND_DB) as f32);
    Voice {
        id: known.id(),
        language: wanted.language.clone(),
        rate_wpm: rate_wpm(&wanted.speed),
        pitch,
        formant,
        bands_db,
        substituted,
        ..Voice::default()
    }
}

#[cfg(test)]
mod tests {
    use ringer_media::seed::Seed;

    use super::*;

    fn one(name: &str, speaker: Option<&str>, number: i32) -> Known {
        let (language, country) = name.split('-').next().and_then(|code| code.split_once('_')).expect("a code");
        Known {
            path: PathBuf::from(name),
            bytes: 1,
            name: name.to_owned(),
            speaker_name: speaker.map(str::to_owned),
            speaker: number,
            language: language.to_owned(),
            country: country.to_owned(),
            female: gender(name, speaker),
            named: Vec::new(),
            is_by_name: false,
        }
    }

    fn there() -> Vec<Known> {
        vec![
            one("en_US-joe-medium", None, 0),
            one("en_US-amy-low", None, 0),
            one("en_GB-alan-low", None, 0),
            one("de_DE-thorsten-high", None, 0),
            one("es_ES-two-low", Some("female1"), 0),
            one("es_ES-two-low", Some("male1"), 1),
            one("fr_FR-x-low", None, 0),
            Known { is_by_name: true, ..one("en_US-lj-medium", None, 0) },
        ]
    }

    #[test]
    fn language_accent_and_gender_pick_the_voice() {
        let there = there();
        let check = |language: &str, accent: Option<&str>, gender: Option<&str>, expect: Option<&str>, exact: bool| {
            let wanted = VoiceWanted {
                accent: accent.map(Into::into),
                gender: gender.map(Into::into),
                seed: Seed(7),
                ..VoiceWanted::of(language)
            };
            let found = choose(&there, &wanted).expect("no voice was named");
            assert_eq!(found.as_ref().map(|(_, voice)| voice.id.as_str()), expect, "{language} {accent:?} {gender:?}");
            if let Some((_, voice)) = found {
                assert_eq!(voice.substituted.is_none(), exact, "{:?}", voice.substituted);
            }
        };
        check("en", Some("american"), Some("female"), Some("piper:en_US-amy-low"), true);
        check("en", Some("british"), Some("male"), Some("piper:en_GB-alan-low"), true);
        check("en", Some("british"), Some("female"), Some("piper:en_US-amy-low"), false);
        check("es", None, Some("male"), Some("piper:es_ES-two-low#male1"), true);
        check("es", Some("mexican"), Some("female"), Some("piper:es_ES-two-low#female1"), false);
        // Nobody of that gender: the installed program has one.
        check("de", None, Some("female"), None, true);
        check("de", None, None, Some("piper:de_DE-thorsten-high"), true);
        check("fr", None, Some("female"), Some("piper:fr_FR-x-low"), false);
        check("ru", None, None, None, true);
    }

    #[test]
    fn a_named_voice_wins() {
        let mut there = there();
        for (name, folder) in [("en_US-lj-medium", "ljs"), ("es_ES-two-low", "voces")] {
            let known = there.iter_mut().filter(|known| known.name == name);
            known.for_each(|known| known.path = PathBuf::from(format!("models/{folder}/{name}.onnx")));
        }
        let check = |id: &str, expect: Result<Option<&str>, &str>| {
            let gender = Some("female".to_owned());
            let wanted = VoiceWanted { custom_voice_id: Some(id.into()), gender, ..VoiceWanted::of("en") };
            let found = choose(&there, &wanted);
            match (found, expect) {
                (Ok(found), Ok(expect)) => assert_eq!(found.map(|(_, voice)| voice.id).as_deref(), expect, "{id}"),
                (Err(failure), Err(part)) => assert!(failure.message.contains(part), "{}", failure.message),
                (found, _) => panic!("{id}: {found:?}"),
            }
        };
        check("en_US-joe-medium", Ok(Some("piper:en_US-joe-medium")));
        check("ljs", Ok(Some("piper:en_US-lj-medium")));
        check("piper:ljs", Ok(Some("piper:en_US-lj-medium")));
        check("voces", Ok(Some("piper:es_ES-two-low#female1")));
        check("piper:es_ES-two-low#male1", Ok(Some("piper:es_ES-two-low#male1")));
        check("flite:slt", Ok(None));
        check("piper:nobody", Err("no Piper voice piper:nobody is there: there are piper:en_US-joe-medium, "));
    }

    #[test]
    fn callers_of_one_voice_differ() {
        let there = there();
        let of = |seed| {
            let wanted = VoiceWanted { gender: Some("male".into()), seed: Seed(seed), ..VoiceWanted::of("de") };
            choose(&there, &wanted).expect("no voice was named").expect("there is one").1
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1).bands_db, of(2).bands_db);
    }
}
