//! Results that the agent calls: who listens when, how long, and what its owner is told; without a telephone.

use ringer::error::Error;
use ringer::jobs::Upkeep;
use ringer::model::Object;
use ringer::model::result::QueueReason;
use ringer::model::status::ResultStatus as S;
use ringer::provider::post::signature;
use ringer::queue::CallJob;
use ringer::service::{InboundAddress, QueueStep, Reached};
use serde_json::{Value, json};

use super::{Fixture, extend, map, spec};
use crate::api::receiver::Receiver;
use crate::databases;

impl Fixture {
    /// Returns an agent that calls, with a simulation of such Digital Humans.
    pub(super) async fn callers(&self, agent: Value, simulation: Value, humans: &[Value]) -> (i64, Vec<i64>) {
        let mut body = json!({ "name": "Desk", "type": "OUTBOUND", "connection_type": "SIP" });
        extend(&mut body, agent);
        let agent = self.agent(body).await;
        let mut body = json!({ "agent_id": agent.to_string() });
        extend(&mut body, simulation);
        let simulation = self.simulation(body).await;
        let mut ids = vec![];
        for human in humans {
            let mut body = json!({ "name": "Ann", "intent": "book" });
            extend(&mut body, human.clone());
            ids.push(self.human(body, &[simulation]).await);
        }
        (simulation, ids)
    }

    /// Does what the worker of call jobs does with every result that is due, and answers what came of it.
    pub(super) async fn queue_steps(&self) -> Vec<(i64, QueueStep)> {
        self.service.conversations().admit().await.expect("admitted");
        let queue = self.service.queue();
        let mut steps = vec![];
        while let Some(claimed) = queue.claim(&["call"], 1000).await.expect("claims") {
            let id = claimed.job::<CallJob>().expect("a call job").result_id;
            steps.push((id, self.queue_step(id).await));
            queue.finish_job(&claimed).await.expect("done");
        }
        steps
    }

    /// Returns the same of text jobs between two numbers.
    async fn written_steps(&self, numbers: [&str; 2]) -> Vec<(i64, bool)> {
        self.service.conversations().admit().await.expect("admitted");
        let queue = self.service.queue();
        let mut steps = vec![];
        while let Some(claimed) = queue.claim(&["text"], 1000).await.expect("claims") {
            let id = claimed.job::<CallJob>().expect("a text job").result_id;
            let step =
                self.service.conversations().take_written_step(&self.caller.organization, id, Some(numbers)).await;
            steps.push((id, step.expect("a step")));
            queue.finish_job(&claimed).await.expect("done");
        }
        steps
    }

    async fn queue_step(&self, id: i64) -> QueueStep {
        self.service.conversations().take_queue_step(&self.caller.organization, id).await.expect("a step")
    }

    /// Returns the leg that waits at an address; `None` if nobody does.
    pub(super) async fn leg(&self, user: &str) -> Option<InboundAddress> {
        match self.service.runs().receiver_of(user).await.expect("it can be asked") {
            Reached::Address(leg) => Some(leg),
            Reached::Busy(_) | Reached::Nobody => None,
        }
    }

    pub(super) async fn answer(&self, leg: &InboundAddress) -> Option<i64> {
        let about: Object = map(json!({ "from": "sip:agent@h" }));
        self.service.runs().take_call(leg, about).await.expect("it can be taken").map(|job| job.result_id)
    }

    pub(super) async fn work_off(&self) -> usize {
        Upkeep::new(self.service.clone()).work_off().await.expect("the work can be done")
    }

    pub(super) async fn error(&self, id: i64) -> (S, Option<String>, Option<String>) {
        let body = self.service.runs().result(&self.caller, id).await.expect("it").body;
        (body.status, body.error_code.map(|code| code.to_string()), body.error_message)
    }
}

