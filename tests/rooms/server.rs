//! A small room server: one room or several, the signalling over a WebSocket, two peer connections for each
//! participant. Official clients of the protocol find it good enough (`official.rs`), and so it stands for theirs.

mod member;
mod tokens;
mod track;

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Response as HttpResponse, StatusCode, Uri};
use futures_util::{SinkExt, StreamExt};
use hyper_util::rt::TokioIo;
use prost::Message as _;
use ringer::transport::room::messages::{
    DisconnectReason, IceServerInfo, JoinResponse, LeaveAction, LeaveRequest, ParticipantInfo, ParticipantState,
    ParticipantUpdate, Permission, Pong, ReconnectResponse, Request as Asked, Response, RoomInfo, ServerInfo,
    SignalRequest, SignalResponse,
};
use ringer_media::time::Time;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::{Message, protocol::Role};

use self::member::Member;
pub(super) use self::tokens::{KEY, SECRET, Who, token, token_for};

/// Things that a test may change while the server runs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Behaviour {
    /// Status and words that everybody is refused with.
    pub refusal: Option<(u16, &'static str)>,
    /// A connection is not taken up, but told to join anew.
    pub no_resume: bool,
    /// Bytes that are sent to everybody who joins, behind the first message.
    pub extra: Vec<Vec<u8>>,
    /// Rights of those who join; `None`: all.
    pub rights: Option<Permission>,
    /// Newest form of the protocol that is known: the single connection, too.
    pub knows_joint: bool,
    /// Each name is a room of its own; else all are one.
    pub has_rooms: bool,
    /// Packets that a participant is sent before its own first offer is answered, over two connections.
    pub sent_first: u32,
    /// Address of the server's media; `None`: loopback and another one, where there is one.
    pub media_at: Option<IpAddr>,
}

#[derive(Default)]
pub(crate) struct Room {
    /// Rooms of other names, where each is one of its own.
    others: Mutex<HashMap<String, Arc<Room>>>,
    members: Mutex<HashMap<String, Arc<Member>>>,
    pub behaviour: Mutex<Behaviour>,
    next: AtomicU64,
    /// Joins and resumptions so far.
    pub joins: AtomicUsize,
    pub resumes: AtomicUsize,
    /// Requests of everybody, in order.
    pub asked: Mutex<Vec<(String, Asked)>>,
    /// Requests to the server's own API: the method and the body.
    pub api: Mutex<Vec<(String, Value)>>,
    /// Times at which tracks were up, in order: their first packet had come, and everybody was told.
    pub tracks_up: Mutex<Vec<Time>>,
    /// Participants for whom a track began, and the timestamp of its first packet that was passed on to them.
    pub begun: Mutex<Vec<(String, u32)>>,
}

/// The server, until it is dropped.
pub(crate) struct RoomServer {
    pub url: String,
    pub room: Arc<Room>,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for RoomServer {
    fn drop(&mut self) {
        self.serving.abort();
        let others: Vec<Arc<Room>> = lock(&self.room.others).drain().map(|(_, room)| room).collect();
        let members: Vec<Arc<Member>> = others.iter().chain([&self.room]).flat_map(|room| room.drain()).collect();
        for member in members {
            member.cut_line();
            start(async move { member.close().await });
        }
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
}

/// Starts a task that ends with its connection.
#[expect(clippy::disallowed_methods, reason = "each ends with the connection that it reads")]
fn start(task: impl Future<Output = ()> + Send + 'static) -> tokio::task::JoinHandle<()> {
    tokio::spawn(task)
}

impl RoomServer {
    pub(crate) async fn start() -> RoomServer {
        RoomServer::with(Behaviour::default()).await
    }

    pub(crate) async fn with(behaviour: Behaviour) -> RoomServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a port");
        let url = format!("ws://{}", listener.local_addr().expect("it is bound"));
        let room = Arc::new(Room { behaviour: Mutex::new(behaviour), ..Room::default() });
        let app = Router::new().fallback(answer).with_state(room.clone());
        let serving = start(async move { drop(axum::serve(listener, app).await) });
        RoomServer { url, room, serving }
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Behaviour)) {
        change(&mut lock(&self.room.behaviour));
    }

