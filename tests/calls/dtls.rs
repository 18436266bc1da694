//! Secure RTP whose keys come from DTLS handshakes: with another engine, with a softphone, and with sides that mean
//! harm.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use ringer::config::{Encryption, SrtpKeys};
use ringer::transport::dtls::{Channel, Expected, Identity, News, is_dtls};
use ringer_media::call::{EndReason, Opening, RemoteKind};
use ringer_media::codec::Codec;
use ringer_media::level::rms_dbov;
use ringer_sip::sdp::{self, Dtls, Fingerprint, Offer, Session, Setup};

use super::peers::{share_at, talks};
use super::stage::{Stage, channels};
use crate::peers::{Peer, TONE_HZ};

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(60);

const WORDS: &str = "Hello, this is a sentence that takes a while.";

/// The profile of keys that a handshake brought.
const PROFILE: &str = "SIP/UDP, UDP/TLS/RTP/SAVP";

/// A softphone that is called: words and a tone go both ways; both ports have a handshake, since it does not share one.
#[tokio::test(flavor = "multi_thread")]
async fn a_softphone_shakes_hands_when_it_is_called() {
    let (stage, _) = Stage::secure(Encryption::Required, SrtpKeys::Dtls).await;
    let log = talks(stage, "UDP/TLS/RTP/SAVP", Codec::Pcmu, Peer::secure_baresip("dtls_srtp")).await;
    let (offer, answer) = log.split_once("received from").expect("there is an answer");
    assert_eq!((offer.matches("a=fingerprint:sha-256 ").count(), offer.matches("a=crypto:").count()), (1, 0), "{log}");
    assert!(offer.contains("a=setup:actpass") && answer.contains("a=setup:active"), "{log}");
}

/// A softphone that calls, by either kind of keys.
#[tokio::test(flavor = "multi_thread")]
async fn a_softphone_shakes_hands_when_it_calls() {
    for (how, profile) in [("dtls_srtp", PROFILE), ("srtp-mand", "SIP/UDP, RTP/SAVP")] {
        let (stage, mut calls) = Stage::secure(Encryption::Required, SrtpKeys::Any).await;
        let peer = Peer::calling_securely(how, stage.engine.sip_address());
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        let report = stage.answer(&mut calls, folder.path(), WORDS, 4000).await;
        assert_eq!(report.ending.reason, EndReason::MaxDuration, "{how}: {}", peer.output());
        assert_eq!(report.peer.transport(), profile, "{how}");
        let [sent, heard] = channels(report.recording.as_deref().expect("it was recorded"));
        // Handshakes of a busy machine take their time from the call's four seconds.
        let steady = &heard[24_000..heard.len().min(56_000)];
        assert!(share_at(steady, f64::from(TONE_HZ)) > 0.95, "{how}: the tone is what is heard");
        assert!(sent.iter().any(|sample| sample.abs() > 1000), "{how}: something was said");
        peer.wait_for("terminated");
        let theirs = std::fs::read(peer.heard_file().expect("baresip keeps what it heard")).expect("it is readable");
        let said = ringer_media::clip::Clip::from_wav(&theirs).expect("it is a WAV file").to_16k();
        let first = said.iter().position(|sample| sample.abs() > 1000).expect("baresip heard the words");
        let hum = share_at(&said[first + 1600..first + 9600], f64::from(stage.synthesizer.tone_hz));
        assert!(hum > 0.95, "{how}: the hum is what baresip heard: {hum}");
    }
}

/// A side in the test's own hands, which answers one call.
struct Agent {
    sip: UdpSocket,
    media: UdpSocket,
    identity: Identity,
    /// The engine's, once it has called.
    theirs: Option<(SocketAddr, Vec<Fingerprint>)>,
    /// RTP that came so far.
    rtp: usize,
}

impl Agent {
    fn new() -> Agent {
        let bound = || UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
        let (sip, media) = (bound(), bound());
        sip.set_read_timeout(Some(PATIENCE)).expect("it can be set");
        media.set_read_timeout(Some(Duration::from_millis(5))).expect("it can be set");
        let identity = Identity::new().expect("the system gives randomness");
        Agent { sip, media, identity, theirs: None, rtp: 0 }
    }

    fn target(&self) -> String {
        format!("sip:bob@{}", self.sip.local_addr().expect("it is bound"))
    }

