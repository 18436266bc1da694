//! Rooms, participants, tracks and the numbers that messages name them by.

use std::collections::HashMap;

use prost::{Enumeration, Message};

/// Number of the kind of participants that are agents.
pub const AGENT_KIND: i32 = 4;

/// The program that joins a room.
#[derive(Clone, PartialEq, Message)]
pub struct ClientInfo {
    /// Number of the software kit.
    #[prost(int32, tag = "1")]
    pub sdk: i32,
    /// Version of the software kit.
    #[prost(string, tag = "2")]
    pub version: String,
    /// Version of the protocol.
    #[prost(int32, tag = "3")]
    pub protocol: i32,
    /// Name of the system.
    #[prost(string, tag = "4")]
    pub os: String,
}

/// Settings of a connection to a room.
#[derive(Clone, PartialEq, Message)]
pub struct ConnectionSettings {
    /// True when every track is subscribed without a request.
    #[prost(bool, tag = "1")]
    pub auto_subscribe: bool,
    /// True when the server adapts video to its size.
    #[prost(bool, tag = "2")]
    pub adaptive_stream: bool,
}

/// Tracks of a participant.
#[derive(Clone, PartialEq, Message)]
pub struct ParticipantTracks {
    /// Name of the participant.
    #[prost(string, tag = "1")]
    pub participant_sid: String,
    /// Names of its tracks.
    #[prost(string, repeated, tag = "2")]
    pub track_sids: Vec<String>,
}

/// A data channel of a client.
#[derive(Clone, PartialEq, Message)]
pub struct DataChannelInfo {
    /// Name of the channel.
    #[prost(string, tag = "1")]
    pub label: String,
    /// Number of the channel.
    #[prost(uint32, tag = "2")]
    pub id: u32,
    /// The connection that it is in.
    #[prost(enumeration = "SignalTarget", tag = "3")]
    pub target: i32,
}

/// The program that serves a room.
#[derive(Clone, PartialEq, Message)]
pub struct ServerInfo {
    /// Version of the server.
    #[prost(string, tag = "2")]
    pub version: String,
    /// Version of the protocol.
    #[prost(int32, tag = "3")]
    pub protocol: i32,
}

/// A server that helps to find a path.
#[derive(Clone, PartialEq, Message)]
pub struct IceServerInfo {
    /// Addresses of the server (RFC 7064, RFC 7065).
    #[prost(string, repeated, tag = "1")]
    pub urls: Vec<String>,
    /// Name to give there.
    #[prost(string, tag = "2")]
    pub username: String,
    /// Password to give there.
    #[prost(string, tag = "3")]
    pub credential: String,
}

/// A participant that speaks, or no longer.
#[derive(Clone, PartialEq, Message)]
pub struct SpeakerInfo {
    /// Name of the participant.
    #[prost(string, tag = "1")]
    pub sid: String,
    /// True while it speaks.
    #[prost(bool, tag = "3")]
    pub active: bool,
}

/// A room as its server tells of it.
#[derive(Clone, PartialEq, Message)]
pub struct RoomInfo {
    /// Name that the server gave it.
    #[prost(string, tag = "1")]
    pub sid: String,
    /// Name by which it is joined.
    #[prost(string, tag = "2")]
    pub name: String,
    /// Text for other programs.
    #[prost(string, tag = "8")]
    pub metadata: String,
}

/// A participant of a room.
#[derive(Clone, PartialEq, Message)]
pub struct ParticipantInfo {
    /// Name that the server gave it.
    #[prost(string, tag = "1")]
    pub sid: String,
    /// Name that it has in its token.
    #[prost(string, tag = "2")]
    pub identity: String,
    /// State of the participant.
    #[prost(enumeration = "ParticipantState", tag = "3")]
    pub state: i32,
    /// Tracks that it publishes.
    #[prost(message, repeated, tag = "4")]
    pub tracks: Vec<TrackInfo>,
    /// Text for other programs.
    #[prost(string, tag = "5")]
    pub metadata: String,
    /// Time at which it joined, in seconds since 1970 by the server's clock.
    #[prost(int64, tag = "6")]
    pub joined_at: i64,
    /// Name that people see.
    #[prost(string, tag = "9")]
    pub name: String,
    /// Number of the change, which grows.
    #[prost(uint32, tag = "10")]
    pub version: u32,
    /// Rights of the participant by its token.
    #[prost(message, optional, tag = "11")]
    pub permission: Option<Permission>,
    /// True when it publishes something.
    #[prost(bool, tag = "13")]
    pub is_publisher: bool,
    /// Kind by its number, see [`AGENT_KIND`].
    #[prost(int32, tag = "14")]
    pub kind: i32,
    /// Texts by their names.
    #[prost(map = "string, string", tag = "15")]
    pub attributes: HashMap<String, String>,
    /// Reason of its end by its number.
    #[prost(int32, tag = "16")]
    pub disconnect_reason: i32,
    /// Time at which it joined, in milliseconds.
    #[prost(int64, tag = "17")]
    pub joined_at_ms: i64,
}

