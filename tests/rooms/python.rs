//! Programs in Python, of the tests' own environment (`make peers`).

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;
use tokio::process::Command;
use tokio::time::timeout;

use super::phone::PATIENCE;
use crate::program::{Program, client};

/// A pipeline that runs.
pub struct Bot {
    _program: Program,
    pub base: String,
    client: reqwest::Client,
}

impl Bot {
    pub async fn start(flags: &[&str]) -> Bot {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        // The life of the process has a limit whatever happens to the test.
        let mut command = Command::new("timeout");
        command
            .args(["-s", "KILL", "120"])
            .arg(root.join(".venv/bin/python"))
            .arg(root.join("tests/python/pipeline.py"));
        command.args(flags).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut program = Program::start(&mut command);
        let base = program.address("http://").await;
        Bot { _program: program, base, client: client() }
    }

    pub async fn post(&self, path: &str) {
        let answer = self.client.post(format!("{}{path}", self.base)).send();
        let answer = timeout(PATIENCE, answer).await.expect("in time").expect("it answers");
        assert!(answer.status().is_success(), "{path}: {}", answer.status());
    }

    pub async fn look(&self) -> Value {
        let answer = self.client.get(format!("{}/seen", self.base)).send();
        let answer = timeout(PATIENCE, answer).await.expect("in time").expect("it answers");
        answer.json().await.expect("it is JSON")
    }

    /// Waits until what it has seen is as wanted.
    pub async fn sees(&self, wanted: impl Fn(&Value) -> bool) -> Value {
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
