//! YAML 1.2 with positions: scalars keep their text, so that `no` is a text and digits keep their zeros.

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use saphyr_parser::{Event, Parser, ScalarStyle, Span, Tag};
use serde_json::{Map, Value};

use super::mask::{MASKED_CHARS, escaped_forms};
use crate::model::tool_call::pointer_to;
use ringer_syntax::decimal::{Decimal, exact};

/// Longest file, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Files that may include each other.
const DEPTH_MAX: usize = 5;
/// Nodes of a suite, those of aliases and of included files counted each time.
const NODES_MAX: usize = 100_000;
/// Lists and maps in each other.
const NESTING_MAX: usize = 64;

/// A position in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// File as it was named.
    pub file: Arc<str>,
    /// Line, counted from 1.
    pub line: usize,
    /// Column, counted from 1.
    pub column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Something wrong in a file, with its position.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Position of what is wrong.
    pub at: Place,
    /// Text for a person.
    pub text: String,
}

impl Problem {
    /// Returns a problem at a position.
    pub fn new(at: &Place, text: impl Into<String>) -> Problem {
        Problem { at: at.clone(), text: text.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.text)
    }
}

/// A value with its position.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Position of its first character.
    pub at: Place,
    /// Value of the node.
    pub kind: Kind,
}

/// A kind of value.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// A scalar; `plain`: it was not quoted, and may be a number, a truth value or nothing.
    Scalar {
        /// Text as it was written.
        text: String,
        /// True where it was not quoted.
        plain: bool,
    },
    /// A list of nodes.
    List(Vec<Node>),
    /// A map in the order of its keys.
    Map(Vec<(MemberName, Node)>),
}

/// Name of a member of a map.
#[derive(Clone, Debug, PartialEq)]
pub struct MemberName {
    /// Position of its first character.
    pub at: Place,
    /// Text as it was written.
    pub name: String,
}

impl Node {
    /// Returns the text of a scalar; `None` for lists, maps and nothing.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar { text, .. } if !self.is_null() => Some(text),
            _ => None,
        }
    }

    /// True for a value that is not there.
    pub fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar { text, plain: true } if matches!(text.as_str(), "" | "~" | "null"))
    }

    /// Returns the members of a map; `None` for other values.
    pub fn members(&self) -> Option<&[(MemberName, Node)]> {
        if let Kind::Map(members) = &self.kind { Some(members) } else { None }
    }

    /// Returns the items of a list; `None` for other values.
    pub fn items(&self) -> Option<&[Node]> {
        if let Kind::List(items) = &self.kind { Some(items) } else { None }
    }

    /// Returns the member of a map; `None` when it has none of this name.
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.members()?.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }

    /// Returns the value as JSON.
    ///
    /// Unquoted scalars become numbers, truth values or null as in YAML 1.2 (10.3.2). Digits behind a zero stay a text,
    /// and so does a number that 64 bits do not hold.
    pub fn json(&self) -> Value {
        match &self.kind {
            Kind::Scalar { text, plain: false } => Value::String(text.clone()),
            Kind::Scalar { text, plain: true } => plain(text),
            Kind::List(items) => items.iter().map(Node::json).collect(),
            Kind::Map(members) => {
                Value::Object(members.iter().map(|(key, node)| (key.name.clone(), node.json())).collect())
            }
        }
    }

    /// Returns the number of an unquoted scalar; `None` for other values.
    pub fn number(&self) -> Option<f64> {
        match &self.kind {
            Kind::Scalar { text, plain: true } if is_number(text) => {
                text.parse().ok().filter(|number: &f64| number.is_finite())
            }
            _ => None,
        }
    }

    /// Returns the characters of the unquoted numbers and truth values, by JSON Pointer (RFC 6901).
    pub fn as_written(&self) -> Map<String, Value> {
        let mut written = Map::new();
        self.collect_written("", &mut written);
        written
    }

    fn collect_written(&self, pointer: &str, written: &mut Map<String, Value>) {
        match &self.kind {
            Kind::Scalar { text, plain: true } if is_number(text) || matches!(text.as_str(), "true" | "false") => {
                written.insert(pointer.to_owned(), text.as_str().into());
            }
            Kind::Scalar { .. } => {}
            Kind::List(items) => items
                .iter()
                .enumerate()
                .for_each(|(at, item)| item.collect_written(&format!("{pointer}/{at}"), written)),
            Kind::Map(members) => {
                members.iter().for_each(|(key, node)| node.collect_written(&pointer_to(pointer, &key.name), written))
            }
        }
    }

    fn scalars(&mut self, change: &mut dyn FnMut(&Place, &mut String)) {
        match &mut self.kind {
            Kind::Scalar { text, .. } => change(&self.at, text),
            Kind::List(items) => items.iter_mut().for_each(|item| item.scalars(change)),
            Kind::Map(members) => members.iter_mut().for_each(|(_, node)| node.scalars(change)),
        }
    }
}

fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ if is_number(text) => exact(text.strip_prefix('+').unwrap_or(text)),
        _ => Value::String(text.to_owned()),
    }
}

/// True for a number of YAML 1.2; digits behind a zero are a text.
fn is_number(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text).as_bytes();
    let is_padded = digits.len() > 1 && digits[0] == b'0' && digits[1].is_ascii_digit();
    !is_padded && digits.first().is_some_and(|c| c.is_ascii_digit() || *c == b'.') && Decimal::parse(text).is_some()
}

/// Document of a file, with the texts that are masked.
#[derive(Debug)]
pub struct Loaded {
    /// Root of the document.
    pub root: Node,
    /// Values of variables that are masked in everything that is printed or written.
    pub masked: Vec<String>,
}

/// Reads a file with what it includes, `${NAME}` and `${NAME:-default}` replaced by what `variable` gives.
///
/// # Errors
/// Everything that is wrong, at least one.
pub fn load(path: &Path, variable: &dyn Fn(&str) -> Option<String>) -> Result<Loaded, Vec<Problem>> {
    let mut loader = Loader { nodes: 0, open: Vec::new() };
    let shown: Arc<str> = path.to_string_lossy().into();
    let at = Place { file: shown, line: 1, column: 1 };
    let mut root = loader.file(path, &at).map_err(|problem| vec![problem])?;
    let (mut problems, mut masked) = (Vec::new(), Vec::new());
    root.scalars(&mut |at, text| match fill(text, variable, &mut masked) {
        Ok(done) => *text = done,
        Err(why) => problems.push(Problem::new(at, why)),
    });
    let escaped: Vec<String> = masked.iter().flat_map(|value| escaped_forms(value)).collect();
    masked.extend(escaped);
    masked.sort_by_key(|value: &String| std::cmp::Reverse(value.len()));
    masked.dedup();
    if problems.is_empty() { Ok(Loaded { root, masked }) } else { Err(problems) }
}

/// Reads a text that stands alone, as tests and `--schema` have it.
///
/// # Errors
/// Description of the problem, for a person.
pub fn parse(text: &str, file: &str) -> Result<Node, Problem> {
    let folder = PathBuf::new();
    Loader { nodes: 0, open: Vec::new() }.text(text, &file.into(), &folder)
}

fn fill(text: &str, variable: &dyn Fn(&str) -> Option<String>, masked: &mut Vec<String>) -> Result<String, String> {
    let (mut done, mut rest) = (String::new(), text);
    while let Some(start) = rest.find("${") {
        if rest[..start].ends_with('$') {
            // `$${` is a literal `${`.
            done.push_str(&rest[..start]);
            done.push('{');
            rest = &rest[start + 2..];
            continue;
        }
        let Some(length) = rest[start..].find('}') else {
            return Err("a variable has no end: write ${NAME} or ${NAME:-default}".to_owned());
        };
        done.push_str(&rest[..start]);
        let inner = &rest[start + 2..start + length];
        let (name, default) = inner.split_once(":-").map_or((inner, None), |(name, default)| (name, Some(default)));
        let is_name = |name: &str| {
            name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        };
        if !is_name(name) {
            return Err(format!("${{{inner}}} names no variable: letters, digits and _ do"));
        }
        match (variable(name).filter(|value| default.is_none() || !value.is_empty()), default) {
            (Some(value), _) => {
                if value.chars().count() >= MASKED_CHARS {
                    masked.push(value.clone());
                }
                done.push_str(&value);
            }
            (None, Some(default)) => done.push_str(default),
            (None, None) => return Err(format!("the variable {name} is not set")),
        }
        rest = &rest[start + length + 1..];
    }
    done.push_str(rest);
    Ok(done)
}

struct Loader {
    nodes: usize,
    /// Files that are being read, outermost first.
    open: Vec<PathBuf>,
}

/// Node that is being built.
enum Open {
    List(Place, usize, Vec<Node>),
    Map(Place, usize, Vec<(MemberName, Node)>, Option<MemberName>),
}

