//! Templates of custom metrics for conversations by voice, as data, and bodies that are filled from them.

use std::borrow::Cow;
use std::sync::LazyLock;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::Object;
use super::custom_metric::CustomMetricSpec;
use super::schema::{UNLESS, UNLESS_VALID};

/// Field of a metric that names its template.
const TEMPLATE_ID: &str = "template_id";

/// Templates in their order, each with those fields of a metric that it sets.
static TEMPLATES: LazyLock<Vec<(Uuid, Object)>> = LazyLock::new(|| {
    let read: Vec<Object> = serde_json::from_str(include_str!("metric_templates.json")).expect("the file is a list");
    let id = |fields: &Object| fields.get(TEMPLATE_ID).and_then(Value::as_str)?.parse().ok();
    read.into_iter().map(|fields| (id(&fields).expect("each has an id"), fields)).collect()
});

/// Returns all templates as bodies that create a metric.
pub fn metric_templates() -> Vec<CustomMetricSpec> {
    let read = |(_, fields): &(Uuid, Object)| serde_json::from_value(Value::Object(fields.clone()));
    TEMPLATES.iter().map(|template| read(template).expect("each is a metric")).collect()
}

/// Returns the fields that a template sets; `None`: there is no such template.
pub fn metric_template(id: Uuid) -> Option<&'static Object> {
    TEMPLATES.iter().find(|(known, _)| *known == id).map(|(_, fields)| fields)
}

/// Returns the given fields of a metric, with those of a template where none or null are given.
pub fn fill_fields(given: &Object, template: &Object) -> Object {
    let mut fields = template.clone();
    for (name, value) in given {
        if !value.is_null() || !fields.contains_key(name) {
            fields.insert(name.clone(), value.clone());
        }
    }
    fields
}

/// The fields of a new custom metric that are given: with `template_id` the template has the missing ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NewMetric(Object);

impl NewMetric {
    /// Returns the template that is named.
    pub fn template_id(&self) -> Option<Uuid> {
        self.0.get(TEMPLATE_ID).and_then(Value::as_str)?.parse().ok()
    }

    /// Returns the metric, with the fields of a template where none are given.
    ///
    /// # Errors
    /// A member has not the type that a [`CustomMetricSpec`] declares, or is missing, which the walker has excluded.
    pub fn over(self, template: Option<&Object>) -> serde_json::Result<CustomMetricSpec> {
        let fields = match template {
            Some(template) => fill_fields(&self.0, template),
            None => self.0,
        };
        serde_json::from_value(Value::Object(fields))
    }
}

impl JsonSchema for NewMetric {
    fn schema_name() -> Cow<'static, str> {
        "NewCustomMetric".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = CustomMetricSpec::json_schema(generator);
        schema.insert(
            "description".into(),
            "A custom metric to create; a template has the fields that are missing.".into(),
        );
        let required = schema.remove("required").unwrap_or_else(|| json!([]));
        if let Some(Value::Object(properties)) = schema.get_mut("properties") {
            for name in required.as_array().into_iter().flatten().filter_map(Value::as_str) {
                if let Some(property) = properties.get_mut(name) {
                    property[UNLESS] = TEMPLATE_ID.into();
                    property[UNLESS_VALID] = true.into();
                }
            }
        }
        schema
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ringer_syntax::json::read_text;

    use super::*;
    use crate::custom_metric::{EvalMethod, EvalModality, ResponseType};
    use crate::schema::Node;
    use crate::validate::{Source, validate};
    use crate::validation_error::ValidationErrors;

    #[test]
    fn templates_are_whole_metrics() {
        let all = metric_templates();
        assert_eq!(all.len(), 30);
        let names: BTreeSet<&str> = all.iter().map(|metric| metric.name.as_str()).collect();
        let ids: BTreeSet<Option<Uuid>> = all.iter().map(|metric| metric.template_id).collect();
        assert_eq!((names.len(), ids.len()), (30, 30));
        let known: BTreeSet<String> = serde_json::to_value(CustomMetricSpec::default())
            .expect("JSON")
            .as_object()
            .expect("an object")
            .keys()
            .cloned()
            .collect();
        for (metric, (_, fields)) in all.iter().zip(TEMPLATES.iter()) {
            let name = &metric.name;
            assert!(fields.keys().all(|key| known.contains(key)), "{name} has fields of metrics alone");
            assert!(metric.template_id.is_some() && metric.category.is_some() && metric.summary.is_some(), "{name}");
            assert!(metric.description.len() > 40, "{name}");
            assert!(metric.scoring_guidance.as_ref().is_some_and(|text| text.len() > 80), "{name}");
            let has_range = metric.min_value.zip(metric.max_value).is_some_and(|(low, high)| low < high);
            assert_eq!(has_range, metric.response_type == ResponseType::Quantitative, "{name}");
            assert_eq!(metric.enum_options.len() >= 2, metric.response_type == ResponseType::Enum, "{name}");
            let is_measured = metric.method() == EvalMethod::Audio;
            assert_eq!(metric.settings.contains_key("measure"), is_measured, "{name}");
            assert_ne!(metric.eval_modality, EvalModality::Auto, "{name}");
        }
    }

    #[test]
    fn a_template_stands_in_where_its_id_is_one() {
        let id = metric_templates()[0].template_id.expect("an id");
        for (body, expect) in [
            (json!({ "template_id": id }), 0),
            (json!({ "template_id": id, "name": "Mine" }), 0),
            (json!({}), 3),
            (json!({ "template_id": null, "name": "Mine" }), 2),
            (json!({ "template_id": "x", "name": "Mine" }), 3),
        ] {
            let mut issues = ValidationErrors::default();
            let (node, text) = (Node::of::<NewMetric>(), body.to_string());
            let read = read_text(&text).expect("it is JSON");
            validate(Source::Body, &node, &read, &mut issues);
            assert_eq!(issues.len(), expect, "{body}");
        }
    }

    #[test]
    fn given_fields_win_over_those_of_a_template() {
        let id = metric_templates()[0].template_id.expect("an id");
        let body = json!({ "template_id": id, "name": "Mine", "summary": null, "response_type": "pass_fail" });
        let new: NewMetric = serde_json::from_value(body).expect("an object");
        assert_eq!(new.template_id(), Some(id));
        let made = new.over(metric_template(id)).expect("it is whole");
        let template = &metric_templates()[0];
        assert_eq!((made.name.as_str(), made.response_type), ("Mine", ResponseType::PassFail));
        assert_eq!((&made.summary, &made.description), (&template.summary, &template.description));
        assert_eq!(metric_template(Uuid::nil()), None);
    }
}
