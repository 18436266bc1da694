//! Messages are believed from engines of one database alone; a job wakes the workers of other engines.

use std::sync::Arc;
use std::time::Duration;

use ringer::bus::{Channel, LiveBus, NatsBus, Terms};
use ringer::clock::Clock;
use ringer::config::Bus;
use ringer::tasks::Tasks;
use ringer_base::tls::Roots;
use serde_json::{Value, json};

use super::{Server, engine, events, long_call, onlooker, soon};
use crate::databases::beside_a_server;
use crate::peers::Peer;

/// Returns a channel of somebody who reaches the server, under a key.
async fn channel(settings: &Bus, name: &str, key: Vec<u8>, tasks: &Tasks) -> (Arc<NatsBus>, Channel) {
    let bus = NatsBus::connect(settings, &Roots::default(), name, tasks).await;
    let bus = Arc::new(bus.expect("the settings can be used"));
    let (prefix, again) = (settings.prefix.clone(), Duration::from_millis(100));
    let terms = Terms { prefix, name: name.to_owned(), key, again, clock: Clock::Real };
    (bus.clone(), Channel::new(bus, terms))
}

#[test]
fn a_job_wakes_other_engines_and_a_forged_order_has_no_effect() {
    let nats = Server::start();
    beside_a_server(async |location| {
        let (bus, peer, tasks) = (nats.settings("trust"), Peer::answering(1), Tasks::new());
        let a = onlooker(&location, "a", Some(&bus)).await;
        let b = engine(&location, "b", Some(&bus)).await;
        let key = a.service.store().bus_key().await.expect("there is one");
        assert_eq!(b.service.store().bus_key().await.as_ref(), Ok(&key), "one key for all engines");
        let (_, friend) = channel(&bus, "friend", key, &tasks).await;
        let (raw, stranger) = channel(&bus, "stranger", b"another key".to_vec(), &tasks).await;
        let mut wakes = friend.listen("wake.call").await;
        let mut orders =
            raw.subscribe(format!("trust.orders.{}", b.service.store().engine().await.expect("a name"))).await;
        // Its subscriptions are known to the server once its own messages come back.
        let mut own = raw.subscribe("trust.own".to_owned()).await;
        raw.publish("trust.own".to_owned(), Vec::new());
        soon("its own message", own.next()).await.expect("one");
        let id = long_call(&a, &peer).await;
        soon("the word of a job", wakes.next::<Value>()).await.expect("one");
        let mut at_a = a.watch(&id).await;
        soon("the call", at_a.until("RUNNING")).await;
        events(&mut at_a, 1).await;
        assert_eq!(b.engine.counters().calls().placed, 1, "B has taken what A has stored");
        // Somebody who reaches the server knows no key.
        let path = format!("orders.{}", b.service.store().engine().await.expect("a name"));
        let number: i64 = id.parse().expect("a number");
        let order = json!({ "HangUp": { "result_id": number, "reason": "api_hangup" } });
        assert_eq!(stranger.ask::<Value, Value>(&path, &order).await, None);
        let state = json!({ "feed": uuid::Uuid::nil(), "attempt": 1, "from": 0, "next": 1, "added": 1, "events":
            [{ "place": 0, "attempt": 1, "seq": 0, "event": "forged", "data": {} }] });
        stranger.publish(&format!("events.{id}.1"), &state);
        raw.publish(format!("trust.events.{id}.1"), b"\x01no message".to_vec());
        let dropped = |house: &crate::calls::house::House| {
            house.service.relay().expect("there is a bus").channel().count_dropped()[0]
        };
        assert_eq!(dropped(&b), ("forged", 2), "it was asked twice");
        assert_eq!(b.result(&id).await["status"], "RUNNING");
        // What the other engine asks for is done, and done once: a repeated message is no order.
        a.post(&format!("/v1/simulation-result/{id}/hangup"), Value::Null).await;
        let seen = super::rest(at_a).await;
        assert!(seen.iter().all(|(name, _)| name != "forged"), "{seen:?}");
        assert_eq!(dropped(&a), ("forged", 2), "an event, and what is no message");
        for _ in 0..2 {
            soon("the order of the stranger", orders.next()).await.expect("one");
        }
        let taken = soon("the order", orders.next()).await.expect("one");
        raw.publish(taken.subject, taken.bytes);
        super::until("the repeated order", async || {
            b.service.relay().expect("there is a bus").channel().count_dropped()[2] == ("repeated", 1)
        })
        .await;
        let page = super::answer_text(&b, "/metrics").await;
        assert!(
            page.contains("ringer_bus_up 1") && page.contains("ringer_bus_dropped_total{reason=\"forged\"} 2"),
            "{page}"
        );
        assert_eq!(a.result(&id).await["end_reason"], "api_hangup");
        tasks.stop().await;
        peer.end();
        tokio::join!(a.stop(), b.stop());
    });
}
