//! Requests inside a dialog: BYE, re-INVITE, UPDATE, INFO, REFER and the rest (RFC 3261 12.2.2, 14.2, 15.1.2).

use std::net::IpAddr;

use super::bodies;
use crate::call::{Call, CallEnd, CallEvent, CallStage, DialogSide, EndKind, LEAST_S, Plan, Unacknowledged};
use crate::capabilities::{ALLOW, CAPABILITIES, SUPPORTED, unknown_extensions};
use crate::endpoint::Endpoint;
use crate::hop::Hop;
use crate::ids::{CallKey, TransactionKey};
use crate::message::{Method, Request, sdp_of};
use crate::sdp::{Negotiated, Offer, Refusal, Session, negotiate};
use crate::time::Time;

/// Length of a digit whose INFO does not tell it, milliseconds.
const DIGIT_MS: u32 = 250;

/// Most digits of one INFO; a request with more of them is taken for none.
const MAX_DIGITS: usize = 32;

/// Longest body of a MESSAGE that is reported, bytes; larger ones are answered 413.
const MAX_MESSAGE_TEXT: usize = 16_384;

/// Reason why an offer of the other side cannot be taken now.
enum Conflict {
    /// An offer of this side has no answer: 491.
    Glare,
    /// An offer of the other side has no answer, or its answer no ACK: 500 with Retry-After.
    Early,
}

impl Endpoint {
    /// Handles a request with a To tag, other than ACK and CANCEL.
    pub(crate) fn in_dialog(&mut self, now: Time, tx: &TransactionKey, request: &Request) {
        let (Some((key, at)), Ok(cseq)) = (self.find_dialog(request), request.headers.cseq()) else {
            return self.reply(now, tx, 481, "", &[]);
        };
        let Some(call) = self.calls.get_mut(&key) else { return };
        let dialog = &mut call.dialogs[at].dialog;
        if let Some(server) = self.servers.get(tx) {
            dialog.heard_from(&server.to);
        }
        if dialog.remote_seq.is_some_and(|last| cseq.seq < last) {
            return self.reply(now, tx, 500, "CSeq out of order", &[]);
        }
        dialog.remote_seq = Some(cseq.seq);
        let (stage, watches) = (call.stage, call.watches);
        match &request.method {
            Method::Bye => self.bye_received(now, tx, key, at, request),
            _ if let Some(unknown) = unknown_extensions(request) => {
                self.reply(now, tx, 420, "", &[("Unsupported", &unknown)]);
            }
            Method::Prack if !call.is_caller() => self.prack_received(now, tx, key, request),
            // The subscription of a REFER outlives the BYE (RFC 5057 5.3).
            Method::Notify if watches => self.reply(now, tx, 200, "", &[]),
            _ if stage == CallStage::Over => self.reply(now, tx, 481, "", &[]),
            Method::Invite | Method::Update => self.session_asked(now, tx, key, at, request),
            Method::Info => self.info_received(now, tx, key, request),
            Method::Refer => self.refer_received(now, tx, key, at, request),
            Method::Options => self.reply(now, tx, 200, "", &CAPABILITIES),
            Method::Notify => self.reply(now, tx, 200, "", &[]),
            Method::Message => self.message_received(now, tx, key, request),
            Method::Prack => self.reply(now, tx, 481, "", &[]),
            Method::Other(_) => self.reply(now, tx, 501, "", &[("Allow", ALLOW)]),
            _ => self.reply(now, tx, 405, "", &[("Allow", ALLOW)]),
        }
    }

    fn message_received(&mut self, now: Time, tx: &TransactionKey, key: CallKey, request: &Request) {
        if request.body.len() > MAX_MESSAGE_TEXT {
            return self.reply(now, tx, 413, "", &[]);
        }
        self.reply(now, tx, 200, "", &[]);
        let content_type = request.headers.get("Content-Type").unwrap_or("text/plain").to_owned();
        let text = String::from_utf8_lossy(&request.body).into_owned();
        self.event(key, CallEvent::Message { content_type, text });
    }

