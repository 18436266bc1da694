//! Plain structs, one file a resource: what users write (`...Spec`), what is stored (`...Doc`) and what they read
//! (`...Record`). The schemas that schemars derives from a Spec serve validation, the API description and storage
//! alike.
//!
//! No IO, no axum, no sqlx. Schema words beyond JSON Schema: `x-id` marks a string id that may also arrive as an
//! integer, `x-number-or-uuid` a path segment that is either.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// Declares an enum of fixed words: variants, wire words, `as_str`, `parse`, and a default where one is named. One that
/// is `kept` has a last variant for the words of other releases, which are read and written as they stand.
macro_rules! words {
    ($(#[$doc:meta])* kept $name:ident { $($variant:ident = $word:literal),+ $(,)? } $(default $default:ident)?) => {
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($variant,)+
            /// A word that this release does not know.
            Unknown($crate::kept::Unknown),
        }

        impl $name {
            /// Every value that this release knows, in declared order.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// Returns the word as in JSON and in the store.
            pub fn as_str(self) -> &'static str {
                match self {
                    $($name::$variant => $word,)+
                    $name::Unknown(word) => word.as_str(),
                }
            }

            /// Returns the value of a word that this release knows, exact and case-sensitive; `None`: unknown.
            pub fn parse(word: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|value| value.as_str() == word)
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> $name {
                $name::parse(word).unwrap_or_else(|| $name::Unknown($crate::kept::Unknown::keep(word)))
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<$name, D::Error> {
                from.deserialize_str($crate::kept::Words::default())
            }
        }

        impl schemars::JsonSchema for $name {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn schema_id() -> std::borrow::Cow<'static, str> {
                concat!(module_path!(), "::", stringify!($name)).into()
            }

            fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $(#[$doc])*
                #[derive(schemars::JsonSchema)]
                #[expect(dead_code, reason = "only its schema is used")]
                enum Known {
                    $(#[serde(rename = $word)] $variant),+
                }
                Known::json_schema(generator)
            }
        }

        words!(@default $name $($default)?);
    };
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? } $(default $default:ident)?) => {
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name {
            $(#[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// Every value, in declared order.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// Returns the word as in JSON and in the store.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }

            /// Returns the value of a word, exact and case-sensitive; `None`: unknown.
            pub fn parse(word: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|value| value.as_str() == word)
            }
        }

        words!(@default $name $($default)?);
    };
    (@default $name:ident) => {};
    (@default $name:ident $default:ident) => {
        impl Default for $name {
            fn default() -> Self {
                $name::$default
            }
        }
    };
}

pub mod agent;
pub mod agent_profile;
pub mod agent_span;
pub mod agent_version;
pub mod alert;
pub mod api_key;
pub mod bundle;
pub mod call_log;
pub mod cron;
pub mod custom_metric;
pub mod customer;
pub mod digital_human;
pub mod error_code;
pub mod evaluation;
pub mod expectation;
pub mod folder;
pub mod format;
pub mod generate;
pub mod heard_turn;
pub mod id;
pub mod integration;
pub mod issue;
pub mod journey;
pub mod judge_card;
pub mod kept;
pub mod language_model;
mod literal;
pub mod mail;
pub mod merge;
pub mod metric_template;
pub mod model_usage;
pub mod monitor;
pub mod noise;
pub mod notification;
pub mod organization;
pub mod patch;
pub mod phone_number;
pub mod playback;
pub mod preview;
pub mod result;
pub mod review;
pub mod run;
pub mod scalar;
pub mod scenario;
pub mod schedule;
pub mod schema;
pub mod secret;
mod set_only;
pub mod simulation;
pub mod simulation_body;
pub mod status;
pub mod test_scenario;
pub mod text;
pub mod time;
pub mod timeline;
pub mod tool_call;
pub mod transcript;
mod transcript_marks;
pub mod validate;
pub mod validation_error;
pub mod verdict;
pub mod webhook;
pub mod webhook_event;

/// A JSON object whose members are not described.
pub type Object = Map<String, Value>;

/// Returns a value as it is shown: texts without quotes.
pub fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::from(text.as_str()),
        other => Cow::from(other.to_string()),
    }
}

/// One page of a list; `page` counts from 1.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Page<T> {
    /// The rows of this page.
    pub items: Vec<T>,
    /// Rows on all pages.
    pub total_count: i64,
    /// Number of this page, from 1.
    pub page: i64,
    /// Largest number of rows on a page.
    pub page_size: i64,
}

impl<T> Page<T> {
    /// Pages in all; 0 when there is no row.
    pub fn total_pages(&self) -> i64 {
        let page_size = self.page_size.max(1);
        (self.total_count + page_size - 1) / page_size
    }
}

fn yes() -> bool {
    true
}

fn one() -> i64 {
    1
}

#[cfg(test)]
mod tests {
    use schemars::{JsonSchema, schema_for};
    use serde_json::{Value, json};

    fn check<T: JsonSchema>(pointer: &str, expect: Value) {
        let schema = schema_for!(T).to_value();
        assert_eq!(schema.pointer(pointer), Some(&expect), "{pointer} of {schema:#}");
    }

    #[test]
    fn schemas_say_what_a_schema_can_say() {
        use super::{agent::AgentSpec, digital_human::DigitalHumanSpec, run::QueueSpec, simulation::SimulationSpec};
        check::<AgentSpec>("/required", json!(["name"]));
        check::<AgentSpec>("/properties/name/maxLength", json!(255));
        check::<AgentSpec>("/properties/labels/items/pattern", json!("^[A-Za-z0-9._ -]+$"));
        check::<AgentSpec>("/properties/labels/items/maxLength", json!(64));
        check::<AgentSpec>("/properties/svc_as_code_id/format", json!("uuid"));
        check::<AgentSpec>("/$defs/AgentMode/enum", json!(["VOICE", "TEXT", "EMAIL"]));
        check::<SimulationSpec>("/required", json!(["agent_id"]));
        check::<SimulationSpec>("/properties/agent_id/x-id", json!(true));
        check::<SimulationSpec>("/properties/name/minLength", json!(1));
        check::<SimulationSpec>("/properties/max_concurrent/exclusiveMinimum", json!(0));
        check::<SimulationSpec>("/properties/max_concurrent/maximum", json!(500));
        check::<QueueSpec>("/properties/seed/maximum", json!(9_007_199_254_740_991_i64));
        check::<DigitalHumanSpec>("/properties/endpointing_delay/maximum", json!(60.0));
        check::<DigitalHumanSpec>("/properties/silence_timeout/minimum", json!(15.0));
        check::<DigitalHumanSpec>("/$defs/Interruptions/discriminator", json!({"propertyName": "type"}));
        check::<DigitalHumanSpec>("/$defs/Interruptions/oneOf/4/properties/keyword_responses/minItems", json!(1));
        check::<DigitalHumanSpec>("/$defs/ScriptedResponse/properties/match_phrase/minLength", json!(1));
        let stray = schema_for!(DigitalHumanSpec).to_value().get("required").cloned();
        assert_eq!(stray, None, "every field of a Digital Human is optional");
    }
}
