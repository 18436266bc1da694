//! Servers that answer an offer badly, and our own answering side.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{Method, Request, StatusCode};
use futures_util::future::BoxFuture;
use ringer::agent::pipeline::{AnsweredCall, Offers, router};
use ringer::transport::fault::FaultKind;
use ringer::transport::pipeline::rtvi::RtviEvent;
use ringer::transport::pipeline::{
    Order, Patience, Pipeline, PipelineEnd, PipelineFault, PipelineNews, PipelineTarget, Start,
};
use ringer::transport::webrtc::{ChannelNews, MediaPeer, Peer, PeerState};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tower::ServiceExt;

use super::phone::{PATIENCE, Phone, loopback};
use super::pipelines::{Call, poster, target};
use super::relay::{Relay, without_candidates};

pub(super) type Answering = Arc<dyn Fn(Method, Value) -> BoxFuture<'static, (u16, String)> + Send + Sync>;

/// Returns a server that answers every request so; it ends with the test.
pub(super) async fn serve(answering: Answering) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let base = format!("http://{}", listener.local_addr().expect("it is bound"));
    let app = Router::new().fallback(move |request: Request<Body>| {
        let answering = answering.clone();
        async move {
            let (parts, body) = request.into_parts();
            let bytes: Bytes = to_bytes(body, 1 << 20).await.unwrap_or_default();
            let body = serde_json::from_slice(&bytes).unwrap_or_default();
            let (status, text) = answering(parts.method, body).await;
            (StatusCode::from_u16(status).expect("a status"), text)
        }
    });
    #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
    drop(tokio::spawn(async move { axum::serve(listener, app).await }));
    base
}

/// Our own answering side, behind a function that may change what passes.
struct House {
    app: Router,
    calls: mpsc::Receiver<AnsweredCall>,
}

impl House {
    fn new() -> House {
        let (offers, calls) = Offers::new(loopback(), 8);
        House { app: router(offers), calls }
    }

    async fn next(&mut self) -> AnsweredCall {
        timeout(PATIENCE, self.calls.recv()).await.expect("in time").expect("a call")
    }
}

async fn post(app: Router, method: Method, body: &Value) -> (u16, Value) {
    let request = Request::builder().method(method).uri("/api/offer").body(Body::from(body.to_string()));
    let answer = app.oneshot(request.expect("a request")).await.expect("it answers");
    let status = answer.status().as_u16();
    let bytes = to_bytes(answer.into_body(), 1 << 20).await.expect("a body");
    (status, serde_json::from_slice(&bytes).expect("JSON"))
}

const QUICK: Patience = Patience { request: Duration::from_millis(500), connection: Duration::from_secs(5) };

/// Opens a pipeline at a server; what it came to, and how often the server was asked.
async fn open_at(answering: Answering, start: bool) -> (Result<Pipeline, PipelineFault>, usize) {
    let asked = Arc::<AtomicUsize>::default();
    let counted = asked.clone();
    let base = serve(Arc::new(move |method, body| {
        counted.fetch_add(1, Ordering::Relaxed);
        answering(method, body)
    }))
    .await;
    let start = start.then(|| Start { url: format!("{base}/v1"), agent_name: "a".into(), body: None });
    let target = PipelineTarget { start, ..target(&base) };
    let done = timeout(PATIENCE, Pipeline::open(target, loopback(), poster(), QUICK)).await.expect("in time");
    (done, asked.load(Ordering::Relaxed))
}

pub(super) fn fixed_answer(status: u16, text: impl Into<String>) -> Answering {
    let text = text.into();
    Arc::new(move |_, _| {
        let text = text.clone();
        Box::pin(async move { (status, text) })
    })
}

/// Returns the answer of a real peer, changed.
pub(super) fn changed_answer(change: impl Fn(String) -> String + Send + Sync + 'static) -> Answering {
    let change = Arc::new(change);
    Arc::new(move |method, body| {
        let change = change.clone();
        Box::pin(async move {
            let mut house = House::new();
            let (status, mut answer) = post(house.app.clone(), method, &body).await;
            let Some(sdp) = answer["sdp"].as_str() else { return (status, answer.to_string()) };
            answer["sdp"] = change(sdp.to_owned()).into();
            // The peer lives as long as a test may take.
            let call = house.next().await;
            #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
            drop(tokio::spawn(async move {
                let mut state = call.streams.state.clone();
                let _ = timeout(PATIENCE, state.wait_for(|state| *state == PeerState::Failed)).await;
                drop(call);
            }));
            (status, answer.to_string())
        })
    })
}

/// Returns the answer of a real peer that neither reaches the caller nor is reached.
fn nowhere() -> Answering {
    let answering = changed_answer(|sdp| with_lines(&without_candidates(&sdp), 1, false, "169.254.1.1"));
    Arc::new(move |method, mut body| {
        let sdp = without_candidates(body["sdp"].as_str().unwrap_or_default());
        body["sdp"] = sdp.into();
        answering(method, body)
    })
}

