//! Behaviour of a caller: opening, interruptions, scripted responses, noise. Turns the fields of a Digital Human into
//! numbers of a call.

use ringer_base::config::Behaviour;
use ringer_human::{Facts, phrases};
use ringer_media::call::{
    Interruption, KeywordResponse, Matching, NoiseSpec, Opening, ProbeRates, Response, ScriptRule,
};
use ringer_media::frame::RATE_HZ;
use ringer_media::level::to_speech_level;
use ringer_media::noise::Kind;
use ringer_model::digital_human::{BackgroundNoise, DigitalHumanSpec, SpeaksFirstMode};
use ringer_model::error_code::ErrorCode;
use ringer_model::playback::{Interruptions, MatchType, OccurrenceMode, ResponseType, ScriptedResponse};
use serde_json::{Value, json};

use super::steps::digits_of;
use super::{CallRows, Obstacle, PlacementSettings, Settings, ms};

/// Returns who speaks first, and the words. `opens`: the Digital Human speaks first unless configured otherwise.
pub(super) fn opening(human: &DigitalHumanSpec, opens: bool, traits: &Facts<'_>, behaviour: &Behaviour) -> Opening {
    let greeting = || Opening::Say(phrases::phrases(human.language.as_str()).greeting.to_owned());
    let Some(config) = &human.speaks_first_config else {
        let listens = Opening::Listen { open_after_ms: Some(behaviour.open_after_ms) };
        return if opens { greeting() } else { listens };
    };
    match (config.speaks_first, config.mode, &config.message) {
        (false, ..) => Opening::Listen { open_after_ms: None },
        (true, Some(SpeaksFirstMode::Custom), Some(message)) => Opening::Say(traits.fill(message)),
        (true, ..) => Opening::Made,
    }
}

/// Returns the rule by which the caller interrupts the agent.
pub(super) fn interruption(
    human: &DigitalHumanSpec,
    traits: &Facts<'_>,
    behaviour: &Behaviour,
    has_model: bool,
    warnings: &mut Vec<String>,
) -> Interruption {
    let levels = &behaviour.interruption;
    let (from_ms, to_ms) = (levels.from_ms, levels.to_ms);
    let level = |name, probability| Interruption::Level { name, probability, from_ms, to_ms, at_most: None };
    match &human.interruptions {
        None | Some(Interruptions::None {}) => Interruption::None,
        Some(Interruptions::Low {}) => level("low", levels.low),
        Some(Interruptions::Medium {}) => level("medium", levels.medium),
        Some(Interruptions::High {}) => level("high", levels.high),
        Some(Interruptions::Keywords { keyword_responses }) => {
            let keyword = |of: &ringer_model::playback::KeywordResponse| KeywordResponse {
                keyword: traits.fill(&of.keyword),
                response: traits.fill(&of.response),
                probability: of.probability,
            };
            Interruption::Keywords(keyword_responses.iter().map(keyword).collect())
        }
        Some(Interruptions::Timed { after_ms, count }) => {
            let (at_ms, at_most) = (u32::try_from(*after_ms).unwrap_or(0), u32::try_from(*count).ok());
            Interruption::Level { name: "timed", probability: 1.0, from_ms: at_ms, to_ms: at_ms, at_most }
        }
        Some(Interruptions::Contextual { contextual_prompt }) if has_model => {
            Interruption::Contextual { prompt: traits.fill(contextual_prompt) }
        }
        Some(Interruptions::Contextual { .. }) => {
            warnings.push("contextual_interruptions_need_language_model".to_owned());
            Interruption::None
        }
    }
}

/// Returns the numbers of an interruption, for the result.
pub(super) fn interruption_in_force(interruption: &Interruption) -> Value {
    match interruption {
        Interruption::None => json!({ "type": "none" }),
        Interruption::Level { name, probability, from_ms, to_ms, .. } => {
            json!({ "type": name, "probability": probability, "from_ms": from_ms, "to_ms": to_ms })
        }
        Interruption::Keywords(keywords) => json!({ "type": "keywords", "count": keywords.len() }),
        Interruption::Contextual { .. } => json!({ "type": "contextual" }),
    }
}

