//! Lines in virtual time, with a provider that is scripted by the test.

mod refresh;

use super::register::LONGEST_EXPIRES_S;
use super::*;
use crate::auth::{Algorithm, Demand, Verdict};
use crate::message::Request;

/// A request as it was sent.
struct Sent {
    at_s: u64,
    to: Hop,
    request: Request,
}

/// Answer of the provider to a request: status and header fields; `None`: silence.
type Script = fn(&mut Stage, &Hop, &Request) -> Option<(u16, Vec<(&'static str, String)>)>;

struct Stage {
    line: Line,
    now: Time,
    script: Script,
    sent: Vec<Sent>,
    pings: Vec<u64>,
    /// Places that look-ups find, and what was looked up.
    found: Result<Vec<Hop>, String>,
    located: Vec<String>,
    /// Address that the provider sees; `None`: the one that the request names.
    seen: Option<&'static str>,
    /// Connection by which answers come.
    connection: Option<ConnectionId>,
}

fn hop(text: &str) -> Hop {
    Hop::udp(text.parse().unwrap())
}

fn account(expires_s: Option<u32>, keepalive_s: u32) -> Account {
    Account {
        host: Uri::parse("sip:carrier.example").unwrap(),
        proxy: None,
        user: "ringer".into(),
        domain: "desk.example".into(),
        credentials: Some(Credentials { username: "ringer".into(), password: "secret".into() }),
        expires_s,
        keepalive_s,
        instance: "urn:uuid:00000000-0000-1000-8000-000000000001".into(),
        reg_id: 1,
        local: Places { udp: "10.0.0.1:5060".parse().unwrap(), tcp: None, tls: None },
        is_advertised: false,
        user_agent: "t".into(),
    }
}

impl Stage {
    fn new(account: Account, script: Script) -> Stage {
        let found = Ok(vec![hop("192.0.2.1:5060")]);
        Stage {
            line: Line::new(Time(0), account, 7),
            now: Time(0),
            script,
            sent: Vec::new(),
            pings: Vec::new(),
            found,
            located: Vec::new(),
            seen: None,
            connection: None,
        }
    }

    fn registering(script: Script) -> Stage {
        Stage::new(account(Some(600), 0), script)
    }

    /// Runs for this many seconds of virtual time.
    fn run(&mut self, seconds: u64) {
        let end = self.now + Duration::from_secs(seconds);
        loop {
            self.drain();
            let Some(next) = self.line.next_timer().filter(|at| *at <= end) else { break };
            self.now = next.max(self.now);
            self.line.tick(self.now);
        }
        self.now = end;
    }

    fn drain(&mut self) {
        while let Some(output) = self.line.poll() {
            let (to, bytes) = match output {
                LineOutput::Locate(uri) => {
                    self.located.push(uri.to_string());
                    let found = self.found.clone();
                    self.line.take_places(self.now, &uri, found);
                    continue;
                }
                LineOutput::Send { to, bytes } => (to, bytes),
            };
            let at_s = self.now.0 / 1_000_000_000;
            let Ok(Message::Request(request)) = parse(&bytes) else {
                assert_eq!(bytes, PING);
                self.pings.push(at_s);
                continue;
            };
            self.sent.push(Sent { at_s, to: to.clone(), request: request.clone() });
            let script = self.script;
            if let Some((code, headers)) = script(self, &to, &request) {
                self.answer(&to, &request, code, &headers);
            }
        }
    }

    fn answer(&mut self, to: &Hop, request: &Request, code: u16, headers: &[(&'static str, String)]) {
        let mut response = request.respond(code, "", "far");
        if let Some(seen) = self.seen.map(|seen| seen.parse::<SocketAddr>().unwrap()) {
            let mut via = request.headers.top_via().unwrap();
            via.params.set("rport", Some(seen.port().to_string()));
            via.params.set("received", Some(seen.ip().to_string()));
            response.headers.set("Via", via.to_string());
        }
        for (name, value) in headers {
            response.headers.push(*name, value.clone());
        }
        let from = Hop { connection: self.connection, ..to.clone() };
        assert!(self.line.receive(self.now, &from, &response.to_bytes()), "it is the line's");
    }

    fn standing(&self) -> (Standing, Option<&str>) {
        let state = self.line.registration().unwrap();
        (state.standing, state.error.as_deref())
    }

    /// Returns the seconds at which requests of this method were sent, without retransmissions.
    fn times(&self, method: Method) -> Vec<u64> {
        let mut branches = Vec::new();
        let new = self.sent.iter().filter(|sent| sent.request.method == method).filter(|sent| {
            let branch = sent.request.headers.top_via().unwrap().branch().to_owned();
            let is_new = !branches.contains(&branch);
            branches.push(branch);
            is_new
        });
        new.map(|sent| sent.at_s).collect()
    }
}

/// Grants what the Contact that stays asks for.
fn grant(_: &mut Stage, _: &Hop, request: &Request) -> Option<(u16, Vec<(&'static str, String)>)> {
    let contacts = request.headers.list("Contact").into_iter().filter(|contact| !contact.ends_with("expires=0"));
    Some((200, contacts.map(|contact| ("Contact", contact.to_owned())).collect()))
}

/// Demands digest with a nonce that is new for each request without right credentials.
fn challenge(
    stage: &mut Stage,
    to: &Hop,
    request: &Request,
    demand: &Demand,
) -> Option<(u16, Vec<(&'static str, String)>)> {
    let nonce = stage.sent.len().to_string();
    // A nonce lives for 100 s.
    let now_s = stage.now.0 / 1_000_000_000;
    let made = |nonce: &str| nonce.parse::<usize>().ok().map(|at| stage.sent[at - 1].at_s);
    let fresh = |nonce: &str| made(nonce).is_some_and(|made_s| now_s < made_s + 100);
    match demand.verify(&request.headers, request.method.as_str(), &request.body, fresh) {
        Verdict::Accepted => grant(stage, to, request),
        verdict => Some((if demand.proxy { 407 } else { 401 }, demand.challenges(&nonce, verdict == Verdict::Stale))),
    }
}

fn silence(_: &mut Stage, _: &Hop, _: &Request) -> Option<(u16, Vec<(&'static str, String)>)> {
    None
}

#[test]
fn a_registration_is_refreshed_before_its_end_with_every_digest() {
    let scripts: [Script; 3] = [
        |stage, to, request| {
            let demand = Demand { algorithms: vec![Algorithm::Md5], ..Demand::new("desk", "ringer", "secret") };
            challenge(stage, to, request, &demand)
        },
        |stage, to, request| {
            let demand = Demand { algorithms: vec![Algorithm::Sha256], ..Demand::new("desk", "ringer", "secret") };
            challenge(stage, to, request, &demand)
        },
        |stage, to, request| {
            challenge(stage, to, request, &Demand { proxy: true, ..Demand::new("desk", "ringer", "secret") })
        },
    ];
    for script in scripts {
        let mut stage = Stage::registering(script);
        stage.run(3600);
        assert_eq!(stage.standing(), (Standing::Up, None));
        let first = &stage.sent[0].request;
        assert_eq!(first.uri, "sip:carrier.example");
        assert_eq!(first.headers.get("To"), Some("<sip:ringer@desk.example>"));
        let contact = first.headers.get("Contact").unwrap();
        assert!(contact.starts_with("<sip:ringer@10.0.0.1:5060;ob>;reg-id=1;+sip.instance=\"<urn:uuid:"), "{contact}");
        let times = stage.times(Method::Register);
        // Each refresh is one with an old nonce and one with a new one.
        let begun: Vec<u64> = times.iter().step_by(2).copied().collect();
        assert_eq!(times.len(), 2 * begun.len(), "{times:?}");
        assert!(begun.windows(2).all(|two| (500..=560).contains(&(two[1] - two[0]))), "{begun:?}");
        let ids: Vec<_> = stage.sent.iter().map(|sent| sent.request.headers.call_id().unwrap()).collect();
        assert!(ids.iter().all(|id| *id == ids[0]));
        let numbers: Vec<_> = stage.sent.iter().map(|sent| sent.request.headers.cseq().unwrap().seq).collect();
        assert!(numbers.windows(2).all(|two| two[1] == two[0] + 1), "{numbers:?}");
    }
}

#[test]
fn wrong_credentials_are_tried_once_in_each_interval() {
    for proxy in [false, true] {
        let script: Script = match proxy {
            false => |stage, to, request| challenge(stage, to, request, &Demand::new("desk", "ringer", "other")),
            true => |stage, to, request| {
                challenge(stage, to, request, &Demand { proxy: true, ..Demand::new("desk", "ringer", "other") })
            },
        };
        let mut stage = Stage::registering(script);
        stage.run(24 * 3600);
        let (standing, error) = stage.standing();
        assert_eq!(standing, Standing::Down);
        assert!(error.is_some_and(|error| error.starts_with("the credentials were refused: 40")), "{error:?}");
        // One without credentials and one with them, each ten minutes.
        assert_eq!(stage.sent.len(), 2 * (1 + 24 * 6));
    }
    let mut stage = Stage::registering(|_, _, _| Some((403, Vec::new())));
    stage.run(24 * 3600);
    assert_eq!(stage.standing(), (Standing::Down, Some("the registrar refused: 403 Forbidden")));
    assert_eq!(stage.sent.len(), 1 + 24 * 6);
}

#[test]
fn a_registrar_that_wants_longer_intervals_gets_them() {
    let mut stage = Stage::registering(|stage, to, request| {
        let contact = request.headers.get("Contact").unwrap();
        match contact.ends_with("expires=1800") {
            true => grant(stage, to, request),
            false => Some((423, vec![("Min-Expires", "1800".into())])),
        }
    });
    stage.run(1000);
    assert_eq!((stage.standing().0, stage.sent.len()), (Standing::Up, 2));
    // The next ones ask for that at once.
    stage.run(1000);
    assert_eq!(stage.sent.len(), 3);
    for least in ["", "x", "0", "600", "604801", "99999999999"] {
        let mut stage = Stage::registering(silence);
        stage.run(1);
        let request = stage.sent[0].request.clone();
        stage.answer(&hop("192.0.2.1:5060"), &request, 423, &[("Min-Expires", least.into())]);
        stage.run(500);
        assert_eq!((stage.standing().0, stage.times(Method::Register).len()), (Standing::Down, 1), "{least}");
    }
}

#[test]
fn waits_grow_to_half_an_hour_while_nobody_answers() {
    let mut stage = Stage::registering(silence);
    stage.run(24 * 3600);
    let (standing, error) = stage.standing();
    assert_eq!((standing, error), (Standing::Down, Some("UDP 192.0.2.1:5060 did not answer")));
    let times = stage.times(Method::Register);
    // Each attempt takes 32 s.
    let waits: Vec<u64> = times.windows(2).map(|two| two[1] - two[0] - 32).collect();
    let bounds = [30..=60, 60..=120, 120..=240, 240..=480, 480..=960, 900..=1800, 900..=1800];
    assert!(bounds.iter().zip(&waits).all(|(bound, wait)| bound.contains(wait)), "{waits:?}");
    assert!(waits[6..].iter().all(|wait| (900..=1800).contains(wait)), "{waits:?}");
}

#[test]
fn another_place_is_tried_and_kept() {
    for is_silent in [true, false] {
        let script: Script = match is_silent {
            true => |stage, to, request| if *to == hop("192.0.2.1:5060") { None } else { grant(stage, to, request) },
            false => |stage, to, request| match *to == hop("192.0.2.1:5060") {
                true => Some((503, Vec::new())),
                false => grant(stage, to, request),
            },
        };
        let mut stage = Stage::registering(script);
        stage.found = Ok(vec![hop("192.0.2.1:5060"), hop("192.0.2.2:5060")]);
        stage.run(1000);
        assert_eq!(stage.standing().0, Standing::Up);
        let last = stage.sent.last().unwrap();
        assert_eq!(last.to, hop("192.0.2.2:5060"));
        let times = stage.times(Method::Register);
        assert_eq!((times[1], times.len()), (if is_silent { 8 } else { 0 }, 3), "the refresh goes there at once");
        assert_eq!(stage.line.flow().map(|(flow, _)| flow.clone()), Some(hop("192.0.2.2:5060")));
    }
}

#[test]
fn a_registrar_that_moves_is_followed() {
    // By DNS.
    let mut stage = Stage::registering(grant);
    stage.run(10);
    stage.found = Ok(vec![hop("192.0.2.9:5060")]);
    stage.run(600);
    assert_eq!(stage.sent.last().map(|sent| sent.to.clone()), Some(hop("192.0.2.9:5060")));
    // The name servers are silent: it is where it was.
    stage.found = Err("no answer".into());
    stage.run(600);
    assert_eq!((stage.sent.len(), stage.standing().0), (3, Standing::Up));
    // By a redirection, which is forgotten when nobody is there.
    let mut stage = Stage::registering(|stage, to, request| match stage.located.last().map(String::as_str) {
        Some("sip:new.example") => grant(stage, to, request),
        _ => Some((301, vec![("Contact", "<sip:ringer@new.example>".into())])),
    });
    stage.run(1200);
    assert_eq!(stage.located, ["sip:carrier.example", "sip:new.example", "sip:new.example", "sip:new.example"]);
    assert_eq!(stage.standing().0, Standing::Up);
    stage.script = |_, _, _| Some((500, Vec::new()));
    stage.run(1200);
    assert!(stage.located.iter().filter(|uri| *uri == "sip:carrier.example").count() > 1, "{:?}", stage.located);
    // A circle ends.
    let mut stage = Stage::registering(|_, _, _| Some((302, vec![("Contact", "sip:x.example".into())])));
    stage.run(500);
    assert_eq!((stage.sent.len(), stage.standing().0), (4, Standing::Down));
}

#[test]
fn hosts_that_are_not_found_are_looked_for_again() {
    let mut stage = Stage::registering(grant);
    stage.found = Err("the host has no address".into());
    stage.run(10);
    assert_eq!(stage.standing(), (Standing::Down, Some("the host has no address")));
    stage.found = Ok(vec![hop("192.0.2.1:5060")]);
    stage.run(60);
    assert_eq!(stage.standing(), (Standing::Up, Some("the host has no address")));
    // Also where nothing is sent: calls come from there.
    let mut stage = Stage::new(account(None, 0), grant);
    stage.found = Err("the host has no address".into());
    stage.run(10);
    assert_eq!(stage.line.places().count(), 0);
    stage.found = Ok(vec![hop("192.0.2.1:5060")]);
    stage.run(600);
    assert_eq!((stage.line.places().count(), stage.located.len(), stage.sent.len()), (1, 3, 0));
}

#[test]
fn a_lost_connection_is_made_again_and_not_in_a_circle() {
    let tcp = Hop::new(Transport::Tcp, "192.0.2.1:5060".parse().unwrap());
    let mut stage = Stage::registering(grant);
    stage.found = Ok(vec![tcp]);
    stage.connection = Some(ConnectionId(1));
    stage.run(200);
    assert_eq!(stage.line.flow().unwrap().0.connection, Some(ConnectionId(1)));
    stage.connection = Some(ConnectionId(2));
    stage.line.connection_lost(stage.now, ConnectionId(1), "it was closed");
    assert_eq!(stage.standing(), (Standing::Down, Some("it was closed")));
    stage.run(1);
    assert_eq!((stage.standing().0, stage.times(Method::Register)), (Standing::Up, vec![0, 200]));
    // One that is closed after each registration is a failure, which does not count up alone because it answers.
    for connection in 2..12 {
        stage.connection = Some(ConnectionId(connection + 1));
        stage.line.connection_lost(stage.now, ConnectionId(connection), "it was closed");
        stage.run(61);
    }
    let times = stage.times(Method::Register);
    assert!(times.windows(2).all(|two| two[1] - two[0] >= 30), "{times:?}");
    // The connection of others is none of its business.
    stage.line.connection_lost(stage.now, ConnectionId(99), "it was closed");
    assert_eq!(stage.standing().0, Standing::Up);
}

#[test]
fn a_request_on_a_dead_connection_is_sent_once_more() {
    let tcp = Hop::new(Transport::Tcp, "192.0.2.1:5060".parse().unwrap());
    let mut stage = Stage::registering(grant);
    (stage.found, stage.connection) = (Ok(vec![tcp]), Some(ConnectionId(1)));
    stage.run(1);
    stage.script = silence;
    while stage.sent.len() < 2 {
        stage.run(1);
    }
    stage.script = grant;
    stage.connection = Some(ConnectionId(2));
    stage.line.connection_lost(stage.now, ConnectionId(1), "it was closed");
    stage.run(1);
    assert_eq!((stage.sent.len(), stage.standing().0), (3, Standing::Up));
    assert_eq!(stage.sent[1].request, stage.sent[2].request);
}

#[test]
fn the_contact_is_where_the_registrar_sees_this_side() {
    // Learned from the challenge.
    let mut stage =
        Stage::registering(|stage, to, request| challenge(stage, to, request, &Demand::new("d", "ringer", "secret")));
    stage.seen = Some("203.0.113.5:40000");
    stage.run(10);
    let contacts: Vec<_> = stage.sent.iter().map(|sent| sent.request.headers.list("Contact").join(",")).collect();
    assert_eq!(contacts.len(), 2, "{contacts:?}");
    assert!(contacts[1].starts_with("<sip:ringer@203.0.113.5:40000;ob>"), "{contacts:?}");
    let seen = stage.line.flow().and_then(|(_, seen)| seen);
    assert_eq!(seen, "203.0.113.5:40000".parse().ok());
    // Learned from the answer: registered again, the old one out.
    let mut stage = Stage::registering(grant);
    stage.seen = Some("203.0.113.5:40000");
    stage.run(10);
    assert_eq!(stage.sent.len(), 2);
    let contacts = stage.sent[1].request.headers.list("Contact");
    assert_eq!(contacts[0], "<sip:ringer@10.0.0.1:5060;ob>;expires=0");
    assert!(contacts[1].starts_with("<sip:ringer@203.0.113.5:40000;ob>;reg-id=1"), "{contacts:?}");
    // A NAT that moves with each request is not followed for ever.
    let mut stage = Stage::registering(|stage, to, request| {
        stage.seen = Some(if stage.sent.len() % 2 == 0 { "203.0.113.5:1" } else { "203.0.113.5:2" });
        grant(stage, to, request)
    });
    stage.run(100);
    assert_eq!(stage.sent.len(), 3);
    // Calls come by the flow (RFC 5626), or the address is that of the settings.
    let mut stage = Stage::registering(|_, _, _| Some((200, vec![("Require", "outbound".into())])));
    stage.seen = Some("203.0.113.5:40000");
    stage.run(10);
    assert_eq!(stage.sent.len(), 1);
    let mut stage = Stage::new(Account { is_advertised: true, ..account(Some(600), 0) }, grant);
    stage.seen = Some("203.0.113.5:40000");
    stage.run(10);
    assert_eq!((stage.sent.len(), stage.line.flow().unwrap().1), (1, None));
}

#[test]
fn a_line_that_leaves_takes_its_registration_back() {
    let mut stage =
        Stage::registering(|stage, to, request| challenge(stage, to, request, &Demand::new("d", "ringer", "secret")));
    stage.run(150);
    let before = stage.sent.len();
    stage.line.leave(stage.now);
    assert!(!stage.line.is_over());
    stage.run(1);
    assert!(stage.line.is_over() && stage.standing().0 == Standing::Unknown);
    let last: Vec<_> = stage.sent[before..].iter().map(|sent| sent.request.headers.get("Contact").unwrap()).collect();
    assert!(last.len() == 2 && last.iter().all(|contact| contact.ends_with("expires=0")), "{last:?}");
    // Nobody answers: it is over after two seconds. Nothing is registered: at once.
    let mut stage = Stage::registering(grant);
    stage.run(1);
    stage.script = silence;
    stage.line.leave(stage.now);
    stage.run(1);
    assert!(!stage.line.is_over());
    stage.run(1);
    assert!(stage.line.is_over() && stage.line.next_timer().is_none_or(|at| at > stage.now));
    let mut stage = Stage::registering(silence);
    stage.run(1);
    stage.line.leave(stage.now);
    assert!(stage.line.is_over());
    let count = stage.sent.len();
    stage.run(3600);
    assert_eq!(stage.sent.len(), count);
}

#[test]
fn options_show_whether_the_provider_answers() {
    let mut stage = Stage::new(account(None, 30), grant);
    let standing = |stage: &Stage| stage.line.keepalive().map(|state| (state.standing, state.error.clone()));
    assert_eq!(standing(&stage), Some((Standing::Unknown, None)));
    stage.run(100);
    assert_eq!(stage.times(Method::Options), [0, 30, 60, 90]);
    assert_eq!((standing(&stage), stage.line.registration()), (Some((Standing::Up, None)), None));
    let first = &stage.sent[0].request;
    assert_eq!((first.uri.as_str(), first.headers.get("To")), ("sip:carrier.example", Some("<sip:carrier.example>")));
    stage.script = silence;
    stage.run(30);
    assert_eq!(standing(&stage), Some((Standing::Down, Some("UDP 192.0.2.1:5060 did not answer".into()))));
    let down = stage.line.keepalive().unwrap().since;
    for (code, expect) in [(503, Standing::Down), (404, Standing::Up), (405, Standing::Up), (200, Standing::Up)] {
        stage.script = silence;
        let before = stage.sent.len();
        while stage.sent.len() == before {
            stage.run(1);
        }
        let (to, request) = (stage.sent[before].to.clone(), stage.sent[before].request.clone());
        stage.answer(&to, &request, code, &[]);
        assert_eq!(stage.line.keepalive().map(|state| state.standing), Some(expect), "{code}");
        assert_eq!(stage.line.keepalive().unwrap().since == down, expect == Standing::Down);
    }
    assert!(stage.pings.is_empty());
}

#[test]
fn a_way_that_answers_no_options_is_left() {
    let mut stage = Stage::new(account(Some(3600), 30), |stage, to, request| {
        let is_dead = stage.now > Time::from_millis(100_000) && *to == hop("192.0.2.1:5060");
        if is_dead { None } else { grant(stage, to, request) }
    });
    stage.found = Ok(vec![hop("192.0.2.1:5060"), hop("192.0.2.2:5060")]);
    stage.run(180);
    assert_eq!(stage.line.flow().map(|(flow, _)| flow.clone()), Some(hop("192.0.2.2:5060")));
    assert_eq!(stage.line.keepalive().map(|state| state.standing), Some(Standing::Up));
    let last = stage.sent.iter().rfind(|sent| sent.request.method == Method::Options).unwrap();
    assert_eq!(last.to, hop("192.0.2.2:5060"));
}

#[test]
fn datagrams_keep_a_nat_open_where_options_do_not() {
    let mut stage = Stage::registering(grant);
    stage.run(300);
    assert!((10..=12).contains(&stage.pings.len()), "{:?}", stage.pings);
    for keepalive_s in [30, 31] {
        let mut stage = Stage::new(account(Some(600), keepalive_s), grant);
        stage.run(300);
        assert_eq!(stage.pings.is_empty(), keepalive_s == 30);
    }
}

#[test]
fn requests_go_through_the_outbound_proxy() {
    let proxy = Uri::parse("sip:proxy.example:5070").ok();
    let mut stage = Stage::new(Account { proxy, ..account(Some(600), 30) }, grant);
    stage.run(1);
    assert_eq!(stage.located, ["sip:proxy.example:5070"]);
    assert_eq!(stage.sent.len(), 2);
    for sent in &stage.sent {
        assert_eq!(sent.request.headers.get("Route"), Some("<sip:proxy.example:5070;lr>"));
        assert_eq!(sent.request.uri, "sip:carrier.example");
    }
}

#[test]
fn what_a_registrar_writes_is_read_with_care() {
    for (headers, expect_s) in [
        (vec![], 600),
        (vec![("Expires", "300")], 300),
        (vec![("Expires", "x")], 600),
        (vec![("Contact", "<sip:ringer@10.0.0.1:5060>;expires=200"), ("Expires", "300")], 200),
        (vec![("Contact", "<sip:other@10.0.0.1>;expires=60, <sip:ringer@10.0.0.1:5060;x>;expires=200")], 200),
        (vec![("Contact", "<sip:other@10.0.0.1>;expires=60"), ("Expires", "300")], 300),
        // Rewritten on the way: by the user, by the interval alone.
        (vec![("Contact", "<sip:ringer@203.0.113.9:1024;line=x>;expires=20")], 20),
        (vec![("Contact", "<sip:ringer@203.0.113.9:1>;expires=0, <sip:ringer@203.0.113.9:2>;expires=20")], 20),
        (vec![("Contact", "<sip:k1f9@203.0.113.9>;expires=20"), ("Contact", "<sip:k1f8@203.0.113.9>;expires=50")], 20),
        (vec![("Contact", "<sip:ringer@203.0.113.9>"), ("Expires", "8")], 8),
        (vec![("Contact", "*")], 600),
        (vec![("Contact", "<sip:ringer@10.0.0.1:5060>;expires=99999999999999")], 600),
        (vec![("Expires", "4294967295")], LONGEST_EXPIRES_S),
    ] {
        let mut stage = Stage::registering(silence);
        stage.run(1);
        let request = stage.sent[0].request.clone();
        let headers: Vec<(&'static str, String)> = headers.iter().map(|(name, text)| (*name, (*text).into())).collect();
        stage.answer(&hop("192.0.2.1:5060"), &request, 200, &headers);
        stage.run(u64::from(expect_s));
        let again = stage.times(Method::Register)[1] - 1;
        let margin = (expect_s / 10).max((expect_s / 2).min(40)).min(600);
        let expect = u64::from(expect_s - margin - margin / 4)..=u64::from(expect_s - margin);
        assert!(expect.contains(&again), "{headers:?}: {again}");
    }
    // Answers to others, and no answers at all.
    let mut stage = Stage::registering(silence);
    stage.run(1);
    let request = stage.sent[0].request.clone();
    let (to, now) = (hop("192.0.2.1:5060"), stage.now);
    let changed = |from: &str, into: &str| {
        let text = String::from_utf8(request.respond(200, "", "far").to_bytes()).unwrap();
        text.replace(from, into).into_bytes()
    };
    for bytes in [
        b"".to_vec(),
        request.to_bytes(),
        changed("1 REGISTER", "2 REGISTER"),
        changed("1 REGISTER", "1 OPTIONS"),
        changed("branch=z9hG4bK", "branch=z9hG4bKx"),
        changed("Call-ID", "X"),
    ] {
        assert!(!stage.line.receive(now, &to, &bytes), "{}", String::from_utf8_lossy(&bytes));
    }
    assert_eq!(stage.standing().0, Standing::Unknown);
}
