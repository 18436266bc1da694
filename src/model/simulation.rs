//! A simulation: which agent is tested, with which settings.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::id::IdString;
use super::one;
use super::time::{Timestamp, span_ms};

words! {
    /// How the results of a run are started.
    SimulationType { MaxConcurrent = "max_concurrent", Parallel = "parallel" }
}

words! {
    /// Unit of `max_call_duration`.
    DurationUnit { Minutes = "minutes", Seconds = "seconds" } default Minutes
}

fn ten() -> i64 {
    10
}

/// Of a field that is not written down unless it was given.
fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

fn five_minutes() -> i64 {
    300
}

fn random() -> String {
    "random".into()
}

fn no_noise() -> String {
    "none".into()
}

fn ai_generated() -> String {
    "ai_generated".into()
}

/// What generated Digital Humans are given; `random` draws from the seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DigitalHumansSettings {
    /// Name.
    #[serde(default = "random")]
    pub default_name: String,
    /// Caller number, E.164.
    #[serde(default = "random")]
    pub default_caller_number: String,
    /// A language that Digital Humans speak.
    #[serde(default = "random")]
    pub default_language: String,
    /// A background noise of Digital Humans, but custom.
    #[serde(default = "no_noise")]
    pub default_background_noise: String,
    /// First words, not empty.
    #[serde(default = "ai_generated")]
    pub first_message: String,
    /// Repetitions.
    #[serde(default = "one")]
    #[schemars(range(min = 1))]
    pub num_runs: i64,
}

impl Default for DigitalHumansSettings {
    fn default() -> Self {
        serde_json::from_str("{}").expect("every field has a default")
    }
}

/// The writable fields of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulationSpec {
    /// The agent under test.
    pub agent_id: IdString,
    /// 1 to 255 characters; `Simulation <id>` when absent.
    #[serde(default)]
    #[schemars(length(min = 1, max = 255))]
    pub name: Option<String>,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Stable identifier for the declarative push.
    #[serde(default)]
    pub svc_as_code_id: Option<Uuid>,
    /// Version under test; null: production at run time.
    #[serde(default)]
    pub agent_version_id: Option<Uuid>,
    /// Deprecated twin of agent_version_id.
    #[serde(default, skip_serializing)]
    #[schemars(extend("deprecated" = true))]
    pub prompt_id: Option<Uuid>,
    /// One result at a time.
    #[serde(default)]
    pub sequential_calling: bool,
    /// At most this many results at once; null: all.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 500))]
    pub max_concurrent: Option<i64>,
    /// A transfer ends the call.
    #[serde(default)]
    pub hangup_on_transfer: bool,
    /// Longest conversation, in `max_call_duration_units`. TEXT and EMAIL have none unless it is given.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(with = "i64", default = "ten", extend("exclusiveMinimum" = 0))]
    pub max_call_duration: Option<i64>,
    /// Unit of the above.
    #[serde(default)]
    pub max_call_duration_units: DurationUnit,
    /// Ends the call after this many agent turns.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_turns: Option<i64>,
    /// Seconds until an unanswered call is given up.
    #[serde(default = "five_minutes")]
    #[schemars(range(min = 1, max = 3600))]
    pub ringing_timeout: i64,
    /// Seconds without a word, digit or message of either side.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub inactivity_timeout_seconds: Option<i64>,
    /// Defaults of generated Digital Humans.
    #[serde(default)]
    pub digital_humans_settings: DigitalHumansSettings,
    /// Null: all metrics of the agent; []: none.
    #[serde(default)]
    pub selected_custom_metrics: Option<Vec<Uuid>>,
    /// Mean score below which a result fails.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100))]
    pub custom_metrics_failing_threshold: Option<i64>,
    /// Mean score from which a result passes.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100))]
    pub custom_metrics_passing_threshold: Option<i64>,
    /// Score of a run below which it fails.
    #[serde(default)]
    #[schemars(range(min = 0, max = 99))]
    pub outcome_failing_threshold: Option<i64>,
    /// Score of a run from which it passes.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100))]
    pub outcome_passing_threshold: Option<i64>,
    /// Results per Digital Human.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub runs_per_digital_human: Option<i64>,
    /// Incoming calls to always-on Digital Humans make results of this simulation.
    #[serde(default)]
    pub always_on: bool,
    /// Free labels.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Shown first.
    #[serde(default)]
    pub pinned: bool,
    /// The judge is asked custom_error_prompt.
    #[serde(default)]
    pub custom_error_enabled: bool,
    /// Question whose yes gives the tag `custom_error`.
    #[serde(default)]
    pub custom_error_prompt: Option<String>,
    /// Failed results are repeated.
    #[serde(default)]
    pub enable_rerun_failed_test_results: bool,
    /// Results with the tag `custom_error` are repeated.
    #[serde(default)]
    pub enable_rerun_on_custom_error: bool,
    /// Repetitions of one result.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 10))]
    pub rerun_max_retries: i64,
}

