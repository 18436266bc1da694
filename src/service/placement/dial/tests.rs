//! Limits one by one, calls that go on elsewhere, and what is given back. Races are among the tests of the store.

use std::sync::Arc;

use ringer_base::clock::Clock;
use ringer_base::config::OrganizationLimits;
use ringer_base::guard::Guard;
use ringer_store::Store;
use ringer_store::queue::CallJob;
use ringer_store::vault::Vault;
use ringer_transport::sip::address::Address;
use ringer_transport::sip::names::Resolver;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::placement::Begin;
use crate::placement::tests::placement_settings;
use crate::placement::trunks::tests::trunks;
use crate::{Caller, NoLiveCalls, Service, Settings};

/// Moment at which the clock stands: 2026-01-05T09:00:00Z.
const START_MS: i64 = 1_767_603_600_000;
const TARGET: &str = "+15550009999";

fn spec<T: DeserializeOwned>(body: Value) -> T {
    serde_json::from_value(body).expect("the body fits")
}

/// A product with one trunk of these limits, and results that are QUEUED.
struct Desk {
    service: Service,
    caller: Caller,
    results: Vec<i64>,
    _folder: TempDir,
}

impl Desk {
    async fn new(limits: &str) -> Desk {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let vault = Vault::new(["a key"]).expect("it is one");
        let store = Store::open(folder.path().join("ringer.db").as_path(), vault).await.expect("a database");
        let file = format!(
            "[sip.trunks.near]\nhost = '127.0.0.1'\nnumbers = ['+15550001111', '+15550001112']\nallowed_prefixes = ['+1', '+49']\n\
             denied_prefixes = ['+1900', '+1 (555) 000-8']\n{limits}\n\
             [sip.trunks.far]\nhost = '127.0.0.2'\nnumbers = ['+15550002222']"
        );
        let settings = Settings { trunks: Arc::new(trunks(&file)), ..Settings::new(folder.path()) };
        let service = Service::new(store, Clock::standing_at(START_MS), settings, Arc::new(NoLiveCalls));
        let caller = service.library().bootstrap("desk", "a key").await.expect("a key");
        let agent = json!({ "name": "Desk", "phone_number": TARGET });
        let agent = service.library().add_agent(&caller, spec(agent)).await.expect("an agent").agent_id.to_string();
        let simulation = service.library().create_simulation(&caller, spec(json!({ "agent_id": agent }))).await;
        let simulation = simulation.expect("a simulation").simulation_id;
        let human = spec(json!({ "name": "Ann" }));
        service.humans().create_digital_human(&caller, human, &[simulation]).await.expect("a Digital Human");
        let run = json!({ "simulation_id": simulation.to_string(), "runs_per_digital_human": 8 });
        let queued = service.runs().queue_simulation_run(&caller, spec(run)).await.expect("a run");
        let results = queued.simulation_result_ids.iter().map(|id| id.parse().expect("a number")).collect();
        service.conversations().admit().await.expect("admitted");
        Desk { service, caller, results, _folder: folder }
    }

    /// Sets the limits of organizations.
    fn limit(&mut self, limits: BTreeMap<String, DialLimits>) {
        let all = |dial| OrganizationLimits { dial, ..OrganizationLimits::default() };
        let limits = limits.into_iter().map(|(name, dial)| (name, all(dial))).collect();
        let settings = Settings { organization_limits: Arc::new(limits), ..self.service.settings().clone() };
        let store = self.service.store().clone();
        self.service = Service::new(store, Clock::standing_at(START_MS), settings, Arc::new(NoLiveCalls));
    }

    fn outgoing(&self, number: &str) -> Outgoing {
        let (trunk, number, caller) = ("near".to_owned(), number.to_owned(), CallerNumber::Any);
        Outgoing { trunk, number, caller, rings_ms: 60_000, lasts_ms: 600_000 }
    }

