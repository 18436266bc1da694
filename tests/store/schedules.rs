//! Simulations that run by themselves, on a clock that the test moves.

use std::sync::Arc;

use ringer::model::agent_version::{VersionDoc, VersionName};
use ringer::model::time::Timestamp;
use ringer::queue::{Claimed, ScheduleJob};
use ringer::service::{NoLiveCalls, Service, Settings};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Fixture, START_MS, refusal, spec};
use crate::databases;

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

impl Fixture {
    async fn schedule(&self, simulation: i64, schedule: Value) -> String {
        let body = json!({ "simulation_id": simulation.to_string(), "schedule": schedule });
        let made = self.service.runs().create_schedule(&self.caller, spec(body)).await.expect("a schedule");
        made.id.to_string()
    }

    /// Runs every schedule that is due now.
    async fn tick(&self) {
        let queue = self.service.queue();
        while let Some(claimed) = claim(&self.service).await {
            let job = claimed.job::<ScheduleJob>().expect("one of a schedule");
            self.service.runs().run_schedule(&job).await.expect("done");
            queue.finish_job(&claimed).await.expect("closed");
        }
    }

    /// Moves the clock to `at`, stopping to run what becomes due on the way.
    async fn until(&self, at: i64) {
        while self.clock.now_ms() < at {
            let due = self.service.queue().next_due_ms(&["schedule"]).await.expect("answers");
            let stop = due.map_or(at, |due| due.clamp(self.clock.now_ms(), at));
            self.clock.advance_ms(stop - self.clock.now_ms());
            self.tick().await;
        }
    }

    /// Returns the times of a simulation's runs, oldest first, as `MM-DDTHH:MM`.
    async fn run_times(&self, simulation: i64) -> Vec<String> {
        let runs = self.service.runs().simulation_runs(&self.caller, simulation).await.expect("runs");
        runs.iter().rev().map(|run| Timestamp(run.created_at.0).to_string()[5..16].to_owned()).collect()
    }
}

async fn claim(service: &Service) -> Option<Claimed> {
    service.queue().claim(&["schedule"], 1000).await.expect("claims")
}

#[tokio::test]
async fn a_schedule_runs_when_it_is_due() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 1).await;
    f.schedule(simulation, json!({ "frequency": "every_n_minutes", "interval": 20 })).await;
    f.until(START_MS + HOUR_MS + 5 * MINUTE_MS).await;
    assert_eq!(f.run_times(simulation).await, ["01-05T09:20", "01-05T09:40", "01-05T10:00"]);
    let (_, simulation, _) = f.booth(json!({}), 1).await;
    f.schedule(simulation, json!({ "frequency": "daily", "time": "08:30" })).await;
    f.until(START_MS + 2 * DAY_MS).await;
    assert_eq!(f.run_times(simulation).await, ["01-06T08:30", "01-07T08:30"]);
}

#[tokio::test]
async fn a_month_without_the_day_is_skipped() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 1).await;
    f.schedule(simulation, json!({ "frequency": "monthly", "day_of_month": 31, "time": "12:00" })).await;
    f.until(START_MS + 180 * DAY_MS).await;
    assert_eq!(f.run_times(simulation).await, ["01-31T12:00", "03-31T12:00", "05-31T12:00"]);
}

#[tokio::test]
async fn what_passed_while_the_engine_was_down_runs_once_when_it_is_young() {
    for (schedule, down_ms, expect) in [
        (json!({ "frequency": "cron", "expression": "30 9 * * *" }), HOUR_MS, vec!["01-05T10:00"]),
        (json!({ "frequency": "cron", "expression": "0 10 * * *" }), 2 * HOUR_MS - 1, vec!["01-05T10:59"]),
        (json!({ "frequency": "cron", "expression": "0 10 * * *" }), 2 * HOUR_MS, vec![]),
        (json!({ "frequency": "every_n_minutes", "interval": 5 }), 10 * HOUR_MS, vec!["01-05T19:00"]),
        (json!({ "frequency": "daily", "time": "10:00" }), 3 * DAY_MS + 90 * MINUTE_MS, vec!["01-08T10:30"]),
        (json!({ "frequency": "daily", "time": "10:00" }), 3 * DAY_MS, vec![]),
    ] {
        let mut f = Fixture::new().await;
        let (_, simulation, _) = f.booth(json!({}), 1).await;
        let id = f.schedule(simulation, schedule.clone()).await;
        f.clock.advance_ms(down_ms);
        f.reopen().await;
        f.service.runs().recover().await.expect("recovers");
        f.tick().await;
        f.tick().await;
        assert_eq!(f.run_times(simulation).await, expect, "{schedule} after {down_ms} ms");
        assert!(f.service.runs().schedule(&f.caller, &id).await.expect("it").enabled);
        assert!(f.service.queue().next_due_ms(&["schedule"]).await.expect("answers").is_some(), "it goes on");
    }
}

