//! Turns a result into a call: agent, address, caller, and the caller's behaviour. It takes resources and returns plain
//! values for the engine, or an error code. It places no call itself.

pub(crate) mod adapter;
mod adapter_after;
mod adapter_place;
mod adapter_ways;
mod begin;
mod behaviour;
pub(crate) mod definitions;
pub(super) mod dial;
mod dynamic;
mod ignored_fields;
mod ignored_steps;
mod impairment;
mod levels;
mod line;
mod mail;
mod opening;
mod phone;
mod pipeline;
mod platform;
mod preview;
mod room;
mod route;
mod socket;
mod sound;
mod steps;
mod text;
mod trial;
mod trunk_texts;
pub(super) mod trunks;
mod voices;

use std::collections::BTreeMap;
use std::sync::Arc;

use ringer_base::clock::Clock;
use ringer_base::config::{Behaviour, Capture, Dtmf};
use ringer_base::error::Result;
use ringer_base::post::Poster;
use ringer_engine::noise::NoiseBeds;
use ringer_engine::{Destination, Placement, known_words};
use ringer_human as human;
use ringer_human::{Facts, FluencyLevel, Profile, Verbosity, phrases};
use ringer_media::call::{CallSpec, DtmfMethod, Ears, Limits, Opening, TurnRules};
use ringer_media::codec::Codec;
use ringer_media::codec::opus::Opus;
use ringer_media::seed::Seed;
use ringer_model::Object;
use ringer_model::agent::{AgentDoc, ConnectionType, Provider};
use ringer_model::digital_human::{DigitalHumanSpec, DtmfOrVoiced, Fluency, JourneyStep, Language};
use ringer_model::error_code::ErrorCode;
use ringer_model::integration::IntegrationSpec;
use ringer_model::noise::NoiseDoc;
use ringer_model::result::ResultDoc;
use ringer_model::run::{QueueSpec, RunDoc};
use ringer_model::simulation::SimulationSpec;
use ringer_provider::{LanguageModel, Synthesizer, VoiceWanted};
use ringer_store::{Row, Session, Store};
use serde_json::{Value, json};
use uuid::Uuid;

use self::adapter::SessionPlan;
use self::adapter::tokens::Tokens;
pub use self::begin::{Begin, BeginText};
use self::dial::{Outgoing, RefusalCounts, foreign_number};
pub use self::line::PlatformLine;
pub use self::preview::Preview;
pub use self::room::RoomPlan;
pub use self::sound::Sounds;
pub use self::text::PreparedText;
pub(super) use self::text::alone;
pub use self::trial::{Trial, line_of};
use super::conversation::earlier::{Whose, earlier};
use super::conversation::facts::{identity, spoken_facts};
use super::conversation::obstacle::Obstacle;
use super::conversation::snapshot::keep_settings;
use super::library::human_rules::values::bind;
use super::outbox::addresses::number;
use crate::conversation::Conversations;
use crate::library::Library;
use crate::outbox::Outbox;
use crate::{Handles, LiveCalls, NotDone, Settings};

/// Calls and written conversations of results, as the engine is to place them.
#[derive(Clone)]
pub struct Placements {
    store: Store,
    clock: Clock,
    settings: Arc<Settings>,
    poster: Arc<Poster>,
    live: Arc<dyn LiveCalls>,
    refusals: Arc<RefusalCounts>,
    outbox: Arc<Outbox>,
    library: Arc<Library>,
    conversations: Arc<Conversations>,
    tokens: Arc<Tokens>,
}

impl Placements {
    /// Returns the subject with the handles that it needs.
    pub(super) fn new(
        handles: &Handles,
        outbox: &Arc<Outbox>,
        library: &Arc<Library>,
        conversations: &Arc<Conversations>,
    ) -> Placements {
        Placements {
            store: handles.store.clone(),
            clock: handles.clock.clone(),
            settings: handles.settings.clone(),
            poster: handles.poster.clone(),
            live: handles.live.clone(),
            refusals: handles.refusals.clone(),
            outbox: outbox.clone(),
            library: library.clone(),
            conversations: conversations.clone(),
            tokens: Arc::default(),
        }
    }
}

/// Time in milliseconds for a language model to compare a turn with scripted responses; afterwards its words decide.
const MEANING_MS: u32 = 1500;

