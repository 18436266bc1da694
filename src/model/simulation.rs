//! Simulations: the agent that is tested, and the settings of its tests.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::digital_human::{Direction, JourneyStep};
use super::id::IdString;
use super::one;
use super::time::{Timestamp, span_ms};

words! {
    /// Way in which the results of a run are started.
    SimulationType { MaxConcurrent = "max_concurrent", Parallel = "parallel" }
}

words! {
    /// Unit of `max_call_duration`; default minutes.
    DurationUnit { Minutes = "minutes", Seconds = "seconds" } default Minutes
}

fn ten() -> i64 {
    10
}

/// True if a field has its default value, which is then not stored.
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

/// Defaults of generated Digital Humans; `random` draws from the seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DigitalHumansSettings {
    /// Name of the caller; default random.
    #[serde(default = "random")]
    pub default_name: String,
    /// Phone number of the caller, E.164; default random.
    #[serde(default = "random")]
    pub default_caller_number: String,
    /// Language of the caller, one of a Digital Human's; default random.
    #[serde(default = "random")]
    pub default_language: String,
    /// Background noise, one of a Digital Human's except custom; default none.
    #[serde(default = "no_noise")]
    pub default_background_noise: String,
    /// First words of the caller, not empty; default `ai_generated`.
    #[serde(default = "ai_generated")]
    pub first_message: String,
    /// Repetitions of each Digital Human; default 1.
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
    /// Name of the simulation, 1 to 255 characters; `Simulation <id>` when absent.
    #[serde(default)]
    #[schemars(length(min = 1, max = 255))]
    pub name: Option<String>,
    /// Free text for the reader.
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
    /// True: one result at a time.
    #[serde(default)]
    pub sequential_calling: bool,
    /// Largest number of results at once, 1 to 500; null: no limit.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0), range(max = 500))]
    pub max_concurrent: Option<i64>,
    /// True: a transfer ends the call.
    #[serde(default)]
    pub hangup_on_transfer: bool,
    /// Longest conversation, in `max_call_duration_units`. TEXT and EMAIL have none unless it is given.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(with = "i64", default = "ten", extend("exclusiveMinimum" = 0))]
    pub max_call_duration: Option<i64>,
    /// Unit of `max_call_duration`; default minutes.
    #[serde(default)]
    pub max_call_duration_units: DurationUnit,
    /// Number of agent turns after which the call ends; null: no limit.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub max_turns: Option<i64>,
    /// Seconds until an unanswered call ends, 1 to 3600; default 300.
    #[serde(default = "five_minutes")]
    #[schemars(range(min = 1, max = 3600))]
    pub ringing_timeout: i64,
    /// Seconds without a word, digit or message of either side after which the call ends; null: no limit.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub inactivity_timeout_seconds: Option<i64>,
    /// Defaults of generated Digital Humans.
    #[serde(default)]
    pub digital_humans_settings: DigitalHumansSettings,
    /// Custom metrics to judge; null: all metrics of the agent; []: none.
    #[serde(default)]
    pub selected_custom_metrics: Option<Vec<Uuid>>,
    /// Mean score of the custom metrics below which a result fails, 0 to 100.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100))]
    pub custom_metrics_failing_threshold: Option<i64>,
    /// Mean score of the custom metrics from which a result passes, 0 to 100.
    #[serde(default)]
    #[schemars(range(min = 0, max = 100))]
    pub custom_metrics_passing_threshold: Option<i64>,
    /// Score of a run below which it fails, 0 to 99; null: 80.
    #[serde(default)]
    #[schemars(range(min = 0, max = 99))]
    pub outcome_failing_threshold: Option<i64>,
    /// Score of a run from which it passes, 1 to 100; null: 80.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100))]
    pub outcome_passing_threshold: Option<i64>,
    /// Results per Digital Human; null: 1.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub runs_per_digital_human: Option<i64>,
    /// Run of this simulation that later ones are compared with; null: none.
    #[serde(default)]
    pub baseline_run_id: Option<i64>,
    /// True: incoming calls to always-on Digital Humans make results of this simulation.
    #[serde(default)]
    pub always_on: bool,
    /// Labels of the user's choice.
    #[serde(default)]
    pub tags: Vec<String>,
    /// True: shown first in lists.
    #[serde(default)]
    pub pinned: bool,
    /// True: the judge is asked `custom_error_prompt`.
    #[serde(default)]
    pub custom_error_enabled: bool,
    /// Question to the judge; its answer yes gives the tag `custom_error`.
    #[serde(default)]
    pub custom_error_prompt: Option<String>,
    /// True: failed results are repeated.
    #[serde(default)]
    pub enable_rerun_failed_test_results: bool,
    /// True: results with the tag `custom_error` are repeated.
    #[serde(default)]
    pub enable_rerun_on_custom_error: bool,
    /// Largest number of repetitions of one result, 0 to 10; default 1.
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
    /// Returns the time to wait for the agent to make contact, in milliseconds: a journey's step decides first.
    pub fn patience_ms(&self, step: Option<&JourneyStep>) -> i64 {
        let of_step = step.filter(|step| step.direction == Direction::Outbound);
        span_ms(of_step.map_or(self.ringing_timeout as f64, |step| step.response_window_seconds))
    }

    /// Returns the number of results of one run that may be active at once; `None`: no limit.
    pub fn concurrency(&self) -> Option<i64> {
        if self.sequential_calling { Some(1) } else { self.max_concurrent }
    }

    /// Returns the longest conversation, in milliseconds.
    pub fn max_duration_ms(&self) -> i64 {
        let unit = match self.max_call_duration_units {
            DurationUnit::Minutes => 60.0,
            DurationUnit::Seconds => 1.0,
        };
        span_ms(self.max_call_duration.unwrap_or_else(ten) as f64 * unit)
    }

    /// Returns the part of the record that stands under `settings`.
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
            baseline_run_id: self.baseline_run_id,
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
    pub baseline_run_id: Option<i64>,
    pub custom_error_enabled: bool,
    pub custom_error_prompt: Option<String>,
    pub enable_rerun_failed_test_results: bool,
    pub enable_rerun_on_custom_error: bool,
    pub rerun_max_retries: i64,
}

