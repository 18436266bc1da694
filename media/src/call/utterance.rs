//! Speech being said: words in parts, the audio of each part as it arrives, and how much of it was heard.

use std::sync::Arc;

use super::event::{Kind, Spoken};
use super::io::EffectId;
use crate::frame::Sample;

/// Silence between two parts (sentences), in samples.
const PART_GAP: usize = 3200;
/// Fade at a stop: 5 ms.
const FADE: usize = 80;
/// Characters a second, for parts whose length is not known yet.
const CHARS_PER_SECOND: usize = 15;

/// One sentence (or clip) of an utterance.
#[derive(Clone, Debug)]
pub(super) struct UtterancePart {
    text: String,
    /// The same with what its voice added to it, where it did.
    voiced: Option<String>,
    effect: EffectId,
    audio: Vec<Arc<[i16]>>,
    complete: bool,
}

impl UtterancePart {
    fn samples(&self) -> usize {
        self.audio.iter().map(|chunk| chunk.len()).sum()
    }

    fn voiced_text(&self) -> &str {
        self.voiced.as_deref().unwrap_or(&self.text)
    }
}

/// Words of this side that are said without a break, with their audio.
#[derive(Clone, Debug)]
pub(super) struct Utterance {
    /// Number, unique in the call.
    pub id: u32,
    /// Purpose of the utterance.
    pub kind: Kind,
    /// True to say it word for word as written (scripted, fixed).
    pub exact: bool,
    /// True when this side does not yield before its end.
    pub holds_floor: bool,
    /// Position of the first sample, once it is being said.
    pub started: Option<Sample>,
    /// True onset, once it is known; its beginning was reported then.
    pub onset: Option<Sample>,
    /// True while more parts may be added.
    pub open: bool,
    parts: Vec<UtterancePart>,
    /// UtterancePart being said, chunk of it, sample in the chunk, samples said of the part.
    part: usize,
    chunk: usize,
    offset: usize,
    said: usize,
    gap: usize,
    stopping: bool,
}

/// Beginning of an utterance, as it is reported.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    /// Number of the utterance.
    pub utterance_id: u32,
    /// Text that is planned to be heard, fillers included.
    pub text: String,
    /// Purpose of the utterance.
    pub kind: Kind,
    /// True onset of the utterance.
    pub onset: Sample,
}

/// Result of rendering a frame.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub(super) struct Rendered {
    /// One past the last sample of this frame that has words, when any has.
    pub wrote_to: Option<usize>,
    /// One past the last sample of this frame that the utterance wrote, when it ended in this frame.
    pub ended: Option<usize>,
}

impl Utterance {
    /// Returns an utterance without words.
    pub(super) fn new(id: u32, kind: Kind, exact: bool) -> Utterance {
        Utterance {
            id,
            kind,
            exact,
            holds_floor: false,
            started: None,
            onset: None,
            open: false,
            parts: Vec::new(),
            part: 0,
            chunk: 0,
            offset: 0,
            said: 0,
            gap: 0,
            stopping: false,
        }
    }

    /// Adds words whose audio `effect` will bring.
    pub(super) fn add_words(&mut self, text: &str, effect: EffectId) {
        self.parts.push(UtterancePart { text: text.into(), voiced: None, effect, audio: Vec::new(), complete: false });
    }

    /// Adds audio that is ready, with its words, if it has any.
    pub(super) fn add_clip(&mut self, text: &str, pcm: Arc<[i16]>) {
        let effect = EffectId(0);
        self.parts.push(UtterancePart { text: text.into(), voiced: None, effect, audio: vec![pcm], complete: true });
    }

    /// Sets the words that `effect` brings to `voiced`, with fillers between them; returns it when the effect is not of
    /// this utterance.
    pub(super) fn voice(&mut self, effect: EffectId, voiced: String) -> Option<String> {
        match self.parts.iter_mut().find(|part| part.effect == effect) {
            Some(part) => part.voiced = Some(voiced),
            None => return Some(voiced),
        }
        None
    }

    /// Gives audio to the part that waits for `effect`; false when none does.
    pub(super) fn give(&mut self, effect: EffectId, pcm: Arc<[i16]>, last: bool) -> bool {
        let Some(part) = self.parts.iter_mut().find(|part| part.effect == effect && !part.complete) else {
            return false;
        };
        if !pcm.is_empty() {
            part.audio.push(pcm);
        }
        part.complete = last;
        true
    }

