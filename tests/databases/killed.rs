//! Acknowledged writes survive a kill, and the database stays consistent.
//!
//! Several writers ask the API of a running engine, and at a moment drawn from the seed the engine, or the database
//! server behind it, is killed in the middle of their requests. `RINGER_KILLS` sets how often (500 is an hour's worth
//! of doubt), `RINGER_SEED` repeats a run.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use ringer::clock;
use ringer_media::seed::{Seed, Stream};
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;

use super::server::Server;
use super::variable;
use crate::program::{KEY, PATIENCE, Program, up};

/// Writers that ask at the same time.
const WRITERS: usize = 4;
/// Largest number of acknowledged writes before a kill.
const MOST_WRITES: u32 = 60;

/// Returns a running engine and where it is.
async fn engine(folder: &TempDir, database: Option<&str>) -> (Program, String) {
    let mut command = up(folder.path());
    // Output about a crash of its database belongs to no report.
    command.env("RINGER_DATABASE_URL", database.unwrap_or_default()).env("RINGER_LOG", "off");
    // Engines of one database have one key for its secrets.
    command.env("RINGER_SECRET_KEY", "what seals the secrets of every engine here");
    let mut program = Program::start(&mut command);
    let address = program.address("http://").await;
    (program, address.trim_start_matches("http://").to_owned())
}

/// A connection to the API.
struct Client(BufReader<TcpStream>);

impl Client {
    async fn connect(address: &str) -> io::Result<Client> {
        TcpStream::connect(address).await.map(BufReader::new).map(Client)
    }

    /// Returns the body of an answer of status 200; everything else is an error.
    async fn ask(&mut self, method: &str, path: &str, body: &Value) -> io::Result<Value> {
        self.ask_with("", method, path, body).await
    }

    /// Returns the same with more header fields, each with its end of line.
    async fn ask_with(&mut self, fields: &str, method: &str, path: &str, body: &Value) -> io::Result<Value> {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let length = body.len();
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: ringer\r\nX-API-KEY: {KEY}\r\nContent-Type: application/json\r\n\
             Content-Length: {length}\r\n{fields}\r\n{body}"
        );
        self.0.write_all(request.as_bytes()).await?;
        let mut length = 0;
        let mut status = String::new();
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let line = line.trim_end();
            if status.is_empty() {
                status = line.to_owned();
            } else if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().map_err(io::Error::other)?;
            } else if line.is_empty() {
                break;
            }
        }
        let mut answer = vec![0; length];
        self.0.read_exact(&mut answer).await?;
        if !status.contains(" 200 ") {
            return Err(io::Error::other(format!("{status}: {}", String::from_utf8_lossy(&answer))));
        }
        serde_json::from_slice(&answer).map_err(io::Error::other)
    }
}

/// Acknowledged writes: the description that each agent was last given, by id.
type Acknowledged = BTreeMap<i64, String>;

/// State that the writers of a round share.
struct Round {
    acknowledged: AtomicU32,
    /// The kill comes with this write.
    fatal: u32,
    time: Notify,
    over: AtomicBool,
}

impl Round {
    fn new(random: &mut Stream) -> Round {
        let fatal = 1 + random.bits() % MOST_WRITES;
        Round { acknowledged: AtomicU32::new(0), fatal, time: Notify::new(), over: AtomicBool::new(false) }
    }

    /// Lets all writers work until `kill` was called amid it, and answers what each of them tells.
    async fn run<W: Future>(&self, writer: impl Fn() -> W, kill: impl FnOnce()) -> Vec<W::Output> {
        let killing = async {
            self.time.notified().await;
            kill();
            self.over.store(true, Ordering::Relaxed);
        };
        let writers = futures_util::future::join_all((0..WRITERS).map(|_| writer()));
        let both = async { tokio::join!(writers, killing).0 };
        timeout(PATIENCE, both).await.expect("writers end when nobody answers")
    }

    fn count(&self) {
        if self.acknowledged.fetch_add(1, Ordering::Relaxed) + 1 == self.fatal {
            self.time.notify_one();
        }
    }
}

