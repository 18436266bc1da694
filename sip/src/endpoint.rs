//! Transactions, calls and timers of one SIP address, and the assignment of messages to them (RFC 3261 17.1.3, 17.2.3,
//! 18).
//!
//! Use: [`Endpoint::receive`], [`Endpoint::tick`] and the methods of calls, then [`Endpoint::poll`] until `None`, then
//! a wait until [`Endpoint::next_timer`]. The rules of a call are in `useragent`.

mod delivery;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

pub(crate) use self::delivery::Failure;
use crate::call::{Call, CallEvent};
use crate::capabilities::{ALLOW, CAPABILITIES, unknown_extensions};
pub use crate::config::EndpointConfig;
use crate::header::Via;
use crate::hop::Hop;
use crate::ids::{CallKey, Ids, TransactionKey};
use crate::message::{Message, Method, Request, Response};
use crate::messaging::Texts;
use crate::parse::parse;
use crate::text::split_quoted;
use crate::time::Time;
use crate::transaction::{Client, Fired, Server, TransactionEvent};

/// Most calls at a time, with those that ended lately; one more is answered 503.
pub const MAX_CALLS: usize = 20_000;

/// Most transactions of received requests at a time; requests beyond are dropped, as if lost.
pub const MAX_SERVER_TRANSACTIONS: usize = 60_000;

/// Most transactions of requests by strangers ([`Endpoint::receive_stranger`]) among them, so that others stay heard.
pub const MAX_STRANGER_TRANSACTIONS: usize = 20_000;

/// Number of calls from which on a stranger's INVITE is answered 503.
pub const MAX_CALLS_FOR_STRANGERS: usize = 10_000;

/// One thing that an endpoint hands out: bytes to send, or news of a call.
#[expect(clippy::large_enum_variant, reason = "one short queue holds them, and each is taken out at once")]
#[derive(Clone, PartialEq)]
pub enum Output {
    /// Message for the caller of this library to send.
    Send {
        /// Place that it goes to: by its connection while that is open, else by another one to its address.
        to: Hop,
        /// Bytes of one whole message.
        bytes: Vec<u8>,
        /// Name of its transaction where it is a request, for [`Endpoint::sent_over`].
        request: Option<Arc<str>>,
    },
    /// Event of a call, with the call's key.
    Event(CallKey, CallEvent),
}

impl fmt::Debug for Output {
    /// Shows only the first line of a message: the rest may hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Output::Send { to, bytes, .. } => {
                let line = bytes.split(|b| *b == b'\r').next().unwrap_or_default();
                write!(f, "Send({to}, {} bytes, {})", bytes.len(), String::from_utf8_lossy(line))
            }
            Output::Event(call, event) => write!(f, "Event({call:?}, {event:?})"),
        }
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Owner {
    Client(TransactionKey),
    Server(TransactionKey),
    Call(CallKey),
}

/// Transactions, dialogs and calls of one address.
pub struct Endpoint {
    pub(crate) config: EndpointConfig,
    pub(crate) ids: Ids,
    pub(crate) clients: BTreeMap<TransactionKey, Client>,
    pub(crate) servers: BTreeMap<TransactionKey, Server>,
    pub(crate) calls: BTreeMap<CallKey, Call>,
    by_call_id: HashMap<String, Vec<CallKey>>,
    timers: BTreeSet<(Time, Owner)>,
    due: HashMap<Owner, Time>,
    pub(crate) out: VecDeque<Output>,
    last_call: u64,
    /// Session interval that calls ask for, seconds.
    pub(crate) session_s: Option<u32>,
    /// Addresses at which other places see this side.
    pub(crate) seen: Vec<(Hop, SocketAddr)>,
    /// True while a stranger's message is handled.
    is_stranger: bool,
    /// Number of server transactions that strangers began.
    strangers: usize,
    pub(crate) texts: Texts,
}

impl Endpoint {
    /// Returns an endpoint without calls.
    pub fn new(config: EndpointConfig) -> Endpoint {
        Endpoint {
            ids: Ids::new(config.seed),
            config,
            clients: BTreeMap::new(),
            servers: BTreeMap::new(),
            calls: BTreeMap::new(),
            by_call_id: HashMap::new(),
            timers: BTreeSet::new(),
            due: HashMap::new(),
            out: VecDeque::new(),
            last_call: 0,
            session_s: None,
            seen: Vec::new(),
            is_stranger: false,
            strangers: 0,
            texts: Texts::default(),
        }
    }

    /// Takes one whole message that came from `from`. Bytes that are not SIP are ignored.
    pub fn receive(&mut self, now: Time, from: Hop, message: &[u8]) {
        match parse(message) {
            Ok(Message::Request(request)) => self.request(now, from, request),
            Ok(Message::Response(response)) => self.response(now, &from, response),
            Err(_) => {}
        }
    }

