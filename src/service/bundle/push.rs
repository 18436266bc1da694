//! The declarative push: a bundle becomes what is stored. It is carried out in one transaction by the same checks and
//! writes as single changes; when anything in it is refused, the transaction is dropped and all that is wrong is told.

use ringer_base::error::{Error, Result};
use ringer_model::Object;
use ringer_model::agent::{AgentDoc, AgentSpec};
use ringer_model::bundle::{Bundle, EntityError, Pushed};
use ringer_model::custom_metric::CustomMetricSpec;
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::patch::Patch;
use ringer_model::playback::ScriptedResponse;
use ringer_model::schema::{Kind, Node};
use ringer_model::simulation::SimulationSpec;
use ringer_model::validate::{Source, validate};
use ringer_model::validation_error::ValidationErrors;
use ringer_store::{Metrics, Row, Session};
use ringer_syntax::json;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use uuid::Uuid;

use super::Bundles;
use super::label_colours::{Colours, LABEL_COLOURS, read_colours};
use crate::Caller;
use crate::library::agents::broken_rules;
use crate::library::field_rules::Broken;
use crate::library::simulations::{check_journeys, name_of};
use crate::library::{field_rules, human_rules, metrics, simulations};

/// The field by which an entity is known.
const CODE: &str = "svc_as_code_id";

impl Bundles {
    /// Creates what is absent, changes what differs, leaves what is the same.
    pub async fn push(&self, caller: &Caller, bundle: Bundle) -> Result<Pushed> {
        let refused = self.refused_names(&bundle).await?;
        let db = self.store.org(&caller.organization).write().await?;
        let mut push = Push { bundles: self, db, caller, errors: vec![], actions: vec![] };
        let count =
            |entities: &[Object], what: &str| (entities.len() != 1).then(|| format!("exactly one {what} is required"));
        let counts = [count(&bundle.agents, "agent"), count(&bundle.simulations, "simulation")];
        for text in counts.into_iter().flatten() {
            push.errors.push(EntityError { entity_type: "bundle".into(), entity_id: Value::Null, errors: vec![text] });
        }
        for (kind, entity, text) in refused {
            let field = text.split(' ').next().unwrap_or_default().to_owned();
            push.wrong(kind, entity, vec![format!("{field}: {text}")]);
        }
        let (mut agent, mut simulation) = (None, None);
        for entity in &bundle.agents {
            let done = push.agent(entity).await?;
            agent = agent.or(done);
        }
        let agent = match agent {
            Some(agent) => agent,
            None => push.stand_in_agent(bundle.agents.first()).await?,
        };
        for entity in &bundle.simulations {
            let done = push.simulation(entity, &agent).await?;
            simulation = simulation.or(done);
        }
        let simulation = match simulation {
            Some(simulation) => simulation,
            None => push.stand_in_simulation(bundle.simulations.first(), &agent).await?,
        };
        push.humans(&bundle.digital_humans, &simulation).await?;
        push.metrics(&bundle.custom_metrics, &agent, &simulation).await?;
        let Push { db, errors, actions, .. } = push;
        if !errors.is_empty() {
            return Ok(Pushed { valid: false, errors, actions: vec![], simulation_id: None });
        }
        db.answer(Pushed { valid: true, errors, actions, simulation_id: Some(simulation.id) }).await
    }
}

impl Bundles {
    /// Entities with a URL whose name leads to where nothing may be sent, and what is said of it. Found before the
    /// transaction: names may take long.
    async fn refused_names<'b>(&self, bundle: &'b Bundle) -> Result<Vec<(&'static str, &'b Object, String)>> {
        let agents = bundle.agents.iter().map(|agent| {
            let given = AgentSpec::POSTED_TO.into_iter().zip(AgentSpec::posted_to_in(agent));
            let urls = given.filter_map(|(field, url)| Some((field.to_owned(), url?.to_owned())));
            ("agent", agent, urls.collect::<Vec<_>>())
        });
        let humans = bundle.digital_humans.iter();
        let humans = humans.map(|human| ("digital_human", human, human_rules::urls_of(&Value::Object(human.clone()))));
        let mut refused = Vec::new();
        for (kind, entity, urls) in agents.chain(humans).collect::<Vec<_>>() {
            match field_rules::look(&urls, &self.settings, self.poster.guard()).await {
                Ok(()) => {}
                Err(Error::Refused(text)) => refused.push((kind, entity, text)),
                Err(error) => return Err(error),
            }
        }
        Ok(refused)
    }
}

