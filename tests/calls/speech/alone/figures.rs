//! Figures of neural speech that `make speech` prints.

mod people;

use serde_json::{Value, json};

use super::neural::{Asked, INTENT, bring_models};
use super::{Form, a_keyword_cuts_in};
use crate::program::{Program, ringer, up};

/// Calls at once on two cores.
const AT_ONCE: usize = 8;

/// Eight PCMU calls at once: every turn of the agent has words in time, and frames leave on time. `make speech` runs
/// it, alone.
#[tokio::test(flavor = "multi_thread")]
async fn eight_calls_at_once_have_words_in_time() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    bring_models(folder.path());
    let mut engine = up(folder.path());
    engine.args(["--rtp-ports", "36600-36799"]).env("RINGER_SIP_CODECS", "PCMU");
    let mut engine = Program::start(&mut engine);
    let asked = Asked { base: engine.address("http://").await };
    let ports = ["--listen", "127.0.0.1:0", "--codec", "PCMU", "--rtp-ports", "36800-36999"];
    // The agent's own ears are the installed ones: theirs is not the load that is measured.
    let mut desk = ringer(&[&["agent"][..], &ports].concat());
    let mut desk = Program::start(desk.env("RINGER_SPEECH_MODELS", "/nonexistent"));
    let agent = json!({ "name": "Desk", "sip_uri": desk.address("sip:").await });
    let agent = asked.post("/v1/add-agent", agent).await["agent_id"].clone();
    let simulation = json!({ "agent_id": agent.to_string(), "name": "Eight", "max_call_duration": 40,
        "max_call_duration_units": "seconds" });
    let simulation = asked.post("/v1/create-simulation", simulation).await["simulation_id"].clone();
    for _ in 0..AT_ONCE {
        let human = json!({ "intent": INTENT, "gender": "male", "endpointing_delay": 1.5 });
        asked.post("/v1/create-digital-human", json!({ "digital_human": human, "simulation_ids": [simulation] })).await;
    }
    let run = json!({ "simulation_id": simulation.to_string(), "seed": 7 });
    let run = asked.post("/v1/queue-simulation-run", run).await;
    let ids: Vec<&str> =
        run["simulation_result_ids"].as_array().expect("ids").iter().filter_map(Value::as_str).collect();
    assert_eq!(ids.len(), AT_ONCE, "{run}");
    let (mut turns, mut late, mut worst) = (0, Vec::new(), 0.0_f64);
    for id in ids {
        let result = asked.over(id).await;
        let ended = asked.events(id, "turn.ended").await;
        turns += ended.len();
        late.extend(
            ended.iter().filter(|turn| turn["text_missing"].is_string()).map(|turn| turn["text_missing"].clone()),
        );
        late.extend(asked.events(id, "recognizer_late").await);
        worst = worst.max(result["engine_quality"]["pacing_p99_ms"].as_f64().expect("a figure"));
    }
    println!("{turns} turns in {AT_ONCE} calls, {} without words in time, pacing p99 at most {worst} ms", late.len());
    assert!(turns >= 2 * AT_ONCE && late.is_empty() && worst <= 1.0, "{turns} turns, {worst} ms, {late:?}");
    desk.kill().await;
    engine.kill().await;
}

/// A keyword in running text is answered within 300 ms.
#[tokio::test(flavor = "multi_thread")]
async fn a_keyword_is_answered_soon() {
    for form in [Form::Http, Form::WebSocket] {
        let (sent_ms, had_ms) = a_keyword_cuts_in(form).await;
        println!(
            "{form:?}: {sent_ms:.0} ms after the server sent the word, {had_ms:.0} ms after the call had it (at most 300)"
        );
        assert!(sent_ms.max(had_ms) <= 300.0, "{form:?}: {sent_ms} ms, {had_ms} ms");
    }
}
