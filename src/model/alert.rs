//! Alerts: rules about measured values of conversations, and who is notified when a rule is broken too often.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::issue::SourceKind;
use super::notification::Channel;
use super::time::Timestamp;
use super::{text_of, yes};

words! {
    /// Kind of value that a rule examines.
    EntityType {
        StandardMetric = "standard_metric", CustomGoal = "custom_goal", CustomMetric = "custom_metric",
        MetadataField = "metadata_field",
    }
}

words! {
    /// Comparison of a measured value with the value of a rule.
    Operator {
        Equals = "equals", NotEquals = "not_equals", GreaterThan = "greater_than", LessThan = "less_than",
        GreaterThanOrEqual = "greater_than_or_equal", LessThanOrEqual = "less_than_or_equal", Contains = "contains",
        NotContains = "not_contains",
    }
}

words! {
    /// Kind of conversations that a rule examines.
    SourceScope { All = "all", Observability = "observability", Simulation = "simulation" } default All
}

impl Operator {
    /// True if a measured value can fulfil the operator with `wanted`: greater and less need `wanted` to be a number.
    pub fn takes(self, wanted: &str) -> bool {
        use Operator::{GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual};
        let orders = matches!(self, GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual);
        !orders || wanted.trim().parse::<f64>().is_ok_and(|number| !number.is_nan())
    }

    /// True if `value` compares to `wanted` as the operator says.
    ///
    /// Two numbers are compared as numbers, all else as text. Of two texts neither is greater or less; a list contains
    /// its items.
    pub fn holds(self, value: &Value, wanted: &str) -> bool {
        let text = text_of(value);
        let numbers = text.trim().parse::<f64>().ok().zip(wanted.trim().parse::<f64>().ok());
        let compare = |holds: fn(f64, f64) -> bool| numbers.is_some_and(|(value, wanted)| holds(value, wanted));
        let same = || numbers.map_or(text == wanted, |(value, wanted)| value == wanted);
        let within = || match value {
            Value::Array(items) => items.iter().any(|item| text_of(item) == wanted),
            _ => text.contains(wanted),
        };
        match self {
            Operator::Equals => same(),
            Operator::NotEquals => !same(),
            Operator::GreaterThan => compare(|value, wanted| value > wanted),
            Operator::LessThan => compare(|value, wanted| value < wanted),
            Operator::GreaterThanOrEqual => compare(|value, wanted| value >= wanted),
            Operator::LessThanOrEqual => compare(|value, wanted| value <= wanted),
            Operator::Contains => within(),
            Operator::NotContains => !within(),
        }
    }
}

fn ten() -> i64 {
    10
}

fn ten_minutes() -> i64 {
    600
}

/// The writable fields of an alert.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AlertSpec {
    /// Name of the alert, 1 to 255 characters.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// Free text for the reader.
    #[serde(default)]
    pub description: Option<String>,
    /// True: the rule examines new conversations.
    #[serde(default = "yes")]
    pub is_enabled: bool,
    /// Kind of value that the rule examines.
    pub entity_type: EntityType,
    /// Name of the metric or of the metadata member; a custom metric may be named by its id.
    #[schemars(length(min = 1))]
    pub entity_field: String,
    /// Comparison with `comparison_value`; a value that fulfils it is a violation.
    pub operator: Operator,
    /// Value that the measured one is compared with, as text.
    pub comparison_value: String,
    /// Channels that are notified when the alert triggers and when it resolves.
    #[serde(default)]
    pub notification_channels: Vec<Channel>,
    /// True: the rule examines conversations of every agent.
    #[serde(default = "yes")]
    pub applies_to_all_agents: bool,
    /// Agents to examine when `applies_to_all_agents` is false.
    #[serde(default)]
    pub agent_ids: Option<Vec<i64>>,
    /// Length of the window, in seconds.
    #[serde(default = "ten_minutes")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub threshold_time_interval: i64,
    /// Number of violations within the window that triggers the alert.
    #[serde(default = "ten")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub min_events: i64,
    /// Kind of conversations that are examined.
    #[serde(default)]
    pub source_scope: SourceScope,
}

