//! Digital Humans, and the scenarios that they are made from. A change of one may end conversations that wait for their
//! call.

pub(super) mod scenarios;

use std::ops::RangeInclusive;
use std::sync::Arc;

use ringer_base::clock;
use ringer_base::clock::Clock;
use ringer_base::config::carrier;
use ringer_base::error::{Error, Result};
use ringer_base::post::Poster;
use ringer_media::seed::Seed;
use ringer_model::digital_human::{DigitalHumanRecord, DigitalHumanSpec, LinkedDigitalHuman};
use ringer_model::noise::NoiseDoc;
use ringer_model::result::ResultDoc;
use ringer_model::scenario::ScenarioDoc;
use ringer_model::simulation::SimulationSpec;
use ringer_model::status::ResultStatus;
use ringer_model::time::Timestamp;
use ringer_model::{Object, Page};
use ringer_provider::VoiceWanted;
use ringer_store::{Resource, Row, Session, Store};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::conversation::Conversations;
use crate::library::field_rules::apply_patch;
use crate::library::human_rules::always_on::check_always_on;
use crate::library::simulations::check_journeys;
use crate::library::{field_rules, human_rules, names};
use crate::{Caller, Handles, LiveCalls, Settings};

/// Rows that a page of Digital Humans may have.
pub const PAGE_SIZES: RangeInclusive<i64> = 1..=100;

/// Refusal of a number that somebody always listens on.
const NUMBER_TAKEN: &str = "Phone number is already used by another always-on digital human";

/// Error of a Digital Human that could not be created.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct IndexError {
    /// Position in the request, from 0.
    pub index: i64,
    /// Reason why this entry failed.
    pub detail: String,
}

/// Error of a Digital Human that could not be deleted.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct IdError {
    /// Id of the entry that failed.
    pub id: i64,
    /// Reason why this entry failed.
    pub detail: String,
}

/// Response to creating several Digital Humans.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BulkCreated {
    /// Digital Humans that were created.
    pub created: Vec<LinkedDigitalHuman>,
    /// Errors of the entries that were not created.
    pub errors: Vec<IndexError>,
}

/// Response to deleting several Digital Humans.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BulkDeleted {
    /// Digital Humans that were deleted, as they were before.
    pub deleted: Vec<DigitalHumanRecord>,
    /// Errors of the entries that were not deleted.
    pub errors: Vec<IdError>,
}

/// One page of Digital Humans.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct DigitalHumanPage {
    /// Digital Humans of this page, newest first.
    pub digital_humans: Vec<DigitalHumanRecord>,
    /// Number of Digital Humans on all pages.
    pub total_count: i64,
    /// Number of this page, from 1.
    pub page: i64,
    /// Largest number of entries on a page.
    pub page_size: i64,
    /// 0 when there is none.
    pub total_pages: i64,
}

/// The Digital Humans of a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct HumansOfSimulation {
    /// Digital Humans of the simulation, newest first.
    pub digital_humans: Vec<DigitalHumanRecord>,
    /// Number of Digital Humans in the list.
    pub total: i64,
    /// Id of the simulation.
    pub simulation_id: i64,
}

/// Digital Humans and scenarios.
pub struct Humans {
    store: Store,
    clock: Clock,
    settings: Arc<Settings>,
    live: Arc<dyn LiveCalls>,
    poster: Arc<Poster>,
    conversations: Arc<Conversations>,
}

impl Humans {
    /// Returns the subject with the handles that it needs.
    pub(super) fn new(handles: &Handles, conversations: &Arc<Conversations>) -> Humans {
        Humans {
            store: handles.store.clone(),
            clock: handles.clock.clone(),
            settings: handles.settings.clone(),
            live: handles.live.clone(),
            poster: handles.poster.clone(),
            conversations: conversations.clone(),
        }
    }

    /// Makes a Digital Human, part of the given simulations.
    pub async fn create_digital_human(
        &self,
        caller: &Caller,
        spec: DigitalHumanSpec,
        simulation_ids: &[i64],
    ) -> Result<LinkedDigitalHuman> {
        let (db, made) = self.begin_human(caller, spec, simulation_ids).await?;
        db.answer(made).await
    }

