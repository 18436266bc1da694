//! Two peers of ours, one of which may mean harm.

use std::net::{SocketAddr, SocketAddrV4};
use std::time::Duration;

use ringer::clock::monotonic;
use ringer::config::WebRtc;
use ringer::provider::guard::Guard;
use ringer::tasks::Tasks;
use ringer::transport::webrtc::{
    Admission, Candidate, ChannelNews, Delivery, Ignored, MAX_CHANNELS, MAX_MESSAGE, MediaPeer, Peer, PeerFault,
    PeerSettings, PeerState, PeerStreams, PeerTerms,
};
use tokio::time::timeout;

use super::phone::{PATIENCE, Phone, loopback};

pub(super) struct Side {
    pub peer: Peer,
    pub streams: PeerStreams,
}

impl Side {
    pub(super) async fn new(settings: PeerSettings) -> Side {
        let (peer, streams) = Peer::new(settings).await.expect("loopback can be bound");
        Side { peer, streams }
    }

    async fn news(&mut self) -> ChannelNews {
        timeout(PATIENCE, self.streams.channels.recv()).await.expect("in time").expect("the connection lives")
    }

    async fn state(&mut self, wanted: PeerState) {
        let waited = timeout(PATIENCE, self.streams.state.wait_for(|state| *state == wanted)).await;
        waited.expect("in time").expect("the connection lives");
    }
}

/// Returns two sides that have settled everything; `change` may alter the answer.
async fn settle(change: impl Fn(String) -> String) -> (Side, Side) {
    let (near, far) = (Side::new(loopback()).await, Side::new(loopback()).await);
    near.peer.open_channel("chat", Delivery::Reliable).await.expect("it is made");
    let offer = near.peer.offer(false).await.expect("an offer");
    assert_eq!(offer.matches("m=audio").count(), 1, "{offer}");
    assert!(offer.find("m=audio") < offer.find("m=application"), "audio first: {offer}");
    assert!(offer.contains("useinbandfec=1") && !offer.contains("usedtx"), "{offer}");
    assert!(offer.contains("a=candidate:") && !offer.contains(".local"), "{offer}");
    let answer = far.peer.answer(&offer).await.expect("an answer");
    near.peer.accept(&change(answer)).await.expect("the answer is taken");
    (near, far)
}

/// Returns two peers that are connected.
pub(super) async fn pair() -> (Side, Side) {
    let (near, far) = settle(|answer| answer).await;
    let both = tokio::join!(near.peer.wait_connected(PATIENCE), far.peer.wait_connected(PATIENCE));
    assert_eq!(both, (Ok(()), Ok(())));
    (near, far)
}

