//! Servers on loopback whose certificates come from an authority that the test makes.

use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use ringer_base::tasks::Tasks;
use ringer_base::testing::WebServer;
use ringer_base::tls::{Roots, install_tls};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tempfile::TempDir;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::chat::{ChatConfig, ChatModel};
use crate::guard::Guard;
use crate::remote::{Form, HttpRecognizer, Remote, RemoteSynthesizer, RemoteVoices, WsRecognizer};
use crate::{
    ChatMessage, ChatRequest, ChatRole, Failure, Recognized, Recognizer, SpokenIn, Voice, complete, whole_speech,
};

/// Time limit of one step on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes `ca.pem`, and `server.pem` of it for 127.0.0.1.
fn authority() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("ext"), "subjectAltName=IP:127.0.0.1\nbasicConstraints=CA:FALSE\n")
        .expect("written");
    let openssl = |arguments: &str| {
        let done = Command::new("openssl").args(arguments.split(' ')).current_dir(folder.path()).output();
        let done = done.expect("the package openssl is installed");
        assert!(done.status.success(), "openssl {arguments}: {}", String::from_utf8_lossy(&done.stderr));
    };
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(&format!("req -x509 {key} -keyout ca.key -out ca.pem -days 2 -subj /CN=A-company"));
    openssl(&format!("req {key} -keyout server.key -out server.csr -subj /CN=speech"));
    openssl("x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile ext -out server.pem");
    folder
}

/// A server of chat completions and speech over TLS. Closed when dropped.
struct Server {
    address: String,
    _stop: DropGuard,
}

impl Server {
    async fn start(folder: &TempDir, is_socket: bool) -> Server {
        install_tls();
        let read = |name: &str| std::fs::read(folder.path().join(name)).expect("openssl wrote it");
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read("server.pem")).collect();
        let key = PrivateKeyDer::from_pem_slice(&read("server.key")).expect("a key");
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(chain.expect("PEM"), key);
        let acceptor = TlsAcceptor::from(Arc::new(config.expect("they fit each other")));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a loopback port is free");
        let address = listener.local_addr().expect("it is bound").to_string();
        let (stop, tasks) = (CancellationToken::new(), Tasks::new());
        let stopped = stop.clone();
        Tasks::new().spawn("server over TLS", async move {
            while let Some(Ok((socket, _))) = stopped.run_until_cancelled(listener.accept()).await {
                let acceptor = acceptor.clone();
                tasks.spawn("connection over TLS", async move {
                    // A client that does not trust the certificate is gone.
                    let Ok(stream) = acceptor.accept(socket).await else { return };
                    if is_socket { listen(stream).await } else { answer(stream).await }
                });
            }
        });
        Server { address, _stop: stop.drop_guard() }
    }
}

/// Answers one request by HTTP: what it asks for is told by its path.
async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 8192]);
    let head = loop {
        if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..at]).to_lowercase();
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
            if bytes.len() - at - 4 >= length.unwrap_or(0) {
                break head;
            }
        }
        let Ok(count @ 1..) = stream.read(&mut buffer).await else { return };
        bytes.extend_from_slice(&buffer[..count]);
    };
    let (kind, body) = match () {
        () if head.contains("/audio/transcriptions") => {
            ("application/json", json!({ "text": "hello" }).to_string().into_bytes())
        }
        () if head.contains("/audio/speech") => ("audio/pcm", [0x10, 0x27].repeat(24_000)),
        () => {
            let event = json!({ "choices": [{ "index": 0, "delta": { "content": "Good day." } }] });
            ("text/event-stream", format!("data: {event}\n\ndata: [DONE]\n\n").into_bytes())
        }
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all(&[head.as_bytes(), &body].concat()).await;
    let _ = stream.shutdown().await;
}

/// Serves one connection as a recognizer by WebSocket.
async fn listen(stream: impl AsyncRead + AsyncWrite + Unpin) {
    let Ok(mut stream) = accept_async(stream).await else { return };
    while let Some(Ok(message)) = stream.next().await {
        if matches!(&message, Message::Text(text) if text.contains("finish")) {
            for message in [json!({ "type": "final", "text": "hello" }), json!({ "type": "done" })] {
                let _ = stream.send(Message::text(message.to_string())).await;
            }
        }
    }
}

