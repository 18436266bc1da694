//! Numbers of the trunks in the settings, which no organization has, and numbers that organizations have registered, by
//! their ends.

use std::collections::HashMap;

use ringer_base::error::{Error, Result};

use super::Session;
use super::db::Cell;

/// Id before that of the first number of a trunk: ids of registered numbers are counted from 1.
const BEFORE_FIRST: i64 = 1_000_000_000;
/// Numbers that are looked up or written at once.
const AT_ONCE: usize = 200;
/// Most registered numbers with the same end that are looked at.
const ALIKE_MAX: i64 = 20;

/// Identity of a number of a trunk.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TrunkNumber {
    /// Id of the number, the same at every start.
    pub id: i64,
    /// Time at which an engine first saw it, in milliseconds since 1970.
    pub created_ms: i64,
}

impl Session {
    /// Returns those of these numbers that were seen before.
    pub async fn trunk_numbers(&mut self, numbers: &[String]) -> Result<HashMap<String, TrunkNumber>> {
        let mut found = HashMap::new();
        for numbers in numbers.chunks(AT_ONCE) {
            let cells: Vec<Cell> = numbers.iter().map(|number| Cell::from(number.as_str())).collect();
            let marks: Vec<String> = (1..=cells.len()).map(|n| format!("${n}")).collect();
            let sql =
                format!("SELECT number, id, created_ms FROM trunk_numbers WHERE number IN ({})", marks.join(", "));
            for row in self.rows(&sql, &cells).await? {
                let number: String = row.try_get(0).map_err(Error::internal)?;
                let (id, created_ms) =
                    (row.try_get(1).map_err(Error::internal)?, row.try_get(2).map_err(Error::internal)?);
                found.insert(number, TrunkNumber { id, created_ms });
            }
        }
        Ok(found)
    }

    /// Notes that these numbers were seen now; those that were seen before stay as they are.
    pub async fn note_trunk_numbers(&mut self, numbers: &[String], now_ms: i64) -> Result<()> {
        let sql = format!(
            "INSERT INTO trunk_numbers (id, number, created_ms) \
             SELECT COALESCE(MAX(id), {BEFORE_FIRST}) + 1, CAST($1 AS TEXT), CAST($2 AS BIGINT) FROM trunk_numbers \
             WHERE true ON CONFLICT DO NOTHING"
        );
        for number in numbers {
            self.execute(&sql, &[number.as_str().into(), now_ms.into()]).await?;
        }
        Ok(())
    }

    /// Returns registered numbers of all organizations that end with these digits.
    pub async fn registered_numbers_with_end(&mut self, digits: &str) -> Result<Vec<String>> {
        let sql = "SELECT number FROM phone_numbers WHERE number LIKE $1 ORDER BY number LIMIT $2";
        let rows = self.rows(sql, &[format!("%{digits}").into(), ALIKE_MAX.into()]).await?;
        rows.iter().map(|row| row.try_get(0).map_err(Error::internal)).collect()
    }
}
