//! The engine on loopback and what its calls are made with, as tests start them.

use std::ops::RangeInclusive;
use std::sync::Arc;

use ringer::clock::Clock;
use ringer::config::{Behaviour, CODECS, Dtmf, Encryption, Media, OfferedIn, Sources, SrtpKeys, SymmetricRtp};
use ringer::engine::noise::NoiseBeds;
use ringer::engine::{Engine, EngineConfig, START_WITHIN, Speech};
use ringer::jobs::{Judging, Workshop};
use ringer::provider::LanguageModel;
use ringer::provider::fake::FakeSynthesizer;
use ringer::provider::opus;
use ringer::service::{PlacementSettings, Running, Service};
use ringer::transport::incoming::Incoming;
use ringer::transport::sip::names::Resolver;
use ringer::transport::sip::transfer::Forwarding;
use ringer_media::measure::ProbeTimes;
use tokio::sync::mpsc;

/// Returns an engine with one media thread and a SIP port of its own.
pub(crate) fn config(rtp_ports: RangeInclusive<u16>, max_calls: usize) -> EngineConfig {
    let sip: ringer::config::SipListen = "127.0.0.1:0".parse().expect("it is an address");
    EngineConfig {
        sip,
        tls: Default::default(),
        rtp_ports,
        advertise: None,
        shards: 1,
        max_calls,
        srtp: Encryption::Off,
        srtp_keys: SrtpKeys::default(),
        symmetric_rtp: SymmetricRtp::Off,
        offer: OfferedIn::Invite,
        session_interval_s: None,
        forwarding: Forwarding::default(),
        start_within: START_WITHIN,
        opus: opus::choose(&Media::default()),
        names: Resolver::default(),
    }
}

/// Returns the same, started, and the calls that come in.
pub(crate) async fn engine(
    rtp_ports: RangeInclusive<u16>,
    max_calls: usize,
    speech: Speech,
) -> (Engine, mpsc::Receiver<Incoming>) {
    let config = config(rtp_ports, max_calls);
    Engine::start(config, speech, Clock::Real).await.expect("loopback has a free port")
}

/// Returns a workshop for jobs: every voice is a hum, and nobody may call in.
pub(crate) fn workshop(
    service: Service,
    engine: Engine,
    running: Arc<Running>,
    model: Option<Arc<dyn LanguageModel>>,
) -> Workshop {
    let placement_settings = PlacementSettings {
        behaviour: Behaviour::default(),
        recognizer_grace_ms: 150,
        codecs: CODECS.to_vec(),
        dtmf: Dtmf::Rtp,
        model,
        synthesizer: Arc::new(FakeSynthesizer::default()),
        noises: Arc::new(NoiseBeds::new(None)),
        sounds: Arc::default(),
    };
    Workshop {
        service,
        engine,
        running,
        placement_settings: Arc::new(placement_settings),
        fillers: Arc::new([]),
        probe_times: ProbeTimes::default(),
        yield_times: Default::default(),
        start_rate_per_s: 100.0,
        inbound_allow: Sources::default(),
        ear: None,
        judging: Arc::new(Judging::new(16)),
    }
}
