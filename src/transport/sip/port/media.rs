//! Media that the dialog's events mean: of early dialogs, of offers that the other side makes, and at host names.

use ringer_media::call::{RemoteEnd, RemoteKind, Signal};
use ringer_sip::CallEvent;
use ringer_sip::sdp::{Negotiated, Offer};

use super::{INCOMPATIBLE, SipPort};
use crate::peer::PortOutput;
use crate::sip::order::{SipAction, SipOrder};
use crate::sip::sdp::MediaPlan;

impl SipPort {
    /// Takes a provisional response: its branch is heard from now on, where it has media, in this response or in an
    /// earlier one.
    pub(super) fn progress(&mut self, code: u16, tag: &str, media: Option<&Negotiated>) {
        match media.map(|media| self.media_plan(media)) {
            Some(Ok(plan)) => self.hear_early(code, tag, plan),
            Some(Err(why)) => {
                self.out.push_back(PortOutput::Warning(format!("media before the answer are not followed: {why}")));
                self.signal(Signal::Ringing { code });
            }
            None => match self.branches.return_to(tag) {
                Some(plan) => self.hear_early(code, tag, plan),
                None => self.signal(Signal::Ringing { code }),
            },
        }
    }

    fn hear_early(&mut self, code: u16, tag: &str, plan: MediaPlan) {
        self.branches.hear(tag, plan);
        if !plan.rtp.ip().is_unspecified() {
            self.act(SipAction::Media(plan));
        }
        self.signal(Signal::EarlyMedia { code, leg: plan.media.into() });
    }

    /// Takes a change of the media of a call that came in before the answer, which then means the new ones.
    pub(super) fn change_early(&mut self, media: Negotiated) {
        let Some((_, before)) = &mut self.answer else { return };
        let names_no_address = media.remote_host.is_none() && media.remote_rtp.ip().is_unspecified();
        *before = match names_no_address {
            true => Negotiated { remote_rtp: before.remote_rtp, remote_rtcp: before.remote_rtcp, ..media },
            false => media,
        };
        let changed = before.clone();
        if let Ok(plan) = self.media_plan(&changed)
            && !plan.rtp.ip().is_unspecified()
        {
            self.act(SipAction::Media(plan));
        }
    }

    /// Answers the offer of the other side. The answer to that of a 2xx connects the call ([`CallEvent::Answered`]);
    /// media of a provisional response are heard at once.
    pub(super) fn answer_offer(&mut self, code: u16, offer: &str, tag: &str) {
        let Some(supported) = &self.supported else { return };
        let settled = negotiate(offer, supported).and_then(|(answer, media)| Ok((answer, self.media_plan(&media)?)));
        match settled {
            Ok((answer, plan)) => {
                self.send(SipOrder::AnswerOffer(answer));
                if code < 200 {
                    self.hear_early(code, tag, plan);
                }
            }
            Err(text) => self.hang_up_without_media(text),
        }
    }

    /// Returns the host name that an event gives for media.
    pub(super) fn media_host(&self, event: &CallEvent) -> Option<String> {
        match event {
            CallEvent::Provisional { media: Some(media), .. }
            | CallEvent::Answered { media, .. }
            | CallEvent::Renegotiated { media, .. }
            | CallEvent::Reinvited { media: Some(media), .. }
            | CallEvent::Updated { media: Some(media), .. } => media.remote_host.clone(),
            CallEvent::Offered { sdp, .. } => negotiate(sdp, self.supported.as_ref()?).ok()?.1.remote_host,
            CallEvent::Confirmed { sdp: Some(answer) } => {
                ringer_sip::sdp::read_answer(self.own_offer.as_ref()?, answer).ok()?.remote_host
            }
            _ => None,
        }
    }

    /// Asks for the address of `host`. Returns false where it is known.
    pub(super) fn looks_for(&mut self, host: &str) -> bool {
        let is_unknown = self.names.lacks(host);
        if is_unknown {
            self.names.look_for(host);
            self.act(SipAction::LocateMedia(host.to_owned()));
        }
        is_unknown
    }

    pub(super) fn hang_up_without_media(&mut self, text: String) {
        self.send(SipOrder::Hangup(INCOMPATIBLE.0, INCOMPATIBLE.1));
        self.end_without_media(text);
    }

    pub(super) fn end_without_media(&mut self, text: String) {
        self.signal(Signal::Ended(RemoteEnd { text, kind: RemoteKind::NoMedia, ..Default::default() }));
    }
}

