//! Digital Humans generated from goals, scenarios, transcripts, personas, rules, load and attacks: from templates
//! without a language model, and in its words with one. The same request gives the same names, voices and invented
//! values.

mod attacks;
mod callers;
mod finish;
mod replay;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use ringer_base::config::carrier;
use ringer_base::error::{Error, Result};
use ringer_human::phrases::phrases;
use ringer_human::text::sentences;
use ringer_media::seed::Seed;
use ringer_model::Object;
use ringer_model::agent::AgentDoc;
use ringer_model::customer::TraitDoc;
use ringer_model::digital_human::{DigitalHumanSpec, Fluency, Language, Trait, TraitType};
use ringer_model::generate::{AttackBatch, GenerateSpec, Generated, ReplayAsked, ReplayMode};
use ringer_model::phone_number::NumberDoc;
use ringer_model::result::ResultDoc;
use ringer_model::simulation::SimulationSpec;
use ringer_model::test_scenario::CustomerPersona;
use ringer_model::transcript::Transcript;
use ringer_provider::LanguageModel;
use ringer_store::{Row, Session};
use serde_json::{Value, json};
use uuid::Uuid;

use self::attacks::{Means, Vector};
use self::callers::Wish;
use super::Generation;
use crate::Caller;
use crate::humans::scenarios::{paths, paths_of};
use crate::library::customers::personas_by_id;
use crate::library::field_rules;
use crate::library::human_rules::transcripts::transcript_lines;
use crate::library::human_rules::values::{fits, resolve};
use crate::library::versions::version_of;

/// Digital Humans of one request.
const MAX_HUMANS: usize = 100;
/// Questions that the language model answers at once.
const AT_ONCE: usize = 4;

/// Name in `workflow_adherence` of the agent's own workflow.
const AGENTS_OWN: &str = "agent";

/// A Digital Human before it has a name, a voice and its facts.
struct Draft {
    human: DigitalHumanSpec,
    category: &'static str,
    goal: String,
    /// True if the language model makes its words, and makes them in its language.
    worded: bool,
}

/// Drafts, and what the language model has to say about them.
struct Part {
    drafts: Vec<Draft>,
    wish: Option<Wish>,
}

/// Stored resources that a request refers to.
struct Frame {
    agent: Row<AgentDoc>,
    simulation: Option<Row<SimulationSpec>>,
    /// Sentences of the version under test.
    rules: Vec<String>,
    traits: Vec<TraitDoc>,
    scenarios: Vec<ScenarioAsked>,
    /// The agent's own workflow, where the request names no scenario.
    workflow: Option<ScenarioAsked>,
    /// One for each `replay_transcript`.
    transcripts: Vec<String>,
    /// Stored personas, each with its number of Digital Humans.
    personas: Vec<(CustomerPersona, i64)>,
    /// Numbers of trunks: no other can be called from.
    numbers: Vec<String>,
}

/// A scenario, and how many Digital Humans play it.
struct ScenarioAsked {
    /// `None`: it is the agent's own workflow.
    id: Option<Uuid>,
    name: String,
    paths: Vec<crate::humans::scenarios::Path>,
    count: i64,
}

