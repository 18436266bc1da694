//! Uptime monitors: written, listed, changed and deleted. When a check is due is in `cadence`, what it does in
//! `checks`, what it shows in `verdict`.

mod cadence;
mod checks;
mod verdict;

use ringer_base::error::{Error, Result};
use ringer_model::agent::{AgentDoc, AgentType, ConnectionType};
use ringer_model::custom_metric::{CustomMetricSpec, MetricScope};
use ringer_model::digital_human::DigitalHumanSpec;
use ringer_model::id::IdString;
use ringer_model::monitor::{
    Check, CheckDay, CheckDoc, CheckRecord, CheckType, MonitorDoc, MonitorRecord, MonitorSpec, Verdict,
};
use ringer_model::patch::Patch;
use ringer_model::simulation::SimulationSpec;
use ringer_model::time::Timestamp;
use ringer_store::queue::MonitorJob;
use ringer_store::{Owner, Row, Session};
use schemars::JsonSchema;
use serde::Serialize;
use uuid::Uuid;

use self::cadence::{Cadence, Window};
use self::verdict::MALFUNCTIONS;
use super::Watching;
use crate::Caller;

/// Tag of the results that are checks.
pub(crate) const TAG: &str = "uptime";
/// Checks that are shown with a monitor.
const SHOWN: i64 = 20;
/// Time over which uptime is counted, in milliseconds.
const UPTIME_MS: i64 = 30 * DAY_MS;
/// Time whose verdicts are told by day, in milliseconds.
const DAYS_MS: i64 = 90 * DAY_MS;
/// Length of a day in milliseconds.
const DAY_MS: i64 = 86_400_000;
/// Longest time that a check waits for the agent to answer, in seconds.
const LONGEST_RING_S: i64 = 60;
/// Longest call of a check, in seconds: after the longest ringing it is over, and judged, before the check is given up.
const LONGEST_CALL_S: i64 = 210;

/// A page of monitors.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MonitorPage {
    /// Monitors of this page, newest first.
    pub monitors: Vec<MonitorRecord>,
    /// Rows on all pages.
    pub total_count: i64,
    /// Number of this page, from 1.
    pub page: i64,
    /// Largest number of entries on a page.
    pub page_size: i64,
    /// Total number of pages.
    pub total_pages: i64,
}

/// Response to deleting a monitor.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MonitorDeleted {
    /// Confirmation in words, for display.
    pub message: String,
    /// Id of the deleted monitor.
    pub deleted_monitor_id: Uuid,
}

impl Watching {
    /// Makes a monitor with its backing simulation, and asks for its first check.
    pub async fn create_monitor(&self, caller: &Caller, mut spec: MonitorSpec) -> Result<MonitorRecord> {
        let now = self.clock.now_ms();
        self.look_at_channels(&spec.notifications.channels).await?;
        let mut db = self.store.org(&caller.organization).write().await?;
        self.check_monitor(&mut db, &mut spec, None).await?;
        let first = spec.start_at.get_or_insert(Timestamp(now).into()).ms();
        let (simulation_id, built_in) = self.back(&mut db, caller, &spec).await?;
        let next_check_at = next_check(&spec, first)?;
        let doc = MonitorDoc {
            spec,
            simulation_id,
            earlier_simulations: Vec::new(),
            callers: built_in.into_iter().collect(),
            status: Verdict::Unknown,
            last_checked_at: None,
            next_check_at,
            failures: Default::default(),
            open_incident: None,
        };
        let id = db.insert(&doc, now, Some(caller.author())).await?;
        self.ask_for_check(&mut db, id, &doc).await?;
        let record = self.monitor_record(&mut db, id).await?;
        db.answer(record).await
    }

    /// Returns one monitor with its newest checks.
    pub async fn monitor(&self, caller: &Caller, monitor_id: Uuid) -> Result<MonitorRecord> {
        let mut db = self.store.org(&caller.organization).read().await?;
        self.monitor_record(&mut db, monitor_id).await
    }

