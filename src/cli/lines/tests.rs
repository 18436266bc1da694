//! Every event of a timeline has its line.

use serde_json::json;

use super::*;

fn line(lines: &mut Lines, sample: i64, side: &str, event: &str, data: &Value) -> Option<String> {
    lines.line(&Event::from_wire(sample, event, side, data.clone()))
}

/// Returns the name and words of the line, in verbose lines.
fn line_in_words(side: &str, event: &str, data: Value) -> String {
    let mut lines = Lines::new("caller", Style::PLAIN).verbose(true);
    let shown = line(&mut lines, 20_000, side, event, &data).expect("every event has a line");
    let rest = shown.strip_prefix("     1.25 s  ").unwrap_or_else(|| panic!("its time is the first column: {shown}"));
    let (name, what) = rest.split_at(NAME_WIDTH + 2);
    assert!(name.ends_with("  ") && !what.contains(['{', '}', '\n']), "{shown}");
    format!("{}: {what}", name.trim())
}

fn check(side: &str, event: &str, data: Value, expect: &str) {
    assert_eq!(line_in_words(side, event, data), expect);
}

#[test]
fn events_of_a_call_have_their_lines() {
    check("engine", "call.dialing", json!({"address": "sip:a@b"}), "caller: calls sip:a@b");
    check("agent", "call.ringing", json!({"address": null, "code": 180}), "agent: is called, SIP 180");
    check("agent", "call.early_media", json!({"code": 183}), "agent: is heard before the answer, SIP 183");
    check("agent", "call.connected", json!({"code": 200, "codec": "G722"}), "agent: answers, codec G722");
    check(
        "engine",
        "call.ended",
        json!({"by": "AGENT", "reason": "agent_hangup", "sip_code": 200, "q850_cause": 16}),
        "agent: ends the call: the agent hung up (agent_hangup), SIP 200, Q.850 cause 16",
    );
    check(
        "engine",
        "call.ended",
        json!({"by": "USER", "reason": "dh_end_call", "sip_code": null}),
        "caller: ends the call: the caller is done (dh_end_call)",
    );
    check("engine", "call.ended", json!({"by": "engine", "reason": "new_one"}), "engine: ends the call: new one");
}

#[test]
fn events_of_the_channel_have_their_lines() {
    let channel_data = |name: &str, data: Value| json!({ "name": name, "data": data });
    let joined = json!({ "room": "desk-1", "server_version": "1.9.0", "flow": "two connections" });
    let expect = "caller: is in the room desk-1 (version of the server: 1.9.0; two connections)";
    check("agent", "channel_event", channel_data("room_joined", joined), expect);
    let joined = json!({ "room": "desk-1", "server_version": "", "flow": "one connection" });
    let expect = "caller: is in the room desk-1 (version of the server: unknown; one connection)";
    check("agent", "channel_event", channel_data("room_joined", joined), expect);
    for (name, data, expect) in [
        ("agent_joined", json!({ "identity": "desk" }), "agent: is desk"),
        ("agent_rejoined", json!({ "identity": "desk", "gap_ms": 120 }), "agent: is back in the room, after 0.12 s"),
        ("agent_rejoined", json!({ "identity": "desk", "gap_ms": null }), "agent: is back in the room"),
        ("agent_changed", json!({ "from": "ann", "identity": "desk" }), "agent: is desk from now on, in place of ann"),
        ("agent_state", json!({ "state": "thinking" }), "agent: is in the state thinking"),
        ("connection_restarted", json!({}), "engine: the connection is back"),
    ] {
        check("agent", "channel_event", channel_data(name, data), expect);
    }
    let lost = channel_data("connection_restarts", json!({ "why": "it broke" }));
    check("agent", "channel_event", lost, "engine: the connection is lost and is taken up again: it broke");
    let other = channel_data("caller_reported", json!({ "text": "a" }));
    check("agent", "channel_event", other, "agent: channel event: name caller_reported, data text: a");
}

