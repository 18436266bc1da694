//! A line to a provider: its registration (RFC 3261 10, RFC 5626), and requests that show whether it answers (RFC 3261
//! 11).
//!
//! A [`Line`] is driven like an [`Endpoint`](crate::Endpoint): inputs with the time, then [`Line::poll`] until `None`,
//! then a wait until [`Line::next_timer`]. It also asks for look-ups of the provider's host. `errand` has one request
//! until its answer, `register` the rules for a registrar's answers.

mod errand;
mod register;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) use self::errand::retry_after;
pub use self::errand::route;
use self::errand::{Errand, Reply};
use self::register::{Registration, contact_uri, contacts};
use crate::auth::Credentials;
use crate::hop::{ConnectionId, Hop, Transport};
use crate::ids::Ids;
use crate::message::{Message, Method, Response};
use crate::parse::parse;
use crate::time::Time;
use crate::uri::Uri;

/// Time after which one place without a response is left for another one: 16 times T1.
const TRY_LIMIT: Duration = Duration::from_secs(8);
/// Time that the last registration may take at the end.
const LEAVE_LIMIT: Duration = Duration::from_secs(2);
/// First upper bound of the wait after a failure; it doubles with each one (RFC 5626 4.5, `base-time`).
const FIRST_WAIT: Duration = Duration::from_secs(30);
/// Longest upper bound of the wait after failures (RFC 5626 4.5, `max-time`).
const LONGEST_WAIT: Duration = Duration::from_secs(1800);
/// Longest wait that a Retry-After header field can ask for.
const LONGEST_RETRY_AFTER: Duration = Duration::from_secs(3600);
/// Time after which a flow counts as one that has worked, so that its loss is no failure (RFC 5626 4.5).
const PROVEN: Duration = Duration::from_secs(120);
/// Shortest distance of two registrations, unless the registrar grants less than twice that.
const SHORTEST_REFRESH: Duration = Duration::from_secs(5);
/// Shortest wait after a refresh that failed while the registration still holds.
const SHORTEST_RETRY: Duration = Duration::from_secs(2);
/// Age of a look-up at which it is made again.
const LOOK_UP_AGE: Duration = Duration::from_secs(300);
/// Distance of datagrams that keep a NAT open where no other request does (RFC 5626 4.4).
const PING_EVERY: Duration = Duration::from_secs(25);
/// Most that is added to that distance, so that lines do not send at the same time.
const PING_SPREAD: Duration = Duration::from_secs(5);
/// Datagram that keeps a NAT open, and that servers pass over (RFC 5626 3.5.1).
const PING: &[u8] = b"\r\n\r\n";

/// Terms of a line, as the settings of its trunk say them.
#[derive(Clone, Debug)]
pub struct Account {
    /// Address of the provider without a user: Request-URI of the requests.
    pub host: Uri,
    /// Outbound proxy that every request goes through (RFC 3261 8.1.2).
    pub proxy: Option<Uri>,
    /// User part of the address of record and of the Contact.
    pub user: String,
    /// Host of the address of record.
    pub domain: String,
    /// Answers to challenges; `None`: there is no answer.
    pub credentials: Option<Credentials>,
    /// Interval of registrations that is asked for, seconds; `None`: the line is not registered.
    pub expires_s: Option<u32>,
    /// Distance of OPTIONS requests in seconds; 0: none.
    pub keepalive_s: u32,
    /// URN that names this installation to registrars (RFC 5626 4.1), for example `urn:uuid:...`.
    pub instance: String,
    /// Number of the line within the installation, from 1 (RFC 5626 4.2).
    pub reg_id: u32,
    /// Addresses of this side by transport, as Via and Contact name them.
    pub local: Places,
    /// True if `local` is how the other side reaches this one, whatever a NAT shows.
    pub is_advertised: bool,
    /// User-Agent header field of the requests.
    pub user_agent: String,
}

/// Addresses of one side by transport.
#[derive(Copy, Clone, Debug)]
pub struct Places {
    /// Address that datagrams come to; also the one of other transports without a listener.
    pub udp: SocketAddr,
    /// Address that TCP connections are accepted at.
    pub tcp: Option<SocketAddr>,
    /// Address that TLS connections are accepted at.
    pub tls: Option<SocketAddr>,
}

impl Places {
    fn of(&self, transport: Transport) -> SocketAddr {
        let stream = match transport {
            Transport::Udp => None,
            Transport::Tcp => self.tcp,
            Transport::Tls => self.tls,
        };
        stream.unwrap_or(self.udp)
    }
}

