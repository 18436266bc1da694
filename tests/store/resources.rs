//! Agents, folders, simulations, Digital Humans and keys: what is written is read, rules hold, organizations are apart.

use ringer::error::Error;
use ringer::model::api_key::{CreateKeyIn, Scope};
use ringer::model::folder::{FolderSpec, MoveAgent};
use ringer::model::id::IdString;
use ringer::model::webhook::WebhookSpec;
use serde_json::{Value, json};

use super::{Fixture, map, reader, refusal, spec};

#[tokio::test]
async fn an_agent_is_read_as_it_was_written() {
    let f = Fixture::new().await;
    let body = json!({
        "name": "Desk", "system_prompt": "You book visits.", "goals": ["book"], "external_agent_id": "x-1",
        "svc_as_code_id": "f3d2a87c-1e4b-4b9a-9c2d-7f1e6b5a4c33", "sip_uri": "sip:a@b.example", "sip_password": "p",
        "custom_sip_headers": {"Tenant": "42"}, "folder": "Front", "labels": ["beta", "latest"],
        "http_webhook": "https://example.com/hook", "P12_model": "m", "phone_number": "+1 (555) 000-1111",
    });
    let added = f.service.library().add_agent(&f.caller, spec(body)).await.expect("an agent");
    let key = added.http_webhook_key.expect("a signing key");
    assert_eq!(key.len(), 64);
    let read = f.service.library().agent(&f.caller, added.agent_id).await.expect("the agent");
    let shown = serde_json::to_value(&read).expect("serializes");
    for (field, expect) in [
        ("name", json!("Desk")),
        ("agent_description", json!("You book visits.")),
        ("goals", json!(["book"])),
        ("connection_type", json!("SIP")),
        ("provider", json!("CUSTOM")),
        ("type", json!("INBOUND")),
        ("mode", json!("VOICE")),
        ("sip_password", json!("p")),
        ("custom_sip_headers", json!({"Tenant": "42"})),
        ("phone_number", json!("+15550001111")),
        ("http_webhook_key", json!(key)),
        ("P12_model", json!("m")),
        ("P1_metadata", Value::Null),
        ("P9_persona_id", Value::Null),
        ("knowledge_base", json!("")),
        ("simulation_notifications", json!({})),
        ("created_at", json!("2026-01-05T09:00:00.000000Z")),
    ] {
        assert_eq!(shown.get(field), Some(&expect), "{field}");
    }
    for hidden in ["system_prompt", "labels", "folder"] {
        assert_eq!(shown.get(hidden), None, "{hidden}");
    }
    let folders = f.service.library().all_folders(&f.caller).await.expect("folders");
    assert_eq!(folders.iter().map(|folder| folder.name.as_str()).collect::<Vec<_>>(), ["Front"]);
    assert_eq!(read.folder_id, Some(folders[0].id));
    let weak = f.service.library().agent(&reader(&f.caller), added.agent_id).await.expect("the agent");
    assert_eq!((weak.spec.sip_password, weak.http_webhook_key), (None, None));
    let by_external = f.service.library().agent_by_external_id(&f.caller, "x-1").await.expect("the agent");
    assert_eq!(by_external.id, added.agent_id);
}

#[tokio::test]
async fn rules_on_agents_are_told_in_their_words() {
    let f = Fixture::new().await;
    let code = "f3d2a87c-1e4b-4b9a-9c2d-7f1e6b5a4c33";
    f.agent(json!({"name": "first", "svc_as_code_id": code, "external_agent_id": "x"})).await;
    for (body, expect) in [
        (json!({"svc_as_code_id": code}), "svc_as_code_id is already used"),
        (json!({"external_agent_id": "x"}), "external_agent_id is already used"),
        (json!({"phone_number": "555"}), "phone_number must be in E.164 format"),
        (
            json!({"follow_up_sms_sender_numbers": ["+15550001111", "1"]}),
            "follow_up_sms_sender_numbers must be in E.164 format",
        ),
        (json!({"websocket_url": "ftp://h"}), "websocket_url must be a ws, wss, http or https URL"),
        (json!({"sip_uri": "sip:host"}), "sip_uri must be of the form sip:<user>@<host>"),
        (
            json!({"sip_uri": "sip:a@b", "dynamic_sip_webhook_url": "https://h/x"}),
            "Set either sip_uri or dynamic_sip_webhook_url, not both",
        ),
        (json!({"outbound_trigger_webhook_url": "https://h/x"}), "outbound_trigger_webhook_url needs type OUTBOUND"),
        (json!({"outbound_trigger_webhook_url": "https://h/x", "type": "OUTBOUND"}), ""),
        (json!({"http_webhook": "h"}), "http_webhook must be a valid http or https URL"),
        (json!({"http_webhook": "http://169.254.169.254/"}), "http_webhook points to a host that is not allowed"),
        (json!({"P8_base_url": "http://169.254.169.254/"}), "P8_base_url points to a host that is not allowed"),
        (json!({"P12_base_url": "http://169.254.169.254/"}), "P12_base_url points to a host that is not allowed"),
        (
            json!({"simulation_notifications": {"webhook_url": "http://169.254.169.254/"}}),
            "simulation_notifications.webhook_url points to a host that is not allowed",
        ),
        (json!({"simulation_notifications": {"webhook_url": "", "emails": ["a@b.example"], "more": 1}}), ""),
    ] {
        let mut full = map(body.clone());
        full.insert("name".into(), json!("agent"));
        assert_eq!(refusal(f.service.library().add_agent(&f.caller, spec(full.into())).await), expect, "{body}");
    }
}