impl Generation {
    /// Generates Digital Humans and makes them part of the simulation, all of them or none.
    pub async fn generate_digital_humans(&self, caller: &Caller, spec: GenerateSpec) -> Result<Generated> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let frame = self.frame(&mut db, &spec).await?;
        drop(db);
        let model = self.model.clone();
        let mut plan = Plan { parts: Vec::new(), left: MAX_HUMANS, asked: 0, from_templates: false };
        plan.fill(&spec, &frame, model.is_some())?;
        if plan.asked == 0 {
            frame.workflow.iter().for_each(|workflow| plan.scenario(workflow));
        }
        if plan.asked == 0 {
            return Err(Error::Refused("Nothing to generate".into()));
        }
        let worded = stream::iter(plan.parts.into_iter().map(|part| word(model.as_deref(), part)));
        let drafts: Vec<Vec<Draft>> = worded.buffered(AT_ONCE).try_collect().await?;
        let mut drafts: Vec<Draft> = drafts.into_iter().flatten().collect();
        let seed = Seed::of(&serde_json::to_string(&spec).map_err(Error::internal)?);
        let unfollowed = finish::finish(&mut drafts, &spec, &frame, seed);
        let test_scenarios = drafts.iter().map(finish::scenario).collect();
        let simulations: Vec<i64> = frame.simulation.iter().map(|row| row.id).collect();
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut digital_humans = Vec::with_capacity(drafts.len());
        for draft in drafts {
            digital_humans.push(self.humans.make_human(&mut db, caller, draft.human, &simulations).await?);
        }
        let truncated = format!("Request was truncated to {MAX_HUMANS} digital humans");
        let templates = "Generated from templates: no language model is configured".to_owned();
        let warnings: Vec<String> = [(plan.asked > MAX_HUMANS as i64, truncated), (plan.from_templates, templates)]
            .into_iter()
            .filter_map(|(holds, text)| holds.then_some(text))
            .chain(unfollowed)
            .collect();
        db.answer(Generated {
            digital_humans,
            status: "200".into(),
            success: true,
            test_scenarios: Some(test_scenarios),
            warning: (!warnings.is_empty()).then(|| warnings.join("; ")),
        })
        .await
    }

    async fn frame(&self, db: &mut Session, spec: &GenerateSpec) -> Result<Frame> {
        let agent = db.get::<AgentDoc>(spec.agent_id.get().ok_or(Error::NotFound("Agent"))?).await?;
        let simulation = match &spec.simulation_id {
            Some(id) => Some(db.get::<SimulationSpec>(id.get().ok_or(Error::NotFound("Simulation"))?).await?),
            None => None,
        };
        let version = match field_rules::twins(spec.agent_version_id, spec.prompt_id)? {
            Some(id) => Some(version_of(db, agent.id, id).await?),
            None => db.production_version(agent.id).await?,
        };
        let rules = version.map(|version| sentences(&version.doc.prompt_text)).unwrap_or_default();
        let traits = db.by::<TraitDoc>("agent_id", agent.id).await?.into_iter().rev().map(|row| row.doc).collect();
        let mut scenarios = Vec::new();
        for (id, count) in counts(spec) {
            if id == AGENTS_OWN {
                let own = own_workflow(&agent.doc)?.ok_or_else(|| Error::Refused("Agent has no workflow".into()))?;
                scenarios.push(ScenarioAsked { count, ..own });
                continue;
            }
            let (id, name, paths) = self.humans.scenario_paths(db, &id).await?;
            scenarios.push(ScenarioAsked { id: Some(id), name, paths, count });
        }
        let maps = [&spec.workflow_adherence, &spec.workflow_adherence_v2];
        let names_none = scenarios.is_empty() && maps.iter().any(|map| map.is_some());
        let workflow = if names_none { own_workflow(&agent.doc)? } else { None };
        let mut transcripts = Vec::new();
        for asked in spec.replay_transcript.iter().flatten() {
            transcripts.push(match asked {
                ReplayAsked::Text(text) => text.transcript.clone(),
                ReplayAsked::Conversation(held) => conversation(db, held.conversation_id.parse().ok()).await?,
            });
        }
        let personas = personas_by_id(db, spec.customer_persona_ids.as_deref().unwrap_or_default()).await?;
        let trunks = &self.settings.trunks;
        let mut numbers: Vec<String> = trunks.values().flat_map(|trunk| trunk.numbers.iter().cloned()).collect();
        let added = db.all::<NumberDoc>().await?.into_iter().map(|row| row.doc.phone_number);
        let added = added.filter(|number| carrier(trunks, number).is_some_and(|(_, trunk)| !trunk.lists(number)));
        numbers.extend(added);
        Ok(Frame { agent, simulation, rules, traits, scenarios, workflow, transcripts, personas, numbers })
    }
}

