//! Agents whose audio has another sampling rate than it should, and audio that is cut by the end of a call.

use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::server::{Line, Server, speech};
use crate::calls::house::House;

/// Returns the result of a call to a server that does `script`; the Digital Human waits for a word that nobody says.
async fn result_of<F>(script: impl Fn(Line) -> F + Clone + Send + Sync + 'static) -> Value
where
    F: Future<Output = ()> + Send + 'static,
{
    let server = Server::start(script).await;
    let house = House::understanding("Good morning.").await;
    let human = json!({ "expectations": [{ "heard": "pineapple" }, { "metric": "time_to_first_agent_utterance", "at_most": 0.01 }] });
    let long = json!({ "max_call_duration": 20 });
    let (_, ids) = house.queue(json!({ "websocket_url": server.url() }), long, &[human]).await;
    house.events(&ids[0]).await;
    let result = house.result(&ids[0]).await;
    house.stop().await;
    server.stop().await;
    result
}

/// Sends speech in messages of so many bytes, one for each message of 20 ms that comes.
async fn speak(line: &mut Line, bytes: usize) {
    for piece in speech(4.0).chunks_exact(bytes).take(200) {
        line.until_audio(1).await;
        line.send(Message::binary(piece.to_vec())).await;
    }
}

/// The agent is not charged with what follows from it: the call is unknown, and says what to look at.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_at_another_rate_is_unknown_and_not_failed() {
    let result = result_of(|mut line| async move {
        speak(&mut line, 320).await;
        line.close(1000).await;
    })
    .await;
    let why = "the agent sends 0.5 times real time: is its rate 8000?";
    let verdict = &result["verdict"];
    assert_eq!([&verdict["word"], &verdict["code"], &verdict["reason"]], ["unknown", "rate_mismatch", why], "{result}");
    assert_eq!(result["outcome"], "not_evaluated");
    assert_eq!(result["engine_quality"]["untrusted_reason"], why);
    assert_eq!(result["own_faults"], json!([{ "code": "rate_mismatch", "at_ms": null, "turn": null }]));
    let warnings = result["metadata"]["warnings"].to_string();
    assert!(warnings.contains(why), "{warnings}");
    for expectation in result["expectations"].as_array().expect("a list") {
        assert_eq!(expectation["status"], "unknown", "{expectation}");
    }
}

/// 6 s of goodbye in one burst, and the end 300 ms later.
#[tokio::test(flavor = "multi_thread")]
async fn audio_that_is_cut_by_the_agents_own_end_is_told() {
    let result = result_of(|mut line| async move {
        line.until_audio(5).await;
        line.send(Message::binary(speech(6.0))).await;
        line.until_audio(15).await;
        line.close(1000).await;
    })
    .await;
    let unplayed_ms = result["metadata"]["agent_audio_not_played_ms"].as_i64().unwrap_or_default();
    assert!((4500..=6000).contains(&unplayed_ms), "{unplayed_ms}: {result}");
    let text = format!(
        "{:.1} s of the agent's audio were sent and not played, as the carrier would cut them",
        unplayed_ms as f64 / 1000.0
    );
    let warnings = result["metadata"]["warnings"].to_string();
    assert!(warnings.contains(&text), "{warnings}");
    assert_eq!(result["verdict"]["word"], "failed", "it is the agent's own: {result}");
}
