//! Digital Humans that can be called at any time: what they listen on, what a call makes, and two that want one number.

use ringer::model::status::ResultStatus as S;
use ringer::service::{QueueStep, Reached};
use serde_json::{Value, json};

use super::{Fixture, map, refusal, spec};

const NUMBER: &str = "+15550001111";
const DAY_MS: i64 = 86_400_000;
const NOT_ALWAYS_ON: &str = "Simulation is not an always-on simulation";

fn always() -> Value {
    json!({ "phone_number": NUMBER, "always_on_mode": true })
}

impl Fixture {
    async fn change(&self, human: i64, body: Value, take_over: bool) -> String {
        refusal(self.service.humans().update_digital_human(&self.caller, human, map(body), None, take_over).await)
    }

    async fn relink(&self, human: i64, simulations: &[i64]) -> String {
        let links = Some(simulations);
        refusal(self.service.humans().update_digital_human(&self.caller, human, map(json!({})), links, false).await)
    }

    async fn set_always_on(&self, simulation: i64, always_on: bool) -> String {
        let change = map(json!({ "always_on": always_on }));
        refusal(self.service.library().update_simulation(&self.caller, simulation, change).await)
    }

    async fn listens(&self, human: i64) -> Option<bool> {
        let read = self.service.humans().digital_human(&self.caller, human).await.expect("it");
        read.digital_human.spec.always_on_active
    }

    async fn run_of(&self, result: i64) -> i64 {
        self.service.runs().result(&self.caller, result).await.expect("it").body.simulation_run_id
    }
}

#[tokio::test]
async fn each_call_makes_a_result_in_the_run_of_the_day() {
    let f = Fixture::new().await;
    let (simulation, humans) = f.callers(json!({}), json!({ "always_on": true }), &[always()]).await;
    let leg = f.leg(NUMBER).await.expect("it listens");
    assert_eq!(leg.login, None);
    let first = f.answer(&leg).await.expect("it is taken");
    let second = f.answer(&leg).await.expect("by another instance");
    let body = f.service.runs().result(&f.caller, first).await.expect("it").body;
    assert_eq!((body.status, body.digital_human_id, body.simulation_id), (S::Dispatched, Some(humans[0]), simulation));
    let walk: Vec<S> = body.status_history.iter().map(|change| change.status).collect();
    assert_eq!(walk, [S::Initializing, S::Queued, S::Ready, S::Dispatched]);
    assert_eq!(body.metadata["incoming"]["from"], "sip:agent@h");
    let seeds = [body.seed, f.service.runs().result(&f.caller, second).await.expect("it").body.seed];
    assert_ne!(seeds[0], seeds[1], "each call has draws of its own");
    let run = f.run_of(first).await;
    assert_eq!(f.run_of(second).await, run);
    f.walk(first, &[S::Running, S::ConversationEnded, S::Evaluating]).await;
    f.judge(first, json!({ "goal_success": true })).await;
    f.walk(second, &[S::NoAnswer]).await;
    let status =
        async || f.service.runs().run_results(&f.caller, run).await.expect("it").simulation_run.status.as_str();
    assert_eq!(status().await, "COMPLETED");
    let third = f.answer(&leg).await.expect("it is taken");
    assert_eq!((f.run_of(third).await, status().await), (run, "RUNNING"));
    f.clock.advance_ms(DAY_MS);
    let tomorrow = f.answer(&leg).await.expect("it is taken");
    assert_ne!(f.run_of(tomorrow).await, run);
    // Runs that are queued are others.
    let (queued, _) = f.run(simulation, json!({})).await;
    let again = f.answer(&f.leg(NUMBER).await.expect("it")).await.expect("it is taken");
    assert!(f.run_of(again).await == f.run_of(tomorrow).await && queued != f.run_of(again).await);
}

#[tokio::test]
async fn as_many_are_answered_as_may_talk_at_once() {
    let f = Fixture::new().await;
    let login = json!({ "sip_username": "u", "sip_password": "p" });
    let limit = json!({ "always_on": true, "max_concurrent": 2 });
    f.callers(login, limit, &[always()]).await;
    let leg = f.leg(NUMBER).await.expect("it listens");
    assert_eq!(leg.login.as_ref().map(|(user, password)| (user.as_str(), password.expose())), Some(("u", "p")));
    let first = f.answer(&leg).await.expect("one");
    f.answer(&leg).await.expect("two");
    assert_eq!(f.answer(&leg).await, None);
    f.walk(first, &[S::Running, S::ConversationEnded]).await;
    assert!(f.answer(&leg).await.is_some(), "a place is free");
}

