//! Channels over which platforms hold calls.

/// Channel over which the calls of an adapter are held.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Transport {
    /// One WebSocket, whose protocol the settings describe.
    WebSocket,
    /// A peer connection that an offer over HTTP opens.
    WebRtc,
    /// A media room, which the session's answer names.
    Room,
    /// A SIP address of the settings, or of the session's answer.
    Sip,
}

impl Transport {
    const ALL: [Transport; 4] = [Transport::WebSocket, Transport::WebRtc, Transport::Room, Transport::Sip];

    /// Returns the name in the settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Transport::WebSocket => "websocket",
            Transport::WebRtc => "webrtc",
            Transport::Room => "room",
            Transport::Sip => "sip",
        }
    }

    /// Returns the transport of a name; `None` for others.
    pub fn parse(name: &str) -> Option<Transport> {
        Transport::ALL.into_iter().find(|transport| transport.as_str() == name)
    }

    /// Returns the settings that only this transport has.
    pub(super) fn own(self) -> &'static [&'static str] {
        match self {
            Transport::WebSocket => &[],
            Transport::WebRtc => &["offer", "token_pointer"],
            Transport::Room => &["url", "url_pointer", "token_pointer"],
            Transport::Sip => &["url", "url_pointer", "headers"],
        }
    }
}
