//! Calls by SIP: dialogs at the sockets that all calls share, media at sockets of their own, and keys that handshakes
//! bring.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use ringer_base::clock::Clock;
use ringer_base::config::{Encryption, OfferedIn, Refer};
use ringer_base::guard::Guard;
use ringer_media::call::{Control, Quality, Signal};
use ringer_media::codec::Codec;
use ringer_sip::sdp::Offer;
use ringer_sip::{CallKey, Hop, Invite};
use ringer_transport::dtls;
use ringer_transport::path::MediaPath;
use ringer_transport::peer::{PeerInfo, PortOutput, Refusal};
use ringer_transport::sip::address::Address;
use ringer_transport::sip::dialog::{IncomingDialog, SipNews};
use ringer_transport::sip::driver::NEWS;
use ringer_transport::sip::media_names::Found;
use ringer_transport::sip::order::{Lookup, SipAction, SipOrder};
use ringer_transport::sip::port::SipPort;
use ringer_transport::sip::sdp;
use ringer_transport::sip::transfer::TargetCall;
use ringer_transport::sockets::{MediaSockets, Stranger};
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior};

use super::dialogs::{Dialogs, News, Of};
use super::keys::{KeyNews, Keys, LOOK_EVERY};
use super::{Attended, Channel, ChannelSide, Means, NO_ADDRESS, Opening};
use crate::call_state::CallState;
use crate::gate::{DialGate, Forwarded};
use crate::looking::Looking;
use crate::services::{CallPermit, CallServices};
use crate::shard::{CallNo, ToShard};
use crate::{Destination, PlaceError, Placement, SIP_LOG, SipDial};

/// Time limit for the other side to accept that this one hung up.
const FAREWELL: Duration = Duration::from_secs(1);

/// Text in the place of a secret.
const MASKED: &str = "(masked)";

/// News of the signalling, and of what is done beside it.
pub(crate) enum SideNews {
    /// News of a dialog.
    Dialog(Of, News),
    /// The address of a host that media go to.
    Host(Found),
    /// Time has passed for a handshake.
    Look(Instant),
}

/// Beginning of the signalling of a call.
enum Beginning {
    /// This INVITE is sent.
    Dial(Box<Invite>),
    /// The call came in by this dialog, and is answered.
    Answer(CallKey, mpsc::Receiver<SipNews>),
}

/// Signalling and keys of one call.
pub(crate) struct SipSide {
    port: SipPort,
    beginning: Option<Beginning>,
    dialogs: Dialogs,
    /// Keys that handshakes bring; `None`: the call has no secure RTP.
    keys: Option<Keys>,
    look: Interval,
    looking: Looking,
    guard: Guard,
    terms: Destination,
    /// Port of RTP on this side.
    media_port: u16,
}

/// Dials the SIP address of a call.
pub(super) async fn dial(
    means: Means<'_>,
    mut dial: SipDial,
    placement: &mut Placement,
) -> Result<Opening, PlaceError> {
    let services = means.services;
    let secrets = dial.secrets.clone();
    let (uri, hops) = dial.route(services.names()).await.map_err(|refusal| match refusal {
        PlaceError::BadTarget(why) => PlaceError::BadTarget(secrets.replace(why, MASKED)),
        other => other,
    })?;
    // Whoever is there may have the credentials, too, when it is called again for a transfer.
    dial.hops.clone_from(&hops);
    placement.destination = Destination::Sip(dial.clone());
    let permit = services.permit()?;
    let sockets = sockets(&means)?;
    let no = means.next_no();
    let supported =
        offer(services, placement.destination.codecs(), srtp_of(services, &placement.destination), &sockets, no);
    let mut port = SipPort::caller(dial.target.clone(), placement.destination.guard())
        .shown_as(secrets.replace(dial.target.clone(), MASKED));
    hops.first().into_iter().for_each(|first| port.set_transport(first.transport));
    for place in hops.iter().filter(|hop| services.config.tls.is_insecure(hop)) {
        port.warn(format!("the certificate of {place} was not verified (tls.insecure_hosts)"));
    }
    let (offer, port) = match services.config.offer {
        OfferedIn::Invite => (supported.session().to_string(), port),
        OfferedIn::Answer => (String::new(), port.without_offer(supported)),
    };
    let Some(invite) = dial.invite(uri, hops, offer) else {
        return Err(PlaceError::BadTarget(NO_ADDRESS.to_owned()));
    };
    let beginning = Beginning::Dial(Box::new(invite));
    Ok(opening(services, (no, permit), sockets, port, beginning, placement))
}