    /// Dials for the result of this number, and answers the caller's number or the code.
    async fn dial(&self, result: usize, number: &str) -> std::result::Result<String, String> {
        let organization = &self.caller.organization;
        let admitted =
            self.service.placements().admit_outgoing(organization, self.results[result], &self.outgoing(number)).await;
        let caller = admitted.map_err(|why| why.reason().expect("the store works").code.to_string())?;
        Ok(caller.expect("it is queued"))
    }

    async fn step(
        &self,
        result: usize,
        from: ResultStatus,
        to: ResultStatus,
        patch: impl FnOnce(&mut ResultDoc) + Send,
    ) {
        let moved = self
            .service
            .conversations()
            .advance(&self.caller.organization, self.results[result], from, to, patch)
            .await;
        moved.expect("an allowed step");
    }

    async fn reserved_ms(&self, scope: DialScope<'_>) -> i64 {
        let mut db = self.service.store().org(&self.caller.organization).read().await.expect("a session");
        db.dialled_ms(scope, "2026-01-05").await.expect("read")
    }
}

#[test]
fn prefixes_are_allowed_and_denied() {
    let limits = |allowed: Option<&[&str]>, denied: &[&str]| {
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        DialLimits { allowed_prefixes: allowed.map(owned), denied_prefixes: owned(denied), ..DialLimits::default() }
    };
    for (allowed, denied, number, needs_one, expect) in [
        (None, &[][..], TARGET, false, ""),
        (None, &[], TARGET, true, "allowed_prefixes: it is empty"),
        (Some(&[][..]), &[], TARGET, false, "allowed_prefixes: it is empty"),
        (Some(&["+1"]), &[], TARGET, true, ""),
        (Some(&["+"]), &[], TARGET, true, ""),
        (Some(&["+49", "+44"]), &[], TARGET, true, "allowed_prefixes: numbers that begin so are not in it"),
        (Some(&["+1"]), &["+1555"], TARGET, true, "denied_prefixes"),
        (None, &["+1555"], TARGET, false, "denied_prefixes"),
        (Some(&["+"]), &[], "", true, "allowed_prefixes: only numbers in E.164"),
        (None, &[], "", false, "allowed_prefixes: only numbers in E.164"),
    ] {
        let checked = check_prefix(&limits(allowed, denied), number, needs_one).err().unwrap_or_default();
        assert_eq!(checked.is_empty(), expect.is_empty(), "{allowed:?} {denied:?} {number}: {checked}");
        assert!(checked.starts_with(expect), "{allowed:?} {denied:?} {number}: {checked}");
    }
}

#[test]
fn rates_are_calls_within_a_time() {
    for (rate, expect) in [(5.0, (5, 1000)), (1.0, (1, 1000)), (2.5, (2, 800)), (0.5, (1, 2000)), (0.01, (1, 100_000))]
    {
        assert_eq!(rate_window(rate), expect, "{rate}");
        assert!(expect.1 <= RATE_MS);
    }
}

#[tokio::test]
async fn a_call_is_made_from_a_number_that_nobody_uses() {
    let desk = Desk::new("").await;
    let mut callers = Vec::new();
    for result in 0..3 {
        callers.push(desk.dial(result, TARGET).await.expect("it is admitted"));
    }
    assert_eq!(callers, ["+15550001111", "+15550001112", "+15550001111"]);
    desk.step(1, ResultStatus::Queued, ResultStatus::Cancelled, |_| ()).await;
    assert_eq!(desk.dial(3, TARGET).await.as_deref(), Ok("+15550001112"));
}

