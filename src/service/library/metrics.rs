//! Custom metrics: what is judged of an agent's conversations.

use std::collections::HashSet;

use ringer_base::error::{Error, Result};
use ringer_judge::schema_of;
use ringer_model::agent::AgentDoc;
use ringer_model::custom_metric::{CustomMetricRecord, CustomMetricSpec, EvalModality, ResponseType};
use ringer_model::language_model::{ModelKind, ModelRecord};
use ringer_model::metric_template::{NewMetric, fill_fields, metric_template, metric_templates};
use ringer_model::simulation::SimulationSpec;
use ringer_model::time::Timestamp;
use ringer_model::{Object, Page};
use ringer_store::{Metrics, Row, Session};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::Library;
use super::field_rules::{self, apply_patch};
use crate::Caller;

/// One page of custom metrics.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MetricPage {
    /// Custom metrics of this page, newest first.
    pub metrics: Vec<CustomMetricRecord>,
    /// Same list as `metrics`.
    pub data: Vec<CustomMetricRecord>,
    /// Number of custom metrics on all pages.
    pub total_count: i64,
    /// Number of this page, from 1.
    pub page: i64,
    /// Largest number of entries on a page.
    pub page_size: i64,
    /// Rows on this page.
    pub items_in_page: i64,
    /// 0 when there is none.
    pub total_pages: i64,
}

/// Response to changing several metrics.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MetricsUpdated {
    /// Always true: failures are errors.
    pub success: bool,
    /// Confirmation in words, for display.
    pub message: String,
    /// Number of metrics that were changed.
    pub updated: i64,
}

/// Response to deleting several metrics.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MetricsDeleted {
    /// Number of metrics that were deleted.
    pub deleted_count: i64,
    /// Ids of the deleted metrics.
    pub deleted_metric_ids: Vec<Uuid>,
}