    /// Waits until a track is up.
    pub(crate) async fn wait_track(&self) {
        let waited = tokio::time::timeout(super::phone::PATIENCE, async {
            let mut looks = tokio::time::interval(Duration::from_millis(20));
            while lock(&self.room.tracks_up).is_empty() {
                looks.tick().await;
            }
        });
        waited.await.expect("a track comes up");
    }

    /// Cuts the WebSocket of a participant, whose media go on.
    pub(crate) fn cut_line(&self, identity: &str) {
        self.room.member(identity).cut_line();
    }

    /// Sends a message to a participant.
    pub(crate) fn send(&self, identity: &str, message: Response) {
        self.room.member(identity).send(message);
    }

    /// Sends bytes that may be no message to a participant.
    pub(crate) fn send_raw(&self, identity: &str, bytes: Vec<u8>) {
        self.room.member(identity).send_raw(bytes);
    }

    /// Has a participant leave, and forgets it.
    pub(crate) async fn dismiss(&self, identity: &str, reason: DisconnectReason, action: LeaveAction) {
        let leave = LeaveRequest { can_reconnect: false, reason: reason as i32, action: action as i32 };
        self.send(identity, Response::Leave(leave));
        if action != LeaveAction::Resume {
            self.room.remove(identity, DisconnectReason::Unknown).await;
        }
    }

    /// Has a participant leave for this reason, as others see it.
    pub(crate) async fn lose(&self, identity: &str, reason: DisconnectReason) {
        self.room.remove(identity, reason).await;
    }

    /// Has a participant connect anew, as official clients do: it leaves, and is back under another name.
    pub(crate) fn reconnect(&self, identity: &str) {
        let member = self.room.member(identity);
        let before = member.info();
        let left = ParticipantInfo {
            state: ParticipantState::Disconnected as i32,
            disconnect_reason: DisconnectReason::ClientInitiated as i32,
            version: before.version + 1,
            ..before.clone()
        };
        let back = ParticipantInfo { sid: format!("{}B", before.sid), ..before };
        for info in [left, back] {
            for other in self.room.others(&member.sid) {
                other.send(Response::Update(ParticipantUpdate { participants: vec![info.clone()] }));
            }
        }
    }

    /// Loses the media of a participant.
    pub(crate) async fn close_media(&self, identity: &str) {
        self.room.member(identity).close().await;
    }

    /// Waits until a participant has asked for something.
    pub(crate) async fn wait_asked(&self, identity: &str, wanted: impl Fn(&Asked) -> bool) {
        let waited = tokio::time::timeout(super::phone::PATIENCE, async {
            let mut looks = tokio::time::interval(Duration::from_millis(20));
            while !lock(&self.room.asked).iter().any(|(by, asked)| by == identity && wanted(asked)) {
                looks.tick().await;
            }
        });
        waited.await.unwrap_or_else(|_| panic!("{identity} asked for {:?}", lock(&self.room.asked)));
    }
}

impl Room {
    /// Returns the room of this name.
    fn room_of(self: &Arc<Room>, name: &str) -> Arc<Room> {
        let behaviour = lock(&self.behaviour).clone();
        if !behaviour.has_rooms {
            return self.clone();
        }
        let mut others = lock(&self.others);
        let make = || Arc::new(Room { behaviour: Mutex::new(behaviour), ..Room::default() });
        others.entry(name.to_owned()).or_insert_with(make).clone()
    }

    fn drain(&self) -> Vec<Arc<Member>> {
        lock(&self.members).drain().map(|(_, member)| member).collect()
    }