/// Settings and providers that calls are placed with.
#[derive(Clone)]
pub struct PlacementSettings {
    /// Numbers behind the named levels.
    pub behaviour: Behaviour,
    /// Time in milliseconds that a due turn waits for the recognizer's final text.
    pub recognizer_grace_ms: u32,
    /// Codecs of a call, in order.
    pub codecs: Vec<Codec>,
    /// Way of sending digits.
    pub dtmf: Dtmf,
    /// Words the Digital Humans' turns; without one the built-in speaker does.
    pub model: Option<Arc<dyn LanguageModel>>,
    /// Synthesizer that chooses voices and speaks.
    pub synthesizer: Arc<dyn Synthesizer>,
    /// Loops of background noise that calls share.
    pub noises: Arc<NoiseBeds>,
    /// Sounds that users named.
    pub sounds: Arc<Sounds>,
}

/// A call that is ready to be placed.
pub struct PreparedCall {
    /// Call that the engine is to place.
    pub placement: Placement,
    /// Number that has to be admitted before the call is placed; `None`: none leaves.
    pub dial: Option<Outgoing>,
    /// Metadata of the result: what is in force.
    pub notes: Object,
    /// Settings that have no effect in this call, or a different one than asked.
    pub warnings: Vec<String>,
    /// Media room that has to be opened before the call is placed; `None`: the call is in none.
    pub room: Option<Box<RoomPlan>>,
    /// Session that has to be asked for before the call is placed; `None`: the call needs none.
    pub session: Option<Box<SessionPlan>>,
    /// Topic of tool calls in a media room.
    pub tool_topic: Option<String>,
}

/// The rows that a call is made of.
#[derive(Default)]
struct CallRows {
    result_id: i64,
    run_id: i64,
    seed: Seed,
    agent_id: i64,
    agent: AgentDoc,
    /// Integration of the organization with the agent's platform.
    platforms: IntegrationSpec,
    /// The version of the agent that is met.
    agent_version_id: Option<Uuid>,
    human: DigitalHumanSpec,
    simulation: SimulationSpec,
    overrides: QueueSpec,
    step: Option<JourneyStep>,
    /// Draws who the caller is: the same in all steps of a journey.
    identity: Seed,
    /// Summaries of the journey's earlier steps, as the caller remembers them.
    earlier: Vec<String>,
    /// True if the organization has added the Digital Human's number.
    has_added_number: bool,
    /// `None` outside of any run.
    human_id: Option<i64>,
    /// Words that the caller always begins with, where they were made.
    first_line: Option<String>,
    /// Faults of what was prepared for the conversation.
    warnings: Vec<String>,
    /// Value of the header `traceparent` for the agent; `None`: it is told no trace context.
    traceparent: Option<String>,
}

impl Placements {
    /// Returns the call of a result, as its Digital Human, agent, simulation and run say.
    ///
    /// # Errors
    /// The reason why there can be no call, or a fault of the store.
    pub async fn placement(
        &self,
        organization: &str,
        result_id: i64,
        terms: &PlacementSettings,
    ) -> Result<PreparedCall, NotDone<Obstacle>> {
        let mut db = self.store.org(organization).write().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        let mut rows = read_rows(&mut db, &row).await?;
        rows.traceparent = self.settings.traceparent_of(&mut db, &row).await?;
        db.commit().await?;
        self.fill_in(organization, rows, terms).await
    }

    /// Returns the call that is made of these rows. Asks names, networks and models, which may take long: no
    /// transaction is open meanwhile.
    async fn fill_in(
        &self,
        organization: &str,
        mut rows: CallRows,
        terms: &PlacementSettings,
    ) -> Result<PreparedCall, NotDone<Obstacle>> {
        let result_id = rows.result_id;
        let mut found = self.find_address(organization, &mut rows).await?;
        self.give_opening(organization, &mut rows, terms, false).await?;
        let folder = self.settings.result_folder(result_id);
        let mut prepared = rows.place(terms, &self.settings).await?;
        prepared.placement.folder = Some(folder);
        let trunk = prepared.dial.as_ref().map(|dial| dial.trunk.as_str());
        if let Some(gate) = self.dial_gate(organization, result_id, trunk) {
            prepared.placement.destination.set_gate(gate);
        }
        // Notes of the engine itself come first.
        found.extend(std::mem::take(&mut prepared.notes));
        prepared.notes = found;
        Ok(prepared)
    }
}

