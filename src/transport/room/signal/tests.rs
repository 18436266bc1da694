//! The signalling without a server: messages in, requests and steps out.

use super::super::messages::{
    ParticipantState, ParticipantUpdate, Permission, Pong, RequestResponse, SpeakerInfo, SpeakersChanged,
    SubscriptionResponse,
};
use super::*;

fn at(seconds: u64) -> Time {
    Time(seconds * 1_000_000_000)
}

fn bytes(message: Response) -> Vec<u8> {
    SignalResponse { message: Some(message) }.encode_to_vec()
}

fn outputs(signalling: &mut Signalling, message: Response) -> Vec<SignalOutput> {
    signalling.receive(at(1), &bytes(message));
    std::iter::from_fn(|| signalling.poll()).collect()
}

fn track(sid: &str, muted: bool) -> TrackInfo {
    TrackInfo { sid: sid.into(), muted, ..TrackInfo::default() }
}

fn participant(sid: &str, tracks: &[TrackInfo]) -> ParticipantInfo {
    ParticipantInfo {
        sid: sid.into(),
        identity: sid.to_lowercase(),
        tracks: tracks.to_vec(),
        ..ParticipantInfo::default()
    }
}

fn update(participants: &[ParticipantInfo]) -> Response {
    Response::Update(ParticipantUpdate { participants: participants.to_vec() })
}

fn join(others: &[ParticipantInfo]) -> Response {
    Response::Join(JoinResponse {
        participant: Some(participant("ME", &[])),
        other_participants: others.to_vec(),
        ping_interval: 5,
        ping_timeout: 15,
        ..JoinResponse::default()
    })
}

fn after_join() -> Signalling {
    let mut signalling = Signalling::default();
    assert_eq!(outputs(&mut signalling, join(&[])), [SignalOutput::Joined(vec![])]);
    signalling
}

fn subscription_to(participant: &str, track: &str, subscribe: bool) -> SignalOutput {
    let tracks = ParticipantTracks { participant_sid: participant.into(), track_sids: vec![track.into()] };
    let update = UpdateSubscription { track_sids: vec![track.into()], subscribe, participant_tracks: vec![tracks] };
    SignalOutput::Send(Request::Subscription(update))
}

fn hear(sid: &str, is_muted: bool) -> SignalOutput {
    SignalOutput::Hear(vec![HeardTrack { sid: sid.into(), is_muted }])
}

fn publishing() -> SignalOutput {
    SignalOutput::Event(RoomEvent::AgentPublished)
}

fn came(identity: &str) -> SignalOutput {
    SignalOutput::Event(RoomEvent::AgentJoined(identity.into()))
}

#[test]
fn the_agents_track_is_followed() {
    let mut signalling = after_join();
    let agent = |tracks: &[TrackInfo]| update(&[participant("A", tracks)]);
    assert_eq!(outputs(&mut signalling, agent(&[])), [came("a")]);
    // Late.
    assert_eq!(
        outputs(&mut signalling, agent(&[track("T1", false)])),
        [subscription_to("A", "T1", true), publishing(), hear("T1", false)]
    );
    // Muted and back.
    assert_eq!(outputs(&mut signalling, agent(&[track("T1", true)])), [hear("T1", true)]);
    assert_eq!(outputs(&mut signalling, agent(&[track("T1", false)])), [hear("T1", false)]);
    // Published anew.
    assert_eq!(outputs(&mut signalling, agent(&[])), [subscription_to("A", "T1", false), SignalOutput::Hear(vec![])]);
    assert_eq!(
        outputs(&mut signalling, agent(&[track("T2", false)])),
        [subscription_to("A", "T2", true), publishing(), hear("T2", false)]
    );
    assert_eq!(outputs(&mut signalling, agent(&[track("T2", false)])), []);
    // News of this side are none.
    assert_eq!(outputs(&mut signalling, update(&[participant("ME", &[track("T9", false)])])), []);
    // Somebody who is an agent takes its place, as long as no call is up.
    let better = ParticipantInfo { kind: 4, ..participant("B", &[track("T3", false)]) };
    assert_eq!(
        outputs(&mut signalling, update(&[better])),
        [
            came("b"),
            subscription_to("A", "T2", false),
            subscription_to("B", "T3", true),
            publishing(),
            hear("T3", false)
        ]
    );
    assert_eq!(signalling.heard_tracks(), [HeardTrack { sid: "T3".into(), is_muted: false }]);
}

