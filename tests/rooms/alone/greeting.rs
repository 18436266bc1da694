//! Time of the greeting of an agent in a room.

use ringer_media::call::Opening;
use serde_json::json;

use crate::calls::alone::greeting::metric;
use crate::calls::stage::Stage;
use crate::rooms::conversations::{SPEECH, placement};
use crate::rooms::official::official;
use crate::rooms::server::RoomServer;
use ringer::clock::monotonic;

/// Audio that the official client holds back before it sends, and the tolerance, in seconds.
const HELD_BACK_S: f64 = 0.2;
const TOLERANCE_S: f64 = 0.25;

/// The agent publishes its track late, and speaks some time after that.
#[tokio::test(flavor = "multi_thread")]
async fn the_greeting_counts_from_the_publishing_of_the_track() {
    let (server, stage) = (RoomServer::start().await, Stage::new().await);
    let agent = official(&server, "agent-1", &["--speech", SPEECH, "--silent", "--late"]).await;
    let mut call = placement(&stage, &server, 6000);
    call.spec.opening = Opening::Listen { open_after_ms: None };
    let greets = async {
        agent.sees(|seen| seen["participants"] == json!(["dh-42"])).await;
        let published = monotonic();
        agent.post("/publish").await;
        agent.sees(|seen| seen["frames"].as_u64() > Some(150)).await;
        agent.tell("/set", json!({ "speaks": true })).await;
        monotonic().since(published).as_secs_f64()
    };
    let (report, own_s) = tokio::join!(stage.call(call), greets);
    let report = report.expect("a place is free");
    let measured = metric(&report, "time_to_first_agent_utterance").unwrap_or_else(|| panic!("{:?}", report.timeline));
    let range = own_s - TOLERANCE_S..own_s + HELD_BACK_S + TOLERANCE_S;
    assert!(range.contains(&measured), "told {measured} s, it was {own_s} s");
    let named = |name: &str| report.timeline.iter().find(|entry| entry.name() == name).map(|entry| entry.sample);
    let ready = named("call.ready").expect("it is told");
    assert!(ready <= 0 && named("call.dialing") < Some(ready), "{ready}");
    stage.engine.stop().await;
}
