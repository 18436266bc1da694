//! Printing of a call: lines for a person, or one JSON object a line for a program.

use std::path::Path;

use ringer_media::call::{EventKind, Kind};
use ringer_media::frame::{PER_MS, RATE_HZ};
use serde_json::{Value, json};

use crate::cli::count;
use crate::cli::lines::{Lines, interruptions, latencies, reason};
use crate::cli::out::{Out, complain};
use crate::engine::{CallReport, TimelineEntry};
use crate::judge::{self, Facts};

/// Name of the caller in printed lines.
pub(crate) const CALLER: &str = "caller";

/// Prints a call as it happens.
pub(crate) struct Show<'a> {
    /// Output that the call is printed to.
    pub out: &'a Out,
    /// Lines for a person; `None`: there are none.
    pub lines: Option<Lines>,
    /// True for one JSON object a line; lines for a person then go to standard error.
    pub json: bool,
}

/// Outcome of a call, as it is printed.
pub(crate) struct Outcome<'a> {
    /// Seed that all random draws followed from.
    pub seed: u64,
    /// Digits before the conversation.
    pub extension_digits: usize,
    /// `None`: it was not placed.
    pub report: Option<&'a CallReport>,
    /// Median of the sending time error, in milliseconds.
    pub pacing_p50_ms: f64,
    /// Path of the recording; `None` when none was asked for or made.
    pub recording: Option<&'a Path>,
    /// Reason why the command fails.
    pub problem: Option<&'a str>,
}

impl Show<'_> {
    /// Prints the address that is called, and the seed that makes the same call again.
    pub(crate) fn show_address(&self, to: &str, seed: u64) {
        match self.json {
            true => self.out.line(json!({ "event": "calling", "to": to, "seed": seed })),
            false => self.out.line(format_args!("calling {to} (seed {seed})")),
        }
    }

    /// Prints an event as it happens.
    pub(crate) fn event(&mut self, entry: &TimelineEntry) {
        let line = self.lines.as_mut().and_then(|lines| lines.line(entry));
        if !self.json {
            return line.into_iter().for_each(|line| self.out.line(line));
        }
        line.into_iter().for_each(complain);
        match serde_json::to_string(entry) {
            Ok(line) => self.out.line(line),
            Err(error) => tracing::error!("an event could not be written: {error}"),
        }
    }

    /// Prints the end. A failure is not among the lines for a person: it is told on standard error.
    pub(crate) fn over(&self, outcome: &Outcome) {
        if self.json {
            return self.out.line(as_json(outcome));
        }
        let Some(report) = outcome.report else { return };
        summary(report, outcome).iter().for_each(|line| self.out.line(line));
        report.warnings.iter().for_each(|warning| self.out.line(format_args!("warning: {warning}")));
        if let Some(path) = outcome.recording {
            self.out.line(format_args!("recording: {}", path.display()));
        }
    }
}

/// Returns the call in a few lines. Of one that was never connected there is nothing but its end.
fn summary(report: &CallReport, outcome: &Outcome) -> Vec<String> {
    let (ending, quality) = (&report.ending, &report.ending.quality);
    let seconds = ending.samples as f64 / f64::from(RATE_HZ);
    let mut lines = vec![String::new(), format!("ended: {}, after {seconds:.2} s", reason(ending.reason.as_str()))];
    if !ending.connected {
        return lines;
    }
    let facts = Facts { extension_digits: outcome.extension_digits, interface: "PHONE", ..Facts::default() };
    let latency_ms: Vec<f64> = judge::measure(&report.timeline, &facts).latency.iter().map(|s| s * 1000.0).collect();
    lines.push(turns(&report.timeline));
    lines.push(latencies(&latency_ms));
    lines.push(interruptions(&report.timeline, &format!("the {CALLER}")));
    lines.push(format!(
        "sent: {}, half of them within {:.2} ms of their time, 99 % within {:.2} ms, {} late; codec {}",
        count(quality.sent_frames as usize, "frame"),
        outcome.pacing_p50_ms,
        quality.pacing_p99_ms,
        quality.late_frames,
        report.peer.codec.unwrap_or("none"),
    ));
    lines.push(format!(
        "received: {}, {} lost, {} late, {} ms of sound made up",
        count(quality.received_packets as usize, "packet"),
        quality.lost_packets,
        quality.late_packets,
        quality.concealed_ms,
    ));
    lines
}

/// Returns a line with the number of turns of each side, and of those whose words are not known.
fn turns(timeline: &[TimelineEntry]) -> String {
    let of = |counts: fn(&EventKind) -> bool| timeline.iter().filter(|entry| counts(entry.reading())).count();
    let own = of(|what| matches!(what, EventKind::SpeechEnded { kind, .. } if *kind != Kind::Probe));
    let agents = of(|what| matches!(what, EventKind::TurnEnded { .. }));
    let unheard = judge::unheard(timeline).iter().filter(|turn| turn.lacks_words()).count();
    let unheard = match unheard {
        0 => String::new(),
        number => format!(" ({number} with words that are not known)"),
    };
    format!("said: {} by the {CALLER}, {} by the agent{unheard}", count(own, "utterance"), count(agents, "turn"))
}

fn as_json(outcome: &Outcome) -> Value {
    let mut line = json!({
        "event": "report",
        "ok": outcome.problem.is_none(),
        "error": outcome.problem,
        "seed": outcome.seed,
        "connected": false,
    });
    let Some(report) = outcome.report else { return line };
    let (ending, quality) = (&report.ending, &report.ending.quality);
    let round = |ms: f64| (ms * 1000.0).round() / 1000.0;
    let more = json!({
        "connected": ending.connected,
        "end_reason": ending.reason.as_str(),
        "duration_ms": ending.samples as f64 / PER_MS as f64,
        "codec": report.peer.codec,
        "sip_call_id": report.peer.call_id,
        "sent_frames": quality.sent_frames,
        "late_frames": quality.late_frames,
        "pacing_p50_ms": round(outcome.pacing_p50_ms),
        "pacing_p99_ms": round(quality.pacing_p99_ms),
        "received_packets": quality.received_packets,
        "lost_packets": quality.lost_packets,
        "late_packets": quality.late_packets,
        "concealed_ms": quality.concealed_ms,
        "warnings": report.warnings,
        "recording": outcome.recording.map(|path| path.display().to_string()),
    });
    if let (Some(line), Value::Object(more)) = (line.as_object_mut(), more) {
        line.extend(more);
    }
    line
}
