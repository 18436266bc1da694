//! The job `judge_card`: judges labelled conversations again, each several times, as a run would judge them.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream;
use ringer_base::error::{Error, Result};
use ringer_judge as judge;
use ringer_judge::{Material, Retrial};
use ringer_model::Object;
use ringer_model::custom_metric::CustomMetricSpec;
use ringer_model::judge_card::{CardLabel, CardSubject, JudgedLabel};
use ringer_model::result::find_note;
use ringer_model::transcript::Transcript;
use ringer_provider::LanguageModel;
use ringer_provider::choice::DEFAULT;
use ringer_store::queue::JudgeCardJob;

use super::lease::log_failure;
use super::upkeep::Upkeep;
use crate::{CardWork, ToJudge, UsedBy};

/// Most conversations that are judged at once.
const AT_ONCE: usize = 16;

/// Makes a card. One that is broken off is made anew by the next engine.
pub(super) async fn run(upkeep: &Upkeep, job: &JudgeCardJob) -> Result<()> {
    let made = upkeep.stopping.run_until_cancelled(make_card(upkeep, job)).await;
    made.unwrap_or_else(|| Err(Error::Unavailable("Service is shutting down".into())))
}

/// Makes a card at once, in this task.
pub async fn make_card(upkeep: &Upkeep, job: &JudgeCardJob) -> Result<()> {
    let service = &upkeep.service;
    let counting = upkeep.counting(&service.spending().account(UsedBy::Nobody));
    let Some(work) = service.evaluations().begin_card(job).await? else { return Ok(()) };
    let at_once = upkeep.judged_at_once.clamp(1, AT_ONCE);
    let (work, job_of) = (Arc::new(work), Arc::new(job.clone()));
    let labels: Vec<CardLabel> = work.card.labels.clone();
    let asked = labels.into_iter().enumerate().map(|(at, label)| {
        let (counting, work, job) = (counting.clone(), work.clone(), job_of.clone());
        async move { judge_label(&counting, &job, &work, (at, &label)).await }
    });
    let judged: Vec<Result<JudgedLabel>> = stream::iter(asked).buffered(at_once).collect().await;
    let judged = judged.into_iter().collect::<Result<Vec<JudgedLabel>>>()?;
    log_failure("failed to store the use of language models", service.spending().store_noted().await);
    service.evaluations().finish_card(job, judged).await
}

/// Judges one conversation as often as the card says.
async fn judge_label(
    upkeep: &Upkeep,
    job: &JudgeCardJob,
    work: &CardWork,
    (at, label): (usize, &CardLabel),
) -> Result<JudgedLabel> {
    let result_id = label.simulation_result_id.as_ref().and_then(|id| id.get());
    let mut judged = JudgedLabel {
        simulation_result_id: result_id,
        line: label.line.unwrap_or(at as i64 + 1),
        label: label.label,
        language: label.language.clone(),
        channel: label.channel.clone(),
        evidence_at: label.evidence_at,
        ..JudgedLabel::default()
    };
    let given = match material_of(upkeep, job, label, result_id).await {
        Ok(given) => given,
        Err(Error::NotFound(what)) => {
            judged.reason = Some(format!("{what} not found"));
            return Ok(judged);
        }
        Err(error) => return Err(error),
    };
    let entries = given.transcript.as_ref().map(|transcript| &transcript.entries[..]).unwrap_or_default();
    judged.words = entries.iter().map(|entry| entry.utterance.split_whitespace().count() as u64).sum();
    if result_id.is_some() {
        judged.language = judged.language.or_else(|| Some(judge::language(&given.metadata).to_owned()));
        judged.channel = judged.channel.or_else(|| channel_of(&given.metadata));
    }
    let Some(main) = upkeep.model.as_deref() else {
        judged.reason = Some(judge::NO_MODEL.to_owned());
        return Ok(judged);
    };
    let is_panel = work.card.names.len() > 1;
    let chosen = work.card.names.first().filter(|name| !is_panel && *name != DEFAULT);
    let other = chosen.map(|name| main.other(name));
    let Some(model) = (match &other {
        None => Some(main),
        Some(other) => other.as_deref(),
    }) else {
        judged.reason = chosen.map(|name| format!("Language model '{name}' is not configured"));
        return Ok(judged);
    };
    let material = Material {
        entries,
        unheard: &given.unheard,
        calls: &given.calls,
        metadata: Some(&given.metadata),
        measures: &given.measures,
        agent_prompt: &given.agent_prompt,
        success_criteria: &given.success_criteria,
        rules: &given.rules,
        earlier: &given.earlier,
        attempts: &given.attempts,
        panel: if is_panel { &work.card.names } else { &[] },
        ..Material::default()
    };
    // The card has chosen the model.
    let metric = work.metric.clone().map(|metric| CustomMetricSpec { model: None, ..metric });
    let subject = match (work.card.subject, &metric, &work.card.meaning) {
        (CardSubject::Metric, Some(metric), _) => Retrial::Metric(metric),
        (CardSubject::Meaning, _, Some(meaning)) => Retrial::Meaning(meaning),
        _ => Retrial::Goal,
    };
    answer(&mut judged, subject, material, model, work.card.repeat).await;
    Ok(judged)
}

async fn answer(
    judged: &mut JudgedLabel,
    subject: Retrial<'_>,
    material: Material<'_>,
    model: &dyn LanguageModel,
    repeat: i64,
) {
    for _ in 0..repeat {
        match judge::retry(subject, material, model).await {
            Ok((answer, why)) => {
                judged.answers.push(answer);
                judged.reason = judged.reason.take().or(why);
            }
            Err(why) => {
                judged.reason = Some(why);
                return;
            }
        }
    }
}

/// Returns the material of a stored result, or of a text.
async fn material_of(
    upkeep: &Upkeep,
    job: &JudgeCardJob,
    label: &CardLabel,
    result_id: Option<i64>,
) -> Result<ToJudge> {
    let mut given = match (result_id, &label.conversation) {
        (Some(id), _) => upkeep.service.evaluations().to_judge(&job.organization, id).await?,
        (None, Some(text)) => {
            let entries = judge::entries_of(text).map_err(Error::Refused)?;
            let language = label.language.clone().unwrap_or_default();
            let transcript = Some(Transcript { simulation_result_id: 0, language, entries });
            ToJudge { transcript, ..ToJudge::default() }
        }
        (None, None) => return Err(Error::NotFound("Conversation")),
    };
    if let Some(criteria) = &label.success_criteria {
        given.success_criteria.clone_from(criteria);
    }
    Ok(given)
}

/// Returns the first word of a result's transport, such as `SIP`.
fn channel_of(metadata: &Object) -> Option<String> {
    let transport = find_note(metadata, "transport")?.as_str()?;
    transport.split([',', '/', ' ']).next().filter(|word| !word.is_empty()).map(str::to_owned)
}