    fn member(&self, identity: &str) -> Arc<Member> {
        lock(&self.members).get(identity).cloned().unwrap_or_else(|| panic!("{identity} is not in the room"))
    }

    fn others(&self, sid: &str) -> Vec<Arc<Member>> {
        lock(&self.members).values().filter(|member| member.sid != sid).cloned().collect()
    }

    /// Tells everybody else of a participant.
    fn tell(&self, member: &Member) {
        let participants = vec![member.info()];
        for other in self.others(&member.sid) {
            other.send(Response::Update(ParticipantUpdate { participants: participants.clone() }));
        }
    }

    /// Carries out a request to the server's own API; a room that is removed sends everybody out.
    async fn carry_out(self: &Arc<Room>, method: &str, request: Request) -> HttpResponse<Body> {
        let body = to_bytes(request.into_body(), 1 << 20).await.unwrap_or_default();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let room = self.room_of(body["room"].as_str().unwrap_or_default());
        lock(&self.api).push((method.to_owned(), body));
        if method == "DeleteRoom" {
            let all: Vec<String> = lock(&room.members).keys().cloned().collect();
            for identity in all {
                room.remove(&identity, DisconnectReason::RoomDeleted).await;
            }
        }
        HttpResponse::new(Body::from("{}"))
    }

    async fn remove(&self, identity: &str, reason: DisconnectReason) {
        let Some(member) = lock(&self.members).remove(identity) else { return };
        member.change(|info| {
            info.state = ParticipantState::Disconnected as i32;
            info.disconnect_reason = reason as i32;
        });
        self.tell(&member);
        self.close(&member).await;
    }

    /// Forgets a participant whose identity another one has from now on: nobody else is told of that.
    async fn replace(&self, identity: &str) {
        let Some(member) = lock(&self.members).remove(identity) else { return };
        let (reason, action) = (DisconnectReason::DuplicateIdentity as i32, LeaveAction::Disconnect as i32);
        member.send(Response::Leave(LeaveRequest { reason, action, can_reconnect: false }));
        self.close(&member).await;
    }

    async fn close(&self, member: &Member) {
        for track in member.track_sids() {
            for other in self.others(&member.sid) {
                other.unsubscribe(&track).await;
            }
        }
        member.close().await;
    }
}

/// Answers every request: the WebSocket of the signalling, and the page that tells why one was refused.
async fn answer(State(room): State<Arc<Room>>, mut request: Request) -> HttpResponse<Body> {
    let refuse = |status: u16, words: &str| {
        let mut response = HttpResponse::new(Body::from(words.to_owned()));
        *response.status_mut() = StatusCode::from_u16(status).expect("a status");
        response
    };
    let (path, behaviour) = (request.uri().path().to_owned(), lock(&room.behaviour).clone());
    if let Some(method) = path.strip_prefix("/twirp/livekit.RoomService/") {
        return room.carry_out(method, request).await;
    }
    let is_joint = path == "/rtc/v1";
    if !matches!(path.as_str(), "/rtc" | "/rtc/v1" | "/rtc/validate" | "/rtc/v1/validate")
        || path.starts_with("/rtc/v1") && !behaviour.knows_joint
    {
        return refuse(404, "404 page not found");
    }
    let who = match tokens::check(&given_token(request.headers(), request.uri())) {
        Ok(who) => who,
        Err(why) => return refuse(401, why),
    };
    if let Some((status, words)) = behaviour.refusal {
        return refuse(status, words);
    }
    if path.ends_with("/validate") {
        return refuse(200, "success");
    }
    let room = room.room_of(&who.room);
    let key = request.headers().get("sec-websocket-key").map(|key| derive_accept_key(key.as_bytes()));
    let Some(accept) = key else { return refuse(400, "no WebSocket") };
    let (query, upgrade) = (track::query(request.uri()), hyper::upgrade::on(&mut request));
    start(async move {
        let Ok(upgraded) = upgrade.await else { return };
        let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, None).await;
        serve(room, socket, who, query, is_joint).await;
    });
    let mut response = HttpResponse::new(Body::empty());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    for (name, value) in [("connection", "upgrade"), ("upgrade", "websocket"), ("sec-websocket-accept", &accept)] {
        response.headers_mut().insert(name, value.parse().expect("a header"));
    }
    response
}

