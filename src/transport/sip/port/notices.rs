//! Facts of the signalling that change nothing of a call: warnings for the user, and events of the timeline.

use std::net::SocketAddr;

use ringer_media::call::{ChannelEvent, Signal};
use ringer_sip::Notice;
use serde_json::{Value, json};

use super::SipPort;
use crate::sockets::Stranger;

/// Most events that are kept until the call is up.
const MAX_KEPT: usize = 16;

impl SipPort {
    /// Tells a notice of one of the call's dialogs.
    pub(super) fn take_notice(&mut self, notice: &Notice) {
        match notice {
            Notice::Oversized { bytes, tcp_failed } => {
                let why = match tcp_failed {
                    true => "TCP did not reach the other side",
                    false => "this side speaks no TCP here (sip.listen, or ;transport=tcp in the address)",
                };
                self.warn(format!(
                    "a SIP request of {bytes} bytes went by UDP, where at most 1300 should (RFC 3261 18.1.1): networks may lose it \
                     without a word; {why}. Fewer codecs (sip.codecs) and header fields make it shorter"
                ));
                self.tell("sip_request_oversized", json!({ "bytes": bytes, "tcp_failed": tcp_failed }));
            }
            Notice::PlaceLeft { to, code, text } => {
                let answer = code.map_or_else(|| text.clone(), |code| format!("{code} {text}"));
                self.warn(format!("the call was tried at {to} before: {answer}"));
                self.tell("sip_attempt_failed", json!({ "address": to.to_string(), "sip_code": code, "text": text }));
            }
            Notice::AnswerRepeated { to } => {
                self.warn(format!(
                    "the agent repeats its 200 OK: the ACK to {to} does not arrive. Its Contact or Record-Route may name an address \
                     that is not reachable from here, as behind a NAT; it will end the call after 32 s"
                ));
                self.tell("sip_answer_repeated", json!({ "ack_to": to.to_string() }));
            }
        }
    }

    /// Notes that RTP comes from another address than the agreed one.
    pub fn take_stranger(&mut self, stranger: Stranger) {
        let agreed = self.peer.address.clone().unwrap_or_default();
        self.stranger = Some(stranger);
        match stranger {
            Stranger::Taken(found) => {
                self.warn(format!("RTP came from {found}, not from {agreed} as agreed, and was taken from there"));
                self.tell("rtp_address_changed", json!({ "from": agreed, "to": found.to_string() }));
            }
            Stranger::Ignored(found) => {
                self.tell("rtp_address_ignored", json!({ "agreed": agreed, "from": found.to_string() }));
            }
        }
    }

    /// Returns the warning of `count` datagrams that came from other addresses than the agreed one; `None` without
    /// them, or where such an address was taken.
    pub fn strangers_warning(&self, count: u64) -> Option<String> {
        if count == 0 || matches!(self.stranger, Some(Stranger::Taken(_))) {
            return None;
        }
        let agreed = self.peer.address.clone().unwrap_or_default();
        let host = agreed.parse::<SocketAddr>().ok().map(|agreed| agreed.ip());
        let help = match self.stranger {
            Some(Stranger::Ignored(found)) if Some(found.ip()) == host => {
                format!(": RTP comes from {found}; sip.symmetric_rtp = \"on\" takes other ports of the named host")
            }
            Some(Stranger::Ignored(found)) => {
                format!(": RTP comes from {found}; sip.symmetric_rtp = \"any\" takes another host than the named one")
            }
            _ => " (sip.symmetric_rtp)".to_owned(),
        };
        Some(format!(
            "{count} datagrams came to the media port from other addresses than {agreed}, and were ignored{help}"
        ))
    }

    /// Tells that the codec is another one than `before`.
    pub(super) fn tell_codec(&mut self, before: Option<&'static str>) {
        if let (Some(from), Some(to)) = (before, self.peer.codec)
            && from != to
        {
            self.tell("codec_changed", json!({ "from": from, "to": to }));
        }
    }

    /// Tells an event of the timeline, which begins when the call is up.
    fn tell(&mut self, name: &'static str, data: Value) {
        let event = ChannelEvent::Other { name: name.into(), data };
        if self.is_up {
            self.signal(Signal::Channel { event, follows_own: false });
        } else if self.kept.len() < MAX_KEPT {
            self.kept.push(event);
        }
    }

    /// Tells what happened before the call was up.
    pub(super) fn tell_kept(&mut self) {
        for event in std::mem::take(&mut self.kept) {
            self.signal(Signal::Channel { event, follows_own: false });
        }
    }
}

#[cfg(test)]
mod tests {
    use ringer_base::config::CODECS;
    use ringer_base::guard::Guard;
    use ringer_sip::{CallEvent, Hop};

