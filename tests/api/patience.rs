//! Clients that take their time: each part of a request has a limit, and its own.

use std::sync::Arc;
use std::time::Duration;

use ringer::api::{Patience, Setup, serve};
use ringer::provider::{ChatPart, ChatRequest, Failure, Job, LanguageModel, Status};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::world::World;

/// Time limit of everything that is not to be late.
const LONG: Duration = Duration::from_secs(120);
const SHORT: Duration = Duration::from_millis(100);
pub(super) const PATIENT: Patience = Patience { head: LONG, body: LONG, upload: LONG, answer: LONG, write: LONG };

/// Serves `world` on a socket while `test` runs.
pub(super) async fn serve_world(world: &World, patience: Patience, test: impl AsyncFnOnce(String)) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound").to_string();
    let stop = CancellationToken::new();
    let setup = Setup { patience, ..Setup::default() };
    let serving = serve(listener, world.service.clone(), setup, stop.clone().cancelled_owned());
    let testing = async {
        test(address).await;
        stop.cancel();
    };
    let (served, ()) = timeout(LONG, async { tokio::join!(serving, testing) }).await.expect("it ends");
    served.expect("stops cleanly");
}

fn head(world: &World, method: &str, path: &str, kind: &str, length: usize) -> String {
    let key = world.name("admin");
    format!(
        "{method} {path} HTTP/1.1\r\nhost: ringer\r\nx-api-key: {key}\r\ncontent-type: {kind}\r\n\
         content-length: {length}\r\n\r\n"
    )
}

/// Returns all that comes until the connection ends.
pub(super) async fn rest(stream: &mut TcpStream) -> String {
    let mut came = Vec::new();
    stream.read_to_end(&mut came).await.expect("the connection ends in order");
    String::from_utf8(came).expect("text")
}

/// Sends a body that comes byte by byte, for ever; returns what is answered.
async fn drip(world: &World, address: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    let head = head(world, "POST", "/v1/add-agent", "application/json", 30_000_000);
    stream.write_all(head.as_bytes()).await.expect("it reads");
    let (mut reader, mut writer) = stream.split();
    let mut answer = vec![0; 4096];
    let drip = async {
        while writer.write_all(b" ").await.is_ok() {
            tokio::task::yield_now().await;
        }
        std::future::pending::<()>().await;
    };
    let length = tokio::select! {
        () = drip => unreachable!("it drips for ever"),
        read = reader.read(&mut answer) => read.expect("an answer"),
    };
    String::from_utf8(answer[..length].to_vec()).expect("text")
}

#[tokio::test]
async fn a_body_that_only_drips_is_refused() {
    let world = World::new().await;
    serve_world(&world, Patience { body: SHORT, ..PATIENT }, async |address| {
        let answer = drip(&world, &address).await;
        assert!(answer.starts_with("HTTP/1.1 408 Request Timeout\r\n"), "{answer}");
        assert!(answer.contains("\r\nconnection: close\r\n") && answer.contains("\r\nx-request-id: "), "{answer}");
        assert!(answer.ends_with(r#"{"detail":"Request body was not received in time"}"#), "{answer}");
    })
    .await;
}

#[tokio::test]
async fn a_file_has_a_limit_of_its_own() {
    let world = World::new().await;
    serve_world(&world, Patience { body: SHORT, ..PATIENT }, async |address| {
        let form = "--cut\r\ncontent-disposition: form-data; name=\"name\"\r\n\r\nfan\r\n--cut--\r\n";
        let path = "/v1/custom-background-noises";
        let head = head(&world, "POST", path, "multipart/form-data; boundary=cut", form.len());
        let head = head.replace("host: ringer", "connection: close\r\nhost: ringer");
        let mut slow = TcpStream::connect(&address).await.expect("it listens");
        slow.write_all(format!("{head}{}", &form[..20]).as_bytes()).await.expect("it reads");
        // The limit of other bodies passes meanwhile.
        assert!(drip(&world, &address).await.contains(" 408 "));
        slow.write_all(&form.as_bytes()[20..]).await.expect("it still reads");
        let answer = rest(&mut slow).await;
        assert!(answer.starts_with("HTTP/1.1 422 "), "a form without a file: {answer}");
    })
    .await;
}

#[tokio::test]
async fn a_head_that_does_not_come_ends_the_connection() {
    let world = World::new().await;
    serve_world(&world, Patience { head: SHORT, ..PATIENT }, async |address| {
        for begun in ["", "GET /v1/ping HTTP/1.1\r\nhost: rin"] {
            let mut stream = TcpStream::connect(&address).await.expect("it listens");
            stream.write_all(begun.as_bytes()).await.expect("it reads");
            assert_eq!(rest(&mut stream).await, "", "{begun:?}");
        }
        // So is one that waits after its first request.
        let mut stream = TcpStream::connect(&address).await.expect("it listens");
        stream.write_all(b"GET /v1/ping HTTP/1.1\r\nhost: ringer\r\n\r\n").await.expect("it reads");
        let answer = rest(&mut stream).await;
        assert!(answer.ends_with(r#"{"message":"pong"}"#), "{answer}");
    })
    .await;
}

/// A model that never answers.
struct Silent;

impl LanguageModel for Silent {
    fn chat<'a>(&'a self, _: &'a ChatRequest, _: mpsc::Sender<ChatPart>) -> Job<'a, Result<(), Failure>> {
        Box::pin(std::future::pending())
    }

    fn name(&self) -> String {
        "silent".into()
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}

#[tokio::test]
async fn a_request_that_does_not_end_is_given_up() {
    let patience = Patience { answer: SHORT, ..PATIENT };
    let world = World::with_model_and(Arc::new(Silent), Setup { patience, ..Setup::default() }).await;
    let body = json!({ "prompt": "Book a table." }).to_string().into_bytes();
    let answer = timeout(LONG, world.send("POST", "/v1/workflow/generate-from-prompt", &[], body)).await;
    let answer = answer.expect("it is given up");
    assert_eq!((answer.status, answer.json()), (503, json!({ "detail": "The request took too long" })));
    assert_eq!(answer.headers["retry-after"], "30");
}
