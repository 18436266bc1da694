//! The signalling of a room, without IO: messages of the server come in, messages to it and steps of the connections
//! come out.

mod address;

use std::collections::VecDeque;
use std::time::Duration;

use prost::Message;
use ringer_base::config::Secret;
use ringer_media::time::Time;
use serde_json::{Value, json};

pub use self::address::{Flow, Rejoin, address, validation};

use super::data::Names;
use super::messages::{
    AddTrackRequest, DisconnectReason, IceServerInfo, JoinResponse, LeaveAction, LeaveRequest, ParticipantInfo,
    ParticipantTracks, Ping, Request, Response, SessionDescription, SignalRequest, SignalResponse, SignalTarget,
    SyncState, TrackInfo, TrackPublishedResponse, TrackSource, TrackType, TrickleRequest, UpdateSubscription,
};
use super::roster::{Change, Roster, is_loss};
use crate::webrtc::Candidate;

/// Version of the protocol that is spoken.
pub const PROTOCOL: u32 = 16;

/// Attribute by which agents tell what they are doing.
const AGENT_STATE: &str = "lk.agent.state";

/// Characters of the longest state or message that is told.
const MAX_WORDS: usize = 200;

/// Least time between two signs of life, whatever the server asks for.
const LEAST_PING: Duration = Duration::from_secs(1);

/// Servers that help to find a path and are used.
const MAX_ICE_SERVERS: usize = 8;

/// The track that is heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeardTrack {
    /// Name of the track.
    pub sid: String,
    /// True while its sender has muted it.
    pub is_muted: bool,
}

/// An event of the room.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoomEvent {
    /// The agent is in the room; its identity.
    AgentJoined(String),
    /// The agent's track is published: what it says from now on can be heard.
    AgentPublished,
    /// The agent is not in the room; it may come back.
    AgentAway,
    /// The agent is back in the room under its identity; the time at which it left, where the server told of it.
    AgentRejoined(String, Option<Time>),
    /// Another participant takes the agent's place: identity of the old one and of the new one.
    AgentChanged(String, String),
    /// State of the agent, as it tells it.
    AgentState(String),
}

/// The end of a connection as the server tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SignalEnd {
    /// The agent left the room, and did not come back.
    AgentLeft,
    /// The agent's connection to the room was lost for this reason, and did not come back.
    AgentLost(DisconnectReason),
    /// The agent has left, and the server tells that it failed.
    AgentFailed,
    /// The server ends the connection.
    Left(DisconnectReason, LeaveAction),
    /// The token lacks a right.
    NotPermitted(&'static str),
}

/// Something to be carried out.
#[expect(clippy::large_enum_variant, reason = "outputs are few, and each is carried out at once")]
#[derive(Clone, Debug, PartialEq)]
pub enum SignalOutput {
    /// A message for the server.
    Send(Request),
    /// The room is joined; servers that help to find a path.
    Joined(Vec<IceServerInfo>),
    /// The connection was taken up.
    Resumed,
    /// This side's track may be offered.
    Published,
    /// A description of the server for one of the connections.
    Describe(SignalTarget, SessionDescription),
    /// A candidate of the server for one of the connections.
    Candidate(SignalTarget, Candidate),
    /// The next offer is to ask for tracks, this many more.
    MoreTracks(u32),
    /// The tracks to hear from now on; of several the one that speaks.
    Hear(Vec<HeardTrack>),
    /// An event for the timeline.
    Event(RoomEvent),
    /// For the user of the result.
    Warning(String),
    /// The connection ends, for this reason.
    End(SignalEnd),
}

/// State of the signalling.
#[derive(Debug, Default)]
pub struct Signalling {
    own: ParticipantInfo,
    /// Track of this side, as the server knows it.
    published: Option<TrackPublishedResponse>,
    roster: Roster,
    /// Name of the agent's participant, and its tracks that are heard.
    heard: (String, Vec<HeardTrack>),
    agent: Option<String>,
    agent_state: Option<String>,
    token: Option<Secret>,
    pings: Option<(Duration, Duration)>,
    next_ping: Option<Time>,
    last_sign: Time,
    round_trip_ms: i64,
    malformed: u64,
    is_joined: bool,
    /// Name of the room, and version of the server; empty where the server tells none.
    place: (String, String),
    out: VecDeque<SignalOutput>,
}

