//! Turns a result into a text conversation: channel to the agent, first side, and settings of the dialogue.

use std::sync::Arc;

use ringer_base::config::{Behaviour, Secret, SmsCarrier};
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
use ringer_provider::messages::{Carrier, CarrierWay, ChatAgent, Contact, Webhook};
use serde_json::json;

use super::dial::Outgoing;
use super::platform::no_carrier;
use super::{
    CallRows, Obstacle, PlacementSettings, Placements, adapter, behaviour, mail, read_rows, steps, trunk_texts,
};
use crate::library::human_rules::values::bind;
use crate::{NotDone, Settings};

/// Seconds without a message after which a conversation ends, unless its simulation says otherwise.
const INACTIVITY_S: i64 = 300;
/// The same where messages go over a telephone network.
const SMS_INACTIVITY_S: i64 = 3600;
/// The same in mail.
const MAIL_INACTIVITY_S: i64 = 86_400;
/// Time in milliseconds in which an agent that posts its messages may answer the last one, or call the tools that it
/// asks for.
const LAST_REPLY_MS: i64 = 5000;
/// Code of an agent on P12 that has no address or model.
const NO_SERVER: ErrorCode = ErrorCode::Missing(Platform::P12, Setting::Configuration);
/// A conversation that is never given up for silence.
const FOR_EVER_MS: i64 = i64::MAX / 4;

/// A text conversation that can be held.
pub struct PreparedText {
    /// Settings of the dialogue that is to be held.
    pub spec: DialogueSpec,
    /// Way of delivering messages to the agent.
    pub contact: Contact,
    /// Number that has to be admitted before a message leaves by a trunk; `None`: none leaves so.
    pub dial: Option<Outgoing>,
    /// Words what the Digital Human writes.
    pub mind: Box<dyn Mind>,
    /// Time to wait for the agent's first message, in milliseconds.
    pub ringing_ms: i64,
    /// Metadata of the result: what is in force.
    pub notes: Object,
    /// Settings that have no effect in this conversation, or a different one than asked.
    pub warnings: Vec<String>,
}

/// Terms on which a written conversation begins.
#[derive(Clone, Copy, Debug)]
pub struct TextTerms<'a> {
    /// The own number and the agent's, in a conversation by SMS.
    pub(super) numbers: Option<[&'a str; 2]>,
    /// Number that has to be admitted.
    pub(super) dial: Option<&'a Outgoing>,
    /// True if the agent writes first.
    pub(super) agent_is_first: bool,
    /// Mail address that the agent's first mail is awaited at.
    pub(super) mail_address: Option<&'a str>,
}

impl<'a> TextTerms<'a> {
    /// Returns the terms of a conversation by mail, whose agent is told this address where it writes first.
    #[must_use]
    pub fn listening_at(self, address: &'a str) -> TextTerms<'a> {
        TextTerms { mail_address: Some(address), ..self }
    }
}

impl PreparedText {
    /// Returns the terms on which the conversation begins.
    pub fn terms(&self) -> TextTerms<'_> {
        let numbers = match &self.contact {
            Contact::Sms(carrier) => Some([carrier.from.as_str(), carrier.to.as_str()]),
            Contact::Webhook(_) | Contact::Chat(_) | Contact::Platform(_) | Contact::Mail(_) => None,
        };
        TextTerms {
            numbers,
            dial: self.dial.as_ref(),
            agent_is_first: self.spec.first == First::Agent,
            mail_address: None,
        }
    }
}

impl Placements {
    /// Returns the text conversation of a result, as its Digital Human, agent, simulation and run say.
    ///
    /// # Errors
    /// The reason why there can be no conversation, or a fault of the store.
    pub async fn text_placement(
        &self,
        organization: &str,
        result_id: i64,
        terms: &PlacementSettings,
    ) -> Result<PreparedText, NotDone<Obstacle>> {
        let mut db = self.store.org(organization).write().await?;
        let row = db.get::<ResultDoc>(result_id).await?;
        let mut rows = read_rows(&mut db, &row).await?;
        rows.traceparent = self.settings.traceparent_of(&mut db, &row).await?;
        let version = match rows.agent_version_id {
            Some(id) => db.find::<VersionDoc>(id).await?,
            None => None,
        };
        db.commit().await?;
        self.give_opening(organization, &mut rows, terms, true).await?;
        let description = version.map(|row| row.doc.prompt_text).unwrap_or_default();
        let settings = &self.settings;
        let by_trunk = settings.sms.carrier == SmsCarrier::Sip && rows.agent.spec.is_sms();
        let (contact, dial) = match adapter::chat::contact(self, &rows, organization, row.doc.body.attempt)? {
            Some(contact) => (contact, None),
            None if by_trunk => {
                let (carrier, outgoing) = trunk_texts::carrier(&rows, &*self.live, settings).await?;
                (Contact::Sms(carrier), Some(outgoing))
            }
            None => (contact(&rows, description, self.poster.clone(), settings)?, None),
        };
        Ok(PreparedText { dial, ..rows.write(contact, terms, settings) })
    }
}

