//! Agents on platforms that are called at a SIP address, or call by telephone when their platform is asked to, through
//! the API: calls, reports on them, and the codes of what goes wrong.

use std::time::Duration;

use serde_json::{Value, json};

use super::house::House;
use super::runs::statuses;
use super::stage::Stage;
use crate::api::receiver::Receiver;
use crate::json::with;
use crate::peers::Peer;

/// Returns an engine with these settings, whose requests are sent once, and which knows the platform's key.
async fn house(settings: &str) -> House {
    let house = House::with_trunks(&format!("[websocket]\nretries = 0\n{settings}")).await;
    house.call("PATCH", "/v1/integrations", json!({ "P4_api_key": "sesame-4" })).await;
    house
}

/// Returns the result of one call to an agent.
async fn run(house: &House, human: Value) -> (String, Value) {
    let (_, ids) = house.queue(json!({ "P4_agent_id": "desk" }), json!({}), &[human]).await;
    house.events(&ids[0]).await;
    (ids[0].clone(), house.result(&ids[0]).await)
}

fn check_refused(result: &Value, code: &str, why: &str) {
    assert_eq!((&result["status"], &result["error_code"]), (&json!("NO_CONNECTION"), &json!(code)), "{result}");
    assert!(result["error_message"].as_str().is_some_and(|text| text.contains(why)), "{result}");
    assert!(!result.to_string().contains("sesame"), "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_called_at_the_sip_address_of_its_adapter() {
    let peer = Peer::answering(1);
    let adapter = format!(
        "[adapters.P4]\ntransport = 'sip'\nurl = 'sip:{{{{agent.id}}}}@{}'\n[adapters.P4.headers]\n\
         X-Tenant = 't-{{{{agent.id}}}}'\nX-Api-Key = 'k {{{{integration.key}}}}'",
        peer.sip
    );
    let house = house(&adapter).await;
    let (id, result) = run(&house, json!({})).await;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    let metadata = &result["metadata"];
    assert_eq!(
        (&metadata["platform"], &metadata["target"]),
        (&json!("P4"), &json!(peer.sip.to_string())),
        "{metadata}"
    );
    let log = house.folder.path().join("results").join(&id).join("sip.log");
    let log = std::fs::read_to_string(log).expect("it was written");
    assert!(log.contains("INVITE sip:desk@") && log.contains("X-Tenant: t-desk"), "{log}");
    assert!(log.contains(&format!("X-Simulation-Result-Id: {id}")), "{log}");
    assert!(log.contains("X-Api-Key: k (masked)") && !log.contains("sesame"), "{log}");
    peer.end();
    house.stop().await;
}

/// The user of a SIP address may be a credential: it is dialled, and written nowhere.
#[tokio::test(flavor = "multi_thread")]
async fn the_user_of_a_sip_address_may_be_secret() {
    for (user, secret) in [("{{integration.key}}", "sesame-4"), ("", "capability-7")] {
        let peer = Peer::answering(1);
        let sip = format!("sip:{user}@{}", peer.sip).replace("sip:@", &format!("sip:{secret}@"));
        let sessions = Receiver::answering(vec![(200, json!({ "sip": sip, "id": "c1" }).to_string())]).await;
        let adapter = match user {
            "" => by_session(&sessions.url("/s"), ""),
            _ => format!("[adapters.P4]\ntransport = 'sip'\nurl = '{sip}'"),
        };
        let house = house(&adapter).await;
        let (id, result) = run(&house, json!({})).await;
        assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
        let folder = house.folder.path().join("results").join(&id);
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).expect("it was written");
        let (timeline, log) = (read("timeline.jsonl"), read("sip.log"));
        let called = format!("sip:(masked)@{}", peer.sip);
        assert!(timeline.contains(&called) && log.contains(&format!("INVITE {called}")), "{timeline} {log}");
        let told = house.call("GET", &format!("/v1/simulation-result/{id}/timeline"), Value::Null).await;
        for text in [timeline, log, told.to_string(), result.to_string()] {
            assert!(!text.contains(secret), "{text}");
        }
        peer.end();
        house.stop().await;
    }
}

