//! State of one dialog (RFC 3261 12): the target of its requests, their route and their numbers. It sends nothing
//! itself.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::config::EndpointConfig;
use crate::header::NameAddr;
use crate::hop::{ConnectionId, Hop, Transport};
use crate::message::{Headers, Method, Request, Response};
use crate::uri::{Scheme, Uri};

/// Most Route values that are kept from a peer.
const MAX_ROUTES: usize = 32;

/// Rule that tells to which addresses a peer may have the requests of a dialog sent, by its Contact and Record-Route.
#[derive(Clone)]
pub struct Reach(Arc<dyn Fn(IpAddr) -> bool + Send + Sync>);

impl Reach {
    /// Returns the rule that permits addresses for which `allows` is true.
    pub fn by(allows: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Reach {
        Reach(Arc::new(allows))
    }

    /// True for an address that a peer may name.
    pub(crate) fn allows(&self, address: IpAddr) -> bool {
        (self.0)(address)
    }
}

impl PartialEq for Reach {
    /// True for copies of the same rule.
    fn eq(&self, other: &Reach) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Default for Reach {
    /// Returns the rule that permits all addresses.
    fn default() -> Self {
        Reach::by(|_| true)
    }
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reach")
    }
}

/// State of one side of a dialog.
#[derive(Clone, Debug)]
pub(crate) struct Dialog {
    pub(crate) call_id: String,
    /// Value of From in requests that this side sends, with its tag.
    pub(crate) local: String,
    pub(crate) local_tag: String,
    /// Value of To in requests that this side sends, with its tag.
    pub(crate) remote: String,
    pub(crate) remote_tag: String,
    /// CSeq of the last request sent.
    pub(crate) local_seq: u32,
    /// CSeq of the last request received.
    pub(crate) remote_seq: Option<u32>,
    /// Route values, first hop first.
    routes: Vec<String>,
    /// Remote target: the address in the other side's Contact, for requests in the dialog.
    target: String,
    /// Place where the dialog was made. It is used while its connection is open, and when the next hop is a name or may
    /// not be reached.
    peer: Hop,
    reach: Reach,
    /// True for the dialog of a `sips:` address: nothing goes by other transports than TLS (RFC 3261 12.1.1).
    secure: bool,
}

impl Dialog {
    /// Returns the dialog of the caller, from a response to its INVITE (RFC 3261 12.1.2).
    pub(crate) fn of_caller(invite: &Request, response: &Response, peer: Hop, reach: Reach) -> Option<Dialog> {
        let mut routes = to_strings(response.headers.list("Record-Route"));
        routes.reverse();
        let from = invite.headers.from().ok()?;
        let to = response.headers.to().ok()?;
        Some(Dialog {
            call_id: response.headers.call_id().ok()?.to_owned(),
            local: invite.headers.get("From")?.to_owned(),
            local_tag: from.tag().to_owned(),
            remote: response.headers.get("To")?.to_owned(),
            remote_tag: to.tag().to_owned(),
            local_seq: invite.headers.cseq().ok()?.seq,
            remote_seq: None,
            routes,
            target: contact(&response.headers).unwrap_or_else(|| invite.uri.clone()),
            peer,
            reach,
            secure: is_sips(&invite.uri),
        })
    }

    /// Returns the dialog of the answerer, from an INVITE (RFC 3261 12.1.1).
    pub(crate) fn of_answerer(invite: &Request, local_tag: &str, peer: Hop) -> Option<Dialog> {
        let from = invite.headers.from().ok()?;
        Some(Dialog {
            call_id: invite.headers.call_id().ok()?.to_owned(),
            local: format!("{};tag={local_tag}", invite.headers.get("To")?),
            local_tag: local_tag.to_owned(),
            remote: invite.headers.get("From")?.to_owned(),
            remote_tag: from.tag().to_owned(),
            local_seq: 0,
            remote_seq: Some(invite.headers.cseq().ok()?.seq),
            routes: to_strings(invite.headers.list("Record-Route")),
            target: contact(&invite.headers).unwrap_or(from.uri),
            secure: peer.transport == Transport::Tls && is_sips(&invite.uri),
            peer,
            reach: Reach::default(),
        })
    }