/// Makes agents and changes each once, until an answer does not come or the round is over.
async fn write(address: &str, round: &Round) -> Acknowledged {
    let mut sure = Acknowledged::new();
    let Ok(mut client) = Client::connect(address).await else { return sure };
    while !round.over.load(Ordering::Relaxed) {
        let name = clock::new_id().to_string();
        let Ok(answer) = client.ask("POST", "/v1/add-agent", &json!({ "name": name })).await else { return sure };
        let id = answer["agent_id"].as_i64().expect("an id");
        assert!(sure.insert(id, name).is_none(), "an id is given once");
        round.count();
        let name = clock::new_id().to_string();
        let change = json!({ "agent_id": id, "name": name });
        if client.ask("POST", "/v1/update-agent", &change).await.is_err() {
            // It may be the one or the other now.
            sure.remove(&id);
            return sure;
        }
        sure.insert(id, name);
        round.count();
    }
    sure
}

/// Writes until `kill` was called amid it; everything that was acknowledged.
async fn write_and_kill(address: &str, random: &mut Stream, kill: impl FnOnce()) -> Acknowledged {
    let round = Round::new(random);
    round.run(|| write(address, &round), kill).await.into_iter().flatten().collect()
}

fn check(round: usize, sure: &Acknowledged, there: &BTreeMap<i64, String>) {
    for (id, name) in sure {
        assert_eq!(there.get(id), Some(name), "agent {id} after kill {round}");
    }
}

fn kills(default: usize) -> usize {
    variable("RINGER_KILLS").map_or(default, |text| text.parse().expect("RINGER_KILLS is a number"))
}

fn random() -> Stream {
    let seed =
        variable("RINGER_SEED").map_or_else(clock::random_seed, |text| text.parse().expect("RINGER_SEED is a number"));
    println!("RINGER_SEED={seed}");
    Seed(seed).stream("kills")
}

/// Returns the names of the agents in a file, once its own check has found nothing.
fn agents_in(file: &Path) -> BTreeMap<i64, String> {
    let database = Connection::open(file).expect("it opens");
    let whole: String = database.query_row("PRAGMA integrity_check", [], |row| row.get(0)).expect("it is checked");
    assert_eq!(whole, "ok");
    let orphans = database.query_row("SELECT COUNT(*) FROM pragma_foreign_key_check", [], |row| row.get::<_, i64>(0));
    assert_eq!(orphans.expect("it is checked"), 0);
    let mut query = database.prepare("SELECT id, doc FROM agents").expect("it is a query");
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?))).expect("it runs");
    rows.map(|row| row.expect("a row")).map(|(id, doc)| (id, name_of(&doc))).collect()
}

fn name_of(doc: &str) -> String {
    let doc: Value = serde_json::from_str(doc).expect("a document is JSON");
    doc["spec"]["name"].as_str().expect("an agent has a name").to_owned()
}

#[tokio::test]
async fn a_killed_engine_has_kept_what_it_acknowledged() {
    let mut random = random();
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut sure = Acknowledged::new();
    for round in 0..kills(20) {
        let (mut engine, address) = engine(&folder, None).await;
        sure.extend(write_and_kill(&address, &mut random, || engine.child.start_kill().expect("it runs")).await);
        engine.wait_for_end().await;
        check(round, &sure, &agents_in(&folder.path().join("ringer.db")));
    }
    println!("{} acknowledged agents, none lost", sure.len());
    assert!(sure.len() >= kills(20), "most rounds have acknowledged something");
}

/// Makes agents, each under a key of its own, until an answer does not come or the round is over: the name without an
/// answer.
async fn make_once(address: &str, round: &Round) -> Option<String> {
    let mut client = Client::connect(address).await.ok()?;
    while !round.over.load(Ordering::Relaxed) {
        let name = clock::new_id().to_string();
        if add_once(&mut client, &name).await.is_err() {
            return Some(name);
        }
        round.count();
    }
    None
}

/// Makes agents until `kill` was called amid it; the names of those whose requests were not answered.
async fn make_and_kill(address: &str, random: &mut Stream, kill: impl FnOnce()) -> Vec<String> {
    let round = Round::new(random);
    round.run(|| make_once(address, &round), kill).await.into_iter().flatten().collect()
}

