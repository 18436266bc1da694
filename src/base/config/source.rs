//! Sources of settings, and the errors about values that cannot be used.
//!
//! It knows how to read values, not which settings exist. Asking for a key makes it known; a key of the file that
//! nobody asked for is unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::path::Path;

use toml::de::{DeTable, DeValue};

/// Problems of the settings, one a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError(pub Vec<String>);

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("\n"))
    }
}

impl std::error::Error for ConfigError {}

/// A value as it was written: a text from a flag or the environment, or a typed value from the file.
#[derive(Clone, Debug)]
enum Raw {
    Text(String),
    Typed { value: toml::Value, written: String },
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Raw::Text(text) | Raw::Typed { value: toml::Value::String(text), .. } => write!(f, "\"{text}\""),
            Raw::Typed { written, .. } => f.write_str(written),
        }
    }
}

impl Raw {
    fn text(&self) -> Option<String> {
        match self {
            Raw::Text(text) | Raw::Typed { value: toml::Value::String(text), .. } => Some(text.clone()),
            Raw::Typed { .. } => None,
        }
    }

    fn whole(&self) -> Option<u64> {
        match self {
            Raw::Text(text) => text.trim().parse().ok(),
            Raw::Typed { value: toml::Value::Integer(number), .. } => u64::try_from(*number).ok(),
            Raw::Typed { .. } => None,
        }
    }

    fn number(&self) -> Option<f64> {
        match self {
            Raw::Text(text) => text.trim().parse().ok(),
            Raw::Typed { value: toml::Value::Float(number), .. } => Some(*number),
            Raw::Typed { value: toml::Value::Integer(number), .. } => Some(*number as f64),
            Raw::Typed { .. } => None,
        }
    }

    fn boolean(&self) -> Option<bool> {
        match self {
            Raw::Text(text) => match text.trim() {
                "true" | "1" | "yes" | "on" => Some(true),
                "false" | "0" | "no" | "off" => Some(false),
                _ => None,
            },
            Raw::Typed { value, .. } => value.as_bool(),
        }
    }

    /// Returns the whole numbers of a list, as texts.
    fn numbers(&self) -> Option<Vec<String>> {
        let Raw::Typed { value, .. } = self else { return None };
        let text = |item: &toml::Value| item.as_integer().map(|number| number.to_string());
        text(value).map(|one| vec![one]).or_else(|| value.as_array()?.iter().map(text).collect())
    }

    fn list(&self) -> Option<Vec<String>> {
        match self {
            Raw::Text(text) => {
                Some(text.split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect())
            }
            Raw::Typed { value, .. } => value.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        }
    }
}

struct Found {
    raw: Raw,
    place: String,
}

/// All values that were given, and every problem found while they were read.
pub(crate) struct Source {
    file: BTreeMap<String, Found>,
    /// Names of the file's tables, by the table around them.
    tables: BTreeMap<String, BTreeSet<String>>,
    environment: BTreeMap<String, String>,
    flags: BTreeMap<String, String>,
    asked: BTreeSet<String>,
    problems: Vec<String>,
}

impl Source {
    /// Reads the text of a settings file (`path` names it in messages), the environment and the flags (key and text).
    pub(crate) fn new(
        file: Option<(&Path, &str)>,
        environment: &BTreeMap<String, String>,
        flags: &[(&str, String)],
    ) -> Result<Source, ConfigError> {
        let mut source = Source {
            file: BTreeMap::new(),
            tables: BTreeMap::new(),
            environment: environment.iter().filter(|(name, _)| name.starts_with("RINGER_")).map(own).collect(),
            flags: flags.iter().map(|(key, text)| ((*key).to_owned(), text.clone())).collect(),
            asked: BTreeSet::new(),
            problems: Vec::new(),
        };
        if let Some((path, text)) = file {
            let table = DeTable::parse(text).map_err(|error| {
                let line = error.span().map_or(1, |span| line_of(text, span.start));
                ConfigError(vec![format!("{}:{line}: {}", path.display(), error.message())])
            })?;
            source.flatten(path, text, "", table.get_ref());
        }
        Ok(source)
    }

