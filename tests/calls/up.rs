//! `ringer up` as a user starts it: a process of its own, asked over HTTP.

use std::process::Stdio;
use std::time::Duration;

use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, ChildStdout, Command};
use tokio::time::timeout;

/// How long a step may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// The admin key.
pub const KEY: &str = "key of a process of its own";

/// Asks processes over HTTP.
pub fn client() -> reqwest::Client {
    // The first of a process stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

/// A running engine on free ports of loopback. Killed with the test.
pub struct Up {
    _process: Child,
    _said: Lines<BufReader<ChildStdout>>,
    _folder: TempDir,
    /// Where its API is.
    pub base: String,
    /// What it logs.
    pub log: Lines<BufReader<ChildStderr>>,
}

impl Up {
    /// With these settings, besides the ones that every test needs.
    pub async fn start(settings: &[(&str, &str)]) -> Up {
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        let mut command = Command::new(env!("CARGO_BIN_EXE_ringer"));
        command.args(["up", "--listen", "127.0.0.1:0", "--sip", "127.0.0.1:0", "--data"]).arg(folder.path());
        command.env("RINGER_BOOTSTRAP_KEY", KEY).envs(settings.iter().copied()).current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().expect("the program was built");
        let mut said = BufReader::new(process.stdout.take().expect("it was piped")).lines();
        let log = BufReader::new(process.stderr.take().expect("it was piped")).lines();
        let ready = timeout(PATIENCE, said.next_line()).await.expect("it is ready in time").expect("it is text");
        let ready = ready.expect("it starts");
        let base = ready.split([' ', ',']).find(|word| word.starts_with("http://")).expect("it says where").to_owned();
        Up { _process: process, _said: said, _folder: folder, base, log }
    }
}