    /// Makes several; one that is refused does not keep the others from being made.
    pub async fn create_digital_humans(
        &self,
        caller: &Caller,
        specs: Vec<DigitalHumanSpec>,
        simulation_ids: &[i64],
    ) -> Result<BulkCreated> {
        self.check_simulations(caller, simulation_ids).await?;
        let mut answer = BulkCreated { created: vec![], errors: vec![] };
        for (index, spec) in (0..).zip(specs) {
            match self.make_one(caller, spec, simulation_ids).await {
                Ok(made) => answer.created.push(made),
                Err(Error::Internal(cause)) => return Err(Error::Internal(cause)),
                Err(error) => answer.errors.push(IndexError { index, detail: error.to_string() }),
            }
        }
        Ok(answer)
    }

    async fn begin_human(
        &self,
        caller: &Caller,
        spec: DigitalHumanSpec,
        simulation_ids: &[i64],
    ) -> Result<(Session, LinkedDigitalHuman)> {
        let looked = self.look_at_human(&serde_json::to_value(&spec).map_err(Error::internal)?).await;
        let mut db = self.store.org(&caller.organization).write().await?;
        if looked.is_err() {
            // Missing rows are reported first.
            check_named(&mut db, &spec, simulation_ids, None).await?;
        }
        looked?;
        let made = self.make_human(&mut db, caller, spec, simulation_ids).await?;
        Ok((db, made))
    }

    /// Makes one of several: the answer is not its own.
    async fn make_one(
        &self,
        caller: &Caller,
        spec: DigitalHumanSpec,
        simulation_ids: &[i64],
    ) -> Result<LinkedDigitalHuman> {
        let (db, made) = self.begin_human(caller, spec, simulation_ids).await?;
        db.commit().await?;
        Ok(made)
    }

    /// Refuses files whose hosts' names lead to where nothing may be asked. Done before the transaction: names may take
    /// long.
    async fn look_at_human(&self, fields: &Value) -> Result<()> {
        field_rules::look(&human_rules::urls_of(fields), &self.settings, self.poster.guard()).await
    }

