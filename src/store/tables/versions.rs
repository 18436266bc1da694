//! Tables of labels.

use ringer_model::agent_version::LabelDoc;
use uuid::Uuid;

use crate::db::Cell;
use crate::record::Resource;

impl Resource for LabelDoc {
    const TABLE: &'static str = "labels";
    const WORD: &'static str = "Label";
    const COLUMNS: &'static [&'static str] = &["agent_id", "label_text"];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![self.agent_id.into(), self.label_text.as_str().into()]
    }
}
