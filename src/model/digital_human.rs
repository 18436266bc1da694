//! A Digital Human: the simulated caller, its goal, voice and behaviour.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use super::expectation::Expectation;
pub use super::expectation::Role;
use super::playback::{Interruptions, ScriptedResponse};
use super::time::Timestamp;
use super::{Object, one, yes};

words! {
    /// Language spoken; `ad` follows the agent's.
    Language {
        En = "en", Es = "es", Pt = "pt", Ja = "ja", Tr = "tr", Hi = "hi", Ar = "ar", Ru = "ru", Zh = "zh", Ml = "ml",
        Fr = "fr", Yue = "yue", Vi = "vi", De = "de", Ko = "ko", Ad = "ad",
    } default En
}

words! {
    /// Accent of the voice.
    Accent {
        Multilingual = "multilingual", American = "american", American2 = "american2", Mature = "mature",
        Southern = "southern", Italian = "italian", Indian = "indian", British = "british", Scottish = "scottish",
        Irish = "irish", Welsh = "welsh", Australian = "australian", Mexican = "mexican", Spanish = "spanish",
        Portuguese = "portuguese", French = "french", Turkish = "turkish", Japanese = "japanese", Korean = "korean",
        Hindi = "hindi", Arabic = "arabic", Russian = "russian", Chinese = "chinese", German = "german",
        Autodetect = "autodetect",
    }
}

words! {
    /// Gender of the voice.
    Gender { Male = "male", Female = "female" }
}

words! {
    /// What is heard behind the caller.
    BackgroundNoise {
        None = "none", Office = "office", Talking = "talking", Traffic = "traffic", Cafe = "cafe", Park = "park",
        Tv = "tv", NoisyRestaurant = "noisy_restaurant", Hospital = "hospital", Custom = "custom",
    } default None
}

words! {
    /// How fast the caller speaks.
    VoiceSpeed { Slowest = "slowest", Slow = "slow", Normal = "normal", Fast = "fast", Fastest = "fastest" }
    default Normal
}

words! {
    /// Quality of a microphone or of a line.
    Quality { High = "high", Medium = "medium", Low = "low", Horrible = "horrible" } default High
}

words! {
    /// How well the language is spoken.
    Fluency { Beginner = "beginner", Intermediate = "intermediate", Native = "native" } default Native
}

words! {
    /// How many words a turn has.
    Verbosity { Low = "low", Medium = "medium", High = "high" } default Medium
}

words! {
    /// How numbers are given that could be keyed.
    DtmfOrVoiced { Voiced = "voiced", Dtmf = "dtmf" } default Voiced
}

words! {
    /// Type of a trait's value.
    TraitType { Boolean = "BOOLEAN", String = "STRING", Date = "DATE", Number = "NUMBER" }
}

words! {
    /// Where the first words come from.
    SpeaksFirstMode { Custom = "custom", AiGenerated = "ai_generated" }
}

words! {
    /// Channel of a journey step.
    Modality { Voice = "voice", Sms = "sms", Email = "email", Chat = "chat" } default Voice
}

words! {
    /// Who makes contact in a journey step: inbound, the Digital Human; outbound, the agent.
    Direction { Inbound = "inbound", Outbound = "outbound" } default Inbound
}

/// A tool call that the agent should make.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ExpectedToolCall {
    /// Name of the tool.
    pub name: String,
    /// Members that the call's parameters must contain.
    #[serde(default)]
    pub parameters: Option<Object>,
    /// What its output must contain.
    #[serde(default)]
    pub output: Value,
}

/// A fact about the caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Trait {
    /// Name, used in templates and headers.
    pub trait_name: String,
    /// Type of the value.
    pub trait_data_type: TraitType,
    /// The value.
    pub value: Value,
    /// Sent as a header of the INVITE.
    #[serde(default)]
    pub is_sip_header: bool,
}

/// Who speaks first, and what.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpeaksFirst {
    /// True: the Digital Human.
    pub speaks_first: bool,
    /// custom or ai_generated.
    #[serde(default)]
    pub mode: Option<SpeaksFirstMode>,
    /// First words of mode custom.
    #[serde(default)]
    pub message: Option<String>,
    /// Mode ai_generated makes the words anew for each conversation; false: once, and keeps them.
    #[serde(default)]
    pub dynamic: bool,
}

/// One line of a transcript to replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptLine {
    /// Who says it.
    #[schemars(extend("enum" = ["USER", "AGENT"]))]
    pub role: Role,
    /// The words.
    pub utterance: String,
}

fn a_day() -> f64 {
    86_400.0
}