    fn bye_received(&mut self, now: Time, tx: &TransactionKey, key: CallKey, at: usize, request: &Request) {
        self.reply(now, tx, 200, "", &[]);
        let Some(call) = self.calls.get_mut(&key) else { return };
        call.dialogs[at].closed = true;
        let active = call.active.is_none_or(|active| active == at);
        let pending = call.stage == CallStage::Pending;
        call.unacknowledged = None;
        self.call_changed(key);
        let q850_cause = request.headers.q850_cause();
        match (active, pending) {
            (false, _) => {}
            (true, true) if matches!(self.calls.get(&key).map(|c| &c.side), Some(DialogSide::Answerer(_))) => {
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

    /// Handles a re-INVITE or UPDATE: it is refused while another offer is open or a session interval is too short.
    fn session_asked(&mut self, now: Time, tx: &TransactionKey, key: CallKey, at: usize, request: &Request) {
        if let Some(code) = bodies::refusal(request) {
            return self.reply(now, tx, code, "", &[("Accept", bodies::TYPE)]);
        }
        let offers = sdp_of(&request.headers, &request.body).is_some();
        match self.calls.get(&key).and_then(|call| call.conflict(at, &request.method, offers)) {
            Some(Conflict::Glare) => return self.reply(now, tx, 491, "", &[]),
            Some(Conflict::Early) => {
                // Drawn from 0 to 10 (RFC 3261 14.2, RFC 3311 5.2).
                let wait = self.ids.draw(11).to_string();
                return self.reply(now, tx, 500, "", &[("Retry-After", &wait)]);
            }
            None => {}
        }
        if request.method == Method::Invite {
            self.ack_overtaken(key);
        }
        let Ok(plan) = self.plan_timer(key, &request.headers) else {
            return self.reply(now, tx, 422, "", &[("Min-SE", &LEAST_S.to_string())]);
        };
        self.session_change(now, tx, key, at, request, plan);
    }

    /// Takes a re-INVITE that overtakes the ACK of a complete offer and answer for that ACK: it follows the 2xx (RFC
    /// 5407 3.1.4).
    fn ack_overtaken(&mut self, key: CallKey) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        let waited = call.unacknowledged.take().is_some();
        if waited && !std::mem::replace(&mut call.confirmed, true) {
            self.event(key, CallEvent::Confirmed { sdp: None });
        }
        self.call_changed(key);
    }

    /// Answers a re-INVITE or UPDATE with the codec in use, or refuses it with 488 and leaves all as it was. Without an
    /// offer a re-INVITE gets one, an UPDATE a plain 200.
    fn session_change(
        &mut self,
        now: Time,
        tx: &TransactionKey,
        key: CallKey,
        at: usize,
        request: &Request,
        plan: Option<Plan>,
    ) {
        let offer = sdp_of(&request.headers, &request.body);
        let Some(call) = self.calls.get_mut(&key) else { return };
        let invite = request.method == Method::Invite;
        let answered = match &offer {
            Some(offer) => call.reanswer(at, offer).map(|(sdp, media)| (Some(sdp), Some(media))),
            None if invite => Ok((call.own_offer(at), None)),
            None => Ok((None, None)),
        };
        let (local, media) = match answered {
            Ok(answered) => answered,
            Err(why) => {
                self.reply(now, tx, 488, "", &[]);
                return self.event(key, CallEvent::Unchanged { code: 488, why: Some(why) });
            }
        };
        let call_seq = request.headers.cseq().map(|c| c.seq).unwrap_or_default();
        let fork = &mut call.dialogs[at];
        fork.dialog.refresh(&request.headers);
        fork.note_allow(&request.headers);
        let up = call.stage == CallStage::Up;
        let headers = plan.filter(|_| up).map(Plan::headers).unwrap_or_default();
        let sent = self.respond_in_dialog(now, tx, key, request, local.as_deref(), &headers);
        if let (Some(local), Some(call)) = (&local, self.calls.get_mut(&key)) {
            call.use_description(at, local);
        }
        if let (true, Some((bytes, to)), Some(call)) = (invite, sent, self.calls.get_mut(&key)) {
            call.unacknowledged = Some(Unacknowledged::new(now, bytes, to, call_seq, offer.is_none()));
            self.call_changed(key);
        }
        if up {
            self.start_timer(now, key, plan);
        }
        match (media, offer) {
            (Some(media), Some(sdp)) => self.renegotiated(key, at, media, sdp),
            _ if !invite => self.event(key, CallEvent::Unchanged { code: 200, why: None }),
            // The ACK brings the answer to this side's offer.
            _ => {}
        }
    }

    /// Sends 200 to a request in a dialog, with the header fields of a 2xx to INVITE and UPDATE.
    pub(super) fn respond_in_dialog(
        &mut self,
        now: Time,
        tx: &TransactionKey,
        key: CallKey,
        request: &Request,
        sdp: Option<&str>,
        headers: &[(&'static str, String)],
    ) -> Option<(Vec<u8>, Hop)> {
        let mut response = request.respond(200, "", "");
        response.headers.push("Contact", self.contact(key));
        response.headers.push("Allow", ALLOW);
        response.headers.push("Supported", SUPPORTED);
        for (name, value) in headers {
            response.headers.push(*name, value.clone());
        }
        if let Some(sdp) = sdp {
            response.set_sdp(sdp);
        }
        self.send_response(now, tx, response)
    }

    /// Reports a changed session, and hold when that changed.
    pub(super) fn renegotiated(&mut self, key: CallKey, at: usize, media: Negotiated, sdp: String) {
        let Some(call) = self.calls.get_mut(&key) else { return };
        let held = media.on_hold;
        let changed = std::mem::replace(&mut call.on_hold, held) != held;
        call.codec = Some((media.codec.clone(), media.clock_rate_hz));
        call.media = Some(media.clone());
        if let Some(fork) = call.dialogs.get_mut(at).filter(|_| call.stage == CallStage::Pending) {
            fork.agreed = Some((sdp.clone(), media.clone()));
        }
        let tag = call.remote_tag(at);
        self.event(key, CallEvent::Renegotiated { media, sdp, tag });
        if changed {
            self.event(key, CallEvent::Hold(held));
        }
    }

    fn info_received(&mut self, now: Time, tx: &TransactionKey, key: CallKey, request: &Request) {
        let kind = request.headers.get("Content-Type").unwrap_or("").to_ascii_lowercase();
        let body = String::from_utf8_lossy(&request.body);
        let (received, duration_ms) = match kind.split(';').next().unwrap_or("").trim() {
            "application/dtmf-relay" => relay_digits(&body),
            "application/dtmf" => (digits(body.trim()), DIGIT_MS),
            _ if body.is_empty() => (Vec::new(), DIGIT_MS),
            _ => return self.reply(now, tx, 415, "", &[("Accept", "application/dtmf-relay, application/dtmf")]),
        };
        self.reply(now, tx, 200, "", &[]);
        for digit in received {
            self.event(key, CallEvent::Digit(digit, duration_ms));
        }
    }
}

impl Endpoint {
    /// Sends a request of this side in one of a call's dialogs, with credentials where a challenge is known. Returns
    /// its transaction.
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
        let (mut request, to) = fork.dialog.request(method, fork.dialog.local_seq, &self.config);
        fill(&mut request);
        if let DialogSide::Caller(caller) = &mut call.side {
            caller.login.sign(&mut request, &mut self.ids);
        }
        Some(self.send_request(now, key, request, to))
    }
}

impl Call {
    /// Returns the conflict of a re-INVITE or UPDATE in one of the dialogs with an open offer (RFC 3261 14.2, RFC 3311
    /// 5.2).
    fn conflict(&self, at: usize, method: &Method, offers: bool) -> Option<Conflict> {
        let unanswered = self.unacknowledged.as_ref();
        if *method == Method::Invite {
            return match self.stage {
                _ if self.reinvite_is_open() || self.offer_is_open() => Some(Conflict::Glare),
                CallStage::Pending if self.is_caller() => Some(Conflict::Glare),
                CallStage::Pending => Some(Conflict::Early),
                _ if self.offered.is_some() => Some(Conflict::Early),
                // It overtook the ACK with the answer to this side's offer (RFC 5407 3.1.5).
                _ => unanswered.is_some_and(|waiting| waiting.offers).then_some(Conflict::Glare),
            };
        }
        let agreed = || self.dialogs.get(at).is_some_and(|fork| fork.agreed.is_some());
        match self.stage {
            _ if !offers => None,
            _ if self.offer_is_open() || unanswered.is_some_and(|waiting| waiting.offers) => Some(Conflict::Glare),
            _ if self.offered.is_some() => Some(Conflict::Early),
            CallStage::Pending if self.is_caller() => (!agreed()).then_some(Conflict::Glare),
            CallStage::Pending if self.ringing.described && !self.ringing.offered => {
                (!self.ringing.settled).then_some(Conflict::Glare)
            }
            CallStage::Pending => (!self.ringing.settled).then_some(Conflict::Early),
            _ => None,
        }
    }

    /// Returns the answer to a new offer: this side's first description, narrowed by the offer. The codec in use stays
    /// where it is offered; else another one of this side with the same RTP clock takes its place, as timestamps go on
    /// (RFC 3264 8.3.2).
    pub(super) fn reanswer(&mut self, at: usize, offer: &str) -> Result<(String, Negotiated), Refusal> {
        let own = Session::parse(self.own(at))?;
        let mut base = Offer::from_session(&own).ok_or(Refusal::NoAudio)?;
        let alike = self.codec_in_use(at).map(|(name, clock_rate_hz)| {
            base.codecs.retain(|codec| codec.clock_rate_hz == clock_rate_hz);
            let alike = base.codecs.clone();
            base.codecs.retain(|codec| codec.name == name);
            alike
        });
        if let Some(agreed) = self.media_in_use(at) {
            base.keep_protection(agreed);
        }
        let base = Offer { direction: self.wish.unwrap_or_default(), ..base };
        let (mut session, mut media) = match (negotiate(offer, &base), alike) {
            (Err(Refusal::NoCodec), Some(codecs)) => negotiate(offer, &Offer { codecs, ..base }),
            (answered, _) => answered,
        }?;
        // The answer goes at once, and nobody knows yet whether another name can be resolved.
        if let Some(host) = media.remote_host.take() {
            let known = self.known_host.as_ref().filter(|(known, _)| *known == host);
            let (_, address) = known.ok_or(Refusal::NoAddress)?;
            for named in [&mut media.remote_rtp, &mut media.remote_rtcp] {
                if named.ip().is_unspecified() {
                    named.set_ip(*address);
                }
            }
        }
        let is_allowed = |address: IpAddr| address.is_unspecified() || self.reach.allows(address);
        if ![media.remote_rtp, media.remote_rtcp].iter().all(|address| is_allowed(address.ip())) {
            return Err(Refusal::NotAllowed);
        }
        self.version += 1;
        session.id = own.id;
        session.version = own.version + self.version;
        Ok((session.to_string(), media))
    }

    /// Returns name and clock rate of the codec in use in one of the dialogs.
    fn codec_in_use(&self, at: usize) -> Option<(String, u32)> {
        let agreed = self.branch_media(at);
        agreed.map(|media| (media.codec.clone(), media.clock_rate_hz)).or_else(|| self.codec.clone())
    }

    /// Returns the last agreement in a dialog.
    fn media_in_use(&self, at: usize) -> Option<&Negotiated> {
        self.branch_media(at).or(self.media.as_ref())
    }

    /// Returns the agreement in a branch that rings.
    fn branch_media(&self, at: usize) -> Option<&Negotiated> {
        let is_branch = self.stage == CallStage::Pending && self.is_caller();
        let agreed = self.dialogs.get(at).filter(|_| is_branch).and_then(|fork| fork.agreed.as_ref());
        agreed.map(|(_, media)| media)
    }

    /// Returns the tag of the other side in one of the dialogs.
    pub(super) fn remote_tag(&self, at: usize) -> String {
        self.dialogs.get(at).map(|fork| fork.dialog.remote_tag.clone()).unwrap_or_default()
    }

    /// Returns the first description of this side as a new offer with a higher version, of the codec in use and with
    /// the direction that this side wants; `None` when it is no SDP.
    fn own_offer(&mut self, at: usize) -> Option<String> {
        let mut own = Session::parse(&self.local_sdp).ok()?;
        self.version += 1;
        own.version += self.version;
        own.leave_setup_open();
        if let Some((name, clock_rate_hz)) = self.codec_in_use(at) {
            own.narrow_to(&name, clock_rate_hz);
        }
        own.set_direction(self.wish.unwrap_or_default());
        Some(own.to_string())
    }
}

/// Reads lines like `Signal=5` and `Duration=160`.
fn relay_digits(body: &str) -> (Vec<char>, u32) {
    let value = |name: &str| {
        let mut pairs = body.lines().filter_map(|line| line.split_once('='));
        pairs.find(|(n, _)| n.trim().eq_ignore_ascii_case(name)).map(|(_, v)| v.trim())
    };
    let duration = value("Duration").and_then(|v| v.parse().ok()).unwrap_or(DIGIT_MS);
    (value("Signal").map(digits).unwrap_or_default(), duration.min(10_000))
}

/// Reads telephone digits: one, or several that some senders put into one request. 10 and 11 stand for the star and the
/// hash. Empty where anything else is among them, or more than [`MAX_DIGITS`].
fn digits(text: &str) -> Vec<char> {
    let digits: Vec<char> = match text {
        "10" => vec!['*'],
        "11" => vec!['#'],
        _ => text.chars().map(|digit| digit.to_ascii_uppercase()).take(MAX_DIGITS + 1).collect(),
    };
    let is_digit = |digit: &char| digit.is_ascii_digit() || "*#ABCD".contains(*digit);
    if digits.len() <= MAX_DIGITS && digits.iter().all(is_digit) { digits } else { Vec::new() }
}

/// Returns the text of a Reason value.
fn text_of(reason: &str) -> Option<String> {
    let (_, params) = reason.split_once(';')?;
    crate::uri::Params::parse(params).get("text").map(str::to_owned)
}
