//! Expectations of each kind, against conversations that meet them and that do not.

use ringer_model::transcript::{EntrySource, Word};
use ringer_provider::testing::{Reply, ScriptedModel};
use serde_json::{Value, json};

use super::*;
use crate::moments;
use crate::unheard::{Lack, Unheard};

/// A conversation that expectations are held against, in short words.
#[derive(Default)]
struct Talk {
    metrics: Vec<MetricValue>,
    open: Vec<OpenMetric>,
    entries: Vec<TranscriptEntry>,
    unheard: Vec<Unheard>,
    calls: Vec<PostedToolCall>,
    timeline: Value,
    ended_by: Option<EndedBy>,
    duration_ms: Option<i64>,
    faults: Vec<OwnFault>,
    untrusted: Option<&'static str>,
}

impl Talk {
    fn saying(mut self, speaker: Role, at_ms: i64, words: &str) -> Talk {
        self.entries.push(TranscriptEntry::of(speaker, at_ms, at_ms + 900, words.into(), EntrySource::Recognized));
        self
    }

    fn metric(mut self, name: &str, value: Value) -> Talk {
        self.metrics.push(MetricValue { name: name.into(), value, note: None });
        self
    }

    fn unheard(mut self) -> Talk {
        self.unheard.push(Unheard { speaker: Role::Agent, from_ms: 5000, to_ms: 5900, lack: Lack::Words });
        self
    }

    fn call(mut self, name: &str, at_ms: i64, parameters: Value) -> Talk {
        let call = json!({"name": name, "start_offset_ms": at_ms, "parameters": parameters});
        self.calls.push(serde_json::from_value(call).expect("a call"));
        self
    }

    fn fault(mut self, code: FaultCode) -> Talk {
        self.faults.push(OwnFault { code, at_ms: None, turn: None });
        self
    }

    fn events(self, timeline: Value) -> Talk {
        Talk { timeline, ..self }
    }

    fn ending(self, by: EndedBy, duration_ms: i64) -> Talk {
        Talk { ended_by: Some(by), duration_ms: Some(duration_ms), ..self }
    }

    async fn judge(&self, expected: Value, model: Option<&dyn LanguageModel>) -> ExpectationResult {
        let moments = moments(&self.timeline);
        let material =
            Material { entries: &self.entries, unheard: &self.unheard, calls: &self.calls, ..Material::default() };
        let grounds = Grounds {
            material,
            metrics: &self.metrics,
            open: &self.open,
            moments: &moments,
            ended_by: self.ended_by,
            duration_ms: self.duration_ms,
            own_faults: &self.faults,
            untrusted: self.untrusted,
        };
        let expected: Expectation = serde_json::from_value(expected).expect("an expectation");
        assert_eq!(expected.wrong(), None);
        judge_expectations(&[expected], &grounds, model).await.remove(0)
    }
}

fn talk() -> Talk {
    Talk::default()
}

async fn check(talk: Talk, expected: Value, status: &str, reason: &str, at_ms: Option<i64>) {
    let found = talk.judge(expected.clone(), None).await;
    let outcome = (found.status.as_str(), found.reason.as_deref().unwrap_or_default(), found.at_ms);
    assert_eq!(outcome, (status, reason, at_ms), "{expected}");
}

