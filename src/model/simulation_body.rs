//! Bodies for simulations. A field may stand in the body, or under `settings` as a record has it; `type` is taken as it
//! is read.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Object;
use super::patch::Patch;
use super::simulation::{SimulationSettings, SimulationSpec, SimulationType};

/// Refusal of two settings that contradict each other.
pub const PARALLEL_WITH_LIMIT: &str = "type parallel has no max_concurrent";

/// A body whose members are those of `T`, or stand under `settings`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SimulationBody<T> {
    given: Object,
    #[serde(skip)]
    of: std::marker::PhantomData<fn() -> T>,
}

/// Body of a new simulation.
pub type NewSimulation = SimulationBody<SimulationSpec>;
/// Body of a change of a simulation.
pub type SimulationChange = SimulationBody<Patch<SimulationSpec>>;

impl<T> SimulationBody<T> {
    /// Returns the given fields of a [`SimulationSpec`], beside one another. A member of the body goes before one of
    /// `settings`; `type: parallel` removes the limit.
    ///
    /// # Errors
    /// [`PARALLEL_WITH_LIMIT`].
    pub fn into_fields(self) -> Result<Object, &'static str> {
        let mut fields = self.given;
        let kind = fields.shift_remove("type");
        if let Some(Value::Object(settings)) = fields.shift_remove("settings") {
            for (name, value) in settings {
                fields.entry(name).or_insert(value);
            }
        }
        if kind.as_ref().and_then(Value::as_str) == Some(SimulationType::Parallel.as_str()) {
            match fields.get("max_concurrent").is_none_or(Value::is_null) {
                true => fields.insert("max_concurrent".to_owned(), Value::Null),
                false => return Err(PARALLEL_WITH_LIMIT),
            };
        }
        Ok(fields)
    }
}

impl<T: JsonSchema> JsonSchema for SimulationBody<T> {
    fn schema_name() -> Cow<'static, str> {
        T::schema_name()
    }

    fn schema_id() -> Cow<'static, str> {
        Cow::Owned(format!("{}::{}", module_path!(), T::schema_id()))
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        let names = SimulationSettings::json_schema(generator);
        let names = names.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            let of_settings: Map<String, Value> = properties
                .iter()
                .filter(|(name, _)| names.contains_key(*name))
                .map(|(n, v)| (n.clone(), v.clone()))
                .collect();
            let settings = json_schema!({
                "type": ["object", "null"],
                "description": "Fields as a simulation is read. A field of the body itself goes before one of these.",
                "properties": of_settings,
            });
            properties.insert("type".to_owned(), generator.subschema_for::<Option<SimulationType>>().to_value());
            properties.insert("settings".to_owned(), settings.to_value());
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_and_type_are_taken_as_they_are_read() {
        for (body, expect) in [
            (
                json!({ "agent_id": "1", "settings": { "max_call_duration": 5 } }),
                Ok(json!({ "agent_id": "1", "max_call_duration": 5 })),
            ),
            (
                json!({ "max_call_duration": 7, "settings": { "max_call_duration": 5 } }),
                Ok(json!({ "max_call_duration": 7 })),
            ),
            (json!({ "type": "max_concurrent", "max_concurrent": 3 }), Ok(json!({ "max_concurrent": 3 }))),
            (json!({ "type": "parallel" }), Ok(json!({ "max_concurrent": null }))),
            (json!({ "type": "parallel", "max_concurrent": null }), Ok(json!({ "max_concurrent": null }))),
            (json!({ "type": "parallel", "max_concurrent": 3 }), Err(PARALLEL_WITH_LIMIT)),
            (json!({ "settings": null, "type": null }), Ok(json!({}))),
        ] {
            let read: SimulationChange = serde_json::from_value(body.clone()).expect("an object");
            assert_eq!(read.into_fields().map(Value::Object), expect, "{body}");
        }
    }
}
