//! Text conversations: messages of agents, how they are stored until they are read, and requests for runs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::id::IdString;
use super::run::QueueSpec;
use super::{Object, yes};

/// Maximum number of messages and tool calls of an agent in one conversation.
pub const INBOX_MOST: usize = 5000;

/// True if two numbers have the same digits; carriers write them with and without plus sign, blanks and hyphens.
pub fn same_number(one: &str, other: &str) -> bool {
    digits(one) == digits(other)
}

/// Start of the addresses of conversations between two numbers. No user part of a call has a blank.
const PAIR: &str = "texts: ";

/// Returns the address that reserves two numbers, the Digital Human's and the agent's, for one conversation. The blank
/// in it keeps calls from reaching it.
pub fn pair_address(numbers: [&str; 2]) -> String {
    let [own, agent] = numbers.map(digits);
    format!("{PAIR}{own} {agent}")
}

/// True for the address of the conversations between two numbers.
pub fn is_pair(address: &str) -> bool {
    address.starts_with(PAIR)
}

/// Returns the address of a conversation under the name that the platform of its agent gave it. The blank in it keeps
/// calls from reaching it.
pub fn conversation_address(agent_id: i64, conversation: &str) -> String {
    format!("posts: {agent_id} {conversation}")
}

fn digits(number: &str) -> String {
    number.chars().filter(char::is_ascii_digit).collect()
}

/// Message of an agent in a text conversation, told apart by `type`: a message, unless it says otherwise, or a tool
/// call.
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

/// Answer to a message of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MessageTaken {
    /// Identifier of the result, which is the conversation.
    pub simulation_result_id: String,
    /// Always `success`; kept for compatibility.
    pub status: String,
    /// True: the conversation has ended and nothing more is answered.
    pub end_conversation: bool,
}

/// Message of the agent as it is stored until the conversation ends.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arrived {
    /// Time of arrival, in milliseconds since 1970.
    pub at_ms: i64,
    /// Identifier that the agent gave it; null: none.
    pub message_id: Option<String>,
    /// Words of the message; emptied when the conversation ends.
    pub text: String,
    /// True: more of the same turn follows.
    pub more: bool,
    /// True: the message ends the conversation.
    pub ends: bool,
}

/// Messages of the agent in one conversation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Inbox {
    /// Messages of the agent, oldest first.
    #[serde(default)]
    pub messages: Vec<Arrived>,
    /// Identifiers of tool calls that arrived, by which repeats are recognised.
    #[serde(default)]
    pub call_ids: Vec<String>,
    /// True: the Digital Human has said its last words.
    #[serde(default)]
    pub closed: bool,
    /// True: the agent or a request has ended the conversation, and nothing more is accepted.
    #[serde(default)]
    pub ended: bool,
}

impl Inbox {
    /// True if it has its initial state.
    pub fn is_empty(&self) -> bool {
        *self == Inbox::default()
    }

    /// True if a message or tool call of this identifier arrived before.
    pub fn knows(&self, message_id: &str) -> bool {
        let mut names = self.messages.iter().filter_map(|message| message.message_id.as_ref()).chain(&self.call_ids);
        names.any(|known| known == message_id)
    }

    /// Closes the inbox and drops the words, which stand in the transcript; identifiers stay.
    pub fn close(&mut self) {
        self.closed = true;
        self.messages.iter_mut().for_each(|message| message.text.clear());
    }
}

/// Request for one turn of a Digital Human.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
pub struct TextTurnRequest {
    /// Key of the conversation, chosen by the caller.
    #[schemars(extend("x-aliases" = ["conversation_key"]))]
    pub redis_key: String,
    /// Identifier of the Digital Human.
    pub test_case_id: IdString,
    /// Form of the answer: `text`, or anything else for a frame.
    #[serde(default = "frames")]
    pub response_format: String,
    /// Words to the Digital Human; empty at the start: it begins.
    #[serde(default)]
    pub message: String,
}

fn frames() -> String {
    "frames".to_owned()
}

/// Turn of a Digital Human.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum TextTurn {
    /// Answer with the words as one member.
    Text {
        /// Words of the Digital Human; empty: it is silent.
        response: String,
    },
    /// Answer with the words in a frame.
    Frame {
        /// Type of the frame, always `text`.
        #[serde(rename = "type")]
        kind: String,
        /// Content of the frame.
        data: Frame,
    },
}

/// Content of a frame.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Frame {
    /// Words of the Digital Human; empty: it is silent.
    pub text: String,
    /// True: the Digital Human has said its last words.
    pub end_conversation: bool,
}

impl TextTurn {
    /// Returns the turn in the form that was asked for.
    pub fn of(format: &str, text: String, end_conversation: bool) -> TextTurn {
        match format {
            "text" => TextTurn::Text { response: text },
            _ => TextTurn::Frame { kind: "text".to_owned(), data: Frame { text, end_conversation } },
        }
    }
}

/// Request for a run of an agent that answers in text.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct TextQueueSpec {
    /// Simulation that is run.
    pub simulation_id: IdString,
    /// Agent version to test; absent: the simulation's.
    #[serde(default)]
    pub agent_version_id: Option<String>,
    /// Deprecated twin of agent_version_id.
    #[serde(default)]
    #[schemars(extend("deprecated" = true))]
    pub prompt_id: Option<String>,
    /// Deprecated, accepted and ignored.
    #[serde(default)]
    #[schemars(extend("deprecated" = true))]
    pub knowledge_base_id: Option<String>,
    /// Digital Humans to run; absent or []: all of the simulation.
    #[serde(default)]
    pub digital_human_ids: Option<Vec<IdString>>,
    /// Communities whose members to run, beside the Digital Humans that are named; all are of the simulation.
    #[serde(default)]
    pub community_ids: Option<Vec<Uuid>>,
    /// Results per Digital Human; absent: the simulation's, then 1.
    #[serde(default)]
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub runs_per_digital_human: Option<i64>,
}

impl TextQueueSpec {
    /// Returns the general request for a run. A version that is no uuid becomes the nil uuid, which no version has.
    pub fn general(self) -> QueueSpec {
        let named = |text: String| text.parse().unwrap_or(Uuid::nil());
        QueueSpec {
            simulation_id: self.simulation_id,
            agent_version_id: self.agent_version_id.map(named),
            prompt_id: self.prompt_id.map(named),
            digital_human_ids: self.digital_human_ids,
            community_ids: self.community_ids,
            runs_per_digital_human: self.runs_per_digital_human,
            ..QueueSpec::default()
        }
    }
}

/// Request for a run of an agent that answers in SMS.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
pub struct SmsQueueSpec {
    /// Fields of the request for any text run.
    #[serde(flatten)]
    pub run: TextQueueSpec,
    /// True: conversations that are running between the same numbers are ended.
    #[serde(default)]
    pub terminate_overlapping_simulations: bool,
}
