//! JSON Schema 2020-12 of the values that a judge gives.

use jsonschema::{Draft, Validator};
use ringer_model::Object;
use serde_json::Value;

/// Returns the checks of a schema.
///
/// # Errors
/// When it is no schema, with what is wrong in it and where.
pub fn schema_of(schema: &Object) -> Result<Validator, String> {
    let options = jsonschema::options().with_draft(Draft::Draft202012);
    let built = options.build(&Value::Object(schema.clone()));
    built.map_err(|error| format!("json_schema is not a valid JSON Schema: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn schemas_are_compiled_and_check_values() {
        let schema = |value: Value| schema_of(value.as_object().expect("an object"));
        let city = schema(json!({"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}));
        let city = city.expect("a schema");
        assert!(city.is_valid(&json!({"city": "Bern"})) && !city.is_valid(&json!({"city": 1})));
        let wrong = schema(json!({"type": "nothing"})).err().unwrap_or_default();
        assert!(wrong.starts_with("json_schema is not a valid JSON Schema: "), "{wrong}");
        assert!(schema(json!({"$ref": "https://schemas.example/other.json"})).is_err(), "nothing is fetched");
    }
}
