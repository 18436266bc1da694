//! One call of a run: queued, followed to its end, and what is left of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::client::{Client, Trouble};
use super::command::Running;
use super::evidence::without_values;
use super::plan::{Job, Ready};
use super::show::{Line, Show};
use super::text_of;
use crate::judge::YIELDING;
use crate::model::status::ResultStatus;
use crate::suite::Played;
use crate::suite::file::Scenario;
use crate::suite::html::peaks;
use crate::suite::mask::mask;
use crate::suite::verdict::{Judgement, Verdict, judge};

/// Time between two looks at a result whose events cannot be followed.
const LOOK: Duration = Duration::from_millis(300);
/// Number of looks at calls that the engine may judge again when the last one is over.
const LOOKS_AGAIN: usize = 10;
/// Number of repeated requests to a server that is not reached.
const ASKED: usize = 10;
/// Characters of a scenario's name in the names of its files.
const NAME_CHARS: usize = 60;

/// Maker of the calls of a run.
pub(crate) struct Caller {
    /// Client of the engine's API.
    pub client: Client,
    /// Lines that tell how the calls go.
    pub show: Arc<Show>,
    /// The run is broken off.
    pub halt: CancellationToken,
    /// Folder of the results.
    pub out: PathBuf,
    /// True if the evidence of calls that passed is kept, too.
    pub keeps_all_evidence: bool,
}

impl Caller {
    /// Makes a call and gives what is left of it.
    pub(crate) async fn hold(&self, job: &Job, ready: &Ready, command: Arc<Mutex<Option<Running>>>) -> Played {
        if self.halt.is_cancelled() {
            return job.not_made(Judgement::unknown("not_made", "the run was over before the call"));
        }
        if let Some(status) = await_end(&command).await {
            return job.not_made(Judgement::not_started(format!("the agent's command {status}")));
        }
        let line = self.show.line(&job.title(), job.seed);
        let played = match self.follow(job, ready, &line).await {
            Ok(record) => self.gather(job, record, &command).await,
            Err(trouble) => job.not_made(Judgement::unknown("server", trouble.to_string())),
        };
        line.show_end(&played);
        played
    }

    /// Queues the call and waits for its end.
    async fn follow(&self, job: &Job, ready: &Ready, line: &Line) -> Result<Value, Trouble> {
        let body = json!({ "simulation_id": ready.simulation, "seed": job.seed, "heard_whole": ready.heard_whole });
        let queued = self.client.post("/v1/queue-simulation-run", &body).await?;
        let (run, id) = (text_of(&queued["simulation_run_id"]), text_of(&queued["simulation_result_ids"][0]));
        let (mut hung_up, mut missed) = (false, 0);
        loop {
            let watching = self.watch(&id, line);
            tokio::select! {
                () = watching => {}
                () = self.halt.cancelled(), if !hung_up => {
                    hung_up = true;
                    let _ = self.client.post(&format!("/v1/simulation-run/{run}/cancel?hangup=true"), &json!({})).await;
                    continue;
                }
            }
            match self.client.get(&format!("/v1/retrieve-simulation-result/{id}")).await {
                Ok(answer) => {
                    missed = 0;
                    let record = answer["simulation_result"].clone();
                    let status = record["status"].as_str().map(ResultStatus::from);
                    if status.is_some_and(ResultStatus::is_terminal) {
                        return Ok(record);
                    }
                }
                Err(trouble @ Trouble::Unreached(_)) if missed < ASKED => {
                    missed += 1;
                    line.state(&trouble.to_string());
                }
                Err(trouble) => return Err(trouble),
            }
            sleep(LOOK).await;
        }
    }

    /// Looks again at calls of which it was not known whether the agent yielded: other calls may have shown it since.
    pub(crate) async fn look_again(&self, calls: &mut [Played]) {
        if !calls.iter().any(lacks_yielding) {
            return;
        }
        // The engine does it after the last call is over; until nothing changes any more.
        for _ in 0..LOOKS_AGAIN {
            sleep(LOOK).await;
            let mut is_changed = false;
            for call in calls.iter_mut().filter(|call| lacks_yielding(call)) {
                let path = format!("/v1/retrieve-simulation-result/{}", call.result_id());
                if let Ok(mut answer) = self.client.get(&path).await {
                    let record = answer["simulation_result"].take();
                    is_changed |= record != call.record;
                    call.judgement = judge(&record, None);
                    call.record = record;
                }
            }
            if !is_changed && !calls.iter().any(lacks_yielding) {
                break;
            }
        }
    }

    /// Shows what happens until the events end; they may break off.
    async fn watch(&self, id: &str, line: &Line) {
        let Ok(mut events) = self.client.events(id).await else { return };
        while let Ok(Some((event, data))) = events.next().await {
            match event.as_str() {
                "status" => line.state(data["status"].as_str().unwrap_or_default()),
                "turn.ended" => line.words("agent", data["data"]["text"].as_str().unwrap_or_default()),
                "speech.ended" if data["side"] == "dh" => {
                    line.words("caller", data["data"]["text"].as_str().unwrap_or_default());
                }
                "end" => return,
                _ => {}
            }
        }
    }

