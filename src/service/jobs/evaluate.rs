//! The job `evaluate`: measures a conversation that is over and keeps the verdict.

use std::path::{Path, PathBuf};

use ringer_base::error::{Error, Result};
use ringer_engine::TimelineEntry;
use ringer_judge as judge;
use ringer_judge::{Ear, Facts, Grounds, Material, Measured, PartMeasures};
use ringer_model::Object;
use ringer_model::custom_metric::EvalSegment;
use ringer_model::evaluation::{CustomResult, CustomStatus};
use ringer_model::result::{KEPT_FLOOR, MetricValue, ResultBody, find_note};
use ringer_model::status::ResultStatus;
use ringer_model::time::Timestamp;
use ringer_provider::audio::Unread;
use ringer_provider::{LanguageModel, audio};
use ringer_store::queue::EvaluateJob;
use serde_json::{Value, json};

use super::lease::{in_time, log_failure};
use super::workshop::Workshop;
use crate::{Caller, Judged, ToJudge, UsedBy};

/// Evaluates a result that waits for it, or again one that is finished. What takes too long is given up.
pub(super) async fn run(workshop: Workshop, job: EvaluateJob) -> Result<()> {
    let service = &workshop.service;
    let _under_way = workshop.judging.begin(job.result_id).await;
    let account = service.spending().account(UsedBy::Result(job.result_id));
    let counting = workshop.counting(&account);
    match in_time(service, &account, evaluate(&counting, &job)).await {
        Some(done) => done,
        None => service.evaluations().break_off_evaluation(&job).await,
    }
}

async fn evaluate(workshop: &Workshop, job: &EvaluateJob) -> Result<()> {
    let (service, organization, id) = (&workshop.service, &job.organization, job.result_id);
    tracing::Span::current().record("result_id", id);
    let caller = Caller::engine(organization);
    let body = match service.runs().result(&caller, id).await {
        Ok(record) => record.body,
        Err(Error::NotFound(_)) => return Ok(()),
        Err(error) => return Err(error),
    };
    match body.status {
        ResultStatus::ConversationEnded => {
            service.conversations().begin_evaluation(organization, id).await?;
        }
        ResultStatus::Evaluating => {}
        status if status.is_terminal() => {}
        _ => return Ok(()),
    }
    let mut timeline = match service.conversations().timeline(&caller, id).await {
        Ok(timeline) => timeline.events,
        Err(Error::NotAvailable(_)) => json!([]),
        Err(error) => return Err(error),
    };
    let recording = service.conversations().recording_path(&caller, id).await;
    let pending = match &recording {
        Err(error @ (Error::Conflict(_) | Error::Unavailable(_))) => Some(format!("recording_pending: {error}")),
        _ => None,
    };
    let mut judged = judge_conversation(workshop, organization, id, &body, &timeline, recording.ok()).await?;
    judged.warnings.extend(pending.map(|why| format!("{why}: what needs its sound was not evaluated")));
    let steps = service.evaluations().playback_steps(organization, id).await?;
    judged.metadata.extend(kept_floor(workshop, &steps, &body, &timeline));
    if !steps.is_empty() {
        play(workshop, &steps, &body, &mut timeline, &mut judged).await;
        let events = timeline.as_array().map(Vec::as_slice).unwrap_or_default();
        service.conversations().store_timeline(organization, id, events).await?;
    }
    if let Some(redactor) = service.conversations().redactor(organization, id).await? {
        service.evaluations().redact(organization, id, &redactor, &mut judged).await?;
    }
    // Whoever hears of the end finds it; what is private is out of the recording by now.
    if let Err(error) = service.conversations().keep_outline(id).await {
        tracing::warn!(%error, "failed to compute the outline of a recording; the first request computes it");
    }
    // Other calls may have told something since this one asked for it.
    let tells = !judged.heard_whole.is_empty() || judge::has_open_stops(&judged.open);
    log_failure("failed to store the use of language models", service.spending().store_noted().await);
    service.evaluations().store_evaluation(organization, id, judged).await?;
    // The evaluation is kept; that of other calls may be looked at by the next one.
    if tells
        && may_interrupt(&body, &steps)
        && let Err(error) = look_again(workshop, organization, id).await
    {
        tracing::warn!(result_id = id, %error, "failed to look again at calls with interruptions");
    }
    Ok(())
}

/// True when the caller's behaviour interrupts the agent.
fn cuts_in(body: &ResultBody) -> bool {
    let behaviour = find_note(&body.metadata, "behaviour");
    behaviour.is_some_and(|behaviour| behaviour["interruption"]["type"] != "none")
}

