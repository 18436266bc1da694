//! Figures of mail, with the machine to itself: how fast it is taken in, and how long a thread takes in virtual time.

use std::time::Duration;

use ringer::clock::monotonic;
use serde_json::json;
use tokio::time::timeout;

use super::house::{House, Sender};
use super::retries::Thread;
use crate::program::PATIENCE;

/// Conversations that are written to, and mails to each.
const THREADS: usize = 8;
const MAILS: usize = 250;
/// Least number of mails a second that are stored and acknowledged, by a build that is not optimized. README has the
/// figure of a release, which `RINGER_PROGRAM` names.
const LEAST_RATE: f64 = 50.0;
/// Turns of a thread in virtual time, and the longest time that they take in all.
const TURNS: usize = 10;
const LONGEST: Duration = Duration::from_secs(1);

/// Sends mails to one address in one session; each is acknowledged before the next one.
async fn send_all(port: u16, to: String, session: usize) {
    let mut sender = Sender::open(port).await.expect("it listens");
    for number in 0..MAILS {
        sender.send(&to, &format!("{session}-{number}@agent.example")).await.expect("it is taken");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_mails_a_second_are_taken_in() {
    let house = House::start().await;
    let mut ids = Vec::new();
    for _ in 0..THREADS {
        ids.push(house.queue(json!({}), json!({})).await);
    }
    let first = house.mails(THREADS).await;
    let begun = monotonic();
    let sessions = first.iter().enumerate().map(|(session, mail)| {
        let to = mail["from"].as_str().expect("an address").to_owned();
        send_all(house.listens, to, session)
    });
    timeout(PATIENCE, futures_util::future::join_all(sessions)).await.expect("in time");
    let took = monotonic().since(begun);
    let rate = (THREADS * MAILS) as f64 / took.as_secs_f64();
    println!("{} mails to {THREADS} threads in {took:?}: {rate:.0} a second", THREADS * MAILS);
    for id in &ids {
        let mails = house.part(id, "mails").await["mails"].clone();
        assert_eq!(mails.as_array().map(Vec::len), Some(MAILS + 1), "what was acknowledged is stored");
    }
    assert!(rate >= LEAST_RATE, "{rate:.0} mails a second");
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_turns_take_less_than_a_second_of_real_time() {
    let sentences = (0..2 * TURNS).map(|at| json!({ "speaker": "user", "exact_message": format!("Point {at}.") }));
    let steps: Vec<_> =
        sentences.flat_map(|said| [said, json!({ "speaker": "agent", "criteria": "answers" })]).collect();
    let thread = Thread::begin(json!({}), json!({ "max_turns": TURNS }), json!({ "enriched_playback": steps })).await;
    thread.talk.event("message.sent", 1).await;
    let begun = monotonic();
    for turn in 1..=TURNS {
        // The agent answers a day later.
        thread.talk.advance(80_000_000);
        thread.answer(turn, "Go on.").await;
        if turn < TURNS {
            thread.talk.event("message.sent", turn + 1).await;
        }
    }
    thread.talk.event("call.ended", 1).await;
    let took = monotonic().since(begun);
    println!("{TURNS} turns in {took:?}");
    let taken = thread.agent.look().await["mails"].as_array().map(Vec::len);
    assert_eq!(taken, Some(TURNS), "each turn was answered by mail");
    assert!(took <= LONGEST, "{took:?}");
}
