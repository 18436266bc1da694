//! Calls to hosts that only name servers know.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use ringer_base::clock::Clock;
use ringer_base::config::{Encryption, OfferedIn, SipListen, SrtpKeys, SymmetricRtp};
use ringer_base::guard::Guard;
use ringer_human::Profile;
use ringer_media::call::CallSpec;
use ringer_media::codec::Codec;
use ringer_media::codec::opus::Opus;
use ringer_media::seed::Seed;
use ringer_provider::fake::{FakeRecognizer, FakeSynthesizer};
use ringer_provider::{Synthesizer, VoiceWanted};
use ringer_transport::sip::names::Resolver;
use ringer_transport::sip::names::testing::NameServer;
use ringer_transport::sip::transfer::Forwarding;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};
use tokio::time::timeout;

use super::{
    CallReport, CallUpdate, Destination, Engine, EngineConfig, PlaceError, Placement, START_WITHIN, SipDial, Speech,
};

/// Sockets of most calls here.
const UDP: &str = "127.0.0.1:0";
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns settings of an engine of one media thread with these SIP sockets, which looks names up by `names`.
pub(super) fn config(listen: &str, names: Resolver) -> EngineConfig {
    EngineConfig {
        sip: listen.parse::<SipListen>().expect("an address"),
        tls: Default::default(),
        rtp_ports: 20_000..=29_999,
        advertise: None,
        shards: 1,
        max_calls: 10,
        srtp: Encryption::Off,
        srtp_keys: SrtpKeys::default(),
        symmetric_rtp: SymmetricRtp::Off,
        offer: OfferedIn::Invite,
        session_interval_s: None,
        forwarding: Forwarding::default(),
        start_within: START_WITHIN,
        opus: Opus::default(),
        names,
    }
}

/// Returns an engine with these SIP sockets that asks `server`, and what speaks in its calls.
async fn engine(listen: &str, server: &NameServer) -> (Engine, Arc<FakeSynthesizer>) {
    let config = config(listen, Resolver::new(&[server.address]));
    let synthesizer = Arc::new(FakeSynthesizer::default());
    let speech = Speech { synthesizer: synthesizer.clone(), recognizer: Arc::new(FakeRecognizer::new(&[], 0)) };
    let (engine, _) = Engine::start(config, speech, Clock::Real).await.expect("loopback has a free port");
    (engine, synthesizer)
}

/// Returns a call to `target` with a hum for a voice.
pub(super) fn placement(target: &str, guard: Option<Guard>, synthesizer: &dyn Synthesizer) -> Placement {
    let profile = Profile { intent: "Hello.".into(), ..Profile::default() };
    let spec = CallSpec { seed: Seed(7), ..CallSpec::default() };
    let voice = synthesizer.voice(&VoiceWanted { seed: spec.seed, ..VoiceWanted::of("en") });
    Placement {
        id: "1".into(),
        destination: Destination::Sip(SipDial {
            target: target.into(),
            codecs: vec![Codec::Pcmu],
            guard,
            ..SipDial::default()
        }),
        fluency: profile.fluency(spec.seed),
        language: "en".into(),
        mind: ringer_human::mind(profile, None, spec.seed),
        voice: Some(voice.expect("the fake has a voice for everybody")),
        follows: None,
        keyterms: Vec::new(),
        folder: None,
        captured: false,
        spec,
    }
}

/// Calls `target` from the sockets `listen`; returns the report when the call is over.
async fn call(target: &str, listen: &str, server: &NameServer, guard: Option<Guard>) -> Result<CallReport, PlaceError> {
    let (engine, synthesizer) = engine(listen, server).await;
    let placement = placement(target, guard, &*synthesizer);
    let mut handle = engine.place(placement).await?;
    let ended = async {
        loop {
            match handle.news.recv().await {
                Some(CallUpdate::Ended(report)) => return *report,
                Some(_) => {}
                None => panic!("the call was lost"),
            }
        }
    };
    let report = timeout(PATIENCE, ended).await.expect("the call ends");
    engine.stop().await;
    Ok(report)
}

/// Waits for a request of this method at `socket`.
async fn request(socket: &UdpSocket, method: &str) -> (String, SocketAddr) {
    let mut buffer = vec![0; 65_535];
    loop {
        let (length, from) =
            timeout(PATIENCE, socket.recv_from(&mut buffer)).await.expect("it comes").expect("it reads");
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        if text.starts_with(method) {
            return (text, from);
        }
    }
}

/// Answers an INVITE with a final response of this status.
async fn answer(socket: &UdpSocket, invite: &(String, SocketAddr), status: &str) {
    socket.send_to(refusal(&invite.0, status).as_bytes(), invite.1).await.expect("it sends");
}

