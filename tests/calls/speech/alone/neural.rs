//! Calls over a telephone line (PCMU) by the built program: a Whisper model hears the agent, a Piper voice is the
//! caller. `make speech-models` brings both.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ringer_media::clip::write_wav;
use ringer_media::resample::resample_whole;
use serde_json::{Value, json};
use tokio::time::{interval, timeout};

use crate::calls::stage::channels;
use crate::json::with;
use crate::program::{KEY, PATIENCE, Program, client, ringer, up};

/// Words that each caller says after the greeting.
pub(crate) const INTENT: &str = "I would like to see a doctor. The third of March. Yes, that is good.";

/// Returns the folder of the models that tests use.
#[expect(clippy::disallowed_methods, reason = "the place of the models is no setting of the program")]
pub(crate) fn model_cache() -> PathBuf {
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let home = || named("HOME").unwrap_or_default().join(".cache/ringer-test-models");
    let folder = named("RINGER_MODELS_CACHE").unwrap_or_else(home);
    assert!(folder.is_dir(), "{} is missing: `make speech-models` brings it", folder.display());
    folder
}

/// Links the models into the data folder, where the program finds them without any setting.
pub(crate) fn bring_models(data: &Path) {
    let models = data.join("models");
    std::fs::create_dir(&models).expect("the folder is writable");
    for name in ["tiny.en", "joe"] {
        std::os::unix::fs::symlink(model_cache().join(name), models.join(name)).expect("the folder is writable");
    }
}

/// The program, asked over HTTP.
pub(crate) struct Asked {
    pub base: String,
}

