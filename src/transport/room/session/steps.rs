//! Steps of the connections that the signalling asks for.

use std::time::Duration;

use super::back::How;
use super::{Carried, RoomCall, RoomNews, now};
use crate::news::NewsSender;
use crate::room::fault::Reason;
use crate::room::messages::{DisconnectReason, IceServerInfo, LeaveAction, Request, SessionDescription, SignalTarget};
use crate::room::side::{Side, helpers};
use crate::room::signal::{Flow, RoomEvent, SignalEnd, SignalOutput, encode, microphone};
use crate::webrtc::{Candidate, Delivery, MediaPeer, Part, PeerFault, PeerSettings, RemoteTrack, Track};
use crate::websocket::protocol::Message;

/// Names of the data channels that a server knows.
const RELIABLE: &str = "_reliable";
const LOSSY: &str = "_lossy";

/// Tracks that are asked for at once.
const MAX_TRACKS: u32 = 16;

impl RoomCall {
    /// Carries out an output of the signalling. Returns the end, where it is one.
    pub(super) async fn carry_out(&mut self, output: SignalOutput, news: &NewsSender<RoomNews>) -> Option<Carried> {
        let done = match output {
            SignalOutput::Send(request) => {
                self.send(request);
                Ok(())
            }
            SignalOutput::Joined(servers) => {
                self.begin_media(servers).await.map_err(|fault| Reason::Local(fault.to_string()))
            }
            SignalOutput::Published => {
                if let Some(offer) = self.offer.clone() {
                    self.send(Request::Offer(offer));
                }
                Ok(())
            }
            SignalOutput::Describe(target, description) => {
                self.describe(target, description, news).await.map_err(Reason::Peer)
            }
            SignalOutput::Candidate(target, candidate) => {
                self.add(target, candidate).await;
                Ok(())
            }
            SignalOutput::MoreTracks(count) => self.ask_for_tracks(count).await.map_err(Reason::Peer),
            SignalOutput::Hear(_) => {
                self.settle_media(news);
                Ok(())
            }
            SignalOutput::Resumed => {
                let sync = self.signalling.sync_state(self.offer.clone(), self.last_answer.clone());
                self.send(Request::SyncState(sync));
                self.end_back(news);
                // Media that ended meanwhile are made anew.
                if self.publisher.is_none() || self.flow == Flow::Split && self.subscriber.is_none() {
                    return self.lose("the media connection was closed or failed".to_owned(), How::Anew, news);
                }
                Ok(())
            }
            SignalOutput::Event(event) => {
                self.awaits_voice |=
                    self.is_up && matches!(event, RoomEvent::AgentRejoined(..) | RoomEvent::AgentChanged(..));
                let event = match event {
                    // Where no leave was told, the agent was gone from its last packet on.
                    RoomEvent::AgentRejoined(who, left) => RoomEvent::AgentRejoined(who, left.or(self.heard_at())),
                    event => event,
                };
                news.send_event(RoomNews::Event(now(), event));
                Ok(())
            }
            SignalOutput::Warning(text) => {
                news.send_event(RoomNews::Warning(text));
                Ok(())
            }
            SignalOutput::End(end) => return self.take_end(end, news),
        };
        match done {
            Ok(()) => None,
            // A connection that can no longer be described is made anew.
            Err(Reason::Peer(fault)) if self.is_up => self.lose(fault.to_string(), How::Anew, news),
            Err(reason) => Some(Carried::Failed(reason)),
        }
    }

    fn take_end(&mut self, end: SignalEnd, news: &NewsSender<RoomNews>) -> Option<Carried> {
        use DisconnectReason::{ParticipantRemoved, RoomClosed, RoomDeleted};
        match end {
            SignalEnd::AgentLeft => Some(Carried::AgentLeft),
            SignalEnd::AgentFailed => Some(Carried::Failed(Reason::AgentFailed)),
            SignalEnd::AgentLost(reason) => Some(Carried::Failed(Reason::AgentLost(reason))),
            SignalEnd::NotPermitted(right) => Some(Carried::Failed(Reason::NotPermitted(right))),
            // So an agent ends a call that it hangs up.
            SignalEnd::Left(RoomDeleted | RoomClosed | ParticipantRemoved, _) if self.is_up => Some(Carried::AgentLeft),
            // The connection that is made anew takes the place of the old one.
            SignalEnd::Left(DisconnectReason::DuplicateIdentity, _) if self.may_be_let_in() => None,
            // It may be started anew.
            SignalEnd::Left(DisconnectReason::ServerShutdown, _) if self.is_up => {
                self.link = None;
                self.lose("the server is being stopped".to_owned(), How::Anew, news)
            }
            SignalEnd::Left(reason, LeaveAction::Disconnect) => Some(Carried::Failed(Reason::Left(reason))),
            SignalEnd::Left(_, action) => {
                let how = if action == LeaveAction::Resume { How::Resume } else { How::Anew };
                self.link = None;
                self.lose("the server asks for another connection".to_owned(), how, news)
            }
        }
    }

