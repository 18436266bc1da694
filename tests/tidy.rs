//! The rules that no compiler keeps: which module may know which, what is documented, how long a file is, who reads a
//! clock. Each rule is a function of a path and a text, and a test shows that it refuses a bad one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

mod circles;
mod groups;
mod language;
mod linked;
mod locks;
mod packages;
mod scan;
mod service;

/// The order of the modules of the root package: a module uses only those of earlier lines, or of its own. Arrows
/// between packages are in their manifests.
const ORDER: [&[&str]; 3] = [&["agent"], &["suite"], &["cli", "main"]];

/// Packages that the root package exports as modules.
const EXPORTED: [&str; 18] = [
    "api",
    "bus",
    "clock",
    "config",
    "engine",
    "error",
    "events",
    "human",
    "jobs",
    "judge",
    "model",
    "provider",
    "queue",
    "service",
    "store",
    "syntax",
    "tasks",
    "transport",
];

/// Words of other people's crates and of the system that a part may not use.
const FOREIGN: [(&str, &[&str]); 8] = [
    ("sip/src/", PURE),
    ("sip/src/", &["ringer_media"]),
    ("media/src/", PURE),
    ("media/src/", &["ringer_sip", "tracing::", "log::", "parking_lot"]),
    (
        "speech/src/",
        &[
            "tokio",
            "std::thread",
            "std::env",
            "std::process",
            "UdpSocket",
            "TcpStream",
            "TcpListener",
            "Instant",
            "ringer_sip",
            "ringer_media",
        ],
    ),
    ("src/model/", &["std::fs", "std::net::Tcp", "std::thread"]),
    ("src/service/", &["UdpSocket", "TcpListener"]),
    // They panic when nobody reads them any more.
    ("src/cli/", &["println!", "eprintln!", "print!", "eprint!"]),
];

/// Names that bring a clock, a socket, a thread or randomness into a library that must not have them.
const PURE: &[&str] = &[
    "tokio",
    "std::thread",
    "std::fs",
    "std::env",
    "std::process",
    "UdpSocket",
    "TcpStream",
    "TcpListener",
    "Instant",
    "SystemTime",
    "rand::",
    "OsRng",
    "getrandom",
    "libc::",
];

/// Calls that ask the machine for the time; the injected `Clock` is not among them.
const CLOCK_READS: [&str; 7] =
    ["monotonic()", "realtime_ns()", "Instant::now", "SystemTime::now", "Utc::now", "clock_gettime", ".elapsed()"];

/// Words in the name of a type that say nothing about it.
const EMPTY_WORDS: [&str; 6] = ["Manager", "Helper", "Util", "Handler", "Processor", "Context"];

const MOST_LINES: usize = 600;

/// Ends of the code that is not written yet, and tests that do not run.
const UNFINISHED: [&str; 5] = ["todo!", "unimplemented!", "#[ignore", "dbg!(", "unbounded_channel"];

/// Documents that do not belong to the project: a reader cannot open them.
const OUTSIDE: [&str; 11] = [
    concat!("..", "/shared"),
    concat!("/work", "/"),
    concat!("interface", ".md"),
    concat!("shapes", ".md"),
    concat!("validation", ".md"),
    concat!("behaviour", ".md"),
    concat!("connections", ".md"),
    concat!("results", ".md"),
    concat!("webhooks", ".md"),
    concat!("websocket", ".md"),
    concat!("architecture", ".md"),
];

// ---- The rules. Each returns what is wrong, `path:line: why`.

fn arrows(path: &str, text: &str) -> Vec<String> {
    let Some(own) = module_of(path) else { return Vec::new() };
    let rank = |name: &str| ORDER.iter().position(|names| names.contains(&name));
    let Some(own_rank) = rank(own) else {
        return vec![format!("{path}: module {own} has no place in the order of modules")];
    };
    let may = |name: &str| rank(name).map_or(EXPORTED.contains(&name), |at| at <= own_rank);
    scan::used_modules(&scan::code(scan::shipped_code(text)))
        .into_iter()
        .filter(|(_, name)| !may(name))
        .map(|(line, name)| format!("{path}:{line}: {own} may not use {name}"))
        .collect()
}

/// Returns the module of the root package that a path belongs to: `src/api.rs` and `src/api/serve.rs` are `api`; the
/// list of modules and files of other packages are none.
fn module_of(path: &str) -> Option<&str> {
    let rest = path.strip_prefix("src/")?;
    let first = rest.split('/').next()?;
    let name = first.strip_suffix(".rs").unwrap_or(first);
    (name != "lib" && !packages::NAMES.contains(&name)).then_some(name)
}