/// Standing of a line in one respect.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// The standing is not known yet, or not any more.
    #[default]
    Unknown,
    /// The line works, as of the last answer.
    Up,
    /// The line does not work.
    Down,
}

/// Standing with its beginning and the last error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// Standing of this moment.
    pub standing: Standing,
    /// Beginning of that standing.
    pub since: Time,
    /// Error that came last, for a person. It stays when all is well again.
    pub error: Option<String>,
}

impl State {
    fn change(&mut self, now: Time, standing: Standing) {
        if self.standing != standing {
            (self.standing, self.since) = (standing, now);
        }
    }
}

/// Something that the owner of a line is to do.
#[derive(Clone, PartialEq)]
pub enum LineOutput {
    /// Send this message, or the four bytes that keep a NAT open.
    Send {
        /// Place that it goes to.
        to: Hop,
        /// Bytes of one message.
        bytes: Vec<u8>,
    },
    /// Look this address up and tell [`Line::take_places`].
    Locate(Uri),
}

impl std::fmt::Debug for LineOutput {
    /// Shows only the first line of a message: the rest may hold credentials.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LineOutput::Send { to, bytes } => {
                let line = bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
                write!(f, "Send({to}, {})", String::from_utf8_lossy(line))
            }
            LineOutput::Locate(uri) => write!(f, "Locate({uri})"),
        }
    }
}

/// Kinds of requests of a line.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Kind {
    Register,
    Options,
}

/// One line to a provider.
pub struct Line {
    account: Account,
    ids: Ids,
    hops: Vec<Hop>,
    /// End of the last look-up.
    located: Option<Time>,
    /// Address that is being looked up.
    wanted: Option<Uri>,
    registration: Option<Registration>,
    options: Option<Errand>,
    next_ping: Option<Time>,
    is_leaving: bool,
    out: VecDeque<LineOutput>,
}

impl Line {
    /// Returns a line that begins at once. `seed`: tags, branches and waits derive from it.
    pub fn new(now: Time, account: Account, seed: u64) -> Line {
        let mut ids = Ids::new(seed);
        let errand = |ids: &mut Ids, method| Errand::new(now, ids, method, account.credentials.clone());
        let registration =
            account.expires_s.map(|asked_s| Registration::new(now, errand(&mut ids, Method::Register), asked_s));
        let options = (account.keepalive_s > 0).then(|| errand(&mut ids, Method::Options));
        let mut line = Line {
            account,
            ids,
            hops: Vec::new(),
            located: None,
            wanted: None,
            registration,
            options,
            next_ping: None,
            is_leaving: false,
            out: VecDeque::new(),
        };
        line.locate();
        line
    }

    /// Returns the standing of the registration; `None` where the line is not registered.
    pub fn registration(&self) -> Option<&State> {
        self.registration.as_ref().map(|registration| &registration.errand.state)
    }

    /// Returns the standing by OPTIONS; `None` where none are sent.
    pub fn keepalive(&self) -> Option<&State> {
        self.options.as_ref().map(|options| &options.state)
    }

    /// Returns every place of the provider that is known: where its host was found, and where it was registered.
    pub fn places(&self) -> impl Iterator<Item = &Hop> {
        self.hops.iter().chain(self.registration.iter().filter_map(|registration| registration.flow.as_ref()))
    }

    /// Returns the way by which this side is registered, with the address that the registrar sees there where a NAT
    /// shows another one.
    pub fn flow(&self) -> Option<(&Hop, Option<SocketAddr>)> {
        let registration = self.registration.as_ref().filter(|registration| registration.until.is_some())?;
        let flow = registration.flow.as_ref()?;
        let seen = registration.seen.filter(|(transport, _)| *transport == flow.transport).map(|(_, address)| address);
        Some((flow, seen))
    }

    /// Returns the next thing to do, in order; `None` when there is nothing more.
    pub fn poll(&mut self) -> Option<LineOutput> {
        self.out.pop_front()
    }

    /// Returns the time at which `tick` is wanted next.
    pub fn next_timer(&self) -> Option<Time> {
        let registration = self.registration.as_ref();
        let errands = registration.map(|registration| &registration.errand).into_iter().chain(&self.options);
        let expiry = registration.and_then(|registration| registration.until);
        let relocation = self.located.filter(|_| self.is_quiet()).map(|at| at + LOOK_UP_AGE);
        errands.filter_map(Errand::due).chain(expiry).chain(self.next_ping).chain(relocation).min()
    }

