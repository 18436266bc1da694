//! Databases that an engine cannot work with: it says so at its start.

use std::process::{Child, Command, Stdio};

use ringer::config::Secret;
use ringer::store::Location;
use ringer::store::vault::Vault;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};

use crate::databases::{self, Server};
use crate::program::PATIENCE;

/// A pooler before a server. It ends with the test.
struct Pooler {
    process: Child,
    port: u16,
    _folder: TempDir,
}

impl Pooler {
    async fn start(server: &Server, mode: &str) -> Pooler {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let port = listener.local_addr().expect("it is bound").port();
        drop(listener);
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        let own = |name: &str| folder.path().join(name).display().to_string();
        let settings = format!(
            "[databases]\npostgres = host={} dbname=postgres user=ringer\n[pgbouncer]\nlisten_addr = 127.0.0.1\n\
             listen_port = {port}\nunix_socket_dir =\nauth_type = any\npool_mode = {mode}\nlogfile = {}\n\
             ignore_startup_parameters = extra_float_digits,options\nmax_client_conn = 100\n",
            server.folder().display(),
            own("log"),
        );
        std::fs::write(folder.path().join("pgbouncer.ini"), settings).expect("the folder is writable");
        let mut command = Command::new("pgbouncer");
        // As root it changes to a user that has to read its settings.
        if let Some((user, group)) = server.user() {
            std::os::unix::fs::chown(folder.path(), Some(user), Some(group)).expect("root may give a folder away");
            command.args(["-u", "postgres"]);
        }
        command.arg(folder.path().join("pgbouncer.ini")).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("the package pgbouncer is installed");
        let started = async {
            while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, started).await.expect("it listens in time");
        Pooler { process, port, _folder: folder }
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns why a database cannot be opened; empty: it can.
async fn refusal(location: Location) -> String {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    let opened = ringer::store::Store::open(location, Vault::open(folder.path(), None, &[]).expect("a vault")).await;
    match opened {
        Ok(store) => {
            store.close().await;
            String::new()
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_an_engine_cannot_work_with_is_said_at_its_start() {
    let server = Server::start(false);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime starts").block_on(async {
        for (mode, said) in [("transaction", "pool_mode = session"), ("session", "")] {
            let pooler = Pooler::start(&server, mode).await;
            let url = format!("postgres://ringer@127.0.0.1:{}/postgres?sslmode=disable", pooler.port);
            let why = refusal(Location::Server(Secret::new(url))).await;
            assert!(if said.is_empty() { why.is_empty() } else { why.contains(said) }, "{mode}: {why}");
        }
        let own = Location::Server(Secret::new(server.url()));
        databases::run(&own, "ALTER DATABASE postgres SET default_transaction_read_only = on").await;
        let why = refusal(own).await;
        assert!(why.contains("takes no changes"), "{why}");
    });
}