impl Signalling {
    /// Returns the state for a connection that joins anew, with that which outlives the old one.
    pub fn anew(self) -> Signalling {
        let Signalling { roster, agent, agent_state, token, malformed, .. } = self;
        Signalling { roster, agent, agent_state, token, malformed, ..Signalling::default() }
    }

    /// Returns the state for a room into which an agent was dispatched under this name; `None`: whoever is there may be
    /// the agent.
    pub fn expecting(dispatched: Option<String>) -> Signalling {
        let mut signalling = Signalling::default();
        dispatched.into_iter().for_each(|name| signalling.roster.expect(name));
        signalling
    }

    /// Counts the time without a sign of life from `now`: another connection to the server begins.
    pub fn begin(&mut self, now: Time) {
        self.roster.postpone(now);
        self.last_sign = now;
    }

    /// Reads a message of the server; one that is none of the protocol is counted.
    pub fn receive(&mut self, now: Time, bytes: &[u8]) {
        self.last_sign = now;
        match SignalResponse::decode(bytes) {
            Ok(SignalResponse { message: Some(message) }) => self.take(now, message),
            // Messages of later versions.
            Ok(_) => {}
            Err(error) => {
                self.malformed += 1;
                tracing::debug!(%error, "a message of the room server cannot be read");
            }
        }
    }

    fn take(&mut self, now: Time, message: Response) {
        match message {
            Response::Join(join) => self.join(now, join),
            Response::Reconnect(_) => {
                self.next_ping = self.pings.map(|(interval, _)| now + interval);
                self.out.push_back(SignalOutput::Resumed);
            }
            Response::Answer(message) => self.out.push_back(SignalOutput::Describe(SignalTarget::Publisher, message)),
            Response::Offer(message) => self.out.push_back(SignalOutput::Describe(SignalTarget::Subscriber, message)),
            Response::Trickle(message) => self.trickle(&message),
            Response::Update(update) => {
                update.participants.into_iter().for_each(|info| self.participant(now, info));
                self.follow(now);
            }
            Response::SpeakersChanged(message) => {
                let speak = message.speakers.iter().filter(|speaker| speaker.active);
                let sids: Vec<&str> = speak.map(|speaker| speaker.sid.as_str()).collect();
                self.roster.hear_speaking(&sids);
            }
            Response::TrackPublished(message) => {
                let is_first = self.published.is_none();
                self.published = Some(message);
                if is_first {
                    self.out.push_back(SignalOutput::Published);
                }
            }
            Response::Leave(leave) => self.leave(&leave),
            Response::RefreshToken(token) => self.token = Some(Secret::new(token)),
            Response::Pong(pong) => {
                // The clock of the timestamps is that of `now`.
                let sent = u64::try_from(pong.last_ping_timestamp).unwrap_or(0);
                self.round_trip_ms = (now.0 / 1_000_000).saturating_sub(sent).min(60_000) as i64;
            }
            Response::Mute(mute) if self.is_own_track(&mute.sid) && mute.muted => {
                self.warn("the server asks this side to be mute, which it is not".to_owned());
            }
            Response::TrackUnpublished(message) if self.is_own_track(&message.track_sid) => {
                self.warn("the server has taken the Digital Human's track out of the room".to_owned());
            }
            Response::SubscriptionResponse(message) if message.err != 0 => {
                let why = if message.err == 1 { "its codec is not supported" } else { "there is no such track" };
                self.warn(format!("a track could not be subscribed: {why}"));
            }
            Response::RequestResponse(message) if message.reason != 0 => {
                let words = in_few_words(&message.message);
                self.warn(format!("the server refused a request (reason {}): {words}", message.reason));
            }
            Response::MediaSections(message) => {
                self.out.push_back(SignalOutput::MoreTracks(message.num_audios.min(16)));
            }
            _ => {}
        }
    }

