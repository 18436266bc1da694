//! Lines with which Digital Humans begin, made once and kept. One belongs to what it was made of: with other facts or another
//! intent it is none.

use super::Session;
use crate::error::{Error, Result};

/// Whose line.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct OpeningKey<'a> {
    /// The Digital Human.
    pub human_id: i64,
    /// Step of its journey; 0 without one.
    pub step: i64,
    /// Digest of what the line was made of.
    pub made_of: &'a str,
}

impl Session {
    /// The line that is kept, when it was made of the same.
    pub(crate) async fn opening(&mut self, key: OpeningKey<'_>) -> Result<Option<String>> {
        let sql =
            "SELECT line FROM openings WHERE digital_human_id = $1 AND step = $2 AND org_id = $3 AND made_of = $4";
        let organization = self.organization().to_owned();
        let cells = [key.human_id.into(), key.step.into(), organization.into(), key.made_of.into()];
        let row = self.row(sql, &cells).await?;
        row.map(|row| row.try_get(0).map_err(Error::internal)).transpose()
    }

    /// Keeps a line in the place of one that was made of something else.
    pub(crate) async fn keep_opening(&mut self, key: OpeningKey<'_>, line: &str) -> Result<()> {
        let sql = "INSERT INTO openings (digital_human_id, step, org_id, made_of, line) VALUES ($1, $2, $3, $4, $5) \
                   ON CONFLICT (digital_human_id, step) DO UPDATE SET made_of = $4, line = $5";
        let organization = self.organization().to_owned();
        let cells = [key.human_id.into(), key.step.into(), organization.into(), key.made_of.into(), line.into()];
        self.execute(sql, &cells).await.map(drop)
    }
}
