//! A server of NATS of a test's own, on a port of loopback; it ends with the value.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use ringer::config::{Bus, Secret, search_path};

/// Message when no server is installed.
const PACKAGE: &str = "the package nats-server is installed";
/// Credentials that the server takes.
const USER: &str = "ringer";
const PASSWORD: &str = "a password that nobody may read in a log";

/// A server that runs, or may be started again on the same port.
pub(super) struct Server {
    port: u16,
    process: Option<Child>,
}

impl Server {
    /// Starts a server. To be called on a thread that outlives it: the kernel ends it with that thread.
    pub(super) fn start() -> Server {
        let free = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let port = free.local_addr().expect("it is bound").port();
        drop(free);
        let mut server = Server { port, process: None };
        server.run();
        server
    }

    /// Starts it on its port, and waits until it takes connections.
    pub(super) fn run(&mut self) {
        let mut command = Command::new(program());
        command.args(["-a", "127.0.0.1", "-p", &self.port.to_string(), "--user", USER, "--pass", PASSWORD]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // SAFETY: prctl is a system call; nothing else happens between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                Ok(())
            });
        }
        let mut process = command.spawn().expect(PACKAGE);
        let mut notes = BufReader::new(process.stderr.take().expect("it was piped")).lines().map_while(Result::ok);
        self.process = Some(process);
        assert!(notes.any(|note| note.contains("Server is ready")), "it starts");
        let rest = move || notes.for_each(drop);
        std::thread::Builder::new().name("notes".to_owned()).spawn(rest).expect("a thread starts");
    }

    /// Ends it at once.
    pub(super) fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            process.kill().expect("it is our child");
            process.wait().expect("it is our child");
        }
    }

    /// Returns the settings of engines that use it, with subjects of their own.
    pub(super) fn settings(&self, prefix: &str) -> Bus {
        Bus {
            url: vec![format!("nats://127.0.0.1:{}", self.port)],
            user: Some(USER.to_owned()),
            password: Some(Secret::new(PASSWORD.to_owned())),
            prefix: prefix.to_owned(),
            ..Bus::default()
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Returns the program. Debian keeps it where the search path of users does not lead.
fn program() -> PathBuf {
    let places = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from).into_iter().chain(search_path());
    places.map(|folder| folder.join("nats-server")).find(|path| path.exists()).expect(PACKAGE)
}