    fn join(&mut self, now: Time, join: JoinResponse) {
        self.is_joined = true;
        (self.published, self.heard) = (None, Default::default());
        self.roster.begin(now);
        self.own = join.participant.unwrap_or_default();
        let rights = self.own.permission.unwrap_or(super::messages::Permission {
            can_subscribe: true,
            can_publish: true,
            can_publish_data: true,
        });
        if !rights.can_publish || !rights.can_subscribe {
            let right = if rights.can_publish { "to hear the agent" } else { "to publish audio" };
            return self.out.push_back(SignalOutput::End(SignalEnd::NotPermitted(right)));
        }
        let seconds = |seconds: i32| Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
        let (interval, patience) = (seconds(join.ping_interval), seconds(join.ping_timeout));
        self.pings = (!interval.is_zero()).then(|| (interval.max(LEAST_PING), patience));
        let version = join.server_info.map(|info| info.version).filter(|version| !version.is_empty());
        let name = join.room.map(|room| room.name).unwrap_or_default();
        self.place = (in_few_words(&name), in_few_words(&version.unwrap_or(join.server_version)));
        self.next_ping = self.pings.map(|(interval, _)| now + interval);
        let servers = join.ice_servers.into_iter().take(MAX_ICE_SERVERS).collect();
        self.out.push_back(SignalOutput::Joined(servers));
        let sids: Vec<&str> = join.other_participants.iter().map(|info| info.sid.as_str()).collect();
        // The same identity under another name is back already.
        let lost = self.roster.keep_only(now, &sids);
        join.other_participants.into_iter().for_each(|info| self.participant(now, info));
        self.tell(lost.filter(|_| self.roster.agent().is_none()));
        self.follow(now);
    }

    fn participant(&mut self, now: Time, info: ParticipantInfo) {
        if info.sid != self.own.sid {
            let change = self.roster.take(now, info);
            self.tell(change);
        }
    }

    /// Tells of a change of the agent whom the call is up with.
    fn tell(&mut self, change: Option<Change>) {
        let identity = self.agent.clone().unwrap_or_default();
        let output = match change {
            None => None,
            Some(Change::Away) => Some(SignalOutput::Event(RoomEvent::AgentAway)),
            Some(Change::Rejoined(left)) => Some(SignalOutput::Event(RoomEvent::AgentRejoined(identity, left))),
            Some(Change::Replaced(old)) => {
                self.agent = self.roster.agent().map(|agent| agent.identity.clone());
                let new = self.agent.clone().unwrap_or_default();
                Some(SignalOutput::Event(RoomEvent::AgentChanged(old, new)))
            }
            Some(Change::Gone(reason)) => Some(SignalOutput::End(match reason {
                DisconnectReason::AgentError => SignalEnd::AgentFailed,
                reason if is_loss(reason) => SignalEnd::AgentLost(reason),
                _ => SignalEnd::AgentLeft,
            })),
        };
        self.out.extend(output);
    }

    /// Follows the agent: who it is, its state, and the tracks that are heard.
    fn follow(&mut self, now: Time) {
        let change = self.roster.settle(now);
        self.tell(change);
        let Some(agent) = self.roster.agent() else { return self.hear(Default::default()) };
        let (identity, sid) = (agent.identity.clone(), agent.sid.clone());
        let state = agent.attributes.get(AGENT_STATE).map(|state| in_few_words(state));
        let tracks = agent.voices().map(track_of).collect();
        if self.agent.as_ref() != Some(&identity) {
            self.out.push_back(SignalOutput::Event(RoomEvent::AgentJoined(identity.clone())));
            self.agent = Some(identity);
        }
        if let Some(state) = state.filter(|state| self.agent_state.as_ref() != Some(state)) {
            self.out.push_back(SignalOutput::Event(RoomEvent::AgentState(state.clone())));
            self.agent_state = Some(state);
        }
        self.hear((sid, tracks));
    }