    /// Returns a page of monitors, of one agent or of all.
    pub async fn monitors(
        &self,
        caller: &Caller,
        agent_id: Option<i64>,
        page: i64,
        page_size: i64,
    ) -> Result<MonitorPage> {
        let mut db = self.store.org(&caller.organization).read().await?;
        if let Some(id) = agent_id {
            db.get::<AgentDoc>(id).await?;
        }
        let offset = (page - 1).saturating_mul(page_size);
        let (rows, total_count) = db.monitors(agent_id, page_size, offset).await?;
        let mut monitors = Vec::new();
        for row in rows {
            monitors.push(self.read_monitor(&mut db, row).await?);
        }
        let page = ringer_model::Page { items: monitors, total_count, page, page_size };
        let total_pages = page.total_pages();
        Ok(MonitorPage { monitors: page.items, total_count, page: page.page, page_size, total_pages })
    }

    /// Changes the given fields. The backing simulation is made anew when the agent or the checks are changed; the old
    /// one stays with its results.
    pub async fn update_monitor(
        &self,
        caller: &Caller,
        monitor_id: Uuid,
        patch: &Patch<MonitorSpec>,
    ) -> Result<MonitorRecord> {
        let now = self.clock.now_ms();
        let channels = patch.fields().get("notifications").and_then(|given| given.get("channels"));
        self.look_at_given_channels(channels).await?;
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut row = db.get::<MonitorDoc>(monitor_id).await?;
        let mut spec = patch.apply(&row.doc.spec).map_err(Error::internal)?;
        self.check_monitor(&mut db, &mut spec, Some(&row.doc.spec)).await?;
        let old = std::mem::replace(&mut row.doc.spec, spec);
        if calls_otherwise(&old, &row.doc.spec) {
            self.back_anew(&mut db, caller, &mut row.doc).await?;
            row.doc.failures.clear();
        }
        let timed = ["frequency", "active_window", "enabled", "start_at"];
        if timed.iter().any(|field| patch.fields().contains_key(*field)) {
            let start = row.doc.spec.start_at.filter(|_| patch.fields().contains_key("start_at"));
            row.doc.next_check_at = next_check(&row.doc.spec, start.map_or(now, |start| start.ms().max(now)))?;
        }
        db.update(monitor_id, &row.doc, now, Some(caller.author())).await?;
        self.ask_for_check(&mut db, monitor_id, &row.doc).await?;
        let record = self.monitor_record(&mut db, monitor_id).await?;
        db.commit().await?;
        Ok(record)
    }

    /// Deletes a monitor with its checks and their results. Who was told of an incident is told of its end.
    pub async fn delete_monitor(&self, caller: &Caller, monitor_id: Uuid) -> Result<MonitorDeleted> {
        let mut db = self.store.org(&caller.organization).write().await?;
        let mut row = db.get::<MonitorDoc>(monitor_id).await?;
        self.outbox.close_incident(&mut db, &mut row, "the monitor was deleted").await?;
        let mut files = Vec::new();
        let mut live = Vec::new();
        let doc = &row.doc;
        for simulation in doc.earlier_simulations.iter().chain([&doc.simulation_id]) {
            for id in db.result_ids(Owner::Simulation, *simulation).await? {
                let mut result = db.get::<ringer_model::result::ResultDoc>(id).await?;
                if result.doc.body.status.is_early() {
                    self.conversations.cancel(&mut db, &mut result).await?;
                }
                live.push(id);
            }
            // A call that is under way ends first; its simulation then stays.
            if !db.has_open_results(Owner::Simulation, *simulation).await? {
                files.extend(db.result_ids(Owner::Simulation, *simulation).await?);
                db.delete::<SimulationSpec>(*simulation).await?;
            }
        }
        for human in &doc.callers {
            db.delete::<DigitalHumanSpec>(*human).await?;
        }
        db.delete::<MonitorDoc>(monitor_id).await?;
        db.commit().await?;
        for id in live {
            self.conversations.hang_up_cancelled(id, ringer_media::call::EndReason::ApiHangup).await;
        }
        self.settings.remove_result_files(&files).await;
        Ok(MonitorDeleted { message: "Monitor deleted".into(), deleted_monitor_id: monitor_id })
    }