/// An agent that answers and says nothing has not begun: called at an address, and called by its platform.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_does_not_begin_has_a_code_of_its_own() {
    let check = |result: &Value| {
        let ended = (&result["status"], &result["error_code"], &result["error_owner"]);
        let expect = (&json!("CALL_DROPPED"), &json!("P4_AGENT_START_FAILED"), &json!("agent_owner"));
        assert_eq!(ended, expect, "{result}");
    };
    let start = async |settings: &str| {
        let house = House::with_engine(settings, |engine| engine.start_within = Duration::from_secs(1)).await;
        house.call("PATCH", "/v1/integrations", json!({ "P4_api_key": "sesame-4" })).await;
        house
    };
    let peer = Peer::answering(1);
    let house = start(&format!("[adapters.P4]\ntransport = 'sip'\nurl = 'sip:desk@{}'", peer.sip)).await;
    let lasts = json!({ "max_call_duration": 20 });
    let (_, ids) = house.queue(json!({ "P4_agent_id": "desk" }), lasts.clone(), &[json!({})]).await;
    house.events(&ids[0]).await;
    check(&house.result(&ids[0]).await);
    peer.end();
    house.stop().await;

    let agent = Stage::new().await;
    let platform = Receiver::answering(vec![(201, json!({ "id": "c9" }).to_string())]).await;
    let house = start(&adapter_that_places(&platform.url("/calls"))).await;
    let (_, ids) = house.queue(caller(), lasts, &[json!({})]).await;
    let body = platform.wait_for(1).await.json();
    let mut placement = agent.placement(body["sip"].as_str().expect("an address"), "");
    placement.voice = None;
    let report = agent.call(placement).await.expect("it was placed");
    assert!(report.ending.connected, "{:?}", report.ending);
    house.events(&ids[0]).await;
    check(&house.result(&ids[0]).await);
    house.stop().await;
}

