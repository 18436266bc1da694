//! Schedules.

use uuid::Uuid;

use crate::model::schedule::ScheduleDoc;
use crate::store::db::Cell;
use crate::store::record::Resource;

impl Resource for ScheduleDoc {
    const TABLE: &'static str = "schedules";
    const WORD: &'static str = "Schedule";
    const COLUMNS: &'static [&'static str] = &["simulation_id", "next_ms"];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![self.simulation_id.into(), self.next_ms.into()]
    }
}
