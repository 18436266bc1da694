//! Carriers with audio in text messages: numbering, marks, clears, bad messages, faults.

use serde_json::json;

use super::*;
use crate::websocket::dialect::Fault;
use crate::websocket::protocol::SessionEnd;
use crate::websocket::voice::{Encoding, Wire};

/// Returns a second of mu-law that is not silent.
fn second() -> Vec<u8> {
    (0..8000).map(|at| if at % 20 < 10 { 0x90 } else { 0x10 }).collect()
}

fn mark(stream: &str, name: &str) -> String {
    format!(r#"{{"event":"mark","streamSid":"{stream}","mark":{{"name":"{name}"}}}}"#)
}

/// Replaces the drawn names by short ones.
fn shorten(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            members.iter().map(|(key, value)| (key.clone(), shorten(value))).collect::<serde_json::Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(shorten).collect(),
        Value::String(text) => {
            let hex = |text: &str| text.len() == 32 && text.chars().all(|c| c.is_ascii_hexdigit());
            let prefix =
                ["MZ", "AC", "CA", "v3:"].into_iter().find(|prefix| text.strip_prefix(prefix).is_some_and(hex));
            match prefix {
                Some(prefix) => json!(format!("{prefix}1")),
                None if text.len() == 36 && text.matches('-').count() == 4 => json!("uuid"),
                None => value.clone(),
            }
        }
        other => other.clone(),
    }
}

#[test]
fn the_first_messages_are_those_of_the_carrier() {
    let check = |kind: Kind, frames: usize, expect: &[&str]| {
        let mut side = Side::of(kind);
        (0..frames).for_each(|_| side.say(&[0; 320]));
        side.order(SessionControl::Digit { digit: '5', duration_ms: 260 });
        side.order(SessionControl::Hangup);
        let texts: Vec<String> = side.texts().iter().map(|text| shorten(text).to_string()).collect();
        assert_eq!(texts, expect, "{kind:?}");
    };
    let silence = STANDARD.encode([0xff; 160]);
    let twilio = [
        r#"{"event":"connected","protocol":"Call","version":"1.0.0"}"#,
        r#"{"event":"start","sequenceNumber":"1","start":{"accountSid":"AC1","streamSid":"MZ1","callSid":"CA1","tracks":["inbound"],"mediaFormat":{"encoding":"audio/x-mulaw","sampleRate":8000,"channels":1},"customParameters":{"simulation_result_id":"13062"}},"streamSid":"MZ1"}"#,
        &format!(
            r#"{{"event":"media","sequenceNumber":"2","media":{{"track":"inbound","chunk":"1","timestamp":"0","payload":"{silence}"}},"streamSid":"MZ1"}}"#
        ),
        r#"{"event":"dtmf","streamSid":"MZ1","sequenceNumber":"3","dtmf":{"track":"inbound_track","digit":"5"}}"#,
        r#"{"event":"stop","sequenceNumber":"4","stop":{"accountSid":"AC1","callSid":"CA1"},"streamSid":"MZ1"}"#,
    ];
    check(Kind::TwilioMediaStreams, 1, &twilio);
    check(Kind::SignalwireStream, 1, &twilio);
    check(
        Kind::TelnyxMediaStreaming,
        1,
        &[
            r#"{"event":"connected","version":"1.0.0"}"#,
            r#"{"event":"start","sequence_number":"1","stream_id":"uuid","start":{"user_id":"uuid","call_control_id":"v3:1","call_session_id":"uuid","from":"+15550100","to":"+15550101","tags":[],"client_state":"MTMwNjI=","custom_parameters":{"simulation_result_id":"13062"},"media_format":{"encoding":"PCMU","sample_rate":8000,"channels":1}}}"#,
            &format!(
                r#"{{"event":"media","sequence_number":"2","stream_id":"uuid","media":{{"track":"inbound","chunk":"1","timestamp":"0","payload":"{silence}"}}}}"#
            ),
            r#"{"event":"dtmf","stream_id":"uuid","occurred_at":"2026-01-01T00:00:00.020000Z","sequence_number":"3","dtmf":{"digit":"5"}}"#,
            r#"{"event":"stop","sequence_number":"4","stream_id":"uuid","stop":{"user_id":"uuid","call_control_id":"v3:1"}}"#,
        ],
    );
    let samples = STANDARD.encode([0; 1600]);
    check(
        Kind::ExotelAgentstream,
        5,
        &[
            r#"{"event":"connected"}"#,
            r#"{"event":"start","sequence_number":"1","stream_sid":"MZ1","start":{"stream_sid":"MZ1","call_sid":"CA1","account_sid":"AC1","from":"+15550100","to":"+15550101","custom_parameters":{"simulation_result_id":"13062"},"media_format":{"encoding":"audio/x-raw","sample_rate":"8000","bit_rate":"16"}}}"#,
            &format!(
                r#"{{"event":"media","sequence_number":"2","stream_sid":"MZ1","media":{{"chunk":"1","timestamp":"100","payload":"{samples}"}}}}"#
            ),
            r#"{"event":"dtmf","sequence_number":"3","stream_sid":"MZ1","dtmf":{"digit":"5","duration":"260"}}"#,
            r#"{"event":"stop","sequence_number":"4","stream_sid":"MZ1","stop":{"call_sid":"CA1","account_sid":"AC1","reason":"callended"}}"#,
        ],
    );
    check(
        Kind::VonageWebsocket,
        1,
        &[
            r#"{"event":"websocket:connected","content-type":"audio/l16;rate=16000","simulation_result_id":"13062"}"#,
            r#"{"event":"websocket:dtmf","digit":"5","duration":260}"#,
        ],
    );
}

