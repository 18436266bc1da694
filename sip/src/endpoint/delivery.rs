//! Delivery of requests: the transport of each, its Via and Contact, and places and connections that are lost (RFC 3261
//! 18.1, 18.4).

use super::{Endpoint, Owner};
use crate::hop::{ConnectionId, Hop, Transport};
use crate::ids::CallKey;
use crate::ids::TransactionKey;
use crate::message::{Method, Request};
use crate::time::Time;
use crate::transaction::Client;

/// Largest request that goes by datagram where TCP is spoken, bytes (RFC 3261 18.1.1: the path's limit is not known).
const MAX_DATAGRAM_REQUEST: usize = 1300;

/// Reason why a request has no final response.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Failure {
    /// Timer B or F expired without a final response.
    TimedOut,
    /// The request could not be delivered.
    Unreachable,
    /// The connection by which the response was to come is closed.
    ConnectionLost,
}

impl Failure {
    /// Status that stands for the failure (RFC 3261 8.1.3.1).
    pub(crate) fn code(self) -> u16 {
        if self == Failure::TimedOut { 408 } else { 503 }
    }

    /// Returns an explanation for a person.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Failure::TimedOut => "No response within 32 s",
            Failure::Unreachable => "Destination unreachable",
            Failure::ConnectionLost => "Connection lost",
        }
    }
}

impl Endpoint {
    /// Returns the topmost Via of a new request, with its branch.
    pub(crate) fn via(&mut self, transport: Transport) -> String {
        let address = self.config.address(transport);
        format!("SIP/2.0/{transport} {address};branch=z9hG4bK{};rport", self.ids.next())
    }

    /// Sends a request that begins a transaction. A Via is added on top unless the request has one (CANCEL). A request
    /// that is too large for a datagram goes by TCP where that is spoken, unless TCP was refused before in this call.
    pub(crate) fn send_request(&mut self, now: Time, call: CallKey, mut request: Request, to: Hop) -> TransactionKey {
        let is_new = request.headers.get("Via").is_none();
        if is_new {
            let via = self.via(to.transport);
            request.headers.push_first("Via", via);
        }
        request.headers.push("User-Agent", self.config.user_agent.clone());
        let branch = request.headers.top_via().map(|via| via.branch().to_owned()).unwrap_or_default();
        let key: TransactionKey = format!("{branch} {}", request.method).into();
        let mut client = Client::new(now, call, request, to);
        if is_new
            && let Some(tcp) = self.config.tcp
            && client.to.transport == Transport::Udp
            && client.bytes.len() > MAX_DATAGRAM_REQUEST
            && self.calls.get(&call).is_none_or(|call| !call.tcp_refused)
        {
            client.by_size = true;
            client.move_to(now, Hop::new(Transport::Tcp, client.to.address), tcp);
        }
        self.clients.insert(key.clone(), client);
        self.send_client(&key);
        self.note_size(&key, MAX_DATAGRAM_REQUEST);
        self.reschedule(Owner::Client(key.clone()));
        key
    }

    /// Returns the way of an ACK of `bytes` bytes that belongs to `invite`: by TCP when it is too large and the INVITE
    /// went so.
    pub(crate) fn way_of_ack(&self, invite: &Request, to: Hop, bytes: usize) -> Hop {
        let by_tcp = || invite.headers.top_via().is_ok_and(|via| via.transport == Transport::Tcp.name());
        match to.transport {
            Transport::Udp if bytes > MAX_DATAGRAM_REQUEST && by_tcp() => Hop::new(Transport::Tcp, to.address),
            _ => to,
        }
    }

