//! Searches by a name server on loopback.

use super::testing::NameServer;
use super::*;

/// Transports of these tests: more than the engine speaks.
const ALL: &[Transport] = &Transport::ALL;

/// A domain with everything: NAPTR, SRV by UDP and TCP, an alias.
const FULL: &str = "
    test.example. NAPTR 10 10 s SIP+D2U _sip._udp.test.example.
    test.example. NAPTR 10 20 s SIP+D2T _sip._tcp.test.example.
    _sip._udp.test.example. SRV 10 10 5070 one.test.example.
    _sip._udp.test.example. SRV 20 10 5071 two.test.example.
    _sip._tcp.test.example. SRV 10 10 5080 one.test.example.
    one.test.example. A 127.0.0.1
    two.test.example. CNAME three.test.example.
    three.test.example. A 127.0.0.3";

/// Short enough that a test with a silent server is over soon.
const SHORT: Patience = Patience { services: Duration::from_millis(100), total: Duration::from_millis(400) };

fn resolver(server: &NameServer) -> Resolver {
    Resolver::new(&[server.address]).for_transports(ALL)
}

fn text_of(found: Result<Vec<Hop>, Lost>) -> String {
    match found {
        Ok(hops) => hops.iter().map(Hop::to_string).collect::<Vec<_>>().join(", "),
        Err(lost) => lost.to_string(),
    }
}

async fn look(resolver: &Resolver, uri: &str, guard: &Guard) -> String {
    let uri = Uri::parse(uri).expect("a URI");
    let found = tokio::time::timeout(Duration::from_secs(20), resolver.hops(&uri, guard)).await;
    text_of(found.expect("a search is over in 5 s"))
}

fn open() -> Guard {
    Guard::by(|_| true)
}

#[tokio::test]
async fn hosts_are_found_by_name_servers() {
    for (uri, zone, expect) in [
        ("sip:a@test.example", FULL, "UDP 127.0.0.1:5070, UDP 127.0.0.3:5071, TCP 127.0.0.1:5080"),
        ("sip:a@TEST.example.;transport=tcp", FULL, "TCP 127.0.0.1:5080"),
        ("sip:a@two.test.example:5060", FULL, "UDP 127.0.0.3:5060"),
        ("sip:a@one.test.example", FULL, "UDP 127.0.0.1:5060"),
        ("sip:a@none.example", FULL, "has no address"),
        // No NAPTR.
        ("sip:a@h.example", "_sip._udp.h.example. SRV 1 1 7 a.example.\n a.example. A 127.0.0.2", "UDP 127.0.0.2:7"),
        ("sip:a@h.example", "h.example. AAAA ::1", "UDP [::1]:5060"),
        (
            "sip:a@h.example",
            "h.example. A SERVFAIL",
            "could not be looked up: the name servers answered with an error (Server Failure)",
        ),
        ("sip:a@h.example", "h.example. NAPTR SERVFAIL\n h.example. A 127.0.0.2", "UDP 127.0.0.2:5060"),
        // An alias of itself.
        ("sip:a@h.example:7", "h.example. CNAME h.example.", "has no address"),
    ] {
        let server = NameServer::start(zone).await;
        assert_eq!(look(&resolver(&server), uri, &open()).await, expect, "{uri} in\n{zone}");
    }
}

#[tokio::test]
async fn answers_are_kept_as_long_as_they_may() {
    let server = NameServer::start(FULL).await;
    let resolver = resolver(&server).for_families(Families::V4);
    for _ in 0..3 {
        assert_eq!(look(&resolver.clone(), "sip:a@test.example;transport=tcp", &open()).await, "TCP 127.0.0.1:5080");
    }
    let mut asked = server.questions();
    asked.sort();
    assert_eq!(asked, ["_sip._tcp.test.example. SRV", "one.test.example. A"]);
}

#[tokio::test]
async fn a_truncated_answer_is_asked_for_by_tcp() {
    let zone = "
        _sip._udp.h.example. SRV LONG
        _sip._udp.h.example. SRV 1 1 7 a.example.
        a.example. A 127.0.0.2";
    let server = NameServer::start(zone).await;
    assert_eq!(look(&resolver(&server), "sip:a@h.example;transport=udp", &open()).await, "UDP 127.0.0.2:7");
    let asked = server.questions();
    assert_eq!(asked[..2], ["_sip._udp.h.example. SRV", "_sip._udp.h.example. SRV tcp"], "{asked:?}");
}

