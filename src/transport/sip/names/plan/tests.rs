//! Searches in zones of a few lines, without a network.

use super::super::testing::Zone;
use super::*;

/// Each transport, in the order of preference.
const ALL: &[Transport] = &Transport::ALL;
const UDP: &[Transport] = &[Transport::Udp];

/// Draws that follow a search: each the least, or each the most.
fn least(_: u32) -> u32 {
    0
}

fn most(most: u32) -> u32 {
    most
}

struct Case<'a> {
    spoken: &'a [Transport],
    families: Families,
    refused: &'a str,
    draw: fn(u32) -> u32,
}

impl Default for Case<'_> {
    fn default() -> Self {
        Case { spoken: ALL, families: Families::Both, refused: "", draw: least }
    }
}

impl Case<'_> {
    /// Searches `zone` for `uri`; returns the questions and the hops, or what is wrong.
    fn search(&self, uri: &str, zone: &str) -> (Vec<Question>, Result<Vec<Hop>, Lost>) {
        let (uri, zone) = (Uri::parse(uri).expect("a URI"), Zone::of(zone));
        let ways = Ways { spoken: self.spoken.to_vec(), families: self.families, has_services: true };
        let (mut asked, mut draw) = (Vec::new(), self.draw);
        let mut search = match Search::begin(&uri, ways) {
            Ok(search) => search,
            Err(lost) => return (asked, Err(lost)),
        };
        for _ in 0..3 {
            let questions = search.questions();
            let answers = questions.iter().map(|question| (question.clone(), zone.answer(question))).collect();
            asked.extend(questions);
            search.take(&answers, &mut draw);
        }
        assert_eq!(search.questions(), [], "three rounds are the most");
        (asked, search.hops(&|address| address.to_string() != self.refused))
    }

    /// Checks a plan. `expect`: the hops with spaces between them, `TCP/192.0.2.1:5060` or `TLS/192.0.2.1:5061/name`,
    /// or the text of the fault.
    fn check(&self, uri: &str, zone: &str, expect: &str) {
        let written = match self.search(uri, zone).1 {
            Ok(hops) => {
                let one = |hop: &Hop| {
                    let name = hop.server_name.as_ref().map(|name| format!("/{name}")).unwrap_or_default();
                    format!("{}/{}{name}", hop.transport, hop.address)
                };
                hops.iter().map(one).collect::<Vec<_>>().join(" ")
            }
            Err(lost) => lost.to_string(),
        };
        assert_eq!(written, expect, "{uri} in\n{zone}");
    }
}

/// Everything of a domain that has it all.
const FULL: &str = "
    test.example. NAPTR 20 10 s SIP+D2U _sip._udp.test.example.
    test.example. NAPTR 10 20 s SIP+D2T _sip._tcp.test.example.
    test.example. NAPTR 10 10 s SIPS+D2T _sips._tcp.test.example.
    test.example. NAPTR 5 10 u E2U+sip . !^.*$!sip:x@y!
    test.example. NAPTR 5 10 a SIP+D2U other.example.
    _sip._udp.test.example. SRV 10 0 5070 u.test.example.
    _sip._tcp.test.example. SRV 10 0 5080 t.test.example.
    _sips._tcp.test.example. SRV 10 0 5090 s.host.example.
    u.test.example. A 192.0.2.1
    t.test.example. A 192.0.2.2
    s.host.example. A 192.0.2.3
    test.example. A 192.0.2.9";

#[test]
fn an_address_is_its_own_hop() {
    let check = |uri, expect| Case::default().check(uri, "", expect);
    check("sip:a@192.0.2.1", "UDP/192.0.2.1:5060");
    check("sip:a@192.0.2.1:7", "UDP/192.0.2.1:7");
    check("sip:a@192.0.2.1;transport=tcp", "TCP/192.0.2.1:5060");
    check("sip:a@192.0.2.1;transport=TLS", "TLS/192.0.2.1:5061");
    check("sips:a@192.0.2.1", "TLS/192.0.2.1:5061");
    check("sips:a@192.0.2.1:7;transport=tcp", "TLS/192.0.2.1:7");
    check("sip:a@[2001:db8::1]", "UDP/[2001:db8::1]:5060");
    check("sip:a@127.1", "UDP/127.0.0.1:5060");
    check("sip:a@test.example;maddr=192.0.2.7", "UDP/192.0.2.7:5060");
    let (asked, _) = Case::default().search("sip:a@192.0.2.1", FULL);
    assert_eq!(asked, []);
}

