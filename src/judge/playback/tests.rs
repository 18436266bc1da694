//! Steps of a playback, against timelines of calls.

use ringer_model::expectation::{FaultCode, OwnFault};
use ringer_provider::testing::{Reply, ScriptedModel};

use super::*;
use crate::moments;

fn objects(steps: Value) -> Vec<Object> {
    serde_json::from_value(steps).expect("objects")
}

fn statuses(played: &[Played]) -> Value {
    played.iter().map(Played::to_json).collect()
}

fn talk() -> (Vec<Object>, Value) {
    let steps = json!([
        {"speaker": "agent", "type": "message", "exact_match_text": "Press 1 for support."},
        {"speaker": "user", "type": "dtmf", "digits": "1"},
        {"speaker": "agent", "type": "message", "criteria": "starts troubleshooting"},
        {"speaker": "user", "type": "silence", "duration_ms": 100},
        {"speaker": "user", "exact_message": "Thanks."},
        {"speaker": "agent", "exact_match_text": "Goodbye"},
        {"speaker": "agent", "type": "silence", "duration_ms": 100},
        {"speaker": "agent", "exact_match_text": "never"},
    ]);
    let timeline = json!([
        {"seq": 1, "sample": 1, "event": "turn.ended", "side": "agent", "data": {"text": "press 1 for support"}},
        {"seq": 2, "sample": 2, "event": "speech.ended", "side": "dh", "data": {"kind": "reprompt"}},
        {"seq": 3, "sample": 3, "event": "dtmf_sent", "side": "dh", "data": {"digits": "1"}},
        {"seq": 4, "sample": 4, "event": "turn.ended", "side": "agent", "data": {"text": "let us see"}},
        {"seq": 5, "sample": 5, "event": "speech.ended", "side": "dh", "data": {"kind": "turn"}},
        {"seq": 6, "sample": 6, "event": "turn.ended", "side": "agent", "data": {"text": "what else"}},
    ]);
    (objects(steps), timeline)
}

