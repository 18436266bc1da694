//! Messages of the room protocol in protobuf, as far as they are used; fields and messages of later versions are passed
//! over.

mod data;
mod model;

use std::collections::HashMap;

use prost::{Message, Oneof};

pub use self::data::*;
pub use self::model::*;

/// A message of the client to the server.
#[derive(Clone, PartialEq, Message)]
pub struct SignalRequest {
    /// Its content; `None` for one that is not known.
    #[prost(oneof = "Request", tags = "1,2,3,4,5,6,8,12,14,15,16")]
    pub message: Option<Request>,
}

/// A message of the server to the client.
#[derive(Clone, PartialEq, Message)]
pub struct SignalResponse {
    /// Its content; `None` for one that is not known.
    #[prost(oneof = "Response", tags = "1,2,3,4,5,6,8,9,10,11,16,17,18,19,20,21,22,23,25")]
    pub message: Option<Response>,
}

/// A join request as the address of a single connection carries it.
#[derive(Clone, PartialEq, Message)]
pub struct WrappedJoinRequest {
    /// Compression of the request: 0 none, 1 gzip.
    #[prost(int32, tag = "1")]
    pub compression: i32,
    /// The join request, encoded by itself.
    #[prost(bytes = "vec", tag = "2")]
    pub join_request: Vec<u8>,
}

/// A request to join by a single connection.
#[derive(Clone, PartialEq, Message)]
pub struct JoinRequest {
    /// The program that joins.
    #[prost(message, optional, tag = "1")]
    pub client_info: Option<ClientInfo>,
    /// Settings of the connection.
    #[prost(message, optional, tag = "2")]
    pub connection_settings: Option<ConnectionSettings>,
    /// Tracks that are to be published.
    #[prost(message, repeated, tag = "5")]
    pub add_track_requests: Vec<AddTrackRequest>,
    /// First offer of the client.
    #[prost(message, optional, tag = "6")]
    pub publisher_offer: Option<SessionDescription>,
    /// True when an earlier connection is taken up.
    #[prost(bool, tag = "7")]
    pub reconnect: bool,
    /// Name of the participant whose connection is taken up.
    #[prost(string, tag = "9")]
    pub participant_sid: String,
    /// State of the client when it comes back.
    #[prost(message, optional, tag = "10")]
    pub sync_state: Option<SyncState>,
}

/// A session description (RFC 8866) of one of the connections.
#[derive(Clone, PartialEq, Message)]
pub struct SessionDescription {
    /// Kind of the description: `offer` or `answer`.
    #[prost(string, tag = "1")]
    pub kind: String,
    /// The description as text.
    #[prost(string, tag = "2")]
    pub sdp: String,
    /// Number of the offer, which its answer repeats; 0 for none.
    #[prost(uint32, tag = "3")]
    pub id: u32,
    /// Names of the tracks by those of their sections.
    #[prost(map = "string, string", tag = "4")]
    pub mid_to_track_id: HashMap<String, String>,
}

/// A candidate that was found after a description.
#[derive(Clone, PartialEq, Message)]
pub struct TrickleRequest {
    /// The candidate as JSON, as browsers write it.
    #[prost(string, tag = "1")]
    pub candidate_init: String,
    /// The connection that it is for.
    #[prost(enumeration = "SignalTarget", tag = "2")]
    pub target: i32,
    /// True when there are no more.
    #[prost(bool, tag = "3")]
    pub is_final: bool,
}

/// A track that is to be published.
#[derive(Clone, PartialEq, Message)]
pub struct AddTrackRequest {
    /// Name that the client gives it.
    #[prost(string, tag = "1")]
    pub cid: String,
    /// Name that people see.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Kind of the track.
    #[prost(enumeration = "TrackType", tag = "3")]
    pub kind: i32,
    /// True when it begins muted.
    #[prost(bool, tag = "6")]
    pub muted: bool,
    /// True when silence is sent like speech.
    #[prost(bool, tag = "7")]
    pub disable_dtx: bool,
    /// Source of the track.
    #[prost(enumeration = "TrackSource", tag = "8")]
    pub source: i32,
    /// Name that the server gave it before.
    #[prost(string, tag = "11")]
    pub sid: String,
    /// True for two channels.
    #[prost(bool, tag = "12")]
    pub stereo: bool,
    /// True when nothing is sent twice (RFC 2198).
    #[prost(bool, tag = "13")]
    pub disable_red: bool,
    /// Name of the stream that it belongs to.
    #[prost(string, tag = "15")]
    pub stream: String,
}