/// Returns the rates at which the Digital Human probes while the agent speaks.
pub(super) fn probes(human: &DigitalHumanSpec) -> ProbeRates {
    let Some(duplex) = &human.duplex else { return ProbeRates::default() };
    ProbeRates {
        backchannel_per_minute: duplex.backchannel_per_minute,
        vocal_tic_per_minute: duplex.vocal_tic_per_minute,
        non_directed_per_minute: duplex.non_directed_per_minute,
    }
}

/// Returns the scripted answers; recordings are fetched first.
pub(super) async fn script(
    rows: &CallRows,
    traits: &Facts<'_>,
    terms: &PlacementSettings,
    settings: &Settings,
    warnings: &mut Vec<String>,
) -> Result<Vec<ScriptRule>, Obstacle> {
    let mut rules = Vec::new();
    for (index, rule) in rows.human.scripted_responses.iter().enumerate() {
        let response = match response(rule, traits) {
            Some(response) => response,
            None => {
                let url = rule.scripted_response_audio_snippet_url.as_deref().unwrap_or_default();
                let place = format!("scripted_responses[{index}]");
                recording(url, &place, rows, terms, settings, warnings).await?
            }
        };
        rules.push(rule_of(index, rule, response, traits));
    }
    Ok(rules)
}

/// Returns the rule of one scripted response, with the traits filled in.
pub(super) fn rule_of(index: usize, rule: &ScriptedResponse, response: Response, traits: &Facts<'_>) -> ScriptRule {
    let always = rule.occurrence_mode == OccurrenceMode::Always;
    let count = rule.occurrence_n.filter(|_| !always).map(|count| u32::try_from(count).unwrap_or(u32::MAX));
    let matching = if rule.match_type == MatchType::Exact { Matching::Exact } else { Matching::Context };
    let phrase = traits.fill(&rule.match_phrase);
    ScriptRule { index, matching, phrase, response, first_n: count }
}

/// Returns the response of a scripted rule; `None` for one that plays a recording.
pub(super) fn response(rule: &ScriptedResponse, traits: &Facts<'_>) -> Option<Response> {
    let words = || rule.response_value.as_ref().map(|value| traits.fill(value));
    Some(match rule.response_type {
        ResponseType::Phrase => Response::Phrase(words().unwrap_or_default()),
        ResponseType::Silence => {
            let then = words().filter(|words| !words.trim().is_empty());
            Response::Silence { duration_ms: rule.silence_duration.map(ms), then }
        }
        ResponseType::Dtmf => Response::Dtmf(digits_of(&words().unwrap_or_default())),
        ResponseType::Audio => return None,
    })
}

/// Returns the background noise, when there is any; its loop may have to be made, or fetched, first.
pub(super) async fn noise(
    rows: &CallRows,
    terms: &PlacementSettings,
    settings: &Settings,
    warnings: &mut Vec<String>,
) -> Result<Option<NoiseSpec>, Obstacle> {
    let (human, seed) = (&rows.human, rows.seed);
    let snr_db = terms.behaviour.noise_snr_db(human.background_noise_volume);
    let noises = terms.noises.clone();
    let bed = if human.background_noise == BackgroundNoise::Custom {
        let url = human.custom_background_noise_url.as_deref().unwrap_or_default();
        let sound = terms.sounds.get(rows.run_id, url, settings).await;
        let sound = sound.map_err(|failure| Obstacle::new(ErrorCode::CustomNoiseFailed, failure.message))?;
        warnings.extend(sound.unread.iter().map(|unread| format!("background_noise: {unread}")));
        tokio::task::spawn_blocking(move || noises.custom(&sound.pcm, snr_db, &mut seed.stream("noise"))).await
    } else if let Some(kind) = Kind::from_name(human.background_noise.as_str()) {
        let language = rows.language();
        let spoken = move || noises.with_voices(kind, &language, snr_db, &mut seed.stream("noise"));
        tokio::task::spawn_blocking(spoken).await.map(|(bed, warning)| {
            warnings.extend(warning);
            bed
        })
    } else {
        return Ok(None);
    };
    bed.map(Some).map_err(|error| Obstacle::new(ErrorCode::InternalError, error.to_string()))
}

