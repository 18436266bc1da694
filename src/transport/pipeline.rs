//! Voice pipelines that are reached by an offer over HTTP and heard over WebRTC: the small WebRTC transport of
//! pipelines, with RTVI on its data channel.
//!
//! [`wire`] (bodies and answers) and [`rtvi`] (messages) do no IO; [`Pipeline`] asks over HTTP and holds the peer
//! connection.

pub mod answered;
mod offer;
pub mod port;
pub mod rtvi;
mod session;
mod wire;

use std::fmt;
use std::time::Duration;

use ringer_base::config::{DEFAULT_ANSWER_S, Secret};
use serde_json::{Map, Value};

pub use self::offer::{PlatformOffer, SDP_PLACE};
pub use self::session::hung_up;
pub use self::session::{Order, Pipeline, PipelineEnd, PipelineNews, start};
pub use self::wire::{Answer, OfferRequest, PatchRequest, Started, read_offer};

use super::webrtc::PeerFault;
use crate::fault::FaultKind;

/// Attempts of each request.
pub const ATTEMPTS: u32 = 3;

/// Waits before the second and the third attempt.
pub const WAITS: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

/// Limits of time; those of tests are shorter.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Patience {
    /// Time limit for one HTTP request and its answer.
    pub request: Duration,
    /// Time limit from the answer until media can flow.
    pub connection: Duration,
}

impl Default for Patience {
    fn default() -> Patience {
        Patience::answered_within(DEFAULT_ANSWER_S)
    }
}

impl Patience {
    /// Returns the limits where a request is answered within this many seconds (`p2.answer_timeout_s`).
    pub fn answered_within(seconds: u32) -> Patience {
        Patience { request: Duration::from_secs(seconds.into()), connection: Duration::from_secs(15) }
    }
}

/// A pipeline and everything that is said to it.
#[derive(Clone, Debug, Default)]
pub struct PipelineTarget {
    /// Base address: offers go to `{base}/api/offer`.
    pub base_url: String,
    /// Key of the pipelines; it goes to the configured addresses alone.
    pub api_key: Option<Secret>,
    /// Request that starts a pipeline first.
    pub start: Option<Start>,
    /// `P2_agent_configuration` of the agent.
    pub configuration: Map<String, Value>,
    /// `P2_room_properties` of the agent.
    pub room_properties: Value,
    /// Decimal id of the result.
    pub result_id: String,
    /// Offer to a platform, in place of `{base}/api/offer`.
    pub offer: Option<Box<PlatformOffer>>,
    /// Value of the header `traceparent` (W3C Trace Context); `None`: it is not sent.
    pub traceparent: Option<String>,
}

/// The request that starts a pipeline: `POST {url}/{agent_name}/start`.
#[derive(Clone, Debug, Default)]
pub struct Start {
    /// Base address of the start request, `p2.start_url`.
    pub url: String,
    /// Name of the agent, `P2_agent_name`.
    pub agent_name: String,
    /// `p2.start_body`; `None`: `{"body": P2_agent_configuration, "room_properties": P2_room_properties}`.
    pub body: Option<Value>,
}

/// Step at which a call to a pipeline failed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The request that starts it.
    Start,
    /// The offer, or the connection that it is about.
    Offer,
    /// The connection in the call, after its one restart.
    Call,
}

/// Reason for which a call to a pipeline fails.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// No answer over HTTP that can be read; why.
    NoAnswer(String),
    /// No answer over HTTP within this time: one may still come, and with it a pipeline that another request would
    /// double.
    Late(Duration),
    /// An answer of this status.
    Status(u16),
    /// An answer that says something else than was asked for; what.
    Unusable(String),
    /// The pipeline hands out a media room where none can be joined: of another protocol, or outside of a run.
    Room,
    /// A fault of the peer connection.
    Peer(PeerFault),
    /// A fault of this side, before anything was asked.
    Local(String),
    /// The pipeline reports an error that ended it; its words.
    Agent(String),
    /// The data channel was closed, and the connection goes on without it.
    NoEvents,
}

/// A failure of a call to a pipeline.
#[derive(Clone, Debug, PartialEq)]
pub struct PipelineFault {
    /// Step at which it failed.
    pub step: Step,
    /// Reason for which it failed.
    pub reason: Reason,
}