fn given_token(headers: &HeaderMap, uri: &Uri) -> String {
    let header = headers.get("authorization").and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    header.map(str::to_owned).or_else(|| track::query(uri).remove("access_token")).unwrap_or_default()
}

type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

async fn serve(room: Arc<Room>, mut socket: Socket, who: Who, query: HashMap<String, String>, is_joint: bool) {
    let (out, mut to_send) = mpsc::channel(1024);
    let (cut, mut is_cut) = watch::channel(false);
    let wish = track::Wish::of(&query, is_joint);
    let known = wish.rejoins.as_ref().and_then(|sid| {
        lock(&room.members).values().find(|member| member.sid == *sid && member.identity == who.identity).cloned()
    });
    let behaviour = lock(&room.behaviour).clone();
    let member = match (wish.rejoins, known) {
        (Some(_), Some(member)) if !behaviour.no_resume => {
            room.resumes.fetch_add(1, Ordering::Relaxed);
            member.go_on(out, cut);
            member.send(Response::Reconnect(ReconnectResponse::default()));
            member
        }
        (Some(_), _) => {
            let leave = LeaveRequest {
                reason: DisconnectReason::StateMismatch as i32,
                action: LeaveAction::Reconnect as i32,
                can_reconnect: true,
            };
            let message = SignalResponse { message: Some(Response::Leave(leave)) }.encode_to_vec();
            let _ = socket.send(Message::Binary(message.into())).await;
            let _ = socket.close(None).await;
            return;
        }
        (None, _) => {
            room.joins.fetch_add(1, Ordering::Relaxed);
            room.replace(&who.identity).await;
            let sid = format!("PA_{}", room.next.fetch_add(1, Ordering::Relaxed) + 1);
            let member = Member::new(&room, sid, &who, wish.auto_subscribe, is_joint, out, cut).await;
            welcome(&room, &member, &behaviour, is_joint).await;
            if let Some(offer) = wish.offer {
                member.take_offer(offer).await;
            }
            member
        }
    };
    let has_left = loop {
        tokio::select! {
            message = to_send.recv() => match message {
                Some(bytes) => if socket.send(Message::Binary(bytes.into())).await.is_err() { break false },
                // Another WebSocket has taken its place.
                None => break false,
            },
            () = wait_cut(&mut is_cut) => break false,
            came = socket.next() => match came {
                Some(Ok(Message::Binary(bytes))) => {
                    let Ok(SignalRequest { message: Some(asked) }) = SignalRequest::decode(&bytes[..]) else { continue };
                    if matches!(asked, Asked::Leave(_)) {
                        break true;
                    }
                    take(&room, &member, asked).await;
                }
                Some(Ok(Message::Close(_)) | Err(_)) | None => break false,
                Some(Ok(_)) => {}
            },
        }
    };
    if has_left && lock(&room.members).get(&member.identity).is_some_and(|now| now.sid == member.sid) {
        room.remove(&member.identity, DisconnectReason::ClientInitiated).await;
        let _ = socket.close(None).await;
    }
}

async fn wait_cut(cut: &mut watch::Receiver<bool>) {
    let _ = cut.wait_for(|cut| *cut).await;
}

