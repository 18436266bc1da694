//! Calls over connections: TCP and TLS, and calls whose connection is closed.

use super::calls::{answers, bobs_call};
use super::{Scripted, answer_to, sdp_body};
use crate::endpoint::Output;
use crate::message::{Message, Method, Request};
use crate::parse::parse;
use crate::testing::{Pair, Party, invite_to, listener, offer};
use crate::useragent::{CallEnd, CallEvent, CallKey, EndKind, Invite};
use crate::{ConnectionId, Endpoint, Hop, Time, Transport, Uri};

fn rings(bob: &mut Endpoint, now: Time, call: CallKey, event: &CallEvent) {
    if let CallEvent::Incoming { .. } = event {
        bob.ring(now, call, 180, None);
    }
}

fn refuses(bob: &mut Endpoint, now: Time, call: CallKey, event: &CallEvent) {
    if let CallEvent::Incoming { .. } = event {
        bob.reject(now, call, 486, None);
    }
}

fn ends(pair: &Pair, party: Party) -> Vec<CallEnd> {
    let end = |event: &&CallEvent| if let CallEvent::Ended(end) = event { Some(end.clone()) } else { None };
    pair.of(party).iter().filter_map(end).collect()
}

fn losses(pair: &Pair, party: Party) -> usize {
    pair.of(party).into_iter().filter(|event| **event == CallEvent::ConnectionLost).count()
}

/// Returns the requests of this method that a party sent, and their places.
fn requests(pair: &Pair, by: Party, method: Method) -> Vec<(Request, Hop)> {
    let sent = pair.messages.iter().filter(|(party, _, _)| *party == by);
    sent.filter_map(|(_, hop, bytes)| match parse(bytes) {
        Ok(Message::Request(request)) if request.method == method => Some((request, hop.clone())),
        _ => None,
    })
    .collect()
}

/// Returns a hop by which messages of the other side come.
fn stream(transport: Transport, address: &str, connection: u64) -> Hop {
    let connection = Some(ConnectionId(connection));
    Hop { connection, ..Hop::new(transport, address.parse().unwrap()) }
}

fn via_of(request: &Request) -> String {
    let via = request.headers.top_via().unwrap();
    let port = via.port.map(|port| format!(":{port}")).unwrap_or_default();
    format!("{} {}{port}", via.transport, via.host)
}

#[test]
fn a_call_goes_over_one_connection_and_repeats_nothing() {
    for link in [Transport::Tcp, Transport::Tls] {
        let mut pair = Pair::over(1, link, answers);
        // Longer than T1: over datagrams everything would be sent twice.
        pair.delay_ms = 800;
        let call = pair.call();
        pair.run(5_000);
        let key = bobs_call(&pair);
        pair.bob.hangup(pair.now, key, 16, "x");
        pair.run(5_000);
        assert_eq!(ends(&pair, Party::Alice).len() + ends(&pair, Party::Bob).len(), 2, "{link}: {:?}", pair.events);
        let counts = ["INVITE", "SIP/2.0 180", "ACK", "BYE", "SIP/2.0 200 OK"]
            .map(|line| pair.count(Party::Alice, line) + pair.count(Party::Bob, line));
        // The 2xx to INVITE alone is repeated until its ACK, which is repeated with it (RFC 3261 13.3.1.4): after 500
        // and 1500 ms.
        assert_eq!(counts, [1, 1, 3, 1, 4], "{link}: {:?}", pair.sent);
        assert!(pair.messages.iter().all(|(_, hop, _)| hop.transport == link), "{link}");
        let from_bob = pair.messages.iter().filter(|(party, _, _)| *party == Party::Bob);
        assert!(from_bob.into_iter().all(|(_, hop, _)| hop.connection == Some(ConnectionId(1))), "{link}");
        assert_eq!(pair.open_connections(), 1, "{link}");
        pair.run(40_000);
        assert!(pair.alice.is_idle() && pair.bob.is_idle(), "{link}: {call:?}");
    }
}

