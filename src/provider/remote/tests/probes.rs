//! Servers that are asked whether they are there.

use super::*;

/// Probes a server that answers the request for its models with `status`; returns the outcome and the request's head.
async fn by_http(status: u16) -> (Result<Probed, Failure>, String) {
    let (asked, mut heads) = tokio::sync::mpsc::channel(1);
    let server = Server::start(move |mut socket| {
        let asked = asked.clone();
        async move {
            let (head, _) = request(&mut socket).await;
            let _ = asked.send(head).await;
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            let _ = socket.write_all(answer.as_bytes()).await;
        }
    })
    .await;
    let remote = Remote { answer: PATIENCE, ..server.http() };
    let found = probe(Part::Synthesizer, Form::Http, &remote).await;
    (found, heads.recv().await.expect("it was asked"))
}

#[tokio::test]
async fn a_server_by_http_tells_by_its_models() {
    for (status, expect) in [
        (200, Ok(Probed::Accepted)),
        (404, Ok(Probed::Reached)),
        (405, Ok(Probed::Reached)),
        (401, Err("synthesizer_refused")),
        (403, Err("synthesizer_refused")),
        (503, Err("synthesizer_failed")),
    ] {
        let (found, head) = by_http(status).await;
        assert!(head.starts_with("get /v1/models ") && head.contains("authorization: bearer sesame"), "{head}");
        if let Err(failure) = &found {
            assert!(failure.message.contains(&status.to_string()), "{failure:?}");
            assert!(!failure.message.contains("sesame"), "{failure:?}");
        }
        assert_eq!(found.map_err(|failure| failure.code), expect, "{status}");
    }
}

#[tokio::test]
async fn a_server_by_websocket_tells_by_its_handshake() {
    let opens = Server::start(|socket| async move {
        let mut stream = accept_async(socket).await.expect("a handshake");
        let _ = stream.close(None).await;
    })
    .await;
    let refuses = Server::start(|mut socket| async move {
        request(&mut socket).await;
        let _ = socket.write_all(b"HTTP/1.1 401 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
    })
    .await;
    for (server, expect) in [(&opens, Ok(Probed::Accepted)), (&refuses, Err("recognizer_refused"))] {
        let remote = Remote { answer: PATIENCE, connect: PATIENCE, ..server.ws() };
        let found = probe(Part::Recognizer, Form::WebSocket, &remote).await;
        assert_eq!(found.map_err(|failure| failure.code), expect);
    }
}

#[tokio::test]
async fn nobody_there_is_told() {
    let nobody = TcpListener::bind("127.0.0.1:0").await.expect("a port is free").local_addr().expect("bound");
    for (form, scheme) in [(Form::Http, "http"), (Form::WebSocket, "ws")] {
        let remote = Remote::new(&format!("{scheme}://user:sesame@{nobody}/v1"), Some("sesame".into()), "m");
        let failure = probe(Part::Recognizer, form, &remote).await.expect_err("nobody listens");
        assert_eq!(
            (failure.code, failure.message.as_str()),
            ("recognizer_unreachable", "the recognizer cannot be reached")
        );
    }
}