fn foreign(path: &str, text: &str) -> Vec<String> {
    if scan::is_test(path) {
        return Vec::new();
    }
    let code = scan::code(scan::shipped_code(text));
    let covers = |part: &str| path.starts_with(part) || path.strip_suffix(".rs") == part.strip_suffix('/');
    let words = FOREIGN.iter().filter(|(part, _)| covers(part)).flat_map(|(_, words)| *words);
    words
        .flat_map(|word| lines_with(&code, word).map(move |line| format!("{path}:{line}: {word} has no place here")))
        .collect()
}

fn lines_with<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let whole = move |line: &str| {
        line.match_indices(word).any(|(at, _)| {
            let before = word.starts_with(part) && line[..at].ends_with(part);
            let after = word.ends_with(part) && line[at + word.len()..].starts_with(part);
            !before && !after
        })
    };
    code.lines().enumerate().filter(move |(_, line)| whole(line)).map(|(number, _)| number + 1)
}

fn length(path: &str, text: &str) -> Vec<String> {
    let lines = text.lines().count();
    if lines <= MOST_LINES { Vec::new() } else { vec![format!("{path}: {lines} lines; split it along a noun")] }
}

fn opening(path: &str, text: &str) -> Vec<String> {
    if text.starts_with("//!") { Vec::new() } else { vec![format!("{path}:1: says not what it is (//!)")] }
}

// Not the lint `missing_docs`: it passes over items of private modules, and wants a docstring for every field of a
// variant too.
fn has_docs(path: &str, text: &str) -> Vec<String> {
    if scan::is_test(path) || !(path.starts_with("sip/src/") || path.starts_with("media/src/")) {
        return Vec::new();
    }
    let missing = scan::without_docs(text);
    missing.into_iter().map(|(line, item)| format!("{path}:{line}: no docstring: {item}")).collect()
}

fn words(path: &str, text: &str) -> Vec<String> {
    let code = scan::code(text);
    let mut wrong = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut refuse = |why: String| wrong.push(format!("{path}:{}: {why}", number + 1));
        UNFINISHED
            .iter()
            .filter(|word| line.contains(**word))
            .for_each(|word| refuse(format!("{word} is not allowed")));
        if let Some((kind, name)) = declaration(line) {
            let empty = EMPTY_WORDS.iter().find(|word| kind != "mod" && name.contains(**word));
            empty.into_iter().for_each(|word| refuse(format!("{name}: {word} says nothing")));
            if kind == "mod" && ["utils", "util", "common", "helpers", "misc"].contains(&name) {
                refuse(format!("a module {name} holds anything"));
            }
        }
    }
    wrong
}

/// Returns the type or module that a line declares.
fn declaration(line: &str) -> Option<(&str, &str)> {
    let item = line
        .trim_start()
        .trim_start_matches("pub ")
        .trim_start_matches("pub(crate) ")
        .trim_start_matches("pub(super) ");
    let (kind, rest) = item.split_once(' ')?;
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    ["struct", "enum", "trait", "type", "mod", "union"].contains(&kind).then_some((kind, name))
}

fn unwraps(path: &str, text: &str) -> Vec<String> {
    if scan::is_test(path) || path.contains("/benches/") {
        return Vec::new();
    }
    let code = scan::code(scan::shipped_code(text));
    let source: Vec<&str> = text.lines().collect();
    let explained =
        |line: usize| source[line - 1].contains("//") || (line > 1 && source[line - 2].trim().starts_with("//"));
    lines_with(&code, ".unwrap()")
        .filter(|line| !explained(*line))
        .map(|line| format!("{path}:{line}: unwrap() without the reason why it cannot fail; use expect"))
        .collect()
}

fn outside(path: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let named = OUTSIDE.iter().filter(|word| line.contains(**word));
        wrong.extend(named.map(|word| format!("{path}:{}: {word} is not part of the project", number + 1)));
    }
    wrong
}

/// Returns the number of clock reads in a file.
fn clock_reads(text: &str) -> usize {
    let code = scan::code(scan::shipped_code(text));
    CLOCK_READS.iter().map(|call| code.matches(call).count()).sum()
}

/// Counts that are not as the list says: it has to follow a fall, and never rises.
fn ratchet(list: &str, found: &BTreeMap<String, usize>) -> Vec<String> {
    let lines = list.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let allowed: BTreeMap<&str, usize> = lines
        .filter_map(|line| {
            let (count, path) = line.split_once(' ')?;
            Some((path, count.parse().ok()?))
        })
        .collect();
    let mut wrong = Vec::new();
    for (path, count) in found {
        match allowed.get(path.as_str()).copied().unwrap_or(0) {
            most if *count > most => {
                wrong.push(format!("{path}: {count} clock reads, {most} are allowed: be told the time"))
            }
            most if *count < most => {
                wrong.push(format!("{path}: only {count} clock reads are left: write that into the list"))
            }
            _ => {}
        }
    }
    let gone = allowed.keys().filter(|path| !found.contains_key(**path));
    wrong.extend(gone.map(|path| format!("{path}: has no clock reads: take it off the list")));
    wrong
}