#[test]
fn via_and_contact_tell_the_transport() {
    let check = |target: &str, transport: Transport, via: &str, contact: &str| {
        let mut stage = Scripted::speaking_all();
        let destination = Hop::new(transport, stage.far);
        let invite = Invite { destination, ..invite_to(target, stage.far) };
        stage.endpoint.invite(stage.now, invite);
        let sent = stage.request(Method::Invite);
        assert_eq!(sent.check(), Ok(()));
        assert_eq!((via_of(&sent).as_str(), sent.headers.get("Contact")), (via, Some(contact)), "{target}");
        assert!(sent.headers.top_via().unwrap().params.has("rport"));
        assert_eq!(sent.headers.get("To"), Some(format!("<{target}>").as_str()));
        assert_eq!((stage.last_hop.transport, stage.last_hop.address), (transport, stage.far));
        // The same in the requests of the dialog.
        stage.way = Some(stream(transport, "10.0.0.2:5060", 3));
        stage.reply(&sent, 200, "b", &[("Contact", "<sip:bob@10.0.0.2>")], Some(&answer_to(&sent)));
        assert_eq!(via_of(&stage.request(Method::Ack)), via);
        let key = stage.last_call.unwrap();
        assert!(stage.endpoint.reinvite(stage.now, key, offer(1).session().to_string()));
        let again = stage.request(Method::Invite);
        assert_eq!((via_of(&again).as_str(), again.headers.get("Contact")), (via, Some(contact)), "{target}");
    };
    check("sip:bob@b.example", Transport::Udp, "UDP 10.0.0.1:5060", "<sip:alice@10.0.0.1:5060>");
    check("sip:bob@b.example", Transport::Tcp, "TCP 10.0.0.1:5070", "<sip:alice@10.0.0.1:5070;transport=tcp>");
    check("sip:bob@b.example", Transport::Tls, "TLS 10.0.0.1:5061", "<sip:alice@10.0.0.1:5061;transport=tls>");
    check("sips:bob@b.example", Transport::Tls, "TLS 10.0.0.1:5061", "<sips:alice@10.0.0.1:5061>");
}

/// Receives an INVITE by this way, with this Via and Request-URI, and returns the 200 of this side.
fn take_call(way: Hop, via: &str, uri: &str) -> (Scripted, CallKey, crate::Response) {
    let mut stage = Scripted::speaking_all();
    stage.way = Some(way);
    let body = sdp_body(&offer(2).session().to_string());
    stage.hears(&format!(
        "INVITE {uri} SIP/2.0\nVia: {via};branch=z9hG4bK1\nFrom: <sip:bob@b.example>;tag=b\nTo: <sip:alice@a.example>\n\
         Call-ID: c\nCSeq: 1 INVITE\nContact: <sip:bob@10.0.0.2:5080;transport=tcp>\nMax-Forwards: 70\n{body}"
    ));
    stage.response(100);
    let key = stage.last_call.expect("a call came in");
    stage.endpoint.answer(stage.now, key, offer(1).session().to_string());
    let ok = stage.response(200);
    (stage, key, ok)
}

#[test]
fn responses_go_back_by_the_connection_of_the_request() {
    let check = |transport, via: &str, uri: &str, contact: &str, listens: &str| {
        let (mut stage, _, ok) = take_call(stream(transport, "10.0.0.2:40001", 9), via, uri);
        assert_eq!(stage.last_hop, stream(transport, listens, 9), "{via}");
        assert_eq!(ok.headers.get("Contact"), Some(contact), "{via}");
        let source = stage.events.iter().find_map(|event| match event {
            CallEvent::Incoming { source, .. } => Some(source.clone()),
            _ => None,
        });
        assert_eq!(source, Some(stream(transport, "10.0.0.2:40001", 9)));
        // The Via that comes back is the one that was sent, with what was seen of its sender.
        let back = ok.headers.top_via().unwrap();
        assert!(back.to_string().starts_with(via), "{back}");
        let shown = via.contains("rport") || !via.contains("10.0.0.2");
        assert_eq!(back.params.get("received").is_some(), shown, "{back}");
        // The 2xx is repeated by the connection, and after it by a new one to where the sender listens (RFC 3261
        // 18.2.2).
        stage.wait(500);
        stage.response(200);
        assert_eq!(stage.last_hop.connection, Some(ConnectionId(9)));
        stage.endpoint.connection_lost(stage.now, ConnectionId(9));
        stage.wait(1_000);
        stage.response(200);
        assert_eq!(stage.last_hop, Hop::new(transport, listens.parse().unwrap()), "{via}");
    };
    let sip = "sip:alice@10.0.0.1";
    let contact = "<sip:alice@10.0.0.1:5070;transport=tcp>";
    check(Transport::Tcp, "SIP/2.0/TCP 10.0.0.2", sip, contact, "10.0.0.2:5060");
    check(Transport::Tcp, "SIP/2.0/TCP 10.0.0.2:5090;rport", sip, contact, "10.0.0.2:5090");
    check(Transport::Tcp, "SIP/2.0/TCP gone.example:5090", sip, contact, "10.0.0.2:5090");
    // A Via that names another transport than the real one.
    check(Transport::Tcp, "SIP/2.0/UDP 10.0.0.2:5090", sip, contact, "10.0.0.2:5090");
    check(Transport::Tls, "SIP/2.0/TLS 10.0.0.2", sip, "<sip:alice@10.0.0.1:5061;transport=tls>", "10.0.0.2:5061");
    check(Transport::Tls, "SIP/2.0/TLS 10.0.0.2", "sips:alice@10.0.0.1", "<sips:alice@10.0.0.1:5061>", "10.0.0.2:5061");
}

