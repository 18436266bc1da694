//! Connections between two sides on loopback, and with sockets that do what no SIP program should.

use std::future::Future;
use std::net::Ipv4Addr;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, SanType};
use ringer_base::tls::Roots;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::sip::tls::Identity;

/// Time limit of one step on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// A limit that is waited for.
const SHORT: Duration = Duration::from_millis(150);

async fn within<T>(what: &str, step: impl Future<Output = T>) -> T {
    timeout(LIMIT, step).await.unwrap_or_else(|_| panic!("{what} takes too long"))
}

fn loopback(host: &str) -> SocketAddr {
    format!("{host}:0").parse().expect("a test names a good address")
}

fn message(number: usize) -> Vec<u8> {
    format!("OPTIONS sip:a@b SIP/2.0\r\nCall-ID: {number}\r\nContent-Length: 4\r\n\r\nbody").into_bytes()
}

/// Returns a side that listens over TCP, and over TLS where it has a certificate.
async fn side(host: &str, tls: &TlsSettings, patience: Patience, tasks: &Tasks) -> Streams {
    let tls_address = tls.identity.as_ref().map(|_| loopback(host));
    let listen = SipListen { udp: None, tcp: Some(loopback(host)), tls: tls_address };
    Streams::start(listen, tls, patience, tasks).await.expect("loopback ports are free")
}

async fn plain(patience: Patience, tasks: &Tasks) -> (Streams, SocketAddr) {
    let side = side("127.0.0.1", &TlsSettings::default(), patience, tasks).await;
    let address = side.local().tcp.expect("it listens");
    (side, address)
}

async fn next_message(streams: &mut Streams) -> (Hop, Vec<u8>) {
    match within("a message", streams.next()).await {
        StreamNews::Message { from, bytes } => (from, bytes),
        other => panic!("{other:?}"),
    }
}

/// Returns why a connection is gone.
async fn next_loss(streams: &mut Streams) -> String {
    match within("the end", streams.next()).await {
        StreamNews::Lost { why, .. } => why,
        other => panic!("{other:?}"),
    }
}

/// Returns why there is no connection to `to`.
async fn failure(streams: &mut Streams, to: Hop) -> String {
    streams.send(&to, message(0));
    match within("the end", streams.next()).await {
        StreamNews::Unreachable { to: dead, why } => {
            assert_eq!((dead.transport, dead.address, dead.connection), (to.transport, to.address, None));
            why.why
        }
        other => panic!("{other:?}"),
    }
}

/// An authority of the test's own.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    folder: tempfile::TempDir,
}

impl Authority {
    fn new() -> Authority {
        let mut params = CertificateParams::new(Vec::<String>::new()).expect("no names");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "An authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("it is signed");
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("ca.pem"), issuer.pem()).expect("written");
        Authority { issuer, folder }
    }

    /// Returns the settings of a side that trusts it.
    fn trusting(&self) -> TlsSettings {
        let roots = Roots::from_file(&self.folder.path().join("ca.pem")).expect("it is a certificate");
        TlsSettings { roots, ..TlsSettings::default() }
    }

    /// Returns the settings of a side whose certificate it has issued.
    fn with_certificate(&self, params: CertificateParams) -> TlsSettings {
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("it is signed");
        of(certificate.der().clone(), &key)
    }
}

fn of(certificate: rustls::pki_types::CertificateDer<'static>, key: &KeyPair) -> TlsSettings {
    let key = PrivateKeyDer::try_from(key.serialize_der()).expect("it is PKCS 8");
    let identity = Identity::new(vec![certificate], key).expect("they belong together");
    TlsSettings { identity: Some(identity), ..TlsSettings::default() }
}

fn names_of(names: &[&str]) -> CertificateParams {
    CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).expect("good names")
}

fn sip_named(domain: &str, names: &[&str]) -> CertificateParams {
    let mut params = names_of(names);
    let uri = format!("sip:{domain}").try_into().expect("it is ASCII");
    params.subject_alt_names.push(SanType::URI(uri));
    params
}

fn tls_hop(streams: &Streams, name: Option<&str>) -> Hop {
    let hop = Hop::new(Transport::Tls, streams.local().tls.expect("it listens"));
    Hop { server_name: name.map(Into::into), ..hop }
}

