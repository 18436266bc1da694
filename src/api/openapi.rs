//! The OpenAPI 3.1 document and the compiled constraints, both from the same declarations: what is described is what is
//! checked.

mod components;
mod ids;
mod links;
mod nulls;
mod plain;
mod tags;

use std::collections::BTreeSet;

use axum::http::Method;
use ringer_model::schema;
use ringer_model::schema::{
    ALIASES, ID, NEEDS, NUMBER_OR_UUID, Node, OPEN, PATCH, PLAIN, RULES, TAG_DEFAULT, UNLESS, UNLESS_VALID,
};
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use crate::endpoint::{Endpoint, InternalToken};
use crate::idempotency;
use crate::openapi::ids::operation_id;
use crate::openapi::links::Maker;
use crate::openapi::plain::{Side, simplify};
use crate::pipeline::Ready;
use crate::response::{EVENTS, JSON, OPENMETRICS, XML};

/// Version of the interface.
pub const VERSION: &str = "0.1.0";

/// Returns the document of `endpoints`, and the endpoints ready to serve.
pub fn compile(endpoints: Vec<Endpoint>) -> (String, Vec<Ready>) {
    let (mut of_requests, mut of_answers) = (schema::generator(), schema::generator_of_answers());
    let mut described = Vec::with_capacity(endpoints.len());
    for endpoint in endpoints {
        let parts = endpoint.parts.map(|describe| describe(&mut of_requests).to_value());
        let answer = success(&endpoint, &mut of_answers);
        described.push((endpoint, parts, answer));
    }
    let taken = of_requests.take_definitions(false);
    let answers = of_answers.take_definitions(false);
    link(&mut described, &answers);
    let mut ready = Vec::with_capacity(described.len());
    let mut in_bodies = BTreeSet::new();
    let nodes_of = |parts: &[Value; 3]| parts.each_ref().map(|schema| Node::compile(schema, &taken));
    for (endpoint, parts, _) in &described {
        nulls::names(&parts[2], &taken, &mut in_bodies);
        ready.push(Ready { endpoint: endpoint.clone(), nodes: nodes_of(parts) });
    }
    let mut requests = taken.clone();
    requests.iter_mut().filter(|(name, _)| in_bodies.contains(*name)).for_each(|(_, schema)| nulls::allow(schema));
    let (schemas, renamed) = components::merge(in_form(requests, Side::Request), in_form(answers, Side::Answer));
    let (mut paths, mut tags) = (Map::new(), BTreeSet::new());
    for (Ready { endpoint, nodes }, (_, parts, answer)) in ready.iter().zip(described) {
        let mut operation = operation(endpoint, &parts, nodes, &taken);
        components::rename(&mut operation, &renamed);
        let mut answers = json!({ endpoint.status.as_str(): answer });
        add_refusals(endpoint, nodes.each_ref(), &mut answers);
        operation["responses"] = answers;
        tags.insert(endpoint.tag);
        paths.entry(endpoint.path).or_insert_with(|| json!({}))[endpoint.method.as_str().to_lowercase()] = operation;
    }
    let mut document = document(paths, schemas, &tags);
    components::with_names(&mut document);
    components::without_unused(&mut document);
    without_marks(&mut document);
    (document.to_string(), ready)
}

/// Returns definitions in the form of the document.
fn in_form(mut definitions: Map<String, Value>, side: Side) -> Map<String, Value> {
    definitions.values_mut().for_each(|schema| simplify(schema, side));
    components::lift(&mut definitions);
    definitions
}

fn document(paths: Map<String, Value>, mut definitions: Map<String, Value>, tags: &BTreeSet<&str>) -> Value {
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
    definitions.insert("Refusal".to_owned(), refusal_schema());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Ringer",
            "version": VERSION,
            "description": "Makes live simulated calls to voice agents and measures what the agents do.",
            "contact": { "name": "Operator of this engine" },
            "license": { "name": env!("CARGO_PKG_LICENSE"), "identifier": env!("CARGO_PKG_LICENSE") },
        },
        "servers": [{ "url": "/", "description": "The engine that serves this document." }],
        "tags": tags::describe(tags),
        "paths": paths,
        "components": {
            "schemas": definitions,
            "securitySchemes": {
                "ApiKey": { "type": "apiKey", "in": "header", "name": "X-API-Key", "description": "Key of an organization." },
                "Bearer": { "type": "http", "scheme": "bearer", "description": "The same key as a bearer token." },
                "CarrierToken": {
                    "type": "apiKey", "in": "header", "name": "X-Carrier-Token",
                    "description": "Token of the carrier of text messages, from the engine's settings.",
                },
                "InboundToken": {
                    "type": "http", "scheme": "bearer", "description": "The agent's `P11_inbound_token`.",
                },
                "InboundTokenInQuery": {
                    "type": "apiKey", "in": "query", "name": "token", "description": "The same token in the address.",
                },
            },
        },
    })
}

