//! Saved URLs never lead to hosts that may not be requested, whatever their name.

use std::net::IpAddr;

use ringer::error::{Error, Result};
use ringer::model::id::IdString;
use ringer::provider::guard::Guard;
use ringer::service::{Caller, NoiseSource, Service};
use serde_json::{Value, json};

use super::{Fixture, map, spec};

const INSIDE: &str = "http://inside.example/a.wav";
const OUTSIDE: &str = "http://outside.example/a.wav";
/// Has no address, and may have one later.
const NOWHERE: &str = "http://nowhere.example/a.wav";

fn guard() -> Guard {
    let inside: IpAddr = "10.0.0.1".parse().expect("an address");
    let outside: IpAddr = "203.0.113.5".parse().expect("an address");
    Guard::by(move |address| address != inside).with_names(move |name| {
        let found = match name.as_str() {
            "inside.example" => vec![outside, inside],
            "outside.example" => vec![outside],
            _ => Vec::new(),
        };
        Box::pin(async move { Ok(found) })
    })
}

/// Checks that a URL is refused if it is not allowed, and accepted if it is.
fn check<T>(what: &str, url: &str, field: &str, done: Result<T>) {
    let refused = (url == INSIDE).then(|| Error::Refused(format!("{field} points to a host that is not allowed")));
    assert_eq!(done.err(), refused, "{what} with {url}");
}

/// Checks that a bundle with a URL is refused if it is not allowed, and accepted if it is.
async fn check_bundle(service: &Service, caller: &Caller, url: &str) {
    let code = |n: u8| format!("f3d2a87c-1e4b-4b9a-9c2d-7f1e6b5a4c{n:02}");
    let bundle = spec(json!({
        "agents": [{ "svc_as_code_id": code(1), "name": "Desk", "http_webhook": url }],
        "simulations": [{ "svc_as_code_id": code(2), "name": "Booking", "agent": code(1) }],
        "digital_humans": [{ "svc_as_code_id": code(3), "name": "Ann", "intent": "Book.", "simulations": [code(2)],
            "background_noise": "custom", "custom_background_noise_url": url }],
        "custom_metrics": [],
    }));
    let pushed = service.bundles().push(caller, bundle).await.expect("answered");
    let problems: Vec<String> = pushed.errors.iter().flat_map(|error| error.errors.clone()).collect();
    let expect = ["http_webhook", "custom_background_noise_url"]
        .map(|field| format!("{field}: {field} points to a host that is not allowed"));
    assert_eq!(problems, if url == INSIDE { expect.to_vec() } else { Vec::new() }, "{url}");
}

