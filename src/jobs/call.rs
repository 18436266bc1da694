//! The job `call`: one conversation from QUEUED to CONVERSATION_ENDED, or to where it fails.

mod quality;

use ringer_media::call::{EndDetail, EndReason, RemoteEnd, What};
use ringer_media::frame::PER_MS;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use self::quality::{impairment, quality};
use super::ending::{Verdict, verdict};
use super::{Workshop, caught};
use crate::engine::{CallHandle, CallNews, CallReport, PlaceError, TimelineEntry};
use crate::error::{Error, Result};
use crate::events::Happening;
use crate::judge::{self, Redactor};
use crate::model::Object;
use crate::model::error_code::ErrorCode;
use crate::model::result::{EngineQuality, PostedToolCall, ResultDoc};
use crate::model::status::ResultStatus;
use crate::model::time::Timestamp;
use crate::queue::CallJob;
use crate::service::{Judged, Obstacle, Placed, Service, Turn};
use crate::transport::port::{Incoming, Refusal};
use crate::transport::websocket::port::AgentError;

/// Holds the conversation of a result, when it still waits for one.
pub(super) async fn run(workshop: &Workshop, job: &CallJob, stopping: &CancellationToken) -> Result<()> {
    tracing::Span::current().record("result_id", job.result_id);
    let call = CallWork { workshop, job, stopping, answers: false };
    // On the heap: unoptimised, each future around it would hold it once more on a thread's stack.
    let done = caught(Box::pin(call.hold())).await;
    call.settle(done).await
}

/// Answers a call that has come in for a result, which is DISPATCHED.
pub(super) async fn answer(
    workshop: &Workshop,
    job: &CallJob,
    stopping: &CancellationToken,
    incoming: Incoming,
) -> Result<()> {
    let span = tracing::info_span!("incoming", result_id = job.result_id);
    let call = CallWork { workshop, job, stopping, answers: true };
    let answered = async { call.settle(caught(Box::pin(call.take(incoming))).await).await };
    answered.instrument(span).await
}

/// Ends a result that is DISPATCHED because the connection of its agent was lost in the handshake.
pub(super) async fn abandon(workshop: &Workshop, job: &CallJob, stopping: &CancellationToken) -> Result<()> {
    let call = CallWork { workshop, job, stopping, answers: true };
    let message = "The agent's connection was lost in the upgrade".to_owned();
    call.refuse(ResultStatus::Dispatched, Obstacle { code: ErrorCode::WebsocketConnectFailed, message }).await
}

struct CallWork<'a> {
    workshop: &'a Workshop,
    job: &'a CallJob,
    stopping: &'a CancellationToken,
    /// True if the agent has made the call.
    answers: bool,
}

