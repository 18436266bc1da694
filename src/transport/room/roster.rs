//! The participants of a room, and the agent among them with the tracks that are heard.

use std::collections::HashMap;
use std::time::Duration;

use ringer_media::time::Time;

use super::messages::{
    AGENT_KIND, DisconnectReason, ParticipantInfo, ParticipantState, TrackInfo, TrackSource, TrackType,
};

/// Participants that are known at once; further ones are passed over.
const MAX_PARTICIPANTS: usize = 100;

/// Tracks of a participant that are looked at.
const MAX_TRACKS: usize = 32;

/// Tracks of the agent that are heard at once.
const MAX_HEARD: usize = 4;

/// Kinds of participants that are no side of a call: recorders and the like.
const BYSTANDERS: [i32; 2] = [1, 2];

/// Attribute by which an agents' worker tells the name that it is dispatched under.
const AGENT_NAME: &str = "lk.agent.name";

/// Time after which a leave is believed: a client that connects anew leaves first, and is back within it.
const RETURNS: Duration = Duration::from_secs(3);

/// The same for an agent whose connection was lost, which it takes up again.
const RECONNECTS: Duration = Duration::from_secs(10);

/// Time in which nobody else is taken for an agent that was dispatched.
const DISPATCHED: Duration = Duration::from_secs(30);

/// A participant other than this side.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Participant {
    pub sid: String,
    pub identity: String,
    is_agent: bool,
    version: u32,
    /// Time at which it joined, in seconds and milliseconds of the server's clock; 0 where it is not told.
    joined_at: (i64, i64),
    pub attributes: HashMap<String, String>,
    /// Audio tracks in the order in which they were told.
    audio: Vec<(TrackInfo, u8)>,
}

impl Participant {
    fn of(info: ParticipantInfo) -> Participant {
        let is_audio = |track: &TrackInfo| track.kind() == TrackType::Audio && !track.sid.is_empty();
        let audio = info.tracks.into_iter().filter(is_audio).take(MAX_TRACKS);
        Participant {
            is_agent: info.kind == AGENT_KIND,
            audio: audio.map(|track| (rank(&track), track)).map(|(rank, track)| (track, rank)).collect(),
            sid: info.sid,
            identity: info.identity,
            version: info.version,
            joined_at: (info.joined_at, info.joined_at_ms),
            attributes: info.attributes,
        }
    }

    fn has_audio(&self) -> bool {
        !self.audio.is_empty()
    }

    /// Returns the tracks that may be its voice: microphones before tracks of other sources, in the order in which they
    /// were told.
    pub(super) fn voices(&self) -> impl Iterator<Item = &TrackInfo> {
        let best = self.audio.iter().map(|(_, rank)| *rank).min();
        self.audio.iter().filter(move |(_, rank)| Some(*rank) == best).map(|(track, _)| track).take(MAX_HEARD)
    }

    /// True if a worker of another name than `dispatched` is known to be behind it.
    fn is_other_than(&self, dispatched: &str) -> bool {
        self.attributes.get(AGENT_NAME).is_some_and(|name| name != dispatched)
    }
}

/// Returns the place of a track's source among those of a voice; lower is better.
fn rank(track: &TrackInfo) -> u8 {
    match track.source() {
        TrackSource::Microphone => 0,
        TrackSource::Unknown => 1,
        _ => 2,
    }
}

/// The agent whom the call is up with.
#[derive(Clone, Debug)]
struct Chosen {
    sid: String,
    identity: String,
    is_agent: bool,
    has_spoken: bool,
    away: Option<Away>,
}

/// An agent that has left and may come back.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Away {
    since: Time,
    until: Time,
    reason: DisconnectReason,
}

/// A change of the agent whom the call is up with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// It has left and may come back.
    Away,
    /// It is back under its identity; the time at which it left, where that was told.
    Rejoined(Option<Time>),
    /// Another participant takes its place; the identity of the old one.
    Replaced(String),
    /// It has left for good, for this reason.
    Gone(DisconnectReason),
}

