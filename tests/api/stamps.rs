//! Time stamps over evidence. The authority is `openssl ts`, behind a server of one request a connection.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use ringer::service::{Authorities, verify};
use serde_json::json;

use super::receiver::Receiver;
use super::talk::Talk;
use super::texts::reply;
use super::world::World;

/// Settings of the authority for `openssl ts` and of its certificates.
const SETTINGS: &str = "\
[req]
distinguished_name = name
[name]
[root]
basicConstraints = critical, CA:true
[stamps]
extendedKeyUsage = critical, timeStamping
keyUsage = critical, digitalSignature
[tsa]
default_tsa = authority
[authority]
serial = serial
signer_cert = stamps.pem
certs = root.pem
signer_key = stamps.key
signer_digest = sha384
default_policy = 1.2.3.4.1
digests = sha256
accuracy = secs:1, millisecs:500
clock_precision_digits = 3
ordering = yes
tsa_name = yes
ess_cert_id_alg = sha256
";

fn openssl(folder: &Path, words: &str) {
    let ran =
        Command::new("openssl").args(words.split(' ')).current_dir(folder).output().expect("openssl is installed");
    assert!(ran.status.success(), "openssl {words}: {}", String::from_utf8_lossy(&ran.stderr));
}

/// Makes a root and the authority's certificate in a folder.
fn certify(folder: &Path) {
    std::fs::write(folder.join("settings"), SETTINGS).expect("the folder is writable");
    std::fs::write(folder.join("serial"), "01").expect("the folder is writable");
    for words in [
        "req -new -x509 -newkey rsa:2048 -nodes -keyout root.key -out root.pem -subj /CN=Root -config settings -extensions root",
        "req -new -newkey rsa:2048 -nodes -keyout stamps.key -out stamps.csr -subj /CN=Stamps -config settings",
        "x509 -req -in stamps.csr -CA root.pem -CAkey root.key -CAcreateserial -out stamps.pem -extfile settings -extensions stamps",
        "req -new -x509 -newkey rsa:2048 -nodes -keyout other.key -out other.pem -subj /CN=Other -config settings -extensions root",
    ] {
        openssl(folder, words);
    }
}

/// An authority on a thread of its own.
struct Authority {
    folder: PathBuf,
    url: String,
    asked: Arc<AtomicUsize>,
}

impl Authority {
    fn start(folder: &Path) -> Authority {
        certify(folder);
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let url = format!("http://{}/stamps", listener.local_addr().expect("it is bound"));
        let asked = Arc::new(AtomicUsize::new(0));
        let authority = Authority { folder: folder.to_owned(), url, asked: asked.clone() };
        let folder = folder.to_owned();
        let serve = move || {
            for socket in listener.incoming() {
                let mut socket = socket.expect("it is connected");
                let query = body(&mut socket);
                let times = asked.fetch_add(1, Ordering::Relaxed);
                // The first query finds the authority broken.
                let answer = if times == 0 { b"not a stamp".to_vec() } else { stamp(&folder, &query) };
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/timestamp-reply\r\nconnection: close\r\n";
                let head = format!("{head}content-length: {}\r\n\r\n", answer.len());
                socket.write_all(&[head.as_bytes(), &answer].concat()).expect("it is read");
            }
        };
        std::thread::Builder::new().name("authority".to_owned()).spawn(serve).expect("a thread");
        authority
    }

    fn file(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

/// Reads a request and returns its body.
fn body(socket: &mut impl Read) -> Vec<u8> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        let count = socket.read(&mut piece).expect("it is sent");
        assert!(count > 0, "the request has an end");
        bytes.extend_from_slice(&piece[..count]);
        let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        assert!(head.contains("content-type: application/timestamp-query"), "{head}");
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        let length: usize = length.expect("it has a length");
        if bytes.len() >= end + 4 + length {
            return bytes[end + 4..].to_vec();
        }
    }
}

fn stamp(folder: &Path, query: &[u8]) -> Vec<u8> {
    std::fs::write(folder.join("query.tsq"), query).expect("the folder is writable");
    openssl(folder, "ts -reply -config settings -queryfile query.tsq -out answer.tsr");
    std::fs::read(folder.join("answer.tsr")).expect("it is written")
}