/// A simulation, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SimulationRecord {
    /// Identifier of the simulation.
    pub id: i64,
    /// The agent under test.
    pub agent_id: i64,
    /// Name of the simulation.
    pub name: String,
    /// Way in which its results are started.
    #[serde(rename = "type")]
    pub kind: SimulationType,
    /// Stable identifier for the declarative push.
    pub svc_as_code_id: Option<Uuid>,
    /// All other writable fields.
    pub settings: SimulationSettings,
    /// Largest number of results at once; null: no limit.
    pub max_concurrent: Option<i64>,
    /// Number of agent turns after which the call ends; null: no limit.
    pub max_turns: Option<i64>,
    /// Seconds until an unanswered call ends.
    pub ringing_timeout: i64,
    /// Seconds without a word, digit or message after which the call ends; null: no limit.
    pub inactivity_timeout_seconds: Option<i64>,
    /// Labels of the user's choice.
    pub tags: Vec<String>,
    /// Free text for the reader.
    pub description: Option<String>,
    /// True: shown first in lists.
    pub pinned: bool,
    /// True: incoming calls to always-on Digital Humans make results of this simulation.
    pub always_on: bool,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// User who made it, else the API key; null: it is not known.
    pub created_by: Option<Uuid>,
    /// User who made the last change, else the API key; null: it is not known.
    pub updated_by: Option<Uuid>,
}

/// A simulation in a list.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SimulationSummary {
    /// Identifier of the simulation.
    pub id: i64,
    /// Name of the simulation.
    pub name: String,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// The agent under test.
    pub agent_id: i64,
    /// Settings, as in the record.
    pub settings: SimulationSettings,
    /// Custom metrics to judge; [] when none are selected.
    pub selected_custom_metrics: Vec<Uuid>,
}