#[tokio::test]
async fn a_changed_prompt_is_a_new_version_and_production_stays() {
    let f = Fixture::new().await;
    let id = f.agent(json!({"name": "Desk", "system_prompt": "one", "external_agent_id": "x"})).await;
    let as_text = IdString::from(id);
    let update = |patch: Value| f.service.library().update_agent(&f.caller, Some(&as_text), map(patch));
    let answer =
        update(json!({"system_prompt": "two", "goals": ["g"], "nothing": 1, "http_webhook": "https://h/"})).await;
    let answer = answer.expect("updated");
    let agent =
        json!({"agent_id": id.to_string(), "system_prompt": "two", "goals": ["g"], "http_webhook": "https://h/"});
    assert_eq!(serde_json::to_value(&answer.agent).expect("serializes"), agent);
    assert!(answer.http_webhook_key.is_some());
    assert_eq!(update(json!({"http_webhook": "https://i/"})).await.expect("updated").http_webhook_key, None);
    let read = f.service.library().agent(&f.caller, id).await.expect("the agent");
    assert_eq!((read.agent_description.as_str(), read.spec.goals), ("one", vec!["g".to_owned()]));
    let by_external =
        f.service.library().update_agent(&f.caller, None, map(json!({"external_agent_id": "x", "name": "New"}))).await;
    assert!(by_external.is_ok());
    assert_eq!(f.service.library().agent(&f.caller, id).await.expect("the agent").spec.name, "New");
    let text = "agent_id or external_agent_id is required";
    assert_eq!(refusal(f.service.library().update_agent(&f.caller, None, map(json!({"name": "a"}))).await), text);
    let unknown = IdString("twelve".into());
    assert_eq!(
        refusal(f.service.library().update_agent(&f.caller, Some(&unknown), map(json!({}))).await),
        "Agent not found"
    );
    let generated = f.service.library().generate_http_webhook_key(&f.caller, None, Some("x")).await.expect("a key");
    let got = f.service.library().get_http_webhook_key(&f.caller, Some(&as_text), None).await.expect("a key");
    assert_eq!(generated.signing_key, got.signing_key);
}

#[tokio::test]
async fn folders_hold_agents() {
    let f = Fixture::new().await;
    let (agent, name) = (f.agent(json!({"name": "Desk"})).await, |name: &str| FolderSpec { name: name.into() });
    let folder = f.service.library().create_folder(&f.caller, name("A")).await.expect("a folder").id;
    assert_eq!(refusal(f.service.library().create_folder(&f.caller, name("A")).await), "Folder name is already used");
    assert!(f.service.library().update_folder(&f.caller, folder, name("A")).await.is_ok());
    f.service
        .library()
        .move_agent(&f.caller, MoveAgent { agent_id: agent, folder_id: Some(folder) })
        .await
        .expect("moved");
    let inside = f.service.library().agents_by_folder(&f.caller, folder).await.expect("agents");
    assert_eq!(inside.iter().map(|agent| agent.id).collect::<Vec<_>>(), [agent]);
    f.service.library().delete_folder(&f.caller, folder).await.expect("deleted");
    assert_eq!(f.service.library().agent(&f.caller, agent).await.expect("the agent").folder_id, None);
    assert_eq!(refusal(f.service.library().folder(&f.caller, folder).await), "Folder not found");
}

