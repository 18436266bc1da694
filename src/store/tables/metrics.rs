//! The table of custom metrics. Their agents are rows of another: they are not read from the document.

use ringer_model::custom_metric::CustomMetricSpec;
use uuid::Uuid;

use crate::db::Cell;
use crate::record::Resource;

impl Resource for CustomMetricSpec {
    const TABLE: &'static str = "custom_metrics";
    const WORD: &'static str = "Custom metric";
    const COLUMNS: &'static [&'static str] = &["code_id"];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![self.svc_as_code_id.clone().into()]
    }
}