#[test]
fn a_datagram_whose_via_names_tcp_is_answered_by_datagram() {
    let (stage, _, ok) = take_call(Hop::udp("10.0.0.2:40001".parse().unwrap()), "SIP/2.0/TCP 10.0.0.2:5090", "sip:a@b");
    assert_eq!(stage.last_hop, Hop::udp("10.0.0.2:5090".parse().unwrap()));
    assert_eq!(ok.headers.get("Contact"), Some("<sip:alice@10.0.0.1:5060>"));
}

#[test]
fn a_refusal_over_a_connection_is_sent_once_and_is_over_with_its_ack() {
    let mut pair = Pair::over(2, Transport::Tcp, refuses);
    pair.call();
    pair.run(1_000);
    assert_eq!((pair.count(Party::Bob, "SIP/2.0 486"), pair.count(Party::Alice, "ACK")), (1, 1));
    assert_eq!(ends(&pair, Party::Alice)[0].sip_code, Some(486));
    pair.run(38_000);
    assert!(pair.alice.is_idle() && pair.bob.is_idle());
}

#[test]
fn an_established_call_outlives_its_connection() {
    for link in [Transport::Tcp, Transport::Tls] {
        for by in [Party::Alice, Party::Bob] {
            let mut pair = Pair::over(3, link, answers);
            let call = pair.call();
            pair.run(1_000);
            let key = bobs_call(&pair);
            pair.cut_connections();
            pair.run(0);
            assert_eq!((losses(&pair, Party::Alice), losses(&pair, Party::Bob)), (1, 1), "{link} {by:?}");
            assert_eq!((ends(&pair, Party::Alice).len(), pair.open_connections()), (0, 0));
            pair.run(10_000);
            if by == Party::Alice {
                pair.alice.hangup(pair.now, call, 16, "x");
            } else {
                pair.bob.hangup(pair.now, key, 16, "x");
            }
            pair.run(1_000);
            let byes = requests(&pair, by, Method::Bye);
            let [(bye, hop)] = &byes[..] else { panic!("{link} {by:?}: {:?}", pair.sent) };
            assert_eq!((hop.transport, hop.connection), (link, None), "{by:?}");
            assert!(via_of(bye).starts_with(link.name()));
            assert_eq!((ends(&pair, Party::Alice).len(), ends(&pair, Party::Bob).len()), (1, 1), "{link} {by:?}");
            // The loss of a connection that nothing lives on is told to nobody.
            pair.cut_connections();
            pair.run(40_000);
            assert_eq!((losses(&pair, Party::Alice), losses(&pair, Party::Bob)), (1, 1), "{link} {by:?}");
            assert!(pair.alice.is_idle() && pair.bob.is_idle(), "{link} {by:?}");
        }
    }
}

#[test]
fn a_new_connection_becomes_that_of_the_dialog() {
    let mut pair = Pair::over(4, Transport::Tcp, answers);
    let call = pair.call();
    pair.run(1_000);
    let key = bobs_call(&pair);
    pair.cut_connections();
    pair.run(100);
    // Bob opens the second connection, and Alice uses it.
    assert!(pair.bob.update(pair.now, key, None));
    pair.run(1_000);
    pair.alice.hangup(pair.now, call, 16, "x");
    pair.run(1_000);
    let byes = requests(&pair, Party::Alice, Method::Bye);
    assert_eq!(byes[0].1.connection, Some(ConnectionId(2)));
    // It is the one whose loss counts.
    assert_eq!((pair.open_connections(), ends(&pair, Party::Bob).len()), (1, 1));
}