    /// Answers the INVITE that comes, with this part in the handshake and this certificate.
    fn answer(&mut self, setup: Setup, print: Fingerprint) {
        let mut bytes = [0; 8192];
        let (len, from) = self.sip.recv_from(&mut bytes).expect("an INVITE comes");
        let invite = String::from_utf8_lossy(&bytes[..len]).into_owned();
        let (head, offer) = invite.split_once("\r\n\r\n").expect("it has an offer");
        let session = Session::parse(offer).expect("it is SDP");
        let offered = Offer::from_session(&session).expect("it has audio");
        let dtls = offered.dtls.clone().expect("it has a fingerprint");
        self.theirs = Some((offered.rtp, dtls.fingerprints));
        let own = Offer {
            dtls: Some(Dtls { fingerprints: vec![print], setup, tls_id: None }),
            rtcp_mux: true,
            crypto_required: true,
            ..Offer::new(self.media.local_addr().expect("it is bound"), vec![sdp::Codec::pcmu()])
        };
        let answer = own.session().to_string();
        let fields = ["via", "from", "call-id", "cseq"].map(|name| {
            let of_name = |line: &&str| line.to_ascii_lowercase().starts_with(&format!("{name}:"));
            head.lines().find(of_name).expect("every request has it").to_owned()
        });
        let to = head.lines().find(|line| line.starts_with("To:")).expect("every request has it");
        let response = format!(
            "SIP/2.0 200 OK\r\n{}\r\n{to};tag=7\r\nContact: <{}>\r\nContent-Type: application/sdp\r\nContent-Length: {}\r\n\r\n{answer}",
            fields.join("\r\n"),
            self.target(),
            answer.len()
        );
        self.sip.send_to(response.as_bytes(), from).expect("loopback takes it");
    }

    /// Returns the client's side of a handshake by this identity.
    fn client(&self, identity: &Identity, now: Instant) -> Channel {
        let fingerprints = self.theirs.clone().expect("it was called").1;
        let handshake = sdp::Handshake { fingerprints, active: true, tls_id: None };
        Channel::new(identity, Expected::from(&handshake), now)
    }

    /// Carries a handshake on until `is_over`; true when it brought keys.
    fn shake(&mut self, channel: &mut Channel, mut is_over: impl FnMut(&Channel) -> bool) -> bool {
        let (to, _) = self.theirs.clone().expect("it was called");
        let (mut bytes, mut keyed, began) = ([0; 2048], false, now());
        while !keyed && !is_over(channel) && now().duration_since(began) < PATIENCE {
            while let Some(news) = channel.poll() {
                match news {
                    News::Send(datagram) => drop(self.media.send_to(&datagram, to)),
                    News::Keys(_) => keyed = true,
                }
            }
            match self.media.recv_from(&mut bytes) {
                Ok((len, _)) if is_dtls(&bytes[..len]) => channel.receive(&bytes[..len], now()),
                Ok(_) => self.rtp += 1,
                Err(_) => {}
            }
            channel.wake(now());
        }
        keyed
    }

    /// True when RTP comes.
    fn shake_until_rtp(&mut self, channel: &mut Channel) -> bool {
        let (mut bytes, began) = ([0; 2048], now());
        while self.rtp == 0 && now().duration_since(began) < PATIENCE {
            match self.media.recv_from(&mut bytes) {
                Ok((len, _)) if is_dtls(&bytes[..len]) => channel.receive(&bytes[..len], now()),
                Ok(_) => self.rtp += 1,
                Err(_) => {}
            }
        }
        self.rtp > 0
    }
}

#[expect(clippy::disallowed_methods, reason = "the other side has a clock of its own")]
fn now() -> Instant {
    Instant::now()
}

/// Forged handshakes from the agreed address come first; the real one has its turn, and nothing leaves before it.
#[tokio::test(flavor = "multi_thread")]
async fn forged_handshakes_do_not_stand_in_the_way() {
    let (stage, _) = Stage::secure(Encryption::Required, SrtpKeys::Dtls).await;
    let mut agent = Agent::new();
    let mut placement = stage.placement(&agent.target(), WORDS);
    placement.spec.opening = Opening::Say(WORDS.into());
    placement.spec.limits.max_duration_ms = Some(4000);
    let other_side = move || {
        agent.answer(Setup::Active, agent.identity.fingerprint());
        let forger = Identity::new().expect("the system gives randomness");
        let to = agent.theirs.clone().expect("it was called").0;
        for _ in 0..5 {
            let mut blind = agent.client(&forger, now());
            while let Some(News::Send(hello)) = blind.poll() {
                agent.media.send_to(&hello, to).expect("loopback takes it");
            }
        }
        let mut wrong = agent.client(&forger, now());
        let forged = agent.shake(&mut wrong, |channel| channel.fault().is_some());
        let before = agent.rtp;
        let identity = agent.identity.clone();
        let mut right = agent.client(&identity, now());
        let keyed = agent.shake(&mut right, |_| false);
        let at_keys = agent.rtp;
        // Their own handshake is done some time later, and then they speak.
        let spoken = agent.shake_until_rtp(&mut right);
        (forged, before, keyed, at_keys, spoken)
    };
    let (report, other) = tokio::join!(stage.call(placement), tokio::task::spawn_blocking(other_side));
    let (forged, before, keyed, at_keys, spoken) = other.expect("it does not fail");
    assert_eq!((forged, before, keyed, spoken), (false, 0, true, true));
    // The engine has its keys a little earlier: its first packet may overtake the end of its handshake.
    assert!(at_keys <= 3, "{at_keys} packets");
    let report = report.expect("it was placed");
    assert_eq!((report.ending.reason, report.peer.transport().as_str()), (EndReason::MaxDuration, PROFILE));
}