    /// Checks every rule on a monitor's fields; checks without a name get theirs. Resources that its checks name must
    /// exist when the checks are made or changed. A monitor whose caller or metric was deleted since can still be
    /// paused or watch another agent.
    async fn check_monitor(&self, db: &mut Session, spec: &mut MonitorSpec, old: Option<&MonitorSpec>) -> Result<()> {
        let agent = db.get::<AgentDoc>(spec.agent_id).await?.doc.spec;
        name_checks(spec);
        if old.is_none_or(|old| old.checks != spec.checks) {
            for id in spec.checks.iter().filter_map(|check| check.config.digital_human_id) {
                db.get::<DigitalHumanSpec>(id).await?;
            }
            for check in &spec.checks {
                check_graded(db, check).await?;
            }
        }
        Cadence::parse(&spec.frequency)?;
        spec.active_window.as_ref().map(Window::new).transpose()?;
        if !spec.checks.iter().any(|check| check.enabled && check.is_gradable()) {
            return Err(Error::Refused("A monitor needs at least one gradable check".into()));
        }
        self.check_channels(&spec.notifications.channels)?;
        let by_platform = matches!(agent.connection(), Some(ConnectionType::P4 | ConnectionType::P5));
        if agent.kind == AgentType::Outbound && !by_platform && agent.outbound_trigger_webhook_url.is_none() {
            return Err(Error::Refused("Outbound monitors need P4, P5 or an outbound trigger webhook".into()));
        }
        Ok(())
    }

    /// Makes the backing simulation anew; the old one stays with its results where it is still there.
    async fn back_anew(&self, db: &mut Session, caller: &Caller, doc: &mut MonitorDoc) -> Result<()> {
        let (fresh, built_in) = self.back(db, caller, &doc.spec).await?;
        doc.callers.extend(built_in);
        doc.earlier_simulations.push(std::mem::replace(&mut doc.simulation_id, fresh));
        Ok(())
    }

    /// Makes the simulation that the checks belong to, with one caller. It is the chosen one while that exists, or one
    /// that greets, asks a question and says thanks. Returns the simulation, and the caller if it was made for it.
    async fn back(&self, db: &mut Session, caller: &Caller, spec: &MonitorSpec) -> Result<(i64, Option<i64>)> {
        let now = self.clock.now_ms();
        let agent = db.get::<AgentDoc>(spec.agent_id).await?.doc.spec;
        let simulation = SimulationSpec {
            agent_id: IdString::from(spec.agent_id),
            name: Some(format!("Uptime of {}", agent.name).chars().take(255).collect()),
            tags: vec![TAG.to_owned()],
            max_call_duration: Some(LONGEST_CALL_S),
            max_call_duration_units: ringer_model::simulation::DurationUnit::Seconds,
            ringing_timeout: LONGEST_RING_S,
            ..SimulationSpec::default()
        };
        let simulation_id = db.insert(&simulation, now, Some(caller.author())).await?;
        let chosen = spec.checks.iter().filter(|check| check.enabled && check.kind == CheckType::DigitalHuman);
        let chosen = match chosen.filter_map(|check| check.config.digital_human_id).next() {
            Some(id) => db.find::<DigitalHumanSpec>(id).await?,
            None => None,
        };
        let (human_id, is_made) = match chosen {
            Some(human) => (human.id, false),
            None => {
                let human = built_in(agent.goals.first().map(String::as_str));
                (db.insert(&human, now, Some(caller.author())).await?, true)
            }
        };
        db.link(simulation_id, human_id, now).await?;
        Ok((simulation_id, is_made.then_some(human_id)))
    }

    async fn ask_for_check(&self, db: &mut Session, monitor_id: Uuid, doc: &MonitorDoc) -> Result<()> {
        let Some(next) = doc.next_check_at else { return Ok(()) };
        let organization = db.organization().to_owned();
        db.put(&MonitorJob { organization, monitor_id, due_ms: next.0 }, next.0, None).await
    }

    async fn monitor_record(&self, db: &mut Session, monitor_id: Uuid) -> Result<MonitorRecord> {
        let row = db.get::<MonitorDoc>(monitor_id).await?;
        self.read_monitor(db, row).await
    }

