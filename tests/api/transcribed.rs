//! Recordings of production calls that came without a transcript: heard by a recognizer, then judged as others are.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringer::jobs::Upkeep;
use ringer::provider::fake::FakeRecognizer;
use ringer::provider::pocketsphinx::{MODEL, Pocketsphinx};
use ringer::provider::remote::{HttpRecognizer, Remote};
use ringer::provider::speech::EmbeddedSpeech;
use ringer::provider::{
    Recognized, Recognizer, RecognizerFeed, SpokenIn, Status, Synthesizer, VoiceWanted, whole_speech,
};
use ringer::service::Service;
use ringer::tasks::Tasks;
use ringer_media::clip::write_wav;
use ringer_media::detected_language::DetectedLanguage;
use ringer_media::seed::Seed;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc};

use super::call_logs::{body, metric, stereo};
use super::world::World;

/// Words of the five stretches of speech in the recording, in order of onset: agent, caller, agent, caller, agent.
const WORDS: [&str; 5] =
    ["welcome to the desk", "a visit please", "tuesday is free", "fine thank you", "you are booked goodbye"];

/// Returns a recording as it is sent.
fn sent_recording(file: &[u8], multichannel: bool) -> Value {
    let data = format!("data:audio/wav;base64,{}", STANDARD.encode(file));
    json!({ "recording_base64": data, "multichannel": multichannel, "transcript": null })
}

/// Brings a call in, has it heard by `recognizer`, and reads it.
async fn recognize(world: &World, call: Value, recognizer: Option<Arc<dyn Recognizer>>) -> Value {
    let queued = world.post("/v1/evaluate-call", body(world, call)).await;
    world.work_off_by(None, recognizer).await;
    let id = queued["call_id"].as_str().expect("an id");
    world.get(&format!("/v1/retrieve-call-log/{id}")).await["call_log"].clone()
}

/// Creates a rule for each text: its speaker said it.
async fn rules(world: &World, texts: &[(&str, &str)]) {
    let agent = json!([world.name("agent").parse::<i64>().expect("a number")]);
    for (speaker, text) in texts {
        let rule = json!({
            "name": format!("{speaker}: {text}"), "description": "d", "response_type": "pass_fail", "agent_ids": agent,
            "eval_method": "deterministic", "settings": { "check": "contains", "value": text, "speaker": speaker },
        });
        world.post("/v1/create-custom-metric", rule).await;
    }
}

/// Returns the rules by name with their verdicts, sorted.
fn verdicts(log: &Value) -> Vec<(String, String)> {
    let results = log["evaluations"][0]["custom_metrics"].as_array().expect("results").iter();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let all = results.map(|one| (text(&one["name"]), text(&one["response_value"])));
    let mut rules: Vec<_> = all.filter(|(name, _)| name.contains(':')).collect();
    rules.sort();
    rules
}

/// Returns expected verdicts, sorted as [`verdicts`] are.
fn pairs(expect: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut all: Vec<_> = expect.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    all.sort();
    all
}

#[tokio::test]
async fn each_channel_gives_the_words_of_its_side() {
    let world = World::with_rows().await;
    rules(&world, &[("AGENT", "tuesday is free"), ("USER", "a visit please"), ("USER", "tuesday")]).await;
    let recognizer = Arc::new(FakeRecognizer::new(&WORDS, i64::MAX));
    let log = recognize(&world, sent_recording(&stereo(), true), Some(recognizer.clone())).await;
    assert_eq!((&log["status"], &log["error_message"]), (&json!("COMPLETED"), &Value::Null));
    assert_eq!(log["metadata"], json!({ "transcript_source": "recognized" }));
    let recognized = log["recognized"].as_array().expect("a list");
    let texts: Vec<_> = recognized.iter().map(|speech| [&speech["speaker"], &speech["text"]]).collect();
    assert_eq!(json!(texts[..2]), json!([["AGENT", WORDS[0]], ["USER", WORDS[1]]]));
    let [from, to] = ["start_offset_ms", "end_offset_ms"].map(|name| recognized[0][name].as_i64().expect("a time"));
    assert!((from - 500).abs() < 60 && from < to, "{}", recognized[0]);
    let expect = [("AGENT: tuesday is free", "pass"), ("USER: a visit please", "pass"), ("USER: tuesday", "fail")];
    assert_eq!(verdicts(&log), pairs(&expect));
    // 4 + 3 + 4 words in three turns of the agent, 3 + 3 in two of the caller.
    assert_eq!(metric(&log, "agent_words_per_turn_avg"), Some(json!(3.667)));
    assert_eq!(metric(&log, "customer_words_per_turn_avg"), Some(json!(3.0)));

    // Judged again by the words that it was given.
    let id = log["id"].as_str().expect("an id");
    world.post(&format!("/v1/re-evaluate/{id}"), Value::Null).await;
    world.work_off_by(None, Some(Arc::new(FakeRecognizer::new(&["other words"], i64::MAX)))).await;
    let again = world.get(&format!("/v1/retrieve-call-log/{id}")).await["call_log"].clone();
    assert_eq!(verdicts(&again), pairs(&expect));
}

