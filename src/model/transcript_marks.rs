//! Transcripts as marks on a recording, for tools of speech research: RTTM and Praat's TextGrid.

use std::fmt::Write as _;

use super::digital_human::Role;
use super::transcript::{Transcript, TranscriptEntry};

/// Sides in the order of the recording's channels, each a tier of a TextGrid.
const TIERS: [Role; 2] = [Role::User, Role::Agent];

impl Transcript {
    /// Returns who spoke when as RTTM (NIST Rich Transcription, appendix A of the evaluation plan of 2009), by onset.
    /// An entry without length, like a written message, is no speech and has no line.
    pub fn rttm(&self) -> String {
        let mut text = String::new();
        let file = format!("result-{}", self.simulation_result_id);
        for (from, to, entry) in self.in_order().filter(|(from, to, _)| to > from) {
            let (onset, duration) = (seconds(from), seconds(to - from));
            let speaker = entry.speaker.as_str();
            let _ = writeln!(text, "SPEAKER {file} 1 {onset} {duration} <NA> <NA> {speaker} <NA> <NA>");
        }
        text
    }

    /// Returns the transcript as a TextGrid of Praat in the long text format. Each side has an interval tier that
    /// covers `length_ms`, the length of the conversation; what lies behind it makes the tiers longer.
    ///
    /// Intervals of a tier do not overlap, so an entry begins when the one before it has ended. A written message
    /// lasts 1 ms.
    pub fn text_grid(&self, length_ms: i64) -> String {
        let tiers = TIERS.map(|side| self.tier(side));
        let last = tiers.iter().filter_map(|tier| tier.last()).map(|(_, to, _)| *to);
        let end = last.fold(length_ms.max(1), i64::max);
        let size = tiers.len();
        let mut text = String::from("File type = \"ooTextFile\"\nObject class = \"TextGrid\"\n\n");
        let _ = write!(text, "xmin = 0\nxmax = {}\ntiers? <exists>\nsize = {size}\nitem []:\n", seconds(end));
        for (at, (side, tier)) in TIERS.iter().zip(tiers).enumerate() {
            let tier = fill_gaps(tier, end);
            let (at, end, side, size) = (at + 1, seconds(end), side.as_str(), tier.len());
            let _ = write!(text, "    item [{at}]:\n        class = \"IntervalTier\"\n        name = \"{side}\"\n");
            let _ = write!(text, "        xmin = 0\n        xmax = {end}\n        intervals: size = {size}\n");
            for (at, (from, to, words)) in tier.iter().enumerate() {
                let (at, from, to) = (at + 1, seconds(*from), seconds(*to));
                let _ = write!(text, "        intervals [{at}]:\n            xmin = {from}\n            xmax = {to}\n");
                let _ = writeln!(text, "            text = \"{words}\"");
            }
        }
        text
    }

    /// Returns the intervals of a side that have words, in milliseconds.
    fn tier(&self, side: Role) -> Vec<Interval> {
        let mut end = 0;
        let own = self.in_order().filter(|(_, _, entry)| entry.speaker == side);
        let labelled = own.map(|(from, to, entry)| (from, to, label(&entry.shown_text())));
        let placed = labelled.filter(|(_, _, label)| !label.is_empty()).map(|(from, to, label)| {
            let from = from.max(end);
            end = to.max(from.saturating_add(1));
            (from, end, label)
        });
        placed.collect()
    }

    /// Returns the entries by start, each with start and end in milliseconds, none before the start of the
    /// conversation.
    fn in_order(&self) -> impl Iterator<Item = (i64, i64, &TranscriptEntry)> {
        let mut entries: Vec<&TranscriptEntry> = self.entries.iter().collect();
        entries.sort_by_key(|entry| entry.start_offset_ms);
        entries.into_iter().map(|entry| {
            let from = entry.start_offset_ms.max(0);
            (from, entry.end_offset_ms.max(from), entry)
        })
    }
}

/// Stretch of a tier: start and end in milliseconds, and its label.
type Interval = (i64, i64, String);

/// Returns a tier with empty intervals between those that have a label.
fn fill_gaps(tier: Vec<Interval>, end: i64) -> Vec<Interval> {
    let (mut all, mut at) = (Vec::new(), 0);
    for (from, to, label) in tier {
        if from > at {
            all.push((at, from, String::new()));
        }
        all.push((from, to, label));
        at = to;
    }
    if at < end {
        all.push((at, end, String::new()));
    }
    all
}

