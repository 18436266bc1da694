//! Engines that are killed: another one ends the results of their calls within a lease, and takes those that wait.
//!
//! `RINGER_KILLS` sets how often an engine is killed at a drawn moment, `RINGER_SEED` repeats a run.

use std::time::Duration;

use futures_util::future::join_all;
use ringer::clock;
use ringer_media::seed::{Seed, Stream};
use serde_json::json;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::Error;

use super::program::{Engine, LEASE_S, SILENT, hear};
use crate::databases::{Server, variable};
use crate::program::PATIENCE;

/// Most frames that all calls of a killed engine have sent before.
const MOST_FRAMES: u32 = 150;
/// Results of each engine that is killed.
const RESULTS: usize = 3;
/// Engines that run, and are killed, at the same time.
const AT_ONCE: usize = 3;

/// Runs a test beside a database server, which ends with the thread that has started it.
pub(super) fn beside<Done: Future<Output = ()>>(test: impl FnOnce(String) -> Done) {
    let server = Server::start(false);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime starts").block_on(test(server.url()));
}

#[test]
fn a_killed_engine_is_lost_and_what_waits_is_taken_by_another() {
    beside(async |database: String| {
        let dying = Engine::start("dying", &database, "38400-38409").await;
        let standing = Engine::start("standing", &database, "38410-38419").await;
        let seen = standing.until_seen("dying", "up").await;
        assert_eq!((&seen["address"], &seen["answers"]), (&json!(dying.base), &json!(false)), "{seen}");
        assert_eq!(dying.until_seen("standing", "up").await["calls"], 0);
        let ready = dying.await_agents(3, 60).await;
        let mut call = dying.call(&ready[0]).await;
        assert!(hear(&mut call, 10).await, "it runs");
        // The call is at the first engine.
        let Err(Error::Http(answer)) = standing.open(&ready[0].1).await else { panic!("it runs elsewhere") };
        assert_eq!(answer.status(), 307);
        assert_eq!(answer.headers()["location"], format!("{}{}", dying.base, ready[0].1));
        let Err(Error::Http(answer)) = dying.open(&ready[0].1).await else { panic!("it runs") };
        assert_eq!(answer.status(), 409, "it runs here");
        // One that waits is taken by either.
        let mut taken = standing.call(&ready[1]).await;
        assert!(hear(&mut taken, 10).await, "it runs");
        dying.signal(libc::SIGKILL);
        #[expect(clippy::disallowed_methods, reason = "real time is measured")]
        let killed = Instant::now();
        let ended = standing.until_final(&ready[0].0).await;
        let waited = killed.elapsed();
        assert_eq!((&ended["status"], &ended["error_code"]), (&json!("SYSTEM_ERROR"), &json!("ENGINE_RESTARTED")));
        assert_eq!(ended["error_message"], "The engine \"dying\" was lost during the call", "{ended}");
        assert!(waited < Duration::from_secs(LEASE_S + 5), "{waited:?}");
        assert_eq!(ended["outcome"], "not_evaluated", "the agent is not charged with it: {ended}");
        standing.until_seen("dying", "lost").await;
        let mut late = standing.call(&ready[2]).await;
        assert!(hear(&mut late, 10).await, "it runs");
        for mut call in [taken, late] {
            call.close(None).await.expect("it is open");
            while hear(&mut call, 1).await {}
        }
        for (id, _) in &ready[1..] {
            assert_eq!(standing.until_final(id).await["error_code"], SILENT);
        }
        standing.program.kill().await;
    });
}

/// Kills an engine when its calls have sent so many frames, and checks what becomes of its results.
async fn kill_at(frames: u32, number: usize, database: &str, standing: &Engine) {
    let first = 38_420 + 10 * (number % AT_ONCE) as u16;
    let dying = Engine::start(&format!("dying-{number}"), database, &format!("{first}-{}", first + 9)).await;
    let ready = standing.await_agents(RESULTS, 60).await;
    let mut calls = Vec::new();
    let mut left = frames as usize;
    for one in &ready {
        if left == 0 {
            break;
        }
        let mut call = dying.call(one).await;
        let count = left.min(frames as usize / RESULTS + 1);
        assert!(hear(&mut call, count).await, "it runs");
        left -= count;
        calls.push(call);
    }
    dying.signal(libc::SIGKILL);
    #[expect(clippy::disallowed_methods, reason = "real time is measured")]
    let killed = Instant::now();
    let begun = calls.len();
    for (id, _) in &ready[..begun] {
        let ended = standing.until_final(id).await;
        assert_eq!(ended["error_code"], "ENGINE_RESTARTED", "kill {number} at {frames}: {ended}");
        let history = ended["status_history"].as_array().expect("a list");
        let runs = history.iter().filter(|step| step["status"] == "DISPATCHED").count();
        assert_eq!(runs, 1, "it runs once: {ended}");
        assert!(killed.elapsed() < Duration::from_secs(LEASE_S + 20), "kill {number} at {frames}: it hangs");
    }
    for one in &ready[begun..] {
        let mut call = standing.call(one).await;
        assert!(hear(&mut call, 1).await, "it runs");
        call.close(None).await.expect("it is open");
        while hear(&mut call, 1).await {}
        assert_eq!(standing.until_final(&one.0).await["error_code"], SILENT, "kill {number} at {frames}");
    }
}

async fn kill_many(database: String, kills: usize) {
    let seed =
        variable("RINGER_SEED").map_or_else(clock::random_seed, |text| text.parse().expect("RINGER_SEED is a number"));
    println!("RINGER_SEED={seed}");
    let mut random: Stream = Seed(seed).stream("engines");
    let standing = Engine::start("standing", &database, "38450-38469").await;
    let moments: Vec<u32> = (0..kills).map(|_| random.bits() % MOST_FRAMES).collect();
    for (part, moments) in moments.chunks(AT_ONCE).enumerate() {
        let kills = moments.iter().enumerate().map(|(at, frames)| {
            let (number, database, standing) = (part * AT_ONCE + at, &database, &standing);
            async move { kill_at(*frames, number, database, standing).await }
        });
        timeout(PATIENCE, join_all(kills)).await.expect("nothing hangs");
    }
    println!("{kills} engines killed, each result ended or was taken by another");
    standing.program.kill().await;
}

#[test]
fn engines_that_are_killed_at_any_moment_leave_nothing_behind() {
    let kills = variable("RINGER_KILLS").map_or(6, |text| text.parse().expect("RINGER_KILLS is a number"));
    beside(async |database: String| kill_many(database, kills).await);
}