impl AlertSpec {
    /// True if the rule examines conversations of this kind of this agent.
    pub fn looks_at(&self, source: SourceKind, agent_id: i64) -> bool {
        let scope = match self.source_scope {
            SourceScope::All => true,
            SourceScope::Observability => source == SourceKind::Observability,
            SourceScope::Simulation => source == SourceKind::Simulation,
        };
        let listed = || self.agent_ids.as_ref().is_some_and(|ids| ids.contains(&agent_id));
        self.is_enabled && scope && (self.applies_to_all_agents || listed())
    }
}

/// An alert as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AlertDoc {
    /// The writable fields, as given.
    pub spec: AlertSpec,
    /// True while the window holds at least `min_events` violations.
    pub in_alert: bool,
    /// Time at which it last triggered; null: never.
    pub last_triggered_at: Option<Timestamp>,
    /// Number of times that it triggered.
    pub trigger_count: i64,
}

/// An alert, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AlertRecord {
    /// Identifier of the alert.
    pub id: Uuid,
    /// Name of the alert, 1 to 255 characters.
    pub name: String,
    /// Free text for the reader.
    pub description: Option<String>,
    /// True: the rule examines new conversations.
    pub is_enabled: bool,
    /// Organization that owns the alert.
    pub organization_id: String,
    /// Kind of value that the rule examines.
    pub entity_type: EntityType,
    /// Name of the metric or of the metadata member.
    pub entity_field: String,
    /// Comparison with `comparison_value`; a value that fulfils it is a violation.
    pub operator: Operator,
    /// Value that the measured one is compared with, as text.
    pub comparison_value: String,
    /// Channels that are notified when the alert triggers and when it resolves.
    pub notification_channels: Vec<Channel>,
    /// Time at which it last triggered; null: never.
    pub last_triggered_at: Option<Timestamp>,
    /// Number of times that it triggered.
    pub trigger_count: i64,
    /// User who made it, else the API key; null: it is not known.
    pub created_by: Option<Uuid>,
    /// True: the rule examines conversations of every agent.
    pub applies_to_all_agents: bool,
    /// Agents to examine when `applies_to_all_agents` is false.
    pub agents: Option<Vec<i64>>,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of the last change; null until then.
    pub updated_at: Option<Timestamp>,
    /// Length of the window, in seconds.
    pub threshold_time_interval: i64,
    /// Number of violations within the window that triggers the alert.
    pub min_events: i64,
    /// True while the window holds at least `min_events` violations.
    pub in_alert: bool,
    /// Kind of conversations that are examined.
    pub source_scope: SourceScope,
}

/// A conversation that broke the rule of an alert.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Violation {
    /// Identifier of the violation.
    pub id: Uuid,
    /// Alert whose rule was broken.
    pub alert_id: Uuid,
    /// Time at which the rule was broken.
    pub triggered_at: Timestamp,
    /// Measured value that broke the rule, as text.
    pub value: String,
    /// Kind of the conversation.
    pub kind: SourceKind,
    /// Id of the result or call log.
    pub source_id: String,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_compared() {
        for (value, operator, wanted, expect) in [
            (json!(3.0), "equals", "3", true),
            (json!(true), "equals", "true", true),
            (json!("PHONE"), "equals", "phone", false),
            (json!("PHONE"), "not_equals", "WEB", true),
            (json!(3.5), "greater_than", "3.5", false),
            (json!("3.6"), "greater_than", " 3.5", true),
            (json!(3.5), "greater_than_or_equal", "3.5", true),
            (json!(-1), "less_than", "0", true),
            (json!("b"), "greater_than", "a", false),
            (json!(2), "less_than_or_equal", "1.9", false),
            (json!("gold customer"), "contains", "gold", true),
            (json!(["gold", "new"]), "contains", "new", true),
            (json!(["golden"]), "contains", "gold", false),
            (json!(["golden"]), "not_contains", "gold", true),
        ] {
            let holds = Operator::parse(operator).expect("an operator").holds(&value, wanted);
            assert_eq!(holds, expect, "{value} {operator} {wanted}");
        }
    }
}