/// Returns an adapter whose session names a SIP address, with more settings behind it.
fn by_session(session: &str, more: &str) -> String {
    format!(
        "[adapters.P4]\ntransport = 'sip'\nsession_url = '{session}'\nauth = 'bearer'\nurl_pointer = '/sip'\n\
         id_pointer = '/id'\n{more}"
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_sip_addresses_that_a_session_names() {
    let trunk = "[sip.trunks.near]\nhost = '127.0.0.9'\nnumbers = ['+15550001111']";
    for (sip, code, why) in [
        ("https://h/", "P4_SESSION_SETUP_FAILED", "is no SIP address"),
        ("sip:desk@169.254.169.254", "P4_BRIDGE_CONNECT_FAILED", "not allowed"),
        ("sip:desk@nobody.invalid", "P4_BRIDGE_CONNECT_FAILED", "cannot be resolved"),
        ("sip:+15550009999@127.0.0.9", "P4_SESSION_SETUP_FAILED", "a number at a trunk of this engine"),
    ] {
        let sessions = Receiver::answering(vec![(200, json!({ "sip": sip, "id": "c1" }).to_string())]).await;
        let house = house(&by_session(&sessions.url("/s"), trunk)).await;
        check_refused(&run(&house, json!({})).await.1, code, why);
        house.stop().await;
    }
}

/// A number of a trunk is admitted before its call begins, so an address that a session completes is none.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_completes_no_number_of_a_trunk() {
    for user in ["{{agent.P4_agent_id}}", "{{session.id}}"] {
        let sessions = Receiver::answering(vec![(200, json!({ "id": "+19005550100" }).to_string())]).await;
        let house = house(&format!(
            "[adapters.P4]\ntransport = 'sip'\nsession_url = '{}'\nid_pointer = '/id'\nurl = 'sip:{user}@127.0.0.9'\n\
             [sip.trunks.near]\nhost = '127.0.0.9'\nnumbers = ['+15550001111']\nallowed_prefixes = ['+1555']",
            sessions.url("/s")
        ))
        .await;
        let (_, ids) = house.queue(json!({ "P4_agent_id": "+19005550100" }), json!({}), &[json!({})]).await;
        house.events(&ids[0]).await;
        let why = "a number at a trunk of this engine";
        check_refused(&house.result(&ids[0]).await, "P4_SESSION_SETUP_FAILED", why);
        assert_eq!(sessions.requests().len(), 1);
        house.stop().await;
    }
}

/// The platform is asked twice in vain, then it has a report: its tools are judged, its words and price are kept.
#[tokio::test(flavor = "multi_thread")]
async fn a_platform_is_asked_after_a_call() {
    let peer = Peer::answering(1);
    let sip = format!("sip:bob@{}", peer.sip);
    let sessions = Receiver::answering(vec![(200, json!({ "sip": sip, "id": "c 1" }).to_string())]).await;
    let report = json!({
        "id": "c 1", "status": "ended", "price": { "usd": 0.25 },
        "tools": [{ "name": "weather", "args": "{\"city\":\"Oslo\"}", "out": "sunny" }],
        "messages": [{ "role": "bot", "text": "Good morning." }, { "role": "user", "text": "Hello." },
            { "role": "system", "text": "Be kind." }],
    });
    let answers = vec![
        (404, String::new()),
        (200, json!({ "id": "c 1", "status": "in-progress", "tools": [], "messages": [] }).to_string()),
        (200, report.to_string()),
    ];
    let reports = Receiver::answering(answers).await;
    let after = format!(
        "[adapters.P4.after]\nurl = '{}/{{{{call.id}}}}'\nid = '/id'\nready = '/status=ended'\ncost = '/price'\n\
         [adapters.P4.after.tool]\nlist = '/tools'\nname = '/name'\narguments = '/args'\nresult = '/out'\n\
         [adapters.P4.after.text]\nlist = '/messages/*'\nrole = '/role'\ntext = '/text'",
        reports.url("/calls")
    );
    let house = house(&by_session(&sessions.url("/s"), &after)).await;
    let expected = json!({ "expected_tool_calls": [{ "name": "weather", "parameters": { "city": "Oslo" } }] });
    let (id, result) = run(&house, expected).await;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    let metadata = &result["metadata"];
    assert_eq!((&metadata["platform_cost"], &metadata["platform_call_id"]), (&json!({ "usd": 0.25 }), &json!("c 1")));
    let call = &result["tool_calls"][0];
    assert_eq!((&call["name"], &call["actual"][0]["output"]), (&json!("weather"), &json!("sunny")), "{call}");
    let metrics = result["metrics"].as_array().expect("metrics");
    let met = metrics.iter().find(|metric| metric["name"] == "expected_tool_calls_met");
    assert_eq!(met.map(|metric| &metric["value"]), Some(&json!(true)), "it is judged with the report: {metrics:?}");
    let timeline = house.call("GET", &format!("/v1/simulation-result/{id}/timeline"), Value::Null).await;
    let events = timeline["events"].as_array().expect("events");
    let reported: Vec<&Value> = events.iter().filter(|event| event["event"] == "agent_reported").collect();
    assert_eq!((reported.len(), &reported[0]["data"]["text"]), (1, &json!("Good morning.")), "{reported:?}");
    assert_eq!(events.last().map(|event| &event["event"]), Some(&json!("call.ended")));
    let seqs: Vec<i64> = events.iter().filter_map(|event| event["seq"].as_i64()).collect();
    let mut sorted = seqs.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert_eq!(sorted.len(), seqs.len(), "each event has a number of its own");
    let asked = reports.requests();
    assert_eq!((asked.len(), asked[0].path.as_str()), (3, "/calls/c%201"));
    assert_eq!(asked[0].headers["authorization"], "Bearer sesame-4");
    peer.end();
    house.stop().await;
}

/// A report that is refused is told by a warning, and is no fault of the agent.
#[tokio::test(flavor = "multi_thread")]
async fn a_report_that_is_refused_is_a_warning() {
    let peer = Peer::answering(1);
    let sip = format!("sip:bob@{}", peer.sip);
    let sessions = Receiver::answering(vec![(200, json!({ "sip": sip, "id": "c1" }).to_string())]).await;
    let reports = Receiver::new(&[401]).await;
    let after = format!(
        "[adapters.P4.after]\nurl = '{}/{{{{session.id}}}}'\ncost = '/price'\n\
         [adapters.P4.after.tool]\nlist = '/tools'\nname = '/name'",
        reports.url("/calls")
    );
    let house = house(&by_session(&sessions.url("/s"), &after)).await;
    let (_, result) = run(&house, json!({ "expected_tool_calls": [{ "name": "weather" }] })).await;
    assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
    let verdict = &result["verdict"];
    assert_eq!((&verdict["word"], &verdict["code"]), (&json!("unknown"), &json!("tool_calls")), "{result}");
    let mut faults = result["own_faults"].as_array().into_iter().flatten();
    assert!(faults.any(|fault| fault["code"] == "report_missing"), "{result}");
    let metrics = result["metrics"].to_string();
    assert!(!metrics.contains("expected_tool_calls_met"), "{metrics}");
    let warnings = result["metadata"]["warnings"].to_string();
    assert!(warnings.contains("after: after.url answered 401: the credentials are refused"), "{warnings}");
    assert_eq!(reports.requests().len(), 1);
    peer.end();
    house.stop().await;
}

/// Returns an adapter that asks for calls at this address.
fn adapter_that_places(url: &str) -> String {
    format!(
        "[adapters.P4]\ntransport = 'sip'\nauth = 'bearer'\n[adapters.P4.place]\nurl = '{url}'\nid_pointer = '/id'\n\
         [adapters.P4.place.body]\nassistant = '{{{{agent.id}}}}'\nnumber = '{{{{digital_human.phone_number}}}}'\n\
         sip = '{{{{digital_human.sip_uri}}}}'"
    )
}

fn caller() -> Value {
    json!({ "P4_agent_id": "desk", "type": "OUTBOUND", "enable_outbound_call_auto_start": true })
}

/// The platform is busy once and asked again; then its agent calls where the Digital Human listens.
#[tokio::test(flavor = "multi_thread")]
async fn a_platform_is_asked_to_place_the_call() {
    let agent = Stage::new().await;
    let platform = Receiver::answering(vec![(429, String::new()), (201, json!({ "id": "c9" }).to_string())]).await;
    let house = house(&adapter_that_places(&platform.url("/calls"))).await;
    let human = json!({ "phone_number": "+15550001111" });
    let (_, ids) = house.queue(caller(), json!({}), &[human]).await;
    let request = platform.wait_for(2).await;
    let body = request.json();
    assert_eq!((&body["assistant"], &body["number"]), (&json!("desk"), &json!("+15550001111")), "{body}");
    assert_eq!(request.headers["authorization"], "Bearer sesame-4");
    let placement = agent.placement(body["sip"].as_str().expect("an address"), "Your table is ready.");
    let report = agent.call(placement).await.expect("it was placed");
    assert!(report.ending.connected, "{:?}", report.ending);
    let events = house.events(&ids[0]).await;
    let walk =
        ["INITIALIZING", "QUEUED", "READY", "DISPATCHED", "RUNNING", "CONVERSATION_ENDED", "EVALUATING", "COMPLETED"];
    assert_eq!(statuses(&events), walk);
    let result = house.result(&ids[0]).await;
    let metadata = &result["metadata"];
    assert_eq!((&metadata["platform_call_id"], &result["error_code"]), (&json!("c9"), &Value::Null), "{result}");
    assert!(metadata["sip_call_id"].is_string() && metadata.get("warnings").is_none_or(|all| all == &json!([])));
    assert_eq!(platform.requests().len(), 2);
    house.stop().await;
}

/// A refusal ends the wait at once, with the platform's code.
#[tokio::test(flavor = "multi_thread")]
async fn what_becomes_of_calls_that_a_platform_does_not_place() {
    for (statuses, code, why) in [
        (&[401][..], "P4_AUTH_FAILED", "place.url answered 401: the credentials are refused"),
        (&[500], "P4_SESSION_SETUP_FAILED", "place.url answered 500"),
        (&[503, 503, 503], "CUSTOMER_CONCURRENCY_LIMIT", "place.url answered 503"),
        (&[429, 429, 429], "CUSTOMER_CONCURRENCY_LIMIT", "place.url answered 429"),
    ] {
        let platform = Receiver::new(statuses).await;
        let house = house(&adapter_that_places(&platform.url("/calls"))).await;
        let (_, ids) = house.queue(caller(), json!({ "ringing_timeout": 200 }), &[json!({})]).await;
        house.events(&ids[0]).await;
        check_refused(&house.result(&ids[0]).await, code, why);
        assert_eq!(platform.requests().len(), statuses.len());
        house.stop().await;
    }
    let house = house("[adapters.P4]\npreset = 'openai_realtime'").await;
    let (_, ids) = house.queue(caller(), json!({}), &[json!({})]).await;
    house.events(&ids[0]).await;
    check_refused(&house.result(&ids[0]).await, "P4_ADAPTER_NOT_CONFIGURED", "[adapters.P4] has no place");
    let only = with(caller(), json!({ "type": "INBOUND" }));
    house.stop().await;
    let house = self::house(&adapter_that_places("http://127.0.0.1:9/")).await;
    let (_, ids) = house.queue(only, json!({}), &[json!({})]).await;
    house.events(&ids[0]).await;
    check_refused(&house.result(&ids[0]).await, "P4_ADAPTER_NOT_CONFIGURED", "it only asks the platform for calls");
    house.stop().await;
}
