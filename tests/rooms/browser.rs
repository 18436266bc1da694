//! Chromium as the pipeline: a page that answers the offer.

use std::sync::Arc;

use ringer::transport::pipeline::rtvi::RtviEvent;
use ringer::transport::pipeline::{Order, Patience, Pipeline, PipelineEnd, PipelineNews};
use serde_json::{Value, json};

use super::answers::serve;
use super::phone::loopback;
use super::pipelines::{Call, poster, target};
use crate::page::browser::Browser;
use crate::program::PATIENCE;

const FLAGS: [&str; 3] =
    ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream", "--allow-loopback-in-peer-connection"];

/// Answers an offer with a tone of 700 Hz; a granted microphone has candidates carry addresses.
const ANSWER: &str = "
    const pc = window.pc = new RTCPeerConnection();
    window.heard = { messages: [] };
    await navigator.mediaDevices.getUserMedia({ audio: true });
    // A context whose output does not start in time is made anew.
    const running = async () => {
        const context = new AudioContext();
        for (const end = performance.now() + 5000; performance.now() < end;) {
            if (context.state === 'running' && context.currentTime > 0) return context;
            await new Promise((done) => setTimeout(done, 20));
        }
        context.close();
        return await running();
    };
    const context = window.context = await running();
    const tone = new OscillatorNode(context, { frequency: 700 });
    const out = context.createMediaStreamDestination();
    tone.connect(out);
    tone.start();
    pc.ontrack = (event) => {
        const player = new Audio();
        player.srcObject = event.streams[0] || new MediaStream([event.track]);
        player.play();
        const ear = window.ear = new AnalyserNode(context, { fftSize: 8192, smoothingTimeConstant: 0 });
        context.createMediaStreamSource(player.srcObject).connect(ear);
    };
    pc.ondatachannel = (event) => {
        window.channel = event.channel;
        event.channel.onmessage = (message) => window.heard.messages.push(message.data);
        const ready = { label: 'rtvi-ai', type: 'bot-ready', id: '1', data: { version: '2.2.0' } };
        const tell = () => event.channel.send(JSON.stringify(ready));
        if (event.channel.readyState === 'open') tell();
        else event.channel.onopen = tell;
    };
    await pc.setRemoteDescription({ type: 'offer', sdp: OFFER });
    pc.addTrack(out.stream.getAudioTracks()[0], out.stream);
    await pc.setLocalDescription(await pc.createAnswer());
    while (pc.iceGatheringState !== 'complete') await new Promise((done) => setTimeout(done, 20));
    return pc.localDescription.sdp;";

/// The loudest frequency that the page hears, in Hz, and its messages.
const HEARD: &str = "
    const bins = new Float32Array(window.ear ? window.ear.frequencyBinCount : 0);
    if (window.ear) window.ear.getFloatFrequencyData(bins);
    let loudest = 0;
    bins.forEach((level, at) => { if (level > bins[loudest]) loudest = at; });
    const hz = window.ear ? loudest * window.context.sampleRate / window.ear.fftSize : 0;
    const clock = window.context.state + ' ' + window.context.currentTime;
    return { hz, level: bins[loudest], state: window.pc.connectionState, clock, messages: window.heard.messages };";

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_is_heard_and_hears() {
    let browser = Arc::new(Browser::with(&FLAGS).await);
    browser.tell("timeouts", json!({ "script": PATIENCE.as_millis() as u64 })).await;
    let page = browser.clone();
    let base = serve(Arc::new(move |_, body: Value| {
        let page = page.clone();
        Box::pin(async move {
            let Some(sdp) = body["sdp"].as_str() else { return (200, "page".to_owned()) };
            let answer = page.run(&ANSWER.replace("OFFER", &json!(sdp).to_string())).await;
            (200, json!({ "sdp": answer, "type": "answer", "pc_id": "page" }).to_string())
        })
    }))
    .await;
    // Microphones are for pages of a server.
    browser.open(&base).await;
    let patience = Patience { request: PATIENCE, ..Patience::default() };
    let opened = Pipeline::open(target(&base), loopback(), poster(), patience).await;
    let mut call = Call::carry(opened.unwrap_or_else(|fault| panic!("{fault}")));
    call.until(|news| matches!(news, PipelineNews::Event(_, RtviEvent::Ready(_)))).await;
    let is_heard = call.phone.hear(700.0).await;
    assert!(is_heard, "{:?} {}", call.phone.figures(), browser.run(HEARD).await);
    call.orders.send(Order::Send("hello".to_owned())).await.expect("it runs");
    let heard = async {
        loop {
            let heard = browser.run(HEARD).await;
            let messages = heard["messages"].as_array().expect("a list");
            let has = |word: &str| messages.iter().any(|text| text.as_str().is_some_and(|text| text.contains(word)));
            if (heard["hz"].as_f64().unwrap_or_default() - 500.0).abs() < 20.0 && has("hello") {
                assert!(has("client-ready") && has("ping"), "{heard}");
                return heard;
            }
        }
    };
    let heard = tokio::select! {
        () = call.phone.talk() => unreachable!("it talks forever"),
        heard = tokio::time::timeout(PATIENCE, heard) => heard.expect("in time"),
    };
    println!("{heard}");
    assert!(heard["level"].as_f64().is_some_and(|level| level > -60.0), "{heard}");
    browser.run("window.pc.close();").await;
    assert_eq!(call.wait_ended().await, PipelineEnd::AgentLeft);
}
