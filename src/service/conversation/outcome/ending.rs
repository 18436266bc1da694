//! Effect of a call's end on its result: error code, message, and who ended it. Pure.

use ringer_engine::dialogue::DialogueEnd;
use ringer_media::call::{EndDetail, EndReason, Ending, Fault, RemoteEnd, RemoteKind};
use ringer_model::error_code::ErrorCode;
use ringer_model::status::EndedBy;

use super::channel_fault::code_named;

/// Outcome of a call, as its result states it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Error of the call; `None` for a good ending.
    pub error: Option<(ErrorCode, String)>,
    /// Side that ended the conversation, if either did.
    pub by: Option<EndedBy>,
    /// True if the call was taken back before it was answered.
    pub cancelled: bool,
}

impl Verdict {
    fn error(code: ErrorCode, message: impl Into<String>) -> Verdict {
        Verdict { error: Some((code, message.into())), ..Verdict::default() }
    }

    fn by(side: EndedBy) -> Verdict {
        Verdict { by: Some(side), ..Verdict::default() }
    }
}

/// Reads an ending; `stopping`: the engine is being stopped.
pub(crate) fn verdict(ending: &Ending, stopping: bool) -> Verdict {
    if ending.connected { after_answer(ending) } else { before_answer(ending, stopping) }
}

/// Returns error and ending side of a written conversation.
pub(crate) fn verdict_of_dialogue(end: &DialogueEnd) -> (Option<(ErrorCode, String)>, Option<EndedBy>) {
    match end.reason {
        EndReason::AgentHangup if !end.other_spoke => {
            let text = "The agent ended the conversation before it wrote anything";
            (Some((ErrorCode::AgentHungUpBeforeSpeech, text.to_owned())), Some(EndedBy::Agent))
        }
        EndReason::AgentHangup => (None, Some(EndedBy::Agent)),
        EndReason::Shutdown => {
            (Some((ErrorCode::EngineShutdown, "The engine was stopped during the conversation".to_owned())), None)
        }
        EndReason::Fault => {
            let lost = || (ErrorCode::InternalError, "The conversation could not go on".to_owned());
            let fault = end.fault.as_ref().map(|(code, message)| (ErrorCode::from(*code), message.clone()));
            (Some(fault.unwrap_or_else(lost)), None)
        }
        EndReason::NoAnswer => {
            let text = "The agent did not answer the first message within max_call_duration";
            (Some((ErrorCode::NoAnswer, text.to_owned())), None)
        }
        // The error of a limit that is reached is in the result already.
        EndReason::Cancelled | EndReason::UsageLimit => (None, None),
        _ => (None, Some(EndedBy::User)),
    }
}

fn after_answer(ending: &Ending) -> Verdict {
    if let Some(remote) = &ending.remote {
        match remote.kind {
            RemoteKind::NoKeys => return Verdict::error(ErrorCode::SipDialFailed, message(remote)),
            RemoteKind::KeysLost => return Verdict::error(ErrorCode::BridgeDisconnected, message(remote)),
            // A close in order, of whatever code, is the agent's.
            RemoteKind::Lost if !ending.other_spoke && remote.close_code().is_some() => {
                let text = format!("The agent closed the connection before it said anything: {}", remote.text);
                return Verdict {
                    by: Some(EndedBy::Agent),
                    ..Verdict::error(ErrorCode::AgentHungUpBeforeSpeech, text)
                };
            }
            RemoteKind::Lost => {
                let code = remote.pipeline_code().map_or(ErrorCode::BridgeDisconnected, code_named);
                return Verdict::error(code, message(remote));
            }
            _ => {}
        }
    }
    match ending.reason {
        EndReason::AgentHangup if !ending.other_spoke => {
            let text = "The agent hung up before it said anything";
            Verdict { by: Some(EndedBy::Agent), ..Verdict::error(ErrorCode::AgentHungUpBeforeSpeech, text) }
        }
        EndReason::AgentHangup => Verdict::by(EndedBy::Agent),
        EndReason::MediaTimeout => Verdict::error(ErrorCode::MediaTimeout, "No audio packets came from the agent"),
        EndReason::SessionExpired => {
            let text = "The SIP session was not refreshed in time (RFC 4028)";
            Verdict::error(ErrorCode::BridgeDisconnected, text)
        }
        EndReason::Shutdown => Verdict::error(ErrorCode::EngineShutdown, "The engine was stopped during the call"),
        EndReason::ConnectionLost => Verdict::error(ErrorCode::BridgeDisconnected, "The connection was lost"),
        EndReason::Fault | EndReason::DialFailed | EndReason::Rejected | EndReason::NoAnswer => {
            fault(ending.fault.as_ref())
        }
        EndReason::UsageLimit => Verdict::default(),
        _ => Verdict::by(EndedBy::User),
    }
}