#[tokio::test]
async fn refused_numbers_are_counted_by_code_and_trunk() {
    let desk = Desk::new("max_calls = 1\nmax_cps = 2").await;
    for (result, number, expect) in [
        (0, "+15550008000", Err("DIAL_PREFIX_REFUSED")),
        (0, "+19005550000", Err("DIAL_PREFIX_REFUSED")),
        (0, "+4412345678", Err("DIAL_PREFIX_REFUSED")),
        (0, TARGET, Ok("+15550001111")),
        (1, TARGET, Err("DIAL_CALLS_REFUSED")),
    ] {
        let dialled = desk.dial(result, number).await;
        assert_eq!(dialled.as_deref().map_err(|code| code.as_str()), expect, "{number}");
    }
    let key = |code: &str| (code.to_owned(), "near".to_owned());
    let expect = [(key("DIAL_CALLS_REFUSED"), 1), (key("DIAL_PREFIX_REFUSED"), 3)];
    assert_eq!(desk.service.placements().dial_refusals(), Refusals::from(expect));
    // A result that was cancelled meanwhile is not dialled, and not counted.
    desk.step(1, ResultStatus::Queued, ResultStatus::Cancelled, |_| ()).await;
    let organization = &desk.caller.organization;
    let late = desk.service.placements().admit_outgoing(organization, desk.results[1], &desk.outgoing(TARGET)).await;
    assert_eq!(late.expect("the store works"), None);
}

#[tokio::test]
async fn minutes_are_reserved_and_given_back() {
    let desk = Desk::new("max_minutes_per_day = 25").await;
    let organization = desk.caller.organization.clone();
    let scopes = [DialScope::Trunk("near"), DialScope::Organization(&organization)];
    let reserved_ms = async || {
        let [trunk, organization] = [desk.reserved_ms(scopes[0]).await, desk.reserved_ms(scopes[1]).await];
        assert_eq!(trunk, organization);
        trunk
    };
    desk.dial(0, TARGET).await.expect("10 of 25 minutes");
    desk.dial(1, TARGET).await.expect("20 of 25 minutes");
    let refused =
        desk.service.placements().admit_outgoing(&organization, desk.results[2], &desk.outgoing(TARGET)).await;
    let refused = refused.expect_err("30 of 25 minutes").reason().expect("the store works");
    assert_eq!(refused.code, ErrorCode::DialMinutesRefused);
    let sentence = "sip.trunks.near.max_minutes_per_day: 20 of 25 minutes of this day (UTC) are used or reserved";
    assert!(refused.message.starts_with(sentence), "{}", refused.message);
    assert_eq!(reserved_ms().await, 1_200_000);
    // Nobody has answered: nothing was used.
    desk.step(0, ResultStatus::Queued, ResultStatus::Dispatched, |_| ()).await;
    assert_eq!(reserved_ms().await, 1_200_000);
    desk.step(0, ResultStatus::Dispatched, ResultStatus::NoAnswer, |_| ()).await;
    assert_eq!(reserved_ms().await, 600_000);
    // One minute and a half was talked.
    desk.step(1, ResultStatus::Queued, ResultStatus::Dispatched, |_| ()).await;
    desk.step(1, ResultStatus::Dispatched, ResultStatus::Running, |_| ()).await;
    desk.step(1, ResultStatus::Running, ResultStatus::ConversationEnded, |doc| doc.body.duration_ms = Some(90_000))
        .await;
    assert_eq!(reserved_ms().await, 90_000);
    // An engine that is gone has left a call: what passed since its answer counts.
    desk.dial(3, TARGET).await.expect("12 of 25 minutes");
    desk.step(3, ResultStatus::Queued, ResultStatus::Dispatched, |_| ()).await;
    let start = |doc: &mut ResultDoc| doc.body.start_time = Some(Timestamp(START_MS));
    desk.step(3, ResultStatus::Dispatched, ResultStatus::Running, start).await;
    desk.service.clock().advance_ms(120_000);
    desk.service.conversations().end_abandoned(&organization, desk.results[3]).await.expect("it can");
    assert_eq!(reserved_ms().await, 210_000);
    // The next day begins anew.
    desk.service.clock().advance_ms(DAY_MS);
    desk.dial(4, TARGET).await.expect("10 of 25 minutes");
    desk.dial(5, TARGET).await.expect("20 of 25 minutes");
    assert_eq!(reserved_ms().await, 210_000, "of the day before");
}

