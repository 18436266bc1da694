//! Piper voices: tests that need no model.

use serde_json::json;

use super::*;

#[test]
fn draws_are_normal_and_follow_from_the_seed() {
    let draws = normal(7, 10_001);
    assert_eq!(draws, normal(7, 10_001));
    assert_ne!(draws, normal(8, 10_001));
    let mean = draws.iter().sum::<f32>() / draws.len() as f32;
    let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f32>() / draws.len() as f32;
    assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    assert!(draws.iter().all(|draw| draw.is_finite()));
}

#[test]
fn settings_tell_language_and_speakers() {
    let check = |name: &str, json: Value, expect: Result<(&str, usize), &str>| {
        let folder = std::env::temp_dir().join(format!("ringer-piper-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the temporary folder is writable");
        std::fs::write(folder.join(format!("{name}.onnx.json")), json.to_string()).expect("writable");
        let read = settings(&folder.join(format!("{name}.onnx")));
        std::fs::remove_dir_all(&folder).expect("it was made here");
        match (read, expect) {
            (Ok(found), Ok((language, speakers))) => {
                assert_eq!((found.language.as_str(), found.speakers.len()), (language, speakers), "{name}");
            }
            (Err(why), Err(part)) => assert!(why.0.contains(part), "{name}: {why}"),
            (read, _) => panic!("{name}: {read:?}"),
        }
    };
    let plain = json!({"audio": {"sample_rate": 22050}});
    check("en_US-joe-medium", plain.clone(), Ok(("en_US", 0)));
    let named = json!({"audio": {"sample_rate": 16000}, "language": {"code": "de_DE"}, "num_speakers": 2,
        "speaker_id_map": {"b": 1, "a": 0}});
    check("thorsten", named, Ok(("de_DE", 2)));
    check("x", json!({"audio": {"sample_rate": 16000}, "num_speakers": 3, "espeak": {"voice": "fr"}}), Ok(("fr", 3)));
    check("fast", json!({"audio": {"sample_rate": 96000}}), Err("audio.sample_rate"));
    check("text", json!({"audio": {"sample_rate": 16000}, "phoneme_type": "text"}), Err("espeak's phonemes"));
}