    async fn read_monitor(&self, db: &mut Session, row: Row<MonitorDoc>) -> Result<MonitorRecord> {
        let since = self.clock.now_ms() - UPTIME_MS;
        let up = db.count_checks(row.id, Verdict::Up, since).await?;
        let down = db.count_checks(row.id, Verdict::Down, since).await?;
        let recent = db.checks_of(row.id, SHOWN).await?;
        let days = db.checks_by_day(row.id, self.clock.now_ms() - DAYS_MS).await?;
        let doc = row.doc;
        Ok(MonitorRecord {
            id: row.id,
            spec: doc.spec,
            simulation_id: doc.simulation_id,
            status: doc.status,
            uptime_percentage: (up + down > 0).then(|| (100_000.0 * up as f64 / (up + down) as f64).round() / 1000.0),
            last_checked_at: doc.last_checked_at,
            next_check_at: doc.next_check_at,
            open_incident: doc.open_incident,
            days: days
                .into_iter()
                .map(|(day, up, down)| day_of(day, up, down))
                .filter(|one| one.up + one.down > 0)
                .collect(),
            recent_checks: recent.into_iter().map(record_of).collect(),
            created_at: Timestamp(row.created_ms),
            updated_at: Timestamp(row.updated_ms),
        })
    }
}

/// Checks that a metric that a check grades is there, and is judged in the calls of a monitor, which are simulations.
async fn check_graded(db: &mut Session, check: &Check) -> Result<()> {
    let Some(id) = check.config.custom_metric_id else { return Ok(()) };
    let metric = db.get::<CustomMetricSpec>(id).await?.doc;
    if metric.scope == MetricScope::Observability {
        return Err(Error::Refused(format!(
            "check '{}': custom metric '{}' has scope observability and is not judged in the calls of a monitor",
            check.name(),
            metric.name
        )));
    }
    Ok(())
}

/// Returns the first moment from `at_ms` on at which a check may be made; `None` while the monitor is paused.
fn next_check(spec: &MonitorSpec, at_ms: i64) -> Result<Option<Timestamp>> {
    if !spec.enabled {
        return Ok(None);
    }
    Ok(Some(Timestamp(match &spec.active_window {
        Some(window) => Window::new(window)?.from(at_ms),
        None => at_ms,
    })))
}

/// Returns the phrases of a broken agent: the built-in ones, then `more`.
pub fn malfunction_phrases(more: &[String]) -> Vec<String> {
    MALFUNCTIONS.iter().map(|phrase| (*phrase).to_owned()).chain(more.iter().cloned()).collect()
}

fn day_of(days: i64, up: i64, down: i64) -> CheckDay {
    let day = Timestamp(days * DAY_MS).to_string().chars().take(10).collect();
    CheckDay { day, up, down }
}

fn record_of(row: Row<CheckDoc>) -> CheckRecord {
    let CheckDoc { simulation_result_id, started_at, finished_at, verdict, checks, .. } = row.doc;
    CheckRecord { id: row.id, simulation_result_id, started_at, finished_at, verdict, checks }
}

/// True when the calls of a monitor change: their simulation is then made anew.
fn calls_otherwise(old: &MonitorSpec, new: &MonitorSpec) -> bool {
    old.agent_id != new.agent_id || old.checks != new.checks
}

/// Checks are told apart by name: the type, and a number where that is taken.
fn name_checks(spec: &mut MonitorSpec) {
    let mut taken: Vec<String> = spec.checks.iter().filter_map(|check| check.id.clone()).collect();
    for check in spec.checks.iter_mut().filter(|check| check.id.is_none()) {
        let name = check.kind.as_str().to_owned();
        let numbered = (2..).map(|n| format!("{name}_{n}"));
        let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name));
        let free = free.unwrap_or(name);
        taken.push(free.clone());
        check.id = Some(free);
    }
}

/// Returns a caller that greets, asks about the agent's first goal, and says thanks.
fn built_in(goal: Option<&str>) -> DigitalHumanSpec {
    let goal = goal.map(|goal| goal.trim().trim_end_matches(['.', '?', '!'])).filter(|goal| !goal.is_empty());
    let question = match goal {
        Some(goal) => format!("Can you help me with this: {goal}?"),
        None => "What can you help me with?".to_owned(),
    };
    DigitalHumanSpec {
        name: Some("Uptime check".to_owned()),
        intent: question,
        success_criteria: "The agent answers the question.".to_owned(),
        tags: vec![TAG.to_owned()],
        ..DigitalHumanSpec::default()
    }
}
