//! Calls to a pipeline behind the real request handler of the small WebRTC transport.

use std::sync::Arc;
use std::time::Duration;

use ringer::config::Secret;
use ringer::provider::guard::Guard;
use ringer::provider::post::Poster;
use ringer::transport::fault::FaultKind;
use ringer::transport::news::NewsSender;
use ringer::transport::pipeline::rtvi::{RtviEvent, ToolPhase};
use ringer::transport::pipeline::{Order, Patience, Pipeline, PipelineEnd, PipelineNews, PipelineTarget, Start};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::phone::{PATIENCE, Phone, loopback};
use crate::peers::python::PythonServer;

/// Tone that the pipeline sends, and the one that it listens for.
const THEIRS_HZ: f64 = 880.0;
const OURS_HZ: f64 = 500.0;

/// Starts the pipeline as a Python server.
pub(crate) async fn bot(flags: &[&str]) -> PythonServer {
    PythonServer::start("pipeline.py", flags, "http://").await
}

pub(crate) fn poster() -> Arc<Poster> {
    Arc::new(Poster::new(Guard::new(true), Duration::from_secs(10)))
}

pub(crate) fn target(base: &str) -> PipelineTarget {
    let Value::Object(configuration) = json!({ "voice": "calm" }) else { unreachable!("an object was written") };
    PipelineTarget {
        base_url: base.to_owned(),
        configuration,
        room_properties: json!({ "n": 1 }),
        result_id: "42".to_owned(),
        ..PipelineTarget::default()
    }
}

/// A call that runs in a task of its own, its news and its phone.
pub(crate) struct Call {
    pub phone: Phone,
    pub orders: mpsc::Sender<Order>,
    pub news: mpsc::Receiver<PipelineNews>,
    pub end: tokio::task::JoinHandle<PipelineEnd>,
}

impl Call {
    pub(crate) fn carry(mut pipeline: Pipeline) -> Call {
        let (phone, mut pump) = Phone::new(pipeline.media(), 7, OURS_HZ);
        let (orders, mut inbox) = mpsc::channel(8);
        let (tell, news) = NewsSender::new(256);
        #[expect(clippy::disallowed_methods, reason = "its end is waited for")]
        let end = tokio::spawn(async move { pipeline.run(&mut pump, &mut inbox, &tell).await });
        Call { phone, orders, news, end }
    }

    /// Waits for a piece of news, ticking the phone meanwhile.
    pub(crate) async fn until(&mut self, wanted: impl Fn(&PipelineNews) -> bool) -> Vec<PipelineNews> {
        let mut all = Vec::new();
        let waited = timeout(PATIENCE, async {
            loop {
                tokio::select! {
                    () = self.phone.talk() => {}
                    news = self.news.recv() => {
                        let Some(news) = news else { return };
                        all.push(news);
                        if wanted(all.last().expect("it was pushed")) {
                            return;
                        }
                    }
                }
            }
        })
        .await;
        assert!(waited.is_ok() && all.last().is_some_and(&wanted), "{all:?}");
        all
    }

    pub(crate) async fn wait_ended(self) -> PipelineEnd {
        let Call { mut phone, end, mut news, .. } = self;
        let ended = tokio::select! {
            () = phone.talk() => unreachable!("it talks forever"),
            end = timeout(PATIENCE, end) => end,
        };
        let news_so_far: Vec<PipelineNews> = std::iter::from_fn(|| news.try_recv().ok()).collect();
        ended.unwrap_or_else(|_| panic!("it goes on: {news_so_far:?}")).expect("no panic")
    }
}

