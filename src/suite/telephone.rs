//! Lines that a suite is called through, to tell what each costs the agent against a good one. A line replaces the
//! noise, microphone and connection that a scenario has.

use serde_json::{Map, Value, json};

use crate::config::nearest;

/// Name of the line that the others are held against.
pub const REFERENCE: &str = "wideband";

/// SNR of the babble in dB.
const BABBLE_DB: f64 = 10.0;

/// A line with its conditions.
#[derive(Debug)]
pub struct TelephoneLine {
    /// Name of the line, as flags and reports have it.
    pub name: &'static str,
    /// Conditions of the line, for a person.
    pub says: &'static str,
    /// Fields of the Digital Human that differ from those of a good line.
    fields: fn() -> [(&'static str, Value); 2],
}

impl PartialEq for TelephoneLine {
    fn eq(&self, other: &TelephoneLine) -> bool {
        self.name == other.name
    }
}

/// The lines, the reference first.
pub static LINES: [TelephoneLine; 4] = [
    TelephoneLine {
        name: REFERENCE,
        says: "codecs of the settings, no noise, nothing lost",
        fields: || [("line", Value::Null), ("background_noise", json!("none"))],
    },
    TelephoneLine {
        name: "pcmu",
        says: "PCMU alone by SIP; elsewhere what the caller sends has 300 to 3400 Hz and the steps of mu-law",
        fields: || [("line", json!({ "codec": "PCMU" })), ("background_noise", json!("none"))],
    },
    TelephoneLine {
        name: "loss5",
        says: "5 % of the packets that the caller sends are lost, each by itself",
        fields: || [("line", json!({ "loss_pct": 5 })), ("background_noise", json!("none"))],
    },
    TelephoneLine {
        name: "babble",
        says: "eight voices, crockery and music (cafe) 10 dB below the caller's voice",
        fields: || [("line", Value::Null), ("background_noise", json!("cafe"))],
    },
];

/// Returns the line of a name.
///
/// # Errors
/// There is none; the nearest name is told.
pub fn find(name: &str) -> Result<&'static TelephoneLine, String> {
    let names = || LINES.iter().map(|line| line.name);
    let near = nearest(name, names());
    let all = names().collect::<Vec<_>>().join(", ");
    LINES.iter().find(|line| line.name == name).ok_or_else(|| format!("{name:?} is no line{near}: there are {all}"))
}

/// Returns the lines of a text, separated by commas, each once and in the order of [`LINES`].
///
/// # Errors
/// A name that is no line.
pub fn read_names(text: &str) -> Result<Vec<&'static TelephoneLine>, String> {
    let named: Vec<&TelephoneLine> =
        text.split(',').map(str::trim).filter(|name| !name.is_empty()).map(find).collect::<Result<_, _>>()?;
    match named.is_empty() {
        true => Err("no line is named".to_owned()),
        false => Ok(LINES.iter().filter(|line| named.contains(line)).collect()),
    }
}

/// Fields of a Digital Human that a line replaces.
const REPLACED: [&str; 6] = [
    "background_noise",
    "background_noise_volume",
    "custom_background_noise_url",
    "audio_quality",
    "connection_quality",
    "line",
];

/// Returns the conditions of a Digital Human that a line replaces.
pub fn replaced_fields(human: &Map<String, Value>) -> Vec<&'static str> {
    let is_set =
        |name: &&str| human.get(*name).is_some_and(|value| !value.is_null() && value != "none" && value != "high");
    REPLACED.into_iter().filter(is_set).collect()
}

impl TelephoneLine {
    /// Puts a Digital Human on this line.
    pub fn apply(&self, human: &mut Map<String, Value>) {
        REPLACED.iter().for_each(|name| drop(human.remove(*name)));
        human.extend((self.fields)().map(|(name, value)| (name.to_owned(), value)));
        human.insert("background_noise_volume".into(), json!((30.0 - BABBLE_DB) / 25.0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::digital_human::DigitalHumanSpec;

    #[test]
    fn lines_are_named_once_and_in_their_order() {
        let names = |text| read_names(text).map(|lines| lines.iter().map(|line| line.name).collect::<Vec<_>>());
        assert_eq!(names("babble, pcmu,babble"), Ok(vec!["pcmu", "babble"]));
        for (text, expect) in [
            ("pmcu", "\"pmcu\" is no line, did you mean pcmu?: there are wideband, pcmu, loss5, babble"),
            (" ,", "no line is named"),
        ] {
            assert_eq!(names(text), Err(expect.to_owned()));
        }
    }

    #[test]
    fn a_line_replaces_the_conditions_of_a_scenario() {
        let own = json!({ "intent": "x", "background_noise": "park", "background_noise_volume": 1,
            "audio_quality": "low", "connection_quality": "high", "line": { "delay_ms": 300 } });
        let own = own.as_object().expect("an object");
        assert_eq!(replaced_fields(own), ["background_noise", "background_noise_volume", "audio_quality", "line"]);
        for line in &LINES {
            let mut human = own.clone();
            line.apply(&mut human);
            let spec: DigitalHumanSpec = serde_json::from_value(Value::Object(human)).expect("it fits");
            let (codec, loss) = spec.line.as_ref().map_or((false, None), |line| (line.codec.is_some(), line.loss_pct));
            let found = (codec, loss, spec.background_noise.as_str(), spec.background_noise_volume);
            let expect = match line.name {
                REFERENCE => (false, None, "none", 0.8),
                "pcmu" => (true, None, "none", 0.8),
                "loss5" => (false, Some(5.0), "none", 0.8),
                _ => (false, None, "cafe", 0.8),
            };
            assert_eq!(found, expect, "{}", line.name);
            assert_eq!((spec.intent.as_str(), spec.audio_quality.as_str()), ("x", "high"));
        }
    }
}
