//! The stated errors of reported quantities, measured against clocks and tools from outside. The table is data,
//! `accuracy.json`, that `make accuracy` measures and writes.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Table of the errors of what is reported.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccuracyTable {
    /// Name of the table, as in `metadata.accuracy` of results.
    pub name: String,
    /// Version of the program that was measured.
    pub version: String,
    /// Processor and number of cores of the machine.
    pub machine: String,
    /// Quantities whose error was measured.
    pub rows: Vec<AccuracyRow>,
    /// Metrics whose error nothing from outside has measured.
    pub not_measured: Vec<NotMeasured>,
}

/// Error of a quantity: what is told less what is measured outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AccuracyRow {
    /// Name of the quantity.
    pub quantity: String,
    /// Metrics that are made of it; empty: none of its own.
    pub metrics: Vec<String>,
    /// Unit of the figures.
    pub unit: String,
    /// Median of the errors.
    pub bias: f64,
    /// 95th percentile of the amounts of the errors less the bias.
    pub spread: f64,
    /// Greatest amount of an error.
    pub worst: f64,
    /// Number of errors behind the figures.
    pub n: u32,
    /// Clock or tool that measured outside.
    pub clock: String,
    /// Calls that were measured.
    pub conditions: String,
}

/// Metrics without a stated error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NotMeasured {
    /// Names of the metrics.
    pub metrics: Vec<String>,
    /// Reason, and where something is known of them.
    pub reason: String,
}

/// Returns the table in force.
pub fn table() -> &'static AccuracyTable {
    static TABLE: LazyLock<AccuracyTable> =
        LazyLock::new(|| serde_json::from_str(include_str!("accuracy.json")).expect("a test reads the table"));
    &TABLE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::BUILT_IN;

    #[test]
    fn each_metric_stands_in_the_table_once() {
        let table = table();
        let measured = table.rows.iter().flat_map(|row| &row.metrics);
        let named: Vec<&String> = measured.chain(table.not_measured.iter().flat_map(|one| &one.metrics)).collect();
        for metric in BUILT_IN {
            let times = named.iter().filter(|name| **name == metric.name).count();
            assert_eq!(times, 1, "{}", metric.name);
        }
        for name in named {
            assert!(BUILT_IN.iter().any(|metric| metric.name == name), "{name} is no metric");
        }
    }

    #[test]
    fn each_row_has_figures_that_fit_each_other() {
        for row in &table().rows {
            assert!(row.n > 0 && row.spread >= 0.0 && row.worst + 1e-3 >= row.bias.abs(), "{row:?}");
        }
    }
}