#[tokio::test]
async fn changes_act_at_once_and_outlive_a_restart() {
    let mut f = Fixture::new().await;
    let (_, humans) = f.callers(json!({}), json!({ "always_on": true }), &[always()]).await;
    let human = humans[0];
    assert_eq!(f.change(human, json!({ "always_on_active": false }), false).await, "");
    assert_eq!(f.service.runs().receiver_of(NUMBER).await, Ok(Reached::Nobody));
    assert_eq!(f.change(human, json!({ "always_on_active": true }), false).await, "");
    assert!(f.leg(NUMBER).await.is_some());
    assert_eq!(f.change(human, json!({ "phone_number": "+15550002222" }), false).await, "");
    assert_eq!(f.service.runs().receiver_of(NUMBER).await, Ok(Reached::Nobody));
    f.reopen().await;
    f.service.runs().recover().await.expect("recovered");
    assert!(f.leg("+15550002222").await.is_some());
    f.service.humans().delete_digital_human(&f.caller, human).await.expect("deleted");
    assert_eq!(f.service.runs().receiver_of("+15550002222").await, Ok(Reached::Nobody));
}

#[tokio::test]
async fn who_is_always_on_has_a_simulation_that_is() {
    let f = Fixture::new().await;
    let (open, humans) = f.callers(json!({}), json!({ "always_on": true }), &[always()]).await;
    let (plain, _) = f.callers(json!({}), json!({}), &[]).await;
    let human = humans[0];
    let tried = [
        (vec![plain], NOT_ALWAYS_ON),
        (vec![], NOT_ALWAYS_ON),
        (vec![plain, open], ""),
        (vec![open], ""),
        (vec![open, plain], ""),
    ];
    for (simulations, expect) in tried {
        assert_eq!(f.relink(human, &simulations).await, expect, "{simulations:?}");
    }
    // One is enough, whichever it is.
    assert_eq!(f.set_always_on(open, false).await, NOT_ALWAYS_ON);
    assert_eq!(f.set_always_on(plain, true).await, "");
    assert_eq!(f.set_always_on(open, false).await, "");
    assert!(f.leg(NUMBER).await.is_some());
    // A Digital Human that has lost its last simulation does not listen, and may be changed otherwise.
    f.service.library().delete_simulation(&f.caller, plain).await.expect("deleted");
    assert_eq!(
        (f.listens(human).await, f.service.runs().receiver_of(NUMBER).await),
        (Some(false), Ok(Reached::Nobody))
    );
    let add = f.service.library().add_digital_humans(&f.caller, open, &[human]).await;
    assert_eq!(refusal(add), NOT_ALWAYS_ON);
    assert_eq!(f.change(human, json!({ "always_on_active": true }), false).await, NOT_ALWAYS_ON);
    assert_eq!(f.change(human, json!({ "name": "Bea", "phone_number": "+15550002222" }), false).await, "");
    let (agent, other, _) = f.booth(json!({ "always_on": true }), 0).await;
    f.service.library().add_digital_humans(&f.caller, other, &[human]).await.expect("added");
    assert_eq!(f.listens(human).await, Some(false), "nobody has told it to listen again");
    assert_eq!(f.change(human, json!({ "always_on_active": true }), false).await, "");
    assert!(f.leg("+15550002222").await.is_some());
    f.service.library().remove_digital_humans(&f.caller, other, &[human]).await.expect("removed");
    assert_eq!(f.listens(human).await, Some(false));
    assert_eq!(f.relink(human, &[other]).await, "");
    assert_eq!(f.change(human, json!({ "always_on_active": true }), false).await, "");
    f.service.library().delete_agent(&f.caller, agent).await.expect("deleted");
    assert_eq!(f.listens(human).await, Some(false));
}

