//! Drafts of the language model that are not stored: test scenarios, personas, values of traits, graphs.

mod wanted;

use std::collections::BTreeMap;

use futures_util::stream::{self, StreamExt, TryStreamExt};
use ringer_base::clock;
use ringer_base::error::{Error, Result};
use ringer_judge::ask_typed;
use ringer_media::seed::Seed;
use ringer_model::agent::AgentDoc;
use ringer_model::digital_human::{Trait, TraitType};
use ringer_model::scenario::{Definition, ScenarioDoc};
use ringer_model::test_scenario::{
    GraphAsked, MoveAsked, PersonaDraft, PersonasAsked, PersonasMade, RegenAsked, ScenarioAgent, ScenariosAsked,
    ScenariosMade, TestScenario, TraitValue, ValuesAsked,
};
use ringer_provider::LanguageModel;
use ringer_store::Session;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use self::wanted::{Item, list_items};
use super::Generation;
use crate::Caller;
use crate::humans::scenarios::check_definition;
use crate::library::customers::personas_by_id;
use crate::library::field_rules;
use crate::library::human_rules::values::{fits, invent};
use crate::library::versions::version_of;

/// Questions that the language model answers at once.
const AT_ONCE: usize = 4;

/// A graph that was drafted.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GraphMade {
    /// Graph that the model drafted.
    pub definition: Definition,
}

/// A value of each trait, by the position of the scenario.
pub type ValuesMade = BTreeMap<String, Vec<TraitValue>>;

/// One scenario as the model writes it.
#[derive(Deserialize, JsonSchema)]
struct Drafted {
    #[schemars(length(min = 1))]
    name: String,
    #[schemars(length(min = 1))]
    description: String,
    #[serde(default)]
    goal: String,
    #[schemars(length(min = 1))]
    intent: String,
    #[schemars(length(min = 1))]
    success_criteria: String,
    #[serde(default)]
    traits: Vec<TraitValue>,
}

#[derive(Deserialize, JsonSchema)]
struct DraftedAll {
    scenarios: Vec<Drafted>,
}

/// Parts of a scenario that change with its goal, as the model writes them.
#[derive(Deserialize, JsonSchema)]
struct Moved {
    #[schemars(length(min = 1))]
    intent: String,
    #[schemars(length(min = 1))]
    success_criteria: String,
}

#[derive(Deserialize, JsonSchema)]
struct MovedAll {
    scenarios: Vec<Moved>,
}

#[derive(Deserialize, JsonSchema)]
struct Personas {
    personas: Vec<PersonaDraft>,
}

#[derive(Deserialize, JsonSchema)]
struct Values {
    values: Vec<Vec<TraitValue>>,
}

const SCENARIOS: &str = "You invent test scenarios for the voice agent described. Each has a name (short), a description (what \
    happens, one to three sentences), a goal, an intent (what the caller wants, in the first person, with the facts that it needs), \
    success_criteria (one sentence that can be checked in a transcript: what the agent has to have done) and traits (a value of \
    each trait that is asked for). They differ from each other. The form is {\"scenarios\": [{\"name\": \"\", \"description\": \
    \"\", \"goal\": \"\", \"intent\": \"\", \"success_criteria\": \"\", \"traits\": [{\"name\": \"\", \"value\": \"\"}]}]}.";
const MOVE: &str = "You adapt test scenarios for the voice agent described to a new goal. The description of each stays as it is; \
    you write a new intent (what the caller wants, in the first person) and new success_criteria (one sentence that can be checked \
    in a transcript) for each, in the same order. The form is {\"scenarios\": [{\"intent\": \"\", \"success_criteria\": \"\"}]}.";
const REGEN: &str = "You rewrite test scenarios for the voice agent described after the instructions, and keep their style, \
    structure and order. The form is {\"scenarios\": [{\"name\": \"\", \"description\": \"\", \"goal\": \"\", \"intent\": \"\", \
    \"success_criteria\": \"\"}]}.";