/// A number that is registered while somebody else's result listens on it: its calls are for its holder alone.
#[tokio::test]
async fn calls_to_a_registered_number_reach_its_holder_alone() {
    let f = Fixture::new().await;
    let phone = json!({ "phone_number": "+15550001111" });
    let (simulation, _) = f.callers(json!({}), json!({}), &[phone]).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    assert_eq!(f.queue_steps().await, [(ids[0], QueueStep::Listens)]);
    assert!(f.leg("+15550001111").await.is_some());
    let other = f.service.library().bootstrap("second", "key of the second").await.expect("a key");
    let spec = |number: &str| serde_json::from_value(json!({ "phone_number": number })).expect("it fits");
    let refused = f.service.library().add_phone_number(&other, spec("+15550001111")).await;
    assert_eq!(refused, Err(Error::Conflict("Phone number is in use by another organization".into())));
    // Two engines may do both at the same time; the row is written as the other one would.
    databases::run(
        &f.location,
        &format!(
            "INSERT INTO phone_numbers (id, org_id, number, doc, created_ms, updated_ms) SELECT 900, '{}', '+15550001111', \
             '{{\"phone_number\":\"+15550001111\",\"carrier_sid\":\"\"}}', 1, 1",
            other.organization
        ),
    )
    .await;
    assert_eq!(f.service.runs().receiver_of("+15550001111").await, Ok(Reached::Nobody));
    f.service.runs().hangup(&f.caller, ids[0]).await.expect("taken back");
    // Whoever comes later does not listen on it at all.
    let (_, later) = f.run(simulation, json!({})).await;
    f.queue_steps().await;
    let body = f.service.runs().result(&f.caller, later[0]).await.expect("it").body;
    assert_eq!(
        body.error_code.map(|code| code.to_string()).as_deref(),
        Some("ALWAYS_ON_PHONE_IN_USE"),
        "{:?}",
        body.error_message
    );
}

const TO_END: &[S] = &[S::Dispatched, S::Running, S::ConversationEnded];

#[tokio::test]
async fn an_address_is_held_by_one_result_at_a_time() {
    let f = Fixture::new().await;
    let phone = json!({ "phone_number": "+15550001111" });
    let (one, _) = f.callers(json!({}), json!({ "runs_per_digital_human": 2 }), &[phone.clone(), json!({})]).await;
    let (other, _) = f.callers(json!({}), json!({}), &[phone]).await;
    let (run, ids) = f.run(one, json!({})).await;
    let listen = [QueueStep::Listens, QueueStep::Waits, QueueStep::Listens, QueueStep::Waits];
    assert_eq!(f.queue_steps().await, ids.iter().copied().zip(listen).collect::<Vec<_>>());
    let (_, later) = f.run(other, json!({})).await;
    assert_eq!(f.queue_steps().await, [(later[0], QueueStep::Waits)], "the number is another run's");
    assert_eq!(f.status(later[0]).await, S::Queued);
    let at = f.service.runs().result(&f.caller, ids[0]).await.expect("it").body.metadata["listening"].clone();
    assert_eq!(at["phone_number"], "+15550001111");
    let user = at["sip_uri"].as_str().and_then(|uri| uri.strip_prefix("sip:")?.split('@').next()).expect("a user");
    for address in [user, "+15550001111", "15550001111"] {
        assert!(f.leg(address).await.is_some(), "{address}");
    }
    for address in ["", "+15550002222", "dh-1-00000000", "in order: 1"] {
        assert_eq!(f.service.runs().receiver_of(address).await, Ok(Reached::Nobody), "{address}");
    }
    let leg = f.leg(user).await.expect("it listens");
    assert_eq!(f.answer(&leg).await, Some(ids[0]));
    assert_eq!(f.answer(&leg).await, None, "it has been taken");
    assert_eq!(f.service.runs().receiver_of(user).await, Ok(Reached::Busy(Some(ids[0]))));
    assert_eq!(f.queue_steps().await, [], "the first still talks");
    f.walk(ids[0], &TO_END[1..]).await;
    assert_eq!(f.queue_steps().await, [(ids[1], QueueStep::Listens)], "who has waited longest");
    // Taken back while it listens: its number goes on to the other run.
    f.service.runs().hangup(&f.caller, ids[1]).await.expect("hung up");
    assert_eq!(f.queue_steps().await, [(later[0], QueueStep::Listens)]);
    // A cancelled run leaves nothing behind, waiting or listening: who was let go on by another's end does not begin.
    assert_eq!(f.service.runs().cancel_run(&f.caller, run, false).await.expect("cancelled").cancelled, 2);
    assert!(f.queue_steps().await.iter().all(|(_, step)| *step == QueueStep::Waits));
    assert_eq!((f.status(ids[2]).await, f.status(ids[3]).await), (S::Cancelled, S::Cancelled));
    f.service.runs().hangup(&f.caller, later[0]).await.expect("hung up");
    assert_eq!(f.service.runs().receiver_of("+15550001111").await, Ok(Reached::Nobody));
}

