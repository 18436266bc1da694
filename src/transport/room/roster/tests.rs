//! The agent among the participants of a room, and how long it stays the agent.

use TrackType::{Audio, Video};

use super::*;

fn at(ms: u64) -> Time {
    Time(ms * 1_000_000)
}

fn participant(sid: &str, kind: i32, tracks: &[(&str, TrackType)]) -> ParticipantInfo {
    let track = |(sid, kind): &(&str, TrackType)| TrackInfo {
        sid: (*sid).to_owned(),
        kind: *kind as i32,
        ..TrackInfo::default()
    };
    ParticipantInfo {
        sid: sid.to_owned(),
        identity: sid[..sid.len().min(1)].to_lowercase(),
        kind,
        tracks: tracks.iter().map(track).collect(),
        ..ParticipantInfo::default()
    }
}

/// Returns a participant of kind agent with a track, under the name of its worker.
fn worker(sid: &str, name: &str) -> ParticipantInfo {
    ParticipantInfo {
        attributes: [(AGENT_NAME.to_owned(), name.to_owned())].into(),
        ..participant(sid, AGENT_KIND, &[("t", Audio)])
    }
}

fn leave_of(sid: &str, reason: DisconnectReason) -> ParticipantInfo {
    ParticipantInfo {
        state: ParticipantState::Disconnected as i32,
        disconnect_reason: reason as i32,
        ..participant(sid, 0, &[])
    }
}

fn sid(roster: &Roster) -> Option<&str> {
    roster.agent().map(|agent| agent.sid.as_str())
}

fn voices(roster: &Roster) -> Vec<&str> {
    roster.agent().into_iter().flat_map(Participant::voices).map(|track| track.sid.as_str()).collect()
}

/// Returns a room of these participants, the call being up with the agent among them.
fn up(infos: &[ParticipantInfo]) -> Roster {
    let mut roster = Roster::default();
    infos.iter().for_each(|info| assert_eq!(roster.take(at(0), info.clone()), None));
    roster.choose();
    assert_eq!(roster.settle(at(0)), None);
    roster
}

#[test]
fn the_agent_is_told_from_others() {
    let check = |infos: &[ParticipantInfo], expect: (Option<&str>, &[&str])| {
        let mut roster = Roster::default();
        infos.iter().for_each(|info| assert_eq!(roster.take(at(0), info.clone()), None));
        assert_eq!((sid(&roster), &voices(&roster)[..]), expect);
    };
    check(&[], (None, &[]));
    check(&[participant("A", 0, &[])], (Some("A"), &[]));
    check(&[participant("A", 0, &[("v", Video), ("a", Audio), ("b", Audio)])], (Some("A"), &["a", "b"]));
    check(&[participant("A", 0, &[]), participant("B", 0, &[("b", Audio)])], (Some("B"), &["b"]));
    check(&[participant("A", 0, &[("a", Audio)]), participant("B", 4, &[])], (Some("B"), &[]));
    check(&[participant("B", 4, &[]), participant("C", 4, &[("c", Audio)])], (Some("C"), &["c"]));
    // Recorders are no side of a call.
    check(&[participant("E", 2, &[("e", Audio)])], (None, &[]));
    check(&[participant("", 4, &[("e", Audio)])], (None, &[]));
}

#[test]
fn microphones_are_the_voice_before_other_tracks() {
    let mut agent = participant("A", 4, &[("music", Audio), ("voice", Audio), ("screen", Audio), ("more", Audio)]);
    for (track, source) in agent.tracks.iter_mut().zip([
        TrackSource::Unknown,
        TrackSource::Microphone,
        TrackSource::ScreenShareAudio,
        TrackSource::Microphone,
    ]) {
        track.source = source as i32;
    }
    let mut roster = up(&[agent.clone()]);
    assert_eq!(voices(&roster), ["voice", "more"]);
    agent.tracks.retain(|track| track.source() != TrackSource::Microphone);
    roster.take(at(1), agent.clone());
    assert_eq!(voices(&roster), ["music"], "what has no source may be a voice");
    agent.tracks.remove(0);
    roster.take(at(2), agent);
    assert_eq!(voices(&roster), ["screen"]);
}