impl Library {
    /// Creates a custom metric after checking its rules; its template has the fields that are missing.
    pub async fn create_custom_metric(&self, caller: &Caller, new: NewMetric) -> Result<CustomMetricRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let spec = fill_from_template(new)?;
        self.check_models(&spec, None)?;
        let row = self.insert_metric(&mut db, caller, spec).await?;
        db.answer(record_of(caller, row, self.settings.hears)).await
    }

    /// Makes several, or none when one of them is refused.
    pub async fn create_custom_metrics(&self, caller: &Caller, new: Vec<NewMetric>) -> Result<Vec<CustomMetricRecord>> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut made = Vec::with_capacity(new.len());
        for new in new {
            let spec = fill_from_template(new)?;
            self.check_models(&spec, None)?;
            made.push(self.insert_metric(&mut db, caller, spec).await?);
        }
        db.answer(made.into_iter().map(|row| record_of(caller, row, self.settings.hears)).collect()).await
    }

    /// Returns one custom metric of the caller's organization.
    pub async fn custom_metric(&self, caller: &Caller, id: Uuid) -> Result<CustomMetricRecord> {
        let row = self.store.org(&caller.organization).read().await?.metric(id).await?;
        Ok(record_of(caller, row, self.settings.hears))
    }

    /// Returns the templates of metrics, those of a category only when it is given.
    pub fn metric_templates(&self, category: Option<&str>) -> Vec<CustomMetricSpec> {
        metric_templates().into_iter().filter(|template| is_of(template, category)).collect()
    }

    /// Returns one page, newest first; of one agent, and of one category, when these are given.
    pub async fn custom_metrics(
        &self,
        caller: &Caller,
        agent_id: Option<i64>,
        category: Option<&str>,
        page: i64,
        page_size: i64,
    ) -> Result<MetricPage> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let which = match agent_id {
            Some(id) => Metrics::OfAgent(db.get::<AgentDoc>(id).await?.id),
            None => Metrics::All,
        };
        let start = (page - 1).saturating_mul(page_size);
        if category.is_some() {
            let mut rows = db.metrics(which, i64::MAX, 0).await?;
            rows.retain(|row| is_of(&row.doc, category));
            let total = rows.len() as i64;
            let before = usize::try_from(start).unwrap_or(usize::MAX);
            let rows = rows.into_iter().skip(before).take(usize::try_from(page_size).unwrap_or(0)).collect();
            return Ok(page_of(caller, self.settings.hears, rows, total, page, page_size));
        }
        let total = db.count_metrics(which).await?;
        let rows = db.metrics(which, page_size, start).await?;
        Ok(page_of(caller, self.settings.hears, rows, total, page, page_size))
    }

    /// Returns all metrics of an agent on one page, those of a category only when it is given.
    pub async fn custom_metrics_by_agent(
        &self,
        caller: &Caller,
        agent_id: i64,
        category: Option<&str>,
    ) -> Result<MetricPage> {
        let mut db = self.store.org(&caller.organization).read().await?;
        db.get::<AgentDoc>(agent_id).await?;
        let mut rows = db.metrics(Metrics::OfAgent(agent_id), i64::MAX, 0).await?;
        rows.retain(|row| is_of(&row.doc, category));
        let total = rows.len() as i64;
        Ok(page_of(caller, self.settings.hears, rows, total, 1, total))
    }

    /// Changes the given fields.
    pub async fn update_custom_metric(&self, caller: &Caller, id: Uuid, patch: &Object) -> Result<CustomMetricRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let old = db.metric(id).await?;
        let new = apply_patch(&old.doc, patch)?;
        self.check_models(&new, Some(&old.doc))?;
        if new.template_id != old.doc.template_id {
            check_template(new.template_id)?;
        }
        self.amend_metric(&mut db, caller, &old, patch).await?;
        let row = db.metric(id).await?;
        db.commit().await?;
        Ok(record_of(caller, row, self.settings.hears))
    }

    /// Changes the given fields of several, or of none when one of them is refused.
    pub async fn update_custom_metrics(&self, caller: &Caller, ids: &[Uuid], patch: &Object) -> Result<MetricsUpdated> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut done: Vec<Uuid> = Vec::new();
        for id in ids {
            if !done.contains(id) {
                let old = db.metric(*id).await?;
                self.check_models(&apply_patch(&old.doc, patch)?, Some(&old.doc))?;
                self.amend_metric(&mut db, caller, &old, patch).await?;
                done.push(*id);
            }
        }
        db.commit().await?;
        let updated = done.len() as i64;
        Ok(MetricsUpdated { success: true, message: format!("Updated {updated} custom metric(s)"), updated })
    }

    /// Deletes a metric; simulations that have it selected no longer do. An id that is no uuid is not found.
    pub async fn delete_custom_metric(&self, caller: &Caller, id: &str) -> Result<CustomMetricRecord> {
        let id = Uuid::parse_str(id).map_err(|_| Error::NotFound("Custom metric"))?;
        let mut db = self.store.org(&caller.organization).write().await?;
        let row = db.metric(id).await?;
        self.remove_metrics(&mut db, caller, &[id]).await?;
        db.commit().await?;
        Ok(record_of(caller, row, self.settings.hears))
    }

    /// Deletes several; those that are not there do not matter.
    pub async fn delete_custom_metrics(&self, caller: &Caller, ids: &[Uuid]) -> Result<MetricsDeleted> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let deleted_metric_ids = self.remove_metrics(&mut db, caller, ids).await?;
        db.commit().await?;
        Ok(MetricsDeleted { deleted_count: deleted_metric_ids.len() as i64, deleted_metric_ids })
    }

    /// Checks and inserts a metric.
    pub(crate) async fn insert_metric(
        &self,
        db: &mut Session,
        caller: &Caller,
        mut spec: CustomMetricSpec,
    ) -> Result<Row<CustomMetricSpec>> {
        check_metric(db, &mut spec, None).await?;
        let id = db.insert(&spec, self.clock.now_ms(), Some(caller.author())).await?;
        db.link_metric(id, &spec.agent_ids).await?;
        db.metric(id).await
    }

    /// Lays the given fields over a metric, checks what comes out and stores it when it differs; true then.
    pub(crate) async fn amend_metric(
        &self,
        db: &mut Session,
        caller: &Caller,
        old: &Row<CustomMetricSpec>,
        patch: &Object,
    ) -> Result<bool> {
        let mut spec = apply_patch(&old.doc, patch)?;
        check_metric(db, &mut spec, Some(old.id)).await?;
        let changed = spec != old.doc;
        if changed {
            db.update(old.id, &spec, self.clock.now_ms(), Some(caller.author())).await?;
            db.link_metric(old.id, &spec.agent_ids).await?;
        }
        Ok(changed)
    }

    /// Returns the models that metrics may choose, the default of each kind first.
    pub fn models(&self) -> Vec<ModelRecord> {
        self.settings.models.to_vec()
    }

    /// Checks that the models that a metric names are there. One that was stored before keeps its name, and so does one
    /// of a bundle, which another installation may have written.
    ///
    /// # Errors
    /// A name that is unknown.
    fn check_models(&self, spec: &CustomMetricSpec, old: Option<&CustomMetricSpec>) -> Result<()> {
        let chosen = |spec: &CustomMetricSpec| {
            [(ModelKind::Language, spec.model.clone()), (ModelKind::Audio, spec.audio_model.clone())]
        };
        let kept = old.map(chosen).into_iter().flatten().collect::<Vec<_>>();
        for wanted in chosen(spec) {
            let (kind, Some(name)) = &wanted else { continue };
            let names = |model: &ModelRecord| model.name == *name || (model.is_default && model.model == *name);
            let is_known = self.settings.models.iter().any(|model| model.kind == *kind && names(model));
            if !is_known && !kept.contains(&wanted) {
                return Err(Error::Refused(format!("Unknown model '{name}'")));
            }
        }
        Ok(())
    }

    async fn remove_metrics(&self, db: &mut Session, caller: &Caller, ids: &[Uuid]) -> Result<Vec<Uuid>> {
        let mut gone = Vec::new();
        for id in ids {
            if db.delete::<CustomMetricSpec>(*id).await? {
                gone.push(*id);
            }
        }
        self.strike(db, caller, &gone, |simulation: &mut SimulationSpec| &mut simulation.selected_custom_metrics)
            .await?;
        Ok(gone)
    }
}

