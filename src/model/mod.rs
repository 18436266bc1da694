//! Plain structs, one file a resource: what users write (`...Spec`), what is kept (`...Doc`) and what they read
//! (`...Record`). The schemas that schemars derives from a Spec serve validation, the API description and storage alike.
//!
//! No IO, no axum, no sqlx. Schema words beyond JSON Schema: `x-id` marks a string id that may also arrive as an integer.

use serde_json::{Map, Value};

/// Declares an enum of fixed words: variants, wire words, `as_str`, `parse`, and a default where one is named.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($variant:ident = $word:literal),+ $(,)? } $(default $default:ident)?) => {
        $(#[$doc])*
        #[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
        pub enum $name {
            $(#[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// Every value, in declared order.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The word on the wire and in the store.
            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }

            /// The value of a word, exact and case-sensitive.
            pub fn parse(word: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|value| value.as_str() == word)
            }
        }

        $(impl Default for $name {
            fn default() -> Self {
                $name::$default
            }
        })?
    };
}

pub mod agent;
pub mod agent_version;
pub mod api_key;
pub mod digital_human;
pub mod error_code;
pub mod evaluation;
pub mod folder;
pub mod id;
pub mod integration;
pub mod issue;
pub mod json;
pub mod merge;
pub mod patch;
pub mod playback;
pub mod result;
pub mod run;
pub mod scalar;
pub mod schema;
pub mod simulation;
pub mod status;
pub mod time;
pub mod tool_call;
pub mod transcript;
pub mod validate;

/// A JSON object whose members are not described.
pub type Object = Map<String, Value>;

/// One page of a list; `page` counts from 1.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Page<T> {
    /// The rows of this page.
    pub items: Vec<T>,
    /// Rows on all pages.
    pub total_count: i64,
    /// This page.
    pub page: i64,
    /// Rows a page.
    pub page_size: i64,
}

impl<T> Page<T> {
    /// Pages in all; 0 when there is no row.
    pub fn total_pages(&self) -> i64 {
        (self.total_count + self.page_size - 1) / self.page_size.max(1)
    }
}

fn yes() -> bool {
    true
}

fn one() -> i64 {
    1
}