impl Default for SimulationSpec {
    fn default() -> Self {
        serde_json::from_str(r#"{"agent_id":""}"#).expect("every field but agent_id has a default")
    }
}

impl SimulationSpec {
    /// How many results of one run may be at work at once; `None`: no limit.
    pub fn concurrency(&self) -> Option<i64> {
        if self.sequential_calling { Some(1) } else { self.max_concurrent }
    }

    /// Longest conversation, in milliseconds.
    pub fn max_duration_ms(&self) -> i64 {
        let unit = match self.max_call_duration_units {
            DurationUnit::Minutes => 60.0,
            DurationUnit::Seconds => 1.0,
        };
        span_ms(self.max_call_duration.unwrap_or_else(ten) as f64 * unit)
    }

    /// The part of the record that stands under `settings`.
    pub fn settings(&self) -> SimulationSettings {
        SimulationSettings {
            agent_version_id: self.agent_version_id,
            sequential_calling: self.sequential_calling,
            hangup_on_transfer: self.hangup_on_transfer,
            max_call_duration: self.max_call_duration.unwrap_or_else(ten),
            max_call_duration_units: self.max_call_duration_units,
            digital_humans_settings: self.digital_humans_settings.clone(),
            selected_custom_metrics: self.selected_custom_metrics.clone(),
            custom_metrics_failing_threshold: self.custom_metrics_failing_threshold,
            custom_metrics_passing_threshold: self.custom_metrics_passing_threshold,
            outcome_failing_threshold: self.outcome_failing_threshold,
            outcome_passing_threshold: self.outcome_passing_threshold,
            runs_per_digital_human: self.runs_per_digital_human,
            custom_error_enabled: self.custom_error_enabled,
            custom_error_prompt: self.custom_error_prompt.clone(),
            enable_rerun_failed_test_results: self.enable_rerun_failed_test_results,
            enable_rerun_on_custom_error: self.enable_rerun_on_custom_error,
            rerun_max_retries: self.rerun_max_retries,
        }
    }
}

/// Writable fields that are read under `settings`; meanings as in [`SimulationSpec`].
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[expect(missing_docs, reason = "each field is the one of the same name in SimulationSpec")]
pub struct SimulationSettings {
    pub agent_version_id: Option<Uuid>,
    pub sequential_calling: bool,
    pub hangup_on_transfer: bool,
    pub max_call_duration: i64,
    pub max_call_duration_units: DurationUnit,
    pub digital_humans_settings: DigitalHumansSettings,
    pub selected_custom_metrics: Option<Vec<Uuid>>,
    pub custom_metrics_failing_threshold: Option<i64>,
    pub custom_metrics_passing_threshold: Option<i64>,
    pub outcome_failing_threshold: Option<i64>,
    pub outcome_passing_threshold: Option<i64>,
    pub runs_per_digital_human: Option<i64>,
    pub custom_error_enabled: bool,
    pub custom_error_prompt: Option<String>,
    pub enable_rerun_failed_test_results: bool,
    pub enable_rerun_on_custom_error: bool,
    pub rerun_max_retries: i64,
}

/// A simulation as read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SimulationRecord {
    /// Its id.
    pub id: i64,
    /// The agent under test.
    pub agent_id: i64,
    /// Its name.
    pub name: String,
    /// Load mode.
    #[serde(rename = "type")]
    pub kind: SimulationType,
    /// Stable identifier for the declarative push.
    pub svc_as_code_id: Option<Uuid>,
    /// All other writable fields.
    pub settings: SimulationSettings,
    /// Results at once.
    pub max_concurrent: Option<i64>,
    /// Agent turns until the end.
    pub max_turns: Option<i64>,
    /// Seconds.
    pub ringing_timeout: i64,
    /// Seconds.
    pub inactivity_timeout_seconds: Option<i64>,
    /// Free labels.
    pub tags: Vec<String>,
    /// Free text.
    pub description: Option<String>,
    /// Shown first.
    pub pinned: bool,
    /// Has always-on Digital Humans.
    pub always_on: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Always null: keys, not users, write.
    pub created_by: Option<Uuid>,
    /// Always null: keys, not users, write.
    pub updated_by: Option<Uuid>,
}

/// A simulation in a list.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SimulationSummary {
    /// Its id.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created_at: Timestamp,
    /// The agent under test.
    pub agent_id: i64,
    /// As in the record.
    pub settings: SimulationSettings,
    /// [] when none.
    pub selected_custom_metrics: Vec<Uuid>,
}
