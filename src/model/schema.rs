//! JSON Schema (2020-12, as derived from the model's structs) compiled into a tree that `validate` walks. Compiled once
//! at start: no reference is resolved and no expression is built while a request is read. It understands what the
//! derive writes and marks of its own (`ALIASES`, `PATCH`, `ID`, `PLAIN`, `NUMBER_OR_UUID`, `NEEDS`, `OPEN`, `UNLESS`,
//! `UNLESS_VALID`), not every JSON Schema.

use std::borrow::Cow;

use regex_lite::Regex;
use ringer_syntax::phone::e164_pattern;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value};

use crate::validation_error::Side;

/// Schema key of a field: further names under which the field is read (array of strings).
pub const ALIASES: &str = "x-aliases";
/// Schema key of a field of a partial update: null clears it or leaves it, as its type says.
pub const PATCH: &str = "x-patch";
/// Schema key of a string: an integer is taken as its decimal text.
pub const ID: &str = "x-id";
/// Schema key of a union: its members are told apart by trying them, also where a field is constant in each.
pub const PLAIN: &str = "x-plain";
/// Schema key of a tagged union: the tag of an object that has none.
pub const TAG_DEFAULT: &str = "x-tag-default";
/// Schema key of a path segment: digits are an integer, anything else a uuid.
pub const NUMBER_OR_UUID: &str = "x-number-or-uuid";
/// Schema key of a field that holds an object: fields that the object must have when a field beside it has some value.
///
/// `{"kind": {"a": ["x", "y"]}}`: x and y, when kind is a.
pub const NEEDS: &str = "x-needs";
/// Schema key of an object whose members are judged as a whole: the walker asks only for an object.
pub const OPEN: &str = "x-open";
/// Schema key of a field that need not be there where the field of this name is given.
pub const UNLESS: &str = "x-unless";
/// Schema key of a field with `UNLESS`, true: the other field counts only where it holds a value of its type.
pub const UNLESS_VALID: &str = "x-unless-valid";
/// Schema key of a field of a request: schema keywords whose rules the service checks, for the document alone.
pub const RULES: &str = "x-rules";
/// Place of shared schemas in a document, a JSON pointer.
pub const DEFINITIONS: &str = "/components/schemas";

/// Most schemas inside each other; a schema that contains itself is open (`Any`) below this.
const MAX_NESTING: usize = 24;

/// Constraint on a value.
#[derive(Clone, Debug)]
pub struct Node {
    /// Type with its limits.
    pub kind: Kind,
    /// True if null is a value.
    pub nullable: bool,
}

/// A type with its limits.
#[derive(Clone, Debug)]
pub enum Kind {
    /// A JSON value of any type.
    Any,
    /// A string of `least` to `most` characters that matches `pattern`.
    Text { least: u64, most: u64, pattern: Option<Regex> },
    /// A string that may be written as an integer.
    TextId,
    /// A uuid in any of its forms.
    Uuid,
    /// An integer when it is written in digits, else a uuid.
    NumberOrUuid,
    /// A point in time.
    Timestamp,
    /// A date of the calendar.
    Date,
    /// An http or https URL.
    Url,
    /// An integer within bounds.
    Integer(Vec<Bound>),
    /// A finite number within bounds.
    Number(Vec<Bound>),
    /// A boolean, or a word for one.
    Boolean,
    /// One of some strings; `expected` is their list for people, `constant` tells a fixed value from an enumeration.
    Choice { values: Vec<String>, expected: String, constant: bool },
    /// An array of `least` to `most` items.
    List { item: Box<Node>, least: u64, most: u64 },
    /// An object with named fields in order of declaration, and what its other members are, where those are kept.
    Fields(Vec<Field>, Option<Box<Node>>),
    /// An object with free names.
    Map(Box<Node>),
    /// An object whose members, each of the type inside, are judged as a whole elsewhere.
    Open(Box<Node>),
    /// An object whose kind is told by the field `tag`; `expected` lists all tags, `default` is the one of an object
    /// without.
    Tagged { tag: String, members: Vec<(String, Node)>, expected: String, default: Option<String> },
    /// A union whose members are told apart by trying them.
    Plain(Vec<(String, Node)>),
}

/// A limit of a number.
#[derive(Clone, Debug)]
pub struct Bound {
    /// Side of the limit on which values are wrong.
    pub side: Side,
    /// Limit as a number.
    pub limit: f64,
    /// Limit as it is shown, in the declared type.
    pub shown: Value,
}