fn events<'a>(news: &'a [PipelineNews]) -> Vec<&'a RtviEvent> {
    let event = |news: &'a PipelineNews| match news {
        PipelineNews::Event(_, event) => Some(event),
        _ => None,
    };
    news.iter().filter_map(event).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipeline_is_started_heard_and_left() {
    let bot = bot(&[]).await;
    let start = Start { url: format!("{}/agents", bot.base), agent_name: "desk 1".into(), body: None };
    let target = PipelineTarget { start: Some(start), api_key: Some(Secret::new("key".into())), ..target(&bot.base) };
    let pipeline = Pipeline::open(target, loopback(), poster(), Patience::default()).await;
    let pipeline = pipeline.unwrap_or_else(|fault| panic!("{fault}"));
    assert!(pipeline.pc_id().is_some());
    let mut call = Call::carry(pipeline);
    let is_metrics = |news: &PipelineNews| matches!(news, PipelineNews::Event(_, RtviEvent::Metrics(_)));
    let news = call.until(is_metrics).await;
    let events = events(&news);
    assert!(matches!(events[0], RtviEvent::Ready(Some(version)) if version == "2.2.0"), "{events:?}");
    assert!(events.contains(&&RtviEvent::AgentSpeaks(true)), "{events:?}");
    assert!(events.contains(&&RtviEvent::AgentText("Good day.".into())), "{events:?}");
    let tool = events.iter().find_map(|event| match event {
        RtviEvent::Tool(tool) => Some(tool),
        _ => None,
    });
    let tool = tool.expect("a call of a tool");
    assert_eq!((tool.phase, tool.name.as_deref()), (ToolPhase::InProgress, Some("weather")));
    assert_eq!(tool.arguments, Some(json!({ "in": "Bern" })));
    assert!(call.phone.hear(THEIRS_HZ).await, "{:?}", call.phone.figures());
    let text = json!({ "label": "rtvi-ai", "type": "client-message", "id": "9", "data": { "t": "x" } });
    call.orders.send(Order::Send(text.to_string())).await.expect("it runs");
    let seen = tokio::select! {
        () = call.phone.talk() => unreachable!("it talks forever"),
        seen = bot.sees(|seen| seen["share"].as_f64() > Some(0.8) && seen["messages"][1]["id"] == "9") => seen,
    };
    assert_eq!(seen["started"], json!(["desk 1", { "body": { "voice": "calm" }, "room_properties": { "n": 1 } }]));
    let request = json!({
        "pc_id": null,
        "restart_pc": false,
        "request_data": { "voice": "calm", "simulation_result_id": "42", "X-Simulation-Result-Id": "42",
                          "room_properties": { "n": 1 } },
    });
    assert_eq!(seen["requests"], json!([request]));
    assert_eq!((&seen["connections"], &seen["patches"]), (&json!(1), &json!(0)));
    let figures = call.phone.figures();
    assert_eq!((figures.lost, figures.unknown_payload_type, figures.foreign), (0, 0, 0), "{figures:?}");
    bot.post("/leave").await;
    assert_eq!(call.wait_ended().await, PipelineEnd::AgentLeft);
}

/// The other side's sockets fall silent: consent runs out, and the connection is made anew under its name. The second
/// time the call is over.
#[tokio::test(flavor = "multi_thread")]
async fn a_cut_connection_is_made_anew_once() {
    let bot = bot(&["--no-patch"]).await;
    let pipeline = Pipeline::open(target(&bot.base), loopback(), poster(), Patience::default()).await;
    let pipeline = pipeline.unwrap_or_else(|fault| panic!("{fault}"));
    let pc_id = pipeline.pc_id().map(str::to_owned);
    let mut call = Call::carry(pipeline);
    assert!(call.phone.hear(THEIRS_HZ).await, "{:?}", call.phone.figures());
    bot.post("/cut").await;
    let news = call.until(|news| matches!(news, PipelineNews::Restarted(_))).await;
    assert!(news.contains(&PipelineNews::Restarts), "{news:?}");
    // Silence first, so that what is heard is new.
    call.phone.heard.clear();
    assert!(call.phone.hear(THEIRS_HZ).await, "{:?}", call.phone.figures());
    let seen = tokio::select! {
        () = call.phone.talk() => unreachable!("it talks forever"),
        seen = bot.sees(|seen| seen["share"].as_f64() > Some(0.8)) => seen,
    };
    assert_eq!((&seen["requests"][1]["pc_id"], &seen["requests"][1]["restart_pc"]), (&json!(pc_id), &json!(true)));
    assert_eq!(seen["connections"], 1);
    bot.post("/cut").await;
    let PipelineEnd::Failed(fault) = call.wait_ended().await else { panic!("it was lost twice") };
    assert_eq!(fault.kind(), FaultKind::PipelineConnect);
    assert_eq!(fault.to_string(), "connection to the pipeline: the connection failed");
}
