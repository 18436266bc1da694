//! Calls that are signalled over TCP and TLS.

use std::net::SocketAddr;
use std::time::Duration;

use rcgen::{CertificateParams, KeyPair};
use ringer::config::SipListen;
use ringer::engine::{CallReport, CallUpdate, Engine, Speech};
use ringer::provider::fake::{FakeRecognizer, FakeSynthesizer};
use ringer::provider::tls::Roots;
use ringer::transport::incoming::Incoming;
use ringer::transport::sip::tls::{Identity, TlsSettings};
use ringer_media::call::{EndReason, RemoteKind};
use tempfile::TempDir;
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::desk::Agent;
use super::local;
use super::stage::Stage;
use crate::peers::Peer;

/// Time limit of one step on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

fn loopback(text: &str) -> SipListen {
    text.parse().expect("a test names good addresses")
}

/// Returns a side with a certificate for `name`, and settings of one that trusts it.
pub(crate) fn with_certificate(folder: &TempDir, name: &str) -> (TlsSettings, TlsSettings) {
    let path = |name: &str| folder.path().join(name);
    let mut params = CertificateParams::new(Vec::<String>::new()).expect("no names");
    params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    // OpenSSL takes a certificate for self-signed that has the name of its authority.
    params.distinguished_name.push(rcgen::DnType::CommonName, "authority of a test");
    let authority = rcgen::CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("signed");
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec![name.to_owned()]).expect("a good name");
    let certificate = params.signed_by(&key, &authority).expect("it is signed");
    std::fs::write(path("ca.pem"), authority.pem()).expect("written");
    std::fs::write(path("own.pem"), certificate.pem()).expect("written");
    std::fs::write(path("own.key"), key.serialize_pem()).expect("written");
    let identity = Identity::load(&path("own.pem"), &path("own.key")).expect("they belong together");
    let roots = Roots::from_file(&path("ca.pem")).expect("it is a certificate");
    let own = TlsSettings { identity: Some(identity), ..TlsSettings::default() };
    (own, TlsSettings { roots, ..TlsSettings::default() })
}

/// Returns an engine that is called.
async fn callee(sip: SipListen, tls: TlsSettings) -> (Engine, mpsc::Receiver<Incoming>) {
    let speech = Speech {
        synthesizer: std::sync::Arc::new(FakeSynthesizer::default()),
        recognizer: std::sync::Arc::new(FakeRecognizer::new(&[], 0)),
    };
    let config = ringer::engine::EngineConfig { sip, tls, ..local::config(20_000..=29_999, 10) };
    Engine::start(config, speech, ringer::clock::Clock::Real).await.expect("loopback has free ports")
}

