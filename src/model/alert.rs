//! Alerts: a rule about what is measured of conversations, and who is told when it is broken too often.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::notification::Channel;
use super::time::Timestamp;
use super::triage::SourceKind;
use super::{text_of, yes};

words! {
    /// What a rule looks at.
    EntityType {
        StandardMetric = "standard_metric", CustomGoal = "custom_goal", CustomMetric = "custom_metric",
        MetadataField = "metadata_field",
    }
}

words! {
    /// How a value is compared with the one of a rule.
    Operator {
        Equals = "equals", NotEquals = "not_equals", GreaterThan = "greater_than", LessThan = "less_than",
        GreaterThanOrEqual = "greater_than_or_equal", LessThanOrEqual = "less_than_or_equal", Contains = "contains",
        NotContains = "not_contains",
    }
}

words! {
    /// Which conversations a rule looks at.
    SourceScope { All = "all", Observability = "observability", Simulation = "simulation" } default All
}

impl Operator {
    /// True when anything can stand to `wanted` as the operator says: what is greater or less is so than a number.
    pub fn takes(self, wanted: &str) -> bool {
        use Operator::{GreaterThan, GreaterThanOrEqual, LessThan, LessThanOrEqual};
        let orders = matches!(self, GreaterThan | GreaterThanOrEqual | LessThan | LessThanOrEqual);
        !orders || wanted.trim().parse::<f64>().is_ok_and(|number| !number.is_nan())
    }

    /// Whether `value` stands to `wanted` as the operator says. Two numbers are compared as numbers, all else as text; a text
    /// is neither greater nor less than another, and a list contains its items.
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
    /// 1 to 255 characters.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// Free text.
    #[serde(default)]
    pub description: Option<String>,
    /// Looks at conversations.
    #[serde(default = "yes")]
    pub is_enabled: bool,
    /// What is looked at.
    pub entity_type: EntityType,
    /// Name of the metric or of the metadata's member; of a custom metric also its id.
    #[schemars(length(min = 1))]
    pub entity_field: String,
    /// How it is compared: what fulfils this is a violation.
    pub operator: Operator,
    /// With what.
    pub comparison_value: String,
    /// Who is told.
    #[serde(default)]
    pub notification_channels: Vec<Channel>,
    /// Looks at every agent.
    #[serde(default = "yes")]
    pub applies_to_all_agents: bool,
    /// Else at these.
    #[serde(default)]
    pub agent_ids: Option<Vec<i64>>,
    /// The window, in seconds.
    #[serde(default = "ten_minutes")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub threshold_time_interval: i64,
    /// So many violations in the window.
    #[serde(default = "ten")]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub min_events: i64,
    /// Which conversations.
    #[serde(default)]
    pub source_scope: SourceScope,
}

impl AlertSpec {
    /// True when it looks at conversations of this kind of this agent.
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
    /// What was written.
    pub spec: AlertSpec,
    /// Enough violations lie in the window.
    pub in_alert: bool,
    /// When that last began.
    pub last_triggered_at: Option<Timestamp>,
    /// How often that began.
    pub trigger_count: i64,
}

/// An alert as read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct AlertRecord {
    /// Its id.
    pub id: Uuid,
    /// Its name.
    pub name: String,
    /// Free text.
    pub description: Option<String>,
    /// Looks at conversations.
    pub is_enabled: bool,
    /// Whose it is.
    pub organization_id: String,
    /// What is looked at.
    pub entity_type: EntityType,
    /// Name of what is looked at.
    pub entity_field: String,
    /// How it is compared.
    pub operator: Operator,
    /// With what.
    pub comparison_value: String,
    /// Who is told.
    pub notification_channels: Vec<Channel>,
    /// When it last triggered.
    pub last_triggered_at: Option<Timestamp>,
    /// How often it triggered.
    pub trigger_count: i64,
    /// Always null: keys, not users, write.
    pub created_by: Option<Uuid>,
    /// Looks at every agent.
    pub applies_to_all_agents: bool,
    /// Else at these.
    pub agents: Option<Vec<i64>>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last changed; null until then.
    pub updated_at: Option<Timestamp>,
    /// The window, in seconds.
    pub threshold_time_interval: i64,
    /// So many violations in the window.
    pub min_events: i64,
    /// Enough violations lie in the window.
    pub in_alert: bool,
    /// Which conversations.
    pub source_scope: SourceScope,
}

/// A conversation that broke the rule of an alert.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Violation {
    /// Its id.
    pub id: Uuid,
    /// The alert.
    pub alert_id: Uuid,
    /// When.
    pub triggered_at: Timestamp,
    /// The value that broke it.
    pub value: String,
    /// Kind of the conversation.
    pub kind: SourceKind,
    /// Id of the result or call log.
    pub source_id: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

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