#[test]
fn plivo_counts_in_numbers_and_unix_time() {
    let mut side = Side::of(Kind::PlivoAudioStreaming);
    side.wait(40);
    side.order(SessionControl::Digit { digit: '#', duration_ms: 100 });
    let texts = side.texts();
    assert_eq!(texts[0]["sequenceNumber"], 1);
    assert_eq!(texts[0]["extra_headers"], "simulationResultId=13062");
    assert!(texts[0]["start"]["accountId"].as_str().is_some_and(|id| id.starts_with("MA")));
    for (at, text) in texts[1..3].iter().enumerate() {
        assert_eq!(text["sequenceNumber"], at + 2);
        assert_eq!(text["media"]["chunk"], at + 1);
        assert_eq!(text["media"]["timestamp"], (1_767_225_600_000 + 20 * at as i64).to_string());
        assert_eq!(text["extra_headers"], "simulationResultId=13062");
    }
    assert_eq!(texts[3]["dtmf"], json!({"track": "inbound", "digit": "#", "timestamp": "1767225600040"}));
}

#[test]
fn five_hundred_messages_are_numbered_by_their_samples() {
    let mut side = Side::of(Kind::TwilioMediaStreams);
    side.texts();
    side.wait(10_000);
    let texts = side.texts();
    assert_eq!(texts.len(), 500);
    for (at, text) in texts.iter().enumerate() {
        let expect = json!({"track": "inbound", "chunk": (at + 1).to_string(), "timestamp": (20 * at).to_string(),
            "payload": STANDARD.encode([0xff; 160])});
        assert_eq!(text["media"], expect);
        assert_eq!(text["sequenceNumber"], (at + 2).to_string());
    }
}

#[test]
fn a_mark_comes_back_when_its_audio_was_played() {
    let mut side = Side::of(Kind::TwilioMediaStreams);
    let stream = stream(&side);
    side.control_texts();
    side.text(&mark(&stream, "m0"));
    assert_eq!(side.control_texts()[0]["mark"]["name"], "m0", "nothing waits");
    let audio = media(&Side::of(Kind::TwilioMediaStreams), &second());
    side.text(&audio);
    side.text(&mark(&stream, "m1"));
    side.text(&audio);
    side.text(&mark(&stream, "m1"));
    side.text(&mark(&stream, "m2"));
    let mut texts = Vec::new();
    while side.ms() < 2100 {
        side.say(&[0; 320]);
        texts.extend(side.control_texts().iter().map(|text| (text["mark"]["name"].to_string(), side.ms())));
    }
    assert_eq!(texts, [("\"m1\"", 1000), ("\"m1\"", 2000), ("\"m2\"", 2000)].map(|(name, ms)| (name.to_owned(), ms)));
}

