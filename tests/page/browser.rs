//! Chromium with one page, by WebDriver (W3C Recommendation of 2018).

use std::process::Stdio;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::time::timeout;

use crate::program::{PATIENCE, Program, client};

/// Chromium asks nobody but the page's own server.
const FLAGS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--autoplay-policy=no-user-gesture-required",
    // It ends with its driver.
    "--remote-debugging-pipe",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/// A browser with one page. Both processes are killed with the test.
pub(crate) struct Browser {
    _driver: Program,
    session: String,
    client: reqwest::Client,
    _folder: TempDir,
}

impl Browser {
    pub(crate) async fn start() -> Browser {
        Browser::with(&[]).await
    }

    /// Returns the same with more flags.
    pub(crate) async fn with(more: &[&str]) -> Browser {
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut driver = Program::start(&mut command);
        let port = loop {
            let line = driver.line().await;
            if let Some((_, port)) = line.split_once("started successfully on port ") {
                break port.trim_end_matches('.').to_owned();
            }
        };
        let profile = format!("--user-data-dir={}", folder.path().display());
        let args: Vec<&str> = FLAGS.iter().chain(more).copied().chain([profile.as_str()]).collect();
        let wanted = json!({ "capabilities": { "alwaysMatch": { "goog:chromeOptions": { "args": args } } } });
        let client = client();
        let sessions = format!("http://127.0.0.1:{port}/session");
        let answer = client.post(&sessions).json(&wanted).send().await.expect("it answers");
        let answer: Value = answer.json().await.expect("it answers with JSON");
        let id = answer["value"]["sessionId"].as_str().unwrap_or_else(|| panic!("chromium does not start: {answer}"));
        Browser { _driver: driver, session: format!("{sessions}/{id}"), client, _folder: folder }
    }

    pub(crate) async fn tell(&self, command: &str, body: Value) -> Value {
        let request = self.client.post(format!("{}/{command}", self.session)).json(&body).send();
        let answer = timeout(PATIENCE, request).await.expect("it answers in time").expect("it answers");
        let answer: Value = answer.json().await.expect("it answers with JSON");
        assert!(answer["value"]["error"].is_null(), "{command}: {answer}");
        answer["value"].clone()
    }

    /// Runs a script of the page, and returns its value once its promise is kept.
    pub(crate) async fn run(&self, script: &str) -> Value {
        self.tell("execute/sync", json!({ "script": script, "args": [] })).await
    }

    /// Opens an address in the page.
    pub(crate) async fn open(&self, url: &str) {
        self.tell("url", json!({ "url": url })).await;
    }

    /// Opens an address in a new tab, as a link that is opened there, and returns the tab that was seen before.
    pub(crate) async fn open_in_new_tab(&self, url: &str) -> Value {
        let before = self.ask(reqwest::Method::GET, "window").await;
        let tab = self.tell("window/new", json!({ "type": "tab" })).await;
        self.tell("window", json!({ "handle": tab["handle"] })).await;
        self.open(url).await;
        before
    }

    /// Closes the tab that is seen, and goes to another one.
    pub(crate) async fn close_tab(&self, other: &Value) {
        self.ask(reqwest::Method::DELETE, "window").await;
        self.tell("window", json!({ "handle": other })).await;
    }

    async fn ask(&self, method: reqwest::Method, command: &str) -> Value {
        let request = self.client.request(method, format!("{}/{command}", self.session)).send();
        let answer = timeout(PATIENCE, request).await.expect("it answers in time").expect("it answers");
        let answer: Value = answer.json().await.expect("it answers with JSON");
        assert!(answer["value"]["error"].is_null(), "{command}: {answer}");
        answer["value"].clone()
    }

    /// Takes the network from the page, or gives it back: a server that is gone, as the page sees it.
    pub(crate) async fn network(&self, is_there: bool) {
        let conditions =
            json!({ "offline": !is_there, "latency": 0, "download_throughput": -1, "upload_throughput": -1 });
        self.tell("chromium/network_conditions", json!({ "network_conditions": conditions })).await;
    }

    /// Sets the width of the page, and whether the system is dark.
    pub(crate) async fn look(&self, width: u32, dark: bool) {
        let scheme = if dark { "dark" } else { "light" };
        for (command, parameters) in [
            (
                "Emulation.setDeviceMetricsOverride",
                json!({ "width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false }),
            ),
            (
                "Emulation.setEmulatedMedia",
                json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] }),
            ),
        ] {
            self.tell("goog/cdp/execute", json!({ "cmd": command, "params": parameters })).await;
        }
    }

    /// Waits until an expression of the page holds, and returns its value.
    pub(crate) async fn until(&self, what: &str, expression: &str) -> Value {
        let script = format!(
            "for (const end = performance.now() + {}; performance.now() < end;) {{
                 const found = (() => {expression})();
                 if (found) return found;
                 await new Promise((done) => setTimeout(done, 50));
             }}
             return null;",
            PATIENCE.as_millis() - 5000
        );
        let found = self.run(&script).await;
        assert!(!found.is_null(), "{what}: {}", self.run("return document.body.innerText").await);
        found
    }
}
