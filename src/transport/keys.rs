//! Telephone keys in the messages of channels.

/// Most keys of one message; a message with more of them is taken for no keys.
pub(super) const MAX_KEYS: usize = 32;

/// Returns the keys of a message's text in their order, letters in capitals. Blanks, commas and `w` stand for pauses,
/// and are left out. `None` where the text has no key, more than [`MAX_KEYS`], or anything else.
pub(super) fn keys_of(text: &str) -> Option<Vec<char>> {
    let (mut keys, mut rest) = (Vec::new(), text.chars());
    loop {
        match rest.next().map(|letter| letter.to_ascii_uppercase()) {
            Some(' ' | ',' | 'W') => {}
            Some(key @ ('0'..='9' | '*' | '#' | 'A'..='D')) if keys.len() < MAX_KEYS => keys.push(key),
            Some(_) => return None,
            None => return (!keys.is_empty()).then_some(keys),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_keys_are_read_in_their_order() {
        let check = |text: &str, expect: Option<&str>| {
            let keys = keys_of(text).map(|keys| keys.into_iter().collect::<String>());
            assert_eq!(keys.as_deref(), expect, "{text:?}");
        };
        check("7", Some("7"));
        check("12#", Some("12#"));
        check("1, 2 w*a", Some("12*A"));
        check(&"5".repeat(MAX_KEYS), Some(&"5".repeat(MAX_KEYS)));
        for none in ["", " ,", "12x", "\u{661}", "-1", &"5".repeat(MAX_KEYS + 1)] {
            check(none, None);
        }
    }
}
