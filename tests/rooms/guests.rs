//! A Digital Human's side of a room against official clients as the agent, and against servers that mean harm.

use std::net::IpAddr;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ringer::config::Secret;
use ringer::provider::guard::Guard;
use ringer::transport::fault::FaultKind;
use ringer::transport::news::NewsSender;
use ringer::transport::room::data::{DataEvent, ToolCall};
use ringer::transport::room::messages::{DisconnectReason, LeaveAction, Permission, Request, Response, TrackSource};
use ringer::transport::room::signal::{Flow, RoomEvent};
use ringer::transport::room::{Joined, Order, Patience, Reason, RoomCall, RoomEnd, RoomNews, RoomTarget};
use ringer::transport::sip::tls::TlsSettings;
use ringer::transport::webrtc::{PeerFault, PeerSettings};
use ringer::transport::websocket::dial::Dialer;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::official::official;
use super::phone::{PATIENCE, Phone, loopback};
use super::server::{Behaviour, RoomServer, token, token_for};
use crate::peers::python::PythonServer;

/// Identity of the Digital Human.
const OWN: &str = "dh-42";

/// Tone that the agent sends, and the one that it listens for.
const THEIRS_HZ: f64 = 880.0;
const OURS_HZ: f64 = 500.0;

/// Patience of a busy machine.
fn patient() -> Patience {
    Patience { join: PATIENCE, agent: PATIENCE, reconnect: Duration::from_secs(10) }
}

fn target(url: &str) -> RoomTarget {
    target_in("room", url)
}

/// Returns the way into the room of this name.
pub(super) fn target_in(room: &str, url: &str) -> RoomTarget {
    let token = Secret::new(token_for(room, OWN, Duration::from_secs(600)));
    RoomTarget { server_url: url.to_owned(), token, tool_topic: Some("tools".to_owned()), agent_name: None }
}

/// Returns the way into the room for a participant of this identity.
pub(super) fn target_as(identity: &str, url: &str) -> RoomTarget {
    let token = Secret::new(token(identity, Duration::from_secs(600)));
    RoomTarget { server_url: url.to_owned(), token, tool_topic: None, agent_name: None }
}

/// A call that runs in a task of its own, its news and its phone.
pub(super) struct Guest {
    phone: Phone,
    pub joined: Joined,
    pub orders: mpsc::Sender<Order>,
    news: mpsc::Receiver<RoomNews>,
    end: tokio::task::JoinHandle<RoomEnd>,
}

/// A call that is up, and both ends of its queues.
struct Opened {
    call: RoomCall,
    orders: mpsc::Sender<Order>,
    to_do: mpsc::Receiver<Order>,
    tell: NewsSender<RoomNews>,
    news: mpsc::Receiver<RoomNews>,
}

/// Joins with these, and waits for the agent.
async fn open(target: RoomTarget, patience: Patience) -> Result<Opened, RoomEnd> {
    open_with(target, loopback(), patience).await
}

async fn open_with(target: RoomTarget, settings: PeerSettings, patience: Patience) -> Result<Opened, RoomEnd> {
    let (orders, mut to_do) = mpsc::channel(8);
    let (tell, news) = NewsSender::new(256);
    let dialer = Dialer::new(&TlsSettings::default());
    let call = timeout(PATIENCE, RoomCall::open(target, settings, dialer, patience, &mut to_do, &tell));
    let call = call.await.expect("in time")?;
    Ok(Opened { call, orders, to_do, tell, news })
}

impl Guest {
    pub(super) async fn join(server: &RoomServer) -> Guest {
        Guest::join_at(target(&server.url)).await
    }

    pub(super) async fn join_at(target: RoomTarget) -> Guest {
        let opened = open(target, patient()).await;
        let Opened { mut call, orders, mut to_do, tell, news } = opened.unwrap_or_else(|end| panic!("{end:?}"));
        let joined = call.facts();
        let (phone, mut pump) = Phone::new(call.media().expect("it was settled"), 7, OURS_HZ);
        #[expect(clippy::disallowed_methods, reason = "its end is waited for")]
        let end = tokio::spawn(async move { call.run(&mut pump, &mut to_do, &tell).await });
        Guest { phone, joined, orders, news, end }
    }

