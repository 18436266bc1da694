//! Telephone digits in the messages of channels.

/// Most digits of one message; a message with more of them is taken for none.
pub(super) const MAX_DIGITS: usize = 32;

/// Returns the digits of a message's text in their order, letters in capitals. Blanks, commas and `w` stand for pauses,
/// and are left out. `None` where the text has no digit, more than [`MAX_DIGITS`], or anything else.
pub(super) fn digits_of(text: &str) -> Option<Vec<char>> {
    let (mut digits, mut rest) = (Vec::new(), text.chars());
    loop {
        match rest.next().map(|letter| letter.to_ascii_uppercase()) {
            Some(' ' | ',' | 'W') => {}
            Some(digit @ ('0'..='9' | '*' | '#' | 'A'..='D')) if digits.len() < MAX_DIGITS => digits.push(digit),
            Some(_) => return None,
            None => return (!digits.is_empty()).then_some(digits),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_digits_are_read_in_their_order() {
        let check = |text: &str, expect: Option<&str>| {
            let digits = digits_of(text).map(|digits| digits.into_iter().collect::<String>());
            assert_eq!(digits.as_deref(), expect, "{text:?}");
        };
        check("7", Some("7"));
        check("12#", Some("12#"));
        check("1, 2 w*a", Some("12*A"));
        check(&"5".repeat(MAX_DIGITS), Some(&"5".repeat(MAX_DIGITS)));
        for none in ["", " ,", "12x", "\u{661}", "-1", &"5".repeat(MAX_DIGITS + 1)] {
            check(none, None);
        }
    }
}
