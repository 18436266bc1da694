//! Media through a relay (RFC 8656): coturn, which `make turn` installs.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::Stdio;

use ringer::config::{Secret, WebRtc};
use ringer::engine::{Destination, PipelineDial};
use ringer::provider::guard::Guard;
use ringer::tasks::Tasks;
use ringer::transport::webrtc::{MediaPeer, Peer, PeerTerms};
use ringer_media::call::EndReason;
use tokio::process::{Child, Command};

use super::calls::{placement, tone_and_peak};
use super::phone::{PATIENCE, loopback};
use super::pipelines::{bot, target};
use crate::calls::stage::{Stage, names};

const USER: &str = "caller";
const PASSWORD: &str = "sesame";

/// A relay on loopback; it ends with the test.
struct Relay {
    address: SocketAddr,
    _program: Child,
    _folder: tempfile::TempDir,
}

impl Relay {
    async fn start() -> Relay {
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        let free = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has a free port");
        let address = free.local_addr().expect("it is bound");
        drop(free);
        let path = |name: &str| folder.path().join(name).display().to_string();
        let mut command = Command::new("turnserver");
        command.args([
            "-n",
            "--no-cli",
            "--no-tls",
            "--no-dtls",
            "--no-tcp",
            "--allow-loopback-peers",
            "--lt-cred-mech",
        ]);
        command.args(["--realm", "ringer.test", "--user", &format!("{USER}:{PASSWORD}"), "--log-file", "stdout"]);
        command.args(["--listening-ip", "127.0.0.1", "--relay-ip", "127.0.0.1", "--min-port", "47000"]);
        command.args(["--max-port", "47999", "--listening-port", &address.port().to_string()]);
        command.args(["--pidfile", &path("pid"), "--userdb", &path("users"), "--simple-log"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
        let program = command.spawn().expect("coturn is installed: make turn");
        let relay = Relay { address, _program: program, _folder: folder };
        relay.answers().await;
        relay
    }

    /// Waits until it answers a request of STUN (RFC 8489 5).
    async fn answers(&self) {
        let socket = tokio::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("loopback has a free port");
        let mut request = vec![0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42];
        request.extend([7; 12]);
        let asked = async {
            let mut again = tokio::time::interval(std::time::Duration::from_millis(100));
            let mut answer = [0; 1500];
            loop {
                tokio::select! {
                    _ = again.tick() => drop(socket.send_to(&request, self.address).await),
                    Ok(_) = socket.recv_from(&mut answer) => return,
                }
            }
        };
        tokio::time::timeout(PATIENCE, asked).await.expect("coturn answers");
    }

    fn terms(&self, password: &str) -> PeerTerms {
        let settings = WebRtc {
            turn: vec![format!("turn:{}?transport=udp", self.address)],
            turn_username: Some(USER.to_owned()),
            turn_credential: Some(Secret::new(password.to_owned())),
            relay_only: true,
            bind: loopback().bind,
            ..WebRtc::default()
        };
        PeerTerms::from(&settings)
    }
}

/// Every candidate of this side is one of the relay, and a call gets through it, with audio both ways. Without the
/// relay there is no call, for which nobody else is blamed.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_gets_through_a_relay_alone() {
    if !is_wanted() {
        return;
    }
    let (relay, bot, stage) = (Relay::start().await, bot(&["--short-tone"]).await, Stage::new().await);
    let settings = relay.terms(PASSWORD).settings(Guard::new(true), Tasks::new());
    let (peer, _streams) = Peer::new(settings).await.expect("loopback can be bound");
    let offer = peer.offer(false).await.expect("an offer");
    let candidates: Vec<&str> = offer.lines().filter(|line| line.starts_with("a=candidate:")).collect();
    assert!(!candidates.is_empty() && candidates.iter().all(|line| line.contains(" typ relay")), "{offer}");
    peer.close().await;

    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut placement = placement(&stage, &bot.base, 9000);
    let dial = |password: &str| PipelineDial {
        target: target(&bot.base),
        peers: relay.terms(password),
        ..PipelineDial::default()
    };
    placement.destination = Destination::Pipeline(Box::new(dial(PASSWORD)));
    placement.folder = Some(folder.path().to_owned());
    let report = stage.call(placement).await.expect("a place is free");
    let events = names(&report).join(" ");
    assert_eq!((report.ending.connected, report.ending.reason), (true, EndReason::MaxDuration), "{events}");
    let (tone, loudest) = tone_and_peak(&report);
    assert!(tone > 0.8 && loudest > 1000, "{tone} {loudest}");
    let seen = bot.look().await;
    assert!(seen["loud"].as_u64() > Some(50) && seen["key"].as_f64() > Some(0.8), "the caller is heard: {seen}");
    let quality = &report.ending.quality;
    assert!(quality.sent_frames > 400 && quality.received_packets > 400, "{quality:?}");
    assert_eq!((quality.lost_packets, quality.foreign_source), (0, 0), "{quality:?}");

    let mut refused = super::calls::placement(&stage, &bot.base, 9000);
    refused.destination = Destination::Pipeline(Box::new(dial("wrong")));
    let report = stage.call(refused).await.expect("a place is free");
    let remote = report.ending.remote.expect("it was not connected");
    assert_eq!((report.ending.connected, remote.pipeline_code()), (false, Some("own_before_call")), "{remote:?}");
    assert!(remote.text.contains("no relay of webrtc.turn"), "{}", remote.text);
    stage.engine.stop().await;
}

#[expect(clippy::disallowed_methods, reason = "no setting of the product: how much is tested")]
fn is_wanted() -> bool {
    std::env::var("RINGER_TURN").is_ok()
}