#[test]
fn what_is_not_spoken_is_told() {
    let check = |spoken, uri, expect| Case { spoken, ..Case::default() }.check(uri, FULL, expect);
    check(UDP, "sip:a@h.example;transport=tcp", "only SIP over UDP is spoken here");
    check(UDP, "sip:a@h.example;transport=sctp", "only SIP over UDP is spoken here");
    check(UDP, "sips:a@h.example", "only SIP over UDP is spoken here");
    check(UDP, "sips:a@h.example;transport=udp", "only SIP over UDP is spoken here");
    check(&ALL[..2], "sips:a@h.example", "only SIP over UDP and TCP is spoken here");
    check(ALL, "sip:a@h.example;transport=sctp", "SIP is spoken over UDP, TCP and TLS alone, and not over \"sctp\"");
    check(ALL, "sips:a@h.example;transport=udp", "sips: needs TLS, which is not spoken over UDP");
    check(ALL, "tel:+15550001111", "a telephone number needs a trunk: it must start with sip:");
    let tls = "h.example. NAPTR 1 1 s SIPS+D2T _sips._tcp.h.example.\n h.example. A 192.0.2.1";
    Case { spoken: UDP, ..Case::default() }.check(
        "sip:a@h.example",
        tls,
        "its domain takes calls by SIPS+D2T alone (NAPTR), and only SIP over UDP is spoken here",
    );
}

#[test]
fn a_port_asks_for_addresses_alone() {
    let check = |uri, expect, question: &str| {
        Case::default().check(uri, FULL, expect);
        assert_eq!(Case::default().search(uri, FULL).0, [Question::Addresses(question.to_owned())], "{uri}");
    };
    check("sip:a@test.example:7", "UDP/192.0.2.9:7", "test.example");
    check("sip:a@test.example.:7;transport=tcp", "TCP/192.0.2.9:7", "test.example");
    check("sips:a@test.example:7", "TLS/192.0.2.9:7/test.example", "test.example");
    check("sip:a@other.example:7;maddr=test.example", "UDP/192.0.2.9:7", "test.example");
    // Names of the local network have no services.
    check("sip:a@pbx", "has no address", "pbx");
}

#[test]
fn a_transport_asks_for_its_services() {
    let check = |uri, expect| Case::default().check(uri, FULL, expect);
    check("sip:a@test.example;transport=udp", "UDP/192.0.2.1:5070");
    check("sip:a@test.example;transport=tcp", "TCP/192.0.2.2:5080");
    check("sip:a@test.example;transport=tls", "TLS/192.0.2.3:5090/test.example");
    let (asked, _) = Case::default().search("sips:a@test.example;transport=tcp", FULL);
    assert_eq!(asked[0], Question::Services("_sips._tcp.test.example.".into()));
    let none = "h.example. A 192.0.2.4";
    Case::default().check("sip:a@h.example;transport=tcp", none, "TCP/192.0.2.4:5060");
    Case::default().check("sips:a@h.example;transport=tls", none, "TLS/192.0.2.4:5061/h.example");
}

