//! A mailbox of `dovecot` that is read by IMAP.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::{Duration, interval, timeout};

use super::house::{AGENT, House, agent, free_port};
use crate::program::PATIENCE;

/// A server with one mailbox, of the user `qa`.
struct Dovecot {
    child: Child,
    folder: TempDir,
    port: u16,
    tls: String,
}

impl Drop for Dovecot {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

impl Dovecot {
    async fn start(port: u16) -> Dovecot {
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        Dovecot::start_in(folder, port, String::new()).await
    }

    /// Starts a server that speaks TLS alone, with a certificate in the file `cert.pem` of its folder.
    async fn start_secured(port: u16) -> Dovecot {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).expect("a certificate");
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        let (certificate, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
        fs::write(&certificate, made.cert.pem()).expect("it can be written");
        fs::write(&key, made.signing_key.serialize_pem()).expect("it can be written");
        let tls = format!("ssl = required\nssl_cert = <{}\nssl_key = <{}\n", certificate.display(), key.display());
        Dovecot::start_in(folder, port, tls).await
    }

    /// Starts a server; `tls`: the settings of its certificate, empty without one.
    async fn start_in(folder: TempDir, port: u16, tls: String) -> Dovecot {
        let dovecot = Dovecot { child: run(folder.path(), port, &tls), folder, port, tls };
        dovecot.listens().await;
        dovecot
    }

    async fn listens(&self) {
        let mut looks = interval(Duration::from_millis(50));
        let listening = timeout(PATIENCE, async {
            while TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
                looks.tick().await;
            }
        });
        listening.await.expect("it listens");
    }

    /// Stops the server and starts it again.
    async fn restart(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
        self.child = run(self.folder.path(), self.port, &self.tls);
        self.listens().await;
    }

    fn mails(&self) -> PathBuf {
        self.folder.path().join("mail")
    }

    /// Puts a mail into the mailbox, as a delivery agent does.
    fn deliver(&self, name: &str, raw: &str) {
        let (unfinished, new) = (self.mails().join("tmp").join(name), self.mails().join("new").join(name));
        fs::write(&unfinished, raw).expect("it can be written");
        let _ = Command::new("chown").arg("dovenull").arg(&unfinished).status();
        fs::rename(unfinished, new).expect("it can be moved");
    }

    /// Returns the names of all mails, with those that are marked as read.
    fn names(&self) -> (Vec<String>, Vec<String>) {
        let mut all = Vec::new();
        for folder in ["new", "cur"] {
            let entries = fs::read_dir(self.mails().join(folder)).expect("a folder");
            all.extend(entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()));
        }
        all.sort();
        let is_read = |name: &&String| name.split_once(":2,").is_some_and(|(_, flags)| flags.contains('S'));
        let read = all.iter().filter(is_read).cloned().collect();
        (all, read)
    }
}

