//! Messages to an agent on a platform, over HTTP. The requests and the forms of answers are the platform's; sessions
//! and tokens are kept by whoever implements [`PlatformProtocol`].

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::{ANSWER_BYTES, Exchange, Message, OWN, PATIENCE, REPLY_PATIENCE, Reply, Trouble, asked_wait, exchange};
use crate::chat::surrogates;
use crate::post::{Poster, Posting, RESULT_ID};

/// Code of a limit of the platform.
const LIMIT: [&str; 2] = ["CUSTOMER_CONCURRENCY_LIMIT"; 2];

/// Error codes of a platform.
#[derive(Clone, Copy, Debug)]
pub struct PlatformCodes {
    /// Credentials that the platform refuses.
    pub auth: &'static str,
    /// A first message without a connection.
    pub connect: &'static str,
    /// A first message that was refused.
    pub setup: &'static str,
    /// A later message that failed.
    pub agent: &'static str,
}

impl PlatformCodes {
    fn refusal(&self) -> [&'static str; 2] {
        [self.setup, self.agent]
    }
}

/// Request that carries a message.
#[derive(Clone)]
pub struct PlatformRequest {
    /// Method of the request (RFC 9110 9).
    pub method: String,
    /// Address that it goes to.
    pub url: String,
    /// Headers of the request, in order.
    pub headers: Vec<(String, String)>,
    /// Body of the request, in JSON.
    pub body: String,
    /// True if its session and its token are older than the message: a refusal may mean that they have expired.
    pub may_have_expired: bool,
}

impl fmt::Debug for PlatformRequest {
    /// Writes neither header, address nor body: they may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlatformRequest").field("method", &self.method).finish_non_exhaustive()
    }
}

/// Requests and answers of one conversation on a platform.
pub trait PlatformProtocol: Send + Sync {
    /// Returns the codes of its troubles.
    fn codes(&self) -> PlatformCodes;

    /// Returns the request that carries a message. `renewed`: session and token are made anew.
    fn request<'a>(&'a self, message: &'a Message, renewed: bool) -> BoxFuture<'a, Result<PlatformRequest, Trouble>>;

    /// Reads the answer to a message.
    ///
    /// # Errors
    /// The form that it should have, in words without the answer's text.
    fn parse(&self, answer: &Value) -> Result<Reply, String>;

    /// True if answers come by another way than the request's.
    fn is_asynchronous(&self) -> bool;

    /// True if an empty message asks the agent to begin.
    fn can_ask_to_begin(&self) -> bool;

    /// Returns host and port of the platform, for display.
    fn target(&self) -> Option<String>;
}

/// Agent on a platform, and the conversation with it.
#[derive(Clone)]
pub struct PlatformAgent {
    /// Client that posts to the platform.
    pub poster: Arc<Poster>,
    /// Requests and answers of the platform.
    pub protocol: Arc<dyn PlatformProtocol>,
    /// Name of the conversation.
    pub conversation: String,
    /// Name of the protocol, for display.
    pub name: String,
}

impl fmt::Debug for PlatformAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PlatformAgent").field("conversation", &self.conversation).finish_non_exhaustive()
    }
}

impl PlatformAgent {
    pub(super) async fn deliver(&self, message: &Message, noted: &mut Option<Exchange>) -> Result<Reply, Trouble> {
        let request = self.protocol.request(message, false).await?;
        match self.send(&request, noted).await? {
            (401, _, _) if request.may_have_expired => {
                let renewed = self.protocol.request(message, true).await?;
                let answered = self.send(&renewed, noted).await?;
                self.reply(answered)
            }
            answered => self.reply(answered),
        }
    }