/// The agent or the simulation that others of the bundle name.
struct Anchor {
    id: i64,
    /// `None`: it has none that could be named.
    code: Option<Uuid>,
    /// True if it did not exist before this push.
    is_new: bool,
}

impl Anchor {
    /// True if a link of another entity may refer to this one; any link may if this one has no code.
    fn is_named_by(&self, link: &Value) -> bool {
        self.code.is_none() || link.as_str().and_then(|text| Uuid::parse_str(text).ok()) == self.code
    }
}

/// An entity that fits its schema.
struct Checked<T> {
    code: String,
    /// Specification for creating the entity.
    spec: T,
    /// Fields for changing an existing entity.
    patch: Object,
}

/// Form that an identifier must have.
#[derive(Clone, Copy)]
enum Code {
    Uuid,
    /// Any text: there is an entity that has it.
    Text,
}

struct Push<'p> {
    bundles: &'p Bundles,
    db: Session,
    caller: &'p Caller,
    errors: Vec<EntityError>,
    actions: Vec<String>,
}

impl Push<'_> {
    fn wrong(&mut self, kind: &str, entity: &Object, errors: Vec<String>) {
        let entity_id = entity.get(CODE).cloned().unwrap_or_default();
        self.errors.push(EntityError { entity_type: kind.to_owned(), entity_id, errors });
    }

    /// Takes what a write refused as an error of the entity; `broken`: the rules of its kind that it breaks, as far as
    /// they are known.
    fn require_valid<T, V: JsonSchema>(
        &mut self,
        kind: &str,
        entity: &Object,
        done: Result<T>,
        broken: Vec<impl Into<Broken>>,
    ) -> Result<Option<T>> {
        match done {
            Ok(value) => Ok(Some(value)),
            Err(Error::Internal(cause)) => Err(Error::Internal(cause)),
            Err(error) => {
                let (mut first, rest): (Vec<Broken>, Vec<Broken>) =
                    broken.into_iter().map(Into::into).partition(|broken| broken.error == error);
                if first.is_empty() {
                    first.push(error.into());
                }
                let errors = first.into_iter().chain(rest).map(|Broken { field, error }| {
                    let text = error.to_string();
                    let field = field.map_or_else(|| field_of::<V>(&text, kind), str::to_owned);
                    format!("{field}: {text}")
                });
                self.wrong(kind, entity, errors.collect());
                Ok(None)
            }
        }
    }

    fn did(&mut self, verb: &str, what: &str, name: &str) {
        self.actions.push(format!("{verb} {what} '{name}'"));
    }

    fn check_entity<T: JsonSchema + DeserializeOwned>(
        &mut self,
        kind: &str,
        entity: &Object,
        more: Vec<String>,
        codes: &mut Vec<String>,
        code: Code,
    ) -> Result<Option<Checked<T>>> {
        let mut wrong = more;
        let (created, changed) = (walk_entity::<T>(entity, code), walk_entity::<Patch<T>>(entity, code));
        wrong.extend(created.as_ref().err().into_iter().flatten().cloned());
        let code = created.as_ref().ok().and_then(|walked| walked.get(CODE)?.as_str().map(str::to_owned));
        if entity.get(CODE).is_none_or(Value::is_null) {
            wrong.push(format!("{CODE}: Field required"));
        }
        if code.as_ref().is_some_and(|code| codes.contains(code)) {
            wrong.push(format!("{CODE}: is in the bundle more than once"));
        }
        codes.extend(code.clone());
        match (created, changed, code) {
            (Ok(created), Ok(patch), Some(code)) if wrong.is_empty() => {
                let spec = serde_json::from_value(Value::Object(created)).map_err(Error::internal)?;
                Ok(Some(Checked { code, spec, patch }))
            }
            _ => {
                self.wrong(kind, entity, wrong);
                Ok(None)
            }
        }
    }

    async fn agent(&mut self, entity: &Object) -> Result<Option<Anchor>> {
        const KIND: &str = "agent";
        let (colours, more) = match read_colours(entity) {
            Ok(colours) => (colours, vec![]),
            Err(wrong) => (vec![], wrong),
        };
        let Some(checked) = self.check_entity::<AgentSpec>(KIND, entity, more, &mut vec![], Code::Uuid)? else {
            return Ok(None);
        };
        let (bundles, caller) = (self.bundles, self.caller);
        let code = Uuid::parse_str(&checked.code).ok();
        let name = checked.spec.name.clone();
        let Some(row) = self.db.by::<AgentDoc>("code_id", checked.code).await?.pop() else {
            let broken = broken_rules(&mut checked.spec.clone(), &bundles.settings);
            let done = bundles.library.insert_agent(&mut self.db, caller, checked.spec).await;
            let made = self.require_valid::<_, AgentSpec>(KIND, entity, done, broken)?;
            self.did("Created", "agent", &name);
            let Some((id, _)) = made else { return Ok(None) };
            self.colour_labels(entity, id, colours).await?;
            return Ok(Some(Anchor { id, code, is_new: true }));
        };
        let id = row.id;
        let broken = broken_rules(&mut field_rules::apply_patch(&row.doc.spec, &checked.patch)?, &bundles.settings);
        let done = bundles.library.amend_agent(&mut self.db, caller, row, &checked.patch).await;
        let amended = self.require_valid::<_, AgentSpec>(KIND, entity, done, broken)?;
        if amended.is_some_and(|amended| amended.changed) {
            self.did("Updated", "agent", &name);
        }
        self.colour_labels(entity, id, colours).await?;
        Ok(Some(Anchor { id, code, is_new: false }))
    }

    async fn colour_labels(&mut self, entity: &Object, agent_id: i64, colours: Colours) -> Result<()> {
        match self.bundles.library.colour_labels(&mut self.db, self.caller, agent_id, colours).await {
            Ok(changed) => {
                for (text, is_new) in changed {
                    self.did(if is_new { "Created" } else { "Updated" }, "label", &text);
                }
                Ok(())
            }
            Err(Error::Internal(cause)) => Err(Error::Internal(cause)),
            Err(error) => {
                self.wrong("agent", entity, vec![format!("{LABEL_COLOURS}: {error}")]);
                Ok(())
            }
        }
    }

    async fn simulation(&mut self, entity: &Object, agent: &Anchor) -> Result<Option<Anchor>> {
        const KIND: &str = "simulation";
        let mut fields = entity.clone();
        let link = fields.shift_remove("agent").filter(|link| !link.is_null());
        let stray = link.filter(|link| !agent.is_named_by(link));
        let more = stray.map(|link| format!("agent: {link} is not the agent of the bundle")).into_iter().collect();
        // The selection follows from the metrics of the bundle.
        fields.shift_remove("selected_custom_metrics");
        fields.insert("agent_id".into(), agent.id.to_string().into());
        let Some(checked) = self.check_entity::<SimulationSpec>(KIND, &fields, more, &mut vec![], Code::Uuid)? else {
            return Ok(None);
        };
        let (bundles, caller) = (self.bundles, self.caller);
        let code = Uuid::parse_str(&checked.code).ok();
        let found = self.db.by::<SimulationSpec>("code_id", checked.code).await?.pop();
        let (id, is_new, verb) = match found {
            None => {
                let broken = simulations::broken_rules(&mut checked.spec.clone(), None);
                let done = bundles.library.insert_simulation(&mut self.db, caller, checked.spec).await;
                let Some(id) = self.require_valid::<_, SimulationSpec>(KIND, entity, done, broken)? else {
                    return Ok(None);
                };
                (id, true, Some("Created"))
            }
            Some(row) => {
                let mut spec = simulations::lay_patch(&row.doc, checked.patch.clone())?;
                let broken = simulations::broken_rules(&mut spec, Some(&row.doc));
                let done = bundles.library.amend_simulation(&mut self.db, caller, &row, checked.patch).await;
                let changed = self.require_valid::<_, SimulationSpec>(KIND, entity, done, broken)?;
                (row.id, false, changed.filter(|changed| *changed).map(|_| "Updated"))
            }
        };
        if let Some(verb) = verb {
            let name = name_of(&self.db.get(id).await?);
            self.did(verb, "simulation", &name);
        }
        Ok(Some(Anchor { id, code, is_new }))
    }

    async fn humans(&mut self, entities: &[Object], simulation: &Anchor) -> Result<()> {
        let (mut kept, mut codes, mut linked, mut unlinked) = (vec![], vec![], 0, 0);
        let before = self.db.digital_humans_of(simulation.id).await?;
        for entity in entities {
            let Some((id, is_new)) = self.human(entity, simulation, &mut codes).await? else { continue };
            kept.push(id);
            linked += i64::from(!is_new && before.iter().all(|row| row.id != id));
            self.db.link(simulation.id, id, self.bundles.clock.now_ms()).await?;
        }
        let left: Vec<Row<DigitalHumanSpec>> = before.into_iter().filter(|row| !kept.contains(&row.id)).collect();
        for row in &left {
            unlinked += i64::from(self.db.unlink(simulation.id, row.id).await?);
        }
        self.bundles.library.silence(&mut self.db, self.caller, left).await?;
        match check_journeys(&mut self.db, simulation.id).await {
            Err(Error::Refused(text)) => self.errors.push(EntityError {
                entity_type: "bundle".into(),
                entity_id: Value::Null,
                errors: vec![format!("digital_humans: {text}")],
            }),
            other => other?,
        }
        if linked > 0 {
            self.actions.push(format!("Linked {linked} existing digital human(s) to simulation"));
        }
        if unlinked > 0 {
            self.actions.push(format!("Unlinked {unlinked} digital human(s) from simulation"));
        }
        Ok(())
    }

    /// Pushes a Digital Human; returns its id, and true if it did not exist before. `None`: it was refused.
    async fn human(
        &mut self,
        entity: &Object,
        simulation: &Anchor,
        codes: &mut Vec<String>,
    ) -> Result<Option<(i64, bool)>> {
        const KIND: &str = "digital_human";
        let mut fields = entity.clone();
        let links = fields.shift_remove("simulations").filter(|links| !links.is_null());
        let more = match links {
            None => None,
            Some(Value::Array(links)) => links
                .iter()
                .find(|link| !simulation.is_named_by(link))
                .map(|link| format!("simulations: {link} is not the simulation of the bundle")),
            Some(_) => Some("simulations: Input should be a valid list".into()),
        };
        for (old, new) in [("human_name", "name"), ("description", "intent")] {
            if let (Some(value), true) = (fields.shift_remove(old), fields.get(new).is_none_or(Value::is_null)) {
                fields.insert(new.into(), value);
            }
        }
        let scripted = fields.get_mut("scripted_responses").and_then(Value::as_array_mut);
        for response in scripted.into_iter().flatten().filter_map(Value::as_object_mut) {
            for (field, default) in ScriptedResponse::import_defaults() {
                let given = response.entry(field).or_insert(Value::Null);
                if given.is_null() {
                    *given = default.into();
                }
            }
        }
        let checked =
            self.check_entity::<DigitalHumanSpec>(KIND, &fields, more.into_iter().collect(), codes, Code::Uuid)?;
        let Some(checked) = checked else { return Ok(None) };
        let (bundles, caller) = (self.bundles, self.caller);
        let Some(row) = self.db.by::<DigitalHumanSpec>("code_id", checked.code).await?.pop() else {
            let broken = human_rules::broken(&mut checked.spec.clone(), &bundles.settings);
            let done = bundles.humans.make_human(&mut self.db, caller, checked.spec, &[simulation.id]).await;
            let Some(made) = self.require_valid::<_, DigitalHumanSpec>(KIND, entity, done, broken)? else {
                return Ok(None);
            };
            self.did("Created", "digital human", made.digital_human.spec.name.as_deref().unwrap_or_default());
            return Ok(Some((made.digital_human.id, true)));
        };
        let mut links = self.db.simulations_of(row.id).await?;
        links.push(simulation.id);
        let broken = human_rules::broken(&mut field_rules::apply_patch(&row.doc, &checked.patch)?, &bundles.settings);
        let done = bundles.humans.amend_human(&mut self.db, caller, &row, &checked.patch, Some(&links), false).await;
        let Some(changed) = self.require_valid::<_, DigitalHumanSpec>(KIND, entity, done, broken)? else {
            return Ok(None);
        };
        if changed {
            let name = self.db.get::<DigitalHumanSpec>(row.id).await?.doc.name.unwrap_or_default();
            self.did("Updated", "digital human", &name);
        }
        Ok(Some((row.id, false)))
    }

    async fn metrics(&mut self, entities: &[Object], agent: &Anchor, simulation: &Anchor) -> Result<()> {
        let row = self.db.get::<SimulationSpec>(simulation.id).await?;
        let before = match &row.doc.selected_custom_metrics {
            _ if simulation.is_new => vec![],
            Some(selected) => selected.clone(),
            None => ids(&self.db.metrics(Metrics::OfAgent(agent.id), i64::MAX, 0).await?),
        };
        let (mut wanted, mut codes) = (vec![], vec![]);
        for entity in entities {
            wanted.extend(self.metric(entity, agent, &mut codes).await?);
        }
        let linked = wanted.iter().filter(|id| !before.contains(id)).count();
        let unlinked = before.iter().filter(|id| !wanted.contains(id)).count();
        if linked > 0 {
            self.actions.push(format!("Linked {linked} custom metric(s) to simulation"));
        }
        if unlinked > 0 {
            self.actions.push(format!("Unlinked {unlinked} custom metric(s) from simulation"));
        }
        if simulation.is_new || linked + unlinked > 0 {
            let spec = SimulationSpec { selected_custom_metrics: Some(wanted), ..row.doc };
            self.db.update(row.id, &spec, self.bundles.clock.now_ms(), Some(self.caller.author())).await?;
        }
        Ok(())
    }

    async fn metric(&mut self, entity: &Object, agent: &Anchor, codes: &mut Vec<String>) -> Result<Option<Uuid>> {
        const KIND: &str = "custom_metric";
        let sent = entity.get(CODE).and_then(Value::as_str).unwrap_or_default();
        // As it was sent: what is no uuid may have been given to a metric elsewhere, and uuids were once stored as they
        // came.
        let mut found = self.db.by::<CustomMetricSpec>("code_id", sent).await?;
        let is_text = !found.is_empty() && Uuid::parse_str(sent).is_err();
        let code = if is_text { Code::Text } else { Code::Uuid };
        let (filled, wrong) = match metrics::fill_entity(entity) {
            Ok(filled) => (filled, vec![]),
            Err(error) => (entity.clone(), vec![format!("template_id: {error}")]),
        };
        let checked = self.check_entity::<CustomMetricSpec>(KIND, &filled, wrong, codes, code)?;
        let Some(mut checked) = checked else { return Ok(None) };
        // The template fills what is created; of what exists only the given fields are changed.
        checked.patch.retain(|name, _| entity.contains_key(name));
        let (bundles, caller) = (self.bundles, self.caller);
        let name = checked.spec.name.clone();
        if found.is_empty() {
            found = self.db.by("code_id", checked.code).await?;
        }
        let Some(row) = found.pop() else {
            if !checked.spec.agent_ids.contains(&agent.id) {
                checked.spec.agent_ids.push(agent.id);
            }
            let broken = metrics::broken_rules(&checked.spec);
            let done = bundles.library.insert_metric(&mut self.db, caller, checked.spec).await;
            let made = self.require_valid::<_, CustomMetricSpec>(KIND, entity, done, broken)?;
            self.did("Created", "custom metric", &name);
            return Ok(made.map(|row| row.id));
        };
        let row = self.db.metric(row.id).await?;
        if let Some(Value::Array(agents)) = checked.patch.get_mut("agent_ids")
            && !agents.contains(&agent.id.into())
        {
            agents.push(agent.id.into());
        }
        let broken = metrics::broken_rules(&field_rules::apply_patch(&row.doc, &checked.patch)?);
        let done = bundles.library.amend_metric(&mut self.db, caller, &row, &checked.patch).await;
        let Some(changed) = self.require_valid::<_, CustomMetricSpec>(KIND, entity, done, broken)? else {
            return Ok(None);
        };
        if changed {
            self.did("Updated", "custom metric", &name);
        }
        let mut agents = self.db.metric(row.id).await?.doc.agent_ids;
        if !agents.contains(&agent.id) {
            agents.push(agent.id);
            self.db.link_metric(row.id, &agents).await?;
        }
        Ok(Some(row.id))
    }

    /// Inserts a placeholder for an agent that was refused or is missing. Entities that refer to it are still checked,
    /// and the transaction is dropped.
    async fn stand_in_agent(&mut self, entity: Option<&Object>) -> Result<Anchor> {
        let id = self.db.insert(&AgentDoc::default(), self.bundles.clock.now_ms(), None).await?;
        Ok(Anchor { id, code: code_of(entity), is_new: true })
    }

    /// Inserts a placeholder for a simulation.
    async fn stand_in_simulation(&mut self, entity: Option<&Object>, agent: &Anchor) -> Result<Anchor> {
        let doc = SimulationSpec { agent_id: agent.id.into(), always_on: true, ..SimulationSpec::default() };
        let id = self.db.insert(&doc, self.bundles.clock.now_ms(), None).await?;
        Ok(Anchor { id, code: code_of(entity), is_new: true })
    }
}

