//! Outcome of a conversation that is over, as its result states it: error, who ended it, figures and whether they can
//! be trusted, notes and warnings. Pure.

mod channel_fault;
mod ending;
mod quality;

use ringer_engine::dialogue::DialogueEnd;
use ringer_engine::{CallReport, TimelineEntry};
use ringer_judge as judge;
use ringer_media::call::{EndDetail, EndReason, EventKind, RemoteEnd};
use ringer_media::frame::PER_MS;
use ringer_model::Object;
use ringer_model::error_code::{ErrorCode, Platform, PlatformFault};
use ringer_model::expectation::OwnFault;
use ringer_model::result::{EngineQuality, PostedToolCall, ResultDoc};
use ringer_model::status::{EndedBy, ResultStatus};
use ringer_model::time::Timestamp;
use ringer_model::verdict::VerdictWord;
use ringer_transport::peer::AgentError;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

pub(crate) use self::channel_fault::code_of;
use self::ending::{Verdict, verdict};
use self::quality::{impairment, quality};
use super::verdict::of_error;

/// Metadata of a call over SIP to an agent on a platform: the platform's name.
pub(crate) const PLATFORM_NOTE: &str = "platform";

/// Message of a call to which nothing came back at all.
const UNHEARD_OF: &str = "Nothing came back within ringing_timeout: it is not known whether the agent was reached";

/// Outcome of a conversation that is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallOutcome {
    /// Error of the conversation; `None` for a good ending.
    pub error: Option<(ErrorCode, String)>,
    /// Side that ended the conversation, if either did.
    pub ended_by: Option<EndedBy>,
    /// Reason for the end, in the engine's words.
    pub end_reason: String,
    /// Wall clock of the end, in milliseconds since 1970.
    pub ended_at_ms: i64,
    /// True if the conversation was held in writing.
    pub is_written: bool,
    /// True if the conversation took place.
    pub is_connected: bool,
    /// Length of the conversation in milliseconds; `None` if it did not take place.
    pub duration_ms: Option<i64>,
    /// SIP status with which the other side ended the call.
    pub sip_code: Option<i64>,
    /// Q.850 cause with which the other side ended the call.
    pub q850_cause: Option<i64>,
    /// Figures of the engine's own part, and the reason why they cannot be trusted; `None` in writing.
    pub quality: Option<EngineQuality>,
    /// True if a recording was written.
    pub has_recording: bool,
    /// Tools that the agent called, as its channel reported them.
    pub tool_calls: Vec<PostedToolCall>,
    /// Faults of this side, which count against no expectation.
    pub own_faults: Vec<OwnFault>,
    /// Metadata of the result.
    pub notes: Object,
    /// Warnings of the result.
    pub warnings: Vec<String>,
}

/// Circumstances of a call that its report does not tell.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Circumstances {
    /// True if the engine is being stopped.
    pub stopping: bool,
    /// True if the agent made the call.
    pub answers: bool,
    /// Size of the stereo recording in bytes; `None` if there is none.
    pub recording_bytes: Option<u64>,
    /// Metadata of the result that was known before the end.
    pub notes: Object,
    /// Warnings that were known before the end.
    pub warnings: Vec<String>,
}

impl CallOutcome {
    /// Returns the outcome of a call.
    pub fn of_call(report: &CallReport, about: Circumstances) -> CallOutcome {
        let ending = &report.ending;
        let Circumstances { stopping, answers, recording_bytes, mut notes, mut warnings } = about;
        let Verdict { mut error, by, .. } = verdict(ending, stopping);
        if let Some(platform) = notes.get(PLATFORM_NOTE).and_then(Value::as_str).and_then(Platform::parse) {
            error = error.map(|(code, message)| (by_platform(code, platform), message));
        }
        if notes.contains_key("caller_number") {
            error = error.map(|(code, message)| (by_telephone(code), message));
        }
        if answers && is_given_up(report) {
            error = Some((ErrorCode::NoAnswer, "The agent gave its call up before it was answered".to_owned()));
        }
        let is_unheard = is_unheard_of(report);
        if let Some((_, message)) = error.as_mut().filter(|_| is_unheard) {
            UNHEARD_OF.clone_into(message);
        }
        let mut quality = quality(ending, recording_bytes);
        let untrusted = quality.as_ref().and_then(|quality| quality.untrusted_reason.as_deref());
        let own_faults = judge::own_faults(&report.timeline, notes.contains_key("voice_substituted"), untrusted);
        if let (Some(quality), Some(why)) = (&mut quality, judge::rate_mismatch(&report.timeline)) {
            (quality.trusted, quality.untrusted_reason) = (false, Some(why.to_owned()));
        }
        notes.extend(notes_of(report, is_unheard));
        warnings.extend(report.warnings.iter().cloned());
        CallOutcome {
            error,
            ended_by: by,
            end_reason: ending.reason.as_str().to_owned(),
            ended_at_ms: report.ended_at_ms,
            is_written: false,
            is_connected: ending.connected,
            duration_ms: ending.connected.then(|| (ending.samples + PER_MS / 2) / PER_MS),
            sip_code: ending.remote.as_ref().and_then(RemoteEnd::sip_code).map(i64::from),
            q850_cause: ending.remote.as_ref().and_then(RemoteEnd::q850_cause).map(i64::from),
            has_recording: ending.connected && report.recording.is_some(),
            tool_calls: called_tools(&report.timeline).collect(),
            quality,
            own_faults,
            notes,
            warnings,
        }
    }

