//! Openings of callers, and the facts that they know.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use super::oracle::Oracle;
use super::receiver::Receiver;
use super::talk::Talk;
use super::world::World;

#[tokio::test]
async fn an_opening_is_made_once_and_kept_unless_it_is_dynamic() {
    let answers = (0..8).map(|_| (200, json!({ "message": "Bye.", "end_conversation": true }).to_string())).collect();
    let hook = Receiver::answering(answers).await;
    let agent = json!({ "http_webhook": hook.url("/hook"), "http_webhook_sync_reply": true });
    let times = AtomicUsize::new(0);
    let model = Oracle::new(move |_, last| {
        last.contains("You speak first").then(|| format!("Opening number {}.", times.fetch_add(1, Ordering::SeqCst)))
    });
    let said = |hook: &Receiver| -> Vec<String> {
        let said = hook.requests().into_iter().filter_map(|seen| seen.json()["message"].as_str().map(str::to_owned));
        said.filter(|text| !text.is_empty()).collect()
    };
    for dynamic in [false, true] {
        let before = said(&hook).len();
        let first = json!({ "speaks_first": true, "mode": "ai_generated", "dynamic": dynamic });
        let human = json!({ "name": "Ann", "speaks_first_config": first });
        let world = World::at_work(Some(model.clone())).await;
        let mut talk = Talk::of(world, agent.clone(), json!({}), human).await;
        talk.until("COMPLETED").await;
        let result = talk.result().await;
        let again = json!({ "simulation_id": result["simulation_id"].to_string() });
        let human = result["digital_human_id"].clone();
        for intent in [None, Some("I want a chair.")] {
            if let Some(intent) = intent {
                let path = format!("/v1/update-digital-human/{human}");
                talk.world.call("PUT", &path, json!({ "intent": intent })).await;
            }
            let queued = talk.world.post("/v1/queue-simulation-run", again.clone()).await;
            talk.id = queued["simulation_result_ids"][0].as_str().expect("a result").to_owned();
            talk.feed = talk.world.service.feed(talk.id.parse().expect("an id")).expect("calls are made here");
            talk.until("COMPLETED").await;
        }
        let said = said(&hook).split_off(before);
        assert_eq!((said.len(), said[0] == said[1]), (3, !dynamic), "{said:?}");
        assert_ne!(said[1], said[2], "what it was made of has changed: {said:?}");
        assert!(said.iter().all(|line| line.starts_with("Opening number ")), "{said:?}");
    }
}

#[tokio::test]
async fn a_fact_to_be_invented_is_invented_and_known_to_be_private() {
    let answers = (0..4).map(|_| (200, json!({ "message": "Bye.", "end_conversation": true }).to_string())).collect();
    let hook = Receiver::answering(answers).await;
    let agent = json!({
        "http_webhook": hook.url("/hook"), "http_webhook_sync_reply": true, "redact_pii": true,
    });
    let fact = |name: &str, value: &str| json!({ "trait_name": name, "trait_data_type": "STRING", "value": value });
    let human = json!({
        "traits": [fact("mood", "__random__"), fact("street", "__partial_random__"), fact("city", "Graz")],
        "speaks_first_config": { "speaks_first": true, "mode": "custom", "message": "{{mood}}, {{street}}, {{city}}." },
    });
    let talk = Talk::of(World::at_work(None).await, agent, json!({}), human).await;
    talk.until("COMPLETED").await;
    let said = hook.wait_for(1).await.json()["message"].as_str().expect("a text").to_owned();
    assert!(!said.contains("__") && !said.contains("{{") && said.ends_with(", Graz."), "{said}");
    assert!(said.split(", ").all(|part| part.len() > 3), "{said}");
    let kept = talk.part("transcript").await["entries"][0]["utterance"].clone();
    assert_eq!(kept, "[TRAIT], [TRAIT], [TRAIT].");
}