/// Reads the rows that the call of a result is made of, and keeps the settings that it is held with. Keeps nothing
/// where there can be no call.
async fn read_rows(db: &mut Session, row: &Row<ResultDoc>) -> Result<CallRows, NotDone<Obstacle>> {
    let body = &row.doc.body;
    let agent = db.get::<AgentDoc>(body.agent_id).await?.doc;
    let simulation = db.get::<SimulationSpec>(body.simulation_id).await?.doc;
    let run = db.get::<RunDoc>(body.simulation_run_id).await?.doc;
    let human = match body.digital_human_id {
        Some(id) => db.find::<DigitalHumanSpec>(id).await?,
        None => None,
    };
    let Some(human) = human else {
        return Err(Obstacle::new(ErrorCode::InternalError, "The Digital Human was deleted before its call").into());
    };
    if let Some(noise) = human.doc.uploaded_noise()
        && db.find::<NoiseDoc>(noise).await?.is_none()
    {
        let message = format!("There is no uploaded sound '{noise}'");
        return Err(Obstacle::new(ErrorCode::CustomNoiseFailed, message).into());
    }
    let step = human.doc.step(body.journey_step).cloned();
    let met = agent.spec.met_in(step.as_ref()).into_owned();
    let connection = met.connection().or(run.overrides.connection());
    let dials = matches!(connection, Some(ConnectionType::Sip | ConnectionType::Phone | ConnectionType::Sms));
    let own = number(&met, &human.doc, step.as_ref()).filter(|_| dials);
    if let Some(own) = own
        && let Some(obstacle) = foreign_number(db, own).await?
    {
        return Err(obstacle.into());
    }
    // It is not another organization's.
    let has_added_number = match own {
        Some(own) => db.number_holder(own).await?.is_some(),
        None => false,
    };
    let seed = Seed(body.seed as u64);
    let identity = identity(&row.doc, &human.doc.seed_key(human.id), run.seed);
    let earlier = earlier(db, row, &human.doc, Whose::Caller).await?;
    let platforms = platform::credentials(db, connection).await?;
    keep_settings(db, row, &agent.spec, &human.doc, &simulation).await?;
    let agent = AgentDoc { spec: met, ..agent };
    let (human_id, mut human, overrides) = (Some(human.id), human.doc, run.overrides);
    human.traits = bind(human.traits, identity);
    Ok(CallRows {
        result_id: row.id,
        run_id: body.simulation_run_id,
        seed,
        agent_id: body.agent_id,
        agent,
        platforms,
        agent_version_id: body.agent_version_id,
        human,
        simulation,
        overrides,
        step,
        identity,
        earlier,
        has_added_number,
        human_id,
        first_line: None,
        warnings: Vec::new(),
        traceparent: None,
    })
}

impl CallRows {
    async fn place(self, terms: &PlacementSettings, settings: &Settings) -> Result<PreparedCall, Obstacle> {
        let (mut destination, dial) = route::destination(&self, &terms.codecs, settings).await?;
        if self.human.line.as_ref().is_some_and(|line| line.codec.is_some()) {
            destination.set_codecs(vec![Codec::Pcmu]);
        }
        let session = adapter::plan(&self, &destination, settings)?;
        let mut warnings = self.idle_fields(terms.model.is_some(), &settings.sms);
        warnings.extend(self.follows_without(terms.model.is_some()));
        warnings.extend(adapter::warn_of_idle(&self, settings));
        warnings.extend(self.warnings.iter().cloned());
        let language = self.language();
        let traits = self.traits();
        let mut spec = self.spec(terms, settings, &Facts::of(&traits), &mut warnings).await?;
        let by_channel = match &destination {
            Destination::Sip(_) => true,
            Destination::Incoming(terms) => terms.websocket.is_none(),
            Destination::WebSocket(_) | Destination::Pipeline(_) | Destination::Room(_) => false,
        };
        spec.audio_quality = impairment::sent_quality(&self.human, &terms.behaviour.audio, by_channel);
        if let Some(method) = destination.digit_method() {
            spec.dtmf = method;
        }
        let mut wanted = self.voice();
        let voice = voices::choose(&*terms.synthesizer, &mut wanted, &mut warnings).await;
        let voice = voice.map_err(|failure| Obstacle::new(ErrorCode::SynthesizerFailed, failure.message))?;
        let voice = voice.at(terms.behaviour.speed.level_wpm(&wanted.speed) as f32);
        let profile = self.profile(&terms.behaviour, traits);
        let fluency = profile.fluency(self.seed);
        let mind = human::mind(profile, terms.model.clone(), self.seed);
        let says_more = terms.model.is_some() || self.human.fluency != Fluency::Native;
        let known = (!says_more).then(|| known_words(&spec, mind.known_texts()));
        let voice = voices::settle(&*terms.synthesizer, voice, known.as_deref(), &mut warnings);
        let mut notes = Object::from_iter([
            ("behaviour".to_owned(), self.in_force(terms, &spec)),
            ("voice".to_owned(), json!(voice.id)),
            ("channel_layout".to_owned(), json!({ "0": "digital_human", "1": "agent" })),
        ]);
        notes.extend(destination.address().map(|address| ("target".to_owned(), json!(address))));
        let speaks = terms.synthesizer.model(&voice).await;
        notes.extend(speaks.map(|model| ("synthesizer".to_owned(), json!(model))));
        if let Some(substituted) = &voice.substituted {
            notes.insert("voice_substituted".to_owned(), json!(substituted));
        }
        notes.extend(adapter_ways::note(&self, &destination));
        let is_own_room = matches!(destination, Destination::Room(_)) && session.is_none();
        let room = is_own_room.then(|| Box::new(room::plan(&self, room::draw())));
        notes.extend(room.iter().map(|room| ("room".to_owned(), json!(room.room()))));
        let tool_topic = room::tool_topic(&self);
        let placement = Placement {
            id: self.result_id.to_string(),
            spec,
            destination,
            fluency,
            mind,
            voice: Some(voice),
            language,
            follows: self.follows().then_some(wanted),
            keyterms: self.agent.spec.keyterms.clone(),
            folder: None,
            captured: settings.capture == Capture::Full && !self.agent.spec.redact_pii,
        };
        Ok(PreparedCall { placement, dial, notes, warnings, room, session, tool_topic })
    }