#[tokio::test]
async fn a_claim_that_nobody_ends_ends_by_itself() {
    let desk = Desk::new("max_calls = 1").await;
    desk.dial(0, TARGET).await.expect("the only call");
    desk.service.clock().advance_ms(60_000 + 600_000 + GRACE_MS - 1);
    assert_eq!(desk.dial(1, TARGET).await, Err("DIAL_CALLS_REFUSED".to_owned()));
    desk.service.clock().advance_ms(1);
    desk.dial(1, TARGET).await.expect("the first cannot last so long");
}

#[tokio::test]
async fn addresses_that_the_other_side_names_are_admitted() {
    let desk = Desk::new("max_calls = 2").await;
    let organization = desk.caller.organization.clone();
    desk.dial(0, TARGET).await.expect("it is admitted");
    let gate =
        desk.service.placements().dial_gate(&organization, desk.results[0], Some("near")).expect("there are trunks");
    for (forwarded, target, expect) in [
        (Forwarded::Redirect, "sip:+15550007777@127.0.0.1:5070", ""),
        (Forwarded::Redirect, "tel:+1-555-000-7777", ""),
        (Forwarded::Redirect, "sip:+19005550000@127.0.0.1", "DIAL_PREFIX_REFUSED: sip.trunks.near.denied_prefixes"),
        (Forwarded::Redirect, "tel:+19005550000", "DIAL_PREFIX_REFUSED"),
        (
            Forwarded::Redirect,
            "tel:911",
            "DIAL_PREFIX_REFUSED: sip.trunks.near.allowed_prefixes: only numbers in E.164",
        ),
        (Forwarded::Redirect, "sip:9005550000@127.0.0.1", "DIAL_PREFIX_REFUSED"),
        (Forwarded::Transfer, "sip:+15550007777@127.0.0.2", "DIAL_PREFIX_REFUSED: sip.trunks.far.allowed_prefixes"),
        // At no trunk, or a name: whether it is followed is for others to say.
        (Forwarded::Redirect, "sip:+19005550000@127.0.0.3", ""),
        (Forwarded::Transfer, "sip:desk@127.0.0.1", ""),
        (Forwarded::Transfer, "sip:+15550007777@127.0.0.1", ""),
        (Forwarded::Transfer, "sip:+15550007777@127.0.0.1", "DIAL_CALLS_REFUSED"),
        // It takes the place of the call that it belongs to.
        (Forwarded::Redirect, "sip:+15550007777@127.0.0.1", ""),
    ] {
        let uri = Uri::parse(target).expect("a URI");
        let hops = Address::from(uri.clone()).hops(&Resolver::default(), &Guard::new(true)).await;
        let admitted = gate.admit(forwarded, &uri, &hops.unwrap_or_default()).await;
        let message = admitted.err().unwrap_or_default();
        assert_eq!(message.is_empty(), expect.is_empty(), "{target}: {message}");
        assert!(message.starts_with(expect), "{target}: {message}");
    }
    assert_eq!(desk.reserved_ms(DialScope::Trunk("near")).await, 1_200_000, "the call and its transfer");
    desk.step(0, ResultStatus::Queued, ResultStatus::Cancelled, |_| ()).await;
    assert_eq!(desk.reserved_ms(DialScope::Trunk("near")).await, 0);
    desk.dial(1, TARGET).await.expect("both have ended");
    let none = Settings { trunks: Arc::default(), ..desk.service.settings().clone() };
    let none = Service::new(desk.service.store().clone(), Clock::standing_at(START_MS), none, Arc::new(NoLiveCalls));
    assert!(none.placements().dial_gate(&organization, desk.results[0], None).is_none());
}