/// Answers a call that came in for `called`, by the Call-ID and the address that follow.
pub(super) async fn answer(
    means: Means<'_>,
    dialog: IncomingDialog,
    (called, call_id, source): (String, String, SocketAddr),
    placement: &mut Placement,
) -> Result<Opening, PlaceError> {
    let (permit, sockets, port) = match prepare_answer(&means, &dialog, call_id, source, &placement.destination) {
        Ok(ready) => ready,
        Err(why) => {
            let refusal = if why == PlaceError::Full { Refusal::Busy } else { Refusal::NoMedia };
            means.services.sip.order(dialog.key, refusal.into()).await;
            return Err(why);
        }
    };
    if let Destination::Incoming(terms) = &mut placement.destination {
        terms.user = called;
    }
    let no = means.next_no();
    let beginning = Beginning::Answer(dialog.key, dialog.news);
    Ok(opening(means.services, (no, permit), sockets, port, beginning, placement))
}

fn prepare_answer(
    means: &Means<'_>,
    dialog: &IncomingDialog,
    call_id: String,
    source: SocketAddr,
    terms: &Destination,
) -> Result<(CallPermit, MediaSockets, SipPort), PlaceError> {
    let permit = means.services.permit()?;
    let sockets = sockets(means)?;
    let srtp = means.services.config.srtp;
    let supported = offer(means.services, terms.codecs(), srtp, &sockets, means.next_no());
    let port = SipPort::incoming(call_id, dialog.offer.as_deref(), &supported, terms.guard());
    let mut port = port.map_err(PlaceError::NoMedia)?;
    port.set_transport(dialog.transport);
    port.set_source(source, dialog.transport);
    Ok((permit, sockets, port))
}

fn sockets(means: &Means<'_>) -> Result<MediaSockets, PlaceError> {
    means.ports.bind(means.services.config.sip.ip()).map_err(|error| PlaceError::NoMedia(error.to_string()))
}

/// Returns the offer or answer of a call's media, with keys of its own where the call has secure RTP.
fn offer(services: &CallServices, codecs: &[Codec], srtp: Encryption, sockets: &MediaSockets, no: CallNo) -> Offer {
    let plain = sdp::offer(codecs, services.sip.local().ip(), sockets.port(), no.0);
    services.secure_offer(plain, srtp, services.config.srtp_keys)
}

/// Returns the use of secure RTP in a call.
fn srtp_of(services: &CallServices, destination: &Destination) -> Encryption {
    let own = if let Destination::Sip(dial) = destination { dial.srtp } else { None };
    own.unwrap_or(services.config.srtp)
}

fn opening(
    services: &CallServices,
    (no, permit): (CallNo, CallPermit),
    sockets: MediaSockets,
    mut port: SipPort,
    beginning: Beginning,
    placement: &Placement,
) -> Opening {
    let mut forwarding = services.config.forwarding.clone();
    // Whoever leaves by a transfer follows none.
    if placement.spec.hangup_on_transfer {
        forwarding.refer = Refer::Refuse;
    }
    port.forward(forwarding);
    let is_secure = srtp_of(services, &placement.destination) != Encryption::Off;
    let (handshakes, keys) = is_secure
        .then(|| {
            let (writer, reader) = dtls::queue();
            (writer, Keys::new(services.identity.clone(), reader))
        })
        .unzip();
    let mut look = tokio::time::interval(LOOK_EVERY);
    look.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let side = SipSide {
        port,
        beginning: Some(beginning),
        dialogs: Dialogs::default(),
        keys,
        look,
        looking: Looking::default(),
        guard: placement.destination.guard(),
        terms: placement.destination.clone(),
        media_port: sockets.port(),
    };
    let (channel, media) = (Channel::Sip(Attended::new(side)), MediaPath::Udp(sockets));
    Opening { no, permit, channel, media, handshakes, carrier: None, moves_audio: false }
}

