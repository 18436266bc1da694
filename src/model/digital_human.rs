//! A Digital Human: the simulated caller, its goal, voice and behaviour.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::expectation::Expectation;
pub use super::expectation::Role;
use super::playback::{Interruptions, ScriptedResponse};
use super::schema::telephone_number;
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
    /// Sound that is mixed in behind the caller's voice.
    BackgroundNoise {
        None = "none", Office = "office", Talking = "talking", Traffic = "traffic", Cafe = "cafe", Park = "park",
        Tv = "tv", NoisyRestaurant = "noisy_restaurant", Hospital = "hospital", Custom = "custom",
    } default None
}

words! {
    /// Speed of the caller's speech.
    VoiceSpeed { Slowest = "slowest", Slow = "slow", Normal = "normal", Fast = "fast", Fastest = "fastest" }
    default Normal
}

words! {
    /// Quality of a microphone or of a connection.
    Quality { High = "high", Medium = "medium", Low = "low", Horrible = "horrible" } default High
}

words! {
    /// Command of the language that the caller speaks.
    Fluency { Beginner = "beginner", Intermediate = "intermediate", Native = "native" } default Native
}

words! {
    /// Length of the caller's turns.
    Verbosity { Low = "low", Medium = "medium", High = "high" } default Medium
}

words! {
    /// Form in which numbers are given that could be keyed.
    DtmfOrVoiced { Voiced = "voiced", Dtmf = "dtmf" } default Voiced
}

words! {
    /// Type of a trait's value.
    TraitType { Boolean = "BOOLEAN", String = "STRING", Date = "DATE", Number = "NUMBER" }
}

words! {
    /// Source of the first words.
    SpeaksFirstMode { Custom = "custom", AiGenerated = "ai_generated" }
}

words! {
    /// Channel of a journey step.
    Modality { Voice = "voice", Sms = "sms", Email = "email", Chat = "chat" } default Voice
}

words! {
    /// Side that makes contact in a journey step: inbound, the Digital Human; outbound, the agent.
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
    /// Value that the tool's output must contain; null: any output.
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
    /// Value of the trait; must fit `trait_data_type`.
    pub value: Value,
    /// True: sent as a header field of the INVITE.
    #[serde(default)]
    pub is_sip_header: bool,
}

/// Choice of the side that speaks first, and of the first words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SpeaksFirst {
    /// True: the Digital Human speaks first.
    pub speaks_first: bool,
    /// Source of the first words; needed when `speaks_first` is true.
    #[serde(default)]
    pub mode: Option<SpeaksFirstMode>,
    /// First words; needed for mode custom.
    #[serde(default)]
    pub message: Option<String>,
    /// Mode ai_generated: true: new words for each conversation; false: made once and kept.
    #[serde(default)]
    pub dynamic: bool,
}

/// One utterance of a transcript to replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptLine {
    /// Side that says it; USER is the caller.
    #[schemars(extend("enum" = ["USER", "AGENT"]))]
    pub role: Role,
    /// Words of the utterance.
    pub utterance: String,
}

fn a_day() -> f64 {
    86_400.0
}

/// One contact of a journey.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JourneyStep {
    /// Number of the step; steps count from 1 without gaps.
    pub step: i64,
    /// Goal of the caller in this step, not empty.
    #[serde(default)]
    pub intent: String,
    /// Criteria by which the step counts as passed.
    #[serde(default)]
    pub success_criteria: String,
    /// Channel of the step; default voice.
    #[serde(default)]
    pub modality: Modality,
    /// Side that makes contact; default inbound.
    #[serde(default)]
    pub direction: Direction,
    /// Seconds between the end of the step before and this one.
    #[serde(default)]
    pub wait_seconds: f64,
    /// Seconds that an outbound step waits for the agent; default one day.
    #[serde(default = "a_day")]
    pub response_window_seconds: f64,
    /// True: the Digital Human does not answer.
    #[serde(default)]
    pub unresponsive: bool,
    /// Phone number of the step, E.164; overrides that of the Digital Human.
    #[serde(default)]
    #[schemars(extend("x-rules" = telephone_number()))]
    pub phone_number: Option<String>,
}

