//! Custom metrics: values that users want judged of every conversation, and how each is judged.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Object;
use super::time::Timestamp;

words! {
    /// Type of the value that a metric gives.
    ResponseType {
        PassFail = "pass_fail", YesNo = "yes_no", Qualitative = "qualitative", Quantitative = "quantitative", Json = "json",
        Enum = "enum", Int = "int", Float = "float", Boolean = "boolean", ToolCall = "tool_call",
    } default PassFail
}

words! {
    /// Origin of a metric: made by a user, or built in.
    MetricType { Custom = "custom", Standard = "standard" } default Custom
}

words! {
    /// Method by which a metric is judged.
    EvalMethod { LlmJudge = "llm_judge", Deterministic = "deterministic", Formula = "formula", Audio = "audio" }
}

words! {
    /// The part of a conversation that is judged.
    EvalSegment { All = "all", Opening = "opening", Closing = "closing", Agent = "agent", Caller = "caller" } default All
}

words! {
    /// Kind of conversations that are judged.
    MetricScope { All = "all", Simulation = "simulation", Observability = "observability" } default All
}

words! {
    /// Input of a judge: sound or words; AUTO: the engine chooses.
    EvalModality { Audio = "AUDIO", Text = "TEXT", Auto = "AUTO" } default Auto
}

fn custom() -> String {
    "custom".into()
}

/// The writable fields of a custom metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CustomMetricSpec {
    /// Name of the metric, 1 to 255 characters.
    #[schemars(length(min = 1, max = 255))]
    pub name: String,
    /// Instruction for the judge; `{{key}}` stands for a member of the result's metadata.
    pub description: String,
    /// Type of the value that the metric gives.
    pub response_type: ResponseType,
    /// Replaces the built-in prompt of the judge.
    #[serde(default)]
    pub prompt: Option<String>,
    /// Short text for the reader: a label only, which no judge is told.
    #[serde(default)]
    pub summary: Option<String>,
    /// Free text to group metrics by, and to list them by.
    #[serde(default)]
    pub category: Option<String>,
    /// Guidance for the judge on how to score.
    #[serde(default)]
    pub scoring_guidance: Option<String>,
    /// One more entry of `agent_ids`.
    #[serde(default, skip_serializing)]
    #[schemars(extend("deprecated" = true))]
    pub agent_id: Option<i64>,
    /// Agents whose conversations are judged.
    #[serde(default)]
    pub agent_ids: Vec<i64>,
    /// Origin of the metric: a label only; default custom.
    #[serde(default)]
    pub metric_type: MetricType,
    /// Method of judging; absent: deterministic for tool_call, else llm_judge.
    #[serde(default)]
    pub eval_method: Option<EvalMethod>,
    /// Part of the conversation that is judged.
    #[serde(default)]
    pub eval_segment: EvalSegment,
    /// Kind of conversations that are judged.
    #[serde(default)]
    pub scope: MetricScope,
    /// Source of the metric: a label only, free text; default custom.
    #[serde(default = "custom")]
    pub source: String,
    /// Settings of the eval_method.
    #[serde(default)]
    pub settings: Object,
    /// Lowest value of a quantitative metric.
    #[serde(default)]
    pub min_value: Option<f64>,
    /// Highest value of a quantitative metric.
    #[serde(default)]
    pub max_value: Option<f64>,
    /// Options of an enum metric, two or more different ones.
    #[serde(default)]
    pub enum_options: Vec<String>,
    /// Tools that a tool_call metric requires to be called.
    #[serde(default)]
    pub tool_names: Vec<String>,
    /// JSON Schema 2020-12 of a json metric's value.
    #[serde(default)]
    pub json_schema: Option<Object>,
    /// Input of the judge: sound, words, or the engine's choice.
    #[serde(default, alias = "eval_route")]
    #[schemars(extend("x-aliases" = ["eval_route"]))]
    pub eval_modality: EvalModality,
    /// Name of a language model in the engine's settings; null: the engine's choice.
    #[serde(default)]
    pub model: Option<String>,
    /// Name of an audio model in the engine's settings; null: the engine's choice.
    #[serde(default)]
    pub audio_model: Option<String>,
    /// Temperature of the model, 0 to 2; null: the model's default.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    /// True: the judge may answer that the metric does not apply.
    #[serde(default)]
    pub allow_not_applicable: bool,
    /// Labels of the user's choice.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Template that the metric was made from: one of `GET /v1/custom-metric-templates`.
    #[serde(default)]
    pub template_id: Option<Uuid>,
    /// Stable identifier for the declarative push, which accepts uuids only; unique in the organization.
    #[serde(default)]
    pub svc_as_code_id: Option<String>,
}