fn fault(fault: Option<&Fault>) -> Verdict {
    let Some(Fault { code, why }) = fault else {
        return Verdict::error(ErrorCode::InternalError, "The call could not go on");
    };
    let (code, what) = match (ErrorCode::from(*code), *code) {
        (code @ ErrorCode::SynthesizerFailed, _) => (code, "Speech could not be made"),
        (code @ ErrorCode::RecognizerFailed, _) => (code, "Speech could not be recognised"),
        (code @ ErrorCode::LanguageModelFailed, _) => (code, "The language model failed"),
        (_, other) => (ErrorCode::InternalError, other),
    };
    let message = if why.is_empty() { what.to_owned() } else { format!("{what}: {why}") };
    Verdict::error(code, message)
}

fn before_answer(ending: &Ending, stopping: bool) -> Verdict {
    match (&ending.reason, &ending.remote) {
        (EndReason::NoAnswer, _) => Verdict::error(ErrorCode::NoAnswer, "Nobody answered within ringing_timeout"),
        (EndReason::Cancelled | EndReason::Shutdown, _) if stopping => {
            Verdict::error(ErrorCode::EngineShutdown, "The engine was stopped while the call was being made")
        }
        (EndReason::Cancelled, _) => Verdict { cancelled: true, ..Verdict::default() },
        (_, Some(remote)) => Verdict::error(refusal(remote), message(remote)),
        (_, None) => fault(ending.fault.as_ref()),
    }
}

/// Returns the code of a refused or failed INVITE (RFC 3261 21). The Q.850 cause of a Reason header (RFC 3326) decides
/// when there is one, else the SIP status.
fn refusal(remote: &RemoteEnd) -> ErrorCode {
    if let Some(kind) = remote.pipeline_code() {
        return code_named(kind);
    }
    if let EndDetail::WebSocket { status, .. } = remote.detail {
        return match (remote.kind, status) {
            (RemoteKind::NoSocket, _) => ErrorCode::InternalError,
            (RemoteKind::AuthFailed, _) => ErrorCode::WebsocketAuthFailed,
            (_, Some(429 | 503)) => ErrorCode::CustomerConcurrencyLimit,
            _ => ErrorCode::WebsocketConnectFailed,
        };
    }
    let text = remote.text.to_lowercase();
    match remote.kind {
        // Credentials were sent, but it is the caller who is not wanted.
        RemoteKind::AuthFailed if names_caller(&text) => return ErrorCode::UnusableCallerId,
        RemoteKind::AuthFailed => return ErrorCode::SipAuthFailed,
        RemoteKind::NoSocket => return ErrorCode::InternalError,
        RemoteKind::Unreachable
        | RemoteKind::NoMedia
        | RemoteKind::NoKeys
        | RemoteKind::KeysLost
        | RemoteKind::Lost => {
            return ErrorCode::SipDialFailed;
        }
        RemoteKind::Bye | RemoteKind::Refused | RemoteKind::Expired => {}
    }
    match remote.q850_cause() {
        Some(1 | 22 | 28) => ErrorCode::InvalidSipDestination,
        Some(17 | 21) => ErrorCode::CallRejected,
        Some(18..=20) => ErrorCode::NoAnswer,
        Some(57) => caller_refused(&text),
        Some(34 | 42) => ErrorCode::CustomerConcurrencyLimit,
        Some(_) => ErrorCode::SipDialFailed,
        None => match remote.sip_code() {
            Some(404 | 410 | 484 | 604) => ErrorCode::InvalidSipDestination,
            Some(486 | 600 | 603) => ErrorCode::CallRejected,
            Some(408 | 480) => ErrorCode::NoAnswer,
            Some(401 | 407) => ErrorCode::SipAuthFailed,
            Some(403) => caller_refused(&text),
            Some(503) if remote.may_retry() => ErrorCode::CustomerConcurrencyLimit,
            Some(500) if text.contains("limit") => ErrorCode::CustomerConcurrencyLimit,
            _ => ErrorCode::SipDialFailed,
        },
    }
}

