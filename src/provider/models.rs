//! The folders of neural models: which there are and what each is.

use std::path::{Path, PathBuf};

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
}

impl Kind {
    /// Returns the name as users write it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Whisper => "whisper",
            Kind::Piper => "piper",
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
    (!voices(folder).is_empty()).then_some(Kind::Piper)
}

/// Returns the names of the voices in a folder: `X` of each `X.onnx` with its `X.onnx.json`, in the order of the
/// alphabet.
pub fn voices(folder: &Path) -> Vec<String> {
    let names = names(folder);
    let settings = |voice: &&str| names.iter().any(|name| name.strip_suffix(".onnx.json") == Some(*voice));
    names.iter().filter_map(|name| name.strip_suffix(".onnx")).filter(settings).map(str::to_owned).collect()
}

/// Returns the models in a folder of folders, in the order of the alphabet.
pub fn list(models: &Path) -> Vec<Model> {
    let model = |name: String| {
        let folder = models.join(&name);
        kind(&folder).map(|kind| Model { name, kind, folder })
    };
    // Names that begin with a dot are of models that are being added.
    names(models).into_iter().filter(|name| !name.starts_with('.')).filter_map(model).collect()
}

/// Returns the folder of the Whisper model of this name, or the first one.
///
/// # Errors
/// Names what is not there.
pub fn whisper(models: &Path, wanted: Option<&str>) -> Result<PathBuf, String> {
    let mut found = list(models).into_iter().filter(|model| model.kind == Kind::Whisper);
    let model = match wanted {
        Some(wanted) if Path::new(wanted).is_absolute() => return Ok(PathBuf::from(wanted)),
        Some(wanted) => found.find(|model| model.name == wanted),
        None => found.next(),
    };
    model.map(|model| model.folder).ok_or_else(|| match wanted {
        Some(wanted) => format!("no Whisper model {wanted} in {}: `ringer models add` brings one", models.display()),
        None => format!("no Whisper model in {}: `ringer models add` brings one", models.display()),
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
            ".new/model.bin",
            ".new/tokenizer.json",
            "file",
        ] {
            put(name);
        }
        let told: Vec<(String, Kind)> = list(folder.path()).into_iter().map(|model| (model.name, model.kind)).collect();
        let expect = [("b-base", Kind::Whisper), ("joe", Kind::Piper), ("tiny.en", Kind::Whisper)];
        assert_eq!(told, expect.map(|(name, kind)| (name.to_owned(), kind)));
        assert_eq!(voices(&folder.path().join("joe")), ["en_US-joe"]);
        assert_eq!(whisper(folder.path(), None), Ok(folder.path().join("b-base")));
        assert_eq!(whisper(folder.path(), Some("tiny.en")), Ok(folder.path().join("tiny.en")));
        let why = whisper(folder.path(), Some("joe")).expect_err("it is no recognizer");
        assert!(why.starts_with("no Whisper model joe in "), "{why}");
        assert_eq!(list(Path::new("/nowhere")), []);
    }
}