#[test]
fn the_agents_state_is_told_once() {
    let mut signalling = after_join();
    let agent = |state: &str| {
        let attributes = [("lk.agent.state".to_owned(), state.to_owned())].into();
        update(&[ParticipantInfo { attributes, ..participant("A", &[]) }])
    };
    let state = |state: &str| SignalOutput::Event(RoomEvent::AgentState(state.into()));
    assert_eq!(outputs(&mut signalling, agent("listening")), [came("a"), state("listening")]);
    assert_eq!(outputs(&mut signalling, agent("listening")), []);
    assert_eq!(outputs(&mut signalling, agent("speaking")), [state("speaking")]);
    assert_eq!(outputs(&mut signalling, agent(&"x".repeat(1000))), [state(&"x".repeat(200))]);
}

#[test]
fn ends_are_told_apart() {
    let left = |reason: DisconnectReason, action: LeaveAction| {
        Response::Leave(LeaveRequest { reason: reason as i32, action: action as i32, can_reconnect: false })
    };
    let check = |message: Response, expect: SignalEnd| {
        assert_eq!(outputs(&mut after_join(), message), [SignalOutput::End(expect)]);
    };
    use {DisconnectReason as Why, LeaveAction as Action};
    for reason in 0..=16 {
        let reason = DisconnectReason::try_from(reason).expect("it is known");
        for action in [Action::Disconnect, Action::Resume, Action::Reconnect] {
            check(left(reason, action), SignalEnd::Left(reason, action));
        }
    }
    let later = LeaveRequest { reason: 99, action: 77, can_reconnect: false };
    check(Response::Leave(later.clone()), SignalEnd::Left(Why::Unknown, Action::Disconnect));
    let older = LeaveRequest { reason: 0, action: 0, can_reconnect: true };
    check(Response::Leave(older), SignalEnd::Left(Why::Unknown, Action::Reconnect));
}

/// Returns the outputs of the signalling at a time at which something is due.
fn due(signalling: &mut Signalling, now: Time) -> Vec<SignalOutput> {
    assert_eq!(signalling.tick(now), None);
    std::iter::from_fn(|| signalling.poll()).filter(|output| !matches!(output, SignalOutput::Send(_))).collect()
}

fn leave_of(sid: &str, reason: DisconnectReason) -> Response {
    let state = ParticipantState::Disconnected as i32;
    update(&[ParticipantInfo { state, disconnect_reason: reason as i32, ..participant(sid, &[]) }])
}

/// Returns the signalling of a call that is up with `A`, whose track is heard.
fn up() -> Signalling {
    let mut signalling = after_join();
    outputs(&mut signalling, update(&[participant("A", &[track("T1", false)])]));
    signalling.choose_agent();
    signalling
}

#[test]
fn a_leave_of_the_agent_is_an_end_in_its_time() {
    use DisconnectReason::{AgentError, ClientInitiated, ConnectionTimeout};
    let away = SignalOutput::Event(RoomEvent::AgentAway);
    let lost = SignalEnd::AgentLost(ConnectionTimeout);
    for (reason, wait_s, expect) in [
        (ClientInitiated, 3, SignalEnd::AgentLeft),
        (ConnectionTimeout, 10, lost),
        (AgentError, 0, SignalEnd::AgentFailed),
    ] {
        let mut signalling = up();
        let came = outputs(&mut signalling, leave_of("A", reason));
        assert_eq!(came[0], away);
        let ends = |came: &[SignalOutput]| came.contains(&SignalOutput::End(expect.clone()));
        assert_eq!(ends(&came), wait_s == 0);
        if wait_s > 0 {
            assert!(signalling.next_timer().is_some_and(|next| next <= at(1 + wait_s)));
            assert_eq!(due(&mut signalling, at(wait_s)), []);
            assert!(ends(&due(&mut signalling, at(1 + wait_s))));
        }
        assert!(!ends(&due(&mut signalling, at(12))), "it is told once");
    }
    // Before the call is up another agent may come.
    let mut signalling = after_join();
    outputs(&mut signalling, update(&[participant("A", &[])]));
    assert_eq!(outputs(&mut signalling, leave_of("A", ClientInitiated)), []);
    assert_eq!(due(&mut signalling, at(14)), []);
}

