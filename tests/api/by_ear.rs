//! Custom metrics of sound, judged by a model that hears: what it is sent, and what becomes of its answers.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringer::model::language_model::{ModelKind, ModelRecord};
use ringer::provider::LanguageModel;
use ringer::provider::chat::{ChatConfig, ChatModel};
use ringer::provider::testing::{Reply, ScriptedModel};
use serde_json::{Value, json};

use super::call_logs::{body, metric as metric_of, stereo};
use super::judged::judgement;
use super::receiver::{Received, Receiver};
use super::world::World;
use crate::json::with;

/// Returns an answer as servers of chat completions send it.
fn answer(content: &str) -> (u16, String) {
    let event = json!({ "choices": [{ "index": 0, "delta": { "content": content } }] });
    (200, format!("data: {event}\n\ndata: [DONE]\n\n"))
}

/// Creates a metric of these fields, of the agent.
async fn metric(world: &World, more: Value) {
    let agent = json!([world.name("agent").parse::<i64>().expect("a number")]);
    let fields = json!({
        "name": "by ear", "description": "Is it friendly?", "response_type": "pass_fail",
        "eval_method": "audio", "eval_modality": "AUDIO", "agent_ids": agent,
    });
    world.post("/v1/create-custom-metric", with(fields, more)).await;
}

/// Judges one call by a metric, with or without a recording of two channels; returns the metric's result.
async fn judge(world: &World, has_recording: bool, ear: Option<Arc<dyn LanguageModel>>) -> Value {
    let data = format!("data:audio/wav;base64,{}", STANDARD.encode(stereo()));
    let more = if has_recording { json!({ "recording_base64": data, "multichannel": true }) } else { json!({}) };
    let queued = world.post("/v1/evaluate-call", body(world, more)).await;
    world.work_off_with_all(None, None, ear).await;
    let id = queued["call_id"].as_str().expect("an id");
    let log = world.get(&format!("/v1/retrieve-call-log/{id}")).await["call_log"].clone();
    let mut results = log["evaluations"][0]["custom_metrics"].as_array().expect("results").iter();
    results.find(|one| one["name"] == "by ear").expect("it was judged").clone()
}

fn ear(server: &Receiver) -> Option<Arc<dyn LanguageModel>> {
    let config = ChatConfig::new(&server.url("/v1"), Some("sesame".into()), "listener");
    Some(Arc::new(ChatModel::new(config).expect("TLS is there")))
}

/// Checks the request to a model that hears: it asks about `what` in a recording of `channels` channels.
fn check_asked(request: &Received, what: &str, channels: u8) {
    assert_eq!(
        (request.path.as_str(), &request.headers["authorization"]),
        ("/v1/chat/completions", &"Bearer sesame".parse().expect("a header"))
    );
    let asked = request.json();
    assert_eq!((&asked["model"], &asked["response_format"]), (&json!("listener"), &Value::Null));
    let task = asked["messages"][0]["content"].as_str().expect("a task");
    assert!(task.contains("Is it friendly?") && task.contains(what), "{task}");
    let [words, sound] = asked["messages"][1]["content"].as_array().expect("parts").as_slice() else {
        panic!("{}", asked["messages"][1]["content"])
    };
    assert!(words["type"] == "text" && words["text"].as_str().expect("words").contains(':'), "{words}");
    assert_eq!((&sound["type"], &sound["input_audio"]["format"]), (&json!("input_audio"), &json!("wav")));
    let wav = STANDARD.decode(sound["input_audio"]["data"].as_str().expect("a text")).expect("base64");
    assert_eq!((&wav[..4], wav[22], wav.len()), (&b"RIFF"[..], channels, 44 + usize::from(channels) * 2 * 12 * 16_000));
}

