//! Output of the demonstration: bars while the calls run, then each call and each check, or all of it as JSON.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Value, json};

use super::call::Call;
use super::check::Check;
use crate::cli::count;
use crate::cli::lines::{interruptions, latencies};
use crate::cli::out::Out;
use crate::model::transcript::NOT_UNDERSTOOD;

/// Returns a bar for one call.
pub(crate) fn bar(bars: &MultiProgress, name: &str, quiet: bool) -> ProgressBar {
    if quiet {
        bars.set_draw_target(ProgressDrawTarget::hidden());
    }
    let bar = bars.add(ProgressBar::new_spinner());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix:>7} {elapsed_precise} {msg}") {
        bar.set_style(style);
    }
    bar.set_prefix(name.to_owned());
    bar
}

/// Prints a line above the bars.
pub(crate) fn tell(out: &Out, bars: &MultiProgress, line: &str, quiet: bool) {
    if quiet {
        return;
    }
    // Bars are drawn on a terminal only, and what is printed above them then too.
    if std::io::stderr().is_terminal() {
        let _ = bars.println(line);
    } else {
        out.line(line);
    }
}

/// Prints the outcome of one call; its files are below `kept`.
pub(crate) fn call(out: &Out, call: &Call, kept: Option<&Path>) {
    out.line(format_args!("\n{}: {}, result {}", call.name, call.status(), call.result_id));
    for entry in &call.transcript {
        let ms = |name: &str| entry[name].as_f64().unwrap_or_default() / 1000.0;
        let who = if entry["speaker"] == "USER" { call.name } else { "agent" };
        let cut = if entry["interrupted"] == true { " --" } else { "" };
        let words = match entry["utterance"].as_str().unwrap_or_default() {
            "" if entry["text_missing"].is_string() => NOT_UNDERSTOOD,
            words => words,
        };
        let (from, to) = (ms("start_offset_ms"), ms("end_offset_ms"));
        out.line(format_args!("  {from:6.2} to {to:6.2} s  {who:>7}: {words}{cut}"));
    }
    out.line(format_args!("  {}", latencies(&call.latencies_ms())));
    out.line(format_args!("  {}", interruptions(&call.timeline, call.name)));
    let quality = &call.result["engine_quality"];
    out.line(format_args!(
        "  pacing: 99 % of frames within {} ms, {} late, {} packets lost, trusted: {}",
        quality["pacing_p99_ms"], quality["late_frames"], quality["lost_packets"], quality["trusted"]
    ));
    match kept {
        Some(folder) => {
            let files = files(folder, call);
            out.line(format_args!("  {0}/recording.wav and {0}/timeline.jsonl", files.display()));
        }
        None => out.line("  recording and timeline are not kept (--discard)"),
    }
}

/// Returns the folder of a call's files.
fn files(folder: &Path, call: &Call) -> PathBuf {
    folder.join("data").join("results").join(&call.result_id)
}

/// Prints one line a check, and one for the likely reason of a failure.
pub(crate) fn checks(out: &Out, checks: &[Check]) {
    out.line("");
    for check in checks {
        let verdict = if check.ok {
            "ok"
        } else if check.unknown {
            "UNKNOWN"
        } else {
            "FAILED"
        };
        out.line(format_args!("{verdict:<7} {:>7}: {}: {}", check.call, check.claim, check.figure));
        if let Some(hint) = &check.hint {
            out.line(format_args!("                {hint}"));
        }
    }
    let failed = checks.iter().filter(|check| check.is_failure()).count();
    let unknown = checks.iter().filter(|check| check.unknown).count();
    let unknown = if unknown > 0 { format!(", {unknown} unknown") } else { String::new() };
    out.line(format_args!("{}, {failed} failed{unknown}", count(checks.len(), "check")));
}

/// Returns all of it as JSON, for a program.
pub(crate) fn as_json(calls: &[Call], checks: &[Check], kept: Option<&Path>, good: bool) -> Value {
    let one = |call: &Call| {
        let file = |name: &str| kept.map(|folder| files(folder, call).join(name).display().to_string());
        json!({
            "name": call.name,
            "result_id": call.result_id,
            "status": call.status(),
            "duration_ms": call.result["duration_ms"],
            "latency_ms": call.latencies_ms(),
            "barge_in": call.events_named("barge_in").cloned().collect::<Vec<_>>(),
            "engine_quality": call.result["engine_quality"],
            "transcript": call.transcript,
            "recording": file("recording.wav"),
            "timeline": file("timeline.jsonl"),
        })
    };
    json!({
        "ok": good,
        "kept": kept.map(|folder| folder.display().to_string()),
        "calls": calls.iter().map(one).collect::<Vec<_>>(),
        "checks": checks,
    })
}