#[tokio::test]
async fn a_name_that_leads_inside_is_not_saved() {
    let f = Fixture::new().await;
    let (agent, _, humans) = f.booth(json!({}), 1).await;
    let service = f.service.clone().with_guard(guard());
    let caller = &f.caller;
    let rule = |channels: Value| {
        spec(json!({
            "name": "Slow", "entity_type": "standard_metric", "entity_field": "avg_agent_latency",
            "operator": "greater_than", "comparison_value": "2", "notification_channels": channels,
        }))
    };
    let monitor = |channels: Value| {
        spec(json!({
            "agent_id": agent, "checks": [{ "checkType": "agent_responds" }], "notifications": { "channels": channels },
        }))
    };
    let alert = service.watching().create_alert(caller, rule(json!([]))).await.expect("made").id;
    let watch = service.watching().create_monitor(caller, monitor(json!([]))).await.expect("made").id;
    for url in [INSIDE, OUTSIDE, NOWHERE] {
        let noise = json!({ "background_noise": "custom", "custom_background_noise_url": url });
        let human = |fields: &Value| service.humans().create_digital_human(caller, spec(fields.clone()), &[]);
        check("a noise", url, "custom_background_noise_url", human(&noise).await);
        let done = service.humans().update_digital_human(caller, humans[0], map(noise.clone()), None, false).await;
        check("a changed noise", url, "custom_background_noise_url", done);
        let made =
            service.humans().create_digital_humans(caller, vec![spec(noise.clone())], &[]).await.expect("answered");
        assert_eq!(made.errors.len(), usize::from(url == INSIDE));
        let scripted = json!({ "scripted_responses": [{
            "match_type": "exact", "match_phrase": "Hi", "response_type": "audio", "occurrence_mode": "always",
            "scripted_response_audio_snippet_url": url,
        }] });
        check("audio", url, "scripted_responses[0].scripted_response_audio_snippet_url", human(&scripted).await);
        for (field, url) in [("recording_url", url.to_owned()), ("transcript_url", url.replace(".wav", ".json"))] {
            let request = spec(json!({
                "agent_id": agent.to_string(), "start_time_utc": "2026-01-05T08:00:00Z",
                "participants": [{ "role": "AGENT" }, { "role": "USER" }], field: url,
            }));
            let asked = if url.starts_with("http://inside") { INSIDE } else { OUTSIDE };
            check("a call", asked, field, service.evaluations().evaluate_call(caller, request).await);
        }
        let channels = json!([{ "type": "webhook", "target": url }, { "type": "email", "target": "a@example.com" }]);
        check("an alert", url, "target", service.watching().create_alert(caller, rule(channels.clone())).await);
        let change = spec(json!({ "notification_channels": channels.clone() }));
        check("a changed alert", url, "target", service.watching().update_alert(caller, alert, &change).await);
        check("a monitor", url, "target", service.watching().create_monitor(caller, monitor(channels.clone())).await);
        let change = spec(json!({ "notifications": { "channels": channels } }));
        check("a changed monitor", url, "target", service.watching().update_monitor(caller, watch, &change).await);
        let notified = json!({ "webhook_url": url });
        for (field, value) in [
            ("P8_base_url", json!(url)),
            ("P12_base_url", json!(url)),
            ("simulation_notifications.webhook_url", json!({ "simulation_notifications": notified })),
        ] {
            let fields = if value.is_object() { value } else { json!({ field: value }) };
            let mut named = fields.clone();
            named["name"] = "Desk".into();
            check("an agent", url, field, service.library().add_agent(caller, spec(named)).await);
            let id = IdString::from(agent);
            check("a changed agent", url, field, service.library().update_agent(caller, Some(&id), map(fields)).await);
        }
        let done = service.library().update_integrations(caller, map(json!({ "P2_base_url": url }))).await;
        check("credentials", url, "P2_base_url", done);
        check_bundle(&service, caller, url).await;
    }
    let sound = NoiseSource::Existing(INSIDE.to_owned());
    let done = service.library().create_background_noise(caller, "n".to_owned(), sound).await;
    check("a sound", INSIDE, "storage_path", done);
}

#[tokio::test]
async fn what_is_not_there_is_told_before_a_host() {
    let f = Fixture::new().await;
    let (_, _, humans) = f.booth(json!({}), 1).await;
    let service = f.service.clone().with_guard(guard());
    let (caller, stranger) = (&f.caller, f.stranger().await);
    let hook = || map(json!({ "http_webhook": INSIDE }));
    let agent = Some(Error::NotFound("Agent"));
    assert_eq!(service.library().update_agent(caller, Some(&IdString::from(99)), hook()).await.err(), agent);
    assert_eq!(service.library().update_agent_by_external_id(caller, "nobody", hook()).await.err(), agent);
    let noise = json!({ "custom_background_noise_url": INSIDE });
    let simulation = Some(Error::NotFound("Simulation"));
    assert_eq!(service.humans().create_digital_human(caller, spec(noise.clone()), &[99]).await.err(), simulation);
    let change = |caller, id, simulations| {
        service.humans().update_digital_human(caller, id, map(noise.clone()), simulations, false)
    };
    assert_eq!(change(caller, humans[0], Some(&[99][..])).await.err(), simulation);
    assert_eq!(change(caller, 99, None).await.err(), Some(Error::NotFound("Digital human")));
    let foreign = change(&stranger, humans[0], None).await;
    assert!(matches!(foreign, Err(Error::Forbidden(_))), "{foreign:?}");
}
