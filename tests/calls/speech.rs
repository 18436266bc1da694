//! Calls whose speech goes through servers on loopback sockets: words both ways, running text that cuts in, speech that
//! is given up, and servers that fail.

pub(crate) mod alone;
mod custom_voices;
mod language;
mod pair;
mod servers;

use std::sync::Arc;

use ringer::engine::Speech;
use ringer::provider::fake::FakeRecognizer;
use ringer::provider::fallback::{RecognizerPair, SynthesizerPair};
use ringer::provider::pocketsphinx::{MODEL, Pocketsphinx};
use ringer::provider::remote::{Form, HttpRecognizer, Remote, RemoteSynthesizer, RemoteVoices, WsRecognizer};
use ringer::provider::speech::EmbeddedSpeech;
use ringer::provider::{Recognizer, Synthesizer};
use ringer_media::call::{CallSpec, EndReason, Interruption, KeywordResponse, TurnRules};
use ringer_media::seed::Seed;

use self::pair::{Far, Outcome, call};
use self::servers::{Fault, Seen, Server, dead};

/// Words that the servers recognise in any speech.
const HEARD: &str = "I can help you";
/// Words that the fallback recognizer recognises.
const SECOND: &str = "the second hears";
/// Words of the other side, without pauses that split them.
const DESK: &[&str] = &[
    "Thank you for calling the clinic and how can I help you today?",
    "Yes I can help you with that if you tell me the day that would be good for you and the time of the day.",
    "Your appointment is booked and we will see you on Friday morning.",
];
/// Words of the caller.
const CALLER: &[&str] = &["I would like to see a doctor this week.", "I can come on Friday in the morning."];

fn embedded_speech() -> Arc<EmbeddedSpeech> {
    Arc::new(EmbeddedSpeech::new().expect("there is a temporary folder"))
}

fn spec() -> CallSpec {
    let turn = TurnRules { endpointing_delay_ms: 1000, ..TurnRules::default() };
    CallSpec { seed: Seed(7), turn, ..CallSpec::default() }
}

/// Returns a sample agent that understands nothing.
fn desk() -> Far {
    Far { lines: DESK, interruption: Interruption::None, recognizer: Arc::new(FakeRecognizer::new(&[], 0)) }
}

fn synthesizer(form: Form, remote: Remote) -> Arc<dyn Synthesizer> {
    let voices = RemoteVoices { default: "plain".into(), named: Default::default(), natural_wpm: 170.0 };
    Arc::new(RemoteSynthesizer::new(form, remote, voices).expect("TLS is there"))
}

fn recognizer(form: Form, remote: Remote) -> Arc<dyn Recognizer> {
    match form {
        Form::Http => Arc::new(HttpRecognizer::new(remote, 500, false).expect("TLS is there")),
        Form::WebSocket => Arc::new(WsRecognizer::new(remote)),
    }
}

/// Returns the share of `said`'s words that `heard` has.
fn share(said: &[&str], heard: &str) -> f64 {
    let plain = |text: &str| text.to_lowercase().replace([',', '.', '?'], "");
    let heard = plain(heard);
    let words: Vec<String> =
        said.iter().flat_map(|line| plain(line).split(' ').map(String::from).collect::<Vec<_>>()).collect();
    let found = words.iter().filter(|word| heard.split(' ').any(|other| other == word.as_str())).count();
    found as f64 / words.len() as f64
}

/// Checks that the other side's three turns have this text, once for each stretch of speech.
fn each_turn_is(outcome: &Outcome, text: &str, which: &str) {
    let turns =
        outcome.events("turn.ended", "agent").filter_map(|entry| entry.data()["text"].as_str().map(str::to_owned));
    let texts: Vec<String> = turns.collect();
    let right = |found: &String| !found.is_empty() && found.replace(text, "").trim().is_empty();
    assert!(texts.len() == 3 && texts.iter().all(right), "{which}: {texts:?}");
}

