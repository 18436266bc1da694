//! Conversations by text messages, through a carrier.

use std::sync::Arc;

use ringer::config::{Secret, Sms};
use serde_json::{Value, json};
use url::form_urlencoded;

use super::receiver::Receiver;
use super::talk::Talk;
use super::world::World;

/// Returns a world with a carrier, a Digital Human's number and an agent's.
async fn with_carrier(carrier: &Receiver, kind: &str, human: Value) -> Talk {
    let sms = Sms {
        send_url: Some(Secret::new(carrier.url("/send"))),
        send_headers: [("Authorization".to_owned(), Secret::new("Basic abc".into()))].into(),
        id_pointer: Some("/id".into()),
        inbound_fields: [("text".to_owned(), "Body".to_owned())].into(),
        inbound_token: Some(Secret::new("open".into())),
        ..Sms::default()
    };
    let world = World::at_work_with(None, |settings| settings.sms = Arc::new(sms)).await;
    let agent = json!({ "phone_number": AGENT, "type": kind });
    let mut human = human;
    human["outbound_text_number"] = OWN.into();
    Talk::of(world, agent, json!({}), human).await
}

const AGENT: &str = "+15550002222";
const OWN: &str = "+15550001111";

impl Talk {
    /// Delivers a message of the agent as the carrier does, as a form.
    async fn deliver(&self, text: &str, id: &str) {
        let form = form_urlencoded::Serializer::new(String::new())
            .extend_pairs([("from", AGENT), ("to", OWN), ("Body", text), ("message_id", id)])
            .finish();
        let headers =
            [("x-api-key", ""), ("x-carrier-token", "open"), ("content-type", "application/x-www-form-urlencoded")];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let answer = self.world.send("POST", "/v1/inbound-sms", &headers, form.into_bytes()).await;
        assert_eq!((answer.status, answer.json()), (200, json!({ "status": "accepted" })), "{text}");
    }
}

