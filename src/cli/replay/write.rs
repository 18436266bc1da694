//! Report of a replay: for a terminal, as JSON, and as the page of the calls.

use std::path::Path;

use serde_json::{Value, json};

use super::Args;
use super::kept::Original;
use crate::cli::out::Out;
use crate::suite::html::Extra;
use crate::suite::mask::mask;
use crate::suite::replayed::{PairedCall, Replayed};
use crate::suite::{Played, html, lines};

/// Outcome of a replay, arm by arm.
pub(super) struct Report {
    /// The unchanged calls against those of the results: how much the agent varies by itself.
    pub base: Option<Replayed>,
    /// The changes against the original that was played beside them.
    pub arms: Vec<Replayed>,
    /// Pairs of calls in virtual time whose timeline and recording are the same bytes, and their number; `None`: in
    /// real time.
    pub identical: Option<(u64, u64)>,
    /// Remarks for a person.
    pub notes: Vec<String>,
    /// True if nothing was changed.
    pub is_unchanged: bool,
}

impl Report {
    /// Writes the report, and prints it.
    ///
    /// # Errors
    /// A file cannot be written.
    pub(super) fn write(&self, args: &Args, original: &Original, calls: &[Played], out: &Out) -> std::io::Result<()> {
        let hide = |text: &str| mask(text, &original.plan.masked);
        let told = self.lines();
        let all: String = calls.iter().map(|call| format!("{}\n", lines::line(call))).collect();
        let json = self.json(&args.out);
        let tables: Vec<Extra> = self.base.iter().chain(&self.arms).map(table).collect();
        let page = html::page("Ringer replay", &[], calls, &told, &tables);
        let write = |name: &str, text: &str| std::fs::write(args.out.join(name), hide(text));
        write("results.jsonl", &all)?;
        write("replay.json", &format!("{json:#}\n"))?;
        write("report.html", &page)?;
        match args.json {
            true => out.line(hide(&json.to_string())),
            false => {
                told.iter().for_each(|line| out.line(hide(line)));
                out.line(format_args!("results lie in {}", args.out.display()));
            }
        }
        Ok(())
    }

    fn lines(&self) -> Vec<String> {
        let mut told: Vec<String> = self.arms.iter().flat_map(Replayed::lines).collect();
        if let Some(base) = &self.base {
            told.extend(base.lines());
        }
        if let Some((same, all @ 1..)) = self.identical {
            told.push(format!("{same} of {all} calls are byte for byte those of the results: timeline and recording"));
        }
        told.extend(self.notes.iter().cloned());
        told
    }

    fn json(&self, out: &Path) -> Value {
        json!({
            "schema_version": 1,
            "arms": self.arms.iter().map(Replayed::json).collect::<Vec<_>>(),
            "base": self.base.as_ref().map(Replayed::json),
            "identical": self.identical.map(|(same, all)| json!({ "same": same, "compared": all })),
            "notes": self.notes,
            "out": out,
        })
    }
}

/// Returns the pairs of an arm as a table of the page.
fn table(arm: &Replayed) -> Extra {
    let row = |call: &PairedCall| {
        let [before, after] = call.verdicts;
        let (at, says) = match &call.parting {
            Some(parting) => (
                format!("{:.2} s", parting.at_ms / 1000.0),
                format!("{} {}: {}", parting.side, parting.event, parting.says),
            ),
            None if call.is_known => ("-".to_owned(), "they do not part".to_owned()),
            None => ("-".to_owned(), "not known: a timeline is missing".to_owned()),
        };
        vec![call.title.clone(), before.to_owned(), after.to_owned(), at, says]
    };
    Extra {
        title: arm.name.clone(),
        head: ["call", "original", "second", "they part at", "by"].map(str::to_owned).to_vec(),
        rows: arm.calls.iter().map(row).collect(),
    }
}
