//! Redirects and transfers of one call: what its port does when the other side sends it on.

use std::net::{IpAddr, SocketAddr};

use ringer_base::config::Refer;
use ringer_media::call::{Control, Onward, RemoteEnd, Signal};
use ringer_sip::uri::Uri;
use ringer_sip::{CallEnd, CallEvent, EndKind, Hop, Transport};

use super::{INCOMPATIBLE, NORMAL, SipPort};
use crate::sip::media_names::Dialog;
use crate::sip::order::{Lookup, SipAction, SipOrder};
use crate::sip::transfer::{
    Forwarding, MOST_TRANSFERS, Open, Step, TargetCall, Transfers, for_people, may_go, plain, reachable, read_target,
};

impl SipPort {
    /// Sets the address that a call came from: numbers that it is sent on to are called there.
    pub fn set_source(&mut self, source: SocketAddr, transport: Transport) {
        let place = match (transport, source.ip()) {
            (Transport::Udp, _) => source.to_string(),
            // The port of a connection is the client's own; it listens where its transport does.
            (_, IpAddr::V4(ip)) => format!("{ip};transport={}", transport.name().to_ascii_lowercase()),
            (_, IpAddr::V6(ip)) => format!("[{ip}];transport={}", transport.name().to_ascii_lowercase()),
        };
        self.transfers.called = format!("sip:{place}").into();
    }

    /// Sets where the other side may send the call on to.
    pub fn forward(&mut self, forwarding: Forwarding) {
        self.transfers.forwarding = forwarding;
    }

    /// True while the target of a transfer is being called.
    pub fn calls_target(&self) -> bool {
        self.transfers.open.as_ref().is_some_and(|open| matches!(open.step, Step::Calling { .. }))
    }

    /// Follows a redirect: looked up where it may be followed.
    pub(super) fn follow_redirect(&mut self, target: Uri, lookup: Lookup) {
        let called = Uri::parse(&self.transfers.called).ok();
        let own = called.as_ref().map(|called| called.host.as_str());
        let goes_on = may_go(&self.transfers.forwarding.redirects, &target, own);
        if let Some(reached) = reachable(&target, called.as_ref()).filter(|_| goes_on) {
            return self.act(SipAction::Locate(reached.into(), lookup));
        }
        let place = if target.host.is_empty() { for_people(&target) } else { target.host };
        self.warn(format!("a redirect to {place} is not followed: sip.redirects does not have it"));
        let order = SipOrder::Resolved(Vec::new());
        match lookup {
            Lookup::TargetRedirect => self.send_target(order),
            Lookup::Redirect | Lookup::Transfer => self.send(order),
        }
    }

    /// Takes the other side's request for a transfer. The Call is asked once it is known whether the target may be
    /// called.
    pub(super) fn asked_to_transfer(&mut self, refer_to: &str, referred_by: Option<String>) {
        let read = read_target(refer_to);
        let to = read.as_ref().map_or_else(|_| refer_to.to_owned(), |(uri, _)| for_people(uri));
        let Transfers { forwarding, followed, open, called } = &self.transfers;
        let called = Uri::parse(called).ok();
        let own = called.as_ref().map(|called| called.host.as_str());
        let followed = match read {
            _ if forwarding.refer == Refer::Refuse => Err(None),
            _ if open.is_some() => Err(Some("another one is open".to_owned())),
            _ if *followed >= MOST_TRANSFERS => Err(Some(format!("{MOST_TRANSFERS} were followed in this call"))),
            Err(why) => Err(Some(why)),
            Ok((uri, _)) if !may_go(&forwarding.refer_targets, &uri, own) => {
                Err(Some("sip.refer_targets does not have it".to_owned()))
            }
            Ok((uri, replaces)) => {
                let reached = reachable(&uri, called.as_ref()).map(|uri| (uri, replaces));
                reached
                    .ok_or_else(|| Some("the host of the call, which would reach the number, is not known".to_owned()))
            }
        };
        match followed {
            Ok((uri, replaces)) => {
                let by = referred_by.map(|by| ("Referred-By".to_owned(), plain(&by)));
                let headers = by.into_iter().chain(replaces.map(|value| ("Replaces".to_owned(), value))).collect();
                self.act(SipAction::Locate(uri.clone().into(), Lookup::Transfer));
                self.transfers.open = Some(Open { to, uri, headers, step: Step::LookedUp });
            }
            Err(why) => {
                why.into_iter().for_each(|why| self.warn(format!("a transfer to {to} is refused: {why}")));
                self.signal(Signal::Transfer { to, can_follow: false });
            }
        }
    }

    /// Takes the hops of [`Lookup::Transfer`], or why there is none that may be called.
    pub fn take_address(&mut self, found: Result<Vec<Hop>, String>) {
        let Some(open) = self.transfers.open.as_mut().filter(|open| matches!(open.step, Step::LookedUp)) else {
            return;
        };
        let to = open.to.clone();
        match found {
            Ok(hops) => {
                open.step = Step::Asked(hops);
                self.signal(Signal::Transfer { to, can_follow: true });
            }
            Err(why) => {
                self.transfers.open = None;
                self.warn(format!("a transfer to {to} is refused: {why}"));
                self.signal(Signal::Transfer { to, can_follow: false });
            }
        }
    }