    /// Returns the effects that have not brought all their audio.
    pub(super) fn waiting(&self) -> impl Iterator<Item = EffectId> + '_ {
        self.parts.iter().filter(|part| !part.complete).map(|part| part.effect)
    }

    /// Sets its true onset; returns what is to be reported of it, the first time.
    pub(super) fn begin(&mut self, onset: Sample) -> Option<Begun> {
        if self.onset.replace(onset).is_some() {
            return None;
        }
        Some(Begun { utterance_id: self.id, text: self.text(), kind: self.kind, onset })
    }

    /// True when any part of it has words.
    pub(super) fn has_words(&self) -> bool {
        self.parts.iter().any(|part| !part.text.is_empty())
    }

    /// Returns all that is planned to be heard.
    pub(super) fn text(&self) -> String {
        join(self.parts.iter().map(UtterancePart::voiced_text))
    }

    /// True when the first sample can be said.
    pub(super) fn is_ready(&self) -> bool {
        self.parts.first().is_some_and(|part| part.complete || !part.audio.is_empty())
    }

    /// Ends it with a 5 ms fade in the next frame.
    pub(super) fn stop(&mut self) {
        self.stopping = true;
    }

    /// True when it ends with the next frame.
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping
    }

    /// Mixes the next samples into `frame` from `from` on.
    pub(super) fn render(&mut self, frame: &mut [i32], from: usize) -> Rendered {
        let mut at = from;
        let mut wrote_to = None;
        let end = if self.stopping { (from + FADE).min(frame.len()) } else { frame.len() };
        while at < end {
            if self.gap > 0 {
                let pause = self.gap.min(end - at);
                self.gap -= pause;
                at += pause;
                continue;
            }
            let Some(part) = self.parts.get(self.part) else { break };
            let Some(chunk) = part.audio.get(self.chunk) else {
                if !part.complete && !self.stopping {
                    return Rendered { wrote_to, ended: None };
                }
                if !part.complete {
                    break;
                }
                self.next_part();
                continue;
            };
            let count = (chunk.len() - self.offset).min(end - at);
            for (slot, sample) in frame[at..at + count].iter_mut().zip(&chunk[self.offset..]) {
                *slot += i32::from(*sample);
            }
            (at, self.offset, self.said) = (at + count, self.offset + count, self.said + count);
            wrote_to = Some(at);
            if self.offset == chunk.len() {
                (self.chunk, self.offset) = (self.chunk + 1, 0);
            }
        }
        if self.stopping {
            fade_out(&mut frame[from..end]);
            return Rendered { wrote_to, ended: Some(at) };
        }
        self.settle();
        Rendered { wrote_to, ended: (self.part >= self.parts.len() && !self.open).then_some(at) }
    }

    fn settle(&mut self) {
        while let Some(part) = self.parts.get(self.part) {
            if !part.complete || self.chunk < part.audio.len() {
                break;
            }
            self.next_part();
        }
    }

    fn next_part(&mut self) {
        (self.part, self.chunk, self.offset, self.said) = (self.part + 1, 0, 0, 0);
        self.gap = if self.part < self.parts.len() { PART_GAP } else { 0 };
    }

    /// Returns the words really said (cut at the last whole word) and the words left.
    pub(super) fn split(&self) -> (Spoken, String) {
        let done = &self.parts[..self.part.min(self.parts.len())];
        let words = done.iter().map(|part| part.text.as_str());
        let voiced = done.iter().map(UtterancePart::voiced_text);
        let Some(part) = self.parts.get(self.part) else {
            return (Spoken::new(join(words), join(voiced)), String::new());
        };
        let total = if part.complete {
            part.samples()
        } else {
            part.voiced_text().chars().count() * crate::frame::RATE_HZ as usize / CHARS_PER_SECOND
        };
        let heard = cut_words(part.voiced_text(), self.said as f64 / total.max(1) as f64);
        let (said, left) = if part.voiced.is_some() { split_at_words(&part.text, heard) } else { heard };
        let rest = self.parts.iter().skip(self.part + 1).map(|part| part.text.as_str());
        (Spoken::new(join(words.chain([said])), join(voiced.chain([heard.0]))), join([left].into_iter().chain(rest)))
    }
}

fn join<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let mut text = String::new();
    for part in parts.filter(|part| !part.is_empty()) {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(part);
    }
    text
}

/// Cuts `text` after the last whole word inside `share` (0..1) of its characters.
fn cut_words(text: &str, share: f64) -> (&str, &str) {
    let keep = (text.chars().count() as f64 * share).round() as usize;
    if keep >= text.chars().count() {
        return (text, "");
    }
    let byte = text.char_indices().nth(keep).map_or(text.len(), |(at, _)| at);
    let at_border = text[byte..].starts_with(char::is_whitespace);
    let end = if at_border { byte } else { text[..byte].rfind(char::is_whitespace).unwrap_or(0) };
    (text[..end].trim_end(), text[end..].trim_start())
}