#[test]
fn speech_and_turns_have_their_lines() {
    let own = |text: &str, kind: &str, interrupted: bool| json!({"utterance_id": 1, "text": text, "kind": kind, "interrupted": interrupted});
    check("dh", "speech.started", own("Hello.", "turn", false), "caller: begins: Hello.");
    check("dh", "speech.ended", own("Hello.", "opening", false), "caller: Hello.");
    check("dh", "speech.ended", own("Hello, I", "turn", true), "caller: Hello, I -- [stops here]");
    check("dh", "speech.ended", own("", "turn", true), "caller: [stops before a word is said]");
    check("dh", "speech.ended", own("Wait.", "interruption", false), "caller: cuts in: Wait.");
    check("dh", "speech.ended", own("Yes.", "scripted", false), "caller: by the script: Yes.");
    check("dh", "speech.ended", own("Hello?", "reprompt", false), "caller: asks again: Hello?");
    check("dh", "speech.ended", own("Mm.", "probe", false), "caller: beside the conversation: Mm.");
    check("agent", "speech.started", json!({"arrival_ms": 1.5}), "agent: begins to speak");
    check("agent", "speech.ended", json!({"arrival_ms": 1.5}), "agent: falls silent");
    let heard = |text: &str, more: Value| {
        let words = json!([{"word": text, "start_offset_ms": 1, "end_offset_ms": 2, "confidence": 0.5}]);
        let mut turn = json!({"text": text, "from_sample": 9, "end_sample": 99, "concealed_ms": 0, "words": words});
        for (key, value) in more.as_object().expect("fields") {
            turn[key] = value.clone();
        }
        turn
    };
    check("agent", "turn.ended", heard("How are you?", json!({})), "agent: How are you?");
    check(
        "agent",
        "turn.ended",
        heard("", json!({"text_missing": "no_recognizer"})),
        "agent: [words not known: no recognizer]",
    );
    check("agent", "turn.ended", heard("", json!({})), "agent: [words not known]");
    check(
        "agent",
        "turn.ended",
        heard("How", json!({"text_missing": "recognizer_late", "text_late": true, "concealed_ms": 80})),
        "agent: How [further words not known: the recognizer was late] [answered before the words were known] \
         [80 ms of the sound did not come]",
    );
    check("agent", "transcript.partial", json!({"text": "How a"}), "agent: ... How a");
    check(
        "dh",
        "language.taken",
        json!({"language": "de", "by": "text", "from_sample": 1}),
        "caller: goes on in the other side's language: de",
    );
}

#[test]
fn decisions_of_the_caller_have_their_lines() {
    let cut = |by: &str, stop_ms: Value| json!({"by": by, "overlap_ms": 400, "stop_ms": stop_ms});
    check("agent", "barge_in", cut("agent", json!(320)), "agent: cuts in; caller is silent after 320 ms");
    check("dh", "barge_in", cut("dh", json!(null)), "caller: cuts in; agent does not fall silent for it");
    check(
        "dh",
        "late_turn",
        json!({"late_ms": 140, "utterance_id": 2}),
        "caller: speaks 140 ms late: the words were not ready",
    );
    check(
        "dh",
        "scripted_response",
        json!({"index": 1, "match_type": "exact_match", "response_type": "hang_up"}),
        "caller: scripted response 1 (exact match: hang up)",
    );
    check(
        "dh",
        "interruption.decided",
        json!({"type": "keyword", "u": 0.5, "at_ms": 900, "keyword": "price"}),
        "caller: decides to cut in after 900 ms (keyword, at the word price)",
    );
    check("dh", "silence_tool", json!({"seconds": 20}), "caller: stays silent for up to 20 s");
    check("dh", "reprompt", json!({"n": 1}), "caller: gets no answer and asks again (1)");
}