#[tokio::test]
async fn evidence_is_stamped_once_by_an_authority() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::start(folder.path());
    let hook = Receiver::answering(vec![reply(json!({ "message": "Bye.", "end_conversation": true }))]).await;
    let agent = json!({ "http_webhook": hook.url("/hook"), "http_webhook_sync_reply": true });
    let url = authority.url.clone();
    let world = World::at_work_with(None, |settings| settings.timestamp_url = Some(url)).await;
    let talk = Talk::of(world, agent, json!({}), json!({})).await;
    talk.until("COMPLETED").await;
    let known = |name: &str| Authorities::parse(&std::fs::read(authority.file(name)).expect("it is there"));
    let check = |archive: &[u8], name: &str| {
        verify(archive, &[], Some(&known(name).expect("certificates"))).expect("it is read")
    };
    // An authority that answers nonsense costs the stamp, and not the evidence.
    let bare = talk.archive().await;
    assert_eq!(check(&bare, "root.pem").broken, ["the manifest has no time stamp"]);
    assert!(verify(&bare[..], &[], None).expect("it is read").broken.is_empty());
    let archive = talk.archive().await;
    assert_eq!(talk.archive().await, archive, "the same archive whenever it is asked for");
    assert_eq!(authority.asked.load(Ordering::Relaxed), 2, "a stamp is asked for until there is one");
    let members = talk.evidence().await;
    for name in ["manifest.json", "manifest.tsr"] {
        std::fs::write(authority.file(name), &members[name]).expect("the folder is writable");
    }
    openssl(folder.path(), "ts -verify -data manifest.json -in manifest.tsr -CAfile root.pem");
    let good = check(&archive, "root.pem");
    assert!(good.broken.is_empty(), "{good:?}");
    let stamped = good.stamped.expect("it is stamped");
    assert_eq!((stamped.authority.as_str(), stamped.is_known), ("CN=Stamps", true));
    assert!(good.holds.iter().any(|line| line.contains("by the time stamp of CN=Stamps")), "{:?}", good.holds);
    let unproven = verify(&archive[..], &[], None).expect("it is read").stamped.expect("it is stamped");
    assert!(!unproven.is_known, "a certificate in the archive proves nothing");
    let other = check(&archive, "other.pem");
    assert!(other.broken[0].contains("its authority CN=Stamps is not certified"), "{:?}", other.broken);
    assert!(Authorities::parse(b"nothing").is_err());
}

#[tokio::test]
async fn a_stamp_that_was_changed_by_one_byte_is_found() {
    let folder = tempfile::tempdir().expect("a folder");
    let authority = Authority::start(folder.path());
    authority.asked.store(1, Ordering::Relaxed);
    let hook = Receiver::answering(vec![reply(json!({ "message": "Bye.", "end_conversation": true }))]).await;
    let agent = json!({ "http_webhook": hook.url("/hook"), "http_webhook_sync_reply": true });
    let url = authority.url.clone();
    let world = World::at_work_with(None, |settings| settings.timestamp_url = Some(url)).await;
    let talk = Talk::of(world, agent, json!({}), json!({})).await;
    talk.until("COMPLETED").await;
    let archive = talk.archive().await;
    let stamp = &talk.evidence().await["manifest.tsr"];
    let from = archive.windows(stamp.len()).position(|window| window == &stamp[..]).expect("it is in the archive");
    let root = Authorities::parse(&std::fs::read(authority.file("root.pem")).expect("it is there")).expect("one");
    let whole = verify(&archive[..], &[], Some(&root)).expect("it is read").stamped.expect("it is stamped");
    for at in (0..stamp.len()).step_by(7) {
        let mut changed = archive.clone();
        changed[from + at] ^= 1;
        let found = verify(&changed[..], &[], Some(&root)).expect("it is read");
        // What no signature covers may change: then the stamp says what it said.
        assert!(!found.broken.is_empty() || found.stamped.as_ref() == Some(&whole), "byte {at}: {found:?}");
    }
}
