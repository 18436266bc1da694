//! Turns a result into a text conversation: channel to the agent, first side, and settings of the dialogue.

use std::sync::Arc;

use ringer_base::config::{Behaviour, Secret, Sms};
use ringer_base::error::Result;
use ringer_base::post::Poster;
use ringer_engine::dialogue::{DialogueSpec, First};
use ringer_engine::host_and_port;
use ringer_human as human;
use ringer_human::{Facts, Mind, Profile, Step, Verbosity};
use ringer_media::call::{Opening, ScriptRule};
use ringer_media::seed::Seed;
use ringer_model::Object;
use ringer_model::agent::ConnectionType;
use ringer_model::agent_version::VersionDoc;
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::error_code::{ErrorCode, Platform, Setting};
use ringer_model::result::ResultDoc;
use ringer_model::simulation::SimulationSpec;
use ringer_model::time::span_ms;
use ringer_provider::LanguageModel;
use ringer_provider::messages::{Carrier, ChatAgent, Contact, Webhook};
use serde_json::json;

use super::platform::no_carrier;
use super::{Cast, Obstacle, Placements, Placer, behaviour, cast, steps};
use crate::Settings;
use crate::library::human_rules::values::bind;

/// Seconds without a message after which a conversation ends, unless its simulation says otherwise.
const INACTIVITY_S: i64 = 300;
/// The same where messages go over a telephone network.
const SMS_INACTIVITY_S: i64 = 3600;
/// Time in milliseconds in which an agent that posts its messages may answer the last one, or call the tools that it
/// asks for.
const LAST_REPLY_MS: i64 = 5000;
/// Code of an agent on P12 that has no address or model.
const NO_SERVER: ErrorCode = ErrorCode::Missing(Platform::P12, Setting::Configuration);
/// A conversation that is never given up for silence.
const FOR_EVER_MS: i64 = i64::MAX / 4;

/// A text conversation that can be held.
pub struct TextPlaced {
    /// Settings of the dialogue that is to be held.
    pub spec: DialogueSpec,
    /// Way of delivering messages to the agent.
    pub contact: Contact,
    /// Words what the Digital Human writes.
    pub mind: Box<dyn Mind>,
    /// Time to wait for the agent's first message, in milliseconds.
    pub ringing_ms: i64,
    /// Metadata of the result: what is in force.
    pub notes: Object,
    /// Settings that have no effect in this conversation, or a different one than asked.
    pub warnings: Vec<String>,
}

impl Placements {
    /// Returns the text conversation of a result, as its Digital Human, agent, simulation and run say.
    ///
    /// # Errors
    /// The outer error is a fault of the store; the inner one says why there can be no conversation.
    pub async fn text_placement(
        &self,
        organization: &str,
        result_id: i64,
        placer: &Placer,
    ) -> Result<Result<TextPlaced, Obstacle>> {
        let mut db = self.store.org(organization).write().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        let mut cast = match cast(&mut db, &row).await? {
            Ok(cast) => cast,
            Err(obstacle) => return Ok(Err(obstacle)),
        };
        let version = match cast.agent_version_id {
            Some(id) => db.find::<VersionDoc>(id).await?,
            None => None,
        };
        db.commit().await?;
        self.give_opening(organization, &mut cast, placer, true).await?;
        let description = version.map(|row| row.doc.prompt_text).unwrap_or_default();
        let settings = &self.settings;
        let contact = match contact(&cast, description, self.poster.clone(), settings.sms.clone()) {
            Ok(contact) => contact,
            Err(obstacle) => return Ok(Err(obstacle)),
        };
        Ok(Ok(cast.write(contact, placer, settings)))
    }
}

