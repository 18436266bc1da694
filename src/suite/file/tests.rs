//! Files of suites: what they become, and the errors that name line and column.

use serde_json::json;

use super::super::yaml::parse;
use super::*;

fn read_text(text: &str) -> Result<Suite, Vec<String>> {
    let root = parse(text, "f").expect("it is read");
    of_node(&root, Path::new("dir/s.yaml")).map_err(|problems| problems.iter().map(Problem::to_string).collect())
}

const HEAD: &str = "version: 1\nconnect: { sip: 'sip:desk@127.0.0.1:5080' }\n";

#[test]
fn no_is_a_text() {
    let suite =
        read_text(&format!("{HEAD}defaults: {{ repeat: 3, language: no, noise: cafe }}\nscenarios: [{{name: x}}]\n"));
    assert!(suite.expect_err("a language")[0].starts_with("f:3:34: language: "), "`no` is a text, and no language");
}

#[test]
fn a_scenario_becomes_a_digital_human_and_a_simulation() {
    let suite = read_text(&format!(
        "{HEAD}spawn: {{ command: [python, agent.py], ready: {{ tcp: '127.0.0.1:5080', within_s: 30 }} }}
defaults: {{ repeat: 3, language: en, noise: cafe, noise_db: 15, network: low, max_seconds: 120, gate: {{ pass_rate: 0.9, untold: ignore }} }}
scenarios:
  - name: books a visit
    tags: [smoke]
    persona: Maria, in a hurry
    goal: Book a visit next week.
    traits: {{ date_of_birth: 1990-03-03, member: 0047, age: 33, adult: true }}
    success: The agent names a day.
    voice_speed: fast
    max_turns: 9
    expect:
      - {{ metric: p95_agent_latency, at_most: 1.5 }}
      - {{ tool: book_visit, args: {{ day: tuesday }} }}
  - name: keypad menu
    noise: none
    repeat: 1
    gate: {{ pass_rate: 1 }}
    turns:
      - expect: {{ contains: press one, within_ms: 15000 }}
      - dtmf: 1
      - expect: {{ meaning: asks for the number, excludes: [sorry, error] }}
      - dtmf: 4711#
      - say: Yes, that is right.
      - interrupt: {{ after_ms: 1200, say: Excuse me. }}
      - wait: 3000
      - expect: {{ absent: true, within_ms: 2000 }}
"
    ))
    .expect("it is read");
    let [first, second] = &suite.scenarios[..] else { panic!("two scenarios") };
    let trait_of =
        |name: &str, kind: &str, value: Value| json!({"trait_name": name, "trait_data_type": kind, "value": value});
    assert_eq!(
        Value::Object(first.human.clone()),
        json!({
            "language": "en", "voice_speed": "fast", "role_description": "Maria, in a hurry",
            "intent": "Book a visit next week.",
            "traits": [trait_of("date_of_birth", "DATE", json!("1990-03-03")), trait_of("member", "STRING", json!("0047")),
                trait_of("age", "NUMBER", json!(33)), trait_of("adult", "BOOLEAN", json!(true))],
            "background_noise": "cafe", "connection_quality": "low", "background_noise_volume": 0.6,
            "expectations": [{"meaning": "The agent names a day."}, {"metric": "p95_agent_latency", "at_most": 1.5},
                {"tool": "book_visit", "args": {"day": "tuesday"}}],
            "suite_name": "books a visit", "name": "books a visit", "tags": ["smoke"],
        })
    );
    assert_eq!(
        Value::Object(first.simulation.clone()),
        json!({"max_turns": 9, "max_call_duration": 120, "max_call_duration_units": "seconds", "ringing_timeout": 45})
    );
    let gate = Gate { pass_rate: 0.9, untold: UntoldRule::Ignore };
    assert_eq!((first.repeat, first.gate, &first.tags[..]), (Some(3), gate, &["smoke".to_owned()][..]));
    assert_eq!((second.repeat, second.gate), (Some(1), Gate::default()));
    assert_eq!((&second.human["background_noise"], &second.human["stop_on_failure"]), (&json!("none"), &json!(true)));
    assert_eq!(
        second.human["enriched_playback"],
        json!([
            {"speaker": "agent", "contains": ["press one"], "within_ms": 15_000},
            {"speaker": "user", "type": "dtmf", "digits": "1"},
            {"speaker": "agent", "excludes": ["sorry", "error"], "criteria": "asks for the number"},
            {"speaker": "user", "type": "dtmf", "digits": "4711#"},
            {"speaker": "user", "exact_message": "Yes, that is right."},
            {"speaker": "user", "interrupt": {"after_ms": 1200, "exact_message": "Excuse me."}},
            {"speaker": "user", "type": "silence", "duration_ms": 3000},
            {"speaker": "agent", "within_ms": 2000, "absent": true},
        ])
    );
}

