//! RTP that comes from another port than the agent's SDP names, as behind a NAT: it is counted and told, or taken when
//! asked.

use std::net::SocketAddr;
use std::time::Duration;

use ringer::config::SymmetricRtp;
use ringer::engine::CallReport;

use super::redirects::Far;
use super::stage::Stage;

/// Packets of the agent: 3 s.
const PACKETS: u16 = 150;

/// Calls an agent whose RTP comes from another port than it names, at this host. Returns the report, and true if that
/// port was sent RTP.
async fn call(stage: &Stage, host: &str) -> (CallReport, bool, SocketAddr) {
    let (agent, named, used) = (Far::at("127.0.0.1").await, Far::at("127.0.0.1").await, Far::at(host).await);
    let mut placement = stage.placement(&format!("sip:bob@{}", agent.address()), "Hello.");
    placement.spec.limits.max_duration_ms = Some(4000);
    placement.spec.limits.media_timeout_ms = 60_000;
    let script = async {
        let invite = agent.request("INVITE").await;
        agent.take(&invite, &named).await;
        let media = invite.0.lines().find_map(|line| line.strip_prefix("m=audio ")).expect("a session");
        let port: u16 = media.split(' ').next().and_then(|port| port.parse().ok()).expect("a port");
        let (mut pace, mut is_sent_to) = (tokio::time::interval(Duration::from_millis(20)), false);
        for sequence in 0..PACKETS {
            pace.tick().await;
            let mut packet = vec![0x80, 0];
            packet.extend(sequence.to_be_bytes());
            packet.extend((u32::from(sequence) * 160).to_be_bytes());
            packet.extend(7u32.to_be_bytes());
            packet.extend([0xd5; 160]);
            used.0.send_to(&packet, ("127.0.0.1", port)).await.expect("loopback takes it");
            is_sent_to |= used.0.try_recv(&mut [0; 2048]).is_ok();
        }
        let bye = agent.request("BYE").await;
        agent.answer(&bye, "200 OK", "", "").await;
        is_sent_to
    };
    let (report, is_sent_to) = tokio::join!(stage.call(placement), script);
    (report.expect("it is placed"), is_sent_to, used.address())
}

#[tokio::test(flavor = "multi_thread")]
async fn media_of_another_port_are_counted_and_told() {
    let (report, is_sent_to, _) = call(&Stage::new().await, "127.0.0.1").await;
    let quality = report.ending.quality;
    // Before the answer is heard of, any address may send.
    assert!(quality.received_packets <= 5 && !is_sent_to, "{quality:?}");
    assert!((100..=u64::from(PACKETS)).contains(&quality.foreign_address), "{quality:?}");
    let message = format!("{} datagrams came to the media port from other addresses", quality.foreign_address);
    assert!(report.warnings.iter().any(|warning| warning.starts_with(&message)), "{:?}", report.warnings);
}

#[tokio::test(flavor = "multi_thread")]
async fn media_of_another_port_are_taken_when_asked() {
    let (report, is_sent_to, used) = call(&Stage::with_symmetric_rtp(SymmetricRtp::On).await, "127.0.0.1").await;
    let quality = report.ending.quality;
    assert!(is_sent_to && quality.received_packets > 50, "{quality:?}");
    let message = format!("RTP came from {used}");
    assert!(report.warnings.iter().any(|warning| warning.starts_with(&message)), "{:?}", report.warnings);
}

#[tokio::test(flavor = "multi_thread")]
async fn media_of_another_host_are_taken_where_any_address_is() {
    let (on, any) =
        (Stage::with_symmetric_rtp(SymmetricRtp::On).await, Stage::with_symmetric_rtp(SymmetricRtp::Any).await);
    let (ignored, taken) = tokio::join!(call(&on, "127.0.0.2"), call(&any, "127.0.0.2"));
    let (report, is_sent_to, used) = taken;
    assert!(is_sent_to && report.ending.quality.received_packets > 50, "{:?}", report.ending.quality);
    let message = format!("RTP came from {used}");
    assert!(report.warnings.iter().any(|warning| warning.starts_with(&message)), "{:?}", report.warnings);
    let (report, is_sent_to, used) = ignored;
    assert!(!is_sent_to && report.ending.quality.foreign_address >= 100, "{:?}", report.ending.quality);
    let sentence = format!("RTP comes from {used}; sip.symmetric_rtp = \"any\" takes another host");
    assert!(report.warnings.iter().any(|warning| warning.contains(&sentence)), "{:?}", report.warnings);
}