#[test]
fn an_agent_that_is_back_is_heard_again() {
    // Without a leave, and behind one.
    for left in [None, Some(at(1))] {
        let mut signalling = up();
        if left.is_some() {
            outputs(&mut signalling, leave_of("A", DisconnectReason::ClientInitiated));
        }
        let back = ParticipantInfo { sid: "A2".into(), ..participant("A", &[track("T2", false)]) };
        let came = outputs(&mut signalling, update(&[back]));
        assert_eq!(came[0], SignalOutput::Event(RoomEvent::AgentRejoined("a".into(), left)));
        assert!(came.contains(&subscription_to("A2", "T2", true)), "{came:?}");
        assert_eq!(came.last(), Some(&hear("T2", false)));
        assert_eq!(due(&mut signalling, at(14)), []);
    }
    // A room that was joined anew, in which another agent is.
    let mut signalling = up().anew();
    let other = ParticipantInfo { kind: 4, ..participant("B", &[track("T3", false)]) };
    let produced = outputs(&mut signalling, join(&[other]));
    let changed = SignalOutput::Event(RoomEvent::AgentChanged("a".into(), "b".into()));
    assert!(produced.contains(&changed) && produced.contains(&hear("T3", false)), "{produced:?}");
    assert!(!produced.contains(&came("b")), "it is told once: {produced:?}");
}

#[test]
fn a_person_who_was_there_by_chance_is_replaced_until_it_has_spoken() {
    let agent = || update(&[ParticipantInfo { kind: 4, ..participant("B", &[track("T3", false)]) }]);
    let changed = SignalOutput::Event(RoomEvent::AgentChanged("a".into(), "b".into()));
    let mut signalling = up();
    assert!(outputs(&mut signalling, agent()).contains(&changed));
    let mut signalling = up();
    let speaker = SpeakerInfo { sid: "A".into(), active: true };
    outputs(&mut signalling, Response::SpeakersChanged(SpeakersChanged { speakers: vec![speaker] }));
    assert_eq!(outputs(&mut signalling, agent()), []);
}

#[test]
fn several_tracks_of_the_agent_are_heard_and_others_are_not() {
    let mut signalling = after_join();
    let of = |sid: &str, source: TrackSource| TrackInfo { source: source as i32, ..track(sid, false) };
    let (music, voice) = (of("T1", TrackSource::Unknown), of("T2", TrackSource::Microphone));
    outputs(&mut signalling, update(&[participant("A", std::slice::from_ref(&music))]));
    let came = outputs(&mut signalling, update(&[participant("A", &[music.clone(), voice.clone()])]));
    let switched =
        [subscription_to("A", "T1", false), subscription_to("A", "T2", true), publishing(), hear("T2", false)];
    assert_eq!(came, switched);
    let second = of("T3", TrackSource::Microphone);
    let produced = outputs(&mut signalling, update(&[participant("A", &[music, voice, second])]));
    let both = ["T2", "T3"].map(|sid| HeardTrack { sid: sid.into(), is_muted: false }).to_vec();
    assert_eq!(produced, [subscription_to("A", "T3", true), SignalOutput::Hear(both)]);
}

#[test]
fn rights_of_the_token_are_looked_at() {
    let check = |can_publish, can_subscribe, expect: Option<&'static str>| {
        let permission = Some(Permission { can_subscribe, can_publish, can_publish_data: false });
        let participant = Some(ParticipantInfo { permission, ..participant("ME", &[]) });
        let came = outputs(
            &mut Signalling::default(),
            Response::Join(JoinResponse { participant, ..JoinResponse::default() }),
        );
        let expect =
            expect.map_or(SignalOutput::Joined(vec![]), |right| SignalOutput::End(SignalEnd::NotPermitted(right)));
        assert_eq!(came, [expect]);
    };
    check(true, true, None);
    check(false, true, Some("to publish audio"));
    check(true, false, Some("to hear the agent"));
}

