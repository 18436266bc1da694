//! Limits of one organization.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Limits of an organization. Null: no limit of its own, that of all organizations holds where there is one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct WorkspaceLimits {
    /// Minutes of conversation that it may use in a month (UTC).
    #[schemars(range(min = 0.0, max = 1_000_000_000.0))]
    pub usage_minutes_per_month: Option<f64>,
    /// Most conversations at the same time, on all channels.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub calls_at_once: Option<u32>,
    /// Most telephone numbers that it may register.
    #[schemars(range(min = 0, max = 1_000_000))]
    pub phone_numbers: Option<u32>,
    /// Days that its results are kept; 0: without limit.
    #[schemars(range(min = 0, max = 36_500))]
    pub results_days: Option<u32>,
    /// Days that its recordings are kept; 0: without limit.
    #[schemars(range(min = 0, max = 36_500))]
    pub recordings_days: Option<u32>,
    /// Largest file that it may upload, in megabytes (10^6 bytes).
    #[schemars(range(min = 0, max = 1_000_000))]
    pub upload_mb: Option<u32>,
}

impl WorkspaceLimits {
    /// Returns these limits, and those of `other` where none is set here.
    pub fn or(self, other: WorkspaceLimits) -> WorkspaceLimits {
        WorkspaceLimits {
            usage_minutes_per_month: self.usage_minutes_per_month.or(other.usage_minutes_per_month),
            calls_at_once: self.calls_at_once.or(other.calls_at_once),
            phone_numbers: self.phone_numbers.or(other.phone_numbers),
            results_days: self.results_days.or(other.results_days),
            recordings_days: self.recordings_days.or(other.recordings_days),
            upload_mb: self.upload_mb.or(other.upload_mb),
        }
    }
}

/// Limits of an organization as they are shown.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LimitsRecord {
    /// Id of the organization.
    pub organization_id: String,
    /// Name of the organization.
    pub name: String,
    /// Limits that were stored through the API.
    pub stored: WorkspaceLimits,
    /// Limits that hold: those of the settings, else the stored ones, else those of all organizations.
    pub in_force: WorkspaceLimits,
}