/// True when the caller may interrupt the agent, by its behaviour or by a step of its playback.
fn may_interrupt(body: &ResultBody, steps: &[Object]) -> bool {
    cuts_in(body) || steps.iter().any(|step| step.contains_key("interrupt"))
}

/// Looks again at the calls of the same Digital Human in which nothing told whether an interrupted turn was cut: what
/// this call heard may tell it.
async fn look_again(workshop: &Workshop, organization: &str, result_id: i64) -> Result<()> {
    let (service, caller) = (&workshop.service, Caller::engine(organization));
    for id in service.evaluations().open_stops(organization, result_id).await? {
        let elsewhere = judge::whole_turns(service.evaluations().heard_elsewhere(organization, id).await?);
        let body = service.runs().result(&caller, id).await?.body;
        let timeline = match service.conversations().timeline(&caller, id).await {
            Ok(timeline) => timeline.events,
            Err(Error::NotAvailable(_) | Error::NotFound(_)) => continue,
            Err(error) => return Err(error),
        };
        let facts = Facts { elsewhere, ..facts_of(workshop, &body) };
        let measured = judge::measure(&judge::moments(&timeline), &facts);
        service.evaluations().settle_stops(organization, id, measured).await?;
    }
    Ok(())
}

/// Judges how the agent followed the steps that were played, and says so in the timeline.
async fn play(workshop: &Workshop, steps: &[Object], body: &ResultBody, timeline: &mut Value, judged: &mut Judged) {
    let (moments, speaker) = (judge::moments(timeline), find_note(&body.metadata, "speaker").and_then(Value::as_str));
    // Each step was a move of its own where the built-in speaker stood in for a model.
    let joined = speaker == Some("template") && !moments.iter().any(|moment| moment.name() == "fallback_speaker");
    let mut played = judge::playback(steps, &moments, joined, facts_of(workshop, body).extension_digits);
    if let Some(model) = workshop.placement_settings.model.as_deref()
        && let Err(why) = judge::judge_meanings(&mut played, model).await
    {
        judged.warnings.push(format!("enriched_playback: criteria were not judged: {why}"));
    } else if played.iter().any(judge::Played::is_open) {
        judged.warnings.push("enriched_playback: criteria are not judged without a language model".to_owned());
    }
    let untrusted = body.engine_quality.as_ref().and_then(|quality| quality.untrusted_reason.as_deref());
    judge::excuse(&mut played, &body.own_faults, untrusted);
    judge::enter_playback(&played, timeline);
    judged.metadata.insert("playback".into(), played.iter().map(judge::Played::to_json).collect());
}

/// Asks what the simulation wants to know of each of its conversations.
async fn custom_error(wanted: &str, material: Material<'_>, model: Option<&dyn LanguageModel>, judged: &mut Judged) {
    let unasked = match (wanted.trim(), model) {
        ("", _) => "custom_error_enabled: there is no custom_error_prompt to ask".to_owned(),
        (_, None) => "custom_error_prompt: not asked without a language model".to_owned(),
        (wanted, Some(model)) => match judge::decide(wanted, material, model).await {
            Ok(decision) => {
                let document = json!({ "answer": decision.yes, "reasoning": decision.reasoning });
                judged.custom_error = Some(decision.yes);
                judged.metadata.insert("custom_error".into(), document);
                return;
            }
            Err(why) => format!("custom_error_prompt: not answered: {why}"),
        },
    };
    judged.warnings.push(unasked);
}