impl Loader {
    fn file(&mut self, path: &Path, at: &Place) -> Result<Node, Problem> {
        let shown: Arc<str> = path.to_string_lossy().into();
        let wrong = |why: &dyn fmt::Display| Problem::new(at, format!("{}: {why}", path.display()));
        let about = std::fs::metadata(path).map_err(|error| wrong(&error))?;
        if !about.is_file() {
            return Err(wrong(&"it is no regular file"));
        }
        if about.len() > FILE_BYTES_MAX {
            return Err(wrong(&format_args!("it is longer than {FILE_BYTES_MAX} bytes")));
        }
        let real = path.canonicalize().map_err(|error| wrong(&error))?;
        if self.open.contains(&real) {
            return Err(wrong(&"it includes itself"));
        }
        if self.open.len() > DEPTH_MAX {
            return Err(wrong(&format_args!("more than {DEPTH_MAX} files include each other")));
        }
        let bytes = std::fs::read(path).map_err(|error| wrong(&error))?;
        let text = String::from_utf8(bytes).map_err(|_| wrong(&"it is not UTF-8"))?;
        let folder = real.parent().unwrap_or(Path::new("/")).to_owned();
        self.open.push(real);
        let node = self.text(text.strip_prefix('\u{feff}').unwrap_or(&text), &shown, &folder);
        self.open.pop();
        node
    }

    fn text(&mut self, text: &str, file: &Arc<str>, folder: &Path) -> Result<Node, Problem> {
        let place = |span: &Span| Place { file: file.clone(), line: span.start.line(), column: span.start.col() + 1 };
        let mut anchors: HashMap<usize, Node> = HashMap::new();
        let (mut stack, mut root): (Vec<Open>, Option<Node>) = (Vec::new(), None);
        let mut documents = 0;
        for next in Parser::new_from_str(text) {
            let (event, span) = next.map_err(|error| {
                let marker = error.marker();
                let at = Place { file: file.clone(), line: marker.line(), column: marker.col() + 1 };
                Problem::new(&at, error.info())
            })?;
            let at = place(&span);
            let done = match event {
                Event::DocumentStart(_) => {
                    documents += 1;
                    if documents > 1 {
                        return Err(Problem::new(&at, "there is more than one document in the file"));
                    }
                    continue;
                }
                Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => continue,
                Event::SequenceStart(anchor, _) => {
                    stack.push(Open::List(at, anchor, Vec::new()));
                    deep_enough(&stack)?;
                    continue;
                }
                Event::MappingStart(anchor, _) => {
                    stack.push(Open::Map(at, anchor, Vec::new(), None));
                    deep_enough(&stack)?;
                    continue;
                }
                Event::SequenceEnd | Event::MappingEnd => match stack.pop() {
                    Some(Open::List(at, anchor, items)) => (anchor, Node { at, kind: Kind::List(items) }),
                    Some(Open::Map(at, anchor, members, _)) => (anchor, Node { at, kind: Kind::Map(members) }),
                    None => continue,
                },
                Event::Alias(anchor) => {
                    let Some(node) = anchors.get(&anchor) else {
                        return Err(Problem::new(&at, "the alias is of nothing that is whole"));
                    };
                    let node = node.clone();
                    self.count(size(&node), &at)?;
                    (0, node)
                }
                Event::Scalar(text, style, anchor, tag) => {
                    (anchor, self.scalar(&text, style, tag.as_deref(), at, folder)?)
                }
            };
            let (anchor, node) = done;
            self.count(1, &node.at.clone())?;
            if anchor > 0 {
                anchors.insert(anchor, node.clone());
            }
            match stack.last_mut() {
                None => root = Some(node),
                Some(Open::List(_, _, items)) => items.push(node),
                Some(Open::Map(_, _, members, key)) => match key.take() {
                    Some(key) => members.push((key, node)),
                    None => *key = Some(key_of(node, members)?),
                },
            }
        }
        let nothing = || Kind::Scalar { text: String::new(), plain: true };
        Ok(root.unwrap_or_else(|| Node { at: Place { file: file.clone(), line: 1, column: 1 }, kind: nothing() }))
    }

