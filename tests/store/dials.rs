//! Numbers that are dialled at the same time: no limit is exceeded by one call, on whichever database.

use std::collections::BTreeMap;
use std::path::Path;

use ringer::config::Config;
use ringer::model::status::ResultStatus as S;
use ringer::service::{Caller, CallerNumber, InboundAddress, NotDone, Obstacle, Outgoing, Reached, Service, Settings};
use ringer::tasks::Tasks;
use serde_json::json;
use tokio::sync::mpsc;

use super::Fixture;

/// Dials at the same time.
pub(crate) const RACERS: usize = 1000;

/// Returns the settings with the trunks and limits of this file.
pub(crate) fn with_trunks(settings: &Settings, file: &str) -> Settings {
    let read = Config::from_texts(Some((Path::new("ringer.toml"), file)), &BTreeMap::new(), &[], 4096);
    let config = read.expect("good settings");
    let (trunks, organization_limits) = (config.sip.trunks.into(), config.limits.organizations.into());
    Settings { trunks, organization_limits, ..settings.clone() }
}

/// Returns a number that is dialled through a trunk, for at most ten minutes.
pub(crate) fn outgoing(trunk: &str) -> Outgoing {
    let (trunk, number, caller) = (trunk.to_owned(), "+15550009999".to_owned(), CallerNumber::Any);
    Outgoing { trunk, number, caller, rings_ms: 60_000, lasts_ms: 600_000 }
}

/// Dials for each of these results at the same time, each by one of the services, and counts what came of it: "" for
/// admitted.
pub(crate) async fn race(
    services: &[Service],
    caller: &Caller,
    results: &[i64],
    trunk: &str,
) -> BTreeMap<String, usize> {
    let (answer_sender, mut answers) =
        mpsc::channel::<std::result::Result<Option<String>, NotDone<Obstacle>>>(results.len());
    let tasks = Tasks::new();
    for (result, service) in results.iter().copied().zip(services.iter().cycle().cloned()) {
        let (answer_sender, organization, outgoing) =
            (answer_sender.clone(), caller.organization.clone(), outgoing(trunk));
        tasks.spawn("dial", async move {
            let admitted = service.placements().admit_outgoing(&organization, result, &outgoing).await;
            answer_sender.send(admitted).await.expect("it is waited for");
        });
    }
    drop(answer_sender);
    let mut counts = BTreeMap::new();
    while let Some(admitted) = answers.recv().await {
        let code = admitted.err().map(|why| why.reason().expect("the store works").code.to_string());
        *counts.entry(code.unwrap_or_default()).or_default() += 1;
    }
    counts
}

