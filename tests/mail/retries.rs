//! Threads on a clock that the test moves: a relay that says "later", and a thread that lasts days.

use std::sync::Arc;
use std::time::Duration;

use ringer::config::{Email, Secret};
use ringer::transport::mail::Arrival;
use serde_json::{Value, json};
use tokio::time::{interval, timeout};

use super::house::{AGENT, DOMAIN, agent};
use crate::api::talk::Talk;
use crate::api::world::World;
use crate::json::with;
use crate::peers::python::PythonServer;
use crate::program::PATIENCE;

/// One thread of a world at work, with the agent that is written to.
pub(super) struct Thread {
    pub talk: Talk,
    pub agent: PythonServer,
}

impl Thread {
    /// Begins a thread with an agent whose relay does as `script` says.
    pub(super) async fn begin(script: Value, simulation: Value, human: Value) -> Thread {
        let (agent, port) = agent().await;
        agent.tell("/script", script).await;
        let smtp_url = Some(Secret::new(format!("smtp://127.0.0.1:{port}")));
        let email = Email { smtp_url, inbound_domain: Some(DOMAIN.to_owned()), ..Email::default() };
        let world = World::at_work_with(None, |settings| settings.email = Arc::new(email)).await;
        let desk = json!({ "mode": "EMAIL", "email_address": AGENT });
        let talk = Talk::of(world, desk, simulation, with(json!({ "name": "Ann Lee" }), human)).await;
        Thread { talk, agent }
    }

    /// Waits until so many own mails are stored with the thread, and returns them.
    async fn mails(&self, count: usize) -> Vec<Value> {
        let path = format!("/v1/simulation-result/{}/mails", self.talk.id);
        let mut looks = interval(Duration::from_millis(10));
        let came = timeout(PATIENCE, async {
            loop {
                looks.tick().await;
                let answer = self.talk.world.send("GET", &path, &[], Vec::new()).await;
                let mut mails = answer.json()["mails"].as_array().cloned().unwrap_or_default();
                mails.retain(|mail| mail["direction"] == "sent");
                if mails.len() >= count {
                    return mails;
                }
            }
        });
        came.await.unwrap_or_else(|_| panic!("{count} mails"))
    }

    /// Takes in a mail of the agent that answers the latest one.
    pub(super) async fn answer(&self, number: usize, text: &str) {
        self.take(AGENT, &format!("{number}@agent.example"), text).await;
    }

    /// Wakes the thread up by a mail of a stranger.
    async fn wake(&self) {
        self.take("stranger@other.example", &format!("{}@other.example", ringer::clock::new_id()), "Hello?").await;
    }

    async fn take(&self, from: &str, message_id: &str, text: &str) {
        let mails = self.mails(1).await;
        let own = mails.last().expect("an own mail");
        let to = own["from"].as_str().expect("an address").to_owned();
        let head = format!("From: {from}\r\nTo: {to}\r\nMessage-ID: <{message_id}>\r\n");
        let raw = format!("{head}In-Reply-To: <{}>\r\n\r\n{text}\r\n", own["message_id"].as_str().expect("an id"));
        let arrival =
            Arrival { source: None, envelope_from: String::new(), recipients: vec![to], raw: raw.into_bytes() };
        self.talk.world.service.runs().take_mail(arrival).await.expect("it is stored");
    }

    /// Goes through a number of refused attempts, and moves the clock to each next one: not a millisecond before.
    async fn go_through_refusals(&self, waits_ms: &[i64]) {
        for (at, wait_ms) in waits_ms.iter().enumerate() {
            let mails = self.mails(at + 1).await;
            assert!(mails.iter().all(|mail| mail["kind"] == "unsent"), "{mails:?}");
            assert!(mails[at]["why"].as_str().is_some_and(|why| why.contains("451")), "{mails:?}");
            // Whatever wakes it up before its time.
            self.talk.advance(wait_ms - 1);
            self.wake().await;
            self.talk.advance(1);
            self.wake().await;
        }
    }
}

/// Returns the times of day of mails.
fn times(mails: &[Value]) -> Vec<&str> {
    mails.iter().map(|mail| &mail["at"].as_str().expect("a time")[11..19]).collect()
}

/// Waits between the attempts, in milliseconds.
const WAITS_MS: [i64; 4] = [60_000, 120_000, 180_000, 240_000];
/// Times of the attempts.
const ATTEMPTS: [&str; 5] = ["09:00:00", "09:01:00", "09:03:00", "09:06:00", "09:10:00"];

#[tokio::test]
async fn a_relay_that_refuses_for_a_while_gets_each_mail_once() {
    for at in ["RCPT", "DATA"] {
        let script = json!({ "refuse": "451 4.7.1 come back later", "refusals": 4, "at": at });
        let thread = Thread::begin(script, json!({ "max_turns": 1 }), json!({})).await;
        thread.go_through_refusals(&WAITS_MS).await;
        thread.talk.event("message.sent", 1).await;
        let mails = thread.mails(5).await;
        assert_eq!((times(&mails), &mails[4]["kind"]), (ATTEMPTS.to_vec(), &json!("sent")), "{at}");
        let ids: Vec<&Value> = mails.iter().map(|mail| &mail["message_id"]).collect();
        assert!(ids.iter().all(|id| *id == ids[0]), "one mail is tried again: {ids:?}");
        // Hours later it is not sent again.
        thread.talk.advance(3_600_000);
        thread.answer(1, "It is booked.").await;
        thread.talk.until("COMPLETED").await;
        let seen = thread.agent.look().await;
        let taken = seen["mails"].as_array().expect("mails");
        assert_eq!((taken.len(), &seen["refused"]), (1, &json!(4)), "{at}: {seen}");
    }
}

#[tokio::test]
async fn a_relay_that_refuses_for_an_hour_is_given_up_after_the_fifth_attempt() {
    let script = json!({ "refuse": "451 4.7.1 come back later", "refusals": 99 });
    let thread = Thread::begin(script, json!({}), json!({})).await;
    thread.go_through_refusals(&WAITS_MS).await;
    let result = thread.talk.until("NO_CONNECTION").await;
    assert_eq!((&result["error_code"], &result["error_owner"]), (&json!("EMAIL_SEND_FAILED"), &json!("provider")));
    assert!(result["error_message"].as_str().is_some_and(|message| message.contains("451")), "{result}");
    assert_eq!(times(&thread.mails(5).await), ATTEMPTS);
    thread.talk.advance(3_600_000);
    let seen = thread.agent.look().await;
    assert_eq!((&seen["mails"], &seen["refused"]), (&json!([]), &json!(5)));
}
