//! Events of each form, written and read back.

use std::collections::BTreeSet;

use serde_json::json;

use super::*;

fn line(name: &str, side: &str, data: Value) -> Value {
    json!({ "seq": 7, "sample": 24_001, "offset_ms": 1500.063, "event": name, "side": side, "data": data })
}

/// Returns the entry of a line, which is written as it was read.
fn line_as_read(name: &str, side: &str, data: &Value) -> TimelineEntry {
    let line = line(name, side, data.clone());
    let entry: TimelineEntry = serde_json::from_value(line.clone()).expect("every line is read");
    assert_eq!(serde_json::to_value(&entry).expect("it is written"), line);
    let event: Event = serde_json::from_value(line).expect("every line is read");
    assert_eq!(event, entry.event);
    entry
}

fn word(text: &str) -> Word {
    Word { text: text.into(), from: 1600, to: 3200, confidence: Some(0.25) }
}

fn call_ends() -> EventKind {
    EventKind::Ended {
        by: "AGENT".into(),
        reason: "agent_hangup".into(),
        sip_code: Some(200),
        q850_cause: None,
        close_code: Some(1000),
    }
}

fn turn_ended() -> EventKind {
    EventKind::TurnEnded {
        text: "Hello.".into(),
        from_sample: 100,
        end_sample: 3300,
        confidence: Some(0.9),
        words: [word("Hello.")].into(),
        concealed_ms: 40,
        missing: Some("recognizer_late".into()),
        late: true,
        reported: true,
    }
}

fn tool_call() -> EventKind {
    let (parameters, output) = (json!({ "day": "Monday" }), json!(null));
    EventKind::ToolCall(Box::new(ToolCall { name: "book".into(), parameters, output, source: Some("posted".into()) }))
}

fn greeting() -> EventKind {
    EventKind::AnsweringMachine {
        greeting_from_sample: 160,
        greeting_end_sample: 48_000,
        beep_ms: 400,
        frequency_hz: 1000,
    }
}

/// Returns one event of each form, with its side.
fn every() -> Vec<(Side, EventKind)> {
    use Side::{Agent, Dh, Engine};
    let (text, codec) = (|| "Hello.".to_owned(), "PCMU".into());
    let (arrival_ms, pre_conversation, address) = (12.5, true, Some("sip:a@b".to_owned()));
    let digit_parts = || ('#', Code::from("rtp_event"), 100);
    let (digit, method, duration_ms) = digit_parts();
    vec![
        (Engine, EventKind::Dialing { address: "sip:a@b".into() }),
        (Agent, EventKind::Ringing { address: None, code: 180 }),
        (Agent, EventKind::EarlyMedia { address: address.clone(), code: 183 }),
        (Engine, EventKind::Ready),
        (Engine, EventKind::Connected { address, code: 200, codec }),
        (Engine, call_ends()),
        (Dh, EventKind::SpeechStarted { utterance_id: 1, text: text(), kind: Kind::Opening }),
        (Dh, speech_ended(Box::new([[160, 4960]]))),
        (Dh, speech_ended(Box::new([]))),
        (Agent, EventKind::AgentSpeechStarted { arrival_ms, pre_conversation }),
        (Agent, EventKind::AgentSpeechEnded { arrival_ms, pre_conversation: false }),
        (Agent, turn_ended()),
        (Engine, EventKind::LanguageTaken { language: "de".into(), by: "text".into(), from_sample: -5 }),
        (Agent, EventKind::TranscriptPartial { text: text() }),
        (Dh, EventKind::BargeIn { by: Dh, overlap_ms: 400, stop_ms: None }),
        (Dh, EventKind::LateTurn { late_ms: 20, utterance_id: 3 }),
        (Dh, EventKind::ScriptedResponse { index: 0, match_type: "exact".into(), response_type: "dtmf".into() }),
        (Dh, EventKind::InterruptionDecided { kind: "keywords".into(), u: 0.125, at_ms: 900, keyword: Some(text()) }),
        (Dh, EventKind::SilenceTool { seconds: 20 }),
        (Dh, EventKind::Reprompt { n: 1 }),
        (Dh, EventKind::DtmfSent { digit, method, duration_ms }),
        (Agent, EventKind::DtmfReceived { digit, method: digit_parts().1, duration_ms }),
        (Agent, EventKind::Held),
        (Agent, EventKind::Unheld),
        (Agent, EventKind::SessionAnswered { code: 200 }),
        (Agent, EventKind::Transfer { to: "sip:c@d".into(), accepted: false }),
        (Engine, EventKind::Transferred { to: "sip:c@d".into(), outcome: "refused".into(), code: 486 }),
        (Dh, EventKind::Probe { kind: ProbeKind::VocalTic }),
        (Agent, EventKind::LineTone { kind: LineToneKind::Busy, frequency_hz: 425, cadence_ms: [500, 480].into() }),
        (Agent, greeting()),
        (Engine, EventKind::Network { received: 50, lost: 1, late: 2, jitter_ms: 0.25 }),
        (Engine, EventKind::Echo(EchoFigures { delay_ms: 120.5, erl_db: 12.0 })),
        (Engine, EventKind::RxUnderrun { duration_ms: 60 }),
        (Engine, EventKind::RxOverflow { packets: 3 }),
        (Engine, EventKind::LateFrames { count: 2 }),
        (Engine, EventKind::Note { code: "late_first_token".into(), why: String::new() }),
        (Engine, EventKind::Note { code: "recognizer_failed".into(), why: "it is gone".into() }),
        (
            Dh,
            EventKind::MessageSent { message_id: Some("m".into()), text: text(), channel: None, kind: Kind::Scripted },
        ),
        (Agent, EventKind::MessageReceived { message_id: None, text: text(), channel: Some("sms".into()) }),
        (Agent, EventKind::TurnWritten { text: text(), from_sample: 0, end_sample: 16, channel: "sms".into() }),
        (Agent, tool_call()),
        (Engine, EventKind::PlaybackStep { index: 2, passed: Some(false) }),
    ]
    .into_iter()
    .chain(channel_events().map(|event| (Agent, EventKind::Channel(Box::new(event)))))
    .collect()
}

