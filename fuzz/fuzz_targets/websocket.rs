//! Sessions of messages: whatever the other side says in any protocol and role, what waits is bounded, one end is told,
//! and nothing follows the close.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ringer_transport::websocket::protocol::{MAX_QUEUE, MAX_VIOLATIONS};
use ringer_transport::websocket::{Dialect, Kind, Message, Session, SessionControl, SessionFacts, SessionOutput};
use ringer_media::seed::Seed;
use ringer_media::time::Time;

/// Names of a call in this seed, so that messages can be about it.
fn names(session: &mut Session) -> Vec<(String, String)> {
    let mut found = Vec::new();
    while let Some(output) = session.poll() {
        let SessionOutput::Send(Message::Text(text)) = output else { continue };
        let keys = ["streamSid", "stream_sid", "streamId", "stream_id", "id"];
        for key in keys {
            if let Some(rest) = text.split(&format!("\"{key}\":\"")).nth(1) {
                found.push((format!("${key}"), rest.split('"').next().unwrap_or_default().to_owned()));
            }
        }
    }
    found
}

fuzz_target!(|data: &[u8]| {
    let [choice, plain, rest @ ..] = data else { return };
    let kinds: Vec<Kind> = Kind::DIALECTS.into_iter().chain([Kind::Default]).collect();
    let kind = kinds[usize::from(choice >> 1) % kinds.len()];
    let mut dialect = Dialect::new(kind);
    dialect.plain_control = plain % 2 == 1;
    let facts = SessionFacts::new(1, "ws://h/a?sample-rate=16000", Seed(1), Time(0), 0);
    let mut session = if choice % 2 == 0 { Session::caller(dialect, facts) } else { Session::agent(dialect, facts) };
    session.on_open(Time(0));
    let names = names(&mut session);
    let (mut now, mut waiting, mut ends, mut violations, mut is_closed) = (0, 0u64, 0, 0, false);
    // Messages end with a line; a `#` begins a binary one, a `!` lets time pass or orders something.
    for line in rest.split(|byte| *byte == b'\n') {
        now += 20_000_000;
        match line.split_first() {
            Some((b'#', bytes)) => session.receive(Time(now), Message::Binary(bytes.to_vec())),
            Some((b'!', bytes)) => {
                let order = bytes.first().copied().unwrap_or_default();
                now += u64::from(order) * 100_000_000;
                session.frame(Time(now), &[i16::from(order); 320]);
                session.tick(Time(now));
                waiting = waiting.saturating_sub(u64::from(order) * 1600);
                session.set_unplayed(Time(now), waiting);
                session.control(Time(now), match order % 16 {
                    0 => SessionControl::UtteranceStarted,
                    1 => SessionControl::UtteranceCompleted,
                    2 => SessionControl::Digit { digit: '5', duration_ms: 100 },
                    3 => SessionControl::Clear,
                    4 => SessionControl::Hangup,
                    _ => SessionControl::Mark(order.to_string()),
                });
            }
            _ => {
                let mut text = String::from_utf8_lossy(line).into_owned();
                for (key, name) in &names {
                    text = text.replace(key, name);
                }
                session.receive(Time(now), Message::Text(text));
            }
        }
        while let Some(output) = session.poll() {
            assert!(!is_closed, "{output:?} follows the close");
            match output {
                SessionOutput::Frames(pcm) => waiting += pcm.len() as u64,
                SessionOutput::ClearFrames => waiting = 0,
                SessionOutput::Ended(_) => ends += 1,
                SessionOutput::Violation { excerpt, .. } => {
                    violations += 1;
                    assert!(excerpt.chars().count() <= 200);
                }
                SessionOutput::Close { .. } | SessionOutput::Drop => is_closed = true,
                _ => {}
            }
            assert!(waiting <= MAX_QUEUE && ends <= 1);
        }
    }
    // Some deviations are told without being counted, ten times for each code.
    assert!(violations <= MAX_VIOLATIONS + 30);
});
