//! How a call ends: reasons, the other side's part in them, and the figures that are left.

use serde::{Deserialize, Serialize};

use crate::codec::opus::About;
use crate::connection::Impairment;
use crate::echo::EchoFigures;
use crate::frame::Sample;

/// End of a call by the other side, or by the way to it.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct RemoteEnd {
    /// The kind of end.
    pub kind: RemoteKind,
    /// The channel's own figures.
    pub detail: EndDetail,
    /// Reason phrase or the transport's own words, without secrets.
    pub text: String,
}

impl RemoteEnd {
    /// Returns the final SIP status; `None` for a BYE and on other channels.
    pub fn sip_code(&self) -> Option<u16> {
        if let EndDetail::Sip { code, .. } = self.detail { code } else { None }
    }

    /// Returns the Q.850 cause of a Reason header (RFC 3326).
    pub fn q850_cause(&self) -> Option<u16> {
        if let EndDetail::Sip { q850_cause, .. } = self.detail { q850_cause } else { None }
    }

    /// Returns the close code of a WebSocket (RFC 6455 7.4).
    pub fn close_code(&self) -> Option<u16> {
        if let EndDetail::WebSocket { close_code, .. } = self.detail { close_code } else { None }
    }

    /// Returns the HTTP status of an upgrade to a WebSocket that failed.
    pub fn http_status(&self) -> Option<u16> {
        if let EndDetail::WebSocket { status, .. } = self.detail { status } else { None }
    }

    /// Returns the name of the kind by which the connection to a voice pipeline or a media room failed.
    pub fn pipeline_code(&self) -> Option<&str> {
        if let EndDetail::Pipeline { kind } = &self.detail { Some(kind) } else { None }
    }

    /// True when the other side says that the call may be tried again later.
    pub fn may_retry(&self) -> bool {
        matches!(self.detail, EndDetail::Sip { retry_after: true, .. })
    }
}

/// Detail of an end, as its channel tells it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum EndDetail {
    /// No detail beside the kind of the end.
    #[default]
    None,
    /// End of a SIP call.
    Sip {
        /// The final status, when there was one; `None` for a BYE.
        code: Option<u16>,
        /// Q.850 cause of a Reason header.
        q850_cause: Option<u16>,
        /// Retry-After stood in the response.
        retry_after: bool,
    },
    /// End of a WebSocket connection.
    WebSocket {
        /// HTTP status of the upgrade that failed; `None` when there was none.
        status: Option<u16>,
        /// Close code; `None` when the connection broke without one.
        close_code: Option<u16>,
    },
    /// Failure of the connection to a voice pipeline.
    Pipeline {
        /// Name of the kind of its failure.
        kind: String,
    },
}

/// The kinds of end that are not this side's doing.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub enum RemoteKind {
    /// The other side hung up a call that was up.
    #[default]
    Bye,
    /// A final response refused the call.
    Refused,
    /// No answer at all: time-out, DNS, unreachable, refused socket.
    Unreachable,
    /// This machine had no socket for the connection.
    NoSocket,
    /// The credentials were refused.
    AuthFailed,
    /// Offer and answer have nothing in common.
    NoMedia,
    /// The session was not refreshed in time, and was ended for that (RFC 4028 10).
    Expired,
    /// No handshake brought the keys of the media: the call was answered, and no word could be said.
    NoKeys,
    /// The connection that carried a call which was up broke, or the other side ended it as a fault.
    Lost,
    /// A later handshake failed, and the call was ended for that.
    KeysLost,
}

/// Reason for which a call ended. `as_str` gives its name in results.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndReason {
    /// The mind decided to hang up.
    DhEndCall,
    /// A hang-up phrase was heard or said.
    HangupPhrase,
    /// Silence of both sides reached its limit a second time.
    SilenceTimeout,
    /// Neither side spoke or sent a digit for the inactivity limit.
    InactivityTimeout,
    /// The call reached its maximum duration.
    MaxDuration,
    /// The other side has taken the maximum number of turns.
    MaxTurns,
    /// The other side hung up.
    AgentHangup,
    /// The other side transferred the call, and [`super::CallSpec::hangup_on_transfer`] ends it.
    Transfer,
    /// The control API ended it.
    ApiHangup,
    /// The minutes of the organization are used up.
    UsageLimit,
    /// The last playback step was done.
    PlaybackEnd,
    /// The other side refused or was busy.
    Rejected,
    /// No answer within `ringing_ms`.
    NoAnswer,
    /// The call could not be set up.
    DialFailed,
    /// No RTP while connected.
    MediaTimeout,
    /// The other side did not refresh the session in time.
    SessionExpired,
    /// The connection that carried the call broke.
    ConnectionLost,
    /// Cancelled before it was connected.
    Cancelled,
    /// The engine is stopping.
    Shutdown,
    /// An engine fault (synthesizer, for example); the code stands in the ending.
    Fault,
}

