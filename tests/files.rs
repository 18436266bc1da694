//! Files in an object store: a server of S3 that the test starts, through the built program and below it.

mod bucket;
mod kept;
mod moved;
mod server;
mod stored;

use std::path::Path;
use std::process::Stdio;

use reqwest::{Response, StatusCode};
use serde_json::{Value, json};

use crate::program::{KEY, Program, client, look_until, up};

/// A running program with settings of its own, and what it logs.
struct Engine {
    program: Program,
    base: String,
}

impl Engine {
    /// Starts the program on a folder with this text as its settings; its calls are in virtual time.
    async fn start(folder: &Path, settings: &str) -> Engine {
        std::fs::write(folder.join("ringer.toml"), settings).expect("the folder is writable");
        let log = std::fs::File::options().create(true).append(true).open(folder.join("log")).expect("a file");
        let mut program = Program::start(up(folder).arg("--sim").stderr(Stdio::from(log)));
        let base = program.address("http://").await;
        Engine { program, base }
    }

    async fn stop(self) {
        self.program.kill().await;
    }

    async fn get(&self, path: &str) -> Response {
        client().get(format!("{}{path}", self.base)).header("x-api-key", KEY).send().await.expect("it answers")
    }

    async fn bytes(&self, path: &str) -> Vec<u8> {
        let answer = self.get(path).await;
        assert_eq!(answer.status(), StatusCode::OK, "{path}");
        answer.bytes().await.expect("all of it").to_vec()
    }

    async fn json(&self, path: &str) -> Value {
        serde_json::from_slice(&self.bytes(path).await).expect("JSON")
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        let asked = client().post(format!("{}{path}", self.base)).header("x-api-key", KEY).json(&body);
        let answer = asked.send().await.expect("it answers");
        let (status, text) = (answer.status(), answer.text().await.expect("all of it"));
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).expect("JSON")
    }

    async fn delete(&self, path: &str) {
        let asked = client().delete(format!("{}{path}", self.base)).header("x-api-key", KEY);
        let answer = asked.send().await.expect("it answers");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
    }

    /// Makes one call and waits until it is judged; returns its record.
    async fn call(&self) -> Value {
        let agent = json!({ "name": "Desk", "sip_uri": "sip:desk@127.0.0.1:5999" });
        let agent = self.post("/v1/add-agent", agent).await["agent_id"].to_string();
        let simulation = self.post("/v1/create-simulation", json!({ "agent_id": agent, "name": "Booking" })).await;
        let simulation = simulation["simulation_id"].clone();
        let human = json!({ "intent": "Hello, I would like to book a table for Tuesday.", "language": "en" });
        let human = json!({ "digital_human": human, "simulation_ids": [simulation] });
        self.post("/v1/create-digital-human", human).await;
        let run = json!({ "simulation_id": simulation.to_string(), "seed": 7 });
        let id = self.post("/v1/queue-simulation-run", run).await["simulation_result_ids"][0].clone();
        let id = id.as_str().expect("an id").to_owned();
        self.until(&id, |result| result["outcome"].is_string()).await
    }

    async fn result(&self, id: &str) -> Value {
        self.json(&format!("/v1/retrieve-simulation-result/{id}")).await["simulation_result"].clone()
    }

    /// Waits until the record of a result is as wanted.
    async fn until(&self, id: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        look_until(async || self.result(id).await, wanted).await
    }

    /// Waits until the recording of a result is stored, and returns the record.
    async fn until_stored(&self, id: &str) -> Value {
        self.until(id, |result| result["metadata"]["recording"] == "stored").await
    }
}

/// Waits until something on a disk is so.
async fn until_true(is_so: impl Fn() -> bool) {
    look_until(async || is_so(), |is_so| *is_so).await;
}