#[test]
fn it_rings_as_long_as_the_suite_says() {
    let read = |defaults: &str, own: &str| {
        read_text(&format!("{HEAD}defaults: {{ {defaults} }}\nscenarios:\n  - name: x\n    {own}"))
            .map(|suite| suite.scenarios[0].simulation["ringing_timeout"].clone())
    };
    assert_eq!(read("", "goal: a"), Ok(json!(45)));
    assert_eq!(read("ring_seconds: 20", "goal: a"), Ok(json!(20)));
    assert_eq!(read("ring_seconds: 20", "ring_seconds: 7.6"), Ok(json!(8)));
    assert_eq!(read("", "ringing_timeout: 90"), Ok(json!(90)));
    let wrong = read("ring_seconds: 20", "ringing_timeout: 90").expect_err("both are given");
    assert!(wrong[0].ends_with("ring_seconds and ringing_timeout say the same: give one of them"), "{wrong:?}");
}

#[test]
fn what_is_wrong_is_named_with_its_place_and_the_nearest_word() {
    let one = |rest: &str| format!("{HEAD}scenarios:\n  - name: x\n{rest}");
    for (text, expect) in [
        (String::new(), "f:1:1: a suite is a map with version, connect and scenarios"),
        ("connect: {sip: a}\nscenarios: [{name: x}]".into(), "f:1:1: version is missing: write version: 1"),
        ("version: 2\nconnect: {sip: a}\nscenarios: [{name: x}]".into(), "f:1:10: version 2 is not known, 1 is"),
        ("version: 1\nscenarios: [{name: x}]".into(), "connect is missing"),
        (HEAD.to_owned(), "scenarios is missing"),
        (format!("{HEAD}scenarios: []"), "f:3:12: scenarios must be a list of at least one scenario"),
        (format!("{HEAD}senarios: []"), "f:3:1: senarios is not known, did you mean scenarios?"),
        (one("    expct: []"), "f:5:5: expct is not known, did you mean expect?"),
        (one("    voice_sped: fast"), "f:5:5: voice_sped is not known, did you mean voice_speed?"),
        (one("    voice_speed: quick"), "f:5:18: voice_speed: "),
        (one("    noise: cafee"), "f:5:12: noise: "),
        (one("    noise_db: 40"), "f:5:15: noise_db must be a number from 5 to 30"),
        (one("    repeat: 0"), "repeat must be a number from 1 to 1000"),
        (one("    gate: {pass_rate: 2}"), "f:5:23: pass_rate must be a number from 0 to 1"),
        (one("    gate: {untold: pass}"), "f:5:20: untold must be tell, ignore or fail"),
        (one("    expect: [{metric: a}]"), "f:5:14: the expectation must have at_most or at_least beside metric"),
        (one("    expect: [{herd: a}]"), "f:5:15: herd is not known, did you mean heard?"),
        (one("    expect: [{ended_by: robot}]"), "the expectation cannot be read"),
        (one("    turns: [{say: a, wait: 3}]"), "a turn has one of expect, dtmf, say, interrupt, wait"),
        (one("    turns: [{expect: {contain: a}}]"), "contain is not known, did you mean contains?"),
        (one("    turns: [{expect: {absent: true}}]"), "absent needs within_ms"),
        (one("    turns: [{dtmf: 12x}]"), "'x' cannot be keyed"),
        (one("    turns: [{interrupt: {say: a}}]"), "interrupt needs after_ms"),
        (one("    turns: [{user: a}]"), "user is not known"),
        (format!("{HEAD}scenarios:\n  - name: x\n  - name: x"), "f:5:11: the name 'x' is there twice"),
        (format!("{HEAD}scenarios:\n  - goal: x"), "f:4:5: the scenario has no name"),
    ] {
        let problems = read_text(&text).expect_err(&text);
        assert!(problems.iter().any(|line| line.contains(expect)), "{problems:?}\n{expect}\n{text}");
    }
}
