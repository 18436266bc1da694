//! `read_result`: one conversation in words and figures, and the waiting for its end.

use std::time::Duration;

use ringer_media::frame::PER_MS;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::asking::Fault;
use super::session::Call;
use crate::cli::run::client::Trouble;
use crate::cli::run::text_of;
use crate::model::status::ResultStatus;

/// Time between two looks at results: nothing tells of the end of several at once.
const LOOK: Duration = Duration::from_millis(500);
/// Number of looks after which the progress is told again.
const LOOKS_TOLD: u32 = 10;
/// Number of looks after which a conversation counts as half done in the progress.
const LOOKS_HALF: u32 = 60;

/// Seconds that a tool waits for conversations when nothing else is asked for.
pub(super) const WAIT_S: u64 = 45;
/// Longest time that a tool waits, in seconds.
pub(super) const MOST_WAIT_S: u64 = 3600;

/// Arguments of the tool `read_result`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReadResult {
    result_id: Value,
    #[serde(default)]
    wait_s: Option<u64>,
}

/// Tells one conversation, after its end or after some time.
pub(super) async fn read_result(call: &Call<'_>, asked: ReadResult) -> Result<Value, Fault> {
    let wait_s = asked.wait_s.map_or(Ok(0), |wait_s| wait_of(Some(wait_s)))?;
    let id = text_of(&asked.result_id);
    if id.is_empty() || !id.chars().all(|c| c.is_ascii_digit()) {
        return Err(Fault::from_text("result_id must be the number of a result"));
    }
    wait(call, std::slice::from_ref(&id), wait_s).await?;
    tell(call, &id).await
}

/// Checks a time to wait.
pub(super) fn wait_of(wait_s: Option<u64>) -> Result<u64, Fault> {
    match wait_s.unwrap_or(WAIT_S) {
        wait_s if wait_s <= MOST_WAIT_S => Ok(wait_s),
        _ => Err(Fault::from_text(format!("wait_s must be a whole number from 0 to {MOST_WAIT_S}"))),
    }
}

/// Returns the record of a result.
pub(super) async fn record(call: &Call<'_>, id: &str) -> Result<Value, Fault> {
    let mut answer = call.client.get(&format!("/v1/retrieve-simulation-result/{id}")).await?;
    Ok(answer["simulation_result"].take())
}

/// True for a result that is over.
pub(super) fn is_over(record: &Value) -> bool {
    record["status"].as_str().map(ResultStatus::from).is_some_and(ResultStatus::is_terminal)
}

/// Waits until all results are over, at most for so many seconds, or until the assistant gives up.
pub(super) async fn wait(call: &Call<'_>, ids: &[String], wait_s: u64) -> Result<(), Fault> {
    let (mut open, mut last): (Vec<&String>, usize) = (ids.iter().collect(), ids.len());
    let looking = async {
        for look in 0u32.. {
            let mut still = Vec::new();
            for id in open {
                if !is_over(&record(call, id).await?) {
                    still.push(id);
                }
            }
            let done = ids.len() - still.len();
            if look % LOOKS_TOLD == 0 || still.len() < last || still.is_empty() {
                // What is told has to grow, also while no conversation ends.
                let begun = if still.is_empty() { 0.0 } else { f64::from(look) / f64::from(look + LOOKS_HALF) };
                let message = format!("{done} of {} conversations are over", ids.len());
                call.progress(done as f64 + begun, ids.len(), message).await;
            }
            if still.is_empty() {
                break;
            }
            (last, open) = (still.len(), still);
            sleep(LOOK).await;
        }
        Ok::<(), Fault>(())
    };
    if wait_s == 0 {
        return Ok(());
    }
    tokio::select! {
        found = timeout(Duration::from_secs(wait_s), looking) => found.unwrap_or(Ok(())),
        () = call.context.ct.cancelled() => Ok(()),
    }
}

/// Tells one conversation as it is now.
pub(super) async fn tell(call: &Call<'_>, id: &str) -> Result<Value, Fault> {
    let record = record(call, id).await?;
    let turns = optional(call, &format!("/v1/simulation-result/{id}/turns?words=false")).await?;
    let transcript = optional(call, &format!("/v1/simulation-result/{id}/transcript?words=false")).await?;
    let files = ["timeline", "transcript", "recording.wav", "recording.opus"];
    let links: Vec<String> = files.iter().map(|file| format!("ringer://results/{id}/{file}")).collect();
    let over = is_over(&record);
    let mut told = json!({ "result_id": id, "over": over });
    for (name, of) in SHOWN {
        told[*name] = record[*of].clone();
    }
    told["goal"] = record["evaluations"][0].get("goal_success").map_or(
        Value::Null,
        |success| json!({ "success": success, "reasoning": record["evaluations"][0]["goal_reasoning"] }),
    );
    told["warnings"] = record["metadata"]["warnings"].clone();
    told["untrusted_reason"] = record["engine_quality"]["untrusted_reason"].clone();
    told["transcript"] = lines(&transcript);
    told["turns"] = turns["turns"].as_array().map_or(Value::Null, |turns| turns.iter().map(turn).collect());
    told["resources"] = json!(links);
    if !over {
        told["next"] = json!("the conversation goes on: read_result with wait_s tells its end");
    }
    Ok(told)
}

/// Names of what is told, by the fields of the record.
const SHOWN: &[(&str, &str)] = &[
    ("simulation_run_id", "simulation_run_id"),
    ("status", "status"),
    ("outcome", "outcome"),
    ("verdict", "verdict"),
    ("queue_reason", "queue_reason"),
    ("error_code", "error_code"),
    ("error_owner", "error_owner"),
    ("error_message", "error_message"),
    ("end_reason", "end_reason"),
    ("seed", "seed"),
    ("duration_ms", "duration_ms"),
    ("metrics", "metrics"),
    ("expectations", "expectations"),
    ("agent_latencies_s", "latency"),
];

/// Reads what a result may not have.
async fn optional(call: &Call<'_>, path: &str) -> Result<Value, Fault> {
    match call.client.get(path).await {
        Ok(found) => Ok(found),
        Err(Trouble::Refused(refusal)) if matches!(refusal.status, 404 | 409) => Ok(Value::Null),
        Err(trouble) => Err(trouble.into()),
    }
}

/// Returns a transcript as lines; null where there is none.
fn lines(transcript: &Value) -> Value {
    let Some(entries) = transcript["entries"].as_array() else { return Value::Null };
    let line = |entry: &Value| {
        let words = entry["utterance"].as_str().filter(|words| !words.trim().is_empty());
        let missing = entry["text_missing"].as_str().map(|why| format!("[not understood: {why}]"));
        let said: Vec<String> = words.map(str::to_owned).into_iter().chain(missing).collect();
        json!(format!("{}: {}", entry["speaker"].as_str().unwrap_or_default(), said.join(" ")))
    };
    entries.iter().map(line).collect()
}

/// Returns the figures of a turn.
fn turn(turn: &Value) -> Value {
    let ms = |name: &str| turn[name].as_i64().map(|sample| sample / PER_MS);
    json!({
        "index": turn["index"], "speaker": turn["speaker"], "from_ms": ms("from_sample"), "to_ms": ms("to_sample"),
        "latency_ms": turn["latency_ms"], "overlap_ms": turn["overlap_ms"], "interrupted": turn["interrupted"],
        "text": turn["text"],
    })
}
