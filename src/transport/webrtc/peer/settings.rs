//! Settings of the library's connections.

use rtc::ice::mdns::MulticastDnsMode;
use rtc::peer_connection::configuration::media_engine::MIME_TYPE_OPUS;
use rtc::peer_connection::configuration::setting_engine::{SctpMaxMessageSize, SettingEngine};
use rtc::peer_connection::configuration::{RTCConfiguration, RTCIceTransportPolicy};
use rtc::rtp_transceiver::rtp_sender::RTCRtpCodec;
use webrtc::peer_connection::{RTCConfigurationBuilder, RTCIceServer, SettingEngineBuilder};

use super::super::{CONSENT, IceServer, MAX_MESSAGE, PeerSettings};
use super::{CHECKS, QUIET};

pub(super) fn opus() -> RTCRtpCodec {
    RTCRtpCodec {
        mime_type: MIME_TYPE_OPUS.to_owned(),
        clock_rate: 48_000,
        channels: 2,
        sdp_fmtp_line: "minptime=10;useinbandfec=1".to_owned(),
        rtcp_feedback: Vec::new(),
    }
}

pub(super) fn configuration(settings: &PeerSettings) -> RTCConfiguration {
    let server = |server: &IceServer| RTCIceServer {
        urls: server.urls.clone(),
        username: server.username.clone(),
        credential: server.credential.as_ref().map(|secret| secret.expose().to_owned()).unwrap_or_default(),
    };
    let servers = settings.ice_servers.iter().map(server).collect();
    let policy = if settings.relay_only { RTCIceTransportPolicy::Relay } else { RTCIceTransportPolicy::All };
    RTCConfigurationBuilder::new().with_ice_servers(servers).with_ice_transport_policy(policy).build()
}

pub(super) fn setting_engine() -> SettingEngine {
    SettingEngineBuilder::new()
        // Names of multicast DNS would take another socket each, and nothing is looked up for the other side.
        .with_multicast_dns_mode(MulticastDnsMode::Disabled)
        .with_include_loopback_candidate(true)
        .with_discard_local_candidates_during_ice_restart(true)
        .with_ice_timeouts(Some(QUIET), Some(CONSENT - QUIET), Some(CHECKS))
        .with_sctp_max_message_size(SctpMaxMessageSize::Bounded(MAX_MESSAGE as u32))
        .build()
}