/// A track that is muted, or no longer.
#[derive(Clone, PartialEq, Message)]
pub struct MuteTrackRequest {
    /// Name of the track.
    #[prost(string, tag = "1")]
    pub sid: String,
    /// True when it is muted from now on.
    #[prost(bool, tag = "2")]
    pub muted: bool,
}

/// Tracks that are subscribed from now on, or no longer.
#[derive(Clone, PartialEq, Message)]
pub struct UpdateSubscription {
    /// Names of the tracks.
    #[prost(string, repeated, tag = "1")]
    pub track_sids: Vec<String>,
    /// True when they are subscribed from now on.
    #[prost(bool, tag = "2")]
    pub subscribe: bool,
    /// The same tracks by their participants.
    #[prost(message, repeated, tag = "3")]
    pub participant_tracks: Vec<ParticipantTracks>,
}

/// Texts that a participant tells of itself from now on.
#[derive(Clone, PartialEq, Message)]
pub struct UpdateParticipantMetadata {
    /// Text for other programs.
    #[prost(string, tag = "1")]
    pub metadata: String,
    /// Name that people see.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Texts by their names.
    #[prost(map = "string, string", tag = "3")]
    pub attributes: HashMap<String, String>,
    /// Number of the request.
    #[prost(uint32, tag = "4")]
    pub request_id: u32,
}

/// State of a client whose connection is taken up.
#[derive(Clone, PartialEq, Message)]
pub struct SyncState {
    /// The last answer of the client.
    #[prost(message, optional, tag = "1")]
    pub answer: Option<SessionDescription>,
    /// Tracks that it has subscribed.
    #[prost(message, optional, tag = "2")]
    pub subscription: Option<UpdateSubscription>,
    /// Tracks that it publishes.
    #[prost(message, repeated, tag = "3")]
    pub publish_tracks: Vec<TrackPublishedResponse>,
    /// Data channels of the client.
    #[prost(message, repeated, tag = "4")]
    pub data_channels: Vec<DataChannelInfo>,
    /// The last offer of the client.
    #[prost(message, optional, tag = "5")]
    pub offer: Option<SessionDescription>,
}

/// A sign of life of the client.
#[derive(Clone, PartialEq, Message)]
pub struct Ping {
    /// Milliseconds since 1970 at the client.
    #[prost(int64, tag = "1")]
    pub timestamp: i64,
    /// Last round trip in milliseconds.
    #[prost(int64, tag = "2")]
    pub rtt: i64,
}

/// The answer to a sign of life.
#[derive(Clone, PartialEq, Message)]
pub struct Pong {
    /// Timestamp of the ping.
    #[prost(int64, tag = "1")]
    pub last_ping_timestamp: i64,
    /// Milliseconds since 1970 at the server.
    #[prost(int64, tag = "2")]
    pub timestamp: i64,
}

/// The end of a connection, told by either side.
#[derive(Clone, PartialEq, Message)]
pub struct LeaveRequest {
    /// True when another connection may be made; older servers know it alone.
    #[prost(bool, tag = "1")]
    pub can_reconnect: bool,
    /// Reason by its number, see [`DisconnectReason`].
    #[prost(int32, tag = "2")]
    pub reason: i32,
    /// Action that the client is to take, see [`LeaveAction`].
    #[prost(int32, tag = "3")]
    pub action: i32,
}