pub(super) fn with_lines(sdp: &str, count: usize, first: bool, address: &str) -> String {
    let lines: String = (0..count).map(|n| format!("a=candidate:{n} 1 udp 5 {address} 9 typ host\r\n")).collect();
    let at = if first { sdp.find("a=candidate:").expect("a candidate") } else { sdp.len() };
    format!("{}{lines}{}", &sdp[..at], &sdp[at..])
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_answers_have_a_clear_end() {
    let failed = FaultKind::PipelineConnect;
    let slow: Answering = Arc::new(|_, _| Box::pin(std::future::pending()));
    let wrong_certificate = |sdp: String| {
        let at = sdp.find("sha-256 ").expect("a fingerprint") + 8;
        format!("{}{}{}", &sdp[..at], if sdp[at..].starts_with("00") { "01" } else { "00" }, &sdp[at + 2..])
    };
    let cases: Vec<(&str, Answering, FaultKind, usize, &str)> = vec![
        ("401", fixed_answer(401, ""), FaultKind::PipelineAuth, 1, "it answered 401"),
        ("429", fixed_answer(429, ""), FaultKind::Busy, 1, "it answered 429"),
        ("404", fixed_answer(404, ""), failed, 1, "it answered 404"),
        ("500", fixed_answer(500, ""), failed, 3, "it answered 500"),
        ("302", fixed_answer(302, ""), failed, 1, "it answered 302"),
        ("no JSON", fixed_answer(200, "<html>"), failed, 1, "its answer is no JSON"),
        (
            "offer",
            fixed_answer(200, r#"{"sdp":"v=0","type":"offer"}"#),
            failed,
            1,
            "its answer is of type \"offer\" and not \"answer\"",
        ),
        ("no SDP", fixed_answer(200, r#"{"sdp":"hello","type":"answer"}"#), failed, 1, "it does not begin with v=0"),
        ("endless", fixed_answer(200, "x".repeat(1 << 20)), failed, 3, "the answer is longer than"),
        ("silent", slow, failed, 1, "no answer within 0.5 s"),
        (
            "no audio",
            changed_answer(|sdp| sdp.replace("m=audio 9", "m=audio 0")),
            failed,
            1,
            "the description accepts no audio",
        ),
        (
            "only video",
            changed_answer(|sdp| sdp.replace("m=audio", "m=video")),
            failed,
            1,
            "the description accepts no audio",
        ),
        ("no key", changed_answer(|sdp| sdp.replace("a=fingerprint", "a=print")), failed, 1, "has no fingerprint"),
        ("wrong key", changed_answer(wrong_certificate), failed, 3, "the DTLS handshake did not come to its end"),
        ("long", changed_answer(|sdp| format!("{sdp}a=x:{}\r\n", "y".repeat(70_000))), failed, 1, "more than 65536"),
        ("nowhere", nowhere(), failed, 1, "no usable candidate: 0 used, 1 at addresses that are not allowed"),
    ];
    let all = cases.into_iter().map(|(name, answering, kind, times, why)| async move {
        let (done, asked) = open_at(answering, false).await;
        let Err(fault) = done else { panic!("{name}: it is connected") };
        assert_eq!((fault.kind(), asked), (kind, times), "{name}: {fault}");
        assert!(fault.to_string().contains(why), "{name}: {fault}");
        assert!(fault.to_string().starts_with("offer to the pipeline: "), "{name}: {fault}");
    });
    futures_util::future::join_all(all).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_that_fails_has_a_code_of_its_own() {
    for (answering, kind, times) in [
        (fixed_answer(403, ""), FaultKind::PipelineAuth, 1),
        (fixed_answer(429, ""), FaultKind::Busy, 1),
        (fixed_answer(500, ""), FaultKind::PipelineSetup, 3),
        (fixed_answer(200, r#"{"url":"wss://rooms.example","token":"t"}"#), FaultKind::PipelineRoom, 1),
    ] {
        let (done, asked) = open_at(answering, true).await;
        let Err(fault) = done else { panic!("{kind:?}: it is connected") };
        assert_eq!((fault.kind(), asked), (kind, times), "{fault}");
        assert!(fault.to_string().starts_with("start of the pipeline: "), "{fault}");
    }
}

/// A thousand candidates, in front of the real one or behind it: the real one is found, the others are counted.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_candidates_do_no_harm() {
    for first in [true, false] {
        let (done, _) = open_at(changed_answer(move |sdp| with_lines(&sdp, 1000, first, "169.254.1.1")), false).await;
        let pipeline = done.unwrap_or_else(|fault| panic!("{first}: {fault}"));
        let tally = pipeline.figures().await.candidates;
        assert_eq!((tally.used, tally.not_allowed), (1, 1000), "{tally:?}");
    }
    let (done, _) = open_at(changed_answer(|sdp| with_lines(&sdp, 1000, false, "127.0.0.1")), false).await;
    let pipeline = done.unwrap_or_else(|fault| panic!("{fault}"));
    let tally = pipeline.figures().await.candidates;
    assert_eq!((tally.used, tally.too_many), (20, 981), "{tally:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn our_answering_side_is_called_and_restarted() {
    let house = House::new();
    let relay = Arc::new(Relay::start().await);
    let (app, between) = (house.app.clone(), relay.clone());
    let base = serve(Arc::new(move |method, mut body: Value| {
        let (app, relay) = (app.clone(), between.clone());
        Box::pin(async move {
            if let Some(sdp) = body["sdp"].as_str() {
                body["sdp"] = relay.through(sdp).into();
                relay.mend();
            }
            let (status, mut answer) = post(app, method, &body).await;
            if let Some(sdp) = answer["sdp"].as_str() {
                answer["sdp"] = without_candidates(sdp).into();
            }
            (status, answer.to_string())
        })
    }))
    .await;
    let mut house = house;
    let opened = Pipeline::open(target(&base), loopback(), poster(), Patience::default()).await;
    let mut call = Call::carry(opened.unwrap_or_else(|fault| panic!("{fault}")));
    let mut far = house.next().await;
    assert_eq!(far.request_data["simulation_result_id"], "42");
    let (mut there, mut pump) = Phone::new(far.peer.media().expect("it was settled"), 3, 1300.0);
    tokio::select! {
        () = pump.run(&*far.peer, &mut far.streams.packets) => panic!("it ended"),
        both = call.phone.both(&mut there) => assert_eq!(both, (true, true)),
    }
    // Messages, one of them of a pipeline in trouble that goes on.
    let mut greeted = false;
    let id = loop {
        match timeout(PATIENCE, far.streams.channels.recv()).await.expect("in time").expect("it lives") {
            ChannelNews::Message { id, bytes, .. } if bytes.starts_with(b"{") => {
                let message: Value = serde_json::from_slice(&bytes).expect("JSON");
                greeted |= message["type"] == "client-ready";
                break id;
            }
            _ => {}
        }
    };
    assert!(greeted);
    let error = json!({ "label": "rtvi-ai", "type": "error", "data": { "error": "slow", "fatal": false } });
    far.peer.send_text(id, &error.to_string()).await.expect("it is sent");
    let is_error = |news: &PipelineNews| matches!(news, PipelineNews::Event(_, RtviEvent::Error { .. }));
    call.until(is_error).await;
    // Cut, and made anew.
    relay.cut_off();
    call.until(|news| matches!(news, PipelineNews::Restarted(_))).await;
    let mut again = house.next().await;
    assert_eq!((&again.pc_id, again.is_restart), (&far.pc_id, true));
    call.phone.heard.clear();
    let (mut there, mut pump) = Phone::new(again.peer.media().expect("it was settled"), 4, 1500.0);
    tokio::select! {
        () = pump.run(&*again.peer, &mut again.streams.packets) => panic!("it ended"),
        both = call.phone.both(&mut there) => assert_eq!(both, (true, true)),
    }
    call.orders.send(Order::HangUp).await.expect("it runs");
    assert_eq!(call.wait_ended().await, PipelineEnd::HungUp);
    let closed = timeout(PATIENCE, again.streams.state.wait_for(|state| *state == PeerState::Closed)).await;
    assert!(closed.is_ok_and(|closed| closed.is_ok()), "the other side is told");
}

/// A call that nobody carries on is forgotten: its name leads nowhere, and its place is free.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_whose_call_is_over_is_closed() {
    let mut house = House::new();
    let (near, _streams) = Peer::new(loopback()).await.expect("loopback can be bound");
    let offer = json!({ "sdp": near.offer(false).await.expect("an offer"), "type": "offer" });
    let (status, answer) = post(house.app.clone(), Method::POST, &offer).await;
    assert_eq!(status, 200, "{answer}");
    let call = house.next().await;
    let patch = json!({ "pc_id": call.pc_id, "candidates": [] });
    assert_eq!(post(house.app.clone(), Method::PATCH, &patch).await.0, 200);
    let mut state = call.streams.state.clone();
    drop(call);
    let closed = timeout(PATIENCE, state.wait_for(|state| *state == PeerState::Closed)).await;
    assert!(closed.is_ok_and(|closed| closed.is_ok()), "it is closed");
    assert_eq!(post(house.app.clone(), Method::PATCH, &patch).await.0, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn our_answering_side_refuses_what_it_cannot_read() {
    let check = |method: Method, body: Value, status: u16, detail: &'static str| async move {
        let (found, answer) = post(House::new().app, method, &body).await;
        assert_eq!(found, status, "{body}: {answer}");
        let said = answer["detail"].as_str().unwrap_or_default();
        assert!(said.contains(detail), "{body}: {said}");
    };
    check(Method::POST, json!({}), 400, "missing field `sdp`").await;
    check(Method::POST, json!({ "sdp": "v=0", "type": "answer" }), 400, "type must be \"offer\"").await;
    check(Method::POST, json!({ "sdp": "v=0", "type": "offer" }), 400, "accepts no audio").await;
    check(Method::PATCH, json!({ "pc_id": "x", "candidates": [] }), 404, "no such connection").await;
    check(Method::PATCH, json!([]), 400, "names no candidates").await;
}
