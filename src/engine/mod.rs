//! Places calls: `place(Placement) -> CallHandle`. The engine knows no SQL, no HTTP and no resources; it drives
//! `ringer_media::call::Call` by sockets and threads (`real`), or in virtual time (`sim`). What is written instead of spoken is
//! a `dialogue`.

pub mod amiss;
mod deaf;
pub mod dialogue;
mod drive;
mod effects;
mod following;
pub mod lateness;
pub mod noise;
pub mod pace;
mod real;
mod recorder;
mod shard;
pub mod sim;
mod tally;
mod tape;
mod timeline;
mod wake;
mod wire;

use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

pub use ringer_media::call::TimelineEntry;
use ringer_media::call::{CallSpec, EndReason, Ending};
use ringer_media::codec::Codec;
use ringer_sip::uri::Uri;
use ringer_sip::{Invite, Reach};
use tokio::sync::mpsc;

pub use self::real::Engine;
pub use self::tally::{Calls, Histogram, Tally};

use crate::config::{CODECS, Encryption, Secret};
use crate::human::{Fluency, Mind};
use crate::provider::guard::{Blocked, Guard};
use crate::provider::{Failure, Recognizer, Synthesizer, Voice, VoiceWanted};
use crate::transport::port::PeerInfo;
use crate::transport::sip::address::{Address, AddressFault};

/// How the engine is set up.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Address of the SIP socket (UDP).
    pub sip: SocketAddr,
    /// Ports for RTP (even) and RTCP (odd).
    pub rtp_ports: RangeInclusive<u16>,
    /// Address put into SDP and Contact; `None`: the address of the SIP socket.
    pub advertise: Option<IpAddr>,
    /// Media threads; 0 = cores - 1, at least 1.
    pub shards: usize,
    /// Calls at once.
    pub max_calls: usize,
    /// Secure RTP, of calls in both directions.
    pub srtp: Encryption,
}

/// Where and how to dial.
#[derive(Clone, Debug, Default)]
pub struct Dial {
    /// `sip:user@host[:port]`.
    pub target: String,
    /// Digest user.
    pub username: Option<String>,
    /// Digest password.
    pub password: Option<Secret>,
    /// Extra header fields of the INVITE, in order.
    pub headers: Vec<(String, String)>,
    /// Codecs that are offered, in order, or of which the caller's best is taken; empty: G722, PCMU, PCMA.
    pub codecs: Vec<Codec>,
    /// The address behind `target`, when it is known; else it is looked up.
    pub destination: Option<SocketAddr>,
    /// Which addresses signalling and media may go to, redirects included; `None`: all of them.
    pub guard: Option<Guard>,
}

impl Dial {
    /// What is offered, or accepted.
    fn codecs(&self) -> &[Codec] {
        if self.codecs.is_empty() { &CODECS } else { &self.codecs }
    }

    fn guard(&self) -> Guard {
        self.guard.clone().unwrap_or_else(|| Guard::by(|_| true))
    }

    /// Returns the URI that is called, and where it is reached.
    async fn route(&self) -> Result<(Uri, SocketAddr), PlaceError> {
        let bad = |fault: AddressFault| PlaceError::BadTarget(fault.to_string());
        let address = Address::parse(&self.target).map_err(bad)?;
        address.check_spoken().map_err(bad)?;
        let found = match self.destination {
            Some(found) if self.guard().allows(found.ip()) => found,
            Some(_) => {
                return Err(bad(AddressFault::NotAllowed(format!(
                    "the host of {:?} {}",
                    self.target,
                    Blocked::NotAllowed
                ))));
            }
            None => address.locate(&self.guard()).await.map_err(bad)?,
        };
        Ok((address.uri().clone(), found))
    }

    /// The INVITE to `target` with the offer `sdp`, sent to `destination`.
    fn invite(&self, target: Uri, destination: SocketAddr, sdp: String) -> Invite {
        Invite {
            target,
            destination,
            from_user: "ringer".into(),
            from_host: None,
            from_display: None,
            headers: self.headers.clone(),
            sdp,
            username: self.username.clone(),
            password: self.password.as_ref().map(|password| password.expose().into()),
            reach: self.guard.clone().map(|guard| Reach::by(move |address| guard.allows(address))).unwrap_or_default(),
        }
    }
}

