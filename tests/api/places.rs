//! Every place of a request that an id can stand in, read off the OpenAPI document.

use serde_json::{Map, Value, json};

use super::rows::Form;

/// Placeholder for the id in a request.
pub(super) const HOLE: &str = "$hole";

/// Schemas inside each other that are followed.
const MOST_DEPTH: usize = 12;

/// Fields and parameters that hold an id, though their names do not say so.
const IDS_BY_OTHER_NAMES: [&str; 13] = [
    "conversation_key",
    "custom_background_noise_url",
    "custom_metrics",
    "external_id",
    "phone_number",
    "redis_key",
    "selected_custom_metrics",
    "storage_path",
    "test_name",
    "version",
    "workflowAdherence",
    "workflow_adherence",
    "workflow_adherence_v2",
];

/// A request with a hole where an id comes. `$kind` in it stands for an id of the caller's own.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub method: String,
    pub path: String,
    pub header: Option<String>,
    pub body: Value,
    /// Forms of id that the place takes.
    pub takes: Vec<Form>,
    /// Kind of the id at this place; `None` when its name does not tell.
    pub own: Option<&'static str>,
    /// Place of the hole, for reports.
    pub label: String,
}

/// Returns the kind of id that a parameter or field holds, in the words of `rows.rs`; `None`: it holds a text of its
/// own.
fn kind_of(path: &str, name: &str) -> Option<&'static str> {
    let kind = match name {
        "agent_id" | "agent_ids" => "agent",
        "simulation_id" | "simulation_ids" => "simulation",
        "digital_human_id" | "digital_human_ids" | "test_case_id" => "digital_human",
        "simulation_run_id" | "baseline_run_id" => "run",
        "a" | "b" if path.contains("compare") => "run",
        "simulation_result_id" | "simulation_result_ids" | "test_result_ids" | "conversation_id" => "result",
        "agent_version_id" | "prompt_id" | "promptId" | "version" => "version",
        "metric_id" | "metric_ids" | "custom_metric_id" | "custom_metric_ids" => "metric",
        "custom_metrics" | "selected_custom_metrics" => "metric",
        "workflow_id" | "workflow_v2_id" => "scenario",
        "noise_id" | "storage_path" | "custom_background_noise_url" => "noise",
        "external_agent_id" | "external_id" => "external",
        "name" if path.contains("/organizations/") => "organization",
        "svc_as_code_id" => "simulation_code",
        "redis_key" => "conversation",
        "key_id" => "api_key",
        "call_id" | "call_ids" => "call",
        "id" | "community_id" if path.contains("community") => "community",
        "id" if path.contains("simulation-run") => "run",
        "id" if path.contains("simulation-result") => "result",
        "root_id" if path.contains("/agent/") => "agent",
        "root_id" if path.contains("/digital-human/") => "digital_human",
        "root_id" if path.contains("/custom-metric/") => "metric",
        "root_id" => "simulation",
        "label_id" => "label",
        "folder_id" => "folder",
        "persona_id" => "persona",
        "community_ids" => "community",
        "trait_id" => "trait",
        "webhook_id" => "webhook",
        "schedule_id" => "schedule",
        "monitor_id" => "monitor",
        "issue_id" => "issue",
        "alert_id" => "alert",
        "card_id" => "judge_card",
        "phone_number" if path.contains("release") => "phone_number",
        "test_name" if path.contains("by-test-name") => "test_name",
        _ => return None,
    };
    Some(kind)
}

/// Returns fields that a request needs but its schema does not require; `$kind` as in a [`Place`].
fn needed_fields(path: &str) -> Value {
    let start = json!({ "id": "start", "type": "start" });
    let channel = json!([{ "role": "USER" }, { "role": "AGENT" }]);
    match path {
        "/v1/queue-simulation-run" => json!({ "simulation_id": "$simulation" }),
        "/v1/queue-http-text-simulation-run" => json!({ "simulation_id": "$text_simulation" }),
        "/v1/queue-sms-simulation-run" => json!({ "simulation_id": "$sms_simulation" }),
        "/v1/send-http-text-message" => json!({ "simulation_result_id": "$text_result" }),
        "/v1/scenario" | "/v1/workflow" => json!({ "definition": { "nodes": [start], "edges": [] } }),
        "/v1/evaluate" | "/v1/evaluate-call" => json!({
            "participants": channel,
            "transcript": [{ "start_offset_ms": 0, "end_offset_ms": 9, "speaker": "USER", "utterance": "Yes." }],
        }),
        "/v1/uptime/monitors" | "/v1/uptime/monitors/{monitor_id}" => {
            json!({ "checks": [{ "checkType": "agent_responds" }] })
        }
        "/v1/create-alert" => json!({ "entity_type": "standard_metric" }),
        "/v1/create-custom-metric" => json!({ "response_type": "pass_fail" }),
        "/v1/generate-digital-humans" => json!({ "load_testing": 1 }),
        _ => json!({}),
    }
}