    async fn spec(
        &self,
        terms: &PlacementSettings,
        settings: &Settings,
        traits: &Facts<'_>,
        warnings: &mut Vec<String>,
    ) -> Result<CallSpec, Obstacle> {
        let (human, behaviour) = (&self.human, &terms.behaviour);
        Ok(CallSpec {
            seed: self.seed,
            turn: TurnRules {
                endpointing_delay_ms: ms(human.endpointing_delay),
                silence_timeout_ms: human.silence_timeout.map_or(TurnRules::default().silence_timeout_ms, ms),
                yield_after_ms: behaviour.yield_after_ms,
                hold_floor_ms: behaviour.hold_floor_ms,
                both_start_ms: behaviour.both_start_ms,
                yield_to_claims: settings.yield_to_started_event,
                recognizer_grace_ms: terms.recognizer_grace_ms,
                digit_turn_ms: None,
                digits_stop: true,
            },
            opening: self.opening(behaviour),
            cut: steps::first_cut(human, traits),
            interruption: behaviour::interruption(human, traits, behaviour, terms.model.is_some(), warnings),
            probes: behaviour::probes(human),
            script: behaviour::script(self, traits, terms, settings, warnings).await?,
            script_ordered: human.scripted_responses_ordered,
            meaning_ms: terms.model.as_ref().map(|_| MEANING_MS),
            hangup_phrases: human.hangup_phrases.iter().map(|phrase| traits.fill(phrase)).collect(),
            hangup_on_transfer: self.simulation.hangup_on_transfer,
            extension: human.extension.clone().filter(|_| !self.agent_calls()),
            dtmf: match terms.dtmf {
                Dtmf::Rtp => DtmfMethod::Rtp,
                Dtmf::Inband => DtmfMethod::Inband,
                Dtmf::Info => DtmfMethod::Info,
            },
            limits: self.limits(),
            noise: behaviour::noise(self, terms, settings, warnings).await?,
            audio_quality: impairment::sent_quality(human, &behaviour.audio, true),
            onset_lost_ms: 0,
            connection: impairment::connection_of(human, &behaviour.connection),
            phrases: phrases::call_phrases(&self.language()),
            follows_language: self.follows(),
            ears: Ears::default(),
            // The engine sets its own.
            opus: Opus::default(),
        })
    }

    /// Returns who speaks first, and the words.
    fn opening(&self, behaviour: &Behaviour) -> Opening {
        let made = behaviour::opening(&self.human, self.opens(), &Facts::of(&self.traits()), behaviour);
        match (&self.first_line, made) {
            (Some(line), Opening::Made) => Opening::Say(line.clone()),
            (_, made) => made,
        }
    }