#[tokio::test]
async fn a_schedule_that_has_lost_its_job_gets_it_back() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 1).await;
    f.schedule(simulation, json!({ "frequency": "every_n_hours", "interval": 1 })).await;
    assert_eq!(f.service.runs().restore_schedules().await, Ok(0));
    f.clock.advance_ms(HOUR_MS);
    let claimed = claim(&f.service).await.expect("it is due");
    f.service.queue().finish_job(&claimed).await.expect("lost");
    assert_eq!(f.service.runs().restore_schedules().await, Ok(1));
    f.tick().await;
    assert_eq!(f.run_times(simulation).await, ["01-05T10:00"]);
}

#[tokio::test]
async fn two_processes_run_a_due_time_once() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 1).await;
    f.schedule(simulation, json!({ "frequency": "every_n_hours", "interval": 1 })).await;
    let store = databases::open(f.location.clone(), f.folder.path()).await.expect("the same one");
    let settings = Settings::new(f.folder.path());
    let other = Service::new(store.clone(), f.clock.clone(), settings, Arc::new(NoLiveCalls));
    for hour in 1..=5 {
        f.clock.advance_ms(HOUR_MS);
        // One of them gets the claim; when it is slow, both work on it.
        let (one, two) = tokio::join!(claim(&f.service), claim(&other));
        assert!(one.is_some() != two.is_some());
        let claimed = one.or(two).expect("one of them");
        let job = claimed.job::<ScheduleJob>().expect("one of a schedule");
        let (one, two) = tokio::join!(f.service.runs().run_schedule(&job), other.runs().run_schedule(&job));
        one.and(two).expect("the second finds nothing to do");
        f.service.queue().finish_job(&claimed).await.expect("closed");
        assert_eq!(f.run_times(simulation).await.len(), hour);
    }
    store.close().await;
}

#[tokio::test]
async fn a_schedule_with_nothing_to_run_stops() {
    let f = Fixture::new().await;
    let (_, simulation, humans) = f.booth(json!({}), 1).await;
    let id = f.schedule(simulation, json!({ "frequency": "every_n_hours", "interval": 1 })).await;
    let enabled = || async { f.service.runs().schedule(&f.caller, &id).await.expect("it").enabled };
    // A fault that may be mended later leaves one time out.
    let agent = f.service.library().simulation(&f.caller, simulation).await.expect("it").agent_id;
    let disable = |value: bool| {
        let patch = super::map(json!({ "simulations_disabled": value }));
        let agent = ringer::model::id::IdString::from(agent);
        let (service, caller) = (f.service.clone(), f.caller.clone());
        async move { service.library().update_agent(&caller, Some(&agent), patch).await.map(drop).expect("updated") }
    };
    disable(true).await;
    f.until(START_MS + HOUR_MS).await;
    assert!(enabled().await);
    disable(false).await;
    f.until(START_MS + 2 * HOUR_MS).await;
    assert_eq!(f.run_times(simulation).await, ["01-05T11:00"]);
    f.service.library().remove_digital_humans(&f.caller, simulation, &humans).await.expect("removed");
    f.until(START_MS + 3 * HOUR_MS).await;
    assert!(!enabled().await);
    assert_eq!(f.service.queue().next_due_ms(&["schedule"]).await, Ok(None));
}

/// Returns a simulation of version 2 of its agent that runs each hour: the agent, the simulation, the version, the
/// schedule.
async fn of_second_version(f: &Fixture) -> (i64, i64, Uuid, String) {
    let (agent, simulation, _) = f.booth(json!({}), 1).await;
    let version = f.service.library().create_version(&f.caller, agent, spec(json!({}))).await.expect("a version").id;
    let patch = super::map(json!({ "agent_version_id": version }));
    f.service.library().update_simulation(&f.caller, simulation, patch).await.expect("updated");
    let schedule = f.schedule(simulation, json!({ "frequency": "every_n_hours", "interval": 1 })).await;
    (agent, simulation, version, schedule)
}