#[test]
fn changes_of_the_session_keys_and_messages_have_their_lines() {
    check("agent", "hold", json!({"code": 200}), "agent: puts the caller on hold");
    check("agent", "unhold", json!({"code": 200}), "agent: takes the caller off hold");
    check(
        "agent",
        "transfer",
        json!({"to": "sip:c@d", "accepted": false, "code": 603}),
        "agent: hands the call on to sip:c@d: refused",
    );
    let outcome = |outcome: &str, code: u16| json!({"to": "sip:c@d", "outcome": outcome, "code": code});
    check("engine", "transferred", outcome("answered", 200), "engine: sip:c@d took the call over");
    let failed = "engine: sip:c@d did not take the call over: not answered (408)";
    check("engine", "transferred", outcome("not_answered", 408), failed);
    check("agent", "session.answered", json!({"code": 200}), "agent: changes the session, answered with 200");
    let digit = |method: &str| json!({"digits": "#", "method": method, "duration_ms": 100});
    check("dh", "dtmf_sent", digit("rtp_event"), "caller: presses # (telephone event)");
    check("agent", "dtmf_received", digit("inband"), "agent: presses # (tones)");
    check("dh", "probe", json!({"kind": "vocal_tic"}), "caller: makes a sound that asks for no answer: vocal tic");
    check("engine", "playback_step", json!({"index": 2, "passed": false}), "engine: step 2: not passed");
    check(
        "agent",
        "tool_call",
        json!({"name": "book", "parameters": {"day": "Monday", "people": [2, 3]}, "output": {"ok": true}}),
        "agent: calls the tool book(day: Monday, people: 2, 3): ok: true",
    );
    check(
        "dh",
        "message.sent",
        json!({"message_id": "1", "text": "Hi\nyou", "channel": "sms"}),
        "caller: Hi you (sms)",
    );
    check("agent", "message.received", json!({"text": "Hello"}), "agent: Hello");
    check("agent", "mark", json!({"name": "x"}), "agent: mark: name x");
}

#[test]
fn faults_figures_and_unknown_events_have_their_lines() {
    check(
        "agent",
        "suspected_echo_event",
        json!({"delay_ms": 120.5, "erl_db": 12.0}),
        "agent: the agent's side sends the caller's words back, 120.5 ms later and 12.0 dB quieter",
    );
    check("agent", "agent_error", json!({"message": "no answer"}), "agent: the agent failed: no answer");
    check("engine", "rx_underrun", json!({"duration_ms": 60}), "engine: 60 ms of the agent's sound did not come");
    check("engine", "rx_overflow", json!({"packets": 3}), "engine: 3 packets came at once and were dropped");
    check(
        "engine",
        "email_unthreaded",
        json!({"sender": "a@b", "reason": null}),
        "engine: an email names no mail that it answers: sender a@b",
    );
    check("engine", "email_sender_rejected", json!({}), "engine: an email of an unknown sender is left out");
    check(
        "engine",
        "network",
        json!({"received": 50, "lost": 1, "late": 0, "jitter_ms": 0.25}),
        "engine: network: 50 received, 1 lost, 0 late, jitter 0.25 ms",
    );
    check("engine", "engine.late_frames", json!({"count": 2}), "engine: 2 frames were sent late");
    check("dh", "fallback_speaker", json!({}), "caller: the built-in speaker answers in place of the language model");
    check("dh", "synthesizer_failed", json!({"message": "gone"}), "caller: the synthesizer failed: gone");
    check("engine", "what_is_new", json!({"a_b": [1], "c": {"d": 2, "e": null}}), "engine: what is new: a b 1, c d: 2");
}

#[test]
fn running_text_figures_and_plans_are_told_on_request_only() {
    let mut lines = Lines::new("caller", Style::PLAIN);
    for (side, event) in [
        ("agent", "transcript.partial"),
        ("engine", "network"),
        ("dh", "speech.started"),
        ("agent", "speech.started"),
        ("agent", "speech.ended"),
        ("dh", "interruption.decided"),
        ("agent", "session.answered"),
    ] {
        assert_eq!(line(&mut lines, 0, side, event, &json!({})), None, "{event}");
    }
    assert!(line(&mut lines, 0, "agent", "turn.ended", &json!({"text": "Hi."})).is_some());
}