#[tokio::test]
async fn limits_hold_by_the_name_of_an_organization() {
    let limits = |section: &str| {
        let one = DialLimits { max_calls: Some(0), ..DialLimits::default() };
        BTreeMap::from([(section.to_owned(), one)])
    };
    let mut desk = Desk::new("").await;
    let id = desk.caller.organization.clone();
    for (section, expect) in
        [("desk", Err("DIAL_CALLS_REFUSED".to_owned())), (&id, Err("DIAL_CALLS_REFUSED".to_owned()))]
    {
        desk.limit(limits(section));
        assert_eq!(desk.dial(0, TARGET).await, expect, "{section}");
        assert_eq!(desk.service.placements().unmatched_limits().await, Ok(Vec::new()));
    }
    desk.limit(limits("desk of before"));
    let unmatched = "[limits.organizations.\"desk of before\"] limits nobody: no organization has this name";
    assert_eq!(desk.service.placements().unmatched_limits().await, Ok(vec![unmatched.to_owned()]));
    assert_eq!(desk.dial(0, TARGET).await, Ok("+15550001111".to_owned()));
}

#[tokio::test]
async fn numbers_of_other_organizations_are_not_called_from() {
    let desk = Desk::new("").await;
    let other = desk.service.library().bootstrap("other", "another key").await.expect("a key");
    for (result, number, expect) in
        [(0, "+15550001111", Ok("+15550001112".to_owned())), (1, "+15550001112", Err("UNUSABLE_CALLER_ID".to_owned()))]
    {
        let spec = spec(json!({ "phone_number": number }));
        desk.service.library().add_phone_number(&other, spec).await.expect("it is free");
        assert_eq!(desk.dial(result, TARGET).await, expect, "{number}");
    }
}

/// A call begins with a new result as with an admitted one; a refused number leaves nothing of its turn.
#[tokio::test]
async fn a_call_begins_in_whole_or_not_at_all() {
    let desk = Desk::new("default = true\nmax_calls = 1").await;
    let organization = desk.caller.organization.clone();
    let run = |simulation: i64| json!({ "simulation_id": simulation.to_string(), "runs_per_digital_human": 2 });
    let first = desk.service.runs().result(&desk.caller, desk.results[0]).await.expect("the first").body;
    let patch = spec(json!({ "sequential_calling": true }));
    desk.service.library().update_simulation(&desk.caller, first.simulation_id, patch).await.expect("it runs in order");
    let queued = desk.service.runs().queue_simulation_run(&desk.caller, spec(run(first.simulation_id))).await;
    let new: Vec<i64> =
        queued.expect("a run").simulation_result_ids.iter().map(|id| id.parse().expect("an id")).collect();
    let begin = async |result_id: i64| {
        let job = CallJob { organization: organization.clone(), result_id, attempt: 1 };
        match desk.service.placements().begin(&job, &placement_settings()).await.expect("the store works") {
            Begin::Prepared(placed, _) => format!("placed {}", placed.notes["caller_number"]),
            Begin::Waits => "waits".to_owned(),
            Begin::Refused => "refused".to_owned(),
        }
    };
    let body = async |id: i64| desk.service.runs().result(&desk.caller, id).await.expect("the result").body;
    // The second comes after the first of its run, and is admitted all the same.
    for (id, expect, status) in [
        (new[1], "waits", ResultStatus::Queued),
        (new[0], "placed \"+15550001111\"", ResultStatus::Dispatched),
        (new[0], "waits", ResultStatus::Dispatched),
        (desk.results[0], "refused", ResultStatus::NoConnection),
    ] {
        assert_eq!((begin(id).await.as_str(), body(id).await.status), (expect, status), "{id}");
    }
    let history: Vec<ResultStatus> = body(new[0]).await.status_history.iter().map(|change| change.status).collect();
    assert_eq!(history, [ResultStatus::Initializing, ResultStatus::Queued, ResultStatus::Dispatched]);
    assert_eq!(body(desk.results[0]).await.error_code, Some(ErrorCode::DialCallsRefused));
    let mut db = desk.service.store().org(&organization).read().await.expect("a session");
    assert_eq!(db.legs_of(desk.results[0]).await, Ok(Vec::new()));
    assert!(
        db.has_dial(new[0], "near").await.expect("read") && !db.has_dial(desk.results[0], "near").await.expect("read")
    );
}
