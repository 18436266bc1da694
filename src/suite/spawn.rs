//! Command that a suite starts before its calls: its environment, and how it is known to be ready.

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};

use super::reading::{check_known, number};
use super::yaml::{Node, Problem};

/// Seconds that a command may take to be ready where nothing is said.
const WITHIN_S: f64 = 30.0;

/// A command that is started.
#[derive(Clone, Debug, PartialEq)]
pub struct Spawn {
    /// Program and its arguments.
    pub command: Vec<String>,
    /// Environment variables in addition to PATH, HOME and LANG.
    pub env: BTreeMap<String, String>,
    /// Folder that it runs in.
    pub folder: PathBuf,
    /// Addresses on this machine, one of which takes connections when it is ready; empty: it is ready at once. A name
    /// like `localhost` has several.
    pub ready: Vec<SocketAddr>,
    /// Seconds that it may take until then.
    pub within_s: f64,
}

/// Reads `spawn`; `folder`: that of the file.
///
/// # Errors
/// Everything that is wrong in it.
pub fn spawn(node: &Node, folder: &Path) -> Result<Option<Spawn>, Vec<Problem>> {
    let mut problems = Vec::new();
    let Some(members) = node.members() else {
        return Err(vec![Problem::new(&node.at, "spawn must be a map with command")]);
    };
    members
        .iter()
        .for_each(|(key, _)| check_known(key, ["command", "env", "ready", "shell"].into_iter(), &mut problems));
    let shell = node.get("shell").map(Node::json) == Some(serde_json::Value::Bool(true));
    let command = command(node, shell, &mut problems);
    let mut env = BTreeMap::new();
    for (key, value) in node.get("env").and_then(Node::members).unwrap_or_default() {
        match value.text() {
            _ if key.name == "RINGER_API_KEY" => {
                problems.push(Problem::new(&key.at, "RINGER_API_KEY is never given to a command"));
            }
            Some(text) => {
                env.insert(key.name.clone(), text.to_owned());
            }
            None => problems.push(Problem::new(&value.at, format!("{} must be a text", key.name))),
        }
    }
    let (mut ready, mut within_s) = (Vec::new(), WITHIN_S);
    if let Some(node) = node.get("ready") {
        for (key, _) in node.members().unwrap_or_default() {
            check_known(key, ["tcp", "within_s"].into_iter(), &mut problems);
        }
        within_s = number(node.get("within_s"), "within_s", 0.1, 3600.0, &mut problems).unwrap_or(WITHIN_S);
        let at = node.get("tcp").unwrap_or(node);
        ready = match node.get("tcp").and_then(Node::text).map(loopback) {
            Some(Ok(addresses)) => addresses,
            Some(Err(why)) => {
                problems.push(Problem::new(&at.at, format!("ready.tcp: {why}")));
                Vec::new()
            }
            None => {
                problems.push(Problem::new(&at.at, "ready needs tcp, an address like 127.0.0.1:5080"));
                Vec::new()
            }
        };
    }
    let folder = if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() };
    match (command, problems.is_empty()) {
        (Some(command), true) => Ok(Some(Spawn { command, env, folder, ready, within_s })),
        _ => Err(problems),
    }
}

fn command(node: &Node, shell: bool, problems: &mut Vec<Problem>) -> Option<Vec<String>> {
    let Some(given) = node.get("command") else {
        problems.push(Problem::new(&node.at, "spawn needs command"));
        return None;
    };
    let words = match (given.items(), given.text()) {
        (Some(items), _) if !shell => items.iter().map(|item| item.text().map(str::to_owned)).collect(),
        (None, Some(text)) if shell => Some(vec!["/bin/sh".to_owned(), "-c".to_owned(), text.to_owned()]),
        (None, Some(text)) => match split(text) {
            Ok(words) => Some(words),
            Err(why) => {
                problems.push(Problem::new(&given.at, format!("command: {why}")));
                return None;
            }
        },
        _ => None,
    };
    let words = words.filter(|words: &Vec<String>| words.first().is_some_and(|program| !program.is_empty()));
    if words.is_none() {
        problems.push(Problem::new(&given.at, "command must be a list of texts, or a text"));
    }
    words
}

