//! Phone numbers that an organization owns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::schema::telephone_number;
use super::time::Timestamp;

/// Asks for a number.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct AddNumberSpec {
    /// Start of the wanted number behind the country code; one of the pool is taken.
    #[serde(default)]
    pub area_code: Option<String>,
    /// Number to register, E.164; null: one of the pool.
    #[serde(default)]
    #[schemars(extend("x-rules" = telephone_number()))]
    pub phone_number: Option<String>,
}

/// A number as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NumberDoc {
    /// The number itself, E.164.
    pub phone_number: String,
    /// Identifier at the carrier; empty where it is not known.
    pub carrier_sid: String,
    /// `YYYY-MM-DD`; null for a number that was bought elsewhere.
    pub purchase_date: Option<String>,
    /// Price a month in the smallest unit of the currency; null where it is not known.
    pub price: Option<i64>,
}

/// A number, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NumberRecord {
    /// Identifier of the number.
    pub id: i64,
    /// Time at which it was added; for a number of a trunk in the settings, the time at which it was first seen.
    pub created_at: Timestamp,
    /// The number itself, E.164.
    pub phone_number: String,
    /// `YYYY-MM-DD`; null for a number that was bought elsewhere.
    pub purchase_date: Option<String>,
    /// Price a month in the smallest unit of the currency; null where it is not known.
    pub price: Option<i64>,
    /// Organization that owns the number.
    pub organization_id: String,
    /// Trunk in the settings that carries the number; null: none does, and no call can be made from it.
    pub trunk: Option<String>,
}
