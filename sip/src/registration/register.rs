//! The registration of a line: handling of its answers (RFC 3261 10.2, RFC 5626), and the Contact that is registered.

use std::net::SocketAddr;
use std::time::Duration;

use super::errand::{Errand, moved_to, registered_for, retry_after, seen_at};
use super::{Account, FIRST_WAIT, Kind, Line, SHORTEST_REFRESH, Standing, TRY_LIMIT, part, status_text};
use crate::hop::{Hop, Transport};
use crate::ids::Ids;
use crate::message::Response;
use crate::time::Time;
use crate::transaction::T1_64;
use crate::uri::{Uri, escape_user};

/// Longest time before the end of a registration at which it is refreshed.
const LONGEST_MARGIN: Duration = Duration::from_secs(600);
/// Longest interval of registrations, asked for or granted, in seconds: a week.
pub(super) const LONGEST_EXPIRES_S: u32 = 604_800;
/// Most redirections that are followed until a registrar has answered.
const MOST_MOVES: u32 = 3;
/// Most raised intervals (423) and changed contacts of one attempt.
const MOST_CHANGES: u32 = 2;

/// State of a registration beside its request.
pub(super) struct Registration {
    /// Its requests, one after the other.
    pub errand: Errand,
    /// Interval that is asked for, seconds: what the settings say, or what the registrar wants at least.
    pub asked_s: u32,
    /// End of what was granted; `None`: nothing is.
    pub until: Option<Time>,
    /// Beginning of what was granted without a gap.
    pub begun: Time,
    /// Way by which the registrar was reached, and by which calls come.
    pub flow: Option<Hop>,
    /// Address of the Contact by transport, as the registrar sees this side.
    pub seen: Option<(Transport, SocketAddr)>,
    /// Address of the Contact in the last request.
    pub sent: Option<(Transport, SocketAddr)>,
    /// Address of the Contact that was registered, and is to go when another one is.
    pub bound: Option<(Transport, SocketAddr)>,
    /// Changes of this attempt: raised intervals, changed contacts.
    pub changes: u32,
    /// Redirections since a registrar answered.
    pub moves: u32,
    /// Registrar that the configured one has named.
    pub moved: Option<Uri>,
}

impl Registration {
    /// Returns a registration that nothing is granted for yet.
    pub(crate) fn new(now: Time, errand: Errand, asked_s: u32) -> Registration {
        Registration {
            errand,
            asked_s,
            until: None,
            begun: now,
            flow: None,
            seen: None,
            sent: None,
            bound: None,
            changes: 0,
            moves: 0,
            moved: None,
        }
    }
}

impl Line {
    pub(super) fn take_answer(&mut self, now: Time, hop: Hop, response: &Response) {
        let is_advertised = self.account.is_advertised;
        let Some(registration) = &mut self.registration else { return };
        if let Some(seen) = seen_at(response).filter(|_| !is_advertised) {
            registration.seen = Some((hop.transport, seen));
        }
        let code = response.code;
        match code {
            200..300 => self.take_grant(now, hop, response),
            401 | 407 if registration.errand.may_sign(response) => self.send_to(now, Kind::Register, hop),
            423 => {
                let least = response.headers.get("Min-Expires").and_then(|text| text.trim().parse::<u32>().ok());
                let least = least.filter(|least| (registration.asked_s + 1..=LONGEST_EXPIRES_S).contains(least));
                match least.filter(|_| registration.changes < MOST_CHANGES) {
                    Some(least) => {
                        registration.asked_s = least;
                        registration.changes += 1;
                        self.send_to(now, Kind::Register, hop);
                    }
                    None => self.refuse(now, response),
                }
            }
            300..=399 => match moved_to(response, hop.transport).filter(|_| registration.moves < MOST_MOVES) {
                Some(uri) if !self.is_leaving => {
                    registration.moves += 1;
                    registration.moved = Some(uri);
                    registration.errand.queue.clear();
                    registration.errand.is_waiting = true;
                    self.locate();
                }
                _ => self.refuse(now, response),
            },
            408 | 480 | 500.. => {
                let why = format!("the registrar answered {}", status_text(response));
                self.fail(now, Kind::Register, why, retry_after(response));
            }
            _ => self.refuse(now, response),
        }
    }