/// Probes during the agent's speech, per minute of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Duplex {
    /// Backchannels ("mm-hmm") per minute of the agent's speech, 0 to 20.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 20.0))]
    pub backchannel_per_minute: f64,
    /// Coughs and similar sounds per minute of the agent's speech, 0 to 10.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 10.0))]
    pub vocal_tic_per_minute: f64,
    /// Words to somebody else per minute of the agent's speech, 0 to 10.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 10.0))]
    pub non_directed_per_minute: f64,
}

words! {
    /// Codec of a telephone line.
    LineCodec { Pcmu = "PCMU" }
}

fn default_burst() -> f64 {
    1.0
}

/// Line between the caller and the agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Line {
    /// Only codec that a SIP call offers. Other channels carry the caller's voice through its band and its steps. Null:
    /// the codecs of the settings.
    #[serde(default)]
    pub codec: Option<LineCodec>,
    /// Packets that are lost of what the caller sends, 0 to 50 percent, in place of the losses and jitter of
    /// connection_quality. What the caller hears is whole, so that it is not this side that mishears. Null: as
    /// connection_quality says.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 50.0))]
    pub loss_pct: Option<f64>,
    /// Mean length of a run of these losses, 1 to 20 packets; default 1, each is lost by itself.
    #[serde(default = "default_burst")]
    #[schemars(range(min = 1.0, max = 20.0))]
    pub mean_burst: f64,
    /// Delay of everything that the caller sends, 0 to 5000 ms: the agent answers that much later.
    #[serde(default)]
    #[schemars(range(min = 0, max = 5000))]
    pub delay_ms: i64,
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

/// Keys of an extension besides digits; a comma is a pause.
const KEYS: &str = "*#,";
/// Longest extension, in characters.
const MAX_EXTENSION_CHARS: usize = 64;

/// True for 1 to 64 digits, `*`, `#` and commas.
pub fn is_extension(text: &str) -> bool {
    let is_key = |c: char| c.is_ascii_digit() || KEYS.contains(c);
    (1..=MAX_EXTENSION_CHARS).contains(&text.len()) && text.chars().all(is_key)
}

fn extension_rule() -> Value {
    json!({ "pattern": format!("^[0-9{KEYS}]+$"), "minLength": 1, "maxLength": MAX_EXTENSION_CHARS })
}

