//! Relays between the two sides: one that refuses, and `exim4`.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::{Duration, interval, timeout};

use super::house::{DOMAIN, House, agent, free_port};
use crate::program::PATIENCE;

#[tokio::test]
async fn a_relay_that_refuses_for_good_ends_it() {
    let house = House::start().await;
    house.agent.tell("/script", json!({ "refuse": "550 5.7.1 not from you", "refusals": 1 })).await;
    let id = house.queue(json!({}), json!({})).await;
    let result = house.until(&id, "NO_CONNECTION").await;
    assert_eq!(result["error_code"], "EMAIL_SEND_FAILED");
    let message = result["error_message"].as_str().expect("a message");
    assert!(message.contains("550") && message.contains("not from you"), "{message}");
}

#[tokio::test]
async fn a_later_mail_that_is_refused_drops_the_thread() {
    let house = House::start().await;
    let id = house.queue(json!({}), json!({})).await;
    let to = house.mails(1).await[0]["from"].clone();
    house.agent.tell("/script", json!({ "refuse": "554 5.7.1 no more", "refusals": 1 })).await;
    assert_eq!(house.send(json!({ "to": [to], "text": "For how many?" })).await, 250);
    let result = house.until(&id, "CALL_DROPPED").await;
    assert_eq!((&result["error_code"], &result["error_owner"]), (&json!("EMAIL_SEND_FAILED"), &json!("provider")));
}

/// A mail server that runs: it takes mails for two domains, and brings them to two ports.
struct Exim {
    child: Child,
    _folder: TempDir,
    port: u16,
}

impl Drop for Exim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Exim {
    async fn start(agent_port: u16, listens: u16) -> Exim {
        let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
        let port = free_port();
        let file = folder.path().join("exim.conf");
        fs::write(&file, settings(folder.path(), port, agent_port, listens)).expect("it can be written");
        // It serves as the user that its package has made.
        let status = Command::new("chown").args(["-R", "Debian-exim:Debian-exim"]).arg(folder.path()).status();
        assert!(status.is_ok_and(|status| status.success()), "the package exim4-daemon-light is installed");
        let root = Command::new("chown").arg("root").arg(&file).status();
        assert!(root.is_ok_and(|status| status.success()));
        let mut command = Command::new("/usr/sbin/exim4");
        command.arg("-C").arg(&file).args(["-bdf", "-q1s"]).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(Stdio::null()).spawn().expect("the package exim4-daemon-light is installed");
        let exim = Exim { child, _folder: folder, port };
        let mut looks = interval(Duration::from_millis(50));
        let listening = timeout(PATIENCE, async {
            while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
                looks.tick().await;
            }
        });
        listening.await.expect("it listens");
        exim
    }
}

fn settings(folder: &Path, port: u16, agent_port: u16, listens: u16) -> String {
    let folder = folder.display();
    format!(
        "primary_hostname = relay.example\nlocal_interfaces = 127.0.0.1\ndaemon_smtp_ports = {port}\ntls_advertise_hosts =\n\
         spool_directory = {folder}/spool\nlog_file_path = {folder}/%slog\npid_file_path = {folder}/pid\nkeep_environment =\n\
         acl_smtp_rcpt = take\nacl_smtp_data = take\nqualify_domain = relay.example\nhost_lookup =\nrfc1413_hosts =\n\
         prdr_enable = false\nbegin acl\ntake:\n  accept\nbegin routers\nout:\n  driver = manualroute\n  \
         route_data = ${{if eq{{$domain}}{{{DOMAIN}}}{{127.0.0.1::{listens}}}{{127.0.0.1::{agent_port}}}}}\n  self = send\n  \
         transport = out\nbegin transports\nout:\n  driver = smtp\n  allow_localhost\n  hosts_try_fastopen =\nbegin retry\n* * F,1h,1s\n"
    )
}

#[tokio::test]
async fn mails_go_to_and_fro_through_a_mail_server() {
    let (agent, agent_port) = agent().await;
    let listens = free_port();
    let exim = Exim::start(agent_port, listens).await;
    let folder = tempfile::tempdir().expect("a folder");
    let house = House::in_folder(folder, agent, (exim.port, listens), ("", None)).await;
    let replies = ["For how many?", "At which hour?", "It is booked."];
    house.agent.tell("/script", json!({ "replies": replies, "port": exim.port, "headers": {} })).await;
    let id = house.queue(json!({}), json!({})).await;
    let result = house.until(&id, "COMPLETED").await;
    assert_eq!(result["end_reason"], "dh_end_call");
    let lines = house.lines(&id).await;
    assert_eq!((lines.len(), lines[1].1.as_str()), (7, "For how many?"), "{lines:?}");
}

#[tokio::test]
async fn a_mail_that_comes_back_ends_it() {
    let (agent, agent_port) = agent().await;
    let listens = free_port();
    let exim = Exim::start(agent_port, listens).await;
    let folder = tempfile::tempdir().expect("a folder");
    let house = House::in_folder(folder, agent, (exim.port, listens), ("", None)).await;
    house.agent.tell("/script", json!({ "refuse": "550 5.1.1 nobody here", "refusals": 1 })).await;
    let id = house.queue(json!({}), json!({})).await;
    let result = house.until(&id, "CALL_DROPPED").await;
    assert_eq!(result["error_code"], "EMAIL_SEND_FAILED");
    let message = result["error_message"].as_str().expect("a message");
    assert!(message.contains("could not be delivered") && message.contains("nobody here"), "{message}");
}
