//! Report cards of judges: asked for with labels or by reviews, judged by a job, listed.

use std::collections::BTreeSet;

use ringer_base::config::nearest;
use ringer_base::error::{Error, Result};
use ringer_judge::card::{LeastRates, figures, trust};
use ringer_judge::{
    NO_MODEL, check_labels, check_retrial, goal_version, judge_name, meaning_version, metric_version, place_of,
};
use ringer_model::agent::AgentDoc;
use ringer_model::custom_metric::CustomMetricSpec;
use ringer_model::evaluation::Evaluation;
use ringer_model::id::IdString;
use ringer_model::judge_card::{
    CardLabel, CardRequest, CardStatus, CardSubject, JudgeAnswer, JudgeCardDoc, JudgeCardRecord, JudgeStatus,
    JudgedLabel, judge_key,
};
use ringer_model::language_model::ModelKind;
use ringer_model::result::ResultDoc;
use ringer_model::review::ReviewDoc;
use ringer_model::time::Timestamp;
use ringer_provider::choice::DEFAULT;
use ringer_store::queue::JudgeCardJob;
use ringer_store::{Row, Session};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use super::Evaluations;
use crate::Caller;

/// Most problems of labels that one refusal tells.
const TOLD: usize = 10;

/// Answer with the cards of an organization.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CardList {
    /// Cards, the newest one first; without their conversations.
    pub judge_cards: Vec<JudgeCardRecord>,
}

/// A card that is made.
#[derive(Clone, Debug, PartialEq)]
pub struct CardWork {
    /// The card with its labels.
    pub card: JudgeCardDoc,
    /// Custom metric that it is about.
    pub metric: Option<CustomMetricSpec>,
}

impl Evaluations {
    /// Stores a card, and a job that makes it where `queue` is true.
    ///
    /// # Errors
    /// [`Error::Refused`] names each label that cannot be used, or the model that is not there.
    pub async fn add_card(&self, caller: &Caller, request: CardRequest, queue: bool) -> Result<JudgeCardRecord> {
        let now = self.clock.now_ms();
        let mut db = self.store.org(&caller.organization).write().await?;
        let CardRequest { model, metric_id, meaning, agent_id, labels, repeat } = request;
        let metric = match metric_id {
            Some(_) if meaning.is_some() => {
                return Err(Error::Refused("metric_id and meaning exclude each other".into()));
            }
            Some(id) => Some(db.get::<CustomMetricSpec>(id).await?.doc),
            None => None,
        };
        if let Some(metric) = &metric {
            check_retrial(metric).map_err(Error::Refused)?;
        }
        let agent_id = match agent_id {
            Some(id) => Some(db.get::<AgentDoc>(id.get().ok_or(Error::NotFound("Agent"))?).await?.id),
            None => None,
        };
        let (names, model) = self.judge_of(model.as_deref(), metric.as_ref())?;
        let (subject, prompt_version) = match (&metric, &meaning) {
            (Some(metric), _) => (CardSubject::Metric, metric_version(metric)),
            (_, Some(meaning)) => (CardSubject::Meaning, meaning_version(meaning)),
            _ => (CardSubject::Goal, goal_version()),
        };
        let from_reviews = labels.is_none();
        let labels = match labels {
            Some(_) if agent_id.is_some() => {
                return Err(Error::Refused("agent_id chooses among reviews; it goes without labels".into()));
            }
            Some(labels) => {
                check_given(&mut db, &labels, subject).await?;
                labels
            }
            None => labels_of_reviews(&mut db, subject, metric_id, agent_id).await?,
        };
        let status = CardStatus::Queued;
        let doc = JudgeCardDoc {
            names,
            model,
            prompt_version,
            subject,
            metric_id,
            meaning,
            agent_id,
            repeat,
            status,
            from_reviews,
            labels,
            ..JudgeCardDoc::default()
        };
        let id = db.insert(&doc, now, Some(caller.author())).await?;
        if queue {
            let job = JudgeCardJob { organization: caller.organization.clone(), card_id: id };
            db.put(&job, now, None).await?;
        }
        let row = db.get::<JudgeCardDoc>(id).await?;
        db.answer(record(row, false, self.least(), true)).await
    }