    /// Returns one Digital Human of the caller's organization, with its simulations.
    pub async fn digital_human(&self, caller: &Caller, id: i64) -> Result<LinkedDigitalHuman> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let row = owned(&mut db, id).await?;
        with_simulations(&mut db, row).await
    }

    /// Returns the newest Digital Human with this handle.
    pub async fn digital_human_by_test_name(&self, caller: &Caller, test_name: &str) -> Result<LinkedDigitalHuman> {
        let mut db = self.store.org(&caller.organization).read().await?;
        let rows = db.by::<DigitalHumanSpec>("test_name", test_name).await?;
        let row = rows.into_iter().next().ok_or(Error::NotFound("Digital human"))?;
        with_simulations(&mut db, row).await
    }

    /// Changes the given fields; given `simulation_ids` replace all links. `override_conflict` takes a number over from
    /// the always-on Digital Human that holds it.
    pub async fn update_digital_human(
        &self,
        caller: &Caller,
        id: i64,
        patch: Object,
        simulation_ids: Option<&[i64]>,
        override_conflict: bool,
    ) -> Result<LinkedDigitalHuman> {
        let looked = self.look_at_human(&Value::Object(patch.clone())).await;
        let mut db = self.store.org(&caller.organization).write().await?;
        let old = owned(&mut db, id).await?;
        if looked.is_err() {
            let spec = apply_patch(&old.doc, &patch)?;
            check_named(&mut db, &spec, simulation_ids.unwrap_or_default(), old.doc.workflow_v2_id).await?;
        }
        looked?;
        self.amend_human(&mut db, caller, &old, &patch, simulation_ids, override_conflict).await?;
        if let Some(wanted) = simulation_ids {
            for old in db.simulations_of(id).await? {
                if !wanted.contains(&old) {
                    db.unlink(old, id).await?;
                }
            }
            self.link_all(&mut db, id, wanted).await?;
        }
        let row = db.get(id).await?;
        let answer = with_simulations(&mut db, row).await?;
        let spec = &answer.digital_human.spec;
        let warnings = self.warnings_of(&mut db, spec).await?;
        db.answer(LinkedDigitalHuman { warnings, ..answer }).await
    }

    /// Returns warnings about settings that will act otherwise than they say, a voice that is not here among them, and
    /// about a number that nobody can call from. Voices of a server are not known: they are asked for before a call.
    async fn warnings_of(&self, db: &mut Session, spec: &DigitalHumanSpec) -> Result<Vec<String>> {
        let voices = self.live.synthesizer();
        let mut warnings = human_rules::unmet::unmet(spec, voices.as_deref());
        let id = spec.custom_voice_id.as_deref().filter(|id| !id.is_empty());
        if let (Some(id), Some(synthesizer)) = (id, voices) {
            let wanted = VoiceWanted { custom_voice_id: Some(id.to_owned()), ..VoiceWanted::of("en") };
            if let Err(failure) = synthesizer.voice(&wanted) {
                let another = "another voice speaks in its place";
                warnings.push(format!("custom_voice_id: there is no voice {id:.60}, {another}: {}", failure.message));
            }
        }
        if let Some(number) = spec.phone_number.as_deref().filter(|_| !self.settings.trunks.is_empty()) {
            match carrier(&self.settings.trunks, number) {
                None => warnings.push(format!("phone_number: no trunk carries {number}: it cannot be called from")),
                Some((name, trunk)) if !trunk.lists(number) && db.number_holder(number).await?.is_none() => warnings
                    .push(format!(
                        "phone_number: {number} is a number of sip.trunks.{name}.carries: it has to be added before it is called from"
                    )),
                Some(_) => {}
            }
        }
        Ok(warnings)
    }

    /// Deletes a Digital Human; its results stay without it. Steps of its journeys that have not begun are CANCELLED,
    /// since steps belong to the Digital Human that makes the journey.
    pub async fn delete_digital_human(&self, caller: &Caller, id: i64) -> Result<DigitalHumanRecord> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let row = owned(&mut db, id).await?;
        let mut cancelled = Vec::new();
        for mut result in db.by::<ResultDoc>("digital_human_id", id).await? {
            let body = &mut result.doc.body;
            body.digital_human_id = None;
            if body.status == ResultStatus::Initializing && body.journey_step.is_some_and(|step| step > 1) {
                result.doc.warn("not held: the Digital Human was deleted");
                self.conversations.cancel(&mut db, &mut result).await?;
                cancelled.push(result.id);
            } else {
                db.update(result.id, &result.doc, self.clock.now_ms(), Some(caller.author())).await?;
            }
        }
        db.delete::<DigitalHumanSpec>(id).await?;
        db.commit().await?;
        cancelled.iter().for_each(|id| self.live.note_change(*id));
        Ok(record_of(row))
    }

    /// Deletes several, given as comma separated ids.
    pub async fn delete_digital_humans(&self, caller: &Caller, ids: &str) -> Result<BulkDeleted> {
        let parsed: Option<Vec<i64>> = ids.split(',').map(|id| id.trim().parse().ok()).collect();
        let text = "digital_human_ids must be a comma-separated list of integers";
        let ids = parsed.ok_or_else(|| Error::Refused(text.into()))?;
        let mut answer = BulkDeleted { deleted: vec![], errors: vec![] };
        for id in ids {
            match self.delete_digital_human(caller, id).await {
                Ok(deleted) => answer.deleted.push(deleted),
                Err(Error::Internal(cause)) => return Err(Error::Internal(cause)),
                Err(error) => answer.errors.push(IdError { id, detail: error.to_string() }),
            }
        }
        Ok(answer)
    }

    /// Returns one page, newest first.
    pub async fn digital_humans(&self, caller: &Caller, page: i64, page_size: i64) -> Result<DigitalHumanPage> {
        if !PAGE_SIZES.contains(&page_size) {
            return Err(Error::Refused(format!(
                "page_size must be between {} and {}",
                PAGE_SIZES.start(),
                PAGE_SIZES.end()
            )));
        }
        let mut db = self.store.org(&caller.organization).read().await?;
        let total_count = db.count::<DigitalHumanSpec>().await?;
        let rows = db.slice(page_size, (page - 1).saturating_mul(page_size)).await?;
        let page = Page { items: rows, total_count, page, page_size };
        let total_pages = page.total_pages();
        let digital_humans = page.items.into_iter().map(record_of).collect();
        Ok(DigitalHumanPage { digital_humans, total_count, page: page.page, page_size, total_pages })
    }

    /// Returns the Digital Humans of a simulation, newest first.
    pub async fn digital_humans_by_simulation(
        &self,
        caller: &Caller,
        simulation_id: i64,
    ) -> Result<HumansOfSimulation> {
        let mut db = self.store.org(&caller.organization).read().await?;
        db.get::<SimulationSpec>(simulation_id).await?;
        let rows = db.digital_humans_of(simulation_id).await?;
        let total = rows.len() as i64;
        let digital_humans = rows.into_iter().rev().map(record_of).collect();
        Ok(HumansOfSimulation { digital_humans, total, simulation_id })
    }

    /// Lays the given fields over a Digital Human, checks what comes out and stores it when it differs; true then.
    /// `links` are all simulations that it is going to be part of, where they change.
    pub(crate) async fn amend_human(
        &self,
        db: &mut Session,
        caller: &Caller,
        old: &Row<DigitalHumanSpec>,
        patch: &Object,
        links: Option<&[i64]>,
        take_over: bool,
    ) -> Result<bool> {
        let mut spec: DigitalHumanSpec = apply_patch(&old.doc, patch)?;
        check_named(db, &spec, links.unwrap_or_default(), old.doc.workflow_v2_id).await?;
        check_code(db, &spec, Some(old.id)).await?;
        human_rules::check_update(&old.doc, &mut spec, patch)?;
        human_rules::check(&mut spec, &self.settings)?;
        let is_turned_on = spec.always_on_mode && !old.doc.always_on_mode;
        if links.is_some() || is_turned_on || (spec.listens_on().is_some() && old.doc.listens_on().is_none()) {
            let links = match links {
                Some(links) => links.to_vec(),
                None => db.simulations_of(old.id).await?,
            };
            check_always_on(db, &spec, &links).await?;
        }
        check_own_numbers(db, &spec).await?;
        self.free_number(db, caller, &spec, Some(old.id), take_over).await?;
        let changed = spec != old.doc;
        if changed {
            db.update(old.id, &spec, self.clock.now_ms(), Some(caller.author())).await?;
        }
        // Links that change are checked when they are made.
        if links.is_none() && spec.has_journey() && !old.doc.has_journey() {
            for simulation_id in db.simulations_of(old.id).await? {
                check_journeys(db, simulation_id).await?;
            }
        }
        Ok(changed)
    }

    /// Creates a Digital Human as [`Humans::create_digital_human`] does, inside a larger transaction.
    pub(crate) async fn make_human(
        &self,
        db: &mut Session,
        caller: &Caller,
        mut spec: DigitalHumanSpec,
        simulation_ids: &[i64],
    ) -> Result<LinkedDigitalHuman> {
        check_named(db, &spec, simulation_ids, None).await?;
        check_code(db, &spec, None).await?;
        human_rules::take_lines(&mut spec);
        human_rules::check(&mut spec, &self.settings)?;
        check_always_on(db, &spec, simulation_ids).await?;
        check_own_numbers(db, &spec).await?;
        self.free_number(db, caller, &spec, None, false).await?;
        if spec.name.is_none() {
            let seed = spec.svc_as_code_id.map_or_else(|| Seed(clock::random_seed()), |id| Seed::of(&id.to_string()));
            spec.name = Some(names::draw(seed, spec.language, spec.gender));
        }
        let id = db.insert(&spec, self.clock.now_ms(), Some(caller.author())).await?;
        self.link_all(db, id, simulation_ids).await?;
        let row = db.get(id).await?;
        let made = with_simulations(db, row).await?;
        let warnings = self.warnings_of(db, &made.digital_human.spec).await?;
        Ok(LinkedDigitalHuman { warnings, ..made })
    }

    async fn check_simulations(&self, caller: &Caller, simulation_ids: &[i64]) -> Result<()> {
        let mut db = self.store.org(&caller.organization).read().await?;
        check_links(&mut db, simulation_ids).await
    }

    async fn link_all(&self, db: &mut Session, id: i64, simulation_ids: &[i64]) -> Result<()> {
        // Links made at one time are told apart by their order in the request.
        for (offset, simulation_id) in (0..).zip(simulation_ids) {
            db.link(*simulation_id, id, self.clock.now_ms() + offset).await?;
            check_journeys(db, *simulation_id).await?;
        }
        Ok(())
    }

    /// Refuses a number that another always-on Digital Human listens on, or takes it over.
    async fn free_number(
        &self,
        db: &mut Session,
        caller: &Caller,
        spec: &DigitalHumanSpec,
        this: Option<i64>,
        take_over: bool,
    ) -> Result<()> {
        let Some(number) = spec.listens_on() else { return Ok(()) };
        for mut other in db.by::<DigitalHumanSpec>("listens_on", number).await? {
            if Some(other.id) == this {
                continue;
            }
            if !take_over {
                return Err(Error::Conflict(NUMBER_TAKEN.into()));
            }
            other.doc.always_on_active = Some(false);
            db.update(other.id, &other.doc, self.clock.now_ms(), Some(caller.author())).await?;
        }
        // Calls to a number come to one engine, whosever they are: nobody takes one over from another organization.
        let is_own = db.number_holder(number).await?.is_some_and(|holder| holder == db.organization());
        let always_on = db.always_on(number).await?;
        let elsewhere = !is_own && always_on.is_some_and(|(organization, _)| organization != db.organization());
        match elsewhere {
            true => Err(Error::Conflict(NUMBER_TAKEN.into())),
            false => self.conversations.take_number_over(db, this, number).await,
        }
    }
}

