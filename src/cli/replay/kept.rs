//! An earlier run, as its folder has it: its calls with their seeds, and the files that they were made of.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Args;
use crate::cli::run::arms::split_by_lines;
use crate::cli::run::plan::Plan;
use crate::cli::run::{self, Stop};
use crate::suite::Played;
use crate::suite::lines::read_all;
use crate::suite::pairs::Pair;

/// Name of the file of results in the folder of a run.
const RESULTS: &str = "results.jsonl";
/// Largest file that is read, in bytes.
const BYTES_MAX: u64 = 256 << 20;

/// The calls that are played again.
pub(super) struct Original {
    /// Folder of the earlier run; `None`: it is on a server.
    pub folder: Option<PathBuf>,
    /// Calls of the earlier run.
    pub recorded: Vec<Played>,
    /// Calls that are to be made, without arms.
    pub plan: Plan,
    /// Flags of the run that makes them.
    pub run: run::Args,
    /// True if calls are made in virtual time.
    pub is_virtual: bool,
    /// Remarks on what was read, for a person.
    pub notes: Vec<String>,
}

impl Original {
    /// Returns the number of pairs whose timeline and recording are the same bytes, and the number of all; `out`: the
    /// folder of the second calls.
    pub(super) fn count_identical(&self, pairs: &[Pair<'_>], out: &Path) -> (u64, u64) {
        let Some(folder) = &self.folder else { return (0, 0) };
        let read = |folder: &Path, call: &Played, kind: &str| {
            let name = call.files.iter().find(|name| name.starts_with(kind))?;
            std::fs::read(folder.join(name)).ok()
        };
        let mut counts = (0, 0);
        for (before, after) in pairs {
            let kinds = ["timelines/", "recordings/"];
            let known = kinds.map(|kind| (read(folder, before, kind), read(out, after, kind)));
            // A second call that this side did not make tells nothing.
            if known.iter().any(|(before, _)| before.is_none()) || after.files.is_empty() {
                continue;
            }
            counts.1 += 1;
            counts.0 += u64::from(known.iter().all(|(before, after)| before == after));
        }
        counts
    }
}

pub(super) fn read_folder(args: &Args) -> Result<Original, Stop> {
    let path = PathBuf::from(&args.result);
    let file = if path.is_dir() { path.join(RESULTS) } else { path };
    let folder = file.parent().map_or_else(|| PathBuf::from("."), Path::to_owned);
    let is_same =
        |out: std::io::Result<PathBuf>| out.is_ok_and(|out| folder.canonicalize().is_ok_and(|own| own == out));
    if is_same(args.out.canonicalize()) {
        return Err(Stop::bad(format!("--out {}: the results lie there, and would be replaced", args.out.display())));
    }
    let mut recorded = read_results(&file)?;
    let manifest = read_manifest(&folder);
    let mut notes = Vec::new();
    if let Some(text) = &args.filter {
        recorded.retain(|call| call.scenario.contains(text.as_str()));
        if recorded.is_empty() {
            return Err(Stop::bad(format!("--filter {text}: no scenario of {} has it in its name", file.display())));
        }
    }
    let was_virtual = manifest["virtual_time"].as_bool();
    let is_virtual = args.server.is_none() && (args.sim || was_virtual == Some(true));
    let seeds: BTreeSet<u64> = recorded.iter().map(|call| call.seed).collect();
    let first = args.seed.or(seeds.first().copied()).unwrap_or(1);
    let repeat = args.repeat.unwrap_or_else(|| u32::try_from(seeds.len()).unwrap_or(1).min(1000));
    let paths = files_of(&recorded, &folder)?;
    let run = args.run_args(&paths, is_virtual, first, repeat)?;
    let mut plan = Plan::from_args(&run, split_by_lines)?;
    check_scenarios(&plan, &recorded, &paths)?;
    plan.jobs.retain(|job| recorded.iter().any(|call| call.scenario == job.scenario.name));
    notes.extend(changed_since(&plan, &manifest));
    let is_lined = |call: &Played| !call.arm.is_empty();
    if recorded.iter().any(is_lined) {
        notes.push(
            "The results have several arms: the calls are played as their files say, and not held against them."
                .to_owned(),
        );
        recorded.retain(|call| !is_lined(call));
    }
    if was_virtual.is_some_and(|was| was != is_virtual) {
        notes.push(
            "The results were made in another time, real or virtual: the calls are not held against them.".to_owned(),
        );
        recorded.clear();
    }
    if was_virtual.is_none() {
        notes.push(format!(
            "{} has no run.json: it is not known whether its calls were made in virtual time.",
            folder.display()
        ));
    }
    for call in &mut recorded {
        // A pair is of one file, however it was named.
        if let Some(job) = plan.jobs.iter().find(|job| job.scenario.name == call.scenario) {
            call.file.clone_from(&job.file);
        }
        call.timeline = timeline_of(&folder, call);
    }
    Ok(Original { folder: Some(folder), recorded, plan, run, is_virtual, notes })
}

/// Reads the calls of a file of results.
fn read_results(file: &Path) -> Result<Vec<Played>, Stop> {
    let describe = |why: &dyn std::fmt::Display| Stop::bad(format!("RESULT {}: {why}", file.display()));
    let about = std::fs::metadata(file).map_err(|error| describe(&error))?;
    if about.len() > BYTES_MAX {
        return Err(describe(&"it is too long"));
    }
    let text = std::fs::read_to_string(file).map_err(|error| describe(&error))?;
    // One result may be written over several lines.
    let whole = serde_json::from_str::<Value>(&text).ok().filter(Value::is_object);
    let lines: Vec<Value> = match whole {
        Some(one) => vec![one],
        None => {
            let read = |(at, line): (usize, &str)| {
                serde_json::from_str::<Value>(line)
                    .map_err(|error| describe(&format!("line {}: it is no JSON: {error}", at + 1)))
            };
            let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
            lines.map(read).collect::<Result<_, _>>()?
        }
    };
    for (at, line) in lines.iter().enumerate() {
        let lacks = |key: &str| line[key].is_null();
        if lacks("scenario") || lacks("verdict") {
            return Err(describe(&format!("line {}: it is no result of ringer run", at + 1)));
        }
        if line["seed"].as_u64().is_none() {
            return Err(describe(&format!(
                "line {}: the result has no seed, by which its caller decides the same again",
                at + 1
            )));
        }
    }
    let written: Vec<String> = lines.iter().map(Value::to_string).collect();
    let calls: Vec<Played> = read_all(&written.join("\n")).into_iter().map(|(call, _)| call).collect();
    if calls.is_empty() { Err(describe(&"there are no results in it")) } else { Ok(calls) }
}

fn read_manifest(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("run.json")).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

/// Returns the files of suites; a relative path is looked for from here, then from the folder that the results lie in.
fn files_of(recorded: &[Played], folder: &Path) -> Result<Vec<String>, Stop> {
    let names: BTreeSet<&str> = recorded.iter().map(|call| call.file.as_str()).collect();
    let (mut paths, mut missing) = (Vec::new(), Vec::new());
    let beside = std::path::absolute(folder).ok().and_then(|path| path.parent().map(Path::to_owned));
    for name in names {
        let candidates = [Some(PathBuf::from(name)), beside.as_ref().map(|beside| beside.join(name))];
        match candidates.into_iter().flatten().find(|path| path.is_file()) {
            Some(path) => paths.push(path.to_string_lossy().into_owned()),
            None => missing.push(format!("{name}: the file of the suite is gone; run this where it was run")),
        }
    }
    if missing.is_empty() { Ok(paths) } else { Err(Stop::Bad(missing)) }
}

fn check_scenarios(plan: &Plan, recorded: &[Played], paths: &[String]) -> Result<(), Stop> {
    let names: BTreeSet<&str> = recorded.iter().map(|call| call.scenario.as_str()).collect();
    let is_there = |name: &&str| plan.jobs.iter().any(|job| job.scenario.name == **name);
    let gone: Vec<String> = names
        .into_iter()
        .filter(|name| !is_there(name))
        .map(|name| format!("the scenario '{name}' of the results is gone: it is not in {}", paths.join(", ")))
        .collect();
    if gone.is_empty() { Ok(()) } else { Err(Stop::Bad(plan.hidden(gone))) }
}

/// Returns a remark on scenarios that are not what they were.
fn changed_since(plan: &Plan, manifest: &Value) -> Option<String> {
    let mut changed: Vec<&str> = Vec::new();
    for job in &plan.jobs {
        let name = job.scenario.name.as_str();
        let known = manifest["scenarios"].as_array().into_iter().flatten().find(|one| one["scenario"] == name);
        if known.is_some_and(|known| known["sha256"] != job.fingerprint.as_str()) && !changed.contains(&name) {
            changed.push(name);
        }
    }
    (!changed.is_empty()).then(|| {
        format!("Warning: these scenarios have changed since, and so have their calls: {}", changed.join(", "))
    })
}

/// Returns the kept events of a call; none where they were not kept.
fn timeline_of(folder: &Path, call: &Played) -> Vec<Value> {
    let Some(name) = call.files.iter().find(|name| name.starts_with("timelines/")) else { return Vec::new() };
    let path = folder.join(name);
    if std::fs::metadata(&path).is_ok_and(|about| about.len() > BYTES_MAX) {
        return Vec::new();
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}