#[test]
fn naptr_records_choose_the_transport() {
    let check = |spoken, uri, expect| Case { spoken, ..Case::default() }.check(uri, FULL, expect);
    check(ALL, "sip:a@test.example", "TLS/192.0.2.3:5090/test.example TCP/192.0.2.2:5080");
    check(&ALL[..2], "sip:a@test.example", "TCP/192.0.2.2:5080");
    check(UDP, "sip:a@test.example", "UDP/192.0.2.1:5070");
    check(ALL, "sips:a@test.example", "TLS/192.0.2.3:5090/test.example");
    let check = |zone, expect| Case::default().check("sip:a@h.example", zone, expect);
    // Nothing is behind the lower order.
    let lower = "
        h.example. NAPTR 1 1 S sips+d2t _a.h.example.
        h.example. NAPTR 2 1 s SIP+D2T _b.other.example.
        _b.other.example. SRV 1 1 5062 t.example.
        t.example. A 192.0.2.1";
    check(lower, "TCP/192.0.2.1:5062");
    // Nothing behind any: the domain's own address, by the transport that was chosen.
    check("h.example. NAPTR 1 1 s SIP+D2T _b.h.example.\n h.example. A 192.0.2.1", "TCP/192.0.2.1:5060");
    // The state behind it is not known, so no other server is called.
    let broken = "h.example. NAPTR 1 1 s SIP+D2T _b.h.example.\n _b.h.example. SRV SILENT\n h.example. A 192.0.2.1";
    check(broken, "could not be looked up: the name servers did not answer");
    // A SIPS URI does as if the other records were not there.
    let plain = "h.example. NAPTR 1 1 s SIP+D2U _u.h.example.\n h.example. A 192.0.2.1";
    Case::default().check("sips:a@h.example", plain, "TLS/192.0.2.1:5061/h.example");
}

#[test]
fn without_naptr_services_are_tried() {
    let both = "
        _sip._udp.h.example. SRV 1 1 5062 u.example.
        _sip._tcp.h.example. SRV 1 1 5063 t.example.
        _sips._tcp.h.example. SRV 1 1 5064 t.example.
        u.example. A 192.0.2.1
        t.example. A 192.0.2.2";
    let check = |spoken, uri, zone, expect| Case { spoken, ..Case::default() }.check(uri, zone, expect);
    check(ALL, "sip:a@h.example", both, "UDP/192.0.2.1:5062 TCP/192.0.2.2:5063");
    check(UDP, "sip:a@h.example", both, "UDP/192.0.2.1:5062");
    check(&ALL[2..], "sip:a@h.example", both, "TLS/192.0.2.2:5064/h.example");
    check(ALL, "sips:a@h.example", both, "TLS/192.0.2.2:5064/h.example");
    let bare = "h.example. A 192.0.2.3\n h.example. AAAA 2001:db8::3";
    check(ALL, "sip:a@h.example", bare, "UDP/192.0.2.3:5060 UDP/[2001:db8::3]:5060");
    check(&ALL[1..], "sip:a@h.example", bare, "TCP/192.0.2.3:5060 TCP/[2001:db8::3]:5060");
    check(ALL, "sip:a@h.example", "", "has no address");
    let closed = "_sip._udp.h.example. SRV 0 0 0 .\n h.example. A 192.0.2.3";
    check(ALL, "sip:a@h.example", closed, "takes no SIP calls, as its SRV records say (target \".\")");
    let one_closed =
        "_sip._udp.h.example. SRV 0 0 0 .\n _sip._tcp.h.example. SRV 1 1 5 t.example.\n t.example. A 192.0.2.2";
    check(ALL, "sip:a@h.example", one_closed, "TCP/192.0.2.2:5");
    // Name servers that do not know NAPTR or SRV.
    let old = "h.example. NAPTR SILENT\n _sip._udp.h.example. SRV SERVFAIL\n h.example. A 192.0.2.3";
    check(ALL, "sip:a@h.example", old, "UDP/192.0.2.3:5060");
    check(ALL, "sip:a@h.example", "h.example. NAPTR SILENT", "has no address");
    let dead = "_sip._udp.h.example. SRV SILENT";
    check(ALL, "sip:a@h.example", dead, "could not be looked up: the name servers did not answer");
    let silent = "h.example. A SILENT";
    check(ALL, "sip:a@h.example", silent, "could not be looked up: the name servers did not answer");
}