impl EndReason {
    /// Returns the stable name of the reason in results.
    pub fn as_str(self) -> &'static str {
        match self {
            EndReason::DhEndCall => "dh_end_call",
            EndReason::HangupPhrase => "hangup_phrase",
            EndReason::SilenceTimeout => "silence_timeout",
            EndReason::InactivityTimeout => "inactivity_timeout",
            EndReason::MaxDuration => "max_duration",
            EndReason::MaxTurns => "max_turns",
            EndReason::AgentHangup => "agent_hangup",
            EndReason::Transfer => "transfer",
            EndReason::ApiHangup => "api_hangup",
            EndReason::UsageLimit => "usage_limit",
            EndReason::PlaybackEnd => "playback_end",
            EndReason::Rejected => "rejected",
            EndReason::NoAnswer => "no_answer",
            EndReason::DialFailed => "dial_failed",
            EndReason::MediaTimeout => "media_timeout",
            EndReason::SessionExpired => "session_expired",
            EndReason::ConnectionLost => "connection_lost",
            EndReason::Cancelled => "cancelled",
            EndReason::Shutdown => "shutdown",
            EndReason::Fault => "fault",
        }
    }
}

/// Result of a call's end: its reason, its length, and the figures of its media.
#[derive(Clone, Debug, PartialEq)]
pub struct Ending {
    /// Reason for which the call ended.
    pub reason: EndReason,
    /// True when the call was answered.
    pub connected: bool,
    /// Samples from connect to the end; 0 when never connected. After [`EndReason::MediaTimeout`] the end of the
    /// recording is the last packet, and frames beyond it were handed out already: cut the recording here.
    pub samples: Sample,
    /// End as the other side told it; `None` when it told none.
    pub remote: Option<RemoteEnd>,
    /// Fault that ended the call, for [`EndReason::Fault`].
    pub fault: Option<Fault>,
    /// True when the other side spoke for 200 ms or more.
    pub other_spoke: bool,
    /// Figures of the media and of the pacing.
    pub quality: Quality,
    /// Library that coded Opus; `None`: the call had no Opus.
    pub opus: Option<About>,
}

/// A fault of this side that ended the call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Stable code, for example `SYNTHESIZER_FAILED`.
    pub code: &'static str,
    /// Explanation for a person, without secrets and speech; may be empty.
    pub why: String,
}

/// Figures about how well the engine itself did its part.
#[derive(Copy, Clone, Debug, PartialEq, Default)]
pub struct Quality {
    /// 99th percentile of the sending time error, in milliseconds.
    pub pacing_p99_ms: f64,
    /// Largest sending time error, in milliseconds.
    pub pacing_max_ms: f64,
    /// Frames sent in time, those included that were kept back because the other side did not want to hear.
    pub sent_frames: u64,
    /// Ticks more than one frame late: not sent.
    pub late_frames: u64,
    /// Longest run of late frames, in frames.
    pub longest_gap_frames: u64,
    /// Milliseconds by which the machine's clocks came apart during the call: its time was set, or it slept. Set by the
    /// driver.
    pub clock_slip_ms: f64,
    /// Number of RTP packets received.
    pub received_packets: u64,
    /// Number of RTP packets that never came.
    pub lost_packets: u64,
    /// Number of RTP packets that came too late to be heard.
    pub late_packets: u64,
    /// Milliseconds of audio that were lost and concealed.
    pub concealed_ms: u64,
    /// Interarrival jitter, RFC 3550 6.4.1, in milliseconds.
    pub jitter_ms: f64,
    /// Frames that were not recorded, because the recorder's buffer was full.
    pub recording_dropped: u64,
    /// RTP packets of payload types that were not settled: not heard.
    pub unknown_payload_type: u64,
    /// RTP packets of a settled payload type whose length cannot be one of it: not heard.
    pub wrong_length: u64,
    /// RTP packets of another source than the one that is heard.
    pub foreign_source: u64,
    /// Datagrams of another address or port than the other side's. Set by the driver.
    pub foreign_address: u64,
    /// Datagrams that are not RTP.
    pub malformed: u64,
    /// Datagrams that were not encrypted with the agreed key.
    pub unprotected: u64,
    /// Echo of this side's own words, when one was found.
    pub echo: Option<EchoFigures>,
    /// Effect of the bad connection that was asked for; `None` without one. No figure above counts it.
    pub impairment: Option<Impairment>,
}
