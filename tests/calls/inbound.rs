//! Calls that the agent makes: the Digital Human's leg listens, and the agent is another engine or sipp.

use ringer::clock::Clock;
use ringer::config::Secret;
use ringer::engine::CallUpdate;
use ringer_media::call::EndReason;
use ringer_media::level::rms_dbov;
use serde_json::{Value, json};

use super::house::House;
use super::runs::statuses;
use super::stage::{Stage, channels, names};
use crate::api::receiver::Receiver;
use crate::json::with;
use crate::peers::Peer;

/// Returns an agent that calls.
fn caller() -> Value {
    json!({ "type": "OUTBOUND", "connection_type": "SIP" })
}

/// Returns the address on which a result's Digital Human listens.
async fn address(house: &House, id: &str) -> String {
    house.watch(id).await.until("READY").await;
    let uri = house.result(id).await["metadata"]["listening"]["sip_uri"].clone();
    uri.as_str().expect("an address").to_owned()
}

/// Returns the same engine by another user name.
fn number(house: &House, user: &str) -> String {
    format!("sip:{user}@{}", house.engine.sip_address())
}

/// Returns the status that a calling agent gets: 200, or that of the refusal.
async fn answer_status(agent: &Stage, target: &str) -> u16 {
    refusal_status(agent, target, None).await.unwrap_or(200)
}