const PERSONAS: &str = "You invent kinds of customers of the voice agent described. Each has a name (two or three words), a \
    description (who this customer is and how it speaks, two sentences) and a goal (what it wants of the agent, one sentence). \
    They differ from each other. The form is {\"personas\": [{\"name\": \"\", \"description\": \"\", \"goal\": \"\"}]}.";
const VALUES: &str = "You invent facts about the caller of each scenario: one value of each trait, of its data type (BOOLEAN: true \
    or false, NUMBER: a number, DATE: YYYY-MM-DD), that fits the scenario. The form is {\"values\": [[{\"name\": \"\", \"value\": \
    \"\"}]]}, with one inner list for each scenario, in the same order.";
const GRAPH: &str = "You design a graph of a telephone conversation between a voice agent and a caller. nodes: exactly one {\"id\": \
    \"start\", \"type\": \"start\", \"position\": {\"x\": 0, \"y\": 0}, \"data\": {}}, and further nodes of type single, with data \
    {\"type\": \"exact\" or \"contextual\" (agent only) or \"silence\" or \"dtmf\", \"speaker\": \"agent\" or \"user\", \
    \"message\": for exact and contextual, \"duration_ms\": for silence, \"digits\": for dtmf}, or of type options (the caller \
    chooses), with data {\"branch_options\": two or more of {\"id\": \"\", \"type\": \"exact\" or \"silence\" or \"dtmf\", and its \
    message, duration_ms or digits}}. edges: {\"id\": \"\", \"source\": node id, \"target\": node id, \"sourceHandle\": branch id, \
    where the source has options}. There is no cycle, every node is reached from start, agent and caller take turns. The form is \
    {\"nodes\": [], \"edges\": []}.";

impl Generation {
    /// Drafts scenarios of the wanted kinds.
    pub async fn generate_test_scenarios(&self, caller: &Caller, asked: ScenariosAsked) -> Result<ScenariosMade> {
        let text = self.agent_text(caller, &asked.agent, asked.prompt_id.as_deref()).await?;
        if asked.scenarios.is_empty() {
            return Err(empty());
        }
        let mut db = self.store.org(&caller.organization).read().await?;
        let stored = personas_by_id(&mut db, asked.customer_persona_ids.as_deref().unwrap_or_default()).await?;
        drop(db);
        let model = self.model()?;
        let (mut items, cut) = list_items(&asked, stored)?;
        self.name_workflows(caller, &mut items).await?;
        let about = json!({
            "agent": about(&asked.agent, &text), "properties_of_callers": asked.selected_properties,
            "traits": asked.customer_traits,
        });
        let traits: Vec<(String, TraitType)> = asked
            .customer_traits
            .iter()
            .flatten()
            .map(|wanted| (wanted.name.clone(), wanted.data_type.kind()))
            .collect();
        let made = items.into_iter().map(|item| draft_item(model.as_ref(), item, &about, &traits));
        let made: Vec<Vec<TestScenario>> = stream::iter(made).buffered(AT_ONCE).try_collect().await?;
        Ok(answer(made.into_iter().flatten().collect(), cut))
    }

    /// Gives scenarios a new goal; what happens in them stays.
    pub async fn move_regen_test_scenarios(&self, caller: &Caller, asked: MoveAsked) -> Result<ScenariosMade> {
        let text = self.agent_text(caller, &asked.agent, asked.prompt_id.as_deref()).await?;
        if asked.scenarios.is_empty() {
            return Err(empty());
        }
        let model = self.model()?;
        let material =
            json!({ "agent": about(&asked.agent, &text), "new_goal": asked.new_goal, "scenarios": asked.scenarios });
        let count = asked.scenarios.len();
        let moved =
            ask_typed(model.as_ref(), MOVE, &material, |answer: MovedAll| exactly(answer.scenarios, count)).await?;
        let laid = asked.scenarios.into_iter().zip(moved).map(|(scenario, moved)| TestScenario {
            id: scenario.id.or_else(|| Some(clock::new_id())),
            goal: asked.new_goal.clone(),
            intent: moved.intent,
            success_criteria: moved.success_criteria,
            ..scenario
        });
        Ok(answer(laid.collect(), None))
    }