    fn flatten(&mut self, path: &Path, text: &str, prefix: &str, table: &DeTable<'_>) {
        for (name, value) in table {
            let key =
                if prefix.is_empty() { name.get_ref().to_string() } else { format!("{prefix}.{}", name.get_ref()) };
            let place = format!("{}:{}", path.display(), line_of(text, name.span().start));
            match value.get_ref() {
                DeValue::Table(inner) => {
                    self.tables.entry(prefix.to_owned()).or_default().insert(name.get_ref().to_string());
                    self.flatten(path, text, &key, inner);
                }
                _ => match text[value.span()].parse::<toml::Value>() {
                    Ok(typed) => {
                        let raw = Raw::Typed { value: typed, written: text[value.span()].to_owned() };
                        self.file.insert(key, Found { raw, place });
                    }
                    Err(_) => self.problems.push(format!("{place}: {key} cannot be read")),
                },
            }
        }
    }

    /// Removes variables of the environment that are no settings.
    pub(crate) fn pass_over(&mut self, names: &[&str]) {
        names.iter().for_each(|name| drop(self.environment.remove(*name)));
    }

    /// Reads a text; an empty one is `None`.
    pub(crate) fn maybe_text(&mut self, key: &str, into: &mut Option<String>) {
        self.read_value(key, "a text", |raw| raw.text().map(|text| Some(text).filter(|text| !text.is_empty())), into);
    }

    /// Reads a text that never appears in messages; an empty one is `None`.
    pub(crate) fn secret(&mut self, key: &str, into: &mut Option<super::Secret>) {
        if let Some(found) = self.find(key) {
            match found.raw.text() {
                Some(text) => *into = Some(text).filter(|text| !text.is_empty()).map(super::Secret::new),
                None => self.problems.push(format!("{}: {key} must be a text", found.place)),
            }
        }
    }

    /// Reads a list of texts that never appear in messages.
    pub(crate) fn secrets(&mut self, key: &str, into: &mut Vec<super::Secret>) {
        if let Some(found) = self.find(key) {
            match found.raw.list() {
                Some(texts) => *into = texts.into_iter().map(super::Secret::new).collect(),
                None => self.problems.push(format!("{}: {key} must be a list of texts", found.place)),
            }
        }
    }

    /// Reads true or false, and the usual words for them.
    pub(crate) fn boolean(&mut self, key: &str, into: &mut bool) {
        self.read_value(key, "true or false", Raw::boolean, into);
    }

    /// Reads a whole number in `range`.
    pub(crate) fn whole<T: TryFrom<u64>>(&mut self, key: &str, range: RangeInclusive<u64>, into: &mut T) {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        self.read_value(
            key,
            &allowed,
            |raw| raw.whole().filter(|n| range.contains(n)).and_then(|n| T::try_from(n).ok()),
            into,
        );
    }

    /// Reads a number in `range`.
    pub(crate) fn number(&mut self, key: &str, range: RangeInclusive<f64>, into: &mut f64) {
        let allowed = format!("a number from {} to {}", range.start(), range.end());
        self.read_value(key, &allowed, |raw| raw.number().filter(|number| range.contains(number)), into);
    }

    /// Reads a number as [`Source::number`] does, where not given is a value too.
    pub(crate) fn maybe_number(&mut self, key: &str, range: RangeInclusive<f64>, into: &mut Option<f64>) {
        let mut value = into.unwrap_or(f64::NAN);
        self.number(key, range, &mut value);
        *into = Some(value).filter(|value| !value.is_nan());
    }

    /// Reads a list of texts; in the environment commas separate them.
    pub(crate) fn list(&mut self, key: &str, into: &mut Vec<String>) {
        self.read_value(key, "a list of texts", Raw::list, into);
    }

