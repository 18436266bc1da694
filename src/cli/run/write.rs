//! Results of a run as files: table, JUnit, JSON lines, the page, and the summary of a build server.

use std::io::Write;
use std::path::Path;

use serde_json::{Value, json};

use super::plan::Plan;
use super::{Args, Stop, summary};
use crate::cli::complain;
use crate::cli::out::Out;
use crate::config::variable;
use crate::suite::html::Extra;
use crate::suite::mask::mask;
use crate::suite::table::{Row, markdown_cells, plain_cells};
use crate::suite::tax::{self, Tax};
use crate::suite::verdict::Verdict;
use crate::suite::{Played, baseline as compared, html, junit, lines, table};

/// File by which a folder is known as that of a run.
const MARK: &str = ".ringer-run";
/// Longest file of an earlier run, in bytes.
const BASELINE_BYTES_MAX: u64 = 256 << 20;

/// Makes the folder of the results, empty; one that no run has made is left alone.
///
/// # Errors
/// The folder has something else in it, or cannot be written.
pub(crate) fn claim(out: &Path) -> Result<(), Stop> {
    let describe = |error: std::io::Error| Stop::bad(format!("--out {}: {error}", out.display()));
    match std::fs::symlink_metadata(out) {
        Ok(about) if about.is_dir() => {
            let is_empty = std::fs::read_dir(out).map_err(describe)?.next().is_none();
            if !is_empty && !out.join(MARK).is_file() {
                return Err(Stop::bad(format!(
                    "--out {}: no run has made this folder; it is not replaced",
                    out.display()
                )));
            }
            for entry in std::fs::read_dir(out).map_err(describe)? {
                let path = entry.map_err(describe)?.path();
                let is_folder = path.symlink_metadata().map_err(describe)?.is_dir();
                let removed = if is_folder { std::fs::remove_dir_all(&path) } else { std::fs::remove_file(&path) };
                removed.map_err(describe)?;
            }
        }
        Ok(_) => return Err(Stop::bad(format!("--out {}: it is no folder", out.display()))),
        Err(_) => std::fs::create_dir_all(out).map_err(describe)?,
    }
    std::fs::write(out.join(MARK), "made by ringer run; it is replaced by the next run\n").map_err(describe)
}

/// Returns the calls of an earlier run.
///
/// # Errors
/// There are none.
pub(crate) fn baseline(folder: &Path) -> Result<Vec<(Played, Value)>, Stop> {
    let path = folder.join("results.jsonl");
    let describe = |error: std::io::Error| Stop::bad(format!("--baseline {}: {error}", path.display()));
    if std::fs::metadata(&path).map_err(describe)?.len() > BASELINE_BYTES_MAX {
        return Err(Stop::bad(format!("--baseline {}: it is too long", path.display())));
    }
    let calls = lines::read_all(&std::fs::read_to_string(&path).map_err(describe)?);
    if calls.is_empty() {
        return Err(Stop::bad(format!("--baseline {}: there are no results in it", path.display())));
    }
    Ok(calls)
}

/// Facts that the reports of a run tell.
pub(crate) struct Report<'t> {
    /// Flags of the run.
    pub args: &'t Args,
    /// Plan of the calls.
    pub plan: &'t Plan,
    /// Calls that were made, with their verdicts.
    pub calls: &'t [Played],
    /// The run that it is compared with.
    pub baseline: Option<&'t [(Played, Value)]>,
    /// True when the run was interrupted.
    pub interrupted: bool,
    /// True if it took too long.
    pub late: bool,
}

/// Writes every report, prints the table, and gives the verdict on the whole run.
///
/// # Errors
/// A report cannot be written.
pub(crate) fn results(report: &Report<'_>, out: &Out) -> std::io::Result<Verdict> {
    let Report { args, plan, calls, .. } = report;
    let hide = |text: &str| mask(text, &plan.masked);
    let rows = rows(plan, calls);
    let verdict = overall(&rows);
    let mut notes = Vec::new();
    if report.interrupted {
        notes.push("The run was interrupted.".to_owned());
    }
    if report.late {
        notes.push("The run took longer than --timeout allows.".to_owned());
    }
    let all: Vec<Value> = calls.iter().map(lines::line).collect();
    if let Some(before) = report.baseline {
        notes.extend(compared::warnings(&all, before).into_iter().map(|warning| format!("Warning: {warning}")));
        let differences = compared::compare(calls, before, args.seed);
        notes.extend(compared::plain(&differences).lines().map(str::to_owned));
    }
    let taxes = tax::taxes(&plan.lines, calls, args.seed);
    if !taxes.is_empty() {
        notes.extend(plan.notes.iter().cloned());
        notes.extend(tax::remarks(&taxes));
    }
    notes.extend(warnings(calls));
    let tax_text = if taxes.is_empty() { String::new() } else { plain_cells(&tax::HEAD, taxes.iter().map(Tax::cells)) };
    let tables = if taxes.is_empty() { Vec::new() } else { vec![tax_table(&taxes)] };
    let text: String = all.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(args.out.join("results.jsonl"), hide(&text))?;
    std::fs::write(args.out.join("junit.xml"), hide(&junit::document(calls, &plan.skipped, &tax_text)))?;
    std::fs::write(args.out.join("report.html"), hide(&html::page("Ringer run", &rows, calls, &notes, &tables)))?;
    std::fs::write(args.out.join("run.json"), hide(&format!("{:#}\n", manifest(args, plan))))?;
    if let Some(path) = variable("GITHUB_STEP_SUMMARY") {
        let lines = match taxes.is_empty() {
            true => String::new(),
            false => format!("{}\n\n", markdown_cells(&tax::HEAD, taxes.iter().map(Tax::cells))),
        };
        let text = format!("{}\n\n{lines}{}\n", table::markdown(&rows), notes.join("\n\n"));
        let written = std::fs::OpenOptions::new().append(true).create(true).open(&path);
        if let Err(error) = written.and_then(|mut file| file.write_all(hide(&text).as_bytes())) {
            complain(format!("GITHUB_STEP_SUMMARY: {path}: {error}"));
        }
    }
    if args.json {
        out.line(hide(&summary(&rows, verdict, &taxes, &args.out).to_string()));
        return Ok(verdict);
    }
    if !rows.is_empty() {
        out.line(hide(&table::plain(&rows)));
    }
    if !taxes.is_empty() {
        out.line(format_args!("\n{}\n", hide(&tax_text)));
    }
    notes.iter().for_each(|note| out.line(hide(note)));
    out.line(format_args!("results lie in {}", args.out.display()));
    Ok(verdict)
}