    /// Takes one whole message of somebody who has nothing to do with a call and is not expected. What strangers begin
    /// takes a part of the transactions and calls at most.
    pub fn receive_stranger(&mut self, now: Time, from: Hop, message: &[u8]) {
        self.is_stranger = true;
        self.receive(now, from, message);
        self.is_stranger = false;
    }

    /// Runs every timer that is due.
    pub fn tick(&mut self, now: Time) {
        while let Some((at, owner)) = self.timers.first().cloned() {
            if at > now {
                break;
            }
            self.timers.pop_first();
            self.due.remove(&owner);
            match owner {
                Owner::Client(key) => self.client_timer(now, key),
                Owner::Server(key) => self.server_timer(now, key),
                Owner::Call(key) => self.call_timer(now, key),
            }
        }
    }

    /// Returns the time at which `tick` is wanted next; `None` when nothing waits.
    pub fn next_timer(&self) -> Option<Time> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Returns the next output, in order; `None` when there is none.
    pub fn poll(&mut self) -> Option<Output> {
        self.out.pop_front()
    }

    /// Returns the Call-ID of a call that is not forgotten yet.
    pub fn call_id(&self, call: CallKey) -> Option<&str> {
        self.calls.get(&call).map(|c| c.call_id.as_str())
    }

    /// True when nothing is left to finish: no call, no transaction.
    pub fn is_idle(&self) -> bool {
        self.calls.is_empty() && self.clients.is_empty() && self.servers.is_empty()
    }

    // --- for the user agent
    // ---------------------------------------------------------------------------------------------

    pub(crate) fn event(&mut self, call: CallKey, event: CallEvent) {
        self.out.push_back(Output::Event(call, event));
    }

    pub(crate) fn send(&mut self, to: Hop, bytes: Vec<u8>) {
        self.out.push_back(Output::Send { to, bytes, request: None });
    }

    /// Sends the request of a client transaction, for the first time or again.
    pub(crate) fn send_client(&mut self, key: &TransactionKey) {
        let Some(client) = self.clients.get(key) else { return };
        let (to, bytes) = (client.to.clone(), client.bytes.clone());
        self.out.push_back(Output::Send { to, bytes, request: Some(key.clone()) });
    }

    /// Returns a name that no call or text has had.
    pub(crate) fn new_key(&mut self) -> CallKey {
        self.last_call += 1;
        CallKey(self.last_call)
    }

    pub(crate) fn insert_call(&mut self, call: Call) -> CallKey {
        let key = self.new_key();
        self.by_call_id.entry(call.call_id.clone()).or_default().push(key);
        self.calls.insert(key, call);
        key
    }

    pub(crate) fn forget_call(&mut self, key: CallKey) {
        let Some(call) = self.calls.remove(&key) else { return };
        if let Some(keys) = self.by_call_id.get_mut(&call.call_id) {
            keys.retain(|k| *k != key);
            if keys.is_empty() {
                self.by_call_id.remove(&call.call_id);
            }
        }
    }

    /// Returns the calls with this Call-ID (two, when an endpoint calls itself).
    pub(crate) fn calls_of(&self, call_id: &str) -> Vec<CallKey> {
        self.by_call_id.get(call_id).cloned().unwrap_or_default()
    }

    pub(crate) fn call_changed(&mut self, key: CallKey) {
        self.reschedule(Owner::Call(key));
    }

    /// Records that a CANCEL was sent for this INVITE.
    pub(crate) fn client_cancelled(&mut self, now: Time, key: &TransactionKey) {
        if let Some(client) = self.clients.get_mut(key) {
            client.cancelled(now);
            self.reschedule(Owner::Client(key.clone()));
        }
    }

    /// Sends a response; the first final one ends the transaction. Returns the bytes and where they went.
    pub(crate) fn send_response(
        &mut self,
        now: Time,
        key: &TransactionKey,
        mut response: Response,
    ) -> Option<(Vec<u8>, Hop)> {
        let server = self.servers.get_mut(key).filter(|s| s.open())?;
        response.headers.push("Server", self.config.user_agent.clone());
        let bytes = response.to_bytes();
        server.send(now, response.code, bytes.clone());
        let to = server.to.clone();
        self.send(to.clone(), bytes.clone());
        self.reschedule(Owner::Server(key.clone()));
        Some((bytes, to))
    }