/// Fields that an object must have when `beside` has this value.
#[derive(Clone, Debug)]
pub struct Need {
    /// Name of the field beside the object.
    pub beside: String,
    /// Value of that field.
    pub value: String,
    /// Names of the fields that the object must have.
    pub names: Vec<String>,
}

/// A named field of an object.
#[derive(Clone, Debug)]
pub struct Field {
    /// Name of the field in JSON.
    pub name: String,
    /// Other names under which the field is read.
    pub aliases: Vec<String>,
    /// True if the field must be present.
    pub required: bool,
    /// True for a field of a partial update.
    pub patch: bool,
    /// Fields that its object must have, depending on fields beside it.
    pub needs: Vec<Need>,
    /// Name of the field beside it without which it must be present.
    pub unless: Option<String>,
    /// True if that field counts only where it holds a value of its type.
    pub unless_valid: bool,
    /// Constraint on its value.
    pub node: Node,
}

/// Returns the rule (for [`RULES`]) that a text is one of these words.
pub fn one_of(words: impl IntoIterator<Item = &'static str>) -> Value {
    serde_json::json!({ "enum": words.into_iter().collect::<Vec<_>>() })
}

/// Returns the rule that a text is a telephone number in E.164, as [`e164`](ringer_syntax::phone::e164) reads it.
pub fn telephone_number() -> Value {
    serde_json::json!({ "pattern": e164_pattern() })
}

/// Returns the generator of all schemas of the interface; OpenAPI 3.1 uses JSON Schema 2020-12.
pub fn generator() -> SchemaGenerator {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = Cow::Borrowed(DEFINITIONS);
    settings.meta_schema = None;
    settings.into_generator()
}

/// Returns the same generator for answers: it requires every field that is always written.
pub fn generator_of_answers() -> SchemaGenerator {
    let mut settings = SchemaSettings::draft2020_12().for_serialize();
    settings.definitions_path = Cow::Borrowed(DEFINITIONS);
    settings.meta_schema = None;
    settings.into_generator()
}

impl Node {
    /// Returns the tree of a type with its own definitions.
    pub fn of<T: JsonSchema>() -> Node {
        let mut generator = generator();
        let schema = generator.subschema_for::<T>().to_value();
        Node::compile(&schema, generator.definitions())
    }

    /// Returns the tree of `schema`, whose references point into `definitions`.
    pub fn compile(schema: &Value, definitions: &Map<String, Value>) -> Node {
        Compiler { definitions }.node(schema, 0)
    }

    /// True for an object that declares no field at all: such a source is not read. One that may be absent is: what is
    /// sent has to be an object.
    pub fn is_nothing(&self) -> bool {
        !self.nullable && matches!(&self.kind, Kind::Fields(fields, None) if fields.is_empty())
    }
}

struct Compiler<'d> {
    definitions: &'d Map<String, Value>,
}

