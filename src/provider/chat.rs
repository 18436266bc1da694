//! A language model behind the common chat-completions protocol (`POST {base}/chat/completions`, answers as server-sent
//! events). It knows messages and tools, not what they are for. Key and texts never reach a log or an error.

use std::sync::{Mutex, Once, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use super::tls::Roots;
use super::{ChatPart, ChatRequest, ChatRole, Failure, Job, LanguageModel, Status};

/// Longest line of an answer in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;
/// Tool calls in one answer.
const TOOLS_MAX: usize = 8;

/// Where the model is and how long it may take.
#[derive(Clone)]
pub struct ChatConfig {
    /// `https://host/v1`, without `/chat/completions`.
    pub base_url: String,
    /// Sent as a bearer token.
    pub key: Option<String>,
    /// Model name.
    pub model: String,
    /// For the connection, TLS included.
    pub connect: Duration,
    /// From the request to the first byte of the answer, and between two of its pieces.
    pub first_byte: Duration,
    /// For the whole answer.
    pub total: Duration,
    /// Who is trusted beside the well-known authorities.
    pub roots: Roots,
}

impl ChatConfig {
    /// With limits of 3 s, 10 s and 60 s.
    pub fn new(base_url: &str, key: Option<String>, model: &str) -> ChatConfig {
        ChatConfig {
            base_url: base_url.trim_end_matches('/').to_owned(),
            key,
            model: model.to_owned(),
            connect: Duration::from_secs(3),
            first_byte: Duration::from_secs(10),
            total: Duration::from_secs(60),
            roots: Roots::default(),
        }
    }
}

/// Chooses the cryptography of all HTTP clients of this process; one has to be chosen before the first client is made.
pub fn install_tls() {
    static TLS: Once = Once::new();
    TLS.call_once(|| {
        // Somebody else may have installed one before: then that one serves.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
}

/// A language model reached by HTTP.
pub struct ChatModel {
    config: ChatConfig,
    client: reqwest::Client,
    trouble: Mutex<Option<String>>,
}

impl ChatModel {
    /// Opens no connection yet. Fails with `language_model_failed` when the TLS set-up does.
    pub fn new(config: ChatConfig) -> Result<ChatModel, Failure> {
        install_tls();
        let client = reqwest::Client::builder()
            .connect_timeout(config.connect)
            .read_timeout(config.first_byte)
            .timeout(config.total);
        let client = config.roots.trusted_by(client).map_err(failure)?;
        Ok(ChatModel { config, client, trouble: Mutex::new(None) })
    }

    async fn ask(&self, request: &ChatRequest, out: mpsc::Sender<ChatPart>) -> Result<(), Failure> {
        let result = self.stream(request, out).await;
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) =
            result.as_ref().err().map(|failure| failure.message.clone());
        result
    }

    async fn stream(&self, request: &ChatRequest, out: mpsc::Sender<ChatPart>) -> Result<(), Failure> {
        let mut post = self.client.post(format!("{}/chat/completions", self.config.base_url));
        if let Some(key) = &self.config.key {
            post = post.bearer_auth(key);
        }
        let mut response = post.json(&body(&self.config.model, request)).send().await.map_err(failure)?;
        if !response.status().is_success() {
            let message = format!("the language model answered {}", response.status());
            return Err(Failure { code: "language_model_refused", message });
        }
        let mut answer = Answer::default();
        while let Some(bytes) = response.chunk().await.map_err(failure)? {
            for text in answer.take(&bytes)? {
                if out.send(ChatPart::Text(text)).await.is_err() {
                    return Ok(());
                }
            }
            if answer.done {
                break;
            }
        }
        if !answer.finished {
            return Err(broken("the language model's answer was cut off"));
        }
        for (name, arguments) in answer.tools {
            let _ = out.send(ChatPart::Tool { name, arguments }).await;
        }
        Ok(())
    }
}

impl LanguageModel for ChatModel {
    fn chat<'a>(&'a self, request: &'a ChatRequest, out: mpsc::Sender<ChatPart>) -> Job<'a, Result<(), Failure>> {
        Box::pin(self.ask(request, out))
    }

    fn name(&self) -> String {
        self.config.model.clone()
    }

    fn status(&self) -> Status {
        let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
        trouble.clone().map_or(Status::Ok, Status::Down)
    }
}

fn broken(message: &str) -> Failure {
    Failure { code: "language_model_failed", message: message.into() }
}

fn failure(cause: reqwest::Error) -> Failure {
    let code = match () {
        () if cause.is_timeout() => "language_model_late",
        () if cause.is_connect() => "language_model_unreachable",
        () => "language_model_failed",
    };
    Failure { code, message: format!("language model: {}", cause.without_url()) }
}

fn body(model: &str, request: &ChatRequest) -> Value {
    let mut body = json!({
        "model": model,
        "messages": request.messages,
        "temperature": request.temperature,
        "stream": true,
    });
    if let Some(audio) = &request.audio
        && let Some(at) = request.messages.iter().position(|message| message.role == ChatRole::User)
    {
        let data = STANDARD.encode(audio);
        body["messages"][at]["content"] = json!([
            { "type": "text", "text": request.messages[at].content },
            { "type": "input_audio", "input_audio": { "data": data, "format": "wav" } },
        ]);
    }
    if request.tokens_max > 0 {
        body["max_tokens"] = request.tokens_max.into();
    }
    if request.json {
        body["response_format"] = json!({"type": "json_object"});
    }
    if let Some(seed) = request.seed {
        body["seed"] = seed.into();
    }
    let tool = |tool: &super::ChatTool| {
        let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
        json!({"type": "function", "function": function})
    };
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool).collect();
    }
    body
}

