//! A change of one thing in calls that are played again: what it is called, and the fields of a Digital Human that it
//! becomes.

use serde_json::{Map, Value, json};

use crate::config::nearest;
use crate::model::digital_human::{BackgroundNoise, Quality, VoiceSpeed};

/// Longest delay that a line is given, in milliseconds.
const DELAY_MS_MAX: i64 = 5000;
/// Latest moment of a barge-in, in milliseconds of the agent's turn.
const BARGE_IN_MS_MAX: i64 = 600_000;
/// Range of the SNR of background noise, in dB.
const NOISE_DB: std::ops::RangeInclusive<f64> = 5.0..=30.0;
/// SNR of background noise where none is given, in dB.
const NOISE_DB_USUAL: f64 = 10.0;
/// Longest id of a voice, in characters.
const VOICE_CHARS: usize = 200;

/// A change of one thing.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Milliseconds by which everything that the caller sends comes later.
    Latency(i64),
    /// Noise behind the caller, and its SNR in dB.
    Noise(BackgroundNoise, f64),
    /// Milliseconds of the agent's turn after which the caller interrupts it.
    BargeInAt(i64),
    /// Voice of the caller, by its id.
    Voice(String),
    /// Quality of the caller's connection.
    Network(Quality),
    /// Speed of the caller's speech.
    Speed(VoiceSpeed),
}

/// Things that can be changed, each with an example.
pub const CHANGES: [(&str, &str); 6] = [
    ("latency", "latency=+400ms"),
    ("noise", "noise=cafe"),
    ("barge_in_at", "barge_in_at=1200ms"),
    ("voice", "voice=ID"),
    ("network", "network=low"),
    ("speed", "speed=fast"),
];

/// Reads `THING=VALUE`.
///
/// # Errors
/// A thing that cannot be changed, or a value that it cannot have.
pub fn parse(text: &str) -> Result<Change, String> {
    let examples = || CHANGES.map(|(_, example)| example).join(", ");
    let Some((thing, value)) = text.split_once('=') else {
        return Err(format!("a change is THING=VALUE: {}", examples()));
    };
    let value = value.trim();
    match thing.trim() {
        "latency" => latency(value),
        "noise" => noise(value),
        "barge_in_at" => {
            let ms = milliseconds(value).filter(|ms| (0..=BARGE_IN_MS_MAX).contains(ms));
            ms.map(Change::BargeInAt).ok_or_else(|| {
                format!("barge_in_at={value}: it is 0ms to {BARGE_IN_MS_MAX}ms from the beginning of the agent's turn")
            })
        }
        "voice" if value.is_empty() || value.chars().count() > VOICE_CHARS => {
            Err(format!("voice: it is the id of a voice, of 1 to {VOICE_CHARS} characters"))
        }
        "voice" => Ok(Change::Voice(value.to_owned())),
        "network" => word(value, "network", &["high", "medium", "low", "horrible"]).map(Change::Network),
        "speed" => word(value, "speed", &["slowest", "slow", "normal", "fast", "fastest"]).map(Change::Speed),
        thing => {
            let near = nearest(thing, CHANGES.iter().map(|(name, _)| *name));
            Err(format!("{thing:?} cannot be changed{near}: {}", examples()))
        }
    }
}

fn latency(value: &str) -> Result<Change, String> {
    let ms = milliseconds(value.strip_prefix('+').unwrap_or(value));
    let ms = ms.filter(|ms| (1..=DELAY_MS_MAX).contains(ms));
    ms.map(Change::Latency).ok_or_else(|| {
        format!("latency={value}: it is +1ms to +{DELAY_MS_MAX}ms, by which what the caller says comes later")
    })
}

fn noise(value: &str) -> Result<Change, String> {
    const NAMES: [&str; 9] =
        ["none", "office", "talking", "traffic", "cafe", "park", "tv", "noisy_restaurant", "hospital"];
    let (name, db) = value.split_once(':').map_or((value, None), |(name, db)| (name, Some(db)));
    let kind = word(name, "noise", &NAMES)?;
    let Some(db) = db else { return Ok(Change::Noise(kind, NOISE_DB_USUAL)) };
    let number = db.strip_suffix("dB").unwrap_or(db).parse::<f64>().ok().filter(|db| NOISE_DB.contains(db));
    number
        .map(|db| Change::Noise(kind, db))
        .ok_or_else(|| format!("noise={value}: {db} is no SNR from {} to {} dB", NOISE_DB.start(), NOISE_DB.end()))
}

