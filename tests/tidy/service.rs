//! Arrows between the folders of `src/service`: a folder uses only those of earlier lines, one way.

use super::{check, read_file, scan, tree};

/// Order of the folders.
const ORDER: [&str; 10] = [
    "files",
    "outbox",
    "library",
    "conversation",
    "placement",
    "evaluation",
    "runs",
    "watching",
    "generation",
    "bundle",
];

/// Items of `src/service.rs` itself; any other name that it exports belongs to a folder, and is used from there.
const ROOT: [&str; 6] = ["Caller", "LiveCalls", "NoLiveCalls", "Service", "Settings", "WEBHOOK_PATIENCE"];

/// Returns the first segments of the paths that follow `crate::service::` in a text.
fn used_names(code: &str) -> Vec<String> {
    let word = |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let mut found = Vec::new();
    for (at, prefix) in code.match_indices("crate::service::") {
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

fn folders(path: &str, text: &str) -> Vec<String> {
    let rank = |name: &str| ORDER.iter().position(|folder| *folder == name);
    let Some(inside) = path.strip_prefix("src/service/").filter(|_| !scan::is_test(path)) else { return Vec::new() };
    let own = inside.split('/').next().unwrap_or_default().trim_end_matches(".rs");
    let Some(own_rank) = rank(own) else { return vec![format!("{path}: {own} has no place in the order of folders")] };
    let may = |name: &str| rank(name).map_or(ROOT.contains(&name), |at| at <= own_rank);
    let names = used_names(&scan::code(scan::shipped_code(text)));
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
    check(folders, runs, "use crate::service::watching::alerts;", "use crate::service::library::agents;");
    check(folders, library, "fn f() { crate::service::runs::go() }", "use crate::service::{Caller, Service};");
    check(folders, runs, "use crate::service::{Caller, Timeline};", "// crate::service::bundle\nuse super::export;");
    assert_eq!(folders("src/service/thing.rs", "").len(), 1);
}
