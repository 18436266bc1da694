//! The agent's own record: one JSON object a line, with the time of each sample on the machine's clocks. Sides are
//! named as the agent sees them: `agent` is itself, `caller` the other side.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use ringer_media::call::{Event, EventKind, Kind};
use ringer_media::frame::{FRAME, PER_MS};
use serde_json::{Value, json};

use crate::clock::{monotonic, realtime_ns};
use crate::engine::{CallReport, CallUpdate, TimelineEntry};

/// Sound of the caller that is shorter is no turn, in samples (100 ms).
const SHORT: i64 = 100 * PER_MS;

/// The file, shared by all calls; a line is written whole.
#[derive(Debug)]
pub struct Log(Mutex<File>);

impl Log {
    /// Appends to `path`.
    ///
    /// # Errors
    /// The file cannot be opened.
    pub fn append(path: &Path) -> std::io::Result<Log> {
        Ok(Log(Mutex::new(File::options().create(true).append(true).open(path)?)))
    }

    fn write(&self, line: &Value) {
        let written = self.0.lock().write_all(format!("{line}\n").as_bytes());
        if let Err(error) = written {
            tracing::warn!("the agent's log cannot be written: {error}");
        }
    }
}

/// One call's part of the log.
pub(crate) struct CallLog {
    log: Arc<Log>,
    call_id: String,
    result_id: Option<String>,
    /// CLOCK_MONOTONIC of sample 0 in nanoseconds, as near as the messages of the media thread tell. It is the least of
    /// their values, because a message can only be late.
    origin_ns: Option<i64>,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, in nanoseconds.
    wall_ahead_ns: i64,
    answers: AnswerTimes,
    digits: String,
}

impl CallLog {
    /// Returns the log of the call with this Call-ID and, when the caller gave it, result id.
    pub(crate) fn new(log: Arc<Log>, call_id: String, result_id: Option<String>) -> CallLog {
        let wall_ahead_ns = realtime_ns() as i64 - monotonic().0 as i64;
        let (answers, digits) = (AnswerTimes::default(), String::new());
        CallLog { log, call_id, result_id, origin_ns: None, wall_ahead_ns, answers, digits }
    }

    /// Writes down what happened.
    pub(crate) fn add(&mut self, news: &CallUpdate) {
        match news {
            CallUpdate::Event(entry) => self.entry(entry),
            CallUpdate::Ended(report) => self.write_end(report),
            CallUpdate::Dispatched | CallUpdate::Connected(_) => {}
        }
    }

    fn entry(&mut self, entry: &TimelineEntry) {
        let now = monotonic().0 as i64;
        // Both leave the media thread in the tick that begins there (the figures of the network after its frame was
        // sent).
        match &entry.what {
            EventKind::Connected { .. } => self.began(now),
            EventKind::Network { .. } => return self.began(now - nanos(entry.sample - FRAME as i64)),
            EventKind::TranscriptPartial { .. } => return,
            EventKind::DtmfReceived { digit, .. } => self.digits.push(*digit),
            _ => {}
        }
        let mut data = entry.data();
        if let Some(by) = data.get_mut("by") {
            *by = json!(side_name(by.as_str().unwrap_or_default()));
        }
        self.line(entry.name(), side_name(entry.side_name()), entry.sample, data);
        if let Some((end, start)) = self.answers.add(&entry.event) {
            let latency_ms = round3((start - end) as f64 / PER_MS as f64);
            let (caller, own) = (self.times(end), self.times(start));
            let data = json!({
                "latency_ms": latency_ms,
                "caller_end_wall_ms": caller.map(|(_, wall)| wall),
                "own_start_wall_ms": own.map(|(_, wall)| wall),
            });
            self.line("turn.latency", "agent", start, data);
        }
    }

    fn write_end(&mut self, report: &CallReport) {
        let quality = &report.ending.quality;
        let data = json!({
            "reason": report.ending.reason.as_str(),
            "codec": report.peer.codec,
            "digits": self.digits,
            "warnings": report.warnings,
            "quality": {
                "pacing_p99_ms": round3(quality.pacing_p99_ms), "pacing_max_ms": round3(quality.pacing_max_ms),
                "sent_frames": quality.sent_frames, "late_frames": quality.late_frames,
                "received_packets": quality.received_packets, "lost_packets": quality.lost_packets,
            },
        });
        self.line("call.report", "agent", report.ending.samples, data);
    }

