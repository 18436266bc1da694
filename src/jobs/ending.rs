//! What the end of a call means for its result: error code, message, and who ended it. Pure.

use ringer_media::call::{EndReason, Ending, Fault, RemoteEnd, RemoteKind};

use crate::model::status::EndedBy;

/// What a result is told about its call's end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Why there is no good ending; `None`: it is one.
    pub error: Option<(&'static str, String)>,
    /// Who ended a conversation.
    pub by: Option<EndedBy>,
    /// The call was taken back before it was answered.
    pub cancelled: bool,
}

impl Verdict {
    fn error(code: &'static str, message: impl Into<String>) -> Verdict {
        Verdict { error: Some((code, message.into())), ..Verdict::default() }
    }

    fn by(side: EndedBy) -> Verdict {
        Verdict { by: Some(side), ..Verdict::default() }
    }
}

/// Reads an ending; `stopping`: the engine is being stopped.
pub fn verdict(ending: &Ending, stopping: bool) -> Verdict {
    if ending.connected { after_answer(ending) } else { before_answer(ending, stopping) }
}

fn after_answer(ending: &Ending) -> Verdict {
    match ending.reason {
        EndReason::AgentHangup if !ending.other_spoke => {
            let text = "The agent hung up before it said anything";
            Verdict { by: Some(EndedBy::Agent), ..Verdict::error("AGENT_HUNG_UP_BEFORE_SPEECH", text) }
        }
        EndReason::AgentHangup => Verdict::by(EndedBy::Agent),
        EndReason::MediaTimeout => Verdict::error("MEDIA_TIMEOUT", "No audio packets came from the agent"),
        EndReason::Shutdown => Verdict::error("ENGINE_SHUTDOWN", "The engine was stopped during the call"),
        EndReason::Fault | EndReason::DialFailed | EndReason::Rejected | EndReason::NoAnswer => {
            fault(ending.fault.as_ref())
        }
        _ => Verdict::by(EndedBy::User),
    }
}

fn fault(fault: Option<&Fault>) -> Verdict {
    let Some(Fault { code, why }) = fault else { return Verdict::error("INTERNAL_ERROR", "The call could not go on") };
    let (code, what) = match *code {
        "SYNTHESIZER_FAILED" => ("SYNTHESIZER_FAILED", "Speech could not be made"),
        "RECOGNIZER_FAILED" => ("RECOGNIZER_FAILED", "Speech could not be recognised"),
        "LANGUAGE_MODEL_FAILED" => ("LANGUAGE_MODEL_FAILED", "The language model failed"),
        other => ("INTERNAL_ERROR", other),
    };
    let message = if why.is_empty() { what.to_owned() } else { format!("{what}: {why}") };
    Verdict::error(code, message)
}

fn before_answer(ending: &Ending, stopping: bool) -> Verdict {
    match (&ending.reason, &ending.remote) {
        (EndReason::NoAnswer, _) => Verdict::error("NO_ANSWER", "Nobody answered within ringing_timeout"),
        (EndReason::Cancelled | EndReason::Shutdown, _) if stopping => {
            Verdict::error("ENGINE_SHUTDOWN", "The engine was stopped while the call was being made")
        }
        (EndReason::Cancelled, _) => Verdict { cancelled: true, ..Verdict::default() },
        (_, Some(remote)) => Verdict::error(refusal(remote), message(remote)),
        (_, None) => fault(ending.fault.as_ref()),
    }
}