    /// Waits for a piece of news, ticking the phone meanwhile. Returns all news up to it.
    pub(super) async fn until(&mut self, wanted: impl Fn(&RoomNews) -> bool) -> Vec<RoomNews> {
        let mut all = Vec::new();
        let waited = timeout(PATIENCE, async {
            loop {
                tokio::select! {
                    () = self.phone.talk() => {}
                    news = self.news.recv() => {
                        let Some(news) = news else { return };
                        all.push(news);
                        if wanted(all.last().expect("it was pushed")) {
                            return;
                        }
                    }
                }
            }
        })
        .await;
        assert!(waited.is_ok() && all.last().is_some_and(&wanted), "{all:?}");
        all
    }

    /// Waits for something else, ticking the phone meanwhile.
    pub(super) async fn during<T>(&mut self, other: impl Future<Output = T>) -> T {
        tokio::select! {
            () = self.phone.talk() => unreachable!("it talks forever"),
            done = other => done,
        }
    }

    /// Waits until the agent is heard from now on.
    pub(super) async fn hears(&mut self) {
        self.phone.heard.clear();
        assert!(self.phone.hear(THEIRS_HZ).await, "{:?}", self.phone.figures());
    }

    pub(super) async fn wait_ended(self) -> RoomEnd {
        let Guest { mut phone, end, mut news, orders: _orders, .. } = self;
        let ended = tokio::select! {
            () = phone.talk() => unreachable!("it talks forever"),
            end = timeout(PATIENCE, end) => end,
        };
        let news_so_far: Vec<RoomNews> = std::iter::from_fn(|| news.try_recv().ok()).collect();
        ended.unwrap_or_else(|_| panic!("it goes on: {news_so_far:?}")).expect("no panic")
    }
}

fn is_data(news: &RoomNews, wanted: &DataEvent) -> bool {
    matches!(news, RoomNews::Data(_, event) if event == wanted)
}

fn hears_us(seen: &Value) -> bool {
    seen["share"].as_f64() > Some(0.8)
}

/// Speech, tools, words, keys and states cross between this side and an official agent.
async fn meet(behaviour: Behaviour, flow: Flow) {
    let server = RoomServer::with(behaviour).await;
    let agent = official(&server, "agent-1", &[]).await;
    let guest = Guest::join(&server).await;
    assert_eq!(guest.joined.flow, flow);
    // One microphone track, without DTX and without redundancy.
    server
        .wait_asked(OWN, |asked| {
            matches!(asked, Request::AddTrack(add)
                if add.source == TrackSource::Microphone as i32 && add.disable_dtx && add.disable_red)
        })
        .await;
    talk_to(agent, guest).await;
}