#[tokio::test(flavor = "multi_thread")]
async fn two_peers_hear_each_other_and_their_legs_know_the_network() {
    let (mut near, mut far) = pair().await;
    let media = |side: &Side| side.peer.media().expect("it was settled");
    let (mut here, mut pump_here) = Phone::new(media(&near), 1, 500.0);
    let (mut there, mut pump_there) = Phone::new(media(&far), 2, 1100.0);
    let began = monotonic();
    let carried = async {
        tokio::join!(
            pump_here.run(&near.peer, &mut near.streams.packets),
            pump_there.run(&far.peer, &mut far.streams.packets),
        )
    };
    let talked = async {
        let both = here.both(&mut there).await;
        assert_eq!(both, (true, true), "{:?} {:?}", here.figures(), there.figures());
        // Until reports have crossed both ways.
        let known = |phone: &Phone| phone.figures().remote_fraction_lost.is_some();
        let mut ticks = tokio::time::interval(Duration::from_millis(20));
        while !(known(&here) && known(&there)) && monotonic().since(began) < PATIENCE {
            ticks.tick().await;
            here.tick();
            there.tick();
        }
    };
    tokio::select! {
        _ = carried => panic!("a connection ended"),
        () = talked => {}
    }
    for figures in [here.figures(), there.figures()] {
        println!("{figures:?}");
        assert_eq!((figures.lost, figures.malformed, figures.foreign, figures.unknown_payload_type), (0, 0, 0, 0));
        assert!(figures.received > 50 && figures.jitter_ms < 50.0, "{figures:?}");
        assert!(figures.remote_fraction_lost.is_some_and(|share| share < 0.1), "{figures:?}");
    }
    let figures = near.peer.figures().await;
    assert!(figures.received > 50 && figures.sent > 50 && figures.dropped == 0, "{figures:?}");
    assert!(figures.round_trip_ms.is_some_and(|ms| ms < 500.0), "{figures:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_pass_in_order_both_ways_and_the_end_is_told() {
    let (mut near, mut far) = pair().await;
    let ChannelNews::Open { id: here, .. } = near.news().await else { panic!("it opens first") };
    let opened = far.news().await;
    let ChannelNews::Open { id: there, label } = opened else { panic!("it opens first: {opened:?}") };
    assert_eq!(label, "chat");
    let long = "é".repeat(MAX_MESSAGE / 2);
    let texts: [(bool, &[u8]); 5] =
        [(true, b"one"), (true, b"two"), (true, b""), (true, long.as_bytes()), (false, &[0, 255, 7])];
    for (is_text, bytes) in texts {
        match is_text {
            true => near.peer.send_text(here, std::str::from_utf8(bytes).expect("text")).await,
            false => near.peer.send_bytes(here, bytes).await,
        }
        .unwrap_or_else(|fault| panic!("{} bytes: {fault}", bytes.len()));
    }
    for (expect, wanted) in texts {
        let came = timeout(PATIENCE, far.streams.channels.recv()).await;
        let came =
            came.unwrap_or_else(|_| panic!("{} bytes do not come: {:?}", wanted.len(), near.streams.state.borrow()));
        let Some(ChannelNews::Message { is_text, bytes, .. }) = came else { panic!("a message and no {came:?}") };
        assert_eq!((is_text, bytes.len()), (expect, wanted.len()));
        assert!(bytes == wanted);
    }
    far.peer.send_text(there, "back").await.expect("it is sent");
    assert_eq!(near.news().await, ChannelNews::Message { id: here, is_text: true, bytes: b"back".to_vec() });
    let longer = "x".repeat(MAX_MESSAGE + 1);
    let refused = near.peer.send_text(here, &longer).await;
    assert_eq!(refused, Err(PeerFault::Channel("takes messages of at most 64 KiB")));
    assert_eq!(near.peer.send_text(99, "x").await, Err(PeerFault::Channel("is not open")));
    far.peer.close().await;
    near.state(PeerState::Closed).await;
}

/// The certificate that the other side presents is not the one that the answer announced.
#[tokio::test(flavor = "multi_thread")]
async fn another_certificate_than_the_announced_one_is_not_talked_to() {
    let (mut near, _far) = settle(|answer| {
        let at = answer.find("a=fingerprint:sha-256 ").expect("a fingerprint") + "a=fingerprint:sha-256 ".len();
        let other = if answer[at..].starts_with("00") { "01" } else { "00" };
        format!("{}{other}{}", &answer[..at], &answer[at + 2..])
    })
    .await;
    let connected = near.peer.wait_connected(Duration::from_secs(5)).await;
    assert_eq!(connected, Err(PeerFault::Handshake));
    assert!(near.streams.packets.try_recv().is_err(), "nothing was heard");
}

/// A side that is gone without a word: its consent runs out after 10 s.
#[tokio::test(flavor = "multi_thread")]
async fn consent_runs_out() {
    let relay = super::relay::Relay::start().await;
    let near = Side::new(loopback()).await;
    let mut far = Side::new(loopback()).await;
    let offer = near.peer.offer(false).await.expect("an offer");
    let answer = far.peer.answer(&relay.through(&offer)).await.expect("an answer");
    near.peer.accept(&super::relay::without_candidates(&answer)).await.expect("it is taken");
    let both = tokio::join!(near.peer.wait_connected(PATIENCE), far.peer.wait_connected(PATIENCE));
    assert_eq!(both, (Ok(()), Ok(())));
    let cut = monotonic();
    relay.cut_off();
    far.state(PeerState::Quiet).await;
    far.state(PeerState::Failed).await;
    let took = monotonic().since(cut);
    assert!((Duration::from_secs(8)..Duration::from_secs(20)).contains(&took), "{took:?}");
}

/// New credentials and sockets by a second offer, on the same connection.
#[tokio::test(flavor = "multi_thread")]
async fn a_restarted_connection_is_found_again() {
    let (mut near, mut far) = pair().await;
    let before = near.peer.media();
    let offer = near.peer.offer(true).await.expect("an offer");
    let answer = far.peer.answer(&offer).await.expect("an answer");
    near.peer.accept(&answer).await.expect("it is taken");
    assert_eq!(near.peer.media(), before);
    let (mut here, mut pump) = Phone::new(before.expect("it was settled"), 1, 500.0);
    let (mut there, mut other) = Phone::new(far.peer.media().expect("it was settled"), 2, 1100.0);
    tokio::select! {
        () = pump.run(&near.peer, &mut near.streams.packets) => panic!("it ended"),
        () = other.run(&far.peer, &mut far.streams.packets) => panic!("it ended"),
        both = here.both(&mut there) => assert_eq!(both, (true, true)),
    }
}

/// The other side opens channels and sends without end, and nobody reads here: memory stays bounded, all is counted,
/// media pass.
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_is_counted_and_media_pass_beside_it() {
    let (mut near, mut far) = pair().await;
    let ChannelNews::Open { id, .. } = far.news().await else { panic!("it opens first") };
    for n in 0..MAX_CHANNELS + 4 {
        far.peer.open_channel(&format!("{n}"), Delivery::Lossy).await.expect("it is made");
    }
    let message = "x".repeat(1000);
    let flood = async {
        let mut sent = 0_u64;
        loop {
            match far.peer.send_text(id, &message).await {
                Ok(()) => sent += 1,
                Err(_) => tokio::task::yield_now().await,
            }
            if sent.is_multiple_of(100) {
                tokio::task::yield_now().await;
                let figures = near.peer.figures().await;
                if figures.dropped_messages > 5000 && figures.refused_channels >= 5 {
                    return figures;
                }
            }
        }
    };
    let figures = timeout(PATIENCE, flood).await.expect("the flood arrives");
    println!("{figures:?}");
    assert_eq!(figures.refused_channels, 5, "one channel is that of the offer");
    let mut waiting = 0;
    while near.streams.channels.try_recv().is_ok() {
        waiting += 1;
    }
    assert!(waiting <= 64, "{waiting}");
    let (mut here, mut pump) = Phone::new(near.peer.media().expect("it was settled"), 1, 500.0);
    let (mut there, mut other) = Phone::new(far.peer.media().expect("it was settled"), 2, 1100.0);
    tokio::select! {
        () = pump.run(&near.peer, &mut near.streams.packets) => panic!("it ended"),
        () = other.run(&far.peer, &mut far.streams.packets) => panic!("it ended"),
        () = there.talk() => panic!("it goes on"),
        heard = here.hear(1100.0) => assert!(heard),
    }
}

/// Candidates at addresses that are not allowed are not sent to, in the description or by themselves.
#[tokio::test(flavor = "multi_thread")]
async fn candidates_are_judged_by_the_guard() {
    let near = Side::new(PeerSettings { guard: Guard::new(false), ..loopback() }).await;
    let far = Side::new(loopback()).await;
    let offer = near.peer.offer(false).await.expect("an offer");
    // It may not reach this side either.
    let answer = far.peer.answer(&super::relay::without_candidates(&offer)).await.expect("an answer");
    near.peer.accept(&answer).await.expect("the answer is taken");
    let judged = |line: &str| Candidate { line: line.to_owned(), mid: Some("0".into()), section: Some(0) };
    for (line, expect) in [
        ("candidate:1 1 udp 1 10.0.0.1 9 typ host", Admission::Ignored(Ignored::NotAllowed)),
        ("candidate:1 1 udp 1 x.local 9 typ host", Admission::Ignored(Ignored::Name)),
        ("", Admission::End),
    ] {
        assert_eq!(near.peer.add_candidate(&judged(line)).await, Ok(expect), "{line}");
    }
    let connected = near.peer.wait_connected(Duration::from_secs(2)).await;
    let Err(PeerFault::NoCandidate(tally)) = connected else { panic!("{connected:?}") };
    assert!((tally.used, tally.names) == (0, 1) && tally.not_allowed >= 2, "{tally:?}");
}

/// No path to the one candidate that can be used: those that cannot are told.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_without_a_path_tells_of_candidates_that_were_not_used() {
    let near = Side::new(loopback()).await;
    let far = Side::new(loopback()).await;
    let offer = near.peer.offer(false).await.expect("an offer");
    let answer = far.peer.answer(&super::relay::without_candidates(&offer)).await.expect("an answer");
    let answer = super::relay::without_candidates(&answer);
    let answer = super::answers::with_lines(&answer, 1, false, "127.0.0.1");
    near.peer.accept(&super::answers::with_lines(&answer, 2, false, "agent.local")).await.expect("it is taken");
    let connected = near.peer.wait_connected(Duration::from_secs(1)).await;
    let fault = connected.expect_err("nobody is there").within(Duration::from_secs(30));
    let expect = "no connection within 30 s; candidates of the other side: 1 used, 2 with names for addresses";
    assert_eq!(fault.to_string(), expect);
}