/// Rights of a participant by its token.
#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub struct Permission {
    /// True when it may hear others.
    #[prost(bool, tag = "1")]
    pub can_subscribe: bool,
    /// True when it may publish tracks.
    #[prost(bool, tag = "2")]
    pub can_publish: bool,
    /// True when it may send data.
    #[prost(bool, tag = "3")]
    pub can_publish_data: bool,
}

/// A track that is published.
#[derive(Clone, PartialEq, Message)]
pub struct TrackInfo {
    /// Name that the server gave it.
    #[prost(string, tag = "1")]
    pub sid: String,
    /// Kind of the track.
    #[prost(enumeration = "TrackType", tag = "2")]
    pub kind: i32,
    /// Name that people see.
    #[prost(string, tag = "3")]
    pub name: String,
    /// True while it is muted.
    #[prost(bool, tag = "4")]
    pub muted: bool,
    /// True when silence is sent like speech.
    #[prost(bool, tag = "8")]
    pub disable_dtx: bool,
    /// Source of the track.
    #[prost(enumeration = "TrackSource", tag = "9")]
    pub source: i32,
    /// Codec of the track.
    #[prost(string, tag = "11")]
    pub mime_type: String,
    /// Name of its section.
    #[prost(string, tag = "12")]
    pub mid: String,
    /// True for two channels.
    #[prost(bool, tag = "14")]
    pub stereo: bool,
    /// True when nothing is sent twice.
    #[prost(bool, tag = "15")]
    pub disable_red: bool,
    /// Name of the stream that it belongs to.
    #[prost(string, tag = "17")]
    pub stream: String,
}

/// Connection of a client by its direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum SignalTarget {
    /// The client sends by it.
    Publisher = 0,
    /// The client hears by it.
    Subscriber = 1,
}

/// Kinds of tracks by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum TrackType {
    /// Sound that is heard.
    Audio = 0,
    /// Pictures that are seen.
    Video = 1,
    /// Data of a program.
    Data = 2,
}

/// Sources of tracks by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum TrackSource {
    /// It is not told.
    Unknown = 0,
    /// Pictures of a camera.
    Camera = 1,
    /// Sound of a microphone.
    Microphone = 2,
    /// Pictures of a screen.
    ScreenShare = 3,
    /// Sound of a screen.
    ScreenShareAudio = 4,
}

/// States of a participant by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum ParticipantState {
    /// It has a connection for signalling.
    Joining = 0,
    /// The server has answered it.
    Joined = 1,
    /// Its media can flow.
    Active = 2,
    /// It has left the room.
    Disconnected = 3,
}

/// Actions that a server asks for when a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum LeaveAction {
    /// The client is to stay away.
    Disconnect = 0,
    /// The connection is to be taken up.
    Resume = 1,
    /// The room is to be joined anew.
    Reconnect = 2,
}

/// Reasons for which a connection ends, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum DisconnectReason {
    /// It is not told.
    Unknown = 0,
    /// The client left by itself.
    ClientInitiated = 1,
    /// Another client has the same identity.
    DuplicateIdentity = 2,
    /// The server is being stopped.
    ServerShutdown = 3,
    /// Somebody removed the participant.
    ParticipantRemoved = 4,
    /// Somebody deleted the room.
    RoomDeleted = 5,
    /// Client and server disagree on their state.
    StateMismatch = 6,
    /// The room could not be joined.
    JoinFailure = 7,
    /// Another server takes the room over.
    Migration = 8,
    /// The signalling was closed without a word.
    SignalClose = 9,
    /// Everybody who keeps the room open has left.
    RoomClosed = 10,
    /// A called person did not answer.
    UserUnavailable = 11,
    /// A called person declined.
    UserRejected = 12,
    /// A telephone line failed.
    SipTrunkFailure = 13,
    /// The media did not connect in time.
    ConnectionTimeout = 14,
    /// The media broke off.
    MediaFailure = 15,
    /// The agent told of a failure.
    AgentError = 16,
}
