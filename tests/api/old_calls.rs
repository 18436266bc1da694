//! Production calls that grow old: they go, and their recordings before them.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringer::config::Retention;
use ringer::service::Cleared;
use ringer_base::testing::WebServer;
use serde_json::{Value, json};

use super::call_logs::{body, evaluate, stereo};
use super::world::World;

#[tokio::test]
async fn old_calls_and_their_recordings_go() {
    let world = World::with_rows().await;
    let day_ms = 24 * 3600 * 1000;
    let data = format!("data:audio/wav;base64,{}", STANDARD.encode(stereo()));
    let with_sound = json!({ "recording_base64": data });
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(evaluate(&world, with_sound.clone()).await["id"].as_str().expect("an id").to_owned());
        world.service.clock().advance_ms(1);
    }
    // One that nobody has evaluated stays, however old.
    let waiting = world.post("/v1/evaluate", body(&world, with_sound.clone())).await;
    ids.push(waiting["call_id"].as_str().expect("an id").to_owned());
    let there = || {
        let folder = world.service.settings().data.join("call-logs");
        ids.iter().map(|id| folder.join(id).join("recording").exists()).collect::<Vec<_>>()
    };
    let clear = async |keep: Retention| world.service.runs().clear_old(&keep).await.expect("the folder can be changed");
    let one = |results, calls, recordings| Cleared { results, calls, recordings };
    // 0.77 MB each.
    let quota = Retention { disk_quota_mb: 2, ..Retention::default() };
    assert_eq!(clear(quota.clone()).await, one(0, 0, 1), "the oldest goes");
    assert_eq!((there(), clear(quota).await), (vec![false, true, true], one(0, 0, 0)));
    let keep = Retention { results_days: 30, recordings_days: 7, disk_quota_mb: 0 };
    world.service.clock().advance_ms(7 * day_ms);
    assert_eq!((clear(keep.clone()).await, there()), (one(0, 0, 1), vec![false, false, true]));
    world.service.clock().advance_ms(23 * day_ms);
    assert_eq!(clear(keep.clone()).await, one(0, 2, 0));
    for (id, status) in ids.iter().zip([404, 404, 200]) {
        let read = world.send("GET", &format!("/v1/retrieve-call-log/{id}"), &[], Vec::new()).await;
        assert_eq!(read.status, status);
    }
}

#[tokio::test]
async fn the_engine_itself_looks_for_what_is_old() {
    let mut world = World::at_work_keeping(Retention { results_days: 30, ..Retention::default() }).await;
    let agent = world.post("/v1/add-agent", json!({ "name": "Desk" })).await["agent_id"].to_string();
    world.call_it("agent", agent);
    let until = async |path: &str, done: &dyn Fn(u16, &Value) -> bool| {
        let seen = async {
            loop {
                let answer = world.send("GET", path, &[], Vec::new()).await;
                if done(answer.status, &answer.json()) {
                    break;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), seen).await.expect("it comes");
    };
    // Not only when it starts.
    for _ in 0..2 {
        let queued = world.post("/v1/evaluate", body(&world, json!({}))).await;
        let path = format!("/v1/retrieve-call-log/{}", queued["call_id"].as_str().expect("an id"));
        until(&path, &|_, read| read["call_log"]["status"] == "COMPLETED").await;
        world.service.clock().advance_ms(31 * 24 * 3_600_000);
        until(&path, &|status, _| status == 404).await;
    }
}

#[tokio::test]
async fn a_recording_that_is_too_old_leaves_no_address() {
    let server = WebServer::start(|_: &str| WebServer::file(&stereo())).await.expect("loopback has a free port");
    let world = World::with_rows().await;
    let log = evaluate(&world, json!({ "recording_url": server.url("/call.wav") })).await;
    assert_eq!(log["recording_url"], json!(server.url("/call.wav")));
    world.service.clock().advance_ms(8 * 24 * 3600 * 1000);
    let keep = Retention { recordings_days: 7, ..Retention::default() };
    for recordings in [1, 0] {
        let cleared = world.service.runs().clear_old(&keep).await.expect("the folder can be changed");
        assert_eq!(cleared, Cleared { recordings, ..Cleared::default() });
    }
    let path = format!("/v1/retrieve-call-log/{}", log["id"].as_str().expect("an id"));
    assert_eq!(world.get(&path).await["call_log"]["recording_url"], Value::Null);
}
