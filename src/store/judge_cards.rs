//! Queries about report cards of judges.

use ringer_base::error::Result;
use ringer_model::judge_card::{CardStatus, JudgeCardDoc, judge_key};

use super::Session;
use super::record::{Row, fields_of, read_row};

impl Session {
    /// Returns the newest completed card of a model with a version of its prompt; `None`: there is none.
    pub async fn card_in_force(&mut self, model: &str, prompt_version: &str) -> Result<Option<Row<JudgeCardDoc>>> {
        let sql = format!(
            "SELECT {} FROM judge_cards c WHERE c.org_id = $1 AND c.judge_key = $2 AND c.status = $3 \
             ORDER BY c.created_ms DESC, c.id DESC LIMIT 1",
            fields_of("c")
        );
        let key = judge_key(model, prompt_version);
        let cells = [self.organization().into(), key.into(), CardStatus::Completed.as_str().into()];
        self.row(&sql, &cells).await?.map(|row| read_row(&row)).transpose()
    }
}
