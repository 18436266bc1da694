//! Media that the dialog's events mean: of early dialogs, of offers that the other side makes, and at host names.

use ringer_media::call::{RemoteEnd, RemoteKind, Signal};
use ringer_sip::CallEvent;
use ringer_sip::sdp::{Negotiated, Offer};

use super::{INCOMPATIBLE, SipOrder, SipPort};
use crate::transport::port::{MediaPlan, PortOutput};

impl SipPort {
    /// A provisional response: its branch is heard from now on, where it has media, in this response or in an earlier one.
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
        self.out.push_back(PortOutput::Media(plan));
        self.signal(Signal::EarlyMedia { code, leg: plan.media.into() });
    }

    /// The other side makes the offer. The answer to that of a 2xx connects the call ([`CallEvent::Answered`]); media of a provisional
    /// response are heard at once.
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
            self.out.push_back(PortOutput::LocateMedia(host.to_owned()));
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
