//! Claims of the demonstration, each with the figure that supports it.

use std::collections::BTreeMap;

use ringer_media::call::{EventKind, Kind, Side};
use ringer_media::measure::{segments, snr_db};
use serde::Serialize;
use serde_json::{Value, json};

use super::call::Call;
use super::cast::{ASKED, NOISE_SNR_DB, Shows};
use crate::cli::count;

/// Largest difference between measured and requested SNR, in dB.
const SNR_DB: f64 = 1.5;
/// Longest time until an interrupted side is silent, in milliseconds: 200 to yield, 60 to stop, 80 to detect the end.
const STOP_MS: i64 = 340;
/// Largest difference between the engine's and the agent's own latency, in milliseconds.
const LATENCY_MS: f64 = 40.0;
/// Speech that has to be on a channel, in samples (1 s).
const LEAST_SPEECH: i64 = 16_000;

/// Claim that is checked, with the figure found.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Check {
    /// Name of the call's caller; empty for the whole run.
    pub call: String,
    /// Text of the claim.
    pub claim: String,
    /// True if the claim holds.
    pub ok: bool,
    /// True if nothing can be said, since this machine did not keep up.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unknown: bool,
    /// Figure that was found.
    pub figure: Value,
    /// Likely reason why the claim does not hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

impl Check {
    fn new(call: &Call, claim: &str, ok: bool, figure: Value) -> Check {
        Check { call: call.name.into(), claim: claim.into(), ok, unknown: false, figure, hint: None }
    }

    /// Returns the check, unknown for this reason when it does not hold.
    fn unknown_if(self, reason: Option<String>) -> Check {
        match (self.ok, reason) {
            (false, Some(hint)) => Check { unknown: true, hint: Some(hint), ..self },
            _ => self,
        }
    }

    /// Returns the check of something that depends on words: unknown when they may have been recognised late.
    fn of_words(self, call: &Call) -> Check {
        let late = call.events_named("recognizer_late").count();
        self.unknown_if((late > 0).then(|| format!("the recognizer was late {}", count(late, "time"))))
    }

    /// True if the claim does not hold, and this machine is not the reason.
    pub(crate) fn is_failure(&self) -> bool {
        !self.ok && !self.unknown
    }
}

/// Entries of the agent's own log about one call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct OwnLog {
    /// Keys that it received.
    pub digits: String,
    /// Start of each utterance, in milliseconds since 1970.
    pub starts_ms: Vec<f64>,
}

/// Reads the agent's log, by result id.
pub(crate) fn own_logs(text: &str) -> BTreeMap<String, OwnLog> {
    let mut logs: BTreeMap<String, OwnLog> = BTreeMap::new();
    for line in text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        let Some(id) = line["result_id"].as_str() else { continue };
        let log = logs.entry(id.to_owned()).or_default();
        match line["event"].as_str() {
            Some("dtmf_received") => log.digits.push_str(line["data"]["digits"].as_str().unwrap_or_default()),
            Some("speech.started") if line["side"] == "agent" => log.starts_ms.extend(line["wall_ms"].as_f64()),
            _ => {}
        }
    }
    logs
}

/// Returns every claim about a call.
pub(crate) fn checks(call: &Call, own: &OwnLog) -> Vec<Check> {
    let mut checks = vec![check_completed(call), check_audible(call), latency(call, own), check_trusted(call)];
    match call.shows {
        Shows::Interruptions => {
            checks.push(noise(call));
            let cuts_in = cut_in(call, Side::Dh, "the caller cuts in and the agent stops within 340 ms");
            checks.push(cuts_in.of_words(call));
            checks.push(cut_in(call, Side::Agent, "the agent cuts in and the caller stops within 340 ms"));
        }
        Shows::Script => checks.push(script(call).of_words(call)),
        Shows::Digits => checks.push(digits(call, own).of_words(call)),
        Shows::Stream => checks.push(stream(call)),
    }
    checks
}

