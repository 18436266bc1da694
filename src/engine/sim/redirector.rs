//! An element of the network that takes no call: it redirects each INVITE, or refuses it, as its script says.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use ringer_media::seed::Seed;
use ringer_media::time::Time;
use ringer_sip::{CallEvent, CallKey, Endpoint, EndpointConfig, Hop, Output};

use super::START;
use super::network::{Arrived, Datagram};
use super::script::Action;

/// A redirect server (RFC 3261 8.3).
pub(super) struct Redirector {
    address: SocketAddr,
    endpoint: Endpoint,
    /// Actions with their times, in order; the last one stays.
    actions: Vec<(Duration, Action)>,
    /// Number of INVITEs so far.
    invites: usize,
    due: BTreeMap<(Time, CallKey), Action>,
}

impl Redirector {
    /// Returns an element at `address`; `actions` is not empty.
    pub(crate) fn new(address: SocketAddr, seed: Seed, actions: Vec<(Duration, Action)>) -> Redirector {
        let config =
            EndpointConfig { local: address, tcp: None, tls: None, user_agent: "Redirector".to_owned(), seed: seed.0 };
        Redirector { address, endpoint: Endpoint::new(config), actions, invites: 0, due: BTreeMap::new() }
    }

    /// Takes a datagram; what is not for the SIP port is passed over.
    pub(crate) fn receive(&mut self, arrived: &Arrived) {
        if arrived.datagram.to == self.address {
            let Datagram { from, bytes, .. } = &arrived.datagram;
            self.endpoint.receive(ringer_sip::Time(arrived.at.0), Hop::udp(*from), bytes);
        }
    }

    /// Returns the time of what it does by itself.
    pub(crate) fn next(&self) -> Option<Time> {
        let timer = self.endpoint.next_timer().map(|at| Time(at.0));
        timer.into_iter().chain(self.due.first_key_value().map(|((at, _), _)| *at)).min()
    }

    /// Does everything that is due.
    pub(crate) fn act(&mut self, now: Time) {
        self.endpoint.tick(ringer_sip::Time(now.0));
        while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= now) {
            let ((_, key), action) = entry.remove_entry();
            answer(&mut self.endpoint, now, key, action);
        }
    }

    /// Returns what it sent since the last time.
    pub(crate) fn take_sent(&mut self) -> Vec<Datagram> {
        let mut sent = Vec::new();
        while let Some(output) = self.endpoint.poll() {
            match output {
                Output::Send { to, bytes, .. } => sent.push(Datagram { from: self.address, to: to.address, bytes }),
                Output::Event(key, CallEvent::Incoming { .. }) => self.plan(key),
                Output::Event(..) => {}
            }
        }
        sent
    }

    /// Plans the answer to an INVITE by the next line, not before its time.
    fn plan(&mut self, key: CallKey) {
        let place = self.invites.min(self.actions.len() - 1);
        self.invites += 1;
        let (after, action) = &self.actions[place];
        self.due.insert((START + *after, key), action.clone());
    }
}

/// Answers an INVITE with a refusal or a redirect.
pub(super) fn answer(endpoint: &mut Endpoint, now: Time, key: CallKey, action: Action) {
    let now = ringer_sip::Time(now.0);
    match action {
        Action::Redirect(code, contacts) => {
            let contacts = contacts.iter().map(|contact| match contact.split_once(";q=") {
                Some((uri, weight)) => format!("<{uri}>;q={weight}"),
                None => format!("<{contact}>"),
            });
            let headers: Vec<(&'static str, String)> = contacts.map(|contact| ("Contact", contact)).collect();
            endpoint.reject_with(now, key, code, &headers);
        }
        Action::Refuse(code) => endpoint.reject(now, key, code, None),
        _ => {}
    }
}
