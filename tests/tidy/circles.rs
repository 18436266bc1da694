//! Finds files of one package that use each other in a circle. A package is one of the libraries, or a folder of `src`
//! with the file beside it.
//!
//! A name counts as used where it is defined: what a module re-exports belongs to the file behind it. A file may use
//! what its own module, or a module around it, defines: the tree of modules is no circle. Method calls and names that a
//! macro makes are not seen.

use std::collections::{BTreeMap, BTreeSet};

use super::scan;

/// Most steps from a re-export to the item behind it; more are a re-export of itself.
const MOST_STEPS: usize = 16;

/// A name that a `use` line binds, with its path; a glob is bound as `*`.
type Binding = (String, Vec<String>);

/// Names and paths of one file, as far as circles need them.
struct Module {
    path: String,
    /// Names of the modules from the root of the package to this one.
    name: Vec<String>,
    /// Modules of this one that have a file.
    children: BTreeSet<String>,
    /// Names that `use` lines bind.
    bound: Vec<Binding>,
    /// Names of the items that the file defines.
    defined: BTreeSet<String>,
    /// Paths that the file uses.
    used: BTreeSet<Vec<String>>,
}

/// The files of one package.
pub(super) struct Package {
    modules: BTreeMap<Vec<String>, Module>,
}

/// Returns the package of a file: `sip/src`, or `src/human` of `src/human.rs` and `src/human/text.rs`.
pub(super) fn package_of(path: &str) -> Option<&str> {
    let after = path.find("src/")? + 4;
    match after {
        4 => Some(path[..after + path[after..].find('/').unwrap_or(path.len() - after)].trim_end_matches(".rs")),
        _ => Some(&path[..after - 1]),
    }
}

impl Package {
    /// Reads the files of the package at `root`, by their paths. Files of tests alone are left out.
    pub(super) fn new(root: &str, files: &BTreeMap<String, String>) -> Package {
        // The root of the package is `src/NAME/lib.rs`, or the file beside the folder where the folder is a module of
        // the root package.
        let has_root = files.contains_key(&format!("{root}/lib.rs"));
        let around: Vec<String> =
            if has_root { Vec::new() } else { vec![root.rsplit('/').next().unwrap_or(root).to_owned()] };
        let mut modules = BTreeMap::new();
        let mut tests: Vec<Vec<String>> = Vec::new();
        for (path, text) in files.iter().filter(|(path, _)| !scan::is_test(path)) {
            let below = path.strip_prefix(root).unwrap_or(path).trim_end_matches(".rs").trim_start_matches('/');
            let inner = below.split('/').filter(|name| !name.is_empty() && *name != "lib").map(str::to_owned);
            let name: Vec<String> = around.iter().cloned().chain(inner).collect();
            let code = without_tests(&scan::code(scan::shipped_code(text)));
            tests.extend(test_modules(text).into_iter().map(|child| [name.clone(), vec![child]].concat()));
            let (bound, mut used) = uses(&code);
            used.extend(paths(&code));
            let module = Module {
                path: path.clone(),
                name: name.clone(),
                children: BTreeSet::new(),
                bound,
                defined: definitions(&code),
                used,
            };
            modules.insert(name, module);
        }
        modules.retain(|name, _| !tests.iter().any(|test| name.starts_with(test)));
        let names: Vec<Vec<String>> = modules.keys().cloned().collect();
        for name in &names {
            if let Some((last, parent)) = name.split_last()
                && let Some(parent) = modules.get_mut(parent)
            {
                parent.children.insert(last.clone());
            }
        }
        Package { modules }
    }

    /// Returns the groups of files that use each other in a circle.
    pub(super) fn circles(&self) -> Vec<Vec<String>> {
        let uses: BTreeMap<&str, BTreeSet<&str>> =
            self.modules.values().map(|module| (module.path.as_str(), self.used_files(module))).collect();
        let reach: BTreeMap<&str, BTreeSet<&str>> = uses.keys().map(|path| (*path, reach_of(path, &uses))).collect();
        let mut groups: Vec<Vec<String>> = Vec::new();
        for (path, others) in reach.iter().filter(|(path, others)| others.contains(*path)) {
            let together = others.iter().filter(|other| reach[**other].contains(path));
            let group: Vec<String> = together.map(|path| (*path).to_owned()).collect();
            if !groups.contains(&group) {
                groups.push(group);
            }
        }
        groups
    }