    /// Returns the outcome of a written conversation with this timeline.
    pub fn of_dialogue(
        end: &DialogueEnd,
        timeline: &[TimelineEntry],
        mut notes: Object,
        warnings: Vec<String>,
    ) -> CallOutcome {
        let (error, ended_by) = ending::verdict_of_dialogue(end);
        if end.reason == EndReason::NoAnswer && end.began_ms.is_none() {
            notes.insert("reached".to_owned(), json!(false));
        }
        CallOutcome {
            error,
            ended_by,
            end_reason: end.reason.as_str().to_owned(),
            ended_at_ms: end.ended_ms,
            is_written: true,
            is_connected: end.began_ms.is_some(),
            duration_ms: end.began_ms.map(|began_ms| end.ended_ms - began_ms),
            sip_code: None,
            q850_cause: None,
            quality: None,
            has_recording: false,
            tool_calls: Vec::new(),
            own_faults: judge::own_faults(timeline, false, None),
            notes,
            warnings,
        }
    }

    /// Returns the status that follows on `from`; `None`: the status stays.
    pub fn status_after(&self, from: ResultStatus) -> Option<ResultStatus> {
        let code = self.error.as_ref().map(|(code, _)| code);
        Some(match (from, code) {
            (ResultStatus::Running, Some(code)) => match code.status(true) {
                status @ (ResultStatus::SystemError | ResultStatus::NoAnswer) => status,
                // It took place: what there is of it is judged, and the code says how it ends.
                _ => ResultStatus::ConversationEnded,
            },
            (ResultStatus::Running, None) => ResultStatus::ConversationEnded,
            (ResultStatus::Dispatched, Some(code)) => code.status(false),
            (ResultStatus::Dispatched, None) => ResultStatus::Cancelled,
            _ => return None,
        })
    }

    /// Writes the outcome into a result; its status stays.
    pub(crate) fn fill_in(self, doc: &mut ResultDoc, result_id: i64) {
        if self.is_written {
            doc.inbox.close();
        }
        // Nothing is judged or private where nobody has spoken or written.
        doc.private &= self.is_connected;
        let body = &mut doc.body;
        if let Some((code, message)) = self.error {
            body.fail(code, message);
        }
        body.end_time = Some(Timestamp(self.ended_at_ms));
        body.end_reason = Some(self.end_reason);
        body.conversation_ended_by = self.ended_by;
        (body.sip_code, body.q850_cause) = (self.sip_code, self.q850_cause);
        if let Some(duration_ms) = self.duration_ms {
            body.duration_ms = Some(duration_ms);
            body.duration = Some((duration_ms + 500) / 1000);
            body.engine_quality = self.quality;
            body.audio_url = self.has_recording.then(|| super::artifacts::recording_link(result_id));
        }
        body.own_faults = self.own_faults;
        doc.heard_calls.extend(self.tool_calls);
        self.notes.into_iter().for_each(|(key, value)| doc.note(&key, value));
        doc.warn_all(self.warnings);
    }
}

/// True when the verdict on a call is `unreachable`: nothing answered at the address, or the credentials were refused.
pub fn is_unreachable(report: &CallReport) -> bool {
    let outcome = CallOutcome::of_call(report, Circumstances::default());
    let Some((code, _)) = outcome.error.clone() else { return false };
    let mut doc = ResultDoc::default();
    doc.body.start_time = outcome.is_connected.then_some(Timestamp(outcome.ended_at_ms));
    outcome.fill_in(&mut doc, 0);
    of_error(&doc, &code).word == VerdictWord::Unreachable
}

/// Returns the code of a call over SIP to an agent on a platform.
fn by_platform(code: ErrorCode, platform: Platform) -> ErrorCode {
    match code {
        ErrorCode::SipAuthFailed => ErrorCode::Platform(platform, PlatformFault::AuthFailed),
        ErrorCode::SipDialFailed => ErrorCode::Platform(platform, PlatformFault::BridgeConnectFailed),
        code => code,
    }
}

/// Returns the code of a call by telephone: an address that is not known is a number that is not.
fn by_telephone(code: ErrorCode) -> ErrorCode {
    match code {
        ErrorCode::InvalidSipDestination => ErrorCode::InvalidPhoneNumber,
        code => code,
    }
}

/// True if the other side ended a call before it was answered, other than by a message.
fn is_given_up(report: &CallReport) -> bool {
    let by_message = |remote: &RemoteEnd| matches!(remote.detail, EndDetail::WebSocket { .. });
    !report.ending.connected && report.ending.remote.as_ref().is_some_and(|remote| !by_message(remote))
}

