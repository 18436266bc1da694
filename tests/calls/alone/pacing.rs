//! Lateness of a call with a bad connection, told against a plain call that another engine makes at the same moment.

use ringer_media::call::Quality;
use ringer_media::connection::ConnectionSpec;

use crate::calls::peers::{BAD, at};
use crate::calls::stage::Stage;
use crate::peers::Peer;

/// Frames of a call of 10 s.
const FRAMES: u64 = 500;

/// Most frames that a bad connection may make late, beyond those of the plain call: 2 %. One that held ticks up until its packets
/// are due would make two of three late.
const MORE_LATE: u64 = FRAMES / 50;

async fn call(connection: ConnectionSpec) -> Quality {
    let (stage, peer) = (Stage::new().await, Peer::answering(1));
    let mut placement = stage.placement(&at(&peer), "Hello there.");
    placement.spec.limits.max_duration_ms = Some(10_000);
    placement.spec.connection = connection;
    let report = stage.call(placement).await.expect("it was placed");
    peer.end();
    report.ending.quality
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_connection_makes_no_tick_late() {
    let (bad, plain) = tokio::join!(call(BAD), call(ConnectionSpec::default()));
    println!("late frames: {} with a bad connection, {} without", bad.late_frames, plain.late_frames);
    assert!(bad.sent_frames.min(plain.sent_frames) >= FRAMES - 5, "{bad:?} {plain:?}");
    assert!(bad.late_frames <= plain.late_frames + MORE_LATE, "{bad:?}, beside it {plain:?}");
}
