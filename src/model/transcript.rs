//! Who said what, and when.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::digital_human::Role;

words! {
    /// Where an entry's words come from.
    EntrySource { Synthesized = "synthesized", Recognized = "recognized", Message = "message" }
}

/// One word with its place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Word {
    /// The word.
    pub word: String,
    /// Milliseconds from connect.
    pub start_offset_ms: i64,
    /// Milliseconds from connect.
    pub end_offset_ms: i64,
    /// 0 to 1 when known.
    pub confidence: Option<f64>,
}

/// One turn part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptEntry {
    /// Milliseconds from connect.
    pub start_offset_ms: i64,
    /// Milliseconds from connect.
    pub end_offset_ms: i64,
    /// USER is the Digital Human.
    pub speaker: Role,
    /// Words really said (Digital Human) or recognised (agent).
    pub utterance: String,
    /// Only filler words.
    pub filler_utterance: bool,
    /// Cut off by the other side.
    pub interrupted: bool,
    /// Said by a scripted rule.
    pub scripted: bool,
    /// 0 to 1; agent only.
    pub confidence: Option<f64>,
    /// Where the words come from.
    pub source: EntrySource,
    /// Words with their places.
    pub words: Vec<Word>,
}

impl TranscriptEntry {
    /// Words of one side over the milliseconds from `from_ms` to `to_ms`, whole and without places.
    pub fn of(speaker: Role, from_ms: i64, to_ms: i64, utterance: String, source: EntrySource) -> TranscriptEntry {
        TranscriptEntry {
            start_offset_ms: from_ms,
            end_offset_ms: to_ms.max(from_ms),
            speaker,
            utterance,
            filler_utterance: false,
            interrupted: false,
            scripted: false,
            confidence: None,
            source,
            words: Vec::new(),
        }
    }
}

/// A line of a transcript that was posted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PostedEntry {
    /// Milliseconds from connect.
    pub start_offset_ms: i64,
    /// Milliseconds from connect.
    pub end_offset_ms: i64,
    /// USER is the caller.
    pub speaker: Role,
    /// The words.
    pub utterance: String,
    /// Only filler words.
    #[serde(default)]
    pub filler_utterance: Option<bool>,
}

impl From<&PostedEntry> for TranscriptEntry {
    fn from(entry: &PostedEntry) -> TranscriptEntry {
        let (from, to, words) = (entry.start_offset_ms, entry.end_offset_ms, entry.utterance.clone());
        TranscriptEntry {
            filler_utterance: entry.filler_utterance == Some(true),
            ..TranscriptEntry::of(entry.speaker, from, to, words, EntrySource::Recognized)
        }
    }
}

/// A whole conversation in words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transcript {
    /// Whose transcript.
    pub simulation_result_id: i64,
    /// Language of the Digital Human.
    pub language: String,
    /// In order of start.
    pub entries: Vec<TranscriptEntry>,
}

impl Transcript {
    /// `AGENT: ...` and `USER: ...` lines.
    pub fn text(&self) -> String {
        let mut text = String::new();
        for entry in &self.entries {
            let _ = writeln!(text, "{}: {}", entry.speaker.as_str(), entry.utterance);
        }
        text
    }

    /// WebVTT (W3C) with voice spans.
    pub fn vtt(&self) -> String {
        let mut text = String::from("WEBVTT\n");
        for entry in &self.entries {
            let words = entry.utterance.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let (from, to) = (vtt_time(entry.start_offset_ms), vtt_time(entry.end_offset_ms));
            let _ = write!(text, "\n{from} --> {to}\n<v {}>{words}\n", entry.speaker.as_str());
        }
        text
    }
}

fn vtt_time(ms: i64) -> String {
    let ms = ms.max(0);
    format!("{:02}:{:02}:{:02}.{:03}", ms / 3_600_000, ms / 60_000 % 60, ms / 1000 % 60, ms % 1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_lines_and_cues() {
        let entry = |speaker, from, utterance: &str| {
            TranscriptEntry::of(speaker, from, from + 500, utterance.into(), EntrySource::Message)
        };
        let entries = vec![entry(Role::Agent, 0, "Hi <you>"), entry(Role::User, 3_661_250, "Hello")];
        let transcript = Transcript { simulation_result_id: 1, language: "en".into(), entries };
        assert_eq!(transcript.text(), "AGENT: Hi <you>\nUSER: Hello\n");
        let cues = "WEBVTT\n\n00:00:00.000 --> 00:00:00.500\n<v AGENT>Hi &lt;you&gt;\n\n\
            01:01:01.250 --> 01:01:01.750\n<v USER>Hello\n";
        assert_eq!(transcript.vtt(), cues);
    }
}
