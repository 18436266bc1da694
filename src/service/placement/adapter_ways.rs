//! Calls of platforms by the channel that their adapters name: a WebSocket, a peer connection, a media room, or a SIP
//! address. Where a session has to be asked for first, its answer completes the destination.

use std::net::IpAddr;

use ringer_base::config::Secret;
use ringer_base::guard::Guard;
use ringer_base::post::Poster;
use ringer_engine::{Destination, PipelineDial, RoomDial, SipDial};
use ringer_media::codec::Codec;
use ringer_model::agent::ConnectionType;
use ringer_model::error_code::PlatformFault;
use ringer_sip::Hop;
use ringer_transport::pipeline::{Patience, PipelineTarget};
use ringer_transport::room;
use ringer_transport::room::{Credentials, RoomTarget, RoomTerms};
use ringer_transport::sip::address::{Address, AddressFault};
use ringer_transport::websocket::platform::adapter::SessionReply;
use ringer_transport::websocket::platform::transport::Transport;
use serde_json::{Value, json};

use super::adapter::{self, PATIENCE, SessionPlan};
use super::dial::{Outgoing, outgoing_at};
use super::trunks::trunk_at;
use super::{CallRows, Obstacle, Placements, PreparedCall, phone};
use crate::Settings;
use crate::conversation::outcome::PLATFORM_NOTE;

/// Returns how the agent of a platform is reached, and the number that leaves by it. A destination that a session
/// completes has no address yet. `headers`: those of an INVITE.
pub(super) async fn destination(
    rows: &CallRows,
    kind: ConnectionType,
    codecs: &[Codec],
    headers: Vec<(String, String)>,
    settings: &Settings,
) -> Result<(Destination, Option<Outgoing>), Obstacle> {
    let plan = adapter::plan_of(rows, kind, settings)?;
    if !plan.adapter.can_call() {
        let why = format!("[adapters.{}] has no url: it only asks the platform for calls", kind.as_str());
        return Err(plan.obstacle(PlatformFault::AdapterNotConfigured, why));
    }
    let agent = &rows.agent.spec;
    let guard = Guard::new(settings.allow_private_agents);
    let mut destination = match plan.adapter.transport() {
        Transport::WebSocket => {
            return Ok((Destination::WebSocket(Box::new(adapter::dial(rows, kind, settings)?.0)), None));
        }
        Transport::WebRtc => {
            let target = PipelineTarget { result_id: rows.result_id.to_string(), ..PipelineTarget::default() };
            let patience = Patience::answered_within(settings.pipelines.answer_timeout_s);
            let (peers, guard) = (settings.peers.clone(), Some(guard));
            Destination::Pipeline(Box::new(PipelineDial { target, peers, patience, guard }))
        }
        Transport::Room => {
            let (peers, guard) = (settings.peers.clone(), Some(guard.trusting(&settings.roots)));
            let patience = room::Patience::default();
            Destination::Room(Box::new(RoomDial { peers, patience, guard, ..RoomDial::default() }))
        }
        Transport::Sip => Destination::Sip(SipDial {
            guard: Some(guard),
            username: agent.sip_username.clone(),
            password: agent.sip_password.clone().map(Secret::new),
            headers,
            codecs: codecs.to_vec(),
            ..SipDial::default()
        }),
    };
    let is_sip = plan.adapter.transport() == Transport::Sip;
    if plan.adapter.needs_session() || (!is_sip && plan.adapter.needs_token()) {
        return Ok((destination, None));
    }
    finish(&plan, &mut destination, &SessionReply::default(), settings).await?;
    let outgoing = match &mut destination {
        Destination::Sip(dial) => {
            let behind = phone::behind(rows, &dial.target.clone(), &dial.hops, settings).await;
            dial.from_user = rows.shown_number(behind.as_ref(), settings);
            behind
        }
        _ => None,
    };
    Ok((destination, outgoing))
}

