//! The channel of a PBX.

use serde_json::json;

use super::*;
use crate::websocket::protocol::SessionEnd;

fn channel() -> Side {
    let mut side = Side::of(Kind::ChanWebsocket);
    side.sent.clear();
    side
}

fn events_of(side: &mut Side) -> Vec<String> {
    side.texts().iter().map(|text| text["event"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn the_start_is_that_of_the_channel() {
    let mut side = Side::of(Kind::ChanWebsocket);
    let start = side.texts().remove(0);
    assert_eq!((&start["event"], &start["format"]), (&json!("MEDIA_START"), &json!("ulaw")));
    assert_eq!((&start["optimal_frame_size"], &start["ptime"]), (&json!(160), &json!(20)));
    assert_eq!(start["channel_variables"], json!({"SIMULATION_RESULT_ID": "13062"}));
    side.say(&[0; 320]);
    assert_eq!(side.sent, [Message::Binary(vec![0xff; 160])]);
    side.order(SessionControl::Digit { digit: '5', duration_ms: 100 });
    assert_eq!(side.texts()[0], json!({"event": "DTMF_END", "channel_id": start["channel_id"], "digit": "5"}));
}

#[test]
fn only_whole_frames_are_played_unless_buffered() {
    let mut side = channel();
    side.binary(&[0x10; 250]);
    side.wait(40);
    assert_eq!(side.codes(), ["BAD_CHUNK_SIZE"]);
    let loud = side.heard.iter().filter(|sample| sample.abs() > 1000).count();
    assert!((270..=320).contains(&loud), "one frame, not 500 samples: {loud}");
    let mut side = channel();
    side.text(r#"{"command":"START_MEDIA_BUFFERING"}"#);
    side.binary(&[0x10; 250]);
    side.binary(&[0x10; 50]);
    side.text(r#"{"command":"STOP_MEDIA_BUFFERING","correlation_id":"b"}"#);
    assert!(side.codes().is_empty() && side.sent.is_empty());
    assert_eq!(side.queue.len(), 640);
    side.wait(20);
    assert!(side.texts().is_empty());
    side.wait(20);
    let found = side.texts();
    assert_eq!((&found[0]["event"], &found[0]["correlation_id"]), (&json!("MEDIA_BUFFERING_COMPLETED"), &json!("b")));
    // 300 bytes of sound, then silence.
    assert!(side.heard[100..590].iter().all(|sample| sample.abs() > 1000));
    side.binary(&[0xff; 160]);
    side.wait(20);
    assert_eq!(side.heard.len(), 960, "two frames and one");
    assert!(side.heard[720..].iter().all(|sample| sample.abs() < 100));
}

#[test]
fn the_sender_is_stopped_and_goes_on() {
    let mut side = channel();
    for _ in 0..950 {
        side.binary(&[0x10; 160]);
    }
    assert_eq!(events_of(&mut side), ["MEDIA_XOFF"]);
    let mut at = None;
    while side.ms() < 5000 {
        side.say(&[0; 320]);
        let now = side.ms();
        at = at.or(events_of(&mut side).first().map(|name| (name.clone(), now)));
    }
    // 151 frames later 799 are left.
    assert_eq!(at, Some(("MEDIA_XON".to_owned(), 151 * 20)));
    for _ in 0..310 {
        side.binary(&[0x10; 160]);
    }
    assert!(side.seen.iter().any(|(_, output)| matches!(output, SessionOutput::Overflowed { .. })));
}

#[test]
fn commands_are_carried_out() {
    let mut side = channel();
    side.binary(&[0x10; 1600]);
    side.text(r#"{"command":"MARK_MEDIA","correlation_id":"m1"}"#);
    side.text(r#"{"command":"FLUSH_MEDIA"}"#);
    side.wait(1000);
    assert!(events_of(&mut side).is_empty(), "a flush drops marks");

    side.text(r#"{"command":"REPORT_QUEUE_DRAINED"}"#);
    side.binary(&[0x10; 320]);
    side.wait(20);
    assert!(events_of(&mut side).is_empty());
    side.wait(100);
    assert_eq!(events_of(&mut side), ["QUEUE_DRAINED"]);

    side.binary(&[0x10; 3200]);
    side.text(r#"{"command":"MARK_MEDIA","correlation_id":"m2"}"#);
    side.text(r#"{"command":"PAUSE_MEDIA"}"#);
    side.heard.clear();
    side.wait(1000);
    assert!(events_of(&mut side).is_empty());
    assert!(side.heard[2000..].iter().all(|sample| *sample == 0), "at most 100 ms are heard");
    side.text(r#"{"command":"GET_STATUS"}"#);
    let status = side.texts().remove(0);
    assert_eq!((&status["queue_length"], &status["media_paused"]), (&json!(15), &json!(true)));
    side.text(r#"{"command":"CONTINUE_MEDIA"}"#);
    side.wait(280);
    assert!(events_of(&mut side).is_empty());
    side.wait(20);
    assert_eq!(events_of(&mut side), ["MEDIA_MARK_PROCESSED"]);

    side.text(r#"{"command":"answer"}"#);
    side.text(&format!(r#"{{"command":"MARK_MEDIA","correlation_id":"{}"}}"#, "m".repeat(100)));
    assert_eq!(side.codes(), ["UNKNOWN_TYPE", "TOO_LONG"]);
    side.text(r#"{"command":"HANGUP"}"#);
    assert!(side.has_seen(&SessionOutput::Ended(SessionEnd::Peer)));
    assert_eq!(side.close(), Some((1000, "call ended")));
}

#[test]
fn too_long_a_message_hangs_up() {
    let mut side = channel();
    side.binary(&vec![0x10; 65_500]);
    assert_eq!(side.close(), None);
    side.binary(&vec![0x10; 65_501]);
    assert!(side.seen.iter().any(|(_, output)| matches!(output, SessionOutput::Ended(SessionEnd::Dropped(_)))));
    assert_eq!(side.close(), Some((1006, "")));
}

#[test]
fn control_may_be_plain_text() {
    let mut side = Side::caller(Dialect { plain_control: true, ..Dialect::new(Kind::ChanWebsocket) });
    let Some(Message::Text(start)) = side.sent.pop() else { panic!("a start") };
    assert!(
        start.starts_with("MEDIA_START connection_id:")
            && start.ends_with(" format:ulaw optimal_frame_size:160 ptime:20"),
        "{start}"
    );
    let mut check = |command: &str, expect: &str| {
        side.text(command);
        side.wait(20);
        let texts: Vec<String> = side
            .sent
            .drain(..)
            .filter_map(|message| match message {
                Message::Text(text) => Some(text),
                Message::Binary(_) => None,
            })
            .collect();
        let found = texts.join("|");
        let seen = found.split(' ').filter(|word| !word.starts_with("channel_id:")).collect::<Vec<_>>().join(" ");
        assert_eq!(seen, expect, "{command}");
    };
    check("MARK_MEDIA a b:c", "MEDIA_MARK_PROCESSED a b:c");
    check("MARK_MEDIA", "MEDIA_MARK_PROCESSED");
    check("REPORT_QUEUE_DRAINED", "QUEUE_DRAINED");
    check(
        "GET_STATUS",
        "STATUS queue_length:0 xon_level:800 xoff_level:900 queue_full:false bulk_media:false media_paused:false",
    );
    check("FLUSH_MEDIA", "");
    side.order(SessionControl::Digit { digit: '#', duration_ms: 100 });
    let Some(Message::Text(digit)) = side.sent.pop() else { panic!("a digit") };
    assert!(digit.starts_with("DTMF_END digit:# channel_id:"), "{digit}");
}
