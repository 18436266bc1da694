//! Phone numbers that an organization owns.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::time::Timestamp;

/// Asks for a number.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct AddNumberSpec {
    /// A number of the pool that begins so, behind the country code.
    #[serde(default)]
    pub area_code: Option<String>,
    /// E.164: this number.
    #[serde(default)]
    pub phone_number: Option<String>,
}

/// A number as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NumberDoc {
    /// E.164.
    pub phone_number: String,
    /// Id at the carrier; empty where nobody told.
    pub carrier_sid: String,
    /// `YYYY-MM-DD`; null for a number that was bought elsewhere.
    pub purchase_date: Option<String>,
    /// Smallest unit of the currency, a month; null where nobody told.
    pub price: Option<i64>,
}

/// A number as read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct NumberRecord {
    /// Its id; below 0 for a number of a trunk in the settings, which cannot be given back.
    pub id: i64,
    /// When it was added; the beginning of 1970 for a number of a trunk.
    pub created_at: Timestamp,
    /// E.164.
    pub phone_number: String,
    /// `YYYY-MM-DD`; null for a number that was bought elsewhere.
    pub purchase_date: Option<String>,
    /// Smallest unit of the currency, a month; null where nobody told.
    pub price: Option<i64>,
    /// Whose it is.
    pub organization_id: String,
}