/// Bias words of the agent go to the recognizer; one that does not take them says so.
#[tokio::test]
async fn bias_words_of_the_agent_are_used_or_told() {
    let world = World::with_rows().await;
    let agent: i64 = world.name("agent").parse().expect("a number");
    world.post("/v1/update-agent", json!({ "agent_id": agent, "keyterms": ["Alvarez", "Kowalczyk"] })).await;
    for (uses, expect) in [
        (2, Value::Null),
        (1, json!(["keyterms: the recognizer uses the first 1 of 2"])),
        (0, json!(["keyterms: the recognizer does not use them"])),
    ] {
        let noting = Arc::new(Noting { inner: FakeRecognizer::new(&WORDS, i64::MAX), uses, terms: Mutex::default() });
        let log = recognize(&world, sent_recording(&stereo(), true), Some(noting.clone())).await;
        assert_eq!(log["metadata"]["warnings"], expect, "{log}");
        assert_eq!(*noting.terms.lock().await, ["Alvarez", "Kowalczyk"]);
    }
}

/// Uses some bias words, and notes those that it was given.
struct Noting {
    inner: FakeRecognizer,
    uses: usize,
    terms: Mutex<Vec<String>>,
}

impl Recognizer for Noting {
    fn count_keyterms(&self, keyterms: &[String]) -> usize {
        self.uses.min(keyterms.len())
    }

    fn open(
        &self,
        language: SpokenIn<'_>,
        keyterms: &[String],
    ) -> (Box<dyn RecognizerFeed>, mpsc::Receiver<Recognized>) {
        *self.terms.try_lock().expect("one stretch at a time") = keyterms.to_vec();
        self.inner.open(language, keyterms)
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}

#[tokio::test]
async fn speech_that_is_not_understood_is_a_turn_without_words() {
    let world = World::with_rows().await;
    rules(&world, &[("AGENT", "welcome"), ("AGENT", "tuesday"), ("USER", "tuesday")]).await;
    let words = [WORDS[0], WORDS[1], "", WORDS[3], WORDS[4]];
    let log =
        recognize(&world, sent_recording(&stereo(), true), Some(Arc::new(FakeRecognizer::new(&words, i64::MAX)))).await;
    assert_eq!((&log["status"], &log["error_message"]), (&json!("COMPLETED"), &Value::Null));
    // It may have been said there; the caller's words are all known.
    let expect = [("AGENT: welcome", "pass"), ("AGENT: tuesday", ""), ("USER: tuesday", "fail")];
    assert_eq!(verdicts(&log), pairs(&expect));
    assert_eq!(metric(&log, "agent_words_per_turn_avg"), Some(json!(4.0)));
    assert_eq!(metric(&log, "num_turns"), Some(json!(3)));
}

#[tokio::test]
async fn one_channel_is_one_speaker_and_says_so() {
    let world = World::with_rows().await;
    rules(&world, &[("any", "tuesday"), ("AGENT", "a visit")]).await;
    // Pauses of up to 1.4 s part nothing: all is one stretch.
    let recognizer = Arc::new(FakeRecognizer::new(&[&WORDS.join(" ")], i64::MAX));
    let log = recognize(&world, sent_recording(&stereo(), false), Some(recognizer)).await;
    assert_eq!(log["status"], "COMPLETED");
    let warnings = log["metadata"]["warnings"].as_array().expect("warnings");
    assert!(warnings[0].as_str().expect("a text").starts_with("transcript: the recording has one channel"), "{log}");
    assert_eq!(verdicts(&log), pairs(&[("any: tuesday", "pass"), ("AGENT: a visit", "pass")]));
    for name in ["avg_agent_latency", "num_turns", "agent_speak_percentage"] {
        assert_eq!(metric(&log, name), None, "{name}: nobody is told apart");
    }
}

#[tokio::test]
async fn what_was_not_heard_is_told() {
    let world = World::with_rows().await;
    let mut call = sent_recording(&stereo(), true);
    call["metadata"] = json!({ "warnings": "of the owner" });
    let log = recognize(&world, call, None).await;
    let expect = json!({
        "warnings": "of the owner",
        "engine.warnings": ["transcript: the recording was not transcribed: there is no recognizer"],
    });
    assert_eq!((&log["status"], &log["metadata"]), (&json!("COMPLETED"), &expect));
    assert!(metric(&log, "avg_agent_latency").is_some(), "what is heard is measured");

    let nobody = HttpRecognizer::new(Remote::new("http://127.0.0.1:9/v1", None, "m"), 0, false).expect("TLS is there");
    let log = recognize(&world, sent_recording(&stereo(), true), Some(Arc::new(nobody))).await;
    let expect = "transcript: the recording was not transcribed: the recognizer cannot be reached";
    assert_eq!((&log["status"], &log["error_message"]), (&json!("INCOMPLETED"), &json!(expect)));
    assert_eq!(log["metadata"], Value::Null);
}

#[tokio::test]
async fn a_transcript_that_came_is_not_made_anew() {
    let world = World::with_rows().await;
    rules(&world, &[("any", "other words")]).await;
    let mut call = sent_recording(&stereo(), true);
    call.as_object_mut().expect("an object").remove("transcript");
    let recognizer = Arc::new(FakeRecognizer::new(&["other words"; 5], i64::MAX));
    let log = recognize(&world, call, Some(recognizer)).await;
    assert_eq!((&log["metadata"], verdicts(&log)), (&Value::Null, pairs(&[("any: other words", "fail")])));
}

#[tokio::test]
async fn a_server_hears_each_stretch_and_finds_the_language() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    let (count, seen) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (counted, saw) = (count.clone(), seen.clone());
    let hear = move |body: Bytes| async move {
        saw.lock().await.push(String::from_utf8_lossy(&body).into_owned());
        let text = WORDS[counted.fetch_add(1, Ordering::Relaxed) % WORDS.len()];
        ([("content-type", "application/json")], json!({ "text": text, "language": "english" }).to_string())
    };
    let router = Router::new().route("/v1/audio/transcriptions", post(hear));
    let tasks = Tasks::new();
    tasks.spawn("speech server", async move {
        let _ = axum::serve(listener, router).await;
    });
    let remote = Remote::new(&format!("http://{address}/v1"), Some("sesame".into()), "m1");
    let recognizer = HttpRecognizer::new(remote, 0, false).expect("TLS is there");
    let world = World::with_rows().await;
    rules(&world, &[("AGENT", "you are booked"), ("USER", "fine")]).await;
    let log = recognize(&world, sent_recording(&stereo(), true), Some(Arc::new(recognizer))).await;
    assert_eq!((&log["status"], &log["error_message"]), (&json!("COMPLETED"), &Value::Null));
    assert_eq!(verdicts(&log), pairs(&[("AGENT: you are booked", "pass"), ("USER: fine", "pass")]));
    let seen = seen.lock().await;
    assert_eq!(seen.len(), WORDS.len(), "one request a stretch");
    assert!(seen.iter().all(|form| form.contains("name=\"file\"") && !form.contains("name=\"language\"")));
}

