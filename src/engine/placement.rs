//! Calls to make and calls to answer: how they come about, what is said in them, and what is kept of them.

use std::path::PathBuf;
use std::time::Duration;

use ringer_base::config;
use ringer_base::config::{CODECS, Encryption, Secret};
use ringer_base::guard::{Blocked, Guard};
use ringer_human::{Fluency, Mind};
use ringer_media::call::{CallSpec, DtmfMethod};
use ringer_media::codec::Codec;
use ringer_media::seed::Seed;
use ringer_media::time::Time;
use ringer_provider::{Voice, VoiceWanted};
use ringer_sip::registration::route;
use ringer_sip::uri::{Scheme, Uri};
use ringer_sip::{Hop, Invite, Reach};
use ringer_transport::peer::without_secrets;
use ringer_transport::pipeline::{Patience, PipelineTarget};
use ringer_transport::room;
use ringer_transport::room::{RoomTarget, RoomTerms};
use ringer_transport::sip::address::{Address, AddressFault};
use ringer_transport::sip::names::Resolver;
use ringer_transport::sip::transfer::TargetCall;
use ringer_transport::webrtc::PeerTerms;
use ringer_transport::websocket::link::LinkLimits;
use ringer_transport::websocket::platform::secrets::Secrets;
use ringer_transport::websocket::port::DialRules;
use ringer_transport::websocket::protocol::{DigitPath, MAX_TEXT_BYTES};
use ringer_transport::websocket::{Dialect, Kind, SessionFacts};

use super::gate::DialGate;

/// Way in which a call comes about.
#[derive(Clone, Debug)]
pub enum Destination {
    /// This side dials a SIP address.
    Sip(SipDial),
    /// This side opens a WebSocket to an agent's server.
    WebSocket(Box<WebSocketDial>),
    /// This side makes an offer to a voice pipeline.
    Pipeline(Box<PipelineDial>),
    /// This side joins a media room.
    Room(Box<RoomDial>),
    /// The other side calls, and this one answers ([`super::Engine::answer`]).
    Incoming(Answering),
}

/// Terms of a call that is answered, whatever its protocol.
#[derive(Clone, Debug, Default)]
pub struct Answering {
    /// Codecs of which the caller's best is taken; empty: G722, PCMU, PCMA.
    pub codecs: Vec<Codec>,
    /// Guard of the addresses that media may go to; `None`: all are allowed.
    pub guard: Option<Guard>,
    /// User that was called, which calls the target of a transfer.
    pub user: String,
    /// Extra header fields of the INVITE to the target of a transfer, in order.
    pub headers: Vec<(String, String)>,
    /// Admits addresses that the other side transfers the call to; `None`: all of them.
    pub gate: Option<DialGate>,
    /// Protocol of a call that comes over a WebSocket, and its facts.
    pub websocket: Option<Box<WebSocketDial>>,
    /// Name of the platform that was asked for the call, such as `P4`; `None`: none was.
    pub platform: Option<Box<str>>,
}

/// Returns host and port of a URL, `HOST:PORT`; `None`: it has none.
pub fn host_and_port(url: &str) -> Option<String> {
    let url = url::Url::parse(url).ok()?;
    Some(format!("{}:{}", url.host_str()?, url.port_or_known_default()?))
}

impl Destination {
    /// Returns host and port of the address that is called, `HOST:PORT`, without any credentials; `None` where nobody
    /// is called, or where the address is none.
    pub fn address(&self) -> Option<String> {
        match self {
            Destination::Sip(dial) => {
                let uri = Uri::parse(&dial.target).ok().filter(|uri| !uri.host.is_empty())?;
                let usual = if uri.scheme == Scheme::Sips { 5061 } else { 5060 };
                Some(format!("{}:{}", uri.host, uri.port.unwrap_or(usual)))
            }
            other => host_and_port(other.server_url()?),
        }
    }

    /// Returns the URL of the agent's server; `None` where a SIP address or nobody is called.
    pub fn server_url(&self) -> Option<&str> {
        match self {
            Destination::WebSocket(dial) => Some(&dial.url),
            Destination::Pipeline(dial) => Some(&dial.target.base_url),
            Destination::Room(dial) => Some(&dial.target.server_url),
            Destination::Sip(_) | Destination::Incoming(_) => None,
        }
    }