fn refusal_schema() -> Value {
    json!({
        "type": "object",
        "description": "Reason of a refusal.",
        "required": ["detail"],
        "properties": {
            "detail": { "type": "string", "description": "Reason in words." },
            "code": { "type": "string", "description": "Reason for programs: ENGINE_NOT_REACHABLE, else not there." },
            "request_id": { "type": "string", "description": "Identifier of the request; only for internal errors." },
        },
    })
}

fn issue() -> Value {
    json!({
        "type": "object",
        "description": "One error of a request: its type, its place, a text and the rejected value.",
        "required": ["type", "loc", "msg", "input"],
        "properties": {
            "type": { "type": "string", "description": "Kind of the error, for programs." },
            "loc": {
                "type": "array", "items": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
                "description": "Place of the error: part of the request, then names of fields and indices of items.",
            },
            "msg": { "type": "string", "description": "Text of the error, for people." },
            "input": { "description": "The rejected value." },
            "ctx": { "type": "object", "additionalProperties": true, "description": "Limits that the value broke." },
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
    let mut schema = described.schema.map_or(json!({}), |schema| schema.to_value());
    simplify(&mut schema, Side::Answer);
    for content_type in described.content_types {
        let is_text = content_type.starts_with("text/") || *content_type == OPENMETRICS || *content_type == XML;
        let schema = match *content_type {
            JSON => schema.clone(),
            // Events are judged one by one; their types differ.
            EVENTS => json!({}),
            _ if is_text => json!({ "type": "string" }),
            _ => json!({ "type": "string", "format": "binary" }),
        };
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

/// Returns everything of an operation but its answers.
fn operation(
    endpoint: &Endpoint,
    [path, query, body]: &[Value; 3],
    [path_node, query_node, body_node]: &[Node; 3],
    definitions: &Map<String, Value>,
) -> Value {
    let mut parameters = Vec::new();
    if !path_node.is_nothing() {
        parameters.extend(parameters_of("path", path, definitions));
    }
    if !query_node.is_nothing() {
        parameters.extend(parameters_of("query", query, definitions));
    }
    parameters.extend(headers(endpoint));
    let mut operation = json!({
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "description": about(endpoint),
        "operationId": operation_id(endpoint),
        "security": security(endpoint),
    });
    if endpoint.deprecated {
        operation["deprecated"] = Value::Bool(true);
    }
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if !body_node.is_nothing() || endpoint.takes_raw {
        operation["requestBody"] = request_body(endpoint, body, body_node);
    }
    operation
}

/// Returns the credentials of which a request needs one; none on open routes, and an empty one where it may have one.
fn security(endpoint: &Endpoint) -> Value {
    match endpoint.scope {
        Some(_) => json!([{ "ApiKey": [] }, { "Bearer": [] }]),
        None if endpoint.carrier => json!([{ "CarrierToken": [] }]),
        None if endpoint.agent_token => json!([{ "InboundToken": [] }, { "InboundTokenInQuery": [] }]),
        None if endpoint.reads_key => json!([{}, { "ApiKey": [] }, { "Bearer": [] }]),
        None => json!([]),
    }
}

/// Returns the description of an operation: its summary, and what a request of it needs and may have.
fn about(endpoint: &Endpoint) -> String {
    let access = match endpoint.scope {
        Some(scope) => format!("Needs a key of scope {}", scope.as_str()),
        None if endpoint.carrier => "Needs the carrier's token".to_owned(),
        None if endpoint.agent_token => "Needs the agent's inbound token".to_owned(),
        None if endpoint.reads_key => "Needs no key, and tells more to one of scope admin".to_owned(),
        None => "Needs no key".to_owned(),
    };
    let mut text = format!("{}. {access}", endpoint.summary);
    text += match endpoint.internal {
        InternalToken::Unread => "",
        InternalToken::OrAdmin => " and the internal token, where one is set",
        InternalToken::Needed => " and the internal token",
        InternalToken::Optional => " of scope admin, or the internal token",
    };
    for (is_so, sentence) in [
        (endpoint.idempotent, "A repeated request with the same Idempotency-Key gets the first answer again"),
        (endpoint.if_match, "If-Match makes the change conditional on the version that was read"),
        (endpoint.generates, "Has a rate limit of its own, since it asks a language model"),
        (endpoint.uploads, "The file comes as a form; JSON is taken too"),
        (endpoint.deprecated, "Kept for old callers"),
    ] {
        if is_so {
            text = format!("{text}. {sentence}");
        }
    }
    text + "."
}

/// Returns the header fields that a request may have.
fn headers(endpoint: &Endpoint) -> Vec<Value> {
    let text = || json!({ "type": "string" });
    let most = idempotency::MAX_KEY_CHARS;
    let key = json!({ "type": "string", "minLength": 1, "maxLength": most, "pattern": idempotency::PATTERN });
    let all = [
        (endpoint.if_match, "If-Match", "Entity tag of the version that was read.", text()),
        (endpoint.sends_file, "If-None-Match", "Entity tags of files that the client has.", text()),
        (endpoint.sends_parts, "Range", "Part of the file, `bytes=FIRST-LAST`.", text()),
        (
            endpoint.sends_parts,
            "If-Range",
            "Entity tag of the file that the part belongs to; of another one all is sent.",
            text(),
        ),
        (endpoint.scope.is_some(), "X-Organization-Id", "Organization that the key must belong to.", text()),
        (endpoint.internal.is_read(), "X-Internal-Token", "Token of the internal routes.", text()),
        (endpoint.idempotent, "Idempotency-Key", "Name of the request, chosen by its sender.", key),
    ];
    let of_request = all.into_iter().filter(|(is_so, ..)| *is_so);
    of_request
        .map(|(_, name, about, schema)| {
            json!({ "name": name, "in": "header", "required": false, "description": about, "schema": schema })
        })
        .collect()
}

/// Adds the refusals that an operation can answer with.
fn add_refusals(endpoint: &Endpoint, nodes: [&Node; 3], answers: &mut Value) {
    let refusal = |text: &str| json!({ "description": text, "content": { "application/json": { "schema": reference("Refusal") } } });
    if !endpoint.is_open() && !endpoint.reads_key {
        let takes_input = endpoint.takes_raw || !nodes.iter().all(|node| node.is_nothing());
        let has_body = !nodes[2].is_nothing() || endpoint.takes_raw;
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
            ("415", "The request body is of a type that is not taken", endpoint.takes_raw),
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
    if endpoint.tells_of_calls {
        answers["409"] =
            refusal("The call runs on another engine, which cannot be reached (code ENGINE_NOT_REACHABLE)");
    }
    if endpoint.sends_file {
        answers["304"] = json!({ "description": "The file is the one that If-None-Match names" });
        answers["409"] = refusal("The file is with another engine, and not in the object store yet");
    }
    if endpoint.sends_parts {
        answers["307"] = json!({ "description": "The whole file is at a signed address of the object store" });
        let whole = &answers["200"]["content"];
        answers["206"] = json!({ "description": "The part that Range asks for", "content": whole });
        answers["416"] = json!({ "description": "The file has no such part" });
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
    if endpoint.takes_raw {
        return json!({ "required": true, "content": {
            "application/x-protobuf": { "schema": { "type": "string", "format": "binary" } },
            "application/json": { "schema": { "type": "object" } },
        } });
    }
    let mut schema = schema.clone();
    simplify(&mut schema, Side::Request);
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

fn parameters_of(place: &str, schema: &Value, definitions: &Map<String, Value>) -> Vec<Value> {
    let schema = resolve(schema, definitions);
    let required = schema.get("required").and_then(Value::as_array);
    let properties = schema.get("properties").and_then(Value::as_object);
    let parameter = |(name, property): (&String, &Value)| {
        let required = place == "path" || required.is_some_and(|all| all.iter().any(|one| one == name));
        let mut property = property.clone();
        let about = property.as_object_mut().and_then(|property| property.shift_remove("description"));
        without_null(&mut property);
        simplify(&mut property, Side::Request);
        let mut parameter = json!({ "name": name, "in": place, "required": required, "schema": property });
        parameter["description"] = about.unwrap_or_else(|| format!("The {}.", name.replace('_', " ")).into());
        parameter
    };
    properties.into_iter().flatten().map(parameter).collect()
}

/// Removes null from the types and defaults of a parameter, which is a text and cannot be null.
fn without_null(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    if members.get("default").is_some_and(Value::is_null) {
        members.shift_remove("default");
    }
    if let Some(Value::Array(types)) = members.get_mut("type") {
        types.retain(|one| one != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            members.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
        choices.retain(|one| one["type"] != "null");
    }
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
            for mark in
                [ALIASES, PATCH, ID, PLAIN, NEEDS, NUMBER_OR_UUID, TAG_DEFAULT, OPEN, RULES, UNLESS, UNLESS_VALID]
            {
                map.remove(mark);
            }
            map.values_mut().for_each(without_marks);
        }
        Value::Array(items) => items.iter_mut().for_each(without_marks),
        _ => {}
    }
}
