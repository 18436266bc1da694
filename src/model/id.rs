//! Integer ids that travel as strings.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// An integer id in its decimal text; requests may also give it as a JSON integer (schema word `x-id`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct IdString(pub String);

impl IdString {
    /// Returns the id; `None` when the text is not a decimal integer (no row can have it).
    pub fn get(&self) -> Option<i64> {
        self.0.parse().ok()
    }
}

impl From<i64> for IdString {
    fn from(id: i64) -> Self {
        IdString(id.to_string())
    }
}

impl JsonSchema for IdString {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "IdString".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "x-id": true})
    }
}
