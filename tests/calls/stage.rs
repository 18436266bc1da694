//! An engine for a test, with speech that needs no programs, and a call on it from beginning to end.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use ringer::clock::Clock;
use ringer::config::{Encryption, OfferedIn, Refer, SipListen, SrtpKeys, SymmetricRtp, Targets};
use ringer::engine::{
    Answering, CallHandle, CallReport, CallUpdate, Destination, Engine, EngineConfig, PlaceError, Placement, SipDial,
    Speech,
};
use ringer::human::{self, Profile};
use ringer::provider::fake::{FakeRecognizer, FakeSynthesizer};
use ringer::provider::{Synthesizer, Voice, VoiceWanted};
use ringer::transport::incoming::Incoming;
use ringer::transport::sip::tls::TlsSettings;
use ringer::transport::sip::transfer::Forwarding;
use ringer_media::call::{CallSpec, Opening};
use ringer_media::clip::Clip;
use ringer_media::codec::Codec;
use ringer_media::seed::Seed;
use tokio::sync::mpsc;

use super::local;

/// Time limit of one call on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Ports of media, away from those of the peers.
pub(crate) const RTP_PORTS: std::ops::RangeInclusive<u16> = 20_000..=29_999;

/// An engine on loopback.
pub(crate) struct Stage {
    pub engine: Engine,
    /// Synthesizer that makes a hum of every text.
    pub synthesizer: Arc<FakeSynthesizer>,
}

impl Stage {
    pub(crate) async fn new() -> Stage {
        Stage::with(Encryption::Off).await
    }

    /// Returns the same with secure RTP, or without.
    pub(crate) async fn with(srtp: Encryption) -> Stage {
        Stage::of(EngineConfig { srtp, ..local::config(RTP_PORTS, 10) }, Clock::Real).await
    }

    /// Returns the same where RTP may come from these other addresses than was agreed on.
    pub(crate) async fn with_symmetric_rtp(symmetric_rtp: SymmetricRtp) -> Stage {
        Stage::of(EngineConfig { symmetric_rtp, ..local::config(RTP_PORTS, 10) }, Clock::Real).await
    }

    /// Returns the same where the other side makes the offer, and a session interval of half an hour is asked for.
    pub(crate) async fn without_offer() -> Stage {
        let config =
            EngineConfig { offer: OfferedIn::Answer, session_interval_s: Some(1800), ..local::config(RTP_PORTS, 10) };
        Stage::of(config, Clock::Real).await
    }

    /// Returns the same where the other side may send calls on to these hosts and numbers, by redirects and by
    /// transfers.
    pub(crate) async fn sending_on_to(targets: &[&str]) -> Stage {
        let targets: Vec<String> = targets.iter().map(|&target| target.to_owned()).collect();
        let targets = Targets::parse(&targets).expect("they are targets");
        let forwarding = Forwarding { refer: Refer::Follow, refer_targets: targets.clone(), redirects: targets };
        Stage::of(EngineConfig { forwarding, ..local::config(RTP_PORTS, 10) }, Clock::Real).await
    }

    /// Returns the same that hears SIP there, and takes RTP from another port than was agreed on.
    pub(crate) async fn at(sip: SipListen) -> Stage {
        Stage::of(EngineConfig { sip, symmetric_rtp: SymmetricRtp::On, ..local::config(RTP_PORTS, 10) }, Clock::Real)
            .await
    }

    /// Returns the same by this wall clock.
    pub(crate) async fn on(clock: Clock) -> Stage {
        Stage::of(local::config(RTP_PORTS, 10), clock).await
    }

    /// Returns the same that hears SIP there, too, by this certificate and these authorities.
    pub(crate) async fn heard_at(sip: SipListen, tls: TlsSettings) -> Stage {
        Stage::of(EngineConfig { sip, tls, ..local::config(RTP_PORTS, 10) }, Clock::Real).await
    }

    /// Returns the same with secure RTP whose keys come from `srtp_keys`, and the calls that come in.
    pub(crate) async fn secure(srtp: Encryption, srtp_keys: SrtpKeys) -> (Stage, mpsc::Receiver<Incoming>) {
        Stage::with_calls(EngineConfig { srtp, srtp_keys, ..local::config(RTP_PORTS, 10) }, Clock::Real).await
    }

