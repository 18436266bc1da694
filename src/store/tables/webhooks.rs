//! Webhooks.

use ringer_model::webhook::WebhookDoc;
use uuid::Uuid;

use crate::db::Cell;
use crate::record::Resource;

impl Resource for WebhookDoc {
    const TABLE: &'static str = "webhooks";
    const WORD: &'static str = "Webhook";
    const SEALED: bool = true;
    const COLUMNS: &'static [&'static str] = &["enabled"];
    type Id = Uuid;

    fn cells(&self) -> Vec<Cell> {
        vec![self.spec.enabled.into()]
    }
}