/// Returns the final response of this status to an INVITE.
fn refusal(invite: &str, status: &str) -> String {
    let copied = ["via:", "from:", "call-id:", "cseq:"];
    let fields = invite.lines().filter(|line| copied.iter().any(|name| line.to_ascii_lowercase().starts_with(name)));
    let fields: String = fields.map(|line| format!("{line}\r\n")).collect();
    let to = invite.lines().find(|line| line.to_ascii_lowercase().starts_with("to:")).expect("a To");
    format!("SIP/2.0 {status}\r\n{fields}{to};tag=far\r\nContent-Length: 0\r\n\r\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_finds_its_server_by_naptr_srv_and_address() {
    let far = UdpSocket::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let port = far.local_addr().expect("it is bound").port();
    let zone = format!(
        "test.example. NAPTR 10 10 s SIP+D2U _sip._udp.test.example.
        _sip._udp.test.example. SRV 10 10 {port} server.test.example.
        server.test.example. A 127.0.0.1"
    );
    let server = NameServer::start(&zone).await;
    let far_side = async {
        let invite = request(&far, "INVITE").await;
        assert!(invite.0.starts_with("INVITE sip:agent@test.example SIP/2.0\r\n"), "{}", invite.0);
        answer(&far, &invite, "486 Busy Here").await;
        request(&far, "ACK").await
    };
    let (report, _) = tokio::join!(call("sip:agent@test.example", UDP, &server, None), far_side);
    let remote = report.expect("it is placed").ending.remote.expect("the other side ended it");
    assert_eq!((remote.sip_code(), remote.text.as_str()), (Some(486), "Busy Here"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_goes_on_to_the_next_server_and_transport() {
    let far = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let port = far.local_addr().expect("it is bound").port();
    let closed = UdpSocket::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let dead = closed.local_addr().expect("it is bound").port();
    drop(closed);
    let zone = format!(
        "_sip._udp.test.example. SRV 10 10 {dead} server.test.example.
        _sip._tcp.test.example. SRV 10 10 {port} server.test.example.
        server.test.example. A 127.0.0.1"
    );
    let server = NameServer::start(&zone).await;
    let far_side = async {
        let (mut stream, _) = timeout(PATIENCE, far.accept()).await.expect("it comes").expect("a connection");
        let mut text = String::new();
        while !text.contains("\r\n\r\n") {
            let mut buffer = vec![0; 65_535];
            let length = timeout(PATIENCE, stream.read(&mut buffer)).await.expect("it comes").expect("it reads");
            assert!(length > 0, "closed after {text:?}");
            text += &String::from_utf8_lossy(&buffer[..length]);
        }
        assert!(text.starts_with("INVITE sip:agent@test.example SIP/2.0\r\n"), "{text}");
        stream.write_all(refusal(&text, "486 Busy Here").as_bytes()).await.expect("it writes");
        stream
    };
    let (report, _stream) = tokio::join!(call("sip:agent@test.example", UDP, &server, None), far_side);
    let remote = report.expect("it is placed").ending.remote.expect("the other side ended it");
    assert_eq!(remote.sip_code(), Some(486));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_finds_none_says_why() {
    let zone = "
        six.example. AAAA ::1
        inside.example. A 10.0.0.1
        broken.example. A SERVFAIL
        udp.example. NAPTR 1 1 s SIP+D2U _sip._udp.udp.example.";
    let server = NameServer::start(zone).await;
    for (target, listen, expect) in [
        ("sip:agent@none.example", UDP, "the host of \"sip:agent@none.example\" has no address"),
        (
            "sip:agent@six.example",
            UDP,
            "the host of \"sip:agent@six.example\" has no IPv4 address, and the SIP socket can send to IPv4 addresses alone",
        ),
        (
            "sip:agent@inside.example",
            UDP,
            "the host of \"sip:agent@inside.example\" points to an address that is not allowed",
        ),
        (
            "sip:agent@broken.example",
            UDP,
            "the host of \"sip:agent@broken.example\" could not be looked up: the name servers answered with an error \
             (Server Failure)",
        ),
        (
            "sip:agent@udp.example",
            "tcp:127.0.0.1:0",
            "\"sip:agent@udp.example\" cannot be called: its domain takes calls by SIP+D2U alone (NAPTR), and only SIP over \
             TCP and TLS is spoken here",
        ),
    ] {
        let refused = call(target, listen, &server, Some(Guard::new(false))).await.map(|report| report.ending);
        assert_eq!(refused.err(), Some(PlaceError::BadTarget(expect.to_owned())), "{target}");
    }
}