/// Returns the row, with the answer that a Digital Human of another organization gets.
pub(crate) async fn owned(db: &mut Session, id: i64) -> Result<Row<DigitalHumanSpec>> {
    if let Some(row) = db.find(id).await? {
        return Ok(row);
    }
    if db.exists_anywhere::<DigitalHumanSpec>(id).await? {
        return Err(Error::Forbidden("Digital human belongs to a different organization".into()));
    }
    Err(Error::NotFound("Digital human"))
}

/// Refuses numbers that another organization has registered: their calls and texts are for its holder alone.
async fn check_own_numbers(db: &mut Session, spec: &DigitalHumanSpec) -> Result<()> {
    let own = [("phone_number", &spec.phone_number), ("outbound_text_number", &spec.outbound_text_number)];
    let steps = spec.journey_steps.iter().flatten().map(|step| ("journey_steps: phone_number", &step.phone_number));
    for (field, number) in own.into_iter().chain(steps) {
        if let Some(number) = number
            && db.is_foreign_number(number).await?
        {
            return Err(Error::Conflict(format!("{field}: the number belongs to another organization")));
        }
    }
    Ok(())
}

/// Checks that all that it names is there: its simulations, its noise and its scenario.
async fn check_named(
    db: &mut Session,
    spec: &DigitalHumanSpec,
    simulation_ids: &[i64],
    known: Option<Uuid>,
) -> Result<()> {
    check_links(db, simulation_ids).await?;
    check_noise(db, spec).await?;
    check_scenario(db, spec, known).await
}