#[tokio::test]
async fn a_simulation_of_a_deleted_version_is_of_the_production_version() {
    let f = Fixture::new().await;
    let (agent, simulation, version, _) = of_second_version(&f).await;
    let (_, results) = f.run(simulation, json!({})).await;
    let under_test =
        async |result: i64| f.service.runs().result(&f.caller, result).await.expect("it").body.agent_version_id;
    assert_eq!(under_test(results[0]).await, Some(version));
    f.service.library().delete_version(&f.caller, agent, VersionName::Id(version)).await.expect("deleted");
    let read = f.service.library().simulation(&f.caller, simulation).await.expect("it");
    assert_eq!(read.settings.agent_version_id, None);
    f.until(START_MS + HOUR_MS).await;
    assert_eq!(f.run_times(simulation).await, ["01-05T09:00", "01-05T10:00"]);
    let (_, results) = f.run(simulation, json!({})).await;
    let production = f.service.library().version(&f.caller, agent, VersionName::Number(1)).await.expect("it").id;
    assert_eq!(under_test(results[0]).await, Some(production));
}

#[tokio::test]
async fn a_version_that_is_missing_leaves_times_out_and_keeps_nothing_from_being_changed() {
    let f = Fixture::new().await;
    let (_, simulation, version, schedule) = of_second_version(&f).await;
    let mut db = f.service.store().org(&f.caller.organization).write().await.expect("a session");
    assert_eq!(db.delete::<VersionDoc>(version).await, Ok(true));
    db.commit().await.expect("kept");
    f.until(START_MS + HOUR_MS).await;
    assert!(f.service.runs().schedule(&f.caller, &schedule).await.expect("it").enabled);
    for patch in [json!({ "name": "Renamed" }), json!({ "agent_version_id": null })] {
        f.service.library().update_simulation(&f.caller, simulation, super::map(patch)).await.expect("updated");
    }
    f.until(START_MS + 2 * HOUR_MS).await;
    assert_eq!(f.run_times(simulation).await, ["01-05T11:00"]);
}

#[tokio::test]
async fn a_change_replaces_the_times() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 1).await;
    let id = f.schedule(simulation, json!({ "frequency": "daily", "time": "10:00" })).await;
    let change = |body: Value| {
        let (service, caller, id) = (f.service.clone(), f.caller.clone(), id.clone());
        async move { service.runs().update_schedule(&caller, &id, spec(body)).await.expect("updated") }
    };
    change(json!({ "schedule": { "frequency": "daily", "time": "11:00" } })).await;
    f.until(START_MS + 3 * HOUR_MS).await;
    assert_eq!(f.run_times(simulation).await, ["01-05T11:00"]);
    assert!(!change(json!({ "enabled": false })).await.enabled);
    f.until(START_MS + DAY_MS + 3 * HOUR_MS).await;
    assert_eq!(f.run_times(simulation).await.len(), 1);
    // It does not make up for what it was told not to do.
    change(json!({ "enabled": true })).await;
    f.tick().await;
    assert_eq!(f.run_times(simulation).await.len(), 1);
    f.until(START_MS + 2 * DAY_MS + 3 * HOUR_MS).await;
    assert_eq!(f.run_times(simulation).await, ["01-05T11:00", "01-07T11:00"]);
    let gone = f.service.runs().delete_schedule(&f.caller, &id).await.expect("deleted");
    assert_eq!(gone.message, "Schedule deleted");
    assert_eq!(refusal(f.service.runs().schedule(&f.caller, &id).await), "Schedule not found");
    f.until(START_MS + 3 * DAY_MS + 3 * HOUR_MS).await;
    assert_eq!(f.run_times(simulation).await.len(), 2);
}

#[tokio::test]
async fn a_deleted_simulation_takes_its_schedules_along() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 1).await;
    let id = f.schedule(simulation, json!({ "frequency": "daily", "time": "10:00" })).await;
    f.service.library().delete_simulation(&f.caller, simulation).await.expect("deleted");
    assert_eq!(refusal(f.service.runs().schedule(&f.caller, &id).await), "Schedule not found");
    f.until(START_MS + 2 * HOUR_MS).await;
}
