//! Datagrams of one port on their ways.

use std::net::Ipv4Addr;

use super::*;
use crate::sockets::Batch;

fn bind_one() -> UdpSocket {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port")
}

/// Reads everything that the library's task can read.
async fn drain(port: &dyn AsyncUdpSocket) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    let mut bytes = [0; 99];
    loop {
        let mut meta = [RecvMeta::default()];
        let read = std::future::poll_fn(|context| {
            let polled = port.poll_recv(context, &mut [IoSliceMut::new(&mut bytes)], &mut meta);
            Poll::Ready(if polled.is_ready() { Some(polled) } else { None })
        });
        match read.await {
            Some(Poll::Ready(Ok(_))) => all.push(bytes[..meta[0].len].to_vec()),
            _ => return all,
        }
    }
}

/// Waits until the library's task sees datagrams.
async fn readable(port: &dyn AsyncUdpSocket) -> Vec<u8> {
    let (mut bytes, mut meta) = ([0; 99], [RecvMeta::default()]);
    let read = std::future::poll_fn(|context| {
        port.poll_recv(context, &mut [IoSliceMut::new(&mut bytes)], &mut meta).map(|read| read.map(drop))
    });
    read.await.expect("it can be read");
    bytes[..meta[0].len].to_vec()
}

#[tokio::test]
async fn the_kernel_gives_media_to_the_media_thread_alone() {
    let ports = Ports::default();
    let port = PortRuntime::new(ports.clone()).wrap_udp_socket(bind_one()).expect("it can be wrapped");
    let here = port.local_addr().expect("it is bound");
    assert!(ports.media_socket(([127, 0, 0, 1], 9).into()).expect("nothing is refused").is_none(), "no port of it");
    let far = bind_one();
    let firsts = [0, 1, 19, 20, 63, 64, 127, 128, 144, 191, 192, 255];
    let send = || firsts.iter().for_each(|first| drop(far.send_to(&[*first, 7], here)));
    // Everything is the library's until somebody else takes the media, and again once that one is gone.
    for _ in 0..2 {
        send();
        let mut all = vec![readable(&*port).await];
        all.extend(drain(&*port).await);
        assert_eq!(all.len(), firsts.len());
        let media = ports.media_socket(here).expect("nothing is refused").expect("it has the port");
        send();
        let mut all = vec![readable(&*port).await];
        all.extend(drain(&*port).await);
        let expected: Vec<Vec<u8>> =
            firsts.iter().filter(|first| !(128..=191).contains(*first)).map(|f| vec![*f, 7]).collect();
        assert_eq!(all, expected);
        let mut batch = Batch::default();
        assert_eq!(batch.fill_from(&media), 3);
        assert_eq!(batch.message(2).1, [191, 7]);
        assert!(batch.message(0).0 > 0, "the kernel says when it came");
    }
}

#[tokio::test]
async fn a_flood_of_checks_does_not_reach_the_media_thread() {
    let ports = Ports::default();
    let port = PortRuntime::new(ports.clone()).wrap_udp_socket(bind_one()).expect("it can be wrapped");
    let here = port.local_addr().expect("it is bound");
    let media = ports.media_socket(here).expect("nothing is refused").expect("it has the port");
    let far = bind_one();
    // More than the kernel keeps for one socket.
    for _ in 0..5000 {
        far.send_to(&[0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42], here).expect("it is sent");
    }
    far.send_to(&[0x80, 111], here).expect("it is sent");
    let mut batch = Batch::default();
    assert_eq!(batch.fill_from(&media), 1);
    assert_eq!(batch.message(0).1, [0x80, 111]);
}

#[tokio::test]
async fn another_address_stirs_the_path() {
    let ports = Ports::default();
    let port = PortRuntime::new(ports.clone()).wrap_udp_socket(bind_one()).expect("it can be wrapped");
    let here = port.local_addr().expect("it is bound");
    let (known, other) = (bind_one(), bind_one());
    ports.expect(known.local_addr().ok());
    known.send_to(&[0], here).expect("it is sent");
    readable(&*port).await;
    assert!(futures_util::FutureExt::now_or_never(ports.path_change()).is_none());
    other.send_to(&[0], here).expect("it is sent");
    readable(&*port).await;
    ports.path_change().await;
}