    pub(super) fn send(&mut self, request: Request) {
        if let Some(link) = &mut self.link {
            link.send(Message::Binary(encode(request)));
        }
    }

    /// Makes the peer connections, and asks to publish the track.
    async fn begin_media(&mut self, servers: Vec<IceServerInfo>) -> Result<(), PeerFault> {
        for old in [self.publisher.take(), self.subscriber.take()].into_iter().flatten() {
            old.peer.close().await;
        }
        (self.media, self.last_answer) = (None, None);
        self.hear(Vec::new());
        (self.awaits_answer, self.more_tracks) = (true, 0);
        self.early.clear();
        self.joins_anew();
        self.generation += 1;
        let mut ice_servers = self.settings.ice_servers.clone();
        ice_servers.extend(helpers(servers, &self.settings.guard).await);
        let settings = PeerSettings { ice_servers, ..self.settings.clone() };
        let part = if self.flow == Flow::Joint { Part::Joint } else { Part::Publisher };
        let mut publisher = Side::new(settings.clone(), part).await?;
        self.reliable = Some(publisher.peer.open_channel(RELIABLE, Delivery::Reliable).await?);
        publisher.peer.open_channel(LOSSY, Delivery::Lossy).await?;
        let sdp = publisher.offer().await?;
        let cid = track_of(&sdp).ok_or_else(|| PeerFault::Malformed("the own offer names no track".to_owned()))?;
        let track = microphone(&cid);
        self.offer = Some(self.number("offer", sdp));
        self.publisher = Some(publisher);
        if self.flow == Flow::Split {
            self.subscriber = Some(Side::new(settings, Part::Subscriber).await?);
        }
        self.send(Request::AddTrack(track));
        Ok(())
    }

    fn number(&mut self, kind: &str, sdp: String) -> SessionDescription {
        self.offers += 1;
        SessionDescription { kind: kind.to_owned(), sdp, id: self.offers, ..SessionDescription::default() }
    }

    async fn describe(
        &mut self,
        target: SignalTarget,
        description: SessionDescription,
        news: &NewsSender<RoomNews>,
    ) -> Result<(), PeerFault> {
        match target {
            SignalTarget::Publisher => {
                let Some(side) = &mut self.publisher else { return Ok(()) };
                // Nothing was asked.
                if !std::mem::take(&mut self.awaits_answer) {
                    return Ok(());
                }
                side.accept(&description.sdp).await?;
                if self.flow == Flow::Joint {
                    self.last_answer = Some(description);
                    self.ask_for_tracks(0).await?;
                }
            }
            SignalTarget::Subscriber => {
                let Some(side) = &mut self.subscriber else { return Ok(()) };
                let sdp = side.answer(&description.sdp).await?;
                let answer = SessionDescription {
                    kind: "answer".to_owned(),
                    sdp,
                    id: description.id,
                    ..SessionDescription::default()
                };
                self.send(Request::Answer(answer.clone()));
                self.last_answer = Some(answer);
            }
        }
        self.settle_media(news);
        Ok(())
    }

    async fn add(&mut self, target: SignalTarget, candidate: Candidate) {
        let side = match (target, self.flow) {
            (SignalTarget::Subscriber, Flow::Split) => &mut self.subscriber,
            _ => &mut self.publisher,
        };
        let Some(side) = side else { return };
        if let Err(fault) = side.add(candidate).await {
            // The others may do.
            tracing::debug!(%fault, "a candidate of the room server was not taken");
        }
    }

    /// Asks for so many tracks more, as soon as the last offer is answered.
    async fn ask_for_tracks(&mut self, count: u32) -> Result<(), PeerFault> {
        self.more_tracks = self.more_tracks.saturating_add(count).min(MAX_TRACKS);
        let Some(side) = self.publisher.as_mut().filter(|_| self.flow == Flow::Joint) else { return Ok(()) };
        // One offer at a time.
        if self.awaits_answer || self.more_tracks == 0 {
            return Ok(());
        }
        self.awaits_answer = true;
        side.peer.expect_tracks(std::mem::take(&mut self.more_tracks)).await?;
        let sdp = side.offer().await?;
        let offer = self.number("offer", sdp);
        self.offer = Some(offer.clone());
        self.send(Request::Offer(offer));
        Ok(())
    }