impl CallRows {
    fn write(self, contact: Contact, terms: &PlacementSettings, settings: &Settings) -> PreparedText {
        let (channel, transport, sync) = match &contact {
            Contact::Webhook(webhook) => ("http", "HTTP webhook".to_owned(), webhook.sync),
            Contact::Chat(_) => ("chat", "HTTP chat completions".to_owned(), true),
            Contact::Platform(agent) => ("chat", format!("HTTP, {}", agent.name), !agent.protocol.is_asynchronous()),
            Contact::Sms(carrier) => match carrier.way {
                CarrierWay::Http(..) => ("sms", "SMS by HTTP".to_owned(), false),
                CarrierWay::Trunk(_) => ("sms", "SMS by SIP".to_owned(), false),
            },
            Contact::Mail(_) => ("email", "e-mail".to_owned(), false),
        };
        let mut warnings = self.idle_fields(terms.model.is_some(), &settings.sms);
        warnings.extend(self.follows_without(terms.model.is_some()));
        warnings.extend(adapter::warn_of_idle(&self, settings));
        let plain = self.dialogue(channel, &mut warnings);
        let by_sms = matches!(contact, Contact::Sms(_));
        let posts = matches!(contact, Contact::Webhook(_) | Contact::Platform(_));
        let slow_s = match contact {
            Contact::Sms(_) => Some(SMS_INACTIVITY_S),
            Contact::Mail(_) => Some(MAIL_INACTIVITY_S),
            _ => None,
        };
        let slow_s = slow_s.filter(|_| self.simulation.inactivity_timeout_seconds.is_none());
        warnings.extend(self.opening_warning(&contact));
        // An unresponsive Digital Human reads the agent's messages.
        let silent = self.is_met() && self.step.as_ref().is_some_and(|step| step.unresponsive);
        let spec = DialogueSpec {
            first: first(&self, &contact, &terms.behaviour),
            group_ms: if by_sms { 1000 * i64::from(settings.sms.group_seconds) } else { 0 },
            inactivity_ms: slow_s.map_or(plain.inactivity_ms, |seconds| seconds * 1000),
            sync,
            tells_end: matches!(contact, Contact::Webhook(_)),
            last_reply_ms: if posts && !sync { LAST_REPLY_MS } else { 0 },
            reply_delay_ms: i64::from(settings.text_reply_delay_ms),
            asks_meaning: terms.model.is_some(),
            script: if silent { Vec::new() } else { plain.script },
            ..plain
        };
        let ringing_ms = self.simulation.patience_ms(self.step.as_ref());
        let in_force = json!({
            "language": self.language(),
            "follows_language": self.follows(),
            "verbosity": self.human.verbosity,
            "words_per_turn": Verbosity::of_name(self.human.verbosity.as_str()).words(&terms.behaviour.verbosity),
            "fluency": self.human.fluency,
            "reply_delay_ms": spec.reply_delay_ms,
            "ringing_ms": ringing_ms,
            "max_duration_ms": spec.max_duration_ms,
            "max_turns": spec.max_turns,
            "inactivity_ms": spec.inactivity_ms,
        });
        let mind = match silent {
            true => human::silent(),
            false => self.writer(&terms.behaviour, terms.model.clone()),
        };
        let target = match &contact {
            Contact::Webhook(webhook) => host_and_port(&webhook.url),
            Contact::Chat(chat) => host_and_port(&chat.base_url),
            Contact::Platform(agent) => agent.protocol.target(),
            Contact::Sms(carrier) => Some(carrier.to.clone()),
            Contact::Mail(route) => Some(route.to.address.clone()),
        };
        let mut notes =
            Object::from_iter([("behaviour".to_owned(), in_force), ("transport".to_owned(), json!(transport))]);
        notes.extend(target.map(|target| ("target".to_owned(), json!(target))));
        PreparedText { spec, contact, dial: None, mind, ringing_ms, notes, warnings }
    }

