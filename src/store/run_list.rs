//! Queries over the runs of all simulations, and over what changed in one of them.

use std::collections::{BTreeSet, HashMap};

use ringer_base::error::{Error, Result};
use ringer_model::result::ResultDoc;
use ringer_model::run::RunDoc;
use ringer_model::status::RunStatus;

use super::Session;
use super::db::Cell;
use super::record::{Row, fields_of, read_row};
use super::runs::{COUNTED, Tally, tallies_in};

/// Selection of runs; every part that is given must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunFilter {
    /// Id of the agent under test.
    pub agent_id: Option<i64>,
    /// Simulation that was run.
    pub simulation_id: Option<i64>,
    /// State of the run.
    pub status: Option<RunStatus>,
    /// Tag that at least one of its results has.
    pub tag: Option<String>,
    /// Earliest time of queueing, milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// Id below which runs are listed.
    pub before: Option<i64>,
}

impl Session {
    /// Returns at most `most` runs of the selection, newest first.
    pub async fn run_list(&mut self, filter: &RunFilter, most: i64) -> Result<Vec<Row<RunDoc>>> {
        let mut cells = vec![Cell::from(self.organization())];
        let mut rules = String::from("r.org_id = $1");
        let mut rule = |text: &str, cell: Option<Cell>| {
            if let Some(cell) = cell {
                cells.push(cell);
                rules.push_str(" AND ");
                rules.push_str(&text.replace("$n", &format!("${}", cells.len())));
            }
        };
        rule("r.agent_id = $n", filter.agent_id.map(Cell::from));
        rule("r.simulation_id = $n", filter.simulation_id.map(Cell::from));
        rule("r.status = $n", filter.status.map(|status| Cell::from(status.as_str())));
        rule("r.created_ms >= $n", filter.since_ms.map(Cell::from));
        rule("r.id < $n", filter.before.map(Cell::from));
        let tagged = "EXISTS (SELECT 1 FROM results t WHERE t.run_id = r.id AND t.tags LIKE $n ESCAPE '!')";
        rule(tagged, filter.tag.as_deref().map(|tag| Cell::from(pattern(tag).as_str())));
        cells.push(most.into());
        let (fields, last) = (fields_of("r"), cells.len());
        let sql = format!("SELECT {fields} FROM runs r WHERE {rules} ORDER BY r.id DESC LIMIT ${last}");
        self.rows(&sql, &cells).await?.iter().map(read_row).collect()
    }

    /// Returns the counters of each of these runs; a run without results is left out.
    pub async fn tallies_of(&mut self, runs: &[i64]) -> Result<HashMap<i64, Tally>> {
        if runs.is_empty() {
            return Ok(HashMap::new());
        }
        let (marks, cells) = self.marks_of(runs);
        let sql = format!(
            "SELECT {COUNTED}, COUNT(*) FROM results WHERE org_id = $1 AND run_id IN ({marks}) GROUP BY {COUNTED}"
        );
        tallies_in(&self.rows(&sql, &cells).await?)
    }

    /// Returns the agent's latencies in seconds, of all turns of all results of each run.
    pub async fn latencies_of(&mut self, runs: &[i64]) -> Result<HashMap<i64, Vec<f64>>> {
        let mut latencies = HashMap::<i64, Vec<f64>>::new();
        if runs.is_empty() {
            return Ok(latencies);
        }
        let (marks, cells) = self.marks_of(runs);
        let sql = format!(
            "SELECT run_id, latency FROM results WHERE org_id = $1 AND run_id IN ({marks}) AND latency IS NOT NULL"
        );
        for row in self.rows(&sql, &cells).await? {
            let text: String = row.try_get(1).map_err(Error::internal)?;
            let values: Vec<f64> = serde_json::from_str(&text).unwrap_or_default();
            latencies.entry(row.try_get(0).map_err(Error::internal)?).or_default().extend(values);
        }
        Ok(latencies)
    }

    /// Returns the tags of the results of each run, each once; a run without tags is left out.
    pub async fn tags_of(&mut self, runs: &[i64]) -> Result<HashMap<i64, BTreeSet<String>>> {
        let mut tags = HashMap::<i64, BTreeSet<String>>::new();
        if runs.is_empty() {
            return Ok(tags);
        }
        let (marks, cells) = self.marks_of(runs);
        let sql = format!(
            "SELECT DISTINCT run_id, tags FROM results WHERE org_id = $1 AND run_id IN ({marks}) AND tags IS NOT NULL"
        );
        for row in self.rows(&sql, &cells).await? {
            let text: String = row.try_get(1).map_err(Error::internal)?;
            let values: Vec<String> = serde_json::from_str(&text).unwrap_or_default();
            tags.entry(row.try_get(0).map_err(Error::internal)?).or_default().extend(values);
        }
        Ok(tags)
    }

    /// Returns the results of a run that were changed at `since_ms` or later, in the order of their ids.
    pub async fn results_changed(&mut self, run_id: i64, since_ms: i64) -> Result<Vec<Row<ResultDoc>>> {
        let fields = fields_of("r");
        let sql = format!(
            "SELECT {fields} FROM results r WHERE r.org_id = $1 AND r.run_id = $2 AND r.updated_ms >= $3 ORDER BY r.id"
        );
        let cells = [self.organization().into(), run_id.into(), since_ms.into()];
        self.rows(&sql, &cells).await?.iter().map(read_row).collect()
    }

    /// Returns the marks of these ids in a statement, and its cells: the organization first.
    fn marks_of(&self, ids: &[i64]) -> (String, Vec<Cell>) {
        let marks: Vec<String> = (0..ids.len()).map(|at| format!("${}", at + 2)).collect();
        let own = Cell::from(self.organization());
        (marks.join(", "), std::iter::once(own).chain(ids.iter().map(|id| Cell::from(*id))).collect())
    }
}

/// Returns the pattern of a list, as JSON, that holds this tag.
fn pattern(tag: &str) -> String {
    let quoted = serde_json::Value::from(tag).to_string();
    let escaped: String =
        quoted.chars().flat_map(|c| "!%_".contains(c).then_some('!').into_iter().chain([c])).collect();
    format!("%{escaped}%")
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn a_tag_is_found_as_it_stands() {
        for (tag, expect) in [("red", "%\"red\"%"), ("50%_!", "%\"50!%!_!!\"%"), ("a\"b", "%\"a\\\"b\"%")] {
            assert_eq!(pattern(tag), expect);
        }
    }
}