impl CallWork<'_> {
    async fn hold(&self) -> Result<()> {
        if self.status().await? == ResultStatus::Initializing {
            // Whoever is first: this or the look for new results.
            self.workshop.service.admit_one(&self.job.organization, self.job.result_id).await?;
        }
        if self.status().await? != ResultStatus::Queued {
            return Ok(());
        }
        let Workshop { service, placer, engine, .. } = self.workshop;
        // Also of what the agent calls: it is better known now than when it does.
        let mut placed = match service.placement(&self.job.organization, self.job.result_id, placer).await? {
            Ok(placed) => placed,
            Err(obstacle) => return self.refuse(ResultStatus::Queued, obstacle).await,
        };
        if service.take_turn(&self.job.organization, self.job.result_id).await? != Turn::Dials {
            return Ok(());
        }
        if let Err(obstacle) = service.admit_dial(&self.job.organization, self.job.result_id, &mut placed).await? {
            return self.refuse(ResultStatus::Queued, obstacle).await;
        }
        let redactor = service.redactor(&self.job.organization, self.job.result_id).await?;
        let private = redactor.is_some();
        // Before the room is there, so that it is known whatever happens to this engine.
        let room = placed.room.as_ref().and_then(|room| room.own_name()).map(str::to_owned);
        let begin = move |doc: &mut ResultDoc| (doc.private, doc.room) = (private, room);
        if !allow_conflict(self.advance(ResultStatus::Queued, ResultStatus::Dispatched, begin).await)? {
            return Ok(());
        }
        let opened = tokio::select! {
            biased;
            opened = service.open_room(&mut placed) => opened,
            () = self.stopping.cancelled() => {
                let message = "The engine was stopped while the call was being made".to_owned();
                Err(Obstacle { code: ErrorCode::EngineShutdown, message })
            }
        };
        let Placed { placement, notes, warnings, room, .. } = placed;
        let done = match opened {
            Ok(()) => match engine.place(placement).await {
                Ok(handle) => self.accompany(handle, redactor, notes, warnings).await,
                Err(refusal) => self.refuse(ResultStatus::Dispatched, obstacle(refusal, false)).await,
            },
            Err(obstacle) => self.refuse(ResultStatus::Dispatched, obstacle).await,
        };
        if let Some(room) = room {
            service.close_room(&room).await;
        }
        done
    }

    async fn take(&self, incoming: Incoming) -> Result<()> {
        let Workshop { service, placer, engine, .. } = self.workshop;
        engine.ring(&incoming).await;
        let redactor = service.redactor(&self.job.organization, self.job.result_id).await?;
        let placed = service.placement(&self.job.organization, self.job.result_id, placer).await;
        if !matches!(placed, Ok(Ok(_))) {
            engine.refuse(&incoming, Refusal::Failure).await;
        }
        let Placed { placement, notes, warnings, .. } = match placed? {
            Ok(placed) => placed,
            Err(obstacle) => return self.refuse(ResultStatus::Dispatched, obstacle).await,
        };
        match engine.answer(incoming, placement).await {
            Ok(handle) => self.accompany(handle, redactor, notes, warnings).await,
            Err(refusal) => self.refuse(ResultStatus::Dispatched, obstacle(refusal, true)).await,
        }
    }

    /// Follows a call to its end, while others can end it.
    async fn accompany(
        &self,
        handle: CallHandle,
        redactor: Option<Redactor>,
        notes: Object,
        warnings: Vec<String>,
    ) -> Result<()> {
        let (running, notes) = (&self.workshop.running, self.workshop.with_ears(notes));
        running.begin(self.job.result_id, handle.control.clone());
        let control = handle.control.clone();
        let watched = caught(Box::pin(self.watch(handle, redactor, notes, warnings))).await;
        // Does nothing when it is over; a call that cannot be followed must not go on.
        control.hangup(EndReason::Fault);
        running.end(self.job.result_id);
        let placer = &self.workshop.placer;
        placer.noises.make_asked(&placer.synthesizer, running.is_idle());
        watched
    }

    /// Follows a call to its end.
    async fn watch(
        &self,
        mut handle: CallHandle,
        redactor: Option<Redactor>,
        notes: Object,
        warnings: Vec<String>,
    ) -> Result<()> {
        let feed = self.workshop.service.feed(self.job.result_id);
        // It may have been cancelled, or the engine stopped, before its control was known to anybody.
        if self.status().await? != ResultStatus::Dispatched {
            handle.control.hangup(EndReason::Cancelled);
        } else if self.stopping.is_cancelled() {
            handle.control.hangup(EndReason::Shutdown);
        }
        while let Some(news) = handle.news.recv().await {
            match news {
                CallNews::Dispatched => {}
                CallNews::Connected(at_ms) => {
                    if !self.connected(at_ms).await? {
                        handle.control.hangup(EndReason::ApiHangup);
                    }
                }
                CallNews::Event(entry) => {
                    if let Some(feed) = &feed {
                        feed.add(happening(self.job.attempt, &entry, redactor.as_ref()));
                    }
                }
                CallNews::Ended(report) => return self.ended(*report, redactor.as_ref(), notes, warnings).await,
            }
        }
        Err(Error::internal("the call was lost"))
    }

    /// Moves the result to RUNNING; returns false if it no longer waits for an answer.
    async fn connected(&self, at_ms: i64) -> Result<bool> {
        let start = move |doc: &mut ResultDoc| doc.body.start_time = Some(Timestamp(at_ms));
        allow_conflict(self.advance(ResultStatus::Dispatched, ResultStatus::Running, start).await)
    }

    /// Keeps what the call has left, and moves the result on.
    async fn ended(
        &self,
        report: CallReport,
        redactor: Option<&Redactor>,
        mut notes: Object,
        warnings: Vec<String>,
    ) -> Result<()> {
        let (service, id) = (&self.workshop.service, self.job.result_id);
        if let (Some(at_ms), ResultStatus::Dispatched) = (report.connected_at_ms, self.status().await?) {
            self.connected(at_ms).await?;
        }
        service.store_timeline(&self.job.organization, id, &report.timeline).await?;
        notes.extend(languages(&report.timeline));
        if report.ending.connected {
            let language = judge::language(&notes);
            let fillers = judge::fillers(language, &self.workshop.fillers);
            let transcript = judge::transcript(id, language, &report.timeline, &fillers);
            service.store_transcript(&self.job.organization, &transcript).await?;
        }
        let mut verdict = verdict(&report.ending, self.stopping.is_cancelled());
        if notes.contains_key("caller_number") {
            verdict.blame_number();
        }
        let by_message = |remote: &RemoteEnd| matches!(remote.detail, EndDetail::WebSocket { .. });
        let gave_up = report.ending.remote.as_ref().is_some_and(|remote| !by_message(remote));
        if self.answers && !report.ending.connected && gave_up {
            verdict.error = Some((ErrorCode::NoAnswer, "The agent gave its call up before it was answered".to_owned()));
        }
        let quality = quality(&report.ending, report.recording.as_deref()).await;
        let from = self.status().await?;
        let to = next_status(from, &verdict);
        if redactor.is_some() && !report.ending.connected {
            service.forget_messages(id).await?;
        }
        // Results that are judged are redacted after the judgement.
        let redactor = redactor.filter(|_| report.ending.connected && to != Some(ResultStatus::ConversationEnded));
        let patch = move |doc: &mut ResultDoc| fill_in(doc, id, report, verdict, quality, notes, warnings);
        match to {
            Some(to) => allow_conflict(self.advance(from, to, patch).await).map(drop)?,
            None => service.amend(&self.job.organization, id, patch).await.map(drop)?,
        }
        match redactor {
            Some(redactor) => service.redact(&self.job.organization, id, redactor, &mut Judged::default()).await,
            None => Ok(()),
        }
    }

    /// Ends a result that cannot have a call.
    async fn refuse(&self, from: ResultStatus, obstacle: Obstacle) -> Result<()> {
        let to = obstacle.code.status(false);
        let patch = move |doc: &mut ResultDoc| doc.body.fail(obstacle.code, obstacle.message);
        allow_conflict(self.advance(from, to, patch).await).map(drop)
    }

    /// Ends the result after a fault of the engine, whatever its state is.
    async fn break_off(&self, error: &Error) -> Result<()> {
        tracing::error!(%error, "a call was broken off");
        let from = self.status().await?;
        if from.is_terminal() || matches!(from, ResultStatus::ConversationEnded | ResultStatus::Evaluating) {
            return Ok(());
        }
        let now = Timestamp(self.workshop.service.clock().now_ms());
        let patch = move |doc: &mut ResultDoc| {
            doc.body.fail(ErrorCode::InternalError, "The engine could not go on with the call");
            doc.body.end_time = Some(now);
        };
        allow_conflict(self.advance(from, ResultStatus::SystemError, patch).await)?;
        self.workshop.service.forget_private(&self.job.organization, self.job.result_id).await
    }

    /// Settles the outcome of the work: a deleted result is no fault; after any other error the result ends.
    async fn settle(&self, done: Result<()>) -> Result<()> {
        match done {
            Err(Error::NotFound(_)) => Ok(()),
            Err(error) => self.break_off(&error).await,
            done => done,
        }
    }

    async fn status(&self) -> Result<ResultStatus> {
        let caller = Service::engine_caller(&self.job.organization);
        Ok(self.workshop.service.result(&caller, self.job.result_id).await?.body.status)
    }

    async fn advance(
        &self,
        from: ResultStatus,
        to: ResultStatus,
        patch: impl FnOnce(&mut ResultDoc) + Send,
    ) -> Result<()> {
        let service = &self.workshop.service;
        service.advance(&self.job.organization, self.job.result_id, from, to, patch).await.map(drop)
    }
}

