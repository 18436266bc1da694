//! JSON as servers and models write it that use the words of another language: `NaN`, `True`, `None`, and fractions
//! such as `8/10`.

/// Returns JSON text in which words that are no JSON stand as values: what is no number as null, fractions as texts.
/// Texts stay as they are.
pub fn strict(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' => text_length(rest),
            c if is_bare(c) => rest.find(|c| !is_bare(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (piece, left) = rest.split_at(length);
        match piece {
            "NaN" | "Infinity" | "-Infinity" | "+Infinity" | "inf" | "-inf" | "nan" | "None" | "undefined" => {
                out.push_str("null");
            }
            "True" | "TRUE" => out.push_str("true"),
            "False" | "FALSE" => out.push_str("false"),
            fraction if is_fraction(fraction) => out.extend(["\"", fraction, "\""]),
            other => out.push_str(other),
        }
        rest = left;
    }
    out
}

fn is_bare(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '/' | '_')
}

fn is_fraction(word: &str) -> bool {
    let is_number = |part: &str| part.parse::<f64>().is_ok_and(f64::is_finite);
    word.split_once('/').is_some_and(|(part, whole)| is_number(part) && is_number(whole))
}

/// Returns the length of the JSON text that begins here, with its quotation marks; all that is left where it is not
/// closed.
fn text_length(json: &str) -> usize {
    let mut escaped = false;
    for (at, c) in json.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_other_languages_become_values() {
        for (loose, expect) in [
            (r#"{"a": NaN, "b": [-Infinity, 1e5]}"#, r#"{"a": null, "b": [null, 1e5]}"#),
            (r#"{"a": True, "b": False, "c": None}"#, r#"{"a": true, "b": false, "c": null}"#),
            (r#"{"a": 8/10}"#, r#"{"a": "8/10"}"#),
            (r#"{"a": "NaN \" True", "b": true}"#, r#"{"a": "NaN \" True", "b": true}"#),
            (r#"{"a": "open NaN"#, r#"{"a": "open NaN"#),
            ("ä, NaNs", "ä, NaNs"),
        ] {
            assert_eq!(strict(loose), expect);
        }
    }
}
