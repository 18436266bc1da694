//! Calls of journeys, levels of behaviour, and voices.

use ringer_base::config::CODECS;
use ringer_provider::fake::FakeSynthesizer;

use super::*;

fn merge(mut base: Value, over: Value) -> Value {
    let (base_map, over) = (base.as_object_mut().expect("an object"), over.as_object().expect("an object"));
    base_map.extend(over.clone());
    base
}

/// Returns result 17 of an agent, a Digital Human and a run with these fields.
pub(super) fn rows_of(agent: Value, human: Value, run: Value) -> CallRows {
    let read = "every field has a default";
    CallRows {
        result_id: 17,
        run_id: 3,
        seed: Seed(5),
        agent: AgentDoc {
            spec: serde_json::from_value(merge(json!({ "name": "a" }), agent)).expect(read),
            ..AgentDoc::default()
        },
        human: serde_json::from_value(human).expect(read),
        overrides: serde_json::from_value(merge(json!({ "simulation_id": "1" }), run)).expect(read),
        identity: Seed(5),
        ..CallRows::default()
    }
}

/// Returns settings with a hum for every voice.
pub(super) fn placement_settings() -> PlacementSettings {
    PlacementSettings {
        behaviour: Behaviour::default(),
        recognizer_grace_ms: 150,
        codecs: CODECS.to_vec(),
        dtmf: Dtmf::Rtp,
        model: None,
        synthesizer: Arc::new(FakeSynthesizer::default()),
        noises: Arc::new(NoiseBeds::new(None)),
        sounds: Arc::default(),
    }
}

#[tokio::test]
async fn a_journey_has_one_caller_whom_the_agent_may_call() {
    let agent = json!({ "sip_uri": "sip:bob@127.0.0.1:5080" });
    let step = |body: Value| serde_json::from_value::<JourneyStep>(body).expect("fits");
    for (body, called, warnings) in [
        (json!({ "step": 2, "direction": "outbound", "unresponsive": true, "phone_number": "+15550001111" }), true, 1),
        (json!({ "step": 2, "unresponsive": true, "phone_number": "+15550001111" }), false, 3),
        (json!({ "step": 2 }), false, 1),
    ] {
        let earlier = vec!["You called.".to_owned()];
        let human = json!({ "extension": "12" });
        let rows =
            CallRows { step: Some(step(body)), identity: Seed(9), earlier, ..rows_of(agent.clone(), human, json!({})) };
        assert_eq!((rows.is_called(), rows.voice().seed), (called, Seed(9)));
        assert_eq!(rows.opens(), called);
        let prepared = rows.place(&placement_settings(), &Settings::new("unused")).await.expect("it can be placed");
        assert_eq!(
            matches!(prepared.placement.destination, ringer_engine::Destination::Incoming(_)),
            called,
            "who dials"
        );
        assert_eq!(prepared.placement.spec.extension.is_none(), called, "nothing is keyed when one is called");
        assert_eq!(prepared.placement.spec.seed, Seed(5), "every step has draws of its own");
        let warnings_of_steps: Vec<_> =
            prepared.warnings.iter().filter(|text| text.starts_with("journey_steps: ")).collect();
        assert_eq!(warnings_of_steps.len(), warnings, "{warnings_of_steps:?}");
    }
}

#[tokio::test]
async fn speeds_and_lengths_of_turns_are_those_of_the_settings() {
    let mut behaviour = Behaviour::default();
    (behaviour.speed.slow, behaviour.verbosity.high.target, behaviour.verbosity.high.maximum) = (101.0, 5, 7);
    let terms = PlacementSettings { behaviour, ..placement_settings() };
    for (speed, verbosity, rate_wpm, words) in
        [("slow", "high", 101.0, (5, 7)), ("fast", "low", 205.0, (12, 25)), ("normal", "medium", 170.0, (30, 60))]
    {
        let human = json!({ "voice_speed": speed, "verbosity": verbosity });
        let rows = rows_of(json!({ "sip_uri": "sip:bob@127.0.0.1:5080" }), human, json!({}));
        let profile = rows.profile(&terms.behaviour, Vec::new());
        assert_eq!((profile.words().target, profile.words().maximum), words);
        let prepared = rows.place(&terms, &Settings::new("unused")).await.expect("it can be placed");
        let in_force = &prepared.notes["behaviour"];
        assert_eq!(
            (&in_force["words_per_minute"], &in_force["words_per_turn"]["maximum"]),
            (&json!(rate_wpm), &json!(words.1))
        );
        assert_eq!(prepared.placement.voice.map(|voice| voice.rate_wpm), Some(rate_wpm), "{speed}");
    }
}

#[tokio::test]
async fn a_voice_that_is_not_here_is_no_fault_of_a_call() {
    let human = json!({ "language": "en", "gender": "male", "custom_voice_id": "nobody" });
    let rows = rows_of(json!({ "sip_uri": "sip:bob@127.0.0.1:5080" }), human, json!({}));
    let speech = Arc::new(ringer_provider::speech::EmbeddedSpeech::new().expect("there is a temporary folder"));
    let terms = PlacementSettings { synthesizer: speech, ..placement_settings() };
    let prepared = rows.place(&terms, &Settings::new("unused")).await.unwrap_or_else(|why| panic!("{why:?}"));
    assert_eq!(prepared.notes["voice_substituted"], "no voice nobody: flite:rms");
    let is_of_voice = |warning: &String| warning.starts_with("custom_voice_id: there is no voice nobody");
    assert!(prepared.warnings.iter().any(is_of_voice), "{:?}", prepared.warnings);
}

#[tokio::test]
async fn a_wish_that_has_no_voice_is_in_the_metadata() {
    use ringer_provider::speech::EmbeddedSpeech;
    let speech = Arc::new(EmbeddedSpeech::new().expect("there is a temporary folder"));
    let terms = PlacementSettings { synthesizer: speech, ..placement_settings() };
    for (language, accent, gender, expect) in [
        ("en", "irish", "male", Some("no irish voice for language en: flite:rms")),
        ("en", "mexican", "female", Some("no mexican voice for language en: flite:slt")),
        ("fr", "british", "female", Some("no british voice for language fr: espeak-ng:fr+f")),
        ("de", "american", "male", Some("no american voice for language de: espeak-ng:de+m")),
        ("es", "portuguese", "female", Some("no portuguese voice for language es: espeak-ng:es+f")),
        ("es", "mexican", "female", None),
        ("en", "american", "male", None),
    ] {
        let human = json!({ "language": language, "accent": accent, "gender": gender });
        let rows = rows_of(json!({ "sip_uri": "sip:bob@127.0.0.1:5080" }), human, json!({}));
        let prepared = rows.place(&terms, &Settings::new("unused")).await;
        let notes = prepared.unwrap_or_else(|why| panic!("{language} {accent}: {why:?}")).notes;
        let substituted = notes.get("voice_substituted").map(|text| text.as_str().expect("a text"));
        assert_eq!(substituted.is_some(), expect.is_some(), "{language} {accent}: {substituted:?}");
        assert!(
            substituted.unwrap_or_default().starts_with(expect.unwrap_or_default()),
            "{language} {accent}: {substituted:?}"
        );
        assert!(substituted.unwrap_or_default().ends_with(if substituted.is_some() {
            notes["voice"].as_str().expect("an id")
        } else {
            ""
        }));
    }
}
