//! One request of a line until its answer: the places that are tried, its transaction, its credentials, and readers of
//! answers.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use super::{Account, State};
use crate::auth::{Challenge, Credentials};
use crate::auth::{Challenged, Login};
use crate::capabilities::ALLOW;
use crate::header::NameAddr;
use crate::hop::{ConnectionId, Hop, Transport};
use crate::ids::CallKey;
use crate::ids::Ids;
use crate::message::{Method, Request, Response};
use crate::time::Time;
use crate::transaction::{Client, Fired, TransactionEvent};
use crate::uri::{Scheme, Uri, escape_user, parse_ip};

/// Most places of one attempt.
pub(super) const MOST_PLACES: usize = 8;

/// A request that is sent again and again, each time until its answer.
pub(super) struct Errand {
    method: Method,
    call_id: String,
    tag: String,
    seq: u32,
    /// Challenges that were answered, and the credentials.
    pub login: Login,
    /// Realms whose challenges the attempt has answered.
    challenged: Challenged,
    /// Transaction of the request, until its answer.
    pub client: Option<Client>,
    /// Places that the attempt still has, in order.
    pub queue: VecDeque<Hop>,
    /// True while it waits for its places to be looked up.
    pub is_waiting: bool,
    /// Beginning of the next attempt.
    pub at: Option<Time>,
    /// Attempts in a row that failed.
    pub failures: u32,
    /// Standing as the answers tell it.
    pub state: State,
}

/// Meaning of a response to a request that is repeated.
pub(super) enum Reply {
    /// The request goes on.
    Nothing,
    /// The response is the final one, from this place.
    Last(Hop),
}

/// Action that a timer asks for.
pub(super) enum Tick {
    Nothing,
    /// The time of the next attempt has come.
    Begin,
    /// The bytes are sent again.
    Repeat(Hop, Vec<u8>),
    /// The place did not answer.
    TimedOut(Hop),
}

impl Errand {
    /// Returns an errand that waits for its places.
    pub(crate) fn new(now: Time, ids: &mut Ids, method: Method, credentials: Option<Credentials>) -> Errand {
        Errand {
            method,
            call_id: ids.next(),
            tag: ids.next(),
            seq: 0,
            login: Login::new(credentials),
            challenged: Challenged::new(),
            client: None,
            queue: VecDeque::new(),
            is_waiting: true,
            at: None,
            failures: 0,
            state: State { since: now, ..State::default() },
        }
    }

    /// Returns the time at which `tick` is wanted next.
    pub(crate) fn due(&self) -> Option<Time> {
        self.client.iter().filter_map(Client::due).chain(self.at).min()
    }

    /// True while an attempt is under way.
    pub(crate) fn is_open(&self) -> bool {
        self.is_waiting || self.client.is_some()
    }

    /// True if the request has credentials.
    pub(crate) fn is_signed(&self) -> bool {
        !self.challenged.is_empty()
    }

    /// True if a request without an answer has gone to `to`.
    pub(crate) fn is_sent_to(&self, to: &Hop) -> bool {
        let same = |client: &Client| (client.to.transport, client.to.address) == (to.transport, to.address);
        self.client.as_ref().is_some_and(|client| client.unanswered() && same(client))
    }

    /// Takes the connection that the request went over.
    pub(crate) fn note_connection(&mut self, connection: ConnectionId, is_new: bool) {
        if let Some(client) = self.client.as_mut().filter(|client| client.to.transport.is_reliable()) {
            client.to.connection = Some(connection);
            client.sent_again |= is_new;
        }
    }

    /// Begins an attempt with these places.
    pub(crate) fn restart(&mut self, queue: VecDeque<Hop>) {
        self.stop();
        self.queue = queue;
    }

    /// Ends the attempt, whatever came of it.
    pub(crate) fn stop(&mut self) {
        self.client = None;
        self.queue.clear();
        self.challenged.clear();
        (self.is_waiting, self.at) = (false, None);
    }