/// Lets somebody in: the first message, news for everybody else, and the tracks that there are.
async fn welcome(room: &Arc<Room>, member: &Arc<Member>, behaviour: &Behaviour, is_joint: bool) {
    let others = room.others(&member.sid);
    if let Some(rights) = &behaviour.rights {
        member.change(|info| info.permission = Some(*rights));
    }
    member.send(Response::Join(JoinResponse {
        room: Some(RoomInfo { sid: "RM_1".into(), name: "room".into(), ..RoomInfo::default() }),
        participant: Some(member.info()),
        other_participants: others.iter().map(|other| other.info()).collect(),
        server_version: "1.9.0".into(),
        // Nobody is there; clients that know TLS look for it all the same.
        ice_servers: vec![IceServerInfo {
            urls: vec!["turns:turn.invalid:443?transport=tcp".into()],
            // The official client makes no connection with a relay that has none of them.
            username: "user".into(),
            credential: "word".into(),
        }],
        subscriber_primary: !is_joint,
        ping_interval: 2,
        ping_timeout: 10,
        server_info: Some(ServerInfo { version: "1.9.0".into(), protocol: 16 }),
        ..JoinResponse::default()
    }));
    behaviour.extra.iter().for_each(|bytes| member.send_raw(bytes.clone()));
    lock(&room.members).insert(member.identity.clone(), member.clone());
    room.tell(member);
    if !is_joint {
        member.renegotiate().await;
    }
    for track in others.iter().flat_map(|other| other.track_sids()).filter(|_| member.auto_subscribe) {
        room.subscribe(member, &track).await;
    }
}

/// Carries out what a participant asks for.
async fn take(room: &Arc<Room>, member: &Arc<Member>, asked: Asked) {
    lock(&room.asked).push((member.identity.clone(), asked.clone()));
    match asked {
        Asked::AddTrack(add) => member.add_track(add, room.next.fetch_add(1, Ordering::Relaxed)),
        Asked::Offer(offer) => {
            let sent_first = lock(&room.behaviour).sent_first;
            if sent_first == 0 || lock(&room.tracks_up).is_empty() {
                return member.take_offer(offer).await;
            }
            let member = member.clone();
            start(async move {
                member.wait_passed_on(sent_first).await;
                member.take_offer(offer).await;
            });
        }
        Asked::Answer(answer) => member.take_answer(answer).await,
        Asked::Trickle(trickle) => member.trickle(&trickle).await,
        Asked::Subscription(wanted) => {
            for track in &wanted.track_sids {
                if wanted.subscribe {
                    room.subscribe(member, track).await;
                } else {
                    member.unsubscribe(track).await;
                }
            }
        }
        Asked::Mute(mute) => {
            member.change(|info| {
                info.tracks.iter_mut().filter(|track| track.sid == mute.sid).for_each(|track| track.muted = mute.muted);
            });
            room.tell(member);
        }
        Asked::UpdateMetadata(update) => {
            member.change(|info| info.attributes.extend(update.attributes));
            let participants = vec![member.info()];
            member.send(Response::Update(ParticipantUpdate { participants }));
            room.tell(member);
        }
        Asked::PingTime(at) => member.send(Response::PongTime(at)),
        Asked::Ping(ping) => {
            member.send(Response::Pong(Pong { last_ping_timestamp: ping.timestamp, timestamp: ping.timestamp }));
        }
        Asked::SyncState(_) | Asked::Leave(_) => {}
    }
}

impl Room {
    /// Has a participant hear a track of another one.
    async fn subscribe(&self, member: &Arc<Member>, track: &str) {
        let owner =
            self.others(&member.sid).into_iter().find(|other| other.track_sids().iter().any(|sid| sid == track));
        let Some(owner) = owner else { return };
        member.subscribe(&owner, track).await;
    }
}

/// A participant that joins, as everybody sees it.
fn new_info(sid: &str, who: &Who) -> ParticipantInfo {
    ParticipantInfo {
        sid: sid.to_owned(),
        identity: who.identity.clone(),
        name: who.identity.clone(),
        state: ParticipantState::Active as i32,
        kind: who.kind,
        attributes: who.attributes.clone(),
        version: 1,
        permission: Some(Permission { can_subscribe: true, can_publish: true, can_publish_data: true }),
        ..ParticipantInfo::default()
    }
}