#[tokio::test]
async fn each_step_of_the_agent_takes_one_turn() {
    let (steps, mut timeline) = talk();
    let mut played = playback(&steps, &moments(&timeline), true, 0);
    let expect = |meant: Option<bool>| {
        json!([
            {"index": 0, "passed": true, "status": "passed", "reason": null, "heard": "press 1 for support"},
            {
                "index": 2,
                "passed": meant,
                "status": if meant == Some(true) { "passed" } else { "unknown" },
                "reason": meant.is_none().then_some("its meaning was not judged"),
                "heard": "let us see",
            },
            {"index": 5, "passed": false, "status": "failed", "reason": "the turn is not 'Goodbye'", "heard": "what else"},
            {"index": 6, "passed": null, "status": "unknown", "reason": "the agent was silent for 0 ms", "heard": "0 ms"},
            {"index": 7, "passed": false, "status": "not_reached", "reason": "the conversation was over before it", "heard": ""},
        ])
    };
    assert_eq!(statuses(&played), expect(None));
    assert_eq!(playback(&[], &moments(&timeline), true, 0), []);
    let replies = [r#"{"steps": []}"#, r#"{"steps": [{"index": "2", "passed": "True"}]}"#];
    let model = ScriptedModel::new(replies.map(|reply| Reply::says(&[reply])).to_vec());
    assert_eq!(judge_meanings(&mut played, &model).await, Ok(()));
    assert_eq!(statuses(&played), expect(Some(true)));
    let asked = model.requests();
    let material = r#"[{"index":2,"wanted":"starts troubleshooting","heard":"let us see"}]"#;
    assert_eq!((asked.len(), asked[0].messages[1].content.as_str()), (2, material));
    // Nothing is open any more; what is, stays open without an answer.
    assert_eq!(judge_meanings(&mut played, &model).await, Ok(()));
    played[1].passed = None;
    assert_eq!(judge_meanings(&mut played, &model).await, Err("scripted failure".into()));
    // Entered twice, they are there once.
    for passed in [None, Some(true)] {
        played[1].passed = passed;
        enter_playback(&played, &mut timeline);
    }
    let events = timeline.as_array().expect("a list").iter().filter(|event| event["event"] == EVENT);
    let events: Vec<(i64, i64, Value)> = events
        .map(|event| (event["seq"].as_i64().unwrap(), event["sample"].as_i64().unwrap(), event["data"].clone()))
        .collect();
    let data = |index: i64, passed: bool| json!({"index": index, "passed": passed});
    let expect = [
        (7, 1, data(0, true)),
        (8, 4, data(2, true)),
        (9, 6, data(5, false)),
        (10, 6, json!({"index": 6, "passed": null})),
        (11, 6, data(7, false)),
    ];
    assert_eq!(events, expect);
}

#[test]
fn words_that_are_missing_beside_doubtful_ones_have_neither_passed_nor_failed() {
    let check = |step: Value, hundredths: i64, expect: (Option<bool>, Option<&str>)| {
        let word = |(word, hundredths): (&str, i64), at: i64| {
            let confidence = hundredths as f64 / 100.0;
            json!({"word": word, "start_offset_ms": at * 300, "end_offset_ms": at * 300 + 300, "confidence": confidence})
        };
        let words = [word(("at", 95), 0), word(("vera", hundredths), 1), word(("run", hundredths), 2)];
        let data = json!({"text": "at vera run", "from_sample": 0, "end_sample": 14_400, "words": words});
        let timeline = json!([{"seq": 1, "sample": 14_400, "event": "turn.ended", "side": "agent", "data": data}]);
        let played = playback(&objects(json!([step])), &moments(&timeline), true, 0);
        assert_eq!((played[0].passed, played[0].reason.as_deref()), expect, "{step} {hundredths}");
    };
    let contains = || json!({"speaker": "agent", "contains": "Ferranti"});
    let why = "'Ferranti' was not said for sure; words were heard with doubt: vera 0.20, run 0.20";
    check(contains(), 20, (None, Some(why)));
    check(contains(), 80, (Some(false), Some("'Ferranti' was not said")));
    check(json!({"speaker": "agent", "contains": "vera"}), 20, (Some(true), None));
    let exact = || json!({"speaker": "agent", "exact_match_text": "At Ferranti"});
    let why = "the turn is not 'At Ferranti' for sure; words were heard with doubt: vera 0.20, run 0.20";
    check(exact(), 20, (None, Some(why)));
    check(exact(), 80, (Some(false), Some("the turn is not 'At Ferranti'")));
    check(
        json!({"speaker": "agent", "exact_match_text": "Near Ferranti"}),
        80,
        (Some(false), Some("the turn is not 'Near Ferranti'")),
    );
}

#[test]
fn words_that_were_not_heard_have_neither_passed_nor_failed() {
    let steps = objects(json!([
        {"speaker": "agent", "exact_match_text": "Press 1 for support."},
        {"speaker": "agent", "criteria": "starts troubleshooting"},
        {"speaker": "agent", "exact_match_text": "Goodbye."},
    ]));
    let turn = |seq: i64, text: &str| {
        let data = json!({"text": text, "text_missing": "recognizer_late"});
        json!({"seq": seq, "sample": seq, "event": "turn.ended", "side": "agent", "data": data})
    };
    let timeline = json!([turn(1, ""), turn(2, ""), turn(3, "goodbye")]);
    let played = playback(&steps, &moments(&timeline), true, 0);
    let passed: Vec<_> = played.iter().map(|step| (step.passed, step.is_open())).collect();
    assert_eq!(passed, [(None, false), (None, false), (Some(true), false)]);
}

#[test]
fn digits_pass_where_they_are_those_that_were_wanted() {
    for (wanted, keyed, expect) in [
        (json!("12"), "12", Some(true)),
        (json!("12"), "1", Some(false)),
        (json!("12"), "", Some(false)),
        (json!(""), "", None),
        (Value::Null, "7", None),
    ] {
        let steps = objects(json!([{"speaker": "agent", "type": "dtmf", "digits": wanted}]));
        let digit = |(digit, ms)| at(ms, "dtmf_received", "agent", json!({"digits": digit}));
        let mut lines: Vec<Value> = keyed.chars().zip(1..).map(digit).collect();
        lines.push(at(100, "turn.ended", "agent", json!({"text": ""})));
        let played = playback(&steps, &moments(&Value::from(lines)), true, 0);
        assert_eq!(played[0].passed, expect, "{wanted} {keyed}");
    }
}

/// Returns a line of a timeline in milliseconds.
fn at(ms: i64, event: &str, side: &str, data: Value) -> Value {
    json!({"seq": ms, "sample": ms * PER_MS, "event": event, "side": side, "data": data})
}

fn saying(from: i64, to: i64, side: &str) -> Vec<Value> {
    let data = json!({"utterance_id": from, "kind": "turn", "text": "word"});
    let mut lines = vec![at(from, "speech.started", side, data.clone()), at(to, "speech.ended", side, data)];
    if side == "agent" {
        // The words are known a little later.
        lines.push(at(to + 150, "turn.ended", side, json!({"text": "word", "end_sample": to * PER_MS})));
    }
    lines
}

#[test]
fn a_silence_of_the_agent_is_as_long_as_its_step_says() {
    let hear = json!({"speaker": "agent", "criteria": "speaks"});
    let quiet = |ms: i64| json!({"speaker": "agent", "type": "silence", "duration_ms": ms});
    let say = json!({"speaker": "user", "exact_message": "word"});
    let mean = json!({"speaker": "user", "intent": "word"});
    let own_quiet = json!({"speaker": "user", "type": "silence", "duration_ms": 500});
    let agent_after = |ms: i64| [saying(0, 1000, "dh"), saying(1000 + ms, 4000 + ms, "agent")].concat();
    let own_after = |ms: i64| [saying(0, 1000, "agent"), saying(1000 + ms, 4000 + ms, "dh")].concat();
    for (steps, lines, expect, heard) in [
        (json!([say, quiet(2000), hear]), agent_after(2000), Some(true), "2000 ms"),
        (json!([say, quiet(2000), hear]), agent_after(1600), Some(true), "1600 ms"),
        (json!([say, quiet(2000), hear]), agent_after(2400), Some(true), "2400 ms"),
        (json!([say, quiet(2000), hear]), agent_after(1590), Some(false), "1590 ms"),
        (json!([say, quiet(2000), hear]), agent_after(2410), Some(false), "2410 ms"),
        // The Digital Human goes on: how much longer the agent would have been silent is not known.
        (json!([hear, quiet(2000), say]), own_after(2900), Some(true), "2900 ms"),
        (json!([hear, quiet(2000), say]), own_after(1500), None, "1500 ms"),
        (
            json!([hear, quiet(2000)]),
            [saying(0, 1000, "agent"), vec![at(2500, "call.ended", "engine", json!({}))]].concat(),
            None,
            "1500 ms",
        ),
        (
            json!([hear, quiet(2000)]),
            [saying(0, 1000, "agent"), vec![at(4000, "call.ended", "engine", json!({}))]].concat(),
            Some(true),
            "3000 ms",
        ),
        (json!([quiet(2000), hear]), saying(2000, 3000, "agent"), Some(true), "2000 ms"),
        (json!([say, quiet(1000), quiet(1000), hear]), agent_after(2000), Some(true), "2000 ms"),
        (
            json!([say, own_quiet, say, quiet(2000), hear]),
            [saying(0, 1000, "dh"), saying(1500, 2500, "dh"), saying(4500, 5000, "agent")].concat(),
            Some(true),
            "2000 ms",
        ),
        (
            json!([mean, mean, quiet(2000), hear]),
            [saying(0, 1000, "dh"), saying(1500, 2500, "dh"), saying(4500, 5000, "agent")].concat(),
            Some(true),
            "2000 ms",
        ),
        (
            json!([say, quiet(2000), say, hear]),
            [saying(0, 1000, "dh"), saying(3000, 3500, "dh"), saying(4500, 5000, "agent")].concat(),
            Some(true),
            "2000 ms",
        ),
        (json!([hear, quiet(2000), say]), vec![], Some(false), ""),
    ] {
        let joined = steps[0] != mean;
        let played = playback(&objects(steps.clone()), &moments(&Value::from(lines)), joined, 0);
        let of_agent = steps
            .as_array()
            .expect("a list")
            .iter()
            .position(|step| step["type"] == "silence" && step["speaker"] == "agent");
        let found = played.iter().find(|step| Some(step.index) == of_agent).expect("it is judged");
        assert_eq!((found.passed, found.heard.as_str()), (expect, heard), "{steps}");
    }
}

/// Returns a turn of the agent with its words and times.
fn turn_of(from: i64, to: i64, text: &str) -> Vec<Value> {
    let data = json!({"text": text, "from_sample": from * PER_MS, "end_sample": to * PER_MS});
    vec![
        at(from, "speech.started", "agent", json!({"arrival_ms": from})),
        at(to, "speech.ended", "agent", json!({"arrival_ms": to})),
        at(to + 150, "turn.ended", "agent", data),
    ]
}

fn own(from: i64, to: i64, kind: &str) -> Vec<Value> {
    let data = json!({"utterance_id": from, "kind": kind, "text": "word"});
    vec![at(from, "speech.started", "dh", data.clone()), at(to, "speech.ended", "dh", data)]
}

fn ending(ms: i64, by: &str) -> Vec<Value> {
    vec![at(ms, "call.ended", "engine", json!({"by": by, "reason": "x"}))]
}

type Case = (Value, Vec<Value>, &'static str, &'static str);

fn say() -> Value {
    json!({"speaker": "user", "exact_message": "word"})
}

fn wait() -> Value {
    json!({"speaker": "user", "type": "silence", "duration_ms": 3000})
}

fn expect(more: Value) -> Value {
    let mut step = json!({"speaker": "agent"});
    step.as_object_mut().expect("a map").extend(more.as_object().expect("a map").clone());
    step
}

fn absent() -> Value {
    expect(json!({"absent": true, "within_ms": 2000}))
}

fn cut_in() -> Value {
    json!({"speaker": "user", "interrupt": {"after_ms": 1200, "exact_message": "word"}})
}

fn answering(ms: i64, text: &str) -> Vec<Value> {
    [own(0, 1000, "turn"), turn_of(1000 + ms, 3000 + ms, text)].concat()
}

fn check_cases(cases: impl IntoIterator<Item = Case>) {
    for (steps, mut lines, status, reason) in cases {
        lines.sort_by_key(|line| line["sample"].as_i64());
        let played = playback(&objects(steps.clone()), &moments(&Value::from(lines)), true, 0);
        let last = played.last().expect("one step").to_json();
        let outcome = (last["status"].as_str().expect("a word"), last["reason"].as_str().unwrap_or_default());
        assert_eq!(outcome, (status, reason), "{steps}");
    }
}

#[test]
fn words_and_times_of_a_turn_are_tested() {
    check_cases([
        (json!([say(), expect(json!({"contains": "press one"}))]), answering(500, "Please press ONE."), "passed", ""),
        (
            json!([say(), expect(json!({"contains": ["press", "two"]}))]),
            answering(500, "Please press one."),
            "failed",
            "'two' was not said",
        ),
        (json!([say(), expect(json!({"contains": "pre"}))]), answering(500, "press"), "failed", "'pre' was not said"),
        (
            json!([say(), expect(json!({"excludes": "sorry"}))]),
            answering(500, "So sorry."),
            "failed",
            "'sorry' was said",
        ),
        (json!([say(), expect(json!({"excludes": "sorry"}))]), answering(500, "Fine."), "passed", ""),
        (json!([say(), expect(json!({"within_ms": 500}))]), answering(500, "Fine."), "passed", ""),
        (
            json!([say(), expect(json!({"within_ms": 499}))]),
            answering(500, "Fine."),
            "failed",
            "the agent began after 500 ms, within_ms is 499",
        ),
        // The pause that this side keeps is its last step.
        (json!([say(), wait(), expect(json!({"within_ms": 500}))]), answering(3400, "Fine."), "passed", ""),
        // Without words of this side the time counts from connect.
        (json!([expect(json!({"within_ms": 700}))]), turn_of(700, 900, "hi"), "passed", ""),
        (
            json!([say(), expect(json!({"contains": "a", "within_ms": 100}))]),
            answering(500, "b"),
            "failed",
            "'a' was not said",
        ),
    ]);
}

#[test]
fn a_step_that_this_side_spoiled_is_not_the_agents() {
    let late = || (json!([say(), expect(json!({"contains": "fine", "within_ms": 499}))]), answering(500, "Fine."));
    let other = || (json!([say(), expect(json!({"contains": "one"}))]), answering(500, "Fine."));
    let gone =
        || (json!([say(), expect(json!({"within_ms": 900}))]), [own(0, 1000, "turn"), ending(5000, "USER")].concat());
    let spoke = || (json!([say(), absent()]), answering(500, "Fine."));
    let fault = |code, at_ms| OwnFault { code, at_ms, turn: None };
    let pacing = || vec![fault(FaultCode::Pacing, None)];
    let untrusted = Some("late_frames is 9");
    let by_time = "the agent began after 500 ms, within_ms is 499";
    for ((steps, mut lines), faults, untrusted, status, reason) in [
        (late(), vec![], None, "failed", by_time.to_owned()),
        (late(), pacing(), None, "unknown", format!("{by_time}; this side failed: pacing")),
        (late(), vec![], untrusted, "unknown", format!("{by_time}; the measurement is not trusted: late_frames is 9")),
        (
            gone(),
            pacing(),
            None,
            "unknown",
            "the agent said nothing within 900 ms; this side failed: pacing".to_owned(),
        ),
        (
            spoke(),
            pacing(),
            None,
            "unknown",
            "the agent spoke after 500 ms, it was to be silent for 2000 ms; this side failed: pacing".to_owned(),
        ),
        // Words do not lean on the clock, but on what this side said before.
        (other(), pacing(), untrusted, "failed", "'one' was not said".to_owned()),
        (
            other(),
            vec![fault(FaultCode::SynthesizerFailed, Some(900))],
            None,
            "unknown",
            "'one' was not said; this side failed: synthesizer_failed".to_owned(),
        ),
        (
            other(),
            vec![fault(FaultCode::SynthesizerFailed, Some(9000))],
            None,
            "failed",
            "'one' was not said".to_owned(),
        ),
        (other(), vec![fault(FaultCode::VoiceSubstituted, None)], None, "failed", "'one' was not said".to_owned()),
    ] {
        lines.sort_by_key(|line| line["sample"].as_i64());
        let mut played = playback(&objects(steps.clone()), &moments(&Value::from(lines)), true, 0);
        excuse(&mut played, &faults, untrusted);
        let last = played.last().expect("one step").to_json();
        assert_eq!(
            (last["status"].as_str(), last["reason"].as_str()),
            (Some(status), Some(reason.as_str())),
            "{steps}"
        );
    }
}

#[test]
fn turns_that_never_come_are_told() {
    check_cases([
        (
            json!([say(), expect(json!({"contains": "a", "within_ms": 4000}))]),
            [own(0, 1000, "turn"), ending(5000, "USER")].concat(),
            "failed",
            "the agent said nothing within 4000 ms",
        ),
        (
            json!([say(), expect(json!({"contains": "a", "within_ms": 4000}))]),
            [own(0, 1000, "turn"), ending(4000, "USER")].concat(),
            "not_reached",
            "the conversation was over before it",
        ),
        (
            json!([say(), expect(json!({"contains": "a"}))]),
            [own(0, 1000, "turn"), ending(2000, "AGENT")].concat(),
            "failed",
            "the agent ended the conversation before it",
        ),
        (
            json!([say(), expect(json!({"contains": "a"}))]),
            [own(0, 1000, "turn"), ending(12_000, "USER")].concat(),
            "failed",
            "the agent said nothing for 11000 ms",
        ),
    ]);
}

/// Says that the agent could speak from here on.
fn ready(ms: i64) -> Vec<Value> {
    vec![at(ms, "call.ready", "engine", json!({}))]
}

#[test]
fn a_first_step_counts_from_the_moment_the_agent_could_speak() {
    let greets = |within_ms: i64| json!([expect(json!({ "within_ms": within_ms }))]);
    let quiet = json!({"speaker": "agent", "type": "silence", "duration_ms": 2500});
    check_cases([
        (greets(2500), [ready(-2000), turn_of(500, 900, "hi")].concat(), "passed", ""),
        (
            greets(2499),
            [ready(-2000), turn_of(500, 900, "hi")].concat(),
            "failed",
            "the agent began after 2500 ms, within_ms is 2499",
        ),
        (
            greets(1000),
            [ready(-1800), turn_of(-10, 900, "hi")].concat(),
            "failed",
            "the agent began after 1790 ms, within_ms is 1000",
        ),
        (
            greets(3000),
            [ready(-2000), ending(1500, "USER")].concat(),
            "failed",
            "the agent said nothing within 3000 ms",
        ),
        (json!([absent()]), [ready(-1800), turn_of(300, 900, "hi")].concat(), "passed", ""),
        (
            json!([absent()]),
            [ready(-1800), turn_of(-10, 900, "hi")].concat(),
            "failed",
            "the agent spoke after 1790 ms, it was to be silent for 2000 ms",
        ),
        (
            json!([quiet.clone(), expect(json!({}))]),
            [ready(-2000), turn_of(500, 900, "hi")].concat(),
            "unknown",
            "nothing is expected of the turn",
        ),
    ]);
    let lines = [ready(-2000), turn_of(500, 900, "hi")].concat();
    let played = playback(&objects(json!([quiet])), &moments(&Value::from(lines)), true, 0);
    assert_eq!((played[0].passed, played[0].heard.as_str()), (Some(true), "2500 ms"));
}

/// After a dialled extension the agent has its time from 300 ms after the last digit on; what a machine said before is
/// no step.
#[test]
fn a_first_step_after_an_extension_counts_from_its_end() {
    let digit = |ms| vec![at(ms, "dtmf_sent", "dh", json!({"digits": "1", "method": "inband", "duration_ms": 100}))];
    let lines = || {
        let machine = turn_of(0, 500, "dial the extension");
        [ready(-2000), machine, digit(1000), digit(1200), turn_of(2100, 3000, "hi")].concat()
    };
    for (within_ms, status, reason) in
        [(500, "passed", ""), (499, "failed", "the agent began after 500 ms, within_ms is 499")]
    {
        let steps = objects(json!([expect(json!({ "contains": "hi", "within_ms": within_ms }))]));
        let mut lines = lines();
        lines.sort_by_key(|line| line["sample"].as_i64());
        let step = playback(&steps, &moments(&Value::from(lines)), true, 2)[0].to_json();
        assert_eq!((step["status"].as_str(), step["reason"].as_str().unwrap_or_default()), (Some(status), reason));
    }
}

/// A message of either side, and a turn of the agent where it is one; the timeline numbers them in order.
fn timeline_of(messages: &[(i64, &str)]) -> Value {
    let (mut lines, mut seq) = (Vec::new(), 0);
    let mut line = |ms: i64, event: &str, side: &str, data: Value| {
        lines.push(json!({"seq": seq, "sample": ms * PER_MS, "event": event, "side": side, "data": data}));
        seq += 1;
    };
    for &(ms, side) in messages {
        let data = json!({"text": "word", "channel": "http", "from_sample": ms * PER_MS, "end_sample": ms * PER_MS});
        if side == "dh" {
            line(ms, "message.sent", "dh", data);
        } else {
            line(ms, "message.received", "agent", data.clone());
            line(ms, "turn.ended", "agent", data);
        }
    }
    Value::from(lines)
}

#[test]
fn written_replies_count_from_the_message_that_they_answer() {
    let slow = [(0, "dh"), (8000, "agent"), (8000, "dh"), (8300, "agent"), (8300, "dh"), (16_400, "agent")];
    let within = || expect(json!({ "within_ms": 5000 }));
    let steps = objects(json!([say(), within(), say(), within(), say(), within()]));
    let step_statuses = statuses(&playback(&steps, &moments(&timeline_of(&slow)), true, 0));
    let reasons: Vec<Option<&str>> =
        step_statuses.as_array().expect("a list").iter().map(|step| step["reason"].as_str()).collect();
    let late = |ms: &str| format!("the agent began after {ms} ms, within_ms is 5000");
    assert_eq!(reasons, [Some(late("8000").as_str()), None, Some(late("8100").as_str())]);
    // Silence that is wanted begins with the message that goes out, not with the turn before it.
    let steps = objects(json!([say(), expect(json!({"contains": "word"})), say(), absent()]));
    for (next, passed, heard) in [(10_000, true, "2000 ms"), (9500, false, "1500 ms")] {
        let lines = timeline_of(&[(0, "dh"), (8000, "agent"), (8000, "dh"), (next, "agent"), (20_000, "dh")]);
        let played = playback(&steps, &moments(&lines), true, 0);
        assert_eq!((played[1].passed, played[1].heard.as_str()), (Some(passed), heard));
    }
}

#[test]
fn silence_and_cuts_are_tested() {
    check_cases([
        (json!([say(), absent()]), [own(0, 1000, "turn"), ending(3000, "USER")].concat(), "passed", ""),
        (json!([say(), absent()]), answering(2500, "late"), "passed", ""),
        (
            json!([say(), absent()]),
            answering(1500, "early"),
            "failed",
            "the agent spoke after 1500 ms, it was to be silent for 2000 ms",
        ),
        // A sound of less than 200 ms is no speech.
        (
            json!([say(), absent()]),
            [own(0, 1000, "turn"), turn_of(1500, 1690, "eh"), ending(4000, "USER")].concat(),
            "passed",
            "",
        ),
        (
            json!([say(), wait(), absent()]),
            [own(0, 1000, "turn"), turn_of(2000, 3000, "while it waits"), ending(7000, "USER")].concat(),
            "passed",
            "",
        ),
        (
            json!([say(), absent()]),
            [own(0, 1000, "turn"), ending(2000, "USER")].concat(),
            "unknown",
            "the conversation was over before it was",
        ),
        (
            json!([say(), absent()]),
            [own(0, 1000, "turn"), ending(2000, "AGENT")].concat(),
            "failed",
            "the agent ended the conversation before it was over",
        ),
        // The turn that was cut into is that of the step that did.
        (
            json!([say(), cut_in(), expect(json!({"contains": "of course"}))]),
            [
                own(0, 1000, "turn"),
                vec![at(1500, "speech.started", "agent", json!({"arrival_ms": 1500}))],
                own(2700, 3500, "interruption"),
                vec![
                    at(3000, "speech.ended", "agent", json!({"arrival_ms": 3000})),
                    at(
                        3600,
                        "turn.ended",
                        "agent",
                        json!({"text": "we offer", "from_sample": 1500 * PER_MS,
                        "end_sample": 3000 * PER_MS}),
                    ),
                ],
                turn_of(4000, 5000, "yes of course"),
            ]
            .concat(),
            "passed",
            "",
        ),
    ]);
}

#[test]
fn a_step_that_cuts_in_is_told_of() {
    let steps =
        json!([{"interrupt": {"after_ms": 1200, "exact_message": "word"}}, {"speaker": "agent", "contains": "yes"}]);
    let cut = [turn_of(0, 1500, "welcome"), own(1200, 2000, "interruption"), turn_of(2500, 3000, "yes")].concat();
    let short = [turn_of(0, 900, "welcome"), own(2000, 2500, "turn"), turn_of(3000, 3500, "yes")].concat();
    for (lines, statuses) in [(cut, ["passed", "passed"]), (short, ["not_reached", "not_reached"])] {
        let mut lines = lines;
        lines.sort_by_key(|line| line["sample"].as_i64());
        let played = playback(&objects(steps.clone()), &moments(&Value::from(lines)), true, 0);
        let found: Vec<&str> = played.iter().map(|step| step.status().as_str()).collect();
        assert_eq!(found, statuses);
    }
}