#[tokio::test]
async fn a_search_ends_in_time() {
    let silent =
        "h.example. A SILENT\n h.example. AAAA SILENT\n h.example. NAPTR SILENT\n _sip._udp.h.example. SRV SILENT";
    let server = NameServer::start(&format!("{silent}\n _sip._tcp.h.example. SRV SILENT")).await;
    let resolver = Resolver { patience: SHORT, ..resolver(&server) };
    let expect = "could not be looked up: the name servers did not answer";
    assert_eq!(look(&resolver, "sip:a@h.example", &open()).await, expect);
    assert_eq!(look(&resolver, "sip:a@h.example:7", &open()).await, expect);
    // Servers that do not answer for services leave time for addresses.
    let old =
        NameServer::start("h.example. NAPTR SILENT\n _sip._udp.h.example. SRV SILENT\n h.example. A 127.0.0.2").await;
    let patience = Patience { total: Duration::from_secs(10), ..SHORT };
    let resolver = Resolver { patience, ..self::resolver(&old) };
    assert_eq!(look(&resolver, "sip:a@h.example", &open()).await, "UDP 127.0.0.2:5060");
    // A port that nobody listens at.
    let gone = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("it is bound");
    let resolver = Resolver { patience: SHORT, ..Resolver::new(&[gone]) };
    assert_eq!(look(&resolver, "sip:a@h.example:7", &open()).await, expect);
    assert!(PATIENCE.services * 2 < PATIENCE.total && PATIENCE.total <= Duration::from_secs(5));
}

#[tokio::test]
async fn each_address_is_shown_to_the_guard() {
    let zone = "
        test.example. NAPTR 10 10 s SIP+D2U _sip._udp.test.example.
        _sip._udp.test.example. SRV 10 10 5070 in.test.example.
        _sip._udp.test.example. SRV 20 10 5071 out.test.example.
        in.test.example. A 10.0.0.1
        in.test.example. A 192.0.2.1
        out.test.example. A 192.0.2.2
        secret.example. A 169.254.169.254
        secret.example. AAAA ::ffff:10.0.0.1";
    let server = NameServer::start(zone).await;
    let check = async |uri, guard, expect| assert_eq!(look(&resolver(&server), uri, &guard).await, expect, "{uri}");
    check("sip:a@test.example", Guard::new(false), "UDP 192.0.2.1:5070, UDP 192.0.2.2:5071").await;
    check("sip:a@in.test.example:5060", Guard::new(false), "UDP 192.0.2.1:5060").await;
    check("sip:a@secret.example", Guard::new(false), "points to an address that is not allowed").await;
    check("sip:a@localhost", Guard::new(false), "points to an address that is not allowed").await;
    check("sip:a@10.0.0.1", Guard::new(false), "points to an address that is not allowed").await;
}

#[tokio::test]
async fn addresses_are_of_a_family_that_the_socket_can_send_to() {
    let server = NameServer::start("six.example. AAAA ::1\n both.example. A 127.0.0.1\n both.example. AAAA ::1").await;
    let check = async |uri: &str, families, expect| {
        assert_eq!(look(&resolver(&server).for_families(families), uri, &open()).await, expect, "{uri}");
    };
    let none = "has no IPv4 address, and the SIP socket can send to IPv4 addresses alone";
    check("sip:a@six.example", Families::V4, none).await;
    check("sip:a@[::1]", Families::V4, none).await;
    check("sip:a@six.example", Families::V6, "UDP [::1]:5060").await;
    check("sip:a@both.example:7", Families::V4, "UDP 127.0.0.1:7").await;
    check("sip:a@both.example:7", Families::V6, "UDP [::1]:7").await;
    check("sip:a@both.example:7", Families::Both, "UDP 127.0.0.1:7, UDP [::1]:7").await;
    check("sip:a@x.localhost:7", Families::V6, "UDP [::1]:7").await;
}

#[tokio::test]
async fn names_of_this_machine_ask_nobody() {
    let server = NameServer::start(FULL).await;
    let resolver = resolver(&server).for_families(Families::V4);
    assert_eq!(look(&resolver, "sip:a@localhost", &open()).await, "UDP 127.0.0.1:5060");
    assert_eq!(look(&resolver, "sip:a@x.LOCALHOST.;transport=tcp", &open()).await, "TCP 127.0.0.1:5060");
    // A guard with names of its own.
    let own = open().with_names(|name| {
        assert_eq!(name, "test.example");
        Box::pin(async { Ok(vec![IpAddr::from([127, 0, 0, 9])]) })
    });
    assert_eq!(look(&resolver, "sip:a@test.example", &own).await, "UDP 127.0.0.9:5060");
    assert_eq!(
        look(&Resolver::default().for_families(Families::V4), "sip:a@localhost:7", &open()).await,
        "UDP 127.0.0.1:7"
    );
    assert_eq!(server.questions(), [""; 0]);
}

#[test]
fn the_systems_answer_tells_silence_from_absence() {
    let check = |text: &str, expect| assert_eq!(system_answer(Err(io::Error::other(text))), expect);
    let start = "failed to lookup address information:";
    check(&format!("{start} Temporary failure in name resolution"), Answer::Failed(Trouble::Silent));
    check(&format!("{start} Name or service not known"), Answer::Addresses(Vec::new()));
}