    /// Reports that nothing can be delivered to `to`: ICMP port or host unreachable, connection refused or without an
    /// answer, TLS failure. Requests there that nobody answered fail. Those that went by TCP for their size alone go by
    /// datagram.
    pub fn unreachable(&mut self, now: Time, to: &Hop) {
        let dead = self.clients.iter().filter(|(_, client)| client.unanswered() && is_same(&client.to, to));
        for key in dead.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            if !self.fall_back(now, &key) {
                self.fail(now, &key, Failure::Unreachable);
            }
        }
    }

    /// Takes the connection that a request went over, by the name of its transaction
    /// ([`Output::Send`](crate::Output::Send)). `is_new`: it was opened for this request, which therefore does not go
    /// once more when the connection is closed.
    pub fn sent_over(&mut self, request: &str, connection: ConnectionId, is_new: bool) {
        if let Some(client) = self.clients.get_mut(request)
            && client.to.transport.is_reliable()
        {
            client.to.connection = Some(connection);
            client.sent_again |= is_new;
        }
    }

    /// Reports that a connection is closed. Calls that use it are told, and requests that wait for an answer by it
    /// fail. A request that went by an older connection without any response is sent once more, by a new one.
    pub fn connection_lost(&mut self, now: Time, connection: ConnectionId) {
        for server in self.servers.values_mut() {
            server.to.forget(connection);
        }
        let lost: Vec<_> =
            self.calls.iter_mut().filter_map(|(key, call)| call.forget(connection).then_some(*key)).collect();
        let waiting =
            self.clients.iter_mut().filter_map(|(key, client)| client.to.forget(connection).then_some(key.clone()));
        let waiting: Vec<_> = waiting.collect();
        for call in lost {
            self.call_cut_off(now, call);
        }
        for key in waiting {
            let Some(client) = self.clients.get(&key).filter(|client| client.open()) else { continue };
            let is_unanswered = client.unanswered();
            if !(self.send_once_more(&key) || is_unanswered && self.fall_back(now, &key)) {
                self.fail(now, &key, Failure::ConnectionLost);
            }
        }
    }

    /// Sends a request by datagram that went by TCP for its size alone; false for others.
    fn fall_back(&mut self, now: Time, key: &TransactionKey) -> bool {
        let local = self.config.local;
        let Some(client) = self.clients.get_mut(key).filter(|client| client.by_size) else { return false };
        let call = self.calls.get_mut(&client.call);
        if client.request.method == Method::Invite && call.as_ref().is_none_or(|call| call.is_over()) {
            return false;
        }
        if let Some(call) = call {
            call.tcp_refused = true;
        }
        client.by_size = false;
        client.move_to(now, Hop::udp(client.to.address), local);
        self.send_client(key);
        self.note_size(key, MAX_DATAGRAM_REQUEST);
        self.reschedule(Owner::Client(key.clone()));
        true
    }

    /// Sends a request again that went by a connection which was closed before any response: the connection may have
    /// been dead already. False when a response came, and the second time.
    fn send_once_more(&mut self, key: &TransactionKey) -> bool {
        let Some(client) = self.clients.get_mut(key).filter(|client| client.unanswered() && !client.sent_again) else {
            return false;
        };
        if client.request.method == Method::Invite && self.calls.get(&client.call).is_none_or(|call| call.is_over()) {
            return false;
        }
        client.sent_again = true;
        self.send_client(key);
        true
    }

    fn fail(&mut self, now: Time, key: &TransactionKey, failure: Failure) {
        let Some(client) = self.clients.remove(key) else { return };
        self.reschedule(Owner::Client(key.clone()));
        self.request_failed(now, client.call, key, &client.request.method, failure);
    }

    /// Handles a request of this side that got no final response.
    pub(super) fn request_failed(
        &mut self,
        now: Time,
        call: CallKey,
        key: &TransactionKey,
        method: &Method,
        failure: Failure,
    ) {
        match method {
            Method::Invite => self.invite_failed(now, call, key, failure),
            Method::Update => self.change_failed(now, call, key, failure),
            Method::Info => self.digit_answered(now, call, failure.code()),
            Method::Prack => self.prack_done(call),
            Method::Message => self.text_failed(now, call, failure),
            _ => {}
        }
    }

    /// Limits the wait of an INVITE for the first response to `at`.
    pub(crate) fn client_gives_up(&mut self, key: &TransactionKey, at: Time) {
        if let Some(client) = self.clients.get_mut(key) {
            client.give_up_by(at);
            self.reschedule(Owner::Client(key.clone()));
        }
    }
}

/// True when both name the same place, over any connection. A place of TLS includes the name that its certificate
/// needs.
fn is_same(one: &Hop, other: &Hop) -> bool {
    let is_named_so = one.transport != Transport::Tls || one.server_name == other.server_name;
    (one.transport, one.address) == (other.transport, other.address) && is_named_so
}