    /// Returns the name of the platform whose agent is reached over media without messages about its turns. A WebSocket
    /// has them, and its protocol tells by itself that an agent does not begin.
    pub(super) fn platform(&self) -> Option<&str> {
        match self {
            Destination::Sip(dial) => dial.platform.as_deref(),
            Destination::Pipeline(dial) => dial.target.offer.as_ref().map(|offer| offer.platform.as_str()),
            Destination::Room(dial) => dial.terms.platform.as_deref(),
            Destination::Incoming(terms) => terms.platform.as_deref(),
            Destination::WebSocket(_) => None,
        }
    }

    /// Returns the codecs that are offered or accepted, in order.
    pub fn codecs(&self) -> &[Codec] {
        let own: &[Codec] = match self {
            Destination::Sip(SipDial { codecs, .. }) | Destination::Incoming(Answering { codecs, .. }) => codecs,
            Destination::WebSocket(_) | Destination::Pipeline(_) | Destination::Room(_) => &[],
        };
        if own.is_empty() { &CODECS } else { own }
    }

    /// Sets the codecs that are offered or accepted, in order.
    pub fn set_codecs(&mut self, wanted: Vec<Codec>) {
        match self {
            Destination::Sip(SipDial { codecs, .. }) | Destination::Incoming(Answering { codecs, .. }) => {
                *codecs = wanted;
            }
            Destination::WebSocket(_) | Destination::Pipeline(_) | Destination::Room(_) => {}
        }
    }

    /// Returns the way in which digits reach the other side, where the channel decides it; `None`: the agent's settings
    /// do.
    pub fn digit_method(&self) -> Option<DtmfMethod> {
        match self {
            Destination::WebSocket(dial) | Destination::Incoming(Answering { websocket: Some(dial), .. }) => {
                Some(dial.digit_method())
            }
            Destination::Pipeline(_) | Destination::Room(_) => Some(DtmfMethod::MessageAndTone),
            Destination::Sip(_) | Destination::Incoming(_) => None,
        }
    }

    /// Returns the guard of addresses that signalling and media may go to.
    pub fn guard(&self) -> Guard {
        let guard = match self {
            Destination::Sip(SipDial { guard, .. }) | Destination::Incoming(Answering { guard, .. }) => guard,
            Destination::WebSocket(dial) => &dial.guard,
            Destination::Pipeline(dial) => &dial.guard,
            Destination::Room(dial) => &dial.guard,
        };
        guard.clone().unwrap_or_else(|| Guard::by(|_| true))
    }

    /// Sets the guard of addresses that signalling and media may go to.
    pub fn set_guard(&mut self, wanted: Guard) {
        let guard = match self {
            Destination::Sip(SipDial { guard, .. }) | Destination::Incoming(Answering { guard, .. }) => guard,
            Destination::WebSocket(dial) => &mut dial.guard,
            Destination::Pipeline(dial) => &mut dial.guard,
            Destination::Room(dial) => &mut dial.guard,
        };
        *guard = Some(wanted);
    }

    /// Returns the INVITE to the target of a transfer with the offer `sdp`: by whom and with what the call itself was
    /// made. Credentials and the terms of a trunk are for the hosts that were dialled alone. `None` where the target
    /// has no hop.
    pub(super) fn invite_target(&self, call: &TargetCall, sdp: String) -> Option<Invite> {
        let mut dial = match self {
            Destination::Sip(dial) => dial.clone(),
            Destination::WebSocket(_) | Destination::Pipeline(_) | Destination::Room(_) => return None,
            Destination::Incoming(Answering { guard, headers, .. }) => {
                SipDial { guard: guard.clone(), headers: headers.clone(), ..SipDial::default() }
            }
        };
        let is_dialled = |hop: &Hop| dial.hops.iter().any(|dialled| dialled.address.ip() == hop.address.ip());
        if !call.hops.iter().all(is_dialled) {
            (dial.username, dial.password) = (None, None);
            // The target may be a trunk, and a trace is told to the agent alone.
            dial.headers.retain(|(name, _)| !name.eq_ignore_ascii_case("traceparent"));
            // The number that calls is asserted to the trunk alone (RFC 3325 5).
            if dial.trunk.take().is_some() {
                dial.headers.clear();
            }
        }
        dial.headers.extend(call.headers.iter().cloned());
        let invite = dial.invite(call.uri.clone(), call.hops.clone(), sdp)?;
        Some(match self {
            Destination::Incoming(Answering { user, .. }) if !user.is_empty() => {
                Invite { from_user: user.clone(), ..invite }
            }
            _ => invite,
        })
    }

