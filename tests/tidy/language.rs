//! Counts of what makes the code hard to read for a newcomer: docstrings without a subject, bare participles as names, long
//! functions, modules that use each other. `tests/ratchets.txt` holds the counts; they only fall.

use std::collections::{BTreeMap, BTreeSet};

use super::circles::{Package, package_of};
use super::{read_file, scan, tree};

/// First words of docstrings whose subject is not the item.
const NO_SUBJECT: [&str; 8] = ["What", "Who", "Whom", "Whose", "Where", "Whether", "Of", "Those"];

/// Participles that do not end in `ed`.
const IRREGULAR: [&str; 36] = [
    "begun", "bound", "brought", "built", "caught", "chosen", "come", "cut", "done", "drawn", "driven", "fallen",
    "found", "given", "gone", "heard", "held", "kept", "known", "left", "lost", "made", "meant", "met", "put", "read",
    "said", "seen", "sent", "shown", "spent", "spoken", "taken", "told", "written", "worn",
];

/// Words that end in `ed` and are no participles.
const NO_PARTICIPLE: [&str; 7] = ["bed", "embed", "feed", "need", "seed", "shed", "speed"];

/// Most lines of a function before it counts as long.
const MOST_FUNCTION_LINES: usize = 70;

/// Most words of a docstring that counts as short.
const SHORT_WORDS: usize = 3;

/// Returns the text of each docstring (`///`), its lines joined.
fn docstrings(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines().map(str::trim_start) {
        match line.strip_prefix("///") {
            Some(words) if is_open => {
                let last = found.last_mut().expect("an open docstring was pushed");
                last.push(' ');
                last.push_str(words.trim());
            }
            Some(words) => found.push(words.trim().to_owned()),
            None => {}
        }
        is_open = line.starts_with("///");
    }
    found
}

fn has_no_subject(docstring: &str) -> bool {
    let first = docstring.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    NO_SUBJECT.contains(&first) || docstring.starts_with("That which") || docstring.starts_with("So many")
}

fn is_short(docstring: &str) -> bool {
    docstring.split_whitespace().count() <= SHORT_WORDS
}

fn is_participle(name: &str) -> bool {
    let regular = name.ends_with("ed") && !name.contains('_') && !NO_PARTICIPLE.contains(&name);
    regular || IRREGULAR.contains(&name)
}

/// Returns each function's name and length in lines; a function ends at the closing brace that stands as deep as its `fn`.
fn functions(text: &str) -> Vec<(String, usize)> {
    let code = scan::code(text);
    let lines: Vec<&str> = code.lines().collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some((head, rest)) = line.split_once("fn ") else { continue };
        let is_item = head.trim().is_empty() || head.ends_with(' ') && !head.contains(['(', '=', ':', '<', ',']);
        let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if !is_item || name.is_empty() {
            continue;
        }
        let indent = &line[..line.len() - line.trim_start().len()];
        let end = format!("{indent}}}");
        let closes = |line: &&str| **line == end;
        let ends_here = line.ends_with('}') || line.ends_with(';');
        let length = if ends_here { 0 } else { lines[at..].iter().position(closes).unwrap_or(0) };
        found.push((name, length + 1));
    }
    found
}

/// Returns the files in circles of each package, and the lines that make the circles.
fn circles(texts: &BTreeMap<String, String>) -> (usize, Vec<String>) {
    let mut packages: BTreeMap<&str, BTreeMap<String, String>> = BTreeMap::new();
    for (path, text) in texts {
        if let Some(package) = package_of(path) {
            packages.entry(package).or_default().insert(path.clone(), text.clone());
        }
    }
    let (mut files_in_circles, mut reasons) = (0, Vec::new());
    for (root, files) in packages {
        let package = Package::new(root, &files);
        for circle in package.circles() {
            files_in_circles += circle.len();
            reasons.extend(package.reasons(&circle));
        }
    }
    (files_in_circles, reasons)
}

/// Returns the counts over the tree, by the names of `tests/ratchets.txt`.
fn counts(texts: &BTreeMap<String, String>, files_in_circles: usize) -> BTreeMap<&'static str, usize> {
    let docs: Vec<String> = texts.values().flat_map(|text| docstrings(text)).collect();
    let functions: Vec<(String, usize)> = texts.values().flat_map(|text| functions(text)).collect();
    let folders = texts.keys().filter(|path| path.contains("src/") && path.ends_with("/mod.rs")).count();
    BTreeMap::from([
        ("docstrings_without_subject", docs.iter().filter(|text| has_no_subject(text)).count()),
        ("docstrings_of_three_words", docs.iter().filter(|text| is_short(text)).count()),
        ("functions_named_by_a_participle", functions.iter().filter(|(name, _)| is_participle(name)).count()),
        ("functions_over_70_lines", functions.iter().filter(|(_, lines)| *lines > MOST_FUNCTION_LINES).count()),
        ("files_in_circles", files_in_circles),
        ("files_named_mod", folders),
    ])
}

#[test]
fn counts_of_unclear_words_and_shapes_only_fall() {
    let list = read_file("tests/ratchets.txt");
    let lines = list.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let allowed: BTreeMap<&str, usize> = lines
        .filter_map(|line| line.split_once(' '))
        .filter_map(|(count, name)| Some((name, count.parse().ok()?)))
        .collect();
    let texts: BTreeMap<String, String> =
        tree(&["rs"]).into_iter().map(|path| (path.clone(), read_file(&path))).collect();
    let (files_in_circles, reasons) = circles(&texts);
    let found = counts(&texts, files_in_circles);
    let names: BTreeSet<&str> = found.keys().chain(allowed.keys()).copied().collect();
    let differ = |name: &&str| found.get(name) != allowed.get(name);
    let told =
        |name: &str| format!("{} {name} (the list has {:?})", found.get(name).copied().unwrap_or(0), allowed.get(name));
    let mut wrong: Vec<String> = names.into_iter().filter(differ).map(told).collect();
    if found.get("files_in_circles") > allowed.get("files_in_circles") {
        wrong.extend(reasons);
    }
    assert!(
        wrong.is_empty(),
        "tests/ratchets.txt: a count may only fall, and the list follows it:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn unclear_words_and_shapes_are_counted() {
    let docs = docstrings(
        "/// What it is.\n/// More.\nfn f() {}\n/// Of all.\nstruct S;\n/// Returns the sum of all\nfn g() {}",
    );
    assert_eq!(docs, ["What it is. More.", "Of all.", "Returns the sum of all"]);
    assert_eq!(docs.iter().map(|text| has_no_subject(text)).collect::<Vec<_>>(), [true, true, false]);
    assert!(is_short("Of all.") && !is_short("Returns the sum of all"));
    for (name, expect) in
        [("told", true), ("answered", true), ("speed", false), ("is_told", false), ("mark_told", false)]
    {
        assert_eq!(is_participle(name), expect, "{name}");
    }
    let body = "    x();\n".repeat(70);
    let long =
        functions(&format!("pub fn one() {{\n{body}}}\nfn two() {{}}\nimpl A {{\n    fn three() {{\n    }}\n}}\n"));
    assert_eq!(long, [("one".to_owned(), 72), ("two".to_owned(), 1), ("three".to_owned(), 2)]);
}