#[tokio::test]
async fn who_was_named_before_is_not_looked_for_again() {
    let f = Fixture::new().await;
    let folder =
        f.service.library().create_folder(&f.caller, FolderSpec { name: "A".into() }).await.expect("a folder").id;
    let body = json!({"url": "http://127.0.0.1:9/", "event_types": ["simulation_ended"], "folder_ids": [folder]});
    let made = f.service.watching().create_webhook(&f.caller, spec::<WebhookSpec>(body)).await.expect("a webhook");
    let mut db = f.service.store().org(&f.caller.organization).write().await.expect("a session");
    assert_eq!(db.delete::<FolderSpec>(folder).await, Ok(true));
    db.commit().await.expect("kept");
    let change = |patch: Value| f.service.watching().update_webhook(&f.caller, made.webhook.id, map(patch));
    assert_eq!(refusal(change(json!({"enabled": false})).await), "");
    assert_eq!(refusal(change(json!({"folder_ids": [folder]})).await), "");
    let other = ringer::clock::new_id();
    assert_eq!(refusal(change(json!({"folder_ids": [folder, other]})).await), "Folder not found");
}

#[tokio::test]
async fn integrations_keep_secrets_to_themselves() {
    let f = Fixture::new().await;
    let patch = json!({"P1_url": "wss://rooms", "P1_api_secret": "s", "P6_credentials": {"k": "v"}});
    f.service.library().update_integrations(&f.caller, map(patch)).await.expect("updated");
    let shown = f
        .service
        .library()
        .update_integrations(&f.caller, map(json!({"P6_credentials": null})))
        .await
        .expect("updated");
    for (field, expect) in [
        ("P1_url", json!("wss://rooms")),
        ("P1_api_secret", Value::Null),
        ("P1_api_secret_set", json!(true)),
        ("P6_credentials_set", json!(false)),
    ] {
        assert_eq!(shown.get(field), Some(&expect), "{field}");
    }
    let inside = f
        .service
        .library()
        .update_integrations(&f.caller, map(json!({"P2_base_url": "http://169.254.169.254/"})))
        .await;
    assert_eq!(refusal(inside), "P2_base_url points to a host that is not allowed");
    assert_eq!(f.service.library().integrations(&f.caller).await.expect("shown"), shown);
}

#[tokio::test]
async fn simulations_know_their_rules() {
    let f = Fixture::new().await;
    let agent = f.agent(json!({"name": "Desk"})).await;
    let id = f.simulation(json!({"agent_id": agent.to_string()})).await;
    let read =
        serde_json::to_value(f.service.library().simulation(&f.caller, id).await.expect("it")).expect("serializes");
    assert_eq!((&read["name"], &read["type"]), (&json!(format!("Simulation {id}")), &json!("parallel")));
    assert_eq!(read["settings"]["max_call_duration_units"], "minutes");
    assert_eq!(read["settings"]["digital_humans_settings"]["first_message"], "ai_generated");
    let change = map(json!({"sequential_calling": true, "tags": ["t"], "name": null, "max_turns": 4}));
    let read = f.service.library().update_simulation(&f.caller, id, change).await.expect("updated");
    assert_eq!((read.max_concurrent, read.max_turns, read.tags), (Some(1), Some(4), vec!["t".to_owned()]));
    let a = "f3d2a87c-1e4b-4b9a-9c2d-7f1e6b5a4c33";
    let b = "b1a04e88-7c2f-4d23-9a5e-2f8c6d1b7a09";
    for (body, expect) in [
        (json!({"agent_id": "x"}), "Agent not found"),
        (json!({"agent_id": "999"}), "Agent not found"),
        (json!({"agent_version_id": a, "prompt_id": b}), "prompt_id and agent_version_id must be the same"),
        (json!({"prompt_id": a}), "Agent version not found"),
        (
            json!({"outcome_failing_threshold": 90, "outcome_passing_threshold": 80}),
            "failing threshold must not exceed passing threshold",
        ),
        (json!({"svc_as_code_id": a}), ""),
        (json!({"svc_as_code_id": a}), "svc_as_code_id is already used"),
    ] {
        let mut full = map(json!({"agent_id": agent.to_string()}));
        full.extend(map(body.clone()));
        assert_eq!(
            refusal(f.service.library().create_simulation(&f.caller, spec(full.into())).await),
            expect,
            "{body}"
        );
    }
    let names: Vec<i64> = f.service.library().simulations(&f.caller).await.expect("all").iter().map(|s| s.id).collect();
    assert_eq!(names, [id + 1, id]);
}