impl Default for CustomMetricSpec {
    fn default() -> Self {
        serde_json::from_str(r#"{"name":"","description":"","response_type":"pass_fail"}"#)
            .expect("every other field has a default")
    }
}

impl CustomMetricSpec {
    /// Returns the method of judging, the default resolved.
    pub fn method(&self) -> EvalMethod {
        self.eval_method.unwrap_or(match self.response_type {
            ResponseType::ToolCall => EvalMethod::Deterministic,
            _ => EvalMethod::LlmJudge,
        })
    }

    /// Returns the input of the judge, AUTO resolved.
    ///
    /// AUTO is sound when the metric's text names a property of sound and `hears` is true (there is an audio model),
    /// else words.
    pub fn modality(&self, hears: bool) -> EvalModality {
        const OF_SOUND: [&str; 7] = ["voice", "tone", "pitch", "pronunciation", "noise", "speed", "silence"];
        if self.eval_modality != EvalModality::Auto {
            return self.eval_modality;
        }
        let texts = [Some(&self.name), Some(&self.description), self.scoring_guidance.as_ref(), self.prompt.as_ref()];
        let names_sound = texts.into_iter().flatten().any(|text| {
            let text = text.to_lowercase();
            text.split(|c: char| !c.is_alphanumeric()).any(|word| OF_SOUND.contains(&word))
        });
        if hears && names_sound { EvalModality::Audio } else { EvalModality::Text }
    }
}

/// A custom metric, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CustomMetricRecord {
    /// Identifier of the metric.
    pub id: Uuid,
    /// The writable fields, eval_method and eval_modality resolved.
    #[serde(flatten)]
    pub spec: CustomMetricSpec,
    /// True: the engine chose the modality.
    pub eval_modality_auto_selected: bool,
    /// Old name of eval_modality.
    pub eval_route: EvalModality,
    /// Old name of eval_modality_auto_selected.
    pub eval_route_auto_selected: bool,
    /// Organization that owns the metric.
    pub organization_id: String,
    /// Same as the organization.
    pub workspace_id: String,
    /// Time of its creation.
    pub created_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// User who made it, else the API key; null: it is not known.
    pub created_by: Option<Uuid>,
    /// User who made the last change, else the API key; null: it is not known.
    pub updated_by: Option<Uuid>,
}

/// The fields that can be changed on several metrics at once; meanings as in [`CustomMetricSpec`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[expect(missing_docs, reason = "each field is the one of the same name in CustomMetricSpec")]
pub struct CustomMetricUpdates {
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub agent_ids: Vec<i64>,
    #[serde(default, alias = "eval_route")]
    #[schemars(extend("x-aliases" = ["eval_route"]))]
    pub eval_modality: EvalModality,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub audio_model: Option<String>,
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 2.0))]
    pub temperature: Option<f64>,
    #[serde(default)]
    pub allow_not_applicable: bool,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn methods_and_modalities_are_chosen() {
        fn check(mut body: Value, hears: bool, method: EvalMethod, modality: EvalModality) {
            for (name, value) in [("name", "n"), ("description", "d")] {
                let members = body.as_object_mut().expect("an object");
                members.entry(name).or_insert(value.into());
            }
            let spec: CustomMetricSpec = serde_json::from_value(body.clone()).expect("fits");
            assert_eq!((spec.method(), spec.modality(hears)), (method, modality), "{body}");
        }
        use {EvalMethod as M, EvalModality as E};
        check(json!({"response_type": "tool_call"}), true, M::Deterministic, E::Text);
        check(json!({"response_type": "tool_call", "eval_method": "llm_judge"}), true, M::LlmJudge, E::Text);
        check(json!({"response_type": "enum"}), true, M::LlmJudge, E::Text);
        check(json!({"response_type": "yes_no", "description": "Is the Tone warm?"}), true, M::LlmJudge, E::Audio);
        check(json!({"response_type": "yes_no", "description": "Is the Tone warm?"}), false, M::LlmJudge, E::Text);
        check(json!({"response_type": "yes_no", "scoring_guidance": "no silence."}), true, M::LlmJudge, E::Audio);
        check(json!({"response_type": "yes_no", "description": "Is it atonement?"}), true, M::LlmJudge, E::Text);
        check(json!({"response_type": "yes_no", "eval_modality": "AUDIO"}), false, M::LlmJudge, E::Audio);
        check(json!({"response_type": "yes_no", "eval_route": "TEXT", "name": "pitch"}), true, M::LlmJudge, E::Text);
    }
}