    /// Returns the warning that an agent which should begin cannot be asked to.
    fn opening_warning(&self, contact: &Contact) -> Option<String> {
        let Contact::Platform(agent) = contact else { return None };
        let is_asked = self.human.speaks_first_config.as_ref().is_some_and(|config| !config.speaks_first);
        let is_begun = self.agent_calls() || agent.protocol.can_ask_to_begin();
        let warning = "speaks_first_config: the adapter has no agent_first_message, so the Digital Human begins";
        (is_asked && !is_begun).then(|| warning.to_owned())
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
    let rows = CallRows { seed, human, identity: seed, ..CallRows::default() };
    let first = if begins { rows.opening_words(behaviour) } else { First::Agent };
    let plain = rows.dialogue("text", &mut Vec::new());
    let spec = DialogueSpec { first, inactivity_ms: FOR_EVER_MS, asks_meaning: model.is_some(), ..plain };
    (spec, rows.writer(behaviour, model))
}

/// Checks that an agent that writes has all settings.
///
/// # Errors
/// The setting that is missing.
pub(super) fn check_contact(rows: &CallRows, poster: Arc<Poster>, settings: &Settings) -> Result<(), Obstacle> {
    contact(rows, String::new(), poster, settings).map(drop)
}

/// Returns the way of delivering messages to the agent.
///
/// # Errors
/// A setting that is missing, or a channel that is not supported.
fn contact(
    rows: &CallRows,
    description: String,
    poster: Arc<Poster>,
    settings: &Settings,
) -> Result<Contact, Obstacle> {
    let (agent, sms) = (&rows.agent.spec, settings.sms.clone());
    let (conversation, traceparent) = (rows.result_id.to_string(), rows.traceparent.clone());
    let missing = |code, what: &str| Obstacle::new(code, format!("The agent has no {what}"));
    match agent.connection() {
        Some(ConnectionType::HttpWebhook) => {
            let url = agent.http_webhook.clone().ok_or(missing(ErrorCode::HttpWebhookFailed, "http_webhook"))?;
            let key =
                rows.agent.http_webhook_key.clone().ok_or(missing(ErrorCode::HttpWebhookFailed, "signing key"))?;
            let sync = agent.http_webhook_sync_reply;
            Ok(Contact::Webhook(Webhook { poster, url, key: Secret::new(key), conversation, sync, traceparent }))
        }
        Some(ConnectionType::P12) => {
            let of = |value: &Option<String>| value.clone().filter(|text| !text.is_empty());
            let base_url = of(&agent.p12_base_url).ok_or(missing(NO_SERVER, "P12_base_url"))?;
            let model = of(&agent.p12_model).ok_or(missing(NO_SERVER, "P12_model"))?;
            let key = of(&agent.p12_api_key).map(Secret::new);
            Ok(Contact::Chat(ChatAgent { poster, base_url, key, model, description, conversation, traceparent }))
        }
        Some(ConnectionType::Sms) if sms.send_url.is_none() => Err(no_carrier()),
        Some(ConnectionType::Sms) => match rows.overrides.text_numbers(agent, &rows.human, rows.step.as_ref()) {
            [Some(from), Some(to)] => Ok(Contact::Sms(Carrier { way: CarrierWay::Http(poster, sms), from, to })),
            [None, _] => {
                Err(Obstacle::new(ErrorCode::InvalidPhoneNumber, "The Digital Human has no number for text messages"))
            }
            [_, None] => Err(Obstacle::new(ErrorCode::InvalidPhoneNumber, "The agent has no phone_number")),
        },
        Some(ConnectionType::Email) => mail::route(rows, settings).map(|route| Contact::Mail(Box::new(route))),
        Some(other) => Err(rows.unmet(other)),
        None => Err(Obstacle::new(ErrorCode::NoConnectionType, "The agent has no connection_type and no address")),
    }
}

/// Returns who begins. A journey's step decides; else an agent that posts its messages begins, unless the Digital Human
/// is told to. An agent that only answers is written to; by chat completions it is asked to begin where the script
/// expects its words.
fn first(rows: &CallRows, contact: &Contact, behaviour: &Behaviour) -> First {
    let asked = rows.human.speaks_first_config.as_ref().map(|config| config.speaks_first);
    let is_awaited = || steps::playback(&rows.human, &Facts::of(&rows.traits())).first() == Some(&Step::Hear);
    let is_agent = match (contact, &rows.step) {
        (Contact::Sms(_) | Contact::Mail(_), _) | (_, Some(_)) => rows.agent_calls(),
        (Contact::Webhook(webhook), None) => !asked.unwrap_or(webhook.sync),
        (Contact::Platform(_), None) if rows.agent_calls() => true,
        (Contact::Chat(_) | Contact::Platform(_), None) => !asked.unwrap_or_else(|| !is_awaited()),
    };
    match contact {
        _ if !is_agent => rows.opening_words(behaviour),
        Contact::Platform(_) if rows.agent_calls() => First::Agent,
        Contact::Platform(agent) if agent.protocol.can_ask_to_begin() => First::Invited,
        Contact::Platform(_) => rows.opening_words(behaviour),
        Contact::Chat(_) => First::Invited,
        Contact::Webhook(_) | Contact::Sms(_) | Contact::Mail(_) => First::Agent,
    }
}

/// Returns the length of the longest conversation: one that is written has no limit but a given one.
fn longest_ms(simulation: &SimulationSpec) -> Option<i64> {
    simulation.max_call_duration.map(|_| simulation.max_duration_ms())
}

/// Returns the scripted answers that can be written.
fn script(rows: &CallRows, traits: &Facts<'_>, warnings: &mut Vec<String>) -> Vec<ScriptRule> {
    let mut rules = Vec::new();
    for (index, rule) in rows.human.scripted_responses.iter().enumerate() {
        match behaviour::response(rule, traits) {
            Some(response) => rules.push(behaviour::rule_of(index, rule, response, traits)),
            None => warnings.push(format!("scripted_responses[{index}]: a recording cannot be written")),
        }
    }
    rules
}
