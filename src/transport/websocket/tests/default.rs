//! Rules of the default protocol.

use super::*;
use crate::websocket::protocol::SessionEnd;

fn server() -> Side {
    Side::of(Kind::Default)
}

#[test]
fn a_frame_is_a_message_of_640_bytes() {
    let mut side = server();
    let frame: Vec<i16> = (0..320).collect();
    side.say(&frame);
    side.say(&[-2; 320]);
    let Message::Binary(bytes) = &side.sent[0] else { panic!("{:?}", side.sent) };
    assert_eq!((side.sent.len(), bytes.len()), (2, 640));
    assert_eq!(bytes[..6], [0, 0, 1, 0, 2, 0]);
    assert_eq!(side.sent[1], Message::Binary([0xfe, 0xff].repeat(320)));
}

#[test]
fn utterances_are_named_in_order() {
    let mut side = server();
    side.order(SessionControl::UtteranceStarted);
    side.say(&[5; 320]);
    side.order(SessionControl::UtteranceCompleted);
    side.order(SessionControl::UtteranceCompleted);
    let Message::Binary(_) = &side.sent[1] else { panic!("the frame comes between both messages") };
    side.order(SessionControl::UtteranceStarted);
    side.order(SessionControl::UtteranceStarted);
    let texts = side.texts();
    let names: Vec<(&str, &str)> = texts
        .iter()
        .map(|text| (text["type"].as_str().unwrap_or(""), text["data"]["utterance_id"].as_str().unwrap_or("")))
        .collect();
    assert_eq!(
        names,
        [
            ("speech.started", "dh-13062-1"),
            ("speech.completed", "dh-13062-1"),
            ("speech.started", "dh-13062-2"),
            ("speech.completed", "dh-13062-2"),
            ("speech.started", "dh-13062-3"),
        ]
    );
    assert_eq!(texts[0]["ts_ms"], 1_767_225_600_000i64);
    assert_eq!(texts[1]["ts_ms"], 1_767_225_600_020i64);
    let ids: std::collections::HashSet<_> = texts.iter().map(|text| text["id"].to_string()).collect();
    assert!(ids.len() == 5 && ids.iter().all(|id| id.len() == 38 && id.as_bytes()[15] == b'4'), "{ids:?}");
}

