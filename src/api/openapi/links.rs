//! Links of the document (OpenAPI 3.1, Link Object), from the answer of a creating route to the routes that address
//! what it made. They follow from the words of the paths: `POST /v1/create-folder` makes a folder, and
//! `/v1/folder/{folder_id}` addresses one.
//!
//! With links a generator of request chains covers 75 to 82 of 133 links in 45 s. Without them it covers 3 of 518.

use axum::http::Method;
use serde_json::{Map, Value, json};

use super::ids::operation_id;
use super::resolve;
use crate::endpoint::Endpoint;

/// A parameter of a path and the segment before it.
#[derive(Clone, Copy)]
struct Parameter<'p> {
    name: &'p str,
    segment: &'p str,
}

fn parameters(path: &str) -> impl Iterator<Item = Parameter<'_>> {
    let pairs = path.split('/').zip(path.split('/').skip(1));
    pairs.filter_map(|(segment, next)| Some(Parameter { name: next.strip_prefix('{')?.strip_suffix('}')?, segment }))
}

/// Returns the last word of a name in the singular.
fn kind_of(name: &str) -> &str {
    let last = name.rsplit(['-', '_']).next().unwrap_or(name);
    last.strip_suffix('s').unwrap_or(last)
}

/// A route that makes something, with the fields of its answer.
pub(super) struct Maker<'m> {
    endpoint: &'m Endpoint,
    fields: Option<&'m Map<String, Value>>,
    definitions: &'m Map<String, Value>,
}

impl<'m> Maker<'m> {
    /// Returns the maker for a creating route whose success has the schema `answer`; `None` for other routes.
    pub(super) fn new(
        endpoint: &'m Endpoint,
        answer: &'m Value,
        definitions: &'m Map<String, Value>,
    ) -> Option<Maker<'m>> {
        let makes = endpoint.method == Method::POST && endpoint.idempotent;
        makes.then(|| Maker { endpoint, fields: fields(answer, definitions), definitions })
    }

    /// Returns links to those of `routes` whose path parameters are all known from the request and its answer.
    pub(super) fn links<'r>(&self, routes: impl Iterator<Item = &'r Endpoint>) -> Map<String, Value> {
        let link = |route: &Endpoint| {
            let values = parameters(route.path).map(|one| Some((one, self.value(one)?))).collect::<Option<Vec<_>>>()?;
            let is_made = values.iter().any(|(one, _)| !self.has_parameter(one.name));
            let values: Map<String, Value> =
                values.into_iter().map(|(one, value)| (one.name.to_owned(), value.into())).collect();
            let id = operation_id(route);
            is_made.then(|| (id.clone(), json!({ "operationId": id, "parameters": values })))
        };
        routes.filter(|route| !route.deprecated).filter_map(link).collect()
    }

    fn has_parameter(&self, name: &str) -> bool {
        parameters(self.endpoint.path).any(|own| own.name == name)
    }

    fn makes(&self, kind: &str) -> bool {
        let last = self.endpoint.path.rsplit('/').find(|segment| !segment.starts_with('{')).unwrap_or_default();
        kind == kind_of(last) || kind == self.endpoint.makes
    }

    /// Returns the runtime expression for a parameter's value, from the maker's own path or its answer; `None`: not
    /// known.
    fn value(&self, Parameter { name, segment }: Parameter<'_>) -> Option<String> {
        if self.has_parameter(name) {
            return Some(format!("$request.path.{name}"));
        }
        let thing = name.strip_suffix("_id").unwrap_or(name);
        if !self.makes(kind_of(thing)) && !self.makes(kind_of(segment)) {
            return None;
        }
        let known = self.fields?;
        let own = if name == "id" { format!("{}_id", segment.replace('-', "_")) } else { name.to_owned() };
        let inner = known.get(thing).and_then(|inner| fields(inner, self.definitions));
        let pointer = if known.contains_key(&own) {
            own
        } else if known.contains_key(&format!("{own}s")) {
            format!("{own}s/0")
        } else if known.contains_key("id") {
            "id".to_owned()
        } else {
            inner.filter(|inner| inner.contains_key("id")).map(|_| format!("{thing}/id"))?
        };
        Some(format!("$response.body#/{pointer}"))
    }
}

fn fields<'v>(schema: &'v Value, definitions: &'v Map<String, Value>) -> Option<&'v Map<String, Value>> {
    resolve(schema, definitions).get("properties")?.as_object()
}
