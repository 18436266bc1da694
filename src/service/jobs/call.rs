//! The job `call`: one conversation from QUEUED to CONVERSATION_ENDED, or to where it fails.

use ringer_base::error::{Error, Result};
use ringer_engine::{CallHandle, CallReport, CallUpdate, PlaceError, TimelineEntry};
use ringer_judge as judge;
use ringer_judge::Redactor;
use ringer_media::call::{EndReason, EventKind, RemoteEnd};
use ringer_model::Object;
use ringer_model::error_code::ErrorCode;
use ringer_model::status::ResultStatus;
use ringer_store::events::FeedEvent;
use ringer_store::queue::CallJob;
use ringer_transport::fault::AdapterFault;
use ringer_transport::incoming::Incoming;
use ringer_transport::peer::Refusal;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use super::lease::catch_panic;
use super::workshop::Workshop;
use crate::{Begin, CallOutcome, Circumstances, Ended, Obstacle, PreparedCall};

/// Holds the conversation of a result, when it still waits for one.
pub(super) async fn run(workshop: &Workshop, job: &CallJob, stopping: &CancellationToken) -> Result<()> {
    tracing::Span::current().record("result_id", job.result_id);
    let call = CallWork { workshop, job, stopping, answers: false };
    // On the heap: unoptimised, each future around it would hold it once more on a thread's stack.
    let done = catch_panic(Box::pin(call.hold())).await;
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
    let answered = async { call.settle(catch_panic(Box::pin(call.take(incoming))).await).await };
    answered.instrument(span).await
}

