//! The command that a suite starts: a process group of its own, which ends with the run, whatever ends it.

use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};

use crate::config::variable;
use crate::suite::spawn::Spawn;

/// Time that a command has to end in after TERM.
const END: Duration = Duration::from_secs(5);
/// Time between two looks for whether a command is ready, or has ended.
const LOOK: Duration = Duration::from_millis(50);
/// Variables that a command is given of this process.
const GIVEN: [&str; 3] = ["PATH", "HOME", "LANG"];

/// A command that was started.
pub(crate) struct Running {
    child: Child,
    group: i32,
    ended: Arc<Mutex<Option<String>>>,
}

impl Running {
    /// Starts a command; what it prints goes to `log`.
    ///
    /// # Errors
    /// It cannot be started, or another program takes connections where the command is waited for.
    pub(crate) async fn start(spawn: &Spawn, log: &Path) -> Result<Running, String> {
        if let Some(address) = taking(&spawn.ready).await {
            return Err(format!(
                "{address}, where the agent's command is waited for, is taken by another program: end it, or choose another port"
            ));
        }
        let describe = |error: std::io::Error| format!("{}: {error}", spawn.command.first().map_or("", String::as_str));
        let (program, args) = spawn.command.split_first().ok_or("there is no command")?;
        let out = File::create(log).map_err(describe)?;
        let mut command = Command::new(program);
        command.args(args).env_clear().current_dir(&spawn.folder).process_group(0).kill_on_drop(true);
        for name in GIVEN {
            command.envs(variable(name).map(|value| (name, value)));
        }
        command.envs(&spawn.env).env_remove("RINGER_API_KEY");
        command.stdin(Stdio::null()).stdout(out.try_clone().map_err(describe)?).stderr(out);
        let child = command.spawn().map_err(describe)?;
        let group = child.id().ok_or("the command has no process id")? as i32;
        Ok(Running { child, group, ended: Arc::default() })
    }

    /// Waits until it takes connections.
    ///
    /// # Errors
    /// It ended, or was not ready in time.
    pub(crate) async fn ready(&mut self, spawn: &Spawn) -> Result<(), String> {
        if spawn.ready.is_empty() {
            return Ok(());
        }
        let within = Duration::from_secs_f64(spawn.within_s);
        let looking = async {
            loop {
                if let Some(status) = self.exit_reason() {
                    return Err(format!("the agent's command {status}"));
                }
                if taking(&spawn.ready).await.is_some() {
                    // A command that has ended does not take them.
                    return self.exit_reason().map_or(Ok(()), |status| Err(format!("the agent's command {status}")));
                }
                sleep(LOOK).await;
            }
        };
        let addresses = spawn.ready.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
        let late = || format!("the agent's command was not ready at {addresses} within {} s", spawn.within_s);
        timeout(within, looking).await.unwrap_or_else(|_| Err(late()))
    }

    /// Returns the way in which the command ended; `None` while it runs.
    pub(crate) fn exit_reason(&mut self) -> Option<String> {
        let mut ended = self.ended.lock();
        if ended.is_none() {
            *ended = self.child.try_wait().ok().flatten().map(describe_exit);
        }
        ended.clone()
    }

    /// Asks the whole group to end, and kills what is left of it after 5 s.
    pub(crate) async fn stop(mut self) {
        self.signal(libc::SIGTERM);
        let _ = timeout(END, self.child.wait()).await;
        // Members of the group may outlive the command itself.
        let _ = timeout(END, async {
            while self.signal(0) {
                sleep(LOOK).await;
            }
        })
        .await;
        self.signal(libc::SIGKILL);
        let _ = self.child.wait().await;
    }

    /// Sends a signal to the group; returns false if nobody of it is there.
    fn signal(&self, signal: i32) -> bool {
        // SAFETY: sends a signal to the group that was made for the child; takes no pointer.
        unsafe { libc::killpg(self.group, signal) == 0 }
    }
}