#[tokio::test(flavor = "multi_thread")]
async fn synthesized_speech_is_heard_by_the_installed_recognizer() {
    let speech = EmbeddedSpeech::new().expect("there is a temporary folder");
    let said = async |text: &str, gender: &str| {
        let wanted = VoiceWanted { gender: Some(gender.into()), seed: Seed(3), ..VoiceWanted::of("en") };
        let voice = speech.voice(&wanted).expect("there is a voice");
        whole_speech(&speech, text, &voice).await.expect("flite is installed").to_vec()
    };
    // The recognizer mishears much ("your appointment is" of a woman: "you are applying then is"); these words it knows
    // of all.
    let lines = [
        (1, said("Press one for appointments, press two for opening hours.", "female").await),
        (0, said("I would like to see the doctor on Friday morning.", "male").await),
        (1, said("The nurse will call you back today.", "female").await),
    ];
    let mut sides = [Vec::new(), Vec::new()];
    for (side, pcm) in &lines {
        let from = sides[0].len() + 12_800;
        sides.iter_mut().for_each(|channel: &mut Vec<i16>| channel.resize(from, 0));
        sides[*side].extend(pcm);
        let to = from + pcm.len();
        sides.iter_mut().for_each(|channel| channel.resize(to, 0));
    }
    let pairs: Vec<i16> = sides[0].iter().zip(&sides[1]).flat_map(|(left, right)| [*left, *right]).collect();
    let world = World::with_rows().await;
    let rules_of = [("USER", "doctor"), ("AGENT", "appointments"), ("AGENT", "nurse"), ("AGENT", "doctor")];
    rules(&world, &rules_of).await;
    let recognizer = Arc::new(Pocketsphinx::new(0, Path::new(MODEL)));
    let log = recognize(&world, sent_recording(&write_wav(16_000, 2, &pairs), true), Some(recognizer)).await;
    assert_eq!((&log["status"], &log["error_message"]), (&json!("COMPLETED"), &Value::Null));
    let only = json!(["transcript: the recognizer knows English alone and hears every language as English"]);
    let recognizer = json!({ "kind": "embedded", "model": "pocketsphinx", "sha256": null });
    let expect = json!({ "transcript_source": "recognized", "recognizer": recognizer, "warnings": only });
    assert_eq!(log["metadata"], expect);
    let found = verdicts(&log);
    let understood = found.iter().filter(|(_, value)| value == "pass").count();
    assert!(understood >= 2, "two of three words are understood: {found:?}");
    assert!(found.contains(&("AGENT: doctor".into(), "fail".into())), "the agent never said it: {found:?}");
    assert_eq!(metric(&log, "num_turns"), Some(json!(2)));
}