    /// Returns the verdict on a call that this side hung up, unless it passed before: nobody knows how it would have
    /// gone on.
    fn cut_short(&self, judgement: Judgement, record: &Value) -> Judgement {
        let is_cut = self.halt.is_cancelled() && record["end_reason"] == "api_hangup";
        match is_cut && judgement.verdict == Verdict::Failed {
            true => Judgement::unknown("run_over", format!("the run was over before the call: {}", judgement.reason)),
            false => judgement,
        }
    }

    /// Fetches what is left of a call and writes its files.
    async fn gather(&self, job: &Job, record: Value, command: &Arc<Mutex<Option<Running>>>) -> Played {
        let status = await_end(command).await;
        let judgement = self.cut_short(judge(&record, status.as_deref()), &record);
        let id = text_of(&record["id"]);
        let path = |part: &str| format!("/v1/simulation-result/{id}/{part}");
        let list = |answer: Result<Value, Trouble>, key: &str| {
            answer.ok().and_then(|mut answer| answer[key].take().as_array().cloned()).unwrap_or_default()
        };
        let transcript = list(self.client.get(&path("transcript")).await, "entries");
        let timeline = list(self.client.get(&path("timeline")).await, "events");
        let turns = list(self.client.get(&path("turns?words=false")).await, "turns");
        let has_sound = record["audio_url"].is_string();
        let (mut recording, mut opus) = (Vec::new(), Vec::new());
        if has_sound {
            recording = self.client.file(&path("recording")).await.unwrap_or_default();
            opus = self.client.file(&path("recording?format=opus&channel=mix")).await.unwrap_or_default();
        }
        let peaks = peaks(&recording);
        let mut played = Played { record, transcript, timeline, turns, peaks, opus, ..job.not_made(judgement) };
        let arm = if job.arm.is_empty() { String::new() } else { format!("-{}", slug(&job.arm)) };
        let name = format!("{}{arm}-{}", file_name(job, &self.show.masked), job.seed);
        let events: String = played.timeline.iter().map(|event| format!("{event}\n")).collect();
        let events = mask(&events, &self.show.masked);
        self.write(&mut played, &format!("timelines/{name}.jsonl"), events.as_bytes());
        self.write(&mut played, &format!("recordings/{name}.wav"), &recording);
        if self.keeps_all_evidence || played.judgement.verdict != Verdict::Passed {
            let evidence = self.client.file(&path("evidence")).await.unwrap_or_default();
            match without_values(&evidence, &self.show.masked) {
                Ok(evidence) => self.write(&mut played, &format!("evidence/{name}.tar"), &evidence),
                Err(error) => self.show.warn(&format!("evidence/{name}.tar is not written: {error}")),
            }
        }
        played
    }

    /// Writes a file below the folder of the results; what cannot be written is said.
    fn write(&self, played: &mut Played, name: &str, bytes: &[u8]) {
        let path = self.out.join(name);
        if bytes.is_empty() {
            return;
        }
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        match made.and_then(|()| std::fs::write(&path, bytes)) {
            Ok(()) => played.files.push(name.to_owned()),
            Err(error) => self.show.warn(&mask(&format!("{}: {error}", path.display()), &self.show.masked)),
        }
    }
}

/// True where it is not known whether the agent yielded, and the verdict depends on it.
fn lacks_yielding(call: &Played) -> bool {
    let is_open =
        |one: &Value| one["status"] == "unknown" && YIELDING.iter().any(|name| one["expected"]["metric"] == *name);
    let mut expectations = call.record["expectations"].as_array().into_iter().flatten();
    call.judgement.verdict == Verdict::Unknown && expectations.any(is_open)
}

async fn await_end(command: &Arc<Mutex<Option<Running>>>) -> Option<String> {
    command.lock().await.as_mut().and_then(Running::exit_reason)
}

/// Returns a name for the files of a scenario. It has no value of a variable, but the number of the file
/// and the line where the name has one.
fn file_name(job: &Job, masked: &[String]) -> String {
    let Scenario { name, at, .. } = &job.scenario;
    let plain = mask(name, masked);
    if plain == *name { slug(name) } else { format!("{}-{}-line-{}", slug(&plain), job.suite + 1, at.line) }
}

/// Returns a name for files, of letters and digits, with a hash where others could become the same.
fn slug(name: &str) -> String {
    use sha2::{Digest, Sha256};
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let short: String = name.chars().take(NAME_CHARS).map(plain).collect();
    let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == ' ' || c == '-');
    let short = short.trim_matches('-').to_owned();
    if is_plain && name.chars().count() <= NAME_CHARS && !name.contains('-') && !short.is_empty() {
        return short;
    }
    let hash = hex::encode(&Sha256::digest(name)[..4]);
    if short.is_empty() { hash } else { format!("{short}-{hash}") }
}

#[cfg(test)]
mod tests {
    use super::slug;

    #[test]
    fn names_of_files_are_plain_and_differ() {
        assert_eq!(slug("books a visit"), "books-a-visit");
        for (one, other) in [("a b", "a-b"), ("A", "a"), ("a/../b", "a-b"), ("é", "è")] {
            let (one, other) = (slug(one), slug(other));
            assert_ne!(one, other);
            assert!([one, other].iter().all(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')));
        }
    }
}