fn channel_events() -> impl Iterator<Item = ChannelEvent> {
    let text = || "a".to_owned();
    [
        ChannelEvent::SpeechClaimed { utterance_id: text(), effect: "interrupt".into() },
        ChannelEvent::SuspectedEcho { utterance_id: text() },
        ChannelEvent::Reported { text: text() },
        ChannelEvent::Cleared { dropped_ms: 40 },
        ChannelEvent::Error { code: text(), message: text() },
        ChannelEvent::Violation { code: "NOT_JSON".into(), excerpt: text() },
        ChannelEvent::Other { name: "opened_again".into(), data: json!({ "a": 1 }) },
    ]
    .into_iter()
}

fn speech_ended(pauses: Box<[[Sample; 2]]>) -> EventKind {
    let text = Spoken::from("Well, yes.".to_owned());
    EventKind::SpeechEnded { utterance_id: 1, text, kind: Kind::Turn, interrupted: true, exact: false, pauses }
}

#[test]
fn every_event_is_read_as_it_was_told() {
    for (side, what) in every() {
        let found = Event { sample: 24_001, side, what };
        let read = line_as_read(found.name(), side.name(), &found.data());
        assert_eq!((read.seq, &read.event, read.reading()), (7, &found, &found.what));
    }
}

#[test]
fn every_name_has_an_event() {
    let events = every().into_iter().filter(|(_, what)| !matches!(what, EventKind::Note { .. }));
    let names: BTreeSet<String> =
        events.map(|(side, what)| Event { sample: 0, side, what }.name().to_owned()).collect();
    assert_eq!(names, Event::NAMES.map(str::to_owned).into());
}

#[test]
fn keys_that_were_made_unreadable_keep_their_time() {
    let data = json!({ "digits": "[NUMBER]", "method": "rtp_event", "duration_ms": 100 });
    let entry = line_as_read("dtmf_sent", "dh", &data);
    let EventKind::DtmfSent { digit: HIDDEN_DIGIT, duration_ms: 100, .. } = entry.reading() else {
        panic!("{entry:?}");
    };
    assert_eq!(entry.data(), data);
}