    /// Sends the request to `hop` as a new transaction that waits no longer than `limit`.
    pub(crate) fn send(
        &mut self,
        now: Time,
        account: &Account,
        ids: &mut Ids,
        contacts: Vec<String>,
        hop: Hop,
        limit: Option<Duration>,
    ) -> (Hop, Vec<u8>) {
        self.seq += 1;
        let mut request = Request::new(self.method.clone(), account.host.to_string());
        let headers = &mut request.headers;
        let via = account.local.of(hop.transport);
        headers.push("Via", format!("SIP/2.0/{} {via};branch=z9hG4bK{};rport", hop.transport, ids.next()));
        if let Some(proxy) = &account.proxy {
            headers.push("Route", route(proxy));
        }
        headers.push("Max-Forwards", "70");
        let address = format!("sip:{}@{}", escape_user(&account.user), account.domain);
        headers.push("From", format!("<{address}>;tag={}", self.tag));
        let to = if self.method == Method::Register { address } else { account.host.to_string() };
        headers.push("To", format!("<{to}>"));
        headers.push("Call-ID", self.call_id.clone());
        headers.push("CSeq", format!("{} {}", self.seq, self.method));
        for contact in contacts {
            headers.push("Contact", contact);
        }
        match self.method {
            Method::Register => headers.push("Supported", "path, outbound"),
            _ => headers.push("Accept", "application/sdp"),
        }
        headers.push("Allow", ALLOW);
        headers.push("User-Agent", account.user_agent.clone());
        self.login.sign(&mut request, ids);
        let mut client = Client::new(now, CallKey(0), request, hop);
        if let Some(limit) = limit {
            client.give_up_by(now + limit);
        }
        let sent = (client.to.clone(), client.bytes.clone());
        self.client = Some(client);
        sent
    }

    /// Takes a response; `None` where it is none to this request.
    pub(crate) fn take(&mut self, now: Time, from: &Hop, response: &Response) -> Option<Reply> {
        let cseq = response.headers.cseq().ok().filter(|cseq| cseq.method == self.method)?;
        let via = response.headers.top_via().ok()?;
        let client = self.client.as_mut()?;
        let own = client.request.headers.top_via().is_ok_and(|own| own.branch() == via.branch());
        if !own || cseq.seq != self.seq {
            return None;
        }
        client.to.follow(from);
        if client.response(now, response.code) != TransactionEvent::Pass || response.code < 200 {
            return Some(Reply::Nothing);
        }
        let to = client.to.clone();
        self.client = None;
        Some(Reply::Last(to))
    }

    /// Learns the challenges of a 401 or 407. True where the request is to be sent again: its credentials are not those
    /// that were refused.
    pub(crate) fn may_sign(&mut self, response: &Response) -> bool {
        let is_stale = Challenge::parse_all(&response.headers).iter().any(|challenge| challenge.stale);
        // Credentials for a challenge of this attempt are wrong when they are refused; older ones may just be old.
        if !self.challenged.is_empty() && !is_stale && self.is_known(response) {
            return false;
        }
        self.login.learn(response, &mut self.challenged)
    }

    /// True if a challenge of the response was answered in this attempt.
    fn is_known(&self, response: &Response) -> bool {
        let mut challenges = Challenge::parse_all(&response.headers).into_iter();
        challenges.any(|challenge| self.challenged.contains(&(challenge.proxy, challenge.realm)))
    }

    /// Runs what is due.
    pub(crate) fn tick(&mut self, now: Time) -> Tick {
        if let Some(client) = &mut self.client {
            let to = client.to.clone();
            match client.timer(now) {
                Fired::Nothing => {}
                Fired::Repeat => return Tick::Repeat(to, client.bytes.clone()),
                Fired::TimedOut | Fired::Gone => return Tick::TimedOut(to),
            }
        }
        if self.at.is_some_and(|at| at <= now) {
            self.at = None;
            return Tick::Begin;
        }
        Tick::Nothing
    }

