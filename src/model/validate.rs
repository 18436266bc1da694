//! Validation of a value along its schema: it converts where that is allowed, and reports all problems at once, in the
//! order of the declared fields.
//!
//! The result is the value that the typed struct is built from. Types, lengths, ranges and patterns are checked here;
//! rules that need other fields or other rows are in the service.

use std::borrow::Cow;

use ringer_syntax::json::Json;
use serde_json::{Map, Value};

use crate::scalar::Read;
use crate::schema::{Bound, Field, Kind, Need, Node};
use crate::validation_error::{Problem, Side, Step, ValidationErrors};
use crate::{literal, scalar};

/// Part of a request that a value came from; the first step of its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A segment of the path.
    Path,
    /// The query string of the URL.
    Query,
    /// The body of the request.
    Body,
}

impl Source {
    /// Returns the word for it in a location.
    pub fn word(self) -> &'static str {
        match self {
            Source::Path => "path",
            Source::Query => "query",
            Source::Body => "body",
        }
    }
}

/// Checks `json` against `node`. Problems are added to `issues`; the returned value is complete only when none was
/// added.
pub fn validate(source: Source, node: &Node, json: &Json<'_>, issues: &mut ValidationErrors) -> Value {
    let mut walk = Walk::new(vec![Step::Name(Cow::Borrowed(source.word()))]);
    walk.shows_parent = source == Source::Body;
    let value = walk.node(node, json);
    issues.append(walk.issues);
    value
}

struct Walk<'s> {
    loc: Vec<Step<'s>>,
    issues: ValidationErrors,
    /// True once something had to be converted: a plain union prefers a member that takes the value as it stands.
    converted: bool,
    /// True: the error of a missing field shows the object that lacks it; false: it shows null, as for a parameter.
    shows_parent: bool,
    /// Names of fields that the next object must have in addition to those of its schema.
    needed: &'s [String],
}