#[tokio::test]
async fn a_metric_is_within_or_it_is_not() {
    let fast = || talk().metric("p95_agent_latency", json!(1.25));
    let most = |limit: f64| json!({"metric": "p95_agent_latency", "at_most": limit});
    check(fast(), most(1.25), "passed", "", None).await;
    check(fast(), most(1.2), "failed", "p95_agent_latency is 1.25, not at most 1.2", None).await;
    let between = json!({"metric": "p95_agent_latency", "at_least": 1, "at_most": 2});
    check(fast(), between, "passed", "", None).await;
    let flag = json!({"metric": "expected_tool_calls_met", "at_least": 1});
    check(
        talk().metric("expected_tool_calls_met", json!(false)),
        flag,
        "failed",
        "expected_tool_calls_met is 0, not at least 1",
        None,
    )
    .await;
    check(talk(), most(1.0), "unknown", "p95_agent_latency has no value", None).await;
    let silent = || talk().metric("response_rate", json!(0.0));
    let why = "p95_agent_latency has no value: the agent was silent where it could answer";
    check(silent(), most(1.0), "failed", why, None).await;
    check(
        silent().fault(FaultCode::SynthesizerFailed),
        most(1.0),
        "unknown",
        &format!("{why}; this side failed: synthesizer_failed"),
        None,
    )
    .await;
    let why = "p95_agent_latency leans on a part of this side that failed: pacing";
    check(fast().fault(FaultCode::Pacing), most(1.0), "unknown", why, None).await;
    let doubt = "the sampling rate of the agent's audio is in doubt";
    let why = format!("p95_agent_latency cannot be told: {doubt}");
    check(fast().fault(FaultCode::RateMismatch), most(1.0), "unknown", &why, None).await;
    // Words that were not heard change no time.
    check(fast().fault(FaultCode::RecognizerLate), most(2.0), "passed", "", None).await;
    let untrusted = Talk { untrusted: Some("concealed_ms is 900"), ..fast() };
    check(untrusted, most(2.0), "unknown", "the measurement is not trusted: concealed_ms is 900", None).await;
    let words = json!({"metric": "agent_wpm", "at_most": 200});
    let why = "agent_wpm leans on a part of this side that failed: speech_unclear";
    check(talk().metric("agent_wpm", json!(150)).fault(FaultCode::SpeechUnclear), words, "unknown", why, None).await;
    let label = json!({"metric": "sentiment_label", "at_most": 1});
    check(talk().metric("sentiment_label", json!("neutral")), label, "unknown", "sentiment_label is no number", None)
        .await;
}

#[tokio::test]
async fn words_are_heard_or_missing_or_not_known() {
    let one = || talk().saying(Role::Agent, 300, "Press ONE, please.").saying(Role::User, 2000, "Hello there.");
    check(one(), json!({"heard": "press one"}), "passed", "", Some(300)).await;
    check(one(), json!({"heard": "press"}), "passed", "", Some(300)).await;
    check(one(), json!({"heard": "pre"}), "failed", "the agent did not say 'pre'", None).await;
    check(one(), json!({"heard": "pre.s", "as": "regex"}), "passed", "", Some(300)).await;
    check(one(), json!({"heard": "hello"}), "failed", "the agent did not say 'hello'", None).await;
    check(one(), json!({"heard": "hello", "speaker": "USER"}), "passed", "", Some(2000)).await;
    check(one(), json!({"not_heard": "hello"}), "passed", "", None).await;
    check(one(), json!({"not_heard": "please"}), "failed", "the agent said 'please'", Some(300)).await;
    // Found evidence decides; missing evidence may be in turns that were not heard.
    check(one().unheard(), json!({"heard": "one"}), "passed", "", Some(300)).await;
    check(one().unheard(), json!({"not_heard": "one"}), "failed", "the agent said 'one'", Some(300)).await;
    let lacking = "words of 1 turn of the agent are not known";
    check(one().unheard(), json!({"heard": "two"}), "unknown", lacking, None).await;
    check(one().unheard(), json!({"not_heard": "two"}), "unknown", lacking, None).await;
    check(talk(), json!({"heard": "two"}), "unknown", "no words of the agent are known", None).await;
    check(talk(), json!({"not_heard": "two"}), "unknown", "no words of the agent are known", None).await;
    let silent = || talk().metric("response_rate", json!(0.0)).saying(Role::User, 0, "Hello?");
    check(silent(), json!({"heard": "two"}), "failed", "the agent was silent where it could answer", None).await;
    check(silent(), json!({"not_heard": "two"}), "unknown", "no words of the agent are known", None).await;
    let why = "the agent did not say 'two'; this side failed: model_failed";
    check(one().fault(FaultCode::ModelFailed), json!({"heard": "two"}), "unknown", why, None).await;
    let why = "the agent did not say 'two'; the sampling rate of the agent's audio is in doubt";
    check(one().fault(FaultCode::RateMismatch), json!({"heard": "two"}), "unknown", why, None).await;
}