    /// Returns the gate of addresses that the other side names; `None`: all of them may be dialled.
    pub fn gate(&self) -> Option<&DialGate> {
        match self {
            Destination::Sip(SipDial { gate, .. }) | Destination::Incoming(Answering { gate, .. }) => gate.as_ref(),
            Destination::WebSocket(_) | Destination::Pipeline(_) | Destination::Room(_) => None,
        }
    }

    /// Sets the gate of addresses that the other side names.
    pub fn set_gate(&mut self, wanted: DialGate) {
        match self {
            Destination::Sip(SipDial { gate, .. }) | Destination::Incoming(Answering { gate, .. }) => {
                *gate = Some(wanted)
            }
            Destination::WebSocket(_) | Destination::Pipeline(_) | Destination::Room(_) => {}
        }
    }

    /// Returns the SIP dial; `None` for a call that comes about otherwise.
    pub fn sip(&mut self) -> Option<&mut SipDial> {
        if let Destination::Sip(dial) = self { Some(dial) } else { None }
    }
}

impl Default for Destination {
    fn default() -> Destination {
        Destination::Incoming(Answering::default())
    }
}

/// A SIP address to dial, and how.
#[derive(Clone, Debug, Default)]
pub struct SipDial {
    /// Address to call, `sip:user@host[:port]`.
    pub target: String,
    /// User name for digest authentication.
    pub username: Option<String>,
    /// Password for digest authentication.
    pub password: Option<Secret>,
    /// Extra header fields of the INVITE, in order.
    pub headers: Vec<(String, String)>,
    /// Codecs that are offered, in order; empty: G722, PCMU, PCMA.
    pub codecs: Vec<Codec>,
    /// Hops to `target` in the order in which they are tried; empty: they are looked up.
    pub hops: Vec<Hop>,
    /// Guard of the addresses for signalling and media, redirects included; `None`: all are allowed.
    pub guard: Option<Guard>,
    /// User part of the From header field where no trunk says another; `None`: `ringer`.
    pub from_user: Option<String>,
    /// Terms of a trunk; `None`: an address is called.
    pub trunk: Option<Box<TrunkTerms>>,
    /// Secure RTP of this call; `None`: as the engine does.
    pub srtp: Option<Encryption>,
    /// Admits addresses that the other side redirects or transfers the call to; `None`: all of them.
    pub gate: Option<DialGate>,
    /// Texts that are written nowhere.
    pub secrets: Secrets,
    /// Name of the platform that the agent is on, such as `P4`; `None`: it is on none.
    pub platform: Option<Box<str>>,
}

/// Terms of a call through a trunk.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrunkTerms {
    /// Address that requests are sent to in place of the target's host, as a URI: the outbound proxy.
    pub proxy: Option<String>,
    /// User part of the From header field; `None`: that of the dial.
    pub from_user: Option<String>,
    /// Host of the From header field; `None`: the address of this side.
    pub from_host: Option<String>,
    /// Display name of the From header field.
    pub from_display: Option<String>,
}

impl SipDial {
    fn guard(&self) -> Guard {
        self.guard.clone().unwrap_or_else(|| Guard::by(|_| true))
    }

    /// Returns the URI that is called, and the hops to it in the order in which they are tried.
    pub(super) async fn route(&self, names: &Resolver) -> Result<(Uri, Vec<Hop>), PlaceError> {
        let bad = |fault: AddressFault| PlaceError::BadTarget(fault.to_string());
        let address = Address::parse(&self.target).map_err(bad)?;
        address.check_spoken().map_err(bad)?;
        if self.hops.is_empty() {
            let found = self.next_hop(&address).map_err(bad)?.hops(names, &self.guard()).await.map_err(bad)?;
            return Ok((address.uri().clone(), found));
        }
        let guard = self.guard();
        let allowed: Vec<Hop> = self.hops.iter().filter(|hop| guard.allows(hop.address.ip())).cloned().collect();
        if allowed.is_empty() {
            let why = format!("the host of {:?} {}", self.target, Blocked::NotAllowed);
            return Err(bad(AddressFault::NotAllowed(why)));
        }
        Ok((address.uri().clone(), allowed))
    }

