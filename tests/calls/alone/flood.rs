//! Lateness of calls whose engine strangers flood, told against calls of another engine at the same moment.

use std::net::SocketAddr;
use std::time::Duration;

use ringer::config::Sources;
use tokio::net::UdpSocket;
use tokio::time::interval;

use crate::calls::peers::at;
use crate::calls::registration::invite;
use crate::calls::stage::Stage;
use crate::peers::Peer;

/// Calls of one engine at the same time.
const CALLS: u32 = 5;

/// Most pairs of engines: a machine that stands still for a moment may make a tick of one of them late.
const PAIRS: usize = 3;

/// Makes calls of 4 s; returns the number of their late frames.
async fn late_frames(stage: &Stage, peer: &Peer) -> u64 {
    let call = || async {
        let mut placement = stage.placement(&at(peer), "Hello there.");
        placement.spec.limits.max_duration_ms = Some(4000);
        let quality = stage.call(placement).await.expect("it was placed").ending.quality;
        assert!(quality.sent_frames >= 195 && quality.lost_packets == 0, "{quality:?}");
        quality.late_frames
    };
    futures_util::future::join_all((0..CALLS).map(|_| call())).await.into_iter().sum()
}

/// Sends 5000 INVITEs a second that nobody acknowledges, for ever. A flood without pause would only measure its own
/// load.
async fn flood(to: SocketAddr) {
    let stranger = UdpSocket::bind("127.0.0.9:0").await.expect("loopback has a free port");
    let own = stranger.local_addr().expect("it is bound");
    let mut ticks = interval(Duration::from_millis(2));
    for number in 0.. {
        if number % 10 == 0 {
            ticks.tick().await;
        }
        stranger.send_to(invite(own, to, number).as_bytes(), to).await.expect("loopback takes it");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_strangers_makes_no_packet_late() {
    let mut late = Vec::new();
    for _ in 0..PAIRS {
        let (flooded, plain) = (Stage::new().await, Stage::new().await);
        flooded.engine.limit_strangers(&Sources::default()).await;
        let (near, far) = (Peer::answering(CALLS), Peer::answering(CALLS));
        let pair = async { tokio::join!(late_frames(&flooded, &near), late_frames(&plain, &far)) };
        let pair = tokio::select! {
            pair = pair => pair,
            () = flood(flooded.engine.sip_address()) => unreachable!("it floods for ever"),
        };
        assert!(flooded.engine.lines().count_limited() > 0, "the flood was met");
        for peer in [near, far] {
            peer.end();
        }
        late.push(pair);
        if pair.0 <= pair.1 {
            return;
        }
    }
    panic!("late frames of the flooded engine and of the one beside it: {late:?}");
}