    /// True once nothing is to be done any more after [`Line::leave`].
    pub fn is_over(&self) -> bool {
        self.is_leaving && self.registration.as_ref().is_none_or(|registration| !registration.errand.is_open())
    }

    /// Takes the places of an address that was to be looked up, in the order in which they are tried.
    pub fn take_places(&mut self, now: Time, uri: &Uri, found: Result<Vec<Hop>, String>) {
        // Another registrar may be looked for meanwhile.
        if self.wanted.take_if(|wanted| *wanted == *uri).is_none() {
            return;
        }
        self.located = Some(now);
        match found {
            Ok(hops) if !hops.is_empty() => self.hops = hops,
            found => {
                // The places found before are still the best guess.
                let why = found.err().unwrap_or_else(|| "the provider's host has no address".to_owned());
                for kind in [Kind::Register, Kind::Options] {
                    if self.hops.is_empty() && self.errand(kind).is_some_and(|errand| errand.is_waiting) {
                        self.fail(now, kind, why.clone(), None);
                    }
                }
            }
        }
        for kind in [Kind::Register, Kind::Options] {
            if self.errand(kind).is_some_and(|errand| errand.is_waiting) {
                self.start(now, kind);
            }
        }
    }

    /// Takes a response to REGISTER or OPTIONS. False where it is no response to this line.
    pub fn receive(&mut self, now: Time, from: &Hop, message: &[u8]) -> bool {
        let Ok(Message::Response(response)) = parse(message) else { return false };
        if response.check().is_err() {
            return false;
        }
        for kind in [Kind::Register, Kind::Options] {
            let Some(reply) = self.errand(kind).and_then(|errand| errand.take(now, from, &response)) else { continue };
            if let Reply::Last(hop) = reply {
                match kind {
                    Kind::Register => self.take_answer(now, hop, &response),
                    Kind::Options => self.take_options_answer(now, &response),
                }
            }
            return true;
        }
        false
    }

    /// Runs what is due.
    pub fn tick(&mut self, now: Time) {
        for kind in [Kind::Register, Kind::Options] {
            let Some(errand) = self.errand(kind) else { continue };
            match errand.tick(now) {
                errand::Tick::Nothing => {}
                errand::Tick::Begin => self.begin(now, kind),
                errand::Tick::Repeat(to, bytes) => self.out.push_back(LineOutput::Send { to, bytes }),
                errand::Tick::TimedOut(to) => self.fail(now, kind, format!("{to} did not answer"), None),
            }
        }
        if let Some(registration) = &mut self.registration
            && registration.until.is_some_and(|until| until <= now)
        {
            registration.until = None;
            if registration.errand.failures == 0 {
                registration.errand.state.error = Some("the registration ended before it was refreshed".to_owned());
            }
            registration.errand.state.change(now, Standing::Down);
        }
        if self.next_ping.is_some_and(|at| at <= now) {
            self.next_ping = None;
            self.ping(now);
        }
        if self.is_quiet() && self.located.is_some_and(|at| at + LOOK_UP_AGE <= now) {
            self.locate();
        }
    }

    /// Takes the connection that a message to `to` went over; `is_new`: it was opened for that message, which does not
    /// go once more when the connection is closed.
    pub fn sent_over(&mut self, to: &Hop, connection: ConnectionId, is_new: bool) {
        for kind in [Kind::Register, Kind::Options] {
            if let Some(errand) = self.errand(kind).filter(|errand| errand.is_sent_to(to)) {
                errand.note_connection(connection, is_new);
            }
        }
    }

    /// Takes that nothing can be delivered to `to`.
    pub fn unreachable(&mut self, now: Time, to: &Hop, why: &str) {
        for kind in [Kind::Register, Kind::Options] {
            if self.errand(kind).is_some_and(|errand| errand.is_sent_to(to)) {
                self.fail(now, kind, why.to_owned(), None);
            }
        }
    }