    /// Rewrites scenarios after instructions.
    pub async fn regen_test_scenarios(&self, caller: &Caller, asked: RegenAsked) -> Result<ScenariosMade> {
        let text = self.agent_text(caller, &asked.agent, asked.prompt_id.as_deref()).await?;
        if asked.scenarios.is_empty() {
            return Err(empty());
        }
        let model = self.model()?;
        let material = json!({
            "agent": about(&asked.agent, &text), "instructions": asked.instructions, "persona": asked.persona,
            "scenarios": asked.scenarios,
        });
        let count = asked.scenarios.len();
        let drafts =
            ask_typed(model.as_ref(), REGEN, &material, |answer: DraftedAll| exactly(answer.scenarios, count)).await?;
        let laid = asked.scenarios.into_iter().zip(drafts).map(|(scenario, drafted)| TestScenario {
            id: scenario.id.or_else(|| Some(clock::new_id())),
            name: drafted.name,
            description: drafted.description,
            goal: if drafted.goal.is_empty() { scenario.goal } else { drafted.goal },
            intent: drafted.intent,
            success_criteria: drafted.success_criteria,
            persona: asked.persona.clone().or(scenario.persona),
            ..scenario
        });
        Ok(answer(laid.collect(), None))
    }

    /// Drafts personas of an agent's customers.
    pub async fn generate_customer_personas(&self, caller: &Caller, asked: PersonasAsked) -> Result<PersonasMade> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let agent = db.get::<AgentDoc>(asked.agent_id.get().ok_or(Error::NotFound("Agent"))?).await?;
        let version = match field_rules::twins(asked.agent_version_id, asked.prompt_id)? {
            Some(id) => Some(version_of(&mut db, agent.id, id).await?),
            None => db.production_version(agent.id).await?,
        };
        drop(db);
        let model = self.model()?;
        let material = json!({
            "agent": {"name": agent.doc.spec.name, "goals": agent.doc.spec.goals,
                "text": version.map(|version| version.doc.prompt_text)},
            "number_of_personas": asked.count, "wish": asked.custom_prompt,
        });
        let enough = |answer: Personas| exactly(answer.personas, asked.count as usize);
        let personas = ask_typed(model.as_ref(), PERSONAS, &material, enough).await?;
        Ok(PersonasMade { personas, status: "200".into() })
    }

    /// Invents a value of each trait for each scenario: by the language model, or plain ones without it.
    pub async fn generate_trait_values(&self, asked: ValuesAsked) -> Result<ValuesMade> {
        let mut values = vec![Vec::new(); asked.scenarios.len()];
        if let (Some(model), false) = (&self.model, asked.scenarios.is_empty() || asked.traits.is_empty()) {
            let count = asked.scenarios.len();
            let typed = |answer: Values| exactly(answer.values, count);
            values = ask_typed(model.as_ref(), VALUES, &json!(asked), typed).await?;
        }
        let row = |(index, given): (usize, Vec<TraitValue>)| {
            let seed = Seed::of(&asked.scenarios[index]);
            let value = |name: &str, kind| TraitValue { name: name.into(), value: fitting(name, kind, &given, seed) };
            (index.to_string(), asked.traits.iter().map(|wanted| value(&wanted.name, wanted.data_type)).collect())
        };
        Ok(values.into_iter().enumerate().map(row).collect())
    }

    /// Drafts a graph that keeps the rules of scenarios.
    pub async fn generate_scenario(&self, asked: GraphAsked) -> Result<GraphMade> {
        let model = self.model()?;
        let material = json!({ "wish": asked.prompt, "context": asked.context });
        let lawful = |definition: Definition| match check_definition(&definition) {
            Ok(0) => Err("it has no path".to_owned()),
            Ok(_) => Ok(definition),
            Err(error) => Err(error.to_string()),
        };
        let definition = ask_typed(model.as_ref(), GRAPH, &material, lawful).await?;
        Ok(GraphMade { definition })
    }

    /// Puts what a scenario of this organization says of itself in the place of its id; any other text is a goal of its
    /// own.
    async fn name_workflows(&self, caller: &Caller, items: &mut [Item]) -> Result<()> {
        let mut db = self.store.org(&caller.organization).read().await?;
        for item in items {
            let Some(id) = item.workflow else { continue };
            if let Some(scenario) = db.find::<ScenarioDoc>(id).await? {
                (item.goal, item.instructions) = (Some(scenario.doc.name), scenario.doc.description);
            }
        }
        Ok(())
    }

    /// Returns the text of the named version of the agent; without a version, what the request says of it.
    async fn agent_text(&self, caller: &Caller, agent: &ScenarioAgent, version: Option<&str>) -> Result<String> {
        let description = agent.agent_description.clone().or_else(|| agent.system_prompt.clone()).unwrap_or_default();
        let Some(version) = version else { return Ok(description) };
        let id = agent.id.as_ref().ok_or_else(|| Error::Refused("promptId needs agent.id".into()))?;
        let id = id.get().ok_or(Error::NotFound("Agent"))?;
        let missing = || Error::NotFound("Agent version");
        let version = uuid::Uuid::parse_str(version).map_err(|_| missing())?;
        let mut db: Session = self.store.org(&caller.organization).read().await?;
        db.get::<AgentDoc>(id).await?;
        Ok(version_of(&mut db, id, version).await?.doc.prompt_text)
    }
}