#[tokio::test]
async fn one_connection_carries_everything_both_ways() {
    let tasks = Tasks::new();
    let authority = Authority::new();
    let tls = authority.with_certificate(names_of(&["127.0.0.1", "::1"]));
    for host in ["127.0.0.1", "[::1]"] {
        let mut callee = side(host, &tls, Patience::default(), &tasks).await;
        let mut caller = side(host, &authority.trusting(), Patience::default(), &tasks).await;
        let tcp = Hop::new(Transport::Tcp, callee.local().tcp.expect("it listens"));
        for to in [tcp, tls_hop(&callee, None)] {
            let (first, is_new) = caller.send(&to, message(1)).expect("one is made");
            assert!(is_new && caller.send(&to, message(2)) == Some((first, false)), "{to}");
            let (from, one) = next_message(&mut callee).await;
            assert_eq!((from.transport, one), (to.transport, message(1)));
            let (again, two) = next_message(&mut callee).await;
            assert_eq!((&again, two), (&from, message(2)));
            let back = callee.send(&from, message(3));
            assert_eq!(back, from.connection.map(|own| (own, false)), "the answer goes back by it");
            let (back, three) = next_message(&mut caller).await;
            assert_eq!((back.connection, back.address, three), (Some(first), to.address, message(3)));
        }
    }
}

#[tokio::test]
async fn a_self_signed_certificate_that_the_settings_name_is_believed_for_its_names() {
    let tasks = Tasks::new();
    let authority = Authority::new();
    for is_ca in [IsCa::ExplicitNoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
        let key = KeyPair::generate().expect("a key");
        let mut params = names_of(&["agent.example"]);
        params.is_ca = is_ca;
        let own = params.self_signed(&key).expect("it is signed");
        let path = authority.folder.path().join("own.pem");
        std::fs::write(&path, own.pem() + &authority.issuer.pem()).expect("written");
        let roots = Roots::from_file(&path).expect("they are certificates");
        let pinning = TlsSettings { roots, ..TlsSettings::default() };
        for (settings, called, expect) in [
            (&pinning, Some("agent.example"), None),
            (&pinning, Some("other.example"), Some("is not for other.example")),
            (&pinning, None, Some("is not for 127.0.0.1")),
            (&authority.trusting(), Some("agent.example"), Some("is self-signed")),
        ] {
            let mut callee = side("127.0.0.1", &of(own.der().clone(), &key), Patience::default(), &tasks).await;
            let mut caller = side("127.0.0.1", settings, Patience::default(), &tasks).await;
            let to = tls_hop(&callee, called);
            if let Some(expect) = expect {
                let why = failure(&mut caller, to).await;
                assert!(why.contains(expect), "{expect}: {why}");
            } else {
                caller.send(&to, message(1));
                assert_eq!(next_message(&mut callee).await.1, message(1));
            }
        }
    }
}

#[tokio::test]
async fn a_certificate_that_is_wrong_is_told_with_its_cause() {
    let tasks = Tasks::new();
    let (authority, strangers) = (Authority::new(), Authority::new());
    let mut old = names_of(&["agent.example"]);
    (old.not_before, old.not_after) = (rcgen::date_time_ymd(2001, 1, 1), rcgen::date_time_ymd(2002, 1, 1));
    let mut early = names_of(&["agent.example"]);
    (early.not_before, early.not_after) = (rcgen::date_time_ymd(2090, 1, 1), rcgen::date_time_ymd(2091, 1, 1));
    let key = KeyPair::generate().expect("a key");
    let own = names_of(&["agent.example"]).self_signed(&key).expect("it is signed");
    let mut own_ca = names_of(&["agent.example"]);
    own_ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let own_ca = own_ca.self_signed(&key).expect("it is signed");
    let name = Some("agent.example");
    for (server, called, expect) in [
        (authority.with_certificate(names_of(&["agent.example"])), name, None),
        (authority.with_certificate(names_of(&["AGENT.example"])), name, None),
        (authority.with_certificate(sip_named("agent.example", &[])), name, None),
        (authority.with_certificate(sip_named("agent.example", &["other.example"])), name, None),
        (
            authority.with_certificate(sip_named("other.example", &["agent.example"])),
            name,
            Some("for the SIP domain other.example"),
        ),
        (authority.with_certificate(names_of(&["*.agents.example"])), Some("one.agents.example"), None),
        (
            authority.with_certificate(names_of(&["*.example"])),
            Some("one.agents.example"),
            Some("is not for one.agents.example"),
        ),
        (authority.with_certificate(names_of(&["other.example"])), name, Some("is not for agent.example, but for")),
        (authority.with_certificate(names_of(&["agent.example"])), None, Some("is not for 127.0.0.1, but for")),
        (authority.with_certificate(old), name, Some("has expired")),
        (authority.with_certificate(early), name, Some("is not valid yet")),
        (
            strangers.with_certificate(names_of(&["agent.example"])),
            name,
            Some("no trusted authority has issued its certificate"),
        ),
        (of(own.der().clone(), &key), name, Some("is self-signed")),
        (of(own_ca.der().clone(), &key), name, Some("is self-signed")),
    ] {
        let mut callee = side("127.0.0.1", &server, Patience::default(), &tasks).await;
        let mut caller = side("127.0.0.1", &authority.trusting(), Patience::default(), &tasks).await;
        let to = tls_hop(&callee, called);
        match expect {
            None => {
                caller.send(&to, message(1));
                assert_eq!(next_message(&mut callee).await.1, message(1));
            }
            Some(expect) => {
                let why = failure(&mut caller, to.clone()).await;
                assert!(why.starts_with("TLS with ") && why.contains(expect), "{expect}: {why}");
                assert!(called.is_none_or(|name| why.contains(name)), "{why}");
                // A host that is named in the settings is not verified.
                let mut open = Vec::new();
                for place in
                    [to.address.to_string(), format!("{}:{}", called.unwrap_or("127.0.0.1"), to.address.port())]
                {
                    let insecure = TlsSettings { insecure_hosts: vec![place], ..authority.trusting() };
                    let mut caller = side("127.0.0.1", &insecure, Patience::default(), &tasks).await;
                    caller.send(&to, message(2));
                    assert_eq!(next_message(&mut callee).await.1, message(2));
                    open.push(caller);
                }
            }
        }
    }
}