#[tokio::test]
async fn a_sequential_run_keeps_its_order() {
    let f = Fixture::new().await;
    let humans = [json!({}), json!({}), json!({})];
    let (simulation, _) = f.callers(json!({}), json!({ "sequential_calling": true }), &humans).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    f.service.conversations().admit_one(&f.caller.organization, ids[1]).await.expect("admitted");
    assert_eq!(f.queue_step(ids[1]).await, QueueStep::Waits, "the first comes first, whoever asks first");
    f.queue_steps().await;
    let states = async || (f.status(ids[0]).await, f.status(ids[1]).await, f.status(ids[2]).await);
    assert_eq!(states().await, (S::Ready, S::Queued, S::Queued));
    f.walk(ids[0], TO_END).await;
    f.queue_steps().await;
    assert_eq!(states().await, (S::ConversationEnded, S::Ready, S::Queued));
    f.service.runs().hangup(&f.caller, ids[1]).await.expect("hung up");
    f.queue_steps().await;
    assert_eq!(states().await, (S::ConversationEnded, S::Cancelled, S::Ready));
}

#[tokio::test]
async fn ready_results_hold_no_place() {
    let f = Fixture::new().await;
    let humans = [1, 2].map(|n| json!({ "phone_number": format!("+1555000111{n}") }));
    let (simulation, _) = f.callers(json!({}), json!({ "max_concurrent": 1 }), &humans).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    assert_eq!(f.queue_steps().await, [(ids[0], QueueStep::Listens), (ids[1], QueueStep::Listens)]);
    let (first, second) = (f.leg("+15550001111").await.expect("it"), f.leg("+15550001112").await.expect("it"));
    assert_eq!(f.answer(&first).await, Some(ids[0]));
    assert_eq!(f.answer(&second).await, None, "one at once");
    f.walk(ids[0], &TO_END[1..]).await;
    assert_eq!(f.answer(&second).await, Some(ids[1]));
}

#[tokio::test]
async fn two_numbers_write_one_conversation_whoever_lets_it_begin() {
    let f = Fixture::new().await;
    let numbers = ["+15550001111", "+15550002222"];
    let agent = json!({ "mode": "TEXT", "connection_type": "SMS", "phone_number": numbers[1] });
    let steps: Vec<Value> = (1..=2).map(|n| json!({ "step": n, "intent": "Ask.", "modality": "sms" })).collect();
    let journey = json!({ "phone_number": numbers[0], "journey_steps": steps });
    let (one, _) = f.callers(agent.clone(), json!({}), &[journey]).await;
    let (other, _) = f.callers(agent, json!({}), &[json!({ "outbound_text_number": numbers[0] })]).await;
    let (_, steps) = f.run(one, json!({})).await;
    assert_eq!(f.written_steps(numbers).await, [(steps[0], true)]);
    let (_, later) = f.run(other, json!({})).await;
    assert_eq!(f.written_steps(numbers).await, [(later[0], false)]);
    let waiting = f.service.runs().result(&f.caller, later[0]).await.expect("it");
    assert_eq!((waiting.body.status, waiting.queue_reason), (S::Queued, Some(QueueReason::AddressInUse)));
    f.walk(steps[0], TO_END).await;
    assert_eq!(f.written_steps(numbers).await, [(later[0], true)]);
    // The next step comes while the other conversation is open.
    f.walk(steps[0], &[S::Evaluating]).await;
    f.judge(steps[0], json!({ "goal_success": true })).await;
    assert_eq!(f.written_steps(numbers).await, [(steps[1], false)]);
    f.walk(later[0], TO_END).await;
    assert_eq!(f.written_steps(numbers).await, [(steps[1], true)]);
}

#[tokio::test]
async fn runs_by_text_messages_are_limited_as_others_are() {
    for mode in [json!({ "max_concurrent": 1 }), json!({ "sequential_calling": true })] {
        let f = Fixture::new().await;
        let agent = json!({ "mode": "TEXT", "connection_type": "SMS", "phone_number": "+15550002222" });
        let humans = [1, 2].map(|n| json!({ "phone_number": format!("+1555000111{n}") }));
        let (simulation, _) = f.callers(agent, mode, &humans).await;
        let (_, ids) = f.run(simulation, json!({})).await;
        let queue = f.service.queue();
        let first = queue.claim(&["text"], 1000).await.expect("claims").expect("the first");
        assert_eq!(first.job::<CallJob>().expect("it").result_id, ids[0]);
        assert_eq!(queue.claim(&["text"], 1000).await, Ok(None));
        assert_eq!(queue.finish_job(&first).await, Ok(true));
        assert!(queue.claim(&["text"], 1000).await.expect("claims").is_some());
    }
}

