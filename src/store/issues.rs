//! Queries about issues and the failures grouped in them.

use ringer_base::error::{Error, Result};
use ringer_model::issue::{IssueDoc, IssueQuery, Occurrence, SourceKind};
use ringer_model::time::Timestamp;

use super::Session;
use super::db::{self, Cell};
use super::record::{Row, fields_of, read_row};

/// A failure as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct FailureRow<'a> {
    /// Agent whose failure it is.
    pub agent_id: i64,
    /// Key of the group: a signature, or the id of a cluster.
    pub group_key: &'a str,
    /// True: a judgement, compared with others; false: an error that is known by itself.
    pub judged: bool,
    /// Kind of the conversation.
    pub source: SourceKind,
    /// Identifier of the conversation.
    pub source_id: &'a str,
    /// Digest that is equal for the same failure of the same conversation, which counts once.
    pub fingerprint: &'a str,
    /// Text of the failure.
    pub message: &'a str,
    /// Time at which it was found.
    pub at: Timestamp,
}

impl Session {
    /// Returns the issues that match the query, those with the newest failure first.
    pub async fn issues(&mut self, query: &IssueQuery) -> Result<Vec<Row<IssueDoc>>> {
        let mut cells = vec![Cell::from(self.organization())];
        let mut filter = String::new();
        let wanted = [
            ("status", query.status.map(|status| status.as_str().to_owned())),
            ("priority", query.priority.map(|priority| priority.as_str().to_owned())),
            ("kind", query.kind.map(|kind| kind.as_str().to_owned())),
            ("assignee_id", query.assignee_id.map(|id| id.to_string())),
        ];
        for (column, value) in wanted {
            if let Some(value) = value {
                cells.push(value.into());
                filter.push_str(&format!(" AND i.{column} = ${}", cells.len()));
            }
        }
        cells.extend([query.limit.into(), query.offset.into()]);
        let (fields, limit, offset) = (fields_of("i"), cells.len() - 1, cells.len());
        let sql = format!(
            "SELECT {fields} FROM issues i WHERE i.org_id = $1{filter} \
             ORDER BY i.last_seen_ms DESC, i.id DESC LIMIT ${limit} OFFSET ${offset}"
        );
        self.rows(&sql, &cells).await?.iter().map(read_row).collect()
    }

    /// Stores a failure; false when it was known.
    pub async fn add_failure(&mut self, failure: &FailureRow<'_>) -> Result<bool> {
        let sql = "INSERT INTO failures \
                   (org_id, agent_id, group_key, judged, source, source_id, fingerprint, message, at_ms) \
                   VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) \
                   ON CONFLICT (org_id, source, source_id, fingerprint) DO NOTHING";
        let cells = [
            self.organization().into(),
            failure.agent_id.into(),
            failure.group_key.into(),
            failure.judged.into(),
            failure.source.as_str().into(),
            failure.source_id.into(),
            failure.fingerprint.into(),
            failure.message.into(),
            failure.at.0.into(),
        ];
        Ok(self.execute(sql, &cells).await? > 0)
    }

    /// Returns the newest judgements of an agent: (cluster, text).
    pub async fn judgements(&mut self, agent_id: i64, limit: i64) -> Result<Vec<(String, String)>> {
        let sql = "SELECT group_key, message FROM failures WHERE org_id = $1 AND agent_id = $2 AND judged = 1 \
                   ORDER BY id DESC LIMIT $3";
        let cells = [self.organization().into(), agent_id.into(), limit.into()];
        self.pairs(sql, &cells).await
    }

    /// Returns the newest failures of a group, newest first.
    pub async fn occurrences(&mut self, group_key: &str, limit: i64) -> Result<Vec<Occurrence>> {
        let sql = "SELECT source, source_id, at_ms, message FROM failures WHERE org_id = $1 AND group_key = $2 \
                   ORDER BY id DESC LIMIT $3";
        let cells = [self.organization().into(), group_key.into(), limit.into()];
        self.rows(sql, &cells).await?.iter().map(read_occurrence).collect()
    }
}

fn read_occurrence(row: &db::Row) -> Result<Occurrence> {
    let kind: String = row.try_get(0).map_err(Error::internal)?;
    Ok(Occurrence {
        kind: SourceKind::parse(&kind).ok_or_else(|| Error::internal("a failure has no known source"))?,
        id: row.try_get(1).map_err(Error::internal)?,
        at: Timestamp(row.try_get(2).map_err(Error::internal)?),
        message: row.try_get(3).map_err(Error::internal)?,
    })
}