/// Completes a destination by what the session's answer, or the settings, say.
pub(super) async fn finish(
    plan: &SessionPlan,
    destination: &mut Destination,
    reply: &SessionReply,
    settings: &Settings,
) -> Result<(), Obstacle> {
    let refused = |why: String| plan.obstacle(PlatformFault::SessionSetupFailed, why);
    match destination {
        Destination::WebSocket(dial) => plan.finish(dial, reply)?,
        Destination::Pipeline(dial) => {
            let offer = plan.adapter.offer(&plan.facts, reply).map_err(refused)?;
            dial.target.base_url = offer.url.clone();
            dial.target.offer = Some(Box::new(offer));
        }
        Destination::Room(dial) => {
            let (server_url, token) = plan.adapter.room(&plan.facts, reply).map_err(refused)?;
            let platform = Some(plan.platform.as_str().to_owned());
            let shown = Some(plan.adapter.secrets(&plan.facts, reply).hide(server_url.clone()));
            dial.target = RoomTarget { server_url, token: Secret::new(token), ..RoomTarget::default() };
            dial.terms = RoomTerms { credentials: Credentials::Session, platform, shown, ..RoomTerms::default() };
        }
        Destination::Sip(dial) => {
            let (target, more) = plan.adapter.sip(&plan.facts, reply).map_err(refused)?;
            let guard = dial.guard.clone().unwrap_or_else(|| Guard::new(settings.allow_private_agents));
            dial.hops = find_hops(plan, &target, settings, &guard).await?;
            if plan.adapter.needs_session() {
                check_no_number(plan, &target, &dial.hops, settings).await?;
            }
            if reply.url.is_some() {
                // The agent's password is for the host of the settings.
                (dial.username, dial.password) = (None, None);
            }
            let is_new = |name: &str| !dial.headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name));
            let more: Vec<_> = more.into_iter().filter(|(name, _)| is_new(name)).collect();
            dial.headers.extend(more);
            dial.secrets = plan.adapter.secrets(&plan.facts, reply);
            dial.platform = Some(plan.platform.as_str().into());
            dial.target = target;
        }
        Destination::Incoming(_) => {}
    }
    Ok(())
}

/// Checks that a SIP address that a session completes is no number of a trunk: those are admitted before a call begins,
/// and such an address is known only then.
async fn check_no_number(plan: &SessionPlan, uri: &str, hops: &[Hop], settings: &Settings) -> Result<(), Obstacle> {
    let found: Vec<IpAddr> = hops.iter().map(|hop| hop.address.ip()).collect();
    let Ok(address) = Address::parse(uri) else { return Ok(()) };
    let Some(trunk) = trunk_at(&settings.trunks, &address.uri().host, &found, &settings.names).await else {
        return Ok(());
    };
    match outgoing_at(trunk, address.uri().user.as_deref().unwrap_or_default()) {
        None => Ok(()),
        Some(_) => {
            let why = "the SIP address of the session is a number at a trunk of this engine, which is not dialled";
            Err(plan.obstacle(PlatformFault::SessionSetupFailed, why))
        }
    }
}

async fn find_hops(plan: &SessionPlan, uri: &str, settings: &Settings, guard: &Guard) -> Result<Vec<Hop>, Obstacle> {
    let found = match Address::parse(uri) {
        Ok(address) => address.hops(&settings.names, guard).await,
        Err(fault) => Err(fault),
    };
    found.map_err(|fault| {
        let why = match &fault {
            AddressFault::NotAllowed(_) => "the SIP address points to a host that is not allowed".to_owned(),
            AddressFault::NotFound(_) => "the host of the SIP address cannot be resolved".to_owned(),
            AddressFault::Malformed(_) => "the SIP address is none".to_owned(),
            AddressFault::NotSpoken(why) | AddressFault::NotAnswered(why) => format!("the SIP address: {why}"),
        };
        plan.obstacle(PlatformFault::BridgeConnectFailed, why)
    })
}

/// Returns the note of the platform of a call over SIP, whose failures are told by its codes.
pub(super) fn note(rows: &CallRows, destination: &Destination) -> Option<(String, Value)> {
    let kind = rows.telephony().filter(|_| matches!(destination, Destination::Sip(_)))?;
    kind.is_by_adapter().then(|| (PLATFORM_NOTE.to_owned(), kind.as_str().into()))
}

impl Placements {
    /// Asks for the session of a call whose platform makes one.
    ///
    /// # Errors
    /// The reason for which there can be no call.
    pub(super) async fn open_session(&self, prepared: &mut PreparedCall) -> Result<(), Obstacle> {
        let Some(mut plan) = prepared.session.take() else { return Ok(()) };
        let destination = &mut prepared.placement.destination;
        let poster = Poster::new(destination.guard().trusting(&self.settings.roots), PATIENCE);
        let asker = self.asker();
        let is_kept = asker.authorize(&mut plan, &poster, false).await?;
        let reply = asker.ask(&mut plan, &poster, is_kept).await?;
        finish(&plan, destination, &reply, &self.settings).await?;
        let notes = &mut prepared.notes;
        notes.extend(destination.address().map(|target| ("target".to_owned(), json!(target))));
        notes.extend(reply.id.map(|id| ("platform_call_id".to_owned(), json!(id))));
        Ok(())
    }
}