#[test]
fn services_are_ordered_by_priority_and_drawn_by_weight() {
    let zone = "
        _sip._udp.h.example. SRV 20 0 5063 c.example.
        _sip._udp.h.example. SRV 10 60 5061 a.example.
        _sip._udp.h.example. SRV 10 40 5062 b.example.
        _sip._udp.h.example. SRV 10 0 5064 d.example.
        a.example. A 192.0.2.1
        b.example. A 192.0.2.2
        c.example. A 192.0.2.3
        d.example. A 192.0.2.4";
    let check = |draw: fn(u32) -> u32, expect: [u16; 4]| {
        let (_, hops) = Case { draw, ..Case::default() }.search("sip:a@h.example;transport=udp", zone);
        let ports: Vec<u16> = hops.expect("four servers").iter().map(|hop| hop.address.port()).collect();
        assert_eq!(ports, expect);
    };
    // Running sums of priority 10: 0 (5064), 40 (5062), 100 (5061).
    check(least, [5064, 5062, 5061, 5063]);
    check(most, [5061, 5062, 5064, 5063]);
    check(|most| most.min(1), [5062, 5061, 5064, 5063]);
    check(|most| most.min(41), [5061, 5062, 5064, 5063]);
}

#[test]
fn addresses_fit_the_socket_and_the_guard() {
    let dual = "h.example. A 192.0.2.1\n h.example. A 192.0.2.2\n h.example. AAAA 2001:db8::1";
    let check = |families, refused, zone, expect| {
        Case { families, refused, ..Case::default() }.check("sip:a@h.example:5060", zone, expect);
    };
    check(Families::V4, "", dual, "UDP/192.0.2.1:5060 UDP/192.0.2.2:5060");
    check(Families::V6, "", dual, "UDP/[2001:db8::1]:5060");
    check(Families::V4, "192.0.2.1", dual, "UDP/192.0.2.2:5060");
    check(Families::V6, "2001:db8::1", dual, "points to an address that is not allowed");
    let v6 = "h.example. AAAA 2001:db8::1";
    check(Families::V4, "", v6, "has no IPv4 address, and the SIP socket can send to IPv4 addresses alone");
    check(Families::V6, "", v6, "UDP/[2001:db8::1]:5060");
    for (listen, expect) in [("0.0.0.0", Families::V4), ("::", Families::Both), ("::1", Families::V6)] {
        assert_eq!(Families::of(listen.parse().expect("an address")), expect, "{listen}");
    }
    // One server of two is known.
    let half = "
        _sip._udp.h.example. SRV 1 1 5061 a.example.
        _sip._udp.h.example. SRV 2 1 5062 b.example.
        a.example. A SILENT
        b.example. A 192.0.2.2";
    Case::default().check("sip:a@h.example;transport=udp", half, "UDP/192.0.2.2:5062");
}

#[test]
fn hops_and_questions_are_limited() {
    let srv =
        |at: u32| format!("_sip._udp.h.example. SRV {at} 1 5060 s{at}.example.\n s{at}.example. A 192.0.2.{at}\n");
    let zone: String = (1..=60).map(srv).collect();
    let (asked, hops) = Case::default().search("sip:a@h.example;transport=udp", &zone);
    let hops = hops.expect("servers");
    assert_eq!((hops.len(), asked.len()), (HOPS_MOST, HOPS_MOST + 1));
    assert_eq!(hops[15], Hop::udp("192.0.2.16:5060".parse().expect("an address")));
    let many: String = (1..=40).map(|at| format!("h.example. A 192.0.2.{at}\n")).collect();
    assert_eq!(Case::default().search("sip:a@h.example:5060", &many).1.map(|hops| hops.len()), Ok(HOPS_MOST));
    let pointers: String = (1..=40).map(|at| format!("h.example. NAPTR 1 {at} s SIP+D2U p{at}.example.\n")).collect();
    let (asked, _) = Case::default().search("sip:a@h.example", &pointers);
    assert_eq!(asked.len(), 1 + POINTERS_MOST + 1, "{asked:?}");
    // A record that points to itself, and a server that is named twice.
    let looped = "
        h.example. NAPTR 1 1 s SIP+D2U h.example.
        h.example. SRV 1 1 5060 h.example.
        h.example. SRV 2 1 5060 h.example.
        h.example. A 192.0.2.1";
    Case::default().check("sip:a@h.example", looped, "UDP/192.0.2.1:5060");
}
