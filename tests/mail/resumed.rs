//! Threads that go on after a kill, a stop, and in another engine. None of their mails is sent twice.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use ringer::store::Location;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::house::{House, Sender, agent, free_port};
use crate::databases::beside_a_server;

/// Checks that every mail has come once, and that so many have.
fn check_once(mails: &[Value], count: usize) {
    let of = |name: &str| mails.iter().map(|mail| mail["headers"][name].to_string()).collect::<BTreeSet<_>>();
    let texts: BTreeSet<String> = mails.iter().map(|mail| mail["text"].to_string()).collect();
    assert_eq!((mails.len(), of("Message-ID").len(), texts.len()), (count, count, count), "{mails:?}");
}

/// Holds a thread in which `between` happens while the agent is silent, and then again.
async fn hold(mut house: House, between: impl AsyncFn(&mut House)) {
    let id = house.queue(json!({}), json!({})).await;
    house.mails(1).await;
    between(&mut house).await;
    let to = house.mails(1).await[0]["from"].clone();
    assert_eq!(house.send(json!({ "to": [to], "text": "For how many?" })).await, 250);
    // The mail is stored, whatever becomes of who has acknowledged it.
    between(&mut house).await;
    house.mails(2).await;
    house.script(&["It is booked."], json!({})).await;
    assert_eq!(house.send(json!({ "to": [to], "text": "At which hour?" })).await, 250);
    let result = house.until(&id, "COMPLETED").await;
    assert_eq!((&result["end_reason"], &result["error_code"]), (&json!("dh_end_call"), &Value::Null));
    check_once(&house.mails(4).await, 4);
    let lines = house.lines(&id).await;
    assert_eq!(lines.len(), 7, "{lines:?}");
}

#[tokio::test]
async fn a_thread_goes_on_after_kills() {
    hold(House::start().await, async |house| {
        house.kill().await;
        house.run().await;
    })
    .await;
}

#[tokio::test]
async fn a_thread_goes_on_after_stops() {
    hold(House::start().await, async |house| {
        house.stop().await;
        house.run().await;
    })
    .await;
}

#[tokio::test]
async fn two_hundred_mails_at_once_are_kept_and_none_is_lost_by_a_kill() {
    let mut house = House::start().await;
    let id = house.queue(json!({}), json!({})).await;
    let to = house.mails(1).await[0]["from"].clone();
    let many = json!({ "port": house.listens, "from": "thief@evil.example", "to": [to], "text": "x", "count": 200, "sessions": 8 });
    house.agent.tell("/many", many).await;
    assert_eq!(house.answers(200).await, vec![250; 200]);
    house.kill().await;
    house.run().await;
    house.until(&id, "RUNNING").await;
    house.ask("POST", &format!("/v1/simulation-result/{id}/hangup"), Value::Null).await;
    house.until(&id, "COMPLETED").await;
    let rejected = house.events(&id).await.iter().filter(|event| *event == "email_sender_rejected").count();
    assert_eq!(rejected, 200);
}

/// Sends mails in one session until it breaks off; returns the ids of those that were acknowledged.
async fn send_until_gone(port: u16, to: &str, session: usize, acknowledged: &Semaphore) -> Vec<String> {
    let mut taken = Vec::new();
    let Ok(mut sender) = Sender::open(port).await else { return taken };
    for number in 0.. {
        let id = format!("{session}-{number}@agent.example");
        if sender.send(to, &id).await.is_err() {
            return taken;
        }
        acknowledged.add_permits(1);
        taken.push(id);
    }
    taken
}

#[tokio::test]
async fn a_kill_between_data_and_its_answer_loses_nothing_and_doubles_nothing() {
    let mut house = House::start().await;
    let id = house.queue(json!({}), json!({})).await;
    let to = house.mails(1).await[0]["from"].as_str().expect("an address").to_owned();
    let (port, acknowledged) = (house.listens, Semaphore::new(0));
    let sessions = async { join_all((0..4).map(|session| send_until_gone(port, &to, session, &acknowledged))).await };
    let killing = async {
        // All four are between DATA and an answer, or about to be.
        drop(acknowledged.acquire_many(40).await.expect("it is open"));
        house.kill().await;
    };
    let (taken, ()) = tokio::join!(sessions, killing);
    house.run().await;
    // A mail server sends what was not acknowledged once more, and does not know what became of the first time.
    let mut sender = Sender::open(port).await.expect("it listens");
    let mut all = BTreeSet::new();
    for (session, ids) in taken.into_iter().enumerate() {
        let last = format!("{session}-{}@agent.example", ids.len());
        sender.send(&to, &last).await.expect("it is taken");
        all.extend(ids);
        all.insert(last);
    }
    let list = house.part(&id, "mails").await;
    let mails = list["mails"].as_array().expect("mails").iter().filter(|mail| mail["kind"] == "rejected");
    let stored: Vec<String> = mails.map(|mail| mail["message_id"].as_str().expect("an id").to_owned()).collect();
    assert_eq!((stored.len(), stored.into_iter().collect::<BTreeSet<_>>()), (all.len(), all));
}

#[test]
fn another_engine_takes_a_thread_over() {
    beside_a_server(take_over);
}

async fn take_over(location: Location) {
    let Location::Server(url) = location else { panic!("a server") };
    let (agent, agent_port) = agent().await;
    let folder = tempfile::tempdir().expect("a folder");
    let (ports, database) = ((agent_port, free_port()), Some(url.expose().to_owned()));
    let house = House::in_folder(folder, agent, ports, ("", database)).await;
    hold(house, async |house| {
        // The next engine has a folder of its own, and the same database.
        house.kill().await;
        let settings = std::fs::read(house.folder.path().join("ringer.toml")).expect("settings");
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("ringer.toml"), settings).expect("it can be written");
        house.folder = folder;
        house.run().await;
    })
    .await;
}
