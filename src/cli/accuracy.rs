//! `ringer accuracy`: the stated errors of what is reported.

use std::process::ExitCode;

use super::out::Out;
use crate::judge::accuracy::{AccuracyRow, AccuracyTable, table};

/// Flags of `ringer accuracy`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An error is what is told less what a clock or a tool from outside has measured. The bias is the median of the errors, the spread the
95th percentile of the amounts of what is left without it. `metadata.accuracy` of a result names the table that was in force.")]
pub struct Args {
    /// Print one JSON object, as of `GET /v1/accuracy`
    #[arg(long)]
    pub json: bool,
}

/// Prints the table in force.
pub async fn run(args: Args) -> ExitCode {
    let out = Out::standard();
    match args.json {
        true => out.line(serde_json::to_string(table()).unwrap_or_default()),
        false => lines_of(table()).iter().for_each(|line| out.line(line)),
    }
    out.verdict(true)
}

fn lines_of(table: &AccuracyTable) -> Vec<String> {
    let mut lines = vec![
        format!("Table {}, version {}, {}", table.name, table.version, table.machine),
        format!("{:<44} {:>9} {:>9} {:>9} {:>5}  unit", "quantity", "bias", "spread", "worst", "n"),
    ];
    lines.extend(table.rows.iter().map(line_of));
    let mut clocks: Vec<(&str, &str)> = Vec::new();
    for row in &table.rows {
        let pair = (row.clock.as_str(), row.conditions.as_str());
        if !clocks.contains(&pair) {
            clocks.push(pair);
        }
    }
    for (clock, conditions) in clocks {
        let of = table.rows.iter().filter(|row| (row.clock.as_str(), row.conditions.as_str()) == (clock, conditions));
        let names: Vec<&str> = of.map(|row| row.quantity.as_str()).collect();
        lines.push(format!("{}: against {clock}; {conditions}", names.join(", ")));
    }
    lines.extend(
        table.not_measured.iter().map(|one| format!("not measured: {}: {}", one.metrics.join(", "), one.reason)),
    );
    lines
}

fn line_of(row: &AccuracyRow) -> String {
    let AccuracyRow { quantity, bias, spread, worst, n, unit, .. } = row;
    format!("{quantity:<44} {bias:>+9.2} {spread:>9.2} {worst:>9.2} {n:>5}  {unit}")
}