/// Splits `text` at the end of what was said: `heard` has fillers between its words, and `left` is the rest.
fn split_at_words<'t>(text: &'t str, (heard, left): (&str, &str)) -> (&'t str, &'t str) {
    if left.is_empty() {
        return (text, "");
    }
    let (mut heard, mut end) = (heard.split_whitespace(), 0);
    for word in text.split_inclusive(char::is_whitespace) {
        if !heard.any(|heard| heard == word.trim_end()) {
            break;
        }
        end += word.len();
    }
    (text[..end].trim_end(), text[end..].trim_start())
}

fn fade_out(frame: &mut [i32]) {
    let count = frame.len() as i32;
    for (at, sample) in frame.iter_mut().enumerate() {
        *sample = *sample * (count - at as i32) / count.max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utterance_of(parts: &[(&str, usize)]) -> Utterance {
        let mut said = Utterance::new(1, Kind::Turn, false);
        for (at, (text, samples)) in parts.iter().enumerate() {
            let effect = EffectId(at as u32 + 1);
            said.add_words(text, effect);
            assert!(said.give(effect, vec![1000; *samples].into(), true));
        }
        said
    }

    /// Returns the words that were said, the words that were heard, and the words left.
    fn split(said: &Utterance) -> [String; 3] {
        let (spoken, left) = said.split();
        [spoken.as_str().to_owned(), spoken.voiced_text().to_owned(), left]
    }

    #[test]
    fn says_its_parts_with_a_gap_and_ends_on_the_sample() {
        let mut said = utterance_of(&[("One two.", 500), ("Three.", 300)]);
        let mut heard = Vec::new();
        loop {
            let mut frame = [0i32; 320];
            let done = said.render(&mut frame, 0);
            heard.extend_from_slice(&frame);
            if let Some(end) = done.ended {
                assert_eq!(heard.len() - 320 + end, 500 + PART_GAP + 300);
                break;
            }
        }
        assert_eq!(heard.iter().filter(|sample| **sample != 0).count(), 800);
        assert_eq!(split(&said), ["One two. Three.", "One two. Three.", ""]);
    }

    #[test]
    fn a_stop_fades_and_keeps_whole_words() {
        let mut said = utterance_of(&[("one two three four", 3200)]);
        let mut frame = [0i32; 320];
        for _ in 0..5 {
            said.render(&mut frame, 0);
        }
        said.stop();
        let mut frame = [0i32; 320];
        assert_eq!(said.render(&mut frame, 0).ended, Some(FADE));
        assert!(frame[0] > 900 && frame[FADE - 1] < 30 && frame[FADE] == 0);
        assert_eq!(split(&said), ["one two", "one two", "three four"]);
    }

    #[test]
    fn fillers_are_heard_and_are_none_of_the_words() {
        let mut said = utterance_of(&[("one two three four", 3200), ("five", 320)]);
        let fill = |said: &mut Utterance| said.voice(EffectId(1), "one um, two three uh, four".into());
        assert_eq!(fill(&mut said), None);
        assert_eq!(said.voice(EffectId(9), "six".into()), Some("six".into()), "of another utterance");
        assert_eq!(said.text(), "one um, two three uh, four five");
        let mut parts = Vec::new();
        for _ in 0..10 {
            said.render(&mut [0i32; 320], 0);
            parts.push(split(&said));
        }
        for (frames, expect) in [
            (2, ["one", "one", "two three four five"]),
            (3, ["one", "one um,", "two three four five"]),
            (7, ["one two three", "one um, two three", "four five"]),
            (9, ["one two three", "one um, two three uh,", "four five"]),
            (10, ["one two three four", "one um, two three uh, four", "five"]),
        ] {
            assert_eq!(parts[frames - 1], expect, "after {frames} frames");
        }
    }

    #[test]
    fn waits_for_audio_that_is_late() {
        let mut said = Utterance::new(1, Kind::Turn, false);
        said.add_words("late", EffectId(9));
        assert!(!said.is_ready());
        let mut frame = [0i32; 320];
        assert_eq!(said.render(&mut frame, 0), Rendered::default());
        assert!(said.give(EffectId(9), vec![5; 100].into(), true));
        assert!(!said.give(EffectId(9), vec![5; 100].into(), true));
        assert_eq!(said.render(&mut frame, 0).ended, Some(100));
    }
}