/// Ends a result that is DISPATCHED because the connection of its agent was lost in the handshake.
pub(super) async fn abandon(workshop: &Workshop, job: &CallJob, stopping: &CancellationToken) -> Result<()> {
    let call = CallWork { workshop, job, stopping, answers: true };
    let message = "The agent's connection was lost in the upgrade".to_owned();
    call.refuse(Obstacle { code: ErrorCode::WebsocketConnectFailed, message }).await
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
        let service = &self.workshop.service;
        let begun = service.placements().begin(self.job, &self.workshop.terms_of(self.job.result_id)).await?;
        let (prepared, redactor) = match begun {
            Begin::Prepared(prepared, redactor) => (prepared, redactor),
            Begin::Waits | Begin::Refused => return Ok(()),
        };
        let renews = prepared.session.is_some();
        if self.make(prepared, redactor, renews).await? == Watched::Over {
            return Ok(());
        }
        tracing::info!("the platform refused the session that it had made: it is asked for another one");
        let (organization, id) = (&self.job.organization, self.job.result_id);
        let redactor = service.conversations().redactor(organization, id).await?;
        let prepared = service.placements().placement(organization, id, &self.workshop.terms_of(id)).await;
        match prepared {
            Ok(mut prepared) => {
                // The platform may have refused the access token.
                prepared.session.iter_mut().for_each(|session| session.renew());
                self.make(Box::new(prepared), redactor, false).await.map(drop)
            }
            Err(why) => self.refuse(why.reason()?).await,
        }
    }

    /// Opens what a call needs before it, makes the call, and follows it to its end. Where it `renews`, a session that
    /// is refused is no end.
    async fn make(&self, mut prepared: Box<PreparedCall>, redactor: Option<Redactor>, renews: bool) -> Result<Watched> {
        let Workshop { service, engine, .. } = self.workshop;
        let opened = tokio::select! {
            biased;
            opened = service.placements().open_room(&mut prepared) => opened,
            () = self.stopping.cancelled() => {
                let message = "The engine was stopped while the call was being made".to_owned();
                Err(Obstacle { code: ErrorCode::EngineShutdown, message })
            }
        };
        let PreparedCall { placement, notes, warnings, room, .. } = *prepared;
        let known = Known { redactor, notes, warnings, renews };
        let done = match opened {
            Ok(()) => match engine.place(placement).await {
                Ok(handle) => self.accompany(handle, known).await,
                Err(refusal) => self.refuse(obstacle(refusal, false)).await.map(|()| Watched::Over),
            },
            Err(obstacle) => self.refuse(obstacle).await.map(|()| Watched::Over),
        };
        if let Some(room) = room {
            service.placements().close_room(&room).await;
        }
        done
    }

    async fn take(&self, incoming: Incoming) -> Result<()> {
        let Workshop { service, engine, .. } = self.workshop;
        let terms = self.workshop.terms_of(self.job.result_id);
        engine.ring(&incoming).await;
        let redactor = service.conversations().redactor(&self.job.organization, self.job.result_id).await?;
        let prepared = service.placements().placement(&self.job.organization, self.job.result_id, &terms).await;
        drop(terms);
        if prepared.is_err() {
            engine.refuse(&incoming, Refusal::Failure).await;
        }
        let PreparedCall { placement, notes, warnings, .. } = match prepared {
            Ok(prepared) => prepared,
            Err(why) => return self.refuse(why.reason()?).await,
        };
        let known = Known { redactor, notes, warnings, renews: false };
        match engine.answer(incoming, placement).await {
            Ok(handle) => self.accompany(handle, known).await.map(drop),
            Err(refusal) => self.refuse(obstacle(refusal, true)).await,
        }
    }

    /// Follows a call to its end, while others can end it.
    async fn accompany(&self, handle: CallHandle, mut known: Known) -> Result<Watched> {
        let running = &self.workshop.running;
        known.notes = self.workshop.with_ears(known.notes);
        running.begin(self.job.result_id, handle.control.clone());
        let control = handle.control.clone();
        let watched = catch_panic(Box::pin(self.watch(handle, known))).await;
        // Does nothing when it is over; a call that cannot be followed must not go on.
        control.hangup(EndReason::Fault);
        running.end(self.job.result_id);
        let terms = &self.workshop.placement_settings;
        terms.noises.make_asked(&terms.synthesizer, running.is_idle());
        watched
    }

    /// Follows a call to its end.
    async fn watch(&self, mut handle: CallHandle, known: Known) -> Result<Watched> {
        let Known { redactor, notes, warnings, mut renews } = known;
        // Events of a call that may be made anew: they are told once it is up.
        let mut early = Vec::new();
        let feed = self.workshop.service.feed(self.job.result_id);
        let tell = |entry: TimelineEntry| {
            if let Some(feed) = &feed {
                feed.add(feed_event(self.job.attempt, &entry, redactor.as_ref()));
            }
        };
        // It may have been cancelled, or the engine stopped, before its control was known to anybody.
        let status = self.status().await;
        if status.as_ref().is_ok_and(|status| *status != ResultStatus::Dispatched) {
            handle.control.hangup(EndReason::Cancelled);
        } else if matches!(status, Err(Error::NotFound(_))) {
            return status.map(|_| Watched::Over);
        } else if self.stopping.is_cancelled() {
            handle.control.hangup(EndReason::Shutdown);
        }
        while let Some(news) = handle.news.recv().await {
            match news {
                CallUpdate::Dispatched => {}
                CallUpdate::Connected(at_ms) => {
                    renews = false;
                    match self.connect(at_ms).await {
                        Ok(true) => {}
                        Ok(false) => handle.control.hangup(EndReason::ApiHangup),
                        Err(error @ Error::NotFound(_)) => return Err(error),
                        // The call goes on: its records are stored or kept at its end.
                        Err(error) => tracing::error!(%error, "the database did not take the answer of a call"),
                    }
                }
                CallUpdate::Event(entry) if renews => early.push(entry),
                CallUpdate::Event(entry) => early.drain(..).chain([entry]).for_each(tell),
                CallUpdate::Ended(report) if renews && is_session_refused(&report) && !self.stopping.is_cancelled() => {
                    return Ok(Watched::Refused);
                }
                CallUpdate::Ended(report) => {
                    early.drain(..).for_each(tell);
                    let done = Box::pin(self.finish(*report, redactor.as_ref(), notes, warnings)).await;
                    return done.map(|()| Watched::Over);
                }
            }
        }
        Err(Error::internal("the call was lost"))
    }

    /// Moves the result to RUNNING; returns false if it no longer waits for an answer.
    async fn connect(&self, at_ms: i64) -> Result<bool> {
        let (service, job) = (&self.workshop.service, self.job);
        service.conversations().connect(&job.organization, job.result_id, ResultStatus::Dispatched, at_ms).await
    }

    /// Stores what the call has left, and moves the result on.
    async fn finish(
        &self,
        report: CallReport,
        redactor: Option<&Redactor>,
        mut notes: Object,
        warnings: Vec<String>,
    ) -> Result<()> {
        let (service, id) = (&self.workshop.service, self.job.result_id);
        notes.extend(languages(&report.timeline));
        let delays = judge::keyword_delays(&report.timeline);
        notes.extend((!delays.is_empty()).then(|| ("keyword_interruptions".to_owned(), delays.into())));
        let transcript = report.ending.connected.then(|| {
            let language = judge::language(&notes);
            let fillers = judge::fillers(language, &self.workshop.fillers);
            judge::transcript(id, language, &report.timeline, &fillers)
        });
        let (stopping, answers) = (self.stopping.is_cancelled(), self.answers);
        let recording_bytes = match &report.recording {
            Some(path) => tokio::fs::metadata(path).await.map(|file| file.len()).ok(),
            None => None,
        };
        let about = Circumstances { stopping, answers, recording_bytes, notes, warnings };
        let outcome = CallOutcome::of_call(&report, about);
        let CallReport { connected_at_ms, timeline, mut effects, .. } = report;
        if !service.conversations().sends_traces() {
            effects.clear();
        }
        let (organization, attempt) = (self.job.organization.clone(), self.job.attempt);
        let ended =
            Ended { organization, result_id: id, attempt, connected_at_ms, timeline, transcript, outcome, effects };
        Box::pin(service.conversations().store_ended(ended, redactor)).await
    }

    /// Ends a result that cannot have a call.
    async fn refuse(&self, obstacle: Obstacle) -> Result<()> {
        let (service, job) = (&self.workshop.service, self.job);
        service
            .conversations()
            .refuse(&job.organization, job.result_id, ResultStatus::Dispatched, obstacle)
            .await
            .map(drop)
    }

    /// Ends the result after a fault of the engine, whatever its state is.
    async fn break_off(&self, error: &Error) -> Result<()> {
        tracing::error!(%error, "call aborted");
        let (service, job) = (&self.workshop.service, self.job);
        let message = "The engine could not go on with the call";
        match service.conversations().abort(&job.organization, job.result_id, message).await? {
            true => service.conversations().forget_private(&job.organization, job.result_id).await,
            false => Ok(()),
        }
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
        self.workshop.service.conversations().status_of(&self.job.organization, self.job.result_id).await
    }
}

