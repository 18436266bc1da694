//! The other side's turns: segments of speech, their text as it comes, and turns that are over but still wait for text.
//!
//! The recognizer hears through pauses of up to 400 ms, since words that belong together are recognized better in one
//! piece. Hang-up phrases want their text at once and switch that off. A turn's text is made when a recognition comes
//! and then shared: 1.1 allocations an event instead of 3.5.

use std::sync::Arc;

use crate::call::event::Word;
use crate::call::io::{ConversationLine, EffectId, Effected};
use crate::detected_language::DetectedLanguage;
use crate::frame::Sample;

/// Most bytes of text that the other side may tell for a turn by messages.
pub(super) const MAX_REPORTED: usize = 16_384;

/// Text of one segment.
#[derive(Clone, Debug, PartialEq)]
enum Text {
    Running(String),
    Final {
        text: String,
        words: Vec<Word>,
        confidence: Option<f32>,
        detected_language: DetectedLanguage,
    },
    /// No text will come, for this reason.
    Missing(&'static str),
}

/// One stretch of speech, from onset to end.
#[derive(Clone, Debug)]
struct Segment {
    hear: EffectId,
    recognize: Option<EffectId>,
    text: Text,
}

impl Segment {
    fn awaits(&self, id: EffectId) -> bool {
        id.0 != 0 && (self.hear == id || self.recognize == Some(id))
    }
}

/// A turn of the other side: one or more segments, and digits.
#[derive(Clone, Debug)]
pub(super) struct OtherTurn {
    /// True onset of its first segment (or first digit).
    pub from: Sample,
    /// True end of its last segment (or last digit), as far as known.
    pub end: Sample,
    /// Concealed audio of the other side at its onset and at its end, in milliseconds since the call began.
    pub concealed: [u64; 2],
    /// Digits that came in it.
    pub digits: String,
    /// True when this side barged into it.
    pub is_barged_in: bool,
    /// True when it has a segment of at least 200 ms.
    pub counts: bool,
    /// True when it was answered before its text was final.
    pub late: bool,
    /// True when it began while an extension was dialled, and the conversation has not begun since.
    pub is_early: bool,
    /// Its line in the history, once it is over.
    pub line: Option<usize>,
    segments: Vec<Segment>,
    /// Text of all segments, joined.
    text: Arc<str>,
    /// Text that the other side told of it by messages.
    reported: String,
}

impl OtherTurn {
    /// Returns a turn that begins at `from`, when `concealed` milliseconds of audio had been concealed.
    pub(super) fn new(from: Sample, concealed: u64) -> OtherTurn {
        OtherTurn {
            from,
            end: from,
            concealed: [concealed; 2],
            digits: String::new(),
            is_barged_in: false,
            counts: false,
            late: false,
            is_early: false,
            line: None,
            segments: Vec::new(),
            text: Arc::default(),
            reported: String::new(),
        }
    }

    /// Adds text that the other side told of its words by a message.
    pub(super) fn report(&mut self, text: &str) {
        if self.reported.len() + text.len() >= MAX_REPORTED {
            return;
        }
        if !self.reported.is_empty() {
            self.reported.push(' ');
        }
        self.reported.push_str(text);
        self.renew_text();
    }

    /// True when its text is the one that the other side told, since no words were recognised.
    pub(super) fn is_reported(&self) -> bool {
        !self.reported.is_empty() && self.is_final() && !self.has_recognised()
    }

    fn has_recognised(&self) -> bool {
        self.segments.iter().any(|segment| match &segment.text {
            Text::Running(text) | Text::Final { text, .. } => !text.is_empty(),
            Text::Missing(_) => false,
        })
    }

    /// Begins a segment; `hear` brings its text.
    pub(super) fn open(&mut self, hear: EffectId) {
        self.segments.push(Segment { hear, recognize: None, text: Text::Running(String::new()) });
    }

    /// True when it has a segment of speech.
    pub(super) fn has_speech(&self) -> bool {
        !self.segments.is_empty()
    }

    /// Begins a segment for which there is no recognizer.
    pub(super) fn open_deaf(&mut self) {
        self.segments.push(Segment { hear: EffectId(0), recognize: None, text: Text::Missing("no_recognizer") });
        self.renew_text();
    }

    /// Ends the open segment; returns its `hear` effect when a final text is to be asked for as `recognize`.
    pub(super) fn close_segment(&mut self, recognize: EffectId) -> Option<EffectId> {
        let segment = self.segments.last_mut().filter(|segment| matches!(segment.text, Text::Running(_)))?;
        segment.recognize = Some(recognize);
        Some(segment.hear)
    }

    /// True when every segment has its final text, or never will have one.
    pub(super) fn is_final(&self) -> bool {
        self.segments.iter().all(|segment| !matches!(segment.text, Text::Running(_)))
    }

    /// Stops waiting for text.
    pub(super) fn give_up(&mut self) -> Vec<EffectId> {
        let mut left = Vec::new();
        for segment in &mut self.segments {
            if matches!(segment.text, Text::Running(_)) {
                segment.text = Text::Missing("recognizer_late");
                left.extend([Some(segment.hear), segment.recognize].into_iter().flatten());
            }
        }
        self.renew_text();
        left
    }

