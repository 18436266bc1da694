//! Suites in the words of a framework for agents: turns of `user` or `dtmf` with the events that are expected after
//! each. They are read as a scenario each, and played as any other.

use std::path::Path;

use serde_json::{Map, Value, json};

use super::expand::connect;
use super::reading::{check_known, number, texts, written_args};
use super::scenario::{RING_S, Scenario, Suite};
use super::verdict::Gate;
use super::yaml::{Node, Problem, parse};

/// Words of a whole file.
const FILE: [&str; 9] = ["name", "description", "connect", "turns", "scenarios", "tags", "spawn", "user", "judge"];
/// Blocks of a file that set its own framework up: this side speaks, hears and judges by its settings instead.
const BLOCKS: [(&str, &[&str]); 2] =
    [("user", &["modality", "speech"]), ("judge", &["modality", "eval", "transcription"])];
/// Address at which agents of the framework listen where nothing else is said.
const AGENT: &str = "{ pipeline: \"http://127.0.0.1:7860\" }";
/// Words of a turn.
const TURN: [&str; 4] = ["user", "dtmf", "send_after", "expect"];
/// Words of a scenario in a list of them.
const SCENARIO: [&str; 4] = ["name", "description", "turns", "tags"];
/// Words that go with each event that may be expected.
const EVENTS: [(&str, &[&str]); 4] = [
    ("response", SAID),
    ("bot_started_speaking", SAID),
    ("bot_interrupted", &["event", "within_ms", "absent"]),
    ("function_call", &["event", "within_ms", "absent", "name", "args", "calls"]),
];
/// Words that go with an answer of the agent.
const SAID: &[&str] = &["event", "within_ms", "text_contains", "text_excludes", "absent", "eval"];
/// Time from the agent's first sound after which this side is sure that it speaks, in milliseconds.
const SURE_MS: i64 = 200;
/// Longest time of an expectation, in milliseconds.
const MS_MAX: f64 = 600_000.0;

/// True for a document in these words: it has no version, and turns with `user` or expectations with `event`.
pub fn is_in_these_words(root: &Node) -> bool {
    root.get("version").is_none() && lists(root).iter().any(|turns| turns.iter().any(is_turn))
}

/// Returns the lists of turns of a document.
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
    for (word, known) in BLOCKS {
        let Some(node) = root.get(word) else { continue };
        match node.members() {
            Some(members) => members.iter().for_each(|(key, _)| check_known(key, known.iter().copied(), &mut problems)),
            None => problems.push(Problem::new(&node.at, format!("{word} must be a map with {}", known.join(", ")))),
        }
    }
    let unasked = parse(AGENT, "connect").ok();
    let connect = root.get("connect").or(unasked.as_ref()).map(connect);
    let connect = connect.and_then(|read| read.map_err(|wrong| problems.extend(wrong)).ok());
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
        if root.get("scenarios").is_some() {
            let members = node.members().unwrap_or_default();
            members.iter().for_each(|(key, _)| check_known(key, SCENARIO.into_iter(), &mut problems));
        }
        // Fields at the top apply to every scenario that has none of its own.
        let turns = node.get("turns").or(root.get("turns"));
        let made = scenario(node, turns, &stem, &mut problems);
        if scenarios.iter().any(|other| other.name == made.name) {
            problems.push(Problem::new(&made.at, format!("the name '{}' is there twice", made.name)));
        }
        scenarios.push(made);
    }
    match (connect, problems.is_empty()) {
        (Some(connect), true) => Ok(Suite { connect, spawn: spawn.flatten(), scenarios, masked: Vec::new() }),
        _ => Err(problems),
    }
}

