//! Repetition of messages: each sender counts its messages up, and a listener takes each number once.

use std::collections::HashMap;

/// Numbers below the highest one that may still come late.
const LATE: u64 = 64;

/// Senders that are remembered. More than engines ever share a database; the one heard least is forgotten.
const MOST_SENDERS: usize = 1024;

/// Numbers that one listener has taken, by sender.
#[derive(Debug, Default)]
pub(crate) struct Window {
    senders: HashMap<String, Taken>,
}

#[derive(Copy, Clone, Debug)]
struct Taken {
    highest: u64,
    /// The numbers up to [`LATE`] below the highest that were taken, that one first.
    bits: u64,
}

impl Window {
    /// Takes a number of a sender; false: it was taken before, or is too far behind to know.
    pub(crate) fn take(&mut self, sender: &str, number: u64) -> bool {
        let Some(taken) = self.senders.get_mut(sender) else {
            if self.senders.len() >= MOST_SENDERS
                && let Some(oldest) = self.senders.iter().min_by_key(|(_, taken)| taken.highest)
            {
                let oldest = oldest.0.clone();
                self.senders.remove(&oldest);
            }
            self.senders.insert(sender.to_owned(), Taken { highest: number, bits: 1 });
            return true;
        };
        if number > taken.highest {
            let ahead = number - taken.highest;
            taken.bits = if ahead < LATE { (taken.bits << ahead) | 1 } else { 1 };
            taken.highest = number;
            return true;
        }
        let behind = taken.highest - number;
        if behind >= LATE || taken.bits >> behind & 1 == 1 {
            return false;
        }
        taken.bits |= 1 << behind;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_number_is_taken_once() {
        let mut window = Window::default();
        for (sender, number, expect) in [
            ("a", 100, true),
            ("a", 100, false),
            ("b", 100, true),
            ("a", 103, true),
            ("a", 101, true),
            ("a", 101, false),
            ("a", 102, true),
            ("a", 99, true),
            ("a", 40, true),
            ("a", 39, false),
            ("a", 1_000_000, true),
            ("a", 103, false),
            ("a", 1_000_000, false),
            ("a", 999_999, true),
        ] {
            assert_eq!(window.take(sender, number), expect, "{sender} {number}");
        }
    }

    #[test]
    fn senders_do_not_pile_up() {
        let mut window = Window::default();
        for number in 0..3 * MOST_SENDERS as u64 {
            assert!(window.take(&number.to_string(), number));
        }
        assert_eq!(window.senders.len(), MOST_SENDERS);
        assert!(!window.take(&(3 * MOST_SENDERS - 1).to_string(), 0), "the last one is known");
    }
}
