//! Behaviour of the whole library, one file a subject, and the scripted other side that they share.

mod branches;
mod caller;
mod calls;
mod crypto;
mod digits;
mod dtls;
mod early;
mod failover;
mod garbage;
mod login;
mod media;
mod messages;
mod notices;
mod prack;
mod races;
mod reinvite;
mod seen;
mod session;
mod streams;
mod timers;
mod torture;
mod transfer;
mod update;

use std::net::SocketAddr;
use std::time::Duration;

use crate::message::{Message, Method, Request, Response};
use crate::parse::parse;
use crate::testing::{invite_to, offer};
use crate::{CallEvent, CallKey, Endpoint, EndpointConfig, Hop, Notice, Output, Time, sdp};

/// Returns a body with this description, and the header line before it.
fn sdp_body(sdp: &str) -> String {
    format!("Content-Type: application/sdp\n\n{}", sdp.replace("\r\n", "\n"))
}

/// Returns the answer of the other side to the description in this request.
fn answer_to(request: &Request) -> String {
    sdp::negotiate(std::str::from_utf8(&request.body).unwrap(), &offer(2)).unwrap().0.to_string()
}

/// One endpoint, and another side whose every message the test writes.
struct Scripted {
    endpoint: Endpoint,
    now: Time,
    far: SocketAddr,
    /// Way by which the other side's messages come; by datagram from `far` when `None`.
    way: Option<Hop>,
    events: Vec<CallEvent>,
    notices: Vec<Notice>,
    sent: Vec<Message>,
    last_to: SocketAddr,
    last_hop: Hop,
    last_call: Option<CallKey>,
}

impl Scripted {
    fn new() -> Scripted {
        let local = "10.0.0.1:5060".parse().unwrap();
        let far = "10.0.0.2:5060".parse().unwrap();
        Scripted::with(EndpointConfig { local, tcp: None, tls: None, user_agent: "t".into(), seed: 5 }, far)
    }

    /// Returns an endpoint that speaks TCP and TLS as well.
    fn speaking_all() -> Scripted {
        let local = "10.0.0.1:5060".parse().unwrap();
        let (tcp, tls) = ("10.0.0.1:5070".parse().ok(), "10.0.0.1:5061".parse().ok());
        let far = "10.0.0.2:5060".parse().unwrap();
        Scripted::with(EndpointConfig { local, tcp, tls, user_agent: "t".into(), seed: 5 }, far)
    }

    fn with(config: EndpointConfig, far: SocketAddr) -> Scripted {
        Scripted {
            endpoint: Endpoint::new(config),
            now: Time(0),
            far,
            way: None,
            events: Vec::new(),
            notices: Vec::new(),
            sent: Vec::new(),
            last_to: far,
            last_hop: Hop::udp(far),
            last_call: None,
        }
    }

    fn from(&self) -> Hop {
        self.way.clone().unwrap_or_else(|| Hop::udp(self.far))
    }

    /// Places a call of `alice` to `sip:bob@b.example`, and returns its INVITE.
    fn calling(who: Option<(&str, &str)>) -> (Scripted, CallKey, Request) {
        let mut stage = Scripted::new();
        let mut invite = invite_to("sip:bob@b.example", stage.far);
        (invite.username, invite.password) = who.map(|(name, password)| (name.to_owned(), password.into())).unzip();
        let key = stage.endpoint.invite(stage.now, invite);
        let request = stage.request(Method::Invite);
        (stage, key, request)
    }

    /// Places a call that the other side (tag `b`) answers, and returns its INVITE.
    fn talking() -> (Scripted, CallKey, Request) {
        let (mut stage, key, invite) = Scripted::calling(None);
        stage.answer(&invite, "b");
        stage.request(Method::Ack);
        stage.events.clear();
        (stage, key, invite)
    }

    /// Receives a call of the other side (tag `b`, CSeq 1), with these header lines and with an offer or without. 100
    /// was sent.
    fn taking(headers: &str, offers: bool) -> (Scripted, CallKey) {
        let mut stage = Scripted::new();
        let body = if offers { sdp_body(&offer(2).session().to_string()) } else { "\n".into() };
        stage.caller_sends("INVITE", 1, "", &format!("{headers}{body}"));
        stage.response(100);
        stage.events.clear();
        let key = stage.last_call.expect("a call came in");
        (stage, key)
    }

