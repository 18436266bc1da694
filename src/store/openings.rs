//! First messages of Digital Humans, generated once and stored. A message is valid for the facts and intent that it was
//! generated from, and for no others.

use ringer_base::error::{Error, Result};

use super::Session;

/// Identity of a first message.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct OpeningKey<'a> {
    /// Digital Human that says it.
    pub human_id: i64,
    /// Step of its journey; 0 without one.
    pub step: i64,
    /// Digest of the facts that it was generated from.
    pub made_of: &'a str,
}

impl Session {
    /// Returns the stored message, if it was generated from the same facts.
    pub async fn opening(&mut self, key: OpeningKey<'_>) -> Result<Option<String>> {
        let sql =
            "SELECT line FROM openings WHERE digital_human_id = $1 AND step = $2 AND org_id = $3 AND made_of = $4";
        let organization = self.organization().to_owned();
        let cells = [key.human_id.into(), key.step.into(), organization.into(), key.made_of.into()];
        let row = self.row(sql, &cells).await?;
        row.map(|row| row.try_get(0).map_err(Error::internal)).transpose()
    }

    /// Stores a message in place of one that was generated from other facts.
    pub async fn keep_opening(&mut self, key: OpeningKey<'_>, line: &str) -> Result<()> {
        let sql = "INSERT INTO openings (digital_human_id, step, org_id, made_of, line) VALUES ($1, $2, $3, $4, $5) \
                   ON CONFLICT (digital_human_id, step) DO UPDATE SET made_of = $4, line = $5";
        let organization = self.organization().to_owned();
        let cells = [key.human_id.into(), key.step.into(), organization.into(), key.made_of.into(), line.into()];
        self.execute(sql, &cells).await.map(drop)
    }
}