/// The participants, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Roster {
    others: Vec<Participant>,
    /// Name under which an agent was dispatched into the room, until somebody else may be taken for it.
    dispatched: Option<(String, Option<Time>)>,
    /// The call is up with it.
    chosen: Option<Chosen>,
}

impl Roster {
    /// Has nobody else be taken for the agent than one that is dispatched under this name, for the first 30 s in the
    /// room.
    pub(super) fn expect(&mut self, dispatched: String) {
        self.dispatched = Some((dispatched, None));
    }

    /// Counts the time for which the dispatched agent is waited for from `now`, if it is not counted yet.
    pub(super) fn begin(&mut self, now: Time) {
        if let Some((_, until @ None)) = &mut self.dispatched {
            *until = Some(now + DISPATCHED);
        }
    }

    /// Takes news of a participant. Returns the change of the chosen agent that follows at once.
    pub(super) fn take(&mut self, now: Time, info: ParticipantInfo) -> Option<Change> {
        let at = self.others.iter().position(|known| known.sid == info.sid);
        if info.state() == ParticipantState::Disconnected {
            let left = self.others.remove(at?);
            let reason = DisconnectReason::try_from(info.disconnect_reason).unwrap_or(DisconnectReason::Unknown);
            return self.lose(now, &left.sid, reason);
        }
        if BYSTANDERS.contains(&info.kind) || info.sid.is_empty() {
            return None;
        }
        match at {
            // Updates may overtake each other.
            Some(at) if info.version >= self.others[at].version => self.others[at] = Participant::of(info),
            None => self.add(Participant::of(info)),
            _ => {}
        }
        None
    }

    /// Adds a participant. One of the same identity is the same participant under another name, and no leave of it is
    /// told.
    fn add(&mut self, new: Participant) {
        let same = self.others.iter().position(|known| known.identity == new.identity && !new.identity.is_empty());
        match same {
            // News of the old one that are late.
            Some(at) if self.others[at].joined_at > new.joined_at => {}
            Some(at) => self.others[at] = new,
            None if self.others.len() < MAX_PARTICIPANTS => self.others.push(new),
            None => {}
        }
    }

    /// Forgets everybody whom the list of a room that was joined anew does not have. The agent among them may be
    /// joining anew, too.
    pub(super) fn keep_only(&mut self, now: Time, sids: &[&str]) -> Option<Change> {
        self.others.retain(|known| sids.contains(&known.sid.as_str()));
        let sid = self.chosen.as_ref().map(|chosen| chosen.sid.clone())?;
        match self.others.iter().any(|known| known.sid == sid) {
            true => None,
            false => self.lose(now, &sid, DisconnectReason::SignalClose),
        }
    }

    /// Believes no leave within the time in which an agent is back: another connection to the server begins, and its
    /// news are to come.
    pub(super) fn postpone(&mut self, now: Time) {
        if let Some(away) = self.chosen.as_mut().and_then(|chosen| chosen.away.as_mut()) {
            away.until = away.until.max(now + RETURNS);
        }
    }

    /// Notes that the chosen agent is not there, if it is the one with this name.
    fn lose(&mut self, now: Time, sid: &str, reason: DisconnectReason) -> Option<Change> {
        let chosen = self.chosen.as_mut().filter(|chosen| chosen.sid == sid && chosen.away.is_none())?;
        let wait = match reason {
            DisconnectReason::RoomDeleted | DisconnectReason::RoomClosed | DisconnectReason::AgentError => {
                Duration::ZERO
            }
            _ if is_loss(reason) => RECONNECTS,
            _ => RETURNS,
        };
        chosen.away = Some(Away { since: now, until: now + wait, reason });
        Some(Change::Away)
    }

    /// Has the present agent stay the agent, until it leaves or turns out to be somebody who was there by chance.
    pub(super) fn choose(&mut self) {
        let agent = self.agent().map(|agent| (agent.sid.clone(), agent.identity.clone(), agent.is_agent));
        self.chosen =
            agent.map(|(sid, identity, is_agent)| Chosen { sid, identity, is_agent, has_spoken: false, away: None });
    }

