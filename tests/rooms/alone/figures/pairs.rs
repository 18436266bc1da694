//! Delay between two peer connections of ours.

use std::time::Duration;

use ringer::transport::webrtc::MediaPeer;

use crate::rooms::pairs::{Side, delay_ms, pair};
use crate::rooms::phone::Phone;

/// The path adds less than 90 ms to a sound each way. A busy machine makes jitter, so the best of some counts.
#[tokio::test(flavor = "multi_thread")]
async fn the_path_adds_little_delay() {
    let (mut near, mut far) = pair().await;
    let media = |side: &Side| side.peer.media().expect("it was settled");
    let (mut here, mut pump_here) = Phone::new(media(&near), 1, 500.0);
    let (mut there, mut pump_there) = Phone::new(media(&far), 2, 1100.0);
    let carried = async {
        tokio::join!(
            pump_here.run(&near.peer, &mut near.streams.packets),
            pump_there.run(&far.peer, &mut far.streams.packets),
        )
    };
    let measured = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        let mut found = Vec::new();
        for _ in 0..3 {
            let out = delay_ms(&mut here, &mut there, &mut ticks).await;
            found.push((out, delay_ms(&mut there, &mut here, &mut ticks).await));
        }
        found
    };
    let found = tokio::select! {
        _ = carried => panic!("a connection ended"),
        found = measured => found,
    };
    println!("ms out and back: {found:?}");
    let (out, back) = (found.iter().map(|both| both.0).min(), found.iter().map(|both| both.1).min());
    assert!(out < Some(90) && back < Some(90), "{found:?}");
}