/// A side that shows no address and comes from one that is not allowed.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_learned_is_judged_by_the_guard() {
    let near = Side::new(PeerSettings { guard: Guard::new(false), ..loopback() }).await;
    let far = Side::new(loopback()).await;
    near.peer.open_channel("chat", Delivery::Reliable).await.expect("it is made");
    let offer = near.peer.offer(false).await.expect("an offer");
    let answer = far.peer.answer(&offer).await.expect("an answer");
    near.peer.accept(&super::relay::without_candidates(&answer)).await.expect("the answer is taken");
    let connected = near.peer.wait_connected(PATIENCE).await;
    assert_eq!(connected, Err(PeerFault::NotAllowed([127, 0, 0, 1].into())));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_side_that_only_answers_checks_is_reached() {
    let near = Side::new(loopback()).await;
    let far = Side::new(loopback()).await;
    let offer = near.peer.offer(false).await.expect("an offer");
    let answer = far.peer.answer(&offer).await.expect("an answer");
    let lite = answer.replacen("t=0 0\r\n", "t=0 0\r\na=ice-lite\r\n", 1);
    assert_ne!(lite, answer);
    near.peer.accept(&lite).await.expect("it is taken");
    assert_eq!(near.peer.wait_connected(PATIENCE).await, Ok(()));
}