/// Returns words as the label of an interval, on one line, since readers other than Praat go by lines. A quotation mark
/// is doubled.
fn label(words: &str) -> String {
    let is_break = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let parts: Vec<&str> = words.split(is_break).map(str::trim).filter(|part| !part.is_empty()).collect();
    parts.join(" ").replace('"', "\"\"")
}

fn seconds(ms: i64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

#[cfg(test)]
mod tests {
    use super::super::transcript::{EntrySource, TextMissing};
    use super::*;

    fn transcript(entries: &[(Role, i64, i64, &str)]) -> Transcript {
        let entry = |(speaker, from, to, words): &(Role, i64, i64, &str)| {
            let (start_offset_ms, end_offset_ms) = (*from, *to);
            let entry = TranscriptEntry::of(*speaker, *from, *to, (*words).to_owned(), EntrySource::Recognized);
            TranscriptEntry { start_offset_ms, end_offset_ms, ..entry }
        };
        Transcript { simulation_result_id: 7, language: "en".into(), entries: entries.iter().map(entry).collect() }
    }

    #[test]
    fn a_line_of_rttm_is_a_stretch_of_speech() {
        let script = transcript(&[
            (Role::User, 2_500, 3_725_001, "two\nlines"),
            (Role::Agent, 0, 1_040, "Hello."),
            (Role::Agent, 900, 900, "a message"),
            (Role::User, -20, 30, "early"),
        ]);
        let expect = "SPEAKER result-7 1 0.000 0.030 <NA> <NA> USER <NA> <NA>\n\
            SPEAKER result-7 1 0.000 1.040 <NA> <NA> AGENT <NA> <NA>\n\
            SPEAKER result-7 1 2.500 3722.501 <NA> <NA> USER <NA> <NA>\n";
        assert_eq!(script.rttm(), expect);
        assert_eq!(transcript(&[]).rttm(), "");
    }

    /// Tiers without what stands around them.
    fn tiers(script: &Transcript, length_ms: i64) -> [Vec<Interval>; 2] {
        let end = script.text_grid(length_ms);
        let end = end.lines().find_map(|line| line.strip_prefix("xmax = ")).expect("a length").replace('.', "");
        TIERS.map(|side| fill_gaps(script.tier(side), end.parse().expect("milliseconds")))
    }

    #[test]
    fn tiers_cover_the_whole_length_without_overlaps() {
        let own = |from: i64, to: i64, label: &str| (from, to, label.to_owned());
        let none = || vec![own(0, 4000, "")];
        for (entries, expect) in [
            (vec![], [none(), none()]),
            (
                vec![(Role::Agent, 500, 900, "b"), (Role::Agent, 0, 600, "say \"a\"")],
                [none(), vec![own(0, 600, "say \"\"a\"\""), own(600, 900, "b"), own(900, 4000, "")]],
            ),
            (vec![(Role::User, 0, 4000, "\r\n one\u{2028}\ttwo\n")], [vec![own(0, 4000, "one two")], none()]),
            (
                vec![(Role::User, 10, 10, "x"), (Role::User, 10, 5, "y"), (Role::User, 20, 90, " \n")],
                [vec![own(0, 10, ""), own(10, 11, "x"), own(11, 12, "y"), own(12, 4000, "")], none()],
            ),
            (
                vec![(Role::Agent, 4000, 5000, "späti 深夜")],
                [vec![own(0, 5000, "")], vec![own(0, 4000, ""), own(4000, 5000, "späti 深夜")]],
            ),
        ] {
            assert_eq!(tiers(&transcript(&entries), 4000), expect, "{entries:?}");
        }
        assert_eq!(tiers(&transcript(&[]), 0), [vec![own(0, 1, "")], vec![own(0, 1, "")]]);
    }

    #[test]
    fn speech_without_words_has_a_label() {
        let mut script = transcript(&[(Role::Agent, 0, 500, "")]);
        script.entries[0].text_missing = Some(TextMissing::Unclear);
        assert_eq!(tiers(&script, 500)[1], [(0, 500, "[speech not understood]".to_owned())]);
        let grid = script.text_grid(500);
        let head = "File type = \"ooTextFile\"\nObject class = \"TextGrid\"\n\nxmin = 0\nxmax = 0.500\ntiers? <exists>\n\
            size = 2\nitem []:\n    item [1]:\n        class = \"IntervalTier\"\n        name = \"USER\"\n        xmin = 0\n        \
            xmax = 0.500\n        intervals: size = 1\n        intervals [1]:\n            xmin = 0.000\n            \
            xmax = 0.500\n            text = \"\"\n";
        assert!(grid.starts_with(head), "{grid}");
    }
}