async fn refusal_status(agent: &Stage, target: &str, login: Option<(&str, &str)>) -> Option<u16> {
    let mut placement = agent.placement(target, "Hello there.");
    placement.spec.limits.max_duration_ms = Some(500);
    if let Some((user, password)) = login {
        let dial = placement.destination.sip().expect("it dials");
        dial.username = Some(user.to_owned());
        dial.password = Some(Secret::new(password.to_owned()));
    }
    let report = agent.call(placement).await.expect("it was placed");
    report.ending.remote.filter(|_| !report.ending.connected).map(|remote| remote.sip_code().expect("it was answered"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_the_agent_makes_is_held_measured_and_kept() {
    let (house, agent) = (House::new().await, Stage::new().await);
    let asking = with(caller(), json!({ "enable_outbound_call_auto_start": true }));
    let (run, ids) = house.queue(asking, json!({}), &[json!({ "phone_number": "+15550001111" })]).await;
    let target = address(&house, &ids[0]).await;
    let read = house.result(&ids[0]).await;
    assert_eq!(read["metadata"]["listening"]["phone_number"], "+15550001111");
    let unasked = read["metadata"]["warnings"][0].clone();
    assert!(unasked.as_str().is_some_and(|why| why.starts_with("enable_outbound_call_auto_start: ")), "{read}");
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut placement = agent.placement(&target, "Your table is ready.");
    placement.folder = Some(folder.path().join("agent"));
    let report = agent.call(placement).await.expect("it was placed");
    assert!(report.ending.connected, "{:?}", report.ending);

    let events = house.events(&ids[0]).await;
    let walk =
        ["INITIALIZING", "QUEUED", "READY", "DISPATCHED", "RUNNING", "CONVERSATION_ENDED", "EVALUATING", "COMPLETED"];
    assert_eq!(statuses(&events), walk);
    let result = house.result(&ids[0]).await;
    assert_eq!((&result["end_reason"], &result["error_code"]), (&json!("max_duration"), &Value::Null), "{result}");
    assert_eq!(result["metadata"]["warnings"][0], unasked, "what was told while it waited is still told: {result}");
    let duration_ms = result["duration_ms"].as_i64().expect("it was connected");
    assert!((1980..=2060).contains(&duration_ms), "{duration_ms}");
    assert_eq!(result["engine_quality"]["lost_packets"], 0, "{result}");
    let incoming = &result["metadata"]["incoming"];
    assert_eq!(incoming["to"].as_str(), Some(target.as_str()), "{incoming}");
    assert!(incoming["source"].as_str().is_some_and(|source| source.starts_with("127.0.0.1:")), "{incoming}");
    let metrics = result["metrics"].as_array().expect("metrics");
    assert!(metrics.iter().any(|metric| metric["name"] == "duration" && metric["value"] == duration_ms), "{metrics:?}");
    let log = house.folder.path().join("results").join(&ids[0]).join("sip.log");
    let log = std::fs::read_to_string(log).expect("it was written");
    assert!(log.contains("INVITE sip:dh-") && log.contains("SIP/2.0 180") && log.contains("BYE sip:"), "{log}");
    let transcript = house.call("GET", &format!("/v1/simulation-result/{}/transcript", ids[0]), Value::Null).await;
    let first = &transcript["entries"][0];
    assert_eq!((&first["speaker"], &first["utterance"]), (&json!("USER"), &json!("Hello.")), "it greets: {transcript}");
    // Channel 0 is the Digital Human here, and what the agent heard there.
    let kept = house.folder.path().join("results").join(&ids[0]).join("recording.wav");
    let ([own, _], [_, heard]) = (channels(&kept), channels(&folder.path().join("agent/recording.wav")));
    let loudest = |pcm: &[i16]| pcm.chunks(1600).map(rms_dbov).fold(f64::MIN, |a, b| a.max(b));
    assert!(
        loudest(&own) > -40.0 && (loudest(&own) - loudest(&heard)).abs() < 1.0,
        "{} {}",
        loudest(&own),
        loudest(&heard)
    );
    let read = house.call("GET", &format!("/v1/retrieve-simulation-results/{run}"), Value::Null).await;
    assert_eq!(read["simulation_run"]["status"], "COMPLETED");
    // The leg is gone with its conversation.
    assert_eq!(answer_status(&agent, &target).await, 404);
    let calls = house.engine.counters().calls();
    assert_eq!((calls.placed, calls.answered, calls.connected), (0, 1, 1), "it came in, and nobody was dialled");
    assert_eq!(calls.set_up.counts.iter().sum::<u64>(), 0);
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wall_clock_that_is_set_during_a_call_is_a_slip() {
    for (by_ms, slip_ms) in [(0, 0.0), (1500, 1500.0)] {
        let (house, clock) = (House::new().await, Clock::standing_at(1_700_000_000_000));
        let agent = Stage::on(clock.clone()).await;
        let (_, ids) = house.queue(caller(), json!({}), &[json!({ "phone_number": "+15550001111" })]).await;
        let mut placement = agent.placement(&address(&house, &ids[0]).await, "Hello there.");
        placement.spec.limits.max_duration_ms = Some(1000);
        let mut handle = agent.engine.place(placement).await.expect("it was placed");
        let report = loop {
            match handle.news.recv().await.expect("it ends") {
                CallUpdate::Connected(_) => clock.advance_ms(by_ms),
                CallUpdate::Ended(report) => break report,
                CallUpdate::Dispatched | CallUpdate::Event(_) => {}
            }
        };
        assert!(report.ending.connected, "{:?}", report.ending);
        assert_eq!(report.ending.quality.clock_slip_ms, slip_ms);
        house.stop().await;
    }
}

/// sipp calls the number, proves who it is when it is asked, says nothing and hangs up.
#[tokio::test(flavor = "multi_thread")]
async fn who_has_no_password_is_not_heard() {
    let (house, agent) = (House::new().await, Stage::new().await);
    let login = with(caller(), json!({ "sip_username": "ringer", "sip_password": "secret" }));
    let (_, ids) = house.queue(login, json!({}), &[json!({ "phone_number": "+15550001111" })]).await;
    let target = address(&house, &ids[0]).await;
    assert_eq!(refusal_status(&agent, &target, None).await, Some(401));
    assert_eq!(refusal_status(&agent, &target, Some(("ringer", "guess"))).await, Some(403));
    assert_eq!(refusal_status(&agent, &target, Some(("other", "secret"))).await, Some(403));
    assert_eq!(house.result(&ids[0]).await["status"], "READY", "nobody has been let in");
    let media = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback has a free port");
    let port = media.local_addr().expect("it is bound").port();
    let peer = Peer::calling_user("caller", "15550001111", house.engine.sip_address(), "secret", port);
    assert_eq!(peer.end().trim(), "answered");
    let events = house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    assert_eq!(result["error_code"], "AGENT_HUNG_UP_BEFORE_SPEECH", "{:?} {result}", statuses(&events));
    assert_eq!(result["status"], "NO_ANSWER");
    house.stop().await;
}

/// Callers that are not known, not allowed, or find no place are refused.
#[tokio::test(flavor = "multi_thread")]
async fn calls_that_are_not_taken_say_why() {
    let (house, agent) = (House::new().await, Stage::new().await);
    assert_eq!(answer_status(&agent, &number(&house, "nobody")).await, 404);
    assert_eq!(answer_status(&agent, &number(&house, "+15550001111")).await, 404);
    let human = |n: u32| json!({ "phone_number": format!("+1555000111{n}") });
    let one = json!({ "max_concurrent": 1, "max_call_duration": 60 });
    let (_, ids) = house.queue(caller(), one, &[human(1), human(2)]).await;
    let targets = [address(&house, &ids[0]).await, address(&house, &ids[1]).await];
    let mut first = agent.engine.place(agent.placement(&targets[0], "Good day.")).await.expect("it was placed");
    house.watch(&ids[0]).await.until("RUNNING").await;
    assert_eq!(answer_status(&agent, &targets[0]).await, 486, "the line is taken");
    assert_eq!(answer_status(&agent, &targets[1]).await, 486, "the run has one place");
    assert_eq!(house.result(&ids[1]).await["status"], "READY");
    first.control.hangup(EndReason::ApiHangup);
    while first.news.recv().await.is_some() {}
    house.events(&ids[0]).await;
    assert_eq!(answer_status(&agent, &targets[1]).await, 200);
    house.events(&ids[1]).await;
    house.stop().await;

    let full = House::open(tempfile::tempdir().expect("a folder"), 1, &[]).await;
    let (_, ids) = full.queue(caller(), json!({ "max_call_duration": 60 }), &[human(1), human(2)]).await;
    let targets = [address(&full, &ids[0]).await, address(&full, &ids[1]).await];
    let first = agent.engine.place(agent.placement(&targets[0], "Good day.")).await.expect("it was placed");
    full.watch(&ids[0]).await.until("RUNNING").await;
    assert_eq!(answer_status(&agent, &targets[1]).await, 486, "the engine has one place");
    first.control.hangup(EndReason::ApiHangup);
    full.stop().await;

    let closed = House::open(tempfile::tempdir().expect("a folder"), 1, &["192.0.2.0/24"]).await;
    let (_, ids) = closed.queue(caller(), json!({}), &[human(1)]).await;
    let target = address(&closed, &ids[0]).await;
    assert_eq!(answer_status(&agent, &target).await, 403);
    closed.stop().await;
    agent.engine.stop().await;
}

/// The trunk names a number that was added in its national form; one that nobody added is found by its digits alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_number_that_was_added_is_listened_on() {
    let block = "[sip.trunks.near]\nhost = '127.0.0.1'\nport = 9\ncarries = ['+49 30']";
    let (house, agent) = (House::with_trunks(block).await, Stage::new().await);
    let human = json!({ "phone_number": "+4930123456" });
    let (_, ids) = house.queue(caller(), json!({ "runs_per_digital_human": 3 }), &[human]).await;
    address(&house, &ids[0]).await;
    assert_eq!(answer_status(&agent, &number(&house, "030123456")).await, 404, "nobody has added it");
    assert_eq!(answer_status(&agent, &number(&house, "0049-30-123456")).await, 200, "the trunk carries it");
    let added = house.call("POST", "/v1/phone-numbers/add", json!({ "phone_number": "+4930123456" })).await;
    assert_eq!(added["trunk"], "near");
    for (id, form) in [(&ids[1], "030123456"), (&ids[2], "+4930123456")] {
        address(&house, id).await;
        assert_eq!(answer_status(&agent, &number(&house, form)).await, 200, "{form}");
        house.events(id).await;
        let result = house.result(id).await;
        assert_eq!(result["metadata"]["listening"]["phone_number"], "+4930123456", "{result}");
    }
    house.stop().await;
}

/// Two repetitions of one Digital Human have one address: the second listens when the first is over.
#[tokio::test(flavor = "multi_thread")]
async fn results_with_one_address_come_one_after_the_other() {
    let (house, agent) = (House::new().await, Stage::new().await);
    let (_, ids) = house.queue(caller(), json!({ "runs_per_digital_human": 2 }), &[json!({})]).await;
    let first = address(&house, &ids[0]).await;
    house.watch(&ids[1]).await.until("QUEUED").await;
    assert_eq!(house.result(&ids[1]).await["status"], "QUEUED");
    assert_eq!(answer_status(&agent, &first).await, 200);
    let second = address(&house, &ids[1]).await;
    assert_eq!(second, first);
    assert_eq!(answer_status(&agent, &second).await, 200);
    let events = house.events(&ids[1]).await;
    let time = |result: &Value, status: &str| {
        let history = result["status_history"].as_array().expect("a history").clone();
        let change = history.into_iter().find(|change| change["status"] == status).expect("it was there");
        change["at"].as_str().expect("a time").to_owned()
    };
    let results = [house.result(&ids[0]).await, house.result(&ids[1]).await];
    let over = statuses(&house.events(&ids[0]).await)[5].to_owned();
    assert!(time(&results[0], &over) <= time(&results[1], "READY"), "{results:?} {events:?}");
    house.stop().await;
}

/// A result ends when no call comes in time, when it is cancelled, or when the caller gives up while it rings.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_called_is_given_up() {
    let house = House::new().await;
    let (_, ids) = house.queue(caller(), json!({ "ringing_timeout": 1 }), &[json!({})]).await;
    let walk = ["INITIALIZING", "QUEUED", "READY", "NO_ANSWER"];
    assert_eq!(statuses(&house.events(&ids[0]).await), walk);
    let result = house.result(&ids[0]).await;
    assert_eq!(result["error_code"], "INBOUND_NO_INCOMING_CALL", "{result}");
    assert_eq!((&result["error_owner"], &result["outcome"]), (&json!("agent_owner"), &json!("failed")));
    assert_eq!(result["error_message"], "The agent did not call within 1 s");

    let (run, ids) = house.queue(caller(), json!({}), &[json!({}), json!({})]).await;
    let (target, _) = (address(&house, &ids[0]).await, address(&house, &ids[1]).await);
    let hung_up = house.post(&format!("/v1/simulation-result/{}/hangup", ids[0]), Value::Null).await;
    assert_eq!(hung_up["status"], "CANCELLED");
    let agent = Stage::new().await;
    assert_eq!(answer_status(&agent, &target).await, 404);
    let cancelled = house.post(&format!("/v1/simulation-run/{run}/cancel"), Value::Null).await;
    assert_eq!(cancelled["cancelled"], 1, "{cancelled}");
    assert_eq!(house.result(&ids[1]).await["status"], "CANCELLED");
    house.stop().await;
}

/// The engine is stopped while a result is READY, and listens again for it afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn a_leg_outlives_a_restart() {
    let (house, agent) = (House::new().await, Stage::new().await);
    let (_, ids) = house.queue(caller(), json!({}), &[json!({ "phone_number": "+15550001111" })]).await;
    address(&house, &ids[0]).await;
    let house = House::open(house.close().await, 20, &[]).await;
    assert_eq!(house.result(&ids[0]).await["status"], "READY");
    assert_eq!(answer_status(&agent, &number(&house, "+15550001111")).await, 200);
    let walk = ["INITIALIZING", "QUEUED", "READY", "DISPATCHED", "RUNNING"];
    assert_eq!(&statuses(&house.events(&ids[0]).await)[..5], walk);
    house.stop().await;
}

/// The agent's owner is asked for the call and lets it be made; the words of who speaks first are as for a call that is
/// placed.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_is_asked_calls() {
    let (house, agent, owner) = (House::new().await, Stage::new().await, Receiver::new(&[503]).await);
    let asked = with(caller(), json!({ "outbound_trigger_webhook_url": owner.url("/go") }));
    let silent = json!({ "speaks_first_config": { "speaks_first": false } });
    let (_, ids) = house.queue(asked, json!({}), &[silent]).await;
    // Down at first, and asked again a second later.
    let request = owner.wait_for(2).await;
    let body = request.json();
    assert_eq!((&body["sim_conversation_id"], &body["phone_number"]), (&json!(ids[0]), &json!("")));
    assert_eq!(request.headers["x-svc-idempotency-key"], ids[0].as_str());
    assert_eq!(answer_status(&agent, body["sip_uri"].as_str().expect("an address")).await, 200);
    house.events(&ids[0]).await;
    let transcript = house.call("GET", &format!("/v1/simulation-result/{}/transcript", ids[0]), Value::Null).await;
    let entries = transcript["entries"].as_array().expect("entries");
    assert!(entries.iter().all(|entry| entry["speaker"] != "USER"), "it only listens: {transcript}");
    house.stop().await;
}