    /// Answers a request that belongs to no call.
    pub(crate) fn reply(
        &mut self,
        now: Time,
        key: &TransactionKey,
        code: u16,
        phrase: &str,
        headers: &[(&'static str, &str)],
    ) {
        let tag = self.ids.next();
        let Some(server) = self.servers.get(key) else { return };
        let mut response = server.request.respond(code, phrase, &tag);
        for (name, value) in headers {
            response.headers.push(*name, *value);
        }
        self.send_response(now, key, response);
    }

    // --- messages
    // -------------------------------------------------------------------------------------------------------

    fn request(&mut self, now: Time, from: Hop, mut request: Request) {
        let Ok(via) = request.headers.top_via() else { return };
        let key = server_key(&request, &via, &request.method);
        let check = request.check();
        let to = stamp(&mut request, via.clone(), &from);
        if request.method == Method::Ack {
            let absorbed = self.servers.get_mut(&key).is_some_and(|server| server.ack(now));
            self.reschedule(Owner::Server(key));
            if !absorbed && check.is_ok() {
                self.ack_received(now, &request);
            }
            return;
        }
        if let Some(server) = self.servers.get(&key) {
            if server.repeats() {
                let (to, bytes) = (server.to.clone(), server.bytes.clone());
                self.send(to, bytes);
            }
            return;
        }
        let is_full = self.is_stranger && self.strangers >= MAX_STRANGER_TRANSACTIONS;
        if is_full || self.servers.len() >= MAX_SERVER_TRANSACTIONS {
            return;
        }
        let invite = (request.method == Method::Cancel).then(|| server_key(&request, &via, &Method::Invite));
        let mut server = Server::new(request.clone(), to);
        server.is_stranger = self.is_stranger;
        self.servers.insert(key.clone(), server);
        self.strangers += usize::from(self.is_stranger);
        match (check, invite) {
            (Err(defect), _) => {
                let (code, phrase) = defect.answer();
                self.reply(now, &key, code, phrase, &[]);
            }
            (Ok(()), Some(invite)) => self.cancel_received(now, &key, &invite, &request),
            (Ok(()), None) if request.headers.to().is_ok_and(|to| !to.tag().is_empty()) => {
                self.in_dialog(now, &key, &request);
            }
            (Ok(()), None) => self.out_of_dialog(now, &key, request, from),
        }
    }

    fn out_of_dialog(&mut self, now: Time, key: &TransactionKey, request: Request, from: Hop) {
        if let Some(unknown) = unknown_extensions(&request) {
            return self.reply(now, key, 420, "", &[("Unsupported", &unknown)]);
        }
        match request.method {
            Method::Invite if self.calls.len() >= self.most_calls() => {
                self.reply(now, key, 503, "", &[("Retry-After", "10")])
            }
            Method::Invite => self.incoming(now, key, request, from),
            Method::Options => self.reply(now, key, 200, "", &CAPABILITIES),
            Method::Message => self.text_received(now, key, request, from),
            Method::Bye | Method::Notify | Method::Update | Method::Info | Method::Refer | Method::Prack => {
                self.reply(now, key, 481, "", &[]);
            }
            Method::Other(_) => self.reply(now, key, 501, "", &[("Allow", ALLOW)]),
            _ => self.reply(now, key, 405, "", &[("Allow", ALLOW)]),
        }
    }

    /// Returns the number of calls from which on an INVITE is answered 503.
    fn most_calls(&self) -> usize {
        if self.is_stranger { MAX_CALLS_FOR_STRANGERS } else { MAX_CALLS }
    }

    fn response(&mut self, now: Time, from: &Hop, response: Response) {
        if response.check().is_err() {
            return;
        }
        let (Ok(via), Ok(cseq)) = (response.headers.top_via(), response.headers.cseq()) else { return };
        let key: TransactionKey = format!("{} {}", via.branch(), cseq.method).into();
        let Some(client) = self.clients.get_mut(&key) else {
            if cseq.method == Method::Invite && (200..300).contains(&response.code) {
                self.stray_answer(&response);
                self.late_answer(now, from, &response);
            }
            return;
        };
        client.to.follow(from);
        let heard = client.response(now, response.code);
        if heard == TransactionEvent::PassAndAck {
            client.ack = failure_ack(&client.request, &response).to_bytes();
        }
        let (call, request, to, ack) = (client.call, client.request.clone(), client.to.clone(), client.ack.clone());
        self.reschedule(Owner::Client(key.clone()));
        if matches!(heard, TransactionEvent::PassAndAck | TransactionEvent::AckAgain) {
            self.send(to, ack);
        }
        if matches!(heard, TransactionEvent::Pass | TransactionEvent::PassAndAck) {
            self.answered_over(call, &key, &response, from);
            match request.method {
                Method::Invite => self.invite_response(now, call, &key, &request, response),
                Method::Bye | Method::Notify => {
                    self.signed_again(now, call, &key, &response);
                }
                Method::Info => self.info_response(now, call, &key, &response),
                Method::Update => self.change_response(now, call, &key, &response),
                Method::Prack => self.prack_response(now, call, &key, &response),
                Method::Message => self.text_response(now, call, &response),
                _ => {}
            }
        }
    }

    // --- timers
    // ---------------------------------------------------------------------------------------------------------

    fn client_timer(&mut self, now: Time, key: TransactionKey) {
        let Some(client) = self.clients.get_mut(&key) else { return };
        match client.timer(now) {
            Fired::Nothing => {}
            Fired::Repeat => self.send_client(&key),
            Fired::TimedOut => {
                let (call, method) = (client.call, client.request.method.clone());
                self.clients.remove(&key);
                self.request_failed(now, call, &key, &method, Failure::TimedOut);
            }
            Fired::Gone => {
                self.clients.remove(&key);
            }
        }
        self.reschedule(Owner::Client(key));
    }

    fn server_timer(&mut self, now: Time, key: TransactionKey) {
        let Some(server) = self.servers.get_mut(&key) else { return };
        match server.timer(now) {
            Fired::Nothing => {}
            Fired::Repeat => {
                let (to, bytes) = (server.to.clone(), server.bytes.clone());
                self.send(to, bytes);
            }
            Fired::TimedOut | Fired::Gone => {
                self.strangers -= usize::from(server.is_stranger);
                self.servers.remove(&key);
            }
        }
        self.reschedule(Owner::Server(key));
    }

    fn reschedule(&mut self, owner: Owner) {
        let due = match &owner {
            Owner::Client(key) => self.clients.get(key).and_then(Client::due),
            Owner::Server(key) => self.servers.get(key).and_then(Server::due),
            Owner::Call(key) => self.calls.get(key).and_then(Call::due),
        };
        if let Some(old) = self.due.remove(&owner) {
            self.timers.remove(&(old, owner.clone()));
        }
        if let Some(due) = due {
            self.due.insert(owner.clone(), due);
            self.timers.insert((due, owner));
        }
    }
}

/// Returns the name of a server transaction (RFC 3261 17.2.3). Without the magic cookie the older rule holds, whose
/// fields do not differ between an INVITE and its ACK.
fn server_key(request: &Request, via: &Via, method: &Method) -> TransactionKey {
    let method = if *method == Method::Ack { &Method::Invite } else { method };
    let sent_by = (&via.host, via.port.unwrap_or(5060));
    // Alone, the cookie makes nothing unique (RFC 4475 3.2.1).
    if via.branch().strip_prefix("z9hG4bK").is_some_and(|name| !name.is_empty()) {
        return format!("{} {}:{} {method}", via.branch(), sent_by.0, sent_by.1).into();
    }
    let from = request.headers.from().map(|f| f.tag().to_owned()).unwrap_or_default();
    let seq = request.headers.cseq().map(|c| c.seq).unwrap_or_default();
    let call_id = request.headers.call_id().unwrap_or_default();
    format!("{call_id} {from} {seq} {}:{} {} {method}", sent_by.0, sent_by.1, via.branch()).into()
}

/// Writes `received` and `rport` into the topmost Via, and returns the place that responses go to (RFC 3261 18.2, RFC
/// 3581 4).
fn stamp(request: &mut Request, mut via: Via, from: &Hop) -> Hop {
    let asked = via.params.has("rport");
    let source = from.address;
    let port = via.port.unwrap_or(from.transport.default_port());
    // A new connection would go where the sender listens (RFC 3261 18.2.2).
    let by_source = asked && !from.transport.is_reliable();
    let address = SocketAddr::new(source.ip(), if by_source { source.port() } else { port });
    let to = Hop { address, ..from.clone() };
    if asked {
        via.params.set("rport", Some(source.port().to_string()));
    }
    if asked || crate::uri::parse_ip(&via.host) != Some(source.ip()) {
        via.params.set("received", Some(source.ip().to_string()));
    }
    if let Some(header) = request.headers.0.iter_mut().find(|h| h.name.eq_ignore_ascii_case("Via")) {
        let rest = split_quoted(&header.value, ',')[1..].join(", ");
        header.value = if rest.is_empty() { via.to_string() } else { format!("{via}, {rest}") };
    }
    to
}

/// Returns the ACK of a final response other than 2xx (RFC 3261 17.1.1.3).
fn failure_ack(invite: &Request, response: &Response) -> Request {
    let mut ack = hop_by_hop(invite, Method::Ack);
    ack.headers.remove("To");
    ack.headers.copy(&response.headers, "To");
    ack
}

/// Returns a CANCEL or ACK that goes exactly where `invite` went: same address, Via, From, To, Call-ID, CSeq number and
/// Route.
pub(crate) fn hop_by_hop(invite: &Request, method: Method) -> Request {
    let mut request = Request::new(method.clone(), invite.uri.clone());
    for name in ["Via", "Route", "Max-Forwards", "From", "To", "Call-ID"] {
        request.headers.copy(&invite.headers, name);
    }
    let seq = invite.headers.cseq().map(|c| c.seq).unwrap_or_default();
    request.headers.push("CSeq", format!("{seq} {method}"));
    request
}