/// Answers requests of STUN (RFC 8489 5) with one address, until the test ends.
fn stun_server(mapped: SocketAddrV4) -> SocketAddr {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = socket.local_addr().expect("it is bound");
    let answers = move || {
        let mut request = [0; 1500];
        while let Ok((len, from)) = socket.recv_from(&mut request) {
            if len < 20 || request[..2] != [0, 1] {
                continue;
            }
            let cookie = [0x21, 0x12, 0xa4, 0x42];
            let mut answer = vec![1, 1, 0, 12];
            answer.extend(&request[4..20]);
            answer.extend([0, 0x20, 0, 8, 0, 1]);
            answer.extend((mapped.port() ^ 0x2112).to_be_bytes());
            answer.extend(mapped.ip().octets().iter().zip(cookie).map(|(byte, mask)| byte ^ mask));
            let _ = socket.send_to(&answer, from);
        }
    };
    std::thread::Builder::new().name("stun".to_owned()).spawn(answers).expect("a thread starts");
    address
}

/// The address that a server of the settings tells is offered beside the local one.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_a_server_tells_is_offered() {
    let server = stun_server(SocketAddrV4::new([203, 0, 113, 9].into(), 4321));
    let settings = WebRtc { stun: vec![format!("stun:{server}")], ..WebRtc::default() };
    let terms = PeerTerms { bind: loopback().bind, ..PeerTerms::from(&settings) };
    let near = Side::new(terms.settings(Guard::new(true), Tasks::new())).await;
    let offer = near.peer.offer(false).await.expect("an offer");
    let candidate = offer.lines().find(|line| line.contains("typ srflx")).unwrap_or_else(|| panic!("none in {offer}"));
    assert!(candidate.contains(" 203.0.113.9 4321 typ srflx"), "{candidate}");
    assert!(offer.contains(" 127.0.0.1 "), "{offer}");
}

/// Milliseconds until words that begin now are heard by `there`: encoder, library, loopback, jitter buffer and decoder.
pub(super) async fn delay_ms(here: &mut Phone, there: &mut Phone, ticks: &mut tokio::time::Interval) -> usize {
    let hz = std::mem::replace(&mut here.tone_hz, 0.0);
    let mut begun = 0;
    for tick in 0..75 {
        ticks.tick().await;
        if tick == 50 {
            (here.tone_hz, begun) = (hz, there.heard.len());
        }
        here.tick();
        there.tick();
    }
    let at = there.heard[begun..].iter().position(|sample| sample.abs() > 1500);
    at.expect("the tone is heard") / 16
}

/// A call that looks for packets late finds all of those that came meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn many_packets_at_once_are_not_lost() {
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
    let mut ticks = tokio::time::interval(Duration::from_millis(20));
    let talked = async {
        for tick in 0..150 {
            ticks.tick().await;
            here.tick();
            if !(50..110).contains(&tick) {
                there.tick();
            }
        }
    };
    tokio::select! {
        _ = carried => panic!("a connection ended"),
        () = talked => {}
    }
    let figures = there.figures();
    assert!(figures.received > 130 && figures.lost == 0, "{figures:?}");
    assert_eq!(pump_there.figures().lost, 0, "{figures:?}");
}