    async fn of(config: EngineConfig, clock: Clock) -> Stage {
        Stage::with_calls(config, clock).await.0
    }

    pub(crate) async fn with_calls(config: EngineConfig, clock: Clock) -> (Stage, mpsc::Receiver<Incoming>) {
        let synthesizer = Arc::new(FakeSynthesizer::default());
        let recognizer = Arc::new(FakeRecognizer::new(&[], 0));
        let speech = Speech { synthesizer: synthesizer.clone(), recognizer };
        let (engine, calls) = Engine::start(config, speech, clock).await.expect("loopback has a free port");
        (Stage { engine, synthesizer }, calls)
    }

    /// Returns a call to `target` with PCMU that says `intent`.
    pub(crate) fn placement(&self, target: &str, intent: &str) -> Placement {
        let profile = Profile { intent: intent.into(), ..Profile::default() };
        let spec = CallSpec { seed: Seed(7), ..CallSpec::default() };
        let fluency = profile.fluency(spec.seed);
        Placement {
            id: "1".into(),
            destination: Destination::Sip(SipDial {
                target: target.into(),
                codecs: vec![Codec::Pcmu],
                ..SipDial::default()
            }),
            fluency,
            language: "en".into(),
            mind: human::mind(profile, None, spec.seed),
            voice: Some(self.voice()),
            follows: None,
            keyterms: Vec::new(),
            folder: None,
            captured: false,
            spec,
        }
    }

    pub(crate) fn voice(&self) -> Voice {
        let wanted = VoiceWanted { seed: Seed(7), ..VoiceWanted::of("en") };
        self.synthesizer.voice(&wanted).expect("the fake has a voice for everybody")
    }

    /// Places the call and waits for its end.
    pub(crate) async fn call(&self, placement: Placement) -> Result<CallReport, PlaceError> {
        Ok(wait_for_end(self.engine.place(placement).await?).await)
    }

    /// Answers the next call that comes in with `intent`, keeps it in `folder`, and waits for its end.
    pub(crate) async fn answer(
        &self,
        calls: &mut mpsc::Receiver<Incoming>,
        folder: &Path,
        intent: &str,
        max_ms: u32,
    ) -> CallReport {
        self.answer_with(calls, folder, intent, max_ms, Codec::Pcmu).await
    }

    /// Returns the same with this codec.
    pub(crate) async fn answer_with(
        &self,
        calls: &mut mpsc::Receiver<Incoming>,
        folder: &Path,
        intent: &str,
        max_ms: u32,
        codec: Codec,
    ) -> CallReport {
        let call = tokio::time::timeout(PATIENCE, calls.recv()).await.expect("a call comes").expect("the engine runs");
        let mut placement = self.placement("", intent);
        placement.destination = Destination::Incoming(Answering { codecs: vec![codec], ..Answering::default() });
        placement.spec.opening = Opening::Say(intent.into());
        placement.spec.limits.max_duration_ms = Some(max_ms);
        placement.folder = Some(folder.into());
        wait_for_end(self.engine.answer(call, placement).await.expect("it is answered")).await
    }
}

/// Waits for the end of a call.
pub(crate) async fn wait_for_end(mut handle: CallHandle) -> CallReport {
    let ended = async {
        loop {
            match handle.news.recv().await {
                Some(CallUpdate::Ended(report)) => return *report,
                Some(_) => {}
                None => panic!("the call was lost"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, ended).await.expect("the call ends")
}

/// Returns the names of a call's events in order.
pub(crate) fn names(report: &CallReport) -> Vec<&str> {
    report.timeline.iter().map(|entry| entry.name()).collect()
}

/// Returns both channels of a recording.
pub(crate) fn channels(path: &Path) -> [Vec<i16>; 2] {
    let bytes = std::fs::read(path).expect("the recording was written");
    let data = ringer_media::recording::WAV_HEADER;
    let samples: Vec<i16> = bytes[data..].chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
    assert!(Clip::from_wav(&bytes).is_ok(), "the header is readable");
    [0, 1].map(|channel| samples.iter().skip(channel).step_by(2).copied().collect())
}