/// A certificate that SDP does not name, and a side that never begins: the call ends, and it says why.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_keys_ends_and_says_why() {
    for (shakes, expect) in [
        (true, "the DTLS certificate of the media does not match the fingerprint in SDP"),
        (false, "no DTLS handshake of the media came about within 10 s"),
    ] {
        let (stage, _) = Stage::secure(Encryption::Optional, SrtpKeys::Sdes).await;
        let mut agent = Agent::new();
        let mut handle = stage.engine.place(stage.placement(&agent.target(), WORDS)).await.expect("it was placed");
        let other_side = move || {
            let other = Identity::new().expect("the system gives randomness");
            agent.answer(Setup::Active, other.fingerprint());
            if shakes {
                let identity = agent.identity.clone();
                let mut channel = agent.client(&identity, now());
                assert!(!agent.shake(&mut channel, |channel| channel.fault().is_some()), "it brings no keys");
            }
            (agent.rtp, agent)
        };
        let (rtp, _agent) = tokio::task::spawn_blocking(other_side).await.expect("it does not fail");
        assert_eq!(rtp, 0, "nothing leaves without keys");
        let mut connected = false;
        let report = loop {
            match tokio::time::timeout(PATIENCE, handle.news.recv()).await.expect("it ends").expect("it ends") {
                ringer::engine::CallUpdate::Ended(report) => break report,
                ringer::engine::CallUpdate::Connected(_) => connected = true,
                _ => {}
            }
        };
        assert!(!connected, "there was no conversation");
        let remote = report.ending.remote.expect("it says why");
        assert_eq!((remote.kind, remote.text.as_str()), (RemoteKind::NoKeys, expect));
        assert_eq!(report.ending.quality.received_packets, 0);
    }
}

/// Tests of what two engines hear of each other at every moment.
mod alone {
    use super::*;

    /// Two engines: both hear the other's hum, and recordings begin at the answer.
    #[tokio::test(flavor = "multi_thread")]
    async fn two_engines_shake_hands_and_hear_each_other() {
        for (caller, answerer) in [
            ((Encryption::Required, SrtpKeys::Dtls), (Encryption::Optional, SrtpKeys::Sdes)),
            ((Encryption::Optional, SrtpKeys::Sdes), (Encryption::Required, SrtpKeys::Dtls)),
            ((Encryption::Required, SrtpKeys::Any), (Encryption::Required, SrtpKeys::Any)),
        ] {
            let (near, _) = Stage::secure(caller.0, caller.1).await;
            let (far, mut calls) = Stage::secure(answerer.0, answerer.1).await;
            let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
            let theirs = tempfile::tempdir().expect("the folder for temporary files is writable");
            let mut placement = near.placement(&format!("sip:bob@{}", far.engine.sip_address()), WORDS);
            placement.folder = Some(folder.path().into());
            placement.captured = true;
            placement.spec.opening = Opening::Say(WORDS.into());
            placement.spec.limits.max_duration_ms = Some(3000);
            let (here, there) =
                tokio::join!(near.call(placement), far.answer(&mut calls, theirs.path(), WORDS, 10_000));
            let here = here.expect("it was placed");
            let log = std::fs::read_to_string(folder.path().join("sip.log")).expect("it was written");
            assert_eq!(
                (here.ending.reason, there.ending.reason),
                (EndReason::MaxDuration, EndReason::AgentHangup),
                "{log}"
            );
            assert_eq!(log.matches("a=rtcp-mux").count(), 2, "one port is enough: {log}");
            for report in [&here, &there] {
                assert_eq!(report.peer.transport(), PROFILE, "{log}");
                assert_eq!((report.ending.quality.lost_packets, report.ending.quality.unprotected), (0, 0), "{log}");
                let [sent, heard] = channels(report.recording.as_deref().expect("it was recorded"));
                assert_eq!(sent.len() as i64, report.ending.samples);
                let hum = f64::from(near.synthesizer.tone_hz);
                let loud: Vec<i16> =
                    heard.chunks(1600).filter(|piece| rms_dbov(piece) > -40.0).flatten().copied().collect();
                assert!(loud.len() > 8000 && share_at(&loud[..8000], hum) > 0.9, "{} loud samples", loud.len());
            }
            // The capture has what crossed the wire: the handshake, and nothing of RTP before its end.
            let capture = std::fs::read(folder.path().join(ringer::engine::CAPTURED)).expect("it was written");
            let hello = capture.windows(3).position(|bytes| bytes == [22, 0xfe, 0xfd] || bytes == [22, 0xfe, 0xff]);
            assert!(hello.is_some(), "the handshake is captured");
        }
    }
}