impl PipelineFault {
    /// Returns the kind of the failure.
    pub fn kind(&self) -> FaultKind {
        match (&self.reason, self.step) {
            (Reason::Local(_), Step::Start | Step::Offer) => FaultKind::OwnBeforeCall,
            (Reason::Local(_), Step::Call) => FaultKind::OwnInCall,
            (Reason::Room, _) => FaultKind::PipelineRoom,
            (Reason::Agent(_), _) => FaultKind::PipelineAgent,
            (Reason::NoEvents, _) => FaultKind::Events,
            (Reason::Status(401 | 403), Step::Start | Step::Offer) => FaultKind::PipelineAuth,
            (Reason::Status(429), Step::Start | Step::Offer) => FaultKind::Busy,
            (_, Step::Start) => FaultKind::PipelineSetup,
            (_, Step::Offer | Step::Call) => FaultKind::PipelineConnect,
        }
    }

    /// True when another attempt may come to another end.
    fn is_passing(&self) -> bool {
        match &self.reason {
            Reason::NoAnswer(_) => true,
            // A gateway that waited in vain tells nothing of the pipeline behind it, which may have started.
            Reason::Status(status) => matches!(status, 408 | 425 | 500..=599) && !matches!(status, 502 | 504),
            Reason::Peer(fault) => {
                matches!(
                    fault,
                    PeerFault::NotConnected(_)
                        | PeerFault::Handshake
                        | PeerFault::Failed
                        | PeerFault::Closed
                        | PeerFault::Unreached(..)
                )
            }
            Reason::Late(_)
            | Reason::Unusable(_)
            | Reason::Room
            | Reason::Local(_)
            | Reason::Agent(_)
            | Reason::NoEvents => false,
        }
    }
}

impl fmt::Display for PipelineFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.step {
            Step::Start => "start of the pipeline: ",
            Step::Offer => "offer to the pipeline: ",
            Step::Call => "connection to the pipeline: ",
        })?;
        match &self.reason {
            Reason::Late(within) => write!(f, "no answer within {} s (p2.answer_timeout_s)", within.as_secs_f32()),
            Reason::NoAnswer(why) | Reason::Local(why) | Reason::Agent(why) => f.write_str(why),
            Reason::Status(status) => write!(f, "it answered {status}"),
            Reason::Unusable(why) => write!(f, "its answer {why}"),
            Reason::Room => f.write_str("its answer hands out a media room of another protocol"),
            Reason::Peer(fault) => fault.fmt(f),
            Reason::NoEvents => f.write_str("its data channel was closed, and the call went on without it"),
        }
    }
}

impl std::error::Error for PipelineFault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_has_its_kind() {
        let check = |step, reason: Reason, kind: FaultKind, is_passing| {
            let fault = PipelineFault { step, reason };
            assert_eq!((fault.kind(), fault.is_passing()), (kind, is_passing), "{fault}");
        };
        use Step::{Call, Offer, Start};
        for (step, failed) in [(Start, FaultKind::PipelineSetup), (Offer, FaultKind::PipelineConnect)] {
            check(step, Reason::Status(401), FaultKind::PipelineAuth, false);
            check(step, Reason::Status(403), FaultKind::PipelineAuth, false);
            check(step, Reason::Status(429), FaultKind::Busy, false);
            check(step, Reason::Status(404), failed, false);
            check(step, Reason::Status(500), failed, true);
            check(step, Reason::NoAnswer("no connection within 5000 ms".into()), failed, true);
            // It may have started a pipeline.
            check(step, Reason::Late(Duration::from_secs(60)), failed, false);
            check(step, Reason::Unusable("is no JSON".into()), failed, false);
            check(step, Reason::Local("no socket".into()), FaultKind::OwnBeforeCall, false);
        }
        check(Start, Reason::Room, FaultKind::PipelineRoom, false);
        check(Offer, Reason::Peer(PeerFault::NoAudio), FaultKind::PipelineConnect, false);
        check(Offer, Reason::Peer(PeerFault::Failed), FaultKind::PipelineConnect, true);
        check(Call, Reason::Peer(PeerFault::Failed), FaultKind::PipelineConnect, true);
        check(Call, Reason::Status(401), FaultKind::PipelineConnect, false);
        check(Call, Reason::Agent("no key".into()), FaultKind::PipelineAgent, false);
        check(Call, Reason::Local("no socket".into()), FaultKind::OwnInCall, false);
    }
}