/// Answers an offer with what `supported` allows.
pub(super) fn negotiate(offer: &str, supported: &Offer) -> Result<(String, Negotiated), String> {
    let (session, media) = ringer_sip::sdp::negotiate(offer, supported).map_err(|refusal| refusal.to_string())?;
    Ok((session.to_string(), media))
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use ringer_base::config::CODECS;
    use ringer_base::guard::{Blocked, Guard};

    use super::*;
    use crate::sip::sdp;

    fn offer_at(port: u16) -> Offer {
        sdp::offer(&CODECS, IpAddr::from([192, 0, 2, 1]), port, 1)
    }

    /// Returns the description of the other side, with media at `host`.
    fn theirs(host: &str, port: u16) -> String {
        offer_at(port).session().to_string().replace("c=IN IP4 192.0.2.1", &format!("c=IN IP4 {host}"))
    }

    fn agreement(host: &str, port: u16) -> Negotiated {
        let own = offer_at(4000).session().to_string();
        ringer_sip::sdp::read_answer(&own, &theirs(host, port)).expect("they agree")
    }

    fn early(code: u16, tag: &str, media: Option<Negotiated>) -> CallEvent {
        CallEvent::Provisional { code, tag: tag.to_owned(), sdp: None, media }
    }

    fn answer_by(tag: &str, media: Negotiated) -> CallEvent {
        let (sdp, call_id) = (String::new(), String::new());
        CallEvent::Answered { code: 200, sdp, media, call_id, tag: tag.to_owned() }
    }

    fn change_by(tag: &str, media: Negotiated) -> CallEvent {
        CallEvent::Renegotiated { media, sdp: String::new(), tag: tag.to_owned() }
    }

    fn guard() -> Guard {
        Guard::by(|address| address.to_string() != "192.0.2.99")
    }

    fn caller() -> SipPort {
        let mut port = SipPort::caller("sip:a@b".to_owned(), guard());
        port.poll().expect("it dials");
        port
    }

    /// Outputs of a port so far, in a word each.
    fn outputs_of(port: &mut SipPort) -> Vec<String> {
        let word = |output| match output {
            PortOutput::Act(SipAction::Media(plan)) => format!("media to {}", plan.rtp),
            PortOutput::Act(SipAction::LocateMedia(host)) => format!("where is {host}"),
            PortOutput::Signal(Signal::EarlyMedia { code, .. }) => format!("early media {code}"),
            PortOutput::Signal(Signal::Ringing { code }) => format!("ringing {code}"),
            PortOutput::Signal(Signal::Answered { .. }) => "answered".to_owned(),
            PortOutput::Signal(Signal::Renegotiated { .. }) => "renegotiated".to_owned(),
            PortOutput::Signal(Signal::SessionAnswered { code }) => format!("session {code}"),
            PortOutput::Signal(Signal::Ended(end)) => format!("ended {:?}: {}", end.kind, end.text),
            PortOutput::Act(SipAction::Send(SipOrder::AnswerOffer(_))) => "answer the offer".to_owned(),
            PortOutput::Act(SipAction::Send(SipOrder::Answer(_))) => "answer".to_owned(),
            PortOutput::Act(SipAction::Send(SipOrder::Hangup(cause, _))) => format!("hang up {cause}"),
            PortOutput::Act(SipAction::Send(SipOrder::Reject(code, _))) => format!("reject {code}"),
            PortOutput::Act(SipAction::Send(SipOrder::KnowHost(host, address))) => format!("{host} is {address}"),
            PortOutput::Act(SipAction::Send(SipOrder::Limit(_))) => "limit".to_owned(),
            other => format!("{other:?}"),
        };
        std::iter::from_fn(|| port.poll()).map(word).collect()
    }

    #[test]
    fn the_branch_that_rang_last_is_heard() {
        let mut port = caller();
        let mut check = |event: CallEvent, expect: &[&str]| {
            port.receive(event.clone());
            assert_eq!(outputs_of(&mut port), expect, "{event:?}");
        };
        let at = |number: u16| agreement("192.0.2.7", number);
        check(early(180, "a", None), &["ringing 180"]);
        check(early(183, "a", Some(at(6000))), &["media to 192.0.2.7:6000", "early media 183"]);
        check(early(183, "b", Some(at(7000))), &["media to 192.0.2.7:7000", "early media 183"]);
        check(early(180, "b", None), &["ringing 180"]);
        check(early(180, "c", None), &["ringing 180"]);
        check(early(180, "a", None), &["media to 192.0.2.7:6000", "early media 180"]);
        check(change_by("b", at(7002)), &["session 200"]);
        check(change_by("a", at(6002)), &["session 200", "media to 192.0.2.7:6002", "renegotiated"]);
        check(early(180, "b", None), &["media to 192.0.2.7:7002", "early media 180"]);
        check(answer_by("a", at(6002)), &["media to 192.0.2.7:6002", "answered"]);
        check(change_by("x", at(8000)), &["session 200", "media to 192.0.2.7:8000", "renegotiated"]);
    }

    #[test]
    fn what_comes_behind_a_name_waits_in_order() {
        let named = |number| agreement("m.example", number);
        let check = |found, expect: &[&str]| {
            let mut port = caller();
            port.receive(early(183, "a", Some(named(6000))));
            assert_eq!(outputs_of(&mut port), ["where is m.example"]);
            port.receive(answer_by("a", named(6000)));
            port.receive(CallEvent::Unchanged { code: 200, why: None });
            assert_eq!(outputs_of(&mut port), Vec::<String>::new());
            port.media_found(found);
            assert_eq!(outputs_of(&mut port), expect);
            port.media_found(found);
            assert_eq!(outputs_of(&mut port), Vec::<String>::new(), "one answer for one question");
        };
        check(
            Ok([192, 0, 2, 7].into()),
            &[
                "m.example is 192.0.2.7",
                "media to 192.0.2.7:6000",
                "early media 183",
                "media to 192.0.2.7:6000",
                "answered",
                "session 200",
            ],
        );
        for (blocked, why) in [
            (Blocked::NoAddress, "the host \"m.example\" of the media has no address"),
            (Blocked::NotAllowed, "the host \"m.example\" of the media points to an address that is not allowed"),
        ] {
            let warning =
                format!("Warning(\"media before the answer are not followed: {}\")", why.replace('"', "\\\""));
            let end = format!("ended NoMedia: {why}");
            check(Err(blocked), &[&warning, "ringing 183", "hang up 88", &end, "session 200"]);
        }
    }

    #[test]
    fn each_name_is_looked_up_and_the_end_waits_for_none() {
        let mut port = caller();
        port.receive(early(183, "a", Some(agreement("one.example", 6000))));
        port.receive(early(183, "b", Some(agreement("two.example", 7000))));
        assert_eq!(outputs_of(&mut port), ["where is one.example"]);
        port.media_found(Ok([192, 0, 2, 7].into()));
        let first = ["one.example is 192.0.2.7", "media to 192.0.2.7:6000", "early media 183", "where is two.example"];
        assert_eq!(outputs_of(&mut port), first);
        let end = ringer_sip::CallEnd {
            kind: ringer_sip::EndKind::RemoteBye,
            sip_code: None,
            q850_cause: None,
            text: "gone".to_owned(),
            by_remote: true,
            retry_after: false,
        };
        port.receive(CallEvent::Ended(end));
        assert_eq!(outputs_of(&mut port), ["ended Bye: gone"]);
        port.media_found(Ok([192, 0, 2, 8].into()));
        assert_eq!(outputs_of(&mut port), Vec::<String>::new());
    }

    #[test]
    fn too_much_behind_a_name_gives_it_up() {
        let mut port = caller();
        port.receive(answer_by("a", agreement("m.example", 6000)));
        for _ in 0..64 {
            assert!(!outputs_of(&mut port).iter().any(|line| line.starts_with("ended")));
            port.receive(CallEvent::Unchanged { code: 200, why: None });
        }
        let came = outputs_of(&mut port);
        assert_eq!(came[..2], ["hang up 88", "ended NoMedia: the host \"m.example\" of the media has no address"]);
    }

    #[test]
    fn a_call_that_came_in_is_answered_when_its_name_is_known() {
        let check = |found, expect: &[&str]| {
            let offer = theirs("m.example", 6000);
            let mut port =
                SipPort::incoming(String::new(), Some(&offer), &offer_at(4000), guard()).expect("it can be taken");
            port.answer();
            port.answer();
            assert_eq!(outputs_of(&mut port), ["limit", "where is m.example"]);
            port.media_found(found);
            assert_eq!(outputs_of(&mut port), expect);
        };
        let media = "media to 192.0.2.7:6000";
        check(Ok([192, 0, 2, 7].into()), &["m.example is 192.0.2.7", "answer", media, "answered"]);
        let why = "ended NoMedia: the host \"m.example\" of the media has no address";
        check(Err(Blocked::NoAddress), &["reject 488", why]);
    }

    #[test]
    fn an_offer_of_the_other_side_is_answered() {
        let check = |code: u16, host: &str, found: Option<IpAddr>, expect: &[&str]| {
            let mut port = caller().without_offer(offer_at(4000));
            port.receive(CallEvent::Offered { code, sdp: theirs(host, 6000), tag: "a".to_owned() });
            if let Some(found) = found {
                assert_eq!(outputs_of(&mut port), [format!("where is {host}")]);
                port.media_found(Ok(found));
            }
            assert_eq!(outputs_of(&mut port), expect, "{code} {host}");
        };
        check(200, "192.0.2.7", None, &["answer the offer"]);
        check(183, "192.0.2.7", None, &["answer the offer", "media to 192.0.2.7:6000", "early media 183"]);
        let known = "m.example is 192.0.2.7";
        check(200, "m.example", Some([192, 0, 2, 7].into()), &[known, "answer the offer"]);
        check(200, "192.0.2.99", None, &["hang up 88", "ended NoMedia: the media address is not allowed"]);
        let mut port = caller().without_offer(sdp::offer(
            &[ringer_media::codec::Codec::Opus],
            IpAddr::from([192, 0, 2, 1]),
            4000,
            1,
        ));
        let pcmu = sdp::offer(&[ringer_media::codec::Codec::Pcmu], IpAddr::from([192, 0, 2, 7]), 6000, 1);
        port.receive(CallEvent::Offered { code: 200, sdp: pcmu.session().to_string(), tag: String::new() });
        assert_eq!(outputs_of(&mut port), ["hang up 88", "ended NoMedia: no common codec"]);
    }

    #[test]
    fn media_that_changed_before_the_answer_are_what_the_answer_means() {
        let offer = theirs("192.0.2.7", 6000);
        let mut port = SipPort::incoming(String::new(), Some(&offer), &offer_at(4000), guard()).expect("it is taken");
        let moved = "media to 192.0.2.7:6002";
        port.receive(change_by("a", agreement("192.0.2.7", 6002)));
        assert_eq!(outputs_of(&mut port), ["limit", moved]);
        // The old way of hold: audio goes where it went.
        port.receive(change_by("a", agreement("0.0.0.0", 6004)));
        assert_eq!(outputs_of(&mut port), [moved]);
        port.answer();
        assert_eq!(outputs_of(&mut port), ["answer", moved, "answered", "Signal(Hold(true))"]);
    }

    #[test]
    fn a_call_that_is_answered_or_offered_with_hold_is_held_until_it_is_taken_up() {
        let held = |how: &str| {
            let own = offer_at(4000).session().to_string();
            let theirs = theirs("192.0.2.7", 6000).replace("a=sendrecv\r\n", "");
            let theirs = match how {
                "0.0.0.0" => theirs.replace("c=IN IP4 192.0.2.7", "c=IN IP4 0.0.0.0"),
                direction => format!("{theirs}a={direction}\r\n"),
            };
            (ringer_sip::sdp::read_answer(&own, &theirs).expect("they agree"), theirs)
        };
        let (on, off) = ("Signal(Hold(true))", "Signal(Hold(false))");
        let media = "media to 192.0.2.7:6000";
        for (how, goes, holds) in [
            ("inactive", &[media][..], true),
            ("sendonly", &[media], true),
            ("0.0.0.0", &[], true),
            // It hears this side, and sends nothing: no hold (RFC 3264 8.4).
            ("recvonly", &[media], false),
            ("sendrecv", &[media], false),
        ] {
            let if_held = |word: &'static str| if holds { vec![word] } else { vec![] };
            let expected_of = |first: &[&'static str]| [first, goes, &["answered"], &if_held(on)].concat();
            let (agreed, offer) = held(how);
            let mut port = caller();
            port.receive(answer_by("a", agreed));
            assert_eq!(outputs_of(&mut port), expected_of(&[]), "answered with {how}");
            // The event behind the agreement says nothing new.
            port.receive(change_by("a", agreement("192.0.2.7", 6000)));
            port.receive(CallEvent::Hold(false));
            let taken_up = ["session 200", media, "renegotiated"].into_iter().chain(if_held(off));
            assert_eq!(outputs_of(&mut port), taken_up.collect::<Vec<_>>(), "{how}");

            let mut port = SipPort::incoming(String::new(), Some(&offer), &offer_at(4000), guard()).expect("taken");
            port.answer();
            assert_eq!(outputs_of(&mut port), expected_of(&["limit", "answer"]), "offered with {how}");

            let mut port = SipPort::incoming(String::new(), None, &offer_at(4000), guard()).expect("taken");
            port.answer();
            port.receive(CallEvent::Confirmed { sdp: Some(offer) });
            assert_eq!(outputs_of(&mut port), expected_of(&["limit", "answer"]), "the ACK has {how}");
        }
    }
}