#[tokio::test]
async fn a_leg_listens_for_as_long_as_it_should() {
    let f = Fixture::new().await;
    let (simulation, _) = f.callers(json!({}), json!({ "ringing_timeout": 20 }), &[json!({}), json!({})]).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    f.queue_steps().await;
    f.walk(ids[1], &TO_END[..2]).await;
    f.clock.advance_ms(17_999);
    f.work_off().await;
    assert_eq!(f.status(ids[0]).await, S::Ready);
    f.clock.advance_ms(1);
    f.work_off().await;
    let why = ("INBOUND_NO_INCOMING_CALL".to_owned(), "The agent did not call within 20 s".to_owned());
    assert_eq!(f.error(ids[0]).await, (S::NoAnswer, Some(why.0), Some(why.1)));
    assert_eq!(f.status(ids[1]).await, S::Running, "it was called in time");
}

#[tokio::test]
async fn what_is_ready_outlives_a_restart() {
    let mut f = Fixture::new().await;
    let phone = json!({ "phone_number": "+15550001111" });
    let (simulation, _) = f.callers(json!({}), json!({ "runs_per_digital_human": 3 }), &[phone]).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    f.queue_steps().await;
    f.reopen().await;
    assert_eq!(f.service.runs().recover().await, Ok(0));
    let leg = f.leg("+15550001111").await.expect("it still listens");
    assert_eq!(f.answer(&leg).await, Some(ids[0]));
    f.reopen().await;
    assert_eq!(f.service.runs().recover().await, Ok(1));
    assert_eq!(f.error(ids[0]).await.1.as_deref(), Some("ENGINE_RESTARTED"));
    assert_eq!(f.queue_steps().await, [(ids[1], QueueStep::Listens)], "who has waited for it goes on");
}

#[tokio::test]
async fn an_owner_is_asked_three_times() {
    let f = Fixture::new().await;
    let owner = Receiver::new(&[500, 302, 503]).await;
    let template = json!({
        "to": "{{digital_human.phone_number}}", "who": { "id": "{{digital_human.id}}", "says": "{{digital_human.name}}!" },
        "run": ["{{simulation.id}}", "{{agent.id}}", "{{sim_conversation_id}}"], "names": "{{agent.name}} {{simulation.name}}",
        "intent": "{{digital_human.intent}}", "sip": "{{digital_human.sip_uri}}", "{{agent.id}}": "{{nothing}}",
    });
    let agent = json!({
        "outbound_trigger_webhook_url": owner.url("/go"), "outbound_trigger_payload_template": template,
        "http_webhook": "http://127.0.0.1:9/unused",
    });
    let phone = json!({ "phone_number": "+15550001111" });
    let (simulation, humans) = f.callers(agent, json!({}), &[phone]).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    f.queue_steps().await;
    assert_eq!(f.work_off().await, 1);
    for (wait, more) in [(999, 0), (1, 1), (1999, 0)] {
        f.clock.advance_ms(wait);
        assert_eq!(f.work_off().await, more);
    }
    assert_eq!((owner.requests().len(), f.status(ids[0]).await), (2, S::Ready));
    f.clock.advance_ms(1);
    f.work_off().await;
    let message = "The outbound trigger webhook answered 503";
    let expect = (S::NoConnection, Some("OUTBOUND_TRIGGER_FAILED".to_owned()), Some(message.to_owned()));
    assert_eq!(f.error(ids[0]).await, expect);
    let seen = owner.requests();
    assert_eq!(seen.len(), 3);
    let body = f.service.runs().result(&f.caller, ids[0]).await.expect("it").body;
    let agent = body.agent_id;
    let uri = body.metadata["listening"]["sip_uri"].clone();
    let expect = json!({
        "to": "+15550001111", "who": { "id": humans[0], "says": "Ann!" },
        "run": [simulation, agent, ids[0].to_string()], "names": format!("Desk Simulation {simulation}"),
        "intent": "book", "sip": uri, "{{agent.id}}": "{{nothing}}",
    });
    let key = f.service.library().get_http_webhook_key(&f.caller, Some(&spec(json!(agent.to_string()))), None).await;
    let key = key.expect("a key").signing_key;
    for request in seen {
        assert_eq!((request.path.as_str(), request.json()), ("/go", expect.clone()));
        assert_eq!(request.headers["content-type"], "application/json");
        for name in ["x-svc-idempotency-key", "x-simulation-result-id"] {
            assert_eq!(request.headers[name], ids[0].to_string().as_str(), "{name}");
        }
        assert_eq!(request.headers["x-svc-signature"], signature(&key, &request.body).as_str());
    }
}