/// Bundles are free objects to their schema.
fn bundles() -> Vec<Place> {
    let code = |of: &str| format!("${of}_code");
    let agent = json!({ "svc_as_code_id": code("agent"), "name": "bundled" });
    let simulation = json!({ "svc_as_code_id": code("simulation"), "name": "bundled", "agent": code("agent") });
    let human = json!({ "svc_as_code_id": code("human"), "name": "bundled", "simulations": [code("simulation")] });
    let metric = json!({
        "svc_as_code_id": code("metric"), "name": "bundled", "description": "d", "response_type": "pass_fail",
    });
    let whole = json!({
        "agents": [agent], "simulations": [simulation], "digital_humans": [human], "custom_metrics": [metric],
    });
    let place = |pointer: &str, field: &str, hole: Value| {
        let mut body = whole.clone();
        body.pointer_mut(pointer).expect("it is there")[field] = hole;
        Place {
            method: "POST".into(),
            path: "/v1/svc-as-code".into(),
            header: None,
            body,
            takes: vec![Form::Uuid, Form::Integer, Form::Text],
            own: kind_of("", field),
            label: format!("body{pointer}/{field}"),
        }
    };
    let mut places = Vec::new();
    for entity in ["agents", "simulations", "digital_humans", "custom_metrics"] {
        places.push(place(&format!("/{entity}/0"), "svc_as_code_id", HOLE.into()));
        places.push(place(&format!("/{entity}/0"), "id", HOLE.into()));
    }
    for (entity, field, hole) in [
        ("agents", "external_agent_id", json!(HOLE)),
        ("simulations", "agent", json!(HOLE)),
        ("simulations", "agent_id", json!(HOLE)),
        ("simulations", "agent_version_id", json!(HOLE)),
        ("simulations", "selected_custom_metrics", json!([HOLE])),
        ("digital_humans", "simulations", json!([HOLE])),
        ("digital_humans", "simulation_ids", json!([HOLE])),
        ("digital_humans", "workflow_v2_id", json!(HOLE)),
        ("digital_humans", "custom_background_noise_url", json!(HOLE)),
        ("custom_metrics", "agent_ids", json!([HOLE])),
        ("custom_metrics", "agent_id", json!(HOLE)),
    ] {
        places.push(place(&format!("/{entity}/0"), field, hole));
    }
    places
}

/// Returns every place of every operation that asks for a key.
pub(super) fn all(document: &Value) -> Vec<Place> {
    let reader = Reader { document };
    let mut places = Vec::new();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("methods") {
            // An operation without a key knows no organization.
            let keyless = ["/v1/ping", "/v1/inbound-sms", "/v1/agents/{agent_id}/inbound-messages"];
            if !path.starts_with("/v1/") || keyless.contains(&path.as_str()) {
                continue;
            }
            for path in reader.told_apart(path, operation) {
                places.extend(reader.operation(&method.to_uppercase(), &path, operation));
            }
        }
    }
    places.extend(bundles());
    places
}

struct Reader<'d> {
    document: &'d Value,
}

