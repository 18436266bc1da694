//! Settings of the library's connections.

use std::sync::Arc;
use std::time::Duration;

use rtc::ice::mdns::MulticastDnsMode;
use rtc::peer_connection::configuration::media_engine::MIME_TYPE_OPUS;
use rtc::peer_connection::configuration::setting_engine::{SctpMaxMessageSize, SettingEngine};
use rtc::peer_connection::configuration::{RTCConfiguration, RTCIceTransportPolicy};
use rtc::rtp_transceiver::rtp_sender::RTCRtpCodec;
use webrtc::peer_connection::{RTCConfigurationBuilder, RTCIceServer, SettingEngineBuilder};

use super::super::keys::{Provider, profiles};
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

/// Interval of connectivity checks, and the most of them for a pair of addresses: 5 s of checks. A pair is chosen one
/// interval after its first answer. The library's 200 ms would be most of a set-up.
const CHECKING: Duration = Duration::from_millis(20);
const MAX_CHECKS: u16 = 250;

/// Time for which a relayed path is not chosen, so that a direct one may be found first.
const DIRECT_FIRST: Duration = Duration::from_millis(100);

/// Returns the library's terms of a connection. A path is chosen as soon as it works: the library would wait 1 s for
/// one that a check has taught, 500 ms for one behind address translation, 2 s for a relayed one.
pub(super) fn setting_engine(settings: &PeerSettings, provider: Arc<Provider>) -> SettingEngine {
    let relayed = if settings.relay_only { Duration::ZERO } else { DIRECT_FIRST };
    SettingEngineBuilder::new()
        .with_crypto_provider(provider)
        .with_srtp_protection_profiles(profiles())
        // Names of multicast DNS would take another socket each, and nothing is looked up for the other side.
        .with_multicast_dns_mode(MulticastDnsMode::Disabled)
        .with_include_loopback_candidate(true)
        .with_discard_local_candidates_during_ice_restart(true)
        .with_ice_timeouts(Some(QUIET), Some(CONSENT - QUIET), Some(CHECKS))
        .with_ice_connection_attempts(Some(CHECKING), Some(MAX_CHECKS))
        .with_host_acceptance_min_wait(Some(Duration::ZERO))
        .with_prflx_acceptance_min_wait(Some(Duration::ZERO))
        .with_srflx_acceptance_min_wait(Some(Duration::ZERO))
        .with_relay_acceptance_min_wait(Some(relayed))
        .with_sctp_max_message_size(SctpMaxMessageSize::Bounded(MAX_MESSAGE as u32))
        .build()
}