/// True if a metric is of a category; `None`: of any.
fn is_of(metric: &CustomMetricSpec, category: Option<&str>) -> bool {
    category.is_none_or(|category| metric.category.as_deref() == Some(category))
}

/// Returns a new metric with the fields of its template.
///
/// # Errors
/// A template that is unknown.
fn fill_from_template(new: NewMetric) -> Result<CustomMetricSpec> {
    let template = check_template(new.template_id())?;
    new.over(template).map_err(Error::internal)
}

/// Returns the fields of a metric in a bundle, with those of the template that it names.
///
/// # Errors
/// A template that is unknown.
pub(crate) fn fill_entity(given: &Object) -> Result<Object> {
    let id = given.get("template_id").and_then(Value::as_str).and_then(|id| id.parse().ok());
    Ok(check_template(id)?.map_or_else(|| given.clone(), |template| fill_fields(given, template)))
}

/// Returns the fields of the template that a metric names.
///
/// # Errors
/// There is none of this id. Metrics that name such a one from before keep it.
fn check_template(id: Option<Uuid>) -> Result<Option<&'static Object>> {
    let Some(id) = id else { return Ok(None) };
    metric_template(id).map(Some).ok_or_else(|| Error::Refused(format!("Unknown template '{id}'")))
}

/// Checks every rule on a metric's fields; the twins become one.
pub(crate) async fn check_metric(db: &mut Session, spec: &mut CustomMetricSpec, this: Option<Uuid>) -> Result<()> {
    let mut agents: Vec<i64> = Vec::new();
    for id in std::mem::take(&mut spec.agent_ids).into_iter().chain(spec.agent_id.take()) {
        if !agents.contains(&id) {
            agents.push(db.get::<AgentDoc>(id).await?.id);
        }
    }
    spec.agent_ids = agents;
    check_fields(spec)?;
    if let Some(code) = &mut spec.svc_as_code_id
        && let Ok(uuid) = Uuid::parse_str(code)
    {
        // The same however it is written.
        *code = uuid.to_string();
    }
    if let Some(code) = &spec.svc_as_code_id
        && db.by::<CustomMetricSpec>("code_id", code.as_str()).await?.iter().any(|row| Some(row.id) != this)
    {
        return Err(Error::Conflict("svc_as_code_id is already used".into()));
    }
    Ok(())
}