impl Reader<'_> {
    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        match schema["$ref"].as_str() {
            Some(reference) => self.document.pointer(reference.trim_start_matches('#')).expect("references are whole"),
            None => schema,
        }
    }

    /// Returns the path with every word that a parameter of fixed words can be.
    fn told_apart(&self, path: &str, operation: &Value) -> Vec<String> {
        let mut paths = vec![path.to_owned()];
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let words = self.resolve(&parameter["schema"])["enum"].as_array();
            let (Some(words), "path") = (words, parameter["in"].as_str().unwrap_or_default()) else { continue };
            let name = format!("{{{}}}", parameter["name"].as_str().unwrap_or_default());
            let words = words.iter().filter_map(Value::as_str);
            paths =
                words.flat_map(|word| paths.iter().map(|path| path.replace(&name, word)).collect::<Vec<_>>()).collect();
        }
        paths
    }

    fn operation(&self, method: &str, path: &str, operation: &Value) -> Vec<Place> {
        let schema = operation.pointer("/requestBody/content/application~1json/schema");
        let mut body = schema.map_or(Value::Null, |schema| self.least(schema, path, "", 0));
        let more = needed_fields(path);
        if let (Value::Object(body), Value::Object(more)) = (&mut body, &more) {
            body.extend(more.clone());
        }
        let (mut filled, mut places) = (path.to_owned(), Vec::new());
        let mut parameters = Vec::new();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let name = parameter["name"].as_str().expect("a name");
            let segment = format!("{{{name}}}");
            match parameter["in"].as_str() {
                Some("path") if path.contains(&segment) => {
                    let own = kind_of(path, name).unwrap_or_else(|| panic!("{path}: whose is {name}?"));
                    filled = filled.replace(&segment, &format!("${own}"));
                    parameters.push((segment, format!("${own}"), self.forms(&parameter["schema"], 0)));
                }
                Some("query") if self.is_id(name, parameter) => {
                    parameters.push((format!("?{name}="), String::new(), self.forms(&parameter["schema"], 0)));
                }
                _ => {}
            }
        }
        let place = |target: String, body: Value, takes: Vec<Form>, label: String| {
            let name = label.rsplit(['.', '?', '{']).next().unwrap_or_default();
            let own = kind_of(path, name.trim_end_matches(['}', '=', ']', '[']));
            Place { method: method.to_owned(), path: target, header: None, body, takes, own, label }
        };
        for (at, (name, own, takes)) in parameters.iter().enumerate() {
            let target = if own.is_empty() {
                format!("{filled}{name}{HOLE}")
            } else {
                let others = parameters.iter().enumerate().filter(|(other, _)| *other != at);
                let path = path.replace(name, HOLE);
                others.fold(path, |path, (_, (name, own, _))| path.replace(name, own))
            };
            places.push(place(target, body.clone(), takes.clone(), name.clone()));
        }
        for (label, holed, takes) in schema.map_or_else(Vec::new, |schema| self.holes(schema, path, "", 0)) {
            let mut holed = holed;
            if let (Value::Object(holed), Value::Object(more)) = (&mut holed, &more) {
                for (name, value) in more {
                    let is_open = holed.get(name).is_some_and(|given| given.to_string().contains(HOLE));
                    if !is_open {
                        holed.insert(name.clone(), value.clone());
                    }
                }
            }
            places.push(place(filled.clone(), holed, takes, format!("body{label}")));
        }
        let mut organization = place(filled, body, vec![Form::Text, Form::Uuid], "X-Organization-Id".into());
        organization.header = Some("x-organization-id".into());
        places.push(organization);
        places
    }

    /// True for what holds an id by its name, its format or its description.
    fn is_id(&self, name: &str, field: &Value) -> bool {
        let described = field["description"].as_str().unwrap_or_default().to_lowercase();
        let mut words = described.split(|c: char| !c.is_ascii_alphanumeric());
        let last = name.rsplit('_').next().unwrap_or_default();
        let schema = field.get("schema").unwrap_or(field);
        if name == "name" {
            return false;
        }
        ["id", "ids"].contains(&last)
            || name.ends_with("Id")
            || IDS_BY_OTHER_NAMES.contains(&name)
            || [schema, &schema["items"]].iter().any(|schema| schema["format"] == "uuid")
            || words.any(|word| word == "id" || word == "ids")
    }

    /// Returns the forms of id that a schema takes.
    fn forms(&self, schema: &Value, depth: usize) -> Vec<Form> {
        let schema = self.resolve(schema);
        if depth > MOST_DEPTH {
            return Vec::new();
        }
        let members = ["anyOf", "oneOf"].iter().filter_map(|key| schema[*key].as_array()).flatten();
        let mut forms: Vec<Form> = members.flat_map(|member| self.forms(member, depth + 1)).collect();
        match type_of(schema) {
            "string" if schema["format"] == "uuid" => forms.push(Form::Uuid),
            "string" => forms.extend([Form::Text, Form::Uuid, Form::Integer]),
            "integer" => forms.push(Form::Integer),
            _ => {}
        }
        forms
    }

    /// Returns the least value that a schema takes, own ids where ids are.
    fn least(&self, schema: &Value, path: &str, name: &str, depth: usize) -> Value {
        let outer = schema;
        let schema = self.resolve(schema);
        if let Some(word) = schema["enum"].as_array().or(outer["enum"].as_array()).and_then(|words| words.first()) {
            return word.clone();
        }
        if !schema["const"].is_null() {
            return schema["const"].clone();
        }
        if let Some(member) = self.members(schema).first() {
            return self.least(member, path, name, depth + 1);
        }
        let own = kind_of(path, name).map(|kind| Value::from(format!("${kind}")));
        match type_of(schema) {
            "object" => Value::Object(self.least_object(schema, path, depth)),
            "array" => {
                let count = schema["minItems"].as_u64().unwrap_or(1).max(1) as usize;
                json!(vec![self.least(&schema["items"], path, name, depth + 1); count])
            }
            "integer" => own.unwrap_or_else(|| {
                let least = schema["minimum"].as_i64().or(schema["exclusiveMinimum"].as_i64().map(|least| least + 1));
                json!(least.unwrap_or(1).max(1))
            }),
            "number" => json!(1),
            "boolean" => json!(false),
            "string" => own.unwrap_or_else(|| match (schema["format"].as_str(), name) {
                (Some("uuid"), _) => json!("6a1e0b64-6f0a-4c3b-9a25-0f4f6f7a1c11"),
                (Some("date-time"), _) => json!("2026-01-05T08:00:00Z"),
                (Some("date"), _) => json!("2026-01-05"),
                (Some("uri"), _) | (_, "url") => json!("http://127.0.0.1:9/stranger"),
                _ if schema["pattern"].as_str().is_some_and(|pattern| pattern.contains(':')) => json!("09:00"),
                (_, "comparison_value") => json!("2"),
                _ => json!("stranger"),
            }),
            _ => Value::Null,
        }
    }

    fn least_object(&self, schema: &Value, path: &str, depth: usize) -> Map<String, Value> {
        let mut object = Map::new();
        if depth > MOST_DEPTH {
            return object;
        }
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for name in required {
            object.insert(name.to_owned(), self.least(&schema["properties"][name], path, name, depth + 1));
        }
        // A name is drawn where none is given, and what is drawn differs each time.
        if schema["properties"].get("voice_speed").is_some() {
            object.insert("name".into(), json!("stranger"));
        }
        object
    }

    /// Returns the members of a union that are not null.
    fn members<'a>(&'a self, schema: &'a Value) -> Vec<&'a Value> {
        let members = ["anyOf", "oneOf", "allOf"].iter().filter_map(|key| schema[*key].as_array()).flatten();
        members.filter(|member| member["type"] != "null").collect()
    }

    /// Returns values of a schema with one hole each: where it is, the value, what it takes.
    fn holes(&self, schema: &Value, path: &str, name: &str, depth: usize) -> Vec<(String, Value, Vec<Form>)> {
        let outer = schema;
        let schema = self.resolve(schema);
        if depth > MOST_DEPTH {
            return Vec::new();
        }
        let members = self.members(schema);
        if !members.is_empty() {
            return members.into_iter().flat_map(|member| self.holes(member, path, name, depth + 1)).collect();
        }
        match type_of(schema) {
            "array" => {
                let mut field = schema["items"].clone();
                if self.is_id(name, outer) && field.is_object() {
                    field["description"] = "id".into();
                }
                let items = self.holes(&field, path, name, depth + 1);
                let count = schema["minItems"].as_u64().unwrap_or(1).max(1) as usize;
                let filled = |hole: Value| {
                    let rest = vec![self.least(&schema["items"], path, name, depth + 1); count - 1];
                    Value::Array(std::iter::once(hole).chain(rest).collect())
                };
                items.into_iter().map(|(label, hole, takes)| (format!("{label}[]"), filled(hole), takes)).collect()
            }
            "object" => self.holes_of_object(schema, path, name, depth),
            "string" | "integer" if schema["enum"].is_null() && self.is_id(name, outer) => {
                vec![(String::new(), HOLE.into(), self.forms(schema, depth))]
            }
            _ => Vec::new(),
        }
    }

    fn holes_of_object(&self, schema: &Value, path: &str, name: &str, depth: usize) -> Vec<(String, Value, Vec<Form>)> {
        let mut holes = Vec::new();
        let least = self.least_object(schema, path, depth);
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            for (label, hole, takes) in self.holes(property, path, name, depth + 1) {
                let mut object = least.clone();
                object.insert(name.clone(), hole);
                holes.push((format!(".{name}{label}"), Value::Object(object), takes));
            }
        }
        let values = &schema["additionalProperties"];
        if values.is_object() && self.is_id(name, &Value::Null) {
            let value = self.least(values, path, "", depth + 1);
            holes.push(("{key}".into(), json!({ HOLE: value }), vec![Form::Text, Form::Uuid, Form::Integer]));
        }
        holes
    }
}

/// Returns the type of a schema that is not null.
fn type_of(schema: &Value) -> &str {
    let types = schema["type"].as_array().into_iter().flatten().chain([&schema["type"]]);
    let one = types.filter_map(Value::as_str).find(|one| *one != "null");
    one.unwrap_or(if schema["properties"].is_object() { "object" } else { "" })
}