/// The writable fields of a Digital Human.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DigitalHumanSpec {
    /// Stable identifier for the declarative push.
    #[serde(default)]
    pub svc_as_code_id: Option<Uuid>,
    /// Goal of the caller; a create request may name the field `description`.
    #[serde(default, alias = "description")]
    #[schemars(extend("x-aliases" = ["description"]))]
    pub intent: String,
    /// Criteria by which the conversation counts as passed.
    #[serde(default)]
    pub success_criteria: String,
    /// Name; null: drawn from the seed by language and gender. A create request may name the field `human_name`.
    #[serde(default, alias = "human_name")]
    #[schemars(extend("x-aliases" = ["human_name"]))]
    pub name: Option<String>,
    /// Handle of the user's choice, by which the Digital Human can be read.
    #[serde(default)]
    pub test_name: Option<String>,
    /// Description of the caller's person and situation.
    #[serde(default)]
    pub role_description: Option<String>,
    /// Label; one that contains `workflow` marks a Digital Human made from a scenario.
    #[serde(default)]
    pub tag: Option<String>,
    /// Labels of the user's choice.
    #[serde(default)]
    pub tags: Vec<String>,
    /// Rules of the agent's prompt that this caller probes.
    #[serde(default)]
    pub system_prompt_rule_ids: Vec<String>,
    /// Texts of these rules.
    #[serde(default)]
    pub system_prompt_rule_quotes: Vec<String>,
    /// Language that the caller speaks; default en.
    #[serde(default)]
    pub language: Language,
    /// Accent of the voice; null: default voice of the language.
    #[serde(default)]
    pub accent: Option<Accent>,
    /// Gender of the voice; null: drawn from the seed.
    #[serde(default)]
    pub gender: Option<Gender>,
    /// Voice id of the synthesizer; null: chosen by language, accent and gender.
    #[serde(default)]
    pub custom_voice_id: Option<String>,
    /// Sound that is mixed in behind the caller's voice; default none.
    #[serde(default)]
    pub background_noise: BackgroundNoise,
    /// Background noise of the kind `custom`: an http or https URL, or the id of an uploaded noise.
    #[serde(default)]
    pub custom_background_noise_url: Option<String>,
    /// Volume of the background noise, 0 to 1; default 0.8. The SNR in dB is 30 - 25 x volume.
    #[serde(default = "default_volume")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub background_noise_volume: f64,
    /// Speed of the caller's speech; default normal.
    #[serde(default)]
    pub voice_speed: VoiceSpeed,
    /// Quality of the caller's microphone; default high.
    #[serde(default)]
    pub audio_quality: Quality,
    /// Quality of the caller's connection; default high.
    #[serde(default)]
    pub connection_quality: Quality,
    /// Command of the language that the caller speaks; default native.
    #[serde(default)]
    pub fluency: Fluency,
    /// Length of the caller's turns; default medium.
    #[serde(default)]
    pub verbosity: Verbosity,
    /// Phone number of the caller, E.164.
    #[serde(default)]
    #[schemars(extend("x-rules" = telephone_number()))]
    pub phone_number: Option<String>,
    /// Digits keyed after connect: 0-9, *, # and comma, a pause of one second.
    #[serde(default)]
    #[schemars(extend("x-rules" = extension_rule()))]
    pub extension: Option<String>,
    /// Phone number that text messages are sent from, E.164.
    #[serde(default)]
    #[schemars(extend("x-rules" = telephone_number()))]
    pub outbound_text_number: Option<String>,
    /// WebSocket URL in place of the agent's.
    #[serde(default)]
    pub websocket_url: Option<String>,
    /// WebSocket dialect in place of the agent's.
    #[serde(default)]
    pub websocket_dialect: Option<String>,
    /// Criteria by which a follow-up SMS counts as passed.
    #[serde(default)]
    pub follow_up_sms_success_criteria: Option<String>,
    /// Tool calls that the agent should make.
    #[serde(default)]
    pub expected_tool_calls: Vec<ExpectedToolCall>,
    /// True: the model may hang up.
    #[serde(default = "yes")]
    pub allow_end_call_tool: bool,
    /// True: the model may send DTMF digits.
    #[serde(default = "yes")]
    pub allow_dtmf_tool: bool,
    /// True: the model may stay silent.
    #[serde(default = "yes")]
    pub allow_silence_tool: bool,
    /// Instructions on when to stay silent; `default`: the built-in rule.
    #[serde(default = "default_silence_instructions")]
    pub silence_tool_instructions: String,
    /// Form in which numbers are given that could be keyed; default voiced.
    #[serde(default)]
    pub default_dtmf_or_voiced: DtmfOrVoiced,
    /// Seconds of the agent's silence before the caller takes its turn, 0 to 60.
    #[serde(default = "default_endpointing")]
    #[schemars(range(min = 0.0, max = 60.0))]
    pub endpointing_delay: f64,
    /// Temperature of the language model, 0 to 2; default 0.7.
    #[serde(default = "default_creativity")]
    #[schemars(range(min = 0.0, max = 2.0))]
    pub creativity: f64,
    /// Seconds of mutual silence after which the call ends, at least 15; null: 16.
    #[serde(default)]
    #[schemars(range(min = 15.0))]
    pub silence_timeout: Option<f64>,
    /// Words of the agent that end the call.
    #[serde(default)]
    pub hangup_phrases: Vec<String>,
    /// Instructions to the model on when to hang up.
    #[serde(default)]
    pub hangup_instructions: Option<String>,
    /// Traits: facts about the caller, used in its words and in templates.
    #[serde(default)]
    pub traits: Vec<Trait>,
    /// Rule by which the caller interrupts the agent; null: never.
    #[serde(default)]
    pub interruptions: Option<Interruptions>,
    /// Fixed responses to words of the agent.
    #[serde(default)]
    pub scripted_responses: Vec<ScriptedResponse>,
    /// True: only the first unused response is tested.
    #[serde(default)]
    pub scripted_responses_ordered: bool,
    /// Choice of the side that speaks first; null: the side that was called.
    #[serde(default)]
    pub speaks_first_config: Option<SpeaksFirst>,
    /// Transcript that this caller replays.
    #[serde(default)]
    pub original_transcript: Option<String>,
    /// The same as utterances; made from the lines `ROLE: text` of `original_transcript` unless given.
    #[serde(default)]
    pub formatted_transcript: Option<Vec<TranscriptLine>>,
    /// Steps that are played in order.
    #[serde(default)]
    pub enriched_playback: Option<Vec<Object>>,
    /// True: the call ends at the first step of the agent that is not met.
    #[serde(default)]
    pub stop_on_failure: bool,
    /// Expectations that the conversation is checked against.
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
    /// Ids of the nodes on that path.
    #[serde(default)]
    pub tested_path: Option<Vec<String>>,
    /// Metadata of the room, in place of the agent's.
    #[serde(default, rename = "P1_metadata")]
    pub p1_metadata: Option<Object>,
    /// Contacts of a journey.
    #[serde(default)]
    pub journey_steps: Option<Vec<JourneyStep>>,
    /// True: can be called at any time; needs a phone number and an always-on simulation.
    #[serde(default)]
    pub always_on_mode: bool,
    /// True: listens now. Null: true when always_on_mode is set and there is a phone number.
    #[serde(default)]
    pub always_on_active: Option<bool>,
    /// Repetitions in each run, 1 to 1000; default 1.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 1000))]
    pub num_runs: i64,
    /// Red-team tests: identifier of the attack vector.
    #[serde(default)]
    pub attack_vector: Option<String>,
    /// Red-team tests: type of the attack.
    #[serde(default)]
    pub attack_type: Option<String>,
    /// Red-team tests: plan of the attack, a free object.
    #[serde(default)]
    pub attack_plan: Option<Object>,
    /// Probes during the agent's speech.
    #[serde(default)]
    pub duplex: Option<Duplex>,
    /// Line between the caller and the agent; null: a good one.
    #[serde(default)]
    pub line: Option<Line>,
}

