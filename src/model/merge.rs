//! Merge of a partial update with a stored Spec. Omitted is unchanged, null clears nullable fields and leaves others. A
//! given array or object replaces the whole old value.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// Returns `stored` with the members of `patch` in place of its own. Members that the Spec does not have are ignored.
///
/// Null clears fields whose default is null, [] or {}. It leaves booleans, `name`, `mode`, `type` and every field that
/// cannot be empty.
///
/// # Errors
/// The error of serde for a member whose value does not fit its field.
pub fn merge<T>(stored: &T, patch: &Map<String, Value>) -> Result<T, serde_json::Error>
where
    T: Serialize + DeserializeOwned + Default,
{
    let mut merged = object(stored)?;
    let defaults = object(&T::default())?;
    for (key, value) in patch {
        if !value.is_null() {
            merged.insert(key.clone(), value.clone());
            continue;
        }
        let old_is_bool = merged.get(key).is_some_and(Value::is_boolean);
        let default = defaults.get(key).filter(|default| may_be_empty(key, default));
        if let (false, Some(default)) = (old_is_bool, default) {
            merged.insert(key.clone(), default.clone());
        }
    }
    serde_json::from_value(Value::Object(merged))
}

fn object<T: Serialize>(value: &T) -> Result<Map<String, Value>, serde_json::Error> {
    match serde_json::to_value(value)? {
        Value::Object(map) => Ok(map),
        _ => Ok(Map::new()),
    }
}

fn may_be_empty(key: &str, default: &Value) -> bool {
    let empty = match default {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    };
    empty && !matches!(key, "name" | "mode" | "type")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::agent::AgentSpec;
    use crate::simulation::SimulationSpec;

    fn check<T: Serialize + DeserializeOwned + Default>(stored: Value, patch: Value, expect: &[(&str, Value)]) {
        let stored: T = serde_json::from_value(stored).expect("stored");
        let patch = patch.as_object().expect("an object").clone();
        let merged = serde_json::to_value(merge(&stored, &patch).expect("fits")).expect("serializes");
        for (key, value) in expect {
            assert_eq!(&merged[*key], value, "{key} of {merged}");
        }
    }

    #[test]
    fn omitted_null_and_given_differ() {
        let agent = json!({"name": "Desk", "goals": ["a"], "sip_uri": "sip:a@b", "redact_pii": true, "mode": "TEXT",
            "enable_outbound_call_auto_start": true, "simulation_notifications": {"emails": ["a@b"]}});
        check::<AgentSpec>(
            agent,
            json!({"name": null, "goals": null, "sip_uri": null, "redact_pii": null, "mode": null, "unknown": 1,
                "enable_outbound_call_auto_start": null, "simulation_notifications": {"webhook_url": "x"}}),
            &[
                ("name", json!("Desk")),
                ("goals", json!([])),
                ("sip_uri", Value::Null),
                ("redact_pii", json!(true)),
                ("mode", json!("TEXT")),
                ("enable_outbound_call_auto_start", json!(true)),
                ("simulation_notifications", json!({"webhook_url": "x"})),
                ("unknown", Value::Null),
            ],
        );
        check::<SimulationSpec>(
            json!({"agent_id": "1", "name": "Booking", "max_turns": 3, "ringing_timeout": 20}),
            json!({"name": null, "max_turns": null, "ringing_timeout": null}),
            &[("name", json!("Booking")), ("max_turns", Value::Null), ("ringing_timeout", json!(20))],
        );
    }
}