impl<'s> Walk<'s> {
    fn new(loc: Vec<Step<'s>>) -> Walk<'s> {
        Walk { loc, issues: ValidationErrors::default(), converted: false, shows_parent: true, needed: &[] }
    }

    fn fail(&mut self, problem: &Problem, input: &Json<'_>) -> Value {
        self.issues.add(&self.loc, problem, input);
        Value::Null
    }

    fn inside(&mut self, step: Step<'s>, node: &'s Node, json: &Json<'_>) -> Value {
        self.loc.push(step);
        let value = self.node(node, json);
        self.loc.pop();
        value
    }

    fn keep<T: Into<Value>>(&mut self, read: Result<Read<T>, Problem>, json: &Json<'_>) -> Value {
        match read {
            Ok(read) => {
                self.converted |= read.converted;
                read.value.into()
            }
            Err(problem) => self.fail(&problem, json),
        }
    }

    fn node(&mut self, node: &'s Node, json: &Json<'_>) -> Value {
        if node.nullable && *json == Json::Null {
            return Value::Null;
        }
        match &node.kind {
            Kind::Any => self.any(node, json),
            Kind::Text { least, most, pattern } => {
                let read = scalar::string(json).and_then(|read| {
                    let count = read.value.chars().count() as u64;
                    match pattern {
                        _ if count < *least => Err(Problem::string_too_short(*least)),
                        _ if count > *most => Err(Problem::string_too_long(*most)),
                        Some(pattern) if !pattern.is_match(read.value) => Err(Problem::pattern(pattern.as_str())),
                        _ => Ok(read),
                    }
                });
                self.keep(read, json)
            }
            Kind::TextId => self.keep(scalar::text_id(json), json),
            Kind::Uuid => self.keep(scalar::uuid(json), json),
            Kind::NumberOrUuid => self.keep(scalar::number_or_uuid(json), json),
            Kind::Timestamp => self.keep(scalar::timestamp(json), json),
            Kind::Date => self.keep(scalar::date(json), json),
            Kind::Url => self.keep(scalar::url(json), json),
            Kind::Integer(bounds) => {
                let read = scalar::integer(json);
                self.keep(read.and_then(|read| within(bounds, read.value as f64).map(|()| read)), json)
            }
            Kind::Number(bounds) => {
                let read = scalar::number(json);
                self.keep(read.and_then(|read| within(bounds, read.value).map(|()| read)), json)
            }
            Kind::Boolean => self.keep(scalar::boolean(json), json),
            Kind::Choice { values, expected, constant } => match json {
                Json::Text(text) if values.iter().any(|value| value == text) => Value::from(text.as_ref()),
                _ => {
                    let kind = if *constant { "literal_error" } else { "enum" };
                    self.fail(&Problem::choice(kind, expected), json)
                }
            },
            Kind::List { item, least, most } => self.list(item, *least, *most, json),
            Kind::Fields(fields, others) => self.fields(fields, others.as_deref(), json),
            Kind::Map(values) => self.map(values, json),
            Kind::Open(values) => match json {
                Json::Object(_) => self.map(values, json),
                _ => self.fail(&Problem::plain("model_attributes_type"), json),
            },
            Kind::Tagged { tag, members, expected, default } => {
                self.walk_tagged(tag, members, expected, default.as_deref(), json)
            }
            Kind::Plain(members) => self.plain(members, json),
        }
    }

    /// Accepts every value, except numbers that no program could hold.
    fn any(&mut self, any: &'s Node, json: &Json<'_>) -> Value {
        match json {
            Json::Number(_) => match json.to_value() {
                Value::Null => self.fail(&Problem::plain("finite_number"), json),
                _ => json.to_exact_value(),
            },
            Json::Array(_) => self.list(any, 0, u64::MAX, json),
            Json::Object(_) => self.map(any, json),
            Json::Null | Json::Bool(_) | Json::Text(_) => json.to_value(),
        }
    }

    fn list(&mut self, item: &'s Node, least: u64, most: u64, json: &Json<'_>) -> Value {
        let Json::Array(items) = json else { return self.fail(&Problem::plain("list_type"), json) };
        if items.len() as u64 > most {
            return self.fail(&Problem::too_long(most, items.len()), json);
        }
        let before = self.issues.len();
        let walked = items.iter().enumerate().map(|(at, one)| self.inside(Step::Index(at), item, one)).collect();
        // The number of items is only checked when all of them are valid.
        if (items.len() as u64) < least && self.issues.len() == before {
            return self.fail(&Problem::too_short(least, items.len()), json);
        }
        Value::Array(walked)
    }

    fn map(&mut self, values: &'s Node, json: &Json<'_>) -> Value {
        let Json::Object(entries) = json else { return self.fail(&Problem::plain("dict_type"), json) };
        let mut map = Map::new();
        for (key, one) in entries {
            self.entry(&mut map, key, values, one);
        }
        Value::Object(map)
    }

    /// Validates a member whose name is the caller's text; the copy of the name in the location lives only as long as
    /// that.
    fn entry(&mut self, map: &mut Map<String, Value>, key: &str, node: &'s Node, json: &Json<'_>) {
        let value = self.inside(Step::Name(Cow::Owned(key.to_owned())), node, json);
        map.insert(key.to_owned(), value);
    }

    fn fields(&mut self, fields: &'s [Field], others: Option<&'s Node>, json: &Json<'_>) -> Value {
        let Json::Object(members) = json else { return self.fail(&Problem::plain("model_attributes_type"), json) };
        let mut map = Map::new();
        let needed = std::mem::take(&mut self.needed);
        for field in fields {
            let given = find_field(field, json);
            let stands_alone = |other: &String| match json.get(other) {
                None | Some(Json::Null) => true,
                Some(value) => field.unless_valid && !takes(fields, other, value),
            };
            let required = field.required || field.unless.as_ref().is_some_and(stands_alone);
            let stands = |need: &&Need| matches!(json.get(&need.beside), Some(Json::Text(text)) if *text == need.value);
            let inside: &[String] = field.needs.iter().find(stands).map_or(&[], |need| &need.names);
            let Some((name, value)) = given else {
                if required || !inside.is_empty() || needed.contains(&field.name) {
                    self.loc.push(Step::Name(Cow::Borrowed(&field.name)));
                    let input = if self.shows_parent { json } else { &Json::Null };
                    self.fail(&Problem::plain("missing"), input);
                    self.loc.pop();
                }
                continue;
            };
            let absent = *value == Json::Null && !required && !field.node.nullable;
            self.needed = inside;
            let walked = match absent {
                false => Some(self.inside(Step::Name(Cow::Borrowed(name)), &field.node, value)),
                true if field.patch => cleared_value(&field.node),
                true => None,
            };
            if let Some(walked) = walked {
                map.insert(field.name.clone(), walked);
            }
        }
        self.needed = &[];
        let Some(others) = others else { return Value::Object(map) };
        for (key, one) in members.iter().filter(|(key, _)| fields.iter().all(|field| field.name != *key)) {
            self.entry(&mut map, key, others, one);
        }
        Value::Object(map)
    }

    fn walk_tagged(
        &mut self,
        tag: &'s str,
        members: &'s [(String, Node)],
        expected: &str,
        default: Option<&str>,
        json: &Json<'_>,
    ) -> Value {
        if !matches!(json, Json::Object(_)) {
            return self.fail(&Problem::plain("model_attributes_type"), json);
        }
        let meant = default.filter(|_| matches!(json.get(tag), None | Some(Json::Null)));
        if let Some((name, node)) = members.iter().find(|(name, _)| meant == Some(name.as_str())) {
            let mut walked = self.inside(Step::Name(Cow::Borrowed(name)), node, json);
            if let Value::Object(fields) = &mut walked {
                fields.insert(tag.to_owned(), name.as_str().into());
            }
            return walked;
        }
        let Some(value) = json.get(tag) else { return self.fail(&Problem::tag_missing(tag), json) };
        let text = literal::of_tag(value);
        match members.iter().find(|(name, _)| matches!(value, Json::Text(_)) && *name == text) {
            Some((name, node)) => self.inside(Step::Name(Cow::Borrowed(name)), node, json),
            None => self.fail(&Problem::tag_invalid(tag, &text, expected), json),
        }
    }

    /// Returns the value of the first member that accepts the input unconverted, else of the first that accepts it at
    /// all; else adds all errors.
    fn plain(&mut self, members: &'s [(String, Node)], json: &Json<'_>) -> Value {
        let mut lax = None;
        let mut refused = ValidationErrors::default();
        for (name, node) in members {
            let mut attempt = Walk::new(self.loc.clone());
            attempt.shows_parent = self.shows_parent;
            let value = attempt.inside(Step::Name(Cow::Borrowed(name)), node, json);
            match (attempt.issues.is_empty(), attempt.converted) {
                (true, false) => return value,
                (true, true) => lax = lax.or(Some(value)),
                (false, _) => refused.append(attempt.issues),
            }
        }
        match lax {
            Some(value) => {
                self.converted = true;
                value
            }
            None => {
                self.issues.append(refused);
                Value::Null
            }
        }
    }
}

/// True if a field takes a value.
fn takes(fields: &[Field], name: &str, value: &Json<'_>) -> bool {
    let field = fields.iter().find(|field| field.name == name);
    field.is_some_and(|field| {
        let mut attempt = Walk::new(Vec::new());
        attempt.node(&field.node, value);
        attempt.issues.is_empty()
    })
}

/// Returns a field under its name, else under an alias, with the name that was sent. One that holds null hides no
/// other.
fn find_field<'a, 'j, 's: 'a>(field: &'s Field, json: &'a Json<'j>) -> Option<(&'s str, &'a Json<'j>)> {
    let names = std::iter::once(&field.name).chain(&field.aliases);
    let mut sent = names.filter_map(|name| Some((name.as_str(), json.get(name)?)));
    let first = sent.next()?;
    Some(if *first.1 == Json::Null { sent.find(|(_, value)| **value != Json::Null).unwrap_or(first) } else { first })
}

/// Returns the value that null gives to a field of a partial update that is never null; `None`: the field stays.
///
/// Collections that may be empty are emptied.
fn cleared_value(node: &Node) -> Option<Value> {
    match &node.kind {
        Kind::List { least: 0, .. } => Some(Value::Array(Vec::new())),
        Kind::Map(_) => Some(Value::Object(Map::new())),
        Kind::Any => Some(Value::Null),
        Kind::Fields(fields, _) if fields.iter().all(|field| !field.required) => Some(Value::Object(Map::new())),
        _ => None,
    }
}

fn within(bounds: &[Bound], value: f64) -> Result<(), Problem> {
    let breaks = |bound: &&Bound| match bound.side {
        Side::Above => value <= bound.limit,
        Side::AtLeast => value < bound.limit,
        Side::Below => value >= bound.limit,
        Side::AtMost => value > bound.limit,
    };
    match bounds.iter().find(breaks) {
        Some(bound) => Err(Problem::beyond_bound(bound.side, &bound.shown)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use ringer_syntax::json::read_text;
    use schemars::JsonSchema;
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct All {
        #[serde(default)]
        plan: Option<Plan>,
        #[serde(default)]
        scalar: Option<Scalar>,
        #[serde(default)]
        either: Option<Lax>,
        #[serde(default)]
        #[schemars(extend("format" = "uri"))]
        link: Option<String>,
        #[serde(default)]
        #[schemars(extend("format" = "date"))]
        day: Option<String>,
        #[serde(default)]
        #[schemars(extend("format" = "date-time"))]
        at: Option<String>,
        #[serde(default)]
        said: Documented,
    }

    /// Told apart by trying.
    #[derive(Deserialize, JsonSchema)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only its schema is used")]
    enum Plan {
        Daily(Daily),
        Cron(Cron),
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Daily {
        frequency: OnlyDaily,
        #[schemars(regex(pattern = r"^\d{2}:\d{2}$"))]
        time: String,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Cron {
        expression: String,
    }

    #[derive(Deserialize, JsonSchema)]
    enum OnlyDaily {
        #[serde(rename = "daily")]
        Daily,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only its schema is used")]
    enum Scalar {
        Int(i64),
        Float(f64),
        Bool(bool),
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only its schema is used")]
    enum Lax {
        Number(i64),
        Flag(bool),
    }

    #[derive(Default, Deserialize, JsonSchema)]
    enum Documented {
        /// The first choice, the default.
        #[default]
        One,
        /// The second of the choices.
        Two,
        Three,
    }

    fn walk_body(body: &str) -> (Value, ValidationErrors) {
        let mut issues = ValidationErrors::default();
        let node = Node::of::<All>();
        let value = validate(Source::Body, &node, &read_text(body).expect("the case is JSON"), &mut issues);
        (value, issues)
    }

    #[test]
    fn values_are_made_canonical() {
        for (body, expect) in [
            (r#"{"plan":{"expression":"* * * * *","x":1}}"#, json!({"plan":{"expression":"* * * * *"}})),
            (r#"{"plan":{"frequency":"daily","time":"09:30"}}"#, json!({"plan":{"frequency":"daily","time":"09:30"}})),
            (r#"{"scalar":1}"#, json!({"scalar":1})),
            (r#"{"scalar":1.5}"#, json!({"scalar":1.5})),
            // No member takes it as it stands: the first that takes it at all.
            (r#"{"scalar":"7"}"#, json!({"scalar":7})),
            // The second member takes it as it stands.
            (r#"{"either":true}"#, json!({"either":true})),
            (r#"{"day":"2026-01-05T00:00:00Z"}"#, json!({"day":"2026-01-05"})),
            (r#"{"at":"2026-01-05 10:00+01:00"}"#, json!({"at":"2026-01-05T09:00:00.000000Z"})),
            (r#"{"said":"Two","link":"https://a.example"}"#, json!({"link":"https://a.example","said":"Two"})),
            (r#"{"said":null,"link":null}"#, json!({"link":null})),
        ] {
            let (value, issues) = walk_body(body);
            assert!(issues.is_empty(), "{body}: {}", issues.body());
            assert_eq!(value, expect, "{body}");
        }
    }

    fn check(body: &str, expect: &[(&str, Value)]) {
        let (_, issues) = walk_body(body);
        let got: Value = serde_json::from_str(&issues.body()).expect("items are JSON");
        let got: Vec<(&str, &Value)> = got["detail"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| (one["type"].as_str().unwrap(), &one["loc"]))
            .collect();
        let expect: Vec<(&str, &Value)> = expect.iter().map(|(kind, loc)| (*kind, loc)).collect();
        assert_eq!(got, expect, "{body}");
    }

    #[test]
    fn a_plain_union_reports_every_member() {
        check(
            r#"{"plan":{"frequency":"weekly","time":"9:30"}}"#,
            &[
                ("enum", json!(["body", "plan", "Daily", "frequency"])),
                ("string_pattern_mismatch", json!(["body", "plan", "Daily", "time"])),
                ("missing", json!(["body", "plan", "Cron", "expression"])),
            ],
        );
        check(
            r#"{"plan":5,"scalar":[]}"#,
            &[
                ("model_attributes_type", json!(["body", "plan", "Daily"])),
                ("model_attributes_type", json!(["body", "plan", "Cron"])),
                ("int_type", json!(["body", "scalar", "int"])),
                ("float_type", json!(["body", "scalar", "float"])),
                ("bool_type", json!(["body", "scalar", "bool"])),
            ],
        );
    }

    #[test]
    fn formats_report_their_own_errors() {
        check(
            r#"{"link":"x","day":"2026-01-05T01:00","at":"soon","said":"four"}"#,
            &[
                ("url_parsing", json!(["body", "link"])),
                ("date_from_datetime_inexact", json!(["body", "day"])),
                ("datetime_from_date_parsing", json!(["body", "at"])),
                ("enum", json!(["body", "said"])),
            ],
        );
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Choosy {
        kind: String,
        #[serde(default)]
        #[schemars(extend("x-needs" = { "kind": { "a": ["x", "y"] } }))]
        config: Config,
    }

    #[derive(Default, Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "only its schema is used")]
    struct Config {
        #[serde(default)]
        x: Option<i64>,
        #[serde(default)]
        y: Option<i64>,
    }

    #[test]
    fn what_stands_beside_an_object_says_what_it_must_have() {
        for (body, expect) in [
            (r#"{"kind":"b"}"#, json!([])),
            (r#"{"kind":"b","config":{}}"#, json!([])),
            (r#"{"kind":"a","config":{"x":1,"y":2}}"#, json!([])),
            (r#"{"kind":"a","config":{"y":2}}"#, json!([["body", "config", "x"]])),
            (r#"{"kind":"a","config":{}}"#, json!([["body", "config", "x"], ["body", "config", "y"]])),
            (r#"{"kind":"a"}"#, json!([["body", "config"]])),
        ] {
            let mut issues = ValidationErrors::default();
            validate(Source::Body, &Node::of::<Choosy>(), &read_text(body).expect("JSON"), &mut issues);
            let got: Value = serde_json::from_str(&issues.body()).expect("items are JSON");
            let got: Vec<&Value> = got["detail"].as_array().expect("a list").iter().map(|one| &one["loc"]).collect();
            assert_eq!(json!(got), expect, "{body}");
        }
    }

    #[test]
    fn a_union_may_know_what_an_object_without_a_tag_is() {
        use crate::text::AgentMessage;

        let message = json!({"simulation_result_id":"1","message":"x","type":"message"});
        for (body, expect) in [
            (r#"{"simulation_result_id":1,"message":"x"}"#, Ok(message.clone())),
            (r#"{"simulation_result_id":"1","message":"x","type":null}"#, Ok(message.clone())),
            (r#"{"simulation_result_id":"1","message":"x","type":"message"}"#, Ok(message)),
            (r#"{"simulation_result_id":"1"}"#, Err(json!(["body", "message", "message"]))),
            (r#"{"simulation_result_id":"1","type":"tool_call"}"#, Err(json!(["body", "tool_call", "name"]))),
            (r#"{"type":"other"}"#, Err(json!(["body"]))),
        ] {
            let mut issues = ValidationErrors::default();
            let value =
                validate(Source::Body, &Node::of::<AgentMessage>(), &read_text(body).expect("JSON"), &mut issues);
            let got: Value = serde_json::from_str(&issues.body()).expect("items are JSON");
            let got = if issues.is_empty() { Ok(value) } else { Err(got["detail"][0]["loc"].clone()) };
            assert_eq!(got, expect, "{body}");
        }
    }

    #[test]
    fn the_number_of_items_is_limited() {
        let body = format!(r#"{{"plan":{{}},"x":[{}1]}}"#, "1,".repeat(9));
        assert_eq!(walk_body(&body).1.len(), 3);
        let mut issues = ValidationErrors::default();
        let node = Node::of::<Vec<String>>();
        let many = format!("[{}1]", "1,".repeat(20_000));
        validate(Source::Body, &node, &read_text(&many).expect("JSON"), &mut issues);
        assert_eq!(issues.len(), crate::validation_error::MAX_ISSUES);
    }
}