/// Has everything cross between this side and an official agent of the identity `agent-1`, up to its leave.
pub(super) async fn talk_to(agent: PythonServer, mut guest: Guest) {
    assert_eq!(guest.joined.agent.as_deref(), Some("agent-1"));
    guest.hears().await;
    let seen = guest.during(agent.sees(hears_us)).await;
    assert!(seen["frames"].as_u64() > Some(50), "{seen}");
    let figures = guest.phone.figures();
    assert_eq!((figures.lost, figures.unknown_payload_type, figures.foreign), (0, 0, 0), "{figures:?}");

    let call = json!({ "name": "book", "parameters": { "n": 2 }, "output": "ok", "start_offset_ms": 1500 });
    agent.tell("/data", json!({ "text": "no JSON", "topic": "tools" })).await;
    agent.tell("/data", json!({ "text": call.to_string(), "topic": "other" })).await;
    agent.tell("/data", json!({ "text": call.to_string(), "topic": "tools" })).await;
    let call = ToolCall { name: "book".into(), parameters: json!({ "n": 2 }), output: json!("ok"), at_ms: Some(1500) };
    let call = DataEvent::Tool(call);
    let news = guest.until(|news| is_data(news, &call)).await;
    assert_eq!(news.iter().filter(|news| matches!(news, RoomNews::Data(..))).count(), 1, "{news:?}");

    agent.tell("/transcription", json!({ "text": "Good day." })).await;
    guest.until(|news| is_data(news, &DataEvent::AgentText("Good day.".into()))).await;
    let last = json!({ "lk.transcription_final": "true" });
    let stream = json!({
        "topic": "lk.transcription", "pieces": ["How can ", "I help?"],
        "attributes": { "lk.transcription_final": "false" }, "last": last,
    });
    agent.tell("/text", stream).await;
    guest.until(|news| is_data(news, &DataEvent::AgentText("How can I help?".into()))).await;
    agent.tell("/transcription", json!({ "text": "A table.", "identity": OWN })).await;
    guest.until(|news| is_data(news, &DataEvent::CallerText("A table.".into()))).await;

    agent.tell("/digit", json!({ "code": 10, "digit": "*" })).await;
    guest.until(|news| is_data(news, &DataEvent::Digit('*'))).await;
    guest.orders.send(Order::Digit('7')).await.expect("it runs");
    guest.during(agent.sees(|seen| seen["digits"] == json!(["7"]))).await;

    for state in ["listening", "thinking", "speaking"] {
        agent.tell("/attributes", json!({ "lk.agent.state": state })).await;
        let state_event = RoomEvent::AgentState(state.into());
        guest.until(|news| matches!(news, RoomNews::Event(_, event) if *event == state_event)).await;
    }
    agent.post("/leave").await;
    assert_eq!(guest.wait_ended().await, RoomEnd::AgentLeft);
}

