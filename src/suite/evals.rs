//! Suites in the words of a framework for agents: turns of `user` or `dtmf` with the events that are expected after each. They are read
//! as a scenario each, and played as any other.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::expand::connect;
use super::file::{Scenario, Suite};
use super::reading::{check_known, number, texts};
use super::yaml::{Node, Problem};

/// Words of a whole file.
const FILE: [&str; 7] = ["name", "description", "connect", "turns", "scenarios", "tags", "spawn"];
/// Words of a turn.
const TURN: [&str; 4] = ["user", "dtmf", "send_after", "expect"];
/// Words of an expectation.
const EXPECT: [&str; 8] = ["event", "within_ms", "text_contains", "text_excludes", "absent", "eval", "name", "args"];
/// Events that may be expected.
const EVENTS: [&str; 4] = ["response", "bot_started_speaking", "bot_interrupted", "function_call"];
/// Longest time of an expectation, in milliseconds.
const MS_MAX: f64 = 600_000.0;

/// True for a document in these words: it has no version, and turns with `user` or expectations with `event`.
pub fn is_in_these_words(root: &Node) -> bool {
    root.get("version").is_none() && lists(root).iter().any(|turns| turns.iter().any(is_turn))
}

/// The lists of turns of a document.
fn lists(root: &Node) -> Vec<&[Node]> {
    let of_scenarios = root.get("scenarios").and_then(Node::items).unwrap_or_default();
    let all = std::iter::once(root).chain(of_scenarios);
    all.filter_map(|node| node.get("turns")?.items()).collect()
}

fn is_turn(turn: &Node) -> bool {
    let has_event = |item: &Node| item.get("event").is_some();
    turn.get("user").is_some() || turn.get("expect").and_then(Node::items).is_some_and(|all| all.iter().any(has_event))
}