    fn hear(&mut self, wanted: (String, Vec<HeardTrack>)) {
        if self.heard == wanted || self.heard.1.is_empty() && wanted.1.is_empty() {
            return;
        }
        let old = std::mem::replace(&mut self.heard, wanted.clone());
        let has = |of: &(String, Vec<HeardTrack>), sid: &str| of.1.iter().any(|track| track.sid == sid);
        for track in old.1.iter().filter(|track| !has(&wanted, &track.sid)) {
            self.out.push_back(subscription(&old.0, track, false));
        }
        let new: Vec<&HeardTrack> = wanted.1.iter().filter(|track| !has(&old, &track.sid)).collect();
        self.out.extend(new.iter().map(|track| subscription(&wanted.0, track, true)));
        let is_first = old.1.is_empty() || wanted.1.len() == new.len();
        self.out.extend((is_first && !new.is_empty()).then_some(SignalOutput::Event(RoomEvent::AgentPublished)));
        self.out.push_back(SignalOutput::Hear(wanted.1));
    }

    fn trickle(&mut self, candidate_message: &TrickleRequest) {
        let init: Value = serde_json::from_str(&candidate_message.candidate_init).unwrap_or_default();
        let Some(line) = init["candidate"].as_str().filter(|line| !line.is_empty()) else { return };
        let candidate = Candidate {
            line: line.to_owned(),
            mid: init["sdpMid"].as_str().filter(|mid| !mid.is_empty()).map(str::to_owned),
            section: init["sdpMLineIndex"].as_u64().and_then(|section| u16::try_from(section).ok()),
        };
        self.out.push_back(SignalOutput::Candidate(candidate_message.target(), candidate));
    }

    fn leave(&mut self, leave: &LeaveRequest) {
        let reason = DisconnectReason::try_from(leave.reason).unwrap_or(DisconnectReason::Unknown);
        let action = match LeaveAction::try_from(leave.action).unwrap_or(LeaveAction::Disconnect) {
            // Servers before the action was known.
            LeaveAction::Disconnect if leave.can_reconnect => LeaveAction::Reconnect,
            action => action,
        };
        self.out.push_back(SignalOutput::End(SignalEnd::Left(reason, action)));
    }

    /// Sends what is due at `now`. Returns the reason where the server counts as lost.
    pub fn tick(&mut self, now: Time) -> Option<String> {
        if self.roster.next_timer().is_some_and(|at| at <= now) {
            self.follow(now);
        }
        let (interval, patience) = self.pings?;
        if !patience.is_zero() && now.since(self.last_sign) >= patience {
            return Some(format!("no message came within {} s", patience.as_secs()));
        }
        if self.next_ping.is_some_and(|at| at <= now) {
            self.next_ping = Some(now + interval);
            let timestamp = (now.0 / 1_000_000) as i64;
            self.out.push_back(SignalOutput::Send(Request::PingTime(timestamp)));
            self.out.push_back(SignalOutput::Send(Request::Ping(Ping { timestamp, rtt: self.round_trip_ms })));
        }
        None
    }

    /// Returns the time of the next tick.
    pub fn next_timer(&self) -> Option<Time> {
        let lost = self.pings.filter(|(_, patience)| !patience.is_zero());
        let lost = lost.map(|(_, patience)| self.last_sign + patience);
        [self.next_ping, lost, self.roster.next_timer()].into_iter().flatten().min()
    }

    /// Returns the next output.
    pub fn poll(&mut self) -> Option<SignalOutput> {
        self.out.pop_front()
    }

    /// Has the present agent stay the agent: the call is up with it.
    pub fn choose_agent(&mut self) {
        self.roster.choose();
    }

    /// Returns the name of the room and the version of the server; empty where the server tells none.
    pub fn place(&self) -> &(String, String) {
        &self.place
    }

    /// Returns the name of this side's participant.
    pub fn own_sid(&self) -> &str {
        &self.own.sid
    }

    /// True once the server has let this side in.
    pub fn is_joined(&self) -> bool {
        self.is_joined
    }

    /// Returns the newest token that the server gave; `None`: the first one holds.
    pub fn token(&self) -> Option<&Secret> {
        self.token.as_ref()
    }