#[tokio::test(flavor = "multi_thread")]
async fn this_side_and_an_official_agent_meet_over_two_connections() {
    meet(Behaviour::default(), Flow::Split).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn this_side_and_an_official_agent_meet_over_one_connection() {
    meet(Behaviour { knows_joint: true, ..Behaviour::default() }, Flow::Joint).await;
}

/// The agent comes and publishes later, is mute for a while, publishes anew, and shows a picture; a bystander is not
/// heard.
#[tokio::test(flavor = "multi_thread")]
async fn the_agents_track_is_followed() {
    let server = RoomServer::start().await;
    let bystander = official(&server, "bystander", &["--standard", "--tone", "300"]).await;
    let agent = official(&server, "agent-1", &["--late"]).await;
    let (mut guest, ()) = tokio::join!(Guest::join(&server), async {
        server.wait_asked(OWN, |asked| matches!(asked, Request::AddTrack(_))).await;
        agent.post("/publish").await;
    });
    assert_eq!(guest.joined.agent.as_deref(), Some("agent-1"));
    guest.hears().await;
    agent.post("/mute").await;
    guest.until(|news| *news == RoomNews::Held(true)).await;
    agent.post("/unmute").await;
    guest.until(|news| *news == RoomNews::Held(false)).await;
    guest.hears().await;
    agent.post("/video").await;
    agent.post("/republish").await;
    guest.until(|news| matches!(news, RoomNews::Media(_))).await;
    guest.hears().await;
    bystander.post("/leave").await;
    guest.hears().await;
    guest.orders.send(Order::HangUp).await.expect("it runs");
    assert_eq!(guest.wait_ended().await, RoomEnd::HungUp);
    agent.sees(|seen| seen["left"].as_array().is_some_and(|left| left.contains(&json!(OWN)))).await;
}

/// A lost WebSocket is taken up while media go on; a room is joined anew where the server wants that, or media are
/// lost.
#[tokio::test(flavor = "multi_thread")]
async fn lost_connections_come_back() {
    let server = RoomServer::start().await;
    let agent = official(&server, "agent-1", &[]).await;
    let mut guest = Guest::join(&server).await;
    guest.hears().await;
    let returned = |news: &RoomNews| *news == RoomNews::Returned;
    for (resumes, joins) in [(1, 2), (2, 2)] {
        if resumes == 1 {
            server.cut_line(OWN);
        } else {
            server.dismiss(OWN, DisconnectReason::Migration, LeaveAction::Resume).await;
        }
        let news = guest.until(returned).await;
        assert!(news.iter().any(|news| matches!(news, RoomNews::Returns(_))), "{news:?}");
        let room = &server.room;
        let counts = (room.resumes.load(Ordering::Relaxed), room.joins.load(Ordering::Relaxed));
        assert_eq!(counts, (resumes, joins));
        guest.hears().await;
    }
    server.wait_asked(OWN, |asked| matches!(asked, Request::SyncState(sync) if sync.publish_tracks.len() == 1)).await;
    // Joined anew: asked for by the server, since it does not know this side any more, and since the media are lost.
    server.dismiss(OWN, DisconnectReason::StateMismatch, LeaveAction::Reconnect).await;
    guest.until(returned).await;
    guest.hears().await;
    server.change(|behaviour| behaviour.no_resume = true);
    server.cut_line(OWN);
    guest.until(returned).await;
    guest.hears().await;
    server.close_media(OWN).await;
    guest.until(returned).await;
    guest.hears().await;
    // The server says that it is being stopped, and is there again.
    server.dismiss(OWN, DisconnectReason::ServerShutdown, LeaveAction::Disconnect).await;
    guest.until(returned).await;
    guest.hears().await;
    guest.during(agent.sees(hears_us)).await;
    assert_eq!(server.room.joins.load(Ordering::Relaxed), 6);
    // It does not come back.
    server.change(|behaviour| behaviour.refusal = Some((503, "try later")));
    server.cut_line(OWN);
    let RoomEnd::Failed(fault) = guest.wait_ended().await else { panic!("it was lost") };
    assert_eq!(fault.kind(), FaultKind::RoomLost);
    assert!(fault.to_string().contains("did not come back"), "{fault}");
}

/// The server ends the call for each reason.
#[tokio::test(flavor = "multi_thread")]
async fn every_end_of_the_server_is_an_end() {
    let server = RoomServer::start().await;
    let _agent = official(&server, "agent-1", &[]).await;
    use DisconnectReason::{ParticipantRemoved, RoomClosed, RoomDeleted};
    // A server that is being stopped may be there again.
    for number in (0..=16).filter(|number| *number != DisconnectReason::ServerShutdown as i32) {
        let reason = DisconnectReason::try_from(number).expect("it is known");
        let guest = Guest::join(&server).await;
        server.dismiss(OWN, reason, LeaveAction::Disconnect).await;
        let end = guest.wait_ended().await;
        match reason {
            RoomDeleted | RoomClosed | ParticipantRemoved => assert_eq!(end, RoomEnd::AgentLeft, "{reason:?}"),
            _ => {
                let RoomEnd::Failed(fault) = end else { panic!("{reason:?}: {end:?}") };
                assert_eq!(fault.kind(), FaultKind::RoomLost, "{reason:?}");
                assert!(fault.to_string().starts_with("connection to the room: the server ended it "), "{fault}");
            }
        }
    }
}

/// Calls that never come about: the kind of the failure, and the words.
#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_rooms_that_cannot_be_joined() {
    let server = RoomServer::start().await;
    let soon = Patience { agent: Duration::from_millis(300), ..patient() };
    let check = async |target: RoomTarget, patience: Patience, kind: FaultKind, words: &str| {
        let end = open(target, patience).await.err();
        let Some(RoomEnd::Failed(fault)) = end else { panic!("{words}: {end:?}") };
        assert_eq!((fault.kind(), fault.to_string().as_str()), (kind, words));
    };
    let url = server.url.as_str();
    let with_token = |token: String| RoomTarget { token: Secret::new(token), ..target(url) };
    let expired = "join of the room: the server answered 401: invalid token: token is expired (exp)";
    check(with_token(token(OWN, Duration::ZERO)), soon, FaultKind::RoomAuth, expired).await;
    let none = "join of the room: the server answered 401: no permissions to access the room";
    check(with_token(String::new()), soon, FaultKind::RoomAuth, none).await;
    for (status, words, kind, expect) in [
        (403, "not allowed", FaultKind::RoomAuth, "join of the room: the server answered 403: not allowed"),
        (
            429,
            "room has exceeded its max participants",
            FaultKind::Busy,
            "join of the room: the server answered 429: room has exceeded its max participants",
        ),
        (503, "no node", FaultKind::RoomConnect, "join of the room: the server answered 503: no node"),
    ] {
        server.change(|behaviour| behaviour.refusal = Some((status, words)));
        check(target(url), soon, kind, expect).await;
    }
    server.change(|behaviour| behaviour.refusal = None);
    let elsewhere = "join of the room: the server answered 404: it may be no room server";
    check(target(&format!("{url}/elsewhere")), soon, FaultKind::RoomConnect, elsewhere).await;
    let scheme =
        "join of the room: the address of the room server begins with none of ws://, wss://, http:// and https://";
    check(target("ftp://127.0.0.1"), soon, FaultKind::RoomConnect, scheme).await;
    let absent = "wait for the agent: no agent joined the room within 0.3 s";
    check(target(url), soon, FaultKind::RoomNoAgent, absent).await;
    let rights = Permission { can_subscribe: true, can_publish: false, can_publish_data: true };
    server.change(|behaviour| behaviour.rights = Some(rights));
    let right = "join of the room: the token does not allow to publish audio";
    check(target(url), soon, FaultKind::RoomAuth, right).await;
    server.change(|behaviour| behaviour.rights = None);
    let _silent = official(&server, "agent-1", &["--late"]).await;
    let mute = "wait for the agent: the agent is in the room and published no audio within 0.3 s";
    check(target(url), soon, FaultKind::RoomNoAgent, mute).await;
}