/// The code of a refused or failed INVITE (RFC 3261 21, ITU-T Q.850): the cause of a Reason header (RFC 3326) decides when
/// there is one, else the SIP status.
fn refusal(remote: &RemoteEnd) -> &'static str {
    let text = remote.text.to_lowercase();
    match remote.kind {
        // Credentials were sent, but it is the caller who is not wanted.
        RemoteKind::AuthFailed if names_caller(&text) => return "UNUSABLE_CALLER_ID",
        RemoteKind::AuthFailed => return "SIP_AUTH_FAILED",
        RemoteKind::Unreachable | RemoteKind::NoMedia => return "SIP_DIAL_FAILED",
        RemoteKind::Bye | RemoteKind::Refused => {}
    }
    match remote.q850_cause() {
        Some(1 | 22 | 28) => "INVALID_SIP_DESTINATION",
        Some(17 | 21) => "CALL_REJECTED",
        Some(18..=20) => "NO_ANSWER",
        Some(57) => caller_refused(&text),
        Some(34 | 42) => "CUSTOMER_CONCURRENCY_LIMIT",
        Some(_) => "SIP_DIAL_FAILED",
        None => match remote.sip_code() {
            Some(404 | 410 | 484 | 604) => "INVALID_SIP_DESTINATION",
            Some(486 | 600 | 603) => "CALL_REJECTED",
            Some(408 | 480) => "NO_ANSWER",
            Some(401 | 407) => "SIP_AUTH_FAILED",
            Some(403) => caller_refused(&text),
            Some(503) if remote.may_retry() => "CUSTOMER_CONCURRENCY_LIMIT",
            Some(500) if text.contains("limit") => "CUSTOMER_CONCURRENCY_LIMIT",
            _ => "SIP_DIAL_FAILED",
        },
    }
}

fn caller_refused(text: &str) -> &'static str {
    if names_caller(text) { "UNUSABLE_CALLER_ID" } else { "SIP_DIAL_FAILED" }
}

fn names_caller(text: &str) -> bool {
    ["caller", "number"].iter().any(|word| text.contains(word))
}

fn message(remote: &RemoteEnd) -> String {
    let why = match remote.kind {
        RemoteKind::AuthFailed => "The credentials were refused",
        RemoteKind::Unreachable => "The address could not be reached",
        RemoteKind::NoMedia => "No common codec",
        RemoteKind::Bye | RemoteKind::Refused => "The call was refused",
    };
    let code = remote.sip_code().map(|code| code.to_string());
    let answer = [code.as_deref().unwrap_or_default(), remote.text.trim()].join(" ");
    match answer.trim() {
        "" => why.to_owned(),
        answer => format!("{why}: {answer}"),
    }
}

#[cfg(test)]
mod tests {
    use ringer_media::call::Quality;

    use ringer_media::call::EndDetail;

    use super::*;

    fn ending(reason: EndReason, connected: bool, remote: Option<RemoteEnd>) -> Ending {
        let quality = Quality::default();
        Ending { reason, connected, samples: 0, remote, fault: None, other_spoke: false, quality }
    }