    /// Sets to which addresses the peer may have requests sent.
    pub(crate) fn limit(&mut self, reach: Reach) {
        self.reach = reach;
    }

    /// Takes the peer's Contact in a target refresh (INVITE, UPDATE and their 2xx, RFC 3261 12.2).
    pub(crate) fn refresh(&mut self, headers: &Headers) {
        if let Some(target) = contact(headers) {
            self.target = target;
        }
    }

    /// Takes the route set and the target of a 2xx, which replace those of the early dialog (RFC 3261 13.2.2.4). `seq`
    /// is the number of the INVITE that was answered.
    pub(crate) fn confirm(&mut self, response: &Response, seq: u32) {
        self.local_seq = self.local_seq.max(seq);
        self.routes = to_strings(response.headers.list("Record-Route"));
        self.routes.reverse();
        self.refresh(&response.headers);
    }

    /// Returns the place where the dialog was made.
    pub(crate) fn place(&self) -> &Hop {
        &self.peer
    }

    /// Uses the connection by which a message of the dialog came from now on.
    pub(crate) fn heard_from(&mut self, from: &Hop) {
        self.peer.follow(from);
    }

    /// Forgets a connection that is closed. True when the dialog used it.
    pub(crate) fn forget(&mut self, connection: ConnectionId) -> bool {
        self.peer.forget(connection)
    }

    /// Returns a request in this dialog with `seq`, without Via, and its next hop: by a loose route, a strict one, or
    /// straight (RFC 3261 12.2.1.1).
    pub(crate) fn request(&self, method: Method, seq: u32, config: &EndpointConfig) -> (Request, Hop) {
        let first = self.routes.first().and_then(|route| NameAddr::parse(route));
        let strict = first.as_ref().filter(|f| !Uri::parse(&f.uri).is_ok_and(|u| u.params.has("lr")));
        let next_hop = first.as_ref().map_or(self.target.as_str(), |f| f.uri.as_str());
        let to = self.hop(next_hop, config);
        let cseq = format!("{seq} {method}");
        let mut request = Request::new(method, strict.map_or(&self.target, |s| &s.uri).clone());
        if let Some(_strict) = strict {
            for route in &self.routes[1..] {
                request.headers.push("Route", route.clone());
            }
            request.headers.push("Route", format!("<{}>", self.target));
        } else {
            for route in &self.routes {
                request.headers.push("Route", route.clone());
            }
        }
        request.headers.push("Max-Forwards", "70");
        request.headers.push("From", self.local.clone());
        request.headers.push("To", self.remote.clone());
        request.headers.push("Call-ID", self.call_id.clone());
        request.headers.push("CSeq", cseq);
        (request, to)
    }