/// Returns the value of a word of the API.
fn word<T: serde::de::DeserializeOwned>(value: &str, thing: &str, words: &[&str]) -> Result<T, String> {
    let known = words.contains(&value).then(|| serde_json::from_value(json!(value)).ok()).flatten();
    known.ok_or_else(|| {
        let near = nearest(value, words.iter().copied());
        format!("{thing}={value}: there is no {value:?}{near}: {}", words.join(", "))
    })
}

/// Returns a time as `400ms`, `0.4s` or `400`, in milliseconds.
fn milliseconds(text: &str) -> Option<i64> {
    let (number, factor) = match (text.strip_suffix("ms"), text.strip_suffix('s')) {
        (Some(number), _) => (number, 1.0),
        (None, Some(number)) => (number, 1000.0),
        (None, None) => (text, 1.0),
    };
    let is_plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let ms = number.trim().parse::<f64>().ok().filter(|_| is_plain)? * factor;
    (ms.is_finite() && ms < 1e9).then(|| ms.round() as i64)
}

impl std::fmt::Display for Change {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Change::Latency(ms) => write!(f, "latency=+{ms}ms"),
            Change::Noise(BackgroundNoise::None, _) => f.write_str("noise=none"),
            Change::Noise(kind, db) => write!(f, "noise={}:{db}dB", kind.as_str()),
            Change::BargeInAt(ms) => write!(f, "barge_in_at={ms}ms"),
            Change::Voice(id) => write!(f, "voice={id}"),
            Change::Network(quality) => write!(f, "network={}", quality.as_str()),
            Change::Speed(speed) => write!(f, "speed={}", speed.as_str()),
        }
    }
}

impl Change {
    /// Changes a Digital Human.
    ///
    /// # Errors
    /// Nothing would change, or there is nothing that could.
    pub fn apply(&self, human: &mut Map<String, Value>) -> Result<(), String> {
        let before = human.clone();
        match self {
            Change::Latency(ms) => {
                let line = human.get("line").and_then(Value::as_object).cloned().unwrap_or_default();
                let delay_ms = line.get("delay_ms").and_then(Value::as_i64).unwrap_or(0) + ms;
                if delay_ms > DELAY_MS_MAX {
                    return Err(format!(
                        "{self}: its line would have a delay of {delay_ms} ms, of at most {DELAY_MS_MAX}"
                    ));
                }
                let mut line = line;
                line.insert("delay_ms".into(), json!(delay_ms));
                human.insert("line".into(), Value::Object(line));
            }
            Change::Noise(kind, db) => {
                set(human, "background_noise", json!(kind), json!("none"));
                if *kind != BackgroundNoise::None {
                    set(human, "background_noise_volume", json!((30.0 - db) / 25.0), json!(0.8));
                }
            }
            Change::BargeInAt(ms) => barge_in_at(*ms, human)?,
            Change::Voice(id) => {
                human.insert("custom_voice_id".into(), json!(id));
            }
            Change::Network(quality) => set(human, "connection_quality", json!(quality), json!("high")),
            Change::Speed(speed) => set(human, "voice_speed", json!(speed), json!("normal")),
        }
        if *human == before { Err(format!("{self} changes nothing: it is so already")) } else { Ok(()) }
    }
}

/// Sets a field, unless it has the value by its default.
fn set(human: &mut Map<String, Value>, field: &str, value: Value, usual: Value) {
    if human.get(field).unwrap_or(&usual) != &value {
        human.insert(field.to_owned(), value);
    }
}