    /// Takes the news that participants speak.
    pub(super) fn hear_speaking(&mut self, sids: &[&str]) {
        if let Some(chosen) = self.chosen.as_mut().filter(|chosen| sids.contains(&chosen.sid.as_str())) {
            chosen.has_spoken = true;
        }
    }

    /// Settles who is the agent by what is known at `now`. Returns what has changed.
    pub(super) fn settle(&mut self, now: Time) -> Option<Change> {
        self.dispatched.take_if(|(_, until)| until.is_some_and(|until| until <= now));
        let chosen = self.chosen.as_mut()?;
        let same = self.others.iter().find(|known| known.identity == chosen.identity);
        if let Some(same) = same.filter(|same| same.sid != chosen.sid || chosen.away.is_some()) {
            chosen.sid.clone_from(&same.sid);
            return Some(Change::Rejoined(chosen.away.take().map(|away| away.since)));
        }
        let is_passer_by = same.is_some() && !chosen.is_agent && !chosen.has_spoken;
        if same.is_none() || is_passer_by {
            // One that says nothing, as a transcriber, is not the other side of a call.
            if let Some(next) = self.others.iter().find(|known| known.is_agent && known.has_audio()) {
                let old = std::mem::replace(&mut chosen.identity, next.identity.clone());
                chosen.sid.clone_from(&next.sid);
                (chosen.is_agent, chosen.away) = (true, None);
                return Some(Change::Replaced(old));
            }
        }
        let over = chosen.away.take_if(|away| away.until <= now)?;
        Some(Change::Gone(over.reason))
    }

    /// Returns the time at which a leave is believed, or somebody else than the dispatched agent is taken.
    pub(super) fn next_timer(&self) -> Option<Time> {
        match (&self.chosen, &self.dispatched) {
            (Some(chosen), _) => chosen.away.map(|away| away.until),
            (None, Some((_, until))) => *until,
            (None, None) => None,
        }
    }

    /// True if there is a chosen agent, and it is not in the room.
    pub(super) fn is_away(&self) -> bool {
        self.chosen.as_ref().is_some_and(|chosen| chosen.away.is_some())
    }

    /// Returns the agent: the chosen one; else the one that was dispatched, one of kind agent, or the first
    /// participant, each with audio before one without. Where one was dispatched, nobody is taken for it who is not of
    /// that kind or has another name.
    pub(super) fn agent(&self) -> Option<&Participant> {
        if let Some(chosen) = &self.chosen {
            return self.others.iter().find(|known| known.sid == chosen.sid);
        }
        let of_kind = |known: &&Participant| known.is_agent;
        match &self.dispatched {
            Some((name, _)) => {
                let is_named =
                    |known: &&Participant| known.attributes.get(AGENT_NAME) == Some(name) || known.identity == *name;
                let may_be = |known: &&Participant| known.is_agent && !known.is_other_than(name);
                self.best(is_named).or_else(|| self.best(may_be))
            }
            None => self.best(of_kind).or_else(|| self.best(|_| true)),
        }
    }

    /// Returns the first participant like this with audio, else the first one.
    fn best(&self, is_wanted: impl Fn(&&Participant) -> bool) -> Option<&Participant> {
        let wanted = || self.others.iter().filter(&is_wanted);
        wanted().find(|known| known.has_audio()).or_else(|| wanted().next())
    }

    /// Returns how many participants there are besides the agent.
    pub(super) fn others_count(&self) -> usize {
        self.others.len() - usize::from(self.agent().is_some())
    }
}

/// True for the end of a participant whose connection broke off; all others have ended it themselves.
pub(super) fn is_loss(reason: DisconnectReason) -> bool {
    use DisconnectReason::{
        ConnectionTimeout, JoinFailure, MediaFailure, Migration, ServerShutdown, SignalClose, StateMismatch,
    };
    matches!(
        reason,
        ConnectionTimeout | JoinFailure | MediaFailure | Migration | ServerShutdown | SignalClose | StateMismatch
    )
}

#[cfg(test)]
mod tests;