    /// Returns the cards, newest first.
    pub async fn cards(&self, caller: &Caller) -> Result<CardList> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let mut keys = BTreeSet::new();
        let records = db.all::<JudgeCardDoc>().await?.into_iter().map(|row| {
            let is_newest = row.doc.status == CardStatus::Completed
                && keys.insert(judge_key(&row.doc.model, &row.doc.prompt_version));
            record(row, is_newest, self.least(), false)
        });
        Ok(CardList { judge_cards: records.collect() })
    }

    /// Returns a card with its conversations.
    pub async fn card(&self, caller: &Caller, card_id: &str) -> Result<JudgeCardRecord> {
        let id = Uuid::parse_str(card_id).map_err(|_| Error::NotFound("Judge card"))?;
        let mut db = self.store.org(&caller.organization).read().await?;
        let row = db.get::<JudgeCardDoc>(id).await?;
        let newest = db.card_in_force(&row.doc.model, &row.doc.prompt_version).await?;
        let is_newest = newest.is_some_and(|newest| newest.id == id);
        Ok(record(row, is_newest, self.least(), true))
    }

    /// Begins a card; `None` when it was deleted, or is made already.
    pub async fn begin_card(&self, job: &JudgeCardJob) -> Result<Option<CardWork>> {
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(mut row) = db.find::<JudgeCardDoc>(job.card_id).await? else { return Ok(None) };
        if !matches!(row.doc.status, CardStatus::Queued | CardStatus::Running) {
            return Ok(None);
        }
        let metric = match row.doc.metric_id {
            Some(id) => match db.find::<CustomMetricSpec>(id).await? {
                Some(metric) if metric_version(&metric.doc) == row.doc.prompt_version => Some(metric.doc),
                _ => {
                    fail(&mut row.doc, "the metric was changed or deleted before it was judged".to_owned());
                    db.update(row.id, &row.doc, self.clock.now_ms(), None).await?;
                    db.commit().await?;
                    return Ok(None);
                }
            },
            None => None,
        };
        row.doc.status = CardStatus::Running;
        db.update(row.id, &row.doc, self.clock.now_ms(), None).await?;
        db.commit().await?;
        Ok(Some(CardWork { card: row.doc, metric }))
    }

    /// Keeps what was judged, with its figures; the texts of the labels are dropped.
    pub async fn finish_card(&self, job: &JudgeCardJob, judged: Vec<JudgedLabel>) -> Result<()> {
        let now = self.clock.now_ms();
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(mut row) = db.find::<JudgeCardDoc>(job.card_id).await? else { return Ok(()) };
        let doc = &mut row.doc;
        let answers = judged.iter().flat_map(|one| &one.answers);
        let is_unreached = answers.clone().all(|answer| *answer == JudgeAnswer::Failed);
        if is_unreached {
            let why = judged.iter().find_map(|one| one.reason.clone()).unwrap_or_default();
            let what = match judged.iter().any(|one| !one.answers.is_empty()) {
                true => "the language model was not reached",
                false => "no conversation could be judged",
            };
            fail(doc, format!("{what}: {why}"));
        } else {
            (doc.figures, doc.status) = (Some(figures(&judged)), CardStatus::Completed);
        }
        (doc.judged, doc.completed_at) = (judged, Some(Timestamp(now)));
        doc.labels.clear();
        db.update(row.id, &row.doc, now, None).await?;
        db.commit().await
    }

    /// Ends a card whose job was broken off again and again; one that is made stays.
    pub async fn give_up_card(&self, job: &JudgeCardJob) -> Result<()> {
        let now = self.clock.now_ms();
        let mut db = self.store.org(&job.organization).write().await?;
        let Some(mut row) = db.find::<JudgeCardDoc>(job.card_id).await? else { return Ok(()) };
        if matches!(row.doc.status, CardStatus::Queued | CardStatus::Running) {
            fail(&mut row.doc, "it was broken off several times, and is given up".to_owned());
            row.doc.completed_at = Some(Timestamp(now));
            db.update(row.id, &row.doc, now, None).await?;
        }
        db.commit().await
    }

    /// Returns the least rates of a judge that is proven.
    pub(crate) fn least(&self) -> LeastRates {
        LeastRates { tpr: self.settings.judge.least_tpr, tnr: self.settings.judge.least_tnr }
    }

    /// Returns the names of the models that judge, and the name of the judge.
    ///
    /// # Errors
    /// There is no model, or none of this name.
    fn judge_of(&self, wanted: Option<&str>, metric: Option<&CustomMetricSpec>) -> Result<(Vec<String>, String)> {
        let model = self.model.as_deref().ok_or_else(|| Error::Refused(NO_MODEL.to_owned()))?;
        let panel = &self.settings.judge.panel;
        let own = wanted.or(metric.and_then(|metric| metric.model.as_deref()));
        match own {
            None if !panel.is_empty() => Ok((panel.clone(), judge_name(model, panel))),
            None | Some(DEFAULT) => Ok((vec![DEFAULT.to_owned()], model.name())),
            Some(name) => match model.other(name) {
                Some(other) => Ok((vec![name.to_owned()], other.name())),
                None => Err(Error::Refused(self.unknown_model(name))),
            },
        }
    }

    fn unknown_model(&self, name: &str) -> String {
        let models = self.settings.models.iter().filter(|model| model.kind == ModelKind::Language);
        let names: Vec<&str> = models.map(|model| model.name.as_str()).collect();
        let near = nearest(name, names.iter().copied());
        let listed = if names.is_empty() { "there is the default one alone".to_owned() } else { names.join(", ") };
        format!("Language model '{name}' is not configured{near}; configured: {listed}")
    }
}

