//! Malformed HTTP is refused with the same body as other errors.

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use super::patience::{PATIENT, rest, serve_world};
use super::world::World;

#[tokio::test]
async fn what_is_no_http_is_told_so() {
    let world = World::new().await;
    serve_world(&world, PATIENT, async |address| {
        let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(70_000));
        let many = format!("GET /v1/ping HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(150));
        for (request, status) in [
            ("GET /v1/ping HTTP/1.1\r\nhost: x\r\nno field\r\n\r\n", "400 Bad Request"),
            ("GET /v1/ping HTTP/9.9\r\n\r\n", "400 Bad Request"),
            ("\u{1} \u{2}\r\n\r\n", "400 Bad Request"),
            (&long, "414 URI Too Long"),
            (&many, "431 Request Header Fields Too Large"),
        ] {
            let mut stream = TcpStream::connect(&address).await.expect("it listens");
            stream.write_all(request.as_bytes()).await.expect("it reads");
            let answer = rest(&mut stream).await;
            assert!(
                answer.starts_with(&format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\n")),
                "{answer}"
            );
            assert!(answer.contains("\r\nconnection: close\r\n") && answer.contains("\r\ndate: "), "{answer}");
            let id = answer.split("\r\nx-request-id: ").nth(1).and_then(|rest| rest.split("\r\n").next());
            assert_eq!(id.map(str::len), Some(36), "{answer}");
            let body = format!("{{\"detail\":\"{}\"}}", &status[4..]);
            assert!(answer.ends_with(&format!("\r\n\r\n{body}")), "{answer}");
            assert!(answer.contains(&format!("\r\ncontent-length: {}\r\n", body.len())), "{answer}");
        }
    })
    .await;
}