#[tokio::test]
async fn digital_humans_are_linked_named_and_numbered() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 0).await;
    let human = f.human(json!({"human_name": "Old Name", "description": "old intent"}), &[simulation]).await;
    let read = f.service.humans().digital_human(&f.caller, human).await.expect("it");
    assert_eq!(read.digital_human.spec.name.as_deref(), Some("Old Name"));
    assert_eq!(read.digital_human.spec.intent, "old intent");
    assert_eq!((read.simulation_ids, read.simulation_id), (vec![simulation], Some(simulation)));
    let nameless = f.human(json!({"language": "ja", "test_name": "t"}), &[]).await;
    let read = f.service.humans().digital_human_by_test_name(&f.caller, "t").await.expect("it");
    assert_eq!(read.digital_human.id, nameless);
    assert!(read.digital_human.spec.name.is_some_and(|name| name.contains(' ')));
    let message =
        f.service.library().add_digital_humans(&f.caller, simulation, &[human, nameless]).await.expect("added").message;
    assert_eq!(message, "1 digital human(s) added");
    let listed = f.service.humans().digital_humans_by_simulation(&f.caller, simulation).await.expect("listed");
    assert_eq!(listed.digital_humans.iter().map(|h| h.id).collect::<Vec<_>>(), [nameless, human]);
    let page = f.service.humans().digital_humans(&f.caller, 2, 1).await.expect("a page");
    assert_eq!((page.digital_humans[0].id, page.total_count, page.total_pages), (human, 2, 2));
    let text = "page_size must be between 1 and 100";
    assert_eq!(refusal(f.service.humans().digital_humans(&f.caller, 1, 101).await), text);
    let removed = f
        .service
        .humans()
        .update_digital_human(&f.caller, human, map(json!({"intent": "new"})), Some(&[]), false)
        .await;
    let removed = removed.expect("updated");
    assert_eq!((removed.digital_human.spec.intent.as_str(), removed.simulation_ids), ("new", vec![]));
    let text = "digital_human_ids must be a comma-separated list of integers";
    assert_eq!(refusal(f.service.humans().delete_digital_humans(&f.caller, "1,x").await), text);
    let deleted = f.service.humans().delete_digital_humans(&f.caller, &format!("{human}, 999")).await.expect("deleted");
    assert_eq!((deleted.deleted[0].id, deleted.errors[0].detail.as_str()), (human, "Digital human not found"));
}

#[tokio::test]
async fn a_simulation_holds_so_many_journeys_however_they_come() {
    let f = Fixture::new().await;
    let (_, simulation, _) = f.booth(json!({}), 0).await;
    let journey = json!({"journey_steps": [{"step": 1, "intent": "ask"}]});
    let mut humans = vec![f.human(json!({"name": "Ann", "intent": "book"}), &[]).await];
    for _ in 0..200 {
        humans.push(f.human(journey.clone(), &[]).await);
    }
    f.service.library().add_digital_humans(&f.caller, simulation, &humans).await.expect("200 are allowed");
    let text = "A simulation can hold at most 200 journeys";
    let one_more = f.service.humans().create_digital_human(&f.caller, spec(journey.clone()), &[simulation]).await;
    assert_eq!(refusal(one_more), text);
    let change = |id| f.service.humans().update_digital_human(&f.caller, id, map(journey.clone()), None, false);
    assert_eq!(refusal(change(humans[0]).await), text);
    assert!(change(humans[1]).await.is_ok(), "it is one already");
    let read = f.service.humans().digital_human(&f.caller, humans[0]).await.expect("it");
    assert_eq!(read.digital_human.spec.journey_steps, None);
}

#[tokio::test]
async fn one_always_on_digital_human_a_number() {
    let f = Fixture::new().await;
    let (_, open, _) = f.booth(json!({"always_on": true}), 0).await;
    let body = json!({"always_on_mode": true, "phone_number": "+15550001111"});
    let first = f.human(body.clone(), &[open]).await;
    let again = f.service.humans().create_digital_human(&f.caller, spec(body.clone()), &[open]).await;
    assert_eq!(refusal(again), "Phone number is already used by another always-on digital human");
    let second = f.human(json!({}), &[open]).await;
    let change =
        |take_over| f.service.humans().update_digital_human(&f.caller, second, map(body.clone()), None, take_over);
    assert!(matches!(change(false).await, Err(Error::Conflict(_))));
    assert!(change(true).await.is_ok());
    let first = f.service.humans().digital_human(&f.caller, first).await.expect("it");
    assert_eq!(first.digital_human.spec.always_on_active, Some(false));
    let (_, simulation, _) = f.booth(json!({}), 0).await;
    let other = json!({"always_on_mode": true, "phone_number": "+15550002222"});
    for simulations in [&[simulation][..], &[]] {
        let made = f.service.humans().create_digital_human(&f.caller, spec(other.clone()), simulations).await;
        assert_eq!(refusal(made), "Simulation is not an always-on simulation", "{simulations:?}");
    }
    f.human(other, &[simulation, open]).await;
}