/// Two calls at once to one who can always be called: each is a result of its own, held and evaluated.
#[tokio::test(flavor = "multi_thread")]
async fn an_always_on_digital_human_takes_every_call() {
    let (house, agent) = (House::new().await, Stage::new().await);
    let body = with(json!({ "name": "Caller" }), caller());
    let agent_id = house.post("/v1/add-agent", body).await["agent_id"].to_string();
    let body = json!({ "agent_id": agent_id, "always_on": true, "max_concurrent": 2, "max_call_duration": 2,
        "max_call_duration_units": "seconds" });
    let simulation = house.post("/v1/create-simulation", body).await["simulation_id"].clone();
    let human = json!({ "intent": "Wait.", "always_on_mode": true, "phone_number": "+15550001111" });
    let body = json!({ "digital_human": human, "simulation_ids": [simulation] });
    let human = house.post("/v1/create-digital-human", body).await["digital_human"]["id"].clone();
    let target = number(&house, "+15550001111");
    let connect = async || {
        let mut handle = agent.engine.place(agent.placement(&target, "Good day.")).await.expect("it was placed");
        loop {
            match handle.news.recv().await {
                Some(CallUpdate::Connected(_)) => return handle,
                Some(CallUpdate::Ended(report)) => panic!("{:?}", report.ending),
                Some(_) => {}
                None => panic!("the call was lost"),
            }
        }
    };
    let calls = [connect().await, connect().await];
    assert_eq!(answer_status(&agent, &target).await, 486, "a third at once");
    for mut call in calls {
        while call.news.recv().await.is_some() {}
    }
    let runs = house.call("GET", &format!("/v1/get-simulation-runs/{simulation}"), Value::Null).await;
    let runs = runs["simulation_runs"].as_array().expect("runs").clone();
    assert_eq!(runs.len(), 1, "{runs:?}");
    let run = runs[0]["id"].to_string();
    let read = house.call("GET", &format!("/v1/retrieve-simulation-results/{run}"), Value::Null).await;
    let ids: Vec<String> =
        read["simulation_results"].as_array().expect("results").iter().map(|result| result["id"].to_string()).collect();
    assert_eq!(ids.len(), 2);
    for id in &ids {
        house.events(id).await;
        let result = house.result(id).await;
        assert_eq!((&result["status"], &result["digital_human_id"]), (&json!("COMPLETED"), &human), "{result}");
        assert_eq!(result["evaluations"].as_array().map(Vec::len), Some(1));
    }
    let off = json!({ "always_on_active": false });
    house.call("PUT", &format!("/v1/update-digital-human/{human}"), off).await;
    assert_eq!(answer_status(&agent, &target).await, 404, "at once");
    house.stop().await;
}