    /// Returns the address whose host requests are sent to: the outbound proxy's, or the target's own.
    ///
    /// # Errors
    /// [`AddressFault::Malformed`] for a proxy that is no URI.
    pub fn next_hop(&self, target: &Address) -> Result<Address, AddressFault> {
        let proxy = self.trunk.as_ref().and_then(|terms| terms.proxy.as_ref());
        let Some(proxy) = proxy else { return Ok(target.clone()) };
        let malformed =
            |error| AddressFault::Malformed(format!("{proxy:?} is no address of an outbound proxy: {error}"));
        Uri::parse(proxy).map(Address::from).map_err(malformed)
    }

    /// Returns the INVITE to `target` with the offer `sdp`, sent to the first of `hops` that takes it; `None` without
    /// any.
    pub(super) fn invite(&self, target: Uri, hops: Vec<Hop>, sdp: String) -> Option<Invite> {
        let TrunkTerms { proxy, from_user, from_host, from_display } =
            self.trunk.as_deref().cloned().unwrap_or_default();
        // Whoever is not the target's host is told which that is (RFC 3261 8.1.2).
        let route = proxy.and_then(|proxy| Uri::parse(&proxy).ok()).map(|proxy| ("Route".to_owned(), route(&proxy)));
        let headers = route.into_iter().chain(self.headers.iter().cloned()).collect();
        let mut hops = hops.into_iter();
        Some(Invite {
            target,
            destination: hops.next()?,
            alternatives: hops.collect(),
            from_user: from_user.or_else(|| self.from_user.clone()).unwrap_or_else(|| "ringer".into()),
            from_host,
            from_display,
            headers,
            sdp,
            username: self.username.clone(),
            password: self.password.as_ref().map(|password| password.expose().into()),
            reach: self.guard.clone().map(|guard| Reach::by(move |address| guard.allows(address))).unwrap_or_default(),
        })
    }
}

/// A WebSocket to open, and the protocol that is spoken over it.
#[derive(Clone, Default)]
pub struct WebSocketDial {
    /// Address: `ws://` or `wss://`; `http` and `https` are read as these.
    pub url: String,
    /// User name of Basic authentication.
    pub username: Option<String>,
    /// Password of Basic authentication.
    pub password: Option<Secret>,
    /// Protocol of the messages; `None`: the engine's own.
    pub dialect: Option<Dialect>,
    /// Parameters beside the result id, in order.
    pub parameters: Vec<(String, String)>,
    /// Id of the result.
    pub result_id: u64,
    /// Number or address of the caller, empty when it has none.
    pub from: String,
    /// Number or address that is called, empty when it has none.
    pub to: String,
    /// Times and limits of the connection.
    pub settings: SocketSettings,
    /// Addresses that may be connected to; `None`: all of them.
    pub guard: Option<Guard>,
    /// Trace context for the other side (W3C); `None`: it is told none.
    pub traceparent: Option<String>,
}

impl std::fmt::Debug for WebSocketDial {
    /// Writes no credentials, no query and no parameters: they may be secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WebSocketDial({}, {:?})", without_secrets(&self.url), self.dialect)
    }
}

impl WebSocketDial {
    /// Returns the dialect that is spoken.
    pub fn dialect(&self) -> Dialect {
        self.dialect.clone().unwrap_or_else(|| Dialect::new(Kind::Default))
    }

    /// Returns the way in which digits reach the other side.
    pub fn digit_method(&self) -> DtmfMethod {
        match self.dialect().digits() {
            DigitPath::Tones => DtmfMethod::Inband,
            DigitPath::Messages => DtmfMethod::Message,
            DigitPath::Both => DtmfMethod::MessageAndTone,
        }
    }

    /// Returns the facts of the session; `now` and `epoch_ms` are the same moment on two clocks.
    pub(super) fn facts(&self, seed: Seed, now: Time, epoch_ms: i64) -> SessionFacts {
        SessionFacts {
            from: self.from.clone(),
            to: self.to.clone(),
            parameters: self.parameters.clone(),
            username: self.username.clone(),
            password: self.password.as_ref().map(|password| password.expose().to_owned()),
            max_message_bytes: self.settings.limits.max_message_bytes,
            max_text_bytes: self.settings.max_text_bytes,
            traceparent: self.traceparent.clone(),
            ..SessionFacts::new(self.result_id, &self.url, seed, now, epoch_ms)
        }
    }
}