#[tokio::test]
async fn words_that_are_missing_beside_doubtful_ones_cannot_be_told() {
    let named = || {
        let mut talk =
            talk().saying(Role::Agent, 300, "Welcome to G.V.R.S. to run.").saying(Role::Agent, 4000, "Bye now.");
        let words = [("Welcome", 96), ("to", 93), ("G.V.R.S.", 17), ("to", 32), ("run.", 25)];
        talk.entries[0].words = (0..)
            .zip(words)
            .map(|(at, (word, hundredths))| Word {
                word: word.into(),
                start_offset_ms: 300 + at * 300,
                end_offset_ms: 600 + at * 300,
                confidence: Some(f64::from(hundredths) / 100.0),
            })
            .collect();
        talk
    };
    let doubt = "words were heard with doubt: G.V.R.S. 0.17, to 0.32, run. 0.25";
    let why = |wanted: &str| format!("the agent may have said '{wanted}' where {doubt}");
    check(named(), json!({"heard": "Giovanni's"}), "unknown", &why("Giovanni's"), Some(900)).await;
    check(named(), json!({"heard": "welcome to Giovanni's"}), "unknown", &why("welcome to Giovanni's"), Some(900))
        .await;
    check(named(), json!({"heard": "gio.*", "as": "regex"}), "unknown", &why("gio.*"), Some(900)).await;
    check(named(), json!({"heard": "welcome"}), "passed", "", Some(300)).await;
    check(named(), json!({"not_heard": "Giovanni's"}), "passed", "", None).await;
    let long = "all of our tables are taken until the end of next week";
    check(named(), json!({"heard": long}), "failed", &format!("the agent did not say '{long}'"), None).await;
    let mut sure = named();
    sure.entries[0].words.iter_mut().for_each(|word| word.confidence = Some(0.9));
    check(sure, json!({"heard": "Giovanni's"}), "failed", "the agent did not say 'Giovanni's'", None).await;
}

#[tokio::test]
async fn tools_are_called_with_what_was_wanted() {
    let booked = || talk().call("book", 4000, json!({"day": " tuesday ", "n": 2, "who": {"name": "Ann", "age": 4}}));
    check(booked(), json!({"tool": "book"}), "passed", "", Some(4000)).await;
    let args = json!({"tool": "book", "args": {"day": "tuesday", "n": 2.0, "who": {"name": "Ann"}}});
    check(booked(), args, "passed", "", Some(4000)).await;
    let why = "book was not called with these arguments; 1 call had other arguments: day is the text \" tuesday \", not the text \"monday\"";
    check(booked(), json!({"tool": "book", "args": {"day": "monday"}}), "failed", why, None).await;
    let unquoted = json!({"tool": "book", "args": {"n": 2}, "args_as_written": {"/n": "2"}});
    check(talk().call("book", 1, json!({"n": "2"})), unquoted, "passed", "", Some(1)).await;
    check(talk(), json!({"tool": "book"}), "failed", "book was not called", None).await;
    let idle = "the agent did nothing, so that this decides nothing";
    check(talk(), json!({"tool": "book", "times": 0}), "unknown", idle, None).await;
    check(talk().saying(Role::Agent, 0, "No."), json!({"tool": "book", "times": 0}), "passed", "", None).await;
    check(talk(), json!({"event": "barge_in", "at_most": 0}), "unknown", idle, None).await;
    let turns = |count: i64| talk().metric("num_turns", json!(count));
    check(turns(0), json!({"metric": "num_turns", "at_most": 5}), "unknown", idle, None).await;
    check(turns(1), json!({"metric": "num_turns", "at_most": 5}), "passed", "", None).await;
    check(booked(), json!({"tool": "book", "times": 2}), "failed", "book was called 1 times, not 2 times", Some(4000))
        .await;
    check(booked().call("book", 9, json!({})), json!({"tool": "book", "times": 2}), "passed", "", Some(9)).await;
    let why = "book was not called; this side failed: recognizer_late";
    check(talk().fault(FaultCode::RecognizerLate), json!({"tool": "book"}), "unknown", why, None).await;
    check(booked().fault(FaultCode::RecognizerLate), json!({"tool": "book"}), "passed", "", Some(4000)).await;
    let missing = "the platform's report on the tool calls did not come";
    let why = format!("book was not called; {missing}");
    check(talk().fault(FaultCode::ReportMissing), json!({"tool": "book"}), "unknown", &why, None).await;
    let silent = talk().saying(Role::Agent, 0, "No.").fault(FaultCode::ReportMissing);
    check(silent, json!({"tool": "book", "times": 0}), "unknown", missing, None).await;
    check(booked().fault(FaultCode::ReportMissing), json!({"tool": "book"}), "passed", "", Some(4000)).await;
    let mut kept = vec![talk().judge(json!({"tool": "book"}), None).await];
    rejudge_tools(&mut kept, &booked().calls, &[], &[]);
    assert_eq!((kept[0].status, &kept[0].measured), (Status::Passed, &json!(1)), "calls may come late");
}