/// The answer to a client that has joined.
#[derive(Clone, PartialEq, Message)]
pub struct JoinResponse {
    /// The room that was joined.
    #[prost(message, optional, tag = "1")]
    pub room: Option<RoomInfo>,
    /// The client as a participant.
    #[prost(message, optional, tag = "2")]
    pub participant: Option<ParticipantInfo>,
    /// Everybody else in the room.
    #[prost(message, repeated, tag = "3")]
    pub other_participants: Vec<ParticipantInfo>,
    /// Version of the server.
    #[prost(string, tag = "4")]
    pub server_version: String,
    /// Servers that help to find a path.
    #[prost(message, repeated, tag = "5")]
    pub ice_servers: Vec<IceServerInfo>,
    /// True when the connection for hearing comes first and carries the data.
    #[prost(bool, tag = "6")]
    pub subscriber_primary: bool,
    /// Seconds without an answer after which the server is lost; 0 for none.
    #[prost(int32, tag = "10")]
    pub ping_timeout: i32,
    /// Seconds between two signs of life; 0 for none.
    #[prost(int32, tag = "11")]
    pub ping_interval: i32,
    /// The server as a program.
    #[prost(message, optional, tag = "12")]
    pub server_info: Option<ServerInfo>,
    /// True when an offer need not wait for the answer to its track.
    #[prost(bool, tag = "15")]
    pub fast_publish: bool,
}

/// The answer to a client whose connection was taken up.
#[derive(Clone, PartialEq, Message)]
pub struct ReconnectResponse {
    /// Servers that help to find a path.
    #[prost(message, repeated, tag = "1")]
    pub ice_servers: Vec<IceServerInfo>,
}

/// A track of the client that may be published.
#[derive(Clone, PartialEq, Message)]
pub struct TrackPublishedResponse {
    /// Name that the client gave it.
    #[prost(string, tag = "1")]
    pub cid: String,
    /// The track as the server knows it.
    #[prost(message, optional, tag = "2")]
    pub track: Option<TrackInfo>,
}

/// A track of the client that is no longer published.
#[derive(Clone, PartialEq, Message)]
pub struct TrackUnpublishedResponse {
    /// Name of the track.
    #[prost(string, tag = "1")]
    pub track_sid: String,
}

/// News of several participants.
#[derive(Clone, PartialEq, Message)]
pub struct ParticipantUpdate {
    /// Everybody of whom something has changed.
    #[prost(message, repeated, tag = "1")]
    pub participants: Vec<ParticipantInfo>,
}

/// Participants that speak, as the server hears them.
#[derive(Clone, PartialEq, Message)]
pub struct SpeakersChanged {
    /// Everybody of whom something has changed.
    #[prost(message, repeated, tag = "1")]
    pub speakers: Vec<SpeakerInfo>,
}

/// News of the whole room.
#[derive(Clone, PartialEq, Message)]
pub struct RoomUpdate {
    /// The room from now on.
    #[prost(message, optional, tag = "1")]
    pub room: Option<RoomInfo>,
}

/// A subscription that failed.
#[derive(Clone, PartialEq, Message)]
pub struct SubscriptionResponse {
    /// Name of the track.
    #[prost(string, tag = "1")]
    pub track_sid: String,
    /// Reason by its number: 1 codec, 2 no such track.
    #[prost(int32, tag = "2")]
    pub err: i32,
}

/// The outcome of a request.
#[derive(Clone, PartialEq, Message)]
pub struct RequestResponse {
    /// Number of the request.
    #[prost(uint32, tag = "1")]
    pub request_id: u32,
    /// Reason by its number; 0 for success.
    #[prost(int32, tag = "2")]
    pub reason: i32,
    /// The same in words.
    #[prost(string, tag = "3")]
    pub message: String,
}

/// A track of the client that somebody hears.
#[derive(Clone, PartialEq, Message)]
pub struct TrackSubscribed {
    /// Name of the track.
    #[prost(string, tag = "1")]
    pub track_sid: String,
}