    /// Finds the agent's tracks in the newest description of the server.
    pub(super) fn settle_media(&mut self, news: &NewsSender<RoomNews>) {
        let before = self.media;
        let hearing = if self.flow == Flow::Joint { &self.publisher } else { &self.subscriber };
        let tracks = hearing.as_ref().map(|side| side.peer.tracks()).unwrap_or_default();
        let mids = self.last_answer.as_ref().map(|description| &description.mid_to_track_id);
        let described = |sid: &str| {
            let is_it = |track: &&RemoteTrack| {
                let named = mids.and_then(|mids| mids.get(&track.mid)).map(String::as_str);
                [named, Some(track.id.as_str()), track.stream.rsplit('|').next()].contains(&Some(sid))
            };
            tracks.iter().find(is_it)
        };
        let heard: Vec<Track> = (self.signalling.heard_tracks().iter())
            .filter_map(|description| Some((description, described(&description.sid)?)))
            .map(|(description, track)| Track {
                sid: description.sid.clone(),
                sources: track.sources.clone(),
                payload_type: track.payload_type,
            })
            .collect();
        let has_changed = heard.iter().ne(self.tracks.all());
        if has_changed {
            self.hear(heard);
        }
        let sent = self.publisher.as_ref().and_then(|side| side.peer.media());
        if let (Some(receive_payload_type), Some(sent)) = (self.tracks.payload_type(), sent) {
            let both = ringer_media::leg::MediaParams { may_send: true, may_receive: true, ..sent };
            self.media = Some(ringer_media::leg::MediaParams { receive_payload_type, ..both });
        }
        let has_changed = has_changed || self.media != before;
        let is_heard = !self.tracks.all().is_empty();
        self.awaits_voice &= !is_heard;
        if let Some(media) = self.media.filter(|_| self.is_up && has_changed && is_heard) {
            news.send(RoomNews::Media(media));
        }
        self.tell_hold(news);
    }

    /// Returns the reason for which the call is not up yet.
    pub(super) async fn why_not_ready(&mut self, within: Duration) -> Reason {
        if self.signalling.agent().is_none() && self.signalling.has_others() {
            return Reason::NoAgent(within, "others are in the room, and no agent joined it");
        }
        if self.signalling.agent().is_none() {
            return Reason::NoAgent(within, "no agent joined the room");
        }
        if !self.signalling.has_agent() {
            return Reason::NoAgent(within, "the agent left the room before its audio came");
        }
        if self.signalling.heard_tracks().is_empty() {
            return Reason::NoAgent(within, "the agent is in the room and published no audio");
        }
        for side in [&self.publisher, &self.subscriber].into_iter().flatten() {
            if let Err(fault) = side.peer.wait_connected(Duration::ZERO).await {
                return Reason::Peer(fault.within(within));
            }
        }
        Reason::Protocol(format!("did not deliver the agent's audio within {} s", within.as_secs_f64()))
    }

    /// Tells if the agent sends audio, where that has changed.
    pub(super) fn tell_hold(&mut self, news: &NewsSender<RoomNews>) {
        let is_mute = self.signalling.heard_tracks().iter().all(|track| track.is_muted);
        let is_held = is_mute || self.tracks.all().is_empty();
        // An agent that has left, or is coming back, is not mute.
        let is_there = !self.signalling.is_agent_away() && !self.awaits_voice;
        if self.is_up && self.is_held != is_held && is_there {
            self.is_held = is_held;
            news.send(RoomNews::Held(is_held));
        }
    }
}

/// Returns the name of the track that an offer of this side sends (RFC 8830).
fn track_of(sdp: &str) -> Option<String> {
    let msid = sdp.lines().find_map(|line| line.strip_prefix("a=msid:"))?;
    msid.split_ascii_whitespace().nth(1).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::track_of;

    #[test]
    fn the_own_track_is_named_by_the_offer() {
        let check = |sdp: &str, expect: Option<&str>| assert_eq!(track_of(sdp).as_deref(), expect, "{sdp}");
        check("v=0\r\na=msid:stream track\r\n", Some("track"));
        check("v=0\r\na=msid:stream\r\n", None);
        check("v=0\r\n", None);
    }
}