impl Asked {
    async fn send(&self, method: reqwest::Method, path: &str, body: Option<Value>) -> reqwest::Response {
        let request = client().request(method, format!("{}{path}", self.base)).header("x-api-key", KEY);
        let request = match &body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = timeout(2 * PATIENCE, request.send()).await.expect("it answers in time").expect("it answers");
        assert_eq!(answer.status().as_u16(), 200, "{path}");
        answer
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> Value {
        self.send(reqwest::Method::POST, path, Some(body)).await.json().await.expect("JSON")
    }

    async fn get(&self, path: &str) -> Value {
        self.send(reqwest::Method::GET, path, None).await.json().await.expect("JSON")
    }

    /// Waits for the end of a result's events.
    pub(crate) async fn over(&self, id: &str) -> Value {
        let events = self.send(reqwest::Method::GET, &format!("/v1/simulation-result/{id}/events"), None).await;
        timeout(2 * PATIENCE, events.bytes()).await.expect("it is over in time").expect("the stream is whole");
        self.get(&format!("/v1/retrieve-simulation-result/{id}")).await["simulation_result"].clone()
    }

    /// Returns the data of a result's events of this name.
    pub(crate) async fn events(&self, id: &str, name: &str) -> Vec<Value> {
        let timeline = self.get(&format!("/v1/simulation-result/{id}/timeline")).await;
        let events = timeline["events"].as_array().expect("events").iter();
        events.filter(|event| event["event"] == name).map(|event| event["data"].clone()).collect()
    }

    /// Returns what one side said, as the transcript has it.
    async fn words_of(&self, id: &str, speaker: &str) -> String {
        let transcript = self.get(&format!("/v1/simulation-result/{id}/transcript")).await;
        let entries = transcript["entries"].as_array().expect("entries").iter();
        let texts = entries.filter(|entry| entry["speaker"] == speaker).filter_map(|entry| entry["utterance"].as_str());
        texts.collect::<Vec<_>>().join(" ").to_lowercase()
    }

    /// Brings a recording in that has no transcript, and waits until it is judged.
    async fn import(&self, agent: &Value, wav: &[u8]) -> Value {
        let rule = |speaker: &str, text: &str| {
            json!({ "name": format!("{speaker}: {text}"), "description": "d", "response_type": "pass_fail",
                "agent_ids": [agent], "eval_method": "deterministic",
                "settings": { "check": "contains", "value": text, "speaker": speaker } })
        };
        for rule in [rule("AGENT", "birth"), rule("USER", "doctor"), rule("USER", "birth")] {
            self.post("/v1/create-custom-metric", rule).await;
        }
        let body = json!({
            "agent_id": agent.to_string(), "start_time_utc": "2026-01-05T08:00:00Z", "multichannel": true,
            "participants": [{ "role": "AGENT", "spoke_first": true, "name": "Desk" }, { "role": "USER" }],
            "recording_base64": format!("data:audio/wav;base64,{}", STANDARD.encode(wav)),
        });
        self.evaluate(body).await
    }

    /// Brings a production call in and waits until it is judged; returns its log.
    pub(crate) async fn evaluate(&self, body: Value) -> Value {
        let id = self.post("/v1/evaluate-call", body).await["call_id"].as_str().expect("an id").to_owned();
        let mut looks = interval(Duration::from_millis(100));
        let judged = async {
            loop {
                looks.tick().await;
                let log = self.get(&format!("/v1/retrieve-call-log/{id}")).await["call_log"].clone();
                if ["COMPLETED", "INCOMPLETED"].iter().any(|status| log["status"] == *status) {
                    return log;
                }
            }
        };
        timeout(PATIENCE, judged).await.expect("it is judged in time")
    }
}

/// Returns a recording of a call at 8 kHz, as telephone systems keep it.
fn narrowband(path: &Path) -> Vec<u8> {
    let [caller, agent] = channels(path).map(|pcm| resample_whole(&pcm, 16_000, 8000));
    let pairs: Vec<i16> = caller.iter().zip(&agent).flat_map(|(left, right)| [*left, *right]).collect();
    write_wav(8000, 2, &pairs)
}

/// Tells both models in a result of a PCMU call.
fn models_are_told(result: &Value) {
    let metadata = &result["metadata"];
    assert_eq!((&result["status"], &metadata["codec"]), (&json!("COMPLETED"), &json!("PCMU")), "{result}");
    let recognizer = &metadata["recognizer"];
    assert_eq!((&recognizer["kind"], &recognizer["model"]), (&json!("whisper"), &json!("tiny.en")), "{metadata}");
    assert!(recognizer["sha256"].as_str().is_some_and(|hash| hash.len() == 64), "{metadata}");
    let synthesizer = &metadata["synthesizer"];
    assert_eq!(
        (&synthesizer["kind"], &synthesizer["model"]),
        (&json!("piper"), &json!("en_US-joe-medium")),
        "{metadata}"
    );
    assert!(synthesizer["sha256"].as_str().is_some_and(|hash| hash.len() == 64), "{metadata}");
    let warnings = metadata["warnings"].to_string();
    assert!(!warnings.contains("narrowband") && !warnings.contains("no recognizer"), "{warnings}");
}

/// Queues a script, an interruption and a hang-up phrase to an agent at `desk`; returns the agent's id and the run.
async fn queue_words(asked: &Asked, desk: String) -> (Value, Value) {
    let agent = json!({ "name": "Desk", "sip_uri": desk });
    let agent = asked.post("/v1/add-agent", agent).await["agent_id"].clone();
    let simulation = json!({ "agent_id": agent.to_string(), "name": "Telephone", "max_concurrent": 3,
        "max_call_duration": 60, "max_call_duration_units": "seconds" });
    let simulation = asked.post("/v1/create-simulation", simulation).await["simulation_id"].clone();
    let scripted = json!([{ "match_type": "exact", "match_phrase": "date of birth", "response_type": "phrase",
        "response_value": "The fifth of May.", "occurrence_mode": "always" }]);
    // Nobody cuts into a greeting: these are of the agent's second turn, "Yes, I can help you. Please tell me your date
    // of birth."
    let keyword = |word: &str| json!({ "keyword": word, "response": "Sorry, one moment please.", "probability": 1.0 });
    let responses = ["help you", "can help", "please tell"].map(keyword);
    let keywords = json!({ "type": "keywords", "keyword_responses": responses });
    for human in [
        json!({ "scripted_responses": scripted }),
        json!({ "interruptions": keywords }),
        json!({ "hangup_phrases": ["date of birth"] }),
    ] {
        let human = with(json!({ "intent": INTENT, "gender": "male", "endpointing_delay": 1.0 }), human);
        asked.post("/v1/create-digital-human", json!({ "digital_human": human, "simulation_ids": [simulation] })).await;
    }
    let run = json!({ "simulation_id": simulation.to_string(), "seed": 7 });
    let run = asked.post("/v1/queue-simulation-run", run).await;
    (agent, run)
}

/// Checks that the words of an imported recording are recognised, and judged by side.
async fn check_import(asked: &Asked, agent: &Value, wav: &[u8]) {
    let log = asked.import(agent, wav).await;
    assert_eq!((&log["status"], &log["error_message"]), (&json!("COMPLETED"), &Value::Null));
    assert_eq!(log["metadata"]["transcript_source"], "recognized", "{log}");
    assert_eq!(log["metadata"]["recognizer"]["model"], "tiny.en", "{log}");
    let results = log["evaluations"][0]["custom_metrics"].as_array().expect("results").iter();
    let verdicts: Vec<String> = results
        .map(|one| {
            [&one["name"], &one["response_value"]].map(|text| text.as_str().unwrap_or_default().to_owned()).join(" ")
        })
        .filter(|verdict| verdict.contains(':'))
        .collect();
    for expect in ["AGENT: birth pass", "USER: doctor pass", "USER: birth fail"] {
        assert!(verdicts.iter().any(|verdict| verdict == expect), "{expect}: {verdicts:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn words_act_on_the_telephone_with_a_neural_recognizer() {
    let folder = tempfile::tempdir().expect("the folder for temporary files is writable");
    bring_models(folder.path());
    // A turn waits for its words, however busy the machine is.
    let mut engine = up(folder.path());
    engine
        .args(["--rtp-ports", "36200-36399"])
        .env("RINGER_RECOGNIZER_GRACE_MS", "5000")
        .env("RINGER_SIP_CODECS", "PCMU");
    let mut engine = Program::start(&mut engine);
    let asked = Asked { base: engine.address("http://").await };
    let ports = ["--listen", "127.0.0.1:0", "--codec", "PCMU", "--rtp-ports", "36400-36599"];
    let mut desk = Program::start(&mut ringer(&[&["agent"][..], &ports].concat()));
    let (agent, run) = queue_words(&asked, desk.address("sip:").await).await;
    let ids: Vec<&str> =
        run["simulation_result_ids"].as_array().expect("ids").iter().filter_map(Value::as_str).collect();
    let [script, keyword, phrase] = ids[..] else { panic!("{run}") };

    let result = asked.over(script).await;
    models_are_told(&result);
    let heard = asked.words_of(script, "AGENT").await;
    for words in ["for appointments", "opening hours", "date of birth"] {
        assert!(heard.contains(words), "{words}: {heard}");
    }
    let fired = asked.events(script, "scripted_response").await;
    assert!(matches!(&fired[..], [one] if one["index"] == 0 && one["match_type"] == "exact"), "{fired:?}: {heard}");
    assert!(asked.words_of(script, "USER").await.contains("the fifth of may"));
    let metrics = result["metrics"].as_array().expect("metrics");
    let words = metrics.iter().find(|metric| metric["name"] == "agent_words_per_turn_avg");
    assert!(words.is_some_and(|words| words["value"].as_f64().is_some_and(|count| count > 4.0)), "{words:?}");

    models_are_told(&asked.over(keyword).await);
    let decided = asked.events(keyword, "interruption.decided").await;
    let cut_in = decided.iter().find(|one| one["type"] == "keywords" && one["keyword"].is_string());
    assert!(cut_in.is_some(), "{decided:?}: {}", asked.words_of(keyword, "AGENT").await);
    assert!(asked.words_of(keyword, "USER").await.contains("one moment please"));

    let result = asked.over(phrase).await;
    models_are_told(&result);
    let heard = asked.words_of(phrase, "AGENT").await;
    assert_eq!(result["end_reason"], "hangup_phrase", "{heard}");
    assert!(heard.contains("date of birth"), "{heard}");

    let wav = narrowband(&folder.path().join("results").join(script).join("recording.wav"));
    check_import(&asked, &agent, &wav).await;
    desk.kill().await;
    engine.kill().await;
}
