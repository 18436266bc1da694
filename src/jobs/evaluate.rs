//! The job `evaluate`: measures a conversation that is over and keeps the verdict.

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::judge::{self, Facts, Material};
use crate::model::result::ResultBody;
use crate::model::status::ResultStatus;
use crate::model::time::Timestamp;
use crate::queue::EvaluateJob;
use crate::service::{Judged, Service};

use super::Workshop;

/// Evaluates a result that waits for it, or again one that is finished.
pub(super) async fn run(workshop: Workshop, job: EvaluateJob) -> Result<()> {
    let (service, organization, id) = (&workshop.service, &job.organization, job.result_id);
    tracing::Span::current().record("result_id", id);
    let caller = Service::engine_caller(organization);
    let body = match service.result(&caller, id).await {
        Ok(record) => record.body,
        Err(Error::NotFound(_)) => return Ok(()),
        Err(error) => return Err(error),
    };
    match body.status {
        ResultStatus::ConversationEnded => {
            let (from, to) = (ResultStatus::ConversationEnded, ResultStatus::Evaluating);
            service.advance(organization, id, from, to, |_| {}).await?;
        }
        ResultStatus::Evaluating => {}
        status if status.is_terminal() => {}
        _ => return Ok(()),
    }
    let timeline = match service.timeline(&caller, id).await {
        Ok(timeline) => timeline.events,
        Err(Error::NotAvailable(_)) => serde_json::json!([]),
        Err(error) => return Err(error),
    };
    let mut judged =
        judged(&workshop, organization, id, &body, &timeline, service.recording_path(&caller, id).await.ok()).await?;
    let steps = service.playback_steps(organization, &body).await?;
    if !steps.is_empty() {
        let found = judge::playback(&steps, &judge::moments(&timeline));
        judged.metadata.insert("playback".into(), found.into());
    }
    if let Some(redactor) = service.redactor(organization, id).await? {
        service.redact(organization, id, &redactor, &mut judged).await?;
    }
    service.store_evaluation(organization, id, judged).await.map(drop)
}

async fn judged(
    workshop: &Workshop,
    organization: &str,
    result_id: i64,
    body: &ResultBody,
    timeline: &serde_json::Value,
    recording: Option<PathBuf>,
) -> Result<Judged> {
    let behaviour = body.metadata.get("engine.behaviour").or_else(|| body.metadata.get("behaviour"));
    let behaviour = |key: &str| behaviour.and_then(|behaviour| behaviour[key].as_str());
    let is_digit = |digit: &char| *digit != ',';
    let facts = Facts {
        extension_digits: behaviour("extension").map_or(0, |digits| digits.chars().filter(is_digit).count()),
        // All calls are made over SIP.
        interface: "PHONE",
        fillers: judge::fillers(behaviour("language").unwrap_or("en"), &workshop.fillers),
    };
    let moments = judge::moments(timeline);
    let measured = judge::measure(&moments, &facts);
    let mut evaluation = measured.evaluation;
    evaluation.id = crate::clock::new_id();
    evaluation.created_at = Timestamp(workshop.service.clock().now_ms());
    let (mut metrics, latency) = (measured.metrics, Some(measured.latency));
    if let Some(recording) = recording {
        let codec = body.metadata.get("engine.codec").or_else(|| body.metadata.get("codec"));
        let codec = codec.and_then(|codec| codec.as_str()).map(str::to_owned);
        let measuring = move || judge::audio_metrics(&moments, &facts, codec.as_deref(), &recording);
        let measured = tokio::task::spawn_blocking(measuring).await.map_err(Error::internal)?;
        metrics.extend(measured.map_err(Error::internal)?);
    }
    let given = workshop.service.to_judge(organization, result_id).await?;
    let material = Material {
        entries: given.transcript.as_ref().map(|transcript| &transcript.entries[..]).unwrap_or_default(),
        calls: &given.calls,
        metadata: Some(&given.metadata),
        measures: &given.measures,
        agent_prompt: &given.agent_prompt,
        success_criteria: &given.success_criteria,
    };
    let model = workshop.placer.model.as_deref();
    let metadata = judge::judge_words(material, &given.metrics, model, &mut metrics, &mut evaluation).await;
    Ok(Judged { evaluation, metrics, latency, metadata, ..Judged::default() })
}
