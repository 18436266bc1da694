//! Language models that metrics choose by name.

use std::sync::Arc;

use ringer::model::language_model::{ModelKind, ModelRecord};
use serde_json::json;

use super::world::World;

fn record(name: &str, kind: ModelKind, model: &str, is_default: bool) -> ModelRecord {
    ModelRecord { name: name.to_owned(), kind, model: model.to_owned(), is_default }
}

#[tokio::test]
async fn a_metric_names_models_that_are_there() {
    let world = World::with_settings(|settings| {
        settings.models = Arc::new(vec![
            record("default", ModelKind::Language, "m1", true),
            record("careful", ModelKind::Language, "m2", false),
            record("ear", ModelKind::Audio, "m3", false),
        ]);
    })
    .await;
    let agent = world.post("/v1/add-agent", json!({ "name": "Desk" })).await["agent_id"].to_string();
    let headers = [("x-api-key".to_owned(), "$admin".to_owned())];
    for (model, ear, expect) in [
        (json!("default"), json!(null), None),
        (json!("m1"), json!(null), None),
        (json!("careful"), json!("ear"), None),
        (json!("m2"), json!(null), Some("Unknown model 'm2'")),
        (json!("ear"), json!(null), Some("Unknown model 'ear'")),
        (json!(null), json!("careful"), Some("Unknown model 'careful'")),
    ] {
        let body = json!({ "name": "Polite", "description": "It is polite.", "response_type": "pass_fail",
            "agent_ids": [agent], "model": model, "audio_model": ear });
        let body = body.to_string().into_bytes();
        let answer = world.send("POST", "/v1/create-custom-metric", &headers, body).await;
        match expect {
            None => assert_eq!(answer.status, 200, "{model}: {}", answer.json()),
            Some(text) => assert_eq!((answer.status, answer.json()["detail"].clone()), (400, json!(text)), "{model}"),
        }
    }
    let listed = world.get("/v1/models").await;
    assert_eq!(listed[1], json!({ "name": "careful", "kind": "language", "model": "m2", "is_default": false }));
}
