//! An engine that is drained: its calls come to their end, and new work goes to another.

use std::time::Duration;

use ringer::clock::Clock;
use ringer::service::EngineState;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::killed;
use super::outages::{beside, engine, queue, until, until_seen};
use super::program::{Engine, SILENT, hear};
use super::proxy::Proxy;
use crate::peers::Peer;
use crate::program::PATIENCE;

#[test]
fn a_drain_under_calls_loses_none_and_new_work_goes_to_another() {
    beside(async |folder, schema| {
        let proxy = Proxy::start(folder).await;
        let first = engine("first", &proxy, schema, Clock::correctable(), 8).await;
        let peer = Peer::answering(9);
        let held = queue(&first, &peer, 4, 5).await;
        for id in &held {
            until(&first, id, |result| result["status"] == "RUNNING").await;
        }
        let second = engine("second", &proxy, schema, Clock::correctable(), 8).await;
        assert_eq!(first.status_of("/ready").await, 200);
        second.service.engines().set_draining("first", true).await.expect("it works");
        let mut watch = first.service.engines().watch_draining();
        timeout(PATIENCE, watch.wait_for(|is_draining| *is_draining)).await.expect("in time").expect("it works");
        until_seen(&second, &["first"], EngineState::Draining).await;
        let (status, said) = first.ask("GET", "/ready", Value::Null).await;
        let said = axum::body::to_bytes(said, 1 << 16).await.expect("a body");
        assert_eq!(status, 503);
        assert!(String::from_utf8_lossy(&said).contains("draining"), "{said:?}");
        let (_, figures) = first.ask("GET", "/metrics", Value::Null).await;
        let figures = axum::body::to_bytes(figures, 1 << 20).await.expect("a body");
        assert!(String::from_utf8_lossy(&figures).contains("\nringer_engine_draining 1"), "{figures:?}");
        let more = queue(&first, &peer, 4, 1).await;
        for id in held.iter().chain(&more) {
            let result = until(&second, id, |result| result["outcome"].is_string()).await;
            assert_eq!((&result["status"], &result["error_code"]), (&json!("COMPLETED"), &Value::Null), "{result}");
            assert_eq!(result["end_reason"], "max_duration", "{result}");
        }
        let placed = |house: &crate::calls::house::House| house.engine.counters().calls().placed;
        assert_eq!((placed(&first), placed(&second)), (4, 4), "new calls are made elsewhere");
        // It begins again.
        second.service.engines().set_draining("first", false).await.expect("it works");
        timeout(PATIENCE, watch.wait_for(|is_draining| !is_draining)).await.expect("in time").expect("it works");
        second.service.engines().set_draining("second", true).await.expect("it works");
        until_seen(&first, &["second"], EngineState::Draining).await;
        let mut watch = second.service.engines().watch_draining();
        timeout(PATIENCE, watch.wait_for(|is_draining| *is_draining)).await.expect("in time").expect("it works");
        let last = queue(&first, &peer, 1, 1).await;
        until(&first, &last[0], |result| result["outcome"].is_string()).await;
        assert_eq!((placed(&first), placed(&second)), (5, 4));
        peer.end();
        tokio::join!(first.stop(), second.stop());
    });
}

#[test]
fn sigterm_lets_calls_end_and_a_second_one_ends_them() {
    killed::beside(async |database: String| {
        let mut first = Engine::start("first", &database, "38470-38479").await;
        let second = Engine::start("second", &database, "38480-38489").await;
        let ready = second.await_agents(3, 60).await;
        let mut call = first.call(&ready[0]).await;
        assert!(hear(&mut call, 10).await, "it runs");
        first.signal(libc::SIGTERM);
        second.until_seen("first", "draining").await;
        assert!(hear(&mut call, 10).await, "it goes on");
        let refused = first.open(&ready[1].1).await.expect_err("it takes no more");
        assert!(refused.to_string().contains("503"), "{refused}");
        call.close(None).await.expect("it is open");
        while hear(&mut call, 1).await {}
        assert!(first.program.wait_for_end().await.success(), "{}", first.log());
        let ended = second.until_final(&ready[0].0).await;
        assert_eq!(ended["error_code"], SILENT, "{ended}");
        let (_, list) = second.ask("GET", "/v1/internal/engines", None).await;
        assert_eq!(list["engines"].as_array().map(Vec::len), Some(1), "it has left: {list}");

        let mut second = second;
        let mut call = second.call(&ready[1]).await;
        assert!(hear(&mut call, 10).await, "it runs");
        second.signal(libc::SIGTERM);
        let third = Engine::start("third", &database, "38490-38499").await;
        third.until_seen("second", "draining").await;
        second.signal(libc::SIGTERM);
        let ended = timeout(Duration::from_secs(20), second.program.wait_for_end()).await.expect("at once");
        assert!(ended.success(), "{}", second.log());
        let result = third.until_final(&ready[1].0).await;
        assert_eq!(result["error_code"], "ENGINE_SHUTDOWN", "{result}");
        third.program.kill().await;
    });
}