    /// Returns the identity of the agent, where it is known.
    pub fn agent(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    /// True while the agent is in the room.
    pub fn has_agent(&self) -> bool {
        self.roster.agent().is_some()
    }

    /// True if somebody is in the room who is not taken for the agent.
    pub fn has_others(&self) -> bool {
        self.roster.others_count() > 0
    }

    /// True while the agent whom the call is up with is not in the room.
    pub fn is_agent_away(&self) -> bool {
        self.roster.is_away()
    }

    /// Returns the tracks that are heard.
    pub fn heard_tracks(&self) -> &[HeardTrack] {
        &self.heard.1
    }

    /// Returns the number of messages that could not be read.
    pub fn malformed_count(&self) -> u64 {
        self.malformed
    }

    /// Returns the names by which data packets are told apart.
    pub(super) fn names<'a>(&'a self, tool_topic: Option<&'a str>) -> Names<'a> {
        let own_track = self.published.as_ref().and_then(|published| published.track.as_ref());
        // A name that nothing has.
        let or_none = |name: &'a str| if name.is_empty() { "\0" } else { name };
        Names {
            own: or_none(&self.own.identity),
            own_track: or_none(own_track.map_or("", |track| track.sid.as_str())),
            agent: or_none(self.agent.as_deref().unwrap_or_default()),
            tool_topic,
        }
    }

    /// Returns what a server is told when the connection is taken up.
    pub fn sync_state(&self, offer: Option<SessionDescription>, answer: Option<SessionDescription>) -> SyncState {
        let (participant, tracks) = &self.heard;
        let sids: Vec<&str> = tracks.iter().map(|track| track.sid.as_str()).collect();
        let subscription = (!sids.is_empty()).then(|| update_of(participant, &sids, true));
        let publish_tracks = self.published.iter().cloned().collect();
        SyncState { answer, subscription, publish_tracks, offer, ..SyncState::default() }
    }

    fn is_own_track(&self, sid: &str) -> bool {
        self.published.as_ref().and_then(|published| published.track.as_ref()).is_some_and(|track| track.sid == sid)
    }

    fn warn(&mut self, text: String) {
        self.out.push_back(SignalOutput::Warning(text));
    }
}

fn track_of(track: &TrackInfo) -> HeardTrack {
    HeardTrack { sid: track.sid.clone(), is_muted: track.muted }
}

fn update_of(participant: &str, tracks: &[&str], subscribe: bool) -> UpdateSubscription {
    let track_sids: Vec<String> = tracks.iter().map(|sid| (*sid).to_owned()).collect();
    let tracks = ParticipantTracks { participant_sid: participant.to_owned(), track_sids: track_sids.clone() };
    UpdateSubscription { track_sids, subscribe, participant_tracks: vec![tracks] }
}

fn subscription(participant: &str, track: &HeardTrack, subscribe: bool) -> SignalOutput {
    SignalOutput::Send(Request::Subscription(update_of(participant, &[&track.sid], subscribe)))
}

/// Returns the request to publish the microphone track of this name: Opus without DTX, nothing sent twice.
pub fn microphone(cid: &str) -> AddTrackRequest {
    AddTrackRequest {
        cid: cid.to_owned(),
        name: "microphone".to_owned(),
        kind: TrackType::Audio as i32,
        source: TrackSource::Microphone as i32,
        disable_dtx: true,
        disable_red: true,
        stream: "microphone".to_owned(),
        ..AddTrackRequest::default()
    }
}

/// Returns a request as it goes over the wire.
pub fn encode(request: Request) -> Vec<u8> {
    SignalRequest { message: Some(request) }.encode_to_vec()
}

/// Returns a candidate of this side as it is sent by itself.
pub fn trickle(target: SignalTarget, candidate: &Candidate) -> Request {
    let mid = candidate.mid.clone().unwrap_or_else(|| "0".to_owned());
    let section = candidate.section.unwrap_or_default();
    let init = json!({ "candidate": candidate.line, "sdpMid": mid, "sdpMLineIndex": section });
    Request::Trickle(TrickleRequest { candidate_init: init.to_string(), target: target as i32, is_final: false })
}

/// Returns a text of the other side as it may be shown.
fn in_few_words(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_WORDS).collect()
}

#[cfg(test)]
mod tests;