async fn words_go_both_ways(form: Form) {
    let speech = embedded_speech();
    let server = Server::start(form, Fault::None, &speech, HEARD, false).await;
    let ours =
        Speech { synthesizer: synthesizer(form, server.remote()), recognizer: recognizer(form, server.remote()) };
    let far = Far { recognizer: Arc::new(Pocketsphinx::new(0, std::path::Path::new(MODEL))), ..desk() };
    let outcome = call(&speech, ours, spec(), CALLER, far).await;

    assert_eq!(outcome.report.ending.reason, EndReason::AgentHangup, "{form:?}: {:?}", outcome.report.ending);
    each_turn_is(&outcome, HEARD, &format!("{form:?}"));
    let turns =
        outcome.far.timeline.iter().filter(|entry| entry.name() == "turn.ended" && entry.side_name() == "agent");
    let heard: Vec<String> = turns.filter_map(|entry| entry.data()["text"].as_str().map(str::to_owned)).collect();
    let share = share(CALLER, &heard.join(" "));
    println!("{form:?}: the other side understands {:.0} % of the words: {heard:?}", 100.0 * share);
    assert!(share >= 0.7, "{form:?}: {heard:?}");
    // The recognizer got the turns as they were said, and what came up to 700 ms before each; a long pause parts one.
    let stretches = server.events().into_iter().filter_map(|(_, seen)| match seen {
        Seen::Stretch(samples) => Some(samples as f64 / 16_000.0),
        _ => None,
    });
    let stretches: Vec<f64> = stretches.collect();
    let turns = outcome.events("turn.ended", "agent").map(|entry| {
        let at = |name: &str| entry.data()[name].as_f64().expect("a position");
        (at("end_sample") - at("from_sample")) / 16_000.0
    });
    let turns: Vec<f64> = turns.collect();
    println!("{form:?}: turns of {turns:.2?} s, audio at the recognizer {stretches:.2?} s");
    let (said, given): (f64, f64) = (turns.iter().sum(), stretches.iter().sum());
    let before = given - said;
    let longest = |seconds: &[f64]| seconds.iter().copied().fold(0.0, f64::max);
    assert!(before >= 0.5 * turns.len() as f64, "{form:?}: {before} s more than the turns");
    let most = longest(&turns) + 1.3;
    assert!((0.4 * longest(&turns)..most).contains(&longest(&stretches)), "{form:?}: {stretches:?} of {turns:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn words_go_both_ways_through_http() {
    words_go_both_ways(Form::Http).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn words_go_both_ways_through_websockets() {
    words_go_both_ways(Form::WebSocket).await;
}

/// Returns the milliseconds from the time when the server sent the word, and when the call had it, to the response.
async fn a_keyword_cuts_in(form: Form) -> (f64, f64) {
    let speech = embedded_speech();
    let server = Server::start(form, Fault::None, &speech, HEARD, false).await;
    let ours =
        Speech { synthesizer: synthesizer(form, server.remote()), recognizer: recognizer(form, server.remote()) };
    let response = "Thank you, please go on.".into();
    let keyword = KeywordResponse { keyword: "HELP".into(), response, probability: 1.0 };
    let spec = CallSpec { interruption: Interruption::Keywords(vec![keyword]), ..spec() };
    let outcome = call(&speech, ours, spec, CALLER, desk()).await;

    let partial = outcome.live.iter().find(|entry| entry.name() == "transcript.partial");
    let partial = partial.expect("running text is shown live");
    assert_eq!((partial.side_name(), &partial.data()["text"]), ("agent", &HEARD.into()));
    assert!(outcome.events("transcript.partial", "agent").next().is_none(), "and not kept");
    let said = outcome.events("speech.started", "dh").find(|entry| entry.data()["kind"] == "interruption");
    let said = said.expect("it cuts in");
    assert_eq!(said.data()["text"], "Thank you, please go on.");
    let decided = outcome.events("interruption.decided", "dh").next().expect("the keyword is heard");
    assert_eq!((&decided.data()["type"], &decided.data()["keyword"]), (&"keywords".into(), &"HELP".into()));
    let started_ms = outcome.wall_ms(said.sample);
    let sent = server.events().into_iter().rfind(|(at, seen)| *seen == Seen::Known && *at as f64 <= started_ms);
    let after_ms = started_ms - sent.expect("the word was sent").0 as f64;
    let mut shown =
        outcome.live.iter().filter(|entry| entry.name() == "transcript.partial" && entry.sample <= said.sample);
    let had_ms = (said.sample - shown.next_back().expect("it was shown before").sample) as f64 / 16.0;
    println!(
        "{form:?}: the response begins {after_ms:.0} ms after the server sent the word, {had_ms:.0} ms after the call had it"
    );
    assert!(after_ms >= -20.0, "{form:?}: {after_ms} ms");
    let before =
        |event: &'static str| outcome.events(event, "agent").filter(|entry| entry.sample < said.sample).count();
    let (started, ended) = (before("speech.started"), before("speech.ended"));
    assert_eq!(started, ended + 1, "{form:?}: it cuts in while the agent speaks");
    (after_ms, had_ms)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyword_cuts_in_on_running_text_by_http() {
    a_keyword_cuts_in(Form::Http).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyword_cuts_in_on_running_text_by_websocket() {
    a_keyword_cuts_in(Form::WebSocket).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_fallback_a_deaf_call_goes_on_and_a_mute_one_says_why_it_ends() {
    let deaf = async |form| {
        let speech = embedded_speech();
        let deaf = Speech { synthesizer: speech.clone(), recognizer: recognizer(form, dead(form)) };
        let outcome = call(&speech, deaf, spec(), CALLER, desk()).await;
        assert_eq!(outcome.report.ending.reason, EndReason::AgentHangup, "{form:?}: {:?}", outcome.report.ending);
        assert!(outcome.events("recognizer_unreachable", "engine").count() >= 3, "{form:?}: for each turn");
    };
    let mute = async |form| {
        let speech = embedded_speech();
        let recognizer = Arc::new(FakeRecognizer::new(&[], 0));
        let mute = Speech { synthesizer: synthesizer(form, dead(form)), recognizer };
        let outcome = call(&speech, mute, spec(), CALLER, desk()).await;
        assert_eq!(outcome.report.ending.reason, EndReason::Fault, "{form:?}: {:?}", outcome.report.ending);
        assert!(outcome.events("synthesizer_unreachable", "engine").next().is_some(), "{form:?}");
    };
    tokio::join!(deaf(Form::Http), deaf(Form::WebSocket), mute(Form::Http), mute(Form::WebSocket));
}