/// This side's words, in milliseconds.
fn own_words(from_ms: i64, to_ms: i64) -> [Value; 2] {
    [(from_ms, "speech.started"), (to_ms, "speech.ended")].map(|(ms, event)| {
        let data = json!({"utterance_id": from_ms, "kind": "turn", "text": "word"});
        json!({"seq": ms, "sample": ms * 16, "event": event, "side": "dh", "data": data})
    })
}

#[tokio::test]
async fn tools_are_called_in_time_after_this_sides_words() {
    let timeline = Value::from([own_words(1000, 2000), own_words(5000, 6000)].concat());
    let booked = |at_ms: i64| talk().events(timeline.clone()).call("book", at_ms, json!({"day": "monday"}));
    let within = |ms: i64| json!({"tool": "book", "within_ms": ms});
    check(booked(3500), within(1500), "passed", "", Some(3500)).await;
    let why = "book was not called within 1499 ms but after 1500 ms";
    check(booked(3500), within(1499), "failed", why, Some(3500)).await;
    // The words before the call count, also while they last, and connect where there are none.
    check(booked(6100), within(100), "passed", "", Some(6100)).await;
    check(booked(1500), within(0), "passed", "", Some(1500)).await;
    check(booked(900), within(900), "passed", "", Some(900)).await;
    check(booked(900), within(899), "failed", "book was not called within 899 ms but after 900 ms", Some(900)).await;
    check(talk().events(timeline.clone()), within(900), "failed", "book was not called within 900 ms", None).await;
    let twice = || booked(2500).call("book", 8000, json!({}));
    let exactly = |times: i64| json!({"tool": "book", "times": times, "within_ms": 1000});
    check(twice(), exactly(1), "passed", "", Some(2500)).await;
    let why = "book was called within 1000 ms 1 times, not 2 times";
    check(twice(), exactly(2), "failed", why, Some(2500)).await;
    check(booked(8000), exactly(0), "passed", "", Some(8000)).await;
    let other = json!({"tool": "book", "args": {"day": "friday"}, "within_ms": 9000});
    let why = "book was not called with these arguments within 9000 ms; 1 call had other arguments: day is the text \"monday\", not the text \"friday\"";
    check(booked(2500), other, "failed", why, None).await;
    let why = "book was not called within 10 ms but after 1500 ms; this side failed: pacing";
    check(booked(3500).fault(FaultCode::Pacing), within(10), "unknown", why, Some(3500)).await;
    let mut kept = vec![talk().judge(within(1500), None).await];
    rejudge_tools(&mut kept, &booked(3500).calls, &[], &moments(&timeline));
    assert_eq!((kept[0].status, &kept[0].measured), (Status::Passed, &json!(1)), "calls may come late");
    rejudge_tools(&mut kept, &booked(3600).calls, &[], &moments(&timeline));
    assert_eq!((kept[0].status, &kept[0].measured), (Status::Failed, &json!(0)), "later ones count again");
}

#[tokio::test]
async fn what_lacks_something_is_not_told() {
    let of = |note: &str, value: f64| {
        let mut talk = talk();
        talk.metrics.push(MetricValue { name: "s".into(), value: json!(value), note: Some(note.into()) });
        talk
    };
    let least = || json!({"metric": "s", "at_least": 1});
    let why = "s cannot be told: the agent's words came without punctuation, so that turns stand for sentences";
    // Both a stop and a pause between two sentences can be taken for the other.
    for value in [0.5, 1.0] {
        check(of("no_punctuation", value), least(), "unknown", why, None).await;
    }
    let why = "s cannot be told: no language model judged the words";
    check(of("no_language_model", 1.0), least(), "unknown", why, None).await;
}

