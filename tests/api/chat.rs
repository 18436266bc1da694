//! Agents behind a chat-completions server.

use serde_json::{Value, json};

use super::receiver::Receiver;
use super::talk::{Talk, queue};
use super::texts::reply;
use super::world::World;
use crate::json::with;

fn chat_reply(content: Value) -> (u16, String) {
    reply(json!({ "choices": [{ "index": 0, "message": content, "finish_reason": "stop" }] }))
}

fn chat_agent(server: &Receiver) -> Value {
    json!({ "P12_base_url": server.url("/v1"), "P12_api_key": "sesame", "P12_model": "m1", "system_prompt": "You book tables." })
}

#[tokio::test]
async fn an_agent_behind_chat_completions() {
    let call = json!({ "id": "c", "type": "function", "function": { "name": "book", "arguments": "{\"seats\":2}" } });
    let answers = vec![
        chat_reply(json!({ "role": "assistant", "content": "For how many?" })),
        chat_reply(json!({ "role": "assistant", "content": "Booked.", "tool_calls": [call] })),
        chat_reply(json!({ "role": "assistant", "content": "Bye." })),
    ];
    let server = Receiver::answering(answers).await;
    let talk = Talk::of(World::at_work(None).await, chat_agent(&server), json!({}), json!({})).await;
    let result = talk.until("COMPLETED").await;
    let asked = server.requests();
    assert_eq!(asked.len(), 3);
    assert_eq!(
        (asked[0].path.as_str(), &asked[0].headers["authorization"]),
        ("/v1/chat/completions", &"Bearer sesame".parse().expect("a value"))
    );
    assert_eq!(asked[0].headers["x-simulation-result-id"], talk.id.as_str());
    let system = json!({ "role": "system", "content": "You book tables." });
    let user = |text: &str| json!({ "role": "user", "content": text });
    let first = [system.clone(), user("Hello. I want a table.")];
    assert_eq!(asked[0].json(), json!({ "model": "m1", "messages": first, "stream": false }));
    let second = json!([system, user("Hello. I want a table."), { "role": "assistant", "content": "For how many?" }, user("For two.")]);
    assert_eq!(asked[1].json()["messages"], second);
    assert_eq!(asked[2].json()["messages"][5], user("Thank you, goodbye."));
    let call = json!([{ "parameters": { "seats": 2 }, "output": null, "start_offset_ms": 0 }]);
    assert_eq!((&result["tool_calls"][0]["name"], &result["tool_calls"][0]["actual"]), (&json!("book"), &call));
    assert_eq!(
        (&result["end_reason"], &result["metadata"]["transport"]),
        (&json!("dh_end_call"), &json!("HTTP chat completions"))
    );
    assert!(!result.to_string().contains("sesame"));
}

#[tokio::test]
async fn an_agent_behind_chat_completions_may_be_asked_to_begin() {
    let answers = ["Good day.", "For how many?", "Booked.", "Bye."];
    let answers = answers.map(|text| chat_reply(json!({ "content": text })));
    let server = Receiver::answering(answers.to_vec()).await;
    let human = json!({ "speaks_first_config": { "speaks_first": false } });
    let talk = Talk::of(World::at_work(None).await, chat_agent(&server), json!({}), human).await;
    talk.until("COMPLETED").await;
    assert_eq!(server.requests()[0].json()["messages"], json!([{ "role": "system", "content": "You book tables." }]));
    assert_eq!(talk.part("transcript").await["entries"][0]["utterance"], "Good day.");
}

#[tokio::test]
async fn replies_in_parts_are_words_and_replies_of_unknown_forms_are_no_silence() {
    let part = |kind: &str, text: &str| json!({ "type": kind, "text": text });
    let answers = vec![
        chat_reply(json!({ "content": [part("text", "For how "), part("output_text", "many?")] })),
        chat_reply(json!({ "content": null, "refusal": "I cannot say." })),
        chat_reply(json!({ "content": "Bye." })),
    ];
    let server = Receiver::answering(answers).await;
    let talk = Talk::of(World::at_work(None).await, chat_agent(&server), json!({}), json!({})).await;
    talk.until("COMPLETED").await;
    let transcript = talk.part("transcript").await;
    let said = |at: usize| transcript["entries"][at]["utterance"].clone();
    assert_eq!((said(1), said(3)), (json!("For how many?"), json!("I cannot say.")), "{transcript}");
    let fine = || chat_reply(json!({ "content": "For how many?" }));
    for (content, form) in [(json!(5), "a number"), (json!([{ "type": "card" }]), "a list without text")] {
        let unknown = vec![chat_reply(json!({ "content": content })); 4];
        let server = Receiver::answering([vec![fine()], unknown].concat()).await;
        let talk = Talk::of(World::at_work(None).await, chat_agent(&server), json!({}), json!({})).await;
        for retry in 0..3 {
            server.wait_for(retry + 2).await;
            talk.retry(1000 << retry).await;
        }
        let result = talk.until("CALL_DROPPED").await;
        assert_eq!(result["error_code"], "P12_AGENT_ERROR");
        assert!(result.to_string().contains(&format!("content of an unknown form: {form}")), "{result}");
    }
}