impl SipSide {
    /// Returns a message for the log, without what the settings of the call keep secret.
    fn mask(&self, message: String) -> String {
        match &self.terms {
            Destination::Sip(dial) => dial.secrets.replace(message, MASKED),
            _ => message,
        }
    }

    async fn act(&mut self, call: &mut CallState, action: SipAction) {
        match action {
            SipAction::Send(order) => self.order(&call.services, Of::Call, order).await,
            SipAction::SendTarget(order) => self.order(&call.services, Of::Target, order).await,
            SipAction::Media(plan) => {
                call.tell(ToShard::Connect(call.no, plan.rtp, plan.rtcp));
                self.keys.iter_mut().for_each(|keys| keys.follow(&plan));
                self.drain_keys(call);
            }
            SipAction::Locate(address, lookup) => self.locate(call, address, lookup),
            SipAction::Dial(target) => Box::pin(self.dial_target(&call.services, call.no, &target)).await,
            SipAction::Switch => self.dialogs.switch(),
            SipAction::LocateMedia(host) => self.looking.begin(host, self.guard.clone()),
        }
    }

    async fn order(&mut self, services: &CallServices, of: Of, order: SipOrder) {
        if let Some(key) = self.dialogs.key(of) {
            services.sip.order(key, order).await;
        }
    }

    /// Carries out what the keys of the call ask for.
    fn drain_keys(&mut self, call: &mut CallState) {
        while let Some(news) = self.keys.as_mut().and_then(Keys::poll) {
            match news {
                KeyNews::Send(path, datagram) => call.tell(ToShard::Datagram(call.no, path, datagram)),
                KeyNews::Keys(rtp, reports) => {
                    call.tell(ToShard::Signal(call.no, Signal::Keys { rtp, reports }));
                    if rtp.is_some() {
                        call.say_connected();
                    }
                }
                KeyNews::AwaitReports(awaits) => call.tell(ToShard::AwaitReports(call.no, awaits)),
                KeyNews::Failed(kind, text) => {
                    tracing::info!("{text}");
                    self.port.end_unkeyed(kind, text);
                }
            }
        }
    }

    /// Finds out where a redirect or a transfer leads, and if it may be dialled, beside everything else that happens.
    fn locate(&mut self, call: &CallState, target: Address, lookup: Lookup) {
        let services = &call.services;
        let (socket, guard, names) = (services.sip.clone(), self.guard.clone(), services.names().clone());
        let of = if lookup == Lookup::TargetRedirect { Of::Target } else { Of::Call };
        let located = (lookup == Lookup::Transfer).then(|| self.dialogs.await_address());
        let Some(key) = self.dialogs.key(of) else { return };
        let gate = self.terms.gate().cloned();
        let forwarded = if lookup == Lookup::Transfer { Forwarded::Transfer } else { Forwarded::Redirect };
        services.tasks.spawn("locate", async move {
            let found = match target.hops(&names, &guard).await {
                Ok(hops) => pass_gate(gate, forwarded, &target, hops).await,
                Err(why) => Err(why.kind().to_owned()),
            };
            if let Err(why) = &found {
                tracing::info!(host = target.uri().host, "the call is not forwarded: {why}");
            }
            match located {
                Some(located) => drop(located.send(found)),
                None => socket.order(key, SipOrder::Resolved(found.unwrap_or_default())).await,
            }
        });
    }

    /// Calls the target of a transfer; its messages go into the same log.
    async fn dial_target(&mut self, services: &CallServices, no: CallNo, target: &TargetCall) {
        let offer = services.target_offer(target, self.media_port, no);
        let Some(invite) = self.terms.invite_target(target, offer) else { return };
        let (news, receiver) = mpsc::channel(NEWS);
        // Without a socket the engine is about to stop.
        if let Some((key, _)) = services.sip.invite(invite, news).await {
            self.dialogs.add_target(key, receiver);
        }
    }
}

impl ChannelSide for SipSide {
    type News = SideNews;

    const LOG: &'static str = SIP_LOG;

