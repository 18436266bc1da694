//! Words of a suite for editors and people: the metrics of expectations, and the JSON Schema of the files.

use serde_json::{Value, json};

use crate::cli::out::Out;
use crate::judge::catalogue;
use crate::suite::file::{human_fields, simulation_fields};
use crate::suite::verdict::UntoldRule;

/// Prints the metrics that an expectation may name: a table, or one JSON array.
pub(crate) fn metrics(as_json: bool, out: &Out) {
    let numbers = || catalogue::BUILT_IN.iter().filter(|metric| metric.is_number());
    if as_json {
        let all =
            numbers().map(|metric| json!({ "name": metric.name, "unit": metric.unit, "definition": metric.text }));
        return out.line(format_args!("{:#}", all.collect::<Value>()));
    }
    let widest = |of: fn(&catalogue::BuiltIn) -> usize| numbers().map(of).max().unwrap_or(0);
    let (name, unit) = (widest(|metric| metric.name.len()), widest(|metric| metric.unit.len()));
    numbers()
        .for_each(|metric| out.line(format_args!("{:name$}  {:unit$}  {}", metric.name, metric.unit, metric.text)));
}

/// Returns the JSON Schema of the files.
pub(crate) fn schema() -> Value {
    use crate::model::digital_human::DigitalHumanSpec;
    use crate::model::expectation::Expectation;
    use crate::model::simulation::SimulationSpec;
    let mut generator = schemars::generate::SchemaSettings::draft2020_12().into_generator();
    let expectation = generator.subschema_for::<Expectation>();
    let human = generator.root_schema_for::<DigitalHumanSpec>().to_value();
    let simulation = generator.root_schema_for::<SimulationSpec>().to_value();
    let mut definitions = serde_json::Map::new();
    let mut fields = serde_json::Map::new();
    for (schema, names) in [(human, human_fields()), (simulation, simulation_fields())] {
        definitions.extend(schema["$defs"].as_object().cloned().unwrap_or_default());
        fields.extend(
            names.into_iter().filter_map(|name| Some((name.clone(), schema["properties"].get(&name)?.clone()))),
        );
    }
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "array", "items": text });
    let milliseconds = json!({ "type": "number", "minimum": 0, "maximum": 600_000 });
    let turn = |word: &str, value: Value| json!({ "type": "object", "properties": { word: value }, "required": [word], "additionalProperties": false });
    let words = json!({
        "name": text, "tags": { "anyOf": [text, texts] }, "persona": text, "goal": text,
        "traits": { "type": "object" }, "success": text, "expect": { "type": "array", "items": expectation },
        "turns": { "type": "array", "items": { "anyOf": [
            turn("say", text.clone()),
            turn("dtmf", json!({ "type": ["string", "number"] })),
            turn("wait", milliseconds.clone()),
            turn("interrupt", json!({ "type": "object", "required": ["after_ms", "say"], "additionalProperties": false,
                "properties": { "after_ms": milliseconds, "say": text } })),
            turn("expect", json!({ "type": "object", "minProperties": 1, "additionalProperties": false, "properties": {
                "contains": { "anyOf": [text, texts] }, "excludes": { "anyOf": [text, texts] }, "meaning": text,
                "exact": text, "within_ms": milliseconds, "absent": { "type": "boolean" } } })),
        ] } },
        "repeat": { "type": "integer", "minimum": 1, "maximum": 1000 },
        "noise": fields.get("background_noise").cloned().unwrap_or_default(),
        "noise_db": { "type": "number", "minimum": 5, "maximum": 30 },
        "network": fields.get("connection_quality").cloned().unwrap_or_default(),
        "max_seconds": { "type": "number", "minimum": 1, "maximum": 86_400 },
        "ring_seconds": { "type": "number", "minimum": 1, "maximum": 3600 },
        "gate": { "type": "object", "additionalProperties": false,
            "properties": {
                "pass_rate": { "type": "number", "minimum": 0, "maximum": 1 },
                "untold": { "enum": UntoldRule::WORDS.map(|(word, _)| word) },
            } },
    });
    fields.extend(words.as_object().cloned().unwrap_or_default());
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Suite",
        "type": "object",
        "required": ["version", "connect", "scenarios"],
        "additionalProperties": false,
        "properties": {
            "version": { "const": 1 },
            "connect": { "type": "object", "minProperties": 1 },
            "spawn": { "type": "object", "required": ["command"], "additionalProperties": false, "properties": {
                "command": { "anyOf": [text, texts] }, "shell": { "type": "boolean" },
                "env": { "type": "object" },
                "ready": { "type": "object", "required": ["tcp"], "additionalProperties": false,
                    "properties": { "tcp": text, "within_s": { "type": "number" } } } } },
            "defaults": { "type": "object", "properties": fields, "additionalProperties": false },
            "scenarios": { "type": "array", "minItems": 1, "items": {
                "type": "object", "required": ["name"], "properties": fields, "additionalProperties": false } },
        },
        "$defs": definitions,
    })
}