    /// Takes that a connection is closed: a registration over it is gone (RFC 5626 4.4), and a request without an
    /// answer is sent again once, by another one.
    pub fn connection_lost(&mut self, now: Time, connection: ConnectionId, why: &str) {
        for kind in [Kind::Register, Kind::Options] {
            let Some(errand) = self.errand(kind) else { continue };
            match errand.forget(connection) {
                errand::Tick::Repeat(to, bytes) => self.out.push_back(LineOutput::Send { to, bytes }),
                errand::Tick::TimedOut(_) => self.fail(now, kind, why.to_owned(), None),
                errand::Tick::Nothing | errand::Tick::Begin => {}
            }
        }
        let Some(registration) = &mut self.registration else { return };
        if registration.flow.as_mut().is_none_or(|flow| !flow.forget(connection)) || self.is_leaving {
            return;
        }
        registration.until = None;
        registration.errand.state.change(now, Standing::Down);
        registration.errand.state.error = Some(why.to_owned());
        if registration.errand.is_open() {
            return;
        }
        if now.since(registration.begun) >= PROVEN {
            registration.errand.failures = 0;
            registration.errand.at = Some(now);
        } else {
            registration.errand.failures += 1;
            let wait = back_off(&mut self.ids, registration.errand.failures);
            registration.errand.at = Some(now + wait);
        }
    }

    /// Takes the registration back (RFC 3261 10.2.2), for 2 s at the most, and ends all else.
    pub fn leave(&mut self, now: Time) {
        self.is_leaving = true;
        (self.options, self.next_ping) = (None, None);
        let Some(registration) = &mut self.registration else { return };
        registration.errand.stop();
        let flow = registration.flow.clone().filter(|_| registration.until.is_some());
        if let Some(flow) = flow {
            registration.errand.queue = [flow].into();
            self.transmit(now, Kind::Register);
        }
    }

    /// True where neither request keeps the look-ups new.
    fn is_quiet(&self) -> bool {
        self.registration.is_none() && self.options.is_none() && self.wanted.is_none() && !self.is_leaving
    }

    fn errand(&mut self, kind: Kind) -> Option<&mut Errand> {
        match kind {
            Kind::Register => self.registration.as_mut().map(|registration| &mut registration.errand),
            Kind::Options => self.options.as_mut(),
        }
    }

    fn locate(&mut self) {
        let moved = self.registration.as_ref().and_then(|registration| registration.moved.as_ref());
        let uri = moved.or(self.account.proxy.as_ref()).unwrap_or(&self.account.host).clone();
        if self.wanted.as_ref() != Some(&uri) {
            self.wanted = Some(uri.clone());
            self.out.push_back(LineOutput::Locate(uri));
        }
    }

    /// Begins an attempt: where the registrar is, is looked up each time, and for OPTIONS when that is old or the last
    /// one failed.
    fn begin(&mut self, now: Time, kind: Kind) {
        let is_known = !self.hops.is_empty() && self.located.is_some_and(|at| now.since(at) < LOOK_UP_AGE);
        let Some(errand) = self.errand(kind) else { return };
        let is_new = kind == Kind::Options && is_known && errand.failures == 0;
        errand.is_waiting = true;
        if is_new {
            return self.start(now, kind);
        }
        self.locate();
    }

    /// Begins with the places that are known: the way in use first.
    fn start(&mut self, now: Time, kind: Kind) {
        let registration = self.registration.as_ref().filter(|registration| registration.until.is_some());
        let flow = registration.and_then(|registration| registration.flow.clone());
        let mut queue: VecDeque<Hop> = self.hops.iter().take(errand::MOST_PLACES).cloned().collect();
        if let Some(flow) = flow {
            let same = |hop: &Hop| (hop.transport, hop.address) == (flow.transport, flow.address);
            let is_there = queue.iter().any(same);
            if kind == Kind::Options {
                queue.clear();
            }
            if is_there || kind == Kind::Options {
                queue.retain(|hop| !same(hop));
                queue.push_front(flow);
            }
        }
        let Some(errand) = self.errand(kind) else { return };
        errand.restart(queue);
        self.transmit(now, kind);
    }

    /// Sends the request to the next place.
    fn transmit(&mut self, now: Time, kind: Kind) {
        let Some(hop) = self.errand(kind).and_then(|errand| errand.queue.pop_front()) else { return };
        self.send_to(now, kind, hop);
    }

    fn send_to(&mut self, now: Time, kind: Kind, hop: Hop) {
        let (is_leaving, account) = (self.is_leaving, &self.account);
        let (errand, contact) = match kind {
            Kind::Register => {
                let Some(registration) = &mut self.registration else { return };
                let contact = contacts(account, registration, hop.transport, is_leaving);
                (&mut registration.errand, contact)
            }
            Kind::Options => {
                let Some(options) = &mut self.options else { return };
                let at = account.local.of(hop.transport);
                (options, vec![format!("<{}>", contact_uri(account, hop.transport, at))])
            }
        };
        let limit = match (kind, errand.queue.is_empty()) {
            _ if is_leaving => Some(LEAVE_LIMIT),
            (Kind::Register, true) => None,
            _ => Some(TRY_LIMIT),
        };
        let (to, bytes) = errand.send(now, account, &mut self.ids, contact, hop, limit);
        self.out.push_back(LineOutput::Send { to, bytes });
    }