    /// Returns the place of `next`, a route or the target. The dialog's connection is used while it is open. Else it is
    /// the address in `next`, when that may be reached and its transport is spoken; else the place where the dialog was
    /// made.
    fn hop(&self, next: &str, config: &EndpointConfig) -> Hop {
        let Ok(uri) = Uri::parse(next) else { return self.peer.clone() };
        let named = uri.transport().filter(|named| config.speaks(*named));
        let transport = match named {
            Some(named) => named,
            // Not every peer whose dialog goes by a connection says so in its Contact.
            None if self.peer.transport.is_reliable() => return self.peer.clone(),
            None => Transport::Udp,
        };
        let stays = transport == self.peer.transport && self.peer.connection.is_some();
        if stays || (self.secure && transport != Transport::Tls) {
            return self.peer.clone();
        }
        match uri.socket_by(transport).filter(|address| (self.reach.0)(address.ip())) {
            Some(address) if (transport, address) != (self.peer.transport, self.peer.address) => {
                let server_name = self.peer.server_name.clone().filter(|_| transport == Transport::Tls);
                Hop { server_name, ..Hop::new(transport, address) }
            }
            _ => self.peer.clone(),
        }
    }
}

/// Returns the address of the first Contact; `None` without one.
pub(crate) fn contact(headers: &Headers) -> Option<String> {
    let uri = NameAddr::parse(headers.list("Contact").first()?)?.uri;
    Uri::parse(&uri).is_ok().then_some(uri)
}

/// True for a `sips:` address.
pub(crate) fn is_sips(uri: &str) -> bool {
    Uri::parse(uri).is_ok_and(|uri| uri.scheme == Scheme::Sips)
}

fn to_strings(list: Vec<&str>) -> Vec<String> {
    list.into_iter().take(MAX_ROUTES).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(streams: bool) -> EndpointConfig {
        let local = "10.0.0.1:5060".parse().unwrap();
        let stream = Some(local).filter(|_| streams);
        EndpointConfig { local, tcp: stream, tls: stream, user_agent: String::new(), seed: 1 }
    }

    /// Places of in-dialog requests by Record-Route, Contact and the way of the INVITE, `+` for its open connection
    /// (RFC 3261 12.2.1.1, 18.1.1; double Record-Route, RFC 5658).
    #[test]
    fn requests_follow_transports_and_connections() {
        let check = |target: &str, way: &str, record_route: &str, contact: &str, expect: &str| {
            let mut invite = Request::new(Method::Invite, target);
            invite.headers.push("From", "<sip:a@10.0.0.1>;tag=1");
            invite.headers.push("CSeq", "5 INVITE");
            let mut response = invite.respond(200, "", "");
            response.headers.push("To", "<sip:b@10.0.0.9>;tag=2");
            response.headers.push("Call-ID", "c");
            response.headers.push("Contact", contact);
            response.headers.push("Record-Route", record_route);
            let (transport, rest) = way.split_once(' ').unwrap();
            let address = rest.trim_end_matches('+').parse().unwrap();
            let connection = rest.ends_with('+').then_some(ConnectionId(7));
            let server_name = Some("p.example".into());
            let peer = Hop { transport: Transport::from_name(transport).unwrap(), address, server_name, connection };
            let reach = Reach::by(|address| address != IpAddr::from([10, 0, 0, 66]));
            let dialog = Dialog::of_caller(&invite, &response, peer, reach).unwrap();
            let (request, hop) = dialog.request(Method::Bye, 6, &config(true));
            let open = if hop.connection.is_some() { "+" } else { "" };
            assert_eq!(format!("{hop}{open}"), expect, "{way} {record_route} {contact}");
            let mut routes = response.headers.list("Record-Route");
            routes.reverse();
            assert_eq!(request.headers.list("Route"), routes);
            let is_named = hop.transport == Transport::Tls || expect == way;
            assert_eq!(hop.server_name.is_some(), is_named, "the certificate's name: {expect}");
        };
        let (sip, sips) = ("sip:b@10.0.0.9", "sips:b@10.0.0.9");
        let bob = "<sip:b@10.0.0.2:5070>";
        check(sip, "UDP 10.0.0.9:5060", "", "<sip:b@10.0.0.2;transport=tcp>", "TCP 10.0.0.2:5060");
        check(sip, "UDP 10.0.0.9:5060", "", "<sip:b@10.0.0.2;transport=tls>", "TLS 10.0.0.2:5061");
        check(sip, "UDP 10.0.0.9:5060", "", "<sips:b@10.0.0.2>", "TLS 10.0.0.2:5061");
        check(sip, "UDP 10.0.0.9:5060", "", "<sip:b@10.0.0.2:5070;transport=sctp>", "UDP 10.0.0.2:5070");
        check(sip, "UDP 10.0.0.9:5060", "", "<sip:b@10.0.0.66;transport=tcp>", "UDP 10.0.0.9:5060");
        check(sip, "UDP 10.0.0.9:5060", "<sip:10.0.0.3;transport=tcp;lr>", bob, "TCP 10.0.0.3:5060");
        // An open connection is used, whatever address the other side names for it.
        for contact in [bob, "<sip:b@10.0.0.2:5070;transport=tcp>", "<sip:b@b.example;transport=tcp>"] {
            check(sip, "TCP 10.0.0.9:5060+", "", contact, "TCP 10.0.0.9:5060+");
        }
        check(sip, "TCP 10.0.0.9:5060+", "", "<sip:b@10.0.0.2:5070;transport=udp>", "UDP 10.0.0.2:5070");
        // After it, the named address.
        check(sip, "TCP 10.0.0.9:5060", "", "<sip:b@10.0.0.2:5070;transport=tcp>", "TCP 10.0.0.2:5070");
        check(sip, "TCP 10.0.0.9:5060", "", "<sip:b@10.0.0.66;transport=tcp>", "TCP 10.0.0.9:5060");
        check(sip, "TCP 10.0.0.9:5060", "", bob, "TCP 10.0.0.9:5060");
        let double = "<sip:10.0.0.9;r2=on;lr>, <sip:10.0.0.9:5061;transport=tls;r2=on;lr>";
        check(sip, "TLS 10.0.0.9:5061+", double, bob, "TLS 10.0.0.9:5061+");
        check(sip, "TLS 10.0.0.9:5061", double, bob, "TLS 10.0.0.9:5061");
        check(sip, "TLS 10.0.0.8:5061", double, bob, "TLS 10.0.0.9:5061");
        // Nothing of a sips: call leaves TLS.
        check(sips, "TLS 10.0.0.9:5061", "", "<sip:b@10.0.0.2;transport=udp>", "TLS 10.0.0.9:5061");
        check(sips, "TLS 10.0.0.9:5061", "<sip:10.0.0.3;transport=tcp;lr>", bob, "TLS 10.0.0.9:5061");
        check(sips, "TLS 10.0.0.9:5061", "", "<sips:b@10.0.0.2>", "TLS 10.0.0.2:5061");
    }

    /// RFC 3261 12.2.1.1 and 16.12.1: the request line, the Route values and the next hop.
    #[test]
    fn requests_follow_the_route_set() {
        let check = |record_route: &str, uri: &str, routes: &[&str], to: &str| {
            let mut invite = Request::new(Method::Invite, "sip:b@10.0.0.9");
            invite.headers.push("From", "<sip:a@10.0.0.1>;tag=1");
            invite.headers.push("CSeq", "5 INVITE");
            let mut response = invite.respond(200, "", "");
            response.headers.push("To", "<sip:b@10.0.0.9>;tag=2");
            response.headers.push("Call-ID", "c");
            response.headers.push("Contact", "<sip:b@10.0.0.2:5070>");
            response.headers.push("Record-Route", record_route);
            let reach = Reach::by(|address| address != IpAddr::from([10, 0, 0, 66]));
            let dialog =
                Dialog::of_caller(&invite, &response, Hop::udp("10.0.0.9:5060".parse().unwrap()), reach).unwrap();
            let (request, hop) = dialog.request(Method::Bye, 6, &config(false));
            let got = (request.uri.as_str(), request.headers.list("Route"), hop.to_string());
            assert_eq!(got, (uri, routes.to_vec(), format!("UDP {to}")), "{record_route}");
        };
        check("", "sip:b@10.0.0.2:5070", &[], "10.0.0.2:5070");
        check(
            "<sip:p2.example;lr>, <sip:10.0.0.3;lr>",
            "sip:b@10.0.0.2:5070",
            &["<sip:10.0.0.3;lr>", "<sip:p2.example;lr>"],
            "10.0.0.3:5060",
        );
        check(
            "<sip:10.0.0.4>, <sip:10.0.0.3>",
            "sip:10.0.0.3",
            &["<sip:10.0.0.4>", "<sip:b@10.0.0.2:5070>"],
            "10.0.0.3:5060",
        );
        check("<sip:p.example;lr>", "sip:b@10.0.0.2:5070", &["<sip:p.example;lr>"], "10.0.0.9:5060");
        check("<sip:10.0.0.66;lr>", "sip:b@10.0.0.2:5070", &["<sip:10.0.0.66;lr>"], "10.0.0.9:5060");
    }
}