#[tokio::test]
async fn a_connection_that_does_not_come_about_is_told_with_its_cause() {
    let tasks = Tasks::new();
    let patience = Patience { connect: SHORT, ..Patience::default() };
    let (mut caller, _) = plain(patience, &tasks).await;
    let closed = std::net::TcpListener::bind(loopback("127.0.0.1")).and_then(|bound| bound.local_addr());
    let closed = closed.expect("a port is free");
    for transport in [Transport::Tcp, Transport::Tls] {
        let why = failure(&mut caller, Hop::new(transport, closed)).await;
        assert_eq!(why, format!("{transport} {closed} cannot be connected to: Connection refused (os error 111)"));
    }
    // Nobody accepts it, and yet the kernel does.
    let held = TcpListener::bind(loopback("127.0.0.1")).await.expect("a port is free");
    let to = Hop::new(Transport::Tls, held.local_addr().expect("it is bound"));
    let why = failure(&mut caller, to.clone()).await;
    assert_eq!(why, format!("{to} cannot be connected to: nothing came back in 0.15 s"));
    let (mut caller, _) = plain(Patience::default(), &tasks).await;
    tasks.spawn("a server without TLS", async move {
        // The first is the one that was given up.
        while let Ok((mut socket, _)) = held.accept().await {
            let _ = socket.write_all(b"SIP/2.0 400 Bad Request\r\n\r\n").await;
            let _ = socket.read(&mut [0; 1024]).await;
        }
    });
    let why = failure(&mut caller, to).await;
    assert!(why.ends_with("it does not speak TLS at this port"), "{why}");
    let (_callee, address) = plain(Patience::default(), &tasks).await;
    let unnamed = Hop { server_name: Some("a b".into()), ..Hop::new(Transport::Tls, address) };
    let why = failure(&mut caller, unnamed).await;
    assert_eq!(why, "TLS failed: \"a b\" is no name that a certificate can have");
}

/// Sends `bytes` from a socket of its own to `to`, and waits until that closes it.
async fn closed_after(to: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut socket = TcpStream::connect(to).await.expect("it listens");
    socket.write_all(bytes).await.expect("it is open");
    let mut read = Vec::new();
    let _ = within("the close", socket.read_to_end(&mut read)).await;
    read
}