    fn limits(&self) -> Limits {
        let simulation = &self.simulation;
        let seconds = |seconds: i64| u32::try_from(seconds.saturating_mul(1000)).unwrap_or(u32::MAX);
        Limits {
            ringing_ms: seconds(simulation.ringing_timeout),
            max_duration_ms: Some(u32::try_from(simulation.max_duration_ms()).unwrap_or(u32::MAX)),
            max_turns: simulation.max_turns.map(|turns| u32::try_from(turns).unwrap_or(u32::MAX)),
            inactivity_ms: simulation.inactivity_timeout_seconds.map(seconds),
            ..Limits::default()
        }
    }

    fn voice(&self) -> VoiceWanted {
        let human = &self.human;
        VoiceWanted {
            language: self.language(),
            accent: human.accent.map(|accent| accent.as_str().to_owned()),
            gender: human.gender.map(|gender| gender.as_str().to_owned()),
            custom_voice_id: human.custom_voice_id.clone().filter(|id| !id.is_empty()),
            speed: human.voice_speed.as_str().to_owned(),
            seed: self.identity,
        }
    }

    fn profile(&self, behaviour: &Behaviour, traits: Vec<(String, String)>) -> Profile {
        let human = &self.human;
        let fluency = FluencyLevel::of_name(human.fluency.as_str());
        let step_intent = self.step.as_ref().map(|step| step.intent.clone()).filter(|intent| !intent.is_empty());
        let playback = steps::playback(human, &Facts::of(&traits));
        let stops = human.stop_on_failure;
        let wanted = if stops { steps::turn_tests(human, &Facts::of(&traits)) } else { BTreeMap::new() };
        Profile {
            name: human.name.clone().unwrap_or_default(),
            intent: step_intent.unwrap_or_else(|| human.intent.clone()),
            role_description: self.role(),
            language: self.language(),
            traits,
            verbosity: Verbosity::of_name(human.verbosity.as_str()),
            lengths: behaviour.verbosity.clone(),
            fluency,
            hesitation: fluency.hesitation(&behaviour.fluency),
            creativity: human.creativity,
            hangup_instructions: human.hangup_instructions.clone(),
            allow_end_call: human.allow_end_call_tool,
            allow_silence: human.allow_silence_tool,
            allow_dtmf: human.allow_dtmf_tool,
            silence_instructions: human.silence_tool_instructions.clone(),
            keyed: human.default_dtmf_or_voiced == DtmfOrVoiced::Dtmf,
            rules: human.system_prompt_rule_quotes.clone(),
            first_message: None,
            wanted,
            playback,
            called: self.agent_calls(),
            earlier: self.earlier.clone(),
            written: false,
        }
    }

    /// Returns the caller's role description, with its techniques where it attacks.
    fn role(&self) -> String {
        let role = self.human.role_description.clone().unwrap_or_default();
        let Some(plan) = &self.human.attack_plan else { return role };
        let techniques =
            plan.get("techniques").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        let techniques: Vec<&str> = techniques.collect();
        let most = plan.get("max_rotations").and_then(Value::as_u64).unwrap_or(techniques.len() as u64);
        match techniques.is_empty() {
            true => role,
            false => format!(
                "{role} Your techniques, in order: {}. When one is refused you take the next, at most {most} in all.",
                techniques.join(", ").replace('_', " ")
            ),
        }
    }

    /// True if the agent's language is spoken as soon as it is known.
    fn follows(&self) -> bool {
        self.human.language == Language::Ad
    }

    /// Returns a warning if the agent's language is to be followed without a language model.
    fn follows_without(&self, has_model: bool) -> Option<String> {
        let why = "language: the intent is said as it is written: only a model speaks the agent's language";
        (self.follows() && !has_model).then(|| why.to_owned())
    }

    /// Returns the language spoken; a caller that follows the agent's language begins in English.
    fn language(&self) -> String {
        let language = if self.follows() { Language::En } else { self.human.language };
        language.as_str().to_owned()
    }

    /// Returns the facts by name, as text.
    fn traits(&self) -> Vec<(String, String)> {
        spoken_facts(&self.human.traits)
    }

    /// True when the agent makes contact.
    fn agent_calls(&self) -> bool {
        self.agent.spec.is_caller(self.step.as_ref())
    }

    /// True when the agent's call is waited for.
    fn is_called(&self) -> bool {
        self.agent.spec.is_awaited(self.step.as_ref())
    }

    /// True when the Digital Human has the first word unless something else is said of it.
    fn opens(&self) -> bool {
        self.agent_calls() && self.agent.spec.provider() != Provider::P4
    }
}

/// Converts seconds to whole milliseconds.
fn ms(seconds: f64) -> u32 {
    (seconds * 1000.0).round() as u32
}

#[cfg(test)]
mod tests;