/// Media of a server that come from an address that is not allowed, and that it named in vain: the path is learned by a
/// check.
#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_is_learned_in_a_room_is_judged_by_the_guard() {
    for knows_joint in [false, true] {
        let there = IpAddr::from([127, 0, 0, 2]);
        let server = RoomServer::with(Behaviour { knows_joint, media_at: Some(there), ..Behaviour::default() }).await;
        let guard = Guard::by(|address| address == IpAddr::from([127, 0, 0, 1]));
        let end = open_with(target(&server.url), PeerSettings { guard, ..loopback() }, patient()).await.err();
        let Some(RoomEnd::Failed(fault)) = end else { panic!("{end:?}") };
        assert_eq!(fault.reason, Reason::Peer(PeerFault::NotAllowed(there)), "{fault}");
        assert_eq!(fault.kind(), FaultKind::RoomConnect);
    }
}

/// Messages of later versions, broken ones, and data packets of every size: the call goes on.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_strange_does_no_harm() {
    let later = vec![vec![0xc2, 0x3e, 2, 8, 1], vec![0x2a, 3, 0xf8, 0x7f, 1], vec![], vec![0xff; 100]];
    let server = RoomServer::with(Behaviour { extra: later, ..Behaviour::default() }).await;
    let agent = official(&server, "agent-1", &[]).await;
    let mut guest = Guest::join(&server).await;
    server.send_raw(OWN, vec![0x0a; 100_000]);
    server.send(OWN, Response::RefreshToken(token(OWN, Duration::from_secs(600))));
    agent.tell("/data", json!({ "bytes": 15 << 10, "topic": "tools" })).await;
    // 15 MiB in pieces of a stream.
    let piece = "x".repeat(1 << 10);
    agent.tell("/text", json!({ "topic": "tools", "pieces": [piece], "times": 15 << 10 })).await;
    // Whatever came too fast was dropped.
    guest.hears().await;
    agent.tell("/data", json!({ "text": r#"{"name":"last"}"#, "topic": "tools" })).await;
    let last = ToolCall { name: "last".into(), parameters: Value::Null, output: Value::Null, at_ms: None };
    guest.until(|news| is_data(news, &DataEvent::Tool(last.clone()))).await;
    guest.hears().await;
    // The newest token is the one that it comes back with.
    server.cut_line(OWN);
    guest.until(|news| *news == RoomNews::Returned).await;
    server.wait_asked(OWN, |asked| matches!(asked, Request::SyncState(_))).await;
    guest.orders.send(Order::HangUp).await.expect("it runs");
    assert_eq!(guest.wait_ended().await, RoomEnd::HungUp);
}