/// One contact of a journey.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JourneyStep {
    /// 1..N without gaps.
    pub step: i64,
    /// What the caller wants in this step.
    #[serde(default)]
    pub intent: String,
    /// When the step counts as passed.
    #[serde(default)]
    pub success_criteria: String,
    /// Channel.
    #[serde(default)]
    pub modality: Modality,
    /// Who makes contact.
    #[serde(default)]
    pub direction: Direction,
    /// Seconds after the end of the step before.
    #[serde(default)]
    pub wait_seconds: f64,
    /// Seconds that an outbound step is waited for.
    #[serde(default = "a_day")]
    pub response_window_seconds: f64,
    /// The Digital Human does not answer.
    #[serde(default)]
    pub unresponsive: bool,
    /// E.164; overrides the Digital Human's.
    #[serde(default)]
    pub phone_number: Option<String>,
}

/// Probes during the agent's speech, per minute of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Duplex {
    /// "mm-hmm".
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 20.0))]
    pub backchannel_per_minute: f64,
    /// A cough.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 10.0))]
    pub vocal_tic_per_minute: f64,
    /// Words to somebody else.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 10.0))]
    pub non_directed_per_minute: f64,
}

fn default_volume() -> f64 {
    0.8
}

fn default_silence_instructions() -> String {
    "default".into()
}

fn default_endpointing() -> f64 {
    1.5
}

fn default_creativity() -> f64 {
    0.7
}

/// The writable fields of a Digital Human.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DigitalHumanSpec {
    /// Stable identifier for the declarative push.
    #[serde(default)]
    pub svc_as_code_id: Option<Uuid>,
    /// What the caller wants; a new one may call it `description`.
    #[serde(default, alias = "description")]
    #[schemars(extend("x-aliases" = ["description"]))]
    pub intent: String,
    /// When the conversation counts as passed.
    #[serde(default)]
    pub success_criteria: String,
    /// Name; drawn by language and gender when absent. A new one may call it `human_name`.
    #[serde(default, alias = "human_name")]
    #[schemars(extend("x-aliases" = ["human_name"]))]
    pub name: Option<String>,
    /// Free handle.
    #[serde(default)]
    pub test_name: Option<String>,
    /// Who the caller is.
    #[serde(default)]
    pub role_description: Option<String>,
    /// One label.
    #[serde(default)]
    pub tag: Option<String>,
    /// Free labels.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Rules of the agent's prompt that this caller probes.
    #[serde(default)]
    pub system_prompt_rule_ids: Vec<String>,
    /// Their texts.
    #[serde(default)]
    pub system_prompt_rule_quotes: Vec<String>,
    /// Language spoken.
    #[serde(default)]
    pub language: Language,
    /// Null: default voice of the language.
    #[serde(default)]
    pub accent: Option<Accent>,
    /// Null: drawn.
    #[serde(default)]
    pub gender: Option<Gender>,
    /// Voice id of the synthesizer.
    #[serde(default)]
    pub custom_voice_id: Option<String>,
    /// What is heard behind the caller.
    #[serde(default)]
    pub background_noise: BackgroundNoise,
    /// http or https URL, or id of an uploaded noise.
    #[serde(default)]
    pub custom_background_noise_url: Option<String>,
    /// 0 to 1; SNR in dB = 30 - 25 x volume.
    #[serde(default = "default_volume")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub background_noise_volume: f64,
    /// How fast the caller speaks.
    #[serde(default)]
    pub voice_speed: VoiceSpeed,
    /// Microphone.
    #[serde(default)]
    pub audio_quality: Quality,
    /// Line.
    #[serde(default)]
    pub connection_quality: Quality,
    /// How well the language is spoken.
    #[serde(default)]
    pub fluency: Fluency,
    /// How many words a turn has.
    #[serde(default)]
    pub verbosity: Verbosity,
    /// E.164; own number.
    #[serde(default)]
    pub phone_number: Option<String>,
    /// Digits dialled after connect; comma is a pause.
    #[serde(default)]
    pub extension: Option<String>,
    /// E.164; sender of text messages.
    #[serde(default)]
    pub outbound_text_number: Option<String>,
    /// Overrides the agent's.
    #[serde(default)]
    pub websocket_url: Option<String>,
    /// Dialect in place of the agent's.
    #[serde(default)]
    pub websocket_dialect: Option<String>,
    /// When a follow-up SMS counts as passed.
    #[serde(default)]
    pub follow_up_sms_success_criteria: Option<String>,
    /// Tool calls that the agent should make.
    #[serde(default)]
    pub expected_tool_calls: Vec<ExpectedToolCall>,
    /// The model may hang up.
    #[serde(default = "yes")]
    pub allow_end_call_tool: bool,
    /// The model may send digits.
    #[serde(default = "yes")]
    pub allow_dtmf_tool: bool,
    /// The model may stay silent.
    #[serde(default = "yes")]
    pub allow_silence_tool: bool,
    /// `default`, or own instructions.
    #[serde(default = "default_silence_instructions")]
    pub silence_tool_instructions: String,
    /// How numbers are given that could be keyed.
    #[serde(default)]
    pub default_dtmf_or_voiced: DtmfOrVoiced,
    /// Seconds of the agent's silence before the turn is taken, 0 to 60.
    #[serde(default = "default_endpointing")]
    #[schemars(range(min = 0.0, max = 60.0))]
    pub endpointing_delay: f64,
    /// Temperature of the model, 0 to 2.
    #[serde(default = "default_creativity")]
    #[schemars(range(min = 0.0, max = 2.0))]
    pub creativity: f64,
    /// Seconds of mutual silence, at least 15; null: 16.
    #[serde(default)]
    #[schemars(range(min = 15.0))]
    pub silence_timeout: Option<f64>,
    /// Words of the agent that end the call.
    #[serde(default)]
    pub hangup_phrases: Vec<String>,
    /// When the model hangs up.
    #[serde(default)]
    pub hangup_instructions: Option<String>,
    /// Facts about the caller.
    #[serde(default)]
    pub traits: Vec<Trait>,
    /// When the caller cuts in; null: never.
    #[serde(default)]
    pub interruptions: Option<Interruptions>,
    /// Fixed answers.
    #[serde(default)]
    pub scripted_responses: Vec<ScriptedResponse>,
    /// Only the first unused rule is tested.
    #[serde(default)]
    pub scripted_responses_ordered: bool,
    /// Who speaks first.
    #[serde(default)]
    pub speaks_first_config: Option<SpeaksFirst>,
    /// Transcript that this caller replays.
    #[serde(default)]
    pub original_transcript: Option<String>,
    /// The same, by line; made of its lines `ROLE: text` unless it is given.
    #[serde(default)]
    pub formatted_transcript: Option<Vec<TranscriptLine>>,
    /// Steps that are played in order.
    #[serde(default)]
    pub enriched_playback: Option<Vec<Object>>,
    /// The call ends at the first step of the agent that is not met.
    #[serde(default)]
    pub stop_on_failure: bool,
    /// Expectations that the conversation is held against.
    #[serde(default)]
    #[schemars(length(max = 100))]
    pub expectations: Vec<Expectation>,
    /// Name of the scenario of a suite that this caller is; its seeds follow from it.
    #[serde(default)]
    pub suite_name: Option<String>,
    /// Scenario that this caller was made from.
    #[serde(default)]
    pub workflow_v2_id: Option<Uuid>,
    /// Path of that scenario, from 0.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub workflow_path_index: Option<i64>,
    /// Node ids of that path.
    #[serde(default)]
    pub tested_path: Option<Vec<String>>,
    /// Room metadata.
    #[serde(default, rename = "P1_metadata")]
    pub p1_metadata: Option<Object>,
    /// Contacts of a journey.
    #[serde(default)]
    pub journey_steps: Option<Vec<JourneyStep>>,
    /// Can be called at any time; needs a phone number and an always-on simulation.
    #[serde(default)]
    pub always_on_mode: bool,
    /// Listens now; when absent: always_on_mode with a phone number.
    #[serde(default)]
    pub always_on_active: Option<bool>,
    /// Repetitions, 1 to 1000.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1000))]
    pub num_runs: i64,
    /// Red team.
    #[serde(default)]
    pub attack_vector: Option<String>,
    /// Red team.
    #[serde(default)]
    pub attack_type: Option<String>,
    /// Red team.
    #[serde(default)]
    pub attack_plan: Option<Object>,
    /// Probes during the agent's speech.
    #[serde(default)]
    pub duplex: Option<Duplex>,
}