    fn scalar(
        &mut self,
        text: &str,
        style: ScalarStyle,
        tag: Option<&Tag>,
        at: Place,
        folder: &Path,
    ) -> Result<Node, Problem> {
        let plain = style == ScalarStyle::Plain;
        match tag {
            None => Ok(Node { at, kind: Kind::Scalar { text: text.to_owned(), plain } }),
            Some(tag) if tag.handle == "!" && tag.suffix == "include" => self.include(text, &at, folder),
            Some(tag) if tag.is_yaml_core_schema() => {
                let plain = plain && tag.suffix != "str";
                Ok(Node { at, kind: Kind::Scalar { text: text.to_owned(), plain } })
            }
            Some(tag) => {
                let name = format!("{}{}", tag.handle, tag.suffix);
                Err(Problem::new(&at, format!("the tag {name} is not known; !include is")))
            }
        }
    }

    fn include(&mut self, name: &str, at: &Place, folder: &Path) -> Result<Node, Problem> {
        let wrong = |why: &dyn fmt::Display| Problem::new(at, format!("!include {name}: {why}"));
        // A text that stands alone comes from elsewhere, and may not ask for files of this machine.
        if self.open.is_empty() {
            return Err(wrong(&"a suite that is no file includes none"));
        }
        if Path::new(name).is_absolute() {
            return Err(wrong(&"it must lie below the folder of the file"));
        }
        let path = folder.join(name);
        let real = path.canonicalize().map_err(|error| wrong(&error))?;
        if !real.starts_with(folder) {
            return Err(wrong(&"it must lie below the folder of the file"));
        }
        self.file(&path, at)
    }

    fn count(&mut self, nodes: usize, at: &Place) -> Result<(), Problem> {
        self.nodes += nodes;
        match self.nodes > NODES_MAX {
            true => {
                Err(Problem::new(at, format!("the file has more than {NODES_MAX} values, those of aliases counted")))
            }
            false => Ok(()),
        }
    }
}

fn deep_enough(stack: &[Open]) -> Result<(), Problem> {
    match stack.last() {
        Some(Open::List(at, ..) | Open::Map(at, ..)) if stack.len() > NESTING_MAX => {
            Err(Problem::new(at, format!("more than {NESTING_MAX} lists and maps are in each other")))
        }
        _ => Ok(()),
    }
}

fn size(node: &Node) -> usize {
    match &node.kind {
        Kind::Scalar { .. } => 1,
        Kind::List(items) => 1 + items.iter().map(size).sum::<usize>(),
        Kind::Map(members) => 1 + members.iter().map(|(_, node)| size(node)).sum::<usize>(),
    }
}