fn code_of(entity: Option<&Object>) -> Option<Uuid> {
    entity?.get(CODE)?.as_str().and_then(|text| Uuid::parse_str(text).ok())
}

fn ids(rows: &[Row<CustomMetricSpec>]) -> Vec<Uuid> {
    rows.iter().map(|row| row.id).collect()
}

/// Returns an entity as its schema takes it, else all that is wrong with it.
fn walk_entity<T: JsonSchema>(entity: &Object, code: Code) -> std::result::Result<Object, Vec<String>> {
    let text = Value::Object(entity.clone()).to_string();
    let mut issues = ValidationErrors::default();
    let mut node = Node::of::<T>();
    if let (Code::Uuid, Kind::Fields(fields, _)) = (code, &mut node.kind) {
        // Whatever it is elsewhere, here it is a uuid.
        fields.iter_mut().filter(|field| field.name == CODE).for_each(|field| field.node.kind = Kind::Uuid);
    }
    let walked = match json::read_text(&text) {
        Ok(json) => validate(Source::Body, &node, &json, &mut issues),
        Err(fault) => return Err(vec![format!("body: {}", fault.why)]),
    };
    match walked {
        Value::Object(walked) if issues.is_empty() => Ok(walked),
        _ => Err(texts(&issues)),
    }
}