/// Returns the recording of a scripted answer, brought to the level of speech; `place`: the field that names it.
async fn recording(
    url: &str,
    place: &str,
    rows: &CallRows,
    terms: &PlacementSettings,
    settings: &Settings,
    warnings: &mut Vec<String>,
) -> Result<Response, Obstacle> {
    let sound = terms.sounds.get(rows.run_id, url, settings).await;
    let sound = sound.map_err(|failure| Obstacle::new(ErrorCode::CustomNoiseFailed, failure.message))?;
    warnings.extend(sound.unread.iter().map(|unread| format!("{place}: {unread}")));
    let levelled = tokio::task::spawn_blocking(move || {
        let mut pcm = sound.pcm.to_vec();
        to_speech_level(&mut pcm, RATE_HZ);
        Response::Audio(pcm.into())
    });
    levelled.await.map_err(|error| Obstacle::new(ErrorCode::InternalError, error.to_string()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ringer_base::testing::WebServer;
    use ringer_media::clip::write_wav;
    use ringer_media::level::{active_level_dbov, rms_dbov};
    use ringer_provider::testing::ScriptedModel;

    use super::super::tests::{placement_settings, rows_of};
    use super::*;

    fn human(body: Value) -> DigitalHumanSpec {
        serde_json::from_value(body).expect("a Digital Human")
    }

    #[test]
    fn who_speaks_first() {
        let say = |text: &str| Opening::Say(text.to_owned());
        let first = |mode: &str| json!({"speaks_first": true, "mode": mode, "message": "I am {{name}}, {{x}}."});
        for (config, opens, expect) in [
            (json!(null), false, Opening::Listen { open_after_ms: Some(10_000) }),
            (json!(null), true, say("Hello.")),
            (json!({"speaks_first": false}), true, Opening::Listen { open_after_ms: None }),
            (first("custom"), false, say("I am Ann, {{x}}.")),
            (first("ai_generated"), false, Opening::Made),
        ] {
            let human = human(json!({ "speaks_first_config": config }));
            let traits = [("name".to_owned(), "Ann".to_owned())];
            assert_eq!(opening(&human, opens, &Facts::of(&traits), &Behaviour::default()), expect, "{config}");
        }
    }

    #[test]
    fn levels_and_words_that_cut_in() {
        let level =
            |name, probability| Interruption::Level { name, probability, from_ms: 800, to_ms: 3000, at_most: None };
        let timed =
            Interruption::Level { name: "timed", probability: 1.0, from_ms: 1200, to_ms: 1200, at_most: Some(1) };
        let keyword = KeywordResponse { keyword: "fee".into(), response: "No!".into(), probability: 1.0 };
        let contextual = json!({"type": "contextual", "contextual_prompt": "it repeats itself"});
        let traits = [("name".to_owned(), "Ann".to_owned())];
        let named = KeywordResponse { keyword: "Ann".into(), response: "I am Ann, {{x}}.".into(), probability: 1.0 };
        for (given, has_model, expect, warned) in [
            (json!(null), false, Interruption::None, 0),
            (json!({"type": "none"}), false, Interruption::None, 0),
            (json!({"type": "low"}), false, level("low", 0.10), 0),
            (json!({"type": "medium"}), false, level("medium", 0.25), 0),
            (json!({"type": "high"}), false, level("high", 0.50), 0),
            (json!({"type": "timed", "after_ms": 1200}), false, timed, 0),
            (
                json!({"type": "keywords", "keyword_responses": [{"keyword": "fee", "response": "No!"}]}),
                false,
                Interruption::Keywords(vec![keyword]),
                0,
            ),
            (
                json!({"type": "keywords", "keyword_responses": [{"keyword": "{{name}}", "response": "I am {{name}}, {{x}}."}]}),
                false,
                Interruption::Keywords(vec![named]),
                0,
            ),
            (
                json!({"type": "contextual", "contextual_prompt": "it calls {{name}}"}),
                true,
                Interruption::Contextual { prompt: "it calls Ann".into() },
                0,
            ),
            (contextual.clone(), true, Interruption::Contextual { prompt: "it repeats itself".into() }, 0),
            (contextual, false, Interruption::None, 1),
        ] {
            let mut warnings = Vec::new();
            let human = human(json!({ "interruptions": given }));
            let found = interruption(&human, &Facts::of(&traits), &Behaviour::default(), has_model, &mut warnings);
            assert_eq!(found, expect, "{given}");
            assert_eq!(warnings, vec!["contextual_interruptions_need_language_model"; warned], "{given}");
        }
    }

    #[tokio::test]
    async fn what_does_not_act_without_a_model_is_told_in_the_result() {
        let agent = || json!({"sip_uri": "sip:bob@127.0.0.1:5080"});
        let asked = json!({"interruptions": {"type": "contextual", "contextual_prompt": "it repeats itself"}});
        let model: Arc<dyn ringer_provider::LanguageModel> = Arc::new(ScriptedModel::new(Vec::new()));
        for (model, expect, meaning_ms) in
            [(None, &["contextual_interruptions_need_language_model"][..], None), (Some(model), &[][..], Some(1500))]
        {
            let terms = PlacementSettings { model, ..placement_settings() };
            let prepared = rows_of(agent(), asked.clone(), json!({})).place(&terms, &Settings::new("unused")).await;
            let prepared = prepared.unwrap_or_else(|obstacle| panic!("{}: {}", obstacle.code, obstacle.message));
            assert_eq!(prepared.warnings, expect);
            assert_eq!(prepared.placement.spec.meaning_ms, meaning_ms, "who tells meanings");
            assert_eq!(prepared.notes["channel_layout"], json!({"0": "digital_human", "1": "agent"}));
        }
    }

    #[tokio::test]
    async fn the_first_call_with_a_noise_is_told_that_its_voices_say_no_words() {
        let agent = || json!({"sip_uri": "sip:bob@127.0.0.1:5080"});
        let human = json!({"background_noise": "talking", "language": "de"});
        let (terms, settings) = (placement_settings(), Settings::new("unused"));
        let place = || rows_of(agent(), human.clone(), json!({})).place(&terms, &settings);
        let first = place().await.unwrap_or_else(|obstacle| panic!("{}: {}", obstacle.code, obstacle.message));
        assert!(matches!(&first.warnings[..], [one] if one.starts_with("background_noise: ")), "{:?}", first.warnings);
        terms.noises.prepare(Kind::Talking, "de", &*terms.synthesizer).await.expect("it hums");
        let later = place().await.unwrap_or_else(|obstacle| panic!("{}: {}", obstacle.code, obstacle.message));
        assert_eq!(later.warnings, [""; 0]);
        let [first, later] =
            [first, later].map(|prepared| prepared.placement.spec.noise.expect("there is noise").loop_pcm);
        assert_ne!(first, later, "an imitation, then words");
    }

    #[tokio::test]
    async fn a_digital_human_probes_as_often_as_it_says() {
        let (terms, settings) =
            (placement_settings(), Settings { allow_private_agents: true, ..Settings::new("/tmp") });
        let asked =
            json!({"backchannel_per_minute": 20.0, "vocal_tic_per_minute": 2.5, "non_directed_per_minute": 0.5});
        let rates = |backchannel_per_minute, vocal_tic_per_minute, non_directed_per_minute| ProbeRates {
            backchannel_per_minute,
            vocal_tic_per_minute,
            non_directed_per_minute,
        };
        for (duplex, expect) in [
            (json!(null), rates(0.0, 0.0, 0.0)),
            (json!({"vocal_tic_per_minute": 4}), rates(0.0, 4.0, 0.0)),
            (asked.clone(), rates(20.0, 2.5, 0.5)),
        ] {
            let agent = json!({"sip_uri": "sip:bob@127.0.0.1:5080"});
            let rows = rows_of(agent, json!({"duplex": duplex, "language": "de"}), json!({}));
            let prepared = rows.place(&terms, &settings).await;
            let prepared = prepared.unwrap_or_else(|obstacle| panic!("{}: {}", obstacle.code, obstacle.message));
            assert_eq!(prepared.placement.spec.probes, expect, "{duplex}");
            assert!(prepared.warnings.is_empty(), "{:?}", prepared.warnings);
            assert_eq!(prepared.placement.spec.phrases.backchannel[0], "Mhm.");
            let in_force = &prepared.notes["behaviour"]["duplex"];
            assert_eq!(
                in_force["vocal_tic_per_minute"],
                duplex["vocal_tic_per_minute"].as_f64().map_or(json!(null), |x| json!(x))
            );
        }
    }

    /// Returns two seconds of a tone at 8 kHz.
    fn tone() -> Vec<u8> {
        let wave = |n: i32| (3000.0 * (f64::from(n) * 0.3).sin()) as i16;
        write_wav(8000, 1, &(0..16_000).map(wave).collect::<Vec<_>>())
    }

    async fn web() -> WebServer {
        let answer = |path: &str| match path {
            "/a.wav" => WebServer::file(&tone()),
            "/half.wav" => WebServer::file(&tone()[..44 + 16_000]),
            "/text" => WebServer::file(b"no audio"),
            _ => b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec(),
        };
        WebServer::start(answer).await.expect("loopback has a free port")
    }

    #[test]
    fn a_caller_hesitates_as_the_settings_say() {
        let mut terms = placement_settings();
        terms.behaviour.fluency.beginner.fillers_per_100_words = 33.0;
        for (level, expect) in [("native", 0.0), ("intermediate", 4.0), ("beginner", 33.0)] {
            let rows = rows_of(json!({}), json!({ "fluency": level }), json!({}));
            let profile = rows.profile(&terms.behaviour, Vec::new());
            assert_eq!(profile.hesitation.fillers_per_100_words, expect, "{level}");
        }
    }

    #[tokio::test]
    async fn scripted_answers() {
        let web = web().await;
        let rule = |kind: &str, value: Value, seconds: Value, n: Value| {
            json!({
                "match_type": "exact", "match_phrase": "your {{what}}", "response_type": kind, "response_value": value,
                "occurrence_mode": if n.is_null() { "always" } else { "first_n" }, "occurrence_n": n,
                "silence_duration": seconds, "scripted_response_audio_snippet_url": web.url("/a.wav"),
            })
        };
        let rules = json!([
            rule("phrase", json!("It is {{what}}."), json!(null), json!(2)),
            rule("audio", json!(null), json!(null), json!(null)),
            rule("silence", json!(" "), json!(2.5), json!(null)),
            rule("silence", json!("Back."), json!(null), json!(null)),
            rule("dtmf", json!("1, 2,#a"), json!(null), json!(null)),
        ]);
        let traits = [("what".to_owned(), "name".to_owned())];
        let rows = rows_of(json!({}), json!({ "scripted_responses": rules }), json!({}));
        let (terms, settings) = (placement_settings(), Settings::new("/tmp"));
        let script =
            script(&rows, &Facts::of(&traits), &terms, &settings, &mut Vec::new()).await.expect("all can be answered");
        let Response::Audio(pcm) = script[1].response.clone() else { panic!("{:?}", script[1]) };
        let level = active_level_dbov(&pcm, RATE_HZ).expect("it sounds").level_dbov;
        assert!(pcm.len() == 32_000 && (level + 26.0).abs() < 0.3, "{} samples at {level:.2} dBov", pcm.len());
        let expect = [
            (0, Response::Phrase("It is name.".into()), Some(2)),
            (1, Response::Audio(pcm), None),
            (2, Response::Silence { duration_ms: Some(2500), then: None }, None),
            (3, Response::Silence { duration_ms: None, then: Some("Back.".into()) }, None),
            (4, Response::Dtmf("12#A".into()), None),
        ];
        let given: Vec<_> = script.iter().map(|rule| (rule.index, rule.response.clone(), rule.first_n)).collect();
        assert_eq!(given, expect);
        assert!(script.iter().all(|rule| rule.phrase == "your name" && rule.matching == Matching::Exact));
    }

    #[tokio::test]
    async fn custom_noise_is_fetched_once_a_run_and_its_failures_are_told() {
        let web = web().await;
        let (terms, settings) = (placement_settings(), Settings::new("/tmp"));
        let with = |url: &str, run: i64| {
            let human = json!({"background_noise": "custom", "custom_background_noise_url": url});
            CallRows { run_id: run, ..rows_of(json!({}), human, json!({})) }
        };
        let mut loops = Vec::new();
        for run in [1, 1, 2] {
            let spec = noise(&with(&web.url("/a.wav"), run), &terms, &settings, &mut Vec::new())
                .await
                .expect("it can be fetched");
            let spec = spec.expect("there is noise");
            // 2 s less the cross-fade, at 10 dB below speech (volume 0.8) for both kinds of codec.
            assert_eq!(spec.loop_pcm.len(), 24_000);
            let level = 20.0 * f64::from(spec.gain_wide).log10() + rms_dbov(&spec.loop_pcm);
            assert!((level + 36.0).abs() < 0.1, "{level:.2} dBov");
            loops.push(spec.loop_pcm);
        }
        assert!(Arc::ptr_eq(&loops[0], &loops[1]), "the calls of a run share a loop");
        assert_eq!(web.paths(), ["/a.wav", "/a.wav"], "once a run");
        let closed = Settings { allow_private_targets: false, ..settings.clone() };
        for (url, settings, why) in [
            (web.url("/none"), &settings, "File could not be fetched: 127.0.0.1 answered 404"),
            (web.url("/text"), &settings, "Audio file could not be decoded: not a WAV, MP3, FLAC, Ogg or MP4 file"),
            ("0b5f".to_owned(), &settings, "There is no uploaded sound '0b5f'"),
            (
                web.url("/a.wav?2"),
                &closed,
                "File could not be fetched: 127.0.0.1 points to an address that is not allowed",
            ),
        ] {
            let obstacle =
                noise(&with(&url, 3), &terms, settings, &mut Vec::new()).await.expect_err("there is no noise");
            assert_eq!((obstacle.code, obstacle.message.as_str()), (ErrorCode::CustomNoiseFailed, why));
        }
        assert_eq!(web.paths().len(), 4, "what is not allowed is not asked");
    }

    #[tokio::test]
    async fn a_sound_that_is_not_complete_is_heard_and_told() {
        let web = web().await;
        let (terms, settings, url) = (placement_settings(), Settings::new("/tmp"), web.url("/half.wav"));
        let rule = json!({
            "match_type": "exact", "match_phrase": "x", "response_type": "audio", "occurrence_mode": "always",
            "scripted_response_audio_snippet_url": url,
        });
        let human = json!({
            "background_noise": "custom", "custom_background_noise_url": url, "scripted_responses": [rule],
        });
        let rows = rows_of(json!({}), human, json!({}));
        let mut warnings = Vec::new();
        noise(&rows, &terms, &settings, &mut warnings).await.expect("it can be read").expect("there is noise");
        script(&rows, &Facts::of(&[]), &terms, &settings, &mut warnings).await.expect("it can be read");
        let why = "1.0 s of the audio file were read, the rest was not: the file is not complete: 1.0 s that it tells of are \
                   not in it";
        assert_eq!(warnings, [format!("background_noise: {why}"), format!("scripted_responses[0]: {why}")]);
    }

    #[tokio::test]
    async fn an_uploaded_noise_is_mixed_and_one_that_is_gone_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let (terms, settings) = (placement_settings(), Settings::new(folder.path()));
        let id = uuid::Uuid::from_u128(7);
        let file = settings.noise_file(id);
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("it is made");
        let human = json!({"background_noise": "custom", "custom_background_noise_url": id.to_string()});
        let rows = rows_of(json!({}), human, json!({}));
        let obstacle = noise(&rows, &terms, &settings, &mut Vec::new()).await.expect_err("there is no file");
        let why = format!("There is no uploaded sound '{id}'");
        assert_eq!((obstacle.code, obstacle.message), (ErrorCode::CustomNoiseFailed, why));
        std::fs::write(&file, tone()).expect("it is written");
        let spec =
            noise(&rows, &terms, &settings, &mut Vec::new()).await.expect("it can be read").expect("there is noise");
        assert_eq!(spec.loop_pcm.len(), 24_000);
        let level = 20.0 * f64::from(spec.gain_wide).log10() + rms_dbov(&spec.loop_pcm);
        assert!((level + 36.0).abs() < 0.1, "{level:.2} dBov");
    }

    #[tokio::test]
    async fn a_path_of_a_scenario_is_played_by_its_digital_human() {
        use ringer_media::call::{ConversationLine, Purpose, Then, Thought};
        let path = json!([
            {"speaker": "agent", "type": "message", "exact_match_text": "Press 1 for support.", "node_id": "a1"},
            {"speaker": "user", "type": "dtmf", "digits": "1", "node_id": "u1:b1"},
            {"speaker": "agent", "type": "message", "criteria": "starts troubleshooting", "node_id": "a2"},
            {"speaker": "user", "type": "message", "exact_message": "It is broken, {{name}} says.", "node_id": "u2"},
        ]);
        let human = json!({"tag": "workflow", "enriched_playback": path,
            "traits": [{"trait_name": "name", "trait_data_type": "STRING", "value": "Ann"}]});
        let rows = rows_of(json!({"sip_uri": "sip:bob@127.0.0.1:5080"}), human, json!({}));
        let prepared = rows.place(&placement_settings(), &Settings::new("/tmp")).await;
        let prepared = prepared.unwrap_or_else(|obstacle| panic!("{}: {}", obstacle.code, obstacle.message));
        assert!(prepared.warnings.is_empty(), "{:?}", prepared.warnings);
        let mut mind = prepared.placement.mind;
        let line = |other: bool, text: &str, digits: &str| ConversationLine {
            other,
            text: text.into(),
            digits: digits.into(),
            interrupted: false,
        };
        let mut history = Vec::new();
        for (heard, say, dtmf, then, own) in [
            ("press one", "", "1", Then::Listen, line(false, "", "1")),
            ("let us see", "It is broken, Ann says.", "", Then::Listen, line(false, "It is broken, Ann says.", "")),
            ("i am sorry", "", "", Then::Finish, line(false, "", "")),
        ] {
            history.push(line(true, heard, ""));
            // An answer that was dropped because the agent went on is planned again.
            for _ in 0..2 {
                let (out, mut moves) = tokio::sync::mpsc::channel(4);
                let thought = Thought { purpose: Purpose::Reply, history: history.clone(), unsaid: None };
                mind.think(thought, out).await;
                let next = moves.recv().await.expect("a move");
                assert_eq!((next.say.as_str(), next.dtmf.as_str(), next.then), (say, dtmf, then), "{heard}");
            }
            history.push(own);
        }
    }

    #[test]
    fn an_attacker_knows_its_techniques() {
        let plan = json!({"techniques": ["ignore_rules", "fake_id"], "max_rotations": 6});
        let rows = rows_of(json!({}), json!({"role_description": "A tester.", "attack_plan": plan}), json!({}));
        let role = rows.profile(&Behaviour::default(), Vec::new()).role_description;
        assert!(role.starts_with("A tester. Your techniques, in order: ignore rules, fake id. When one"), "{role}");
    }
}