fn caller_refused(text: &str) -> ErrorCode {
    if names_caller(text) { ErrorCode::UnusableCallerId } else { ErrorCode::SipDialFailed }
}

fn names_caller(text: &str) -> bool {
    ["caller", "number"].iter().any(|word| text.contains(word))
}

fn message(remote: &RemoteEnd) -> String {
    let why = match remote.kind {
        RemoteKind::AuthFailed => "The credentials were refused",
        RemoteKind::NoSocket => "The engine could not dial",
        RemoteKind::Unreachable => "The address could not be reached",
        RemoteKind::NoMedia => "No common codec",
        RemoteKind::NoKeys | RemoteKind::KeysLost => "The media could not be encrypted",
        RemoteKind::Lost => "The connection was lost",
        RemoteKind::Bye | RemoteKind::Refused | RemoteKind::Expired => "The call was refused",
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
    use std::collections::BTreeSet;
    use std::path::Path;

    use ringer_media::call::Quality;
    use ringer_transport::fault::FaultKind;

    use super::super::channel_fault::code_of;
    use super::*;

    fn ending(reason: EndReason, connected: bool, remote: Option<RemoteEnd>) -> Ending {
        let quality = Quality::default();
        Ending { reason, connected, samples: 0, remote, fault: None, other_spoke: false, quality, opus: None }
    }

    fn code(ending: &Ending, stopping: bool) -> Option<ErrorCode> {
        verdict(ending, stopping).error.map(|(code, _)| code)
    }

    #[test]
    fn answers_and_causes_lead_to_codes() {
        for (sip_codes, causes, text, retry_after, expect) in [
            (&[404, 410, 484, 604][..], &[1, 22, 28][..], "", false, ErrorCode::InvalidSipDestination),
            (&[486, 600, 603], &[17, 21], "", false, ErrorCode::CallRejected),
            (&[408, 480], &[18, 19, 20], "", false, ErrorCode::NoAnswer),
            (&[401, 407], &[], "", false, ErrorCode::SipAuthFailed),
            (&[403], &[57], "Forbidden", false, ErrorCode::SipDialFailed),
            (&[403], &[57], "Caller not allowed", false, ErrorCode::UnusableCallerId),
            (&[503], &[34, 42], "", true, ErrorCode::CustomerConcurrencyLimit),
            (&[500], &[], "Channel limit reached", false, ErrorCode::CustomerConcurrencyLimit),
            (&[415, 488, 606], &[58, 65, 79, 88], "", false, ErrorCode::SipDialFailed),
            (&[302, 400, 487, 500, 503, 699], &[27, 38, 41, 102, 127, 16], "", false, ErrorCode::SipDialFailed),
        ] {
            let check = |sip_code, q850_cause| {
                let kind = RemoteKind::Refused;
                let detail = EndDetail::Sip { code: sip_code, q850_cause, retry_after };
                let remote = RemoteEnd { kind, detail, text: text.into() };
                let ending = ending(EndReason::Rejected, false, Some(remote));
                assert_eq!(code(&ending, false).as_ref(), Some(&expect), "{sip_code:?} {q850_cause:?} {text:?}");
            };
            sip_codes.iter().for_each(|sip_code| check(Some(*sip_code), None));
            causes.iter().for_each(|cause| check(Some(499), Some(*cause)));
        }
        for (kind, text, expect) in [
            (RemoteKind::AuthFailed, "Forbidden", ErrorCode::SipAuthFailed),
            (RemoteKind::AuthFailed, "Number not owned", ErrorCode::UnusableCallerId),
            (RemoteKind::Unreachable, "", ErrorCode::SipDialFailed),
            (RemoteKind::NoMedia, "", ErrorCode::SipDialFailed),
            (RemoteKind::NoKeys, "", ErrorCode::SipDialFailed),
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
            (UsageLimit, true, true, false, None, None),
            (Transfer, true, false, false, None, user),
            (AgentHangup, true, true, false, None, Some(EndedBy::Agent)),
            (AgentHangup, true, false, false, Some(ErrorCode::AgentHungUpBeforeSpeech), Some(EndedBy::Agent)),
            (MediaTimeout, true, true, false, Some(ErrorCode::MediaTimeout), None),
            (Shutdown, true, true, true, Some(ErrorCode::EngineShutdown), None),
            (Fault, true, true, false, Some(ErrorCode::InternalError), None),
            (NoAnswer, false, false, false, Some(ErrorCode::NoAnswer), None),
            (Cancelled, false, false, true, Some(ErrorCode::EngineShutdown), None),
            (Cancelled, false, false, false, None, None),
        ] {
            let ending = Ending { other_spoke: spoke, ..ending(reason, connected, None) };
            let verdict = verdict(&ending, stopping);
            assert_eq!(verdict.error.as_ref().map(|(code, _)| code), expect.as_ref(), "{reason:?}");
            assert_eq!((verdict.by, verdict.cancelled), (by, reason == Cancelled && !stopping), "{reason:?}");
        }
    }

    #[test]
    fn ends_of_websockets() {
        use RemoteKind::*;
        let check = |kind, status, close_code, connected, spoke, expect: Option<ErrorCode>| {
            let reason = match kind {
                Bye => EndReason::AgentHangup,
                Lost => EndReason::ConnectionLost,
                Refused => EndReason::Rejected,
                _ => EndReason::DialFailed,
            };
            let detail = EndDetail::WebSocket { status, close_code };
            let remote = RemoteEnd { kind, detail, text: "1011 why".to_owned() };
            let ending = Ending { other_spoke: spoke, ..ending(reason, connected, Some(remote)) };
            let found = verdict(&ending, false);
            assert_eq!(
                found.error.as_ref().map(|(code, _)| code.clone()),
                expect,
                "{kind:?} {status:?} {close_code:?}"
            );
            let text = found.error.map(|(_, text)| text).unwrap_or_default();
            assert!(text.is_empty() || !connected || kind == Bye || text.contains("1011 why"), "{text}");
        };
        let before = |kind, status, expect| check(kind, status, None, false, false, Some(expect));
        before(AuthFailed, Some(401), ErrorCode::WebsocketAuthFailed);
        before(Refused, Some(429), ErrorCode::CustomerConcurrencyLimit);
        before(Refused, Some(503), ErrorCode::CustomerConcurrencyLimit);
        before(Refused, Some(404), ErrorCode::WebsocketConnectFailed);
        before(Unreachable, Some(500), ErrorCode::WebsocketConnectFailed);
        before(Unreachable, None, ErrorCode::WebsocketConnectFailed);
        check(Bye, None, Some(1000), true, true, None);
        check(Bye, None, Some(1005), true, false, Some(ErrorCode::AgentHungUpBeforeSpeech));
        check(Lost, None, Some(1011), true, true, Some(ErrorCode::BridgeDisconnected));
        check(Lost, None, Some(1011), true, false, Some(ErrorCode::AgentHungUpBeforeSpeech));
        check(Lost, None, None, true, true, Some(ErrorCode::BridgeDisconnected));
        check(Lost, None, None, true, false, Some(ErrorCode::BridgeDisconnected));
    }

    #[test]
    fn ends_of_pipelines() {
        let check = |kind, fault_kind: FaultKind, connected| {
            let reason = if connected { EndReason::ConnectionLost } else { EndReason::DialFailed };
            let detail = EndDetail::Pipeline { kind: fault_kind.as_str().to_owned() };
            let remote = RemoteEnd { kind, detail, text: "offer to the pipeline: why".to_owned() };
            let (error_code, text) =
                verdict(&ending(reason, connected, Some(remote)), false).error.expect("no good end");
            assert_eq!(error_code, code_of(fault_kind));
            assert!(text.contains("why"), "{text}");
        };
        for kind in FaultKind::ALL {
            check(RemoteKind::Refused, *kind, false);
            check(RemoteKind::Unreachable, *kind, false);
            check(RemoteKind::Lost, *kind, true);
        }
    }

    /// The call was answered, and yet there was no conversation, or it broke off: neither is the agent's doing.
    #[test]
    fn media_without_keys_are_told() {
        let why = "the DTLS certificate of the media does not match the fingerprint in SDP";
        for (kind, code) in
            [(RemoteKind::NoKeys, ErrorCode::SipDialFailed), (RemoteKind::KeysLost, ErrorCode::BridgeDisconnected)]
        {
            let remote = RemoteEnd { kind, text: why.into(), ..RemoteEnd::default() };
            let found = verdict(&ending(EndReason::DialFailed, true, Some(remote)), false);
            assert_eq!(found.error, Some((code, format!("The media could not be encrypted: {why}"))));
            assert_eq!(found.by, None);
        }
    }

    #[test]
    fn a_fault_is_told_with_what_mends_it() {
        let why = "flite is missing: install the package flite";
        for (given, code, message) in [
            (
                Some(("SYNTHESIZER_FAILED", why)),
                ErrorCode::SynthesizerFailed,
                format!("Speech could not be made: {why}"),
            ),
            (Some(("SYNTHESIZER_FAILED", "")), ErrorCode::SynthesizerFailed, "Speech could not be made".into()),
            (Some(("ELSE", "")), ErrorCode::InternalError, "ELSE".into()),
            (None, ErrorCode::InternalError, "The call could not go on".into()),
        ] {
            let fault = given.map(|(code, why)| Fault { code, why: why.into() });
            let ending = Ending { fault, ..ending(EndReason::Fault, true, None) };
            assert_eq!(verdict(&ending, false).error, Some((code, message)));
        }
    }

    /// Returns the texts of the sources in a folder, after each `start` and up to the next quotation mark.
    fn texts_in(folder: &str, start: &str) -> BTreeSet<String> {
        let (mut found, mut folders) =
            (BTreeSet::new(), vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder)]);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("it is in the repository") {
                let path = entry.expect("it can be read").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "rs") {
                    let text = std::fs::read_to_string(&path).expect("it is text");
                    let texts = text.split(start).skip(1).filter_map(|rest| rest.split('"').next());
                    found.extend(texts.map(str::to_owned));
                }
            }
        }
        found
    }

    #[test]
    fn every_fault_of_a_call_has_a_code_of_a_result() {
        let mut codes = BTreeSet::new();
        for folder in ["media/src", "src/engine", "src/transport"] {
            codes.append(&mut texts_in(folder, "Fault { code: \""));
        }
        assert!(codes.contains("SYNTHESIZER_FAILED"), "{codes:?}");
        for code in codes {
            let fault = Fault { code: code.clone().leak(), why: String::new() };
            let (error_code, _) = super::fault(Some(&fault)).error.expect("a fault is no good ending");
            assert_eq!(error_code.as_str(), code, "it is told by its own code");
        }
    }

    #[test]
    fn every_code_of_a_message_that_was_not_taken_is_known() {
        let is_code = |text: &String| {
            let is_part = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
            text.contains('_') && text.chars().all(is_part)
        };
        let codes: Vec<String> = texts_in("src/provider/messages", "\"").into_iter().filter(is_code).collect();
        assert!(codes.len() >= 6, "{codes:?}");
        for code in codes {
            assert!(!matches!(ErrorCode::from(code.as_str()), ErrorCode::Unknown(_)), "{code}");
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
        assert_eq!(verdict.error, Some((ErrorCode::CallRejected, "The call was refused: 486 Busy Here".to_owned())));
    }
}
