//! Tables of scenarios and of what Digital Humans are made from.

use ringer_model::customer::{CommunityDoc, PersonaDoc, TraitDoc};
use ringer_model::noise::NoiseDoc;
use ringer_model::scenario::ScenarioDoc;
use uuid::Uuid;

use crate::db::Cell;
use crate::record::Resource;

impl Resource for ScenarioDoc {
    const TABLE: &'static str = "scenarios";
    const WORD: &'static str = "Scenario";
    const COLUMNS: &'static [&'static str] = &[];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![]
    }
}

impl Resource for PersonaDoc {
    const TABLE: &'static str = "personas";
    const WORD: &'static str = "Customer persona";
    const COLUMNS: &'static [&'static str] = &["agent_id"];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![self.agent_id.into()]
    }
}

impl Resource for TraitDoc {
    const TABLE: &'static str = "customer_traits";
    const WORD: &'static str = "Customer trait";
    const COLUMNS: &'static [&'static str] = &["agent_id", "name"];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![self.agent_id.into(), self.name.as_str().into()]
    }
}

impl Resource for CommunityDoc {
    const TABLE: &'static str = "communities";
    const WORD: &'static str = "Community";
    const COLUMNS: &'static [&'static str] = &[];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![]
    }
}

impl Resource for NoiseDoc {
    const TABLE: &'static str = "background_noises";
    const WORD: &'static str = "Background noise";
    const COLUMNS: &'static [&'static str] = &[];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![]
    }
}