impl Default for DigitalHumanSpec {
    fn default() -> Self {
        serde_json::from_str("{}").expect("every field has a default")
    }
}

impl DigitalHumanSpec {
    /// Returns the number that it has for text messages, in a step of its journey the step's; `None`: it has none.
    pub fn text_number<'a>(&'a self, step: Option<&'a JourneyStep>) -> Option<&'a str> {
        let of_step = step.map(|step| &step.phone_number).unwrap_or(&None);
        let numbers = [of_step, &self.outbound_text_number, &self.phone_number];
        numbers.into_iter().flatten().map(String::as_str).find(|number| !number.is_empty())
    }

    /// Returns the text that its seeds follow from: its stable identifier, its name in a suite, or its id.
    pub fn seed_key(&self, id: i64) -> String {
        let code = self.svc_as_code_id.map(|code| code.to_string());
        code.or_else(|| self.suite_name.clone()).unwrap_or_else(|| id.to_string())
    }

    /// Returns the phone number that it listens on at all times; `None`: it does not.
    pub fn listens_on(&self) -> Option<&str> {
        let active = self.always_on_mode && self.always_on_active.unwrap_or(true);
        self.phone_number.as_deref().filter(|_| active)
    }

    /// True if it has a journey of at least one step.
    pub fn has_journey(&self) -> bool {
        self.journey_steps.as_ref().is_some_and(|steps| !steps.is_empty())
    }

    /// Returns the id of the uploaded background noise that it names; `None` for a URL or no noise.
    pub fn uploaded_noise(&self) -> Option<Uuid> {
        self.custom_background_noise_url.as_deref().and_then(|id| Uuid::parse_str(id).ok())
    }

    /// True when it was made from a scenario: its wording is the scenario's.
    pub fn is_workflow(&self) -> bool {
        self.tag.as_ref().is_some_and(|tag| tag.to_lowercase().contains("workflow"))
    }
}

/// A Digital Human, as the API returns it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DigitalHumanRecord {
    /// Identifier of the Digital Human.
    pub id: i64,
    /// The writable fields, as stored.
    #[serde(flatten)]
    pub spec: DigitalHumanSpec,
    /// Time of its creation.
    pub created_at: Timestamp,
}

/// A Digital Human with the simulations that it is part of.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LinkedDigitalHuman {
    /// The Digital Human itself.
    pub digital_human: DigitalHumanRecord,
    /// Simulations that it is part of, oldest link first.
    pub simulation_ids: Vec<i64>,
    /// First of these simulations; null: none.
    pub simulation_id: Option<i64>,
    /// Settings that will act otherwise than they say, as told when it is saved; absent: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}