impl Compiler<'_> {
    fn node(&self, schema: &Value, depth: usize) -> Node {
        let any = Node { kind: Kind::Any, nullable: false };
        let Value::Object(schema) = schema else { return any };
        if depth > MAX_NESTING {
            return any;
        }
        if schema.contains_key(OPEN) {
            return Node { kind: Kind::Open(Box::new(any)), nullable: false };
        }
        if schema.contains_key(NUMBER_OR_UUID) {
            return Node { kind: Kind::NumberOrUuid, nullable: false };
        }
        // Keys beside a reference belong to this place, and follow its order.
        if let Some((_, target)) = self.target(schema)
            && !schema.contains_key("properties")
            && !schema.contains_key("enum")
        {
            return self.node(target, depth + 1);
        }
        if let Some(Value::Array(members)) = schema.get("anyOf").or(schema.get("oneOf")).or(schema.get("allOf")) {
            let mut node = self.members(members, schema.contains_key(PLAIN), depth);
            if let (Kind::Tagged { tag, members, default, .. }, Some(meant)) =
                (&mut node.kind, schema.get(TAG_DEFAULT).and_then(Value::as_str))
            {
                *default = Some(meant.to_owned());
                let meant = members.iter_mut().filter(|(name, _)| name == meant);
                for (_, Node { kind, .. }) in meant {
                    let Kind::Fields(fields, _) = kind else { continue };
                    fields.iter_mut().filter(|field| field.name == *tag).for_each(|field| field.required = false);
                }
            }
            return node;
        }
        if let Some(values) = choices(schema) {
            let nullable = schema.get("enum").and_then(Value::as_array).is_some_and(|all| all.contains(&Value::Null));
            return Node { kind: choice(values, schema.contains_key("const")), nullable };
        }
        self.typed_node(schema, depth)
    }

    fn target<'a>(&'a self, schema: &'a Map<String, Value>) -> Option<(&'a str, &'a Value)> {
        let name = schema.get("$ref")?.as_str()?.rsplit('/').next()?;
        Some((name, self.definitions.get(name)?))
    }

    /// Returns the schema behind a reference, else the schema itself.
    fn resolve<'a>(&'a self, schema: &'a Value) -> &'a Value {
        let target = schema.as_object().and_then(|schema| self.target(schema));
        target.map_or(schema, |(_, target)| target)
    }

    fn typed_node(&self, schema: &Map<String, Value>, depth: usize) -> Node {
        let (types, nullable) = types_of(schema);
        let kind = match types.as_slice() {
            ["string"] if schema.contains_key(ID) => Kind::TextId,
            ["string"] => text(schema),
            ["integer"] => Kind::Integer(bounds(schema, true)),
            ["number"] => Kind::Number(bounds(schema, false)),
            ["boolean"] => Kind::Boolean,
            ["array"] => Kind::List {
                item: Box::new(self.node(schema.get("items").unwrap_or(&Value::Bool(true)), depth + 1)),
                least: schema.get("minItems").and_then(Value::as_u64).unwrap_or(0),
                most: schema.get("maxItems").and_then(Value::as_u64).unwrap_or(u64::MAX),
            },
            ["object"] => self.object(schema, depth),
            _ => Kind::Any,
        };
        Node { kind, nullable }
    }

    fn object(&self, schema: &Map<String, Value>, depth: usize) -> Kind {
        let others = schema.get("additionalProperties").filter(|values| **values != Value::Bool(false));
        let others = others.map(|values| Box::new(self.node(values, depth + 1)));
        let others = match others {
            Some(values) if !schema.contains_key("properties") => return Kind::Map(values),
            others => others,
        };
        let mut fields = Vec::new();
        if let Some((_, Value::Object(base))) = self.target(schema)
            && let Kind::Fields(inherited, _) = self.object(base, depth + 1)
        {
            fields = inherited;
        }
        let required = |name: &str| {
            schema.get("required").and_then(Value::as_array).is_some_and(|all| all.iter().any(|one| one == name))
        };
        for (name, property) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            let aliases = property.get(ALIASES).and_then(Value::as_array).into_iter().flatten();
            fields.push(Field {
                name: name.clone(),
                aliases: aliases.filter_map(Value::as_str).map(str::to_owned).collect(),
                required: required(name),
                patch: property.get(PATCH) == Some(&Value::Bool(true)),
                needs: needs(property),
                unless: property.get(UNLESS).and_then(Value::as_str).map(str::to_owned),
                unless_valid: property.get(UNLESS_VALID) == Some(&Value::Bool(true)),
                node: self.node(property, depth + 1),
            });
        }
        Kind::Fields(fields, others)
    }

    fn members(&self, members: &[Value], plain: bool, depth: usize) -> Node {
        let is_null = |schema: &&Value| schema.get("type").is_some_and(|kind| kind == "null");
        let nullable = members.iter().any(|member| is_null(&member));
        let members: Vec<&Value> = members.iter().filter(|member| !is_null(member)).collect();
        if let [only] = members.as_slice() {
            let node = self.node(only, depth + 1);
            return Node { nullable: nullable || node.nullable, ..node };
        }
        let all_choices: Option<Vec<Vec<String>>> =
            members.iter().map(|member| self.resolve(member).as_object().and_then(choices)).collect();
        if let Some(values) = all_choices {
            return Node { kind: choice(values.concat(), false), nullable };
        }
        let kind = match self.tag_of(&members).filter(|_| !plain) {
            Some(tag) => self.tagged_kind(tag, &members, depth),
            None => Kind::Plain(members.iter().map(|one| (self.name_of(one), self.node(one, depth + 1))).collect()),
        };
        Node { kind, nullable }
    }

    /// Returns the field that is constant in every member; `None`: there is none.
    fn tag_of(&self, members: &[&Value]) -> Option<String> {
        let constant = |schema: &Value, name: &str| {
            let own = |schema: &Value| schema.pointer(&format!("/properties/{name}/const")).is_some();
            own(schema) || own(self.resolve(schema))
        };
        let first = members.first()?;
        let own = first.get("properties").or(self.resolve(first).get("properties"))?.as_object()?;
        own.keys().find(|name| members.iter().all(|member| constant(member, name))).cloned()
    }

    fn tagged_kind(&self, tag: String, members: &[&Value], depth: usize) -> Kind {
        let pointer = format!("/properties/{tag}/const");
        let value = |schema: &Value| schema.pointer(&pointer).and_then(Value::as_str).map(str::to_owned);
        let members: Vec<(String, Node)> = members
            .iter()
            .filter_map(|member| Some((value(member).or_else(|| value(self.resolve(member)))?, *member)))
            .map(|(name, member)| (name, self.node(member, depth + 1)))
            .collect();
        let quoted: Vec<String> = members.iter().map(|(name, _)| format!("'{name}'")).collect();
        Kind::Tagged { tag, members, expected: quoted.join(", "), default: None }
    }

    /// Returns the name of a plain union's member in a location.
    fn name_of(&self, schema: &Value) -> String {
        let reference = schema.as_object().and_then(|schema| self.target(schema)).map(|(name, _)| name);
        let title = schema.get("title").and_then(Value::as_str);
        let scalar = match schema.get("type").and_then(Value::as_str) {
            Some("integer") => "int",
            Some("number") => "float",
            Some("string") => "str",
            Some("boolean") => "bool",
            Some("array") => "list",
            _ => "dict",
        };
        reference.or(title).unwrap_or(scalar).to_owned()
    }
}

