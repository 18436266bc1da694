//! Places calls: `place(Placement) -> CallHandle`. The engine knows no SQL, no HTTP and no resources; it drives
//! `ringer_media::call::Call` by sockets and threads (`live`), or in virtual time (`sim`). What is written instead of
//! spoken is a `dialogue`.

mod call_state;
mod call_task;
mod channel;
mod counters;
pub mod dialogue;
mod effect_times;
mod effects;
mod exchange;
mod following;
mod gate;
mod known_words;
pub mod lateness;
pub mod line_check;
mod lines;
mod live;
mod looking;
mod missing_recognizer;
#[cfg(test)]
mod named;
pub mod noise;
pub mod pace;
mod packet_tap;
mod placement;
mod recorder;
mod recording_blocks;
mod recording_ring;
mod services;
mod shard;
mod shard_handle;
pub mod sim;
mod simulated;
mod start_watch;
mod texts;
mod timed;
mod timeline;
mod wake;
pub mod warnings;

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ringer_base::config::{Encryption, OfferedIn, SipListen, SrtpKeys, SymmetricRtp};
pub use ringer_media::call::TimelineEntry;
use ringer_media::call::{EndReason, Ending};
use ringer_media::codec::opus::Opus;
use ringer_provider::{Recognizer, Synthesizer};
use ringer_transport::peer::{AgentError, PeerInfo};
use ringer_transport::sip::names::Resolver;
use ringer_transport::sip::tls::TlsSettings;
use ringer_transport::sip::transfer::Forwarding;
use serde_json::Value;
use tokio::sync::mpsc;

pub use self::channel::CONNECTION_LOGS;
pub use self::counters::{Calls, Counters, Histogram};
pub use self::effect_times::{EffectKind, EffectTime};
pub use self::gate::{DialGate, Forwarded};
pub use self::known_words::known_words;
pub use self::live::Engine;
pub use self::placement::{
    Answering, Destination, PipelineDial, PlaceError, Placement, RoomDial, SipDial, SocketSettings, TrunkTerms,
    WebSocketDial, host_and_port,
};
pub use self::simulated::Answerer;
pub use self::texts::TextSender;
pub use ringer_sip::registration::Standing;
pub use ringer_transport::websocket::platform::START_WITHIN;

pub use ringer_transport::sip::registration::{LineReport, LineStanding};

/// Settings of the engine.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Addresses of the SIP sockets.
    pub sip: SipListen,
    /// Certificates of SIP over TLS.
    pub tls: TlsSettings,
    /// Ports for RTP (even) and RTCP (odd).
    pub rtp_ports: RangeInclusive<u16>,
    /// Address put into SDP and Contact; `None`: the address of the SIP socket.
    pub advertise: Option<IpAddr>,
    /// Media threads; 0 = cores - 1, at least 1.
    pub shards: usize,
    /// Largest number of calls at the same time.
    pub max_calls: usize,
    /// Secure RTP, of calls in both directions.
    pub srtp: Encryption,
    /// Kind of keys of secure RTP.
    pub srtp_keys: SrtpKeys,
    /// Addresses that RTP is taken from while nothing comes from the agreed one (RFC 4961).
    pub symmetric_rtp: SymmetricRtp,
    /// Side whose session description comes first in calls that are made.
    pub offer: OfferedIn,
    /// Session interval that calls ask for (RFC 4028), seconds; `None`: they do not ask.
    pub session_interval_s: Option<u32>,
    /// Rules of where other sides may send calls on to.
    pub forwarding: Forwarding,
    /// Time within which agents on platforms begin to speak, once it is their turn: [`START_WITHIN`].
    pub start_within: Duration,
    /// Library that codes Opus in real calls.
    pub opus: Opus,
    /// Looks SIP hosts up; the engine narrows it to the families of its SIP socket.
    pub names: Resolver,
}

/// Name of the file of a call's recording: the Digital Human and the agent.
pub const RECORDING: &str = "recording.wav";
/// Name of the file of the Digital Human before noise, audio quality and loss.
pub const CALLER_CLEAN: &str = "caller_clean.wav";
/// Name of the file of what the agent sent before the call was connected.
pub const EARLY_MEDIA: &str = "early_media.wav";
/// Name of the file of a call's events, a line each as they happen.
pub const JOURNAL: &str = "timeline.jsonl";
/// Name of the file of a call's signalling by SIP.
pub const SIP_LOG: &str = "sip.log";
/// Name of the file of a call's messages by a WebSocket.
pub const WEBSOCKET_LOG: &str = "websocket.log";
/// Name of the file of captured datagrams (pcapng).
pub const CAPTURED: &str = "media.pcapng";

/// Report on a call that is over.
#[derive(Clone, Debug)]
pub struct CallReport {
    /// Kind of ending, with its details.
    pub ending: Ending,
    /// Every event, in order of `sample`, then `seq`.
    pub timeline: Vec<TimelineEntry>,
    /// Wall clock of sample 0, milliseconds since the epoch; `None` when never connected.
    pub connected_at_ms: Option<i64>,
    /// Wall clock of the end.
    pub ended_at_ms: i64,
    /// The other side and the way to it.
    pub peer: PeerInfo,
    /// Things that a user of the result should know (no recognizer for the language, recording folder not writable,
    /// ...).
    pub warnings: Vec<String>,
    /// The mind that spoke.
    pub speaker: String,
    /// The recording, when it was written.
    pub recording: Option<PathBuf>,
    /// Errors that the other side told of by messages.
    pub agent_errors: Vec<AgentError>,
    /// Values that the other side handed over at the end, by messages.
    pub variables: Option<Value>,
    /// Times of the work for the call, by start; none of a call that was never connected.
    pub effects: Vec<EffectTime>,
}

/// News of a live call for a watcher.
#[derive(Clone, Debug)]
pub enum CallUpdate {
    /// The INVITE is out.
    Dispatched,
    /// Sample 0 was at this wall clock time (milliseconds since the epoch).
    Connected(i64),
    /// Timeline entry, as it happens.
    Event(TimelineEntry),
    /// The call is over; nothing follows.
    Ended(Box<CallReport>),
}

/// The speech providers of an engine.
#[derive(Clone)]
pub struct Speech {
    /// Converts text to speech.
    pub synthesizer: Arc<dyn Synthesizer>,
    /// Converts speech to text.
    pub recognizer: Arc<dyn Recognizer>,
}

/// Handle of a call that was placed.
pub struct CallHandle {
    /// News of the call, in order. The channel is bounded and the engine never waits for it; the report holds
    /// everything.
    pub news: mpsc::Receiver<CallUpdate>,
    /// Ends the call from outside; may be cloned and kept.
    pub control: CallControl,
}

/// Ends a call from outside.
#[derive(Clone)]
pub struct CallControl {
    hangup: mpsc::Sender<EndReason>,
}

impl CallControl {
    /// Returns a control that sends the reasons of ends to `hangup`.
    pub fn new(hangup: mpsc::Sender<EndReason>) -> CallControl {
        CallControl { hangup }
    }

    /// Asks the call to end. Does nothing when it is over.
    pub fn hangup(&self, reason: EndReason) {
        let _ = self.hangup.try_send(reason);
    }
}