#[tokio::test]
async fn a_model_that_hears_is_sent_the_recording() {
    let both = ("two channels, the caller left", 2);
    let half = json!({ "response_type": "quantitative", "min_value": 0, "max_value": 100, "eval_segment": "agent" });
    let sigh = json!({ "response_type": "yes_no", "eval_method": "llm_judge", "eval_segment": "caller" });
    for (fields, answers, expect, heard) in [
        (
            json!({}),
            vec![r#"{"reasoning": "A warm voice.", "value": "pass"}"#],
            ["evaluated", "pass", "A warm voice."],
            vec![both],
        ),
        // Not to be read, then a value: asked again.
        (
            half,
            vec!["It is quiet.", r#"{"reasoning": "Half of it.", "value": 50}"#],
            ["evaluated", "50", "Half of it."],
            vec![("the agent alone", 1); 2],
        ),
        (
            sigh,
            vec![r#"{"reasoning": "A sigh.", "value": "no"}"#],
            ["evaluated", "no", "A sigh."],
            vec![("the caller alone", 1)],
        ),
    ] {
        let server = Receiver::answering(answers.into_iter().map(answer).collect()).await;
        let world = World::with_rows().await;
        metric(&world, fields).await;
        let result = judge(&world, true, ear(&server)).await;
        assert_eq!(
            [&result["status"], &result["response_value"], &result["reasoning"]],
            expect.map(|text| json!(text)).each_ref()
        );
        let seen = server.requests();
        assert_eq!(seen.len(), heard.len());
        for (request, (what, channels)) in seen.iter().zip(heard) {
            check_asked(request, what, channels);
        }
    }
}

#[tokio::test]
async fn what_cannot_be_heard_is_not_evaluated() {
    let server = Receiver::answering(vec![(500, String::new())]).await;
    let world = World::with_rows().await;
    metric(&world, json!({})).await;
    let reason = |result: Value| {
        assert_eq!((&result["status"], &result["response_value"]), (&json!("not_evaluated"), &json!("")));
        result["reason"].as_str().expect("a reason").to_owned()
    };
    assert_eq!(reason(judge(&world, true, None).await), "No audio model is configured");
    assert_eq!(reason(judge(&world, false, ear(&server)).await), "There is no recording");
    assert_eq!(server.requests().len(), 0);
    assert!(reason(judge(&world, true, ear(&server)).await).contains("answered 500"));
    // It was there when the metric was stored.
    let another = ModelRecord { name: "another".into(), kind: ModelKind::Audio, model: "m".into(), is_default: false };
    let world = World::with_rows_and(|settings| settings.models = vec![another].into()).await;
    metric(&world, json!({ "audio_model": "another" })).await;
    let expect = "Audio model 'another' is not configured";
    assert_eq!(reason(judge(&world, true, ear(&server)).await), expect);
}

#[tokio::test]
async fn auto_is_sound_where_somebody_hears() {
    for (hears, description, expect) in [
        (true, "Is the tone warm?", "AUDIO"),
        (true, "Is the name right?", "TEXT"),
        (false, "Is the tone warm?", "TEXT"),
    ] {
        let world = World::with_settings(|settings| settings.hears = hears).await;
        let made = json!({ "name": "m", "description": description, "response_type": "pass_fail" });
        let made = world.post("/v1/create-custom-metric", made).await;
        assert_eq!(made["eval_modality"], expect, "{hears} {description}");
        let id = made["id"].as_str().expect("an id");
        assert_eq!(world.get("/v1/custom-metrics").await["data"][0]["eval_modality"], expect, "{id}");
    }
}

#[tokio::test]
async fn pronunciation_is_judged_where_somebody_hears() {
    let polite = json!({ "reasoning": "It is so.", "value": true });
    let heard = json!({ "pronunciation_score": 91.5, "pronunciation_reasoning": "The name is swallowed." });
    for (has_ear, has_recording, score, status, reason) in [
        (true, true, json!(91.5), "evaluated", Value::Null),
        (true, false, Value::Null, "partial", json!("Pronunciation is not judged: There is no recording")),
        (false, true, Value::Null, "partial", json!("Pronunciation is not judged: no audio model is configured")),
    ] {
        let (server, world) = (Receiver::answering(vec![answer(&heard.to_string())]).await, World::with_rows().await);
        let replies = [judgement(), polite.to_string()].map(|answer| Reply::says(&[&answer]));
        let sound = json!({
            "recording_base64": format!("data:audio/wav;base64,{}", STANDARD.encode(stereo())), "multichannel": true,
        });
        let more = if has_recording { sound } else { json!({}) };
        let queued = world.post("/v1/evaluate-call", body(&world, more)).await;
        let model = Arc::new(ScriptedModel::new(replies.into()));
        world.work_off_with_all(Some(model), None, has_ear.then(|| ear(&server)).flatten()).await;
        let id = queued["call_id"].as_str().expect("an id");
        let log = world.get(&format!("/v1/retrieve-call-log/{id}")).await["call_log"].clone();
        let found = &log["evaluations"][0];
        assert_eq!((&found["pronunciation_score"], &found["status"]), (&score, &json!(status)), "{found}");
        assert_eq!(found["not_evaluated_reason"], reason);
        assert_eq!(metric_of(&log, "pronunciation_score"), Some(score).filter(|score| !score.is_null()));
        assert_eq!(server.requests().len(), usize::from(has_ear && has_recording));
    }
}