/// The answer as far as it has come (WHATWG HTML, server-sent events: only `data` fields matter here).
#[derive(Default)]
struct Answer {
    line: Vec<u8>,
    tools: Vec<(String, String)>,
    /// A finish reason or the end mark was seen.
    finished: bool,
    /// The end mark was seen.
    done: bool,
}

impl Answer {
    /// Takes bytes as they come, gives the new pieces of text.
    fn take(&mut self, bytes: &[u8]) -> Result<Vec<String>, Failure> {
        let mut texts = Vec::new();
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            if self.line.len() + piece.len() > LINE_BYTES_MAX {
                return Err(broken("the language model sent a line that is too long"));
            }
            self.line.extend_from_slice(piece);
            if self.line.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                texts.extend(self.event(&line)?);
            }
        }
        Ok(texts)
    }

    fn event(&mut self, line: &[u8]) -> Result<Option<String>, Failure> {
        let Some(data) = line.strip_prefix(b"data:").map(<[u8]>::trim_ascii) else { return Ok(None) };
        if data == b"[DONE]" {
            (self.finished, self.done) = (true, true);
            return Ok(None);
        }
        let event: Value = serde_json::from_slice(data).map_err(|_| broken("the language model sent no valid JSON"))?;
        if event.get("error").is_some_and(|error| !error.is_null()) {
            return Err(broken("the language model reported an error in its answer"));
        }
        let choice = &event["choices"][0];
        self.finished |= choice["finish_reason"].is_string();
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            self.tool(call);
        }
        let text = choice["delta"]["content"].as_str().filter(|text| !text.is_empty());
        Ok(text.map(str::to_owned))
    }

    fn tool(&mut self, call: &Value) {
        let index = call["index"].as_u64().unwrap_or(0) as usize;
        if index >= TOOLS_MAX {
            return;
        }
        if self.tools.len() <= index {
            self.tools.resize_with(index + 1, Default::default);
        }
        let (name, arguments) = &mut self.tools[index];
        name.push_str(call["function"]["name"].as_str().unwrap_or_default());
        let piece = call["function"]["arguments"].as_str().unwrap_or_default();
        if arguments.len() + piece.len() <= LINE_BYTES_MAX {
            arguments.push_str(piece);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::fake::{ChatServer, Reply};
    use super::super::{ChatMessage, ChatTool, complete};
    use super::*;

    fn request() -> ChatRequest {
        ChatRequest {
            messages: vec![ChatMessage { role: ChatRole::User, content: "Hello?".into() }],
            tools: vec![ChatTool { name: "end_call", description: "Ends.".into(), parameters: json!({}) }],
            temperature: 0.5,
            ..ChatRequest::default()
        }
    }

    async fn answer(reply: Reply) -> (Vec<ChatPart>, Result<(), Failure>, Status) {
        let server = ChatServer::start(vec![reply]).await.expect("a loopback port is free");
        let config = ChatConfig {
            first_byte: Duration::from_millis(150),
            ..ChatConfig::new(&server.base_url(), Some("sesame".into()), "m1")
        };
        let model = ChatModel::new(config).expect("TLS is there");
        let (out, mut parts) = mpsc::channel(64);
        let asked = request();
        let (result, parts) = tokio::join!(model.chat(&asked, out), async {
            let mut all = Vec::new();
            while let Some(part) = parts.recv().await {
                all.push(part);
            }
            all
        });
        let seen = server.requests();
        assert_eq!(seen.len(), 1);
        assert!(seen[0].to_lowercase().contains("authorization: bearer sesame"), "{}", seen[0]);
        assert!(seen[0].contains(r#""model":"m1""#) && seen[0].contains(r#""name":"end_call""#), "{}", seen[0]);
        (parts, result, model.status())
    }

    #[tokio::test]
    async fn text_comes_piece_by_piece_and_tools_at_the_end() {
        let (parts, result, status) = answer(Reply::says(&["Good ", "bye."]).calls("end_call", r#"{"a":1}"#)).await;
        assert_eq!(result, Ok(()));
        assert_eq!(status, Status::Ok);
        let tool = ChatPart::Tool { name: "end_call".into(), arguments: r#"{"a":1}"#.into() };
        assert_eq!(parts, [ChatPart::Text("Good ".into()), ChatPart::Text("bye.".into()), tool]);
    }

    #[tokio::test]
    async fn every_trouble_has_its_code_and_shows_no_key() {
        async fn check(reply: Reply, texts: usize, code: &str) {
            let (parts, result, status) = answer(reply).await;
            let failure = result.expect_err("the server misbehaves");
            assert_eq!((failure.code, parts.len()), (code, texts), "{}", failure.message);
            assert!(!failure.message.contains("sesame") && matches!(status, Status::Down(_)));
        }
        check(Reply::says(&["Half a "]).cut(), 1, "language_model_failed").await;
        check(Reply::says(&["Half a "]).stall(), 1, "language_model_late").await;
        check(Reply::says(&[]).stall(), 0, "language_model_late").await;
        check(Reply::status(429), 0, "language_model_refused").await;
        check(Reply::raw("data: {nonsense\n\n"), 0, "language_model_failed").await;
        check(Reply::raw("data: {\"error\":{\"message\":\"no\"}}\n\n"), 0, "language_model_failed").await;
    }

    #[test]
    fn a_recording_goes_with_the_first_words_of_the_user() {
        let message = |role, content: &str| ChatMessage { role, content: content.into() };
        let messages = vec![
            message(ChatRole::System, "Judge."),
            message(ChatRole::User, "The words."),
            message(ChatRole::Assistant, "?"),
            message(ChatRole::User, "Again."),
        ];
        let request = ChatRequest { messages, audio: Some(Arc::from(*b"RIFF")), ..ChatRequest::default() };
        let body = body("m", &request);
        let contents: Vec<&Value> = (0..4).map(|at| &body["messages"][at]["content"]).collect();
        let heard = json!([
            { "type": "text", "text": "The words." },
            { "type": "input_audio", "input_audio": { "data": "UklGRg==", "format": "wav" } },
        ]);
        assert_eq!(contents, [&json!("Judge."), &heard, &json!("?"), &json!("Again.")]);
    }

    #[tokio::test]
    async fn nobody_there_is_unreachable() {
        let server = ChatServer::start(vec![]).await.expect("a loopback port is free");
        let url = server.base_url();
        drop(server);
        let model = ChatModel::new(ChatConfig::new(&url, None, "m1")).expect("TLS is there");
        let failure = complete(&model, &request()).await.expect_err("nobody listens");
        assert_eq!(failure.code, "language_model_unreachable");
    }

    #[test]
    fn events_may_be_cut_anywhere() {
        let text = "event: x\ndata: {\"choices\":[{\"delta\":{\"content\":\"na\u{ef}ve\"}}]}\r\n\r\ndata: [DONE]\n\n";
        for cut in 0..text.len() {
            let mut answer = Answer::default();
            let mut texts = answer.take(&text.as_bytes()[..cut]).expect("valid");
            texts.extend(answer.take(&text.as_bytes()[cut..]).expect("valid"));
            assert_eq!((texts, answer.done), (vec!["na\u{ef}ve".to_owned()], true), "cut at {cut}");
        }
    }
}