impl Cast {
    fn write(self, contact: Contact, placer: &Placer, settings: &Settings) -> TextPlaced {
        let (channel, transport, sync) = match &contact {
            Contact::Webhook(webhook) => ("http", "HTTP webhook", webhook.sync),
            Contact::Chat(_) => ("chat", "HTTP chat completions", true),
            Contact::Sms(_) => ("sms", "SMS by HTTP", false),
        };
        let mut warnings = self.idle_fields(placer.model.is_some(), &settings.sms);
        warnings.extend(self.follows_without(placer.model.is_some()));
        let plain = self.dialogue(channel, &mut warnings);
        let by_sms = matches!(contact, Contact::Sms(_));
        let unhurried = by_sms && self.simulation.inactivity_timeout_seconds.is_none();
        // An unresponsive Digital Human reads the agent's messages.
        let silent = self.is_met() && self.step.as_ref().is_some_and(|step| step.unresponsive);
        let spec = DialogueSpec {
            first: first(&self, &contact, &placer.behaviour),
            group_ms: if by_sms { 1000 * i64::from(settings.sms.group_seconds) } else { 0 },
            inactivity_ms: if unhurried { SMS_INACTIVITY_S * 1000 } else { plain.inactivity_ms },
            sync,
            tells_end: matches!(contact, Contact::Webhook(_)),
            last_reply_ms: if matches!(contact, Contact::Webhook(_)) && !sync { LAST_REPLY_MS } else { 0 },
            reply_delay_ms: i64::from(settings.text_reply_delay_ms),
            asks_meaning: placer.model.is_some(),
            script: if silent { Vec::new() } else { plain.script },
            ..plain
        };
        let ringing_ms = self.simulation.patience_ms(self.step.as_ref());
        let in_force = json!({
            "language": self.language(),
            "follows_language": self.follows(),
            "verbosity": self.human.verbosity,
            "words_per_turn": Verbosity::of_name(self.human.verbosity.as_str()).words(&placer.behaviour.verbosity),
            "fluency": self.human.fluency,
            "reply_delay_ms": spec.reply_delay_ms,
            "ringing_ms": ringing_ms,
            "max_duration_ms": spec.max_duration_ms,
            "max_turns": spec.max_turns,
            "inactivity_ms": spec.inactivity_ms,
        });
        let mind = match silent {
            true => human::silent(),
            false => self.writer(&placer.behaviour, placer.model.clone()),
        };
        let target = match &contact {
            Contact::Webhook(webhook) => host_and_port(&webhook.url),
            Contact::Chat(chat) => host_and_port(&chat.base_url),
            Contact::Sms(carrier) => Some(carrier.to.clone()),
        };
        let mut notes =
            Object::from_iter([("behaviour".to_owned(), in_force), ("transport".to_owned(), json!(transport))]);
        notes.extend(target.map(|target| ("target".to_owned(), json!(target))));
        TextPlaced { spec, contact, mind, ringing_ms, notes, warnings }
    }

    /// Returns a conversation of this Digital Human that the other side begins.
    fn dialogue(&self, channel: &'static str, warnings: &mut Vec<String>) -> DialogueSpec {
        let (human, simulation, traits) = (&self.human, &self.simulation, self.traits());
        let facts = Facts::of(&traits);
        let inactivity_s = simulation.inactivity_timeout_seconds.unwrap_or(INACTIVITY_S);
        DialogueSpec {
            channel,
            first: First::Agent,
            sync: true,
            tells_end: false,
            last_reply_ms: 0,
            reply_delay_ms: 0,
            group_ms: 0,
            max_duration_ms: longest_ms(simulation),
            inactivity_ms: span_ms(inactivity_s as f64),
            max_turns: simulation.max_turns.map(|turns| u32::try_from(turns).unwrap_or(u32::MAX)),
            script: script(self, &facts, warnings),
            script_ordered: human.scripted_responses_ordered,
            asks_meaning: false,
            hangup_phrases: human.hangup_phrases.iter().map(|phrase| facts.fill(phrase)).collect(),
            follows_language: self.follows(),
        }
    }

    /// Returns the mind of this Digital Human when it writes.
    fn writer(&self, behaviour: &Behaviour, model: Option<Arc<dyn LanguageModel>>) -> Box<dyn Mind> {
        let profile = Profile { written: true, allow_dtmf: false, ..self.profile(behaviour, self.traits()) };
        human::mind(profile, model, self.seed)
    }

    /// Returns the words that this Digital Human begins with.
    fn opening_words(&self, behaviour: &Behaviour) -> First {
        match self.opening(behaviour) {
            Opening::Say(words) => First::Say(words),
            Opening::Made | Opening::Listen { .. } => First::Made,
        }
    }
}

/// Returns a Digital Human outside of any simulation: a conversation that it begins, or answers, and the mind that
/// words it.
pub(crate) fn alone(
    mut human: DigitalHumanSpec,
    seed: Seed,
    begins: bool,
    behaviour: &Behaviour,
    model: Option<Arc<dyn LanguageModel>>,
) -> (DialogueSpec, Box<dyn Mind>) {
    human.traits = bind(human.traits, seed);
    let cast = Cast { seed, human, identity: seed, ..Cast::default() };
    let first = if begins { cast.opening_words(behaviour) } else { First::Agent };
    let plain = cast.dialogue("text", &mut Vec::new());
    let spec = DialogueSpec { first, inactivity_ms: FOR_EVER_MS, asks_meaning: model.is_some(), ..plain };
    (spec, cast.writer(behaviour, model))
}

