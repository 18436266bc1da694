//! Real programs that share a database, and agents that open WebSockets to them.

use std::path::Path;
use std::process::Stdio;

use futures_util::{SinkExt, StreamExt};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::program::{KEY, Program, client, look_until, up};

/// Seconds of a lease.
pub(super) const LEASE_S: u64 = 3;

/// Error of a call whose agent sends silence and hangs up: it came to its end, and the engine has no part in that.
pub(super) const SILENT: &str = "AGENT_HUNG_UP_BEFORE_SPEECH";

/// The internal token of every program.
const TOKEN: &str = "token of whoever runs the engines";

/// A running program, whose calls are real.
pub(super) struct Engine {
    pub program: Program,
    pub base: String,
    pub folder: TempDir,
}

/// An agent's side of a call.
pub(super) type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

impl Engine {
    /// Starts a program of this name on a database, with RTP ports of its own.
    pub(super) async fn start(name: &str, database: &str, ports: &str) -> Engine {
        Engine::with(name, database, ports, "").await
    }

    /// Starts one with further settings.
    pub(super) async fn with(name: &str, database: &str, ports: &str, more: &str) -> Engine {
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        let settings = format!(
            "[server]\nname = '{name}'\nlease_s = {LEASE_S}\n[security]\ninternal_token = '{TOKEN}'\n\
             [database]\nurl = '{database}'\n{more}"
        );
        std::fs::write(folder.path().join("ringer.toml"), settings).expect("the folder is writable");
        let mut command = up(folder.path());
        command.env("RINGER_SECRET_KEY", "what seals the secrets of every engine here");
        command.args(["--rtp-ports", ports]).stderr(Stdio::from(log(folder.path())));
        let mut program = Program::start(&mut command);
        let base = program.address("http://").await;
        Engine { program, base, folder }
    }

    /// Returns what it has logged.
    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Asks it for something; returns status and body.
    pub(super) async fn ask(&self, method: &str, path: &str, body: Option<Value>) -> (StatusCode, Value) {
        let method = method.parse().expect("a method");
        let mut request = client().request(method, format!("{}{path}", self.base));
        request = request.header("x-api-key", KEY).header("x-internal-token", TOKEN);
        if let Some(body) = body {
            request = request.json(&body);
        }
        let answer = request.send().await.expect("the program runs");
        (answer.status(), answer.json().await.expect("JSON"))
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> Value {
        let (status, answer) = self.ask("POST", path, Some(body)).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }

    pub(super) async fn result(&self, id: &str) -> Value {
        let (_, read) = self.ask("GET", &format!("/v1/retrieve-simulation-result/{id}"), None).await;
        read["simulation_result"].clone()
    }

    /// Waits until the record of a result is as wanted.
    pub(super) async fn until(&self, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        look_until(async || self.result(id).await, wanted).await
    }

    /// Waits until a result is final.
    pub(super) async fn until_final(&self, id: &str) -> Value {
        self.until(id, |result| result["outcome"].is_string()).await
    }

    /// Waits until it sees the engine of this name so.
    pub(super) async fn until_seen(&self, name: &str, state: &str) -> Value {
        let is_it = |one: &Value| one["name"] == name && one["state"] == state;
        let look = async || self.ask("GET", "/v1/internal/engines", None).await.1["engines"].take();
        let list = look_until(look, |list| list.as_array().expect("a list").iter().any(is_it)).await;
        list.as_array().into_iter().flatten().find(|one| is_it(one)).expect("it was seen").clone()
    }

    /// Starts a run of `count` results whose agent calls by WebSocket; returns their ids and the paths of their
    /// addresses, once all are READY.
    pub(super) async fn await_agents(&self, count: usize, most_s: u32) -> Vec<(String, String)> {
        let agent = json!({ "name": "Desk", "type": "OUTBOUND", "connection_type": "WEBSOCKET" });
        let agent = self.post("/v1/add-agent", agent).await["agent_id"].to_string();
        let simulation =
            json!({ "agent_id": agent, "max_call_duration": most_s, "max_call_duration_units": "seconds" });
        let simulation = self.post("/v1/create-simulation", simulation).await["simulation_id"].clone();
        let human = json!({ "digital_human": { "intent": "Book a table." }, "simulation_ids": [simulation] });
        self.post("/v1/create-digital-human", human).await;
        let run = json!({ "simulation_id": simulation.to_string(), "seed": 7, "runs_per_digital_human": count });
        let ids = self.post("/v1/queue-simulation-run", run).await["simulation_result_ids"].clone();
        let mut ready = Vec::new();
        for id in ids.as_array().expect("ids") {
            let id = id.as_str().expect("a text").to_owned();
            let result = self.until(&id, |result| result["status"] == "READY").await;
            let url = result["metadata"]["listening"]["websocket_url"].as_str().expect("an address").to_owned();
            let path = url.splitn(4, '/').nth(3).expect("a path");
            ready.push((id, format!("/{path}")));
        }
        ready
    }

    /// Opens a WebSocket to this engine.
    pub(super) async fn open(&self, path: &str) -> Result<Socket, Error> {
        let url = format!("{}{path}", self.base.replacen("http://", "ws://", 1));
        connect_async(url).await.map(|(socket, _)| socket)
    }

    /// Opens the WebSocket of a result, as `await_agents` returns it, and speaks; the result runs then.
    pub(super) async fn call(&self, (id, path): &(String, String)) -> Socket {
        let mut socket = self.open(path).await.expect("it is taken");
        for _ in 0..5 {
            socket.send(Message::binary(vec![0; 640])).await.expect("it is open");
        }
        self.until(id, |result| result["status"] == "RUNNING").await;
        socket
    }

    pub(super) fn signal(&self, signal: i32) {
        let id = self.program.child.id().expect("it runs");
        // SAFETY: the process is our child and has not been waited for.
        unsafe { libc::kill(id as i32, signal) };
    }
}

/// Waits for so many messages of an engine; false: the connection ended before.
pub(super) async fn hear(socket: &mut Socket, count: usize) -> bool {
    for _ in 0..count {
        if socket.next().await.is_none_or(|message| message.is_err()) {
            return false;
        }
    }
    true
}

fn log(folder: &Path) -> std::fs::File {
    std::fs::File::create(folder.join("log")).expect("the folder is writable")
}