fn fail(doc: &mut JudgeCardDoc, why: String) {
    (doc.status, doc.reason) = (CardStatus::Failed, Some(why));
    doc.labels.clear();
}

/// Checks labels that were sent, in the order of their places.
async fn check_given(db: &mut Session, labels: &[CardLabel], subject: CardSubject) -> Result<()> {
    let mut problems = check_labels(labels);
    for (at, label) in labels.iter().enumerate() {
        let place = place_of(label, at);
        let has_criteria = label.success_criteria.as_deref().is_some_and(|text| !text.trim().is_empty());
        match &label.simulation_result_id {
            Some(id) => {
                let is_there = match id.get() {
                    Some(id) => db.find::<ResultDoc>(id).await?.is_some(),
                    None => false,
                };
                if !is_there {
                    problems.push(format!("{place}: there is no result {}", id.0));
                }
            }
            None if subject == CardSubject::Goal && label.conversation.is_some() && !has_criteria => {
                problems.push(format!("{place} has no success_criteria by which its goal could be judged"))
            }
            None => {}
        }
    }
    let left = problems.len().saturating_sub(TOLD);
    problems.truncate(TOLD);
    problems.extend((left > 0).then(|| format!("{left} more problems")));
    if problems.is_empty() { Ok(()) } else { Err(Error::Refused(problems.join("; "))) }
}

/// Returns the results with the value of a person.
///
/// # Errors
/// There is none.
async fn labels_of_reviews(
    db: &mut Session,
    subject: CardSubject,
    metric_id: Option<Uuid>,
    agent_id: Option<i64>,
) -> Result<Vec<CardLabel>> {
    if subject == CardSubject::Meaning {
        return Err(Error::Refused("reviews say nothing about meanings: labels are needed".into()));
    }
    let ids: BTreeSet<i64> = db.all::<ReviewDoc>().await?.into_iter().map(|row| row.doc.result_id).collect();
    let mut labels = Vec::new();
    for id in ids {
        let Some(row) = db.find::<ResultDoc>(id).await? else { continue };
        let body = &row.doc.body;
        let value = body.evaluations.first().and_then(|evaluation| human_value(evaluation, metric_id));
        if let (Some(label), true) = (value, agent_id.is_none_or(|wanted| body.agent_id == wanted)) {
            labels.push(CardLabel { simulation_result_id: Some(IdString::from(id)), label, ..CardLabel::default() });
        }
    }
    match labels.is_empty() {
        true => Err(Error::Refused(
            "no result has the value of a person: review conversations first, or send labels".to_owned(),
        )),
        false => Ok(labels),
    }
}

/// Returns the value that a person gave: of the goal, or of a custom metric.
fn human_value(evaluation: &Evaluation, metric_id: Option<Uuid>) -> Option<bool> {
    let Some(id) = metric_id else { return evaluation.human_goal_success };
    let metric = evaluation.custom_metrics.iter().find(|metric| metric.metric_id == id)?;
    match metric.human_response_value.as_deref()? {
        "pass" | "yes" | "true" => Some(true),
        "fail" | "no" | "false" => Some(false),
        _ => None,
    }
}

fn record(row: Row<JudgeCardDoc>, is_newest: bool, least: LeastRates, is_whole: bool) -> JudgeCardRecord {
    let doc = row.doc;
    let (judge_status, judge_reason) = match &doc.figures {
        Some(figures) => trust(figures, least),
        None => (JudgeStatus::NoCard, Some("the card has no figures".to_owned())),
    };
    JudgeCardRecord {
        id: row.id,
        created_at: Timestamp(row.created_ms),
        completed_at: doc.completed_at,
        status: doc.status,
        reason: doc.reason,
        names: doc.names,
        model: doc.model,
        prompt_version: doc.prompt_version,
        subject: doc.subject,
        metric_id: doc.metric_id,
        meaning: doc.meaning,
        agent_id: doc.agent_id,
        repeat: doc.repeat,
        from_reviews: doc.from_reviews,
        in_force: is_newest,
        judge_status,
        judge_reason,
        figures: doc.figures,
        conversations: is_whole.then_some(doc.judged),
    }
}