    /// Takes a control that is about a transfer; false for all others, which the first dialog takes.
    pub(super) fn control_transfer(&mut self, control: &Control) -> bool {
        let Some(open) = &mut self.transfers.open else { return *control == Control::CancelTarget };
        match (control, &mut open.step) {
            (Control::Transfer(Onward::Follow), Step::Asked(hops)) => {
                let (Some(media), hops) = (self.in_use, hops.clone()) else { return false };
                let (uri, headers) = (open.uri.clone(), open.headers.clone());
                open.step = Step::Calling { left: None };
                self.transfers.followed += 1;
                self.send(SipOrder::AcceptTransfer);
                self.act(SipAction::Dial(Box::new(TargetCall { uri, hops, headers, media })));
                true
            }
            (Control::Transfer(_), Step::Asked(_)) => {
                self.transfers.open = None;
                false
            }
            (Control::CancelTarget, Step::Calling { .. }) => {
                self.send_target(SipOrder::Hangup(NORMAL.0, NORMAL.1));
                self.fail("not_answered", 408);
                true
            }
            (Control::Hangup(_), step) => {
                let calls = matches!(step, Step::Calling { .. });
                self.transfers.open = None;
                if calls {
                    self.send_target(SipOrder::Hangup(NORMAL.0, NORMAL.1));
                }
                // The first dialog, too, where it is left.
                false
            }
            (control, _) => *control == Control::CancelTarget,
        }
    }

    /// Takes the end of the first dialog. With a target that is being called the call waits for that (RFC 5589 6.1).
    pub(super) fn take_end(&mut self, end: RemoteEnd) {
        if let Some(Open { step: Step::Calling { left }, .. }) = &mut self.transfers.open {
            *left = Some(end);
            return self.signal(Signal::LeftAlone);
        }
        self.transfers.open = None;
        self.signal(Signal::Ended(end));
    }

    /// Takes an event of the dialog with the target of a transfer.
    pub fn receive_target(&mut self, event: CallEvent) {
        if self.calls_target() {
            self.receive_of(Dialog::Target, event);
        }
    }

    pub(super) fn take_target(&mut self, event: CallEvent) {
        if !self.calls_target() {
            return;
        }
        match event {
            CallEvent::Provisional { code, .. } => self.send(SipOrder::Notify(code, false)),
            CallEvent::Redirected { target } => self.follow_redirect(target, Lookup::TargetRedirect),
            CallEvent::Answered { media, .. } => match self.media_plan(&media) {
                Ok(plan) => {
                    self.send(SipOrder::Notify(200, true));
                    let Some(open) = self.transfers.open.take() else { return };
                    if matches!(open.step, Step::Calling { left: None }) {
                        self.send(SipOrder::Hangup(NORMAL.0, NORMAL.1));
                    }
                    self.act(SipAction::Switch);
                    self.go_there(&plan);
                    let leg = Some(plan.media.into());
                    self.signal(Signal::Transferred { to: open.to, outcome: "answered".into(), code: 200, leg });
                    // The Call takes the side that held it for gone.
                    self.is_held = false;
                    self.hold(media.on_hold);
                }
                Err(why) => {
                    self.warn(format!("the target of a transfer answered, and is not followed: {why}"));
                    self.send_target(SipOrder::Hangup(INCOMPATIBLE.0, INCOMPATIBLE.1));
                    self.fail("no_media", 488);
                }
            },
            CallEvent::Ended(end) => {
                let (outcome, code) = failure(&end);
                self.fail(outcome, code);
            }
            _ => {}
        }
    }

    /// Ends a transfer whose target did not take the call: it goes on as it was, or is over where nobody is left in it.
    fn fail(&mut self, outcome: &'static str, code: u16) {
        let Some(open) = self.transfers.open.take() else { return };
        self.send(SipOrder::Notify(code, true));
        self.signal(Signal::Transferred { to: open.to, outcome: outcome.into(), code, leg: None });
        if let Step::Calling { left: Some(end) } = open.step {
            self.signal(Signal::Ended(end));
        }
    }

    pub(super) fn send_target(&mut self, order: SipOrder) {
        self.act(SipAction::SendTarget(order));
    }
}

/// Returns the outcome of a call to a target that ended before it was taken, and the status that NOTIFY tells.
fn failure(end: &CallEnd) -> (&'static str, u16) {
    let code = end.sip_code.filter(|code| (300..700).contains(code));
    match end.kind {
        EndKind::Timeout => ("unreachable", code.unwrap_or(408)),
        EndKind::NotReachable | EndKind::NoSocket => ("unreachable", code.unwrap_or(503)),
        EndKind::NoMedia => ("no_media", 488),
        EndKind::Cancelled | EndKind::LocalHangup => ("not_answered", code.unwrap_or(487)),
        _ => ("refused", code.unwrap_or(480)),
    }
}

#[cfg(test)]
mod tests;