/// Judges a conversation that is over, with what was measured of it.
async fn judge_conversation(
    workshop: &Workshop,
    organization: &str,
    result_id: i64,
    body: &ResultBody,
    timeline: &Value,
    recording: Option<PathBuf>,
) -> Result<Judged> {
    let mut facts = facts_of(workshop, body);
    let moments = judge::moments(timeline);
    if moments.iter().any(|moment| moment.name() == "barge_in") {
        let heard = workshop.service.evaluations().heard_elsewhere(organization, result_id).await?;
        facts.elsewhere = judge::whole_turns(heard);
    }
    let heard_whole = judge::heard_turns(&moments, &facts);
    // Nothing is measured of a conversation that did not take place, or is not known any more.
    let is_known = !moments.is_empty();
    let measured = if is_known { judge::measure(&moments, &facts) } else { Measured::default() };
    let cuts = if cuts_in(body) { judge::cuts(&moments) } else { None };
    let mut evaluation = measured.evaluation;
    evaluation.id = ringer_base::clock::new_id();
    evaluation.created_at = Timestamp(workshop.service.clock().now_ms());
    let (mut metrics, latency) = (measured.metrics, is_known.then_some(measured.latency));
    let model = workshop.placement_settings.model.as_deref();
    if let Some(model) = model {
        judge::judge_asides(&moments, &facts, model, &mut metrics).await;
    }
    let given = workshop.service.evaluations().to_judge(organization, result_id).await?;
    let entries = given.transcript.as_ref().map(|transcript| &transcript.entries[..]).unwrap_or_default();
    let material = Material { entries, unheard: &given.unheard, ..Material::default() };
    let wanted = judge::parts_to_measure(&given.metrics, material);
    let heard = recording.clone();
    let place = workshop.judging.measuring.acquire().await.expect("the semaphore is never closed");
    let sound = measure_sound(moments, facts, wanted, body, recording).await?;
    drop(place);
    metrics.extend(sound.metrics);
    let listener = workshop.ear.as_deref();
    // Beside the metrics of sound, pronunciation is judged by ear.
    let (sides, unread) = if listener.is_some() { sides(heard).await? } else { Default::default() };
    let material = Material {
        ear: listener.map(|model| Ear { model, sides: &sides }),
        calls: &given.calls,
        metadata: Some(&given.metadata),
        measures: &given.measures,
        parts: &sound.parts,
        agent_prompt: &given.agent_prompt,
        success_criteria: &given.success_criteria,
        rules: &given.rules,
        earlier: &given.earlier,
        attempts: &given.attempts,
        panel: &given.panel,
        ..material
    };
    let metadata = judge::judge_words(material, &given.metrics, model, &mut metrics, &mut evaluation).await;
    let open = measured.open;
    let mut judged = Judged { evaluation, metrics, latency, metadata, open, heard_whole, ..Judged::default() };
    if !given.expectations.is_empty() {
        judge_expectations(&given, material, body, timeline, model, &mut judged).await;
    }
    judged.warnings.extend(sound.fault.map(|error| format!("recording: how it sounds was not measured: {error}")));
    judged.warnings.extend(unread.map(|unread| format!("recording: {unread}")));
    judged.metadata.extend(cuts.map(|cuts| ("interruptions".to_owned(), cuts)));
    if !judged.metrics.is_empty() {
        judged.metadata.insert("accuracy".to_owned(), judge::accuracy::table().name.as_str().into());
    }
    if let Some(wanted) = &given.custom_error {
        custom_error(wanted, material, model, &mut judged).await;
    }
    Ok(judged)
}

/// Returns the note that the agent never gave the floor, where it did not.
fn kept_floor(workshop: &Workshop, steps: &[Object], body: &ResultBody, timeline: &Value) -> Option<(String, Value)> {
    let behaviour = find_note(&body.metadata, "behaviour")?;
    let delay_ms = behaviour["endpointing_delay_ms"].as_i64()?;
    let why = judge::kept_floor(&judge::moments(timeline), &facts_of(workshop, body), steps, delay_ms)?;
    Some((KEPT_FLOOR.to_owned(), json!(why)))
}

/// Returns the facts of a call that its measures depend on.
fn facts_of(workshop: &Workshop, body: &ResultBody) -> Facts {
    let extension = find_note(&body.metadata, "behaviour").and_then(|behaviour| behaviour["extension"].as_str());
    let is_digit = |digit: &char| *digit != ',';
    Facts {
        extension_digits: extension.map_or(0, |digits| digits.chars().filter(is_digit).count()),
        interface: judge::interface(&body.metadata),
        fillers: judge::fillers(judge::language(&body.metadata), &workshop.fillers),
        language: Some(judge::language(&body.metadata).to_owned()),
        probe_times: workshop.probe_times,
        yield_times: workshop.yield_times,
        elsewhere: Vec::new(),
    }
}

/// Measures of the sound of a recording, and of parts of its conversation.
struct Sound {
    metrics: Vec<MetricValue>,
    parts: Vec<PartMeasures>,
    /// Fault for which the recording could not be read.
    fault: Option<std::io::Error>,
}

/// Measures the sound of a recording and the wanted parts of the conversation, on a thread of its own.
async fn measure_sound(
    moments: Vec<TimelineEntry>,
    facts: Facts,
    wanted: Vec<(EvalSegment, (i64, i64))>,
    body: &ResultBody,
    recording: Option<PathBuf>,
) -> Result<Sound> {
    let codec = find_note(&body.metadata, "codec").and_then(Value::as_str).map(str::to_owned);
    let measure = move || {
        let codec = codec.as_deref();
        let of = |recording: Option<&Path>, fault: Option<std::io::Error>| {
            let sound = recording.map(|path| judge::audio_metrics(&moments, &facts, codec, path, None)).transpose()?;
            let parts = judge::measure_parts(&wanted, (&moments, &facts), codec, recording)?;
            Ok(Sound { metrics: sound.unwrap_or_default(), parts, fault })
        };
        // A recording that cannot be read leaves everything that is told without it.
        of(recording.as_deref(), None).or_else(|error: std::io::Error| of(None, Some(error)))
    };
    let measured = tokio::task::spawn_blocking(measure).await.map_err(Error::internal)?;
    measured.map_err(|error: std::io::Error| Error::internal(error))
}