    /// Returns a line for each file of a circle that another one of it uses, with a name that it uses.
    pub(super) fn reasons(&self, circle: &[String]) -> Vec<String> {
        let mut names: BTreeMap<(&str, &str), String> = BTreeMap::new();
        for module in self.modules.values().filter(|module| circle.contains(&module.path)) {
            let others = self.targets(module).into_iter().filter(|(other, _)| circle.iter().any(|path| path == other));
            for (other, used) in others {
                names.entry((&module.path, other)).or_insert_with(|| used.join("::"));
            }
        }
        names.into_iter().map(|((path, other), used)| format!("{path} uses {other}: {used}")).collect()
    }

    fn used_files<'m>(&'m self, module: &'m Module) -> BTreeSet<&'m str> {
        self.targets(module).into_iter().map(|(path, _)| path).collect()
    }

    /// Returns the other files that a module uses, those of the modules around it left out, each with the path that
    /// names it.
    fn targets<'m>(&'m self, module: &'m Module) -> Vec<(&'m str, &'m Vec<String>)> {
        let target = |used: &'m Vec<String>| {
            let found = self.item(module, used, 0)?;
            (!module.name.starts_with(&found.name)).then_some((found.path.as_str(), used))
        };
        module.used.iter().filter_map(target).collect()
    }

    /// Returns the module that defines the item named by `path` in `from`; `None` for other packages, and for a whole
    /// module: what is used of it is named elsewhere.
    fn item<'m>(&'m self, from: &'m Module, path: &[String], steps: usize) -> Option<&'m Module> {
        let (module, rest) = self.start(from, path, steps)?;
        self.walk(module, &rest, steps).filter(|_| !self.is_module(module, &rest))
    }

    /// True if `rest` names a module with a file, from a module with a file.
    fn is_module(&self, at: &Module, rest: &[String]) -> bool {
        self.modules.contains_key(&[&at.name, rest].concat())
    }

    /// Returns the module at which a path begins, and the rest of the path.
    fn start<'m>(&'m self, from: &'m Module, path: &[String], steps: usize) -> Option<(&'m Module, Vec<String>)> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            _ if steps > MOST_STEPS => None,
            "crate" => self.below(&[], rest),
            "self" => Some((from, rest.to_vec())),
            "super" => {
                let ups = 1 + rest.iter().take_while(|name| *name == "super").count();
                self.below(from.name.get(..from.name.len().checked_sub(ups)?)?, &rest[ups - 1..])
            }
            child if from.children.contains(child) => Some((from, path.to_vec())),
            name => {
                let (_, bound) =
                    from.bound.iter().find(|(bound, path)| bound == name && path.first() != Some(bound))?;
                self.start(from, &[bound, rest].concat(), steps + 1)
            }
        }
    }

    /// Returns the module `name`, and `rest`. In the root package the package's folder is the first name below the
    /// root.
    fn below<'m>(&'m self, name: &[String], rest: &[String]) -> Option<(&'m Module, Vec<String>)> {
        let len = usize::from(name.is_empty() && !self.modules.contains_key(name)).min(rest.len());
        Some((self.modules.get(&[name, &rest[..len]].concat())?, rest[len..].to_vec()))
    }

    /// Follows `rest` from a module to the module that defines its end.
    fn walk<'m>(&'m self, at: &'m Module, rest: &[String], steps: usize) -> Option<&'m Module> {
        let Some((first, others)) = rest.split_first().filter(|(first, _)| *first != "*") else { return Some(at) };
        if steps > MOST_STEPS {
            return None;
        }
        if let Some(child) = self.modules.get(&[&at.name, std::slice::from_ref(first)].concat()) {
            return self.walk(child, others, steps + 1);
        }
        let follow = |path: &[String], rest: &[String]| {
            let (module, more) = self.start(at, path, steps + 1)?;
            self.walk(module, &[&more, rest].concat(), steps + 1)
        };
        if at.defined.contains(first) {
            return Some(at);
        }
        if let Some((_, path)) = at.bound.iter().find(|(name, _)| name == first) {
            return follow(path, others);
        }
        // What no glob brings is defined here, by a macro for example.
        let is_glob = |(name, path): &&Binding| name == "*" && path.as_slice() != ["super"];
        let of_glob = |(_, path): &Binding| {
            let (source, found) = (follow(path, &[])?, follow(path, rest)?);
            (found.path != source.path || source.defined.contains(first)).then_some(found)
        };
        at.bound.iter().filter(is_glob).find_map(of_glob).or(Some(at))
    }
}

/// Returns all that `from` uses, itself or by way of others.
fn reach_of<'p>(from: &'p str, uses: &BTreeMap<&'p str, BTreeSet<&'p str>>) -> BTreeSet<&'p str> {
    let (mut seen, mut left) = (BTreeSet::new(), vec![from]);
    while let Some(path) = left.pop() {
        left.extend(uses.get(path).into_iter().flatten().filter(|next| seen.insert(**next)));
    }
    seen
}