/// Sections that the next offer of a single connection is to have more.
#[derive(Clone, PartialEq, Message)]
pub struct MediaSectionsRequirement {
    /// Number of those for audio.
    #[prost(uint32, tag = "1")]
    pub num_audios: u32,
    /// Number of those for video.
    #[prost(uint32, tag = "2")]
    pub num_videos: u32,
}

/// Contents of a message of the client.
#[derive(Clone, PartialEq, Oneof)]
pub enum Request {
    /// An offer of the client.
    #[prost(message, tag = "1")]
    Offer(SessionDescription),
    /// The answer to an offer of the server.
    #[prost(message, tag = "2")]
    Answer(SessionDescription),
    /// A candidate that was found late.
    #[prost(message, tag = "3")]
    Trickle(TrickleRequest),
    /// A track that is to be published.
    #[prost(message, tag = "4")]
    AddTrack(AddTrackRequest),
    /// A track is muted, or no longer.
    #[prost(message, tag = "5")]
    Mute(MuteTrackRequest),
    /// Tracks that are subscribed, or no longer.
    #[prost(message, tag = "6")]
    Subscription(UpdateSubscription),
    /// The client leaves the room.
    #[prost(message, tag = "8")]
    Leave(LeaveRequest),
    /// State of a client that comes back.
    #[prost(message, tag = "12")]
    SyncState(SyncState),
    /// Sign of life in the old form.
    #[prost(int64, tag = "14")]
    PingTime(i64),
    /// The client's own metadata change.
    #[prost(message, tag = "15")]
    UpdateMetadata(UpdateParticipantMetadata),
    /// Sign of life in the new form.
    #[prost(message, tag = "16")]
    Ping(Ping),
}

/// Contents of a message of the server.
#[expect(clippy::large_enum_variant, reason = "messages are few, and each is read at once")]
#[derive(Clone, PartialEq, Oneof)]
pub enum Response {
    /// The room is joined.
    #[prost(message, tag = "1")]
    Join(JoinResponse),
    /// The answer to an offer of the client.
    #[prost(message, tag = "2")]
    Answer(SessionDescription),
    /// An offer of the server.
    #[prost(message, tag = "3")]
    Offer(SessionDescription),
    /// A candidate that was found late.
    #[prost(message, tag = "4")]
    Trickle(TrickleRequest),
    /// News of other participants.
    #[prost(message, tag = "5")]
    Update(ParticipantUpdate),
    /// A track may be published.
    #[prost(message, tag = "6")]
    TrackPublished(TrackPublishedResponse),
    /// The connection ends, told by the server.
    #[prost(message, tag = "8")]
    Leave(LeaveRequest),
    /// The server mutes a track of the client.
    #[prost(message, tag = "9")]
    Mute(MuteTrackRequest),
    /// Other participants speak, or no longer.
    #[prost(message, tag = "10")]
    SpeakersChanged(SpeakersChanged),
    /// News of the whole room.
    #[prost(message, tag = "11")]
    RoomUpdate(RoomUpdate),
    /// A token for later connections.
    #[prost(string, tag = "16")]
    RefreshToken(String),
    /// A track is no longer published.
    #[prost(message, tag = "17")]
    TrackUnpublished(TrackUnpublishedResponse),
    /// Answer to a sign of life, in the old form.
    #[prost(int64, tag = "18")]
    PongTime(i64),
    /// The connection is taken up.
    #[prost(message, tag = "19")]
    Reconnect(ReconnectResponse),
    /// Answer to a sign of life, in the new form.
    #[prost(message, tag = "20")]
    Pong(Pong),
    /// A subscription has failed.
    #[prost(message, tag = "21")]
    SubscriptionResponse(SubscriptionResponse),
    /// Outcome of a request.
    #[prost(message, tag = "22")]
    RequestResponse(RequestResponse),
    /// Somebody hears a track of the client.
    #[prost(message, tag = "23")]
    TrackSubscribed(TrackSubscribed),
    /// The next offer needs more sections.
    #[prost(message, tag = "25")]
    MediaSections(MediaSectionsRequirement),
}
