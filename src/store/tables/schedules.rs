//! Schedules.

use ringer_model::schedule::ScheduleDoc;
use uuid::Uuid;

use crate::db::Cell;
use crate::record::Resource;

impl Resource for ScheduleDoc {
    const TABLE: &'static str = "schedules";
    const WORD: &'static str = "Schedule";
    const COLUMNS: &'static [&'static str] = &["simulation_id", "next_ms"];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![self.simulation_id.into(), self.next_ms.into()]
    }
}