/// Returns the table of lines for the page.
fn tax_table(taxes: &[Tax]) -> Extra {
    Extra {
        title: "What each line costs the agent".to_owned(),
        head: tax::HEAD.map(str::to_owned).to_vec(),
        rows: taxes.iter().map(Tax::cells).collect(),
    }
}

/// Returns what a later command has to know of a run: where its calls were made, and of which scenarios.
fn manifest(args: &Args, plan: &Plan) -> Value {
    let mut scenarios: Vec<Value> = Vec::new();
    for job in &plan.jobs {
        let one = json!({ "file": job.file, "scenario": job.scenario.name, "sha256": job.fingerprint });
        if !scenarios.contains(&one) {
            scenarios.push(one);
        }
    }
    json!({
        "schema_version": 1, "version": env!("CARGO_PKG_VERSION"), "virtual_time": args.sim, "server": args.server,
        "seed": args.seed, "lines": plan.lines.iter().map(|line| line.name).collect::<Vec<_>>(), "scenarios": scenarios,
    })
}

/// Number of warnings that are shown; the others lie in the results.
const WARNINGS_MAX: usize = 12;

/// Returns a line for each warning of the calls, with the first call that has it and the number of them.
fn warnings(calls: &[Played]) -> Vec<String> {
    let mut found: Vec<(String, String, usize)> = Vec::new();
    for call in calls {
        for warning in call.warnings() {
            match found.iter_mut().find(|(known, _, _)| *known == warning) {
                Some((_, _, count)) => *count += 1,
                None => found.push((warning, format!("{} [seed {}]", call.title(), call.seed), 1)),
            }
        }
    }
    let left = found.len().saturating_sub(WARNINGS_MAX);
    let line = |(warning, first, count): &(String, String, usize)| match count {
        1 => format!("Warning: {first}: {warning}"),
        _ => format!("Warning: {count} calls, first {first}: {warning}"),
    };
    let mut lines: Vec<String> = found.iter().take(WARNINGS_MAX).map(line).collect();
    lines.extend((left > 0).then(|| format!("Warning: {left} more warnings lie in results.jsonl")));
    lines
}

/// Returns a row for each scenario, in the order of the files; missing calls count as not known.
fn rows(plan: &Plan, calls: &[Played]) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut done: Vec<(&str, &str)> = Vec::new();
    for job in &plan.jobs {
        let row = (job.scenario.name.as_str(), job.arm.as_str());
        if done.contains(&row) {
            continue;
        }
        done.push(row);
        let is_of_row = |scenario: &str, arm: &str| (scenario, arm) == row;
        let of_scenario: Vec<&Played> = calls.iter().filter(|call| is_of_row(&call.scenario, &call.arm)).collect();
        let wanted = plan.jobs.iter().filter(|other| is_of_row(&other.scenario.name, &other.arm));
        let missing = wanted.filter(|other| of_scenario.iter().all(|call| call.seed != other.seed));
        let missing: Vec<Played> = missing
            .map(|job| {
                job.not_made(crate::suite::verdict::Judgement::unknown("not_made", "the run was over before the call"))
            })
            .collect();
        let all: Vec<&Played> = of_scenario.into_iter().chain(&missing).collect();
        rows.push(Row::of(&all, job.scenario.gate));
    }
    rows
}

/// Returns failed if one gate failed, else unreachable if the agent behind one that is not passed was not reached, else
/// unknown if one is not known, else passed.
pub(crate) fn overall(rows: &[Row]) -> Verdict {
    let gates: Vec<&Row> = rows.iter().filter(|row| row.gates).collect();
    let has = |verdict| gates.iter().any(|row| row.gate == verdict);
    match (has(Verdict::Failed), has(Verdict::Unknown)) {
        (true, _) => Verdict::Failed,
        _ if gates.iter().any(|row| row.gate != Verdict::Passed && row.unreachable > 0) => Verdict::Unreachable,
        (false, true) => Verdict::Unknown,
        (false, false) => Verdict::Passed,
    }
}
