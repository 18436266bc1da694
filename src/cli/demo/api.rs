//! Requests of the demonstration to the API, over HTTP as any client sends them.

use std::collections::VecDeque;

use serde_json::Value;

/// A client of one server.
#[derive(Clone)]
pub struct Api {
    client: reqwest::Client,
    base: String,
    key: String,
}

impl Api {
    /// Returns a client of the server at `base` (`http://host:port`), with `key`.
    pub fn new(base: &str, key: &str) -> Result<Api, String> {
        crate::provider::tls::install_tls();
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(|error| error.to_string())?;
        Ok(Api { client, base: base.trim_end_matches('/').into(), key: key.into() })
    }

    /// Sends a POST with a JSON body; returns the JSON answer.
    pub async fn post(&self, path: &str, body: Value) -> Result<Value, String> {
        let request = self.client.post(format!("{}{path}", self.base)).json(&body);
        let answer = self.send(path, request).await?;
        answer.json().await.map_err(|error| format!("{path}: {error}"))
    }

    /// Sends a GET; returns the JSON answer.
    pub async fn get(&self, path: &str) -> Result<Value, String> {
        let answer = self.send(path, self.client.get(format!("{}{path}", self.base))).await?;
        answer.json().await.map_err(|error| format!("{path}: {error}"))
    }

    /// Sends a GET; returns the bytes of a file.
    pub async fn file(&self, path: &str) -> Result<Vec<u8>, String> {
        let answer = self.send(path, self.client.get(format!("{}{path}", self.base))).await?;
        answer.bytes().await.map(|bytes| bytes.to_vec()).map_err(|error| format!("{path}: {error}"))
    }

    /// Returns the events of a result as they happen.
    pub async fn events(&self, result_id: &str) -> Result<Events, String> {
        let path = format!("/v1/simulation-result/{result_id}/events");
        let answer = self.send(&path, self.client.get(format!("{}{path}", self.base))).await?;
        Ok(Events::of(answer))
    }

    async fn send(&self, path: &str, request: reqwest::RequestBuilder) -> Result<reqwest::Response, String> {
        let answer = request.header("x-api-key", &self.key).send().await;
        let answer = answer.map_err(|error| format!("{path}: {error}"))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let text = answer.text().await.unwrap_or_default();
        Err(format!("{path}: {status}: {text}"))
    }
}

/// Server-sent events (WHATWG HTML, section 9.2).
pub struct Events {
    answer: reqwest::Response,
    text: Vec<u8>,
    ready: VecDeque<(String, Value)>,
}

impl Events {
    /// Returns the events of an answer whose body is just beginning.
    pub fn of(answer: reqwest::Response) -> Events {
        Events { answer, text: Vec::new(), ready: VecDeque::new() }
    }

    /// Returns the next event's name and data; `None` at the end of the stream.
    pub async fn next(&mut self) -> Result<Option<(String, Value)>, String> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            match self.answer.chunk().await.map_err(|error| format!("the events broke off: {error}"))? {
                Some(bytes) => {
                    self.text.extend_from_slice(&bytes);
                    self.ready.extend(blocks(&mut self.text).iter().filter_map(|block| event(block)));
                }
                None => return Ok(None),
            }
        }
    }
}

/// Takes the whole blocks out of what has come.
fn blocks(text: &mut Vec<u8>) -> Vec<String> {
    let Some(end) = text.windows(2).rposition(|pair| pair == b"\n\n") else { return Vec::new() };
    let rest = text.split_off(end + 2);
    let whole = std::mem::replace(text, rest);
    String::from_utf8_lossy(&whole).split("\n\n").filter(|block| !block.is_empty()).map(String::from).collect()
}

/// Returns name and data of a block; `None`: a block without data is a comment.
fn event(block: &str) -> Option<(String, Value)> {
    let field =
        |name: &str| block.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim_start);
    let data = serde_json::from_str(field("data")?).ok()?;
    Some((field("event").unwrap_or("message").to_owned(), data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_from_pieces() {
        let mut text = b"event: status\ndata: {\"status\":\"RUN".to_vec();
        assert!(blocks(&mut text).is_empty());
        text.extend_from_slice(b"NING\"}\n\n: still here\n\nid: 3\nevent: barge_in\ndata: {\"seq\":3}\n\nevent: e");
        let found: Vec<_> = blocks(&mut text).iter().filter_map(|block| event(block)).collect();
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!((names, &text[..]), (vec!["status", "barge_in"], &b"event: e"[..]));
        assert_eq!(found[0].1["status"], "RUNNING");
    }
}