/// Returns the workflow of an agent, once for each of its paths.
///
/// # Errors
/// The rule of graphs that it breaks.
fn own_workflow(agent: &AgentDoc) -> Result<Option<ScenarioAsked>> {
    let Some(definition) = agent.spec.workflow_graph() else { return Ok(None) };
    let paths = paths_of(&definition).map_err(|error| match error {
        Error::Refused(why) => Error::Refused(format!("workflow of the agent: {why}")),
        other => other,
    })?;
    Ok(Some(ScenarioAsked { id: None, name: agent.spec.name.clone(), count: paths.len() as i64, paths }))
}

/// Returns the number of Digital Humans for each scenario, in the order of the request.
fn counts(spec: &GenerateSpec) -> Vec<(String, i64)> {
    let maps = [&spec.workflow_adherence, &spec.workflow_adherence_v2];
    let entries = maps.into_iter().flatten().flatten();
    entries.map(|(id, count)| (id.clone(), count.as_i64().unwrap_or(0))).collect()
}

/// Returns the transcript of a result, in lines with roles, without the turns of which nobody knows the words.
async fn conversation(db: &mut Session, result_id: Option<i64>) -> Result<String> {
    let result_id = result_id.ok_or(Error::NotFound("Simulation result"))?;
    db.get::<ResultDoc>(result_id).await?;
    let held: Option<Transcript> = db.text("transcripts", result_id).await?;
    held.map(|held| held.known_text()).ok_or_else(|| Error::NotAvailable("Transcript not available".into()))
}

/// Digital Humans to generate, in the order of the request.
struct Plan {
    parts: Vec<Part>,
    left: usize,
    asked: i64,
    from_templates: bool,
}

impl Plan {
    fn fill(&mut self, spec: &GenerateSpec, frame: &Frame, has_model: bool) -> Result<()> {
        for asked in spec.goal_adherence.iter().flatten() {
            self.goal("goal_adherence", &asked.goal, None, asked.num_calls, has_model);
        }
        for scenario in &frame.scenarios {
            self.scenario(scenario);
        }
        for (asked, text) in spec.replay_transcript.iter().flatten().zip(&frame.transcripts) {
            self.replay(asked, text, has_model)?;
        }
        for asked in spec.customer_personas.iter().flatten() {
            let who = (asked.name.as_str(), asked.description.as_str());
            self.goal("customer_personas", &asked.goal, Some(who), asked.num_calls, has_model);
        }
        for (persona, count) in &frame.personas {
            let goal = persona.goal.as_deref().filter(|goal| !goal.trim().is_empty()).unwrap_or(&persona.description);
            let who = (persona.name.as_str(), persona.description.as_str());
            self.goal("customer_personas", goal, Some(who), *count, has_model);
        }
        self.rules(spec.system_prompt, frame, has_model)?;
        for _ in 0..self.take(spec.load_testing) {
            self.parts.push(Part { drafts: vec![load()], wish: None });
        }
        let mode = frame.agent.doc.spec.mode;
        if spec.red_teaming > 0 {
            let profile = frame.agent.doc.spec.attack_profile();
            let means = Means::of_profile(&profile, mode)?;
            for index in 0..self.take(spec.red_teaming) {
                let vector = means.vectors[index % means.vectors.len()];
                let own = profile.intents.get(index % profile.intents.len().max(1));
                self.attack(vector, own.map_or(vector.intent, String::as_str), 1, &means, None, has_model);
            }
        }
        let means = Means::all(mode);
        for batch in spec.red_team_attacks.iter().flat_map(|attacks| &attacks.batches) {
            let vector = attacks::vector_of(&batch.vector_id)?;
            let count = self.take(batch.count);
            self.attack(vector, &batch.intent, count, &means, Some(batch), has_model);
        }
        Ok(())
    }