fn empty() -> Error {
    Error::Refused("scenarios must not be empty".into())
}

fn answer(scenarios: Vec<TestScenario>, warning: Option<String>) -> ScenariosMade {
    ScenariosMade { scenarios, status: "200".into(), success: true, warning }
}

fn about(agent: &ScenarioAgent, text: &str) -> Value {
    json!({ "name": agent.name, "goals": agent.goals, "mode": agent.mode, "type": agent.kind, "text": text })
}

/// Returns the first `count` entries of a list; an error if it has fewer.
fn exactly<T>(mut list: Vec<T>, count: usize) -> std::result::Result<Vec<T>, String> {
    if list.len() < count {
        return Err(format!("there are {} entries, {count} are wanted", list.len()));
    }
    list.truncate(count);
    Ok(list)
}

/// Returns the value that was given for a trait when it has the trait's type, else a plain one.
fn fitting(name: &str, kind: TraitType, given: &[TraitValue], seed: Seed) -> Value {
    let value = given.iter().find(|value| value.name == name).map(|value| &value.value);
    let value = value.filter(|value| fits(kind, value)).cloned();
    value.unwrap_or_else(|| invent(name, kind, &mut seed.stream(name)))
}

/// Returns the scenarios of one item.
async fn draft_item(
    model: &dyn LanguageModel,
    item: Item,
    about: &Value,
    traits: &[(String, TraitType)],
) -> Result<Vec<TestScenario>> {
    let material = json!({ "about": about, "wanted": item.material(), "number_of_scenarios": item.count });
    let drafts =
        ask_typed(model, SCENARIOS, &material, |answer: DraftedAll| exactly(answer.scenarios, item.count)).await?;
    let laid = drafts.into_iter().map(|drafted| {
        let id = clock::new_id();
        let seed = Seed::of(&drafted.intent);
        let value = |(name, kind): &(String, TraitType)| Trait {
            trait_name: name.clone(),
            trait_data_type: *kind,
            value: fitting(name, *kind, &drafted.traits, seed),
            is_sip_header: false,
        };
        TestScenario {
            id: Some(id),
            traits: traits.iter().map(value).collect(),
            name: drafted.name,
            description: item.description.clone().unwrap_or(drafted.description),
            goal: item.goal.clone().unwrap_or(drafted.goal),
            category: item.category.clone(),
            intent: item.intent.clone().unwrap_or(drafted.intent),
            success_criteria: item.success_criteria.clone().unwrap_or(drafted.success_criteria),
            persona: item.persona.clone(),
            language: Default::default(),
            original_transcript: item.transcript.clone(),
            formatted_transcript: item.lines.clone(),
            expected_tool_calls: item.tools.clone(),
        }
    });
    Ok(laid.collect())
}
