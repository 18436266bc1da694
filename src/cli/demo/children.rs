//! The two programs that a demonstration starts: each a process of its own in a group of its own, so that the keys
//! pressed in the terminal reach the demonstration alone and it ends them in order.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// Time limit until a program says that it is ready.
const START: Duration = Duration::from_secs(30);
/// Time limit for a program to end.
const END: Duration = Duration::from_secs(20);
/// Settings that would change what is shown; those of the demonstration are given by flags.
const NOT_INHERITED: [&str; 10] = [
    "RINGER_CONFIG",
    "RINGER_DATABASE_URL",
    "RINGER_LANGUAGE_MODEL_BASE_URL",
    "RINGER_LANGUAGE_MODEL_API_KEY",
    "RINGER_LANGUAGE_MODEL_MODEL",
    "RINGER_SERVER_PUBLIC_URL",
    "RINGER_SIP_ADVERTISE",
    "RINGER_SECURITY_ALLOW_PRIVATE_AGENTS",
    "RINGER_LIMITS_MAX_CALLS",
    "RINGER_LIMITS_START_RATE_PER_S",
];

/// Child process of the demonstration.
pub struct Program {
    name: &'static str,
    log: PathBuf,
    child: Child,
    /// Read on so that the program never waits for a reader.
    output: Lines<BufReader<ChildStdout>>,
}

impl Program {
    /// Starts this same executable with `args`; its log goes to `NAME.log` in `folder`.
    pub fn start(name: &'static str, args: &[String], env: &[(&str, &str)], folder: &Path) -> Result<Program, String> {
        Program::start_without(&NOT_INHERITED, name, args, env, folder)
    }

    /// Starts a program as [`Program::start`] does, without these variables of this process.
    pub fn start_without(
        not_inherited: &[&str],
        name: &'static str,
        args: &[String],
        env: &[(&str, &str)],
        folder: &Path,
    ) -> Result<Program, String> {
        let describe = |error: std::io::Error| format!("{name}: {error}");
        let path = folder.join(format!("{name}.log"));
        let log = File::create(&path).map_err(describe)?;
        let mut command = Command::new(std::env::current_exe().map_err(describe)?);
        command.args(args).current_dir(folder).process_group(0).kill_on_drop(true);
        not_inherited.iter().for_each(|name| {
            command.env_remove(name);
        });
        command.envs(env.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
        let mut child = command.spawn().map_err(describe)?;
        let stdout = child.stdout.take().ok_or_else(|| format!("{name}: no output"))?;
        Ok(Program { name, log: path, child, output: BufReader::new(stdout).lines() })
    }

    /// Waits for the line in which `start` is found, and gives the word that begins with it.
    pub async fn ready(&mut self, start: &str) -> Result<String, String> {
        self.ready_with([start]).await.map(|[word]| word)
    }

    /// Waits for the line in which words with all of these beginnings are found, and returns them.
    pub async fn ready_with<const N: usize>(&mut self, starts: [&str; N]) -> Result<[String; N], String> {
        let found = timeout(START, async {
            while let Ok(Some(line)) = self.output.next_line().await {
                let words = line.split(|c: char| c.is_whitespace() || "\"'(),".contains(c));
                let words = starts.map(|start| words.clone().find(|word| word.starts_with(start)));
                if words.iter().all(Option::is_some) {
                    return Some(words.map(|word| word.unwrap_or_default().to_owned()));
                }
            }
            None
        });
        let found = found.await;
        found.map_err(|_| format!("the {} is not ready after {START:?}", self.name))?.ok_or_else(|| self.end_message())
    }

    /// Reads what the program prints until it ends.
    pub async fn wait_for_end(&mut self) {
        while let Ok(Some(_)) = self.output.next_line().await {}
    }

    /// Returns the message that the program ended before its time.
    pub fn end_message(&self) -> String {
        format!("the {} ended; see {}", self.name, self.log.display())
    }

    /// Asks the program to end and waits for it.
    pub async fn stop(mut self) {
        if let Some(id) = self.child.id() {
            // SAFETY: a signal to a child that is not reaped yet: its number is still its own.
            unsafe { libc::kill(id as libc::pid_t, libc::SIGTERM) };
        }
        if timeout(END, self.child.wait()).await.is_err() {
            tracing::warn!("{} does not stop and is killed", self.name);
            let _ = self.child.kill().await;
        }
    }
}