    /// True when it waits for a result of this effect.
    pub(super) fn awaits(&self, id: EffectId) -> bool {
        self.segments.iter().any(|segment| segment.awaits(id))
    }

    /// Takes a part of a recognition that it waits for.
    pub(super) fn take(&mut self, id: EffectId, done: Effected) {
        let Some(segment) = self.segments.iter_mut().find(|segment| segment.awaits(id)) else { return };
        match done {
            Effected::Partial(text) if matches!(segment.text, Text::Running(_)) => segment.text = Text::Running(text),
            Effected::Final { text, words, confidence, detected_language } => {
                segment.text = Text::Final { text, words, confidence, detected_language };
            }
            Effected::Failed { code, .. } => segment.text = Text::Missing(code),
            _ => return,
        }
        self.renew_text();
    }

    fn renew_text(&mut self) {
        if self.has_speech() && self.is_reported() {
            self.text = self.reported.as_str().into();
            return;
        }
        let mut texts = self.segments.iter().filter_map(|segment| match &segment.text {
            Text::Running(text) | Text::Final { text, .. } if !text.is_empty() => Some(text.as_str()),
            _ => None,
        });
        self.text = match (texts.next(), texts.next()) {
            (None, _) => Arc::default(),
            (Some(all), None) => all.into(),
            (Some(first), Some(second)) => {
                [first, second].into_iter().chain(texts).collect::<Vec<_>>().join(" ").into()
            }
        };
    }

    /// Returns all words known so far, running text included.
    pub(super) fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// Returns the reason why words of it are missing; `None` when none are.
    pub(super) fn missing(&self) -> Option<&'static str> {
        if self.is_reported() {
            return None;
        }
        let lost = self.segments.iter().find_map(|segment| match segment.text {
            Text::Missing(why) => Some(why),
            _ => None,
        });
        lost.or((self.has_speech() && self.text.is_empty()).then_some("not_understood"))
    }

    /// Takes the words with their times, which are then no longer kept.
    pub(super) fn take_words(&mut self) -> Vec<Word> {
        let mut finals = self.segments.iter_mut().filter_map(|segment| match &mut segment.text {
            Text::Final { words, .. } => Some(std::mem::take(words)),
            _ => None,
        });
        let first = finals.next().unwrap_or_default();
        finals.fold(first, |mut all, words| {
            all.extend(words);
            all
        })
    }

    /// Returns the mean confidence of the segments that have one.
    pub(super) fn confidence(&self) -> Option<f32> {
        let known = self.segments.iter().filter_map(|segment| match segment.text {
            Text::Final { confidence, .. } => confidence,
            _ => None,
        });
        let (sum, count) = known.fold((0.0, 0), |(sum, count), one| (sum + one, count + 1));
        (count > 0).then(|| sum / count as f32)
    }

    /// Returns the language that the recognizer tells for its longest text. Returns none when a part was heard by a
    /// recognizer that knows one language only.
    pub(super) fn detected_language(&self) -> DetectedLanguage {
        let finals = self.segments.iter().filter_map(|segment| match &segment.text {
            Text::Final { text, detected_language, .. } if !text.is_empty() => Some((text.len(), detected_language)),
            _ => None,
        });
        let weight = |(length, detected_language): &(usize, &DetectedLanguage)| match detected_language {
            DetectedLanguage::Unknown => 0,
            DetectedLanguage::Detected(_) | DetectedLanguage::Hinted(_) => *length,
            DetectedLanguage::Fixed => usize::MAX,
        };
        finals.max_by_key(weight).map(|(_, detected_language)| detected_language.clone()).unwrap_or_default()
    }

    /// Returns the turn as a line of the conversation.
    pub(super) fn as_line(&self) -> ConversationLine {
        let digits = if self.digits.is_empty() { Arc::default() } else { self.digits.as_str().into() };
        ConversationLine { other: true, text: self.text.clone(), digits, interrupted: self.is_barged_in }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_words_are_missing() {
        let said = |text: &str| Effected::Final {
            text: text.into(),
            words: Vec::new(),
            confidence: None,
            detected_language: DetectedLanguage::Unknown,
        };
        let busy = || Effected::Failed { code: "recognizer_busy", why: String::new() };
        let check = |heard: &[Effected], missing, text: &str| {
            let mut turn = OtherTurn::new(0, 0);
            for (n, done) in (1..).zip(heard) {
                turn.open(EffectId(n));
                turn.take(EffectId(n), done.clone());
            }
            turn.give_up();
            assert_eq!((turn.missing(), &**turn.text()), (missing, text), "{heard:?}");
        };
        check(&[said("yes"), said("")], None, "yes");
        check(&[said(""), said("")], Some("not_understood"), "");
        check(&[busy()], Some("recognizer_busy"), "");
        check(&[said("yes"), busy()], Some("recognizer_busy"), "yes");
        check(&[said("yes"), Effected::Partial("and".into())], Some("recognizer_late"), "yes");
        check(&[], None, "");
        let mut deaf = OtherTurn::new(0, 0);
        deaf.open_deaf();
        assert_eq!(deaf.missing(), Some("no_recognizer"));
    }
}