#[test]
fn signs_of_life_are_given_and_missed() {
    let mut signalling = after_join();
    assert_eq!((signalling.next_timer(), signalling.tick(at(5))), (Some(at(6)), None));
    assert_eq!(signalling.poll(), None);
    assert_eq!(signalling.tick(at(6)), None);
    let sent: Vec<SignalOutput> = std::iter::from_fn(|| signalling.poll()).collect();
    let ping = Ping { timestamp: 6000, rtt: 0 };
    assert_eq!(sent, [SignalOutput::Send(Request::PingTime(6000)), SignalOutput::Send(Request::Ping(ping))]);
    let pong = Pong { last_ping_timestamp: 6000, timestamp: 0 };
    signalling.receive(Time(6_250_000_000), &bytes(Response::Pong(pong)));
    assert_eq!((signalling.tick(at(11)), signalling.round_trip_ms), (None, 250));
    assert_eq!(signalling.tick(at(22)).as_deref(), Some("no message came within 15 s"));
    assert_eq!(Signalling::default().next_timer(), None);
}

#[test]
fn what_is_not_known_is_passed_over() {
    let mut signalling = after_join();
    // A message and a field of a later version.
    let later: &[&[u8]] = &[&[0xc2, 0x3e, 2, 8, 1], &[0x2a, 3, 0xf8, 0x7f, 1], &[]];
    for message in later {
        signalling.receive(at(2), message);
        assert_eq!((signalling.poll(), signalling.malformed_count()), (None, 0), "{message:?}");
    }
    let broken: &[&[u8]] = &[&[0xff; 20], &[0x0a, 0x7f, 1], &[0x0a, 2, 0x12, 0x55]];
    for message in broken {
        signalling.receive(at(2), message);
    }
    assert_eq!((signalling.poll(), signalling.malformed_count()), (None, 3));
    // Every cut of a good message.
    let whole = bytes(join(&[participant("A", &[track("T", false)])]));
    for len in 0..whole.len() {
        Signalling::default().receive(at(2), &whole[..len]);
    }
}

#[test]
fn tokens_are_kept_and_refusals_told() {
    let mut signalling = after_join();
    assert_eq!(outputs(&mut signalling, Response::RefreshToken("newer".into())), []);
    assert_eq!(signalling.anew().token().map(Secret::expose), Some("newer"));
    let warned = |message: Response| match &outputs(&mut after_join(), message)[..] {
        [SignalOutput::Warning(text)] => text.clone(),
        other => panic!("{other:?}"),
    };
    let refused = RequestResponse { request_id: 1, reason: 2, message: "not\nallowed".into() };
    assert_eq!(warned(Response::RequestResponse(refused)), "the server refused a request (reason 2): not allowed");
    let unheard = SubscriptionResponse { track_sid: "T".into(), err: 1 };
    assert_eq!(
        warned(Response::SubscriptionResponse(unheard)),
        "a track could not be subscribed: its codec is not supported"
    );
}

#[test]
fn candidates_are_read_and_written() {
    let candidate =
        Candidate { line: "candidate:1 1 udp 1 192.0.2.1 9 typ host".into(), mid: Some("0".into()), section: Some(0) };
    let Request::Trickle(sent) = trickle(SignalTarget::Subscriber, &candidate) else { panic!("it is a candidate") };
    let expect = SignalOutput::Candidate(SignalTarget::Subscriber, candidate);
    assert_eq!(outputs(&mut after_join(), Response::Trickle(sent)), [expect]);
    for init in ["", "{}", "[]", r#"{"candidate":""}"#, r#"{"candidate":7}"#] {
        let trickle = TrickleRequest { candidate_init: init.into(), ..TrickleRequest::default() };
        assert_eq!(outputs(&mut after_join(), Response::Trickle(trickle)), [], "{init}");
    }
}