#[tokio::test]
async fn an_owner_that_was_asked_or_has_called_is_asked_no_more() {
    let f = Fixture::new().await;
    let owner = Receiver::new(&[200, 500]).await;
    let agent = json!({ "outbound_trigger_webhook_url": owner.url("/go") });
    let (simulation, _) = f.callers(agent, json!({}), &[json!({ "phone_number": "+15550001111" }), json!({})]).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    f.queue_steps().await;
    assert_eq!(f.work_off().await, 2);
    let first = owner.requests().remove(0);
    let uri =
        f.service.runs().result(&f.caller, ids[0]).await.expect("it").body.metadata["listening"]["sip_uri"].clone();
    let expect = json!({ "phone_number": "+15550001111", "sip_uri": uri, "sim_conversation_id": ids[0].to_string() });
    assert_eq!(first.json(), expect);
    assert_eq!(first.headers.get("x-svc-signature"), None, "the agent has no key");
    // The second was refused, and the call comes all the same.
    f.walk(ids[1], &TO_END[..1]).await;
    f.clock.advance_ms(60_000);
    f.work_off().await;
    assert_eq!(owner.requests().len(), 2);
    assert_eq!((f.status(ids[0]).await, f.status(ids[1]).await), (S::Ready, S::Dispatched));
}

#[tokio::test]
async fn an_owner_is_asked_for_what_is_written_too() {
    for agent in [
        json!({ "connection_type": "SMS", "phone_number": "+15550002222" }),
        json!({ "connection_type": "HTTP_WEBHOOK", "http_webhook": "http://127.0.0.1:9/unused" }),
    ] {
        let f = Fixture::new().await;
        let owner = Receiver::new(&[]).await;
        let mut body = json!({ "mode": "TEXT", "outbound_trigger_webhook_url": owner.url("/go") });
        extend(&mut body, agent);
        let phone = json!({ "phone_number": "+15550003333" });
        let (simulation, _) = f.callers(body, json!({ "runs_per_digital_human": 2 }), &[phone]).await;
        let (_, ids) = f.run(simulation, json!({})).await;
        f.walk(ids[1], &[S::Queued, S::Ready]).await;
        f.work_off().await;
        let seen = owner.requests();
        assert_eq!((seen.len(), &seen[0].json()["sim_conversation_id"]), (1, &json!(ids[1].to_string())));
        f.walk(ids[0], &[S::Queued, S::Ready]).await;
        f.work_off().await;
        assert_eq!(owner.requests().len(), 2);
    }
}