    /// Reads a list as [`Source::list`] does, where not given is a value too.
    pub(crate) fn maybe_list(&mut self, key: &str, into: &mut Option<Vec<String>>) {
        self.read_value(key, "a list of texts", |raw| raw.list().map(Some), into);
    }

    /// Reads a whole number in `range`, where not given is a value too.
    pub(crate) fn maybe_whole<T: TryFrom<u64>>(&mut self, key: &str, range: RangeInclusive<u64>, into: &mut Option<T>) {
        let allowed = format!("a whole number from {} to {}", range.start(), range.end());
        let whole = |raw: &Raw| raw.whole().filter(|n| range.contains(n)).and_then(|n| T::try_from(n).ok());
        self.read_value(key, &allowed, |raw| whole(raw).map(Some), into);
    }

    /// Reads a text that `parse` understands; `allowed` describes such texts.
    pub(crate) fn read_parsed<T>(&mut self, key: &str, allowed: &str, parse: impl Fn(&str) -> Option<T>, into: &mut T) {
        self.read_value(key, allowed, |raw| parse(raw.text()?.trim()), into);
    }

    /// Reads one or several texts that `parse` understands together; `allowed` describes them. Within a text commas
    /// separate them.
    pub(crate) fn parsed_list<T>(
        &mut self,
        key: &str,
        allowed: &str,
        parse: impl Fn(&[String]) -> Option<T>,
        into: &mut T,
    ) {
        let texts = |raw: &Raw| {
            let list = raw.list().or_else(|| raw.numbers());
            list.or_else(|| Some(raw.text()?.split(',').map(str::to_owned).collect()))
        };
        self.read_value(key, allowed, |raw| parse(&texts(raw)?), into);
    }

    /// Reads whole numbers in `range` under names that the user chooses, one table level below `prefix`. Only in the
    /// file.
    pub(crate) fn whole_map(&mut self, prefix: &str, range: RangeInclusive<u64>, into: &mut BTreeMap<String, u64>) {
        for key in self.keys_below(prefix) {
            let mut value = 0;
            self.whole(&key, range.clone(), &mut value);
            into.insert(key[prefix.len() + 1..].to_owned(), value);
        }
    }

    /// Reads texts under names that the user chooses, one table level below `prefix`. Only in the file.
    pub(crate) fn text_map(&mut self, prefix: &str, into: &mut BTreeMap<String, String>) {
        for key in self.keys_below(prefix) {
            let mut value = None;
            self.maybe_text(&key, &mut value);
            into.extend(value.map(|text| (key[prefix.len() + 1..].to_owned(), text)));
        }
    }

    /// Reads everything below `prefix` as a table of JSON, tables in it included. Only in the file.
    pub(crate) fn table(&mut self, prefix: &str) -> serde_json::Map<String, serde_json::Value> {
        let mut table = serde_json::Map::new();
        for key in self.keys_below(prefix) {
            let Some(found) = self.find(&key) else { continue };
            let value = match found.raw {
                Raw::Text(text) => text.into(),
                Raw::Typed { value, .. } => serde_json::to_value(value).unwrap_or_default(),
            };
            match key[prefix.len() + 1..].split_once('.') {
                None => drop(table.insert(key[prefix.len() + 1..].to_owned(), value)),
                Some((name, member)) => {
                    let inner = table.entry(name).or_insert_with(|| serde_json::json!({}));
                    if let Some(inner) = inner.as_object_mut() {
                        inner.insert(member.to_owned(), value);
                    }
                }
            }
        }
        table
    }

    /// Returns the names that the user chose for tables below `prefix`.
    ///
    /// They come from the file, and from variables of the environment that end in the name of one of their `fields`.
    pub(crate) fn names_below(&self, prefix: &str, fields: &[&str]) -> Vec<String> {
        let mut names: Vec<String> = self.tables.get(prefix).into_iter().flatten().cloned().collect();
        let start = format!("{}_", environment_name(prefix));
        for rest in self.environment.keys().filter_map(|name| name.strip_prefix(&start)) {
            let named = |field: &&str| rest.strip_suffix(&format!("_{}", field.to_ascii_uppercase()));
            // The longest field is the one that is meant.
            let Some(name) = fields.iter().filter_map(named).min_by_key(|name| name.len()) else { continue };
            if !name.is_empty() && !names.iter().any(|known| environment_word(known) == name) {
                names.push(name.to_ascii_lowercase());
            }
        }
        names
    }