/// Returns the code with `use` lines of tests blanked out.
fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    for (at, mark) in code.match_indices("#[cfg(test)]") {
        let rest = &code[at + mark.len()..];
        let is_use = ["use ", "pub use ", "pub(crate) use "].iter().any(|start| rest.trim_start().starts_with(start));
        if let Some(len) = rest.find(';').filter(|_| is_use) {
            let range = at..at + mark.len() + len;
            let blank: String = code[range.clone()].bytes().map(|c| if c == b'\n' { '\n' } else { ' ' }).collect();
            out.replace_range(range, &blank);
        }
    }
    out
}

/// Returns the names of the modules with a file that are declared for tests alone.
pub(super) fn test_modules(text: &str) -> Vec<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let declared = |pair: &[&str]| {
        let name = pair[1].rsplit_once("mod ")?.1.strip_suffix(';')?;
        (pair[0] == "#[cfg(test)]").then(|| name.to_owned())
    };
    lines.windows(2).filter_map(declared).collect()
}

/// Returns the names of the items that stand at the left margin.
fn definitions(code: &str) -> BTreeSet<String> {
    const KINDS: [&str; 13] = [
        "fn ",
        "async fn ",
        "const fn ",
        "unsafe fn ",
        "struct ",
        "enum ",
        "trait ",
        "type ",
        "const ",
        "static ",
        "union ",
        "mod ",
        "macro_rules! ",
    ];
    let item_of = |line: &'_ str| -> Option<String> {
        let item = match line.strip_prefix("pub") {
            Some(rest) if rest.starts_with('(') => rest.split_once(") ")?.1,
            Some(rest) => rest.trim_start(),
            None => line,
        };
        KINDS.iter().find_map(|kind| item.strip_prefix(kind)).map(identifier)
    };
    code.lines().filter_map(item_of).collect()
}

/// Returns what the `use` lines bind, and the paths of their trees.
fn uses(code: &str) -> (Vec<Binding>, BTreeSet<Vec<String>>) {
    let mut bound = Vec::new();
    let mut used = BTreeSet::new();
    for (at, word) in code.match_indices("use ") {
        let starts = at == 0 || code[..at].ends_with(['\n', ' ', ')']);
        let Some(end) = code[at..].find(';').filter(|_| starts) else { continue };
        let is_item =
            at == 0 || code[..at].ends_with('\n') || code[..at].trim_end_matches(' ').ends_with(['b', ')', '\n']);
        for (path, name) in leaves(&code[at + word.len()..at + end]) {
            let whole = if name == "*" { [&path[..], &["*".to_owned()]].concat() } else { path.clone() };
            used.insert(whole);
            if is_item {
                bound.push((name, path));
            }
        }
    }
    (bound, used)
}

/// Returns the paths of a tree such as `a::{b, c::{self, d as e}, f::*}`, each with the name it binds.
fn leaves(tree: &str) -> Vec<(Vec<String>, String)> {
    let tree = tree.trim();
    if let Some(open) = tree.find('{') {
        let before: Vec<String> = segments(&tree[..open]);
        let inner = tree[open + 1..].rsplit_once('}').map_or("", |(inner, _)| inner);
        let parts = split_at_commas(inner);
        let below = parts.into_iter().flat_map(leaves);
        return below.map(|(path, name)| join(&before, path, name)).collect();
    }
    let (path, alias) = tree.split_once(" as ").map_or((tree, None), |(path, alias)| (path, Some(alias.trim())));
    let mut path = segments(path);
    let name = alias.map(str::to_owned).or_else(|| path.last().cloned()).unwrap_or_default();
    if path.last().is_some_and(|last| last == "*") {
        path.pop();
    }
    if path.is_empty() && name.is_empty() { Vec::new() } else { vec![(path, name)] }
}

/// Puts the path of a group before one of its parts; `self` in a group is the group's own path.
fn join(before: &[String], path: Vec<String>, name: String) -> (Vec<String>, String) {
    if path.len() == 1 && path[0] == "self" && !before.is_empty() {
        let own = before.last().cloned().unwrap_or_default();
        let name = if name == "self" { own } else { name };
        return (before.to_vec(), name);
    }
    ([before.to_vec(), path].concat(), name)
}

