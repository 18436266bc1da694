//! Programs in Python as the other side of a test, in the tests' own environment (`make peers`). Each prints its
//! address, tells what it has seen at `/seen`, and ends with its input.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use crate::program::{PATIENCE, Program, client};

/// Returns the command of a script of `tests/python`; its input is a pipe, with which it ends. It goes before other
/// programs where that is allowed: an interpreter that waits for a core sends its audio late.
pub(crate) fn python(script: &str, args: &[&str]) -> Command {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut command = Command::new("nice");
    command.args(["-n", "-5"]).arg(root.join(".venv/bin/python"));
    command.arg(root.join("tests/python").join(script)).args(args);
    // Idle threads of numpy's linear algebra spin: that is time of other tests.
    command.env("OPENBLAS_NUM_THREADS", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    command
}

/// A server in Python that runs.
pub(crate) struct PythonServer {
    _program: Program,
    /// Address with a scheme and no path.
    pub base: String,
    client: reqwest::Client,
}

impl PythonServer {
    /// Starts a script that prints an address of `scheme`.
    pub(crate) async fn start(script: &str, args: &[&str], scheme: &str) -> PythonServer {
        let mut program = Program::start(&mut python(script, args));
        let base = program.address(scheme).await;
        PythonServer { _program: program, base, client: client() }
    }

    fn http(&self, path: &str) -> String {
        format!("{}{path}", self.base.replacen("ws", "http", 1))
    }

    /// Returns what it has seen.
    pub(crate) async fn look(&self) -> Value {
        let answer = self.client.get(self.http("/seen")).send();
        let answer = timeout(PATIENCE, answer).await.expect("in time").expect("it answers");
        answer.json().await.expect("it is JSON")
    }

    /// Tells it to do something.
    pub(crate) async fn post(&self, path: &str) {
        self.tell(path, Value::Null).await;
    }

    /// Tells it to do something with this.
    pub(crate) async fn tell(&self, path: &str, body: Value) {
        let answer = self.client.post(self.http(path)).json(&body).send();
        let answer = timeout(PATIENCE, answer).await.expect("in time").expect("it answers");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
    }

    /// Waits until what it has seen is as wanted.
    pub(crate) async fn sees(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut looks = tokio::time::interval(Duration::from_millis(100));
        let mut last = Value::Null;
        let waited = timeout(PATIENCE, async {
            loop {
                looks.tick().await;
                last = self.look().await;
                if wanted(&last) {
                    return;
                }
            }
        });
        let in_time = waited.await.is_ok();
        assert!(in_time, "{last}");
        last
    }
}
