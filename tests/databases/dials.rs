//! Numbers that two engines dial at the same time: they share every limit.

use std::collections::BTreeMap;
use std::sync::Arc;

use ringer::clock::Clock;
use ringer::service::{NoLiveCalls, Service};
use ringer::store::Location;
use serde_json::json;

use super::two::{beside_a_server, two};
use crate::store::dials::{RACERS, limits_of_each, race, with_trunks};

/// Moment at which the clock stands: 2026-01-05T09:00:30Z.
const START_MS: i64 = 1_767_603_630_000;

/// Many dials wait for each other, each for so many seconds at most.
mod alone {
    use super::*;

    #[test]
    fn two_engines_that_dial_at_once_exceed_no_limit() {
        beside_a_server(share_limits);
    }
}

async fn share_limits(location: Location) {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let clock = Clock::standing_at(START_MS);
    let (services, caller) = two(&location, folder.path(), &clock).await;
    let services = services.map(|service| {
        let settings = with_trunks(service.settings(), &limits_of_each(&caller.organization));
        Service::new(service.store().clone(), clock.clone(), settings, Arc::new(NoLiveCalls))
    });
    let first = &services[0];
    let agent = serde_json::from_value(json!({ "name": "Desk", "sip_uri": "sip:desk@127.0.0.1" })).expect("it fits");
    let agent = first.library().add_agent(&caller, agent).await.expect("an agent").agent_id.to_string();
    let simulation = serde_json::from_value(json!({ "agent_id": agent, "name": "Many" })).expect("it fits");
    let simulation = first.library().create_simulation(&caller, simulation).await.expect("a simulation").simulation_id;
    let human = serde_json::from_value(json!({ "name": "Ann" })).expect("it fits");
    first.humans().create_digital_human(&caller, human, &[simulation]).await.expect("a Digital Human");
    let run = json!({ "simulation_id": simulation.to_string(), "runs_per_digital_human": RACERS });
    let queued = first.runs().queue_simulation_run(&caller, serde_json::from_value(run).expect("it fits")).await;
    let ids = queued.expect("a run").simulation_result_ids;
    let results: Vec<i64> = ids.iter().map(|id| id.parse().expect("a number")).collect();
    first.conversations().admit().await.expect("admitted");
    for (trunk, admitted, code) in [
        ("few", 7, "DIAL_CALLS_REFUSED"),
        ("slow", 5, "DIAL_RATE_REFUSED"),
        ("short", 11, "DIAL_MINUTES_REFUSED"),
        ("open", 16, "DIAL_MINUTES_REFUSED"),
    ] {
        let counts = race(&services, &caller, &results, trunk).await;
        let expect = BTreeMap::from([(String::new(), admitted), (code.to_owned(), RACERS - admitted)]);
        assert_eq!(counts, expect, "{trunk}");
    }
    for service in services {
        assert!(!service.placements().dial_refusals().is_empty(), "both have refused some");
        service.store().close().await;
    }
}
