//! Calls of one engine, seen and ended by others.

use std::collections::BTreeMap;

use ringer::clock::monotonic;
use serde_json::{Value, json};

use super::{Server, answer, engine, events, is_kept, long_call, onlooker, rest, running, soon, until};
use crate::calls::house::Watch;
use crate::databases::beside_a_server;
use crate::peers::Peer;

/// Reads a stream to its end; returns the events with the time at which each came.
async fn with_times(mut watch: Watch) -> Vec<((String, Value), u64)> {
    let mut seen = Vec::new();
    while let Some(event) = soon("the end", watch.next()).await {
        let now_ns = monotonic().0;
        seen.extend(is_kept(&event).then_some((event, now_ns)));
    }
    seen
}

/// Returns the events up to the notice that the engine with the call is out of reach, and that notice.
async fn until_away(watch: &mut Watch) -> (Vec<(String, Value)>, Value) {
    let mut seen = Vec::new();
    loop {
        let event = soon("the notice", watch.next()).await.expect("the stream goes on");
        if event.0 == "engine_unreachable" {
            return (seen, event.1);
        }
        seen.extend(is_kept(&event).then_some(event));
    }
}

/// Returns the 99th percentile of the times by which events came later to one stream than to another, in milliseconds.
fn p99_ms(first: &[((String, Value), u64)], other: &[((String, Value), u64)]) -> f64 {
    let at = |seen: &[((String, Value), u64)]| -> BTreeMap<i64, u64> {
        seen.iter().filter_map(|((_, data), at)| Some((data["seq"].as_i64()?, *at))).collect()
    };
    let (first, other) = (at(first), at(other));
    let late = |(seq, at): (&i64, &u64)| Some(at.saturating_sub(*first.get(seq)?) as f64 / 1e6);
    let mut late: Vec<f64> = other.iter().filter_map(late).collect();
    late.sort_by(f64::total_cmp);
    late[(late.len() * 99 / 100).min(late.len() - 1)]
}

#[test]
fn a_call_is_watched_and_ended_at_any_engine() {
    let nats = Server::start();
    beside_a_server(async |location| {
        let (bus, peer) = (nats.settings("calls"), Peer::answering(1));
        let a = engine(&location, "a", Some(&bus)).await;
        let [b, c] = [onlooker(&location, "b", Some(&bus)).await, onlooker(&location, "c", Some(&bus)).await];
        // What is stored at B is done by A.
        let id = long_call(&b, &peer).await;
        let run = a.result(&id).await["simulation_run_id"].to_string();
        let run = run.trim_matches('"');
        let (status, changes) = b.ask("GET", &format!("/v1/simulation-run/{run}/events"), Value::Null).await;
        assert_eq!(status, 200);
        let [mut at_a, mut at_b] = [a.watch(&id).await, b.watch(&id).await];
        running(&b, &id).await;
        let early = events(&mut at_b, 3).await;
        let own = events(&mut at_a, 3).await;
        assert_eq!(early, own, "B sees what A sees");
        // A watcher that comes late sees everything, once.
        let late = c.watch(&id).await;
        let (at_a, at_b, at_c) = (with_times(at_a), with_times(at_b), rest(late));
        let turns = async {
            until("turns at another engine", async || {
                let (status, turns) = answer(&c, "GET", &format!("/v1/simulation-result/{id}/turns")).await;
                status == 200 && turns["live"] == true
            })
            .await;
            let asked_ns = monotonic().0;
            let hung_up = b.post(&format!("/v1/simulation-result/{id}/hangup"), Value::Null).await;
            assert_eq!(hung_up["status"], "CONVERSATION_ENDED");
            asked_ns
        };
        let (seen_a, seen_b, seen_c, asked_ns) = tokio::join!(at_a, at_b, at_c, turns);
        let ended_ns = seen_b.last().expect("events").1;
        println!(
            "events across engines: p99 {:.1} ms later; the last event after a hang-up across engines: {:.1} ms",
            p99_ms(&seen_a, &seen_b),
            ended_ns.saturating_sub(asked_ns) as f64 / 1e6
        );
        let plain = |seen: Vec<((String, Value), u64)>| seen.into_iter().map(|(event, _)| event).collect::<Vec<_>>();
        let (seen_a, seen_b) = (plain(seen_a), plain(seen_b));
        assert_eq!(seen_a, seen_b, "B sees what A sees");
        assert_eq!(seen_c, [early, seen_b].concat(), "C has all of it");
        let numbers: Vec<_> = seen_c.iter().map(|(_, data)| data["seq"].as_i64().expect("a number")).collect();
        assert!(numbers.windows(2).all(|two| two[0] < two[1]), "each once, in order: {numbers:?}");
        let result = c.result(&id).await;
        assert_eq!((&result["status"], &result["end_reason"]), (&json!("COMPLETED"), &json!("api_hangup")), "{result}");
        let changes = axum::body::to_bytes(changes, 1 << 24).await.expect("it ends with the run");
        let changes = String::from_utf8(changes.to_vec()).expect("text");
        assert!(changes.contains("event: result") && changes.contains("event: end"), "{changes}");
        assert_eq!(a.engine.counters().calls().placed, 1, "one call");
        peer.end();
        tokio::join!(a.stop(), b.stop(), c.stop());
    });
}