#[tokio::test]
async fn troubles_of_chat_completions_have_their_codes() {
    let fine = || chat_reply(json!({ "content": "For how many?" }));
    let of = |status: u16, count: usize| vec![(status, String::new()); count];
    for (answers, retries, end, code) in [
        (of(401, 1), 0, "NO_CONNECTION", "P12_AUTH_FAILED"),
        (of(403, 1), 0, "NO_CONNECTION", "P12_AUTH_FAILED"),
        (of(429, 4), 3, "NO_CONNECTION", "CUSTOMER_CONCURRENCY_LIMIT"),
        (of(500, 4), 3, "NO_CONNECTION", "P12_SESSION_SETUP_FAILED"),
        (vec![(200, "{}".to_owned()); 4], 3, "NO_CONNECTION", "P12_SESSION_SETUP_FAILED"),
        ([vec![fine()], of(404, 4)].concat(), 3, "CALL_DROPPED", "P12_AGENT_ERROR"),
        ([of(503, 1), vec![fine()], of(401, 1)].concat(), 1, "CALL_DROPPED", "P12_AUTH_FAILED"),
    ] {
        let (before, count) =
            (answers.iter().take_while(|(status, body)| *status == 200 && body.len() > 2).count(), answers.len());
        let server = Receiver::answering(answers).await;
        let talk = Talk::of(World::at_work(None).await, chat_agent(&server), json!({}), json!({})).await;
        for retry in 0..retries {
            server.wait_for(before + retry + 1).await;
            talk.retry(1000 << retry).await;
        }
        let result = talk.until(end).await;
        assert_eq!((&result["error_code"], server.requests().len()), (&json!(code), count), "{code}");
    }
    for (agent, code) in [
        (json!({ "P12_base_url": "http://127.0.0.1:9" }), "MISSING_P12_CONFIGURATION"),
        (json!({ "connection_type": "P12", "P12_model": "m" }), "MISSING_P12_CONFIGURATION"),
        (json!({ "phone_number": "+15550002222" }), "SMS_NOT_CONFIGURED"),
    ] {
        let talk = Talk::of(World::at_work(None).await, agent.clone(), json!({}), json!({})).await;
        assert_eq!(talk.until("NO_CONNECTION").await["error_code"], code, "{agent}");
    }
}

#[tokio::test]
async fn agents_that_nothing_is_set_up_for_say_what_is_missing() {
    let p6 = json!({ "P6_app_id": "a", "P6_deployment_id": "d" });
    let p8 = json!({ "P8_base_url": "https://203.0.113.5", "P8_domain_code": "c", "P8_agent_name": "n" });
    let stored = json!({ "P6_credentials": "k" });
    for (agent, stored, code, owner) in [
        (&json!({ "P8_base_url": "https://203.0.113.5" }), &json!({}), "MISSING_P8_CONFIGURATION", "agent_owner"),
        (&p8, &json!({}), "P8_ADAPTER_NOT_CONFIGURED", "engine"),
        (&p6, &json!({}), "MISSING_P6_INTEGRATION", "agent_owner"),
        (&p6, &stored, "P6_ADAPTER_NOT_CONFIGURED", "engine"),
        (&json!({ "mode": "VOICE", "P2_agent_name": "n" }), &json!({}), "MISSING_P2_INTEGRATION", "agent_owner"),
        (&json!({ "mode": "VOICE", "P1_agent_name": "n" }), &json!({}), "MISSING_P1_INTEGRATION", "agent_owner"),
        (
            &json!({ "mode": "VOICE", "websocket_url": "ws://127.0.0.1:1" }),
            &json!({}),
            "WEBSOCKET_CONNECT_FAILED",
            "agent_owner",
        ),
        (&json!({ "mode": "EMAIL", "email_address": "a@b.example" }), &json!({}), "EMAIL_NOT_CONFIGURED", "engine"),
    ] {
        let world = World::at_work(None).await;
        world.call("PATCH", "/v1/integrations", stored.clone()).await;
        let talk = Talk::of(world, agent.clone(), json!({}), json!({})).await;
        let result = talk.until("NO_CONNECTION").await;
        assert_eq!((&result["error_code"], &result["error_owner"]), (&json!(code), &json!(owner)), "{agent} {stored}");
    }
}

#[tokio::test]
async fn a_run_names_the_connection_of_an_agent_that_has_none() {
    let url = json!({ "P1_url": "ws://127.0.0.1:1" });
    for (run, stored, code, lacking) in [
        (json!({}), json!({}), "NO_CONNECTION_TYPE", "no connection_type"),
        (json!({ "websocket_url": "ws://127.0.0.1:1" }), json!({}), "WEBSOCKET_CONNECT_FAILED", ""),
        (json!({ "P1_agent_name": "n" }), json!({}), "MISSING_P1_INTEGRATION", "P1_url"),
        (json!({ "P1_agent_name": "n" }), url, "MISSING_P1_INTEGRATION", "P1_api_key"),
    ] {
        let world = World::at_work(None).await;
        world.call("PATCH", "/v1/integrations", stored).await;
        let (simulation, _) = queue(&world, json!({ "mode": "VOICE" }), json!({}), json!({})).await;
        let body = with(json!({ "simulation_id": simulation }), run.clone());
        let answer = world.post("/v1/queue-simulation-run", body).await;
        let id = answer["simulation_result_ids"][0].as_str().expect("a result").to_owned();
        let feed = world.service.feed(id.parse().expect("an id")).expect("calls are made here");
        let talk = Talk { world, id, feed };
        let result = talk.until("NO_CONNECTION").await;
        assert_eq!(result["error_code"], code, "{run}");
        assert!(result["error_message"].as_str().is_some_and(|text| text.contains(lacking)), "{result}");
    }
}