/// Returns a custom metric's value as a number, or as true or false; `None` for one that is not evaluated, and for
/// texts.
fn measure_of(custom: &CustomResult) -> Option<MetricValue> {
    let number = custom.quantitative_response.or(custom.float_value).or(custom.int_value.map(|value| value as f64));
    let word = custom.pass_fail_response.as_deref().or(custom.yes_no_response.as_deref());
    let flag = custom.boolean_value.or_else(|| Some(matches!(word?, "pass" | "yes")));
    let value = number.map(Value::from).or(flag.map(Value::from))?;
    let is_told = custom.status == CustomStatus::Evaluated;
    is_told.then(|| MetricValue { name: custom.name.clone(), value, note: None })
}

/// Judges the expectations of a conversation.
async fn judge_expectations(
    given: &ToJudge,
    material: Material<'_>,
    body: &ResultBody,
    timeline: &Value,
    model: Option<&dyn LanguageModel>,
    judged: &mut Judged,
) {
    let (moments, mut metrics) = (judge::moments(timeline), judged.metrics.clone());
    metrics.extend(given.measures.iter().cloned());
    // A built-in metric comes before a custom one of its name.
    metrics.extend(judged.evaluation.custom_metrics.iter().filter_map(measure_of));
    let grounds = Grounds {
        material,
        metrics: &metrics,
        open: &judged.open,
        moments: &moments,
        ended_by: body.conversation_ended_by,
        duration_ms: body.duration_ms,
        own_faults: &body.own_faults,
        untrusted: body.engine_quality.as_ref().and_then(|quality| quality.untrusted_reason.as_deref()),
    };
    judged.expectations = judge::judge_expectations(&given.expectations, &grounds, model).await;
}

/// Returns caller and agent as they were recorded, and what could not be read of it; nothing when they were not, or
/// cannot be read.
async fn sides(recording: Option<PathBuf>) -> Result<(Vec<Vec<i16>>, Option<Unread>)> {
    let Some(path) = recording else { return Ok(Default::default()) };
    let Ok(bytes) = tokio::fs::read(path).await else { return Ok(Default::default()) };
    let decoded = tokio::task::spawn_blocking(move || audio::decode_call(bytes, true)).await;
    // An empty file is no recording.
    Ok(decoded.map_err(Error::internal)?.map(|audio| (audio.sides, audio.unread)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use ringer_media::clip::write_wav;

    use super::{CustomResult, CustomStatus, Value, measure_of, sides};

    #[test]
    fn custom_metrics_with_a_number_or_a_truth_value_can_be_expected() {
        let evaluated =
            || CustomResult { name: "m".into(), status: CustomStatus::Evaluated, ..CustomResult::default() };
        for (custom, expect) in [
            (CustomResult { quantitative_response: Some(7.5), ..evaluated() }, Some(Value::from(7.5))),
            (CustomResult { int_value: Some(3), ..evaluated() }, Some(Value::from(3.0))),
            (CustomResult { pass_fail_response: Some("fail".into()), ..evaluated() }, Some(false.into())),
            (CustomResult { yes_no_response: Some("yes".into()), ..evaluated() }, Some(true.into())),
            (CustomResult { qualitative_response: Some("fine".into()), ..evaluated() }, None),
            (CustomResult { int_value: Some(3), status: CustomStatus::NotEvaluated, ..evaluated() }, None),
        ] {
            assert_eq!(measure_of(&custom).map(|metric| metric.value), expect, "{custom:?}");
        }
    }

    #[tokio::test]
    async fn what_is_missing_of_a_recording_is_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let wav = write_wav(16_000, 2, &[5; 64_000]);
        for (bytes, count, missing) in [(&wav[..], 2, false), (&wav[..44 + 64_000], 2, true), (b"", 0, false)] {
            let path = folder.path().join("recording.wav");
            std::fs::write(&path, bytes).expect("it is written");
            let (sides, unread) = sides(Some(path)).await.expect("it is there");
            assert_eq!((sides.len(), unread.is_some()), (count, missing), "{} bytes", bytes.len());
        }
    }
}