fn split_at_commas(inner: &str) -> Vec<&str> {
    let (mut depth, mut start, mut parts) = (0, 0, Vec::new());
    for (at, c) in inner.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(&inner[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inner[start..]);
    parts.into_iter().filter(|part| !part.trim().is_empty()).collect()
}

fn segments(path: &str) -> Vec<String> {
    path.split("::").map(|part| part.trim().to_owned()).filter(|part| !part.is_empty()).collect()
}

/// Returns the paths in code, such as `super::a::b` in a signature or an expression; not their generic arguments.
fn paths(code: &str) -> Vec<Vec<String>> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(more) = code[at..].find("::") {
        let head = at + more;
        let start = code[..head].rfind(|c: char| !part(c)).map_or(0, |before| before + 1);
        let mut path = vec![code[start..head].to_owned()];
        let mut end = head;
        while code[end..].starts_with("::") {
            let name = identifier(&code[end + 2..]);
            if name.is_empty() {
                break;
            }
            end += 2 + name.len();
            path.push(name);
        }
        if !path[0].is_empty() && path.len() > 1 {
            found.push(path);
        }
        at = end.max(head + 2);
    }
    found
}

fn identifier(text: &str) -> String {
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

/// Returns the files in circles of the package at `root`, given as paths and texts.
fn circles_in(root: &str, files: &[(&str, &str)]) -> Vec<String> {
    let files = files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    Package::new(root, &files).circles().concat()
}

#[test]
fn circles_are_found_by_paths_groups_and_aliases() {
    for (b, c) in [
        ("use super::c::C;", "fn f() { crate::a::b::g() }"),
        ("use super::{c::C, e};", "use crate::a::{b::{self, G}, z::Z};"),
        ("use crate::{\n    a::{c::{C as K}},\n    z,\n};", "fn f(x: super::b::B) {}"),
        ("use super::c;\nfn f() { c::g() }", "use super::b::*;"),
        ("fn f() -> super::super::a::c::C {}", "use super::b::g as h;"),
    ] {
        let files = [("src/a.rs", "mod b;\nmod c;\nmod d;"), ("src/a/b.rs", b), ("src/a/c.rs", c)];
        let files = [&files[..], &[("src/a/d.rs", "use super::b::B;")]].concat();
        assert_eq!(circles_in("src/a", &files), ["src/a/b.rs", "src/a/c.rs"], "{b}: {c}");
    }
}

#[test]
fn a_package_is_one_module_wherever_its_root_is() {
    let (b, c) = ("use crate::c::d::D;", "use crate::{b::B, Z};");
    for root in ["sip/src", "src/a"] {
        let files = [("lib.rs", "mod b;\nmod c;"), ("b.rs", b), ("c.rs", ""), ("c/d.rs", c)];
        let paths = files.map(|(name, text)| (format!("{root}/{name}"), text));
        let files: Vec<(&str, &str)> = paths.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        assert_eq!(circles_in(root, &files), [format!("{root}/b.rs"), format!("{root}/c/d.rs")]);
    }
    for (path, expect) in [
        ("src/a.rs", Some("src/a")),
        ("src/a/lib.rs", Some("src/a")),
        ("src/a/b/c.rs", Some("src/a")),
        ("sip/src/sdp/offer.rs", Some("sip/src")),
        ("media/benches/frame.rs", None),
    ] {
        assert_eq!(package_of(path), expect, "{path}");
    }
}

#[test]
fn a_name_counts_where_it_is_defined_and_the_tree_is_no_circle() {
    let tree = [
        ("src/a.rs", "mod b;\nmod c;\npub use self::b::B;\npub use c::*;\npub struct A;\nfn f() { b::g() }"),
        ("src/a/b.rs", "use super::A;\npub struct B;\nfn g() {}"),
        ("src/a/c.rs", "use super::{A, B};\npub struct C;"),
    ];
    assert_eq!(circles_in("src/a", &tree), [""; 0], "a parent and its children; one child by way of the parent");
    let mut files = tree;
    files[1].1 = "use super::C;\npub struct B;";
    assert_eq!(
        circles_in("src/a", &files),
        ["src/a/b.rs", "src/a/c.rs"],
        "by the parent's re-exports, one of them a glob"
    );
    files[1].1 = "pub struct B;\n#[cfg(test)]\nuse super::C;\n#[cfg(test)]\nmod tests {\n    use crate::a::C;\n}";
    assert_eq!(circles_in("src/a", &files), [""; 0], "tests do not count");
}

#[test]
fn a_circle_may_go_through_a_parent_of_others() {
    let files = [
        ("src/a.rs", "mod x;\nmod y;"),
        ("src/a/x.rs", "use super::y::f;"),
        ("src/a/y.rs", "mod p;\npub fn f() { p::g() }"),
        ("src/a/y/p.rs", "use crate::a::x::X;"),
    ];
    assert_eq!(circles_in("src/a", &files), ["src/a/x.rs", "src/a/y.rs", "src/a/y/p.rs"]);
}
