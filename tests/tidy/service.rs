//! Arrows between the folders of `src/service`: a folder uses and calls only those of earlier lines, one way.

use std::collections::BTreeMap;

use super::{check, read_file, scan, tree};

/// The folders in their order, each with its subject: the type that has its operations. It is held in a field of that
/// name.
const ORDER: [(&str, &str); 16] = [
    ("not_done", ""),
    ("files", ""),
    ("spending", ""),
    ("outbox", "Outbox"),
    ("library", "Library"),
    ("conversation", "Conversations"),
    ("humans", "Humans"),
    ("placement", "Placements"),
    ("evaluation", "Evaluations"),
    ("engines", "Engines"),
    ("runs", "Runs"),
    ("telemetry", "Telemetry"),
    ("watching", "Watching"),
    ("generation", "Generation"),
    ("bundle", "Bundles"),
    ("jobs", ""),
];

/// Items of `src/service/lib.rs` itself; any other name that it exports belongs to a folder, and is used from there.
/// Jobs use the service as a stranger does.
const ROOT: [&str; 8] =
    ["Caller", "Handles", "LiveCalls", "NoLiveCalls", "NotDone", "Service", "Settings", "WEBHOOK_PATIENCE"];

/// Returns the name that a text begins with.
fn word(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Returns the first segments of the paths that follow a prefix in a text.
fn used_names(code: &str, prefix: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices(prefix).filter(|(at, _)| !code[..*at].ends_with("super::")) {
        let rest = &code[at + prefix.len()..];
        match rest.strip_prefix('{').and_then(|group| group.split_once('}')) {
            Some((group, _)) => {
                found.extend(group.split(',').map(|name| word(name.trim())).filter(|name| !name.is_empty()))
            }
            None => found.push(word(rest)),
        }
    }
    found
}

/// Returns the place of a folder in the order.
fn rank(folder: &str) -> Option<usize> {
    ORDER.iter().position(|(known, _)| *known == folder)
}

/// Returns the folder of a shipped file of the service; its root has none.
fn folder_of(path: &str) -> Option<&str> {
    let inside = path.strip_prefix("src/service/").filter(|_| !scan::is_test(path))?;
    let folder = inside.split('/').next().unwrap_or_default().trim_end_matches(".rs");
    (folder != "lib").then_some(folder)
}

/// Returns the lines of the blocks of a text in which subjects get their methods.
fn subject_lines(text: &str) -> Vec<String> {
    let code = scan::code(scan::shipped_code(text));
    let is_start = |line: &str| ORDER.iter().any(|(_, subject)| line.starts_with(&format!("impl {subject} {{")));
    let (mut found, mut is_inside) = (Vec::new(), false);
    for line in code.lines() {
        is_inside = (is_inside && line != "}") || is_start(line);
        found.extend(is_inside.then(|| line.to_owned()));
    }
    found
}

/// Returns the names of the methods that a text adds to the subjects.
fn methods(text: &str) -> Vec<String> {
    let lines = subject_lines(text).into_iter().filter(|line| line.starts_with("    ") && !line.starts_with("     "));
    lines.filter_map(|line| line.split_once("fn ").map(|(_, rest)| word(rest))).collect()
}

/// Returns the calls of subjects' methods in a text of the form `self.name(` and `self.field.name(`, without the
/// parenthesis.
fn calls(text: &str) -> Vec<String> {
    let lines: Vec<String> = subject_lines(text).iter().map(|line| line.trim_start().to_owned()).collect();
    let code = lines.join("\n").replace("\n.", ".");
    let path =
        |rest: &str| -> String { rest.chars().take_while(|c| c.is_alphanumeric() || "_.".contains(*c)).collect() };
    let rests = code.match_indices("self.").map(|(at, found)| &code[at + found.len()..]);
    let called = rests.map(|rest| (path(rest), rest)).filter(|(path, rest)| rest[path.len()..].starts_with('('));
    called.map(|(path, _)| path).collect()
}

/// Returns the calls of a file that lead to a later folder. `homes`: the folder of each method.
fn back_calls(path: &str, text: &str, homes: &BTreeMap<String, String>) -> Vec<String> {
    let Some(own) = folder_of(path) else { return Vec::new() };
    let home = |call: &str| match call.split_once('.') {
        Some((field, _)) => ORDER.iter().find(|(_, subject)| subject.to_lowercase() == field).map(|(home, _)| *home),
        None => homes.get(call).map(String::as_str),
    };
    let found = calls(text).into_iter().filter_map(|call| Some((home(&call)?.to_owned(), call)));
    let later = found.filter(|(home, _)| rank(home) > rank(own));
    later.map(|(home, call)| format!("{path}: {own} may not call {call} of {home}")).collect()
}

fn folders(path: &str, text: &str) -> Vec<String> {
    let Some(own) = folder_of(path) else { return Vec::new() };
    let Some(own_rank) = rank(own) else { return vec![format!("{path}: {own} has no place in the order of folders")] };
    let may = |name: &str| own == "jobs" || rank(name).map_or(ROOT.contains(&name), |at| at <= own_rank);
    // Seen from a file of the service, so many `super::` lead to the service itself.
    let up = "super::".repeat(path.matches('/').count() - 1);
    let code = scan::code(scan::shipped_code(text));
    let mut names = used_names(&code, "crate::");
    names.extend(used_names(&code, &up));
    let wrong = names.into_iter().filter(|name| !may(name));
    wrong.map(|name| format!("{path}: {own} may not use {name}")).collect()
}

#[test]
fn folders_of_the_service_use_each_other_one_way() {
    let found: Vec<String> = tree(&["rs"]).iter().flat_map(|path| folders(path, &read_file(path))).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn arrows_between_folders_that_run_backwards_are_found() {
    let (runs, library) = ("src/service/runs/a.rs", "src/service/library/a.rs");
    check(folders, runs, "use crate::watching::alerts;", "use crate::library::agents;");
    check(folders, library, "fn f() { crate::runs::go() }", "use crate::{Caller, Service};");
    check(folders, runs, "use crate::{Caller, Timeline};", "// crate::bundle\nuse super::export;");
    assert_eq!(folders("src/service/thing.rs", "").len(), 1);
}

#[test]
fn folders_of_the_service_call_each_other_one_way() {
    let files: Vec<(String, String)> = tree(&["rs"]).into_iter().map(|path| (path.clone(), read_file(&path))).collect();
    let mut homes = BTreeMap::new();
    for (path, text) in &files {
        let Some(folder) = folder_of(path) else { continue };
        homes.extend(methods(text).into_iter().map(|name| (name, folder.to_owned())));
    }
    assert!(homes.len() > 300, "only {} methods were found", homes.len());
    let found: Vec<String> = files.iter().flat_map(|(path, text)| back_calls(path, text, &homes)).collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn calls_between_folders_that_run_backwards_are_found() {
    let own = "impl Library {\n    /// Says fn no.\n    pub(super) async fn go(&self) {\n        let f = 1;\n    }\n}\nfn loose() {}\n";
    assert_eq!(methods(own), ["go"]);
    let homes = BTreeMap::from([("go".to_owned(), "runs".to_owned())]);
    let rule = |path: &str, text: &str| back_calls(path, text, &homes);
    let (library, watching) = ("src/service/library/a.rs", "src/service/watching/a.rs");
    check(
        rule,
        library,
        "impl Library {\nself.go()\n}",
        "impl Library {\nself.stay(); go()\n}\nimpl Other {\nself.go()\n}",
    );
    check(rule, library, "impl Library {\nself.runs.stop().await\n}", "impl Library {\nself.store.go()\n}");
    check(rule, library, "impl Library {\nself\n  .go()\n}", "impl Library {\n// self.go()\nself.go = 1;\n}");
    assert_eq!(rule(watching, "impl Watching {\nself.go()\n}"), Vec::<String>::new());
    assert_eq!(rule("src/api/a.rs", "impl Library {\nself.go()\n}"), Vec::<String>::new());
}
