//! Calls whose lateness is measured, beside servers of speech that work and that fail, and calls with neural speech:
//! their words depend on the time that is left for them.

mod figures;
mod folders;
pub(crate) mod neural;

use super::*;

/// Returns how many milliseconds after the caller fell silent the server sees that its connection is gone, and how late
/// the latest frame of the same call was.
async fn a_cut_in_drops_the_connection(form: Form) -> (f64, f64) {
    let speech = embedded_speech();
    let server = Server::start(form, Fault::None, &speech, HEARD, true).await;
    let recognizer = Arc::new(FakeRecognizer::new(&[], 0));
    let ours = Speech { synthesizer: synthesizer(form, server.remote()), recognizer };
    let interruption =
        Interruption::Level { name: "level", probability: 1.0, from_ms: 1500, to_ms: 1600, at_most: Some(1) };
    let mut spec = spec();
    spec.limits.max_duration_ms = Some(9000);
    let outcome = call(&speech, ours, spec, CALLER, Far { interruption, ..desk() }).await;

    let stopped = outcome.events("speech.ended", "dh").find(|entry| entry.data()["interrupted"] == true);
    let stopped_ms = outcome.wall_ms(stopped.expect("it is cut in on").sample);
    let seen = server.events();
    let dropped = seen.iter().find(|(at, seen)| *seen == Seen::Dropped && *at as f64 >= stopped_ms - 40.0);
    let dropped = dropped.unwrap_or_else(|| panic!("{form:?}: the server sees the end: {seen:?}"));
    (dropped.0 as f64 - stopped_ms, outcome.late_ms.1)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_in_gives_the_synthesis_up_at_once() {
    let (http, websocket) =
        tokio::join!(a_cut_in_drops_the_connection(Form::Http), a_cut_in_drops_the_connection(Form::WebSocket));
    for (form, (after_ms, late_ms)) in [(Form::Http, http), (Form::WebSocket, websocket)] {
        println!("{form:?}: the server sees the connection end {after_ms:.1} ms after the last sample said");
        println!("{form:?}: the latest frame of the call was {late_ms:.1} ms late");
        assert!((-40.0..=60.0 + 2.0 * late_ms).contains(&after_ms), "{form:?}: {after_ms} ms, {late_ms} ms late");
    }
}

/// Returns a call whose servers fail so, with others behind them.
async fn with_fallback(form: Form, fault: Option<Fault>, speech: &Arc<EmbeddedSpeech>) -> Outcome {
    let server = match fault {
        Some(fault) => Some(Server::start(form, fault, speech, HEARD, false).await),
        None => None,
    };
    let remote = match &server {
        Some(server) => server.remote(),
        None => dead(form),
    };
    let second = Arc::new(FakeRecognizer::new(&[SECOND; 20], 0));
    let ours = Speech {
        synthesizer: Arc::new(SynthesizerPair::new(synthesizer(form, remote.clone()), speech.clone())),
        recognizer: Arc::new(RecognizerPair::new(recognizer(form, remote), second)),
    };
    call(speech, ours, spec(), CALLER, desk()).await
}

async fn a_call_goes_on(form: Form, fault: Option<Fault>, code: &str, speech: &Arc<EmbeddedSpeech>) -> (f64, f64) {
    let outcome = with_fallback(form, fault, speech).await;
    let names: Vec<&str> = outcome.report.timeline.iter().map(|entry| entry.name()).collect();
    assert_eq!(outcome.report.ending.reason, EndReason::AgentHangup, "{form:?} {fault:?}: {names:?}");
    for part in ["synthesizer", "recognizer"] {
        let code = format!("{part}_{code}");
        let noted = outcome.events(&code, "engine").count();
        assert!(noted >= 1, "{form:?} {fault:?}: {code} is in the timeline: {names:?}");
    }
    each_turn_is(&outcome, SECOND, &format!("{form:?} {fault:?}"));
    let said: Vec<String> = outcome
        .events("speech.ended", "dh")
        .filter_map(|entry| entry.data()["text"].as_str().map(str::to_owned))
        .collect();
    assert_eq!(said, CALLER, "{form:?} {fault:?}");
    let spans = |event: &'static str| {
        outcome.far.timeline.iter().filter(move |entry| entry.name() == event && entry.side_name() == "agent")
    };
    let heard: i64 = spans("speech.ended").map(|entry| entry.sample).sum::<i64>()
        - spans("speech.started").map(|entry| entry.sample).sum::<i64>();
    assert!(heard > 3 * 16_000, "{form:?} {fault:?}: the other side heard {heard} samples of speech");
    let latest = outcome.events("late_turn", "dh").filter_map(|entry| entry.data()["late_ms"].as_i64()).max();
    let late = outcome.late_ms;
    println!(
        "{form:?} {fault:?}: {code}, latest turn {latest:?} ms late, frames {:.2} ms late, at most {:.2} ms",
        late.0, late.1
    );
    late
}

/// Runs all calls at the same time on the same machine: some whose servers fail, and one whose servers work.
async fn calls_go_on(form: Form) {
    let speech = embedded_speech();
    let (well, dead, slow, refuses, nonsense, cuts) = tokio::join!(
        with_fallback(form, Some(Fault::None), &speech),
        a_call_goes_on(form, None, "unreachable", &speech),
        a_call_goes_on(form, Some(Fault::Slow), "late", &speech),
        a_call_goes_on(form, Some(Fault::Refuses), "refused", &speech),
        a_call_goes_on(form, Some(Fault::Nonsense), "failed", &speech),
        a_call_goes_on(form, Some(Fault::Cuts), "failed", &speech),
    );
    println!("{form:?} servers that work: frames {:.2} ms late, at most {:.2} ms", well.late_ms.0, well.late_ms.1);
    for late in [dead, slow, refuses, nonsense, cuts] {
        assert!(late.0 <= well.late_ms.0 + 2.0, "{form:?}: {late:?} ms instead of {:?} ms", well.late_ms);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_go_on_when_http_servers_fail() {
    calls_go_on(Form::Http).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_go_on_when_websocket_servers_fail() {
    calls_go_on(Form::WebSocket).await;
}
