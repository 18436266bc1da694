//! The messages of each kind as templates, for both directions: what one side writes by them the other side reads by
//! them.

use serde_json::Value;

use super::super::protocol::{Kind, Role};
use super::super::template::Template;

/// Meanings that messages have.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    // From the caller.
    Hello,
    Start,
    Media,
    Digit,
    MarkEcho,
    ClearEcho,
    Stop,
    BadMessage,
    // From the agent.
    Mark,
    Clear,
    // Sessions with an opening and a closing of their own.
    Opened,
    Close,
    Closed,
    Ping,
    Pong,
    Disconnect,
    Entities,
    Pause,
    Paused,
    Resume,
    Resumed,
    Updated,
    Error,
    PlaybackStarted,
    PlaybackCompleted,
    // A PBX's channel.
    Answer,
    Hangup,
    StartBuffering,
    StopBuffering,
    BufferingCompleted,
    Status,
    StatusReply,
    ReportDrained,
    Drained,
    Continue,
    Xoff,
    Xon,
}

/// Ways in which audio is carried.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Carriage {
    /// Base64 within the text messages.
    Text,
    /// Binary messages of their own.
    Binary,
}

/// Messages of a kind, one line a message: meaning and template.
struct Lines {
    carriage: Carriage,
    /// Members that name the message.
    caller_key: &'static str,
    agent_key: &'static str,
    caller: &'static [(What, &'static str)],
    agent: &'static [(What, &'static str)],
}