    /// Sends a request; answers status, body and the wait that was asked for.
    async fn send(
        &self,
        request: &PlatformRequest,
        noted: &mut Option<Exchange>,
    ) -> Result<(u16, Vec<u8>, Option<i64>), Trouble> {
        let is_asynchronous = self.protocol.is_asynchronous();
        let own = request.headers.iter().map(|(name, value)| (name.as_str(), value.clone()));
        let headers: Vec<(&str, String)> = own.chain([(RESULT_ID, self.conversation.clone())]).collect();
        let posting = Posting {
            method: &request.method,
            url: &request.url,
            headers: &headers,
            body: request.body.clone(),
            patience: if is_asynchronous { PATIENCE } else { REPLY_PATIENCE },
            answer_bytes: if is_asynchronous { 0 } else { ANSWER_BYTES },
        };
        let posted = exchange(&self.poster, posting, noted).await;
        // The path of a platform's address may hold a session's token.
        noted.iter_mut().for_each(|noted| noted.path.clear());
        let posted = posted.map_err(|not| {
            let codes = self.protocol.codes();
            let codes = match (not.is_own, not.is_late) {
                (true, _) => OWN,
                (false, true) => codes.refusal(),
                (false, false) => [codes.connect, codes.agent],
            };
            let sentence = format!("the platform: {}", not.why);
            Trouble { is_late: not.is_late, ..Trouble::new(codes, sentence, Some(None)) }
        })?;
        let wait = asked_wait(&posted);
        Ok((posted.status, posted.body, wait))
    }

    fn reply(&self, (status, body, wait): (u16, Vec<u8>, Option<i64>)) -> Result<Reply, Trouble> {
        let codes = self.protocol.codes();
        let failed = |codes, message: String, again| Err(Trouble::new(codes, message, again));
        let answered = format!("the platform answered {status}");
        match status {
            200..=299 if self.protocol.is_asynchronous() => Ok(Reply::default()),
            // The platform has taken the message: it is not sent again.
            200..=299 => self.parse(&body).map_err(|why| Trouble::new(codes.refusal(), why, None)),
            401 | 403 => failed([codes.auth; 2], format!("{answered}: the credentials are refused"), None),
            429 | 503 => failed(LIMIT, answered, Some(wait)),
            408 | 425 | 500..=599 => failed(codes.refusal(), answered, Some(None)),
            _ => failed(codes.refusal(), answered, None),
        }
    }

