//! Transcripts: the words of both sides with their times.

use std::borrow::Cow;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::digital_human::Role;

words! {
    /// Source of an entry's words.
    EntrySource {
        Synthesized = "synthesized", Recognized = "recognized", Message = "message", Reported = "reported",
    }
}

words! {
    /// Reason why the words of a turn are not known.
    TextMissing {
        NoRecognizer = "no_recognizer", RecognizerLate = "recognizer_late", RecognizerBusy = "recognizer_busy",
        Unclear = "unclear", UnsupportedLanguage = "unsupported_language",
    }
}

impl TextMissing {
    /// Returns the reason that a timeline names; an unknown name counts as a late recognizer.
    pub fn of(word: &str) -> TextMissing {
        match word {
            "not_understood" => TextMissing::Unclear,
            word => TextMissing::parse(word).unwrap_or(TextMissing::RecognizerLate),
        }
    }
}

/// Text that is shown in the place of words that are not known.
pub const NOT_UNDERSTOOD: &str = "[speech not understood]";

/// One word with its times.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Word {
    /// Text of the word.
    pub word: String,
    /// Start in milliseconds from connect.
    pub start_offset_ms: i64,
    /// End in milliseconds from connect.
    pub end_offset_ms: i64,
    /// Confidence of the recognizer, 0 to 1; null: not known.
    pub confidence: Option<f64>,
}

/// One entry of a transcript: a turn or a part of one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptEntry {
    /// Start in milliseconds from connect.
    pub start_offset_ms: i64,
    /// End in milliseconds from connect.
    pub end_offset_ms: i64,
    /// Side that speaks: USER is the Digital Human.
    pub speaker: Role,
    /// Words that were really said (Digital Human) or recognised (agent); empty when they are not known.
    pub utterance: String,
    /// Reason why words of the turn are not known; null where they are. A turn known in part says so in its last entry.
    pub text_missing: Option<TextMissing>,
    /// True: there are only filler words.
    pub filler_utterance: bool,
    /// True: the other side cut it off.
    pub interrupted: bool,
    /// True: a scripted response.
    pub scripted: bool,
    /// Confidence of the recognizer, 0 to 1; agent only, else null.
    pub confidence: Option<f64>,
    /// Source of the words.
    pub source: EntrySource,
    /// Words with their times; empty for text.
    pub words: Vec<Word>,
}

impl TranscriptEntry {
    /// Returns an entry of one side from `from_ms` to `to_ms`, without times of its words.
    pub fn of(speaker: Role, from_ms: i64, to_ms: i64, utterance: String, source: EntrySource) -> TranscriptEntry {
        TranscriptEntry {
            start_offset_ms: from_ms,
            end_offset_ms: to_ms.max(from_ms),
            speaker,
            utterance,
            text_missing: None,
            filler_utterance: false,
            interrupted: false,
            scripted: false,
            confidence: None,
            source,
            words: Vec::new(),
        }
    }

    /// True if words of it are known.
    pub fn has_words(&self) -> bool {
        !self.utterance.trim().is_empty()
    }

    /// Returns the words as they are shown; [`NOT_UNDERSTOOD`] stands where words are not known.
    pub fn shown_text(&self) -> Cow<'_, str> {
        match (self.text_missing, self.has_words()) {
            (None, _) => Cow::from(&self.utterance),
            (Some(_), false) => Cow::from(NOT_UNDERSTOOD),
            (Some(_), true) => Cow::from(format!("{} {NOT_UNDERSTOOD}", self.utterance.trim_end())),
        }
    }
}

/// One entry of a posted transcript.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PostedEntry {
    /// Start in milliseconds from connect.
    pub start_offset_ms: i64,
    /// End in milliseconds from connect.
    pub end_offset_ms: i64,
    /// Side that speaks: USER is the caller.
    pub speaker: Role,
    /// Words of the entry; empty: they are not known.
    pub utterance: String,
    /// True: there are only filler words.
    #[serde(default)]
    pub filler_utterance: Option<bool>,
}

impl From<&PostedEntry> for TranscriptEntry {
    fn from(entry: &PostedEntry) -> TranscriptEntry {
        let (from, to, words) = (entry.start_offset_ms, entry.end_offset_ms, entry.utterance.clone());
        // Speech of some length without words.
        let is_lost = words.trim().is_empty() && to > from;
        TranscriptEntry {
            text_missing: is_lost.then_some(TextMissing::Unclear),
            filler_utterance: entry.filler_utterance == Some(true),
            ..TranscriptEntry::of(entry.speaker, from, to, words, EntrySource::Recognized)
        }
    }
}

/// A whole conversation in words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Transcript {
    /// Identifier of the result.
    pub simulation_result_id: i64,
    /// Language of the Digital Human.
    pub language: String,
    /// Entries in order of their start.
    pub entries: Vec<TranscriptEntry>,
}

impl Transcript {
    /// Returns the entries as lines `AGENT: ...` and `USER: ...`.
    pub fn text(&self) -> String {
        lines(self.entries.iter().map(|entry| (entry.speaker, entry.shown_text())))
    }

    /// Returns the same as [`Transcript::text`], with only the words that are known.
    pub fn known_text(&self) -> String {
        let known = self.entries.iter().filter(|entry| entry.has_words());
        lines(known.map(|entry| (entry.speaker, Cow::from(&entry.utterance))))
    }