fn needs(property: &Value) -> Vec<Need> {
    let words = |list: &Value| -> Vec<String> {
        list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let by_field = property.get(NEEDS).and_then(Value::as_object).into_iter().flatten();
    let by_value = by_field.flat_map(|(beside, values)| {
        values.as_object().into_iter().flatten().map(move |(value, names)| (beside, value, names))
    });
    by_value
        .map(|(beside, value, names)| Need { beside: beside.clone(), value: value.clone(), names: words(names) })
        .collect()
}

fn types_of(schema: &Map<String, Value>) -> (Vec<&str>, bool) {
    let types: Vec<&str> = match schema.get("type") {
        Some(Value::String(one)) => vec![one],
        Some(Value::Array(all)) => all.iter().filter_map(Value::as_str).collect(),
        _ if schema.contains_key("properties") => vec!["object"],
        _ => Vec::new(),
    };
    let nullable = types.contains(&"null");
    (types.into_iter().filter(|one| *one != "null").collect(), nullable)
}

fn choices(schema: &Map<String, Value>) -> Option<Vec<String>> {
    if let Some(constant) = schema.get("const") {
        return constant.as_str().map(|one| vec![one.to_owned()]);
    }
    let values = schema.get("enum")?.as_array()?;
    Some(values.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}

fn choice(values: Vec<String>, constant: bool) -> Kind {
    let quoted: Vec<String> = values.iter().map(|value| format!("'{value}'")).collect();
    let expected = match quoted.as_slice() {
        [all @ .., last] if !all.is_empty() => format!("{} or {last}", all.join(", ")),
        _ => quoted.join(", "),
    };
    Kind::Choice { values, expected, constant }
}

fn text(schema: &Map<String, Value>) -> Kind {
    match schema.get("format").and_then(Value::as_str) {
        Some("uuid") => Kind::Uuid,
        Some("date-time") => Kind::Timestamp,
        Some("date") => Kind::Date,
        Some("uri") => Kind::Url,
        _ => Kind::Text {
            least: schema.get("minLength").and_then(Value::as_u64).unwrap_or(0),
            most: schema.get("maxLength").and_then(Value::as_u64).unwrap_or(u64::MAX),
            pattern: schema.get("pattern").and_then(Value::as_str).map(|pattern| {
                Regex::new(pattern).expect("patterns are written in the model, each is compiled by a test")
            }),
        },
    }
}

/// Returns the bounds of a number, exclusive ones first. Where a type's own bound and a stricter one are both broken,
/// the stricter one is reported.
fn bounds(schema: &Map<String, Value>, integer: bool) -> Vec<Bound> {
    let sides = [
        ("exclusiveMinimum", Side::Above),
        ("minimum", Side::AtLeast),
        ("exclusiveMaximum", Side::Below),
        ("maximum", Side::AtMost),
    ];
    let bound = |(key, side)| {
        let limit = schema.get(key)?.as_f64()?;
        let shown = if integer { Value::from(limit as i64) } else { Value::from(limit) };
        Some(Bound { side, limit, shown })
    };
    sides.into_iter().filter_map(bound).collect()
}
