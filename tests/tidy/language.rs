//! Counts of what makes the code hard to read for a newcomer: docstrings without a subject, bare participles as names,
//! long functions, modules that use each other. `tests/ratchets.txt` holds the counts; they only fall.

use std::collections::{BTreeMap, BTreeSet};

use super::circles::{self, Package, package_of};
use super::{read_file, scan, tree};

/// First words of docstrings whose verb says nothing of what the item does, or that speak for somebody else.
const EMPTY_VERBS: [&str; 5] = ["Lets ", "Has ", "Goes on", "Takes the news", "Looks after"];

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

/// Most arguments of a function, `self` among them.
const MOST_ARGUMENTS: usize = 8;

/// Most columns of a line that is a comment.
const MOST_COLUMNS: usize = 120;

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

fn has_empty_verb(docstring: &str) -> bool {
    EMPTY_VERBS.iter().any(|verb| docstring.starts_with(verb))
}

fn is_short(docstring: &str) -> bool {
    docstring.split_whitespace().count() <= SHORT_WORDS
}

fn is_participle(name: &str) -> bool {
    let regular = name.ends_with("ed") && !name.contains('_') && !NO_PARTICIPLE.contains(&name);
    regular || IRREGULAR.contains(&name)
}

/// Returns each function's name and length in lines; a function ends at the closing brace that stands as deep as its
/// `fn`.
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

/// Returns the number of arguments of each function, `self` among them.
fn arguments(text: &str) -> Vec<usize> {
    let code = scan::code(text);
    let ends = |at: usize| code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    code.match_indices("fn ")
        .filter(|(at, _)| !ends(*at))
        .filter_map(|(at, _)| arguments_after(&code[at + 3..]))
        .collect()
}

/// Returns the number of arguments of the function whose name begins `rest`; `None` for a type of functions.
fn arguments_after(rest: &str) -> Option<usize> {
    let name: usize = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').map(char::len_utf8).sum();
    let (mut depth, mut count, mut is_empty, mut before) = (0_i32, 0, true, ' ');
    let mut is_open = false;
    for c in rest[name..].chars().skip_while(|_| name == 0) {
        match c {
            '>' if before == '-' || before == '=' => {}
            '(' | '[' | '{' | '<' => {
                is_open |= c == '(' && depth == 0;
                depth += 1;
            }
            ')' | ']' | '}' | '>' => depth -= 1,
            ',' if is_open && depth == 1 => (count, is_empty) = (count + usize::from(!is_empty), true),
            _ => {}
        }
        if is_open && depth == 0 {
            return Some(count + usize::from(!is_empty));
        }
        is_empty &= c.is_whitespace() || "(,".contains(c) && depth == 1;
        before = c;
    }
    None
}

fn is_long_comment(line: &str) -> bool {
    line.trim_start().starts_with("//") && line.chars().count() > MOST_COLUMNS
}

/// Returns the number of modules in a file that are compiled for tests only, and whose files are named like the
/// product's.
fn tests_without_their_name(path: &str, text: &str) -> usize {
    let named = |module: &String| module == "tests" || module == "testing";
    let modules = circles::test_modules(text);
    if scan::is_test(path) { 0 } else { modules.iter().filter(|module| !named(module)).count() }
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
        (
            "comment_lines_over_120_columns",
            texts.values().flat_map(|text| text.lines()).filter(|line| is_long_comment(line)).count(),
        ),
        ("docstrings_with_an_empty_verb", docs.iter().filter(|text| has_empty_verb(text)).count()),
        ("files_in_circles", files_in_circles),
        (
            "functions_over_8_arguments",
            texts.values().flat_map(|text| arguments(text)).filter(|count| *count > MOST_ARGUMENTS).count(),
        ),
        (
            "test_files_named_like_the_product",
            texts.iter().map(|(path, text)| tests_without_their_name(path, text)).sum(),
        ),
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
    let describe =
        |name: &str| format!("{} {name} (the list has {:?})", found.get(name).copied().unwrap_or(0), allowed.get(name));
    let mut wrong: Vec<String> = names.into_iter().filter(differ).map(describe).collect();
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
    assert!(has_empty_verb("Lets it pass.") && has_empty_verb("Goes on.") && !has_empty_verb("Hashes it."));
    let counts = arguments(
        "fn a() {}\nfn b<F: Fn(u8, u8) -> u8>(&self, f: F, (c, d): (u8, u8),) -> Map<u8, u8> {}\ntype T = fn (u8);",
    );
    assert_eq!(counts, [0, 3]);
    let wide = "x".repeat(116);
    assert!(
        is_long_comment(&format!("  // {wide}")) && !is_long_comment(&format!("// {wide}")) && !is_long_comment(&wide)
    );
    let modules = "#[cfg(test)]\nmod tests;\n#[cfg(test)]\nmod speaker;\nmod voice;";
    assert_eq!(
        (tests_without_their_name("src/a.rs", modules), tests_without_their_name("src/a/tests.rs", modules)),
        (1, 0)
    );
}