/// Returns the last that is said of a second of sound.
async fn recognize(recognizer: &dyn Recognizer) -> Result<String, Failure> {
    let (mut feed, mut news) = recognizer.open(SpokenIn::Known("en"), &[]);
    feed.push(&[1000; 16_000]);
    feed.finish();
    let mut last = None;
    while let Some(said) = timeout(PATIENCE, news.recv()).await.expect("it ends in time") {
        last = Some(said);
    }
    match last {
        Some(Recognized::Final { text, .. }) => Ok(text),
        Some(Recognized::Failed(failure)) => Err(failure),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn servers_of_ones_own_authority_are_reached_with_its_root_alone() {
    let folder = authority();
    let (server, socket) = (Server::start(&folder, false).await, Server::start(&folder, true).await);
    let own = Roots::from_file(&folder.path().join("ca.pem")).expect("it is a certificate");
    let strangers = Roots::from_file(&authority().path().join("ca.pem")).expect("another authority of the same name");
    let url = format!("https://{}/v1", server.address);
    for (roots, is_trusted) in [(own, true), (Roots::default(), false), (strangers, false)] {
        let remote = |base_url: &str| Remote { roots: roots.clone(), ..Remote::new(base_url, None, "m") };
        let guarded = Guard::new(true).trusting(&roots).client().expect("TLS is there");
        assert_eq!(guarded.get(&url).send().await.is_ok(), is_trusted, "room servers, pipelines and webhooks");
        let chat = ChatConfig { roots: roots.clone(), ..ChatConfig::new(&url, None, "m") };
        let hello = ChatMessage { role: ChatRole::User, content: "Hello?".into() };
        let request = ChatRequest { messages: vec![hello], ..ChatRequest::default() };
        let said = complete(&ChatModel::new(chat).expect("TLS is there"), &request).await;
        let by_http = recognize(&HttpRecognizer::new(remote(&url), 0, false).expect("TLS is there")).await;
        let by_socket = recognize(&WsRecognizer::new(remote(&format!("wss://{}/x", socket.address)))).await;
        let voices = RemoteVoices { default: "v".into(), named: Default::default(), natural_wpm: 170.0 };
        let speaker = RemoteSynthesizer::new(Form::Http, remote(&url), voices).expect("TLS is there");
        let voice = Voice { id: "remote:v".into(), ..Voice::default() };
        let spoken = whole_speech(&speaker, "Hello.", &voice).await.map(|pcm| pcm.len());
        if is_trusted {
            assert_eq!((said, by_http, by_socket), (Ok("Good day.".into()), Ok("hello".into()), Ok("hello".into())));
            assert!(spoken.as_ref().is_ok_and(|samples| *samples > 0), "{spoken:?}");
        } else {
            let code = |result: Result<String, Failure>| result.expect_err("it is not trusted").code;
            assert_eq!(code(said), "language_model_unreachable");
            assert_eq!((code(by_http), code(by_socket)), ("recognizer_unreachable", "recognizer_unreachable"));
            assert_eq!(spoken.expect_err("it is not trusted").code, "synthesizer_unreachable");
        }
    }
}

#[tokio::test]
async fn a_self_signed_certificate_is_believed_where_it_is_named_itself() {
    let make = || {
        let folder = authority();
        let arguments = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout server.key -out \
                         server.pem -days 2 -subj /CN=agent -addext subjectAltName=IP:127.0.0.1";
        let done = Command::new("openssl").args(arguments.split_whitespace()).current_dir(folder.path()).output();
        assert!(done.expect("the package openssl is installed").status.success());
        folder
    };
    let (folder, strangers) = (make(), make());
    let roots = |folder: &TempDir| Roots::from_file(&folder.path().join("server.pem")).expect("it is a certificate");
    let (server, socket) = (Server::start(&folder, false).await, Server::start(&folder, true).await);
    for (roots, is_trusted) in [(roots(&folder), true), (roots(&strangers), false)] {
        let remote = |base_url: &str| Remote { roots: roots.clone(), ..Remote::new(base_url, None, "m") };
        let http = remote(&format!("https://{}/v1", server.address));
        let by_http = recognize(&HttpRecognizer::new(http, 0, false).expect("TLS is there")).await;
        let by_socket = recognize(&WsRecognizer::new(remote(&format!("wss://{}/x", socket.address)))).await;
        assert_eq!((by_http.is_ok(), by_socket.is_ok()), (is_trusted, is_trusted), "{by_http:?} {by_socket:?}");
    }
}

#[tokio::test]
async fn a_request_with_a_key_is_redirected_within_its_place_alone() {
    install_tls();
    let to = |place: &str| {
        format!("HTTP/1.1 307 Moved\r\nlocation: {place}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
            .into_bytes()
    };
    let far = WebServer::start(|_| WebServer::file(b"far")).await.expect("loopback has a free port");
    let there = far.url("/there");
    let near = WebServer::start(move |path| match path {
        "/own" => to("/here"),
        "/other" => to(&there),
        "/round" => to("/round"),
        _ => WebServer::file(b"near"),
    });
    let near = near.await.expect("loopback has a free port");
    let client = Roots::default().trusted_by(reqwest::Client::builder().no_proxy()).expect("a client");
    let ask = async |path: &str| client.get(near.url(path)).header("api-key", "k").send().await;
    assert_eq!(ask("/own").await.expect("it answers").status().as_u16(), 200);
    assert_eq!(ask("/other").await.expect("it answers").status().as_u16(), 307);
    assert!(ask("/round").await.is_err());
    assert_eq!(far.paths(), [""; 0], "the key does not go there");
}