/// True for a call that was given up before anything came back from the address that was called: it did not even ring.
fn is_unheard_of(report: &CallReport) -> bool {
    let came_back =
        |entry: &TimelineEntry| matches!(entry.what, EventKind::Ringing { .. } | EventKind::EarlyMedia { .. });
    // Whoever is awaited in a room is not called there.
    let is_called = ["SIP", "WebSocket"].iter().any(|name| report.peer.protocol.starts_with(name));
    report.ending.reason == EndReason::NoAnswer
        && !report.ending.connected
        && is_called
        && !report.timeline.iter().any(came_back)
}

/// Returns the metadata that a call's report tells.
fn notes_of(report: &CallReport, is_unheard: bool) -> impl Iterator<Item = (String, Value)> {
    let known = [
        ("codec", json!(report.peer.codec)),
        ("transport", json!(report.peer.transport())),
        ("remote_address", json!(report.peer.address)),
        (call_id_key(report.peer.protocol), json!(Some(&report.peer.call_id).filter(|id| !id.is_empty()))),
        ("agent_errors", agent_errors(&report.agent_errors)),
        ("output_variables", json!(report.variables)),
        ("speaker", json!(report.speaker)),
        ("impairment", json!(report.ending.quality.impairment.map(impairment))),
        ("agent_audio_not_played_ms", json!(judge::audio_not_played_ms(&report.timeline))),
        ("reached", json!(is_unheard.then_some(false))),
    ];
    known.into_iter().filter(|(_, value)| *value != Value::Null).map(|(key, value)| (key.to_owned(), value))
}

/// Returns the name under which the other side's name of a call is noted.
fn call_id_key(protocol: &str) -> &'static str {
    if protocol.starts_with("WebSocket") { "platform_call_id" } else { "sip_call_id" }
}

/// Returns the calls of tools that the agent's channel reported.
fn called_tools(timeline: &[TimelineEntry]) -> impl Iterator<Item = PostedToolCall> {
    let posted = |entry: &TimelineEntry| {
        let EventKind::ToolCall(call) = &entry.what else { return None };
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

/// Returns the errors that the agent reported, as they are noted; null when there were none.
fn agent_errors(errors: &[AgentError]) -> Value {
    let noted =
        |error: &AgentError| json!({ "code": error.code, "message": error.message, "at": Timestamp(error.at_ms) });
    if errors.is_empty() { Value::Null } else { errors.iter().map(noted).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(error: Option<ErrorCode>, is_connected: bool) -> CallOutcome {
        CallOutcome {
            error: error.map(|code| (code, String::new())),
            ended_by: None,
            end_reason: EndReason::DhEndCall.as_str().to_owned(),
            ended_at_ms: 9000,
            is_written: false,
            is_connected,
            duration_ms: is_connected.then_some(1500),
            sip_code: None,
            q850_cause: None,
            quality: None,
            has_recording: is_connected,
            tool_calls: Vec::new(),
            own_faults: Vec::new(),
            notes: Object::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn statuses_that_follow_on_an_end() {
        use ResultStatus::*;
        for (from, code, expect) in [
            (Running, None, Some(ConversationEnded)),
            (Running, Some(ErrorCode::MediaTimeout), Some(ConversationEnded)),
            (Running, Some(ErrorCode::SipDialFailed), Some(ConversationEnded)),
            (Running, Some(ErrorCode::AgentHungUpBeforeSpeech), Some(NoAnswer)),
            (Running, Some(ErrorCode::SynthesizerFailed), Some(SystemError)),
            (Running, Some(ErrorCode::EngineShutdown), Some(SystemError)),
            (Running, Some(ErrorCode::HttpWebhookFailed), Some(ConversationEnded)),
            (Running, Some(ErrorCode::Platform(Platform::P12, PlatformFault::AuthFailed)), Some(ConversationEnded)),
            (Dispatched, Some(ErrorCode::CallRejected), Some(NoAnswer)),
            (Dispatched, Some(ErrorCode::SipDialFailed), Some(NoConnection)),
            (Dispatched, Some(ErrorCode::HttpWebhookFailed), Some(NoConnection)),
            (
                Dispatched,
                Some(ErrorCode::Platform(Platform::P12, PlatformFault::SessionSetupFailed)),
                Some(NoConnection),
            ),
            (Dispatched, None, Some(Cancelled)),
            (Cancelled, Some(ErrorCode::NoAnswer), None),
            (Cancelled, None, None),
        ] {
            let to = outcome(code.clone(), true).status_after(from);
            assert_eq!(to, expect, "{from:?} {code:?}");
            assert!(to.is_none_or(|to| from.may_become(to)), "{from:?} {code:?}");
        }
    }

    #[test]
    fn a_result_is_private_and_has_a_recording_only_if_there_was_a_conversation() {
        for (is_connected, duration) in [(true, Some(2)), (false, None)] {
            let mut doc = ResultDoc { private: true, ..ResultDoc::default() };
            outcome(None, is_connected).fill_in(&mut doc, 7);
            assert_eq!((doc.private, doc.body.duration), (is_connected, duration));
            assert_eq!(doc.body.audio_url.is_some(), is_connected);
            assert_eq!(doc.body.end_time, Some(Timestamp(9000)));
        }
    }
}