    fn began(&mut self, at_ns: i64) {
        self.origin_ns = Some(self.origin_ns.map_or(at_ns, |known| known.min(at_ns)));
    }

    /// Returns a sample's time in milliseconds: CLOCK_MONOTONIC and since the epoch.
    fn times(&self, sample: i64) -> Option<(f64, f64)> {
        let at = self.origin_ns? + nanos(sample);
        let ms = |ns: i64| round3(ns as f64 / 1e6);
        Some((ms(at), ms(at + self.wall_ahead_ns)))
    }

    fn line(&self, event: &str, side: &str, sample: i64, data: Value) {
        let times = self.times(sample);
        self.log.write(&json!({
            "call_id": self.call_id,
            "result_id": self.result_id,
            "event": event,
            "side": side,
            "sample": sample,
            "offset_ms": round3(sample as f64 / PER_MS as f64),
            "monotonic_ms": times.map(|(monotonic, _)| monotonic),
            "wall_ms": times.map(|(_, wall)| wall),
            "data": data,
        }));
    }
}

/// Finds the agent's answers: its first word after the caller's last word or digit.
#[derive(Debug, Default)]
struct AnswerTimes {
    began: Option<i64>,
    ended: Option<i64>,
    /// The end before the sound that runs, in case that it is none.
    before: Option<i64>,
}

impl AnswerTimes {
    /// Returns the caller's end and the agent's beginning, when `entry` is the beginning of an answer.
    fn add(&mut self, entry: &Event) -> Option<(i64, i64)> {
        match entry.reading() {
            EventKind::AgentSpeechStarted { .. } => {
                self.began = Some(entry.sample);
                self.before = self.ended.take();
            }
            EventKind::AgentSpeechEnded { .. } => {
                let short = self.began.take().is_some_and(|began| entry.sample - began < SHORT);
                self.ended = if short { self.before.take() } else { Some(entry.sample) };
            }
            EventKind::DtmfReceived { duration_ms, .. } => {
                self.ended = Some(entry.sample + i64::from(*duration_ms) * PER_MS);
            }
            // First words are no answer, whatever was heard before them.
            EventKind::SpeechStarted { kind, .. } => {
                let answer = (self.ended.take()?, entry.sample);
                return (*kind != Kind::Opening).then_some(answer);
            }
            _ => {}
        }
        None
    }
}

/// Returns a side of the timeline as the agent sees it.
fn side_name(side: &str) -> &str {
    match side {
        "dh" | "USER" => "agent",
        "agent" | "AGENT" => "caller",
        other => other,
    }
}

fn nanos(samples: i64) -> i64 {
    samples * (1_000_000 / PER_MS)
}

fn round3(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_measured_from_the_callers_last_word() {
        let (start, end) = ("speech.started", "speech.ended");
        let check = |entries: &[(&str, &str, i64)], expect: &[(i64, i64)]| {
            let mut answers = AnswerTimes::default();
            let entry = |&(event, side, sample): &(&str, &str, i64)| {
                let name = if event == "opening" { start } else { event };
                Event::from_wire(sample, name, side, json!({ "kind": event }))
            };
            let found: Vec<_> = entries.iter().filter_map(|line| answers.add(&entry(line))).collect();
            assert_eq!(found, expect);
        };
        check(&[(start, "dh", 8000), (end, "dh", 9000)], &[]);
        check(&[(start, "agent", 0), (end, "agent", 8000), ("opening", "dh", 16000)], &[]);
        check(&[(start, "agent", 8000), (end, "agent", 16000), (start, "dh", 27200)], &[(16000, 27200)]);
        let click = [(start, "agent", 0), (end, "agent", 9000), (start, "agent", 9900), (end, "agent", 10000)];
        check(&[&click[..], &[(start, "dh", 20000)]].concat(), &[(9000, 20000)]);
        check(&[(start, "agent", 0), (start, "dh", 9000), (end, "agent", 9500)], &[]);
    }
}