    /// Returns how many of `count` can still be made, and counts them as taken.
    fn take(&mut self, count: i64) -> usize {
        let count = count.max(0);
        self.asked = self.asked.saturating_add(count);
        let taken = usize::try_from(count).unwrap_or(usize::MAX).min(self.left);
        self.left -= taken;
        taken
    }

    fn goal(&mut self, category: &'static str, goal: &str, who: Option<(&str, &str)>, count: i64, has_model: bool) {
        let count = self.take(count);
        let draft = || Draft {
            human: DigitalHumanSpec {
                intent: goal.to_owned(),
                role_description: who.map(|(_, description)| description.to_owned()),
                tags: who.map(|(name, _)| name.to_owned()).into_iter().collect(),
                success_criteria: format!("The agent resolves: {goal}"),
                ..DigitalHumanSpec::default()
            },
            category,
            goal: goal.to_owned(),
            worded: false,
        };
        let material =
            json!({ "goal": goal, "persona": who.map(|(name, about)| json!({"name": name, "description": about})) });
        self.from_templates |= !has_model && count > 0;
        self.push((0..count).map(|_| draft()).collect(), has_model.then(|| Wish::callers(material, who.is_none())));
    }

    fn push(&mut self, drafts: Vec<Draft>, wish: Option<Wish>) {
        if !drafts.is_empty() {
            self.parts.push(Part { drafts, wish });
        }
    }

    /// Adds a Digital Human for each path in order, beginning again at the first when there are fewer.
    fn scenario(&mut self, asked: &ScenarioAsked) {
        if asked.paths.is_empty() {
            return;
        }
        let count = self.take(asked.count);
        let draft = |nth: usize| {
            let index = nth % asked.paths.len();
            let name = Some(paths::name(&asked.name, index));
            let mut human = DigitalHumanSpec { name, ..DigitalHumanSpec::default() };
            paths::lay(&mut human, asked.id, &asked.name, index, &asked.paths[index]);
            Draft { human, category: "workflow_adherence", goal: asked.name.clone(), worded: false }
        };
        self.push((0..count).map(draft).collect(), None);
    }

    fn replay(&mut self, asked: &ReplayAsked, text: &str, has_model: bool) -> Result<()> {
        let (criteria, mode) = match asked {
            ReplayAsked::Text(asked) => (&asked.success_criteria, asked.mode),
            ReplayAsked::Conversation(asked) => (&asked.success_criteria, asked.mode),
        };
        let criteria = criteria.clone().filter(|criteria| !criteria.trim().is_empty());
        let lines = transcript_lines(text);
        if lines.is_none() && !has_model {
            return Err(Error::Unavailable("Language model is not configured".into()));
        }
        if self.take(1) == 0 {
            return Ok(());
        }
        let mut human = DigitalHumanSpec::default();
        let unread = lines.is_none().then(|| text.to_owned());
        if let Some(lines) = lines {
            replay::lay(&mut human, text, lines, mode);
        }
        let is_whole = unread.is_none() && criteria.is_some() && mode != ReplayMode::Persona;
        let wish = (has_model && !is_whole).then(|| Wish::replay(text, unread, mode, criteria.is_none()));
        if let Some(criteria) = criteria {
            human.success_criteria = criteria;
        }
        let goal = human.intent.clone();
        self.push(vec![Draft { human, category: "replay_transcript", goal, worded: false }], wish);
        Ok(())
    }

    fn rules(&mut self, count: i64, frame: &Frame, has_model: bool) -> Result<()> {
        if count > 0 && !has_model {
            return Err(Error::Unavailable("Language model is not configured".into()));
        }
        if count > 0 && frame.rules.is_empty() {
            return Err(Error::Refused("Agent version has no text to probe".into()));
        }
        let goal = "keep the rules of its text".to_owned();
        let draft = || Draft {
            human: DigitalHumanSpec::default(),
            category: "system_prompt",
            goal: goal.clone(),
            worded: false,
        };
        let drafts = (0..self.take(count)).map(|_| draft()).collect();
        self.push(drafts, Some(Wish::rules(frame.rules.clone())));
        Ok(())
    }

