//! How a caller behaves: opening, interruptions, scripted answers, noise. From a Digital Human's words to a call's numbers.

use ringer_media::call::{Interruption, KeywordResponse, Matching, NoiseSpec, Opening, Response, ScriptRule};
use ringer_media::connection::ConnectionSpec;
use ringer_media::impair::AudioQuality;
use ringer_media::noise::Kind;
use ringer_media::seed::Seed;
use serde_json::{Value, json};

use super::{Obstacle, Placer, ms};
use crate::config::{Behaviour, Connection};
use crate::human::{fill, phrases};
use crate::model::agent::AgentType;
use crate::model::digital_human::{BackgroundNoise, DigitalHumanSpec, Quality, SpeaksFirstMode};
use crate::model::playback::{Interruptions, MatchType, OccurrenceMode, ResponseType, ScriptedResponse};

/// Facts by name.
type Traits = [(String, String)];

/// Who speaks first, and what.
pub(super) fn opening(human: &DigitalHumanSpec, kind: AgentType, traits: &Traits, behaviour: &Behaviour) -> Opening {
    let greeting = || Opening::Say(phrases::phrases(human.language.as_str()).greeting.to_owned());
    let Some(config) = &human.speaks_first_config else {
        return match kind {
            AgentType::Inbound => Opening::Listen { open_after_ms: Some(behaviour.open_after_ms) },
            AgentType::Outbound => greeting(),
        };
    };
    match (config.speaks_first, config.mode, &config.message) {
        (false, ..) => Opening::Listen { open_after_ms: None },
        (true, Some(SpeaksFirstMode::Custom), Some(message)) => Opening::Say(fill(message, traits)),
        (true, ..) => Opening::Made,
    }
}

/// When the caller cuts in.
pub(super) fn interruption(
    human: &DigitalHumanSpec,
    behaviour: &Behaviour,
    has_model: bool,
    warnings: &mut Vec<String>,
) -> Interruption {
    let levels = &behaviour.interruption;
    let level =
        |probability| Interruption::Level { probability, from_ms: levels.from_ms, to_ms: levels.to_ms, at_most: None };
    match &human.interruptions {
        None | Some(Interruptions::None {}) => Interruption::None,
        Some(Interruptions::Low {}) => level(levels.low),
        Some(Interruptions::Medium {}) => level(levels.medium),
        Some(Interruptions::High {}) => level(levels.high),
        Some(Interruptions::Keywords { keyword_responses }) => {
            let keyword = |of: &crate::model::playback::KeywordResponse| KeywordResponse {
                keyword: of.keyword.clone(),
                response: of.response.clone(),
                probability: of.probability,
            };
            Interruption::Keywords(keyword_responses.iter().map(keyword).collect())
        }
        Some(Interruptions::Contextual { contextual_prompt }) if has_model => {
            Interruption::Contextual { prompt: contextual_prompt.clone() }
        }
        Some(Interruptions::Contextual { .. }) => {
            warnings.push("contextual_interruptions_need_language_model".to_owned());
            Interruption::None
        }
    }
}

/// The numbers of an interruption, for the result.
pub(super) fn interruption_in_force(interruption: &Interruption) -> Value {
    match interruption {
        Interruption::None => json!({ "type": "none" }),
        Interruption::Level { probability, from_ms, to_ms, .. } => {
            json!({ "type": "level", "probability": probability, "from_ms": from_ms, "to_ms": to_ms })
        }
        Interruption::Keywords(keywords) => json!({ "type": "keywords", "count": keywords.len() }),
        Interruption::Contextual { .. } => json!({ "type": "contextual" }),
    }
}