/// Calls `target`, which is `engine`, and gives both reports, the caller's SIP log and the address that the call came
/// from.
async fn conversation(
    caller: &Stage,
    (engine, incoming): &mut (Engine, mpsc::Receiver<Incoming>),
    target: &str,
) -> ([CallReport; 2], String, SocketAddr) {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut placement = caller.placement(target, "Hello.");
    placement.folder = Some(folder.path().join("call"));
    placement.spec.limits.max_duration_ms = Some(500);
    let answering = async {
        let call = timeout(LIMIT, incoming.recv()).await.expect("it comes in").expect("the engine runs");
        let source = call.source;
        let terms = ringer::engine::Placement {
            destination: ringer::engine::Destination::default(),
            ..caller.placement("", "Good day.")
        };
        let mut handle = engine.answer(call, terms).await.expect("a place is free");
        loop {
            match timeout(LIMIT, handle.news.recv()).await.expect("it ends") {
                Some(CallUpdate::Ended(report)) => return (*report, source),
                Some(_) => {}
                None => panic!("the call was lost"),
            }
        }
    };
    let (report, (answered, source)) = tokio::join!(caller.call(placement), answering);
    let log = std::fs::read_to_string(folder.path().join("call/sip.log")).expect("it was written");
    ([report.expect("it was placed"), answered], log, source)
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_share_one_connection_of_tcp_or_tls() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    for host in ["127.0.0.1", "[::1]"] {
        let (own, trusting) = with_certificate(&folder, host.trim_matches(['[', ']']));
        let mut callee = callee(loopback(&format!("udp:{host}:0,tcp:{host}:0,tls:{host}:0")), own).await;
        let caller = Stage::heard_at(loopback(&format!("udp:{host}:0,tcp:{host}:0")), trusting).await;
        let heard = callee.0.sip_addresses();
        let (tcp, tls) = (heard.tcp.expect("it listens"), heard.tls.expect("it listens"));
        for (name, address, target) in [
            ("TCP", tcp, format!("sip:bob@{tcp};transport=tcp")),
            ("TLS", tls, format!("sip:bob@{tls};transport=tls")),
            ("TLS", tls, format!("sips:bob@{tls}")),
        ] {
            let mut sources = Vec::new();
            for _ in 0..2 {
                let (reports, log, source) = conversation(&caller, &mut callee, &target).await;
                for report in reports {
                    assert!(report.ending.connected, "{:?}\n{log}", report.ending);
                    assert_eq!(report.peer.transport(), format!("SIP/{name}, RTP/AVP"), "{log}");
                }
                let bye = log.split("\n\n").find(|message| message.contains("\n BYE ")).expect("a BYE");
                assert!(bye.contains(&format!(" sent to {name} {address} at ")), "{log}");
                assert!(log.contains(&format!(" received from {name} {address} at ")), "{log}");
                assert!(log.contains(&format!("Via: SIP/2.0/{name} ")), "{log}");
                sources.push(source);
            }
            assert_eq!(sources[0], sources[1], "the second call goes by the connection of the first");
        }
        callee.0.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_cannot_be_delivered_ends_with_the_cause() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let (own, trusting) = with_certificate(&folder, "other.example");
    let callee = callee(loopback("tls:127.0.0.1:0"), own).await;
    let caller = Stage::heard_at(loopback("127.0.0.1:0"), trusting).await;
    let tls = callee.0.sip_address();
    // Nobody answers there, and yet there is a connection.
    let settings = TlsSettings { insecure_hosts: vec![tls.to_string()], ..TlsSettings::default() };
    let careless = Stage::heard_at(loopback("127.0.0.1:0"), settings).await;
    let mut placement = careless.placement(&format!("sips:bob@{tls}"), "Hello.");
    placement.spec.limits.ringing_ms = 500;
    let report = careless.call(placement).await.expect("it was placed");
    assert_eq!(report.warnings, [format!("the certificate of TLS {tls} was not verified (tls.insecure_hosts)")]);
    assert_eq!(report.ending.reason, EndReason::NoAnswer);
    let closed = std::net::TcpListener::bind("127.0.0.1:0").and_then(|bound| bound.local_addr()).expect("one is free");
    let resets = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
    let reset = resets.local_addr().expect("it is bound");
    let resetting = async {
        // A connection that breaks before anything was heard may be tried once more.
        loop {
            let Ok((mut socket, _)) = resets.accept().await else { return };
            let _ = socket.read_exact(&mut [0; 100]).await;
            let _ = socket.set_zero_linger();
        }
    };
    let calling = async {
        for (target, expect) in [
            (format!("sips:bob@{tls}"), "its certificate is not for 127.0.0.1, but for"),
            (format!("sip:bob@{closed};transport=tcp"), "cannot be connected to: Connection refused"),
            (format!("sip:bob@{reset};transport=tcp"), "was lost: Connection reset"),
        ] {
            let report = caller.call(caller.placement(&target, "Hello.")).await.expect("it was placed");
            assert_eq!(report.ending.reason, EndReason::DialFailed, "{target}");
            let end = report.ending.remote.expect("it says why");
            assert_eq!(end.kind, RemoteKind::Unreachable, "{target}");
            assert!(end.text.contains(expect), "{target}: {}", end.text);
        }
    };
    tokio::select! {
        () = calling => {}
        () = resetting => panic!("the listener is open"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_is_called_over_tcp() {
    let (stage, peer) = (
        Stage::heard_at(loopback("udp:127.0.0.1:0,tcp:127.0.0.1:0"), TlsSettings::default()).await,
        Peer::answering_over_tcp(2),
    );
    for _ in 0..2 {
        let mut placement = stage.placement(&format!("sip:bob@{};transport=tcp", peer.sip), "Hello there.");
        placement.spec.limits.max_duration_ms = Some(1000);
        let report = stage.call(placement).await.expect("it was placed");
        assert_eq!(report.ending.reason, EndReason::MaxDuration, "{:?}", report.ending);
        assert_eq!(report.peer.transport(), "SIP/TCP, RTP/AVP");
    }
    peer.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_calls_the_agent_over_tcp() {
    let agent = Agent::heard_at("tcp:127.0.0.1:0").await;
    assert!(agent.address.ends_with(";transport=tcp"), "{}", agent.address);
    let host = agent.address.rsplit('@').next().and_then(|rest| rest.split(';').next());
    let to = host.and_then(|host| host.parse().ok()).expect("an address with a port");
    let media = std::net::UdpSocket::bind("127.0.0.1:0").expect("a port is free");
    media.set_read_timeout(Some(LIMIT)).expect("the time is not zero");
    let caller = Peer::calling_over_tcp("caller_without_offer", to, media.local_addr().expect("it is bound").port());
    let mut packet = [0; 1500];
    let length = media.recv(&mut packet).expect("RTP comes");
    assert_eq!((length, packet[0] >> 6, packet[1] & 0x7f), (172, 2, 0), "20 ms of PCMU in RTP");
    assert_eq!(caller.end().trim(), "answered");
    assert!(!agent.log().await.is_empty(), "the agent took the call");
}