impl Default for DigitalHumanSpec {
    fn default() -> Self {
        serde_json::from_str("{}").expect("every field has a default")
    }
}

impl DigitalHumanSpec {
    /// The number that it listens on at all times.
    pub fn listens_on(&self) -> Option<&str> {
        let active = self.always_on_mode && self.always_on_active.unwrap_or(true);
        self.phone_number.as_deref().filter(|_| active)
    }

    /// True when its contacts are given one by one.
    pub fn has_journey(&self) -> bool {
        self.journey_steps.as_ref().is_some_and(|steps| !steps.is_empty())
    }

    /// The uploaded background noise that it names.
    pub fn uploaded_noise(&self) -> Option<Uuid> {
        self.custom_background_noise_url.as_deref().and_then(|id| Uuid::parse_str(id).ok())
    }

    /// True when it was made from a scenario: its wording is the scenario's.
    pub fn is_workflow(&self) -> bool {
        self.tag.as_ref().is_some_and(|tag| tag.to_lowercase().contains("workflow"))
    }
}

/// A Digital Human as read.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DigitalHumanRecord {
    /// Its id.
    pub id: i64,
    /// The writable fields.
    #[serde(flatten)]
    pub spec: DigitalHumanSpec,
    /// When it was made.
    pub created_at: Timestamp,
}

/// A Digital Human with the simulations that it is part of.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LinkedDigitalHuman {
    /// The Digital Human.
    pub digital_human: DigitalHumanRecord,
    /// Its simulations, oldest link first.
    pub simulation_ids: Vec<i64>,
    /// The first of them.
    pub simulation_id: Option<i64>,
}
