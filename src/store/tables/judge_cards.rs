//! Table of the report cards of judges.

use ringer_model::judge_card::{JudgeCardDoc, judge_key};
use uuid::Uuid;

use super::super::db::Cell;
use super::super::record::Resource;

impl Resource for JudgeCardDoc {
    const TABLE: &'static str = "judge_cards";
    const WORD: &'static str = "Judge card";
    const COLUMNS: &'static [&'static str] = &["judge_key", "status"];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![judge_key(&self.model, &self.prompt_version).into(), self.status.as_str().into()]
    }
}