fn scenario(node: &Node, turns: Option<&Node>, stem: &str, problems: &mut Vec<Problem>) -> Scenario {
    let name = node.get("name").and_then(Node::text).unwrap_or(stem).to_owned();
    let (mut steps, mut expectations) = (Vec::new(), Vec::new());
    if turns.and_then(Node::items).is_none_or(<[Node]>::is_empty) {
        problems.push(Problem::new(turns.map_or(&node.at, |turns| &turns.at), "turns must be a list, and not empty"));
    }
    for item in turns.and_then(Node::items).unwrap_or_default() {
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
        gate: Gate::default(),
        human,
        simulation: Map::from_iter([("ringing_timeout".to_owned(), json!(RING_S))]),
        sources: Vec::new(),
        metrics: Vec::new(),
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
    for (word, what) in [("user", "a text; pauses in it are not read"), ("dtmf", "the keys")] {
        if let Some(value) = node.get(word).filter(|value| value.text().is_none()) {
            problems.push(Problem::new(&value.at, format!("{word} must be {what}")));
        }
    }
    let after = node.get("send_after").and_then(|after| send_after(after, problems));
    if let (Some(SendAfter::Onset(_)), Some(digits)) = (&after, node.get("dtmf")) {
        problems.push(Problem::new(&digits.at, "send_after bot_started_speaking is for user alone"));
    }
    if let Some(SendAfter::Pause(ms)) = after {
        steps.push(json!({ "speaker": "user", "type": "silence", "duration_ms": ms }));
    }
    match (node.get("user").and_then(Node::text), node.get("dtmf").and_then(Node::text)) {
        (Some(words), None) => steps.push(match after {
            Some(SendAfter::Onset(after_ms)) => {
                json!({ "speaker": "user", "interrupt": { "after_ms": after_ms, "exact_message": words } })
            }
            _ => json!({ "speaker": "user", "exact_message": words }),
        }),
        (None, Some(digits)) => steps.push(json!({ "speaker": "user", "type": "dtmf", "digits": digits })),
        (None, None) if node.get("expect").is_some() && after.is_none() => {}
        _ => problems.push(Problem::new(&node.at, "a turn has one of user and dtmf")),
    }
    let mut answers: Vec<Map<String, Value>> = Vec::new();
    match node.get("expect").map(|expect| (expect, expect.items())) {
        None => {}
        Some((expect, None)) => problems.push(Problem::new(&expect.at, "expect must be a list")),
        Some((_, Some(items))) => items.iter().for_each(|item| expect(item, &mut answers, expectations, problems)),
    }
    for mut answer in answers {
        answer.insert("speaker".to_owned(), json!("agent"));
        steps.push(Value::Object(answer));
    }
}

/// Moment of the words or digits of a turn.
enum SendAfter {
    /// Milliseconds after the agent began to speak.
    Onset(i64),
    /// Milliseconds after what was sent before.
    Pause(i64),
}

/// Reads `send_after`: an event with a delay, a delay alone, or the event as a word; `None` where nothing is waited
/// for.
fn send_after(node: &Node, problems: &mut Vec<Problem>) -> Option<SendAfter> {
    let (event, delay) = match node.members() {
        Some(members) => {
            members.iter().for_each(|(key, _)| check_known(key, ["event", "delay_ms"].into_iter(), problems));
            (node.get("event").map_or(Some("none"), Node::text), node.get("delay_ms"))
        }
        None => (node.text(), None),
    };
    let ms = number(delay, "delay_ms", 0.0, MS_MAX, problems).map(|ms| ms.round() as i64);
    match event {
        Some("none") => ms.filter(|ms| *ms > 0).map(SendAfter::Pause),
        // The earliest time at which this side is sure that the agent speaks.
        Some("bot_started_speaking") => Some(SendAfter::Onset(ms.unwrap_or(0).max(SURE_MS))),
        _ => {
            problems.push(Problem::new(&node.at, "send_after must be bot_started_speaking or none"));
            None
        }
    }
}

fn expect(
    node: &Node,
    answers: &mut Vec<Map<String, Value>>,
    expectations: &mut Vec<Value>,
    problems: &mut Vec<Problem>,
) {
    let Some(event) = node.get("event").and_then(Node::text) else {
        return problems.push(Problem::new(&node.at, "an expectation needs event"));
    };
    let Some((_, beside)) = EVENTS.iter().find(|(known, _)| *known == event) else {
        let near = crate::config::nearest(event, EVENTS.iter().map(|(known, _)| *known));
        return problems.push(Problem::new(&node.at, format!("the event {event} is not known{near}")));
    };
    for (key, _) in node.members().unwrap_or_default() {
        let words = || EVENTS.iter().flat_map(|(_, beside)| beside.iter().copied());
        match words().any(|word| word == key.name) && !beside.contains(&key.name.as_str()) {
            true => problems.push(Problem::new(&key.at, format!("{} is not checked of {event}", key.name))),
            false => check_known(key, words().collect::<Vec<_>>().into_iter(), problems),
        }
    }
    let absent = node.get("absent").map(|absent| (absent, absent.json()));
    if let Some((absent, value)) = &absent
        && !value.is_boolean()
    {
        problems.push(Problem::new(&absent.at, "absent must be true or false"));
    }
    let is_absent = absent.is_some_and(|(_, value)| value == json!(true));
    match event {
        "function_call" => calls(node, is_absent, expectations, problems),
        "bot_interrupted" => {
            let bound = if is_absent { "at_most" } else { "at_least" };
            let count = i64::from(!is_absent);
            expectations.push(json!({ "metric": "customer_interruption_count", bound: count }));
            if !is_absent {
                expectations.push(json!({ "metric": "yield_rate", "at_least": 1 }));
            }
            if let Some(ms) = number(node.get("within_ms"), "within_ms", 0.0, MS_MAX, problems) {
                expectations.push(json!({ "metric": "yield_latency", "at_most": ms / 1000.0 }));
            }
        }
        _ => answer(node, is_absent, answers, problems),
    }
}

/// Adds the expectations on an answer of the agent.
///
/// Expectations on the words of one turn become one turn of the agent; a silence after it is a step of its own.
fn answer(node: &Node, is_absent: bool, answers: &mut Vec<Map<String, Value>>, problems: &mut Vec<Problem>) {
    let within = number(node.get("within_ms"), "within_ms", 0.0, MS_MAX, problems).map(|ms| ms.round() as i64);
    if is_absent {
        if within.is_none() {
            problems.push(Problem::new(&node.at, "absent needs within_ms"));
        }
        for (key, _) in node.members().unwrap_or_default() {
            if ["text_contains", "text_excludes", "eval"].contains(&key.name.as_str()) {
                problems.push(Problem::new(&key.at, format!("{} cannot be beside absent", key.name)));
            }
        }
        answers.push(Map::from_iter([("within_ms".to_owned(), json!(within)), ("absent".to_owned(), json!(true))]));
        return;
    }
    if answers.last().is_none_or(|last| last.contains_key("absent")) {
        answers.push(Map::new());
    }
    let Some(step) = answers.last_mut() else { return };
    // A turn of the agent is expected, whatever it says; the shorter time counts.
    let longest = step.get("within_ms").and_then(Value::as_i64);
    let within = within.into_iter().chain(longest).min();
    step.extend(within.map(|ms| ("within_ms".to_owned(), json!(ms))));
    for (word, field) in [("text_contains", "contains"), ("text_excludes", "excludes")] {
        let phrases = texts(node.get(word), word, problems);
        if let (false, Some(all)) = (phrases.is_empty(), step.entry(field).or_insert_with(|| json!([])).as_array_mut())
        {
            all.extend(phrases.into_iter().map(Value::from));
        }
    }
    step.retain(|_, value| value.as_array().is_none_or(|all| !all.is_empty()));
    if let Some(meaning) = node.get("eval") {
        match (meaning.text(), step.get("criteria").and_then(Value::as_str)) {
            (None, _) => problems.push(Problem::new(&meaning.at, "eval must be a text")),
            (Some(text), None) => drop(step.insert("criteria".to_owned(), json!(text))),
            (Some(text), Some(before)) => {
                let both = format!("{before} And: {text}");
                step.insert("criteria".to_owned(), json!(both));
            }
        }
    }
    if step.is_empty() {
        step.insert("within_ms".to_owned(), json!(MS_MAX as i64));
    }
}

/// Adds the calls of tools that are expected: `calls`, names or maps of name and args, or a single name with its args.
fn calls(node: &Node, is_absent: bool, expectations: &mut Vec<Value>, problems: &mut Vec<Problem>) {
    let listed = node.get("calls").map(|calls| (calls, calls.items().unwrap_or_default()));
    let nodes: Vec<&Node> = match &listed {
        Some((calls, [])) => return problems.push(Problem::new(&calls.at, "calls must be a list, and not empty")),
        Some((_, items)) => items.iter().collect(),
        None => vec![node],
    };
    let within = number(node.get("within_ms"), "within_ms", 0.0, MS_MAX, problems).map(|ms| ms.round() as i64);
    for call in nodes {
        if listed.is_some() {
            let members = call.members().unwrap_or_default();
            members.iter().for_each(|(key, _)| check_known(key, ["name", "args"].into_iter(), problems));
        }
        let name = if listed.is_some() { call.text() } else { None };
        let Some(name) = name.or_else(|| call.get("name").and_then(Node::text)) else {
            problems.push(Problem::new(&call.at, "function_call needs name"));
            continue;
        };
        let mut made = Map::from_iter([("tool".to_owned(), json!(name))]);
        if let Some(args) = call.get("args") {
            made.insert("args".to_owned(), args.json());
            made.extend(written_args(args));
        }
        made.extend(is_absent.then(|| ("times".to_owned(), json!(0))));
        made.extend(within.map(|ms| ("within_ms".to_owned(), json!(ms))));
        expectations.push(Value::Object(made));
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::of_node;
    use super::super::yaml::parse;
    use super::*;

    fn read_text(text: &str) -> Result<Suite, Vec<String>> {
        let root = parse(text, "f").expect("it is read");
        let describe = |problems: Vec<Problem>| problems.iter().map(Problem::to_string).collect();
        of_node(&root, Path::new("menu.yaml")).map_err(describe)
    }

    #[test]
    fn a_file_that_its_framework_has_started_with_is_read_as_it_stands() {
        let text = |user: &str| {
            format!(
                "name: starter
user: {user}
judge: {{ modality: audio, transcription: {{ service: moonshine }}, eval: {{ service: openai, model: m }} }}
scenarios:
  - name: starter
    turns:
      - expect: [{{ event: response, eval: the agent greets }}]
      - user: What can you do?
        expect: [{{ event: response, eval: the agent tells it }}]
"
            )
        };
        let suite = read_text(&text("{ modality: audio, speech: { service: kokoro, sample_rate: 16000 } }"));
        let suite = suite.expect("it is read");
        let super::super::expand::Connect::Made(made) = &suite.connect else { panic!("{:?}", suite.connect) };
        assert_eq!(made.agent["P2_agent_name"], "http://127.0.0.1:7860");
        let scenario = &suite.scenarios[0];
        assert_eq!((scenario.name.as_str(), &scenario.simulation["ringing_timeout"]), ("starter", &json!(45)));
        assert_eq!(scenario.human["enriched_playback"].as_array().map(Vec::len), Some(3));
        let wrong = read_text(&text("{ modalities: audio }")).expect_err("a word is wrong");
        assert!(wrong[0].contains("modalities is not known"), "{wrong:?}");
        assert!(read_text(&text("audio")).expect_err("it is no map")[0].contains("user must be a map"));
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

    /// Returns the steps of a list of turns.
    fn steps(turns: &str) -> Value {
        let suite = read_text(&format!("connect: {{sip: 'sip:a@127.0.0.1'}}\nturns:\n{turns}")).expect("it is read");
        suite.scenarios[0].human["enriched_playback"].clone()
    }

    #[test]
    fn words_are_sent_after_an_event_or_a_delay() {
        let cut = |ms: i64| json!([{"speaker": "user", "interrupt": {"after_ms": ms, "exact_message": "a"}}]);
        for (after, expect) in [
            ("bot_started_speaking", cut(200)),
            ("{event: bot_started_speaking}", cut(200)),
            ("{event: bot_started_speaking, delay_ms: 1500}", cut(1500)),
            ("{event: none}", json!([{"speaker": "user", "exact_message": "a"}])),
            (
                "{delay_ms: 700}",
                json!([{"speaker": "user", "type": "silence", "duration_ms": 700}, {"speaker": "user", "exact_message": "a"}]),
            ),
        ] {
            assert_eq!(steps(&format!("  - {{user: a, send_after: {after}}}\n")), expect, "{after}");
        }
    }

    #[test]
    fn what_is_expected_of_one_turn_is_one_step_and_a_silence_is_another() {
        let turns = "  - user: a
    expect:
      - {event: response, text_contains: one, within_ms: 9000}
      - {event: response, text_contains: two, eval: greets, within_ms: 5000}
      - {event: response, absent: true, within_ms: 3000}
";
        assert_eq!(
            steps(turns),
            json!([
                {"speaker": "user", "exact_message": "a"},
                {"within_ms": 5000, "contains": ["one", "two"], "criteria": "greets", "speaker": "agent"},
                {"within_ms": 3000, "absent": true, "speaker": "agent"},
            ])
        );
    }

    #[test]
    fn several_calls_are_several_expectations_and_turns_at_the_top_are_for_all() {
        let suite = read_text(
            "name: all
connect: {sip: 'sip:a@127.0.0.1'}
turns:
  - user: Hi.
    expect: [{event: function_call, within_ms: 2500, calls: [look, {name: book, args: {day: tuesday}}]}, {event: bot_interrupted, within_ms: 800}]
scenarios:
  - name: one
  - {name: two, turns: [{user: Bye.}]}
",
        )
        .expect("it is read");
        let of = |at: usize, field: &str| suite.scenarios[at].human[field].clone();
        let hi = json!([{"speaker": "user", "exact_message": "Hi."}]);
        let bye = json!([{"speaker": "user", "exact_message": "Bye."}]);
        assert_eq!((of(0, "enriched_playback"), of(1, "enriched_playback")), (hi, bye));
        assert_eq!(
            of(0, "expectations"),
            json!([
                {"tool": "look", "within_ms": 2500},
                {"tool": "book", "args": {"day": "tuesday"}, "within_ms": 2500},
                {"metric": "customer_interruption_count", "at_least": 1},
                {"metric": "yield_rate", "at_least": 1},
                {"metric": "yield_latency", "at_most": 0.8},
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
            ("  - {user: [a, {pause_ms: 900}]}", "user must be a text; pauses in it are not read"),
            ("  - {user: a, send_after: {event: llm_started}}", "send_after must be bot_started_speaking or none"),
            ("  - {user: a, send_after: {delay: 5}}", "delay is not known"),
            (
                "  - {dtmf: 1, send_after: {event: bot_started_speaking}}",
                "send_after bot_started_speaking is for user alone",
            ),
            ("  - {user: a, expect: {event: response}}", "expect must be a list"),
            ("  - {user: a, expect: [{event: response, name: b}]}", "f:4:42: name is not checked of response"),
            ("  - {user: a, expect: [{event: function_call, name: b, within_ms: soon}]}", "within_ms must be a number"),
            ("  - {user: a, expect: [{event: function_call, calls: []}]}", "calls must be a list, and not empty"),
            ("  - {user: a, expect: [{event: response, absent: 1, within_ms: 5}]}", "absent must be true or false"),
            (
                "  - {user: a, expect: [{event: response, absent: true, within_ms: 5, eval: b}]}",
                "eval cannot be beside absent",
            ),
            ("  - {say: a}", "say is a word of another kind of file"),
            ("  - {user: a, dtmf: 1}", "a turn has one of user and dtmf"),
            ("metrics: {}", "metrics is not known"),
        ] {
            let problems = read_text(&format!("{head}{rest}\n")).expect_err(rest);
            assert!(problems.iter().any(|line| line.contains(expect)), "{problems:?} {expect}");
        }
        let listed = "connect: {sip: a}\nscenarios:\n  - {name: x, context: [], turns: [{user: a}]}\n";
        assert!(read_text(listed).expect_err("context")[0].contains("context is not known"));
        let empty = "connect: {sip: a}\nturns: [{user: a}]\nscenarios:\n  - {name: x, turns: []}\n";
        assert!(read_text(empty).expect_err("no turn")[0].contains("turns must be a list, and not empty"));
        let both = "version: 1\nconnect: {sip: a}\nscenarios:\n  - {name: x, turns: [{user: a}]}\n";
        assert!(read_text(both).expect_err("both kinds")[0].contains("user is not known"));
    }
}