    fn code(ending: &Ending, stopping: bool) -> Option<&'static str> {
        verdict(ending, stopping).error.map(|(code, _)| code)
    }

    #[test]
    fn answers_and_causes_lead_to_codes() {
        for (sip_codes, causes, text, retry_after, expect) in [
            (&[404, 410, 484, 604][..], &[1, 22, 28][..], "", false, "INVALID_SIP_DESTINATION"),
            (&[486, 600, 603], &[17, 21], "", false, "CALL_REJECTED"),
            (&[408, 480], &[18, 19, 20], "", false, "NO_ANSWER"),
            (&[401, 407], &[], "", false, "SIP_AUTH_FAILED"),
            (&[403], &[57], "Forbidden", false, "SIP_DIAL_FAILED"),
            (&[403], &[57], "Caller not allowed", false, "UNUSABLE_CALLER_ID"),
            (&[503], &[34, 42], "", true, "CUSTOMER_CONCURRENCY_LIMIT"),
            (&[500], &[], "Channel limit reached", false, "CUSTOMER_CONCURRENCY_LIMIT"),
            (&[415, 488, 606], &[58, 65, 79, 88], "", false, "SIP_DIAL_FAILED"),
            (&[302, 400, 487, 500, 503, 699], &[27, 38, 41, 102, 127, 16], "", false, "SIP_DIAL_FAILED"),
        ] {
            let check = |sip_code, q850_cause| {
                let kind = RemoteKind::Refused;
                let detail = EndDetail::Sip { code: sip_code, q850_cause, retry_after };
                let remote = RemoteEnd { kind, detail, text: text.into() };
                let ending = ending(EndReason::Rejected, false, Some(remote));
                assert_eq!(code(&ending, false), Some(expect), "{sip_code:?} {q850_cause:?} {text:?}");
            };
            sip_codes.iter().for_each(|sip_code| check(Some(*sip_code), None));
            causes.iter().for_each(|cause| check(Some(499), Some(*cause)));
        }
        for (kind, text, expect) in [
            (RemoteKind::AuthFailed, "Forbidden", "SIP_AUTH_FAILED"),
            (RemoteKind::AuthFailed, "Number not owned", "UNUSABLE_CALLER_ID"),
            (RemoteKind::Unreachable, "", "SIP_DIAL_FAILED"),
            (RemoteKind::NoMedia, "", "SIP_DIAL_FAILED"),
        ] {
            let detail = EndDetail::Sip { code: Some(403), q850_cause: Some(17), retry_after: false };
            let remote = RemoteEnd { kind, detail, text: text.to_owned() };
            assert_eq!(code(&ending(EndReason::DialFailed, false, Some(remote)), false), Some(expect), "{kind:?}");
        }
    }

    #[test]
    fn ends_of_conversations() {
        use EndReason::*;
        let user = Some(EndedBy::User);
        for (reason, connected, spoke, stopping, expect, by) in [
            (DhEndCall, true, true, false, None, user),
            (HangupPhrase, true, true, false, None, user),
            (SilenceTimeout, true, false, false, None, user),
            (InactivityTimeout, true, true, false, None, user),
            (MaxDuration, true, true, false, None, user),
            (MaxTurns, true, true, false, None, user),
            (ApiHangup, true, true, false, None, user),
            (Transfer, true, false, false, None, user),
            (AgentHangup, true, true, false, None, Some(EndedBy::Agent)),
            (AgentHangup, true, false, false, Some("AGENT_HUNG_UP_BEFORE_SPEECH"), Some(EndedBy::Agent)),
            (MediaTimeout, true, true, false, Some("MEDIA_TIMEOUT"), None),
            (Shutdown, true, true, true, Some("ENGINE_SHUTDOWN"), None),
            (Fault, true, true, false, Some("INTERNAL_ERROR"), None),
            (NoAnswer, false, false, false, Some("NO_ANSWER"), None),
            (Cancelled, false, false, true, Some("ENGINE_SHUTDOWN"), None),
            (Cancelled, false, false, false, None, None),
        ] {
            let ending = Ending { other_spoke: spoke, ..ending(reason, connected, None) };
            let verdict = verdict(&ending, stopping);
            assert_eq!(verdict.error.as_ref().map(|(code, _)| *code), expect, "{reason:?}");
            assert_eq!((verdict.by, verdict.cancelled), (by, reason == Cancelled && !stopping), "{reason:?}");
        }
    }

    #[test]
    fn a_fault_is_told_with_what_mends_it() {
        let why = "flite is missing: install the package flite";
        for (given, code, message) in [
            (Some(("SYNTHESIZER_FAILED", why)), "SYNTHESIZER_FAILED", format!("Speech could not be made: {why}")),
            (Some(("SYNTHESIZER_FAILED", "")), "SYNTHESIZER_FAILED", "Speech could not be made".into()),
            (Some(("ELSE", "")), "INTERNAL_ERROR", "ELSE".into()),
            (None, "INTERNAL_ERROR", "The call could not go on".into()),
        ] {
            let fault = given.map(|(code, why)| Fault { code, why: why.into() });
            let ending = Ending { fault, ..ending(EndReason::Fault, true, None) };
            assert_eq!(verdict(&ending, false).error, Some((code, message)));
        }
    }

    #[test]
    fn messages_hold_the_answer() {
        let remote = RemoteEnd {
            kind: RemoteKind::Refused,
            detail: EndDetail::Sip { code: Some(486), q850_cause: None, retry_after: false },
            text: "Busy Here".into(),
        };
        let verdict = verdict(&ending(EndReason::Rejected, false, Some(remote)), false);
        assert_eq!(verdict.error, Some(("CALL_REJECTED", "The call was refused: 486 Busy Here".to_owned())));
    }
}