    /// Handles a place that did not answer, or cannot go on: another one is tried, then all of them after a wait.
    fn fail(&mut self, now: Time, kind: Kind, why: String, retry_after: Option<Duration>) {
        let is_leaving = self.is_leaving;
        let Some(errand) = self.errand(kind) else { return };
        errand.state.error = Some(why);
        errand.client = None;
        if !errand.queue.is_empty() && !is_leaving {
            return self.transmit(now, kind);
        }
        errand.stop();
        errand.failures = errand.failures.saturating_add(1);
        let failures = errand.failures;
        let every = Duration::from_secs(self.account.keepalive_s.into());
        match kind {
            Kind::Register => {
                let wait = back_off(&mut self.ids, failures);
                let Some(registration) = &mut self.registration else { return };
                // What is granted still holds: another refresh may come in time.
                let rest = registration.until.map(|until| until.since(now) / 2).filter(|rest| *rest >= SHORTEST_RETRY);
                let wait = rest.map_or(wait, |rest| wait.min(rest));
                let wait = retry_after.map_or(wait, |asked| asked.clamp(SHORTEST_REFRESH, LONGEST_RETRY_AFTER));
                (registration.moved, registration.moves, registration.changes) = (None, 0, 0);
                if registration.until.is_none() {
                    registration.errand.state.change(now, Standing::Down);
                }
                registration.errand.at = (!is_leaving).then_some(now + wait);
            }
            Kind::Options => {
                if let Some(options) = &mut self.options {
                    options.state.change(now, Standing::Down);
                    options.at = Some(now + every);
                }
                // The way of the registration is dead, too (RFC 5626 4.4): another one is looked for at once.
                if let Some(registration) = &mut self.registration
                    && registration.until.is_some()
                    && !registration.errand.is_open()
                    && registration.errand.failures == 0
                {
                    registration.errand.at = Some(now);
                }
            }
        }
    }

    fn take_options_answer(&mut self, now: Time, response: &Response) {
        // A gateway that cannot go on takes no calls; whoever refuses OPTIONS is there.
        if matches!(response.code, 408 | 502..=504) {
            let why = format!("OPTIONS were answered with {}", status_text(response));
            return self.fail(now, Kind::Options, why, None);
        }
        let every = Duration::from_secs(self.account.keepalive_s.into());
        let Some(options) = &mut self.options else { return };
        options.stop();
        options.failures = 0;
        options.state.change(now, Standing::Up);
        options.at = Some(now + every);
    }

    /// Datagrams keep a NAT open where OPTIONS come too seldom for that.
    fn plan_ping(&mut self, now: Time) {
        let every = Duration::from_secs(self.account.keepalive_s.into());
        let is_kept = !every.is_zero() && every <= PING_EVERY + PING_SPREAD;
        let by_datagram = self.flow().is_some_and(|(flow, _)| flow.transport == Transport::Udp);
        let spread = part(&mut self.ids, PING_SPREAD);
        self.next_ping = (by_datagram && !is_kept).then(|| now + PING_EVERY + spread);
    }

    fn ping(&mut self, now: Time) {
        if let Some((flow, _)) = self.flow() {
            let to = flow.clone();
            self.out.push_back(LineOutput::Send { to, bytes: PING.to_vec() });
            self.plan_ping(now);
        }
    }
}

/// Returns the wait after this many failures in a row (RFC 5626 4.5): half of its upper bound, and a part of the other
/// half.
fn back_off(ids: &mut Ids, failures: u32) -> Duration {
    let longest = FIRST_WAIT.saturating_mul(1 << failures.min(10)).min(LONGEST_WAIT);
    longest / 2 + part(ids, longest / 2)
}

/// Returns a part of `whole`, evenly drawn.
fn part(ids: &mut Ids, whole: Duration) -> Duration {
    let ms = u64::try_from(whole.as_millis()).unwrap_or(u64::MAX);
    Duration::from_millis(ids.draw(ms.saturating_add(1)))
}

/// Returns the status of a response as it is told to a person.
pub(crate) fn status_text(response: &Response) -> String {
    format!("{} {}", response.code, response.reason).trim_end().to_owned()
}
