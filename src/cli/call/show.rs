//! How a call is printed: lines for a person, or one JSON object a line for a program.

use std::path::Path;

use ringer_media::frame::{PER_MS, RATE_HZ};
use serde_json::{Value, json};

use crate::cli::out::Out;
use crate::engine::{CallReport, TimelineEntry};

/// Prints a call.
pub struct Show<'a> {
    /// Where to.
    pub out: &'a Out,
    /// One JSON object a line.
    pub json: bool,
}

/// What a call came to.
pub struct Outcome<'a> {
    /// What everything that was drawn followed from.
    pub seed: u64,
    /// `None`: it was not placed.
    pub report: Option<&'a CallReport>,
    /// Median of the sending time error, in milliseconds.
    pub pacing_p50_ms: f64,
    /// Where the recording is, when one was asked for and made.
    pub recording: Option<&'a Path>,
    /// Why the command fails.
    pub problem: Option<&'a str>,
}

impl Show<'_> {
    /// Who is called, and the seed that makes the same call again.
    pub fn begun(&self, to: &str, seed: u64) {
        match self.json {
            true => self.out.line(json!({ "event": "calling", "to": to, "seed": seed })),
            false => self.out.line(format_args!("calling {to} (seed {seed})")),
        }
    }

    /// An event, as it happens.
    pub fn event(&self, entry: &TimelineEntry) {
        if self.json {
            match serde_json::to_string(entry) {
                Ok(line) => self.out.line(line),
                Err(error) => tracing::error!("an event could not be written: {error}"),
            }
        } else if !matches!(entry.event.as_str(), "network" | "transcript.partial") {
            let at_s = entry.offset_ms / 1000.0;
            let (side, event, data) = (&entry.side, &entry.event, &entry.data);
            self.out.line(format_args!("{at_s:>10.3} s  {side:<6} {event:<22} {data}"));
        }
    }

    /// The end. What failed is not among the lines for a person: it is told on standard error.
    pub fn over(&self, outcome: &Outcome) {
        if self.json {
            return self.out.line(as_json(outcome));
        }
        let Some(report) = outcome.report else { return };
        let quality = &report.ending.quality;
        self.out.line(format_args!(
            "ended: {} after {:.2} s; codec {}; sent {} frames, late p50 {:.2} ms, p99 {:.2} ms; received {}, lost {}, \
             concealed {} ms",
            report.ending.reason.as_str(),
            report.ending.samples as f64 / f64::from(RATE_HZ),
            report.peer.codec.unwrap_or("none"),
            quality.sent_frames,
            outcome.pacing_p50_ms,
            quality.pacing_p99_ms,
            quality.received_packets,
            quality.lost_packets,
            quality.concealed_ms,
        ));
        report.warnings.iter().for_each(|warning| self.out.line(format_args!("warning: {warning}")));
        if let Some(path) = outcome.recording {
            self.out.line(format_args!("recording: {}", path.display()));
        }
    }
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