    use super::*;
    use crate::peer::PortOutput;
    use crate::sip::sdp;

    /// Returns the port of a call that is answered after `early` and before `late`.
    fn port(early: &[Notice], late: &[Notice]) -> SipPort {
        let host = "192.0.2.1".parse().expect("an address");
        let mine = sdp::offer(&CODECS, host, 4000, 1).session().to_string();
        let theirs = sdp::offer(&CODECS, host, 5000, 2).session().to_string();
        let media = ringer_sip::sdp::read_answer(&mine, &theirs).expect("they agree");
        let (call_id, tag) = (String::new(), String::new());
        let answered = CallEvent::Answered { code: 200, sdp: theirs, media, call_id, tag };
        let events = |notices: &[Notice]| notices.iter().cloned().map(CallEvent::Notice).collect::<Vec<_>>();
        let mut port = SipPort::caller("sip:a@b".to_owned(), Guard::new(true));
        events(early).into_iter().chain([answered]).chain(events(late)).for_each(|event| port.receive(event));
        port
    }

    /// Returns warnings and events of the timeline, in order.
    fn report(mut port: SipPort) -> (Vec<String>, Vec<&'static str>) {
        let (mut warnings, mut names, mut is_up) = (Vec::new(), Vec::new(), false);
        while let Some(output) = port.poll() {
            match output {
                PortOutput::Warning(text) => warnings.push(text),
                PortOutput::Signal(Signal::Answered { .. }) => is_up = true,
                PortOutput::Signal(Signal::Channel { event: ChannelEvent::Other { name, .. }, .. }) => {
                    assert!(is_up, "the timeline begins with the answer");
                    names.push(match name {
                        std::borrow::Cow::Borrowed(name) => name,
                        std::borrow::Cow::Owned(name) => panic!("{name} is no fixed name"),
                    });
                }
                _ => {}
            }
        }
        (warnings, names)
    }

    #[test]
    fn notices_are_warnings_and_events_of_the_timeline() {
        let to = Hop::udp(([192, 0, 2, 7], 5060).into());
        let large = |tcp_failed| Notice::Oversized { bytes: 3712, tcp_failed };
        let left = Notice::PlaceLeft { to: to.clone(), code: Some(503), text: "Service Unavailable".into() };
        let (warnings, events) = report(port(&[large(false), left], &[Notice::AnswerRepeated { to }]));
        let expect = [
            vec!["a SIP request of 3712 bytes went by UDP", "sip.listen", "sip.codecs"],
            vec!["the call was tried at UDP 192.0.2.7:5060 before: 503 Service Unavailable"],
            vec!["repeats its 200 OK", "UDP 192.0.2.7:5060", "Record-Route"],
        ];
        assert_eq!(warnings.len(), expect.len(), "{warnings:?}");
        for (warning, parts) in warnings.iter().zip(expect) {
            assert!(parts.iter().all(|part| warning.contains(part)), "{parts:?}: {warning}");
        }
        assert_eq!(events, ["sip_request_oversized", "sip_attempt_failed", "sip_answer_repeated"]);
        let (warnings, _) = report(port(&[], &[large(true)]));
        assert!(warnings[0].contains("TCP did not reach the other side"), "{warnings:?}");
    }

    #[test]
    fn media_of_other_addresses_are_told_with_the_setting_that_takes_them() {
        let at = |text: &str| text.parse::<SocketAddr>().expect("an address");
        let check = |stranger: Option<Stranger>, expect: Option<&str>, event: Option<&str>| {
            let mut port = port(&[], &[]);
            stranger.into_iter().for_each(|stranger| port.take_stranger(stranger));
            let warning = port.strangers_warning(7);
            let fits = |(event, expect): (&String, &str)| event.contains("192.0.2.1:5000") && event.ends_with(expect);
            assert_eq!(warning.as_ref().zip(expect).map(fits), expect.map(|_| true), "{warning:?}");
            assert_eq!(port.strangers_warning(0), None);
            assert_eq!(report(port).1, Vec::from_iter(event));
        };
        check(None, Some("were ignored (sip.symmetric_rtp)"), None);
        let same = "RTP comes from 192.0.2.1:9000; sip.symmetric_rtp = \"on\" takes other ports of the named host";
        check(Some(Stranger::Ignored(at("192.0.2.1:9000"))), Some(same), Some("rtp_address_ignored"));
        let other = "RTP comes from 192.0.2.9:5000; sip.symmetric_rtp = \"any\" takes another host than the named one";
        check(Some(Stranger::Ignored(at("192.0.2.9:5000"))), Some(other), Some("rtp_address_ignored"));
        check(Some(Stranger::Taken(at("192.0.2.9:5000"))), None, Some("rtp_address_changed"));
    }
}
