//! Lateness of a call with a bad connection, told against a plain call that another engine makes at the same moment.

use ringer_media::call::Quality;
use ringer_media::connection::ConnectionSpec;

use crate::calls::peers::{BAD, at};
use crate::calls::stage::Stage;
use crate::peers::Peer;

/// Frames of a call of 10 s.
const FRAMES: u64 = 500;

/// Most pairs of calls: a machine that stands still for a moment may make a tick of one of them late.
const PAIRS: usize = 3;

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
    // A connection that holds ticks up makes some late in every call.
    let mut late = Vec::new();
    for _ in 0..PAIRS {
        let (bad, plain) = tokio::join!(call(BAD), call(ConnectionSpec::default()));
        assert!(bad.sent_frames.min(plain.sent_frames) >= FRAMES - 5, "{bad:?} {plain:?}");
        late.push((bad.late_frames, plain.late_frames));
        if bad.late_frames <= plain.late_frames {
            return;
        }
    }
    panic!("late frames of the bad connection and of the plain call beside it: {late:?}");
}
