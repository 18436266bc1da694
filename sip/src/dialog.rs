//! One dialog (RFC 3261 12): whom to address, by which way, with which numbers. It sends nothing itself.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use crate::header::NameAddr;
use crate::hop::Hop;
use crate::message::{Headers, Method, Request, Response};
use crate::uri::Uri;

/// Most Route values that are kept from a peer.
const MAX_ROUTES: usize = 32;

/// Says to which addresses a peer may have the requests of a dialog sent, by its Contact and Record-Route.
#[derive(Clone)]
pub struct Reach(Arc<dyn Fn(IpAddr) -> bool + Send + Sync>);

impl Reach {
    /// To those for which `allows` is true.
    pub fn by(allows: impl Fn(IpAddr) -> bool + Send + Sync + 'static) -> Reach {
        Reach(Arc::new(allows))
    }
}

impl Default for Reach {
    /// To all of them.
    fn default() -> Self {
        Reach::by(|_| true)
    }
}

impl fmt::Debug for Reach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reach")
    }
}

/// The state that both sides of a dialog keep.
#[derive(Clone, Debug)]
pub(crate) struct Dialog {
    pub(crate) call_id: String,
    /// From of what this side sends, with its tag.
    pub(crate) local: String,
    pub(crate) local_tag: String,
    /// To of what this side sends, with its tag.
    pub(crate) remote: String,
    pub(crate) remote_tag: String,
    /// CSeq of the last request sent.
    pub(crate) local_seq: u32,
    /// CSeq of the last request received.
    pub(crate) remote_seq: Option<u32>,
    /// Route values, first hop first.
    routes: Vec<String>,
    /// The peer's Contact.
    target: String,
    /// Where to send when the next hop is a name, or may not be reached: where the dialog was made.
    peer: Hop,
    reach: Reach,
}

impl Dialog {
    /// The caller's side, from a response to its INVITE (RFC 3261 12.1.2).
    pub(crate) fn of_caller(invite: &Request, response: &Response, peer: Hop, reach: Reach) -> Option<Dialog> {
        let mut routes = owned(response.headers.list("Record-Route"));
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
        })
    }

    /// The answerer's side, from an INVITE (RFC 3261 12.1.1).
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
            routes: owned(invite.headers.list("Record-Route")),
            target: contact(&invite.headers).unwrap_or(from.uri),
            peer,
            reach: Reach::default(),
        })
    }

    /// The peer's Contact in a target refresh (INVITE, UPDATE and their 2xx, RFC 3261 12.2).
    pub(crate) fn refresh(&mut self, headers: &Headers) {
        if let Some(target) = contact(headers) {
            self.target = target;
        }
    }

    /// Takes the route set and the target of a 2xx, which replace those of the early dialog (RFC 3261 13.2.2.4). `seq` is the
    /// number of the INVITE that was answered.
    pub(crate) fn confirm(&mut self, response: &Response, seq: u32) {
        self.local_seq = self.local_seq.max(seq);
        self.routes = owned(response.headers.list("Record-Route"));
        self.routes.reverse();
        self.refresh(&response.headers);
    }

    /// A request in this dialog with `seq`, without Via, and where it goes: by a loose route, a strict one, or straight
    /// (RFC 3261 12.2.1.1).
    pub(crate) fn request(&self, method: Method, seq: u32) -> (Request, Hop) {
        let first = self.routes.first().and_then(|route| NameAddr::parse(route));
        let strict = first.as_ref().filter(|f| !Uri::parse(&f.uri).is_ok_and(|u| u.params.has("lr")));
        let next_hop = first.as_ref().map_or(self.target.as_str(), |f| f.uri.as_str());
        let hop = Uri::parse(next_hop).ok().and_then(|uri| uri.socket());
        let to = hop.filter(|hop| (self.reach.0)(hop.ip())).map_or_else(|| self.peer.clone(), Hop::udp);
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
}

/// The address of the first Contact.
pub(crate) fn contact(headers: &Headers) -> Option<String> {
    let uri = NameAddr::parse(headers.list("Contact").first()?)?.uri;
    Uri::parse(&uri).is_ok().then_some(uri)
}

fn owned(list: Vec<&str>) -> Vec<String> {
    list.into_iter().take(MAX_ROUTES).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let (request, hop) = dialog.request(Method::Bye, 6);
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
