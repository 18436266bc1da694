//! The folders of neural models: which there are and what each is.

use std::path::{Path, PathBuf};

use ringer_speech::kokoro;
use ringer_speech::whisper::{TOKENIZER, WEIGHTS};

/// Most folders that are looked at.
const FOLDERS_MAX: usize = 1000;

/// A kind of model.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Hears: weights and a vocabulary.
    Whisper,
    /// Speaks: voices, each with its settings.
    Piper,
    /// Speaks: one network and its voices.
    Kokoro,
}

impl Kind {
    /// Returns the name as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Whisper => "whisper",
            Kind::Piper => "piper",
            Kind::Kokoro => "kokoro",
        }
    }
}

/// One model in its folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// Name of its folder.
    pub name: String,
    pub kind: Kind,
    pub folder: PathBuf,
}

/// Returns the kind of the model in a folder; `None` when there is none.
pub fn kind(folder: &Path) -> Option<Kind> {
    let has = |name: &str| folder.join(name).is_file();
    if WEIGHTS.iter().any(|name| has(name)) && has(TOKENIZER) {
        return Some(Kind::Whisper);
    }
    if has(kokoro::NETWORK) && !kokoro::voices(folder).is_empty() {
        return Some(Kind::Kokoro);
    }
    (!piper_voices(folder).is_empty()).then_some(Kind::Piper)
}

/// Returns the names of the voices in a folder, in the order of the alphabet.
pub fn voices(folder: &Path) -> Vec<String> {
    match kind(folder) {
        Some(Kind::Kokoro) => kokoro::voices(folder).into_iter().map(|voice| voice.name).collect(),
        _ => piper_voices(folder),
    }
}

/// Returns the names of the Piper voices in a folder: `X` of each `X.onnx` with its `X.onnx.json`.
fn piper_voices(folder: &Path) -> Vec<String> {
    let names = names(folder);
    let settings = |voice: &&str| names.iter().any(|name| name.strip_suffix(".onnx.json") == Some(*voice));
    names.iter().filter_map(|name| name.strip_suffix(".onnx")).filter(settings).map(str::to_owned).collect()
}

/// Returns the models in folders of folders: those of the first one in the order of the alphabet, then those of the
/// next. Of several with one name the first counts.
pub fn list(places: &[PathBuf]) -> Vec<Model> {
    let mut found: Vec<Model> = Vec::new();
    for place in places {
        // Names that begin with a dot are of models that are being added.
        for name in names(place).into_iter().filter(|name| !name.starts_with('.')) {
            let folder = place.join(&name);
            if let Some(kind) = kind(&folder).filter(|_| found.iter().all(|model| model.name != name)) {
                found.push(Model { name, kind, folder });
            }
        }
    }
    found
}

/// Returns the models of one kind in the first of these places that has any.
pub fn of_kind(places: &[PathBuf], kind: Kind) -> Vec<Model> {
    let of =
        |place: &PathBuf| list(std::slice::from_ref(place)).into_iter().filter(|model| model.kind == kind).collect();
    places.iter().map(of).find(|found: &Vec<Model>| !found.is_empty()).unwrap_or_default()
}

/// Returns the names of places, for a message.
pub fn join_names(places: &[PathBuf]) -> String {
    places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(" and ")
}

/// Returns the folder of the Whisper model of this name, or the first one.
///
/// # Errors
/// Names what is not there.
pub fn whisper(places: &[PathBuf], wanted: Option<&str>) -> Result<PathBuf, String> {
    let mut found = list(places).into_iter().filter(|model| model.kind == Kind::Whisper);
    let model = match wanted {
        Some(wanted) if Path::new(wanted).is_absolute() => return Ok(PathBuf::from(wanted)),
        Some(wanted) => found.find(|model| model.name == wanted),
        None => of_kind(places, Kind::Whisper).into_iter().next(),
    };
    model.map(|model| model.folder).ok_or_else(|| match wanted {
        Some(wanted) => format!("no Whisper model {wanted} in {}: `ringer models add` brings one", join_names(places)),
        None => format!("no Whisper model in {}: `ringer models add` brings one", join_names(places)),
    })
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().take(FOLDERS_MAX).flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// Returns the folder of a model that `make speech-models` brings.
#[cfg(test)]
pub fn test_model(name: &str) -> PathBuf {
    let folder = ringer_base::config::test_models().join(name);
    assert!(folder.is_dir(), "{} is missing: `make speech-models` brings it", folder.display());
    folder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn models_are_known_by_their_files() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let put = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("writable");
            std::fs::write(path, "").expect("writable");
        };
        for name in [
            "b-base/model.safetensors",
            "b-base/tokenizer.json",
            "tiny.en/model.bin",
            "tiny.en/tokenizer.json",
            "half/model.bin",
            "joe/en_US-joe.onnx",
            "joe/en_US-joe.onnx.json",
            "alone/x.onnx",
            "kokoro/model.onnx",
            "kokoro/voices/bf_emma.bin",
            "kokoro/voices/af_heart.bin",
            "mute/model.onnx",
            ".new/model.bin",
            ".new/tokenizer.json",
            "file",
        ] {
            put(name);
        }
        let models: Vec<(String, Kind)> =
            list(&[folder.path().to_owned()]).into_iter().map(|model| (model.name, model.kind)).collect();
        let expect =
            [("b-base", Kind::Whisper), ("joe", Kind::Piper), ("kokoro", Kind::Kokoro), ("tiny.en", Kind::Whisper)];
        assert_eq!(models, expect.map(|(name, kind)| (name.to_owned(), kind)));
        assert_eq!(voices(&folder.path().join("joe")), ["en_US-joe"]);
        assert_eq!(voices(&folder.path().join("kokoro")), ["af_heart", "bf_emma"]);
        let places = [PathBuf::from("/nowhere"), folder.path().to_owned()];
        assert_eq!(whisper(&places, None), Ok(folder.path().join("b-base")));
        assert_eq!(whisper(&places, Some("tiny.en")), Ok(folder.path().join("tiny.en")));
        let why = whisper(&places, Some("joe")).expect_err("it is no recognizer");
        assert!(why.starts_with("no Whisper model joe in /nowhere and /"), "{why}");
        assert_eq!(list(&places[..1]), []);
    }

    #[test]
    fn the_first_place_that_has_a_kind_wins() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let place = |name: &str| folder.path().join(name);
        for name in ["own/zoe/x.onnx", "own/zoe/x.onnx.json", "shared/joe/x.onnx", "shared/joe/x.onnx.json"] {
            std::fs::create_dir_all(place(name).parent().expect("it has one")).expect("writable");
            std::fs::write(place(name), "").expect("writable");
        }
        for name in ["shared/a/model.bin", "shared/a/tokenizer.json", "shared/zoe/x.onnx", "shared/zoe/x.onnx.json"] {
            std::fs::create_dir_all(place(name).parent().expect("it has one")).expect("writable");
            std::fs::write(place(name), "").expect("writable");
        }
        let places = [place("own"), place("shared")];
        let names = |found: Vec<Model>| found.into_iter().map(|model| model.folder).collect::<Vec<_>>();
        assert_eq!(names(of_kind(&places, Kind::Piper)), [place("own/zoe")]);
        assert_eq!(whisper(&places, None), Ok(place("shared/a")));
        assert_eq!(names(list(&places)), [place("own/zoe"), place("shared/a"), place("shared/joe")]);
    }
}
