//! Side that makes the SDP offer, and the media addresses in it: calls to sipp.

use ringer::provider::guard::Guard;
use ringer_media::call::{EndReason, RemoteKind};

use super::stage::{Stage, channels};
use crate::peers::Peer;

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_an_offer_answers_that_of_the_other_side() {
    let (stage, peer) = (Stage::without_offer().await, Peer::scenario("offer_in_answer"));
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut placement = stage.placement(&format!("sip:bob@{}", peer.sip), "Hello there.");
    placement.folder = Some(folder.path().into());
    placement.spec.extension = Some("15".into());
    placement.spec.limits.max_duration_ms = Some(2500);
    let report = stage.call(placement).await.expect("it was placed");
    assert_eq!(report.ending.reason, EndReason::MaxDuration, "{:?}", report.ending);
    assert_eq!((report.peer.codec, report.peer.transport().as_str()), (Some("PCMU"), "SIP/UDP, RTP/AVP"));
    let [_, heard] = channels(report.recording.as_deref().expect("it was recorded"));
    assert!(heard.iter().any(|sample| sample.abs() > 1000), "the tones come back");
    let log = peer.end();
    assert!(log.contains("interval 1800") && log.contains("answered in the ACK"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_name_of_the_media_is_looked_up_within_the_guard() {
    let loopback = || Guard::by(|address| address.is_loopback());
    let to = |address: [u8; 4]| {
        loopback().with_names(move |name| {
            let known = (name == "media.test").then_some(address.into());
            Box::pin(async move { Ok(known.into_iter().collect()) })
        })
    };
    let nobody = loopback().with_names(|_| Box::pin(async { Ok(Vec::new()) }));
    for (guard, expect) in [
        (to([127, 0, 0, 1]), None),
        (to([192, 0, 2, 9]), Some("the host \"media.test\" of the media points to an address that is not allowed")),
        (nobody, Some("the host \"media.test\" of the media has no address")),
    ] {
        let (stage, peer) = (Stage::new().await, Peer::scenario("media_host"));
        let mut placement = stage.placement(&format!("sip:bob@{}", peer.sip), "Hello there.");
        placement.destination.set_guard(guard);
        placement.spec.limits.max_duration_ms = Some(500);
        let report = stage.call(placement).await.expect("it was placed");
        let remote = report.ending.remote.as_ref();
        assert_eq!(remote.map(|end| (end.kind, end.text.as_str())), expect.map(|text| (RemoteKind::NoMedia, text)));
        assert_eq!(report.ending.connected, expect.is_none());
        let address = report.peer.address.unwrap_or_default();
        assert_eq!(address.starts_with("127.0.0.1:"), expect.is_none(), "{address}");
        peer.end();
    }
}