#[tokio::test]
async fn a_connection_of_garbage_is_closed_and_nothing_else() {
    let tasks = Tasks::new();
    let patience = Patience { message: SHORT, ..Patience::default() };
    let (mut callee, address) = plain(patience, &tasks).await;
    let (mut caller, _) = plain(Patience::default(), &tasks).await;
    let to = Hop::new(Transport::Tcp, address);
    let good = caller.send(&to, message(1));
    next_message(&mut callee).await;
    for (bytes, expect) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], "it has no SIP start line"),
        (b"\x16\x03\x01", "it has no SIP start line"),
        (b"BYE sip:a@b SIP/2.0\r\nCall-ID: 1\r\n\r\n", "no Content-Length"),
        (b"BYE sip:a@b SIP/2.0\r\nContent-Le", "the rest of a message did not come in 150ms"),
        (b"BYE sip:a@b SIP/2.0\r\nContent-Length: 9\r\n\r\nhalf", "the rest of a message did not come in 150ms"),
    ] {
        let (read, why) = tokio::join!(closed_after(address, bytes), next_loss(&mut callee));
        assert!(read.is_empty() && why.contains(expect), "{why}");
        let again = caller.send(&to, message(2));
        assert_eq!(again, good.map(|(connection, _)| (connection, false)), "another connection goes on");
        assert_eq!(next_message(&mut callee).await.1, message(2));
    }
    // The message before what is garbage counts.
    let long = [message(3), b"rest".to_vec(), b"\r\n".to_vec()].concat();
    closed_after(address, &long).await;
    assert_eq!(next_message(&mut callee).await.1, message(3));
    assert!(next_loss(&mut callee).await.contains("no SIP start line"));
}

#[tokio::test]
async fn a_reset_is_told_and_the_next_message_opens_another_connection() {
    let tasks = Tasks::new();
    let (mut caller, _) = plain(Patience::default(), &tasks).await;
    let listener = TcpListener::bind(loopback("127.0.0.1")).await.expect("a port is free");
    let to = Hop::new(Transport::Tcp, listener.local_addr().expect("it is bound"));
    let (first, is_new) = caller.send(&to, message(1)).expect("one is made");
    assert!(is_new);
    let (mut socket, _) = within("a connection", listener.accept()).await.expect("it comes");
    socket.read_exact(&mut [0; 20]).await.expect("it is open");
    socket.set_zero_linger().expect("it is open");
    drop(socket);
    match within("the end", caller.next()).await {
        StreamNews::Lost { connection, hop, why } => {
            assert_eq!((connection, hop.address), (first, to.address));
            assert!(why.contains("reset"), "{why}");
        }
        other => panic!("{other:?}"),
    }
    assert!(caller.hold(first).is_none());
    // Also where the message would rather go by the one that is gone.
    let second = caller.send(&Hop { connection: Some(first), ..to }, message(2));
    let (mut socket, _) = within("a connection", listener.accept()).await.expect("it comes");
    let mut read = vec![0; message(2).len()];
    socket.read_exact(&mut read).await.expect("it is open");
    assert!(second.is_some_and(|(second, is_new)| second != first && is_new) && read == message(2));
}

#[tokio::test]
async fn who_shakes_no_hands_or_comes_too_often_is_turned_away() {
    let tasks = Tasks::new();
    let tls = Authority::new().with_certificate(names_of(&["127.0.0.1"]));
    let callee = side("127.0.0.1", &tls, Patience { handshake: SHORT, ..Patience::default() }, &tasks).await;
    let local = callee.local();
    closed_after(local.tls.expect("it listens"), b"").await;
    closed_after(local.tls.expect("it listens"), &message(1)).await;
    let tcp = local.tcp.expect("it listens");
    let mut sockets = Vec::new();
    for _ in 0..MAX_NEWCOMERS {
        let mut socket = TcpStream::connect(tcp).await.expect("it listens");
        socket.write_all(b"\r\n\r\n").await.expect("it is open");
        let mut pong = [0; 2];
        within("the pong", socket.read_exact(&mut pong)).await.expect("a ping is answered");
        assert_eq!(&pong, b"\r\n");
        sockets.push(socket);
    }
    assert!(closed_after(tcp, b"").await.is_empty());
    // Whoever has sent a message counts no more.
    let mut callee = callee;
    sockets[0].write_all(&message(2)).await.expect("it is open");
    next_message(&mut callee).await;
    let mut socket = TcpStream::connect(tcp).await.expect("it listens");
    socket.write_all(&message(3)).await.expect("it is open");
    assert_eq!(next_message(&mut callee).await.1, message(3));
}

#[tokio::test]
async fn a_connection_without_a_message_ends_although_it_is_kept_alive() {
    let tasks = Tasks::new();
    let (callee, address) = plain(Patience { first: SHORT, ..Patience::default() }, &tasks).await;
    let mut socket = TcpStream::connect(address).await.expect("it listens");
    let pinging = async {
        let mut read = [0; 64];
        while socket.write_all(b"\r\n\r\n").await.is_ok() && socket.read(&mut read).await.is_ok_and(|count| count > 0) {
        }
    };
    within("the end", pinging).await;
    drop(callee);
}

