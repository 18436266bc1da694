//! Text conversations: what agents write, what is kept of it until it was read, and what is queued.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::Object;
use super::id::IdString;
use super::run::QueueSpec;
use super::yes;

/// What an agent sends into a text conversation, told apart by `type`: a message, unless it says otherwise, or a tool that it
/// called.
// The members carry no docs: doc comments on variants would change the shape of the schema.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[schemars(extend("discriminator" = {"propertyName": "type"}, "x-tag-default" = "message"))]
pub enum AgentMessage {
    Message {
        simulation_result_id: IdString,
        message: String,
        #[serde(default = "yes")]
        end_turn: bool,
        #[serde(default)]
        end_conversation: bool,
        #[serde(default)]
        message_id: Option<String>,
    },
    ToolCall {
        simulation_result_id: IdString,
        name: String,
        #[serde(default)]
        parameters: Option<Object>,
        #[serde(default)]
        output: Value,
        #[serde(default)]
        message_id: Option<String>,
    },
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MessageTaken {
    /// The conversation.
    pub simulation_result_id: String,
    /// `success`.
    pub status: String,
    /// Nothing more is answered: the conversation has ended.
    pub end_conversation: bool,
}

/// A message of the agent as it is kept until the conversation is over.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrived {
    /// When, milliseconds since 1970.
    pub at_ms: i64,
    /// The agent's name for it.
    pub message_id: Option<String>,
    /// Emptied when the conversation is over.
    pub text: String,
    /// More of the same turn follows.
    pub more: bool,
    /// It ends the conversation.
    pub ends: bool,
}

/// The messages of the agent in one conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Inbox {
    /// In order of arrival.
    #[serde(default)]
    pub messages: Vec<Arrived>,
    /// Names of tool calls that came, so that repeats are known.
    #[serde(default)]
    pub call_ids: Vec<String>,
    /// The Digital Human has said its last words.
    #[serde(default)]
    pub closed: bool,
    /// The agent or a request has ended the conversation: nothing more is taken.
    #[serde(default)]
    pub ended: bool,
}

impl Inbox {
    /// Nothing came.
    pub fn is_empty(&self) -> bool {
        *self == Inbox::default()
    }

    /// Whether a message or tool call of this name came before.
    pub fn knows(&self, message_id: &str) -> bool {
        let mut names = self.messages.iter().filter_map(|message| message.message_id.as_ref()).chain(&self.call_ids);
        names.any(|known| known == message_id)
    }

    /// Keeps names alone: the words stand in the transcript.
    pub fn close(&mut self) {
        self.closed = true;
        self.messages.iter_mut().for_each(|message| message.text.clear());
    }
}

/// Asks for one turn of a Digital Human.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct TurnSpec {
    /// The caller's name for the conversation.
    #[schemars(extend("x-aliases" = ["conversation_key"]))]
    pub redis_key: String,
    /// The Digital Human.
    pub test_case_id: IdString,
    /// `text`, or anything else for a frame.
    #[serde(default = "frames")]
    pub response_format: String,
    /// What is said to it; nothing at the beginning: it begins.
    #[serde(default)]
    pub message: String,
}

fn frames() -> String {
    "frames".to_owned()
}

/// What a Digital Human says.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Turn {
    /// The words alone.
    Text {
        /// May be empty: it is silent.
        response: String,
    },
    /// With what is around them.
    Frame {
        /// `text`.
        #[serde(rename = "type")]
        kind: String,
        /// The frame.
        data: Frame,
    },
}

/// Words in a frame.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Frame {
    /// May be empty: it is silent.
    pub text: String,
    /// It has said its last words.
    pub end_conversation: bool,
}

impl Turn {
    /// In the form that was asked for.
    pub fn of(format: &str, text: String, end_conversation: bool) -> Turn {
        match format {
            "text" => Turn::Text { response: text },
            _ => Turn::Frame { kind: "text".to_owned(), data: Frame { text, end_conversation } },
        }
    }
}

/// Asks for a run of an agent that writes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct TextQueueSpec {
    /// What to run.
    pub simulation_id: IdString,
    /// Version under test.
    #[serde(default)]
    pub agent_version_id: Option<String>,
    /// Deprecated twin of agent_version_id.
    #[serde(default)]
    #[schemars(extend("deprecated" = true))]
    pub prompt_id: Option<String>,
    /// Deprecated; not used.
    #[serde(default)]
    #[schemars(extend("deprecated" = true))]
    pub knowledge_base_id: Option<String>,
    /// Which Digital Humans; absent or []: all of the simulation.
    #[serde(default)]
    pub digital_human_ids: Option<Vec<IdString>>,
    /// Results per Digital Human.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub runs_per_digital_human: Option<i64>,
}

impl TextQueueSpec {
    /// The same as any run is asked for. A version that is no uuid names none: the nil uuid, which no version has.
    pub fn general(self) -> QueueSpec {
        let named = |text: String| text.parse().unwrap_or(Uuid::nil());
        QueueSpec {
            simulation_id: self.simulation_id,
            agent_version_id: self.agent_version_id.map(named),
            prompt_id: self.prompt_id.map(named),
            digital_human_ids: self.digital_human_ids,
            runs_per_digital_human: self.runs_per_digital_human,
            ..QueueSpec::default()
        }
    }
}

/// Asks for a run of an agent that texts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct SmsQueueSpec {
    /// What to run.
    #[serde(flatten)]
    pub run: TextQueueSpec,
    /// Ends conversations that are running between the same numbers.
    #[serde(default)]
    pub terminate_overlapping_simulations: bool,
}