    async fn begin(&mut self, call: &mut CallState) -> bool {
        match self.beginning.take() {
            Some(Beginning::Dial(invite)) => {
                self.drain(call).await;
                let (news, receiver) = mpsc::channel(NEWS);
                let Some((key, call_id)) = call.services.sip.invite(*invite, news).await else { return false };
                self.port.set_call_id(&call_id);
                self.dialogs.begin(key, receiver);
            }
            Some(Beginning::Answer(key, news)) => {
                self.dialogs.begin(key, news);
                self.port.answer();
            }
            None => {}
        }
        true
    }

    async fn next(&mut self) -> SideNews {
        let is_looking = self.looking.is_open();
        let has_handshake = self.keys.as_ref().is_some_and(Keys::is_open);
        tokio::select! {
            biased;
            Some((of, news)) = self.dialogs.next() => SideNews::Dialog(of, news),
            found = self.looking.finish(), if is_looking => SideNews::Host(found),
            now = self.look.tick(), if has_handshake => SideNews::Look(now.into_std()),
            else => std::future::pending().await,
        }
    }

    async fn follow(&mut self, call: &mut CallState, news: SideNews) {
        match news {
            SideNews::Dialog(_, News::Sip(SipNews::Trace(message))) => {
                return call.files.write_log(call.services.clock.now_ms(), &self.mask(message));
            }
            SideNews::Dialog(Of::Call, News::Sip(SipNews::Event(event))) => self.port.receive(*event),
            SideNews::Dialog(Of::Target, News::Sip(SipNews::Event(event))) => self.port.receive_target(*event),
            SideNews::Dialog(Of::Past, News::Sip(SipNews::Event(_))) => {}
            SideNews::Dialog(_, News::Located(found)) => self.port.take_address(found),
            SideNews::Host(found) => self.port.media_found(found),
            SideNews::Look(now) => {
                self.keys.iter_mut().for_each(|keys| keys.look(now));
                self.drain_keys(call);
            }
        }
        self.drain(call).await;
    }

    async fn drain(&mut self, call: &mut CallState) {
        while let Some(output) = self.port.poll() {
            let is_answer = matches!(output, PortOutput::Signal(Signal::Answered { .. }));
            if let Some(action) = call.carry_out(output) {
                self.act(call, action).await;
            }
            if is_answer {
                self.keys.iter_mut().for_each(Keys::miss_from_now);
            }
        }
    }

    async fn control(&mut self, call: &mut CallState, control: &Control) {
        self.port.control(control);
        self.drain(call).await;
    }

    async fn take_stranger(&mut self, call: &mut CallState, stranger: Stranger) {
        self.port.take_stranger(stranger);
        self.drain(call).await;
    }

    fn take_handshakes(&mut self, call: &mut CallState) {
        self.keys.iter_mut().for_each(Keys::receive);
        self.drain_keys(call);
    }

    async fn last_messages(&mut self, clock: &Clock) -> Vec<(i64, String)> {
        let mut messages = Vec::new();
        let collect = async {
            while let Some((_, news)) = self.dialogs.next().await {
                if let News::Sip(SipNews::Trace(message)) = news {
                    messages.push((clock.now_ms(), message));
                }
            }
        };
        let _ = tokio::time::timeout(FAREWELL, collect).await;
        messages.into_iter().map(|(at_ms, message)| (at_ms, self.mask(message))).collect()
    }

    fn peer(&self) -> &PeerInfo {
        self.port.peer()
    }

    fn awaits_keys(&self) -> bool {
        self.keys.as_ref().is_some_and(Keys::are_missing)
    }

    fn warning(&self, quality: &Quality) -> Option<String> {
        self.port.strangers_warning(quality.foreign_address)
    }
}

/// Returns the hops to an address that the other side names, where the gate lets it be dialled.
async fn pass_gate(
    gate: Option<DialGate>,
    forwarded: Forwarded,
    target: &Address,
    hops: Vec<Hop>,
) -> Result<Vec<Hop>, String> {
    match gate {
        Some(gate) => gate.admit(forwarded, target.uri(), &hops).await.map(|()| hops),
        None => Ok(hops),
    }
}