/// Takes its time for each stretch, and knows how many it heard at once.
struct Slow {
    service: Service,
    takes_ms: i64,
    /// False if no text ever comes.
    answers: bool,
    hears: Arc<AtomicUsize>,
    most: AtomicUsize,
    tasks: Tasks,
}

impl Slow {
    fn new(world: &World, takes_ms: i64, answers: bool) -> Arc<Slow> {
        let (hears, most, tasks) = (Arc::default(), AtomicUsize::new(0), Tasks::new());
        Arc::new(Slow { service: world.service.clone(), takes_ms, answers, hears, most, tasks })
    }
}

struct Heedless;

impl RecognizerFeed for Heedless {
    fn push(&mut self, _pcm: &[i16]) {}

    fn finish(&mut self) {}
}

impl Recognizer for Slow {
    fn open(
        &self,
        _language: SpokenIn<'_>,
        _keyterms: &[String],
    ) -> (Box<dyn RecognizerFeed>, mpsc::Receiver<Recognized>) {
        let (news, receiver) = mpsc::channel(1);
        self.most.fetch_max(1 + self.hears.fetch_add(1, Ordering::Relaxed), Ordering::Relaxed);
        let (service, hears) = (self.service.clone(), self.hears.clone());
        let (takes_ms, answers) = (self.takes_ms, self.answers);
        self.tasks.spawn("slow recognizer", async move {
            // Whoever else wants to be heard has come by then.
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            service.clock().advance_ms(takes_ms);
            service.evaluations().end_late_evaluations(0).await.expect("it can be looked for");
            hears.fetch_sub(1, Ordering::Relaxed);
            let (text, detected_language) = ("fine".to_owned(), DetectedLanguage::Unknown);
            match answers {
                true => drop(
                    news.send(Recognized::Final { text, words: Vec::new(), confidence: None, detected_language }).await,
                ),
                false => news.closed().await,
            }
        });
        (Box::new(Heedless), receiver)
    }

    fn status(&self) -> Status {
        Status::Ok
    }
}

#[tokio::test]
async fn hearing_a_recording_is_no_part_of_the_time_to_judge_it() {
    let world = World::with_rows().await;
    let log = recognize(&world, sent_recording(&stereo(), true), Some(Slow::new(&world, 200_000, true))).await;
    assert_eq!((&log["status"], &log["error_message"]), (&json!("COMPLETED"), &Value::Null), "after 5 times 200 s");
    assert_eq!(metric(&log, "agent_words_per_turn_avg"), Some(json!(1.0)));
}

#[tokio::test]
async fn a_recognizer_that_says_nothing_is_given_up() {
    let world = World::with_rows().await;
    let log = recognize(&world, sent_recording(&stereo(), true), Some(Slow::new(&world, 300_000, false))).await;
    let expect = "transcript: the recording was not transcribed: the recognizer took too long";
    assert_eq!((&log["status"], &log["error_message"]), (&json!("INCOMPLETED"), &json!(expect)));
}

#[tokio::test]
async fn recordings_are_heard_one_after_the_other() {
    let world = World::with_rows().await;
    for _ in 0..2 {
        world.post("/v1/evaluate-call", body(&world, sent_recording(&stereo(), true))).await;
    }
    let slow = Slow::new(&world, 0, true);
    let upkeep = Upkeep { recognizer: Some(slow.clone()), ..Upkeep::new(world.service.clone()) };
    let (one, other) = tokio::join!(upkeep.work_off(), upkeep.work_off());
    assert!(one.is_ok() && other.is_ok(), "{one:?} {other:?}");
    assert_eq!(slow.most.load(Ordering::Relaxed), 1);
    let logs = world.get("/v1/retrieve-call-logs/$agent").await["call_logs"].clone();
    let statuses: Vec<&Value> = logs.as_array().expect("a list").iter().map(|log| &log["status"]).collect();
    assert_eq!(statuses, ["COMPLETED", "COMPLETED"]);
}