    /// Receives a request of the other side that made the call (see `taking`), to this tag of this side.
    fn caller_sends(&mut self, method: &str, seq: u32, tag: &str, rest: &str) {
        let tag = if tag.is_empty() { String::new() } else { format!(";tag={tag}") };
        self.hears(&format!(
            "{method} sip:alice@10.0.0.1 SIP/2.0\nVia: SIP/2.0/UDP 10.0.0.2;branch=z9hG4bK{method}{seq};rport\n\
             From: <sip:bob@b.example>;tag=b\nTo: <sip:alice@a.example>{tag}\nCall-ID: c\nCSeq: {seq} {method}\n\
             Contact: <sip:bob@10.0.0.2>\nMax-Forwards: 70\n{rest}"
        ));
    }

    fn pump(&mut self) {
        while let Some(output) = self.endpoint.poll() {
            match output {
                Output::Send { to, bytes, .. } => {
                    self.last_to = to.address;
                    self.last_hop = to;
                    self.sent.push(parse(&bytes).expect("what is sent can be read"));
                }
                Output::Event(call, event) => {
                    self.last_call = Some(call);
                    match event {
                        CallEvent::Notice(notice) => self.notices.push(notice),
                        event => self.events.push(event),
                    }
                }
            }
        }
    }

    fn next(&mut self) -> Message {
        self.pump();
        assert!(!self.sent.is_empty(), "nothing was sent");
        self.sent.remove(0)
    }

    /// Returns the next message sent, which is this request.
    fn request(&mut self, method: Method) -> Request {
        match self.next() {
            Message::Request(request) if request.method == method => request,
            other => panic!("not {method}: {other:?}"),
        }
    }

    /// Returns the next message sent, which is this response.
    fn response(&mut self, code: u16) -> Response {
        match self.next() {
            Message::Response(response) if response.code == code => response,
            other => panic!("not {code}: {other:?}"),
        }
    }

    /// Checks that nothing more was sent.
    fn quiet(&mut self) {
        self.pump();
        assert!(self.sent.is_empty(), "{:?}", self.sent);
    }

    fn hears(&mut self, text: &str) {
        let from = self.from();
        self.endpoint.receive(self.now, from, text.replace('\n', "\r\n").as_bytes());
        self.pump();
    }

    fn reply(&mut self, request: &Request, code: u16, tag: &str, headers: &[(&'static str, &str)], sdp: Option<&str>) {
        let mut response = request.respond(code, "", tag);
        for (name, value) in headers {
            response.headers.push(*name, *value);
        }
        if let Some(sdp) = sdp {
            response.set_sdp(sdp);
        }
        let from = self.from();
        self.endpoint.receive(self.now, from, &response.to_bytes());
        self.pump();
    }

    fn answer(&mut self, invite: &Request, tag: &str) {
        let offered = String::from_utf8(invite.body.clone()).unwrap();
        let answer = sdp::negotiate(&offered, &offer(2)).unwrap().0.to_string();
        self.reply(invite, 200, tag, &[("Contact", "<sip:bob@10.0.0.2>")], Some(&answer));
    }

    /// Receives a request of the other side in the dialog that `invite` made.
    fn in_dialog(&mut self, invite: &Request, method: &str, seq: u32, rest: &str) {
        let (from, call_id) = (invite.headers.get("From").unwrap(), invite.headers.get("Call-ID").unwrap());
        let text = format!(
            "{method} sip:alice@10.0.0.1 SIP/2.0\nVia: SIP/2.0/UDP 10.0.0.2;branch=z9hG4bK{method}{seq};rport\n\
             From: <sip:bob@b.example>;tag=b\nTo: {from}\nCall-ID: {call_id}\nCSeq: {seq} {method}\n\
             Contact: <sip:bob@10.0.0.2>\nMax-Forwards: 70\n{rest}"
        );
        self.hears(&text);
    }

    /// Receives the ACK of a refusal: it has the branch of the other side's INVITE (see `in_dialog`).
    fn acknowledges_failure(&mut self, invite: &Request, seq: u32) {
        let (from, call_id) = (invite.headers.get("From").unwrap(), invite.headers.get("Call-ID").unwrap());
        self.hears(&format!(
            "ACK sip:alice@10.0.0.1 SIP/2.0\nVia: SIP/2.0/UDP 10.0.0.2;branch=z9hG4bKINVITE{seq};rport\n\
             From: <sip:bob@b.example>;tag=b\nTo: {from}\nCall-ID: {call_id}\nCSeq: {seq} ACK\n\n"
        ));
    }

    fn wait(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        while let Some(at) = self.endpoint.next_timer().filter(|at| *at <= end) {
            self.now = at;
            self.endpoint.tick(at);
        }
        self.now = end;
        self.pump();
    }

    fn end(&self) -> &crate::CallEnd {
        match self.events.last() {
            Some(CallEvent::Ended(end)) => end,
            other => panic!("not ended: {other:?}"),
        }
    }
}
