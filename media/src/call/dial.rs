//! Sending digits: the due time of each.

use std::collections::VecDeque;

use crate::frame::{PER_MS, Sample};

/// Length of a tone, in milliseconds.
pub(super) const TONE_MS: u32 = 100;
/// Silence after a tone, in milliseconds.
pub(super) const GAP_MS: u32 = 100;
/// Silence of a comma, instead of the usual gap, in milliseconds.
const COMMA_MS: u32 = 1000;

/// A run of digits being sent. Every tone begins at a frame's first sample.
#[derive(Clone, Debug)]
pub(super) struct Dial {
    left: VecDeque<char>,
    next: Sample,
    end: Sample,
}

impl Dial {
    /// Sends the digits 0-9 * # A-D of `digits` from `start` on; a comma is a pause, everything else is passed over.
    pub(super) fn new(digits: &str, start: Sample) -> Dial {
        let left = digits.chars().map(|c| c.to_ascii_uppercase()).filter(|c| is_digit(*c) || *c == ',').collect();
        Dial { left, next: start, end: start }
    }

    /// Delays the next digit by this many samples.
    pub(super) fn wait(&mut self, by: Sample) {
        self.next += by;
    }

    /// Returns the digit whose tone begins in the frame at `frame`; `None` without one.
    pub(super) fn due(&mut self, frame: Sample) -> Option<char> {
        while frame >= self.next {
            let digit = self.left.pop_front()?;
            if digit == ',' {
                self.next = self.end.max(frame) + Sample::from(COMMA_MS) * PER_MS;
                continue;
            }
            self.end = frame + Sample::from(TONE_MS) * PER_MS;
            self.next = self.end + Sample::from(GAP_MS) * PER_MS;
            if self.left.front() == Some(&',') {
                self.left.pop_front();
                self.next = self.end + Sample::from(COMMA_MS) * PER_MS;
            }
            return Some(digit);
        }
        None
    }

    /// Returns the end of the last tone, once all digits were sent and the tone is over at `frame`.
    pub(super) fn end_of_digits(&self, frame: Sample) -> Option<Sample> {
        (self.left.is_empty() && frame >= self.end).then_some(self.end)
    }
}

/// True for 0-9, * and #, and A-D.
pub(super) fn is_digit(c: char) -> bool {
    matches!(c, '0'..='9' | '*' | '#' | 'A'..='D')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(digits: &str) -> Vec<(char, Sample)> {
        let mut dial = Dial::new(digits, 0);
        (0..2000).filter_map(|frame| dial.due(frame * 320).map(|digit| (digit, frame * 320 / PER_MS))).collect()
    }

    #[test]
    fn tones_gaps_and_commas() {
        for (digits, expect) in [
            ("12", vec![('1', 0), ('2', 200)]),
            ("1,2", vec![('1', 0), ('2', 1100)]),
            (",5", vec![('5', 1000)]),
            ("a-#", vec![('A', 0), ('#', 200)]),
            ("1,,2", vec![('1', 0), ('2', 2100)]),
            ("", vec![]),
        ] {
            assert_eq!(times(digits), expect, "{digits}");
        }
    }

    #[test]
    fn done_after_the_last_tone() {
        let mut dial = Dial::new("1", 0);
        assert_eq!(dial.due(0), Some('1'));
        assert_eq!(dial.end_of_digits(1280), None);
        assert_eq!(dial.end_of_digits(1600), Some(1600));
    }
}
