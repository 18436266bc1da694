//! Values of variables, which no output has.

/// Fewest characters of a value that is masked.
pub(super) const MASKED_CHARS: usize = 6;

/// Returns a value as JSON and XML documents and addresses carry it.
pub(super) fn escaped_forms(value: &str) -> [String; 3] {
    let json = serde_json::Value::from(value).to_string();
    let in_address = percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC).to_string();
    [json[1..json.len() - 1].to_owned(), quick_xml::escape::escape(value).into_owned(), in_address]
}

/// Takes masked values out of a text, also one that was cut and goes on with `...`.
pub fn mask(text: &str, masked: &[String]) -> String {
    masked.iter().fold(text.to_owned(), |text, value| mask_beginnings(text.replace(value.as_str(), "***"), value))
}

/// Takes beginnings of a value before `...` out of a text.
fn mask_beginnings(text: String, value: &str) -> String {
    let (mut done, mut rest) = (String::new(), text.as_str());
    while let Some(at) = rest.find("...") {
        let before = &rest[..at];
        let lengths = value.char_indices().map(|(at, _)| at).skip(MASKED_CHARS);
        let cut = lengths.filter(|length| before.ends_with(&value[..*length])).last();
        done.push_str(&before[..at - cut.unwrap_or(0)]);
        done.push_str(if cut.is_some() { "***..." } else { "..." });
        rest = &rest[at + 3..];
    }
    done.push_str(rest);
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_masked_where_they_are_cut_too() {
        let masked = ["secret-of-many-characters".to_owned()];
        for (text, expect) in [
            ("a secret-of-many-characters b", "a *** b"),
            ("x is \"secret-of-ma... and more", "x is \"***... and more"),
            ("... secre... x", "... secre... x"),
            ("no secret here...", "no secret here..."),
        ] {
            assert_eq!(mask(text, &masked), expect);
        }
    }
}
