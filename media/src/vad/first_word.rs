//! Beginnings of speech, and the first word of a channel of which nothing is known: it may be speech in a quiet
//! channel, or stand in noise.
//!
//! The onset of such a word is withheld for 500 ms at most. A gap in it or behind it that is quiet shows that all of
//! its sound was speech, weak first sounds too. Decided at once, one onset in six was 50 to 700 ms late: a gate of 15
//! dB below the loudest sound cut off weak sounds and short words.

use super::noise_floor::LOWEST_DBOV;
use super::{BLOCK, CONFIRM, Edge, Edges, FIRST_WORD_VOTES, LEAST_DBOV, RELEASE, UNKNOWN, VoiceActivity};
use crate::frame::{FRAME, Sample};

impl VoiceActivity {
    /// Places the first word of a channel that turns out to be quiet: all its sound was speech.
    pub(super) fn place_first_word(&mut self, from: Sample) {
        let Some((onset, end)) = self.first_sound() else { return };
        if self.speech.is_none() && self.stirred && end - onset >= CONFIRM {
            self.withheld = Some(onset);
        }
        if self.withheld.is_some() {
            (self.withheld, self.onset) = (Some(onset), onset);
            (self.speech, self.voted) = (self.speech.max(Some(end)), from);
        }
    }

    /// Returns the beginning and end of the last sound above silence, pauses within speech included.
    fn first_sound(&self) -> Option<(Sample, Sample)> {
        let (mut onset, mut end) = (None, None);
        let mut later = self.next?;
        for back in 0..self.blocks.len() {
            let block = self.blocks.ago(back);
            let joined = (block.from + BLOCK as Sample - later).abs() <= BLOCK as Sample;
            let is_apart = onset.is_some_and(|onset| onset - block.from > RELEASE);
            if block.from < self.earliest || !joined || is_apart {
                break;
            }
            later = block.from;
            if block.level_dbov > LEAST_DBOV {
                onset = Some(block.from);
                end = end.or(Some(block.from + BLOCK as Sample));
            }
        }
        Some((onset?, end?))
    }

    /// Withholds the onset of a first word while nothing is known of the channel; returns the edge that is due.
    /// A tone behind it shows nothing, and may last.
    pub(super) fn withhold(&mut self, edge: Edges, tone: usize) -> Edges {
        match (edge, self.withheld) {
            (Some(Edge::Started { onset }), _) if !self.known && self.measured < UNKNOWN => {
                self.withheld = Some(onset);
                None
            }
            (Some(Edge::Ended { .. }), Some(onset)) => {
                (self.withheld, self.due) = (None, edge);
                Some(Edge::Started { onset })
            }
            (None, Some(onset)) if self.known || self.measured >= UNKNOWN || tone == FRAME => {
                self.withheld = None;
                Some(Edge::Started { onset })
            }
            (None, _) => self.due.take(),
            (edge, _) => edge,
        }
    }

    /// Looks for the beginning of speech in a channel with noise, when none ran before this frame.
    pub(super) fn begin_in_noise(&mut self, from: Sample) -> Edges {
        let found = self.lookback.begin(self.earliest);
        // Sound far weaker than the first word does not belong to it.
        let first = if self.known { None } else { self.loud_to_now(from).map(|(onset, _)| onset) };
        self.first_word = found.is_none() && first.is_some() && self.sure.count_ones() >= FIRST_WORD_VOTES;
        let onset = if self.first_word { first? } else { found?.max(first.unwrap_or(Sample::MIN)) };
        self.speech = Some(from + FRAME as Sample);
        Some(Edge::Started { onset })
    }

    /// Returns the level of the highest block that is remembered.
    pub(super) fn top_dbov(&self) -> f32 {
        let blocks = (0..self.blocks.len().min(UNKNOWN)).map(|back| self.blocks.ago(back).level_dbov);
        blocks.fold(LOWEST_DBOV, f32::max)
    }

    /// Reports the onset of speech that is voted for while none ran, once its minimum length is reached.
    pub(super) fn start(&mut self, from: Sample) -> Edges {
        let (onset, end) = self.loud_to_now(from)?;
        if end - onset < CONFIRM {
            return None;
        }
        (self.speech, self.onset) = (Some(end), onset);
        Some(Edge::Started { onset })
    }
}
