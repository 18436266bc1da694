//! The OpenAPI 3.1 document and the compiled constraints, both from the same declarations: what is described is what is
//! checked.

mod links;
mod nulls;

use std::collections::BTreeSet;

use axum::http::Method;
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use crate::api::endpoint::Endpoint;
use crate::api::idempotency;
use crate::api::openapi::links::Maker;
use crate::api::pipeline::Ready;
use crate::api::response::JSON;
use crate::model::schema::{self, ALIASES, ID, NEEDS, NUMBER_OR_UUID, Node, OPEN, PATCH, PLAIN, TAG_DEFAULT, UNLESS};

/// Version of the interface.
pub const VERSION: &str = "0.1.0";

/// Returns the document of `endpoints`, and the endpoints ready to serve.
pub fn compile(endpoints: Vec<Endpoint>) -> (String, Vec<Ready>) {
    let mut generator = schema::generator();
    let mut paths = Map::new();
    let mut described = Vec::with_capacity(endpoints.len());
    for endpoint in endpoints {
        let parts = endpoint.parts.map(|describe| describe(&mut generator).to_value());
        let answer = success(&endpoint, &mut generator);
        described.push((endpoint, parts, answer));
    }
    let definitions = generator.take_definitions(false);
    link(&mut described, &definitions);
    let mut ready = Vec::with_capacity(described.len());
    let mut in_bodies = BTreeSet::new();
    for (endpoint, parts, answer) in described {
        let nodes = parts.each_ref().map(|schema| Node::compile(schema, &definitions));
        nulls::names(&parts[2], &definitions, &mut in_bodies);
        let answers = json!({ endpoint.status.as_str(): answer });
        let operation = operation(&endpoint, &parts, &nodes, answers, &definitions);
        let path = paths.entry(endpoint.path).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(path) = path {
            path.insert(endpoint.method.as_str().to_lowercase(), operation);
        }
        ready.push(Ready { endpoint, nodes });
    }
    let mut document = document(paths, definitions);
    let schemas = &mut document["components"]["schemas"];
    for name in &in_bodies {
        if let Some(schema) = schemas.get_mut(name) {
            nulls::allow(schema);
        }
    }
    without_marks(&mut document);
    (document.to_string(), ready)
}

fn document(paths: Map<String, Value>, mut definitions: Map<String, Value>) -> Value {
    definitions.insert("ValidationIssue".to_owned(), issue());
    definitions.insert(
        "ValidationError".to_owned(),
        json!({
            "type": "object",
            "description": "List of all errors of a request.",
            "required": ["detail"],
            "properties": { "detail": { "type": "array", "items": reference("ValidationIssue") } },
        }),
    );
    definitions.insert(
        "Refusal".to_owned(),
        json!({ "type": "object", "required": ["detail"], "properties": { "detail": { "type": "string" } } }),
    );
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Ringer",
            "version": VERSION,
            "description": "Makes live simulated calls to voice agents and measures what the agents do.",
        },
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {
                "ApiKey": { "type": "apiKey", "in": "header", "name": "X-API-Key" },
                "Bearer": { "type": "http", "scheme": "bearer" },
            },
        },
    })
}

fn issue() -> Value {
    json!({
        "type": "object",
        "description": "One error of a request: its type, its place, a text and the rejected value.",
        "required": ["type", "loc", "msg", "input"],
        "properties": {
            "type": { "type": "string" },
            "loc": { "type": "array", "items": { "type": ["string", "integer"] } },
            "msg": { "type": "string" },
            "input": true,
            "ctx": { "type": "object", "additionalProperties": true },
        },
    })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#{}/{name}", schema::DEFINITIONS) })
}