/// The scripted answers that can be given.
pub(super) fn script(human: &DigitalHumanSpec, traits: &Traits, warnings: &mut Vec<String>) -> Vec<ScriptRule> {
    let mut rules = Vec::new();
    for (index, rule) in human.scripted_responses.iter().enumerate() {
        let Some(response) = response(rule, traits) else {
            warnings.push(format!("scripted_responses[{index}]: audio is not played in this version"));
            continue;
        };
        let always = rule.occurrence_mode == OccurrenceMode::Always;
        let count = rule.occurrence_n.filter(|_| !always).map(|count| u32::try_from(count).unwrap_or(u32::MAX));
        let matching = if rule.match_type == MatchType::Exact { Matching::Exact } else { Matching::Context };
        let phrase = fill(&rule.match_phrase, traits);
        rules.push(ScriptRule { index, matching, phrase, response, first_n: count });
    }
    rules
}

fn response(rule: &ScriptedResponse, traits: &Traits) -> Option<Response> {
    let words = || rule.response_value.as_ref().map(|value| fill(value, traits));
    Some(match rule.response_type {
        ResponseType::Phrase => Response::Phrase(words().unwrap_or_default()),
        ResponseType::Silence => {
            let then = words().filter(|words| !words.trim().is_empty());
            Response::Silence { duration_ms: rule.silence_duration.map(ms), then }
        }
        ResponseType::Dtmf => {
            let is_digit = |c: &char| c.is_ascii_digit() || "*#ABCD".contains(*c);
            Response::Dtmf(words().unwrap_or_default().to_ascii_uppercase().chars().filter(is_digit).collect())
        }
        ResponseType::Audio => return None,
    })
}

/// The background noise, when there is any; its loop may have to be made first.
pub(super) async fn noise(
    human: &DigitalHumanSpec,
    seed: Seed,
    placer: &Placer,
) -> Result<Option<NoiseSpec>, Obstacle> {
    if human.background_noise == BackgroundNoise::Custom {
        let message = "Custom background noise is not fetched in this version";
        return Err(Obstacle::new("CUSTOM_NOISE_FAILED", message));
    }
    let Some(kind) = Kind::from_name(human.background_noise.as_str()) else { return Ok(None) };
    let snr_db = placer.behaviour.noise_snr_db(human.background_noise_volume);
    let noises = placer.noises.clone();
    let bed = tokio::task::spawn_blocking(move || noises.bed(kind, snr_db, &mut seed.stream("noise")));
    bed.await.map(Some).map_err(|error| Obstacle::new("INTERNAL_ERROR", error.to_string()))
}

/// The band and the faults of the microphone.
pub(super) fn audio_quality(quality: Quality) -> AudioQuality {
    match quality {
        Quality::High => AudioQuality::High,
        Quality::Medium => AudioQuality::Medium,
        Quality::Low => AudioQuality::Low,
        Quality::Horrible => AudioQuality::Horrible,
    }
}

/// Loss and jitter of the connection.
pub(super) fn connection(quality: Quality, levels: &Connection) -> ConnectionSpec {
    let level = match quality {
        Quality::High => return ConnectionSpec::default(),
        Quality::Medium => &levels.medium,
        Quality::Low => &levels.low,
        Quality::Horrible => &levels.horrible,
    };
    let (loss, jitter_ms) = (level.loss_pct / 100.0, f64::from(level.jitter_ms));
    ConnectionSpec { loss, mean_burst: level.mean_burst, jitter_ms }
}

