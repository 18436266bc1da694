//! Requests inside a dialog: BYE, re-INVITE, UPDATE, INFO, REFER and the rest (RFC 3261 12.2.2, 14.2, 15.1.2).

use super::{ALLOW, CallEnd, CallEvent, CallKey, EndKind, Side, Stage, Unacknowledged};
use crate::endpoint::{Endpoint, TransactionKey};
use crate::message::{Method, Request, sdp_of};
use crate::sdp::{Negotiated, Offer, Refusal, Session, negotiate};
use crate::time::Time;

/// Length of a digit whose INFO does not say, milliseconds.
const DIGIT_MS: u32 = 250;

impl Endpoint {
    /// A request with a To tag, other than ACK and CANCEL.
    pub(crate) fn in_dialog(&mut self, now: Time, tx: &TransactionKey, request: &Request) {
        let (Some((key, at)), Ok(cseq)) = (self.find_dialog(request), request.headers.cseq()) else {
            return self.reply(now, tx, 481, "", &[]);
        };
        let Some(call) = self.calls.get_mut(&key) else { return };
        let dialog = &mut call.dialogs[at].dialog;
        if dialog.remote_seq.is_some_and(|last| cseq.seq < last) {
            return self.reply(now, tx, 500, "CSeq out of order", &[]);
        }
        dialog.remote_seq = Some(cseq.seq);
        let (stage, busy, open) = (call.stage, call.unacknowledged.is_some(), call.change_is_open());
        let unknown = request.headers.list("Require").join(", ");
        match &request.method {
            Method::Bye => self.bye_received(now, tx, key, at, request),
            _ if stage == Stage::Over => self.reply(now, tx, 481, "", &[]),
            _ if !unknown.is_empty() => self.reply(now, tx, 420, "", &[("Unsupported", &unknown)]),
            Method::Invite if stage == Stage::Pending || open => self.reply(now, tx, 491, "", &[]),
            Method::Invite if busy => self.reply(now, tx, 500, "", &[("Retry-After", "5")]),
            Method::Invite | Method::Update => self.session_change(now, tx, key, at, request),
            Method::Info => self.info_received(now, tx, key, request),
            Method::Refer => self.refer_received(now, tx, key, at, request),
            Method::Options => self.reply(now, tx, 200, "", &[("Allow", ALLOW), ("Accept", "application/sdp")]),
            Method::Notify | Method::Message => self.reply(now, tx, 200, "", &[]),
            Method::Prack => self.reply(now, tx, 481, "", &[]),
            Method::Other(_) => self.reply(now, tx, 501, "", &[("Allow", ALLOW)]),
            _ => self.reply(now, tx, 405, "", &[("Allow", ALLOW)]),
        }
    }

    fn bye_received(&mut self, now: Time, tx: &TransactionKey, key: CallKey, at: usize, request: &Request) {
        self.reply(now, tx, 200, "", &[]);
        let Some(call) = self.calls.get_mut(&key) else { return };
        call.dialogs[at].closed = true;
        let active = call.active.is_none_or(|active| active == at);
        let pending = call.stage == Stage::Pending;
        call.unacknowledged = None;
        self.call_changed(key);
        let q850_cause = request.headers.q850_cause();
        match (active, pending) {
            (false, _) => {}
            (true, true) if matches!(self.calls.get(&key).map(|c| &c.side), Some(Side::Answerer(_))) => {
                self.cancelled(now, key, EndKind::RemoteBye, q850_cause);
            }
            // An early dialog of a caller ended; another fork may still answer.
            (true, true) => {}
            (true, false) => {
                let text = request.headers.list("Reason").first().and_then(|r| text_of(r)).unwrap_or_default();
                let end = CallEnd::new(EndKind::RemoteBye, &text);
                self.end(now, key, CallEnd { q850_cause, by_remote: true, ..end });
            }
        }
    }

    /// re-INVITE or UPDATE: answered with the codec that is in use, or refused with 488 and all stays as it was; without an
    /// offer a re-INVITE gets one, an UPDATE a plain 200.
    fn session_change(&mut self, now: Time, tx: &TransactionKey, key: CallKey, at: usize, request: &Request) {
        let offer = sdp_of(&request.headers, &request.body);
        let Some(call) = self.calls.get_mut(&key) else { return };
        let invite = request.method == Method::Invite;
        let answered = match &offer {
            Some(offer) => call.reanswer(offer).map(|(sdp, media)| (Some(sdp), Some(media))),
            None if invite => Ok((call.own_offer(), None)),
            None => Ok((None, None)),
        };
        let (local, media) = match answered {
            Ok(answered) => answered,
            Err(_) => {
                self.reply(now, tx, 488, "", &[]);
                return self.event(key, CallEvent::Unchanged { code: 488 });
            }
        };
        let call_seq = request.headers.cseq().map(|c| c.seq).unwrap_or_default();
        call.dialogs[at].dialog.refresh(&request.headers);
        let contact = self.contact(key);
        let mut response = request.respond(200, "", "");
        response.headers.push("Contact", contact);
        response.headers.push("Allow", ALLOW);
        if let Some(sdp) = &local {
            response.set_sdp(sdp);
        }
        let sent = self.send_response(now, tx, response);
        if let (true, Some((bytes, to)), Some(call)) = (invite, sent, self.calls.get_mut(&key)) {
            call.unacknowledged = Some(Unacknowledged::new(now, bytes, to, call_seq));
            self.call_changed(key);
        }
        match (media, offer) {
            (Some(media), Some(sdp)) => self.renegotiated(key, media, sdp),
            _ if !invite => self.event(key, CallEvent::Unchanged { code: 200 }),
            // The ACK brings the answer to this side's offer.
            _ => {}
        }
    }

