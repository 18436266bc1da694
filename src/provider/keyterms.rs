//! Bias words of recognizers, and what is said where they are not used.

/// Returns a warning where a recognizer uses `used` of `all` bias words and not all.
pub fn idle_keyterms(used: usize, all: usize) -> Option<String> {
    match used {
        used if used >= all => None,
        0 => Some("keyterms: the recognizer does not use them".to_owned()),
        used => Some(format!("keyterms: the recognizer uses the first {used} of {all}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_are_not_used_are_counted() {
        for (used, all, expect) in [
            (0, 0, None),
            (2, 2, None),
            (0, 2, Some("keyterms: the recognizer does not use them")),
            (1, 2, Some("keyterms: the recognizer uses the first 1 of 2")),
        ] {
            assert_eq!(idle_keyterms(used, all).as_deref(), expect, "{used} of {all}");
        }
    }
}