fn key_of(node: Node, members: &[(MemberName, Node)]) -> Result<MemberName, Problem> {
    let Kind::Scalar { text: name, .. } = node.kind else {
        return Err(Problem::new(&node.at, "a key must be a word"));
    };
    match members.iter().any(|(known, _)| known.name == name) {
        true => Err(Problem::new(&node.at, format!("the key {name} is there twice"))),
        false => Ok(MemberName { at: node.at, name }),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::mask::mask;
    use super::*;

    #[test]
    fn scalars_are_what_yaml_1_2_has_them_to_be() {
        for (text, expect) in [
            ("no", json!("no")),
            ("yes", json!("yes")),
            ("on", json!("on")),
            ("true", json!(true)),
            ("007", json!("007")),
            ("0", json!(0)),
            ("-3", json!(-3)),
            ("1.5", json!(1.5)),
            ("1e3", json!(1000.0)),
            ("+14155550100", json!(14_155_550_100_i64)),
            ("9007199254740993", json!(9_007_199_254_740_993_i64)),
            ("12345678901234567890", json!(12_345_678_901_234_567_890_u64)),
            ("123456789012345678901", json!("123456789012345678901")),
            ("1.2.3", json!("1.2.3")),
            ("1990-03-03", json!("1990-03-03")),
            ("12:30", json!("12:30")),
            ("'5'", json!("5")),
            ("\"5\"", json!("5")),
            ("!!str 5", json!("5")),
            ("~", json!(null)),
            ("", json!(null)),
            ("4711#", json!("4711#")),
            ("[1, a]", json!([1, "a"])),
            ("{a: 1, b: [x]}", json!({"a": 1, "b": ["x"]})),
            ("a: &x {k: v}\nb: *x", json!({"a": {"k": "v"}, "b": {"k": "v"}})),
        ] {
            assert_eq!(parse(text, "f").map(|node| node.json()), Ok(expect), "{text}");
        }
    }

    #[test]
    fn unquoted_values_are_known_as_they_were_written() {
        let node = parse("{n: 1.10, q: '1.10', who: {phone: +14155550100}, l: [true, no, 007, ~], a/b: 7}", "f");
        assert_eq!(
            Value::Object(node.expect("it is read").as_written()),
            json!({"/n": "1.10", "/who/phone": "+14155550100", "/l/0": "true", "/a~1b": "7"})
        );
    }

    #[test]
    fn what_is_wrong_has_a_position() {
        let bomb: String = std::iter::once("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned())
            .chain((1..8).map(|at| {
                let alias = format!("*a{}, ", at - 1).repeat(10);
                format!("a{at}: &a{at} [{}]\n", alias.trim_end_matches(", "))
            }))
            .collect();
        let deep = "[".repeat(70);
        for (text, expect) in [
            ("a: 1\na: 2", "f:2:1: the key a is there twice"),
            ("a: 1\n---\nb: 2", "f:2:1: there is more than one document in the file"),
            ("a: !secret x", "f:1:"),
            ("a: [1", "f:"),
            ("[a]: 1", "f:1:1: a key must be a word"),
            (&bomb, "the file has more than 100000 values, those of aliases counted"),
            (&deep, "more than 64 lists and maps are in each other"),
        ] {
            let problem = parse(text, "f").expect_err(text).to_string();
            assert!(problem.contains(expect), "{problem} {expect}");
        }
    }

    #[test]
    fn variables_are_filled_in_and_masked() {
        let variable = |name: &str| match name {
            "TOKEN" => Some("secret-1".to_owned()),
            "PORT" => Some("5080".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        for (text, expect) in [
            ("a${PORT}b", Ok("a5080b")),
            ("${TOKEN}", Ok("secret-1")),
            ("${NONE:-x}${PORT:-y}", Ok("x5080")),
            ("${EMPTY:-x}${EMPTY}", Ok("x")),
            ("$PORT $", Ok("$PORT $")),
            ("a$${PORT}b$${", Ok("a${PORT}b${")),
            ("$$${PORT}$", Ok("$${PORT}$")),
            ("${NONE}", Err("the variable NONE is not set")),
            ("${PORT", Err("a variable has no end: write ${NAME} or ${NAME:-default}")),
            ("${1}", Err("${1} names no variable: letters, digits and _ do")),
        ] {
            let mut masked = Vec::new();
            let found = fill(text, &variable, &mut masked);
            assert_eq!(found.as_deref().map_err(String::as_str), expect, "{text}");
            assert_eq!(masked.len(), usize::from(text.contains("TOKEN")), "short values are not masked");
        }
        assert_eq!(mask("a secret-1 b", &["secret-1".to_owned()]), "a *** b");
        assert_eq!(escaped_forms("a\"b<c"), ["a\\\"b<c", "a&quot;b&lt;c", "a%22b%3Cc"]);
    }

    #[test]
    fn files_are_included_from_below_their_folder() {
        let folder = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| {
            let path = folder.path().join("suite").join(name);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("it is made");
            std::fs::write(&path, text).expect("it is written");
            path
        };
        write("parts/b.yaml", "x: ${NAME:-n}");
        write("loop.yaml", "a: !include loop.yaml");
        std::fs::write(folder.path().join("outside.yaml"), "x: 1").expect("it is written");
        for at in 0..8 {
            write(&format!("deep{at}.yaml"), &format!("a: !include deep{}.yaml", at + 1));
        }
        write("deep8.yaml", "a: 1");
        for (text, expect) in [
            ("a: !include parts/b.yaml", Ok(json!({"a": {"x": "n"}}))),
            ("a: !include ../outside.yaml", Err("it must lie below the folder of the file")),
            ("a: !include /etc/passwd", Err("it must lie below the folder of the file")),
            ("a: !include parts", Err("it is no regular file")),
            ("a: !include none.yaml", Err("No such file")),
            ("a: !include loop.yaml", Err("it includes itself")),
            ("a: !include deep0.yaml", Err("more than 5 files include each other")),
        ] {
            let path = write("main.yaml", text);
            let found = load(&path, &|_| None);
            match (found, expect) {
                (Ok(loaded), Ok(expect)) => assert_eq!(loaded.root.json(), expect, "{text}"),
                (Err(problems), Err(expect)) => {
                    let messages: Vec<String> = problems.iter().map(Problem::to_string).collect();
                    assert!(messages[0].contains(expect), "{messages:?} {expect}");
                }
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }
}