async fn add_once(client: &mut Client, name: &str) -> io::Result<Value> {
    let key = format!("Idempotency-Key: {name}\r\n");
    client.ask_with(&key, "POST", "/v1/add-agent", &json!({ "name": name })).await
}

#[tokio::test]
async fn a_killed_engine_does_nothing_twice() {
    let mut random = random();
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let mut repeated = 0;
    for number in 0..kills(20) {
        let (mut engine, address) = engine(&folder, None).await;
        let open = make_and_kill(&address, &mut random, || engine.child.start_kill().expect("it runs")).await;
        engine.wait_for_end().await;
        let (mut engine, address) = self::engine(&folder, None).await;
        let mut client = Client::connect(&address).await.expect("it runs again");
        for name in open {
            let answer = add_once(&mut client, &name).await.expect("the repeat is answered");
            let id = answer["agent_id"].as_i64().expect("an id");
            let there = agents_in(&folder.path().join("ringer.db"));
            let found: Vec<i64> = there.iter().filter(|(_, known)| **known == name).map(|(id, _)| *id).collect();
            assert_eq!(found, [id], "agents of one request after kill {number}");
            repeated += 1;
        }
        engine.child.start_kill().expect("it runs");
        engine.wait_for_end().await;
    }
    println!("{repeated} requests without an answer, repeated, none done twice");
    assert!(repeated >= kills(20) / 2, "most kills come amid requests");
}

#[test]
fn what_a_killed_engine_has_left_is_done_once_by_another() {
    let mut random = random();
    let server = Server::start(false);
    let [dying, standing] = [(); 2].map(|()| tempfile::tempdir().expect("the folder for temporary files is writable"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let (_other, address) = engine(&standing, Some(&server.url())).await;
        let mut client = Client::connect(&address).await.expect("it runs");
        let mut repeated = 0;
        for number in 0..kills(10) {
            let (mut engine, address) = engine(&dying, Some(&server.url())).await;
            let open = make_and_kill(&address, &mut random, || engine.child.start_kill().expect("it runs")).await;
            for name in open {
                let answer = add_once(&mut client, &name).await.expect("the repeat is answered");
                let agents = client.ask("GET", "/v1/all-agents", &Value::Null).await.expect("the other engine runs");
                let agents = agents.as_array().expect("a list").iter();
                let found: Vec<&Value> =
                    agents.filter(|agent| agent["name"] == name.as_str()).map(|agent| &agent["id"]).collect();
                assert_eq!(found, [&answer["agent_id"]], "agents of one request after kill {number}");
                repeated += 1;
            }
            engine.wait_for_end().await;
        }
        println!("{repeated} requests without an answer, repeated elsewhere, none done twice");
        assert!(repeated >= kills(10) / 2, "most kills come amid requests");
    });
}

#[test]
fn a_crashed_database_server_has_kept_what_the_engine_acknowledged() {
    let mut random = random();
    let mut server = Server::start(true);
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    // The server ends with the thread that has started it, so the runtime is this thread's.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(async {
        let (_engine, address) = engine(&folder, Some(&server.url())).await;
        let mut sure = Acknowledged::new();
        for round in 0..kills(5).min(100) {
            sure.extend(write_and_kill(&address, &mut random, || server.restart_after_a_crash()).await);
            let mut client = Client::connect(&address).await.expect("the engine still runs");
            let agents = loop {
                // The first answers tell of connections that the crash has cut.
                match client.ask("GET", "/v1/all-agents", &Value::Null).await {
                    Ok(agents) => break agents,
                    Err(error) => assert!(error.to_string().contains(" 500 "), "{error}"),
                }
            };
            let named = |agent: &Value| {
                (agent["id"].as_i64().expect("an id"), agent["name"].as_str().unwrap_or_default().to_owned())
            };
            check(round, &sure, &agents.as_array().expect("a list").iter().map(named).collect());
        }
        println!("{} acknowledged agents, none lost", sure.len());
        assert!(sure.len() >= kills(5).min(100), "most rounds have acknowledged something");
    });
}
