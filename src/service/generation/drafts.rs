//! Drafts of custom metrics, made by the language model and not stored.

use ringer_base::error::{Error, Result};
use ringer_judge::{Unanswered, Wrong, ask, question};
use ringer_model::Object;
use ringer_model::agent::AgentDoc;
use ringer_model::custom_metric::CustomMetricSpec;
use ringer_model::id::IdString;
use ringer_store::Metrics;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Generation;
use crate::Caller;
use crate::library::field_rules;
use crate::library::metrics::check_fields;
use crate::library::versions::version_of;

/// Creativity of the drafts.
const TEMPERATURE: f64 = 0.7;

fn five() -> i64 {
    5
}

/// Request for drafts of custom metrics.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct DraftMetrics {
    /// Agent whose conversations the metrics shall judge.
    pub agent_id: IdString,
    /// The version that they are made for; absent: production.
    #[serde(default)]
    pub agent_version_id: Option<Uuid>,
    /// Deprecated twin of agent_version_id.
    #[serde(default)]
    #[schemars(extend("deprecated" = true))]
    pub prompt_id: Option<Uuid>,
    /// Number of metrics to draft, 1 to 50; 5 by default.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 50))]
    pub count: i64,
    /// Subject that the drafted metrics shall be about.
    #[serde(default)]
    pub custom_prompt: Option<String>,
}

/// Metrics that are not stored.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MetricDrafts {
    /// Drafts in the form that creates them.
    pub metrics: Vec<CustomMetricSpec>,
    /// Always the text `200`.
    pub status: String,
}

impl Generation {
    /// Drafts metrics for an agent from the text of its version.
    pub async fn generate_custom_metrics(&self, caller: &Caller, asked: DraftMetrics) -> Result<MetricDrafts> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let agent = db.get::<AgentDoc>(asked.agent_id.get().ok_or(Error::NotFound("Agent"))?).await?;
        let version = match asked.agent_version_id.or(asked.prompt_id) {
            Some(id) => Some(version_of(&mut db, agent.id, id).await?),
            None => db.production_version(agent.id).await?,
        };
        field_rules::twins(asked.agent_version_id, asked.prompt_id)?;
        let known = db.metrics(Metrics::OfAgent(agent.id), i64::MAX, 0).await?;
        drop(db);
        let model = self.model()?;
        let material = serde_json::json!({
            "agent": agent.doc.spec.name,
            "goals": agent.doc.spec.goals,
            "agent_prompt": version.map(|version| version.doc.prompt_text).unwrap_or_default(),
            "metrics_that_exist": known.iter().map(|row| &row.doc.name).collect::<Vec<_>>(),
            "about": asked.custom_prompt,
        });
        let request = question(instructions(asked.count), material.to_string(), TEMPERATURE);
        let read = |answer: &Object| drafts(answer, agent.id, asked.count).map_err(Wrong::Form);
        let metrics = ask(model.as_ref(), request, read).await.map_err(Unanswered::into_error)?;
        Ok(MetricDrafts { metrics, status: "200".into() })
    }
}

fn instructions(count: i64) -> String {
    format!(
        "You design metrics that judge conversations between callers and the voice agent described below. Each looks at one \
         thing that matters for this agent and can be decided from a transcript. Do not repeat metrics that exist. Answer \
         with one JSON object {{\"metrics\": [...]}} of {count} objects with the members: name (short), description (what \
         the agent has to have done, one or two sentences), response_type (pass_fail, yes_no, quantitative, enum or \
         qualitative), scoring_guidance, min_value and max_value (quantitative only), enum_options (enum only, two or more \
         different texts), eval_segment (all, opening or closing)."
    )
}

/// Returns the drafts of an answer that could be created as they stand.
fn drafts(answer: &Object, agent_id: i64, count: i64) -> std::result::Result<Vec<CustomMetricSpec>, String> {
    const TAKEN: [&str; 9] = [
        "name",
        "description",
        "response_type",
        "scoring_guidance",
        "min_value",
        "max_value",
        "enum_options",
        "eval_segment",
        "category",
    ];
    let given = answer.get("metrics").and_then(Value::as_array).ok_or("metrics is missing")?;
    let draft = |value: &Value| {
        let members =
            value.as_object()?.iter().filter(|(key, value)| TAKEN.contains(&key.as_str()) && !value.is_null());
        let members = members.map(|(key, value)| (key.clone(), value.clone())).collect::<Object>();
        let spec: CustomMetricSpec = serde_json::from_value(Value::Object(members)).ok()?;
        let fits = (1..=255).contains(&spec.name.chars().count()) && check_fields(&spec).is_ok();
        fits.then(|| CustomMetricSpec { agent_ids: vec![agent_id], ..spec })
    };
    let drafts: Vec<CustomMetricSpec> = given.iter().filter_map(draft).take(count.max(0) as usize).collect();
    if drafts.is_empty() { Err("none of its metrics is complete".into()) } else { Ok(drafts) }
}
