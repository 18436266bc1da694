//! Voices that Digital Humans name by their ids, of a server that speaks: the built program asks it before the call.

use serde_json::{Value, json};

use super::embedded_speech;
use super::servers::Server;
use crate::calls::speech::alone::neural::Asked;
use crate::program::{Program, ringer, up};
use ringer::provider::remote::Form;

/// Queues a Digital Human with each of these voices for two seconds; returns their results.
pub(super) async fn calls_by(asked: &Asked, desk: &str, voices: &[Value]) -> (Vec<Value>, Vec<Value>) {
    let agent = json!({ "name": "Desk", "sip_uri": desk });
    let agent = asked.post("/v1/add-agent", agent).await["agent_id"].clone();
    let simulation = json!({ "agent_id": agent.to_string(), "name": "Voices", "max_concurrent": voices.len(),
        "max_call_duration": 3, "max_call_duration_units": "seconds" });
    let simulation = asked.post("/v1/create-simulation", simulation).await["simulation_id"].clone();
    let mut made = Vec::new();
    for voice in voices {
        let human = json!({ "intent": "I would like to see a doctor.", "gender": "male", "custom_voice_id": voice,
            "speaks_first_config": { "speaks_first": true, "mode": "custom", "message": "Good morning to you." } });
        let body = json!({ "digital_human": human, "simulation_ids": [simulation] });
        made.push(asked.post("/v1/create-digital-human", body).await);
    }
    let run = json!({ "simulation_id": simulation.to_string(), "seed": 7 });
    let run = asked.post("/v1/queue-simulation-run", run).await;
    let mut results = Vec::new();
    for id in run["simulation_result_ids"].as_array().expect("ids") {
        results.push(asked.over(id.as_str().expect("an id")).await);
    }
    (made, results)
}

/// Voices of a result's metadata: the one that spoke, and what is said of one that is not there.
pub(super) fn substitution(result: &Value) -> (&str, Option<&str>, bool) {
    let metadata = &result["metadata"];
    let warnings = metadata["warnings"].as_array().expect("warnings");
    let is_warned = warnings.iter().any(|text| text.as_str().is_some_and(|text| text.starts_with("custom_voice_id: ")));
    (metadata["voice"].as_str().expect("a voice"), metadata["voice_substituted"].as_str(), is_warned)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voice_of_a_server_speaks_and_one_that_it_lacks_is_replaced_before_the_call() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut desk = Program::start(&mut ringer(&["agent", "--listen", "127.0.0.1:0", "--rtp-ports", "36000-36099"]));
    let desk_address = desk.address("sip:").await;
    for (form, kind) in [(Form::Http, "http"), (Form::WebSocket, "websocket")] {
        let server = Server::with_voices(form, &embedded_speech(), &["plain", "anna"]).await;
        let data = folder.path().join(kind);
        std::fs::create_dir(&data).expect("the folder is writable");
        let mut engine = up(&data);
        engine
            .args(["--rtp-ports", "36100-36199"])
            .env("RINGER_SYNTHESIZER_KIND", kind)
            .env("RINGER_SYNTHESIZER_BASE_URL", server.remote().base_url)
            .env("RINGER_SYNTHESIZER_VOICE", "plain")
            .env("RINGER_SYNTHESIZER_FALLBACK", "false");
        let mut engine = Program::start(&mut engine);
        let asked = Asked { base: engine.address("http://").await };
        let (made, results) = calls_by(&asked, &desk_address, &[json!("anna"), json!("nobody")]).await;
        assert!(made.iter().all(|human| human.get("warnings").is_none()), "nobody asks a server at save: {made:?}");
        assert_eq!(substitution(&results[0]), ("remote:anna", None, false), "{kind}: {}", results[0]);
        let replaced = ("remote:plain", Some("no voice nobody: remote:plain"), true);
        assert_eq!(substitution(&results[1]), replaced, "{kind}: {}", results[1]);
        for result in &results {
            assert_eq!(
                (&result["status"], &result["metadata"]["synthesizer"]["kind"]),
                (&json!("COMPLETED"), &json!(kind))
            );
        }
        // Who was not there is asked for once, before the call; the other voices said whole calls.
        let voices = server.voices();
        assert_eq!(voices.iter().filter(|voice| *voice == "nobody").count(), 1, "{voices:?}");
        assert!(
            voices.iter().any(|voice| voice == "anna") && voices.iter().any(|voice| voice == "plain"),
            "{voices:?}"
        );
        engine.kill().await;
    }
    desk.kill().await;
}