    /// True if a value of this key was refused.
    pub(crate) fn has_problem_of(&self, key: &str) -> bool {
        self.problems.iter().any(|problem| problem.contains(&format!("{key} ")))
    }

    fn keys_below(&self, prefix: &str) -> Vec<String> {
        let start = format!("{prefix}.");
        self.file.keys().filter(|key| key.starts_with(&start)).cloned().collect()
    }

    /// Adds a problem that concerns several values together.
    pub(crate) fn refuse(&mut self, problem: String) {
        self.problems.push(problem);
    }

    fn read_value<T>(&mut self, key: &str, allowed: &str, read: impl Fn(&Raw) -> Option<T>, into: &mut T) {
        let Some(found) = self.find(key) else { return };
        match read(&found.raw) {
            Some(value) => *into = value,
            None => self
                .problems
                .push(format!("{}: {key} = {} is not allowed: it must be {allowed}", found.place, found.raw)),
        }
    }

    /// Returns the value of a key. A flag wins over the environment, the environment over the file.
    fn find(&mut self, key: &str) -> Option<Found> {
        self.asked.insert(key.to_owned());
        let in_file = self.file.remove(key);
        let name = environment_name(key);
        let in_environment = self.environment.remove(&name);
        if let Some(text) = self.flags.remove(key) {
            return Some(Found { raw: Raw::Text(text), place: "command line".to_owned() });
        }
        match in_environment {
            Some(text) => Some(Found { raw: Raw::Text(text), place: format!("environment variable {name}") }),
            None => in_file,
        }
    }

    /// Reports settings that nobody asked for; an error when there was any problem.
    ///
    /// The returned texts are warnings about variables of the environment, which others may have set. A cluster that
    /// announces a service called ringer does that.
    pub(crate) fn finish(mut self) -> Result<Vec<String>, ConfigError> {
        for (key, found) in &self.file {
            let near = nearest(key, self.asked.iter().map(String::as_str));
            self.problems.push(format!("{}: unknown setting {key}{near}", found.place));
        }
        let names: Vec<String> = self.asked.iter().map(|key| environment_name(key)).collect();
        let warn = |name: &String| {
            format!("unknown environment variable {name}{}", nearest(name, names.iter().map(String::as_str)))
        };
        let warnings = self.environment.keys().map(warn).collect();
        self.problems.extend(self.flags.keys().map(|key| format!("command line: unknown setting {key}")));
        if self.problems.is_empty() { Ok(warnings) } else { Err(ConfigError(self.problems)) }
    }
}

fn own((name, value): (&String, &String)) -> (String, String) {
    (name.clone(), value.clone())
}

/// Returns the variable of a key: `RINGER_SIP_RTP_PORTS` for `sip.rtp_ports`.
pub(super) fn environment_name(key: &str) -> String {
    format!("RINGER_{}", environment_word(key))
}

/// Returns a part of the name of a variable: shells know letters, digits and `_`.
fn environment_word(key: &str) -> String {
    key.replace(['.', '-'], "_").to_ascii_uppercase()
}

fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// Returns `, did you mean X?` when a known name is near enough to be a typing error, or the same word in another
/// section.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let last = |key: &'a str| key.rsplit('.').next().unwrap_or(key);
    known
        .map(|key| {
            let word = name.rsplit('.').next().unwrap_or(name);
            let moved = if word == last(key) { 0.9 } else { 0.0 };
            (key, strsim::normalized_damerau_levenshtein(name, key).max(moved))
        })
        .filter(|(_, likeness)| *likeness >= 0.7)
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map_or_else(String::new, |(key, _)| format!(", did you mean {key}?"))
}