#[tokio::test]
async fn steps_of_a_journey_are_called_or_call() {
    let f = Fixture::new().await;
    let steps = json!([
        { "step": 1, "intent": "Ask.", "direction": "outbound", "response_window_seconds": 40, "phone_number": "+15550003333" },
        { "step": 2, "intent": "Call.", "wait_seconds": 5 },
        { "step": 3, "intent": "Hide.", "direction": "outbound", "response_window_seconds": 60, "unresponsive": true,
          "success_criteria": "It calls twice." },
    ]);
    let human = json!({ "phone_number": "+15550001111", "journey_steps": steps });
    // The kind of agent does not matter: each step says who makes contact.
    let agent = json!({ "type": "INBOUND", "sip_uri": "sip:desk@pbx.example.com" });
    let (simulation, _) = f.callers(agent, json!({}), &[human]).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    assert_eq!(f.queue_steps().await, [(ids[0], QueueStep::Listens)]);
    assert!(f.leg("+15550003333").await.is_some() && f.leg("+15550001111").await.is_none(), "the step's own number");
    f.clock.advance_ms(40_000);
    f.work_off().await;
    let message = "The agent did not call within 40 s".to_owned();
    assert_eq!(f.error(ids[0]).await, (S::NoAnswer, Some("INBOUND_NO_INCOMING_CALL".into()), Some(message)));
    f.clock.advance_ms(5000);
    assert_eq!(f.queue_steps().await, [(ids[1], QueueStep::Dials)]);
    f.walk(ids[1], &[S::Dispatched, S::NoAnswer]).await;
    assert_eq!(f.queue_steps().await, [(ids[2], QueueStep::Listens)]);
    let leg = f.leg("+15550001111").await.expect("it listens");
    assert!(leg.unresponsive);
    for _ in 0..2 {
        f.service.runs().note_unanswered(&leg, map(json!({ "from": "sip:agent@h" }))).await.expect("noted");
    }
    f.clock.advance_ms(60_000);
    f.work_off().await;
    let body = f.service.runs().result(&f.caller, ids[2]).await.expect("it").body;
    let calls = body.metadata["unanswered_calls"].as_array().expect("a list").clone();
    assert_eq!((body.status, calls.len()), (S::ConversationEnded, 2));
    f.walk(ids[2], &[S::Evaluating]).await;
    let given = f.service.evaluations().to_judge(&f.caller.organization, ids[2]).await.expect("it is there");
    let attempt = |call: &Value| {
        let at = call["at"].as_str().expect("a time");
        format!("{at}: a call from sip:agent@h, not answered")
    };
    assert_eq!(given.attempts, calls.iter().map(attempt).collect::<Vec<_>>());
    assert_eq!(given.success_criteria, "It calls twice.");
    let called = f.service.evaluations().to_judge(&f.caller.organization, ids[0]).await.expect("it is there");
    assert!(called.attempts.is_empty(), "who would have answered: {:?}", called.attempts);
    let done = f.judge(ids[2], json!({})).await.body;
    assert_eq!((done.status, done.evaluations[0].goal_success), (S::Completed, None));
    assert_eq!(done.outcome.map(|outcome| outcome.as_str()), Some("not_evaluated"));
    for (goal, outcome) in [(true, "passed"), (false, "failed")] {
        let judged = f.judge(ids[2], json!({ "goal_success": goal })).await.body;
        assert_eq!(judged.outcome.map(|outcome| outcome.as_str()), Some(outcome));
    }
}

#[tokio::test]
async fn a_journey_may_stop_where_it_fails() {
    for (stops, expect) in
        [(false, [S::NoAnswer, S::Queued, S::Initializing]), (true, [S::NoAnswer, S::Cancelled, S::Cancelled])]
    {
        let mut f = Fixture::new().await;
        let store = f.service.store().clone();
        let mut settings = f.service.settings().clone();
        settings.journey_stop_on_failure = stops;
        f.service = ringer::service::Service::new(store, f.clock.clone(), settings, f.live.clone());
        let steps: Vec<Value> = (1..=3).map(|step| json!({ "step": step, "intent": "Ask." })).collect();
        let (_, simulation, _) = f.booth(json!({}), 0).await;
        f.human(json!({ "journey_steps": steps }), &[simulation]).await;
        let (run, ids) = f.run(simulation, json!({})).await;
        f.walk(ids[0], &[S::Queued, S::Dispatched, S::NoAnswer]).await;
        f.service.conversations().admit().await.expect("admitted");
        let states = [f.status(ids[0]).await, f.status(ids[1]).await, f.status(ids[2]).await];
        assert_eq!(states, expect, "stops: {stops}");
        let run = f.service.runs().run_results(&f.caller, run).await.expect("it").simulation_run;
        assert_eq!(run.status.as_str(), if stops { "COMPLETED" } else { "RUNNING" });
    }
}

#[tokio::test]
async fn who_comes_next_does_not_wait_for_a_step_that_will_not_be_held() {
    let f = Fixture::new().await;
    let steps: Vec<Value> = (1..=2).map(|step| json!({ "step": step, "intent": "Ask.", "wait_seconds": 5 })).collect();
    let agent = json!({ "type": "INBOUND", "sip_uri": "sip:desk@pbx.example.com" });
    let callers = [json!({ "journey_steps": steps }), json!({})];
    let (simulation, humans) = f.callers(agent, json!({ "sequential_calling": true }), &callers).await;
    let (_, ids) = f.run(simulation, json!({})).await;
    assert_eq!(f.queue_steps().await, [(ids[0], QueueStep::Dials), (ids[2], QueueStep::Waits)]);
    f.walk(ids[0], &[S::Dispatched, S::NoAnswer]).await;
    assert_eq!(f.queue_steps().await, [], "the pause before the second step, which comes first");
    f.service.humans().delete_digital_human(&f.caller, humans[0]).await.expect("deleted");
    assert_eq!((f.status(ids[1]).await, f.queue_steps().await), (S::Cancelled, vec![(ids[2], QueueStep::Dials)]));
}