#[test]
fn nobody_else_is_taken_for_an_agent_that_was_dispatched() {
    let mut roster = Roster::default();
    roster.expect("clinic".to_owned());
    roster.begin(at(1000));
    for info in [participant("P", 0, &[("p", Audio)]), worker("Q", "pharmacy")] {
        roster.take(at(1000), info);
    }
    assert_eq!((sid(&roster), roster.others_count()), (None, 2));
    assert_eq!(roster.next_timer(), Some(at(31_000)));
    // A worker that tells no name may be the one; one of that name is.
    roster.take(at(2000), participant("R", 4, &[("r", Audio)]));
    assert_eq!(sid(&roster), Some("R"));
    roster.take(at(3000), worker("S", "clinic"));
    assert_eq!(sid(&roster), Some("S"));
    let mut alone = Roster::default();
    alone.expect("clinic".to_owned());
    alone.begin(at(1000));
    alone.begin(at(9000));
    alone.take(at(1000), participant("P", 0, &[("p", Audio)]));
    alone.settle(at(30_999));
    assert_eq!(sid(&alone), None);
    alone.settle(at(31_000));
    assert_eq!((sid(&alone), alone.next_timer()), (Some("P"), None));
}

#[test]
fn updates_replace_and_the_chosen_stays() {
    let mut roster = up(&[participant("A", 4, &[("a", Audio)])]);
    roster.take(at(1), participant("B", 4, &[("b", Audio)]));
    assert_eq!((roster.settle(at(1)), sid(&roster)), (None, Some("A")));
    let newer = ParticipantInfo { version: 3, ..participant("A", 4, &[("c", Audio)]) };
    roster.take(at(2), newer);
    roster.take(at(3), ParticipantInfo { version: 2, ..participant("A", 4, &[]) });
    assert_eq!(voices(&roster), ["c"]);
}

#[test]
fn an_agent_that_comes_replaces_a_person_who_has_not_spoken() {
    for has_spoken in [false, true] {
        let mut roster = up(&[participant("P", 0, &[("p", Audio)])]);
        roster.hear_speaking(&["X"]);
        if has_spoken {
            roster.hear_speaking(&["X", "P"]);
        }
        roster.take(at(1), participant("B", 4, &[]));
        assert_eq!(roster.settle(at(1)), None, "nothing of it can be heard yet");
        roster.take(at(1), participant("B", 4, &[("b", Audio)]));
        let expect = if has_spoken { (None, Some("P")) } else { (Some(Change::Replaced("p".into())), Some("B")) };
        assert_eq!((roster.settle(at(1)), sid(&roster)), expect);
        assert_eq!(roster.settle(at(2)), None);
    }
}

#[test]
fn the_same_identity_is_the_same_agent() {
    // Without a leave: the server tells of the new one alone.
    let mut roster = up(&[participant("A1", 4, &[("a", Audio)])]);
    assert_eq!(roster.take(at(3000), participant("A2", 4, &[("b", Audio)])), None);
    assert_eq!((roster.settle(at(3000)), voices(&roster)), (Some(Change::Rejoined(None)), vec!["b"]));
    assert_eq!(roster.take(at(3100), leave_of("A1", DisconnectReason::DuplicateIdentity)), None, "the old one is over");
    // News of the old one that come late.
    let old = ParticipantInfo { joined_at_ms: 1, ..participant("A3", 4, &[]) };
    let new = ParticipantInfo { joined_at_ms: 2, ..participant("A4", 4, &[("c", Audio)]) };
    roster.take(at(4000), new);
    roster.take(at(4001), old);
    assert_eq!((roster.settle(at(4001)), voices(&roster)), (Some(Change::Rejoined(None)), vec!["c"]));
    // A client that connects anew leaves first.
    assert_eq!(roster.take(at(5000), leave_of("A4", DisconnectReason::ClientInitiated)), Some(Change::Away));
    assert_eq!((roster.settle(at(5000)), sid(&roster), roster.is_away()), (None, None, true));
    roster.take(at(5120), ParticipantInfo { joined_at_ms: 3, ..participant("A5", 4, &[]) });
    assert_eq!((roster.settle(at(5120)), sid(&roster)), (Some(Change::Rejoined(Some(at(5000)))), Some("A5")));
    assert_eq!((roster.settle(at(99_000)), roster.next_timer()), (None, None), "nothing is believed any more");
}

