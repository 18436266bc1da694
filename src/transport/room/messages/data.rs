//! Messages of the data channels.

use std::collections::HashMap;

use prost::{Message, Oneof};

/// A packet of a data channel.
#[derive(Clone, PartialEq, Message)]
pub struct DataPacket {
    /// Delivery by its number: 0 reliable, 1 lossy.
    #[prost(int32, tag = "1")]
    pub kind: i32,
    /// Its content; `None` for one that is not known.
    #[prost(oneof = "Data", tags = "2,6,7,9,13,14,15")]
    pub value: Option<Data>,
    /// Identity of its sender, as the server tells it.
    #[prost(string, tag = "4")]
    pub participant_identity: String,
    /// Identities that it is for; empty for everybody.
    #[prost(string, repeated, tag = "5")]
    pub destination_identities: Vec<String>,
    /// Number of a reliable packet.
    #[prost(uint32, tag = "16")]
    pub sequence: u32,
    /// Name of its sender, as the server tells it.
    #[prost(string, tag = "17")]
    pub participant_sid: String,
}

/// Data of a program.
#[derive(Clone, PartialEq, Message)]
pub struct UserPacket {
    /// Name of its sender.
    #[prost(string, tag = "1")]
    pub participant_sid: String,
    /// Data as they were sent.
    #[prost(bytes = "vec", tag = "2")]
    pub payload: Vec<u8>,
    /// Topic that they are about.
    #[prost(string, optional, tag = "4")]
    pub topic: Option<String>,
    /// Identity of its sender.
    #[prost(string, tag = "5")]
    pub participant_identity: String,
}

/// A digit that was pressed.
#[derive(Clone, PartialEq, Message)]
pub struct SipDtmf {
    /// Number of the key: 0 to 9, 10 for *, 11 for #, 12 to 15 for A to D (RFC 4733 3.2).
    #[prost(uint32, tag = "3")]
    pub code: u32,
    /// The key as text.
    #[prost(string, tag = "4")]
    pub digit: String,
}

/// Words that were recognised.
#[derive(Clone, PartialEq, Message)]
pub struct Transcription {
    /// Identity of whoever said them.
    #[prost(string, tag = "2")]
    pub transcribed_participant_identity: String,
    /// Name of the track that they are in.
    #[prost(string, tag = "3")]
    pub track_id: String,
    /// The words in pieces.
    #[prost(message, repeated, tag = "4")]
    pub segments: Vec<TranscriptionSegment>,
}

/// A piece of recognised words.
#[derive(Clone, PartialEq, Message)]
pub struct TranscriptionSegment {
    /// Name of the piece.
    #[prost(string, tag = "1")]
    pub id: String,
    /// The words so far.
    #[prost(string, tag = "2")]
    pub text: String,
    /// True when they change no more.
    #[prost(bool, tag = "5")]
    pub is_final: bool,
    /// Language of the words.
    #[prost(string, tag = "6")]
    pub language: String,
}

/// A message of text.
#[derive(Clone, PartialEq, Message)]
pub struct ChatMessage {
    /// Name of the message.
    #[prost(string, tag = "1")]
    pub id: String,
    /// Text of the message.
    #[prost(string, tag = "4")]
    pub message: String,
}

/// The beginning of a stream of data.
#[derive(Clone, PartialEq, Message)]
pub struct StreamHeader {
    /// Name of the stream.
    #[prost(string, tag = "1")]
    pub stream_id: String,
    /// Milliseconds since 1970 at its sender.
    #[prost(int64, tag = "2")]
    pub timestamp: i64,
    /// Topic that it is about.
    #[prost(string, tag = "3")]
    pub topic: String,
    /// Type of its content.
    #[prost(string, tag = "4")]
    pub mime_type: String,
    /// Bytes of the whole, where they are known.
    #[prost(uint64, optional, tag = "5")]
    pub total_length: Option<u64>,
    /// Texts by their names.
    #[prost(map = "string, string", tag = "8")]
    pub attributes: HashMap<String, String>,
    /// Present where it is text.
    #[prost(message, optional, tag = "9")]
    pub text_header: Option<TextHeader>,
    /// Present where it is bytes.
    #[prost(message, optional, tag = "10")]
    pub byte_header: Option<ByteHeader>,
    /// The whole content of a short stream.
    #[prost(bytes = "vec", optional, tag = "11")]
    pub inline_content: Option<Vec<u8>>,
    /// Compression by its number; 0 for none.
    #[prost(int32, tag = "12")]
    pub compression: i32,
}

/// Particulars of a stream of text.
#[derive(Clone, PartialEq, Message)]
pub struct TextHeader {
    /// Operation by its number: 0 a new text, 1 an update, 2 deletes it.
    #[prost(int32, tag = "1")]
    pub operation_type: i32,
    /// Number of the update.
    #[prost(int32, tag = "2")]
    pub version: i32,
}

/// Particulars of a stream of bytes.
#[derive(Clone, PartialEq, Message)]
pub struct ByteHeader {
    /// Name of the file.
    #[prost(string, tag = "1")]
    pub name: String,
}

/// A piece of a stream of data.
#[derive(Clone, PartialEq, Message)]
pub struct StreamChunk {
    /// Name of the stream.
    #[prost(string, tag = "1")]
    pub stream_id: String,
    /// Number of the piece, from 0.
    #[prost(uint64, tag = "2")]
    pub chunk_index: u64,
    /// The piece as bytes.
    #[prost(bytes = "vec", tag = "3")]
    pub content: Vec<u8>,
    /// Number of the update.
    #[prost(int32, tag = "4")]
    pub version: i32,
}

/// The end of a stream of data.
#[derive(Clone, PartialEq, Message)]
pub struct StreamTrailer {
    /// Name of the stream.
    #[prost(string, tag = "1")]
    pub stream_id: String,
    /// Reason of an early end; empty for a good one.
    #[prost(string, tag = "2")]
    pub reason: String,
    /// Texts by their names.
    #[prost(map = "string, string", tag = "3")]
    pub attributes: HashMap<String, String>,
}

/// Contents of a packet of a data channel.
#[derive(Clone, PartialEq, Oneof)]
pub enum Data {
    /// Data of a program.
    #[prost(message, tag = "2")]
    User(UserPacket),
    /// A digit that was pressed.
    #[prost(message, tag = "6")]
    SipDtmf(SipDtmf),
    /// Words that were recognised.
    #[prost(message, tag = "7")]
    Transcription(Transcription),
    /// A message of text.
    #[prost(message, tag = "9")]
    Chat(ChatMessage),
    /// A stream begins here.
    #[prost(message, tag = "13")]
    StreamHeader(StreamHeader),
    /// A piece of a stream.
    #[prost(message, tag = "14")]
    StreamChunk(StreamChunk),
    /// A stream ends here.
    #[prost(message, tag = "15")]
    StreamTrailer(StreamTrailer),
}