#[test]
fn a_clear_takes_audio_back_and_treats_marks_as_set() {
    for (marks_on_clear, expect) in [
        (crate::websocket::dialect::MarksOnClear::Return, &["a", "b", "c"][..]),
        (crate::websocket::dialect::MarksOnClear::Drop, &[]),
    ] {
        let mut side = Side::caller(Dialect { marks_on_clear, ..Dialect::new(Kind::TwilioMediaStreams) });
        let stream = stream(&side);
        let audio = media(&side, &second());
        for name in ["a", "b", "c"] {
            side.text(&audio);
            side.text(&mark(&stream, name));
        }
        side.wait(500);
        side.texts();
        side.text(&format!(r#"{{"event":"clear","streamSid":"{stream}"}}"#));
        let names: Vec<String> = side.control_texts().iter().map(|text| text["mark"]["name"].to_string()).collect();
        assert_eq!(names, expect.iter().map(|name| format!("\"{name}\"")).collect::<Vec<_>>());
        assert!(side.has_seen(&SessionOutput::Cleared { dropped: 40_000 }), "{:?}", side.seen);
        // Audio behind the clear is whole, and a stale report of the player holds no mark back.
        side.text(&audio);
        side.text(&mark(&stream, "d"));
        side.session.set_unplayed(side.now, 60_000);
        side.wait(980);
        assert!(side.control_texts().is_empty());
        side.wait(20);
        assert_eq!(side.control_texts()[0]["mark"]["name"], "d");
        let heard = &side.heard[side.heard.len() - 16_000..];
        assert!(heard[100..].chunks(160).all(|piece| piece.iter().any(|sample| sample.abs() > 1000)));
        side.wait(1000);
        assert!(side.control_texts().is_empty(), "each mark comes once");
    }
}

#[test]
fn pieces_of_any_size_make_one_sound() {
    let check = |pieces: &[usize]| {
        let mut side = Side::of(Kind::TwilioMediaStreams);
        let (sound, mut from) = (second(), 0);
        let mut whole = Side::of(Kind::TwilioMediaStreams);
        for piece in pieces.iter().cycle() {
            let to = (from + piece).min(sound.len());
            let text = media(&side, &sound[from..to]);
            side.text(&text);
            from = to;
            if from == sound.len() {
                break;
            }
        }
        let text = media(&whole, &sound);
        whole.text(&text);
        assert_eq!(side.queue.len(), 16_000, "{pieces:?}");
        assert_eq!(side.queue, whole.queue);
    };
    check(&[7, 153]);
    check(&[1]);
    check(&[160]);
    check(&[8000]);
}

#[test]
fn half_a_sample_waits_for_its_other_half() {
    let mut side = Side::of(Kind::ExotelAgentstream);
    let sound: Vec<u8> = (0..6400).map(|at| at as u8).collect();
    for piece in [&sound[..3201], &sound[3201..]] {
        let text = media(&side, piece);
        side.text(&text);
    }
    let mut whole = Side::of(Kind::ExotelAgentstream);
    let text = media(&whole, &sound);
    whole.text(&text);
    assert_eq!(side.queue, whole.queue);
    assert_eq!(side.queue.len(), 6400);
}

#[test]
fn bad_messages_are_named() {
    let check = |kind: Kind, make: &dyn Fn(&Side) -> Message, expect: &[&str]| {
        let mut side = Side::of(kind);
        let message = make(&side);
        side.receive(message.clone());
        assert_eq!(side.codes(), expect, "{kind:?} {message:?}");
        assert_eq!(side.close(), None);
        // The stream goes on.
        let before = side.queue.len();
        let audio = media(&side, &[0x10; 1600]);
        side.text(&audio);
        assert!(side.queue.len() > before);
    };
    let kind = Kind::TwilioMediaStreams;
    let text = |text: &str| Message::Text(text.to_owned());
    check(kind, &|_| text("[1]"), &["NOT_OBJECT"]);
    check(kind, &|_| text("{"), &["NOT_JSON"]);
    check(kind, &|_| text(""), &["NOT_JSON"]);
    check(kind, &|_| text(r#"{"event":1}"#), &["UNKNOWN_TYPE"]);
    check(kind, &|_| text(r#"{"event":"x"}"#), &["UNKNOWN_TYPE"]);
    check(kind, &|_| text("{}"), &["MISSING_FIELD"]);
    check(kind, &|side| text(&media(side, b"RIFF....")), &["AUDIO_HEADER"]);
    check(kind, &|side| text(&media(side, b"ID3")), &["AUDIO_HEADER"]);
    check(kind, &|side| text(&media(side, &[]).replace("\"\"", "\"*\"")), &["BAD_BASE64"]);
    check(kind, &|side| text(&media(side, &[1])), &[]);
    check(kind, &|side| text(&media(side, &[])), &["MISSING_FIELD"]);
    check(kind, &|_| text(r#"{"event":"media","streamSid":"MZ1","media":{"payload":"AA=="}}"#), &["WRONG_STREAM_ID"]);
    check(kind, &|_| text(r#"{"event":"media","media":{"payload":"AA=="}}"#), &["MISSING_FIELD"]);
    check(kind, &|side| text(&format!(r#"{{"event":"media","streamSid":"{}"}}"#, stream(side))), &["MISSING_FIELD"]);
    check(kind, &|side| text(&mark(&stream(side), &"m".repeat(5000))), &["TOO_LONG"]);
    check(kind, &|_| Message::Binary(vec![0; 160]), &["BINARY_NOT_ALLOWED"]);
    let telnyx = Kind::TelnyxMediaStreaming;
    check(telnyx, &|_| text(r#"{"event":"media","stream_id":"x","media":{"payload":"AA=="}}"#), &["WRONG_STREAM_ID"]);
    check(Kind::ExotelAgentstream, &|side| text(&media(side, &[0; 3000])), &["BAD_CHUNK_SIZE"]);
    check(Kind::ExotelAgentstream, &|side| text(&media(side, &[0; 3200])), &[]);
    check(Kind::ExotelAgentstream, &|side| text(&media(side, &[0; 3300])), &["BAD_CHUNK_SIZE"]);
    check(telnyx, &|side| text(&media(side, &[0; 159])), &["BAD_CHUNK_SIZE"]);
    check(telnyx, &|side| text(&media(side, &[0; 160])), &[]);
}

#[test]
fn a_bad_message_is_answered_where_the_carrier_does() {
    let mut side = Side::of(Kind::TelnyxMediaStreaming);
    side.texts();
    side.text("{");
    let answer = side.texts().remove(0);
    assert_eq!(answer["event"], "error");
    assert_eq!((&answer["payload"]["code"], &answer["payload"]["title"]), (&json!(100_002), &json!("malformed_frame")));
}

#[test]
fn sizes_and_numbers_have_an_end() {
    let mut side = Side::of(Kind::TwilioMediaStreams);
    side.text(&"x".repeat(2 << 20));
    assert_eq!(side.close(), Some((1009, "message too big")));
    let mut side = Side::of(Kind::TwilioMediaStreams);
    (0..100).for_each(|_| side.text("{"));
    assert_eq!(side.close(), Some((1008, "too many protocol errors")));
    // Chunks that are played all the same do not count, and are told of a few times.
    let mut side = Side::of(Kind::ExotelAgentstream);
    let text = media(&side, &[0; 640]);
    (0..500).for_each(|_| side.text(&text));
    assert_eq!((side.close(), side.codes().len()), (None, 10));
    // Nor do unknown messages.
    (0..500).for_each(|_| side.text(r#"{"event":"later"}"#));
    assert_eq!((side.close(), side.codes().len()), (None, 20));
}

#[test]
fn each_way_has_its_codec() {
    let dialect =
        Dialect { wire: Wire { encoding: Encoding::Pcma, rate_hz: 8000 }, ..Dialect::new(Kind::TelnyxMediaStreaming) };
    let mut side = Side::caller(dialect);
    assert_eq!(side.texts()[1]["start"]["media_format"]["encoding"], "PCMA");
    side.wait(20);
    assert_eq!(side.texts()[0]["media"]["payload"], STANDARD.encode([0xd5; 160]));
    let text = media(&side, &[0xff; 160]);
    side.text(&text);
    assert!(side.queue.len() == 320 && side.queue.iter().all(|sample| *sample == 0), "mu-law silence is silent");
}

#[test]
fn plivo_marks_and_formats() {
    let mut side = Side::of(Kind::PlivoAudioStreaming);
    let stream = stream(&side);
    side.texts();
    let l16: Vec<u8> = tone(1000.0, 1000, 0).iter().flat_map(|sample| sample.to_le_bytes()).collect();
    let payload = STANDARD.encode(l16);
    side.text(&format!(
        r#"{{"event":"playAudio","media":{{"contentType":"audio/x-l16","sampleRate":16000,"payload":"{payload}"}}}}"#
    ));
    assert_eq!(side.events(), ["audio_format_differs"]);
    assert_eq!(side.queue.len(), 16_000);
    let pcm: Vec<i16> = side.queue.iter().copied().collect();
    assert!((level(&pcm, 1000.0) - 1.0).abs() < 0.01);
    side.text(&format!(r#"{{"event":"checkpoint","streamId":"{stream}","name":"c1"}}"#));
    side.text(&format!(r#"{{"event":"clearAudio","streamId":"{stream}"}}"#));
    side.wait(2000);
    let texts: Vec<Value> = side.control_texts();
    assert_eq!(texts.len(), 1, "{texts:?}");
    assert_eq!((&texts[0]["event"], &texts[0]["streamId"]), (&json!("clearedAudio"), &json!(stream)));
    side.text(&format!(r#"{{"event":"checkpoint","streamId":"{stream}","name":"c2"}}"#));
    let played = side.control_texts().remove(0);
    assert_eq!((&played["event"], &played["name"]), (&json!("playedStream"), &json!("c2")));
    side.text(r#"{"event":"sendDTMF","dtmf":"7"}"#);
    assert!(side.has_seen(&SessionOutput::Digit('7')));
    side.text(r#"{"event":"sendDTMF","dtmf":"12#"}"#);
    assert!("12#".chars().all(|digit| side.has_seen(&SessionOutput::Digit(digit))));
    side.text(r#"{"event":"playAudio","media":{"contentType":"audio/mp3","sampleRate":8000,"payload":"AA=="}}"#);
    assert_eq!(side.codes(), ["MISSING_FIELD"]);
}

#[test]
fn a_query_may_set_the_rate() {
    let facts = SessionFacts { url: "wss://h/a?x=1&sample-rate=16000".to_owned(), ..facts() };
    let mut side = Side::new(Session::caller(Dialect::new(Kind::ExotelAgentstream), facts));
    side.open();
    side.wait(200);
    let texts = side.texts();
    assert_eq!(texts[1]["start"]["media_format"]["sample_rate"], "16000");
    for (at, text) in texts[2..].iter().enumerate() {
        let payload = STANDARD.decode(text["media"]["payload"].as_str().expect("a payload")).expect("base64");
        assert_eq!(payload.len(), 3200);
        assert_eq!(text["media"]["timestamp"], (100 * (at + 1)).to_string());
    }
    assert_eq!(texts.len(), 4);
}

#[test]
fn vonage_audio_is_binary_frames() {
    let mut side = Side::of(Kind::VonageWebsocket);
    side.say(&[1; 320]);
    assert_eq!(side.sent.last(), Some(&Message::Binary([1, 0].repeat(320))));
    side.texts();
    side.binary(&[0; 640]);
    assert!(side.codes().is_empty());
    side.binary(&[0; 600]);
    side.binary(&[0; 641]);
    assert_eq!(side.codes(), ["BAD_CHUNK_SIZE"; 2]);
    assert_eq!(side.queue.len(), 320 + 300 + 320);
    side.text(r#"{"action":"notify","payload":{"name":"n1","x":[1]}}"#);
    side.wait(80);
    assert_eq!(side.texts(), [json!({"event": "websocket:notify", "payload": {"name": "n1", "x": [1]}})]);
    side.binary(&[0; 640]);
    side.text(r#"{"action":"notify","payload":"s"}"#);
    side.text(r#"{"action":"clear"}"#);
    side.wait(100);
    assert_eq!(side.texts(), [json!({"event": "websocket:cleared"})]);
    let mut side = Side::caller(Dialect { strict: true, ..Dialect::new(Kind::VonageWebsocket) });
    side.binary(&[0; 600]);
    assert!(side.seen.iter().any(|(_, output)| matches!(output, SessionOutput::Ended(SessionEnd::Dropped(_)))));
    assert_eq!(side.close(), Some((1006, "")));
}

#[test]
fn faults_change_what_they_name() {
    let with = |fault: Fault| Side::caller(Dialect { faults: vec![fault], ..Dialect::new(Kind::TwilioMediaStreams) });
    let mut side = with(Fault::MediaBeforeStart);
    side.wait(40);
    let names: Vec<String> = side.texts().iter().map(|text| text["event"].to_string()).collect();
    assert_eq!(names, [r#""media""#, r#""connected""#, r#""start""#, r#""media""#]);

    let mut side = with(Fault::Alaw);
    side.wait(20);
    let texts = side.texts();
    assert_eq!(texts[1]["start"]["mediaFormat"]["encoding"], "audio/x-mulaw");
    assert_eq!(texts[2]["media"]["payload"], STANDARD.encode([0xd5; 160]));

    let mut side = with(Fault::Malformed);
    side.wait(10_000);
    let broken =
        |message: &&Message| matches!(message, Message::Text(text) if serde_json::from_str::<Value>(text).is_err());
    assert!((3..=10).contains(&side.sent.iter().filter(broken).count()));

    let mut side = with(Fault::Reorder);
    side.wait(10_000);
    let numbers: Vec<u64> = side.texts()[2..]
        .iter()
        .map(|text| text["sequenceNumber"].as_str().and_then(|number| number.parse().ok()).expect("a number"))
        .collect();
    let swaps = numbers.windows(2).filter(|pair| pair[1] + 1 == pair[0]).count();
    assert!((3..=10).contains(&swaps), "{swaps}");
    let mut sorted = numbers.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), numbers.len());

    for (fault, expect) in [(Fault::NoMarks, None), (Fault::SlowMarks, Some(2000))] {
        let mut side = with(fault);
        let name = stream(&side);
        side.text(&mark(&name, "m"));
        side.control_texts();
        let mut came = None;
        while side.ms() < 5000 {
            side.say(&[0; 320]);
            let now = side.ms();
            came = came.or(side.control_texts().first().map(|_| now));
        }
        assert_eq!(came, expect, "{fault:?}");
    }

    let mut side = with(Fault::DropSocket);
    side.wait(4980);
    assert_eq!(side.close(), None);
    side.wait(15_100);
    assert_eq!(side.close(), Some((1006, "")));
}

#[test]
fn audio_goes_on_while_the_other_side_is_silent() {
    for kind in Kind::DIALECTS {
        if kind != Kind::Audiohook {
            let mut side = Side::of(kind);
            side.wait(60_000);
            let chunk_ms = side.session.dialect().chunk_ms as usize;
            let sent = side.sent.iter().filter(|message| message.len() > 120).count();
            assert!((60_000 / chunk_ms..=60_000 / chunk_ms + 2).contains(&sent), "{kind:?} {sent}");
        }
    }
}