    /// Reports a changed session, and hold when that changed.
    pub(super) fn renegotiated(&mut self, key: CallKey, media: Negotiated, sdp: String) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        let held = media.on_hold;
        let changed = std::mem::replace(&mut call.on_hold, held) != held;
        self.event(key, CallEvent::Renegotiated { media, sdp });
        if changed {
            self.event(key, CallEvent::Hold(held));
        }
    }

    fn info_received(&mut self, now: Time, tx: &TransactionKey, key: CallKey, request: &Request) {
        let kind = request.headers.get("Content-Type").unwrap_or("").to_ascii_lowercase();
        let body = String::from_utf8_lossy(&request.body);
        let digit = match kind.split(';').next().unwrap_or("").trim() {
            "application/dtmf-relay" => relay_digit(&body),
            "application/dtmf" => digit(body.trim()).map(|d| (d, DIGIT_MS)),
            _ if body.is_empty() => None,
            _ => return self.reply(now, tx, 415, "", &[("Accept", "application/dtmf-relay, application/dtmf")]),
        };
        self.reply(now, tx, 200, "", &[]);
        if let Some((digit, duration_ms)) = digit {
            self.event(key, CallEvent::Digit(digit, duration_ms));
        }
    }
}

impl Endpoint {
    /// Sends a request of this side in one of a call's dialogs, with credentials where a challenge is known. Returns its
    /// transaction.
    pub(super) fn send_in_dialog(
        &mut self,
        now: Time,
        key: CallKey,
        at: usize,
        method: Method,
        fill: impl FnOnce(&mut Request),
    ) -> Option<TransactionKey> {
        let call = self.calls.get_mut(&key)?;
        let fork = call.dialogs.get_mut(at)?;
        fork.dialog.local_seq += 1;
        let (mut request, to) = fork.dialog.request(method, fork.dialog.local_seq);
        fill(&mut request);
        if let Side::Caller(caller) = &mut call.side {
            caller.login.sign(&mut request, &mut self.ids);
        }
        Some(self.send_request(now, key, request, to))
    }
}

impl super::Call {
    /// The answer to a new offer: what this side first described, narrowed by the offer.
    fn reanswer(&mut self, offer: &str) -> Result<(String, Negotiated), Refusal> {
        let own = Session::parse(&self.local_sdp)?;
        let mut base = Offer::read(&own).ok_or(Refusal::NoAudio)?;
        if let Some((name, clock_rate_hz)) = &self.codec {
            base.codecs.retain(|codec| codec.name == *name && codec.clock_rate_hz == *clock_rate_hz);
        }
        let (mut session, media) = negotiate(offer, &Offer { direction: self.wish.unwrap_or_default(), ..base })?;
        self.version += 1;
        session.id = own.id;
        session.version = own.version + self.version;
        Ok((session.to_string(), media))
    }

    /// What this side first described, as a new offer.
    fn own_offer(&mut self) -> Option<String> {
        let mut own = Session::parse(&self.local_sdp).ok()?;
        self.version += 1;
        own.version += self.version;
        Some(own.to_string())
    }
}

/// `Signal=5` and `Duration=160` lines.
fn relay_digit(body: &str) -> Option<(char, u32)> {
    let value = |name: &str| {
        let mut pairs = body.lines().filter_map(|line| line.split_once('='));
        pairs.find(|(n, _)| n.trim().eq_ignore_ascii_case(name)).map(|(_, v)| v.trim())
    };
    let duration = value("Duration").and_then(|v| v.parse().ok()).unwrap_or(DIGIT_MS);
    Some((digit(value("Signal")?)?, duration.min(10_000)))
}

/// A telephone key; some senders write 10 and 11 for the star and the hash.
fn digit(text: &str) -> Option<char> {
    match text {
        "10" => Some('*'),
        "11" => Some('#'),
        _ => {
            let mut chars = text.chars().map(|c| c.to_ascii_uppercase());
            let key = chars.next().filter(|c| c.is_ascii_digit() || "*#ABCD".contains(*c))?;
            chars.next().is_none().then_some(key)
        }
    }
}

/// The text of a Reason value.
fn text_of(reason: &str) -> Option<String> {
    let (_, params) = reason.split_once(';')?;
    crate::uri::Params::parse(params).get("text").map(str::to_owned)
}
