//! Traces of results, and the spans that agents have sent for them.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;
use ringer_base::clock;
use ringer_base::error::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use super::db::Cell;
use super::{Session, Store, from_text, to_text};

/// Most results whose traces wait to be sent; of more, none is sent.
const MOST_WAITING: usize = 10_000;

/// Traces that one query looks for.
const TRACES_AT_ONCE: usize = 200;

/// A result that an evaluation has changed, or that is final, and whose trace is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// Organization of the result.
    pub organization: String,
    /// Id of the result.
    pub result_id: i64,
    /// True if it was final before, and was judged again.
    pub is_judged_again: bool,
}

/// Results whose traces wait to be sent, the oldest first.
#[derive(Debug, Default)]
pub(super) struct TraceQueue {
    waiting: Mutex<VecDeque<Traced>>,
    noted: Notify,
}

impl TraceQueue {
    /// Adds results; those that find no room are dropped, and counted in the answer.
    fn add(&self, results: Vec<Traced>) -> usize {
        let mut waiting = self.waiting.lock();
        let room = MOST_WAITING.saturating_sub(waiting.len());
        let dropped = results.len().saturating_sub(room);
        waiting.extend(results.into_iter().take(room));
        drop(waiting);
        self.noted.notify_one();
        dropped
    }
}

impl Store {
    /// Waits for a result whose trace is to be sent, and takes it out of the queue.
    pub async fn next_traced(&self) -> Traced {
        loop {
            if let Some(traced) = self.take_traced() {
                return traced;
            }
            self.parts.traced.noted.notified().await;
        }
    }

    /// Takes a result whose trace is to be sent out of the queue; `None`: none waits.
    pub fn take_traced(&self) -> Option<Traced> {
        self.parts.traced.waiting.lock().pop_front()
    }

    pub(super) fn add_traced(&self, results: Vec<Traced>) {
        if results.is_empty() {
            return;
        }
        let dropped = self.parts.traced.add(results);
        if dropped > 0 {
            tracing::warn!(dropped, "too many traces wait: those of these results are not sent");
        }
    }
}

impl Session {
    /// Asks for the trace of a result to be sent, once the changes are committed.
    pub fn note_traced(&mut self, result_id: i64, is_judged_again: bool) {
        let organization = self.organization().to_owned();
        self.traced.push(Traced { organization, result_id, is_judged_again });
    }

    /// Returns the trace of an attempt of a result as hexadecimal digits; it is made where there is none.
    pub async fn make_trace(&mut self, result_id: i64, attempt: i64) -> Result<String> {
        if let Some(found) = self.find_trace(result_id, attempt).await? {
            return Ok(found);
        }
        let mut bytes = [0; 16];
        clock::random_bytes(&mut bytes);
        let trace = hex::encode(bytes);
        let sql = "INSERT INTO traces (trace_id, org_id, result_id, attempt) VALUES ($1, $2, $3, $4)";
        let organization = self.organization().to_owned();
        let cells: [Cell; 4] = [trace.as_str().into(), organization.into(), result_id.into(), attempt.into()];
        self.execute(sql, &cells).await?;
        Ok(trace)
    }

    /// Returns the trace of an attempt of a result as hexadecimal digits; `None`: it has none.
    pub async fn find_trace(&mut self, result_id: i64, attempt: i64) -> Result<Option<String>> {
        let sql = "SELECT trace_id FROM traces WHERE result_id = $1 AND attempt = $2 AND org_id = $3";
        let cells: [Cell; 3] = [result_id.into(), attempt.into(), self.organization().into()];
        let row = self.row(sql, &cells).await?;
        row.map(|row| row.try_get::<String, _>(0).map_err(Error::internal)).transpose()
    }

    /// Returns results of this organization and their attempts by trace, of these traces.
    pub async fn results_of_traces(&mut self, traces: &[&str]) -> Result<HashMap<String, (i64, i64)>> {
        let mut found = HashMap::new();
        for some in traces.chunks(TRACES_AT_ONCE) {
            let marks: Vec<String> = (2..some.len() + 2).map(|n| format!("${n}")).collect();
            let sql = format!(
                "SELECT trace_id, result_id, attempt FROM traces WHERE org_id = $1 AND trace_id IN ({})",
                marks.join(", ")
            );
            let mut cells: Vec<Cell> = vec![self.organization().into()];
            cells.extend(some.iter().map(|trace| Cell::from(*trace)));
            for row in self.rows(&sql, &cells).await? {
                let read = || -> Result<_, sqlx::Error> { Ok((row.try_get(0)?, (row.try_get(1)?, row.try_get(2)?))) };
                let (trace, result): (String, (i64, i64)) = read().map_err(Error::internal)?;
                found.insert(trace, result);
            }
        }
        Ok(found)
    }

    /// Returns the number of spans of the agent of a result.
    pub async fn count_spans(&mut self, result_id: i64) -> Result<i64> {
        self.number("SELECT COUNT(*) FROM agent_spans WHERE result_id = $1", &[result_id.into()]).await
    }

    /// Stores a span of the agent of a result. False: one with this identifier is stored already.
    pub async fn add_span<T: Serialize>(&mut self, result_id: i64, span_id: Option<&str>, span: &T) -> Result<bool> {
        let sql = "INSERT INTO agent_spans (org_id, result_id, span_id, doc) VALUES ($1, $2, $3, $4) \
                   ON CONFLICT (result_id, span_id) DO NOTHING";
        let organization = self.organization().to_owned();
        let cells: [Cell; 4] =
            [organization.into(), result_id.into(), span_id.map(str::to_owned).into(), to_text(span)?.into()];
        Ok(self.execute(sql, &cells).await? > 0)
    }

    /// Returns the spans of the agent of a result, in the order in which they came.
    pub async fn agent_spans<T: DeserializeOwned>(&mut self, result_id: i64) -> Result<Vec<T>> {
        let sql = "SELECT doc FROM agent_spans WHERE result_id = $1 AND org_id = $2 ORDER BY id";
        let rows = self.rows(sql, &[result_id.into(), self.organization().into()]).await?;
        let read = |row: &super::db::Row| from_text(&row.try_get::<String, _>(0).map_err(Error::internal)?);
        rows.iter().map(read).collect()
    }

    /// Removes the spans of the agent of a result, and the times of the work for its conversation.
    pub async fn forget_spans(&mut self, result_id: i64) -> Result<()> {
        for table in ["agent_spans", "effects"] {
            let sql = format!("DELETE FROM {table} WHERE result_id = $1 AND org_id = $2");
            self.execute(&sql, &[result_id.into(), self.organization().into()]).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_takes_no_more() {
        let queue = TraceQueue::default();
        let traced = |result_id| Traced { organization: "o".to_owned(), result_id, is_judged_again: false };
        assert_eq!(queue.add((0..MOST_WAITING as i64).map(traced).collect()), 0);
        assert_eq!(queue.add(vec![traced(-1), traced(-2)]), 2);
        assert_eq!(queue.waiting.lock().pop_front(), Some(traced(0)));
        assert_eq!(queue.add(vec![traced(-1), traced(-2)]), 1);
        assert_eq!(queue.waiting.lock().back(), Some(&traced(-1)));
    }
}