#[tokio::test]
async fn a_rate_with_unknown_stops_is_told_where_they_change_nothing() {
    let talk = |value: Option<f64>, range: Option<[f64; 2]>| {
        let talk = value.into_iter().fold(talk(), |talk, value| talk.metric("yield_rate", json!(value)));
        Talk { open: vec![OpenMetric { name: "yield_rate", range, reason: "nobody knows".into() }], ..talk }
    };
    let why = "yield_rate cannot be told: nobody knows";
    for (value, range, bound, status, reason) in [
        (None, None, json!({"at_least": 1}), "unknown", Some(why)),
        (
            Some(0.5),
            Some([0.5, 0.75]),
            json!({"at_least": 1}),
            "failed",
            Some("yield_rate is 0.5 to 0.75, not at least 1"),
        ),
        (Some(0.5), Some([0.5, 0.75]), json!({"at_least": 0.6}), "unknown", Some(why)),
        (Some(0.5), Some([0.5, 0.75]), json!({"at_least": 0.5}), "passed", None),
        (
            Some(0.5),
            Some([0.5, 0.75]),
            json!({"at_most": 0.4}),
            "failed",
            Some("yield_rate is 0.5 to 0.75, not at most 0.4"),
        ),
    ] {
        let mut expected = bound;
        expected["metric"] = json!("yield_rate");
        let found = talk(value, range).judge(expected.clone(), None).await;
        assert_eq!((found.status, found.reason.as_deref()), (status.into(), reason), "{expected}");
    }
    // The agent is not silent where it only cannot be told whether it yielded.
    let mut kept = vec![talk(None, None).judge(json!({"metric": "yield_rate", "at_least": 1}), None).await];
    let metrics = [MetricValue { name: "yield_rate".into(), value: json!(1.0), note: None }];
    rejudge_metrics(&mut kept, &["other"], &Grounds { metrics: &metrics, ..Grounds::default() });
    assert_eq!(kept[0].status, Status::Undecided);
    rejudge_metrics(&mut kept, &["yield_rate"], &Grounds { metrics: &metrics, ..Grounds::default() });
    assert_eq!(kept[0].status, Status::Passed);
}

#[tokio::test]
async fn a_side_ends_the_conversation_in_time() {
    let ended = || talk().ending(EndedBy::Agent, 30_500);
    check(ended(), json!({"ended_by": "agent"}), "passed", "", Some(30_500)).await;
    check(ended(), json!({"ended_by": "agent", "within_s": 30.5}), "passed", "", Some(30_500)).await;
    let why = "it ended after 30.5 s, not within 30";
    check(ended(), json!({"ended_by": "agent", "within_s": 30}), "failed", why, Some(30_500)).await;
    check(ended(), json!({"ended_by": "user"}), "failed", "the agent ended it", Some(30_500)).await;
    check(talk(), json!({"ended_by": "user"}), "unknown", "it is not known who ended the conversation", None).await;
    let why = "the user ended it; this side failed: recognizer_busy";
    let late = talk().ending(EndedBy::User, 1000).fault(FaultCode::RecognizerBusy);
    check(late, json!({"ended_by": "agent"}), "unknown", why, Some(1000)).await;
}

#[tokio::test]
async fn digits_and_events_are_those_of_the_timeline() {
    let at = |ms: i64, event: &str, side: &str, data: Value| json!({"seq": ms, "sample": ms * 16, "event": event, "side": side, "data": data});
    let keyed = || {
        talk().events(json!([
            at(100, "dtmf_sent", "dh", json!({"digits": "9"})),
            at(200, "dtmf_received", "agent", json!({"digits": "1"})),
            at(300, "dtmf_received", "agent", json!({"digits": "2"})),
            at(400, "dtmf_received", "agent", json!({"digits": "#"})),
            at(500, "barge_in", "agent", json!({"by": "agent", "overlap_ms": 10, "stop_ms": 10})),
        ]))
    };
    check(keyed(), json!({"dtmf_received": "2#"}), "passed", "", Some(300)).await;
    check(keyed(), json!({"dtmf_received": "1, 2"}), "passed", "", Some(200)).await;
    check(keyed(), json!({"dtmf_received": "91"}), "failed", "the digits '91' did not come in this order", None).await;
    check(keyed(), json!({"event": "barge_in"}), "passed", "", Some(500)).await;
    check(
        keyed(),
        json!({"event": "barge_in", "at_most": 0}),
        "failed",
        "barge_in came 1 times, not at most 0",
        Some(500),
    )
    .await;
    check(keyed(), json!({"event": "transfer"}), "failed", "transfer came 0 times, not at least 1", None).await;
    check(keyed(), json!({"event": "transfer", "at_most": 0}), "passed", "", None).await;
}