/// Returns the description of a success for the document.
fn success(endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Value {
    let described = (endpoint.answer)(generator);
    let mut success = json!({ "description": "Success" });
    let schema = described.schema.map_or(json!({}), |schema| schema.to_value());
    for content_type in described.content_types {
        let schema = if *content_type == JSON { schema.clone() } else { json!({}) };
        success["content"][content_type] = json!({ "schema": schema });
    }
    success
}

/// Adds links from each creating route to the routes that address what it made.
fn link(described: &mut [(Endpoint, [Value; 3], Value)], definitions: &Map<String, Value>) {
    let routes: Vec<Endpoint> = described.iter().map(|(endpoint, ..)| endpoint.clone()).collect();
    for (endpoint, _, answer) in described {
        let schema = answer.pointer("/content/application~1json/schema").unwrap_or(&Value::Null);
        let links = Maker::new(endpoint, schema, definitions).map(|maker| maker.links(routes.iter()));
        if let Some(links) = links.filter(|links| !links.is_empty()) {
            answer["links"] = Value::Object(links);
        }
    }
}

fn operation_id(endpoint: &Endpoint) -> String {
    let name = endpoint.path.trim_matches('/').replace(['/', '-', '.'], "_").replace(['{', '}'], "");
    format!("{}_{name}", endpoint.method.as_str().to_lowercase())
}

fn operation(
    endpoint: &Endpoint,
    [path, query, body]: &[Value; 3],
    [path_node, query_node, body_node]: &[Node; 3],
    mut answers: Value,
    definitions: &Map<String, Value>,
) -> Value {
    let mut parameters = Vec::new();
    if !path_node.is_nothing() {
        parameters.extend(parameters_of("path", path, definitions));
    }
    if !query_node.is_nothing() {
        parameters.extend(parameters_of("query", query, definitions));
    }
    add_refusals(endpoint, [path_node, query_node, body_node], &mut answers);
    if endpoint.if_match {
        parameters.push(header("If-Match", json!({ "type": "string" })));
    }
    let mut operation = json!({
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "operationId": operation_id(endpoint),
        "responses": answers,
    });
    if endpoint.deprecated {
        operation["deprecated"] = Value::Bool(true);
    }
    if endpoint.scope.is_some() {
        operation["security"] = json!([{ "ApiKey": [] }, { "Bearer": [] }]);
        parameters.push(header("X-Organization-Id", json!({ "type": "string" })));
    }
    if endpoint.internal {
        parameters.push(header("X-Internal-Token", json!({ "type": "string" })));
    }
    if endpoint.idempotent {
        let most = idempotency::MAX_KEY_CHARS;
        let key = json!({ "type": "string", "minLength": 1, "maxLength": most, "pattern": idempotency::PATTERN });
        parameters.push(header("Idempotency-Key", key));
    }
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if !body_node.is_nothing() {
        operation["requestBody"] = request_body(endpoint, body, body_node);
    }
    operation
}

/// Adds the refusals that an operation can answer with.
fn add_refusals(endpoint: &Endpoint, nodes: [&Node; 3], answers: &mut Value) {
    let refusal = |text: &str| json!({ "description": text, "content": { "application/json": { "schema": reference("Refusal") } } });
    if endpoint.scope.is_some() || endpoint.carrier {
        let takes_input = !nodes.iter().all(|node| node.is_nothing());
        let has_body = !nodes[2].is_nothing();
        for (code, text, is_possible) in [
            ("400", "Well-formed, but not allowed", takes_input),
            ("401", "Invalid or missing API key", true),
            (
                "403",
                "The key's scope is not sufficient, or the row is another organization's",
                endpoint.scope.is_some(),
            ),
            ("404", "Not found", true),
            ("409", "Conflict with the present state or with another request", endpoint.method != Method::GET),
            ("408", "The request body did not arrive in time", has_body),
            ("413", "The request body is too large", has_body),
            ("429", "Too many requests", true),
            ("500", "Internal error of the engine", true),
            ("503", "A required part is not available", true),
        ] {
            if is_possible {
                answers[code] = refusal(text);
            }
        }
        let invalid = json!({ "schema": reference("ValidationError") });
        answers["422"] = json!({ "description": "Validation error", "content": { "application/json": invalid } });
    }
    if endpoint.if_match {
        answers["412"] = refusal("The resource was changed since it was read");
    }
    if endpoint.of_page {
        answers["403"] = refusal("The token is wrong, used or expired");
        answers["421"] = refusal("Requests for this Host header are not served");
        answers["422"] = json!({ "description": "Validation error" });
    }
}

/// Describes the body of a request: JSON, and a form with a file where one is taken.
fn request_body(endpoint: &Endpoint, schema: &Value, node: &Node) -> Value {
    let mut body = json!({ "required": !node.nullable, "content": { "application/json": { "schema": schema } } });
    if endpoint.uploads {
        body["content"]["multipart/form-data"] = json!({ "schema": {
            "type": "object",
            "properties": { "file": { "type": "string", "format": "binary" }, "name": { "type": "string" } },
            "required": ["file"],
        } });
    }
    body
}

fn header(name: &str, schema: Value) -> Value {
    json!({ "name": name, "in": "header", "required": false, "schema": schema })
}

fn parameters_of(place: &str, schema: &Value, definitions: &Map<String, Value>) -> Vec<Value> {
    let schema = resolve(schema, definitions);
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    let parameter = |(name, property): (&String, &Value)| {
        let required = place == "path" || required.is_some_and(|all| all.iter().any(|one| one == name));
        let description = property.get("description").cloned().unwrap_or_default();
        json!({ "name": name, "in": place, "required": required, "description": description, "schema": property })
    };
    properties.into_iter().flatten().map(parameter).collect()
}

/// Returns the name of the definition that a schema refers to; `None`: it is no reference.
fn reference_name(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.rsplit('/').next()
}

/// Returns the schema itself, or the definition that it refers to.
fn resolve<'v>(schema: &'v Value, definitions: &'v Map<String, Value>) -> &'v Value {
    reference_name(schema).and_then(|name| definitions.get(name)).unwrap_or(schema)
}

/// Removes the schema keys that only the validation reads.
fn without_marks(value: &mut Value) {
    match value {
        Value::Object(map) => {
            for mark in [ALIASES, PATCH, ID, PLAIN, NEEDS, NUMBER_OR_UUID, TAG_DEFAULT, OPEN, UNLESS] {
                map.remove(mark);
            }
            map.values_mut().for_each(without_marks);
        }
        Value::Array(items) => items.iter_mut().for_each(without_marks),
        _ => {}
    }
}