    /// Returns the transcript as WebVTT (W3C) with voice spans, one cue an entry. Each cue lasts at least 1 ms, since a
    /// message has no length.
    pub fn vtt(&self) -> String {
        let mut text = String::from("WEBVTT\n");
        let mut entries: Vec<&TranscriptEntry> = self.entries.iter().collect();
        entries.sort_by_key(|entry| entry.start_offset_ms);
        for entry in entries {
            let words = vtt_text(&entry.shown_text());
            if words.is_empty() {
                continue;
            }
            let from = entry.start_offset_ms.max(0);
            let to = entry.end_offset_ms.max(from.saturating_add(1));
            let (from, to) = (vtt_time(from), vtt_time(to));
            let _ = write!(text, "\n{from} --> {to}\n<v {}>{words}\n", entry.speaker.as_str());
        }
        text
    }
}

fn lines<'t>(said: impl Iterator<Item = (Role, Cow<'t, str>)>) -> String {
    let mut text = String::new();
    for (speaker, words) in said {
        let _ = writeln!(text, "{}: {words}", speaker.as_str());
    }
    text
}

/// Returns the text of a cue (WebVTT 4.2), without blank lines, which would end it, and without NUL.
fn vtt_text(words: &str) -> String {
    let lines: Vec<&str> = words.split(['\r', '\n']).map(str::trim).filter(|line| !line.is_empty()).collect();
    let escaped = lines.join("\n").replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    escaped.replace('\0', "\u{fffd}")
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

    #[test]
    fn a_cue_holds_its_text_and_lasts() {
        let cue = |from: i64, to: i64, utterance: &str| {
            let entry = TranscriptEntry::of(Role::User, from, to, utterance.into(), EntrySource::Message);
            let transcript = Transcript { simulation_result_id: 1, language: "en".into(), entries: vec![entry] };
            transcript.vtt()["WEBVTT\n".len()..].to_owned()
        };
        for (from, to, text, expect) in [
            (0, 500, "one\n\ntwo", "\n00:00:00.000 --> 00:00:00.500\n<v USER>one\ntwo\n"),
            (0, 500, "one\r\n \t\r\n\r\rtwo\n", "\n00:00:00.000 --> 00:00:00.500\n<v USER>one\ntwo\n"),
            (0, 500, "a --> b", "\n00:00:00.000 --> 00:00:00.500\n<v USER>a --&gt; b\n"),
            (0, 500, "<b>&amp;\u{0}", "\n00:00:00.000 --> 00:00:00.500\n<v USER>&lt;b&gt;&amp;amp;\u{fffd}\n"),
            (700, 700, "now", "\n00:00:00.700 --> 00:00:00.701\n<v USER>now\n"),
            (900, 700, "back", "\n00:00:00.900 --> 00:00:00.901\n<v USER>back\n"),
            (-900, -700, "early", "\n00:00:00.000 --> 00:00:00.001\n<v USER>early\n"),
            (0, 500, " \n", ""),
        ] {
            assert_eq!(cue(from, to, text), expect, "{from} {to} {text:?}");
        }
    }

    #[test]
    fn cues_are_in_order_and_speech_without_words_is_shown() {
        let entry = |from: i64, utterance: &str, text_missing| TranscriptEntry {
            text_missing,
            ..TranscriptEntry::of(Role::Agent, from, from + 500, utterance.into(), EntrySource::Recognized)
        };
        let late = Some(TextMissing::RecognizerLate);
        let entries = vec![entry(3000, "Bye", None), entry(1000, "", late), entry(2000, "Yes, ", late)];
        let transcript = Transcript { simulation_result_id: 1, language: "en".into(), entries };
        assert_eq!(
            transcript.text(),
            "AGENT: Bye\nAGENT: [speech not understood]\nAGENT: Yes, [speech not understood]\n"
        );
        assert_eq!(transcript.known_text(), "AGENT: Bye\nAGENT: Yes, \n");
        let cues = "WEBVTT\n\n00:00:01.000 --> 00:00:01.500\n<v AGENT>[speech not understood]\n\n\
            00:00:02.000 --> 00:00:02.500\n<v AGENT>Yes, [speech not understood]\n\n\
            00:00:03.000 --> 00:00:03.500\n<v AGENT>Bye\n";
        assert_eq!(transcript.vtt(), cues);
        // A transcript that was kept before there was a reason reads as one without.
        let kept = serde_json::json!({
            "start_offset_ms": 0, "end_offset_ms": 1, "speaker": "AGENT", "utterance": "Hi", "filler_utterance": false,
            "interrupted": false, "scripted": false, "confidence": null, "source": "recognized", "words": [],
        });
        let kept: TranscriptEntry = serde_json::from_value(kept).expect("an entry");
        assert_eq!((kept.text_missing, kept.shown_text().as_ref()), (None, "Hi"));
        for (word, expect) in [
            ("no_recognizer", TextMissing::NoRecognizer),
            ("recognizer_busy", TextMissing::RecognizerBusy),
            ("not_understood", TextMissing::Unclear),
            ("unclear", TextMissing::Unclear),
            ("recognizer_failed", TextMissing::RecognizerLate),
        ] {
            assert_eq!(TextMissing::of(word), expect, "{word}");
        }
    }
}