#[test]
fn a_turn_tells_how_long_the_caller_waited_for_it() {
    let ms = |ms: i64| ms * PER_MS;
    let mut lines = Lines::new("caller", Style::PLAIN).with_extension(1);
    let own = |kind: &str| json!({"kind": kind, "text": "Yes."});
    let digit = json!({"digits": "1", "method": "rtp_event", "duration_ms": 100});
    let mut turn = |events: &[(i64, &str, &Value)], from_ms: i64, end_ms: i64| {
        for (at_ms, event, data) in events {
            line(&mut lines, ms(*at_ms), "dh", event, data);
        }
        let data = json!({"text": "Hi.", "from_sample": ms(from_ms), "end_sample": ms(end_ms)});
        let shown = line(&mut lines, ms(end_ms + 300), "agent", "turn.ended", &data).expect("words are told");
        shown.split_once("(latency ").map(|(_, ms)| ms.trim_end_matches(" ms)").to_owned())
    };
    assert_eq!(turn(&[(0, "dtmf_sent", &digit)], 500, 900), None, "an extension is none");
    let (said, sound) = (own("turn"), own("probe"));
    let speaks = |from, to| [(from, "speech.started", &said), (to, "speech.ended", &said)];
    assert_eq!(turn(&speaks(1000, 2000), 2840, 4000).as_deref(), Some("840"));
    assert_eq!(turn(&[], 5000, 6000), None, "the same turn goes on");
    assert_eq!(turn(&speaks(7000, 9000), 8000, 10_000), None, "the agent cuts in");
    assert_eq!(turn(&[(10_500, "dtmf_sent", &digit)], 10_900, 11_000).as_deref(), Some("300"));
    let sounds = [(12_000, "speech.started", &sound), (12_300, "speech.ended", &sound)];
    assert_eq!(turn(&sounds, 12_500, 13_000), None, "a sound asks for no answer");
}

#[test]
fn a_latency_is_the_same_in_its_line_and_in_the_summary() {
    // 1,323.6 ms, and 840.5 ms with what floating point makes of it.
    for (samples, expect) in [(21_178_i64, "1324"), (13_448, "840"), (13_464, "842")] {
        let in_summary = samples as f64 / 16_000.0 * 1000.0;
        assert_eq!(latencies(&[in_summary]), format!("latency of the agent's turns: {expect} ms"));
        let mut lines = Lines::new("caller", Style::PLAIN);
        let own = json!({"kind": "turn", "text": "Yes."});
        line(&mut lines, 0, "dh", "speech.started", &own);
        line(&mut lines, 16_000, "dh", "speech.ended", &own);
        let turn = json!({"text": "Hi.", "from_sample": 16_000 + samples, "end_sample": 60_000});
        let shown = line(&mut lines, 64_000, "agent", "turn.ended", &turn).expect("words are told");
        assert!(shown.ends_with(&format!("(latency {expect} ms)")), "{shown}");
    }
}

#[test]
fn what_is_said_moves_nothing_on_a_terminal() {
    let text = "a\x1b[2Jb\r\nc\u{202e}d\te";
    assert_eq!(line_in_words("agent", "turn.ended", json!({"text": text})), "agent: a\u{fffd}[2Jb  c\u{fffd}d e");
    assert_eq!(
        line_in_words("agent", "mark", json!({"a": "x".repeat(300)})),
        format!("agent: mark: a {}...", "x".repeat(200))
    );
}

#[test]
fn colours_change_no_column() {
    for (event, side, data) in [
        ("turn.ended", "agent", json!({"text": "Hi."})),
        ("late_turn", "dh", json!({"late_ms": 9})),
        ("call.ended", "engine", json!({"by": "engine", "reason": "fault"})),
    ] {
        let mut both = [Style::PLAIN, Style { coloured: true }].map(|style| Lines::new("caller", style));
        let [plain, coloured] = both.each_mut().map(|lines| line(lines, 160, side, event, &data).expect("it is told"));
        assert!(coloured.contains("\x1b[") && !plain.contains('\x1b'), "{coloured}");
        let bare: String =
            coloured.split("\x1b[").map(|part| part.split_once('m').map_or(part, |(_, rest)| rest)).collect();
        assert_eq!(bare, plain);
    }
    assert_eq!(Style::of(false), Style::PLAIN);
}