#[test]
fn a_bus_that_is_gone_for_a_while_takes_nothing_away() {
    let mut nats = Server::start();
    beside_a_server(async |location| {
        let (bus, peer) = (nats.settings("gone"), Peer::answering(1));
        let a = engine(&location, "a", Some(&bus)).await;
        let b = onlooker(&location, "b", Some(&bus)).await;
        let id = long_call(&a, &peer).await;
        let [mut at_a, mut at_b] = [a.watch(&id).await, b.watch(&id).await];
        running(&b, &id).await;
        let mut seen_b = events(&mut at_b, 2).await;
        nats.kill();
        seen_b.extend(until_away(&mut at_b).await.0);
        let (status, refusal) = answer(&b, "POST", &format!("/v1/simulation-result/{id}/hangup")).await;
        let expect =
            json!({ "detail": "The call runs on engine 'a', which does not answer", "code": "ENGINE_NOT_REACHABLE" });
        assert_eq!((status, refusal), (409, expect));
        // The call goes on.
        let mut seen_a = events(&mut at_a, seen_b.len() + 2).await;
        nats.run();
        let missed = seen_a.len() - seen_b.len();
        seen_b.extend(events(&mut at_b, missed + 1).await);
        until("the order", async || answer(&b, "POST", &format!("/v1/simulation-result/{id}/hangup")).await.0 == 200)
            .await;
        let (rest_a, rest_b) = tokio::join!(rest(at_a), rest(at_b));
        seen_a.extend(rest_a);
        seen_b.extend(rest_b);
        assert_eq!(seen_a, seen_b, "nothing is missing, and nothing comes twice");
        assert_eq!(b.result(&id).await["end_reason"], "api_hangup");
        assert_eq!(a.engine.counters().calls().placed, 1, "one call");
        peer.end();
        tokio::join!(a.stop(), b.stop());
    });
}

#[test]
fn without_a_bus_a_call_of_another_engine_is_out_of_reach() {
    beside_a_server(async |location| {
        let peer = Peer::answering(2);
        let b = onlooker(&location, "b", None).await;
        let id = long_call(&b, &peer).await;
        let mut at_b = b.watch(&id).await;
        let a = engine(&location, "a", None).await;
        let at_a = a.watch(&id).await;
        running(&b, &id).await;
        let text = "The call runs on engine 'a'; set [bus] to reach it";
        let refusal = json!({ "detail": text, "code": "ENGINE_NOT_REACHABLE" });
        for (method, path) in [("GET", "events"), ("GET", "turns"), ("POST", "hangup")] {
            let found = answer(&b, method, &format!("/v1/simulation-result/{id}/{path}")).await;
            assert_eq!(found, (409, refusal.clone()), "{path}");
        }
        // A stream that was open before the call says it too.
        assert_eq!(until_away(&mut at_b).await, (Vec::new(), json!({ "detail": text })));
        a.post(&format!("/v1/simulation-result/{id}/hangup"), Value::Null).await;
        let (seen_a, seen_b) = tokio::join!(rest(at_a), rest(at_b));
        assert_eq!(seen_a, seen_b, "what was not told is read from the record");
        // What is stored at B is found by A, which has nothing to do.
        let id = long_call(&b, &peer).await;
        running(&b, &id).await;
        a.post(&format!("/v1/simulation-result/{id}/hangup"), Value::Null).await;
        rest(a.watch(&id).await).await;
        peer.end();
        tokio::join!(a.stop(), b.stop());
    });
}
