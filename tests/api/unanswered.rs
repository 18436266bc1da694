//! Text conversations whose agent is late, does not answer, or answers the last message.

use serde_json::{Value, json};

use super::receiver::{HANGS, Receiver};
use super::talk::Talk;
use super::world::World;

fn reply(text: &str) -> (u16, String) {
    (200, json!({ "message": text }).to_string())
}

fn hanging() -> (u16, String) {
    (HANGS, String::new())
}

/// A conversation of at most 20 s with an agent that answers these requests.
async fn talk(hook: &Receiver, human: Value) -> Talk {
    let agent = json!({ "http_webhook": hook.url("/hook"), "http_webhook_sync_reply": true });
    let simulation = json!({ "max_call_duration": 20, "max_call_duration_units": "seconds" });
    Talk::of(World::at_work(None).await, agent, simulation, human).await
}

fn steps() -> Value {
    let say = |text: &str| json!({ "speaker": "user", "exact_message": text });
    let expect = json!({ "speaker": "agent", "within_ms": 5000 });
    json!({ "enriched_playback": [say("One."), expect, say("Two."), expect] })
}

#[tokio::test]
async fn an_agent_that_never_answers_is_given_up_at_the_longest_time() {
    let hook = Receiver::answering(vec![hanging()]).await;
    let talk = talk(&hook, steps()).await;
    hook.wait_for(1).await;
    talk.retry(20_000).await;
    let result = talk.until("NO_ANSWER").await;
    let outcome = (&result["error_code"], &result["error_owner"], &result["end_reason"]);
    assert_eq!(outcome, (&json!("NO_ANSWER"), &json!("agent_owner"), &json!("no_answer")), "{result}");
    assert_eq!(result["error_message"], "The agent did not answer the first message within max_call_duration");
}

/// An answer that is not taken is no silence, however the last attempt ends.
#[tokio::test]
async fn an_agent_that_fails_is_not_called_silent() {
    let hook = Receiver::answering(vec![(500, String::new()), hanging()]).await;
    let talk = talk(&hook, steps()).await;
    hook.wait_for(1).await;
    talk.retry(1000).await;
    hook.wait_for(2).await;
    talk.retry(19_000).await;
    let result = talk.until("NO_CONNECTION").await;
    let outcome = (&result["error_code"], &result["error_message"]);
    assert_eq!(outcome, (&json!("HTTP_WEBHOOK_FAILED"), &json!("http_webhook answered 500")), "{result}");
}

#[tokio::test]
async fn silence_after_a_later_message_is_the_agents() {
    let hook = Receiver::answering(vec![reply("Yes."), hanging()]).await;
    let talk = talk(&hook, steps()).await;
    hook.wait_for(2).await;
    talk.retry(20_000).await;
    let result = talk.until("COMPLETED").await;
    assert_eq!((&result["end_reason"], &result["error_code"]), (&json!("max_duration"), &Value::Null), "{result}");
    let played = &result["metadata"]["playback"];
    assert_eq!((&played[0]["status"], &played[1]["status"]), (&json!("passed"), &json!("failed")), "{played}");
    assert_eq!(played[1]["reason"], "the agent said nothing within 5000 ms");
    let transcript = talk.part("transcript").await;
    let said: Vec<&Value> =
        transcript["entries"].as_array().expect("a list").iter().map(|line| &line["utterance"]).collect();
    assert_eq!(said, ["One.", "Yes.", "Two."]);
}

/// The next message goes out in the millisecond in which the late answer came.
#[tokio::test]
async fn a_late_answer_is_late_whatever_goes_out_after_it() {
    let hook = Receiver::answering(vec![hanging_until_told(), reply("Yes.")]).await;
    let talk = talk(&hook, steps()).await;
    hook.wait_for(1).await;
    talk.advance(8000);
    hook.release();
    let result = talk.until("COMPLETED").await;
    let played = &result["metadata"]["playback"];
    assert_eq!(played[0]["reason"], "the agent began after 8000 ms, within_ms is 5000", "{played}");
    assert_eq!((&played[0]["status"], &played[1]["status"]), (&json!("failed"), &json!("passed")), "{played}");
    assert_eq!(result["latency"], json!([8.0, 0.0]));
}

#[tokio::test]
async fn the_answer_to_the_last_message_is_kept() {
    let hook = Receiver::answering(vec![reply("For how many?"), reply("It is booked."), reply("Goodbye!")]).await;
    let human = json!({ "intent": "I want a table. For two." });
    let talk = talk(&hook, human).await;
    let result = talk.until("COMPLETED").await;
    let transcript = talk.part("transcript").await;
    let said = transcript["entries"].as_array().expect("a list");
    let of_agent = said.iter().filter(|line| line["speaker"] == "AGENT").count();
    assert!(hook.requests().last().is_some_and(|last| last.json()["end_conversation"] == true), "{result}");
    assert_eq!((of_agent, hook.requests().len()), (3, 3), "each message has its answer: {transcript}");
    assert_eq!(said.last().map(|line| &line["utterance"]), Some(&json!("Goodbye!")));
    assert_eq!(result["latency"].as_array().map(Vec::len), Some(3));
    assert_eq!((&result["end_reason"], &result["conversation_ended_by"]), (&json!("dh_end_call"), &json!("USER")));
}

fn hanging_until_told() -> (u16, String) {
    (super::receiver::WAITS, json!({ "message": "Late." }).to_string())
}