/// True when it was done, false when the result had moved elsewhere.
fn allow_conflict(done: Result<()>) -> Result<bool> {
    match done {
        Ok(()) => Ok(true),
        Err(Error::Conflict(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Returns the next status of a result when its call is over; `None`: it stays as it is.
fn next_status(from: ResultStatus, verdict: &Verdict) -> Option<ResultStatus> {
    let connected = from == ResultStatus::Running;
    match &verdict.error {
        _ if !connected && from != ResultStatus::Dispatched => None,
        None if connected => Some(ResultStatus::ConversationEnded),
        None => Some(ResultStatus::Cancelled),
        Some((code, _)) => Some(match code.status(connected) {
            ResultStatus::CallDropped | ResultStatus::OutOfFunds if connected => ResultStatus::ConversationEnded,
            status => status,
        }),
    }
}

fn fill_in(
    doc: &mut ResultDoc,
    id: i64,
    report: CallReport,
    verdict: Verdict,
    quality: Option<EngineQuality>,
    notes: Object,
    mut warnings: Vec<String>,
) {
    let body = &mut doc.body;
    let ending = &report.ending;
    let is_unheard = is_unheard_of(&report);
    if let Some((code, message)) = verdict.error {
        body.fail(code, if is_unheard { UNHEARD_OF.to_owned() } else { message });
    }
    // Nothing is judged or private where nobody has spoken.
    doc.private &= ending.connected;
    let body = &mut doc.body;
    body.end_time = Some(Timestamp(report.ended_at_ms));
    body.end_reason = Some(ending.reason.as_str().to_owned());
    body.conversation_ended_by = verdict.by;
    body.sip_code = ending.remote.as_ref().and_then(|remote| remote.sip_code()).map(i64::from);
    body.q850_cause = ending.remote.as_ref().and_then(|remote| remote.q850_cause()).map(i64::from);
    if ending.connected {
        let duration_ms = (ending.samples + PER_MS / 2) / PER_MS;
        body.duration_ms = Some(duration_ms);
        body.duration = Some((duration_ms + 500) / 1000);
        body.engine_quality = quality;
        body.audio_url = report.recording.as_ref().map(|_| Service::recording_link(id));
    }
    doc.heard_calls.extend(called_tools(&report.timeline));
    let body = &mut doc.body;
    let untrusted = body.engine_quality.as_ref().and_then(|quality| quality.untrusted_reason.as_deref());
    body.own_faults = judge::own_faults(&report.timeline, notes.contains_key("voice_substituted"), untrusted);
    warnings.extend(report.warnings);
    for (key, value) in notes {
        doc.note(&key, value);
    }
    let known = [
        ("codec", json!(report.peer.codec)),
        ("transport", json!(report.peer.transport())),
        ("remote_address", json!(report.peer.address)),
        ("sip_call_id", json!(Some(&report.peer.call_id).filter(|id| !id.is_empty()))),
        ("agent_errors", agent_errors(&report.agent_errors)),
        ("output_variables", json!(report.variables)),
        ("speaker", json!(report.speaker)),
        ("impairment", json!(ending.quality.impairment.map(impairment))),
        ("reached", json!(is_unheard.then_some(false))),
    ];
    known.into_iter().filter(|(_, value)| *value != Value::Null).for_each(|(key, value)| doc.note(key, value));
    doc.warn_all(warnings);
}

/// Message of a call to which nothing came back at all.
const UNHEARD_OF: &str = "Nothing came back within ringing_timeout: it is not known whether the agent was reached";

/// True for a call that was given up before anything came back from the address that was called: it did not even ring.
fn is_unheard_of(report: &CallReport) -> bool {
    let came_back = |entry: &TimelineEntry| matches!(entry.what, What::Ringing { .. } | What::EarlyMedia { .. });
    // Whoever is awaited in a room is not called there.
    let is_called = ["SIP", "WebSocket"].iter().any(|name| report.peer.protocol.starts_with(name));
    report.ending.reason == EndReason::NoAnswer
        && !report.ending.connected
        && is_called
        && !report.timeline.iter().any(came_back)
}

/// Returns the calls of tools that the agent's channel told of.
fn called_tools(timeline: &[TimelineEntry]) -> impl Iterator<Item = PostedToolCall> {
    let posted = |entry: &TimelineEntry| {
        let What::ToolCall(call) = &entry.what else { return None };
        let parameters = match &call.parameters {
            Value::Null => None,
            Value::Object(parameters) => Some(parameters.clone().into_iter().collect()),
            other => Some(Object::from_iter([("value".to_owned(), other.clone())])),
        };
        Some(PostedToolCall {
            name: call.name.to_string(),
            start_offset_ms: (entry.sample / PER_MS).max(0),
            description: None,
            parameters,
            output: call.output.clone(),
        })
    };
    timeline.iter().filter_map(posted)
}

/// Returns the errors that the agent told of, as they are noted; null when there were none.
fn agent_errors(errors: &[AgentError]) -> Value {
    let told =
        |error: &AgentError| json!({ "code": error.code, "message": error.message, "at": Timestamp(error.at_ms) });
    if errors.is_empty() { Value::Null } else { errors.iter().map(told).collect() }
}

/// Returns the note of the languages that were taken from the agent, with the time of each; nothing when none was.
pub(super) fn languages(timeline: &[TimelineEntry]) -> Option<(String, Value)> {
    let taken = timeline.iter().filter_map(|entry| match entry.reading() {
        What::LanguageTaken { language, by, .. } => {
            Some(json!({ "language": language, "by": by, "offset_ms": entry.offset_ms() }))
        }
        _ => None,
    });
    let taken: Vec<Value> = taken.collect();
    (!taken.is_empty()).then(|| ("languages".to_owned(), taken.into()))
}

/// Returns the obstacle of a call that was not placed. `answers`: the call came in; its offer had nothing that both
/// sides can speak.
fn obstacle(refusal: PlaceError, answers: bool) -> Obstacle {
    let code = match &refusal {
        PlaceError::BadTarget(_) => ErrorCode::SipDialFailed,
        PlaceError::NoMedia(_) if answers => ErrorCode::SipDialFailed,
        PlaceError::Full | PlaceError::NoMedia(_) => ErrorCode::BridgePreStartFailed,
        PlaceError::Provider(_) => ErrorCode::SynthesizerFailed,
    };
    Obstacle { code, message: refusal.to_string() }
}

fn happening(attempt: i64, entry: &TimelineEntry, redactor: Option<&Redactor>) -> Happening {
    // Running text is not kept: no number of the timeline is its own.
    let (seq, mut data) = match &entry.what {
        What::TranscriptPartial { .. } => (None, json!(entry.event)),
        _ => (Some(entry.seq), json!(entry)),
    };
    if let Some(redactor) = redactor {
        redactor.event(&mut data);
    }
    Happening::new(attempt, seq, entry.name(), &data)
}

#[cfg(test)]
mod tests {
    use ringer_media::call::Event;

    use super::*;

    #[test]
    fn running_text_has_no_number() {
        let entry = |event: &str| TimelineEntry {
            seq: 7,
            event: Event::from_wire(16, event, "agent", json!({ "text": "hello" })),
        };
        let partial = happening(1, &entry("transcript.partial"), None);
        let told = json!({ "sample": 16, "offset_ms": 1.0, "event": "transcript.partial", "side": "agent", "data": { "text": "hello" } });
        assert_eq!((partial.seq, &*partial.data), (None, &*told.to_string()));
        let kept = happening(1, &entry("turn.ended"), None);
        let told: Value = serde_json::from_str(&kept.data).expect("JSON");
        assert_eq!((kept.seq, &told["seq"]), (Some(7), &json!(7)));
    }

    #[test]
    fn where_results_go() {
        use ResultStatus::*;
        for (from, code, expect) in [
            (Running, None, Some(ConversationEnded)),
            (Running, Some(ErrorCode::MediaTimeout), Some(ConversationEnded)),
            (Running, Some(ErrorCode::AgentHungUpBeforeSpeech), Some(NoAnswer)),
            (Running, Some(ErrorCode::SynthesizerFailed), Some(SystemError)),
            (Running, Some(ErrorCode::EngineShutdown), Some(SystemError)),
            (Dispatched, Some(ErrorCode::CallRejected), Some(NoAnswer)),
            (Dispatched, Some(ErrorCode::SipDialFailed), Some(NoConnection)),
            (Dispatched, None, Some(Cancelled)),
            (Cancelled, Some(ErrorCode::NoAnswer), None),
            (Cancelled, None, None),
        ] {
            let verdict = Verdict { error: code.clone().map(|code| (code, String::new())), ..Verdict::default() };
            let to = next_status(from, &verdict);
            assert_eq!(to, expect, "{from:?} {code:?}");
            assert!(to.is_none_or(|to| from.may_become(to)), "{from:?} {code:?}");
        }
    }
}
