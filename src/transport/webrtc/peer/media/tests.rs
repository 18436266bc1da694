//! Connections whose media one side, or both, have taken over.

use std::time::Duration;

use futures_util::future::join;
use ringer_base::guard::Guard;
use ringer_base::tasks::Tasks;
use ringer_media::call::MediaChannel;
use ringer_media::packet_rings::packet_rings;
use ringer_media::rtp::srtp::MAX_DATAGRAM;
use ringer_media::time::Time;
use tokio::time::timeout;

use super::super::super::direct::DirectOrder;
use super::super::super::{MediaPeer, PeerMedia, PeerSettings, PeerStreams, Role, peer_media};
use super::*;
use crate::sockets::Batch;

/// Longest wait for anything.
const PATIENCE: Duration = Duration::from_secs(30);

async fn peer() -> (Peer, PeerStreams) {
    let settings =
        PeerSettings { bind: vec![[127, 0, 0, 1].into()], ..PeerSettings::new(Guard::new(true), Tasks::new()) };
    Peer::new(settings).await.expect("it can be made")
}

/// Returns two connections, the first of which has made the offer.
async fn pair() -> [(Peer, PeerStreams); 2] {
    let (first, second) = (peer().await, peer().await);
    let offer = first.0.offer(false).await.expect("an offer");
    let answer = second.0.answer(&offer).await.expect("an answer");
    first.0.accept(&answer).await.expect("it is taken");
    let connected = join(first.0.wait_connected(PATIENCE), second.0.wait_connected(PATIENCE)).await;
    assert_eq!(connected, (Ok(()), Ok(())));
    [first, second]
}

/// Takes the media of a connection over.
async fn take(peer: &Peer) -> PeerMedia {
    let (rings, _library) = packet_rings(std::task::Waker::noop().clone());
    let (mut media, mut way) = peer_media(rings);
    let taken = timeout(PATIENCE, async {
        loop {
            match peer.take_over(None).await {
                Some((direct, _)) => return direct,
                // Each side learns of the path by itself.
                None => tokio::task::yield_now().await,
            }
        }
    });
    let direct = taken.await.expect("there are keys and a path");
    assert!(way.orders.push(DirectOrder::Take(Role::Main, direct)).is_ok());
    media.take_orders();
    media
}

fn rtp(sequence: u16) -> Vec<u8> {
    let [high, low] = sequence.to_be_bytes();
    [&[0x80, 111, high, low, 0, 0, 0, 0, 6, 6, 6, 6][..], &[5; 40]].concat()
}

/// Waits until packets have come. Returns their numbers.
async fn hear_numbers(media: &mut PeerMedia, count: usize) -> Vec<u16> {
    let (mut numbers, mut batch, mut buffer) = (Vec::new(), Batch::default(), [0; MAX_DATAGRAM]);
    let hearing = timeout(PATIENCE, async {
        while numbers.len() < count {
            for number in 0..media.read_batch(Role::Main, &mut batch) {
                let hand = &mut |path, bytes: &[u8]| {
                    assert_eq!(path, MediaChannel::Rtp);
                    numbers.push(u16::from_be_bytes([bytes[2], bytes[3]]));
                };
                media.take_datagram(Role::Main, Time(1), batch.message(number).1, &mut buffer, hand);
            }
            tokio::task::yield_now().await;
        }
    });
    hearing.await.expect("they came");
    numbers
}

async fn next_number(streams: &mut PeerStreams) -> u16 {
    let packet = timeout(PATIENCE, streams.packets.recv()).await.expect("it came").expect("the connection lives");
    u16::from_be_bytes([packet.bytes[2], packet.bytes[3]])
}

/// The keys are those of the library, whichever side begins the handshake: it opens and seals on the other side.
/// Numbers roll over before the media are taken over.
#[tokio::test]
async fn media_thread_and_library_understand_each_other() {
    for of_offerer in [true, false] {
        let [first, second] = pair().await;
        let (own, mut other) = if of_offerer { (first, second) } else { (second, first) };
        for number in [65_534, 65_535, 0, 1] {
            own.0.send_packet(&of_source(&own.0, number)).await.expect("it is sent");
            other.0.send_packet(&of_source(&other.0, number)).await.expect("it is sent");
        }
        for number in [65_534, 65_535, 0, 1] {
            assert_eq!(next_number(&mut other.1).await, number);
        }
        let mut own_streams = own.1;
        for number in [65_534, 65_535, 0, 1] {
            assert_eq!(next_number(&mut own_streams).await, number, "the library has it from before");
        }
        let mut media = take(&own.0).await;
        assert!(own.0.take_over(None).await.is_none(), "once");
        for number in [2, 3] {
            media.send(Time(1), MediaChannel::Rtp, &rtp(number));
            assert_eq!(next_number(&mut other.1).await, number);
            other.0.send_packet(&of_source(&other.0, number)).await.expect("it is sent");
        }
        assert_eq!(hear_numbers(&mut media, 2).await, [2, 3]);
        assert_eq!(own.0.figures().await.received, 6);
        assert_eq!(own.0.figures().await.sent, 6);
        own.0.close().await;
    }
}

/// Returns a packet as the library takes it.
fn of_source(peer: &Peer, sequence: u16) -> Vec<u8> {
    let mut bytes = rtp(sequence);
    bytes[8..12].copy_from_slice(&peer.ssrc().to_be_bytes());
    bytes
}

/// A connection that is made anew has other keys, and consent goes on beside the media.
#[tokio::test]
async fn both_sides_pass_by_the_library() {
    let mut materials = Vec::new();
    for _ in 0..2 {
        let [(first, _first), (second, _second)] = pair().await;
        let (mut here, mut there) = (take(&first).await, take(&second).await);
        for number in 1..=50 {
            here.send(Time(1), MediaChannel::Rtp, &rtp(number));
            there.send(Time(1), MediaChannel::Rtp, &rtp(number));
        }
        let all: Vec<u16> = (1..=50).collect();
        assert_eq!(hear_numbers(&mut there, 50).await, all);
        assert_eq!(hear_numbers(&mut here, 50).await, all);
        assert_eq!(
            first.media_route().await,
            MediaRoute::Direct(first.path().await.expect("one").0, second.path().await.expect("one").0)
        );
        materials.push(first.media.heard.material().expect("there was a handshake"));
        assert!(materials.last() == second.media.heard.material().as_ref(), "both sides have the same");
        first.close().await;
    }
    assert!(materials[0] != materials[1]);
}