async fn check_links(db: &mut Session, simulation_ids: &[i64]) -> Result<()> {
    for simulation_id in simulation_ids {
        db.get::<SimulationSpec>(*simulation_id).await?;
    }
    Ok(())
}

/// Checks that a background noise without a URL names an uploaded noise of this organization.
async fn check_noise(db: &mut Session, spec: &DigitalHumanSpec) -> Result<()> {
    let given = spec.custom_background_noise_url.as_deref().filter(|url| !url.is_empty() && !url.contains("://"));
    if given.is_none() {
        return Ok(());
    }
    let id = spec.uploaded_noise().ok_or(Error::NotFound(NoiseDoc::WORD))?;
    db.get::<NoiseDoc>(id).await.map(drop)
}

/// Checks that a scenario that is named is there. One that was deleted stays named, as `known`, by those who were made
/// from it.
async fn check_scenario(db: &mut Session, spec: &DigitalHumanSpec, known: Option<Uuid>) -> Result<()> {
    match spec.workflow_v2_id.filter(|id| known != Some(*id)) {
        Some(id) => db.get::<ScenarioDoc>(id).await.map(drop),
        None => Ok(()),
    }
}

async fn check_code(db: &mut Session, spec: &DigitalHumanSpec, this: Option<i64>) -> Result<()> {
    let Some(code) = spec.svc_as_code_id else { return Ok(()) };
    let taken = db.by::<DigitalHumanSpec>("code_id", code).await?.iter().any(|row| Some(row.id) != this);
    if taken { Err(Error::Conflict("svc_as_code_id is already used".into())) } else { Ok(()) }
}

async fn with_simulations(db: &mut Session, row: Row<DigitalHumanSpec>) -> Result<LinkedDigitalHuman> {
    let simulation_ids = db.simulations_of(row.id).await?;
    let simulation_id = simulation_ids.first().copied();
    Ok(LinkedDigitalHuman { digital_human: record_of(row), simulation_ids, simulation_id, warnings: Vec::new() })
}

fn record_of(row: Row<DigitalHumanSpec>) -> DigitalHumanRecord {
    let mut spec = row.doc;
    let listens = spec.listens_on().is_some();
    spec.always_on_active.get_or_insert(listens);
    DigitalHumanRecord { id: row.id, spec, created_at: Timestamp(row.created_ms) }
}