/// Returns one trunk for each limit, and one without any; the organization has limits that the trunks do not reach.
pub(crate) fn limits_of_each(organization: &str) -> String {
    let trunk = |name: &str, number: &str, more: &str| {
        format!("[sip.trunks.{name}]\nhost = 'h'\nnumbers = ['{number}']\nallowed_prefixes = ['+1']\n{more}\n")
    };
    format!(
        "{}{}{}{}[limits.organizations.{organization}]\nmax_calls = 40\nmax_cps = 41\nmax_minutes_per_day = 390",
        trunk("few", "+15550001101", "max_calls = 7"),
        trunk("slow", "+15550001102", "max_cps = 5"),
        trunk("short", "+15550001103", "max_minutes_per_day = 119"),
        trunk("open", "+15550001104", ""),
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_dials_at_once_exceed_no_limit() {
    let mut f = Fixture::new().await;
    let organization = f.caller.organization.clone();
    let settings = with_trunks(f.service.settings(), &limits_of_each(&organization));
    f.service = Service::new(f.service.store().clone(), f.clock.clone(), settings, f.live.clone());
    let (_, simulation, _) = f.booth(json!({}), 1).await;
    let (_, results) = f.run(simulation, json!({ "runs_per_digital_human": RACERS })).await;
    f.service.conversations().admit().await.expect("admitted");
    let services = [f.service.clone()];
    let raced = async |results: &[i64], trunk: &str| race(&services, &f.caller, results, trunk).await;
    let expect = |admitted: usize, code: &str, refused: usize| {
        let counts = [(String::new(), admitted), (code.to_owned(), refused)];
        counts.into_iter().filter(|(_, count)| *count > 0).collect::<BTreeMap<_, _>>()
    };
    // A refused result is still queued, and may be dialled again.
    assert_eq!(raced(&results, "few").await, expect(7, "DIAL_CALLS_REFUSED", RACERS - 7));
    assert_eq!(raced(&results, "slow").await, expect(5, "DIAL_RATE_REFUSED", RACERS - 5));
    f.clock.advance_ms(999);
    assert_eq!(raced(&results, "slow").await, expect(0, "DIAL_RATE_REFUSED", RACERS));
    f.clock.advance_ms(1);
    assert_eq!(raced(&results, "slow").await, expect(5, "DIAL_RATE_REFUSED", RACERS - 5));
    assert_eq!(raced(&results, "short").await, expect(11, "DIAL_MINUTES_REFUSED", RACERS - 11));
    // 28 of the organization's 39 reservations of ten minutes are taken, and as many of its 40 calls.
    assert_eq!(raced(&results, "open").await, expect(11, "DIAL_MINUTES_REFUSED", RACERS - 11));
    let refused = f.service.placements().dial_refusals().into_values().sum::<u64>() as usize;
    assert_eq!(refused, 6 * RACERS - 39);
    // The calls of a result that ends are over, and their minutes given back.
    for id in &results {
        f.service
            .conversations()
            .advance(&organization, *id, S::Queued, S::Cancelled, |_| ())
            .await
            .expect("cancelled");
    }
    let (_, results) = f.run(simulation, json!({ "runs_per_digital_human": 50 })).await;
    f.service.conversations().admit().await.expect("admitted");
    f.clock.advance_ms(1000);
    let all = race(&[f.service.clone()], &f.caller, &results, "open").await;
    assert_eq!(all, expect(39, "DIAL_MINUTES_REFUSED", 11));
}

#[tokio::test]
async fn a_call_to_a_number_of_a_trunk_is_for_whoever_listens_on_it() {
    let mut f = Fixture::new().await;
    let trunks = "[sip.trunks.near]\nhost = 'h'\nnumbers = ['+15550001111', '+493012345678']";
    let settings = with_trunks(f.service.settings(), trunks);
    f.service = Service::new(f.service.store().clone(), f.clock.clone(), settings, f.live.clone());
    let phone = json!({ "connection_type": "PHONE" });
    let humans = [json!({ "phone_number": "+15550001111" }), json!({ "phone_number": "+493012345678" })];
    let (simulation, _) = f.callers(phone, json!({}), &humans).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    f.queue_steps().await;
    for (called, to, expect) in [
        ("+15550001111", "", Some(ids[0])),
        ("15550001111", "+15550001111", Some(ids[0])),
        ("5550001111", "5550001111", Some(ids[0])),
        ("%2B15550001111", "", Some(ids[0])),
        ("004930-12345678", "", Some(ids[1])),
        ("03012345678", "", Some(ids[1])),
        // The address that was registered: the number is in To.
        ("ringer", "+15550001111", Some(ids[0])),
        ("", "03012345678", Some(ids[1])),
        ("ringer", "+15550002222", None),
        ("+15550002222", "+15550003333", None),
        ("ringer", "dh-1-00000000", None),
    ] {
        let leg: Option<InboundAddress> = match f.service.runs().reached_by(called, to).await.expect("it can be asked")
        {
            Reached::Address(leg) => Some(leg),
            Reached::Busy(_) | Reached::Nobody => None,
        };
        assert_eq!(leg.is_some(), expect.is_some(), "{called} {to}");
        let Some(leg) = leg else { continue };
        let expected = f.leg(if expect == Some(ids[0]) { "+15550001111" } else { "+493012345678" }).await;
        assert_eq!(Some(leg), expected, "{called} {to}");
    }
}