/// Refuses metrics that do not exist.
pub(crate) async fn check_selected(db: &mut Session, selected: Option<&[Uuid]>) -> Result<()> {
    for id in selected.unwrap_or_default() {
        db.get::<CustomMetricSpec>(*id).await?;
    }
    Ok(())
}

/// Checks the rules that need no other row.
pub(crate) fn check_fields(spec: &CustomMetricSpec) -> Result<()> {
    field_rules::first(broken_rules(spec))
}

/// Returns the rules that `spec` breaks, in the order of its fields.
pub(crate) fn broken_rules(spec: &CustomMetricSpec) -> Vec<Error> {
    let mut broken = Vec::new();
    let mut refuse = |text: &str| broken.push(Error::Refused(text.to_owned()));
    match (spec.response_type, spec.min_value, spec.max_value) {
        (ResponseType::Quantitative, None, _) | (ResponseType::Quantitative, _, None) => {
            refuse("min_value and max_value are required for quantitative metrics");
        }
        (_, Some(low), Some(high)) if low >= high => refuse("min_value must be less than max_value"),
        _ => {}
    }
    let options = &spec.enum_options;
    let is_too_few = || options.len() < 2 || options.iter().collect::<HashSet<_>>().len() < options.len();
    if spec.response_type == ResponseType::Enum && is_too_few() {
        refuse("enum_options needs at least two different options");
    }
    if spec.response_type == ResponseType::ToolCall && spec.tool_names.is_empty() {
        refuse("tool_names is required for tool_call metrics");
    }
    if let Some(why) = spec.json_schema.as_ref().and_then(|schema| schema_of(schema).err()) {
        refuse(&why);
    }
    broken
}

fn page_of(
    caller: &Caller,
    hears: bool,
    rows: Vec<Row<CustomMetricSpec>>,
    total: i64,
    page: i64,
    page_size: i64,
) -> MetricPage {
    let metrics: Vec<CustomMetricRecord> = rows.into_iter().map(|row| record_of(caller, row, hears)).collect();
    let counted: Page<()> = Page { items: vec![], total_count: total, page, page_size };
    MetricPage {
        total_pages: counted.total_pages(),
        items_in_page: metrics.len() as i64,
        data: metrics.clone(),
        metrics,
        total_count: total,
        page,
        page_size,
    }
}

fn record_of(caller: &Caller, row: Row<CustomMetricSpec>, hears: bool) -> CustomMetricRecord {
    let mut spec = row.doc;
    let chosen = spec.eval_modality == EvalModality::Auto;
    spec.eval_modality = spec.modality(hears);
    spec.eval_method = Some(spec.method());
    CustomMetricRecord {
        id: row.id,
        eval_modality_auto_selected: chosen,
        eval_route: spec.eval_modality,
        eval_route_auto_selected: chosen,
        spec,
        organization_id: caller.organization.clone(),
        workspace_id: caller.organization.clone(),
        created_at: Timestamp(row.created_ms),
        updated_at: Timestamp(row.updated_ms),
        created_by: row.created_by,
        updated_by: row.updated_by,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_differ_however_many_there_are() {
        let many: Vec<String> = (0..500_000).map(|at| format!("option {at}")).collect();
        let twice = [&many[..], &many[..1]].concat();
        for (options, is_right) in [
            (json!([]), false),
            (json!(["a"]), false),
            (json!(["a", "a"]), false),
            (json!(["a", "b"]), true),
            (json!(many), true),
            (json!(twice), false),
        ] {
            let spec = json!({"name": "m", "description": "d", "response_type": "enum", "enum_options": options});
            let spec: CustomMetricSpec = serde_json::from_value(spec).expect("a metric");
            assert_eq!(check_fields(&spec).is_ok(), is_right, "{} options", spec.enum_options.len());
        }
    }
}