#[test]
fn a_call_that_is_not_established_ends_with_its_connection() {
    let mut pair = Pair::over(5, Transport::Tcp, rings);
    pair.call();
    pair.run(1_000);
    pair.cut_connections();
    pair.run(0);
    for party in [Party::Alice, Party::Bob] {
        let ends = ends(&pair, party);
        assert_eq!((ends.len(), ends[0].kind, ends[0].text.as_str()), (1, EndKind::NotReachable, "Connection lost"));
        assert_eq!((ends[0].by_remote, losses(&pair, party)), (false, 0), "{party:?}");
    }
    // The INVITE has its final response, by a new connection.
    assert_eq!(pair.count(Party::Bob, "SIP/2.0 480"), 1);
    pair.run(80_000);
    assert!(pair.alice.is_idle() && pair.bob.is_idle());
}

#[test]
fn an_answer_whose_ack_never_comes_over_a_lost_connection_ends_the_call() {
    let (mut stage, _, _) = take_call(stream(Transport::Tcp, "10.0.0.2:40001", 9), "SIP/2.0/TCP 10.0.0.2", "sip:a@b");
    stage.endpoint.connection_lost(stage.now, ConnectionId(9));
    stage.pump();
    assert_eq!((stage.end().kind, stage.end().text.as_str()), (EndKind::NotReachable, "Connection lost"));
    stage.wait(32_000);
    let last = stage.sent.pop();
    let Some(Message::Request(bye)) = last else { panic!("{last:?}") };
    assert_eq!((bye.method, bye.headers.get("Reason")), (Method::Bye, Some("Q.850;cause=41;text=\"Connection lost\"")));
    // To the Contact of the other side, which names TCP.
    assert_eq!(stage.last_hop, Hop::new(Transport::Tcp, "10.0.0.2:5080".parse().unwrap()));
}

#[test]
fn a_request_by_a_dead_connection_goes_once_more_by_a_new_one() {
    let mut stage = Scripted::speaking_all();
    stage.way = Some(stream(Transport::Tcp, "10.0.0.2:5060", 3));
    let invite =
        Invite { destination: Hop::new(Transport::Tcp, stage.far), ..invite_to("sip:bob@b.example", stage.far) };
    let key = stage.endpoint.invite(stage.now, invite);
    let sent = stage.request(Method::Invite);
    stage.answer(&sent, "b");
    stage.request(Method::Ack);
    stage.endpoint.reinvite(stage.now, key, offer(1).session().to_string());
    let asked = stage.request(Method::Invite);
    assert_eq!(stage.last_hop.connection, Some(ConnectionId(3)));
    stage.endpoint.connection_lost(stage.now, ConnectionId(3));
    assert_eq!(stage.request(Method::Invite), asked, "the same transaction");
    assert_eq!(stage.last_hop, Hop::new(Transport::Tcp, stage.far));
    stage.quiet();
    // It was heard of, and is lost with the second connection.
    stage.way = Some(stream(Transport::Tcp, "10.0.0.2:5060", 4));
    stage.reply(&asked, 100, "b", &[], None);
    stage.events.clear();
    stage.endpoint.connection_lost(stage.now, ConnectionId(4));
    stage.quiet();
    let lost = [CallEvent::ConnectionLost, CallEvent::Reinvited { code: 503, sdp: None, media: None }];
    assert_eq!(stage.events, lost);
    // A connection that is refused fails the BYE; nothing is left.
    stage.endpoint.hangup(stage.now, key, 16, "x");
    stage.request(Method::Bye);
    let hop = stage.last_hop.clone();
    stage.endpoint.unreachable(stage.now, &hop);
    stage.wait(80_000);
    stage.quiet();
    assert!(stage.endpoint.is_idle());
}

