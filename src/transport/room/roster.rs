//! The participants of a room, and the agent among them with the track that is heard.

use std::collections::HashMap;

use super::messages::{AGENT_KIND, ParticipantInfo, ParticipantState, TrackInfo, TrackType};

/// Participants that are known at once; further ones are passed over.
const MAX_PARTICIPANTS: usize = 100;

/// Tracks of a participant that are looked at.
const MAX_TRACKS: usize = 32;

/// Kinds of participants that are no side of a call: recorders and the like.
const BYSTANDERS: [i32; 2] = [1, 2];

/// A participant other than this side.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Participant {
    pub sid: String,
    pub identity: String,
    is_agent: bool,
    version: u32,
    pub attributes: HashMap<String, String>,
    /// Audio tracks in the order in which they were told.
    pub audio: Vec<TrackInfo>,
}

impl Participant {
    fn of(told: ParticipantInfo) -> Participant {
        let is_audio = |track: &TrackInfo| track.kind() == TrackType::Audio && !track.sid.is_empty();
        Participant {
            is_agent: told.kind == AGENT_KIND,
            audio: told.tracks.into_iter().filter(is_audio).take(MAX_TRACKS).collect(),
            sid: told.sid,
            identity: told.identity,
            version: told.version,
            attributes: told.attributes,
        }
    }
}

/// The participants, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Roster {
    others: Vec<Participant>,
    /// Name of the participant that is the agent for good: the call is up with it.
    chosen: Option<String>,
}

impl Roster {
    /// Takes news of a participant. Returns the one that has left by them.
    pub fn take(&mut self, told: ParticipantInfo) -> Option<Participant> {
        let at = self.others.iter().position(|known| known.sid == told.sid);
        if told.state() == ParticipantState::Disconnected {
            return at.map(|at| self.others.remove(at));
        }
        if BYSTANDERS.contains(&told.kind) || told.sid.is_empty() {
            return None;
        }
        match at {
            // Updates may overtake each other.
            Some(at) if told.version >= self.others[at].version => self.others[at] = Participant::of(told),
            None if self.others.len() < MAX_PARTICIPANTS => self.others.push(Participant::of(told)),
            _ => {}
        }
        None
    }

    /// Forgets everybody whom a new list does not have. Returns those who left.
    pub fn keep_only(&mut self, sids: &[&str]) -> Vec<Participant> {
        let gone = |known: &mut Participant| !sids.contains(&known.sid.as_str());
        self.others.extract_if(.., gone).collect()
    }

    /// Has the present agent stay the agent, whoever else comes.
    pub fn choose(&mut self) {
        self.chosen = self.agent().map(|agent| agent.sid.clone());
    }

    /// True when there was a chosen agent, and it is gone.
    pub fn has_lost_chosen(&self) -> bool {
        self.chosen.is_some() && self.agent().is_none()
    }

    /// Returns the agent: the chosen one, else one of kind agent, with audio before one without, else the first other participant.
    pub fn agent(&self) -> Option<&Participant> {
        if let Some(sid) = &self.chosen {
            return self.others.iter().find(|known| known.sid == *sid);
        }
        let agents = || self.others.iter().filter(|known| known.is_agent);
        agents().find(|agent| !agent.audio.is_empty()).or_else(|| agents().next()).or(self.others.first())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn participant(sid: &str, kind: i32, tracks: &[(&str, TrackType)]) -> ParticipantInfo {
        let track = |(sid, kind): &(&str, TrackType)| TrackInfo {
            sid: (*sid).to_owned(),
            kind: *kind as i32,
            ..TrackInfo::default()
        };
        ParticipantInfo {
            sid: sid.to_owned(),
            identity: sid.to_lowercase(),
            kind,
            tracks: tracks.iter().map(track).collect(),
            ..ParticipantInfo::default()
        }
    }

    use TrackType::{Audio, Video};

    fn track(roster: &Roster) -> Option<&str> {
        roster.agent()?.audio.first().map(|track| track.sid.as_str())
    }

    #[test]
    fn the_agent_is_told_from_others() {
        let check = |told: &[ParticipantInfo], expect: (Option<&str>, Option<&str>)| {
            let mut roster = Roster::default();
            for told in told {
                assert_eq!(roster.take(told.clone()), None);
            }
            let agent = roster.agent().map(|agent| agent.sid.as_str());
            assert_eq!((agent, track(&roster)), expect);
        };
        check(&[], (None, None));
        check(&[participant("A", 0, &[])], (Some("A"), None));
        check(&[participant("A", 0, &[("v", Video), ("a", Audio), ("b", Audio)])], (Some("A"), Some("a")));
        check(&[participant("A", 0, &[("a", Audio)]), participant("B", 4, &[])], (Some("B"), None));
        check(&[participant("B", 4, &[]), participant("C", 4, &[("c", Audio)])], (Some("C"), Some("c")));
        // Recorders are no side of a call.
        check(&[participant("E", 2, &[("e", Audio)])], (None, None));
        check(&[participant("", 4, &[("e", Audio)])], (None, None));
    }

    #[test]
    fn updates_replace_and_the_chosen_stays() {
        let mut roster = Roster::default();
        roster.take(participant("A", 0, &[("a", Audio)]));
        roster.choose();
        roster.take(participant("B", 4, &[("b", Audio)]));
        assert_eq!(roster.agent().map(|agent| agent.sid.as_str()), Some("A"));
        let newer = ParticipantInfo { version: 3, ..participant("A", 0, &[("c", Audio)]) };
        roster.take(newer);
        roster.take(ParticipantInfo { version: 2, ..participant("A", 0, &[]) });
        assert_eq!(track(&roster), Some("c"));
        let left = ParticipantInfo { state: ParticipantState::Disconnected as i32, ..participant("A", 0, &[]) };
        assert_eq!(roster.take(left).map(|left| left.sid), Some("A".to_owned()));
        assert_eq!((roster.agent(), roster.has_lost_chosen()), (None, true));
        assert_eq!(roster.keep_only(&["C"]).len(), 1);
    }

    #[test]
    fn a_crowd_is_bounded() {
        let mut roster = Roster::default();
        for n in 0..1000 {
            roster.take(participant(&n.to_string(), 0, &[("t", Audio); 200]));
        }
        assert_eq!((roster.others.len(), roster.others[0].audio.len()), (MAX_PARTICIPANTS, MAX_TRACKS));
    }
}