#[tokio::test]
async fn the_words_of_a_workflow_human_stay() {
    let f = Fixture::new().await;
    let id = f.human(json!({"tag": "My Workflow", "intent": "a"}), &[]).await;
    let change = |patch: Value| f.service.humans().update_digital_human(&f.caller, id, map(patch), None, false);
    let text = "intent cannot be changed on a workflow digital human";
    assert_eq!(refusal(change(json!({"intent": "b", "name": "n"})).await), text);
    assert!(change(json!({"intent": "a", "enriched_playback": [{"speaker": "user"}]})).await.is_ok());
}

#[tokio::test]
async fn another_organization_sees_nothing() {
    let f = Fixture::new().await;
    let (agent, simulation, humans) = f.booth(json!({}), 1).await;
    let (run, results) = f.run(simulation, json!({})).await;
    let other = f.stranger().await;
    let s = &f.service;
    assert_eq!(refusal(s.library().agent(&other, agent).await), "Agent not found");
    assert_eq!(refusal(s.library().delete_agent(&other, agent).await), "Agent not found");
    assert_eq!(refusal(s.library().simulation(&other, simulation).await), "Simulation not found");
    assert_eq!(refusal(s.library().simulations_by_agent(&other, agent).await), "Agent not found");
    assert_eq!(refusal(s.runs().simulation_runs(&other, simulation).await), "Simulation not found");
    assert_eq!(refusal(s.runs().run_results(&other, run).await), "Simulation run not found");
    assert_eq!(refusal(s.runs().cancel_run(&other, run, true).await), "Simulation run not found");
    assert_eq!(refusal(s.runs().result(&other, results[0]).await), "Simulation result not found");
    assert_eq!(refusal(s.runs().hangup(&other, results[0]).await), "Simulation result not found");
    let text = "Digital human belongs to a different organization";
    assert_eq!(s.humans().digital_human(&other, humans[0]).await, Err(Error::Forbidden(text.into())));
    assert_eq!(s.humans().delete_digital_human(&other, humans[0]).await, Err(Error::Forbidden(text.into())));
    assert_eq!(refusal(s.humans().digital_human(&other, 999).await), "Digital human not found");
    let add = s.library().add_digital_humans(&f.caller, simulation, &[999]).await;
    assert_eq!(refusal(add), "Digital human not found");
    assert_eq!(s.library().all_agents(&other).await, Ok(vec![]));
    assert_eq!(s.humans().digital_humans(&other, 1, 20).await.expect("a page").total_count, 0);
}

#[tokio::test]
async fn keys_open_their_organization_until_revoked() {
    let f = Fixture::new().await;
    let make = |scope: &str| {
        f.service.library().create_key(&f.caller, CreateKeyIn { scope: scope.into(), name: None, user: None })
    };
    assert_eq!(refusal(make("owner").await), "scope must be read, write or admin");
    let key = make("read").await.expect("a key");
    let caller = f.service.library().authenticate(&key.api_key).await.expect("looked up").expect("known");
    assert_eq!((caller.organization.as_str(), caller.scope), (f.caller.organization.as_str(), Scope::Read));
    let listed = f.service.library().keys(&f.caller).await.expect("listed");
    let shown = listed.iter().find(|listed| listed.id == key.id).expect("listed");
    assert_eq!(shown.api_key, format!("{}...", &key.api_key[..8]));
    for (id, expect) in [
        (key.id.to_string(), ""),
        (key.id.to_string(), ""),
        ("nonsense".to_owned(), "API key not found"),
        (f.caller.key_id.to_string(), "The last admin key cannot be revoked"),
    ] {
        assert_eq!(refusal(f.service.library().revoke_key(&f.caller, &id).await), expect, "{id}");
    }
    assert_eq!(f.service.library().authenticate(&key.api_key).await, Ok(None));
    assert_eq!(f.service.library().authenticate("").await, Ok(None));
    let again = f.service.library().bootstrap("first", "key of the first").await.expect("the same");
    assert_eq!(again, f.caller);
}
