//! Trees of spans of results that were written down, and what is told of their words.

use ringer_model::Object;
use ringer_model::evaluation::Evaluation;
use ringer_model::result::StatusChange;
use serde_json::from_value;

use super::*;

const ZERO_MS: i64 = 1_767_225_600_000;
const SECRET_WORDS: &str = "my number is 4711";

fn moments() -> Vec<TimelineEntry> {
    let event = |seq: i64, sample: i64, event: &str, side: &str, data: Value| json!({ "seq": seq, "sample": sample, "offset_ms": sample as f64 / 16.0, "event": event, "side": side, "data": data });
    let events = json!([
        event(0, -8000, "call.dialing", "engine", json!({ "address": "sip:+15550001111@h" })),
        event(1, 0, "call.connected", "engine", json!({ "code": 200, "codec": "PCMU" })),
        event(2, 80_000, "call.ended", "engine", json!({ "by": "USER", "reason": "done" })),
    ]);
    from_value(events).expect("a timeline")
}

fn turn(index: i64, speaker: Role, from_ms: i64, to_ms: i64) -> TurnItem {
    TurnItem {
        index,
        speaker,
        from_sample: from_ms * 16,
        to_sample: to_ms * 16,
        text: SECRET_WORDS.to_owned(),
        text_missing: None,
        interrupted: false,
        words: Vec::new(),
        latency_ms: Some(250.5),
        latency_from_sample: None,
        latency_from_turn: None,
        overlap_ms: 0.0,
        overlaps: Vec::new(),
    }
}

fn effect(kind: EffectKind, from_ms: i64, to_ms: i64) -> EffectTime {
    let (from_ns, to_ns) = (from_ms * NS, to_ms * NS);
    EffectTime { kind, from_ns, first_ns: Some(from_ns + NS), to_ns, cancelled: false, failed: None }
}

fn body() -> ResultBody {
    let history = [
        (ResultStatus::Initializing, -3000),
        (ResultStatus::Queued, -2000),
        (ResultStatus::Dispatched, -1000),
        (ResultStatus::Running, 10),
        (ResultStatus::ConversationEnded, 5100),
        (ResultStatus::Evaluating, 5200),
        (ResultStatus::Completed, 6000),
    ];
    let change = |(status, ms)| StatusChange { status, at: Timestamp(ZERO_MS + ms) };
    let metadata =
        json!({ "speaker": "gpt", "recognizer": { "kind": "whisper", "model": "tiny.en" }, "transport": "SIP/UDP" });
    let evaluation =
        Evaluation { goal_success: Some(true), goal_reasoning: Some(SECRET_WORDS.to_owned()), ..Evaluation::default() };
    ResultBody {
        simulation_run_id: 4,
        status: ResultStatus::Completed,
        status_history: history.map(change).to_vec(),
        start_time: Some(Timestamp(ZERO_MS)),
        end_time: Some(Timestamp(ZERO_MS + 5000)),
        metadata: from_value::<Object>(metadata).expect("an object"),
        evaluations: vec![evaluation],
        attempt: 1,
        ..ResultBody::default()
    }
}

/// Returns the spans of a call with a turn of each side.
fn spans(content: bool) -> Vec<Span> {
    let turns = [turn(0, Role::Agent, 500, 1500), turn(1, Role::User, 2000, 3000)];
    let effects = [
        effect(EffectKind::Recognize, 500, 1700),
        effect(EffectKind::Think, 1600, 1800),
        effect(EffectKind::Speak, 1800, 2100),
        effect(EffectKind::Think, 3100, 5400),
    ];
    let (body, moments) = (body(), moments());
    let traced = Traced {
        trace: [7; 16],
        result_id: 17,
        created_ms: ZERO_MS - 3000,
        body: &body,
        moments: &moments,
        turns: &turns,
        effects: &effects,
        content,
        model: Some("gpt"),
    };
    traced.spans()
}

#[test]
fn a_call_is_a_tree_within_its_run() {
    let spans = spans(false);
    let name_of = |id: SpanId| spans.iter().position(|span| span.id == id).map(|at| (at, spans[at].name.as_str()));
    let told: Vec<_> = (spans.iter())
        .map(|span| {
            let ms = |ns: u64| ns as i64 / NS - ZERO_MS;
            (span.name.as_str(), span.parent.and_then(name_of), ms(span.from_ns), ms(span.to_ns))
        })
        .collect();
    assert_eq!(
        told,
        [
            ("run", None, -3000, 6000),
            ("call", Some((0, "run")), -1000, 5000),
            ("setup", Some((1, "call")), -500, 0),
            ("turn", Some((1, "call")), 500, 1500),
            ("turn", Some((1, "call")), 2000, 3000),
            ("recognize", Some((3, "turn")), 500, 1700),
            ("think", Some((4, "turn")), 1600, 1800),
            ("speak", Some((4, "turn")), 1800, 2100),
            // What was thought of and never said ends with the call.
            ("think", Some((1, "call")), 3100, 5000),
            ("judgement", Some((0, "run")), 5200, 6000),
        ]
    );
    let ids: std::collections::BTreeSet<SpanId> = spans.iter().map(|span| span.id).collect();
    assert_eq!(ids.len(), spans.len(), "each has an identifier of its own");
}

#[test]
fn words_are_there_only_where_they_are_asked_for() {
    let told = |spans: Vec<Span>| format!("{spans:?}");
    assert!(!told(spans(false)).contains("4711"));
    assert_eq!(told(spans(true)).matches("4711").count(), 3, "two turns and the judge's reasons");
    assert!(!told(spans(true)).contains("15550001111"), "numbers are never there");
}

#[test]
fn models_are_named_by_the_conventions() {
    let spans = spans(false);
    let terms = |name: &str| {
        let span = spans.iter().find(|span| span.name == name).expect("it is there");
        let find = |key: &str| span.attributes.iter().find(|(known, _)| *known == key).map(|(_, value)| value.clone());
        ["gen_ai.operation.name", "gen_ai.provider.name", "gen_ai.request.model"]
            .map(|key| find(key).unwrap_or_default())
    };
    assert_eq!(terms("think"), [json!("chat"), json!(null), json!("gpt")]);
    assert_eq!(terms("recognize"), [json!("generate_content"), json!("whisper"), json!("tiny.en")]);
    assert_eq!(terms("speak"), [json!("generate_content"), json!(null), json!(null)]);
    assert_eq!(terms("judgement"), [json!("chat"), json!(null), json!("gpt")]);
}

#[test]
fn a_result_without_a_call_is_a_run_alone() {
    let body = ResultBody {
        status_history: vec![StatusChange { status: ResultStatus::Cancelled, at: Timestamp(ZERO_MS) }],
        attempt: 1,
        ..ResultBody::default()
    };
    let traced = Traced {
        trace: [7; 16],
        result_id: 17,
        created_ms: ZERO_MS - 10,
        body: &body,
        moments: &[],
        turns: &[],
        effects: &[],
        content: true,
        model: None,
    };
    let names: Vec<String> = traced.spans().into_iter().map(|span| span.name).collect();
    assert_eq!((names, traced.again()), (vec!["run".to_owned()], None));
}