/// Returns the way of delivering messages to the agent.
///
/// # Errors
/// A setting that is missing, or a channel that is not supported.
fn contact(cast: &Cast, description: String, poster: Arc<Poster>, sms: Arc<Sms>) -> Result<Contact, Obstacle> {
    cast.own_channel(&sms)?;
    let agent = &cast.agent.spec;
    let conversation = cast.result_id.to_string();
    let missing = |code, what: &str| Obstacle::new(code, format!("The agent has no {what}"));
    match agent.connection() {
        Some(ConnectionType::HttpWebhook) => {
            let url = agent.http_webhook.clone().ok_or(missing(ErrorCode::HttpWebhookFailed, "http_webhook"))?;
            let key =
                cast.agent.http_webhook_key.clone().ok_or(missing(ErrorCode::HttpWebhookFailed, "signing key"))?;
            let sync = agent.http_webhook_sync_reply;
            Ok(Contact::Webhook(Webhook { poster, url, key: Secret::new(key), conversation, sync }))
        }
        Some(ConnectionType::P12) => {
            let of = |value: &Option<String>| value.clone().filter(|text| !text.is_empty());
            let base_url = of(&agent.p12_base_url).ok_or(missing(NO_SERVER, "P12_base_url"))?;
            let model = of(&agent.p12_model).ok_or(missing(NO_SERVER, "P12_model"))?;
            let key = of(&agent.p12_api_key).map(Secret::new);
            Ok(Contact::Chat(ChatAgent { poster, base_url, key, model, description, conversation }))
        }
        Some(ConnectionType::Sms) if sms.send_url.is_none() => Err(no_carrier()),
        Some(ConnectionType::Sms) => match cast.overrides.text_numbers(agent, &cast.human) {
            [Some(from), Some(to)] => Ok(Contact::Sms(Carrier { poster, sms, from, to })),
            [None, _] => {
                Err(Obstacle::new(ErrorCode::InvalidPhoneNumber, "The Digital Human has no number for text messages"))
            }
            [_, None] => Err(Obstacle::new(ErrorCode::InvalidPhoneNumber, "The agent has no phone_number")),
        },
        Some(other) => Err(cast.unmet(other)),
        None => Err(Obstacle::new(ErrorCode::NoConnectionType, "The agent has no connection_type and no address")),
    }
}

/// Returns who begins. A journey's step decides; else an agent that posts its messages begins, unless the Digital Human
/// is told to. An agent that only answers is written to; by chat completions it is asked to begin where the script
/// expects its words.
fn first(cast: &Cast, contact: &Contact, behaviour: &Behaviour) -> First {
    let asked = cast.human.speaks_first_config.as_ref().map(|config| config.speaks_first);
    let is_awaited = || steps::playback(&cast.human, &Facts::of(&cast.traits())).first() == Some(&Step::Hear);
    let is_agent = match (contact, &cast.step) {
        (Contact::Sms(_), _) | (_, Some(_)) => cast.agent_calls(),
        (Contact::Webhook(webhook), None) => !asked.unwrap_or(webhook.sync),
        (Contact::Chat(_), None) => !asked.unwrap_or_else(|| !is_awaited()),
    };
    match contact {
        _ if !is_agent => cast.opening_words(behaviour),
        Contact::Chat(_) => First::Invited,
        Contact::Webhook(_) | Contact::Sms(_) => First::Agent,
    }
}

/// Returns the length of the longest conversation: one that is written has no limit but a given one.
fn longest_ms(simulation: &SimulationSpec) -> Option<i64> {
    simulation.max_call_duration.map(|_| simulation.max_duration_ms())
}

/// Returns the scripted answers that can be written.
fn script(cast: &Cast, traits: &Facts<'_>, warnings: &mut Vec<String>) -> Vec<ScriptRule> {
    let mut rules = Vec::new();
    for (index, rule) in cast.human.scripted_responses.iter().enumerate() {
        match behaviour::response(rule, traits) {
            Some(response) => rules.push(behaviour::rule_of(index, rule, response, traits)),
            None => warnings.push(format!("scripted_responses[{index}]: a recording cannot be written")),
        }
    }
    rules
}