/// Resolves a name to all of its addresses on this machine; a name without any is refused.
fn loopback(text: &str) -> Result<Vec<SocketAddr>, String> {
    let found = text.to_socket_addrs().map_err(|_| format!("'{text}' is no address like 127.0.0.1:5080"))?;
    let mut own: Vec<SocketAddr> = found.filter(|address| address.ip().is_loopback()).collect();
    own.dedup();
    if own.is_empty() { Err(format!("'{text}' is not on this machine")) } else { Ok(own) }
}

/// Splits a text into words as a shell does: blanks part them, quotes and backslashes hold them together; nothing is
/// expanded.
///
/// # Errors
/// A quote or a backslash without its end.
pub fn split(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (None, ' ' | '\t' | '\n') => words.extend(word.take()),
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (Some(open), c) if c == open => quote = None,
            (None, '\\') => {
                let next = chars.next().ok_or("a backslash stands at its end")?;
                word.get_or_insert_default().push(next);
            }
            (Some('"'), '\\') => {
                let next = chars.next().ok_or("a quote has no end")?;
                if !matches!(next, '"' | '\\' | '$' | '`') {
                    word.get_or_insert_default().push('\\');
                }
                word.get_or_insert_default().push(next);
            }
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    if quote.is_some() {
        return Err("a quote has no end".to_owned());
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::super::yaml::parse;
    use super::*;

    #[test]
    fn a_text_is_split_as_a_shell_splits_it() {
        for (text, expect) in [
            ("python agent.py", Ok(vec!["python", "agent.py"])),
            ("  a   'b c' \"d e\" f\\ g ", Ok(vec!["a", "b c", "d e", "f g"])),
            ("a ''", Ok(vec!["a", ""])),
            ("a'b'\"c\"", Ok(vec!["abc"])),
            ("echo \"$HOME \\\"x\\\" \\n\"", Ok(vec!["echo", "$HOME \"x\" \\n"])),
            ("a; rm -rf b", Ok(vec!["a;", "rm", "-rf", "b"])),
            ("", Ok(vec![])),
            ("'a", Err("a quote has no end")),
            ("a\\", Err("a backslash stands at its end")),
        ] {
            let found = split(text);
            let expect = expect.map(|words| words.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(found, expect.map_err(str::to_owned), "{text}");
        }
    }

    #[test]
    fn every_address_of_a_name_is_waited_for() {
        let found = loopback("localhost:5080").expect("every machine knows itself");
        assert!(found.contains(&SocketAddr::from(([127, 0, 0, 1], 5080))), "{found:?}");
        let expect: Vec<SocketAddr> = "localhost:5080".to_socket_addrs().expect("it was resolved").collect();
        assert!(expect.iter().all(|address| found.contains(address)), "{found:?} of {expect:?}");
    }

    #[test]
    fn a_command_is_read_with_its_place_and_readiness() {
        for (text, expect) in [
            ("{command: [a, b], env: {PORT: 5080}, ready: {tcp: \"127.0.0.1:5080\", within_s: 5}}", None),
            ("{command: a b, shell: true}", None),
            ("{}", Some("f:1:1: spawn needs command")),
            ("{command: []}", Some("f:1:11: command must be a list of texts, or a text")),
            ("{command: a, ready: {tcp: \"192.0.2.1:1\"}}", Some("ready.tcp: '192.0.2.1:1' is not on this machine")),
            ("{command: a, env: {RINGER_API_KEY: x}}", Some("RINGER_API_KEY is never given to a command")),
            ("{command: a, comand: b}", Some("comand is not known, did you mean command?")),
        ] {
            let found = spawn(&parse(text, "f").expect("it is read"), Path::new("dir"));
            match expect {
                None => {
                    let made = found.expect(text).expect("there is one");
                    let shell = made.command == ["/bin/sh", "-c", "a b"];
                    assert!(made.command == ["a", "b"] || shell, "{made:?}");
                    assert_eq!(made.folder, Path::new("dir"));
                }
                Some(expect) => {
                    let messages: Vec<String> = found.expect_err(text).iter().map(Problem::to_string).collect();
                    assert!(messages.iter().any(|line| line.contains(expect)), "{messages:?} {expect}");
                }
            }
        }
    }
}
