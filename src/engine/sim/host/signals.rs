//! The signalling of one side: SIP messages to and from its endpoint, its port's outputs, and the sockets that they
//! name.

use super::*;
use crate::looking::find;

impl Host {
    /// Sends the INVITE to `peer`.
    pub(crate) fn dial(&mut self, now: Time, peer: SocketAddr) -> Result<(), String> {
        let target = format!("sip:agent@{peer}");
        let dial = self.destination.sip().cloned().unwrap_or_default();
        let called = if dial.target.is_empty() { &target } else { &dial.target };
        let address = Address::parse(called).map_err(|fault| fault.to_string())?;
        let destination = address.resolve().map_err(|fault| fault.to_string())?;
        let supported = self.supported_offer(RTP_PORT);
        let mut port = SipPort::caller(target, self.destination.guard());
        port.forward(self.forwarding.clone());
        let (offer, port) = match self.manner.has_no_offer {
            true => (String::new(), port.without_offer(supported)),
            false => (supported.session().to_string(), port),
        };
        let hops = vec![ringer_sip::Hop::udp(destination)];
        let invite = dial.invite(address.uri().clone(), hops, offer).ok_or("there is nowhere to send the INVITE to")?;
        self.key = Some(self.endpoint.invite(sip_time(now), invite));
        self.begin(now);
        self.port = Some(port);
        self.drain_port(now);
        self.drain_sip(now);
        Ok(())
    }

    pub(super) fn receive_sip(&mut self, arrived: Time, from: SocketAddr, bytes: &[u8]) {
        self.log(arrived, "received from", from, bytes);
        self.endpoint.receive(sip_time(arrived), ringer_sip::Hop::udp(from), bytes);
        self.drain_sip(arrived);
    }

    pub(super) fn drain_sip(&mut self, now: Time) {
        while let Some(output) = self.endpoint.poll() {
            match output {
                ringer_sip::Output::Send { to, bytes, .. } => self.send_sip(now, to.address, bytes),
                ringer_sip::Output::Event(key, event) => self.sip_event(now, key, event),
            }
        }
    }

    fn sip_event(&mut self, now: Time, key: CallKey, event: CallEvent) {
        if let CallEvent::Incoming { sdp, call_id, .. } = event {
            return self.incoming(now, key, call_id, sdp);
        }
        if self.target_key == Some(key) {
            self.port.iter_mut().for_each(|port| port.receive_target(event.clone()));
            return self.drain_port(now);
        }
        // The end of a branch that was not taken is no news to the one that was.
        if self.key != Some(key) {
            return;
        }
        if matches!(event, CallEvent::Ended(_)) {
            self.answer = None;
        }
        let change = match &event {
            CallEvent::Reinvited { media, .. } | CallEvent::Updated { media, .. } => Some(media.is_some()),
            _ => None,
        };
        if let (
            CallEvent::Reinvited { media: Some(media), .. }
            | CallEvent::Updated { media: Some(media), .. }
            | CallEvent::Renegotiated { media, .. },
            Some(scene),
        ) = (&event, &mut self.scene)
        {
            scene.agree(media, change.is_some());
        }
        if let Some(port) = &mut self.port {
            port.receive(event);
            self.drain_port(now);
        }
        if let Some(is_taken) = change {
            self.end_change(now, is_taken);
        }
    }

    fn incoming(&mut self, now: Time, key: CallKey, call_id: String, offer: Option<String>) {
        let supported = self.supported_offer(RTP_PORT);
        match SipPort::incoming(call_id, offer.as_deref(), &supported, self.destination.guard()) {
            Ok(mut port) if self.key.is_none() => {
                let is_scripted = self.scene.as_mut().is_some_and(|scene| scene.takes_call(offer));
                if !is_scripted {
                    port.ring();
                }
                (self.key, self.port) = (Some(key), Some(port));
                self.drain_port(now);
                if !is_scripted {
                    self.answer = Some(self.after(now, RINGING_MS));
                }
            }
            refused => {
                let refusal = if refused.is_ok() { Refusal::Busy } else { Refusal::NoMedia };
                SipOrder::from(refusal).apply(&mut self.endpoint, sip_time(now), key);
            }
        }
    }

    /// Returns what this side can do, with media at `port`.
    pub(super) fn supported_offer(&self, port: u16) -> Offer {
        sdp::offer(self.destination.codecs(), self.address.ip(), port, 1)
    }

    /// Returns a message with the host name in the place of the address in its description, where this side has one.
    fn with_media_host(&self, message: Vec<u8>) -> Vec<u8> {
        let Some(host) = &self.manner.media_host else { return message };
        let text = String::from_utf8_lossy(&message);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { return message };
        let named = body.replace(&format!("c=IN IP4 {}", self.address.ip()), &format!("c=IN IP4 {host}"));
        let length = |length: usize| format!("Content-Length: {length}");
        let head = head.replace(&length(body.len()), &length(named.len()));
        format!("{head}\r\n\r\n{named}").into_bytes()
    }