/// Facts of a call that its report does not tell.
struct Known {
    redactor: Option<Redactor>,
    notes: Object,
    warnings: Vec<String>,
    /// True where a session that is refused may be asked for again.
    renews: bool,
}

/// Outcome of following a call.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Watched {
    /// Its result has gone on.
    Over,
    /// The platform refused the session, and nothing of the call is kept.
    Refused,
}

/// True for a call that a platform refused by the credentials of its session.
fn is_session_refused(report: &CallReport) -> bool {
    let remote = report.ending.remote.as_ref().filter(|_| !report.ending.connected);
    let fault = remote.and_then(RemoteEnd::pipeline_code).and_then(AdapterFault::parse);
    fault.is_some_and(|(_, fault)| fault == AdapterFault::Auth)
}

/// Returns the note of the languages that were taken from the agent, with the time of each; nothing when none was.
pub(super) fn languages(timeline: &[TimelineEntry]) -> Option<(String, Value)> {
    let taken = timeline.iter().filter_map(|entry| match entry.reading() {
        EventKind::LanguageTaken { language, by, .. } => {
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
    };
    Obstacle { code, message: refusal.to_string() }
}

fn feed_event(attempt: i64, entry: &TimelineEntry, redactor: Option<&Redactor>) -> FeedEvent {
    // Running text is not kept: no number of the timeline is its own.
    let (seq, mut data) = match &entry.what {
        EventKind::TranscriptPartial { .. } => (None, json!(entry.event)),
        _ => (Some(entry.seq), json!(entry)),
    };
    if let Some(redactor) = redactor {
        redactor.event(&mut data);
    }
    FeedEvent::new(attempt, seq, entry.name(), &data)
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
        let partial = feed_event(1, &entry("transcript.partial"), None);
        let document = json!({ "sample": 16, "offset_ms": 1.0, "event": "transcript.partial", "side": "agent", "data": { "text": "hello" } });
        assert_eq!((partial.seq, &*partial.data), (None, &*document.to_string()));
        let kept = feed_event(1, &entry("turn.ended"), None);
        let parsed: Value = serde_json::from_str(&kept.data).expect("JSON");
        assert_eq!((kept.seq, &parsed["seq"]), (Some(7), &json!(7)));
    }
}