    fn attack(
        &mut self,
        vector: &'static Vector,
        intent: &str,
        count: usize,
        means: &Means,
        batch: Option<&AttackBatch>,
        has_model: bool,
    ) {
        let draft = |nth: usize| {
            let mut human = DigitalHumanSpec::default();
            let seed = Seed::of(&format!("{} {intent} {nth}", vector.id));
            let known = batch.map(|batch| give_knowledge(&mut human, batch, seed)).unwrap_or_default();
            attacks::lay(&mut human, vector, intent, means, &known);
            let custom = batch.and_then(|batch| batch.custom_success_criteria.clone());
            human.success_criteria = custom.filter(|text| !text.trim().is_empty()).unwrap_or(human.success_criteria);
            Draft { human, category: "red_teaming", goal: intent.to_owned(), worded: false }
        };
        self.from_templates |= !has_model && count > 0;
        self.push((0..count).map(draft).collect(), has_model.then(|| Wish::attack(vector.id, intent)));
    }
}

/// Gives an attacker what it knows of the victim, inventing what is to be invented, and tells it for the plan.
fn give_knowledge(human: &mut DigitalHumanSpec, batch: &AttackBatch, seed: Seed) -> Vec<Value> {
    let mut plan = Vec::with_capacity(batch.traits.len());
    for given in &batch.traits {
        let kind = TraitType::parse(&given.data_type.to_uppercase()).unwrap_or(TraitType::String);
        let mut draw = seed.stream(&given.name);
        let (value, completeness) = resolve(&given.name, kind, &given.value, given.completeness.as_deref(), &mut draw);
        // A part of a value is only a text.
        let fits = fits(kind, &value);
        let (kind, value) = match (fits, value) {
            (true, value) => (kind, value),
            (false, Value::String(text)) => (TraitType::String, Value::String(text)),
            (false, other) => (TraitType::String, Value::String(other.to_string())),
        };
        plan.push(json!({ "name": given.name, "completeness": completeness }));
        let trait_name = given.name.clone();
        human.traits.push(Trait { trait_name, trait_data_type: kind, value, is_sip_header: false });
    }
    plan
}

/// Returns the steps of a short call: a greeting, one question and thanks, in the words of a language.
fn short_call(language: Language) -> Vec<Object> {
    let step = |speaker: &str, key: &str, text: &str| {
        let members = [("speaker", json!(speaker)), ("type", json!("message")), (key, json!(text))];
        members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
    };
    let [greeting, question, thanks] = phrases(language.as_str()).short_call;
    vec![
        step("agent", "criteria", "greets the caller"),
        step("user", "exact_message", greeting),
        step("agent", "criteria", "offers help"),
        step("user", "exact_message", question),
        step("agent", "criteria", "answers the question"),
        step("user", "exact_message", thanks),
    ]
}

/// Returns a draft with a greeting, one question and thanks.
fn load() -> Draft {
    let human = DigitalHumanSpec {
        intent: "Ask for today's opening hours.".into(),
        success_criteria: "The agent answers the question.".into(),
        fluency: Fluency::Native,
        enriched_playback: Some(short_call(Language::En)),
        ..DigitalHumanSpec::default()
    };
    Draft { human, category: "load_testing", goal: "answer a short question under load".into(), worded: false }
}

/// Returns the drafts of a part, in the language model's words where it is asked.
async fn word(model: Option<&dyn LanguageModel>, part: Part) -> Result<Vec<Draft>> {
    let Part { mut drafts, wish } = part;
    if let (Some(model), Some(wish)) = (model, wish) {
        wish.grant(model, &mut drafts).await?;
        drafts.iter_mut().for_each(|draft| draft.worded = true);
    }
    Ok(drafts)
}
