//! A PostgreSQL server of a test's own: on a socket in a folder for temporary files, gone with the test.

use std::ffi::CStr;
use std::fs::Permissions;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ringer::config::search_path;
use tempfile::TempDir;

/// Message when no server is installed.
const PACKAGE: &str = "the package postgresql is installed";
/// User inside the database; the server trusts everybody who reaches its socket.
const USER: &str = "ringer";

/// A running server. To be started by a thread that outlives it: the kernel ends it with that thread.
pub(crate) struct Server {
    folder: TempDir,
    programs: PathBuf,
    /// User and group that run the server when the test is root, which PostgreSQL refuses.
    user: Option<(u32, u32)>,
    sure: bool,
    process: Option<Child>,
}

impl Server {
    /// Makes and starts a server. `sure`: what it has committed is on the disk.
    pub(crate) fn start(sure: bool) -> Server {
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        let mut server = Server { folder, programs: programs(), user: other_user(), sure, process: None };
        if let Some((user, group)) = server.user {
            chown(server.folder.path(), Some(user), Some(group)).expect("root may give a folder away");
        }
        std::fs::set_permissions(server.folder.path(), Permissions::from_mode(0o700)).expect("it is ours");
        let made = server
            .command("initdb")
            .args(["--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C.UTF-8", "--username", USER, "--pgdata"])
            .arg(server.data())
            .output()
            .expect(PACKAGE);
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        server.run();
        server
    }

    /// Starts the server on what is in its folder, and waits until it takes connections.
    fn run(&mut self) {
        let mut command = self.command("postgres");
        command.arg("-D").arg(self.data()).arg("-k").arg(self.folder.path());
        // No notes but those of its start and end: nobody reads the rest.
        for setting in ["listen_addresses=", "max_connections=300", "shared_buffers=32MB", "log_min_messages=log"] {
            command.args(["-c", setting]);
        }
        // Hundreds of schemas are made, and none lives long enough to be swept.
        command.args(["-c", "autovacuum=off"]);
        let sure = if self.sure { "on" } else { "off" };
        for setting in ["fsync", "synchronous_commit", "full_page_writes"] {
            command.args(["-c", &format!("{setting}={sure}")]);
        }
        command.args(["-c", "log_checkpoints=off"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        // SAFETY: prctl is a system call; nothing else happens between fork and exec.
        unsafe {
            command.pre_exec(|| {
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGQUIT);
                Ok(())
            });
        }
        let mut process = command.spawn().expect(PACKAGE);
        let mut notes = BufReader::new(process.stderr.take().expect("it was piped")).lines().map_while(Result::ok);
        self.process = Some(process);
        let mut said = Vec::new();
        for note in notes.by_ref() {
            if note.contains("ready to accept connections") {
                let rest = move || notes.for_each(drop);
                std::thread::Builder::new().name("notes".to_owned()).spawn(rest).expect("a thread starts");
                return;
            }
            said.push(note);
        }
        panic!("postgres does not start: {}", said.join("\n"));
    }

    /// Ends every process of the server at once, as `pg_ctl stop -m immediate` does: the next start has to recover.
    fn crash(&mut self) {
        let Some(mut process) = self.process.take() else { return };
        // SAFETY: a signal to a child that was not waited for: the number is still its.
        unsafe { libc::kill(process.id() as i32, libc::SIGQUIT) };
        process.wait().expect("it is our child");
    }

    /// Lets it crash and starts it again, which recovers what was committed.
    pub(crate) fn restart_after_a_crash(&mut self) {
        self.crash();
        self.run();
    }

    /// Returns the database that is there from the start.
    pub(crate) fn url(&self) -> String {
        let folder = self.folder.path().to_str().expect("the folder for temporary files is text");
        format!("postgres://{USER}@{}/postgres", folder.replace('/', "%2F"))
    }

    /// Returns user and group that run it when the test is root.
    pub(crate) fn user(&self) -> Option<(u32, u32)> {
        self.user
    }

    /// Returns the folder of its socket.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.programs.join(program));
        command.current_dir(self.folder.path());
        if let Some((user, group)) = self.user {
            command.uid(user).gid(group);
        }
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.crash();
    }
}

/// Returns the folder of `initdb` and `postgres`. Debian keeps each version in a folder of its own, outside the search
/// path.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().filter_map(Result::ok);
    let number = |path: &Path| path.parent()?.file_name()?.to_str()?.parse::<u32>().ok();
    let mut folders: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    folders.sort_by_key(|path| number(path));
    let places = folders.into_iter().rev().chain(search_path());
    places.into_iter().find(|folder| folder.join("initdb").exists()).expect(PACKAGE)
}

/// Returns the user and group that the package has made, when this process is root.
fn other_user() -> Option<(u32, u32)> {
    const NAME: &CStr = c"postgres";
    // SAFETY: both calls read the system's tables; the entry is copied before anything else asks for one.
    unsafe {
        if libc::geteuid() != 0 {
            return None;
        }
        let entry = libc::getpwnam(NAME.as_ptr());
        assert!(!entry.is_null(), "{PACKAGE}: there is no user postgres");
        Some(((*entry).pw_uid, (*entry).pw_gid))
    }
}