#[test]
fn events_without_the_known_form_are_kept_as_they_stand() {
    for (name, side, data) in [
        ("what.is_new", "engine", json!({ "a": [1, { "b": null }], "c": 1.50 })),
        ("what.is_new", "engine", json!([1])),
        ("what.is_new", "engine", json!(null)),
        ("turn.ended", "room", json!({ "text": "Hello." })),
        ("speech.started", "engine", json!({ "text": "Hello." })),
        ("transfer", "agent", json!({ "to": "sip:c@d" })),
        ("probe", "dh", json!({ "kind": "sneeze" })),
    ] {
        let entry = line_as_read(name, side, &data);
        let EventKind::Unknown(unknown) = entry.reading() else { panic!("{name} {data}: {entry:?}") };
        assert_eq!((unknown.event.as_str(), &unknown.data), (name, &data));
        assert_eq!((entry.name(), entry.side_name()), (name, side));
    }
}

#[test]
fn members_that_lack_or_are_new_hide_nothing_of_the_rest() {
    let check = |name: &str, side: &str, data: Value, expect: EventKind| {
        let entry = line_as_read(name, side, &data);
        assert!(matches!(entry.what, EventKind::Unknown(_)), "{name} {data} is kept as it stands");
        assert_eq!(entry.reading(), &expect);
    };
    let text = || "Hello.".to_owned();
    let turn = |from_sample, end_sample| EventKind::TurnEnded {
        text: text(),
        from_sample,
        end_sample,
        confidence: None,
        words: [].into(),
        concealed_ms: 0,
        missing: None,
        late: false,
        reported: false,
    };
    check("turn.ended", "agent", json!({ "text": "Hello." }), turn(24_001, 24_001));
    check("turn.ended", "agent", json!({ "text": "Hello.", "end_sample": 9 }), turn(9, 9));
    let newer = json!({
        "text": "Hello.", "from_sample": 1, "end_sample": 9, "confidence": null, "concealed_ms": 0, "words": [],
        "mood": "good",
    });
    check("turn.ended", "agent", newer, turn(1, 9));
    let data = json!({ "text": "Hello.", "channel": "sms" });
    let channel = "sms".to_owned();
    let written = EventKind::TurnWritten { text: text(), from_sample: 24_001, end_sample: 24_001, channel };
    check("turn.ended", "agent", data, written);
    let begun = |utterance_id, kind| EventKind::SpeechStarted { utterance_id, text: text(), kind };
    check("speech.started", "dh", json!({ "text": "Hello." }), begun(NO_UTTERANCE, Kind::Turn));
    let of_new_kind = json!({ "utterance_id": 4, "text": "Hello.", "kind": "song" });
    check("speech.started", "dh", of_new_kind, begun(4, Kind::Turn));
    let probe = json!({ "utterance_id": -4, "text": "Hello.", "kind": "probe" });
    check("speech.started", "dh", probe, begun(NO_UTTERANCE, Kind::Probe));
    check("hold", "agent", json!({}), EventKind::Held);
    check("hold", "agent", json!(null), EventKind::Held);
    let note = EventKind::Note { code: "recognizer_failed".into(), why: "it is gone".into() };
    check("recognizer_failed", "engine", json!({ "message": "it is gone", "again_in_ms": 5 }), note);
    let data = json!({ "by": "AGENT", "reason": "agent_hangup", "sip_code": 200, "close_code": 1000 });
    check("call.ended", "engine", data, call_ends());
    // A word that is none takes no other with it.
    let words = json!([{ "word": "Hello.", "start_offset_ms": 100, "end_offset_ms": 200, "confidence": 0.25 }, { "word": "x" }]);
    let heard = line_as_read("turn.ended", "agent", &json!({ "words": words }));
    assert!(matches!(heard.reading(), EventKind::TurnEnded { words, .. } if **words == [word("Hello.")]));
}

#[test]
fn what_is_no_event_is_an_error() {
    let whole = line("hold", "agent", json!({ "code": 200 }));
    for member in ["sample", "event", "side", "seq"] {
        let mut without = whole.clone();
        without.as_object_mut().expect("an object").remove(member);
        assert!(serde_json::from_value::<TimelineEntry>(without.clone()).is_err(), "{member}");
        assert_eq!(serde_json::from_value::<Event>(without).is_ok(), member == "seq", "{member}");
    }
}