// ---- The rules on the tree.

#[test]
fn modules_use_only_what_stands_before_them() {
    holds(arrows);
}

#[test]
fn parts_do_not_use_what_is_foreign_to_them() {
    holds(foreign);
}

#[test]
fn files_are_short() {
    holds(length);
}

#[test]
fn files_say_what_they_are() {
    holds(
        |path, text| if path.contains("benches/") || path.contains("fuzz/") { Vec::new() } else { opening(path, text) },
    );
}

#[test]
fn public_items_of_the_libraries_have_docstrings() {
    holds(has_docs);
}

#[test]
fn nothing_is_unfinished_or_named_by_an_empty_word() {
    holds(words);
}

#[test]
fn every_unwrap_has_a_reason() {
    holds(unwraps);
}

#[test]
fn only_the_project_is_spoken_of() {
    let wrong: Vec<String> = tree(&["rs", "md", "toml", "html", "js", "css", "xml", "txt", "http", "sql", ""])
        .iter()
        .filter(|path| path.as_str() != "Cargo.lock")
        .flat_map(|path| outside(path, &read_file(path)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn clock_reads_only_fall() {
    let found: BTreeMap<String, usize> = tree(&["rs"])
        .into_iter()
        .filter(|path| path != "src/base/clock.rs" && !scan::is_test(path) && !path.contains("benches/"))
        .map(|path| (path.clone(), clock_reads(&read_file(&path))))
        .filter(|(_, count)| *count > 0)
        .collect();
    let wrong = ratchet(&read_file("tests/clock_reads.txt"), &found);
    assert!(wrong.is_empty(), "tests/clock_reads.txt:\n{}", wrong.join("\n"));
}

/// Fails with everything that `rule` finds in the Rust files of the tree.
fn holds(rule: impl Fn(&str, &str) -> Vec<String>) {
    let wrong: Vec<String> = tree(&["rs"]).iter().flat_map(|path| rule(path, &read_file(path))).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read_file(path: &str) -> String {
    let bytes = std::fs::read(root().join(path)).expect("the file was just listed");
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Paths of the files with one of these endings, from the root of the tree; build output and hidden folders are left
/// out.
fn tree(endings: &[&str]) -> Vec<String> {
    let mut files = Vec::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(root().join(&folder)).expect("the tree is readable").flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = folder.join(&name);
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let skip = (name.starts_with('.') && name != ".ci") || name == "target" || name == "data";
            if is_folder && !skip {
                folders.push(path);
            } else if !is_folder && !name.starts_with('.') {
                let ending = path.extension().map_or("", |ending| ending.to_str().unwrap_or("?"));
                if endings.contains(&ending) {
                    files.push(path.to_string_lossy().into_owned());
                }
            }
        }
    }
    files.sort();
    assert!(!files.is_empty(), "nothing to check in {}", root().display());
    files
}

// ---- Each rule refuses what it is for.

/// Checks that `bad` is refused once, and `good` is not.
fn check(rule: impl Fn(&str, &str) -> Vec<String>, path: &str, bad: &str, good: &str) {
    assert_eq!(rule(path, bad).len(), 1, "{path}: {bad}: {:?}", rule(path, bad));
    assert_eq!(rule(path, good), Vec::<String>::new(), "{path}: {good}");
}

#[test]
fn arrows_that_run_backwards_are_found() {
    check(arrows, "src/agent.rs", "use crate::suite::Suite;", "use crate::model::Agent;");
    check(arrows, "src/suite/file.rs", "fn f() { crate::cli::go() }", "use crate::{provider::Voice, agent};");
    check(arrows, "src/suite/file.rs", "use crate::{provider::{A, B}, cli::C};", "// crate::cli\nuse crate::clock;");
    check(arrows, "src/agent.rs", "use crate::cli;", "#[cfg(test)]\nmod tests {\n use crate::cli;\n}");
    assert_eq!(arrows("src/thing.rs", "").len(), 1);
}

#[test]
fn foreign_words_are_found() {
    check(foreign, "sip/src/a.rs", "use tokio::net;", "// tokio");
    check(foreign, "media/src/a.rs", "let t = Instant::now();", "let t = \"Instant\"; struct Instants;");
    check(foreign, "media/src/a.rs", "use ringer_sip::Sdp;", "fn f() {}\n#[cfg(test)]\nmod tests {\n use std::fs;\n}");
    check(foreign, "src/model/a.rs", "use std::fs;", "use serde::Serialize;");
    check(foreign, "src/service/a.rs", "use tokio::net::TcpListener;", "use tokio::sync::mpsc;");
}

#[test]
fn long_and_nameless_files_are_found() {
    check(length, "a.rs", &"x\n".repeat(601), &"x\n".repeat(600));
    check(opening, "a.rs", "use a::b;", "//! A.\nuse a::b;");
}

#[test]
fn missing_docstrings_are_found() {
    let sip = "sip/src/a.rs";
    check(has_docs, sip, "pub fn f() {}", "/// F.\npub fn f() {}");
    check(has_docs, sip, "#[derive(Debug)]\npub struct S;", "/// S.\n#[derive(\n    Debug,\n)]\npub struct S;");
    check(has_docs, sip, "/// E.\npub enum E {\n    /// A.\n    A,\n    B { x: u8 },\n}", "enum E {\n    A,\n}");
    check(
        has_docs,
        sip,
        "/// S.\npub struct S {\n    pub a: u8,\n}",
        "/// S.\npub struct S {\n    /// A.\n    pub a: u8,\n    b: u8,\n}",
    );
    check(
        has_docs,
        sip,
        "/// T.\npub trait T {\n    fn f(&self) {\n        g();\n    }\n}",
        "/// T.\npub trait T {\n    /// F.\n    fn f(&self);\n}",
    );
    check(has_docs, sip, "pub const A: u8 = 1;", "pub(crate) fn f() {}\npub use a::b;\npub mod c;");
    check(
        has_docs,
        sip,
        "/// A.\nlet a;\npub type T = u8;",
        "fn f() {}\n#[cfg(test)]\nmod tests {\n    pub fn f() {}\n}",
    );
    assert!(has_docs("src/a.rs", "pub fn f() {}").is_empty());
}

#[test]
fn unfinished_and_empty_words_are_found() {
    check(words, "a.rs", "fn f() { todo!() }", "// todo!()\nlet s = \"todo!()\";");
    check(words, "a.rs", "#[ignore]\n#[test]", "#[test]");
    check(words, "a.rs", "pub struct CallManager;", "fn call_manager() {}");
    check(words, "a.rs", "pub(crate) trait EventHandler {}", "let handler = 1;");
    check(words, "a.rs", "mod utils;", "mod context;");
    check(words, "a.rs", "let (a, b) = mpsc::unbounded_channel();", "let (a, b) = mpsc::channel(8);");
}

#[test]
fn bare_unwraps_are_found() {
    check(unwraps, "src/a.rs", "a.unwrap();", "a.unwrap(); // `a` was just set");
    check(unwraps, "src/a.rs", "a\n    .unwrap()", "// `a` was just set\na.unwrap()");
    check(unwraps, "src/a.rs", "a.unwrap();", "a.unwrap_or(1);\n#[cfg(test)]\nmod tests {\n a.unwrap();\n}");
}

#[test]
fn documents_from_outside_are_found() {
    check(outside, "a.md", concat!("see ../", "shared/x"), "see ARCHITECTURE.md");
    check(outside, "a.rs", concat!("// as in shapes", ".md"), "// as in RFC 3261");
}

#[test]
fn clock_reads_are_counted_and_held() {
    assert_eq!(
        clock_reads("let a = clock::monotonic(); // Instant::now()\nlet b = realtime_ns() + self.clock.now_ms();"),
        2
    );
    let found = BTreeMap::from([("a.rs".to_owned(), 2)]);
    let against = |list: &str| ratchet(list, &found);
    assert_eq!(against("# list\n2 a.rs\n"), Vec::<String>::new());
    assert!(against("1 a.rs")[0].contains("2 clock reads, 1 are allowed"));
    assert!(against("")[0].contains("2 clock reads, 0 are allowed"));
    assert!(against("3 a.rs")[0].contains("only 2"));
    assert!(against("2 a.rs\n1 b.rs")[0].starts_with("b.rs: has no clock reads"));
}

#[test]
fn comments_texts_and_characters_are_not_code() {
    let same = |text: &str, expect: &str| assert_eq!(scan::code(text), expect, "{text}");
    same("a // b\nc", "a     \nc");
    same("a /* b /* c */ d */ e", "a                   e");
    same(r#"f("a\"b") + 'x' + '\'' + 'a"#, "f(      ) +     +      + 'a");
    same("r#\"a\"b\"# c", "         c");
    same("fn f<'a>(x: &'a str) { 'é' }", "fn f<'a>(x: &'a str) {     }");
}
