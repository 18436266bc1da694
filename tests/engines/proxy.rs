//! A way to a database server that can be cut and mended.

use std::path::PathBuf;

use ringer::config::Secret;
use ringer::store::Location;
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::watch;

/// A proxy before the socket of a server.
pub(super) struct Proxy {
    is_open: watch::Sender<bool>,
    port: u16,
}

impl Proxy {
    /// Starts one before the server whose socket is in `folder`.
    #[expect(clippy::disallowed_methods, reason = "a proxy of a test, ended with it")]
    pub(super) async fn start(folder: PathBuf) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let is_open = watch::Sender::new(true);
        let state = is_open.subscribe();
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                // What comes while it is cut is closed at once.
                if *state.borrow() {
                    tokio::spawn(carry(client, folder.join(".s.PGSQL.5432"), state.clone()));
                }
            }
        });
        Proxy { is_open, port }
    }

    /// Closes every connection, and takes no new one.
    pub(super) fn sever(&self) {
        self.is_open.send_replace(false);
    }

    /// Takes connections again, also those that were refused.
    pub(super) fn mend(&self) {
        self.is_open.send_replace(true);
    }

    /// Returns a schema of the server as it is reached through this proxy.
    pub(super) fn location(&self, schema: &str) -> Location {
        let url =
            format!("postgres://ringer@127.0.0.1:{}/postgres?sslmode=disable&options[search_path]={schema}", self.port);
        Location::Server(Secret::new(url))
    }
}

async fn carry(mut client: TcpStream, socket: PathBuf, mut state: watch::Receiver<bool>) {
    let Ok(mut server) = UnixStream::connect(socket).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => {}
        _ = state.wait_for(|is_open| !is_open) => {}
    }
}
