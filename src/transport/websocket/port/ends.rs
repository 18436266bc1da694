//! Ends of a session by its protocol, and the detail of a call's end, which tells a platform's failures apart.

use ringer_media::call::{EndDetail, RemoteKind};

use super::{NO_CODE, State, WebSocketPort};
use crate::fault::AdapterFault;
use crate::websocket::protocol::SessionEnd;

/// HTTP statuses of a server that takes no further call at present.
const BUSY: [u16; 2] = [429, 503];

impl WebSocketPort {
    /// Takes the end of the session by its protocol.
    pub(super) fn take_end(&mut self, end: SessionEnd) {
        let opening = self.state == State::Opening;
        match end {
            SessionEnd::Own | SessionEnd::OwnFault => {}
            SessionEnd::Unauthorized if opening => {
                self.give_up(false, RemoteKind::AuthFailed, None, None, "the agent refused the session".to_owned());
            }
            SessionEnd::NoAnswer if opening => {
                self.adapter_fault = Some(AdapterFault::Setup);
                let text = "the agent did not answer the opening message in time".to_owned();
                self.give_up(true, RemoteKind::Unreachable, None, None, text);
            }
            SessionEnd::Peer if opening => {
                let text = "the agent ended the session before it began".to_owned();
                self.give_up(true, RemoteKind::Unreachable, None, None, text);
            }
            SessionEnd::PeerFault(why) | SessionEnd::Limit(why) | SessionEnd::Dropped(why) if opening => {
                self.adapter_fault = Some(AdapterFault::Setup);
                self.give_up(false, RemoteKind::Refused, None, None, why);
            }
            SessionEnd::NoStart if opening => {}
            SessionEnd::TooManyViolations if opening => {
                self.give_up(false, RemoteKind::Refused, None, None, "too many protocol errors".to_owned());
            }
            SessionEnd::Peer => self.finish(RemoteKind::Bye, String::new()),
            SessionEnd::Unauthorized => {
                self.finish(RemoteKind::Lost, "the agent does not accept the credentials".to_owned());
            }
            SessionEnd::NoAnswer => self.finish(RemoteKind::Lost, "the agent did not answer in time".to_owned()),
            SessionEnd::PeerFault(why) => {
                self.adapter_fault = Some(AdapterFault::Agent);
                self.finish(RemoteKind::Lost, why);
            }
            SessionEnd::Limit(why) => {
                self.adapter_fault = Some(AdapterFault::Limit);
                self.finish(RemoteKind::Lost, by_limit(&why));
            }
            SessionEnd::NoStart => {
                self.adapter_fault = Some(AdapterFault::Start);
                self.finish(RemoteKind::Lost, "the agent said nothing within 30 s".to_owned());
            }
            SessionEnd::Dropped(why) => {
                self.adapter_fault = Some(AdapterFault::Agent);
                self.finish(RemoteKind::Lost, why);
            }
            SessionEnd::TooManyViolations => {
                self.finish(RemoteKind::Lost, "too many protocol errors".to_owned());
            }
        }
    }

    /// Returns the detail of an end before the call was up.
    pub(super) fn detail_before(&self, kind: RemoteKind, status: Option<u16>, close_code: Option<u16>) -> EndDetail {
        let is_busy = status.is_some_and(|status| BUSY.contains(&status));
        let fault = match kind {
            RemoteKind::NoSocket => None,
            _ if is_busy => None,
            RemoteKind::AuthFailed => Some(AdapterFault::Auth),
            _ => Some(self.adapter_fault.unwrap_or(AdapterFault::Connect)),
        };
        self.detail(fault, status, close_code)
    }

    /// Returns the detail of an end of a call that is up.
    pub(super) fn detail_within(&self, kind: RemoteKind, close_code: Option<u16>) -> EndDetail {
        // A connection that is lost without a word is nobody's.
        let closed = close_code.filter(|_| kind == RemoteKind::Lost).map(|_| AdapterFault::Agent);
        self.detail(self.adapter_fault.or(closed), None, close_code)
    }

    /// Returns the kind and the text of the end that a close means for a call that is up. One by which a limit of the
    /// platform ends the session is no hang-up.
    pub(super) fn judge_close(&mut self, code: u16, text: String) -> (RemoteKind, String) {
        let is_known = self.dialect.platform.as_ref().is_some_and(|rules| rules.closes_by_limit(code));
        if is_known {
            self.adapter_fault = Some(AdapterFault::Limit);
        }
        match self.adapter_fault {
            Some(AdapterFault::Limit) => (RemoteKind::Lost, by_limit(&text)),
            _ if matches!(code, 1000 | 1001 | NO_CODE) => (RemoteKind::Bye, text),
            _ => (RemoteKind::Lost, text),
        }
    }

    fn detail(&self, fault: Option<AdapterFault>, status: Option<u16>, close_code: Option<u16>) -> EndDetail {
        match (&self.dialect.platform, fault) {
            (Some(rules), Some(fault)) => EndDetail::Pipeline { kind: rules.fault(fault) },
            _ => EndDetail::WebSocket { status, close_code },
        }
    }
}

/// Returns the text of an end by a limit of the platform.
fn by_limit(text: &str) -> String {
    format!("the platform ended its session by a limit of its own: {text}")
}