#[test]
fn messages_that_break_the_protocol_are_answered() {
    let long = format!(r#"{{"type":"mark","data":{{"name":"{}"}}}}"#, "é".repeat(256));
    let huge = format!(r#"{{"type":"mark","data":{{"name":"{}"}}}}"#, "e".repeat(65_536));
    let fitting = format!(r#"{{"type":"speech.started","data":{{"utterance_id":"{}"}}}}"#, "é".repeat(255));
    let types = "expected one of: speech.started, speech.completed, mark, session.error";
    let check = |message: Message, expect: Option<(&str, &str)>| {
        let mut side = server();
        side.receive(message.clone());
        let texts = side.texts();
        let answer = texts.first().map(|text| {
            assert_eq!((texts.len(), text["type"].as_str()), (1, Some("session.error")));
            (text["data"]["code"].as_str().unwrap_or(""), text["data"]["message"].as_str().unwrap_or(""))
        });
        assert_eq!(answer, expect, "{message:?}");
        assert_eq!(side.codes(), expect.map(|(code, _)| code).into_iter().collect::<Vec<_>>());
        assert_eq!(side.close(), None);
    };
    let text = |text: &str| Message::Text(text.to_owned());
    check(text("{"), Some(("INVALID_MESSAGE", "Message is not valid JSON")));
    check(text("[1]"), Some(("INVALID_MESSAGE", "Message must be a JSON object")));
    check(text(r#"{"type":"x","data":{}}"#), Some(("INVALID_MESSAGE", &format!("Unexpected type 'x'; {types}"))));
    check(text(r#"{"type":1}"#), Some(("INVALID_MESSAGE", &format!("Unexpected type '1'; {types}"))));
    check(text("{}"), Some(("INVALID_MESSAGE", &format!("Unexpected type ''; {types}"))));
    check(text(&huge), Some(("INVALID_MESSAGE", "Message is longer than 65536 bytes")));
    for kind in ["speech.started", "speech.completed"] {
        let why = format!("{kind} requires data.utterance_id");
        check(text(&format!(r#"{{"type":"{kind}"}}"#)), Some(("MISSING_FIELD", &why)));
        check(text(&format!(r#"{{"type":"{kind}","data":{{"utterance_id":7}}}}"#)), Some(("MISSING_FIELD", &why)));
        check(text(&format!(r#"{{"type":"{kind}","data":{{"utterance_id":""}}}}"#)), Some(("MISSING_FIELD", &why)));
    }
    check(text(&long), Some(("MISSING_FIELD", "mark requires data.name")));
    check(text(r#"{"type":"mark","data":[]}"#), Some(("MISSING_FIELD", "mark requires data.name")));
    check(text(&fitting), None);
    check(Message::Binary(vec![]), Some(("INVALID_AUDIO_FRAME", "Audio frame is empty")));
    check(Message::Binary(vec![0; 3]), Some(("INVALID_AUDIO_FRAME", "Audio frame has an odd length: 3")));
    check(Message::Binary(vec![0; 2]), None);
}

#[test]
fn an_error_is_kept_and_never_answered() {
    let mut side = server();
    side.text(r#"{"type":"session.error","data":{"code":"C","message":"m","more":1}}"#);
    side.text(r#"{"type":"session.error","data":{"code":"C"}}"#);
    side.text(r#"{"type":"session.error"}"#);
    assert_eq!(side.sent, []);
    assert!(side.has_seen(&SessionOutput::PeerError { code: "C".to_owned(), message: "m".to_owned() }));
    assert_eq!(side.codes(), ["MISSING_FIELD", "MISSING_FIELD"]);
}

#[test]
fn a_hundred_violations_end_the_session() {
    let mut side = server();
    (0..99).for_each(|_| side.text("{"));
    assert_eq!((side.close(), side.codes().len()), (None, 99));
    side.text("{");
    assert_eq!(side.close(), Some((1008, "too many protocol errors")));
    assert!(side.has_seen(&SessionOutput::Ended(SessionEnd::TooManyViolations)));
    let before = (side.seen.len(), side.sent.len());
    side.text("{");
    side.say(&[0; 320]);
    side.order(SessionControl::Hangup);
    assert_eq!((side.seen.len(), side.sent.len()), before, "nothing follows the close");
}

#[test]
fn a_message_beyond_the_limit_closes() {
    for (len, expect) in [(1_048_576, None), (1_048_578, Some((1009, "message too big")))] {
        let mut side = server();
        side.binary(&vec![0; len]);
        assert_eq!(side.close(), expect, "{len}");
    }
}

#[test]
fn the_other_sides_speech_is_told_once() {
    let mut side = server();
    side.order(SessionControl::UtteranceStarted);
    side.wait(300);
    side.text(r#"{"type":"speech.started","data":{"utterance_id":"a"}}"#);
    side.wait(20);
    side.text(r#"{"type":"speech.started","data":{"utterance_id":"b"}}"#);
    side.text(r#"{"type":"speech.started","data":{"utterance_id":"a"}}"#);
    side.text(r#"{"type":"speech.completed","data":{"utterance_id":"a"}}"#);
    side.text(r#"{"type":"speech.completed","data":{"utterance_id":"z"}}"#);
    let outputs: Vec<_> = side.seen.iter().map(|(_, output)| output.clone()).collect();
    let started = |id: &str, follows_own| SessionOutput::SpeechStarted { utterance_id: id.to_owned(), follows_own };
    assert_eq!(outputs[..3], [SessionOutput::Opened, started("a", true), started("b", false)]);
    assert_eq!(outputs[4], SessionOutput::SpeechCompleted { utterance_id: "a".to_owned() });
    assert_eq!(side.events(), ["speech_started_again", "speech_completed_unknown"]);
}

#[test]
fn marks_are_echoed_when_their_audio_was_played() {
    let mut side = server();
    let mark = |name: &str| format!(r#"{{"type":"mark","data":{{"name":"{name}"}}}}"#);
    side.text(&mark("at once"));
    assert_eq!(side.texts()[0]["data"]["name"], "at once");
    side.binary(&vec![1; 2 * 330]);
    side.text(&mark("a"));
    side.text(&mark("b"));
    side.binary(&vec![1; 2 * 320]);
    side.text(&mark("a"));
    let mut positions = Vec::new();
    for _ in 0..4 {
        side.say(&[0; 320]);
        positions.extend(side.texts().into_iter().map(|text| (text["data"]["name"].to_string(), side.ms())));
    }
    let expect = [("\"a\"", 40), ("\"b\"", 40), ("\"a\"", 60)];
    assert_eq!(positions, expect.map(|(name, ms)| (name.to_owned(), ms)));
}

#[test]
fn a_thousand_marks_may_wait() {
    let mut side = server();
    side.binary(&[1; 2]);
    (0..1001).for_each(|_| side.text(r#"{"type":"mark","data":{"name":"m"}}"#));
    assert_eq!(side.codes(), ["INVALID_MESSAGE"]);
    assert_eq!(side.texts()[0]["data"]["code"], "INVALID_MESSAGE");
    side.wait(20);
    assert_eq!(side.texts().len(), 1000);
}

#[test]
fn a_minute_of_audio_waits() {
    let mut side = server();
    for _ in 0..90 {
        side.binary(&vec![1; 32_000]);
    }
    assert_eq!(side.queue.len(), 960_000);
    let mut dropped = 0;
    side.wait(2000);
    for (_, output) in &side.seen {
        dropped += if let SessionOutput::Overflowed { dropped } = output { *dropped } else { 0 };
    }
    assert_eq!(dropped, 480_000);
    side.binary(&vec![1; 32_000]);
    assert_eq!(side.queue.len(), 960_000 - 32_000 + 16_000, "there is space again");
}

#[test]
fn a_session_is_established_by_a_word_or_by_time() {
    let opened = |side: &Side| side.seen.iter().position(|(_, output)| *output == SessionOutput::Opened);
    let mut side = server();
    side.wait(1980);
    assert_eq!(opened(&side), None);
    side.wait(20);
    assert_eq!(opened(&side), Some(0));
    let mut side = server();
    side.binary(&[0; 2]);
    assert_eq!(opened(&side), Some(0));
    side.wait(3000);
    assert_eq!(side.seen.len(), 1, "it is told once");
}

#[test]
fn each_end_has_its_code() {
    let check = |control: SessionControl, code: u16, reason: &str, end: SessionEnd| {
        for kind in [Kind::Default, Kind::TwilioMediaStreams, Kind::PipecatProtobuf, Kind::RawPcm16] {
            let mut side = Side::of(kind);
            side.order(control.clone());
            assert_eq!(side.close(), Some((code, reason)), "{kind:?} {control:?}");
            assert!(side.has_seen(&SessionOutput::Ended(end.clone())));
        }
    };
    check(SessionControl::Hangup, 1000, "call ended", SessionEnd::Own);
    check(SessionControl::Shutdown, 1001, "going away", SessionEnd::Own);
    check(SessionControl::Fault, 1011, "internal error", SessionEnd::OwnFault);
    let mut side = server();
    side.order(SessionControl::Fault);
    let error = &side.texts()[0];
    assert_eq!(
        (error["data"]["code"].as_str(), error["data"]["message"].as_str()),
        (Some("INTERNAL_ERROR"), Some("Internal error"))
    );
}

#[test]
fn excerpts_are_short_and_printable() {
    let mut side = server();
    side.text(&format!("\u{7}{}", "é".repeat(500)));
    let Some((_, SessionOutput::Violation { excerpt, .. })) = side.seen.last() else { panic!("{:?}", side.seen) };
    assert_eq!(*excerpt, format!(" {}", "é".repeat(199)));
}