#[test]
fn an_invite_by_a_pooled_connection_that_is_dead_goes_once_more() {
    let check = |is_new: bool| {
        let mut stage = Scripted::speaking_all();
        let hop = Hop::new(Transport::Tcp, stage.far);
        let invite = Invite { destination: hop.clone(), ..invite_to("sip:bob@b.example", stage.far) };
        stage.endpoint.invite(stage.now, invite);
        let Some(Output::Send { to, bytes, request: Some(request) }) = stage.endpoint.poll() else {
            panic!("an INVITE")
        };
        assert_eq!(to, hop);
        stage.endpoint.sent_over(&request, ConnectionId(7), is_new);
        stage.endpoint.connection_lost(stage.now, ConnectionId(7));
        let Some(output) = stage.endpoint.poll() else { panic!("it goes on, or fails") };
        match output {
            Output::Send { to, bytes: again, request: Some(named) } => {
                assert!(!is_new && to == hop && again == bytes && named == request);
                // The second connection was made for it: its loss ends the call.
                stage.endpoint.sent_over(&request, ConnectionId(8), true);
                stage.endpoint.connection_lost(stage.now, ConnectionId(8));
                stage.pump();
            }
            Output::Event(_, event) => {
                assert!(is_new);
                stage.events.push(event);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!((stage.end().kind, stage.end().text.as_str()), (EndKind::NotReachable, "Connection lost"));
        stage.wait(80_000);
        assert!(stage.endpoint.is_idle());
    };
    check(true);
    check(false);
}

#[test]
fn a_cancel_follows_its_invite_over_the_connection() {
    let mut pair = Pair::over(6, Transport::Tls, rings);
    let call = pair.call();
    pair.run(1_000);
    pair.alice.cancel(pair.now, call);
    pair.run(1_000);
    let cancels = requests(&pair, Party::Alice, Method::Cancel);
    let invites = requests(&pair, Party::Alice, Method::Invite);
    assert_eq!((cancels.len(), cancels[0].1.connection), (1, Some(ConnectionId(1))));
    assert_eq!(cancels[0].0.headers.top_via(), invites[0].0.headers.top_via());
    assert_eq!(ends(&pair, Party::Bob)[0].kind, EndKind::Cancelled);
    pair.run(40_000);
    assert!(pair.alice.is_idle() && pair.bob.is_idle());
}

/// Places a call of Alice with this many additional bytes of header fields, over UDP, with Bob's TCP open or not.
fn large(padding: usize, refused: bool) -> (Pair, CallKey) {
    let mut pair = Pair::over(7, Transport::Udp, answers);
    pair.refused = if refused { vec![Transport::Tcp] } else { Vec::new() };
    let mut invite = pair.invite();
    invite.headers.push(("X-Padding".into(), "x".repeat(padding)));
    let call = pair.alice.invite(pair.now, invite);
    pair.run(1_000);
    (pair, call)
}

/// Returns an offer of the size that a datagram does not hold.
fn large_offer() -> String {
    offer(1).session().to_string() + &"a=x-padding:0123456789\r\n".repeat(60)
}

#[test]
fn a_request_that_is_too_large_for_a_datagram_goes_by_tcp() {
    let (pair, _) = large(0, false);
    let size = requests(&pair, Party::Alice, Method::Invite)[0].0.to_bytes().len();
    for (padding, transport) in [(1300 - size, Transport::Udp), (1301 - size, Transport::Tcp)] {
        let (mut pair, call) = large(padding, false);
        let (invite, hop) = requests(&pair, Party::Alice, Method::Invite).remove(0);
        assert_eq!(
            (invite.to_bytes().len(), hop.transport),
            (1300 + usize::from(hop.transport.is_reliable()), transport)
        );
        assert_eq!(hop.address, listener(Party::Bob, Transport::Udp));
        assert_eq!(invite.headers.top_via().unwrap().transport, transport.name());
        assert_eq!(invite.headers.get("Contact"), Some("<sip:alice@10.0.0.1:5060>"));
        let acks = requests(&pair, Party::Alice, Method::Ack);
        // Bob's Contact names the transport that the INVITE came by.
        assert!(!acks.is_empty() && acks.iter().all(|(_, hop)| hop.transport == transport), "{acks:?}");
        assert!(pair.alice.reinvite(pair.now, call, large_offer()));
        pair.run(1_000);
        let again = requests(&pair, Party::Alice, Method::Invite).remove(1);
        assert_eq!((via_of(&again.0).as_str(), again.1.transport), ("TCP 10.0.0.1:5060", Transport::Tcp));
        assert!(pair.of(Party::Alice).iter().any(|e| matches!(e, CallEvent::Reinvited { code: 200, .. })));
        pair.alice.hangup(pair.now, call, 16, "x");
        pair.run(1_000);
        assert_eq!(requests(&pair, Party::Alice, Method::Bye)[0].1.transport, transport);
        assert_eq!(ends(&pair, Party::Bob).len(), 1);
        pair.run(80_000);
        assert!(pair.alice.is_idle() && pair.bob.is_idle());
    }
}

#[test]
fn where_tcp_is_refused_large_requests_fall_back_to_datagrams() {
    let (mut pair, call) = large(600, true);
    let invites = requests(&pair, Party::Alice, Method::Invite);
    let ways: Vec<_> = invites.iter().map(|(invite, hop)| (via_of(invite), hop.transport)).collect();
    let (tcp, udp) = ("TCP 10.0.0.1:5060".to_owned(), "UDP 10.0.0.1:5060".to_owned());
    assert_eq!(ways, [(tcp, Transport::Tcp), (udp, Transport::Udp)]);
    let branch = |at: usize| invites[at].0.headers.top_via().unwrap().branch().to_owned();
    assert_eq!((branch(0), invites[0].0.headers.cseq()), (branch(1), invites[1].0.headers.cseq()));
    assert!(pair.of(Party::Alice).iter().any(|e| matches!(e, CallEvent::Answered { .. })), "{:?}", pair.events);
    // The call has learnt it.
    assert!(pair.alice.reinvite(pair.now, call, large_offer()));
    pair.run(1_000);
    assert!(pair.of(Party::Alice).iter().any(|e| matches!(e, CallEvent::Reinvited { code: 200, .. })));
    assert_eq!(pair.messages.iter().filter(|(_, hop, _)| hop.transport == Transport::Tcp).count(), 1);

    // A call whose INVITE was small learns it from its re-INVITE and from other requests, which are repeated then as
    // datagrams are.
    for update in [false, true] {
        let (mut pair, call) = large(0, true);
        let asked = if update {
            pair.alice.update(pair.now, call, Some(large_offer()))
        } else {
            pair.alice.reinvite(pair.now, call, large_offer())
        };
        assert!(asked);
        pair.run(15);
        pair.loss = 1.0;
        pair.run(400);
        pair.loss = 0.0;
        pair.run(2_000);
        let method = if update { Method::Update } else { Method::Invite };
        let asked = requests(&pair, Party::Alice, method);
        let ways: Vec<_> = asked.iter().map(|(_, hop)| hop.transport.name()).collect();
        assert_eq!(ways[usize::from(!update)..], ["TCP", "UDP", "UDP"], "update: {update}");
        let code = |e: &&CallEvent| match e {
            CallEvent::Reinvited { code, .. } | CallEvent::Updated { code, .. } => Some(*code),
            _ => None,
        };
        assert_eq!(pair.of(Party::Alice).iter().filter_map(code).collect::<Vec<_>>(), [200], "update: {update}");
    }
}

#[test]
fn without_tcp_large_requests_go_by_datagram() {
    let mut stage = Scripted::new();
    let mut invite = invite_to("sip:bob@b.example", stage.far);
    invite.headers.push(("X-Padding".into(), "x".repeat(3_000)));
    stage.endpoint.invite(stage.now, invite);
    assert_eq!(via_of(&stage.request(Method::Invite)), "UDP 10.0.0.1:5060");
    assert_eq!(stage.last_hop, Hop::udp(stage.far));
}

#[test]
fn a_large_ack_goes_by_tcp_where_the_invite_went_so() {
    let (mut pair, _) = large(0, false);
    let mut invite = pair.invite();
    invite.sdp = String::new();
    invite.headers.push(("X-Padding".into(), "x".repeat(1_000)));
    let call = pair.alice.invite(pair.now, invite);
    pair.script = |bob, now, call, event| {
        if let CallEvent::Incoming { sdp: None, .. } = event {
            bob.answer(now, call, offer(2).session().to_string());
        }
    };
    pair.run(1_000);
    let answer = crate::sdp::negotiate(&offer(2).session().to_string(), &offer(1)).unwrap().0.to_string();
    assert!(pair.alice.answer_offer(pair.now, call, answer + &"a=x-padding:0123456789\r\n".repeat(60)));
    pair.run(1_000);
    let (ack, hop) = requests(&pair, Party::Alice, Method::Ack).pop().unwrap();
    assert_eq!((via_of(&ack).as_str(), hop.transport), ("TCP 10.0.0.1:5060", Transport::Tcp));
    assert!(matches!(pair.of(Party::Bob).last(), Some(CallEvent::Confirmed { sdp: Some(_) })), "{:?}", pair.events);
}

#[test]
fn a_sips_address_is_called_over_tls_alone() {
    let text = "A sips: address is called over TLS only, and no TLS address is known for it";
    let hop = |transport| Hop::new(transport, "10.0.0.2:5061".parse().unwrap());
    for (alternatives, goes) in [(vec![Transport::Tcp], false), (vec![Transport::Tcp, Transport::Tls], true)] {
        let mut stage = Scripted::speaking_all();
        let alternatives = alternatives.into_iter().map(hop).collect();
        let invite = Invite { alternatives, ..invite_to("sips:bob@b.example", stage.far) };
        stage.endpoint.invite(stage.now, invite);
        if goes {
            stage.request(Method::Invite);
            assert_eq!(stage.last_hop, hop(Transport::Tls));
        }
        stage.quiet();
        let end = stage.events.last().cloned();
        let expect = CallEnd::new(EndKind::NotReachable, text);
        assert_eq!(end, (!goes).then_some(CallEvent::Ended(expect)));
    }
}

#[test]
fn a_sips_call_is_redirected_to_sips_alone() {
    let check = |target: &str, contact: &str, found: Transport, expect: Result<&str, &str>| {
        let mut stage = Scripted::speaking_all();
        let tls = Hop::new(Transport::Tls, "10.0.0.2:5061".parse().unwrap());
        let key = stage.endpoint.invite(stage.now, Invite { destination: tls, ..invite_to(target, stage.far) });
        let invite = stage.request(Method::Invite);
        stage.reply(&invite, 302, "b", &[("Contact", contact)], None);
        stage.request(Method::Ack);
        if let Some(CallEvent::Redirected { target }) = stage.events.last() {
            let address = target.socket().unwrap_or(stage.far);
            stage.endpoint.take_destinations(stage.now, key, [Hop::new(found, address)]);
            stage.pump();
        }
        match expect {
            Ok(own) => assert_eq!(stage.request(Method::Invite).headers.get("Contact"), Some(own), "{contact}"),
            Err(text) => assert_eq!(stage.end().text, text, "{contact}"),
        }
    };
    let no_tls = "A sips: address is called over TLS only, and no TLS address is known for it";
    let (sip, sips) = ("sip:bob@b.example", "sips:bob@b.example");
    check(sips, "<sips:bob@10.0.0.7>", Transport::Tls, Ok("<sips:alice@10.0.0.1:5061>"));
    check(sips, "<sips:bob@10.0.0.7>", Transport::Tcp, Err(no_tls));
    let plain = "Redirected from a sips: address to one without TLS";
    check(sips, "<sip:bob@10.0.0.7;transport=tls>", Transport::Tls, Err(plain));
    check(sip, "<sips:bob@10.0.0.7>", Transport::Tls, Ok("<sips:alice@10.0.0.1:5061>"));
    check(sip, "<sip:bob@10.0.0.7;transport=tcp>", Transport::Tcp, Ok("<sip:alice@10.0.0.1:5070;transport=tcp>"));
    // Each target is asked for, also where the call went already.
    check(sip, "<sip:bob@10.0.0.2:5061;transport=tcp>", Transport::Tcp, Ok("<sip:alice@10.0.0.1:5070;transport=tcp>"));
    check(sip, "<sip:bob2@b.example>", Transport::Udp, Ok("<sip:alice@10.0.0.1:5060>"));
    check(sip, "<sip:bob2@b.example>", Transport::Tls, Ok("<sip:alice@10.0.0.1:5061;transport=tls>"));
}

#[test]
fn addresses_name_their_transport_and_port() {
    let check = |text: &str, transport, socket: &str| {
        let uri = Uri::parse(text).unwrap();
        assert_eq!((uri.transport(), uri.socket()), (transport, socket.parse().ok()), "{text}");
    };
    check("sip:a@10.0.0.1", None, "10.0.0.1:5060");
    check("sip:a@10.0.0.1;transport=TCP", Some(Transport::Tcp), "10.0.0.1:5060");
    check("sip:a@10.0.0.1;transport=tls", Some(Transport::Tls), "10.0.0.1:5061");
    check("sip:a@10.0.0.1:5070;transport=tls", Some(Transport::Tls), "10.0.0.1:5070");
    check("sips:a@10.0.0.1;transport=tcp", Some(Transport::Tls), "10.0.0.1:5061");
    check("sip:a@10.0.0.1;transport=sctp", None, "10.0.0.1:5060");
}