#[test]
fn a_leave_is_believed_after_its_time() {
    use DisconnectReason::{
        AgentError, ClientInitiated, ConnectionTimeout, ParticipantRemoved, RoomDeleted, SignalClose, Unknown,
    };
    for (reason, wait_ms) in [
        (ClientInitiated, 3000),
        (Unknown, 3000),
        (ParticipantRemoved, 3000),
        (ConnectionTimeout, 10_000),
        (SignalClose, 10_000),
        (RoomDeleted, 0),
        (AgentError, 0),
    ] {
        let mut roster = up(&[participant("A", 4, &[("a", Audio)])]);
        assert_eq!(roster.take(at(1000), leave_of("A", reason)), Some(Change::Away));
        assert_eq!(roster.next_timer(), Some(at(1000 + wait_ms)));
        if wait_ms > 0 {
            assert_eq!(roster.settle(at(999 + wait_ms)), None, "{reason:?}");
        }
        assert_eq!(roster.settle(at(1000 + wait_ms)), Some(Change::Gone(reason)));
        assert_eq!(roster.settle(at(99_000)), None, "it is told once");
    }
    // The leave of somebody else is none.
    let mut roster = up(&[participant("A", 4, &[("a", Audio)]), participant("B", 0, &[])]);
    assert_eq!(roster.take(at(1000), leave_of("B", ClientInitiated)), None);
}

#[test]
fn another_agent_takes_over_from_one_that_has_left() {
    // It is there already, or comes in time.
    for comes_ms in [0, 2999] {
        let mut roster = up(&[participant("A", 4, &[("a", Audio)])]);
        if comes_ms == 0 {
            roster.take(at(0), participant("B", 4, &[("b", Audio)]));
        }
        roster.take(at(1000), leave_of("A", DisconnectReason::ClientInitiated));
        if comes_ms > 0 {
            roster.take(at(1500), participant("P", 0, &[("p", Audio)]));
            roster.take(at(1500), participant("C", 4, &[]));
            assert_eq!((roster.settle(at(1500)), sid(&roster)), (None, None), "neither speaks for the agent");
            roster.take(at(1000 + comes_ms), participant("B", 4, &[("b", Audio)]));
        }
        let now = at(1000 + comes_ms);
        assert_eq!((roster.settle(now), voices(&roster)), (Some(Change::Replaced("a".into())), vec!["b"]));
        assert!(!roster.is_away());
    }
}

#[test]
fn a_room_that_is_joined_anew_may_have_the_agent_again() {
    let mut roster = up(&[participant("A", 4, &[("a", Audio)]), participant("B", 0, &[])]);
    assert_eq!(roster.keep_only(at(1000), &["A"]), None);
    assert_eq!(roster.others_count(), 0);
    assert_eq!(roster.keep_only(at(2000), &[]), Some(Change::Away));
    assert_eq!(roster.next_timer(), Some(at(12_000)), "it may be joining anew, too");
    roster.take(at(3000), participant("A9", 4, &[]));
    assert_eq!(roster.settle(at(3000)), Some(Change::Rejoined(Some(at(2000)))));
}

#[test]
fn an_agent_that_is_told_of_again_has_not_left() {
    let mut roster = up(&[participant("A", 4, &[("a", Audio)])]);
    assert_eq!(roster.take(at(1000), leave_of("A", DisconnectReason::Migration)), Some(Change::Away));
    roster.take(at(2000), participant("A", 4, &[("a", Audio)]));
    assert_eq!(roster.settle(at(2000)), Some(Change::Rejoined(Some(at(1000)))));
    assert!(!roster.is_away());
    // A leave from before this side's own connection was lost is not believed before the server has told who is there.
    assert_eq!(roster.take(at(3000), leave_of("A", DisconnectReason::ClientInitiated)), Some(Change::Away));
    roster.postpone(at(7000));
    assert_eq!((roster.settle(at(9999)), roster.next_timer()), (None, Some(at(10_000))));
    assert_eq!(roster.settle(at(10_000)), Some(Change::Gone(DisconnectReason::ClientInitiated)));
}

#[test]
fn a_crowd_is_bounded() {
    let mut roster = Roster::default();
    for n in 0..1000 {
        let participant_info =
            ParticipantInfo { identity: n.to_string(), ..participant(&n.to_string(), 0, &[("t", Audio); 200]) };
        roster.take(at(0), participant_info);
    }
    assert_eq!((roster.others.len(), roster.others[0].audio.len()), (MAX_PARTICIPANTS, MAX_TRACKS));
    assert_eq!(voices(&roster).len(), MAX_HEARD);
}