#[tokio::test]
async fn a_meaning_is_judged_or_not_known() {
    let talk = || talk().saying(Role::Agent, 0, "See you on Tuesday.");
    let expected = json!({"meaning": "A day is named."});
    for (replies, status, reason) in [
        (Some(&[r#"{"answer": "yes"}"#][..]), "passed", None),
        (Some(&[r#"{"answer": "no", "reasoning": "No day."}"#]), "failed", Some("No day.")),
        (Some(&[r#"{"answer": "no"}"#]), "failed", Some("the judge says no")),
        (Some(&["?", "?", "?"]), "unknown", Some("Judge answer could not be read")),
        (Some(&[]), "unknown", Some("scripted failure")),
        (None, "unknown", Some(NO_MODEL)),
    ] {
        let model = replies.map(|all| ScriptedModel::new(all.iter().map(|reply| Reply::says(&[reply])).collect()));
        let found = talk().judge(expected.clone(), model.as_ref().map(|model| model as &dyn LanguageModel)).await;
        assert_eq!((found.status.as_str(), found.reason.as_deref()), (status, reason), "{replies:?}");
    }
    let model = ScriptedModel::new(vec![Reply::says(&[r#"{"answer": "no"}"#])]);
    let found = talk().fault(FaultCode::RecognizerLate).judge(expected.clone(), Some(&model)).await;
    assert_eq!(found.status, Status::Undecided, "the caller may have been led astray");
    let model = ScriptedModel::new(vec![Reply::says(&[r#"{"answer": "yes"}"#])]);
    let found = Talk::default().judge(expected, Some(&model)).await;
    assert_eq!(found.status, Status::Undecided, "nobody is asked about nothing");
}

#[test]
fn faults_of_this_side_are_told_with_their_turn() {
    let turn = |ms: i64, missing: Value| {
        let data = json!({"text": "", "from_sample": ms * 16, "end_sample": (ms + 900) * 16, "text_missing": missing});
        json!({"seq": ms, "sample": (ms + 1200) * 16, "event": "turn.ended", "side": "agent", "data": data})
    };
    let note =
        |ms: i64, event: &str| json!({"seq": ms, "sample": ms * 16, "event": event, "side": "engine", "data": {}});
    let timeline = json!([
        turn(100, Value::Null),
        turn(2000, json!("recognizer_late")),
        turn(4000, json!("not_understood")),
        turn(6000, json!("no_recognizer")),
        turn(8000, json!("recognizer_unreachable")),
        note(10_000, "late_first_token"),
        note(11_000, "fallback_speaker"),
        note(12_000, "synthesizer_missing"),
    ]);
    let described = |faults: Vec<OwnFault>| -> Vec<(String, Option<i64>, Option<i64>)> {
        faults.iter().map(|fault| (fault.code.as_str().to_owned(), fault.at_ms, fault.turn)).collect()
    };
    let of = |code: &str, at_ms, turn| (code.to_owned(), at_ms, turn);
    let expect = vec![
        of("recognizer_late", Some(2000), Some(2)),
        of("speech_unclear", Some(4000), Some(3)),
        of("recognizer_failed", Some(8000), Some(5)),
        of("model_failed", Some(11_000), None),
        of("synthesizer_failed", Some(12_000), None),
    ];
    assert_eq!(described(own_faults(&moments(&timeline), false, None)), expect);
    for (substituted, untrusted, expect) in [
        (true, None, vec![of("voice_substituted", None, None)]),
        (false, Some("pacing_p99_ms is 9, more than 5"), vec![of("pacing", None, None)]),
        (false, Some("the clock slipped: 5 frames in a row"), vec![of("pacing", None, None)]),
        (false, Some("the recording lacks 2 frames"), vec![of("recording", None, None)]),
        (false, Some("concealed_ms is 900, more than 1 % of the call"), vec![]),
    ] {
        assert_eq!(described(own_faults(&[], substituted, untrusted)), expect, "{untrusted:?}");
    }
}