/// Returns the first of these addresses that takes connections.
async fn taking(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    for address in addresses {
        if TcpStream::connect(address).await.is_ok() {
            return Some(*address);
        }
    }
    None
}

impl Drop for Running {
    fn drop(&mut self) {
        self.signal(libc::SIGKILL);
    }
}

fn describe_exit(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with status {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a shell script that is ready when one of these ports of 127.0.0.1 takes connections.
    fn spawn(script: &str, ready: &[u16], within_s: f64) -> Spawn {
        Spawn {
            command: vec!["/bin/sh".into(), "-c".into(), script.into()],
            env: [("GIVEN".to_owned(), "yes".to_owned())].into(),
            folder: ".".into(),
            ready: ready.iter().map(|port| SocketAddr::from(([127, 0, 0, 1], *port))).collect(),
            within_s,
        }
    }

    #[tokio::test]
    async fn a_command_is_ready_or_has_ended_or_is_late() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        for (script, ports, within_s, expect) in [
            ("exec sleep 60", &[][..], 30.0, Ok(())),
            ("exit 3", &[1], 30.0, Err("the agent's command ended with status 3")),
            ("exec sleep 60", &[1], 0.1, Err("the agent's command was not ready at 127.0.0.1:1 within 0.1 s")),
        ] {
            let spawn = spawn(script, ports, within_s);
            let mut running = Running::start(&spawn, &log).await.expect("it starts");
            let ready = running.ready(&spawn).await;
            assert_eq!(
                ready.as_ref().map_err(String::as_str),
                expect.as_ref().map(|()| &()).map_err(|why| *why),
                "{script}"
            );
            running.stop().await;
        }
        let missing = Spawn { command: vec!["/no/such/program".into()], ..spawn("", &[], 1.0) };
        assert!(Running::start(&missing, &log).await.is_err_and(|why| why.starts_with("/no/such/program: ")));
    }

    #[tokio::test]
    async fn a_port_of_another_program_is_no_sign_of_readiness() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let listen = || std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port_of = |open: &std::net::TcpListener| open.local_addr().expect("an address").port();
        let open = listen();
        let port = port_of(&open);
        for ports in [&[port][..], &[1, port]] {
            let why = Running::start(&spawn("exit 1", ports, 30.0), &log).await.err().expect("it is taken");
            assert!(why.contains(&format!("127.0.0.1:{port}")) && why.contains("taken by another program"), "{why}");
        }
        drop(open);
        // The second of two addresses is as good as the first.
        let spawn = spawn("exec sleep 60", &[1, port], 30.0);
        let mut running = Running::start(&spawn, &log).await.expect("it is free");
        let _open = std::net::TcpListener::bind(("127.0.0.1", port)).expect("it was free");
        assert_eq!(running.ready(&spawn).await, Ok(()));
        running.stop().await;
    }

    #[tokio::test]
    async fn its_environment_is_what_was_given_and_its_whole_group_ends() {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let spawn = spawn("env; sleep 600 & echo child $!; wait", &[], 1.0);
        let running = Running::start(&spawn, &log).await.expect("it starts");
        let text = loop {
            let text = std::fs::read_to_string(&log).expect("there is a log");
            if text.contains("child ") {
                break text;
            }
            sleep(LOOK).await;
        };
        let names: Vec<&str> = text.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
        let is_known = |name: &&str| ["PATH", "HOME", "LANG", "GIVEN", "PWD", "OLDPWD", "SHLVL", "_"].contains(name);
        assert!(names.iter().all(is_known) && names.contains(&"GIVEN"), "{names:?}");
        let child: i32 = text.split("child ").nth(1).and_then(|rest| rest.trim().parse().ok()).expect("a number");
        running.stop().await;
        // SAFETY: asks whether a process is there; takes no pointer.
        let is_there = || unsafe { libc::kill(child, 0) } == 0 && !is_zombie(child);
        assert!(!is_there(), "the whole group has ended");
    }

    fn is_zombie(process: i32) -> bool {
        let about = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        about.rsplit(") ").next().is_some_and(|rest| rest.starts_with('Z'))
    }
}