#[tokio::test]
async fn pings_go_out_and_are_missed_only_where_they_were_answered() {
    let tasks = Tasks::new();
    let (ping, pong) = (Duration::from_millis(20), SHORT);
    let (mut caller, _) = plain(Patience { ping, pong, ..Patience::default() }, &tasks).await;
    let listener = TcpListener::bind(loopback("127.0.0.1")).await.expect("a port is free");
    let to = Hop::new(Transport::Tcp, listener.local_addr().expect("it is bound"));
    caller.send(&to, message(1));
    let (mut socket, _) = within("a connection", listener.accept()).await.expect("it comes");
    let mut read = vec![0; message(1).len()];
    socket.read_exact(&mut read).await.expect("it is open");
    let mut pings = vec![0; 40];
    within("ten pings", socket.read_exact(&mut pings)).await.expect("nobody minds that none is answered");
    assert_eq!(pings, b"\r\n\r\n".repeat(10));
    socket.write_all(b"\r\n").await.expect("it is open");
    assert_eq!(next_loss(&mut caller).await, "the other side answers no pings any more");
}

#[tokio::test]
async fn who_takes_nothing_holds_nobody_up() {
    let tasks = Tasks::new();
    let (mut caller, _) = plain(Patience::default(), &tasks).await;
    let (mut callee, address) = plain(Patience::default(), &tasks).await;
    let deaf = TcpListener::bind(loopback("127.0.0.1")).await.expect("a port is free");
    let (to, other) =
        (Hop::new(Transport::Tcp, deaf.local_addr().expect("it is bound")), Hop::new(Transport::Tcp, address));
    let first = caller.send(&to, message(0)).map(|(connection, _)| connection);
    let (mut socket, _) = within("a connection", deaf.accept()).await.expect("it comes");
    socket.read_exact(&mut vec![0; message(0).len()]).await.expect("it is open");
    let long = [&message(1)[..], &vec![b' '; 200_000]].concat();
    for _ in 0..200 {
        if caller.send(&to, long.clone()).map(|(connection, _)| connection) != first {
            break;
        }
    }
    caller.send(&other, message(2));
    assert_eq!(next_message(&mut callee).await.1, message(2));
    assert_eq!(next_loss(&mut caller).await, "the other side does not take what is sent");
}

#[tokio::test]
async fn a_connection_rests_unless_a_call_holds_it() {
    let tasks = Tasks::new();
    let (mut caller, _) = plain(Patience { idle: SHORT, ..Patience::default() }, &tasks).await;
    let (mut callee, address) = plain(Patience::default(), &tasks).await;
    let (held, other) = (Hop::new(Transport::Tcp, address), (Ipv4Addr::LOCALHOST, address.port()));
    let (connection, _) = caller.send(&held, message(1)).expect("one is made");
    let hold = caller.hold(connection).expect("it is there");
    let another = Hop { server_name: Some("other".into()), ..Hop::new(Transport::Tcp, other.into()) };
    caller.send(&another, message(2));
    next_message(&mut callee).await;
    next_message(&mut callee).await;
    match within("the end", caller.next()).await {
        StreamNews::Lost { connection: gone, why, .. } => {
            assert!(gone != connection && why == "nothing came or went for long", "{why}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(caller.send(&held, message(3)), Some((connection, false)));
    drop(hold);
    assert_eq!(next_loss(&mut caller).await, "nothing came or went for long");
}

#[tokio::test]
async fn what_waits_is_written_before_the_end() {
    let tasks = Tasks::new();
    let (mut caller, _) = plain(Patience::default(), &tasks).await;
    let listener = TcpListener::bind(loopback("127.0.0.1")).await.expect("a port is free");
    let to = Hop::new(Transport::Tcp, listener.local_addr().expect("it is bound"));
    caller.send(&to, message(1));
    let (mut socket, _) = within("a connection", listener.accept()).await.expect("it comes");
    socket.read_exact(&mut vec![0; message(1).len()]).await.expect("it is open");
    for number in 2..100 {
        caller.send(&to, message(number));
    }
    drop(caller);
    within("the end", tasks.stop()).await;
    let mut read = Vec::new();
    within("the close", socket.read_to_end(&mut read)).await.expect("it is closed in order");
    assert_eq!(read, (2..100).flat_map(message).collect::<Vec<u8>>());
}