/// Times and limits of a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketSettings {
    /// Time for TCP, TLS and upgrade.
    pub connect_timeout: Duration,
    /// Rules of further attempts.
    pub rules: DialRules,
    /// Pings and the longest message.
    pub limits: LinkLimits,
    /// Time within which the other side answers a close.
    pub close_timeout: Duration,
    /// Most bytes of a text message of the default protocol.
    pub max_text_bytes: usize,
}

impl Default for SocketSettings {
    fn default() -> SocketSettings {
        SocketSettings {
            connect_timeout: Duration::from_secs(10),
            rules: DialRules::default(),
            limits: LinkLimits::default(),
            close_timeout: Duration::from_secs(2),
            max_text_bytes: MAX_TEXT_BYTES,
        }
    }
}

impl From<&config::WebSocket> for SocketSettings {
    fn from(settings: &config::WebSocket) -> SocketSettings {
        let seconds = |seconds: u32| Duration::from_secs(seconds.into());
        SocketSettings {
            connect_timeout: Duration::from_millis(settings.connect_timeout_ms.into()),
            rules: DialRules { retries: settings.retries, backoff_ms: settings.retry_backoff_ms.clone() },
            limits: LinkLimits {
                max_message_bytes: settings.max_message_bytes,
                ping_interval: seconds(settings.ping_interval_s),
                ping_timeout: seconds(settings.ping_timeout_s),
                ..LinkLimits::default()
            },
            close_timeout: Duration::from_millis(settings.close_timeout_ms.into()),
            max_text_bytes: settings.max_text_bytes,
        }
    }
}

/// A voice pipeline to make an offer to.
#[derive(Clone, Debug, Default)]
pub struct PipelineDial {
    /// The pipeline, and everything that is said to it.
    pub target: PipelineTarget,
    /// Servers that help to find a path, and local addresses.
    pub peers: PeerTerms,
    /// Limits of time of its steps.
    pub patience: Patience,
    /// Addresses that may be asked and sent to; `None`: all of them.
    pub guard: Option<Guard>,
}

/// A media room to join.
#[derive(Clone, Debug, Default)]
pub struct RoomDial {
    /// The room, and everything that is needed to join it.
    pub target: RoomTarget,
    /// Facts by which a failure says what to check.
    pub terms: RoomTerms,
    /// Servers that help to find a path, and local addresses; those that the room server names come on top.
    pub peers: PeerTerms,
    /// Limits of time of its steps.
    pub patience: room::Patience,
    /// Addresses that may be asked and sent to; `None`: all of them.
    pub guard: Option<Guard>,
}

/// One call to make or to answer.
pub struct Placement {
    /// Names the call in logs and on disk (the result id).
    pub id: String,
    /// Behaviour of the call: turns, speech, limits.
    pub spec: CallSpec,
    /// Way in which the call comes about.
    pub destination: Destination,
    /// Decides what is said.
    pub mind: Box<dyn Mind>,
    /// Fillers and pauses of words that are not exact.
    pub fluency: Fluency,
    /// Voice of this side; `None`: it does not speak.
    pub voice: Option<Voice>,
    /// Language of the recognizer.
    pub language: String,
    /// The other side's language is spoken as soon as it is known, by the voice nearest to this one; `language` is
    /// where it begins.
    pub follows: Option<VoiceWanted>,
    /// Bias words of the recognizer.
    pub keyterms: Vec<String>,
    /// `recording.wav`, `timeline.jsonl`, `sip.log`, `early_media.wav` are written here; `None`: nothing is written.
    pub folder: Option<PathBuf>,
    /// True if every datagram of the media ports goes into [`CAPTURED`](super::CAPTURED) beside them.
    pub captured: bool,
}

/// Reason why a call was not placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PlaceError {
    /// The limit `limits.max_calls` is reached.
    Full,
    /// The target is not a usable SIP address.
    BadTarget(String),
    /// No media port, no socket.
    NoMedia(String),
}

impl std::fmt::Display for PlaceError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            PlaceError::Full => f.write_str("as many calls as limits.max_calls allows are running"),
            PlaceError::BadTarget(why) | PlaceError::NoMedia(why) => f.write_str(why),
        }
    }
}