/// Reads a document.
///
/// # Errors
/// Everything that is wrong in it; words of both kinds in one file too.
pub fn suite(root: &Node, path: &Path) -> Result<Suite, Vec<Problem>> {
    let mut problems = Vec::new();
    let members = root.members().unwrap_or_default();
    members.iter().for_each(|(key, _)| check_known(key, FILE.into_iter(), &mut problems));
    let connect = match root.get("connect") {
        Some(node) => connect(node).map_err(|wrong| problems.extend(wrong)).ok(),
        None => {
            problems.push(Problem::new(&root.at, "connect is missing: it says what is called"));
            None
        }
    };
    let folder = path.parent().unwrap_or(Path::new(""));
    let spawn = root.get("spawn");
    let spawn = spawn.and_then(|node| super::spawn::spawn(node, folder).map_err(|wrong| problems.extend(wrong)).ok());
    let nodes: Vec<&Node> = match root.get("scenarios").and_then(Node::items) {
        Some(items) => items.iter().collect(),
        None => vec![root],
    };
    let stem = path.file_stem().map_or_else(|| "suite".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let mut scenarios: Vec<Scenario> = Vec::new();
    for node in nodes {
        let made = scenario(node, &stem, &mut problems);
        if scenarios.iter().any(|other| other.name == made.name) {
            problems.push(Problem::new(&made.at, format!("the name '{}' is there twice", made.name)));
        }
        scenarios.push(made);
    }
    match (connect, problems.is_empty()) {
        (Some(connect), true) => {
            Ok(Suite { path: path.to_owned(), connect, spawn: spawn.flatten(), scenarios, masked: Vec::new() })
        }
        _ => Err(problems),
    }
}

fn scenario(node: &Node, stem: &str, problems: &mut Vec<Problem>) -> Scenario {
    let name = node.get("name").and_then(Node::text).unwrap_or(stem).to_owned();
    let (mut steps, mut expectations) = (Vec::new(), Vec::new());
    for item in node.get("turns").and_then(Node::items).unwrap_or_default() {
        turn(item, &mut steps, &mut expectations, problems);
    }
    let human = Map::from_iter([
        ("name".to_owned(), json!(name)),
        ("suite_name".to_owned(), json!(name)),
        ("stop_on_failure".to_owned(), json!(true)),
        ("enriched_playback".to_owned(), json!(steps)),
        ("expectations".to_owned(), json!(expectations)),
    ]);
    Scenario {
        at: node.get("name").map_or(&node.at, |name| &name.at).clone(),
        name,
        tags: texts(node.get("tags"), "tags", problems),
        repeat: None,
        pass_rate: 1.0,
        human,
        simulation: Map::new(),
    }
}

fn turn(node: &Node, steps: &mut Vec<Value>, expectations: &mut Vec<Value>, problems: &mut Vec<Problem>) {
    let Some(members) = node.members() else {
        return problems.push(Problem::new(&node.at, "a turn is a map with user or dtmf"));
    };
    if let Some((key, _)) = members.iter().find(|(key, _)| ["say", "interrupt", "wait"].contains(&key.name.as_str())) {
        let why = format!("{} is a word of another kind of file; both kinds in one file are not read", key.name);
        problems.push(Problem::new(&key.at, why));
        return;
    }
    members.iter().for_each(|(key, _)| check_known(key, TURN.into_iter(), problems));
    let cuts_in = match node.get("send_after").map(|after| (after, after.text())) {
        None | Some((_, Some("none"))) => false,
        Some((after, Some("bot_started_speaking"))) => {
            if node.get("dtmf").is_some() {
                problems.push(Problem::new(&after.at, "send_after bot_started_speaking is for user alone"));
            }
            true
        }
        Some((after, _)) => {
            problems.push(Problem::new(&after.at, "send_after must be bot_started_speaking or none"));
            false
        }
    };
    match (node.get("user").and_then(Node::text), node.get("dtmf").and_then(Node::text)) {
        (Some(words), None) if cuts_in => {
            // As early as this side is sure that the agent speaks.
            steps.push(json!({ "speaker": "user", "interrupt": { "after_ms": 200, "exact_message": words } }));
        }
        (Some(words), None) => steps.push(json!({ "speaker": "user", "exact_message": words })),
        (None, Some(digits)) => steps.push(json!({ "speaker": "user", "type": "dtmf", "digits": digits })),
        (None, None) if node.get("expect").is_some() => {}
        _ => problems.push(Problem::new(&node.at, "a turn has one of user and dtmf")),
    }
    // What is expected of the words of one turn is expected of one turn of the agent.
    let mut answer = Map::new();
    for item in node.get("expect").and_then(Node::items).unwrap_or_default() {
        expect(item, &mut answer, expectations, problems);
    }
    if !answer.is_empty() {
        answer.insert("speaker".to_owned(), json!("agent"));
        steps.push(Value::Object(answer));
    }
}

fn expect(node: &Node, answer: &mut Map<String, Value>, expectations: &mut Vec<Value>, problems: &mut Vec<Problem>) {
    for (key, _) in node.members().unwrap_or_default() {
        check_known(key, EXPECT.into_iter(), problems);
    }
    let Some(event) = node.get("event").and_then(Node::text) else {
        return problems.push(Problem::new(&node.at, "an expectation needs event"));
    };
    let within = number(node.get("within_ms"), "within_ms", 0.0, MS_MAX, problems).map(|ms| ms.round() as i64);
    let is_absent = node.get("absent").map(Node::json) == Some(json!(true));
    match event {
        "response" | "bot_started_speaking" => {
            answer.extend(within.map(|ms| ("within_ms".to_owned(), json!(ms))));
            if is_absent {
                if within.is_none() {
                    problems.push(Problem::new(&node.at, "absent needs within_ms"));
                }
                answer.insert("absent".to_owned(), json!(true));
            }
            for (word, field) in [("text_contains", "contains"), ("text_excludes", "excludes")] {
                let phrases = texts(node.get(word), word, problems);
                if !phrases.is_empty() {
                    answer.insert(field.to_owned(), json!(phrases));
                }
            }
            if let Some(meaning) = node.get("eval").and_then(Node::text) {
                answer.insert("criteria".to_owned(), json!(meaning));
            }
            // A turn of the agent is to come, whatever it says.
            if answer.is_empty() {
                answer.insert("within_ms".to_owned(), json!(MS_MAX as i64));
            }
        }
        "bot_interrupted" => {
            let bound = if is_absent { "at_most" } else { "at_least" };
            let count = i64::from(!is_absent);
            expectations.push(json!({ "metric": "customer_interruption_count", bound: count }));
            if !is_absent {
                expectations.push(json!({ "metric": "yield_rate", "at_least": 1 }));
            }
        }
        "function_call" => {
            let Some(name) = node.get("name").and_then(Node::text) else {
                return problems.push(Problem::new(&node.at, "function_call needs name"));
            };
            let mut made = Map::from_iter([("tool".to_owned(), json!(name))]);
            made.extend(node.get("args").map(|args| ("args".to_owned(), args.json())));
            made.extend(is_absent.then(|| ("times".to_owned(), json!(0))));
            expectations.push(Value::Object(made));
        }
        other => {
            let near = crate::config::nearest(other, EVENTS.into_iter());
            problems.push(Problem::new(&node.at, format!("the event {other} is not known{near}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::of_node;
    use super::super::yaml::parse;
    use super::*;

    fn read_text(text: &str) -> Result<Suite, Vec<String>> {
        let root = parse(text, "f").expect("it is read");
        let told = |problems: Vec<Problem>| problems.iter().map(Problem::to_string).collect();
        of_node(&root, Path::new("menu.yaml")).map_err(told)
    }

    #[test]
    fn turns_and_events_become_steps_and_expectations() {
        let suite = read_text(
            "connect: {sip: 'sip:a@127.0.0.1'}
turns:
  - user: Hello.
    expect:
      - {event: response, within_ms: 3000, text_contains: welcome, text_excludes: [sorry], eval: greets}
  - user: Wait!
    send_after: bot_started_speaking
    expect: [{event: bot_interrupted}, {event: function_call, name: book, args: {day: tuesday}}]
  - dtmf: 12#
    send_after: none
    expect: [{event: bot_started_speaking}]
  - user: Bye.
    expect: [{event: response, absent: true, within_ms: 2000}, {event: function_call, name: book, absent: true}]
",
        )
        .expect("it is read");
        let human = &suite.scenarios[0].human;
        assert_eq!(suite.scenarios[0].name, "menu");
        assert_eq!(
            human["enriched_playback"],
            json!([
                {"speaker": "user", "exact_message": "Hello."},
                {"within_ms": 3000, "contains": ["welcome"], "excludes": ["sorry"], "criteria": "greets", "speaker": "agent"},
                {"speaker": "user", "interrupt": {"after_ms": 200, "exact_message": "Wait!"}},
                {"speaker": "user", "type": "dtmf", "digits": "12#"},
                {"within_ms": 600_000, "speaker": "agent"},
                {"speaker": "user", "exact_message": "Bye."},
                {"within_ms": 2000, "absent": true, "speaker": "agent"},
            ])
        );
        assert_eq!(
            human["expectations"],
            json!([
                {"metric": "customer_interruption_count", "at_least": 1},
                {"metric": "yield_rate", "at_least": 1},
                {"tool": "book", "args": {"day": "tuesday"}},
                {"tool": "book", "times": 0},
            ])
        );
    }

    #[test]
    fn anything_else_is_named() {
        let head = "connect: {sip: 'sip:a@127.0.0.1'}\nturns:\n  - user: Hi.\n";
        for (rest, expect) in [
            ("  - {user: a, expect: [{event: metric}]}", "f:4:24: the event metric is not known"),
            (
                "  - {user: a, expect: [{event: response, txt_contains: b}]}",
                "txt_contains is not known, did you mean text_contains?",
            ),
            ("  - {user: a, delay: 5}", "delay is not known"),
            ("  - {user: a, send_after: later}", "send_after must be bot_started_speaking or none"),
            ("  - {say: a}", "say is a word of another kind of file"),
            ("  - {user: a, dtmf: 1}", "a turn has one of user and dtmf"),
            ("metrics: {}", "metrics is not known"),
        ] {
            let told = read_text(&format!("{head}{rest}\n")).expect_err(rest);
            assert!(told.iter().any(|line| line.contains(expect)), "{told:?} {expect}");
        }
        let both = "version: 1\nconnect: {sip: a}\nscenarios:\n  - {name: x, turns: [{user: a}]}\n";
        assert!(read_text(both).expect_err("both kinds")[0].contains("user is not known"));
    }
}