#[tokio::test]
async fn a_conversation_by_text_messages() {
    let carrier = Receiver::answering(vec![(503, String::new()), (200, r#"{"id":"c7"}"#.to_owned())]).await;
    let talk = with_carrier(&carrier, "INBOUND", json!({ "expected_tool_calls": [] })).await;
    carrier.wait_for(1).await;
    talk.retry(1000).await;
    let first = carrier.wait_for(2).await;
    let body = first.json();
    assert_eq!(
        (&body["from"], &body["to"], &body["text"]),
        (&json!(OWN), &json!(AGENT), &json!("Hello. I want a table."))
    );
    assert_eq!(
        (&first.headers["authorization"], body["message_id"].as_str().map(str::len)),
        (&"Basic abc".parse().expect("a value"), Some(36))
    );
    talk.event("message.sent", 1).await;
    let document: Value = serde_json::from_str(&talk.feed.events_from(0).0[0].data).expect("an event");
    assert_eq!(document["data"]["message_id"], "c7");
    // Two messages within 8 s are one turn.
    talk.advance(3000);
    talk.deliver("One moment.", "1").await;
    talk.deliver("One moment.", "1").await;
    talk.event("message.received", 1).await;
    talk.advance(5000);
    talk.deliver("For how many?", "2").await;
    talk.event("message.received", 2).await;
    talk.retry(8000).await;
    assert_eq!(carrier.wait_for(3).await.json()["text"], "For two.");
    talk.event("message.sent", 2).await;
    talk.deliver("Booked & done.", "3").await;
    talk.event("message.received", 3).await;
    talk.retry(8000).await;
    assert_eq!(carrier.wait_for(4).await.json()["text"], "Thank you, goodbye.");
    let result = talk.until("COMPLETED").await;
    assert_eq!(result["latency"], json!([3.0, 0.0]));
    let entries = talk.part("transcript").await["entries"].clone();
    assert_eq!(
        (&entries[1]["utterance"], &entries[3]["utterance"]),
        (&json!("One moment.\nFor how many?"), &json!("Booked & done."))
    );
    talk.deliver("Nobody is there.", "4").await;
    assert!(!result.to_string().contains("Basic abc"));
    let log = String::from_utf8(talk.evidence().await.remove("http.log").expect("a log")).expect("text");
    let sent: Vec<&str> =
        log.lines().filter_map(|line| line.split_once(" sent POST ")?.1.split_once(',')).map(|it| it.0).collect();
    let of = |status: u16| format!("{} {status}", carrier.url(""));
    assert_eq!(sent, [of(503), of(200), of(200), of(200)], "its path is secret");
    assert_eq!(log.lines().filter(|line| line.contains(" received text ")).count(), 3);
}

#[tokio::test]
async fn two_numbers_hold_one_conversation() {
    let carrier = Receiver::new(&[]).await;
    let talk = with_carrier(&carrier, "OUTBOUND", json!({})).await;
    talk.until("READY").await;
    let simulation = talk.result().await["simulation_id"].to_string();
    let ask = async |terminate: bool| {
        let body = json!({ "simulation_id": simulation, "terminate_overlapping_simulations": terminate });
        let answer = talk.world.send("POST", "/v1/queue-sms-simulation-run", &[], body.to_string().into_bytes()).await;
        (answer.status, answer.json())
    };
    let detail = json!({ "detail": "Another conversation is running between these numbers" });
    assert_eq!(ask(false).await, (409, detail));
    let (status, answer) = ask(true).await;
    let human = talk.result().await["digital_human_id"].clone();
    let ended = json!([{ "simulation_result_id": talk.id, "digital_human_id": human, "phone_number": OWN }]);
    assert_eq!((status, &answer["terminated_conversations"]), (200, &ended));
    talk.until("CANCELLED").await;
    let id = answer["simulation_result_ids"][0].as_str().expect("an id").to_owned();
    let feed = talk.world.service.feed(id.parse().expect("an id")).expect("calls are made here");
    let next = Talk { id, feed, world: talk.world };
    next.until("READY").await;
    next.deliver("Hi, it is the desk.", "1").await;
    next.event("message.received", 1).await;
    next.retry(8000).await;
    assert_eq!(carrier.wait_for(1).await.json()["text"], "I want a table.");
    next.event("message.sent", 1).await;
    let body = json!({ "simulation_id": simulation, "terminate_overlapping_simulations": true });
    let answer = next.world.post("/v1/queue-sms-simulation-run", body).await;
    assert_eq!(answer["terminated_conversations"][0]["simulation_result_id"], json!(next.id));
    assert_eq!(next.until("COMPLETED").await["end_reason"], "api_hangup");
}

#[tokio::test]
async fn who_delivers_text_messages_must_be_the_carrier() {
    let carrier = Receiver::new(&[]).await;
    let talk = with_carrier(&carrier, "OUTBOUND", json!({})).await;
    let body = json!({ "from": 15550002222i64, "to": OWN, "Body": "Hi." });
    let send = async |path: &str, token: &str, body: &Value| {
        let headers = [("x-api-key".to_owned(), String::new()), ("x-carrier-token".to_owned(), token.to_owned())];
        talk.world.send("POST", path, &headers, body.to_string().into_bytes()).await
    };
    for (path, token, expect) in [
        ("/v1/inbound-sms", "", 401),
        ("/v1/inbound-sms", "shut", 401),
        ("/v1/inbound-sms?token=shut", "", 401),
        ("/v1/inbound-sms?token=open", "shut", 401),
        ("/v1/inbound-sms?token=open", "", 200),
        ("/v1/inbound-sms", "open", 200),
    ] {
        assert_eq!(send(path, token, &body).await.status, expect, "{path} {token}");
    }
    let bare = send("/v1/inbound-sms", "open", &json!({ "from": AGENT, "to": OWN, "text": "Hi." })).await;
    let missing = json!({ "type": "missing", "loc": ["body", "Body"], "msg": "Field required",
        "input": { "from": AGENT, "to": OWN, "text": "Hi." } });
    assert_eq!((bare.status, bare.json()), (422, json!({ "detail": [missing] })));
    let listed = send("/v1/inbound-sms", "open", &json!({ "from": AGENT, "Body": ["Hi."], "message_id": null })).await;
    let items = listed.json()["detail"].as_array().expect("items").clone();
    let places = items.iter().map(|item| json!([item["type"], item["loc"]]));
    let expect = json!([["missing", ["body", "to"]], ["string_type", ["body", "Body"]]]);
    assert_eq!((listed.status, Value::from_iter(places)), (422, expect));
    let unset = World::new().await;
    assert_eq!(unset.send("POST", "/v1/inbound-sms?token=", &[], b"{}".to_vec()).await.status, 401);
}