#[tokio::test]
async fn its_own_address_stays_the_same() {
    let f = Fixture::new().await;
    let (simulation, humans) = f.callers(json!({}), json!({ "always_on": true }), &[always()]).await;
    let mut users = vec![];
    for _ in 0..2 {
        let (_, ids) = f.run(simulation, json!({})).await;
        assert_eq!(f.queue_steps().await, [(ids[0], QueueStep::Listens)], "its number is its own");
        let body = f.service.runs().result(&f.caller, ids[0]).await.expect("it").body;
        let uri = body.metadata["listening"]["sip_uri"].as_str().expect("an address").to_owned();
        users.push(uri.split('@').next().and_then(|user| user.strip_prefix("sip:")).expect("a user").to_owned());
        // A result that waits for the call comes before one that is made for it.
        assert_eq!(f.answer(&f.leg(&users[0]).await.expect("it listens")).await, Some(ids[0]));
        let beside = f.answer(&f.leg(NUMBER).await.expect("a second instance")).await;
        assert!(beside.is_some_and(|id| id != ids[0]));
        f.walk(ids[0], &[S::NoAnswer]).await;
    }
    assert_eq!(users[0], users[1]);
    assert!(f.answer(&f.leg(&users[0]).await.expect("it always listens")).await.is_some());
    let forged = format!("dh-{}-{:08x}", humans[0], 0x0123_4567);
    assert_eq!(f.service.runs().receiver_of(&forged).await, Ok(Reached::Nobody));
}

#[tokio::test]
async fn a_number_has_one_who_listens() {
    let f = Fixture::new().await;
    let (_, humans) = f.callers(json!({}), json!({ "always_on": true }), &[always()]).await;
    let (simulation, others) = f.callers(json!({}), json!({}), &[json!({ "phone_number": NUMBER })]).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    f.queue_steps().await;
    let message = format!("Another Digital Human always listens on {NUMBER}");
    let expect = (S::NoConnection, Some("ALWAYS_ON_PHONE_IN_USE".to_owned()), Some(message));
    assert_eq!(f.error(ids[0]).await, expect);
    // Another organization cannot have it either, nor take it over.
    let stranger = f.stranger().await;
    let taken = "Phone number is already used by another always-on digital human";
    let agent =
        f.service.library().add_agent(&stranger, spec(json!({ "name": "Theirs" }))).await.expect("an agent").agent_id;
    let theirs = spec(json!({ "agent_id": agent.to_string(), "always_on": true }));
    let theirs = f.service.library().create_simulation(&stranger, theirs).await.expect("a simulation").simulation_id;
    let made = f.service.humans().create_digital_human(&stranger, spec(always()), &[theirs]).await;
    assert_eq!(refusal(made), taken);
    let quiet = spec(json!({ "phone_number": NUMBER, "always_on_mode": true, "always_on_active": false }));
    let made = f.service.humans().create_digital_human(&stranger, quiet, &[theirs]).await.expect("it does not listen");
    let wake = map(json!({ "always_on_active": true }));
    let woken = f.service.humans().update_digital_human(&stranger, made.digital_human.id, wake, None, true).await;
    assert_eq!(refusal(woken), taken);
    // A Digital Human that begins to listen takes the leg of a result that waits on the number.
    assert_eq!(f.change(humans[0], json!({ "always_on_active": false }), false).await, "");
    let (_, ids) = f.run(simulation, json!({})).await;
    assert_eq!(f.queue_steps().await, [(ids[0], QueueStep::Listens)]);
    assert_eq!(f.change(humans[0], json!({ "always_on_active": true }), false).await, "");
    let lost = "Another Digital Human listens on the number now".to_owned();
    assert_eq!(f.error(ids[0]).await, (S::NoConnection, Some("SIP_TRUNK_RECYCLED".to_owned()), Some(lost)));
    // Two of one organization: the second is refused, or takes it over.
    let wake = json!({ "always_on_mode": true, "always_on_active": true });
    assert_eq!(f.change(others[0], wake.clone(), true).await, NOT_ALWAYS_ON);
    assert_eq!(f.set_always_on(simulation, true).await, "");
    assert_eq!(f.change(others[0], wake.clone(), false).await, taken);
    assert_eq!(f.change(others[0], wake, true).await, "");
    assert_eq!((f.listens(humans[0]).await, f.listens(others[0]).await), (Some(false), Some(true)));
    assert!(f.leg(NUMBER).await.is_some());
}