    fn take_grant(&mut self, now: Time, hop: Hop, response: &Response) {
        let Some(registration) = &mut self.registration else { return };
        let uri =
            registration.sent.map(|(transport, at)| contact_uri(&self.account, transport, at)).unwrap_or_default();
        let granted_s = registered_for(response, &uri, &self.account.instance).unwrap_or(registration.asked_s);
        let granted = Duration::from_secs(granted_s.min(LONGEST_EXPIRES_S).into());
        registration.errand.stop();
        if self.is_leaving {
            registration.until = None;
            return registration.errand.state.change(now, Standing::Unknown);
        }
        if granted.is_zero() {
            return self.fail(now, Kind::Register, "the registrar keeps no registration".to_owned(), None);
        }
        registration.errand.failures = 0;
        registration.moves = 0;
        if registration.until.is_none() {
            registration.begun = now;
        }
        let known = registration.seen.filter(|(transport, _)| *transport == hop.transport);
        let is_by_flow = response.headers.list("Require").iter().any(|tag| tag.eq_ignore_ascii_case("outbound"));
        registration.bound = registration.sent;
        (registration.until, registration.flow) = (Some(now + granted), Some(hop));
        registration.errand.state.change(now, Standing::Up);
        let is_moved = known.is_some_and(|seen| Some(seen) != registration.sent) && !is_by_flow;
        let again = is_moved && registration.changes < MOST_CHANGES;
        registration.changes = if again { registration.changes + 1 } else { 0 };
        let wait = if again { Duration::ZERO } else { refresh_after(&mut self.ids, granted) };
        registration.errand.at = Some(now + wait);
        self.plan_ping(now);
    }

    /// Handles a registrar that refuses this side: it is asked again at the usual distance, and not before.
    fn refuse(&mut self, now: Time, response: &Response) {
        let Some(registration) = &mut self.registration else { return };
        let is_signed = matches!(response.code, 401 | 407) && registration.errand.is_signed();
        let why = if is_signed { "the credentials were refused" } else { "the registrar refused" };
        registration.errand.stop();
        registration.errand.login.forget();
        registration.errand.state.error = Some(format!("{why}: {}", status_text(response)));
        registration.errand.failures = 0;
        (registration.moved, registration.moves, registration.changes) = (None, 0, 0);
        (registration.until, registration.flow) = (None, None);
        registration.errand.state.change(now, Standing::Down);
        let every = Duration::from_secs(self.account.expires_s.unwrap_or_default().into());
        registration.errand.at = (!self.is_leaving).then_some(now + every.max(FIRST_WAIT));
    }
}

/// Returns the Contact values of a REGISTER: the one that is registered, and before it the one that it takes the place
/// of.
pub(super) fn contacts(
    account: &Account,
    registration: &mut Registration,
    transport: Transport,
    is_leaving: bool,
) -> Vec<String> {
    let seen = registration.seen.filter(|(seen, _)| *seen == transport);
    let address = seen.unwrap_or((transport, account.local.of(transport)));
    let value = |(transport, at): (Transport, SocketAddr), expires_s: u32| {
        let uri = contact_uri(account, transport, at);
        let Account { reg_id, instance, .. } = account;
        format!("<{uri}>;reg-id={reg_id};+sip.instance=\"<{instance}>\";expires={expires_s}")
    };
    let gone = |(transport, at)| format!("<{}>;expires=0", contact_uri(account, transport, at));
    if is_leaving {
        return vec![value(registration.bound.unwrap_or(address), 0)];
    }
    registration.sent = Some(address);
    let old = registration.bound.filter(|bound| *bound != address);
    old.map(gone).into_iter().chain([value(address, registration.asked_s)]).collect()
}

/// Returns the address at which this side is called by `transport`. `ob`: calls are to come by the way of the
/// registration (RFC 5626 4.3).
pub(super) fn contact_uri(account: &Account, transport: Transport, at: SocketAddr) -> String {
    let parameter = match transport {
        Transport::Udp => "",
        Transport::Tcp => ";transport=tcp",
        Transport::Tls => ";transport=tls",
    };
    format!("sip:{}@{at}{parameter};ob", escape_user(&account.user))
}

/// Returns the time after which a registration of this length is refreshed: before its end, not at the same time as
/// others, and at most once a second.
fn refresh_after(ids: &mut Ids, granted: Duration) -> Duration {
    let margin = (granted / 10).max((granted / 2).min(T1_64 + TRY_LIMIT)).min(LONGEST_MARGIN);
    let least = SHORTEST_REFRESH.min(granted / 2).max(Duration::from_secs(1));
    (granted - margin - part(ids, margin / 4).min(granted - margin)).max(least)
}