    /// Forgets a connection that is closed: a request that waits for its answer there is sent once more, and has then
    /// failed.
    pub(crate) fn forget(&mut self, connection: ConnectionId) -> Tick {
        for hop in &mut self.queue {
            hop.forget(connection);
        }
        let Some(client) = &mut self.client else { return Tick::Nothing };
        if !client.to.forget(connection) {
            return Tick::Nothing;
        }
        if client.sent_again || !client.unanswered() {
            return Tick::TimedOut(client.to.clone());
        }
        client.sent_again = true;
        Tick::Repeat(client.to.clone(), client.bytes.clone())
    }
}

/// Returns the value of a Route header field that goes through `proxy` (RFC 3261 16.4: a loose one).
pub fn route(proxy: &Uri) -> String {
    let mut proxy = proxy.clone();
    if !proxy.params.has("lr") {
        proxy.params.0.push(("lr".to_owned(), None));
    }
    format!("<{proxy}>")
}

/// Returns the address that a response says this side's request has come from (RFC 3581 4, RFC 3261 18.2.1).
pub(super) fn seen_at(response: &Response) -> Option<SocketAddr> {
    let via = response.headers.top_via().ok()?;
    let host = via.params.get("received").and_then(parse_ip).or_else(|| parse_ip(&via.host))?;
    let port = via.params.get("rport").and_then(|port| port.parse().ok()).filter(|port| *port != 0)?;
    (!host.is_unspecified()).then_some(SocketAddr::new(host.to_canonical(), port))
}

/// Returns the interval that a registrar has granted for the Contact `uri` of this installation, in seconds. A Contact
/// that a registrar or a border controller has rewritten is known by its instance, else by its user, else any of them
/// may be it: then the shortest interval holds, so that the registration is refreshed in time.
pub(super) fn registered_for(response: &Response, uri: &str, instance: &str) -> Option<u32> {
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let contacts: Vec<NameAddr> = response.headers.list("Contact").into_iter().filter_map(NameAddr::parse).collect();
    let place = |text: &str| Uri::parse(text).ok().map(|uri| (uri.user, uri.host, uri.port));
    let own = contacts.iter().find(|contact| place(&contact.uri) == place(uri));
    let named = |contact: &&NameAddr| {
        contact.params.get("+sip.instance").is_some_and(|text| text.trim_matches(['<', '>']) == instance)
    };
    let own = own.or_else(|| contacts.iter().find(named));
    let expires = |contact: &NameAddr| contact.params.get("expires").and_then(number);
    let shortest = |user: Option<Option<String>>| {
        let is_user = |contact: &&NameAddr| {
            user.as_ref().is_none_or(|user| Uri::parse(&contact.uri).is_ok_and(|uri| uri.user == *user))
        };
        contacts.iter().filter(is_user).filter_map(expires).filter(|seconds| *seconds > 0).min()
    };
    let of_user = || shortest(Some(Uri::parse(uri).ok()?.user));
    let of_contact = own.map_or_else(of_user, expires);
    let of_header = || response.headers.get("Expires").and_then(number);
    of_contact.or_else(of_header).or_else(|| shortest(None))
}

/// Returns the registrar that a redirection names; `None` where it names none, or one without the TLS that was used.
pub(super) fn moved_to(response: &Response, transport: Transport) -> Option<Uri> {
    let contacts = response.headers.list("Contact").into_iter().filter_map(NameAddr::parse);
    let mut uris = contacts.filter_map(|contact| Uri::parse(&contact.uri).ok());
    let is_as_safe = |uri: &Uri| transport != Transport::Tls || uri.transport() == Some(Transport::Tls);
    let uri = uris.find(|uri| uri.scheme != Scheme::Tel && is_as_safe(uri))?;
    Some(Uri { user: None, password: None, headers: String::new(), ..uri })
}

/// Returns the time after which a server wants to be asked again (RFC 3261 20.33).
pub(crate) fn retry_after(response: &Response) -> Option<Duration> {
    let text = response.headers.get("Retry-After")?;
    let digits: String = text.trim().chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().map(Duration::from_secs)
}