fn check_completed(call: &Call) -> Check {
    let why = &call.result["error_message"];
    let figure = if why.is_null() { json!(call.status()) } else { json!({ "status": call.status(), "error": why }) };
    Check::new(call, "the call is completed", call.status() == "COMPLETED", figure)
}

fn check_audible(call: &Call) -> Check {
    let speech = |pcm: &[i16]| segments(pcm).into_iter().map(|span| span.length()).sum::<i64>();
    let samples = call.recording.each_ref().map(|pcm| speech(pcm));
    let seconds = samples.map(|count| (count as f64 / 160.0).round() / 100.0);
    let ok = samples.iter().all(|count| *count >= LEAST_SPEECH);
    let ok = ok && call.recording[0].len() == call.recording[1].len();
    Check::new(call, "both channels of the recording carry speech (s)", ok, json!(seconds))
}

/// Compares each measured latency with the agent's own log. The end of the caller's words is known to the sample; both
/// meet on the wall clock.
fn latency(call: &Call, own: &OwnLog) -> Check {
    let measured = call.latencies_ms();
    let connected = call.connected_ms().unwrap_or_default();
    let starts: Vec<f64> = own.starts_ms.iter().map(|start| start - connected).collect();
    let real = answers_ms(&starts, &call.own_ends_ms());
    let worst = measured.iter().zip(&real).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    let same = !measured.is_empty() && measured.len() == real.len();
    let round = |all: &[f64]| all.iter().map(|ms| ms.round()).collect::<Vec<_>>();
    let figure = json!({
        "measured_ms": round(&measured), "agent_ms": round(&real), "worst_ms": (worst * 10.0).round() / 10.0,
    });
    Check::new(call, "each latency agrees with the agent's own log within 40 ms", same && worst <= LATENCY_MS, figure)
}

/// Returns the times from the end of a caller's turn to the first utterance after it, in milliseconds.
fn answers_ms(starts: &[f64], ends: &[f64]) -> Vec<f64> {
    let mut answered = f64::MIN;
    let mut answers = Vec::new();
    for start in starts {
        let last = ends.iter().rev().find(|end| *end <= start);
        if let Some(end) = last.filter(|end| **end > answered) {
            answers.push(start - end);
        }
        answered = *start;
    }
    answers
}

fn check_trusted(call: &Call) -> Check {
    let quality = &call.result["engine_quality"];
    let check = Check::new(call, "the engine's own pacing is trusted", quality["trusted"] == true, quality.clone());
    let reason = quality["untrusted_reason"].as_str();
    check.unknown_if(reason.map(|reason| format!("the engine did not keep up on this machine: {reason}")))
}

fn noise(call: &Call) -> Check {
    let found = snr_db(&call.recording[0], &call.own_speech());
    let ok = found.is_some_and(|snr| (snr - NOISE_SNR_DB).abs() <= SNR_DB);
    let figure = json!({ "asked_db": NOISE_SNR_DB, "measured_db": found.map(|snr| (snr * 100.0).round() / 100.0) });
    Check::new(call, "the background noise is as loud as asked, within 1.5 dB", ok, figure)
}

fn cut_in(call: &Call, by: Side, claim: &str) -> Check {
    let stops = call.stops_ms(by);
    let ok = !stops.is_empty() && stops.iter().all(|stop| *stop <= STOP_MS);
    Check::new(call, claim, ok, json!({ "stop_ms": stops }))
}

/// Checks that the rule fired in answer to a turn in which the words stand.
fn script(call: &Call) -> Check {
    let fired = call.events_named("scripted_response").next();
    let mut before = call.timeline.iter().rev().filter(|turn| fired.is_some_and(|fired| turn.sample <= fired.sample));
    let heard = before.find_map(|turn| match turn.reading() {
        EventKind::TurnEnded { text, .. } => Some(text.as_str()),
        _ => None,
    });
    let heard = heard.unwrap_or_default();
    let is_answer =
        |what: &EventKind| matches!(what, EventKind::SpeechEnded { kind: Kind::Scripted, interrupted: false, .. });
    let said = call.timeline.iter().any(|entry| is_answer(entry.reading()));
    let ok = heard.contains(ASKED) && said;
    Check::new(call, "the scripted answer is given when its words are heard", ok, json!({ "heard": heard }))
}