/// One call to make.
pub struct Placement {
    /// Names the call in logs and on disk (the result id).
    pub id: String,
    /// The call itself.
    pub spec: CallSpec,
    /// Where to.
    pub dial: Dial,
    /// Decides what is said.
    pub mind: Box<dyn Mind>,
    /// Fillers and pauses of words that are not exact.
    pub fluency: Fluency,
    /// How it sounds.
    pub voice: Option<Voice>,
    /// Language of the recognizer.
    pub language: String,
    /// The other side's language is spoken as soon as it is known, by the voice nearest to this one; `language` is where it begins.
    pub follows: Option<VoiceWanted>,
    /// Bias words of the recognizer.
    pub keyterms: Vec<String>,
    /// `recording.wav`, `timeline.jsonl`, `sip.log`, `early_media.wav` are written here; `None`: nothing is written.
    pub folder: Option<PathBuf>,
    /// Every datagram of the media ports goes into [`CAPTURED`] beside them.
    pub captured: bool,
}

/// Name of the file of a call's events, a line each as they happen.
pub const JOURNAL: &str = "timeline.jsonl";
/// Name of the file of captured datagrams (pcapng).
pub const CAPTURED: &str = "media.pcapng";

/// What is left of a call that is over.
#[derive(Clone, Debug)]
pub struct CallReport {
    /// How it ended.
    pub ending: Ending,
    /// Every event, in order of `sample`, then `seq`.
    pub timeline: Vec<TimelineEntry>,
    /// Wall clock of sample 0, milliseconds since the epoch; `None` when never connected.
    pub connected_at_ms: Option<i64>,
    /// Wall clock of the end.
    pub ended_at_ms: i64,
    /// The other side and the way to it.
    pub peer: PeerInfo,
    /// Things that a user of the result should know (no recognizer for the language, recording folder not writable, ...).
    pub warnings: Vec<String>,
    /// The mind that spoke.
    pub speaker: String,
    /// The recording, when it was written.
    pub recording: Option<PathBuf>,
}

/// What a watcher of a live call sees.
#[derive(Clone, Debug)]
pub enum CallNews {
    /// The INVITE is out.
    Dispatched,
    /// Sample 0 was at this wall clock time (milliseconds since the epoch).
    Connected(i64),
    /// An event.
    Event(TimelineEntry),
    /// Over; nothing follows.
    Ended(Box<CallReport>),
}

/// The speech providers of an engine.
#[derive(Clone)]
pub struct Speech {
    /// Words to speech.
    pub synthesizer: Arc<dyn Synthesizer>,
    /// Speech to words.
    pub recognizer: Arc<dyn Recognizer>,
}

/// A placed call.
pub struct CallHandle {
    /// What happens, in order; bounded, the engine never waits for it (a slow watcher loses nothing: the report holds all).
    pub news: mpsc::Receiver<CallNews>,
    /// Ends the call from outside; may be cloned and kept.
    pub control: CallControl,
}

/// Ends a call from outside.
#[derive(Clone)]
pub struct CallControl {
    pub(crate) hangup: mpsc::Sender<EndReason>,
}

impl CallControl {
    /// Asks the call to end. Does nothing when it is over.
    pub fn hangup(&self, reason: EndReason) {
        let _ = self.hangup.try_send(reason);
    }
}

/// Why a call was not placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceError {
    /// `limits.max_calls` are running.
    Full,
    /// The target is not a usable SIP address.
    BadTarget(String),
    /// No media port, no socket.
    NoMedia(String),
    /// A provider refused.
    Provider(Failure),
}

impl std::fmt::Display for PlaceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PlaceError::Full => f.write_str("as many calls as limits.max_calls allows are running"),
            PlaceError::BadTarget(why) | PlaceError::NoMedia(why) => f.write_str(why),
            PlaceError::Provider(failure) => f.write_str(&failure.message),
        }
    }
}