/// The numbers of a bad connection, for the result; null for a good one.
pub(super) fn connection_in_force(spec: &ConnectionSpec) -> Value {
    let ConnectionSpec { loss, mean_burst, jitter_ms } = spec;
    let numbers = || json!({ "loss_pct": 100.0 * loss, "mean_burst": mean_burst, "jitter_ms": jitter_ms });
    if spec.is_clear() { Value::Null } else { numbers() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn human(body: Value) -> DigitalHumanSpec {
        serde_json::from_value(body).expect("a Digital Human")
    }

    #[test]
    fn who_speaks_first() {
        use AgentType::{Inbound, Outbound};
        let say = |text: &str| Opening::Say(text.to_owned());
        let first = |mode: &str| json!({"speaks_first": true, "mode": mode, "message": "I am {{name}}, {{x}}."});
        for (config, kind, expect) in [
            (json!(null), Inbound, Opening::Listen { open_after_ms: Some(10_000) }),
            (json!(null), Outbound, say("Hello.")),
            (json!({"speaks_first": false}), Outbound, Opening::Listen { open_after_ms: None }),
            (first("custom"), Inbound, say("I am Ann, {{x}}.")),
            (first("ai_generated"), Inbound, Opening::Made),
        ] {
            let human = human(json!({ "speaks_first_config": config }));
            let traits = [("name".to_owned(), "Ann".to_owned())];
            assert_eq!(opening(&human, kind, &traits, &Behaviour::default()), expect, "{config}");
        }
    }

    #[test]
    fn levels_and_words_that_cut_in() {
        let level = |probability| Interruption::Level { probability, from_ms: 800, to_ms: 3000, at_most: None };
        let keyword = KeywordResponse { keyword: "fee".into(), response: "No!".into(), probability: 1.0 };
        let contextual = json!({"type": "contextual", "contextual_prompt": "it repeats itself"});
        for (given, has_model, expect, warned) in [
            (json!(null), false, Interruption::None, 0),
            (json!({"type": "none"}), false, Interruption::None, 0),
            (json!({"type": "low"}), false, level(0.10), 0),
            (json!({"type": "medium"}), false, level(0.25), 0),
            (json!({"type": "high"}), false, level(0.50), 0),
            (
                json!({"type": "keywords", "keyword_responses": [{"keyword": "fee", "response": "No!"}]}),
                false,
                Interruption::Keywords(vec![keyword]),
                0,
            ),
            (contextual.clone(), true, Interruption::Contextual { prompt: "it repeats itself".into() }, 0),
            (contextual, false, Interruption::None, 1),
        ] {
            let mut warnings = Vec::new();
            let human = human(json!({ "interruptions": given }));
            assert_eq!(interruption(&human, &Behaviour::default(), has_model, &mut warnings), expect, "{given}");
            assert_eq!(warnings.len(), warned, "{given}");
        }
    }

    #[test]
    fn scripted_answers() {
        let rule = |kind: &str, value: Value, seconds: Value, n: Value| {
            json!({
                "match_type": "exact", "match_phrase": "your {{what}}", "response_type": kind, "response_value": value,
                "occurrence_mode": if n.is_null() { "always" } else { "first_n" }, "occurrence_n": n,
                "silence_duration": seconds, "scripted_response_audio_snippet_url": "http://h/a.wav",
            })
        };
        let rules = json!([
            rule("phrase", json!("It is {{what}}."), json!(null), json!(2)),
            rule("audio", json!(null), json!(null), json!(null)),
            rule("silence", json!(" "), json!(2.5), json!(null)),
            rule("silence", json!("Back."), json!(null), json!(null)),
            rule("dtmf", json!("1, 2,#a"), json!(null), json!(null)),
        ]);
        let mut warnings = Vec::new();
        let traits = [("what".to_owned(), "name".to_owned())];
        let script = script(&human(json!({ "scripted_responses": rules })), &traits, &mut warnings);
        let expect = [
            (0, Response::Phrase("It is name.".into()), Some(2)),
            (2, Response::Silence { duration_ms: Some(2500), then: None }, None),
            (3, Response::Silence { duration_ms: None, then: Some("Back.".into()) }, None),
            (4, Response::Dtmf("12#A".into()), None),
        ];
        let given: Vec<_> = script.iter().map(|rule| (rule.index, rule.response.clone(), rule.first_n)).collect();
        assert_eq!(given, expect);
        assert!(script.iter().all(|rule| rule.phrase == "your name" && rule.matching == Matching::Exact));
        assert_eq!(warnings, ["scripted_responses[1]: audio is not played in this version"]);
    }
}
