//! The built program as a user starts it: a process of its own, asked over HTTP or read by what it prints.

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::{interval, timeout};

/// Time limit of one step on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);
/// Time between two looks at something that changes by itself.
const BETWEEN: Duration = Duration::from_millis(50);
/// The admin key of [`up`].
pub(crate) const KEY: &str = "key of a process of its own";

/// Looks again and again until what is seen is as wanted, and returns it.
pub(crate) async fn look_until<Seen: Debug>(look: impl AsyncFn() -> Seen, wanted: impl Fn(&Seen) -> bool) -> Seen {
    let mut last = None;
    let looked = async {
        let mut looks = interval(BETWEEN);
        loop {
            looks.tick().await;
            if wanted(last.insert(look().await)) {
                return;
            }
        }
    };
    let came = timeout(PATIENCE, looked).await;
    assert!(came.is_ok(), "it never comes to that: {last:?}");
    last.expect("it was seen")
}

/// Path of the program under test: that of this build, or `RINGER_PROGRAM`, by which a release build is measured.
pub(crate) fn program() -> PathBuf {
    option_var("RINGER_PROGRAM").unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_ringer")))
}

/// A variable of the environment.
#[expect(clippy::disallowed_methods, reason = "the program to measure is no setting of the product")]
fn option_var(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).map(PathBuf::from)
}

/// A command of the program, killed with the test; what it prints is read.
pub(crate) fn ringer(args: &[&str]) -> Command {
    let mut command = Command::new(program());
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    // Models in the home folder of whoever tests change nothing.
    command.env("XDG_DATA_HOME", "/nonexistent");
    command
}

/// Returns `ringer up` on free ports, its data in a folder.
pub(crate) fn up(folder: &Path) -> Command {
    let mut command = ringer(&["up", "--listen", "127.0.0.1:0", "--sip", "127.0.0.1:0", "--data"]);
    command.arg(folder).env("RINGER_BOOTSTRAP_KEY", KEY).current_dir(folder);
    command
}

/// Asks processes over HTTP.
pub(crate) fn client() -> reqwest::Client {
    // The first of a process stays.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::new()
}

/// A process that runs.
pub(crate) struct Program {
    pub child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Program {
        let mut child = command.spawn().expect("the program was built");
        let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
        Program { child, lines }
    }

    /// Returns the next line that it prints.
    pub(crate) async fn line(&mut self) -> String {
        let line = timeout(PATIENCE, self.lines.next_line()).await.expect("it says something in time");
        line.expect("it is text").expect("it runs: `ringer doctor` says what it lacks")
    }

    /// Returns the address of this scheme in the next line.
    pub(crate) async fn address(&mut self, scheme: &str) -> String {
        let line = self.line().await;
        let word = line.split([' ', ',']).find(|word| word.starts_with(scheme));
        word.unwrap_or_else(|| panic!("no {scheme} in {line}")).to_owned()
    }

    /// Waits until the program ends by itself; returns its status.
    pub(crate) async fn wait_for_end(&mut self) -> ExitStatus {
        timeout(PATIENCE, self.child.wait()).await.expect("it ends in time").expect("it is our child")
    }

    pub(crate) async fn kill(mut self) {
        self.child.start_kill().expect("it is our child");
        self.wait_for_end().await;
    }
}
