//! Data packets of every kind, and those that cannot be read.

use serde_json::json;

use super::super::messages::{StreamChunk, StreamHeader, StreamTrailer, TextHeader, TranscriptionSegment};
use super::*;

const NAMES: Names<'static> = Names { own: "dh-1", own_track: "TR_own", agent: "agent-1", tool_topic: Some("tools") };

fn at(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

fn bytes(sender: &str, value: Data) -> Vec<u8> {
    DataPacket { value: Some(value), participant_identity: sender.to_owned(), ..DataPacket::default() }.encode_to_vec()
}

fn user(topic: Option<&str>, payload: &str) -> Vec<u8> {
    let (payload, topic) = (payload.as_bytes().to_vec(), topic.map(str::to_owned));
    bytes("agent-1", Data::User(UserPacket { payload, topic, ..UserPacket::default() }))
}

fn words(identity: &str, text: &str, is_final: bool) -> Vec<u8> {
    let segment = TranscriptionSegment { text: text.into(), is_final, ..TranscriptionSegment::default() };
    let identity = identity.to_owned();
    bytes(
        "agent-1",
        Data::Transcription(Transcription {
            transcribed_participant_identity: identity,
            segments: vec![segment],
            ..Transcription::default()
        }),
    )
}

fn header(topic: &str, attributes: &[(&str, &str)]) -> StreamHeader {
    StreamHeader {
        stream_id: "s".into(),
        topic: topic.into(),
        text_header: Some(TextHeader::default()),
        attributes: attributes.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        ..StreamHeader::default()
    }
}

fn chunk(index: u64, content: &str) -> StreamChunk {
    let (stream_id, content) = ("s".into(), content.as_bytes().to_vec());
    StreamChunk { stream_id, chunk_index: index, content, version: 0 }
}

fn end(attributes: &[(&str, &str)]) -> StreamTrailer {
    let attributes = attributes.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    StreamTrailer { stream_id: "s".into(), attributes, ..StreamTrailer::default() }
}

#[test]
fn tools_are_read_and_bad_ones_counted() {
    let check = |topic: Option<&str>, payload: &str, expect: Option<(&str, Value, Value, Option<u32>)>, bad: u64| {
        let mut inbox = Inbox::default();
        let events = inbox.receive(at(0), &user(topic, payload), NAMES);
        let expect = expect.map(|(name, parameters, output, at_ms)| {
            DataEvent::Tool(ToolCall { name: name.to_owned(), parameters, output, at_ms })
        });
        assert_eq!((events, inbox.counts().bad_tools), (expect.into_iter().collect(), bad), "{payload}");
    };
    let tools = Some("tools");
    let whole = r#"{"name":"book","parameters":{"n":2},"output":"ok","start_offset_ms":1500}"#;
    check(tools, whole, Some(("book", json!({ "n": 2 }), json!("ok"), Some(1500))), 0);
    check(tools, r#"{"name":" book "}"#, Some(("book", Value::Null, Value::Null, None)), 0);
    check(tools, r#"{"name":"b","start_offset_ms":null}"#, Some(("b", Value::Null, Value::Null, None)), 0);
    check(Some("other"), whole, None, 0);
    check(None, whole, None, 0);
    for broken in [
        "",
        "no JSON",
        "[]",
        "{}",
        r#"{"name":""}"#,
        r#"{"name":7}"#,
        r#"{"name":"b","start_offset_ms":-1}"#,
        r#"{"name":"b","start_offset_ms":"x"}"#,
        r#"{"name":"b","start_offset_ms":1e30}"#,
    ] {
        check(tools, broken, None, 1);
    }
    check(tools, &format!(r#"{{"name":"{}"}}"#, "x".repeat(257)), None, 1);
}

#[test]
fn words_are_told_once_and_by_whoever_said_them() {
    let mut inbox = Inbox::default();
    let (agent, own) = (DataEvent::AgentText("Good day.".into()), DataEvent::CallerText("Hello".into()));
    assert_eq!(inbox.receive(at(0), &words("agent-1", "Good", false), NAMES), []);
    assert_eq!(inbox.receive(at(1), &words("agent-1", "Good day.", true), NAMES), std::slice::from_ref(&agent));
    assert_eq!(inbox.receive(at(2), &words("dh-1", "Hello", true), NAMES), std::slice::from_ref(&own));
    assert_eq!(inbox.receive(at(3), &words("somebody", "Noise", true), NAMES), []);
    // The same words as a stream.
    let stream =
        |inbox: &mut Inbox, now: u64, sender: &str, text: &str, begin: &[(&str, &str)], last: &[(&str, &str)]| {
            let mut all =
                inbox.receive(at(now), &bytes(sender, Data::StreamHeader(header(TRANSCRIPTION, begin))), NAMES);
            let (one, two) = text.split_at(text.len() / 2);
            all.extend(inbox.receive(at(now), &bytes(sender, Data::StreamChunk(chunk(0, one))), NAMES));
            all.extend(inbox.receive(at(now), &bytes(sender, Data::StreamChunk(chunk(1, two))), NAMES));
            all.extend(inbox.receive(at(now), &bytes(sender, Data::StreamTrailer(end(last))), NAMES));
            all
        };
    let is_final = [("lk.transcription_final", "true")];
    let interim = [("lk.transcription_final", "false")];
    assert_eq!(stream(&mut inbox, 4, "agent-1", "Good day", &interim, &is_final), []);
    assert_eq!(stream(&mut inbox, 5, "agent-1", "Good day.", &interim, &is_final), std::slice::from_ref(&agent));
    assert_eq!(stream(&mut inbox, 6, "agent-1", "Good", &interim, &[]), []);
    assert_eq!(stream(&mut inbox, 7, "agent-1", "Hello", &[("lk.transcribed_track_id", "TR_own")], &[]), []);
    assert_eq!(stream(&mut inbox, 20_000, "dh-1", "Hello", &is_final, &[]), [own]);
    assert_eq!(stream(&mut inbox, 20_001, "somebody", "Pst", &is_final, &[]), []);
    assert_eq!(inbox.counts().broken_streams, 0);
}

#[test]
fn streams_are_bounded() {
    let mut inbox = Inbox::default();
    let mut give = |value: Data| inbox.receive(at(0), &bytes("agent-1", value), NAMES);
    // Of a file nothing is kept.
    let file = StreamHeader { text_header: None, ..header("tools", &[]) };
    assert_eq!(give(Data::StreamHeader(file)), []);
    assert_eq!(give(Data::StreamChunk(chunk(0, "x"))), []);
    assert_eq!(give(Data::StreamTrailer(end(&[]))), []);
    // Too long, told so before.
    let long = StreamHeader { total_length: Some(15 << 20), ..header("tools", &[]) };
    assert_eq!(give(Data::StreamHeader(long)), []);
    // Too long, not told so.
    assert_eq!(give(Data::StreamHeader(header("tools", &[]))), []);
    let piece = "x".repeat(15_000);
    for n in 0..5 {
        assert_eq!(give(Data::StreamChunk(chunk(n, &piece))), []);
    }
    assert_eq!(give(Data::StreamTrailer(end(&[]))), []);
    // With a gap.
    assert_eq!(give(Data::StreamHeader(header("tools", &[]))), []);
    assert_eq!(give(Data::StreamChunk(chunk(1, "x"))), []);
    for _ in 0..40 {
        assert_eq!(give(Data::StreamHeader(header("tools", &[]))), []);
    }
    // In one piece.
    let whole = StreamHeader { inline_content: Some(br#"{"name":"b"}"#.to_vec()), ..header("tools", &[]) };
    assert!(matches!(give(Data::StreamHeader(whole))[..], [DataEvent::Tool(_)]));
    assert_eq!(inbox.counts().broken_streams, 3 + 8);
}

#[test]
fn digits_go_both_ways() {
    for digit in "0123456789*#ABCD".chars() {
        let packet = packet_of_digit(digit).expect("the protocol has it").encode_to_vec();
        assert_eq!(Inbox::default().receive(at(0), &packet, NAMES), [DataEvent::Digit(digit)]);
    }
    assert_eq!(packet_of_digit('x'), None);
    let check = |code, digit: &str, expect: &str| {
        let digits: String = read_digits(&SipDtmf { code, digit: digit.into() }).into_iter().collect();
        assert_eq!(digits, expect, "{code} {digit}");
    };
    check(10, "", "*");
    check(0, "d", "D");
    check(99, "", "");
    check(1, "12", "12");
    check(1, "\u{661}", "");
}

#[test]
fn what_cannot_be_read_and_floods_are_counted() {
    let mut inbox = Inbox::default();
    assert_eq!(inbox.receive(at(0), &[0xff; 40], NAMES), []);
    // A packet of a later version: a field and a content that are not known.
    assert_eq!(inbox.receive(at(0), &[0xfa, 0x01, 2, 8, 1, 0xa0, 0x06, 1], NAMES), []);
    assert_eq!((inbox.counts().malformed, inbox.counts().read), (1, 1));
    let packet = user(Some("tools"), r#"{"name":"b"}"#);
    let count: usize = (0..1000).map(|_| inbox.receive(at(1), &packet, NAMES).len()).sum();
    assert_eq!((count, inbox.counts().flooding), (498, 502));
    assert_eq!(inbox.receive(at(1001), &packet, NAMES).len(), 1);
}