/// Returns `FIELD: TEXT` of each item, the steps of a field joined by dots.
fn texts(issues: &ValidationErrors) -> Vec<String> {
    let body: Value = serde_json::from_str(&issues.body()).unwrap_or_default();
    let step = |step: &Value| step.as_str().map_or_else(|| step.to_string(), str::to_owned);
    let text = |item: &Value| {
        let loc = item["loc"].as_array().map(Vec::as_slice).unwrap_or_default();
        let field: Vec<String> = loc.iter().skip(1).map(step).collect();
        format!("{}: {}", field.join("."), item["msg"].as_str().unwrap_or_default())
    };
    body["detail"].as_array().into_iter().flatten().map(text).collect()
}

/// Words by which a refusal means a field that it does not name.
const MEANT: [(&str, &str); 4] = [
    ("workflow_v2_id", "scenario"),
    ("custom_background_noise_url", "background_noise_not_found"),
    ("always_on_mode", "always_on"),
    ("journey_steps", "journeys"),
];

/// Returns the field that a refusal speaks of: of the declared ones the first that it names; the kind of the entity
/// when it names none.
fn field_of<T: JsonSchema>(text: &str, kind: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' };
    let words = format!("_{}_", text.chars().map(plain).collect::<String>());
    let Kind::Fields(fields, _) = Node::of::<T>().kind else { return kind.to_owned() };
    let place = |name: &str| {
        let short = name.strip_suffix("_ids").or(name.strip_suffix("_id")).or(name.strip_suffix('s')).unwrap_or(name);
        let meant = MEANT.iter().find(|(field, _)| *field == name).map(|(_, word)| *word);
        let whole = name.to_ascii_lowercase();
        let mut named = [Some(whole.as_str()), Some(short), meant].into_iter().flatten();
        named.find_map(|word| words.find(&format!("_{word}_"))).map(|at| (at, usize::MAX - name.len()))
    };
    let named = fields.iter().filter_map(|field| Some((place(&field.name)?, &field.name)));
    named.min().map_or_else(|| kind.to_owned(), |(_, name)| name.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_told_of_its_field() {
        for (text, expect) in [
            ("phone_number must be in E.164 format", "phone_number"),
            ("Phone number is already used by another always-on digital human", "phone_number"),
            ("svc_as_code_id is already used", "svc_as_code_id"),
            ("journey_steps must be numbered 1..N without gaps", "journey_steps"),
            ("journey step 2 needs an intent", "journey_steps"),
            ("scripted_responses[0].response_value is required for response_type phrase", "scripted_responses"),
            ("value of trait member is not a valid NUMBER", "traits"),
            ("always-on mode needs a phone number", "always_on_mode"),
            ("Simulation is not an always-on simulation", "always_on_mode"),
            ("Scenario not found", "workflow_v2_id"),
            ("Background noise not found", "custom_background_noise_url"),
            ("custom background noise needs custom_background_noise_url", "background_noise"),
            ("A simulation can hold at most 3 journeys", "journey_steps"),
            ("something else", "digital_human"),
        ] {
            assert_eq!(field_of::<DigitalHumanSpec>(text, "digital_human"), expect, "{text}");
        }
        assert_eq!(field_of::<SimulationSpec>("Agent version not found", "simulation"), "agent_version_id");
        assert_eq!(
            field_of::<AgentSpec>("Set either sip_uri or dynamic_sip_webhook_url, not both", "agent"),
            "sip_uri"
        );
    }
}