const NUMBERED: Lines = Lines {
    carriage: Carriage::Text,
    caller_key: "event",
    agent_key: "event",
    caller: &[
        (What::Hello, r#"{"event":"connected","protocol":"Call","version":"1.0.0"}"#),
        (
            What::Start,
            r##"{"event":"start","sequenceNumber":"$seq","start":{"accountSid":"$account","streamSid":"$stream","callSid":"$call","tracks":["inbound"],"mediaFormat":{"encoding":"$encoding","sampleRate":"#rate","channels":1},"customParameters":"#?params"},"streamSid":"$stream"}"##,
        ),
        (
            What::Media,
            r#"{"event":"media","sequenceNumber":"$seq","media":{"track":"inbound","chunk":"$chunk","timestamp":"$ms","payload":"$payload"},"streamSid":"$stream"}"#,
        ),
        (
            What::Digit,
            r#"{"event":"dtmf","streamSid":"$stream","sequenceNumber":"$seq","dtmf":{"track":"inbound_track","digit":"$digit"}}"#,
        ),
        (What::MarkEcho, r#"{"event":"mark","sequenceNumber":"$seq","streamSid":"$stream","mark":{"name":"$name"}}"#),
        (
            What::Stop,
            r#"{"event":"stop","sequenceNumber":"$seq","stop":{"accountSid":"$account","callSid":"$call"},"streamSid":"$stream"}"#,
        ),
    ],
    agent: &[
        (What::Media, r#"{"event":"media","streamSid":"$stream","media":{"payload":"$payload"}}"#),
        (What::Mark, r#"{"event":"mark","streamSid":"$stream","mark":{"name":"$name"}}"#),
        (What::Clear, r#"{"event":"clear","streamSid":"$stream"}"#),
    ],
};

const TELNYX: Lines = Lines {
    caller: &[
        (What::Hello, r#"{"event":"connected","version":"1.0.0"}"#),
        (
            What::Start,
            r##"{"event":"start","sequence_number":"$seq","stream_id":"$stream","start":{"user_id":"$account","call_control_id":"$call","call_session_id":"$session","from":"$?from","to":"$?to","tags":[],"client_state":"$client_state","custom_parameters":"#?params","media_format":{"encoding":"$encoding","sample_rate":"#rate","channels":1}}}"##,
        ),
        (
            What::Media,
            r#"{"event":"media","sequence_number":"$seq","stream_id":"$stream","media":{"track":"inbound","chunk":"$chunk","timestamp":"$ms","payload":"$payload"}}"#,
        ),
        (
            What::Digit,
            r#"{"event":"dtmf","stream_id":"$stream","occurred_at":"$occurred_at","sequence_number":"$seq","dtmf":{"digit":"$digit"}}"#,
        ),
        (What::MarkEcho, r#"{"event":"mark","sequence_number":"$seq","stream_id":"$stream","mark":{"name":"$name"}}"#),
        (
            What::BadMessage,
            r#"{"event":"error","payload":{"code":100002,"title":"malformed_frame","detail":"$detail"}}"#,
        ),
        (
            What::Stop,
            r#"{"event":"stop","sequence_number":"$seq","stream_id":"$stream","stop":{"user_id":"$account","call_control_id":"$call"}}"#,
        ),
    ],
    agent: &[
        (What::Media, r#"{"event":"media","stream_id":"?stream","media":{"payload":"$payload"}}"#),
        (What::Mark, r#"{"event":"mark","stream_id":"?stream","mark":{"name":"$name"}}"#),
        (What::Clear, r#"{"event":"clear","stream_id":"?stream"}"#),
    ],
    ..NUMBERED
};

const PLIVO: Lines = Lines {
    caller: &[
        (
            What::Start,
            r##"{"event":"start","sequenceNumber":"#seq","start":{"callId":"$call","streamId":"$stream","accountId":"$account","tracks":["inbound"],"mediaFormat":{"encoding":"$encoding","sampleRate":"#rate"}},"extra_headers":"$?pairs"}"##,
        ),
        (
            What::Media,
            r##"{"event":"media","sequenceNumber":"#seq","streamId":"$stream","media":{"track":"inbound","timestamp":"$unix_ms","chunk":"#chunk","payload":"$payload"},"extra_headers":"$?pairs"}"##,
        ),
        (
            What::Digit,
            r##"{"event":"dtmf","sequenceNumber":"#seq","streamId":"$stream","dtmf":{"track":"inbound","digit":"$digit","timestamp":"$unix_ms"},"extra_headers":"$?pairs"}"##,
        ),
        (What::MarkEcho, r##"{"event":"playedStream","sequenceNumber":"#seq","streamId":"$stream","name":"$name"}"##),
        (What::ClearEcho, r##"{"event":"clearedAudio","sequenceNumber":"#seq","streamId":"$stream"}"##),
    ],
    agent: &[
        (
            What::Media,
            r##"{"event":"playAudio","streamId":"?stream","media":{"contentType":"$?content_type","sampleRate":"#?rate","payload":"$payload"}}"##,
        ),
        (What::Mark, r#"{"event":"checkpoint","streamId":"$stream","name":"$name"}"#),
        (What::Clear, r#"{"event":"clearAudio","streamId":"$stream"}"#),
        (What::Digit, r#"{"event":"sendDTMF","streamId":"?stream","dtmf":"$digit"}"#),
    ],
    ..NUMBERED
};

const EXOTEL: Lines = Lines {
    caller: &[
        (What::Hello, r#"{"event":"connected"}"#),
        (
            What::Start,
            r##"{"event":"start","sequence_number":"$seq","stream_sid":"$stream","start":{"stream_sid":"$stream","call_sid":"$call","account_sid":"$account","from":"$?from","to":"$?to","custom_parameters":"#?params","media_format":{"encoding":"$encoding","sample_rate":"$rate","bit_rate":"16"}}}"##,
        ),
        (
            What::Media,
            r#"{"event":"media","sequence_number":"$seq","stream_sid":"$stream","media":{"chunk":"$chunk","timestamp":"$end_ms","payload":"$payload"}}"#,
        ),
        (
            What::Digit,
            r#"{"event":"dtmf","sequence_number":"$seq","stream_sid":"$stream","dtmf":{"digit":"$digit","duration":"$duration"}}"#,
        ),
        (What::MarkEcho, r#"{"event":"mark","sequence_number":"$seq","stream_sid":"$stream","mark":{"name":"$name"}}"#),
        (
            What::Stop,
            r#"{"event":"stop","sequence_number":"$seq","stream_sid":"$stream","stop":{"call_sid":"$call","account_sid":"$account","reason":"callended"}}"#,
        ),
    ],
    agent: &[
        (What::Media, r#"{"event":"media","stream_sid":"$stream","media":{"payload":"$payload"}}"#),
        (What::Mark, r#"{"event":"mark","stream_sid":"$stream","mark":{"name":"$name"}}"#),
        (What::Clear, r#"{"event":"clear","stream_sid":"$stream"}"#),
    ],
    ..NUMBERED
};

const VONAGE: Lines = Lines {
    carriage: Carriage::Binary,
    agent_key: "action",
    caller: &[
        (What::Start, r##"{"event":"websocket:connected","content-type":"$content_type","*":"#params"}"##),
        (What::Digit, r##"{"event":"websocket:dtmf","digit":"$digit","duration":"#?duration"}"##),
        (What::MarkEcho, r##"{"event":"websocket:notify","payload":"#name"}"##),
        (What::ClearEcho, r#"{"event":"websocket:cleared"}"#),
    ],
    agent: &[(What::Mark, r##"{"action":"notify","payload":"#name"}"##), (What::Clear, r#"{"action":"clear"}"#)],
    ..NUMBERED
};

const AUDIOHOOK: Lines = Lines {
    carriage: Carriage::Binary,
    caller_key: "type",
    agent_key: "type",
    caller: &[
        (
            What::Start,
            r##"{"version":"2","id":"$stream","type":"open","seq":"#seq","serverseq":"#peer","position":"$position","parameters":{"organizationId":"$organization","conversationId":"$conversation","participant":{"id":"$participant","ani":"$?from","aniName":"","dnis":"$?to"},"media":"#media","language":"en-US","inputVariables":"#?params"}}"##,
        ),
        (
            What::Close,
            r##"{"version":"2","id":"$stream","type":"close","seq":"#seq","serverseq":"#peer","position":"$position","parameters":{"reason":"$reason"}}"##,
        ),
        (
            What::Ping,
            r##"{"version":"2","id":"$stream","type":"ping","seq":"#seq","serverseq":"#peer","position":"$position","parameters":{"rtt":"$?rtt"}}"##,
        ),
        (
            What::Paused,
            r##"{"version":"2","id":"$stream","type":"paused","seq":"#seq","serverseq":"#peer","position":"$position","parameters":{}}"##,
        ),
        (
            What::Resumed,
            r##"{"version":"2","id":"$stream","type":"resumed","seq":"#seq","serverseq":"#peer","position":"$position","parameters":{"start":"$start","discarded":"$discarded"}}"##,
        ),
        (
            What::Digit,
            r##"{"version":"2","id":"$stream","type":"dtmf","seq":"#seq","serverseq":"#peer","position":"$position","parameters":{"digit":"$digit"}}"##,
        ),
        (
            What::PlaybackStarted,
            r##"{"version":"2","id":"$stream","type":"playback_started","seq":"#seq","serverseq":"#peer","position":"$position","parameters":{}}"##,
        ),
        (
            What::PlaybackCompleted,
            r##"{"version":"2","id":"$stream","type":"playback_completed","seq":"#seq","serverseq":"#peer","position":"$position","parameters":{}}"##,
        ),
        (
            What::Error,
            r##"{"version":"2","id":"$stream","type":"error","seq":"#seq","serverseq":"#peer","position":"$position","parameters":{"code":"#?code","message":"$?message"}}"##,
        ),
    ],
    agent: &[
        (
            What::Opened,
            r##"{"version":"2","id":"$stream","type":"opened","seq":"#seq","clientseq":"#peer","parameters":{"startPaused":"#?start_paused","media":"#media"}}"##,
        ),
        (
            What::Pong,
            r##"{"version":"2","id":"$stream","type":"pong","seq":"#seq","clientseq":"#peer","parameters":{}}"##,
        ),
        (
            What::Entities,
            r##"{"version":"2","id":"$stream","type":"event","seq":"#seq","clientseq":"#peer","parameters":{"entities":"#entities"}}"##,
        ),
        (
            What::Disconnect,
            r##"{"version":"2","id":"$stream","type":"disconnect","seq":"#seq","clientseq":"#peer","parameters":{"reason":"$reason","info":"$?info","outputVariables":"#?variables"}}"##,
        ),
        (
            What::Closed,
            r##"{"version":"2","id":"$stream","type":"closed","seq":"#seq","clientseq":"#peer","parameters":{"outputVariables":"#?variables"}}"##,
        ),
        (
            What::Pause,
            r##"{"version":"2","id":"$stream","type":"pause","seq":"#seq","clientseq":"#peer","parameters":{}}"##,
        ),
        (
            What::Resume,
            r##"{"version":"2","id":"$stream","type":"resume","seq":"#seq","clientseq":"#peer","parameters":{}}"##,
        ),
        (
            What::Updated,
            r##"{"version":"2","id":"$stream","type":"updated","seq":"#seq","clientseq":"#peer","parameters":{}}"##,
        ),
        (
            What::Error,
            r##"{"version":"2","id":"$stream","type":"error","seq":"#seq","clientseq":"#peer","parameters":{"code":"#?code","message":"$?message"}}"##,
        ),
    ],
};

const CHAN: Lines = Lines {
    carriage: Carriage::Binary,
    agent_key: "command",
    caller: &[
        (
            What::Start,
            r##"{"event":"MEDIA_START","connection_id":"$stream","channel":"$account","channel_id":"$call","format":"$encoding","optimal_frame_size":"#frame_bytes","ptime":20,"channel_variables":"#?params"}"##,
        ),
        (What::MarkEcho, r#"{"event":"MEDIA_MARK_PROCESSED","channel_id":"$?call","correlation_id":"$?name"}"#),
        (What::Digit, r#"{"event":"DTMF_END","channel_id":"$?call","digit":"$digit"}"#),
        (
            What::BufferingCompleted,
            r#"{"event":"MEDIA_BUFFERING_COMPLETED","channel_id":"$?call","correlation_id":"$?name"}"#,
        ),
        (
            What::StatusReply,
            r##"{"event":"STATUS","channel_id":"$?call","queue_length":"#?frames","xon_level":800,"xoff_level":900,"queue_full":"#?is_full","bulk_media":"#?is_buffering","media_paused":"#?is_paused"}"##,
        ),
        (What::Drained, r#"{"event":"QUEUE_DRAINED","channel_id":"$?call"}"#),
        (What::Xoff, r#"{"event":"MEDIA_XOFF","channel_id":"$?call"}"#),
        (What::Xon, r#"{"event":"MEDIA_XON","channel_id":"$?call"}"#),
        (What::BadMessage, r#"{"event":"ERROR","channel_id":"$?call","error_text":"$detail"}"#),
    ],
    agent: &[
        (What::Mark, r#"{"command":"MARK_MEDIA","correlation_id":"$?name"}"#),
        (What::Clear, r#"{"command":"FLUSH_MEDIA"}"#),
        (What::Answer, r#"{"command":"ANSWER"}"#),
        (What::Hangup, r#"{"command":"HANGUP"}"#),
        (What::StartBuffering, r#"{"command":"START_MEDIA_BUFFERING"}"#),
        (What::StopBuffering, r#"{"command":"STOP_MEDIA_BUFFERING","correlation_id":"$?name"}"#),
        (What::Status, r#"{"command":"GET_STATUS"}"#),
        (What::ReportDrained, r#"{"command":"REPORT_QUEUE_DRAINED"}"#),
        (What::Pause, r#"{"command":"PAUSE_MEDIA"}"#),
        (What::Continue, r#"{"command":"CONTINUE_MEDIA"}"#),
    ],
    ..NUMBERED
};

const RAW: Lines = Lines { carriage: Carriage::Binary, caller: &[], agent: &[], ..NUMBERED };

/// Templates of one direction.
#[derive(Debug)]
pub(super) struct Direction {
    key: &'static str,
    lines: Vec<(What, Template)>,
}

impl Direction {
    fn new(key: &'static str, lines: &[(What, &str)]) -> Direction {
        Direction { key, lines: lines.iter().map(|(what, text)| (*what, Template::new(text))).collect() }
    }

    /// Returns a direction without messages.
    pub(super) fn none() -> Direction {
        Direction { key: "", lines: Vec::new() }
    }

    /// Returns the template of a meaning; `None` where the kind has no such message.
    pub(super) fn of(&self, what: What) -> Option<&Template> {
        self.lines.iter().find(|(known, _)| *known == what).map(|(_, template)| template)
    }

    /// Returns the meaning of a message by its name.
    pub(super) fn by_name(&self, name: &str) -> Option<(What, &Template)> {
        let named = self.lines.iter().find(|(_, template)| template.constant(self.key) == Some(name));
        named.map(|(what, template)| (*what, template))
    }

    /// Returns the member that names messages.
    pub(super) fn key(&self) -> &'static str {
        self.key
    }

    /// True when the kind has no text messages in this direction.
    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// Messages of a kind as one side sees them.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) carriage: Carriage,
    /// Messages that this side writes, and those that it reads.
    pub(super) own: Direction,
    pub(super) other: Direction,
}

impl Table {
    pub(super) fn new(kind: Kind, role: Role) -> Table {
        let lines = match kind {
            Kind::TwilioMediaStreams | Kind::SignalwireStream => NUMBERED,
            Kind::TelnyxMediaStreaming => TELNYX,
            Kind::PlivoAudioStreaming => PLIVO,
            Kind::ExotelAgentstream => EXOTEL,
            Kind::VonageWebsocket => VONAGE,
            Kind::Audiohook => AUDIOHOOK,
            Kind::ChanWebsocket => CHAN,
            Kind::Default | Kind::PipecatProtobuf | Kind::RawPcm16 | Kind::Platform => RAW,
        };
        let caller = Direction::new(lines.caller_key, lines.caller);
        let agent = Direction::new(lines.agent_key, lines.agent);
        let (own, other) = match role {
            Role::Caller => (caller, agent),
            Role::Agent => (agent, caller),
        };
        Table { carriage: lines.carriage, own, other }
    }
}

/// Names of plain messages whose words behind the name are an id as a whole.
const WITH_ID: [&str; 4] = ["MARK_MEDIA", "STOP_MEDIA_BUFFERING", "MEDIA_MARK_PROCESSED", "MEDIA_BUFFERING_COMPLETED"];

/// Returns a control message as plain text: the name, then an id or members as `key:value`.
pub(super) fn to_plain(message: &Value, key: &str) -> String {
    let Some(members) = message.as_object() else { return String::new() };
    let name = message.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut text = name.to_owned();
    if WITH_ID.contains(&name) {
        let id = message.get("correlation_id").and_then(Value::as_str).unwrap_or_default();
        if !id.is_empty() {
            text.push(' ');
            text.push_str(id);
        }
        return text;
    }
    let mut pairs: Vec<(&str, String)> = Vec::new();
    for (member, value) in members.iter().filter(|(member, _)| *member != key && *member != "channel_variables") {
        pairs.push((member.as_str(), value.as_str().map_or_else(|| value.to_string(), str::to_owned)));
    }
    // An event that tells nothing else is its name; a key stands before its channel.
    if pairs.len() == 1 && pairs[0].0 == "channel_id" {
        return text;
    }
    pairs.sort_by_key(|(member, _)| name == "DTMF_END" && *member != "digit");
    pairs.iter().for_each(|(member, value)| text.push_str(&format!(" {member}:{value}")));
    text
}

/// Returns plain text as the control message that it stands for.
pub(super) fn from_plain(text: &str, key: &str) -> Value {
    let text = text.trim();
    let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
    let mut members = serde_json::Map::new();
    members.insert(key.to_owned(), Value::from(name));
    if WITH_ID.contains(&name) {
        members.insert("correlation_id".to_owned(), Value::from(rest));
    } else {
        for pair in rest.split(' ') {
            if let Some((member, value)) = pair.split_once(':') {
                members.insert(member.to_owned(), Value::from(value));
            }
        }
    }
    Value::Object(members)
}