/// Moves the interruptions of a playback; a caller without one interrupts the first turn that lasts so long.
fn barge_in_at(ms: i64, human: &mut Map<String, Value>) -> Result<(), String> {
    let Some(steps) = human.get_mut("enriched_playback").and_then(Value::as_array_mut).filter(|all| !all.is_empty())
    else {
        human.insert("interruptions".into(), json!({ "type": "timed", "after_ms": ms, "count": 1 }));
        return Ok(());
    };
    let interrupts = steps.iter_mut().filter_map(|step| step.get_mut("interrupt")?.as_object_mut());
    let mut count = 0;
    for interrupt in interrupts {
        interrupt.insert("after_ms".into(), json!(ms));
        count += 1;
    }
    match count {
        0 => Err("barge_in_at: its turns have no interrupt whose moment could be another".to_owned()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::digital_human::DigitalHumanSpec;

    #[test]
    fn changes_are_read_and_told() {
        for (text, expect) in [
            ("latency=+400ms", Ok("latency=+400ms")),
            ("latency=0.4s", Ok("latency=+400ms")),
            ("noise=cafe", Ok("noise=cafe:10dB")),
            ("noise=tv:17.5dB", Ok("noise=tv:17.5dB")),
            ("noise=none", Ok("noise=none")),
            ("barge_in_at=1.2s", Ok("barge_in_at=1200ms")),
            ("voice=kokoro:af_heart", Ok("voice=kokoro:af_heart")),
            ("network=low", Ok("network=low")),
            ("speed=fastest", Ok("speed=fastest")),
            ("latency=-400ms", Err("latency=-400ms: it is +1ms to +5000ms")),
            ("latency=+6s", Err("latency=+6s: it is +1ms to +5000ms")),
            ("latency=soon", Err("latency=soon: it is")),
            ("noise=caffe", Err("noise=caffe: there is no \"caffe\", did you mean cafe?: none, office")),
            ("noise=cafe:40dB", Err("noise=cafe:40dB: 40dB is no SNR from 5 to 30 dB")),
            ("noise=custom", Err("noise=custom: there is no \"custom\"")),
            ("barge_in_at=-1ms", Err("barge_in_at=-1ms: it is 0ms to 600000ms")),
            ("voice=", Err("voice: it is the id of a voice")),
            ("speed=9", Err("speed=9: there is no \"9\": slowest")),
            ("latncy=1", Err("\"latncy\" cannot be changed, did you mean latency?: latency=+400ms")),
            ("noise", Err("a change is THING=VALUE: latency=+400ms")),
        ] {
            match (parse(text), expect) {
                (Ok(change), Ok(expect)) => assert_eq!(change.to_string(), expect, "{text}"),
                (Err(why), Err(expect)) => assert!(why.starts_with(expect), "{text}: {why}"),
                (found, expect) => panic!("{text}: {found:?} {expect:?}"),
            }
        }
    }

    #[test]
    fn a_change_is_one_thing_of_a_digital_human() {
        let cut = |after_ms: i64| json!({ "interrupt": { "after_ms": after_ms, "exact_message": "No." } });
        let [cuts, moved] = [900, 1200].map(|after_ms| json!([{ "speaker": "agent" }, cut(after_ms)]));
        for (human, change, expect) in [
            (json!({ "line": { "delay_ms": 100 } }), "latency=+400ms", json!({ "line": { "delay_ms": 500 } })),
            (json!({}), "latency=+400ms", json!({ "line": { "delay_ms": 400 } })),
            (json!({}), "noise=cafe", json!({ "background_noise": "cafe" })),
            (json!({ "background_noise": "cafe" }), "noise=none", json!({ "background_noise": "none" })),
            (json!({}), "noise=cafe:20", json!({ "background_noise": "cafe", "background_noise_volume": 0.4 })),
            (
                json!({}),
                "barge_in_at=1200ms",
                json!({ "interruptions": { "type": "timed", "after_ms": 1200, "count": 1 } }),
            ),
            (json!({ "enriched_playback": cuts }), "barge_in_at=1200ms", json!({ "enriched_playback": moved })),
            (json!({}), "voice=slt", json!({ "custom_voice_id": "slt" })),
            (json!({}), "network=low", json!({ "connection_quality": "low" })),
            (json!({}), "speed=slow", json!({ "voice_speed": "slow" })),
        ] {
            let mut human = human.as_object().expect("an object").clone();
            parse(change).and_then(|change| change.apply(&mut human)).unwrap_or_else(|why| panic!("{change}: {why}"));
            assert_eq!(Value::Object(human.clone()), expect, "{change}");
            serde_json::from_value::<DigitalHumanSpec>(Value::Object(human)).expect("it fits the API");
        }
    }

    #[test]
    fn what_would_change_nothing_is_refused() {
        for (human, change, expect) in [
            (json!({}), "noise=none", "noise=none changes nothing: it is so already"),
            (json!({ "background_noise": "cafe" }), "noise=cafe", "noise=cafe:10dB changes nothing"),
            (json!({}), "network=high", "network=high changes nothing"),
            (json!({ "custom_voice_id": "x" }), "voice=x", "voice=x changes nothing"),
            (
                json!({ "enriched_playback": [{ "speaker": "agent" }] }),
                "barge_in_at=1s",
                "barge_in_at: its turns have no",
            ),
            (
                json!({ "line": { "delay_ms": 4900 } }),
                "latency=+200ms",
                "latency=+200ms: its line would have a delay of",
            ),
        ] {
            let mut human = human.as_object().expect("an object").clone();
            let why = parse(change).and_then(|change| change.apply(&mut human)).expect_err(change);
            assert!(why.starts_with(expect), "{why}");
        }
    }
}
