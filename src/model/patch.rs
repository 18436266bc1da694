//! A partial update: the fields of a spec that were given, apart from those that were not. Absent and null stay
//! different.
//!
//! The validation has already replaced null by its meaning for the field. That is null for a nullable field, empty for
//! a collection, and absent for a name, mode, type, number or flag.

use std::borrow::Cow;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::schema::PATCH;

/// The given fields of a `T`.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch<T> {
    given: Map<String, Value>,
    of: PhantomData<fn() -> T>,
}

impl<T> Patch<T> {
    /// Returns the given fields by name, in the order of declaration.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.given
    }

    /// Returns the given fields, owned.
    pub fn into_given(self) -> Map<String, Value> {
        self.given
    }

    /// Returns `stored` with the given fields replaced; a given array or object replaces the whole old value.
    ///
    /// # Errors
    /// A given field has not the type that `T` declares, which the validation has excluded.
    pub fn apply(&self, stored: &T) -> serde_json::Result<T>
    where
        T: Serialize + DeserializeOwned,
    {
        let mut fields = serde_json::to_value(stored)?;
        if let Value::Object(fields) = &mut fields {
            for (name, value) in &self.given {
                fields.insert(name.clone(), value.clone());
            }
        }
        serde_json::from_value(fields)
    }
}

impl<T> From<Map<String, Value>> for Patch<T> {
    fn from(given: Map<String, Value>) -> Patch<T> {
        Patch { given, of: PhantomData }
    }
}

impl<'de, T> Deserialize<'de> for Patch<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Patch<T>, D::Error> {
        Map::deserialize(deserializer).map(Patch::from)
    }
}

impl<T> Serialize for Patch<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.given.serialize(serializer)
    }
}

impl<T: JsonSchema> JsonSchema for Patch<T> {
    fn schema_name() -> Cow<'static, str> {
        Cow::Owned(format!("{}Patch", T::schema_name()))
    }

    fn schema_id() -> Cow<'static, str> {
        Cow::Owned(format!("{}Patch", T::schema_id()))
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = T::json_schema(generator);
        schema.remove("required");
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            for property in properties.values_mut() {
                if !property.is_object() {
                    *property = Value::Object(Map::new());
                }
                if let Value::Object(property) = property {
                    property.remove("default");
                    property.insert(PATCH.to_owned(), Value::Bool(true));
                }
            }
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use ringer_syntax::json;

    use super::*;
    use crate::schema::Node;
    use crate::validate::{Source, validate};
    use crate::validation_error::ValidationErrors;

    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
    struct Spec {
        name: String,
        #[serde(default)]
        mode: Mode,
        #[serde(default)]
        flag: bool,
        #[serde(default)]
        note: Option<String>,
        #[serde(default)]
        tags: Vec<String>,
        #[serde(default)]
        free: Map<String, Value>,
    }

    #[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
    enum Mode {
        /// The first one, the default.
        #[default]
        A,
        B,
    }

    fn stored_spec() -> Spec {
        let free = Map::from_iter([("k".to_owned(), Value::from(1))]);
        Spec { name: "n".into(), mode: Mode::B, flag: true, note: Some("old".into()), tags: vec!["t".into()], free }
    }

    fn check(body: &str, expect: impl Fn(&mut Spec)) {
        let mut issues = ValidationErrors::default();
        let node = Node::of::<Patch<Spec>>();
        let value = validate(Source::Body, &node, &json::read_text(body).expect("JSON"), &mut issues);
        assert!(issues.is_empty(), "{}", issues.body());
        let patch: Patch<Spec> = serde_json::from_value(value).expect("walked");
        let mut expected = stored_spec();
        expect(&mut expected);
        assert_eq!(patch.apply(&stored_spec()).expect("walked"), expected, "for {body}");
    }

    #[test]
    fn absent_and_null_stay_different() {
        check("{}", |_| {});
        check(r#"{"note":null}"#, |spec| spec.note = None);
        check(r#"{"name":null,"mode":null,"flag":null}"#, |_| {});
        check(r#"{"tags":null,"free":null}"#, |spec| {
            spec.tags.clear();
            spec.free.clear();
        });
        check(r#"{"name":"m","mode":"A","flag":"no","tags":["a","b"],"free":{"x":null}}"#, |spec| {
            *spec = Spec {
                name: "m".into(),
                mode: Mode::A,
                flag: false,
                note: Some("old".into()),
                tags: vec!["a".into(), "b".into()],
                free: Map::from_iter([("x".to_owned(), Value::Null)]),
            };
        });
    }
}
