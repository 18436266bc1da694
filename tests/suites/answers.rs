//! A SIP server that answers every INVITE with one status.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::UdpSocket;

/// Answers until it is dropped.
pub struct Answers {
    pub address: SocketAddr,
    task: tokio::task::JoinHandle<()>,
}

impl Answers {
    /// Answers with this status.
    #[expect(clippy::disallowed_methods, reason = "a server of a test, ended with it")]
    pub async fn with(status: u16, reason: &'static str) -> Answers {
        let socket = Arc::new(UdpSocket::bind("127.0.0.1:0").await.expect("a port is free"));
        let address = socket.local_addr().expect("it is bound");
        let task = tokio::spawn(async move {
            let mut bytes = vec![0; 65_536];
            while let Ok((length, from)) = socket.recv_from(&mut bytes).await {
                let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                if text.starts_with("INVITE ") {
                    let _ = socket.send_to(answer(&text, status, reason).as_bytes(), from).await;
                }
            }
        });
        Answers { address, task }
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The answer to a request (RFC 3261 8.2.6): its Via, From, To, Call-ID and CSeq, with a tag.
fn answer(request: &str, status: u16, reason: &str) -> String {
    let mut lines = vec![format!("SIP/2.0 {status} {reason}")];
    for line in request.lines().take_while(|line| !line.is_empty()) {
        let name = line.split(':').next().unwrap_or_default().trim().to_ascii_lowercase();
        match name.as_str() {
            "via" | "v" | "from" | "f" | "call-id" | "i" | "cseq" => lines.push(line.to_owned()),
            "to" | "t" => lines.push(format!("{line};tag=answers")),
            _ => {}
        }
    }
    lines.extend(["Content-Length: 0".to_owned(), String::new(), String::new()]);
    lines.join("\r\n")
}
