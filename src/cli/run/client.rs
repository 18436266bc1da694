//! Client of a run at its server: JSON and files over HTTP, or inside the process of the server, with the reason where
//! a request is refused.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use serde_json::Value;
use tower::ServiceExt;

use crate::cli::demo::api::Events;

/// Characters of a refusal that are shown.
const SHOWN_CHARS: usize = 600;

/// Reason why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The server cannot be reached, or broke off.
    Unreached(String),
    /// The key is refused.
    Key(String),
    /// The request is refused.
    Refused(Refusal),
}

/// A request that a server refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// HTTP status of the answer.
    pub status: u16,
    /// Text for a person, cut to 600 characters.
    pub message: String,
    /// `detail` of the answer; null where it has none.
    pub detail: Value,
}

impl std::fmt::Display for Trouble {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trouble::Unreached(why) => write!(f, "the server is not reached: {why}"),
            Trouble::Key(why) => write!(f, "the server refuses the key: {why}"),
            Trouble::Refused(refusal) => write!(f, "the server refuses it: {}: {}", refusal.status, refusal.message),
        }
    }
}

/// Longest time until a connection is made.
const CONNECTING: Duration = Duration::from_secs(10);
/// Longest time without a byte of an answer; streams of events say every 15 s that they are still there.
const SILENT: Duration = Duration::from_secs(120);

/// A client of one server.
#[derive(Clone)]
pub(crate) struct Client {
    client: reqwest::Client,
    base: String,
    key: String,
    /// Routes of the server, where it is this process; `None`: it is reached over the network.
    inside: Option<Router>,
}

/// Origin in the addresses of requests inside the process, which no socket sees.
const INSIDE: &str = "http://127.0.0.1";

impl Client {
    /// Returns a client of the server at `base`, with `key`.
    ///
    /// # Errors
    /// No client can be made.
    pub(crate) fn new(base: &str, key: &str) -> Result<Client, String> {
        crate::provider::tls::install_tls();
        let is_here = reqwest::Url::parse(base)
            .is_ok_and(|url| matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]")));
        // The key goes to no other server, and a server of this machine is asked without a proxy.
        let builder = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECTING)
            .read_timeout(SILENT);
        let builder = if is_here { builder.no_proxy() } else { builder };
        let client = builder.build().map_err(|error| error.to_string())?;
        Ok(Client { client, base: base.trim_end_matches('/').into(), key: key.into(), inside: None })
    }

    /// Returns a client of the server that is this process, with `key`.
    ///
    /// # Errors
    /// No client can be made.
    pub(crate) fn inside(router: Router, key: &str) -> Result<Client, String> {
        Ok(Client { inside: Some(router), ..Client::new(INSIDE, key)? })
    }

    /// Sends a GET; returns the JSON answer.
    ///
    /// # Errors
    /// See [`Trouble`].
    pub(crate) async fn get(&self, path: &str) -> Result<Value, Trouble> {
        let answer = self.send(self.client.get(format!("{}{path}", self.base))).await?;
        answer.json().await.map_err(|error| Trouble::Unreached(format!("{path}: {error}")))
    }

    /// Sends a POST with a JSON body; returns the JSON answer.
    ///
    /// # Errors
    /// See [`Trouble`].
    pub(crate) async fn post(&self, path: &str, body: &Value) -> Result<Value, Trouble> {
        let answer = self.send(self.client.post(format!("{}{path}", self.base)).json(body)).await?;
        answer.json().await.map_err(|error| Trouble::Unreached(format!("{path}: {error}")))
    }

    /// Sends a POST with a JSON body; returns a header field of the answer.
    ///
    /// # Errors
    /// See [`Trouble`].
    pub(crate) async fn post_for_header(
        &self,
        path: &str,
        body: &Value,
        header: &str,
    ) -> Result<Option<String>, Trouble> {
        let answer = self.send(self.client.post(format!("{}{path}", self.base)).json(body)).await?;
        Ok(answer.headers().get(header).and_then(|value| value.to_str().ok()).map(str::to_owned))
    }

    /// Sends a PATCH with a JSON body; returns the JSON answer.
    ///
    /// # Errors
    /// See [`Trouble`].
    pub(crate) async fn patch(&self, path: &str, body: &Value) -> Result<Value, Trouble> {
        let answer = self.send(self.client.patch(format!("{}{path}", self.base)).json(body)).await?;
        answer.json().await.map_err(|error| Trouble::Unreached(format!("{path}: {error}")))
    }

    /// Sends a GET; returns the bytes of a file.
    ///
    /// # Errors
    /// See [`Trouble`].
    pub(crate) async fn file(&self, path: &str) -> Result<Vec<u8>, Trouble> {
        let answer = self.send(self.client.get(format!("{}{path}", self.base))).await?;
        let bytes = answer.bytes().await;
        bytes.map(|bytes| bytes.to_vec()).map_err(|error| Trouble::Unreached(format!("{path}: {error}")))
    }

    /// Sends a GET; returns the bytes of a file, or as much of its length as is known if it is over `most` bytes.
    ///
    /// # Errors
    /// See [`Trouble`].
    pub(crate) async fn file_up_to(&self, path: &str, most: usize) -> Result<Result<Vec<u8>, u64>, Trouble> {
        let mut answer = self.send(self.client.get(format!("{}{path}", self.base))).await?;
        if let Some(length) = answer.content_length().filter(|length| *length > most as u64) {
            return Ok(Err(length));
        }
        let mut bytes = Vec::new();
        while let Some(piece) = answer.chunk().await.map_err(|error| Trouble::Unreached(format!("{path}: {error}")))? {
            bytes.extend_from_slice(&piece);
            if bytes.len() > most {
                return Ok(Err(bytes.len() as u64));
            }
        }
        Ok(Ok(bytes))
    }

    /// Returns the events of a result as they happen.
    ///
    /// # Errors
    /// See [`Trouble`].
    pub(crate) async fn events(&self, result_id: &str) -> Result<Events, Trouble> {
        let path = format!("{}/v1/simulation-result/{result_id}/events", self.base);
        Ok(Events::of(self.send(self.client.get(path)).await?))
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> Result<reqwest::Response, Trouble> {
        let request = request.header("x-api-key", &self.key);
        let answer = match &self.inside {
            Some(router) => ask_inside(router.clone(), request).await,
            None => request.send().await,
        };
        let answer = answer.map_err(|error| Trouble::Unreached(error.without_url().to_string()))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let text = answer.text().await.unwrap_or_default();
        let body = serde_json::from_str::<Value>(&text).ok();
        let detail = body.as_ref().and_then(|body| body.get("detail")).cloned().unwrap_or_default();
        let detail_text = body.map(|body| match &detail {
            Value::String(detail) => detail.clone(),
            Value::Null => body.to_string(),
            detail => detail.to_string(),
        });
        let found: String = detail_text.unwrap_or(text).chars().take(SHOWN_CHARS).collect();
        Err(match status.as_u16() {
            401 | 403 => Trouble::Key(found),
            status => Trouble::Refused(Refusal { status, message: found, detail }),
        })
    }
}

/// Answers a request by routes of this process.
async fn ask_inside(router: Router, request: reqwest::RequestBuilder) -> reqwest::Result<reqwest::Response> {
    let request = Request::try_from(request.build()?)?.map(Body::new);
    let answer = match router.oneshot(request).await {
        Ok(answer) => answer,
        Err(never) => match never {},
    };
    Ok(answer.map(|body| reqwest::Body::wrap_stream(body.into_data_stream())).into())
}
