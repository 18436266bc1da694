//! Traces of calls with agents that are reached by a WebSocket, and the trace context that these are told.

use serde_json::json;
use tokio_tungstenite::tungstenite::Message;

use super::server::{Line, Server, speech};
use crate::calls::house::House;
use crate::calls::traced::{Collector, check_tree};

#[tokio::test(flavor = "multi_thread")]
async fn the_handshake_tells_the_call_and_that_of_a_carrier_does_not() {
    let server = Server::start(|mut line: Line| async move {
        line.send(Message::binary(speech(0.5))).await;
        line.until_end().await;
    })
    .await;
    let collector = Collector::start().await;
    let carrier = "[websocket.dialects.carrier]\nkind = 'raw_pcm16'\ncarrier_headers_only = true\n";
    let house = House::with_trunks(&format!("{carrier}{}", collector.section(""))).await;
    for (dialect, name, is_told) in [(json!(null), "own", true), (json!("carrier"), "carrier", false)] {
        let agent = json!({ "name": name, "websocket_url": server.url(), "websocket_dialect": dialect });
        let (_, ids) = house.queue(agent, json!({}), &[json!({})]).await;
        house.events(&ids[0]).await;
        let result = house.result(&ids[0]).await;
        let told = server.what_came().header("traceparent").map(str::to_owned);
        assert_eq!(told.is_some(), is_told, "{name}: {told:?}");
        let spans = collector.spans_of(&result).await;
        let call = spans.one("call");
        let [trace, id] = ["trace", "id"].map(|part| call[part].as_str().expect("a text"));
        assert!(told.is_none_or(|told| told == format!("00-{trace}-{id}-01")), "{call}");
    }
    house.stop().await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_are_sent_only_where_the_settings_say_so() {
    let server = Server::start(|mut line: Line| async move {
        line.send(Message::binary(speech(0.8))).await;
        line.until_end().await;
    })
    .await;
    let collector = Collector::start().await;
    for (content, is_private) in [(true, false), (true, true), (false, false)] {
        let section = collector.section(if content { "content = true" } else { "" });
        let house = House::hearing(&section, "call 030 123456 back").await;
        let agent = json!({ "websocket_url": server.url(), "redact_pii": is_private });
        let (_, ids) = house.queue(agent, json!({ "max_call_duration": 4 }), &[json!({})]).await;
        house.events(&ids[0]).await;
        let result = house.result(&ids[0]).await;
        let spans = collector.spans_of(&result).await;
        check_tree(&house, &result, &spans).await;
        let (caller, agent) = (spans.words("digital_human"), spans.words("agent"));
        assert_eq!(caller.contains("table"), content, "the intent is said: {caller:?}");
        assert_eq!(agent.contains("123456"), content && !is_private, "{agent:?}");
        assert_eq!(agent.contains("[PHONE]") || agent.contains("[NUMBER]"), is_private, "{agent:?}");
        house.stop().await;
    }
    server.stop().await;
}