    fn parse(&self, body: &[u8]) -> Result<Reply, String> {
        let wrong = |why: String| format!("the platform: {why}");
        let answer = surrogates::read_json(body).map_err(|_| wrong("its answer is no JSON".to_owned()))?;
        self.protocol.parse(&answer).map_err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use parking_lot::Mutex;
    use ringer_base::testing::WebServer;
    use uuid::Uuid;

    use super::*;
    use crate::guard::Guard;

    /// A protocol whose requests go to one address, and the renewals that it was asked for.
    struct Fixed {
        url: String,
        asynchronous: bool,
        expires: bool,
        renewed: Mutex<Vec<bool>>,
    }

    impl PlatformProtocol for Fixed {
        fn codes(&self) -> PlatformCodes {
            PlatformCodes { auth: "auth", connect: "connect", setup: "setup", agent: "agent" }
        }

        fn request<'a>(&'a self, _: &'a Message, renewed: bool) -> BoxFuture<'a, Result<PlatformRequest, Trouble>> {
            self.renewed.lock().push(renewed);
            let (method, url) = ("POST".to_owned(), self.url.clone());
            let may_have_expired = self.expires && !renewed;
            let request = PlatformRequest { method, url, headers: Vec::new(), body: "{}".into(), may_have_expired };
            Box::pin(async { Ok(request) })
        }

        fn parse(&self, answer: &Value) -> Result<Reply, String> {
            let text = answer["text"].as_str().ok_or("its answer has no text")?;
            Ok(Reply { text: Some(text.to_owned()), ..Reply::default() })
        }

        fn is_asynchronous(&self) -> bool {
            self.asynchronous
        }

        fn can_ask_to_begin(&self) -> bool {
            false
        }

        fn target(&self) -> Option<String> {
            None
        }
    }

    fn agent(url: String, asynchronous: bool, expires: bool) -> (PlatformAgent, Arc<Fixed>) {
        let protocol = Arc::new(Fixed { url, asynchronous, expires, renewed: Mutex::default() });
        let poster = Arc::new(Poster::new(Guard::new(true), Duration::from_secs(10)));
        let (conversation, name) = ("1".to_owned(), "fixed".to_owned());
        (PlatformAgent { poster, protocol: protocol.clone(), conversation, name }, protocol)
    }

    fn message() -> Message {
        Message { id: Uuid::nil(), text: "Hi".into(), ends: false, history: Vec::new() }
    }

    #[tokio::test]
    async fn answers_have_their_codes_and_say_whether_to_ask_again() {
        let server = WebServer::start(|path| {
            let (status, body) = path.trim_start_matches('/').split_once('/').expect("two parts");
            let body = match body {
                "words" => r#"{"text":"Hello."}"#,
                "none" => "{}",
                _ => "<html>",
            };
            let wait = match status {
                "429" => "retry-after: 7\r\n",
                "503" => "retry-after: 3\r\n",
                _ => "",
            };
            let length = body.len();
            format!("HTTP/1.1 {status} X\r\n{wait}content-length: {length}\r\nconnection: close\r\n\r\n{body}").into()
        });
        let server = server.await.expect("loopback has a free port");
        let refused = Some(["setup", "agent"]);
        for (path, asynchronous, expect, again, words) in [
            ("/200/words", false, None, None, ""),
            ("/202/html", true, None, None, ""),
            ("/200/none", false, refused, None, "the platform: its answer has no text"),
            ("/200/html", false, refused, None, "the platform: its answer is no JSON"),
            ("/302/html", false, refused, None, "the platform answered 302"),
            ("/400/html", false, refused, None, "the platform answered 400"),
            ("/401/html", false, Some(["auth"; 2]), None, "the platform answered 401: the credentials are refused"),
            ("/403/html", false, Some(["auth"; 2]), None, "the platform answered 403: the credentials are refused"),
            ("/429/html", false, Some(LIMIT), Some(Some(7000)), "the platform answered 429"),
            ("/500/html", false, refused, Some(None), "the platform answered 500"),
            ("/503/html", true, Some(LIMIT), Some(Some(3000)), "the platform answered 503"),
        ] {
            let (agent, _) = agent(server.url(path), asynchronous, false);
            let mut noted = None;
            let answered = agent.deliver(&message(), &mut noted).await;
            let trouble = answered.as_ref().err();
            assert_eq!(trouble.map(|trouble| trouble.codes), expect, "{path}: {answered:?}");
            assert_eq!(trouble.and_then(|trouble| trouble.again), again, "{path}");
            assert_eq!(trouble.map_or("", |trouble| &trouble.message), words, "{path}");
            assert_eq!(noted.expect("it was sent").path, "", "a path may be secret");
            if let Ok(reply) = answered {
                assert_eq!(reply.text.as_deref(), (!asynchronous).then_some("Hello."));
            }
        }
        let (agent, _) = agent("http://127.0.0.1:1/x?key=secret".to_owned(), false, false);
        let trouble = agent.deliver(&message(), &mut None).await.expect_err("nobody listens");
        assert_eq!((trouble.codes, trouble.again), (["connect", "agent"], Some(None)));
        assert!(!trouble.message.contains("secret"), "{}", trouble.message);
    }

    #[tokio::test]
    async fn a_session_that_has_expired_is_made_anew_once() {
        let server = WebServer::start(|_| b"HTTP/1.1 401 X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec());
        let server = server.await.expect("loopback has a free port");
        for (expires, expect) in [(true, vec![false, true]), (false, vec![false])] {
            let (agent, protocol) = agent(server.url("/"), false, expires);
            let trouble = agent.deliver(&message(), &mut None).await.expect_err("it is refused");
            assert_eq!((trouble.codes, protocol.renewed.lock().clone()), (["auth"; 2], expect));
        }
    }
}