fn run(folder: &Path, port: u16, tls: &str) -> Child {
    for name in ["mail/new", "mail/cur", "mail/tmp", "run", "state"] {
        fs::create_dir_all(folder.join(name)).expect("it can be made");
    }
    let place = folder.display();
    let (plain, secured) = if tls.is_empty() { (port, 0) } else { (0, port) };
    let tls = if tls.is_empty() { "ssl = no\n" } else { tls };
    let settings = format!(
        "base_dir = {place}/run\nstate_dir = {place}/state\nlog_path = {place}/log\nprotocols = imap\nlisten = 127.0.0.1\n\
         {tls}disable_plaintext_auth = no\nmail_location = maildir:{place}/mail\nfirst_valid_uid = 1\n\
         first_valid_gid = 1\nmaildir_stat_dirs = yes\nmailbox_idle_check_interval = 1 secs\n\
         passdb {{\n  driver = static\n  args = password=word\n}}\n\
         userdb {{\n  driver = static\n  args = uid=dovenull gid=dovenull home={place}/mail\n}}\n\
         service imap-login {{\n  inet_listener imap {{\n    port = {plain}\n  }}\n  inet_listener imaps {{\n    port = {secured}\n    ssl = yes\n  }}\n}}\n\
         service stats {{\n  unix_listener stats-writer {{\n    mode = 0666\n  }}\n}}\n"
    );
    let file = folder.join("dovecot.conf");
    fs::write(&file, settings).expect("it can be written");
    let _ = Command::new("chmod").arg("755").arg(folder).status();
    let owned = Command::new("chown").args(["-R", "dovenull:dovenull"]).arg(folder.join("mail")).status();
    assert!(owned.is_ok_and(|status| status.success()), "the package dovecot-imapd is installed");
    let mut command = Command::new("/usr/sbin/dovecot");
    command.arg("-F").arg("-c").arg(file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().expect("the package dovecot-imapd is installed")
}

#[tokio::test]
async fn a_mailbox_is_read_and_mails_of_others_are_left_alone() {
    let mut dovecot = Dovecot::start(free_port()).await;
    let (agent, agent_port) = agent().await;
    let lines = format!("address = 'qa@x.example'\nimap_url = 'imap://qa:word@127.0.0.1:{}/INBOX'", dovecot.port);
    let house = House::by_relay(agent, agent_port, &lines).await;
    let id = house.queue(json!({}), json!({ "max_turns": 2 })).await;
    let first = house.mails(1).await[0].clone();
    let (to, message_id) = (first["from"].as_str().expect("an address"), &first["headers"]["Message-ID"]);
    let message_id = message_id.as_str().expect("an id");
    let mail = |name: &str, to: &str, text: &str| {
        format!(
            "Return-Path: <{AGENT}>\nFrom: {AGENT}\nTo: {to}\nMessage-ID: <{name}@agent.example>\nIn-Reply-To: {message_id}\n\n{text}\n"
        )
    };
    dovecot.deliver("one", &mail("one", "somebody@x.example", "Not for you."));
    dovecot.deliver("two", &mail("two", to, "For how many?"));
    house.mails(2).await;
    // A mailbox that disconnects is opened again.
    dovecot.restart().await;
    // Mails that come while others are read are not left until the next look.
    for number in 0..40 {
        let name = format!("burst-{number}");
        dovecot.deliver(&name, &mail(&name, to, "x").replace(&format!("From: {AGENT}"), "From: thief@evil.example"));
    }
    dovecot.deliver("three", &mail("three", to, "It is booked."));
    let result = house.until(&id, "COMPLETED").await;
    assert_eq!(result["end_reason"], "max_turns");
    let mut looks = interval(Duration::from_millis(50));
    let marked = timeout(PATIENCE, async {
        while dovecot.names().1.len() < 42 {
            looks.tick().await;
        }
    });
    assert!(marked.await.is_ok(), "{:?}", dovecot.names());
    let (all, read) = dovecot.names();
    assert_eq!(all.len(), 43, "none is deleted: {all:?}");
    assert!(read.iter().all(|name| !name.starts_with("one")), "{read:?}");
}

#[tokio::test]
async fn a_mailbox_is_read_over_tls() {
    let mut dovecot = Dovecot::start_secured(free_port()).await;
    let (agent, agent_port) = agent().await;
    let lines = format!(
        "address = 'qa@x.example'\nimap_url = 'imaps://qa:word@127.0.0.1:{}'\n[tls]\nroot_file = '{}'",
        dovecot.port,
        dovecot.folder.path().join("cert.pem").display()
    );
    let house = House::by_relay(agent, agent_port, &lines).await;
    let id = house.queue(json!({}), json!({ "max_turns": 1 })).await;
    let first = house.mails(1).await[0].clone();
    let to = first["from"].as_str().expect("an address");
    // The server goes in the middle of it, and comes again.
    dovecot.restart().await;
    dovecot.deliver("one", &format!("From: {AGENT}\nTo: {to}\nMessage-ID: <one@agent.example>\n\nIt is booked.\n"));
    house.until(&id, "COMPLETED").await;
    assert_eq!(house.lines(&id).await[1], ("AGENT".to_owned(), "It is booked.".to_owned()));
}