fn digits(call: &Call, own: &OwnLog) -> Check {
    let sent = call.digits();
    let ok = !sent.is_empty() && sent == own.digits;
    Check::new(
        call,
        "the agent received exactly the keys that were pressed",
        ok,
        json!({ "sent": sent, "received": own.digits }),
    )
}

/// Checks that the agent's messages say when it speaks, and that its voice is heard then.
fn stream(call: &Call) -> Check {
    let transport = &call.result["metadata"]["transport"];
    let total = call.events_named("agent_speech_event").count();
    let heard = call.events_named("turn.ended").count();
    let ok = transport == "WebSocket, default" && total > 0 && heard > 0;
    let figure = json!({ "transport": transport, "messages": total, "turns": heard });
    Check::new(call, "the call goes over a WebSocket, and the agent says when it speaks", ok, figure)
}

#[cfg(test)]
mod tests {
    use ringer_media::call::{Event, TimelineEntry};

    use super::*;

    #[test]
    fn the_agents_log_is_read_by_result() {
        let text = "\
{\"result_id\":\"7\",\"event\":\"dtmf_received\",\"data\":{\"digits\":\"4\"}}
{\"result_id\":\"8\",\"event\":\"speech.started\",\"side\":\"agent\",\"wall_ms\":700.5}
not JSON
{\"result_id\":null,\"event\":\"dtmf_received\",\"data\":{\"digits\":\"9\"}}
{\"result_id\":\"7\",\"event\":\"dtmf_received\",\"data\":{\"digits\":\"2\"}}
";
        let logs = own_logs(text);
        assert_eq!(logs.len(), 2);
        assert_eq!((logs["7"].digits.as_str(), logs["8"].starts_ms.as_slice()), ("42", &[700.5][..]));
    }

    #[test]
    fn what_a_slow_machine_explains_is_unknown() {
        let hints = |shows: Shows, late: usize, reason: Value| -> Vec<String> {
            let note = TimelineEntry { seq: 0, event: Event::from_wire(0, "recognizer_late", "engine", json!({})) };
            let result = json!({ "engine_quality": { "trusted": false, "untrusted_reason": reason } });
            let call = Call { shows, result, timeline: vec![note; late], ..Call::empty("Oliver") };
            let checks = checks(&call, &OwnLog::default());
            assert!(checks.iter().all(|check| !check.ok && check.is_failure() == check.hint.is_none()));
            checks.into_iter().filter_map(|check| check.hint).collect()
        };
        assert_eq!(hints(Shows::Script, 0, Value::Null), Vec::<String>::new());
        assert_eq!(hints(Shows::Script, 1, Value::Null), ["the recognizer was late 1 time"]);
        for shows in [Shows::Digits, Shows::Interruptions] {
            assert_eq!(hints(shows, 3, Value::Null), ["the recognizer was late 3 times"]);
        }
        let untrusted = ["the engine did not keep up on this machine: late_frames are 2 of 1137, more than 0.1 %"];
        assert_eq!(hints(Shows::Stream, 0, json!("late_frames are 2 of 1137, more than 0.1 %")), untrusted);
    }

    #[test]
    fn an_answer_follows_what_was_not_answered_yet() {
        let check = |starts: &[f64], ends: &[f64], expect: &[f64]| assert_eq!(answers_ms(starts, ends), expect);
        check(&[500.0], &[], &[]);
        check(&[500.0, 2700.0, 4000.0], &[2000.0], &[700.0]);
        // Cutting in answers nothing; digits and words before one answer are one turn.
        check(&[500.0, 1500.0, 2800.0], &[1000.0, 2000.0], &[500.0, 800.0]);
        check(&[3000.0], &[1000.0, 2000.0], &[1000.0]);
    }
}