    /// Carries out the port's outputs, in order.
    pub(super) fn drain_port(&mut self, now: Time) {
        while let Some(output) = self.port.as_mut().and_then(SipPort::poll) {
            match output {
                PortOutput::Signal(signal) => {
                    if matches!(signal, Signal::Ended(_)) {
                        self.bye.get_or_insert(now);
                    }
                    if let Some(signal) = self.without_own_hold(signal) {
                        match self.is_telling {
                            true => self.deferred.push_back(signal),
                            false => self.tell(now, Input::Signal(signal)),
                        }
                    }
                }
                PortOutput::Act(action) => self.perform_action(now, action),
                PortOutput::Warning(warning) => self.warnings.push(warning),
                PortOutput::Log(..) => {}
            }
        }
    }

    fn perform_action(&mut self, now: Time, action: SipAction) {
        match action {
            SipAction::Send(order) => self.order(now, order),
            SipAction::SendTarget(order) => self.order_target(now, order),
            SipAction::Locate(address, lookup) => self.locate(now, &address, lookup),
            SipAction::Dial(call) => self.dial_target(now, &call),
            SipAction::Switch => {
                self.key = self.target_key.take();
                self.bye = None;
            }
            SipAction::LocateMedia(host) => {
                let found = self.runtime.block_on(find(&host, &self.destination.guard()));
                self.looking = Some((now + self.lookup, found));
            }
            SipAction::Media(plan) => self.media = Some(plan),
        }
    }

    fn locate(&mut self, now: Time, address: &Address, lookup: Lookup) {
        let resolver = Resolver::default().for_transports(&[ringer_sip::Transport::Udp]);
        let found = self.runtime.block_on(address.hops(&resolver, &self.destination.guard()));
        match lookup {
            Lookup::Redirect => self.order(now, SipOrder::Resolved(found.unwrap_or_default())),
            Lookup::TargetRedirect => self.order_target(now, SipOrder::Resolved(found.unwrap_or_default())),
            Lookup::Transfer => {
                let found = found.map_err(|why| why.kind().to_owned());
                if let Some(port) = &mut self.port {
                    port.take_address(found);
                }
            }
        }
    }

    /// Calls the target of a transfer, with media where they are.
    fn dial_target(&mut self, now: Time, call: &TargetCall) {
        let offer = sdp::offer(&[call.media.codec], self.address.ip(), self.rtp_port, 1).session().to_string();
        let Some(invite) = self.destination.invite_target(call, offer) else { return };
        self.target_key = Some(self.endpoint.invite(sip_time(now), invite));
        self.drain_sip(now);
    }

    fn order_target(&mut self, now: Time, order: SipOrder) {
        let Some(key) = self.target_key else { return };
        order.apply(&mut self.endpoint, sip_time(now), key);
        self.drain_sip(now);
    }

    pub(super) fn order(&mut self, now: Time, order: SipOrder) {
        let Some(key) = self.key else { return };
        let ends = matches!(order, SipOrder::Hangup(..));
        if ends {
            self.bye.get_or_insert(now);
        }
        if !order.apply(&mut self.endpoint, sip_time(now), key) {
            let at_ms = now.since(START).as_millis();
            self.violations.push(format!("the change of the session at {at_ms} ms could not be asked for"));
            self.scene.iter_mut().for_each(|scene| scene.give_up_change());
        }
        while let Some(output) = self.endpoint.poll() {
            match output {
                ringer_sip::Output::Send { to, bytes, .. } => self.send_sip(now, to.address, bytes),
                // The end that this side asked for is no news to its Call.
                ringer_sip::Output::Event(..) if ends => {}
                ringer_sip::Output::Event(key, event) => self.sip_event(now, key, event),
            }
        }
    }

    fn send_sip(&mut self, now: Time, to: SocketAddr, bytes: Vec<u8>) {
        if self.scene.as_ref().is_some_and(|scene| scene.is_lost) {
            return;
        }
        let bytes = self.with_media_host(bytes);
        self.log(now, "sent to", to, &bytes);
        self.outbox.push(Datagram { from: self.address, to, bytes });
    }

    fn log(&mut self, now: Time, direction: &str, peer: SocketAddr, message: &[u8]) {
        self.sip_log.push_str(&format!("{} {direction} {peer}\n{}\n", now.0 / 1_000_000, mask(message)));
    }

    /// Sends a datagram of media where they go; nowhere, before that is known.
    pub(super) fn send_media(&mut self, now: Time, path: MediaChannel, bytes: &[u8]) {
        let Some(plan) = &self.media else { return };
        let (port, to) = match path {
            MediaChannel::Rtp => (self.rtp_port, plan.rtp),
            MediaChannel::Rtcp => (self.rtp_port + 1, plan.rtcp),
        };
        if let (MediaChannel::Rtp, Some(scene)) = (path, &mut self.scene) {
            scene.note_sent(now, to, bytes);
        }
        self.outbox.push(Datagram { from: SocketAddr::new(self.address.ip(), port), to, bytes: bytes.to_vec() });
    }
}