/// The Digital Human calls, is called, and then lets it ring.
#[tokio::test(flavor = "multi_thread")]
async fn a_journey_of_calls_goes_both_ways() {
    let (house, agent, peer) = (House::new().await, Stage::new().await, Peer::answering(1));
    let steps = json!([
        { "step": 1, "intent": "Ask." },
        { "step": 2, "intent": "Hear.", "direction": "outbound" },
        { "step": 3, "intent": "Hide.", "direction": "outbound", "unresponsive": true, "response_window_seconds": 4 },
    ]);
    let sip = json!({ "sip_uri": format!("sip:bob@{}", peer.sip) });
    let (run, ids) = house.queue(sip, json!({}), &[json!({ "journey_steps": steps, "gender": null })]).await;
    let read = house.call("GET", &format!("/v1/retrieve-simulation-results/{run}"), Value::Null).await;
    assert_eq!(read["simulation_results"][2]["queue_reason"], "journey_step");
    assert!(read["simulation_run"]["queue_reasons"]["journey_step"].as_i64().is_some_and(|count| count >= 1), "{read}");
    house.events(&ids[0]).await;
    assert_eq!(answer_status(&agent, &address(&house, &ids[1]).await).await, 200);
    house.events(&ids[1]).await;
    let hidden = address(&house, &ids[2]).await;
    let mut placement = agent.placement(&hidden, "Hello?");
    placement.spec.limits.ringing_ms = 1500;
    let report = agent.call(placement).await.expect("it was placed");
    assert_eq!(report.ending.reason, EndReason::NoAnswer, "it only rings");
    assert!(names(&report).contains(&"call.ringing"), "{:?}", names(&report));
    let events = house.events(&ids[2]).await;
    let result = house.result(&ids[2]).await;
    let ended = (&result["status"], &result["outcome"]);
    assert_eq!(ended, (&json!("COMPLETED"), &json!("not_evaluated")), "{events:?} {result}");
    let evaluation = &result["evaluations"][0];
    assert_eq!(evaluation["goal_success"], Value::Null);
    assert_eq!(evaluation["not_evaluated_reason"], "No language model is configured");
    assert_eq!(result["metrics"], json!([]), "nothing was said, and nothing measured");
    assert_eq!(result["metadata"]["unanswered_calls"].as_array().map(Vec::len), Some(1));
    let voices = [house.result(&ids[0]).await, house.result(&ids[1]).await].map(|one| one["metadata"]["voice"].clone());
    assert_eq!(voices[0], voices[1], "one caller in all steps");
    let run = house.call("GET", &format!("/v1/retrieve-simulation-results/{run}"), Value::Null).await;
    assert_eq!(run["simulation_run"]["status"], "COMPLETED");
    peer.end();
    house.stop().await;
}
