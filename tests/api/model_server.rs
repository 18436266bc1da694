//! A server of chat completions that a test answers for, with the tokens of each answer.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::extract::Request;
use axum::http::StatusCode;
use ringer::clock::Clock;
use ringer::jobs::Workshop;
use ringer::provider::LanguageModel;
use ringer::provider::chat::{ChatConfig, ChatModel, ModelTerms, Places};
use ringer::service::PlacementSettings;
use ringer::tasks::Tasks;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Time limit for a request to come on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

type Answer = dyn Fn(&str, &str) -> Option<String> + Send + Sync;

pub(crate) struct ModelServer {
    /// Address of the API, with `/v1`.
    pub(crate) url: String,
    asked: Arc<watch::Sender<Vec<(String, Value)>>>,
    _tasks: Tasks,
}

impl ModelServer {
    /// Answers by what it is told first and last, `None` with status 404. `tokens`: those of each request and answer,
    /// told where a request asks for them.
    pub(crate) async fn start(
        answer: impl Fn(&str, &str) -> Option<String> + Send + Sync + 'static,
        tokens: Option<(u64, u64)>,
    ) -> ModelServer {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
        let (asked, answer): (Arc<watch::Sender<_>>, Arc<Answer>) =
            (Arc::new(watch::Sender::default()), Arc::new(answer));
        let seen: Arc<watch::Sender<Vec<(String, Value)>>> = asked.clone();
        let router = Router::new().fallback(move |request: Request| {
            let (seen, answer) = (seen.clone(), answer.clone());
            async move {
                let body = to_bytes(request.into_body(), 8 << 20).await.expect("a body");
                let body: Value = serde_json::from_slice(&body).expect("JSON");
                let messages = body["messages"].as_array().cloned().unwrap_or_default();
                let text =
                    |at: Option<&Value>| at.and_then(|one| one["content"].as_str()).unwrap_or_default().to_owned();
                let (first, last) = (text(messages.first()), text(messages.last()));
                let said = answer(&first, &last);
                let is_asked = body["stream_options"]["include_usage"] == true;
                seen.send_modify(|all| all.push((first, body)));
                let Some(said) = said else { return (StatusCode::NOT_FOUND, "no such model".to_owned()) };
                let event = json!({ "choices": [{ "index": 0, "delta": { "content": said } }] });
                let usage = tokens.filter(|_| is_asked).map(|(input, output)| {
                    let usage = json!({ "prompt_tokens": input, "completion_tokens": output });
                    format!("data: {}\n\n", json!({ "choices": [], "usage": usage }))
                });
                (StatusCode::OK, format!("data: {event}\n\n{}data: [DONE]\n\n", usage.unwrap_or_default()))
            }
        });
        let tasks = Tasks::new();
        tasks.spawn_until_stop("model server", async move {
            let _ = axum::serve(listener, router).await;
        });
        ModelServer { url, asked, _tasks: tasks }
    }

    /// Returns the number of requests whose instructions hold `part`.
    pub(super) fn count(&self, part: &str) -> i64 {
        self.asked.borrow().iter().filter(|(first, _)| first.contains(part)).count() as i64
    }

    /// Waits for a request whose instructions hold `part`.
    pub(super) async fn wait_for(&self, part: &str) {
        let mut asked = self.asked.subscribe();
        let came = asked.wait_for(|all| all.iter().any(|(first, _)| first.contains(part)));
        tokio::time::timeout(PATIENCE, came).await.expect("it is asked in time").expect("the server lives");
    }

    /// Makes jobs use this server's model on these terms, at the prices of 1 and 10 USD for a million tokens.
    pub(super) fn serve(
        &self,
        workshop: &mut Workshop,
        max_usd_per_day: Option<f64>,
        per_minute: Option<(&Clock, u32)>,
    ) {
        let terms = ModelTerms {
            section: "language_model".to_owned(),
            model: "m1".to_owned(),
            usd_per_million: Some((1.0, 10.0)),
            places: per_minute.map(|(clock, most)| Arc::new(Places::new(clock.clone(), most))),
            max_usd_per_day,
            spending: Some(workshop.service.spending().clone()),
        };
        let config = ChatConfig { terms, ..ChatConfig::new(&self.url, None, "m1") };
        let model: Arc<dyn LanguageModel> = Arc::new(ChatModel::new(config).expect("TLS is there"));
        let placement_settings = PlacementSettings { model: Some(model), ..(*workshop.placement_settings).clone() };
        workshop.placement_settings = Arc::new(placement_settings);
    }
}
